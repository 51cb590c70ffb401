# %% [markdown]
# # 42. RoPE in released models: rope_theta, partial rotary, config.json
#
# *Which components does a released model rotate, how fast, in which layers, and which config keys say so?*
#
# 35 minutes. Needs [40 Rotary position embedding (RoPE): the derivation](40_rope_derived.ipynb), [41 RoPE in code: signs, layouts, caches, precision](41_rope_computed.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Released models that use RoPE differ in what they rotate: all components of a head or only some,
# paired in one of two layouts, at different speeds in different layers, or not at all in some. A wrong choice raises no
# error, and the text often stays fluent. Most choices are written in a file, config.json, in words that differ from model
# to model. You compute each variant, learn which test finds which mistake, and read a configuration with one function.

# %% fold="input" alt="The 16 components of a head, half of them rotated in four ways, with pairs joined by arcs and coloured by frequency. Partial pairs stay in the first half of the head. Proportional pairs of the half layout reach across the head and rotate faster."
import matplotlib.pyplot as plt
import numpy as np
from pe_numpy import attend, load_model, proportional_frequencies, rms_norm, rope
from pe_numpy import rope_convert_weights, rope_frequencies, rope_from_config, rope_permutation
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import rope_in_models as plots

part, whole = rope_frequencies(8), proportional_frequencies(16, 0.5)
kinds = {"partial": part, "proportional": whole}
layouts = ("half", "interleaved")
heads = {f"{kind}, {lay}": (f, lay) for lay in layouts for kind, f in kinds.items()}
plots.pairs_of_a_head(heads, 16)
plt.show()

# %% [markdown]
# ## Partial RoPE and proportional RoPE (p-RoPE)
#
# RoPE rotates pair $c$ of a head of head dimension $K$ by the angle $i\,\theta_c$ at position $i$, with
# $\theta_c = b^{-2c/K}$ and the base $b$, called `rope_theta` in configurations ([chapter 40](40_rope_derived.ipynb)). Many
# models leave a part of each head unrotated: those components carry content without position. GPT-J rotates 64 of 256
# components, GPT-NeoX a quarter. In the figure half of 16 components rotate. An arc joins the two components of a pair, and
# its colour shows the frequency $\theta_c$ in radians per position.
#
# **Partial RoPE** treats the first $r = pK$ components as a separate head, where $p$ is the part that rotates
# (`partial_rotary_factor`):
#
# $$\theta_c = b^{-2c/r}\qquad c = 0,\dots,\tfrac r2 - 1$$
#
# `rope` with fewer than $K/2$ frequencies does it: the first components are paired among themselves.

# %%
K, p, b = 8, 0.5, 10_000
x, at = np.arange(1.0, 9), 2  # one vector, at position 2
r = int(p * K)
partial = rope_frequencies(r, b)
by_hand = x.copy()
for c in range(r // 2):  # half layout: c and c + r/2
    angle = at * b ** (-2 * c / r)
    by_hand[c] = np.cos(angle) * x[c] - np.sin(angle) * x[c + r // 2]
    by_hand[c + r // 2] = np.sin(angle) * x[c] + np.cos(angle) * x[c + r // 2]
turned = rope(x[None], [at], partial, "half")[0]
assert np.allclose(turned, by_hand, rtol=0, atol=1e-14)
print(turned.round(4).tolist())

# %% [markdown]
# **Proportional RoPE**, or p-RoPE (Barbero et al. 2024), takes the frequencies of the *whole* head and sets the slow end
# of the list to zero. With $n = \lfloor pK/2\rfloor$ pairs that rotate:
#
# $$\theta_c = \begin{cases} b^{-2c/K} & c < n\\ 0 & n \le c < \tfrac K2\end{cases}$$
#
# In the half layout component $c$ is paired with $c + (\text{number of frequencies})$. With its zeros the list has $K/2$
# entries, so the partner is half a head away.

# %%
show_source(proportional_frequencies)
proportional = proportional_frequencies(K, p, b)
n = int(p * K / 2)
assert np.allclose(proportional[:n], [b ** (-2 * c / K) for c in range(n)], rtol=1e-14, atol=0)
assert len(proportional) == K // 2 and not proportional[n:].any()

# %% [markdown]
# **Predict**: which components change under which kind and layout, and
# in which of the four results do the values (1, 2) become the same two numbers?

# %% fold="output"
results = {}
for layout in layouts:
    for kind, f in (("partial", partial), ("proportional", proportional)):
        results[kind, layout] = y = rope(x[None], [at], f, layout)[0]
        print(f"{kind:13}{layout:12}", " ".join(f"{v:7.4f}" for v in y))
changed = {key: np.flatnonzero(y != x).tolist() for key, y in results.items()}
assert changed["proportional", "half"] == [0, 1, 4, 5]
assert all(c == [0, 1, 2, 3] for key, c in changed.items() if key != ("proportional", "half"))

# %% [markdown]
# All four differ. The first pair rotates alike in both interleaved rows, since its frequency is 1 in any list.
#
# *A common mistake* is to take the right frequencies and the wrong partners: the list of proportional RoPE without its
# zeros, given to code for partial RoPE. It happened in Megatron-Bridge with Gemma 4
# ([issue 4195](https://github.com/NVIDIA-NeMo/Megatron-Bridge/issues/4195)). The 64 values agreed with the
# reference, but the list must have 256. Here are the scores of one head with Gemma 4's numbers: $K = 512$, $p = 1/4$,
# $b = 10^6$.

# %%
gemma4 = proportional_frequencies(512, 0.25, 1e6)
partial4 = rope_frequencies(128, 1e6)
print("theta_1, theta_63, theta_64:", gemma4[[1, 63, 64]].round(6).tolist())
print("partial RoPE has theta_1 =", partial4[1].round(6))
rng = np.random.default_rng(0)
q, k = rng.standard_normal((2, 40, 512))
positions, scores, two = np.arange(40), {}, ~np.eye(40, dtype=bool)  # two: not of one token
for name, f in {"right": gemma4, "no zeros": gemma4[:64], "partial": partial4}.items():
    scores[name] = rope(q, positions, f, "half") @ rope(k, positions, f, "half").T / 512**0.5
    off = np.abs(scores[name] - scores["right"])
    at_0, elsewhere = np.diagonal(off).max(), off[two].mean()
    print(f"{name:9} off by {at_0:.2f} at distance 0, on average by {elsewhere:.2f} elsewhere")
    assert name == "right" or elsewhere > 0.5
assert np.allclose(np.diagonal(scores["no zeros"] - scores["right"]), 0, rtol=0, atol=1e-9)

# %% [markdown]
# At distance 0 the two rotations cancel, so a test with one token passes.
#
# ### Proportional RoPE is partial RoPE with another base
#
# For $c < n$ and $r = 2n = pK$:
#
# $$b^{-2c/K} = \big(b^{\,p}\big)^{-2c/(pK)}$$
#
# **Proportional RoPE is partial RoPE with the base $b^p$**, on other components. In the interleaved layout even the
# components are the same. **Predict**: which base would Gemma 4 need with partial RoPE?

# %% fold="output"
print(f"base {1e6**0.25:.1f}")
assert np.allclose(gemma4[:64], rope_frequencies(128, 1e6**0.25), rtol=1e-12, atol=0)
small = rope_frequencies(4, b**p)
same = rope(x[None], [at], small, "interleaved")[0]
assert np.allclose(same, results["proportional", "interleaved"], rtol=0, atol=1e-14)
order = [0, 1, 4, 5, 2, 3, 6, 7]  # half: the rotated components come first
moved = rope(x[None, order], [at], small, "half")[0]
assert np.allclose(moved, results["proportional", "half"][order], rtol=0, atol=1e-14)

# %% [markdown]
# ## Interleaved or half layout: which model has which
#
# Weights are trained for one of two layouts, and the file seldom tells which
# ([chapter 40](40_rope_derived.ipynb)). In transformers 5.23.0 the layout is written in the code of each model:
#
# | layout | models |
# |---|---|
# | interleaved, $2c$ and $2c+1$ | GPT-J (64 of 256), RoFormer, CodeGen, Cohere and Cohere 2, GLM, GLM-4 and GLM-4V, Helium, ERNIE 4.5, Llama 4 and DeepSeek-V2 (as complex numbers), DeepSeek-V3 (`rope_interleave`) |
# | half, $c$ and $c+n$ | LLaMA to Llama 3, Qwen and Qwen-VL, Gemma, Phi, GPT-NeoX, StableLM, Persimmon, gpt-oss, SmolLM3, ModernBERT, GLM-4.5 |
#
# Meta's own files of LLaMA are interleaved. Hugging Face's have the rows of each head reordered, as by
# `rope_convert_weights`. With partial RoPE, tell it how many components rotate:

# %%
H = 3  # heads of width 8, of which 4 components are rotated
tokens, W_q, W_k = np.split(rng.standard_normal((5 + 48, 6)), [5, 5 + 24])


def head_scores(W_q, W_k, layout):
    q, k = (np.swapaxes((tokens @ W.T).reshape(5, H, 8), 0, 1) for W in (W_q, W_k))
    q, k = (rope(y, np.arange(5), partial, layout) for y in (q, k))
    return q @ np.swapaxes(k, -1, -2)  # (H, L, L)


there = [rope_convert_weights(W, H, d=4) for W in (W_q, W_k)]
forgot = [rope_convert_weights(W, H) for W in (W_q, W_k)]  # as if all 8 were rotated
expected = head_scores(W_q, W_k, "interleaved")
assert np.allclose(head_scores(*there, "half"), expected, rtol=0, atol=1e-12)
print("without d off by", np.abs(head_scores(*forgot, "half") - expected).max().round(1))

# %% [markdown]
# ## QK-norm before or after RoPE
#
# **QK-norm** (`q_norm`, `k_norm`) divides queries and keys by their root mean square and multiplies them by a trained
# gain. In transformers 5.23.0:
#
# | mean over | gain | order | models |
# |---|---|---|---|
# | a head | for all heads | norm, RoPE | Qwen 3, Gemma 3, EXAONE 4, GLM-4.5 (`use_qk_norm`) |
# | the projection | per component | norm, RoPE | OLMo 2 and 3, MiniMax-M2 |
# | a head | for all heads | RoPE, norm | HunYuan ([exercise 3](#exercise-3-a-gain-after-the-rotation): not only distances count) |
# | a head | none | RoPE, norm | Llama 4 Scout's layers with RoPE, not [Maverick](https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/models/llama4/modeling_llama4.py#L331) |
#
# Does the order matter? A rotation $R$ keeps the length of a vector, so the division commutes with it. A gain $g$
# multiplies component by component, written $g\circ x$. It commutes if it is equal on both components of each pair, here in
# the half layout:
#
# $$R\,(g\circ x) = g\circ(R\,x)\quad\text{for all } x, R\qquad\Longleftrightarrow\qquad g_c = g_{c+n}$$

# %%
y, g = rng.standard_normal((2, 5, 8))
m = np.array([1, 10, 100, 1000, 3000])
ones, alike = np.ones(8), np.tile(g[0, :4], 2)


def both_orders(gain):
    before = rope(rms_norm(y, gain), m, layout="half")
    return np.abs(before - rms_norm(rope(y, m, layout="half"), gain)).max()


assert both_orders(ones) < 1e-12 and both_orders(alike) < 1e-12
print("a gain of its own for each component: off by", both_orders(g[0]).round(2))
for c in range(8):  # one component unlike its partner
    assert both_orders(np.where(np.arange(8) == c, 5, alike)) > 1e-3

# %% [markdown]
# *A common mistake* is to reorder the rows of $W_q$ and $W_k$ for another layout, but not the gain. Here [the package's
# Qwen 3](64_real_models.ipynb), tiny and with random weights, goes from the half layout to the interleaved one:

# %%
from pathlib import Path

folder = Path("../tests/golden/models/qwen3").resolve()
half, other = (load_model(folder, np.float64) for _ in range(2))
s, layers, ids = other.settings, other.parameters["layers"].values(), [[3, 1, 4, 1, 5]]
s.rope = s.rope._replace(layout="interleaved")
for layer in layers:
    for name, heads in (("W_q", s.H), ("W_k", s.G)):  # our matrices have heads in their columns
        layer[name] = rope_convert_weights(layer[name].T, heads, "interleaved").T
print("gain as it was: off by", np.abs(other.logits(ids) - half.logits(ids)).max().round(1))
for layer in layers:
    for name in ("norm_q", "norm_k"):
        layer[name] = rope_convert_weights(layer[name], 1, "interleaved")
assert np.allclose(other.logits(ids), half.logits(ids), rtol=0, atol=1e-12)

# %% [markdown]
# ### QK-norm over the whole projection, and tensor parallelism
#
# In OLMo 2 and 3 and MiniMax-M2 the gain is as long as the projection. It is reordered head by head, as the rows are:

# %%
flat = tokens @ (np.repeat([1, 2, 4], 8) * W_q.T)  # queries of three heads of different lengths
gain, rows = np.random.default_rng(7).standard_normal(24), rope_convert_weights(np.arange(24), H)


def turned_heads(normed, layout):
    return rope(normed.reshape(5, H, 8), m[:, None], layout=layout)


wanted = turned_heads(rms_norm(flat, gain), "interleaved")[..., rope_permutation(8)]
for order in (rows, rope_permutation(24)):  # the second: as if it were one wide head
    got = turned_heads(rms_norm(flat[:, rows], gain[order]), "half")
    assert (order is rows) == np.allclose(got, wanted, rtol=0, atol=1e-12)

# %% [markdown]
# With **tensor parallelism** each rank has some of the heads, and the mean is a sum over ranks, one number per token:
#
# $$\frac1{HK}\sum_{c}q_c^2 = \frac1{HK}\sum_{\text{ranks}}\;\sum_{c\text{ of the rank}}q_c^2$$

# %%
ranks = np.split(flat, 3, axis=1)  # one head each
squares = sum((x**2).sum(axis=1, keepdims=True) for x in ranks)  # the all-reduce
right = [x / np.sqrt(squares / (H * 8) + 1e-6) for x in ranks]
assert np.allclose(np.hstack(right), rms_norm(flat, np.ones(24)), rtol=0, atol=1e-12)
alone = [rms_norm(x, np.ones(8)) for x in ranks]  # without the sum: a norm per head
times = [np.linalg.norm(x) / np.linalg.norm(y) for x, y in zip(alone, right, strict=True)]
print("without the sum, queries are too long by", np.round(times, 1).tolist())
assert not np.allclose(alone, right, rtol=0.2, atol=0)

# %% [markdown]
# Without the sum, ranks of one head take means per head, as Qwen 3 does. Before the gain, all heads' queries are equally
# long. A closed [proposal](https://github.com/vllm-project/vllm/pull/39298) for vLLM called MiniMax-M2's sum unnecessary,
# and exllamav3 [added it](https://github.com/turboderp-org/exllamav3/pull/141). vllm-metal took means per head in OLMo 3,
# where [the gain did not fit](https://github.com/vllm-project/vllm-metal/issues/691).
#
# ### QK-norm and long contexts
#
# With a norm per head, gains $g^q$ and $g^k$ and the scale $1/\sqrt K$, no score exceeds a bound:
#
# $$|s_{ij}|\le\sqrt K\;\max_c|g^q_c|\;\max_c|g^k_c|$$

# %%
for gains in np.random.default_rng(8).uniform(-1, 1, (50, 2, 64)):
    gains[:, 3] = 1, 2  # both are largest at component 3
    x = np.vstack([rng.standard_normal((9, 64)), np.eye(64)[3]])
    q, k = (rope(rms_norm(x, gain), np.arange(10)) for gain in gains)
    bound = 8 * np.prod(np.abs(gains).max(axis=1))  # the last token reaches it
    assert np.isclose(np.abs(q @ k.T).max() / 8, bound, rtol=1e-4, atol=0)
for gain in (1, 1.5):
    row = [[8 * gain**2, *np.zeros(128_000)]]  # the best key against others that score 0
    print(f"gains {gain}: weight {attend(row, np.ones((128_001, 1)))[1].max():.3f}")

# %% [markdown]
# Without gains, at $K=64$, the best key gets 0.023 of the weight beside 128,000 keys that score 0. Yang et al. (2025,
# [arXiv:2501.18795](https://arxiv.org/abs/2501.18795)) compare three models of 8B. We know sections 2.2 and 3 from
# quotations: the one with QK-norm was the worst at finding a sentence among 65k tokens. Its weights were flatter, with less
# on the first ten tokens. Their hybrid has no QK-norm, nor has Cohere 2. But QK-norm does not exclude sinks. Gemma 3 270M
# has [both](82_real_cache.ipynb#entropy-by-length-in-a-trained-head):

# %%
from pe_numpy.book.trained import results

on_bos = [x for (row, _), x in results("entropy_by_length").items() if "1150 tokens, weight" in row]
print(f"weight on <bos>, 3 global layers, 3 texts: {min(on_bos):.2f} to {max(on_bos):.2f}")
assert len(on_bos) == 9 and min(on_bos) > 0.1

# %% [markdown]
# ## The base of each layer: local and global layers
#
# In a short window slow pairs barely rotate. In a long sequence they must tell large distances apart
# ([chapter 50](50_scaling.ipynb)). So Gemma 3 gives five **local** layers base 10,000, then a **global** one base $10^6$,
# with frequencies that the larger models also divide by 8. In ModernBERT the first layer and every third after it are
# global. Others leave RoPE out of some layers. The cell prints twelve layers of six models, as `rope_from_config` reads
# transformers' defaults, which the files of single models may change:

# %%
types = {"LLaMA": "llama", "Gemma 3": "gemma3_text", "ModernBERT": "modernbert",
         "Llama 4": "llama4_text", "SmolLM3": "smollm3", "Cohere 2": "cohere2"}  # fmt: skip


def base_of(config, layer):
    f = rope_from_config(config, layer).frequencies
    return 0 if f is None else float(round((f[1] / f[0]) ** -len(f)))  # ratio b^(-2/K)


configs = {name: {"model_type": t, "head_dim": 64} for name, t in types.items()}
bases = {name: [base_of(c, layer) for layer in range(12)] for name, c in configs.items()}
assert bases["Gemma 3"] == [1e6 if n % 6 == 5 else 1e4 for n in range(12)]
assert bases["ModernBERT"] == [1.6e5 if n % 3 == 0 else 1e4 for n in range(12)]
assert all([b == 0 for b in bases[n]] == [i % 4 == 3 for i in range(12)] for n in list(types)[3:])

# %% alt="The base of RoPE in layers 0 to 11 of six models. LLaMA has one base. Gemma 3 has a large one in layers 5 and 11, ModernBERT in 0, 3, 6 and 9. Llama 4, SmolLM3 and Cohere 2 have none in layers 3, 7 and 11."
plots.layers_of_models(bases)
plt.show()

# %% [markdown]
# Windows are masks ([chapter 12](12_attention_blocks.ipynb#sliding-window-attention-off-by-one)).
#
# *A common mistake* is to use one factor for all layers. Gemma 3's 4B model says
# `"rope_scaling": {"rope_type": "linear", "factor": 8.0}`, and means only the global layers. llama.cpp was reported to
# use it for both ([issue 14367](https://github.com/ggml-org/llama.cpp/issues/14367)), mlxcel for neither ([issue
# 1340](https://github.com/lablup/mlxcel/issues/1340), which says "Output stays fluent"). **Predict** $\theta_0$ of layers 4
# and 5.

# %% fold="output"
gemma3 = {"model_type": "gemma3_text", "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
for layer in (4, 5):
    f = rope_from_config(gemma3, layer).frequencies
    print(f"layer {layer}: {len(f)} pairs, theta_0 = {f[0]:.3f}, theta_1 = {f[1]:.6f}")
local, wide = (rope_from_config(gemma3, layer).frequencies for layer in (4, 5))
assert np.allclose(local, 1e4 ** (-np.arange(128) / 128), rtol=1e-13, atol=0)
assert np.allclose(wide, 1e6 ** (-np.arange(128) / 128) / 8, rtol=1e-13, atol=0)
assert all(rope_from_config(gemma3, layer).frequencies[0] == 1 for layer in range(5))

# %% [markdown]
# ### Layers without RoPE
#
# In Llama 4, SmolLM3, Cohere 2, and EXAONE 4 with windows, every fourth layer has no encoding. It still gets rough
# positions from its causal mask, and has no longest distance. The layers with RoPE tell near from far.
# Without an encoding in its three global layers, Gemma 3 270M loses little on three texts, but most of its skill to copy
# random words ([chapter 81](81_real_rope.ipynb#local-and-global-layers-a-mean-loss-hides-a-skill)). It was not trained so.
#
# Llama 4 multiplies the queries of the layers without RoPE with a temperature that grows with the
# position: `attention_temperature` ([chapter 51](51_extrapolation.ipynb)).
#
# *A common mistake* is to misread the list `no_rope_layers`: it has a **1 where RoPE is used**
# ([PR 37344](https://github.com/huggingface/transformers/pull/37344)).

# %%
listed = {"head_dim": 8, "rope_theta": 5e5, "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0]}
print([base_of(listed, layer) for layer in range(8)])
assert [base_of(listed, n) for n in range(8)] == [base_of(configs["Llama 4"], n) for n in range(8)]

# %% [markdown]
# In this book's `Model` ([chapter 62](62_model.ipynb)) such a pattern is a tuple of encodings, `(Rope(), Rope(), Rope(),
# Encoding())`, or of masks, `(Window(4096),) * 3 + (Causal(),)`. The layers take its entries in turn, again and again. These
# two together are Cohere 2. Llama 4 has `Tempered()` for `Encoding()` and `Chunk` for `Window`.
#
# ## From config.json to RoPE functions
#
# In `config.json` the config keys for RoPE have two spellings. The old one has the base on top and the rest in
# `rope_scaling`. The new one has everything in `rope_parameters`, or one such dictionary for each of the `layer_types`. `rope_from_config(config, layer, length)` reads both. It returns frequencies, the factor of queries and
# keys, the layout and a factor of the scores.

# %%
old = {"head_dim": 8, "rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 4}}
inner = {"rope_type": "linear", "rope_theta": 500.0, "factor": 4}
new = {"head_dim": 8, "rope_parameters": inner}
nested = {"head_dim": 8, "layer_types": ["full_attention", "sliding_attention"]}
nested["rope_parameters"] = {"full_attention": inner, "sliding_attention": {"rope_theta": 9.0}}
for config in (old, new, nested):
    print(rope_from_config(config).frequencies.round(6).tolist())
    expected = [500 ** (-2 * c / 8) / 4 for c in range(4)]
    assert np.allclose(rope_from_config(config).frequencies, expected, rtol=1e-13, atol=0)
assert rope_from_config(nested, 1).frequencies[0] == 1

# %% [markdown]
# | config key | function here | remark |
# |---|---|---|
# | `rope_theta`; `rotary_emb_base`, `global_rope_theta`, `local_rope_theta`, `rope_local_base_freq` | `rope_frequencies(d, base)` | the default comes from the model's class: $10^4$ for LLaMA, $2\cdot10^6$ for SmolLM3 |
# | `head_dim`, `hidden_size`/`num_attention_heads`, `global_head_dim` | $K$ | `head_dim` need not be the quotient |
# | `partial_rotary_factor`, `rotary_pct` | $p$: fewer frequencies | with `proportional`: zeros |
# | `rotary_dim`, `qk_rope_head_dim` | $r$: fewer frequencies | |
# | `rope_type` or `type`: `default` | `rope_frequencies` | `mrope` of old files also means this |
# | `linear`: `factor` | `linear_scaling` | |
# | `dynamic`: `factor` | `dynamic_ntk_scaling` | needs the length; $L_0$ is `max_position_embeddings` |
# | `yarn`: `factor`, `beta_fast`, `beta_slow`, `truncate`, `mscale`, `mscale_all_dim` | `yarn_scaling`, `yarn_attention_factor` | `attention_factor`, if given, replaces the formula |
# | `longrope` (once `su`): `short_factor`, `long_factor` | `longrope_scaling` | needs the length |
# | `llama3`: `factor`, `low_freq_factor`, `high_freq_factor` | `llama3_scaling` | |
# | `proportional`: `factor` | `proportional_frequencies` | |
# | `original_max_position_embeddings` | $L_0$ of `yarn`, `longrope`, `llama3` | on top, or among the parameters |
# | `mrope_section`, `mrope_interleaved` | `mrope_frequencies` | frequencies (3, n), [chapter 43](43_rope_grid.ipynb) |
# | `rope_interleave` | `layout` of `rope` | in DeepSeek-V3 and its kin; elsewhere the model's code decides |
# | `layer_types`, `sliding_window_pattern`, `global_attn_every_n_layers` | `layer`; `encoding=(...)` of `Model` | which layer is local |
# | `no_rope_layers`, `no_rope_layer_interval` | frequencies `None`; `Encoding()` | 1 where RoPE is used |
#
# $L_0$ is the length of the training context. Other config keys do not concern RoPE, and the function ignores them:
#
# | config key | here |
# |---|---|
# | `sliding_window`, `attention_chunk_size` | `window_mask`, `chunk_mask`; `mask=Window(w)` and `Chunk(c)` of `Model` |
# | `num_key_value_heads` | `n_kv_heads` of `Sizes` |
# | `attn_temperature_tuning`, `floor_scale`, `attn_scale` (Llama 4) | `attention_temperature`; `Tempered` |
# | `use_qk_norm` (Llama 4, GLM-4.5; Cohere's is a LayerNorm), no config key in Qwen 3, Gemma 3, HunYuan, OLMo 2 | `rms_norm` ([order](#qk-norm-before-or-after-rope)) |
# | `query_pre_attn_scalar` (Gemma 2 and 3) | its square root instead of $\sqrt K$; Gemma 4 has 1, without a config key |
#
# `mrope_section` counts pairs among those that *rotate*. GLM-4V rotates half of 128 components, Qwen3.5 a quarter of
# 256, and both deal 32 pairs out to time, row and column. Mind the word *interleaved*: in `mrope_interleaved` it refers to
# the axes, in a layout to the components, and these two models have opposite answers to both
# ([chapter 43](43_rope_grid.ipynb#a-common-mistake-two-meanings-of-interleaved-in-m-rope)).
#
# The function gives the five scaling formulas of [chapter 50](50_scaling.ipynb) the layer's parameters and width:

# %% fold="output"
show_source(rope_from_config)

# %% [markdown]
# ### Factors of queries, keys and scores (second reading)
#
# DeepSeek-V3 has a separate factor for its scores ([chapter
# 50](50_scaling.ipynb#deepseeks-mscale-and-mscale_all_dim-second-reading)). To use all four results, take a small
# Phi-4-mini. Three quarters of the components rotate, with LongRoPE (a list of divisors for short sequences, one for long
# ones) and its factor $a$.

# %%
phi = {"model_type": "phi3", "head_dim": 8, "partial_rotary_factor": 0.75, "rope_theta": 1e4,
       "max_position_embeddings": 64, "original_max_position_embeddings": 8}  # fmt: skip
phi["rope_scaling"] = {"type": "longrope", "short_factor": [1, 1, 1], "long_factor": [1, 2, 4]}
found = rope_from_config(phi, length=9)  # beyond 8: the long list
a2 = 1 + np.log(64 / 8) / np.log(8)  # the square of LongRoPE's factor
assert np.allclose([a2, found.attention_factor**2], 2, rtol=0, atol=1e-14)
q, k = rng.standard_normal((2, 9, 8))

# %% [markdown]
# Rotate, multiply the rotated components with $a$, take the product, and multiply it with the score factor $\beta$.
# $K$ counts all components of a query, in DeepSeek-V3 also 128 unrotated ones:
#
# $$s = \frac{\beta}{\sqrt K}\;\tilde q\cdot\tilde k\qquad
# \tilde q = \big(a\,R_i\,q_{\text{turned}},\; q_{\text{rest}}\big)$$


# %%
def scores_of(q, k, settings):
    f, a, layout, score_factor = settings
    if f is not None:
        factors = np.where(np.arange(len(q[0])) < 2 * len(f), a, 1)
        q, k = (factors * rope(y, np.arange(len(y)), f, layout) for y in (q, k))
    return score_factor / np.sqrt(len(q[0])) * (q @ k.T)


mine = scores_of(q, k, found)
for i, j in ((8, 8), (8, 3), (0, 5)):  # by hand, pair by pair
    total = q[i, 6:] @ k[j, 6:]  # not rotated: no factor
    for c, divisor in enumerate((1, 2, 4)):
        z = complex(q[i, c], q[i, c + 3]) * complex(k[j, c], -k[j, c + 3])
        total += a2 * (z * np.exp(1j * (i - j) * 1e4 ** (-2 * c / 6) / divisor)).real
    assert np.isclose(mine[i, j], total / np.sqrt(8), rtol=0, atol=1e-12)

# %% [markdown]
# *A common mistake* is to multiply all components by $a$. For proportional RoPE that is right, since its zeros count as
# rotated. Here the content would count $a^2 = 2$ times. Code that takes only the frequencies forgets $a$.
#
# A config key that the function doesn't know is refused by name: a wrong guess would be fluent and wrong. About a model's
# code it knows only what the lists in its module say. For any other model, look up what its code does beyond the
# configuration.

# %%
for config in (
    {**old, "rope_scaling": {"type": "dynamic", "factor": 2, "alpha": 1000.0}},
    {"head_dim": 8, "model_type": "unknown"},
    phi,
):
    try:
        rope_from_config(config)
    except ValueError as error:
        print(error)

# %% [markdown]
# ### gpt-oss: YaRN in windowed layers (second reading)
#
# [gpt-oss](https://github.com/openai/gpt-oss/blob/7b58334/gpt_oss/torch/model.py) has 64 query heads and 8 KV heads, no
# QK-norm, [a learned sink](12_attention_blocks.ipynb#learned-attention-sinks) per head, a window of 128 in even layers, and
# [YaRN](50_scaling.ipynb#yarns-ramp-paper-and-code) in all. **Predict**: how far do the pairs that YaRN divides by 32
# rotate within a window?

# %% fold="output"
gpt_oss = {"model_type": "gpt_oss", "head_dim": 64, "rope_theta": 150_000,
           "layer_types": ["sliding_attention", "full_attention"] * 12, "rope_scaling": {
               "rope_type": "yarn", "factor": 32, "original_max_position_embeddings": 4096,
               "beta_fast": 32, "beta_slow": 1, "truncate": False}}  # fmt: skip
(f, a, layout, _), full = (rope_from_config(gpt_oss, layer) for layer in (0, 1))
assert np.array_equal(f, full.frequencies)  # YaRN in both kinds of layers
once = rope_frequencies(64, 150_000)  # without YaRN
slow = np.isclose(f, once / 32, rtol=1e-9, atol=0)
for name, of in {"kept": f == once, "between": (f != once) & ~slow, "divided by 32": slow}.items():
    n = np.flatnonzero(of)
    print(f"{name:13} pairs {n[0]:2} to {n[-1]:2}, radians in a window: {127 * f[n[0]]:8.4f}",
          f"(before YaRN {127 * once[n[0]]:8.4f}), in the context: {131_071 * f[n[0]]:9.2f}")  # fmt: skip
assert [sum(f == once), sum(slow)] == [9, 14] and 131_071 * f[slow].max() < 2 * np.pi
print(f"{layout} layout, attention factor {a:.4f}")

# %% [markdown]
# These 14 pairs rotate by at most 0.0049 radians in a window, where they barely depend on the distance. Even at position
# 131,071 none has completed a turn. A window needs no longer context: `Olmo3Config` and Gemma 3 scale only full layers. In
# gpt-oss the attention factor also sharpens windowed layers.

# %% [markdown]
# ### Gated attention and sinks: Qwen3-Next (second reading)
#
# Weights sum to 1, so a head outputs a mean of values even if no key matters. Three things let it output almost 0: a sink
# token with the value 0, a learned sink $\alpha$ in the softmax (gpt-oss), or a gate. **Gated attention** (Qiu et al. 2025,
# [arXiv:2505.06708](https://arxiv.org/abs/2505.06708)) multiplies each head's output by a sigmoid, which mitigates
# attention sinks, its abstract says. In
# [Qwen3-Next](https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/models/qwen3_next/modular_qwen3_next.py)
# `q_proj` also makes the gate, a number per component. These layers, one in four, have QK-norm and rotate a quarter of
# 256 components. The others are [gated DeltaNet](39_recurrence.ipynb). With $\lambda=\log\sum_j e^{s_j}$ and $\bar o$ for
# plain attention, all three agree at one gate:
#
# $$\frac{e^{\alpha}\cdot 0+\sum_j e^{s_j}v_j}{e^{\alpha}+\sum_j e^{s_j}} = \sigma(\lambda-\alpha)\,\bar o$$

# %%
s, v = rng.standard_normal((1, 6)), 1 + rng.random((6, 4))  # no value is near 0
(plain, weights), lam = attend(s, v), np.log(np.exp(s).sum())
assert np.isclose(weights.sum(), 1, rtol=0, atol=1e-12)
for alpha in (0.0, 20.0):
    token = attend([[*s[0], alpha]], np.vstack([v, np.zeros(4)]))[0]
    sink = attend(s[None], v, sink=[alpha])[0][0]
    gate = 1 / (1 + np.exp(alpha - lam))
    assert np.allclose([token, sink], gate * plain, rtol=0, atol=1e-12)
    print(f"alpha {alpha:2.0f}: gate {gate:.1e}, largest output {token.max():.1e}")

# %% [markdown]
# The scores decide about a sink, for all components alike. The query's token decides about each component of a gate. A
# sink token also needs a place in the cache, a window that keeps it, and the value 0, which [Gemma's has
# not](82_real_cache.ipynb#the-sinks-value-vector-is-the-shortest).

# %% [markdown]
# ### Where transformers reads a configuration differently (second reading)
#
# Version 5.23.0 does three things differently:
#
# - `"truncate": false` of YaRN is lost when the parameters are nested by layer type: the code asks the outer
#   dictionary, and rounds.
# - A Phi-3 configuration with `"type": "su"` is refused, unless $L_0$ is among its RoPE parameters. `"yarn"` there
#   means LongRoPE, which the function here refuses.
# - `dynamic` remembers: after a longer sequence the larger base stays until a sequence shorter than $L_0$ comes.
#
# Otherwise `tests/test_golden.py` finds the two equal, for every type, and every model of this chapter's figures.

# %% [markdown]
# ## In short
#
# - **What does `partial_rotary_factor` 0.5 mean?** The first half of the components rotates like a separate head, with
#   $b^{-2c/r}$ for $r$ of them. If `rope_type` is `proportional` (Gemma 4), the first half of the *pairs of the whole head*.
#   [Partial and proportional RoPE](#partial-rope-and-proportional-rope-p-rope).
# - **Where is the base of a layer?** `rope_theta`, on top or in `rope_parameters`, perhaps per layer type. If missing, the
#   default of the model's class. Local layers: 10,000 in Gemma 3 (`rope_local_base_freq`) and ModernBERT.
#   [From config.json](#from-configjson-to-rope-functions), [bases](#the-base-of-each-layer-local-and-global-layers).
# - **What does `no_rope_layers` list?** The layers *with* RoPE: 1 where it is used, 0 where not.
#   [Layers without RoPE](#layers-without-rope).
# - **Which layout does a model have?** In Hugging Face's code half, $c$ with $c+n$, but GPT-J, Cohere, GLM-4 (not GLM-4.5),
#   Llama 4 and DeepSeek interleave. So do Meta's files of LLaMA. The configuration seldom says.
#   [Table of layouts](#interleaved-or-half-layout-which-model-has-which).
# - **Is QK-norm before or after RoPE, and over what?** Per head before RoPE in Qwen 3 and Gemma 3. Over the whole projection
#   in OLMo 2 and MiniMax-M2. After RoPE in HunYuan and Llama 4 Scout. A gain is reordered with the rows.
#   [QK-norm](#qk-norm-before-or-after-rope).
# - **Which test finds a wrong RoPE?** Compare scores at a distance, because at distance 0 wrong partners, bases and layouts
#   agree. Compare layer by layer, with a model that has each kind of layer.
#   [Wrong partners](#partial-rope-and-proportional-rope-p-rope),
#   [kinds of layers](#the-base-of-each-layer-local-and-global-layers).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 42` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 42_rope_in_models.py` checks yours.
#
# ### Exercise 1: GPT-NeoX as proportional RoPE
#
# Pythia-160m, a small GPT-NeoX, rotates a quarter of 64 components with base 10,000. Which base must proportional RoPE
# have, so that the frequencies are the same? Which components must change places in the half layout?
#
# <details><summary>Hint 1</summary>
#
# $b'^{\,p} = b$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Partial RoPE pairs $c$ with $c + 8$; proportional RoPE pairs $c$ with $c + 32$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The base is $10^{16}$, and components 8 to 15 and 32 to 39 change places.
#
# ```python
# neox = proportional_frequencies(64, 0.25, 1e16)
# assert np.allclose(neox[:8], rope_frequencies(16), rtol=1e-12, atol=0)
# places = np.arange(64)
# places[8:16], places[32:40] = np.arange(32, 40), np.arange(8, 16)
# v = rng.standard_normal((3, 64))
# turned = rope(v[:, places], [1, 5, 9], neox, "half")[:, places]
# assert np.allclose(turned, rope(v, [1, 5, 9], rope_frequencies(16), "half"), rtol=0, atol=1e-9)
# ```
#
# </details>
#
# ### Exercise 2: The smallest test model with each kind of layer
#
# How many layers must a test model of Gemma 3, of Llama 4 and of ModernBERT have, so that each kind of layer is in
# it? Count with `rope_from_config`.
#
# <details><summary>Hint 1</summary>
#
# Two kinds of layers differ in `base_of`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Look for the first layer that differs from layer 0.
#
# </details>
#
# <details><summary>Solution</summary>
#
# They need six, four and two.
#
# ```python
# def least(name):
#     return next(n for n in range(12) if bases[name][n] != bases[name][0]) + 1
#
# assert [least(name) for name in ("Gemma 3", "Llama 4", "ModernBERT")] == [6, 4, 2]
# ```
#
# </details>
#
# ### Exercise 3: A gain after the rotation
#
# HunYuan has a norm with a gain *after* the rotation. Show with one pair that its scores don't depend only on the distance.
#
# <details><summary>Hint 1</summary>
#
# Take $q = k = (1, 0)$ and the gain $(2, 1)$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Compare the positions 0 and 0 with 1 and 1.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The norm doubles the square of this length. At distance 0 the product is $8\cos^2 i\theta + 2\sin^2 i\theta$, which
# depends on $i$.
#
# ```python
# pair = np.array([[1.0, 0.0]] * 2)
# after = rms_norm(rope(pair, [0, 1]), [2.0, 1.0])
# both = (after**2).sum(axis=1)
# assert np.allclose(both, [8, 8 * np.cos(1) ** 2 + 2 * np.sin(1) ** 2], rtol=0, atol=1e-4)  # eps
# assert both[0] - both[1] > 4
# ```
#
# </details>
#
# ## In practice
#
# | scheme | who uses it | trained, cached | cost | verdict |
# |---|---|---|---|---|
# | partial | GPT-J (64 of 256), GPT-NeoX, StableLM and Qwen3-Next (1/4), Persimmon and GLM (1/2), Phi-4-mini (3/4) | nothing; rotated keys are safe, except LongRoPE's | less than the whole | some components free of position |
# | proportional | global layers of Gemma 4 (1/4) and LFM3 (1/2) | same | same | partial RoPE with base $b^p$: no slow pairs |
# | two bases | Gemma 3 and 4, ModernBERT | same; a local layer of a decoder needs only its last $w$ keys | two tables of angles | short and long range, each with its own frequencies |
# | none in every fourth | Llama 4, SmolLM3, Cohere 2, EXAONE 4 with windows | same | less | no longest distance |
#
# - DeepSeek-V4 rotates the *last* 64 of 512 components, and the function refuses it.
#
# ## Further reading
#
# - Barbero et al. 2024, p-RoPE, [arXiv:2410.06205](https://arxiv.org/abs/2410.06205).
# - transformers,
#   [`modeling_rope_utils.py`](https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/modeling_rope_utils.py),
#   and [google-deepmind/gemma](https://github.com/google-deepmind/gemma/tree/7691fd4).
#
# **Cards**: [partial_rope](CARDS.md#partial_rope), [proportional_rope](CARDS.md#proportional_rope).
