# %% [markdown]
# # 20. Sinusoidal positional encoding
#
# *Why sines and cosines, and what do they tell an attention layer?*
#
# 40 minutes. Needs [11 Why attention needs positional encoding](11_why_position.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A Transformer needs one vector per position, with bounded numbers whatever
# the length of the text. Its authors built one from sines and cosines, the sinusoidal positional
# encoding. Think of a row of clocks at different speeds. A position is a time, and its vector lists
# where all the hands point. You compute this vector by hand and in NumPy, and see that a shift of
# the position is a rotation. At the end you know which of its popular properties are proved, and
# which are only hoped for.

# %% fold="input" alt="Four rows of clock faces for positions 0 to 4, one row per pair. All hands start at twelve. The first rotates fast, and each next one about three times slower. Dotted lines show the sine, horizontally, and the cosine, vertically."
import math

import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import attention, sinusoidal, sinusoidal_shift, wavelengths
from pe_numpy.absolute.sinusoidal import turns_of_a_run
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import sinusoidal as plots
from pe_numpy.book.slider import slider

# The first 4 of the 8 pairs of an encoding with D = 16, at positions 0 to 4: (positions, pairs, 2).
codes = sinusoidal(np.arange(5), 16).reshape(5, 8, 2)[:, :4]
plots.clock_faces(codes, 10000.0 ** (-np.arange(4) / 8))
plt.show()

# %% [markdown]
# ## From digits to waves: why a sine and a cosine
#
# In the figure each row shows one clock at the positions 0 to 4. The number at the left of a row is
# the clock's angle per position, in radians. The dotted lines are the sine (across) and the cosine
# (up or down).
#
# We want one vector per position, with bounded numbers that do not depend on the text's length.
# [Chapter 11](11_why_position.ipynb) tries the plain number. A sine is bounded. **Predict:** which
# later positions does $\sin(pos)$ confuse with position 0? Recall that
# $\pi\approx22/7\approx355/113$.

# %% fold="output"
for pos in (0, 1, 2, 3, 22, 355):
    print(f"sin({pos:3}) = {math.sin(pos):8.5f}   sin({pos:3}/1000) = {math.sin(pos / 1000):8.5f}")
assert abs(math.sin(22)) < 0.009 and abs(math.sin(355)) < 0.0001
assert math.sin(1 / 1000) < 0.001

# %% [markdown]
# A fast sine tells neighbours apart but soon repeats: position 355 looks like 0. A slow sine
# repeats late, but neighbouring positions differ by only a thousandth. Counting with digits has
# solved this problem before. The last digits change fast and distinguish near positions. The first
# digits change slowly and distinguish distant ones. But digits jump. From 7 to 8 four binary digits
# change; from 8 to 9 only one does. So we keep the **periods** of the digits and replace the jumps
# with smooth waves.

# %% alt="Two heat maps over positions 0 to 31. Above, binary digits form hard stripes of period 2 to 32. Below, cosines with the same periods have the same rhythm, without jumps."
positions = np.arange(32)
# Drop the last 0, 1, 2, ... binary digits, then keep the last of the rest: (digits, positions).
bits = positions >> np.arange(5)[:, None] & 1
assert np.abs(np.diff(bits, axis=1)).sum(0)[:9].tolist() == [1, 2, 1, 3, 1, 2, 1, 4, 1]
waves = np.cos(2 * np.pi * positions / 2.0 ** np.arange(1, 6)[:, None])
plots.digits_and_waves(1 - 2 * bits, waves)  # digit 0 becomes +1, digit 1 becomes -1
plt.show()

# %% [markdown]
# Within a period one wave takes most values twice, once on the way up and once on the way down. The
# cosine, a second wave a quarter period ahead, tells the two apart. Plot the sine to the right and
# the cosine upwards, and you get the tip of a clock hand. At angle 0 it points to 12, and it turns
# **clockwise**. The **sinusoidal positional encoding** is a row of such clocks with different
# speeds, as in the figure at the top.
#
# ## The sinusoidal formula
#
# Vaswani et al. (2017, section 3.5), below "the paper", give the clocks these speeds. For a
# position $pos = 0, 1, 2, \dots$, an encoding of $D$ components (the paper's $d_{model}$, an even
# number) and the pair $i = 0, \dots, D/2-1$:
#
# $$\begin{aligned}PE_{(pos,\,2i)}&=\sin\frac{pos}{10000^{2i/D}}\\[1ex]
#   PE_{(pos,\,2i+1)}&=\cos\frac{pos}{10000^{2i/D}}\end{aligned}$$
#
# We write $\theta_i=10000^{-2i/D}$ for the **angular frequency** of pair $i$: the angle, in
# radians, by which its hand turns at each step. ([Chapter 0](00_how_to_read.ipynb#letters-for-axes)
# calls a pair $c$. Here it is $i$, as in the paper.) By hand: for $D=4$ there are two pairs, with
# $\theta_0=1$ and $\theta_1=1/100$, so position 2 has the encoding
# $(\sin 2,\cos 2,\sin 0.02,\cos 0.02)$.


# %%
def sinusoidal_by_loops(length, d_model):
    code = np.zeros((length, d_model))
    for pos in range(length):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            code[pos, 2 * i] = math.sin(angle)
            code[pos, 2 * i + 1] = math.cos(angle)
    return code


by_hand_of_2 = [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)]
assert np.allclose(sinusoidal_by_loops(3, 4)[2], by_hand_of_2, rtol=0, atol=1e-14)
print([round(x, 8) for x in by_hand_of_2])

# %% [markdown]
# **A common mistake.** $i$ numbers *pairs*. If it runs over all components, the indices run past
# the end of the vector. And positions count from 0: position 2 belongs to the third token.
#
# The package's function takes **positions** of any shape, not a length, so shifted, padded or
# fractional positions need no special treatment. For a run of many positions it takes a [short
# cut](#a-long-run-of-positions-from-few-sines-second-reading), not shown here, to the same
# encodings up to rounding.

# %%
show_source(sinusoidal)
assert np.allclose(sinusoidal(np.arange(50), 12), sinusoidal_by_loops(50, 12), rtol=0, atol=1e-12)
assert sinusoidal([[0, 1, 2.5], [5, 6, 7]], 4).shape == (2, 3, 4)

# %% [markdown]
# Every hand has length 1. So every encoding has the same norm, at every position:
#
# $$\|PE(pos)\|^2=\sum_{i=0}^{D/2-1}\big(\sin^2 pos\,\theta_i+\cos^2 pos\,\theta_i\big)=\frac D2$$

# %%
for d in (4, 64, 512):
    norms = np.linalg.norm(sinusoidal(np.arange(1000), d), axis=-1)
    assert np.allclose(norms**2, d / 2, rtol=0, atol=1e-10)
    print(f"D = {d:3}: every norm is {norms[0]:.4f}")

# %% [markdown]
# ## Wavelengths: how long is a turn?
#
# The angle at a position, $pos\,\theta_i$, is the **phase**. A full turn is $2\pi$. So a hand is
# back where it started after one **wavelength** (or period)
#
# $$\lambda_i=\frac{2\pi}{\theta_i}=2\pi\cdot10000^{2i/D}$$

# %%
show_source(wavelengths)
for i, wavelength in enumerate(wavelengths(8)):
    assert abs(wavelength - 2 * math.pi * 10000 ** (2 * i / 8)) < 1e-9
    quarter, back = sinusoidal([wavelength / 4, wavelength], 8)[:, 2 * i : 2 * i + 2]
    assert np.allclose([quarter, back], [[1, 0], [0, 1]], rtol=0, atol=1e-12)  # 3 and 12 o'clock
print("\nD = 8:", wavelengths(8).round(2).tolist(), " 2 pi 10000:", round(20000 * math.pi, 2))
for d in (64, 512):
    print(f"D = {d}: {wavelengths(d)[0]:.4f} to {wavelengths(d)[-1]:.4f}")

# %% [markdown]
# The wavelengths form a geometric sequence: each is the one before times $10000^{2/D}$. The first
# is $2\pi$ for every width. The last, $2\pi\cdot10000^{(D-2)/D}$, comes near $2\pi\cdot10000$ in a
# wide encoding. RoPE, the encoding of [chapter 40](40_rope_derived.ipynb), has the same number in
# its formula, and [chapter 50](50_scaling.ipynb) changes it for longer texts.
#
# ### Why 10000? (second reading)
#
# The paper names the range, from $2\pi$ to $10000\cdot2\pi$, but gives no reason for it. So let us
# see what another base $b$ would do. The similarity of two encodings, their dot product divided by
# $D/2$, is the mean of $\cos k\theta_i$ over the pairs, where $k$ is the distance of the positions
# ([below](#the-dot-product-depends-only-on-distance)). Pairs that have turned by much more than a
# radian cancel on average. For pairs that have turned by less, a share of about $1-\ln k/\ln b$,
# the cosine is nearly 1. More exactly, in a wide encoding and for $1\ll k\ll b$,
#
# $$\text{mean similarity at distance }k\approx1-\frac{\ln k+\gamma}{\ln b}$$
#
# with $\gamma=0.577\ldots$, Euler's constant. The mean similarity falls by the same amount with
# each doubling of $k$, and is about 0 near $k=b$.

# %%
bases, D = (100, 5000, 10000, 20000, 500000), 512
starts, near, ends = 2 ** np.arange(18), {}, {}  # windows of distances, k to 2k - 1
print("    base   last wavelength   pairs that rotate within 512   neighbours apart by")
for b in bases:
    theta = 2 * np.pi / wavelengths(D, b)
    spread = [np.arange(k, 2 * k, max(1, k // 500)) for k in starts]
    near[b] = np.array([np.cos(k[:, None] * theta).mean() for k in spread])
    formula = [1 - (np.log(k).mean() + np.euler_gamma) / math.log(b) for k in spread]
    last = int(math.log2(b / 10))  # the windows before it end by b/10
    assert np.allclose(near[b][2:last], formula[2:last], rtol=0, atol=0.02)
    assert np.allclose(near[b][last + 5 :], 0, rtol=0, atol=0.07)  # from 1.6 b on
    turned, step = (theta * 512 >= 2 * np.pi).mean(), math.sqrt(np.mean(2 - 2 * np.cos(theta)))
    print(f"{b:8} {2 * np.pi / theta[-1]:17.0f} {turned:30.0%} {step:21.3f}")
    ends[b] = np.array([turned, step])

# %% alt="Mean similarity of two encodings over their distance on a logarithmic axis, for bases 100, 10000 and 500000. Three lines fall from 1 towards zero at their base; two reach it and stay near it."
like_10000 = [b for b in bases if (abs(ends[b] / ends[10000] - 1) < 0.1).all()]
assert like_10000 == [5000, 10000, 20000]
plots.base_horizons(starts * 1.5, {b: near[b] for b in (100, 10000, 500000)})
plt.show()

# %% [markdown]
# With a **small base** the fall ends early: with 100, distant and very distant positions look the
# same on average. With a **large base** it reaches further, at a price. Within a text of 512
# positions fewer pairs make a full turn, and the encodings of neighbours are closer together (the
# last column is relative to the norm). Nothing special happens at 10000, since half and twice as
# much change the last two columns by less than a tenth. It is a choice, not a theorem.
#
# ## A table of encodings as a heat map
#
# **Predict:** what do the slowest components look like within 100 positions, for $D=64$? In this
# book's signed maps red is positive and blue negative.

# %% fold="output" alt="Heat map of 64 components over 100 positions, above three pairs of components as curves. Low components oscillate fast and high ones barely change. Each cosine runs a quarter period ahead of its sine."
pe, dims = sinusoidal(np.arange(100), 64), [0, 1, 10, 11, 30, 31]
plots.table_and_curves(pe, dims)
plt.show()

# %% [markdown]
# The slow sines are still near 0 (white) and the slow cosines near 1 (red). In each strip, which
# shows one pair, the dashed cosine runs a quarter period ahead. All waves have the same height;
# only their rate falls.
#
# ## The distance between two encodings
#
# Two hands of length 1 have the angle $k\theta_i$ between them. Their tips are the ends of a chord
# of length $2|\sin(k\theta_i/2)|$. This length does not depend on the position, only on the offset
# $k$. Add up the squares, with $4\sin^2(\alpha/2)=2-2\cos\alpha$:
#
# $$\|PE(pos+k)-PE(pos)\|^2=\sum_{i=0}^{D/2-1}\big(2-2\cos k\theta_i\big)$$


# %%
def distance(k, d_model):
    theta = 2 * np.pi / wavelengths(d_model)
    return np.sqrt((2 - 2 * np.cos(np.asarray(k)[..., None] * theta)).sum(-1))


ends = np.array([[0, 1], [60000, 60001], [7, 47], [1000, 1040]])
for d in (16, 64, 512):
    measured = np.linalg.norm(np.diff(sinusoidal(ends, d), axis=1)[:, 0], axis=-1)
    assert np.allclose(measured, distance([1, 1, 40, 40], d), rtol=0, atol=1e-9)
    print(f"D = {d:3}: neighbours are {distance(1, d):.4f} apart, at position 0 as at 60000")

# %% [markdown]
# ### Is the encoding unique?
#
# *There is never an exact repeat at whole positions.* Pair 0 turns by 1 radian per step. After
# $k>0$ steps it is back where it started only if $k=2\pi z$ for a whole number $z$, which is
# impossible because $\pi$ is irrational. So no two whole positions share an encoding: this is
# proved. Positions that are not whole can share one. In exact arithmetic, for $D=4$, position
# $200\pi$ has the encoding of position 0.
#
# ### How close do two encodings come? (second reading)
#
# For each width, ask whether any offset up to 200000 brings an encoding closer than its direct
# neighbour. Each pair can only increase the squared distance, so the cell drops an offset as soon
# as its sum is too large.


# %%
def rivals(d_model, than=1, last=200000):
    """Offsets from 2 to `last` whose encodings are nearer than the one at offset `than`."""
    k, gap = np.arange(2, last + 1), 0.0
    bound = distance(than, d_model) ** 2
    for theta in 2 * np.pi / wavelengths(d_model):
        gap = gap + 2 - 2 * np.cos(k * theta)
        k, gap = k[gap < bound], gap[gap < bound]
    return k


assert np.allclose(*sinusoidal([0, 200 * np.pi], 4), rtol=0, atol=1e-12)  # no whole position
for d in (8, 14, 16, 64):
    print(f"D = {d:2}: offsets nearer than the neighbour: {len(rivals(d))}")
assert all(len(rivals(d)) > 0 for d in range(2, 15, 2))
assert all(len(rivals(d)) == 0 for d in [*range(16, 65, 2), 80, 96, 128, 256, 512, 768, 1024])


# %% alt="Range of the distance between encodings over offsets up to 200000, for D = 8 and D = 64. For 8 it falls close to zero again and again; for 64 it stays far above the distance of neighbours."
def envelope(d_model, block=2000, last=200000):
    k = np.arange(1, last + 1).reshape(-1, block)
    gaps = np.stack([distance(row, d_model) for row in k])  # (blocks, block)
    return np.stack([k[:, block // 2], gaps.min(1), gaps.max(1)]), gaps.reshape(-1)


curves = []
for d in (8, 64):
    blocks, gaps = envelope(d)
    far = 1000 + int(np.argmin(gaps[999:]))
    curves.append((f"D = {d}", blocks, gaps[0], far, gaps[far - 1]))
    print(f"D = {d:2}: from offset 1000 on the closest is {far}, at {gaps[far - 1]:.4f}")
plots.distance_envelopes(curves)
plt.show()

# %% [markdown]
# With 4 clocks the encoding almost repeats again and again. With 32 no distant offset shown comes
# nearer than 5.9412, four times as far as the neighbour (dashed). With no limit on the length every
# width has near repeats, because infinitely many vectors of the same norm cannot all stay some
# fixed distance apart (Dirichlet's argument).
#
# ## The dot product depends only on distance
#
# Attention compares by dot products, and the dot product of two hands of length 1 is the cosine of
# the angle between them. Write $p_m$ and $p_n$ for the encodings of two positions, $m$ of the query
# and $n$ of the key. With $\cos(\alpha-\beta)=\cos\alpha\cos\beta+\sin\alpha\sin\beta$ in each
# pair,
#
# $$\begin{gathered}p_m\cdot p_n=\sum_{i=0}^{D/2-1}\cos\big((m-n)\,\theta_i\big)=f(m-n)\\
#   f(-k)=f(k)\end{gathered}$$


# %%
def f(k, d_model):
    return np.cos(np.asarray(k)[..., None] * 2 * np.pi / wavelengths(d_model)).sum(-1)


p = sinusoidal(np.arange(40), 64)
distances = np.arange(40)[:, None] - np.arange(40)  # m - n
assert np.allclose(p @ p.T, f(distances, 64), rtol=0, atol=1e-11)
assert np.allclose(p @ p.T, f(distances.T, 64), rtol=0, atol=1e-11)  # f(n - m) = f(m - n)
print("f(0), f(1), ... f(4):", f(np.arange(5), 64).round(2).tolist())
print(f"f(3) = {f(3, 64):.4f},  f(-3) = {f(-3, 64):.4f}: no sense of direction")

# %% [markdown]
# Does $f$ fall with the distance? On average it does ([why](#why-10000-second-reading)).
# **Predict:** for $D=128$, how often in the first 200 steps does it *rise*?

# %% fold="output" alt="The dot product over distances 0 to 60 for D = 16, 64, 128 and 512, divided by its value at 0. All curves fall on average, with waves. A triangle marks the first rise of each."
rises = {}
for d in (16, 64, 128, 512):
    steps = np.diff(f(np.arange(201), d))
    rises[d] = int(np.argmax(steps > 0)) + 1
    print(f"D = {d:3}: first rise at distance {rises[d]:2}, {(steps > 0).sum()} rises in 200 steps")
assert [rises[d] for d in (64, 128, 512)] == [6, 12, 44]
plots.dot_products({d: f(np.arange(61), d) for d in (16, 64, 128, 512)}, rises)
plt.show()

# %% [markdown]
# "The dot product decays with the distance" is a tendency, not a law. Change the base and the width
# in the figure below. Can a larger width make up for a base of 10?


# %%
def similarity(base, width):
    code = sinusoidal(np.arange(61), width, base=base)
    values = code @ code[0] / (width / 2)
    low = int(values.argmin())
    return {"f": (np.arange(61), values)}, f"lowest at distance {low}: {values[low]:.2f}"


slider(
    "Dot product of two encodings over their distance, divided by its value at 0",
    {"base": [10, 100, 1000, 10000, 100000], "width D": [8, 16, 64, 128, 512]},
    similarity, ("distance", "share of f(0)"), limits=(0, 60, -1, 1), start=(3, 2),
)  # fmt: skip

# %% [markdown]
# It cannot. More width adds clocks, but with base 10 every wavelength stays below $2\pi\cdot10$, so
# the fall ends early at every width.
#
# ### What the projections do to the dot product
#
# Attention does not compare the encodings themselves. A token with the learned vector $e_m$ enters
# as the row $e_m+p_m$. Its query is $(e_m+p_m)W_Q$, its key $(e_m+p_m)W_K$, and the score is a
# query times a key. If you multiply this out, three terms contain a token's vector ([chapter
# 30](30_expansion.ipynb)), and the fourth is the **position term** $p_mW_QW_K^\top p_n^\top$. With
# a random matrix $W$ instead of $W_QW_K^\top$ it is not a function of $m-n$ any more. The cell
# shows three different scores at the same distance.

# %%
W = np.random.default_rng(0).standard_normal((8, 8))  # stands for W_Q W_K^T
p = sinusoidal(np.arange(4), 8)
for m in (1, 2, 3):
    raw, projected = p[m] @ p[m - 1], p[m] @ W @ p[m - 1]
    print(f"positions {m}, {m - 1}: raw {raw:.4f}, with W between {projected:.4f}")
    assert abs(raw - f(1, 8)) < 1e-12
assert [round(float(p[m] @ W @ p[m - 1]), 4) for m in (1, 2, 3)] == [1.6682, 3.2304, 0.3964]

# %% [markdown]
# Is the dependence on distance lost? No, some matrices keep it. We find them by shifting the
# clocks.
#
# ## The shift matrix: one rotation for every position
#
# Move every clock forward by $k$ positions. The hand of pair $i$ turns by $k\theta_i$, no matter
# where it points. By the addition theorems, with $\alpha=pos\,\theta_i$ and $\beta=k\,\theta_i$,
# the new pair is $\sin(\alpha+\beta)=\sin\alpha\cos\beta+\cos\alpha\sin\beta$ and
# $\cos(\alpha+\beta)=\cos\alpha\cos\beta-\sin\alpha\sin\beta$. That is why a pair needs both sine
# and cosine: the new sine and the new cosine each contain both old ones. The new pair is linear in
# the old one, with coefficients that contain $k$ but not $pos$:
#
# $$\begin{pmatrix}PE_{(pos+k,\,2i)}\\PE_{(pos+k,\,2i+1)}\end{pmatrix}=\begin{pmatrix}\cos k\theta_i&\sin k\theta_i\\-\sin k\theta_i&\cos k\theta_i\end{pmatrix}\begin{pmatrix}PE_{(pos,\,2i)}\\PE_{(pos,\,2i+1)}\end{pmatrix}$$
#
# In textbooks the rotation matrix has its minus sign in the upper row. Here it is in the lower row,
# because the pair is (sine, cosine) and the hand turns clockwise.

# %%
d, k = 8, 3
for i in range(d // 2):
    a = k * 10000 ** (-2 * i / d)
    clockwise = np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])
    for pos in (0, 1, 17, 500):
        before, after = sinusoidal([pos, pos + k], d)[:, 2 * i : 2 * i + 2]
        assert np.allclose(clockwise @ before, after, rtol=0, atol=1e-12)
        misses = np.linalg.norm(clockwise.T @ before - after)  # the other way: a chord over 2a
        assert abs(misses - 2 * abs(np.sin(a))) < 1e-12
print("the transpose rotates in the other direction: it misses pair", i, f"by {misses:.4f}")

# %% [markdown]
# Put the $D/2$ small matrices along the diagonal of a large one, $M_k$, and one matrix product
# shifts the whole encoding:
#
# $$PE(pos+k)=M_k\,PE(pos)\quad\text{for every } pos$$

# %%
show_source(sinusoidal_shift)
for k in (0, 2.5, 5):
    M, positions = sinusoidal_shift(k, 64), np.arange(200)
    after = sinusoidal(positions + k, 64)
    assert np.allclose(sinusoidal(positions, 64) @ M.T, after, rtol=0, atol=1e-11)  # as rows
print("\nM_3 for D = 4:", sinusoidal_shift(3, 4).round(2).tolist())

# %% [markdown]
# **Predict:** what is $M_3M_4$, what is the inverse of $M_k$, and what is $M_0$? Turn the clocks in
# your head.

# %% fold="output" alt="Four planes, one per pair, with the hands of position 2 and of position 5 and the arc between them. Every hand rotates clockwise, by 3 radians, then 0.95, 0.3 and 0.09."
a, b = sinusoidal_shift(3, 16), sinusoidal_shift(4, 16)
assert np.allclose(a @ b, sinusoidal_shift(7, 16), rtol=0, atol=1e-12)  # offsets add
assert np.allclose(a.T, sinusoidal_shift(-3, 16), rtol=0, atol=1e-12)  # the transpose goes back
assert np.allclose(a @ a.T, np.eye(16), rtol=0, atol=1e-12)  # lengths and angles stay
assert np.array_equal(sinusoidal_shift(0, 16), np.eye(16))
print("M_3 M_4 = M_7,  M_3^T = M_-3,  M_0 = I")
before, after = sinusoidal([2, 5], 16).reshape(2, 8, 2)[:, :4]
plots.shift_in_planes(before, after, 3 * 10000.0 ** (-np.arange(4) / 8))
plt.show()

# %% [markdown]
# The figure goes from position 2 to position 5: in each plane the same offset is a turn by a
# different angle. [Chapter 40](40_rope_derived.ipynb) rotates queries and keys in the same way, and
# gets RoPE.
#
# ### A long run of positions from few sines (second reading)
#
# The addition theorems also save work. A sine is expensive to compute, and a product is cheap. To
# reach 1,000 consecutive positions, it is enough to know the sines and cosines of every 32nd
# position and of the first 32 steps. The package writes $\cos\alpha+i\sin\alpha$ as one complex
# number, since the product of two such numbers is $\cos(\alpha+\beta)+i\sin(\alpha+\beta)$.

# %%
show_source(turns_of_a_run)
run, any_order = np.arange(1000), np.random.default_rng(0).permutation(1000)
one_by_one = sinusoidal(any_order, 64)  # no run: each sine is computed
assert np.allclose(sinusoidal(run, 64)[any_order], one_by_one, rtol=0, atol=1e-12)
far = sinusoidal(10**9 + any_order, 64)  # an angle of a billion is rounded to some 1e-7
assert 1e-8 < np.abs(sinusoidal(10**9 + run, 64)[any_order] - far).max() < 1e-6
coarse, fine = range(0, 1000, 32), range(32)
print("\nsines of a pair at 1,000 positions, from those of", len(coarse) + len(fine), "angles")

# %% [markdown]
# ### Which matrices keep relative distance (second reading)
#
# Let $C(a)$ be the clockwise matrix of the angle $a$. Build $W$ from blocks $h_i\,C(a_i)$ along the
# diagonal, with any angles $a_i$ and heights $h_i$. Then, with encodings as columns,
#
# $$p_m^\top W p_n=\sum_i h_i\cos\big((m-n)\,\theta_i-a_i\big)$$
#
# is a function of the distance again. It is a sum of waves whose heights and starting points you
# may choose. The angles also break the symmetry between past and future.

# %%
rng = np.random.default_rng(0)
heights, offsets = rng.standard_normal(4), rng.uniform(0, 2 * np.pi, 4)
W = np.zeros((8, 8))
for i, (h, a) in enumerate(zip(heights, offsets, strict=True)):
    block = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
    W[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = h * np.array(block)
p = sinusoidal(np.arange(40), 8)
angles = distances[..., None] * 2 * np.pi / wavelengths(8)
assert np.allclose(p @ W @ p.T, (heights * np.cos(angles - offsets)).sum(-1), rtol=0, atol=1e-12)
for m, n in ((1, 0), (2, 1), (0, 1)):
    print(f"positions {m}, {n}: score {p[m] @ W @ p[n]:.4f}")

# %% [markdown]
# Are there others? The score must not change when both positions move by one, and the encodings
# span the whole space, so $M_1^\top WM_1=W$. These are linear equations for the entries of $W$. For
# $D=8$ the family above has eight parameters, a height and an angle for each pair. Count the
# linearly independent solutions.

# %%
M = sinusoidal_shift(1, 8)
equations = np.kron(M.T, M.T) - np.eye(64)  # acts on the 64 entries of W, row after row
sizes = np.linalg.svd(equations, compute_uv=False)  # a zero for each free solution
print("free solutions:", int((sizes < 1e-9).sum()))
assert np.allclose(equations @ W.ravel(), 0, rtol=0, atol=1e-12)  # W from above is one
assert (sizes < 1e-9).sum() == 8 and (sizes > 1e-3).sum() == 56
assert np.linalg.matrix_rank(sinusoidal(np.arange(6000), 8)) == 8

# %% [markdown]
# So the family contains all solutions: the position term is a function of $m-n$ exactly when $W$
# consists of such blocks. The reason is the same for every width: $W$ must commute with $M_1$,
# whose $D$ eigenvalues all differ.
#
# ### A head that looks three back
#
# The shift $M_k$ is itself the simplest of the matrices with which the score depends only on the
# distance. Put $W=M_k$ between two encodings:
#
# $$p_m^\top M_k\,p_n=p_m\cdot p_{n+k}=f(m-n-k)$$
#
# The score is largest at $n=m-k$, and it *has* a direction. That is the paper's reason for sines
# and cosines: "we hypothesized it would allow the model to easily learn to attend by relative
# positions". It shows what a model *can* learn, not what it does learn. A trained encoder, MiniLM, has
# such a head for one position back ([chapter
# 80](80_real_table.ipynb#a-head-that-attends-to-the-previous-token)).

# %% alt="Three heat maps of scores, query position against key position. The unprojected encodings give a band on the diagonal, a random matrix gives no band, and the shift matrix gives a band shifted by three."
p = sinusoidal(np.arange(24), 64)
distances = np.arange(24)[:, None] - np.arange(24)
looks_back = p @ sinusoidal_shift(3, 64) @ p.T  # scores of position against position, (L, S)
assert np.allclose(looks_back, f(distances - 3, 64), rtol=0, atol=1e-11)
assert looks_back.argmax(1)[3:].tolist() == list(range(21))  # query m is drawn to key m - 3
_, weights = attention(p @ sinusoidal_shift(3, 64), p, p, scale=1.0)  # with the softmax
print("weights of query 10 on keys 6 to 9:", weights[10, 6:10].round(3).tolist())
random_W = np.random.default_rng(0).standard_normal((64, 64)) / 8
maps = [p @ p.T, p @ random_W @ p.T, looks_back]
plots.score_maps(maps, ("$W = I$", "$W$ random", "$W = M_3$"))
plt.show()

# %% [markdown]
# A dot marks the largest score of each query (row). A random matrix destroys the band; $M_3$ moves
# it three keys into the past.
#
# ### Is a narrow head enough? (second reading)
#
# A head whose $W_Q$ and $W_K$ are $D\times K$ is not quite $M_3$, because its product has rank at
# most $K$ and $M_3$ has rank $D$. All singular values of $M_3$ are 1, so every matrix of rank $K$
# misses it by at least $\sqrt{(D-K)/D}$ of its size (Eckart and Young). This is 94% for $D=512$ and
# $K=64$. To look three positions back, such a matrix is enough. The head below keeps the 32 fastest
# of the 256 pairs.

# %%
D, K = 512, 64
M, p = sinusoidal_shift(3, D), sinusoidal(np.arange(1000), D)
W_Q, W_K = np.eye(D, K), M[:K].T  # (D, K)
missed = np.linalg.norm(M - W_Q @ W_K.T) / np.linalg.norm(M)
print(f"the head misses M_3 by {100 * missed:.0f} %, and still finds the key three back")
assert abs(missed - math.sqrt((D - K) / D)) < 1e-9
assert ((p @ W_Q) @ (p @ W_K).T).argmax(1)[3:].tolist() == list(range(997))

# %% [markdown]
# ## Adding the encoding to scaled token embeddings
#
# The encoding is added to the vector $e$ of the token. Why it is not concatenated is shown in
# [chapter 11](11_why_position.ipynb). The paper (section 3.4) first multiplies the token's vector
# by $\sqrt D$:
#
# $$x=\sqrt D\;e_{token}+PE(pos)$$
#
# The need for the factor depends on how $e$ was drawn. The encoding has the norm $\sqrt{D/2}$, 16
# for $D=512$. Vectors drawn with variance $1/D$ have norm 1, and without the factor the encoding is
# 16 times as long as they are. With variance 1 from the start (the default of `nn.Embedding` in
# PyTorch) no factor is needed.

# %%
D = 512
small = np.random.default_rng(0).standard_normal((1000, D)) / math.sqrt(D)  # variance 1/D
for name, factor in (("as drawn", 1), ("times sqrt(D)", math.sqrt(D))):
    x = factor * small + sinusoidal(7, D)
    words, sums = np.linalg.norm(factor * small, axis=-1), np.linalg.norm(x, axis=-1)
    angle = (np.sum(factor * small * x, axis=-1) / words / sums).mean()
    print(f"{name:13}: norm {words.mean():5.2f} beside 16; cosine of word and sum {angle:.2f}")
assert np.allclose(x - sinusoidal(7, D), small * D**0.5, rtol=0, atol=1e-12)
assert np.isclose(words.mean(), math.sqrt(D), rtol=0.01, atol=0) and angle > 0.8

# %% [markdown]
# ## Sinusoidal encodings beyond the training length
#
# *Can the encoding be computed at these positions?* Yes, at every position. *Does a trained model
# work there?* The paper says only that the encoding "may allow the model to extrapolate". Press et
# al. (2022) measured that models degrade soon after the training length; [chapter
# 71](71_study.ipynb) trains some models and measures this. Why would a model fail where the
# encoding exists? It learns functions *of* the encoding from the positions it was trained on. A
# simple example is to read the position back, by a linear map fitted on positions 0 to 511 (least
# squares that also keeps the weights small). **Predict** its error within this range, and beyond
# it.


# %% fold="output"
def with_one(positions):
    return np.concatenate([sinusoidal(positions, 64), np.ones((len(positions), 1))], axis=1)


seen, unseen = np.arange(512), np.arange(512, 1024)
A = with_one(seen)
readout = np.linalg.solve(A.T @ A + 1e-3 * np.eye(65), A.T @ seen)
inside = np.abs(A @ readout - seen).max()
beyond = np.abs(with_one(unseen) @ readout - unseen).max()
print(f"largest error at positions 0-511: {inside:.1f};  at 512-1023: {beyond:.0f}")
assert inside < 5 and beyond > 20 * inside

# %% [markdown]
# Nothing is wrong with the encodings of 512 to 1023; the *function* was not fitted there. This
# example is not a Transformer. But it shows that an encoding which can be computed need not work.
#
# ## Interleaved or concatenated layout
#
# The paper interleaves: sine, cosine, sine, cosine. Many programs put all sines first. That is a
# **permutation** $\sigma=(0,2,4,\dots,1,3,5,\dots)$ of the components:
#
# $$PE^{concatenated}_j=PE^{interleaved}_{\sigma(j)}$$

# %%
d = 8
order = np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)])
paper = sinusoidal(np.arange(50), d)
concatenated = sinusoidal(np.arange(50), d, layout="concatenated")
assert np.array_equal(concatenated, paper[:, order])
assert np.allclose(concatenated @ concatenated.T, paper @ paper.T, rtol=0, atol=1e-12)
print("order:", order.tolist())

# %% [markdown]
# The permutation changes no dot product of two encodings, and a linear layer that follows can undo
# it. But weights trained with one layout are wrong for the other.
#
# **Two axes.** For the rows and columns of an image, half of the components encode the row and half
# encode the column, as [chapter 25](25_grid.ipynb#one-index-is-not-enough-for-an-image) shows.
#
# ## Precision: float16 and bfloat16
#
# The package computes in float64, but training often runs in 16 bits. What happens when *positions*
# or *angles* are rounded, rather than the finished encoding? float32 keeps 24 significant binary
# digits, float16 11, bfloat16 8. NumPy has no bfloat16. A bfloat16 number is a float32 number with
# half of its bits rounded away.


# %%
def bfloat16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    bits = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))  # ties to even
    return (bits & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


casts = {
    "float32": lambda x: np.asarray(x, np.float32).astype(np.float64),
    "float16": lambda x: np.asarray(x, np.float16).astype(np.float64),
    "bfloat16": bfloat16,
}
for name in ("float16", "bfloat16"):
    kept = casts[name](np.arange(4096))
    print(f"{name:8}: first lost position {int(np.argmax(kept != np.arange(4096)))}")
assert bfloat16(1001.9) == 1000 and bfloat16(1002.1) == 1004  # a step of 4 near 1000


# %% alt="Largest error of the encoding over position on logarithmic axes, for angles in float32, float16 and bfloat16, and for a bfloat16 cast at the end. The first three lines rise, and the fourth is flat."
def largest_error(pos, cast, d_model=64):
    angles = pos[:, None] * (2 * np.pi / wavelengths(d_model))
    return np.abs(np.sin(cast(angles)) - np.sin(angles)).max()


starts = 4 ** np.arange(8)  # positions 1, 4, 16, ... 16384, and up to 255 after each
blocks = [np.arange(start, min(2 * start, start + 256)) for start in starts]
errors = {f"{n} angles": np.array([largest_error(b, c) for b in blocks]) for n, c in casts.items()}
exact = [sinusoidal(block, 64) for block in blocks]
last = np.array([np.abs(bfloat16(code) - code).max() for code in exact])
assert errors["float32 angles"][7] < 1e-2 < errors["float16 angles"][5]
assert last.max() < 0.002 < 0.5 < errors["bfloat16 angles"][5]
plots.precision_curves(starts, {**errors, "bfloat16, cast last": last})
plt.show()

# %% [markdown]
# With angles rounded to 16 bits the error reaches 2, the largest possible error: near 1000 the
# values of bfloat16 are 4 radians apart, more than half a turn. An encoding that is cast at the
# *end* keeps the same small error everywhere. So keep positions and angles in float64 and cast the
# finished encoding. The same is true for RoPE ([chapter 41](41_rope_computed.ipynb)).

# %% [markdown]
# ## In short
#
# - **Why a sine and a cosine?** Together they are the tip of a clock hand. A shift by $k$ positions
#   turns the hand by the same angle at every position. No two whole positions share an encoding.
#   [From digits to waves](#from-digits-to-waves-why-a-sine-and-a-cosine),
#   [shift matrix](#the-shift-matrix-one-rotation-for-every-position),
#   [uniqueness](#is-the-encoding-unique).
# - **Which component is which?** In the paper, pair $i=0,\dots,D/2-1$ has the angle
#   $pos/10000^{2i/D}$. Its sine is component $2i$, its cosine $2i+1$. $D$ is even. Positions
#   count from 0. Fast pairs tell neighbours apart, and slow pairs distant positions.
#   [Formula](#the-sinusoidal-formula), [other layouts](#interleaved-or-concatenated-layout).
# - **Why 10000?** The paper gives no reason. The base $b$ bounds the wavelengths, $2\pi$ to below
#   $2\pi b$. On average encodings grow less alike up to distances of about $b$. Twice or half
#   changes little. [Why 10000](#why-10000-second-reading).
# - **Does it encode relative positions?** Yes. $PE(m)\cdot PE(n)$ depends only on $|m-n|$, and falls
#   on average but not at every step. With $W_QW_K^\top$ between them it does so exactly when this
#   matrix rotates and scales each pair separately.
#   [Dot product](#the-dot-product-depends-only-on-distance),
#   [which matrices](#which-matrices-keep-relative-distance-second-reading).
# - **Does adding it spoil the word?** Not if both have a similar norm. Token vectors drawn with
#   variance $1/D$ are multiplied by $\sqrt D$ first.
#   [Adding the encoding](#adding-the-encoding-to-scaled-token-embeddings).
# - **Does it work beyond the training length, and in 16 bits?** It can be computed everywhere. What a
#   model learned about it need not hold there. Only the finished encoding may be rounded to 16
#   bits: positions in bfloat16 are mixed up from 257 on. [Beyond the training
#   length](#sinusoidal-encodings-beyond-the-training-length),
#   [precision](#precision-float16-and-bfloat16).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 20` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 20_sinusoidal.py` checks yours.
#
# ### Exercise 1: By hand
#
# Write down the encodings of positions 0 and 100 for $D=4$, as sines and cosines. Which clock has
# almost completed a full turn?
#
# <details><summary>Hint 1</summary>
#
# $\theta_0=1$ and $\theta_1=1/100$.
#
# </details>
# <details><summary>Hint 2</summary>
#
# $100/2\pi$ is a little below 16.
#
# </details>
# <details><summary>Solution</summary>
#
# Position 0 is $(0,1,0,1)$, position 100 is $(\sin 100,\cos 100,\sin 1,\cos 1)$. The fast clock has
# made almost 16 turns and points to 11 o'clock.
#
# ```python
# assert sinusoidal(0, 4).tolist() == [0, 1, 0, 1]
# expected = [math.sin(100), math.cos(100), math.sin(1), math.cos(1)]
# assert np.allclose(sinusoidal(100, 4), expected, rtol=0, atol=1e-12)
# assert round(12 * (100 / (2 * math.pi) - 15)) == 11
# ```
#
# </details>
#
# ### Exercise 2: From an encoding to its position
#
# Write `position_of(code)`. It is given an encoding of width 64 with a little noise added. It finds
# the position, one of the first 10000. One matrix product is enough.
#
# <details><summary>Hint 1</summary>
#
# All encodings have the same norm.
#
# </details>
# <details><summary>Hint 2</summary>
#
# So the nearest encoding is the one with the largest dot product.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def position_of(code):
#     return int(np.argmax(sinusoidal(np.arange(10000), 64) @ code))
#
#
# noise = 0.05 * np.random.default_rng(1).standard_normal(64)
# for true in (0, 3, 355, 9999):
#     assert position_of(sinusoidal(true, 64) + noise) == true
# ```
#
# </details>
#
# ### Exercise 3: A window of offsets
#
# Find a matrix $W$ so that the scores $p_m^\top W p_n$, divided by $\sqrt D$, prefer the keys one,
# two and three steps back about equally.
#
# <details><summary>Hint 1</summary>
#
# Scores are linear in $W$.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Add up shift matrices.
#
# </details>
# <details><summary>Solution</summary>
#
# $M_1+M_2+M_3$ gives $f(m-n-1)+f(m-n-2)+f(m-n-3)$, symmetric about 2.
#
# ```python
# q = sinusoidal(np.arange(30), 64)
# _, weights = attention(q @ sum(sinusoidal_shift(k, 64) for k in (1, 2, 3)), q, q)
# assert weights[20, 17:20].round(2).tolist() == [0.17, 0.24, 0.17]
# ```
#
# </details>
#
# ## In practice
#
# **Which layout?** Some programs interleave, as in the paper. Others put all sines first, with the
# same or with different frequencies. [Chapter
# 25](25_grid.ipynb#sinusoidal-layouts-paper-concatenated-or-timing-signal) tells them apart. Before
# you load weights from another library, compare the rows of position 1, not 0: at position 0 every
# sine is 0 and every cosine is 1.
#
# **Where does counting start?** fairseq counts from `padding_idx + 1` and gives padding an encoding
# of zeros. Compute the positions yourself, then pass them to the function.
#
# **Which axis?** Code that adds the table along the first axis of a batch (B, L, D) is wrong, and
# for B = L raises no error (cmu-l3/anlp-fall2025-code #1).
#
# **Odd widths.** Many scripts crash (codertimo/BERT-pytorch #78). fairseq and tensor2tensor append
# a column of zeros, and this package refuses.
#
# **Integers in the exponent.** In codertimo/BERT-pytorch #18 a conversion to float was one bracket
# too late, and every frequency became 1. There was no error and no wrong shape.

# %%
wrong = np.zeros((4, 4, 8)) + sinusoidal(np.arange(4), 8)[:, None]  # B = L = 4: no complaint
print("all tokens of a sentence get one encoding:", bool((np.ptp(wrong, axis=1) == 0).all()))
exponent = np.arange(0, 128, 2) * int(-math.log(10000.0) / 128)  # the cast comes too early
print("different frequencies of 64 pairs:", len(set(np.exp(exponent))))
assert not np.ptp(wrong, axis=1).any() and set(np.exp(exponent)) == {1.0}

# %% [markdown]
# ## Further reading
#
# - Vaswani et al. 2017, "Attention is all you need" (arXiv:1706.03762): section 3.5; table 3 (E),
#   where a learned table does as well.
# - Press, Smith, Lewis 2022, "Train short, test long" (arXiv:2108.12409).
# - Parmar et al. 2018, "Image Transformer" (arXiv:1802.05751): half of the components for each
#   axis.
# - Yan et al. 2019, "TENER" (arXiv:1911.04474): the even dot product, and what projections do to
#   it.
#
# **Cards**: [sinusoidal](CARDS.md#sinusoidal).
