# %% [markdown]
# # 73. The exercise checker: is my function right?
#
# *Is my function right, and if not, which mistake did I make?*
#
# 25 minutes. Needs [10 Attention by hand: scores, softmax, heads, masks](10_attention.ipynb), [20 Sinusoidal positional encoding](20_sinusoidal.ipynb), [40 Rotary position embedding (RoPE): the derivation](40_rope_derived.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Your function runs, but is it right? A checker calls it with many inputs and compares the
# results with the book's. If they differ, it compares them with the results of functions that are wrong in a
# known way, and so it can often name your mistake. Here you see how far you can trust such a name, and which
# inputs hide mistakes. At the end you can check your own functions, or the homework of a whole class.

# %% fold="input" alt="Nine heat maps of encodings over 40 positions and 16 components: the right one and eight wrong ones, among them one with all sines first and one whose waves get faster to the right."
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
# The figure shows one right sinusoidal encoding and eight wrong ones. Each is a table of numbers drawn as
# colours, with one row per position and one column per component. The titles name the mistakes. Which could you
# tell by eye? The checker knows them.
#
# ## A checker that names mistakes
#
# `check` calls your function in a dozen cases or more, a small one first. For RoPE they include other widths,
# batches, offsets, options and precisions. If one fails, it compares *all* your results with the results of
# functions that are wrong in a known way. Here is RoPE, with the sign of the angle wrong:


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
# The call is the first that fails. The expected and the given result are below it, so that you see the sign.
#
# ### How reliable is a named mistake?
#
# `tests/answers` contains wrong answers as students and public code write them, and right ones in odd style.
# The first list was written before anybody looked at the names, and the names were then corrected with it. The
# second list was held out until they were. The last column counts it again, after names were corrected with it
# as well.

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
# Whether a name fits was judged by reading the answer. An answer that passes is right in these cases, and no
# test says more.
#
# ## Test inputs that hide mistakes
#
# Is *scores depend only on the distance* a test of RoPE? Take one query and one key at all pairs of positions.
# The scores of a relative encoding have constant diagonals.

# %%
rng = np.random.default_rng(24)
query, key, positions = rng.standard_normal(8), rng.standard_normal(8), np.arange(16)


def scores_with(turn):
    return turn(np.tile(query, (16, 1)), positions) @ turn(np.tile(key, (16, 1)), positions).T


def relative(scores):
    return all(np.ptp(np.diagonal(scores, n)) < 1e-9 for n in range(-15, 16))


# %% [markdown]
# **Predict** how many of ten wrong versions still have them.

# %% fold="output" alt="Nine heat maps of scores over query and key position: the right one with constant diagonals, and eight wrong ones, of which only the one with a plus before both sines lacks constant diagonals."
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
# Nine have them. Two sines with a plus are not a rotation, and they fail. All others pass. Two of these even give
# the right scores here. One counts positions from 1, which moves all of them together. The other always counts
# from 0, where the given positions do begin. One vector at one position that is not 0 exposes both ([chapter 72](72_which_one.ipynb) compares seven checks).
#
# Many mistakes hide if the *input* is so special that wrong and right functions agree on it. At **position 0**
# every angle is 0. With **one key** the softmax of the only score is 1, regardless of the score. Therefore the
# first token shows no missing scale, bias or angle. With **$K=2$** there is one pair. Its frequency is $b^0=1$
# for every base $b$, regardless of the factor in the exponent.
#
# $$R_0\,x=x,\qquad \mathrm{softmax}(s)=1\ \text{ for a single } s,\qquad \theta_0=b^{-2\cdot0/K}=1$$

# %%
from pe_numpy import rope_frequencies, softmax

x, single = rng.standard_normal((1, 8)), rng.standard_normal((5, 1))
assert np.array_equal(rope(x, [0]), x) and not np.allclose(rope(x, [1]), x, rtol=0, atol=0.1)
assert (softmax(single) == 1).all() and not (softmax(np.append(single, single, axis=1)) == 1).any()
assert rope_frequencies(2, 10000.0) == rope_frequencies(2, 500.0) == 1 > rope_frequencies(4)[1]

# %% [markdown]
# Such inputs have hidden mistakes in public code:
#
# | input | what it hid in public |
# |---|---|
# | position 0 | a missing factor of the scores in a port of DeepSeek-V2 ([mobius PR 548](https://github.com/onnxruntime/mobius/pull/548)) |
# | $L=S$, from 0 | relative positions with a cache ([transformers #19045](https://github.com/huggingface/transformers/issues/19045)) |
# | a power of two as number of heads | ALiBi's slopes, for two years ([mlx #343](https://github.com/ml-explore/mlx/issues/343)) |
# | no padding | garbage for the shorter prompts of a batch ([unsloth #3699](https://github.com/unslothai/unsloth/issues/3699)) |
# | short sequences | T5's far buckets ([candle PR 1312](https://github.com/huggingface/candle/pull/1312)) |
# | a square grid | two axes exchanged ([transformers PR 41380](https://github.com/huggingface/transformers/pull/41380)) |
#
# The next cells compare such inputs with well-chosen ones of the same function. How many of its ten commonest
# mistakes does each input let pass, because right and wrong results agree?

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
for what, (name, degenerate, well_chosen) in inputs.items():
    hidden, left = lets_go(name, *degenerate), lets_go(name, *well_chosen)
    only_here = [mistake for mistake in hidden if mistake not in left]
    print(f"{what:13} {name}: lets go {len(hidden)} of 10, well-chosen {len(left)};", only_here[0])
    assert set(left) < set(hidden)
assert len(lets_go("rope", *inputs["position 0"][1])) == 9

# %% [markdown]
# Test on well-chosen input instead. In it no two sizes are equal, and the number of heads is not a power of two. Its
# positions have gaps and do not begin at 0, its distances go beyond the last bucket, and its numbers are random.
#
# ## For students: check your homework
#
# **Write.** `pe_numpy/copy/stubs/` has one file for each chapter before this one. A file contains signatures,
# a specification with explicit loops, and hints at the end. In `python -m pe_numpy list` a star marks what can be checked.
# Keep the names and the order of the arguments, do not change their arrays, and return the dtype of the data.
#
# **Check.** `python -m pe_numpy check FILE` looks at all exercises that a file defines, and `python -m pe_numpy check FILE NAME...`
# at some of them. Notebooks, folders and patterns work as well. `pe-numpy` is the
# same command.
#
# **Read.** Anna's three functions are wrong, each in a different way.

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
    print("$ python -m pe_numpy", words)
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
# | *Perhaps*: a **guess** | one mistake by itself explains your numbers in most cases that fail, and in at least two; begin there |
# | *On this case it looks like* | a known mistake explains the case that is printed, but not all, so more than one thing is wrong |
# | *Right in 8 of 14 cases* | what the right cases, or the wrong ones, have in common; look there |
# | call, expected, given | the simplest case that fails; *again* makes a long one again |
# | a **flag** | the file uses what is not its own; the teacher decides |
#
# **Other numbers.** `--seed 7` draws other numbers for the cases. `--salt WORD` makes a seed from the word and the
# file's name, one for each student.
#
# **With an assignment**, `python -m pe_numpy check --assignment week3.toml week3.py` tells points, and otherwise only what the
# teacher chose. `--feedback full` tells you all.
#
# **The book's solution.** `python -m pe_numpy copy NAME --plain` prints it. For a function that is not an exercise, it
# prints the package's code without checks of input. If you hand such a copy in, its notice gets a flag.

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
# ## For teachers: grade a class
#
# **Set.** An assignment is a TOML file. `python -m pe_numpy plan 12 FOLDER` writes the assignments of a
# [plan for lessons](00_how_to_read.ipynb#plans-for-lessons). A number gives points for all cases of an exercise or
# none, a table gives points for groups. The groups are `options` (an argument away from its default), `types`
# (float32, float16) and `numbers` (the rest). `release` writes what students get.

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
# Students get stubs, the assignment without salt or seed, the checker in one file, a README, a workflow for GitHub
# and a container for editors. Solutions remain with you. Students need Python and NumPy. If the deadline is a time,
# as in `2030-06-07T18:00:00+02:00`, the check tells by how much a file is late. A `salt` gives each student other
# numbers, a `seed` gives all students the same.
#
# **Check.** Ben hands in the book's solution, Cleo ignores `layout`, and Dan has done nothing. **Predict** Cleo's
# points.

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
# The name of a file, or of its folder, tells whose it is. Name a folder of files, or of students' folders. Version,
# assignment and seed are in each letter and file, so that a late check is comparable. If you can read a seed, you
# can try its cases at home.
#
# **Feedback.** `full` tells all, `name` tells the mistake and a line, and `none` tells points and what kept a
# function from running. At home students choose.
#
# | for | option | |
# |---|---|---|
# | people | `--letters FOLDER` | a text for each student |
# | a spreadsheet | `--csv FILE` | a line for each student; an interrupted run continues where it stopped |
# | a course | `--roster FILE` | who handed in nothing: the first column of this CSV file has all names |
# | Gradescope | `release --gradescope ZIP` | the autograder; what the level holds back is shown after the due date |
# | GitHub | `release` | a workflow: points in the summary of each push, with seed 0 |
# | nbgrader | `release --nbgrader COURSE` | a notebook with solutions; hidden tests, one seed for all |
# | programs | `--json` | what the level allows, and each seed; exit status 1 if anything is wrong |
#
# **Flags** take no points. A file gets one if it imports this package or a neighbour's answers, or carries the
# notice of `copy`. A copy without the notice has no flag, but `--summary` names groups whose code is alike,
# regardless of its names and comments.
#
# ### Isolation: how a file is kept from the grader (second reading)
#
# A file is **isolated** from the grader and from its neighbours. It runs in its own process, which has NumPy and no
# `pe_numpy`, gets inputs, and never sees what is expected. It runs as a copy in an empty folder, with limits on time
# (`--seconds` per function, `--budget` per file) and, on Linux, on memory. A hook refuses other processes, the network
# and this package's files. `--summary` lists the limits that the system does not have.

# %%
(folder / "eve.py").write_text("""from pathlib import Path
import os
neighbours = os.listdir(Path(__file__).parent)
softmax = lambda x, axis=-1: len(neighbours)
os.kill(os.getppid(), 9)
""")
assert "a line failed, and the rest is judged" in shell("check eve.py")

# %% [markdown]
# It may still read what you may read, and a compiled library calls the system without the hook. Check strangers' files
# in a container without network. `pe_numpy/homework/worker.py` says how.
#
# ### Measured on a class of sixty (second reading)
#
# Right, wrong, broken, hostile and copied files are part of this book's tests (`tests/trial`), for three functions.

# %% alt="Bars show how often each verdict was given to softmax, sinusoidal and rope in a class of sixty. Most answers are right; rotating in the wrong direction is the most common mistake."
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
# Right files are judged right beside all these. Copied ones have a flag, and no others have one. The next cell prints
# what a class costs, in seconds of processor time:

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
#   names the mistake if it is a known one. For PyTorch add `to=torch.from_numpy`.
#   [The checker](#a-checker-that-names-mistakes).
# - **Can I rely on a name?** Yes. It explains *your* numbers in every case that fails. Of hundreds of wrong
#   answers none passed, and no name was wrong. [Counts](#how-reliable-is-a-named-mistake).
# - **Why does my model train although RoPE turns the wrong way?** In queries *and* keys the wrong sign gives the same
#   model with two components of each pair exchanged. Keys or weights from elsewhere don't fit it.
#   [Exercise 1](#exercise-1-rope-with-the-wrong-sign-in-queries-and-keys).
# - **Which inputs hide mistakes?** Position 0, one key, $K=2$, $L=S$ from 0, a power of two as number of heads,
#   short sequences, no padding, a square grid. [Such inputs](#test-inputs-that-hide-mistakes).
# - **How do I check my homework?** Type `python -m pe_numpy check FILE`. The section explains the lines of the report.
#   [For students](#for-students-check-your-homework).
# - **How do I check a class?** Type `python -m pe_numpy check --assignment week3.toml *.py`.
#   [For teachers](#for-teachers-grade-a-class).

# %% [markdown]
# ## Exercises
#
# ### Exercise 1: RoPE with the wrong sign in queries and keys
#
# Show that a model that rotates queries *and* keys with `my_rope` has the scores of `rope` with the distance negated.
# Find where it must break.
#
# <details><summary>Hint 1</summary>
#
# Rotating by $-m\theta$ is rotating with negative frequencies.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# What if the keys were rotated by another library?
#
# </details>
#
# <details><summary>Solution</summary>
#
# The score at distance $d$ becomes the score at $-d$. Exchange the two components of each pair in queries and keys,
# and it turns the other way again. Therefore it is the same model. Keys or weights from elsewhere don't fit.
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
# ### Exercise 2: A test that passes wrong encodings
#
# Write a test of the sinusoidal encoding that passes with the right function and with all eight wrong ones. Then
# write one that catches all eight with a single number.
#
# <details><summary>Hint 1</summary>
#
# Compare shapes, bounds, dtypes.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Look at one entry away from position 0, in the second pair.
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
# ### Exercise 3: A mistake that the checker can't name
#
# Break `softmax` in a way that `check` notices but can't name.
#
# <details><summary>Hint 1</summary>
#
# Try a constant factor.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `verdict.mistake` is empty, but `verdict.advice` may still help.
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
# - If a student's own function is the judge (a fast version against a slow one), two mistakes that agree pass.
# - "The same to 1e-3" hides a promoted dtype, an `eps` outside the square root and the tanh form of GELU. This
#   checker asks for 1e-9 in double precision and 2e-5 in single precision.

# %% [markdown]
# ## Further reading
#
# - Claessen and Hughes 2000, "QuickCheck" (ICFP): properties, tried on random cases that grow.
# - DeMillo, Lipton and Sayward 1978, "Hints on test data selection" (IEEE Computer 11): judge a test by
#   the wrong programs that it rejects.
