# %% [markdown]
# # 40. Rotary position embedding (RoPE): the derivation
#
# *Why a rotation, why only a rotation, and which components are rotated together in which model?*
#
# 45 minutes. Needs [10 Attention by hand: scores, softmax, heads, masks](10_attention.ipynb), [20 Sinusoidal positional encoding](20_sinusoidal.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Attention compares queries with keys. The result should depend on how far
# apart two tokens are, not on where they are. Rotary position embedding (RoPE) achieves this: it
# rotates each query and each key by an angle that grows with its position. You learn how complex
# numbers rotate, derive the formula, and see the two ways in which released models pair the
# components. At the end you can write RoPE in NumPy, convert weights from one way to the other, and
# read a proof that, under stated assumptions, only a rotation works.

# %% fold="input" alt="Three panels with a query arrow and a key arrow, at positions (2,0), (5,3) and (9,7). Dotted arcs show how both arrows rotate from panel to panel. The shaded angle between them is the same in all three."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import attend, rope, rope_convert_weights, rope_frequencies, rope_matrix
from pe_numpy import rope_permutation, sinusoidal, sinusoidal_shift, split_heads
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import rope_derived as plots
from pe_numpy.rotary.rope import turn_half, turn_interleaved
from pe_numpy.book.slider import slider

q, k, theta, pairs = 1.2 - 0.5j, 0.6 + 1.1j, 0.35, [(2, 0), (5, 3), (9, 7)]
turned_q = np.array([q * np.exp(1j * m * theta) for m, _ in pairs])
turned_k = np.array([k * np.exp(1j * n * theta) for _, n in pairs])
plots.turned_together(turned_q, turned_k, pairs)
plt.show()

# %% [markdown]
# ## Complex numbers rotate vectors
#
# Attention turns each token into a **query** and a **key**. It compares the query at position $m$
# with the key at position $n$ by their inner product, the **score**. We want the score to depend on
# the distance $m - n$ and on nothing else about the two positions. But we can change query and key
# only separately, before they are multiplied. The tool is rotation. In the figure a query $q_m$ and
# a key $k_n$ are arrows. Both turn as the positions grow, and the shaded angle between them does
# not change. If RoPE is your homework, [one page of chapter
# 60](60_layers.ipynb#the-homework-on-one-page-softmax-rope-and-causal-multi-head-attention) has it
# beside softmax and causal attention.
#
# Points of the plane can be added. Can they also be multiplied, so that the usual rules of
# arithmetic hold? Write $(a, b)$ as $a + b\mathrm{i}$, where $\mathrm{i}$ stands for the point
# $(0, 1)$, and demand $\mathrm{i}^2 = -1$. If you multiply out the brackets, only one product is
# possible (first line below). Such a point is a **complex number**, with the **real part** $a$ and
# the **imaginary part** $b$. Python writes `1j` for $\mathrm{i}$.
#
# A point $z$ has a distance from 0, the **modulus** $|z|$, and a direction, the **argument**
# $\arg z$. The argument is its angle from the positive real axis, counter-clockwise, in radians, up
# to whole turns. Multiply two points of modulus 1, at the angles $\alpha$ and $\beta$. By the
# addition formulas of sine and cosine you get the point at $\alpha + \beta$. Angles add as
# exponents do, so we write $e^{\mathrm{i}\alpha}$ for the point at $\alpha$. The series of the
# exponential function gives the same point; this is Euler's formula. Hence a product multiplies
# moduli and adds arguments:
#
# $$\begin{gathered}(a + b\mathrm{i})(u + v\mathrm{i}) = (au - bv) + (av + ub)\,\mathrm{i}\\[4pt]
# e^{\mathrm{i}\alpha} = \cos\alpha + \mathrm{i}\sin\alpha, \qquad e^{\mathrm{i}\alpha} e^{\mathrm{i}\beta} = e^{\mathrm{i}(\alpha + \beta)}\\[4pt]
# z = |z|\,e^{\mathrm{i}\arg z}, \qquad zw = |z|\,|w|\,e^{\mathrm{i}(\arg z + \arg w)}\end{gathered}$$


# %%
def product_by_rule(z, w):
    (a, b), (u, v) = z, w
    return complex(a * u - b * v, a * v + b * u)


z, w = 3 + 1j, 1 + 2j
assert product_by_rule((3, 1), (1, 2)) == z * w and product_by_rule((0, 1), (0, 1)) == -1
alpha, beta = np.arctan2(1, 3), np.arctan2(2, 1)  # the arguments of z and w
unit_z, unit_w = (np.cos(angle) + 1j * np.sin(angle) for angle in (alpha, beta))
assert np.isclose(np.exp(1j * alpha), unit_z, rtol=0, atol=1e-15)
assert np.isclose(unit_z * unit_w, np.exp(1j * (alpha + beta)), rtol=0, atol=1e-15)
assert np.isclose(np.sqrt(3**2 + 1**2) * unit_z, z, rtol=0, atol=1e-15)
polar = np.hypot(3, 1) * np.hypot(1, 2) * np.exp(1j * (alpha + beta))
assert np.isclose(z * w, polar, rtol=0, atol=1e-14)
print(f"(3 + i)(1 + 2i) = {z * w}   arguments: {alpha:.4f} + {beta:.4f} = {np.angle(z * w):.4f}")

# %% [markdown]
# So multiplying by $e^{\mathrm{i}\theta}$ turns a point by the angle $\theta$ and keeps its
# distance from 0. In the next figure $q$ is turned twice (left), and the terms of the series of
# $e^{2\mathrm{i}}$ are put end to end (right). Each term is at a right angle to the one before, and
# the walk ends on the unit circle.

# %% alt="Left: arrows q, q times e^(i theta) and q times e^(2 i theta) on one circle, equal angles apart. Right: partial sums spiral in quarter turns to the point e^(2i) on the unit circle."
series = np.cumsum(np.cumprod(np.append(1, 2j / np.arange(1, 25))))  # 1 + x + x^2/2! + ..., x = 2i
assert np.isclose(series[-1], np.cos(2) + 1j * np.sin(2), rtol=0, atol=1e-14)
plots.complex_turning(1.2 + 0.5j, 0.7, series)
plt.show()

# %% [markdown]
# The **conjugate** $z^* = a - b\mathrm{i}$ is the reflection of $z$ in the real axis. It has the
# same modulus and the opposite argument. Read a query $(q_0, q_1)$ and a key $(k_0, k_1)$ as
# complex numbers. The product of one with the conjugate of the other has their inner product as its
# real part:
#
# $$\begin{gathered}q k^* = (q_0 k_0 + q_1 k_1) + \mathrm{i}\,(q_1 k_0 - q_0 k_1)\\[4pt]
# \langle q, k\rangle = \mathrm{Re}[q k^*] = |q|\,|k| \cos(\arg q - \arg k)\end{gathered}$$

# %%
both, (q0, q1), (k0, k1) = q * np.conj(k), (q.real, q.imag), (k.real, k.imag)
assert np.isclose(both, (q0 * k0 + q1 * k1) + 1j * (q1 * k0 - q0 * k1), rtol=0, atol=1e-15)
assert np.isclose(both.real, np.array([q0, q1]) @ [k0, k1], rtol=0, atol=1e-15)
cosine = np.cos(np.angle(q) - np.angle(k))
assert np.isclose(both.real, abs(q) * abs(k) * cosine, rtol=0, atol=1e-15)
print(f"q k* = {both:.4f}")

# %% [markdown]
# Because of the conjugate, the product has the *difference* of the two angles. This is what we
# need: if the angles are $m\theta$ and $n\theta$, their difference is $(m - n)\theta$.
#
# ## Scores that depend only on distance
#
# Let $x$ be the **content**, that is, a query or key before its position is taken into account. Let
# $f(x, m)$ be what we turn $x$ into at position $m$, with the same $f$ for queries and keys. We
# want the score to depend only on the contents and on $m - n$, and position 0 to change nothing. We
# call this **the wish**:
#
# $$\langle f(q, m), f(k, n)\rangle = g(q, k, m - n), \qquad f(q, 0) = q$$
#
# The cell turns this into a test. It takes ten random pairs of contents, each read as a complex
# number, moves both positions by $t$, and returns the largest change of any score. The last line
# tests one function for queries with *another* for keys: a stretch by $1.1^m$ and its opposite,
# $1.1^{-n}$. Their factors multiply to $1.1^{m-n}$, so the score depends only on the distance. We
# want one function for both.


# %%
def largest_change(f, g=None, part=np.real):
    """Largest change of the score of f(q, m) and g(k, n) when m and n both move by t."""
    g, rng, worst = g or f, np.random.default_rng(1), 0.0
    for a, b in rng.normal(size=(10, 2, 2)).view(complex)[..., 0]:  # ten pairs of contents
        for m, n, t in rng.integers(0, 20, size=(10, 3)):
            here, there = f(a, m) * np.conj(g(b, n)), f(a, m + t) * np.conj(g(b, n + t))
            worst = max(worst, abs(part(there) - part(here)))
    return worst


print(f"f(x, m) = m x: largest change {largest_change(lambda x, m: m * x):.1f}")
assert largest_change(lambda x, m: x * 1.1**m, lambda x, m: x * 1.1**-m) < 1e-12

# %% [markdown]
# Here are five candidates for $f$. **Predict** which pass.

# %% fold="output"
attempts = {
    "leave it as it is: q": lambda q, m: q,
    "add an encoding:   q + p_m": lambda q, m: q + (np.sin(m) + 1j * (np.cos(m) - 1)),  # p_0 = 0
    "stretch:           (1 + m/10) q": lambda q, m: (1 + m / 10) * q,
    "rotate:            e^(im/2) q": lambda q, m: np.exp(0.5j * m) * q,
    "raise to a power:  q^(m + 1)": lambda q, m: q ** (m + 1),
}
passed = []
for name, attempt in attempts.items():
    assert attempt(1 + 2j, 0) == 1 + 2j  # nothing changes at position 0
    passed.append(largest_change(attempt) < 1e-12)
    print(f"{name:34} wish met: {passed[-1]}")
assert passed == [True, False, False, True, False]

# %% [markdown]
# Doing nothing passes, because its scores do not depend on positions at all. Turning also passes,
# and we can see why. Each vector turns by its *absolute* angle, $m\theta$ or $n\theta$. Only the
# angle *between* the two, and therefore the score, depends on the distance:
#
# $$q e^{\mathrm{i}m\theta}\,\big(k e^{\mathrm{i}n\theta}\big)^* = q k^*\, e^{\mathrm{i}(m - n)\theta}$$
#
# The next cell checks this for the three panels at the top. Then turn the arrows yourself: what
# happens to the score when $m$ and $n$ grow by the same step?


# %%
def on_circle(angle):
    """The direction of an angle: equal for angles that differ by whole turns."""
    return np.exp(1j * np.asarray(angle))


for (m, n), a, b in zip(pairs, turned_q, turned_k, strict=True):  # of the figure at the top
    assert np.isclose(
        a * np.conj(b), q * np.conj(k) * np.exp(1j * (m - n) * theta), rtol=0, atol=1e-14
    )
    print(f"m = {m}, n = {n}: query rotated by {m * theta:.2f}, score {(a * np.conj(b)).real:.6f}")
between = np.angle(turned_q / turned_k)
assert np.allclose(between, between[0], rtol=0, atol=1e-12)
assert np.allclose(turned_q, q * on_circle(theta * np.array([2, 5, 9])), rtol=0, atol=1e-12)


# %%
def arrows(angle, m, n):
    a, b = q * np.exp(1j * m * angle), k * np.exp(1j * n * angle)
    curves = {"query": ([0, a.real], [0, a.imag]), "key": ([0, b.real], [0, b.imag])}
    return curves, f"distance {m - n}, score {(a * np.conj(b)).real:.2f}"


controls = {"angle": [0.0, 0.1, 0.35, 1.0], "position m": range(7), "position n": range(7)}
axes, limits = ("real part", "imaginary part"), (-3.5, 3.5, -1.35, 1.35)
slider("A query and a key, rotated by their positions", controls, arrows, axes, limits, (2, 5, 3))

# %% [markdown]
# Is turning the only function, except for doing nothing? Nearly. [The
# theorem](#the-theorem-only-a-rotation-works-second-reading) below says under which assumptions it
# is, and proves it. You may skip it, because RoPE itself needs only the result.
#
# ## The RoPE formula: one frequency per pair
#
# Split the heads first: $d$ is the width of one head, an even number, and all heads have the same
# frequencies. Cut the $d$ components of a query or key into $d/2$ pairs, and let pair $c$ turn at
# its own **frequency** $\theta_c$, in radians per position. ([Chapter 20](20_sinusoidal.ipynb) calls the
# pair $i$ and the width $D$. Code of this book mostly calls the width of a head `K`.) Together the
# pairs make the matrix $R_m$ with $2 \times 2$ blocks (RoFormer, Su et al. 2021, equation (15)).
# This is **rotary position embedding**. The wish is met with any frequencies. RoFormer takes the
# frequencies of the [sinusoidal encoding](20_sinusoidal.ipynb). Configuration files call the base
# 10000 `rope_theta`. A larger base slows down every pair except the first, and the later ones more
# ([chapter 50](50_scaling.ipynb)).
#
# $$\begin{gathered}\theta_c = 10000^{-2c/d}, \qquad c = 0, 1, \dots, d/2 - 1\\[4pt]
# R_m = \begin{pmatrix} B_0 & & \\ & \ddots & \\ & & B_{d/2-1}\end{pmatrix}, \qquad
# B_c = \begin{pmatrix}\cos m\theta_c & -\sin m\theta_c\\ \sin m\theta_c & \cos m\theta_c\end{pmatrix}\end{gathered}$$


# %%
def matrix_by_loops(m, d):
    """R_m entry by entry."""
    R = np.zeros((d, d))
    for c in range(d // 2):
        angle = m * 10000 ** (-2 * c / d)
        R[2 * c, 2 * c] = R[2 * c + 1, 2 * c + 1] = np.cos(angle)
        R[2 * c, 2 * c + 1], R[2 * c + 1, 2 * c] = -np.sin(angle), np.sin(angle)
    return R


frequencies = rope_frequencies(8)
assert frequencies.round(4).tolist() == [1.0, 0.1, 0.01, 0.001]
assert (np.diff(frequencies / rope_frequencies(8, base=500_000)) > 0).all()
assert np.allclose(matrix_by_loops(3, 8), rope_matrix(3, frequencies), rtol=0, atol=1e-15)
show_source(rope_frequencies, rope_matrix)

# %% [markdown]
# Picture each pair as the hand of a clock, and position as the time. **Predict** which of the four
# hands ($d = 8$) move visibly in five steps.

# %% fold="output" alt="Grid of clock faces, four pairs by six positions. The hand of pair 0 rotates fast, that of pair 1 moves a little, and those of pairs 2 and 3 seem not to move."
hands = np.exp(1j * np.arange(6)[:, None] * frequencies)  # (6, 4)
plots.clocks(hands, frequencies)
plt.show()

# %% [markdown]
# Pair 0 turns by one radian per step, and pair 1 by a tenth of that. Pairs 2 and 3 turn so slowly
# that, like hour hands, they seem to stand still.
#
# ### The RoPE score: key position minus query position
#
# Turning by $b$ positions and then by $a$ is the same as turning by $a + b$, and the transpose
# turns back. So the score of a query and a key contains only the difference of their positions.
# Read pair $c$ of $q$ as the complex number $q_{[c]} = q_{2c} + \mathrm{i}\,q_{2c+1}$, and the same
# for $k$. Then the score is one sum:
#
# $$\begin{gathered}R_a R_b = R_{a+b}, \qquad R_m^\top = R_{-m}, \qquad R_m^\top R_n = R_{n-m}\\[4pt]
# (R_m q)^\top (R_n k) = q^\top R_{n-m}\,k = \mathrm{Re}\Big[\sum_{c=0}^{d/2-1} q_{[c]}\,k_{[c]}^*\,e^{\mathrm{i}(m-n)\theta_c}\Big]\end{gathered}$$
#
# The exponent contains $m - n$, query minus key, which is the distance of this book. The matrix
# contains $n - m$, key minus query, because it turns the key instead of the query: turning the
# query by $m - n$ gives the same score as turning the key by $n - m$. Both are right.
#
# Does the score fall with the distance? Not at every step. [Chapter
# 41](41_rope_computed.ipynb#does-the-rope-score-decay-with-distance) shows what is proved about
# this.


# %%
def close(a, b):
    return bool(np.allclose(a, b, rtol=0, atol=1e-12))


R = {m: rope_matrix(m, frequencies) for m in range(-16, 17)}  # positions may be negative
for a, b in np.random.default_rng(1).integers(-8, 9, size=(5, 2)).tolist():
    assert close(R[a] @ R[b], R[a + b]) and close(R[a].T, R[-a]) and close(R[a].T @ R[b], R[b - a])
(x, y), (m, n) = np.random.default_rng(0).normal(size=(2, 8)), (7, 2)  # a query and a key
total = 0j
for c in range(4):
    one, other = complex(x[2 * c], x[2 * c + 1]), complex(y[2 * c], y[2 * c + 1])
    total += one * other.conjugate() * np.exp(1j * (m - n) * frequencies[c])
assert close((R[m] @ x) @ (R[n] @ y), x @ R[n - m] @ y) and close(x @ R[n - m] @ y, total.real)
print(f"score at m = 7, n = 2: {(R[m] @ x) @ (R[n] @ y):.12f}")

# %% [markdown]
# ## Four forms of one rotation: matrix, complex, interleaved, rotate_half
#
# Which components form a pair is a convention. **Interleaved** pairs are neighbours, $2c$ and
# $2c + 1$. **Half-split** pairs take one component of each half, $c$ and $c + d/2$. With half-split
# pairs a program works on two contiguous halves. Here is the rotation of one vector $x$ at position
# $m$, as a matrix, by complex multiplication, by interleaved components and by halves:
#
# $$\begin{aligned}&\text{(1)} && x' = R_m\,x\\
# &\text{(2)} && x'_{2c} + \mathrm{i}\,x'_{2c+1} = (x_{2c} + \mathrm{i}\,x_{2c+1})\,e^{\mathrm{i}m\theta_c}\\
# &\text{(3)} && x'_{2c} = x_{2c}\cos m\theta_c - x_{2c+1}\sin m\theta_c\\
# & && x'_{2c+1} = x_{2c}\sin m\theta_c + x_{2c+1}\cos m\theta_c\\
# &\text{(4)} && x' = x \odot \cos{} + (-x_{\text{second}},\, x_{\text{first}}) \odot \sin\end{aligned}$$
#
# Form (1) is useful for proofs but not for computing, since almost all of its $d^2$ products
# multiply by zero. Forms (1), (2) and (3) give the same numbers. Form (3) is the one to write
# yourself: it needs only real numbers. Form (4) has different partners. In it $x_{\text{first}}$
# and $x_{\text{second}}$ are the halves of $x$, $\cos$ and $\sin$ contain the $d/2$ cosines and
# sines twice in a row, and $\odot$ multiplies component by component. The vector
# $(-x_{\text{second}}, x_{\text{first}})$, which libraries call `rotate_half`, is $x$ with each
# pair rotated by a quarter turn.

# %%
x = np.random.default_rng(0).normal(size=(5, 8))  # (L, K)
positions = np.array([0, 1, 2, 3, 40])
angles = positions[:, None] * frequencies  # (L, K/2)
cos, sin = np.cos(angles), np.sin(angles)
form_1 = np.stack([rope_matrix(m, frequencies) @ row for m, row in zip(positions, x, strict=True)])
form_2 = ((x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angles)).view(float)  # (L, K)
form_3 = np.empty((5, 8))
form_3[:, 0::2] = x[:, 0::2] * cos - x[:, 1::2] * sin
form_3[:, 1::2] = x[:, 0::2] * sin + x[:, 1::2] * cos
form_4 = x * np.hstack([cos, cos]) + np.hstack([-x[:, 4:], x[:, :4]]) * np.hstack([sin, sin])
assert close(form_1, form_2) and close(form_2, form_3) and close(form_3, rope(x, positions))
assert close(form_4, rope(x, positions, layout="half")) and not close(form_4, form_3)
print("row 1, interleaved:", form_3[1].round(4).tolist())
print("row 1, half:       ", form_4[1].round(4).tolist())

# %% [markdown]
# The package's `rope`, shown below, is written for speed, so it is not the one to learn from. It
# makes the table $e^{\mathrm{i}m\theta_c}$ in double precision, then passes it on to form (2) or
# form (4). In (2) `view` reads two neighbouring floats as one complex number, without a copy. (4)
# is written into its result half by half. With fewer than $d/2$ frequencies the other components do
# not change: this is partial RoPE, [chapter 41](41_rope_computed.ipynb).

# %%
show_source(rope, turn_interleaved, turn_half)

# %% [markdown]
# ### Interleaved or half-split?
#
# In the figure below, a pair of the same colour has the same frequency in both layouts, but
# different components are partners.
#
# | layout | models |
# |---|---|
# | interleaved | RoFormer, GPT-J, Meta's LLaMA ([code](https://github.com/facebookresearch/llama/blob/6c7fe276574e78057f917549435a2554000a876d/llama/model.py#L64-L74)), torchtune (at `01306df`) |
# | half-split | GPT-NeoX, Hugging Face's LLaMA, Keras Hub (at `1d67423`) |

# %% alt="Two rows of eight boxes, one per component. In the interleaved layout, short arcs join neighbours 0-1, 2-3, 4-5 and 6-7. In the half-split layout, long arcs join 0-4, 1-5, 2-6 and 3-7."
plots.pair_layouts(np.arange(8).reshape(4, 2), np.arange(8).reshape(2, 4).T)
plt.show()

# %% [markdown]
# Are these two different encodings? No, they differ only in the order of the components. Let $p$ be
# the order $0, 2, 4, \dots, 1, 3, 5, \dots$ If you first reorder and then rotate half-split pairs,
# you get the same as if you first rotate interleaved pairs and then reorder. As a matrix, the
# half-split $R_m$ is the interleaved one with rows and columns reordered by $p$.
#
# $$\mathrm{rope}_{\mathrm{half}}(x_p, m) = \big(\mathrm{rope}_{\mathrm{interleaved}}(x, m)\big)_p$$

# %% alt="Two 8 by 8 heat maps of R_3. The interleaved layout has four 2 by 2 blocks on the diagonal. The half-split layout has cosines on the diagonal and sines on two parallel lines four cells away."
p = np.array([0, 2, 4, 6, 1, 3, 5, 7])
assert (p == rope_permutation(8)).all() and (x[:, p][:, np.argsort(p)] == x).all()  # and back
assert close(rope(x[:, p], positions, layout="half"), form_3[:, p])
interleaved_matrix = rope_matrix(3, frequencies)
half_matrix = interleaved_matrix[np.ix_(p, p)]
assert close(half_matrix @ x[1], rope(x[1:2], [3], layout="half")[0])
plots.rope_matrices(interleaved_matrix, half_matrix)
plt.show()
show_source(rope_permutation)

# %% [markdown]
# ### Converting LLaMA weights between the layouts
#
# Reorder the rows of the projections once, not the components at every step: row $r$ of $W_q$ makes
# component $r$ of $q = W_q x$, so $(W_q)_p\,x = q_p$. A model trained on interleaved code runs on
# half-split code if the rows of $W_q$ *and* $W_k$ (and their biases) are reordered by $p$, **head
# by head**. The other direction takes the inverse of $p$. $W_v$ and $W_o$ do not change. Of the
# four conversions in the next cells, only one gives the scores of the original model.


# %%
def head_scores(Wq, Wk, layout):
    """Scores of 3 heads of width 8 for five tokens: (H, L, L)."""
    q, k = split_heads(tokens @ Wq.T, 3), split_heads(tokens @ Wk.T, 3)  # (H, L, K)
    at = np.arange(5)
    return rope(q, at, layout=layout) @ rope(k, at, layout=layout).swapaxes(-1, -2)


rng = np.random.default_rng(3)
tokens, Wq, Wk = rng.normal(size=(5, 10)), rng.normal(size=(24, 10)), rng.normal(size=(24, 10))
original, whole = head_scores(Wq, Wk, "interleaved"), rope_permutation(24)
half_q, half_k = rope_convert_weights(Wq, n_heads=3), rope_convert_weights(Wk, n_heads=3)
assert (half_q[8:16] == Wq[8:16][rope_permutation(8)]).all()  # the second head
assert (rope_convert_weights(half_q, n_heads=3, to="interleaved") == Wq).all()

# %%
conversions = {
    "none": (Wq, Wk),
    "W_q only": (half_q, Wk),
    "both, across heads": (Wq[whole], Wk[whole]),  # ignores where a head ends
    "both, head by head": (half_q, half_k),
}
for name, (a, b) in conversions.items():
    gap = np.abs(head_scores(a, b, "half") - original)  # (H, L, L)
    error, here = gap.max(), np.diagonal(gap, axis1=1, axis2=2).max()
    print(f"{name:20} largest difference {error:7.3f}   at distance 0 {here:7.3f}")
    assert (error < 1e-12) == (name == "both, head by head")
    assert (here < 1e-12) == (name in ("none", "both, head by head"))

# %% [markdown]
# Without conversion the scores are right at distance 0 only, so a test that compares a token with
# itself does not detect the layout. With only $W_q$ converted even these are wrong, since a
# reordered query is multiplied by a key in the old order.
#
# The two LLaMAs rotate different pairs because Hugging Face converted the weights ([asked in
# 2023](https://github.com/huggingface/transformers/issues/25199)). Converters write the permutation
# as a reshape. With grouped queries `n_heads` of $W_k$ is the number of *KV heads*.

# %%
# huggingface/transformers, issue #25199: the converter's permutation, in NumPy
by_reshape = Wq.reshape(3, 4, 2, 10).swapaxes(1, 2).reshape(24, 10)  # (H, K/2, 2, D)
assert (by_reshape == half_q).all()
show_source(rope_convert_weights)

# %% [markdown]
# ### A common mistake: the table of one layout with rotate_half of the other
#
# A program that computes $x\cos{} + \mathrm{quarter}(x)\sin$ needs each angle twice. The order
# $(\theta_0, \theta_1, \dots, \theta_0, \theta_1, \dots)$ goes with halves, and the order
# $(\theta_0, \theta_0, \theta_1, \theta_1, \dots)$ goes with neighbours. [A
# thread](https://github.com/huggingface/transformers/issues/40462) asks which is right. With two of
# the four combinations, scores depend only on the distance.


# %%
# huggingface/transformers, issue #40462: each table with each quarter rotation
def relative(angle, quarter):
    """Whether a score stays when both positions move by 10."""

    def turn(row, m):
        return x[row] * np.cos(m * angle) + quarter(x[row]) * np.sin(m * angle)

    return close(turn(0, 5) @ turn(1, 2), turn(0, 15) @ turn(1, 12))


tables = {"halves": np.tile(frequencies, 2), "neighbours": np.repeat(frequencies, 2)}
quarters = {
    "halves": lambda v: np.concatenate([-v[4:], v[:4]]),
    "neighbours": lambda v: np.stack([-v[1::2], v[0::2]], axis=-1).reshape(8),
}

# %%
for of_table, angle in tables.items():
    for of_turn, quarter in quarters.items():
        kept = relative(angle, quarter)
        print(f"table for {of_table:10}  quarter rotation of {of_turn:10}  relative: {kept}")
        assert kept == (of_table == of_turn)

# %% [markdown]
# ## Why RoPE does not rotate the values
#
# RoPE changes queries and keys. Scale, mask, softmax and weighted sum follow as usual ([chapter
# 10](10_attention.ipynb)). In the inner product the two absolute angles cancel. A value is not
# multiplied by a second rotated vector: a rotated value $R_n v$ goes into the output with its
# absolute angle. **Predict**: if a whole sequence moves by 100 positions, does the output change
# without rotated values? Does it change with them?

# %% fold="output"
Q, K, V = np.random.default_rng(0).standard_normal((3, 4, 8))


def outputs(first, turn_values):
    """Attention of the same four tokens, the first of them at position `first`."""
    at = first + np.arange(4)
    scores = rope(Q, at) @ rope(K, at).T / np.sqrt(8)
    return attend(scores, rope(V, at) if turn_values else V)[0]  # (L, K)


for turn_values in (False, True):
    change = np.abs(outputs(100, turn_values) - outputs(0, turn_values)).max()
    print(f"values rotated: {turn_values!s:5}  output changes by {change:.4f}")
    assert (change < 1e-12) == (not turn_values)

# %% [markdown]
# ## RoPE and the sinusoidal encoding: the same rotation
#
# The [sinusoidal encoding](20_sinusoidal.ipynb) has the same frequencies. Its shift by $\delta$
# positions is the same rotation, but clockwise, because its pairs are $(\sin, \cos)$ and not
# $(\cos, \sin)$. With the constant vector $u = (0, 1, 0, 1, \dots)$:
#
# $$PE(m) = R_{-m}\,u, \qquad PE(m + \delta) = R_{-\delta}\,PE(m)$$

# %%
at = np.arange(16)
PE = sinusoidal(at, 8)  # (L, D)
assert np.allclose(PE, rope(np.tile([0.0, 1.0], (16, 4)), -at), rtol=0, atol=1e-14)
for delta in (1, 3, 7):
    assert close(sinusoidal_shift(delta, 8), rope_matrix(-delta, frequencies))
    assert close(rope_matrix(-delta, frequencies) @ PE[2], PE[2 + delta])
print("PE(1):", PE[1].round(4).tolist())

# %% [markdown]
# The sinusoidal encoding rotates a *constant* and adds it to the content once, before all
# projections, so it also reaches the values. RoPE rotates *queries and keys themselves*, in each
# layer. With equal contents everywhere (and without $W_q$ and $W_k$), RoPE's scores are constant
# along each diagonal. With an added encoding they are not, since the products of content and
# encoding depend on only one position ([chapter 30](30_expansion.ipynb)).

# %% alt="Two 16 by 16 heat maps of scores. With RoPE, each diagonal has one colour. With a sinusoidal encoding added, horizontal bands cross the diagonals."
Q16, K16 = np.repeat(np.random.default_rng(18).normal(size=(2, 1, 8)), 16, axis=1)
rotary, added = rope(Q16, at) @ rope(K16, at).T, (Q16 + PE) @ (K16 + PE).T  # (L, S)
spread = [max(np.ptp(np.diagonal(s, o)) for o in range(-15, 16)) for s in (rotary, added)]
assert spread[0] < 1e-12 and spread[1] > 1
plots.score_matrices(rotary, added)
plt.show()

# %% [markdown]
# ## The theorem: only a rotation works (second reading)
#
# **Assume** that contents are complex numbers, that any of them may occur, and that positions are
# $0, 1, 2, \dots$. Assume that *one* function $f$ serves queries and keys, and that $f(q, 0) = q$.
# And assume that the whole complex product, not only its real part, depends only on $m - n$ (first
# line below). **Then** $f$ is a rotation by $m\theta$ with one number $\theta$ (second line). We do
# not assume that $f$ is linear or continuous, or that it keeps lengths. These properties follow.
#
# $$\begin{gathered}f(q, m)\, f(k, n)^* = g(q, k, m - n)\\[4pt]
# \Rightarrow\; f(q, m) = q\,e^{\mathrm{i}m\theta}\end{gathered}$$
#
# From here on $g$ is the complex product. The proof follows RoFormer, section 3.4.1. So that we can
# compute an example, we take a sealed box: a function that meets the assumptions, and of which we
# use only the values. No cell can try every $f$. Of the five candidates above, only turning and
# doing nothing, which is a turn by 0, keep the complex product unchanged.

# %%
_hidden = np.random.default_rng(13).uniform(0.3, 1.3)  # the seal: the proof does not read this


def f(q, m):
    """The sealed box."""
    return q * (np.cos(m * _hidden) + 1j * np.sin(m * _hidden))


products = [f(q, 3 + t) * np.conj(f(k, 1 + t)) for t in (0, 1, 5, 40)]
print("f(q, m) f(k, n)* at m - n = 2:", [f"{value:.4f}" for value in products])
assert np.allclose(products, products[0], rtol=0, atol=1e-12)
for attempt in attempts.values():
    turns = abs(attempt(q, 5) - q * np.exp(5j * np.angle(attempt(1, 1)))) < 1e-12
    assert turns == (largest_change(attempt, part=np.asarray) < 1e-12)

# %% [markdown]
# ### Step 1: norms are preserved
#
# Write numbers by modulus and argument: $f(q, m) = R_f(q, m)\,e^{\mathrm{i}\Theta_f(q, m)}$ and
# $g = R_g\,e^{\mathrm{i}\Theta_g}$. Moduli multiply and arguments subtract (first two lines). Put
# $n = m$ in the first line. The right side $R_g(q, k, 0)$ does not contain $m$, so the left side
# has the value that it has at $m = 0$, namely $|q|\,|k|$. Then put $k = q$. This is allowed because
# *one* function serves both:
#
# $$\begin{gathered}R_f(q, m)\,R_f(k, n) = R_g(q, k, m - n)\\[4pt]
# \Theta_f(q, m) - \Theta_f(k, n) = \Theta_g(q, k, m - n)\\[4pt]
# R_f(q, m)\,R_f(k, m) = |q|\,|k| \;\Rightarrow\; R_f(q, m) = |q|\end{gathered}$$
#
# With two functions, lengths need not be preserved. Stretch queries by $s^m$ and keys by $s^{-n}$,
# and the product of the moduli still depends only on $m - n$. This is the idea of **xPos** (Sun et
# al. 2022), which the second cell tests.

# %%
for m, n in ((7, 3), (4, 1), (2, 2)):
    g = f(q, m - n) * np.conj(f(k, 0))  # g(q, k, m - n) read at other positions
    assert np.isclose(abs(f(q, m)) * abs(f(k, n)), abs(g), rtol=0, atol=1e-12)
    difference = np.angle(f(q, m)) - np.angle(f(k, n))
    assert np.isclose(on_circle(difference), on_circle(np.angle(g)), rtol=0, atol=1e-12)
    assert np.isclose(abs(f(q, m)) * abs(f(k, m)), abs(q) * abs(k), rtol=0, atol=1e-14)
    assert np.isclose(abs(f(q, m)), abs(q), rtol=0, atol=1e-14)
print(f"|f(q, m)| = |q| = {abs(q):.4f}")

# %%
s = 0.9


def stretched(factor):
    """Rotate by half a radian per position, and multiply with the factor as often."""
    return lambda x, m: factor**m * np.exp(0.5j * m) * x


two_functions = largest_change(stretched(s), stretched(1 / s)) < 1e-12
one_function = largest_change(stretched(s)) < 1e-12
print("s^m and s^-n: wish met:", two_functions, "  s^m on both:", one_function)
assert two_functions and not one_function
assert np.isclose(abs(stretched(s)(q, 5)), 0.59049 * abs(q), rtol=0, atol=1e-12)

# %% [markdown]
# ### Step 2: one angle per position
#
# Put $n = m$ in the equation of the arguments. Its left side also has at every $m$ the value that
# it has at $m = 0$, which is $\arg q - \arg k$. Now bring all terms with $q$ to the left and all
# terms with $k$ to the right:
#
# $$\Theta_f(q, m) - \arg q = \Theta_f(k, m) - \arg k =: \varphi(m)$$
#
# Change $q$ and keep $k$. The right side does not change, so the left side does not change either.
# Hence the added angle is the same for all contents. Call it $\varphi(m)$. The content 0 needs no
# angle, because it is 0 at every position.

# %%
contents = np.random.default_rng(3).normal(size=(4, 2)).view(complex)[:, 0]


def phi(m, x=1):
    """The angle that position m adds to the content x."""
    return np.angle(f(x, m)) - np.angle(x)


for m in (1, 2, 3):
    added = [on_circle(phi(m, x)) for x in contents]
    assert np.allclose(added, on_circle(np.angle(f(q, m)) - np.angle(q)), rtol=0, atol=1e-12)
    assert np.allclose(contents * added, [f(x, m) for x in contents], rtol=0, atol=1e-12)
print("phi(1), phi(2), phi(3):", [round(float(phi(m)), 4) for m in (1, 2, 3)])

# %% [markdown]
# So $f(q, m) = q\,e^{\mathrm{i}\varphi(m)}$ is a turn by some angle for each position. Does any
# rule for the angle work? Try $\varphi(m) = m^2/10$. It keeps lengths, and at equal positions it
# gives equal scores. **Predict** whether the wish is met.


# %% fold="output"
def square(q, m):
    """Rotate by an angle that grows with the square of the position."""
    return q * np.exp(0.1j * m**2)


for step in (0, 1):
    same_distance = [(square(q, m + step) * np.conj(square(k, m))).real for m in range(4)]
    print(f"m - n = {step}:", np.round(same_distance, 4).tolist())
assert largest_change(square) > 1

# %% [markdown]
# ### Step 3: every position adds the same angle
#
# The square fails as soon as the positions differ, and so far we have used only equal positions.
# Put $n = m - 1$ in the equation of the arguments, where now
# $\Theta_f(q, m) = \arg q + \varphi(m)$:
#
# $$\begin{aligned}\varphi(m) - \varphi(m - 1) &= \Theta_g(q, k, 1) + \arg k - \arg q =: \theta\\[4pt]
# \varphi(m) &= m\theta\\[4pt]
# f(q, m) = q\,e^{\mathrm{i}m\theta} &= \begin{pmatrix}\cos m\theta & -\sin m\theta\\ \sin m\theta & \cos m\theta\end{pmatrix}
# \begin{pmatrix}q_0\\ q_1\end{pmatrix}\end{aligned}$$
#
# The left side of the first line contains no content, and the right side contains no position. So
# both sides are one constant, up to whole turns. Call it $\theta$. Equal steps from
# $\varphi(0) = 0$ make $\varphi(m) = m\theta$.

# %%
step = np.angle(f(1, 1))  # theta, read from the box at one content and one position
for m in range(1, 50):
    assert np.isclose(on_circle(phi(m) - phi(m - 1)), on_circle(step), rtol=0, atol=1e-12)
for a, b in ((contents[0], contents[1]), (contents[2], contents[3])):
    g1 = f(a, 1) * np.conj(f(b, 0))  # g(a, b, 1)
    right = np.angle(g1) + np.angle(b) - np.angle(a)
    assert np.isclose(on_circle(right), on_circle(step), rtol=0, atol=1e-12)
    for m in (0, 1, 2, 17, 400):
        cos, sin = np.cos(m * step), np.sin(m * step)
        turned = np.array([[cos, -sin], [sin, cos]]) @ [a.real, a.imag]
        assert np.isclose(f(a, m), a * np.exp(1j * m * step), rtol=0, atol=1e-10)
        assert np.allclose(turned, [f(a, m).real, f(a, m).imag], rtol=0, atol=1e-10)
print(f"one value opens the box: theta = {step:.6f}")

# %% [markdown]
# Only $\theta$ remains free, up to whole turns: at whole-number positions $\theta$ and
# $\theta + 2\pi$ give the same rotation. With real-number positions they differ, and then the proof
# also has to assume continuity. Conversely, with this $f$ the wish is met, as [the first
# test](#scores-that-depend-only-on-distance) shows.
#
# ### Real inner products, in any number of dimensions
#
# Attention uses the real part only. If we assume only the wish, that
# $\langle f(q, m), f(k, n)\rangle$ depends on $m - n$, are there other solutions? Let contents be
# real vectors with $d$ components, with one $f$ and $f(q, 0) = q$ as before. The proof has three
# steps:
#
# - *Inner products are kept.* At $n = m$ the score has the value that it has at $m = 0$:
#   $\langle q, k\rangle$.
# - *So $f$ is linear.* For real numbers $a$, $b$ the square below can be multiplied out into inner
#   products of values of $f$ at one position. Each equals the inner product of the contents. So
#   $f(q, m) = O_m q$ with a matrix that keeps inner products, $O_m^\top O_m = I$. Such a matrix is
#   called **orthogonal**.
# - *So $O_m$ is a power.* By the wish $O_m^\top O_{m+1}$ has the value that it has at $m = 0$,
#   namely $O_1$. Hence $O_{m+1} = O_m O_1$, and $O_m = O_1^m$.
#
# $$\begin{gathered}\big|f(aq + bk, m) - a f(q, m) - b f(k, m)\big|^2\\[4pt]
# = \big|(aq + bk) - aq - bk\big|^2 = 0\end{gathered}$$
#
# In the plane an orthogonal matrix is a rotation or a reflection (a mirror image). The power $m$ of
# a reflection is the reflection at odd $m$ and the identity at even $m$. This is a second solution,
# but its scores show only whether a distance is even or odd.


# %%
def mirror(q, m):
    """Mirror the content at odd positions."""
    return q if m % 2 == 0 else np.conj(q)


assert largest_change(mirror) < 1e-12 < largest_change(mirror, part=np.asarray)
for solution in (f, mirror):
    for m in (1, 2, 5):
        a, b = np.random.default_rng(m).normal(size=2)
        gap = solution(a * q + b * k, m) - a * solution(q, m) - b * solution(k, m)
        assert abs(gap) ** 2 < 1e-24
        kept = (solution(q, m) * np.conj(solution(k, m))).real
        assert np.isclose(kept, (q * np.conj(k)).real, rtol=0, atol=1e-14)
print("rotation and mirror keep inner products, and both are linear over the real numbers")

# %% [markdown]
# For $d$ dimensions we use a theorem of linear algebra without proof, the normal form of an
# orthogonal matrix. It says that there are perpendicular axes of length 1, the columns of a matrix
# $P$, along which $O_1$ consists of $2 \times 2$ rotations and of single entries 1 (a component
# that does not turn) and $-1$ (a reflection). If there are only rotations, then with $R_m$ from
# [the RoPE formula](#the-rope-formula-one-frequency-per-pair):
#
# $$P^\top O_1^m P = R_m \;\text{ with the frequencies of } O_1$$
#
# So the only solution is to cut a vector into pairs and turn each pair, apart from those entries
# and a change of coordinates. The coordinates $P$ can be absorbed in the learned $W_q$ and $W_k$.
# The cell finds the frequencies in a random orthogonal matrix. You may skip its eigenvectors,
# because nothing later needs them.

# %%
A = np.random.default_rng(2).normal(size=(6, 6))
A = A - A.T
O = np.linalg.solve(np.eye(6) - A, np.eye(6) + A)  # orthogonal, since A^T = -A
values, vectors = np.linalg.eig(O)
upper = np.argsort(-np.angle(values))[:3]  # one of each pair of conjugate eigenvalues
found = np.angle(values[upper])
P = np.sqrt(2) * np.stack([vectors[:, upper].real, -vectors[:, upper].imag], axis=-1).reshape(6, 6)
assert np.allclose(O.T @ O, np.eye(6), rtol=0, atol=1e-12)
assert np.allclose(P.T @ P, np.eye(6), rtol=0, atol=1e-12)
for m in (1, 2, 9):
    turned = P.T @ np.linalg.matrix_power(O, m) @ P
    assert np.allclose(turned, rope_matrix(m, found), rtol=0, atol=1e-12)
print("the clocks inside a random orthogonal matrix:", found.round(4).tolist())

# %% [markdown]
# ## In short
#
# - **Why a rotation?** If scores depend only on distance and position 0 changes nothing, one
#   function for queries and keys is a power of one orthogonal matrix. In the plane it rotates by
#   $m\theta$ or reflects at odd $m$. [Real inner
#   products](#real-inner-products-in-any-number-of-dimensions), [lengths are
#   kept](#step-1-norms-are-preserved).
# - **What is the formula?** At position $m$ the pair $(a, b)$ becomes
#   $(a\cos m\theta_c - b\sin m\theta_c,\; a\sin m\theta_c + b\cos m\theta_c)$, with
#   $\theta_c = 10000^{-2c/d}$ radians, $c = 0, \dots, d/2 - 1$, in heads of width $d$.
#   [Four forms](#four-forms-of-one-rotation-matrix-complex-interleaved-rotate_half).
# - **Which sign?** Positive positions turn counter-clockwise. The score is $q^\top R_{n-m} k$, key
#   minus query. [The RoPE score](#the-rope-score-key-position-minus-query-position).
#   [Chapter 41](41_rope_computed.ipynb) tests it, and whether scores fall with distance.
# - **Interleaved or half-split?** Interleaved, pairs $(2c, 2c + 1)$, in RoFormer, GPT-J and Meta's
#   LLaMA. Half-split, pairs $(c, c + d/2)$, in GPT-NeoX and Hugging Face's LLaMA.
#   [Layouts](#interleaved-or-half-split).
# - **How do I convert LLaMA weights?** Reorder the rows of $W_q$ and $W_k$, head by head:
#   `rope_convert_weights(W, n_heads, to="half")`, back with `to="interleaved"`. $W_v$ and $W_o$ do
#   not change. [Converting weights](#converting-llama-weights-between-the-layouts).
# - **Is the value rotated?** No. A rotated value would carry its absolute position into the output.
#   A sinusoidal encoding, which is added to the token, also reaches the values.
#   [Values](#why-rope-does-not-rotate-the-values),
#   [RoPE and the sinusoidal encoding](#rope-and-the-sinusoidal-encoding-the-same-rotation).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 40` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 40_rope_derived.py` checks yours.
#
# ### Exercise 1: Rotate by hand
#
# (Easy.) The vector $(2, 1)$ is at position 3, with frequency $\pi/6$. Which vector does RoPE turn
# it into? Use $\mathrm{i}$, no sines.
#
# <details><summary>Hint 1</summary>
#
# What is $3 \cdot \pi/6$ as a part of a full turn?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $e^{\mathrm{i}\pi/2} = \mathrm{i}$, and $\mathrm{i}(2 + \mathrm{i}) = 2\mathrm{i} - 1$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It is a quarter turn: $(2, 1)$ becomes $(-1, 2)$.
#
# ```python
# turned = rope([[2.0, 1.0]], [3], [np.pi / 6])
# assert np.allclose(turned, [[-1.0, 2.0]], rtol=0, atol=1e-14)
# ```
#
# </details>
#
# ### Exercise 2: Two functions
#
# (Medium.) Let $f_q(q, m) = A^m q$ and $f_k(k, n) = B^n k$ with invertible matrices. For a given
# $A$, with which $B$ do scores depend only on the distance? Try an $A$ that is not a rotation.
#
# <details><summary>Hint 1</summary>
#
# The score $q^\top (A^m)^\top B^n k$ must not change when $m$ and $n$ both grow by 1.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# You need $A^\top B = I$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# $B = (A^\top)^{-1}$. For an orthogonal $A$ this is $A$ itself. So the theorem does need the
# assumption of *one* function.
#
# ```python
# A = np.array([[1.0, 0.3], [0.0, 1.1]])
# B, power = np.linalg.inv(A.T), np.linalg.matrix_power
# a, b = np.random.default_rng(2).normal(size=(2, 2))
# scores = [(power(A, 3 + t) @ a) @ (power(B, 1 + t) @ b) for t in range(5)]
# assert np.allclose(scores, scores[0], rtol=0, atol=1e-10)
# assert not np.isclose(np.linalg.norm(A @ a), np.linalg.norm(a), rtol=0, atol=1e-3)
# ```
#
# </details>
#
# ### Exercise 3: Rotated values that depend only on distance
#
# (Hard.) Turn the values, $R_n v_n$, and correct the output at position $m$ so that it is unchanged
# when the whole sequence moves. Which vector does the query at $m$ then receive from position $n$?
#
# <details><summary>Hint 1</summary>
#
# The output is a sum of vectors turned by $n$. Which turn makes $n$ into a difference?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $R_{-m} \sum_n w_{mn} R_n v_n = \sum_n w_{mn} R_{n-m} v_n$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Turn the output back by its own position. Then each value contributes a vector that is turned by
# $n - m$ positions.
#
# ```python
# def with_turned_values(first):
#     at = first + np.arange(4)
#     out, w = attend(rope(Q, at) @ rope(K, at).T / np.sqrt(8), rope(V, at))
#     return rope(out, -at), w
#
#
# out, w = with_turned_values(0)
# assert np.allclose(out, with_turned_values(100)[0], rtol=0, atol=1e-12)
# arrived = np.stack([rope_matrix(n - 3, frequencies) @ V[n] for n in range(4)])
# assert np.allclose(out[3], w[3] @ arrived, rtol=0, atol=1e-12)
# ```
#
# </details>

# %% [markdown]
# ## In practice
#
# **Inputs that hide a bug.** At position 0 nothing turns, and at $m = n$ everything cancels.
# Vectors of ones give the same scores in both layouts, and a single pair is the same in both.
# Scores by themselves do not show whether queries and keys are both turned the wrong way ([chapter
# 41](41_rope_computed.ipynb)). Use one vector with a known answer:

# %%
for layout, known in (
    ("interleaved", [[-1.1426, 1.9221, 2.9599, 4.0298]]),
    ("half", [[-1.9841, 1.9599, 2.4624, 4.0198]]),
):
    assert rope([[1.0, 2.0, 3.0, 4.0]], [1], layout=layout).round(4).tolist() == known
    print(f"[1, 2, 3, 4] at position 1, {layout}: {known[0]}")
ones = np.ones((5, 8))
interleaved, half = (rope(ones, positions, layout=layout) for layout in ("interleaved", "half"))
assert close(interleaved @ interleaved.T, half @ half.T) and not close(interleaved, half)

# %% [markdown]
# ## Further reading
#
# - Su, Lu, Pan, Murtadha, Wen, Liu 2021, *RoFormer*, arXiv:2104.09864: section 3.2.2 with equations
#   (14) to (16), section 3.4.1 the derivation, equation (34) form (4) for neighbours. The proposal
#   itself, in Chinese, is [an essay of Su's](https://kexue.fm/archives/8265).
# - Sun et al. 2022, *A Length-Extrapolatable Transformer* (xPos), arXiv:2212.10554.
# - Katharopoulos et al. 2020, *Transformers are RNNs*, arXiv:2006.16236: linear attention.
#
# **Cards**: [rope](CARDS.md#rope).
