# %% [markdown]
# # 10. Attention by hand: scores, softmax, heads, masks
#
# *How is each number of an attention layer computed, masked and split into heads?*
#
# 50 minutes. Needs [00 How to use this book: conventions, notation, reading routes](00_how_to_read.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Attention is the part of a Transformer, the network behind today's language models,
# in which words exchange information. Each word compares itself with all words, turns the results into
# shares that add up to 1, and collects from each word according to its share. You compute every number
# for the sentence "I love to learn", first with explicit loops, then in one line. Then you split the
# layer into parallel heads and hide words with masks. At the end you can write attention in NumPy.

# %% fold="input" alt="Nine 4 by 4 matrices with numbers, and two colour bars. Above, X times the query matrix gives Q, then K and V. Below, scores are divided by the square root of the head dimension; softmax gives weights, and weights times V the output. The largest weights are of to on itself and of love on I."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import attention
from pe_numpy.book.plots import attention as plots

words = ["I", "love", "to", "learn"]
X = np.array([[1, 0, 0, 1], [0, 2, 0, 1], [0, 0, 2, 0], [1, 1, 1, 1]], float)  # (L, D)
W_q = np.array([[0, -1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1]], float)
W_k = np.array([[0, 0, 0, 1], [0, 1, -1, 0], [1, 0, 0, 0], [0, 1, 1, 0]], float)
W_v = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [-1, 0, 0, 1], [1, 1, 0, 0]], float)
Q, K, V = X @ W_q, X @ W_k, X @ W_v
output, weights = attention(Q, K, V)
plots.attention_steps(words, X, W_q, Q, K, V, weights, output)
plt.show()

# %% [markdown]
# ## Token embeddings: four words become four vectors
#
# The sections below compute the matrices of the figure above, in order. If your homework is softmax,
# RoPE and causal attention, it is on [one page of chapter
# 60](60_layers.ipynb#the-homework-on-one-page-softmax-rope-and-causal-multi-head-attention). The sentence
# is "I love to learn". Models read **tokens**, which are words or parts of words; here each word is one
# token. A model has a fixed vocabulary, in which each word has a number. The simplest vector for word
# number $w$ is the **one-hot** vector: a one in component $w$, zeros elsewhere. But any two different
# words are then orthogonal, so the vectors carry no meaning. Each is also as long as the vocabulary.
#
# A **table of embeddings** $E$ solves both problems. It has one row of $D$ numbers per word, set by
# training. $D$ is the **width** of the model, also called hidden size or `d_model`. With 50,000 words and
# a width of 512, four one-hot vectors take 200,000 numbers; four embeddings take 2,048. Multiplying a
# one-hot vector by the table picks out a row, so programs look the row up instead. The table below is
# made up, to keep the arithmetic small. In it the two verbs point in similar directions.
#
# The table does not know where a word is in the sentence. So we add a **position vector** $p_i$ to each
# word. Chapters 20 to 51 present this and other ways to encode position. Here the binary digits of the
# position, in the last two components, are enough. The sums are the rows of the matrix $X$ at the top.
#
# $$
# \text{onehot}(w)\, E = E_w, \qquad x_i = E_{w_i} + p_i
# $$

# %%
vocabulary = ["I", "learn", "love", "to", "you"]
ids = [vocabulary.index(word) for word in words]
one_hot = np.eye(len(vocabulary))[ids]  # (4, 5): words, vocabulary
table = np.array([[1, 0, 0, 1], [1, 1, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [0, 1, 1, 0]], float)
position = np.array([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 1, 1]], float)
assert np.array_equal(one_hot @ one_hot.T, np.eye(4))  # no word is like another
assert np.array_equal(one_hot @ table, table[ids])
for i, c in np.ndindex(4, 4):
    assert X[i, c] == table[ids[i], c] + position[i, c]
_, love, to, learn = table[ids]
print("love . learn =", int(love @ learn), "   love . to =", int(love @ to))
assert (4 * 50_000, 4 * 512) == (200_000, 2_048)

# %% [markdown]
# ## Why a per-token layer is not enough
#
# Multiply each row of $X$ by one matrix. This is the simplest **layer**. Change the last word from
# "learn" to "you". *Predict*: which outputs change?

# %% fold="output"
layer = np.array([[1, 0, 2, 0], [0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 1, 1]], float)
other = X.copy()
other[3] = table[vocabulary.index("you")] + position[3]  # "I love to you"
changed = (other @ layer != X @ layer).any(axis=1)
print("outputs that changed:", dict(zip(words, changed.tolist(), strict=True)))
assert changed.tolist() == [False, False, False, True]

# %% [markdown]
# Only that word's output changes. However many such layers we stack, the output for
# "love" never depends on "learn". The output for one word must combine it with the others, in amounts
# that depend on the words themselves.
#
# ## Queries, keys, values
#
# Attention gives each word three vectors. Each has its own matrix, which training sets:
#
# - a **query** $q_i$: what word $i$ looks for
# - a **key** $k_j$: what other words can find word $j$ by
# - a **value** $v_j$: what word $j$ hands over when it is found
#
# These descriptions only help the memory. The arithmetic is certain: each is a **projection**, a vector
# times a matrix.
#
# $$
# q_{ic} = \sum_{d} x_{id}\, W^q_{dc}, \qquad
# k_{jc} = \sum_{d} x_{jd}\, W^k_{dc}, \qquad
# v_{jc} = \sum_{d} x_{jd}\, W^v_{dc}
# $$
#
# The rows of $Q$ are the queries, the rows of $K$ are the keys, and the rows of $V$ are the values. Check
# one entry by hand, counting components from 0. "love" is $x_1 = (0, 2, 0, 1)$, and the third column of
# $W^q$ is $(0, 1, 0, 1)$. So component 2 of its query is $0 + 2 + 0 + 1 = 3$.

# %%
import itertools
import math


def project_by_loops(x, weight):
    result = np.zeros((len(x), weight.shape[1]))
    for i, c, d in itertools.product(range(len(x)), range(weight.shape[1]), range(len(weight))):
        result[i, c] += x[i, d] * weight[d, c]
    return result


for matrix, weight in ((Q, W_q), (K, W_k), (V, W_v)):
    assert np.array_equal(matrix, project_by_loops(X, weight))
assert W_q[:, 2].tolist() == [0, 1, 0, 1] and Q[1, 2] == 3

# %% [markdown]
# ## Scores: dot products of queries and keys
#
# How well does the query of word $i$ fit the key of word $j$? Multiply them component by component and
# add up: this is the dot product. It is positive if the two vectors point the same way, negative if they
# point in opposite directions, and zero if they are orthogonal. We call it the **score** of the pair;
# others call it an attention logit.
#
# $$
# s_{ij} = q_i \cdot k_j = \sum_{c} q_{ic}\, k_{jc}
# $$

# %%
scores = np.zeros((4, 4))
for i, j in np.ndindex(4, 4):
    terms = [Q[i, c] * K[j, c] for c in range(4)]
    scores[i, j] = sum(terms)
    if words[i] == "love":
        print(f"love asks {words[j]:6}", " + ".join(f"{t + 0:.0f}" for t in terms), end=" ")
        print(f"= {sum(terms):.0f}")
assert np.array_equal(scores, Q @ K.T) and not np.array_equal(scores, scores.T)
assert scores[1].tolist() == [6, 3, 0, 5] and scores[0, 1] == -4

# %% [markdown]
# One matrix product, $QK^\top$, computes all sixteen scores. Row $i$ belongs to the query, column $j$ to
# the key. The matrix is not symmetric, since $W^q$ and $W^k$ differ: "love" scores 6 with "I", while "I"
# scores $-4$ with "love".
#
# ## From scores to weights: the softmax
#
# "love" has the scores 6, 3, 0, 5. We want shares: positive numbers that add up to 1, larger for a larger
# score. The exponential is always positive and always grows, so we take it and divide by the sum. This is
# the **softmax**. Its results are the **weights**, also called attention weights:
#
# $$
# w_j = \frac{e^{s_j}}{\sum_{m} e^{s_m}}
# $$

# %%
row = scores[1]
powers = [math.exp(s) for s in row]
weights_of_love = [p / sum(powers) for p in powers]
for word, s, p, w in zip(words, row, powers, weights_of_love, strict=True):
    print(f"{word:6} score {s:.0f}   e^score {p:7.2f}   weight {w:.4f}")
assert abs(sum(weights_of_love) - 1) < 1e-12
assert np.argsort(weights_of_love).tolist() == np.argsort(row).tolist()  # the order is kept

# %% [markdown]
# The softmax depends only on differences of scores. If you add the same number $a$ to all scores, a
# factor $e^a$ appears in the numerator and in the denominator, and cancels.
#
# $$
# \frac{e^{s_j + a}}{\sum_m e^{s_m + a}} = \frac{e^{s_j}}{\sum_m e^{s_m}}
# $$
#
# This protects us from overflow. The largest float64 number is near $e^{709}$. A score of 1000 is too
# much for it, and infinity over infinity is not a number (NaN). With $a = -\max_m s_m$ the largest
# exponent becomes 0. The package's `softmax` does this, along any axis. If *every* score is $-\infty$, it
# returns zeros, as [a later section](#fully-masked-rows-nan-or-zeros-second-reading) explains. The cell
# shows its source without the input checks, as `python -m pe_numpy copy softmax --plain` prints it.

# %%
from pe_numpy import softmax
from pe_numpy.book.show import show_short, show_source

short = show_short(softmax)
for a in (-100.0, 0.0, 100.0):
    moved = np.exp(row + a) / np.exp(row + a).sum()
    assert np.allclose(moved, weights_of_love, rtol=0, atol=1e-12)
large = np.array([1000.0, 999.0, 0.0])
with np.errstate(over="ignore", invalid="ignore"):
    print("\nwithout the shift:", (np.exp(large) / np.exp(large).sum()).tolist())
    assert np.isfinite(np.exp(709.0)) and np.isinf(np.exp(710.0))
print("with the shift:   ", softmax(large).round(4).tolist())
assert np.allclose(softmax(row), weights_of_love, rtol=0, atol=1e-12)
assert np.allclose(softmax(row), short["softmax"](row), rtol=0, atol=1e-12)
assert np.allclose(softmax(scores).sum(axis=1), 1, rtol=0, atol=1e-12)  # rows: the last axis

# %% [markdown]
# ## Why divide by the square root of the head dimension
#
# Training moves every learned number a little way against the **gradient**, the derivative of the model's
# error with respect to that number. By the chain rule, the gradient of queries and keys has the
# derivative of the softmax as a factor ([chapter 61](61_autodiff.ipynb) computes such gradients). The
# quotient rule gives it:
#
# $$
# \frac{\partial w_j}{\partial s_m} = w_j\,(\delta_{jm} - w_m)
# $$
#
# Here $\delta_{jm}$ is 1 for $j = m$ and 0 otherwise. For $j = m$ the derivative is the **slope**
# $w_j(1 - w_j)$. It is at most a quarter, and close to 0 where the weight is close to 0 or to 1. If one
# weight takes everything, all these derivatives vanish.

# %%
w, step = softmax(row), 1e-6
measured, formula = np.zeros((4, 4)), np.zeros((4, 4))
for j, m in itertools.product(range(4), range(4)):
    up, down = row.copy(), row.copy()
    up[m] += step
    down[m] -= step
    measured[j, m] = (softmax(up)[j] - softmax(down)[j]) / (2 * step)
    formula[j, m] = w[j] * ((j == m) - w[m])
print("slopes w(1 - w):", formula.diagonal().round(4).tolist())
assert np.allclose(measured, formula, rtol=0, atol=1e-9)
half = softmax([0.0, 0.0])[0]  # the slope is at most a quarter, and reaches it
assert (formula.diagonal() < 0.25).all() and half * (1 - half) == 0.25

# %% [markdown]
# So the size of the scores matters. How large are they? Write $d_k$ for the number of components of a
# query or key, the **head dimension** (`head_dim`); here it is 4. Assume that the $2d_k$ components of
# $q$ and $k$ are independent, with mean 0 and variance 1. Then each product $q_c k_c$ has mean 0 and
# variance $\mathbb{E}[q_c^2]\mathbb{E}[k_c^2] = 1$, where $\mathbb{E}$ is the mean. The variances of the
# $d_k$ products add:
#
# $$
# \operatorname{Var}(q \cdot k) = \sum_{c=0}^{d_k-1} \mathbb{E}[q_c^2]\,\mathbb{E}[k_c^2] = d_k
# $$
#
# The next cell first checks this without any luck of the draw. Components that are $+1$ or $-1$ with
# equal chance have mean 0 and variance 1, and there are few enough vectors to try every pair. Then the
# cell draws 4,000 pairs of random normal vectors for each width, as a stand-in for a model before
# training.

# %% alt="Left: histograms of dot products, wider for head dimension 64 than for 16 and 4. Right: on log axes, the measured standard deviation lies on the square root of the head dimension, and at 1 after division."
for width in range(1, 7):
    signs = np.array(list(itertools.product([-1, 1], repeat=width)))  # all (2^width, width)
    dots = signs @ signs.T
    assert dots.mean() == 0 and dots.var() == width
rng = np.random.default_rng(0)
widths = 2 ** np.arange(1, 10)
samples = {int(n): (rng.standard_normal((2, 4000, n))).prod(axis=0).sum(axis=-1) for n in widths}
spreads = np.array([samples[int(n)].std() for n in widths])
scaled = spreads / np.sqrt(widths)
assert np.allclose(scaled, 1, rtol=0, atol=0.05)
plots.dot_product_spread({n: samples[n] for n in (4, 16, 64)}, widths, spreads, scaled)
plt.show()

# %% [markdown]
# The standard deviation is $\sqrt{d_k}$. After division by $\sqrt{d_k}$ it is 1 for every width. With
# $d_k = 64$, the head dimension in "Attention is all you need" (Vaswani et al. 2017, called "the paper"
# below), raw scores have a standard deviation of 8. *Predict*: with 16 keys and such scores, how large is
# the largest weight?

# %% fold="output"
normal = rng.standard_normal((2000, 16))
soft, hard = softmax(normal), softmax(8 * normal)
for deviation, w in ((1, soft), (8, hard)):
    largest, slope = w.max(axis=1).mean(), (w * (1 - w)).mean()
    print(f"standard deviation {deviation}: largest weight {largest:.2f}, mean slope {slope:.4f}")
assert soft.max(axis=1).mean() < 0.4 and hard.max(axis=1).mean() > 0.84
assert 0.2 < (hard * (1 - hard)).mean() / (soft * (1 - soft)).mean() < 0.3

# %% [markdown]
# At standard deviation 8 one of 16 keys takes about 0.85 of the weight on average, before the model has
# learned anything. Chance decides which key it is. The mean slope is about a quarter of what it was.
#
# What is proved here is the variance, under the assumptions above. What is measured is the effect on the
# slopes. The paper cites an experiment in which unscaled dot products fall behind at larger $d_k$ (Britz
# and others, [2017](https://arxiv.org/abs/1703.03906)). The paper only suspects that small gradients are
# the reason. And the division fixes only the start, because training may make scores larger.
#
# ## Attention output: a weighted mean of the values
#
# The scores of all four words are divided by $\sqrt 4 = 2$ and go through the softmax, row by row. Then
# each word collects the values of all four words in these shares. The output $o_i$ is a **weighted mean**
# of the values, a weighted sum whose weights sum to 1:
#
# $$
# o_i = \sum_{j} w_{ij}\, v_j
# $$
#
# Because the weights are positive and sum to 1, no output lies outside the range of the values: each
# component of an output lies between the smallest and the largest value of that component.

# %%
scaled_scores = scores / math.sqrt(4)
assert np.allclose(weights, softmax(scaled_scores), rtol=0, atol=1e-12)  # those at the top
by_hand = np.zeros((4, 4))
for i, j, c in np.ndindex(4, 4, 4):
    by_hand[i, c] += weights[i, j] * V[j, c]
assert np.allclose(output, by_hand, rtol=0, atol=1e-12)
extreme = softmax(40 * np.eye(4)) @ V  # each query takes one key: the bounds are reached
for mixed in (output, extreme):
    assert (mixed >= V.min(axis=0)).all() and (mixed <= V.max(axis=0)).all()
print("weights of love:", weights[1].round(2).tolist(), "  output:", output[1].round(2).tolist())

# %% [markdown]
# Follow "love" through the figure at the top: its scores 6, 3, 0, 5, their halves, then the weights. Its
# output is mostly the value of "I" with a part of "learn". The whole chain in one line is **scaled
# dot-product attention**, equation (1) of the paper:
#
# $$
# \operatorname{Attention}(Q, K, V) = \operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right) V
# $$
#
# In formulas $K$ is the matrix of keys, and $d_k$ is the head dimension. In the code, array shapes write
# this dimension as `K`, as [chapter 0](00_how_to_read.ipynb) says. The next cell computes the formula
# once more with loops, so that nothing is hidden in a matrix product. Its argument `allowed` is for the
# masks below.
#
# The cell after it shows the package's `attention` without its checks. The package itself computes the
# scaled scores and hands them to `attend`, which masks them, takes the softmax and sums the values with
# these weights. They are two functions because some of [chapters 30](30_expansion.ipynb) to
# [34](34_deberta.ipynb) compute their own scores. The argument `sink` is for
# [chapter 12](12_attention_blocks.ipynb#learned-attention-sinks).


# %%
def attention_by_loops(q, k, v, allowed=lambda i, j: True):
    (L, width), S = q.shape, len(k)
    powers, result = np.zeros((L, S)), np.zeros((L, v.shape[1]))
    for i, j in np.ndindex(L, S):
        if allowed(i, j):
            score = sum(q[i, c] * k[j, c] for c in range(width))
            powers[i, j] = math.exp(score / math.sqrt(width))
    shares = powers / powers.sum(axis=1, keepdims=True)
    for i, j, c in np.ndindex(L, S, v.shape[1]):
        result[i, c] += shares[i, j] * v[j, c]
    return result, shares


one_line = softmax(Q @ K.T / math.sqrt(4)) @ V
assert np.allclose(attention_by_loops(Q, K, V)[0], one_line, rtol=0, atol=1e-12)

# %% fold="output"
from pe_numpy import attend

short = show_short(attention)
print()
show_source(attend)
assert np.allclose(output, short["attention"](Q, K, V)[0], rtol=0, atol=1e-12)
assert np.allclose(output, one_line, rtol=0, atol=1e-12)
assert np.allclose(output, attend(Q @ K.T / 2, V)[0], rtol=0, atol=1e-12)
assert np.allclose(attention(Q, K, V, scale=1.0)[1], softmax(scores), rtol=0, atol=1e-12)

# %% [markdown]
# ## Multi-head attention: two heads
#
# A single softmax gives each word one set of shares. "love" may need its subject and its object, for
# different reasons, and a weighted mean of both blurs them. **Multi-head attention** runs several
# attentions in parallel. Each of $H$ heads has its own projections, whose width is divided by the number
# of heads. The outputs are concatenated, and one more matrix $W^O$ mixes them:
#
# $$
# \text{head}_h = \operatorname{Attention}(X W^{q,h},\; X W^{k,h},\; X W^{v,h}), \qquad
# \text{result} = [\,\text{head}_1 \;\; \text{head}_2\,]\; W^O
# $$
#
# With $D = 4$ and two heads, each head has the width $d_k = D / H = 2$ and projections of shape $(4, 2)$.
# We take the left and the right half of the matrices above.

# %%
W_o = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, -1, 1]], float)
parts = [slice(0, 2), slice(2, 4)]
heads = [attention_by_loops(X @ W_q[:, p], X @ W_k[:, p], X @ W_v[:, p]) for p in parts]
side_by_side = np.concatenate([heads[0][0], heads[1][0]], axis=1)  # (L, H K)
two_heads = side_by_side @ W_o
for i, c in np.ndindex(4, 4):
    entry = sum(side_by_side[i, d] * W_o[d, c] for d in range(4))
    assert np.isclose(two_heads[i, c], entry, rtol=0, atol=1e-12)
assert [head[0].shape for head in heads] == [(4, 2), (4, 2)]
assert side_by_side.shape == two_heads.shape == (4, 4)
looks = [words[w[1].argmax()] for _, w in heads]
print("love attends most to", looks[0], "in head 1, at", looks[1], "in head 2")
assert looks == ["love", "I"]

# %% [markdown]
# Do two small matrices give a different model from one large $W^q$ whose result is cut in two? Column $c$
# of $XW$ depends only on column $c$ of $W$, so both do the same arithmetic:
#
# $$
# X\,[\,W^{q,1} \;\; W^{q,2}\,] = [\,XW^{q,1} \;\; XW^{q,2}\,]
# $$
#
# Programs prefer the large matrix, with one product instead of $H$. In code the heads become an axis.
# Head $h$, counted from 0, has the components $h\,d_k$ to $h\,d_k + d_k - 1$ of every word. The package's
# `split_heads` splits the last axis in two and moves the axis of heads before the axis of words;
# `merge_heads` goes back.

# %%
from pe_numpy import merge_heads, split_heads

show_source(split_heads, merge_heads)
split = [split_heads(m, 2) for m in (Q, K, V)]  # three of (H, L, K)
for m, weight in zip(split, (W_q, W_k, W_v), strict=True):
    for h, p in enumerate(parts):
        assert np.array_equal(m[h], X @ weight[:, p])
assert np.array_equal(merge_heads(split[0]), Q)  # there and back
both, weights_two = attention(*split)  # all heads in one call
assert np.allclose(both, [heads[0][0], heads[1][0]], rtol=0, atol=1e-12)
print("\nheads:", both.shape, "  weights:", weights_two.shape, "  merged:", merge_heads(both).shape)

# %% alt="Two rows of panels, one per head, show Q, K, V, scaled scores, weights and head output. A third row shows the heads side by side, W^O and the result. All cells contain their numbers."
rows = []
for h in (0, 1):
    q, k, v = (m[h] for m in split)
    rows.append([(f"$Q_{h + 1}$", q), (f"$K_{h + 1}$", k), (f"$V_{h + 1}$", v)])
    rows[h] = [(*panel, "vectors") for panel in rows[h]]
    rows[h].append((f"scores {h + 1}, scaled", q @ k.T / math.sqrt(2), "scores"))
    rows[h].append((f"weights {h + 1}", weights_two[h], "weights"))
    rows[h].append((f"head {h + 1}", both[h], "vectors"))
last = [("heads side by side", side_by_side, "vectors"), ("$W^O$", W_o, "matrix")]
rows.append([*last, ("result", two_heads, "vectors")])
plots.attention_panels(rows, words)
plt.show()

# %% [markdown]
# Look at "to" in head 2. Its query there is $(0, 0)$, so all its scores are 0 and it attends to every
# word equally.
#
# The third row can be read in two ways: concatenate and multiply, or multiply each head by its own rows
# of $W^O$ and add. The second way shows that heads *add up* their contributions:
#
# $$
# [\,\text{head}_1 \;\; \text{head}_2\,]\; W^O = \text{head}_1\, W^O_{0:2} + \text{head}_2\, W^O_{2:4}
# $$
#
# More heads need memory for *more* scores, $H$ times as many. But each score costs only $d_k = D/H$
# multiplications. With $L$ queries and $S$ keys, the multiplications for all scores remain
# $L \cdot S \cdot D$.
#
# *A common mistake.* `Q.reshape(2, 4, 2)` also has the shape of the heads. It reads the numbers in memory
# order, so it gives the first *two words* to head 1, cut into pieces. Nothing warns you.

# %%
summed = both[0] @ W_o[0:2] + both[1] @ W_o[2:4]
assert np.allclose(summed, two_heads, rtol=0, atol=1e-12)
assert np.allclose(weights_two[1, 2], 0.25, rtol=0, atol=1e-12)  # "to" in head 2
for H in (1, 2, 4):
    q, k = split_heads(Q, H), split_heads(K, H)
    held = (q @ np.swapaxes(k, -1, -2)).size
    assert held == H * 4 * 4 and held * q.shape[-1] == 4 * 4 * 4
wrong = Q.reshape(2, 4, 2)
print("right, head 1:", split[0][0].astype(int).tolist())
print("wrong, head 1:", wrong[0].astype(int).tolist(), " <- I and love, cut in two")
assert wrong.shape == split[0].shape and not np.array_equal(wrong, split[0])
assert np.array_equal(wrong[0].ravel(), Q[:2].ravel())

# %% [markdown]
# ## The causal mask: hide the future
#
# A model that writes text word by word cannot see words that it has not written. In training the whole
# sentence is there, and each position must predict the *next* word. If it could see that word, it would
# learn to copy it. The **causal mask** prevents this with one rule: query $i$, at position $t_i$, may
# attend to key $j$, at position $t_j$, if the key is not later.
#
# $$
# \text{mask}_{ij} = (t_i \ge t_j)
# $$
#
# True means "may attend". The package's `causal_mask` takes positions, not lengths. The section on the
# [KV cache](#the-causal-mask-with-a-kv-cache) shows why.

# %%
from pe_numpy import causal_mask

show_source(causal_mask)
mask = np.zeros((4, 4), bool)
for letter, i in zip("ABCD", range(4), strict=True):
    for j in range(4):
        mask[i, j] = i >= j
    print(letter, "  ".join("1     " if allowed else "masked" for allowed in mask[i]))
assert np.array_equal(causal_mask(np.arange(4), np.arange(4)), mask)

# %% [markdown]
# Such an attention mask acts on the scores, before the softmax. A masked score becomes $-\infty$, its
# exponential is exactly 0, and the other weights still sum to 1. In the formula $[\cdot]$ is 1 for true
# and 0 for false.
#
# $$
# w_{ij} = \frac{[\text{mask}_{ij}]\; e^{s_{ij}}}{\sum_m [\text{mask}_{im}]\; e^{s_{im}}}
# $$
#
# *Predict* the first row, and the largest weight of "learn".

# %% fold="output"
output_causal, weights_causal = attention(Q, K, V, mask=mask)
print(weights_causal.round(2).tolist())
loops = attention_by_loops(Q, K, V, allowed=lambda i, j: i >= j)
assert np.allclose(weights_causal, loops[1], rtol=0, atol=1e-12)
assert np.allclose(output_causal, loops[0], rtol=0, atol=1e-12)
assert (weights_causal[~mask] == 0).all()  # exactly zero, not nearly
assert np.allclose(weights_causal.sum(axis=1), 1, rtol=0, atol=1e-12)

# %% [markdown]
# Does the mask work? Change the last word. No earlier output may change, not even in its last bit. This
# is the test for every causal model.

# %%
Q2, K2, V2 = other @ W_q, other @ W_k, other @ W_v  # "I love to you"
before, after = attention(Q, K, V, mask)[0], attention(Q2, K2, V2, mask)[0]
open_before, open_after = attention(Q, K, V)[0], attention(Q2, K2, V2)[0]
print("outputs that change, causal:  ", (before != after).any(axis=1).tolist())
print("outputs that change, unmasked:", (open_before != open_after).any(axis=1).tolist())
assert np.array_equal(before[:3], after[:3]) and not np.array_equal(before[3], after[3])
assert (open_before != open_after).any(axis=1).all()

# %% [markdown]
# *A common mistake* is to mask keys and values instead of scores. A key of zeros has the score 0, and
# $e^0 = 1$ is a weight like any other. So the hidden words still take weight away from the visible ones.
#
# ## The causal mask with a KV cache
#
# When a model generates text, it keeps the keys and values of old words in a **KV cache** (key-value
# cache, [chapter 63](63_decoding.ipynb)). Then there are fewer queries than keys. Suppose that four words
# are in the cache and two arrive, at positions 4 and 5. Their keys join the cache, so there are six keys.
#
# *A common mistake.* `np.tril` puts the triangle in the top left corner, as if the queries were at
# positions 0 and 1. The newest words then ignore almost everything. A mask made from positions is right
# in both cases.

# %%
by_corner = np.tril(np.ones((2, 6))) == 1
by_position = causal_mask([4, 5], np.arange(6))
print("np.tril:    ", by_corner.astype(int).tolist())
print("causal_mask:", by_position.astype(int).tolist())
rng = np.random.default_rng(2)
q6, k6, v6 = rng.standard_normal((3, 6, 8))
full = attention(q6, k6, v6, causal_mask(np.arange(6), np.arange(6)))[0]
assert np.allclose(attention(q6[4:], k6, v6, by_position)[0], full[4:], rtol=0, atol=1e-12)
assert not np.allclose(attention(q6[4:], k6, v6, by_corner)[0], full[4:], rtol=0, atol=0.1)

# %% [markdown]
# ## The padding mask
#
# Several sentences computed in one call are a **batch** (axis $B$). Sentences differ in length,
# but the rows of an array all have the same length. So the shorter ones are filled up with a filler word,
# the **padding**, and a **padding mask** hides its keys. Its shape is `(B, 1, 1, S)`, one row for all
# heads and queries of a sentence. Training code commonly pads on the right. Code that generates text pads
# on the left, so that the newest word of every sentence is in the last column.
#
# Two masks that apply together are joined by `&`. A padded sentence must give the same answers as the
# sentence by itself. The second cell tests this. It pads "I love to" to four rows, with garbage values in
# the last, whose output is not used.

# %% fold="output"
from pe_numpy import padding_mask

show_source(padding_mask)
for side in ("right", "left"):
    ours = padding_mask([3, 4, 1], 4, side=side)
    print(f"{side:5}", ours[:, 0, 0].astype(int).tolist())
    assert ours.shape == (3, 1, 1, 4)  # (B, 1, 1, S): every head, every query
    for b, length in enumerate([3, 4, 1]):
        for j in range(4):
            assert ours[b, 0, 0, j] == (j < length if side == "right" else j >= 4 - length)

# %% alt="Six grids of allowed pairs show a causal mask; padding on the right; both; padding on the left; both, which leaves the first query no key; and two cached queries over six keys."
alone = attention(Q[:3], K[:3], V[:3], causal_mask(np.arange(3), np.arange(3)))[0]
padded = [np.concatenate([m[:3], np.full((1, 4), 99.0)]) for m in (Q, K, V)]
right_pad, left_pad = (padding_mask([3], 4, s)[0, 0].repeat(4, axis=0) for s in ("right", "left"))
assert np.allclose(attention(*padded, mask & right_pad)[0][:3], alone, rtol=0, atol=1e-12)
masks = [
    ("causal", mask, words, words),
    ("padding on the right", right_pad, [*words[:3], "pad"], [*words[:3], "pad"]),
    ("causal and right padding", mask & right_pad, [*words[:3], "pad"], [*words[:3], "pad"]),
    ("cache: queries 4 and 5", by_position, list("45"), list("012345")),
    ("padding on the left", left_pad, ["pad", *words[:3]], ["pad", *words[:3]]),
    ("causal and left padding", mask & left_pad, ["pad", *words[:3]], ["pad", *words[:3]]),
]
plots.mask_grids(masks)
plt.show()

# %% [markdown]
# Rows are queries and columns are keys. A dark cell is a pair that may attend. In the last grid the first
# row is empty: with padding on the left, the padding itself has no key to attend to.
#
# ## Fully masked rows: NaN or zeros? (second reading)
#
# A **fully masked row** of scores belongs to a query that may attend to no key. What should its softmax
# return? The formula gives 0/0, which is **NaN**. Three conventions are in use:
#
# - **zeros** (this package)
# - a **large negative number** such as $-10^9$, added to masked scores
# - **plain** $-\infty$, which gives NaN
#
# *Predict* for the second: do the weights come out as if nothing had been masked, or all equal?


# %% fold="output"
def plain_softmax(x):
    powers = np.exp(x - x.max())
    return powers / powers.sum()


s = np.array([3.0, 1.5, 0.2, 2.5])  # the scores of one row, all of them masked
print(f"{'unmasked softmax':24}", softmax(s).round(3).tolist())
for dtype, fill in ((np.float32, -1e9), (np.float64, -1e9), (np.float64, -1e15)):
    w = plain_softmax(s.astype(dtype) + dtype(fill))
    print(f"{dtype.__name__} {fill:8.0e} added  ", w.astype(float).round(3).tolist())
    near = 0.25 if dtype == np.float32 else softmax(s)
    assert np.allclose(w, near, rtol=0, atol=0.01 if fill == -1e15 else 1e-6)
assert np.spacing(np.float32(1e9)) == 64 and np.spacing(1e15) == 0.125

# %% [markdown]
# Both happen. Near $10^9$, neighbouring float32 numbers are 64 apart, so the scores are rounded away and
# all masked keys get the same share. In float64 the scores survive, and the mask has almost no effect.
# Near $-10^{15}$ they are 0.125 apart, and the weights are wrong in the third decimal.
#
# Code that *replaces* scores by $-10^9$ gets equal shares in float32 and float64. In float16 $-10^9$
# is $-\infty$, and the weights are NaN. In NumPy none of this raises an error. If some key of the row is
# visible, all these weights agree: a masked one is exactly 0.
#
# In the package a fully masked row is zero, in weights and output. The other rows are the same as without
# padding.

# %%
with np.errstate(over="ignore", invalid="ignore"):
    assert np.isnan(plain_softmax(s - np.inf)).all()
    assert np.isnan(plain_softmax(np.full(4, -1e9).astype(np.float16))).all()  # replaced, half
assert (plain_softmax(s + [0, 0, -1e9, -1e9]) == plain_softmax(s + [0, 0, -np.inf, -np.inf])).all()
for dtype in (np.float32, np.float64):  # replaced, not added to
    assert (plain_softmax(np.full(4, -1e9, dtype)) == 0.25).all()
padded = [np.concatenate([np.full((1, 4), 99.0), m[:3]]) for m in (Q, K, V)]  # "pad I love to"
left_output, left_weights = attention(*padded, mask & left_pad)
print("left-padded:", left_weights.round(2).tolist())
assert (softmax(s - np.inf) == 0).all()
assert (left_weights[0] == 0).all() and (left_output[0] == 0).all()
assert np.allclose(left_output[1:], alone, rtol=0, atol=1e-12)  # as without padding

# %% [markdown]
# ## Boolean and additive masks: what True means
#
# An **additive** mask $z$ is added to the scores. It is 0 where a key may be seen and $-\infty$ where
# not. It has the same effect as a boolean mask:
#
# $$
# z_{ij} = \begin{cases} 0 & \text{mask}_{ij} \\ -\infty & \text{otherwise} \end{cases}
# \qquad\text{then}\qquad \operatorname{softmax}(s + z) = \operatorname{softmax}(s \text{ where mask})
# $$
#
# *A common mistake* is the wrong direction. Here, and in `scaled_dot_product_attention` of PyTorch, True
# means "take part". In PyTorch's `nn.MultiheadAttention`, True in `key_padding_mask` means "ignore". With
# the causal mask inverted, each word sees nothing but its own future. No error is raised, and a model
# trained like this is given the very word that it should predict. The test above, which changes the last
# word, finds the mistake immediately.
#
# The package refuses what it can recognise: a mask that is not boolean, or does not fit. An integer mask
# of 0 and 1, *added* to the scores by mistake, would change them by at most 1 and hide nothing.

# %%
additive = np.where(mask, 0.0, -np.inf)
assert np.allclose(attention(Q, K, V, bias=additive)[1], weights_causal, rtol=0, atol=1e-12)
print(additive[1].tolist())

# %%
upside_down = attention(Q, K, V, ~mask)
assert (upside_down[1][mask] == 0).all() and (upside_down[1][3] == 0).all()
assert (attention(Q2, K2, V2, ~mask)[0][:3] != upside_down[0][:3]).any(axis=1).all()
for attempt in (mask.astype(int), mask[:, :3]):
    try:
        attention(Q, K, V, mask=attempt)
        raise AssertionError("this mask should have been refused")
    except ValueError as error:
        print(str(error).replace(". ", ".\n    "))
added = softmax(scaled_scores + mask)  # the mistake: added, not applied
assert (added[~mask] > 0.001).all()

# %% [markdown]
# ## Self-attention and cross-attention
#
# So far queries, keys and values came from the same four words. This is **self-attention**. A Transformer
# that translates has two parts: the **encoder** reads the source sentence, and the **decoder** writes the
# translation. The paper uses attention in three ways:
#
# - self-attention in the encoder, without a causal mask
# - self-attention in the decoder, with it
# - **cross-attention** in every decoder layer, without it
#
# In cross-attention the queries come from the words written so far, and the keys and values come from the
# source. So the number of queries $L$ differs from the number of keys $S$ ([chapter 62](62_model.ipynb)).
#
# All leading axes are batch axes. The second half of the cell takes sizes that all differ, so that no
# swapped axis can pass by accident, and compares each sequence and head with the loops.

# %%
target = np.array([[1, 0, 1, 0], [0, 1, 0, 1]], float)  # two words of the translation so far
cross, cross_weights = attention(target @ W_q, K, V)  # L = 2, S = 4
assert cross.shape == (2, 4) and cross_weights.shape == (2, 4)
assert np.allclose(cross, attention_by_loops(target @ W_q, K, V)[0], rtol=0, atol=1e-12)
rng = np.random.default_rng(3)
shapes = (2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 6)  # (B, H, L, K), (B, H, S, K), (B, H, S, Kv)
q, k, v = (rng.standard_normal(shape) for shape in shapes)
big, big_weights = attention(q, k, v, mask=padding_mask([7, 4], 7))
for b, h in np.ndindex(2, 3):
    length = (7, 4)[b]
    expected = attention_by_loops(q[b, h], k[b, h], v[b, h], lambda i, j, n=length: j < n)[0]
    assert np.allclose(big[b, h], expected, rtol=0, atol=1e-12)
print("output", big.shape, "  weights", big_weights.shape)

# %% [markdown]
# ## Attention bias: added after the scale
#
# Several positional encodings, such as [ALiBi](35_alibi.ipynb), add a number to each score, a **bias**.
# It is added **after** the division by the scale. If it were divided too, it would be weaker by the
# factor $\sqrt{d_k}$. [T5](33_t5.ipynb) also has a bias, and no scale.
#
# $$
# s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}} + b_{ij}
# $$

# %%
distance = np.arange(4)[:, None] - np.arange(4)  # query minus key
bias = -0.5 * np.abs(distance)
biased = attention(Q, K, V, bias=bias)[1]
for i in range(4):
    powers = [math.exp(scores[i, j] / math.sqrt(4) + bias[i, j]) for j in range(4)]
    assert np.allclose(biased[i], np.array(powers) / sum(powers), rtol=0, atol=1e-12)
inside = softmax((scores + bias) / math.sqrt(4))
print("weights of learn, bias after the scale: ", biased[3].round(3).tolist())
print("                  bias inside the scale:", inside[3].round(3).tolist())
assert np.allclose(inside, attention(Q, K, V, bias=bias / 2)[1], rtol=0, atol=1e-12)  # half of it
assert not np.allclose(inside, biased, rtol=0, atol=0.05)

# %% [markdown]
# ## Log-softmax: logarithms of weights (second reading)
#
# A language model also ends in a softmax, over all words that could come next. Training measures the
# model's error by the logarithm of one of those weights. Taking the softmax first and its logarithm
# afterwards fails where a weight underflows to 0. The difference below, computed relative to the largest
# score, does not fail:
#
# $$
# \log w_j = s_j - \log \sum_m e^{s_m}
# $$

# %%
from pe_numpy import log_softmax

show_source(log_softmax)
for i in range(4):
    total = math.log(sum(math.exp(s) for s in scores[i]))
    assert np.allclose(log_softmax(scores)[i], [s - total for s in scores[i]], rtol=0, atol=1e-12)
with np.errstate(divide="ignore"):
    print("\nlog of softmax:", np.log(softmax([0.0, -800.0])).tolist())
print("log_softmax:   ", log_softmax([0.0, -800.0]).tolist())
assert log_softmax([0.0, -800.0])[1] == -800

# %% [markdown]
# ## What attention costs
#
# Each pair of query and key has a score: $L \cdot S$ of them for each head. A score takes $d_k$
# multiplications. To sum values of width $d_v$ (mostly $d_v = d_k$) takes $d_v$ multiplications more for
# each weight:
#
# $$
# \text{multiplications} = L\,S\,(d_k + d_v), \qquad \text{scores held} = L\,S
# $$
#
# At a length of 16,384 one head stores 268,435,456 scores, a gibibyte in float32. [Chapter
# 12](12_attention_blocks.ipynb) computes attention without storing them all. The cell checks the count
# with a special number type, which counts every multiplication that it takes part in.


# %%
class Counted(float):
    products, __array_ufunc__ = 0, None  # NumPy leaves the product to this class

    def __mul__(self, other):
        Counted.products += 1
        return float(self) * float(other)

    __rmul__ = __mul__


counted = (np.vectorize(Counted, otypes=[object])(m[0, 0]) for m in (q, k, v))
mixed, held = attention_by_loops(*counted)  # L = 5, S = 7, keys of width 8, values of width 6
assert np.allclose(mixed, attention(q, k, v)[0][0, 0], rtol=0, atol=1e-12)
assert Counted.products == 5 * 7 * (8 + 6) and held.size == 5 * 7
print(f"length 16,384: {16_384**2:,} scores, in float32 {4 * 16_384**2:,} bytes for each head")

# %% [markdown]
# ## In short
#
# - **What are queries, keys and values, and why a dot product?** They are three projections of each
#   word. The dot product of a query and a key is large if they point the same way.
#   [Queries, keys, values](#queries-keys-values), [scores](#scores-dot-products-of-queries-and-keys).
# - **In which order is attention computed?** Scores, division by $\sqrt{d_k}$, bias, mask, softmax over
#   the keys, weighted sum. A masked score becomes $-\infty$. Here, as in PyTorch's
#   `scaled_dot_product_attention`, True in a mask means "may attend".
#   [Attention output](#attention-output-a-weighted-mean-of-the-values),
#   [the causal mask](#the-causal-mask-hide-the-future), [padding mask](#the-padding-mask).
# - **Why divide by $\sqrt{d_k}$?** If components are independent with mean 0 and variance 1, a dot
#   product has variance $d_k$. Undivided, at width 64, one of 16 keys takes about 0.85 of the weight on
#   average. [Head dimension](#why-divide-by-the-square-root-of-the-head-dimension).
# - **Where does NaN come from?** From overflow, unless the softmax first subtracts the largest score.
#   Also from a row whose scores are all $-\infty$, which is 0/0. This package returns zeros for it.
#   [Softmax](#from-scores-to-weights-the-softmax),
#   [fully masked rows](#fully-masked-rows-nan-or-zeros-second-reading).
# - **How is one projection cut into heads?** Reshape `(L, D)` to `(L, H, K)`, then swap the first two
#   axes. A reshape straight to `(H, L, K)` runs and is wrong. Heads attend differently, and $W^O$ mixes
#   their outputs.
#   [Multi-head attention](#multi-head-attention-two-heads).
# - **What does it cost?** Each head takes $LS\,(d_k + d_v)$ multiplications and stores $LS$ scores, with
#   $d_v$ for the width of the values. The projections come on top.
#   [What attention costs](#what-attention-costs).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 10` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 10_attention.py` checks yours.
#
# ### Exercise 1: Weights by hand
#
# "to" has the scores 0, 0, 4, 2. Write its four weights with the number $e$. How large is the share of
# its own value in the output of "to", and which component of the output is negative?
#
# <details><summary>Hint 1</summary>
#
# Divide by 2 first. The exponentials are 1, 1, $e^2$ and $e$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The sum is $2 + e + e^2$. Every weight is one of these numbers over the sum.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Its own value gets $e^2 / (2 + e + e^2)$, about three fifths. Component 0 is negative: the value of "to"
# is $-2$ there, and the other three cannot make up for it.
#
# ```python
# total = 2 + math.e + math.e**2
# solution = np.array([1, 1, math.e**2, math.e]) / total
# assert np.allclose(solution, weights[2], rtol=0, atol=1e-12)
# assert abs(weights[2, 2] - 3 / 5) < 0.02
# assert (solution @ V < 0).tolist() == [True, False, False, False]
# ```
#
# </details>
#
# ### Exercise 2: A normalised ReLU instead of the softmax
#
# A normalised ReLU would also give shares: $w_j = \max(s_j, 0) / \sum_m \max(s_m, 0)$. Write it. Which
# two properties of the softmax does it lose, and for which of our four words does a weight become 0?
#
# <details><summary>Hint 1</summary>
#
# Add a constant to all scores of a row.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# What if no score of a row is positive?
#
# </details>
#
# <details><summary>Solution</summary>
#
# It is not invariant to a shift, and a row without a positive score gives 0/0 (here we return zeros).
# Every one of our words has a weight of 0, since each row has a score that is not positive.
#
# ```python
# def relu_weights(x):
#     positive = np.maximum(x, 0)
#     total = positive.sum(axis=-1, keepdims=True)
#     return positive / np.where(total == 0, 1, total)
#
# assert (relu_weights(scores) == 0).any(axis=1).all()
# assert not np.allclose(relu_weights(scores + 1), relu_weights(scores), rtol=0, atol=0.01)
# assert (relu_weights(np.array([-1.0, -2.0])) == 0).all()
# ```
#
# </details>
#
# ### Exercise 3: A sliding-window mask
#
# Build a mask with which each query attends to itself and the two words before it, and to no other. It
# must also be right for two new queries at positions 4 and 5 with six keys.
#
# <details><summary>Hint 1</summary>
#
# Distance is query position minus key position.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Join two conditions on the distance by `&`. One of them is `causal_mask`.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def window_mask(q_positions, k_positions, window):
#     d = np.asarray(q_positions)[:, None] - np.asarray(k_positions)
#     return causal_mask(q_positions, k_positions) & (d < window)
#
# full = window_mask(np.arange(6), np.arange(6), 3)
# assert np.array_equal(window_mask([4, 5], np.arange(6), 3), full[4:])
# assert full[5].astype(int).tolist() == [0, 0, 0, 1, 1, 1]
# ```
#
# </details>
#
# ### Exercise 4: What a narrow head cannot score
#
# Show that with a head of width 1 three words cannot all prefer themselves: in no such score matrix is
# every diagonal entry the strict maximum of its row. Show that with width 2 they can.
#
# <details><summary>Hint 1</summary>
#
# In width 1 the scores of row $i$ are $q_i k_0, q_i k_1, q_i k_2$: the sign of $q_i$ decides.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# In width 2 put the queries and keys on a circle.
#
# </details>
#
# <details><summary>Solution</summary>
#
# In width 1 a row prefers the largest key (for $q_i > 0$) or the smallest (for $q_i < 0$). These are two
# choices, so three words cannot each get their own. On a circle every point is nearest to itself.
#
# ```python
# rng = np.random.default_rng(0)
# for _ in range(1000):
#     s = np.outer(rng.standard_normal(3), rng.standard_normal(3))
#     assert len(set(s.argmax(axis=1).tolist())) <= 2
# angle = 2 * np.pi * np.arange(3) / 3
# circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
# assert (circle @ circle.T).argmax(axis=1).tolist() == [0, 1, 2]
# ```
#
# </details>
#
# ## In practice
#
# - **Direction of boolean masks.** True means "take part" here and in PyTorch's
#   `scaled_dot_product_attention`. It means "ignore" in the `key_padding_mask` of PyTorch's
#   `nn.MultiheadAttention`, and "mask this" in the
#   [`attention`](https://github.com/tracel-ai/burn/blob/078d2cb8956ab97248cd1683d46a83c70c1472a6/crates/burn-tensor/src/tensor/module.rs)
#   of Rust's burn. Test with one changed word.
# - **Fully masked rows.** `scaled_dot_product_attention` gave NaN for them in 2023 ([pytorch
#   #103963](https://github.com/pytorch/pytorch/issues/103963),
#   [#103749](https://github.com/pytorch/pytorch/issues/103749)). Reports continue for PyTorch 2.8.0
#   ([#163997](https://github.com/pytorch/pytorch/issues/163997)) and 2.13.0 ([unsloth
#   #9848](https://github.com/unslothai/unsloth/pull/9848)). mlx stopped giving NaN in its [pull request
#   #2608](https://github.com/ml-explore/mlx/pull/2608). If you add $-10^9$ instead, the weights of such a
#   row look right.
# - **Corner of the causal triangle.** For $L \ne S$, `is_causal=True` in PyTorch aligns the triangle to
#   the top left, which is the wrong corner with a KV cache. `torch.nn.attention.bias` has
#   `causal_lower_right` for the other corner.
# - **A masked NaN is still a NaN.** Its weight is exactly 0, and $0 \cdot \text{NaN}$ is NaN ([pytorch
#   #101967](https://github.com/pytorch/pytorch/issues/101967)). The same happens here. Clear the padding,
#   don't only mask it.
# - **A test with one key proves nothing about the scale.** The softmax of a single score is 1 for any
#   scale. Without DeepSeek's factor on the softmax scale, logits were almost exactly right at position 0
#   and wrong later ([onnxruntime/mobius #548](https://github.com/onnxruntime/mobius/pull/548)).
# - **Precision.** A single float64 number can double the memory of everything after it. `math.sqrt`
#   returns a Python number, which adapts to the array. `np.sqrt` of a Python number returns a float64
#   scalar, and NumPy 2 promotes the array. In float16 the largest number is 65,504. A dot product passes
#   that easily, and then the division by $\sqrt{d_k}$ comes too late. The package computes float16 input
#   in float32 and casts the result back.

# %%
V_nan = V.copy()
V_nan[3] = np.nan  # the padding contains garbage
result = attention(Q, K, V_nan, mask=padding_mask([3], 4)[0, 0])[0]
print("NaN in a masked value reaches", int(np.isnan(result).all(axis=1).sum()), "of 4 outputs")
assert np.isnan(result).all()
first = attention(Q[:1], K[:1], V[:1])[0]
assert np.array_equal(first, attention(Q[:1], K[:1], V[:1], scale=100.0)[0])  # one key: any scale

# %%
small, half = np.ones((2, 8), np.float32), np.full((1, 16), 70, np.float16)
assert (small / math.sqrt(8)).dtype == np.float32 and (small / np.sqrt(8)).dtype == np.float64
assert attention(small, small, small, bias=np.zeros((2, 2)))[0].dtype == np.float32
with np.errstate(over="ignore"):
    naive = np.multiply(half, half).sum(dtype=np.float16)
print("q . k in float16:", float(naive), "  true:", 16 * 70 * 70)
assert np.isinf(naive) and int(np.finfo(np.float16).max) == 65_504
out16 = attention(half, half, half)[0]
assert out16.dtype == np.float16 and out16.tolist() == half.tolist()  # one key: its value

# %% [markdown]
# ## Further reading
#
# - A. Vaswani and others, "Attention is all you need", 2017,
#   [arXiv:1706.03762](https://arxiv.org/abs/1706.03762). Section 3.2.1 and equation (1) give scaled
#   dot-product attention, with the argument for $\sqrt{d_k}$ in a footnote. Section 3.2.2 is on heads,
#   section 3.2.3 on the three uses and the mask.
# - Next: [chapter 11](11_why_position.ipynb), where position can enter.
