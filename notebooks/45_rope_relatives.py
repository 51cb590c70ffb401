# %% [markdown]
# # 45. RoPE variants: xPos, rotated values, PoPE
#
# *What if rotations decay, values are rotated too, or content no longer changes the angle?*
#
# 35 minutes. Needs [40 Rotary position embedding (RoPE): the derivation](40_rope_derived.ipynb), [41 RoPE in code: signs, layouts, caches, precision](41_rope_computed.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** RoPE rotates queries and keys, its scores do not fade with distance, and
# values pass unrotated. Each variant here changes one of these. xPos makes scores fade. It
# multiplies a query by a factor that shrinks with its position and a key by one that grows, so
# their product falls with the distance. You also meet rotated values, PoPE, PaTH and Selective
# RoPE. At the end you know what each variant may keep in a KV cache, where xPos overflows, and
# which mistakes make a score depend on absolute positions again.

# %% fold="input" alt="Left: the scores of RoPE and xPos over distances up to 1,500. RoPE's score keeps oscillating; xPos falls and becomes smooth. Right: one attention output while the text moves. Rotated values give an output that rotates; if it is rotated back, it stays."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import rope, rotary_values, xpos
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import rope_relatives as plots

n, ones = np.arange(1500), np.ones((1500, 64))
steady = (rope(ones, n) @ rope(ones[:1], [0]).T / 8)[:, 0]
fading = (xpos(ones, n) @ xpos(ones[:1], [0], key=True).T / 8)[:, 0]
a, v = np.array([[0.2, 0.3, 0.5]]), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
moved = [a @ rope(v, s + np.arange(3), [1.0]) for s in range(6)]
kept = [rotary_values(a, v, [s + 2], s + np.arange(3), [1.0]) for s in range(6)]
plots.rope_relatives_three(n, steady, fading, np.concatenate(moved), np.concatenate(kept))
plt.show()

# %% [markdown]
# ## RoPE scores do not decay
#
# On the left, the figure shows scores of RoPE and xPos over the distance. On the right, it shows one
# output of attention as the text moves, first with rotated values ("turned"), then with their sum
# rotated back as well. The chapter builds both.
#
# Write each pair of a query or key as one complex number, $q_c$ and $k_c$. Let the query be at $i$
# and the key at $j$, with $n=i-j$ and $K$ components per head. RoPE's score $s$ is a sum of clock
# hands, each with its own frequency $\theta_c$ ([chapter 40](40_rope_derived.ipynb)):
#
# $$\sqrt K\,s(n)=\mathrm{Re}\sum_c q_c\,\overline{k_c}\;e^{in\theta_c}$$

# %%
from pe_numpy import pope, pope_frequencies, rope_frequencies, rope_matrix, softmax, xpos_scale

rng = np.random.default_rng(0)
q, k = rng.standard_normal((2, 1, 8))
q_c, k_c = (x[0, ::2] + 1j * x[0, 1::2] for x in (q, k))
theta = rope_frequencies(8)
for i, j in ((0, 0), (7, 2), (2, 7), (900, 100)):
    by_hand = sum((q_c[c] * k_c[c].conj() * np.exp(1j * (i - j) * theta[c])).real for c in range(4))
    assert np.isclose((rope(q, [i]) @ rope(k, [j]).T).item(), by_hand, rtol=0, atol=1e-12)

# %% [markdown]
# No hand ever stops. At a distance of 1,000 the fast ones are still spinning, and two neighbouring
# keys there can get quite different scores. If you regard this as noise, let each hand grow shorter
# with the distance. This is the idea of xPos (Sun et al. 2022).

# %%
for name, s in (("RoPE", steady), ("xPos", fading)):
    far = s[1000:]
    print(f"{name}, n = 1000 ... 1499: from {far.min():.2f} to {far.max():.2f},", end=" ")
    print(f"largest step between neighbours {np.abs(np.diff(far)).max():.2f}")
assert np.abs(np.diff(steady[1000:])).max() > 10 * np.abs(np.diff(fading[1000:])).max()

# %% [markdown]
# ## xPos: RoPE with decay
#
# Each pair gets a number $\zeta_c$ below 1, the share of it that remains at a distance of
# $\sigma=512$:
#
# $$\zeta_c=\frac{2c/K+\gamma}{1+\gamma},\qquad\gamma=0.4$$

# %%
show_source(xpos_scale)
zeta = xpos_scale(8)
for c in range(4):
    assert np.isclose(zeta[c], (2 * c / 8 + 0.4) / 1.4, rtol=0, atol=1e-15)
print("zeta:", zeta.round(6).tolist())
print("distance that halves each pair:", (512 * np.log(0.5) / np.log(zeta)).round().tolist())

# %% [markdown]
# Fast pairs (small $c$) fade first. To get $\zeta_c^{n/\sigma}$ into the score, the query is
# multiplied by $\zeta_c^{i/\sigma}$ and the key by the opposite power, $\zeta_c^{-j/\sigma}$:
#
# $$\sqrt K\,s(n)=\mathrm{Re}\sum_c q_c\,\overline{k_c}\;\zeta_c^{n/\sigma}\,e^{in\theta_c}$$

# %%
show_source(xpos)
for i, j in ((0, 0), (7, 2), (2, 7), (900, 100)):
    fade = [zeta[c] ** ((i - j) / 512) for c in range(4)]
    terms = [q_c[c] * k_c[c].conj() * fade[c] * np.exp(1j * (i - j) * theta[c]) for c in range(4)]
    assert np.isclose(
        (xpos(q, [i]) @ xpos(k, [j], key=True).T).item(), sum(terms).real, rtol=0, atol=1e-11
    )

# %% [markdown]
# Work out one pair that doesn't turn ($\theta=0$), with a query at 512 and a key at 0, both $(1,0)$.
# The query is multiplied by $\zeta_0=0.4/1.4$ and the key by 1, so their product is $0.285714$. Now
# take all four pairs, with ones for query and key. **Predict**: does the score fall from each
# distance to the next?

# %% fold="output"
one = np.ones((1, 8))


def score(i, j, **options):
    return (xpos(one, [i], **options) @ xpos(one, [j], key=True, **options).T).item() / 8**0.5


table = [round(score(n, 0), 6) for n in (0, 1, 2, 3, 4, 64)]
print(table)
assert table == [2.828427, 2.496935, 1.810423, 1.388834, 1.599824, 2.100196]
assert score(11, 7) > score(10, 7)  # n = 4 above n = 3

# %% [markdown]
# It doesn't. At short distances xPos is RoPE with slightly shorter hands, and the score still swings.
# What falls is the *length* of each hand, so a bound on the score falls.
#
# Rotating and fading by one step is one matrix $G$, and $n$ steps are $G^n$. Therefore only the
# difference remains, $G^{i}G^{-j}=G^{i-j}$. The key needs the opposite exponent because a rotation
# is undone by its transpose, but a shrinking is not.

# %%
G = rope_matrix(1, theta) @ np.diag(np.repeat(zeta ** (1 / 512), 2))
for i, j in ((3, 0), (900, 850)):
    power = np.linalg.matrix_power(G, i - j)
    expected = (xpos(q, [i]) @ xpos(k, [j], key=True).T).item()
    assert np.isclose(q[0] @ power.T @ k[0], expected, rtol=0, atol=1e-11)
assert np.array_equal(xpos(q, [9], scale_base=1e30), rope(q, [9]))  # zeta to the power of 0

# %% [markdown]
# *A common mistake* is to multiply queries and keys by the same factor, just as both are rotated by
# the same function. Then the positions don't cancel, and the score has $\zeta_c^{(i+j)/\sigma}$.

# %%
both_fade = xpos(one, [1002]) @ xpos(one, [1000]).T / 8**0.5
print(f"n = 2 at the start {score(2, 0):.6f}, at 1000 {score(1002, 1000):.6f};", end=" ")
print(f"both faded at 1000: {both_fade.item():.6f}")
assert np.isclose(score(2, 0), score(1002, 1000), rtol=0, atol=1e-9)
assert both_fade.item() < 0.5 * score(2, 0)

# %% [markdown]
# *Another mistake* is to rotate pairs $(2c,2c+1)$ but scale pairs $(c,c+K/2)$. Then the two parts
# of a pair fade at different speeds, and the score depends on absolute positions again.
# rotary-embedding-torch did this until
# [#34](https://github.com/lucidrains/rotary-embedding-torch/pull/34).


# %%
def other_pairs(x, at, **options):
    return xpos(rope(x, [at]), [at], [0.0] * 4, layout="half", **options)  # scales, does not rotate


wrong = []
for i, j in ((300, 0), (311, 11)):
    wrong.append((other_pairs(one, i) @ other_pairs(one, j, key=True).T).item() / 8**0.5)
    print(f"i = {i}, j = {j}: {wrong[-1]:.6f}, right {score(i, j):.6f}")
assert wrong[1] > 1.9 * wrong[0]  # the same distance

# %% [markdown]
# ## xPos overflow and the KV cache: fix the centre
#
# A key at $j=40{,}000$ is multiplied by $\zeta_0^{-78}$, which is more than float32 can represent,
# and a query's factor there is correspondingly small. So positions are counted from a **centre**
# $\mu$. It cancels in the score, as any shift does: $(i-\mu)-(j-\mu)=i-j$. The package refuses
# factors that would not fit.

# %%
try:
    xpos(np.ones((1, 64), np.float32), [40_000], key=True)
except ValueError as refused:
    print(refused)
for mu in (0, 4, -700.5):
    assert np.isclose(score(5, 3, centre=mu), score(5, 3), rtol=0, atol=1e-12)
limit = np.log([np.finfo(dtype).max for dtype in (np.float32, np.float16)]) / -np.log(zeta[0])
for sigma in (64, 512):
    longest = (2 * sigma * limit).astype(int).tolist()
    print(f"centre in the middle, sigma {sigma}: float32 to {longest[0]}, float16 to {longest[1]}")
assert np.allclose(2 * 64 * limit, [9000, 1150], rtol=0.02, atol=0)  # as reported

# %% [markdown]
# Users run into both limits. With $\sigma=64$ local-attention failed for lengths above 9000, and in
# fp16 above about 1150 ([#14](https://github.com/lucidrains/local-attention/issues/14)). bfloat16 has
# float32's range.
#
# Where is the centre? torchscale takes half of length plus offset, rounded up.
# rotary-embedding-torch and x-transformers take half the length of the current call. Within one
# call their scores agree. As a text grows, the centre moves. In a cache of rotated keys, a query
# whose centre has moved by $\Delta\mu$ is then compared with keys of an old centre. Each term of
# the score then has the factor
#
# $$\zeta_c^{-\Delta\mu/\sigma}\cdot\zeta_c^{n/\sigma}$$

# %%
old_key = xpos(one, [0], key=True)  # rotated when the centre was 0
for shift in (0, 30, 2000):
    stale = (xpos(one, [2], centre=shift) @ old_key.T).item() / 8**0.5
    terms = [2 * zeta[c] ** ((2 - shift) / 512) * np.cos(2 * theta[c]) for c in range(4)]
    assert np.isclose(stale, sum(terms) / 8**0.5, rtol=1e-12, atol=0)
    print(f"centre moved by {shift:4}: {stale:.6f}")
assert round(score(2, 0), 6) == 1.810423

# %% [markdown]
# The centre has moved by 30 after 60 more tokens, and the score is then two per cent too high. With
# a centre moved by 2,000 even the sign is wrong. If you cache rotated keys, fix $\mu$ for good, as
# the class `XPos` of this package does. torchscale and x-transformers cache unrotated keys and
# rotate all of them at each step, which is also safe.
#
# rotary-embedding-torch has a function for cached keys, requested in
# [#27](https://github.com/lucidrains/rotary-embedding-torch/issues/27). In its
# [code of January 2026](https://github.com/lucidrains/rotary-embedding-torch/blob/8bb4643/rotary_embedding_torch/rotary_embedding_torch.py)
# the centre of the queries is half the number of *queries*, and the centre of the keys is half the
# number of keys. **Predict** what this does to one new query at 1,000, which attends to itself and
# to 1,000 keys before it.

# %% fold="output"
last = xpos(one, [1000], centre=1 // 2)
for n in (0, 2, 64):
    two_centres = (last @ xpos(one, [1000 - n], key=True, centre=1001 // 2).T).item() / 8**0.5
    print(f"n = {n:2}: {two_centres:.6f}, right {score(n, 0):.6f}")
    further = [2 * zeta[c] ** ((n + 500) / 512) * np.cos(n * theta[c]) for c in range(4)]
    assert np.isclose(two_centres, sum(further) / 8**0.5, rtol=1e-12, atol=0)

# %% [markdown]
# Every key fades as if it were 500 further away. (The code itself gives 1.5851, 1.2819 and 1.2881.)
#
# ### xPos is not for bidirectional attention
#
# Terms that fade for $n>0$ grow for $n<0$. **Predict** the score of vectors of ones at $n=-2000$.
# At 0 it is 2.828.

# %% fold="output" alt="Scores of RoPE and xPos over distances from -1,500 to 1,500. Both agree near 0. In the past xPos becomes smooth; in the future it oscillates more and more, far beyond RoPE."
print(f"{score(0, 2000):.6f}", f"{score(0, 64):.6f}")
assert round(score(0, 2000), 6) == -26.784789 and round(score(0, 64), 6) == 2.419633
both = np.arange(-1500, 1501)
x = np.ones((len(both), 64))
sides = [rope(x, both) @ rope(x[:1], [0]).T / 8, xpos(x, both) @ xpos(x[:1], [0], key=True).T / 8]
plots.rope_relatives_sides(both, *(s[:, 0] for s in sides))
plt.show()
assert np.abs(sides[1][both < -1000]).max() > 5 * np.abs(sides[0][both < -1000]).max()

# %% [markdown]
# Under a causal mask no query sees keys with $n<0$. In an encoder it would. x-transformers 2.31.10
# refuses xPos there ("not compatible with bidirectional attention").
#
# ## Rotated values: rotary_value and DeepSeek-V4
#
# RoPE rotates queries and keys. Values pass unrotated, so an output depends on positions only
# through the weights. What if values were rotated as well? RoFormer in transformers has an option
# for it, `rotary_value`, off by default. It computes $\sum_j a_{ij}R_jv_j$, with the attention
# weights $a_{ij}$ and the rotation $R_j$ of position $j$. This depends on the absolute $j$. If the
# sum is rotated back by the query's position, only distances remain:
#
# $$o_i=R_{-i}\sum_j a_{ij}\,R_j\,v_j=\sum_j a_{ij}\,R_{j-i}\,v_j$$

# %%
show_source(rotary_values)
weights, v8 = softmax(rng.standard_normal((3, 5))), rng.standard_normal((5, 8))
got = rotary_values(weights, v8, [4, 5, 9], range(5))
for row, i in enumerate((4, 5, 9)):
    turned = sum(weights[row, j] * rope_matrix(j - i, theta) @ v8[j] for j in range(5))
    assert np.allclose(got[row], turned, rtol=0, atol=1e-12)

# %% [markdown]
# One rotation of each value and one of each sum replace one rotation per query and key. By hand,
# take one pair of components, $\theta=1$ and three tokens. The cell also makes *the common mistake*
# of forgetting the rotation back. **Predict** what changes in each case if the text begins a
# hundred positions later.

# %% fold="output"
rows, at = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]]), np.arange(3)
forgotten = [rows @ rope(v, at + s, [1.0]) for s in (0, 100)]
right = [rotary_values(rows, v, at + s, at + s, [1.0]) for s in (0, 100)]
for name, (here, there) in (("forgotten", forgotten), ("rotated back", right)):
    print(f"{name:12}{here.round(4).tolist()} moved by {np.abs(there - here).max():.3f}")
assert right[0].round(4).tolist() == [[1, 0], [0.2702, 0.0793], [0.6692, 0.4802]]
assert np.allclose(right[0], right[1], rtol=0, atol=1e-13)
assert round(np.abs(forgotten[1] - forgotten[0]).max(), 3) == 0.506

# %% [markdown]
# DeepSeek-V4 has no choice. Its one KV head uses the keys *as* values, so values arrive rotated,
# and the code rotates the output back with the opposite sine. "What is the explanation" for that
# rotation, a maintainer asked when it was ported
# ([llama.cpp #24162](https://github.com/ggml-org/llama.cpp/pull/24162)). The formula above is the
# explanation. Rotate back with the base of the forward rotation, because DeepSeek-V4 has two bases,
# depending on the layer
# ([transformers #45910](https://github.com/huggingface/transformers/issues/45910)).
#
# What does the rotation do to the sum? Suppose that 64 keys have the same value and equal weights.
# Without rotation the sum is this value. With rotation by the distances, the copies of a fast pair
# point in all directions and cancel:

# %% alt="Length of the sum of equal values under equal weights, over the number of keys, for the four pairs of 8 components. The fast pair drops below a quarter within six keys, the next two about ten times later each. The slowest keeps four fifths to the end."
lengths = np.unique(np.logspace(0, 3.3, 150).astype(int))
left = []
for n in lengths:
    out = rotary_values(np.full((1, n), 1 / n), np.ones((n, 8)), [n - 1], np.arange(n))[0]
    left.append(np.hypot(out[::2], out[1::2]) / 2**0.5)
    mean = [abs(np.exp(-1j * w * np.arange(n)).mean()) for w in theta]
    assert np.allclose(left[-1], mean, rtol=0, atol=1e-12)
plots.rope_relatives_low_pass(lengths, np.array(left).T)
plt.show()
same = rotary_values(np.full((1, 64), 1 / 64), np.ones((64, 8)), [63], np.arange(64))[0]
print("64 keys:", (np.hypot(same[::2], same[1::2]) / 2**0.5).round(3).tolist())
assert left[5][0] < 0.25 and lengths[5] == 6 and left[-1][3] > 0.8

# %% [markdown]
# So a rotated mean over many tokens keeps the slow pairs and loses the fast ones. This is a
# property of the formula. No trained model was measured.
#
# ## PoPE: content as radius
#
# In RoPE a pair of content has its own angle, $\angle q_c$, and position adds to it:
#
# $$\sqrt K\,s(n)=\sum_c|q_c|\,|k_c|\,\cos(n\theta_c+\angle q_c-\angle k_c)$$

# %%
for n in (0, 3, 900):
    parts = np.abs(q_c) * np.abs(k_c) * np.cos(n * theta + np.angle(q_c) - np.angle(k_c))
    assert np.isclose((rope(q, [n]) @ rope(k, [0]).T).item(), parts.sum(), rtol=0, atol=1e-12)

# %% [markdown]
# *What* and *where* share one angle, so different contents have their highest scores at different
# distances. In PoPE (Gopalakrishnan et al. 2025) content does not set the angle of a query or a
# key. Each component becomes a radius, $\rho(x)=\ln(1+e^x)$, which is never negative. Keys also get
# a learned phase $\delta_c$, clamped to $-2\pi\dots0$:
#
# $$\sqrt K\,s(n)=\sum_{c=0}^{K-1}\rho(q_c)\,\rho(k_c)\,\cos(n\theta_c-\delta_c),\qquad\theta_c=10000^{-c/K}$$
#
# Here $c$ counts components, not pairs, so there are $K$ frequencies.

# %%
show_source(pope_frequencies, pope)
delta = -rng.uniform(0, 6, 8)
for i, j in ((0, 0), (7, 2), (2, 900)):
    total = 0.0
    for c in range(8):
        radii = np.log(1 + np.exp(q[0, c])) * np.log(1 + np.exp(k[0, c]))
        total += radii * np.cos((i - j) * 10000 ** (-c / 8) - delta[c])
    assert np.isclose((pope(q, [i]) @ pope(k, [j], bias=delta).T).item(), total, rtol=0, atol=1e-12)

# %% [markdown]
# This package computes PoPE with RoPE. It makes pairs $(\rho,0)$, a vector twice as wide, and
# rotates them as interleaved pairs. The phase rotates a key's pairs beforehand. Work out by hand
# $x=(0,1,-1)$ at position 2, and the score of $q=(0,1,-1)$ at 5 with $k=(1,0,2)$ at 3:

# %%
three = pope([[0, 1, -1]], [2])[0]
print(three.round(6).tolist())
assert three.round(6).tolist() == [-0.288451, 0.630277, 1.307607, 0.121737, 0.313259, 0.001350]
pairs = np.zeros((1, 6))
pairs[0, ::2] = np.log1p(np.exp([0, 1, -1]))
assert np.allclose(rope(pairs, [2], pope_frequencies(3)), three, rtol=0, atol=1e-14)
for bias in (0.0, [-0.5, -1, -7]):  # -7 is clamped
    s = pope([[0, 1, -1]], [5]) @ pope([[1, 0, 2]], [3], bias=bias).T / 3**0.5
    print(bias, s.round(6).item())
    assert s.round(6).item() == (0.689259 if bias == 0.0 else 0.205373)

# %% [markdown]
# Take eight random contents and no phase. **Predict**: where does each curve have its highest point?

# %% fold="output" alt="Scores of eight random contents over distances from -40 to 40, with RoPE and with PoPE. RoPE's curves peak at eight different places; PoPE's all peak at distance 0."
near = np.arange(-40, 41)
queries, keys = rng.standard_normal((2, 8, 1, 16))
wide = np.repeat(queries, len(near), axis=1)
curves = [(f(wide, near) @ np.swapaxes(f(keys, [0]), -1, -2))[..., 0] for f in (rope, pope)]
peaks = [near[s.argmax(axis=1)] for s in curves]
print("RoPE:", peaks[0].tolist(), " PoPE:", peaks[1].tolist())
assert (peaks[1] == 0).all() and len(set(peaks[0].tolist())) == 8
plots.rope_relatives_peaks(near, *curves)
plt.show()

# %% [markdown]
# Without a phase all terms are positive at $n=0$, and no cosine exceeds 1:
#
# $$\sqrt K\,s(n)\le\sqrt K\,s(0)=\sum_c\rho(q_c)\,\rho(k_c)$$
#
# So content decides how high the peak is, not where it is. With phases each term has its own peak,
# where $n\theta_c=\delta_c$ up to whole turns, and content decides how much each term counts.

# %%
far = np.arange(-3000, 3000)
every = pope(np.repeat(q, len(far), axis=0), far) @ pope(k, [0]).T
top = np.log1p(np.exp(q[0])) @ np.log1p(np.exp(k[0]))
assert np.isclose(every.max(), top, rtol=1e-12, atol=0) and far[every.argmax()] == 0
seven = pope(np.zeros((60, 1)), range(60), [0.1]) @ pope([[0.0]], [0], [0.1], 0.7 - 2 * np.pi).T
print("theta 0.1, phase 0.7 - 2 pi: highest at n =", int(seven[:40, 0].argmax()))
assert seven[:40, 0].argmax() == 7

# %% [markdown]
# There are *two common mistakes*. A phase on queries as well as keys cancels, because the same
# angle on both sides has no effect. A query of zeros is not neutral, since $\rho(0)=\ln2$. It
# scores all keys 0 in RoPE, but not in PoPE.

# %%
with_both = pope(q, [5], bias=delta) @ pope(k, [3], bias=delta).T
assert np.allclose(with_both, pope(q, [5]) @ pope(k, [3]).T, rtol=0, atol=1e-12)
silent = pope(0 * q, [5]) @ pope(k, [3]).T
print("phase on both:", round(with_both.item(), 6), " query of zeros:", round(silent.item(), 6))
assert abs(silent.item()) > 0.1 and (rope(0 * q, [5]) @ rope(k, [3]).T).item() == 0

# %% [markdown]
# The scale is $1/\sqrt K$, with the $K$ of the input, in PoPE-pytorch and in x-transformers'
# `polar_pos_emb`. An attention function that takes the width from its inputs divides by $\sqrt{2K}$
# instead. x-transformers puts all cosines before all sines, which gives the same scores from
# different keys.
#
# The price is keys of $2K$ numbers in the cache, and $2K$ products per score. The paper reports
# better language models from 124 to 774 million parameters, and longer texts without tuning. None of
# that is measured here.
#
# ## PaTH and Selective RoPE: tokens between move the key (second reading)
#
# In the two schemes here, the tokens from $j+1$ to $i$ move the key, so the score of a pair can
# change if a third token is taken away. Position is made from content, as in
# [chapter 37](37_content.ipynb).
#
# In **PaTH** (Yang et al. 2025) each token defines a matrix $H_t=I-\beta_tw_tw_t^\top$ with
# $|w_t|=1$ and $\beta_t$ between 0 and 2. It is a reflection if $\beta_t$ is 2 and a projection if
# it is 1. The path from key to query is their product:
#
# $$s_{ij}=q_i^\top H_iH_{i-1}\cdots H_{j+1}\,k_j/\sqrt K$$


# %%
def path_scores(q, k, w, beta):
    s = np.full((len(q), len(q)), -np.inf)
    for i in range(len(q)):
        moved = q[i] / q.shape[1] ** 0.5
        for j in range(i, -1, -1):
            s[i, j] = moved @ k[j]
            moved = moved - beta[j] * (moved @ w[j]) * w[j]  # H_j q
    return s


q3, k3 = np.array([[1, 0], [1, 1], [0, 2.0]]), np.array([[1, 2], [0, 1], [1, 1.0]])
w3, beta = np.array([[1, 0], [0.6, 0.8], [0, 1]]), np.array([0.5, 1, 2])
H = [np.eye(2) - b * np.outer(w, w) for b, w in zip(beta, w3, strict=True)]
s = path_scores(q3, k3, w3, beta)
assert abs(s[2, 0] - q3[2] @ H[2] @ H[1] @ k3[0] / 2**0.5) < 1e-12 and s[0, 1] == -np.inf

# %%
print(s[0, 0].round(6), s[1, :2].round(6).tolist(), s[2].round(6).tolist())
assert np.isclose(s[2, 1], q3[2] @ H[2] @ k3[1] / 2**0.5, rtol=0, atol=1e-12)
assert s[1, :2].round(6).tolist() == [-0.056569, 0.707107]
assert s[2].round(6).tolist() == [-0.339411, -1.414214, 1.414214]
without = np.tril(path_scores(q3, k3, w3, 0 * beta))
assert np.allclose(without, np.tril(q3 @ k3.T / 2**0.5), rtol=0, atol=1e-12)
cache = np.zeros((0, 2))
for t in range(3):
    cache = np.vstack([cache - beta[t] * np.outer(cache @ w3[t], w3[t]), k3[t]])
assert np.allclose(cache @ q3[2] / 2**0.5, s[2], rtol=0, atol=1e-12)

# %% [markdown]
# With $\beta=0$ PaTH is attention without positions. The last four lines of the cell are its cache.
# Each new token rewrites every old key, $k\leftarrow k-\beta\,(k^\top w)\,w$, so no key in it is
# final.
#
# **Selective RoPE** (Movahedi et al. 2025) is RoPE in which each token $x_u$ decides how far the
# clock advances:
#
# $$\text{angle of pair }c\text{ at }t=\tau_c\sum_{u\le t}\varphi_c(x_u)$$
#
# $\varphi$ is a projection of the token, which the code mixes over the last four tokens. With
# $\varphi=1$ the scheme is RoPE with frequencies $\tau_c$. A key's angle is fixed once it is
# written, so the cache is safe.

# %%
phi = np.array([1, 0, 2, 1.0])  # one pair, tau = 1
angles = np.array([sum(phi[: t + 1]) for t in range(4)])
turned = rope([[1.0, 0.0]] * 4, angles, [1.0])
print(angles.tolist(), turned.round(4).tolist())
assert turned.round(4).tolist() == [[0.5403, 0.8415]] * 2 + [[-0.99, 0.1411], [-0.6536, -0.7568]]
without = [np.delete(phi, u).cumsum() for u in (1, 2)]  # a token between 0 and 3 is dropped
print("angle from 0 to 3:", angles[3] - angles[0], end=";  ")
print("one dropped:", [float(a[2] - a[0]) for a in without])
assert [a[2] - a[0] for a in without] == [3, 1]  # phi = 0 leaves no trace

# %% [markdown]
# In the authors'
# [code](https://github.com/timurcarstensen/selective-rope/blob/d12e825/src/selective_rope/modules/rotary.py)
# the option `skip_conv` takes differences of $\varphi$ before the sum, which undoes it. Without the
# optional gate and bias the angle is then only $\tau_c\varphi_c(x_t)$, which is local and not a path.
#
# To tell the two schemes apart from outside, repeat one token between query and key (the query's own
# step is omitted):

# %% alt="Score of a pair over the number of equal tokens between them. PaTH's score settles within a few tokens; the score of Selective RoPE keeps oscillating."
assert np.allclose(np.diff(phi, prepend=0).cumsum(), phi, rtol=0, atol=0)
counts = np.arange(0, 31)
along, kept_beta = np.array([0.6, 0.8]), 0.7
P = np.eye(2) - kept_beta * np.outer(along, along)
path = np.array([q3[1] @ np.linalg.matrix_power(P, n) @ k3[0] for n in counts])
swing = np.array([(rope(q3[1:2], [0.7 * n], [1.0]) @ k3[0]).item() for n in counts])
limit = q3[1] @ k3[0] - (q3[1] @ along) * (along @ k3[0])
assert np.isclose(path[-1], limit, rtol=0, atol=1e-9) and np.ptp(swing[-10:]) > 3
plots.rope_relatives_paths(counts, path, swing)
plt.show()

# %% [markdown]
# PaTH multiplies the part along $w$ by $1-\beta$ each time, here by 0.3, and the rest remains. The
# rotation of Selective RoPE comes round again.

# %% [markdown]
# ## In short
#
# - **What does xPos add to RoPE, with which sign?** Queries are multiplied by $\zeta_c^{i/512}$ and
#   keys by $\zeta_c^{-j/512}$, pair by pair, with $\zeta_c=(2c/K+0.4)/1.4$. So score terms get
#   $\zeta_c^{(i-j)/512}$, and fast pairs fade first. [xPos](#xpos-rope-with-decay).
# - **Why does xPos overflow, above all in half precision?** Far from the *centre* of positions,
#   keys' factors are huge. With the centre in the middle, float16 reaches about 9,000 positions,
#   and float32 and bfloat16 eight times as many. Raise the 512 for more.
#   [Centre](#xpos-overflow-and-the-kv-cache-fix-the-centre).
# - **May a KV cache keep rotated keys, and may an encoder use xPos?** PoPE's keys and rotated
#   values may be kept, but xPos's keys only with a *fixed* centre. No encoder should use xPos,
#   because terms grow without bound for $i<j$.
#   [Cache](#xpos-overflow-and-the-kv-cache-fix-the-centre),
#   [encoder](#xpos-is-not-for-bidirectional-attention).
# - **Should values rotate?** In RoPE they don't. If they do, rotate the output back by the
#   *query's* position. RoFormer's option `rotary_value` doesn't rotate back, but DeepSeek-V4 does.
#   [Rotated values](#rotated-values-rotary_value-and-deepseek-v4).
# - **What is PoPE?** Each component becomes a radius, $\ln(1+e^x)$, and only position sets its angle.
#   Queries and keys become $2K$ wide, scores are divided by $\sqrt K$, and only keys have a learned
#   phase. [PoPE](#pope-content-as-radius).
# - **What do PaTH and Selective RoPE change?** Each token after the key moves the key. In PaTH the
#   token does so along its own direction. In Selective RoPE it advances a clock.
#   [PaTH and Selective RoPE](#path-and-selective-rope-tokens-between-move-the-key-second-reading).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 45` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 45_rope_relatives.py` checks yours.
#
# ### Exercise 1: a slower decay for xPos
#
# With $K=8$, which $\sigma$ halves the slowest pair at a distance of 2,000?
#
# <details><summary>Hint 1</summary>
#
# Take logarithms of $\zeta_3^{2000/\sigma}=1/2$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The result is $\sigma=2000\,\ln\zeta_3/\ln\tfrac12$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# sigma = 2000 * np.log(xpos_scale(8)[3]) / np.log(0.5)
# assert round(sigma) == 568
# still = [0.0, 0.0, 0.0, 0.0]  # no pair turns
# faded = xpos(one, [2000], still, scale_base=sigma)
# assert np.isclose(faded[0, 6], 0.5, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 2: rotate RoFormer's values back
#
# You have the output of a layer with `rotary_value`, its positions, and nothing else. Make it
# relative.
#
# <details><summary>Hint 1</summary>
#
# The rotation back does not depend on the weights.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Use `rope` with negative positions, head by head.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# positions = np.array([7, 8, 9])
# output = rows @ rope(v, positions)
# relative = rope(output, -positions)
# assert np.allclose(relative, rotary_values(rows, v, positions, positions), rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 3: a PoPE phase for one distance
#
# One component of PoPE has $\theta=0.2$. Which phase makes a key score highest for the query 4 tokens
# later, and why does the clamp on the phase not prevent it?
#
# <details><summary>Hint 1</summary>
#
# The cosine is 1 where $4\theta=\delta$, up to whole turns.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Subtract $2\pi$. Every angle occurs between $-2\pi$ and 0.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# delta_4 = 0.8 - 2 * np.pi
# asked = pope(np.zeros((20, 1)), range(20), [0.2]) @ pope([[0.0]], [0], [0.2], delta_4).T
# assert asked[:, 0].argmax() == 4 and -2 * np.pi < delta_4 < 0
# ```
#
# </details>
#
# ### Exercise 4: why xPos cannot decay in both directions
#
# Take $\zeta_c^{|n|/\sigma}$ for both sides. Show that it is not the product of a factor of the
# query's position and a factor of the key's position.
#
# <details><summary>Hint 1</summary>
#
# Factors $f(i)\,g(j)$ make a matrix of rank 1.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Take one pair that doesn't turn, and find the rank of $\zeta^{|i-j|/\sigma}$ for three positions.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# i, j = np.indices((3, 3))
# assert np.linalg.matrix_rank(0.5 ** (i - j)) == 1
# assert np.linalg.matrix_rank(0.5 ** np.abs(i - j)) == 3
# ```
#
# </details>
#
# ## In practice
#
# | scheme | who uses it | cache | trained | cost | verdict |
# |---|---|---|---|---|---|
# | xPos | torchscale's `xpos_rel_pos`; x-transformers' `rotary_xpos` | unrotated keys, or rotated keys if the centre is fixed | nothing | a factor per component | smooth distant scores, only for the past |
# | rotated values | RoFormer's option; DeepSeek-V4, rotated back | rotated values | nothing | a rotation of each value and output | only with the rotation back |
# | PoPE | x-transformers' `polar_pos_emb`; no released model that we know of | rotated keys, twice as wide | a phase per head and component | twice the products | what and where are separate |
# | PaTH | no released model that we know of | all keys rewritten at each step | $w$ and $\beta$ from each token | a reflection per token | the text sets its transformations |
# | Selective RoPE | no released model that we know of | rotated keys | $\varphi$ from each token | a running sum | RoPE with its own clock |
#
# In the Transformer of this package the first three are `XPos`, `RotaryValues` and `Pope`:

# %%
from pe_numpy import Cache, Model, Sizes, decode, init_params
from pe_numpy.transformer.encodings import Pope, RotaryValues, XPos

tokens = rng.integers(0, 11, (1, 9))
for encoding in (XPos(), RotaryValues(), Pope()):
    model, cache = Model(2, encoding), Cache(1, 9)
    params = init_params(Sizes(11, 12, 24, n_layers=2), model, rng, np.float64)
    steps = [decode(params, model, tokens[:, [t]], cache=cache)[:, 0] for t in range(9)]
    assert np.allclose(np.stack(steps, 1), decode(params, model, tokens), rtol=0, atol=1e-9)
    print(f"{type(encoding).__name__:13}keys of {cache.held['0'][0].shape[-1]} numbers")

# %% [markdown]
# ## Further reading
#
# - Sun et al. 2022, *A Length-Extrapolatable Transformer*,
#   [arXiv:2212.10554](https://arxiv.org/abs/2212.10554);
#   [code](https://github.com/microsoft/torchscale/blob/4d1e0e8/torchscale/component/xpos_relative_position.py).
# - Gopalakrishnan et al. 2025, *Decoupling the "What" and "Where" With Polar Coordinate Positional
#   Embeddings*, [arXiv:2509.10534](https://arxiv.org/abs/2509.10534); code of another author,
#   [PoPE-pytorch](https://github.com/lucidrains/PoPE-pytorch/tree/ee11cab).
# - Yang et al. 2025, *PaTH Attention: Position Encoding via Accumulating Householder
#   Transformations*, [arXiv:2505.16381](https://arxiv.org/abs/2505.16381);
#   [code](https://github.com/fla-org/flash-linear-attention/blob/bc3b101/fla/ops/path_attn/naive.py).
# - Movahedi et al. 2025, *Selective Rotary Position Embedding*,
#   [arXiv:2511.17388](https://arxiv.org/abs/2511.17388).
#
# **Cards**: [xpos](CARDS.md#xpos), [pope](CARDS.md#pope), [rotary_values](CARDS.md#rotary_values).
