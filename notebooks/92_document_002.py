# %% [markdown]
# # 92. Document 002: learned, sinusoidal, RoPE and ALiBi as classes, computed
#
# *What does document 002 say section by section, do its examples compute, and what is wrong?*
#
# 25 minutes.

# %% [markdown]
# ## In this document
#
# Document 002 is the third chapter of a course, written in Chinese. It presents learned,
# sinusoidal, rotary (RoPE) and ALiBi encodings as PyTorch classes, compares them in a table and
# ends with three exercises. This notebook goes through it section by section. It tells in English
# what a section says, computes its formulas and examples, corrects what is wrong, and links the
# chapter that teaches the subject. The ids come from [the index](INDEX.md): N- is a numeric
# example, E- a mistake, and C- something that looks wrong but is right.

# %% [markdown]
# ## 002-1.1 The problem: attention ignores order
#
# Self-attention is said to be independent of position, because it compares only how similar tokens are:
#
# $$\text{Attention}(Q,K,V)=\mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt d}\right)V$$
#
# **N-002-1, E-002-1.** The example is `["I", "love", "AI"]` against `["AI", "love", "I"]`, with "the same
# output". The problem is real, but the output is not the same. Attention is permutation *equivariant*: each word
# keeps its vector, and the vectors are reordered with the words. Only something pooled, such as the mean of the
# rows, is unchanged.

# %%
import math

import numpy as np

from pe_numpy import attention, softmax

rng = np.random.default_rng(0)
X = rng.standard_normal((3, 4))  # I, love, AI
W = [rng.standard_normal((4, 4)) for _ in range(3)]
Q, K, V = (X @ w for w in W)
Y, _ = attention(Q, K, V)
assert np.allclose(Y, softmax(Q @ K.T / math.sqrt(4)) @ V, rtol=0, atol=1e-12)

# %%
Y_new, _ = attention(Q[::-1], K[::-1], V[::-1])
print(f"outputs differ by up to {np.abs(Y_new - Y).max():.2f}")
assert f"{np.abs(Y_new - Y).max():.2f}" == "1.86"
assert np.allclose(Y_new, Y[::-1], rtol=0, atol=1e-12)
assert np.allclose(Y_new.mean(axis=0), Y.mean(axis=0), rtol=0, atol=1e-12)

# %% [markdown]
# Taught in [chapter 11](11_why_position.ipynb#equivariant-is-not-invariant): equivariant against invariant.
#
# ## 002-1.2 The solution: give each position an identity
#
# A vector that is unique to the position is added to the token's embedding. Four ways are announced: learned,
# sinusoidal, RoPE, "the mainstream of modern LLMs", and ALiBi, a bias without training. The last two change
# attention and not the embedding, so the drawing with a sum fits only the first two. The cell shows that a sum
# does what is wanted: reversed words give different vectors.

# %%
from pe_numpy import sinusoidal

p = sinusoidal(np.arange(3), 4)
(Y, _), (Y_new, _) = (attention(*((x + p) @ w for w in W)) for x in (X, X[::-1]))
change = np.abs(Y_new[::-1] - Y).max()
print(f"with positions, a word's vector changes by up to {change:.2f}")
assert change > 0.1

# %% [markdown]
# Taught in [chapter 11](11_why_position.ipynb#the-four-places-where-position-enters): the places where position can enter.
#
# ## 002-2.1 Learned embeddings as a class
#
# The class looks up a row for each position and adds it, as BERT and GPT-2 do. It is simple, and it can't go
# beyond the lengths of training. All of that is right.
#
# **N-002-2.** With `max_len` 512 and width 256, an input of shape (2, 100, 256) keeps its shape, and the table
# has 131,072 parameters.

# %%
from pe_numpy import learned
from pe_numpy.transformer.encodings import Learned, Shape

(table,) = Learned(512).shared(rng, Shape(d_model=256, n_heads=8)).values()
x = rng.standard_normal((2, 100, 256))
y = x + learned(table, np.arange(100))  # the same rows for both sequences
print("output:", y.shape, f"  parameters: {table.size:,}")
assert y.shape == (2, 100, 256) and table.size == 131_072
assert np.allclose((y - x)[1, 7], table[7], rtol=0, atol=1e-12)

# %% [markdown]
# Taught in [chapter 21](21_learned.ipynb#a-position-embedding-is-a-row-of-a-table): how a row is looked up and trained.
#
# ## 002-2.2 Sinusoidal encoding as a class
#
# The class computes a table once and stores it with the model, but not as a parameter:
#
# $$PE(pos,2i)=\sin\frac{pos}{10000^{2i/d}},\qquad PE(pos,2i+1)=\cos\frac{pos}{10000^{2i/d}}$$
#
# **N-002-3.** A heat map shows 100 positions and $d=64$. The observation below it is right: low dimensions change
# fast and high ones slowly. So is the second advantage, that $PE(pos+k)$ is a linear transform of $PE(pos)$.

# %%
from pe_numpy import sinusoidal_shift

pe = np.empty((100, 64))
for pos, i in np.ndindex(100, 32):
    angle = pos / 10000 ** (2 * i / 64)
    pe[pos, 2 * i], pe[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
assert np.allclose(pe, sinusoidal(np.arange(100), 64), rtol=0, atol=1e-13)
steps = np.abs(np.diff(sinusoidal(np.arange(100), 64), axis=0)).max(axis=0)
print("largest step of components 0, 20, 40, 62:", steps[[0, 20, 40, 62]].round(4).tolist())
assert (np.diff(steps[0::2]) < 0).all() and (np.diff(steps[1::2]) < 0).all()
assert np.allclose(pe[:90] @ sinusoidal_shift(10, 64).T, pe[10:], rtol=0, atol=1e-12)

# %% [markdown]
# **E-002-2.** The first advantage is said to be that the encoding "generalises to longer sequences". The formula
# can be computed at any position, but the class stops: it stores `max_len` rows, and one token more is an error.
# An odd `d_model` fails too. And that a vector exists doesn't mean that a trained model can use it. Vaswani et
# al. say only that it may; the document's own table says "fair".

# %%
stored, longer = sinusoidal(np.arange(100), 64), np.zeros((2, 101, 64))
try:
    raise AssertionError(longer + stored[:101])  # as the class does
except ValueError as error:
    print("101 tokens:", error)
assert len(stored[:101]) == 100 and sinusoidal(np.arange(101), 64).shape == (101, 64)
try:
    raise AssertionError(sinusoidal(np.arange(3), 5))
except ValueError as error:
    print(error)

# %% [markdown]
# **E-002-10.** The paper (section 3.4) multiplies embeddings by $\sqrt d$ before it adds the position. The class
# leaves that out. Whether it matters depends on how embeddings are initialised. The position vector has norm
# $\sqrt{d/2}$, which is 16 for $d=512$. Embeddings with variance $1/d$ have a norm of about 1 and would be hidden
# by it. With the factor their norm is about 22.6. With variance 1, the default of PyTorch and the document's own
# random input, it is 22.6 from the start.
#
# $$x=\sqrt d\;e_{token}+PE(pos)$$

# %%
d, position = 512, sinusoidal(7, 512)
small = rng.standard_normal((1000, d)) / math.sqrt(d)  # variance 1/d
for name, e in (("as drawn", small), ("times sqrt(d)", math.sqrt(d) * small)):
    x, norm = e + position, np.linalg.norm(e, axis=1)
    cosine = np.sum(e * x, axis=1) / norm / np.linalg.norm(x, axis=1)
    print(f"{name:13}: norm {norm.mean():.2f} beside {np.linalg.norm(position):.2f};",
          f"cosine of word and sum {cosine.mean():.2f}")  # fmt: skip
assert np.allclose((x - position) / d**0.5, small, rtol=0, atol=1e-12)
assert math.isclose(np.linalg.norm(position), 16, rel_tol=1e-12)
assert f"{norm.mean():.1f} {cosine.mean():.2f}" == "22.6 0.82"

# %% [markdown]
# Taught in [chapter 20](20_sinusoidal.ipynb#a-table-of-encodings-as-a-heat-map): the table as a heat map, [the
# factor](20_sinusoidal.ipynb#adding-the-encoding-to-scaled-token-embeddings) and [longer
# sequences](20_sinusoidal.ipynb#sinusoidal-encodings-beyond-the-training-length).
#
# ## 002-3.1 RoPE: rotate instead of add
#
# RoPE is presented as the standard of modern models (LLaMA, Qwen, Mistral). Position is not added to an embedding
# but rotates it, by an angle that the position sets. Precisely, it is queries and keys that are rotated, as the
# code shows later. Three advantages are listed. Relative position is in the scores, which is right, and so is
# efficiency.
#
# **E-002-7.** "Generalises well to longer sequences" is not right for RoPE by itself. In a head of 128 components
# trained on 2048 tokens, 23 of the 64 pairs never complete a rotation, so longer texts show them new angles. The
# chapter's own section on long contexts changes the base for this reason.

# %%
from pe_numpy import rope_frequencies

period = 2 * np.pi / rope_frequencies(128)
print(f"{(period > 2048).sum()} of {len(period)} pairs need more than 2048 tokens for one rotation")
assert (period > 2048).sum() == 23 and len(period) == 64

# %% [markdown]
# Taught in [chapter 40](40_rope_derived.ipynb#scores-that-depend-only-on-distance): why a rotation. [Chapter
# 41](41_rope_computed.ipynb#rope-beyond-the-training-length-pairs-that-never-finish-a-turn) shows what is new in a longer text.
#
# ## 002-3.2 RoPE as a rotation in the plane
#
# **N-002-4.** A vector is a point $[x,y]$ of the plane. At position 0 it stays, at position 1 it is rotated by
# $\theta$, at position 2 by $2\theta$. The product of two rotated vectors then depends only on the difference of
# their positions. Here $f$ depends on the contents as well:
#
# $$q_m\cdot k_n=f(m-n)$$

# %%
from pe_numpy import rope, rope_matrix

point, theta = np.array([2.0, 0.5]), 0.5
R = rope_matrix(1, [theta])
for m in range(3):
    by_angle = complex(*point) * np.exp(1j * m * theta)
    rotated = rope(point[None], [m], [theta])[0]
    assert np.allclose(np.linalg.matrix_power(R, m) @ point, rotated, rtol=0, atol=1e-14)
    assert np.allclose(rotated, [by_angle.real, by_angle.imag], rtol=0, atol=1e-14)
    print(f"position {m}:", rotated.round(4).tolist())
other, at = rng.standard_normal(2), np.arange(8)
scores = rope(np.tile(point, (8, 1)), at, [theta]) @ rope(np.tile(other, (8, 1)), at, [theta]).T
assert np.allclose(scores[1:, 1:], scores[:-1, :-1], rtol=0, atol=1e-12)  # depends on m - n

# %% [markdown]
# Taught in [chapter 40](40_rope_derived.ipynb#step-3-every-position-adds-the-same-angle): every step adds the same angle.
#
# ## 002-3.3 RoPE as a class
#
# The class stores cosines and sines for `max_len` positions and rotates $q$ and $k$. It splits a vector into two
# halves and pairs component $c$ with component $c+d/2$, the layout of GPT-NeoX and Hugging Face. The cell has the
# class as a function.
#
# **N-002-5.** For 2 sequences, 4 heads and 10 tokens of width 16, both results have the shape (2, 4, 10, 16).


# %%
def class_forward(q, k, position_ids=None):  # ignores position_ids, as the class does
    angles = np.outer(np.arange(q.shape[-2]), rope_frequencies(q.shape[-1]))

    def rotate(x):
        (x1, x2), cos, sin = np.split(x, 2, axis=-1), np.cos(angles), np.sin(angles)
        return np.concatenate([x1 * cos - x2 * sin, x1 * sin + x2 * cos], axis=-1)

    return rotate(q), rotate(k)


q, k = np.random.default_rng(0).standard_normal((2, 2, 4, 10, 16))  # (B, H, L, d_k) each
q_rope, k_rope = class_forward(q, k)
print("shapes:", q_rope.shape, k_rope.shape)
assert q_rope.shape == k_rope.shape == (2, 4, 10, 16)
assert np.allclose(q_rope, rope(q, np.arange(10), layout="half"), rtol=0, atol=1e-12)

# %% [markdown]
# **N-002-6, E-002-4.** A comment after the example says that the score of positions 3 and 5 should equal the
# score of 0 and 2, since both are 2 apart. That holds only if the *contents* are equal, the queries at 0 and 3
# and the keys at 2 and 5. In the example they are random, and the two scores differ.
#
# **E-002-3.** `position_ids` is accepted and ignored, and the table is cut to the number of *queries*. For a
# whole sequence from position 0 on that is right. With a KV cache, one query and six keys, the table has one row,
# for position 0. It is broadcast to all keys, so RoPE is silently switched off.

# %%
score = q_rope[0, 0] @ k_rope[0, 0].T
print(f"random contents: {score[0, 2]:.4f} and {score[3, 5]:.4f}")
assert abs(score[0, 2] - score[3, 5]) > 0.1
q_same, k_same = class_forward(*(np.repeat(x[:, :, :1], 10, axis=2) for x in (q, k)))
score = q_same[0, 0] @ k_same[0, 0].T
print(f"equal contents:  {score[0, 2]:.4f} and {score[3, 5]:.4f}")
assert np.isclose(score[0, 2], score[3, 5], rtol=0, atol=1e-12)
one, six = class_forward(q[:, :, 5:6], k[:, :, :6], position_ids=[5])
assert np.array_equal(one, q[:, :, 5:6]) and np.array_equal(six, k[:, :, :6])  # nothing is rotated
right = rope(k[:, :, :6], np.arange(6), layout="half")
print(f"with a cache, keys are off by up to {np.abs(six - right).max():.2f}")
assert np.abs(six - right).max() > 1

# %% [markdown]
# Taught in [chapter 41](41_rope_computed.ipynb#pass-positions-not-lengths): give positions, not a length, and
# [the same mistake](41_rope_computed.ipynb#a-common-mistake-a-cosine-table-as-long-as-the-queries).
#
# ## 002-3.4 RoPE as in LLaMA: complex numbers
#
# The second program makes each pair of *neighbouring* components a complex number and multiplies it by a number
# of modulus 1, which rotates it:
#
# $$e^{\mathrm i\theta}=\cos\theta+\mathrm i\sin\theta$$
#
# **N-002-7.** For 100 positions of width 64 the result has the shape (2, 4, 100, 64), and it is RoPE with
# interleaved pairs.

# %%
freqs_cis = np.exp(1j * np.outer(np.arange(100), rope_frequencies(64)))  # (L, d_k/2)
angles = np.outer(np.arange(100), 10000.0 ** (-np.arange(0, 64, 2) / 64))
assert np.allclose(freqs_cis, np.cos(angles) + 1j * np.sin(angles), rtol=0, atol=1e-12)
xq = np.random.default_rng(0).standard_normal((2, 4, 100, 64))
xq_rope = (xq.view(complex) * freqs_cis).view(float)
print("shape:", xq_rope.shape)
assert xq_rope.shape == (2, 4, 100, 64)
assert np.allclose(xq_rope, rope(xq, np.arange(100)), rtol=0, atol=1e-12)

# %% [markdown]
# **E-002-5.** Nothing is said about the difference: the class pairs halves, this program pairs neighbours. For
# the same $q$ and $k$ they give different scores. They agree only if components are reordered, even ones first
# and then odd ones. So weights trained with one layout must not be read with the other.

# %%
from pe_numpy import rope_permutation

a, b, at, order = q[0, 0], k[0, 0], np.arange(10), rope_permutation(16)
scores = {}
for layout in ("half", "interleaved"):
    scores[layout] = rope(a, at, layout=layout) @ rope(b, at, layout=layout).T
reordered = rope(a[:, order], at, layout="half") @ rope(b[:, order], at, layout="half").T
print({layout: round(float(s[3, 5]), 4) for layout, s in scores.items()}, "order:", order.tolist())
assert abs(scores["half"][3, 5] - scores["interleaved"][3, 5]) > 0.1
assert np.allclose(reordered, scores["interleaved"], rtol=0, atol=1e-12)
assert order.tolist() == [*range(0, 16, 2), *range(1, 16, 2)]

# %% [markdown]
# Taught in [chapter 40](40_rope_derived.ipynb#interleaved-or-half-split): the two layouts, and [how weights
# are converted](40_rope_derived.ipynb#converting-llama-weights-between-the-layouts).
#
# ## 002-4.1 ALiBi: a penalty that grows with distance
#
# ALiBi does not change embeddings and subtracts from each score a number proportional to the distance. $m$ is a
# slope, fixed for each head:
#
# $$\text{scores}_{new}=\text{scores}-m\,\lvert i-j\rvert$$
#
# The class adds the penalty to the scores that it is given. If these are divided by $\sqrt{d_k}$ already, this is
# what the paper does: the penalty itself is not divided.

# %%
from pe_numpy import alibi_bias, relative_distance

q, k, m = *rng.standard_normal((2, 6, 8)), 0.25
new = np.empty((6, 6))
for i, j in np.ndindex(6, 6):
    new[i, j] = q[i] @ k[j] / math.sqrt(8) - m * abs(i - j)
bias = alibi_bias([m], relative_distance(range(6), range(6)))[0]
assert np.allclose(softmax(new), attention(q, k, k, bias=bias)[1], rtol=0, atol=1e-12)

# %% [markdown]
# Taught in [chapter 35](35_alibi.ipynb#the-alibi-formula): the formula, and [why the bias is outside the
# scale](35_alibi.ipynb#is-the-bias-added-inside-or-outside-the-scale).
#
# ## 002-4.2 ALiBi as a class
#
# **N-002-8.** For 8 heads the class makes the slopes 1/2, 1/4, and so on to 1/256, and it prints the $5\times5$
# matrix of $-\lvert i-j\rvert$. Both are right.
#
# **C-4.** The matrix is symmetric, which is not the paper's. Under a causal mask the upper half is never seen, so
# the two are the same. Without a mask it is a variant for encoders, as a comment in the code says.

# %%
from pe_numpy import alibi_slopes, causal_mask

five = np.array([[-abs(i - j) for j in range(5)] for i in range(5)])
distance = np.array(relative_distance(range(5), range(5)))
print("slopes:", alibi_slopes(8).tolist())
assert alibi_slopes(8).tolist() == [2.0**-h for h in range(1, 9)]
assert np.array_equal(alibi_bias([1.0], distance)[0], five)
q, k = rng.standard_normal((2, 5, 8))
causal = causal_mask(range(5), range(5))
with_sign, symmetric = (attention(q, k, k, causal, b)[1] for b in (-0.5 * distance, 0.5 * five))
assert np.array_equal(with_sign, symmetric)
no_mask = [attention(q, k, k, None, b)[1] for b in (-0.5 * distance, 0.5 * five)]
assert np.abs(no_mask[0] - no_mask[1]).max() > 0.1

# %% [markdown]
# **C-5.** For $n$ a power of two the code computes the first slope, and the ratio, as
# `2 ** (-(2 ** -(log2(n) - 3)))`. The nested powers look wrong but are $2^{-8/n}$, as in the authors' code.
#
# **N-002-9, E-002-6.** A comment says $m_i=2^{-8i/n}$ for any number of heads. If $n$ is not a power of two, the
# code does something else. It takes the slopes of the next smaller power and then every other slope of the next
# larger one. For 12 heads the formula begins with 0.62996 and 0.39685, the code with 0.5 and 0.25. Both exist,
# the formula in the paper and the rule in the authors' code. A text should say which one it means.

# %%
for n in (1, 2, 4, 8, 16, 32, 64):
    nested = 2 ** (-(2 ** -(math.log2(n) - 3)))
    assert np.allclose(alibi_slopes(n), nested ** np.arange(1, n + 1), rtol=1e-12, atol=0)
    assert math.isclose(alibi_slopes(n)[0], 2 ** (-8 / n), rel_tol=1e-12)
for n in (3, 6, 12):
    print(n, "heads:", alibi_slopes(n).round(8).tolist())
assert alibi_slopes(3).tolist() == [0.0625, 0.00390625, 0.25]
assert alibi_slopes(6).tolist() == [0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125]
assert np.array_equal(alibi_slopes(12)[:8], alibi_slopes(8))
assert alibi_slopes(12)[8:].round(8).tolist() == [0.70710678, 0.35355339, 0.1767767, 0.08838835]
by_formula = 2 ** (-8 * np.arange(1, 13) / 12)
print("12 heads by the formula:", by_formula[:2].round(5).tolist(), "...")
assert not np.isclose(by_formula[0], alibi_slopes(12), rtol=0, atol=0.01).any()

# %% [markdown]
# Taught in [chapter 35](35_alibi.ipynb#alibi-slopes): slopes, [twelve heads](35_alibi.ipynb#slopes-for-12-heads-when-h-is-not-a-power-of-two) and
# [distance or difference](35_alibi.ipynb#alibi-in-an-encoder-distance-or-difference).
#
# ## 002-4.3 Advantages of ALiBi
#
# Three are listed: no cost in training, strong extrapolation (train on short sequences, use longer ones) and
# simplicity. MPT and BLOOM are named as users. The first and the third hold. ALiBi has no parameters, and a
# longer sequence only adds distances: the bias of a short sequence is a part of the bias of a long one. The
# second needs a qualification. The loss doesn't rise with the length, but much of that is because distant keys
# get almost no weight.

# %%
long_bias = alibi_bias(alibi_slopes(8), relative_distance(range(64), range(64)))
short_bias = alibi_bias(alibi_slopes(8), relative_distance(range(16), range(16)))
assert np.array_equal(long_bias[:, :16, :16], short_bias)
far = np.exp(alibi_bias([0.5], [[100]])[0, 0, 0])  # at equal scores, relative to distance 0
print(f"slope 1/2, distance 100: the weight is {far:.1e} of the weight at distance 0")
assert f"{far:.1e}" == "1.9e-22"

# %% [markdown]
# Taught in [chapter 35](35_alibi.ipynb#why-alibi-extrapolates-position-or-window): whether ALiBi is a position or a window.
#
# ## 002-5.1 A table that compares four encodings
#
# The table gives each encoding a grade for extrapolation: learned poor, sinusoidal fair, RoPE good, ALiBi very
# good. The users that it names are right: BERT and GPT-2, the first Transformer, LLaMA, Qwen and Mistral, and MPT
# and BLOOM, in this order. The grades are right for the *loss* of small models trained for [chapter
# 71](71_study.ipynb) on 32 symbols. At twice that length RoPE's loss is below the sinusoidal one, and at four
# times ALiBi's is below RoPE's. A learned table has no row there at all. But one grade is not enough. When a
# model has to find a value named long ago, ALiBi misses about a quarter of the values at eight times the length,
# and DeBERTa almost none.

# %%
from pe_numpy.judging.verdicts import Study

study = Study("results/study.csv")
for task in ("markov", "text"):
    at_twice = study.compare(task, "rope", "sinusoidal", multiple=2)
    at_four_times = study.compare(task, "alibi", "rope", multiple=4)
    print(f"{task:6}: RoPE {at_twice} than sinusoidal, ALiBi {at_four_times} than RoPE")
    assert at_twice == at_four_times == "lower"
found = {name: study.means("needle", name, "accuracy")[4][3] for name in ("alibi", "deberta")}
print("values found at eight times the length:", {k: f"{v:.0%}" for k, v in found.items()})
assert 0.7 < found["alibi"] < 0.8 < 0.99 < found["deberta"]

# %% [markdown]
# Taught in [chapter 72](72_which_one.ipynb#why-one-grade-for-extrapolation-is-not-enough): why one grade is not enough, and [what
# training adds](72_which_one.ipynb#length-extrapolation-of-trained-models).
#
# ## 002-5.2 How to choose
#
# **N-002-10.** Below 512 tokens learned or sinusoidal is advised, above 2048 RoPE or ALiBi. As a rule this fails.
# The two numbers are lengths of well-known models, not borders: of six models that the table names, trained on
# 512 to 8192 tokens, the thresholds advise one.
#
# The other advice is better. A model trained from scratch should use RoPE: that is the custom. For extrapolation
# ALiBi is indeed the best of these four, if the loss is the measure. For very long contexts ALiBi or RoPE with
# NTK scaling is sensible: with dynamic NTK, the loss at four times the length is lower than with RoPE as it is.


# %%
def advice(length):
    """The two thresholds, as a program."""
    if length < 512:
        return "learned or sinusoidal"
    return "RoPE or ALiBi" if length > 2048 else "no advice"


trained_on = {"BERT": 512, "GPT-2": 1024, "BLOOM": 2048, "MPT": 2048, "LLaMA": 2048}
trained_on["Mistral"] = 8192
for name, length in trained_on.items():
    print(f"{name:8} {length:4}: {advice(length)}")
assert [name for name, n in trained_on.items() if advice(n) != "no advice"] == ["Mistral"]
dynamic = {"encoding": "rope", "scaling": "dynamic_ntk"}
for task in ("markov", "text"):
    assert study.compare(task, dynamic, "rope", multiple=4) == "lower"

# %% [markdown]
# Taught in [chapter 72](72_which_one.ipynb#guide-which-positional-encoding-for-which-use): a guide that says on what its advice rests.
#
# ## 002-5.3 Longer contexts by NTK-aware scaling
#
# A function changes RoPE's base so that a trained model reads texts $s$ times as long:
#
# $$b'=b\,s^{d/(d-2)},\qquad\theta'_i=b'^{-2i/d}$$
#
# **N-002-11.** It prints nothing. For $s=2$ the new bases are 20452.228712 for width 64, 20221.261690 for 128 and
# 25198.420998 for 8.
#
# **C-6.** The exponent looks odd. It is right: it divides the last frequency by exactly $s$ and leaves the first
# unchanged. With exponent 1 the last one would not be slowed enough.

# %%
from pe_numpy import ntk_scaling

for width, shown in ((64, "20452.228712"), (128, "20221.261690"), (8, "25198.420998")):
    base = 10000 * 2 ** (width / (width - 2))
    scaled, before = ntk_scaling(width, 2), rope_frequencies(width)
    print(
        f"width {width:3}: base {base:.6f}, last frequency divided by {before[-1] / scaled[-1]:.6f}"
    )
    assert f"{base:.6f}" == f"{scaled[1] ** (-width / 2):.6f}" == shown
    assert np.allclose(scaled, base ** (-2 * np.arange(width // 2) / width), rtol=1e-12, atol=0)
    assert scaled[0] == 1 and math.isclose(before[-1] / scaled[-1], 2, rel_tol=1e-12)
    too_little = before[-1] / rope_frequencies(width, 20_000)[-1]  # exponent 1
    assert math.isclose(too_little, 2 ** ((width - 2) / width), rel_tol=1e-12)

# %% [markdown]
# **E-002-8.** The argument `max_len` is not used. And the comment that a larger base lets a model generalise to
# longer sequences, as in LLaMA 2 Long, runs two recipes together. NTK-aware scaling (bloc97, June 2023) was
# proposed for use *without* further training. LLaMA 2 Long (Xiong et al. 2023) raises the base from 10,000 to
# 500,000 *with* continual pretraining. By the formula above that base would be a factor of 47.

# %%
factor = (500_000 / 10_000) ** ((128 - 2) / 128)
print(f"base 500,000 is NTK-aware by a factor of {factor:.0f}")
assert np.allclose(ntk_scaling(128, factor), rope_frequencies(128, 500_000), rtol=1e-12, atol=0)
assert round(factor) == 47 and rope_frequencies(128, 500_000)[0] == 1

# %% [markdown]
# Taught in [chapter 50](50_scaling.ipynb#ntk-aware-scaling-change-the-base): how the base is chosen, beside the other scalings.
#
# ## 002-6 Exercises
#
# **N-002-12.** The first exercise makes the sinusoidal table of 100 positions and $d=64$, and draws it as a heat
# map and as curves of components 0, 1, 10, 11, 30 and 31. The code is right. To compare: the cell prints these
# components at position 50 and the sum of the table.
#
# **N-002-13, C-20.** The second one rotates by 0.1 radians per position, with $q=(1, 0.5)$ and $k=(0.8, 0.3)$. It
# prints 0.9509 for the positions 0, 2 and for 3, 5. Twice the same number looks like a bug that ignores
# positions, but it is right: the distance is the same, and so are the contents. At positions 2 and 0 the score is
# 0.9112.

# %%
code = sinusoidal(np.arange(100), 64)
row = [f"{x:.6f}" for x in code[50, [0, 1, 10, 11, 30, 31]]]
print("position 50:", *row, f"  sum of the table: {code.sum():.6f}")
assert row == "-0.262375 0.964966 -0.651456 0.758686 0.618444 0.785829".split()
assert f"{code.sum():.6f}" == "2223.459209"


def simple_rope(x, position):
    return rope([x], [position], [0.1])[0]


pairs = ((0, 2), (3, 5), (2, 0))
scores = [simple_rope([1.0, 0.5], m) @ simple_rope([0.8, 0.3], n) for m, n in pairs]
print("scores:", {pair: f"{s:.10f}" for pair, s in zip(pairs, scores, strict=True)})
assert [f"{s:.10f}" for s in scores[:2]] == ["0.9509301820"] * 2 and f"{scores[2]:.4f}" == "0.9112"

# %% [markdown]
# **N-002-14.** The third exercise prints parameters: `max_len * d_model` for the learned table, which is 131,072
# for 512 rows of width 256, and 0 for the other three. These numbers are right.
#
# **E-002-9.** But they don't answer the question, which was how the encodings compare in their *effect* on a
# model. Three encodings with no parameters are three different models. A comparison needs trained models, as a
# comment in the answer admits.

# %%
from pe_numpy.transformer.encodings import every_encoding

counts = {}
for name in ("learned", "sinusoidal", "rope", "alibi"):
    encoding, shape = every_encoding(512)[name], Shape(d_model=256, n_heads=8)
    trained = {**encoding.shared(rng, shape), **encoding.layer(rng, shape)}
    counts[name] = sum(array.size for array in trained.values())
print(counts)
assert list(counts.values()) == [131_072, 0, 0, 0]
assert study.compare("text", "rope", "sinusoidal", multiple=2) != "not decided"  # 0 against 0

# %% [markdown]
# Taught in [chapter 71](71_study.ipynb#loss-of-ten-encodings-at-eight-times-the-trained-length), which trains such models; [chapter
# 73](73_exercises.ipynb) has exercises that are checked.
