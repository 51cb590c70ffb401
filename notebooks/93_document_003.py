# %% [markdown]
# # 93. Document 003: absolute, relative, RoPE, ALiBi and length extrapolation, computed
#
# *What does document 003 say section by section, do its examples compute, and what is wrong?*
#
# 50 minutes.

# %% [markdown]
# ## In this document
#
# Document 003 is a long survey in Chinese after the blog of Su Jianlin: absolute, relative and unusual encodings, RoPE
# derived with complex numbers, ALiBi, and length extrapolation. This notebook goes through it section by section, computes
# its formulas and examples, corrects its mistakes and names the chapter that teaches each subject. In the ids of the
# [index](INDEX.md) N is a numeric example, E a mistake, X a contradiction between documents, C a passage that looks wrong
# but is right. Vectors are rows, as in the document.

# %% [markdown]
# ## 003-1 Why attention needs positional encoding
#
# Attention by itself cannot tell positions apart, so every Transformer needs a positional encoding. The document sees two
# ways: put positions into the input (**absolute** encodings), or change attention (**relative** encodings).
#
# The claim is right in this form: if the tokens are reordered, the outputs are reordered in the same way. That holds without
# a mask; a causal mask reveals something about order.
#
# Taught in [chapter 11](11_why_position.ipynb#attention-is-permutation-equivariant): what attention knows about order.

# %%
import numpy as np

from pe_numpy import attention, causal_mask

rng = np.random.default_rng(0)
X = rng.standard_normal((5, 8))  # five tokens, one per row
W_Q, W_K, W_V = rng.standard_normal((3, 8, 8)) / 2
order = [4, 2, 0, 3, 1]
outputs = []
for mask in (None, causal_mask(np.arange(5), np.arange(5))):
    first, moved = (attention(x @ W_Q, x @ W_K, x @ W_V, mask)[0] for x in (X, X[order]))
    outputs.append(np.abs(moved - first[order]).max())
    print(f"largest change, {'no mask' if mask is None else 'causal mask'}: {outputs[-1]:.1e}")
assert outputs[0] < 1e-12 and outputs[1] > 0.1

# %% [markdown]
# ## 003-1.1(1) Learned position embeddings
#
# The simplest absolute encoding is a table of trainable vectors: for 512 positions and width 768 it has 393,216
# parameters (N-003-1). It has no row for position 512, so it cannot extrapolate, unless random rows are added and
# fine-tuned. Su's **hierarchical decomposition** combines two rows of the trained table for every position up to $512^2$.
# The document concludes that missing extrapolation is not an obvious weakness of absolute encodings. Each of 262,144
# positions does get a vector; whether a model works with them must be measured.
#
# Taught in [chapter 21](21_learned.ipynb#hierarchical-decomposition-two-digits-per-position-second-reading): tables, where they end, and how to stretch them.

# %%
from pe_numpy import Model, Sizes, hierarchical, init_params, learned
from pe_numpy.transformer.encodings import Learned

sizes, model = Sizes(16, 768, 16, n_layers=1), Model(4, Learned(512))
table = init_params(sizes, model, rng)["decoder"]["shared"]["table"]
print(f"{table.size:,} parameters; {len(table) ** 2:,} positions by decomposition")
assert table.shape == (512, 768) and table.size == 393_216
try:
    raise AssertionError(learned(table, [512]))
except ValueError as error:
    print(error)
stretched = hierarchical(table, [*range(512), 512**2 - 1])
assert np.allclose(stretched[:512], table, rtol=0, atol=1e-6)
assert np.abs(stretched[512:] - table).max(axis=1).min() > 0.01  # the last position has its own

# %% [markdown]
# ## 003-1.1(2) Sinusoidal positional encoding
#
# For position $k$ and components $2i$ and $2i+1$ the encoding of Vaswani et al. (2017) is
#
# $$\begin{cases}p_{k,2i}=\sin\left(k/10000^{2i/d}\right)\\ p_{k,2i+1}=\cos\left(k/10000^{2i/d}\right)\end{cases}$$
#
# The explicit rule gives hope for some extrapolation. The second argument for it is the addition theorems:
#
# $$\begin{aligned}\sin(\alpha+\beta)&=\sin\alpha\cos\beta+\cos\alpha\sin\beta\\
# \cos(\alpha+\beta)&=\cos\alpha\cos\beta-\sin\alpha\sin\beta\end{aligned}$$
#
# **E-003-3.** "The vector of position $\alpha+\beta$ can be written as a combination of the vectors
# of $\alpha$ and $\beta$." It is not a linear combination. For $d=8$ the best one of $p_1$ and
# $p_2$ misses $p_3$ by 0.7185. The theorems multiply components of one vector by components of the
# other. So there is a matrix $M_\beta$, which depends only on $\beta$, with
# $p_{\alpha+\beta}^\top=M_\beta\,p_\alpha^\top$.
#
# Taught in [chapter 20](20_sinusoidal.ipynb#the-shift-matrix-one-rotation-for-every-position): the formula, and the matrix for each shift.

# %%
from pe_numpy import sinusoidal

p = sinusoidal(np.arange(64), 8)
k, two_i = np.arange(64)[:, None], np.arange(0, 8, 2)
assert np.allclose(p[:, 0::2], np.sin(k / 10000 ** (two_i / 8)), rtol=0, atol=1e-12)
assert np.allclose(p[:, 1::2], np.cos(k / 10000 ** (two_i / 8)), rtol=0, atol=1e-12)
sin, cos = p[:, 0::2], p[:, 1::2]  # every position, every frequency
for a, b in ((1, 2), (10, 7), (30, 33)):
    assert np.allclose(sin[a + b], sin[a] * cos[b] + cos[a] * sin[b], rtol=0, atol=1e-12)
    assert np.allclose(cos[a + b], cos[a] * cos[b] - sin[a] * sin[b], rtol=0, atol=1e-12)

# %%
from pe_numpy import sinusoidal_shift

best = np.linalg.lstsq(p[1:3].T, p[3], rcond=None)[0]
missed = np.linalg.norm(best @ p[1:3] - p[3])
print(f"p_3 from p_1 and p_2: the best linear combination misses by {missed:.4f}")
assert f"{missed:.4f}" == "0.7185"
for alpha in range(60):
    assert np.allclose(sinusoidal_shift(3, 8) @ p[alpha], p[alpha + 3], rtol=0, atol=1e-12)

# %% [markdown]
# ## 003-1.1(3) Recursive encoding and FLOATER
#
# A recurrent layer below the Transformer could learn to count and replace the positional encoding. Or a recursion makes the
# position vectors; FLOATER (Liu et al. 2020) replaces its steps by a differential equation with a trainable $h$:
#
# $$p_{k+1}=f(p_k)\qquad\qquad\frac{dp_t}{dt}=h(p_t,t)$$
#
# The sinusoidal encoding is called a special solution of FLOATER. That is true with the right $h$ *and the right start*:
# from a start of twice the length the same $h$ gives different vectors. It is right that recursion costs parallelism.
#
# Taught in [chapter 22](22_recurrent.ipynb#is-the-sinusoidal-encoding-a-special-case-of-floater): recursion, solvers, and what they extrapolate.
#
# ## 003-1.1(4) Multiplicative encoding
#
# Instead of $x_k+p_k$ a model can take the product $x_k\times p_k$, component by component. It
# "seems" to do better, the document says, and admits that nothing was fully compared; this book
# does not compare it either. But at position 0 the sinusoidal encoding is $(0,1,0,1,\dots)$, so
# multiplying by it deletes half of the first token.
#
# Taught in [chapter 22](22_recurrent.ipynb#multiplicative-position-encodings): what becomes of the score.

# %%
from pe_numpy import floater, recurrent, rope_frequencies

M_1, A, i = sinusoidal_shift(1, 8), np.zeros((8, 8)), np.arange(0, 8, 2)
A[i, i + 1], A[i + 1, i] = rope_frequencies(8), -rope_frequencies(8)
by_steps = recurrent(p[0], lambda vector: M_1 @ vector, 64)
by_equation = floater(p[0], lambda vector, t: A @ vector, np.arange(64), substeps=32)
assert np.allclose(by_steps, p, rtol=0, atol=1e-12)
assert np.allclose(by_equation, p, rtol=0, atol=1e-5)
longer_start = floater(2 * p[0], lambda vector, t: A @ vector, np.arange(64), substeps=32)
assert np.allclose(longer_start, 2 * p, rtol=0, atol=1e-5)
print("zeros in the first token, multiplied:", int((X[0] * p[0] == 0).sum()), "of 8")
assert (X[0] * p[0] == np.where(np.arange(8) % 2, X[0], 0)).all()

# %% [markdown]
# ## 003-1.2 Relative positional encoding
#
# A relative encoding lets the distance between two tokens enter attention. Such encodings usually do well, the document says,
# because language depends mostly on relative positions; that is a belief about language. All schemes below start from the
# score of an absolute encoding, multiplied out.
#
# Taught in [chapter 30](30_expansion.ipynb): one expansion, and what each scheme changes in it.
#
# ## 003-1.2(1) Shaw's relative position representations
#
# The starting point is attention with an absolute encoding, and its score, factored:
#
# $$\begin{cases}q_i=(x_i+p_i)W_Q\\ k_j=(x_j+p_j)W_K\\ v_j=(x_j+p_j)W_V\\
# a_{i,j}=\text{softmax}(q_ik_j^\top)\\ o_i=\sum_ja_{i,j}v_j\end{cases}$$
#
# $$q_ik_j^\top=(x_i+p_i)W_QW_K^\top(x_j+p_j)^\top=(x_iW_Q+p_iW_Q)(W_K^\top x_j^\top+W_K^\top p_j^\top)$$
#
# **E-003-1.** The document announces four terms and shows a product of two brackets; only when
# multiplied out does it have four.
#
# **E-003-2.** Throughout the relative schemes the softmax has no $1/\sqrt d$, although equations
# (2) and (4) of Shaw et al. (2018) divide. Undivided, the scores of queries and keys of width 64
# with standard normal components have a standard deviation of about 8.

# %%
from pe_numpy import four_terms, relative_distance, shaw_scores, softmax

P = sinusoidal(np.arange(5), 8)
q, k, v = (X + P) @ W_Q, (X + P) @ W_K, (X + P) @ W_V
o, a = attention(q, k, v, scale=1)
assert np.allclose(a, softmax(q @ k.T), rtol=0, atol=1e-12)
assert np.allclose(o, a @ (X @ W_V + P @ W_V), rtol=0, atol=1e-12)
brackets = (X @ W_Q + P @ W_Q) @ (W_K.T @ X.T + W_K.T @ P.T)
terms = [term * np.sqrt(8) for term in four_terms(X, P, W_Q, W_K)]  # the package divides
assert np.allclose(brackets, q @ k.T, rtol=0, atol=1e-12) and len(terms) == 4
assert np.allclose(sum(terms), brackets, rtol=0, atol=1e-12)
wide, far = np.random.default_rng(1).standard_normal((2, 500, 64)), np.zeros((500, 500), int)
divided = shaw_scores(*wide, np.zeros((1, 64)), far).std()
print(f"standard deviation: divided {divided:.2f}, undivided {8 * divided:.2f}")
assert f"{divided:.2f}" == "0.99"

# %% [markdown]
# Shaw et al. drop $p_i$ from the query. In keys and values vectors of the clipped distance replace the projected position:
#
# $$\begin{aligned}a_{i,j}&=\text{softmax}(x_iW_Q(x_jW_K+R^K_{i,j})^\top)\\
# o_i&=\textstyle\sum_ja_{i,j}(x_jW_V+R^V_{i,j})\\
# R^K_{i,j}&=p_K[\text{clip}(i-j,p_{\min},p_{\max})]\\
# R^V_{i,j}&=p_V[\text{clip}(i-j,p_{\min},p_{\max})]\end{aligned}$$
#
# **N-003-2.** With $p_{\max}=-p_{\min}=2$ the distances $-5$ to $5$ become $-2,-2,-2,-2,-1,0,1,2,2,2,2$. So finitely many
# vectors serve every length.
#
# Taught in [chapter 31](31_shaw.ipynb#clipping-distances-longer-than-the-table): Shaw's scores, the value term, and clipping.

# %%
from pe_numpy import shaw_values

p_K, p_V = rng.standard_normal((2, 5, 8))  # rows of the distances -2 to 2
distance = relative_distance(np.arange(5), np.arange(5))
R_K, R_V = (rows[np.clip(distance, -2, 2) + 2] for rows in (p_K, p_V))  # (L, L, d)
XQ, XK, XV = X @ W_Q, X @ W_K, X @ W_V
scores = [[XQ[i] @ (XK[j] + R_K[i, j]) for j in range(5)] for i in range(5)]
assert np.allclose(shaw_scores(XQ, XK, p_K, distance) * np.sqrt(8), scores, rtol=0, atol=1e-12)
a = softmax(scores)
o = [sum(a[i, j] * (XV[j] + R_V[i, j]) for j in range(5)) for i in range(5)]
assert np.allclose(shaw_values(a, XV, p_V, distance), o, rtol=0, atol=1e-12)
clipped = shaw_scores([[1.0]], np.zeros((11, 1)), [[-2], [-1], [0], [1], [2]], [[*range(-5, 6)]])
print(clipped[0].astype(int).tolist())
assert clipped[0].tolist() == [-2, -2, -2, -2, -1, 0, 1, 2, 2, 2, 2]

# %% [markdown]
# ## 003-1.2(2) Transformer-XL's encoding, known through XLNet
#
# The product is multiplied out. Then $p_j$ becomes a sinusoidal vector $R_{i-j}$, unclipped, and the two $p_i$ become trainable
# vectors $u$ and $v$ (second line). Finally $R_{i-j}$ gets its own matrix, and $uW_Q$ and $vW_Q$ are merged into new $u$ and
# $v$ (third line). From here on positions enter only the scores, not the values.
#
# $$\begin{gathered}q_ik_j^\top=x_iW_QW_K^\top x_j^\top+x_iW_QW_K^\top p_j^\top+p_iW_QW_K^\top x_j^\top+p_iW_QW_K^\top p_j^\top\\[3pt]
# x_iW_QW_K^\top x_j^\top+x_iW_QW_K^\top R_{i-j}^\top+uW_QW_K^\top x_j^\top+vW_QW_K^\top R_{i-j}^\top\\[3pt]
# x_iW_QW_K^\top x_j^\top+x_iW_QW_{K,R}^\top R_{i-j}^\top+uW_K^\top x_j^\top+vW_{K,R}^\top R_{i-j}^\top\\[3pt]
# o_i=\textstyle\sum_ja_{i,j}x_jW_V\end{gathered}$$
#
# **C-7.** In the third line $W_Q$ is missing after $u$ and $v$. That looks like a slip but is right: the trainable vector times
# $W_Q$ is again a trainable vector, and any $u$ can be written so if $W_Q$ has full rank. (Document 001 has the same line.)
#
# Taught in [chapter 32](32_transformer_xl.ipynb#the-four-terms-of-transformer-xls-score): the four new terms, and a memory.

# %%
from pe_numpy import attend, transformer_xl_scores

M, W_KR, (u, v) = W_Q @ W_K.T, rng.standard_normal((8, 8)), rng.standard_normal((2, 8))
R = sinusoidal(np.arange(-4, 5), 8)  # one row per distance
x, y, pi, pj, r = X[3], X[1], P[3], P[1], R[4 + 2]  # i = 3, j = 1
first = x @ M @ y + x @ M @ pj + pi @ M @ y + pi @ M @ pj
second = x @ M @ y + x @ M @ r + u @ M @ y + v @ M @ r
third = x @ M @ y + x @ W_Q @ W_KR.T @ r + u @ W_K.T @ y + v @ W_KR.T @ r
assert np.isclose(first, brackets[3, 1], rtol=0, atol=1e-12)
for printed, U, V, W in ((second, u @ W_Q, v @ W_Q, W_K), (third, u, v, W_KR)):
    ours = transformer_xl_scores(XQ[None], XK[None], R[None] @ W, U[None], V[None], distance)[0]
    assert np.isclose(printed, ours[3, 1] * np.sqrt(8), rtol=0, atol=1e-12)
o, a = attend(ours, XV)
assert np.allclose(o[3], sum(a[3, j] * X[j] @ W_V for j in range(5)), rtol=0, atol=1e-12)

# %% [markdown]
# ## 003-1.2(3) T5's relative bias and its buckets
#
# The four terms get names:
#
# $$q_ik_j^\top=\underbrace{x_iW_QW_K^\top x_j^\top}_{\text{input-input}}
# +\underbrace{x_iW_QW_K^\top p_j^\top}_{\text{input-position}}
# +\underbrace{p_iW_QW_K^\top x_j^\top}_{\text{position-input}}
# +\underbrace{p_iW_QW_K^\top p_j^\top}_{\text{position-position}}$$
#
# If input and position should be independent, the two mixed terms can go. The last term is a number for each $(i,j)$, which
# T5 (Raffel et al. 2020) trains directly; nothing is added to the values:
#
# $$x_iW_QW_K^\top x_j^\top+\beta_{i,j}$$
#
# TUPE (Ke et al. 2021), named as the same idea, keeps the last term as a product of projected positions.
#
# T5 does not clip $i-j$. It sorts distances into **buckets**: near distances have their own number, distant ones share one
# in wider and wider groups. The document prints the table for 0 to 30 (N-003-3): 0 to 7 have their own buckets,
# 8 to 11 share bucket 8, 12 to 15 bucket 9, 16 to 22 bucket 10 and 23 to 30 bucket 11.
#
# **C-11.** The uneven groups of 4, 4, 7 and 8 look suspicious, but every entry is right.
#
# **E-003-4.** The table belongs to one direction of T5's encoder. The decoder, which the document does not mention, uses all 32
# buckets for the past: 15 has bucket 15, and sharing begins with 16.
#
# Taught in [chapter 33](33_t5.ipynb#t5-bucket-tables-for-32-buckets-and-max_distance-128): the rule for the buckets, derived.

# %%
from pe_numpy import t5_bias, tupe_scores

named = [X @ M @ X.T, X @ M @ P.T, P @ M @ X.T, P @ M @ P.T]
assert np.allclose(named, terms, rtol=0, atol=1e-12)
beta = t5_bias(rng.standard_normal((32, 1)), distance)[0]
o, a = attention(XQ, XK, XV, bias=beta, scale=1)
assert np.allclose(a, softmax(X @ M @ X.T + beta), rtol=0, atol=1e-12)
assert np.allclose(o, a @ XV, rtol=0, atol=1e-12)
untied = tupe_scores(XQ[None], XK[None], (P @ W_V)[None], (P @ W_KR)[None])[0]
two_terms = X @ M @ X.T + P @ W_V @ W_KR.T @ P.T  # with two matrices for positions only
assert np.allclose(untied * np.sqrt(2 * 8), two_terms, rtol=0, atol=1e-12)

# %%
from pe_numpy import t5_bucket

printed = [*range(8), *[8] * 4, *[9] * 4, *[10] * 7, *[11] * 8]
assert t5_bucket(range(31)).tolist() == printed
decoder = t5_bucket(range(31), bidirectional=False)
print("decoder, 14 to 20:", decoder[14:21].tolist())
assert decoder[:17].tolist() == [*range(17)] and (decoder[16:19] == 16).all() and decoder[19] == 17

# %% [markdown]
# ## 003-1.2(4) DeBERTa's disentangled attention
#
# DeBERTa (He et al. 2021) does the opposite of T5: it drops the fourth term and keeps the mixed ones, with relative vectors. The
# first line is the document's formula, the second the paper's:
#
# $$\begin{aligned}q_ik_j^\top&=x_iW_QW_K^\top x_j^\top+x_iW_QW_K^\top R_{i,j}^\top+R_{j,i}W_QW_K^\top x_j^\top\\
# \text{score}_{i,j}&=\frac{x_iW_QW_K^\top x_j^\top+x_iW_QW_{K,R}^\top R_{i,j}^\top+R_{j,i}W_{Q,R}W_K^\top x_j^\top}{\sqrt{3d}}\end{aligned}$$
#
# **E-003-6.** In the paper positions have separate projections (only version 3 shares them, as printed), and the sum of three
# terms is divided by $\sqrt{3d}$, for $d=64$ by 13.8564 and not by 8. (And "relative" is misprinted as "pair".)

# %%
from pe_numpy import deberta_scores

R = rng.standard_normal((6, 8))  # rows of the distances -3 to 2
R_ij = R[np.clip(distance + 3, 0, 5)]  # and R_ji has the opposite distance
R_ji, (W_QR, W_KR) = np.swapaxes(R_ij, 0, 1), rng.standard_normal((2, 8, 8))
for Wq, Wk in ((W_Q, W_K), (W_QR, W_KR)):
    c2p = np.einsum("id,ijd->ij", XQ @ Wk.T, R_ij)
    p2c = np.einsum("ijd,jd->ij", R_ji @ Wq, XK)
    package = deberta_scores(XQ[None], XK[None], (R @ Wq)[None], (R @ Wk)[None], distance)[0]
    assert np.allclose(package, (X @ M @ X.T + c2p + p2c) / np.sqrt(3 * 8), rtol=0, atol=1e-12)
width_64 = deberta_scores(*np.ones((2, 1, 1, 64)), *np.zeros((2, 1, 6, 64)), [[0]])  # 64 / divisor
print(f"divisor at width 64: {64 / width_64.item():.4f}")
assert f"{64 / width_64.item():.4f}" == "13.8564"

# %% [markdown]
# Some tasks need absolute positions, so these come last, in an **enhanced mask decoder** (EMD). The document counts (N-003-4):
# in pre-training the base model has 13 layers, 11 relative ones and 2 with absolute positions; in fine-tuning 11 + 1.
#
# **E-003-7.** The sums are right, but they count applications. DeBERTa-base has 12 layers; in pre-training the last one is
# applied twice with the same weights. (And "fine-tuning truncation" should read "fine-tuning stage".)
#
# **E-003-5, X-3.** A table compares the two schemes. One line is wrong: T5 "does not distinguish direction". Its encoder has
# separate halves of the table: the key one back has bucket 1, the key one ahead bucket 17. Document 000 contradicts this line;
# its code keeps the direction.
#
# Taught in [chapter 34](34_deberta.ipynb#t5-against-deberta): both schemes side by side.

# %%
weights, states = rng.standard_normal((12, 3, 8, 8)) / 3, [X]


def layer(n, H, I):  # queries from I, keys and values from H
    wq, wk, wv = weights[n - 1]
    parts = (x[None] for x in (I @ wq, H @ wk, R @ wq, R @ wk))
    return I + attend(deberta_scores(*parts, distance)[0], H @ wv)[0]


for n in range(1, 12):  # the encoder: relative positions
    states.append(layer(n, states[-1], states[-1]))
states.append(layer(12, states[11], states[11] + P))  # the decoder: queries with absolute positions
states.append(layer(12, states[11], states[12]))
assert (len(states) - 1, len(weights)) == (13, 12)

# %%
one_back, one_ahead = t5_bucket([1, -1])
print("bucket of the key one back and one ahead:", one_back, one_ahead)
assert (one_back, one_ahead) == (1, 17)
past, future = t5_bucket(np.arange(1, 200)), t5_bucket(-np.arange(1, 200))
assert np.array_equal(future, past + 16)

# %% [markdown]
# ## 003-1.3(1) Convolutions and zero padding
#
# Convolutional networks for images need no positional encoding, because they read positions from **zero padding** (Islam et
# al. 2020). It is right that this needs locality and does not carry over to global attention.
#
# **E-003-8.** One sentence says that the kernel's anisotropy matters but zero padding is the root
# (it misspells anisotropy). The next says that a CNN captures positions "not because of the
# structure of the kernel". The first is right. Without a border a constant input stays constant.
# With one, a symmetric kernel reveals the distance to the border, and an anisotropic one also
# *which* border. The kernel $(0.2,0.5,0.3)$ gives 0.8 and 0.7 at the ends and 1 between, and after two layers
# 0.70, 0.96, 1, …, 1, 0.91, 0.55.
#
# Taught in [chapter 23](23_convolution.ipynb#symmetric-and-anisotropic-kernels-which-border): what the border and the kernel each reveal.

# %%
from pe_numpy import convolve

for kernel, same_at_both_ends in (((0.2, 0.5, 0.3), False), ((0.25, 0.5, 0.25), True)):
    once = convolve(np.ones(9), kernel)
    twice = convolve(once, kernel)
    print(kernel, "once", once.round(2).tolist(), "twice", " ".join(f"{y:.2f}" for y in twice))
    assert np.allclose(once[1:-1], 1, rtol=0, atol=1e-12)
    assert np.allclose(twice[2:-2], 1, rtol=0, atol=1e-12) and twice[1] < 1 > twice[-2]
    assert np.allclose(twice, twice[::-1], rtol=0, atol=1e-12) == same_at_both_ends
    assert np.allclose(convolve(np.ones(9), kernel, "circular"), 1, rtol=0, atol=1e-12)
slanted = convolve(convolve(np.ones(9), (0.2, 0.5, 0.3)), (0.2, 0.5, 0.3))
assert slanted[[0, 1, -2, -1]].round(2).tolist() == [0.7, 0.96, 0.91, 0.55]

# %% [markdown]
# ## 003-1.3(2) Complex-valued word embeddings
#
# Wang et al. (2020) give each word $j$ three vectors that do not depend on its position $k$: amplitudes $r_j$, frequencies
# $\omega_j$ and phases $\theta_j$. Some may be shared. The whole model stays complex.
#
# $$\begin{gathered}[\,r_{j,1}e^{\mathrm i(\omega_{j,1}k+\theta_{j,1})},\;r_{j,2}e^{\mathrm i(\omega_{j,2}k+\theta_{j,2})},\;\dots,\;r_{j,d}e^{\mathrm i(\omega_{j,d}k+\theta_{j,d})}\,]\\[3pt]
# r_j=[r_{j,1},\dots,r_{j,d}]\qquad\omega_j=[\omega_{j,1},\dots,\omega_{j,d}]\qquad\theta_j=[\theta_{j,1},\dots,\theta_{j,d}]\end{gathered}$$
#
# **E-003-9.** The document, like equation (5) of the paper, also prints dots between components 1 and 2. Nothing is missing there:
# the vector has $d$ components.
#
# Taught in [chapter 24](24_complex_order.ipynb#complex-order-amplitude-frequency-and-phase): why this form follows from two requirements.

# %%
from pe_numpy import complex_order

r, omega, theta = rng.uniform(0.5, 2, (3, 5, 8))  # three vectors for each of five words
z = complex_order(r, omega, theta, np.arange(5))
assert z.shape == (5, 8)  # E-003-9: d components
for k, n in np.ndindex(5, 8):
    one = r[k, n] * np.exp(1j * (omega[k, n] * k + theta[k, n]))
    assert np.isclose(z[k, n], one, rtol=0, atol=1e-12)
for D in (1, 2, 3):  # frequencies 0, 1, ... leave no gap between one component and the next
    angles = np.angle(complex_order(np.ones((1, D)), np.arange(D), 0.0, [1])[0])
    assert np.allclose(angles, np.arange(D), rtol=0, atol=1e-12)

# %% [markdown]
# ## 003-1.3(3) RoPE as a fusion of absolute and relative
#
# RoPE splits queries and keys into pairs and rotates pair $j$ at position $i$ by $i\theta_j$. Attention then uses the rotated
# $\tilde q_i^\top\tilde k_j$ instead of $q_i^\top k_j$:
#
# $$R(\theta)=\begin{bmatrix}\cos\theta&-\sin\theta\\ \sin\theta&\cos\theta\end{bmatrix}\qquad
# \tilde x_{i,j}=R(i\theta_j)\cdot(x_{i,2j},x_{i,2j+1})^\top$$
#
# $$\text{Attention}(Q,K,V)_i=\sum_ja_{ij}v_j\qquad a_{ij}=\text{softmax}_j\!\left(\frac{\tilde q_i^\top\tilde k_j}{\sqrt d}\right)$$
#
# **E-003-11.** The softmax is ours. The document takes the scaled products themselves as weights; in the example below their
# rows sum to 2.380, -3.008, -1.815 and 0.477 instead of 1.
#
# **E-003-10.** The paper named as RoPE's origin, "SuRE: Rotary Representation with Unified Encoding for Pre-trained Language
# Models", could not be found. The source is Su et al. 2021, "RoFormer" (arXiv:2104.09864).
#
# **E-003-12.** "The rotation angle depends only on $i-j$." It is $i\theta_j$, an absolute angle. Only the inner product of two
# rotated vectors depends on the distance.
#
# **E-003-13.** A table of properties says that RoPE "supports extrapolation because the angles vary continuously". That contradicts
# the document's next section. Of the 64 pairs of a head of width 128 trained on 2048 positions, 23 never complete a
# rotation. The slowest reaches 0.2364 radians in training and 0.9459 at four times the length.
#
# Taught in [chapter 40](40_rope_derived.ipynb#step-3-every-position-adds-the-same-angle): absolute rotations, relative scores.

# %%
from pe_numpy import rope

at, frequencies = np.arange(4), rope_frequencies(8)
Q, K = np.random.default_rng(0).standard_normal((2, 4, 8))
for x in (Q, K):
    for i, j in np.ndindex(4, 4):
        c, s = np.cos(i * frequencies[j]), np.sin(i * frequencies[j])
        pair = np.array([[c, -s], [s, c]]) @ x[i, 2 * j : 2 * j + 2]
        assert np.allclose(rope(x, at)[i, 2 * j : 2 * j + 2], pair, rtol=0, atol=1e-12)
scaled = rope(Q, at) @ rope(K, at).T / np.sqrt(8)
sums = [f"{total:.3f}" for total in scaled.sum(axis=1)]
print("rows without softmax sum to", sums)
assert sums == ["2.380", "-3.008", "-1.815", "0.477"]
o, a = attention(rope(Q, at), rope(K, at), X[:4])
assert np.allclose(a, softmax(scaled), rtol=0, atol=1e-12) and np.array_equal(o, a @ X[:4])

# %%
tokens = np.repeat(Q[:1], 12, axis=0), np.repeat(K[:1], 12, axis=0)  # one query, one key
q_far, k_far = (rope(x, np.arange(12)) for x in tokens)
same = (q_far @ k_far.T)[[5, 9, 11], [2, 6, 8]]  # three times the distance 3
assert np.ptp(same) < 1e-12 and np.abs(np.diff(q_far, axis=0)).max(axis=1).min() > 0.1
theta = rope_frequencies(128)
slow = 2 * np.pi / theta > 2048
print(f"{slow.sum()} of {len(theta)} pairs never complete a rotation within 2048 positions")
print(f"slowest: {2047 * theta[-1]:.4f} radians at 2047, {8191 * theta[-1]:.4f} at 8191")
assert slow.sum() == 23
assert (f"{2047 * theta[-1]:.4f}", f"{8191 * theta[-1]:.4f}") == ("0.2364", "0.9459")

# %% [markdown]
# ## 003-1.3(4) NTK-aware scaled RoPE
#
# Far beyond its trained length RoPE works less well, so its frequencies are adjusted. With $i$ counted from 1:
#
# $$\theta_i=\frac1{10000^{2(i-1)/d}}\qquad\qquad\theta'_i=\theta_i\cdot\alpha$$
#
# **E-003-15.** The document calls the second formula NTK-aware and "slower". One factor for all pairs is linear position
# interpolation (Chen et al. 2023), with $\alpha=1/s$ for a text $s$ times as long, and slower only if $\alpha<1$.
# NTK-aware scaling changes the base to $b\,s^{d/(d-2)}$: the fastest pair keeps its frequency, and only the slowest is
# divided by the full $s$. For $d=8$ and $s=4$ the new base is 63496.04.
#
# **E-003-14.** RoPE is said to fail because angles become too large or oscillate. But with width 128 and
# 2048 trained positions 41 of 64 pairs complete a rotation in *training*, the first one 325 times. New in a longer text
# are the angles of the 23 slow pairs. That these cause the failure is likely, not proved (Peng et al. 2023 build on it).
#
# **E-003-16.** The method is not from "RoFormerV2: GPT-Style is All You Need", which could not be found, and not an optimum of
# neural-tangent-kernel theory. It was a post by bloc97 in June 2023, written up by Peng et al. (2023). One condition fixes
# the exponent: the slowest pair must be divided by $s$.
#
# Taught in [chapter 50](50_scaling.ipynb#ntk-aware-scaling-change-the-base): interpolation, NTK-aware scaling, YaRN, and their price.

# %%
from pe_numpy import linear_scaling, ntk_scaling

theta, s, i = rope_frequencies(8), 4, np.arange(1, 5)
assert np.allclose(theta, 1 / 10000 ** (2 * (i - 1) / 8), rtol=1e-12, atol=0)
assert np.allclose(linear_scaling(theta, s), theta * (1 / s), rtol=1e-12, atol=0)
ntk, new_base = ntk_scaling(8, s), 10000 * s ** (8 / 6)
assert np.allclose(ntk, 1 / new_base ** (2 * (i - 1) / 8), rtol=1e-12, atol=0)
print(f"new base {new_base:.2f}")
for name, f in (("RoPE", theta), ("interpolated", linear_scaling(theta, s)), ("NTK-aware", ntk)):
    print(f"{name:13} {f.round(6).tolist()}, over RoPE {(f / theta).round(3).tolist()}")
assert (ntk / theta).round(3).tolist() == [1, 0.63, 0.397, 0.25] and f"{new_base:.2f}" == "63496.04"
assert (theta * 4).round(3).tolist() == [4, 0.4, 0.04, 0.004]  # alpha = 4 would be faster

# %%
rotations = 2048 * rope_frequencies(128) / (2 * np.pi)
print(f"complete a rotation: {(rotations >= 1).sum()}; the fastest makes {int(rotations[0])}")
assert (rotations >= 1).sum() == 41 and (rotations < 1).sum() == 23 and int(rotations[0]) == 325
for s in (2, 4, 8):
    exponent = 128 / 126
    by_base = rope_frequencies(128, 10000 * s**exponent) / rope_frequencies(128)
    without = rope_frequencies(128, 10000 * s) / rope_frequencies(128)  # exponent 1
    assert np.allclose(by_base[[0, -1]], [1, 1 / s], rtol=1e-12, atol=0) and without[-1] * s > 1.01

# %% [markdown]
# ## 003-1.4(1) Summary: absolute encodings
#
# The sinusoidal encoding is absolute but brings in relative information, says the summary: with $q_i=x_i+p_i$ and
# $k_j=x_j+p_j$
#
# $$\begin{gathered}q_i\cdot k_j=x_i\cdot x_j+x_i\cdot p_j+p_i\cdot x_j+p_i\cdot p_j\\[3pt]
# p_i\cdot p_j=f(i-j)\\[3pt]
# \sin(\omega i)\sin(\omega j)+\cos(\omega i)\cos(\omega j)=\cos(\omega(i-j))\end{gathered}$$
#
# **E-003-18.** The last identity is not "sum-to-product", which is about $\cos a+\cos b$, but the cosine of a
# difference: for the angles 0.7 and 0.2 both sides are 0.8775825619.
#
# **E-003-19.** Attention does not compare $p_i$ and $p_j$ themselves: $W_Q$ and $W_K$ are between them. The raw product of
# neighbours is 3.5353 everywhere; with a random matrix between it is 1.6682, 3.2304 and 0.3964. Besides, $f$ is even, so it shows
# no direction, and it falls only on average: for $d=128$ it rises in 86 of the first 200 steps.
#
# **E-003-17.** The listed advantages are the sinusoidal encoding's (untrained, computed in advance), the drawback is a learned
# table's: at most 512 positions. The sinusoidal encoding exists at position 1000 without training. Besides, the
# document's first section saw no obvious weakness there.
#
# Taught in [chapter 20](20_sinusoidal.ipynb#what-the-projections-do-to-the-dot-product): dot products, and what projections do to them.

# %%
q, k = X + P, X + P
split = X @ X.T + X @ P.T + P @ X.T + P @ P.T
assert np.allclose(q @ k.T, split, rtol=0, atol=1e-12)
for i, j in ((3, 1), (30, 28), (5, 60)):
    f = np.cos((i - j) * rope_frequencies(8)).sum()  # one cosine per frequency
    assert np.isclose(p[i] @ p[j], f, rtol=0, atol=1e-12)
a, b = sinusoidal([0.7, 0.2], 2)  # (sin, cos) of two angles
print(f"0.7 and 0.2: cosine of the difference {a @ b:.10f}, sum of the cosines {a[1] + b[1]:.4f}")
assert f"{a @ b:.10f}" == f"{np.cos(0.7 - 0.2):.10f}" == "0.8775825619"
assert np.isclose(a[1] + b[1], 2 * np.cos(0.45) * np.cos(0.25), rtol=0, atol=1e-12)

# %%
W = np.random.default_rng(0).standard_normal((8, 8))  # for W_Q W_K^T
raw = [float(p[i] @ p[i - 1]) for i in (1, 2, 3)]
projected = [float(p[i] @ W @ p[i - 1]) for i in (1, 2, 3)]
print("raw", np.round(raw, 4).tolist(), "projected", np.round(projected, 4).tolist())
assert np.round(raw, 4).tolist() == [3.5353] * 3
assert np.round(projected, 4).tolist() == [1.6682, 3.2304, 0.3964]
f = sinusoidal(np.arange(-200, 201), 128) @ sinusoidal(0, 128)
assert np.allclose(f, f[::-1], rtol=0, atol=1e-9) and (np.diff(f[200:]) > 0).sum() == 86
print("position 1000:", sinusoidal(1000, 8).round(6).tolist())
assert sinusoidal(1000, 8)[:3].round(6).tolist() == [0.82688, 0.562379, -0.506366]

# %% [markdown]
# ## 003-1.4(2) Summary: relative encodings
#
# Relative encodings express relative positions directly, says the summary, work better and
# extrapolate. The last two must be measured. In this book's study, with tiny models trained on 32
# tokens of text, five relative schemes have a lower loss than the sinusoidal encoding at 32 and at
# 64 tokens. On its second language this is so only at 64. These are hints from few seeds.
#
# Taught in [chapter 72](72_which_one.ipynb): what can be computed, what was measured, what is believed.

# %%
from pe_numpy.judging.verdicts import Study

book = Study("results/study.csv")
relative = ("shaw", "transformer_xl", "t5", "deberta", "rope")
found = {
    (task, n): [book.compare(task, name, "sinusoidal", n) for name in relative]
    for task in ("text", "markov")
    for n in (1, 2)
}
for (task, n), said in found.items():
    print(f"{task:6} at {32 * n} tokens: lower at every budget for {said.count('lower')} of 5")
assert [said.count("lower") for said in found.values()] == [5, 5, 0, 5]

# %% [markdown]
# ## 003-1.4(3) Summary: RoPE
#
# RoPE puts absolute positions into queries and keys, and their inner product makes them relative. That is right; the next
# section derives it.
#
# Taught in [chapter 40](40_rope_derived.ipynb): the derivation.
#
# ## 003-2 RoPE derived with complex numbers
#
# Su Jianlin proposed RoPE for RoFormer; PaLM and LLaMA adopted it. His derivation is in two dimensions, with the
# imaginary unit $\mathrm i$ (once $j$) and a star for the conjugate:
#
# $$\begin{gathered}\tilde q_m=f(q,m),\quad\tilde k_n=f(k,n)\\
# \langle f(q,m),f(k,n)\rangle=g(q,k,m-n)\\
# f(q,0)=q,\quad f(k,0)=k\\
# \langle q,k\rangle=\text{Re}[qk^*]\\
# \text{Re}[f(q,m)f^*(k,n)]=g(q,k,m-n)\\
# f(q,m)f^*(k,n)=g(q,k,m-n)\\
# re^{\theta j}=r\cos\theta+r\sin\theta\,j\end{gathered}$$
#
# From the sixth line on $g$ is complex, an assumption, as the document says.
#
# **E-003-22.** The derivation is said to work "by linear attention". It uses the ordinary inner product; linear attention is only
# an application of RoPE (section 3.3 of Su et al. 2021).


# %%
def f(x, m, theta=0.5):
    """The solution, read from the package: the complex number x at position m."""
    return complex(*rope([[x.real, x.imag]], [m], [theta])[0])


q, k = np.random.default_rng(0).normal(size=(2, 2)).view(complex)[:, 0]
as_vectors = np.array([[q.real, q.imag], [k.real, k.imag]])
g = {d: f(q, d) * np.conj(f(k, 0)) for d in range(-9, 10)}  # read at one pair of positions
assert np.allclose([f(q, 0), f(k, 0)], [q, k], rtol=0, atol=1e-12)
start = rope(as_vectors, [0, 0], [0.5])
assert np.isclose((f(q, 0) * np.conj(f(k, 0))).real, start[0] @ start[1], rtol=0, atol=1e-12)
for m, n in np.ndindex(10, 10):
    rotated = rope(as_vectors, [m, n], [0.5])
    assert np.isclose(rotated[0] @ rotated[1], g[m - n].real, rtol=0, atol=1e-12)
    assert np.isclose(f(q, m) * np.conj(f(k, n)), g[m - n], rtol=0, atol=1e-12)

# %% [markdown]
# Now write $f$ and $g$ by modulus and argument, then put $m=n$ into the equation of the moduli:
#
# $$\begin{gathered}f(q,m)=R_f(q,m)e^{\mathrm i\Theta_f(q,m)},\quad f(k,n)=R_f(k,n)e^{\mathrm i\Theta_f(k,n)}\\
# g(q,k,m-n)=R_g(q,k,m-n)e^{\mathrm i\Theta_g(q,k,m-n)}\\[3pt]
# R_f(q,m)R_f(k,n)=R_g(q,k,m-n)\\
# \Theta_f(q,m)-\Theta_f(k,n)=\Theta_g(q,k,m-n)\\[3pt]
# R_f(q,m)R_f(k,m)=R_g(q,k,0)=R_f(q,0)R_f(k,0)=\|q\|\,\|k\|\\
# R_f(q,m)=\|q\|,\quad R_f(k,m)=\|k\|\end{gathered}$$
#
# **C-13.** The last step looks like a gap, since only a product is known. It is forced because the *same* $f$ serves queries
# and keys: put $k=q$. With two functions it would be a choice: stretch queries by $c^m$ and keys by $c^{-n}$ (the idea of xPos).


# %%
def angle_of(z):
    """The direction of a complex number: equal angles may differ by whole rotations."""
    return np.exp(1j * np.angle(z))


for m, n in ((7, 3), (2, 9), (4, 4)):
    fq, fk, gd = f(q, m), f(k, n), g[m - n]
    assert np.isclose(abs(fq) * abs(fk), abs(gd), rtol=0, atol=1e-12)
    assert np.isclose(angle_of(fq) * np.conj(angle_of(fk)), angle_of(gd), rtol=0, atol=1e-12)
    assert np.isclose(abs(f(q, m)) * abs(f(k, m)), abs(q) * abs(k), rtol=0, atol=1e-12)
    assert np.isclose(abs(fq), abs(q), rtol=0, atol=1e-12)
two = [0.9**m * f(q, m) * np.conj(0.9**-n * f(k, n)) for m, n in ((7, 3), (5, 1))]
one = [0.9**m * f(q, m) * np.conj(0.9**n * f(k, n)) for m, n in ((7, 3), (5, 1))]
assert np.isclose(*two, rtol=0, atol=1e-12)
assert np.isclose(one[0], 0.9**4 * one[1], rtol=0, atol=1e-12)  # 7 + 3 against 5 + 1

# %% [markdown]
# **E-003-20.** "$f(q,m)$ and $f(k,m)$ have little to do with $m$." Only their *modulus* does not
# depend on $m$. Between positions 0 and 5, with $\theta=1$, a content of modulus 0.182373 keeps its
# modulus but moves from $0.1257-0.1321\,\mathrm i$ to $-0.0910-0.1580\,\mathrm i$.
#
# Then $m=n$ in the equation of the arguments. The document announces that it moves terms and prints the same line
# again. The second line below is meant: sorted by content, both sides equal one function $\varphi(m)$. With
# $n=m-1$ it is an arithmetic progression:
#
# $$\begin{gathered}\Theta_f(q,m)-\Theta_f(k,m)=\Theta_g(q,k,0)=\Theta_f(q,0)-\Theta_f(k,0)=\Theta(q)-\Theta(k)\\
# \Theta_f(q,m)-\Theta(q)=\Theta_f(k,m)-\Theta(k)=:\varphi(m)\\
# \Theta_f(q,m)=\Theta(q)+\varphi(m)\\
# \varphi(m)-\varphi(m-1)=\Theta_g(q,k,1)+\Theta(k)-\Theta(q)=:\theta\\
# \varphi(m)=m\theta\end{gathered}$$

# %%
contents = np.random.default_rng(3).normal(size=(4, 2)).view(complex)[:, 0]
for m in range(1, 10):
    unsorted = np.array([angle_of(f(x, m)) * np.conj(angle_of(f(k, m))) for x in contents])
    assert np.allclose(unsorted, angle_of(contents) * np.conj(angle_of(k)), rtol=0, atol=1e-12)
    phi = np.array([angle_of(f(x, m)) * np.conj(angle_of(x)) for x in contents])  # e^(i phi(m))
    assert [len(set(values.round(6))) for values in (unsorted, phi)] == [4, 1]
    before = angle_of(f(q, m - 1)) * np.conj(angle_of(q))
    theta = angle_of(g[1]) * angle_of(k) * np.conj(angle_of(q))
    assert np.isclose(phi[0] * np.conj(before), theta, rtol=0, atol=1e-12)
    assert np.isclose(phi[0], theta**m, rtol=0, atol=1e-12)
print(f"position 0: {f(q, 0, 1.0):.4f}, position 5: {f(q, 5, 1.0):.4f}, modulus {abs(q):.6f}")
assert f"{f(q, 5, 1.0):.4f} {abs(f(q, 5, 1.0)):.6f}" == "-0.0910-0.1580j 0.182373"

# %% [markdown]
# The result in two dimensions, and in $d$ dimensions with $d/2$ pairs:
#
# $$\begin{gathered}f(q,m)=R_f(q,m)e^{\mathrm i\Theta_f(q,m)}=\|q\|e^{\mathrm i(\Theta(q)+m\theta)}=qe^{\mathrm im\theta}\\
# f(q,m)=\begin{pmatrix}\cos m\theta&-\sin m\theta\\ \sin m\theta&\cos m\theta\end{pmatrix}\begin{pmatrix}q_0\\ q_1\end{pmatrix}\\
# (W_mq)^\top(W_nk)=\text{Re}\Big[\sum_{i=0}^{d/2-1}q_{[2i:2i+1]}k^*_{[2i:2i+1]}e^{\mathrm i(m-n)\theta_i}\Big]\end{gathered}$$
#
# **N-003-10.** For random $q$ and $k$ with $d=8$, $m=7$ and $n=2$ both sides are -1.1426988939507.
#
# **C-15.** RoFormer's matrix contains $n-m$, whereas this exponent contains $m-n$. Both are right:
# the matrix acts on $k$, and the conjugate changes the sign. (The "long-term decay" of this sum,
# which the document mentions, is not a property of every pair of contents.)
#
# Taught in [chapter 40](40_rope_derived.ipynb#the-theorem-only-a-rotation-works-second-reading): the theorem with each step.

# %%
from pe_numpy import rope_matrix

for m in (0, 1, 17):
    c, s = np.cos(m * 0.5), np.sin(m * 0.5)
    assert np.isclose(f(q, m), q * np.exp(0.5j * m), rtol=0, atol=1e-12)
    by_matrix = np.array([[c, -s], [s, c]]) @ as_vectors[0]
    assert np.isclose(f(q, m), by_matrix @ [1, 1j], rtol=0, atol=1e-12)
draw, theta, m, n = np.random.default_rng(0), rope_frequencies(8), 7, 2
q8, k8 = draw.normal(size=8), draw.normal(size=8)
left = (rope_matrix(m, theta) @ q8) @ (rope_matrix(n, theta) @ k8)
right = (q8.view(complex) * k8.view(complex).conj() * np.exp(1j * (m - n) * theta)).sum().real
print(f"left {left:.13f}, right {right:.13f}")
assert np.isclose(left, right, rtol=0, atol=1e-12) and f"{right:.13f}" == "-1.1426988939507"
assert np.isclose(q8 @ rope_matrix(n - m, theta) @ k8, right, rtol=0, atol=1e-12)  # C-15

# %% [markdown]
# ## 003-3 ALiBi: attention with linear biases
#
# ALiBi (Press et al. 2022), made for texts longer than the training texts, adds a fixed bias
# $B_{i,j}=-m\,|i-j|$ to the scores, with a different $m$ for each head:
#
# $$\begin{gathered}\text{Attention}(Q,K,V)=\text{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right)V\\
# \text{ALiBi}(Q,K,V)=\text{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}+B\right)V\end{gathered}$$
#
# $$m=2^{-8},2^{-7},2^{-6},2^{-5},2^{-4},2^{-3},2^{-2},2^{-1}$$
#
# **N-003-5.** A model trained on 1024 tokens reads 2048, with these slopes for 8 heads. The longer bias contains the shorter one,
# bit for bit.
#
# **C-8.** The paper lists the slopes in the opposite order. That changes nothing: the order of heads is arbitrary.

# %%
from pe_numpy import alibi_bias, alibi_slopes

Q, K, V = np.random.default_rng(2).standard_normal((3, 6, 8))
B = -0.5 * np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
assert np.array_equal(alibi_bias([0.5], relative_distance(range(6), range(6)))[0], B)
for bias in (None, B):
    expected = softmax(Q @ K.T / np.sqrt(8) + (0 if bias is None else bias)) @ V
    assert np.allclose(attention(Q, K, V, bias=bias)[0], expected, rtol=0, atol=1e-12)
slopes = alibi_slopes(8)
assert sorted(slopes) == [2.0**-h for h in (8, 7, 6, 5, 4, 3, 2, 1)] == list(slopes[::-1])
short, long = (alibi_bias(slopes, relative_distance(range(n), range(n))) for n in (1024, 2048))
assert np.array_equal(long[:, :1024, :1024], short)

# %% [markdown]
# **E-003-23.** The formula above is the paper's. The document prints $\text{softmax}\big((QK^\top+B)/\sqrt{d_k}\big)V$, with the
# bias inside the scale. With $d_k=64$ that turns a slope of 0.5 into 0.0625. For a random query and 16 random keys the mean
# attended distance is 2.13 with the bias outside, 5.70 inside and 6.66 without a bias.
#
# **E-003-24.** The slopes are not "exponential differences of 2" but a geometric sequence: the ratios are constant.
#
# **E-003-25.** The softmax is said to keep distant weights from "decaying infinitely close to 0". At equal scores a key at
# distance 100 has $1.9\cdot10^{-22}$ of the weight at distance 0 if $m=1/2$. Even with the smallest slope, $2^{-8}$, it is
# $3.4\cdot10^{-4}$ at distance 2048.
#
# **E-003-21.** ALiBi is said to extrapolate better than RoPE because periodic functions "must decay", so that far positions can
# barely be told apart. In this book's study ALiBi's loss is indeed lower at four times the trained length, but the reason is
# wrong. For $d=512$ neighbouring sinusoidal vectors are 3.7143 apart at every position, and vectors 62,832
# positions apart differ by 23.36, more than orthogonal ones would. What falls, on average, is $p_i\cdot p_j$.
#
# Taught in [chapter 35](35_alibi.ipynb#is-the-bias-added-inside-or-outside-the-scale): slopes, the scale, and how far a head sees.

# %%
away, draw = np.arange(15, -1, -1), np.random.default_rng(0)  # distances of 16 keys
raw = (K64 := draw.standard_normal((17, 64)))[1:] @ K64[0]  # a query and 16 keys
scores = {"outside": raw / 8 - 0.5 * away, "inside": (raw - 0.5 * away) / 8, "no bias": raw / 8}
mean = {name: round(float(softmax(z) @ away), 2) for name, z in scores.items()}
print("mean attended distance:", mean, "  slope that acts inside:", 0.5 / np.sqrt(64))
assert list(mean.values()) == [2.13, 5.70, 6.66]
ratios = slopes[1:] / slopes[:-1]
assert np.allclose(ratios, 0.5, rtol=0, atol=1e-15) and np.ptp(np.diff(slopes)) > 0.2
for m, reach, shown in ((0.5, 100, "1.9e-22"), (slopes[-1], 2048, "3.4e-04")):
    w = softmax(alibi_bias([m], relative_distance([reach], range(reach + 1)))[0, 0])
    print(f"slope {m}: weight at distance {reach}, relative to distance 0: {w[0] / w[-1]:.1e}")
    assert f"{w[0] / w[-1]:.1e}" == shown

# %%
for start in (0, 1000, 60_000):
    step = np.linalg.norm(sinusoidal(start + 1, 512) - sinusoidal(start, 512))
    print(f"from {start:6,} to the next position: {step:.4f}")
    assert f"{step:.4f}" == "3.7143"
apart = np.linalg.norm(sinusoidal(62_832, 512) - sinusoidal(0, 512))
print(f"62,832 positions apart: {apart:.2f}; sqrt(512) = {np.sqrt(512):.2f}")
assert f"{apart:.2f}" == "23.36" and apart > np.sqrt(512)
dots = sinusoidal(np.arange(4096), 512) @ sinusoidal(0, 512)
assert dots[:64].mean() > dots[64:512].mean() > dots[512:].mean()
assert all(book.compare(task, "alibi", "rope", 4) == "lower" for task in ("markov", "text"))

# %% [markdown]
# ## 003-4.1 What length extrapolation is
#
# A model gets worse on inputs longer than in training; the aim is "train short, test long", ideally without fine-tuning.
# Training is short because of the cost, and because most texts are short.
#
# Taught in [chapter 51](51_extrapolation.ipynb): both problems of longer inputs, and remedies.
#
# ## 003-4.2 Methods: number bases, interpolation, NTK and log n
#
# Positions are compared to numbers written in digits (after Su 2023), with the example 1749:
#
# - **A representation in a base.** Three decimal digits represent the numbers up to 999 without large inputs. Smaller bases need
#   more digits: 1749 has 4, 4, 5 and 11 in the bases 10, 8, 6 and 2 (N-003-6; the document prints none).
# - **Direct extrapolation.** A leading digit, always 0 in training, becomes 1. It is untrained, so results are poor.
# - **Linear interpolation.** Halved, 1749 becomes 874.5, with the digits 8, 7 and 4.5, and 7, 4, 9 now mean 1498 (N-003-7).
#   Neighbours differ by 0.5, in the last digit only, so fine-tuning is needed.
# - **Base conversion.** In base 16 three digits reach $16^3-1=4095$, and 1749 is 6, 13, 5 (N-003-8). Neighbours still
#   differ by 1. This is the idea of NTK-aware scaled RoPE.
#
# **C-12.** All printed digits are right. (Base 13 would already reach 1999.)

# %%
from pe_numpy import from_digits, to_digits

for base, width in ((10, 4), (8, 4), (6, 5), (2, 11)):
    digits = to_digits(1749, base, width)
    print(f"1749 in base {base}:", digits.tolist())
    assert digits[0] > 0 and from_digits(digits, base) == 1749
print("halved:", 1749 / 2, to_digits(1749 / 2, 10, 3).tolist())
print("base 16:", to_digits(1749, 16, 3).tolist())
assert to_digits(1749 / 2, 10, 3).tolist() == [8, 7, 4.5] and 2 * from_digits([7, 4, 9], 10) == 1498
halves = to_digits(np.arange(200, 206) / 2, 10, 3)
assert (np.diff(halves, axis=0) == [0, 0, 0.5]).all()
assert to_digits(1749, 16, 3).tolist() == [6, 13, 5]
assert from_digits([15, 15, 15], 16) == 4095 > 1999
assert from_digits([12, 12, 12], 13) >= 1999 > from_digits([11, 11, 11], 12)

# %% [markdown]
# The section's summary is that direct extrapolation is poor, and so is interpolation without
# fine-tuning. NTK-aware RoPE keeps a part of the quality without fine-tuning, and a factor of $\log
# n$ helps. (A small slip: "the price is" is misprinted.)
#
# **E-003-26, N-003-9.** The document *divides* the scores by $\log n$ to sharpen the softmax. Dividing flattens it. The method (Su
# 2021; Chiang and Cholak 2022) *multiplies*, by $\ln n/\ln L_0$ with the trained length $L_0$. For the scores 2, 1, 0 and -1,
# $n=2048$ and $L_0=512$ the entropy is 0.9475, after dividing 1.3756, after multiplying 0.8147.
#
# This book's study (RoPE without fine-tuning) agrees with the first three points. At twice the trained length interpolation is
# even worse than doing nothing; at four and eight times NTK-aware scaling, in its dynamic form, is better than both. On text
# it does not agree with the fourth: in models not trained with it, the factor raises RoPE's loss at 256 tokens from
# the middle budget on.
#
# Taught in [chapter 51](51_extrapolation.ipynb#numbers-as-network-inputs-digits-in-a-base): digits, and why the logarithm.

# %%
from pe_numpy import attention_entropy, log_n_scale

sharper, shown = log_n_scale(2048, 512), []
for name, factor in (("plain", 1), ("divided", 1 / np.log(2048)), ("multiplied", sharper)):
    shown.append(f"{attention_entropy(softmax(factor * np.array([2.0, 1, 0, -1]))):.4f}")
    print(f"{name:10} {shown[-1]}")
assert shown == ["0.9475", "1.3756", "0.8147"]
draw = np.random.default_rng(0)
for n in (512, 2048, 8192):
    z = draw.standard_normal(n)
    factors = np.array([1, 1 / np.log(n), log_n_scale(n, 512)])
    plain, divided, multiplied = attention_entropy(softmax(factors[:, None] * z))
    print(f"{n} keys: plain {plain:.4f}, divided {divided:.4f}, multiplied {multiplied:.4f}")
    assert multiplied <= plain < divided < np.log(n) and (multiplied < plain) == (n > 512)

# %%
models = {name: {"encoding": "rope", "scaling": name} for name in ("linear", "dynamic_ntk")}
print("loss at 32, 64, 128 and 256 tokens")
for name in ("direct", *models):
    losses = book.means("text", "rope", scaling=name)[4]
    print(f"{name:12}", np.round(losses, 2).tolist())
for task in ("text", "markov"):
    assert book.compare(task, models["linear"], "rope", 2) == "higher"
    for n in (4, 8):
        assert book.compare(task, models["dynamic_ntk"], "rope", n) == "lower"
        assert book.compare(task, models["dynamic_ntk"], models["linear"], n) == "lower"
with_factor, without = ({"encoding": "rope", "log_n": n} for n in (1, 0))
assert book.compare("text", with_factor, without, 8) == "higher from 4 on"

# %% [markdown]
# ## 003-4.3 The two problems of longer inputs
#
# First, unseen positions: learned tables, but also sinusoids and RoPE, since the layers above them are trained on a limited
# range. Second, more keys spread attention and raise its entropy. Both are right; in the table of the last section the
# entropy grew from 5.7625 for 512 keys to 8.5185 for 8192.
#
# Taught in [chapter 51](51_extrapolation.ipynb#two-problems-of-long-texts-new-positions-and-more-keys) and
# [chapter 71](71_study.ipynb#length-extrapolation-unseen-positions-and-scattered-attention): the two problems apart, and in trained models.
#
# ## 003-4.4 Why few models used extrapolation schemes
#
# Why do only BLOOM and MPT use a scheme made for extrapolation, ALiBi? The document gives three
# reasons. The work was new and little tested. Perplexity, the usual measure, favours local
# attention. And quality *within* the trained length matters more, as in an ablation of GLM in which
# ALiBi is worse than RoPE.
#
# The study shows the second and the third at small scale. On text ALiBi's loss at 256 tokens is the same as at 32, to within
# 0.01; yet it finds only 74% of the needles there, instead of 97%. Within the trained length RoPE has a
# lower loss than ALiBi with its published slopes. (The ablation itself was not checked.)
#
# Taught in [chapter 71](71_study.ipynb#a-flat-loss-does-not-mean-a-long-memory): a level loss is not a long memory.

# %%
loss = book.means("text", "alibi")[4]
needles = book.means("needle", "alibi", "accuracy")[4]
print("ALiBi at 32, 64, 128 and 256 tokens")
print("loss on text", loss.round(2).tolist(), "  needles", [f"{share:.0%}" for share in needles])
assert np.ptp(loss) < 0.01 and [f"{share:.0%}" for share in needles[[0, 3]]] == ["97%", "74%"]
for task in ("text", "markov"):
    assert book.compare(task, "rope", "alibi_256", 1) == "lower"
