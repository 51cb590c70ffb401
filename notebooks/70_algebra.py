# %% [markdown]
# # 70. One algebra of positional encodings
#
# *How many ideas are there in all these encodings, and can a program tell which one from the scores?*
#
# 50 minutes. Needs [37 Content-dependent position: Forgetting Transformer and CoPE](37_content.ipynb), [43 2-D and multimodal RoPE (axial RoPE, M-RoPE)](43_rope_grid.ipynb), [45 RoPE variants: xPos, rotated values, PoPE](45_rope_relatives.ipynb), [50 RoPE scaling: position interpolation, NTK, YaRN, LongRoPE](50_scaling.ipynb), [52 Training-free context extension: ReRoPE, Self-Extend, dual chunk attention](52_new_places.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** The book has 42 positional encodings with as many names. How many ideas are
# behind them? A short proof shows that one requirement, scores linear in query and key that depend
# only on distance, leads to powers of a single matrix. RoPE, ALiBi and decay are its three simplest
# cases. A program then recognises each scheme from its scores, without its name. At the end you can
# say what any new encoding does, and test whether yours is relative.

# %% fold="input" alt="A table of 42 schemes in nine groups of colours and 14 tests, with ticks, dashes, words or nothing in the cells. Rows of one colour share most of their cells. Eight rows of rotations are equal."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import additive_lift, properties, rank2_rotation, rope, score_function
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import algebra as plots
from pe_numpy.judging.schemes import every_scheme

schemes = every_scheme()
found = {name: properties(s.scores, axes=s.axes) for name, s in schemes.items()}
assert len(found) == 42
plots.algebra_grid(found)
plt.show()

# %% [markdown]
# Each row of the figure is a scheme, and its colour is the operation by which position enters the
# score. Each column is a test, explained in the second table below. A cell is empty where a test does
# not apply.
#
# ## Six operations: add, expand, bias, rotate, index, none
#
# Let $q$ and $k$ be the vectors of a query at position $i$ and of a key at $j$, $D=i-j$, and
# $s(q,k,i,j)$ their score. A score is $q\cdot k/\sqrt K$ without position, with the head dimension
# $K$.
#
# | operation | what becomes of the score $q\cdot k/\sqrt K$ | who |
# |---|---|---|
# | add | $(x_i+p_i)W_q\cdot(x_j+p_j)W_k/\sqrt K$ | sinusoidal, learned; with a product instead of the sum: multiply |
# | expand | plus terms of $q$ or $k$ with a table at $D$ | Shaw, Transformer-XL, DeBERTa |
# | bias | plus a number that $i$ and $j$ decide | ALiBi, T5, TUPE |
# | turn (rotate) | $(G^Dq)\cdot k/\sqrt K$, with a matrix $G$ | RoPE, its static scalings, xPos |
# | index, path | a different number for $D$, or what is between | ReRoPE and Self-Extend; FoX and PaTH |
# | none | nothing | NoPE |
#
# The figure was *measured*: its program sees functions `score(q, k, i, j)`, no names. It separates
# variants: *multiply* from add, PoPE from turn, path from index. Its columns ask:
#
# | test | question |
# |---|---|
# | pairwise | do scores stay the same if a third token is removed? |
# | relative | do scores stay the same if all positions move by 1 (or by 2, by 16)? |
# | one number | is position an added number, whatever the content? |
# | bilinear | is the score linear in $q$, and in $k$? cross term: is it so without the terms of one side? |
# | nothing at $q=k=0$ | is the score 0 there, or does a function of $D$ remain (*Toeplitz*), or of $i,j$? |
# | turns, group | is the matrix between $q$ and $k$ orthogonal (times a gain)? is step after step one longer step? |
# | mirror, falls | is the score the same for $-D$? does it fall with the distance, for equal tokens, on average? |
# | far away, bounded | far away, is the score *free*, *saturated* (sat., constant from somewhere on) or *finite* (end, no score)? in the past, is it at most 1.5 times the largest score near by? |
# | old rows stay | do earlier rows stay the same when the text grows? |
# | rank | what is the rank of the scores of one content, 32 queries after 32 keys? |
#
# The code has two helpers. `phi` finds the matrix between $q$ and $k$ with unit vectors, if there
# is one. `hidden` is a scheme with powers of a random matrix between two others.

# %%
rng = np.random.default_rng(0)
P0, R0 = rng.standard_normal((2, 8, 8))
step = np.eye(8) + 0.02 * rng.standard_normal((8, 8))


def phi(scores, i, j, K=8):
    return scores(np.eye(K), np.eye(K), np.full(K, i), np.full(K, j)) * K**0.5


def hidden(q, k, i, j):  # P0 step^i for queries, step^-j R0 for keys
    left = np.array([P0 @ np.linalg.matrix_power(step, m) for m in i])
    right = np.array([np.linalg.matrix_power(np.linalg.inv(step), m) @ R0 for m in j])
    return np.einsum("la,lab,sbc,sc->ls", q, left, right, k) / 8**0.5


# %% [markdown]
# ## Relative scores are powers of one matrix
#
# We ask for two things: $s$ depends on positions only through $D$, and it is linear in $q$ and in
# $k$. So $\sqrt K\,s=q^\top\Phi(D)\,k$ with a matrix $\Phi(D)$. Suppose queries and keys are each
# prepared with a matrix of their own position, $\Phi(i-j)=P(i)^\top R(j)$, all invertible. Then
#
# $$\Phi(D)=\Psi^{D}\,\Phi(0),\qquad \Psi=\Phi(1)\,\Phi(0)^{-1}$$
#
# *Proof.* $j=0$ gives $P(i)^\top=\Phi(i)R(0)^{-1}$, and $i=j$ gives
# $R(j)=P(j)^{-\top}\Phi(0)=R(0)\Phi(j)^{-1}\Phi(0)$. Multiply:
# $\Phi(i-j)=\Phi(i)\Phi(j)^{-1}\Phi(0)$. With $i=j+1$: $\Phi(j+1)=\Psi\,\Phi(j)$. ∎
#
# $\Phi(0)$ can be absorbed in $W_k$. What remains is one matrix $G=\Psi^\top$ and its powers. Here it
# is for xPos and for the random scheme:

# %%
for scores in (schemes["xpos"].scores, hidden):
    Psi = phi(scores, 1, 0) @ np.linalg.inv(phi(scores, 0, 0))
    for i, j in ((5, 0), (12, 9), (20, 13)):
        expected = np.linalg.matrix_power(Psi, i - j) @ phi(scores, 0, 0)
        largest = np.abs(expected).max()
        assert np.allclose(phi(scores, i, j), expected, rtol=0, atol=1e-9 * largest)
assert found["xpos"].group and properties(hidden).group
assert not found["multiplicative"].group and not found["rerope"].group

# %% [markdown]
# The detector's test *group* is this statement: a step of $D$ and one of $D'$ are one of $D+D'$.
# ReRoPE is relative and bilinear and fails it, because $D$ chooses between two preparations.
#
# The key's matrix is $G^{-\top}$ per step, which is $G$ only where $G$ is orthogonal. That is why
# xPos must give keys the opposite exponent, and RoPE may treat both alike.
#
# ### An orthogonal matrix: RoPE with free frequencies
#
# Suppose $G$ is also orthogonal. Its eigenvalues have absolute value 1 and, as it is real, come in
# pairs $e^{\pm i\omega}$ (or are $\pm1$: unrotated, or half a turn each step). The real and imaginary
# parts of eigenvectors, times $\sqrt2$, are an orthonormal basis $B$, in which $G$ is a rotation in
# each pair:
#
# $$(G^Dq)\cdot k=\big(\mathrm{rope}(B^\top q,\,i)\big)\cdot\big(\mathrm{rope}(B^\top k,\,j)\big)$$
#
# So this is RoPE with free frequencies, and $B$ can be absorbed in $W_q$ and $W_k$. That the
# frequencies are geometric is a choice. **Predict**: can the frequencies be read from nothing but the
# scores?

# %% fold="output"
G, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))
G[0] = -G[0]  # det G = 1: a rotation, not a reflection
values, vectors = np.linalg.eig(G)
upper = values.imag > 0
assert upper.sum() == 3  # three pairs, no eigenvalue 1 or -1
B = np.stack([vectors[:, upper].real, -vectors[:, upper].imag], axis=-1).reshape(6, 6) * 2**0.5
assert np.allclose(B.T @ B, np.eye(6), rtol=0, atol=1e-12)
q, k = rng.standard_normal((2, 1, 6))
omega = np.angle(values[upper])
for i, j in ((3, 3), (9, 2), (2, 40)):
    turned = np.linalg.matrix_power(G, i - j) @ q[0]
    as_rope = rope(q @ B, [i], omega)[0] @ rope(k @ B, [j], omega)[0]
    assert np.isclose(turned @ k[0], as_rope, rtol=0, atol=1e-12)
black_box = phi(schemes["llama3"].scores, 1, 0)
print("Llama 3's, base 10:", np.unique(np.abs(np.angle(np.linalg.eigvals(black_box))).round(4)))

# %% [markdown]
# ### Bounded scores: RoPE in other coordinates (second reading)
#
# Now we ask for less: scores stay bounded, for all $D$ of both signs. Powers $G^D$ are then bounded
# both ways, so no eigenvalue is off the unit circle and no Jordan block is larger than 1. Then
# $G=SOS^{-1}$ with $O$ orthogonal, and
#
# $$(G^Dq)\cdot k=\big(O^D\,S^{-1}q\big)\cdot\big(S^\top k\big)$$
#
# This is RoPE again, with a different matrix for the query's weights than for the key's. Powers of
# any other $G$ explode, on one side at least, so a decay needs a causal mask.

# %%
S = rng.standard_normal((6, 6))
skewed = S @ G @ np.linalg.inv(S)
for D in (-7, 0, 30):
    left = np.linalg.matrix_power(skewed, D) @ q[0] @ k[0]
    right = (np.linalg.matrix_power(G, D) @ np.linalg.solve(S, q[0])) @ (S.T @ k[0])
    assert np.isclose(left, right, rtol=0, atol=1e-9)
sizes = [np.abs(np.linalg.matrix_power(skewed, D)).max() for D in range(-500, 501)]
fading = [np.abs(phi(schemes["xpos"].scores, 0, j)).max() for j in (500, 5000)]
print(f"skewed: at most {max(sizes):.1f}; xPos, key after the query: {np.round(fading)}")
assert round(max(sizes), 1) == 13.2 and np.round(fading).tolist() == [3, 203_192]

# %% [markdown]
# ## Generators of RoPE, ALiBi and decay: the matrix exponential
#
# Powers of $G$ for all real distances are $e^{DA}$, with a *generator* $A$. The exponential is a
# series, and halving $A$ twenty times makes it short:
#
# $$e^A=\sum_m\frac{A^m}{m!},\qquad e^A=\big(e^{A/2}\big)^2$$


# %%
def exponential(A):
    term = total = np.eye(len(A))
    for m in range(1, 10):
        term = term @ A / 2**20 / m
        total = total + term
    for _ in range(20):
        total = total @ total
    return total


skew, line = np.array([[0, -1.0], [1, 0]]), np.array([[0, 0], [-1.0, 0]])
turned = [[np.cos(2), -np.sin(2)], [np.sin(2), np.cos(2)]]
assert np.allclose(exponential(2 * skew), turned, rtol=0, atol=1e-8)
assert np.allclose(exponential(2 * line), [[1, 0], [-2, 1]], rtol=0, atol=1e-8)
assert np.allclose(exponential(np.diag([0, -2])), np.diag([1, np.exp(-2)]), rtol=0, atol=1e-8)

# %% [markdown]
# Three kinds of generator make three kinds of score. A *skew* $A$, $A^\top=-A$, makes a wave. A
# *nilpotent* one, $A^2=0$, makes a line. A diagonal $A$ makes a decay. The last panel has all of
# them:

# %% alt="Four generators as small matrices and, below each, the score over the distance. Two entries of opposite sign across the diagonal make a wave, one entry off the diagonal a falling line, the diagonal a decay, and all three a wave that grows and fades."
zero, turn = np.zeros((4, 4)), np.zeros((4, 4))
turn[:2, :2] = turn[2:, 2:] = [[0, -0.5], [0.5, 0]]
line, decay = zero.copy(), -0.05 * np.eye(4)
line[3, 2] = -0.03
both = np.zeros((4, 4))
both[:2, 2:] = 0.2 * np.eye(2)
generators = {"skew: RoPE": turn, "nilpotent: ALiBi": line, "diagonal: decay": decay}
generators["all three"] = turn + decay + both
ones, at = np.full(4, 0.5), np.arange(60)
curves = {name: [(exponential(n * A) @ ones) @ ones for n in at] for name, A in generators.items()}
plots.algebra_generators(generators, at, {name: np.round(c, 9) for name, c in curves.items()})
plt.show()

# %% [markdown]
# GRAPE (Zhang et al. 2026) makes a skew generator of two vectors, $A=ab^\top-ba^\top$. With $\alpha$
# the area between them (`s` in the listing below, where `np.sinc` divides by it without dividing by
# zero):
#
# $$e^{nA}=I+\frac{\sin n\alpha}{\alpha}A+\frac{1-\cos n\alpha}{\alpha^2}A^2,\qquad \alpha^2=|a|^2|b|^2-(a\cdot b)^2$$
#
# *Proof.* $A^3=-\alpha^2A$, so the series has the odd terms of the sine on $A$ and the even ones of
# the cosine on $A^2$. ∎

# %%
a, b = rng.standard_normal((2, 5))
A = np.outer(a, b) - np.outer(b, a)
alpha = np.sqrt((a @ a) * (b @ b) - (a @ b) ** 2)
assert np.allclose(A @ A @ A, -(alpha**2) * A, rtol=0, atol=1e-12)
for n in (1, -3, 0.5):
    angle = n * alpha
    closed = np.eye(5) + np.sin(angle) / alpha * A + (1 - np.cos(angle)) / alpha**2 * A @ A
    assert np.allclose(closed, exponential(n * A), rtol=0, atol=1e-8)
    assert np.allclose(rank2_rotation(a, b, n), closed, rtol=0, atol=1e-12)
x, e_1, e_2 = rng.standard_normal((1, 2)), *np.eye(2)
for a, b, n in ((0.1 * e_2, e_1, 7), (e_1, 0.1 * e_2, -7)):
    turned = rope(x, [n], [0.1])[0]
    assert np.allclose(rank2_rotation(a, b, 7) @ x[0], turned, rtol=0, atol=1e-12)

# %%
show_source(rank2_rotation)

# %% [markdown]
# *A common mistake:* $a=e_1$, $b=\omega e_2$ turns *clockwise*: $Ae_2=\omega e_1$. Scores are the
# same if both sides do it, but rotated keys from another program are not.
#
# Now $A^2=0$: then $e^{DA}=I+DA$, a line in $D$. Lengthen both vectors, $\hat q=[q;1;0]$ and
# $\hat k=[k;0;1]$, and let the one entry of $A$ carry the new component to the last:
#
# $$\frac{(e^{DA}\hat q)\cdot\hat k}{\sqrt K}=\frac{q\cdot k}{\sqrt K}-\beta D,\qquad A=-\beta\sqrt K\;e_{K+2}\,e_{K+1}^\top$$

# %%
show_source(additive_lift)
q, k = rng.standard_normal((2, 1, 8))
lifted_q, lifted_k, A = additive_lift(q, k, 0.5)
assert not (A @ A).any()
for i, j in ((5, 2), (90, 4), (2, 5)):
    D = i - j
    assert np.allclose(exponential(D * A), np.eye(10) + D * A, rtol=0, atol=1e-7)
    score = (lifted_q[0] + D * A @ lifted_q[0]) @ lifted_k[0] / 8**0.5
    assert np.isclose(score, q[0] @ k[0] / 8**0.5 - 0.5 * D, rtol=0, atol=1e-12)

# %% [markdown]
# ALiBi is that line for the past. For the future the line *raises* scores, and no powers of a
# matrix give $|D|$. *A common mistake* is to divide by the square root of the new width.
# **Predict**: which two things are then wrong?

# %% fold="output"
wrong = (lifted_q[0] + 10 * A @ lifted_q[0]) @ lifted_k[0] / 10**0.5
slope = 0.5 * (8 / 10) ** 0.5
print(f"a slope of {slope:.4f} for 0.5, and contents times {(8 / 10) ** 0.5:.4f}")
assert np.isclose(wrong, (8 / 10) ** 0.5 * (q[0] @ k[0] / 8**0.5) - slope * 10, rtol=0, atol=1e-12)

# %% [markdown]
# FoX uses the same entry, with a number from each token instead of the slope. The matrices
# $U_t=I+\ln f_t\,E$ with $E^2=0$ commute, and
#
# $$U_iU_{i-1}\cdots U_{j+1}=I+\Big(\sum_{t=j+1}^{i}\ln f_t\Big)E$$

# %%
from pe_numpy import alibi_bias, forgetting_bias, t5_bucket

log_f = np.log(rng.uniform(0.5, 1, 9))
E = np.outer(np.eye(3)[2], np.eye(3)[1])
for i, j in ((8, 0), (5, 3), (4, 4)):
    product = np.eye(3)
    for t in range(j + 1, i + 1):
        product = (np.eye(3) + log_f[t] * E) @ product
    bias = forgetting_bias(np.cumsum(log_f), np.cumsum(log_f))[i, j]
    assert np.allclose(product, np.eye(3) + bias * E, rtol=0, atol=1e-12)

# %% [markdown]
# ### Every relative score of two prepared vectors (second reading)
#
# By Jordan's form, every real $A$ consists of blocks with an eigenvalue $-\kappa\pm i\omega$ and ones
# beside them, up to a change of basis that projections absorb. Its exponential has entries of one
# kind. So
#
# $$\sqrt K\,s(D)=\sum_c u_c\,D^{m_c}e^{-\kappa_cD}\cos(\omega_cD+\varphi_c)$$
#
# is *every* relative score of two vectors, each prepared by a continuous matrix of its position. RoPE
# has $m=\kappa=0$, and xPos has a $\kappa$ for each pair. ALiBi adds a term with $m=1$,
# $\kappa=\omega=0$. To see it, hide a matrix in a random basis, find the coefficients from as many
# distances as it is wide, and predict all others.

# %%
kappa, w = 0.02, 0.5
pair = np.array([[-kappa, -w], [w, -kappa]])
A = np.zeros((5, 5))
A[:2, :2] = A[2:4, 2:4] = pair  # one pair, twice ...
A[:2, 2:4] = np.eye(2)  # ... and ones beside it: a Jordan block, m = 1
A[4, 4] = -0.05
S, q5, k5 = rng.standard_normal((5, 5)), *rng.standard_normal((2, 5))
A_hidden = S @ A @ np.linalg.inv(S)
score = np.array([(exponential(D * A_hidden) @ q5) @ k5 for D in range(60)])
D, fade = np.arange(60), np.exp(-kappa * np.arange(60))
waves = fade * np.cos(w * D), fade * np.sin(w * D)
terms = np.stack([*waves, D * waves[0], D * waves[1], np.exp(-0.05 * D)], axis=1)
u = np.linalg.solve(terms[:5], score[:5])
assert np.allclose(terms @ u, score, rtol=0, atol=1e-6 * np.abs(score).max())

# %% [markdown]
# ## Rank: what no such matrix can express
#
# A score $h(i-j)$ from vectors of width $r$ makes a matrix (all $i$, all $j$) of rank at most $r$, no
# matter how long the text is. And (Kronecker) $h$ on all integers has rank at most $r$ if and only if
# it obeys a linear recurrence of $r$ terms.
#
# *Proof.* The shifted copies of $h$ span at most $r$ dimensions, and shifting maps that space to
# itself. By Cayley and Hamilton the shift obeys its characteristic polynomial:
# $h(D+r)=\gamma_1h(D+r-1)+\dots+\gamma_rh(D)$. And if it does, $r$ values determine all others. ∎
#
# **Predict** which of these stay small as the text grows: $\cos\frac D2$, $D$, $e^{-D/9}$, $|D|$,
# $\min(|D|,4)$, T5's buckets.

# %% fold="output" alt="Rank of the matrix h(i - j) for 4 to 64 positions, on logarithmic axes. The cosine and the line stay at 2, the exponential at 1. The absolute distance, the capped distance and T5's table rise with the size."
functions = {
    "$e^{-D/9}$": lambda d: np.exp(-d / 9),
    r"$\cos\frac{D}{2}$": lambda d: np.cos(d / 2),
    "$D$": lambda d: d,
    "$|D|$": lambda d: np.abs(d),
    r"$\min(|D|, 4)$": lambda d: np.minimum(np.abs(d), 4),
    "T5": lambda d: np.sin(t5_bucket(d) ** 2),  # a table of 32 numbers
}
n = [4, 8, 16, 32, 64]
grids = [np.subtract.outer(np.arange(m), np.arange(m)) for m in n]
ranks = {name: [int(np.linalg.matrix_rank(h(d))) for d in grids] for name, h in functions.items()}
assert [r[-1] for r in ranks.values()] == [1, 2, 2, 64, 64, 64]
plots.algebra_ranks(n, ranks)
plt.show()

# %% [markdown]
# The last three need vectors that grow with the text, or a number added to the score: a bias.
# Looking only at the past does not save T5: run backwards, the recurrence of an invertible $G$
# continues a constant as a constant. ReRoPE's cap takes two rotations and a choice between them.
#
# RoPE's own rank counts its frequencies. For one content at all positions:
#
# $$\mathrm{rank}\;\le\;2\,\#\{\omega_c\ne0\text{, distinct}\}+[\text{something is unturned}]$$


# %%
def rank_of(omega, K=8):
    q, k = np.tile(rng.standard_normal((2, 1, K)), (1, 40, 1))
    scores = rope(q, np.arange(40), omega) @ rope(k, np.arange(40), omega).T
    return int(np.linalg.matrix_rank(scores, tol=1e-8))


assert rank_of([1.0, 0.3, 0.1, 0.03]) == 2 * 4
assert rank_of([1.0, 0.3]) == 2 * 2 + 1  # half of the head is unrotated
assert rank_of([1.0, 0.3, 0.3, 0.0]) == 2 * 2 + 1 and rank_of([0.0]) == 1
print(
    "RoPE", found["rope"].rank, " partial", found["partial_rope"].rank, " none", found["none"].rank
)

# %% [markdown]
# So a rank of 5 against 8 tells partial RoPE from full RoPE without a look inside.
#
# ## Several axes: commuting generators (second reading)
#
# On an image $p$ has two coordinates and the natural generalisation is $e^{p_1A_1+p_2A_2}$. It is
# relative *if and only if* the generators commute. *Proof.* If it is,
# $e^{p\cdot A}e^{p'\cdot A}=e^{(p+p')\cdot A}$. The right side does not depend on which comes first,
# so the exponentials commute, and their derivatives at 0. Conversely exponentials of commuting
# matrices multiply. ∎ Commuting skew matrices share a basis of pairs: that is mixed RoPE
# ([chapter 43](43_rope_grid.ipynb)). LieRE learns two skew matrices and does not ask this.


# %%
def turn_of(A, p):  # e^(p A) of skew generators, by the eigenvalues of a Hermitian matrix
    values, V = np.linalg.eigh(np.einsum("na,abc->nbc", p, A) * -1j)
    return (V * np.exp(1j * values)[:, None]) @ np.swapaxes(V.conj(), -1, -2)


def grid_scores(A):
    def scores(q, k, i, j):
        left = np.einsum("lab,lb->la", turn_of(A, i).real, q)
        return left @ np.einsum("sab,sb->sa", turn_of(A, j).real, k).T / 8**0.5

    return scores


# %%
random = rng.standard_normal((2, 8, 8))
lie, (basis, _) = random - np.swapaxes(random, 1, 2), np.linalg.qr(random[0])
flat = np.zeros((2, 8, 8))
for axis in range(2):
    for c in range(4):
        flat[axis, 2 * c + 1, 2 * c] = rng.standard_normal()
flat = basis @ (flat - np.swapaxes(flat, 1, 2)) @ basis.T  # four planes, in a hidden basis
for name, A in (("LieRE", lie), ("commuting", flat)):
    commute = bool(np.allclose(A[0] @ A[1], A[1] @ A[0], rtol=0, atol=1e-9))
    got = properties(grid_scores(A), axes=2)
    print(f"{name:10} commute: {commute!s:6} shift {got.shift}  group {got.group!s:6} {got.move}")
    assert commute == got.group == (got.shift == 1)
    by_series, turned = exponential(A.sum(0)), turn_of(A, np.ones((1, 2)))[0].real
    assert np.allclose(turned, by_series, rtol=0, atol=1e-8)

# %% [markdown]
# LieRE rotates, but its rotation depends on more than the difference of two positions, so the
# detector counts it among the changed indices.
#
# ## Equal encodings: cheap tests for your own code
#
# Where families touch, two programs must agree except for rounding. These are cheap tests for your
# own code. [Deeper](#equivalences-of-encodings-second-reading) lists all equivalences of the book.

# %%
from pe_numpy import relative_distance
from pe_numpy.rotary.scaling import yarn_scaling
from pe_numpy.transformer.encodings import DualChunk, Encoding, ReRope, Rope, SelfExtend, XPos

bridges = {
    "xPos that does not fade": (XPos(scale_base=1e30), Rope()),
    "YaRN of factor 1": (Rope(scaling=lambda K, L: yarn_scaling(K, 1, 32)), Rope()),
    "ReRoPE with a window of the text": (ReRope(100), Rope()),
    "Self-Extend in groups of 1": (SelfExtend(16, 1), Rope()),
    "one chunk": (DualChunk(100, 10), Rope()),
    "frequencies of 0": (Rope(scaling=lambda K, L: np.zeros(K // 2)), Encoding()),
}

# %%
at, q, k = np.arange(60), *rng.standard_normal((2, 60, 8))
for name, pair in bridges.items():
    one, other = (np.tril(score_function(e)(q, k, at, at)) for e in pair)
    assert np.allclose(one, other, rtol=0, atol=1e-12)
    print(f"{name:33}= {'RoPE' if type(pair[1]) is Rope else 'no encoding'}")
half = np.cumsum(np.full(60, np.log(0.5)))
steady = np.tril(forgetting_bias(half, half))
line = np.tril(alibi_bias([np.log(2)], relative_distance(at, at))[0])
assert np.allclose(steady, line, rtol=0, atol=1e-12)
print(f"FoX with gates of 1/2            = ALiBi of slope {np.log(2):.4f}, ln 2")

# %%
from pe_numpy import kerple_power_bias, mrope_frequencies, rope_nd

distance = relative_distance(at, at)
kerple = kerple_power_bias([0.5], [1], distance)
assert np.allclose(kerple, alibi_bias([0.5], distance), rtol=0, atol=1e-12)
text = np.tile(at[:, None], 3)  # time, row and column of a word are its place
three = rope_nd(q, text, mrope_frequencies([2, 1, 1]))
assert np.allclose(three, rope(q, at), rtol=0, atol=1e-12)
print("KERPLE with a power of 1         = ALiBi\nM-RoPE of a text without images  = RoPE")

# %% [markdown]
# ## The detector: properties of an unknown score function
#
# Each statement above can be tested on a function that nobody explains. `properties` calls it with
# random contents and compares. Numbers count as equal if they differ by less than $10^{-9}$ of the
# largest. Here are three of its tests in full, on a box `s` that contains the function and
# contents:

# %%
from pe_numpy.judging.properties import Properties, gain, group, is_pairwise

show_source(is_pairwise, gain, group)

# %% [markdown]
# `score_function` turns an encoding of this package into such a bare function. Parameters that
# begin as zeros are drawn at random, as if trained.

# %% fold="output"
show_source(properties, score_function)
again = score_function(schemes["alibi"].encoding)
assert np.array_equal(again(q, k, at, at), schemes["alibi"].scores(q, k, at, at))

# %% [markdown]
# The cell prints what the detector finds about all schemes, and groups equal ones: it is the first
# figure in words.

# %%
names = plots.in_order(found)
groups = {}
for name in names:
    row = found[name]._replace(leak=0)  # the last digits of the leak are rounding
    groups.setdefault((row.move, row), []).append(name)
print("move     shift  far away   without content  rank  schemes")
for (move, row), alike in groups.items():
    about = f"{row.shift:5}  {row.range or '-':11}{row.zero:17}{row.rank or '-':>4}"
    print(f"{move.split()[0]:9}{about}  {', '.join(alike)}")
assert len(groups) == 32
largest = max(groups.values(), key=len)
equal = {"rope", "rotary_values", "linear", "ntk", "llama3", "axial", "mixed", "mrope"}
assert set(largest) == equal and len(equal) == 8

# %% [markdown]
# Eight names share one row: RoPE, with values rotated or not, three scalings and three ways to use it
# on a grid. No score can tell them apart by *kind*: they are choices of frequencies, and rotated
# values leave no trace in scores. Nor does the detector see caches, or positions far beyond those it
# tries.
#
# Here are two schemes of [chapter 45](45_rope_relatives.ipynb) that let the tokens between query
# and key decide, as bare functions:


# %%
def path(q, k, i, j):  # PaTH: each token after the key reflects it, here along itself
    s, moved = np.zeros((len(q), len(k))), k.copy()
    for t in range(len(k)):
        w = k[t] / (np.linalg.norm(k[t]) or 1)
        moved[:t] -= 1.5 * np.outer(moved[:t] @ w, w)  # H_t of all older keys
        s[t] = moved @ q[t] / 8**0.5
    return s


def selective(q, k, i, j):  # Selective RoPE: each token sets the clock on
    clock = np.exp(k[:, 0]).cumsum()
    return rope(q, clock) @ rope(k, clock).T / 8**0.5


# %%
for scores in (path, selective):
    got = properties(scores)
    print(f"{scores.__name__:10} {got.move}, shift {got.shift}, without content: {got.zero}")
    assert (got.move, got.shift, got.zero, got.prefix) == ("path", 1, "0", True)
assert (found["forgetting"].zero, found["cope"].zero) == ("Toeplitz", "0")  # FoX speaks, too

# %% [markdown]
# ### Sinusoidal scores are not relative, and Transformer-XL hides a bias (second reading)
#
# *Sinusoidal encodings are not relative as they are used.* Their own product $p_i\cdot p_j$ depends
# only on $D$. Yet the score also has the term $x_i\cdot p_j$, and between $p_i$ and $p_j$ there are
# two projections. **Predict**: which of these two obstacles remains without projections?

# %% fold="output"
from pe_numpy import sinusoidal


def unprojected(q, k, i, j):
    return (q + sinusoidal(i, 8, 10)) @ (k + sinusoidal(j, 8, 10)).T / 8**0.5


for name, got in (("used", found["sinusoidal"]), ("unprojected", properties(unprojected))):
    print(f"{name:12} relative: {got.shift == 1!s:6} without content: {got.zero}")
assert found["sinusoidal"].zero == "not Toeplitz" and properties(unprojected).zero == "Toeplitz"
assert found["sinusoidal"].shift == properties(unprojected).shift == 0

# %% [markdown]
# *Transformer-XL has a score without content.* With $q=k=0$ Shaw's score is 0, but Transformer-XL's
# is $v\cdot r_D$ (its trained $v$), a function only of $D$. A bias is hidden in it.

# %%
zeros = np.zeros((30, 8))
silent = schemes["transformer_xl"].scores(zeros, zeros, at[:30], at[:30])
assert all(np.ptp(np.diagonal(silent, -d)) < 1e-12 for d in range(30)) and np.abs(silent).max() > 0
assert found["transformer_xl"].zero == "Toeplitz" and found["shaw"].zero == "0"

# %% [markdown]
# ## Diagnosing broken RoPE: is my encoding relative?
#
# Here are four ways to spoil RoPE:


# %%
def right(q, k, i, j, omega=1.0):
    turn = omega * np.array([1.0, 0.3, 0.1, 0.03])
    return rope(q, i, turn) @ rope(k, j, turn).T / 8**0.5


wrong = {
    "right": right,
    "keys turned the other way": lambda q, k, i, j: right(q, k, i, -j),
    "a leak of one millionth": lambda q, k, i, j: right(q, k, i, j) + 1e-6 * j,
    "keys counted from 0": lambda q, k, i, j: right(q, k, i, np.arange(len(j))),
    "slower in long texts": lambda q, k, i, j: right(q, k, i, j, 9 / max(9, *i, *j)),
}

# %%
caught = {name: properties(f) for name, f in wrong.items()}
for name, got in caught.items():
    leak = f"{got.leak:.0e}" if got.leak > 1e-9 else "0"
    print(f"{name:26} shift {got.shift}  leak {leak:6} pairwise {got.pairwise!s:6}", end="")
    print(f"old rows stay {got.prefix!s:6} {got.move}")
assert caught["right"].shift == 1 and caught["right"].move == "turn" and caught["right"].prefix
assert caught["keys turned the other way"].shift == 0 and caught["keys turned the other way"].group
assert 1e-7 < caught["a leak of one millionth"].leak < 1e-3
assert not caught["keys counted from 0"].pairwise and not caught["slower in long texts"].prefix

# %% [markdown]
# An error message needs `leak`: *your function isn't a relative encoding; scores change by this
# share of the largest when all positions move*. Keys rotated the other way still form a *group*
# (the rotation is by $i+j$), so one test would not be enough. Counting keys from 0 in a shortened
# KV cache shows as "not pairwise": take a token away, and the scores of the others change.
#
# ## Identifying a scheme: a decision tree
#
# The detector's `move` is a short tree with ten words at its ends: the six operations, with index and
# path apart, two variants, and "other". The *cross term* is the score without the terms of one side:
# $s(q,k)-s(q,0)-s(0,k)+s(0,0)$.

# %% alt="A tree of questions that leads from a score function to its operation: pairwise, one number, linear, cross term, from top to bottom. It has nine leaves, each at most five questions away."
show_source(Properties.move.fget)
plots.algebra_tree()
plt.show()

# %% [markdown]
# Seven functions without names are a quiz. **Predict** the operation of each.

# %% fold="output"
t = rng.standard_normal((3000, 8))
quiz = {
    "a": lambda q, k, i, j: q @ k.T * np.exp(-0.1 * (i[:, None] - j)),
    "b": lambda q, k, i, j: q @ k.T + np.cos(i[:, None] - j),
    "c": lambda q, k, i, j: right(q, k, np.sqrt(i), np.sqrt(j)),
    "d": lambda q, k, i, j: q @ k.T + np.einsum("lk,lsk->ls", q, t[np.abs(i[:, None] - j)]),
    "e": lambda q, k, i, j: q @ k.T + np.subtract.outer(k[:, 0].cumsum(), k[:, 0].cumsum()),
    "f": lambda q, k, i, j: (q * (1 + 0.1 * i[:, None])) @ k.T,
    "g": lambda q, k, i, j: np.tanh(q @ k.T) * (1 + 0.1 * i[:, None]),
}
answers = {letter: properties(f).move for letter, f in quiz.items()}
print(answers)
assert [*answers.values()] == ["turn", "bias", "index", "expand", "path", "multiply", "other"]
met = {p.move for p in found.values()}
assert "other" not in met and met | {"other"} == {*plots.MOVES} and len(plots.MOVES) == 10

# %% [markdown]
# (a) does not rotate. It is a decay (RetNet's, without its turn), and a group, so it is a "turn" in
# the wide sense. (c) is a rotation, but not by the position. (g) is "other"; none of the 42 schemes
# is.

# %% [markdown]
# ## In short
#
# - **How many ideas are there in these 42 schemes?** Six: add to the token, expand the score, bias
#   it, rotate queries and keys, change the index (or let what is between decide), do nothing.
#   [Six operations](#six-operations-add-expand-bias-rotate-index-none).
# - **Why rotations?** A relative score of prepared $q$ and $k$ is $(G^Dq)\cdot k$ with one matrix
#   $G$. If $G$ keeps lengths, it is RoPE. If scores only stay bounded, it is RoPE in other
#   coordinates. [Powers of one matrix](#relative-scores-are-powers-of-one-matrix).
# - **Is ALiBi a rotation?** No, but both are $e^{DA}$. The generator $A$ is skew in RoPE and
#   nilpotent in ALiBi (with two extra components). xPos also has a part on the diagonal.
#   [Generators](#generators-of-rope-alibi-and-decay-the-matrix-exponential).
# - **What can no such matrix express?** T5's table, $|D|$ on both sides, and a distance that stops
#   growing. Over all $i,j$ their rank grows with the text.
#   [Rank](#rank-what-no-such-matrix-can-express).
# - **Is my function relative?** Call `properties(f)` for an `f(q, k, i, j)` in float64. It is
#   relative if `shift` is 1. `leak` measures how far it is from that, and `move` names the operation.
#   [Diagnosing broken RoPE](#diagnosing-broken-rope-is-my-encoding-relative).
# - **What are PoPE, LieRE and dynamic NTK?** All three rotate. PoPE does so after a nonlinearity,
#   LieRE in two directions that don't commute, and dynamic NTK with a speed that the length
#   decides. [Several axes](#several-axes-commuting-generators-second-reading).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 70` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 70_algebra.py` checks yours.
#
# ### Exercise 1: the generator of xPos
#
# Write the generator of one pair of xPos with $\omega=1$ and $\zeta=0.5$ for a `scale_base` of 64.
#
# <details><summary>Hint 1</summary>
#
# $\zeta^{D/64}=e^{-\kappa D}$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# It has a skew part and a diagonal part, which commute.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# kappa = np.log(2) / 64
# A = np.array([[-kappa, -1.0], [1.0, -kappa]])
# expected = 0.5 ** (10 / 64) * rank2_rotation([0, 1], [1, 0], 10)
# assert np.allclose(exponential(10 * A), expected, rtol=0, atol=1e-9)
# ```
#
# </details>
#
# ### Exercise 2: a parabola
#
# Find a lift with $A^3=0$ whose score is $-\beta D^2$.
#
# <details><summary>Hint 1</summary>
#
# $e^{DA}=I+DA+\tfrac12D^2A^2$ needs three new components.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $A$ carries the first to the second and the second to the third.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# beta = 0.1
# A = np.zeros((3, 3))
# A[1, 0], A[2, 1] = 1, -2 * beta
# made = [(exponential(n * A) @ [1, 0, 0]) @ [0, 0, 1] for n in range(9)]
# assert np.allclose(made, -beta * np.arange(9) ** 2, rtol=0, atol=1e-9)
# ```
#
# </details>
#
# ### Exercise 3: a periodic bias
#
# A bias $t[D\bmod 12]$ has a random table $t$. Can powers of one matrix express it?
#
# <details><summary>Hint 1</summary>
#
# It obeys $h(D+12)=h(D)$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Then its rank is bounded.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# t = rng.standard_normal(12)
# repeated = t[np.subtract.outer(np.arange(60), np.arange(60)) % 12]
# assert np.linalg.matrix_rank(repeated) == 12  # yes, in 12 components
# ```
#
# </details>
#
# ### Exercise 4: deceive the detector
#
# Write a score that is not relative and yet gets `shift` 1.
#
# <details><summary>Hint 1</summary>
#
# The detector tries some hundred positions.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# None of them is very far out.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def sly(q, k, i, j):
#     return right(q, k, i, j) + (i[:, None] > 2000)
#
#
# assert properties(sly).shift == 1
# ```
#
# </details>
#
# ## Deeper
#
# ### Equivalences of encodings (second reading)
#
# Many names are one formula seen from another side. With the slope $m$, for keys of the past, and
# with the letters of the chapter named:
#
# | equal | when | chapter |
# |---|---|---|
# | ALiBi, KERPLE's power | its exponent is 1 | [36](36_distance_functions.ipynb) |
# | ALiBi, FIRE | $f$ is linear, $c$ goes to 0, no query is beyond $L$ | [36](36_distance_functions.ipynb) |
# | KERPLE's logarithm, FIRE | $f$ is linear, no query is beyond $L$ | [36](36_distance_functions.ipynb) |
# | ALiBi, FoX | each gate is $e^{-m}$ | [37](37_content.ipynb) |
# | ALiBi, stick-breaking | equal scores that break off $1-e^{-m}$; weights that sum to 1 | [37](37_content.ipynb) |
# | FoX, CABLE | one's gate is $\sigma(z)$, the other's step is $-\mathrm{softplus}(-z)$ | [37](37_content.ipynb) |
# | Sandwich, the product of two sinusoidal encodings | less half of the width, scaled per head | [36](36_distance_functions.ipynb) |
# | skew of the Music Transformer, shift of Transformer-XL | squares | [31](31_shaw.ipynb) |
# | NEZHA, Shaw | the table is made of sinusoids | [31](31_shaw.ipynb) |
# | two small tables of MViT, Shaw | the big table contains their sums | [38](38_windows.ipynb) |
# | learned sink, plain attention | times $\sigma(\log\sum_j e^{s_{ij}}-a)$ | [12](12_attention_blocks.ipynb) |
# | eigenvectors of a path, cosines | up to their signs | [26](26_counting.ipynb) |
#
# The cells assert each row, first the schemes that come to a straight line or to a logarithm, then
# tables, sinks and graphs.

# %%
from pe_numpy import alibi_slopes, causal_mask, fire_bias, forgetting_bias
from pe_numpy import kerple_log_bias, kerple_power_bias

at, m, ones = np.arange(40), alibi_slopes(4), np.ones(4)
far, past = relative_distance(at, at), causal_mask(at, at)
line, unit = alibi_bias(m, far), np.eye(1, 32)  # of FIRE's 32 units one is at work: f(u) = w u
fire = {"W1": unit, "b1": np.zeros(32), "b2": 0 * m, "L": 64.0}
straight = {"W2": -64 * unit.T * m, "c": 1e-9}
curved = {"W2": -np.log1p(6.4) * unit.T * m, "c": 0.1}
sums = np.cumsum(np.log(np.exp(-m[:, None]) * np.ones(40)), axis=1)  # of the gates' logarithms
logs = kerple_log_bias(m, 0.1 * ones, far)
assert np.allclose(kerple_power_bias(m, ones, far), line, rtol=0, atol=1e-12)
assert np.allclose(fire_bias(fire | straight, at, at, eps=0), line, rtol=0, atol=1e-6)
assert np.allclose(fire_bias(fire | curved, at, at, eps=0), logs, rtol=0, atol=1e-12)
assert np.allclose(forgetting_bias(sums, sums)[:, past], line[:, past], rtol=0, atol=1e-12)

# %%
from pe_numpy import sandwich_bias, sinusoidal, softmax

left = np.exp(-m[0]) ** np.arange(39, 0, -1) * np.expm1(m[0])  # of the stick, from the far end on
assert np.allclose(left / left.sum(), softmax(line[0, -1, :-1]), rtol=0, atol=1e-12)
assert np.allclose(left[::-1].cumsum(), 1 - np.exp(-m[0] * at[1:]), rtol=0, atol=1e-12)
z = np.random.default_rng(6).standard_normal(40)
steps, gates = -np.log1p(np.exp(-z)), 1 / (1 + np.exp(-z))
assert np.allclose(steps, np.log(gates), rtol=0, atol=1e-12)
codes = sinusoidal(at * 10000 ** (-2 / 128), 128)  # the waves begin with the second
product = (codes @ codes.T - 64) / (2 * np.arange(1, 5)[:, None, None])  # 8 h / H
assert np.allclose(sandwich_bias(4, far), product, rtol=0, atol=1e-12)

# %%
from pe_numpy import decomposed_scores, nezha_table, relative_shift, shaw_scores

rng = np.random.default_rng(7)
q, k, rows, columns = (rng.standard_normal((n, 4)) for n in (6, 6, 3, 5))
i = np.arange(6)
skewed = np.pad(products := rng.standard_normal((6, 6)), ((0, 0), (1, 0))).reshape(7, 6)[1:]
assert np.array_equal(skewed, relative_shift(products))
waves = sinusoidal(np.arange(6, -1, -1), 4)  # row 0 belongs to the farthest future
assert np.allclose(nezha_table(3, 4), waves, rtol=0, atol=1e-12)
dy, dx = (relative_distance(n, n) for n in np.divmod(i, 3))  # an image of 2 rows, 3 columns
both = (rows[:, None] + columns).reshape(15, 4)  # one row for each pair of offsets
sums = shaw_scores(q, k, 2 * both, 5 * dy + dx)  # Shaw halves all, MViT q . k alone
assert np.allclose(decomposed_scores(q, k, rows, columns, dy, dx), sums, rtol=0, atol=1e-12)

# %%
from pe_numpy import attend, laplacian_encoding

s, v, a = rng.standard_normal((2, 5, 7)), rng.standard_normal((2, 7, 3)), np.array([0.5, 20.0])
plain, (sunk, _) = attend(s, v)[0], attend(s, v, sink=a)
share = 1 / (1 + np.exp(a[:, None] - np.log(np.exp(s).sum(axis=-1))))  # sigma of the difference
assert np.allclose(sunk, plain * share[..., None], rtol=0, atol=1e-12)
path = np.eye(12, k=1) + np.eye(12, k=-1)
vectors, n = laplacian_encoding(path, 5, normalized=False), np.arange(12)[:, None] + 0.5
cosines = np.cos(np.pi / 12 * n * np.arange(1, 6))
overlap = (cosines / np.linalg.norm(cosines, axis=0)).T @ vectors
assert np.allclose(np.abs(overlap), np.eye(5), rtol=0, atol=1e-12)

# %% [markdown]
# These are the relatives of RoPE:
#
# | equal | when | chapter |
# |---|---|---|
# | xPos, RoPE | times $\zeta_c^{D/512}$ per pair | [45](45_rope_relatives.ipynb) |
# | PoPE, RoPE of twice the width | of the pairs $(\mathrm{softplus}(x_c),0)$ | [45](45_rope_relatives.ipynb) |
# | axial RoPE, RoPE of both halves | one by the row, one by the column | [43](43_rope_grid.ipynb) |
# | M-RoPE, RoPE | text, whose three positions are equal | [43](43_rope_grid.ipynb) |
# | LongRoPE, linear interpolation | all divisors are $s$ (except for LongRoPE's factor) | [50](50_scaling.ipynb) |
# | YaRN, RoPE | $s=1$ | [50](50_scaling.ipynb) |
# | p-RoPE, RoPE | all pairs turn | [42](42_rope_in_models.ipynb) |
# | latent scores, absorbed or not | always | [44](44_fewer_keys.ipynb) |
# | ReRoPE, RoPE | $w\geq L$ | [52](52_new_places.ipynb) |
# | leaky ReRoPE, RoPE | $s=1$ | [52](52_new_places.ipynb) |
# | Self-Extend, RoPE | $g=1$ | [52](52_new_places.ipynb) |
# | dual chunks, RoPE | $L\leq c$ | [52](52_new_places.ipynb) |
# | streaming, RoPE | $L\leq z+w$ | [52](52_new_places.ipynb) |

# %%
from pe_numpy import pope, pope_frequencies, rope, xpos, xpos_scale

q, k, at = *rng.standard_normal((2, 6, 8)), np.arange(6)
gaps, turned = relative_distance(at, at), [rope(x, at) for x in (q, k)]
pairs = [np.reshape(x, (6, 4, 2)) for x in turned]
faded = np.einsum("icx,jcx,ijc->ij", *pairs, xpos_scale(8) ** (gaps[..., None] / 512))
assert np.allclose(xpos(q, at) @ xpos(k, at, key=True).T, faded, rtol=0, atol=1e-12)
radii = np.stack([np.log1p(np.exp(q)), 0 * q], axis=-1).reshape(6, 16)
assert np.allclose(pope(q, at), rope(radii, at, pope_frequencies(8)), rtol=0, atol=1e-12)

# %%
from pe_numpy import axial_frequencies, mrope_frequencies, patch_coordinates
from pe_numpy import rope_frequencies, rope_nd

cells, tall = patch_coordinates(2, 3), rope_frequencies(4, 100.0)
halves = [rope(x, n, tall) for x, n in zip(np.split(q, 2, axis=1), cells.T, strict=True)]
assert np.allclose(rope_nd(q, cells, axial_frequencies(8)), np.hstack(halves), rtol=0, atol=1e-12)
prose = np.stack([at] * 3, axis=1)
assert np.allclose(rope_nd(q, prose, mrope_frequencies((2, 1, 1))), turned[0], rtol=0, atol=1e-12)

# %%
from pe_numpy import linear_scaling, longrope_scaling, proportional_frequencies, yarn_scaling

plain, one = rope_frequencies(8), yarn_scaling(8, 1, 30)
slower = longrope_scaling(8, 90, [1] * 4, [3] * 4, 30, 3)[0]  # 90 is beyond 30: the second list
assert np.allclose(slower, linear_scaling(plain, 3), rtol=1e-12, atol=0)
assert np.allclose(one[0], plain, rtol=1e-12, atol=0) and one[1] == 1
assert np.allclose(proportional_frequencies(8, 1.0), plain, rtol=1e-12, atol=0)

# %%
from pe_numpy import chunk_distance, mla_scores, rerope_distance, self_extend_distance
from pe_numpy import streaming_distance

heads, latent, w_uk = (rng.standard_normal(n) for n in ((2, 3, 6, 4), (6, 5), (3, 4, 5)))
given = *heads, latent, q[:, :4], w_uk, at, at
assert np.allclose(mla_scores(*given), mla_scores(*given, absorbed=False), rtol=0, atol=1e-12)
near = rerope_distance(gaps, 6), rerope_distance(gaps, 2, stretch=1), chunk_distance(at, at, 8, 2)
for same in (*near, self_extend_distance(at, at, 2, 1), streaming_distance(at, at, 4, 2)):
    assert np.array_equal(same[gaps >= 0], gaps[gaps >= 0])
print("all equal")

# %% [markdown]
# ## In practice
#
# | finding | what follows |
# |---|---|
# | group, and it turns | rotated keys may be cached, with one kernel for all of these |
# | group, more than turns | keys need the opposite exponent and a fixed centre; causal only |
# | index | unrotated keys in the cache, or several rotated ones. LieRE's may be rotated, because each needs only its own position |
# | old rows don't stay | a cache differs from a recomputation ([chapter 50](50_scaling.ipynb)) |
# | path | no score without the tokens between |
# | bias | any attention with a bias; rank 2 (ALiBi, signed): two extra components instead of an array |
#
# In float32 the lift is worse than a bias far from position 0, since it subtracts two large numbers:

# %%
q, k = rng.standard_normal((2, 100, 8)).astype(np.float32)
lifted_q, lifted_k, A = additive_lift(q, k, 0.5)
i, j = 1_000_003, 1_000_000
far = (lifted_q + i * lifted_q @ A.T) @ (lifted_k - j * lifted_k @ A).T / np.float32(8**0.5)
near = q @ k.T / np.float32(8**0.5) - np.float32(0.5 * (i - j))
error = np.abs(far - near).max()
print("position 1,000,000: errors above 0.001:", bool(error > 0.001))
assert far.dtype == np.float32 and 0.001 < error < 0.5

# %% [markdown]
# ## Further reading
#
# - Zhang et al. 2026, *Group Representational Position Encoding*,
#   [arXiv:2512.07805](https://arxiv.org/abs/2512.07805);
#   [code](https://github.com/model-architectures/GRAPE/tree/f5b539f).
# - Ostmeier et al. 2024, *LieRE*, [arXiv:2406.10322](https://arxiv.org/abs/2406.10322);
#   [code](https://github.com/StanfordMIMI/LieRE/tree/b27b41b).
# - Schenck et al. 2025, *Learning the RoPEs: Better 2D and 3D Position Encodings with STRING*,
#   [arXiv:2502.02562](https://arxiv.org/abs/2502.02562): generators that commute.
