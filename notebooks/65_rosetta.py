# %% [markdown]
# # 65. Converting between RoPE, mask and weight conventions
#
# *Which sign, which layout and which order does another library use, and what happens if you forget to ask?*
#
# 25 minutes. Needs [34 DeBERTa: disentangled attention](34_deberta.ipynb), [35 ALiBi: attention with linear biases](35_alibi.ipynb), [42 RoPE in released models: rope_theta, partial rotary, config.json](42_rope_in_models.ipynb), [64 GPT-2, LLaMA and T5 in NumPy: loading real weights](64_real_models.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Two programs can implement the same model and still store its numbers
# differently: in another order, with another sign, or with true and false exchanged. If you move
# weights or masks between them and forget to convert, no error appears; the model only attends to the
# wrong words. You get one table of twelve such conventions, with who uses what, and a function for
# each conversion. You measure what each forgotten conversion costs, and learn tests that detect it.

# %% fold="input" alt="Eight groups of strips of cells, coloured by what a cell means. In six groups the same colours are in a different order. For masks and ALiBi they stay in place and have different names."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import convert_layout, flip_table, join_fused
from pe_numpy.book.plots import rosetta as plots

distances, buckets = np.arange(-3, 4)[:, None], np.array([[0, 1, 2, 3, 0, -1, -2, -3]]).T
fused = {o: join_fused([0, 1], [2, 3], [4, 5], o, 2).astype(int) for o in ("q|k|v", "H3K")}
flipped, halves = flip_table(distances)[:, 0], flip_table(buckets, "t5")[:, 0]
plots.rosetta_stone(convert_layout(np.arange(8)), fused, flipped, halves)
plt.show()

# %% [markdown]
# ## Convention table: RoPE, relative positions, masks, weights
#
# When you move weights, tables or masks, ask for each row what the other code does. Here $i$ is the
# position of a query, $j$ the position of a key and $K$ the width of a head (`head_dim`). The
# figure above shows eight of these conventions. The strips of a group are two or three ways to
# order or write the same thing.
#
# | row | here, and in | elsewhere | conversion |
# |---|---|---|---|
# | [pairs of RoPE](#rope-pairs-interleaved-or-half-split) | $2c, 2c+1$: RoFormer, GPT-J, [Meta's LLaMA](https://github.com/facebookresearch/llama/tree/6c7fe276574e78057f917549435a2554000a876d) | $c, c+K/2$: [GPT-NeoX](https://github.com/EleutherAI/gpt-neox/tree/ce9bee3), LLaMA in transformers | `convert_layout`, `rope_convert_weights` |
# | [sinusoids](#sinusoids-the-order-of-sines-and-cosines) | sin, cos, sin, cos: the paper | sines first: Marian, [Transformer-XL](https://github.com/kimiyoung/transformer-xl/tree/44781ed); also other speeds: [tensor2tensor](https://github.com/tensorflow/tensor2tensor/tree/bafdc1b), Whisper | `convert_layout`, `timing_signal` |
# | [shift](#relative-shift-or-gather) | gather: [DeBERTa](https://github.com/microsoft/DeBERTa/tree/c794b71) | shift or skew: Transformer-XL, tensor2tensor, [XLNet](https://github.com/zihangdai/xlnet/tree/bbaa3a6) | `relative_gather`, `relative_shift` |
# | [p2c of DeBERTa](#the-position-to-content-distance-of-deberta) | $\delta(j,i)$: the paper | $\delta(i,j)$: DeBERTa's code, transformers | `p2c_distance`, `flip_table` |
# | [tables by i-j](#relative-position-tables-i-j-or-j-i) | $i-j$: BERT in transformers 4.30.2, DeBERTa | $j-i$: Shaw's paper, tensor2tensor, [NEZHA](https://github.com/huawei-noah/Pretrained-Language-Model/tree/0598f02), Wav2Vec2-BERT | `flip_table` |
# | [halves of T5](#t5-buckets-which-half-is-the-past) | `t5_bucket` takes $i-j$ | T5's [code](https://github.com/tensorflow/mesh/tree/da90793) takes $j-i$ | a sign, or `flip_table` |
# | [ALiBi by key](#alibi-by-key-position-bloom-and-mpt) | $-s(i-j)$: the paper, x-transformers | $s\,j$: BLOOM; MPT, from the last key | `alibi_key_bias` |
# | [masks](#attention-masks-may-attend-or-blocked) | True = may attend: torch's `scaled_dot_product_attention` | True = blocked: torch's `nn.MultiheadAttention`, [burn](https://github.com/tracel-ai/burn/tree/078d2cb); both of torch's take additive masks, given floats | `convert_mask` |
# | [batch first](#batch-first-or-time-first) | $(B, T, D)$: GPT-2, LLaMA | $(T, B, D)$: Transformer-XL, XLNet | `np.swapaxes(x, 0, 1)` |
# | [matrices](#weight-matrices-in-out-or-out-in) | (in, out): GPT-2 | (out, in): torch's `nn.Linear` | `W.T` |
# | [fused rows](#fused-qkv-projections-all-of-q-first-or-head-by-head) | all of q, of k, of v: GPT-2, Phi-3, MPT | head by head: GPT-NeoX, BLOOM | `split_fused`, `join_fused` |
# | [gains](#norm-gains-stored-as-g-or-as-w) | $g$: LLaMA | $1+w$, stored $w$: Gemma 1 to 3 | `1 + w` |
#
# $\delta$ is the row of DeBERTa's table that serves a pair ([chapter 34](34_deberta.ipynb)). $s$ is a
# head's slope in ALiBi, and $B, T, D$ are batch, tokens and width. Where no repository is given, the
# versions are transformers 5.23.0, torch 2.13.0 and x-transformers 2.31.10, as recorded in the golden
# files.
#
# What does it cost to forget? Two small random heads read random tokens, once with the right
# convention and once with the other one. **moved** is the share of their attention that then falls on
# other keys.

# %% fold="input"
from pe_numpy import alibi_bias, alibi_key_bias, causal_mask, deberta_scores, relative_distance
from pe_numpy import convert_mask, relative_gather, relative_shift, rms_norm, rope, softmax
from pe_numpy import rope_convert_weights, shaw_scores, sinusoidal, split_fused, split_heads
from pe_numpy import attention, t5_bias, timing_signal
from pe_numpy.book.show import show_source

rng, B, L, D, H, K = np.random.default_rng(65), 2, 12, 16, 2, 8
at = np.arange(L)
distance, past = relative_distance(at, at), causal_mask(at, at)
x, w = rng.standard_normal((B, L, D)), rng.standard_normal(D) / 5
W_q, W_k, W_v = rng.standard_normal((3, D, H * K)) / 3  # (in, out)
codes, slopes = rng.standard_normal((2 * L - 1, K)), np.array([0.5, 0.25])
p2c, c2p = rng.standard_normal((2, H, 2 * L, K))  # DeBERTa's two tables
shaw, t5 = rng.standard_normal((7, K)), 2 * rng.standard_normal((8, H))


# %% fold="input"
def heads(x, *matrices):
    return [split_heads(x @ W, H) for W in matrices]  # (B, H, L, K) each


def dots(q, k):
    return q @ np.swapaxes(k, -1, -2) / np.sqrt(K)


def weigh(scores, mask=True):
    return softmax(np.where(mask, scores, -np.inf))


q, k = heads(x, W_q, W_k)
content, right, forgot = dots(q, k), {}, {}


# %% fold="input"
def turned(q, k, layout):
    return weigh(dots(*(rope(y, at, layout=layout) for y in (q, k))), past)


def summed(x, code, *matrices):
    return weigh(dots(*heads(x + code, *matrices)), past)


right["pairs of RoPE"] = turned(q, k, "interleaved")
forgot["pairs of RoPE"] = turned(q, k, "half")
right["sinusoids"] = summed(x, sinusoidal(at, D), W_q, W_k)
forgot["sinusoids"] = summed(x, sinusoidal(at, D, layout="concatenated"), W_q, W_k)

# %% fold="input"
products = q @ codes.T / np.sqrt(K)  # with the encodings of the distances L - 1 down to 1 - L
right["shift"] = weigh(content + relative_gather(products, distance, L - 1), past)
forgot["shift"] = weigh(content + products[..., :L], past)
right["p2c of DeBERTa"] = weigh(deberta_scores(q, k, p2c, c2p, distance))
forgot["p2c of DeBERTa"] = weigh(deberta_scores(q, k, p2c, c2p, distance, distance))
right["tables by i-j"] = weigh(shaw_scores(q, k, shaw, distance))
forgot["tables by i-j"] = weigh(shaw_scores(q, k, shaw, -distance))
right["halves of T5"] = weigh(content + t5_bias(t5, distance, 20))
forgot["halves of T5"] = weigh(content + t5_bias(t5, -distance, 20))
right["ALiBi by key"] = weigh(content + alibi_bias(slopes, distance))
forgot["ALiBi by key"] = weigh(content + alibi_key_bias(slopes, at))  # without a causal mask

# %% fold="input"
for row in ("masks", "batch first", "matrices", "fused rows"):
    right[row] = weigh(content, past)
forgot["masks"] = weigh(content, ~past)
late = np.swapaxes(x, 0, 1)  # (T, B, D)
forgot["batch first"] = weigh(dots(*heads(late.reshape(B, L, D), W_q, W_k)), past)
forgot["matrices"] = weigh(dots(*heads(x, W_q.T, W_k.T)), past)
by_head = join_fused(W_q, W_k, W_v, "H3K", H)
forgot["fused rows"] = weigh(dots(*heads(x, *split_fused(by_head, "q|k|v", H)[:2])), past)
right["gains"] = weigh(dots(*heads(rms_norm(x, 1 + w), W_q, W_k)), past)
forgot["gains"] = weigh(dots(*heads(rms_norm(x, w), W_q, W_k)), past)


# %% fold="input"
def close(a, b):
    return np.allclose(a, b, rtol=0, atol=1e-12)


def moved(a, b):
    """The share of the weights a that b gives to other keys."""
    return 1 - np.minimum(a, b).sum(axis=-1).mean()


# %% alt="Twelve pairs of attention maps, blue when correct and red when a convention is ignored. The red cells differ in every pair. The wrong mask fills the other triangle, and gains near 0 make the map flat."
shares = {row: moved(right[row], forgot[row]) for row in right}
for row, share in shares.items():
    print(f"{row:14} {share:4.0%}", end="\n" if row in list(shares)[3::4] else " " * 4)
assert min(shares.values()) > 0.25 and shares["masks"] == max(shares.values()) > 0.99
assert all(right[row].shape == forgot[row].shape for row in right)
first = {row: [w[row][0, 0].round(6) for w in (right, forgot)] for row in right}  # of one head
plots.forgotten_conventions(first, list(shares.values()))
plt.show()

# %% [markdown]
# Blue maps use the right convention, and red maps use the other one. Rows are queries. The shares
# are means over both heads and both texts.
#
# ## Each conversion with a test
#
# ### RoPE pairs: interleaved or half-split
#
# Vectors are reordered along their last axis, queries and keys alike. Weights are reordered head by
# head, row by row of (out, in). Partial RoPE needs the number of rotated components, `d`.
# `to="interleaved"` converts back.

# %%
show_source(convert_layout)
assert close(turned(convert_layout(q), convert_layout(k), "half"), right["pairs of RoPE"])
there = [rope_convert_weights(W.T, H).T for W in (W_q, W_k)]
assert close(turned(*heads(x, *there), "half"), right["pairs of RoPE"])
one_alone = turned(convert_layout(q), k, "half")
assert not close(convert_layout(convert_layout(q)), q)  # twice is not back
print(f"keys left as they were: {moved(right['pairs of RoPE'], one_alone):.0%}")

# %% [markdown]
# ### Sinusoids: the order of sines and cosines
#
# The same permutation converts the paper's order to sines first. Reorder the table and keep the
# weights, or keep the table and reorder everything that is combined with it, here the tokens and
# the rows of two matrices. Tensor2tensor's **timing signal** also has different speeds, and no
# order fixes this. It is the paper's encoding with another base:
#
# $$b = 10000^{D/(D-2)}$$

# %%
sines_first, timing = sinusoidal(at, D, layout="concatenated"), timing_signal(at, D)
assert close(sinusoidal(at, D, base=10_000 ** (D / (D - 2)), layout="concatenated"), timing)
assert close(convert_layout(sines_first, "interleaved"), sinusoidal(at, D))
rows = [convert_layout(W.T).T for W in (W_q, W_k)]
assert close(summed(convert_layout(x), sines_first, *rows), right["sinusoids"])
mended = summed(x, convert_layout(timing, "interleaved"), W_q, W_k)
print(f"timing signal in the paper's order: {moved(right['sinusoids'], mended):.0%}")
assert not close(np.sort(timing[1]), np.sort(sines_first[1]))  # in no order

# %% [markdown]
# ### Relative shift or gather
#
# Products with the encodings of all distances, the largest first, must be assigned to their pairs
# $(i,j)$. A **gather** looks them up, and a **shift** (or skew) pads and reshapes. With columns
# from $L-1$ down to $1-L$ both are right everywhere. With columns for only the past, the shift
# needs a causal mask.

# %%
show_source(relative_gather)
assert close(relative_shift(products)[..., :L], relative_gather(products, distance, L - 1))
shifted = relative_shift(products[..., :L])  # only the past
assert close(weigh(content + shifted, past), right["shift"])
off = np.abs(shifted - relative_gather(products, distance, L - 1))[..., ~past]
print("the future, from only the past: off by up to", off.max().round(1))
unmasked = weigh(content + relative_gather(products, distance, L - 1))
print(f"without the mask: {moved(unmasked, weigh(content + shifted)):.0%}")
assert moved(unmasked, weigh(content + shifted)) > 0.05

# %% [markdown]
# ### The position-to-content distance of DeBERTa
#
# The argument `p2c_distance` of `deberta_scores` is for the position-to-content term (p2c). Pass
# `p2c_distance=distance` for the released code. To run such weights in code of the other kind, flip
# the table. Row 0, which serves only $i-j\le-m$, has no mirror image. **Predict**: for which
# distances is the flipped table exact?

# %% fold="output"
flipped = deberta_scores(q, k, flip_table(p2c, "deberta"), c2p, distance, distance)
assert close(weigh(flipped), right["p2c of DeBERTa"])  # m = 12, no distance above 11
few = p2c[:, 8:16]  # m = 4
paper = deberta_scores(q, k, few, c2p, distance)
flipped = deberta_scores(q, k, flip_table(few, "deberta"), c2p, distance, distance)
same = np.isclose(paper, flipped, rtol=0, atol=1e-12).all(axis=(0, 1))
print("m = 4, exact at the distances", np.unique(distance[same]).tolist())
assert np.array_equal(same, np.abs(distance) < 4)

# %% [markdown]
# ### Relative position tables: i-j or j-i
#
# A table of $2m+1$ rows that is read at $i-j$ is upside down for code that counts $j-i$. An encoder
# then takes left for right. Under a causal mask all distances except 0 read rows that training did
# not use.

# %%
show_source(flip_table)
assert close(weigh(shaw_scores(q, k, flip_table(shaw), -distance)), right["tables by i-j"])
trained, read = (np.unique(np.clip(d[past], -3, 3) + 3) for d in (distance, -distance))
assert np.intersect1d(trained, read).tolist() == [3]
even = (shaw + flip_table(shaw)) / 2
assert close(shaw_scores(q, k, even, distance), shaw_scores(q, k, even, -distance))

# %% [markdown]
# The last two lines show that a symmetric table, or one of zeros, hides the mistake.
#
# ### T5 buckets: which half is the past
#
# T5's code takes $j-i$, and ours takes $i-j$. In both the past has the lower half of the $N$
# buckets, so **the table stays as it is**. Only if you feed one code the other's sign must you
# exchange the halves, all except rows 0 (the query itself) and $N/2$ (which serves no distance). In
# a decoder all rows serve the past. With the other sign it reads only row 0, and no table helps.

# %%
assert close(weigh(content + t5_bias(flip_table(t5, "t5"), -distance, 20)), right["halves of T5"])
wholes = np.concatenate([t5[4:], t5[:4]])
exchanged = weigh(content + t5_bias(wholes, -distance, 20))
print(f"halves exchanged as wholes: {moved(right['halves of T5'], exchanged):.0%}")
assert moved(right["halves of T5"], exchanged) > 0.02
assert close(t5_bias(t5, -distance, 20, bidirectional=False)[:, past], t5[0][:, None])

# %% [markdown]
# ### ALiBi by key position: BLOOM and MPT
#
# BLOOM adds $s\,j$ for every query, where $s$ is a head's slope. **Predict**: which of the two is
# the same as in ALiBi by distance, the scores or the weights?
#
# $$s\,j = -s\,(i-j) + s\,i$$

# %% fold="output"
show_source(alibi_key_bias)
by_key, by_distance = alibi_key_bias(slopes, at), alibi_bias(slopes, distance)
more = (by_key - by_distance)[:, past]  # (H, pairs)
assert close(more, slopes[:, None] * np.where(past, at[:, None], 0)[past])
assert close(weigh(content + by_key, past), weigh(content + by_distance, past))
print("scores are higher by up to", more.max(), "and weights are equal")
lost = moved(weigh(content + by_distance), weigh(content + by_key))
print(f"without the mask {lost:.0%} of the weight moves")
assert lost == shares["ALiBi by key"]

# %% [markdown]
# A softmax ignores $s\,i$, one number for the whole row. But the equality needs a causal mask,
# because beyond the query $-s|i-j|$ falls where $s\,j$ rises.
#
# ### Attention masks: may attend or blocked
#
# A boolean array can't say what it means, so `convert_mask` must be told. Additive masks often
# contain a large negative number instead of $-\infty$. It has the same effect, except that it can't
# block a whole row. *A common mistake* is to add True and False to the scores, as 1 and 0.

# %%
show_source(convert_mask)
blocked, additive = (convert_mask(past, "attend", to=to) for to in ("blocked", "additive"))
assert close(weigh(content, convert_mask(blocked, "blocked")), right["masks"])
assert close(softmax(content + additive), right["masks"])
print(f"added as 1 and 0: {moved(right['masks'], softmax(content + past)):.0%}")
whole_row = np.where(at[:, None] == 3, -1e9, additive)  # query 3 may attend to nothing
unmasked = weigh(content)[..., 3, :]
assert np.allclose(softmax(content + whole_row)[..., 3, :], unmasked, rtol=0, atol=1e-6)
assert not softmax(content + convert_mask(whole_row, "additive", "additive"))[..., 3, :].any()

# %% [markdown]
# ### Batch first or time first
#
# `np.swapaxes(x, 0, 1)` converts in both directions. *A common mistake*, measured above, is
# `reshape`, which gives the same shape, with mixed texts. An array $(T, B, D)$ that is not
# converted lets the tokens of one position attend to each other across texts.

# %%
back = np.swapaxes(late, 0, 1)
assert close(weigh(dots(*heads(back, W_q, W_k)), past), right["batch first"])
across = attention(*heads(late, W_q, W_k, W_v))[1]
print("weights:", across.shape, "where", right["batch first"].shape, "is right")
one = attention(*heads(late[:, :1], W_q, W_k, W_v))[0]  # without the second text
both = attention(*heads(late, W_q, W_k, W_v))[0][..., :1, :]
print("the first text gives other outputs beside the second:", not close(one, both))
assert not close(one, both)

# %% [markdown]
# ### Weight matrices: (in, out) or (out, in)
#
# torch stores (out, in) and computes `x @ W.T`. GPT-2's file and this book have (in, out). A matrix
# of $D\times 4D$ in the wrong order raises an error. A square one, such as most $W_q$ and $W_o$,
# does not. Biases do not change.

# %%
theirs_q, theirs_k = W_q.T, W_k.T
assert close(weigh(dots(*heads(x, theirs_q.T, theirs_k.T)), past), right["matrices"])
by_hand = [[sum(theirs_q[o] * token) for o in range(D)] for token in x[0]]
assert close(by_hand, x[0] @ theirs_q.T) and not close(by_hand, x[0] @ theirs_q)

# %% [markdown]
# ### Fused QKV projections: all of q first, or head by head
#
# `split_fused` takes a projection apart and `join_fused` makes one, along the last axis. A matrix
# (out, in) of a file is transposed first. Here `"3HK"` is `"q|k|v"`, and `"H3K"` goes head by head.
# Falcon-40B has a third order, each group's queries, key and value.

# %%
show_source(join_fused)
theirs = join_fused(W_q, W_k, W_v, "H3K", H).T  # (out, in), as GPT-NeoX stores it
ours = join_fused(*split_fused(theirs.T, "H3K", H), "q|k|v", H)  # as GPT-2 does
assert close(weigh(dots(*heads(x, *np.split(ours, 3, axis=1)[:2])), past), right["fused rows"])
assert close(join_fused(W_q, W_k, W_v, "3HK", H), ours)  # MPT's word for the same

# %% [markdown]
# ### Norm gains: stored as g or as w
#
# Gemma 1 to 3 store $w$ and multiply by $1+w$. LLaMA and Gemma 3n store $g$. $w$ begins at 0 and
# $g$ at 1. Until training moves them, their mean shows which of the two is stored, as in these
# random models.

# %%
from pathlib import Path

from pe_numpy import load_weights

for name in ("llama", "gemma2"):
    tensors = load_weights(Path("../tests/golden/models").resolve() / name)
    mean = np.mean([t.mean() for key, t in tensors.items() if "norm" in key])
    print(f"{name}: stored gains have the mean {mean:.2f}")
    assert round(mean) == (name == "llama")
by_hand = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-6) * (1 + w)
assert close(weigh(dots(*heads(by_hand, W_q, W_k)), past), right["gains"])

# %% [markdown]
# ## In short
#
# - **How do I convert interleaved RoPE weights into half-split ones?** Call
#   `rope_convert_weights(W_q, H)`, and for $W_k$ with its own number of heads. In each head the even
#   rows (from 0) come first. [RoPE pairs](#rope-pairs-interleaved-or-half-split)
# - **What do I do if T5's table is read with the other sign?** Change the sign, or flip the table
#   with `flip_table(table, "t5")`. For a decoder's table only the sign helps.
#   [T5 buckets](#t5-buckets-which-half-is-the-past)
# - **Does a wrong convention raise an error?** No, none of these twelve mistakes does, since every
#   shape is right. Between a quarter and all of the attention goes to other keys.
#   [Measured](#convention-table-rope-relative-positions-masks-weights)
# - **Which conversions lose something?** One row of
#   [DeBERTa's table](#the-position-to-content-distance-of-deberta) has no mirror image.
#   [ALiBi by key](#alibi-by-key-position-bloom-and-mpt) needs a causal mask. An
#   [additive mask](#attention-masks-may-attend-or-blocked) of $-10^9$ does not block a whole row.
# - **What must I compare?** Compare weights or outputs, of random numbers, at many positions. At
#   distance 0 RoPE's layouts agree ([exercise 1](#exercise-1-a-layout-test-that-cant-fail)). A
#   symmetric table hides its sign. [Tables](#relative-position-tables-i-j-or-j-i)

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 65` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 65_rosetta.py` checks yours.
#
# ### Exercise 1: A layout test that can't fail
#
# Show that at distance 0 a wrong layout of RoPE is not detected, and find the other distance at which
# it moves these scores most.
#
# <details><summary>Hint 1</summary>
#
# At $i=j$ both rotations cancel, for any pairs.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Take the mean of `np.abs` over each diagonal of the difference.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# two = [dots(*(rope(y, at, layout=lay) for y in (q, k))) for lay in ("interleaved", "half")]
# off = np.abs(two[0] - two[1])
# by_distance = [off[..., distance == d].mean() for d in range(L)]
# assert by_distance[0] < 1e-12 < 0.1 < min(by_distance[1:])
# print(int(np.argmax(by_distance)))
# ```
#
# </details>
#
# ### Exercise 2: Guess the order of a fused projection
#
# You get `by_head` without a word about its order, and the queries and keys that the model computes
# from `x`. Which order is it?
#
# <details><summary>Hint 1</summary>
#
# `split_fused` knows two different orders. Try both.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Compare `heads(x, W)` of each part with `q`.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# fits = {o: close(heads(x, split_fused(by_head, o, H)[0])[0], q) for o in ("q|k|v", "H3K")}
# assert fits == {"q|k|v": False, "H3K": True}
# ```
#
# </details>
#
# ### Exercise 3: A flipped table and a changed sign
#
# One colleague flips a table, another changes the sign of the distance. For which tables do the two
# cancel, and at which distances does DeBERTa with $m=4$ read a wrong row?
#
# <details><summary>Hint 1</summary>
#
# `flip_table` undoes itself, and so does the sign.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Look at row 0 and at the distances that read it.
#
# </details>
#
# <details><summary>Solution</summary>
#
# They always cancel for Shaw, and for T5 in both directions. Row 0 of DeBERTa's $2m$ rows serves the
# distances up to $-m$. With the sign changed the distances from $m$ on read it.
#
# ```python
# row = lambda d: np.clip(d + 4, 0, 7)
# T = np.arange(8)[:, None]
# d = np.arange(-6, 7)
# differs = flip_table(T, "deberta")[row(-d), 0] != T[row(d), 0]
# assert d[differs].tolist() == [-6, -5, -4, 4, 5, 6]
#
# there, back = (t5, distance), (flip_table(t5, "t5"), -distance)
# assert close(t5_bias(*back), t5_bias(*there))
# causal = (t5_bias(*which, bidirectional=False) for which in (back, there))
# assert not close(*causal)
# assert close(shaw_scores(q, k, flip_table(shaw), -distance), shaw_scores(q, k, shaw, distance))
# ```
#
# </details>
#
# ## In practice
#
# - **Ask in this order**: matrices, fused rows, pairs of RoPE, gains, masks.
# - **Compare early**: queries and keys of the first layer before the rotation (reordered like their
#   rows), then after it, then the weights. The first that differs narrows the search.
# - **Use sizes that all differ**, such as $B, H, L, S, K = 2, 3, 5, 7, 8$: a swapped axis then raises
#   an error or shows in a shape.
# - **Convert once**, when a file is loaded, and name the convention there.
#
# ## Further reading
#
# - [Chapter 64](64_real_models.ipynb): the same conventions in whole models.
# - transformers issue [25199](https://github.com/huggingface/transformers/issues/25199): a question
#   about LLaMA's two layouts, and its answer.
# - Huang et al. 2018, *Music Transformer*, [arXiv:1809.04281](https://arxiv.org/abs/1809.04281): the
#   skewing trick.
