# %% [markdown]
# # 35. ALiBi: attention with linear biases
#
# *Is a straight line enough, how far does a head see, and what carries it past its training length?*
#
# 40 minutes. Needs [10 Attention by hand: scores, softmax, heads, masks](10_attention.ipynb), [30 From absolute to relative: the four terms of a score](30_expansion.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** The next word of a text depends mostly on recent words. ALiBi builds this
# into attention without position vectors or learned numbers: from each score it subtracts the
# distance between query and key, times a fixed slope. You compute the slopes, learn where the
# penalty belongs and which sign it has, and avoid a mistake that switches ALiBi off without an
# error. Then you prove how far a head sees, and test on small language models why ALiBi runs on
# texts longer than its training texts.

# %% fold="input" alt="Share of the weight within a distance, for the eight slopes of 8 heads, on a log axis. The curves are eight equal S-curves, each shifted by a factor of two. The flattest exceeds 99 per cent only beyond 1024."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import alibi_bias, alibi_slopes, attention, causal_mask
from pe_numpy import relative_distance, softmax
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import alibi as plots

plots.alibi_reach_of_slopes(np.arange(0, 4096), alibi_slopes(8), (512, 1024))
plt.show()

# %% [markdown]
# ## From a hard window to a linear bias
#
# The figure shows a layer with eight heads when all scores are equal. Each curve gives the share of
# one head's weight that is on the $n$ nearest keys. The number on the curve is the head's *slope*,
# which this section introduces.
#
# The next word of a text depends mostly on the last few. How can an attention layer prefer them,
# without a table and without training? Take six keys, with the query at the last of them, and let
# all six scores be equal, so that only position can make a difference.
#
# A first attempt is a hard window, which we call a **wall**. The query sees the last three keys,
# and the others are hidden. **Predict**: if two keys *inside* the window change places, together
# with their values, does the output change?

# %% fold="output"
distance = np.arange(5, -1, -1)  # of six keys from the last one
wall = np.where(distance < 3, 0.0, -np.inf)
v = np.random.default_rng(0).standard_normal((6, 4))  # values (S, K)
swapped = v[[0, 1, 2, 4, 3, 5]]  # two keys inside the window change places
same = np.allclose(softmax(wall) @ v, softmax(wall) @ swapped, rtol=0, atol=1e-12)
print("output unchanged by the swap:", same)
slope_one = softmax(-1.0 * distance)
print("weights with a slope of 1:", slope_one.round(4).tolist())
assert same and slope_one[-1] > 0.6
assert not np.allclose(slope_one @ v, slope_one @ swapped, rtol=0, atol=0.01)

# %% [markdown]
# It does not. Inside the wall the layer ignores order, and beyond it a key gets no weight, no
# matter how well it would fit. The second attempt, in the last line, is a **slope**: subtract the
# distance from the score. Now the swap changes the output, and no key is out of reach. But almost
# two thirds of the weight stay at distance 0. So multiply the distance by a number $m$, the slope
# of the head. A layer has several heads: some can attend to near keys and some to distant ones.

# %% alt="Bars of the weights of six equal keys, for a hard window and for slopes 1, one half and one eighth. Inside the hard window weights are equal, and then zero. With a slope they fall by a constant factor; the smaller the slope, the flatter the bars."
rows = {"hard window of 3": softmax(wall)} | {
    f"slope {name}": softmax(-m * distance) for name, m in (("1", 1), ("1/2", 0.5), ("1/8", 0.125))
}
plots.alibi_first_rows(distance, rows)
plt.show()

# %% [markdown]
# ## The ALiBi formula
#
# Actual queries and keys have their own scores. ALiBi (attention with linear biases, Press et al.
# 2022) adds its penalty to them. For query $i$, key $j$ and a head $h$ of head dimension $K$ with
# slope $m_h$:
#
# $$w_{ij} = \mathrm{softmax}_j\!\left(\frac{q_i\cdot k_j}{\sqrt K} - m_h\,|i-j|\right)$$
#
# Nothing is added to token vectors, queries, keys or values. A model with RoPE can build nearly the
# same penalty itself ([chapter 81](81_real_rope.ipynb#stop-it-remove-it-replace-it-by-alibi)).


# %%
def alibi_weights_by_loops(q, k, m, q_at, k_at):  # one head, without keys of the future
    weights = np.zeros((len(q), len(k)))
    for i in range(len(q)):
        for j in range(len(k)):
            if k_at[j] <= q_at[i]:
                score = q[i] @ k[j] / q.shape[1] ** 0.5
                weights[i, j] = np.exp(score - m * abs(q_at[i] - k_at[j]))
        weights[i] = weights[i] / sum(weights[i])
    return weights


q, k = np.random.default_rng(0).standard_normal((2, 5, 8))  # (L, K) and (S, K)
by_loops = alibi_weights_by_loops(q, k, 0.5, range(5), range(5))
last_row = softmax(k @ q[4] / np.sqrt(8) - 0.5 * np.array([4, 3, 2, 1, 0]))
assert np.allclose(by_loops[4], last_row, rtol=0, atol=1e-12)

# %% [markdown]
# The penalty is in an exponent, so it is a factor on the weight: each step away from the query
# costs a key the factor $e^{-m}$. For two neighbouring keys of the past,
#
# $$\frac{w_{i,j-1}}{w_{i,j}} = e^{-m}\; e^{\,s_{i,j-1}-s_{i,j}}$$
#
# where $s_{ij}$ is the scaled score. The first factor comes from the position, the second from the
# content.

# %%
s = q @ k.T / np.sqrt(8)  # (L, S)
for j in range(1, 5):
    ratio = by_loops[4, j - 1] / by_loops[4, j]
    assert np.isclose(ratio, np.exp(-0.5) * np.exp(s[4, j - 1] - s[4, j]), rtol=0, atol=1e-12)
print("factor of one step for m = 1/2:", f"{np.exp(-0.5):.4f}")

# %% [markdown]
# All penalties of a head form a matrix. The package's function takes slopes and distances, not a
# length, so it has no last position. The bias matrix of a longer text contains the matrix of a
# shorter text in its corner.

# %%
show_source(alibi_bias)
print(alibi_bias([1.0], relative_distance(range(5), range(5)))[0].astype(int))
m8, lengths = alibi_slopes(8), (1024, 2048)
short, long = (alibi_bias(m8, relative_distance(range(n), range(n))) for n in lengths)
assert np.array_equal(long[:, :1024, :1024], short)
q_at, k_at = [7, 3, 9], [0, 2, 5, 1]
got = alibi_bias(alibi_slopes(6), relative_distance(q_at, k_at))  # (H, L, S)
for h, i, j in np.ndindex(6, 3, 4):
    assert got[h, i, j] == -alibi_slopes(6)[h] * abs(q_at[i] - k_at[j])
bias = alibi_bias([0.5], relative_distance(range(5), range(5)))
w = attention(q, k, k, causal_mask(range(5), range(5)), bias[0])[1]
assert np.allclose(w, by_loops, rtol=0, atol=1e-12)  # the weights of the loops above

# %% alt="Bias matrices of 24 positions for slopes 1/2, 1/8 and 1/32, symmetric above and causal below. Bands darken away from the diagonal, quickly for 1/2, barely for 1/32."
at24 = np.arange(24)
chosen = {"1/2": 0.5, "1/8": 0.125, "1/32": 1 / 32}
matrices = alibi_bias(list(chosen.values()), relative_distance(at24, at24))
plots.alibi_bias_panels(matrices, causal_mask(at24, at24), list(chosen))
plt.show()

# %% [markdown]
# ## ALiBi slopes
#
# Press et al. (section 3) tried about ten sets of slopes by hand and kept one. They report that
# training the slopes did not lead to strong extrapolation. For $H$ heads, numbered
# $h = 1, \dots, H$,
#
# $$m_h = 2^{-8h/H}$$
#
# This is a geometric sequence. Neighbours have the same ratio, $1/2$ for 8 heads.


# %%
def slopes_by_formula(H):
    return [2 ** (-8 * h / H) for h in range(1, H + 1)]


assert slopes_by_formula(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
for H in (8, 16, 12):
    head = [round(m, 5) for m in slopes_by_formula(H)[:4]]
    print(f"H = {H:2}: {head} ... last {slopes_by_formula(H)[-1]}")
assert np.allclose(slopes_by_formula(16), [2 ** (-h / 2) for h in range(1, 17)], rtol=0, atol=1e-15)

# %% [markdown]
# ### Slopes for 12 heads: when H is not a power of two
#
# If $H$ is not a power of two, `get_slopes` in the [authors'
# code](https://github.com/ofirpress/attention_with_linear_biases/blob/4b92f28/fairseq/models/transformer.py#L742)
# does something else. Let $p$ be the largest power of two below $H$. Take all slopes of $p$ heads.
# For the remaining heads take every other slope of $2p$ heads, starting with the first. For 12
# heads the formula of the paper begins 0.62996, 0.39685. The code gives 0.5, 0.25, ... and after
# the eighth slope 0.7071, 0.3536, 0.1768, 0.0884. The package follows the code, because trained
# models do.


# %%
def slopes_by_rule(H):
    p = 1
    while 2 * p <= H:
        p = 2 * p
    return slopes_by_formula(p) + slopes_by_formula(2 * p)[::2][: H - p]


show_source(alibi_slopes)
for H in range(1, 65):
    assert np.allclose(alibi_slopes(H), slopes_by_rule(H), rtol=0, atol=1e-15)
assert [round(m, 5) for m in slopes_by_formula(12)[:2]] == [0.62996, 0.39685]
assert alibi_slopes(12)[8:].round(4).tolist() == [0.7071, 0.3536, 0.1768, 0.0884]
assert np.array_equal(alibi_slopes(12)[:8], m8) and alibi_slopes(12)[8:].min() > m8[3]

# %% alt="Slopes of 8 and of 12 heads on a logarithmic axis, by the formula and by the authors' rule. For 8 they coincide. For 12, the rule puts its four extra slopes at the steep end."
plots.alibi_slope_rules({H: (np.array(slopes_by_formula(H)), alibi_slopes(H)) for H in (8, 12)})
plt.show()

# %% [markdown]
# The four extra slopes, of heads 9 to 12, are in the steep half, and the list is not in descending
# order. If you sort it, you give the heads of a trained model each other's slopes.
#
# ## Is the bias added inside or outside the scale?
#
# The scores are divided by $\sqrt K$, but the bias is not. The paper's footnote 10 says so. *A
# common mistake* is $\mathrm{softmax}\big((QK^\top + B)/\sqrt K\big)$, which divides every slope by
# $\sqrt K$. Here are 16 keys of width 64, the slope 0.5, a random query and random keys.
# **Predict**: how far back does the query look on average, with the bias outside, with it inside,
# and without it?

# %% fold="output"
away = np.arange(15, -1, -1)  # distances of 16 keys
rng = np.random.default_rng(0)
q64, K64 = rng.standard_normal(64), rng.standard_normal((16, 64))
raw = K64 @ q64
scores = {"outside": raw / 8 - 0.5 * away, "inside": (raw - 0.5 * away) / 8, "no bias": raw / 8}
mean = {name: round(float(softmax(z) @ away), 2) for name, z in scores.items()}
print("slope that acts inside:", 0.5 / np.sqrt(64), "  mean distance attended to:", mean)
assert list(mean.values()) == [2.13, 5.70, 6.66]

# %% [markdown]
# Inside the scale, the bias barely matters.
#
# ## ALiBi in an encoder: distance or difference?
#
# For keys of the past $-m\,|i-j|$ and $-m\,(i-j)$ are equal. For a key of the future $i-j$ is
# negative, and $-m\,(i-j)$ becomes a *reward* that grows with the distance. Six equal keys surround
# a query at position 3. The mask decides whether the two forms differ.

# %%
i, keys = 3, np.arange(6)
symmetric = softmax(-0.5 * np.abs(i - keys))
difference = softmax(-0.5 * (i - keys))
print("-m|i-j|:", symmetric.round(3).tolist())
print("-m(i-j):", difference.round(3).tolist())
masked = [softmax(np.where(keys <= i, -0.5 * d, -np.inf)) for d in (np.abs(i - keys), i - keys)]
assert np.array_equal(*masked)  # with the mask: equal
assert difference.argmax() == 5 and symmetric.argmax() == i  # without: the far future wins

# %% [markdown]
# An encoder therefore needs the symmetric form, which the paper does not have. Its weakness is that
# $|i-j|$ does not distinguish left from right ([chapter 11](11_why_position.ipynb)). Exercise 2
# gives each side its own slope, and
# [chapter 36](36_distance_functions.ipynb#alibi-in-an-encoder-symmetric-bias-two-slopes-or-half-a-step) says more. The authors discuss
# encoders in [issue 5](https://github.com/ofirpress/attention_with_linear_biases/issues/5) of their
# repository.
#
# ## Key-only bias: a constant for each row
#
# The authors' code adds to every row the same positive numbers: $0, 0.5, 1, 1.5, 2$ for five
# positions and $m = 1/2$. Where is the distance? Write the penalty of a past key as
# $-m\,(i-j) = m\,j - m\,i$. The second part is the same for all keys of one query. A softmax
# ignores a constant that is added to a whole row, because its exponential cancels:
#
# $$\frac{e^{s_{ij} + m j - m i}}{\sum_{j'} e^{s_{ij'} + m j' - m i}}
# = \frac{e^{s_{ij} + m j}}{\sum_{j'} e^{s_{ij'} + m j'}}$$
#
# So under a causal mask the bias may depend only on the key.

# %%
m, at5 = 0.5, np.arange(5)
s5 = np.random.default_rng(2).standard_normal((5, 5))
mask = causal_mask(at5, at5)
papers = np.where(mask, s5 + alibi_bias([m], relative_distance(at5, at5))[0], -np.inf)
key_alone = np.where(mask, s5 + m * at5, -np.inf)
print("row of the encoding:", (m * at5).tolist())
assert np.allclose(softmax(papers), softmax(key_alone), rtol=0, atol=1e-14)
left = np.exp(s5[4] + m * at5 - m * 4) / np.exp(s5[4] + m * at5 - m * 4).sum()
right = np.exp(s5[4] + m * at5) / np.exp(s5[4] + m * at5).sum()
assert np.allclose(left, right, rtol=0, atol=1e-14)
assert softmax(m * at5).argmax() == 4  # without a mask, for every query

# %% alt="Three causal matrices: the penalty -m(i-j), the bias m j that depends only on the key, and the softmax weights of both. The two biases look different, one negative and one positive, but the weights are the same."
triangle = np.where(mask, 1.0, np.nan)
weights = softmax(np.where(mask, m * at5, -np.inf))
plots.alibi_row_constants(-m * (at5[:, None] - at5) * triangle, m * at5 * triangle, weights)
plt.show()

# %% [markdown]
# This works because the penalty is a straight line (exercise 3), and only under a causal mask.
# Without a mask, the last of equal keys has the largest weight for every query.
#
# ### The key-only bias in bfloat16 (second reading)
#
# The two forms are equal in exact arithmetic. But biases are rounded, and large numbers are rounded
# more coarsely. Near the query, where the weight is, $-m\,(i-j)$ is small and $m\,j$ is large. The
# next cells store both in **bfloat16**, a number format of 8 significant bits, for 2048 keys and
# $m = 1/2$.


# %%
def bfloat16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    bits = bits + np.uint32(0x7FFF) + (bits >> 16 & 1)  # round to nearest, ties to even
    return (bits & np.uint32(0xFFFF0000)).view(np.float32).astype(float)


assert bfloat16([1, 255, 257, -1023.5]).tolist() == [1, 255, 256, -1024]
j = np.arange(2048)
stored = {"-m(i-j)": bfloat16(-0.5 * (2047 - j)), "m j": bfloat16(0.5 * j)}
exact = softmax(-0.5 * (2047 - j))
for name, b in stored.items():
    moved = np.abs(softmax(b) - exact).sum() / 2
    print(f"{name:8} in bfloat16: {moved:.0%} of the weight moved")
    assert (moved > 0.2) == (name == "m j")
assert np.ptp(stored["m j"][-4:]) == 0 < np.ptp(stored["m j"][-5:])  # four alike

# %% alt="Weights of the last twelve of 2048 keys, slope one half, bias stored in bfloat16. As minus m times the distance, the bias gives the exact curve. As m times the key position, it makes the last four weights equal and leaves almost nothing for the others."
plots.alibi_rounded_rows(exact[-12:], {name: softmax(b)[-12:] for name, b in stored.items()})
plt.show()

# %% [markdown]
# With $m\,j$ the last four keys get the same weight, so the head cannot distinguish order where
# this matters most. A report on the ALiBi models of the Falcon family describes an engine that
# computes the distance in float32 and so does not reproduce a reference that rounds the key-only
# form to bfloat16 ([issue 667](https://github.com/NVIDIA/TensorRT-Model-Connect/issues/667)).
#
# ## A common mistake with a KV cache: the position of the newest token
#
# Decoding with a KV cache has one query and all the keys ([chapter 63](63_decoding.ipynb)). The
# bias needs the true position of that query. A program that builds the bias from the query's own
# window gets one zero for all keys. The zero is broadcast, and ALiBi is off without an error
# ([keras-hub #2977](https://github.com/keras-team/keras-hub/pull/2977)). To test this, check that a
# cached step equals the last row of the whole pass.

# %%
full = alibi_bias(alibi_slopes(2), relative_distance(range(6), range(6)))
step = alibi_bias(alibi_slopes(2), relative_distance([5], range(6)))  # the newest query
assert np.array_equal(step, full[:, 5:])
wrong = alibi_bias(alibi_slopes(2), relative_distance([0], [0]))  # from the query window
print("right:", (step[0, 0] + 0.0).round(4).tolist(), "  wrong:", (wrong[0, 0] + 0.0).tolist())
assert np.array_equal(np.broadcast_to(wrong, (2, 1, 6)) + 0.0, np.zeros((2, 1, 6)))

# %% [markdown]
# ## How far an ALiBi head sees
#
# ### Equal scores: the weight beyond a distance
#
# Let all scores be equal and the past be long. With $r = e^{-m}$ the weight at distance $d$ is
# $r^d$ divided by $1 + r + r^2 + \dots = 1/(1-r)$. The weight at distance $n$ or more is the tail
# of that sum, and the mean distance follows from $\sum_d d\,r^d = r/(1-r)^2$:
#
# $$\begin{gathered}w_d = (1-e^{-m})\,e^{-md}\\[4pt]
# \sum_{d\ge n} w_d = e^{-mn},\qquad
# \sum_d d\,w_d = \frac{1}{e^{m}-1}\end{gathered}$$

# %%
d = np.arange(20_000)  # long enough for the flattest slope
for m in alibi_slopes(8):
    w_d = softmax(-m * d)
    assert np.allclose(w_d, (1 - np.exp(-m)) * np.exp(-m * d), rtol=0, atol=1e-14)
    assert np.isclose(w_d[100:].sum(), np.exp(-100 * m), rtol=0, atol=1e-12)
    assert np.isclose(w_d @ d, 1 / (np.exp(m) - 1), rtol=0, atol=1e-8)
print(f"weight at distance 0, slope 1/2: {1 - np.exp(-0.5):.4f}")

# %% [markdown]
# So half of the weight is within $\ln 2/m$ keys, and 99% within $\ln 100/m$. **Predict** for the
# flattest of 8 heads ($m = 1/256$): do its 99% fit into 1024 tokens?

# %% fold="output"
print("slope    mean distance   half within   99 % within")
for h, m in enumerate(alibi_slopes(8), start=1):
    half, most = np.log(2) / m, np.log(100) / m
    if h in (1, 7, 8):
        print(f"1/{2**h:<6} {1 / (np.exp(m) - 1):12.1f} {half:13.1f} {most:13.1f}")
    for share, n in ((0.5, int(half)), (0.99, int(most))):  # n keys are too few, n + 1 enough
        assert softmax(-m * d)[:n].sum() < share <= softmax(-m * d)[: n + 1].sum()
flattest, next_one = np.log(100) / alibi_slopes(8)[[-1, -2]]  # keys that 99 % need
assert flattest > 1024 > next_one > 512

# %% [markdown]
# The figure at the top shows all eight: one curve, shifted by a factor of 2 each time. Seven of the
# heads have 99% of their weight within some 590 keys. The eighth needs 1178.9.
#
# ### Bounded scores: a head is a window (second reading)
#
# Actual scores differ. Suppose that they all lie between $-c$ and $c$. In the worst case the far
# keys have $c$ and the near ones $-c$. Then each term of the tail is at most $e^{c - md}$, and each
# term of the whole sum is at least $e^{-c-md}$. For a text of any length,
#
# $$\sum_{d\ge n} w_d \;\le\; e^{2c}\,e^{-mn}$$
#
# So all but a share $\varepsilon$ of the weight lies within $n = (2c + \ln\frac1\varepsilon)/m$
# keys, no matter how long the text. **Proved: a head with bounded scores is a window, up to
# $\varepsilon$.** Its output is the output of a hard wall at $n$, up to $2\varepsilon$ times the
# largest value.

# %%
rng = np.random.default_rng(3)
c, m, n = 2.0, 0.25, 30
bound = np.exp(2 * c) * np.exp(-m * n)
limit = 2 * bound * c  # of what the far values can change, if none is above c
for length in (64, 512, 4096):
    d = np.arange(length)
    for scores in (rng.uniform(-c, c, length), np.where(d < n, -c, c)):  # the worst case comes last
        w, near = softmax(scores - m * d), softmax((scores - m * d)[:n])
        tail, gap = w[n:].sum(), abs(w @ scores - near @ scores[:n])  # the scores serve as values
        assert tail <= bound and gap <= limit
    print(f"{length:5} keys, worst case: beyond {n} {tail:.5f}, allowed {bound:.5f}")
    assert tail > 0.95 * bound and gap > 0.95 * limit

# %% [markdown]
# ### One high-scoring key (second reading)
#
# The way out is a large score. Let the score of one key be $g$ above the scores of all the others,
# which are equal. How far away may this key be and still get half of the weight? Its exponential is
# $e^{g-md}$. The others sum to $\frac{1}{1-e^{-m}}$ without the term of its position, $e^{-md}$.
# Set both equal and solve for $d$:
#
# $$d_{1/2} = \frac{\ln(1+e^{g}) + \ln(1-e^{-m})}{m}$$


# %%
def half_reach(gap, m):
    return (np.log1p(np.exp(gap)) + np.log(-np.expm1(-m))) / m


for gap, m in ((8, 1 / 2), (8, 1 / 16), (5, 1 / 64)):
    there = half_reach(gap, m)
    others = 1 / (1 - np.exp(-m)) - np.exp(-m * there)
    assert np.isclose(np.exp(gap - m * there), others, rtol=1e-12, atol=0)
    for d, enough in ((int(there), True), (int(there) + 1, False)):
        z = -m * np.arange(20_000.0)
        z[d] += gap
        assert (softmax(z)[d] >= 0.5) == enough
    print(f"gap {gap}, slope {m}: half of the weight up to distance {int(there)}")

# %% alt="Distance at which one key with a high score keeps half of the weight, over the slope, for gaps 4, 6 and 8. Each curve has a peak: a steeper slope suppresses the key, and a flatter slope leaves too much weight on the others."
plots.alibi_loud_key(
    np.geomspace(1e-4, 1, 400), {g: half_reach for g in (4, 6, 8)}, alibi_slopes(8)
)
plt.show()

# %% [markdown]
# Each curve has a peak. To its left, the many barely penalized keys outweigh the high-scoring one.
# To its right, the distance outweighs its score. For small $m$ the reach is nearly $(g + \ln m)/m$,
# which is largest at $m = e^{1-g}$, with the value $e^{g-1}$ (exercise 4). So a head with slope $m$
# sees about $1/m$ keys with equal scores, and at most about $g/m$ for one whose score is $g$
# higher. A trained model can make its scores larger.
#
# ## Why ALiBi extrapolates: position or window?
#
# ALiBi models are known for training on short texts and running on longer ones. Is that due to
# *position*, because the penalty is meaningful at distances that did not occur in training? Or is
# it due to a *window*, because the model ignores distant text? A hard wall in front of trained
# models can show this. Three small language models read Newton's *Opticks* letter by letter and
# guess the next one. They have one layer and four heads, and are trained on 32 letters (chapters
# [61](61_autodiff.ipynb) and [62](62_model.ipynb) explain how). ALiBi's slopes are four times the
# authors', because over 32 letters the flattest, $1/256$, would subtract 1/8 only. RoPE's base is
# 500, because its slowest pair must rotate through some of its circle within 32 positions.

# %%
from dataclasses import dataclass

from pe_numpy import Model, Sizes, cosine_schedule, cross_entropy, decode, init_params
from pe_numpy import train, value_and_grad
from pe_numpy.judging.tasks import text_batch, text_corpus
from pe_numpy.transformer.encodings import Alibi, Encoding, Rope, Sinusoidal

corpus = text_corpus()
trained_length, steps = 32, 300
slopes = 4 * alibi_slopes(4)
encodings = {"ALiBi": Alibi(tuple(slopes)), "RoPE": Rope(500.0), "sinusoidal": Sinusoidal()}


# %%
def loss_of(params, model, inputs, targets, last=None):
    """Mean surprise in nats over the last targets: 0 is certainty."""
    keep = slice(None) if last is None else slice(-last, None)
    return cross_entropy(decode(params, model, inputs)[:, keep], targets[:, keep])


# %%
sizes = Sizes(len(corpus["alphabet"]), 32, 64, n_layers=1)
models = {name: Model(4, encoding) for name, encoding in encodings.items()}
trained = {}
for name, model in models.items():
    trained[name], losses = train(
        init_params(sizes, model, np.random.default_rng(0), np.float64),
        value_and_grad(lambda params, batch, _, model=model: loss_of(params, model, **batch)),
        lambda rng: text_batch(rng, 16, trained_length, corpus),
        steps,
        lambda t: cosine_schedule(t, steps, 6e-3),
    )
    print(f"{name:10} loss at the start {losses[0]:.1f}, at the end {np.mean(losses[-20:]):.1f}")

# %% [markdown]
# The test is on text kept out of training. The models guess the *same* 16 letters, at the end of
# 32, 64, 128 or 256 letters of text, so any rise comes only from the length.


# %%
@dataclass(frozen=True)
class Walled(Encoding):  # another encoding, of whose scores those of the nearest keys are left
    inner: Encoding
    window: int

    def embed(self, *x):
        return self.inner.embed(*x)

    def turn(self, *x):
        return self.inner.turn(*x)

    def scores(self, params, q, k, context):
        near = context.distance < self.window
        return np.where(near, self.inner.scores(params, q, k, context), -np.inf)


# %%
lengths = (32, 64, 128, 256)
test = text_batch(np.random.default_rng(0), 64, 256, corpus, held_out=True)


def loss_at(name, n, window=None):
    encoding = encodings[name] if window is None else Walled(encodings[name], window)
    inputs, targets = test["inputs"][:, -n:], test["targets"][:, -n:]
    return float(loss_of(trained[name], Model(4, encoding), inputs, targets, last=16))


open_view = {name: [loss_at(name, n) for n in lengths] for name in models}
for name, row in open_view.items():
    print(f"{name:10}", [f"{x:.2f}" for x in row])
assert np.ptp(open_view["ALiBi"]) < 0.02 and open_view["RoPE"][-1] > open_view["RoPE"][0] + 0.3
assert open_view["sinusoidal"][1] > open_view["sinusoidal"][0] + 0.2

# %% [markdown]
# At 32 letters the straight line does as well as RoPE. ALiBi's loss is flat up to eight times the
# training length, but RoPE and the sinusoidal encoding fail. Now take the same models, not trained
# any further, behind a wall of 16 keys. **Predict** each of the three lines.

# %% fold="output" alt="Loss on the same letters over the length of the given text, for ALiBi, RoPE and sinusoidal encodings, with all keys and with a hard window. The window makes RoPE as flat as ALiBi. Sinusoidal encodings fail with and without it."
behind_wall = {name: [loss_at(name, n, 16) for n in lengths] for name in models}
assert abs(open_view["ALiBi"][0] - open_view["RoPE"][0]) < 0.02
for name in ("ALiBi", "RoPE"):
    assert max(behind_wall[name]) < open_view[name][0] + 0.01  # the hard window costs nothing ...
    assert np.ptp(behind_wall[name]) < 1e-9  # ... and the line is flat
assert behind_wall["sinusoidal"][1] > behind_wall["sinusoidal"][0] + 0.2
plots.alibi_behind_wall(lengths, open_view, behind_wall, trained_length)
plt.show()

# %% [markdown]
# 1. ALiBi loses nothing, because it gained nothing from the letters beyond 16.
# 2. RoPE becomes as flat as ALiBi. With a relative encoding and one layer this is certain, because
#    the 16 letters attend to the same keys at the same distances, regardless of the length. The
#    price of the wall is measured, and it is zero.
# 3. The wall does not save the sinusoidal encoding. Its position enters at the token vector, so
#    letter 200 has an encoding that was never seen, with or without a wall.
#
# So what carries a model beyond its length, here, is *relative position and a window*; ALiBi is
# both in one term. How near may the wall come? And which share of each head's weight, at 256
# letters, is at distances of 32 and more?

# %%
near = {window: loss_at("ALiBi", 256, window) for window in (2, 4)}
print({window: f"{x:.2f}" for window, x in near.items()}, " open:", f"{open_view['ALiBi'][-1]:.2f}")
assert abs(near[4] - open_view["ALiBi"][-1]) < 0.02 < near[2] - near[4]
watch = {}
decode(trained["ALiBi"], models["ALiBi"], test["inputs"], watch=watch)
weights = watch["attention 0"][:, :, -16:]  # (B, H, 16, S), the last queries
apart = relative_distance(np.arange(240, 256), np.arange(256))
beyond = (weights * (apart >= trained_length)).sum(axis=-1).mean(axis=(0, 2))
for m, share in zip(slopes, beyond, strict=True):
    print(f"slope {m:8}: {share:5.1%} of the weight at new distances")
assert beyond[0] < 0.001 < 0.5 < beyond[3]

# %% [markdown]
# Four letters are enough, so this toy cannot show whether ALiBi *could* use more. And the flattest
# head puts more than half of its weight on distances that did not occur in training, without harm
# to the loss. For the steep heads "window" is right. For the flat one we can only say that its
# penalty continues as it began, and that nothing depended on it.
#
# One more trap concerns long test texts. If such a text is cut into pieces of $n$ tokens, the first
# tokens of each piece have little context. Therefore the mean over all tokens falls with $n$ even
# for a model that needs only four letters. The paper calls it the *early token curse*.

# %%
cut = {}
for n in lengths:
    pieces = [test[part].reshape(-1, n) for part in ("inputs", "targets")]
    cut[n] = float(loss_of(trained["ALiBi"], models["ALiBi"], *pieces))
print("all letters, text cut into pieces:", {n: f"{x:.3f}" for n, x in cut.items()})
assert all(np.diff(list(cut.values())) < 0)
assert cut[32] - cut[256] > 2 * np.ptp(open_view["ALiBi"])  # more than the same letters differ

# %% [markdown]
# The authors checked their own models in this way (appendix B.2). With a window that slides by one
# token, the perplexity (the exponential of the loss) of ALiBi models stays flat. They conclude that
# beyond the trained length ALiBi "might not be using contexts longer than the ones it was trained
# on". Two things are settled. With bounded scores a head is a window (proved). The loss is flat up
# to 8 times the length, and a wall of 16 changes nothing (measured here, one seed, one small
# model). None of this shows that a model finds a far token when it needs it. [Chapter
# 71](71_study.ipynb) tests that.

# %% [markdown]
# ## In short
#
# - **What sign does the bias have?** The bias is $-m\,|i-j|$, never above 0, so the nearest of
#   equal keys gets the largest weight. Without a causal mask, $-m\,(i-j)$ rewards the future.
#   [Encoders](#alibi-in-an-encoder-distance-or-difference).
# - **Is the bias added before or after the scale?** After it:
#   $\mathrm{softmax}(q\cdot k/\sqrt K - m\,|i-j|)$. Inside the scale, with $K = 64$, a slope of 0.5
#   acts as 0.0625. [Scale](#is-the-bias-added-inside-or-outside-the-scale).
# - **Which slopes, if the number of heads is not a power of two?** Use the authors' rule,
#   `alibi_slopes(H)`. For 12 heads it gives the slopes of 8, then 0.7071, 0.3536, 0.1768, 0.0884.
#   Don't sort them. [12 heads](#slopes-for-12-heads-when-h-is-not-a-power-of-two).
# - **Why does my library add $m\,j$?** Under a causal mask it gives the same weights as
#   $-m\,(i-j)$. The two differ by a constant in each row. In bfloat16 $m\,j$ is coarse just where
#   the weight is. [Key-only bias](#key-only-bias-a-constant-for-each-row).
# - **What changes with a KV cache?** The bias needs the newest query's true position. If it is
#   built from the query's own window it is one zero, and ALiBi is off without an error.
#   [Cache](#a-common-mistake-with-a-kv-cache-the-position-of-the-newest-token).
# - **Why does ALiBi extrapolate?** At equal scores 99% of the weight is within $\ln 100/m$ keys. In
#   a small model a wall of 16 keys changes nothing, and RoPE behind it is as flat.
#   [Reach](#how-far-an-alibi-head-sees),
#   [position or window](#why-alibi-extrapolates-position-or-window).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 35` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 35_alibi.py` checks yours.
#
# ### Exercise 1: MPT's program, the same slopes
#
# If $H$ is not a power of two,
# [MPT's code](https://github.com/mosaicml/llm-foundry/blob/89f56d2/llmfoundry/models/layers/attention.py#L557)
# computes the slopes of the next power of two *above* $H$. It joins those with odd index (`[1::2]`)
# and those with even index (`[::2]`) in this order, and keeps the first $H$. Show that this is the
# authors' rule for 1 to 64 heads. Why?
#
# <details><summary>Hint 1</summary>
#
# Every second slope of $2p$ heads is a slope of $p$ heads.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $2^{-8 \cdot 2h/(2p)} = 2^{-8h/p}$. Which indices are these, counted from 0?
#
# </details>
#
# <details><summary>Solution</summary>
#
# The odd indices of the list for $2p$ are the list for $p$; the even ones follow.
#
# ```python
# def slopes_of_mpt(H):
#     above = 1 << (H - 1).bit_length()
#     many = slopes_by_formula(above)
#     return many if above == H else (many[1::2] + many[::2])[:H]
#
# for H in range(1, 65):
#     assert np.allclose(slopes_of_mpt(H), alibi_slopes(H), rtol=0, atol=1e-15)
# ```
#
# </details>
#
# ### Exercise 2: An ALiBi encoder that distinguishes left from right
#
# With $-m\,|i-j|$ and no mask, show for $q = k = v = x$ that a reversed sentence gets reversed
# outputs. Then use the slope $m$ for the past and $2m$ for the future, and show that it does not.
#
# <details><summary>Hint 1</summary>
#
# `alibi_bias` takes `future_slopes`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Compare `attention(x[::-1], ...)` with the reversed output of `attention(x, ...)`.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# words = np.random.default_rng(5).standard_normal((4, 8))
# apart4 = relative_distance(np.arange(4), np.arange(4))
# both, sided = alibi_bias([0.5], apart4)[0], alibi_bias([0.5], apart4, [1.0])[0]
# for penalty, blind in ((both, True), (sided, False)):
#     ahead = attention(words, words, words, bias=penalty)[0]
#     back = attention(words[::-1], words[::-1], words[::-1], bias=penalty)[0]
#     assert np.allclose(back, ahead[::-1], rtol=0, atol=1e-6) == blind
# ```
#
# </details>
#
# ### Exercise 3: Only straight lines allow a key-only bias
#
# A penalty $-f(i-j)$ should equal $a_j + b_i$ for all $j \le i$, so that a bias that depends only
# on the key gives the same weights. Show that $f$ must be a straight line, and that
# $f(d) = \sqrt d$ fails.
#
# <details><summary>Hint 1</summary>
#
# Compare two neighbouring keys of one query: $f(i-j+1) - f(i-j)$ must not depend on $i$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Fix $j$ and let $i$ run: then the difference of neighbouring values of $f$ is the same everywhere.
#
# </details>
#
# <details><summary>Solution</summary>
#
# $-f(i-j) + f(i-j+1) = a_j - a_{j-1}$. With $j = 1$ and any $i \ge 1$ the left side runs through
# all differences of neighbours, and the right side is one number.
#
# ```python
# at8 = np.arange(8)
# for f, works in ((lambda d: 0.5 * d, True), (np.sqrt, False)):
#     key_bias = -f(7 - at8)  # right for query 7, whatever constant one adds
#     other = softmax(-f(6 - at8[:7]))
#     assert np.allclose(softmax(key_bias[:7]), other, rtol=0, atol=1e-6) == works
# ```
#
# </details>
#
# ### Exercise 4: The best slope for one high-scoring key
#
# The score of one key is $g = 7$ above the others. Which slope lets it keep half of the weight at
# the largest distance, and which of the 8 heads comes closest? Compare with the estimate
# $m = e^{1-g}$.
#
# <details><summary>Hint 1</summary>
#
# Evaluate `half_reach(7, m)` on a fine grid of slopes.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $e^{-6}$ is about 1/400.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The best slope is close to $e^{-6}$, flatter than all eight.
#
# ```python
# grid = np.geomspace(1e-4, 1, 20_001)
# best = grid[half_reach(7, grid).argmax()]
# assert abs(np.log(best) - (1 - 7)) < 0.02 and best < alibi_slopes(8).min()
# assert half_reach(7, alibi_slopes(8)).argmax() == 7
# assert abs(half_reach(7, best) / np.exp(6) - 1) < 0.02
# ```
#
# </details>
#
# ## In practice
#
# - **The sign.** A well-known collection of attention variants had `slope * (q - k)`, which rewards
#   distance ([attention-gym #86](https://github.com/meta-pytorch/attention-gym/pull/86)). Test that
#   the last of equal keys gets the largest weight.
# - **Numbering heads from 0** gives slopes $1$ to $1/128$ for 8 heads, twice too steep
#   ([aprender #2143](https://github.com/paiml/aprender/pull/2143)). Test that the slopes of 8 heads
#   begin at 0.5 and end at 0.00390625.
# - **Head counts that are not a power of two.** One library computed the formula where trained
#   models use the rule, for two years ([mlx #343](https://github.com/ml-explore/mlx/issues/343),
#   fixed by [#3071](https://github.com/ml-explore/mlx/pull/3071)). The maintainers of another kept
#   the authors' rule against a contributor's falling order
#   ([TensorRT-LLM #1611](https://github.com/NVIDIA/TensorRT-LLM/pull/1611)).
# - **Which form.** BLOOM, MPT and the authors' code add a bias that depends only on the key.
#   BLOOM's and the authors' are positive
#   ([issue 9](https://github.com/ofirpress/attention_with_linear_biases/issues/9) asks why), MPT's
#   end in 0. The Falcon-RW models add theirs *before* the division, so each slope acts divided by
#   $\sqrt K$. This is wrong for the paper, and right for their weights
#   ([TensorRT-Model-Connect #32](https://github.com/NVIDIA/TensorRT-Model-Connect/pull/32)).
# - **Left padding** shifts all positions of a text alike, so distances, and ALiBi's bias, do not
#   change.

# %%
text, padding = np.arange(5), 3
shifted = alibi_bias(alibi_slopes(4), relative_distance(text + padding, text + padding))
assert np.array_equal(shifted, alibi_bias(alibi_slopes(4), relative_distance(text, text)))
from_zero = np.array([2.0 ** (-8 * h / 8) for h in range(8)])
assert np.array_equal(from_zero, 2 * alibi_slopes(8)) and from_zero[-1] == 1 / 128
assert alibi_slopes(8)[-1] == 0.00390625

# %% [markdown]
# ## Further reading
#
# - Press, Smith and Lewis 2022, *Train Short, Test Long*,
#   [arXiv:2108.12409](https://arxiv.org/abs/2108.12409): section 3, figure 1, appendix B; and the
#   [authors' code](https://github.com/ofirpress/attention_with_linear_biases/tree/4b92f28).
# - Chi et al. 2023, *Dissecting Transformer Length Extrapolation*,
#   [arXiv:2212.10356](https://arxiv.org/abs/2212.10356): compares ALiBi with attention behind a
#   wall.
# - Chi et al. 2022, *KERPLE*, [arXiv:2205.09921](https://arxiv.org/abs/2205.09921): other
#   penalties, with trained numbers.
#
# **Cards**: [alibi](CARDS.md#alibi), [alibi_signed](CARDS.md#alibi_signed).
