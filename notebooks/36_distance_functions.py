# %% [markdown]
# # 36. KERPLE, Sandwich and FIRE: distance biases
#
# *What lies between ALiBi's line and T5's table, and what does each function of the distance do to equal scores?*
#
# 35 minutes. Needs [20 Sinusoidal positional encoding](20_sinusoidal.ipynb), [33 T5 relative position bias, and TUPE](33_t5.ipynb), [35 ALiBi: attention with linear biases](35_alibi.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** T5 looks up a trained number for each distance, and ALiBi subtracts a straight
# line. Other curves lie between them: one that bends like a logarithm (KERPLE), one made of cosines
# (Sandwich), and one that a small network draws (FIRE). You compute them all, and you see how the
# shape of a curve decides whether a head attends to a window of near tokens or to the whole text. At
# the end you can choose a curve, start its training well, and use it in a decoder or an encoder.

# %% fold="input" alt="Five biases that are equal at distance 64, Sandwich nearly, and the factors by which they multiply a weight, on log axes. The square and the line fall steeply beyond 64, then the square root; the logarithm is nearly straight, and Sandwich ripples about it."
import matplotlib.pyplot as plt
import numpy as np
from pe_numpy import alibi_bias, attention, fire_bias, kerple_log_bias, kerple_power_bias
from pe_numpy import relative_distance, sandwich_bias, sinusoidal, softmax, t5_bias, value_and_grad
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import distance_functions as plots

far = np.arange(1025)[None]  # one query: (1, S)
square, root = (kerple_power_bias([4 / 64**p], [p], far)[0, 0] for p in (2, 0.5))
line = alibi_bias([1 / 16], far)[0, 0]
log = kerple_log_bias([4 / np.log(65)], [1.0], far)[0, 0]
shapes = {"square": square, "ALiBi": line, "root": root, "logarithm": log}
shapes |= {"Sandwich": sandwich_bias(8, far)[7, 0]}
plots.distance_shapes(far[0], shapes, 64)
plt.show()

# %% [markdown]
# The figure compares five functions of the distance. On the left is the **bias**, the number that is
# added to a score before the softmax. On the right is the factor by which it multiplies the weight of
# a key. The square and the root are curves of KERPLE's power form, and the logarithm is its other
# form.
#
# ## From ALiBi's line to T5's table: bias curves and their weights
#
# T5 learns 32 numbers per head, one for each bucket of distances, and the last bucket never ends
# ([chapter 33](33_t5.ipynb)). ALiBi learns none; its straight line has a fixed slope
# ([chapter 35](35_alibi.ipynb)). Between them are all schemes in which *the bias is a function of
# the distance with a few numbers per head*. For a query at $i$ and a key at $j$ it is
# $b_{ij} = g(|i-j|)$.
#
# What does the shape of the curve do? Let all scores be equal, so that only position decides. At
# distance $\delta$ the weight, divided by the weight at distance 0, is
#
# $$\frac{w(\delta)}{w(0)} = e^{\,g(\delta)}\qquad\text{with}\quad g(0)=0$$
#
# A line $-m\delta$ becomes a geometric sequence $(e^{-m})^\delta$, a square $-a\delta^2$ becomes a
# Gaussian bell curve, and a logarithm $-p\ln(1+a\delta)$ becomes a **power law**,
# $(1+a\delta)^{-p}$.

# %%
delta = far[0]
for name, law in (
    ("ALiBi", np.exp(-1 / 16) ** delta),
    ("square", np.exp(-4 / 64**2 * delta**2)),
    ("logarithm", (1 + delta) ** (-4 / np.log(65))),
):
    w = softmax(shapes[name])
    assert np.allclose(w / w[0], law, rtol=0, atol=1e-14)
    assert np.isclose(w[64] / w[0], np.exp(-4), rtol=0, atol=1e-14)  # where the curves meet

# %% [markdown]
# Four curves of the figure above meet at distance 64, where a key has $e^{-4}$ of the weight of the
# nearest. Sandwich, which has no number to set, nearly meets them. **Predict**: with 1,025 equal
# keys, what share of the weight is at distance 64 or more for the square, the line, the root and
# the logarithm?

# %% fold="output"
for name, bias in shapes.items():
    w = softmax(bias)
    print(f"{name:10} {w[64:].sum():6.1%} at 64 or more,  factor at 1000: {np.exp(bias[1000]):.0e}")
shares = [softmax(b)[64:].sum() for b in shapes.values()]
assert shares[0] < 0.01 < shares[1] < 0.05 < shares[2] < 0.1 and min(shares[3:]) > 0.4

# %% [markdown]
# The share goes from less than 1% to more than 40%.
#
# ALiBi's head is a window. Chapter 35 proves that all but a share $\varepsilon$ of the weight is
# within a fixed number of keys, no matter how long the text is. Is this also true of a logarithm?
# The weights sum to something like $\sum_\delta (1+a\delta)^{-p}$, which converges for $p > 1$ and
# grows without end for $p\le 1$. The cell prints the share beyond 100 keys as the text grows:

# %%
print("keys      ", "".join(f"{n:>10,}" for n in (1000, 10_000, 100_000, 1_000_000)))
beyond = {}
for p in (0.5, 1.0, 1.5, 2.0):
    b = kerple_log_bias([p], [1.0], np.arange(1_000_000)[None])[0, 0]
    beyond[p] = [softmax(b[:n])[100:].sum() for n in (1000, 10_000, 100_000, 1_000_000)]
    print(f"p = {p}   ", "".join(f"{share:10.3f}" for share in beyond[p]))
assert np.all(np.diff(beyond[0.5]) > 0.01) and np.all(np.diff(beyond[1.0]) > 0.05)
assert np.ptp(beyond[2.0][1:]) < 0.001 and beyond[1.5][3] < 0.08

# %% [markdown]
# With $p = 2$ the head is a window again. With $p=1/2$ nearly all weight moves to the distant text,
# so such a head is not a window.
#
# ## KERPLE: two trained numbers per head
#
# KERPLE (Chi et al. 2022) gives each head two trained numbers, $p$ and $a$, both above 0. Its
# **logarithmic** form is
#
# $$b_{ij} = -p\,\ln\!\big(1 + a\,|i-j|\big)$$

# %%
p, a = np.array([0.5, 1.0]), np.array([0.25, 1.0])  # two heads
q_at, k_at = [3, 0, 9], [0, 2, 5, 1]
bias = kerple_log_bias(p, a, relative_distance(q_at, k_at))  # (H, L, S)
for h, i, j in np.ndindex(bias.shape):
    delta = abs(q_at[i] - k_at[j])
    assert np.isclose(bias[h, i, j], -p[h] * np.log(1 + a[h] * delta), rtol=0, atol=1e-14)
for row in kerple_log_bias(p, a, [[0, 1, 2, 3, 4]])[:, 0] + 0.0:
    print(row.round(6).tolist())

# %% [markdown]
# Near the query, where $a\delta$ is small, the logarithm is a line of slope $pa$. Far away,
# doubling the distance costs a fixed $p\ln 2$. The bend is at distance $1/a$. In the **power**
# form, with the authors' letters, $p$ is the exponent and $a$ the factor:
#
# $$b_{ij} = -a\,|i-j|^{\,p}\qquad 0 < p \le 2$$

# %%
bias = kerple_power_bias(a, p, relative_distance(q_at, k_at))
for h, i, j in np.ndindex(bias.shape):
    delta = abs(q_at[i] - k_at[j])
    assert np.isclose(bias[h, i, j], -a[h] * delta ** p[h], rtol=0, atol=1e-14)
apart = relative_distance(range(6), range(9))
assert np.array_equal(kerple_power_bias(a, [1, 1], apart), alibi_bias(a, apart))  # p = 1: ALiBi
small = kerple_log_bias(a / 1e-7, [1e-7, 1e-7], apart)  # p a kept, a towards 0: also ALiBi
assert np.allclose(small, alibi_bias(a, apart), rtol=0, atol=1e-5)
print((kerple_power_bias([0.5], [0.5], [[0, 1, 2, 3, 4]])[0, 0] + 0.0).round(6).tolist())

# %% [markdown]
# So ALiBi is the power form at $p=1$, and the limit of the logarithmic form as $a\to 0$ with $pa$
# fixed. In code a scheme is one line, and `each_distance` evaluates it once per distance
# ([chapter 30](30_expansion.ipynb)):

# %%
from pe_numpy.relative.kerple import kerple_bias

show_source(kerple_log_bias, kerple_power_bias, kerple_bias)
window = kerple_log_bias(p, a, relative_distance(range(500), range(600)))
assert window.strides[1] == -window.strides[2] == 8  # each row is the one above, one place on

# %% [markdown]
# ### A common mistake: KERPLE with a constant a of 0
#
# $p$ and $a$ learn from the slopes of the bias. With $\delta = |i-j|$ these are
#
# $$\frac{\partial b}{\partial a} = -\frac{p\,\delta}{1+a\delta},\qquad \frac{\partial b}{\partial p} = -\ln(1+a\delta)$$


# %%
def slopes_at(p, a, delta):
    of = value_and_grad(lambda both: kerple_log_bias(both["p"], both["a"], [[delta]])[0, 0, 0])
    grads = of({"p": np.array([p]), "a": np.array([a])})[1]
    return float(grads["p"][0]), float(grads["a"][0])


for delta in (0, 1, 7, 10**6):
    by_p, by_a = slopes_at(0.5, 0.25, delta)
    assert np.isclose(by_a, -0.5 * delta / (1 + 0.25 * delta), rtol=1e-12, atol=0)
    assert np.isclose(by_p, -np.log(1 + 0.25 * delta), rtol=1e-12, atol=0)
    assert abs(by_a) < 0.5 / 0.25  # never beyond p/a
by_p, by_a = slopes_at(0.5, 1e-12, 100)
print(f"a = 1e-12, distance 100: slope by p {by_p:.0e}, by a {by_a:.0f}")

# %% [markdown]
# If $a = 0$, the bias is 0 at every distance, and so is its slope with respect to $p$. Only a
# change of $a$ can leave this point. NVIDIA's NeMo once had $a$ as a *constant* 0, so the head had
# no position and its factor got no gradient. A first repair drew $a$ at random. A reviewer called
# this unstable and asked for 1 ([PR 6666](https://github.com/NVIDIA-NeMo/Speech/pull/6666)).
#
# The [authors' code](https://github.com/chijames/KERPLE/blob/25be3d7/megatron/mpu/layers.py) draws
# $p$ from 0 to 2 and $a$ from 0 to 1, one pair per head for all layers. Before each use it raises
# values below 0.01 to 0.01 and lowers exponents above 2 to 2. The class `Kerple` of this package
# trains the logarithms of $p$ and $a$ instead, so both always remain above 0.
#
# ## Conditional kernels: why KERPLE's exponent stops at 2 (second reading)
#
# The K in KERPLE is a **kernel**. A function of two positions is a kernel if it is an inner product
# of position vectors, $\varphi(i)\cdot\varphi(j)$. A penalty cannot be a kernel itself. Its
# diagonal is 0, so the vectors would have length 0. But a softmax ignores a number added to a whole
# row, and a number per key is easily added. So we ask only for an inner product up to such numbers.
# The bias is a **conditional kernel** if, for all numbers $u_i$ with sum 0,
#
# $$\sum_i\sum_j u_i\,u_j\,b(i-j)\;\ge\;0\qquad\text{whenever}\quad\sum_i u_i = 0$$
#
# To test a matrix, subtract each row's mean from the row, then each column's mean from the column.
# No eigenvalue of the result may be negative. **Predict** for 12 positions: which of the exponents
# 0.5, 1, 1.5, 2 and 2.5 pass?


# %% fold="output"
def centred(b):
    return b - b.mean(axis=0) - b.mean(axis=1)[:, None] + b.mean()


away = np.abs(relative_distance(range(12), range(12))).astype(float)
least = {p: np.linalg.eigvalsh(centred(-(away**p))).min() for p in (0.5, 1, 1.5, 2, 2.5)}
for p, value in least.items():
    print(f"p = {p}: least eigenvalue {value:8.2f}".replace("-0.00", " 0.00"))
    u = np.random.default_rng(0).standard_normal((2000, 12))
    u = u - u.mean(axis=1, keepdims=True)  # sum 0
    sums = np.einsum("ni,ij,nj->n", u, -(away**p), u)
    assert (value > -1e-12) == (p <= 2) and (sums.min() > 0) == (p <= 2)
logarithm = np.linalg.eigvalsh(centred(-np.log1p(away))).min()
assert abs(logarithm) < 1e-12  # the least is 0, that of equal numbers u

# %% alt="Least eigenvalue of the centred power bias of 12 positions over the exponent from 0.1 to 3. It is zero up to 2, then falls steeply."
exponents = np.linspace(0.1, 3, 59)
floor = [np.linalg.eigvalsh(centred(-(away**p))).min() for p in exponents]
plots.distance_exponents(exponents, np.array(floor))
plt.show()

# %% [markdown]
# All but 2.5 pass, and so does the logarithm. Schoenberg's theorem gives an equivalent condition
# without "whenever": $b$ is a conditional kernel if and only if $e^{t\,b}$ is a kernel for every
# $t>0$. So with $p\le 2$ the factor $e^{b}$ is an inner product of position vectors. Before
# normalisation the weight of a pair is then content times position,
# $e^{q\cdot k/\sqrt K}\;\varphi(i)\cdot\varphi(j)$.

# %%
for t in (0.01, 0.1, 1.0):
    bell = np.linalg.eigvalsh(np.exp(-t * away**2)).min()
    beyond_2 = np.linalg.eigvalsh(np.exp(-t * away**2.5)).min()
    assert bell > -1e-12
    bell = bell.round(4) + 0.0  # no "-0.0"
    print(
        f"t = {t}: least eigenvalue of exp(-t delta^p), p = 2 {bell:7.4f}, p = 2.5 {beyond_2:7.4f}"
    )
assert np.linalg.eigvalsh(np.exp(-0.1 * away**2.5)).min() < -0.05

# %% [markdown]
# At $t=1$ these twelve positions also pass with 2.5, so "every $t$" is needed. A softmax would work
# with $p = 2.5$; the limit comes from the meaning of a kernel, not from the arithmetic.
# `kerple_power_bias` refuses exponents above 2, where the authors' code sets them to 2.
#
# ## Sandwich: the inner product of sinusoidal encodings as a bias
#
# [Chapter 20](20_sinusoidal.ipynb) found that the inner product of two sinusoidal encodings depends
# only on the distance. It is a sum of cosines, largest at distance 0. Sandwich (Chi et al. 2023)
# takes only this sum as the bias. With its own width $d$ (128; in NeMo the width of a head) and
# heads $h = 1, \dots, H$,
#
# $$b_{ij} = \frac{1}{8h/H}\left(\sum_{n=1}^{d/2}\cos\!\big((i-j)\,\mathrm{base}^{-2n/d}\big) - \frac d2\right)$$

# %%
d, H, base = 128, 8, 10000.0
bias = sandwich_bias(H, relative_distance(q_at, k_at), d, base)
for h, i, j in np.ndindex(bias.shape):
    cosines = [np.cos((q_at[i] - k_at[j]) * base ** (-2 * n / d)) for n in range(1, d // 2 + 1)]
    assert np.isclose(bias[h, i, j], (sum(cosines) - d / 2) / (8 * (h + 1) / H), rtol=0, atol=1e-12)
print("h = 1:", sandwich_bias(8, [range(6)])[0, 0].round(6).tolist())
codes = sinusoidal(np.arange(40) * base ** (-2 / d), d)  # fractional positions: n starts at 1
product = (codes @ codes.T - d / 2) / (8 * 3 / H)  # head 3
third = sandwich_bias(H, relative_distance(range(40), range(40)))[2]
assert np.allclose(product, third, rtol=0, atol=1e-12)

# %% [markdown]
# At distance 0 all cosines are 1, so $d/2$ is subtracted. Note the **1** under the sum: the
# sinusoidal encoding begins at $n=0$, with a frequency of 1. The last lines of the cell shrink the
# positions by $\mathrm{base}^{-2/d}$, and so obtain the bias as an inner product.

# %% alt="Sandwich's bias of the flattest head over distance, on a log axis, with a straight line. The curve follows the falling line with ripples; its first rise comes after 13."
steps = np.arange(1, 1025)
b = sandwich_bias(8, steps[None])[7, 0]
slope, start = np.polyfit(np.log1p(steps), b, 1)
rise = int(steps[np.flatnonzero(np.diff(b) > 0)[0]])
plots.distance_sandwich(steps, b, start + slope * np.log1p(steps), rise)
plt.show()
print(f"line: {start:.2f} {slope:+.2f} ln(1 + delta); first rise from {rise} to {rise + 1}")
assert rise == 13 and np.corrcoef(np.log1p(steps), b)[0, 1] < -0.9

# %% [markdown]
# The curve falls roughly like a logarithm, with growing ripples. From 13 to 14 it rises for the
# first time. So sinusoids, used as a bias, resemble KERPLE's logarithm, with nothing to train.
#
# *A common mistake* is in NeMo's code, the only one that we could read. It sets distances of the
# future to 0 by cutting a triangle out of the matrix, counted from the matrix's corner. With one
# query and five keys the corner is in the wrong place, so the past loses its distances:

# %%
show_source(sandwich_bias)
newest = relative_distance([4], range(5))
print("right:", newest.tolist(), "  cut from the corner:", np.tril(newest).tolist())

# %% [markdown]
# ## FIRE: distance as a fraction of the query's position
#
# In a longer text, every function so far is given distances that it never saw in training. FIRE (Li
# et al. 2024) measures distance *as a fraction of the way from the query to the first token*, where
# 0 is the query and 1 is the first token.
#
# $$b_{ij} = f\!\left(\frac{\psi(|i-j|)}{\psi(\max(i, L)) + \epsilon}\right),\qquad \psi(x) = \ln(1+|c|\,x)$$
#
# Here $f$ is a small network, from 1 number to 32 ReLUs to $H$ heads. The number $c$ and the
# threshold $L$ (here not an axis) are also trained. Without the threshold a short text would be
# stretched. For example, a query at 1 has two keys, and their fractions would be 0 and 1. The
# logarithm spreads near keys over more of [0, 1].

# %%
rng = np.random.default_rng(0)
fire = {"W1": rng.standard_normal((1, 32)), "b1": rng.standard_normal(32)}
fire |= {"W2": rng.standard_normal((32, 3)), "b2": rng.standard_normal(3)}
fire |= {"c": np.array(0.1), "L": np.array(5.0)}
bias = fire_bias(fire, range(9), range(9))  # (H, 9, 9)
for h, i, j in np.ndindex(bias.shape):
    c, L = 0.1, 5.0
    x = np.log(1 + c * abs(i - j)) / (np.log(1 + c * max(i, L)) + 1e-6)
    relus = [max(0, x * fire["W1"][0, m] + fire["b1"][m]) for m in range(32)]
    assert np.isclose(bias[h, i, j], relus @ fire["W2"][:, h] + fire["b2"][h], rtol=0, atol=1e-12)

# %% fold="output"
show_source(fire_bias)

# %% [markdown]
# To see the argument of $f$, let $f$ be a network that changes nothing, one ReLU with $f(x) = x$.
# The cell takes $c = 1$ and $L = 2$:

# %%
same = {"W1": [[1.0]], "b1": [0.0], "W2": [[1.0]], "b2": [0.0]}
for i in (4, 2, 1):
    x = fire_bias(same | {"c": 1.0, "L": 2.0}, [i], range(i + 1), eps=0)[0, 0]
    print(f"i = {i}:", x.round(6).tolist())
    assert x[-1] == 0 and (x[0] == 1) == (i >= 2)  # the first token is at 1 once i reaches L

# %% alt="Argument of FIRE's network for 48 positions with L = 16, as a map and as curves for four queries. Up to row 16 there is one band. Below, each row stretches so that the first key has the value one."
share = fire_bias(same | {"c": 0.5, "L": 16.0}, range(48), range(48))[0]
share = np.where(np.tri(48, dtype=bool), share, np.nan)
plots.distance_shares(share, 16, (12, 16, 30, 47))
plt.show()
assert np.nanmax(share) <= 1

# %% [markdown]
# Up to $i=L$ all rows divide by the same $\psi(L)$, so the bias is a function of the distance,
# evaluated once per distance. **Beyond $L$ each row has its own divisor**, and a diagonal no longer
# has one number. The matrix is not a Toeplitz matrix, and $f$ is evaluated for every pair, in
# blocks of queries. A cache still works. A row depends only on $i$ and $j$, so it does not change
# when tokens follow. **Predict**: does the bias of a text change if all its positions are shifted
# by 100 (for example, because padding is counted)?

# %% fold="output"
distances = relative_distance(range(9), range(9))
diagonal = [bias[0][distances == n] for n in range(9)]
print("numbers on the diagonals:", [len(np.unique(x.round(9))) for x in diagonal])
shifted = fire_bias(fire, np.arange(9) + 100, np.arange(9) + 100)
print("changed by the shift:", bool(np.abs(shifted - bias).max() > 0.05))
assert np.abs(shifted - bias).max() > 0.05 and len(np.unique(diagonal[0])) == 1
assert [len(np.unique(x.round(9))) for x in diagonal[1:4]] == [4, 4, 4]  # i up to 5, 6, 7, 8
step = fire_bias(fire, [8], range(9))  # with a cache
assert np.allclose(step, bias[:, 8:], rtol=0, atol=1e-14)
assert np.array_equal(fire_bias(fire, [1, 2], [1, 2]), fire_bias(fire, [4, 5], [4, 5]))  # up to L

# %% [markdown]
# The bias changes as soon as a query is beyond $L$. So FIRE needs true positions, counted from the
# first non-padding token. With left padding they start after the padding.
#
# ### A common mistake: FIRE's maximum along the keys
#
# $\max(i, L)$ has one number per *row*. If it is broadcast along the keys by mistake, the shapes
# still agree whenever there are as many queries as keys:

# %%
i, j = np.arange(9)[:, None], np.arange(9)[None]
psi_of_distance = np.log1p(0.5 * np.abs(i - j))
right = psi_of_distance / np.log1p(0.5 * np.maximum(i, 5))
wrong = psi_of_distance / np.log1p(0.5 * np.maximum(j, 5))
past = np.tri(9, dtype=bool)
print("largest argument:", right[past].max(), "  along the keys:", round(wrong[past].max(), 3))
assert right.shape == wrong.shape and right[past].max() == 1 < wrong[past].max()
assert (right[5:, 0] == 1).all() and (np.diff(wrong[5:, 0]) > 0.05).all()  # the first token

# %% [markdown]
# This test finds the mistake: the first token's argument is 1 for every query at $L$ or later.
#
# ## FIRE contains KERPLE, ALiBi and T5 (second reading)
#
# What can $f$ express? Take queries at $i\le L$ and $\epsilon=0$. **A straight line**, one ReLU
# with $f(x) = -p\,\psi(L)\,x$, cancels the divisor. The result is KERPLE's logarithm with $a=c$:
#
# $$-p\,\psi(L)\;\frac{\psi(|i-j|)}{\psi(L)} = -p\,\ln(1+c\,|i-j|)\qquad i\le L$$


# %%
def straight(scale, c, L):
    heads = np.log1p(c * L) * np.array([scale])  # (1, H)
    line = {"W1": np.ones((1, 1)), "b1": np.zeros(1), "W2": heads, "b2": np.zeros(2)}
    return line | {"c": c, "L": L}


at20 = np.arange(20)
apart = relative_distance(at20, at20)
bent = fire_bias(straight([-0.5, -2.0], 0.25, 19.0), at20, at20, eps=0)
assert np.allclose(bent, kerple_log_bias([0.5, 2.0], [0.25, 0.25], apart), rtol=0, atol=1e-14)
for c in (1e-2, 1e-4, 1e-6):
    unbent = fire_bias(straight([-0.5 / c, -0.125 / c], c, 19.0), at20, at20, eps=0)
    print(f"c = {c:.0e}: from ALiBi {np.abs(unbent - alibi_bias([0.5, 0.125], apart)).max():.0e}")
assert np.allclose(unbent, alibi_bias([0.5, 0.125], apart), rtol=0, atol=1e-3)

# %% [markdown]
# **ALiBi** is the limit $c\to 0$, where $\psi(x)\approx c\,x$, as the second half of the cell
# shows.
#
# **A staircase.** Two ReLUs make one step: the first rises from one distance to the next, and the
# second stops the rise. T5's causal table has 32 numbers, so it has 31 steps. $2\cdot 31 = 62$
# ReLUs give T5's bias exactly at all whole distances. FIRE's own 32 ReLUs have room for 16 steps.

# %%
N, L = 32, 400
table = rng.standard_normal((N, 2))
bucket = t5_bias(np.arange(N)[:, None], [np.arange(L)], 128, False)[0, 0]
opens = np.array([np.flatnonzero(bucket == n)[0] for n in range(1, N)])
x = np.log1p(np.arange(L)) / np.log1p(L)  # what f reads, c = 1
width = x[opens] - x[opens - 1]
up, rise = 1 / np.concatenate([width, width]), np.diff(table, axis=0)
stairs = {"W1": up[None], "b1": -up * np.concatenate([x[opens - 1], x[opens]]), "b2": table[0]}
stairs |= {"W2": np.concatenate([rise, -rise]), "c": 1.0, "L": L}
got = fire_bias(stairs, range(L), range(L), eps=0)
t5 = t5_bias(table, relative_distance(range(L), range(L)), 128, bidirectional=False)
past = np.tri(L, dtype=bool)
same = np.abs(got - t5)[:, past].max() < 1e-11
print(stairs["W1"].shape[1], "ReLUs give T5's table, to 11 decimals:", same)
assert same

# %% [markdown]
# Beyond $L$ the network stretches its curve. We proved that FIRE *can* express all this. Whether
# training finds it is not measured.
#
# What does each trained number learn from? The threshold learns only from rows before it, and $c$
# only from distances above 0. The last number $b_2$ is added to all scores of a head, which does
# not affect a softmax, so this package's class `Fire` leaves it out.

# %%
from pe_numpy.transformer.encodings import Fire, Shape


def grads_of(*at):
    return value_and_grad(lambda params: np.sum(fire_bias(params, *at) ** 2))(fire)[1]


late, early = grads_of([7, 8], [2, 3]), grads_of([3, 4], [1, 2])
assert late["L"] == 0 != early["L"] and late["c"] != 0 != early["c"]
assert grads_of([4], [4])["c"] == 0
z = rng.standard_normal((3, 9, 9)) + bias
assert np.allclose(softmax(z), softmax(z + fire["b2"][:, None, None]), rtol=0, atol=1e-12)
print("a layer of Fire trains:", list(Fire().layer(rng, Shape(12, 3))))

# %% [markdown]
# ## ALiBi in an encoder: symmetric bias, two slopes or half a step
#
# Every bias so far, FIRE's up to $L$, is a function of $|i-j|$. In a decoder the mask hides one
# side. In an encoder both sides are visible, and such a bias cannot distinguish left from right: a
# reversed sentence gets its outputs reversed
# ([chapter 35](35_alibi.ipynb#alibi-in-an-encoder-distance-or-difference), exercise 2). There are
# two remedies, neither from ALiBi's paper. One gives the future **its own slopes**:
#
# $$b_{ij} = \begin{cases} -m_h\,|i-j| & i\ge j\\ -m'_h\,|i-j| & i<j\end{cases}$$

# %%
sides = np.arange(3, -4, -1)  # i - j: from three back to three ahead
two = alibi_bias([1.0], sides[None], future_slopes=[0.5])[0, 0]
assert all(
    b == -(1.0 if delta >= 0 else 0.5) * abs(delta) for b, delta in zip(two, sides, strict=True)
)
both = alibi_bias([1.0], sides[None])[0, 0]
half = both + 0.5 * (sides > 0)
for name, b in (("symmetric", both), ("two slopes", two), ("half a step", half)):
    print(f"{name:12}", (b + 0.0).tolist())
x = rng.standard_normal((7, 4))
for b, blind in ((both, True), (two, False), (half, False)):
    matrix = b[3 - relative_distance(range(4), range(4))]
    assert matrix[1, 0] == b[2] and sides[2] == 1  # one back
    ahead, back = (attention(y, y, y, bias=matrix)[0] for y in (x[:4], x[3::-1]))
    assert np.allclose(back, ahead[::-1], rtol=0, atol=1e-6) == blind

# %% [markdown]
# The second remedy, **half a step**, is used in
# [Google DeepMind's encoders](https://github.com/google-deepmind/randomized_positional_encodings/blob/e8c6474/models/positional_encodings.py):
# the past costs half a slope less, $-m\,(|i-j| - \tfrac12)$ for $i>j$. A comment in the code calls
# this arbitrary. An author of ALiBi makes proposals in
# [issue 5](https://github.com/ofirpress/attention_with_linear_biases/issues/5). The shortcut of a
# bias that depends only on the key fails without a mask. x-transformers changed its bias to serve
# both directions in [PR 88](https://github.com/lucidrains/x-transformers/pull/88).

# %% alt="Three biases of an encoder over the key's position from three back to three ahead. One is a symmetric tent, one a tent with a flatter future, and one a tent whose past is lifted by a half."
plots.distance_sides(sides, {"symmetric": both, "two slopes, 1 and 1/2": two, "half a step": half})
plt.show()

# %% [markdown]
# **Two relatives** have no function here. The *dynamic position bias* of
# [x-transformers](https://github.com/lucidrains/x-transformers) is a network that reads the signed
# distance itself (or its logarithm). It has no threshold, and it distinguishes left from right. A
# *generalised Gaussian prior* ([arXiv:2505.22842](https://arxiv.org/abs/2505.22842)) interprets
# KERPLE's power form as a prior on distance. ALiBi is its Laplace case.

# %% [markdown]
# ## In short
#
# - **Which sign do these biases have, and where are they added?** KERPLE's and Sandwich's biases
#   are 0 at distance 0 and negative elsewhere, and equal for past and future. FIRE's network may
#   give any sign. All are added after the division by $\sqrt K$.
#   [KERPLE](#kerple-two-trained-numbers-per-head).
# - **Does a symmetric ALiBi tell left from right in an encoder?** No. Two slopes or half a step solve
#   it. [ALiBi in an encoder](#alibi-in-an-encoder-symmetric-bias-two-slopes-or-half-a-step).
# - **Which curve reaches furthest?** The logarithm: its weights fall as the power law
#   $(1+a\delta)^{-p}$. With $p\le 1$ the head has no window. The longer the text, the more of the
#   weight is far away.
#   [Curves and weights](#from-alibis-line-to-t5s-table-bias-curves-and-their-weights).
# - **What is trained, and where may it start?** KERPLE trains $p$ and $a$ per head, both above 0. A
#   constant $a=0$ switches the head off. Sandwich trains nothing. FIRE trains a small network, $c$
#   and $L$. [A constant a of 0](#a-common-mistake-kerple-with-a-constant-a-of-0).
# - **What must a cache store?** Only positions. But FIRE needs the query's own position. Beyond $L$
#   it stretches each row differently, so a diagonal has more than one number.
#   [FIRE](#fire-distance-as-a-fraction-of-the-querys-position).
# - **How general is FIRE?** For queries up to $L$ it contains KERPLE's logarithm and ALiBi as the
#   limit $c\to 0$. With 62 ReLUs it also contains T5's 32 causal buckets, exactly on whole
#   distances. [FIRE contains](#fire-contains-kerple-alibi-and-t5-second-reading).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 36` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 36_distance_functions.py` checks yours.
#
# ### Exercise 1: Position vectors for a quadratic bias
#
# The bias $-a\,(i-j)^2$ is a conditional kernel. Find position vectors $\varphi(i)$ of *one*
# component, and numbers $r_i$, with $-a\,(i-j)^2 = \varphi(i)\,\varphi(j) + r_i + r_j$. Which number
# must each key add, so that a softmax gives the bell?
#
# <details><summary>Hint 1</summary>
#
# Expand the square.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The term that depends only on $i$ is constant along a row.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Since $-a(i-j)^2 = 2a\,ij - a\,i^2 - a\,j^2$, take $\varphi(i) = \sqrt{2a}\,i$ and
# $r_i = -a\,i^2$. The softmax needs only $2a\,ij - a\,j^2$, that is, one extra component of query
# and key and one number per key.
#
# ```python
# at, strength = np.arange(12), 0.1
# code, of_key = np.sqrt(2 * strength) * at, -strength * at**2
# bell = kerple_power_bias([strength], [2.0], relative_distance(at, at))[0]
# assert np.allclose(np.outer(code, code) + of_key + of_key[:, None], bell, rtol=0, atol=1e-12)
# assert np.allclose(softmax(np.outer(code, code) + of_key), softmax(bell), rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 2: KERPLE's two forms in one
#
# NeMo joins the two forms as $-r\,\ln(1 + a\,|i-j|^{p})$, where $r$ starts at ALiBi's slopes. Which
# numbers give the logarithm, and which limit gives the power form?
#
# <details><summary>Hint 1</summary>
#
# One of the three numbers is 1 in the logarithm.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Use $\ln(1+x) \approx x$ for small $x$, and keep $ra$ fixed.
#
# </details>
#
# <details><summary>Solution</summary>
#
# $p = 1$ gives the logarithm. With $ra$ fixed at 0.7 and $a\to 0$ it becomes $-0.7\,|i-j|^p$.
#
# ```python
# steps = np.arange(20.0)
# joined = lambda r, a, p: -r * np.log1p(a * steps**p)
# whole = steps.astype(int)[None]
# assert np.allclose(joined(0.5, 0.3, 1), kerple_log_bias([0.5], [0.3], whole)[0, 0], rtol=0, atol=1e-14)
# power = kerple_power_bias([0.7], [1.5], whole)[0, 0]
# gaps = [np.abs(joined(0.7 / a, a, 1.5) - power).max() for a in (1e-3, 1e-5, 1e-7)]
# assert gaps[0] > gaps[1] > gaps[2] and gaps[2] < 1e-3
# ```
#
# </details>
#
# ### Exercise 3: Half of the weight at distance 100 or more
#
# Take equal scores, ten thousand keys and $a = 1$. For which $p$ of KERPLE's logarithm is half of the
# weight at distance 100 or more? Which slope does ALiBi need for that, and what weight does each keep
# at distance five thousand?
#
# <details><summary>Hint 1</summary>
#
# The share falls as $p$ grows, so halve an interval for $p$ until it is small.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# ALiBi's share beyond $n$ is nearly $e^{-mn}$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# $p$ is close to 1, and the slope to $\ln 2/100$. At five thousand the power law keeps more than
# $e^{-9}$ of the nearest key's weight, and ALiBi less than $e^{-34}$.
#
# ```python
# delta = np.arange(10_000)
# low, high = 0.1, 3.0
# for _ in range(50):
#     middle = (low + high) / 2
#     more = softmax(-middle * np.log1p(delta))[100:].sum() > 0.5
#     low, high = (middle, high) if more else (low, middle)
# assert abs(low - 0.97) < 0.01 and -9 < -low * np.log(5001) < -8
# m = np.log(2) / 100
# assert abs(softmax(-m * delta)[100:].sum() - 0.5) < 0.01 and -35 < -5000 * m < -34
# ```
#
# </details>
#
# ### Exercise 4: A hard window from FIRE
#
# Build with two ReLUs an $f$ that is 0 up to distance 8 and $-30$ from distance 9 on, for $c=1$ and
# $L=50$. At which distance does this wall begin for the query at 200?
#
# <details><summary>Hint 1</summary>
#
# Use one step of the staircase above.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Beyond $L$ the same argument belongs to a larger distance:
# $\psi(\delta)/\psi(200) = \psi(9)/\psi(50)$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# At 200 the bias is $-30$ from the first whole $\delta$ with
# $\ln(1+\delta) \ge \ln 10\cdot\ln 201/\ln 51$, which is 22. The window has grown with the text.
#
# ```python
# a8, a9 = np.log([9, 10]) / np.log(51)
# wall = {"W1": np.full((1, 2), 1 / (a9 - a8)), "b1": -np.array([a8, a9]) / (a9 - a8)}
# wall |= {"W2": np.array([[-30.0], [30.0]]), "b2": np.zeros(1), "c": 1.0, "L": 50.0}
# near = fire_bias(wall, [40], range(41), eps=0)[0, 0, ::-1]
# assert np.abs(near[:9]).max() < 1e-9 and np.allclose(near[9:], -30, rtol=0, atol=1e-9)
# late = fire_bias(wall, [200], range(201), eps=0)[0, 0, ::-1]
# first = int(np.ceil(np.exp(np.log(10) * np.log(201) / np.log(51)) - 1))
# assert np.allclose(late[first:], -30, rtol=0, atol=1e-9) and late[first - 1] > -30 + 1e-6
# assert first == 22
# ```
#
# </details>
#
# ## In practice
#
# | scheme | who uses it | cache | trained | cost | verdict |
# |---|---|---|---|---|---|
# | KERPLE | its authors; an option in NeMo | positions | two numbers per head | one evaluation per distance | ALiBi when far tokens matter |
# | Sandwich | an option in NeMo | positions | nothing | $d/2$ cosines per distance | the bridge from chapter 20 to 35 |
# | FIRE | asked for in [torchtune](https://github.com/meta-pytorch/torchtune/issues/2325); in [DAPE](https://github.com/chuanyang-Zheng/DAPE/blob/bde344a/DAPE.py)'s code | true positions | 32 ReLUs, $c$, $L$ | one evaluation per distance up to $L$, per pair beyond | the most general function of $i$ and distance here |
# | ALiBi, symmetric | data2vec 2.0, jina-bert-v2, [MosaicBERT](https://github.com/mosaicml/examples/pull/132) | no cache in an encoder | nothing | one evaluation per distance | needs something else that tells left from right |
# | ALiBi, half a step | DeepMind's study of positions drawn at random | no cache | nothing | the same | an encoder that must see order |
#
# - In version 5.23 of transformers no model has KERPLE, Sandwich or FIRE.
# - **Fused kernels.** FlashAttention takes slopes and so computes straight lines,
#   [also symmetric ones](https://github.com/Dao-AILab/flash-attention/issues/796). A curved bias
#   must be passed as an array, or computed in blocks. `attention_blockwise` accepts a function of a
#   block's distances ([chapter 12](12_attention_blocks.ipynb)), so KERPLE and Sandwich need no
#   array. FIRE beyond $L$ is not a function of the distance.
# - **In this book's Transformer**: `Kerple`, `Sandwich`, `Fire`.

# %%
from pe_numpy import attention_blockwise

q, k, v = rng.standard_normal((3, 2, 300, 8))  # (H, L, K)
p, a = [0.5, 1.0], [0.25, 1.0]
bias = kerple_log_bias(p, a, relative_distance(range(300), range(300)))
whole = attention(q, k, v, bias=bias)[0]
blocks = attention_blockwise(q, k, v, bias=lambda d: kerple_log_bias(p, a, d), block=64)
assert np.allclose(blocks, whole, rtol=0, atol=1e-12)

# %% [markdown]
# ## Further reading
#
# - T.-C. Chi et al. 2022, *KERPLE: Kernelized Relative Positional Embedding for Length
#   Extrapolation*, [arXiv:2205.09921](https://arxiv.org/abs/2205.09921), and the
#   [code](https://github.com/chijames/KERPLE/tree/25be3d7).
# - T.-C. Chi et al. 2023, *Dissecting Transformer Length Extrapolation via the Lens of Receptive
#   Field Analysis*, [arXiv:2212.10356](https://arxiv.org/abs/2212.10356): Sandwich.
# - S. Li et al. 2024, *Functional Interpolation for Relative Positions Improves Long Context
#   Transformers*, [arXiv:2310.04418](https://arxiv.org/abs/2310.04418): FIRE.
# - I. Schoenberg 1938, *Metric spaces and positive definite functions*: conditional kernels and their
#   exponentials.
#
# **Cards**: [kerple](CARDS.md#kerple), [sandwich](CARDS.md#sandwich), [fire](CARDS.md#fire).
