# %% [markdown]
# # 91. Document 001: study notes from sinusoidal encoding to ALiBi and RoPE, computed
#
# *What does document 001 say section by section, do its examples compute, and what is wrong?*
#
# 25 minutes.

# %% [markdown]
# ## In this document
#
# Document 001 is a set of study notes of September 2025, written in Chinese. It gives each family
# of positional encodings in a few formulas and ends with RoPE, a worked rotation and a table of
# scores. This notebook goes through it section by section. It tells in English what a section says,
# computes its formulas and examples, corrects what is wrong, and links the chapter that teaches the
# subject. The ids come from [the index](INDEX.md): N- is a numeric example, E- a mistake, and C-
# something that looks wrong but is right.

# %% [markdown]
# ## 001-1 Core concepts: why position, and where
#
# Self-attention is a weighted sum over a set, so it is permutation equivariant, and order must be brought in
# explicitly. The notes name three places for it and six desired properties: uniqueness, a deterministic rule,
# extrapolation, a simple relation between positions, decay with distance, and an extension to images and video.
#
# **E-001-1.** The word *equivariant* is right, but what follows is not: that shuffled input gives the same
# attention distribution. If $P$ reorders the tokens, weights $A$ and outputs $Y$ are reordered with them:
#
# $$A'=PAP^\top,\qquad Y'=PY$$

# %%
import numpy as np

from pe_numpy import attention

rng = np.random.default_rng(0)
X = rng.standard_normal((3, 4))  # three tokens
W_q, W_k, W_v = (rng.standard_normal((4, 4)) for _ in range(3))
Y, A = attention(X @ W_q, X @ W_k, X @ W_v)
P = np.eye(3)[::-1]  # reverses the order
Y_new, A_new = attention(P @ X @ W_q, P @ X @ W_k, P @ X @ W_v)
print(f"weights change by up to {np.abs(A_new - A).max():.3f}")
assert f"{np.abs(A_new - A).max():.3f}" == "0.554"
assert np.allclose(A_new, P @ A @ P.T, rtol=0, atol=1e-12)
assert np.allclose(Y_new, P @ Y, rtol=0, atol=1e-12)

# %% [markdown]
# **E-001-2.** The third place is described as a bias on the logits "after attention is obtained", as in ALiBi.
# The bias is added to the scores *before* the softmax. Added to the weights, it would make rows that don't sum to
# 1, and negative weights.

# %%
from pe_numpy import alibi_bias, relative_distance, softmax

B = alibi_bias([0.5], relative_distance(range(3), range(3)))[0]
before, after = attention(X @ W_q, X @ W_k, X @ W_v, bias=B)[1], A + B
print(
    "rows sum to",
    before.sum(axis=1).round(9).tolist(),
    "or to",
    after.sum(axis=1).round(9).tolist(),
)
assert np.allclose(before, softmax(X @ W_q @ W_k.T @ X.T / 2 + B), rtol=0, atol=1e-12)
assert np.allclose(after.sum(axis=1), [-0.5, 0, -0.5], rtol=0, atol=1e-12) and (after < 0).any()

# %% [markdown]
# Taught in [chapter 11](11_why_position.ipynb#attention-is-permutation-equivariant): equivariance, [the places for
# position](11_why_position.ipynb#the-four-places-where-position-enters) and [the six properties,
# tested](11_why_position.ipynb#six-properties-of-a-good-positional-encoding).
#
# ## 001-2.1 Sinusoidal encoding
#
# The formulas come from the first Transformer. They need no training, and each position has its own
# vector. The notes rightly add that $PE(pos+k)$ is a linear function of $PE(pos)$: the matrix $M_k$
# is the same at every position.
#
# $$\begin{gathered}PE_{(pos,2i)}=\sin\frac{pos}{10000^{2i/d}},\qquad PE_{(pos,2i+1)}=\cos\frac{pos}{10000^{2i/d}}\\
# PE(pos+k)=M_k\,PE(pos)\end{gathered}$$
#
# **N-001-1, C-17.** The notes compute a table for `max_len` 3 and $d=4$ in NumPy. The exponential of a logarithm
# looks like another formula. It is the same, and the code is right. The cell repeats it.

# %%
from pe_numpy import sinusoidal, sinusoidal_shift

max_len, d_model = 3, 4
pe = np.zeros((max_len, d_model))
pos = np.arange(0, max_len).reshape(-1, 1)
inv = np.exp(np.arange(0, d_model, 2) * (-np.log(10000.0) / d_model))
pe[:, 0::2] = np.sin(pos * inv)
pe[:, 1::2] = np.cos(pos * inv)
print(pe.round(8))
for n, i in np.ndindex(3, 2):
    by_formula = [np.sin(n / 10000 ** (2 * i / 4)), np.cos(n / 10000 ** (2 * i / 4))]
    assert np.allclose(sinusoidal(n, 4)[2 * i : 2 * i + 2], by_formula, rtol=0, atol=1e-14)
assert np.allclose(pe, sinusoidal(np.arange(3), 4), rtol=0, atol=1e-14)
assert np.allclose(sinusoidal_shift(1, 4) @ pe[:2].T, pe[1:].T, rtol=0, atol=1e-14)

# %% [markdown]
# **E-001-3.** "pos from 0 to `max_len`" should be 0 to `max_len - 1`: the table of three rows ends at position 2.
# The comment in the code has it right.
#
# **E-001-4.** "$i$ from 0 to $d-1$" should be 0 to $d/2-1$. With $d=4$ and $i=3$ the component $2i+1$ would be
# number 7 of a vector with 4, and the divisor would be $10^6$. The notes' own remark on wavelengths uses the
# right range.
#
# **N-001-2, E-001-5.** Wavelengths are said to grow to $10000\cdot2\pi$ (the paper says so as well). With this
# formula the longest one is $2\pi\cdot10000^{(d-2)/d}$, which stays below: 628.3185 for $d=4$, 47117.2428 for
# $d=64$ and 61342.7444 for $d=768$. The limit is 62831.8531.

# %%
from pe_numpy import wavelengths

for d in (4, 8, 64, 128, 512, 768):
    longest = wavelengths(d)[-1]
    print(f"d = {d:3}: {len(wavelengths(d)):3} pairs, longest wavelength {longest:.4f}")
    assert len(wavelengths(d)) == d // 2  # the range of i
    assert np.isclose(longest, 2 * np.pi * 10000 ** ((d - 2) / d), rtol=1e-12, atol=0)
    assert longest < 2 * np.pi * 10000
assert f"{wavelengths(4)[-1]:.4f} {longest:.4f}" == "628.3185 61342.7444"
print(f"limit {2 * np.pi * 10000:.4f}; i = 3 at d = 4: divisor {10000 ** (2 * 3 / 4):.0f}")
assert np.allclose(pe[-1], sinusoidal(2, 4), rtol=0, atol=1e-14)  # the last row is position 2

# %% [markdown]
# The notes call extrapolation both an advantage ("some") and a drawback ("limited"). The two fit together: the
# vector exists at every position, and a model trained on shorter sequences may not know what to do with it.
#
# Taught in [chapter 20](20_sinusoidal.ipynb#the-sinusoidal-formula): the formula, [the
# wavelengths](20_sinusoidal.ipynb#wavelengths-how-long-is-a-turn), [the shift
# matrix](20_sinusoidal.ipynb#the-shift-matrix-one-rotation-for-every-position) and [longer
# sequences](20_sinusoidal.ipynb#sinusoidal-encodings-beyond-the-training-length).
#
# ## 001-2.2 Learned positional embeddings
#
# BERT trains a table with one row per position. It is flexible, costs parameters and is tied to the positions
# that occurred in training.
#
# **E-001-15.** The drawback reads "no extrapolation (内插)", and the word in brackets means
# *interpolation*. Either it is a wrong translation, or the notes mean that a table can only
# interpolate. It can't do even that. A row 2.5 does not exist, and the mean of rows 2 and 3 is
# another kind of vector. For unrelated rows it is shorter by a factor of about $\sqrt2$.

# %%
from pe_numpy import learned

table = np.random.default_rng(1).standard_normal((512, 768))
for where in ([512], [2.5]):
    try:
        raise AssertionError(learned(table, where))
    except ValueError as error:
        print(error)
two, three = learned(table, [2, 3])
ratio = np.linalg.norm((two + three) / 2) / np.linalg.norm(two)
print(f"length of the mean of two rows: {ratio:.2f} of one row; 1/sqrt(2) = {0.5**0.5:.2f}")
assert abs(ratio - 0.5**0.5) < 0.05

# %% [markdown]
# Taught in [chapter 21](21_learned.ipynb#beyond-the-last-row-index-out-of-range): where a table ends, and [what is between two
# rows](21_learned.ipynb#interpolating-a-learned-table).
#
# ## 001-3 Relative encodings: the four terms of a score
#
# Take a score with absolute positions, $x$ for content and $p$ for position, and multiply it out. Each relative
# encoding deletes, replaces or combines some of the four terms. The notes leave out the scale $1/\sqrt{d_k}$
# throughout.
#
# $$\begin{gathered}q_ik_j^\top=(x_iW_Q+p_iW_Q)(x_jW_K+p_jW_K)^\top\\
# {}=x_iW_QW_K^\top x_j^\top+x_iW_QW_K^\top p_j^\top+p_iW_QW_K^\top x_j^\top+p_iW_QW_K^\top p_j^\top\end{gathered}$$

# %%
from pe_numpy import four_terms

L, D, K = 5, 16, 8  # tokens, width of the model, width of the head
rng, at = np.random.default_rng(2), np.arange(5)
x, p = rng.standard_normal((L, D)), sinusoidal(at, D)
W_Q, W_K, W_KR = rng.standard_normal((3, D, K)) / 4
M, terms = W_Q @ W_K.T, four_terms(x, p, W_Q, W_K)  # the terms are divided by sqrt(K)
for i, j in np.ndindex(L, L):
    score = (x[i] @ W_Q + p[i] @ W_Q) @ (x[j] @ W_K + p[j] @ W_K)
    four = [x[i] @ M @ x[j], x[i] @ M @ p[j], p[i] @ M @ x[j], p[i] @ M @ p[j]]
    assert np.allclose(four, [t[i, j] * np.sqrt(K) for t in terms], rtol=0, atol=1e-12)
    assert np.isclose(sum(four), score, rtol=0, atol=1e-12)

# %% [markdown]
# **E-001-13.** A drawback of relative encodings is said to be that they are complex and need more computation.
# That is true of Shaw, Transformer-XL and DeBERTa, which need one or two further products per score. T5 and ALiBi
# add one number to each score. With $d_k=64$ that is 0.8% of the operations of the product itself. Operations are
# not time: Press et al. (2022, section 2.2) found training with T5's bias at most half as fast as with sinusoidal
# encodings.

# %%
distance = relative_distance(np.arange(100), np.arange(100))
additions = alibi_bias([0.5], distance).size  # one per score
product = distance.size * 2 * 64  # multiplications and additions at d_k = 64
print(f"{additions / product:.1%} of the product")
assert additions == distance.size and f"{additions / product:.1%}" == "0.8%"

# %% [markdown]
# Taught in [chapter 30](30_expansion.ipynb#four-terms-expand-the-product): the expansion, and [what the schemes
# cost](30_expansion.ipynb#what-relative-encodings-cost-second-reading).
#
# ## 001-3.1 Shaw
#
# Shaw's scheme drops $p_iW_Q$ and replaces $p_jW_K$ with a relative vector that depends on $i-j$:
#
# $$q_ik_j^\top=x_iW_Q\bigl(x_jW_K+R^K_{i,j}\bigr)^\top$$
#
# **E-001-6.** Two parts of the paper are missing: distances are clipped to $-k..k$, and a second table is added
# to the values (Shaw et al. 2018, sections 3.1 and 3.2).

# %%
from pe_numpy import shaw_scores, shaw_values

k, distance = 2, np.array(relative_distance(at, at))
R_K, R_V = rng.standard_normal((2, 2 * k + 1, K))
ours = shaw_scores(x @ W_Q, x @ W_K, R_K, distance) * np.sqrt(K)
for i, j in np.ndindex(L, L):
    row = max(-k, min(k, i - j)) + k
    assert np.isclose((x[i] @ W_Q) @ (x[j] @ W_K + R_K[row]), ours[i, j], rtol=0, atol=1e-12)
weights = softmax(ours / np.sqrt(K))
with_values = shaw_values(weights, x @ W_K, R_V, distance)  # any values
added = np.einsum("ij,ijc->ic", weights, R_V[np.clip(distance, -k, k) + k])
print(f"the value term changes the output by up to {np.abs(added).max():.2f}")
assert np.allclose(with_values, weights @ x @ W_K + added, rtol=0, atol=1e-12)

# %% [markdown]
# Taught in [chapter 31](31_shaw.ipynb#shaws-score-relative-vectors-on-the-keys): the score, [clipping](31_shaw.ipynb#clipping-distances-longer-than-the-table) and
# [the value term](31_shaw.ipynb#relative-vectors-on-the-values).
#
# ## 001-3.2 XLNet and Transformer-XL
#
# Here $p_j$ becomes a sinusoidal vector $R_{i-j}$ of the distance, with its own matrix $W_{K,R}$, and trained
# vectors $u$ and $v$ replace $p_i$. Distances are not clipped:
#
# $$q_ik_j^\top=x_iW_QW_K^\top x_j^\top+x_iW_QW_{K,R}^\top R_{i-j}^\top+u\,W_K^\top x_j^\top+v\,W_{K,R}^\top R_{i-j}^\top$$
#
# **E-001-14.** The notes call it XLNet's. It is Transformer-XL's (Dai et al. 2019, section 3.3), and XLNet
# inherited it.
#
# In the last two terms $W_Q$ is missing, where $p_iW_Q$ had it. That isn't a slip. A trained vector that is only
# ever multiplied by $W_Q$ can be replaced by the product, which is what $u$ and $v$ are.

# %%
from pe_numpy import transformer_xl_scores

u, v, start = *rng.standard_normal((2, K)), rng.standard_normal(D)
r = sinusoidal(np.arange(-4, 5), D) @ W_KR  # distances -4 to 4, projected
queries, keys = (x @ W_Q)[None], (x @ W_K)[None]  # one head
ours = transformer_xl_scores(queries, keys, r[None], u[None], v[None], distance)[0] * np.sqrt(K)
for i, j in np.ndindex(L, L):
    R = sinusoidal(i - j, D)
    printed = x[i] @ M @ x[j] + x[i] @ W_Q @ W_KR.T @ R + u @ W_K.T @ x[j] + v @ W_KR.T @ R
    assert np.isclose(printed, ours[i, j], rtol=0, atol=1e-12)
before = np.linalg.lstsq(W_Q.T, u, rcond=None)[0]  # times W_Q it is u
again = transformer_xl_scores(queries, keys, r[None], (before @ W_Q)[None], v[None], distance)[0]
assert np.allclose(again * np.sqrt(K), ours, rtol=0, atol=1e-12)

# %% [markdown]
# Taught in [chapter 32](32_transformer_xl.ipynb#the-four-terms-of-transformer-xls-score): how the four terms change.
#
# ## 001-3.3 T5
#
# T5 drops the two mixed terms and replaces the last one with a trained number $\beta_{i,j}$, which is looked up
# by the bucket of the distance:
#
# $$q_ik_j^\top=x_iW_QW_K^\top x_j^\top+\beta_{i,j}$$
#
# As written $\beta$ has two indices. That is right for an entry of the matrix. As a parameter it depends only on
# the bucket of $i-j$: 32 numbers per head. That no scale appears is right for T5, which does not divide its
# scores.

# %%
from pe_numpy import t5_bias, t5_bucket

numbers = rng.standard_normal((32, 1))  # (buckets, heads)
beta = t5_bias(numbers, distance)
weights = attention(queries, keys, keys, bias=beta, scale=1.0)[1][0]
printed = np.empty((L, L))
for i, j in np.ndindex(L, L):
    printed[i, j] = x[i] @ M @ x[j] + numbers[t5_bucket(i - j), 0]
assert np.allclose(softmax(printed), weights, rtol=0, atol=1e-12)
print(f"{np.unique(beta).size} different numbers in a matrix of {beta.size}")
assert np.unique(beta).size == 2 * L - 1  # nine distances, each with its own bucket

# %% [markdown]
# Taught in [chapter 33](33_t5.ipynb#the-bias-table-from-buckets-to-scores): buckets and the bias, and [why T5 does not
# divide](33_t5.ipynb#t5-does-not-divide-by-the-square-root-of-the-head-dimension).
#
# ## 001-3.4 DeBERTa
#
# DeBERTa drops the last term and keeps the two mixed ones, with relative vectors instead of absolute ones:
#
# $$q_ik_j^\top=x_iW_QW_K^\top x_j^\top+x_iW_QW_K^\top R_{i,j}^\top+R_{j,i}W_QW_K^\top x_j^\top$$
#
# **E-001-7.** This is a simplified form. In the paper (He et al. 2021, equation (4)) the relative vectors have
# separate projections $W_{q,r}$ and $W_{k,r}$, and the sum of three products is divided by $\sqrt{3d_k}$. For
# $d_k=64$ that is 13.8564, not 8. With shared projections the printed formula and the paper's differ only in the
# scale.

# %%
from pe_numpy import deberta_scores

m, (W_QR, W_KR) = 3, rng.standard_normal((2, D, K)) / 4
R = rng.standard_normal((2 * m, D))  # row of i, j: i - j + m, clipped to 0 .. 2m - 1
row, printed = np.clip(distance + m, 0, 2 * m - 1), np.empty((L, L))
for i, j in np.ndindex(L, L):
    printed[i, j] = x[i] @ M @ x[j] + x[i] @ M @ R[row[i, j]] + R[row[j, i]] @ M @ x[j]
for name, W_q, W_k in (("shared", W_Q, W_K), ("separate", W_QR, W_KR)):
    ours = deberta_scores(queries, keys, (R @ W_q)[None], (R @ W_k)[None], distance)[0]
    off = np.abs(ours * np.sqrt(3 * K) - printed).max()
    print(f"{name} projections: largest difference from the printed formula {off:.1f}")
    assert (off < 1e-12) == (name == "shared")
print(f"sqrt(3 * 64) = {np.sqrt(3 * 64):.4f}")

# %% [markdown]
# Taught in [chapter 34](34_deberta.ipynb#disentangled-attention-two-vectors-per-token): the scores, [the
# scale](34_deberta.ipynb#the-scale-why-the-square-root-of-3k) and [the rows of the
# table](34_deberta.ipynb#the-function-delta-which-row-of-the-table-a-pair-reads).
#
# ## 001-3.5 ALiBi
#
# ALiBi drops the mixed terms, and the last one becomes a fixed straight line with a slope $m$ per head:
#
# $$q_ik_j^\top=x_iW_QW_K^\top x_j^\top-m\,(i-j)$$
#
# That is right under a causal mask, which the notes don't mention. Without one, keys of the future have negative
# distances, and the term *rewards* them. Where the scores are scaled, the bias is added afterwards and isn't
# divided.

# %%
from pe_numpy import causal_mask

mask, m = causal_mask(at, at), 0.5
printed = np.empty((L, L))
for i, j in np.ndindex(L, L):
    printed[i, j] = x[i] @ M @ x[j] - m * (i - j)
biased = attention(queries, keys, keys, mask, alibi_bias([m], distance), scale=1.0)[1][0]
assert np.allclose(softmax(np.where(mask, printed, -np.inf)), biased, rtol=0, atol=1e-12)
equal = softmax(-m * distance)[2]  # equal contents, no mask, the query at position 2
print("without a mask, query at 2:", equal.round(3).tolist())
assert equal.argmax() == 4
symmetric = attention(np.zeros_like(queries), keys, keys, None, alibi_bias([m], distance))[1][0]
assert symmetric[2].argmax() == 2  # the package's distance has no sign

# %% [markdown]
# Taught in [chapter 35](35_alibi.ipynb#the-alibi-formula): the formula, [the two forms of the
# distance](35_alibi.ipynb#alibi-in-an-encoder-distance-or-difference) and [the scale](35_alibi.ipynb#is-the-bias-added-inside-or-outside-the-scale).
#
# ## 001-4 RoPE: a worked rotation and a table of scores
#
# Rotary positional encoding comes from RoFormer. Its goal is well told. A query and a key are each
# rotated by an angle that depends on their absolute position, and their product depends only on the
# difference of the angles. So the encoding is absolute in form and relative in effect. Components
# are rotated in pairs. Pair $i$, counted from 1, has the frequency $\theta_i$, and at position $m$
# its components $a$ and $b$ are rotated by the angle $m\theta_i$:
#
# $$\begin{gathered}\theta_i=10000^{-2(i-1)/d},\qquad i=1,\dots,d/2\\
# (a,b)\mapsto(a\cos m\theta_i-b\sin m\theta_i,\;a\sin m\theta_i+b\cos m\theta_i)\end{gathered}$$
#
# **N-001-3.** The notes rotate a vector of 8 components to position 3, step by step. They don't name it. It is
# `np.random.seed(42)` and the first 8 normal numbers. All printed digits reproduce, and the norm, 2.48947373,
# does not change.

# %%
from pe_numpy import rope, rope_frequencies

old = np.random.RandomState(42)  # the generator behind np.random.seed(42)
q, k = old.randn(8), old.randn(8)
theta = np.array([10000 ** (-2 * (i - 1) / 8) for i in range(1, 5)])
assert np.allclose(theta, rope_frequencies(8), rtol=1e-12, atol=0)
rotated = rope(q[None], [3])[0]
for (a, b), angle, pair in zip(q.reshape(4, 2), 3 * theta, rotated.reshape(4, 2), strict=True):
    cos, sin = np.cos(angle), np.sin(angle)
    assert np.allclose(pair, [a * cos - b * sin, a * sin + b * cos], rtol=0, atol=1e-14)
    print(f"angle {angle:.3f}: ({a:.3f}, {b:.3f}) becomes ({pair[0]:.3f}, {pair[1]:.3f})")
norms = [f"{np.linalg.norm(x):.8f}" for x in (q, rotated)]
print("norm before and after:", *norms)
assert rotated[:6].round(3).tolist() == [-0.472, 0.207, 0.169, 1.646, -0.227, -0.241]
assert norms == ["2.48947373"] * 2

# %% [markdown]
# **E-001-8.** The angle is said to be for "the $m$-th and $(m+1)$-th token". A pair is two *components* of one
# token, as in the example: one vector, one position, four angles. If two tokens were rotated into each other,
# their lengths would change.
#
# **E-001-9.** In the notes $\theta_i=m\cdot10000^{-2(i-1)/d}$ is the angle. Two lines later $\theta_i$ is a
# frequency, "high for small $i$", and later vectors are rotated by $pos\cdot\theta$ "degrees". Call $\theta_i$
# the frequency, without $m$. The unit is radians: with degrees the score at distance 10 would be $-4.033528$, not
# the $-2.769302$ of the table below. With the position counted twice it would be a third number.

# %%
mixed = np.cos(3) * q - np.sin(3) * k  # component by component, with the neighbouring token
lengths = [np.linalg.norm(vector) for vector in (q, mixed, rotated)]
print("length {:.2f}, after mixing two tokens {:.2f}, after RoPE {:.2f}".format(*lengths))
assert abs(lengths[1] - lengths[0]) > 0.1 and np.isclose(lengths[2], lengths[0], rtol=0, atol=1e-14)
units = {"radians": theta, "degrees": np.deg2rad(theta), "position twice": 10 * theta}
scores = {name: f"{rope(q[None], [10], f)[0] @ k:.6f}" for name, f in units.items()}
print(scores)
assert (scores["radians"], scores["degrees"]) == ("-2.769302", "-4.033528")
assert scores["position twice"] not in (scores["radians"], scores["degrees"])

# %% [markdown]
# **E-001-10.** The notes state the relative property as
# $\langle\mathrm{RoPE}(q,m),\mathrm{RoPE}(k,n)\rangle=\langle q,\mathrm{RoPE}(k,m-n)\rangle$. The sign is wrong.
# Rotating both vectors back by $m$ puts the key at $n-m$, as in RoFormer's equation (16):
#
# $$\langle\mathrm{RoPE}(q,m),\mathrm{RoPE}(k,n)\rangle=\langle q,\mathrm{RoPE}(k,n-m)\rangle
# =\langle\mathrm{RoPE}(q,m-n),k\rangle$$
#
# **N-001-4.** A table compares both sides for eight pairs $(m,n)$. All sixteen numbers reproduce, with the $q$ of
# the example, the next 8 numbers as $k$, and neighbouring components as pairs. The table itself disproves the
# formula: its columns agree only for $m=n$, and for distances 10 and $-10$ they are exchanged. The conclusion
# below it, that the score depends only on $m-n$, is right.

# %%
printed = """0 0 -4.081900 -4.081900
4 4 -4.081900 -4.081900
10 0 -2.769302 -3.336345
15 5 -2.769302 -3.336345
18 8 -2.769302 -3.336345
6 16 -3.336345 -2.769302
16 26 -3.336345 -2.769302
3 13 -3.336345 -2.769302"""
for line in printed.splitlines():
    (m, n), columns = map(int, line.split()[:2]), line.split()[2:]
    dot_val = rope(q[None], [m])[0] @ rope(k[None], [n])[0]
    assert columns == [f"{dot_val:.6f}", f"{q @ rope(k[None], [m - n])[0]:.6f}"]
    assert np.isclose(dot_val, q @ rope(k[None], [n - m])[0], rtol=0, atol=1e-12)
    assert np.isclose(dot_val, rope(q[None], [m - n])[0] @ k, rtol=0, atol=1e-12)

# %% [markdown]
# **E-001-11.** The frequencies are explained by decay: the product is said to fall with the distance. RoFormer
# says so as well, but proves only a bound. In the notes' own table the score at distance 10 is larger than at 0.
# Of the distances 0 to 12 their $q$ and $k$ have the smallest score at 0. For two vectors of 128 ones the score
# falls from 128 to 39.13 at distance 200, but in waves: it rises in 86 of 200 steps. For 4,000 pairs of random
# vectors it doesn't fall at all. The mean stays near 0 and the standard deviation near $\sqrt{128}=11.31$, at
# distance 0 as at 1000.


# %%
def over_distance(q, k, distance):
    return rope(np.broadcast_to(q, (len(distance), len(q))), distance) @ k


near, ones = (
    over_distance(q, k, np.arange(13)),
    over_distance(np.ones(128), np.ones(128), range(201)),
)
rises = np.flatnonzero(np.diff(ones) > 0) + 1
print("notes' vectors:", near.round(4).tolist())
print(f"ones: {ones[0]:.2f} to {ones[-1]:.2f}, {len(rises)} rises, first at distance {rises[0]}")
assert near.argmin() == 0 and near[[0, 10]].round(6).tolist() == [-4.0819, -2.769302]
assert (len(rises), rises[0], f"{ones[-1]:.2f}") == (86, 12, "39.13")

# %%
many_q, many_k = np.random.default_rng(0).standard_normal((2, 4000, 128))
for away in (0, 1, 10, 100, 1000):
    s = (rope(many_q, np.full(4000, away)) * many_k).sum(axis=1)
    print(f"distance {away:4}: mean {s.mean():5.2f}, standard deviation {s.std():.2f}")
    assert abs(s.mean()) < 4 * s.std() / np.sqrt(4000) and abs(s.std() - np.sqrt(128)) < 0.4

# %% [markdown]
# **E-001-12.** RoPE is credited with excellent extrapolation. Take a head of 128 components and a training length
# of 2048. Of its 64 pairs 23 never complete a rotation, and the slowest covers 0.2364 of 6.2832 radians. Beyond
# 2048 these pairs show angles that never occurred in training. Press et al. (2022, section 2.2) measured that a
# rotary model improves only up to 200 tokens beyond a training length of 512. Chen et al. (2023) report that
# LLaMA, read directly beyond 2048, has a perplexity above a thousand.

# %%
frequencies = rope_frequencies(128)
largest = 2047 * frequencies  # radians, at the last trained position
unfinished = 2 * np.pi / frequencies > 2048
print(f"{unfinished.sum()} of {len(frequencies)} pairs don't complete a rotation")
print(f"the slowest covers {largest[-1]:.4f} of {2 * np.pi:.4f} radians")
assert unfinished.sum() == 23 and f"{largest[-1]:.4f}" == "0.2364"
assert (3000 * frequencies[unfinished] > largest[unfinished]).all()  # new at position 3000
assert np.isfinite(rope(np.ones((1, 128)), [3000])).all()  # it can be computed there

# %% [markdown]
# Taught in [chapter 41](41_rope_computed.ipynb#rotate-one-vector-by-hand): the worked rotation, [the
# sign](41_rope_computed.ipynb#the-sign-of-rope-key-position-minus-query-position), [decay](41_rope_computed.ipynb#does-the-rope-score-decay-with-distance) and
# [longer sequences](41_rope_computed.ipynb#rope-beyond-the-training-length-pairs-that-never-finish-a-turn). [Chapter
# 40](40_rope_derived.ipynb#scores-that-depend-only-on-distance) derives RoPE.
#
# ## 001-5 Further reading
#
# The notes end with four links: a Hugging Face blog post on designing a positional encoding, an essay by Su
# Jianlin, and two long articles on RoPE and on extrapolation. A list of interview questions is linked but not
# included. There is nothing to compute here.
#
# Taught in [chapter 0](00_how_to_read.ipynb#further-reading), which lists the four with their addresses.
