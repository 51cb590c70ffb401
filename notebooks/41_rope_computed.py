# %% [markdown]
# # 41. RoPE in code: signs, layouts, caches, precision
#
# *Which sign, which positions with a cache, which precision, and does the score fall with distance?*
#
# 40 minutes. Needs [40 Rotary position embedding (RoPE): the derivation](40_rope_derived.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** The RoPE formula is short, and programs still get it wrong: the sign, the
# positions of a cached or padded batch, the number format of the angles. You rotate a vector by
# hand and write tests that find these errors. You see what RoPE does with a KV cache (stored keys
# and values), with padding on the left and with two sequences in one row. At the end you know which
# mistakes raise no error, how far pairs of components turn in training, and what is proved about
# scores that fall with distance.

# %% fold="input" alt="Left: map of scores over query and key position, with eight pairs circled. Right: the same scores over the distance. The map has constant diagonals, so each distance has one score."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import attention, causal_mask, padding_mask, rope, rope_frequencies, rope_matrix
from pe_numpy.book.plots import rope_computed as plots

np.random.seed(42)  # noqa: NPY002
q, k = np.random.randn(8), np.random.randn(8)  # noqa: NPY002
circled = [(0, 0), (4, 4), (10, 0), (15, 5), (18, 8), (6, 16), (16, 26), (3, 13)]
grid = np.arange(27)
scores = rope(np.tile(q, (27, 1)), grid) @ rope(np.tile(k, (27, 1)), grid).T  # (M, N)
plots.rope_score_map(scores, circled)
plt.show()

# %% [markdown]
# ## Rotate one vector by hand
#
# In the figure each square is the score of a query at position $m$ and a key at position $n$. Along
# a diagonal the distance $m - n$ is the same, and so is the score. The cells below check the
# circled pairs.
#
# Take a query of $d = 8$ numbers at position 3. Its components form pairs, 0 and 1, 2 and 3, and so
# on. Pair $c$ turns by the **angle** $m\theta_c$, where $\theta_c$ is its **frequency** in radians
# per position. A pair $(a, b)$ becomes $(a', b')$. **Predict** which of the four pairs turns most,
# and whether the vector gets longer.
#
# $$\begin{gathered}\theta_c = 10000^{-2c/d}, \qquad c = 0, \ldots, d/2 - 1\\[4pt]
# a' = a \cos m\theta_c - b \sin m\theta_c, \qquad b' = a \sin m\theta_c + b \cos m\theta_c\end{gathered}$$

# %% fold="output"
d, m, pairs, turned = 8, 3, q.reshape(4, 2), np.empty((4, 2))  # row c: components 2c and 2c + 1
theta = np.array([10000 ** (-2 * c / d) for c in range(d // 2)])
for c, (a, b) in enumerate(pairs):
    cos, sin = np.cos(m * theta[c]), np.sin(m * theta[c])
    turned[c] = a * cos - b * sin, a * sin + b * cos
    assert np.isclose(np.hypot(*turned[c]), np.hypot(a, b), rtol=0, atol=1e-14)
print("angles:", (m * theta).round(4).tolist())
print("before:", pairs.round(3).tolist())
print("after: ", turned.round(3).tolist())
print(f"length: {np.linalg.norm(pairs):.8f} before, {np.linalg.norm(turned):.8f} after")
assert np.allclose(m * theta, [3, 0.3, 0.03, 0.003], rtol=0, atol=1e-14)
assert turned[:3].round(3).tolist() == [[-0.472, 0.207], [0.169, 1.646], [-0.227, -0.241]]
assert f"{np.linalg.norm(turned):.8f}" == f"{np.linalg.norm(q):.8f}" == "2.48947373"
assert np.allclose(turned.ravel(), rope(q[None], [3])[0], rtol=0, atol=1e-14)

# %% alt="Four planes, one for each pair of components. Each shows a pair before and after its rotation at position 3. The first rotates by almost half a circle; the last barely moves."
plots.rope_step(pairs, turned, m * theta)
plt.show()

# %% [markdown]
# All four pairs are at the same position. Yet the first has almost reached the other side of its
# circle, and the fourth has not visibly left its place. A rotation keeps lengths in every plane, so
# it keeps the length of the vector. Partners are two components of *one* token. The function `rope`
# does the same for arrays `(..., L, K)`, with a position for each vector ([chapter
# 40](40_rope_derived.ipynb) has its source, and the other layout).
#
# ## The sign of RoPE: key position minus query position
#
# Let $R_m$ be the rotation of position $m$. Turning query and key both back by $m$ changes no inner
# product. The query is then unrotated, and the key is at $n - m$, which is the position of the
# *key* minus the position of the *query*.
#
# $$\langle R_m q, R_n k \rangle = \langle q, R_{n-m} k \rangle = \langle R_{m-n} q, k \rangle$$


# %%
def turn(vector, position):
    return rope(vector[None], [position])[0]


def equal(a, b):
    return bool(np.allclose(a, b, rtol=0, atol=1e-11))


for m, n in circled:
    assert equal(turn(q, m) @ turn(k, n), scores[m, n])
    assert equal(scores[m, n], q @ turn(k, n - m)) and equal(scores[m, n], turn(q, m - n) @ k)
    assert equal(q @ turn(k, m - n), turn(q, n) @ turn(k, m))  # the wrong sign
    assert equal(q @ turn(k, m - n), scores[m, n]) == (m == n)
print(f"m = 10, n = 0: {scores[10, 0]:.6f}, with the wrong sign {q @ turn(k, 10):.6f}")

# %% [markdown]
# The figure at the top shows this product for all positions from 0 to 26. Its 729 scores fall on 53
# values, one for each distance $m - n$. The map is not symmetric. A key 10 positions in the past
# and one 10 positions in the future get different scores, and $R_{m-n}k$ instead of $R_{n-m}k$
# exchanges the two. A row vector *times* $R_m$ also turns the wrong way, because the matrix belongs
# to the left of a column.

# %%
for distance in range(-26, 27):
    stripe = np.diagonal(scores, -distance)
    assert equal(stripe, stripe[0])
distinct = len(np.unique(scores.round(9)))
print(scores.size, "scores,", distinct, "values")
assert (scores.size, distinct) == (729, 53) and not np.allclose(scores, scores.T, rtol=0, atol=0.1)
R_3 = rope_matrix(3, theta)
assert equal(R_3 @ q, turn(q, 3)) and equal(q @ R_3, turn(q, -3))

# %% [markdown]
# ### A common mistake: queries and keys rotated the wrong way
#
# Suppose a program turns queries *and* keys clockwise. Which of five checks find it? The cell
# checks that lengths are kept, position 0 is unchanged, two turns add up, scores depend only on
# $m - n$, and one vector gets its known answer.


# %%
def checks_passed(sign):
    """Five checks of a rotation of (L, 2) vectors at positions (L,), frequency 1."""
    v, at = np.random.default_rng(4).normal(size=(4, 2)), np.array([0, 3, 7, 11])

    def t(x, at):
        return rope(x, sign * at, [1.0])

    return {
        "length kept": equal(np.linalg.norm(t(v, at), axis=1), np.linalg.norm(v, axis=1)),
        "position 0": equal(t(v, 0 * at), v),
        "angles add up": equal(t(t(v, at), 2 * at), t(v, 3 * at)),
        "relative": equal(t(v, at) @ t(v, at).T, t(v, at + 5) @ t(v, at + 5).T),
        "known vector": equal(t([[1.0, 0.0]], np.array([1])), [[np.cos(1), np.sin(1)]]),
    }


# %% [markdown]
# **Predict** the column "wrong way".

# %% fold="output"
right, wrong = checks_passed(1), checks_passed(-1)
print(f"{'check':14} right way  wrong way")
for name in right:
    print(f"{name:14} {right[name]!s:9}  {wrong[name]}")
assert all(right.values())
assert [name for name, passed in wrong.items() if not passed] == ["known vector"]
flip = np.tile([1.0, -1.0], 4)  # mirror every pair
assert equal(turn(q, -10) @ k, turn(q * flip, 10) @ (k * flip))
assert not np.isclose(turn(q, -10) @ k, turn(q, 10) @ k, rtol=0, atol=0.1)
one_side = {(m, n): turn(q, m) @ turn(k, -n) for m, n in ((2, 1), (0, 3), (3, 2))}
assert equal(one_side[2, 1], one_side[0, 3])  # the same m + n
assert not np.isclose(one_side[2, 1], one_side[3, 2], rtol=0, atol=0.01)

# %% [markdown]
# Of the five checks only the known answer finds the error. Turning the wrong way equals turning the
# right way with every pair mirrored before and after, and in a score the later mirrorings cancel.
# So a model trained with the error can do the same, and the error shows only when its weights move
# to another program. Turning *one* side the wrong way is worse but easily found, because the score
# then depends on $m + n$.
#
# ## Pass positions, not lengths
#
# A length says how many tokens there are. Positions say where they are. `rope(x, positions)` takes
# positions for queries and keys separately. The cases below then need no special code.
#
# ### RoPE with a KV cache
#
# A **KV cache** (key-value cache) keeps the keys and values of earlier tokens, so that a decoder
# computes one new query, key and value per step ([chapter 63](63_decoding.ipynb)). First we take
# all six tokens in one call, with a causal mask. This is what the decoder must reproduce. The cache
# may keep keys that were rotated on arrival, unrotated keys that are rotated at each step, or
# rotated keys that are rotated again. **Predict** which are right.

# %% fold="output"
rng = np.random.default_rng(0)
q_all, k_all, v_all = rng.normal(size=(3, 2, 3, 6, 8))  # each (B, H, L, K)
at = np.arange(6)
full, _ = attention(rope(q_all, at), rope(k_all, at), v_all, mask=causal_mask(at, at))
for kept, again in ((True, False), (False, True), (True, True)):
    rows, cache = [], k_all[:, :, :0]
    for t in range(6):
        key, query = k_all[:, :, t : t + 1], rope(q_all[:, :, t : t + 1], [t])  # its true position
        cache = np.concatenate([cache, rope(key, [t]) if kept else key], axis=2)
        keys = rope(cache, np.arange(t + 1)) if again else cache
        rows.append(attention(query, keys, v_all[:, :, : t + 1])[0])
    same = equal(np.concatenate(rows, axis=2), full)
    print(f"rotated on arrival: {kept!s:5}  rotated at each step: {again!s:5}  same output: {same}")
    assert same == (kept != again) and (same or np.abs(np.concatenate(rows, 2) - full).max() > 0.1)

# %% [markdown]
# The query is at its true position $t$, although the call has no other query. A cache of rotated
# keys turns each key once. A cache of unrotated keys can follow frequencies that change with the
# length of the text ([chapter 50](50_scaling.ipynb)). A key that is rotated twice is at twice its
# position. In grouped-query attention, several query heads share one **KV head**. All heads have
# the same positions, so rotate the few keys before they are shared. If three heads share one, this
# is a third of the work ([chapter 44](44_fewer_keys.ipynb)).
#
# ### A common mistake: a cosine table as long as the queries
#
# This function makes its cosines for the first `L` positions, where `L` counts the queries, and
# uses them for queries and keys alike. It takes `position_ids` and ignores it. Its pairs are
# half-split, as in libraries with a function `rotate_half`. With all tokens in one call, from
# position 0 on, it is right. **Predict** what it does with one query and a cache.


# %% fold="output"
def by_length(q, k, position_ids=None):
    angles = np.outer(np.arange(q.shape[-2]), rope_frequencies(q.shape[-1]))  # (L, K/2)

    def turn_half(x):
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles),
                               a * np.sin(angles) + b * np.cos(angles)], axis=-1)  # fmt: skip

    return turn_half(q), turn_half(k)


assert equal(by_length(q_all, k_all)[1], rope(k_all, at, layout="half"))
one_query, keys = by_length(q_all[:, :, 5:], k_all, position_ids=at)
print("one query, six keys: nothing rotated:", np.array_equal(keys, k_all))
assert np.array_equal(keys, k_all) and np.array_equal(one_query, q_all[:, :, 5:])

# %% [markdown]
# The table has one row, for position 0, and every key is rotated by it. RoPE is off, without an
# error.
#
# ### Translation tests, and cross-attention
#
# Scores depend only on distances, so a text may start anywhere: moving queries and keys by 100
# positions changes no output. Moving only the keys changes the output. This matters in
# cross-attention, where queries and keys have positions in two different sequences. RoPE is
# meaningful there only if both count the same thing, such as the time of two tracks of one video.

# %%
later = at + 100
both, _ = attention(rope(q_all, later), rope(k_all, later), v_all, mask=causal_mask(at, at))
one, _ = attention(rope(q_all, at), rope(k_all, later), v_all, mask=causal_mask(at, at))
print("both clocks moved, same output:", equal(both, full), "  one clock moved:", equal(one, full))
assert equal(both, full) and np.abs(one - full).max() > 0.1
assert not np.allclose(rope(q_all, later), rope(q_all, at), rtol=0, atol=0.1)  # queries did move

# %% [markdown]
# ### Left padding and position ids
#
# A batch contains texts of 3 and 5 tokens, padded on the left to 5. The positions of the first are
# 0, 1, 2 in its last three columns. Each text has one row, with an axis for the heads, `(B, 1, L)`.
# The mask removes the padding.

# %%
lengths, places = np.array([3, 5]), np.arange(5)
q_pad, k_pad, v_pad = np.random.default_rng(1).normal(size=(3, 2, 3, 5, 8))  # (B, H, L, K)
pos = np.maximum(places - (5 - lengths)[:, None], 0)[:, None, :]  # (B, 1, L)
print("positions:", pos[:, 0].tolist())
mask = causal_mask(places, places) & padding_mask(lengths, 5, side="left")
padded, _ = attention(rope(q_pad, pos), rope(k_pad, pos), v_pad, mask=mask)
for b, length in enumerate(lengths):
    q1, k1, v1 = (x[b, :, 5 - length :] for x in (q_pad, k_pad, v_pad))  # without the padding
    p = np.arange(length)
    alone, _ = attention(rope(q1, p), rope(k1, p), v1, mask=causal_mask(p, p))
    assert equal(padded[b, :, 5 - length :], alone)

# %% [markdown]
# What if you forget this, and give every row the positions 0 to 4? **Predict**: is the pass over
# the given tokens (the **prefill**) still right, and is the next token, at its true position 3?

# %% fold="output"
forgot, _ = attention(rope(q_pad, places), rope(k_pad, places), v_pad, mask=mask)
print("prefill, same output:", equal(forgot[0, :, 2:], padded[0, :, 2:]))
q_new, k_short, v_short = np.ones((3, 1, 8)), k_pad[0, :, 2:], v_pad[0, :, 2:]
right, _ = attention(rope(q_new, [3]), rope(k_short, [0, 1, 2]), v_short)
mixed, _ = attention(rope(q_new, [3]), rope(k_short, [2, 3, 4]), v_short)
print("next token, same output:", equal(mixed, right))
assert equal(forgot[0, :, 2:], padded[0, :, 2:]) and np.abs(mixed - right).max() > 0.01

# %% [markdown]
# The prefill is right by accident, because all positions of the text are shifted alike. The next
# token is wrong: its query is at 3, while the keys are rotated for 2, 3 and 4.
#
# ### Packing two sequences into one row
#
# To waste no column, training puts several texts into one row. Positions may start again with each
# text, and a **block mask** may forbid attending to another text. Which combinations equal two
# separate runs?

# %%
text = np.array([0, 0, 0, 1, 1, 1, 1, 1])
restart, running = np.array([0, 1, 2, 0, 1, 2, 3, 4]), np.arange(8)
q8, k8, v8 = rng.normal(size=(3, 3, 8, 8))  # each (H, L, K)
separate = np.concatenate([
    attention(rope(q8[:, own], p), rope(k8[:, own], p), v8[:, own], mask=causal_mask(p, p))[0]
    for own, p in ((text == 0, np.arange(3)), (text == 1, np.arange(5)))
], axis=1)  # fmt: skip
for name, p in (("restart", restart), ("running", running)):
    for block in (True, False):
        mask = causal_mask(running, running) & ((text[:, None] == text) | (not block))
        packed, _ = attention(rope(q8, p), rope(k8, p), v8, mask=mask)
        print(f"positions {name}, block mask {block!s:5}: equal {equal(packed, separate)}")
        assert equal(packed, separate) == block
breaks, none = (np.diff(p, prepend=-1) != 1 for p in (restart, running))
assert np.array_equal(breaks.cumsum(), text) and not none.any()  # restarts tell texts apart

# %% [markdown]
# For RoPE the mask is enough, since running positions only shift each text. Restarted positions
# without the mask leak one text into the other. Position vectors that are added to tokens need
# both. But a library may make the mask from the restarts. transformers 5.23.0 does so
# ([`masking_utils.py`](https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/masking_utils.py),
# `find_packed_sequence_indices`) if it gets no mask and keeps no cache (by default a model keeps
# one).
#
# ### Partial RoPE
#
# **Partial RoPE** rotates the first $r$ components and leaves the others for content only. GPT-J
# rotates 64 of 256 components, and GPT-NeoX and Pythia rotate a quarter of them. There are two ways
# to choose the frequencies. The first, $10000^{-2c/r}$, covers the whole range within the $r$
# components. The second, $10000^{-2c/K}$, takes the first $r/2$ frequencies of the full width $K$,
# so it has no slow pairs. GPT-J, GPT-NeoX and Phi use the first. `rope` takes the frequencies, so
# it serves both. Half-split partners are then $c$ and $c + r/2$.

# %%
r, width, p = 64, 256, [5, 6, 7, 8]
inner, outer = rope_frequencies(r), rope_frequencies(width)[: r // 2]
print(f"second pair:  denominator r {inner[1]:.5f}   denominator K {outer[1]:.5f}")
print(f"slowest pair: denominator r {inner[-1]:.5f}   denominator K {outer[-1]:.5f}")
x, y = rng.normal(size=(2, 4, width))
for layout in ("interleaved", "half"):
    partly_x, partly_y = rope(x, p, inner, layout), rope(y, p, inner, layout)
    assert np.array_equal(partly_x[:, r:], x[:, r:])
    assert equal(partly_x[:, :r], rope(x[:, :r], p, layout=layout))
    relative = rope(x[:, :r], p, layout=layout) @ rope(y[:, :r], p, layout=layout).T
    assert equal(partly_x @ partly_y.T, relative + x[:, r:] @ y[:, r:].T)  # rotated + content only

# %% [markdown]
# ## Does the RoPE score decay with distance?
#
# RoFormer says in its section 3.3 that the inner product decays with distance. Let query and key be
# equal, with all 128 components 1. **Predict** the distance at which the score first rises, and the
# distance of its peak if the query is first turned *backwards* by 50.


# %% fold="output" alt="Scores over the distance for three pairs of vectors, with the maximum marked. One oscillates without falling, equal vectors fall in waves, and a rotated query has its peak at distance 50."
def over_distance(q, k, distance):
    return rope(np.tile(q, (len(distance), 1)), distance) @ k  # (N,)


far, ones, q50 = np.arange(201), np.ones(128), turn(np.ones(128), -50)
own, alike, back = (over_distance(*x, far) for x in ((q, k), (ones, ones), (q50, ones)))
rises = np.flatnonzero(np.diff(alike) > 0) + 1
print("equal:", ", ".join(f"{alike[i]:.2f} at distance {i}" for i in (0, 10, 100, 200)))
print(f"rises in {len(rises)} of 200 steps, first at distance {rises[0]}")
assert len(rises) == 86 and rises[0] == 12 and own[:13].argmin() == 0
assert back.argmax() == 50 and np.isclose(back[50], 128, rtol=0, atol=1e-9)  # Proposition 3.1
names = ("q, k of the map", "all ones", "q rotated by -50")
plots.rope_scores_over_distance(far, dict(zip(names, (own, alike, back), strict=True)))
plt.show()

# %% [markdown]
# For the $q$ and $k$ of the map at the top, the smallest score of the first 13 distances is at 0.
# The score of the equal vectors falls from 128 to 39.13, but rises in 86 of 200 steps. With the
# query that was turned back it peaks 50 tokens away, and the same construction works for any
# distance (Barbero et al. 2024, Proposition 3.1). This is a strength, but it is not decay.
#
# ### Unrelated queries and keys: no decay
#
# Let query and key have independent standard normal components. Turning a cloud of points that is
# the same in all directions changes nothing. So at every distance the score has mean 0 (Barbero et
# al., Proposition 3.2) and standard deviation $\sqrt{d}$. We draw 4000 pairs and compare them with
# equal contents ($q = k$). For speed, the cell computes a score as the sum over pairs,
# $\mathrm{Re} \sum_c q_{[c]} k_{[c]}^* e^{\mathrm{i}\delta\theta_c}$ with $\delta = m - n$
# ([chapter 40](40_rope_derived.ipynb)).

# %%
q_many, k_many = np.random.default_rng(0).normal(size=(2, 4000, 128)).view(complex)  # (P, d/2)
steps = np.unique(np.geomspace(1, 1001, 60).astype(int)) - 1  # 0 .. 1000
arrows = np.exp(1j * steps[:, None] * rope_frequencies(128)).T  # (d/2, N)
samples = {
    name: ((x * k_many.conj()) @ arrows).real  # (P, N)
    for name, x in (("equal contents", k_many), ("unrelated contents", q_many))
}
curves = {name: (x.mean(axis=0), x.std(axis=0)) for name, x in samples.items()}
for name, (mean, deviation) in curves.items():
    print(f"{name:18} mean {mean[0]:6.2f} .. {mean[-1]:5.2f}, deviation {deviation[-1]:.2f}")
    expected = over_distance(ones, ones, steps) if name == "equal contents" else 0
    assert (np.abs(mean - expected) < 4 * deviation / np.sqrt(4000)).all()  # 4 standard errors
assert np.allclose(deviation, np.sqrt(128), rtol=0, atol=0.4)  # Proposition 3.2: the mean 0

# %% alt="Left: mean and standard deviation of random scores over distance. Right: histograms at distance 0 and 1000. The mean of equal contents falls. Unrelated contents keep the mean 0 and the same deviation."
ends = {f"distance {steps[i]}": samples["unrelated contents"][:, i] for i in (0, -1)}
plots.rope_random_scores(steps, curves, ends)
plt.show()

# %% [markdown]
# For unrelated contents the two histograms coincide, so nothing decays. For equal contents the mean
# follows the curve of the vectors of ones. In summary:
#
# - **Proved:** there is [a bound](#roformers-bound-on-the-score-second-reading) on the size of the
#   score, not that it falls. Independent standard normal contents have mean 0 and deviation
#   $\sqrt{d}$ at every distance.
# - **Measured:** equal normal contents lose score on average, in waves, from 128.05 at distance 0
#   to 20.55 at 1000.
# - **False:** "the further, the smaller", even for equal contents.
# - **Not settled here:** whether a trained model makes use of the fall for equal contents.
#
# ### RoFormer's bound on the score (second reading)
#
# RoFormer's section 3.4.3 has a bound. Let $h_c = q_{[c]} k_{[c]}^*$, let $S_j$ be the sum of the
# first $j$ arrows $e^{\mathrm{i}\delta\theta_c}$, and let $h_{d/2} = 0$. Put
# $e^{\mathrm{i}\delta\theta_c} = S_{c+1} - S_c$ into the score's sum and collect the factors of
# $S_{c+1}$ (**Abel summation**, equation (36)). The size of a sum is at most the sum of the sizes
# (equation (37)):
#
# $$\begin{gathered}\sum_c h_c\, e^{\mathrm{i}\delta\theta_c} = -\sum_c S_{c+1} (h_{c+1} - h_c)\\[4pt]
# \Bigl|\sum_c h_c\, e^{\mathrm{i}\delta\theta_c}\Bigr| \le \max_c |h_{c+1} - h_c| \cdot \sum_c |S_{c+1}|\end{gathered}$$


# %%
def roformer_bound(q, k, distance):
    S = np.cumsum(np.exp(1j * distance[:, None] * rope_frequencies(len(q))), axis=1)  # S_1, S_2 ..
    step = np.diff(q.view(complex) * k.view(complex).conj(), append=0)  # h_(c+1) - h_c
    assert equal(-(S * step).sum(axis=1).real, over_distance(q, k, distance))
    return np.abs(step).max() * np.abs(S).sum(axis=1), S


(a, b), near = np.random.default_rng(0).normal(size=(2, 128)), np.arange(257)
S = roformer_bound(a, b, near)[1]
best = (S[10].conj() / np.abs(S[10]))[::-1]  # steps that turn each S_j onto the real axis
worst = (np.cumsum(best)[::-1] / b.view(complex).conj()).view(float)
for u, v in ((q, k), (ones, ones), (a, b), (worst, b)):
    size, bound = np.abs(over_distance(u, v, near)), roformer_bound(u, v, near)[0]
    assert (size <= bound + 1e-9).all()
assert np.isclose(size[10], bound[10], rtol=1e-12, atol=0)  # the last pair reaches it

# %% [markdown]
# Only the sum of the $|S_j|$ depends on the distance. Does this sum fall, and is the bound below
# $\lVert q \rVert \lVert k \rVert$, a bound that ignores distance? The last example is made so that
# $h_c$ falls in equal small steps to zero.

# %%
mean_S = np.abs(S).mean(axis=1)
print("mean |S_j| rises in", int((np.diff(mean_S) > 0).sum()), "of 256 steps")
assert (np.diff(mean_S) > 0).sum() == 115
assert (np.diff(mean_S[1:].reshape(8, 32).mean(axis=1)) < 0).all()  # falls over blocks of 32
falling, long, below = np.repeat(np.sqrt(np.arange(64, 0, -1) / 64), 2), np.arange(2049), []
for u, v in ((q, k), (a, b), (ones, ones), (falling, falling)):  # map, random, ones, made so
    norms = np.linalg.norm(u) * np.linalg.norm(v)
    below.append(int((roformer_bound(u, v, long)[0] < norms).sum()))
print("bound below the norms at", below, "of 2049 distances")
assert below == [0, 0, 0, 2048]

# %%
for d, known in ((4, 199), (8, 83), (128, 0)):
    speaks = 0
    for u, v in np.random.default_rng(d).normal(size=(200, 2, d)):
        norms = np.linalg.norm(u) * np.linalg.norm(v)
        speaks += bool((roformer_bound(u, v, long[:513])[0] < norms).any())
    print(f"d = {d}: below them at some distance up to 512 for {speaks} of 200 random pairs")
    assert speaks == known

# %% alt="Size of the score, RoFormer's bound and the product of the norms over distance, for three pairs. The bound is above the norms for the first two pairs and below them for the third."
panels = {}
for name, u, v in (
    ("q, k of the map", q, k),
    ("all ones", ones, ones),
    ("h falling slowly", falling, falling),
):
    norms = np.linalg.norm(u) * np.linalg.norm(v)
    panels[name] = np.abs(over_distance(u, v, near)), roformer_bound(u, v, near)[0], norms
    assert (panels[name][0] <= norms + 1e-9).all()
plots.rope_bound(near, panels)
plt.show()

# %% [markdown]
# The mean of $|S_j|$ falls over blocks of 32 distances up to 256 (measured). For the first three
# examples the bound is true but says nothing new. In a head of 128 components it is useful where
# $h$ falls slowly, pair by pair, to zero, and nothing in RoPE makes a model's $h$ do so. In very
# narrow heads it is also useful for random contents. With four components it is useful for 199 of
# 200 pairs, with 128 for none.
#
# Can training make the score fall? In Gemma 3 270M it did. In each layer with a window, one pair of
# 128 has almost no content and scores $-A\sin(d\theta)$. That falls with the distance $d$ over about
# half of the window or more ([chapter
# 81](81_real_rope.ipynb#the-largest-pair-makes-about-half-a-turn-in-training)). The cell reads what
# happens to the loss if this pair, or a random one, does not rotate.

# %%
from pe_numpy.book.trained import changes

for setting in ("stopped", "a random pair stopped"):
    measured = changes("one_pair", setting)  # nats per token, on three texts
    print(f"{setting:22}", *(f"{x:+.2f}" if abs(x) > 0.02 else "below .02" for x in measured))
    assert (min(measured) > 0.2) == (setting == "stopped") and len(measured) == 3

# %% [markdown]
# ## RoPE beyond the training length: pairs that never finish a turn
#
# Think of the pairs as the hands of clocks. A model with 128 components per head was trained on
# 2048 tokens. **Predict** how many of the 64 hands never completed a turn.

# %% fold="output" alt="Bars of the rotations that each of 64 pairs completes over 2048 positions, on a logarithmic axis around 1. Pairs 0 to 40 complete at least one rotation; pairs 41 to 63 complete none."
trained, speeds = 2048, rope_frequencies(128)
turns = trained * speeds / (2 * np.pi)
for c in (0, 40, 41, 63):
    print(f"pair {c:2}: period {2 * np.pi / speeds[c]:9.1f}, {turns[c]:8.4f} rotations")
reach = (trained - 1) * speeds  # the largest angles of training
print(f"{(turns < 1).sum()} never complete a rotation; the slowest does {reach[-1]:.4f} of 6.2832")
assert (turns < 1).sum() == 23 and f"{reach[-1]:.4f}" == "0.2364" and turns[40] > 1 > turns[41]
assert ((reach < 2100 * speeds) & (2100 * speeds < 2 * np.pi)).sum() == 23  # new angles
larger = rope_frequencies(128, base=500_000.0)
slower = (8192 * larger < 2 * np.pi).sum()
print(f"base 500000, 8192 positions: {slower} of 64")
assert slower == 29 and np.isfinite(rope(np.ones((1, 128)), [2 * trained])).all()
assert larger[0] == speeds[0] and (np.diff(larger / speeds) < 0).all()  # the slowest slows most
plots.rope_turns(turns)
plt.show()

# %% [markdown]
# At position 2100 each of those 23 hands is at an angle that it never reached in training. `rope`
# can be *computed* at any position, but this does not mean that a model reads it well. Press et al.
# (2022, section 2.2) measured that a rotary model gains only up to 200 tokens beyond its training
# length of 512. Chen et al. (2023) report that LLaMA, run unchanged beyond 2048 tokens, reaches a
# perplexity (lower is better) above a thousand.
#
# A larger base of the frequencies, `rope_theta` in configuration files, slows every hand except the
# first, and slows the slowest most. The base is 10000 in the paper and 500000 in Llama 3, trained
# on 8192 tokens. [Chapter 50](50_scaling.ipynb) stretches the hands' ranges, and
# [chapter 71](71_study.ipynb) measures trained models.
#
# ### Do unseen distances return to the trained range? (second reading)
#
# Each pair is periodic, but do all pairs return *together*? The **phase vector** $z(o)$ of an
# offset (relative position) $o$ consists of all its $e^{\mathrm{i} o \theta_c}$. The distance
# between two phase vectors depends only on the difference of the offsets:
#
# $$\lVert z(o) - z(p) \rVert^2 = \sum_{c=0}^{d/2-1} \bigl(2 - 2\cos((o - p)\,\theta_c)\bigr)$$

# %%
gap = np.arange(8193)
apart = np.sqrt(np.maximum((2 - 2 * np.cos(gap[:, None] * speeds)).sum(axis=1), 0))  # (N,)
for o, p in ((1, 0), (2100, 1999), (8192, 17)):
    between = np.exp(1j * o * speeds) - np.exp(1j * p * speeds)
    assert np.isclose(np.linalg.norm(between), apart[o - p], rtol=0, atol=1e-9)
window = np.lib.stride_tricks.sliding_window_view(apart, trained)  # gaps o - 2047 .. o
nearest = window.min(axis=1)[1:]  # offsets 2048 .. 8192: the nearest trained phase vector
print(f"one step apart: {apart[1]:.2f}   unrelated phases: {np.sqrt(128):.2f}")
print("nearest:", {o: f"{nearest[o - trained]:.2f}" for o in (2100, 4096, 8192)})
assert [f"{nearest[o - trained]:.2f}" for o in (2100, 4096, 8192)] == ["7.71", "9.74", "10.28"]
least = nearest[2100 - trained :].min()
print(f"nearest of all from 2100 on: {least:.2f}")  # it doesn't come back
assert f"{least:.2f}" == "7.71"

# %% alt="Distance from each offset beyond 2048 to the nearest trained phase vector. Within 300 offsets it jumps from one step to three quarters of the level of unrelated phases."
plots.rope_nearest_phase(np.arange(trained, 8193), nearest, np.sqrt(128), trained)
plt.show()

# %% [markdown]
# Neighbouring offsets are 1.95 apart. Where phases have nothing to do with each other, 11.31 is
# typical. At offset 2100 the nearest trained phases are 7.71 away, and up to 8192 the curve does
# not come closer again. This describes the input of attention, not what a model makes of it.
#
# ## Precision: RoPE angles in bfloat16, float16 and float32
#
# At position one million the first pair's angle is one million radians. A floating-point number has
# a fixed count of digits. The more of them are before the point, the fewer remain after it, and the
# cosine needs those. **bfloat16** keeps 8 significant bits, **float16** 11, **float32** 24 and
# **float64** 53. NumPy has no bfloat16. A bfloat16 is the upper half of a float32, so we round the
# lower half away.


# %%
def bfloat16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    bits = bits + np.uint32(0x7FFF) + (bits >> 16 & 1)  # round to nearest, ties to even
    return (bits & np.uint32(0xFFFF0000)).view(np.float32)


whole = np.arange(4096)
lost = [int(np.flatnonzero(to(whole) != whole)[0]) for to in (bfloat16, np.float16)]
print("first position that bfloat16 and float16 cannot hold:", lost)
exact = np.outer(np.arange(2048), rope_frequencies(32))
half = np.outer(np.arange(2048).astype(np.float16), rope_frequencies(32).astype(np.float16))
print(f"angle {exact[1857, 1]:.4f}, in float16 {half[1857, 1]:.0f}")
print(f"cosines {np.cos(exact[1857, 1]):.2f} and {np.cos(float(half[1857, 1])):.2f}")
assert lost == [257, 2049] and len(np.unique(bfloat16(whole))) == 769
assert f"{exact[1857, 1]:.4f}" == "1044.2678" and half[1857, 1] == 1045

# %% [markdown]
# In bfloat16 position 257 becomes 256, before any angle is computed. The angle in the cell is from
# a report to GPT-NeoX ([#1003](https://github.com/EleutherAI/gpt-neox/issues/1003)). In float16 it
# is off by less than one in a thousand, but its cosine has the wrong sign. A cosine needs the
# *absolute* error of its angle small, but a format keeps only the *relative* error small. So `rope`
# computes angles in float64, whatever the dtype of `x`, and casts the finished table.
#
# The next cell computes the *angles* in each format and the rest exactly. The error is the distance
# between the computed and the exact $e^{\mathrm{i} m\theta_c}$ on the circle, the largest over all
# pairs and positions so far. At an error of 2 they are opposite.

# %%
p = np.append(np.arange(1, 6000), np.geomspace(6000, 1_000_000, 300).astype(int))
exact, errors = np.exp(1j * p[:, None] * speeds), {}
with np.errstate(over="ignore", invalid="ignore"):  # float16 ends at 65504
    for name, to in (("bfloat16", bfloat16), ("float16", np.float16), ("float32", np.float32)):
        angle = np.asarray(to(to(p)[:, None] * to(speeds)), float)
        errors[name] = np.maximum.accumulate(np.abs(np.exp(1j * angle) - exact).max(axis=1))
one = np.tile([1.0, 0.0], (len(p), 64)).astype(np.float32)  # each pair is the number 1
ours = np.abs(rope(one, p).view(np.complex64) - exact).max(axis=1)
errors["rope on float32"] = np.maximum.accumulate(ours)
by = {name: int(p[errors[name] > 1.9][0]) for name in ("bfloat16", "float16")}
print("first error above 1.9 at position:", by)
assert by == {"bfloat16": 542, "float16": 2913}

# %% alt="Log-log plot of the table's largest error over the position for four ways to compute it. bfloat16 and float16 reach the maximum 2 early, float32 rises slowly, and rope stays flat."
print("largest error up to position     100    1,000   10,000   60,000")
at_limits = {
    name: [error[p <= limit][-1] for limit in (100, 1000, 10_000, 60_000)]
    for name, error in errors.items()
}
for name, values in at_limits.items():
    print(f"{name:29}", "   ".join(f"{value:.0e}" for value in values))
ratios = np.divide(at_limits["float32"][1:3], at_limits["float32"][:2])
assert (ratios > 6).all() and (ratios < 15).all()  # a digit for every ten times the length
assert errors["rope on float32"][-1] < 1e-7 < 1e-2 < errors["float32"][-1]
plots.rope_precision(p, errors)
plt.show()

# %% [markdown]
# bfloat16 comes within 0.1 of the largest possible error at position 542, float16 at 2913. A
# float32 table loses a digit for every ten times the length. `rope` has only the rounding error of
# float32 itself. Whatever precision is enough for the *data*, the *angles* need more.

# %% [markdown]
# ## In short
#
# - **Which sign?** Positive positions turn counter-clockwise. A query at $m$ and a key at $n$ score
#   $\langle q, R_{n-m} k\rangle$. Test one absolute value: $(1, 0)$ at position 1, frequency 1,
#   becomes $(\cos 1, \sin 1)$. [Sign](#the-sign-of-rope-key-position-minus-query-position).
# - **With a KV cache, what position does a new token get, and are cached keys rotated?** Its
#   position in the text: `rope(q, [5])` after tokens 0 to 4. Rotate keys once, on arrival, or cache
#   them unrotated and rotate at each step. Twice is wrong. [KV cache](#rope-with-a-kv-cache).
# - **float32 or float64 for the angles?** Use float64, then cast the finished cosines, whatever the
#   dtype of the data. In bfloat16 position 257 does not exist.
#   [Precision](#precision-rope-angles-in-bfloat16-float16-and-float32).
# - **How does partial RoPE divide the exponent?** GPT-J, GPT-NeoX and Phi divide by the width $r$
#   that rotates, $10000^{-2c/r}$. If you divide by the full width, slow pairs are missing.
#   [Partial RoPE](#partial-rope).
# - **Does the score fall with distance?** For equal contents it does on average, in waves. For
#   unrelated ones it does not. A query can have its largest score anywhere. Training made one pair
#   of Gemma's local layers fall. [Decay](#does-the-rope-score-decay-with-distance).
# - **What is `rope_theta`, and does RoPE work beyond the training length?** It is the base, 10000
#   in the paper. A larger base slows all pairs except the first. At head dimension 128, trained on
#   2048 positions, 23 of 64 pairs reach new angles further on.
#   [Training length](#rope-beyond-the-training-length-pairs-that-never-finish-a-turn).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 41` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 41_rope_computed.py` checks yours.
#
# ### Exercise 1: Evict a key from the cache
#
# A cache contains rotated keys of positions 0 to 5. The key at 2 is dropped, and the program
# numbers the rest 0 to 4. Correct the cached keys without the unrotated ones.
#
# <details><summary>Hint 1</summary>
#
# What is `rope(rope(x, a), b)`?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The keys after the gap must turn back by one position.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# left = np.array([0, 1, 3, 4, 5])
# cached = rope(k_all, at)[:, :, left]
# renumbered = rope(cached, np.arange(5) - left)
# assert np.allclose(renumbered, rope(k_all[:, :, left], np.arange(5)), rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 2: A query that looks back
#
# For a random key of 128 numbers build a query whose score is largest at distance 20. How large is
# that score?
#
# <details><summary>Hint 1</summary>
#
# A dot product of vectors of given lengths is largest when they are parallel.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Turn the key's content backwards.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# key = np.random.default_rng(5).normal(size=128)
# scores_20 = over_distance(turn(key, -20), key, np.arange(400))
# assert scores_20.argmax() == 20
# assert np.isclose(scores_20[20], key @ key, rtol=0, atol=1e-9)
# ```
#
# </details>
#
# ### Exercise 3: Count the pairs that finish no turn
#
# Give a formula for the number of pairs that finish no turn within $L$ positions, for width $d$ and
# base $b$.
#
# <details><summary>Hint 1</summary>
#
# Pair $c$ finishes no turn when $L\, b^{-2c/d} < 2\pi$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Take logarithms, solve for $c$, and count the integers from there to $d/2 - 1$. The count is never
# below 0 nor above $d/2$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def unfinished(d, base, length):
#     bound = d / 2 * np.log(length / (2 * np.pi)) / np.log(base)
#     return int(np.clip(d // 2 - np.floor(bound) - 1, 0, d // 2))
#
#
# assert unfinished(128, 500000.0, 8192) == slower
# for length, count in ((1, 64), (7, 63), (2048, 23), (62_832, 0), (10**6, 0)):
#     counted = (length * rope_frequencies(128) < 2 * np.pi).sum()
#     assert unfinished(128, 10000.0, length) == counted == count
# ```
#
# </details>

# %% [markdown]
# ## In practice
#
# **Layout.** Weights of one layout, run by code for the other, gave
# [gibberish](https://github.com/karpathy/llama2.c/pull/286).
# [Chapter 40](40_rope_derived.ipynb#converting-llama-weights-between-the-layouts) converts them.
#
# **Precision.** Angles in half precision have been reported as bugs, for example in
# [transformers #29285](https://github.com/huggingface/transformers/pull/29285).
#
# **Padding.** Left padding with positions counted from the padding is a classic error
# ([transformers #22161](https://github.com/huggingface/transformers/issues/22161)).
#
# **Packing.** A pull request to nanoVLM ([#204](https://github.com/huggingface/nanoVLM/pull/204))
# measured that only restarting positions does not stop the leak there, because its attention makes
# no mask from them.
#
# **Cache.** State whether cached keys are rotated. When rows are evicted, the number of remaining
# rows is no longer the position of the next token.
#
# **Cross-attention.** x-transformers leaves RoPE out of it unless positions of the context are
# given ([#303](https://github.com/lucidrains/x-transformers/issues/303)).
#
# **Speed.** Make the table once for queries and keys. Interleaved pairs are complex numbers in
# memory, so they need one product and no copy. A table of consecutive positions needs few sines.
# With $m = m_0 + us + t$ two tables of about $\sqrt{L}$ rows give all $L$ rows by multiplication,
# as in `rope` from 64 positions on.

# %%
coarse = np.exp(1j * (5 + 10 * np.arange(10))[:, None] * theta)  # m_0 = 5, s = 10
fine = np.exp(1j * np.arange(10)[:, None] * theta)
all_rows = np.exp(1j * np.arange(5, 105)[:, None] * theta)
assert equal((coarse[:, None] * fine).reshape(100, -1), all_rows)
print(len(coarse) + len(fine), "rows of sines in place of", len(all_rows))

# %% [markdown]
# ## Further reading
#
# - Su et al. 2021, *RoFormer*, [arXiv:2104.09864](https://arxiv.org/abs/2104.09864): sections
#   3.2.2, 3.4.2, 3.4.3 with equations (35) to (37).
# - Press et al. 2022, *Train Short, Test Long*,
#   [arXiv:2108.12409](https://arxiv.org/abs/2108.12409).
# - Chen et al. 2023, *Extending Context Window of Large Language Models via Positional
#   Interpolation*, [arXiv:2306.15595](https://arxiv.org/abs/2306.15595).
# - Barbero et al. 2024, *Round and Round We Go! What makes Rotary Positional Encodings useful?*,
#   [arXiv:2410.06205](https://arxiv.org/abs/2410.06205).
# - Shazeer 2019, [arXiv:1911.02150](https://arxiv.org/abs/1911.02150), and Ainslie et al. 2023,
#   [arXiv:2305.13245](https://arxiv.org/abs/2305.13245): fewer KV heads.
