# %% [markdown]
# # 22. Recurrent positional encodings: RNN, FLOATER
#
# *What if each position is computed from the one before: which steps work, and what happens in continuous time?*
#
# 30 minutes. Needs [20 Sinusoidal positional encoding](20_sinusoidal.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A positional encoding can come from a rule instead of a formula or a table:
# one step turns each position's vector into the next one. You test which steps can be repeated
# often without vectors that grow or shrink. The good steps are rotations. The sinusoidal encoding
# is one of them. With infinitely small steps the rule becomes FLOATER, a published encoding that a
# numerical solver computes. At the end you know what such encodings cost, why errors add up, and
# what changes if an encoding is multiplied with the words.

# %% fold="input" alt="Paths of four steps in the plane: a rotation that shrinks, a rotation, one that grows, and a growing one bounded by tanh. They are a spiral inwards, a circle, a spiral outwards and a smaller closed curve inside the circle."
import math

import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import floater, recurrent, rope, sinusoidal, sinusoidal_shift
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import recurrent as plots

turn, start = sinusoidal_shift(math.pi / 6, 2), [0.0, 1.0]  # a third of a right angle
paths = {f"{g} times a turn": recurrent(start, lambda p, g=g: g * turn @ p, 40) for g in (0.9, 1)}
paths["1.1 times a turn"] = recurrent(start, lambda p: 1.1 * turn @ p, 16)
paths["tanh(1.1 times a turn)"] = recurrent(start, lambda p: np.tanh(1.1 * turn @ p), 40)
plots.step_paths(paths)
plt.show()

# %% [markdown]
# Each panel repeats one step in the plane. The step is a rotation (a *turn*), times 0.9, 1 or 1.1.
# The last panel also applies the function $\tanh$, which limits each component to the range from $-1$
# to 1.
#
# ## Position encodings from a recurrence
#
# A recurrent neural network (RNN) reads a text word by word and carries a state along, so it may
# learn to count, and needs no positional encoding. Now leave the words out and let the recursion run
# by itself. The result depends only on the number of steps, so it is a positional encoding. From a
# start $p_0$ and a **step** $f$,
#
# $$p_{k+1}=f(p_k)$$


# %%
def recurrent_by_loops(start, step, length):
    codes = [list(start)]
    for k in range(length - 1):
        codes.append(list(step(codes[k])))
    return codes


assert recurrent_by_loops([0], lambda p: [p[0] + 1], 5) == [[0], [1], [2], [3], [4]]

# %%
D, c, s = 8, math.cos(math.pi / 6), math.sin(math.pi / 6)
steps = {
    "halve": lambda p: [p[0] / 2, p[1] / 2],
    "double": lambda p: [2 * p[0], 2 * p[1]],
    "turn": lambda p: [c * p[0] + s * p[1], -s * p[0] + c * p[1]],
}
for name, step in steps.items():
    codes = recurrent([0.0, 1.0], step, 31)
    assert np.array_equal(codes, recurrent_by_loops([0.0, 1.0], step, 31))
    sizes = np.linalg.norm(codes[[1, 10, 30]], axis=1)
    print(f"{name:7} length of the encoding at 1, 10 and 30:", *(f"{size:.3g}" for size in sizes))
assert np.allclose(codes, paths["1 times a turn"][:31], rtol=0, atol=1e-12)  # of the picture
halved = recurrent([0.0, 1.0], steps["halve"], 31)[30].astype(np.float32)
assert halved[1] > 0 and (1 + halved == 1).all()
show_source(recurrent)

# %% [markdown]
# Halving forgets. After 30 steps the encoding is so small that adding it to 1 in float32 changes
# nothing. Doubling explodes. The rotation keeps its length.
#
# ### Which linear steps neither vanish nor explode
#
# Let the step be a matrix, $f(p)=Ap$. Take an **eigenvector** $w$ of $A$, which the matrix only
# stretches, $Aw=\lambda w$. Then
#
# $$p_{k+1}=A\,p_k\quad\Longrightarrow\quad p_k=A^k\,p_0,\qquad A^k\,w=\lambda^k\,w$$
#
# The part of $p_0$ along $w$ grows like $|\lambda|^k$. It vanishes for $|\lambda|<1$ and explodes for
# $|\lambda|>1$, so a lasting encoding needs $|\lambda|=1$. Among real numbers these are $1$, which
# changes nothing, and $-1$, which flips the sign. All others are complex,
# $\lambda=e^{\mathrm{i}\theta}=\cos\theta+\mathrm{i}\sin\theta$ with $\mathrm{i}^2=-1$. They come in
# pairs with $e^{-\mathrm{i}\theta}$: a rotation by $\theta$ in a plane. So a step that neither
# vanishes nor explodes and does more than flip is a rotation, perhaps in skewed coordinates. Then the
# encoding goes round an ellipse, and its length changes. (Matrices without enough eigenvectors are
# left out here; with $|\lambda|=1$ their encodings can grow.)

# %%
values, vectors = np.linalg.eig(turn)
print("eigenvalues: sizes", np.abs(values).round(9).tolist(), end=", angles in degrees ")
print(sorted(np.degrees(np.angle(values)).round(6).tolist()))
for gain in (0.9, 1, 1.1):
    p, A = recurrent([0.0, 1.0], lambda p, g=gain: g * turn @ p, 8), gain * turn
    assert np.allclose(p[7], np.linalg.matrix_power(A, 7) @ p[0], rtol=0, atol=1e-12)
    for value, w in zip(values, vectors.T, strict=True):
        power = np.linalg.matrix_power(A, 7) @ w
        assert np.allclose(power, (gain * value) ** 7 * w, rtol=0, atol=1e-12)
p = recurrent([0.0, 3.0], lambda p: turn @ (p / [1, 3]) * [1, 3], 13)  # askew: axes 1 and 3
assert np.allclose(((p / [1, 3]) ** 2).sum(axis=1), 1, rtol=0, atol=1e-12)
assert np.allclose(np.linalg.norm(p[[0, 3, 6]], axis=1), [3, 1, 3], rtol=0, atol=1e-12)

# %% [markdown]
# A step need not be linear. In the last panel of the figure at the top $\tanh$ keeps a growing
# rotation in bounds, and it settles on a closed curve. With the factor 1 it does not. **Predict**
# what it does.

# %% fold="output"
for gain in (1.0, 1.1):
    p = recurrent([0.0, 1.0], lambda p, g=gain: np.tanh(g * turn @ p), 1001)
    sizes = np.linalg.norm(p[[10, 100, 1000]], axis=1)
    print(f"factor {gain}: length at 10, 100, 1000:", *(f"{size:.3f}" for size in sizes))
    assert (sizes[2] > 0.4) == (gain == 1.1)
    assert gain == 1.1 or 2 < sizes[1] / sizes[2] < 4  # about the square root of ten

# %% [markdown]
# The encoding vanishes slowly. One that looks fine on the first positions can fade later.
#
# Every step that depends only on the encoding has another weakness. If two positions get the same
# encoding, everything after them is the same:
#
# $$p_a=p_b\quad\Longrightarrow\quad p_{a+n}=p_{b+n}\quad\text{for every }n$$
#
# With exact numbers a rotation by an angle that is not a fraction of $2\pi$ never comes back. But a
# computer has only finitely many numbers. Round the encoding to two decimals after each step:

# %%
one_radian = sinusoidal_shift(1, 2)  # rotate by one radian, not a fraction of a full rotation
p = recurrent([0.0, 1.0], lambda p: (one_radian @ p).round(2), 2000)
period = int(np.flatnonzero((p == p[0]).all(axis=1))[1])
print(
    f"the encodings repeat every {period} positions; 44 radians are {44 / (2 * math.pi):.3f} rotations"
)
assert np.array_equal(p[:-period], p[period:])
assert not np.allclose(sinusoidal(0, 2), sinusoidal(period, 2), rtol=0, atol=1e-3)

# %% [markdown]
# ## The sinusoidal encoding as a recurrence
#
# [Chapter 20](20_sinusoidal.ipynb) found a matrix that moves every sinusoidal encoding on by $k$
# positions, $PE(pos+k)=M_k\,PE(pos)$. It rotates each pair of components. Take the step $M_1$ and the
# start $PE(0)$, with all sines 0 and all cosines 1. Then
#
# $$p_0=PE(0),\quad p_{k+1}=M_1\,p_k\quad\Longrightarrow\quad p_k=PE(k)$$

# %%
M = sinusoidal_shift(1, D)
codes = recurrent(sinusoidal(0, D), lambda p: M @ p, 10_001)
exact = sinusoidal(np.arange(10_001), D)
assert np.allclose(codes, exact, rtol=0, atol=1e-10)
M32 = M.astype(np.float32)
codes32 = recurrent(sinusoidal(0, D).astype(np.float32), lambda p: M32 @ p, 10_001)
wrong = np.abs(codes32 - exact).max(axis=1)
print("float32, error below 0.000002 at position 10:   ", bool(wrong[10] < 2e-6))
print("float32, error above 0.0001 at position 10,000: ", bool(wrong[10_000] > 1e-4))
growth = math.log(wrong[10_000] / wrong[100]) / math.log(100)  # 1: in proportion to the position
assert 0.9 < growth < 1.2 and wrong[10] < 2e-6 and wrong[10_000] > 1e-4

# %% [markdown]
# Each step inherits the rounding errors of the steps before it, and these add up. In float32 the
# error grows about in proportion to the position. The formula of chapter 20 has no such history.
#
# ### Sequential cost, and doubling for linear steps (second reading)
#
# For a general step, position 1,000 needs 1,000 calls of $f$, each waiting for the last. For a
# *linear* step there is a faster way. If you have the first $m$ encodings, one product gives the next
# $m$:
#
# $$p_{m+k}=A^m\,p_k,\qquad A^{2m}=A^mA^m$$


# %%
def by_doubling(start, A, length):
    codes, power, rounds = np.array([start]), A, 0
    while len(codes) < length:
        codes = np.concatenate([codes, codes @ power.T])  # p_0 .. p_{m-1}, then p_m .. p_{2m-1}
        power, rounds = power @ power, rounds + 1
    return codes[:length], rounds


doubled, rounds = by_doubling(sinusoidal(0, D), M, 10_001)
print("10,001 encodings in", rounds, "rounds")
assert np.allclose(doubled, exact, rtol=0, atol=1e-10) and rounds == math.ceil(math.log2(10_001))

# %% [markdown]
# The parallel scans of linear recurrent models rest on the same idea. With a $\tanh$ between the
# steps, this product no longer works.
#
# ### Learning a linear step by least squares
#
# Suppose that we are shown the encodings of positions 0 to 31 and asked to continue. For a linear
# step this is least squares: find the matrix $A$ with the least
# $\sum_k\lVert p_{k+1}-Ap_k\rVert^2$. At this $A$ the errors are orthogonal to the encodings:
#
# $$\sum_k(p_{k+1}-A\,p_k)\,p_k^\top=0$$
#
# **Predict** how far the learned step works, with exact encodings and with one per cent of noise.


# %% fold="output"
def learn_step(codes):
    A = np.linalg.lstsq(codes[:-1], codes[1:], rcond=None)[0].T
    assert np.allclose((codes[1:] - codes[:-1] @ A.T).T @ codes[:-1], 0, rtol=0, atol=1e-9)
    return A


seen = sinusoidal(np.arange(32), 4)
noise = 0.01 * np.random.default_rng(1).standard_normal(seen.shape)
assert np.allclose(learn_step(seen), sinusoidal_shift(1, 4), rtol=0, atol=1e-9)
for name, shown in (("exact", seen), ("one per cent off", seen + noise)):
    learned = learn_step(shown)
    ahead = recurrent(seen[0], lambda p, A=learned: A @ p, 1001)
    wrong = np.abs(ahead - sinusoidal(np.arange(1001), 4)).max(axis=1)
    print(f"{name:17} error at 31, 100, 1000:", *(f"{wrong[k]:.2f}" for k in (31, 100, 1000)))
assert wrong[[31, 100, 1000]].round(2).tolist() == [0.03, 0.31, 0.84]

# %% [markdown]
# With noise the step is lost beyond its training positions. The rule can be *applied* beyond its
# training length. Whether the encoding is any good there depends on how exactly the step was learned,
# since every error is carried on. And the layers above have not seen those encodings in training,
# however exact they are ([chapter 51](51_extrapolation.ipynb)).
#
# ## FLOATER: a differential equation for positions
#
# FLOATER (Liu et al. 2020) takes the idea to its limit. Why should the encoding jump? Let it flow,
# so that $p(t)$ exists for every real $t$. A function $h$ gives the direction and speed of its
# movement. The step becomes a **differential equation**, $dp/dt=h(p,t)$. The encoding of position
# $k$ is $p(k\,\Delta)$ with some fixed $\Delta$. In the paper $h$ is a small trained network (a
# *neural differential equation*). We start with a known $h$. Take one pair,
# $(\sin\theta t,\cos\theta t)$, and differentiate:
#
# $$\frac{d}{dt}\begin{pmatrix}\sin\theta t\\\cos\theta t\end{pmatrix}=\begin{pmatrix}\theta\cos\theta t\\-\theta\sin\theta t\end{pmatrix}=\begin{pmatrix}0&\theta\\-\theta&0\end{pmatrix}\begin{pmatrix}\sin\theta t\\\cos\theta t\end{pmatrix}$$
#
# So the sinusoidal encoding solves $dp/dt=G\,p$, with one such block per pair. $G$ is
# **antisymmetric**, $G^\top=-G$. Therefore $p^\top Gp=0$, and every solution keeps its length. (The
# difference of two solutions is also a solution. If it is 0 at the start it stays 0, so there is only
# one from each start.)


# %%
def generator(d_model):
    G = np.zeros((d_model, d_model))
    for n in range(d_model // 2):
        theta = 10000 ** (-2 * n / d_model)
        G[2 * n, 2 * n + 1], G[2 * n + 1, 2 * n] = theta, -theta
    return G


G, tiny, q = generator(D), 1e-5, np.random.default_rng(0).standard_normal(D)
for t in (0.0, 0.3, 7.0, 200.5):
    measured = (sinusoidal(t + tiny, D) - sinusoidal(t - tiny, D)) / (2 * tiny)
    assert np.allclose(measured, G @ sinusoidal(t, D), rtol=0, atol=1e-8)
flow = sum(np.linalg.matrix_power(G, n) / math.factorial(n) for n in range(25))
assert np.allclose(flow, M, rtol=0, atol=1e-12) and abs(q @ G @ q) < 1e-12
print("1 + G + G^2/2 + G^3/6 + ... = M_1: after one unit of time the flow is the step")

# %% [markdown]
# ### Euler's method, and how it fails
#
# For a general $h$ we have no formula. Instead we take small straight steps: from $p$, move for a
# time $\varepsilon$ in the direction $h$. This is **Euler's method**,
# $p\leftarrow p+\varepsilon\,h(p,t)$. For one pair with $\theta=1$ a step adds a vector of length
# $\varepsilon\lVert p\rVert$ at a right angle to $p$. By Pythagoras:
#
# $$\lVert p+\varepsilon G\,p\rVert^2=(1+\varepsilon^2)\,\lVert p\rVert^2$$
#
# The vector becomes longer at every step, however small $\varepsilon$ is. **Predict** the length
# after 100 positions with $\varepsilon=1/64$.

# %% fold="output"
turning = generator(2)  # one pair, theta = 1
for epsilon in (1, 1 / 8, 1 / 64):
    p = np.array([0.0, 1.0])
    for _ in range(round(100 / epsilon)):
        longer = p + epsilon * turning @ p
        assert math.isclose(longer @ longer, (1 + epsilon**2) * (p @ p), rel_tol=1e-12)
        p = longer
    print(f"step {epsilon:.3f}: length after 100 positions {np.linalg.norm(p):.3g}")
clock = sinusoidal(6400 * math.atan(1 / 64), 2)  # it rotates a little less than epsilon per step
assert np.allclose(p / np.linalg.norm(p), clock, rtol=0, atol=1e-9)

# %% [markdown]
# Even with 64 steps per position, the length doubles by position 100.
#
# ### The Runge-Kutta method (second reading)
#
# **Runge and Kutta**'s classical method computes the slope four times before it moves. It takes $a$
# at the start of the step, $b$ in the middle, $c$ in the middle again with a better guess, and $d$
# at the end. Then it moves along the mean of the four, with the middle counted double:
#
# $$\begin{gathered}\begin{aligned}a&=h(p,t)&b&=h\big(p+\tfrac\varepsilon2a,\,t+\tfrac\varepsilon2\big)\\c&=h\big(p+\tfrac\varepsilon2b,\,t+\tfrac\varepsilon2\big)&d&=h(p+\varepsilon c,\,t+\varepsilon)\end{aligned}\\[1ex]
#   p(t+\varepsilon)\approx p+\tfrac\varepsilon6\,(a+2b+2c+d)\end{gathered}$$


# %%
def one_step(h, p, t, e):
    a = h(p, t)
    b = h(p + e / 2 * a, t + e / 2)
    c = h(p + e / 2 * b, t + e / 2)
    d = h(p + e * c, t + e)
    return p + e / 6 * (a + 2 * b + 2 * c + d)


ahead = one_step(lambda p, t: turning @ p, np.array([0.0, 1.0]), 0, 1)
print("sin 1 and cos 1:", [round(math.sin(1), 4), round(math.cos(1), 4)], end="; ")
print("one step of size 1:", ahead.round(4).tolist())
assert np.allclose(ahead, [1 - 1 / 6, 1 - 1 / 2 + 1 / 24], rtol=0, atol=1e-15)
assert one_step(lambda p, t: 4 * t**3, 0, 1, 2) == 3**4 - 1**4  # a slope by time: Simpson's rule

# %% [markdown]
# For $dp/dt=Gp$ one step multiplies by $1+\varepsilon G+\dots+(\varepsilon G)^4/24$, the beginning of
# the series of the exact flow. The first omitted term has $\varepsilon^5/120$. One position takes
# $1/\varepsilon$ steps, so the method has **order 4**: twice as many steps divide the error by 16.
#
# $$\text{error after }k\text{ positions}\approx k\,\frac{\varepsilon^4}{120}\qquad(\theta=1)$$
#
# The package's `floater` takes times, not positions, so they may be uneven or run backwards.

# %%
show_source(floater)
print()
counts, errors = [1, 2, 4, 8, 16, 32, 64, 128, 256], []
for n in counts:  # steps for one position
    codes = floater(sinusoidal(0, D), lambda p, t: G @ p, np.arange(11), n)
    errors.append(np.abs(codes - exact[:11]).max())
print(f"8 steps: error {errors[3]:.1e}, by the formula {10 / 8**4 / 120:.1e}")
by_formula = [10 * (1 / n) ** 4 / 120 for n in counts]
assert np.allclose(errors[2:8], by_formula[2:8], rtol=0.2, atol=0) and errors[8] < 5e-11
p = q[:2]
for t, end in ((0.5, 1.25), (1.25, 1.0), (1.0, 4.0)):  # uneven, and once backwards
    p = one_step(lambda p, t: np.sin(p[::-1] * t) + t, p, t, end - t)
bent = floater(q[:2], lambda p, t: np.sin(p[::-1] * t) + t, [0.5, 1.25, 1.0, 4.0], substeps=1)
assert np.allclose(bent[3], p, rtol=0, atol=1e-12)

# %% alt="Error of Euler and of Runge-Kutta over ten positions against the number of steps, both axes logarithmic. Both fall, in the end along straight lines. Runge-Kutta falls four times as steeply, from a tenth to less than a thousand-millionth."
euler_errors = []
for n in counts:
    p = [sinusoidal(0, D)]
    for _ in range(10 * n):
        p.append(p[-1] + G @ p[-1] / n)
    euler_errors.append(np.abs(np.array(p)[::n] - exact[:11]).max())
slopes = np.diff(np.log2([euler_errors, errors]), axis=1)  # by each doubling of the steps
assert np.allclose(slopes[0, 5:], -1, rtol=0, atol=0.1)  # in the end
assert np.allclose(slopes[1] / slopes[0, -1], 4, rtol=0, atol=0.2)
plots.error_against_steps(counts, {"Euler": euler_errors, "Runge-Kutta": errors})
plt.show()

# %% [markdown]
# The price is four calls of $h$ per step, one after another. FLOATER's released code
# (xuanqing94/FLOATER, commit 6f9652f, `flow_transformer.py`) spaces positions by $\Delta=0.01$, so
# that the flow moves little from one to the next. It takes five Runge-Kutta steps for each, and in
# training recomputes the flow only at every 400th call.
#
# ## Is the sinusoidal encoding a special case of FLOATER?
#
# We have shown that the sinusoidal encoding solves an equation whose slope depends on *where the
# encoding is*. The paper uses another equation, whose slope depends on *what time it is* and not on
# the encoding at all (its equation (9), which prints $1/\theta$ for the factor $\theta$):
#
# $$\frac{dp}{dt}=\begin{pmatrix}\theta\cos\theta t\\-\theta\sin\theta t\end{pmatrix}$$
#
# From the start $(0,1)$ both give the sinusoidal encoding. **Predict** what each gives from $(0,2)$.

# %% fold="output" alt="Encodings from two starts under two equations. From the first start, both run on one circle. From the second, the slope by place makes a larger circle, and the slope by time a shifted one."
theta, at = 0.5, np.linspace(0, 12, 97)
by_place = lambda p, t: [theta * p[1], -theta * p[0]]  # noqa: E731
by_time = lambda p, t: [theta * math.cos(theta * t), -theta * math.sin(theta * t)]  # noqa: E731
pair = np.stack([np.sin(theta * at), np.cos(theta * at)], axis=-1)
families = {}
for name, h in (("slope by place, $h(p)$", by_place), ("slope by time, $h(t)$", by_time)):
    families[name] = [floater(first, h, at) for first in ([0.0, 1.0], [0.0, 2.0])]
    second = 2 * pair if h is by_place else pair + [0, 1]
    assert np.allclose(families[name], [pair, second], rtol=0, atol=1e-6)
plots.two_equations(families, every=8)
plt.show()

# %% [markdown]
# If the slope depends on the place, the circle becomes twice as large. If it depends on the time,
# the circle moves up. So "the sinusoidal code is a special case of FLOATER" needs two conditions:
# the right $h$, *and the right start*. (FLOATER gives each layer of the model its own start and
# lets all layers share $h$.)
#
# A more general encoding can also be worse. Compare three flows over 60 positions: a small
# untrained network, the sinusoidal flow, and a rotation with a term that pulls the encoding towards
# length 2, the sinusoidal length for $D=8$. All start a fifth too long. **Predict** which of them
# recovers from that.

# %% fold="output" alt="Distance between neighbouring encodings and length of the encoding over 60 positions, for three flows. The rotation keeps both constant, the encodings of the network come to rest, and the third flow returns to length 2."
rng = np.random.default_rng(0)
W, b = rng.standard_normal((D, D)) / math.sqrt(D), 0.1 * rng.standard_normal(D)
flows = {
    "the turn, $h=Gp$": lambda p, t: G @ p,
    "a network, $h=\\tanh(Wp/2+b)-p$": lambda p, t: np.tanh(W @ p / 2 + b) - p,
    "turn and press, $h=Gp+(4-|p|^2)\\,p$": lambda p, t: G @ p + (4 - p @ p) * p,
}
codes = {name: floater(1.2 * exact[0], h, np.arange(61), substeps=32) for name, h in flows.items()}
gaps = {name: np.linalg.norm(np.diff(code, axis=0), axis=1) for name, code in codes.items()}
lengths = {name: np.linalg.norm(code, axis=1) for name, code in codes.items()}
for code, wanted in zip(codes.values(), (1.2 * exact[:61], None, exact[:61]), strict=True):
    wanted = code[-1] if wanted is None else wanted[40:]
    assert np.allclose(code[40:], wanted, rtol=0, atol=1e-4)
plots.flows_compared(gaps, lengths)
plt.show()

# %% [markdown]
# The network runs into a fixed point, and from there on all positions have the same encoding. The
# rotation keeps its error. The third flow corrects an error of the length.
#
# ## Multiplicative position encodings
#
# So far each encoding was *added* to the word vector $x$. It can also be multiplied with it,
# component by component, $x_k\times p_k$.
#
# **A common mistake.** At position 0 the sinusoidal encoding is $(0,1,0,1,\dots)$. Multiplying by it
# erases every second component of the first word. Multiply by $1+p$, that is, add $x\times p$ to $x$,
# as the package's `Multiplicative` in `pe_numpy/transformer/encodings/token.py` does.
#
# Can a reader recover the position? Let the words be random, with mean 0, and write $\mathbb E$ for
# the mean. Then the sum has the mean $p_k$, and a linear reader finds it. The product has the mean 0
# at every position:
#
# $$\mathbb E[x+p_k]=p_k,\qquad\mathbb E[x\times p_k]=\mathbb E[x]\times p_k=0$$
#
# The position is still there, in the *size* of the components. The next cell fits three readers by
# least squares and scores them on new words. A score of 1 is perfect, and 0 is not better than
# guessing the mean.

# %%
k = np.tile(np.arange(16), 500)
train, test, p = slice(0, 4000), slice(4000, None), sinusoidal(k, 32)
x = np.random.default_rng(3).standard_normal((len(k), 32))
assert np.allclose((x + p[5]).mean(axis=0), p[5], rtol=0, atol=0.05)
assert np.allclose((x * p[5]).mean(axis=0), 0, rtol=0, atol=0.05)
readers = {"linear, x + p": x + p, "linear, x * p": x * p, "of squares, x * p": (x * p) ** 2}
scores = []
for name, features in readers.items():
    rows = np.column_stack([features, np.ones(len(features))])
    best = np.linalg.lstsq(rows[train], k[train], rcond=None)[0]
    scores.append(1 - np.var(k[test] - rows[test] @ best) / np.var(k[test]))
    print(f"{name:17} {max(scores[-1], 0):.1f}")
assert [round(score, 1) for score in scores] == [0.6, 0, 0.7]
assert (exact[0] * x[0, :D])[:4].tolist() == [0, x[0, 1], 0, x[0, 3]]  # the first word, erased

# %% [markdown]
# ### The score of a multiplicative encoding
#
# Adding gives a score of four terms, and one of them, $p_m\cdot p_n$, does not depend on the words
# ([chapter 30](30_expansion.ipynb)). Multiplying gives a single term. Take one pair of components
# with the frequency $\theta$. Write $u$ for the product of the two words' sine components and $v$ for
# the product of their cosine components. By the rules for products of sines and cosines
#
# $$\begin{gathered}u\sin m\theta\sin n\theta+v\cos m\theta\cos n\theta\\[1ex]
#   {}=\frac{u+v}2\cos(m-n)\theta+\frac{v-u}2\cos(m+n)\theta\end{gathered}$$
#
# The second term depends on the *sum* of the positions, so the same two words at the same distance
# score differently further on in the text. The term cancels for all positions only when $u=v$.

# %%
xm, xn = np.random.default_rng(4).standard_normal((2, D))
u, v = (xm * xn)[0::2], (xm * xn)[1::2]
theta = 10000.0 ** (-np.arange(0, D, 2) / D)
for m, n in ((0, 0), (3, 1), (2, 7), (40, 41)):
    pm, pn = sinusoidal([m, n], D)
    waves = (u + v) / 2 * np.cos((m - n) * theta) + (v - u) / 2 * np.cos((m + n) * theta)
    assert math.isclose((xm * pm) @ (xn * pn), waves.sum(), abs_tol=1e-12)

# %% [markdown]
# In one kind of product this term always cancels. Take the pair as one complex number and multiply
# by the complex number $e^{\mathrm{i}m\theta}=\cos m\theta+\mathrm{i}\sin m\theta$. Now the product
# rotates the pair instead of squeezing it. The score is the real part of the following, where a bar
# changes the sign of $\mathrm{i}$:
#
# $$\big(x_m\,e^{\mathrm{i}m\theta}\big)\,\overline{\big(x_n\,e^{\mathrm{i}n\theta}\big)}=x_m\overline{x_n}\;e^{\mathrm{i}(m-n)\theta}$$
#
# Only the difference remains. This is RoPE ([chapter 40](40_rope_derived.ipynb)), a multiplicative
# encoding with the right product. Complex Order ([chapter 24](24_complex_order.ipynb)) multiplies
# word vectors in the same way.

# %%
zm, zn = (w[0::2] + 1j * w[1::2] for w in (xm, xn))  # pairs as complex numbers
for m, n in ((3, 1), (13, 11), (103, 101)):
    turned = (zm * np.exp(1j * m * theta)) * np.conj(zn * np.exp(1j * n * theta))
    assert np.allclose(turned, zm * np.conj(zn) * np.exp(1j * (m - n) * theta), rtol=0, atol=1e-12)
    as_rope = (rope(xm[None], [m]) @ rope(xn[None], [n]).T).item()
    assert math.isclose(turned.sum().real, as_rope, abs_tol=1e-12)
    squeezed = (xm * sinusoidal(m, D)) @ (xn * sinusoidal(n, D))
    print(f"positions {m:3}, {n:3}: rotated {as_rope:.3f}, squeezed {squeezed:.3f}")

# %% alt="Four heat maps of scores over pairs of positions: sum, product with equal weights, product with random words, and complex product. All have stripes along diagonals except the third, which has crossing waves."
P, at = exact[:32], np.arange(32)
equal = np.repeat(np.random.default_rng(5).standard_normal(D // 2), 2)  # u = v in each pair
turned = [rope(np.repeat(w[None], 32, axis=0), at) for w in (xm, xn)]
maps = {
    "sum: only $p_m\\cdot p_n$": P @ P.T,
    "product, $u=v$ in each pair": (equal * P) @ P.T,
    "product, two words": (xm * P) @ (xn * P).T,
    "complex product, two words": turned[0] @ turned[1].T,
}
along = [bool(np.allclose(a[1:, 1:], a[:-1, :-1], rtol=0, atol=1e-9)) for a in maps.values()]
assert along == [True, True, False, True]
plots.product_maps(maps)
plt.show()

# %% [markdown]
# Stripes along the diagonals mean that only the distance decides. The third panel has crossing
# waves, in $m-n$ and in $m+n$.

# %% [markdown]
# ## In short
#
# - **Which linear steps make good encodings?** Rotations, with eigenvalues $e^{\pm\mathrm{i}\theta}$.
#   With $|\lambda|<1$ encodings vanish. With $|\lambda|>1$ they explode. With $\lambda=\pm1$ they
#   don't move, or flip. [Linear steps](#which-linear-steps-neither-vanish-nor-explode).
# - **Is the sinusoidal encoding one of them?** Yes. It starts at $PE(0)$, and its step $M_1$ rotates
#   each pair. [As a recurrence](#the-sinusoidal-encoding-as-a-recurrence).
# - **What is FLOATER?** A recurrence with infinitely small steps. A solver follows $dp/dt=h(p,t)$
#   with a trained $h$. The sinusoidal encoding solves $dp/dt=G\,p$ from its own start.
#   [FLOATER](#floater-a-differential-equation-for-positions).
# - **Does it extrapolate?** The rule can be applied at any length. But a step learned with one per
#   cent of noise is lost beyond its training positions.
#   [Learned step](#learning-a-linear-step-by-least-squares).
# - **Can positions be computed in parallel?** Yes for a linear step: doubling gives 10,001 encodings
#   in 14 rounds. No for a general step.
#   [Doubling](#sequential-cost-and-doubling-for-linear-steps-second-reading).
# - **What if you multiply instead of adding?** Component by component, the score also depends on the
#   *sum* of the positions. With a complex product it is RoPE.
#   [Multiplicative score](#the-score-of-a-multiplicative-encoding).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 22` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 22_recurrent.py` checks yours.
#
# ### Exercise 1: A step by hand
#
# Follow $dp/dt=p$ from $p(0)=1$ to $t=1$ in one step, by Euler's method and by Runge and Kutta's. How
# far is each from $e$?
#
# <details><summary>Hint 1</summary>
#
# The slopes are $a=1$, $b=1+\frac12$, $c=1+\frac12b$, $d=1+c$.
#
# </details>
# <details><summary>Hint 2</summary>
#
# You should find the beginning of the series of $e$.
#
# </details>
# <details><summary>Solution</summary>
#
# Euler gives 2. Runge-Kutta gives $1+1+\frac12+\frac16+\frac1{24}=\frac{65}{24}$, which misses $e$ by
# 0.01.
#
# ```python
# one = floater([1.0], lambda p, t: p, [0, 1], substeps=1)[1, 0]
# assert math.isclose(one, 65 / 24, abs_tol=1e-14)
# assert round(math.e - one, 2) == 0.01
# ```
#
# </details>
#
# ### Exercise 2: Backwards
#
# What is the sinusoidal encoding of position $-3$? Get it from `floater`, from `recurrent` and from
# the formula.
#
# <details><summary>Hint 1</summary>
#
# Times need not ascend.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The inverse of a rotation is its transpose.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# back = floater(sinusoidal(0, D), lambda p, t: G @ p, [0, -3], substeps=64)[1]
# undone = recurrent(sinusoidal(0, D), lambda p: M.T @ p, 4)[3]
# assert np.allclose(back, sinusoidal(-3, D), rtol=0, atol=1e-6)
# assert np.allclose(undone, sinusoidal(-3, D), rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 3: Make the error heal
#
# Take one Euler step for a rotation, and after each step divide the encoding by its length. Does the
# encoding stay on the circle? Is it the sinusoidal encoding?
#
# <details><summary>Hint 1</summary>
#
# Dividing by the length repairs the length. What about the angle?
#
# </details>
# <details><summary>Hint 2</summary>
#
# One step rotates by $\arctan\varepsilon$ and not by $\varepsilon$.
#
# </details>
# <details><summary>Solution</summary>
#
# It stays on the circle but rotates too slowly: its frequency is $\arctan\varepsilon/\varepsilon$.
#
# ```python
# def healed(p):
#     p = p + turning @ p / 8
#     return p / np.linalg.norm(p)
#
# steps_of_eighths = recurrent([0.0, 1.0], healed, 8 * 20 + 1)
# angle = np.arange(161) * math.atan(1 / 8)
# slow_code = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
# assert np.allclose(steps_of_eighths, slow_code, rtol=0, atol=1e-9)
# assert not np.allclose(steps_of_eighths[-1], sinusoidal(20, 2), rtol=0, atol=0.05)
# ```
#
# </details>
#
# ## In practice
#
# **Start again from the formula.** Rotating a stored encoding by one more step, again and again,
# saves sines, but errors add up. Start afresh every hundred steps, or store the angle and not the
# encoding.
#
# **A length, not positions.** `recurrent` and `floater` compute every step up to a position. With a
# KV cache, keep the last encoding. With left padding, begin at the first non-padding token.
#
# **Count the calls.** A solver that chooses its own steps makes training time depend on the weights.
# With a fixed number of steps, as here, the cost is known in advance.

# %%
codes = recurrent(sinusoidal(0, D), lambda p: M @ p, 40)
assert np.array_equal(recurrent(codes[20], lambda p: M @ p, 20), codes[20:])  # from row 20
afresh = [
    recurrent(sinusoidal(k, D).astype(np.float32), lambda p: M32 @ p, 100)
    for k in range(0, 10_000, 100)
]
largest = np.abs(np.concatenate(afresh) - exact[:10_000]).max()
print("float32, restarted every 100: error below 0.00001 up to 10,000:", bool(largest < 1e-5))
assert largest < 1e-5

# %% [markdown]
# ## Further reading
#
# - Liu et al. 2020, "Learning to encode position for Transformer with continuous dynamical model"
#   (arXiv:2003.09229), section 3.1 and equations (8) and (9).
# - Chen et al. 2018, "Neural ordinary differential equations" (arXiv:1806.07366): how a network
#   inside a solver is trained.
# - Su 2021, "Positional encodings of the Transformer" (in Chinese,
#   [kexue.fm/archives/8130](https://kexue.fm/archives/8130)): the survey that names both kinds.
#
# **Cards**: [multiplicative](CARDS.md#multiplicative), [recurrent](CARDS.md#recurrent),
# [floater](CARDS.md#floater).
