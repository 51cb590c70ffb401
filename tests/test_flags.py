"""What is True or False: a word, which Python takes for True, is refused by every function."""

import inspect
import re

import numpy as np
import pytest

import pe_numpy as pe
from pe_numpy.judging import study, tasks
from pe_numpy.training import loop

X = np.ones((2, 4))
RNG = np.random.default_rng(0)
SMALL = pe.Model(n_heads=2)
PARAMS = pe.init_params(pe.Sizes(11, 8, 16, n_layers=1), SMALL, np.random.default_rng(0))
CORPUS = tasks.text_corpus("abcdefghijklmnopqrst" * 9)
CALLS = {  # each function with a flag, and what it needs besides
    (pe.attention_blockwise, "causal"): (X, X, X),
    (pe.beam_search, "cached"): (PARAMS, SMALL, [[3, 1]], 2),
    (pe.detr_sine, "normalize"): (np.ones((2, 3), bool), 8),
    (pe.greedy, "cached"): (PARAMS, SMALL, [[3, 1]], 2),
    (pe.laplacian_encoding, "normalized"): ([[0, 1], [1, 0]], 1),
    (pe.mla_scores, "absorbed"): (
        *(np.ones((1, 2, 4)), np.ones((1, 2, 2)), np.ones((3, 2)), np.ones((3, 2))),
        *(np.ones((1, 4, 2)), [0, 1], [0, 1, 2]),
    ),
    (pe.mrope_frequencies, "interleaved"): ([2, 1, 1],),
    (pe.resize_matrix, "align_corners"): (3, 5),
    (pe.resize_matrix, "antialias"): (3, 5),
    (pe.sample, "cached"): (PARAMS, SMALL, [[3, 1]], 2, RNG),
    (pe.t5_bias, "bidirectional"): (np.ones((4, 1)), [[0, 1]]),
    (pe.t5_bucket, "bidirectional"): ([0, 1],),
    (pe.train, "progress"): ({"x": X}, lambda *all: (0.0, {"x": X}), lambda rng: None, 1, 0.1),
    (pe.xpos, "key"): (X, [0, 1]),
    (pe.yarn_scaling, "truncate"): (8, 4.0, 64),
    (study.run, "progress"): ([],),
    (tasks.date_batch, "held_out"): (RNG, 1),
    (tasks.markov_batch, "held_out"): (RNG, 1, 4, tasks.markov_language()),
    (tasks.needle_batch, "held_out"): (RNG, 1, 9),
    (tasks.offset_batch, "held_out"): (RNG, 1, 9),
    (tasks.reversal_batch, "held_out"): (RNG, 1),
    (tasks.text_batch, "held_out"): (RNG, 1, 4, CORPUS),
    (tasks.word_order_batch, "cls"): (RNG, 1),
    (tasks.word_order_batch, "held_out"): (RNG, 1),
}


@pytest.mark.parametrize("value", ["no", "", 1, None, [True]])
@pytest.mark.parametrize("function, name", CALLS)
def test_a_flag_is_true_or_false(function, name, value):
    before = RNG.bit_generator.state
    message = f"{function.__name__}: {name} must be True or False; got {value!r}"
    with pytest.raises(ValueError, match=re.escape(message)):
        function(*CALLS[function, name], **{name: value})
    assert RNG.bit_generator.state == before  # nothing is drawn before all is checked


@pytest.mark.parametrize("function, name", CALLS)
def test_a_flag_may_be_of_numpy(function, name):
    for value in (True, False):
        function(*CALLS[function, name], **{name: np.bool_(value)})


def test_every_flag_is_tried():
    public = [getattr(pe, name) for name in pe.__all__]
    public += [loop.train, study.run, *vars(tasks).values()]
    flags = {
        (function, name)
        for function in public
        if inspect.isfunction(function) and not function.__name__.startswith("_")
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.annotation in ("bool", bool) and function.__module__.startswith("pe_numpy.")
    }
    assert flags == set(CALLS)
