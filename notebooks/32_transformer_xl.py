# %% [markdown]
# # 32. Transformer-XL and XLNet: the relative shift
#
# *How can a score depend only on the distance, and what does the relative shift leave behind?*
#
# 35 minutes. Needs [20 Sinusoidal positional encoding](20_sinusoidal.ipynb), [30 From absolute to relative: the four terms of a score](30_expansion.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A long text is read in pieces, and the model keeps a memory of the last
# piece. Absolute positions fail there, so Transformer-XL makes every score depend only on words and
# distances. You build its four terms, see how the scores of a head can vary with the distance, and
# compute all scores cheaply with one padding and one reshape, the relative shift. You also see two
# mistakes that raise no error, a missing mask and a missing offset, and measure how far back the
# memory reaches.

# %% fold="input" alt="Four small matrices: products, padded, reshaped with the first row struck out, and shifted. The upper rows move left, and the cells beyond the diagonal contain zeros and a number from the next row."
import matplotlib.pyplot as plt
import numpy as np
from pe_numpy import attend, causal_mask, four_terms, relative_distance, relative_shift
from pe_numpy import sinusoidal, transformer_xl_scores
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import transformer_xl as plots

products = np.array([[f"q{i}d{d}" for d in (4, 3, 2, 1, 0)] for i in range(3)])  # largest first
padded = np.concatenate([np.full((3, 1), "  ."), products], axis=1)
matrices = products, padded, padded.reshape(6, 3), padded.reshape(6, 3)[1:].reshape(3, 5)
names = ("products", "1. pad", "2. reshape", "3. and 4. result")
lower = np.tril(np.ones((3, 5), bool), 2)  # keys that are not in the future
plots.xl_shift_steps(dict(zip(names, matrices, strict=True)), lower)
plt.show()

# %% [markdown]
# ## Segment memory: why absolute positions fail
#
# The figure shows this chapter's trick, the relative shift. Each cell is the product of one query
# (its colour) with one distance (its number); grey cells are added zeros.
#
# A novel has more words than a model can read in one call, so it is read in pieces, **segments**.
# While the model reads one segment, it keeps the vectors of the previous one as its **memory**. The
# queries come from the new segment, and the keys from memory and segment together. What positions
# should the kept words have?
#
# Take segments of four words. In the first attempt, each segment counts 0, 1, 2, 3. The same word
# is at position 1 of both segments, 6 and 2 words before the last word, which attends to both. In
# the second attempt, we continue to count. The last word and the word two before it are at 7 and 5.
# A segment earlier, the same pair would be at 3 and 1. **Predict** for each attempt: are its two
# scores equal?

# %% fold="output"
rng = np.random.default_rng(0)
D = 16
words = rng.standard_normal((8, D))  # memory: rows 0 to 3; new segment: rows 4 to 7
words[5] = words[1]  # the same word, 6 and 2 words before the last
W_q, W_k = rng.standard_normal((2, D, D)) / np.sqrt(D)
p = sinusoidal(np.arange(8), D)
x = words + p[[0, 1, 2, 3, 0, 1, 2, 3]]  # each segment counts from 0
first = (x @ W_k) @ (x[7] @ W_q) / np.sqrt(D)
second = [
    (words[7] + p[i]) @ W_q @ ((words[5] + p[j]) @ W_k) / np.sqrt(D) for i, j in ((3, 1), (7, 5))
]
print(
    f"6 back {first[1]:.4f}, 2 back {first[5]:.4f};", "2 back twice:", np.round(second, 4).tolist()
)
assert abs(first[1] - first[5]) < 1e-12 and abs(second[0] - second[1]) > 0.1

# %% [markdown]
# In the first attempt the model cannot distinguish now from a segment ago. In the second, every
# segment shows the model the same pairs at new positions, and soon at positions that it never saw
# in training. Only the distance $i-j$ should matter.
#
# ## The four terms of Transformer-XL's score
#
# Write the score of a query at position $i$ and a key at position $j$ with the position vectors
# $p_i$, $p_j$ in it. Vectors are rows; $W_Q$ and $W_K$ are the projections. Expanding the product
# gives the four terms of [chapter 30](30_expansion.ipynb). Each is divided by $\sqrt K$, the square
# root of the head dimension. The paper leaves this division out of its formula, but its code has
# it.
#
# $$\begin{gathered}(x_i+p_i)W_Q\,\big((x_j+p_j)W_K\big)^\top\\
# {}= \underbrace{x_iW_QW_K^\top x_j^\top}_{(a)} + \underbrace{x_iW_QW_K^\top p_j^\top}_{(b)}
# + \underbrace{p_iW_QW_K^\top x_j^\top}_{(c)} + \underbrace{p_iW_QW_K^\top p_j^\top}_{(d)}\end{gathered}$$

# %%
terms = four_terms(words, p, W_q, W_k)
whole = (words + p) @ W_q @ ((words + p) @ W_k).T / np.sqrt(D)
assert np.allclose(sum(terms), whole, rtol=0, atol=1e-12)
for term, (x_i, x_j) in zip(terms, [(words, words), (words, p), (p, words), (p, p)], strict=True):
    assert np.allclose(term, x_i @ W_q @ (x_j @ W_k).T / np.sqrt(D), rtol=0, atol=1e-12)
diagonal = np.diag(terms[3], -2)  # term (d) for all pairs at the distance 2
print("term (d) at the distance 2:", diagonal[:3].round(3).tolist())
assert not np.allclose(diagonal, diagonal[0], rtol=0, atol=0.1)

# %% [markdown]
# Even term (d), which contains nothing but positions, is not a function of the distance. So change
# the terms, in three steps.
#
# 1. **The key's position becomes a distance.** In (b) and (d) replace $p_j$ with $R_{i-j}$, the
#    sinusoidal encoding of the *distance*. It is defined for any distance, with no table to train.
# 2. **Distances have their own projection.** $W_K$ is trained for words, so $R_{i-j}$ has its own
#    trained matrix: $r_{i-j} = R_{i-j}W_{K,R}$.
# 3. **The query's position is dropped.** (c) and (d) still contain $p_iW_Q$. The score should not
#    depend on the query's position. So $p_iW_Q$ becomes a trained vector that is the same for every
#    $i$: $u$ in (c), and another, $v$, in (d). No $W_Q$ remains beside them, because $u$ and $v$
#    replace the *product* $p_iW_Q$.
#
# With $q_i=x_iW_Q$ and $k_j=x_jW_K$ the four new terms are
#
# $$\begin{aligned}A_{ij} &= \underbrace{q_i\cdot k_j}_{(a)} + \underbrace{q_i\cdot r_{i-j}}_{(b)} +
# \underbrace{u\cdot k_j}_{(c)} + \underbrace{v\cdot r_{i-j}}_{(d)}\\
# &= (q_i+u)\cdot k_j + (q_i+v)\cdot r_{i-j}\end{aligned}$$

# %%
W_r = rng.standard_normal((D, D)) / np.sqrt(D)
u, v = rng.standard_normal((2, D))


def score(i, j):
    """The score of words 7 and 5 with the query at i and the key at j, by the four new terms."""
    q, k = words[7] @ W_q, words[5] @ W_k
    r = sinusoidal(i - j, D) @ W_r  # the encoding of the distance, projected
    assert np.isclose(q @ k + q @ r + u @ k + v @ r, (q + u) @ k + (q + v) @ r, rtol=0, atol=1e-12)
    return ((q + u) @ k + (q + v) @ r) / np.sqrt(D)


print("positions 3, 1:", f"{score(3, 1):.4f}   positions 7, 5: {score(7, 5):.4f}")
assert score(3, 1) == score(7, 5) == score(1003, 1001)

# %% [markdown]
# A pair of words at the distance 2 has the same score in every segment. This score is from
# section 3.3 of "Transformer-XL" (Dai et al. 2019). The terms have these meanings:
#
# | term | depends on | meaning |
# |---|---|---|
# | (a) $q_i\cdot k_j$ | both words | this word looks for that word |
# | (b) $q_i\cdot r_{i-j}$ | the query's word, the distance | this word looks for something at this distance |
# | (c) $u\cdot k_j$ | the key's word | that word is worth attending to, for every query |
# | (d) $v\cdot r_{i-j}$ | the distance | this distance is worth attending to, for every query |
#
# Shaw's scores ([chapter 31](31_shaw.ipynb)) have only (a) and (b), with a trained row of a table
# for $r_{i-j}$.
#
# With all sums written out, for $L$ queries that are the last of $S$ positions:
#
# $$\frac{A_{ij}}{\sqrt K}=\frac1{\sqrt K}\sum_{c}\Big[(q_{ic}+u_c)\,k_{jc}+(q_{ic}+v_c)\,r_{\,i+S-L-j,\;c}\Big]$$


# %%
def scores_by_loops(q, k, r, u, v):
    """The equation above, one number at a time; r[d] is the projected code of the distance d."""
    L, S, K = len(q), len(k), len(q[0])
    scores = np.zeros((L, S))
    for i, j, c in np.ndindex(L, S, K):
        content = (q[i][c] + u[c]) * k[j][c]
        position = (q[i][c] + v[c]) * r[i + S - L - j][c]
        scores[i, j] += (content + position) / np.sqrt(K)
    return scores


toy = {-1: [0.5] * 4, 0: [0.25] * 4, 1: [1.0] * 4}  # K = 4 equal components
fours = scores_by_loops([[1] * 4, [2] * 4], [[3] * 4, [5] * 4], toy, [1] * 4, [2] * 4)
assert fours[1, 0] == 4 / 2 * ((2 + 1) * 3 + (2 + 2))
assert fours[0, 1] == 4 / 2 * ((1 + 1) * 5 + (1 + 2) * 0.5)

# %% [markdown]
# The package's function computes this for all heads in one call. Its `r` contains one row for each
# distance, in ascending order. `add_query_products` adds the second half of the formula ([chapter
# 31](31_shaw.ipynb) explains how).

# %%
show_source(transformer_xl_scores)
L, S, K = 3, 5, 4
q, k = rng.standard_normal((L, K)), rng.standard_normal((S, K))
u, v = rng.standard_normal((2, K))
distance = relative_distance(np.arange(S)[-L:], np.arange(S))  # the last L positions
print("\n", *distance.tolist())
span = np.arange(distance.min(), distance.max() + 1)  # -2 to 4
r = sinusoidal(span, D) @ rng.standard_normal((D, K))  # (N, K)
by_loops = scores_by_loops(q, k, dict(zip(span.tolist(), r, strict=True)), u, v)
scores = transformer_xl_scores(q[None], k[None], r[None], u[None], v[None], distance)[0]
assert np.allclose(scores, by_loops, rtol=0, atol=1e-12)

# %% [markdown]
# Now look at the terms of ten random words; the head's $v$ favours the previous word. For this
# figure $W_{K,R}$ keeps the eight fastest components of the encoding. **Predict** for each term
# whether its rows, its columns or its diagonals will look alike.

# %% fold="output" alt="Five heat maps of one head: terms a to d and their sum. Term a has no pattern, b differs from row to row, c has constant columns, and d constant diagonals, the strongest just below the main one."
at, X = np.arange(10), rng.standard_normal((10, D))
Q, Keys = X @ rng.standard_normal((D, D)) / 4, X @ rng.standard_normal((D, D)) / 4
u, v = rng.standard_normal(D), 2 * sinusoidal(1, D)
keep = np.diag(np.arange(D) < 8).astype(float)  # W_(K,R)
R = sinusoidal(at[:, None] - at, D) @ keep  # (L, S, D), the slow way
abcd = [Q @ Keys.T, np.einsum("ic,ijc->ij", Q, R), np.tile(u @ Keys.T, (10, 1)), R @ v]
abcd = [term / np.sqrt(D) for term in abcd]
r = sinusoidal(np.arange(-9, 10), D) @ keep
total = transformer_xl_scores(Q[None], Keys[None], r[None], u[None], v[None], at[:, None] - at)[0]
assert np.allclose(sum(abcd), total, rtol=0, atol=1e-12)
assert np.ptp(abcd[2], axis=0).max() == 0 and np.ptp(np.diag(abcd[3], -3)) < 1e-12
names = ["(a) $q_i k_j$", "(b) $q_i r_{i-j}$", "(c) $u\\, k_j$", "(d) $v\\, r_{i-j}$", "sum"]
plots.xl_terms(dict(zip(names, [*abcd, total], strict=True)))
plt.show()

# %% [markdown]
# (c) has equal rows, and (d) has constant diagonals. In (b) each row is a curve over the distance,
# and each query has a different one.
#
# ## What a head can express about distance: even and odd curves
#
# Term (d) is a curve over the distance $d=i-j$. Substitute the encoding, which has a sine and a
# cosine of each frequency $\theta_n$, and write $w = W_{K,R}\,v$:
#
# $$v\cdot r_d = R_d\,W_{K,R}\,v = \sum_{n} \big(w_{2n}\sin\theta_n d + w_{2n+1}\cos\theta_n d\big)$$
#
# So a head has $D$ numbers to draw a curve with, the entries of $w$. Cosines are **even**,
# $\cos(-x)=\cos x$, so they cannot distinguish the past from the future. Sines are **odd**,
# $\sin(-x)=-\sin x$. All information about *direction* is in a head's sines. The product of two raw
# encodings loses it, because every sine of $R_0$ is 0:
#
# $$R_0\cdot R_d=\sum_n\cos\theta_n d = R_0\cdot R_{-d}$$

# %%
D, d = 32, np.arange(-24, 25)
theta = 10000.0 ** (-2 * np.arange(D // 2) / D)
W_r, v = rng.standard_normal((D, 8)), rng.standard_normal(8)
w, R, angles = W_r @ v, sinusoidal(d, D), np.outer(d, theta)  # (distances, frequencies)
by_sum = (w[0::2] * np.sin(angles) + w[1::2] * np.cos(angles)).sum(axis=1)
assert np.allclose((R @ W_r) @ v, by_sum, rtol=0, atol=1e-12)
even = R @ sinusoidal(0, D)  # w = R_0
odd = R @ np.where(np.arange(D) % 2 == 0, 1.0, 0.0)  # w = 1 for every sine
assert np.allclose(even, np.cos(angles).sum(axis=1), rtol=0, atol=1e-12)
assert np.allclose(even, np.flip(even), rtol=0, atol=1e-12)
assert np.allclose(odd, -np.flip(odd), rtol=0, atol=1e-12)
three_back = R @ sinusoidal(3, D)
assert np.allclose(three_back[3:], even[:-3], rtol=0, atol=1e-12) and d[three_back.argmax()] == 3

# %% [markdown]
# So direction must be trained: $w$ may weight sines and cosines freely. For example, $w=R_3$ gives
# the even curve moved to 3, so the head finds the word three back. (Direction matters where a model
# looks both ways, as XLNet does.) Term (b) has $q_i$ instead of $v$, so the query's word chooses
# the curve.
#
# What happens *beyond* the distances of the training? We fit a head to a linear penalty, $-|d|/4$,
# at the distances -32 to 32, by least squares with a small penalty on the size of $w$. Then we
# compute its curve up to 96. **Predict**: does the curve continue as it should?

# %% fold="output" alt="Left: three curves of a head over the distance: an even peak at 0, the same peak at 3, and an odd curve that is positive in the past. Right: a fitted linear penalty that follows its target within the distances of training and bends up outside."
far = np.arange(-96, 97)
seen = np.abs(far) <= 32
wanted = -np.abs(far) / 4
R, y = sinusoidal(far[seen], D), wanted[seen]
w = np.linalg.solve(R.T @ R + 0.1 * np.eye(D), R.T @ y)
learned = sinusoidal(far, D) @ w
print(f"largest error, seen distances:  {np.abs(learned - wanted)[seen].max():.1f}")
print(f"at the distance 96: wanted {wanted[-1]:.0f}, got {learned[-1]:.0f}")
assert np.abs(learned - wanted)[seen].max() < 0.5 and learned[-1] > -8
assert learned[far == 64] > learned[far == 24]
curves = {"$w=R_0$: how far": even, "$w=R_3$: three back": three_back}
plots.xl_curves(d, {**curves, "sines alone: which side": odd}, far, wanted, learned, 32)
plt.show()

# %% [markdown]
# Inside the grey band the head has learned its penalty. Outside, a word at 64 has a higher score
# than a word at 24. The encoding is *defined* everywhere, but this doesn't mean that a head
# *behaves* everywhere. This is one head by least squares; [chapter 71](71_study.ipynb) trains
# models.
#
# ## The relative shift: score each distance once
#
# The formula needs $r_{i-j}$ at every pair, which makes $LS$ vectors. But there are only $L+S-1$
# distances. The fast way computes $R_{i-j}W_{K,R}$ once for each distance, then multiplies all
# queries by all distances in one matrix product. The cell counts the multiplications of one head
# for the terms with $r$:

# %%
L, S, width, K = 512, 512, 512, 64
N = L + S - 1
slow = L * S * (width * K + K)
fast = N * width * K + L * N * K
print(f"slow {slow:,}, fast {fast:,}, ratio {slow / fast:.0f}")
assert slow == 8_606_711_808 and fast == 67_043_328

# %% [markdown]
# The products of query $i$ with all distances are in a row *ordered by distance*. The scores need
# them *ordered by key*. The figure at the top has three queries, at the positions 2, 3, 4, and five
# keys. Its row 2 is in place. Row 1 must move left by 1, and row 0 by 2. In general row $i$ moves
# left by $L-1-i$. With $N$ distances in the list, the **relative shift** moves all rows without a
# loop:
#
# 1. put one column of zeros on the left;
# 2. read the $L\times(N+1)$ numbers in the same order as a matrix of $(N+1) \times L$;
# 3. drop the first row;
# 4. read the numbers in the same order as an $L\times N$ matrix again.
#
# The list of encodings must *descend*, with the largest distance first, because keys are listed
# from the most distant past on. With one encoding for each key, the list must end at 0, because the
# last query needs distance 0 in the last column.
#
# ### Why the relative shift works
#
# Number the entries from 0 in reading order. After the padding, the product in row $i$, column $m$
# has the number $i(N+1)+m+1$. Dropping the first row of the reshaped matrix subtracts $L$. Now read
# the numbers in rows of $N$:
#
# $$i(N+1)+m+1-L \;=\; iN + \big[m-(L-1-i)\big]$$
#
# So the product lands in row $i$, moved left by $L-1-i$, as long as the bracket is not negative.
# Otherwise, with $L\le N$, it lands at the end of the row *above* (or, in row 0, is dropped).

# %%
for L, N in ((6, 7), (3, 5), (6, 6)):
    numbered = np.arange(1, L * N + 1).reshape(L, N)
    flat = np.concatenate([np.zeros((L, 1), int), numbered], axis=1).ravel()[L:]
    assert np.array_equal(flat.reshape(L, N), relative_shift(numbered))
    for i, m in np.ndindex(L, N):
        place = i * N + (m - (L - 1 - i))
        assert place == i * (N + 1) + m + 1 - L
        assert place < 0 or flat[place] == numbered[i, m]
        assert place // N == (i if m >= L - 1 - i else i - 1)  # its row, or the one above
wanted = np.array([[f"q{i}d{i + 2 - j}" for j in range(5)] for i in range(3)])
assert np.array_equal(matrices[-1][lower], wanted[lower])  # the figure at the top
show_source(relative_shift)

# %% [markdown]
# ### A common mistake: no mask after the relative shift
#
# In the last matrix of the figure, two cells of row 0 and one of row 1 do not belong there. They
# contain zeros and the first product of the *next query*. The list of encodings ends at distance 0,
# so it has nothing for keys in the future. Under a causal mask these entries do no harm, because
# they get the weight 0. Without a mask they are wrong numbers that look like any others. There are
# $L(L-1)/2$ of them for $L=S$. Speech encoders, which have no causal mask, have used the causal
# shift in this way (espnet issue #2684 and OpenTransformer issue #25). Nothing crashes. In the test
# on one corpus espnet's error rate was the same before and after a first fix (pull request #2816).
#
# **The fix.** Let the list continue to the far future, with the distances
# $S-1, \dots, 0, \dots, -(L-1)$. These are $L+S-1$ encodings. Then every cell finds its own
# product, and we keep the first $S$ columns of the shifted rows:
#
# $$\text{shifted}_{ij}=q_i\cdot r_{\,i+S-L-j}\qquad\text{for all } i<L,\; j<S$$

# %%
for S in range(1, 13):
    for L in range(1, S + 1):
        q = rng.standard_normal((L, 8))
        right = relative_shift(q @ sinusoidal(np.arange(S - 1, -L, -1), 8).T)[:, :S]
        for i, j in np.ndindex(L, S):
            assert np.isclose(right[i, j], q[i] @ sinusoidal(i + S - L - j, 8), rtol=0, atol=1e-12)
short = relative_shift(q @ sinusoidal(np.arange(S - 1, -1, -1), 8).T)  # the causal list, L = S
not_its_own = np.abs(short - right) > 1e-12
print(f"L = S = {S}: {not_its_own.sum()} of {S * S} entries are not theirs")
assert np.array_equal(not_its_own, np.triu(np.ones((S, S), bool), 1))
assert not_its_own.sum() == S * (S - 1) // 2

# %% [markdown]
# XLNet, which predicts words in random orders, shifts with one extra encoding (exercise 1). The
# random order is in its mask. Distances still count positions in the text, so a key may be ahead.
#
# ### A common mistake: counting query positions from the corner
#
# With a memory $S > L$, and the *last* query is at the *last* key. `np.tril(np.ones((L, S)))` puts
# query 0 at key 0, and so does a bias indexed by `arange(L)[:, None] - arange(S)`. Both run without
# an error, and for $L=S$ both are right. **Predict** which of $S=5$ keys a single new word ($L=1$)
# sees after a memory of four.

# %% fold="output"
L, S = 1, 5
print("mask from the corner:  ", np.tril(np.ones((L, S), int)).tolist())
print("mask from positions:   ", causal_mask([4], np.arange(5)).astype(int).tolist())
print("distance from the corner: ", (np.arange(L)[:, None] - np.arange(S)).tolist())
print("distance from positions:  ", relative_distance([4], np.arange(5)).tolist())
assert causal_mask([4], np.arange(5)).all() and relative_distance([4], np.arange(5))[0, 0] == 4

# %% [markdown]
# The new word sees only the oldest word, and takes it for itself. The wrong bias occurred in public
# code, together with a correct mask: x-transformers, pull request #103, "the keys in mem are past
# keys so the positional biases have to be shifted". In this package positions are arguments, so no
# function guesses the offset.
#
# ## Segment-level recurrence: how far the memory reaches
#
# Here is one layer. Its queries come from the segment, and its keys and values from memory and
# segment. Positions enter only as distances. A stack keeps for each layer the last $M$ inputs as
# its memory. (In training no gradient flows into it.)

# %%
D, SEGMENT = 8, 4
params = np.random.default_rng(1).standard_normal((3, 4, D, D)) / np.sqrt(D)  # three layers
bias = np.random.default_rng(2).standard_normal((3, 2, 1, D))  # u and v of each


def layer(x, memory, number):
    """One layer: x plus its attention to memory and x under a causal mask."""
    both = np.concatenate([memory, x])
    at = np.arange(len(both))
    mine = at[len(memory) :]
    W_q, W_k, W_v, W_r = params[number]
    r = sinusoidal(np.arange(1 - len(x), len(both)), D) @ W_r
    d = relative_distance(mine, at)
    scores = transformer_xl_scores([x @ W_q], [both @ W_k], [r], *bias[number], d)[0]
    return x + attend(scores, both @ W_v, causal_mask(mine, at))[0]


# %%
def read(x, M, depth=3):  # in segments, with M vectors of memory in each layer
    memory, outputs = [x[:0]] * depth, []
    for start in range(0, len(x), SEGMENT):
        h = x[start : start + SEGMENT]
        for level in range(depth):
            seen = np.concatenate([memory[level], h])
            h, memory[level] = layer(h, memory[level], level), seen[max(len(seen) - M, 0) :]
        outputs.append(h)
    return np.concatenate(outputs)


text = np.random.default_rng(3).standard_normal((16, D))
none = text[:0]
at_once = layer(layer(layer(text, none, 0), none, 1), none, 2)
assert np.allclose(read(text, M=16), at_once, rtol=0, atol=1e-9)

# %% [markdown]
# With a memory of 16 vectors the result is the same as reading the whole text in one call. With
# distances instead of positions, nothing shows that a segment isn't the first.
#
# Large memories cost time and space, so take $M=4$, one segment. In layer 1 the last word sees its
# own segment and the one before. In layer 2 it sees vectors that have themselves looked back a
# segment. To measure this, we change one word, read again, and note whose outputs change.


# %% alt="Four grids of which output depends on which input word. Without a memory there are four separate triangles. With memory, each layer adds one segment of four words to the left."
def reach(M, depth):
    """Whether the output at each position (rows) changes with the word at each other (columns)."""
    changed = np.zeros((16, 16), bool)
    for j in range(16):
        other = text + (np.arange(16) == j)[:, None]
        changed[:, j] = np.abs(read(other, M, depth) - read(text, M, depth)).max(axis=1) > 1e-9
    return changed


reaches = {"no memory, 3 layers": reach(0, 3)}
reaches |= {f"$M=4$, layers: {depth}": reach(4, depth) for depth in (1, 2, 3)}
assert [int(r[-1].sum()) for r in reaches.values()] == [4, 8, 12, 16]
plots.xl_reach(reaches, SEGMENT)
plt.show()

# %% [markdown]
# The last word sees 4 words without a memory, then 8, 12 and 16: each layer adds one segment (the
# paper's section 3.2). Without a memory, more layers do not help.
#
# ## No relative term for the values (second reading)
#
# In Transformer-XL distances enter only the scores:
#
# $$o_i=\sum_j a_{ij}\,x_jW_V$$
#
# Let all words be the *same* word. **Predict** the outputs, for any $u$, $v$ and encodings.

# %% fold="output"
same = np.tile(text[0], (6, 1))
outputs = layer(same, same[:0], 0)
print("all outputs are equal:", np.allclose(outputs, outputs[0], rtol=0, atol=1e-12))
assert np.allclose(outputs, same + same @ params[0][2], rtol=0, atol=1e-12)
added = layer(same + sinusoidal(np.arange(6), D), same[:0], 0)
print(f"with absolute encodings they differ by up to {np.ptp(added, axis=0).max():.1f}")

# %% [markdown]
# The weights differ, but the outputs are equal. [Chapter
# 30](30_expansion.ipynb#what-relative-scores-cannot-distinguish-a-repeated-word) proves that no
# scheme that changes only the scores can distinguish equal words. (One different word breaks the
# tie.) With absolute encodings the value is $(x_j+p_j)W_V$, so a layer can report *where* it
# looked. Shaw's term for the values ([chapter 31](31_shaw.ipynb)) also reports this, and exercise 3
# adds it.

# %% [markdown]
# ## In short
#
# - **What is the score, and what sign does the distance have?** The score is
#   $(q_i+u)\cdot k_j+(q_i+v)\cdot r_{i-j}$, divided by $\sqrt K$. The distance is query minus key,
#   so the past is positive. [The four terms](#the-four-terms-of-transformer-xls-score).
# - **What are $u$ and $v$?** They are two trained vectors per head instead of the query's own
#   position. $u$ weights words and $v$ weights distances, in the same way for every query.
#   [The four terms](#the-four-terms-of-transformer-xls-score).
# - **How does the relative shift work?** Put a column of zeros on the left, reshape, drop the first
#   row, and reshape back. The list of distances must *descend*.
#   [The relative shift](#the-relative-shift-score-each-distance-once).
# - **Does the shift need a mask?** Yes, if the list ends at distance 0. Above the diagonal are
#   zeros and products of the *next* query. Without a mask, continue the list to $-(L-1)$.
#   [No mask](#a-common-mistake-no-mask-after-the-relative-shift).
# - **What positions do the queries have with a memory?** They are the *last* $L$ of the $S$
#   positions, so query $i$ is at $i+S-L$. Mask and distances need that offset.
#   [The offset](#a-common-mistake-counting-query-positions-from-the-corner).
# - **How far back does a memory reach?** A memory of one segment adds one segment with each layer.
#   [Reach](#segment-level-recurrence-how-far-the-memory-reaches).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 32` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 32_transformer_xl.py` checks yours.
#
# ### Exercise 1: XLNet's relative shift
#
# XLNet's code (zihangdai/xlnet, commit bbaa3a6) has no padding. Its list starts at the distance
# $S$, one further than any pair needs, and ends at $-(L-1)$. It reshapes the products from
# $L\times(L+S)$ to $(L+S)\times L$, drops the first row, reshapes to $L\times(L+S-1)$ and keeps $S$
# columns. Write it, test it against `relative_shift`, and explain why no zeros are needed.
#
# <details><summary>Hint 1</summary>
#
# Which column plays the part of the padding?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Give the encodings of the distance $S$ their own label and see where it ends up.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The column of the distance $S$ is the padding: its entries are dropped, or end up in columns that
# are cut off.
#
# ```python
# def xlnet_shift(products, S):
#     L, N = products.shape  # N = L + S
#     return products.reshape(N, L)[1:].reshape(L, N - 1)[:, :S]
#
# for L, S in ((3, 5), (6, 6), (1, 4)):
#     labels = 100 * np.arange(L)[:, None] + np.arange(S, -L, -1) + 50
#     assert np.array_equal(xlnet_shift(labels, S), relative_shift(labels[:, 1:])[:, :S])
#     assert not (xlnet_shift(labels, S) % 100 == S + 50).any()  # the distance S is gone
# ```
#
# </details>
#
# ### Exercise 2: Look two words back
#
# Give a head $u=0$, zero queries, and a $v$ such that each query of a text of ten words puts more
# than 90% of its weight on the word two before it, if there is one. Use $W_{K,R}=I$ and $D=32$.
#
# <details><summary>Hint 1</summary>
#
# With zero queries and $u = 0$ the score is $v\cdot R_{i-j}/\sqrt D$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# *What a head can express about distance* has the direction of $v$. Only the factor is missing.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Take $v=40\,R_2$, because the scores are divided by $\sqrt{32}$.
#
# ```python
# from pe_numpy import softmax
#
# codes, none = sinusoidal(np.arange(-9, 10), 32)[None], np.zeros((1, 10, 32))
# v_two, d_ten = 40 * sinusoidal(2, 32)[None], relative_distance(np.arange(10), np.arange(10))
# s = transformer_xl_scores(none, none, codes, np.zeros((1, 32)), v_two, d_ten)
# assert (np.diag(softmax(s[0]), -2) > 0.9).all()
# ```
#
# </details>
#
# ### Exercise 3: Count equal words with a value term
#
# Six copies of one word gave six equal outputs. Add Shaw's term for the values (`shaw_values`, with
# a table of 11 rows for the distances -5 to 5) to causal weights. Are the outputs different now?
# What if all rows of the table are equal?
#
# <details><summary>Hint 1</summary>
#
# Any weights will do, for example equal ones: $a_{ij} = 1/(i+1)$ for $j\le i$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `shaw_values(weights, v, table, distance)` gives $\sum_j a_{ij}(v_j + R_{i-j})$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The output now contains the mean encoding of the distances that the query attends to, which
# differs from row to row. With equal rows, all outputs are one constant again.
#
# ```python
# from pe_numpy import shaw_values
#
# d = relative_distance(np.arange(6), np.arange(6))
# weights = np.tril(np.ones((6, 6))) / (np.arange(6)[:, None] + 1)
# table = np.random.default_rng(4).standard_normal((11, D))
# counted = shaw_values(weights, same, table, d)
# assert np.abs(np.diff(counted, axis=0)).max(axis=1).min() > 0.01
# constant = shaw_values(weights, same, np.tile(table[:1], (11, 1)), d)
# assert np.allclose(constant, constant[0], rtol=0, atol=1e-12)
# ```
#
# </details>

# %% [markdown]
# ## In practice
#
# **The order of components.** The authors' code (kimiyoung/transformer-xl, commit 44781ed) puts all
# sines first and all cosines after them. This makes no difference, because the trained $W_{K,R}$
# then has its rows in a different order.
#
# **An ascending list.** If the list is reversed, with $-(L-1)$ first, then for $L=S$ the shift
# gives $j-i$ for $i-j$. Past and future change places. All shapes fit, and a model trained in this
# way loses nothing, since $W_{K,R}$ can reverse the signs of the sines. Weights loaded from
# elsewhere give wrong scores. With a memory each distance is also off by $S-L$.

# %%
blocks = sinusoidal(span, 16, layout="concatenated")
order = [*range(0, 16, 2), *range(1, 16, 2)]  # where the sines are, then the cosines
W_r = rng.standard_normal((16, 4))
assert np.allclose(blocks @ W_r[order], sinusoidal(span, 16) @ W_r, rtol=0, atol=1e-12)
for L, S in ((6, 6), (3, 5)):
    up = np.tile(np.arange(1 - L, S), (L, 1))  # every row ascends
    right = relative_distance(np.arange(S - L, S), np.arange(S))
    assert np.array_equal(relative_shift(up)[:, :S], S - L - right)

# %% [markdown]
# **One pair for all layers, or a pair for each.** In the PyTorch half of the same code all layers
# share one $u$ and one $v$ (each head has its own part). The option `clamp_len` gives all distances
# beyond a limit the encoding of the limit. Check both before you load weights.
# %% [markdown]
# ## Further reading
#
# - Dai et al. 2019, "Transformer-XL: Attentive Language Models Beyond a Fixed-Length Context"
#   (arXiv:1901.02860): section 3.2 the memory, section 3.3 the four terms, appendix B the shift.
# - Yang et al. 2019, "XLNet: Generalized Autoregressive Pretraining for Language Understanding"
#   (arXiv:1906.08237): where the scheme looks both ways.
#
# **Cards**: [transformer_xl](CARDS.md#transformer_xl).
