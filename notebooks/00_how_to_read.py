# %% [markdown]
# # 0. How to use this book: conventions, notation, reading routes
#
# *How do I use this book, what do the letters and signs mean, and which way do I take?*
#
# 25 minutes. Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Attention, the central operation of a Transformer, does not by itself see the order of
# words. There are many ways to add it, and the texts about them disagree. This book computes the formulas of
# these texts. Here you learn how a chapter works, which chapters to read for your purpose, and what the
# letters and signs mean. At the end you can choose a route, read the notation of every chapter, and test a
# formula by changing it.

# %% fold="input" alt="Diagram of an attention layer with four numbered places at which position can enter, and the encodings at each. Place one is the token vectors, two the queries and keys, three the scores, four the weighted sum."
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import attention, causal_mask, merge_heads, padding_mask
from pe_numpy import relative_distance, rope, rope_frequencies, rope_matrix, sinusoidal, softmax
from pe_numpy import split_heads
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import how_to_read as plots

plots.four_places(plots.SCHEMES)
plt.show()

# %% [markdown]
# **If you are new**, read [how a chapter works](#how-a-chapter-works) and [the section on
# letters](#letters-for-axes), then go on to [chapter 10](10_attention.ipynb). Skip the rest, and come back to
# the conventions when you meet a sign or a mask. **If your homework is softmax, RoPE and causal attention**,
# it is on [one page at the end of chapter
# 60](60_layers.ipynb#the-homework-on-one-page-softmax-rope-and-causal-multi-head-attention).
#
# The figure shows the parts of an attention layer. You need not understand it yet, because [a later
# section](#where-position-enters-four-places-in-an-attention-layer) explains its boxes and numbers.
#
# ## How a chapter works
#
# Every chapter has these parts, in this order:
#
# - **Title and question.** The line under them says how long the chapter takes and which chapters it needs.
#   If you come for an answer, its last link leads to *In short*.
# - ***In this chapter*.** It says what the problem is, what the idea is, and what you can do at the end. A
#   figure follows.
# - **The sections.** The first mostly starts with a puzzle. Then each section has a claim, a formula, code,
#   an assertion and a figure. Read `assert` as "it is true that".
# - **Sections marked "(second reading)".** You can skip them on a first reading.
# - ***In short*.** These are three to six short answers, each with a link to the section that shows it. They
#   are a summary and a test of what you remember.
# - ***Exercises*.** Each has two hints and a solution that a test runs. Functions to write are in a
#   file of stubs, and a checker ([chapter 73](73_exercises.ipynb)) names your mistake if it is a known one.
# - ***In practice* and *Further reading*.** They list conventions and bugs in other programs, and sources.
#
# The book grew out of five Chinese introductions. Part 9, notebooks 90 to 94, follows these documents section
# by section. It computes their numeric examples and corrects their mistakes, and [INDEX.md](INDEX.md) lists them
# all. You do not need the documents.
#
# Where the text says **Predict**, write your answer down before you open the next output. Try it here. Three
# words have positions 0, 1, 2. Under a **causal mask** the word at position $i$ (the **query**) may look at
# the word at position $j$ (the **key**) if $j\le i$, so no word looks at later words. Predict the matrix,
# with one row per query and 1 for "may look".


# %% fold="output"
def causal_mask_by_loops(q_positions, k_positions):
    """True where key j is not in the future of query i."""
    return [[j <= i for j in k_positions] for i in q_positions]


show_source(causal_mask)
print(causal_mask([0, 1, 2], [0, 1, 2]).astype(int).tolist())
assert causal_mask([0, 1, 2], [0, 1, 2]).tolist() == causal_mask_by_loops([0, 1, 2], [0, 1, 2])

# %% [markdown]
# To run the cells, type `make lab` in the folder of the project. Or type `pip install -e ".[lab]"`, then
# `jupyter lab notebooks`. Random numbers have a fixed seed, so you see the same digits as in this text.
#
# ## Every formula is tested
#
# An attention layer does not by itself see the order of its words. A **positional encoding** adds this
# information. Many have been invented, and the texts about them disagree. This book computes their formulas:
# **each displayed formula is asserted by the very next cell.** That cell computes both sides. If they
# differed, the chapter would not run, and its tests would fail.
#
# Here is a first example. The **sinusoidal encoding** gives each position $pos$ a vector $PE(pos)$ of $d$
# numbers. They form $d/2$ pairs, and pair $c$ is the sine and the cosine of one angle. Therefore the square
# of the vector's norm (its length as an arrow) is the same at every position:
#
# $$\lVert PE(pos)\rVert^2=\sum_{c=0}^{d/2-1}\left(\sin^2\frac{pos}{10000^{2c/d}}
#   +\cos^2\frac{pos}{10000^{2c/d}}\right)=\frac d2$$

# %%
d = 8
positions = np.array([0, 1, 2, 1000, 1_000_000])
for pos in positions:
    angles = [pos / 10000 ** (2 * c / d) for c in range(d // 2)]
    code = [f(a) for a in angles for f in (np.sin, np.cos)]
    assert np.allclose(sinusoidal([pos], d)[0], code, rtol=0, atol=1e-9)
    assert np.isclose(sum(x**2 for x in code), d / 2, rtol=0, atol=1e-12)
squares = (sinusoidal(positions, d) ** 2).sum(axis=-1)
assert np.allclose(squares, d / 2, rtol=0, atol=1e-12)
print("d/2 =", d // 2, " squared lengths:", squares.round(9).tolist())

# %% [markdown]
# To check a formula yourself, change it in its cell and run the cell. An assertion checks a formula at the
# numbers of its cell. Only a proof can show that it is true for all numbers, and a proof is prose. Each
# decimal number in the text also appears in the output or the code of its chapter.
#
# ## Where position enters: four places in an attention layer
#
# An **attention layer** takes one vector for each **token** (a word, or a piece of one). Three matrices turn
# this vector into a **query**, a **key** and a **value**. The dot product of a query and a key, divided by a
# constant, is their **score**. The **softmax** (exponentials, divided by their sum) turns the scores of one
# query into **weights**. The layer returns the sum of the values with these weights.
# In the figure at the top, $i$ and $j$ number the tokens, each $W$ is a matrix, and $\sqrt K$ is the constant.
# Position can enter at four places, numbered as in the figure:
#
# | place | what happens there | schemes |
# |---|---|---|
# | 1. the token vector | an encoding is added to it, or multiplied with it | sinusoidal, learned, recurrent, FLOATER, complex order; encodings of grids, digits, graphs |
# | 2. queries and keys | they are rotated by an angle that grows with the position | RoPE and its stretched forms |
# | 3. the score of a pair | a term is added that depends on both positions, mostly on their distance | Shaw, Transformer-XL, T5, TUPE, DeBERTa, ALiBi, KERPLE, FIRE, FoX, CoPE, Swin |
# | 4. the weighted sum | a vector for each distance is added to the values | Shaw, NEZHA |
#
# The chapters explain these names. You need none of them now.
#
# Where a figure compares encodings, the colour says the place. Blue is the token vector, green queries and
# keys, red the score and the sum. Grey means no position. Encodings of one place differ in shade, their
# curves in line or mark. Variants of one encoding have other colours.
#
# ## Reading routes
#
# - **I am new** (5 hours): [00](00_how_to_read.ipynb) → [10](10_attention.ipynb) → [11](11_why_position.ipynb) → [20](20_sinusoidal.ipynb) → [40](40_rope_derived.ipynb) → [60](60_layers.ipynb) → [61](61_autodiff.ipynb) → [62](62_model.ipynb). Attention by hand, why it needs positions, waves and rotations, a Transformer that learns. Do one exercise per chapter.
# - **I know Transformers and want positions** (8 hours): [11](11_why_position.ipynb) → [20](20_sinusoidal.ipynb) → [30](30_expansion.ipynb) → [33](33_t5.ipynb) → [35](35_alibi.ipynb) → [40](40_rope_derived.ipynb) → [41](41_rope_computed.ipynb) → [42](42_rope_in_models.ipynb) → [50](50_scaling.ipynb) → [51](51_extrapolation.ipynb) → [71](71_study.ipynb) → [72](72_which_one.ipynb). Each ends with short answers, *In short*. Letters and signs: [chapter 0](00_how_to_read.ipynb#letters-for-axes).
# - **I teach**: Plans for 4, 8 and 12 lessons, with exercises, are in [chapter 0](00_how_to_read.ipynb#plans-for-lessons); [chapter 73](73_exercises.ipynb) checks a class.
# - **I have a bug**: [Symptoms](SYMPTOMS.md) as people type them, each with its cause and a test; [chapter 65](65_rosetta.ipynb) converts between conventions; [chapter 73](73_exercises.ipynb) names the mistake in a function.
# - **I have this homework tonight**: Softmax, RoPE and causal attention: [10](10_attention.ipynb), [40](40_rope_derived.ipynb) without second readings, then [one page of chapter 60](60_layers.ipynb#the-homework-on-one-page-softmax-rope-and-causal-multi-head-attention). In a hurry? Read only that page. `copy --stub 60` writes the whole as `causal_rope_attention`, and `check` judges it.
#
# If you are new, the top of this chapter says what to read of it.
#
# No chapter needs a later one. In the figure below, an arrow leads from a chapter to one that needs it.
# Arrows that follow from other arrows are left out. The eight chapters for newcomers are green.

# %% alt="The chapters in eight rows, one per part of the book, with arrows to the chapters that need them. All arrows point right. Chapter 0 comes first; from the sinusoidal encoding, paths lead to scores, rotations and the model. Eight green chapters form the route for newcomers."
book = tomllib.loads(Path("contents.toml").read_text(encoding="utf-8"))
before, minutes = {}, {}
for part in book["part"]:
    for chapter in part["chapter"]:
        minutes[chapter["stem"]] = chapter["minutes"]
        assert set(chapter["needs"]) <= set(before)  # earlier chapters only
        before[chapter["stem"]] = {*chapter["needs"]}.union(*map(before.get, chapter["needs"]))
for route in book["route"][:2]:
    known = set(route.get("knows", []))
    assert known.union(*map(before.get, route["chapters"])) <= known | set(route["chapters"])
    halves = round(sum(minutes[stem] for stem in route["chapters"]) / 30)
    print(f"{route['title']}: {halves / 2:g} hours, second readings included")
assert len(book["route"][0]["chapters"]) == 8
plots.needs(book["part"][:-1], book["route"][0]["chapters"])
plt.show()

# %% [markdown]
# ## Letters for axes
#
# In the text and in comments of the code these letters name the axes of arrays:
#
# | letter | axis | letter | axis |
# |---|---|---|---|
# | $B$ | batch: sequences computed together | $D$ | components of a token vector (hidden size, `d_model`) |
# | $H$ | heads: attentions side by side | $K$ | components of one head's queries and keys (head dimension, `head_dim`) |
# | $L$ | queries | $F$ | width inside the feed-forward network, which each token passes by itself |
# | $S$ | keys, and their values | $V$ | vocabulary: number of different tokens |
# | | | $N$ | rows of a table |
#
# Some models have fewer heads for keys and values than for queries. Their number, `num_key_value_heads` in a
# configuration, is $G$ in [chapter 44](44_fewer_keys.ipynb).
#
# Small letters come from the papers. Mostly $i$ is a query, $j$ a key, $d$ a width, $c$ a pair of components
# with the frequency $\theta_c$, and $m$ and $n$ are two positions. Chapter 20, the exercise files and the
# checker call a pair $i$, as the paper of the sinusoidal encoding does. In chapter 10, $c$ is a single
# component. If a paper uses a letter for something else, its chapter says so. For example, $\theta$ is a
# phase in chapter 24 (and $\omega$ the frequency), and $H$ is the content of the tokens in chapter 34 and a
# matrix in chapter 45.
#
# In one sequence that attends to itself $L = S$, and a mistake that swaps the two can go unseen. Therefore the
# sizes in an example differ.

# %% alt="The arrays of one attention call drawn to scale as grids with their axis letters. K disappears in the first product and S in the second; L and K remain."
B, H, L, S, K = 2, 3, 5, 7, 8
rng = np.random.default_rng(1)
x, memory = rng.standard_normal((B, L, H * K)), rng.standard_normal((B, S, H * K))
q, k, v = split_heads(x, H), split_heads(memory, H), split_heads(memory, H)
output, weights = attention(q, k, v)
assert q.shape == output.shape == (B, H, L, K) and k.shape == (B, H, S, K)
assert weights.shape == (B, H, L, S) and merge_heads(output).shape == (B, L, H * K)
plots.attention_shapes(H=H, L=L, S=S, K=K)
plt.show()

# %% [markdown]
# ## Conventions
#
# ### Positions count from 0
#
# Functions take positions as an array. If you need only the fifth token, or a position between two others,
# pass that position.

# %%
table = sinusoidal(np.arange(6), 4)
assert np.array_equal(table[0], [0, 1, 0, 1])  # sin 0, cos 0, sin 0, cos 0
assert np.array_equal(sinusoidal([4], 4)[0], table[4])
print("position 2.5:", sinusoidal([2.5], 4)[0].round(4).tolist())

# %% [markdown]
# ### Relative distance: query minus key
#
# The distance of query $i$ and key $j$ is $i-j$. Other texts have $j-i$. Neither is wrong, but it is wrong to
# mix them. For ALiBi, which uses $|i-j|$, the sign does not matter. For T5 a wrong sign swaps past and
# future. For RoPE the sign also matters. The score of a query at $m$ and a key at $n$ equals the score of the
# query rotated by $m-n$ and the key unchanged.

# %%
i, j = np.arange(4)[:, None], np.arange(4)[None, :]
print("i - j:", (i - j).tolist())
assert np.array_equal(relative_distance(np.arange(4), np.arange(4)), i - j)
q, k = np.random.default_rng(2).standard_normal((2, 1, 8))
m, n = 5, 2  # the key is three tokens before its query
score = (rope(q, [m]) @ rope(k, [n]).T).item()
past, future = (rope(q, [m - n]) @ k.T).item(), (rope(q, [n - m]) @ k.T).item()
print(f"score {score:.4f}; q rotated by m - n {past:.4f}, by n - m {future:.4f}")
assert np.isclose(score, past, rtol=0, atol=1e-12) and abs(score - future) > 0.1

# %% [markdown]
# ### Frequency pairs count from 0
#
# An encoding of width $d$ has $d/2$ pairs. The frequency of a pair is its angle per position. Papers count
# pairs from 0 or from 1, each with its own formula:
#
# $$\begin{gathered}\theta_c=10000^{-2c/d}\quad(c=0,\dots,\tfrac d2-1),\quad\text{or}\\
#   \theta_c=10000^{-2(c-1)/d}\quad(c=1,\dots,\tfrac d2)\end{gathered}$$
#
# *A common mistake* is to use the first formula with the range of the second. Then the pair with frequency 1
# is missing, and in this example every pair rotates ten times too slowly.

# %%
d = 8
from_0 = [10000 ** (-2 * c / d) for c in range(d // 2)]
from_1 = [10000 ** (-2 * (c - 1) / d) for c in range(1, d // 2 + 1)]
mixed = [10000 ** (-2 * c / d) for c in range(1, d // 2 + 1)]
for name, theta in (("from 0", from_0), ("from 1", from_1), ("mixed", mixed)):
    print(f"{name:7}", [round(t, 6) for t in theta])
assert np.allclose(from_0, from_1, rtol=0, atol=1e-12)
assert np.allclose(rope_frequencies(d), from_0, rtol=0, atol=1e-12)
assert np.allclose(np.array(mixed) * 10, rope_frequencies(d), rtol=0, atol=1e-12)

# %% [markdown]
# ### Row vectors or column vectors: the side of a matrix
#
# An array of tokens has one token per row, and a trained matrix is on its right: $XW$. A matrix that acts on
# one vector is on its left, and the vector is a column: $Mp$. A function of this package that returns a matrix
# says on which side it belongs.

# %%
X = np.random.default_rng(4).standard_normal((3, 8))
R = rope_matrix(2, rope_frequencies(8))  # stands to the left of a column
as_columns = np.stack([R @ token for token in X])
assert np.allclose(as_columns, X @ R.T, rtol=0, atol=1e-12)  # the same for a batch of rows
assert np.allclose(as_columns, rope(X, np.full(3, 2)), rtol=0, atol=1e-12)
assert not np.allclose(as_columns, X @ R, rtol=0, atol=0.1)  # this rotates in the other direction

# %% [markdown]
# ### The scale and the bias of a score
#
# Scores are divided by $\sqrt K$, the square root of the head dimension, and a bias $b$ is added after that.
# Some papers differ, and their chapters say so.
#
# $$\mathrm{Attention}(Q,K,V)=\mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt K}+b\right)V$$
#
# Letters have two meanings here, as in the paper. $K$ is the matrix of keys, and under the root it is the head
# dimension. $V$ is the matrix of values. [Chapter 10](10_attention.ipynb) explains why there is a root.

# %%
rng = np.random.default_rng(5)
Q, Keys, V = rng.standard_normal((5, 8)), rng.standard_normal((7, 8)), rng.standard_normal((7, 8))
b = rng.standard_normal((5, 7))
expected = softmax(Q @ Keys.T / np.sqrt(8) + b) @ V
assert np.allclose(attention(Q, Keys, V, bias=b)[0], expected, rtol=0, atol=1e-12)

# %% [markdown]
# ### Masks: True means may attend
#
# A mask is boolean, and True means *may attend*. Besides the causal mask there is the **padding mask**. It hides
# the padding that fills up the short sequences of a batch. Combine masks with `&`.

# %%
causal = causal_mask(np.arange(4), np.arange(4))  # (L, S)
padding = padding_mask([4, 2], size=4)  # (B, 1, 1, S): two real tokens in the second sequence
print((causal & padding)[1, 0].astype(int).tolist())
q = k = v = np.ones((2, 1, 4, 3))
_, weights = attention(q, k, v, mask=causal & padding)
print(weights[1, 0].round(4).tolist())
_, none = attention(q, k, v, mask=np.zeros((4, 4), dtype=bool))
assert np.array_equal(none, np.zeros((2, 1, 4, 4)))  # no error and no NaN

# %% [markdown]
# ### Number formats: float32 and float64
#
# Angles are in radians. Angles, sines and cosines are computed in float64. A function of your data keeps their
# floating-point format. In float32 a large position times a frequency has lost its last digits before the sine
# is taken:

# %%
quarter = rope([[1.0, 0.0]], [1], frequencies=[np.pi / 2])  # a quarter of a rotation per position
assert np.allclose(quarter, [[0, 1]], rtol=0, atol=1e-12)
x32 = np.ones((1, 8), dtype=np.float32)
print("rope of float32:", rope(x32, [7]).dtype, "  sinusoidal:", sinusoidal([7], 8).dtype)
theta = rope_frequencies(8)
angle32 = np.float32(1_000_003) * theta.astype(np.float32)  # too early in 32 bits
error = np.abs(np.sin(angle32.astype(float)) - np.sin(1_000_003 * theta)).max()
ours = np.abs(rope(x32, [1_000_003]) - rope(x32.astype(float), [1_000_003])).max()
print(f"largest error, angles in float32: {error:.4f}   rope: below 0.000001: {ours < 1e-6}")
assert error > 1e-3 and ours < 1e-6

# %% [markdown]
# With few exceptions, an array or a number that does not fit causes a `ValueError`. It names the function, the
# rule and what the function got. Predict what is wrong with each call.

# %% fold="output"
x, narrow = np.ones((2, 4)), np.ones((7, 6))
for call in (
    lambda: sinusoidal([0, 1], 7),
    lambda: sinusoidal([[1], [1, 2]], 8),
    lambda: softmax(x, axis=0.5),
    lambda: attention(x, narrow, narrow),
    lambda: attention(x, x, x, mask=np.ones((2, 2))),
):
    try:
        raise SystemExit(f"taken: {call()}")
    except ValueError as error:
        assert str(error).split(": ")[0] in ("sinusoidal", "softmax", "attention")
        print(str(error).replace(". ", ".\n    "))

# %% [markdown]
# ## For teachers
#
# Each lesson has a page in `notebooks/assignments/`, with questions to ask. `python -m pe_numpy plan 4 FOLDER` writes the
# homework of a plan, with points. It is checked for a whole class in one run ([chapter 73](73_exercises.ipynb)).
# Each figure is drawn by one function of `pe_numpy/book/plots/`.
#
# ### Plans for lessons
#
# The plans are for lessons of about 90 minutes. The last three columns say in which lesson a chapter comes.
#
# | chapter | homework | 4 lessons | 8 | 12 |
# |---|---|---|---|---|
# | [10](10_attention.ipynb) | `softmax`, `attention` | 1 | 1 | 1 |
# | [11](11_why_position.ipynb) | `pooled_attention` | 1 | 2 | 2 |
# | [20](20_sinusoidal.ipynb) | `sinusoidal` | 2 | 3 | 3 |
# | [30](30_expansion.ipynb) | `relative_distance`, `four_terms` | 3 | 4 | 4 |
# | [33](33_t5.ipynb) | `t5_bucket` | | | 5 |
# | [35](35_alibi.ipynb) | `alibi_slopes`, `alibi_bias` | 3 | 5 | 6 |
# | [40](40_rope_derived.ipynb) | `rope_matrix`, `rope` | 4 | 6 | 7 |
# | [41](41_rope_computed.ipynb) | `rotary_scores` | | 7 | 8 |
# | [50](50_scaling.ipynb) | `ntk_scaling`, `yarn_scaling` | | 8 | 9 |
# | [60](60_layers.ipynb) | `layer_norm`, `multi_head_attention` | | | 10 |
# | [61](61_autodiff.ipynb) | `softmax_gradient`, `adamw` | | | 11 |
# | [62](62_model.ipynb) | `cross_entropy`, `shift_right` | | | 12 |

# %% [markdown]
# ## In short
#
# - **What sign does a distance have?** Query minus key, $i-j$. It is positive when the key comes before its
#   query. [Relative distance](#relative-distance-query-minus-key).
# - **What does True in a mask mean?** This query may attend to this key. A query that may attend to
#   nothing gets weights of zero. [Masks](#masks-true-means-may-attend).
# - **Is a bias added before or after the scale?** After: $QK^\top/\sqrt K+b$.
#   [Scale and bias](#the-scale-and-the-bias-of-a-score).
# - **What do I pass, a length or positions?** Positions, as an array, counted from 0.
#   [Positions](#positions-count-from-0).
# - **Which dtype comes back?** The dtype of your queries, keys and values. An encoding that is computed only
#   from positions is float64. [Number formats](#number-formats-float32-and-float64).
# - **Where do I begin?** With one of five routes. The first is for newcomers, the last for a homework
#   tonight. [Reading routes](#reading-routes).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 00` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 00_how_to_read.py` checks yours.
#
# ### Exercise 1: A causal mask from key minus query
#
# A library gives you `rel[i, j] = j - i` and a function `weight(rel)` that is
# 0 for the future and 1 otherwise. Use it to write the causal mask of five tokens, and show that it
# equals the package's mask.
#
# <details><summary>Hint 1</summary>
#
# A key in the future of the query has the larger position. What sign does `rel` have there?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A mask of this package is boolean. `== 1` makes one from 0 and 1.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# rel = np.arange(5)[None, :] - np.arange(5)[:, None]
# weight = lambda rel: np.where(rel > 0, 0, 1)
# mask = weight(rel) == 1
# assert np.array_equal(mask, causal_mask(np.arange(5), np.arange(5)))
# ```
#
# </details>
#
# ### Exercise 2: An additive mask
#
# Another library adds a mask of 0 and $-\infty$ to the scores. Convert it to a boolean mask, and
# show that both ways give the same weights.
#
# <details><summary>Hint 1</summary>
#
# Which of the two entries means "may attend"?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `mask == 0`. To compare, add the mask to the scores yourself and call `softmax`.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# from pe_numpy import attend
#
# scores = np.random.default_rng(6).standard_normal((3, 3))
# additive = np.triu(np.full((3, 3), -np.inf), 1)
# _, by_mask = attend(scores, np.eye(3), mask=additive == 0)
# assert np.allclose(by_mask, softmax(scores + additive), rtol=0, atol=1e-12)
# assert np.array_equal(additive == 0, causal_mask(np.arange(3), np.arange(3)))
# ```
#
# </details>
#
# ### Exercise 3: Degrees or radians?
#
# Someone sends you a formula in which RoPE's angles are in "degrees". Find the
# score of the query $(1, 0)$ at position 1 and the key $(1, 0)$ at position 0, with frequency 1, in both
# units, and write an assertion that tells them apart.
#
# <details><summary>Hint 1</summary>
#
# The score is the cosine of the angle between the two vectors.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `np.deg2rad` converts degrees to radians. The frequency is the angle per position.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# one = np.array([[1.0, 0.0]])
# radians = (rope(one, [1], frequencies=[1.0]) @ one.T).item()
# degrees = (rope(one, [1], frequencies=[np.deg2rad(1.0)]) @ one.T).item()
# assert np.isclose(radians, np.cos(1), rtol=0, atol=1e-12)
# assert np.isclose(degrees, np.cos(np.pi / 180), rtol=0, atol=1e-12)
# assert radians < 0.6 < 0.9 < degrees
# ```
#
# </details>
#
# ## In practice
#
# If two programs disagree, compare these conventions first:
#
# | question | here | also seen |
# |---|---|---|
# | first position | 0 | [fairseq](https://github.com/facebookresearch/fairseq/blob/3d262bb256/fairseq/modules/sinusoidal_positional_embedding.py): the padding index plus 1 |
# | distance | query minus key | T5: key minus query |
# | components of the sinusoidal encoding | sine, cosine, sine, cosine | [Transformer-XL](https://github.com/kimiyoung/transformer-xl/blob/0110210/pytorch/mem_transformer.py), [XLNet](https://github.com/zihangdai/xlnet/blob/bbaa3a6/modeling.py): all sines, then all cosines |
# | pairs of RoPE | neighbours | GPT-NeoX, and LLaMA in Hugging Face: first half with second half |
# | True in a mask | may attend | PyTorch's `scaled_dot_product_attention`: the same, but in its `nn.MultiheadAttention` hidden |
# | scale of scores | square root of $K$ | T5: none, it is part of the initialisation |
#
# Two conventions can contain the same information. The two layouts of the sinusoidal encoding do, because they
# are permutations of each other. But weights trained with one do not fit the other.

# %%
interleaved, concatenated = (
    sinusoidal(np.arange(5), 8, layout=layout) for layout in ("interleaved", "concatenated")
)
assert np.array_equal(interleaved[:, [0, 2, 4, 6, 1, 3, 5, 7]], concatenated)
assert not np.allclose(interleaved, concatenated, rtol=0, atol=0.1)

# %% [markdown]
# ## Further reading
#
# - Hugging Face blog, "Designing positional encoding": properties first, then one scheme after another,
#   up to RoPE ([in Chinese](https://huggingface.co/blog/zh/designing-positional-encoding)).
# - Su Jianlin, on the positional encodings over which researchers rack their brains, in Chinese
#   ([Scientific Spaces](https://kexue.fm/archives/8130)).
# - "Understand rotary encoding (RoPE) in ten minutes", in Chinese
#   ([Zhihu](https://zhuanlan.zhihu.com/p/647109286)).
# - "Once more on the position encodings of large models and their extrapolation", a long article in
#   Chinese ([Zhihu](https://zhuanlan.zhihu.com/p/675243992)).
#
# And the two papers on which most of the book rests:
#
# - Vaswani et al. 2017, "Attention is all you need", sections 3.2 and 3.5 (arXiv:1706.03762).
# - Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", section 3
#   (arXiv:2104.09864).
