# %% [markdown]
# # 63. KV cache, sampling, beam search, speculative decoding
#
# *What may a decoder cache, what does that save, how much memory does it need, and how is the next token chosen?*
#
# 60 minutes. Needs [40 Rotary position embedding (RoPE): the derivation](40_rope_derived.ipynb), [62 Training an encoder-decoder Transformer](62_model.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A language model writes one token at a time, and without help it reads the whole text again for
# each new token. A KV cache keeps the keys and values of earlier tokens, so each step computes only the newest row. You
# will see why the result is the same, and count the work saved and the memory needed. You will choose tokens by
# sampling and beam search, let a small model draft for a large one (speculative decoding), and give tokens the right
# positions when prompts are padded or old tokens dropped.

# %% fold="input" alt="Two grids of steps by tokens. Without a KV cache, every token of each prefix is computed again: 14 cells in red. With a cache only new tokens are red, 5 cells; the others are blue, taken from the cache."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy.book.plots import decoding as plots

words = ["wǒ", "shì", "zhōng", "guó", "rén"]
prefixes = ["我是", "我是中", "我是中国", "我是中国人"]
read = np.array([[2 * (token < len(text)) for token in range(5)] for text in prefixes])
kept = read.copy()
for step in range(1, 4):
    kept[step, : len(prefixes[step - 1])] = 1
assert ((read == 2).sum(), (kept == 2).sum()) == (14, 5)
plots.cached_rows([("without a cache: 14 rows", read), ("with a cache: 5 rows", kept)], words)
plt.show()

# %% [markdown]
# ## Why a decoder needs a KV cache
#
# A language model writes one token, reads everything again, and writes the next. Let it write 我是中国人,
# "I am Chinese". It reads the prefixes of 2, 3, 4 and 5 tokens. In every layer, each token that it reads needs a
# key and a value: one row of $K$ and one row of $V$. The figure counts these rows: 14 if nothing is kept, 5 if a
# **KV cache** (key-value cache) keeps them, so that each is computed once. In general, a prompt of $P$ tokens and $n$
# generated ones cost
#
# $$\sum_{m=P}^{P+n-1} m = nP + \frac{n(n-1)}2 \text{ rows without a cache}, \qquad P+n-1 \text{ with one}$$
#
# The last token is written but never read. The example reads 5 tokens in 4 steps, so $P=2$ and $n=4$.

# %%
import math
from dataclasses import dataclass, replace
from itertools import pairwise, product

from pe_numpy import Cache, Model, Sizes, attention, beam_search, cache_properties, causal_mask
from pe_numpy import decode, dynamic_ntk_scaling, greedy, init_params, load, rope, sample
from pe_numpy import softmax, speculative
from pe_numpy.book.show import show_source

for P, n in ((2, 4), (1, 1), (7, 30), (100, 1000)):
    lengths = range(P, P + n)  # of what each step reads
    rows, new = sum(lengths), P + sum(b - a for a, b in pairwise(lengths))
    assert rows == n * P + n * (n - 1) // 2 and new == P + n - 1
    print(f"prompt {P:3}, written {n:4}: {rows:7,} rows without, {new:5,} with")

# %% [markdown]
# ## Why a KV cache is exact: old rows never change
#
# May we keep these rows? Only if the rows of a second reading would be *equal* to the rows of the first. Number the
# layers $1, 2, \dots$ and let layer 0 be the embedding. Write $x_i^{(\ell)}$ for row $i$ after layer $\ell$.
#
# **Claim.** With a causal mask, and an encoding that does not depend on the length of the sequence,
# $x_i^{(\ell)}$ depends only on the tokens $0 \dots i$.
#
# **Proof**, layer by layer. In layer 0, row $i$ is the embedding of token $i$, with its position. In layer
# $\ell$, the query, the norms and the feed-forward network use row $i$ of the layer before. By the mask, the attention
# uses the rows $j \le i$ of the layer before. All of these depend only on the tokens $0 \dots i$, and therefore the
# result does as well. $\square$
#
# The same is true for keys and values, which are made from these rows. Appending tokens changes none of them. With
# $w_0, w_1, \dots$ for the tokens,
#
# $$k_i^{(\ell)}(w_0,\dots,w_i,\dots,w_m) = k_i^{(\ell)}(w_0,\dots,w_i) \qquad \text{for all } m \ge i$$

# %%
from pe_numpy.training.optimiser import tree_map, tree_paths
from pe_numpy.judging.tasks import text_corpus, to_strings, to_tokens
from pe_numpy.transformer.encodings import Rope, every_encoding

model, three_layers = Model(2, Rope()), Sizes(11, 12, 24, n_layers=3)
params = init_params(three_layers, model, np.random.default_rng(0), np.float64)
tokens = np.array([[3, 1, 4, 5, 9, 2, 6, 8, 7, 10]])
longest = Cache(1, 10)
decode(params, model, tokens, cache=longest)
for m in range(1, 10):
    shorter = Cache(1, 10)
    decode(params, model, tokens[:, :m], cache=shorter)
    for layer, part in product(("0", "1", "2"), (0, 1)):
        short, long = (cache.held[layer][part][:, :, :m] for cache in (shorter, longest))
        assert np.allclose(short, long, rtol=0, atol=1e-12)

# %% [markdown]
# Without the mask the claim fails: in the first layer every row attends to a new token
# ([shown below](#kv-cache-in-diffusion-language-models-second-reading)). An encoder reads its source once and needs no
# such cache. The *cross*-attention of a decoder has a separate one. Its keys and values are made from the memory (the
# encoder's output), computed once and used for all tokens. A cache saves the work for all rows except the newest: their
# keys and values, and with them their queries, their attention and their feed-forward networks. The product of the
# newest query with all keys remains.
#
# Why does the cache keep no *queries*? A query is used only to compute its own row, and that row is finished.
#
# ## The KV cache: a list of keys and a list of values
#
# Here is one layer of attention with one head, in explicit loops. At each step only the newest row makes $q$, $k$ and
# $v$. The new key and value join the lists, and the query attends to everything in them. Under the root, $K$ is
# the head dimension (`head_dim`):
#
# $$o_t = \sum_{j=0}^{t} \operatorname{softmax}_j\!\Big(\frac{q_t\cdot k_j}{\sqrt K}\Big)\, v_j$$
#
# No mask is needed, because the future is not in the lists.

# %%
rng = np.random.default_rng(1)
X = rng.standard_normal((6, 4))  # six tokens
W_q, W_k, W_v = rng.normal(0, 0.5, (3, 4, 4))
keys, values, outputs = [], [], []
for x in X:
    q, k, v = ([sum(x[d] * W[d, c] for d in range(4)) for c in range(4)] for W in (W_q, W_k, W_v))
    keys.append(k)
    values.append(v)
    powers = [math.exp(sum(q[c] * k[c] for c in range(4)) / 2) for k in keys]
    mix = zip(powers, values, strict=True)
    outputs.append(np.sum([p / sum(powers) * np.array(v) for p, v in mix], axis=0))
see = causal_mask(np.arange(6), np.arange(6))
assert np.allclose(outputs, attention(X @ W_q, X @ W_k, X @ W_v, see)[0], rtol=0, atol=1e-12)

# %% [markdown]
# The package's `Cache` stores such lists for every layer and head, as arrays with room for `capacity` tokens. For each
# call of `decode` the cache gives a context (`begin`). The attention of each layer rotates only the new keys and calls
# `keep`, which writes the new rows and returns all of them. When all layers are done, `end` counts the new tokens, so a
# call that fails leaves the cache as it was.
#
# `decode` takes only the newest tokens, and the cache. The prompt is read in one call (**prefill**), then
# single tokens follow. However ten tokens are cut, the logits must equal the logits of the full call, up to rounding.
# The second cell runs this test for one of each of the package's encodings.

# %% fold="output"
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.masks import Causal
from pe_numpy.transformer.model import self_attention

show_source(self_attention, Cache)


# %%
def in_pieces(params, model, sizes):
    cache, start, logits = Cache(1, 10), 0, []
    for size in sizes:
        logits.append(decode(params, model, tokens[:, start : start + size], cache=cache))
        start += size
    return np.concatenate(logits, axis=1)


for name, encoding in every_encoding(length=10).items():
    chosen = Model(2, encoding, mask=encoding.needs or Causal())
    own = init_params(Sizes(11, 12, 24, n_layers=2), chosen, np.random.default_rng(0), np.float64)
    whole = decode(own, chosen, tokens)
    for sizes in ([1] * 10, [4, 1, 1, 1, 1, 1, 1], [3, 3, 2, 2], [9, 1]):
        assert np.allclose(in_pieces(own, chosen, sizes), whole, rtol=0, atol=1e-9), name
print(f"same logits in four cuts, for {len(every_encoding(length=10))} encodings")

# %% [markdown]
# ## The cost of a token, counted in multiplications
#
# We count multiplications: each product of this small layer (one head, no norms) goes through a counter.

# %%
D, N, V = 8, 2, 11
out, X = rng.standard_normal((D, V)), rng.standard_normal((12, D))
W, hidden = rng.normal(0, 0.25, (N, 4, D, D)), rng.normal(0, 0.25, (N, 2, D, 4 * D))
count = 0


def multiply(a, b):  # (n, m) times (m, k)
    global count
    count += a.shape[0] * a.shape[1] * b.shape[1]
    return a @ b


# %%
def count_layer(x, kept, W, hidden):
    """Rows x see what was kept, and themselves up to their own place."""
    q, k, v = (multiply(x, W[n]) for n in range(3))
    k, v = (np.concatenate(pair) for pair in zip(kept, (k, v), strict=True))
    above = np.tri(len(x), len(k), len(k) - len(x)) == 0
    scores = np.where(above, -np.inf, multiply(q, k.T) / math.sqrt(x.shape[1]))
    x = x + multiply(multiply(softmax(scores), v), W[3])
    return x + multiply(np.maximum(multiply(x, hidden[0]), 0), hidden[1].T), (k, v)


# %% [markdown]
# Let $D$ be the width of the model, $N$ the number of layers and $V$ the size of the vocabulary. For each row, a
# layer takes $4D^2$ multiplications for its four projections and $8D^2$ for a feed-forward network of width $4D$. A
# query that attends to $n$ keys takes $nD$ for scores and $nD$ for the weighted sum of values (all heads together).
# At the end, the logits of a row take $DV$. So the $n$-th token costs
#
# $$\text{with a cache:}\quad N\,(12D^2 + 2nD) + DV$$
# $$\text{without:}\quad n\,\big(N\,(12D^2 + 2nD) + DV\big)$$
#
# Without a cache, all $n$ rows are computed, each with all $n$ scores.

# %%
empty = (np.zeros((0, D)), np.zeros((0, D)))
caches = [empty] * N
for n in range(1, 13):
    x, y, counts = X[n - 1 : n], X[:n], []
    for layer in range(N):
        x, caches[layer] = count_layer(x, caches[layer], W[layer], hidden[layer])
    newest = multiply(x, out)
    with_cache, count = count, 0
    for layer in range(N):
        y, _ = count_layer(y, empty, W[layer], hidden[layer])
    assert np.allclose(newest, multiply(y, out)[-1:], rtol=0, atol=1e-9)
    assert with_cache == N * (12 * D * D + 2 * n * D) + D * V
    assert count == n * with_cache
    count = 0

# %% [markdown]
# Without a cache a token costs exactly $n$ times as much. The part $12D^2$ does not depend on $n$, and the
# attention's $2nD$ catches up with it at $n = 6D$. Well before that, a token costs nearly the same at every position.
# The times in the right panel below were measured once (`notebooks/results/decoding.md`, with the
# program), for two layers, $D = 64$ and one sequence.


# %%
def with_a_cache(n, D, N, V):
    return N * (12 * D * D + 2 * n * D) + D * V


for D in (64, 4096):
    growth = with_a_cache(2 * D, D, 2, 51) / with_a_cache(1, D, 2, 51)
    print(f"D = {D:4}: equal at n = {6 * D:6,}; token {2 * D:,} costs {growth:.2f} times token 1")
    assert with_a_cache(6 * D, D, 1, 0) == 2 * with_a_cache(0, D, 1, 0)

# %% alt="Left, log-log: multiplications for token n. Without a KV cache the line is steep; with one it is flat up to a hundred tokens, then rises. Right: measured milliseconds over 256 tokens. Without a cache the curve rises; with one it is flat near the bottom."
times = load("results/decoding.npz")
n = 2.0 ** np.arange(0, 15)
counts = {"with a cache": with_a_cache(n, 64, 2, 51), "without": n * with_a_cache(n, 64, 2, 51)}
slow, fast = times["without"], times["with a cache"]
late = fast[-32:].sum() / fast[:32].sum()
print(f"with a cache: the last 32 tokens took {late:.1f} times as long as the first 32")
print(f"without by with: token 256 {slow[-1] / fast[-1]:.0f}", end=", ")
print(f"all 256 tokens {slow.sum() / fast.sum():.0f}")
assert 0.6 < with_a_cache(256, 64, 2, 51) / with_a_cache(1, 64, 2, 51) - 1 < 2 / 3
assert late < 1.1 and slow[-1] / fast[-1] < 256 / 4  # the counts promise 256
plots.token_costs(n, counts, times)
plt.show()

# %% [markdown]
# With a cache the measured curve is flat: at this small size most of a cached token's time goes into calling NumPy.
# Without one, the counts promise that the last token takes 256 times the work of a cached token. The clock shows a far
# smaller ratio. A product of a matrix with one row uses every weight once. With 256 rows it uses each weight 256 times, which
# processors do far better. In large models also, writing one token at a time waits for weights and cache to arrive from
# memory, not for arithmetic (Shazeer 2019).
#
# ## KV cache size: bytes per token
#
# How much memory does a KV cache need? For each of $B$ sequences, $S$ tokens, $N$ layers and $H$ heads it stores a key
# and a value of head dimension $K$:
#
# $$\text{bytes} = 2\cdot N\cdot B\cdot H\cdot S\cdot K\cdot(\text{bytes of a number})$$

# %%
for B, S, dtype in ((1, 10, np.float64), (5, 7, np.float32)):
    cache, own = Cache(B, S), tree_map(lambda x, dtype=dtype: x.astype(dtype), params)
    decode(own, model, np.zeros((B, 1), int), cache=cache)  # the first token takes room for all
    arrays = [array for layer in cache.held.values() for array in layer]
    width = three_layers.d_model // model.n_heads
    expected = 2 * 3 * B * 2 * S * width * np.dtype(dtype).itemsize  # N = 3, H = 2
    print(f"B = {B}, S = {S:2}: {sum(a.nbytes for a in arrays):,} bytes")
    assert sum(a.nbytes for a in arrays) == expected

# %% [markdown]
# Now take a large model: 32 layers, 32 heads of head dimension 128 (Llama 2 with 7 billion parameters),
# two bytes per number. Predict how many bytes *one token* needs.
#
# Heads can share. In **grouped-query attention** (GQA) several query heads attend to
# the same keys and values. In **multi-query attention** (MQA) all query heads do. In the formula the number $G$ of KV heads
# (`num_key_value_heads`, in the cell `key_heads`) replaces $H$. It is 8 in Llama 3 of 8 billion parameters, whose other
# sizes here are the same.

# %% fold="output"
GIB = 2**30


def bytes_of(tokens, key_heads, layers=32, width=128, number=2):
    return 2 * layers * key_heads * tokens * width * number


for name, key_heads in (("32 KV heads", 32), ("8, grouped (GQA)", 8), ("1 for all (MQA)", 1)):
    token = bytes_of(1, key_heads)
    many = bytes_of(4096, key_heads) / GIB
    print(f"{name:17} per token {token:7,} bytes, 4096 tokens {many:6g} GiB")
equal = 2 * 7e9 / bytes_of(1, 32)  # 7 billion weights of two bytes
print(f"32 KV heads take as many bytes as the weights at {equal:,.0f} tokens")
assert bytes_of(4096, 32) == 2 * GIB and bytes_of(1, 32) == 4 * bytes_of(1, 8)

# %% [markdown]
# The weights are shared by all sequences that are generated at the same time; a cache belongs to one. With 32 KV
# heads a single sequence of 26,703 tokens needs as much memory as the model. Ainslie et al. (2023) measured little
# loss of quality for GQA. [Chapter 44](44_fewer_keys.ipynb#kv-cache-bytes-per-token-in-released-models) compares the
# caches of nine models, down to latent attention.
#
# ## Greedy decoding, temperature and top-k sampling
#
# We load a model that has read Newton's *Opticks*, character by character: two layers, width 32, RoPE, pieces of
# 128 characters (`notebooks/results/make_text.py`). Its loss on pages that it never read is 1.49 nats per
# character. A uniform guess among its characters has a loss of 3.89.

# %%
stored = load("results/text.npz")
newton = tree_map(lambda x: x.astype(np.float64), stored["params"])
alphabet = text_corpus()["alphabet"]
writer = Model(n_heads=2, encoding=Rope(base=1000.0))
losses = f"held out {stored['loss'][0]:.2f}, uniform {math.log(len(alphabet)):.2f}"
print(f"loss in nats per character: {losses}")
print(f"parameters: {sum(x.size for x in tree_paths(newton).values()):,}")

# %% [markdown]
# The decoder returns logits $z$, one for each token $v$. **Greedy** decoding takes the largest,
# appends its token, and continues:
#
# $$w_{t+1} = \arg\max_v\; z_v(w_0, \dots, w_t)$$


# %%
def greedy_by_loops(params, model, text, steps):
    for _ in range(steps):
        logits = decode(params, model, [to_tokens(text, alphabet)])[0, -1]
        best = max(range(len(logits)), key=lambda v: logits[v])
        text += alphabet[best]
    return text


text = greedy_by_loops(newton, writer, "the rays of light ", 60)
for t in (18, 40, 77):
    logits = decode(newton, writer, [to_tokens(text[:t], alphabet)])[0, -1]
    assert alphabet[np.argmax(logits)] == text[t]
print(text)

# %% [markdown]
# The text starts well and then goes round in circles. Greedy decoding is a fixed rule: what followed a phrase once
# follows it again, unless the rest of the text makes another token more probable. In large models each repetition
# was found to make the next one more probable (Holtzman et al. 2020). The package's `greedy` does the same for a
# batch, with a cache or without. It passes two functions to the loop below: a `read`, which remembers what it has read,
# and `most_probable`.

# %%
from pe_numpy.transformer.generate import Sample, generate, most_probable

show_source(generate, most_probable)
prompt = to_tokens("the rays of light ", alphabet)[None]  # (1, 18)
written = greedy(newton, writer, prompt, 60)
assert "the rays of light " + to_strings(written, alphabet)[0] == text
assert np.array_equal(written, greedy(newton, writer, prompt, 60, cached=False))
z = decode(newton, writer, [to_tokens("of the re", alphabet)])[0, -1]
order = np.argsort(-z)

# %% [markdown]
# We can also draw from the distribution. Take what follows "of the re", whose logits $z$ the last cell computed. A
# **temperature** $T$ divides them first:
#
# $$p_v = \frac{e^{z_v/T}}{\sum_u e^{z_u/T}}$$


# %%
def tempered_by_loops(z, T, top_k=None):
    top = sorted(range(len(z)), key=lambda v: -z[v])[:top_k]
    powers = {v: math.exp(z[v] / T) for v in top}
    return np.array([powers.get(v, 0.0) / sum(powers.values()) for v in range(len(z))])


for T in (0.5, 1.0, 2.0):
    p = tempered_by_loops(z, T)
    assert np.allclose(p, softmax(z / T), rtol=0, atol=1e-12)
    best = ", ".join(f"{alphabet[v]} {100 * p[v]:.0f} %" for v in order[:6])
    print(f"T = {T}: {best}")
assert set(np.flatnonzero(tempered_by_loops(z, 1.0, top_k=3))) == set(order[:3])
assert tempered_by_loops(z, 0.01).max() > 0.999
assert np.ptp(tempered_by_loops(z, 1e6)) < 1e-4

# %% [markdown]
# $T=1$ is the model's own distribution. Toward $T=0$ all probability moves to the largest logit, which is greedy
# again. Toward infinity all characters become equally likely. **Top-k** draws only among the $k$ most probable
# tokens. **Top-p**, or nucleus sampling, draws among the fewest tokens whose probabilities add up to $p$
# ([exercise 3](#exercise-3-top-p-nucleus-sampling)). transformers 5.23.0 applies temperature, top-k, top-p in this
# order (`generation/utils.py`), and `sample` also applies the temperature before top-k. For top-k the order makes no
# difference. For top-p it does: a higher temperature makes the distribution flatter, so it never takes fewer tokens to
# reach $p$, and often more.

# %% alt="Four bar charts of the character that follows of the re. At temperature 0.5, f dominates. At 1, f, d and s share. At 2, many characters have some probability. Top-k with k = 3 leaves only f, d and s."
panels = {f"$T$ = {T}": tempered_by_loops(z, T)[order[:10]] for T in (0.5, 1.0, 2.0)}
panels["$T$ = 1, top-k = 3"] = tempered_by_loops(z, 1.0, top_k=3)[order[:10]]
spread = [
    -(p[p > 0] * np.log(p[p > 0])).sum() for p in (tempered_by_loops(z, T) for T in (0.5, 1, 2))
]
print("entropy in nats:", [round(float(e), 1) for e in spread])
assert spread[0] < spread[1] < spread[2]
plots.next_character(panels, [alphabet[v] for v in order[:10]])
plt.show()

# %% [markdown]
# `sample` is the same loop with a different rule for choosing the token. The same seed writes the same text.

# %%
show_source(Sample)
many = np.repeat(to_tokens("of the re", alphabet)[None], 4000, axis=0)
drawn = sample(newton, writer, many, 1, np.random.default_rng(0), temperature=0.7)[:, 0]
share = np.bincount(drawn, minlength=len(alphabet)) / 4000
assert np.abs(share - tempered_by_loops(z, 0.7)).max() < 0.03
among = sample(newton, writer, many[:500], 1, np.random.default_rng(1), 5.0, top_k=3)[:, 0]
assert set(among.tolist()) == set(order[:3].tolist())

# %% [markdown]
# ### Beam search and the length penalty
#
# The most probable character now may lead into a less probable text. **Beam search** keeps several beginnings, the
# beams. Each step extends every beam by every token and keeps the most probable results. The logarithm of a text's
# probability is a sum, so each of the $n$ tokens after the prompt $w_0$ makes it smaller. To compare texts of
# different lengths, we divide it:
#
# $$\log p = \sum_{t=1}^{n} \log p(w_t \mid w_0, \dots, w_{t-1}), \qquad
# \text{score} = \frac{\log p}{\big((5+n)/6\big)^{\alpha}}$$
#
# Vaswani et al. (2017, section 6.1) used 4 beams and $\alpha = 0.6$. The formula is from their decoder
# (tensor2tensor at f8b951a, `utils/beam_search.py`).


# %%
def log_probability(text, written):
    z = decode(newton, writer, [to_tokens(text + written, alphabet)])[0]
    after = zip(z[len(text) - 1 :], written, strict=False)
    return sum(row[alphabet.index(c)] - math.log(sum(math.exp(a) for a in row)) for row, c in after)


sums, text = [], "the rays of light "
for beams in (1, 2, 4, 16):
    tokens_found, scores = beam_search(newton, writer, prompt, 30, beams)
    found = to_strings(tokens_found, alphabet)[0]
    sums.append(log_probability(text, found))
    print(f"{beams:2} beams: log p = {sums[-1]:.1f}, score {scores[0]:.2f}: {found}")
    assert math.isclose(scores[0], sums[-1] / ((5 + 30) / 6) ** 0.6, rel_tol=1e-9)
assert sums == sorted(sums) and found != to_strings(written, alphabet)[0][:30]

# %% [markdown]
# Here more beams found more probable texts. But after "it is ", four beams find a less probable text than two. One
# beam, without an end, is `greedy`. Now let a full stop end a sentence, and let sentences of different lengths
# compete. The search stops once no unfinished text can overtake the best one that has ended. Predict: which $\alpha$
# gives the longest sentence?

# %% fold="output"
sizes = []
for alpha in (0.0, 0.6, 1.5, 3.0):
    stop = alphabet.index(".")
    ended = beam_search(newton, writer, prompt, 60, 8, alpha, end=stop)[0]
    sizes.append(ended.shape[1])
    print(f"alpha = {alpha}: {sizes[-1]:2} characters: {to_strings(ended, alphabet)[0]}")
assert sizes == sorted(sizes) and sizes[0] < 10 and sizes[-1] > 50
it_is = [to_tokens("it is ", alphabet)]
two, four = (beam_search(newton, writer, it_is, 30, beams)[1] for beams in (2, 4))
assert four < two and np.array_equal(beam_search(newton, writer, prompt, 60, 1)[0], written)

# %% [markdown]
# A larger $\alpha$ favours longer texts and, in the end, texts that repeat themselves. No $\alpha$ is right by proof,
# nor is the most probable text the best one.
#
# ### Speculative decoding: a small model drafts
#
# A large model that waits for its weights can read five tokens in little more than the time of one. In
# **speculative decoding** (Leviathan et al. 2023; Chen et al. 2023) a small model drafts a few tokens. The
# large model reads them all in one call, which gives its own distribution at the position of each. Let $p$ be the
# large model's distribution there and $q$ the small model's. A drafted token $x$ is accepted with probability
# $\min(1, p_x/q_x)$. If $x$ is refused, the drafts after it are thrown away, and another
# token is drawn from $r$, which contains what $q$ gave too little of:
#
# $$r_x = \frac{\max(p_x - q_x,\, 0)}{\sum_y \max(p_y - q_y,\, 0)}$$
#
# If all drafts are accepted, the same call has given the distribution after them, and one more token is drawn from $p$.
# The written tokens have the distribution $p$, no matter what $q$ is. There are two ways to write a token: it is
# drafted and accepted, or some draft was refused and the token is drawn instead. The two probabilities add up to
# $p_x$:
#
# $$q_x \min\!\Big(1, \frac{p_x}{q_x}\Big) + \Big(1 - \sum_y q_y \min\!\Big(1, \frac{p_y}{q_y}\Big)\Big)\, r_x = p_x$$

# %%
p, q = tempered_by_loops(z, 1.0), tempered_by_loops(z, 2.0)  # the small one is less sure
places = range(len(p))
accepted = [q[x] * min(1, p[x] / q[x]) for x in places]
lacking = [max(p[x] - q[x], 0) for x in places]


def distribution(again):
    refused = 1 - sum(accepted)
    return np.array([accepted[x] + refused * again[x] / sum(again) for x in places])


print(f"accepted: {sum(accepted):.2f} of the drafts")
off = np.abs(distribution(p) - p).max()
print(f"a common mistake, drawn again from p: probabilities wrong by up to {off:.2f}")
assert np.allclose(distribution(lacking), p, rtol=0, atol=1e-12) and round(off, 2) == 0.06

# %% fold="output"
show_source(greedy, sample, beam_search, speculative)
decoder = newton["decoder"]
first = {**newton, "decoder": {**decoder, "layers": {"0": decoder["layers"]["0"]}}}
rounded = tree_map(lambda x: np.round(16 * x) / 16, newton)

# %% [markdown]
# Without a generator, `speculative` takes the largest logit in both models. Then a draft is right or wrong, and the
# result is the text of `greedy`. Three models draft for ours, four characters at a time: itself, itself with
# rounded weights, and only its first layer.

# %%
calls, own = [], (newton, writer)
drafts = {"itself": own, "weights in 16ths": (rounded, writer), "first layer": (first, writer)}
for name, draft in drafts.items():
    watch = {}
    same = speculative(*own, *draft, prompt, 60, watch=watch)
    drafted, right = np.sum(watch["rounds"], axis=0)
    calls.append(len(watch["rounds"]))
    print(f"{name:16} {right:2} of {drafted:3} accepted: {calls[-1]} calls for 60 characters")
    assert np.array_equal(same, written) and calls[-1] + right == 60
assert calls[0] == 12 and calls == sorted(calls) and calls[-1] < 60

# %% [markdown]
# The draft affects only the time: it must cost less than the calls that it saves. A call with several new tokens costs
# more than one with one. With Gemma 3 270M in NumPy, drafts from earlier text saved calls on every text, but time
# only on some ([chapter 82](82_real_cache.ipynb#drafts-from-n-grams)). For these methods a cache must do
# more than grow. Beam search keeps some rows of the batch, some of them twice (`take`). The keys of refused drafts
# must be removed (`cut`).
#
# ## The position of the newest token
#
# With a cache the newest token comes by itself, as an array of length 1. Its position is *not* 0. It is the
# number of tokens read before, and `decode` computes it from the cache's length.
#
# *A common mistake* is to forget this. With a relative encoding, the three distances of a third token should have been 2,
# 1, 0 and came out as 0 (huggingface/transformers #19045). Elsewhere every token that a model wrote had the position
# 0 (Blaizzy/mlx-vlm #1983). A subclass makes the mistake for any encoding: each newest token is told that its
# position is 0. At which tokens does the error show?


# %%
def forgets(encoding):
    class Forgets(type(encoding)):
        def embed(self, params, x, positions):
            return super().embed(params, x, 0 * positions)

        def turn(self, params, q, k, context):
            return super().turn(params, q, k, Context(0 * context.q_positions))

        def scores(self, params, q, k, context):
            at_0 = Context(0 * context.q_positions, context.k_positions, context.mask)
            return super().scores(params, q, k, at_0)

    return Forgets(**vars(encoding))


# %% fold="output" alt="Largest error of a logit against the position of the token, for sinusoidal, RoPE, T5, ALiBi and no encoding. All except no encoding are wrong from position 1 on; at position 0 all are right."
errors, colours = {}, ["none", "sinusoidal", "rope", "t5", "alibi"]
for name in colours:
    chosen = Model(4, every_encoding(10)[name])
    own = init_params(Sizes(11, 32, 64, n_layers=1), chosen, np.random.default_rng(0), np.float64)
    whole = decode(own, chosen, tokens)
    wrong = replace(chosen, encoding=forgets(every_encoding(10)[name]))
    errors[name] = np.abs(in_pieces(own, wrong, [1] * 10) - whole).max(axis=(0, 2))
    print(f"{name:11} right at position 0: {errors[name][0] < 1e-12};", end=" ")
    print("wrong at 1 to 9:", seen := bool((errors[name][1:] > 1e-6).all()))
    assert errors[name][0] < 1e-12 and seen == (name != "none")
plots.position_mistakes(np.arange(10), errors, colours)
plt.show()

# %% [markdown]
# At position 0 the mistake is invisible for every encoding, and a model without positions never shows
# it. A test with one token, or without positions, cannot find it. The text only gets worse ("This is is is", in Blaizzy/mlx-vlm pull request #1527).
#
# ### Left padding in batched generation
#
# To write for several prompts in one call, let them end in the same column: shorter prompts are padded on the *left*.
# The padding must be hidden from all queries, and positions must count the non-padding tokens, so that the first of
# them has position 0. Pass `greedy` the array `real`, which is True for non-padding tokens, and it does both.

# %%
prompts = ["the rays of light ", "in the prism "]
longest = max(map(len, prompts))
padded = to_tokens([" " * (longest - len(text)) + text for text in prompts], alphabet)
real = np.arange(longest) >= np.array([[longest - len(text)] for text in prompts])
together = greedy(newton, writer, padded, 30, real=real)
for text, row in zip(prompts, together, strict=True):
    alone = greedy(newton, writer, to_tokens(text, alphabet)[None], 30)[0]
    print(f"{text:>18}{to_strings(row, alphabet)}")
    assert np.array_equal(row, alone)

# %% [markdown]
# What if positions count the padding as well, `0, 1, 2, ...` from the left edge? Encodings that depend on distances
# pass by accident ([which ones](#what-each-positional-encoding-needs-in-a-kv-cache-second-reading)), because a common
# shift changes no distance. Test with the *short* prompt of a batch. In unslothai/unsloth #3699 the short prompts
# came out as garbage, while the longest one, which needs no padding, was right.
#
# ### Cache eviction and StreamingLLM
#
# An endless text needs a cache of limited size. **StreamingLLM** (Xiao et al. 2024) keeps the first four tokens and
# the newest ones. Large models put much weight on the first tokens, no matter what these are (**attention sinks**),
# and perplexity (lower is better) rose sharply where their keys were thrown away. What position does a kept row have?
# True positions preserve all distances, so the distance to the sinks grows beyond all training. StreamingLLM
# *renumbers*: the keys in the cache have positions $0, 1, 2, \dots$, and the query follows after them. Then the kept
# window has the same distances as before, and the gap is gone. So such a cache stores keys *before* the rotation and
# rotates them at each step. Or it rotates each key further, by the difference of its two positions:

# %%
q, k = np.random.default_rng(0).standard_normal((2, 1000, 12))
kept = np.r_[0:4, 900:1000]  # four sinks and the newest 100; the query is token 1000
slots = np.arange(len(kept))
query_true, query_new = rope(q[:1], [1000])[0], rope(q[:1], [len(kept)])[0]
true = rope(k[kept], kept) @ query_true
renumbered = rope(k[kept], slots) @ query_new
assert np.allclose(renumbered[4:], true[4:], rtol=0, atol=1e-9)
assert (np.abs(renumbered[:4] - true[:4]) > 1e-3).all()
turned_on = rope(rope(k[kept], kept), slots - kept)
assert np.allclose(turned_on, rope(k[kept], slots), rtol=0, atol=1e-9)

# %% [markdown]
# ## What each positional encoding needs in a KV cache (second reading)
#
# `cache_properties` tests an encoding on one layer with random weights, through the encoding's methods. What its class
# is called, or says about itself, counts for nothing.
#
# - *What is kept.* Does the newest row equal the full sequence's row if each key stays as it was rotated when it was
#   written? If not, does it if keys are kept unrotated and rotated again at each step? Once there are gaps, does the
#   row change if keys have their slots for positions?
# - *What may be done.* The sequence comes in pieces. It follows after seven tokens of padding. Three tokens are
#   removed, and the others keep their positions. Or the others move up, and the result must look like a sequence that never
#   had the three.
#
# Predict: which encodings cannot move up, even with unrotated keys? Which one needs the three removed tokens, no matter
# what is kept of the others?

# %% fold="output" alt="A grid of ten groups of encodings. Left, what is cached: keys plain, encoded, rotated or raw, positions, sums of gates. Right, what is allowed: reading in pieces, counting padding, dropping tokens, moving up. Most cells are blue for yes, some red for no or yellow for only with raw keys."
from textwrap import fill

from pe_numpy.judging.schemes import every_scheme

tried, rows, kinds = {}, {}, {}
for name, scheme in every_scheme(40).items():
    if scheme.encoding is not None:
        tried[name] = found = cache_properties(scheme.encoding)
        rows.setdefault(found, []).append(name)
        kinds.setdefault(found.holds, []).append(name)
for holds, names in kinds.items():
    print(fill(f"{holds}: {', '.join(names)}", 100, subsequent_indent="    "))
plots.cache_table(rows)
plt.show()

# %% [markdown]
# *Plain* keys contain no position. *Coded* keys have it from their token vectors, *turned* (rotated) keys from a
# rotation that does not change. *Raw* (unrotated) keys are rotated again at each step.
#
# **What to keep.** Only the key is needed if its position is inside it or does not count. A rotation, score or sum
# that uses the positions of kept keys needs them beside the keys: after a gap the slot is another number. FoX
# (`forgetting`) adds the gates between key and query, and the gates of removed tokens are among them, so the running
# sum of gates at each kept key must be stored. In CoPE the query makes the gates of all keys, so nothing that is kept
# can replace a removed key.
#
# **What may be renumbered.** Plain keys move freely. Rotated keys must be made again from unrotated ones or, as with
# RoPE, rotated further. Encodings in token vectors are also in the values and in deeper layers, so a token that moves
# must be computed again. All this is for one layer. In a deeper layer each key that stays was made when its token
# still attended to the removed ones.
#
# **What must be computed again.** Beyond the trained length dynamic NTK rotates queries and keys again at each token.
# LongRoPE does so once, as the trained length is passed. With unrotated keys the first layer's newest row is right, but
# deeper keys belong to the frequencies of an earlier length ([two layers](#in-practice)).
#
# With positions that count non-padding tokens, padding on the left harms none of these encodings. Positions that count
# the padding are right where only distances or the content decide (column "padding counted"). Only 40 positions were
# tried, so what begins later is not seen.

# %%
show_source(cache_properties)


def those(field, value):
    return {name for name, found in tried.items() if getattr(found, field) == value}


token_vectors = {"sinusoidal", "multiplicative", "learned", "hierarchical", "recurrent", "floater"}
assert those("renumbering", "no") == those("keys", "coded") == token_vectors
assert those("keys", "plain") == those("renumbering", "any")
assert those("gates", "sums") == {"forgetting"} and those("eviction", False) == {"cope"}
assert those("chunks", False) == those("keys", "raw") == {"dynamic_ntk", "longrope"}
assert not those("padding", "no") and {"rope", "alibi"} < those("padding", "slots")
later = Rope(scaling=lambda K, length: dynamic_ntk_scaling(K, length, trained_length=40))
assert cache_properties(later) == tried["rope"] != cache_properties(later, length=80)

# %% [markdown]
# ## KV cache in diffusion language models (second reading)
#
# A **diffusion language model** begins with an answer of `[MASK]` tokens and fills some in at each step, in any order.
# **LLaDA** ([arXiv:2502.09992](https://arxiv.org/abs/2502.09992); ML-GSAI/LLaDA at b7e6c35, `GUIDELINES.md`) is a
# Transformer whose causal mask is removed. **Dream** has none either. Both use RoPE, at positions known from the start.
# Filling in one token changes the keys of all tokens from the second layer on, so no cache of these is exact.
#
# In **block diffusion** ([arXiv:2503.09573](https://arxiv.org/abs/2503.09573); kuleshov-group/bd3lms at 1c3e8f4) blocks
# follow from left to right. A token attends to its own block and to those before it. The keys of a finished block
# never change, so their cache is exact, if blocks are read whole. **Fast-dLLM**
# ([arXiv:2505.22618](https://arxiv.org/abs/2505.22618); NVlabs/Fast-dLLM at 24cc59e) caches for LLaDA and Dream, which
# have no such mask. For each block of the answer it computes all keys once. Until the block is full it keeps those
# before the block, or all outside it. Its abstract calls this approximate, "with negligible performance drop".
#
# **Predict**, for blocks of 1, 5 and 10: token 7 of 10 changes. Which keys of the second layer change?


# %% fold="output"
@dataclass(frozen=True)
class Blocks(Causal):  # of 1: causal; a single block: no mask
    size: int

    def mask(self, q_positions, k_positions):
        return q_positions[..., :, None] // self.size >= k_positions[..., None, :] // self.size


# %% fold="output"
filled = np.where(np.arange(10) == 7, 0, tokens)
for size in (1, 5, 10):
    blocks, caches = replace(model, mask=Blocks(size)), (Cache(1, 10), Cache(1, 10))
    whole = decode(params, blocks, tokens, cache=caches[0])
    decode(params, blocks, filled, cache=caches[1])
    for layer, first in (("0", 7), ("1", 7 // size * size)):
        one, other = (cache.held[layer][0] for cache in caches)
        moved = np.flatnonzero(np.abs(one - other).max(axis=(0, 1, 3)) > 1e-12).tolist()
        assert moved == list(range(first, 10 if layer == "1" else 8))
    cuts = [in_pieces(params, blocks, cut) for cut in ([5, 5], [5, 2, 3])]
    exact, torn = (np.allclose(logits, whole, rtol=0, atol=1e-9) for logits in cuts)
    print(f"blocks of {size:2}: keys {moved} change, a cache of the first five is exact: {exact}")
    assert exact == (size < 10) and torn == (size == 1)

# %% [markdown]
# ## In short
#
# - **How large is a KV cache?** Half a megabyte per token for 32 layers of 32 heads of dimension 128 in two bytes. It
#   is a quarter if four query heads share each of 8 KV heads (GQA). [KV cache size](#kv-cache-size-bytes-per-token)
# - **What position does the new token get, and with padding?** The number of non-padding tokens read before, not 0.
#   Pad on the left, and hide the padding. [Newest token](#the-position-of-the-newest-token),
#   [left padding](#left-padding-in-batched-generation)
# - **How is the next token chosen?** Greedy takes the largest logit. Sampling divides by the temperature, then
#   applies top-k, then top-p (the fewest tokens that reach $p$), and draws. Beam search keeps several texts.
#   [Temperature and top-k](#greedy-decoding-temperature-and-top-k-sampling),
#   [top-p](#exercise-3-top-p-nucleus-sampling), [beams](#beam-search-and-the-length-penalty)
# - **What does a KV cache store, and is the result the same?** Keys (RoPE: rotated) and values of all tokens. T5 and
#   ALiBi also need positions. It is exact, up to rounding, with a causal mask, if the encoding does not change with
#   the length. [What each encoding needs](#what-each-positional-encoding-needs-in-a-kv-cache-second-reading),
#   [why it is exact](#why-a-kv-cache-is-exact-old-rows-never-change)
# - **Does speculative decoding change the text's distribution?** No. Refused drafts are redrawn from what the small
#   model gave too little of. Drafts that are cheap and mostly right save time.
#   [Speculative decoding](#speculative-decoding-a-small-model-drafts)
# - **May I throw old rows away?** Yes, but many models need the first few, Gemma 3 270M only `<bos>`. The rest keep their positions, or
#   all get new ones. New ones are never possible with encodings in token vectors.
#   [Cache eviction](#cache-eviction-and-streamingllm)

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 63` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 63_decoding.py` checks yours.
#
# ### Exercise 1: Rows computed for a long prompt
#
# A prompt of a thousand tokens is read, and ten are written. How many rows of $K$ does each layer compute,
# with a cache and without? Does the cache matter more or less than for a prompt of one token after which a
# thousand and nine are written?
#
# <details><summary>Hint 1</summary>
#
# The formula is in the first section, with $P$ and $n$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Compare the two ratios.
#
# </details>
#
# <details><summary>Solution</summary>
#
# With a cache the number is the same in both cases. Without one, it is about ten times as large in the first case, and
# about five hundred times as large in the second.
#
# ```python
# def rows(P, n):
#     lengths = range(P, P + n)  # of what each step reads
#     return sum(lengths), lengths[-1]  # all again; each token once
# assert rows(1000, 10) == (10_045, 1009) and rows(1, 1009) == (509_545, 1009)
# ```
#
# </details>
#
# ### Exercise 2: xPos with a moving centre
#
# xPos ([chapter 45](45_rope_relatives.ipynb)) scales queries and keys around a centre, here position 0. Let the
# centre be the middle of the text so far. What must a cache store now? Which old scores change?
#
# <details><summary>Hint 1</summary>
#
# A subclass of `XPos` needs only a new `turn`. Its `context.k_positions` are the positions of all keys.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Multiply the two scales $\zeta^{(i-\mu)/\sigma}$ and $\zeta^{-(j-\mu)/\sigma}$, where $\mu$ is the centre.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It must store unrotated keys and their positions, because a rotated key has the centre of an earlier length. No score
# changes, since $\mu$ cancels, so a text may come in pieces.
#
# ```python
# from pe_numpy.transformer.encodings import XPos
#
# class Middle(XPos):
#     def turn(self, params, q, k, context):
#         centre = context.k_positions.max() / 2
#         return XPos(centre=centre).turn(params, q, k, context)
#
# assert cache_properties(XPos()).holds == "rotated keys"
# found = cache_properties(Middle())
# assert found.holds == "unrotated keys and positions" and found.chunks
# ```
#
# </details>
#
# ### Exercise 3: Top-p (nucleus) sampling
#
# **Nucleus sampling** keeps the smallest set of most probable tokens whose probabilities add up to at least
# $p$. Write it, for one row of logits. How many characters does it keep after "of the re" for $p = 0.7$?
# How many does it keep where the model is sure, after "refrac"? What would top-k keep?
#
# <details><summary>Hint 1</summary>
#
# Sort, add up, and find where the sum reaches $p$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `np.searchsorted` on the cumulative sum gives how many tokens come before that point.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It keeps three characters after "of the re" and one after "refrac". Top-k keeps $k$ in both cases, however sure the
# model is.
#
# ```python
# def nucleus(z, p):
#     order = np.argsort(-z)
#     total = softmax(z[order]).cumsum()
#     return order[: np.searchsorted(total, p) + 1]
# assert len(nucleus(z, 0.7)) == 3
# sure = decode(newton, writer, [to_tokens("refrac", alphabet)])[0, -1]
# assert [alphabet[v] for v in nucleus(sure, 0.7)] == ["t"]
# ```
#
# </details>
#
# ## In practice
#
# **Frequencies that change with the length.** Dynamic NTK ([chapter 50](50_scaling.ipynb)) gives RoPE a
# larger base as the text grows. A cache of *rotated* keys then mixes keys that were rotated with old frequencies and
# queries that are rotated with new ones (huggingface/transformers #25104). The package keeps such keys unrotated and
# rotates all of them again at each step. Does that solve the problem?


# %%
def stretched(K, length):
    return dynamic_ntk_scaling(K, length, trained_length=4)


for layers in (1, 2):
    several, chosen = Sizes(11, 12, 24, n_layers=layers), Model(2, Rope(scaling=stretched))
    own = init_params(several, chosen, np.random.default_rng(0), np.float64)
    last = in_pieces(own, chosen, [1] * 10)[0, -1]
    right = np.allclose(last, decode(own, chosen, tokens)[0, -1], rtol=0, atol=1e-9)
    print(f"layers: {layers}, the same as without a cache: {right}")
    assert right == (layers == 1)

# %% [markdown]
# In the first layer, it does. In deeper layers no cache can be exact, because their keys were made from rows that the
# first layer computed with the frequencies of an earlier length.
#
# **Caches in fewer bits, in pages, or shared between texts with the same beginning** all change how the two
# lists are stored (fewer bits round them). What belongs in the lists stays as it is here, except that keys round best
# before RoPE ([chapter 82](82_real_cache.ipynb#keys-in-4-3-and-2-bits)).

# %% [markdown]
# ## Further reading
#
# - Vaswani et al. 2017, "Attention is all you need" ([arXiv:1706.03762](https://arxiv.org/abs/1706.03762)), section
#   3.2.3: the mask that makes a cache possible.
# - Shazeer 2019, "Fast transformer decoding: one write-head is all you need"
#   ([arXiv:1911.02150](https://arxiv.org/abs/1911.02150)). On multi-query attention, and why decoding waits for
#   memory.
# - Ainslie et al. 2023, "GQA: training generalized multi-query transformer models from multi-head
#   checkpoints" ([arXiv:2305.13245](https://arxiv.org/abs/2305.13245)).
# - Fan et al. 2018, "Hierarchical neural story generation" ([arXiv:1805.04833](https://arxiv.org/abs/1805.04833)),
#   section 5.4: top-k sampling.
# - Holtzman et al. 2020, "The curious case of neural text degeneration"
#   ([arXiv:1904.09751](https://arxiv.org/abs/1904.09751)): why the most probable text is a poor one, and nucleus
#   sampling.
# - Wu et al. 2016, "Google's neural machine translation system"
#   ([arXiv:1609.08144](https://arxiv.org/abs/1609.08144)): where the length penalty comes from.
# - Leviathan et al. 2023, "Fast inference from Transformers via speculative decoding"
#   ([arXiv:2211.17192](https://arxiv.org/abs/2211.17192)), and Chen et al. 2023, "Accelerating large language model
#   decoding with speculative sampling" ([arXiv:2302.01318](https://arxiv.org/abs/2302.01318)).
# - Xiao et al. 2024, "Efficient streaming language models with attention sinks"
#   ([arXiv:2309.17453](https://arxiv.org/abs/2309.17453)): which rows of a cache may be thrown away.
