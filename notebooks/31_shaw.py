# %% [markdown]
# # 31. Relative position representations (Shaw et al.) and the skew trick
#
# *What does one vector per distance add, and how does it serve any length without a huge array?*
#
# 40 minutes. Needs [30 From absolute to relative: the four terms of a score](30_expansion.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** "The" looks for the next noun, and a noun looks back for its article. Shaw's
# scheme lets each word choose which distances it likes: every distance has a learned vector, and
# queries are compared with it as with keys. You compute these scores and the matching vectors on
# the values, and clip long distances so that a small table serves any length. Then you avoid a
# gigabyte of memory with a reshape, the skew trick. At the end you can load such tables.

# %% fold="input" alt="Two heat maps: on the left, the scores of five words for the distances -2 to 2; on the right, the weights. Articles put their weight on the next word, nouns on the previous word, and the verb on both."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import relative_distance, shaw_scores, softmax
from pe_numpy.book.plots import shaw as plots

words = "the dog saw the cat".split()
query_of = {"the": (0, 2), "dog": (2, 0), "saw": (1.5, 1.5), "cat": (2, 0)}
q = np.array([query_of[word] for word in words])  # (L, K), K = 2
R = np.array([(0, 0), (0, 3), (0, 0), (3, 0), (0, 0)])  # the distances -2 ... 2
distance = relative_distance(np.arange(5), np.arange(5))
weights = softmax(shaw_scores(q, np.zeros((5, 2)), R, distance))
plots.likes_and_weights(q @ R.T / np.sqrt(2), weights, words)
plt.show()

# %% [markdown]
# ## Relative position representations: a head made by hand
#
# "The" looks for the noun that comes next, and "cat" looks back for its article. The score should
# therefore let each *word* choose which *distance* it likes. Shaw, Uszkoreit and Vaswani (2018)
# give every distance a vector, a **relative position representation**, and multiply queries by it
# as by keys.
#
# In the figure at the top queries have two components: the first means "I look back", the second "I
# look ahead". An article has the query $(0,2)$, a noun has $(2,0)$, and the verb has $(1.5,1.5)$.
# The distance of query $i$ and key $j$ is $i-j$: $1$ means "one word back", $-1$ "the next word".
# Distance $1$ has the vector $R_1=(3,0)$, distance $-1$ has $R_{-1}=(0,3)$, and all others have
# zeros. All keys are zero vectors too, so the scores show only positions. The score of a pair is
# then $q_i\cdot R_{i-j}/\sqrt2$. The left map shows which distances each word likes, and the right
# map shows its weights. One table works for three kinds of word, and for "the" at both of its
# positions.

# %%
vector = dict(zip(range(-2, 3), R, strict=True))
scores = [[q[i] @ vector[max(-2, min(2, i - j))] for j in range(5)] for i in range(5)]
scores = np.array(scores) / np.sqrt(2)
assert np.allclose(softmax(scores), weights, rtol=0, atol=1e-12)
assert weights[0].argmax() == 1 and weights[1].argmax() == 0
assert np.isclose(weights[2, 1], weights[2, 3], rtol=0, atol=1e-12) and weights[2, 1] > 0.4

# %% [markdown]
# ## Why a vector per distance, and not a number?
#
# Why is $R_{i-j}$ not added to the score? Because it is not a number. You look at a person because
# you have something in common, and also because that person sits near you. You judge both from your
# point of view. Suppose that we do add a number $b_{i-j}$ for each distance (this is T5's scheme,
# [chapter 33](33_t5.ipynb)). If the contents contribute nothing, every word then likes the same
# distances. For two queries $i$, $i'$ that look over the same distance $d=i-j=i'-j'$:
#
# $$\begin{aligned}\text{number: } s_{ij}-s_{i'j'}&=0\\
#   \text{vector: } s_{ij}-s_{i'j'}&=\frac{(q_i-q_{i'})\cdot R_d}{\sqrt K}\end{aligned}$$

# %%
b = {-2: 0.0, -1: 1.0, 0: 0.0, 1: 2.0, 2: 0.0}
number = np.array([[b[max(-2, min(2, i - j))] for j in range(5)] for i in range(5)])
for i, j in ((0, 1), (2, 3)):  # the looks at dog, saw looks at the: both at distance -1
    print(f"{words[i]} -> {words[j]}: number {number[i, j]:.1f}, vector {scores[i, j]:.2f}")
assert number[0, 1] - number[2, 3] == 0
difference = (q[0] - q[2]) @ vector[-1] / np.sqrt(2)
assert np.isclose(scores[0, 1] - scores[2, 3], difference, rtol=0, atol=1e-12)
assert abs(difference) > 1

# %% [markdown]
# ## Shaw's score: relative vectors on the keys
#
# Of the four terms of [chapter 30](30_expansion.ipynb), drop $p_iW_Q$ and replace $p_jW_K$ by a
# learned vector $R_{i-j}$. With $q_i=x_iW_Q$ and $k_j=x_jW_K$ the score becomes
#
# $$s_{ij}=\frac{q_i\,(k_j+R_{i-j})^\top}{\sqrt K}=\frac{q_i\cdot k_j+q_i\cdot R_{i-j}}{\sqrt K}$$
#
# The left form shows what it means: seen from $i$, the vector of the distance is added to the key
# of $j$. The right form shows how to compute it. A program keeps the vectors in a table with one
# row for each distance. Rows have numbers from 0, so a constant $m$ is added: row $d+m$ serves the
# distance $d$. (The loops also let distances beyond $m$ read the row of $m$. The section on
# clipping explains why.)


# %%
def shaw_by_loops(q, k, table, m):
    """The left form; row d + m of the table belongs to the distance d."""
    out = np.zeros((len(q), len(k)))
    for i in range(len(q)):
        for j in range(len(k)):
            row = max(-m, min(m, i - j)) + m
            for c in range(len(q[0])):
                out[i, j] += q[i][c] * (k[j][c] + table[row][c]) / np.sqrt(len(q[0]))
    return out


rng = np.random.default_rng(0)
q5, k5, table = (rng.standard_normal((n, 4)) for n in (5, 7, 13))  # L, S, rows
right_form = [[(q5[i] @ k5[j] + q5[i] @ table[i - j + 6]) / 2 for j in range(7)] for i in range(5)]
assert np.allclose(shaw_by_loops(q5, k5, table, m=6), right_form, rtol=0, atol=1e-12)

# %% [markdown]
# The package's function follows the right form. `_clipped_table` finds the row that serves a
# distance. [The skew trick](#the-skew-trick-is-a-reshape) explains how `add_query_products` finds
# its term. A table may also have a part for each head, $(H, 2m+1, K)$. The paper's base model has a
# table for each layer *and* head, and its big model has one for each layer.

# %%
from pe_numpy.book.show import show_source

show_source(shaw_scores)
L, K, m = 4, 5, 3
Q, KEYS = rng.standard_normal((2, 2, 3, L, K))  # two sequences, three heads
key_table = rng.standard_normal((2 * m + 1, K))
at = np.arange(L)
got = shaw_scores(Q, KEYS, key_table, relative_distance(at, at))
for place in np.ndindex(2, 3):
    expected = shaw_by_loops(Q[place], KEYS[place], key_table, m)
    assert np.allclose(got[place], expected, rtol=0, atol=1e-12)

# %% [markdown]
# ## Clipping: distances longer than the table
#
# *A common mistake* is a table of $2\cdot\text{max\_len}-1$ rows, without clipping. *Predict* what
# happens with a table for four words and a sentence of five.

# %% fold="output"
max_len = 4
too_long = np.arange(5)[:, None] - np.arange(5) + max_len - 1
print("rows asked for:", int(too_long.min()), "to", int(too_long.max()), "  rows there: 0 to 6")
try:
    key_table[too_long]  # 7 rows
except IndexError as error:
    print("IndexError:", str(error).split(" with")[0])
print("row -1 is the last row, without an error:", bool((key_table[-1] == key_table[6]).all()))
assert too_long.max() == 7 and too_long.min() == -1 and len(key_table) == 7

# %% [markdown]
# A distance that is too large raises an error. One that is too *negative* (here by up to 7) reads a
# row from the other end of the table, without an error. (PyTorch's embedding refuses both.) The
# paper's solution is **clipping** (section 3.2): distances beyond $m$ read the row of $m$, and
# $2m+1$ vectors serve any length. Its first reason is a hypothesis, that "precise relative position
# information is not useful beyond a certain distance".
#
# $$c(d)=\max(-m,\min(m,d)),\quad \text{row}=c(i-j)+m$$

# %%
clipped = [max(-2, min(2, d)) for d in range(-5, 6)]
print(clipped)
assert clipped == np.clip(np.arange(-5, 6), -2, 2).tolist() == [-2] * 4 + [-1, 0, 1] + [2] * 4
ten = relative_distance(np.arange(10), np.arange(10))
rows = [[max(-3, min(3, i - j)) + 3 for j in range(10)] for i in range(10)]
assert np.array_equal(rows, np.clip(ten, -3, 3) + 3)

# %% alt="Three tables, and the matrices of rows for ten words. Without clipping, every diagonal has its own row. With m = 3 and m = 1, the corners are merged into the outermost rows."
cases = [
    (f"$m$ = {m}" + (", nothing clipped" if m == 9 else ""), np.clip(ten, -m, m) + m, 2 * m + 1)
    for m in (9, 3, 1)
]
plots.rows_read(cases)
plt.show()

# %% [markdown]
# The middle band stays sharp, and the corners have one colour each: "far ahead" and "far back".
#
# ### What clipping gains: any length, and rows that are trained more often
#
# Clipping serves any length. It also improves training. Without it, a sentence of 20 words reads
# the row of the distance 19 only once, for its last word. A row that is read rarely is trained
# rarely.

# %%
twenty = relative_distance(np.arange(20), np.arange(20))
reads = np.bincount((twenty + 19).ravel())
clipped_reads = np.bincount((np.clip(twenty, -4, 4) + 4).ravel())
print("reads with m = 4, distances 0 to 4:", clipped_reads[4:].tolist())
assert reads[38] == 1 and clipped_reads.min() >= 17 and reads.sum() == clipped_reads.sum() == 400

# %% [markdown]
# ### What clipping loses: position beyond the clipping distance
#
# Beyond $m$ the *position* cannot distinguish one word from the next. Look back from word $i$,
# under a causal mask, with contents that are all alike. There are $i-m+1$ words at distance $m$ or
# more. They have equal scores, and all weights sum to 1. So for any table,
#
# $$w_{ij}\le\frac1{i-m+1}\qquad\text{for }i-j\ge m$$
#
# A table that gives all nearer words very low scores comes as near to the bound as you like. The
# last table in the cell does this.

# %%
from pe_numpy import attend, causal_mask

L, m = 12, 3
at = np.arange(L)
d = relative_distance(at, at)
far, bound = d >= m, 1 / np.maximum(at - m + 1, 1)[:, None]
tables = [3 * np.random.default_rng(seed).standard_normal((2 * m + 1, 1)) for seed in range(200)]
tables.append(np.array([-99.0] * 2 * m + [0.0])[:, None])
for R_any in tables:
    s = shaw_scores(np.ones((L, 1)), np.zeros((L, 1)), R_any, d)  # all words equal
    _, w = attend(s, np.zeros((L, 1)), causal_mask(at, at))
    assert (w <= bound + 1e-12)[far].all()
assert np.allclose(w[m:], np.where(far, bound, 0)[m:], rtol=0, atol=1e-12)  # except for rounding

# %% [markdown]
# Is that a loss? The *content* of a far word still counts, and layers stack. A head with $m=2$ can
# look one word back, and three such layers look three words back, because each passes on what it
# received. (The authors make the same remark.)

# %%
letters = np.array(list("abcdefgh"))
at = np.arange(8)
loud = np.array([[0.0], [0.0], [0.0], [40.0], [0.0]])  # the distances -2 ... 2, K = 1
back = softmax(shaw_scores(np.ones((8, 1)), np.zeros((8, 1)), loud, relative_distance(at, at)))
carried = np.linalg.matrix_power(back, 3)
print("after layer 3 the last word, h, holds", letters[carried[-1].argmax()])
assert letters[carried[-1].argmax()] == "e" and carried[-1].max() > 0.999

# %% [markdown]
# The authors measured the effect of $m$, on English to German (development set, tables 2 and 3 of
# the paper). BLEU compares a translation with one made by people; higher is better.

# %% alt="Left: BLEU over the clipping distance. It is 12.5 without positions, 25.5 with a clipping distance of 1, and a flat line near 25.8 from 2 to 256. Right: bars for vectors in keys and in values."
by_clip = {0: 12.5, 1: 25.5, 2: 25.8, 4: 25.9, 16: 25.8, 64: 25.9, 256: 25.8}
by_term = {"keys and values": 25.8, "keys alone": 25.8, "values alone": 25.3, "neither": 12.5}
plots.published_ablations(by_clip, by_term)
plt.show()

# %% [markdown]
# For $m$ of 2, 4, 16, 64 and 256, all results are 25.8 or 25.9. At $m=0$ all pairs read one row,
# and the scheme encodes no order. These are results of one model and one language pair, without
# error bars, so ignore the last digit.
#
# ## Sign of the distance: which end of the table is the past?
#
# Here row 0 is the far future and row $2m$ the far past, since $i-j$ grows into the past. The paper
# counts $j-i$, as do tensor2tensor (commit bafdc1b) and NEZHA (0598f02). For training the sign
# makes no difference, because the same table is learned upside down. For *loading* a table it does.
# Row by row:
#
# $$R_{c(i-j)+m}=R'_{c(j-i)+m}\qquad\text{with } R'_r=R_{2m-r}$$
#
# *Predict*: which of the two gives our scores with $j-i$, the table as it is or upside down?

# %% fold="output"
m, at = 3, np.arange(4)
for i, j in np.ndindex(9, 9):
    ours, papers = np.clip(i - j, -m, m) + m, np.clip(j - i, -m, m) + m
    assert np.array_equal(key_table[ours], key_table[::-1][papers]) and ours == 2 * m - papers
d = relative_distance(at, at)
for way, stored in (("upside down", key_table[::-1]), ("as it is", key_table)):
    equal = np.allclose(shaw_scores(Q, KEYS, stored, -d), got, rtol=0, atol=1e-12)
    print(f"{way + ', read with j - i:':29}", equal)
    assert equal == (way == "upside down")

# %% [markdown]
# ## Relative vectors on the values
#
# So far a distance decides *which words* a query attends to. Then the values are summed, and the
# result does not show where they came from. The second half of the scheme, equation (3) of the
# paper, adds a vector of the distance to the values, from its own table:
#
# $$o_i=\sum_j w_{ij}\,(v_j+R^V_{c(i-j)})$$
#
# This term may be left out. In the bars above, vectors only in the keys do as well as vectors in
# both, and the authors conclude that the score "may be sufficient, but further work is needed".


# %%
from pe_numpy import shaw_values


def values_by_loops(weights, v, table, m):
    out = np.zeros((len(weights), len(v[0])))
    for i, j, c in np.ndindex(len(weights), len(v), len(v[0])):
        row = max(-m, min(m, i - j)) + m
        out[i, c] += weights[i][j] * (v[j][c] + table[row][c])
    return out


value_table, v = rng.standard_normal((3, 4)), rng.standard_normal((5, 4))  # m = 1
got = shaw_values(weights, v, value_table, distance)
assert np.allclose(got, values_by_loops(weights, v, value_table, m=1), rtol=0, atol=1e-12)

# %% [markdown]
# What does this term contribute? Split the sum. Its second part collects the weights of all keys
# that read the same row:
#
# $$\sum_jw_{ij}\,R^V_{c(i-j)}=\sum_{r=0}^{2m}\omega_{ir}\,R^V_{r-m},\quad
#   \omega_{ir}=\sum_{j:\;c(i-j)+m=r}w_{ij}$$
#
# $\omega_{ir}$ is the weight that word $i$ has put on the distance of row $r$, no matter which
# words are there. *Predict* the three numbers of "saw" for the hand-made head and $m=1$.

# %% fold="output"
m = 1
rows = np.clip(distance, -m, m) + m
omega = np.array([[weights[i][rows[i] == r].sum() for r in range(2 * m + 1)] for i in range(5)])
assert np.allclose(got, weights @ v + omega @ value_table, rtol=0, atol=1e-12)
assert np.allclose(omega.sum(axis=1), 1, rtol=0, atol=1e-12)
print("saw: ahead, itself, back:", omega[2].round(2).tolist())

# %% alt="Two heat maps: the weights of five words on each other, and the same weights summed by distance. The second shows three distance preferences directly: ahead for articles, back for nouns, both for the verb."
plots.folded_weights(weights, omega, words)
plt.show()

# %% [markdown]
# With the value term a word's output also contains a report of *where* it has looked. If all words
# are equal, that report still lets their outputs differ, which no score can do
# ([chapter 30](30_expansion.ipynb)).

# %%
show_source(shaw_values)
equal_v = np.ones((5, 4))
plain, _ = attend(scores, equal_v)
with_report = shaw_values(weights, equal_v, value_table, distance)
assert np.ptp(plain, axis=0).max() < 1e-12 and np.ptp(with_report, axis=0).max() > 0.5

# %% [markdown]
# ## Memory: the gathered array of all pairs' vectors
#
# The direct way *gathers* the vectors of all pairs in an array of shape $(L, S, K)$. It grows with
# the *square* of the length, times $K$. The paper shares this array over the sequences of a batch,
# and over heads that have one table (section 3.3). For one sequence of 2,048 words and $K=64$, in
# float32 (4 bytes per number), it takes a gigabyte:

# %%
length, K = 2048, 64
sizes = {"gathered": length**2 * K, "scores, 8 heads": 8 * length**2, "table, m = 16": 33 * K}
for name, size in sizes.items():
    print(f"{name:15} {4 * size:13,} bytes")
assert 4 * sizes["gathered"] == 2**30

# %% [markdown]
# ### One product per distance, not per pair
#
# Huang et al. (2018) generated music, a minute in one piece, and found a way without this array.
# Query $i$ is multiplied by the vector of a distance, not of a pair. Write the distances that occur
# in descending order, the past first: $L-1, \dots, 0, \dots, -(S-1)$. There are $W=L+S-1$ of them,
# and all products of queries and distances are one matrix product $P$. $P$ contains everything that
# we need, but in the wrong columns. The distance $i-j$ of word $i$ and key $j$ is in column
# $a=L-1-i+j$.
#
# $$\begin{gathered}P_{ia}=q_i\cdot R_{L-1-a},\qquad a=0,\dots,W-1\\
#   q_i\cdot R_{i-j}=P_{i,\;L-1-i+j}\end{gathered}$$
#
# So row $i$ of the scores is a piece of row $i$ of $P$, which begins one column further left in
# each row.

# %%
L, S = 3, 4
W = L + S - 1
label = np.array([[f"q{i}.d{L - 1 - a}" for a in range(W)] for i in range(L)])
for row in label.tolist():
    print(" ".join(f"{cell:6}" for cell in row))
wanted = [[label[i, L - 1 - i + j] for j in range(S)] for i in range(L)]
assert wanted == [[f"q{i}.d{i - j}" for j in range(S)] for i in range(L)]
q3, table6 = rng.standard_normal((L, 4)), rng.standard_normal((W, 4))  # the past first
P = q3 @ table6.T
for i, a in np.ndindex(L, W):
    assert np.isclose(P[i, a], q3[i] @ table6[a], rtol=0, atol=1e-12)

# %% [markdown]
# ### The skew trick is a reshape
#
# Write the rows of $P$ one after the other in a single line. The piece of row $i$ begins at entry
# $iW$ plus its column:
#
# $$iW+(L-1-i)=(L-1)+i\,(W-1)$$
#
# The right side shows that the first piece begins at $L-1$, and each next one $W-1$ entries later.
# All steps are equal. So cut off the first $L-1$ entries and the last one, write the rest in rows
# of $W-1$, and keep the first $S$ columns. (A single query needs no skew.) No number is moved,
# because only the shape of the same memory changes. This is called **skewing**.

# %% alt="A product of three queries and six distances, the same numbers as one line of eighteen cells, and as rows of five. The wanted pieces begin at the entries 2, 7 and 12 and are below each other in the last panel."
for i in range(L):
    assert i * W + (L - 1 - i) == (L - 1) + i * (W - 1)
flat = label.reshape(-1)[L - 1 :][: L * (W - 1)]
skewed = flat.reshape(L, W - 1)[:, :S]
assert skewed.tolist() == wanted and np.shares_memory(skewed, label)
plots.skew_in_steps(L, S)
plt.show()

# %% [markdown]
# The numbers in the cells are distances. In the black frame they are $i-j$, row by row.
#
# The package does this in blocks of 64 queries and adds each block to the scores. If positions
# don't count up by 1 (packed or padded rows), it computes one product for each row of the table and
# picks the ones it needs. For the values, `spread_sums` reverses the steps: each weight is written
# into a skewed view of zeros, which puts it into the column of its distance. Here the largest
# memory that the scores take beyond the arguments stays below 1.5 times the result:

# %%
import tracemalloc

n, m = 1024, 16
big = rng.standard_normal((n, K)).astype(np.float32)
big_table = rng.standard_normal((2 * m + 1, K)).astype(np.float32)
d = relative_distance(np.arange(n), np.arange(n))
tracemalloc.start()
fast = shaw_scores(big, big, big_table, d)
peak = tracemalloc.get_traced_memory()[1]
tracemalloc.stop()
assert peak < 1.5 * fast.nbytes < 0.05 * (n * n * K * 4)  # the gathered array
at_200 = big_table[np.clip(200 - np.arange(n), -m, m) + m]  # (n, K), what word 200 gathers
assert np.allclose(fast[200], (big + at_200) @ big[200] / 8, rtol=0, atol=1e-4)
mixed = shaw_values(softmax(fast), big, big_table, d)[200]
assert np.allclose(mixed, softmax(fast[200]) @ (big + at_200), rtol=0, atol=1e-4)

# %% [markdown]
# ### Music Transformer: skewing only the past (second reading)
#
# Huang et al. had a causal model, so they needed only the distances $L-1$ to $0$, that is, $L$
# columns for $L$ queries. To skew them they put a column of zeros in front, wrote the result in
# rows of $L$, and dropped the first row. Where the key is not ahead, this gives the same piece of
# each row:
#
# $$\mathrm{skew}(P)_{ij}=P_{i,\;L-1-i+j}=q_i\cdot R_{i-j}\qquad\text{for }j\le i$$
#
# *Predict* what is above the diagonal.


# %% fold="output"
def skew(P):
    padded = np.pad(P, ((0, 0), (1, 0)))  # (L, L + 1), zeros in front
    return padded.reshape(len(P) + 1, len(P))[1:]  # (L, L)


def unskew(skewed):
    padded = np.pad(skewed, ((1, 0), (0, 0)))  # (L + 1, L), zeros for the row that was dropped
    return padded.reshape(len(skewed), len(skewed) + 1)[:, 1:]


nine = np.arange(1, 10).reshape(3, 3)
assert skew(nine).tolist() == [[3, 0, 4], [5, 6, 0], [7, 8, 9]]
print(skew(nine).tolist())
assert all(skew(nine)[i, j] == nine[i, 2 - i + j] for i, j in np.argwhere(np.tril(nine)))
assert unskew(skew(nine)).tolist() == [[0, 0, 3], [4, 5, 6], [7, 8, 9]]

# %% [markdown]
# Above the diagonal are a zero and then the next row's numbers, so the future gets scores that
# belong to other queries. A mask must hide them. In [magenta
# #1486](https://github.com/magenta/magenta/issues/1486) a reader found that the function itself has
# no mask. The caller passes it in, as `bias`. Transformer-XL's `relative_shift` takes the same
# three steps, and [chapter 32](32_transformer_xl.ipynb) draws them.
#
# The inverse, `unskew`, is also the path of the gradient: the gradient of pair $(i,j)$ goes to the
# query and to the distance that made it. The cell compares three ways to one term:

# %%
from pe_numpy import relative_shift

n = 6
q6, E = rng.standard_normal((n, 4)), rng.standard_normal((n, 4))  # E: the past first
d = relative_distance(np.arange(n), np.arange(n))
past, whole = d >= 0, np.concatenate([np.zeros((n - 1, 4)), E[::-1]])  # row i - j + n - 1
by_skew = skew(q6 @ E.T)
by_gather = (q6[:, None] * E[n - 1 - np.maximum(d, 0)]).sum(-1)  # an array of n n 4
by_window = shaw_scores(q6, np.zeros((n, 4)), whole, d) * np.sqrt(4)
assert np.allclose(by_skew[past], by_gather[past], rtol=0, atol=1e-12)
assert np.allclose(by_window[past], by_gather[past], rtol=0, atol=1e-12)
assert np.array_equal(by_skew, relative_shift(q6 @ E.T)) and np.abs(by_skew[~past]).max() > 1
met = np.arange(n) >= n - 1 - np.arange(n)[:, None]  # the products that a pair needs
assert np.array_equal(unskew(by_skew)[met], (q6 @ E.T)[met])

# %% [markdown]
# ## BERT's relative_key and relative_key_query
#
# BERT in Hugging Face Transformers 4 had two options of this kind. `relative_key` is Shaw's key
# term with $2N-1$ rows, row $i-j+N-1$ for the distance $i-j$ in texts of up to $N=512$ words, and
# no clipping. `relative_key_query` (method 4 of Huang, Liang et al. 2020) also multiplies the *key*
# by the same vector. With $r=R_{i-j}$:
#
# $$s_{ij}=\frac{q_i\cdot k_j+q_i\cdot r+k_j\cdot r}{\sqrt K}
#   =\frac{(q_i+r)\cdot(k_j+r)-r\cdot r}{\sqrt K}$$
#
# The right form adds the vector of the distance to both query and key, and then subtracts its
# product with itself.

# %%
from pe_numpy import relative_key_query_scores

show_source(relative_key_query_scores)
N, L, S = 7, 5, 7
whole, d = rng.standard_normal((2 * N - 1, 4)), relative_distance(np.arange(L), np.arange(S))
got = relative_key_query_scores(q5, k5, whole, d)
for i, j in np.ndindex(L, S):
    r = whole[i - j + N - 1]
    assert np.isclose(got[i, j], (q5[i] @ k5[j] + q5[i] @ r + k5[j] @ r) / 2, rtol=0, atol=1e-12)
    both_take_it = ((q5[i] + r) @ (k5[j] + r) - r @ r) / 2
    assert np.isclose(got[i, j], both_take_it, rtol=0, atol=1e-12)

# %% [markdown]
# Seen from the key, the distance is $j-i$. So the new term is again Shaw's, with the roles
# exchanged and the table upside down, $\bar R$. With $d$ for the matrix of all distances, and three
# words of width 2 that you can check by hand:
#
# $$s=\mathrm{Shaw}(q,k,R,d)+\mathrm{Shaw}(k,q,\bar R,-d^\top)^\top-\frac{qk^\top}{\sqrt K}$$

# %%
q3, k3 = np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([[1.0, 2], [0, 1], [1, 0]])
R3, d3 = np.arange(10).reshape(5, 2) / 10, relative_distance(np.arange(3), np.arange(3))
key_form, both_forms = (score(q3, k3, R3, d3) for score in (shaw_scores, relative_key_query_scores))
for name, s in (("relative_key", key_form), ("relative_key_query", both_forms)):
    print(f"{name:18}", s[0].round(6).tolist(), s[2].round(6).tolist())
exchanged = shaw_scores(k3, q3, R3[::-1], -np.array(d3).T).T
assert np.allclose(both_forms, key_form + exchanged - q3 @ k3.T / np.sqrt(2), rtol=0, atol=1e-12)
assert both_forms[2].round(6).tolist() == [5.16188, 2.12132, 1.626346]

# %% [markdown]
# Here one vector serves both query and key. DeBERTa ([chapter 34](34_deberta.ipynb)) makes two from
# each row of its table, with two projections.
#
# *A common mistake*, in Transformers until 2022, took the distances `[[0]]` of *one* word for all
# keys of a KV cache ([chapter 30](30_expansion.ipynb#in-practice)). *Predict* the distances that
# the third word then has to its keys.

# %% fold="output"
for name, d in (("right", relative_distance([2], range(3))), ("restarted", np.zeros((1, 3), int))):
    w = softmax(relative_key_query_scores(q3[2:], k3, R3, d))[0]
    print(f"{name:9} distances {d[0].tolist()}, weights {w.round(3).tolist()}")
    same = np.allclose(w, softmax(both_forms)[2], rtol=0, atol=1e-12)
    assert same == (name == "right")
try:
    relative_key_query_scores(q3[2:], k3, R3, relative_distance([3], range(3)))
except ValueError as error:
    print(error)

# %% [markdown]
# All keys seem to be at the query's own position. The last line shows the other limit. Beyond $N$
# words the table has no row ([#17026](https://github.com/huggingface/transformers/issues/17026)
# reports an index error; a proposal to clip, [PR
# #9164](https://github.com/huggingface/transformers/pull/9164), was not merged). Both options are
# gone in version 5, "barely used" ([PR
# #41170](https://github.com/huggingface/transformers/pull/41170)). The key form is still used in
# speech: Wav2Vec2-BERT clips at 64 back and 8 ahead.
#
# ## NEZHA: sinusoids instead of learned vectors (second reading)
#
# NEZHA (Wei et al. 2019), a Chinese BERT, uses both of Shaw's terms with $m=64$ and learns neither
# table. One table of sinusoids ([chapter 20](20_sinusoidal.ipynb)) serves both: in its code
# (huawei-noah/Pretrained-Language-Model, 0598f02) row $r$ contains the encoding of position $r$.
# Rows follow $j-i$ there, so in our order
#
# $$R_d=\mathrm{PE}\big(m+c(-d)\big),\qquad d=i-j$$

# %%
from pe_numpy import nezha_table

show_source(nezha_table)
for m, K in ((1, 4), (3, 6)):
    for (row, c), entry in np.ndenumerate(nezha_table(m, K)):
        p = m + max(-m, min(m, -(row - m)))  # the row's distance is row - m
        wave = (np.sin, np.cos)[c % 2](p / 10000 ** ((c - c % 2) / K))
        assert np.isclose(entry, wave, rtol=0, atol=1e-12)
q4 = np.concatenate([np.eye(4)[:3], np.ones((1, 4))])
four = relative_distance(np.arange(4), np.arange(4))
print(shaw_scores(q4, np.zeros((4, 4)), nezha_table(1, 4), four)[[0, 3]].round(6).tolist())

# %% [markdown]
# The positions run from 0 to $2m$, so none is negative. Does it matter that the source code does
# not write $\mathrm{PE}(j-i)$, as you would expect? No, because a shift of positions is a rotation
# $M(m)$ ([chapter 20](20_sinusoidal.ipynb)), which can move to the other side of the product,
#
# $$q\cdot\mathrm{PE}(m+p)=q\cdot M(m)\,\mathrm{PE}(p)=\big(M(m)^\top q\big)\cdot\mathrm{PE}(p)$$
#
# and keys rotate with the queries. The values also rotate, and the output rotates back. The
# projections can absorb all these rotations, so the two tables allow the same models.

# %%
from pe_numpy import sinusoidal, sinusoidal_shift

m, K = 3, 4
M, signed = sinusoidal_shift(m, K), sinusoidal(np.arange(m, -m - 1, -1), K)  # PE(j - i)
d, w = relative_distance(np.arange(5), np.arange(7)), softmax(rng.standard_normal((5, 7)))
as_released = shaw_scores(q5, k5, nezha_table(m, K), d)
assert np.allclose(as_released, shaw_scores(q5 @ M, k5 @ M, signed, d), rtol=0, atol=1e-12)
mixed = shaw_values(w, k5, nezha_table(m, K), d)
assert np.allclose(mixed, shaw_values(w, k5 @ M, signed, d) @ M.T, rtol=0, atol=1e-12)
lost = sinusoidal(np.abs(np.arange(m, -m - 1, -1)), K)  # the sign lost
assert np.array_equal(lost[[0, 1, 2]], lost[[6, 5, 4]])
assert np.array_equal(signed[[0, 1, 2], ::2], -signed[[6, 5, 4], ::2])  # the sines tell

# %% [markdown]
# Losing the sign would matter: past and future would then read the same rows (last lines of the
# cell). A speech library did that to the sines of its Transformer-XL encodings ([speechbrain
# #3070](https://github.com/speechbrain/speechbrain/issues/3070)).
#
# NEZHA's PyTorch code gathers the vectors of 512 words once, so its texts end there in spite of the
# clipping ([PR #111](https://github.com/huawei-noah/Pretrained-Language-Model/pull/111)). A
# function that takes positions as arguments needs no prepared array:

# %%
fixed_table = nezha_table(64, 8)
for at in (511, 512, 5000):
    d = relative_distance([at], [at - 1, at - 64, 0])
    s = shaw_scores(np.ones((1, 8)), np.zeros((3, 8)), fixed_table, d)
    assert np.isclose(s[0, 1], s[0, 2], rtol=0, atol=1e-12) and s[0, 0] != s[0, 1]

# %% [markdown]
# ## Parameter count of relative position vectors
#
# The scheme has two tables of $2m+1$ rows and $K$ columns per layer, and separate tables per head
# if they are not shared. The paper's base model has $m=16$, $K=64$, 8 heads, and a table for each
# head:

# %%
one_table = (2 * 16 + 1) * 64
print(f"keys and values, 8 heads: {16 * one_table:,}", end="")
print(f", {16 * one_table / (4 * 512 * 512):.1%} of the four projections of a layer")
assert 16 * one_table == 33_792

# %% [markdown]
# ## In short
#
# - **Why a vector for each distance, and not a number?** The query is multiplied by it,
#   $q_i\cdot R_{i-j}$, so each word likes different distances. A number is the same for every word.
#   [Vector or number](#why-a-vector-per-distance-and-not-a-number).
# - **How many rows does the table have?** $2m+1$ rows serve any length. The distance is clipped,
#   then row $\max(-m,\min(m,i-j))+m$ is read. Without clipping, longer texts fail.
#   [Clipping](#clipping-distances-longer-than-the-table).
# - **Which end of the table is the past?** Here it is the last row, since $i-j$ is positive for the
#   past. The paper counts $j-i$, so turn its table upside down, `table[::-1]`.
#   [Sign](#sign-of-the-distance-which-end-of-the-table-is-the-past).
# - **Do the values also get vectors?** In the paper, yes, from a second table. They report *where*
#   a word has looked. In the authors' translations only keys did as well as both.
#   [Values](#relative-vectors-on-the-values).
# - **How do I avoid the array of $L\cdot S\cdot K$ numbers?** Compute one product for each query
#   and *distance*. A reshape, the skew, moves each product to its pair. [The skew
#   trick](#the-skew-trick-is-a-reshape).
# - **What does BERT's `relative_key_query` add?** It adds $k_j\cdot R_{i-j}$, inside the scale.
#   Neither it nor `relative_key` clips: row $i-j+N-1$ of $2N-1$ serves a distance.
#   [BERT](#berts-relative_key-and-relative_key_query).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 31` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 31_shaw.py` checks yours.
#
# ### Exercise 1: Which rows of the table are read?
#
# Take a table with $m=16$ and a text of 512 words, numbered from 0. How many different rows does
# word 0 read? How many do word 511 and word 100 read? Which words read all 33?
#
# <details><summary>Hint 1</summary>
#
# Word $i$ has the distances $i-511$ to $i$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# To read row 0 a word needs 16 words after it. To read row 32 it needs 16 before it.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Word 0 reads 17 rows (0 to 16), word 511 also 17 (16 to 32), word 100 all 33, as do the words 16
# to 495.
#
# ```python
# rows = np.clip(relative_distance(np.arange(512), np.arange(512)), -16, 16) + 16
# read = np.array([len(set(row.tolist())) for row in rows])
# assert read[[0, 100, 511]].tolist() == [17, 33, 17]
# assert np.flatnonzero(read == 33)[[0, -1]].tolist() == [16, 495]
# ```
#
# </details>
#
# ### Exercise 2: Pick products instead of skewing
#
# With clipping, the table has only $2m+1$ different vectors. Write the position term with $2m+1$
# products for each query: first `q @ table.T`, then pick. It must work for a batch with heads, and
# for positions that are not consecutive.
#
# <details><summary>Hint 1</summary>
#
# The products have the shape $(B,H,L,2m+1)$. Each pair $(i,j)$ picks from row $i$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Use `np.take_along_axis` along the last axis; the row numbers need axes of length 1 in front.
#
# </details>
#
# <details><summary>Solution</summary>
#
# For 1,024 words and $m=16$ this takes thirty times fewer multiplications than a product for each
# pair. In NumPy we measured no gain: picking a million numbers by index took longer than the
# product that it saves.
#
# ```python
# def picked(q, table, distance):
#     m = len(table) // 2
#     products = q @ table.T  # (..., L, 2m + 1)
#     rows = np.clip(distance, -m, m) + m  # (L, S)
#     rows = np.broadcast_to(rows, (*products.shape[:-1], rows.shape[-1]))
#     return np.take_along_axis(products, rows, axis=-1)
#
# for places in (np.arange(4), np.array([0, 1, 0, 7])):
#     d = relative_distance(places, places)
#     expected = shaw_scores(Q, KEYS, key_table, d) * np.sqrt(5) - Q @ np.swapaxes(KEYS, -1, -2)
#     assert np.allclose(picked(Q, key_table, d), expected, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 3: T5's bias as a special case of Shaw's vectors
#
# With which queries does Shaw's key term become T5's, one number for each distance? Use this to
# build a bias from `shaw_scores`, without changing the content scores: extend queries, keys and
# table by one component. Mind the scale.
#
# <details><summary>Hint 1</summary>
#
# If all queries agree in a component, its product with $R_d$ is the same for all words.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Give queries a 1, keys a 0 and row $d$ the number $b_d$ in the new component. `shaw_scores`
# divides by $\sqrt{K+1}$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# numbers = np.random.default_rng(1).standard_normal(7)  # b for the distances -3 ... 3
# one = np.ones((2, 3, 4, 1))
# wide_q, wide_k = np.concatenate([Q, one], -1), np.concatenate([KEYS, 0 * one], -1)
# wide_table = np.column_stack([np.zeros((7, 5)), np.sqrt(5) * numbers])
# at = np.arange(4)
# d = relative_distance(at, at)
# got = shaw_scores(wide_q, wide_k, wide_table, d) * np.sqrt(6 / 5)
# expected = Q @ np.swapaxes(KEYS, -1, -2) / np.sqrt(5) + numbers[d + 3]
# assert np.allclose(got, expected, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ## In practice
#
# | scheme | distances | trained | use it for |
# |---|---|---|---|
# | Shaw | clipped at $m$ | two tables, keys and values | short exact distances, any length |
# | `relative_key`, `relative_key_query` | up to $N-1$, else an error | one table | loading old checkpoints |
# | Music Transformer | $0$ to $L-1$ | one table, a part per head | causal models |
# | NEZHA | clipped at 64 | nothing | Shaw without parameters |
#
# All of them cache keys, values and positions unchanged. The row of one new query needs no skew.
#
# **The gathered array in real code.** A project for reinforcement learning counts it in
# [issue #143](https://github.com/entity-neural-network/incubator/issues/143): keys and values for
# 8,192 sequences of 32 entities on a grid, at $K=64$, "4.3GB". (The positions of the entities
# differ from sequence to sequence, so no array can be shared, and the skew does not apply.)
#
# **A causal model has idle rows.** Under a causal mask no pair looks ahead, so the rows 0 to $m-1$
# have no influence. A table without these rows has $m+1$ rows, with different numbers.

# %%
assert f"{2 * 8192 * 32 * 32 * 64 * 4 / 1e9:.1f}" == "4.3"
at = np.arange(4)
other = key_table.copy()
other[:3] = 100.0  # the distances -3 ... -1
both = [shaw_scores(Q, KEYS, t, relative_distance(at, at)) for t in (key_table, other)]
w_before, w_after = (attend(s, KEYS, causal_mask(at, at))[1] for s in both)
assert np.allclose(w_before, w_after, rtol=0, atol=1e-12) and np.abs(both[0] - both[1]).max() > 1

# %% [markdown]
# ## Further reading
#
# - Shaw, Uszkoreit and Vaswani 2018, "Self-attention with relative position representations"
#   (arXiv:1803.02155): equations (3) and (4), sections 3.2 and 3.3, tables 2 and 3.
# - Huang et al. 2018, "Music Transformer" (arXiv:1809.04281): skewing, for causal models.
# - Wei et al. 2019, "NEZHA" (arXiv:1909.00204), section 2.2: sinusoids instead of learned vectors.
# - Huang et al. 2020, "Improve Transformer models with better relative position embeddings"
#   (arXiv:2009.13658): variants in which keys are also multiplied by the vectors.
#
# **Cards**: [shaw](CARDS.md#shaw), [relative_key_query](CARDS.md#relative_key_query),
# [nezha](CARDS.md#nezha).
