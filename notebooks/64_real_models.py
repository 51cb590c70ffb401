# %% [markdown]
# # 64. GPT-2, LLaMA and T5 in NumPy: loading real weights
#
# *How far is your own Transformer from GPT-2, LLaMA or T5, and which small differences count?*
#
# 30 minutes. Needs [33 T5 relative position bias, and TUPE](33_t5.ipynb), [42 RoPE in released models: rope_theta, partial rotary, config.json](42_rope_in_models.ipynb), [63 KV cache, sampling, beam search, speculative decoding](63_decoding.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Released language models differ from the Transformer of the earlier chapters,
# but in surprisingly few choices. You open a model's files, read the weights into NumPy, and change
# one choice after another until your own model computes what GPT-2 and LLaMA compute. Then you see
# what other families change, and how small the error of a wrong setting can look. At the end you can
# run a released model and judge whether a reimplementation is right.

# %% fold="input" alt="A grid of tiny models by ten parts, filled where a model has the part. RoPE goes with gates and with norms without a shift, except for GPT-NeoX and RoFormer. GPT-2, BERT and ViT have tables, biases and shifts. BLOOM, MPT and T5 have one number per distance."
from pathlib import Path

import matplotlib.pyplot as plt

from pe_numpy import load_model
from pe_numpy.book.plots import real_models as plots

SHELF = Path("../tests/golden/models").resolve()  # tiny, of random weights, written by transformers
found = {folder.name: plots.parts_of(load_model(folder)) for folder in sorted(SHELF.iterdir())}
plots.parts_of_models(found)
plt.show()

# %% [markdown]
# ## Checkpoint files: config.json and safetensors
#
# The figure above shows which of ten parts each supported model has. "A number per distance" is a
# distance bias, and "vectors per distance" are relative position vectors. A "shift" is the bias
# that a norm adds. A "gate" belongs to the feed-forward network, and "windows" are sliding windows.
# "Norms behind, too" means norms that also come after a sublayer.
#
# A released model has two files. `config.json` contains its sizes and choices, and
# `model.safetensors` its numbers. The second begins with eight bytes, the length $n$ of a header.
# Then come $n$ bytes of JSON, and then the numbers of one tensor after another.

# %%
from dataclasses import replace

import numpy as np

from pe_numpy import Model, decode, llama3_scaling, load_weights, rope_frequencies, split_fused
from pe_numpy.book.show import show_source
from pe_numpy.models import gemma2, llama
from pe_numpy.transformer.encodings import Learned, Rope, Sinusoidal

# %%
import json

raw = (SHELF / "llama" / "model.safetensors").read_bytes()
n = int.from_bytes(raw[:8], "little")
header = json.loads(raw[8 : 8 + n])
header.pop("__metadata__")
name, entry = next(iter(header.items()))
print(f"{len(raw)} bytes: 8, {n} of header, {len(raw) - 8 - n} of {len(header)} tensors")
print(name, entry)
begin, end = entry["data_offsets"]
numbers = np.frombuffer(raw[8 + n + begin : 8 + n + end], "<f4").reshape(entry["shape"])
tensors = load_weights(SHELF / "llama")
assert np.array_equal(tensors[name], numbers) and list(tensors) == list(header)

# %%
show_source(load_weights)

# %% [markdown]
# `load_weights` reads one file, or several that an index lists, and avoids copies where it can.
# Such arrays are views of the file. It refuses a file whose size is not right to the byte.
# **bfloat16**, which NumPy does not support, is the upper half of a float32:
#
# $$\text{float32 bits} = 2^{16}\cdot\text{bfloat16 bits}$$

# %%
bits = np.array([0x3F80, 0xC000, 0x4049], "<u2")  # 1, -2, and pi as bfloat16 has it
wide = (bits.astype("<u4") << 16).view("<f4")
print(wide.tolist())
assert wide.tolist() == [1.0, -2.0, 3.140625]
for b, x in zip(bits.tolist(), wide, strict=True):
    assert int(np.float32(x).view("<u4")) == 2**16 * b

# %% [markdown]
# Nothing in the file says which function its numbers belong to. PyTorch's linear layers are stored
# (out, in), so $W$ must be transposed. GPT-2's are (in, out), like ours. `load_model` reads both
# files and asks the module of the model's family, its `page`, where each tensor goes. Each tensor
# must be used once and each parameter filled once, or the function raises an error. A page may name
# tensors to ignore, such as stored masks. In `MAY_LACK` it names output heads that may be absent
# because they are tied to the embedding. A model without any head has no logits, but its `hidden`
# gives the vectors that a head would read.

# %%
show_source(load_model)

# %% [markdown]
# ## Quantized weights: a GGUF file (second reading)
#
# llama.cpp keeps a whole model in one **GGUF** file: configuration, tokenizer and weights. The
# weights are **quantized**: they come in blocks, and the numbers of a block share a scale. In a
# block of type Q8_0, 32 numbers share the scale $d$, a float16, and each is stored as a whole
# number $q_n$ of 8 bits:
#
# $$x_n\approx d\,q_n,\qquad d=\frac{\max_n|x_n|}{127},\qquad q_n=\text{round}(x_n/d)$$
#
# **Predict**: how many bits does a number take, and how far off can it be?

# %% fold="output"
from pe_numpy.models.gguf import q4_k, q8_0

x = np.random.default_rng(0).standard_normal(32).astype(np.float32)
d = (np.abs(x).max() / 127).astype(np.float16)
q = np.round(x / d.astype(np.float32)).astype(np.int8)
block = np.frombuffer(d.tobytes() + q.tobytes(), np.uint8)
back = q8_0(block[None])[0]
print(f"{8 * block.size / x.size} bits per number; off by up to {np.abs(back - x).max() / d:.2f} d")
assert block.size == 34 and np.array_equal(back, d.astype(np.float32) * q)
assert np.abs(back - x).max() <= 0.501 * d  # half a step; d itself is rounded

# %% [markdown]
# Q4_K has 144 bytes for 256 numbers in eight groups. A number is $x=d\,s\,q-m\,t$, where $q$ has 4
# bits, and each group has a scale $s$ and a minimum $t$ of 6 bits.

# %%
show_source(q8_0, q4_k)
print(f"Q4_K: {8 * 144 / 256} bits per number")
assert q4_k(np.zeros((1, 144), np.uint8)).shape == (1, 256)

# %% [markdown]
# A GGUF file is not merely the checkpoint in another format. For LLaMA, llama.cpp's converter
# reorders the rows of $W_q$ and $W_k$, because it rotates neighbours
# ([chapter 40](40_rope_derived.ipynb)). For Gemma it stores the gains as $1+w$, and for GPT-2 it
# transposes matrices. `load_model` undoes this for five families. `pe_numpy/models/llama_cpp.py`
# names each converter by commit.

# %%
folder, file = load_model(SHELF / "llama"), load_model(SHELF.parent / "gguf" / "llama.gguf")
ids = [[3, 1, 4, 1, 5]]
assert np.allclose(file.logits(ids), folder.logits(ids), rtol=0, atol=1e-5)
for name in ("W_q", "W_v"):
    held = [m.parameters["layers"]["0"][name] for m in (folder, file)]
    assert np.array_equal(*held)

# %% [markdown]
# ## From this book's Transformer to GPT-2
#
# Take the `Model` of [chapter 62](62_model.ipynb), with the choices of 2017 as far as a decoder can
# have them without an encoder. Fill it with the weights of a GPT-2, and compare its logits with the
# logits that the transformers library computed. Our GPT-2 has 2 layers and random weights. The
# architecture is GPT-2's, but the released weights are half a gigabyte.


# %%
def recorded(name):
    """What transformers made of this model: inputs and logits."""
    with np.load(SHELF / name / "golden.npz") as file:
        return {key: file[key] for key in file.files}


def error(logits, expected):
    """Largest difference, relative to the largest logit."""
    return np.abs(logits - expected).max() / np.abs(expected).max()


# %%
gpt2, g = load_model(SHELF / "gpt2", np.float64), recorded("gpt2")
layers = {}
for n, w in gpt2.parameters["layers"].items():
    names = [f"{x}_{part}" for x in "Wb" for part in "qkv"]
    parts = [*split_fused(w["W_qkv"], "q|k|v", 3), *split_fused(w["b_qkv"], "q|k|v", 3)]
    look = dict(zip(names, parts, strict=True)) | {"W_o": w["W_o"], "b_o": w["b_o"]}
    layers[n] = {"attention": look, "attention_norm": w["norm_1"], "encoding": {}}
    layers[n] |= {"feed_forward": w["network"], "feed_forward_norm": w["norm_2"]}
table, last = {"table": gpt2.parameters["positions"]}, gpt2.parameters["norm"]
stack = {"layers": layers, "shared": {}}
ours = {"embedding": gpt2.parameters["embedding"]}  # no "output": the embedding serves, too

# %% [markdown]
# Now change one choice after another. Two of them bring parameters along: the table of positions,
# and the final norm of a stack in which the norm comes first. **Predict**: does the error fall a
# little with each?

# %% fold="output"
model = Model(3, Sinusoidal(), norm="post")
to_gpt2 = {"the choices of 2017": {}, "a table of positions": {"encoding": Learned(32)}}
to_gpt2 |= {"embedding not scaled": {"scale": 1.0}, "norm first": {"norm": "pre"}}
to_gpt2 |= {"GELU": {"activation": "gelu"}, "its tanh form": {"activation": "gelu_tanh"}}
brought = {"a table of positions": {"shared": table}, "norm first": {"norm": last}}
steps = []
for name, change in to_gpt2.items():
    model, stack = replace(model, **change), {**stack, **brought.get(name, {})}
    logits = decode({**ours, "decoder": stack}, model, g["tokens"])
    steps.append((name, error(logits, g["logits"])))
    print(f"{name:22}", f"{steps[-1][1]:.0e}" if steps[-1][1] > 1e-12 else "below 1e-12")
assert steps[-1][1] < 1e-12 < 1e-5 < steps[-2][1]

# %% [markdown]
# It does not. Until the norm comes first, the error is larger than the largest logit. A model that
# is nearly GPT-2 computes something else. The last step, the form of GELU, is the one that a
# careless test would miss.
#
# ## From this book's Transformer to LLaMA
#
# Now do the same with a LLaMA of 4 query heads and 2 KV heads (`num_key_value_heads`). Its
# frequencies are stretched in bands, as in LLaMA 3.1 ([chapter 50](50_scaling.ipynb)). Where a
# choice shows in the parameters, we change the parameters. LLaMA's norms have no bias, and our
# norms without a bias are RMS norms. In the first step zeros replace the biases. Without an
# "output" the embedding serves as output head.

# %%
llama_model, h = load_model(SHELF / "llama", np.float64), recorded("llama")
layers = {}
for n, w in llama_model.parameters["layers"].items():
    norms = {
        f"{part}_norm": {"gain": w[f"norm_{m}"], "bias": np.zeros(16)}
        for m, part in ((1, "attention"), (2, "feed_forward"))
    }
    look = {f"W_{part}": w[f"W_{part}"] for part in "qkvo"}
    layers[n] = {"attention": look, "feed_forward": w["network"], "encoding": {}, **norms}
last = {"gain": llama_model.parameters["norm"], "bias": np.zeros(16)}
tied = {"embedding": llama_model.parameters["embedding"]}
tied |= {"decoder": {"layers": layers, "shared": {}, "norm": last}}
print(llama_model.config["rope_parameters"])


# %%
def bands(K, length):
    return llama3_scaling(rope_frequencies(K, 100.0), 4, trained_length=8)


def without_biases(tree):
    """The same parameters, norms without their biases."""
    if not isinstance(tree, dict):
        return tree
    return {name: without_biases(part) for name, part in tree.items() if name != "bias"}


rms = without_biases(tied)
whole = {**rms, "output": llama_model.parameters["head"]}

# %% fold="output"
model = Model(4, scale=1.0, activation="gelu_tanh")  # GPT-2's choices, beside the gate
to_llama = {"GPT-2's, without places": (tied, {}), "RMS norm": (rms, {})}
to_llama |= {"SiLU": (rms, {"activation": "silu"}), "a head of its own": (whole, {})}
to_llama |= {"RoPE, neighbours": (whole, {"encoding": Rope(100.0)})}
to_llama |= {"RoPE, halves": (whole, {"encoding": Rope(100.0, "half")})}
to_llama |= {
    "bands": (whole, {"encoding": Rope(100.0, "half", bands)}),
    "eps": (whole, {"eps": 1e-5}),
}
for name, (ours, change) in to_llama.items():
    model = replace(model, **change)
    steps.append((name, error(decode(ours, model, h["tokens"]), h["logits"])))
    print(f"{name:24} {steps[-1][1]:.0e}")
assert steps[-1][1] < 1e-6 < 1e-5 < steps[-2][1]

# %% alt="Largest error of the logits after each step, on a logarithmic axis. It is 0.1 or more for all but the last two steps of each model. Before the last, with the wrong form of GELU or the wrong eps, it is between 1e-5 and 1e-3; then below 1e-6, for GPT-2 at the left edge or beyond."
plots.errors_of_steps([(name, max(e, 1e-8)) for name, e in steps])
plt.show()

# %% [markdown]
# The `Model` of this book can also be LLaMA, including the bands. These two, and families that
# `Model` cannot represent, are the **supported models**. Each family has one module of plain
# functions without options, written with the functions of earlier chapters. This is all that
# LLaMA's module computes:

# %%
show_source(llama.hidden, llama.logits)
assert error(llama_model.logits(h["tokens"]), h["logits"]) < 1e-6

# %% [markdown]
# `turn` is `rope` with the settings of `config.json` ([chapter 42](42_rope_in_models.ipynb)). The
# context contains the positions and which tokens are padding. A KV cache is a context that
# remembers, as in [chapter 63](63_decoding.ipynb).
#
# ## Supported models: what each family changes
#
# | module | beside GPT-2 or LLaMA | positions | scores times | chapters |
# |---|---|---|---|---|
# | `gpt2` | | table | $1/\sqrt K$ | 21 |
# | `llama` (also Mistral: a sliding window) | | RoPE, halves | $1/\sqrt K$ | 40, 50 |
# | `qwen2`, `qwen3` | biases of q, k, v; RMS norm of each q and k | RoPE, halves | $1/\sqrt K$ | 42 |
# | `gemma2`, `gemma3` | norms on both sides, gains $1+w$, windows, soft caps or norms of q and k | RoPE; Gemma 3: two bases | $1/\sqrt{\text{a number of its own}}$ | 12, 42 |
# | `phi3` | fused projections | LongRoPE | $1/\sqrt K$ | 50 |
# | `gpt_neox` (Pythia) | both sublayers read one $x$ | RoPE on a quarter | $1/\sqrt K$ | 42 |
# | `bloom` | a norm of the embedding | ALiBi | $1/\sqrt K$ | 35 |
# | `mpt` | no biases, not even in norms | ALiBi | $1/\sqrt K$ | 35 |
# | `deepseek` (V2, V3) | latent keys (MLA), experts | RoPE beside it, YaRN | $1/\sqrt{d_n+d_r}$ times a factor | 44 |
# | `t5` | encoder, decoder, RMS norm, no biases | buckets | 1 | 33 |
# | `whisper` | reads sound through two convolutions | sinusoids, then a table | $1/\sqrt K$ | 25 |
# | `bert`, `roformer` | norm last, token types | table; RoPE, neighbours | $1/\sqrt K$ | 21, 40 |
# | `deberta` (v2, v3) | norm last, a convolution in v2 | rows by bucket | $1/\sqrt{3K}$ | 34 |
# | `xlnet` | norm last, segments | sinusoids of distances | $1/\sqrt K$ | 32 |
# | `vit` | reads patches of images | table, resized for other sizes | $1/\sqrt K$ | 25, 38 |
#
# $K$ is the head dimension, `head_dim`. "Halves" and "neighbours" are the half-split and the
# interleaved layout of RoPE's pairs.
#
# ### Fused QKV projections: the order of queries, keys, values
#
# Many files store one matrix for queries, keys and values. **In which order?** With $H=2$ heads of
# width $K=1$, columns 0 to 5 of the fused projection are

# %%
columns = np.arange(6)
for order in ("q|k|v", "H3K"):
    q, k, v = split_fused(columns, order, n_heads=2)
    print(f"{order}: q {q.astype(int)}, k {k.astype(int)}, v {v.astype(int)}")
q, k, v = split_fused(columns[:4], "q|k|v", n_heads=2, n_kv_heads=1)  # grouped, as Phi-3 stores it
assert (q.tolist(), k.tolist(), v.tolist()) == ([0, 1], [2], [3])
show_source(split_fused)

# %% [markdown]
# *A common mistake* is to read GPT-NeoX and BLOOM as if they were GPT-2. Every shape is right. Give
# the module a matrix whose columns are in GPT-2's order, and look at the logits:

# %%
for name in ("gpt_neox", "bloom"):
    m, own = load_model(SHELF / name, np.float64), recorded(name)
    changed = {**m.parameters, "layers": dict(m.parameters["layers"])}
    for n, w in changed["layers"].items():
        wrong = np.concatenate(split_fused(w["W_qkv"], "H3K", m.settings.H), axis=-1)
        changed["layers"][n] = {**w, "W_qkv": wrong}
    moved = m.replace(parameters=changed).logits(own["tokens"])
    print(f"{name}: {error(moved, own['logits']):.2f} of the largest logit")
    assert error(m.logits(own["tokens"]), own["logits"]) < 1e-6 < 0.1 < error(moved, own["logits"])

# %% [markdown]
# ### Parallel attention and feed-forward (GPT-NeoX)
#
# In GPT-NeoX attention and feed-forward network read the same $x$, each through its own norm:
#
# $$x' = x + \mathrm{attention}(\mathrm{norm}_1(x)) + \mathrm{network}(\mathrm{norm}_2(x))$$
#
# Both can be computed in parallel. The result differs from computing one after the other:

# %%
m, own = load_model(SHELF / "gpt_neox", np.float64), recorded("gpt_neox")
m.settings.parallel = False
print(f"one after the other: {error(m.logits(own['tokens']), own['logits']):.2f}")
m.settings.parallel = True
assert error(m.logits(own["tokens"]), own["logits"]) < 1e-6

# %% [markdown]
# ### Soft-capped scores and the embedding scale (Gemma 2)
#
# Gemma 2 bends its scores (after the scale and before the mask) and its logits, so that none
# exceeds the cap $c$.
#
# $$\mathrm{cap}(s) = c\,\tanh\frac sc$$
#
# Its embedding is multiplied by $\sqrt D$, as in the paper of 2017 ($D$ is the width of the model).
# But the factor is rounded to the dtype of the weights, mostly the few bits of bfloat16:

# %%
from pe_numpy.models.page import rounded

s = np.array([-1e6, -60.0, 0.0, 1.0, 60.0])
print(gemma2.soft_cap(s, 50.0).round(3).tolist())
for a, b in zip(s, gemma2.soft_cap(s, 50.0), strict=True):
    assert np.isclose(b, 50 * (1 - 2 / (np.exp(2 * a / 50) + 1)), rtol=0, atol=1e-9)  # tanh
for D, as_used in ((640, 25.25), (1152, 34.0), (2304, 48.0), (3072, 55.5)):
    bits = np.float32(D**0.5).view("<u4") + np.uint32(0x8000)  # half of the last bit that stays
    near = ((bits >> 16) << 16).view("<f4")
    print(f"D {D}: {D**0.5:.4f}, in bfloat16 {near}")
    assert near == as_used == rounded("gemma2", {"dtype": "bfloat16"}, D**0.5)

# %% [markdown]
# ### Scores without a scale (T5)
#
# T5 does not divide its scores. This loses nothing, because $W_q$ may contain the factor. But if
# you divide anyway, you get a different model. The same is true if you forget the $1/\sqrt D$ in
# front of a tied head:

# %%
m, own = load_model(SHELF / "t5", np.float64), recorded("t5")
read = {key: own[key] for key in ("tokens", "source", "source_real")}


def scaled(tree, factor, name="W_q"):
    """The same parameters, each matrix of this name times a factor."""
    if not isinstance(tree, dict):
        return tree
    return {k: factor * x if k == name else scaled(x, factor, name) for k, x in tree.items()}


divided = m.replace(parameters=scaled(m.parameters, m.settings.K**-0.5))
print(f"divided by sqrt(K): {error(divided.logits(**read), own['logits']):.2f}")
assert error(m.logits(**read), own["logits"]) < 1e-5 < 0.1

# %% [markdown]
# ## How small the error of a wrong setting is
#
# Change one setting at a time, on models that are otherwise right.


# %%
def moved(name, **settings):
    """Error of a supported model with some settings changed."""
    m, own = load_model(SHELF / name, np.float64), recorded(name)
    for key, value in settings.items():
        setattr(m.settings, key, value)
    return error(m.logits(own["tokens"]), own["logits"])


# %% [markdown]
# **Predict**: which moves the logits least?

# %% fold="output"
mistakes = {"eps 1e-5 for 1e-4 (Qwen 3)": moved("qwen3", eps=1e-5)}
mistakes |= {"GELU in its tanh form (GPT-NeoX)": moved("gpt_neox", activation="gelu_tanh")}
mistakes |= {"no soft cap of scores (Gemma 2)": moved("gemma2", score_cap=1e9)}
mistakes |= {"scores times 1/sqrt(K) (Gemma 2)": moved("gemma2", scalar=6)}
mistakes |= {"embedding not scaled (Gemma 2)": moved("gemma2", embedding_scale=1.0)}
mistakes |= {"no windows (Mistral)": moved("mistral", window=None)}
for name, e in mistakes.items():
    print(f"{name:34} {e:.0e}")
assert all(e > 1e-5 for e in mistakes.values()) and moved("qwen3") < 1e-6

# %% [markdown]
# The eps moves them least, then the form of GELU. This Qwen's eps is $10^{-4}$. Between the usual
# $10^{-5}$ and $10^{-6}$ the difference is smaller still. A comparison that allows $10^{-3}$
# detects neither mistake. This is why all of these are compared to $10^{-5}$ of the largest logit,
# with the sums in float64.
#
# ## Running a model with wrong positions
#
# With `model.replace(places=function)` you can give a supported model different positions from the
# true ones, while its masks stay right. **Predict**: if all positions grow by 7, which logits
# change, GPT-2's, LLaMA's or BLOOM's?

# %% fold="output"
ways = {"shifted by 7": lambda p: p + 7, "all zero": np.zeros_like, "reversed": lambda p: 8 - p}
print(f"{'':14}" + "".join(f"{way:>14}" for way in [*ways, "no encoding"]))
for name in ("gpt2", "llama", "bloom"):
    m, own = load_model(SHELF / name, np.float64), recorded(name)
    told = [m.replace(places=way) for way in ways.values()]
    e = [
        error(each.logits(own["tokens"]), own["logits"]) for each in (*told, m.without_positions())
    ]
    print(f"{name:14}" + "".join(f"{x:14.0e}" for x in e))
    assert (e[0] < 1e-6) == (name != "gpt2") and min(e[1:]) > 0.05
    assert np.isclose(e[1], e[3], rtol=1e-9, atol=0) == (name != "gpt2")

# %% [markdown]
# Only GPT-2's logits change, because it has learned a separate vector for each row. The other two
# models depend on differences. For them all zeros *are* no encoding. In GPT-2 row 0 has a meaning.
# Those models are tiny and random. What a trained one loses, Gemma 3 270M, is in [chapter
# 81](81_real_rope.ipynb#wrong-position-ids-a-shift-is-free-wrong-order-is-expensive):

# %%
from pe_numpy.book.trained import changes

for way in ("all equal", "reversed", "in a random order", "times 2.0"):
    print(
        f"positions {way:18}", *(f"{x:+.1f}" for x in changes("told", way)), "nats on three texts"
    )
    assert min(changes("told", way)) > 0.5

# %% [markdown]
# You can do the same from the command line, with a folder as it is downloaded:
#
# ```
# python -m pe_numpy run FOLDER "Once upon a time" --steps 50 --temperature 0.8 --top-k 40
# python -m pe_numpy run FOLDER "Once upon a time" --positions shift=100
# python -m pe_numpy run FOLDER "Once upon a time" --encoding none --attention heads.png
# python -m pe_numpy run FOLDER "Once upon a time" --rope-theta 1e6 --scaling yarn:4
# ```
#
# The tiny models here have no words, so `--ids` gives them numbers. The number 2 ends a text:

# %%
from pe_numpy.__main__ import main

for options in ([], ["--positions", "shift=100"], ["--positions", "reverse"]):
    main(["run", str(SHELF / "llama"), "3 1 4 1 5", "--ids", "--steps", "8", *options])

# %% [markdown]
# ## Comparison with reference implementations (second reading)
#
# Every model module, and the functions counted below, were compared with other people's code. The
# tests write a table of the results, `ledger.csv`, and a further test compares it with the
# committed one. Errors are relative to the largest number that a test compares.

# %%
import csv

with open("results/ledger.csv", encoding="utf-8") as file:
    ledger = list(csv.DictReader(file))
models = [row for row in ledger if row["file"].startswith("models/")]
for row in models:
    print(
        f"{row['file'][7:]:18} {row['code'].split(':')[1]:34} {row['numbers']:>6} {row['error']:>7}"
    )
assert all(float(row["error"]) < 5e-5 for row in models)

# %%
import pe_numpy

others = {row["release"].split()[0] for row in ledger}
seen = {name for row in ledger for name in row["functions"].split()} - {
    row["functions"] for row in models
}
print(f"{len(ledger)} golden files, {len(seen)} public functions, {len(models)} models;")
print("code of " + ", ".join(sorted(others)))
worst = max(float(row["error"]) for row in ledger if row not in models)
print(f"largest error of a function: {worst:.0e}")
assert worst < 1e-5 and seen <= set(pe_numpy.__all__)

# %% [markdown]
# ## In short
#
# - **How far is the Transformer of this book from GPT-2?** Four choices differ: norm first,
#   positions from a table, an unscaled embedding, and GELU in its tanh form. With them our `Model`
#   gives GPT-2's logits. [To GPT-2](#from-this-books-transformer-to-gpt-2)
# - **And from LLaMA?** Six more differ: RMS norm, no biases, a gate with SiLU, half-split RoPE,
#   often fewer KV heads, and mostly an output head that is not tied.
#   [To LLaMA](#from-this-books-transformer-to-llama)
# - **In which order do fused projections store q, k, v?** GPT-2, Phi-3 and MPT store all queries,
#   then all keys, then all values. GPT-NeoX and BLOOM go head by head. The wrong order has the
#   right shapes. [Fused QKV projections](#fused-qkv-projections-the-order-of-queries-keys-values)
# - **Which models do not divide scores by $\sqrt K$?** T5 divides by nothing, Gemma 2 and 3 by
#   $\sqrt{\texttt{query\_pre\_attn\_scalar}}$ (mostly $K$ itself), and DeBERTa by $\sqrt{3K}$.
#   DeepSeek also multiplies by a factor from YaRN.
#   [Supported models](#supported-models-what-each-family-changes)
# - **How small a difference is a mistake?** The wrong form of GELU moves logits by $2\cdot10^{-4}$
#   of the largest, and the wrong eps by less than half of that. Compare to $10^{-5}$, in float64.
#   [Wrong settings](#how-small-the-error-of-a-wrong-setting-is)
# - **Can I run a released model?** Yes, with `python -m pe_numpy run FOLDER "text"`, also with wrong
#   positions. [Running a model](#running-a-model-with-wrong-positions)

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 64` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 64_real_models.py` checks yours.
#
# ### Exercise 1: A missing shard
#
# Drop one tensor of the tiny GPT-2 that `MAY_LACK` does not name, and fill its page. What does the
# error say?
#
# <details><summary>Hint 1</summary>
#
# `pe_numpy.models.load.fill(page, table, tensors)` is what `load_model` calls; the table is
# `page.weights(settings)`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Use `gpt2.page` and `gpt2.settings`.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# from pe_numpy.models.load import fill
#
# tensors = dict(load_weights(SHELF / "gpt2"))
# lost = next(iter(tensors))
# del tensors[lost]
# try:
#     fill(gpt2.page, gpt2.page.weights(gpt2.settings), tensors)
#     raise AssertionError("it was not missed")
# except ValueError as problem:
#     assert "lack 1 tensors" in str(problem) and lost in str(problem)
# ```
#
# </details>
#
# ### Exercise 2: The attention scale in the weights
#
# T5's scores are not divided, but LLaMA's are. Change LLaMA's parameters so that a module without
# the division gives its logits. Which matrix do you multiply, and by which factor? Does it matter
# that RoPE comes between?
#
# <details><summary>Hint 1</summary>
#
# $(a\,q)\cdot k = a\,(q\cdot k)$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A rotation is linear: it commutes with a factor.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Multiply $W_q$ or $W_k$, but not $W_v$, by $1/\sqrt K$. RoPE does not matter.
#
# ```python
# from functools import partial
# from unittest import mock
#
# from pe_numpy import attention
#
# off = {}
# with mock.patch.object(llama, "attention", partial(attention, scale=1)):  # the page, undivided
#     for name in ("W_q", "W_k", "W_v"):
#         parameters = scaled(llama_model.parameters, 4**-0.5, name)  # K = 4
#         off[name] = error(llama_model.replace(parameters=parameters).logits(h["tokens"]), h["logits"])
# assert max(off["W_q"], off["W_k"]) < 1e-6 < 0.1 < off["W_v"]
# ```
#
# </details>
#
# ### Exercise 3: Numbers per token in a KV cache
#
# How many numbers does a token take in the KV cache of LLaMA-3-8B (32 layers, 8 KV heads of width
# 128)? How many in the cache of DeepSeek-V3 (61 layers, 512 latent numbers and 64 rotated ones)?
#
# <details><summary>Hint 1</summary>
#
# Count keys *and* values for LLaMA.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# DeepSeek keeps one vector for both, and one rotated key for all heads
# ([chapter 44](44_fewer_keys.ipynb)).
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# from pe_numpy import Cache
#
# rules = {
#     "llama": lambda layers, G, K: layers * 2 * G * K,
#     "deepseek_v3": lambda layers, r, d_r: layers * (r + d_r),
# }
# for name, sizes in (("llama", "layers G K"), ("deepseek_v3", "layers r d_r")):
#     m, cache = load_model(SHELF / name), Cache(1, 5)
#     m.logits([[3, 1, 4, 1, 5]], cache=cache)
#     held = sum(x.size for kept in cache.held.values() for x in kept)
#     assert held == 5 * rules[name](*(getattr(m.settings, size) for size in sizes.split()))
# assert (rules["llama"](32, 8, 128), rules["deepseek_v3"](61, 512, 64)) == (65536, 35136)
# ```
#
# </details>
#
# ## In practice
#
# - **A file that does not fit its model's module** raises an error with the first three names. The
#   cause is a wrong family, a missing shard or a bias that the module does not expect.
# - **Tied heads**: `load_model` uses the file's own head if there is one, and otherwise the
#   embedding, unless `tie_word_embeddings` is false. Where this setting is not written, each family
#   has its default.
# - **Padding**: give positions that count non-padding tokens, or pad nothing. A bare forward of
#   GPT-2 in transformers counts padding, unless it is given `position_ids`, which `generate`
#   computes from the mask.
# - **What was run**: here we ran the architectures with random weights, and the ledger has the
#   errors. `make real` fetches two trained models, all-MiniLM-L6-v2 and (under Gemma's terms) Gemma
#   3 270M. `make test-real` compares them with other libraries, and
#   `python -m pe_numpy run gemma "The history of the Roman Empire began"` writes a text.
#
# ## Further reading
#
# - The code that we compared with is [transformers](https://github.com/huggingface/transformers),
#   release 5.23.0.
# - The file format is [safetensors](https://github.com/huggingface/safetensors).
# - Radford et al. 2019, *Language Models are Unsupervised Multitask Learners*: GPT-2.
# - Touvron et al. 2023, *Llama 2*, [arXiv:2307.09288](https://arxiv.org/abs/2307.09288).
