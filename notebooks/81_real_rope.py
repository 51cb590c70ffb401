# %% [markdown]
# # 81. RoPE in a trained model (Gemma 3 270M)
#
# *Which pairs does a trained model use for position, and what breaks when they are changed?*
#
# 45 minutes. Needs [35 ALiBi: attention with linear biases](35_alibi.ipynb), [41 RoPE in code: signs, layouts, caches, precision](41_rope_computed.ipynb), [50 RoPE scaling: position interpolation, NTK, YaRN, LongRoPE](50_scaling.ipynb). To run it, fetch trained weights: `make real`. Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** RoPE gives a model pairs of components that rotate at many speeds. What does
# training make of them? You give Gemma 3 270M wrong positions, stop some of its pairs and measure
# what its predictions lose. In most layers one pair stands out. You follow it as a detective would,
# find out what it computes, and see what it has to do with an attention sink and with a longer
# window that fails. It is one small model with rounded weights. Others may differ.

# %% fold="input" alt="Heat map of 18 layers by 128 pairs. In each layer the largest pair is 14 to 93 times as large as the median. In local layers it is one of the pairs 70 to 78. In the global layers 5, 11 and 17 it is 112, 88 and 87."
import matplotlib.pyplot as plt
import numpy as np
from pe_numpy import alibi_bias, alibi_slopes, ntk_scaling, relative_distance, rope, yarn_scaling
from pe_numpy.book.plots import real_rope as plots
from pe_numpy.book.trained import TEXTS, gemma, results, tokens_of

model, looked = gemma(), {}
for t in TEXTS:  # queries (H, L, K) and keys (1, L, K) of each layer, not yet rotated
    look = model.but(heads=lambda n, q, k, t=t: looked.setdefault((t, n), (q, k)))
    look.hidden(tokens_of(t, 388))
pairs = {key: [x[..., :128] + 1j * x[..., 128:] for x in qk] for key, qk in looked.items()}
means = {key: np.array([np.abs(x).mean((0, 1)) for x in qk]) for key, qk in pairs.items()}
size = np.mean([[means[t, n].prod(axis=0) for n in model.layers] for t in TEXTS], axis=0)
plots.pair_sizes(size / np.median(size, axis=1, keepdims=True), model.all_see)
plt.show()

# %% [markdown]
# ## Gemma 3 270M, its 128 pairs and three texts
#
# Each row of the figure is a layer, each column a pair of components. The colour shows how much the
# pair can add to a score. It is the mean length of its queries times the mean length of its keys,
# relative to the layer's median pair. In most rows one pair, sometimes two, is far brighter than
# the rest. What does the model use it for?
#
# **The model.** Gemma 3 270M has 18 layers, each with four query heads and one KV head of 256
# components. With the half layout ([chapter
# 42](42_rope_in_models.ipynb#interleaved-or-half-layout-which-model-has-which)) component $c$ forms
# a pair with $c + 128$. Fifteen layers are **local**, with a sliding window of 512 tokens and base
# 10,000. Layers 5, 11 and 17 are **global**: they see all tokens, with base 1,000,000 ([chapter
# 42](42_rope_in_models.ipynb#the-base-of-each-layer-local-and-global-layers)). `python -m pe_numpy
# fetch gemma` fetches it (238 MB, 4 to 8 bits per number, Gemma's terms). Without it you can still
# read on, because the outputs are stored.
#
# **The measure.** We take the first 388 tokens of three texts: Newton's *Opticks*, Python's
# documentation and this book. For every third token we compute the loss in nats, 129 per text.
# `model.but(...)` replaces one part of the forward pass, and we compare losses token by token.

# %%
tokens = {text: tokens_of(text, 388) for text in TEXTS}
right = {text: model.losses(tokens[text]) for text in TEXTS}  # (129,) each
print("tokens:", {text: len(losses) for text, losses in right.items()})
print("mean loss:", {text: f"{losses.mean():.2f}" for text, losses in right.items()})
for n in (0, 5):
    print(f"layer {n}: window {model.s.windows[n]}, base {model.frequencies(n)[64] ** -2:,.0f}")
print("global layers:", model.all_see, " local:", len(model.local))
assert model.all_see == [5, 11, 17] and (model.s.windows[0], model.s.H, model.s.K) == (512, 4, 256)

# %% [markdown]
# Long experiments are measured once and kept in `results/real.csv`. This function prints their rows
# for the three texts, with the standard error in brackets. Take changes below about 0.05 as noise,
# unless the error is much smaller.


# %%
def show(experiment, *settings):
    """Changes of the mean loss in nats, positive is worse; gives them back, (settings, texts)."""
    rows = results(experiment)
    print(f"{'':42}", *(f"{text:>13}" for text in TEXTS))
    for name in settings:
        line = f"{name:42}"
        for text in TEXTS:
            change, error = rows[name, text], rows[f"{name}, se", text]
            small = abs(change) < 0.02
            line += f"{'below 0.02' if small else f'{change:+.2f} ({error:.2f})':>14}"
        print(line)
    return np.array([[rows[name, text] for text in TEXTS] for name in settings])


# %% [markdown]
# ## Wrong position ids: a shift is free, wrong order is expensive
#
# RoPE promises that a text may start at any position. For a query at $m$, a key at $n$ and any
# shift $a$:
#
# $$\langle R_{m+a}\, q,\; R_{n+a}\, k\rangle=\langle R_m\, q,\; R_n\, k\rangle$$

# %%
q, k = (x[0].astype(float) for x in looked["opticks", 5])  # one head, (L, K)
p, theta = np.arange(388), model.frequencies(5)
assert np.allclose(theta, 1_000_000.0 ** (-np.arange(128) / 128), rtol=1e-6, atol=0)
at_0, at_a = (rope(q, p + a, theta, "half") @ rope(k, p + a, theta, "half").T for a in (0, 20_000))
assert np.allclose(at_0, at_a, rtol=0, atol=1e-6) and not np.allclose(at_0, q @ k.T, rtol=0, atol=1)

# %% [markdown]
# Does this survive 18 layers in float32?

# %%
shifted = model.but(positions=lambda n, p: p + 20_000)
for text in TEXTS:
    worst = np.abs(shifted.losses(tokens[text]) - right[text]).max()
    print(f"{text}: no loss changes by more than 0.0001: {worst < 1e-4}")
    assert 0 < worst < 1e-4

# %% [markdown]
# It does. Now positions that are wrong. **Predict** what is worse: to give all tokens the same
# position, or to give them the right positions in a random order?

# %% fold="output"
order = "all equal", "in a random order", "reversed"
equal, random, backwards = show("told", *order)
scaled = show("told", *(f"times {x}" for x in (0.25, 0.5, 0.8, 1.25, 2.0)))
swapped = show("told", *(f"reversed in blocks of {g}" for g in (2, 4, 16, 64)))
coarse = show("told", *(f"equal in blocks of {g}" for g in (2, 4, 16)))
assert (random > equal).all() and (backwards > equal).all()
assert (np.abs(scaled[2:4]) < 0.07).all() and (scaled[4] > scaled[1]).all()
assert (swapped[:3] > coarse).all()  # a wrong order is worse than none

# %% [markdown]
# The random order that we drew is worse than no order at all, on all three texts. So is the
# reversed one. The same holds within blocks of 2, 4 and 16. Exchange the two tokens of each block
# of 2, and 1.3 to 1.8 nats are lost. Give both the same position, and it costs 0.1 to 0.3. A
# moderate uniform stretch matters less. With distances a quarter longer or a fifth shorter the loss
# changes by at most 0.07. Doubled distances cost 0.6 to 0.7, halved ones 0.2 to 0.5, and a quarter
# of each distance 1.4 to 1.8.
#
# ## Local and global layers: a mean loss hides a skill
#
# Which layers need their positions? We stop all rotation in local or in global layers, or make
# positions coarse in them. **Predict** which layers suffer.

# %% fold="output"
per_kind = "no rotation", "equal in blocks of 16", "frequencies times 2"
local = show("kinds", *(f"local: {name}" for name in per_kind))
wide = show("kinds", *(f"global: {name}" for name in per_kind))
nowhere = show("kinds", "all: no rotation")
bases = show("kinds", "local: base 1,000,000", "global: base 10,000")
assert (local > 0.5).all() and (wide[1:] < 0.05).all() and wide[0].max() < 0.25
assert (nowhere < local[0]).all() and (bases[0] > 5 * bases[1]).all()

# %% [markdown]
# Nearly all of the loss comes from the local layers. Without any rotation in its global layers, the
# model loses only 0.04 to 0.20 nats, and 0.04 is less than its error. Stopping all layers is less
# bad than stopping only the local ones, on all three texts. The base matters in the same way. With
# the global base of 1,000,000, local layers lose 0.85 to 1.37 nats, but with the local base global
# layers lose 0.12 or less. So are positions superfluous in global layers? Several model families
# leave them out there ([chapter 42](42_rope_in_models.ipynb#layers-without-rope)).
#
# Ordinary text is one skill among several. Here is another: 64 random words, then the same words
# again. A model that can copy predicts the second copy.

# %%
copying = results("copying")
for name in ("first copy", "as it is", "local: no rotation", "global: no rotation",
             "all: positions times 2"):  # fmt: skip
    losses = [copying[name, f"seed {seed}"] for seed in range(3)]
    print(f"{name:24} loss of three draws:", *(f"{loss:6.2f}" for loss in losses))
for s in range(3):
    assert copying["as it is", f"seed {s}"] < 2 and copying["global: no rotation", f"seed {s}"] > 4

# %% [markdown]
# Without RoPE in the global layers, a copied word costs 6 to 7 nats instead of less than 0.5.
# Ordinary text barely noticed. (Without it in local layers, the words cost 11 to 12 nats.) A mean
# loss hides a skill. To judge a change of positions, test copying as well.
#
# ## The largest pair makes about half a turn in training
#
# Back to the figure. The first clue is the speed of the largest pair. We count angles in the range
# of training: 512 positions in local layers, and in global ones the 32,768 of
# `max_position_embeddings`.

# %%
largest = size.argmax(axis=1)  # (18,)
trained = [512 if n in model.local else 32_768 for n in model.layers]
angle = np.array([model.frequencies(n)[largest[n]] * trained[n] for n in model.layers])
over = size.max(axis=1) / np.median(size, axis=1)
for name, few in (("local", model.local), ("global", model.all_see)):
    print(f"{name}: layers   ", *(f"{n:4}" for n in few))
    print(" largest pair    ", *(f"{c:4}" for c in largest[few]))
    print(" over the median ", *(f"{x:4.0f}" for x in over[few]))
    print(" angle in training", *(f"{x:4.1f}" for x in angle[few]))
assert sorted(largest[model.local])[::14] == [70, 78] and (angle[model.local] > 1.8).all()
print("layer 14, pair 79 by pair 70:", round(size[14, 79] / size[14, 70], 2))

# %% [markdown]
# With base $b$ and $K$ components, pair $c$ stays below half a turn over $L_0$ positions if
#
# $$L_0\, b^{-2c/K}<\pi\quad\Longleftrightarrow\quad c>\frac K2\,\frac{\ln(L_0/\pi)}{\ln b}$$

# %%
for b, L_0, n in ((10_000, 512, 0), (1_000_000, 32_768, 11)):
    bound = 256 / 2 * np.log(L_0 / np.pi) / np.log(b)
    slow = np.flatnonzero(L_0 * model.frequencies(n) < np.pi)  # all such pairs
    assert slow[0] == np.ceil(bound) and (slow > bound).all() and len(slow) == 128 - slow[0]
    print(f"base {b:,}, {L_0:,} positions: pairs from {slow[0]} on")
assert (largest[[n for n in model.local if n != 14]] >= 71).all() and largest[11] >= 86
assert largest[14] == 70 and angle[14] > np.pi

# %% [markdown]
# The largest pairs are not far behind this border: 72 to 78 in 14 of 15 local layers, 88 and 87 in
# two of the global ones. They turn by 1.9 to 2.9 radians in training. Two bases, two ranges, the
# same choice. There are two exceptions. In layer 14, pair 70 goes slightly beyond half a turn and
# is nearly tied with pair 79. In global layer 5, pair 112 barely turns at all, but a second bright
# pair is near the border. Some local layers have a second one near the first.
#
# Others have seen such pairs. Jonasson (2025) finds large queries and keys in many models, in pairs
# with partial cycles, and derives bounds for their frequencies. We know only the abstract and the
# beginning, and have not compared our border with those bounds.
#
# ## It carries almost no content: a sine of the distance
#
# The second clue is the direction. A pair that tells words apart should have different directions,
# or at least lengths, for different words. Here are keys and queries of one layer, for its largest
# pair and for two others.


# %% alt="Three planes with keys and queries of layer 1. For pair 72 all keys lie on one ray and all queries on another, a quarter turn ahead. For pairs 30 and 84 both are spread in many directions."
def cloud(n, c):
    """Queries (H, N) and keys (N,) of pair c of layer n in all texts, without <bos>."""
    own = [pairs[text, n] for text in TEXTS]
    return (np.concatenate([q[:, 1:, c] for q, _ in own], axis=1),
            np.concatenate([k[0, 1:, c] for _, k in own]))  # fmt: skip


panels = {f"layer 1, pair {c}": cloud(1, c) for c in (72, 30, 84)}
some = slice(None, None, 12)  # every twelfth token
plots.pair_planes({name: (k[some], q[:, some]) for name, (q, k) in panels.items()})
plt.show()

# %% [markdown]
# In pair 72 all keys point almost the same way, and so do all queries. So words can only change how
# large their product is. (How little that matters is tested
# [below](#stop-it-remove-it-replace-it-by-alibi).) It still depends on the distance. Write a pair
# as a complex number, $q=|q|\,e^{\mathrm i\alpha}$ and $k=|k|\,e^{\mathrm i\beta}$. The next
# formula is what it adds to the score at distance $d=m-n$. The last step holds if the query is a
# quarter turn ahead of the key, $\alpha=\beta+\pi/2$.
#
# $$\frac{\operatorname{Re}\bigl(q\,\bar k\,e^{\mathrm i d\theta}\bigr)}{\sqrt K}=\frac{|q||k|}{\sqrt K}\cos(\alpha-\beta+d\theta)=-A\sin(d\theta),\qquad A=\frac{|q||k|}{\sqrt K}$$

# %%
d, speed = np.arange(600), model.frequencies(1)[72:73]
z_q, z_k = 7 * np.exp(1j * (0.3 + np.pi / 2)), 11 * np.exp(0.3j)
query = rope(np.tile([z_q.real, z_q.imag], (600, 1)), d, speed, "half")  # the key is at 0
score = query @ np.array([z_k.real, z_k.imag]) / 16
assert np.allclose(score, (z_q * z_k.conj() * np.exp(1j * d * speed)).real / 16, rtol=0, atol=1e-9)
assert np.allclose(score, 7 * 11 / 16 * np.cos(np.pi / 2 + d * speed), rtol=0, atol=1e-9)
assert np.allclose(score, -7 * 11 / 16 * np.sin(d * speed), rtol=0, atol=1e-9)

# %% [markdown]
# A sum of vectors is as long as the sum of their lengths only if all point the same way. This ratio
# is the **resultant**: 1 if all directions agree, near 0 if they are random. We print it with the
# angle $\alpha-\beta$ in quarter turns and with $A$. There are four heads in each local layer.

# %%
q_c, k_c = zip(*(cloud(n, largest[n]) for n in model.layers), strict=True)
mean_q = np.array([q.mean(axis=1) for q in q_c])  # (layers, H)
mean_k = np.array([k.mean() for k in k_c])
of_keys = np.array([abs(k.mean()) / np.abs(k).mean() for k in k_c])[model.local]
of_queries = np.array([np.abs(q.mean(1)) / np.abs(q).mean(1) for q in q_c])[model.local].ravel()
ahead = (np.angle(mean_q * mean_k.conj()[:, None]) / (np.pi / 2))[model.local].ravel()
A = np.abs(mean_q) * np.abs(mean_k)[:, None] / 16
print(f"resultant of keys, 15 layers: {of_keys.min():.2f} to {of_keys.max():.2f}")
odd, rest = of_queries.argmin(), np.delete(np.arange(60), of_queries.argmin())
print(f"of queries, 59 heads: {of_queries[rest].min():.2f} or more; one: {of_queries[odd]:.2f}")
print(f"quarter turns: {ahead[rest].min():.2f} to {ahead[rest].max():.2f}; one: {ahead[odd]:.2f}")
print(f"A in nats: {A[model.local].min():.1f} to {A[model.local].max():.1f}")
assert of_keys.min() > 0.99 and of_queries[rest].min() > 0.94 and (abs(ahead[rest] - 1) < 0.2).all()

# %% alt="What the largest pair adds to a score in 15 local layers, over the distance 0 to 1,149. Within the window all curves fall from about zero to between minus 1 and minus 11 and partly rise again. Beyond it all become positive."
d, local = np.arange(1150), model.local
turning = np.exp(1j * np.multiply.outer(model.frequencies(0)[largest[local]], d))  # (15, N)
at_0 = ((mean_q * mean_k.conj()[:, None]).mean(axis=1)[local] / 16).round(2)  # mean of heads
bias = (at_0[:, None] * turning).real
plots.pair_biases(d, bias, 512)
plt.show()
deepest = bias[:, :512].argmin(axis=1)
print("largest penalty at distances", deepest.min(), "to", deepest.max())
print("layers with a penalty at distance 511:", int((bias[:, 511] < 0).sum()), "of 15")
print("positive at:", *sorted(int((b[64:] > 0).argmax()) + 64 for b in bias))
assert ((bias[:, 64:450] < 0).all()) and (bias.max(axis=1) > 0.5).all()

# %% [markdown]
# With one exception among 60 heads, the query is about a quarter turn ahead. A penalty that grows
# with distance and almost ignores content: this is what [ALiBi](35_alibi.ipynb#the-alibi-formula)
# adds by hand. Near the query its slope is about $A\theta$, with an $A$ for each head. The model
# has built it from RoPE. But it is a sine. In each layer the penalty is largest within the window
# and then shrinks. At a distance between 464 and 872, depending on the layer, it becomes a reward,
# in 14 of 15 layers beyond the window.
#
# RoPE itself does not make the scores of unrelated contents [fall with
# distance](41_rope_computed.ipynb#does-the-rope-score-decay-with-distance). Here the *model* makes
# a part of them fall over the first 222 to 441 positions, with pairs whose half turn is, with one
# exception, longer than the window.
#
# ### The norm gains show it without a run
#
# Gemma normalizes queries and keys per head before it rotates them, and multiplies each component
# by a learned gain: $g^q$ and $g^k$. Suppose the keys of a pair point along one axis and the
# queries along the other. Then we expect the keys to have a large gain on one component and the
# queries on the other. So we rank pairs by
#
# $$G_c=\max\bigl(|g^q_c\,g^k_{c+128}|,\;|g^q_{c+128}\,g^k_c|\bigr)$$

# %%
rank = {}
for n in model.layers:
    g_q, g_k = (1 + model.params["layers"][str(n)][name] for name in ("norm_q", "norm_k"))
    (q_1, q_2), (k_1, k_2) = np.split(g_q, 2), np.split(g_k, 2)  # components c, and c + 128
    G = np.maximum(np.abs(q_1 * k_2), np.abs(q_2 * k_1))
    rank[n] = int((G > G[largest[n]]).sum()) + 1
ranks = [list(rank.values()).count(r) for r in (1, 2, 3, 4)]
print("layers in which the largest pair is first, second, third, fourth:", ranks)
g_q, g_k = (1 + model.params["layers"]["1"][name] for name in ("norm_q", "norm_k"))
for name, g in (("queries", g_q), ("keys", g_k)):
    print(f"layer 1, components 72 and 200: {name} {g[72]:.2f} and {g[200]:.2f}")
assert ranks == [12, 5, 0, 1] and largest[1] == 72

# %% [markdown]
# In 12 of 18 layers the gains point to the pair that the runs found, in 5 it is second, in one
# fourth. In any model with such norms you can look for candidates before you run it. We have tried
# it on this one only.
#
# ## Stop it, remove it, replace it by ALiBi
#
# Is this pair important, or only large? **Predict** what the loss does if one pair of 128 does not
# rotate in the local layers. It takes a few lines. We try it on one text, then read the rest.


# %% fold="output"
def stopped(n):
    theta = model.frequencies(n).copy()
    if n in model.local:
        theta[largest[n]] = 0
    return theta


change = model.but(frequencies=stopped).losses(tokens["opticks"]) - right["opticks"]
print(f"stopped, opticks, by this cell: {change.mean():+.2f}\n")
ours = show("one_pair", "stopped", "removed")
others = "a random pair stopped", "the next pair stopped", "a random pair removed"
controls = show("one_pair", *others)
assert abs(change.mean() - ours[0, 0]) < 0.02 and ours.min() > 0.3 and np.abs(controls).max() < 0.02

# %% [markdown]
# One pair of 128 in each local layer is worth 0.36 to 0.76 nats. A random pair (one draw for each
# layer), or the neighbour of the largest, is worth less than 0.02. Now the test of our theory. We
# take the pair out of the scores, and add a bias that knows only the distance. First the mean query
# and mean key (with the key of `<bos>` apart), then the bare sine, and last a straight line of
# slope $A\theta$, which *is* `alibi_bias`. The last two add nothing for `<bos>`.

# %%
replaced = show("one_pair", "replaced by a function of distance")
shapes = show("line", "a sine", "a straight line")
assert (replaced < 0.15).all() and (shapes < 0.2 * ours[1]).all()
slopes = (A[local] * model.frequencies(0)[largest[local], None]).ravel()  # 60 heads
print("half of the 60 slopes are between", *np.percentile(slopes, (25, 75)).round(3))
print("ALiBi's for four heads:", alibi_slopes(4).round(4).tolist())
d = relative_distance(np.arange(512), np.arange(512))
line, sine = alibi_bias(slopes[:1], d)[0], -A[0, 0] * np.sin(d * model.frequencies(0)[largest[0]])
assert np.allclose(line[20, :20], sine[20, :20], rtol=0.01, atol=0) and slopes.max() < 0.1

# %% [markdown]
# Each replacement restores more than 80% of what removal costs, and a straight line does as well as
# the sine. The 0.03 to 0.10 nats that these two still cost are about two standard errors or less.
# So on texts of 388 tokens, and apart from `<bos>`, ALiBi can stand in for this pair, to about 0.1
# nats. Half of its slopes lie between 0.013 and 0.028, within the range that Press et al. choose
# for four heads.
#
# ## The attention sink: the penalty spares `<bos>`
#
# The sum of a query's weights is 1, even if no key fits. Many heads then attend to the first token,
# an [attention sink](12_attention_blocks.ipynb#attention-sinks-streamingllm). How does a distant
# token get weight in spite of the penalty? **Predict** how `<bos>` differs in the largest pair.

# %% fold="output"
bos = [abs(pairs["opticks", n][1][0, 0, largest[n]]) / abs(mean_k[n]) for n in local]
print(f"|key of <bos>| over the others', local layers: {min(bos):.2f} to {max(bos):.2f}")
rows = results("one_pair")
for name in ("as it is", "<bos> with the others' key"):
    share = [rows[f"{name}: share of <bos>", text] for text in TEXTS]
    print(f"{name:28} weight on <bos>, local layers:", *(f"{x:.2f}" for x in share))
    assert max(bos) < 0.3 and (min(share) > 0.25 if name == "as it is" else max(share) < 0.07)
lost = show("one_pair", "<bos> with the others' key")
hidden = show("bos_hidden", "local layers", "global layers", "layer 5")
assert (hidden[2] > hidden[0]).all() and (lost < hidden[1]).all()

# %% [markdown]
# In this pair the key of `<bos>` is short, so it pays at most about a third of the penalty. As far
# as this pair goes, from a distance it looks better than the words around it. Give it the others'
# mean key, in this one pair, and its weight in local layers falls to a quarter or less. So most of
# their sink depends on this one key.
#
# It costs little, though: 0.05 to 0.07 nats, less than two standard errors. Which sink matters? The
# last table hides `<bos>` from some layers. To hide it from layer 5, a global one, costs more than
# to hide it from all local layers. [Chapter
# 82](82_real_cache.ipynb#which-layers-need-a-sink) examines sinks further.
#
# ## A longer window without training: the sine comes up again
#
# Now let the local layers see 1,150 tokens instead of 512. We measure every third token from 600
# on. [Chapter 50](50_scaling.ipynb#beyond-the-context-length-angles-that-training-did-not-show)
# suspects pairs that meet new angles. In the figure above the largest pair rewards distant keys
# beyond the window. If that is what breaks, a straight line in its place should repair it.
# **Predict** whether it does.

# %% fold="output"
nothing = show("window", "1,150, nothing else", "1,150, the largest pair slower",
               "1,150, pairs 64 to 79 slower", "1,150, pairs 80 to 127 slower",
               "1,150, all but the largest pair slower",
               "1,150, a random pair of 0 to 63 slower")  # fmt: skip
formulas = show("line_beyond", "1,150, a sine", "1,150, a straight line")
never = int((512 * model.frequencies(0) < 2 * np.pi).sum())
print("pairs that complete no turn in 512 positions:", never)
assert (nothing[0] > 2).all() and (formulas[0] > 2).all() and (formulas[1] < 0.5).all()
assert (nothing[2] < 0.25).all() and (nothing[3] > 2).all() and never == 66

# %% [markdown]
# Without a remedy, the longer window costs 2.4 to 3.4 nats. With the sine as a formula it costs 2.2
# to 3.1, and with the straight line 0.2 to 0.4. The penalty of a line keeps growing, so far keys
# stay hidden. The sine rewards them.
#
# 66 pairs complete no turn in 512 positions, so all of them meet new angles in the longer window.
# But slowing only the largest one by 2.25 (1,150 over 512) leaves 1.0 nats, and slowing the pairs
# 64 to 79 leaves 0.1 to 0.2. Slowing the 48 slowest pairs does not help at all.
#
# What distinguishes the pairs that break? Perhaps that they carry no content. Many layers have more
# than one such pair. We look for all pairs above ten times the median whose keys, and whose
# queries, point almost one way, and slow only these.


# %%
def without_content(n):
    q, k = (np.concatenate([pairs[text, n][i][:, 1:] for text in TEXTS], axis=1) for i in (0, 1))
    alike = [(np.abs(x.mean(1)) / (np.abs(x).mean(1) + 1e-30)).mean(axis=0) for x in (q, k)]
    large = np.abs(q).mean((0, 1)) * np.abs(k).mean((0, 1))  # (K/2,)
    large = large > 10 * np.median(large)
    return np.flatnonzero(large & (alike[0] > 0.85) & (alike[1] > 0.97))


empty = [(n, c) for n in model.local for c in without_content(n)]
band = sum(64 <= c < 80 for _, c in empty)
print(f"{len(empty)} pairs of {15 * 128:,}, {band} of them from 64 to 79")
both = "pairs without content", "the rest of 64 to 79"
slowed = show("no_content", *(f"1,150, {name} slower" for name in both))
assert results("no_content")["pairs without content", ""] == len(empty)
assert (slowed[0] < 0.2).all() and (slowed[1] > 0.9 * nothing[0]).all()

# %% [markdown]
# Slowing these 32 pairs of 1,920 removes almost all of the damage. It leaves 0.06 to 0.16 nats,
# about what slowing the whole band leaves. Slowing the rest of the band barely helps. So *meets new
# angles* is not the same as *breaks*. What breaks here are large pairs almost without content,
# which act as a bias of distance. (We replaced only the largest by such a bias. Ten of the 32 are
# outside the band, and we have not slowed them separately.)
#
# ### All scalings on the same window

# %%
scalings = show("window", *(f"1,150, {name}" for name in (
    "linear", "NTK", "YaRN without its temperature", "YaRN", "ReRoPE 511", "ReRoPE 256",
    "Self-Extend 256, groups of 4", "log n")), "128")  # fmt: skip
linear, ntk, _, yarn, *others, log_n, _ = scalings
for name, slowed in (
    ("NTK", ntk_scaling(256, 1150 / 512)),
    ("YaRN", yarn_scaling(256, 1150 / 512, 512)[0]),
):
    print(name, "slows pairs 0, 32, 75 by", (model.frequencies(0) / slowed)[[0, 32, 75]].round(2))
assert (yarn < linear).all() and (yarn < ntk).all() and np.max(others) < yarn.max() < 0.11
assert np.abs(log_n - nothing[0]).max() < 0.15

# %% [markdown]
# Position interpolation (*linear*) repairs all slow pairs, but also slows the fast ones, which the
# [local layers need](#fast-pairs-for-position-slow-pairs-for-content). NTK-aware scaling slows pair
# 75 by only 1.61, not 2.25. Without training, each repairs about two thirds to three quarters of
# the damage, and neither is clearly better. YaRN slows pair 75 fully and pair 0 not at all. With
# its temperature it leaves about 0.10 nats or less. [ReRoPE and
# Self-Extend](52_new_places.ipynb#rerope-distances-stop-at-a-window) leave at most 0.05. A [log-n
# temperature](51_extrapolation.ipynb#log-n-scaling-why-the-logarithm) changes no position and does
# not help.
#
# No scheme gains anything from the longer window: none is better than 512. Perhaps there is little
# to gain, since the global layers already see everything. Even a window of 128 costs only 0.28 or
# less.
#
# ## Fast pairs for position, slow pairs for content
#
# So far one pair. What do the other 127 do? Stop a band of pairs, and it can no longer tell
# distances apart. Remove it from queries and keys, and its content is gone as well.

# %% alt="Bars of the loss for bands of pairs in local layers and three texts. Stopped, only the bands 0 to 15 and 64 to 79 cost about one nat, and the last three nothing. Removed, the bands of 32 pairs all cost, and the last, 96 to 127, more than one nat."
rows, bands, kinds = results("bands"), {}, {"local": model.local, "global": model.all_see}
for title, width in (("stopped", 16), ("removed", 32)):
    names = [f"local: pairs {a} to {a + width - 1} {title}" for a in range(0, 128, width)]
    bands[f"local layers, {title}"] = {text: [rows[x, text] for x in names] for text in TEXTS}
plots.bands_of_pairs(bands)
plt.show()
show("bands", "local: pairs 0 to 15 stopped", "local: pairs 64 to 79 stopped",
     *(f"{kind}: pairs 96 to 127 removed" for kind in kinds), "global: pairs 96 to 127 stopped",
     "all: the slowest 32 stopped", "all: the slowest 64 stopped")  # fmt: skip
still, gone = (np.array([x[text] for text in TEXTS]) for x in bands.values())
assert (still[:, [0, 4]] > 0.8).all() and np.abs(still[:, 5:]).max() < 0.02
assert (gone[:, 3] > 1).all()

# %% [markdown]
# Two bands of local layers need their rotation most. The fastest 16 pairs are worth 0.86 to 1.17
# nats, and the band of the largest pairs 1.08 to 1.35. The bands between them cost far less, and
# each of the three slowest can stop at no cost. But remove the slowest 32 pairs, and 1.25 to 2.59
# nats are gone. So they carry content and almost no position. The global layers show the same.
#
# Barbero et al. find in Gemma 7B that fast pairs make positional heads, and suspect that slow pairs
# carry content. Our numbers agree. They also argue that decay with distance is unlikely to be the
# main use of RoPE. The largest pairs here are a third kind. To stop them costs 0.36 to 0.57 nats,
# and to stop all pairs of the local layers 2.63 to 3.38. So decay is a part of RoPE's use in this
# model, and by this count not most of it. But such losses need not add up, and the whole band of
# the largest pairs costs more than the fastest.
#
# Their [p-RoPE](42_rope_in_models.ipynb#partial-rope-and-proportional-rope-p-rope) leaves slow
# pairs unrotated. Here the slowest quarter can stop in all layers, without any training. Stopping
# half is too much, because that half includes the largest pairs.
#
# Which heads need the fast pairs? Those that attend to the previous token, if Barbero et al. are
# right. We compute for each head its mean weight on the previous token, and how much of its
# $|q||k|$ is in pairs 0 to 31.

# %%
weight, share = np.zeros((18, 4)), np.zeros((18, 4))


def watch(n, w):
    weight[n] += np.diagonal(w, -1, axis1=1, axis2=2)[:, 8:].mean(axis=1) / 3
    return w


for text in TEXTS:
    model.but(weights=watch).hidden(tokens[text])

# %% alt="A dot per head: weight on the previous token over the share of fast pairs. For local heads both grow together. The highest dot has a weight of 0.65 and a share of 0.37. The twelve global heads have small values of both."
for n in model.layers:
    q, k = np.mean([[np.abs(x).mean(axis=1) + np.zeros((4, 1)) for x in pairs[text, n]]
                    for text in TEXTS], axis=0)  # fmt: skip
    share[n] = (q * k)[:, :32].sum(axis=1) / (q * k).sum(axis=1)
dots = {x: (share[own].ravel(), weight[own].ravel()) for x, own in kinds.items()}
plots.heads_and_fast_pairs(dots)
plt.show()

# %%
for name, (x, y) in dots.items():
    r = np.corrcoef(x, y)[0, 1]
    print(f"{name} heads: {len(x)}, correlation {r:.2f}")
    table = results("heads")[f"r of the previous token with fast pairs, {name} heads", ""]
    assert abs(r - table) < 0.05 and r > 0.6
n, h = np.unravel_index(weight.argmax(), weight.shape)
print(f"layer {n}, head {h}: weight {weight[n, h]:.2f}, share of fast pairs {share[n, h]:.2f}")

# %% [markdown]
# Over 60 local heads the correlation is 0.86, over the 12 global ones 0.81. The strongest
# previous-token head is the one with the largest share of fast pairs. [Exercise
# 3](#exercise-3-a-previous-token-head-from-fast-pairs) shows a reason. The correlation, over the
# heads of one model, does not prove it.
#
# ## A gap of 100,000 positions, told only to the global layers
#
# Can the global layers reach beyond the 32,768 positions of training? A text of that length takes
# long. But RoPE sees only positions, so we can simply *say* that the text is long: 540 random
# words, then a gap, then the same words. Local layers don't hear of the gap, and the copy is out of
# their window anyway.

# %%
rows = results("gap")
for size_of_gap in ("0", "1,000", "30,000", "100,000", "1,000,000"):
    losses = [rows[f"gap {size_of_gap}", f"seed {seed}"] for seed in (5, 6, 7)]
    print(f"gap {size_of_gap:>9}: loss of three draws:", *(f"{x:6.2f}" for x in losses))
assert all(rows["gap 100,000", f"seed {s}"] > 8 > rows["gap 1,000", f"seed {s}"] for s in (5, 6, 7))

# %% [markdown]
# A gap of 1,000 does no harm; it even helps. With 30,000, still within the range of training, the
# copied words cost 6 to 7 nats. With 100,000 they cost about as much as words seen for the first
# time. So the copy weakens before the trained range ends, and well beyond it, it is lost. The test
# needs only a thousand tokens. But a real text of this length would probably be harder still, since
# its tokens would compete for attention.
#
# **What all this does not show.** It is one small model, with weights rounded to 4 to 8 bits, on
# three English texts. A part that is missed when it is taken away is a part that *this* model
# relies on. A model trained without it might do as well in another way. And what three texts agree
# on can still be a habit of this one training run.

# %% [markdown]
# ## In short
#
# - **Which pairs of RoPE does a trained model use for position?** In Gemma's local layers mostly
#   the fastest 16 and a few pairs near half a turn. Stopping the slowest quarter costs nothing.
#   [Fast pairs](#fast-pairs-for-position-slow-pairs-for-content).
# - **Does RoPE make scores fall with distance?** Not for unrelated contents. But each of Gemma's
#   local layers has a pair with almost no content that adds about $-A\sin(d\theta)$ in nearly every
#   head. Within the window (tested on 388 tokens) it works like
#   [ALiBi](#it-carries-almost-no-content-a-sine-of-the-distance).
# - **Why does a longer window fail without training?** In Gemma's local layers mostly because this
#   sine comes up again and rewards distant keys. Slowing 32 pairs without content, of 1,920,
#   removes almost all of the damage. [Longer
#   window](#a-longer-window-without-training-the-sine-comes-up-again).
# - **Where does the attention sink come from?** In local layers mostly from this pair: `<bos>` has
#   a short key in it, so they penalize it little. The sink that matters most for the loss is a
#   global layer's. [Sink](#the-attention-sink-the-penalty-spares-bos).
# - **Do global layers need RoPE?** For ordinary text barely. For copying random words, yes. A mean
#   loss hides this. [Local and global](#local-and-global-layers-a-mean-loss-hides-a-skill).
# - **Is it one model's habit?** This is one model of 270M parameters with rounded weights. Look at
#   the [gains](#the-norm-gains-show-it-without-a-run) of yours.

# %% [markdown]
# ## Exercises
#
# All but the last need no weights.
#
# ### Exercise 1: ALiBi from one pair
#
# A model has 128 components per head, base 10,000 and a window of 512. Which is the fastest pair
# that stays within half a turn? Build a query and a key that use only this pair (half layout). A
# key at the query's own position should get 0, and one at distance 100 a penalty of 3, after
# division by $\sqrt K$.
#
# <details><summary>Hint 1</summary>
#
# $512\,\theta_c<\pi$.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Let the key point along its first component and the query along the second: a quarter turn ahead.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# from pe_numpy import rope_frequencies
#
# f = rope_frequencies(128, 10_000)
# c = int((512 * f >= np.pi).sum())
# size_A = 3 / np.sin(100 * f[c])
# key, query = np.zeros((2, 128))
# key[c], query[c + 64] = 1, size_A * np.sqrt(128)
# at = rope(np.tile(query, (512, 1)), np.arange(512), f, "half") @ key / np.sqrt(128)
# assert c == 36 and abs(at[0]) < 1e-12 and np.isclose(at[100], -3, rtol=0, atol=1e-9)
# assert (at[1:] < 0).all()
# ```
#
# </details>
#
# ### Exercise 2: Where the penalty becomes a reward
#
# Take the pairs 72, 75 and 78 of a local layer ($K=256$, base 10,000). At which distance is the
# penalty $A\sin(d\theta_c)$ largest? From which distance on is it a reward, and where does
# *position interpolation* by 2.25 move this?
#
# <details><summary>Hint 1</summary>
#
# The sine is largest at a quarter turn and zero at a half.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Dividing $\theta$ by 2.25 multiplies all these distances by 2.25.
#
# </details>
# <details><summary>Solution</summary>
#
# Beyond 1,150 in all three cases, so the whole longer window is penalized again.
#
# ```python
# from pe_numpy import linear_scaling, rope_frequencies
#
# f = rope_frequencies(256, 10_000)[[72, 75, 78]]
# assert (np.pi / 2 / f).round().tolist() == [279, 347, 430]
# assert (np.pi / f).round().tolist() == [559, 693, 860]
# assert (np.pi / linear_scaling(f, 2.25) > 1150).all()
# ```
#
# </details>
#
# ### Exercise 3: A previous-token head from fast pairs
#
# A head has the query $q=R_{-1}k$, so that its score is largest one token back. Let it use only
# some pairs, each with length 1: 0 to 15, 32 to 47, or 64 to 79 of 128. By how much is the score at
# distance 1 above the scores at distances 0 and 2? Why do previous-token heads use fast pairs?
#
# <details><summary>Hint 1</summary>
#
# The score is $\sum_c\cos((d-1)\theta_c)$.
#
# </details>
# <details><summary>Hint 2</summary>
#
# A slow pair's cosine is nearly 1 at all three distances.
#
# </details>
# <details><summary>Solution</summary>
#
# Only fast pairs separate neighbours. Slow ones would need far longer vectors.
#
# ```python
# from pe_numpy import rope_frequencies
#
# f = rope_frequencies(256, 10_000)
# margin = [16 - np.cos(f[a : a + 16]).sum() for a in (0, 32, 64)]
# assert margin[0] > 60 * margin[1] > 3000 * margin[2]
# ```
#
# </details>
#
# ### Exercise 4: Is a fifth slower an improvement?
#
# `times 0.8` in `results("told")` lowers the loss of the third text by 0.05, with a standard error
# of 0.02. Is this an improvement? Count how many of the results in `told` you looked at, and how
# many would be that far from zero if nothing had an effect.
#
# <details><summary>Hint 1</summary>
#
# Two and a half standard errors or more happen by chance in about 1 of 80 results.
#
# </details>
# <details><summary>Hint 2</summary>
#
# What do the other two texts say?
#
# </details>
# <details><summary>Solution</summary>
#
# The mean of the three texts is not below zero. With 45 independent results, at least one such
# outlier has a probability of over 40%.
#
# ```python
# rows = results("told")
# settings = [name for name, text in rows if text == "book" and f"{name}, se" in {s for s, _ in rows}]
# assert len(settings) * 3 == 45 and 1 - (1 - 1 / 80) ** 45 > 0.4
# assert rows["times 0.8", "book"] < -2 * rows["times 0.8, se", "book"]
# assert np.mean([rows["times 0.8", text] for text in TEXTS]) > 0
# ```
#
# </details>
#
# ### Exercise 5: A ceiling instead of a line (needs the weights)
#
# Replace the largest pair of each local layer by a penalty that follows the sine to a quarter turn,
# and then stays at $A$. What does it cost on *Opticks*, next to the straight line?
#
# <details><summary>Hint 1</summary>
#
# `model.but(scores=...)` gets queries and keys that are not rotated yet. Set the pair to zero in
# the queries, call `model.scores`, add the bias.
#
# </details>
# <details><summary>Hint 2</summary>
#
# $-A\sin(\min(d\theta,\pi/2))$. The column of `<bos>` gets nothing.
#
# </details>
# <details><summary>Solution</summary>
#
# About as little as the line: on this text the far end of the curve matters little.
#
# ```python
# def ceiling(n, q, k):
#     if n not in model.local:
#         return model.scores(n, q, k)
#     c, q = largest[n], q.copy()
#     q[..., [c, c + 128]] = 0
#     far = relative_distance(np.arange(388), np.arange(388)) * model.frequencies(n)[c]
#     bias = -A[n][:, None, None] * np.sin(np.minimum(far, np.pi / 2))
#     bias[..., 0] = 0
#     return model.scores(n, q, k) + bias.astype(np.float32)
#
# cost = (model.but(scores=ceiling).losses(tokens["opticks"]) - right["opticks"]).mean()
# assert abs(cost - results("line")["a straight line", "opticks"]) < 0.05
# ```
#
# </details>
#
# ## In practice
#
# **Two kinds of layers have two ranges.** To read longer texts, scale the RoPE of the global layers
# (this chapter has not tested it). Distances in a local layer never exceed its window, so leave its
# RoPE as it is.
#
# **Test skills, not only the loss.** Copying random words is quick and finds what a mean loss can
# hide. With a gap between the copies it tests distances that would be slow to run.
#
# **Look at the gains.** Before you stop, scale or round pairs of a model with QK-norm, rank its
# pairs by $G_c$. The first ones may not be ordinary pairs.
#
# ## Further reading
#
# - Barbero et al. 2024, *Round and Round We Go! What makes Rotary Positional Encodings useful?*,
#   [arXiv:2410.06205](https://arxiv.org/abs/2410.06205) (abstract seen): fast pairs for positional
#   heads, slow ones for content, in Gemma 7B.
# - Jonasson 2025, *Rotary Offset Features in Large Language Models*,
#   [arXiv:2503.01832](https://arxiv.org/abs/2503.01832) (abstract and beginning seen): pairs with
#   large queries and keys in many models, and bounds for their speed. Our pairs look like an
#   instance.
# - Jin et al. 2025, *Massive Values in Self-Attention Modules are the Key to Contextual Knowledge
#   Understanding*, [ICML 2025](https://proceedings.mlr.press/v267/jin25f.html) (abstract seen).
# - Press et al. 2022, *Train Short, Test Long*,
#   [arXiv:2108.12409](https://arxiv.org/abs/2108.12409).
