# %% [markdown]
# # 73. Check your own
#
# *Is my function right, and if not, which mistake did I make?*
#
# 25 minutes. Needs [10 Work attention by hand](10_attention.ipynb), [20 Count with clocks: the sinusoidal code](20_sinusoidal.ipynb), [40 Derive RoPE: turn queries and keys by one rotation](40_rope_derived.ipynb).

# %% fold="input" alt="Nine heat maps of codes over 40 positions and 16 components: the right one and eight wrong ones, among them all sines first, sines and cosines exchanged, and waves that get faster to the right."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import sinusoidal
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.plots import exercises as plots

at = np.arange(40)
wrong = {m.name: np.asarray(m.function(at, 16)) for m in EXERCISES["sinusoidal"].mistakes}
plots.wrong_codes(wrong, sinusoidal(at, 16))
plt.show()

# %% [markdown]
# ## Short answers
#
# - **Is my function right?** `check("rope", my_rope)` runs it over many cases, shows the first that fails, and
#   names the mistake if it is a known one. For PyTorch add `to=torch.from_numpy`. [Shown](#a-checker-that-knows-mistakes).
# - **Why does my model train although RoPE turns the wrong way?** Turned the other way in queries *and* keys it is
#   the same model with two components of each pair exchanged. Keys or weights from elsewhere don't fit it.
#   [Shown](#exercise-1-the-sign-that-nobody-saw).
# - **Is "scores depend on the distance alone" a test of RoPE?** A weak one: nine of ten known mistakes pass it.
#   [Shown](#wrong-codes-and-wrong-scores).
# - **Which inputs hide mistakes?** Position 0, one key, $K=2$, $L=S$ from 0, heads a power of two, short texts, no
#   padding, a square grid. [Shown](#inputs-that-agree-by-accident).
# - **How do I check a whole class?** `python -m pe_numpy check --junit report.xml *.py NAME...` reads
#   all files, writes a report for CI, and fails if one fails. [Shown](#from-the-command-line).

# %% [markdown]
# One right sinusoidal code and eight wrong ones: which could you tell by eye? The checker of this chapter
# makes them, and knows them.
#
# ## A checker that knows mistakes
#
# `check` runs your function over many cases, a small one first: other widths, batches, positions that don't begin
# at 0, single and double precision. If one fails, it compares *all* your results with those of functions that
# are wrong in a known way. Write RoPE, with the sign of the angle wrong:


# %%
def my_rope(x, positions, frequencies=None, layout="interleaved"):
    if frequencies is None:
        frequencies = 10000.0 ** (-np.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = np.asarray(positions)[..., None] * frequencies
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    n = len(frequencies)
    a, b = slice(0, 2 * n, 2), slice(1, 2 * n, 2)
    if layout == "half":
        a, b = slice(n), slice(n, 2 * n)
    y = x.copy()
    y[..., a] = x[..., a] * cos + x[..., b] * sin
    y[..., b] = x[..., b] * cos - x[..., a] * sin
    return y


# %% [markdown]
# **Predict** what the checker says.

# %% fold="output"
import textwrap

from pe_numpy import check
from pe_numpy.book import show_source

show_source(check)
verdict = check("rope", my_rope)
assert not verdict.passed and verdict.mistake == "turned the other way"
print()
for line in str(verdict).splitlines():
    print(textwrap.fill(line, 96, subsequent_indent="    "))

# %% [markdown]
# The call that it shows is the first that fails; expected and given stand below it, so the sign can be seen with
# the naked eye. If no known mistake fits everywhere, that case is shown with what can be seen in it: a
# factor, swapped axes, NaN, the wrong dtype. A mistake that alone fits up to that case is named as a guess,
# since people make two mistakes at once.
# (`to` turns NumPy's arrays into those of your library; what you return is read with `np.asarray`.)
#
# Where no name fits and only numbers are wrong, the detector of [chapter 70](70_algebra.ipynb) measures the scores
# that come of your function, and one sentence says what tells them from the right ones. Let a little of the
# absolute position leak into the angles:

# %%
from pe_numpy import rope


def leaky_rope(x, positions, *rest, **options):
    return rope(x, positions + 0.01 * positions**2, *rest, **options)


verdict = check("rope", leaky_rope)
print(textwrap.fill(verdict.measured, 96))
assert verdict.mistake == "" and "no relative encoding" in verdict.measured
assert "by up to 1.3 of the largest" in verdict.measured
assert check("rope", lambda x, p, *rest, **o: rope(x, p + 2, *rest, **o)).measured == ""

# %% [markdown]
# It says what was measured, not which line is wrong; and where yours is of the same kind as the right one, as
# with positions that begin at 2, it says nothing.
#
# ## Wrong codes and wrong scores
#
# Back to the picture. Do the rows of the wrong codes keep one length, as those of the right one do?

# %%
norms = {name: (values**2).sum(axis=1) for name, values in wrong.items()}
uneven = [name for name, length in norms.items() if np.ptp(length) > 1e-9]
print(len(wrong), "wrong codes; not of one length:", uneven)
assert uneven == ["a frequency for each component"] and len(wrong) == 8

# %% [markdown]
# Seven of the eight do, so a test of the norm passes them. Only the frequency for each component breaks it, since
# its sine and cosine no longer belong together.
#
# The same for RoPE: the score of one query and one key, at all pairs of positions. A relative encoding has constant
# diagonals.

# %%
rng = np.random.default_rng(24)
query, key, positions = rng.standard_normal(8), rng.standard_normal(8), np.arange(16)


def scores_with(turn):
    return turn(np.tile(query, (16, 1)), positions) @ turn(np.tile(key, (16, 1)), positions).T


def relative(scores):
    return all(np.ptp(np.diagonal(scores, n)) < 1e-9 for n in range(-15, 16))


# %% [markdown]
# **Predict**: how many of ten wrong versions still have them?

# %% fold="output" alt="Nine heat maps of scores over query and key position: the right one with constant diagonals, and eight wrong ones, of which only that with both sines positive has no constant diagonals."
right = scores_with(rope)
scores = {m.name: scores_with(m.function) for m in EXERCISES["rope"].mistakes}
shown = {n: s for n, s in scores.items() if not np.allclose(s, right, rtol=0, atol=1e-9)}
plots.wrong_scores(shown, right)
plt.show()
print("the same scores:", [name for name in scores if name not in shown])
assert len(scores) == 10 and len(shown) == 8 and relative(right)
assert [name for name in scores if not relative(scores[name])] == ["both sines with a plus"]

# %% [markdown]
# Nine: two sines with a plus are no rotation, all others pass. Two even give the same scores here: positions
# counted from 1 all move together, and those given do begin at 0. What tells them is one vector at one position
# that is not 0 ([chapter 72](72_which_one.ipynb) compares seven such checks).
#
# ## Inputs that agree by accident
#
# A test passes: the same numbers as the reference at position 0, shapes right, loss falls. Is it right? Many
# mistakes hide if the *input* is degenerate, so special that wrong and right agree on it. Three of them, slowly.
# **Position 0**: every angle is 0 there. **One key**: the softmax of one score is 1, whatever the score is, so a missing
# scale, bias or angle cannot be seen on the first token. **$K=2$**: one pair, whose frequency is $b^0=1$, whatever
# factor stands in the exponent.
#
# $$R_0\,x=x,\qquad \mathrm{softmax}(s)=1\ \text{ for a single } s,\qquad \theta_0=b^{-2\cdot0/K}=1$$

# %%
from pe_numpy import rope_frequencies, softmax

x, single = rng.standard_normal((1, 8)), rng.standard_normal((5, 1))
assert np.array_equal(rope(x, [0]), x) and not np.allclose(rope(x, [1]), x, rtol=0, atol=0.1)
assert (softmax(single) == 1).all() and not (softmax(np.append(single, single, axis=1)) == 1).any()
assert (
    rope_frequencies(2, 10000.0) == rope_frequencies(2, 500.0) == 1 > rope_frequencies(4, 500.0)[1]
)

# %% [markdown]
# Now such inputs beside decent ones of the same function. How many of its known mistakes does each let go?


# %%
def lets_go(name, *args):
    """Known mistakes of a function that agree with it on these arguments."""
    right = EXERCISES[name].reference(*args)
    right, free = right[0] if isinstance(right, tuple) else right, []
    for m in EXERCISES[name].mistakes:
        with np.errstate(all="ignore"):
            mine = m.function(*args)
        mine = mine[0] if isinstance(mine, tuple) else mine
        if np.shape(mine) == np.shape(right) and np.allclose(mine, right, rtol=0, atol=1e-9):
            free.append(m.name)
    return free


# %%
n, upto = np.random.default_rng(9).standard_normal, np.arange
(q, k, v), mask, bias = n((3, 3, 8)), np.tri(3, dtype=bool), n((3, 3))
inputs = {
    "position 0": ("rope", (x, np.array([0])), (x, np.array([3]))),
    "K = 2": ("rope_frequencies", (2, 500.0), (8, 500.0)),
    "one key": ("attention", (q, k[:1], v[:1], mask[:, :1], bias[:, :1]), (q, k, v, mask, bias)),
    "L = S, from 0": ("causal_mask", (upto(4), upto(4)), (upto(2, 5), upto(7))),
    "8 heads": ("alibi_slopes", (8,), (6,)),
    "a short text": ("t5_bucket", (upto(-7, 8),), (upto(-200, 200),)),
    "no padding": ("padding_mask", (upto(4, 5), 4, "left"), (upto(2, 5), 4, "left")),
    "a text from 0": ("learned", (n((9, 4)), upto(5)), (n((9, 4)), upto(4, 9))),
}

# %% [markdown]
# **Predict** the number for `rope` at position 0.

# %% fold="output"
for case, (name, degenerate, decent) in inputs.items():
    hidden, left = lets_go(name, *degenerate), lets_go(name, *decent)
    only_here = [mistake for mistake in hidden if mistake not in left]
    known = len(EXERCISES[name].mistakes)
    print(
        f"{case:15} {name}: lets go {len(hidden)} of {known}, a decent one {len(left)};",
        only_here[0],
    )
    assert set(left) < set(hidden)
assert len(lets_go("rope", *inputs["position 0"][1])) == 9

# %% [markdown]
# A square grid of patches is such an input, too: number the patches of a picture in reading order. A program that
# exchanges the two axes gives, on a square, the transposed picture, and every neighbour is still a neighbour. On 3
# rows and 4 columns the first four patches get the wrong columns 0, 0, 0, 1.

# %%
for height, width in ((3, 3), (3, 4)):
    right = np.stack(np.divmod(upto(height * width), width))  # (2, patches): rows, columns
    columns, rows = np.meshgrid(upto(width), upto(height), indexing="ij")  # should be "xy"
    mine = np.stack([rows.ravel(), columns.ravel()])
    apart = [np.abs(p[:, :, None] - p[:, None]).sum(axis=0) for p in (right, mine)]  # in steps
    print(f"{height} x {width}: distances right: {np.array_equal(*apart)}")
    assert np.array_equal(*apart) == (height == width) and mine[1, :4].tolist() == [0, 0, 0, 1]

# %% [markdown]
# They have a history:
#
# | input | what it hid in public |
# |---|---|
# | position 0 | a missing factor of the scores in a port of DeepSeek-V2 ([mobius PR 548](https://github.com/onnxruntime/mobius/pull/548)) |
# | $L=S$, from 0 | relative positions with a cache ([transformers #19045](https://github.com/huggingface/transformers/issues/19045)), every written token at position 0 ([mlx-vlm #1983](https://github.com/Blaizzy/mlx-vlm/issues/1983)) |
# | heads a power of two | ALiBi's slopes, for two years ([mlx #343](https://github.com/ml-explore/mlx/issues/343)) |
# | shapes alone | a code along the batch, the same for all tokens ([a course's handout, soon mended](https://github.com/cmu-l3/anlp-fall2025-code/issues/1)) |
# | no padding | garbage for the shorter prompts of a batch ([unsloth #3699](https://github.com/unslothai/unsloth/issues/3699)) |
# | one text a row | texts that see each other ([nanoVLM PR 204](https://github.com/huggingface/nanoVLM/pull/204)) |
# | short texts | T5's far buckets ([candle PR 1312](https://github.com/huggingface/candle/pull/1312)) |
# | a causal mask behind it | the upper triangle of the relative shift ([espnet #2684](https://github.com/espnet/espnet/issues/2684)) |
# | a square grid | two axes exchanged ([transformers PR 41380](https://github.com/huggingface/transformers/pull/41380), [keras_cv_attention_models #26](https://github.com/leondgarse/keras_cv_attention_models/issues/26)) |
#
# ### One layer, 49 mistakes
#
# Bugs live in layers. So build one out of nine functions of this book, plant one known mistake at a time, and
# compare *outputs*. (A model would not have RoPE and both biases. A test bench may.)

# %%
import pe_numpy

names = "split_heads rope relative_distance alibi_slopes alibi_bias t5_bucket causal_mask"
RIGHT = {name: getattr(pe_numpy, name) for name in f"{names} attention merge_heads".split()}


def output(case, **planted):
    f = RIGHT | planted
    q, k, v = (f["split_heads"](case[name], case["heads"]) for name in "qkv")
    d = f["relative_distance"](case["q_at"], case["k_at"])
    by_bucket = np.moveaxis(case["table"][f["t5_bucket"](d)], -1, 0)  # (H, L, S)
    bias = f["alibi_bias"](f["alibi_slopes"](case["heads"]), d) + by_bucket
    mask = f["causal_mask"](case["q_at"] + 2, case["k_at"])  # two positions ahead
    q, k = f["rope"](q, case["q_at"]), f["rope"](k, case["k_at"])
    return f["merge_heads"](f["attention"](q, k, v, mask, bias)[0])


# %% [markdown]
# The *decent* input has 3 heads of width 8, 5 queries and 7 keys at positions with gaps: one query sees no key
# at all, one distance (50 - 5) lies at the edge of a bucket, some (200 - 3) beyond the last. Each other input
# changes one thing.


# %%
def case(heads=3, K=8, q_at=(0, 5, 40, 50, 200), k_at=(3, 4, 5, 7, 40, 50, 200)):
    draw = np.random.default_rng(10)
    q, k, v = (draw.standard_normal((2, len(at), heads * K)) for at in (q_at, k_at, k_at))
    own = {"q": q, "k": k, "v": v, "table": draw.standard_normal((32, heads))}
    return {**own, "heads": heads, "q_at": np.array(q_at), "k_at": np.array(k_at)}


def outcome(case, **planted):
    try:
        with np.errstate(all="ignore"):
            return output(case, **planted)
    except (ValueError, IndexError):
        return np.nan  # it failed aloud


# %% [markdown]
# **Predict** which one catches least.

# %% fold="output"
cases = {"decent": case(), "8 heads": case(heads=8), "K = 2": case(K=2)}
cases |= {"L = S, from 0": case(q_at=range(7), k_at=range(7)), "one key": case(k_at=[0])}
cases["one token at 0"] = case(q_at=[0], k_at=[0])
suspects = [{f: m.function} for f in RIGHT for m in EXERCISES[f].mistakes]
quiet = [s for s in suspects if np.shape(outcome(cases["decent"], **s)) == (2, 5, 24)]
free = {}
for name, c in cases.items():
    right, got = output(c), [outcome(c, **s) for s in quiet]
    same = [np.shape(g) == right.shape and np.allclose(g, right, rtol=0, atol=1e-9) for g in got]
    free[name] = [f for s, hidden in zip(quiet, same, strict=True) if hidden for f in s]
print(len(quiet), "mistakes; let go:", {name: len(found) for name, found in free.items()})
assert len(quiet) == 49 and free["decent"] == ["rope", *["alibi_bias"] * 4, "attention"]
assert all(3 < len(free[name]) for name in list(cases)[1:])
assert min(len(free["one key"]), len(free["one token at 0"])) > 36

# %% [markdown]
# (Mistakes that fail aloud on the decent input are left out. Of the six that it lets go, four concern arguments that
# this layer does not use; the others count all positions, or all distances, from 1, which changes no weight.)
# So test a layer on one decent input: no two sizes equal, heads no power of two, positions with gaps that do not
# begin at 0, distances beyond the last bucket, and random numbers that are neither 0 nor 1.
#
# ## From the command line
#
# The same checker reads files. `notebooks/exercises/` holds a file for each chapter but this one: signatures, a
# specification by loops, hints at the end (and `solutions/` its solution). Fill in a function, then
#
#     python -m pe_numpy check notebooks/exercises/40_rope_derived.py
#
# Each file runs in a process of its own, with limits on time and memory; a crash, an endless loop or a syntax
# error is reported as that, with its line. For a class, name all files at once, and the exercises after them
# (without their names, a file is asked for what it defines alone). `--json` and `--junit FILE` write reports
# for a program, and the exit status says pass or fail. A solution has this verdict:

# %%
from pe_numpy.__main__ import main

status = main(["check", "exercises/solutions/35_alibi.py"])
print("exit status", status)
assert status == 0
known = {name: len(e.mistakes) for name, e in EXERCISES.items()}
print(len(known), "exercises,", sum(known.values()), "known mistakes")

# %% [markdown]
# ## Copy a function
#
# For homework elsewhere, `python -m pe_numpy copy NAME...` prints a file that holds the functions and all that they
# need, but not this package; its head names paper and licence. `python -m pe_numpy list` shows every function in
# one line, with its chapter.

# %%
from pe_numpy.homework.copy import copy

text, namespace = copy(["softmax"]), {"__name__": "copied"}
exec(compile(text, "copied.py", "exec"), namespace)
row = np.array([1.0, 2.0, -np.inf])
assert np.array_equal(namespace["softmax"](row), softmax(row))
assert "import pe_numpy" not in text and "from pe_numpy import" not in text

# %% [markdown]
# ## Exercises
#
# ### Exercise 1: The sign that nobody saw
#
# `my_rope` above turns the other way. Show that a model that turns queries *and* keys with it has
# scores that are those of `rope` with the distance negated; and find the one place where it must break.
#
# <details><summary>Hint 1</summary>
#
# Turning by $-m\theta$ is turning with negative frequencies.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# What if keys were turned by someone else: read from a file, or made by a pretrained model?
#
# </details>
#
# <details><summary>Solution</summary>
#
# The score at distance $d$ becomes that at $-d$. Exchange the two components of each pair, in queries
# and keys: that turns the other way again. So a model with two columns of its projections exchanged
# is the same model; keys or weights from elsewhere don't fit.
#
# ```python
# x, y = rng.standard_normal((2, 1, 8))
# def at(turn_q, turn_k, m, n):
#     return float((turn_q(x, [m]) @ turn_k(y, [n]).T)[0, 0])
# assert abs(at(my_rope, my_rope, 5, 2) - at(rope, rope, 2, 5)) < 1e-12
# assert abs(at(my_rope, my_rope, 5, 2) - at(my_rope, my_rope, 9, 6)) < 1e-12
# swap = np.arange(8) ^ 1  # 1 0 3 2 5 4 7 6
# assert np.allclose(my_rope(x[:, swap], [5]), rope(x, [5])[:, swap], rtol=0, atol=1e-12)
# assert abs(at(my_rope, rope, 5, 2) - at(my_rope, rope, 9, 6)) > 1e-3  # somebody else's keys
# ```
#
# </details>
#
# ### Exercise 2: A blind test
#
# Write a test of the sinusoidal code that passes with the right function and with all of the eight wrong
# ones, and yet looks reasonable. Then one that catches all eight with a single number.
#
# <details><summary>Hint 1</summary>
#
# Shapes, bounds, dtypes.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# One entry away from position 0, in the second pair.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def blind(f):
#     code = np.asarray(f(np.arange(5), 8))
#     return code.shape == (5, 8) and np.abs(code).max() <= 1
# functions = [sinusoidal, *(m.function for m in EXERCISES["sinusoidal"].mistakes)]
# assert all(blind(f) for f in functions)
# entry = [float(np.asarray(f(np.arange(5), 8))[3, 3]) for f in functions]  # cos(3 * 0.1)
# assert abs(entry[0] - np.cos(0.3)) < 1e-12
# assert all(abs(e - entry[0]) > 1e-3 for e in entry[1:])
# ```
#
# </details>
#
# ### Exercise 3: Find one that the checker doesn't know
#
# Break `softmax` in a way that `check` notices but can't name. What does it tell you instead?
#
# <details><summary>Hint 1</summary>
#
# A constant factor, or two axes exchanged.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `verdict.mistake` is empty, `verdict.advice` may still help.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# verdict = check("softmax", lambda x, axis=-1: 2 * softmax(x, axis))
# assert not verdict.passed and verdict.mistake == ""
# assert verdict.advice == "Every number is 2 times the expected one."
# ```
#
# </details>
#
# ## In practice
#
# - A checker that uses the student's own function as the judge (a fast version against the student's slow one)
#   passes two mistakes that agree.
# - A test that compares with a stored snapshot of the function's own output can't fail on the day it is
#   written, right or wrong.
# - `assert` vanishes under `python -O`; pytest keeps it in test files.
# - "The same to 1e-3" hides a promoted dtype, an `eps` outside the root and the tanh form of GELU. This
#   checker asks for 1e-9 in double precision and 2e-5 in single.
#
# ## What the documents say
#
# **Sections.** 002-6.
#
# | id | what it says | what holds |
# |---|---|---|
# | 002-6, first exercise | make the code of 100 positions with 64 components, and draw it | a function by loops agrees with `sinusoidal` (cell); [chapter 20](20_sinusoidal.ipynb) draws it |
# | 002-6, second exercise | $q=(1, 0.5)$ and $k=(0.8, 0.3)$, turned by 0.1 radians a position: the score of 0 and 2 is that of 3 and 5 | right, 0.9509; that of 2 and 0 is another, 0.9112 (cell) |
# | E-002-9 | third exercise: compare what four encodings do to a model; it prints their numbers of parameters | counts don't answer: [chapter 71](71_study.ipynb) trains them, and three with none do very different things (cell) |
# | N-002-14 | parameters for 512 positions and 256 components: 131072, 0, 0, 0 | right (cell) |


# %% fold="cell"
# 002-6
def code_by_loops(length, d, base=10000.0):
    code = np.zeros((length, d))
    for pos in range(length):
        for c in range(d // 2):
            angle = pos / base ** (2 * c / d)
            code[pos, 2 * c], code[pos, 2 * c + 1] = np.sin(angle), np.cos(angle)
    return code


assert np.allclose(code_by_loops(100, 64), sinusoidal(np.arange(100), 64), rtol=0, atol=1e-13)
q, k, theta = np.array([[1.0, 0.5]]), np.array([[0.8, 0.3]]), np.array([0.1])
pairs = ((0, 2), (3, 5), (2, 0))
found = [(rope(q, [m], theta) @ rope(k, [n], theta).T).item() for m, n in pairs]
assert np.allclose(found, [0.9509, 0.9509, 0.9112], rtol=0, atol=5e-5)

# %% fold="cell"
# E-002-9, N-002-14
import csv

parameters = {"learned": 512 * 256, "sinusoidal": 0, "rope": 0, "alibi": 0}
assert parameters["learned"] == 131072
with open("results/study.csv", encoding="utf-8") as file:
    rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
plain, rise = {"task": "markov", "scaling": "direct", "tuning": "0", "log_n": "0"}, {}
for name in parameters:
    own = [row for row in rows if (plain | {"encoding": name}).items() <= row.items()]
    rise[name] = np.mean([float(row["loss_8x"]) - float(row["loss_1x"]) for row in own])
print({name: f"{value:.2f}" for name, value in rise.items()})
assert rise["alibi"] < 0.1 < 1 < rise["sinusoidal"] < rise["rope"]

# %% [markdown]
# ## Further reading
#
# - Claessen and Hughes 2000, "QuickCheck" (ICFP): properties, tried on random cases that grow.
# - DeMillo, Lipton and Sayward 1978, "Hints on test data selection" (IEEE Computer 11): judge a test by
#   the wrong programs that it rejects.
# - [The index](INDEX.md) leads to all mistakes of the documents: the first list of known ones.
