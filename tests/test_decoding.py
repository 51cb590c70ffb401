"""Greedy decoding and sampling: loop oracles, both kinds of model, caches, bad input."""

import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pe_numpy import Model, decode, encode, greedy, init_params, sample
from pe_numpy.transformer import decoding
from pe_numpy.transformer.encodings import every_encoding

V = 13
ENCODINGS = every_encoding(length=40, clip=3)


def built(name="rope", **choices):
    model = Model(V, 12, 2, 20, n_layers=2, encoding=ENCODINGS[name], **choices)
    params = init_params(model, np.random.default_rng(0), np.float64)
    params["output"] = params["output"] * 8  # clear winners
    return model, params


PROMPT = np.array([[3, 1, 4], [1, 5, 9]])
SOURCE = np.array([[2, 7, 1, 8], [2, 8, 1, 0]])


# ---- loop oracle, and numbers by hand -----------------------------------------------------------

BIGRAM = np.log([[0.1, 0.6, 0.3], [0.25, 0.25, 0.5], [0.7, 0.2, 0.1]])  # of the next, by the last


def by_last_token(params, model, tokens, *rest):
    """In place of `decode`: logits that depend on the last token alone."""
    return BIGRAM[tokens]


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


THREE = Model(3, 4, 2, 4, n_layers=1)
OF_THREE = init_params(THREE, np.random.default_rng(0))


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("end", [None, 0, 1, 2])
def test_greedy_equals_one_sequence_after_another(monkeypatch, cached, end):
    monkeypatch.setattr(decoding, "decode", by_last_token)
    rows = greedy(OF_THREE, THREE, [[0], [1], [2]], 5, end=end, cached=cached)
    for start, row in enumerate(rows.tolist()):
        alone = written_by_loops(start, 5, most_probable, end)
        assert row == alone + [end] * (len(row) - len(alone))


def test_greedy_follows_the_table_by_hand(monkeypatch):
    monkeypatch.setattr(decoding, "decode", by_last_token)
    assert greedy(OF_THREE, THREE, [[0]], 4).tolist() == [[1, 2, 0, 1]]
    assert greedy(OF_THREE, THREE, [[0], [1]], 4, end=2).tolist() == [[1, 2], [2, 2]]


@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, None), (0.5, None), (2.0, 2), (1.0, 1)])
def test_sampling_equals_one_draw_after_another(monkeypatch, temperature, top_k):
    monkeypatch.setattr(decoding, "decode", by_last_token)
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


def test_sampling_draws_by_hand(monkeypatch):
    """After 0 the shares end at 0.1, 0.7 and 1."""

    class Given:
        def random(self, shape):
            return np.array([[0.05], [0.15], [0.69], [0.71]])

    monkeypatch.setattr(decoding, "decode", by_last_token)
    assert sample(OF_THREE, THREE, [[0]] * 4, 1, Given()).tolist() == [[0], [1], [1], [2]]
    # the two largest are 0.6 and 0.3: two thirds and one
    assert sample(OF_THREE, THREE, [[0]] * 4, 1, Given(), top_k=2).tolist() == [[1], [1], [2], [2]]


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
def test_a_largest_logit_that_is_not_finite_is_refused(value, monkeypatch):
    model, params = built()

    def strange(*arguments):
        logits = decode(*arguments)
        if arguments[2].shape[1] == 1:  # from the second token on
            logits[1] = value
        return logits

    monkeypatch.setattr(decoding, "decode", strange)
    for call, name in zip(both(params, model, PROMPT, 3), ("greedy", "sample"), strict=True):
        rule = f"{name}: the largest logit must be finite; got {value} at step 1 of sequence 1"
        with pytest.raises(ValueError, match=rule):
            call()


def test_masked_tokens_are_never_chosen(monkeypatch):
    model, params = built()

    def masked(*arguments):
        return np.where(np.arange(V) == 5, decode(*arguments), -np.inf)

    monkeypatch.setattr(decoding, "decode", masked)
    for call in both(params, model, PROMPT, 3):
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
        ({"source": None}, "memory must be given if and only if the model has an encoder"),
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
    with pytest.raises(ValueError, match="encode: the model has no encoder"):
        greedy(params, model, PROMPT, 2, source=SOURCE)
    with pytest.raises(ValueError, match="decode: memory_real must come with a memory"):
        greedy(params, model, PROMPT, 2, source_real=np.ones((2, 4), bool))


def test_bad_choices_of_sampling_are_named():
    model, params = built()
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="sample: temperature must be above 0; got 0"):
        sample(params, model, PROMPT, 1, rng, temperature=0)
    with pytest.raises(ValueError, match="sample: top_k must be at least 1; got 0"):
        sample(params, model, PROMPT, 1, rng, top_k=0)
