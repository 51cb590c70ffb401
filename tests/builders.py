"""A small Transformer for tests: its choices, its parameters and tokens, from keywords alone."""

from dataclasses import fields

import numpy as np
import pytest

from pe_numpy import Model, Sizes, init_params, yarn_scaling
from pe_numpy.transformer.encodings import Encoding, Rope, every_encoding
from pe_numpy.transformer.masks import Causal

B, L, V, D, F, H = 3, 8, 13, 12, 20, 2
SIZES = {"vocabulary": V, "d_model": D, "d_ff": F, "n_layers": 2}
SHOWN = {field.name for field in fields(Sizes)}  # by the parameters; all else is the model's
ENCODINGS = {
    **every_encoding(length=40, clip=3),
    "rope, half": Rope(layout="half"),
    "rope, YaRN": Rope(scaling=lambda d, length: yarn_scaling(d, 4, 16)),
}
every = pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)


def parts(**choices):
    """`Sizes` and `Model` of keywords that belong to either; a mask is what the encoding needs."""
    sizes = {**SIZES, **{name: value for name, value in choices.items() if name in SHOWN}}
    rest = {name: value for name, value in choices.items() if name not in SHOWN}
    mask = getattr(rest.get("encoding"), "needs", None) or Causal()
    return Sizes(**sizes), Model(**{"n_heads": H, "mask": mask, **rest})


def made(seed=0, dtype=np.float64, **choices):
    """A model, and parameters as they begin."""
    sizes, model = parts(**choices)
    return model, init_params(sizes, model, np.random.default_rng(seed), dtype)


def built(encoding=None, seed=0, dtype=np.float64, shape=(B, L), **choices):
    """A model, parameters with random biases and gains, and random tokens (B, L)."""
    sizes, model = parts(encoding=encoding or Encoding(), **choices)
    rng = np.random.default_rng(seed)
    params = jittered(init_params(sizes, model, rng, dtype), rng)
    return model, params, rng.integers(0, sizes.vocabulary, shape)


def jittered(tree, rng):
    """Leave no bias at zero and no gain at one, so that a forgotten one shows."""
    if isinstance(tree, dict):
        return {key: jittered(value, rng) for key, value in tree.items()}
    return np.asarray(tree + 0.1 * rng.standard_normal(tree.shape), tree.dtype)


def each(tree, function):
    """The tree with `function` applied to every array."""
    if isinstance(tree, dict):
        return {key: each(value, function) for key, value in tree.items()}
    return function(tree)


def flat(tree, path=""):
    """Paths and arrays of a tree."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from flat(value, f"{path}/{key}")
    else:
        yield path, tree
