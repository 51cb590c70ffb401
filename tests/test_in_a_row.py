"""Exercises that keep a state, or take many parts: right answers in odd style, wrong ones named."""

import math

import numpy as np
import pytest

import pe_numpy as pe
from pe_numpy.homework.cases import run
from pe_numpy.homework.check import judge
from pe_numpy.homework.registry import EXERCISES

MINE = (
    "clip_gradients adamw sgd cached_attention sample_tokens rope_convert_weights convert_layout "
    "relative_gather alibi_key_bias join_fused attention_blockwise multi_head_attention silu "
    "dropout yarn_scaling causal_rope_attention"
).split()
SEEDS = (0, 3)


def verdict(name, function, seed=0):
    cases = EXERCISES[name].all_cases(seed)
    return judge(EXERCISES[name], run(function, cases), cases)


# ---- right answers in odd style ------------------------------------------------------------------


def listed_cache(q, k, v, cache=None, frequencies=None):
    """Keeps what came, unturned, as a list of pieces, and turns everything at each call."""
    cache = [*(cache or []), (k, v)]  # a new list
    keys, values = (np.concatenate(rows, axis=-2) for rows in zip(*cache, strict=True))
    at = np.arange(keys.shape[-2])
    if frequencies is not None:
        q = pe.rope(q, at[-q.shape[-2] :], frequencies, "half")
        keys = pe.rope(keys, at, frequencies, "half")
    mask = np.tri(len(at), dtype=bool)[-q.shape[-2] :]
    return pe.attention(q, keys, values, mask)[0], cache


class Rows:
    """A cache as an object that nobody else can read."""

    def __init__(self, rows):
        self.rows = rows


def hidden_cache(q, k, v, cache=None, frequencies=None):
    output, rows = listed_cache(q, k, v, cache.rows if cache else None, frequencies)
    return [output, Rows(rows)]


def by_choice(next_logits, prompt, steps, rng, temperature=1.0, top_k=None, end=None):
    """rng.choice, row by row, as most people draw."""
    rows, over = [list(row) for row in prompt], [False] * len(prompt)
    for _ in range(steps):
        for n, p in enumerate(next_logits(np.array(rows)).tolist()):
            order = np.argsort(p)[::-1][: top_k or len(p)]
            weights = np.zeros(len(p))
            weights[order] = [math.exp(p[j] / temperature) for j in order]
            token = rng.choice(len(p), p=weights / weights.sum())
            rows[n].append(end if over[n] else token)
            over[n] = over[n] or (end is not None and token == end)
        if all(over):
            break
    return np.array(rows)[:, prompt.shape[1] :]


def flat_adamw(
    params, grads, state, learning_rate, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01, decay=None
):
    """All arrays in one list by path; the learning rate folded into the bias correction."""

    def flat(tree, path=()):
        if not isinstance(tree, dict):
            return {path: tree}
        return {p: x for key in tree for p, x in flat(tree[key], (*path, key)).items()}

    def deep(leaves):
        tree = {}
        for path, leaf in leaves.items():
            at = tree
            for key in path[:-1]:
                at = at.setdefault(key, {})
            at[path[-1]] = leaf
        return tree

    n, new, first, second = state["step"] + 1, {}, {}, {}
    for path, p in flat(params).items():
        g, m, v = (flat(tree)[path] for tree in (grads, state["m"], state["v"]))
        first[path] = m + (1 - betas[0]) * (g - m)
        second[path] = v + (1 - betas[1]) * (g**2 - v)
        decays = decay("/".join(path), p) if decay else p.ndim >= 2
        kept = p * (1 - learning_rate * weight_decay) if decays else p
        root = (second[path] / (1 - betas[1] ** n)) ** 0.5
        new[path] = kept - learning_rate / (1 - betas[0] ** n) * first[path] / (root + eps)
    return deep(new), {"step": n, "v": deep(second), "m": deep(first)}


def clipped(grads, max_norm):
    """The factor as a minimum; the norm of all numbers in one row."""
    rows = [np.ravel(x).astype(float) for x in (leaf for leaf in leaves(grads))]
    norm = np.linalg.norm(np.concatenate(rows))
    return times(grads, float(min(1.0, max_norm / norm))), norm


def leaves(tree):
    for x in tree.values():
        yield from leaves(x) if isinstance(x, dict) else [x]


def times(tree, by):
    return {k: times(x, by) if isinstance(x, dict) else x * by for k, x in tree.items()}


ODD = [
    ("cached_attention", listed_cache),
    ("cached_attention", hidden_cache),
    ("sample_tokens", by_choice),
    ("adamw", flat_adamw),
    ("clip_gradients", clipped),
    ("attention_blockwise", lambda *args, **o: pe.attention_blockwise(*args, **{**o, "block": 1})
        if len(args) < 6 else pe.attention_blockwise(*args, **o)),
    ("rope_convert_weights", lambda W, H, to="half", d=None: np.concatenate(
        [pe.convert_layout(head.T, to, d).T for head in np.split(W, H)])),
    ("dropout", lambda x, rate, rng=None: x if rng is None else np.where(
        rng.random(x.shape, dtype=np.float32) < rate, x.dtype.type(0), x / (1 - rate))),
    ("silu", lambda x: x * (1 + np.tanh(x / 2)) / 2),
    ("alibi_key_bias", lambda slopes, at: np.moveaxis(
        (at[..., None] * slopes).astype(slopes.dtype), -1, -2)[..., None, :]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function"), ODD)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_right_answer_in_another_style_passes(name, function, seed):
    assert (v := verdict(name, function, seed)).passed, str(v)


@pytest.mark.parametrize("name", MINE)
def test_there_are_twelve_cases_and_a_seed_changes_their_numbers(name):
    exercise = EXERCISES[name]
    drawn = [list(exercise.cases(np.random.default_rng(seed))) for seed in SEEDS]
    assert len(drawn[0]) >= 12
    first, second = (run(exercise.reference, cases) for cases in drawn)
    assert sum(a.agrees(b) for a, b in zip(first, second, strict=True)) <= 4  # worked by hand
    for n in range(2):
        assert not any(o.error for o in (first, second)[n])


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_known_mistake_has_its_name_with_another_seed_too(name, seed):
    for mistake in EXERCISES[name].mistakes:
        assert verdict(name, mistake.function, seed).mistake == mistake.name


# ---- what can't go on ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "result", "words"),
    [
        ("adamw", None, "it must return two things, the parameters and the state; got nothing"),
        ("adamw", {"W": 1}, "two things, the parameters and the state; got dict"),
        ("adamw", ({"W": np.ones(1)}, {}), "must be a dictionary with the keys ['b']; got the"),
        ("adamw", ({"b": np.ones(1)}, {"m": {}}), "the state must be a dictionary with the keys"),
        ("sgd", 7, "it must return two things, the parameters and the velocities; got int"),
        ("clip_gradients", ([1.0], 5.0), "a dictionary with the keys ['W', 'b']; got list"),
        ("cached_attention", None, "output and cache; got nothing: is there a return?"),
        ("cached_attention", np.ones(2), "it must return two things, output and cache; got nda"),
    ],
)
def test_what_cannot_be_called_again_is_told(name, result, words):
    assert words in verdict(name, lambda *args, **options: result).problem


def test_a_cache_that_draws_drafts_into_itself_is_found_by_going_back():
    """One list for all caches: right until somebody goes back to an older one."""

    def grows(q, k, v, cache=None, frequencies=None):
        cache = [] if cache is None else cache
        output, cache[:] = listed_cache(q, k, v, cache, frequencies)
        return output, cache

    v = verdict("cached_attention", grows)
    assert v.mistake == "one cache changed in place" and "refused=True" in v.call


def test_gradients_that_are_changed_in_place_are_told():
    def in_place(params, grads, *args, **options):
        new = pe.sgd(params, grads, *args, **options)
        for g in leaves(grads):
            g *= 0.5
        return new

    assert "it changed its argument grads in place" in verdict("sgd", in_place).problem
