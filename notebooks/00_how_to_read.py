# %% [markdown]
# # 0. Read this book
#
# *How do I use this book, what do the letters and signs mean, and which way do I take?*
#
# 25 minutes. Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** TODO

# %% fold="input" alt="Diagram of an attention layer with four numbered places and the schemes at each. What one sees: one at the token vectors, two at queries and keys, three at the scores, four at the sum."
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
# ## The promise
#
# An attention layer does not by itself see the order of its words. A **positional encoding** tells it.
# Many have been invented, and the texts about them disagree. This book runs its formulas: **each
# displayed formula is asserted by the very next cell.** That cell computes both sides; if they
# differed, the chapter would not run, and its tests would fail.
#
# A first one. The **sinusoidal code** gives each position $pos$ a vector of $d$ numbers: $d/2$ pairs, each
# the sine and the cosine of one angle. So the square of its length is the same at every position:
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
# To check a formula yourself, change it in its cell and run the cell. An assertion checks a formula at
# the numbers of its cell; that it holds for all numbers needs a proof, and a proof is prose. Each
# decimal number in the text stands in the output or the code of its chapter, too.
#
# ## A chapter
#
# It opens with a question, a picture and short answers, each with a link to the place that shows it. Then
# comes the way: claim, formula, code, assertion, picture. Read `assert` as "it is true that". At the end
# stand exercises (each with two hints and a solution that a test runs), *In practice* (conventions and
# bugs elsewhere), and *What the documents say*: the book grew out of five Chinese introductions, and each
# of their numeric examples and mistakes stands there; [INDEX.md](INDEX.md) lists them. You do not need
# the documents.
#
# Where the text says **Predict**, write your answer down before you open the next output. Three words
# stand at positions 0, 1, 2. Under a **causal mask** the word at position $i$ (the **query**) may look
# at the word at position $j$ (the **key**) if $j\le i$: not into its future. Predict the matrix, one row
# a query, with 1 for "may look".


# %% fold="output"
def causal_mask_by_loops(q_positions, k_positions):
    """True where key j is not in the future of query i."""
    return [[j <= i for j in k_positions] for i in q_positions]


show_source(causal_mask)
print(causal_mask([0, 1, 2], [0, 1, 2]).astype(int).tolist())
assert causal_mask([0, 1, 2], [0, 1, 2]).tolist() == causal_mask_by_loops([0, 1, 2], [0, 1, 2])

# %% [markdown]
# To run the cells, type `make lab` in the folder of the project; or `pip install -e ".[lab]"`, then
# `jupyter lab notebooks`. Random numbers have a fixed seed: you see the same digits.
#
# ## The four places
#
# An **attention layer** takes a vector for each **token** (a word, or a piece of one). From each it
# makes a **query**, a **key** and a **value**, by three matrices. The dot product of a query and a key,
# divided by a constant, is their **score**. The **softmax** (exponentials, divided by their sum) turns
# the scores of one query into **weights**, and the layer returns the sum of the values with these weights.
# Position enters at four places, as in the picture at the top:
#
# | place | what happens there | schemes |
# |---|---|---|
# | 1. the token vector | a code is added to it, or multiplied with it | sinusoidal, learned, recurrent, FLOATER, complex order; codes of grids, digits, graphs |
# | 2. queries and keys | they are rotated by an angle that grows with the position | RoPE and its stretched forms |
# | 3. the score of a pair | a term joins it that depends on both positions, mostly on their distance | Shaw, Transformer-XL, T5, TUPE, DeBERTa, ALiBi, KERPLE, FIRE, FoX, CoPE, Swin |
# | 4. the weighted sum | a vector for each distance joins the values | Shaw, NEZHA |
#
# ## Letters for axes
#
# | letter | axis | letter | axis |
# |---|---|---|---|
# | $B$ | batch: sequences computed together | $D$ | model width: components of a token vector |
# | $H$ | heads: attentions side by side | $K$ | width of one head, of its queries and keys |
# | $L$ | queries | $F$ | width inside the feed-forward network, which each token passes by itself |
# | $S$ | keys, and their values | $V$ | vocabulary: number of different tokens |
# | | | $N$ | rows of a table |
#
# Small letters come from the papers: mostly $i$ is a query, $j$ a key, $d$ a width, $c$ a pair of
# components with the frequency $\theta_c$, and $m$ and $n$ are two positions. Where a paper uses one of
# these letters for something else, its chapter says so: $\theta$ is a phase in chapter 24 (and $\omega$
# the frequency), $H$ the content of the tokens in chapter 34 and a matrix in chapter 45. In one
# sequence that attends to itself $L = S$, and a mistake that swaps the two can go unseen; so the sizes
# of an example differ.

# %% alt="The arrays of one attention call drawn to scale as grids with their axis letters. What one sees: K vanishes in the first product, S in the second, and L and K remain."
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
# Whoever needs the fifth token alone, or a position between two others, asks for it.

# %%
table = sinusoidal(np.arange(6), 4)
assert np.array_equal(table[0], [0, 1, 0, 1])  # sin 0, cos 0, sin 0, cos 0
assert np.array_equal(sinusoidal([4], 4)[0], table[4])
print("position 2.5:", sinusoidal([2.5], 4)[0].round(4).tolist())

# %% [markdown]
# ### A distance is query minus key
#
# The distance of query $i$ and key $j$ is $i-j$; other texts have $j-i$. Neither is wrong; to mix them
# is. For ALiBi, which uses $|i-j|$, the sign does not matter. For T5 a wrong sign swaps past and future.
# For RoPE it matters, too: the score of a query at $m$ and a key at $n$ is that of the query turned by
# $m-n$ and the key left as it is.

# %%
i, j = np.arange(4)[:, None], np.arange(4)[None, :]
print("i - j:", (i - j).tolist())
assert np.array_equal(relative_distance(np.arange(4), np.arange(4)), i - j)
q, k = np.random.default_rng(2).standard_normal((2, 1, 8))
m, n = 5, 2  # the key stands three tokens before its query
score = (rope(q, [m]) @ rope(k, [n]).T).item()
past, future = (rope(q, [m - n]) @ k.T).item(), (rope(q, [n - m]) @ k.T).item()
print(f"score {score:.4f}; q turned by m - n {past:.4f}, by n - m {future:.4f}")
assert np.isclose(score, past, rtol=0, atol=1e-12) and abs(score - future) > 0.1

# %% [markdown]
# ### Pairs count from 0
#
# A code of width $d$ has $d/2$ pairs. The frequency of a pair is its angle per position; papers count
# pairs from 0 or from 1, each with a formula of its own:
#
# $$\begin{gathered}\theta_c=10000^{-2c/d}\quad(c=0,\dots,\tfrac d2-1),\quad\text{or}\\
#   \theta_c=10000^{-2(c-1)/d}\quad(c=1,\dots,\tfrac d2)\end{gathered}$$
#
# *A common mistake*: the first formula with the range of the second. The pair with frequency 1 is lost,
# and here every pair turns ten times too slowly.

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
# ### Rows for tokens, columns for one vector
#
# An array of tokens holds one token a row, and a trained matrix stands to its right: $XW$. A matrix
# that acts on one vector stands to its left, and the vector is a column: $Mp$. A function of this package
# that returns a matrix says on which side it stands.

# %%
X = np.random.default_rng(4).standard_normal((3, 8))
R = rope_matrix(2, rope_frequencies(8))  # stands to the left of a column
as_columns = np.stack([R @ token for token in X])
assert np.allclose(as_columns, X @ R.T, rtol=0, atol=1e-12)  # the same for a batch of rows
assert np.allclose(as_columns, rope(X, np.full(3, 2)), rtol=0, atol=1e-12)
assert not np.allclose(as_columns, X @ R, rtol=0, atol=0.1)  # this turns the other way

# %% [markdown]
# ### The scale
#
# Scores are divided by $\sqrt K$, the root of the width of one head, and a bias is added after that
# (some papers differ; their chapters say so):
#
# $$\mathrm{Attention}(Q,K,V)=\mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt K}+b\right)V$$
#
# (Letters do two jobs here, as in the paper: $K$ is the matrix of keys, and under the root its width;
# $V$ is the matrix of values.) [Chapter 10](10_attention.ipynb) says why a root.

# %%
rng = np.random.default_rng(5)
Q, Keys, V = rng.standard_normal((5, 8)), rng.standard_normal((7, 8)), rng.standard_normal((7, 8))
b = rng.standard_normal((5, 7))
expected = softmax(Q @ Keys.T / np.sqrt(8) + b) @ V
assert np.allclose(attention(Q, Keys, V, bias=b)[0], expected, rtol=0, atol=1e-12)

# %% [markdown]
# ### Masks
#
# A mask is boolean, and True means *may attend*. Besides the causal mask there is the **padding mask**,
# which hides the padding with which the short sequences of a batch are filled up. Masks join with `&`.

# %%
causal = causal_mask(np.arange(4), np.arange(4))  # (L, S)
padding = padding_mask([4, 2], size=4)  # (B, 1, 1, S): the second sequence has two real tokens
print((causal & padding)[1, 0].astype(int).tolist())
q = k = v = np.ones((2, 1, 4, 3))
_, weights = attention(q, k, v, mask=causal & padding)
print(weights[1, 0].round(4).tolist())
_, none = attention(q, k, v, mask=np.zeros((4, 4), dtype=bool))
assert np.array_equal(none, np.zeros((2, 1, 4, 4)))  # no error and no NaN

# %% [markdown]
# ### Number formats
#
# Angles are radians; angles, sines and cosines are computed in float64. A function of your data keeps
# their floating-point format. In float32 a large position times a frequency has lost its last digits before the sine is
# taken:

# %%
quarter = rope([[1.0, 0.0]], [1], frequencies=[np.pi / 2])  # a quarter turn per position
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
# With few exceptions, an array or a number that does not fit gets a `ValueError` that names the
# function, the rule and what it got. Predict what is wrong with each call.

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
# ## Routes
#
# - **I am new** (6 hours): [00](00_how_to_read.ipynb) → [10](10_attention.ipynb) → [11](11_why_position.ipynb) → [20](20_sinusoidal.ipynb) → [40](40_rope_derived.ipynb) → [60](60_layers.ipynb) → [61](61_autodiff.ipynb) → [62](62_model.ipynb). Attention by hand, why it needs positions, waves and rotations, a Transformer that learns. Do one exercise a chapter.
# - **I know Transformers and want positions** (9 hours): [11](11_why_position.ipynb) → [20](20_sinusoidal.ipynb) → [30](30_expansion.ipynb) → [33](33_t5.ipynb) → [35](35_alibi.ipynb) → [40](40_rope_derived.ipynb) → [41](41_rope_computed.ipynb) → [42](42_rope_in_models.ipynb) → [50](50_scaling.ipynb) → [51](51_extrapolation.ipynb) → [71](71_study.ipynb) → [72](72_which_one.ipynb). Each begins with short answers. Letters and signs: [chapter 0](00_how_to_read.ipynb#letters-for-axes).
# - **I teach**: Plans for 4, 8 and 12 lessons, with exercises, stand in [chapter 0](00_how_to_read.ipynb#plans-for-lessons); [chapter 73](73_exercises.ipynb) checks a class.
# - **I have a bug**: [Symptoms](SYMPTOMS.md) as people type them, each with its cause and a test; [chapter 65](65_rosetta.ipynb) converts between conventions; [chapter 73](73_exercises.ipynb) names the mistake in a function.
#
# No chapter needs a later one. An arrow leads from a chapter to one that needs it; what also follows from
# other arrows is left out. The eight chapters for newcomers are green.

# %% alt="The chapters in eight rows, one a part of the book, with arrows from each to those that need it. All arrows lead to the right. Chapter 0 stands first; from the sinusoidal code ways lead to scores, rotations and the model. Eight green chapters are the way for newcomers."
book = tomllib.loads(Path("contents.toml").read_text(encoding="utf-8"))
before, minutes = {}, {}
for part in book["part"]:
    for chapter in part["chapter"]:
        minutes[chapter["stem"]] = chapter["minutes"]
        assert set(chapter["needs"]) <= set(before)  # earlier chapters alone
        before[chapter["stem"]] = {*chapter["needs"]}.union(*map(before.get, chapter["needs"]))
for route in book["route"][:2]:
    known = set(route.get("knows", []))
    assert known.union(*map(before.get, route["chapters"])) <= known | set(route["chapters"])
    halves = round(sum(minutes[stem] for stem in route["chapters"]) / 30)
    print(f"{route['title']}: {halves / 2:g} hours")
assert len(book["route"][0]["chapters"]) == 8
plots.needs(book["part"], book["route"][0]["chapters"])
plt.show()

# %% [markdown]
# ### Plans for lessons
#
# For lessons of about 90 minutes; the columns say in which lesson a chapter comes. Each lesson has a page in
# `notebooks/assignments/`, with questions to ask. `pe-numpy plan 4 FOLDER` writes the homework of a plan, with points;
# it is checked for a whole class at once ([chapter 73](73_exercises.ipynb)); each figure is drawn by one function of `pe_numpy/book/plots/`.
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
# - **Which sign has a distance?** Query minus key, $i-j$: positive when the key stands before its
#   query. [Shown](#a-distance-is-query-minus-key)
# - **What does True in a mask mean?** This query may attend to this key. A query that may attend to
#   nothing gets weights of zero. [Shown](#masks)
# - **Is a bias added before or after the scale?** After: $QK^\top/\sqrt K+b$.
#   [Shown](#the-scale)
# - **What do I pass, a length or positions?** Positions, as an array, counted from 0.
#   [Shown](#positions-count-from-0)
# - **Which dtype comes back?** That of your queries, keys and values; a code of positions
#   alone is float64.
#   [Shown](#number-formats)
# - **Where do I begin?** With one of [four routes](#routes); each chapter opens with its short answers.

# %% [markdown]
# ## Exercises
#
# ### Exercise 1: Whose future?
#
# A library gives you `rel[i, j] = j - i` and a function `weight(rel)` that is
# 0 for the future and 1 otherwise. Write the causal mask of five tokens with it, and show that it is
# the package's.
#
# <details><summary>Hint 1</summary>
#
# A key in the future of the query has the larger position. Which sign has `rel` there?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A mask of this package is boolean: `== 1` makes one from 0 and 1.
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
# Another library adds a mask of 0 and $-\infty$ to the scores. Convert it, and
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
# ### Exercise 3: Break the promise
#
# In a formula that someone sends you, RoPE's angles are "degrees". Find the
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
# `np.deg2rad` converts; the frequency is the angle per position.
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
# What to look at first, when two programs disagree:
#
# | question | here | also seen |
# |---|---|---|
# | first position | 0 | [fairseq](https://github.com/facebookresearch/fairseq/blob/3d262bb256/fairseq/modules/sinusoidal_positional_embedding.py): the padding index plus 1 |
# | distance | query minus key | T5: key minus query |
# | components of the sinusoidal code | sine, cosine, sine, cosine | [Transformer-XL](https://github.com/kimiyoung/transformer-xl/blob/0110210/pytorch/mem_transformer.py), [XLNet](https://github.com/zihangdai/xlnet/blob/bbaa3a6/modeling.py): all sines, then all cosines |
# | pairs of RoPE | neighbours | GPT-NeoX, and LLaMA in Hugging Face: first half with second half |
# | True in a mask | may attend | PyTorch's `scaled_dot_product_attention`: the same; its `nn.MultiheadAttention`: hidden |
# | scale of scores | root of $K$ | T5: none, it is part of the initialisation |
#
# Two conventions can hold the same information, as the two layouts of the sinusoidal code do, which are
# permutations of each other; but weights trained with one do not fit the other.

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
