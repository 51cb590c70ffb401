# %% [markdown]
# # 39. Linear attention, decay and the delta rule: when a state knows the order
#
# *If a layer keeps only one matrix of its past, what does it know of the order, and of the positions?*
#
# 40 minutes. Needs [11 Why attention needs positional encoding](11_why_position.ipynb), [35 ALiBi: attention with linear biases](35_alibi.ipynb), [37 Content-dependent position: Forgetting Transformer and CoPE](37_content.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Attention keeps the keys and values of all tokens. Linear attention adds them
# up in one matrix, the state, and so loses their order. Decay brings the order back. Retention has
# one factor per head, and in gated linear attention each token chooses its own. The delta rule
# replaces what a key stores. You compute all three token by token, in chunks and in parallel, and
# recognize the biases of earlier chapters in them. At the end you know why attention above such
# layers, a *hybrid*, needs no positions.

# %% fold="input" alt="Five assignments, x = 1 to y = 5, and the share of each in the answer for x. Linear attention takes both values of x in full, retention fades them, the gated layer and the delta rule take almost only or only the newer one."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import delta_rule, gated_linear_attention, retention
from pe_numpy.book.plots import recurrence as plots

tokens, values = ["x = 1", "y = 2", "x = 3", "z = 4", "y = 5"], np.array([1, 2, 3, 4, 5])
keys = np.eye(3)[[0, 1, 0, 2, 1]]  # one key per name: x, y, z
decay = {"linear attention": 1.0, "retention, 1/2": 0.5}
ask, gates = np.tile([1.0, 0, 0], (5, 1)), np.where(keys == 1, 0.01, 1.0)  # x? and own name fades
shares = {name: retention(ask, keys, np.eye(5), a)[-1] for name, a in decay.items()}
shares["gated, per component"] = gated_linear_attention(ask, keys, np.eye(5), np.log(gates))[0][-1]
shares["delta rule"] = delta_rule(ask, keys, np.eye(5), np.ones(5))[0][-1]
plots.recurrence_shares(tokens, shares, [f"x = {share @ values:g}" for share in shares.values()])
plt.show()

# %% [markdown]
# The figure shows five assignments. At the last one, a query asks for x. Each row is a rule for the
# state, and each number is the share of a token's value in the answer. Which rule would you use to
# read a program? With the delta rule the second assignment to x replaces the first, and in the
# gated layer it almost does.
#
# ## Linear attention: a sum that forgets the order
#
# Causal attention weighs values by a softmax of scores. **Linear attention** drops the softmax. The
# product $q_i\cdot k_j$ is itself the weight:
#
# $$o_i=\sum_{j\le i}(q_i\cdot k_j)\,v_j=S_i^\top q_i,\qquad S_i=S_{i-1}+k_i v_i^\top$$
#
# The right-hand side is the same sum in another order: first add the matrices $k_jv_j^\top$, then
# multiply by the query. The **state** $S$ has $K\times V$ numbers, no matter how long the text is.


# %%
def linear_token_by_token(q, k, v):
    state, outputs = np.zeros((k.shape[1], v.shape[1])), []
    for q_i, k_i, v_i in zip(q, k, v, strict=True):
        state = state + np.outer(k_i, v_i)
        outputs.append(state.T @ q_i)
    return np.array(outputs), state


L, K, V = 12, 6, 4
rng = np.random.default_rng(0)
q, k, v = rng.standard_normal((L, K)), rng.standard_normal((L, K)), rng.standard_normal((L, V))
outputs, state = linear_token_by_token(q, k, v)
by_pairs = [sum((q[i] @ k[j]) * v[j] for j in range(i + 1)) for i in range(L)]
assert np.allclose(outputs, by_pairs, rtol=0, atol=1e-12)

# %% [markdown]
# Katharopoulos et al. (2020) first apply a function to $q$ and $k$ that makes the products
# positive, and then divide by their sum. The functions of this chapter do neither. In RetNet and
# its successors a norm behind the layer sets the scale.
#
# **Predict**: the first eleven tokens change places, and the last one stays. Which outputs change?

# %% fold="output"
order = np.append(rng.permutation(L - 1), L - 1)
shuffled, mixed = linear_token_by_token(q[order], k[order], v[order])
print(f"the state moves by {np.abs(mixed - state).max():.3f}", end=", ")
print(f"the last output by {np.abs(shuffled[-1] - outputs[-1]).max():.3f}", end=", ")
print(f"that of token {order[0]} by {np.abs(shuffled[0] - outputs[order[0]]).max():.1f}")
assert np.allclose(mixed, state, rtol=0, atol=1e-12) and order[0] != 0
assert np.allclose(shuffled[-1], outputs[-1], rtol=0, atol=1e-12)
assert np.abs(shuffled[0] - outputs[order[0]]).max() > 0.5

# %% [markdown]
# The last output does not change, because a sum ignores the order of its terms. Another token's
# output changes only if other tokens are now before it. So one layer of linear attention knows from
# the causal mask *which* tokens came before, but not in which order. The same holds for one causal
# layer with a softmax ([chapter 11](11_why_position.ipynb#a-causal-mask-already-carries-position)).
#
# ## Retention: linear attention with one decay per head
#
# RetNet (Sun et al. 2023, [arXiv:2307.08621](https://arxiv.org/abs/2307.08621)) multiplies the
# state by a fixed number $\gamma$ before each new token. A token that is $i-j$ steps old has been
# multiplied $i-j$ times:
#
# $$S_i=\gamma S_{i-1}+k_iv_i^\top,\qquad o_i=\sum_{j\le i}\gamma^{\,i-j}(q_i\cdot k_j)\,v_j$$
#
# The new token itself does not decay.

# %%
from pe_numpy.book.show import show_short, show_source

show_source(retention)
gamma, state = 0.8, np.zeros((K, V))
for i in range(L):
    state = gamma * state + np.outer(k[i], v[i])
    pairs = sum(gamma ** (i - j) * (q[i] @ k[j]) * v[j] for j in range(i + 1))
    assert np.allclose(state.T @ q[i], pairs, rtol=0, atol=1e-12)
    assert np.allclose(retention(q, k, v, gamma)[i], pairs, rtol=0, atol=1e-12)

# %% [markdown]
# With a decay below 1 the order counts. If two earlier tokens change places, the last output
# changes, unless their products $(q_i\cdot k_j)v_j$ are equal. RetNet's heads have the decays
# $1-2^{-5-h}$. **Predict**: after how many steps has the first head of eight halved a token, and
# the last?

# %% fold="output"
swapped = np.array([1, 0, *range(2, L)])
change = retention(q[swapped], k[swapped], v[swapped], gamma)[-1] - retention(q, k, v, gamma)[-1]
print(f"two tokens swapped: the last output moves by {np.abs(change).max():.2f}")
assert np.abs(change).max() > 0.05
decays, one = 1 - 2.0 ** (-5 - np.arange(8)), np.ones((3000, 1))
start = np.eye(3000, 1)  # only the first token has a value
faded = retention(one, one, start, decays[0])[:, 0]
halved = np.log(0.5) / np.log(decays)
print("half remains after", halved.round().astype(int).tolist(), "steps")
assert np.argmax(faded < 0.5) == np.ceil(halved[0]) == 22

# %% [markdown]
# ## Gated linear attention: recurrent, chunked and parallel
#
# A fixed decay treats all tokens alike. **Gated linear attention** (GLA, Yang et al. 2023,
# [arXiv:2312.06635](https://arxiv.org/abs/2312.06635)) computes the decay from the token: a vector
# $a_i$ with one number between 0 and 1 per component of the keys. Each row of the state has its own
# decay:
#
# $$S_i=\mathrm{diag}(a_i)\,S_{i-1}+k_iv_i^\top,\qquad o_i=S_i^\top q_i$$
#
# Mamba-2 (Dao and Gu 2024, [arXiv:2405.21060](https://arxiv.org/abs/2405.21060)) has one number per
# token and head. It writes $C$ for the queries, $B$ for the keys and $\Delta_t x_t$ for the values,
# with $a_t=e^{\Delta_t A}$ and a negative $A$.

# %%
a = rng.uniform(0.5, 1, (L, K))
recurrent, state = [], np.zeros((K, V))
for i in range(L):
    state = np.diag(a[i]) @ state + np.outer(k[i], v[i])
    recurrent.append(state.T @ q[i])
got, last = gated_linear_attention(q, k, v, np.log(a))
assert np.allclose(got, recurrent, rtol=0, atol=1e-12)
assert np.allclose(last, state, rtol=0, atol=1e-12)
rows = np.full((L, 1), np.log(gamma))  # one number per token, here always the same
same = gated_linear_attention(q, k, v, rows)[0]
assert np.allclose(same, retention(q, k, v, gamma), rtol=0, atol=1e-12)
short = show_short(gated_linear_attention)  # token by token; the package's has chunks

# %% [markdown]
# This is the **recurrent** form. Unroll it, and component $c$ of key $j$ has been multiplied by all
# decays after $j$, up to $i$:
#
# $$o_i=\sum_{j\le i}\Big(\sum_c q_{ic}\,k_{jc}\,D_{ijc}\Big)v_j,\qquad D_{ijc}=a_{j+1,c}\,a_{j+2,c}\cdots a_{i,c},\quad D_{iic}=1$$
#
# This is the **parallel** form: attention without a softmax, under a causal mask of products of
# decays. There is one mask per component.

# %%
D = np.zeros((L, L, K))
for i in range(L):
    for j in range(i + 1):
        D[i, j] = a[j + 1 : i + 1].prod(axis=0)  # an empty product is 1
parallel = (q[:, None] * k[None] * D).sum(axis=-1) @ v
assert np.allclose(parallel, recurrent, rtol=0, atol=1e-12)
whole = gated_linear_attention(q, k, v, np.log(a), chunk=L)[0]
assert np.allclose(whole, parallel, rtol=0, atol=1e-12)
print("mask of component 0, last row:", D[-1, -4:, 0].round(3).tolist())

# %% [markdown]
# The recurrent form needs $L$ small steps, one after the other. The parallel form, as it is written
# here, needs an array of $L^2K$ numbers. Kernels for training use the **chunked** form between
# them. They cut the text into chunks, use the parallel form inside each chunk, and hand the state
# from chunk to chunk. With $b_i$ for the product of the decays from the start of the chunk up to
# $i$, and $S$ for the state before it:
#
# $$o_i=S^\top(b_i\odot q_i)+\sum_{j\text{ in the chunk},\;j\le i}\Big(\sum_c q_{ic}\,k_{jc}\,D_{ijc}\Big)v_j$$

# %%
before = gated_linear_attention(q[:8], k[:8], v[:8], np.log(a[:8]))[1]  # S after two chunks of 4
for i in range(8, L):
    b = a[8 : i + 1].prod(axis=0)
    inside = sum((q[i] * k[j] * D[i, j]).sum() * v[j] for j in range(8, i + 1))
    assert np.allclose(before.T @ (b * q[i]) + inside, recurrent[i], rtol=0, atol=1e-12)
for chunk in (1, 4, 5, L):  # recurrent, chunked (5 does not divide 12), parallel
    chunked, end = gated_linear_attention(q, k, v, np.log(a), chunk=chunk)
    assert np.allclose(chunked, recurrent, rtol=0, atol=1e-12)
    assert np.allclose(end, state, rtol=0, atol=1e-12)

# %% [markdown]
# All forms are equal to $10^{-12}$ in float64. `chunk` changes only time and memory.
#
# ### A common mistake: dividing by products of decays
#
# Since $D_{ij}=b_i/b_j$, you could multiply the queries by $b_i$ and *divide* the keys by $b_j$.
# The products $b_j$ become so small that $1/b_j$ overflows, as in xPos ([chapter
# 45](45_rope_relatives.ipynb#xpos-overflow-and-the-kv-cache-fix-the-centre)). Use $e^{\ln b_i-\ln
# b_j}$, which is at most 1.

# %%
long, small = 10_000, np.log(0.9)
total = np.cumsum(np.full(long, small))
with np.errstate(over="ignore", invalid="ignore"):
    grown = np.exp(-total)  # what keys would be multiplied by
    products = np.exp(total[-1]) * grown[-1]
print(f"1/b exceeds float32 from token {np.argmax(-total > np.log(3.4e38))}", end=", ")
print(f"float64 from token {np.argmax(np.isinf(grown))}; the newest key's factor: {products}")
one = np.ones((long, 1))
outputs = gated_linear_attention(one, one, one, np.full((long, 1), small))[0]
assert np.isnan(products) and np.isclose(outputs[-1, 0], 1 / (1 - 0.9), rtol=0, atol=1e-9)

# %% [markdown]
# The factor of the newest key should be 1.
#
# ## The same decay: ALiBi, FoX and xPos
#
# Earlier chapters put a decay into attention with a softmax. ALiBi with the slope $m$ is the fixed
# decay $e^{-m}$, and a gate $f_t$ of FoX is the decay $a_t$ of one token. Their biases are the
# logarithms of the masks above:
#
# $$e^{-m(i-j)}=\gamma^{\,i-j}\ \text{ with }\ \gamma=e^{-m},\qquad e^{\,c_i-c_j}=f_{j+1}\cdots f_i=D_{ij}$$

# %%
from pe_numpy import alibi_bias, alibi_slopes, causal_mask, forgetting_bias, relative_distance

at = np.arange(L)
seen = causal_mask(at, at)
for slope in alibi_slopes(8):
    mask = np.where(seen, np.exp(alibi_bias([slope], relative_distance(at, at))[0]), 0)
    fixed = retention(q, k, v, np.exp(-slope))
    assert np.allclose((q @ k.T * mask) @ v, fixed, rtol=0, atol=1e-12)
f = rng.uniform(0.5, 1, L)
c = np.cumsum(np.log(f))
mask = np.where(seen, np.exp(np.where(seen, forgetting_bias(c, c), 0)), 0)
products = [[f[j + 1 : i + 1].prod() if j <= i else 0 for j in at] for i in at]
assert np.allclose(mask, products, rtol=0, atol=1e-12)
gated = gated_linear_attention(q, k, v, np.log(f)[:, None])[0]
assert np.allclose((q @ k.T * mask) @ v, gated, rtol=0, atol=1e-12)

# %% [markdown]
# The mask is the same, but what it multiplies is not. Linear attention multiplies $q_i\cdot k_j$.
# Softmax attention multiplies the exponential of the score, and divides each row by its sum:
#
# $$A_{ij}=\frac{D_{ij}\,e^{s_{ij}}}{\sum_{l\le i}D_{il}\,e^{s_{il}}},\qquad s_{ij}=\frac{q_i\cdot k_j}{\sqrt K}$$

# %%
from pe_numpy import attention

s = q @ k.T / np.sqrt(K)
kept = mask * np.exp(s)
weights = kept / kept.sum(axis=1, keepdims=True)
fox = attention(q, k, v, seen, forgetting_bias(c, c))[0]
assert np.allclose(weights @ v, fox, rtol=0, atol=1e-12)

# %% [markdown]
# Because of the exponential, FoX has to keep all keys. $e^{q\cdot k}$ is not the inner product of a
# vector made from $q$ and one made from $k$, whatever their finite length. So no such state of
# fixed size contains the sum exactly.
#
# xPos ([chapter 45](45_rope_relatives.ipynb#xpos-rope-with-decay)) rotates each pair of components
# and lets it fade with its own number $\zeta_p^{1/\sigma}$ per step. Without a softmax this is
# gated linear attention behind RoPE, with one fixed decay per pair. Let $R_i$ be the rotation of
# position $i$, and $\langle\cdot,\cdot\rangle_p$ the part of a product that comes from pair $p$:
#
# $$\mathrm{xpos}(q_i)\cdot\mathrm{xpos}(k_j)=\sum_p\zeta_p^{(i-j)/\sigma}\,\langle R_iq_i,\;R_jk_j\rangle_p$$

# %%
from pe_numpy import rope, xpos, xpos_scale

scores = xpos(q, at) @ xpos(k, at, key=True).T
pairs = rope(q, at).reshape(L, 1, 3, 2) * rope(k, at).reshape(1, L, 3, 2)
fade = xpos_scale(K) ** ((at[:, None] - at)[..., None] / 512)  # sigma = 512
assert np.allclose(scores, (fade * pairs.sum(axis=-1)).sum(axis=-1), rtol=0, atol=1e-12)
logs = np.tile(np.repeat(np.log(xpos_scale(K)) / 512, 2), (L, 1))
gated = gated_linear_attention(rope(q, at), rope(k, at), v, logs)[0]
assert np.allclose(gated, np.where(seen, scores, 0) @ v, rtol=0, atol=1e-12)
later = gated_linear_attention(rope(q, at + 100), rope(k, at + 100), v, logs)[0]
assert np.allclose(later, gated, rtol=0, atol=1e-11)  # only distances count

# %% [markdown]
# RetNet itself rotates queries and keys in this way, with one decay per head instead of one per
# pair.
#
# ## The delta rule: replace what a key holds
#
# Decay fades everything, or in GLA whole components. A table of variables needs something else: an
# assignment replaces one entry and keeps the others. The **delta rule** (DeltaNet, Yang et al.
# 2024, [arXiv:2406.06484](https://arxiv.org/abs/2406.06484)) first reads what the state gives for
# the new key, and then writes only a share of the difference. This share $\beta_i$ between 0 and 1
# comes from the token:
#
# $$S_i=S'_i+\beta_i\,k_i\,\big(v_i-S_i'^{\top}k_i\big)^\top,\qquad S'_i=\mathrm{diag}(a_i)\,S_{i-1}$$
#
# DeltaNet has no decay, so $a=1$. Gated DeltaNet
# ([arXiv:2412.06464](https://arxiv.org/abs/2412.06464)) has one number per token. Kimi Linear
# ([arXiv:2510.26692](https://arxiv.org/abs/2510.26692)) has one per component. Keys have length 1. Then, with $\beta=1$, the key reads exactly its new value.

# %%
k1, beta = k / np.linalg.norm(k, axis=1, keepdims=True), rng.uniform(0.2, 1, L)
state, one_by_one = np.zeros((K, V)), []
for i in range(L):
    state = np.diag(a[i]) @ state
    state = state + beta[i] * np.outer(k1[i], v[i] - state.T @ k1[i])
    one_by_one.append(state.T @ q[i])
for chunk in (1, 4, 5, L):
    got, end = delta_rule(q, k1, v, beta, np.log(a), chunk=chunk)
    assert np.allclose(got, one_by_one, rtol=0, atol=1e-12)
    assert np.allclose(end, state, rtol=0, atol=1e-12)
whole = delta_rule(k1, k1, v, np.ones(L), np.log(a))[0]  # beta = 1: each key reads its new value
assert np.allclose(whole, v, rtol=0, atol=1e-12)
short = show_short(delta_rule)

# %% [markdown]
# What happens to the other keys? In the figure at the top the keys are orthogonal, and the others
# keep their values. **Predict**: x is written first, with the value 1, and then y with the value 5.
# Their keys have an angle of 60 degrees between them. What does x read now?

# %% fold="output"
turned = np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]])
print(
    "y's key already reads",
    turned[1] @ turned[0],
    "so the difference is",
    5 - turned[1] @ turned[0],
)
table = delta_rule(turned, turned, np.array([[1.0], [5.0]]), np.ones(2))[1]
print("x reads", (turned[0] @ table).round(3).tolist(), "and y reads", (turned[1] @ table).round(3))
assert np.isclose(turned[0] @ table, 3.25, rtol=0, atol=1e-12).all()
added = gated_linear_attention(turned, turned, np.array([[1.0], [5.0]]), np.zeros((2, 1)))[1]
print("only added: x reads", (turned[0] @ added).round(3).tolist(), end=", ")
print("y reads", (turned[1] @ added).round(3).tolist())

# %% [markdown]
# y's key read $1/2$, so $4.5$ is written, and x gets half of it. The delta rule protects keys
# from each other only as far as they are orthogonal. A state with $K$ rows has room for at most $K$
# orthogonal keys.
#
# Does it still have a parallel form? The written differences $u_i=\beta_i(v_i-S_i'^{\top}k_i)$
# depend on each other, but only on earlier ones. So they solve one triangular system. With $U$ and
# $V$ for the rows $u_i$ and $v_i$, and zeros as the first state:
#
# $$(1+T)\,U=\mathrm{diag}(\beta)\,V,\qquad T_{ij}=\beta_i\sum_c k_{ic}\,k_{jc}\,D_{ijc}\ \text{ for } j<i,\ \text{ else } 0$$
#
# Once $U$ is known, the delta rule is gated linear attention with $u$ in place of $v$.

# %%
T = np.tril(beta[:, None] * (k1[:, None] * k1[None] * D).sum(axis=-1), -1)
U = np.linalg.solve(np.eye(L) + T, beta[:, None] * v)
replaced = gated_linear_attention(q, k1, U, np.log(a))[0]
assert np.allclose(replaced, one_by_one, rtol=0, atol=1e-12)

# %% [markdown]
# ## A probe: which layer shows the place of a token?
#
# Does a layer's output contain positions? A **probe** answers: fit a linear map from outputs to
# positions on some texts, and test it on others. Each text has 32 words, a start word first, an end
# word last, and one marked word at a random place. The words have no positional encoding. Queries
# and keys are random projections of the words, plus 1 in each component, and the values are the
# words. The retention layer has four heads with the decays $1/2$, $3/4$, $7/8$ and $15/16$. Nothing
# is trained except the probe.


# %%
def layers(ids):
    x = words[ids]  # (N, 32, D)
    q, k = (1 + 0.5 * (x @ m) for m in projections)
    heads = [retention(q, k, x, decay) for decay in 1 - 2.0 ** -np.arange(1, 5)]
    see = causal_mask(range(32), range(32))
    found = {"no layer": x, "causal attention": attention(q, k, x, see)[0]}
    found["linear attention"] = retention(q, k, x, 1.0)
    return found | {"retention": np.concatenate(heads, axis=-1)}


def probe(train, targets, test):  # least squares with a constant
    train, test = (np.hstack([x, np.ones((len(x), 1))]) for x in (train, test))
    return test @ np.linalg.lstsq(train, targets, rcond=None)[0]


# %% [markdown]
# Two questions are put to each layer. *Where am I?* reads the position of a token from its own
# output. *Where was the mark?* reads the position of the marked word from the output of the last
# token. The result is the share of the variance that the probe explains on new texts: 1 is perfect,
# and 0 is a guess of the mean. **Predict**: which layers answer which question?

# %% fold="output"
rng = np.random.default_rng(1)
words, projections = rng.standard_normal((20, 24)), rng.standard_normal((2, 24, 8)) / 24**0.5
ids = rng.integers(3, 20, (2, 800, 32))  # texts to fit and to test
ids[..., 0], ids[..., -1] = 1, 2
marks = rng.integers(1, 31, (2, 800))
np.put_along_axis(ids, marks[..., None], 0, axis=-1)
fit, test = layers(ids[0]), layers(ids[1])
places, said, results = np.tile(np.arange(32.0), 800), {}, {}
for name in fit:
    own = probe(fit[name].reshape(25_600, -1), places, test[name].reshape(25_600, -1))
    said[name] = probe(fit[name][:, -1], marks[0], test[name][:, -1])
    guesses = ((own, places), (said[name], marks[1]))
    results[name] = [float(1 - ((g - t) ** 2).mean() / t.var()) for g, t in guesses]
    print(f"{name:17} where am I? {results[name][0]:z5.2f}   the mark? {results[name][1]:z5.2f}")

# %%
own, mark = ({name: pair[n] for name, pair in results.items()} for n in (0, 1))
assert own["no layer"] < 0.25 < own["causal attention"] < 0.65
assert own["linear attention"] > 0.9 and own["retention"] > 0.9
assert mark["retention"] > 0.99 and all(mark[name] < 0.05 for name in list(mark)[:3])
again = ids[1, :1].copy()
again[0, 1:-1] = rng.permutation(again[0, 1:-1])  # the mark is somewhere else
for name in ("causal attention", "linear attention"):
    assert np.allclose(layers(again)[name][0, -1], test[name][0, -1], rtol=0, atol=1e-10)
ones = np.ones((500, 1))
print("equal tokens, decay 15/16, in all:", retention(ones, ones, ones, 15 / 16)[-1].round(6))

# %% alt="Three panels: what the probe reads over the true position of the marked word. Behind causal attention and linear attention the points form a flat cloud around the middle; behind retention they lie on the diagonal."
plots.recurrence_probe(marks[1], {name: said[name] for name in list(said)[1:]})
plt.show()

# %% [markdown]
# Without a layer the probe recognizes little more than the first and the last word. Behind linear
# attention it reads the position well: the added 1 makes the sum grow with its terms. Causal
# attention divides by the sum of the weights. What still counts is mostly the share of the start
# word, about $1/t$ ([chapter 11](11_why_position.ipynb#nope-a-causal-mask-can-count-positions)),
# and a linear probe finds less. But neither of the two can say where the mark was. *Proved*: if the
# words between the ends change places, the output of the last token does not change, so any probe
# gives the same answer. With decay the age of the mark is in the output, and four decays are enough
# to read it here.
#
# *Measured* only on these random layers: a trained layer may count better or worse. And retention
# saturates. In the head with $15/16$ the total weight of equal tokens stops at 16. So in a long
# text a token's own position is lost, and the age of a mark can be read only while its share is not
# too small.
#
# ## Why attention layers beside them need no positions
#
# An attention layer on top can take its keys from such outputs, and so inherits the order.
# Here is a task that one causal attention layer without positions cannot solve. The last word has
# occurred once before, and the answer is the word that followed it then. With the decay $1/4$ the
# state of a token consists mostly of the token itself and the one before it. Subtract the token
# itself, and use the rest as a key. Then a softmax over the contents finds the word *behind* the
# earlier occurrence.

# %%
vocabulary, hits = np.eye(40), 0
for _ in range(200):
    text = rng.permutation(40)[:32]
    text[-1] = text[place := rng.integers(0, 30)]
    x, ones = vocabulary[text], np.ones((32, 1))
    predecessor = retention(ones, ones, x, 0.25) - x  # 1/4 of the word before, 1/16 of the next
    found = attention(600 * x, predecessor, x, causal_mask(range(32), range(32)))[0]
    hits += found[-1].argmax() == text[place + 1]
    by_itself = attention(600 * x, x, x, causal_mask(range(32), range(32)))[0][-1]
    mixed = x[np.append(rng.permutation(31), 31)]
    after = attention(600 * mixed, mixed, mixed, causal_mask(range(32), range(32)))[0][-1]
    assert np.allclose(after, by_itself, rtol=0, atol=1e-12)
print("answers that are right:", hits, "of 200")
assert hits == 200

# %% [markdown]
# No query and no key was rotated. The attention layer by itself cannot do it: when the earlier
# words change places, the right answer can change, but its last output does not. We built these
# layers by hand. Whether trained hybrids do the same is not shown here.
#
# Which layers have what? The lists of four families, typed from the files named below, count from 0:


# %%
def where(pattern, sign="*"):
    return [i for i, layer in enumerate(pattern) if layer == sign]


nemotron = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"  # M is Mamba-2, - an MLP
kimi = [4, 8, 12, 16, 20, 24, 27]  # counted from 1
layers_of = {
    "Jamba": (32, [i for i in range(32) if i % 8 == 4]),
    "Nemotron-H 8B": (len(nemotron), where(nemotron)),
    "Kimi Linear": (27, [i - 1 for i in kimi]),
    "Qwen3-Next": (48, [i for i in range(48) if (i + 1) % 4 == 0]),
}
for name, (count, layers_with) in layers_of.items():
    print(f"{name:13} {len(layers_with):2} of {count} with attention: {layers_with}")
print("Nemotron-H 8B:", len(where(nemotron, "M")), "Mamba-2,", len(where(nemotron, "-")), "MLP")

# %%
from pe_numpy.book.census import census

print("a state of 128 x 128 is as large as keys and values of", 128 * 128 // (2 * 128), "tokens")
row_of = {row.model: row for row in census()}
for name in ("Jamba", "Nemotron-H", "Granite 4.0-H", "Kimi Linear", "Qwen3-Next"):
    print(f"{name:13} {row_of[name].encoding:12} {row_of[name].source}")
assert row_of["Qwen3-Next"].encoding == "partial_rope"
assert all(row_of[n].encoding == "none" for n in ("Jamba", "Nemotron-H", "Kimi Linear"))
assert row_of["Granite 4.0-H"].encoding == "none"

# %% [markdown]
# | model | attention layers | position there | the other layers |
# |---|---|---|---|
# | Jamba | every eighth | none | Mamba: each entry of the state has its own decay |
# | Nemotron-H | 4 of 52 blocks (8B) | none | Mamba-2: one decay per token and head |
# | Granite 4.0-H | 4 of 40 (Micro, Tiny, Small) | none (`position_embedding_type`) | Mamba-2 |
# | Kimi Linear | 7 of 27, latent (MLA) | none | delta rule, one decay per component |
# | Qwen3-Next | 12 of 48 | RoPE on a quarter of each head | delta rule, one decay per token and head |
#
# Jamba's and Qwen3-Next's layers are the defaults of their configuration files. Nemotron-H's
# pattern is in a script of Megatron-LM
# ([870bbf2](https://github.com/NVIDIA/Megatron-LM/blob/870bbf2e43/examples/post_training/modelopt/conf/nvidia/Nemotron-H-8B-Base-8K.sh)).
# That script also has flags for rotary embeddings, but the attention of the model's code in
# transformers does not rotate. The script of the 56B model
# ([8b1f997](https://github.com/NVIDIA/Megatron-LM/blob/8b1f997b1c/examples/post_training/modelopt/conf/nvidia/Nemotron-H-56B-Base-8K.sh))
# says `--position-embedding-type none`. Kimi Linear's list is in torchtitan
# ([6d35673](https://github.com/pytorch/torchtitan/blob/6d3567305f/torchtitan/experiments/kimi_linear/__init__.py)),
# "from the reference config". transformers' default without such a list has different layers. For
# Granite, IBM's own files were not seen, only a copy of a model card
# ([60d949f](https://github.com/DocDBrown/IBMGranite4Tiny/blob/60d949f9a1/README.md)). It gives RoPE
# to the model without Mamba layers, and *NoPE* to the three hybrids.
#
# By default all five have a convolution over four tokens, the newest included, before each
# recurrence. A convolution also depends on the order ([chapter 23](23_convolution.ipynb)). And
# Qwen3-Next rotates all the same. That positions are not *needed* does not mean that they are
# useless.

# %% [markdown]
# ## Small hybrid models in the study: a recurrence below attention without RoPE
#
# Do *trained* hybrids need no positions? We put two into the study of
# [chapter 71](71_study.ipynb): decoders of two layers, trained on 32 tokens and tested on 256. The
# lower layer is gated linear attention, or the gated delta rule. The upper one is attention without
# positions. Beside them stand attention in both layers (without positions, with RoPE, with RoPE
# below only) and a recurrence in both. Three tasks: the loss of a Markov language, and the share of
# right answers for the token three back (*offset*) and for one key anywhere (*needle*):

# %%
from pe_numpy.judging.verdicts import Study

book, models = Study("results/study.csv"), {
    "attention, no positions": "none", "attention, RoPE": "rope", "RoPE below, none above": "rope_nope",
    "gated linear, twice": "gated_linear", "gated linear, attention": "gated_linear_nope",
    "gated delta, attention": "gated_delta_nope"}  # fmt: skip
tasks = {"markov": book.losses, "offset": book.shares, "needle": book.shares}

# %%
for budget in (1, 4):
    print(f"budget {budget}, at 32 and 256", *(f"{task:>15}" for task in tasks))
    for label, name in models.items():
        print(f"{label:26}", end="")
        for task, read in tasks.items():
            known = name != "gated_linear" or task != "markov"
            means = read(task, name, budget=budget, layers=2).mean(axis=0)[[0, 3]] if known else ()
            print(f"{'   '.join(f'{x:.2f}' for x in means):>16}", end="")
        print()

# %%
for budget in (1, 4):
    seen = {(task, name): read(task, name, budget=budget, layers=2)[:, [0, 3]]
            for task, read in tasks.items() for name in set(models.values()) - {"gated_linear"}}  # fmt: skip
    for hybrid in ("gated_linear_nope", "gated_delta_nope"):
        loss, far, needle = (seen[task, hybrid] for task in tasks)
        assert len(loss) == 3 and np.abs(loss[:, 0] - loss[:, 1]).max() < 0.01
        for other in ("none", "rope", "rope_nope"):
            assert loss[:, 1].max() < seen["markov", other][:, 1].min() - 0.5
        twice = book.shares("offset", "gated_linear", budget=budget, layers=2)[:, [0, 3]]
        assert (twice.min(axis=0) > far.max(axis=0)).all() and needle[:, 0].min() > 0.99
        assert needle[:, 1].max() < seen["needle", "none"][:, 1].min()
        for rotated in ("rope", "rope_nope"):
            assert seen["offset", rotated][:, 0].min() > 0.99 > 0.91 > far[:, 0].max()
            assert needle[:, 1].min() > seen["needle", rotated][:, 1].max()

# %% [markdown]
# They need none here, at a price. In the Markov language both hybrids have the same loss at 256
# tokens as at 32, to a hundredth of a nat, with every seed. Every model with RoPE gets worse. At 32
# tokens over 99 of 100 needles are found, at 256 more than with RoPE, fewer than by attention
# without positions. In *offset* RoPE is best at 32 tokens, and two recurrences beat both hybrids at
# both lengths. The hybrids have no convolution, which all five families above have.
#
# The selection: three seeds (five for the first two rows), two budgets, and the better of two rates
# at the larger one. `make study` measures them, and `pe_numpy/judging/hybrids.py` has the layers.

# %% [markdown]
# ## In short
#
# - **Does linear attention know the order of its tokens?** No, apart from the causal mask. The state
#   is a sum, and one layer's last output ignores the order of the tokens before it.
#   [Linear attention](#linear-attention-a-sum-that-forgets-the-order).
# - **What do retention and gated linear attention add?** A decay of the state before each token. In
#   retention it is one number per head. In GLA it comes from the token, per component.
#   [Retention](#retention-linear-attention-with-one-decay-per-head),
#   [GLA](#gated-linear-attention-recurrent-chunked-and-parallel).
# - **Are the recurrent, chunked and parallel forms the same?** Yes, to $10^{-12}$ in float64, also
#   for the delta rule. The chunk size changes only time and memory.
#   [Forms](#gated-linear-attention-recurrent-chunked-and-parallel).
# - **How does this relate to ALiBi, FoX and xPos?** The exponentials of ALiBi's and FoX's biases are
#   the masks of retention and of GLA. xPos is RoPE with one decay per pair.
#   [The same decay](#the-same-decay-alibi-fox-and-xpos).
# - **What does the delta rule do?** It reads what the state gives for a key and writes a share of the
#   difference. Orthogonal keys do not disturb each other.
#   [The delta rule](#the-delta-rule-replace-what-a-key-holds).
# - **Why can hybrid models do without positional encoding?** Their recurrent layers put the order
#   into the tokens. The study's small ones lose to RoPE at an exact distance. Qwen3-Next rotates all the same.
#   [Hybrids](#why-attention-layers-beside-them-need-no-positions).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 39` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 39_recurrence.py` checks yours.
#
# ### Exercise 1: How old is the mark?
#
# One token has an unknown value $w$, and all others have 0. All queries and keys are 1. Compute the
# age of the token from the last outputs of two retention heads.
#
# <details><summary>Hint 1</summary>
#
# The outputs are $w\gamma_1^n$ and $w\gamma_2^n$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The unknown $w$ cancels in the ratio.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# ones, mark = np.ones((50, 1)), np.zeros((50, 1))
# mark[20] = 7.5  # w
# fast, slow = (retention(ones, ones, mark, decay)[-1, 0] for decay in (0.8, 0.9))
# age = np.log(fast / slow) / np.log(0.8 / 0.9)
# assert np.isclose(age, 29, rtol=0, atol=1e-9)
# ```
#
# </details>
#
# ### Exercise 2: Packed texts
#
# Two texts are packed into one row. Which decay keeps the second from reading the first, in gated
# linear attention and in the delta rule? A decay of 0 has no logarithm.
#
# <details><summary>Hint 1</summary>
#
# Chapter 37 has the same exercise for FoX.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The first token of the second text decays what is before it: $\ln a=-100$ is enough.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# packed = np.log(a)
# packed[5] = -100  # the second text begins at token 5
# for rule, options in ((gated_linear_attention, ()), (delta_rule, (beta,))):
#     both = rule(q, k1, v, *options, packed)[0]
#     rest = [x[5:] for x in (q, k1, v, *options, np.log(a))]
#     assert np.allclose(both[5:], rule(*rest)[0], rtol=0, atol=1e-12)
# ```
#
# The first decay has no effect where the state is empty.
#
# </details>
#
# ### Exercise 3: Parity with beta = 2
#
# A text consists of zeros and ones. Find shares $\beta_t$ and keys for which the sign of the state
# tells whether the number of ones so far is even. Why is a decay between 0 and 1 not enough?
#
# <details><summary>Hint 1</summary>
#
# With $v=0$ the delta rule multiplies the state by $1-\beta k k^\top$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# With one key of length 1 the factor is $1-\beta$: choose 1 for a zero and $-1$ for a one.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# bits = np.random.default_rng(2).integers(0, 2, 100)
# ones, start = np.ones((100, 1)), np.ones((1, 1))
# signs = delta_rule(ones, ones, np.zeros((100, 1)), 2.0 * bits, state=start)[0][:, 0]
# assert np.allclose(signs, (-1.0) ** np.cumsum(bits), rtol=0, atol=1e-12)
# ```
#
# A factor between 0 and 1 never changes a sign. flash-linear-attention has an option for shares up
# to 2, `allow_neg_eigval`.
#
# </details>
#
# ### Exercise 4: Mamba's state as heads
#
# In Mamba, the first version, entry $(n, c)$ of the state has its own decay
# $e^{\Delta_{tc}A_{cn}}$. Compute it with `gated_linear_attention`.
#
# <details><summary>Hint 1</summary>
#
# GLA's decay depends on the row of the state, not on its column.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Make each channel a head with one column: $V=1$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# rng = np.random.default_rng(3)
# steps, A = rng.uniform(0.1, 1, (L, V)), -rng.uniform(0.1, 1, (V, K))
# logs = steps.T[..., None] * A[:, None]  # (V, L, K)
# written = (steps * v).T[..., None]  # (V, L, 1)
# heads = gated_linear_attention(q, k, written, logs)[0][..., 0].T
# state = np.zeros((K, V))
# for t in range(L):
#     state = np.exp(steps[t] * A.T) * state + np.outer(k[t], steps[t] * v[t])
#     assert np.allclose(heads[t], q[t] @ state, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ## In practice
#
# | rule | used by | decay | what it stores | in a word |
# |---|---|---|---|---|
# | retention | RetNet | fixed, per head | $K\times V$ numbers per head | ALiBi without a softmax |
# | gated linear attention | GLA; Mamba-2 with one number per head | from the token | the same | FoX without a softmax |
# | delta rule | DeltaNet; gated in Qwen3-Next and Kimi Linear | none, or from the token | the same | an assignment |
#
# - **State or KV cache?** A state of $128\times128$ numbers takes as much memory as the keys and
#   values of 64 tokens in one head with 128 components.
# - **Scale.** These functions scale nothing. flash-linear-attention multiplies $q$ by $K^{-1/2}$
#   ([bc3b101](https://github.com/fla-org/flash-linear-attention/tree/bc3b101dcb/fla/ops)).
# - **Gates.** GLA's layer there takes $\ln a=\ln\sigma(z)/16$. Qwen3-Next and Kimi Linear take
#   $\ln a=-e^{A}\,\mathrm{softplus}(z)$, with a trained $A$ per head. Compute them in float32.
# - **Padding.** A padded token must write nothing and decay nothing: $\ln a=0$, with $v=0$ in GLA
#   and $\beta=0$ in the delta rule.
# - **Caching a prefix.** A KV cache can be cut back to an earlier token. A state cannot: keep a copy
#   of it at each token to which you may return.
#
# ## Further reading
#
# - Katharopoulos et al. 2020, *Transformers are RNNs: Fast Autoregressive Transformers with Linear
#   Attention*, [arXiv:2006.16236](https://arxiv.org/abs/2006.16236).
# - Sun et al. 2023, *Retentive Network: A Successor to Transformer for Large Language Models*,
#   [arXiv:2307.08621](https://arxiv.org/abs/2307.08621), and its code in
#   [torchscale](https://github.com/microsoft/torchscale/blob/4d1e0e8/torchscale/component/multiscale_retention.py).
# - Yang et al. 2023, *Gated Linear Attention Transformers with Hardware-Efficient Training*,
#   [arXiv:2312.06635](https://arxiv.org/abs/2312.06635).
# - Dao and Gu 2024, *Transformers are SSMs*, [arXiv:2405.21060](https://arxiv.org/abs/2405.21060).
# - Yang et al. 2024, *Parallelizing Linear Transformers with the Delta Rule over Sequence Length*,
#   [arXiv:2406.06484](https://arxiv.org/abs/2406.06484), and *Gated Delta Networks*,
#   [arXiv:2412.06464](https://arxiv.org/abs/2412.06464).
# - Kimi Team 2025, *Kimi Linear: An Expressive, Efficient Attention Architecture*,
#   [arXiv:2510.26692](https://arxiv.org/abs/2510.26692).
