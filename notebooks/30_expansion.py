# %% [markdown]
# # 30. From absolute to relative: the four terms of a score
#
# *Which four terms does a score have, and what does each relative scheme do with them?*
#
# 40 minutes. Needs [11 Why attention needs positional encoding](11_why_position.ipynb), [20 Sinusoidal positional encoding](20_sinusoidal.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Put twenty words before a sentence, and its meaning does not change. But a
# model that adds a positional encoding to each word now computes different attention scores. You
# split such a score into four terms, find which of them depend on positions, and see that none
# depends only on the distance between two words. Then you rebuild seven well-known schemes, from
# Shaw to RoPE, by keeping, dropping or replacing these terms. At the end you can read any formula
# of this family.

# %% fold="input" alt="Four heat maps of the terms of a score for nine words, and their sum. Equal words give equal rows where the query contributes its word, and equal columns where the key does. In the sum nothing repeats."
import matplotlib.pyplot as plt
import numpy as np
from pe_numpy import attend, four_terms, relative_distance, sinusoidal, softmax
from pe_numpy.book.plots import expansion as plots

words = "the dog saw the cat and the cat ran".split()
L, D, K = len(words), 32, 16
rng = np.random.default_rng(0)
vocabulary = sorted(set(words))
x = rng.standard_normal((len(vocabulary), D))[[vocabulary.index(word) for word in words]]  # (L, D)
W_Q, W_K = rng.standard_normal((2, D, K)) / np.sqrt(D)
p = np.sqrt(2) * sinusoidal(np.arange(L), D)  # (L, D)
terms = four_terms(x, p, W_Q, W_K)  # four times (L, L)
plots.four_maps(terms, words)
plt.show()

# %% [markdown]
# ## Absolute positions: the same sentence, twenty words later
#
# The figure shows one number per query (row) and key (column). Red is positive and blue is
# negative. The four maps on the left add up to the scores on the right. In each, the query and the
# key bring their word or their *place*, that is, their position in the sentence. Nothing in this
# chapter is trained, so words and matrices are random, also in this figure.
#
# "The dog saw the cat." Put twenty words before it, and the sentence still means the same: the dog
# is one word before "saw". But every word has a different position.
#
# Each of our nine words has a vector $x_i$ of $D=32$ numbers, and each position has a sinusoidal
# encoding $p_i$ of about the same length. The encoding is *added* to the word. Such a scheme is
# called **absolute**, because the encoding means "position 7" and not "three words back". Two
# matrices $W_Q$ and $W_K$ compute queries and keys with head dimension $K=16$. The score of query
# $i$ and key $j$ is their product divided by $\sqrt K$. Vectors are rows, so a transposed vector is
# a column:
#
# $$s_{ij}=\frac{\big((x_i+p_i)W_Q\big)\big((x_j+p_j)W_K\big)^\top}{\sqrt K}$$
#
# *Predict*: "saw" is word 2 and "dog" is word 1. How does the score of "saw" for "dog" change when
# the sentence begins at position 5, or at 20?


# %% fold="output"
def code(at):
    return np.sqrt(2) * sinusoidal(at, D)


def absolute_scores(at):  # (L, L), the sentence at the places `at`
    h = x + code(at)
    return (h @ W_Q) @ (h @ W_K).T / np.sqrt(K)


for start in (0, 5, 20):
    s = absolute_scores(start + np.arange(L))
    print(f"begins at {start:2}: score {s[2, 1]:6.3f}, weight {softmax(s)[2, 1]:.3f}")
    i_j = ((x[2] + code([start + 2])) @ W_Q) @ ((x[1] + code([start + 1])) @ W_K).T
    assert np.allclose(s[2, 1], i_j / np.sqrt(K), rtol=0, atol=1e-12)


# %% [markdown]
# The words and their distance are the same, and the three scores differ. A model has to learn for
# each position what "one word back" looks like.
#
# ## Four terms: expand the product
#
# At school you split $11\cdot23$ into $(10+1)(20+3)$: two brackets with two parts each give four
# products. The same works here, because a matrix product is linear. Each bracket splits into a part
# from the word (**content**) and a part from the position. Then each part of the query is
# multiplied by each part of the key. Transposing reverses the order of the factors,
# $(x_jW_K)^\top=W_K^\top x_j^\top$:
#
# $$\begin{aligned}\sqrt K\,s_{ij}={}
# &(x_iW_Q+p_iW_Q)\,(W_K^\top x_j^\top+W_K^\top p_j^\top)\\
# {}={}&\underbrace{x_iW_QW_K^\top x_j^\top}_{\text{content-content}}
# +\underbrace{x_iW_QW_K^\top p_j^\top}_{\text{content-position}}\\
# {}+{}&\underbrace{p_iW_QW_K^\top x_j^\top}_{\text{position-content}}
# +\underbrace{p_iW_QW_K^\top p_j^\top}_{\text{position-position}}\end{aligned}$$
#
# This is the **expansion** of the score. The cell computes it number by number: $a$ runs over the
# components of the left vector, $e$ over the components of the right one, and $c$ over the head
# dimension.


# %%
def term_by_loops(left, right, w_q, w_k):
    n, (D, K) = len(left), w_q.shape
    out = np.zeros((n, n))
    for i, j in np.ndindex(n, n):
        for a, e, c in np.ndindex(D, D, K):
            out[i, j] += left[i][a] * w_q[a, c] * w_k[e, c] * right[j][e] / np.sqrt(K)
    return out


x3, p3, w_q, w_k = x[:3, :4], p[:3, :4], W_Q[:4, :3], W_K[:4, :3]  # three words, D = 4, K = 3
by_loops = [term_by_loops(a, b, w_q, w_k) for a in (x3, p3) for b in (x3, p3)]
brackets = (x3 @ w_q + p3 @ w_q) @ (w_k.T @ x3.T + w_k.T @ p3.T) / np.sqrt(3)
whole = ((x3 + p3) @ w_q) @ ((x3 + p3) @ w_k).T / np.sqrt(3)
assert np.allclose([sum(by_loops), whole], brackets, rtol=0, atol=1e-12)

# %% [markdown]
# The package's function projects words and encodings once each, and pairs the four results:

# %%
from pe_numpy.book.show import show_source

show_source(four_terms)
for got, expected in zip(four_terms(x3, p3, w_q, w_k), by_loops, strict=True):
    assert np.allclose(got, expected, rtol=0, atol=1e-12)
assert np.allclose(sum(terms), absolute_scores(np.arange(L)), rtol=0, atol=1e-12)

# %% [markdown]
# ## What each term measures
#
# The four maps at the top are a table with two rows and two columns. In its upper row the query
# contributes its word, and equal words have equal rows. In its left column the key contributes its
# word, and equal words have equal columns. In the lower right map, no word takes part. The sum
# mixes all of this. In the table, "like" means "point the same way, after $W_Q$ and $W_K$":
#
# | term | what it asks |
# |---|---|
# | content-content | Does a word like this one like a word like that one? |
# | content-position | Does a word like this one like position $j$, no matter which word is there? |
# | position-content | Does position $i$ like a word like that one? |
# | position-position | Does position $i$ like position $j$? |
#
# *Predict* for each term: does it change if we replace the words? Does it change if all positions
# move by 20?

# %% fold="output"
names = ("content-content", "content-position", "position-content", "position-position")
other_words = four_terms(x[::-1], p, W_Q, W_K)
moved = four_terms(x, code(20 + np.arange(L)), W_Q, W_K)
for name, term, other, later in zip(names, terms, other_words, moved, strict=True):
    rows = all(np.allclose(term[0], term[n], rtol=0, atol=1e-12) for n in (3, 6))  # "the"
    columns = all(np.allclose(term[:, 0], term[:, n], rtol=0, atol=1e-12) for n in (3, 6))
    assert (rows, columns) == (name.startswith("content"), name.endswith("content"))
    reacts = [not np.allclose(new, term, rtol=0, atol=1e-9) for new in (other, later)]
    print(f"{name:18} {reacts}")
    assert reacts == ["content" in name, "position" in name]

# %% [markdown]
# Three of the four terms depend on the positions, and so on the order. The next question is whether
# one of them depends on the *distance*.
#
# The expansion is exact in the **first layer**, where the input is a word plus an encoding. In
# deeper layers the two are already mixed. The relative schemes below give positions to every layer
# again, and their $x_i$ is the input of the layer.
#
# ## Which term depends only on the distance?
#
# A score that depends only on $i-j$ has one value along each diagonal of its matrix. Such a matrix
# is called a **Toeplitz matrix**. To see the positions without the words, take a sentence that
# repeats one word, "the the the ...", forty times. *Predict* for each term: is it Toeplitz? If not,
# what does it look like?


# %% fold="output" alt="Five heat maps for a sentence of forty equal words. They show a flat map, vertical stripes, horizontal stripes, a pattern of patches, and last the diagonal stripes of a score that depends on the distance."
def along(s):
    """The largest range of values along one diagonal: 0 for a Toeplitz matrix."""
    return max(float(np.ptp(np.diagonal(s, n))) for n in range(1 - len(s), len(s)))


same = np.tile(x[0], (40, 1))  # one word forty times
one_word = dict(zip(names, four_terms(same, code(np.arange(40)), W_Q, W_K), strict=True))
ranges = {name: along(term) for name, term in one_word.items()}
assert all(r > 0.5 if "position" in name else r < 1e-12 for name, r in ranges.items())
line = np.random.default_rng(3).standard_normal(79)  # a number for each distance
wanted = line[np.subtract.outer(np.arange(40), np.arange(40)) + 39]
assert along(wanted) == 0
plots.one_word_maps({**one_word, "wanted: by distance": wanted})
plt.show()

# %% [markdown]
# Vertical or horizontal stripes show an absolute position, and diagonal stripes show a distance:
#
# - content-content is flat: with equal words it distinguishes nothing.
# - content-position depends only on $j$: every "the" likes some positions.
# - position-content depends only on $i$: in row $i$ all keys have the same number, and the softmax
#   ignores a number that is added to a whole row.
# - position-position depends on $i$ and on $j$, and not only on $i-j$, since $W_QW_K^\top$ is
#   between the two encodings. [Chapter 20](20_sinusoidal.ipynb) finds the few matrices with which
#   the term depends only on $i-j$, and exercise 2 builds one.
#
# *A common mistake* is a short cut to the distance: "if words and positions are independent, the
# mixed terms vanish". They vanish **on average** over many words at one position, if words have
# mean 0. In a single sentence they are typically as large as content-content. Dropping them, or
# replacing the last term with a function of $i-j$, is a designer's *decision*.

# %%
many = np.random.default_rng(4).standard_normal((100_000, D))  # random words
mixed = many @ W_Q @ (p @ W_K).T / np.sqrt(K)  # (words, places)
print(f"largest mean {np.abs(mixed.mean(axis=0)).max():.2f}, typical size {mixed.std():.2f}")
assert np.allclose(mixed.mean(axis=0), 0, rtol=0, atol=0.02) and mixed.std() > terms[0].std()

# %% [markdown]
# In a *trained* BERT Ke et al. (TUPE, section 3.1) find the mixed terms "uniform across positions",
# and drop them without loss. He et al. (DeBERTa) argue that mixed terms of *distances* matter.
#
# ## How relative schemes change the four terms
#
# The schemes differ in three decisions: which of the four terms remain, what replaces $p_j$ and
# $p_i$, and whether the values also receive a position. First we need the distances. A distance is
# $i-j$, query minus key, so positive means "the key is in the past".

# %%
show_source(relative_distance)
at = np.arange(L)
distance = relative_distance(at, at)
assert distance.tolist() == [[i - j for j in at] for i in at]

# %% [markdown]
# ### The distance matrix as a strided view (second reading)
#
# $L$ queries and $S$ keys make $L\cdot S$ pairs, but only $L+S-1$ different distances, from
# $-(S-1)$ to $L-1$. All entries of the matrix come from one **line** of $L+S-1$ numbers: row $i$ is
# the line read backwards, from entry $i+S-1$ on.
#
# A NumPy array is a piece of memory with one **stride** per axis, the number of bytes to the next
# entry along it. A step of *minus* one number along the keys reads the line backwards. The matrix
# is therefore a *view* of the line, without a copy; this book calls it a **window**.
# `relative_distance` returns a window whenever positions count up by 1:
#
# $$\text{window}_{ij}=\text{line}_{\,i-j+S-1}$$
#
# The window is read-only, because writing one entry would change a whole diagonal. Copy it first,
# with `np.array(window)`.

# %% alt="A line of nine distances above a window of four rows and six columns. The first row reads six numbers of the line from right to left, and the last row does the same three places further right."
line = np.arange(-5, 4)
window = relative_distance([0, 1, 2, 3], [0, 1, 2, 3, 4, 5])
for i, j in np.ndindex(4, 6):
    assert window[i, j] == line[i - j + 5]
assert window.strides == (window.itemsize, -window.itemsize) and not window.flags.writeable
plots.line_and_window(line, L=4, S=6)
plt.show()

# %% [markdown]
# A score that depends only on the distance is computed once for each distance and then copied to
# all pairs. `each_distance` does this by returning a window on the results, and the package's T5
# and ALiBi use it. Where a vector for the distance is multiplied by the query, [chapter
# 31](31_shaw.ipynb) spreads the products over the pairs.

# %%
from pe_numpy.relative.distance import each_distance

asked, far = [], relative_distance(np.arange(512), np.arange(512))
spread = each_distance(lambda d: asked.append(d.size) or -np.abs(d), far)
print(f"pairs: {spread.size:,}   scores computed: {sum(asked):,}")
assert np.array_equal(spread, -np.abs(far)) and sum(asked) == 512 + 512 - 1

# %% [markdown]
# ## Eight ways to fill the four terms
#
# From here on words come without encodings: $q_i=x_iW_Q$ and $k_j=x_jW_K$. We write each scheme's
# terms with a loop over all pairs, and assert that their sum is what the package computes.

# %%
from pe_numpy import alibi_bias, causal_mask, deberta_scores, rope, rope_frequencies, rope_matrix
from pe_numpy import shaw_scores, shaw_values, t5_bias, t5_bucket
from pe_numpy import transformer_xl_scores, tupe_scores

q, k = x @ W_Q, x @ W_K  # (L, K)
draw = np.random.default_rng(5)


def each_pair(f):
    return np.array([[f(i, j) for j in range(L)] for i in range(L)])


def equal(a, b):
    return np.allclose(a, b, rtol=0, atol=1e-12)


# %% [markdown]
# ### Shaw: a vector for each distance, in the key
#
# The first relative scheme, of 2018 ([chapter 31](31_shaw.ipynb)), drops both terms in which the
# query contributes its position. In the remaining mixed term $p_jW_K$ becomes $R_{i-j}$, one
# learned vector for each distance. Distances beyond $m$ are **clipped**, that is, replaced by $m$
# or $-m$:
#
# $$\begin{gathered}s_{ij}=\frac{q_i\cdot k_j+q_i\cdot R_{c(i-j)}}{\sqrt K}\\[1ex]
#   c(d)=\max(-m,\min(m,d))\end{gathered}$$

# %%
content = each_pair(lambda i, j: q[i] @ k[j] / np.sqrt(K))
m = 4
R = draw.standard_normal((2 * m + 1, K))  # row c + m belongs to the clipped distance c
query_distance = each_pair(lambda i, j: q[i] @ R[max(-m, min(m, i - j)) + m] / np.sqrt(K))
assert equal(content + query_distance, shaw_scores(q, k, R, distance))
edits = {"absolute": terms, "Shaw": (content, query_distance, None, None)}

# %% [markdown]
# ### Transformer-XL: all four terms
#
# In the second and fourth term ([chapter 32](32_transformer_xl.ipynb)), $p_j$ becomes the
# sinusoidal encoding $R_{i-j}$ of the *distance*, with its own projection $W_{K,R}$. In the third
# and fourth, $p_iW_Q$ becomes a learned vector, $u$ or $v$, which is the same for every position.
# XLNet uses the same terms.
#
# $$\begin{gathered}\sqrt K\,s_{ij}=q_i\cdot k_j+q_i\cdot r_{i-j}+u\cdot k_j+v\cdot r_{i-j}\\
#   r_d=R_dW_{K,R}\end{gathered}$$

# %%
W_KR = draw.standard_normal((D, K)) / np.sqrt(D)
r = code(np.arange(1 - L, L)) @ W_KR  # (2L - 1, K), the distances 1 - L ... L - 1
u, v = draw.standard_normal((2, K))
xl = [
    content,
    each_pair(lambda i, j: q[i] @ r[i - j + L - 1] / np.sqrt(K)),
    each_pair(lambda i, j: u @ k[j] / np.sqrt(K)),
    each_pair(lambda i, j: v @ r[i - j + L - 1] / np.sqrt(K)),
]
got = transformer_xl_scores(q[None], k[None], r[None], u[None], v[None], distance)
assert equal(sum(xl), got[0])  # one head
edits["Transformer-XL"] = tuple(xl)

# %% [markdown]
# ### T5: one number for each bucket
#
# Both mixed terms are dropped ([chapter 33](33_t5.ipynb)). The position-position term becomes a
# learned *number* for each **bucket** of distances. The function $f$ gives each small distance its
# own bucket and lets large ones share. Each head has its own numbers, which are added after the
# division. T5 itself leaves out $\sqrt K$ and starts with smaller matrices instead.
#
# $$s_{ij}=\frac{q_i\cdot k_j}{\sqrt K}+b_{f(i-j)}$$

# %%
b = draw.standard_normal((8, 1)) / 2  # 8 buckets, one head
bias = each_pair(lambda i, j: b[t5_bucket(i - j, num_buckets=8, max_distance=8), 0])
assert equal(bias, t5_bias(b, distance, max_distance=8)[0])
edits["T5"] = (content, None, None, bias)

# %% [markdown]
# ### TUPE: positions apart from words
#
# The mixed terms are dropped here also ([chapter 33](33_t5.ipynb)). The position-position term
# *stays absolute*, but has its own projections $U_Q$ and $U_K$. The variant TUPE-R adds T5's bias,
# and only this bias depends on distances.
#
# $$s_{ij}=\frac{q_i\cdot k_j}{\sqrt{2K}}+\frac{(p_iU_Q)\cdot(p_jU_K)}{\sqrt{2K}}+b_{f(i-j)}$$

# %%
U_Q, U_K = draw.standard_normal((2, D, K)) / 3
pq, pk = p @ U_Q, p @ U_K  # (L, K)
places = each_pair(lambda i, j: pq[i] @ pk[j] / np.sqrt(2 * K))
got = tupe_scores(q[None], k[None], pq[None], pk[None], bias)
edits["TUPE"] = (content / np.sqrt(2), None, None, places + bias)
assert equal(edits["TUPE"][0] + edits["TUPE"][3], got[0])

# %% [markdown]
# ### DeBERTa: both mixed terms
#
# DeBERTa is the mirror image of T5 ([chapter 34](34_deberta.ipynb)). The mixed terms remain, with
# learned vectors for distances instead of $p_j$ *and* of $p_i$. The position-position term is
# dropped. The tables $K^r$ and $Q^r$ have $2m$ rows; row $\delta(i,j)=\max(0,\min(2m-1,\,i-j+m))$
# belongs to the distance $i-j$.
#
# $$s_{ij}=\frac{q_i\cdot k_j+q_i\cdot K^r_{\delta(i,j)}+k_j\cdot Q^r_{\delta(j,i)}}{\sqrt{3K}}$$

# %%
Q_r, K_r = draw.standard_normal((2, 2 * m, K))


def delta(i, j):
    return max(0, min(2 * m - 1, i - j + m))


c2p = each_pair(lambda i, j: q[i] @ K_r[delta(i, j)] / np.sqrt(3 * K))
p2c = each_pair(lambda i, j: k[j] @ Q_r[delta(j, i)] / np.sqrt(3 * K))
got = deberta_scores(q[None], k[None], Q_r[None], K_r[None], distance)
edits["DeBERTa"] = (content / np.sqrt(3), c2p, p2c, None)
assert equal(sum(edits["DeBERTa"][:3]), got[0])

# %% [markdown]
# ### ALiBi: a straight line
#
# ALiBi changes the same terms as T5, but learns nothing ([chapter 35](35_alibi.ipynb)). Its penalty
# for a distance is the distance itself, times a fixed slope $m_h$ for each head. The paper's models
# only look back, where $|i-j|=i-j$.
#
# $$s_{ij}=\frac{q_i\cdot k_j}{\sqrt K}-m_h\,|i-j|$$

# %%
slope = 0.25
penalty = each_pair(lambda i, j: -slope * abs(i - j))
assert equal(penalty, alibi_bias([slope], distance)[0])
edits["ALiBi"] = (content, None, None, penalty)

# %% [markdown]
# ### RoPE, for comparison
#
# RoPE adds nothing and *changes the first term*. A query at $i$ is rotated by the matrix
# $\mathcal R_i$, a key at $j$ by $\mathcal R_j$. Since
# $\mathcal R_i^\top\mathcal R_j=\mathcal R_{j-i}$, only the distance remains between query and key
# ([chapter 40](40_rope_derived.ipynb) derives it).
#
# $$s_{ij}=\frac{q_i\,\mathcal R_{j-i}\,k_j^\top}{\sqrt K}$$

# %%
theta = rope_frequencies(K)
turned = each_pair(lambda i, j: q[i] @ rope_matrix(j - i, theta) @ k[j] / np.sqrt(K))
assert equal(turned, rope(q, at) @ rope(k, at).T / np.sqrt(K))
edits["RoPE"] = (turned, None, None, None)

# %% [markdown]
# ## Relative positional encodings side by side
#
# A formula **replaces** the term of the first row; "–" means dropped. The last column names what is
# learned for positions.
#
# | scheme | content-content | content-position | position-content | position-position | divided by | learned |
# |---|---|---|---|---|---|---|
# | absolute | $x_iW_Q\cdot x_jW_K$ | $x_iW_Q\cdot p_jW_K$ | $p_iW_Q\cdot x_jW_K$ | $p_iW_Q\cdot p_jW_K$ | $\sqrt K$ | $p$, or nothing |
# | Shaw 2018 | kept | $q_i\cdot R_{c(i-j)}$ | – | – | $\sqrt K$ | $2m+1$ vectors, as many for values |
# | Transformer-XL 2019 | kept | $q_i\cdot r_{i-j}$ | $u\cdot k_j$ | $v\cdot r_{i-j}$ | $\sqrt K$ | $W_{K,R}$, $u$, $v$ |
# | T5 2020 | kept | – | – | $b_{f(i-j)}$ | $\sqrt K$, before the bias | a number for each bucket and head |
# | TUPE 2021 | kept | – | – | $p_iU_Q\cdot p_jU_K$ (TUPE-R: $+b_{f(i-j)}$) | $\sqrt{2K}$, before the bias | $p$, $U_Q$, $U_K$, buckets |
# | DeBERTa 2021 | kept | $q_i\cdot K^r_{\delta(i,j)}$ | $k_j\cdot Q^r_{\delta(j,i)}$ | – | $\sqrt{3K}$ | $2m$ vectors, two projections |
# | RoPE 2021 | $q_i\,\mathcal R_{j-i}\,k_j^\top$ | – | – | – | $\sqrt K$ | nothing |
# | ALiBi 2022 | kept | – | – | $-m_h\lvert i-j\rvert$ | $\sqrt K$, before the bias | nothing |
#
# The next figure shows the same terms as heat maps. Rows are queries, columns are keys, red is
# positive, and blue is negative. A coloured frame marks a term that the scheme fills in its own
# way. A grey frame marks a term that is kept (in paler colours, where the divisor is larger).

# %%
_ = "dropped"  # keeps the rows short
formulas = {
    "absolute": [f"${a}_iW_Q\\cdot {b}_jW_K$" for a in "xp" for b in "xp"],
    "Shaw": ["kept", "$q_i\\cdot R_{c(i-j)}$", _, _],
    "Transformer-XL": ["kept", "$q_i\\cdot r_{i-j}$", "$u\\cdot k_j$", "$v\\cdot r_{i-j}$"],
    "T5": ["kept", _, _, "$b_{f(i-j)}$"],
    "TUPE": ["kept", _, _, "$p_iU_Q\\cdot p_jU_K+b_{f(i-j)}$"],
    "DeBERTa": ["kept", "$q_i\\cdot K^r_{\\delta(i,j)}$", "$k_j\\cdot Q^r_{\\delta(j,i)}$", _],
    "ALiBi": ["kept", _, _, "$-m_h|i-j|$"],
    "RoPE": ["$q_i\\,\\mathcal{R}_{j-i}\\,k_j^\\top$", _, _, _],
}
for name, four in formulas.items():
    assert [formula == _ for formula in four] == [term is None for term in edits[name]]

# %% alt="Grid of heat maps, one row for each of eight schemes, one column for each of the four terms. All but RoPE keep the first column. Each scheme fills other columns, or none. In the last column, Transformer-XL, T5 and ALiBi have stripes along the diagonal."
cat = [4, 7]
keys = ["sinusoidal", "shaw", "transformer_xl", "t5", "tupe", "deberta", "alibi", "rope"]
colours = dict(zip(edits, keys, strict=True))
products = {"TUPE": 2, "DeBERTa": 3}
scales = {name: f"over $\\sqrt{{{products.get(name, '')}K}}$" for name in edits}
for name, (first, *_) in edits.items():  # kept, up to the divisor
    assert (name != "RoPE") == equal(np.sqrt(products.get(name, 1)) * first, content)
plots.edits_of_four_terms(edits, formulas, colours, scales, marked={row: "cat" for row in cat})
plt.show()

# %% [markdown]
# Read down the columns. In the last, Transformer-XL, T5 and ALiBi have clean diagonal stripes, one
# colour for each distance. TUPE does not, since its positions stay absolute. In the second, the
# stripes of Shaw, Transformer-XL and DeBERTa are broken, because the number for a distance depends
# on the query's word. The second of the rows marked "cat" contains the numbers of the first, moved
# by three positions, as the word is. Transformer-XL's $u\cdot k_j$ in the third column contains no
# position at all. It shows how much all queries like a word.

# %%
for name in ("Shaw", "Transformer-XL", "DeBERTa"):
    term = edits[name][1]
    assert equal(term[cat[1], 3:], term[cat[0], :-3])
    assert not np.allclose(term[1, 1:], term[0, :-1], rtol=0, atol=0.1)  # another word asks
for name in ("Transformer-XL", "T5", "ALiBi"):
    assert along(edits[name][3]) < 1e-12 < 0.1 < along(edits["TUPE"][3])
assert equal(edits["Transformer-XL"][2], edits["Transformer-XL"][2][0])

# %% [markdown]
# ### One scale for all terms: why more terms need a larger divisor
#
# Why do the divisors differ? An undivided product of two vectors is a sum of $K$ products of
# numbers. If these products are independent with mean 0 and variance 1, the sum has the variance
# $K$. Without a division, one key takes most of the weight ([chapter 10](10_attention.ipynb)).
# Variances of independent products add up, so a sum of $n$ products of vectors has the variance
# $nK$:
#
# $$\operatorname{Var}\Big(\frac1{\sqrt{nK}}\sum_{t=1}^n q_t\cdot k_t\Big)=1$$
#
# The divisor *counts the terms*: two in TUPE, three in DeBERTa. Shaw and Transformer-XL keep
# $\sqrt K$, no matter how many terms they have.

# %%
for n in (1, 2, 3, 4):
    q_t, k_t = np.random.default_rng(n).standard_normal((2, n, 100_000, 16))
    total = (q_t * k_t).sum(axis=(0, 2))
    assert np.isclose((total / np.sqrt(n * 16)).std(), 1, rtol=0, atol=0.015)
    print(n, "terms: deviation over sqrt(K)", round(float((total / 4).std()), 1))

# %% [markdown]
# ## Translation invariance: does the score move with the sentence?
#
# Back to the first question. Here is each scheme as a function of queries, keys and positions. The
# last three expect an axis for the heads, which `[None]` adds and `[0]` takes away.

# %%
score_at = {
    "absolute": lambda q, k, at: (q + code(at) @ W_Q) @ (k + code(at) @ W_K).T / np.sqrt(K),
    "T5": lambda q, k, at: q @ k.T / np.sqrt(K) + t5_bias(b, d(at), max_distance=8)[0],
    "ALiBi": lambda q, k, at: q @ k.T / np.sqrt(K) + alibi_bias([slope], d(at))[0],
    "RoPE": lambda q, k, at: rope(q, at) @ rope(k, at).T / np.sqrt(K),
    "Shaw": lambda q, k, at: shaw_scores(q, k, R, d(at)),
}


def d(at):
    return relative_distance(at, at)


# %%
score_at["Transformer-XL"] = lambda q, k, at: transformer_xl_scores(
    q[None], k[None], r[None], u[None], v[None], d(at)
)[0]
score_at["TUPE"] = lambda q, k, at: tupe_scores(
    q[None], k[None], (code(at) @ U_Q)[None], (code(at) @ U_K)[None], t5_bias(b, d(at), 8)
)[0]
score_at["DeBERTa"] = lambda q, k, at: deberta_scores(
    q[None], k[None], Q_r[None], K_r[None], d(at)
)[0]

# %% [markdown]
# *Predict*: the sentence moves from 0 to 20. Which of the eight changes its scores?

# %% fold="output"
for name, score in score_at.items():
    assert equal(score(q, k, at), sum(term for term in edits[name] if term is not None))
    change = np.abs(score(q, k, at + 20) - score(q, k, at)).max()
    print(f"{name:15} {change:.3f}")
    assert (change > 0.1) == (name in ("absolute", "TUPE"))

# %% [markdown]
# Six of the eight are **relative**: a shift of all positions changes nothing. TUPE belongs to the
# family because it changes the same four terms, not because of this property. With a relative
# scheme, a pair at a *known* distance has a known score at any position. [Chapter
# 71](71_study.ipynb) measures what a model does with new distances.
#
# ## What relative scores cannot distinguish: a repeated word
#
# Take again the sentence that repeats one word, "the the the the". *Predict*: with a relative
# scheme, do the outputs of its words differ? Their distances to the borders do.
#
# Position can enter at the score and also at the values. An absolute encoding enters at both. The
# other schemes of this chapter drop the last sum below. Only Shaw keeps it, with a learned vector
# for the distance instead of $p_jW_V$:
#
# $$o_i=\sum_jw_{ij}\,(x_j+p_j)W_V=\sum_jw_{ij}\,x_jW_V+\sum_jw_{ij}\,p_jW_V$$

# %% fold="output"
W_V = draw.standard_normal((D, K)) / np.sqrt(D)
output, w = attend(sum(terms), (x + p) @ W_V)
assert equal(output, w @ (x @ W_V) + w @ (p @ W_V))
the_word = same[:L]
for name, score in score_at.items():
    s = score(the_word @ W_Q, the_word @ W_K, at)
    values = (the_word + code(at) if name == "absolute" else the_word) @ W_V
    output, w = attend(s, values)
    assert equal(output, the_word @ W_V + (w @ p @ W_V if name == "absolute" else 0))
    apart = np.ptp(output, axis=0).max()  # between the nine outputs
    if name in ("absolute", "Shaw", "ALiBi"):
        print(f"{name:9} range of weights {np.ptp(w):.2f}, of outputs {apart:.2f}")
    assert (apart < 1e-12) == (name != "absolute")

# %% [markdown]
# With all but the absolute encoding the outputs are equal. The weights of a row sum to 1, so a
# weighted mean of equal values is that value, *no matter what the scores are*:
#
# $$\sum_jw_{ij}\,v=v\sum_jw_{ij}=v$$
#
# The next layer receives equal words again. More layers do not help, nor does a causal mask, since
# its weights also sum to 1. What helps is Shaw's value term:

# %%
s = score_at["Shaw"](the_word @ W_Q, the_word @ W_K, at)
values = the_word @ W_V
behind_mask, w_masked = attend(s, values, mask=causal_mask(at, at))
with_term = shaw_values(softmax(s), values, R, distance)
for name, output in (("causal mask", behind_mask), ("Shaw's value term", with_term)):
    print(f"{name:18} range of outputs {np.ptp(output, axis=0).max():.2f}")
assert equal(w_masked.sum(axis=1), 1) and equal(behind_mask, values)
assert not np.allclose(with_term, with_term[0], rtol=0, atol=0.1)

# %% [markdown]
# Luo et al. 2022 start here. They prove that there are functions of a sequence that a Transformer
# with relative positions in its scores cannot approximate, no matter how deep and wide it is. In
# practice sequences have different words ([chapter 11](11_why_position.ipynb) lets a layer count
# with the help of one special word).
#
# ## What relative encodings cost (second reading)
#
# A product of two vectors takes $K$ multiplications and $K-1$ additions; with the scale, an
# ordinary score takes $2K$ operations. A further product that is added to the score also takes
# $2K$, and a bias takes 1. Operations done once for each of $L$ queries or keys are shared by $L$
# pairs. Transformer-XL adds $u$ and $v$ to a query, $2K$ operations. RoPE needs two multiplications
# and one addition for each component of a query and of a key, $6K$. The cell prints the extra
# operations for each score at $K=64$ and 512 positions, when the vectors have been computed:

# %%
width, length = 64, 512
plain = 2 * width
extra = {  # further products, biases, operations for each query and key
    "Shaw": (1, 0, 0),
    "Transformer-XL": (1, 0, 2 * width),
    "T5": (0, 1, 0),
    "TUPE": (1, 1, 0),
    "DeBERTa": (2, 0, 0),
    "ALiBi": (0, 1, 0),
    "RoPE": (0, 0, 6 * width),
}
for name, (n_products, biases, shared) in extra.items():
    extra[name] = n_products * plain + biases + shared / length
    print(f"{name:15} {extra[name]:6.2f} more than the {plain}")

# %% [markdown]
# TUPE's position product is the same for all sentences and layers, so it can be computed once;
# Shaw's shrinks with clipping ([chapter 31](31_shaw.ipynb)). And **operations are not time**: the
# score is only a part of a layer, and *looking up* T5's number for each pair moves memory.
# Press et al. (2022, section 2.2) found training with T5's bias at most half as fast as with
# sinusoidal encodings. With a window, each distance is looked up only once.

# %% [markdown]
# ## In short
#
# - **Which four terms does a score of words with added positional encodings
#   have?** Content-content, content-position, position-content and position-position. The query's
#   part is named first. [The four terms](#four-terms-expand-the-product).
# - **Sinusoidal encodings contain all distances. Is that enough?** No. $W_QW_K^\top$ is between the
#   two encodings, so with weights in general no term is a function of $i-j$.
#   [Which term](#which-term-depends-only-on-the-distance).
# - **What do the relative schemes change?** Shaw and DeBERTa put distance vectors into mixed terms,
#   T5 and ALiBi a number into the last term. Transformer-XL fills all four. RoPE rotates the first.
#   [Side by side](#relative-positional-encodings-side-by-side).
# - **Are biases divided by $\sqrt K$?** No. The biases of T5 and ALiBi are added after the
#   division. Products of vectors are divided, in TUPE by $\sqrt{2K}$ and in DeBERTa by $\sqrt{3K}$.
#   [One scale](#one-scale-for-all-terms-why-more-terms-need-a-larger-divisor).
# - **What sign does the distance have?** $i-j$, query minus key, so the past is positive.
#   $L\cdot S$ pairs share $L+S-1$ distances.
#   [Distances](#how-relative-schemes-change-the-four-terms),
#   [the distance matrix](#the-distance-matrix-as-a-strided-view-second-reading).
# - **What does it cost?** T5 and ALiBi cost one addition per score. Shaw and Transformer-XL cost
#   about as much again as the score itself, and DeBERTa twice that.
#   [Costs](#what-relative-encodings-cost-second-reading).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 30` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 30_expansion.py` checks yours.
#
# ### Exercise 1: A bias in the projection
#
# Many programs project with a bias: $q_i=x_iW_Q+b_Q$ and $k_j=x_jW_K+b_K$. Multiply out. Which of
# the four terms does the softmax ignore? Which one is a term of Transformer-XL in disguise?
#
# <details><summary>Hint 1</summary>
#
# The four terms are $x_iW_Q\cdot x_jW_K$, $x_iW_Q\cdot b_K$, $b_Q\cdot x_jW_K$ and $b_Q\cdot b_K$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The softmax of a row ignores whatever is the same for all keys $j$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# $x_iW_Q\cdot b_K$ and $b_Q\cdot b_K$ do not depend on $j$, so the key's bias has no effect on the
# weights. $b_Q\cdot k_j$ is Transformer-XL's $u\cdot k_j$.
#
# ```python
# b_Q, b_K = np.random.default_rng(7).standard_normal((2, K))
# full = (q + b_Q) @ (k + b_K).T / np.sqrt(K)
# without = (q + b_Q) @ k.T / np.sqrt(K)
# assert equal(softmax(full), softmax(without))
# assert equal(without - content, each_pair(lambda i, j: b_Q @ k[j] / np.sqrt(K)))
# ```
#
# </details>
#
# ### Exercise 2: A Toeplitz position term after all
#
# Find matrices $W_Q$ and $W_K$ of shape $(D,D)$ with which the position-position term of the
# sinusoidal encoding *is* a function of $i-j$, and is largest at the key two positions back. Does
# the whole score then move with the sentence?
#
# <details><summary>Hint 1</summary>
#
# From [chapter 20](20_sinusoidal.ipynb), $p_i\cdot p_j$ depends on $i-j$ and is largest at $i=j$.
# And `sinusoidal_shift` makes a matrix $M_2$ with $PE(pos+2)=M_2\,PE(pos)$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The term is $p_iW_QW_K^\top p_j^\top$. Take $W_Q=I$ and $W_K^\top=M_2$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The position term becomes $p_i\cdot p_{j+2}$. The mixed terms stay absolute, so the whole score
# still changes when the sentence moves.
#
# ```python
# from pe_numpy import sinusoidal_shift
# M = sinusoidal_shift(2, D)
# new = four_terms(x, p, np.eye(D), M.T)
# assert along(new[3]) < 1e-12
# assert new[3].argmax(axis=1)[2:].tolist() == list(range(L - 2))
# later = four_terms(x, code(at + 20), np.eye(D), M.T)
# assert equal(later[3], new[3]) and not np.allclose(later[1], new[1], rtol=0, atol=0.1)
# ```
#
# </details>
#
# ### Exercise 3: Two texts packed into one row
#
# To save padding, two texts of three and two words share one row, with the positions 0 1 2 0 1. Is
# the `relative_distance` of these positions a window, that is, a [strided
# view](#the-distance-matrix-as-a-strided-view-second-reading)? What is wrong with the scores, and
# how do you fix them?
#
# <details><summary>Hint 1</summary>
#
# A window needs positions that count up by 1. Look at the strides.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Word 0 of the second text has distance 0 to word 0 of the first.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It is not a window: the matrix stores each of its entries. The second text attends to the first as
# if both were one. Distances do not show where a text ends. Only a mask keeps the texts apart.
#
# ```python
# packed = np.array([0, 1, 2, 0, 1])
# both = relative_distance(packed, packed)
# assert both.strides != (both.itemsize, -both.itemsize) and both[3, 0] == 0
# text = np.array([0, 0, 0, 1, 1])
# scores = shaw_scores(q[:5], k[:5], R, both)
# _, mixed = attend(scores, x[:5])
# _, apart = attend(scores, x[:5], mask=text[:, None] == text)
# alone = softmax(shaw_scores(q[3:5], k[3:5], R, relative_distance([0, 1], [0, 1])))
# assert mixed[3, 0] > 0 and equal(apart[3:, 3:], alone) and not apart[3:, :3].any()
# ```
#
# </details>
#
# ## In practice
#
# **The newest token is not at position 0.** With a KV cache, a model computes one new query at a
# time. BERT's relative scheme in Hugging Face Transformers then counted only the new token, so that
# each key in the cache had the distance 0
# ([issue #19045](https://github.com/huggingface/transformers/issues/19045),
# [PR #20203](https://github.com/huggingface/transformers/pull/20203)). `relative_distance` takes
# *positions*, not lengths, and a new query keeps its position in the text. For the third token of a
# text:

# %%
right = relative_distance([2], [0, 1, 2])
wrong = relative_distance([0], [0]).repeat(3, axis=1)  # one distance, for all keys
print("right:", right.tolist(), "  wrong:", wrong.tolist())
step = shaw_scores(q[2:3], k[:3], R, right)
assert equal(step, shaw_scores(q, k, R, distance)[2:3, :3])
assert not np.allclose(shaw_scores(q[2:3], k[:3], R, wrong), step, rtol=0, atol=0.1)
unsigned = np.array([0, 3], np.uint8)
assert (unsigned[:1] - unsigned[1:]).tolist() == [253]
assert relative_distance(unsigned, unsigned).tolist() == [[0, -3], [3, 0]]

# %% [markdown]
# **Unsigned integers.** Positions are not negative, but distances can be. Unsigned numbers wrap
# around without a warning: as `uint8`, 0 - 3 is 253. `relative_distance` gives -3.
#
# **A bias inside the square root.** A bias (T5, ALiBi) that is put inside the division by mistake
# is divided by 8 at $K=64$, and no error is raised; [chapter 35](35_alibi.ipynb) shows what that
# does.
#
# **Absolute and relative together.** Shaw et al. tried both and report no gain (section 4.2).
# DeBERTa adds absolute positions near its end ([chapter 34](34_deberta.ipynb)).
# %% [markdown]
# ## Further reading
#
# - Dai et al. 2019, "Transformer-XL" (arXiv:1901.02860), section 3.3: the expansion.
# - Ke, He and Liu 2021, "Rethinking positional encoding in language pre-training"
#   (arXiv:2006.15595), equation (6) and figure 2: the four terms in a trained BERT.
# - He et al. 2021, "DeBERTa" (arXiv:2006.03654), section 3.1: the other choice of terms.
# - Luo et al. 2022, "Your Transformer may not be as powerful as you expect" (arXiv:2205.13401).
