# %% [markdown]
# # 34. DeBERTa: disentangled attention
#
# *How do both tokens take part in the distance term, and which row of its table does a pair read?*
#
# 35 minutes. Needs [30 From absolute to relative: the four terms of a score](30_expansion.ipynb), [33 T5 relative position bias, and TUPE](33_t5.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A relative bias gives each distance one number, so every pair of words values
# a distance in the same way. DeBERTa gives each distance two trained vectors instead. The query is
# multiplied by one and the key by the other, so both words influence how much a distance counts.
# You build the three terms of the score, find the row of the table that each pair reads, and see
# where the paper and the released code differ. At the end you can load DeBERTa's weights without
# swapping the signs of its distances.

# %% fold="input" alt="Three grids of the row numbers that each pair reads: c2p, p2c in the paper, and p2c in the released code. The first and the third are equal; the second is their mirror image."
import math
import matplotlib.pyplot as plt
import numpy as np
from pe_numpy import attend, deberta_bucket, deberta_scores, relative_distance, softmax, t5_bucket
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import deberta as plots

six = relative_distance(np.arange(6), np.arange(6))
rows = {
    "c2p": np.clip(six + 3, 0, 5),
    "p2c, paper": np.clip(-six + 3, 0, 5),
    "p2c, released code": np.clip(six + 3, 0, 5),
}
plots.deberta_rows(rows)
plt.show()

# %% [markdown]
# The figure shows six tokens. Each cell is a pair of a query (row) and a key (column), and its
# number is the row that the pair reads in a table of vectors, one per distance. In c2p, *content to
# position*, the query is multiplied by that vector. In p2c, *position to content*, the key is
# multiplied by the vector. There the paper and the released code differ.
#
# ## Content to position and position to content: why one number per distance is not enough
#
# Write $d=i-j$ for the distance from query $i$ to key $j$, so the past is positive. T5 adds to the
# product of the query vector $q$ and the key vector $k$ a trained number for the distance:
# $s(q,k,d)=q\cdot k+\beta_d$. T5 has one number per *group* of distances, but neither the groups
# nor a scale change anything here. Move a key from distance $d$ to $d'$:
#
# $$s(q,k,d)-s(q,k,d')=\beta_d-\beta_{d'}$$
#
# Neither $q$ nor $k$ remains. If the score of "deep" gains 2 when "learning" moves from distance 5 to
# 1, then every other pair of words gains 2 from the same move.
#
# **Let the query decide.** Give each distance a vector $K^r_d$, and add the query's product with it:
# $q\cdot K^r_d$. Now "deep" and "the" can prefer different distances. The content of one token is
# compared with a position, so the term is called **content to position**, c2p. It is Shaw's term of
# [chapter 31](31_shaw.ipynb), and term (b) of [chapter 32](32_transformer_xl.ipynb).
#
# **Predict**: can the score now say "I want 'learning' next to me, and I don't care where 'of' is"?
# Four scores decide: two keys $k$, $k'$ at two distances $d$, $d'$.
#
# $$\big[s(q,k,d)-s(q,k,d')\big]-\big[s(q,k',d)-s(q,k',d')\big]=0
# \quad\text{for}\quad s=q\cdot k+q\cdot K^r_d$$

# %% fold="output"
rng = np.random.default_rng(0)
asks, answers = rng.standard_normal((2, 2, 8))  # deep and the; learning and of
beta, (K_r, Q_r) = rng.standard_normal(9), rng.standard_normal((2, 9, 8))  # distances 0 .. 8
content = (asks @ answers.T)[:, :, None]  # (query, key, distance)
like_t5 = content + beta
with_c2p = content + (asks @ K_r.T)[:, None, :]
for name, s in (("T5       ", like_t5), ("c2c + c2p", with_c2p)):
    gain = s[:, :, 1] - s[:, :, 5]
    print(f"{name}: gain from 5 to 1, query by key", gain.round(3).tolist())
assert np.allclose(like_t5[:, :, 1] - like_t5[:, :, 5], beta[1] - beta[5], rtol=0, atol=1e-12)
assert np.allclose(gain[:, 0] - gain[:, 1], 0, rtol=0, atol=1e-12)
assert np.allclose(gain[:, 0], asks @ (K_r[1] - K_r[5]), rtol=0, atol=1e-12)

# %% [markdown]
# It can't. For one query the score is a number that depends on the *key* plus a number that depends
# on the *distance*. Whatever "learning" gains by being near, "of" gains as well.
#
# **Let the key decide as well.** A second vector per distance, $Q^r_d$, is multiplied by the key:
# $k\cdot Q^r_d$. A position is compared with the content of the key, so this term is **position to
# content**, p2c. Now
#
# $$\big[s(q,k,d)-s(q,k,d')\big]-\big[s(q,k',d)-s(q,k',d')\big]=(k-k')\cdot(Q^r_d-Q^r_{d'})$$

# %%
with_both = with_c2p + answers @ Q_r.T
gain = with_both[:, :, 1] - with_both[:, :, 5]
print("c2c + c2p + p2c: one key gains more by", (gain[:, 0] - gain[:, 1]).round(3).tolist())
expected = (answers[0] - answers[1]) @ (Q_r[1] - Q_r[5])
assert np.allclose(gain[:, 0] - gain[:, 1], expected, rtol=0, atol=1e-12)

# %% [markdown]
# The difference is no longer 0, but it is the same for "deep" and for "the". Now *any two* of the
# three, query, key and distance, interact. All three at once would need a product of three factors,
# and DeBERTa's score has none (exercise 3).
#
# ## Disentangled attention: two vectors per token
#
# The paper (He et al. 2021, section 3.1) arrives at these terms from the other side. A token $i$ has
# a vector $H_i$ for its content and a vector $P_{i|j}$ for its position as seen from token $j$. A
# score is the product of two sums, so it has four terms:
#
# $$\begin{gathered}(H_i+P_{i|j})(H_j+P_{j|i})^\top=\\[4pt]
# \underbrace{H_iH_j^\top}_{\text{c2c}}+\underbrace{H_iP_{j|i}^\top}_{\text{c2p}}+
# \underbrace{P_{i|j}H_j^\top}_{\text{p2c}}+\underbrace{P_{i|j}P_{j|i}^\top}_{\text{p2p}}\end{gathered}$$
#
# The first letter names the query's side, so c2c is content to content and p2p is position to
# position. The paper numbers $P_{i|j}$ by $j-i$ and $P_{j|i}$ by $i-j$. **Predict**: which of the
# four terms is constant along diagonals?

# %% fold="output"
H, P = rng.standard_normal((6, 8)), rng.standard_normal((11, 8))  # P[d + 5]: number d
seen, back = P[-six + 5], P[six + 5]  # seen[i, j] is P_{i|j}, back[i, j] is P_{j|i}
c2c, p2p = H @ H.T, np.einsum("ijc,ijc->ij", seen, back)
c2p, p2c = np.einsum("ic,ijc->ij", H, back), np.einsum("ijc,jc->ij", seen, H)
for i, j in np.ndindex(6, 6):
    whole = (H[i] + seen[i, j]) @ (H[j] + back[i, j])
    assert np.isclose(c2c[i, j] + c2p[i, j] + p2c[i, j] + p2p[i, j], whole, rtol=0, atol=1e-12)
    assert np.array_equal([seen[i, j], back[i, j]], [P[j - i + 5], P[i - j + 5]])
for name, term in {"c2c": c2c, "c2p": c2p, "p2c": p2c, "p2p": p2p}.items():
    constant = np.allclose(term[1:, 1:], term[:-1, :-1], rtol=0, atol=1e-12)
    print(name, "constant along diagonals:", constant)
    assert constant == (name == "p2p")

# %% [markdown]
# p2p is one number per distance and nothing more, a bias like T5's. DeBERTa **drops p2p**. The
# paper says that with relative positions it adds little. So T5 keeps the first term and the last,
# and DeBERTa keeps the first three.
#
# The projections follow. Contents have $W_{q,c}$ and $W_{k,c}$, and positions have their own,
# $W_{q,r}$ and $W_{k,r}$. Later versions made this an option: in DeBERTa-v3 `share_att_key` is
# true, and positions go through the projections of the contents. All layers share one table $P$ of
# $2m$ rows, and each layer projects it again: $Q^r=PW_{q,r}$, $K^r=PW_{k,r}$.
#
# ## The function delta: which row of the table a pair reads
#
# A function $\delta$ gives the row for each pair (equation (3) of the paper). (What we call $m$ the
# paper calls $k$.) Which distances don't share their row, for $m=3$?
#
# $$\delta(i,j)=\begin{cases}0 & i-j\le -m\\ 2m-1 & i-j\ge m\\ i-j+m & \text{otherwise}\end{cases}$$


# %%
def delta(i, j, m):
    """Equation (3): the row that serves the pair."""
    if i - j <= -m:
        return 0
    return 2 * m - 1 if i - j >= m else i - j + m


for m in (3, 10):  # for any i: here 7 + d against 7
    read = [delta(7 + d, 7, m) for d in range(-20, 21)]
    assert read == np.clip(np.arange(-20, 21) + m, 0, 2 * m - 1).tolist()
print("distances -4 to 3, m = 3: rows", [delta(d, 0, 3) for d in range(-4, 4)])
for i, j in np.ndindex(6, 6):  # the figure at the top
    assert delta(i, j, 3) == rows["c2p"][i, j] and delta(j, i, 3) == rows["p2c, paper"][i, j]

# %% [markdown]
# Six rows can't be placed evenly around 0. The future shares row 0 from $-m$ on, and the past shares
# row $2m-1$ from $m-1$ on. The released base model has $m=512$ and reads sequences of up to 512
# tokens. There nothing is cut off, since distances run from -511 to 511.
#
# With $Q^c=HW_{q,c}$, $K^c=HW_{k,c}$ and $K$ for the width of a head (`head_dim`), equation (4) of
# the paper is
#
# $$A_{ij}=\frac1{\sqrt{3K}}\Big[
# \underbrace{Q^c_i\cdot K^c_j}_{\text{c2c}}+
# \underbrace{Q^c_i\cdot K^r_{\delta(i,j)}}_{\text{c2p}}+
# \underbrace{K^c_j\cdot Q^r_{\delta(j,i)}}_{\text{p2c}}\Big]$$


# %%
def deberta_by_loops(q, k, q_table, k_table):
    """Equation (4), one number at a time, for one head."""
    (L, K), S, m = q.shape, len(k), len(q_table) // 2
    scores = np.zeros((L, S))
    for i, j, c in np.ndindex(L, S, K):
        c2c = q[i, c] * k[j, c]
        c2p = q[i, c] * k_table[delta(i, j, m), c]
        p2c = k[j, c] * q_table[delta(j, i, m), c]
        scores[i, j] += (c2c + c2p + p2c) / math.sqrt(3 * K)
    return scores


q, k, tables = *rng.standard_normal((2, 6, 4)), rng.standard_normal((2, 1, 6, 4))  # m = 3
scores = deberta_scores(q[None], k[None], *tables, six)[0]
assert np.allclose(scores, deberta_by_loops(q, k, *tables[:, 0]), rtol=0, atol=1e-12)

# %% [markdown]
# The package never builds an array of pairs times width. It computes the products of each token with
# each row and spreads them over the pairs, as [chapter 31](31_shaw.ipynb) explains. The queries'
# products go along the rows of the scores, and the keys' products go along the columns.

# %%
show_source(deberta_scores)
moved = relative_distance(np.arange(6) + 1000, np.arange(6) + 1000)
assert np.array_equal(scores, deberta_scores(q[None], k[None], *tables, moved)[0])

# %% [markdown]
# The next figure shows the three terms for a sentence in which one word occurs three times.
# **Predict**: what do the three rows of "deep" have in common in c2p? And in p2c?

# %% fold="output" alt="Four heat maps over the words of a sentence: c2c, c2p, p2c and their sum. In c2p, the rows of the repeated word are one pattern, shifted; in p2c, its columns are."
words, g = "deep nets need deep learning and deep pockets".split(), np.random.default_rng(29)
names, d = sorted(set(words)), relative_distance(np.arange(8), np.arange(8))
order, zero = [names.index(word) for word in words], np.zeros((1, 16, 16))
qw, kw = g.standard_normal((2, 1, len(names), 16))[:, :, order]  # equal for equal words
q_table, k_table = g.standard_normal((2, 1, 16, 16))
c2c = deberta_scores(qw, kw, zero, zero, d)[0]
c2p = deberta_scores(qw, kw, zero, k_table, d)[0] - c2c
p2c = deberta_scores(qw, kw, q_table, zero, d)[0] - c2c
for i, j in ((0, 3), (3, 6)):  # the places of "deep"
    assert np.allclose(c2p[i, :-3], c2p[j, 3:], rtol=0, atol=1e-12)  # rows, moved by 3
    assert np.allclose(p2c[:-3, i], p2c[3:, j], rtol=0, atol=1e-12)  # columns, moved by 3
plots.deberta_terms({"c2c": c2c, "c2p": c2p, "p2c": p2c, "sum": c2c + c2p + p2c}, words)
plt.show()

# %% [markdown]
# In c2p each row of "deep" is the same curve over the distance, shifted along with the query. In p2c
# its three *columns* are one curve.
#
# ## The scale: why the square root of 3K
#
# Plain attention divides by $\sqrt K$, so that the scores have a standard deviation of about 1
# whatever $K$ is ([chapter 10](10_attention.ipynb)). More terms need a larger divisor, as
# [chapter 30](30_expansion.ipynb#one-scale-for-all-terms-why-more-terms-need-a-larger-divisor) shows for independent products. *Assume*
# that all entries of queries, keys and tables are independent, with mean 0 and variance 1, so that
# each product has variance $K$. c2c and c2p share the query, so they are not independent, but they
# are *uncorrelated*, and that is enough. In $E\big[(q\cdot k)(q\cdot K^r)\big]$ each summand contains
# a factor $E[k_c]=0$, and the other pairs vanish for the same reason. So variances add:
#
# $$\mathrm{Var}\big(q\cdot k+q\cdot K^r+k\cdot Q^r\big)=K+K+K=3K$$

# %%
for K in (4, 64):
    q_s, k_s, kr_s, qr_s = np.random.default_rng(0).standard_normal((4, 20_000, K))
    parts = [(q_s * k_s).sum(1), (q_s * kr_s).sum(1), (k_s * qr_s).sum(1)]
    variance = sum(parts).var() / K
    print(f"K = {K:2}: variance / K = {variance:.1f}")
    assert np.isclose(variance, 3, rtol=0, atol=0.1)
    assert np.allclose(np.corrcoef(parts), np.eye(3), rtol=0, atol=0.03)
entry, table = 768 * 0.02**2, 768 * 0.02**4  # v1 at its start: variance of q and k, of K^r and Q^r
print(f"v1 at its start: variance / K = {entry**2:.2f} of c2c, {entry * table:.0e} of c2p and p2c")

# %% [markdown]
# The general rule, also in Microsoft's code, is to divide by the square root of $K$ times the number
# of terms. If you switch p2c off, you must divide by $\sqrt{2K}$.
#
# The released models do not start as assumed. In v1 the matrices and the table begin with standard
# deviation 0.02, so c2p and p2c are almost zero compared with c2c. v3 puts a LayerNorm ([chapter
# 60](60_layers.ipynb)) on the table, which makes the three terms similar in size.
#
# ## p2c in the paper and in the released code
#
# In c2p the row is $\delta(i,j)$, and in p2c it is $\delta(j,i)$. The query asks "where are you,
# seen from me?", and the key answers "where are you, seen from *me*?" This is the paper's
# definition. The released code differs.
# [Microsoft's](https://github.com/microsoft/DeBERTa/blob/2c5b6b2/DeBERTa/deberta/disentangled_attention.py)
# until March 2023, and [Hugging Face's
# port](https://github.com/huggingface/transformers/blob/0038a3c/src/transformers/models/deberta_v2/modeling_deberta_v2.py),
# compute p2c in five steps:
#
# 1. multiply all keys with all rows: entry $(j, p)$ is $k_j\cdot Q^r_p$;
# 2. make the matrix of distances, first index minus second, here key by query: $j-i$;
# 3. flip the sign, add $m$, clip: $\mathrm{clip}(i-j+m,\,0,\,2m-1)$, which is $\delta(i,j)$;
# 4. pick these entries from each row of step 1;
# 5. transpose.
#
# Step 2 flips the sign of the distance, and step 3 flips it back. Microsoft's code since
# [c794b71](https://github.com/microsoft/DeBERTa/blob/c794b71/DeBERTa/deberta/disentangled_attention.py)
# reads the same row without the detour.
#
# $$\text{paper:}\;\; K^c_j\cdot Q^r_{\delta(j,i)}\qquad
# \text{released code:}\;\; K^c_j\cdot Q^r_{\delta(i,j)}$$
#
# `deberta_scores` follows the paper. With `p2c_distance=distance` it follows the code.

# %%
products = k @ tables[0, 0].T  # 1. (S, 2m)
rel = np.arange(6)[:, None] - np.arange(6)  # 2. first index minus second
index = np.clip(-rel + 3, 0, 5)  # 3.
p2c_code = np.take_along_axis(products, index, axis=1).T  # 4. and 5.
assert np.array_equal(index.T, rows["p2c, released code"])  # the figure at the top
newer = np.take_along_axis(products.T, np.clip(six + 3, 0, 5), axis=0)
assert np.array_equal(newer, p2c_code)
content, alone = q @ k.T / math.sqrt(12), (tables[0], np.zeros((1, 6, 4)))  # p2c only
paper = deberta_scores(q[None], k[None], *alone, six)[0] - content
code = deberta_scores(q[None], k[None], *alone, six, p2c_distance=six)[0] - content
for i, j in np.ndindex(6, 6):
    assert np.isclose(p2c_code[i, j], k[j] @ tables[0, 0, delta(i, j, 3)], rtol=0, atol=1e-12)
    assert np.isclose(code[i, j], p2c_code[i, j] / math.sqrt(12), rtol=0, atol=1e-12)
    its_row = k[j] @ tables[0, 0, delta(j, i, 3)]
    assert np.isclose(paper[i, j], its_row / math.sqrt(12), rtol=0, atol=1e-12)

# %% [markdown]
# Is the paper or the code wrong? For a model trained from the start it barely matters, because a
# trained table may as well be stored upside down. Row $m$ serves distance 0 in both, and row $p$ of
# one is row $2m-p$ of the other. Only row 0 has no twin. And $Q^r$ and $K^r$ come from one table $P$,
# so flipping one and not the other gives a slightly different model.
#
# **A common mistake** is to load weights and read them as the paper does. Then scores off the
# diagonal are wrong. Readers of the code have asked about it (microsoft/DeBERTa issues #47 and
# #162). One port copied step 3 and not step 5, which corrupted every score off the diagonal
# (nntrainer, pull request #3982).

# %%
mirrored = tables[0][:, [0, 5, 4, 3, 2, 1]]  # row p takes row 2m - p; row 0 stays
near = np.abs(six) < 3  # the distances whose row has a twin
turned = deberta_scores(q[None], k[None], mirrored, alone[1], six, six)[0] - content
same = np.isclose(turned, paper, rtol=0, atol=1e-12)
print("equal after mirroring, near pairs:", bool(same[near].all()))
print("equal after mirroring, all pairs: ", bool(same.all()))
assert same[near].all() and not same[~near].any()
assert np.array_equal(np.isclose(paper, code, rtol=0, atol=1e-9), six == 0)

# %% [markdown]
# ## Log buckets in DeBERTa-v2 and v3 (second reading)
#
# DeBERTa-v2 and v3 put distances into groups, **buckets**, before they read the table. There are
# $b$ buckets on each side. Write $h=b/2$. Up to $h$ each distance has its own number. Beyond $h$,
# equal *ratios* of distances get equal numbers of buckets, up to the distance $D_{\max}-1$.
#
# $$\begin{gathered}\mathrm{bucket}(d)=\begin{cases}d & |d|\le h\\
# \mathrm{sign}(d)\,(h+\lceil t\,\rceil) & |d|>h\end{cases}\\[4pt]
# t=\frac{\ln(|d|/h)}{\ln\big((D_{\max}-1)/h\big)}\,(h-1)\end{gathered}$$
#
# Read $t$ first. The fraction is 0 at $|d|=h$ and 1 at $|d|=D_{\max}-1$. Multiplied by $h-1$ and
# rounded up, it numbers the far buckets. In v3 $b=256$ (`position_buckets`) and $D_{\max}=512$. The
# buckets replace the distances, and then a table of $2b$ rows is read as before.


# %%
def bucket_by_hand(d, b, farthest):
    """The equation above for one distance; nothing stops it beyond `farthest`."""
    h = b // 2
    if abs(d) <= h:
        return d
    share = math.log(abs(d) / h) / math.log((farthest - 1) / h)
    return int(math.copysign(h + math.ceil(share * (h - 1)), d))


print({d: bucket_by_hand(d, 256, 512) for d in (127, 128, 129, 200, 256, -300, 511)})
within = np.arange(1023) - 511  # from -511 to 511
assert deberta_bucket(within, 256, 512).tolist() == [bucket_by_hand(d, 256, 512) for d in within]
assert bucket_by_hand(-200, 256, 512) == -169 and bucket_by_hand(511, 256, 512) == 255

# %%
show_source(deberta_bucket)
print("b = 20, D_max = 81: 20 in bucket", deberta_bucket(20, 20, 81), "by float64", end=" ")
print(bucket_by_hand(20, 20, 81))
assert 10 ** (9 - 3) * 80**3 == 20**9  # 20 is 10 (80/10)^(3/9): the edge of bucket 10 + 3
assert deberta_bucket([20, 21], 20, 81).tolist() == [13, 14] and bucket_by_hand(20, 20, 81) == 14

# %% [markdown]
# The package counts edges, as for T5 ([chapter 33](33_t5.ipynb#t5-buckets-the-rule-derived)): where an edge is a
# whole number, a rounded logarithm may end a bucket one distance early. In v3 it never does.
#
# From $D_{\max}$ on there are two answers. The package stops at $b-1$, as Microsoft's code does since
# [c794b71](https://github.com/microsoft/DeBERTa/blob/c794b71/DeBERTa/deberta/da_utils.py). Its older
# code and Hugging Face's port (see above) let the buckets continue to grow, and clip the *row*.
# **Predict** where a text of 1,024 tokens makes a difference: in the far past, in the far future, or
# in both?

# %% fold="output"
print("distance  bucket: ours, grown   row: ours, grown")
for d in (-600, -512, -511, 511, 512, 600):
    ours, grown = int(deberta_bucket(d, 256, 512)), bucket_by_hand(d, 256, 512)
    row, grown_row = (min(max(x + 256, 0), 511) for x in (ours, grown))
    print(f"{d:8}  {ours:12}{grown:7}  {row:13}{grown_row:7}")
    assert (row != grown_row) == (d <= -512)
assert deberta_bucket(-9999, 256, 512) + 256 == 1  # ours never reads row 0

# %% [markdown]
# It makes a difference only in the far future. There the growing buckets reach row 0. In the past
# the clip stops both at the last row, 511. Up to 512 tokens the two agree, and **row 0 is never
# read, so no such text trains it**. If you run such a port on longer texts, the far future reads
# that untrained row. The package gives it row 1, which was trained. The table of v1 has the same
# gap: with $m=512$ row 0 is only for the distance -512.

# %% alt="Left: a small staircase of buckets against distance, exact near 0, then with wider and wider steps, and flat at the ends. Right: the released size. Beyond the largest distance, one curve stays flat and one continues to grow."
small, large = np.arange(-80, 81), np.arange(0, 1024)
grown = np.array([bucket_by_hand(int(d), 256, 512) for d in large])
stairs = deberta_bucket(small, 16, 64), large, deberta_bucket(large, 256, 512)
plots.deberta_staircase(small, *stairs, grown)
plt.show()

# %% [markdown]
# T5's buckets ([chapter 33](33_t5.ipynb)) are of the same kind with other details. T5 rounds
# *down*, has 16 buckets for each direction instead of 256, and a bucket gives a number, not a row
# of vectors.
#
# ## Enhanced mask decoder: absolute positions before the last layer
#
# The paper gives an example for absolute positions. In "a new *store* opened beside the new *mall*"
# both words in italics are hidden and must be guessed. Both follow "new", but "store" is the
# subject, and English subjects tend to come early. According to the paper, relative positions do
# not suffice here. But the distances to "opened" tell the two apart. A relative model is not blind
# here, but the absolute position can make the task *easier*. A relative model is blind in a text of
# equal words ([chapter 32](32_transformer_xl.ipynb)). So we test with six copies of the same hidden
# word.

# %%
weights = np.random.default_rng(7).standard_normal((12, 3, 8, 8)) / math.sqrt(8)  # W_q, W_k, W_v
q_table, k_table = np.random.default_rng(8).standard_normal((2, 1, 8, 8))


def layer(number, H, I):
    """A layer: queries from I, keys and values from H; a residual connection around it."""
    W_q, W_k, W_v = weights[number - 1]
    scores = deberta_scores((I @ W_q)[None], (H @ W_k)[None], q_table, k_table, six)[0]
    return I + attend(scores, H @ W_v)[0]


hidden = np.tile(rng.standard_normal(8), (6, 1))
assert np.ptp(layer(12, hidden, hidden), axis=0).max() < 1e-12  # equal words, equal outputs

# %% [markdown]
# BERT adds absolute positions at the input. DeBERTa adds them after all layers but the last, just
# before the hidden words are guessed, and only in the *queries*. This is its **enhanced mask
# decoder**, EMD. Let $H$ be the output of layer 11 of 12 and $P_{\text{abs}}$ a table of absolute
# positions. Layer 12 takes its queries from its second argument, and keys and values from its first.
# In `masked_language_model.py` of the repository at
# [4d7fe0b](https://github.com/microsoft/DeBERTa/blob/4d7fe0b/DeBERTa/apps/models/masked_language_model.py)
# this is
#
# $$I_1=\mathrm{layer}_{12}(H,\;H+P_{\text{abs}}),\qquad I_2=\mathrm{layer}_{12}(H,\;I_1)$$

# %%
P_abs = rng.standard_normal((6, 8))
I_1 = layer(12, hidden, hidden + P_abs)
I_2 = layer(12, hidden, I_1)
by_hand, (W_q, W_k, W_v) = [], weights[11]
for state in (hidden + P_abs, I_1):
    scores = deberta_scores((state @ W_q)[None], (hidden @ W_k)[None], q_table, k_table, six)
    by_hand.append(state + softmax(scores[0]) @ (hidden @ W_v))
assert np.allclose(by_hand, [I_1, I_2], rtol=0, atol=1e-12)
print(f"outputs now differ by up to {np.ptp(I_2, axis=0).max():.1f}")
assert (np.ptp(I_2, axis=0) > 1e-3).all()  # in every component

# %% [markdown]
# The same layer, with the same weights, is applied twice (appendix A.8 of the paper, and
# `emd_context_layer` of that file). DeBERTa-base has 12 layers
# ([deberta_base.json](https://github.com/microsoft/DeBERTa/blob/4d7fe0b/experiments/language_model/deberta_base.json)),
# so a hidden word passes 13 applications in pre-training. If the absolute positions are left out and
# the last layer is applied once, as in fine-tuning, the EMD is an ordinary layer.

# %% alt="Two rows of boxes, one box per layer application. Pre-training applies layers 1 to 11, then 12 twice, in one colour. The output of layer 11 feeds both. Absolute positions join the queries of the first, whose output gives the queries of the second. Fine-tuning applies layers 1 to 12."
once = list(range(1, 13))
plots.deberta_decoder({"pre-training": [*once, 12], "fine-tuning": once})
plt.show()

# %% [markdown]
# ## T5 against DeBERTa
#
# | | T5 ([chapter 33](33_t5.ipynb)) | DeBERTa |
# |---|---|---|
# | terms kept | c2c and p2p | c2c, c2p and p2c |
# | a distance is | one number per head | a vector, read by the query and by the key |
# | which words influence the distance term | none | the query's word and the key's word |
# | direction | kept: each side has its own buckets | kept |
# | absolute positions | none | in the queries of the last layer, in pre-training |
# | far distances | 16 buckets per side | cut off at $m$; in v2 and v3 buckets |
# | scale | none (in the initial weights) | $\sqrt{3K}$ |
#
# What does DeBERTa pay? For one head of width 64, at 512 tokens, every query and every key is
# multiplied by all $2m$ rows.

# %%
for name, count in (("v1, 1,024 rows", 1024), ("v3, 512 rows", 512)):
    ratio = (512 * 512 + 2 * 512 * count) / (512 * 512)
    print(f"{name}: {ratio:.0f} times the products of plain scores")
numbers = {"T5": 32 * 12, "v1": 1024 * 768 + 12 * 2 * 768**2, "v3": 512 * 768 + 2 * 768}
print("trained numbers for distances, base sizes:", {k: f"{n:,}" for k, n in numbers.items()})
assert t5_bucket(1) != t5_bucket(-1)

# %% [markdown]
# T5 has a table of 32 buckets and 12 heads. v1 has the table $P$ and two matrices in each of 12
# layers, without counting biases. v3 has the table and its LayerNorm, because projections are
# shared with the contents.

# %% [markdown]
# ## In short
#
# - **Which terms are added, and what is the scale?** Content to content, content to position (c2p)
#   and position to content (p2c), divided by $\sqrt{3K}$. In general, divide by the square root of
#   $K$ times the number of terms. [The scale](#the-scale-why-the-square-root-of-3k).
# - **Which row of the table does a pair read?** Row $\delta(i,j)=i-j+m$, clipped to 0 and $2m-1$.
#   Distance 0 reads row $m$, and the future comes first. v1 has 1,024 rows, v3 512.
#   [The function delta](#the-function-delta-which-row-of-the-table-a-pair-reads).
# - **Does p2c read $\delta(i,j)$ or $\delta(j,i)$?** The paper prints $\delta(j,i)$, the released
#   code reads $\delta(i,j)$. For loaded weights call `deberta_scores` with `p2c_distance=distance`.
#   [p2c](#p2c-in-the-paper-and-in-the-released-code).
# - **Do positions have their own projections?** In the paper yes. In DeBERTa-v3 they share the
#   projections of the contents (`share_att_key`).
#   [Disentangled attention](#disentangled-attention-two-vectors-per-token).
# - **How do v2 and v3 group far distances?** They use 256 buckets per side. Each distance up to 128
#   has its own. Beyond, up to 511, equal ratios of distances get equal numbers of buckets.
#   [Log buckets](#log-buckets-in-deberta-v2-and-v3-second-reading).
# - **Are there 12 layers or 13, and where do absolute positions enter?** There are 12. In
#   pre-training layer 12 is applied twice, and absolute positions enter only its queries.
#   [Enhanced mask decoder](#enhanced-mask-decoder-absolute-positions-before-the-last-layer).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 34` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 34_deberta.py` checks yours.
#
# ### Exercise 1: Which distances share a row?
#
# A table has 8 rows. Which distances $i-j$ read row 0 and which row 7, in c2p and in p2c, under the
# paper's reading and under the released code's? Is there a distance that has its own row in c2p and
# shares one in p2c?
#
# <details><summary>Hint 1</summary>
#
# $m=4$. Write down $\delta$ for the distances -5 to 5.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Under the paper's reading p2c sees the distance with the opposite sign.
#
# </details>
#
# <details><summary>Solution</summary>
#
# In c2p the distances from $-4$ down read row 0, and those from 3 up read row 7. In the paper's p2c
# the distances from 4 up read row 0, and those from $-3$ down read row 7. So $-3$ has its own row in
# c2p and shares one in p2c. In the code p2c is like c2p.
#
# ```python
# d = np.arange(-9, 10)
# c2p_rows = np.array([delta(x, 0, 4) for x in d])
# paper_rows = np.array([delta(0, x, 4) for x in d])
# assert d[c2p_rows == 0].max() == -4 and d[c2p_rows == 7].min() == 3
# assert d[paper_rows == 0].min() == 4 and d[paper_rows == 7].max() == -3
# assert (c2p_rows == delta(-3, 0, 4)).sum() == 1 and (paper_rows == delta(0, -3, 4)).sum() > 1
# ```
#
# </details>
#
# ### Exercise 2: Transformer-XL inside DeBERTa
#
# Choose the table $Q^r$ such that p2c becomes Transformer-XL's term $u\cdot k_j$. Which of the four
# terms of Transformer-XL is then still missing?
#
# <details><summary>Hint 1</summary>
#
# $u\cdot k_j$ doesn't depend on the distance.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Let all rows be the same.
#
# </details>
#
# <details><summary>Solution</summary>
#
# All rows equal $u$. The missing term is $v\cdot r_{i-j}$, one number per distance: p2p.
#
# ```python
# u = rng.standard_normal(4)
# with_u = deberta_scores(q[None], k[None], np.tile(u, (1, 6, 1)), np.zeros((1, 6, 4)), six)[0]
# assert np.allclose(with_u, (q @ k.T + k @ u) / math.sqrt(3 * 4), rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 3: A preference that needs all three
#
# The three terms of DeBERTa can't say "'deep', and only 'deep', wants 'learning', and only
# 'learning', next to it". Prove it with eight scores: two queries, two keys, two distances.
#
# <details><summary>Hint 1</summary>
#
# The text formed a difference of differences. Form the difference of two of those.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `with_both[:, :, [1, 5]]` contains the eight. Which signs do they get?
#
# </details>
#
# <details><summary>Solution</summary>
#
# Each term depends on only two of the three things, so it cancels in the difference over the third.
# With a preference that needs all three, the signed sum of the eight scores would not be 0.
#
# ```python
# turns = np.array([1, -1])
# eight = with_both[:, :, [1, 5]]
# assert abs(np.einsum("qkd,q,k,d->", eight, turns, turns, turns)) < 1e-12
# wish = np.zeros((2, 2, 2))
# wish[0, 0, 0] = 1
# assert np.einsum("qkd,q,k,d->", wish, turns, turns, turns) == 1
# ```
#
# </details>

# %% [markdown]
# ## In practice
#
# **What to check before you load weights.** Check which terms are on: the released configurations
# name them in a string such as `p2c|c2p`, and the scale counts them. Check whether positions have
# their own projections (`share_att_key`), and whether the table has a LayerNorm (`norm_rel_ebd`).
# Check the order of rows: row $m$ is distance 0, and the future comes first. And check how p2c is
# read, as above.
#
# **Fewer queries than keys.** If only the last queries are computed, give `deberta_scores` the
# distances of *their* positions. Then the rows equal the last rows of the square result:

# %%
square = deberta_scores(q[None], k[None], *tables, six)[0]
last = deberta_scores(q[None, -3:], k[None], *tables, relative_distance([3, 4, 5], np.arange(6)))
assert np.allclose(last[0], square[-3:], rtol=0, atol=1e-12)

# %% [markdown]
# ## Further reading
#
# - He et al. 2021, "DeBERTa: Decoding-enhanced BERT with Disentangled Attention" (arXiv:2006.03654):
#   section 3.1 with equations (2) to (4), section 3.2 and appendix A.8 for the EMD.
# - He et al. 2021, "DeBERTaV3" (arXiv:2111.09543): disentangled attention under another training
#   task.
# - Microsoft's code,
#   [microsoft/DeBERTa at 4d7fe0b](https://github.com/microsoft/DeBERTa/tree/4d7fe0b):
#   `disentangled_attention.py` for p2c, `da_utils.py` for the buckets.
#
# **Cards**: [deberta](CARDS.md#deberta).
