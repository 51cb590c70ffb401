# %% [markdown]
# # 94. Document 004: Transformer, self-attention, RoPE and KV cache, computed
#
# *What does document 004 say section by section, do its examples compute, and what is wrong?*
#
# 50 minutes.

# %% [markdown]
# ## In this document
#
# Document 004 is a set of notes on the Transformer and on self-attention (June 2025), with a part on
# positional encoding. This notebook says, section by section, what it claims, computes its formulas
# and examples, corrects what is wrong and names the chapter that teaches the subject. The letter of
# an id tells what it is: N a numeric example, E a mistake, C a passage that looks wrong but is right,
# X a point on which the five documents disagree ([all of them](INDEX.md)).

# %% [markdown]
# ## 004-1.1 Input embedding and positional encoding
#
# A learned table turns each token id into a vector, of 512 numbers for example. A Transformer has no
# built-in order, so a position vector is added; the first paper used sines and cosines. (The model of
# the first cell is tiny and untrained; it serves the sections to 004-1.6.)
#
# - **N-004-1.** Width 512 and, in the next section, 6 layers are the sizes of the first Transformer.
#   With a feed-forward width of 2048 and about 37,000 tokens they give 63 million parameters; the
#   paper reports 65.
# - **E-004-1.** Claim: today most models use learned position vectors. Correction: this was true of
#   BERT, GPT-2 and GPT-3; most current large language models use RoPE.
#
# Taught in [chapter 62](62_model.ipynb#the-input-token-embedding-plus-positional-encoding): the input of the model;
# learned tables are in [chapter 21](21_learned.ipynb).

# %%
import numpy as np

from pe_numpy import Model, Sizes, embed_tokens, init_params
from pe_numpy.transformer.encodings import Rope, Sinusoidal

vocabulary = ["<BOS>", "我", "爱", "你", "I", "love", "you", "them"]
model = Model(n_heads=2, encoding=Sinusoidal(), norm="post")  # tiny and untrained
sizes = Sizes(len(vocabulary), d_model=16, d_ff=64, n_layers=2, n_encoder_layers=2)
params = init_params(sizes, model, np.random.default_rng(0), np.float64)
one_hot = np.eye(8)[[vocabulary.index(word) for word in ("I", "love", "you")]]  # (L, V)
looked_up = embed_tokens(params["embedding"], [4, 5, 6], scale=1.0)  # (L, D)
assert np.allclose(one_hot @ params["embedding"], looked_up, rtol=0, atol=1e-15)
assert np.array_equal(one_hot @ one_hot.T, np.eye(3)) and looked_up.shape == (3, 16)


# %% fold="cell"
def count(tree):
    return sum(map(count, tree.values())) if isinstance(tree, dict) else tree.size


def parameters(V, D, F, N):  # V tokens, N + N layers, post-norm, one table for both ends
    A, W = 4 * (D * D + D), 2 * D * F + F + D  # an attention, a feed-forward network
    return V * D + N * (A + W + 4 * D) + N * (2 * A + W + 6 * D)


drawn = Sizes(11, 12, 20, 3, n_encoder_layers=3, tied=True), Model(2, norm="post")
assert parameters(11, 12, 20, 3) == count(init_params(*drawn, np.random.default_rng(0)))
print(f"first Transformer: {parameters(37_000, 512, 2048, 6) / 1e6:.1f} million parameters")
assert 63e6 < parameters(37_000, 512, 2048, 6) < 63.1e6

# %% [markdown]
# ## 004-1.2 Encoder block
#
# An encoder is a stack of blocks, usually 6. Each has multi-head self-attention, in which every word
# attends to the whole sentence, and a feed-forward network (MLP), which processes each word
# separately. A residual connection and LayerNorm follow each of the two.
#
# - **E-004-2.** Claim (in the overview): the encoder compresses the input sequence into one
#   high-level representation, the "Context". Correction: it returns one vector per token, so $n$
#   vectors go in and $n$ come out, as section 004-1.4 says. A single context vector belongs to older
#   recurrent designs.
#
# Taught in [chapter 60](60_layers.ipynb#the-encoder-block): the block; the encoder is in
# [chapter 62](62_model.ipynb#the-encoder-one-vector-for-each-token).

# %%
from pe_numpy import encode, feed_forward

source = [[4, 5, 6]]  # I love you
memory, longer = encode(params, model, source), encode(params, model, np.tile(source, 10))
print("encoder output for 3 tokens:", memory.shape, "  for 30 tokens:", longer.shape)  # (B, S, D)
assert memory.shape == (1, 3, 16) and longer.shape == (1, 30, 16)
other = encode(params, model, [[4, 5, 7]])  # I love them
assert (np.abs(other - memory).max(axis=-1) > 0.01).all()  # every word sees the last one
network = params["encoder"]["layers"]["0"]["feed_forward"]
alone = [feed_forward(network, word) for word in memory[0]]
assert np.allclose(feed_forward(network, memory[0]), alone, rtol=0, atol=1e-12)  # separately

# %% [markdown]
# ## 004-1.3 Decoder block
#
# The decoder is autoregressive: its output becomes its next input. Each layer has masked
# self-attention, attention to the encoder's output and a feed-forward network. In the second
# (**cross-attention**) the queries come from the decoder, keys and values from the encoder's output.
# That is right, and so is $\text{output}=\text{input}+\mathrm{Sublayer}(\text{input})$ (C-16).
#
# - **E-004-3.** Claim: only row $n$ of the final matrix is used to predict the next word. Correction:
#   this is true at inference. In training every row predicts its next word: row $t$ is the last row
#   of a call with the first $t+1$ tokens.
#
# Taught in [chapter 62](62_model.ipynb#the-decoder-causal-self-attention-and-cross-attention): masked self-attention and
# cross-attention.

# %%
from pe_numpy import attention, decode, linear, merge_heads, multi_head_attention, softmax
from pe_numpy import split_heads

target = np.array([[0, 1, 2]])  # <BOS> 我 爱
logits = decode(params, model, target, memory)  # (B, L, V)
for t in range(3):  # every row is a prediction
    prefix = decode(params, model, target[:, : t + 1], memory)
    assert np.allclose(logits[:, t], prefix[:, -1], rtol=0, atol=1e-12)
cross = params["decoder"]["layers"]["0"]["cross"]
r = np.random.default_rng(2).standard_normal((4, 16))  # 4 rows of a decoder
q = split_heads(linear(r, cross["W_q"], cross["b_q"]), 2)
k, v = (split_heads(linear(memory[0], cross[f"W_{n}"], cross[f"b_{n}"]), 2) for n in "kv")
expected = linear(merge_heads(attention(q, k, v)[0]), cross["W_o"], cross["b_o"])
output, weights = multi_head_attention(cross, r[None], memory, n_heads=2)
assert np.allclose(output[0], expected, rtol=0, atol=1e-12) and weights.shape == (1, 2, 4, 3)

# %% [markdown]
# ## 004-1.4 Training with teacher forcing
#
# The decoder is given the true words of the target so far and predicts the next one. This is
# **teacher forcing**: it is fed the true tokens, never its own guesses, which avoids the accumulation
# of errors. All this is right (C-16). It belongs to training: at inference the model reads its own
# output, right or wrong.
#
# Taught in [chapter 62](62_model.ipynb#teacher-forcing-and-the-shift-to-the-right): the chain rule of
# probabilities, and why the true tokens are fed.
#
# ## 004-1.5 Masked self-attention and cross-attention
#
# Self-attention in the decoder is masked so that no word sees a later one, and every decoder layer
# consults the encoder's output. Both are right: in each layer of the cell the self-attention weights
# above the diagonal are 0, and all cross-attention weights are positive.
#
# Taught in [chapter 10](10_attention.ipynb#self-attention-and-cross-attention): self-attention,
# cross-attention and the causal mask.

# %%
from pe_numpy import greedy

own = greedy(params, model, [[0]], 2, source=source)[0]
print("an untrained model writes:", [vocabulary[token] for token in own])
assert own[0] == logits[0, 0].argmax() != 1  # its first guess is not 我
fed = decode(params, model, [[0, own[0]]], memory)[0]
assert own[1] == fed[1].argmax()  # at inference it reads its own guess
assert np.abs(fed[1] - logits[0, 1]).max() > 0.1  # in training it reads 我 instead
watch = {}
decode(params, model, target, memory, watch=watch)  # weights: (B, H, L, S)
for layer in (0, 1):
    assert not np.triu(watch[f"attention {layer}"], 1).any() and (watch[f"cross {layer}"] > 0).all()
print("self-attention, layer 1, head 0:", watch["attention 1"][0, 0].round(2).tolist())

# %% [markdown]
# ## 004-1.6 Cross-entropy loss
#
# At each position the cross-entropy compares a softmax over the vocabulary with the one-hot vector of
# the true word; training minimises the sum over all positions. The first word is predicted from
# `<BOS>`, the second from the true first word, and so on.
#
# - **E-004-24.** One section says that each position may see itself and earlier words, this one that
#   it cannot see the current or a future word. Both are true because the input is shifted right by
#   one position; the document implies it by `<BOS>` and does not say it. Row $t$ sees *inputs* up to
#   and including $t$, and these are the *targets* before $t$.
#
# Taught in [chapter 62](62_model.ipynb#the-loss-cross-entropy): the loss, and a test that exchanges one target.

# %%
from pe_numpy import cross_entropy

inputs, targets = target, [1, 2, 3]  # <BOS> 我 爱, and 我 爱 你
rows = logits[0]  # (L, V)
probabilities = np.exp(rows) / np.exp(rows).sum(axis=1, keepdims=True)
surprises = -(np.eye(8)[targets] * np.log(probabilities)).sum(axis=1)  # one-hot against softmax
print("loss per position:", surprises.round(3).tolist(), " sum:", surprises.sum().round(3))
assert np.isclose(3 * cross_entropy(rows, targets), surprises.sum(), rtol=0, atol=1e-12)
for t in range(3):
    later = np.where(np.arange(3) > t, 7, inputs)  # replaces the target of row t and all after it
    assert np.allclose(decode(params, model, later, memory)[0, t], rows[t], rtol=0, atol=1e-12)
    seen = [vocabulary[n] for n in inputs[0, : t + 1]]
    print("row", t, "sees", seen, "and predicts", vocabulary[targets[t]])

# %% [markdown]
# ## 004-1.7 Residual connection and its gradient
#
# The output of a sublayer $F$ is added to its input, $y=x+F(x)$. In backpropagation the section
# derives
#
# $$\frac{\partial L}{\partial y}\cdot\frac{\partial y}{\partial x}=\frac{\partial L}{\partial y}\cdot\left(\frac{\partial F(x)}{\partial x}+1\right)$$
#
# so a gradient passes even where $\partial F/\partial x$ is small. The formula is right for single
# numbers (C-16); for vectors $\partial F/\partial x$ is a matrix and the 1 becomes the identity
# matrix. Over many layers the factors can also grow.
#
# Taught in [chapter 60](60_layers.ipynb#residual-connections): the residual
# connection, measured in a stack of 24 layers.

# %%
from pe_numpy import value_and_grad

for n, slope in ((1, 0.5), (3, 0.5), (3, 0.01), (3, 0.0)):  # a number, then vectors
    rng = np.random.default_rng(0)
    x, W = rng.standard_normal(n), slope * rng.standard_normal((n, n))

    def loss(x, W=W):  # half the squared length of y = x + F(x), so dL/dy = y
        return ((x + np.tanh(x @ W)) ** 2).sum() / 2

    y = x + np.tanh(x @ W)
    of_F = np.diag(1 - np.tanh(x @ W) ** 2) @ W.T  # dF/dx, a matrix
    gradient = value_and_grad(loss)(x)[1]
    assert np.allclose(gradient, y @ (of_F + np.eye(n)), rtol=0, atol=1e-12)
    print(f"F scaled by {slope}: without the 1 {np.linalg.norm(y @ of_F):.3f}", end=", ")
    print(f"with it {np.linalg.norm(gradient):.3f}")

# %% [markdown]
# ## 004-1.8 LayerNorm and BatchNorm
#
# LayerNorm standardises the features within one sample, BatchNorm over the whole batch; LayerNorm
# fits sequences of varying length better. That much is right.
#
# - **E-004-4.** Claim: LayerNorm is "over different dimensions of the same feature", BatchNorm
#   "over the same dimension of different features". Correction: this is right only if *feature*
#   means a token's vector. If it means a component, as one line earlier in the document, it is the
#   wrong way round. And "one sample" must be one *token*, not the whole sequence: with LayerNorm,
#   tripling token 1 does not change token 0. If the whole sequence is normalised, token 0 moves by
#   0.942.
#
# Taught in [chapter 60](60_layers.ipynb#layer-norm): LayerNorm, BatchNorm and RMSNorm side by side.

# %%
from pe_numpy import layer_norm

X = np.random.default_rng(0).standard_normal((2, 3, 4)) + np.arange(4)  # (B, L, D)
by_token = layer_norm(X, np.ones(4), np.zeros(4))
columns = X.reshape(6, 4).T  # one row per component
by_component = layer_norm(columns, np.ones(6), np.zeros(6)).T.reshape(X.shape)  # BatchNorm
assert np.allclose(by_token.mean(axis=2), 0, rtol=0, atol=1e-12)
assert np.allclose(by_component.mean(axis=(0, 1)), 0, rtol=0, atol=1e-12)
assert np.abs(by_token.mean(axis=(0, 1))).max() > 1
tripled = X * np.array([[1], [3], [1]])  # token 1 of each sample
moved = np.abs(layer_norm(tripled, np.ones(4), np.zeros(4)) - by_token)[0, 0].max()
whole = np.diff([(x[0] - x[0].mean()) / np.sqrt(x[0].var() + 1e-5) for x in (X, tripled)], axis=0)
print(f"token 0 moves by {moved:.3f}; whole sequence normalised: {np.abs(whole[0, 0]).max():.3f}")
assert moved == 0 and f"{np.abs(whole[0, 0]).max():.3f}" == "0.942"

# %% [markdown]
# ## 004-1.9 Attention of four words, with one head and with two
#
# Embeddings plus positions are the rows $a^1,\dots,a^4$; $Q=AW^q$, $K=AW^k$ and $V=AW^v$, with $A$
# for the matrix of these rows. Then the document uses $A$ again to denote the scores $QK^\top$, and
# $A'$ to denote the weights:
#
# $$\text{Attention}(Q,K,V)=\text{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right)V$$
#
# - **N-004-2.** Four words, in symbols. With numbers every matrix has the shape $(4,d)$ or $(4,4)$.
# - **E-004-5.** Claim: $[b^1,b^2,b^3,b^4]=A'V$. Correction: $A'V$ is a column of row vectors. With
#   rows $q=aW$; with columns everything is transposed, $q=W^\top a$. The document mixes both
#   ($a^iW^q$, but $W^{q,1}q^i$). Such a mixture runs without error and gives a different vector.
#
# The formula itself is right (C-16).

# %%
rng = np.random.default_rng(6)
a = rng.integers(-2, 3, (4, 4)).astype(float)  # four words as rows
W_q, W_k, W_v = rng.integers(-1, 2, (3, 4, 4)).astype(float)
Q, K, V = a @ W_q, a @ W_k, a @ W_v
scores = Q @ K.T
A_prime = np.exp(scores / np.sqrt(4)) / np.exp(scores / np.sqrt(4)).sum(axis=1, keepdims=True)
b, weights = attention(Q, K, V)
assert np.allclose(A_prime, weights, rtol=0, atol=1e-12)
assert np.allclose(A_prime @ V, b, rtol=0, atol=1e-12) and b.shape == weights.shape == (4, 4)
columns = softmax((W_k.T @ a.T).T @ (W_q.T @ a.T) / 2, axis=0)  # words as columns
assert np.allclose((W_v.T @ a.T) @ columns, b.T, rtol=0, atol=1e-12)
q = linear(a[1], W_q)  # as a row
assert np.array_equal(W_q.T @ a[1], q) and not np.array_equal(W_q @ a[1], q)
print("output of word 1:", b[1].round(3).tolist())

# %% [markdown]
# For two heads the document projects $Q$, $K$, $V$ a second time, or slices them, which is what
# programs do. The heads are concatenated and projected:
#
# $$\begin{aligned}\text{head}_h&=\text{softmax}\left(\frac{Q_hK_h^\top}{\sqrt{d_k}}\right)V_h\\
# \text{output}&=[\,\text{head}_1\;\;\text{head}_2\,]\;W^O\end{aligned}$$
#
# Two heads are $(4,2)$ each; side by side, and after the projection, $(4,4)$.
#
# - **E-004-6.** Printed are $K_1=KW^{q,1}$ and $V_1=VW^{q,1}$, the query's matrix three times.
#   Correct are $K_1=KW^{k,1}$ and $V_1=VW^{v,1}$. The slip does not make the scores symmetric, since
#   $Q$ and $K$ are already projected, but it ties matrices that should be free. It is harmless only
#   for slices, where all three make the same selection. (Two projections in a row are one.)
#
# Taught in [chapter 10](10_attention.ipynb#multi-head-attention-two-heads): attention by hand, with one head and with two.

# %% fold="cell"
W_o = rng.integers(-1, 2, (4, 4)).astype(float)
by_slices = [attention(Q[:, h], K[:, h], V[:, h])[0] for h in (slice(0, 2), slice(2, 4))]
assert [head.shape for head in by_slices] == [(4, 2), (4, 2)]
own = {"W_q": W_q, "W_k": W_k, "W_v": W_v, "W_o": W_o}
together = multi_head_attention(own, a[None], a[None], 2)[0][0]  # (L, D)
assert np.allclose(np.hstack(by_slices) @ W_o, together, rtol=0, atol=1e-12)
W_q1, W_k1, W_v1 = rng.integers(-1, 2, (3, 4, 2)).astype(float)
right = attention(Q @ W_q1, K @ W_k1, V @ W_v1)[0]
slip = attention(Q @ W_q1, K @ W_q1, V @ W_q1)[0]
slip_scores = linear(Q, W_q1) @ linear(K, W_q1).T
assert np.abs(right - slip).max() > 0.1 and not np.array_equal(slip_scores, slip_scores.T)
once = attention(a @ (W_q @ W_q1), a @ (W_k @ W_k1), a @ (W_v @ W_v1))[0]
assert np.allclose(once, right, rtol=0, atol=1e-12)  # two projections in a row are one

# %% [markdown]
# ## 004-2 Self-attention for related input vectors
#
# The second part begins with a task that has one output per input (sequence labelling). A fully
# connected layer ignores how the vectors are related; self-attention considers all of them and gives
# its result to that layer. This is right; the cell of section 004-1.2 shows both halves.
#
# Taught in [chapter 10](10_attention.ipynb#why-a-per-token-layer-is-not-enough): why a layer
# for each word is not enough.
#
# ## 004-2.1 Query, key and value
#
# $Q=XW^Q$, $K=XW^K$, $V=XW^V$: the query is what a position looks for, the key what it offers, the
# value its content. Scores are dot products, large for similar directions, negative for opposite and
# 0 for orthogonal ones. They are divided by the square root of the key width, to keep the softmax
# away from regions with tiny gradients. All this is right. Two remarks need a condition:
#
# - "A normalised ReLU is also possible" instead of the softmax: only if at least one score is
#   positive.
# - The input with the highest score dominates the sum: only if its lead is large. In the cell, with 8
#   keys of width 512, the top key has on average 0.96 of the weight without the scale, and 0.36 with
#   it.
#
# Taught in [chapter 10](10_attention.ipynb#why-divide-by-the-square-root-of-the-head-dimension): the projections, the
# scores, and why they are divided.

# %%
from pe_numpy import relu

rng = np.random.default_rng(0)
q, k = rng.standard_normal((1000, 1, 512)), rng.standard_normal((1000, 8, 512))
top = {}
for name, scale in (("undivided", 1.0), ("divided", None)):
    w = attention(q, k, k, scale=scale)[1][:, 0]  # (draws, S)
    slope = (w * (1 - w)).sum(axis=1).mean()  # derivatives of each weight by its own score
    top[name] = (f"{w.max(axis=1).mean():.2f}", slope)
    print(f"{name:9}: top weight {top[name][0]}, sum of the derivatives {slope:.3f}")
assert top["undivided"][1] < 0.2 * top["divided"][1]
assert (top["undivided"][0], top["divided"][0]) == ("0.96", "0.36")
assert relu(np.array([-1.0, -2.0])).sum() == 0  # nothing to divide by

# %% [markdown]
# ## 004-2.2 Multi-head self-attention
#
# Several queries per word find several kinds of relevance. One more matrix combines the heads'
# outputs $b^{i,1}$ and $b^{i,2}$ into $b^i$.
#
# - **E-004-7.** Claim: $b^{i,1}$ is computed from $q^{i,1}$, $k^{i,1}$ and $k^{j,1}$, and $b^i$ is
#   "the attention score". Correction: the score is $q\cdot k$; $b$ is the *output* and needs the
#   values $v^{i,1}$ and $v^{j,1}$. The cell replaces one value: the weights remain, and every output
#   changes.
#
# Taught in [chapter 10](10_attention.ipynb#multi-head-attention-two-heads): heads, their concatenation and $W^O$.

# %%
V_other = V.copy()
V_other[0] += 5  # another value for the first word
(b_before, weights_before), (b_after, weights_after) = (
    attention(*(split_heads(m, 2) for m in (Q, K, values))) for values in (V, V_other)
)
moved = np.abs(merge_heads(b_after - b_before)).max(axis=-1)  # (L,)
print("outputs move by", moved.round(2).tolist())
assert np.array_equal(weights_after, weights_before) and (moved > 0.01).all()

# %% [markdown]
# ## 004-2.3 Causal mask
#
# In training the model is given the whole sentence "A B C D", and a mask restricts each position to
# itself and those on its left. **N-004-3** is the mask, with $-$ for "masked":
#
# $$\begin{bmatrix}1&-&-&-\\1&1&-&-\\1&1&1&-\\1&1&1&1\end{bmatrix}$$
#
# - **E-004-8.** Claim: the mask is usually applied to the matrices $K$ and $V$. Correction: it is
#   $n\times n$ and depends on the query, so it is applied to the scores, before the softmax (section
#   3.2.3 of the paper). If the later rows of $K$ and $V$ are set to 0, their scores are 0 and they
#   keep a weight: in the cell the second query gives two hidden words 0.251 each.
#
# Taught in [chapter 10](10_attention.ipynb#the-causal-mask-hide-the-future): the causal mask.

# %%
from pe_numpy import causal_mask

mask = causal_mask(np.arange(4), np.arange(4))
printed = "1 - - -, 1 1 - -, 1 1 1 -, 1 1 1 1"
assert [" ".join("1" if see else "-" for see in row) for row in mask] == printed.split(", ")
q, k, v = (m for m in np.random.default_rng(1).standard_normal((3, 4, 4)))
good, good_weights = attention(q[1:2], k, v, mask=mask[1:2])
past = mask[1][:, None]  # the second query sees two words
bad, bad_weights = attention(q[1:2], np.where(past, k, 0), np.where(past, v, 0))
print("mask on scores:", good_weights[0].round(3).tolist(), "-> output", good[0].round(3).tolist())
print("zeros in K, V: ", bad_weights[0].round(3).tolist(), "-> output", bad[0].round(3).tolist())
assert good_weights[0].round(3).tolist() == [0.550, 0.450, 0, 0]
assert bad_weights[0].round(3).tolist() == [0.274, 0.224, 0.251, 0.251]
assert np.allclose(bad / good, bad_weights[0, :2].sum(), rtol=0, atol=1e-12)  # 0.498

# %% [markdown]
# ## 004-2.4 One-hot vectors and embeddings
#
# One-hot vectors of different words are orthogonal, so they express no similarity, and they are as
# long as the vocabulary. Both are right, and an embedding table solves both; a one-hot vector times
# the table is one of its rows (first cell of this notebook).
#
# Taught in [chapter 10](10_attention.ipynb#token-embeddings-four-words-become-four-vectors): from one-hot vectors to a
# table.
#
# ## 004-2.5 Why self-attention needs positions
#
# Word order carries meaning, so each position has its own vector, learned or sinusoidal, which is
# added to the token's embedding.
#
# - **E-004-9.** Claim: self-attention is permutation *invariant*, so if the input is shuffled, the
#   result does not change. Correction: it is *equivariant*. A shuffled input gives the same output
#   vectors in shuffled order, $f(PX)=P\,f(X)$. Of the six orders of three tokens only the original
#   leaves the output matrix as it is; all six permute it. The mean over the tokens is invariant.
#
# Taught in [chapter 11](11_why_position.ipynb#equivariant-is-not-invariant): the difference between
# the two.

# %%
from itertools import permutations

rng = np.random.default_rng(0)
tokens = rng.standard_normal((3, 4))
W = rng.standard_normal((3, 4, 4))  # for queries, keys, values
before = attention(*(tokens @ W))[0]
unchanged = permuted = 0
for order in map(list, permutations(range(3))):
    after = attention(*(tokens[order] @ W))[0]
    unchanged += np.allclose(after, before, rtol=0, atol=1e-12)
    permuted += np.allclose(after, before[order], rtol=0, atol=1e-12)
    assert np.allclose(after.mean(axis=0), before.mean(axis=0), rtol=0, atol=1e-12)
print(f"of 6 orders: output unchanged {unchanged}, output permuted in the same way {permuted}")
assert (unchanged, permuted) == (1, 6)

# %% [markdown]
# ## 004-2.6 Sinusoidal positional encoding
#
# $$PE_{(pos,2i)}=\sin\left(pos/10000^{2i/d_{model}}\right),\qquad PE_{(pos,2i+1)}=\cos\left(pos/10000^{2i/d_{model}}\right)$$
#
# - **N-004-4.** In "I am a kid" the words have positions 0 to 3. For "am", position 1, the document
#   writes components 0 to 3 and leaves $d_{model}$ open. Pair 0 is 0.841471, 0.540302 for every
#   width; pair 1 is 0.821856, 0.569695 at width 512.
# - **E-004-10.** Claim: $2i\le d_{model}$. Correction: $2i\le d_{model}-2$, or the index leaves the
#   vector.

# %%
from pe_numpy import sinusoidal, wavelengths

place = {word: pos for pos, word in enumerate("I am a kid".split())}
for d in (4, 8, 512):
    am = sinusoidal(place["am"], d)
    by_hand = [f(1 / 10000 ** (2 * i / d)) for i in (0, 1) for f in (np.sin, np.cos)]
    assert np.allclose(am[:4], by_hand, rtol=0, atol=1e-12)
    last = max(2 * i for i in range(d) if 2 * i <= d - 2)
    assert last + 1 == am.size - 1  # the last pair ends the vector; 2i = d would be outside
    print(f"width {d:3}: am =", am[:4].round(6).tolist())
assert am[:4].round(6).tolist() == [0.841471, 0.540302, 0.821856, 0.569695]

# %% [markdown]
# The section then reads the formula through the coding factor $w_i=10000^{2i/d_{model}}$, which is
# exponential in $i$: $w_i=e^{(2i/d_{model})\ln10000}$ (the promised proof is missing).
#
# - **E-004-11.** Claim: $pos/w_i$ is the frequency. Correction: it is the *phase*; the angular
#   frequency is $1/w_i$. For $w=100$ and $pos=3$ the phase is 0.03 rad, the frequency 0.01 rad per
#   position. The name $\theta_i$ stands for $1/w_i$ in 004-2.7 and for $pos/w_i$ in 004-2.8.
# - **E-004-12.** Claim: a larger $d_{model}$ makes $pos/w_i$ change more slowly, so neighbouring
#   encodings are more similar. Correction: at a fixed $i\ge1$ it changes *faster*. For $i=8$ it
#   changes by 0.1 rad per position at width 64, by 0.316 at 128 and by 0.750 at 512. Only the
#   spacing of the frequencies becomes finer. The step from position 0 to 1, relative to the norm,
#   only falls from 0.260 to 0.232, with a limit of 0.228.
# - **E-004-14.** Claim: the range of wavelengths serves a sequence of any length and solves the
#   long-range forgetting of LSTMs (recurrent networks). Correction: the second is the merit of
#   attention, which reaches every key in one step. Without any encoding a key has the same weight
#   at distance 1 and at 1000. The first contradicts the document's own "upper limit" (004-2.8).
# - **X-1.** The documents disagree about longer sequences: the encoding extrapolates to some degree,
#   but poorly (001), generalises or is fair (002), somewhat and not at all (003), at any length
#   (004). It can be *computed* everywhere, but models trained with it degrade (Press et al. 2022). In
#   the last cell a linear map learns to read the position from the encodings of positions 0 to 511.
#   There it errs by less than 5, beyond them by more than 100.
#
# Taught in [chapter 20](20_sinusoidal.ipynb#sinusoidal-encodings-beyond-the-training-length): the sinusoidal
# encoding and its limits.

# %%
w = [np.exp(2 * i / 8 * np.log(10000)) for i in range(4)]  # width 8: 1, 10, 100, 1000
assert np.allclose(w, wavelengths(8) / (2 * np.pi), rtol=1e-12, atol=0)
assert sinusoidal(3, 8)[4] == np.sin(3 / 100) and f"{w[2]:.0f}" == "100"  # phase 0.03
steps = {}
for d in (64, 128, 512):
    rate = 2 * np.pi / wavelengths(d)[8]  # pair 8, radians per position
    first_step = np.linalg.norm(sinusoidal(1, d) - sinusoidal(0, d)) / np.sqrt(d / 2)
    steps[d] = f"{rate:.3f}", f"{first_step:.3f}"
    print(f"width {d:3}: pair 8 {steps[d][0]} rad per position, relative step {steps[d][1]}")
assert list(steps.values()) == [("0.100", "0.260"), ("0.316", "0.244"), ("0.750", "0.232")]
wide = np.linalg.norm(sinusoidal(1, 200_000) - sinusoidal(0, 200_000)) / np.sqrt(100_000)
print(f"relative step at width 200,000: {wide:.3f}")
assert f"{wide:.3f}" == "0.228"

# %%
share = {}
for gap in (1, 1000):  # no encoding; one key fits, and the query is the last of 1001
    fits = 4.0 * (np.arange(1001) == 1000 - gap)[:, None] * np.ones(8)
    share[gap] = attention(np.full((1, 8), 4.0), fits, fits)[1][0, 1000 - gap]
assert np.isclose(share[1], share[1000], rtol=0, atol=1e-12)
seen, unseen = np.arange(512), np.arange(512, 1024)
codes = {n: np.hstack([sinusoidal(p, 64), np.ones((512, 1))]) for n, p in ((0, seen), (1, unseen))}
readout = np.linalg.solve(codes[0].T @ codes[0] + 1e-3 * np.eye(65), codes[0].T @ seen)
inside, beyond = np.abs(codes[0] @ readout - seen).max(), np.abs(codes[1] @ readout - unseen).max()
print(f"error of the position read back: inside {inside:.1f}, beyond {beyond:.0f}")
assert inside < 5 and beyond > 100

# %% [markdown]
# ## 004-2.7 A shift of the position is a rotation
#
# With $\theta_i=10000^{-2i/d_{model}}$, a shift by $\Delta$ multiplies each pair by a matrix without
# $pos$:
#
# $$\begin{bmatrix}PE_{(pos+\Delta,2i)}\\PE_{(pos+\Delta,2i+1)}\end{bmatrix}=\begin{bmatrix}\cos\Delta\theta_i&\sin\Delta\theta_i\\-\sin\Delta\theta_i&\cos\Delta\theta_i\end{bmatrix}\begin{bmatrix}PE_{(pos,2i)}\\PE_{(pos,2i+1)}\end{bmatrix}$$
#
# The document proves it with the addition theorems:
#
# $$\begin{bmatrix}\sin(pos+\Delta)\theta_i\\\cos(pos+\Delta)\theta_i\end{bmatrix}=\begin{bmatrix}\sin pos\,\theta_i\cos\Delta\theta_i+\cos pos\,\theta_i\sin\Delta\theta_i\\\cos pos\,\theta_i\cos\Delta\theta_i-\sin pos\,\theta_i\sin\Delta\theta_i\end{bmatrix}$$
#
# - **C-9.** The matrix is called clockwise, which looks like a sign error. It is right: the pair is
#   (sine, cosine), not (cosine, sine).
#
# Taught in [chapter 20](20_sinusoidal.ipynb#the-shift-matrix-one-rotation-for-every-position): the shift matrix.

# %%
from pe_numpy import sinusoidal_shift

d, shift = 8, 3
for i in range(d // 2):
    angle = shift * 10000 ** (-2 * i / d)
    clockwise = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    block = sinusoidal_shift(shift, d)[2 * i : 2 * i + 2, 2 * i : 2 * i + 2]
    assert np.allclose(block, clockwise, rtol=0, atol=1e-12)
    for pos in (0, 1, 17, 500):
        before, after = sinusoidal([pos, pos + shift], d)[:, 2 * i : 2 * i + 2]
        (s, c), (s_d, c_d) = before, sinusoidal(shift, d)[2 * i : 2 * i + 2]
        assert np.allclose(clockwise @ before, after, rtol=0, atol=1e-12)
        assert np.allclose([s * c_d + c * s_d, c * c_d - s * s_d], after, rtol=0, atol=1e-12)
        assert np.abs(clockwise.T @ before - after).max() > 1e-4  # the other way round it fails

# %% [markdown]
# ## 004-2.8 Short-range and long-range dependencies
#
# $$w_i=10000^{2i/d_{model}},\qquad\theta_i=pos/10000^{2i/d_{model}}=pos/w_i$$
#
# Low components (small $w_i$) change quickly and serve short distances, high ones change slowly and
# serve long distances.
#
# - **N-004-5.** After 1000 positions a pair with $w=10000$ has the phase 0.1, whose sine is
#   0.0998334.
# - **N-004-6.** Its sine repeats after $20000\pi$, which is 62831.853 positions.
# - **E-004-13.** Claim: at that distance the encoding repeats, which confuses the beginning of a
#   document with its end and limits the length. Correction: $w=10000$ is never reached (the largest
#   at width 512 is 9646.62). One component that repeats is not the whole vector: at width 512 the
#   encodings of 0 and 62832 are 23.3649 apart, as far as unrelated ones ($\sqrt{512}=22.63$). Only
#   toy widths come close, 0.1475 at width 8. And no whole number of positions is an exact period.
#
# Taught in [chapter 20](20_sinusoidal.ipynb#is-the-encoding-unique): is the encoding unique?

# %%
w, theta = 10000 ** (np.arange(256) / 256), 2 * np.pi / wavelengths(512)
assert np.allclose(1 / w, theta, rtol=1e-12, atol=0)  # per position; times pos, the phase
assert np.allclose(sinusoidal(7, 512)[::2], np.sin(7 / w), rtol=0, atol=1e-12)
slow = wavelengths(4, base=1e8)[1]  # a pair with w = 10000
sine = f"{sinusoidal(1000, 4, base=1e8)[2]:.7f}"
print(f"sine of the phase 0.1: {sine}; period {slow / np.pi:.0f} pi = {slow:.3f}")
assert sine == "0.0998334" and f"{slow:.3f}" == "62831.853"
far = sinusoidal(62832, 512) - sinusoidal(0, 512), sinusoidal(62832, 8) - sinusoidal(0, 8)
apart = [f"{np.linalg.norm(difference):.4f}" for difference in far]
print(f"largest w {w[-1]:.2f}; encodings of 0 and 62832, widths 512 and 8:", *apart)
print(f"unrelated: {np.sqrt(512):.2f}")
assert f"{1 / theta[-1]:.2f}" == "9646.62" and apart == ["23.3649", "0.1475"]

# %% [markdown]
# ## 004-2.9 From absolute to relative: T5 and ALiBi
#
# With columns, $q_i=W_q(x_i+p_i)$ and $k_j=W_k(x_j+p_j)$, the score expands into four terms:
#
# $$\begin{aligned}q_i^\top k_j={}&x_i^\top W_q^\top W_kx_j+x_i^\top W_q^\top W_kp_j\\&+p_i^\top W_q^\top W_kx_j+p_i^\top W_q^\top W_kp_j\end{aligned}$$
#
# - **E-004-15.** Claim: with absolute encodings $QK^\top$ computes only how the contents of words are
#   related and ignores position. Correction: its own expansion has three terms with a position. In
#   the cell the same two tokens score 25.9276, 18.3418 and $-0.3261$ at the positions (0, 1), (5, 6)
#   and (20, 30), and 11.2013 by content only. What the score lacks is *relative* position: the first
#   two pairs have the same distance.
#
# Assuming that position and content are independent, the document goes on to
#
# $$q_i^\top k_j=x_i^\top W_q^\top W_kx_j+\beta_{i-j}$$
#
# with one set of biases $\beta^h_{i-j}$ per head. T5 sorts distances into buckets.
#
# - **E-004-16.** Claim: $p_i^\top W_q^\top W_kp_j=\beta_{i-j}$. Correction: the term depends on $i$
#   and on $j$. With the matrices above and without the scale it is 7.7084, 14.8507 and 16.1620 for
#   three neighbouring pairs. Independence does not remove the mixed terms either. Replacing the
#   term by a trained $\beta_{i-j}$ is a modelling decision.
# - **X-7.** T5's bias is written $\beta_{i,j}$ (001, 003) or $\beta_{i-j}$ (004). As an entry of the
#   score matrix it has two indices, as a parameter one; a free number for each pair would be an
#   absolute scheme.
# - **C-14.** The document asks why each head has its own biases ("why??"). Heads attend to different
#   ranges, and one shared table would give all of them the same preference.
# - **X-2.** The documents use $i-j$ (001, 003, 004 and most of 000) or $j-i$ (000 on T5, like T5's
#   code). Either works, if never mixed. This book uses query minus key.

# %%
from pe_numpy import four_terms

rng = np.random.default_rng(0)
x_i, x_j = rng.standard_normal((2, 8))
A_q, A_k = rng.standard_normal((2, 8, 8))  # they stand left of columns
found = []
for i, j in ((0, 1), (5, 6), (20, 30)):
    p = sinusoidal([i, j], 8)
    score = (A_q @ (x_i + p[0])) @ (A_k @ (x_j + p[1])) / np.sqrt(8)
    terms = [t[0, 1] for t in four_terms(np.stack([x_i, x_j]), p, A_q.T, A_k.T)]
    assert np.isclose(sum(terms), score, rtol=0, atol=1e-12)
    assert np.isclose(terms[1], (A_q @ x_i) @ (A_k @ p[1]) / np.sqrt(8), rtol=0, atol=1e-12)
    found.append(f"{score:.4f}")
print("scores:", found, f"  content only: {terms[0]:.4f}")
assert found == ["25.9276", "18.3418", "-0.3261"] and f"{terms[0]:.4f}" == "11.2013"

# %%
from pe_numpy import relative_distance, t5_bias, t5_bucket

p = sinusoidal(np.arange(4), 8)
beta = [round(float((A_q @ p[i]) @ (A_k @ p[i - 1])), 4) for i in (1, 2, 3)]
print("position-position terms of neighbours:", beta)
assert beta == [7.7084, 14.8507, 16.1620]
distance = relative_distance(np.arange(40), np.arange(40))  # i - j
b = t5_bias(np.random.default_rng(1).standard_normal((32, 1)), distance)[0]  # T5's, (L, S)
assert b[1, 0] == b[2, 1] == b[3, 2] != b[0, 1]  # what replaces them: one number per distance
assert distance[3, 1] == 3 - 1 and t5_bucket(3 - 1) != t5_bucket(1 - 3)

# %% fold="cell"
near = -0.3 * np.arange(32)  # one number per bucket: prefers small distances
table = np.stack([near, -near], axis=1)  # (N, H); the second head prefers large ones
bias = t5_bias(table, distance, bidirectional=False)  # (H, L, S)
for h, n in np.ndindex(2, 40):  # along a diagonal, one number
    b = np.diagonal(bias[h], -n)
    assert np.ptp(b) == 0 and b[0] == table[t5_bucket(n, bidirectional=False), h]
x = np.zeros((2, 40, 8))  # (H, L, K), equal contents: the score is the bias
means = []
for b in (bias, bias.mean(axis=0)):  # a table per head, one for both
    w = attention(x, x, x, mask=distance >= 0, bias=b)[1][:, -1]  # (H, S)
    means.append((w @ distance[-1]).round(2).tolist())
print("mean distance attended to by two heads:", means[0], "  with a shared table:", means[1])
assert means[0][1] - means[0][0] > 20 and means[1][0] == means[1][1]

# %% [markdown]
# ALiBi adds a bias that is not trained, the matrix of distances $D_{ij}=-(i-j)$ times a slope per
# head:
#
# $$\begin{gathered}m_h=2^{-8h/n_{head}}\\ \text{softmax}\left(q_iK^\top+m\cdot[-(i-1),\dots,-2,-1,0]\right)\end{gathered}$$
#
# - **N-004-7.** For 8 heads the slopes are $1/2$ to $1/256$, for 16 heads $2^{-0.5}$ to $2^{-8}$. For
#   12 heads the formula begins with 0.62996; the authors' code, which trained models follow, has 0.5.
# - **N-004-8, C-19.** The row begins with $-(i-1)$, which looks like an error. It is right, because
#   $i$ counts from 1 here: for $i=4$ and $m=1/2$ it is $-1.5$, $-1$, $-0.5$, 0.
# - **C-10.** Both formulas are as in the paper. The missing $1/\sqrt{d_k}$ is in its footnote: it
#   divides the scores only.
# - **X-6.** Document 003 divides the bias too, which weakens every slope by $\sqrt{d_k}$; 002 adds it
#   to the scores it is given, 001 and 004 show no scale. Right is $QK^\top/\sqrt{d_k}+B$.
# - **X-8.** The distance is $\lvert i-j\rvert$ in 002 and 003 and $i-j$ in 001 and 004. Under a
#   causal mask they are equal; without one, $-m(i-j)$ rewards future keys.
#
# Taught in [chapter 30](30_expansion.ipynb#four-terms-expand-the-product): the four terms; T5 is in
# [chapter 33](33_t5.ipynb), ALiBi in [chapter 35](35_alibi.ipynb#the-alibi-formula).

# %%
from pe_numpy import alibi_bias, alibi_slopes

slopes = {n: [2 ** (-8 * h / n) for h in range(1, n + 1)] for n in (8, 16, 12)}
for n in (8, 16):
    assert np.allclose(alibi_slopes(n), slopes[n], rtol=0, atol=1e-15)
print(f"12 heads begin: formula {slopes[12][0]:.5f}, authors' code {alibi_slopes(12)[0]}")
assert f"{slopes[12][0]:.5f}" == "0.62996" and alibi_slopes(12)[0] == 0.5
m, i = 0.5, 4  # counted from 1
row = [m * -(i - 1 - n) for n in range(i)]
print("row 4:", row)
assert row == alibi_bias([m], relative_distance([i - 1], np.arange(i)))[0, 0].tolist()

# %%
rng = np.random.default_rng(0)
q, k = rng.standard_normal((1, 64)), rng.standard_normal((16, 64))
distances = relative_distance([15], np.arange(16))  # 15 ... 0
look = {"outside": attention(q, k, k, bias=alibi_bias([0.5], distances)[0])[1][0]}
look["inside"] = softmax((q @ k.T - 0.5 * distances) / 8)[0]
look["no bias"] = attention(q, k, k)[1][0]
mean = {name: f"{w @ distances[0]:.2f}" for name, w in look.items()}
print("mean distance attended to:", mean)
assert mean == {"outside": "2.13", "inside": "5.70", "no bias": "6.66"}
at = np.arange(6)
signed = -0.5 * relative_distance([3], at)  # query 3 of 6, equal keys
symmetric = alibi_bias([0.5], relative_distance([3], at))[0]
assert np.array_equal(signed[:, :4], symmetric[:, :4])
assert softmax(signed).argmax() == 5 and softmax(symmetric).argmax() == 3

# %% [markdown]
# ## 004-2.10 RoPE
#
# Queries and keys are multiplied by a rotation matrix before the score, $q^{rot}=q_mR_m$ and
# $k^{rot}=k_nR_n$:
#
# $$q_mR_mR_n^\top k_n^\top=q_mR_mR_{-n}k_n^\top=q_mR_{m-n}k_n^\top$$
#
# It is right that the score depends on the positions only through $m-n$.
#
# - **E-004-17.** Claim: RoPE combines "rotary and relative" encoding. Correction: *absolute* and
#   relative. Each vector is rotated by its own position, and the score depends only on the
#   difference.
# - **E-004-18.** The text says "left-multiply", but the formula multiplies on the right. With the
#   document's $R_m$, rows give $(qR_m)(kR_n)^\top=qR_{m-n}k^\top$ and columns
#   $(R_mq)^\top R_nk=q^\top R_{n-m}k$. Each is right by itself, but they cannot be mixed: in the cell
#   they are $-0.926381$ and $-0.954605$.
#
# From the difference the document derives (the matrix is displayed as it must be):
#
# $$R_{m-n}=\begin{bmatrix}\cos(m-n)\theta_i&-\sin(m-n)\theta_i\\\sin(m-n)\theta_i&\cos(m-n)\theta_i\end{bmatrix},\qquad R_n^\top R_m=R_{m-n},\qquad R_{-m}=R_m^\top$$
#
# $$(R_nq)^\top R_mk=q^\top R_{m-n}k$$
#
# - **E-004-19.** It prints $R_{m-n}$ with $\sin$ at the top right and $-\sin$ below. That is
#   $R_{n-m}$ of its own definition, and with it the last identity gives $-0.954605$ instead of
#   $-0.926381$. (Here the query is at $n$ and the key at $m$; before, it was the other way round.)

# %%
from pe_numpy import rope, rope_matrix

q, k, m, n = np.array([1.0, 0.5]), np.array([0.8, 0.3]), 5, 2
R_m, R_n, R_mn = (rope_matrix(position, [1.0]) for position in (m, n, m - n))
for middle in (R_m @ R_n.T, R_m @ rope_matrix(-n, [1.0])):
    assert np.allclose(middle, R_mn, rtol=0, atol=1e-12)
rows, columns = (q @ R_m) @ (k @ R_n), (R_m @ q) @ (R_n @ k)
assert np.isclose(rows, q @ R_mn @ k, rtol=0, atol=1e-12)
assert np.isclose(columns, q @ R_mn.T @ k, rtol=0, atol=1e-12)
print(f"rows {rows:.6f}, columns {columns:.6f}")
assert f"{rows:.6f} {columns:.6f}" == "-0.926381 -0.954605"
rotated = rope(np.stack([q, q]), [m, m + 100], [1.0])  # absolute: another position, another vector
assert np.abs(rotated[0] - rotated[1]).max() > 0.1
later = rope([q], [m + 100], [1.0])[0] @ rope([k], [n + 100], [1.0])[0]
assert np.isclose(later, columns, rtol=0, atol=1e-12)  # relative: the same score

# %% fold="cell"
q, k, m, n = np.array([1.0, 0.5]), np.array([0.8, 0.3]), 5, 2
c, s = np.cos((m - n) * 1.0), np.sin((m - n) * 1.0)
right, as_printed = np.array([[c, -s], [s, c]]), np.array([[c, s], [-s, c]])
R_m, R_n = rope_matrix(m, [1.0]), rope_matrix(n, [1.0])
assert np.allclose(R_n.T @ R_m, right, rtol=0, atol=1e-12)
assert np.allclose(rope_matrix(m - n, [1.0]), right, rtol=0, atol=1e-12)
assert np.allclose(rope_matrix(n - m, [1.0]), as_printed, rtol=0, atol=1e-12)
assert np.allclose(rope_matrix(-m, [1.0]), R_m.T, rtol=0, atol=1e-12)
score = (R_n @ q) @ (R_m @ k)
print(f"score {score:.6f}, right matrix {q @ right @ k:.6f}, as printed {q @ as_printed @ k:.6f}")
assert np.isclose(score, q @ right @ k, rtol=0, atol=1e-12)
assert f"{score:.6f} {q @ as_printed @ k:.6f}" == "-0.926381 -0.954605"

# %% [markdown]
# A vector of $d$ components is split into $d/2$ groups, and each is rotated by its own block. These
# are the first two blocks, and one pair:
#
# $$R_{\theta,m}=\begin{bmatrix}\cos m\theta_1&-\sin m\theta_1&0&0\\\sin m\theta_1&\cos m\theta_1&0&0\\0&0&\cos m\theta_2&-\sin m\theta_2\\0&0&\sin m\theta_2&\cos m\theta_2\end{bmatrix},\quad\begin{bmatrix}x'_{2i-1}\\x'_{2i}\end{bmatrix}=\begin{bmatrix}\cos m\theta_i&-\sin m\theta_i\\\sin m\theta_i&\cos m\theta_i\end{bmatrix}\begin{bmatrix}x_{2i-1}\\x_{2i}\end{bmatrix}$$
#
# - **E-004-20.** The document prints $\theta_i=1/(10000\sqrt{2i/d})$. For width 8 that gives 0.0002,
#   0.000141, 0.000115 instead of 0.1, 0.01, 0.001, and a division by zero at $i=0$. Right is
#   $10000^{-2i/d}$.
# - **X-4.** Frequencies count from 0 in 000 and 002, and in 001 and 003 for sinusoids; from 1 in 001
#   and 003 for RoPE. 004 mixes both. Counted from 1, as in the matrix, the exponent must be
#   $-2(i-1)/d$; with $-2i/d$ the first pair would have 0.1 instead of 1.
# - **E-004-21.** The document rotates the pairs $(x_i,x_{i+1})$ for every $i$. These overlap, and a
#   rotation then spoils the next. Right is $(x_{2i-1},x_{2i})$, as displayed above.

# %%
from pe_numpy import rope_frequencies

theta, i = rope_frequencies(8), np.arange(1, 5)  # pairs counted from 1
assert np.allclose(theta, 10000.0 ** (-2 * (i - 1) / 8), rtol=1e-12, atol=0)
as_printed = (1 / (10000 * np.sqrt(2 * i[:3] / 8))).round(6)
print("right:", theta.round(6), "  as printed, i = 1, 2, 3:", as_printed)
print("counted from 1 with -2i/d:", (10000.0 ** (-2 * i / 8)).round(6))
assert not np.isclose(theta[1:], as_printed, rtol=0.1, atol=0).any()
x, m = np.random.default_rng(0).standard_normal(8), 5
R, pairs = rope_matrix(m, theta), rope(x[None], [m])[0]
assert np.allclose(R @ x, pairs, rtol=0, atol=1e-12)
for n, (c, s) in enumerate(zip(np.cos(m * theta), np.sin(m * theta), strict=True)):
    block = R[2 * n : 2 * n + 2, 2 * n : 2 * n + 2]
    assert np.allclose(block, [[c, -s], [s, c]], rtol=0, atol=1e-12)


# %%
def overlapping(m):  # (x1, x2) by m, then (x2, x3) by m / 100
    first, then = np.eye(4), np.eye(4)
    first[:2, :2], then[1:3, 1:3] = rope_matrix(m, [1.0]), rope_matrix(m, [0.01])
    return then @ first


by_overlap = [overlapping(m).T @ overlapping(m + 3) for m in (0, 20)]
by_pairs = [rope_matrix(m, [1.0, 0.01]).T @ rope_matrix(m + 3, [1.0, 0.01]) for m in (0, 20)]
print("change when both move by 20:", np.abs(by_overlap[0] - by_overlap[1]).max().round(3))
assert np.abs(by_overlap[0] - by_overlap[1]).max() > 0.01  # no longer relative
assert np.allclose(*by_pairs, rtol=0, atol=1e-12)

# %% [markdown]
# - **E-004-22.** Claim: an offset never seen in training falls back into the trained range, because
#   the rotation is periodic. Correction: every pair is periodic, but they do not return together. For
#   width 128, trained on offsets 0 to 2047, 23 of 64 pairs have a period longer than that. With all
#   phases in one vector, neighbouring offsets are 1.95 apart, but 2100 is 7.71 from the *nearest*
#   trained offset, 4096 is 9.74 and 8192 is 10.28.
# - **X-5.** Extrapolation is "excellent" (001), "good" (002), supported and then degrading (003),
#   with "some accuracy" (004). RoPE can be computed anywhere, but beyond the trained length the slow
#   pairs reach new angles, and without a change of the frequencies models degrade (Chen et al. 2023).
#
# Taught in [chapter 40](40_rope_derived.ipynb#the-rope-formula-one-frequency-per-pair): RoPE derived; its pairs
# beyond the trained length are in [chapter 41](41_rope_computed.ipynb#rope-beyond-the-training-length-pairs-that-never-finish-a-turn).

# %%
speeds, trained = rope_frequencies(128), 2048
print("pairs that never complete a period:", int((2 * np.pi / speeds > trained).sum()), "of 64")
assert (2 * np.pi / speeds > trained).sum() == 23
phases = rope(np.tile([1.0, 0.0], (8193, 64)), np.arange(8193))  # all cosines and sines
nearest = {1: np.linalg.norm(phases[1] - phases[0])}  # one step
for offset in (2100, 2500, 3000, 4096, 8192):
    nearest[offset] = np.linalg.norm(phases[:trained] - phases[offset], axis=1).min()
nearest = {offset: f"{x:.2f}" for offset, x in nearest.items()}
print("one step, then the distance to the nearest trained offset:", nearest)
assert list(nearest.values()) == ["1.95", "7.71", "8.96", "9.32", "9.74", "10.28"]

# %% [markdown]
# ## 004-2.11 KV cache
#
# A KV cache is used at inference, in the decoder, and costs memory. Without it the keys and values of
# the whole prefix are recomputed for each new token.
#
# - **N-004-9.** The example reads the prefixes of 我是中国人 of 2, 3, 4 and 5 tokens: 14 rows of $K$ and
#   of $V$ without a cache, 5 with one.
# - **E-004-25.** Claim: the cache speeds up the multiplication of $Q$, $K$ and $V$. Correction: it
#   saves *recomputing* $K$ and $V$, as the document says four lines later, and all rows except the
#   newest. The product of the newest query with all keys remains. The cache is valid only under a
#   causal mask, where old rows never change; in an encoder they do.
#
# Taught in [chapter 63](63_decoding.ipynb#why-a-kv-cache-is-exact-old-rows-never-change): why old rows never change, and what
# a cache saves.


# %%
class Counts(Rope):  # counts the keys that are computed
    seen = []

    def turn(self, params, q, k, context):
        self.seen.append(k.shape[-2])
        return super().turn(params, q, k, context)


reader, counted = Model(2, Counts()), Counts.seen
own = init_params(Sizes(11, 12, 24, n_layers=1), reader, np.random.default_rng(0))
for cached, rows in ((False, 14), (True, 5)):
    counted.clear()
    written = greedy(own, reader, [[3, 1]], 4, cached=cached)  # 我是 is a prompt of 2 tokens
    print(f"cached {cached!s:5}: keys computed {counted}, in all {sum(counted)}")
    assert sum(counted) == rows

# %%
two = decode(own, reader, [[3, 1]])
five = decode(own, reader, np.hstack([[[3, 1]], written[:, :3]]))
assert np.allclose(two, five[:, :2], rtol=0, atol=1e-5)  # causal: old rows stay (float32)
short, long = (encode(params, model, [[4, 5, 6, 7][:n]])[0] for n in (3, 4))
moved = np.abs(long[:3] - short).max(axis=1)
print("in an encoder, one more token moves the old rows by", moved.round(2).tolist())
assert (moved > 0.01).all()

# %% [markdown]
# ## 004-2.12 Pre-Norm and Post-Norm
#
# Pre-Norm normalises before attention and feed-forward network, Post-Norm after them, as in the first
# Transformer. The placement is right (C-16), and so is the advice: Post-Norm needs a warm-up of the
# learning rate, and Pre-Norm is the common choice.
#
# - **E-004-23.** Claim: Post-Norm helps to stabilise the gradients. Correction: against no norm, yes.
#   Against Pre-Norm it is the other way round at initialisation: the last layer's gradient shrinks
#   with the depth for Pre-Norm and does not for Post-Norm. Xiong et al. (2020) prove upper bounds of
#   this form; the cells measure networks of 6, 12 and 24 layers.
#
# Taught in [chapter 60](60_layers.ipynb#pre-norm-and-post-norm): where the norm is, with a law for
# both.


# %%
def norm(x):
    return layer_norm(x, np.ones(64), np.zeros(64))


def layer(kind, x, W_1, W_2):
    network = {"W_1": W_1.T, "W_2": W_2.T}
    if kind == "Post-Norm":
        return norm(x + feed_forward(network, x))
    return x + feed_forward(network, norm(x))


# %% fold="cell"
def last_gradient(kind, depth, seed):
    rng = np.random.default_rng(seed)
    W_1, W_2 = (rng.standard_normal((depth, *s)) / np.sqrt(160) for s in ((256, 64), (64, 256)))
    x, t = rng.standard_normal((2, 64))
    for n in range(depth - 1):
        x = layer(kind, x, W_1[n], W_2[n])

    def loss(last):
        y = layer(kind, x, W_1[-1], last)
        y = norm(y) if kind == "Pre-Norm" else y  # Pre-Norm ends with one more norm
        return ((y - t) ** 2).sum() / 128

    return np.linalg.norm(value_and_grad(loss)(W_2[-1])[1])


# %%
last = {}
for kind in ("Post-Norm", "Pre-Norm"):
    last[kind] = [
        np.mean([last_gradient(kind, n, seed) for seed in range(20)]) for n in (6, 12, 24)
    ]
    print(f"{kind:9}: gradient of the last layer", np.round(last[kind], 3).tolist())
assert max(last["Post-Norm"]) < 1.1 * min(last["Post-Norm"])
assert last["Pre-Norm"][0] > 1.2 * last["Pre-Norm"][1] > 1.4 * last["Pre-Norm"][2]
