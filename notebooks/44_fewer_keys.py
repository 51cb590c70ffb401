# %% [markdown]
# # 44. GQA, MQA and MLA: sharing and compressing keys
#
# *How can heads share keys, how large is the KV cache then, and why does latent attention need a separate rotated key?*
#
# 35 minutes. Needs [10 Attention by hand: scores, softmax, heads, masks](10_attention.ipynb), [40 Rotary position embedding (RoPE): the derivation](40_rope_derived.ipynb), [41 RoPE in code: signs, layouts, caches, precision](41_rope_computed.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A decoder keeps a key and a value of every earlier token for every head, and this KV cache can
# outgrow the model. Grouped-query and multi-query attention (GQA, MQA) let several query heads share one key and one
# value. Latent attention (MLA) compresses the keys and values of all heads into one short vector per token, but RoPE
# rotates each token's key by a different angle, so a small separate key must carry the position. You will count the
# caches of released models, convert weights with shared heads, and compute MLA's scores in two ways.

# %% fold="input" alt="Eight query heads above what a token leaves in the KV cache, drawn to scale, in four ways: eight keys and values; two KV heads, each shared by four query heads; one for all; or one wide block c and a narrow rotated key, which all heads read."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import Cache, Model, Sizes, attend, attention, causal_mask, decode, init_params
from pe_numpy import mla_scores, rope, rope_convert_weights, rope_frequencies, rope_matrix
from pe_numpy import softmax, split_heads, yarn_attention_factor
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import fewer_keys as plots
from pe_numpy.transformer.encodings import Rope

plots.fewer_keys_heads(heads=8, groups=2, latent=4, turned=0.5)
plt.show()

# %% [markdown]
# ## Grouped-query attention (GQA): query heads share keys
#
# A decoder keeps the keys and values of all earlier tokens ([chapter 63](63_decoding.ipynb#kv-cache-size-bytes-per-token)).
# In the figure $K$ is the head dimension (`head_dim`), the number of components of one key. On the left each query head has
# its own key and value. Must it? In **grouped-query attention** (GQA) $H$ query heads share $G$ KV heads
# (`num_key_value_heads`), in groups of $H/G$ neighbours. $G=1$ is **multi-query attention** (MQA), and $G=H$ is the usual
# attention, which LLaMA's configuration means if that key is missing. The panel on the right, with $c$ and $k^R$, shows
# MLA, which comes
# [later](#multi-head-latent-attention-mla-one-short-vector-for-all-heads). With $R_i$ for RoPE's rotation at position $i$,
# query head $h$ at $i$ gives the key at $j$ the score
#
# $$s_{hij} = \frac{(R_i\,q_{hi})\cdot(R_j\,k_{gj})}{\sqrt K},\qquad g=\Big\lfloor\frac{hG}{H}\Big\rfloor$$

# %%
rng = np.random.default_rng(0)
H, G, L, K = 6, 2, 5, 8
q, k = (rng.standard_normal((heads, L, K)) for heads in (H, G))
at, width = np.arange(L), H // G
expected = np.empty((H, L, L))
for h, i, j in np.ndindex(H, L, L):
    turned_q, turned_k = rope(q[h, i : i + 1], [i])[0], rope(k[h * G // H, j : j + 1], [j])[0]
    expected[h, i, j] = turned_q @ turned_k / K**0.5
early = np.repeat(rope(k, at), width, axis=0)  # rotate G heads, then repeat them
late = rope(np.repeat(k, width, axis=0), at)
assert np.array_equal(early, late)
scores = rope(q, at) @ early.swapaxes(-1, -2) / K**0.5
assert np.allclose(scores, expected, rtol=0, atol=1e-12)

# %% [markdown]
# It makes no difference whether we rotate first or repeat first,
# so the cache stores $G$ rotated heads. Values are shared in the same groups. Nothing else in RoPE changes.
#
# NumPy has two functions that turn two heads into six: `np.repeat` and `np.tile`. **Predict** which query heads
# read a wrong KV head with `np.tile`.

# %% fold="output"
numbers = np.arange(G)
print("repeat:", np.repeat(numbers, width).tolist(), " tile:", np.tile(numbers, width).tolist())
tiled = rope(q, at) @ np.tile(rope(k, at), (width, 1, 1)).swapaxes(-1, -2) / K**0.5
wrong = [h for h in range(H) if not np.allclose(tiled[h], expected[h], rtol=0, atol=1e-12)]
print("heads with wrong scores:", wrong)
assert wrong == [1, 4]
for groups in (1, H):
    assert np.array_equal(
        np.repeat(range(groups), H // groups), np.tile(range(groups), H // groups)
    )

# %% [markdown]
# Using `np.tile` is *a common mistake* that is hard to see, because four of six heads are right. With $G=1$ or $G=H$
# both functions agree, so a test needs a true group.
#
# GQA is attention with tied weights. Repeat the rows of $W_k$ instead of the keys, and an ordinary layer with $H$ KV
# heads computes the same. So GQA can express nothing that the larger layer could not. It loses rank: stacked one
# under another, the scores of a group's heads have rank $K$ at most, not $HK/G$. Ainslie et al. measured little loss for
# GQA, more for MQA.

# %%
D = 10
x, Wk = rng.standard_normal((L, D)), rng.standard_normal((G * K, D))
tied = np.repeat(Wk.reshape(G, K, D), width, axis=0).reshape(H * K, D)
few = np.repeat(split_heads(x @ Wk.T, G), width, axis=0)  # (H, L, K)
assert np.allclose(split_heads(x @ tied.T, H), few, rtol=0, atol=1e-12)
three_q, three_k = np.random.default_rng(2).standard_normal((2, width, 40, K))
ranks = [
    np.linalg.matrix_rank(np.vstack(three_q @ keys.swapaxes(-1, -2)))  # of (3 S, S)
    for keys in (three_k[:1], three_k)
]
assert ranks == [K, H * K // G]

# %% [markdown]
# The Transformer of [chapter 62](62_model.ipynb) shares heads on request: `Sizes(n_kv_heads=G)` gives $W_k$ and $W_v$ the
# width $GK$, and the cache $G$ heads. Repeat their columns, one head at a time, and the same `Model` reads full keys. It
# then gives the same logits from $H/G$ times the bytes.

# %%
sizes = Sizes(11, 24, 16, n_layers=2, n_kv_heads=G, biases=False)
model, caches = Model(H, Rope()), [Cache(1, 5), Cache(1, 5)]
params = init_params(sizes, model, np.random.default_rng(1), np.float64)
logits = decode(params, model, [[3, 1, 4, 1, 5]], cache=caches[0])
for layer in params["decoder"]["layers"].values():
    for name in ("W_k", "W_v"):
        heads = layer["attention"][name].reshape(24, G, 4)  # (D, G, K)
        layer["attention"][name] = np.repeat(heads, width, axis=1).reshape(24, H * 4)
same = decode(params, model, [[3, 1, 4, 1, 5]], cache=caches[1])
assert np.allclose(logits, same, rtol=0, atol=1e-12)
weigh = [sum(a.nbytes for kept in c.held.values() for a in kept) for c in caches]
print("bytes in the cache:", weigh)
assert weigh == [2 * 2 * G * 4 * 5 * 8, 2 * 2 * H * 4 * 5 * 8] and weigh[1] == width * weigh[0]

# %% [markdown]
# ### A common mistake: converting GQA weights with the wrong number of heads (second reading)
#
# Weights that were trained with interleaved pairs work in half-split code if the rows of $W_q$ and $W_k$ are
# reordered *within each head* ([chapter 40](40_rope_derived.ipynb#converting-llama-weights-between-the-layouts)). How
# many heads do the rows of $W_k$ make? They make $G$. For $G=2$, $K=4$ the rows go to 0 2 1 3 and 4 6 5 7. llama.cpp
# gave $H/G$ heads ([PR #3364](https://github.com/ggml-org/llama.cpp/pull/3364)). transformers, reading its files,
# forgot $G$ ([PR #31788](https://github.com/huggingface/transformers/pull/31788)). **Predict**: which of the two
# models below comes out right with $H/G$?

# %% fold="output"
assert rope_convert_weights(np.arange(8), n_heads=2).tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
right = []
for name, heads, groups, wide in (("Llama 2 70B", 64, 8, 128), ("TinyLlama", 32, 4, 64)):
    rows = np.arange(groups * wide)
    good = rope_convert_weights(rows, n_heads=groups)
    for what, count in (("G", groups), ("H/G", heads // groups), ("H", heads)):
        same = np.array_equal(rope_convert_weights(rows, n_heads=count), good)
        right += [(name, what)] if same else []
        print(f"{name:12} {what:3} = {count:2} heads: {'right' if same else 'wrong'}")
assert right == [("Llama 2 70B", "G"), ("Llama 2 70B", "H/G"), ("TinyLlama", "G")]

# %% [markdown]
# Since $64/8=8$, the large model hid the mistake, and a small one with $32/4$ showed it. No error is raised as long as
# the count divides the rows into parts of even length. But scores are wrong even at distance 0, where rotations cancel:

# %%
Wq = rng.standard_normal((H * K, D))
before = (split_heads(x @ Wq.T, H) * few).sum(axis=-1)  # (H, L), at distance 0
for count in (G, 2 * G):
    q, k = x @ rope_convert_weights(Wq, n_heads=H).T, x @ rope_convert_weights(Wk, n_heads=count).T
    after = (split_heads(q, H) * np.repeat(split_heads(k, G), width, axis=0)).sum(axis=-1)
    print(f"{count} heads: largest error {np.abs(after - before).max():.2f}")
    assert np.allclose(after, before, rtol=0, atol=1e-12) == (count == G)

# %% [markdown]
# ## KV-cache bytes per token in released models
#
# A layer keeps a key and a value of head dimension $K$ for each KV head, so $2GK$ numbers per token.
# DeepSeek-V3 has MLA, explained in the next sections. Each layer keeps $r+d_r$ numbers instead of keys of $128+64$ and values of 128 for each of 128 heads.

# %%
MODELS = {  # layers, query heads, KV heads, head dimension
    "GPT-2": (12, 12, 12, 64),
    "Llama 2 7B": (32, 32, 32, 128),
    "Phi-3 mini": (32, 32, 32, 96),
    "Llama 3 8B": (32, 32, 8, 128),
    "Qwen 2.5 0.5B": (24, 14, 2, 64),
    "Qwen 3 0.6B": (28, 16, 8, 128),
    "Gemma 2 2B": (26, 8, 4, 256),
    "Gemma 3 1B": (26, 4, 1, 256),
}
weight = {name: (n, 2 * g * w, 2 * h * w) for name, (n, h, g, w) in MODELS.items()}
weight["DeepSeek-V3"] = (61, 512 + 64, 128 * (128 + 64 + 128))

# %%
print("              per token and layer per token, all layers   32,768 tokens, 2 bytes")
for name, (layers, kept, _) in weight.items():
    gib = 32_768 * layers * kept * 2 / 2**30
    print(f"{name:14} {kept:12,} {layers * kept:21,} {gib:19.3f} GiB")
assert weight["Qwen 3 0.6B"][1] == weight["Llama 3 8B"][1] == 2048
assert 28 * 2048 > 24 * weight["Qwen 2.5 0.5B"][1] * 9
assert 0.5 < np.prod(weight["DeepSeek-V3"][:2]) / np.prod(weight["Llama 3 8B"][:2]) < 0.55
assert weight["DeepSeek-V3"][2] / 576 > 71

# %% alt="For nine models, the numbers that a token leaves in each layer, filled, and what it would leave with a KV head per query head, hollow. There is no gap for GPT-2, Llama 2 7B and Phi-3 mini, a factor of 2 to 7 for grouped-query models, and of 71 for DeepSeek-V3."
kept, without = (np.array([w[n] for w in weight.values()]) for n in (1, 2))
plots.fewer_keys_models(list(weight), kept, without)
plt.show()

# %% [markdown]
# Qwen 3 with 0.6 billion parameters keeps as much per layer as Llama 3 with 8 billion, and in all more
# than nine times as much as Qwen 2.5 with 0.5 billion. DeepSeek-V3's 576 numbers per layer replace 71 times as many.
# All its 61 layers need little more than half of the memory of Llama 3's
# 32. The last column counts all tokens in all layers, but in Gemma 2 every second layer attends only to a sliding window,
# and in Gemma 3 five of six layers do
# ([chapter 12](12_attention_blocks.ipynb#sliding-window-attention-off-by-one)).
#
# ## Multi-head latent attention (MLA): one short vector for all heads
#
# **Multi-head latent attention** (MLA, DeepSeek-V2) compresses keys and values. It keeps a key for
# each head, but makes all of them from one short vector: the *latent vector* $c_j = W_d\,x_j$ of width $r$, where $x_j$ is
# the token's vector. Head
# $h$'s key is $k_{hj} = W_{uk,h}\,c_j$, of width $d_n$, and its value $W_{uv,h}\,c_j$. The index $d$ is for down, $u$ for
# up. The cache stores $c$.
#
# MLA looks expensive: at every step the keys of all earlier tokens would have to be made again. But
#
# $$q\cdot(W_{uk}\,c) = (W_{uk}^\top q)\cdot c$$

# %%
W = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 0.0], [2.0, 1.0]])  # d_n = 4, r = 2
c, query = np.array([1.0, -1.0]), np.array([1.0, 0.0, 2.0, 1.0])
key = [float(row @ c) for row in W]
absorbed = [float(column @ query) for column in W.T]
direct, other = float(query @ key), float(c @ absorbed)
print("key", key, "  score", direct)
print("absorbed query", absorbed, "  score", other)
assert key == [-1, -1, 1, 1] and absorbed == [5, 3] and direct == other == 2

# %% [markdown]
# By hand: the key is $(1-2,\,-1,\,1,\,2-1) = (-1,-1,1,1)$ and $q\cdot k=-1+2+1=2$. The absorbed query is
# $(1+2+2,\;2+1)=(5,3)$ and $5-3=2$. $W_{uk}$ is multiplied with *one* query instead of all keys: it is
# **absorbed**. $W_{uv}$ comes at the other end, after the sum of the latent vectors with the attention weights $w_{ij}$:
#
# $$\sum_j w_{ij}\,W_{uv}\,c_j = W_{uv}\sum_j w_{ij}\,c_j$$

# %%
S, r, d_v = 7, 2, 3
latent, Wuv = rng.standard_normal((S, r)), rng.standard_normal((d_v, r))
w = softmax(np.arange(S))  # the weights of one query
mixed_values = sum(w[j] * (Wuv @ latent[j]) for j in range(S))
assert np.allclose(mixed_values, Wuv @ (w @ latent), rtol=0, atol=1e-12)

# %% [markdown]
# ## Why RoPE is in the way of MLA
#
# Now rotate the query by its position $i$ and the key $W_{uk}c$ by its position $j$. With $\Delta=i-j$
#
# $$(R_i\,q)\cdot(R_j\,W_{uk}\,c) = (W_{uk}^\top R_{\Delta}\,q)\cdot c$$
#
# since $R_j^\top R_i=R_{i-j}$. The rotation is *between* $q$ and $W_{uk}$. **Predict** for $i=3$, $j=1$:
# is the score right if you absorb as before, $W_{uk}^\top(R_3\,q)$ with the unrotated $c$? And at which key is
# it right?

# %% fold="output"
theta, i, j = rope_frequencies(4), 3, 1
turned_query, turned_key = rope(query[None], [i])[0], rope((W @ c)[None], [j])[0]
direct = turned_query @ turned_key
careless = (W.T @ turned_query) @ c
by_distance = (W.T @ rope_matrix(i - j, theta) @ query) @ c
print(f"direct {direct:.6f}  careless {careless:.6f}  R of the distance {by_distance:.6f}")
assert abs(direct - by_distance) < 1e-12 and f"{direct:.6f}" == "2.526248"
assert f"{careless:.6f}" == "3.877518"
assert abs(careless - turned_query @ (W @ c)) < 1e-12  # the score of a key at position 0

# %% [markdown]
# The careless form treats every key as if it were at position 0. The right form needs a separate query,
# $W_{uk}^\top R_\Delta\,q$, for *every distance*. Could one matrix serve two distances $\Delta$ and $\Delta+1$? Then
# $W_{uk}^\top R_\Delta(R_1-I)=0$. But $R_1-I$ can be inverted, because every pair rotates, so $W_{uk}$ would be 0.

# %%
R1 = rope_matrix(1, theta)
print("det(R_1 - I) =", f"{np.linalg.det(R1 - np.eye(4)):.3e}")
assert np.isclose(np.linalg.det(R1 - np.eye(4)), np.prod(2 - 2 * np.cos(theta)), rtol=1e-10, atol=0)
assert np.prod(2 - 2 * np.cos(theta)) > 0

# %% [markdown]
# Can we cache rotated keys, then? The keys of all heads, side by side in rows of $H\,d_n$ numbers, have rank $r$
# at most, because they are $c$ times one matrix. This does not hold for rotated keys.

# %% alt="Singular values of the keys of 96 tokens, 4 heads of width 16 from latent vectors of width 8. Without rotation there are eight values, then zeros. With rotation, the values fall slowly and continue far beyond eight."
tokens, heads, d_n, r = 96, 4, 16, 8
cs, up = rng.standard_normal((tokens, r)), rng.standard_normal((heads, d_n, r))
keys = np.einsum("hnr,sr->hsn", up, cs)  # (H, S, d_n)
sides = {"keys from $c$": keys, "the same, rotated": rope(keys, np.arange(tokens))}
curves = {}
for name, a in sides.items():
    values = np.linalg.svd(np.concatenate(a, axis=-1), compute_uv=False)  # of (S, H d_n)
    curves[name] = (values / values[0]).round(6)
    print(f"{name:17} {np.sum(values > 1e-9 * values[0])} singular values above 0")
assert (curves["keys from $c$"] > 0).sum() == r and curves["the same, rotated"][3 * r] > 0.05
plots.fewer_keys_rank(curves, r)
plt.show()

# %% [markdown]
# A rotation writes the position into every key, so no single matrix can make all of these keys from $r$ numbers per
# token.
#
# ## MLA's decoupled rotary key
#
# DeepSeek's solution is to split each query into two parts. The first does not rotate: $q^C$ of width $d_n$, with C for
# content. The second does: $q^R$ of width $d_r$, with R for rotary. On the side of the keys, each head has its own
# $W_{uk}\,c$, and all heads share **one** $k^R_j$, made from $x_j$: the **decoupled rotary key**. The parts are side by
# side, so their products are added:
#
# $$s_{hij}=\frac{q^C_{hi}\cdot W_{uk,h}\,c_j+(R_i\,q^R_{hi})\cdot(R_j\,k^R_j)}{\sqrt{d_n+d_r}}$$

# %%
H, S, d_n, d_r, r = 3, 7, 5, 4, 6
at = np.arange(S)
q_C, q_R = rng.standard_normal((H, S, d_n)), rng.standard_normal((H, S, d_r))
c, k_R, Wuk = (rng.standard_normal(shape) for shape in ((S, r), (S, d_r), (H, d_n, r)))
expected = np.empty((H, S, S))
for h, i, j in np.ndindex(H, S, S):
    content = sum(q_C[h, i, n] * (Wuk[h, n] @ c[j]) for n in range(d_n))
    pairs = (rope_matrix(i, rope_frequencies(d_r)) @ q_R[h, i]) @ (
        rope_matrix(j, rope_frequencies(d_r)) @ k_R[j]
    )
    expected[h, i, j] = (content + pairs) / (d_n + d_r) ** 0.5
for way in (True, False):
    got = mla_scores(q_C, q_R, c, k_R, Wuk, at, at, absorbed=way)
    assert np.allclose(got, expected, rtol=0, atol=1e-12)

# %%
show_source(mla_scores)

# %% [markdown]
# The cache stores $c_j$ and the rotated $R_j\,k^R_j$, together $r+d_r$ numbers. That is why $k^R$ is shared. The cell
# computes a whole layer both ways, and then its newest token from the cache. Stored keys are rotated already, so they go
# in at position 0:

# %%
Wuv, mask = rng.standard_normal((H, d_v, r)), causal_mask(at, at)
scores = mla_scores(q_C, q_R, c, k_R, Wuk, at, at, absorbed=False)
made, _ = attend(scores, np.einsum("hvr,sr->hsv", Wuv, c), mask)  # values of each head
kept, _ = attend(mla_scores(q_C, q_R, c, k_R, Wuk, at, at), c, mask)  # (H, S, r)
assert np.allclose(made, kept @ Wuv.swapaxes(-1, -2), rtol=0, atol=1e-12)
cache = np.concatenate([c, rope(k_R, at)], axis=-1)  # (S, r + d_r)
newest = mla_scores(q_C[:, -1:], q_R[:, -1:], cache[:, :r], cache[:, r:], Wuk, [S - 1], np.zeros(S))
assert np.allclose(newest, scores[:, -1:], rtol=0, atol=1e-12)

# %% [markdown]
# This is [partial RoPE](41_rope_computed.ipynb#partial-rope): of each head's $d_n+d_r$ components $d_r$ rotate. But the
# rotated part of the key is shared, as in MQA, and the unrotated part has rank $r$ at most over all heads.
#
# ### Absorbed MLA is multi-query attention (second reading)
#
# With absorption, latent attention is multi-query attention. Its single KV head is $[c_j;\,R_j k^R_j]$ of width $r+d_r$,
# whose first $r$ components are also the value. A fast kernel for MQA works if it takes values narrower than keys and is
# told the scale. Its default would be $1/\sqrt{r+d_r}$. A user asks why it is 576 wide and not 192
# ([FlashMLA #49](https://github.com/deepseek-ai/FlashMLA/issues/49)). **Predict**: with DeepSeek's sizes, by how much
# would all scores shrink?

# %% fold="output"
one_q = np.concatenate([q_C @ Wuk, rope(q_R, at)], axis=-1)  # (H, S, r + d_r)
one_k = cache[None]  # (1, S, r + d_r): a single head
output, weights = attention(one_q, one_k, cache[None, :, :r], mask, scale=(d_n + d_r) ** -0.5)
assert np.allclose(output, kept, rtol=0, atol=1e-12)
_, careless = attention(one_q, one_k, cache[None, :, :r], mask)  # scale 1/sqrt(r + d_r)
print(f"largest error of a weight {np.abs(careless - weights).max():.3f}")
assert np.abs(careless - weights).max() > 0.01
shrunk = scores * ((d_n + d_r) / (r + d_r)) ** 0.5
assert np.allclose(careless, attend(shrunk, cache[:, :r], mask)[1], rtol=0, atol=1e-12)
at_once = weight["DeepSeek-V3"][1]  # r + d_r, where a head has 128 + 64
print(f"DeepSeek: sqrt(192/{at_once}) = {((128 + 64) / at_once) ** 0.5:.3f} of what they should be")

# %% [markdown]
# This scale is easily lost. Megatron used the model's width divided by $H$ as the head dimension
# ([#1501](https://github.com/NVIDIA/Megatron-LM/issues/1501)). maxtext had the right $1/\sqrt{d_n+d_r}$ and *divided*
# scores by it ([#1370](https://github.com/AI-Hypercomputer/maxtext/issues/1370)). And there is one more
# constant. DeepSeek's frequencies come from YaRN, for texts 40 times as long as trained ([chapter 50](50_scaling.ipynb)).
# YaRN also enlarges scores. Here its factor applies to the whole score, rotated or not, as $m^2$ with
# $m = 0.1\,a\ln 40+1$, where $a$ (`mscale_all_dim`) is 1 in V3 and 0.707 in V2.

# %%
for name, a, square in (("V2", 0.707, "1.589626"), ("V3", 1.0, "1.873854")):
    m = yarn_attention_factor(40, a)
    print(name, f"m^2 = {m**2:.6f}, scale {m**2 / 192**0.5:.6f}, not {192**-0.5:.6f}")
    assert abs(m - (0.1 * a * np.log(40) + 1)) < 1e-14 and f"{m**2:.6f}" == square

# %% [markdown]
# ## Weight absorption: when it pays
#
# The scores are the same, but the products and the numbers read are not. For a new token, with $S$ tokens in the cache:
#
# | | products per layer, of scores | numbers read of keys |
# |---|---|---|
# | keys recomputed from $c$ | $S\,H\,d_n r + S\,H\,(d_n+d_r)$ | $S\,(r+d_r)$ |
# | keys of all heads stored | $H\,d_n r+S\,H\,(d_n+d_r)$ | $S\,H\,(d_n+d_r)$ |
# | absorbed | $H\,d_n r+S\,H\,(r+d_r)$ | $S\,(r+d_r)$ |

# %% alt="Two panels over cached tokens, with DeepSeek-V3's sizes: products per step and numbers read, in three ways. Recomputing keys takes about a hundred times the products. Stored keys mean 43 times as many numbers to read. Absorption is low in both, with up to 3 times the products of stored keys."
H, d_n, d_r, r = 128, 128, 64, 512
S = 2 ** np.arange(8, 18, dtype=np.int64)
head, long = H * (d_n + d_r), H * (r + d_r)
products = {
    "keys recomputed": S * H * d_n * r + S * head,
    "keys stored": H * d_n * r + S * head,
    "absorbed": H * d_n * r + S * long,
}
reads = {"keys recomputed": S * (r + d_r), "keys stored": S * head, "absorbed": S * (r + d_r)}
print("at the end:", *(f"{n} {c[-1] / products['absorbed'][-1]:.2f}" for n, c in products.items()))
assert long / head == 3 and round(head / (r + d_r)) == 43
ratios = products["keys recomputed"] / products["absorbed"]
assert 75 < ratios.min() and 110 < ratios.max() < 115
plots.fewer_keys_products(S, {"products per step": products, "numbers read": reads})
plt.show()

# %% [markdown]
# In prefill, while a prompt is read, $S$ queries come in one call. Making the keys then costs $S\,H\,d_n r$ once, and
# absorbing costs the same. Each of $S^2$ pairs takes $H\cdot 192$ products with keys, against $H\cdot 576$ with absorption.
# So it pays to make keys for a prompt and to absorb while writing. DeepSeek's
# [inference code](https://github.com/deepseek-ai/DeepSeek-V3/blob/9b4e978/inference/model.py) has
# both, `naive` and `absorb`. transformers 5.23.0 caches $c$ and makes all keys again at each step.

# %% [markdown]
# ## Sparse attention (DSA): DeepSeek's lightning indexer (second reading)
#
# With MLA each query still scores all tokens. **DeepSeek sparse attention** (DSA, in DeepSeek-V3.2-Exp) reads only the $k$
# best (`index_topk`, 2048). A **lightning indexer** ranks them. It has its own query $q_{tj}$ for each of 64 heads $j$, one
# key $k_s$ for all heads, and weights $w_{tj}$ made from the query's token
# ([report](https://github.com/deepseek-ai/DeepSeek-V3.2-Exp/blob/3b99a53/DeepSeek_V3_2.pdf), equation 1):
#
# $$I_{ts}=\sum_j w_{tj}\,\mathrm{ReLU}(q_{tj}\cdot k_s)$$

# %%
draw, J, N = np.random.default_rng(44), 4, 128  # J heads of width 16, N tokens
at, turns = np.arange(N), rope_frequencies(8)  # components 0 to 7 rotate
q_I, k_I, w = (draw.standard_normal(shape) for shape in ((J, N, 16), (N, 16), (N, J)))
halves = [rope(x, at, turns, layout="half") for x in (q_I, k_I)]
index = np.einsum("tj,jts->ts", w, np.maximum(halves[0] @ halves[1].T, 0))
expected = np.zeros((20, 20))
for t, s, j in np.ndindex(20, 20, J):
    a, b, angle = q_I[j, t], k_I[s], (t - s) * turns
    pairs = (a[:4] + 1j * a[4:8]) * (b[:4] - 1j * b[4:8]) * np.exp(1j * angle)
    expected[t, s] += w[t, j] * max(pairs.real.sum() + a[8:] @ b[8:], 0)
assert np.allclose(index[:20, :20], expected, rtol=0, atol=1e-12)

# %% [markdown]
# Selecting is a mask. Where $k$ covers all visible keys, the output is exact, so up to 2048 tokens DSA changes nothing:

# %%
seen, k = causal_mask(at, at), 16
scores, values = draw.standard_normal((3, N, N)), draw.standard_normal((N, 8))  # of MLA, say


def select(index):
    order = np.argsort(np.where(seen, -index, np.inf), axis=-1, kind="stable")
    best = np.zeros_like(seen)
    np.put_along_axis(best, order[:, :k], True, axis=-1)
    return best & seen


# %%
dense, sparse = (attend(scores, values, mask)[0] for mask in (seen, select(index)))
for t in range(N):
    best = sorted(range(t + 1), key=lambda s: -index[t, s])[:k]
    only = softmax(scores[:, t, best]) @ values[best]
    assert np.allclose(sparse[:, t], only, rtol=0, atol=1e-12)
    assert np.allclose(sparse[:, t], dense[:, t], rtol=0, atol=1e-12) == (t < k)

# %% [markdown]
# Which components rotate? Of the indexer's 128 the *first* 64, with MLA's frequencies, paired by halves. In MLA's own
# queries the *last* 64 of 192 do, in interleaved pairs. DeepSeek's first
# [code](https://github.com/deepseek-ai/DeepSeek-V3.2-Exp/blob/2305c7e/inference/model.py) interleaved both. A note of 17
# November 2025 in its README corrects that (commit 8631a81, says
# [mlx-lm #512](https://github.com/ml-explore/mlx-lm/pull/512)). In transformers 5.23.0 the indexer of GLM-5
# (`glm_moe_dsa`, [#46842](https://github.com/huggingface/transformers/pull/46842)) interleaves its first 64, and Hy4's
# (`hy_v4`) rotates its last 64 by halves. **Predict**: which queries select wrong keys with the wrong layout?

# %% fold="output"
q, k_woven = (rope(x, at, turns, layout="interleaved") for x in (q_I, k_I))
woven = np.einsum("tj,jts->ts", w, np.maximum(q @ k_woven.T, 0))
lost = (select(index) & ~select(woven)).sum(axis=1)
for first in (0, 16, 112):
    print(f"queries {first} to {first + 15}: {lost[first : first + 16].mean():.1f} of {k} wrong")
assert not lost[:k].any() and lost[-k:].mean() > 2 * lost[k : 2 * k].mean() > 0
print(f"products per pair, indexer to absorbed MLA: 1/{128 * (512 + 64) / (64 * 128):.0f}")

# %% [markdown]
# The first 16 queries have no choice. In mlx-lm the text stayed coherent and got worse with length
# ([#1431](https://github.com/ml-explore/mlx-lm/pull/1431)). Test with more than `index_topk` tokens. The indexer itself
# still scores every pair, with a ninth of absorbed MLA's products.
#
# After RoPE, DeepSeek multiplies the indexer's queries and keys by a **Hadamard matrix**, divided by $\sqrt{128}$, and
# rounds them to 8 bits. The matrix is orthogonal, so before rounding no product changes, and transformers omits it. It
# spreads one large component over all:

# %%
hadamard = np.ones((1, 1))
for _ in range(4):
    hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]]) / 2**0.5
q, kept = (x @ hadamard for x in halves)
assert np.allclose(q @ kept.T, halves[0] @ halves[1].T, rtol=0, atol=1e-12)
print("a component of 8 becomes 16 of", np.unique(np.abs(8 * hadamard[3]).round(12)))

# %% [markdown]
# ## In short
#
# - **How large is the cache per token?** $2GK$ numbers per layer for $G$ KV heads (`num_key_value_heads`), mostly of 2 bytes.
#   Llama 3 8B: 65,536 numbers in all layers, twice as many bytes. Latent attention (MLA): $r+d_r$, in DeepSeek-V3 $512+64=576$.
#   [KV-cache bytes](#kv-cache-bytes-per-token-in-released-models).
# - **Which KV head does query head $h$ read?** Number $\lfloor hG/H\rfloor$: each KV head is repeated in place, `0 0 1 1`
#   ([GQA](#grouped-query-attention-gqa-query-heads-share-keys)). To
#   [convert](#a-common-mistake-converting-gqa-weights-with-the-wrong-number-of-heads-second-reading) RoPE layouts, reorder
#   $W_k$ as $G$ heads. To make groups, [average heads](#exercise-1-average-the-kv-heads-of-a-trained-model) and train on.
# - **Which scale and which layout does DeepSeek have?** The scale is $1/\sqrt{d_n+d_r}$, here $1/\sqrt{192}$, also for the
#   576 wide absorbed query. Pairs are interleaved. Rows of `kv_b_proj` come *head by head*, keys before values.
#   [MQA](#absorbed-mla-is-multi-query-attention-second-reading), [names](#in-practice).
# - **Why does MLA not rotate its whole keys?** With RoPE the absorbed query would be $W_{uk}^\top R_{\Delta}\,q$, a
#   different query for each distance. So $d_r$ components rotate separately, on one key that all heads share.
#   [Why RoPE is in the way](#why-rope-is-in-the-way-of-mla).
# - **Absorb, or make the keys?** Make them for a prompt: absorbing takes up to 3 times the products of scores.
#   Absorb for each new token: keys recomputed take some hundred times as many.
#   [Weight absorption](#weight-absorption-when-it-pays).
# - **How does DeepSeek's sparse attention (DSA) select keys?** An indexer with one key for all heads scores every token,
#   and attention reads the best 2048. The first 64 of its 128 components rotate, paired by halves.
#   [Lightning indexer](#sparse-attention-dsa-deepseeks-lightning-indexer-second-reading).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 44` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 44_fewer_keys.py` checks yours.
#
# ### Exercise 1: average the KV heads of a trained model
#
# Ainslie et al. convert a trained model to GQA. They average the KV heads of each group, keys and values, and
# continue training. Show that averaging commutes with RoPE, and that it changes scores.
#
# <details><summary>Hint 1</summary>
#
# `k.reshape(G, H // G, L, K).mean(axis=1)`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $R_j$ is linear, and all heads have the same frequencies.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# many, places = rng.standard_normal((6, 5, 8)), np.arange(5)
# mean = many.reshape(2, 3, 5, 8).mean(axis=1)
# after = rope(many, places).reshape(2, 3, 5, 8).mean(axis=1)
# assert np.allclose(rope(mean, places), after, rtol=0, atol=1e-12)
# scores = many @ many.swapaxes(-1, -2)
# fewer = many @ np.repeat(mean, 3, axis=0).swapaxes(-1, -2)
# assert np.abs(fewer - scores).max() > 1
# ```
#
# </details>
#
# ### Exercise 2: GQA with the cache size of MLA
#
# How many KV heads of dimension 128 may GQA have, if its cache is to be as large as DeepSeek-V3's? And how large would MLA's
# cache be, if each of the 128 heads had its own rotated key?
#
# <details><summary>Hint 1</summary>
#
# $2GK = r+d_r$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Then the cache holds $r+H\,d_r$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Two and a quarter. With 128 rotated keys a token needs 15 times as much: a reason to share $k^R$.
#
# ```python
# stored = weight["DeepSeek-V3"][1]
# latent, turned = np.zeros((1, 512)), rope(np.ones((128, 1, 64)), [7])  # one token, 128 heads
# assert stored / (2 * 128) == 2.25 and round((latent.size + turned.size) / stored) == 15
# ```
#
# </details>
#
# ### Exercise 3: GQA as latent attention
#
# Write GQA without RoPE as latent attention: which $c$, which $W_{uk,h}$ and $W_{uv,h}$?
#
# <details><summary>Hint 1</summary>
#
# $c_j$ contains all that GQA caches: $r=2GK$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $W_{uk,h}$ picks $K$ of the components: a slice of a unit matrix.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# g_k, g_v, some_q = (rng.standard_normal((n, 5, 4)) for n in (2, 2, 6))
# c = np.concatenate([*g_k, *g_v], axis=-1)  # (S, 2 G K)
# pick = np.eye(16).reshape(4, 4, 16)  # a slice for each key and value head
# Wuk, Wuv = np.repeat(pick[:2], 3, axis=0), np.repeat(pick[2:], 3, axis=0)
# scores = (some_q @ Wuk) @ c.T / 2
# latent = attend(scores, c)[0] @ Wuv.swapaxes(-1, -2)
# grouped = attention(some_q, np.repeat(g_k, 3, axis=0), np.repeat(g_v, 3, axis=0))[0]
# assert np.allclose(latent, grouped, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 4: rotate the latent vector itself
#
# Rotate $c_j$ and the absorbed query $W_{uk}^\top q_i$, both $r$ wide. Are scores relative? How much is cached? What
# happens to the values?
#
# <details><summary>Hint 1</summary>
#
# $(R_i W_{uk}^\top q_i)\cdot(R_j c_j)$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $\sum_j w_{ij}R_jc_j$ depends on absolute positions. Rotate the sum back by $R_{-i}$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Scores depend on $i-j$, and $r$ numbers are cached. But the heads no longer have their own rotated keys: all rotate
# in the latent space. And values arrive rotated. The inverse rotation of the query leaves them relative, $R_{j-i}\,c_j$.
#
# ```python
# q, c, W = rng.standard_normal((5, 3)), rng.standard_normal((5, 4)), rng.standard_normal((3, 4))
# def layer(places):
#     turned = rope(c, places)
#     weights = attend(rope(q @ W, places) @ turned.T, turned)[1]
#     return weights @ turned, rope(weights @ turned, -places)
# (plain, back), (plain_later, back_later) = layer(np.arange(5)), layer(np.arange(5) + 100)
# assert np.allclose(back, back_later, rtol=0, atol=1e-10)
# assert np.abs(plain - plain_later).max() > 0.1
# ```
#
# </details>
#
# ## In practice
#
# | scheme | who uses it | per token and layer | cost | verdict |
# |---|---|---|---|---|
# | one key per head | GPT-2, Llama 2 7B, Phi-3 mini | $2HK$ | | the simplest, and the largest cache |
# | GQA | Llama 3, Qwen 2.5 and 3, Gemma 2 | $2GK$ | $G$ heads to rotate | one number to choose; RoPE as it was |
# | MQA | Gemma 3 1B | $2K$ | one head to rotate | the smallest of these three |
# | MLA | DeepSeek-V2, V3, R1 | $r+d_r$ | absorbed in V3: 3 times the products of a score | a key for each head and a small cache, at the price of a separate rotary part |
#
# - **All are safe with a cache** of rotated keys, and nothing is trained for positions.
# - **Names in DeepSeek's files.** `kv_a_proj_with_mqa` makes $[c;k^R]$, and $c$ is cached *after* its norm
#   (`kv_a_layernorm`). `kv_b_proj` has rows of keys, then of values, *head by head*.
# - **Interleaved pairs** are used in V2 and V3, but not by
#   [V3.2's indexer](#sparse-attention-dsa-deepseeks-lightning-indexer-second-reading).
# - **Test with $1<G<H$**, with $H/G\ne G$, and at two distances.

# %%
fused = np.arange(2 * (3 + 2))  # kv_b_proj of 2 heads, d_n = 3, d_v = 2
by_head = fused.reshape(2, 5)
print("keys", by_head[:, :3].tolist(), " values", by_head[:, 3:].tolist())
assert by_head[1, 0] == 5  # not row 3

# %% [markdown]
# ## Further reading
#
# - Shazeer 2019, *Fast Transformer decoding: one write-head is all you need*,
#   [arXiv:1911.02150](https://arxiv.org/abs/1911.02150). On MQA.
# - Ainslie et al. 2023, *GQA*, [arXiv:2305.13245](https://arxiv.org/abs/2305.13245).
# - DeepSeek-AI 2024, *DeepSeek-V2*, [arXiv:2405.04434](https://arxiv.org/abs/2405.04434): MLA, and why RoPE does not go
#   with absorption.
