# %% [markdown]
# # 52. Training-free context extension: ReRoPE, Self-Extend, dual chunk attention
#
# *How can a model with RoPE read past its training length if no pair of tokens may be further apart than in training?*
#
# 30 minutes. Needs [12 FlashAttention, sliding windows and attention sinks](12_attention_blocks.ipynb), [41 RoPE in code: signs, layouts, caches, precision](41_rope_computed.ipynb), [51 Length extrapolation: why models fail past their training length](51_extrapolation.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A model with rotary position embedding has learned only the distances that
# occur in its training texts. In a longer text two words can be further apart, and nothing has taught
# the model what to do then. Four published methods solve this without training: they replace a large
# distance by one that the model has seen. You compute each of them exactly, and find out what it costs,
# what it must store of earlier words (the KV cache), and which words it can no longer tell apart. At
# the end you can choose among them.

# %% fold="input" alt="The distance that four schemes put into the score, over the true distance from query 95. RoPE leaves the band of trained distances at 32. ReRoPE is flat from 16 on, leaky ReRoPE rises slowly, Self-Extend rises in steps, and dual chunks form a saw-tooth."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import Context, chunk_distance, relative_distance, rerope_distance, rope
from pe_numpy import rope_frequencies, rotary_distance_scores, self_extend_distance
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import new_places as plots
from pe_numpy.transformer.encodings import DualChunk, ReRope, SelfExtend, Streaming

i, j = np.array([95]), np.arange(95, -1, -1)
seen = {"ReRoPE": rerope_distance(i[0] - j, 16), "leaky": rerope_distance(i[0] - j, 16, 8)}
seen |= {"Self-Extend": self_extend_distance(i, j, 16, 8)[0]}
seen |= {"dual chunks": chunk_distance(i, j, 24, 4)[0]}
plots.new_places_curves(i[0] - j, seen, trained=32)
plt.show()

# %% [markdown]
# ## Distances that RoPE was never trained on
#
# A model with RoPE that was trained on texts of $L_0$ tokens has seen the distances $0$ to $L_0-1$.
# In a longer text there are larger ones, and nothing has ever corrected its scores there
# ([chapter 51](51_extrapolation.ipynb)). [Chapter 50](50_scaling.ipynb) slows the rotation of the
# pairs of components, all of them or some. Here the frequencies do not change but the *distance*
# does. The true distance of a query at position $i$ and a key at position $j$ is $\delta=i-j$. Put an
# **effective distance** $f(i,j)$ that stays below $L_0$ into the score instead. The figure above
# shows it for the query at position 95. With pair $m$ of query and key as complex numbers:
#
# $$s_{ij}=\frac1{\sqrt K}\,\mathrm{Re}\sum_m q_{im}\,\overline{k_{jm}}\;e^{\,\mathrm i f(i,j)\,\theta_m}$$

# %%
L, K = 14, 8
rng = np.random.default_rng(0)
q, k = rng.standard_normal((2, L, K))
theta, p = rope_frequencies(K), np.arange(L)
delta = relative_distance(p, p)
f = 7 * rng.random((L, L))  # any numbers
got = rotary_distance_scores(q, k, f)
q_c, k_c = q.view(complex), k.view(complex)  # interleaved pairs
for a, b in np.ndindex(L, L):
    turned = q_c[a] * np.conj(k_c[b]) * np.exp(1j * f[a, b] * theta)
    assert np.isclose(got[a, b], turned.sum().real / K**0.5, rtol=0, atol=1e-12)
plain = rope(q, p) @ rope(k, p).T / K**0.5
assert np.allclose(rotary_distance_scores(q, k, delta), plain, rtol=0, atol=1e-12)

# %% [markdown]
# With $f=\delta$ this score is RoPE's. The function goes through the pairs of components one after another. No
# array is larger than the scores, but it takes three times as many products as $QK^\top$. All that
# follows is compared with it.

# %%
show_source(rotary_distance_scores)

# %% [markdown]
# ## ReRoPE: distances stop at a window
#
# The simplest idea is Su's **ReRoPE** (2023): distances below a window $w$ do not change, and all
# others become $w$.
#
# $$f = \min(\delta, w)$$
#
# The model never sees a distance beyond $w$, no matter how long the text is. But then all distant
# keys are at the same distance. **Leaky ReRoPE** lets the distance continue, $s$ times as slowly:
#
# $$f = \begin{cases} \delta & \delta < w\\ w + (\delta-w)/s & \delta\ge w\end{cases}$$

# %%
show_source(rerope_distance)
capped, leaky = rerope_distance(np.arange(10), 4), rerope_distance(np.arange(10), 4, 3)
for d in np.arange(0, 10, 0.5):
    assert rerope_distance(d, 4) == min(d, 4)
    slow = d if d < 4 else 4 + (d - 4) / 3
    assert np.isclose(rerope_distance(d, 4, 3), slow, rtol=0, atol=1e-12)
print(capped.tolist())
print(leaky.round(3).tolist())
assert leaky.round(3).tolist() == [0, 1, 2, 3, 4, 4.333, 4.667, 5, 5.333, 5.667]

# %% [markdown]
# With $w\ge L$, or $s=1$, it is RoPE. Both depend only on $\delta$. For a key in the future the
# function gives $-f(-\delta)$; the sources have causal masks and do not need it.
#
# *A common mistake* is to divide the whole distance, $\delta/s$ from $w$ on. **Predict**, for $w=4$
# and $s=3$: which token is then nearer to the query, the second before it or the fourth?

# %% fold="output"
whole = np.where(np.arange(10) < 4, np.arange(10), np.arange(10) / 3)
print(whole.round(3).tolist())
assert whole[4] < whole[2] < whole[3] and whole[9] == whole[3]
assert (np.diff(leaky) > 0).all() and (np.diff(whole) < 0).any()

# %% [markdown]
# The fourth token is nearer: its effective distance is $4/3$, between the first and the second token.
#
# ## How to compute it: one rotation per region
#
# RoPE rotates each query and each key once, and the product of two rotated vectors depends on the
# difference of their rotations. $\min(\delta,w)$ is not a difference of a number for $i$ and a number
# for $j$. But in each of its two regions it is:
#
# $$\delta<w:\;\; i-j,\qquad\qquad \delta\ge w:\;\;\Big(\frac is+w-\frac ws\Big)-\frac js$$
#
# For ReRoPE $s$ is infinite: the query is rotated to $w$, the key to 0. So compute two matrices of
# scores and choose.

# %%
w, s = 6, 3
near = rope(q, p) @ rope(k, p).T / K**0.5
far = rope(q, p / s + w - w / s) @ rope(k, p / s).T / K**0.5
expected = rotary_distance_scores(q, k, rerope_distance(delta, w, s))
past = delta >= 0
assert np.allclose(np.where(delta < w, near, far)[past], expected[past], rtol=0, atol=1e-12)
stop = np.where(delta < w, near, rope(q, np.full(L, w)) @ k.T / K**0.5)
expected = rotary_distance_scores(q, k, rerope_distance(delta, w))
assert np.allclose(stop[past], expected[past], rtol=0, atol=1e-12)
unshifted = rope(q, p / s) @ rope(k, p / s).T / K**0.5  # delta/s again
assert np.allclose(unshifted, rotary_distance_scores(q, k, delta / s), rtol=0, atol=1e-12)

# %% [markdown]
# This is exact, and takes two products instead of one. *Without the shift* $w-w/s$ the distance is
# $\delta/s$, the mistake from above. In the package each scheme is a few lines that name its *passes*: positions for
# queries, positions for keys, and the pairs that they are for. One loop serves them all, and leaves
# out a pass that no allowed pair needs. `put_products` is
# `np.where(where, queries @ keys.T, scores)`, 64 queries at a time and only for keys that one of them
# needs:

# %% fold="output"
show_source(ReRope.passes, ReRope.scores)

# %%
heads = q[None, None], k[None, None]
for encoding, distance in (
    (ReRope(4), rerope_distance(delta, 4)),
    (ReRope(4, 3), rerope_distance(delta, 4, 3)),
    (SelfExtend(4, 2), self_extend_distance(p, p, 4, 2)),
    (DualChunk(6, 2), chunk_distance(p, p, 6, 2)),
):
    made = encoding.scores({}, *heads, Context(p))[0, 0]
    assert np.allclose(made, rotary_distance_scores(q, k, distance), rtol=0, atol=1e-12)

# %% [markdown]
# The KV cache should store *unrotated* keys: a key that is near now and distant later is rotated in
# two ways. For a single new query there is a shorter way, which Su's code takes. Leave the query, and
# rotate each key back by its effective distance.
#
# $$s_j=q\cdot R_{-f_j}\,k_j\,/\sqrt K$$

# %%
newest = rerope_distance(L - 1 - p, w)  # of the last query
one_turn = rope(k, -newest) @ q[-1] / K**0.5
assert np.allclose(one_turn, expected[-1], rtol=0, atol=1e-12)
wrong_way = rope(k, newest) @ q[-1] / K**0.5  # keys rotated further: the other sign
mirrored = rotary_distance_scores(q[-1:], k, -newest[None])[0]
assert np.allclose(wrong_way, mirrored, rtol=0, atol=1e-12)
assert not np.allclose(wrong_way, one_turn, rtol=0, atol=1e-3)

# %% [markdown]
# Su's code contains one more factor. It multiplies each query by $\max(1, \ln(i+1)/\ln L_0)$, because
# attention spreads over more and more keys. That is `log_n_scale` of
# [chapter 51](51_extrapolation.ipynb).
#
# ## Self-Extend: distances counted in groups
#
# **Self-Extend** (Jin et al. 2024) keeps the window and beyond it counts in groups: $g$ neighbouring
# positions get one number, $\lfloor i/g\rfloor$. At the window's end the true distance is $w$ and the
# distance in groups is about $w/g$. The query therefore moves on by the difference:
#
# $$f = \begin{cases} i-j & i-j < w\\ \lfloor i/g\rfloor-\lfloor j/g\rfloor+w-w/g & i-j\ge w\end{cases}$$

# %%
show_source(self_extend_distance)
for w, g in ((4, 2), (5, 3)):
    got = self_extend_distance(p, p, w, g)
    for i, j in zip(*np.nonzero(past), strict=True):
        grouped = i // g - j // g + w - w / g
        assert np.isclose(got[i, j], i - j if i - j < w else grouped, rtol=0, atol=1e-12)
extend = self_extend_distance(p, p, 4, 2).astype(int)
print("query 9:", extend[9, :10].tolist(), " query 8:", extend[8, :9].tolist())
assert extend[9, :10].tolist() == [6, 6, 5, 5, 4, 4, 3, 2, 1, 0]
assert extend[8, :9].tolist() == [6, 6, 5, 5, 4, 3, 2, 1, 0]

# %% [markdown]
# This is again a difference in each region. Query 8 and query 9 are in one group, so a distant key
# has the same distance from both. The largest distance, at $j=0$, limits the length of a text. To
# stay below $L_0$, a text may have $N$ tokens:
#
# $$N \le (L_0-w)\,g+w$$

# %%
L_0, w, g = 4096, 1024, 8  # Llama 2, and the authors' settings
N = (L_0 - w) * g + w
for last, fits in ((N - 1, True), (N, False)):
    assert (self_extend_distance([last], [0], w, g)[0, 0] < L_0) == fits
print(
    f"{N} tokens; the largest distance of 65536: {self_extend_distance([65535], [0], w, g)[0, 0]:.0f}"
)
assert N == 25_600 and self_extend_distance([65535], [0], w, g)[0, 0] == 9087

# %% [markdown]
# The bound is the authors'. Their
# [rule of thumb](https://github.com/datamllab/LongLM/blob/cdbbb06/README.md) uses half to two thirds
# of $L_0$ instead, since large distances are little trained. For leaky ReRoPE the bound has $s$
# instead of $g$.
#
# ### A common mistake: two roundings in Self-Extend (second reading)
#
# The paper's pseudo-code has $\lfloor w/g\rfloor$, the released code $w/g$. In
# [one file](https://github.com/datamllab/LongLM/blob/cdbbb06/self_extend_patch/Llama.py) the path
# that reads a prompt divides, while one that decodes rounds. **Predict**: for which $w$ and $g$ does
# that matter?

# %% fold="output"
for w, g in ((1024, 8), (5, 3)):
    print(f"w {w}, g {g}: shift {w - w / g:.3f} and {w - w // g}")
reading = self_extend_distance([11], np.arange(12), 5, 3)[0]
decoding = reading + np.where(11 - np.arange(12) < 5, 0, 5 / 3 - 5 // 3)
print("reading:", reading.round(3).tolist(), "\nwriting:", decoding.round(3).tolist())
assert reading.round(3).tolist() == [6.333] * 3 + [5.333] * 3 + [4.333, 4, 3, 2, 1, 0]
assert decoding.round(9).tolist() == [7, 7, 7, 6, 6, 6, 5, 4, 3, 2, 1, 0]

# %% [markdown]
# Where $g$ divides $w$, the two agree. Otherwise a distant key has one distance while the model reads
# a prompt (prefill) and another while it generates. In both, the step from the last near key to the
# first distant one is not always 1:

# %% alt="Self-Extend's distance around the end of a window of 6, with groups of 4, for queries 20 to 23. There is one line up to distance 5. From 6 on, steps begin at a different place for each query. The step at the dashed line is 1.5 or 0.5."
rows = {f"query {a}": self_extend_distance([a], a - np.arange(19), 6, 4)[0] for a in range(20, 24)}
steps = [float(row[6] - row[5]) for row in rows.values()]
print("steps at the end of the window:", steps)
assert steps == [1.5, 1.5, 0.5, 0.5]
plots.new_places_edge(np.arange(19), rows, 6)
plt.show()

# %% [markdown]
# ## Dual chunk attention: positions within chunks
#
# **Dual chunk attention** (An et al. 2024) cuts the text into chunks of $c=\text{size}-\text{local}$
# tokens (two settings). Each key keeps its position in its chunk, $j\bmod c$, for every query. The
# query has three positions $a$, for three kinds of keys:
#
# $$f = a - j\bmod c,\qquad a=\begin{cases}i\bmod c&\text{own chunk}\\
# \min(i\bmod c+c,\ \text{size})&\text{the one before}\\ \min(2c-1,\ \text{size})&\text{any earlier}\end{cases}$$

# %%
show_source(chunk_distance)
for size, local in ((7, 4), (6, 2)):
    c = size - local
    chunks = chunk_distance(p, p, size, local).astype(int)
    for i, j in zip(*np.nonzero(past), strict=True):
        a = {0: i % c, 1: min(i % c + c, size)}.get(i // c - j // c, min(2 * c - 1, size))
        assert chunks[i, j] == a - j % c
for query in (11, 13):
    print(f"query {query}:", chunks[query, : query + 1].tolist())
assert chunks[11, :12].tolist() == [6, 5, 4, 3, 6, 5, 4, 3, 3, 2, 1, 0]
assert chunks[13].tolist() == [6, 5, 4, 3, 6, 5, 4, 3, 5, 4, 3, 2, 1, 0]

# %% [markdown]
# Keys may be cached *rotated*, by $j\bmod c$; a query is rotated three times. The case of the
# previous chunk exists for neighbours on both sides of a border: if local is at most $c$, all
# distances up to *local* are exact. No distance exceeds *size*, which the authors set to three
# quarters of $L_0$, with an eighth for local.

# %%
for size, local in ((6, 2), (12, 5), (3072, 512)):
    c = size - local
    n = np.arange(max(c - 200, 0), c + 200)  # on both sides of a border
    f, true = chunk_distance(n, n, size, local), relative_distance(n, n)
    near = (true >= 0) & (true <= local)
    assert (f[near] == true[near]).all() and f.max() <= size
everything = chunk_distance([65535], np.arange(65536), 3072, 512)
print("largest distance of 65536 tokens:", int(everything.max()))
assert everything.max() == 3072

# %% alt="Effective distances of 32 queries and keys in four panels. ReRoPE has one colour below a band along the diagonal, leaky ReRoPE a slow gradient, Self-Extend a staircase of blocks, and dual chunks triangles on the diagonal and stripes that repeat."
n = np.arange(32)
true = relative_distance(n, n)
maps = {"ReRoPE, $w=8$": rerope_distance(true, 8), "leaky, $s=4$": rerope_distance(true, 8, 4)}
maps |= {"Self-Extend, $g=4$": self_extend_distance(n, n, 8, 4)}
maps |= {"dual chunks, 12, 4": chunk_distance(n, n, 12, 4)}
plots.new_places_maps(maps)
plt.show()

# %% [markdown]
# ## What each scheme cannot distinguish
#
# **Predict**: from query 31, which schemes of the last figure put keys 1 and 2 at one distance? And
# keys 1 and 9? Which give the same distances when the whole text moves one position later?

# %% fold="output"
rules = {"RoPE": lambda i, j: relative_distance(i, j) + 0.0}
rules |= {"ReRoPE": lambda i, j: rerope_distance(relative_distance(i, j), 8)}
rules |= {"leaky": lambda i, j: rerope_distance(relative_distance(i, j), 8, 4)}
rules |= {"Self-Extend": lambda i, j: self_extend_distance(i, j, 8, 4)}
rules |= {"dual chunks": lambda i, j: chunk_distance(i, j, 12, 4)}
found = {}
for name, rule in rules.items():
    row, whole = rule(np.array([31]), n)[0], rule(n, n)
    swaps = row[1] == row[2], row[1] == row[9]
    period = next(t for t in range(1, 33) if np.array_equal(rule(n + t, n + t), whole))
    found[name] = *map(bool, swaps), period
    print(f"{name:12} 1 like 2: {swaps[0]!s:5}  1 like 9: {swaps[1]!s:5}  shifts by {period}")
assert [v[2] for v in found.values()] == [1, 1, 1, 4, 8]
alike = [name for name, v in found.items() if v[0]], [name for name, v in found.items() if v[1]]
assert alike == (["ReRoPE", "Self-Extend"], ["ReRoPE", "dual chunks"])

# %% [markdown]
# ReRoPE cannot distinguish any two distant keys by position. Self-Extend cannot distinguish the keys
# of a group, and dual chunks cannot distinguish keys of two distant chunks at the same position in
# the chunk. And only a shift by a multiple of $g$, or of $c$, leaves Self-Extend or dual chunks
# unchanged: a system prompt of another length moves the borders for all that follows. That is why
# padding must be left out of positions.
#
# Does a trained model tolerate such distances? In Gemma 3 270M the windows of the local layers were
# widened from 512 to 1150 tokens without training ([chapter
# 81](81_real_rope.ipynb#all-scalings-on-the-same-window)):

# %%
from pe_numpy.book.trained import changes

for name in ("nothing else", "YaRN", "ReRoPE 256", "Self-Extend 256, groups of 4"):
    nats = changes("window", f"1,150, {name}")
    print(f"{name:29}", *(f"{x:+.2f}" for x in nats), "nats on three texts")
    assert (max(nats) < 0.06) == (name.split()[0] in ("ReRoPE", "Self-Extend"))

# %% [markdown]
# It does. On two texts both cost less than YaRN, and on the third the three are within the noise. It
# is one model.
#
# ## StreamingLLM: cache slots instead of positions
#
# A text without end needs a cache of limited size. **StreamingLLM** (Xiao et al. 2023) keeps the
# first $z$ tokens, the **attention sinks**, and the newest $w$ (including the query's own). It counts
# slots of the cache instead of positions
# ([chapter 12](12_attention_blocks.ipynb#attention-sinks-streamingllm); [chapter 63](63_decoding.ipynb)
# compares both). The window moves as a whole, so its distances do not change. The query of a full
# cache is in the last slot, $z+w-1$, and a sink is in slot $j$. So this is also an effective
# distance:
#
# $$f=\begin{cases}\min(i,\,z+w-1)-j & j<z\\ i-j & j\ge z\end{cases}$$
#
# A cache that really drops tokens, slot by slot, gives the same distances:

# %%
from pe_numpy import streaming_distance, window_mask

show_source(streaming_distance)
z, w, cache = 2, 5, []
streamed = streaming_distance(p, p, w, z).astype(int)
for i in p.tolist():
    cache.append(i)
    if len(cache) > z + w:
        del cache[z]  # the oldest that is no sink
    slots = np.arange(len(cache))
    assert streamed[i, cache].tolist() == (slots[-1] - slots).tolist()
    if i == 9:
        print(f"token 9 sees {cache} at distances {streamed[i, cache].tolist()}")
assert streamed[9, [0, 1, 5, 6, 7, 8]].tolist() == [6, 5, 4, 3, 2, 1]

# %% [markdown]
# The released code keeps unrotated keys and rotates all of them at each step by their slots. The
# formula shows another way: in both regions the key is at its own $j$, and *the query* has two
# positions. So keys may be cached rotated, once and for all, and with the mask of chapter 12 a whole
# prompt is read in one call. A model does so with `Model(H, Streaming(w, z), mask=Window(w, z))`:

# %%
turned = rope(k, p)  # as RoPE's cache has them
query = {"window": rope(q, p), "sinks": rope(q, np.minimum(p, z + w - 1))}
scores = np.where(p < z, query["sinks"] @ turned.T, query["window"] @ turned.T) / K**0.5
for i in p.tolist():
    kept = np.flatnonzero(window_mask([i], p, w, z)[0])
    slots = np.arange(len(kept))
    by_slot = rope(k[kept], slots) @ rope(q[[i]], slots[-1:])[0] / K**0.5
    assert np.allclose(scores[i, kept], by_slot, rtol=0, atol=1e-12)
late = rope(turned[kept], slots - kept)  # rotated back by the change of slot: the same keys
assert np.allclose(late, rope(k[kept], slots), rtol=0, atol=1e-12)
model = Streaming(window=w, sinks=z).scores({}, q[None, None], k[None, None], Context(p))[0, 0]
seen = window_mask(p, p, w, z)
assert np.allclose(model[seen], scores[seen], rtol=0, atol=1e-12)

# %% [markdown]
# *A common mistake* is a cache of rotated keys whose newest key is never moved to its slot
# ([transformers #35350](https://github.com/huggingface/transformers/issues/35350)).
#
# **Predict**: which of the five rules above keep their scores for the newest keys, if slots replace
# positions? Does one also keep the scores of the sinks?

# %% fold="output"
kept, slots = np.r_[0:2, 95:104], np.arange(11)  # the query: token 104, in slot 11
for name, rule in rules.items():
    by_time, by_slot = rule(np.array([104]), kept)[0], rule(np.array([11]), slots)[0]
    same = by_time == by_slot
    print(f"{name:12} newest: {bool(same[2:].all())!s:5}  sinks: {bool(same[:2].all())}")
    assert same[2:].all() == (name in ("RoPE", "ReRoPE", "leaky"))
    assert same[:2].all() == (name == "ReRoPE")

# %% [markdown]
# The rules that depend only on $\delta$ keep the scores of the newest keys. With ReRoPE the sinks do not change either,
# as long as its window is at most as wide as the cache's, because they are at distance $w$ in any
# case. Self-Extend and dual chunks see slots as a shift.
#
# The opposite trick belongs to training: draw positions at random from a larger range, so that the
# model has met large distances before they come (`random_positions` in
# [chapter 26](26_counting.ipynb)).

# %% [markdown]
# ## In short
#
# - **What replaces the distance $i-j$?** An effective distance. ReRoPE stops at $w$, leaky ReRoPE
#   continues $s$ times as slowly. Self-Extend counts groups, dual chunks count within chunks,
#   streaming counts cache slots. [Effective distance](#distances-that-rope-was-never-trained-on)
# - **Can it be computed, if it is not a difference of positions?** Yes. Within each region of pairs
#   it *is* a difference, so rotate once per region and choose. That takes two products, or three for
#   dual chunks. [One rotation per region](#how-to-compute-it-one-rotation-per-region)
# - **Must the cache store unrotated keys?** Yes for ReRoPE, leaky or not, and Self-Extend. No for
#   [dual chunks](#dual-chunk-attention-positions-within-chunks), which rotate by $j \bmod c$, and
#   [streaming](#streamingllm-cache-slots-instead-of-positions): there the query is rotated in three
#   or two ways.
# - **Does Self-Extend use $w/g$ or $\lfloor w/g\rfloor$?** The released code divides. The paper's
#   pseudo-code and one path of that code round. Take a $g$ that divides $w$.
#   [Two roundings](#a-common-mistake-two-roundings-in-self-extend-second-reading)
# - **How far does it reach without training?** Self-Extend stays within $L_0$ distances up to
#   $(L_0-w)\,g+w$ tokens, leaky ReRoPE with $s$ for $g$. ReRoPE, dual chunks and streaming work at
#   any length. Gemma 3 270M [tolerates](#what-each-scheme-cannot-distinguish) two of them.
#   [Self-Extend](#self-extend-distances-counted-in-groups)
# - **What is lost?** Among distant keys, ReRoPE loses order, Self-Extend order within a group, dual
#   chunks the chunk. Streaming loses what left the cache. Shifting a text changes Self-Extend and
#   dual chunks. [Not distinguished](#what-each-scheme-cannot-distinguish)

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 52` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 52_new_places.py` checks yours.
#
# ### Exercise 1: Count the rotations of keys
#
# ReRoPE's far pass needs no rotation of the keys. How many rotations of keys do leaky ReRoPE's two
# passes need in all, as $N$ tokens are generated with unrotated keys in the cache? And with a query
# that is not rotated (rotate the keys back by $f$)?
#
# <details><summary>Hint 1</summary>
#
# Count for one new token with $n$ keys in the cache.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Each key is rotated twice in two passes, and once if the query is not rotated.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Token $n$ meets $n$ keys, which takes $2n$ rotations, or $n$. Over $N$ tokens this is $N(N+1)$, or
# half of it. The code counts the rotations:
#
# ```python
# N, counts = L, {"two passes": 0, "still": 0}
#
#
# def counted(name, x, places):
#     counts[name] += len(x)
#     return rope(x, places)
#
#
# for t in range(N):  # the query is token t, with t + 1 keys in the cache
#     one, raw, at = q[[t]], k[: t + 1], np.arange(t + 1)
#     near_t = rope(one, [t]) @ counted("two passes", raw, at).T
#     far_t = rope(one, [t / 3 + 6 - 6 / 3]) @ counted("two passes", raw, at / 3).T
#     still = one @ counted("still", raw, -rerope_distance(t - at, 6, 3)).T
#     assert np.allclose(np.where(t - at < 6, near_t, far_t), still, rtol=0, atol=1e-12)
# assert counts == {"two passes": N * (N + 1), "still": N * (N + 1) // 2}
# ```
#
# </details>
#
# ### Exercise 2: Choose a group size for Self-Extend
#
# A model with $L_0=4096$ is to read 65536 tokens with $w=1024$. What is the least $g$ that divides
# $w$ and suffices? What is it if distances should stay below two thirds of $L_0$?
#
# <details><summary>Hint 1</summary>
#
# Solve $(L_0-w)\,g+w\ge N$ for $g$; what divides 1024 is a power of two.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Replace $L_0$ by $2L_0/3$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# for limit, least in ((4096, 32), (2 * 4096 / 3, 64)):
#     bound = (65536 - 1024) / (limit - 1024)
#     g = next(2**e for e in range(11) if 2**e >= bound)
#     farthest = [self_extend_distance([65535], [0], 1024, c)[0, 0] for c in (g // 2, g)]
#     assert g == least and farthest[0] >= limit > farthest[1]
# ```
#
# </details>
#
# ### Exercise 3: ALiBi with ReRoPE's distance
#
# An effective distance may be used in any scheme that depends on a distance. Show that ALiBi with
# ReRoPE's distance gives all distant keys the same penalty.
#
# <details><summary>Hint 1</summary>
#
# The bias is $-f/2$ for a slope of one half.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Use `np.unique` of the distant entries.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# bias = -0.5 * rerope_distance(relative_distance(n, n), 8)
# assert np.unique(bias[relative_distance(n, n) >= 8]).tolist() == [-4.0]
# ```
#
# </details>
#
# ## In practice
#
# | scheme | code, its defaults | cache | what is trained | cost | verdict |
# |---|---|---|---|---|---|
# | ReRoPE | [bojone/rerope](https://github.com/bojone/rerope/tree/acfe788), $w$ 512 | unrotated keys | nothing | two products | any length; the order of distant keys is lost |
# | leaky ReRoPE | the same, $s$ 16 | unrotated keys | nothing | two products | order kept, length bounded |
# | Self-Extend | [datamllab/LongLM](https://github.com/datamllab/LongLM/tree/cdbbb06), $w$ 1024, $g$ 8 | unrotated keys | nothing | two products | distant keys are blurred |
# | dual chunks | [HKUNLP/ChunkLlama](https://github.com/HKUNLP/ChunkLlama/tree/2add4d7), size $\tfrac34L_0$, local $\tfrac18L_0$ | keys rotated by $j \bmod c$ | nothing | one product, if cut at the chunks; three rotations of a query | distant chunks coincide |
# | streaming | [mit-han-lab/streaming-llm](https://github.com/mit-han-lab/streaming-llm/tree/2e50426), $z$ 4 | $z+w$ keys, unrotated or rotated | nothing | one product, if cut at the sinks; two rotations of a query | streams, but what is dropped is gone |
#
# - **Test with a prefix of another length.** What is true from position 0 may not be true from
#   position 1.
# - **A cache of rotated keys** must rotate those that move by their change of slot, unless the query
#   can be rotated instead, as in streaming. llama.cpp moved old keys to their groups in the cache,
#   which its author called "not exactly the same" as the paper
#   ([#4886](https://github.com/ggml-org/llama.cpp/issues/4886)).
# - **In a server**: vLLM added dual chunks
#   ([#11844](https://github.com/vllm-project/vllm/pull/11844)), which users of Qwen2.5-1M had asked
#   for ([#12452](https://github.com/vllm-project/vllm/issues/12452)).
#
# ## Further reading
#
# - Su 2023, [ReRoPE](https://kexue.fm/archives/9708), and its
#   [code](https://github.com/bojone/rerope).
# - Jin et al. 2024, *LLM Maybe LongLM: Self-Extend LLM Context Window Without Tuning*,
#   [arXiv:2401.01325](https://arxiv.org/abs/2401.01325).
# - An et al. 2024, *Training-Free Long-Context Scaling of Large Language Models*,
#   [arXiv:2402.17463](https://arxiv.org/abs/2402.17463).
# - Xiao et al. 2023, *Efficient Streaming Language Models with Attention Sinks*,
#   [arXiv:2309.17453](https://arxiv.org/abs/2309.17453).
#
# **Cards**: [rerope](CARDS.md#rerope), [self_extend](CARDS.md#self_extend),
# [dual_chunk](CARDS.md#dual_chunk), [streaming](CARDS.md#streaming),
# [leaky_rerope](CARDS.md#leaky_rerope).
