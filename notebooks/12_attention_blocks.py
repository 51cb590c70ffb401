# %% [markdown]
# # 12. FlashAttention, sliding windows and attention sinks
#
# *How does attention over a long sequence fit into memory, and what may a layer leave out?*
#
# 35 minutes. Needs [10 Attention by hand: scores, softmax, heads, masks](10_attention.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Attention compares every pair of tokens, so for a long text the results do not fit
# into memory. You compute the same output block by block, with a running maximum and two running sums, as
# FlashAttention does. Then you leave pairs out: sliding windows and chunks hide distant tokens, and
# attention sinks keep the first tokens visible. At the end you can write attention that never stores all
# scores, count the blocks that it visits, and find the off-by-one error of a window.

# %% fold="input" alt="Left: 6 by 6 blocks of the score matrix. Those above the diagonal are skipped, and one is marked as the block in memory. Right: the number of scores in memory grows with the length, or stays at 65,536."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy.book.plots import attention_blocks as plots

size, block, lengths = 6, 256, 2 ** np.arange(8, 18)
place = np.arange(size)[:, None] * (np.arange(size)[:, None] + 1) // 2 + np.arange(size) + 1
now = place[3, 2]
states = np.where(place < now, 1, np.where(place == now, 2, 3))  # done, held now, to come
states[np.triu_indices(size, 1)] = 0  # skipped
plots.block_sweep(states, place, lengths, lengths**2, np.full(len(lengths), block**2))
plt.show()

# %% [markdown]
# ## Online softmax: one pass over the keys
#
# Standard attention ([chapter 10](10_attention.ipynb)) stores the scores of all queries and all keys. On
# the left of the figure at the top these scores are cut into blocks, which are visited in the order of
# their numbers. The dashed line is the diagonal, where query and key are the same token.
#
# Take one query with scores $s_j$ and values $v_j$. Its weights seem to need the whole row of scores in
# memory: the largest score, for safety, and then the sum.
#
# **An attempt that fails.** Ignore the largest score: keep $\ell = \sum e^{s_j}$ and
# $o = \sum e^{s_j} v_j$, add key after key, and divide at the end. That is one pass, and one score of 710
# overflows it.
#
# **The idea** is called **online softmax**. Keep the largest score *so far*, $m$, and take both sums
# relative to it: $\ell = \sum e^{s_j - m}$, $o = \sum e^{s_j - m} v_j$. When a larger score arrives, both
# sums were taken with the wrong $m$, and are off by a known factor:
# $e^{s_j - m'} = e^{s_j - m}\, e^{m - m'}$. So multiply and continue:
#
# $$
# m' = \max(m, s_j), \qquad
# \ell' = \ell\, e^{m - m'} + e^{s_j - m'}, \qquad
# o' = o\, e^{m - m'} + e^{s_j - m'}\, v_j
# $$
#
# We start with $m = -\infty$ and empty sums. If the first score is finite, the first factor is then
# $e^{-\infty} = 0$. A masked first score needs
# [care](#blockwise-attention-the-algorithm-of-flashattention). No factor is above 1, so nothing
# overflows. *Predict*: what is $o/\ell$ when only some of the keys are read?

# %% fold="output" alt="Three panels over 32 keys: scores with a rising running maximum; the running sum, rescaled at each new maximum; and the running output, which ends at the output of attention."
from pe_numpy import softmax

rng = np.random.default_rng(4)
s_row, v_row = rng.standard_normal(32) * 2, rng.standard_normal(32)
m, ell, o, trace = -np.inf, 0.0, 0.0, []
for j, (s, v) in enumerate(zip(s_row, v_row, strict=True)):
    m_new = max(m, s)
    ell = ell * np.exp(m - m_new) + np.exp(s - m_new)
    o = o * np.exp(m - m_new) + np.exp(s - m_new) * v
    m = m_new
    trace.append((m, ell, o / ell))
    so_far = softmax(s_row[: j + 1]) @ v_row[: j + 1]
    assert np.isclose(trace[-1][2], so_far, rtol=0, atol=1e-12)
plots.running_softmax(s_row, *np.array(trace).T, softmax(s_row) @ v_row)
plt.show()

# %% [markdown]
# After every key, $o/\ell$ is attention over the keys read so far. Dotted lines mark a new maximum, where
# the old sum is scaled down. Between them the sum only grows. The output so far wanders and ends on the
# dashed line, the result of standard attention.
#
# ## Merging partial softmaxes
#
# We need not take one key at a time. We summarise a block of keys by its triple $(m, \ell, o)$.
# Two blocks $a$ and $b$ are merged by the same rescaling. The step above is the case in which $b$ is one
# key: $m_b = s_j$, $\ell_b = 1$, $o_b = v_j$.
#
# $$
# m = \max(m_a, m_b), \qquad
# \ell = \ell_a e^{m_a - m} + \ell_b e^{m_b - m}, \qquad
# o = o_a e^{m_a - m} + o_b e^{m_b - m}
# $$


# %%
def summary(s, v):
    m = s.max()
    return m, np.exp(s - m).sum(), np.exp(s - m) @ v


def merge(a, b):
    m = max(a[0], b[0])
    from_a, from_b = np.exp(a[0] - m), np.exp(b[0] - m)
    return m, a[1] * from_a + b[1] * from_b, a[2] * from_a + b[2] * from_b


for cut in range(1, 32):
    joined = merge(summary(s_row[:cut], v_row[:cut]), summary(s_row[cut:], v_row[cut:]))
    assert np.allclose(joined, summary(s_row, v_row), rtol=0, atol=1e-12)
assert np.isclose(joined[2] / joined[1], softmax(s_row) @ v_row, rtol=0, atol=1e-12)

# %% [markdown]
# All 31 ways to cut 32 keys in two give the same result. So we may cut the keys into as many blocks as we
# like, and merge the blocks even on different machines.
#
# ## Blockwise attention, the algorithm of FlashAttention
#
# The package's `attention_blockwise` takes blocks of queries as well as blocks of keys.
#
# - **`scores_of`** computes the scores of one block, a small square, with scale, bias and mask. A bias
#   may be a *function* of the distances in that square, so no $(L, S)$ array is needed for it either.
# - **The sweep** goes from `output = ...` on. Here `top` is $m$, `total` is $\ell$, `mixed` is $o$, and
#   `shrink` is $e^{m - m'}$; `exp_of` computes $e^{s - m'}$ in the memory of the scores.
#
# While all keys of a row so far are masked, $m = -\infty$. Then the shift is taken as 0, since
# $-\infty - (-\infty)$ is not a number. A sum that stays 0 is replaced by 1.

# %% fold="output"
from pe_numpy import attention_blockwise
from pe_numpy.book.show import show_source

show_source(attention_blockwise)

# %% [markdown]
# The test takes blocks that do and don't divide the length, and a causal mask with a distance bias for the
# last 20 of 50 positions.

# %%
from pe_numpy import attention, causal_mask, padding_mask

rng, at = np.random.default_rng(5), np.arange(50)
q, k, v = (rng.standard_normal((2, 3, 50, width)) for width in (8, 8, 6))
late, fade = q[..., -20:, :], lambda d: -0.5 * abs(d)
for block in (1, 7, 16, 50, 256):
    free = attention_blockwise(q, k, v, block=block)
    hidden = attention_blockwise(late, k, v, bias=fade, block=block, causal=True)
    see, bias = causal_mask(at[-20:], at), fade(at[-20:, None] - at)
    assert np.allclose(free, attention(q, k, v)[0], rtol=0, atol=1e-12)
    assert np.allclose(hidden, attention(late, k, v, see, bias)[0], rtol=0, atol=1e-12)
    empty = attention_blockwise(q, k, v, mask=padding_mask([50, 0], 50), block=block)
    assert (empty[1] == 0).all()  # nothing to look at: zeros here, too

# %% [markdown]
# ## Memory and skipped blocks
#
# The bias function is called once for each block, so it can count. Here `spy` notes the size of the block
# and adds nothing. With $n = L/\text{block}$ blocks on each side, a causal sweep visits the blocks on and
# below the diagonal:
#
# $$
# \text{blocks visited} = \frac{n(n + 1)}{2}, \qquad \text{scores held} = \text{block}^2
# $$


# %%
def spy(d):
    sizes.append(d.size)
    return 0.0 * d


for length, block in ((64, 16), (256, 32), (512, 64)):
    sizes, n = [], length // block
    x = np.ones((length, 2), np.float32)
    ones = attention_blockwise(x, x, x, bias=spy, block=block, causal=True)
    assert np.allclose(ones, 1, rtol=0, atol=1e-6)  # float32
    print(f"length {length}, block {block}: {len(sizes)} of {n * n} blocks, {max(sizes):,} scores")
    assert len(sizes) == n * (n + 1) // 2 and set(sizes) == {block**2}
assert (place[np.tril_indices(size)] == np.arange(size * (size + 1) // 2) + 1).all()  # the picture
assert (16_384**2, 256**2, 16_384 // 256) == (268_435_456, 65_536, 64)
assert 64 * 64 == 4_096 and 64 * 64 - 64 * 65 // 2 == 2_016  # blocks, and those skipped

# %% [markdown]
# At a length of 16,384, blocks of 256 mean 4,096 times fewer scores in memory, and a causal mask skips
# 2,016 of the 4,096 blocks. A smaller block needs less memory and takes more steps to the same result.
# Every visited pair still costs its multiplications.
#
# ## Sliding-window attention: off by one
#
# In many language models some layers let a query attend to near keys only. This is **sliding-window
# attention**. It needs only a different mask. With $i$ and $j$ for the *positions* of query and key:
#
# $$
# \begin{aligned}
# \text{window of } w:&\quad 0 \le i - j < w\\
# \text{the same with } z \text{ sinks}:&\quad 0 \le i - j \ \text{ and }\ (i - j < w \ \text{ or }\ 0 \le j < z)\\
# \text{chunks of } c:&\quad 0 \le i - j \ \text{ and }\ \lfloor i/c \rfloor = \lfloor j/c \rfloor
# \end{aligned}
# $$
#
# Sinks are first tokens that stay visible; [a later section](#attention-sinks-streamingllm) says why.


# %%
from pe_numpy import chunk_mask, window_mask

show_source(window_mask, chunk_mask)
p = np.arange(6)
window, sink, chunks = window_mask(p, p, 3), window_mask(p, p, 2, sinks=1), chunk_mask(p, p, 3)
for i, j in np.ndindex(6, 6):
    assert window[i, j] == (0 <= i - j < 3)
    assert sink[i, j] == (0 <= i - j and (i - j < 2 or 0 <= j < 1))
    assert chunks[i, j] == (0 <= i - j and i // 3 == j // 3)
padded = window_mask(p - 2, p - 2, 2, sinks=1)[5]  # positions -2 .. 3: two tokens of padding
assert np.flatnonzero(padded).tolist() == [2, 4, 5]  # the sink stands at 0

# %% alt="Four masks of six tokens: a triangle; a band three wide; a band two wide with a full first column; and two triangles of three. Rows of the sliding window see 1, 2, 3, 3, 3 and 3 keys."
plots.masks({"causal": causal_mask(p, p), "window of 3": window,
             "window of 2, one sink": sink, "chunks of 3": chunks})  # fmt: skip
plt.show()
assert window.sum(axis=1).tolist() == [1, 2, 3, 3, 3, 3]

# %% [markdown]
# The dark cell is the query itself, and the number beside a row is how many keys it sees. The query
# counts: a window of 1 is only the query.
#
# *A common mistake* is the other count. The first number of FlashAttention's `window_size` is the
# distance of the most distant visible key, $w - 1$. Given $w$, it shows one key too many
# ([transformers #39408](https://github.com/huggingface/transformers/issues/39408), fixed by
# [#40163](https://github.com/huggingface/transformers/pull/40163)). The file
# [`masking_utils.py`](https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/masking_utils.py)
# of transformers 5.23.0 has both counts. Its causal window is ours, but its window to both sides includes
# the distance $w$. Test that a late row of the mask sums to $w$.
#
# A window moves along with the query, but a chunk stands still. *Predict*: with chunks of 8192, how many
# keys do the queries at 8191 and at 8192 see? And what does padding of two tokens on the left do to
# chunks of 3?

# %% fold="output"
print("keys seen:", chunk_mask([8191, 8192], np.arange(8193), 8192).sum(axis=1).tolist())
places, real = np.arange(6), np.arange(6) - 2  # two tokens of padding on the left, then 0, 1, 2, 3
for name, at_ in (("by place in the array", places), ("by position", real)):
    seen = chunk_mask(at_, at_, 3)[2:, 2:]  # the four real tokens
    print(f"{name:22}", seen.sum(axis=1).tolist())
alone = np.arange(4)
assert np.array_equal(seen, chunk_mask(alone, alone, 3))

# %% [markdown]
# At the first position of a chunk the past is gone. So chunks must begin at the first non-padding token.
# Otherwise a sequence gets one mask by itself and a different one in a padded batch
# ([transformers #40324](https://github.com/huggingface/transformers/pull/40324)). A window without sinks
# is unaffected, because a shift of all positions does not change $i - j$.
#
# ## The receptive field of stacked windows
#
# One layer reaches $w - 1$ tokens back. But its output at $j$ depends on what $j$ saw, and the next layer
# reaches that. So the output of $N$ layers at $i$ can depend on token $j$ if and only if
#
# $$
# 0 \le i - j \le N(w - 1)
# $$


# %%
def last(x, layers, mask):
    for _ in range(layers):
        x = x + attention(x, x, x, mask)[0]
    return x[-1]


def traces(layers, mask):  # which tokens the last output depends on
    changes = [last(x + (at == j), layers, mask) != last(x, layers, mask) for j in p]
    return np.any(changes, axis=1).tolist()


at, p = np.arange(16)[:, None], np.arange(16)
x = 0.3 * np.random.default_rng(6).standard_normal((16, 8))
for layers in (1, 2, 3, 4):
    assert traces(layers, window_mask(p, p, 4)) == (15 - p <= layers * (4 - 1)).tolist()

# %%
for layers in (1, 2, 3, 4):
    back = 15 - p <= layers * (4 - 1)
    with_sinks = traces(layers, window_mask(p, p, 4, sinks=2))
    chunked = traces(layers, chunk_mask(p, p, 4))
    print(f"{layers} layers of window 4: {back.sum() - 1:2} back, of chunks 4: {sum(chunked) - 1}")
    assert with_sinks == (back | (p < 2)).tolist()
    assert chunked == (p >= 12).tolist()

# %% [markdown]
# Sinks do not lengthen the reach: they come first, so they see no later token. Layers of chunks never
# reach beyond their chunk, no matter how many there are. Llama 4 puts a layer that sees everything after
# every three ([chapter 51](51_extrapolation.ipynb)). How much arrives, training decides.
#
# ## Evicting keys from the KV cache
#
# A key that falls out of the window never returns, since $i - j$ only grows. A decoder's KV cache
# ([chapter 63](63_decoding.ipynb)) may drop it, and query $i$ finds
#
# $$
# \min(i + 1,\; w + z) \ \text{ keys}
# $$

# %%
at, w, z = np.arange(50), 3, 2  # z: sinks
whole, _ = attention(q, k, v, window_mask(at, at, w, z))
cache = []
for i in range(50):
    cache = [j for j in cache if j < z or j > i - w] + [i]  # evict, then append
    one, _ = attention(q[..., [i], :], k[..., cache, :], v[..., cache, :])
    assert np.allclose(one, whole[..., [i], :], rtol=0, atol=1e-12)
    assert len(cache) == window_mask([i], at, w, z).sum() == min(i + 1, w + z)

# %% [markdown]
# A masked key has the weight 0, so masking and dropping give the same output. A layer of chunks may empty
# its cache at the end of each chunk. And the blockwise sweep may skip what lies before the window as it
# skips the future. With $n$ blocks on each side, the window reaches $r$ blocks back:
#
# $$
# r = \Big\lceil \frac{w - 1}{\text{block}} \Big\rceil < n, \qquad
# \text{blocks visited} = n(r + 1) - \frac{r(r + 1)}{2}
# $$


# %%
def visited(length, block, w):
    n, r = length // block, -(-(w - 1) // block)
    return n * (r + 1) - r * (r + 1) // 2


x = np.random.default_rng(7).standard_normal((512, 2))
for block, w in ((64, 1), (64, 64), (64, 65), (64, 66), (32, 100)):
    sizes = []
    attention_blockwise(x, x, x, bias=spy, block=block, causal=True, window=w)
    assert len(sizes) == visited(512, block, w)
for w in (128, 4096):
    seen = visited(16_384, 256, w)
    print(f"length 16384, window {w}: {seen} of 4096 blocks, {4096 - seen} skipped")

# %% [markdown]
# For a fixed window the work grows in proportion to the length, not to its square.
#
# ## Attention sinks (StreamingLLM)
#
# Take a model that was trained without a window, keep only the newest keys, and it fails as soon as the
# first tokens are dropped. This is what Xiao et al. (2023) found. They explain it by the softmax: its
# weights must sum to 1, and a head that needs no key puts them on the first tokens, which every query
# sees. They call these tokens **attention sinks**. Their StreamingLLM keeps the first four tokens beside
# the newest, and a text may continue without end. This is not a longer memory: what was dropped is gone.
#
# How many sinks are needed depends on the training. Gemma 3 270M was trained with a first token `<bos>`.
# Its loss with a window of 96 in all layers, as [chapter
# 82](82_real_cache.ipynb#windows-with-and-without-a-sink) measures it:

# %%
from pe_numpy.book.trained import changes

settings = ("", ", 1 sink", ", 4 sinks", ", 4 sinks in slots")
lost = np.array([changes("window_96", f"all layers{sinks}") for sinks in settings])
for sinks, nats in zip(settings, lost, strict=True):
    print(f"window of 96{sinks:18}", *(f"{x:+.2f}" for x in nats), "nats on three texts")
assert (lost[1] < 0.35 * lost[0]).all() and (abs(lost[2:] - lost[1]) < 0.05).all()

# %% [markdown]
# One sink saves nearly as much as four. The last row is StreamingLLM's rule: positions are the **slots**
# of the cache, not positions in the text. Then no distance exceeds the size of the cache. At 388 tokens
# that brings nothing, since the distances are trained ones. It is needed when a text outgrows them.

# %% alt="The cache at tokens 6 to 11, slot by slot. Tokens 0 to 3 stay in the first four slots. From token 7 on the query is in slot 7, and each later step moves three tokens one slot to the left."
steps = [[*range(4), *range(max(4, token - 3), token), token] for token in range(6, 12)]
for step in steps:
    assert np.flatnonzero(window_mask(step[-1:], np.arange(12), 4, sinks=4)).tolist() == step
plots.cache_slots(steps, 4)
plt.show()

# %% [markdown]
# ### Rotated keys in the slots of a cache (second reading)
#
# RoPE ([chapter 40](40_rope_derived.ipynb)) rotates a key by its position, $R_j k$. With RoPE, store the
# keys unrotated and rotate them by their slots $t$. Or rotate what is already rotated by the difference:
#
# $$
# R_{t}\, k = R_{t - j}\, (R_j\, k)
# $$

# %%
from pe_numpy import rope

kept, slots = np.array([0, 1, 2, 3, 6, 7, 8]), np.arange(7)  # after 9 tokens: 4 sinks, 3 recent
key = np.random.default_rng(8).standard_normal((7, 8))
turned_on = rope(rope(key, kept), slots - kept)
assert np.allclose(turned_on, rope(key, slots), rtol=0, atol=1e-12)

# %% [markdown]
# *A common mistake* is made in a cache that keeps *rotated* keys. It must rotate all three back by one at
# each step, the newest among them
# ([transformers #35350](https://github.com/huggingface/transformers/issues/35350)). The authors
# [answer](https://github.com/mit-han-lab/streaming-llm/issues/53) that they keep keys unrotated.
#
# ## Learned attention sinks
#
# If a head only needs a place to put its weight, no token is needed. (In Gemma 3 270M the token's [value
# counts](82_real_cache.ipynb#the-sinks-value-vector-is-the-shortest), too.) Give each head a trained number
# $\alpha_h$, as gpt-oss does. It is an extra logit in the softmax's denominator, without a key and
# without a value. The weights $A_{ij}$ of the keys then sum to less than 1:
#
# $$
# A_{ij} = \frac{e^{s_{ij}}}{e^{\alpha_h} + \sum_{j'} e^{s_{ij'}}}
# $$
#
# In code it is one more column of scores, dropped after the softmax. `attend` takes it as `sink`.

# %%
from pe_numpy import attend

scores, values = np.random.default_rng(9).standard_normal((2, 3, 5, 5))  # (H, L, S), (H, S, K)
alpha = np.array([-2.0, 0.0, 2.0])
seen = causal_mask(range(5), range(5))
output, A = attend(scores, values, seen, sink=alpha)
for h, i, j in np.ndindex(A.shape):
    total = np.exp(alpha[h]) + sum(np.exp(scores[h, i, other]) for other in range(i + 1))
    assert np.isclose(A[h, i, j], np.exp(scores[h, i, j]) / total * (j <= i), rtol=0, atol=1e-12)
small = np.array([[[0, np.log(2)]]])
for name, sink in (("plain", None), ("sink ln 5", [np.log(5)])):
    print(f"{name:10}", attend(small, np.ones((2, 1)), sink=sink)[1].round(6).tolist()[0][0])

# %% [markdown]
# ### A learned sink is a gate on the output (second reading)
#
# All weights of a row shrink by one factor, in this example 0.375. It is the keys' share of the
# sum, $e^{\lambda_i}/(e^{\lambda_i} + e^{\alpha_h})$, with $\lambda_i$ for the log of the keys' sum
# (log-sum-exp). Divide by $e^{\lambda_i}$. With $\bar o_i$ for the output without the sink:
#
# $$
# o_i = \sigma(\lambda_i - \alpha_h)\; \bar o_i, \qquad
# \lambda_i = \log \sum_j e^{s_{ij}}, \qquad \sigma(x) = \frac{1}{1 + e^{-x}}
# $$

# %%
shown = np.where(seen, scores, -np.inf)
lam = np.log(np.exp(shown).sum(axis=-1))  # (H, L)
share = 1 / (1 + np.exp(alpha[:, None] - lam))
plain, _ = attend(scores, values, seen)
assert np.allclose(output, share[..., None] * plain, rtol=0, atol=1e-12)
of_small = attend(small, np.ones((2, 1)), sink=[np.log(5)])[1].sum()
assert np.isclose(of_small, 0.375, rtol=0, atol=1e-12)
up, down = (attend(scores, values, seen, sink=alpha + d)[0] for d in (1e-5, -1e-5))
assert np.allclose((up - down) / 2e-5, -(1 - share)[..., None] * output, rtol=0, atol=1e-9)
none = attend(scores, values, np.zeros((5, 5), bool), sink=alpha)[0]
assert (none == 0).all()  # a row without a key: the sink takes all
assert np.allclose(attend(scores, values, seen, sink=alpha - 1000)[0], plain, rtol=0, atol=1e-12)

# %% [markdown]
# So a sink is a gate on the output, all but closed where $\lambda_i$ is far below the sink. A
# [proposed change](https://github.com/pytorch/torchtitan/pull/2211) calls the sigmoid wrong and divides sums
# instead, but the two are equal. A sink far below all scores changes nothing. A row that
# may attend to nothing gets 0.
# Its derivative in $\alpha_h$ is $-\big(1 - \sigma(\lambda_i - \alpha_h)\big)\, o_i$: the sink learns
# from the output that it takes away.
#
# *A common mistake* is to test a sink at its start value 0. **Predict**: the scores are near 20, in half
# precision. Does a sink of 0 change the output? Does one of 20?

# %% fold="output"
large = (20 + scores).astype(np.float16)
without = attend(large, values.astype(np.float16), seen)[0]
for sink in (0, 20):
    got = attend(large, values.astype(np.float16), seen, sink=np.full(3, sink))[0]
    print(f"sink {sink:2}: largest difference {np.abs(got - without).max():.2f}")
    assert np.array_equal(got, without) == (sink == 0)

# %% [markdown]
# With such scores a kernel that ignores the sink passes a test with 0. In TransformerEngine, code for
# several devices ignored it, behind a check that refused learned sinks, and the gradient was exactly 0
# ([#3551](https://github.com/NVIDIA/TransformerEngine/pull/3551)). Test with a sink as high as the
# scores, here 20.

# %% [markdown]
# ## Native sparse attention (NSA): compressed, selected and near keys (second reading)
#
# In **native sparse attention** (NSA, [Yuan et al. 2025](https://arxiv.org/abs/2502.11089)) a query attends
# three times. **Compressed** keys and values are one per block, read once the whole block is past (equation
# 7). A learned function makes them, here the mean. **Selected** are all keys of the $n$ best blocks, by the
# weights of the compressed keys (8 to 12). The query's own block is always one of them (section 4.1 has the
# first and two near ones). The third branch is a **window**. Here all three use the same keys, in the paper
# their own (3.3.3):

# %%
Q, K, V, at, size, w = q[0, 0], k[0, 0], v[0, 0], np.arange(50), 5, 8  # 10 blocks of 5 tokens
blocks, own, past = np.arange(10), at[:, None] // size, causal_mask(at, at)
short_K, short_V = (x.reshape(10, size, -1).mean(axis=1) for x in (K, V))
compressed, weights = attention(Q, short_K, short_V, (blocks + 1) * size <= at[:, None] + 1)
near, _ = attention(Q, K, V, window_mask(at, at, w))


def select(n):
    best = np.argsort(np.where(blocks == own, -1, -weights), kind="stable")[:, :n]
    chosen = (best[..., None] == own.T).any(axis=1)  # is the key's block one of them?
    return attention(Q, K, V, chosen & past)[0]


# %% [markdown]
# The outputs are added, with gates $g$ from 0 to 1 that are made from the query's token (equation 5):
#
# $$
# o_t = \sum_c g^c_t\; \mathrm{attention}(q_t, K^c_t, V^c_t), \qquad
# c \in \{\text{compressed}, \text{selected}, \text{window}\}
# $$

# %%
gates = np.random.default_rng(12).random((3, 50, 1))
output = (gates * [compressed, select(3), near]).sum(axis=0)
for t in range(size, 50):
    whole = [b for b in blocks if b * size + size - 1 <= t]
    older = sorted(set(whole) - {t // size}, key=lambda b: -Q[t] @ short_K[b])
    chosen = [j for j in range(t + 1) if j // size in (*older[:2], t // size)]
    newest = range(max(0, t - w + 1), t + 1)
    kept = (short_K, short_V, whole), (K, V, chosen), (K, V, newest)
    three = [softmax(Q[t] @ x[keys].T / 8**0.5) @ y[keys] for x, y, keys in kept]
    assert np.allclose(output[t], gates[:, t].T @ three, rtol=0, atol=1e-12)
assert np.allclose(select(10), attention(Q, K, V, past)[0], rtol=0, atol=1e-12)
reads = (65_536 - 32) // 16 + 1, 16 * 64, 512
print("keys read of 65,536:", *reads, "together", sum(reads))

# %% [markdown]
# If $n$ covers all blocks, the selected branch is exact. The output has the sizes of the paper's section 4.1:
# blocks of 32 tokens, one every 16, then 16 selected blocks of 64, and a window of 512.
# [MoBA](https://arxiv.org/abs/2502.13189) (equations 4 to 6) has only selected blocks, ranked by their mean keys.
#
# **What position does a compressed key have?** The paper's function encodes positions *inside* the block. Its
# section 3.3 does not say where RoPE comes, and programs differ.
# [Lai's](https://github.com/XunhaoLai/native-sparse-attention-triton/blob/2d6ffee/native_sparse_attention/module/native_sparse_attention.py)
# rotates a compressed key by its block's first position,
# [lucidrains'](https://github.com/lucidrains/native-sparse-attention-pytorch/blob/83fa271/native_sparse_attention_pytorch/native_sparse_attention.py)
# rotates neither it nor its query, and
# [fla-org's](https://github.com/fla-org/native-sparse-attention/blob/bd67af5/native_sparse_attention/modeling_nsa.py)
# averages rotated keys. If these were all $k$ before RoPE, their mean is $k$ rotated to the middle of the
# block, each pair times a factor $\rho$ of its frequency $\theta$:
#
# $$
# \frac{1}{l} \sum_{j=a}^{a+l-1} R_j\, k = \rho\; R_{a+(l-1)/2}\, k, \qquad
# \rho = \frac{\sin(l\theta/2)}{l \sin(\theta/2)}
# $$

# %%
from pe_numpy import rope_frequencies

theta, one, l, a = rope_frequencies(128), rng.standard_normal((1, 128)), 32, 48
mean = rope(np.repeat(one, l, axis=0), a + np.arange(l)).mean(axis=0)
rho = np.sin(l * theta / 2) / (l * np.sin(theta / 2))
middle = rope(one, [a + (l - 1) / 2])[0]
assert np.allclose(mean, np.repeat(rho, 2) * middle, rtol=0, atol=1e-12)
print(f"of 64 pairs {(rho > 0.9).sum()} keep 90%, {(abs(rho) < 0.1).sum()} less than 10%")

# %% [markdown]
# ## In short
#
# - **How much memory do the scores take?** $L \cdot S$ numbers per head if all are stored, which is
#   268,435,456 at a length of 16,384. In blocks of 256 queries and keys, 65,536 at any length.
#   [Memory](#memory-and-skipped-blocks).
# - **Does a window of $w$ count the query?** Yes: True, may attend, for $0 \le i - j < w$. FlashAttention wants
#   `window_size=(w - 1, 0)`. $N$ layers reach $N(w-1)$ tokens back.
#   [Sliding window](#sliding-window-attention-off-by-one),
#   [receptive field](#the-receptive-field-of-stacked-windows).
# - **What is an attention sink?** Either a first token that stays visible beside a window (StreamingLLM
#   keeps the first four), or a learned score $\alpha_h$ of each head with no key and the value 0.
#   [StreamingLLM](#attention-sinks-streamingllm), [learned sinks](#learned-attention-sinks).
# - **How are the softmaxes of two blocks merged?** Each has its largest score $m$ and two sums relative to
#   it. Take the larger $m'$ of both, multiply each block's sums by $e^{m - m'}$, and add.
#   [Merging](#merging-partial-softmaxes), [online softmax](#online-softmax-one-pass-over-the-keys).
# - **Is this FlashAttention?** Yes, it is the same algorithm. A GPU kernel also keeps each block in fast
#   memory. In exact arithmetic the result is the softmax over all keys.
#   [Blockwise attention](#blockwise-attention-the-algorithm-of-flashattention), [in practice](#in-practice).
# - **Does it save work?** Only where a mask lets whole blocks be skipped. At a length of 16,384 a causal
#   mask skips 2,016 of 4,096 blocks. A causal mask with a window of 128 skips 3,969.
#   [KV cache and blocks](#evicting-keys-from-the-kv-cache).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 12` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 12_attention_blocks.py` checks yours.
#
# ### Exercise 1: Two machines
#
# Machine $a$ has the first half of the keys and values, machine $b$ the rest. Each returns its attention
# output and, per query, $\lambda = \log \sum_j e^{s_j}$ over its keys. Combine both into the exact
# result, without any other information.
#
# <details><summary>Hint 1</summary>
#
# The share of machine $a$ in the whole sum is $e^{\lambda_a} / (e^{\lambda_a} + e^{\lambda_b})$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# That is a softmax over two numbers. Use it as weights for the two outputs.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# from pe_numpy import log_softmax
# Q, K, V = q[0, 0], k[0, 0], v[0, 0]
# def on_machine(q, k, v):
#     s = q @ k.T / np.sqrt(q.shape[1])
#     return softmax(s) @ v, s[:, 0] - log_softmax(s)[:, 0]
# out_a, lam_a = on_machine(Q, K[:25], V[:25])
# out_b, lam_b = on_machine(Q, K[25:], V[25:])
# share = softmax(np.stack([lam_a, lam_b], axis=1))
# together = share[:, :1] * out_a + share[:, 1:] * out_b
# assert np.allclose(together, attention(Q, K, V)[0], rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 2: How often is the sum rescaled?
#
# For a thousand random scores, how many times does a new maximum arrive? Guess, then average over many
# rows. What happens if the scores are sorted?
#
# <details><summary>Hint 1</summary>
#
# The score number $j$, counted from 1, is the largest so far with probability $1/j$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Add these probabilities. For sorted scores look at both directions.
#
# </details>
#
# <details><summary>Solution</summary>
#
# About seven and a half times: $\sum_j 1/j$, which grows like a logarithm. Rising scores rescale at every
# key, falling scores only at the first.
#
# ```python
# rows = np.random.default_rng(0).standard_normal((500, 1000))
# def maxima(s):
#     top = np.maximum.accumulate(s, axis=-1)
#     return 1 + (np.diff(top, axis=-1) > 0).sum(axis=-1)
# expected = (1 / np.arange(1, 1001)).sum()
# assert abs(expected - 7.5) < 0.05 and abs(maxima(rows).mean() - expected) < 0.5
# assert maxima(np.sort(rows[0])) == 1000 and maxima(np.sort(rows[0])[::-1]) == 1
# ```
#
# </details>
#
# ### Exercise 3: A learned sink in blocks
#
# Compute attention with a learned sink by `summary` and `merge`, for one query with the scores `s_row`
# and the values `v_row`. Never put the sink beside the scores.
#
# <details><summary>Hint 1</summary>
#
# A sink is a block of one key.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Its score is $\alpha$ and its value 0. What is its triple $(m, \ell, o)$?
#
# </details>
#
# <details><summary>Solution</summary>
#
# Start the sweep with $m = \alpha$, $\ell = 1$, $o = 0$ instead of $-\infty, 0, 0$.
#
# ```python
# for sink in (-3.0, 1.0, 8.0):
#     m, ell, o = merge((sink, 1.0, 0.0), summary(s_row, v_row))
#     expected = attend(s_row[None, None], v_row[:, None], sink=[sink])[0]
#     assert np.isclose(o / ell, expected.item(), rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 4: Chunks instead of a window
#
# Far into a text, a query with a window of 64 sees 64 keys. How long must chunks be for the same mean?
# What differs nevertheless?
#
# <details><summary>Hint 1</summary>
#
# Within a chunk of $c$ the queries see 1, 2, ..., $c$ keys.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The mean is $(c + 1)/2$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# $c = 2w - 1 = 127$. But one query of each chunk sees only itself, and no layer of such chunks passes
# anything across their borders.
#
# ```python
# far = np.arange(127 * 3, 127 * 6)  # three whole chunks
# keys = np.arange(127 * 6)
# by_chunk = chunk_mask(far, keys, 127).sum(axis=1)
# assert by_chunk.mean() == 64 and (window_mask(far, keys, 64).sum(axis=1) == 64).all()
# assert by_chunk.min() == 1 and by_chunk.max() == 127
# ```
#
# </details>
#
# ## In practice
#
# - **FlashAttention** and other fused GPU kernels keep blocks in a small fast memory. For the gradient they
#   store $m$ and $\ell$ of each row, or $m + \log \ell$, and compute the scores of each block again.
# - **No weights** are returned, by this function or a fused kernel. To look at attention maps, use standard
#   attention.
# - **Which models leave out what**, from their code:
#
# | mask | used by | the cache needs | trained | cost | verdict |
# |---|---|---|---|---|---|
# | window | [gpt-oss](https://github.com/openai/gpt-oss/tree/7b58334), 128, in every other layer | the last $w$ keys | nothing | the blocks of a band | for the near layers of a long-text model |
# | window and 4 sinks | [StreamingLLM](https://github.com/mit-han-lab/streaming-llm/tree/2e50426) | $w + 4$ keys, unrotated | nothing | the same, and the first blocks | streams without end; remembers no more |
# | chunks of 8192 | [Llama 4](https://github.com/meta-llama/llama-models/tree/a9c89c4), in 3 of 4 layers | the chunk | nothing | the blocks of the chunk | cheap; nothing crosses a border |
# | learned sink | gpt-oss; Granite-SWA (`models/granite_swa`, as a sigmoid) and Inkling 2 (computed from the token) in transformers 5.23.0 | nothing more | one number per head (Inkling 2: a matrix) | one more score | beside windows |
#
# ## Further reading
#
# - M. Milakov and N. Gimelshein, "Online normalizer calculation for softmax", 2018,
#   [arXiv:1805.02867](https://arxiv.org/abs/1805.02867). Algorithm 3 is the running maximum and the
#   rescaled sum.
# - M. Rabe and C. Staats, "Self-attention does not need O(n²) memory", 2021,
#   [arXiv:2112.05682](https://arxiv.org/abs/2112.05682).
# - I. Beltagy and others, "Longformer", 2020, [arXiv:2004.05150](https://arxiv.org/abs/2004.05150).
# - G. Xiao and others, "Efficient streaming language models with attention sinks", 2023,
#   [arXiv:2309.17453](https://arxiv.org/abs/2309.17453). Section 3.2 has the slots.
# - T. Dao and others, "FlashAttention", 2022, [arXiv:2205.14135](https://arxiv.org/abs/2205.14135).
