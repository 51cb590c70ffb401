# %% [markdown]
# # 37. Content-dependent position: Forgetting Transformer and CoPE
#
# *Can each token decide how much of the past still counts, and can a query count sentences instead of words?*
#
# 35 minutes. Needs [12 FlashAttention, sliding windows and attention sinks](12_attention_blocks.ipynb), [35 ALiBi: attention with linear biases](35_alibi.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A bias that depends only on distance treats all texts alike, wherever their
# sentences end. Here the text itself decides. In the Forgetting Transformer (FoX) each token sets a
# gate that says how much of the past still counts. In contextual position encoding (CoPE) each
# query chooses what to count, for example sentences. You compute both by hand, run FoX in a fast
# attention kernel (a program for one computation on a GPU), and compare their costs. At the end you
# can add either to a model and test its masks, cache and rounding.

# %% fold="input" alt="A text of three and a half sentences. Above, the weights of the last word: ALiBi's fall by a constant factor, FoX's drop at each full stop. Below, positions: the distance is a line, and CoPE's count has a step at each full stop."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import alibi_bias, cope_bias, forgetting_bias, relative_distance, softmax
from pe_numpy.book.plots import content as plots

words = "The cat sat on the mat . It slept . A dog came . It barked".split()
at, stop = np.arange(16), np.array([word == "." for word in words])
sums = np.cumsum(np.log(np.where(stop, 0.1, 0.95)))  # gates: a full stop keeps one tenth
fox, line = forgetting_bias(sums, sums), alibi_bias([0.25], relative_distance(at, at))[0]
one, rows = np.ones((16, 1)), np.arange(5.0)[:, None]  # a table that shows its row
gate_scores = np.tile(np.where(stop, 50.0, -50.0), (16, 1))  # open at full stops
counted = cope_bias(one, gate_scores, rows)  # without a mask: right for the last word
plots.content_text(words, softmax(line[-1]), softmax(fox[-1]), counted[-1])
plt.show()

# %% [markdown]
# The figure shows a text as its last word sees it. Above are the shares of attention, its
# **weights**, when all scores are equal, for ALiBi and for FoX. Below are two kinds of position.
# One is the distance $i - j$ from the query, at position $i$, to each key, at position $j$. The
# other is a count of full stops, as CoPE can make it.
#
# ## Where distance biases fail: the sentence before
#
# ALiBi ([chapter 35](35_alibi.ipynb)) lets each token fade with its distance. But what makes a
# token old? In the text of the figure, *mat* and *dog* are six words and two sentences apart. A
# reader who asks "what happened in the sentence before?" needs different distances each time.

# %%
sentence = np.cumsum(stop) - stop  # a full stop belongs to the sentence that it ends
before = {}
for i in (words.index("slept"), words.index("dog"), words.index("barked")):
    before[words[i]] = (i - at[sentence == sentence[i] - 1]).tolist()
    print(f"{words[i]:7} the sentence before is at the distances {before[words[i]]}")
assert 5 in before["slept"] and 5 not in before["dog"]  # a distance bias cannot depend on this
assert words.index("dog") - words.index("mat") == 6 and sentence[11] - sentence[5] == 2

# %% [markdown]
# No function of only the distance can favour just these keys, because distance 5 must count for
# *slept* and not for *dog*. Two ideas let the text decide: tokens say what is to be *forgotten*
# (FoX), or the query says what is to be *counted* (CoPE).
#
# ## FoX: a forget gate per token
#
# FoX, the Forgetting Transformer (Lin et al. 2025,
# [arXiv:2503.02130](https://arxiv.org/abs/2503.02130)), takes the forget gate of recurrent
# networks. Token $t$ has the vector $x_t$. From it each head computes a number
# $f_t = \sigma(w\cdot x_t + b)$ between 0 and 1, with the logistic function $\sigma$. It is the
# share that the token keeps of all that came before. When query $i$ attends to key $j$, the gates
# of all tokens after $j$, up to $i$ itself, apply. So the weight gets the factor
#
# $$F_{ij} = f_{j+1}\, f_{j+2} \cdots f_i, \qquad F_{ii} = 1$$
#
# **Predict** $F$ for the last of four tokens with gates 0.9, 0.5, 0.8, 0.25. Which gate does not
# matter?


# %% fold="output"
def kept_by_loops(f):
    F = np.ones((len(f), len(f)))
    for i in range(len(f)):
        for j in range(i + 1):
            for t in range(j + 1, i + 1):
                F[i, j] *= f[t]
    return F


four = np.array([0.9, 0.5, 0.8, 0.25])
kept = kept_by_loops(four)
print(kept[3].round(3).tolist())
assert np.allclose(kept[3], [0.5 * 0.8 * 0.25, 0.8 * 0.25, 0.25, 1], rtol=0, atol=1e-15)
other = np.array([0.1, 0.5, 0.8, 0.25])  # another first gate, which has nothing before it
assert np.array_equal(kept_by_loops(other), kept)

# %% [markdown]
# A factor on the weight is a term in the exponent. The logarithm of a product is a sum, and a sum
# from $j+1$ to $i$ is a difference of two sums from the start:
#
# $$\ln F_{ij} = c_i - c_j, \qquad c_i = \ln f_0 + \ln f_1 + \cdots + \ln f_i$$
#
# This difference is the whole bias. The caller computes the sums, and the package's function
# subtracts. It refuses sums that rise, since they mean a gate above 1.

# %%
from pe_numpy.book.show import show_source

show_source(forgetting_bias)
c = np.cumsum(np.log(four))
table = forgetting_bias(c, c)  # (L, S)
for i in range(4):
    print(table[i, : i + 1].round(6).tolist())
past = np.tril(np.ones((4, 4), bool))
assert np.allclose(np.exp(table)[past], kept[past], rtol=0, atol=1e-15)
assert f"{table[3, 0]:.6f}" == "-2.302585" and f"{table[2, 1]:.6f}" == "-0.223144"

# %% alt="The factor on the weight of each key for 16 words, with ALiBi and with FoX. ALiBi has constant diagonals. FoX has bright triangles, one per sentence, and dark blocks between them."
hidden = np.where(at[:, None] >= at, 0, np.nan)
plots.content_kept(words, {"ALiBi, slope 1/4": np.exp(line + hidden), "FoX": np.exp(fox + hidden)})
plt.show()

# %% [markdown]
# ALiBi's diagonals are constant. FoX has bright triangles, one per sentence. A full stop forgets
# what came before it, so it is at the head of the next triangle. Here the gates were set by hand,
# 0.1 at a full stop and 0.95 elsewhere. In a model the gates are trained, and they may find other
# borders or none.
#
# *A common mistake* is to take the product from $j$ on, with the key's own gate. A full stop would
# then forget itself. Another is to leave out the mask: above the diagonal $c_i - c_j$ is positive
# and rewards the future.

# %%
own_too = c[:, None] - np.append(0, c[:-1])  # c_i - c_(j-1)
print("the newest key keeps", np.exp(own_too[3, 3]).round(3), "in place of", np.exp(table[3, 3]))
print("query 0 without a mask:", softmax(table[0]).round(3).tolist())
assert softmax(table[0]).argmax() == 3 and table[0, 3] > 2.3

# %% [markdown]
# An encoder has no mask. The paper's scheme is causal. The code of x-transformers
# ([9252ed7](https://github.com/lucidrains/x-transformers/blob/9252ed7/x_transformers/x_transformers.py))
# computes a second set of gates for the future. Our class for encoders takes $-|c_i - c_j|$ with
# one set of gates. On the past this is the same bias.
#
# ## ALiBi and CABLE as forget gates
#
# What if each token sets the same gate? **Predict** the bias for $f = 1/2$ everywhere, the gate of an
# untrained model: the authors' code starts with $b = 0$, and $\sigma(0) = 1/2$.

# %% fold="output"
for b in (0.0, 5.0):
    f = 1 / (1 + np.exp(-b))
    same = np.cumsum(np.full(len(words), np.log(f)))
    straight = alibi_bias([-np.log(f)], relative_distance(at, at))[0]
    lower = np.tril(np.ones(straight.shape, bool))
    assert np.allclose(forgetting_bias(same, same)[lower], straight[lower], rtol=0, atol=1e-12)
    reach = np.log(100) / -np.log(f)
    print(f"b = {b}: gate {f:.4f}, ALiBi's slope {-np.log(f):.4f}, 99 % within {reach:.0f} keys")

# %% [markdown]
# The result is a straight line again: ALiBi with the slope $-\ln f$. At $b = 0$ this slope is
# 0.6931, steeper than the steepest (0.5) of ALiBi's eight heads. At equal scores 7 keys have 99% of
# the weight, so an untrained FoX has to learn to remember. x-transformers starts with $b = 5$,
# which reaches about a hundred times further.
#
# CABLE ([arXiv:2503.08067](https://arxiv.org/abs/2503.08067),
# [code](https://github.com/axiomlab/Cable)) sums $-\mathrm{softplus}(u)$, where softplus is
# $\ln(1 + e^u)$. This is the same bias, because
#
# $$-\ln(1 + e^{u}) = \ln \sigma(-u)$$
#
# `np.logaddexp(0, u)` is the softplus, without an overflow.

# %%
u = np.random.default_rng(0).normal(0, 3, 16)
assert np.allclose(-np.log1p(np.exp(u)), np.log(1 / (1 + np.exp(u))), rtol=0, atol=1e-12)
cable, gates = np.cumsum(-np.logaddexp(0, u)), np.cumsum(np.log(1 / (1 + np.exp(u))))
assert np.allclose(forgetting_bias(cable, cable), forgetting_bias(gates, gates), rtol=0, atol=1e-12)
with np.errstate(over="ignore"):
    overflowed = -np.log1p(np.exp(800.0))
print("u = 800:", overflowed, "or", -np.logaddexp(0, 800.0))
assert overflowed == -np.inf and np.logaddexp(0, 800.0) == 800

# %% [markdown]
# ## FoX in FlashAttention: two extra components instead of a bias
#
# A kernel for long texts does not store the $(L, S)$ scores
# ([chapter 12](12_attention_blocks.ipynb)), and may take no bias. FoX needs none: a difference of two
# sums is a product of two short vectors, so it fits into two extra components of $q$ and $k$:
#
# $$\frac{q_i\cdot k_j}{\sqrt K} + c_i - c_j = \Big[\frac{q_i}{\sqrt K},\ 1,\ c_i\Big]\cdot\big[k_j,\ -c_j,\ 1\big]$$
#
# The cell compares both sides for each pair of a random text, with gates between one half and 1:

# %%
from pe_numpy import attention, attention_blockwise, causal_mask

L, K = 300, 6
q, k, v = np.random.default_rng(1).standard_normal((3, L, K))
c = np.cumsum(np.log(np.random.default_rng(2).uniform(0.5, 1, L)))
mask, ones = causal_mask(range(L), range(L)), np.ones((L, 1))
wide_q = np.hstack([q / np.sqrt(K), ones, c[:, None]])  # (L, K + 2)
wide_k = np.hstack([k, -c[:, None], ones])
left_side = q @ k.T / np.sqrt(K) + forgetting_bias(c, c)
assert np.allclose(wide_q @ wide_k.T, left_side, rtol=0, atol=1e-11)

# %% [markdown]
# A kernel divides by the square root of the width that it is given, here $K + 2 = 8$. So multiply
# the query, with its extra components, by that square root first. **Predict**: what happens to the
# slope of the bias if you forget this?

# %% fold="output"
expected = attention(q, k, v, mask, forgetting_bias(c, c))[0]
folded = attention_blockwise(np.sqrt(K + 2) * wide_q, wide_k, v, block=64, causal=True)
assert np.allclose(folded, expected, rtol=0, atol=1e-12)
forgotten = attention_blockwise(wide_q, wide_k, v, block=64, causal=True)
flatter = attention(q / np.sqrt(K + 2), k, v, mask, forgetting_bias(c, c) / np.sqrt(K + 2))[0]
print(f"all scores, and the slope, divided by {np.sqrt(K + 2):.3f} once more")
print("outputs differ by", np.abs(forgotten - expected).max().round(2))
assert np.allclose(forgotten, flatter, rtol=0, atol=1e-12)

# %% [markdown]
# One of the two components can go: a softmax is unaffected by $c_i$, which all keys of a row share
# ([chapter 35](35_alibi.ipynb#key-only-bias-a-constant-for-each-row)). A bias $-c_j$ that depends
# only on the key is enough (exercise 1). But this bias grows with the length of the text, and that
# has a price.
#
# ## Precision: cumulative sums in half precision
#
# A sum of 20,000 logarithms is large, and each step is small. Take gates $\sigma(u)$ with $u$ drawn
# around 3, so that most gates are above 0.9. **Predict**: where do the sums end, in float64 and in
# float16?

# %% fold="output"
steps = -np.logaddexp(0, -np.random.default_rng(0).normal(3, 1, 20_000))  # ln f
assert 0.75 < (steps > np.log(0.9)).mean() < 0.8
exact = np.cumsum(steps)
half = np.cumsum(steps.astype(np.float16), dtype=np.float16)
print(f"float64 {exact[-1]:.1f}, float32 {np.cumsum(steps.astype(np.float32))[-1]:.1f}", end=", ")
print(f"float16 {half[-1]:.1f}; a step is {steps.mean():.4f} on average")
print(f"near {half[-1]} neighbours in float16 are {np.spacing(-half[-1])} apart")
pace = (half[-1] - half[-5000]) / (exact[-1] - exact[-5000])
print(f"over the last 5,000 steps the float16 sum moves at {pace:.2f} of the right pace")
assert 0.2 < pace < 0.3
assert f"{exact[-1]:.0f}" == "-1492" and half[-1] == -716.5

# %% [markdown]
# At the end the float16 sum moves at about a quarter of the right pace, because a step below half
# the distance to the next number is rounded away. Where the sum does not move, nothing is
# forgotten. It is also not enough to sum in float64 and *store* in float16. There is another
# solution besides float32. Only differences count, so subtract the newest sum from all sums before
# you store them. Then the large numbers, with their coarse rounding, belong to keys that are almost
# forgotten.

# %% alt="Left: sums of 20,000 logarithms; float64 falls along a line, and float16 flattens. Right: weights of the last 40 keys. Exact weights fall from key to key; float16 sums give flat steps."
newest = exact[-1]
ways = {
    "exact": -exact,
    "float16 sums": -half.astype(float),
    "stored in float16": -exact.astype(np.float16).astype(float),
    "shifted, then stored": -(exact - newest).astype(np.float16).astype(float),
}
right = softmax(ways["exact"])
moved = {name: np.abs(softmax(bias) - right).sum() / 2 for name, bias in ways.items()}
print(", ".join(f"{name}: {share:.1%} moved" for name, share in moved.items()))
assert moved["float16 sums"] > 0.1 and moved["stored in float16"] > 0.1
assert moved["shifted, then stored"] < 0.001
plots.content_float16(exact, half, {n: softmax(ways[n])[-40:] for n in list(ways)[:2]})
plt.show()

# %% [markdown]
# Both the authors' code and flash-linear-attention
# ([bc3b101](https://github.com/fla-org/flash-linear-attention/blob/bc3b101dcb/fla/layers/forgetting_attn.py))
# compute $\ln f$ in float32.
#
# ## The gradient of a forget gate (second reading)
#
# Let $G_{ij}$ be the slope of the loss with respect to the bias of a pair. The gate of token $t$ is
# between the keys before $t$ and the queries from $t$ on, so its gradient comes from all of these
# pairs:
#
# $$\frac{\partial \mathcal L}{\partial \ln f_t} = \sum_{i \ge t}\ \sum_{j < t} G_{ij}$$
#
# No double sum is needed. The gradient is a cumulative sum, from the end, of row sums minus column
# sums.

# %%
rng = np.random.default_rng(3)
G, ln_f = np.tril(rng.standard_normal((7, 7))), np.log(rng.uniform(0.2, 1, 7))


def loss(ln_f):  # a loss whose slopes by the biases are G
    sums = np.cumsum(ln_f)
    return (G * forgetting_bias(sums, sums)).sum()


numeric = [(loss(ln_f + e) - loss(ln_f - e)) / 2e-5 for e in 1e-5 * np.eye(7)]
pairs = [sum(G[i, j] for i in range(t, 7) for j in range(t)) for t in range(7)]
assert np.allclose(numeric, pairs, rtol=0, atol=1e-8) and pairs[0] == 0
by_sums = np.cumsum((G.sum(axis=1) - G.sum(axis=0))[::-1])[::-1]
assert np.allclose(by_sums, pairs, rtol=0, atol=1e-12)

# %% [markdown]
# ## FoX with a KV cache
#
# In generation each step has one query, the newest token's, and all keys. The query's sum is the
# *last* of the keys' sums, so the cache keeps $\ln f$ (or $c$) beside $k$ and $v$. In
# flash-linear-attention one-token steps once gave outputs of a wrong shape
# ([#355](https://github.com/fla-org/flash-linear-attention/issues/355)). Taking the wrong sum is
# worse: the shape is right, so no error appears.
# [Chapter 35](35_alibi.ipynb#a-common-mistake-with-a-kv-cache-the-position-of-the-newest-token)
# shows this mistake with positions. Old tokens may be dropped, and the sum may start again after
# them, because only differences count.

# %%
held = np.cumsum(np.log(four))
newest_row = forgetting_bias(held[-1:], held)  # (1, S)
assert np.array_equal(newest_row[0], table[3])
wrong = forgetting_bias(held[:1], held)  # the query's own list has one entry: its first
print("right:", newest_row.round(2).tolist(), " as if it were the first:", wrong.round(2).tolist())
assert (wrong[0] >= 0).all()  # the newest key is rewarded for what was forgotten
fresh = np.cumsum(np.log(four[2:]))  # the two oldest dropped
assert np.allclose(forgetting_bias(fresh[-1:], fresh), newest_row[:, 2:], rtol=0, atol=1e-15)

# %% [markdown]
# ## CoPE: contextual position encoding
#
# CoPE, contextual position encoding (Golovneva et al. 2024,
# [arXiv:2405.18719](https://arxiv.org/abs/2405.18719)), turns the question round: the *query* decides
# what a step is. Query $i$ opens or shuts a gate at each key and counts the open ones, from the key
# up to itself. The count stops at $N - 1$, the last row of a table of $N$ rows:
#
# $$g_{it} = \sigma\!\Big(\frac{q_i\cdot k_t}{\sqrt K}\Big), \qquad p_{ij} = \min\big(g_{ij} + g_{i,j+1} + \cdots + g_{ii},\ N - 1\big)$$
#
# Work three queries by hand. The scores of the gates are chosen as logarithms, since
# $\sigma(\ln 3) = 3/4$ and $\sigma(\ln 9) = 9/10$. **Predict** the counts of query 2, whose gates are
# 3/4, 1/2 and 9/10, with $N = 4$.


# %% fold="output"
def count_by_loops(gate_scores, N):
    p = np.zeros(gate_scores.shape)
    for i in range(len(p)):
        for j in range(i + 1):
            gates = [1 / (1 + np.exp(-gate_scores[i, t])) for t in range(j, i + 1)]
            p[i, j] = min(sum(gates), N - 1)
    return p


scores3 = np.log([[1.0, 1, 1], [3, 1, 1], [3, 1, 9]])
p3 = count_by_loops(scores3, 4)
for i in range(3):
    print(f"query {i}: p = {p3[i, : i + 1].round(4).tolist()}")
assert np.allclose(p3[2], [0.75 + 0.5 + 0.9, 0.5 + 0.9, 0.9], rtol=0, atol=1e-12)
assert np.allclose(count_by_loops(scores3, 2)[2], [1, 1, 0.9], rtol=0, atol=1e-12)  # N - 1 = 1

# %% [markdown]
# The count is a fraction. A table of $N$ rows $e[0], \dots, e[N-1]$ is interpolated between two rows.
# With $\lfloor p\rfloor$ the whole part of $p$ and $r = p - \lfloor p\rfloor$ the rest, the score of
# the pair gets
#
# $$z_{ij} = q_i\cdot\big((1 - r)\, e[\lfloor p_{ij}\rfloor] + r\, e[\lceil p_{ij}\rceil]\big)$$
#
# Here the width is 1, $q = 1, 1, 2$, and the table contains 0, 1, 4, 9.


# %%
def look_up_by_loops(q, p, table):
    z = np.zeros(p.shape)
    for i, j in np.ndindex(p.shape):
        low, high = int(np.floor(p[i, j])), int(np.ceil(p[i, j]))
        r = p[i, j] - low
        z[i, j] = q[i] @ ((1 - r) * table[low] + r * table[high])
    return z


q3, squares = np.array([[1.0], [1.0], [2.0]]), np.array([[0.0], [1.0], [4.0], [9.0]])
z3 = look_up_by_loops(q3, p3, squares)
for i in range(3):
    print(f"query {i}: z = {z3[i, : i + 1].round(4).tolist()}")
assert np.allclose(z3[2], [2 * (0.85 * 4 + 0.15 * 9), 2 * (0.6 + 0.4 * 4), 1.8], rtol=0, atol=1e-12)

# %% alt="A broken line through the squares 0, 1, 4 and 9 at counts 0 to 3, flat beyond 3, with black dots at the five counts of the example. Straight pieces meet at the rows."
three = causal_mask(range(3), range(3))
grid = np.linspace(0, 4, 401)
straight = np.interp(grid, np.arange(4), squares[:, 0])  # NumPy's own; it, too, stops at the end
dots = p3[three], np.interp(p3[three], np.arange(4), squares[:, 0])
assert np.allclose(z3[three], dots[1] * np.repeat([1, 1, 2], [1, 2, 3]), rtol=0, atol=1e-12)
plots.content_lookup(squares[:, 0], (grid, straight), dots)
plt.show()

# %% [markdown]
# Between two rows the slope is the upper row minus the lower one. That is how a gate learns. At a
# whole count floor and ceiling coincide, so the released rule gives the slope 0 there, as beyond
# the last row. The line itself has a kink.

# %%
h = 1e-6
for count in (0.4, 1.3, 2.8, 2.0, 3.5):
    low, high = np.floor(min(count, 3)), np.ceil(min(count, 3))
    rule = squares[int(high), 0] - squares[int(low), 0]
    ends = np.interp([count - h, count + h], np.arange(4), squares[:, 0])
    by_differences = (ends[1] - ends[0]) / (2 * h)
    print(f"p = {count}: rule {rule:g}, by differences {by_differences:.4g}")
    assert np.isclose(rule, by_differences, rtol=0, atol=1e-8) == (count != 2)

# %% [markdown]
# The package's function multiplies each query by each row once. Then it looks two numbers up for each
# pair, 64 queries at a time, so that what they need stays in the processor's cache. It takes the
# scores of the gates as a separate argument, because the released code can compute them from separate
# keys.

# %%
from pe_numpy.relative.cope import at_counts

show_source(cope_bias, at_counts)
rng = np.random.default_rng(4)
q5, e5, s5 = *rng.standard_normal((2, 5, 4)), 2 * rng.standard_normal((5, 5))
five = causal_mask(range(5), range(5))
z = cope_bias(q3, scores3, squares, three)
assert np.allclose(z[three], z3[three], rtol=0, atol=1e-12)
by_loops = look_up_by_loops(q5, count_by_loops(s5, 5), e5)
assert np.allclose(cope_bias(q5, s5, e5, five)[five], by_loops[five], rtol=0, atol=1e-12)

# %% [markdown]
# ## CoPE counts sentences
#
# If the gates open only at full stops, the position of a key is the number of full stops from it to
# the query. This position counts sentences back. A table that favours row 1 then gives a head that
# looks at the sentence before, at any distance.

# %% alt="Left: for each pair of words, the number of full stops from key to query, in blocks from 0 to 3. Right: weights of the head that favours count 1. Each word attends to the whole sentence before its own, if there is one; a full stop attends to its own sentence."
seen = causal_mask(at, at)
counts = cope_bias(one, gate_scores, rows, seen)
by_hand = [[stop[j : i + 1].sum() for j in at] for i in at]
assert np.allclose(counts[seen], np.array(by_hand)[seen], rtol=0, atol=1e-12)
favour = np.array([[0.0], [9.0], [0.0], [0.0], [0.0]])
weights = softmax(np.where(seen, cope_bias(one, gate_scores, favour, seen), -np.inf))
for i in (words.index("slept"), words.index("dog"), words.index("barked")):
    assert weights[i, sentence == sentence[i] - 1].sum() > 0.99
plots.content_counts(words, counts + hidden, weights + hidden)
plt.show()

# %% [markdown]
# The count of a full stop begins with its own gate, so *its* sentence has count 1. For the words of
# the first sentence no key has count 1, and the weights are equal. We set these gates by hand.
# Whether training finds such gates is another question, which this chapter does not answer.
#
# With all gates open CoPE counts words. **Predict** the count at distance $d = i - j$: is it $d$?

# %% fold="output"
open_gates = cope_bias(one, np.full((16, 16), 50.0), np.arange(17.0)[:, None], seen)
print("distances [3, 2, 1, 0] have the counts", open_gates[-1, -4:].astype(int).tolist())
assert np.array_equal(open_gates[seen], (at[:, None] - at + 1)[seen])

# %% [markdown]
# The count is $d + 1$, because the key itself counts. So CoPE contains a table of relative
# positions, read at row $d + 1$, and row 0 is for keys behind shut gates.
#
# ### A common mistake: masking CoPE's gates after the sum
#
# The released code multiplies the gates by the mask before it sums. Masks that are in the scores
# already, as $-\infty$ or $-10^9$, also shut the gates. But a mask that is added after CoPE comes too
# late: padding and the future have been counted.

# %%
padded = np.concatenate([scores3, np.zeros((3, 2))], axis=1)  # two tokens of padding on the right
real = np.concatenate([three, np.zeros((3, 2), bool)], axis=1)
late = cope_bias(q3, padded, squares)[:, :3]  # masked afterwards
print("masked before:", z[2].round(2).tolist(), " masked after:", late[2].round(2).tolist())
assert np.allclose(cope_bias(q3, padded, squares, real)[:, :3][three], z[three], rtol=0, atol=1e-12)
assert np.allclose(
    cope_bias(q3, np.where(real, padded, -1e9), squares)[:, :3][three], z[three], rtol=0, atol=1e-12
)
assert np.abs(late - z)[three].min() > 0.5

# %% [markdown]
# ### CoPE's term: inside or outside the scale
#
# The score becomes $(q\cdot k + z)/\sqrt K$ in the released code
# ([RAM e6f051f](https://github.com/facebookresearch/RAM/blob/e6f051f/projects/cope/src/cope/context_position.py)),
# unless a flag, `cope-nodiv`, says otherwise. It is $q\cdot k/\sqrt K + z$ in the listing of the
# paper's appendix B, which x-transformers follows. In both codes the gates use the scaled scores.
# So the two forms differ by a factor $\sqrt K$ on the table. A model can learn either, but weights
# trained with one don't fit the other. Our function leaves the scale to the caller.

# %%
x = np.random.default_rng(5).standard_normal((5, 4))
scaled, z5 = x @ x.T / 2, cope_bias(x, x @ x.T / 2, e5, five)  # K = 4
code, listing = (x @ x.T + z5) / 2, scaled + z5
assert np.allclose(listing, (x @ x.T + cope_bias(x, scaled, 2 * e5, five)) / 2, rtol=0, atol=1e-12)
print("largest difference of the two:", np.abs(code - listing)[five].max().round(2))
assert np.abs(code - listing)[five].max() > 0.5

# %% [markdown]
# ## Stick-breaking attention (second reading)
#
# A third method has neither bias nor softmax. **Stick-breaking**
# ([arXiv:2410.17980](https://arxiv.org/abs/2410.17980)) walks back from the query along a stick of
# length 1. Each key $t$ takes the share $\beta_{it} = \sigma(s_{it})$ of what remains, where
# $s_{it}$ is its score.
#
# $$A_{ij} = \beta_{ij} \prod_{j < t < i} (1 - \beta_{it})$$
#
# The query itself takes no part. The rest of the stick goes to the query's own value, or nowhere.
# Equal scores contain no position, but the weights are geometric, with the ratios of ALiBi with the
# slope $-\ln(1 - \beta)$.


# %%
def break_sticks(s):  # by suffix sums of ln(1 - beta), as the reference does
    strict = np.tril(np.ones(s.shape, bool), -1)
    left = np.where(strict, -np.logaddexp(0, s), 0)  # ln(1 - beta)
    after = np.cumsum(left[:, ::-1], axis=1)[:, ::-1] - left
    return np.where(strict, np.exp(after - np.logaddexp(0, -s)), 0)


s = np.zeros((3, 3))
s[2, 0] = np.log(3)
A = break_sticks(s)
print("query 2:", A[2, :2].round(4).tolist(), "rest", (1 - A[2].sum()).round(4))
assert np.allclose(A[2], [0.75 * (1 - 0.5), 0.5, 0], rtol=0, atol=1e-15) and A[1, 0] == 0.5
equal = break_sticks(np.full((16, 16), -1.0))[-1, :-1]
assert len(equal) == 15  # all keys before the query
assert np.allclose(equal[:-1] / equal[1:], np.exp(-np.logaddexp(0, -1.0)), rtol=0, atol=1e-12)

# %% [markdown]
# Here are two more schemes in brief. DAPE ([arXiv:2405.14722](https://arxiv.org/abs/2405.14722))
# feeds a pair's scores and biases, of all heads, to a small network and adds its output. Inkling, a
# model of 2026 (transformers' folder `inkling`), adds $\rho_i\cdot P[d]$ for distances up to a
# limit. This is Shaw's idea ([chapter 31](31_shaw.ipynb)) with a second, narrow query $\rho$ of 16
# numbers per head.
#
# ## What FoX and CoPE cost
#
# FoX adds one gate per token and head, and two components to $K$ when it is folded in. CoPE needs
# $N$ products for each query, and a sigmoid, a sum and a lookup for each pair. Its sum runs back
# from the query, so blocks of keys would have to come newest first and carry the count (exercise
# 3). But `attention_blockwise` sweeps forward. A thread that asks how to join CoPE with a fused
# kernel ([flash-attention #1062](https://github.com/Dao-AILab/flash-attention/issues/1062)) was
# closed.

# %%
size, width, table_rows = 4096, 64, 64
pairs_seen = size * (size + 1) // 2
print(f"{size} tokens: attention {2 * width * pairs_seen:,} multiplications per head")
print(f"FoX folds in {2 * pairs_seen:,} more: {1 / width:.1%}")
print(f"CoPE: {width * table_rows * size:,} for its table, {pairs_seen:,} sigmoids and lookups")
assert width * table_rows * size < 2 * pairs_seen  # the table is cheap: pairs are what costs

# %% [markdown]
# ## In short
#
# - **What does FoX add to a score, and where?** It adds $c_i - c_j$ after the division by
#   $\sqrt K$, under a causal mask. $c$ is the cumulative sum of $\ln f$. A key keeps the product of
#   the gates after it, the query's included. [FoX](#fox-a-forget-gate-per-token).
# - **How do ALiBi and CABLE compare?** A constant gate $f$ is ALiBi with slope $-\ln f$. CABLE is FoX
#   with the opposite sign inside the gate. [ALiBi and CABLE](#alibi-and-cable-as-forget-gates).
# - **Does FoX run in FlashAttention, and in half precision?** Yes in FlashAttention: two extra
#   components contain the bias. No in float16, which rounds the steps of the sums away. Compute sums
#   of $\ln f$ in float32.
#   [FlashAttention](#fox-in-flashattention-two-extra-components-instead-of-a-bias),
#   [precision](#precision-cumulative-sums-in-half-precision).
# - **What must a cache store?** FoX stores keys, values and $\ln f$, one number per token and head.
#   The queries' sums are the *last* of the keys' sums. CoPE stores keys and values.
#   [FoX with a KV cache](#fox-with-a-kv-cache).
# - **What is a position in CoPE?** It is the number of open gates that the query counts, from the
#   key up to itself. A fraction is read between two rows of a table. Mask the gates *before* the
#   sum. [CoPE](#cope-contextual-position-encoding),
#   [mask](#a-common-mistake-masking-copes-gates-after-the-sum).
# - **Is CoPE's term inside or outside the scale?** The released code has $(q\cdot k + z)/\sqrt K$,
#   and the paper's listing $q\cdot k/\sqrt K + z$. A trained table serves only one of them.
#   [The scale](#copes-term-inside-or-outside-the-scale).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 37` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 37_content.py` checks yours.
#
# ### Exercise 1: FoX with one extra component
#
# Fold FoX into *one* extra component of $q$ and $k$, and show with `attention_blockwise` that the
# outputs do not change.
#
# <details><summary>Hint 1</summary>
#
# A softmax is unaffected by what all keys of a row share.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The component of $q$ is 1, and the component of $k$ is $-c_j$. The new width is $K + 1$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# q1 = np.sqrt(K + 1) * np.hstack([q / np.sqrt(K), ones])
# k1 = np.hstack([k, -c[:, None]])
# one_more = attention_blockwise(q1, k1, v, block=64, causal=True)
# assert np.allclose(one_more, expected, rtol=0, atol=1e-10)
# ```
#
# </details>
#
# ### Exercise 2: Packed texts, separated by a gate
#
# Several short texts are packed into one row of a batch. Which gates keep a text from attending to
# the one before it, with no mask but the causal one? Show it for two texts of 5 tokens.
#
# <details><summary>Hint 1</summary>
#
# Which token's gate do all pairs across the border have in common?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# It is the gate of the first token of the second text. A gate of 0 has no logarithm, but $10^{-12}$
# has one.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# f = np.full(10, 0.9)
# f[5] = 1e-12
# packed = np.cumsum(np.log(f))
# bias = np.where(causal_mask(range(10), range(10)), forgetting_bias(packed, packed), -np.inf)
# assert softmax(bias)[5:, :5].sum(axis=1).max() < 1e-11
# alone = np.cumsum(np.log(f[:5]))
# first = np.where(causal_mask(range(5), range(5)), forgetting_bias(alone, alone), -np.inf)
# assert np.allclose(softmax(bias)[5:, 5:], softmax(first), rtol=0, atol=1e-6)
# ```
#
# The price is a sum that jumps by $12 \ln 10$ (see the section on half precision).
#
# </details>
#
# ### Exercise 3: CoPE in blocks
#
# Compute CoPE's counts for one query over blocks of keys, carrying one number from block to block. In
# which order must the blocks come?
#
# <details><summary>Hint 1</summary>
#
# A count is a sum from the key to the query.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The newest block comes first. Carry the sum of its gates.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# gates = 1 / (1 + np.exp(-np.random.default_rng(6).standard_normal(64)))
# carried, parts = 0.0, []
# for start in range(48, -1, -16):
#     inside = np.cumsum(gates[start : start + 16][::-1])[::-1]
#     parts.insert(0, inside + carried)
#     carried += inside[0]
# whole = [sum(gates[j:]) for j in range(64)]
# assert np.allclose(np.concatenate(parts), whole, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 4: A relative table inside CoPE
#
# Give CoPE gates and a table so that $z_{ij} = q_i \cdot R_d$ for a table $R$ of the distances
# $d = 0$ to 5, and for larger distances $q_i \cdot R_5$.
#
# <details><summary>Hint 1</summary>
#
# With open gates the count is $d + 1$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Put a row of zeros in front of $R$. The last row serves all larger distances.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# rng = np.random.default_rng(7)
# R, queries = rng.standard_normal((6, 4)), rng.standard_normal((16, 4))
# z = cope_bias(queries, np.full((16, 16), 50.0), np.vstack([np.zeros((1, 4)), R]), seen)
# for i, j in zip(*np.nonzero(seen), strict=True):
#     assert np.isclose(z[i, j], queries[i] @ R[min(i - j, 5)], rtol=0, atol=1e-6)
# ```
#
# </details>
#
# ## In practice
#
# | scheme | used by | cache, beside k and v | trained | cost | in a word |
# |---|---|---|---|---|---|
# | FoX | research models, flash-linear-attention | $\ln f$, one number per token and head | $w$, $b$ of each head | a bias that depends only on the key | recency that the text decides |
# | CABLE | research models | the same | the same | the same | FoX, with the opposite sign inside |
# | CoPE | research models, x-transformers | nothing | $N$ rows per layer, shared by heads | a sigmoid and a lookup per pair | counts things, at the price of speed |
# | stick-breaking | research models | nothing | nothing | suffix sums of each row | order without a position |
#
# - **Gates in float32**, and also their sums. If sums must be stored in a smaller format, subtract
#   the newest first.
# - **Start.** $b = 0$ forgets half at each token, and $b = 5$ nearly nothing. There are also
#   variants with fixed gates and with only $b$
#   ([code](https://github.com/zhixuan-lin/forgetting-transformer/tree/883f260)).
# - **Padding.** Set $\ln f$ of padding to 0 (a gate of 1), and mask it. In CoPE a masked key has the
#   gate 0.
# - **CABLE's scale.** One version of its code divides scores by the square root of the *model's*
#   width (commit 087c3a1), and another by 1 (2d7410b). Compare weights with the code that made
#   them.
# - **CoPE's table** has by default one row more than the context has tokens, since a count of 0 is
#   possible. A small $N$, such as 64, makes it a clipped count.
# - **Stick-breaking** once gave NaN as gradients
#   ([#5](https://github.com/shawntan/stickbreaking-attention/issues/5) reports it). Work in log
#   space, and let `where` choose before the logarithm ([chapter 61](61_autodiff.ipynb)).
# - **In this package**: `Forgetting` and `Cope` in `pe_numpy.transformer.encodings` put both into the
#   Transformer of [chapter 62](62_model.ipynb).
#
# ## Further reading
#
# - Lin et al. 2025, *Forgetting Transformer: Softmax Attention with a Forget Gate*,
#   [arXiv:2503.02130](https://arxiv.org/abs/2503.02130).
# - Golovneva et al. 2024, *Contextual Position Encoding: Learning to Count What's Important*,
#   [arXiv:2405.18719](https://arxiv.org/abs/2405.18719), and its
#   [code](https://github.com/facebookresearch/RAM/tree/e6f051f/projects/cope).
# - Tan et al. 2024, *Scaling Stick-Breaking Attention: An Efficient Implementation and In-depth
#   Study*, [arXiv:2410.17980](https://arxiv.org/abs/2410.17980), and its
#   [reference](https://github.com/shawntan/stickbreaking-attention/blob/3147a38/stickbreaking_attention/sb_ref.py).
#
# **Cards**: [forgetting](CARDS.md#forgetting), [cope](CARDS.md#cope).
