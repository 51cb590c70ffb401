# %% [markdown]
# # 90. Document 000: sinusoidal, learned, Shaw and T5 positional encoding, computed
#
# *What does document 000 say section by section, do its examples compute, and what is wrong?*
#
# 30 minutes.

# %% [markdown]
# ## In this document
#
# Document 000 is an article on positional encoding of August 2025, written in Chinese. It explains
# sinusoidal, learned, Shaw and T5 encodings, the last two with PyTorch code. This notebook goes
# through it section by section. It tells in English what a section says, computes its formulas and
# examples, corrects what is wrong, and links the chapter that teaches the subject. The ids come
# from [the index](INDEX.md): N- is a numeric example, E- a mistake, and C- something that looks
# wrong but is right.

# %% [markdown]
# ## 000-1.1 Sinusoidal positional encoding
#
# The article begins with the encoding of the first Transformer. It needs no training: each position gets a vector
# of sines and cosines, even components by the first formula and odd ones by the second.
#
# $$PE_{(pos,\,2i)}=\sin\frac{pos}{10000^{2i/d}},\qquad PE_{(pos,\,2i+1)}=\cos\frac{pos}{10000^{2i/d}}$$

# %%
import math

import numpy as np

from pe_numpy import sinusoidal, wavelengths

d, table = 8, np.full((50, 8), np.nan)
for pos in range(50):
    for i in range(d // 2):  # pair i
        angle = pos / 10000 ** (2 * i / d)
        table[pos, 2 * i], table[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
assert np.allclose(table, sinusoidal(np.arange(50), d), rtol=0, atol=1e-12)

# %% [markdown]
# **E-000-2.** The text calls $i$ first a position and then an "encoding dimension". It is neither. The position
# is $pos$, and $i$ numbers the *pairs* from 0 to $d/2-1$. Pair $i$ consists of the components $2i$ and $2i+1$, as
# in the loop above, which fills every component once.
#
# **N-000-1, E-000-1, C-1.** The example asks for the vector of "the token at the 2nd position" with $d=4$. The
# article gives $(\sin 2,\cos 2,\sin 0.02,\cos 0.02)$ and adds it to the second token's embedding. The numbers
# look wrong for a second token, but they are right for $pos=2$. Only the words are off by one: positions count
# from 0, so $pos=2$ is the *third* token, and the second has $pos=1$.

# %%
first, second, third = sinusoidal([0, 1, 2], 4)
print("pos 1:", second.round(6).tolist())
print("pos 2:", third.round(6).tolist())
printed = [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)]
assert np.allclose(third, printed, rtol=0, atol=1e-14)
assert np.abs(second - printed).max() > 0.1

# %% [markdown]
# **N-000-2.** A figure shows components 2, 6 and 12 over 128 positions: they are periodic, and the higher
# component has the longer period. That is right. The article doesn't say which $d$ it used. With $d=64$ the
# periods are 8.38, 14.90 and 35.33 positions. All three fit into 128 positions from $d=38$ on.
#
# **E-000-3.** Two slips of the pen. Sine and cosine are "split-mapped" (分裂) to even and odd components where
# *respectively* (分别) is meant, and three times "latitude" (纬) stands for *dimension* (维). What is meant is true:
# low dimensions change faster from one position to the next than high ones do.

# %%
for width in (16, 64, 128):
    print(f"d = {width:3}: periods", wavelengths(width)[[1, 3, 6]].round(2).tolist())
assert wavelengths(64)[[1, 3, 6]].round(2).tolist() == [8.38, 14.90, 35.33]
assert next(n for n in range(14, 129, 2) if wavelengths(n)[6] <= 128) == 38
largest_step = np.abs(np.diff(sinusoidal(np.arange(100), 8), axis=0)).max(axis=0)
assert (np.diff(largest_step[0::2]) < 0).all() and (np.diff(largest_step[1::2]) < 0).all()

# %% [markdown]
# **E-000-4.** From the figure the article concludes that values fluctuate less in high components. But every
# component has the same amplitude, 1. What falls is the *rate*. At $d=128$ component 100 gets from 0 to 0.095
# within 128 positions, so it looks flat. Within 200,000 positions it takes all values from $-1$ to 1, like
# component 12.
#
# **N-000-3.** Another figure compares the vectors of positions 1 and 5, again without $d$. In pair $i$ they are
# $2\lvert\sin 2\theta_i\rvert$ apart, where $\theta_i=10000^{-2i/d}$. So it is right that high components of the
# two nearly agree and that the fast pairs tell the positions apart.

# %%
pos = np.arange(200_000)
for component in (12, 100):
    wave = np.sin(2 * np.pi * pos / wavelengths(128)[component // 2])
    short, whole = ([f"{f(w):.3f}" for f in (np.min, np.max)] for w in (wave[:128], wave))
    print(f"component {component:3}: within 128 positions", *short, " within 200,000", *whole)
    assert np.allclose(wave[:128], sinusoidal(pos[:128], 128)[:, component], rtol=0, atol=1e-9)
    assert np.allclose([wave.min(), wave.max()], [-1, 1], rtol=0, atol=1e-3)
assert short == ["0.000", "0.095"]
apart = np.linalg.norm(np.diff(sinusoidal([1, 5], 16), axis=0).reshape(8, 2), axis=1)
print("pairs of positions 1 and 5 apart:", apart.round(4).tolist())
assert np.allclose(apart, 2 * np.abs(np.sin(4 * np.pi / wavelengths(16))), rtol=0, atol=1e-12)

# %% [markdown]
# The article then lists four shortcomings. Two of them (a fixed encoding isn't fitted to local dependencies, and
# a static vector may combine badly with dynamic attention) are beliefs about training, which no formula decides.
# The others can be computed.
#
# **E-000-5.** Periodicity is said to make positions of very long sequences less distinguishable. At practical
# widths it doesn't. The squared distance of the vectors of two positions that are $k$ apart is
#
# $$\lVert PE(p+k)-PE(p)\rVert^2=\sum_{i=0}^{d/2-1}\bigl(2-2\cos k\theta_i\bigr)$$
#
# For $d=64$, of all offsets up to 200,000 the direct neighbour is the nearest, at 1.4718, and the next nearest is
# 2.7189 away. Only at toy widths such as 8 or 14 does some distant position come closer than the neighbour. At 16
# none does. The claim isn't false without any limit on the length: then the distance comes arbitrarily near 0 at
# every width.

# %%
k = np.arange(1, 200_001)
for width in (8, 14, 16, 64):
    squares = sum(2 - 2 * np.cos(k * 2 * np.pi / w) for w in wavelengths(width))
    far = np.diff(sinusoidal([7, 362], width), axis=0)[0]
    assert np.isclose(far @ far, squares[354], rtol=0, atol=1e-9)
    apart, nearest = np.sqrt(squares[0]), 1 + squares[1:].argmin()
    found = f"neighbour {apart:.4f}, nearest other {np.sqrt(squares[nearest]):.4f}"
    print(f"d = {width:2}: {found} at offset {k[nearest]}")
    assert (squares.argmin() == 0) == (width > 14)
assert found == "neighbour 1.4718, nearest other 2.7189"

# %% [markdown]
# **E-000-6.** The last shortcoming is the cost in time and memory. But the table is computed once, has no
# parameters and is added once per token. For 1024 tokens of width 512 that is 524,288 additions, about
# $6\cdot10^{-5}$ of the operations in one encoder layer. A learned table has the same size and needs training as
# well.

# %%
n, D = 1024, 512
projections, network, products = 2 * n * 4 * D * D, 2 * n * 2 * D * 4 * D, 2 * 2 * n * n * D
additions = sinusoidal(np.arange(n), D).size
share = additions / (projections + network + products)
print(f"{additions:,} additions, {share:.0e} of one layer")
assert additions == 524_288 and f"{share:.0e}" == "6e-05"

# %% [markdown]
# Taught in [chapter 20](20_sinusoidal.ipynb#the-sinusoidal-formula): the formula, [the
# periods](20_sinusoidal.ipynb#wavelengths-how-long-is-a-turn) and [whether positions stay
# distinguishable](20_sinusoidal.ipynb#is-the-encoding-unique).
#
# ## 000-1.2 Learned positional embeddings
#
# Here each position up to `max_len` has its own trained vector, which is added to the token's embedding. The
# article's reason for it is that such vectors fit the task and the data. It lists two drawbacks.
#
# **N-000-4.** A model trained with `max_len` 512 cannot process 1024 tokens. Right: the table has no row for
# position 512.
#
# **E-000-22.** The table's parameters "may make large models harder to converge". The article gives no evidence.
# In BERT-base 512 rows of width 768 are 393,216 parameters, 0.36% of the model. Vaswani et al. (2017,
# section 3.5) report "nearly identical results" for learned and sinusoidal vectors.

# %%
from pe_numpy import learned
from pe_numpy.transformer.encodings import Learned, Shape

trained = Learned(512).shared(np.random.default_rng(0), Shape(d_model=768, n_heads=12))
(E,) = trained.values()
assert learned(E, np.arange(512)).shape == (512, 768)
try:
    raise AssertionError(learned(E, np.arange(1024)))
except ValueError as error:
    print(error)
D, F, norm = 768, 3072, 2 * 768  # BERT-base as released; a norm has gain and bias
layer = 4 * (D * D + D) + (D * F + F + F * D + D) + 2 * norm
total = (30_522 + 512 + 2) * D + norm + 12 * layer + D * D + D  # 12 layers, and the pooler
print(f"{E.size:,} of {total:,} parameters: {E.size / total:.2%}")
assert E.size == 393_216 and f"{E.size / total:.2%}" == "0.36%"

# %% [markdown]
# Taught in [chapter 21](21_learned.ipynb#beyond-the-last-row-index-out-of-range): how a table is trained, and what happens at its
# end.
#
# ## 000-2.1 Shaw's relative position representations
#
# A relative encoding lets the score depend on the contents and on the distance $i-j$. In Shaw's scheme a trained
# vector $R_{i-j}$, read from a table, is multiplied by the query, as the key is. The article shows the standard
# score and Shaw's:
#
# $$\text{score}(i,j)=\frac{Q_i\cdot K_j}{\sqrt{d_k}},\qquad
# \text{score}(i,j)=\frac{Q_i\cdot K_j+Q_i\cdot R_{i-j}}{\sqrt{d_k}}$$

# %%
from pe_numpy import attention, relative_distance, shaw_scores, softmax

rng, at = np.random.default_rng(0), np.arange(4)
Q, K = rng.standard_normal((2, 2, 4, 6))  # (H, L, d_k) each
R = rng.standard_normal((7, 6))  # one row for each distance from -3 to 3
standard, shaw = np.empty((2, 2, 4, 4))
for h, i, j in np.ndindex(2, 4, 4):
    standard[h, i, j] = Q[h, i] @ K[h, j] / math.sqrt(6)
    shaw[h, i, j] = (Q[h, i] @ K[h, j] + Q[h, i] @ R[i - j + 3]) / math.sqrt(6)
assert np.allclose(softmax(standard), attention(Q, K, K)[1], rtol=0, atol=1e-12)
assert np.allclose(shaw, shaw_scores(Q, K, R, relative_distance(at, at)), rtol=0, atol=1e-12)

# %% [markdown]
# The code is then explained line by line. **N-000-5.** For four tokens a column of positions minus a row of
# positions is the $4\times4$ matrix of $i-j$. **N-000-6.** Adding `max_len - 1` = 3 turns it into row numbers
# from 0 to 6. Both matrices are printed correctly.
#
# **E-000-9.** A comment in the code says that the addition shifts the distances "to `[0, 2L-2]`". It shifts them
# to `[max_len-L, max_len+L-2]`, the middle of the table. The two are the same only if `L` equals `max_len`; with
# 3 tokens and `max_len` 5 the row numbers are 2 to 6.

# %%
distance = np.array(relative_distance(at, at))
print(distance.tolist(), (distance + 3).tolist(), sep="\n")
assert distance.tolist() == [[0, -1, -2, -3], [1, 0, -1, -2], [2, 1, 0, -1], [3, 2, 1, 0]]
assert (distance + 3).tolist() == [[3, 2, 1, 0], [4, 3, 2, 1], [5, 4, 3, 2], [6, 5, 4, 3]]
L, max_len = 3, 5
rows = relative_distance(np.arange(L), np.arange(L)) + max_len - 1
print("3 tokens, max_len 5:", rows.tolist())
assert [rows.min(), rows.max()] == [max_len - L, max_len + L - 2] == [2, 6]

# %% [markdown]
# **C-18.** The position term is computed by `einsum('bhld,lmd->bhlm', Q, R)`, which looks as if the two `l` were
# summed. They are not: a letter that occurs in the result is kept, so `l` is matched, and only `d` is summed. The
# article's reading is right:
#
# $$\text{pos\_score}[b,h,l,m]=\sum_{d=1}^{d_k}Q[b,h,l,d]\;R[l,m,d]$$
#
# It also explains well why $R$ isn't simply added: a dot product turns the vector into a number, seen from the
# query, as $Q\cdot K$ does for the content.

# %%
gathered = R[distance + 3]  # (L, L, d_k)
position = np.einsum("bhld,lmd->bhlm", Q[None], gathered)  # a batch of one
for b, h, l, m in np.ndindex(1, 2, 4, 4):
    expected = sum(Q[h, l, c] * gathered[l, m, c] for c in range(6))
    assert np.isclose(position[b, h, l, m], expected, rtol=0, atol=1e-12)
both = standard + position[0] / math.sqrt(6)
assert np.allclose(both, shaw_scores(Q, K, R, distance), rtol=0, atol=1e-12)

# %% [markdown]
# **E-000-7.** Equal distances share a vector, "so the model generalises better to longer sequences". The code
# contradicts this: its table has `2*max_len - 1` rows, and it *asserts* that no sequence is longer than
# `max_len`. What is missing is the clipping of Shaw et al. (2018, section 3.2). Distances beyond $k$ read the row
# of $k$, and $2k+1$ vectors serve any length. For 512 tokens that is 33 rows with $k=16$, instead of 1023. The
# cell makes a table whose vectors are the distances, so that the scores show which row was read.
#
# **E-000-8.** The value term is missing. In the paper (section 3.1) a second relative vector is added to each
# value: $z_i=\sum_j\alpha_{ij}(x_jW^V+a^V_{ij})$. The paper found that the key term does as well without it, so
# leaving it out is legitimate, if it is said.

# %%
from pe_numpy import shaw_values

rows_read = np.arange(-2, 3)[:, None]  # k = 2, d_k = 1: the vector of a distance is the distance
seen = shaw_scores(np.ones((1, 1)), np.zeros((11, 1)), rows_read, relative_distance([5], range(11)))
print("distances 5 to -5 clipped at 2:", seen[0].astype(int).tolist())
assert seen[0].tolist() == [2, 2, 2, 2, 1, 0, -1, -2, -2, -2, -2]
for k, n_rows in ((511, 1023), (16, 33)):
    indices = np.clip(relative_distance(np.arange(512), np.arange(512)), -k, k) + k
    assert np.unique(indices).size == 2 * k + 1 == n_rows
out, weights = attention(Q, K, K)
with_values = shaw_values(weights, K, R, distance)  # K in the place of the values
added = np.einsum("hij,ijd->hid", weights, gathered)
assert np.allclose(with_values, out + added, rtol=0, atol=1e-12) and np.abs(added).max() > 0.1

# %% [markdown]
# **C-2.** The article reads the table at $i-j$, the paper at $j-i$. That looks like a wrong sign, but the table
# is learned: reversing its rows turns one convention into the other. Only mixing them is wrong, for example when
# you load a table that was trained with the other sign.

# %%
mirrored = shaw_scores(Q, K, R[::-1], -distance)  # rows reversed, and read at j - i
mixed = shaw_scores(Q, K, R, -distance)
assert np.allclose(mirrored, shaw, rtol=0, atol=1e-12)
print(f"same table, other sign: scores change by up to {np.abs(mixed - shaw).max():.2f}")
assert np.abs(mixed - shaw).max() > 1

# %% [markdown]
# Taught in [chapter 31](31_shaw.ipynb#shaws-score-relative-vectors-on-the-keys): the score, [clipping](31_shaw.ipynb#clipping-distances-longer-than-the-table),
# [the sign](31_shaw.ipynb#sign-of-the-distance-which-end-of-the-table-is-the-past) and [the value term](31_shaw.ipynb#relative-vectors-on-the-values).
#
# ## 000-2.2 T5's relative position bias
#
# T5 adds a single number to each score. Distances are sorted into a few buckets, fine ones near by
# and coarse ones far away, and each bucket has one trained number per head. The article compares
# the two schemes well. For Shaw the relative position is like an extra feature of the key, and for
# T5 it is a table of corrections to the score.
#
# $$\text{score}(i,j)=\frac{Q_i\cdot K_j}{\sqrt{d_k}}+b_{\text{bucket}(i-j)}$$

# %%
from pe_numpy import t5_bias, t5_bucket

table = rng.standard_normal((32, 2))  # (buckets, heads)
score = np.empty((2, 4, 4))
for h, i, j in np.ndindex(2, 4, 4):
    score[h, i, j] = Q[h, i] @ K[h, j] / math.sqrt(6) + table[t5_bucket(i - j), h]
bias = t5_bias(table, distance)
assert np.allclose(softmax(score), attention(Q, K, K, bias=bias)[1], rtol=0, atol=1e-12)

# %% [markdown]
# **E-000-10.** The division by $\sqrt{d_k}$ comes and goes. It is in this formula and in the final code, but not
# in the steps between them, nor in step 5 of the section on Shaw. You must choose one, because the bias isn't
# divided. With $Q\cdot K=4$, $d_k=16$ and $b=1$ the score is 2 with the division and 5 without it. T5 itself does
# not divide: its query matrix starts smaller by $\sqrt{d_k}$ instead. So the formula above isn't quite T5's.

# %%
query = np.r_[np.ones(4), np.zeros(12)][None]  # d_k = 16
keys = np.stack([query[0], np.zeros(16)])  # products 4 and 0
for scale in (None, 1.0):  # None divides by the square root of d_k
    w = attention(query, keys, keys, bias=[[1.0, 0.0]], scale=scale)[1][0]
    print("divided:" if scale is None else "undivided:", f"score {math.log(w[0] / w[1]):.1f}")
    assert math.isclose(math.log(w[0] / w[1]), 2 if scale is None else 5, abs_tol=1e-9)

# %% [markdown]
# ### The bias table
#
# **N-000-7.** The article draws a table of three buckets by three heads. A column is one head's preference. With
# equal scores heads 0 and 2 prefer bucket 1, and head 1 prefers bucket 2.
#
# **E-000-11.** Small distances such as 1, 2 and 3 may share a bucket, says the article, and large ones may have
# different buckets. The first half is wrong for T5, where 1, 2 and 3 have their own buckets. The second half is
# true only below 91: the distances 20 and 60 differ, but all from 91 on share the last bucket. The next step of
# the article says the opposite, correctly.

# %%
small = np.array([[0.1, -0.2, 0.05], [0.3, 0.0, 0.1], [-0.1, 0.2, 0.0]])  # (buckets, heads)
assert softmax(small, axis=0).argmax(axis=0).tolist() == [1, 2, 1]
print("buckets of 1, 2, 3:", t5_bucket([1, 2, 3]).tolist())
print("buckets of 20, 60, 90, 91, 5000:", t5_bucket([20, 60, 90, 91, 5000]).tolist())
assert t5_bucket([1, 2, 3]).tolist() == [1, 2, 3]
assert t5_bucket([20, 60, 90, 91, 5000]).tolist() == [10, 13, 14, 15, 15]

# %% [markdown]
# ### What buckets do
#
# **N-000-8.** The first four rows of an $8\times8$ matrix are shown, rightly, as $j-i$.
# **E-000-12.** That is the opposite sign of the formula. The article takes $i-j$ in the formula,
# $j-i$ in its explanation, and $i-j$ again in the final code. T5's code takes $j-i$; this book
# takes $i-j$ everywhere. The two give different buckets: for query 0 and key 3 they are the buckets
# of $-3$ and of 3. Another slip: the summary writes $B_{i-j,h}$ where the index is the bucket,
# $B_{\text{bucket}(i-j),h}$.
#
# **N-000-9.** A toy rule has four buckets: at most 1, exactly 2, 3 to 4, more than 4. It is applied to four
# tokens. **E-000-13.** As worded the rule is for signed distances, and it puts every negative one into bucket 0.
# The printed table needs the absolute value. T5 does neither: it has separate buckets for each direction.

# %%
eight = -np.array(relative_distance(np.arange(8), np.arange(8)))  # j - i
assert eight[0].tolist() == [*range(8)] and eight[3].tolist() == [-3, -2, -1, 0, 1, 2, 3, 4]
assert eight[1:3, :2].tolist() == [[-1, 0], [-2, -1]]
print("query 0, key 3:", {n: int(t5_bucket(n)) for n in (-3, 3)})
assert (t5_bucket(-3), t5_bucket(3)) == (19, 3)


def toy_bucket(n):
    return 0 if n <= 1 else 1 if n == 2 else 2 if n <= 4 else 3


signed, absolute = ([[toy_bucket(f(n)) for n in row[:4]] for row in eight[:4]] for f in (int, abs))
print("as worded:", signed, "\nas printed:", absolute)
assert absolute == [[0, 0, 1, 2], [0, 0, 0, 1], [1, 0, 0, 0], [2, 1, 0, 0]]
assert signed == [[0, 0, 1, 2], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]

# %% [markdown]
# ### From buckets to scores
#
# **N-000-10.** Six steps lead from positions to scores. They are a matrix of distances $(L,L)$,
# their buckets $(L,L)$, the numbers looked up $(L,L,H)$, heads first $(H,L,L)$, and a batch axis
# $(1,H,L,L)$ for broadcasting. These shapes are right. In the sum, as said above, $B$ is read at
# the bucket:
#
# $$\text{attn\_scores}_{b,h,i,j}=Q_i\cdot K_j+B_{\text{bucket}(i-j),\,h}$$

# %%
looked_up = table[t5_bucket(distance)]
heads_first = np.moveaxis(looked_up, -1, 0)[None]
print("shapes:", distance.shape, looked_up.shape, heads_first.shape[1:], heads_first.shape)
assert heads_first.shape == (1, 2, 4, 4)
assert np.array_equal(heads_first[0], t5_bias(table, distance))
undivided = Q[None] @ K[None].swapaxes(2, 3) + heads_first  # (B, H, L, L)
w = attention(Q[None], K[None], K[None], bias=heads_first, scale=1.0)[1]
assert np.allclose(softmax(undivided), w, rtol=0, atol=1e-12)
for h, i, j in np.ndindex(2, 4, 4):
    expected = Q[h, i] @ K[h, j] + table[t5_bucket(i - j), h]
    assert np.isclose(undivided[0, h, i, j], expected, rtol=0, atol=1e-12)

# %% [markdown]
# ### The bucket function
#
# The final code begins with a function for buckets. Let $h$ be the number of buckets per direction, $e=h/2$ and
# $n$ the distance without its sign. Distances below $e$ have their own bucket. For the others the code computes
#
# $$e+\Bigl\lfloor\frac{\ln(n/e)}{\ln(128/e+10^{-10})}\,(h-e)\Bigr\rfloor,\qquad\text{at most }h-1$$
#
# **N-000-11.** With 32 buckets and `max_distance` 128, $h$ is 16 if both directions are needed and 32 for the
# past only. The buckets open at the distances that the cell prints. The article prints none of them.
#
# **E-000-17.** The $10^{-10}$ is harmful in float64, as in a port to NumPy: 16, 32 and 64 fall one bucket too
# low. T5's code has no such term. **C-3.** In float32, which the article uses, the term vanishes: the divisor is
# the same number with it and without it. So the function is right as printed.


# %%
def divisor(half, epsilon=0.0):
    return math.log(128 / (half // 2) + epsilon)


def far_bucket(n, half, epsilon=0.0):
    e = half // 2
    return min(e + math.floor(math.log(n / e) / divisor(half, epsilon) * (half - e)), half - 1)


for half, both in ((16, True), (32, False)):
    far = np.arange(half // 2, 5000)
    assert [far_bucket(n, half) for n in far] == t5_bucket(far, bidirectional=both).tolist()
    opens = np.unique(t5_bucket(np.arange(200), bidirectional=both), return_index=True)[1]
    print(f"{half} per direction: buckets open at", *opens)
assert (far_bucket(16, 16), far_bucket(16, 16, 1e-10)) == (10, 9)

# %%
low = [n for n in range(8, 128) if far_bucket(n, 16, 1e-10) != t5_bucket(n)]
print("one bucket too low in float64:", low)
assert low == [16, 32, 64] and [far_bucket(n, 16, 1e-10) for n in low] == [9, 11, 13]
for half in (16, 32):
    assert divisor(half) < divisor(half, 1e-10)
    assert np.float32(divisor(half)) == np.float32(divisor(half, 1e-10))

# %% [markdown]
# **E-000-16.** A comment calls $e$ the upper bound of the exact part, "inclusive". The test is `n < max_exact`,
# so it is exclusive. With $h=16$ the distances 0 to 7 are exact, and 8 opens the first shared bucket, with 9, 10
# and 11.
#
# **E-000-15.** In both directions the function adds 16 to the bucket if $i-j\ge0$. T5 does so for the future,
# $j-i>0$. So the halves are exchanged: a token itself has bucket 16 and not 0, the previous token 17 and not 1.
# Trained from scratch this is only a renaming. A table from T5's weights would be read on the wrong side.
#
# **N-000-12.** For six tokens row 0 of the matrix is 16 1 2 3 4 5, and row 5 is 21 20 19 18 17 16.


# %%
def document_bucket(distance, bidirectional=True):  # as printed; it expects i - j
    half = 16 if bidirectional else 32
    n = np.abs(distance) if bidirectional else -np.minimum(distance, 0)
    pick = np.vectorize(lambda n: n if n < half // 2 else far_bucket(n, half))
    return pick(n) + half * (distance >= 0) if bidirectional else pick(n)


six, everything = relative_distance(range(6), range(6)), np.arange(-300, 301)
both = document_bucket(six)
print("both directions, rows 0 and 5:", both[[0, 5]].tolist())
assert both[[0, 5]].tolist() == [[16, 1, 2, 3, 4, 5], [21, 20, 19, 18, 17, 16]]
renamed = (t5_bucket(everything) + 16) % 32
assert np.array_equal(document_bucket(everything), renamed)
assert t5_bucket([7, 8, 9, 10, 11, 12]).tolist() == [7, 8, 8, 8, 8, 9]
assert document_bucket(np.array([0, 1, -1])).tolist() == [16, 17, 1]

# %% [markdown]
# **E-000-14.** The decoder's buckets are a real bug. For one direction the function computes
# `n = -min(distance, 0)`, T5's formula for $j-i$, but the module passes $i-j$. Then all keys that the query may
# see have $n=0$, that is bucket 0. One number is added to a whole row, and softmax ignores it: the decoder's bias
# carries no position. With the right sign row 5 is 5 4 3 2 1 0. The cell draws a new table and looks at how much
# the output changes.

# %%
from pe_numpy import causal_mask

q, k, v = np.random.default_rng(1).standard_normal((3, 2, 6, 8))  # (H, L, d_k) each
mask = causal_mask(range(6), range(6))
wrong = document_bucket(six, bidirectional=False)
right = t5_bucket(six, bidirectional=False)
assert not wrong[mask].any() and right[5].tolist() == [5, 4, 3, 2, 1, 0]
changes = {}
for name, buckets in (("as printed", wrong), ("with j - i", right)):
    outs = [attention(q, k, v, mask, np.moveaxis(t[buckets], -1, 0))[0] for t in (table, 0 * table)]
    changes[name] = np.abs(outs[0] - outs[1]).max()
    print(f"decoder {name}: another table changes the output by {changes[name]:.1e}")
assert changes["as printed"] < 1e-12 and changes["with j - i"] > 0.1

# %% [markdown]
# ### The module and its cache
#
# **E-000-18.** The module caches the finished bias for each pair of lengths. After a training step the table has
# changed, and the cached bias is out of date. In PyTorch, training even stops in the second step, because the
# cached tensor belongs to a graph that is already gone. (We ran the code to see this.) The article calls the code
# "directly runnable, reusable". What may be cached are the bucket numbers, which don't change.
#
# **E-000-20.** Bias and mask are made from two *lengths*, so queries and keys both count from 0. With a KV cache
# one query at position 5 reads six keys. Without the offset $L_k-L_q=5$ it believes that it is at position 0, and
# sees only the oldest key.

# %%
learned_table = np.zeros((32, 2))
cached_bias, cached_buckets = np.array(t5_bias(learned_table, six)), t5_bucket(six)
learned_table += table  # a training step
assert not cached_bias.any() and t5_bias(learned_table, six).any()
fresh = np.moveaxis(learned_table[cached_buckets], -1, 0)
assert np.array_equal(fresh, t5_bias(learned_table, six))
for position, n_seen in ((0, 1), (5, 6)):  # as the code counts, and as it is
    bias = t5_bias(table, relative_distance([position], range(6)), bidirectional=False)
    w = attention(q[:, 5:], k, v, causal_mask([position], range(6)), bias)[1]
    print(f"query at position {position}: weights of head 0", w[0, 0].round(3).tolist())
    assert (w > 0).sum(axis=-1).tolist() == [[n_seen]] * 2

# %% [markdown]
# ### The example
#
# **N-000-13.** The example builds an encoder and a decoder layer for two sequences of 16 tokens, width 256 and 8
# heads, and prints shapes: outputs (2, 16, 256) and weights (2, 8, 16, 16) for both. They are right. Each layer
# has 263,424 parameters.
#
# **E-000-21.** In the article each layer has its own table, also in cross-attention. T5 shares one
# table among all layers of the encoder and another among all layers of the decoder, and its
# cross-attention has none (Raffel et al. 2020, section 2.1). The example's table is all zeros, so
# what it shows is attention without any bias.
#
# **E-000-19.** "For visualisation" it returns the weights, but after dropout. Their rows no longer sum to 1.

# %%
from pe_numpy import dropout, linear, merge_heads, split_heads

rng, n = np.random.default_rng(0), np.arange(16)
x, W = rng.standard_normal((2, 16, 256)), rng.standard_normal((4, 256, 256)) / 16
c, zeros = np.zeros(256), np.zeros((32, 8))
q, k, v = (split_heads(linear(x, W[part], c), 8) for part in range(3))
for causal, mask in ((True, causal_mask(n, n)), (False, None)):
    bias = t5_bias(zeros, relative_distance(n, n), bidirectional=not causal)
    heads, w = attention(q, k, v, mask, bias)
    out = linear(merge_heads(heads), W[3], c)
    print("decoder:" if causal else "encoder:", out.shape, w.shape)
    assert (out.shape, w.shape) == ((2, 16, 256), (2, 8, 16, 16))
    assert np.array_equal(w, attention(q, k, v, mask)[1])  # zeros: no position

# %%
from pe_numpy.transformer.encodings import T5

(trained,) = T5().shared(rng, Shape(d_model=256, n_heads=8)).values()
parameters = trained.size + W.size + 4 * c.size
print(f"{parameters:,} parameters per layer")
assert trained.shape == zeros.shape and parameters == 263_424
sums = dropout(w, 0.1, np.random.default_rng(2)).sum(axis=-1)  # of the encoder
print(f"after dropout the rows sum to {sums.min():.2f} .. {sums.max():.2f}")
assert np.allclose(w.sum(axis=-1), 1, rtol=0, atol=1e-12) and np.ptp(sums) > 0.3

# %% [markdown]
# Taught in [chapter 33](33_t5.ipynb#t5-buckets-the-rule-derived): the rule of the buckets, [the two
# directions](33_t5.ipynb#bidirectional-and-causal-buckets), [the bug in the
# decoder](33_t5.ipynb#a-common-mistake-the-wrong-sign-puts-all-keys-in-one-bucket), [the scale](33_t5.ipynb#t5-does-not-divide-by-the-square-root-of-the-head-dimension) and [the
# cache](33_t5.ipynb#a-common-mistake-a-kv-cache-without-its-offset).
