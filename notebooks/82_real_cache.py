# %% [markdown]
# # 82. KV cache and attention sinks in a trained model
#
# *What can be dropped, rounded or reused in the KV cache of a trained model, and why must one token stay?*
#
# 45 minutes. Needs [12 FlashAttention, sliding windows and attention sinks](12_attention_blocks.ipynb), [40 Rotary position embedding (RoPE): the derivation](40_rope_derived.ipynb), [51 Length extrapolation: why models fail past their training length](51_extrapolation.ipynb), [63 KV cache, sampling, beam search, speculative decoding](63_decoding.ipynb). To run it, fetch trained weights: `make real`. Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** The KV cache of a trained model can be cut to a window, rounded to a few bits, or reused
# in another text. What does each cost? You measure it on Gemma 3 270M, a small language model that runs in
# NumPy, by its loss on three texts. One token turns out to matter a lot: the first. You hide it, layer by layer,
# and ask what it does. Then you count bytes, round keys and move a prefix. It is one model, so its numbers are
# not laws.

# %% fold="input" alt="Left, rise of the loss on three texts: near zero if an ordinary token is hidden, 0.5 to 1.3 nats if the first token is hidden, 0.7 to 0.8 with a window of 96 tokens, and about 0.2 if the window keeps the first token. Right, weight on the first token by layer, 0.07 to 0.54."
import matplotlib.pyplot as plt

from pe_numpy.book.plots import real_cache as plots
from pe_numpy.book.trained import results

TEXTS = ("opticks", "pydocs", "book")
opening = {"token 5 hidden": ("bos_hidden", "token 5, all layers"),
           "<bos> hidden": ("bos_hidden", "all layers"),
           "window of 96": ("window_96", "all layers"),
           "window of 96, and <bos>": ("window_96", "all layers, 1 sink")}  # fmt: skip
rise = {name: {t: results(e)[s, t] for t in TEXTS} for name, (e, s) in opening.items()}
weight = {t: [results("bos_weight")[f"layer {n}", t] for n in range(18)] for t in TEXTS}
plots.sinks(rise, weight, (5, 11, 17))
plt.show()

# %% [markdown]
# ## One hidden token can cost a nat
#
# Each text has 388 tokens. Hide one of them from all later ones, and you would expect to lose almost nothing.
# So it is with token 5. But if you hide the first, the loss rises by 0.5 to 1.3 nats. A nat makes the right
# token $e\approx2.7$ times less probable, on geometric average. And a window that hides up to three quarters of
# the text costs far less if it keeps this one token.
#
# **The model.** Gemma 3 270M (`gemma3` in [chapter
# 64](64_real_models.ipynb#supported-models-what-each-family-changes)) has 18 layers. Fifteen are *local*, with
# a [window](12_attention_blocks.ipynb#sliding-window-attention-off-by-one) of 512 tokens. Three are *global*.
# `python -m pe_numpy fetch gemma` fetches it, with matrices that were rounded to between four and eight bits.
# Without it you can read on, because the outputs are stored. Every text begins with the token `<bos>`
# (beginning of sequence), as the tokenizer's settings ask.
#
# **The texts.** `opticks` is from Newton's *Opticks*, `pydocs` from Python's documentation, `book` from this
# book, which the model can't have read.

# %%
import numpy as np

from pe_numpy.book import trained

gemma = trained.gemma()
s = gemma.s
print(f"{s.layers} layers, global: {gemma.all_see}, window of the others: {s.windows[0]}")
print(f"{s.H} query heads and {s.G} KV head of dimension {s.K}; width {s.D}; made for texts of",
      f"{gemma.model.config['max_position_embeddings']:,} tokens")  # fmt: skip
for text in TEXTS:
    print(f"{text:8} mean loss {results('bos_hidden')['as it is', text]:.2f} nats per token")
live = gemma.losses(trained.tokens_of("opticks", 388))  # of each third token
assert len(live) == 129 and abs(live.mean() - results("bos_hidden")["as it is", "opticks"]) < 0.01

# %% [markdown]
# **How we measure.** A *change* is the mean over some 129 tokens (each third) of how much their loss rises,
# compared token by token with the model as it is. After ± comes its standard error over these tokens. "Below
# .02" says that the mean is smaller than that in size. A change below two standard errors may be chance. (The
# error counts tokens as independent, so it is perhaps too small. Two tables are of other tokens, as said there.) Long
# measurements are read from `notebooks/results/real.csv`, and `real_cache.py` beside it is their code.


# %%
def table(experiment, *settings, part=""):
    rows = results(experiment)
    print(f"{'change of the loss, nats per token':50}", *(f"{text:>13}" for text in TEXTS))
    for setting in settings:
        print(f"{setting + part:50}", end="")
        for text in TEXTS:
            change, error = rows[setting + part, text], rows[f"{setting}, se", text]
            more = "" if part else f" ± {error:.2f}"
            print(f"{'below .02' if abs(change) < 0.02 else f'{change:+.2f}{more}':>14}", end="")
        print()


# %% [markdown]
# ## What a missing BOS token costs
#
# A tokenizer adds `<bos>` only if it is asked to. If you forget it, no shape is wrong, and the text still reads
# well enough that you may not notice. *Predict*: does it help to tell the model that the first word has
# position 1, as if `<bos>` were there?

# %% fold="output"
hidden = {"mask": lambda n, d: gemma.mask(n, d) & ((np.arange(len(d)) > 0) | (d == 0))}
tokens = trained.tokens_of("opticks", 388)
masked = gemma.but(**hidden).losses(tokens)[1:]  # <bos> is there, but no other token sees it
dropped = gemma.losses(tokens[1:], start=2)  # it is not there; the same tokens are predicted
late = gemma.but(positions=lambda n, p: p + 1).losses(tokens[1:], start=2)
assert np.allclose(dropped, masked, rtol=0, atol=0.01)
assert np.allclose(late, dropped, rtol=0, atol=0.01)
print(f"left out {(dropped - live[1:]).mean():+.2f}, hidden {(masked - live[1:]).mean():+.2f},",
      f"left out and counted {(late - live[1:]).mean():+.2f}")  # fmt: skip
table("first_token", "no <bos>", "a word instead of <bos>", "<bos> twice")

# %% [markdown]
# No. RoPE's scores depend only on distances ([chapter 40](40_rope_derived.ipynb)), so a shift of all positions
# changes nothing but the rounding. By the same argument, leaving `<bos>` out equals hiding it from everyone. The
# one ordinary word that we tried at the front ("The") does not replace it, so being first is not enough. The
# opposite error costs less. If the tokenizer and a chat template both add `<bos>`, the loss rises by 0.13 on
# `opticks`, and on the other texts by amounts that may be chance.
#
# Do later tokens recover? In the last third of `pydocs` the loss is almost what it was, in the other two texts
# it isn't:

# %%
table("first_token", "no <bos>", part=", last third")

# %% [markdown]
# ## The sink's value vector is the shortest
#
# A token that gets 7 to 54% of the weight is worth a look. Xiao et al. (2023) call first tokens with much
# weight and little meaning **attention sinks**. The model's page (its module in the package) reads `opticks` into
# a KV cache, which gives us keys and values. `gemma`, this chapter's runner, notes weights, scores and outputs.

# %%
from pe_numpy import Cache, softmax

cache = Cache(1, 400)
gemma.model.hidden([tokens], cache=cache)
keys, values = ([cache.held[n][part][0, 0, :388] for n in gemma.layers] for part in (0, 1))
lengths = np.array([np.linalg.norm(v, axis=1) for v in values])  # of all value vectors
print("<bos> by layer, relative to the mean:", *(lengths[:, 0] / lengths.mean(axis=1)).round(1))
assert (lengths.argmin(axis=1) == 0).all()

# %%
scores, seen, mixed = {}, {}, {}


def note(n, q, k):
    scores[n] = gemma.scores(n, q, k)
    return scores[n]


watched = {"weights": seen.setdefault, "mixed": mixed.setdefault, "scores": note}
x = gemma.but(**watched).hidden(tokens)
assert np.allclose(x, gemma.model.hidden([tokens])[0], rtol=0, atol=1e-3)  # the page agrees

# %% [markdown]
# In each of the 18 layers, the value vector of `<bos>` is the shortest of all 388 of `opticks`. It looks as if
# weight on it went nowhere. With $a_i$ for the weight of query $i$ on `<bos>`, $v_0$ for its value, and
# $\bar o_i$ for the head's output if `<bos>` is hidden from it:
#
# $$o_i = a_i\,v_0 + (1 - a_i)\,\bar o_i$$

# %%
w, o, v = seen[5], mixed[5], values[5]
a = w[:, 1:, :1]  # (H, 387, 1): the weights on <bos>, for all queries but its own
see = np.tri(388, dtype=bool)[1:, 1:]
without = softmax(np.where(see, scores[5][:, 1:, 1:], -np.inf)) @ v[1:]
assert np.allclose(o[:, 1:], a * v[0] + (1 - a) * without, rtol=0, atol=1e-3)
part = (a[..., 0] * lengths[5, 0] / np.linalg.norm(o[:, 1:], axis=-1)).mean()
print(f"layer 5: mean weight on <bos> {a.mean():.2f}; its part of the output's length {part:.1f}")

# %% [markdown]
# The first term is one vector, times the weight. Here it is on average half as long as the output. Half of the
# weight is on it, and the other values that a query mixes may partly cancel. The second term is the gate of a
# [learned sink](12_attention_blocks.ipynb#a-learned-sink-is-a-gate-on-the-output-second-reading). The usual
# explanation is that a head puts its weight on the sink if it has nothing to say. Then $v_0$ should not matter,
# and $a_i$ should differ from query to query.
#
# *Predict*: first count $v_0$ as zero and leave the weights as they are. Then keep $v_0$, and give all queries
# the same weight $a$ on `<bos>`, the head's mean over the text. Which of the two costs more?

# %% fold="output"
table("sink_value", "layer 5", "all layers")
print()
table("sink_constant", "layer 5", "all layers")

# %% [markdown]
# Without its value the sink is worth almost nothing. The loss rises about as much as if `<bos>` were hidden
# (next section). With one weight per head for all queries it barely rises in layer 5. So for the loss, this
# layer's sink is mainly a constant. Each head might as well add a fixed multiple of one vector, and scale the
# rest by a fixed factor. What the heads decide about this weight from query to query is worth about 0.2 nats in
# all layers together.
#
# Is it only the norm? Behind attention Gemma divides the output by its root mean square, so a missing part
# makes the rest larger. We leave out $v_0$ again, but divide by the number that includes it:

# %%
table("sink_value_in_norm", "layer 5")

# %% [markdown]
# That is worse, so in layer 5 the vector itself is needed. Gu et al. (2024) write of other models that a sink
# acts "more like key biases", which may "not contribute to the value computation". In layer 5 of this model it
# is also a bias of the output.
#
# ## Which layers need a sink
#
# *Predict*: `<bos>` is hidden from the fifteen local layers, or from the three global ones. Which costs more?

# %% fold="output"
table("bos_hidden", "all layers", "local layers", "global layers")
print()
table("bos_hidden", "layer 5", "layer 11", "layer 17", "all layers but 5")

# %%
one = results("bos_hidden_from_one")
worst = [max(one[f"layer {n}", text] for n in gemma.local) for text in TEXTS]
print("hidden from one local layer, the largest change:", *(f"{x:+.2f}" for x in worst))

# %% [markdown]
# The three global layers need it some three to four times as much as the fifteen local ones, and most of that is
# layer 5. No local layer by itself loses more than 0.09 nats. But layers do not simply add up. If all except
# layer 5 do without, 0.16 to 0.30 nats are lost. Added to the loss of layer 5 itself, that
# is still less than all layers lose together.
#
# So weight is not need. Layers 11 and 13 put about as much weight on `<bos>` as layer 5 (the figure at the
# top), and each by itself does almost as well without it. A plot of attention weights would have named these
# layers too. [Chapter 81](81_real_rope.ipynb#the-attention-sink-the-penalty-spares-bos) asks where the local
# sinks come from.
#
# ## Windows with and without a sink
#
# Now every layer gets a window of 96 tokens, so that the cache of a long text stays small. A sink is kept
# beside it, as in [StreamingLLM](12_attention_blocks.ipynb#attention-sinks-streamingllm). It is one token
# (`<bos>`) or four, at true positions or in the *slots* of a cache of that size: there positions count places in
# the cache. The last two rows give the window to only some layers, without a sink.

# %%
table("window_96", "all layers", "all layers, 1 sink", "all layers, 4 sinks",
      "all layers, 1 sink in slots", "all layers, 4 sinks in slots",
      "all layers, 1 sink in global ones", "all layers, 1 sink in local ones",
      "local layers", "global layers")  # fmt: skip
kept = [f"all layers, {how}" for how in (
    "1 sink", "4 sinks", "1 sink in slots", "4 sinks in slots"
)]  # fmt: skip
kinds = np.array([[results("window_96")[way, text] for way in kept] for text in TEXTS])
print(f"the four ways to keep sinks differ by at most {np.ptp(kinds, axis=1).max():.2f}")

# %% [markdown]
# Without a sink the window costs 0.7 to 0.8 nats, with one it costs 0.2. So `<bos>` is enough. StreamingLLM
# keeps four tokens. This model does not need more than one, perhaps because it expects `<bos>` in front. If
# only some layers keep it, the global ones are the better choice.
#
# Nor do slots matter here. RoPE should know these distances: at 388 tokens, `<bos>` is nearer than the 512
# that local layers see in training, far nearer than the 32,768 of the global ones. So we put it further
# away than local layers have ever seen it. These are the changes from token 600 on (each third token), in texts
# of 1,150 tokens, again with windows of 96 against the model as it is.

# %%
table("distant_sink", "no sink", "<bos> at its true position", "<bos> in slot 0")

# %% [markdown]
# Now slots are better on all three texts, by 0.08 to some 0.3 nats. So StreamingLLM's advice holds here as well,
# once true distances leave the trained range. Within it, slots change nothing that we can measure. But even in
# slots the short window now costs 0.18 to 0.63 nats.
#
# ## KV cache size with obeyed windows
#
# Dropped keys save memory. A local layer needs only the keys and values of its window. The package's
# `Cache` knows each layer's window, and makes all its room when the first token arrives:

# %%
long = Cache(1, 32_768)
gemma.model.hidden([tokens[:1]], cache=long)
arrays = {n: long.held[n] for n in (0, 5)}  # a local and a global layer: keys, values
for n, (k, v) in arrays.items():
    print(f"layer {n}: keys {k.shape}, values {v.shape}, {k.dtype}")
held = sum(array.nbytes for layer in long.held.values() for array in layer)

# %% [markdown]
# For $S$ tokens, a window of $w$, one KV head of dimension $K$ and $b$ bytes per number:
#
# $$\text{bytes}(S) = 2Kb\,\big(N_{\text{global}}\,S + N_{\text{local}}\min(S, w)\big)$$


# %%
def bytes_of(S, w, number=4):
    local, everywhere = len(gemma.local), len(gemma.all_see)
    return 2 * s.K * number * (everywhere * S + local * min(S, w))


room = arrays[0][0].shape[2]  # more than the window
assert held == bytes_of(32_768, room) > bytes_of(32_768, 512)
every, obeyed = bytes_of(32_768, 32_768), bytes_of(32_768, 512)
print(f"per token: {bytes_of(1, 512):,} bytes up to the window, then {6 * s.K * 4:,}")
print(f"32,768 tokens: all kept {every / 1e6:,.0f} MB, windows obeyed {obeyed / 1e6:.0f} MB")
print(f"the package's Cache: {held / 1e6:.0f} MB, room for {room:,} tokens in a local layer")

# %% [markdown]
# Beyond 512 tokens each new one costs a sixth. The package's `Cache` takes a little more. It has room for twice
# the window and some tokens to go back, so that it rarely copies. In two bytes per number all figures are half.
#
# ## Entropy by length in a trained head
#
# For normal scores of one spread, [chapter 51](51_extrapolation.ipynb#attention-entropy-grows-with-length)
# finds that each doubling of the keys adds up to $\ln 2$ to the entropy of a head's weights. What does a
# trained head do? Part of its weight is on `<bos>`, and entropy separates this part. Let $H_{\text{rest}}$ be
# the entropy of the other weights, divided by their sum $1-a$:
#
# $$H = h(a) + (1-a)\,H_{\text{rest}},\qquad h(a) = -a\ln a - (1-a)\ln(1-a)$$


# %%
def entropy(w):
    return -(w * np.log(np.maximum(w, 1e-30))).sum(axis=-1)


for n in gemma.all_see:
    w = seen[n][:, 8:].astype(float)
    a, rest = w[..., 0], w[..., 1:] / w[..., 1:].sum(axis=-1, keepdims=True)
    h = -a * np.log(a) - (1 - a) * np.log(1 - a)
    assert np.allclose(entropy(w), h + (1 - a) * entropy(rest), rtol=0, atol=1e-5)

# %% alt="Entropy without the first token in the three global layers for 40 to 1,150 tokens on a logarithmic axis, a curve per text. The curves rise from between 2.2 and 2.7 to between 3.8 and 5.1 nats, on the whole more slowly than the dashed line that rises by ln 2 per doubling."
at, rows = (40, 80, 160, 320, 640, 1150), results("entropy_by_length")
curves = {
    f"layer {n}": {
        t: np.array([rows[f"layer {n}, {L} tokens, without <bos>", t] for L in at]) for t in TEXTS
    }
    for n in (5, 11, 17)
}
plots.entropies(at, curves, " without <bos>")
plt.show()

# %%
doublings = np.log2(at[-1] / at[0])
for layer, by_text in curves.items():
    rise = [(by_text[t][-1] - by_text[t][0]) / doublings for t in TEXTS]
    share = [[rows[f"{layer}, {L} tokens, weight on <bos>", t] for L in (40, 1150)] for t in TEXTS]
    print(f"{layer:8} nats per doubling:", *(f"{x:.2f}" for x in rise), end="; ")
    print("weight on <bos>:", ", ".join(f"{x:.2f} to {y:.2f}" for x, y in share))
    assert max(rise) < np.log(2)
print(f"ln 2 = {np.log(2):.2f}")

# %% [markdown]
# On average over these lengths a doubling adds 0.28 to 0.52 nats, in all nine curves less than $\ln 2 = 0.69$,
# though single steps of a curve are steeper. On average these heads attend to more keys in a longer text, but
# not to twice as many. In chapter 51's formula, scores are independent and of one spread, and a large spread
# makes the growth slower. Trained scores also depend on each other. Meanwhile the weight on `<bos>` is lower at
# 1,150 tokens than at 40 in all nine cases, so the entropy of all weights grows for two reasons. The curves are
# uneven: each point is a mean over the last quarter of one beginning of one text.
#
# ## A flat optimum at temperature 1
#
# If it hurt at this length that weights scatter over many keys, sharper scores would help. We multiply all
# scores of all layers by a number (one over a temperature):

# %%
table("score_factor", "times 0.8", "times 0.9", "times 1.1", "times 1.25")

# %% [markdown]
# None of the four factors helps measurably on the texts of 388 tokens. A tenth more or less costs at most 0.04
# nats: the optimum is flat. A quarter more, or a fifth less, costs up to 0.13. So at this length no common
# factor is missing.
#
# ## Keys in 4, 3 and 2 bits
#
# A cache can also be rounded. We round the keys, and leave the values as they are. With $b$ bits a number
# becomes one of $2^b$ values between the least and the largest of its group:
#
# $$\hat x = x_{\min} + \Delta\,\operatorname{round}\Big(\frac{x - x_{\min}}{\Delta}\Big),\qquad
# \Delta = \frac{x_{\max} - x_{\min}}{2^b - 1},\qquad |\hat x - x| \le \frac{\Delta}{2}$$
#
# What is a group? *Per token* takes all 256 channels of one key. *Per channel* takes one channel of all keys,
# here also of keys that come later (a cache that grows can't know these). And keys may be rounded before RoPE
# rotates them, or after.


# %%
def rounded(x, bits, axis):
    least = x.min(axis=axis, keepdims=True)
    step = (x.max(axis=axis, keepdims=True) - least) / (2**bits - 1)
    return least + step * np.round((x - least) / step), step


from pe_numpy import rope

after = keys[8].astype(float)
before = rope(after, -np.arange(388), s.ropes[8].frequencies, "half")  # the rotation undone
for name, k in (("before", before), ("after", after)):
    for what, axis in (("channel", 0), ("token", 1)):
        off, step = np.abs(rounded(k, 4, axis)[0] - k), rounded(k, 4, axis)[1]
        assert 0.49 < (off / step).max() <= 0.5
        print(f"layer 8, 4 bits, {name} RoPE, per {what:7}: mean error {off.mean():.2f}")


# %% alt="Range of the keys by pair of channels, fast pairs first, mean of the local layers. Before RoPE it is 3 to 13, largest at pair 75. After RoPE it is clearly larger for pairs below 85, with peaks of 14 at pair 49 and 20 at pair 75. For slower pairs both curves agree."
def span(k):  # of each pair, the mean of its two channels
    return np.ptp(k, axis=0).reshape(2, 128).mean(axis=0)


spans = {"before RoPE": [], "after RoPE": []}
for n in gemma.local:
    plain = rope(keys[n], -np.arange(388), s.ropes[n].frequencies, "half")
    for name, k in zip(spans, (plain, keys[n]), strict=True):
        spans[name].append(span(k))
mean = {name: np.mean(x, axis=0).round(1) for name, x in spans.items()}
plots.ranges(mean)
growth = (mean["after RoPE"] / mean["before RoPE"]).reshape(8, 16).mean(axis=1)
print("growth of the range, 16 pairs each, fast to slow:", *(f"{x:.1f}" for x in growth))
plt.show()

# %%
table("rounded_keys", *(
    f"{bits} bits, {place}, per {what}"
    for what in ("channel", "token") for bits in (4, 3, 2) for place in ("before", "after")
))  # fmt: skip

# %% [markdown]
# Per channel and before RoPE, 4 bits cost nothing that we can measure, 3 bits 0.04 to 0.11 nats, 2 bits 0.20 to
# 0.36. After RoPE each costs more, at 3 and 2 bits several times as much. The figure suggests why. RoPE mixes
# the two channels of a pair, so that each of them ranges over what both had. For fast pairs the range grows by
# 40 to 70% (single pairs more than double). The slowest barely turn in 388 tokens, and their range does not
# change. This is a reason to cache keys before the rotation, as KVQuant does (Hooper et al. 2024). A caution:
# rounding is chaotic. A different last digit somewhere redraws all later rounding, so such means may differ by
# a few hundredths on another processor.
#
# Per token, 4 bits already cost 1.2 to 2.2 nats. If a few large channels set the step for all 256, which? [Liu et
# al.](https://zirui-ray-liu.github.io/projects/mlsys-numerics/kivi/) (KIVI, 2024) report a few fixed outlier
# channels. *Predict*: in each local layer one pair of channels dominates $|q||k|$ ([chapter
# 81](81_real_rope.ipynb#the-largest-pair-makes-about-half-a-turn-in-training)). Leave that pair
# as it is and do not count it. Does rounding per token work now?

# %% fold="output"
largest = {}


def measured(n, q, k):
    of_q, of_k = (np.hypot(x[..., :128], x[..., 128:]).mean(axis=(0, 1)) for x in (q, k))
    largest[n] = of_k.argmax() == (of_q * of_k).argmax()
    return q, k


gemma.but(heads=measured).hidden(tokens)
print(f"the dominant pair has the largest keys in {sum(largest.values())} of 18 layers")
token = "4 bits, before, per token"
table("rounded_keys", token, *(f"{token}, {pair} apart" for pair in (
    "a random pair", "dominant pair", "largest pair", "4 largest pairs", "16 largest pairs"
)), f"{token}, divided by its gains", "8 bits, before, per token")  # fmt: skip

# %% [markdown]
# It does not. The dominant pair has the largest keys in only half of the layers, and without it the damage
# falls by about a fifth at most. (A random pair shows how large chance is. Pairs are
# ordered by their size on `opticks`.) Without the four largest pairs it is far less, but even 16 of 128 pairs
# leave 0.2 nats on two texts. With 8 bits per token we can't measure any damage.
#
# Most of this has one origin. Before RoPE, Gemma divides each key by its root mean square and multiplies it by
# a *gain* per channel, a trained number. So round the key before its gains, and multiply afterwards. That needs
# no search for outliers and no extra memory, and it removes about nine tenths of the damage on `opticks` and
# more on the others.
#
# ## A prefix reused at another offset
#
# A document is read once and its keys and values are stored. Later it appears in another prompt, 129 tokens
# further on. Need it be read again? Here the document is the middle third of `opticks`, stored behind `<bos>`.

# %%
bos, first, kept, rest = np.split(tokens, (1, 130, 259))
alone = Cache(1, 400)
gemma.model.hidden([np.concatenate([bos, kept])], cache=alone)
stored = [alone.held[n][0][0, 0, 1:130] for n in gemma.layers]  # keys at positions 1 to 129

# %% [markdown]
# RoPE's rotations add, so a stored key is moved by one more rotation:
#
# $$R_{t}\,(R_j\,k) = R_{j+t}\,k$$
#
# But is the stored key the right one? We compare the moved keys with the keys of the whole text.

# %%
apart = {"moved by RoPE": [], "not moved": []}
for n in gemma.layers:
    moved = rope(stored[n], [129], s.ropes[n].frequencies, "half")
    right = keys[n][130:259]
    for name, k in zip(apart, (moved, stored[n]), strict=True):
        apart[name].append(np.linalg.norm(k - right) / np.linalg.norm(right))
for name, x in apart.items():
    print(f"{name}: off by {x[0]:.2f} in layer 0, by {min(x[1:]):.2f} to {max(x[1:]):.2f} above")
assert apart["moved by RoPE"][0] < 1e-5

# %% alt="Relative distance of the moved keys from the right ones by layer. With the rotation it is 0 in layer 0, then between 0.06 and 0.3. Without the rotation it is between 0.2 and 1.1."
plots.by_layer(
    {k: np.round(x, 2) for k, x in apart.items()}, "relative distance from the right keys"
)
plt.show()

# %%
table("reused_prefix", *(
    f"{way} text before, {how}" for way in ("own", "other")
    for how in ("rotated", "rotated, 32 computed again", "not rotated", "left out")
))  # fmt: skip

# %% [markdown]
# Layer 0 is exact, because its keys depend only on their own token and its position. Above it, a right key
# would depend on the text before. The stored key doesn't, and is off by 6 to 30% of the right keys' length. In
# layers 5 and 11 the rotation barely changes the distance, probably because nearly all of a key's length is in
# pairs that turn slowly.
#
# In the table the text before the document is the beginning of the same text (own) or of another. The change is
# the mean over the next 128 tokens, against reading all again. On all texts they lose at most 0.02 ± 0.01 nats.
# To forget the rotation costs 0.14 to 0.28. Computing the first 32 tokens of the document again changes nothing
# that we can measure.
#
# This does not prove that stored documents are safe. Leaving out the text before the document (*left out*)
# costs at most 0.15 nats, so there was little to lose. If a document needs what comes before it, say a
# definition, its stored values lack that, and a mean loss barely shows it. Exact reuse needs the same tokens
# from the beginning of the text on ([old rows never
# change](63_decoding.ipynb#why-a-kv-cache-is-exact-old-rows-never-change)).
#
# ## Drafts from n-grams
#
# [Chapter 63](63_decoding.ipynb#speculative-decoding-a-small-model-drafts) lets a small model draft. No model
# is needed if the text repeats itself. Look for the last two tokens earlier in the text, and draft what
# followed them there (*prompt lookup*). The model reads the draft in one call, and keeps it as far as greedy
# decoding would have written the same.


# %%
def draft(text, ahead):
    earlier = [i for i in range(2, len(text)) if text[i - 2 : i] == text[-2:]]
    return text[earlier[-1] :][:ahead] if earlier else []


def step(text, cache, ahead=0):
    guess = draft(text, ahead)
    chosen = gemma.model.logits([text[-1:] + guess], cache=cache)[0].argmax(axis=-1).tolist()
    right = next((i for i, x in enumerate(guess) if x != chosen[i]), len(guess))
    cache.cut(len(text) + right)
    return text + chosen[: right + 1]


# %%
from pe_numpy.book.fetch import found
from pe_numpy.models.pieces import load_pieces

written = {}
for ahead in (0, 6):
    text, cache, calls = tokens[:150].tolist(), Cache(1, 200), 0
    gemma.model.hidden([text[:-1]], cache=cache)
    while len(text) < 166:
        text, calls = step(text, cache, ahead), calls + 1
    written[ahead] = text[:166]
    print(f"{ahead} ahead: {calls} calls for 16 tokens")
assert written[0] == written[6]
print(load_pieces(found("gemma")).decode(written[6][150:]))

# %% [markdown]
# The tokens are the same, with fewer calls. (In the next table, `code` is three short Python functions.) Each
# call gives the accepted tokens and one more:
#
# $$\text{tokens} = \text{calls} + \text{accepted}$$

# %%
rows = results("ngram_draft")
for text in (*TEXTS, "code"):
    names = ("greedy, calls", "draft, calls", "draft, calls with a draft", "drafted", "accepted")
    greedy, calls, drafting, drafted, right = (int(rows[name, text]) for name in names)
    assert rows["same", text] == 1 and greedy == 39 == calls + right
    even = (greedy - calls + drafting) / drafting  # at which such a call gains nothing
    print(f"{text:8} {calls} calls instead of {greedy}, {drafting} with a draft;",
          f"{right} of {drafted} tokens accepted; even at {even:.1f}")  # fmt: skip

# %% [markdown]
# On `opticks` 11 calls write what 39 wrote. Is that three times as fast? Not in NumPy. A call with one token
# multiplies a vector by each matrix, and reads the matrix once. With two tokens this becomes a product of two
# matrices, which BLAS may compute by another routine that first rearranges the large one. On our machine (the
# one of `notebooks/results/bench_real.md`, one thread), timed apart, a call with a draft took more than three
# times as long as a call with one token. The last column is the ratio at which drafting gains nothing. The
# drafts saved about a third of the time on `opticks`, a tenth on `pydocs`, less on `code`, and nothing on
# `book`.

# %% [markdown]
# ## In short
#
# - **What does a missing BOS token cost?** On three texts 0.51 to 1.31 nats per token, as if it were hidden
#   from everyone. Counting positions from 1 does not help. [BOS](#what-a-missing-bos-token-costs)
# - **Does an attention sink do nothing?** Not here. Its value vector is the shortest, but without it the loss rises
#   about as if `<bos>` were hidden. With one fixed weight per head the sink in layer 5 works almost as well.
#   [The sink's value](#the-sinks-value-vector-is-the-shortest)
# - **Which layers need it?** Mainly one of 18, the global layer 5. Others put about as much weight
#   on `<bos>`, and can do without, one at a time.
#   [Which layers](#which-layers-need-a-sink)
# - **How many sinks, and at which positions?** One, `<bos>`: with it a window of 96 costs 0.2 nats, without
#   it 0.7 to 0.8. True positions are as good as slots until distances leave the trained range.
#   [Windows](#windows-with-and-without-a-sink)
# - **How should I round cached keys?** Per channel, before RoPE: 4 bits changed the mean loss by less than 0.02 nats. Per
#   token, 4 bits cost over a nat, mostly because of the gains of the norm. [Keys](#keys-in-4-3-and-2-bits)
# - **Can I reuse cached keys at another offset?** Yes, rotated by the shift. That is exact in the first layer and an
#   approximation above, which cost at most 0.02 ± 0.01 nats here, where little could be lost.
#   [Reuse](#a-prefix-reused-at-another-offset)

# %% [markdown]
# ## Exercises
#
# All but the last need no weights.
#
# ### Exercise 1: From which length do windows pay?
#
# Gemma 3 270M has 3 global layers and 15 with a window of 512 tokens. From which length on do obeyed windows
# halve the KV cache? What share remains for a very long text?
#
# <details><summary>Hint 1</summary>
#
# Count in units of one layer's keys and values for one token. Without windows the cache takes $18S$ of them.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Beyond 512 tokens it takes $3S + 15\cdot512$ with windows.
#
# </details>
# <details><summary>Solution</summary>
#
# Solve $9S = 3S + 15\cdot512$. For a long text the share tends to $3/18$, a sixth.
#
# ```python
# def with_windows(S):
#     return 3 * S + 15 * min(S, 512)
# assert [S for S in range(1, 3000) if 2 * with_windows(S) <= 18 * S][0] == 1280
# assert abs(with_windows(10**7) / (18 * 10**7) - 1 / 6) < 1e-4
# ```
#
# </details>
#
# ### Exercise 2: A sink hides the growth of entropy
#
# A head puts the weight $a$ on `<bos>` and spreads the rest equally over $n$ keys. What does a doubling of $n$
# add to $H_{\text{rest}}$ and to $H$, if $a$ stays the same? And what else adds to $H$ if $a$ falls from 0.6 to
# 0.35?
#
# <details><summary>Hint 1</summary>
#
# $H = h(a) + (1-a)\,H_{\text{rest}}$, and $H_{\text{rest}} = \ln n$.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Only the second term contains $n$. A falling $a$ gives it a larger factor.
#
# </details>
# <details><summary>Solution</summary>
#
# A doubling adds $\ln 2$ to $H_{\text{rest}}$ and $(1-a)\ln 2$ to $H$. If $a$ falls, $H$ grows faster, because
# more of $\ln n$ counts.
#
# ```python
# def spread(a, n):
#     return np.r_[a, np.full(n, (1 - a) / n)]
# for a in (0.2, 0.6):
#     added = entropy(spread(a, 128)) - entropy(spread(a, 64))
#     assert np.isclose(added, (1 - a) * np.log(2), rtol=0, atol=1e-9)
# same = entropy(spread(0.6, 1024)) - entropy(spread(0.6, 64))
# assert entropy(spread(0.35, 1024)) - entropy(spread(0.6, 64)) > same + 1
# ```
#
# </details>
#
# ### Exercise 3: One constant channel
#
# Of 256 channels, 255 are standard normal and one has the value 30 in each of 400 keys. Round to 4 bits per
# token and per channel. How large are the mean errors? Which of the two would notice if the one channel were
# 300?
#
# <details><summary>Hint 1</summary>
#
# The error of a rounded number is on average a quarter of the step.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Per token, the large channel sets $x_{\max}$ of every key. Per channel, it has its own group.
#
# </details>
# <details><summary>Solution</summary>
#
# Per token the error is about 0.5, per channel 0.1. The step per token grows with the one channel, up to the
# point at which all others are rounded to the same value.
#
# ```python
# k = np.random.default_rng(0).standard_normal((400, 256))
# k[:, 0] = 30
# def error(k, axis):
#     step = (k.max(axis=axis, keepdims=True) - k.min(axis=axis, keepdims=True)) / 15
#     least = k.min(axis=axis, keepdims=True)
#     return np.abs(least + step * np.round((k - least) / np.maximum(step, 1e-9)) - k).mean()
# assert 0.4 < error(k, 1) < 0.6 and 0.08 < error(k, 0) < 0.12
# larger = np.where(np.arange(256) == 0, 300, k)
# assert error(larger, 1) > 2 * error(k, 1) and error(larger, 0) == error(k, 0)
# ```
#
# </details>
#
# ### Exercise 4: How often must a draft be right?
#
# Six tokens are drafted for each call. Each is right with probability $p$, independently, and the draft ends at
# the first wrong one. A call with a draft costs three times as much as one without. At which $p$, in steps of
# 0.05, does drafting begin to save time?
#
# <details><summary>Hint 1</summary>
#
# The expected number of tokens per call is one plus the expected number of accepted ones.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The $k$-th drafted token is accepted if all up to it are right, with probability $p^k$.
#
# </details>
# <details><summary>Solution</summary>
#
# At $p = 0.7$: $1 + p + \dots + p^6$ must exceed 3.
#
# ```python
# def per_call(p):
#     return sum(p**k for k in range(7))
# assert [p for p in np.arange(1, 20) / 20 if per_call(p) > 3][0] == 0.7
# ```
#
# </details>
#
# ### Exercise 5: A constant sink (needs weights)
#
# Give all queries of layer 5 one weight on `<bos>`, the head's mean, and let the other weights share the rest.
# Compare the change on `opticks` with the table.
#
# <details><summary>Hint 1</summary>
#
# `gemma.but(weights=...)` takes a function of the layer and its weights $(H, L, L)$.
#
# </details>
# <details><summary>Hint 2</summary>
#
# The other weights of a query sum to $1 - a_i$, and should sum to $1 - a$. The first query has only one key.
#
# </details>
# <details><summary>Solution</summary>
#
# The change is the one in the table, about 0.04 nats.
#
# ```python
# def same_for_all(n, w):
#     if n == 5:
#         a = w[:, 1:, :1].copy()
#         mean = a.mean(axis=1, keepdims=True)
#         w[:, 1:, 1:] *= (1 - mean) / (1 - a)
#         w[:, 1:, :1] = mean
#     return w
# change = (gemma.but(weights=same_for_all).losses(tokens) - live).mean()
# assert abs(change - results("sink_constant")["layer 5", "opticks"]) < 0.01
# ```
#
# </details>

# %% [markdown]
# ## Further reading
#
# - G. Xiao and others, "Efficient streaming language models with attention sinks", 2023,
#   [arXiv:2309.17453](https://arxiv.org/abs/2309.17453). By its abstract, a placeholder token as a dedicated sink in
#   pre-training improves streaming further. Gemma's `<bos>` acts like one.
# - X. Gu and others, "When attention sink emerges in language models: an empirical view", 2024,
#   [arXiv:2410.10781](https://arxiv.org/abs/2410.10781). Abstract read: sinks act "more like key biases".
# - C. Hooper and others, "KVQuant", 2024, [arXiv:2401.18079](https://arxiv.org/abs/2401.18079). By its
#   [repository](https://github.com/SqueezeAILab/KVQuant): keys per channel, before RoPE, and a few first keys
#   and values not rounded at all. We did not read the paper.
# - Z. Liu and others, "KIVI", 2024. By its
#   [page](https://zirui-ray-liu.github.io/projects/mlsys-numerics/kivi/), keys have a few fixed outlier channels and
#   should be rounded per channel, values per token. We did not read the paper.
# - N. Yang and others, "Inference with reference", 2023,
#   [arXiv:2304.04487](https://arxiv.org/abs/2304.04487), and [prompt lookup
#   decoding](https://github.com/apoorvumang/prompt-lookup-decoding): drafts copied from the text itself. Abstract and
#   page read.
