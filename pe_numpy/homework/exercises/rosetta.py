"""Exercises of chapter 65: from the conventions of one code to those of another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.models.rosetta import convert_mask, flip_table

DTYPES = (np.float64, np.float32)


# ---- tables -------------------------------------------------------------------------------------


def _table_cases(rng: np.random.Generator) -> Iterator[Case]:
    yield case(np.array([[-1.0], [0.0], [1.0]]), "shaw")
    yield case(np.array([[-2.0], [-1.0], [0.0], [1.0]]), "deberta")
    yield case(np.array([[0.0], [1.0], [2.0], [9.0], [-1.0], [-2.0]]), "t5")
    for dtype in DTYPES:
        for N, kind in ((7, "shaw"), (8, "deberta"), (8, "t5"), (32, "t5")):
            yield case(rng.standard_normal((N, 3)).astype(dtype), kind)
    for N, kind in ((5, "shaw"), (6, "deberta"), (6, "t5")):
        yield case(rng.standard_normal((3, N, 4)), kind)  # for each layer


TABLE = Exercise("flip_table", flip_table, _table_cases, chapter=65)


# ---- masks --------------------------------------------------------------------------------------


def _mask_cases(rng: np.random.Generator) -> Iterator[Case]:
    kinds = ("attend", "blocked", "additive")
    for source in kinds:
        for to in kinds:
            may = rng.random((3, 4)) < 0.6
            yield case(convert_mask(may, "attend", source), source, to)
    for low in (-1e4, -1e9, -np.inf):
        yield case(np.array([0.0, low, 0.0]), "additive", "attend")
        yield case(np.array([0.0, low], np.float32), "additive", "additive")
    yield case(np.array([0.0, -5e4], np.float16), "additive", "additive")


MASK = Exercise("convert_mask", convert_mask, _mask_cases, chapter=65)

EXERCISES = (TABLE, MASK)
