"""Exercises of chapter 65: from the conventions of one code to those of another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, case
from pe_numpy.homework.known import Mistake
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
    yield case(rng.standard_normal((3, 5, 4)), "shaw")


def _upside_down(table, kind="shaw"):
    return table[..., ::-1, :]


def _whole_halves(table, kind="shaw"):
    if kind == "t5":
        return np.roll(table, table.shape[-2] // 2, axis=-2)
    return flip_table(table, kind)


def _wrapped(table, kind="shaw"):
    """Row 0 of T5 moved as well: the distance 0 in the middle of the past."""
    return flip_table(table, "deberta") if kind == "t5" else flip_table(table, kind)


TABLE = Exercise(
    "flip_table",
    flip_table,
    _table_cases,
    (
        Mistake(
            "upside down, always",
            "That is Shaw's. DeBERTa's row 0 has no mirror image; T5 has two halves in one order.",
            65,
            _upside_down,
        ),
        Mistake(
            "the halves exchanged as wholes",
            "Row 0 is the query itself, for either sign, and row N/2 is read by no distance.",
            33,
            _whole_halves,
        ),
        Mistake(
            "T5 read as DeBERTa",
            "In both halves of T5 the near distances come first: nothing is reversed.",
            33,
            _wrapped,
        ),
        Mistake(
            "the components reversed",
            "Rows are the last axis but one.",
            65,
            lambda table, kind="shaw": table[..., ::-1],
        ),
    ),
    chapter=65,
)


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


def _taken_for_true(mask, source, to="attend"):
    return convert_mask(mask if source != "additive" else mask == 0, "attend", to)


def _one_and_zero(mask, source, to="attend"):
    if to != "additive":
        return convert_mask(mask, source, to)
    return convert_mask(mask, source).astype(float if source != "additive" else mask.dtype)


def _zero_times_infinity(mask, source, to="attend"):
    if to != "additive":
        return convert_mask(mask, source, to)
    with np.errstate(invalid="ignore"):
        added = convert_mask(mask, source, "blocked") * -np.inf  # 0 * -inf is NaN
    return added.astype(float if source != "additive" else mask.dtype)


def _infinity_alone(mask, source, to="attend"):
    if source == "additive":
        return convert_mask(mask != -np.inf, "attend", to)
    return convert_mask(mask, source, to)


def _never_turned(mask, source, to="attend"):
    if to == "additive":
        return _taken_for_true(mask, source, to)
    return mask == 0 if source == "additive" else mask.copy()


def _very_low(mask, source, to="attend"):
    found = convert_mask(mask, source, to)
    return np.where(found == 0, found, found.dtype.type(-1e9)) if to == "additive" else found


MASK = Exercise(
    "convert_mask",
    convert_mask,
    _mask_cases,
    (
        Mistake(
            "True means may attend, always",
            "In a blocked mask True means may not: turn it around first.",
            65,
            _taken_for_true,
        ),
        Mistake(
            "1 and 0 to add",
            "What may be seen gets 0, and what may not -inf; a 1 raises a score by 1.",
            65,
            _one_and_zero,
        ),
        Mistake(
            "zero times infinity",
            "0 * -inf is NaN: choose with np.where.",
            10,
            _zero_times_infinity,
        ),
        Mistake(
            "infinity alone blocks",
            "Many libraries add -1e9, or the least number of the dtype, in place of -inf.",
            65,
            _infinity_alone,
        ),
    ),
    chapter=65,
    further=(
        Mistake(
            "blocked and attend taken for the same",
            "True means may attend in one and may not in the other: turn it round in between.",
            65,
            _never_turned,
        ),
        Mistake(
            "-1e9 for -inf",
            "A finite number does not block a row as a whole: add -inf.",
            65,
            _very_low,
        ),
    ),
)

EXERCISES = (TABLE, MASK)
