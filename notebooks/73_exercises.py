# %% [markdown]
# # 73. Check your own
#
# *Is my function right, and if not, which mistake did I make?*
#
# 25 minutes. Needs [10 Attention by hand: scores, softmax, heads, masks](10_attention.ipynb), [20 Sinusoidal positional encoding](20_sinusoidal.ipynb), [40 Rotary position embedding (RoPE): the derivation](40_rope_derived.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** TODO

# %% fold="input" alt="Nine heat maps of codes over 40 positions and 16 components: the right one and eight wrong ones, among them all sines first, and waves that get faster to the right."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import sinusoidal
from pe_numpy.homework.registry import EXERCISES
from pe_numpy.book.plots import exercises as plots

at = np.arange(40)
wrong = {m.name: np.asarray(m.function(at, 16)) for m in EXERCISES["sinusoidal"].mistakes[:8]}
plots.wrong_codes(wrong, sinusoidal(at, 16))
plt.show()

# %% [markdown]
# One right sinusoidal code and eight wrong ones: which could you tell by eye? The checker knows them.
#
# ## A checker that names mistakes
#
# `check` calls your function in a dozen cases or more, a small one first: for RoPE other widths, batches, offsets,
# options, precisions. If one fails, it compares *all* your results with those of functions that are wrong in a known
# way. Write RoPE, with the sign of the angle wrong:


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
from pe_numpy.book.show import show_source


def show(text):
    for line in text.splitlines():
        print(textwrap.fill(line, 96, subsequent_indent=" " * 10))


verdict = check("rope", my_rope)
show_source(check)
show("\n" + str(verdict))
assert verdict.mistake == "turned the other way"

# %% [markdown]
# The call is the first that fails; what was expected and what came stand below it, so that you see the sign.
#
# ### How often is a name right?
#
# `tests/answers` holds wrong answers as students and public code write them, and right ones in odd style: a first
# list, written before anybody looked at the names, which were then mended with it; and one held out until they were.

# %%
import csv

with open("results/answers.csv", encoding="utf-8") as file:
    counted = {what: numbers for what, *numbers in zip(*csv.reader(file), strict=True)}
for what, numbers in counted.items():
    print(f"{what:15}", *(f"{number:>24}" for number in numbers))
assert counted["caught"] == counted["wrong"] and counted["accepted"] == counted["right"]
assert {*counted["misnamed"], *counted["wrong guesses"]} == {"0"}
assert sum(map(int, counted["wrong"][:2])) > 300
assert all(len(e.all_cases()) >= 12 for e in EXERCISES.values())
known = [len(e.mistakes) for e in EXERCISES.values()]
print(len(known), "exercises,", sum(known), "known mistakes")

# %% [markdown]
# Whether a name fits was judged by reading the answer. What passes is right in these cases; no test says more.
#
# ## What hides mistakes
#
# Is *scores depend on the distance alone* a test of RoPE? Take one query and one key at all pairs of positions: a
# relative encoding has constant diagonals.

# %%
rng = np.random.default_rng(24)
query, key, positions = rng.standard_normal(8), rng.standard_normal(8), np.arange(16)


def scores_with(turn):
    return turn(np.tile(query, (16, 1)), positions) @ turn(np.tile(key, (16, 1)), positions).T


def relative(scores):
    return all(np.ptp(np.diagonal(scores, n)) < 1e-9 for n in range(-15, 16))


# %% [markdown]
# **Predict**: how many of ten wrong versions still have them?

# %% fold="output" alt="Nine heat maps of scores over query and key position: the right one with constant diagonals, and eight wrong ones; only both sines with a plus has none."
from pe_numpy import rope

right = scores_with(rope)
scores = {m.name: scores_with(m.function) for m in EXERCISES["rope"].mistakes[:10]}
shown = {n: s for n, s in scores.items() if not np.allclose(s, right, rtol=0, atol=1e-9)}
plots.wrong_scores(shown, right)
plt.show()
print("the same scores:", [name for name in scores if name not in shown])
assert len(scores) == 10 and len(shown) == 8 and relative(right)
assert [name for name in scores if not relative(scores[name])] == ["both sines with a plus"]

# %% [markdown]
# Nine: two sines with a plus are no rotation, all others pass. Two even give the same scores here: positions
# counted from 1 all move together, and those given do begin at 0. One vector at one position that is not 0 tells
# them ([chapter 72](72_which_one.ipynb) compares seven checks).
#
# Many mistakes hide if the *input* is so special that wrong and right agree on it. **Position 0**: every angle is 0.
# **One key**: the softmax of one score is 1, whatever the score, so the first token shows no missing scale, bias or
# angle. **$K=2$**: one pair, whose frequency is $b^0=1$, whatever factor stands in the exponent.
#
# $$R_0\,x=x,\qquad \mathrm{softmax}(s)=1\ \text{ for a single } s,\qquad \theta_0=b^{-2\cdot0/K}=1$$

# %%
from pe_numpy import rope_frequencies, softmax

x, single = rng.standard_normal((1, 8)), rng.standard_normal((5, 1))
assert np.array_equal(rope(x, [0]), x) and not np.allclose(rope(x, [1]), x, rtol=0, atol=0.1)
assert (softmax(single) == 1).all() and not (softmax(np.append(single, single, axis=1)) == 1).any()
assert rope_frequencies(2, 10000.0) == rope_frequencies(2, 500.0) == 1 > rope_frequencies(4)[1]

# %% [markdown]
# They have a history:
#
# | input | what it hid in public |
# |---|---|
# | position 0 | a missing factor of the scores in a port of DeepSeek-V2 ([mobius PR 548](https://github.com/onnxruntime/mobius/pull/548)) |
# | $L=S$, from 0 | relative positions with a cache ([transformers #19045](https://github.com/huggingface/transformers/issues/19045)) |
# | heads a power of two | ALiBi's slopes, for two years ([mlx #343](https://github.com/ml-explore/mlx/issues/343)) |
# | no padding | garbage for the shorter prompts of a batch ([unsloth #3699](https://github.com/unslothai/unsloth/issues/3699)) |
# | short texts | T5's far buckets ([candle PR 1312](https://github.com/huggingface/candle/pull/1312)) |
# | a square grid | two axes exchanged ([transformers PR 41380](https://github.com/huggingface/transformers/pull/41380)) |
#
# Such inputs beside decent ones of the same function: how many of its ten commonest mistakes does each let go?

# %%
from pe_numpy.homework.cases import call, case


def lets_go(name, *args):
    """Known mistakes of a function that agree with it on these arguments."""
    right = call(EXERCISES[name].reference, case(*args))
    known = EXERCISES[name].mistakes[:10]  # the commonest come first
    return [m.name for m in known if call(m.function, case(*args)).agrees(right)]


# %%
n, upto = np.random.default_rng(9).standard_normal, np.arange
(q, k, v), mask, bias = n((3, 3, 8)), np.tri(3, dtype=bool), n((3, 3))
inputs = {
    "position 0": ("rope", (x, np.array([0])), (x, np.array([3]))),
    "K = 2": ("rope_frequencies", (2, 500.0), (8, 500.0)),
    "one key": ("attention", (q, k[:1], v[:1], mask[:, :1], bias[:, :1]), (q, k, v, mask, bias)),
    "8 heads": ("alibi_slopes", (8,), (6,)),
    "a short text": ("t5_bucket", (upto(-7, 8),), (upto(-200, 200),)),
}

# %% [markdown]
# **Predict** the number for `rope` at position 0.

# %% fold="output"
for what, (name, degenerate, decent) in inputs.items():
    hidden, left = lets_go(name, *degenerate), lets_go(name, *decent)
    only_here = [mistake for mistake in hidden if mistake not in left]
    print(f"{what:13} {name}: lets go {len(hidden)} of 10, decent {len(left)};", only_here[0])
    assert set(left) < set(hidden)
assert len(lets_go("rope", *inputs["position 0"][1])) == 9

# %% [markdown]
# So test on decent input: no two sizes equal, heads no power of two, positions with gaps that do not begin at 0,
# distances beyond the last bucket, random numbers.
#
# ## A page for students
#
# **Write.** `pe_numpy/copy/stubs/` has a file for each chapter but this one: signatures, a specification by loops,
# hints at the end. In `pe-numpy list` a star marks what can be checked. Keep names and
# order of the arguments, leave their arrays as they are, return the dtype of the data.
#
# **Check.** `pe-numpy check FILE` looks at all exercises that a file defines, `pe-numpy check FILE NAME...` at some;
# notebooks, folders and patterns will do. Where `pe-numpy` isn't found, type `python -m pe_numpy`.
#
# **Read.** Anna's three functions are wrong, each in its own way.

# %%
import contextlib
import io
import tempfile
from pathlib import Path

from pe_numpy.__main__ import main

kept = tempfile.TemporaryDirectory()
folder = Path(kept.name)


# %%
def shell(words):
    print("$ pe-numpy", words)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as out:
        main(words.split())
    show(out.getvalue())
    return out.getvalue()


# %%
anna = """import numpy as np

rope_frequencies = lambda d, base=10000.0: base ** (-np.arange(d // 2) / d)
alibi_bias = lambda slopes, distance, future_slopes=None: -slopes[:, None, None] * distance
softmax = lambda x, axis=-1: np.exp(x) / np.exp(x).sum(axis, keepdims=True)
"""

# %% [markdown]
# **Predict** which of them gets a name.

# %% fold="output"
(folder / "anna.py").write_text(anna)
report = shell("check anna.py")
assert "rope_frequencies: exponent i/d for 2i/d" in report
assert 'Perhaps "the future rewarded", and something else.' in report
assert "softmax:" in report

# %% [markdown]
# | line | what it says |
# |---|---|
# | a **name** after the colon | a known mistake explains your numbers in every case that fails |
# | *Perhaps*: a **guess** | one alone explains them in most cases that fail, two at least: begin there |
# | *On this case it looks like* | a known mistake explains the case that is printed, not all: more than one thing is wrong |
# | *Right in 8 of 14 cases* | what the right ones, or the wrong ones, have in common: look there |
# | call, expected, given | the plainest case that fails; *again* makes a long one anew |
# | a **flag** | the file uses what is not its own; the teacher decides |
#
# **Other numbers.** `--seed 7` draws others for the cases; `--salt WORD` makes a seed of the word and the file's
# name, one for each student.
#
# **With an assignment**, `pe-numpy check --assignment week3.toml week3.py` tells points, and of the rest what the
# teacher chose; `--feedback full` tells you all.
#
# **Ours.** `pe-numpy copy NAME --plain` prints the book's solution; of what is no exercise, the package's code without
# checks of input. Handed in, its notice gets a flag.

# %%
from pe_numpy.copy.copy import SOLUTIONS, copy
from pe_numpy.homework.course import seed_of

for name in ("softmax", "sinusoidal", "rope"):
    long, short = (len(copy([name], plain).splitlines()) for plain in (False, True))
    print(f"{name}: {long} lines, plain {short}")
text, copied = copy(["rope"], plain=True), {"__name__": "copied"}
exec(compile(text, "copied.py", "exec"), copied)
assert np.allclose(copied["rope"](x, [3]), rope(x, [3]), rtol=0, atol=1e-12)
assert "import pe_numpy" not in text
seeds = [seed_of("autumn", student) for student in ("anna", "ben")]
one, other = (EXERCISES["rope"].all_cases(seed)[-1].args[0] for seed in seeds)
print("seeds", seeds)
assert one.shape == other.shape and not np.array_equal(one, other)

# %% [markdown]
# ## A page for teachers
#
# **Set.** An assignment is a file of TOML; `pe-numpy plan 12 FOLDER` writes those of a
# [plan for lessons](00_how_to_read.ipynb#plans-for-lessons). A number gives points for all cases of an exercise or
# none, a table for groups: `options` (an argument away from its default), `types` (float32, float16), `numbers` (the
# rest). `release` writes what students get.

# %%
(folder / "week3.toml").write_text("""title = "Week 3: rotary encodings"
deadline = "Friday, 18:00"
feedback = "name"
salt = "autumn"

[points]
rope_frequencies = 2
rope = { numbers = 2, options = 1, types = 1 }
""")
shell("release week3.toml handout")
handed_out = (folder / "handout" / "week3.toml").read_text()
assert "salt" not in handed_out and "rope = { numbers" in handed_out

# %% [markdown]
# Stubs, the assignment without salt or seed, the checker in one file, a README, a workflow for GitHub, a container for
# editors; solutions remain with you. Students need Python and NumPy. A deadline that is a
# time, as in `2030-06-07T18:00:00+02:00`, tells by how much a file is late. A `salt` gives each student other numbers, a `seed` all the same.
#
# **Check.** Ben hands in the book's solution, Cleo ignores `layout`, Dan has done nothing. **Predict** Cleo's points.

# %% fold="output"
solution = (SOLUTIONS / "40_rope_derived.py").read_text()
ignores = solution.replace('if layout == "interleaved":', "if True:")
stubs = (folder / "handout" / "week3.py").read_text()
for student, text in {"ben": solution, "cleo": ignores, "dan": stubs}.items():
    (folder / f"{student}.py").write_text(text)
files = "ben.py cleo.py dan.py --csv points.csv --letters letters --summary"
shell(f"check --assignment week3.toml {files}")
letter = (folder / "letters" / "cleo.txt").read_text()
show("\n" + letter)
assert "cleo, 5 of 6 points" in letter and "layout ignored (3 of 4)" in letter
assert f"week3, seed {seed_of('autumn', 'cleo')}" in letter

# %% [markdown]
# Whose file it is its name tells, or its folder's: name a folder of files, or of students' folders. Version,
# assignment and seed are in each letter and file, so that a late check is comparable; if you can read a seed, you can
# try its cases at home.
#
# **Feedback** `full` tells all, `name` the mistake and a line, `none` points, and what kept a function from
# running. At home students choose.
#
# | for | option | |
# |---|---|---|
# | people | `--letters FOLDER` | a text for each student |
# | a spreadsheet | `--csv FILE` | a line for each student; a run that was cut goes on where it was |
# | a course | `--roster FILE` | who handed in nothing: the first column of this CSV file has all names |
# | Gradescope | `release --gradescope ZIP` | the autograder; what the level holds back is shown after the due date |
# | GitHub | `release` | a workflow: points in the summary of each push, with seed 0 |
# | nbgrader | `release --nbgrader COURSE` | a notebook with solutions; hidden tests, one seed for all |
# | programs | `--json` | what the level allows, and each seed; exit status 1 if anything is wrong |
#
# **Flags** take no points: the file imports this package or a neighbour's answers, or carries the notice of `copy`. A
# copy without it has none, but `--summary` names groups whose code is alike, whatever its names and comments are.
#
# **Isolated** is a file from the grader and from its neighbours. It runs in a process of its own that has NumPy and no
# `pe_numpy`, gets inputs, and never sees what is expected. It runs as a copy in an empty folder, with limits on time
# (`--seconds` a function, `--budget` a file) and, on Linux, on memory. A hook refuses other processes, the network and
# this package's files; `--summary` lists the limits that the system does not have.

# %%
(folder / "eve.py").write_text("""from pathlib import Path
import os
neighbours = os.listdir(Path(__file__).parent)
softmax = lambda x, axis=-1: len(neighbours)
os.kill(os.getppid(), 9)
""")
assert "a line failed, and the rest is judged" in shell("check eve.py")

# %% [markdown]
# It may still read what you may read, and a compiled library calls the system without the hook. So check strangers'
# files in a container without network; `pe_numpy/homework/worker.py` says how.
#
# ### A class of sixty
#
# Right, wrong, broken, hostile and copied files are part of this book's tests (`tests/trial`), for three functions.

# %% alt="Bars: how often each verdict was given to softmax, sinusoidal and rope in a class of sixty. Most are right; turned the other way is the commonest mistake."
from collections import Counter

with open("results/class.csv", encoding="utf-8") as file:
    students = list(csv.DictReader(file))
functions = ("softmax", "sinusoidal", "rope")
words = {f: Counter(student[f] for student in students) for f in functions}
plots.class_summary({f: dict(found.most_common()) for f, found in words.items()})
plt.show()

# %%
columns = ("right", "named", "another mistake", "not run", "with a flag")
print(f"{'':11}", *columns, sep="   ")
for kind in dict.fromkeys(student["kind"] for student in students):
    own = [student for student in students if student["kind"] == kind]
    n = Counter(s[f] if s[f] in columns else "named" for s in own for f in functions)
    n["with a flag"] = sum(student["flags"] != "" for student in own)
    print(f"{len(own):2} {kind:8}", *(f"{n[word]:{len(word)}}" for word in columns), sep="   ")
    assert n["with a flag"] == (kind == "copied") * len(own)
    assert (kind == "right") == (n["right"] == 3 * len(own))
assert len(students) == 60 and words["rope"].most_common(3)[2][0] == "turned the other way"

# %% [markdown]
# Right files are right beside all these; copied ones have a flag, no others. The cost of a class, in seconds of
# processor time:

# %%
with open("results/homework.csv", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        spent = float(row["grader"]), float(row["processes"])
        print(f"{row['class']}: {row['files']} files, {sum(spent):.0f} s;", end=" ")
        print(f"200 such files on two cores {100 * sum(spent) / int(row['files']):.0f} s at best")

# %% [markdown]
# ## In short
#
# - **Is my function right?** `check("rope", my_rope)` calls it with many cases, shows the first that fails, and
#   names the mistake if it is a known one. For PyTorch add `to=torch.from_numpy`. [Shown](#a-checker-that-names-mistakes).
# - **Can I rely on a name?** It explains *your* numbers in every case that fails. Of hundreds of wrong answers none passed,
#   and no name was wrong. [Counted](#how-often-is-a-name-right).
# - **Why does my model train although RoPE turns the wrong way?** Turned the other way in queries *and* keys it is
#   the same model with two components of each pair exchanged. Keys or weights from elsewhere don't fit it.
#   [Shown](#exercise-1-the-sign-that-nobody-saw).
# - **Which inputs hide mistakes?** Position 0, one key, $K=2$, $L=S$ from 0, heads a power of two, short texts, no
#   padding, a square grid. [Shown](#what-hides-mistakes).
# - **How do I check my homework?** `pe-numpy check FILE`; [one page](#a-page-for-students) says how to read the report.
# - **How do I check a class?** `pe-numpy check --assignment week3.toml *.py`; [another](#a-page-for-teachers) has the rest.

# %% [markdown]
# ## Exercises
#
# ### Exercise 1: The sign that nobody saw
#
# Show that a model that turns queries *and* keys with `my_rope` has the scores of `rope` with the distance negated;
# and find where it must break.
#
# <details><summary>Hint 1</summary>
#
# Turning by $-m\theta$ is turning with negative frequencies.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# What if keys were turned by someone else?
#
# </details>
#
# <details><summary>Solution</summary>
#
# The score at distance $d$ becomes that at $-d$. Exchange the two components of each pair in queries and keys, and
# it turns the other way again: the same model. Keys or weights from elsewhere don't fit.
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
# Write a test of the sinusoidal code that passes with the right function and with all eight wrong ones. Then
# one that catches all eight with a single number.
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
# functions = [sinusoidal, *(m.function for m in EXERCISES["sinusoidal"].mistakes[:8])]
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
# Break `softmax` in a way that `check` notices but can't name.
#
# <details><summary>Hint 1</summary>
#
# A constant factor.
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
# - A student's own function as the judge (a fast version against a slow one) passes two mistakes that agree.
# - "The same to 1e-3" hides a promoted dtype, an `eps` outside the root and the tanh form of GELU. This
#   checker asks for 1e-9 in double precision and 2e-5 in single.
#
# %% [markdown]
# ## Further reading
#
# - Claessen and Hughes 2000, "QuickCheck" (ICFP): properties, tried on random cases that grow.
# - DeMillo, Lipton and Sayward 1978, "Hints on test data selection" (IEEE Computer 11): judge a test by
#   the wrong programs that it rejects.
