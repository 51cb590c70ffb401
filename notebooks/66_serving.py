# %% [markdown]
# # 66. KV caches in servers: prefixes, packing, draft trees, ranks
#
# *What is the position of each token when text is cut, shared, packed, drafted, distributed or thrown away?*
#
# 45 minutes. Needs [12 FlashAttention, sliding windows and attention sinks](12_attention_blocks.ipynb), [41 RoPE in code: signs, layouts, caches, precision](41_rope_computed.ipynb), [63 KV cache, sampling, beam search, speculative decoding](63_decoding.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A server cuts prompts into pieces, shares their beginnings, and packs several
# texts into one row. It checks a tree of drafts in one call, spreads a text over machines, and throws
# old tokens away. Each time two questions decide whether the result is right. At which position is
# a token, and what may it see? You answer them in NumPy, compare each case with plain attention, and
# measure what is only approximate. At the end you know what FlashAttention, FlexAttention and
# llama.cpp expect.

# %% fold="input" alt="Six rows of ten slots, each slot with a position. In a chunked prefill they are equal. Packed texts count from 0 again, drafts share positions, a rank has two distant blocks, pages are in another order, shifted tokens are renumbered."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import causal_mask, pack, tree_mask, tree_positions, zigzag
from pe_numpy.book.plots import serving as plots

slots, (packed, _, block), rank = np.arange(10), pack([4, 3, 3]), zigzag(20, 2)[0]
tree, old = [-1, 0, 0, 1, 1, 2], np.array([0, 1, *range(5, 13)])
drafts, text = [*range(4), *4 + tree_positions(tree)], [*np.ones(4, bool), *tree_mask(tree)[4]]
pages = np.array([6, 7, 99, 99, 0, 1, 4, 5, 2, 3])  # 99: another text
rows = {"chunked prefill, 6 cached": (slots, slots <= 7, 7), "packed: 4, 3, 3": (packed, block[6], 6),
        "tree of drafts after 4": (drafts, text, 8), "rank 0 of 2, zigzag": (rank, rank <= rank[6], 6),
        "pages of 2": (pages, pages <= 7, 1), "context shift by 3": (old, slots <= 9, 9)}  # fmt: skip
plots.serving_slots(rows, np.where(old < 2, old, old - 3))
plt.show()

# %% [markdown]
# ## A slot is not a position
#
# A KV cache is an array, and a **slot** is a place in it. A **position** is what the encoding is
# told. In one text, read from the beginning, both are equal, and code that confuses them works. In
# rows 2 to 6 of the figure it doesn't. The number in a slot is the position of its token,
# and a dash is a token of another text.
#
# So a layer needs two things besides the tokens: positions and a mask. The function `read` takes both.
# We give it [chapter 63](63_decoding.ipynb#greedy-decoding-temperature-and-top-k-sampling)'s model,
# which has read Newton's *Opticks* character by character: two layers, RoPE, pieces of 128 characters.

# %%
from pe_numpy import Cache, Model, decode, load
from pe_numpy.judging.tasks import text_corpus, to_tokens
from pe_numpy.training.optimiser import tree_map
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.encodings import Rope
from pe_numpy.transformer.model import stack

newton = tree_map(lambda x: x.astype(np.float64), load("results/text.npz")["params"])
writer, corpus = Model(n_heads=2, encoding=Rope(base=1000.0)), text_corpus()
alphabet, unread = corpus["alphabet"], corpus["held_out"]


# %%
def read(params, model, tokens, positions, mask):
    context = Context().begin((1, len(tokens)))
    context.q_positions = context.k_positions = np.asarray(positions)
    context.masks[model.mask] = mask
    x = stack(params, model, np.asarray(tokens)[None], context)
    return (x @ params.get("output", np.transpose(params["embedding"])))[0]


line, at = unread[:60], np.arange(60)
logits = read(newton, writer, line, at, causal_mask(at, at))
assert np.allclose(logits, decode(newton, writer, line[None])[0], rtol=0, atol=1e-12)

# %% [markdown]
# ## Chunked prefill and prefix caching: positions continue after the cache
#
# A long prompt is read in chunks, so that other users' tokens get their turn in between
# (**chunked prefill**). A system prompt that many users share is read once (**prefix caching**).
# Both are exact: old rows never change ([chapter
# 63](63_decoding.ipynb#why-a-kv-cache-is-exact-old-rows-never-change)). The first new token has as
# position the number of tokens in the cache, and it sees all of them.

# %%
whole = [np.append(line, unread[start : start + 20]) for start in (500, 700)]  # two users
expected = [decode(newton, writer, text[None])[0, 60:] for text in whole]
cache = Cache(1, 80)
for chunk in np.split(line, [7, 32]):  # chunked prefill
    decode(newton, writer, chunk[None], cache=cache)
cache.take([0, 0])  # both users have this prefix
shared = decode(newton, writer, np.stack([text[60:] for text in whole]), cache=cache)
assert np.allclose(shared, expected, rtol=0, atol=1e-12)

# %% [markdown]
# A prefix can be shared only if *all* its tokens from the first on are the same. One different
# token at the beginning, such as today's date, changes all rows after it. So vLLM finds a block of the
# cache by the block's tokens and all tokens before it
# (`docs/source/design/automatic_prefix_caching.md` at 299f02a).
#
# ### Reusing a document's keys behind another prefix
#
# A retrieved document appears in the middle of many prompts. Can its keys be reused behind another
# prefix? RoPE's rotations add, so a cached key is moved by one more rotation, by the shift.
# llama.cpp's `--cache-reuse` does so ([#9866](https://github.com/ggml-org/llama.cpp/pull/9866)). Is the
# moved key the right one? We compare with keys that were computed behind the prefix. **Predict**: in
# which layers is it right?


# %% fold="output"
from pe_numpy import rope, rope_frequencies

norm, off = np.linalg.norm, {"moved by RoPE": [], "not moved": []}


def keys_of(tokens):
    decode(newton, writer, tokens[None], cache=(cache := Cache(1, 80)))
    return [cache.held[layer][0][0, :, : len(tokens)] for layer in "01"]  # (H, S, K)


speeds = rope_frequencies(16, base=1000.0)
for piece in np.split(unread[:4000], 50):
    right, alone = [k[:, 40:] for k in keys_of(piece)], keys_of(piece[40:])
    for name, keys in zip(off, ([rope(k, [40], speeds) for k in alone], alone), strict=True):
        off[name].append([norm(k - r) / norm(r) for k, r in zip(keys, right, strict=True)])

# %% fold="output"
for name, x in off.items():
    first, second = np.mean(x, axis=0)
    print(f"{name:14} off by {first:z.2f} of the keys' length in layer 0, {second:.2f} in layer 1")
assert np.max(off["moved by RoPE"], axis=0)[0] < 1e-12 and 0.01 < np.mean(off["moved by RoPE"])
assert (np.mean(off["not moved"], axis=0) > 1).all()

# %% [markdown]
# In the first layer the moved keys are exact, because there a key depends only on its own token
# and position. Above it they are an approximation, because the right keys contain something of the
# prefix. The same holds for values, which are not rotated at all.
#
# [Chapter 82](82_real_cache.ipynb#a-prefix-reused-at-another-offset) measured what that costs Gemma 3
# 270M. A document of 129 tokens was moved by 129 positions. Here is the rise of the loss of the next
# 128 tokens, compared with reading everything again:

# %%
from pe_numpy.book.trained import changes

before = ("own text before", "other text before")
for way in ("rotated", "not rotated", "left out"):
    nats = np.ravel([changes("reused_prefix", f"{text}, {way}") for text in before])
    print(f"{way:12} {nats.min():+.2f} to {nats.max():+.2f} nats per token")
    assert (np.abs(nats).max() < 0.03) == (way == "rotated")

# %% [markdown]
# Rotated, reuse costs nothing that could be measured there. But leaving out the text before the
# document costs at most 0.15, so the test is a weak one. A document that refers back to its
# prefix may lose more.
#
# ## Context shift in llama.cpp: n_keep, K-shift and renumbered keys
#
# A text outgrows its context. With `--context-shift`, llama.cpp's server then keeps the first
# $n_\text{keep}$ tokens, drops the next $n_\text{discard}$ (by default half of the others), and
# closes the gap. Since August 2025 this is off by default
# ([#15416](https://github.com/ggml-org/llama.cpp/pull/15416)). A token that stays gets the position
#
# $$p' = p \ \text{ if } p < n_\text{keep}, \qquad p' = p - n_\text{discard} \ \text{ otherwise}$$
#
# Its cache contains rotated keys. So each moved key is rotated again, by $-n_\text{discard}$ (the
# **K-shift**). A cache of raw, unrotated keys would only change the numbers.

# %%
rng, n_keep, n_discard = np.random.default_rng(0), 6, 40
q, k = rng.standard_normal((101, 16)), rng.standard_normal((100, 16))
p = np.r_[0:n_keep, n_keep + n_discard : 100]  # the tokens that stay
new = np.where(p < n_keep, p, p - n_discard)
turned, unrotated = rope(rope(k[p], p), new - p), rope(k[p], new)  # K-shift, or raw keys
assert np.array_equal(new, range(len(p))) and np.allclose(turned, unrotated, rtol=0, atol=1e-12)
scores = rope(k[p], p) @ rope(q[100:], [100])[0]  # before the shift
moved = turned @ rope(q[100:], [len(p)])[0]  # the query is renumbered as well
assert np.allclose(moved[n_keep:], scores[n_keep:], rtol=0, atol=1e-12)
assert not np.isclose(moved[:n_keep], scores[:n_keep], rtol=0, atol=1e-3).any()

# %% [markdown]
# The newer tokens keep their distances, and the first $n_\text{keep}$ come nearer, as in
# [StreamingLLM](63_decoding.ipynb#cache-eviction-and-streamingllm). But a text without the dropped
# tokens would have different keys above the first layer, because the rows behind the gap once saw
# them.
#
# A long text is shifted many times, and each time the keys are rounded to the cache's type.
# Quantised keys are dequantised, rotated and quantised again
# ([#9571](https://github.com/ggml-org/llama.cpp/pull/9571)). **Predict**: how do the errors of 16
# shifts compare with the error of one rounding?


# %% fold="output"
def eight_bits(x):  # one scale per token
    scale = np.abs(x).max(axis=-1, keepdims=True) / 127
    return np.round(x / scale) * scale


kinds = {"float16": lambda x: x.astype(np.float16).astype(float), "8 bits": eight_bits}
p, k = np.arange(4000, 4200), rng.standard_normal((200, 64))
for name, stored in kinds.items():
    keys, raw = stored(rope(k, p)), rope(stored(k), p - 1600)
    for _ in range(16):
        keys = stored(rope(keys, [-100]))
    right = rope(k, p - 1600)
    often, once = (np.linalg.norm(x - right) / np.linalg.norm(k) for x in (keys, raw))
    print(f"{name:8} rotated 16 times {often:.4f}, raw and rotated once {once:.4f}")
    assert 3 < often / once < 6

# %% [markdown]
# About $\sqrt{17}\approx4$ times as large, as 17 independent roundings would be. Raw keys are rounded
# once, and pay with a rotation of all keys at each step. Two more conditions:
#
# - **Partial rotation.** Only the components that were rotated may be rotated again. For Phi-2,
#   llama.cpp once took a wrong number of them ([#4889](https://github.com/ggml-org/llama.cpp/pull/4889)).
# - **M-RoPE.** A token has several positions (time, row, column). llama.cpp refuses to shift such a
#   cache ([#19928](https://github.com/ggml-org/llama.cpp/pull/19928)).
#
# ## Sequence packing: document masks and restarted positions
#
# Training and embedding servers put several texts into one row to save padding. Each token needs a
# document $d_i$ and a position $p_i$ that counts from 0 in its document:
#
# $$\text{mask}_{ij} = \big(d_i = d_j\big) \ \text{and}\ \big(p_j \le p_i\big)$$
#
# Kernels take the borders instead, `cu_seqlens`: 0 and the sums of the lengths.

# %%
from pe_numpy import document_mask
from pe_numpy.book.show import show_short

short = show_short(pack, document_mask)
lengths = [3, 2, 4]
positions, documents, mask = pack(lengths)
cu_seqlens = np.append(0, np.cumsum(lengths))
print("positions", positions.tolist(), "documents", documents.tolist(), "cu_seqlens", cu_seqlens)
for i, j in np.ndindex(9, 9):
    same = any(a <= j <= i < b for a, b in zip(cu_seqlens, cu_seqlens[1:], strict=False))
    assert mask[i, j] == same
    assert mask[i, j] == (
        document_mask(documents, documents)[i, j] and positions[j] <= positions[i]
    )

# %% [markdown]
# Are the mask *and* restarted positions needed? We ask each encoding that brings no mask, in two
# layers, whether the packed row gives each document's logits. **Predict**: which need both?

# %% fold="output"
from pe_numpy import Sizes, init_params
from pe_numpy.transformer.encodings import every_encoding

lengths, verdicts, running = [15, 22, 11], {}, np.arange(48)
(positions, documents, mask), ids = pack(lengths), rng.integers(0, 11, 48)
ways = {"mask and restart": (positions, mask), "mask": (running, mask),
        "restart": (positions, causal_mask(running, running))}  # fmt: skip
for name, encoding in every_encoding(48).items():
    if encoding.needs is None:  # it brings no mask of its own
        model, sizes = Model(2, encoding), Sizes(11, 12, 24, n_layers=2)
        own = init_params(sizes, model, np.random.default_rng(0), np.float64)
        alone = np.vstack([decode(own, model, ids[None, documents == d])[0] for d in range(3)])
        logits = {way: read(own, model, ids, *given) for way, given in ways.items()}
        same = tuple(w for w in ways if np.allclose(logits[w], alone, rtol=0, atol=1e-9))
        verdicts.setdefault(same, []).append(name)

# %% fold="output"
from textwrap import fill

for suffices, names in verdicts.items():
    needed = "the mask is enough" if "mask" in suffices else "both are needed"
    print(fill(f"{needed}: {', '.join(names)}", 100, subsequent_indent="    "))
either, both = verdicts["mask and restart", "mask"], verdicts[("mask and restart",)]
assert {"rope", "alibi", "t5", "none"} < set(either) and {"sinusoidal", "learned"} < set(both)
assert {"fire", "tupe", "self_extend", "dual_chunk"} < set(both) and len(verdicts) == 2

# %% [markdown]
# Here the mask is always needed. Where at most differences count, it is enough: RoPE, ALiBi, T5's
# buckets, `none`. Position vectors at the tokens need the restart as well. So does FIRE, which
# divides
# by the query's position, and so do Self-Extend and dual chunks, whose groups begin at multiples of
# a size. A restart by itself is not enough for any of them.
#
# ### What libraries derive from position_ids
#
# Without a mask, a library may look for the borders itself. transformers 5.23.0 does it in two
# ways. `find_packed_sequence_indices` (`masking_utils.py`) begins a document where positions do not
# rise by 1, if there is neither mask nor cache (pass `use_cache=False`). For FlashAttention,
# `prepare_fa_kwargs_from_position_ids` (`modeling_flash_attention_utils.py`) begins one where they
# are at their smallest, if the batch has one row. Do they find the same?

# %%
derived = {
    "where they do not rise by 1": lambda p: np.cumsum(np.diff(p, prepend=p[0] - 1) != 1),
    "where they are smallest": lambda p: np.cumsum(p == p.min()) - 1,
}
rows = {"restarted": pack([3, 2])[0], "running": np.arange(5), "a gap": np.array([0, 1, 4, 5, 6])}
found = {name: [rule(p).tolist() for rule in derived.values()] for name, p in rows.items()}
for name, (rising, smallest) in found.items():
    print(f"{name:10} {rows[name]}: documents {rising}, or {smallest}")
assert found["restarted"] == [pack([3, 2])[1].tolist()] * 2 and found["running"] == [[0] * 5] * 2
assert found["a gap"][0] == [0, 0, 1, 1, 1] and found["a gap"][1] == [0] * 5

# %% [markdown]
# Both rules find restarted positions, and neither finds running ones, which RoPE would allow. At a
# gap they disagree. The first cuts a text in two if tokens were dropped from it. The second does not
# notice a second text that begins at 4. So pass the mask, or `cu_seqlens`, yourself.
#
# ## Tree speculative decoding: position is depth, mask is ancestors
#
# In [speculative decoding](63_decoding.ipynb#speculative-decoding-a-small-model-drafts) a small
# model drafts a chain of tokens, and the large one checks it in one call. Medusa and EAGLE draft a
# **tree**: several candidates for the next token, several after each of these. All nodes are read
# in one call behind $n$ tokens of text. Candidates for one place share a position, and a node must
# not see other branches:
#
# $$p_m = n + \text{depth}(m), \qquad m \text{ sees the text, itself and its ancestors}$$


# %%
def with_tree(text, parents, tokens):  # logits of the nodes of a tree behind a text
    n, N = len(text), len(tokens)
    mask = np.vstack([np.eye(n, n + N), np.ones((N, n + N))]) > 0
    mask[:n, :n], mask[n:, n:] = causal_mask(range(n), range(n)), tree_mask(parents)
    positions = np.append(np.arange(n), n + tree_positions(parents))
    return read(newton, writer, np.append(text, tokens), positions, mask)[n:]


parents, tokens = [-1, 0, 0, 1, 1, 2, 3], to_tokens("eldlvif", alphabet)
for node, row in enumerate(with_tree(line, parents, tokens)):
    path = [node]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    branch = np.append(line, tokens[path[::-1]])  # the branch as a text of its own
    assert np.allclose(row, decode(newton, writer, branch[None])[0, -1], rtol=0, atol=1e-12)

# %% [markdown]
# Up to rounding, each node has the logits of its branch, as if that had been read as a text.
#
# Now we decode with such trees. The draft model is the first layer of ours, as in chapter 63. Below
# each node it drafts the $b$ most probable tokens, three levels deep. From the root, we follow the
# child that the full model has chosen, as long as there is one. **Predict**: do trees need fewer
# calls than a chain, and do they write the same text?

# %% fold="output"
short = show_short(tree_positions, tree_mask)
blocks = newton["decoder"]["layers"]
small = {**newton, "decoder": {**newton["decoder"], "layers": {"0": blocks["0"]}}}


def draft(text, b):
    parents, tokens, level = [-1], [text[-1]], [(0, text)]  # the root: the newest token
    for _ in range(3):
        children = []
        for node, branch in level:
            for token in np.argsort(-decode(small, writer, branch[None])[0, -1])[:b]:
                parents, tokens = [*parents, node], [*tokens, token]
                children.append((len(parents) - 1, np.append(branch, token)))
        level = children
    return np.array(parents), np.array(tokens)


# %%
def step(text, b):
    parents, tokens = draft(text, b)
    chosen = with_tree(text[:-1], parents, tokens).argmax(axis=-1)
    children = [0]
    while len(children):
        node = children[0]
        text = np.append(text, chosen[node])
        children = np.flatnonzero((parents == node) & (tokens == chosen[node]))
    return text


# %% fold="output"
from pe_numpy import greedy

prompt = to_tokens("the rays of light ", alphabet)
expected, calls = greedy(newton, writer, prompt[None], 60)[0], {}
for b in (1, 2, 3):
    text, calls[b] = prompt, 0
    while len(text) < len(prompt) + 60:
        text, calls[b] = step(text, b), calls[b] + 1
    assert np.array_equal(text[len(prompt) :][:60], expected)  # the text of greedy decoding
    print(
        f"{b} children per node, {len(draft(text, b)[0]):2} nodes: {calls[b]} calls for 60 tokens"
    )
assert 60 > calls[1] > calls[2] > calls[3]

# %% alt="Left, a tree of seven drafted characters on four levels, numbered by node. Right, its mask of seven by seven: each row marks the node itself and its ancestors, so nodes of one level do not see each other."
plots.serving_tree(np.array(parents), list("eldlvif"), tree_positions(parents), tree_mask(parents))
plt.show()

# %% [markdown]
# The text is the same for all trees, and here a wider tree needs fewer calls. But each call reads
# more nodes. Afterwards only the accepted nodes may stay in the cache. If nodes 0, 1 and 4 of the
# figure are accepted, they are in slots $n$, $n+1$ and $n+4$. Their positions $n$, $n+1$ and $n+2$
# are already right, so the rows only move together.
#
# ### Multi-token prediction: which embedding, which positions (second reading)
#
# DeepSeek-V3 ([arXiv:2412.19437](https://arxiv.org/abs/2412.19437), section 2.2) trains modules that
# predict tokens further ahead, and that can draft. The first takes the model's hidden vector $h_i$ and
# the embedding of the *next* token, and predicts the one after it. A Transformer block follows.
#
# $$h'_i = M\,\big[\mathrm{RMSNorm}(h_i);\ \mathrm{RMSNorm}(E_{t_{i+1}})\big] \quad\text{predicts}\quad t_{i+2}$$
#
# So row $i$ knows the tokens up to $i+1$. Is its position $i$ or $i+1$? With RoPE it makes no
# difference, as long as all rows follow one rule, because the module has its own keys. vLLM stacks
# the embedding first (`deepseek_mtp.py` at 03356f8), so check the order of $M$'s columns.

# %%
from pe_numpy import attention, rms_norm


def module(tokens, p):  # attention of its block, at positions p
    h = stack(newton, writer, tokens[None], Context().begin((1, len(tokens))))[0]
    h, E = (rms_norm(x, np.ones(32)) for x in (h, newton["embedding"][tokens]))
    x = np.hstack([h[:-1], E[1:]]) @ M  # row i: h of token i, embedding of token i + 1
    return attention(rope(x, p), rope(x, p), x, causal_mask(p, p))[0]


M = rng.standard_normal((64, 32))
rows = module(line, np.arange(59))
other = module(np.where(np.arange(60) == 31, 5, line), np.arange(59))
assert (other[:30] == rows[:30]).all() and (other[30] != rows[30]).all()  # row 30 knows token 31
assert np.allclose(rows, module(line, np.arange(1, 60)), rtol=0, atol=1e-9)

# %% [markdown]
# ## Context parallelism: contiguous and zigzag shards
#
# A long text is spread over $R$ machines, the ranks. Each holds the queries, keys and values of
# $B = L/R$ tokens. In **ring attention** the keys and values travel from rank to rank, and each rank
# attends with its own queries. With contiguous shards and a causal mask, rank $r$ has
#
# $$w_r = rB^2 + \frac{B(B+1)}2 \ \text{ pairs of query and key}$$
#
# so the last rank has almost $2R-1$ times the pairs of the first, and the others wait. **Zigzag**
# shards cut the text into $2R$ blocks, and rank $r$ takes blocks $r$ and $2R-1-r$. A late block
# makes up for an early one.

# %%
short = show_short(zigzag)
R, L = 4, 64
held = {"contiguous": np.arange(L).reshape(R, -1), "zigzag": zigzag(L, R)}
pairs = {
    name: [int(causal_mask(own, np.arange(L)).sum()) for own in rows] for name, rows in held.items()
}
B = L // R
assert pairs["contiguous"] == [r * B**2 + B * (B + 1) // 2 for r in range(R)]
assert pairs["zigzag"] == [L * (L + 1) // 2 // R] * R
print(*(f"{name}: {counts}" for name, counts in pairs.items()), sep="\n")

# %% alt="Two triangles of pairs of query and key, coloured by rank. With contiguous shards rank 0 has a small triangle at the top and rank 3 the widest band below. With zigzag shards each rank has one block from each end, and those of rank 3 meet in the middle."
plots.serving_ranks(held)
plt.show()

# %% [markdown]
# So each rank must be told the positions of *its* tokens in the text, for RoPE and for the mask.
# PyTorch's context parallelism and ring-flash-attention deal out blocks in this way (the docstring of
# `zigzag` names the files).
#
# ### Merging attention by log-sum-exp (ring attention)
#
# A rank attends to one shard of the keys after the other. Each part $s$ gives an output $o_s$ and
# the logarithm $\ell_s$ of its sum of exponentials. [Chapter
# 12](12_attention_blocks.ipynb#merging-partial-softmaxes) kept a maximum and a sum. One number is
# enough:
#
# $$\ell_s = \ln\sum_{j\in s} e^{q\cdot k_j/\sqrt K}, \qquad
# \ell = \ln\sum_s e^{\ell_s}, \qquad o = \sum_s e^{\ell_s-\ell}\,o_s$$

# %%
from pe_numpy import merge_attention, partial_attention

q, k, v = rng.standard_normal((3, L, 16))
Q, key = rope(q, range(L)), rope(k, range(L))  # rotated by the positions of the text
whole = attention(Q, key, v, causal_mask(range(L), range(L)))[0]
for own in held["zigzag"]:
    parts = [partial_attention(Q[own], key[s], v[s], causal_mask(own, s)) for s in held["zigzag"]]
    outputs, sums = (np.array(x) for x in zip(*parts, strict=True))
    for s, of_part in zip(held["zigzag"], sums, strict=True):
        products = np.where(causal_mask(own, s), np.exp(Q[own] @ key[s].T / np.sqrt(16)), 0)
        assert np.allclose(np.exp(of_part), products.sum(axis=1), rtol=1e-12, atol=0)
    total = np.log(np.exp(sums).sum(axis=0))
    merged = (np.exp(sums - total)[..., None] * outputs).sum(axis=0)
    assert np.allclose(merged, whole[own], rtol=0, atol=1e-12)
    assert np.allclose(merge_attention(outputs, sums)[0], whole[own], rtol=0, atol=1e-12)

# %% fold="output"
short = show_short(partial_attention, merge_attention)

# %% [markdown]
# Before merging, set $\ell_s=-\infty$ where a query sees nothing, so the part counts for nothing.
# Kernels differ. FlashAttention 2 writes $+\infty$ for such a query, version 3 $-\infty$, and
# PyTorch 2.13.0 writes 0 on the CPU. [Exercise 3](#exercise-3-a-part-that-sees-nothing) shows what
# that 0 does.
#
# ### 65,536 tokens in four processes
#
# Now four processes compute one causal attention. Each has its own shard, and gets the keys and values
# of the others one shard at a time, here from a seed instead of a message. It never has more than a
# tile of scores. The next cell runs what a process runs (`rank_attention`), for 4,096 tokens and
# without processes.

# %%
from pe_numpy.book.ranks import rank_attention, shards
from pe_numpy.book.ranks import tokens as made

L, tile = 4096, 256
q, k, v = made(np.arange(L), tile)
some = np.arange(0, L, 97)
expected, outputs = attention(q[some], k, v, causal_mask(some, np.arange(L)))[0], np.zeros((L, 16))
for rank, own in enumerate(shards("zigzag", L, 4)):
    outputs[own], tiles, peak = rank_attention(rank, "zigzag", L, 4, tile)
    print(f"rank {rank}: {tiles} tiles, {peak / 1e6:.0f} MB")
    assert peak < 0.02 * L * L * 8  # of what all scores would take
assert np.allclose(outputs[some], expected, rtol=0, atol=1e-12)

# %%
import csv
from pathlib import Path

with Path("results/context_parallel.csv").open(encoding="utf-8", newline="") as file:
    measured = list(csv.DictReader(file))
for name in held:
    ranks = [row for row in measured if row["shards"] == name]
    print(f"{name:10} seconds", *(row["seconds"] for row in ranks), " MB", ranks[0]["peak_mb"])
print(f"all scores would take {65_536**2 * 8 / 1e9:.0f} GB")
assert all(float(row["peak_mb"]) < 20 and float(row["off"]) < 1e-12 for row in measured)

# %% [markdown]
# The second cell reads what four processes measured with 65,536 tokens (`make ranks`, one machine,
# seconds of the processor). None took more than 19 MB at a time, as `tracemalloc` counts. With
# contiguous shards the last rank worked some five times as long as the first, and with zigzag shards
# all worked equally long.
#
# ## Quantised KV caches: keys per channel, before or after RoPE
#
# [Chapter 82](82_real_cache.ipynb#keys-in-4-3-and-2-bits) rounds the keys of Gemma to a few bits. The
# numbers of a group become $2^b$ equally spaced values from the group's least to its largest. KIVI
# groups keys per channel and values per token, and KVQuant rounds keys per channel and before RoPE, as
# their abstracts say (Liu et al. 2024, Hooper et al. 2024). Why before? Take an outlier pair. Its
# first channel is $c$ in all tokens, the second 0. Rotation gives
#
# $$\big(c,\ 0\big)\ \to\ \big(c\cos m\theta,\ c\sin m\theta\big)$$
#
# In each channel the range over the tokens was 0, and is now up to $2c$.

# %%
c, m = 12.0, np.arange(0, 400)
pair = rope(np.tile([c, 0.0], (400, 1)), m, [0.1])  # some six turns
assert np.allclose(
    pair, np.stack([c * np.cos(0.1 * m), c * np.sin(0.1 * m)], 1), rtol=0, atol=1e-12
)
ranges = np.ptp(pair, axis=0) / c
assert ((1.99 < ranges) & (ranges <= 2)).all()


# %% [markdown]
# What does it do to attention? We take random queries, keys and values, with two outlier channels in
# the keys, and round one thing at a time. **Predict**: is it better to round keys per channel or per
# token, before or after RoPE?


# %% fold="output"
def rounded(x, bits, axis):
    least = x.min(axis=axis, keepdims=True)
    step = (x.max(axis=axis, keepdims=True) - least) / (2**bits - 1)
    return least + step * np.round((x - least) / step)


at, bits = np.arange(512), (8, 4, 2)
q, k, v = rng.standard_normal((3, 512, 64))
k[:, [6, 13]] += [12, -10]  # two outlier channels
Q, see = rope(q, at), causal_mask(at, at)
ways = {f"keys per {what}, {when} RoPE": (when, axis)
        for what, axis in (("channel", 0), ("token", 1)) for when in ("before", "after")}  # fmt: skip

# %% fold="output" alt="Relative error of the output at 8, 4 and 2 bits on a logarithmic axis. Of the keys, per channel before RoPE has the smallest error, per channel after RoPE follows, and per token is two to four times as bad. Values per token have about the error of the best keys."
right, errors = attention(Q, rope(k, at), v, see)[0], {}
for name, (when, axis) in ways.items():
    for b in bits:
        keys = rope(rounded(k, b, axis), at) if when == "before" else rounded(rope(k, at), b, axis)
        off = attention(Q, keys, v, see)[0] - right
        errors.setdefault(name, []).append(np.linalg.norm(off) / np.linalg.norm(right))
values = [attention(Q, rope(k, at), rounded(v, b, 1), see)[0] - right for b in bits]
errors["values per token"] = [np.linalg.norm(x) / np.linalg.norm(right) for x in values]
for name, x in errors.items():
    print(f"{name:30}", *(f"{e:.3f}" for e in x), "at 8, 4, 2 bits")
best, after, *tokenwise, _ = np.array(list(errors.values()))
assert (best < 0.8 * after).all() and (after < 0.7 * np.array(tokenwise)).all()
plots.serving_bits(bits, errors)
plt.show()

# %%
for how in ("before, per channel", "after, per channel", "before, per token", "after, per token"):
    losses = {b: changes("rounded_keys", f"{b} bits, {how}") for b in (4, 2)}
    print(f"{how:20}", *(f"{b} bits {min(x):+.2f} to {max(x):+.2f}  " for b, x in losses.items()))
    assert (max(losses[4]) < 0.03) == (how == "before, per channel") and min(losses[2]) > 0.1
eight = changes("rounded_keys", "8 bits, before, per token")
print(f"8 bits, before, per token: at most {np.abs(eight).max():.2f} nats per token")

# %% [markdown]
# The last cell prints what Gemma 3 270M loses, in nats per token, on the least and the most sensitive
# of three texts. As for random numbers, per channel and before RoPE is best. Per token, 8 bits are
# harmless and 4 are not.
#
# A cache that grows does not know the range of a channel. By default, transformers 5.23.0 collects
# up to 127 new tokens and then rounds all tokens again, in groups of 64 numbers (`QuantizedLayer` in
# `cache_utils.py`). Its keys are already rotated, as are llama.cpp's.
#
# ## Conventions of attention kernels: corners, layouts, offsets
#
# ### FlashAttention's causal corner and SDPA's is_causal
#
# A chunk of $L$ queries meets $S$ cached keys, its own among them. What does `causal=True` mean?
# Since version 2.1 FlashAttention aligns the mask with the *bottom right* corner. PyTorch's
# `scaled_dot_product_attention` (SDPA) aligns it with the *top left*:
#
# $$\text{bottom right: } j \le i + S - L, \qquad \text{top left: } j \le i$$
#
# Here $i$ and $j$ count rows and columns. If the queries are the last $L$ tokens, only bottom right
# is their causal mask.


# %%
def corners(L, S):
    i, j = np.arange(L)[:, None], np.arange(S)
    return j <= i + S - L, j <= i


for L, S in ((2, 5), (3, 3), (3, 2)):
    bottom, top = corners(L, S)
    assert np.array_equal(bottom, causal_mask(range(S - L, S), range(S)))
    assert np.array_equal(top, causal_mask(range(L), range(S)))
    assert np.array_equal(top, bottom) == (L == S)
    rows = (" ".join("".join(map(str, row)) for row in m.astype(int)) for m in (bottom, top))
    print(f"{L} queries, {S} keys: bottom right {next(rows):12}top left {next(rows)}")

# %% [markdown]
# The top-left mask shows a single new token only the first key. Pass no mask then, and for a chunk a
# mask or torch's `causal_lower_right`.
#
# | | FlashAttention ([0251105](https://github.com/Dao-AILab/flash-attention/tree/0251105)) | PyTorch 2.13.0 |
# |---|---|---|
# | causal corner | bottom right; a row that sees nothing gives 0 | top left (`is_causal`) |
# | rotation inside | `flash_attn_with_kvcache(rotary_cos, rotary_sin)`: new keys from position `cache_seqlens` on; queries as well if causal or windowed, else all at `cache_seqlens` | none |
# | pairs of RoPE | there `rotary_interleaved=True` by default, but `interleaved=False` in `apply_rotary_emb` of `layers/rotary.py` | none |
# | ALiBi | `alibi_slopes`, $-s\,\lvert i+S-L-j\rvert$ | a bias, or FlexAttention |
# | other biases | none in `flash_attn_interface.py`; `score_mod` in `flash_attn/cute` | `attn_mask` of floats, or FlexAttention |
# | window | `window_size=(w-1, 0)` sees $w$ keys | a mask, or `varlen_attn` |
# | packed texts | `cu_seqlens_q`, `cu_seqlens_k` | `cu_seq_q`, `cu_seq_k` of `varlen_attn`, or FlexAttention |
# | paged cache | `block_table` | `block_table` of `varlen_attn` (`torch/nn/attention/varlen.py`) |
#
# Llama's weights in transformers use the half layout ([chapter
# 65](65_rosetta.ipynb#rope-pairs-interleaved-or-half-split)), so they need
# `rotary_interleaved=False`.
#
# ### FlexAttention: score_mod and mask_mod
#
# PyTorch's FlexAttention compiles two functions into its kernel: `score_mod` changes a score, and
# `mask_mod` says who may attend. Here is what it computes, without the speed. `b`, `h`, `i` and `j`
# number batch, head, query and key.

# %%
from pe_numpy import alibi_bias, alibi_slopes, relative_distance, shaw_scores, softmax
from pe_numpy import t5_bias, t5_bucket

H, S, K = 2, 9, 8
(q, k, v), documents = rng.standard_normal((3, H, S, K)), pack([5, 4])[1]
vectors = rng.standard_normal((9, K))  # Shaw's, of the distances -4 to 4


def flex(q, k, v, score_mod, mask_mod):
    h, i, j = np.ogrid[:H, : q.shape[1], : k.shape[1]]
    scores = score_mod(q @ k.mT / np.sqrt(K), 0, h, i, j)
    return softmax(np.where(mask_mod(0, h, i, j), scores, -np.inf)) @ v


# %%
slopes, buckets = alibi_slopes(H), rng.standard_normal((32, H))


def modifications(q, offset):  # for queries of which the first is token `offset`
    products = q @ vectors.T / np.sqrt(K)  # Shaw: of each query with each relative vector
    score_mods = {
        "ALiBi": lambda s, b, h, i, j: s - slopes[h] * abs(i + offset - j),
        "T5": lambda s, b, h, i, j: s + buckets[t5_bucket(i + offset - j, 32, 128, False), h],
        "Shaw": lambda s, b, h, i, j: s + products[h, i, np.clip(i + offset - j, -4, 4) + 4],
    }

    def mask_mod(b, h, i, j):
        return (j <= i + offset) & (documents[i + offset] == documents[j])

    return score_mods, mask_mod


# %%
distance, mask = relative_distance(range(S), range(S)), pack([5, 4])[2]
plain = q @ k.mT / np.sqrt(K)
expected = {"ALiBi": plain + alibi_bias(slopes, distance), "Shaw": shaw_scores(q, k, vectors, distance),
            "T5": plain + t5_bias(buckets, distance, bidirectional=False)}  # fmt: skip
for name, scores in expected.items():
    right = softmax(np.where(mask, scores, -np.inf)) @ v
    score_mods, mask_mod = modifications(q, 0)
    assert np.allclose(flex(q, k, v, score_mods[name], mask_mod), right, rtol=0, atol=1e-12)
    newest = q[:, 8:]  # decoding: one query, number 0 of its call, at position 8
    for offset in (8, 0):
        score_mods, mask_mod = modifications(newest, offset)
        out = flex(newest, k, v, score_mods[name], mask_mod)
        assert np.allclose(out, right[:, 8:], rtol=0, atol=1e-12) == (offset == 8)

# %% [markdown]
# In each call the query's index begins at 0, so at decoding the functions need the offset, the
# number of tokens cached before. Else the result is wrong. Shaw's products of queries and vectors
# are computed before the kernel, and DeBERTa needs two such tables.
#
# ### Paged KV caches: block tables
#
# A paged cache (Kwon et al. 2023, vLLM) stores blocks of tokens anywhere in memory, and a **block
# table** lists the blocks of a text in its order. The position of row $t$ in block $b$, and back:
#
# $$p = \text{size}\cdot\text{index}(b) + t, \qquad \text{block} = \text{table}[\lfloor p/\text{size}\rfloor]$$

# %%
size, table = 4, [5, 0, 3]  # the blocks of this text, in order
keys, memory = rope(rng.standard_normal((12, K)), range(12)), rng.standard_normal((6, size, K))
for p in range(12):  # write
    memory[table[p // size], p % size] = keys[p]
where = np.full((6, size), -1)  # the position of each slot, -1 for another text's
for b, t in np.ndindex(6, size):
    if b in table:  # read
        where[b, t] = size * table.index(b) + t
        assert np.array_equal(memory[b, t], keys[where[b, t]])
slots, query = memory.reshape(24, K), rope(rng.standard_normal((1, K)), [11])
paged = attention(query, slots, slots, where.reshape(24) >= 0)[0]  # the keys serve as values
assert np.allclose(paged, attention(query, keys, keys)[0], rtol=0, atol=1e-12)

# %% [markdown]
# Attention does not depend on the order of its keys. So blocks may be anywhere, as long as each key
# was rotated by its position and the mask hides other texts. A causal mask made from slots would be
# wrong.
#
# ### llama.cpp's --rope-freq-base, --rope-freq-scale, --rope-scale and config.json
#
# | llama.cpp | `config.json` | meaning |
# |---|---|---|
# | `--rope-freq-base N` | `rope_theta: N` | the base; by default the model's |
# | `--rope-scale N` | `rope_scaling: {"rope_type": "linear", "factor": N}` | frequencies divided by N, unless the model's file names another type |
# | `--rope-freq-scale N` | the same with factor 1/N | frequencies multiplied by N |
# | `--rope-scaling yarn` with `--rope-scale N` | `"rope_type": "yarn"`, `"factor": N` | [YaRN](50_scaling.ipynb#yarns-ramp-paper-and-code) |
# | `--yarn-orig-ctx N` | `original_max_position_embeddings: N` | the trained length; 0 takes the model's |
#
# `examples/server/README.md` at 53dd4be describes the flags. The first and the third came with pull
# request [#2054](https://github.com/ggml-org/llama.cpp/pull/2054). Newer configurations have these keys
# in `rope_parameters` ([chapter 42](42_rope_in_models.ipynb#from-configjson-to-rope-functions)). [Chapter
# 65](65_rosetta.ipynb#convention-table-rope-relative-positions-masks-weights) has other conventions.

# %%
from pe_numpy import linear_scaling

x, m, plain = rng.standard_normal((50, 16)), np.arange(0, 200, 4), rope_frequencies(16, 10_000.0)
scaled = linear_scaling(plain, 4.0)  # --rope-scale 4
assert np.allclose(scaled, 0.25 * plain, rtol=1e-12, atol=0)  # --rope-freq-scale 0.25
assert np.allclose(rope(x, m, scaled), rope(x, m // 4, plain), rtol=0, atol=1e-12)

# %% [markdown]
# ## In short
#
# - **At which position does a chunk of a prompt begin?** At the number of cached tokens, also behind a
#   shared prefix. Both are exact.
#   [Chunked prefill](#chunked-prefill-and-prefix-caching-positions-continue-after-the-cache).
# - **May a document's keys be reused behind another prefix?** Rotate them by the shift. The first
#   layer is then exact, and the others are an approximation.
#   [Reuse](#reusing-a-documents-keys-behind-another-prefix).
# - **Which encodings need restarted positions in a packed row?** All need the document mask. With
#   RoPE, ALiBi or T5 it is enough. Sinusoidal, learned and FIRE also need the restart.
#   [Packing](#sequence-packing-document-masks-and-restarted-positions).
# - **What position and mask does a tree of drafts need?** The position is the text's length plus the
#   depth. A node sees the text, itself and its ancestors.
#   [Trees](#tree-speculative-decoding-position-is-depth-mask-is-ancestors).
# - **How do several machines compute one attention?** Each keeps the text's positions. Parts are
#   merged by their log-sum-exp. Zigzag shards give all the same work.
#   [Ranks](#context-parallelism-contiguous-and-zigzag-shards).
# - **Which corner does a causal kernel use?** FlashAttention aligns bottom right, PyTorch's
#   `is_causal` top left. [Corners](#flashattentions-causal-corner-and-sdpas-is_causal).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 66` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 66_serving.py` checks yours.
#
# ### Exercise 1: A packed row with a cache
#
# Two documents of 5 and 4 tokens are packed and cached. Now a token of the *first* document arrives at
# the end of the row. Which position and mask (`document_mask`) does it need?
#
# <details><summary>Hint 1</summary>
#
# Its slot is 9. How many tokens of its document came before it?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# It comes last, so only the documents matter.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Position 5, and the keys of document 0 and itself.
#
# ```python
# q, k, v = np.random.default_rng(0).standard_normal((3, 10, 8))
# positions, documents, _ = pack([5, 4])
# positions, documents = np.append(positions, 5), np.append(documents, 0)
# new = rope(q[9:], [5])
# got = attention(new, rope(k, positions), v, document_mask([0], documents))[0]
# own = documents == 0
# alone = attention(new, rope(k[own], range(6)), v[own])[0]
# assert np.allclose(got, alone, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 2: A tree that wastes no node
#
# Four drafts, `abc`, `abg`, `aef` and `bcd`, have twelve tokens as rows of a batch. Make one tree of
# them. How many nodes does it have? What are `tree_positions`, and how many keys does each node see in
# `tree_mask`?
#
# <details><summary>Hint 1</summary>
#
# Equal beginnings share their nodes.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A node at depth $d$ sees $d+1$ nodes.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Nine nodes.
#
# ```python
# nodes, parents = [], []
# for depth in (1, 2, 3):
#     for path in ("abc", "abg", "aef", "bcd"):
#         if path[:depth] not in nodes:
#             nodes.append(path[:depth])
#             parents.append(nodes.index(path[: depth - 1]) if depth > 1 else -1)
# print(nodes)
# assert tree_positions(parents).tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 2]
# assert np.array_equal(tree_mask(parents).sum(axis=1), tree_positions(parents) + 1)
# ```
#
# </details>
#
# ### Exercise 3: A part that sees nothing
#
# In the first part a query sees one key, with the score 0 and the value 1, and in the second nothing.
# Merge the parts, once with the right log-sum of the second and once with 0. What comes out? For which
# score of the first part is the damage small?
#
# <details><summary>Hint 1</summary>
#
# `partial_attention` gives the right log-sum.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The shares of the parts are a softmax of their log-sums.
#
# </details>
#
# <details><summary>Solution</summary>
#
# 1 with $-\infty$, but a half with 0. The damage is small if the score is large: the first part's share
# is $\sigma(s)$.
#
# ```python
# first = partial_attention([[1.0]], [[0.0]], [[1.0]])
# second = partial_attention([[1.0]], [[0.0]], [[1.0]], [[False]])
# right = merge_attention(*zip(first, second, strict=True))[0]
# wrong = merge_attention([first[0], second[0]], [first[1], [0.0]])[0]
# assert (right.item(), wrong.item()) == (1.0, 0.5)
# large = merge_attention([first[0], second[0]], [first[1] + 8, [0.0]])[0]
# assert np.isclose(large, 1 / (1 + np.exp(-8.0)), rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 4: Striped shards
#
# Rank $r$ of *striped attention* holds the positions $r, R+r, 2R+r, \dots$ How many pairs does each
# rank have, and do the parts still merge to the whole?
#
# <details><summary>Hint 1</summary>
#
# `np.arange(L).reshape(-1, R).T` has the positions.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A token at position $p$ has $p+1$ pairs.
#
# </details>
#
# <details><summary>Solution</summary>
#
# From rank to rank $L/R$ pairs are added, so the last has 544 and the first 496. Any shards merge.
#
# ```python
# striped = np.arange(64).reshape(-1, 4).T
# pairs = [causal_mask(own, range(64)).sum() for own in striped]
# assert pairs == [496, 512, 528, 544]
# q, k, v = np.random.default_rng(0).standard_normal((3, 64, 8))
# see = causal_mask(striped[1], range(64))
# parts = [partial_attention(q[striped[1]], k[s], v[s], see[:, s]) for s in striped]
# merged = merge_attention(*zip(*parts, strict=True))[0]
# assert np.allclose(merged, attention(q[striped[1]], k, v, see)[0], rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ## In practice
#
# - **Test each case** against a text that is read by itself. Take the last document of a packed row,
#   the second branch of a tree, the second chunk, the second rank. Most errors here raise nothing.
# - **Hybrid layers.** A [recurrent state](39_recurrence.ipynb#in-practice) can be neither cut back
#   nor branched. Keep a copy for each branch.
#
# ## Further reading
#
# - Krell et al. 2021, *Efficient Sequence Packing without Cross-contamination*, for BERT,
#   [arXiv:2107.02027](https://arxiv.org/abs/2107.02027).
# - Cai et al. 2024, *Medusa*, [arXiv:2401.10774](https://arxiv.org/abs/2401.10774); Li et al. 2024,
#   *EAGLE-2*, [arXiv:2406.16858](https://arxiv.org/abs/2406.16858).
# - Liu et al. 2023, *Ring Attention with Blockwise Transformers for Near-Infinite Context*,
#   [arXiv:2310.01889](https://arxiv.org/abs/2310.01889).
# - Kwon et al. 2023, *Efficient Memory Management for Large Language Model Serving with
#   PagedAttention*, [arXiv:2309.06180](https://arxiv.org/abs/2309.06180).
# - Liu et al. 2024, *KIVI: A Tuning-Free Asymmetric 2bit Quantization for KV Cache*,
#   [arXiv:2402.02750](https://arxiv.org/abs/2402.02750); Hooper et al. 2024, *KVQuant*,
#   [arXiv:2401.18079](https://arxiv.org/abs/2401.18079).
