"""Greedy decoding, sampling, beams, drafts: loop oracles, every model, caches, bad input."""

import importlib
import itertools
import json
import math
from functools import partial
from pathlib import Path

import builders
import numpy as np
import pytest
from builders import V
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    Cache,
    Context,
    beam_search,
    decode,
    encode,
    greedy,
    load_model,
    sample,
    speculative,
)
from pe_numpy.models.load import PAGES
from pe_numpy.transformer import generate
from pe_numpy.transformer.encodings import every_encoding
from pe_numpy.transformer.masks import Chunk, Window

ENCODINGS = every_encoding(length=40, clip=3)


def built(name="rope", **choices):
    model, params = builders.made(encoding=ENCODINGS[name], **choices)
    params["output"] = params["output"] * 8  # clear winners
    return model, params


PROMPT = np.array([[3, 1, 4], [1, 5, 9]])
SOURCE = np.array([[2, 7, 1, 8], [2, 8, 1, 0]])


# ---- loop oracle, and numbers by hand -----------------------------------------------------------

BIGRAM = np.log([[0.1, 0.6, 0.3], [0.25, 0.25, 0.5], [0.7, 0.2, 0.1]])  # of the next, by the last


class Table:
    """A model whose logits depend on the last token alone, or on its position, too."""

    def __init__(self, logits):
        self.logits, self.read = np.asarray(logits), []

    def sources(self, params, source=None, source_real=None):
        return ()

    def forward(self, params, sources, tokens, real, cache, last):
        self.read.append(tokens)
        context = (cache or Context()).begin(tokens.shape)
        context.end()
        place = (context.q_positions, tokens) if self.logits.ndim == 3 else tokens
        return self.logits[place][:, -last:]


class Changed:
    """A model whose logits are changed before anybody sees them."""

    def __init__(self, model, change):
        self.model, self.change = model, change

    def sources(self, *given):
        return self.model.sources(*given)

    def forward(self, params, sources, tokens, real, cache, last):
        given = self.model.forward(params, sources, tokens, real, cache, last)
        return self.change(given, tokens)


def written_by_loops(last, steps, choose, end=None):
    """One sequence, one token after another."""
    written = []
    for _ in range(steps):
        last = choose([math.exp(logit) for logit in BIGRAM[last]])
        written.append(last)
        if last == end:
            break
    return written


def most_probable(p):
    best = 0
    for token in range(len(p)):
        best = token if p[token] > p[best] else best
    return best


THREE = Table(BIGRAM)
OF_THREE = {"embedding": np.zeros((3, 4))}


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("end", [None, 0, 1, 2])
def test_greedy_equals_one_sequence_after_another(cached, end):
    rows = greedy(OF_THREE, THREE, [[0], [1], [2]], 5, end=end, cached=cached)
    for start, row in enumerate(rows.tolist()):
        alone = written_by_loops(start, 5, most_probable, end)
        assert row == alone + [end] * (len(row) - len(alone))


def test_greedy_follows_the_table_by_hand():
    assert greedy(OF_THREE, THREE, [[0]], 4).tolist() == [[1, 2, 0, 1]]
    assert greedy(OF_THREE, THREE, [[0], [1]], 4, end=2).tolist() == [[1, 2], [2, 2]]


@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, None), (0.5, None), (2.0, 2), (1.0, 1)])
def test_sampling_equals_one_draw_after_another(temperature, top_k):
    rows = sample(
        OF_THREE, THREE, [[0], [2], [1]], 40, np.random.default_rng(5), temperature, top_k
    )
    rng, last = np.random.default_rng(5), [0, 2, 1]
    for step in range(40):
        draws = rng.random(3)
        for n in range(3):
            p = [math.exp(logit / temperature) for logit in BIGRAM[last[n]]]
            least = sorted(p)[-(top_k or 3)]
            p = [a if a >= least else 0.0 for a in p]
            below, token = p[0], 0
            while below < draws[n] * sum(p):
                token += 1
                below += p[token]
            last[n] = token
            assert rows[n, step] == token


def test_sampling_draws_by_hand():
    """After 0 the shares end at 0.1, 0.7 and 1."""

    class Given(np.random.Generator):
        def random(self, shape):
            return np.array([[0.05], [0.15], [0.69], [0.71]])

    given = Given(np.random.PCG64())
    assert sample(OF_THREE, THREE, [[0]] * 4, 1, given).tolist() == [[0], [1], [1], [2]]
    # the two largest are 0.6 and 0.3: two thirds and one
    assert sample(OF_THREE, THREE, [[0]] * 4, 1, given, top_k=2).tolist() == [[1], [1], [2], [2]]


# ---- with and without a cache -------------------------------------------------------------------


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("crossed", [False, True])
def test_tokens_are_the_same_with_and_without_a_cache(name, crossed):
    model, params = built(name, n_encoder_layers=int(crossed))
    source = SOURCE if crossed else None
    with_cache = greedy(params, model, PROMPT, 9, source=source)
    assert with_cache.shape == (2, 9)
    assert_array_equal(with_cache, greedy(params, model, PROMPT, 9, source=source, cached=False))


def test_greedy_takes_the_largest_logit_step_by_step():
    model, params = built(n_encoder_layers=1)
    memory, tokens = encode(params, model, SOURCE), PROMPT
    for _ in range(5):
        logits = decode(params, model, tokens, memory)[:, -1]
        tokens = np.concatenate([tokens, logits.argmax(-1)[:, None]], axis=1)
    assert_array_equal(greedy(params, model, PROMPT, 5, source=SOURCE), tokens[:, 3:])


@pytest.mark.parametrize("name", ENCODINGS)
def test_prompts_of_unequal_length_continue_as_they_would_alone(name):
    model, params = built(name)
    prompt = np.array([[0, 0, 3, 1], [1, 5, 9, 2]])
    real = np.array([[False, False, True, True], [True] * 4])
    for cached in (True, False):
        both = greedy(params, model, prompt, 6, real=real, cached=cached)
        assert_array_equal(both[:1], greedy(params, model, prompt[:1, 2:], 6))
        assert_array_equal(both[1:], greedy(params, model, prompt[1:], 6))


def test_after_its_end_a_sequence_stays_ended_and_all_ended_stop_early():
    model, params = built()
    free = greedy(params, model, PROMPT, 12)
    end = int(free[0, 2])
    stopped = greedy(params, model, PROMPT, 12, end=end)
    first = int(np.argmax(free[0] == end))
    assert_array_equal(stopped[0, : first + 1], free[0, : first + 1])
    assert (stopped[0, first:] == end).all()
    assert greedy(params, model, PROMPT[:1], 12, end=end).shape == (1, first + 1)


def test_sampling_follows_the_probabilities_of_the_logits():
    model, params = built()
    params["output"] = params["output"] / 8
    prompts = np.repeat(PROMPT[:1], 4000, axis=0)
    tokens = sample(params, model, prompts, 1, np.random.default_rng(0), temperature=0.7)[:, 0]
    logits = decode(params, model, PROMPT[:1])[0, -1] / 0.7
    expected = np.exp(logits) / np.exp(logits).sum()
    measured = np.bincount(tokens, minlength=V) / len(tokens)
    assert np.abs(measured - expected).max() < 4 * np.sqrt(0.25 / len(tokens))


def test_top_k_draws_among_the_k_largest_and_the_generator_decides():
    model, params = built()
    prompts = np.repeat(PROMPT[:1], 500, axis=0)
    best = set(np.argsort(decode(params, model, PROMPT[:1])[0, -1])[-3:].tolist())
    drawn = sample(params, model, prompts, 1, np.random.default_rng(0), 5.0, top_k=3)
    assert set(drawn[:, 0].tolist()) == best
    again = [sample(params, model, PROMPT, 6, np.random.default_rng(s)) for s in (4, 4)]
    assert_array_equal(*again)
    assert_array_equal(
        sample(params, model, PROMPT, 6, np.random.default_rng(0), temperature=1e-6),
        greedy(params, model, PROMPT, 6),
    )


def test_no_steps_give_no_tokens():
    model, params = built()
    assert greedy(params, model, PROMPT, 0).shape == (2, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": np.zeros((2, 0), int)}, r"prompt must have the axes \(B, L\) and at least one"),
        ({"prompt": [1, 2]}, r"prompt must have the axes \(B, L\)"),
        (
            {"real": np.array([[True, True, False]] * 2)},
            "padding of the prompt must stand on the left",
        ),
        ({"steps": -1}, "steps must be at least 0; got -1"),
        ({"steps": 2.0}, "steps must be a whole number; got 2.0"),
        ({"prompt": [[0.5]]}, "prompt must be whole numbers"),
        ({"end": 3.0}, "end must be a whole number; got 3.0"),
        ({"end": "3"}, "end must be a whole number; got '3'"),
        ({"end": True}, "end must be a whole number; got True"),
        ({"end": V}, "end must be a token of the vocabulary, below 13; got 13"),
        ({"end": -1}, "end must be at least 0; got -1"),
        ({"end": V, "steps": 0}, "end must be a token of the vocabulary, below 13; got 13"),
    ],
)
@pytest.mark.parametrize("cached", [True, False])
def test_bad_input_is_named_with_the_rule_and_the_numbers(change, message, cached):
    model, params = built()
    arguments = {"prompt": PROMPT, "steps": 2, "cached": cached, **change}
    with pytest.raises(ValueError, match=f"greedy: {message}"):
        greedy(params, model, **arguments)
    with pytest.raises(ValueError, match=f"sample: {message}"):
        sample(params, model, **arguments, rng=np.random.default_rng(0))


def both(params, model, prompt, steps, **options):
    """Greedy decoding and sampling, as functions of nothing."""
    return (
        lambda: greedy(params, model, prompt, steps, **options),
        lambda: sample(params, model, prompt, steps, np.random.default_rng(0), **options),
    )


@pytest.mark.parametrize("cached", [True, False])
def test_nan_logits_are_refused_and_not_turned_into_token_0(cached):
    model, params = built()
    params["embedding"][PROMPT[1, 2]] = np.nan  # of the second prompt alone
    calls = both(params, model, PROMPT, 3, cached=cached)
    for call, name in zip(calls, ("greedy", "sample"), strict=True):
        rule = f"{name}: the largest logit must be finite; got nan at step 0 of sequence 1"
        with pytest.raises(ValueError, match=rule):
            call()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_largest_logit_that_is_not_finite_is_refused(value):
    model, params = built()

    def strange(logits, tokens):
        if tokens.shape[1] == 1:  # from the second token on
            logits[1] = value
        return logits

    calls = both(params, Changed(model, strange), PROMPT, 3)
    for call, name in zip(calls, ("greedy", "sample"), strict=True):
        rule = f"{name}: the largest logit must be finite; got {value} at step 1 of sequence 1"
        with pytest.raises(ValueError, match=rule):
            call()


def test_masked_tokens_are_never_chosen():
    model, params = built()
    masked = Changed(model, lambda logits, _: np.where(np.arange(V) == 5, logits, -np.inf))
    for call in both(params, masked, PROMPT, 3):
        assert (call() == 5).all()


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_source_of_another_batch_is_refused(rows, cached):
    model, params = built(n_encoder_layers=1)
    source = np.ones((rows, 4), int)
    for call, name in zip(
        both(params, model, PROMPT, 2, source=source, cached=cached),
        ("greedy", "sample"),
        strict=True,
    ):
        rule = f"{name}: source must have one row for each prompt, 2; got shape \\({rows}, 4\\)"
        with pytest.raises(ValueError, match=rule):
            call()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"source": None},
            "^(greedy|sample): source must be given if and only if the model has an .*; got none",
        ),
        ({"source": [1, 2]}, r"source must have one row for each prompt, 2; got shape \(2,\)"),
        ({"source": [[V] * 4] * 2}, "tokens must be from 0 to V - 1 = 12; got 13"),
        ({"source_real": np.ones((2, 3), bool)}, "real must be boolean and of the shape"),
        ({"source_real": np.ones((2, 4))}, "real must be boolean and of the shape"),
        ({"prompt": [[V], [1]]}, "tokens must be from 0 to V - 1 = 12; got 13"),
        ({"real": np.ones(PROMPT.shape)}, "real must be boolean and of the shape"),
    ],
)
def test_what_the_model_refuses_is_refused(change, message):
    model, params = built(n_encoder_layers=1)
    arguments = {"prompt": PROMPT, "steps": 2, "source": SOURCE, **change}
    for call in both(params, model, **arguments):
        with pytest.raises(ValueError, match=message):
            call()
    model, params = built()
    rule = "^greedy: source must be given if and only if the model has an encoder; got one"
    with pytest.raises(ValueError, match=rule):
        greedy(params, model, PROMPT, 2, source=SOURCE)
    for call in (greedy, partial(sample, rng=np.random.default_rng(0)), beam_search):
        name = getattr(call, "func", call).__name__
        with pytest.raises(ValueError, match=f"{name}: source_real must come with a source"):
            call(params, model, PROMPT, 2, source_real=np.ones((2, 4), bool))


@pytest.mark.parametrize("rng", [0, np.random.RandomState(0), np.random])
def test_a_seed_is_no_generator(rng):
    model, params = built()
    calls = {
        "sample": lambda: sample(params, model, PROMPT, 2, rng),
        "speculative": lambda: speculative(params, model, params, model, PROMPT[:1], 2, rng),
        "decode": lambda: decode(params, model, PROMPT, rng=rng),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=f"{name}: rng must be a generator, such as"):
            call()
    with pytest.raises(ValueError, match=r"sample: rng must be a generator.*; got NoneType"):
        sample(params, model, PROMPT, 2, None)


def test_bad_choices_of_sampling_are_named():
    model, params = built()
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="sample: temperature must be above 0; got 0"):
        sample(params, model, PROMPT, 1, rng, temperature=0)
    with pytest.raises(ValueError, match="sample: top_k must be at least 1; got 0"):
        sample(params, model, PROMPT, 1, rng, top_k=0)
    with pytest.raises(ValueError, match="sample: cached must be True or False; got 'no'"):
        sample(params, model, PROMPT, 1, rng, cached="no")


# ---- beam search --------------------------------------------------------------------------------


def penalty(length, alpha):
    return ((5 + length) / 6) ** alpha


def beams_by_loops(log_p, start, steps, beams, alpha, end):
    """Alive and finished sequences as lists; log_p[step][last][next]."""
    alive, finished = [(0.0, [])], []
    for step in range(steps):
        grown = []
        for score, tokens in alive:
            for token, more in enumerate(log_p[step][(tokens or [start])[-1]]):
                grown.append((score + more, [*tokens, token]))
        grown.sort(key=lambda pair: -pair[0])
        alive = []
        for score, tokens in grown[: 2 * beams]:
            if tokens[-1] == end:
                finished.append((score / penalty(len(tokens), alpha), tokens))
            elif len(alive) < beams:
                alive.append((score, tokens))
    if finished:
        return max(finished, key=lambda pair: pair[0])
    return alive[0][0] / penalty(steps, alpha), alive[0][1]


def exhaustive(log_p, start, steps, alpha, end):
    """Best sequence that ends, of all that there are; the most probable one if none can end."""
    finished, endless = [], []
    for tokens in itertools.product(range(len(log_p[0])), repeat=steps):
        tokens = list(tokens)
        ends = end in tokens
        tokens = tokens[: tokens.index(end) + 1] if ends else tokens
        pairs = itertools.pairwise([start, *tokens])
        score = sum(log_p[step][a][b] for step, (a, b) in enumerate(pairs))
        (finished if ends else endless).append((score / penalty(len(tokens), alpha), tokens))
    return max(finished or endless, key=lambda pair: pair[0])


def table_model(size, steps, seed):
    """A model whose logits depend on the step and the last token, and their log probabilities."""
    logits = np.random.default_rng(seed).normal(0, 1.5, (steps, size, size))
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return {"embedding": np.zeros((size, 4))}, Table(logits), log_p.tolist()


def assert_same_beam(found, tokens, scores, n, end):
    score, best = found
    assert tokens[n].tolist() == best + [end] * (tokens.shape[1] - len(best))
    assert abs(scores[n] - score) < 1e-12


@pytest.mark.parametrize("alpha", [0.0, 0.6, 3.0])
@pytest.mark.parametrize("end", [None, 0, 3])
def test_with_enough_beams_the_search_is_exhaustive(end, alpha):
    for seed in range(5):
        params, model, log_p = table_model(4, 5, seed)
        prompt = [[0], [1], [2]]
        tokens, scores = beam_search(params, model, prompt, 5, 4**5, alpha, end=end)
        for n in range(3):
            assert_same_beam(exhaustive(log_p, n, 5, alpha, end), tokens, scores, n, end)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 3.0])
@pytest.mark.parametrize("beams", [1, 2, 3, 7])
@pytest.mark.parametrize("end", [None, 1])
def test_beam_search_equals_lists_that_grow(end, beams, alpha):
    """The oracle never stops early, and keeps all that has ended."""
    for seed in range(8):
        params, model, log_p = table_model(5, 7, seed)
        prompt = [[0], [4], [2], [3]]
        for cached in (True, False):
            tokens, scores = beam_search(
                params, model, prompt, 7, beams, alpha, end=end, cached=cached
            )
            for n, (start,) in enumerate(prompt):
                found = beams_by_loops(log_p, start, 7, beams, alpha, end)
                assert_same_beam(found, tokens, scores, n, end)


def test_two_beams_find_by_hand_what_greedy_misses():
    """After 0: 1 with 0.6, then nothing above 0.4; 2 with 0.4, then 0 surely."""
    p = np.array([[0.0, 0.6, 0.4], [0.3, 0.4, 0.3], [1.0, 0.0, 0.0]])
    with np.errstate(divide="ignore"):
        log_p = np.log(p)
    sure = Table(log_p)
    assert greedy(OF_THREE, sure, [[0]], 2).tolist() == [[1, 1]]  # 0.24
    tokens, scores = beam_search(OF_THREE, sure, [[0]], 2, beams=2, alpha=0.0)
    assert tokens.tolist() == [[2, 0]]
    assert_allclose(scores, math.log(0.4), rtol=0, atol=1e-15)
    tokens, scores = beam_search(OF_THREE, sure, [[0]], 2, beams=2, alpha=0.6, end=0)
    assert_allclose(scores, math.log(0.4) / (7 / 6) ** 0.6, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("crossed", [False, True])
def test_beams_are_the_same_with_and_without_a_cache(name, crossed):
    model, params = built(name, n_encoder_layers=int(crossed))
    params["output"] = params["output"] / 4
    given = {"source": SOURCE, "source_real": SOURCE > 0} if crossed else {}
    prompt = np.array([[0, 0, 3, 1], [1, 5, 9, 2]])
    real = np.array([[False, False, True, True], [True] * 4])
    found = [
        beam_search(params, model, prompt, 7, 3, real=real, end=6, cached=cached, **given)
        for cached in (True, False)
    ]
    assert_array_equal(found[0][0], found[1][0])
    assert_allclose(found[0][1], found[1][1], rtol=0, atol=1e-12)
    for n, start in ((0, 2), (1, 0)):  # as they would alone
        given = {"source": SOURCE[n : n + 1, : 4 - n]} if crossed else {}
        alone = beam_search(params, model, prompt[n : n + 1, start:], 7, 3, end=6, **given)
        size = alone[0].shape[1]
        assert_array_equal(found[0][0][n, :size], alone[0][0])
        assert (found[0][0][n, size:] == 6).all()
        assert_allclose(found[0][1][n], alone[1][0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("mask", [Window(3), Window(2, sinks=1), Chunk(4)])
def test_beams_and_drafts_under_windows(mask):
    model, params = built(mask=mask)
    found = [beam_search(params, model, PROMPT, 8, 3, cached=cached) for cached in (True, False)]
    assert_array_equal(found[0][0], found[1][0])
    written = speculative(params, model, noisy(params), model, PROMPT[:1], 12)
    assert_array_equal(written, greedy(params, model, PROMPT[:1], 12))


@pytest.mark.parametrize("name", ENCODINGS)
def test_one_beam_is_greedy_and_its_score_the_log_probability(name):
    model, params = built(name)
    tokens, scores = beam_search(params, model, PROMPT, 6, beams=1)
    assert_array_equal(tokens, greedy(params, model, PROMPT, 6))
    z = decode(params, model, np.concatenate([PROMPT, tokens], axis=1))[:, 2:-1]
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    total = np.take_along_axis(log_p, tokens[..., None], axis=2).sum(axis=(1, 2))
    assert_allclose(scores, total / ((5 + 6) / 6) ** 0.6, rtol=0, atol=1e-10)


def test_more_beams_never_find_less_where_they_were_tried():
    model, params = built()
    params["output"] = params["output"] / 8
    scores = [beam_search(params, model, PROMPT, 6, beams, 0.0)[1] for beams in (1, 8, 60)]
    assert (np.diff(scores, axis=0) >= 0).all()
    assert (scores[0] < scores[2]).any()


def test_the_search_stops_when_nothing_can_become_better():
    """0 ends with 0.9 at once: no other sequence can reach that."""
    model = Table(np.log([[0.9, 0.05, 0.05]] * 3))
    tokens, scores = beam_search(OF_THREE, model, [[1], [2]], 50, beams=2, end=0)
    assert tokens.tolist() == [[0], [0]]
    assert_allclose(scores, math.log(0.9), rtol=0, atol=1e-15)
    assert len(model.read) == 1


def test_beams_of_no_steps_and_of_a_vocabulary_of_one():
    model, params = built()
    tokens, scores = beam_search(params, model, PROMPT, 0)
    assert tokens.shape == (2, 0)
    assert_array_equal(scores, [0, 0])
    one, params = builders.made(vocabulary=1, d_model=4, d_ff=4, n_layers=1)
    tokens, scores = beam_search(params, one, [[0]], 3, end=0)
    assert tokens.tolist() == [[0]]
    assert scores.tolist() == [0.0]


# ---- speculative decoding -----------------------------------------------------------------------


def noisy(params, size=0.15):
    """A draft that is often right."""
    rng = np.random.default_rng(7)
    return {**params, "output": params["output"] + rng.normal(0, size, params["output"].shape)}


@pytest.mark.parametrize("name", ENCODINGS)
def test_speculative_greedy_equals_greedy(name):
    """It reads as many tokens as a learned table has rows: 40."""
    model, params = built(name)
    expected, watch = greedy(params, model, PROMPT[:1], 37), {}
    for ahead, size in ((1, 0.15), (4, 0.5), (4, 2.0), (50, 0.15)):
        drafts = noisy(params, size)
        written = speculative(
            params, model, drafts, model, PROMPT[:1], 37, ahead=ahead, watch=watch
        )
        assert_array_equal(written, expected)
        accepted = sum(right for _, right in watch["rounds"])
        assert len(watch["rounds"]) + accepted == 37
    assert accepted > 0
    same = speculative(params, model, params, model, PROMPT[:1], 37, ahead=4, watch=watch)
    assert_array_equal(same, expected)
    assert watch["rounds"] == [(4, 4)] * 7 + [(1, 1)]  # 7 times 5, and 2


def test_a_draft_may_be_another_model():
    model, params = built()
    small, drafts = builders.made(
        seed=3, d_model=6, n_heads=1, d_ff=8, n_layers=1, encoding=ENCODINGS["sinusoidal"]
    )
    written = speculative(params, model, drafts, small, PROMPT[:1], 20)
    assert_array_equal(written, greedy(params, model, PROMPT[:1], 20))


def test_speculative_decoding_stops_at_its_end():
    model, params = built()
    free = greedy(params, model, PROMPT[:1], 20)
    for end in set(free[0].tolist()) | {0}:
        for ahead in (1, 3, 30):
            watch = {}
            stopped = speculative(
                params, model, noisy(params), model, PROMPT[:1], 20,
                ahead=ahead, end=end, watch=watch,
            )  # fmt: skip
            assert_array_equal(stopped, greedy(params, model, PROMPT[:1], 20, end=end))
            right = sum(accepted for _, accepted in watch["rounds"])
            assert stopped.shape[1] - len(watch["rounds"]) <= right <= stopped.shape[1]
    at_once = speculative(params, model, params, model, [[3, 1, 4]], 5, end=4)  # read, not written
    assert at_once.size > 0
    assert speculative(params, model, params, model, PROMPT[:1], 0).shape == (1, 0)


P = np.array([[0.50, 0.20, 0.25, 0.05], [0.10, 0.60, 0.05, 0.25],
              [0.30, 0.30, 0.20, 0.20], [0.05, 0.15, 0.70, 0.10]])  # fmt: skip
Q = np.array([[0.10, 0.55, 0.05, 0.30], [0.70, 0.05, 0.15, 0.10],
              [0.05, 0.15, 0.05, 0.75], [0.40, 0.10, 0.10, 0.40]])  # fmt: skip


def two_tables(temperature=1.0):
    """A large and a small model that know the last token alone."""
    params = {"embedding": np.zeros((4, 4))}
    return [params, Table(np.log(P) * temperature), params, Table(np.log(Q) * temperature)]


@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_the_distribution_is_that_of_the_large_model(ahead):
    """Chi-square over all sequences of 3 tokens: 64 - 1 degrees of freedom."""
    models = two_tables(temperature=0.7)
    rng, n = np.random.default_rng(12), 12_000
    seen = np.zeros((4, 4, 4))
    for _ in range(n):
        seen[tuple(speculative(*models, [[2]], 3, rng, 0.7, ahead)[0])] += 1
    expected = n * P[2][:, None, None] * P[:, :, None] * P[None]
    chi_square = ((seen - expected) ** 2 / expected).sum()
    assert chi_square < 103.4  # the 0.999 quantile


def test_acceptance_follows_the_formulas_by_hand():
    class Given:
        def __init__(self, *draws):
            self.draws = list(draws)

        def random(self):
            return self.draws.pop(0)

    p, q = list(P[:3]), list(Q[:2])
    # p/q of token 1 is 0.2/0.55 = 0.36, then 0.1/0.7 = 0.14 of token 0
    assert generate._accept(p, q, [1, 0], Given(0.35, 0.13))[0] == 2
    assert generate._accept(p, q, [1, 0], Given(0.37))[0] == 0
    right, rest = generate._accept(p, q, [1, 0], Given(0.35, 0.15))
    assert right == 1
    assert_allclose(rest, [0, 0.55, 0, 0.15], rtol=0, atol=1e-15)
    assert_array_equal(generate._accept(p, q, [1, 0], Given(0.0, 0.0))[1], P[2])
    assert generate._accept(p, q, [2, 1], Given(0.99, 0.99))[0] == 2  # p above q


def test_accepted_tokens_are_as_many_as_the_papers_expect():
    """Of one draft the share sum_x min(p, q) is accepted; a certain draft of its own p, always."""
    models = two_tables()
    rng, accepted, watch = np.random.default_rng(3), 0, {}
    for _ in range(4000):
        speculative(*models, [[1]], 2, rng, ahead=1, watch=watch)
        accepted += watch["rounds"][0][1]
    expected = np.minimum(P[1], Q[1]).sum()
    assert abs(accepted / 4000 - expected) < 4 * math.sqrt(expected * (1 - expected) / 4000)
    large = models[:2]
    speculative(*large, *large, [[1]], 20, rng, watch=watch)
    assert len(watch["rounds"]) == 4  # 5 tokens each


def test_sampled_tokens_need_fewer_readings_and_the_generator_decides():
    model, params = built()
    watch = {}
    again = [
        speculative(
            params, model, noisy(params), model, PROMPT[:1], 30, np.random.default_rng(5),
            watch=watch,
        )
        for _ in range(2)
    ]  # fmt: skip
    assert_array_equal(*again)
    assert again[0].shape == (1, 30)
    assert len(watch["rounds"]) < 30
    cold = speculative(
        params, model, noisy(params), model, PROMPT[:1], 30, np.random.default_rng(5), 1e-6
    )
    assert_array_equal(cold, greedy(params, model, PROMPT[:1], 30))


def test_rejected_tokens_leave_the_cache_as_it_was():
    model, params = built("forgetting", n_encoder_layers=1)
    memory = encode(params, model, SOURCE)
    cache = Cache(2, 12)
    real = np.array([[False, True, True], [True] * 3])
    decode(params, model, PROMPT, memory, None, real, cache)
    decode(params, model, np.full((2, 4), 7), memory, cache=cache)
    cache.cut(3)
    assert cache.length == 3
    rows = [1, 0, 1]
    cache.take(rows)
    assert cache.batch == 3
    logits = decode(params, model, [[5], [6], [8]], memory[rows], cache=cache)
    whole = np.concatenate([PROMPT[rows], [[5], [6], [8]]], axis=1)
    seen = np.concatenate([real[rows], np.ones((3, 1), bool)], axis=1)
    expected = decode(params, model, whole, memory[rows], None, seen)[:, -1:]
    assert_allclose(logits, expected, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match=r"Cache.cut: length must be at most the tokens held, 4; "):
        cache.cut(5)
    with pytest.raises(ValueError, match=r"Cache.cut: length must be at least 0; got -1"):
        cache.cut(-1)
    with pytest.raises(ValueError, match=r"Cache.take: rows must be whole numbers"):
        cache.take([0.5])


# ---- the loop and its reader: any choice, any model ---------------------------------------------


@pytest.mark.parametrize("cached", [True, False])
def test_a_reader_reads_on_goes_on_with_rows_and_forgets(cached):
    model, params = built("forgetting", n_encoder_layers=1)
    real = np.array([[False, True, True], [True] * 3])
    read = generate.Reader(params, model, 2, 9, SOURCE, SOURCE > 1, cached)
    memory = encode(params, model, SOURCE, SOURCE > 1)

    def expected(rows, tokens, real):
        return decode(params, model, tokens, memory[rows], (SOURCE > 1)[rows], real)

    logits = read(PROMPT, real, last=2)
    assert_allclose(logits, expected([0, 1], PROMPT, real)[:, -2:], rtol=0, atol=1e-12)
    more = np.array([[5, 6], [7, 8]])
    read(more, np.ones((2, 2), bool))
    assert read.length == 5
    read.cut(4)
    rows = np.array([1, 0, 1])
    read.take(rows)
    logits = read(np.array([[9], [8], [7]]), np.ones((3, 1), bool))
    tokens = np.concatenate([PROMPT[rows], more[rows, :1], [[9], [8], [7]]], axis=1)
    seen = np.concatenate([real[rows], np.ones((3, 2), bool)], axis=1)
    whole = expected(rows, tokens, seen)
    assert read.length == 5
    assert_allclose(logits, whole[:, -1:], rtol=0, atol=1e-12)


def test_any_function_of_the_logits_may_choose():
    read = generate.Reader(OF_THREE, THREE, 2, 9)
    least = generate.generate(read, np.array([[0], [1]]), 3, lambda logits: logits.argmin(-1))
    assert least.tolist() == [[0, 0, 0], [0, 0, 0]]
    read = generate.Reader(OF_THREE, THREE, 2, 9)
    drawn = generate.generate(
        read, np.array([[0], [1]]), 5, generate.Sample(np.random.default_rng(3), top_k=2), end=1
    )
    own = sample(OF_THREE, THREE, [[0], [1]], 5, np.random.default_rng(3), top_k=2, end=1)
    assert_array_equal(drawn, own)


def test_what_does_not_write_is_refused_by_all():
    _, params = built()
    for name, call in {
        "greedy": greedy,
        "sample": partial(sample, rng=np.random.default_rng(0)),
        "beam_search": beam_search,
        "speculative": lambda params, model, *rest: speculative(
            params, THREE, params, model, *rest
        ),
    }.items():
        for thing, kind in ((3, "int"), (params, "dict"), (np.ones(2), "ndarray")):
            rule = f"^{name}: model must be one that writes; got {kind}"
            with pytest.raises(ValueError, match=rule):
                call(params, thing, PROMPT[:1], 2)


# ---- released models ----------------------------------------------------------------------------

SHELF = Path(__file__).parent / "golden/models"
FREQUENCIES_CHANGE = {"phi3"}  # with the length: tokens read together are not as one by one


def released(kind):
    found = []
    for folder in sorted(path.parent for path in SHELF.glob("*/config.json")):
        page = PAGES[json.loads((folder / "config.json").read_text())["model_type"]]
        if importlib.import_module(f"pe_numpy.models.{page}").KIND == kind:
            found.append(folder.name)
    return found


@pytest.mark.parametrize("name", released("decoder"))
def test_released_decoders_search_and_draft(name):
    m = load_model(SHELF / name, np.float64)
    prompt, real = np.array([[0, 3, 1], [1, 5, 9]]), np.array([[False, True, True], [True] * 3])
    assert_a_cache_finds_the_same(m, prompt, real)
    rng, watch = np.random.default_rng(0), {}
    drafts = {**m.parameters, "embedding": m.parameters["embedding"].copy()}
    drafts["embedding"] += rng.normal(0, 0.02, drafts["embedding"].shape)
    small, of_small = builders.made(vocabulary=m.vocabulary, d_model=4, d_ff=4, n_layers=1)
    steps = 4 if name in FREQUENCIES_CHANGE else 12
    for given in ((drafts, m), (of_small, small), (m.parameters, m)):
        written = speculative(m.parameters, m, *given, prompt[1:], steps, watch=watch)
        assert_array_equal(written, greedy(m.parameters, m, prompt[1:], steps))
    assert len(watch["rounds"]) == -(-steps // 5)
    with pytest.raises(ValueError, match="source must be given if and only if the model has"):
        greedy(m.parameters, m, prompt, 3, source=prompt)


@pytest.mark.parametrize("name", released("encoder-decoder"))
def test_released_encoder_decoders_search(name):
    m = load_model(SHELF / name, np.float64)
    with np.load(SHELF / name / "golden.npz") as file:
        source = file["source"]
    source_real = np.ones(source.shape, bool) if source.ndim == 2 else None
    if source_real is not None:
        source_real[0, -2:] = False
    prompt = np.array([[1, 3], [1, 5]])
    given = {"source": source, "source_real": source_real}
    assert_a_cache_finds_the_same(m, prompt, np.ones(prompt.shape, bool), **given)
    with pytest.raises(ValueError, match="speculative: source must be given if and only if"):
        speculative(m.parameters, m, m.parameters, m, prompt[:1], 3)


def assert_a_cache_finds_the_same(m, prompt, real, **given):
    found = [
        beam_search(m.parameters, m, prompt, 6, 3, real=real, end=4, cached=cached, **given)
        for cached in (True, False)
    ]
    assert_array_equal(found[0][0], found[1][0])
    assert_allclose(found[0][1], found[1][1], rtol=0, atol=1e-10)
    tokens, _ = beam_search(m.parameters, m, prompt, 6, 1, real=real, **given)
    assert_array_equal(tokens, greedy(m.parameters, m, prompt, 6, real=real, **given))


# ---- bad input of both --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beams": 0}, "beams must be at least 1; got 0"),
        ({"beams": 2.0}, "beams must be a whole number; got 2.0"),
        ({"alpha": -0.5}, "alpha must be at least 0; got -0.5"),
        ({"alpha": "x"}, "alpha must be one real number; got 'x'"),
        ({"steps": -1}, "steps must be at least 0; got -1"),
        ({"end": V}, "end must be a token of the vocabulary, below 13; got 13"),
        ({"prompt": [1, 2]}, r"prompt must have the axes \(B, L\)"),
        ({"source": [[1, 2]]}, r"source must have one row for each prompt, 2; got shape \(1, 2\)"),
    ],
)
def test_bad_choices_of_beam_search_are_named(change, message):
    model, params = built(n_encoder_layers=int("source" in change))
    with pytest.raises(ValueError, match=f"beam_search: {message}"):
        beam_search(params, model, **{"prompt": PROMPT, "steps": 2, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": PROMPT}, r"prompt must be one alone, of shape \(1, L\); got \(2, 3\)"),
        ({"ahead": 0}, "ahead must be at least 1; got 0"),
        ({"temperature": 0}, "temperature must be above 0; got 0"),
        ({"steps": -1}, "steps must be at least 0; got -1"),
        ({"end": V}, "end must be a token of the vocabulary, below 13; got 13"),
        (
            {"draft_params": builders.made(vocabulary=11)[1]},
            "both models must have one vocabulary; got 13 and 11 tokens",
        ),
    ],
)
def test_bad_choices_of_speculative_decoding_are_named(change, message):
    model, params = built()
    given = {"draft_params": params, "draft_model": model, "prompt": PROMPT[:1], "steps": 2}
    with pytest.raises(ValueError, match=f"speculative: {message}"):
        speculative(params, model, **{**given, **change})


def test_logits_that_are_not_finite_are_refused_by_both():
    model, params = built()
    broken = {**params, "output": params["output"] * np.nan}
    rule = "the largest logit must be finite; got nan at step 0 of sequence 0"
    with pytest.raises(ValueError, match=f"beam_search: {rule}"):
        beam_search(broken, model, PROMPT, 2)
    for large, small in ((params, broken), (broken, params)):
        with pytest.raises(ValueError, match=f"speculative: {rule}"):
            speculative(large, model, small, model, PROMPT[:1], 2)
