# %% [markdown]
# # 11. Why attention needs positional encoding
#
# *Does attention see the order of its words, and where can position enter?*
#
# 40 minutes. Needs [10 Attention by hand: scores, softmax, heads, masks](10_attention.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** "Dog bites man" and "man bites dog" consist of the same words. Without information
# about positions, which a **positional encoding** gives, an attention layer cannot tell the two sentences
# apart. You prove this, and you see that a layer with a mask which hides later words can. Then you find
# the four places in a layer where position can enter, test eight simple encodings, and measure which
# layers can answer "who bites?". At the end you can say why and where a Transformer needs positions.

# %% fold="input" alt="Heat maps of the outputs for dog bites man and for man bites dog, with their means below. Lines lead each word to its place in the other order. Each word keeps its row of eight numbers, and the two means are equal."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import attention
from pe_numpy.book.plots import why_position as plots

rng, D, words = np.random.default_rng(0), 8, ["dog", "bites", "man"]
X = rng.standard_normal((3, D))  # (L, D), one row per word
W_q, W_k, W_v = rng.standard_normal((3, D, D)) / np.sqrt(D)
R = X[::-1]  # man bites dog
Y, A = attention(X @ W_q, X @ W_k, X @ W_v)
Y_reversed, A_reversed = attention(R @ W_q, R @ W_k, R @ W_v)
plots.outputs_of_two_orders(Y, Y_reversed, words, words[::-1])
plt.show()

# %% [markdown]
# ## Attention is permutation-equivariant
#
# "Dog bites man" is not news; "man bites dog" is. The figure at the top feeds both to an attention layer
# with random matrices. Each row is the output for one word, a vector of eight numbers. Each word keeps
# its output, so the dog that bites and the dog that is bitten get the same vector.
#
# To prove this for every reordering, write reorderings as matrices. A **permutation matrix** $P$ has a
# single 1 in each row and in each column, and zeros elsewhere. $PX$ has the rows of $X$ in a different
# order. Multiplication by $P^\top$ on the right moves columns in the same way, and $P^\top$ undoes $P$:
# $P^\top P = I$. We take one head, as wide as the model, with $Q=XW_q$, $K=XW_k$, $V=XW_v$, scores
# $S=QK^\top/\sqrt D$, weights $A=\mathrm{softmax}(S)$ and output $Y=AV$:
#
# 1. A projection treats each row separately, so it does not matter whether rows move before or after it.
# 2. In the scores both factors move, so rows and columns move.
# 3. The softmax divides each row by its sum, and a sum does not depend on the order of its terms.
# 4. In $AV$ the columns of the weights and the rows of the values have moved alike.
#
# $$\begin{gathered}(PX)\,W = P\,(XW),\qquad \frac{(PQ)(PK)^\top}{\sqrt D} = P\,S\,P^\top\\
#   \mathrm{softmax}(P\,S\,P^\top) = P\,A\,P^\top,\qquad (P\,A\,P^\top)(P\,V) = P\,A\,V = P\,Y\end{gathered}$$

# %%
from itertools import combinations, permutations

from pe_numpy import softmax

P = np.eye(3)[[2, 0, 1]]
Q, K, V = X @ W_q, X @ W_k, X @ W_v
S = Q @ K.T / np.sqrt(D)
assert np.array_equal(P @ X, X[[2, 0, 1]]) and np.array_equal(P.T @ P, np.eye(3))
assert np.allclose((P @ X) @ W_q, P @ (X @ W_q), rtol=0, atol=1e-12)
assert np.allclose((P @ Q) @ (P @ K).T / np.sqrt(D), P @ S @ P.T, rtol=0, atol=1e-12)
assert np.allclose(softmax(P @ S @ P.T), P @ softmax(S) @ P.T, rtol=0, atol=1e-12)
assert np.allclose(softmax(S), A, rtol=0, atol=1e-12)
assert np.allclose((P @ A @ P.T) @ (P @ V), P @ Y, rtol=0, atol=1e-12)
assert np.allclose(Y_reversed, Y[::-1], rtol=0, atol=1e-12)  # the picture

# %% [markdown]
# This is the theorem: if you reorder the input of attention, its output is reordered in the same way and
# does not change otherwise. A function with this property is called permutation **equivariant**.
#
# Does depth help? A Transformer adds the input to the output of each layer, sends every token through a
# small network, and scales its vector. *Predict*: if the input of a stack of three such layers is
# reordered, is its output still reordered in the same way?


# %% fold="output"
def layer(x, mask=None):
    return attention(x @ W_q, x @ W_k, x @ W_v, mask=mask)[0]


def stack(x):
    for _ in range(3):
        x = x + layer(x)
        x = x + np.maximum(x @ W, 0) @ W.T  # a small network for each token
        x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return x


tokens, W = (np.random.default_rng(1).standard_normal(s) for s in ((5, D), (D, 32)))
for order in permutations(range(5)):
    assert np.allclose(stack(tokens[list(order)]), stack(tokens)[list(order)], rtol=0, atol=1e-9)

# %% [markdown]
# It does, for all orders of five tokens. The new steps treat each row separately, and a chain of
# equivariant functions is equivariant. Several heads change nothing, because each head is such a layer.
#
# Other networks do not have this problem. A recurrent network reads one token after another, so it
# depends on their order ([chapter 22](22_recurrent.ipynb)). A convolution multiplies each neighbour by a
# weight for its offset ([chapter 23](23_convolution.ipynb)).
#
# ## Equivariant is not invariant
#
# - **Equivariant**: $f(PX) = P f(X)$, the output is reordered as the input is.
# - **Invariant**: $f(PX) = f(X)$, the output does not change at all.
#
# *A common mistake* is to say that attention "gives the same result" for a shuffled input. Its result is
# invariant only when it is **pooled**: the mean (or sum, or largest entry) ignores the order of rows.
# Write $\mathbf 1$ for a column of ones. Then $\mathbf 1^\top P = \mathbf 1^\top$, because each column of
# $P$ has a single 1. So
#
# $$\frac1L\,\mathbf 1^\top (P\,Y) = \frac1L\,\mathbf 1^\top Y$$

# %%
ones = np.ones(3)
assert np.array_equal(ones @ P, ones)
assert np.allclose(ones @ (P @ Y) / 3, ones @ Y / 3, rtol=0, atol=1e-12)
assert np.allclose(Y_reversed.mean(axis=0), Y.mean(axis=0), rtol=0, atol=1e-12)
assert not np.allclose(Y_reversed, Y, rtol=0, atol=0.1)  # not invariant

# %% [markdown]
# So "dog bites man" and "man bites dog" *have the same* pooled output. A classifier that reads it gives
# both the same answer, and at least one of its two answers to "who bites?" is wrong, no matter how long
# it was trained. Even with trained positions the two are almost alike ([chapter
# 80](80_real_table.ipynb#what-word-order-does-to-a-sentence-vector)).
#
# ## A causal mask already carries position
#
# A language model may not look ahead. With a **causal mask** a token attends to itself and the tokens
# before it. *Predict*: is the layer still equivariant?

# %% fold="output" alt="Heat maps of the outputs under a causal mask for both word orders, with their means. Lines lead each word to its place in the other order. Its row of numbers changes, and the means differ."
from pe_numpy import causal_mask

p = np.arange(3)
see = causal_mask(p, p)  # (L, L), True = may attend
Y_causal, Y_causal_reversed = layer(X, see), layer(X[::-1], see)
assert (np.abs(Y_causal - Y_causal_reversed[::-1]).max(axis=1) > 0.4).all()
assert np.abs(Y_causal.mean(axis=0) - Y_causal_reversed.mean(axis=0)).max() > 0.4
plots.outputs_of_two_orders(Y_causal, Y_causal_reversed, words, words[::-1])
plt.show()

# %% [markdown]
# Every word now has a different output in the other sentence, and the two means differ. The words move
# but the mask stays in place. In the first position "dog" attends only to itself. In the last position it
# attends to the whole sentence.
#
# How much does an output row show of the order? It is a weighted sum over the tokens up to its own. So
# after one layer it depends on *which* words came before, and not *in which order*. We swap the first two
# of four tokens and see which rows change.

# %%
four = np.random.default_rng(2).standard_normal((4, D))
see4 = causal_mask(np.arange(4), np.arange(4))
once, swapped = layer(four, see4), layer(four[[1, 0, 2, 3]], see4)
twice, twice_swapped = layer(once, see4), layer(swapped, see4)
after_one = np.abs(once - swapped).max(axis=1) > 1e-9
after_two = np.abs(twice - twice_swapped).max(axis=1) > 1e-9
print("rows that change, one layer:", after_one.tolist(), " two layers:", after_two.tolist())
assert after_one.tolist() == [True, True, False, False] and after_two.all()
for order in permutations(range(3)):  # any order of the tokens before the last one
    first = layer(four[[*order, 3]], see4)
    assert np.allclose(first[3], once[3], rtol=0, atol=1e-12)
    kept = np.allclose(layer(first, see4)[3], twice[3], rtol=0, atol=1e-3)
    assert kept == (order == (0, 1, 2))

# %% [markdown]
# Rows 2 and 3 do not change after one layer. After two layers they do, because row 0 has seen only the
# first word, and the second layer attends to row 0. The same holds for every order of the first three
# tokens: one layer does not change the last row, two layers do.
#
# ## NoPE: a causal mask can count positions
#
# A decoder (a model with a causal mask) without any positional encoding is called **NoPE**. Theorem 1 of
# Kazemnejad et al. (2023, see *Further reading*) assumes that every input begins with a start token. Then
# there are weights with which the first layer writes each token's absolute position into its vector. By
# theorem 2, later layers can then compute scores that depend on the distance.
#
# The heart of the proof is a head that counts. Let all scores be equal, and let the start token have the
# value 1 and all others 0. Then the output for token number $t$, counted from 1, is
#
# $$o_t=\frac1t\sum_{j\le t} v_j=\frac1t$$

# %%
L, at = 8, np.arange(8)
equal, marker = np.zeros((L, 1)), np.zeros((L, 1))  # equal queries and keys: equal scores
marker[0] = 1  # the start token
count, _ = attention(equal, equal, marker, mask=causal_mask(at, at))
assert np.allclose(count[:, 0], 1 / np.arange(1, L + 1), rtol=0, atol=1e-12)
unmasked, _ = attention(equal, equal, marker)  # an encoder
print(
    "decoder:",
    (1 / count[:, 0]).round(9).tolist(),
    " encoder:",
    (1 / unmasked[:, 0]).round(9).tolist(),
)
assert np.allclose(unmasked, 1 / L, rtol=0, atol=1e-12)

# %% [markdown]
# The feed-forward network of the layer then turns $1/t$ into $t$. The theorem says that such weights
# exist, not that training finds them. That trained decoders without a positional encoding also know
# positions is a measurement (Haviv et al. 2022). In an **encoder** each token attends to all tokens, so
# an encoder cannot count in this way and needs a positional encoding. Some large models set a few NoPE
# layers between layers that rotate queries and keys by position, that is, layers with RoPE ([chapter
# 51](51_extrapolation.ipynb)).
#
# Then why do most decoders use an encoding? Without one, training has to find weights that count, and
# only layers after the first can use distances. With an encoding, position is there from the start.
# Whether it also helps on longer texts is a question for measurements (Kazemnejad et al. 2023).
#
# ## The four places where position enters
#
# Attention is a chain: token vectors, then queries, keys and values, then scores, then weights, then a
# sum. Position can enter this chain at four places. The function below has one argument (a "door") for
# each of them.


# %%
def nothing(x):
    return x


def layer_with_doors(x, embed=nothing, turn=nothing, bias=0.0, value_term=0.0):
    x = embed(x)  # place 1: the token vector
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    q, k = turn(q), turn(k)  # place 2: queries and keys
    w = softmax(q @ k.T / np.sqrt(D) + bias)  # place 3: the score of a pair (L, L)
    return (w[..., None] * (v + value_term)).sum(axis=1)  # place 4: the weighted sum


assert np.allclose(layer_with_doors(X), Y, rtol=0, atol=1e-12)  # no position anywhere

# %% [markdown]
# We use one place at a time. We add an encoding to the token vectors, rotate queries and keys, lower the
# score of distant pairs, or add a vector for each distance to the values. Now the first two words change
# places. *Predict* which of the four still gives the old outputs in the new order.

# %% fold="output"
from pe_numpy import rope, sinusoidal

distance = p[:, None] - p[None, :]  # (L, L): query minus key
by_distance = np.random.default_rng(3).standard_normal((5, D))  # a row for each of -2 .. 2
doors = {
    "1 token vector   ": {"embed": lambda x: x + sinusoidal(p, D)},
    "2 queries, keys  ": {"turn": lambda x: rope(x, p)},
    "3 score of a pair": {"bias": -0.5 * np.abs(distance)},
    "4 weighted sum   ": {"value_term": by_distance[distance + 2]},  # (L, L, D)
}
for name, door in doors.items():
    gap = layer_with_doors(X[[1, 0, 2]], **door) - layer_with_doors(X, **door)[[1, 0, 2]]
    print(f"place {name}  breaks equivariance: {np.abs(gap).max() > 0.01}")
    assert np.abs(gap).max() > 0.01

# %% [markdown]
# None does, so each place is enough to break equivariance. At each place *any* change that depends on
# positions is possible: the encoding need not be added, and the score need not get a bias.
#
# An encoding is **absolute** if it gives something to each position by itself, such as a vector that is
# added at place 1. It is **relative** if a score depends on positions only through the distance of query
# and key, as with the bias above. RoPE, the rotation at place 2, is both: each vector is rotated by its
# own position, yet the scores depend only on the distance ([chapter 40](40_rope_derived.ipynb)). A vector
# at place 1 is usually added just once, before the first layer. Places 2 to 4 are inside attention, so
# there position enters again in every layer that uses it.
#
# ### Why there are no other places (second reading)
#
# Three quantities of the chain have no place in the list: values, output and weights. For the **values**,
# $v_j + r_{ij}$ is place 4 itself. Something added to the **output**, $o_i + p_i$, is place 4 with a term
# that depends only on $i$, because the weights of a row sum to 1. Finally, let positions change the
# **weights** in any way that keeps them non-negative and the sum of each row at 1. For example, multiply
# them by factors $g_{ij} > 0$ and divide each row by its new sum. That is a bias $\ln g_{ij}$ at place 3.
# A mask is the case $g = 0$, a bias of $-\infty$.
#
# $$\sum_j w_{ij}\,(v_j+p_i) = \sum_j w_{ij}\,v_j + p_i,\qquad
#   \frac{w_{ij}\,g_{ij}}{\sum_{j'} w_{ij'}\,g_{ij'}} = \mathrm{softmax}_j\,(s_{ij}+\ln g_{ij})$$

# %%
code = sinusoidal(p, D)
through_door_4 = layer_with_doors(X, value_term=code[:, None, :])  # r_ij = p_i, for every j
assert np.allclose(layer_with_doors(X) + code, through_door_4, rtol=0, atol=1e-12)
g = np.random.default_rng(4).uniform(0.1, 2.0, (3, 3))
after = A * g / (A * g).sum(axis=-1, keepdims=True)
assert np.allclose(after, softmax(S + np.log(g)), rtol=0, atol=1e-12)
assert np.allclose(softmax(np.where(see, S, -np.inf)) @ V, Y_causal, rtol=0, atol=1e-12)

# %% [markdown]
# So these four are the only places in this chain, as long as weights are non-negative and sum to 1.
#
# ## Why position vectors are added, not concatenated
#
# We could concatenate a token vector $x$ and a position vector $p$ to $[x;p]$, and they would be kept
# apart. But the next step is a projection, which adds the two parts together. Split its matrix into the
# rows for $x$ and the rows for $p$:
#
# $$[x;p]\begin{bmatrix}W_1\\W_2\end{bmatrix} = xW_1 + pW_2,\qquad
#   (x+p)\,W = [x;p]\begin{bmatrix}W\\W\end{bmatrix}$$

# %%
W_1, W_2 = np.random.default_rng(5).standard_normal((2, D, D))
beside = np.concatenate([X, code], axis=-1)  # (L, 2 D)
assert np.allclose(beside @ np.concatenate([W_1, W_2]), X @ W_1 + code @ W_2, rtol=0, atol=1e-12)
assert np.allclose((X + code) @ W_1, beside @ np.concatenate([W_1, W_1]), rtol=0, atol=1e-12)
as_added = code @ W_2 @ np.linalg.inv(W_1)  # another encoding, added, does the same here
assert np.allclose((X + as_added) @ W_1, X @ W_1 + code @ W_2, rtol=0, atol=1e-9)
assert not np.allclose(as_added @ W_q, code @ W_2, rtol=0, atol=0.1)  # elsewhere it does not
print("rows of the projection:", W_1.shape[0], "added,", beside.shape[1], "concatenated")

# %% [markdown]
# Adding is concatenating with $W_2 = W_1$. Concatenation has a separate matrix for positions in each
# projection. The price is a wider vector and more weights. With a learned table the difference shrinks
# further: where $W_1$ is invertible, adding $pW_2W_1^{-1}$ does what concatenating $p$ does, though only
# for one projection at a time. And in a wide space a sum need not mix up the two, because words and
# positions can have different directions.
#
# ## Two simple encodings that fail: raw number and one-hot
#
# **Add the number** of the position to every component. At position 100 each component of a token is then
# the component of its word plus 100. How similar are "dog" and "man" far into a text? The cosine of the
# angle between them is 1 if they point the same way.

# %%
for pos in (0, 1, 10, 100, 1000):
    a, b = X[0] + pos, X[2] + pos
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    print(f"position {pos:4}: cosine of dog and man {cosine:7.4f}")
    assert pos < 10 or cosine > 0.98
one_hot = np.eye(64)
assert np.linalg.norm(one_hot[5] - one_hot[6]) == np.linalg.norm(one_hot[5] - one_hot[60])

# %% [markdown]
# From position 10 on the number outweighs the word. Dividing by the length of the text keeps the number
# small, but then position 3 has one encoding in a short text and another in a long one.
#
# **One-hot**: position 3 is a 1 in component 3 and 0 elsewhere. The size of the vectors is fixed. But the
# width must be the largest position that will ever occur, plus 1, and 5 is as far from 6 as from 60.
#
# ## Six properties of a good positional encoding
#
# What do we want from a positional encoding? Here are six properties, each with a test. An **encoding**
# here is a function from an array of positions to an array of vectors. We try eight, among them the two
# ideas above. A *blurred one-hot* spreads the 1 over its neighbours as a bell curve. A *random table* is
# a learned table before training. *One clock* is a hand that turns once in 16 positions, given by the
# sine and cosine of its angle. *Many clocks* is the sinusoidal encoding of
# [chapter 20](20_sinusoidal.ipynb).

# %% alt="Eight heat maps of the distances between the encodings of 64 positions, each with its own scale. They show bands that widen away from the diagonal, flat squares, the stripes of a clock and the blocks of binary digits."
N = 64  # positions that are "seen in training"
table = np.random.default_rng(0).standard_normal((N, 16))
bumps = np.exp(-((np.arange(N)[:, None] - np.arange(-16, N + 16)) ** 2) / 50)
codes = {
    "raw number": lambda p: p[:, None].astype(float),
    "part of length": lambda p: p[:, None] / (len(p) - 1),
    "one-hot": lambda p: np.eye(N)[p],
    "blurred one-hot": lambda p: bumps[p],
    "random table": lambda p: table[p],
    "binary digits": lambda p: (p[:, None] >> np.arange(16) & 1).astype(float),
    "one clock": lambda p: np.stack([np.sin(p * np.pi / 8), np.cos(p * np.pi / 8)], axis=-1),
    "many clocks": lambda p: sinusoidal(p, 16),
}
plots.code_distances({name: code(np.arange(N)) for name, code in codes.items()})
plt.show()

# %% [markdown]
# The figure shows how far apart any two positions are, each encoding in its own scale; dark is near.
# One-hot and the random table distinguish all positions but do not show which of them are near. The
# single clock confuses positions 16 apart.
#
# These are the six properties, with $c(i)$ for the encoding of position $i$. A figure below says "code"
# for encoding.
#
# 1. **One code each**: no two positions share an encoding.
# 2. **The same everywhere**: position 3 has the same encoding in a short text as in a long one.
# 3. **Beyond training**: position 255 has an encoding, and its norm is not larger than the norms up to
#    position 63. This is necessary, not sufficient. [Chapter 71](71_study.ipynb) asks what a trained
#    model does there.
# 4. **A shift is linear**: the step from $pos$ to $pos + k$ is one matrix and one vector, the same for
#    every position.
# 5. **Falls with distance**: the product $c(i)\cdot c(j)$ falls with every step away from $i$. A score
#    contains this product if encodings are added and nothing is projected.
# 6. **Works on grids**: put the encoding of the row beside the encoding of the column. For 24 times 24
#    points all encodings differ, and a step of 2 rows and 3 columns is one affine map (a matrix and a
#    vector) wherever it starts.
#
# ### Tests of the six properties (second reading)
#
# The first three need little code.


# %%
def is_unique(code):
    return len(np.unique(code(np.arange(N)).round(9), axis=0)) == N


def is_deterministic(code):
    return np.array_equal(code(np.arange(N))[:10].round(9), code(np.arange(10)).round(9))


def extends_in_length(code):
    try:
        far = code(np.arange(4 * N))
    except IndexError:
        return False  # a table ends where it ends
    seen = np.linalg.norm(code(np.arange(N)), axis=-1).max()
    return bool(np.linalg.norm(far, axis=-1).max() <= seen + 1e-9)


# %% [markdown]
# Property 4 asks for one matrix $M_k$ and one vector $b_k$ for all positions:
#
# $$c(pos+k) = M_k\,c(pos) + b_k$$
#
# The test finds the best $M_k$ and $b_k$ by least squares and asks whether any error remains. One-hot and
# blurred one-hot pass for free: their 64 vectors are linearly independent, so some matrix maps them to
# any 64 others. A large width is not enough: vectors of 100 components that span only three dimensions
# fail. The clocks pass with 2 and 16 components, because in $k$ positions a hand turns by the same angle,
# no matter where it starts.


# %%
def best_shift(start, end):
    """Largest error of the best affine map from the rows of `start` to those of `end`."""
    rows = np.column_stack([start, np.ones(len(start))])
    M = np.linalg.lstsq(rows, end, rcond=None)[0]  # holds M_k and b_k
    return np.abs(rows @ M - end).max()


def is_relative(code):
    x = code(np.arange(N))
    return all(best_shift(x[:-k], x[k:]) < 1e-6 for k in (1, 5))


print([name for name in codes if is_relative(codes[name])])
assert is_relative(codes["many clocks"]) and not is_relative(codes["random table"])

# %%
draw, i, j = np.random.default_rng(7), np.arange(N)[:, None], np.arange(-16, N + 16)
assert best_shift(codes["one-hot"](np.arange(N)), draw.standard_normal((N, 64))) < 1e-12  # any
powers = np.exp(i / 25) ** j  # of 64 different numbers: a Vandermonde matrix, of full rank
assert np.allclose(bumps, np.exp(-(i**2) / 50) * powers * np.exp(-(j**2) / 50), rtol=0, atol=1e-9)
flat = draw.standard_normal((N, 3)) @ draw.standard_normal((3, 100))  # wide, of rank 3
assert not is_relative(lambda p: flat[p])

# %% [markdown]
# The last two tests look at the products and at the grid.


# %%
def decays(code):
    x = code(np.arange(N))
    steps = np.diff(x @ x.T, axis=1) * np.sign(np.arange(N - 1) + 0.5 - np.arange(N)[:, None])
    return bool((steps < 0).all())


def extends_to_a_grid(code, n=24):
    row, column = np.divmod(np.arange(n * n), n)
    grid = np.concatenate([code(np.arange(n))[row], code(np.arange(n))[column]], axis=-1)
    unique = len(np.unique(grid.round(9), axis=0)) == n * n
    grid = grid.reshape(n, n, -1)
    start, end = (part.reshape(-1, part.shape[-1]) for part in (grid[:-2, :-3], grid[2:, 3:]))
    return unique and bool(best_shift(start, end) < 1e-6)


# %% [markdown]
# ### Which encoding has which property
#
# *Predict* the last row of the whole table, the many clocks.

# %% fold="output" alt="A table of eight encodings by six properties, green for yes. No encoding has all six. Two have five: the blurred one-hot vector and the many clocks of the sinusoidal encoding."
tests = {
    "one code each": is_unique,
    "same everywhere": is_deterministic,
    "beyond training": extends_in_length,
    "shift is linear": is_relative,
    "falls with distance": decays,
    "works on grids": extends_to_a_grid,
}
has = {name: [bool(test(code)) for test in tests.values()] for name, code in codes.items()}
assert has["many clocks"] == [True, True, True, True, False, True]
assert [name for name in has if sum(has[name]) >= 5] == ["blurred one-hot", "many clocks"]
assert not any(all(row) for row in has.values())
plots.properties(has, list(tests))
plt.show()

# %% [markdown]
# No encoding has all six; two have five. The products of the clocks do not fall at every step, as
# [chapter 20](20_sinusoidal.ipynb) shows in detail. These tests are for encodings at place 1, the token
# vector. RoPE, T5 and ALiBi give no vector to a position. [Chapter 72](72_which_one.ipynb) asks the same
# questions about their *scores*.
#
# ## The word-order probe
#
# The last section is an experiment with eight nouns, four verbs and sentences of three words with two
# different nouns. The question is: **who bites?** A **probe** must name the subject. It is a linear
# readout, and the only part that is fitted. Each sentence passes through *one attention layer with random
# weights*, then a random matrix and a *ReLU* (negative entries become 0). The probe reads the mean over
# the three tokens. The rest is random, so what the probe finds was there before any training. A quarter
# of the sentences is held out. A sentence and its reversal, "man bites dog" for "dog bites man", are
# always held out together.

# %%
from pe_numpy import merge_heads, rope_frequencies, split_heads

sentences = np.array([(a, 8 + v, b) for a, b in permutations(range(8), 2) for v in range(4)])
kinds = [(a, 8 + v, b) for a, b in combinations(range(8), 2) for v in range(4)]
rng = np.random.default_rng(0)
chosen = {kinds[n] for n in rng.permutation(len(kinds))[: len(kinds) // 4]}
held_out = np.array([(min(a, b), v, max(a, b)) in chosen for a, v, b in sentences])
mirror = [sentences.tolist().index([b, v, a]) for a, v, b in sentences]
print(len(sentences), "sentences,", int(held_out.sum()), "held out")
assert np.array_equal(held_out, held_out[mirror])


# %%
def features(seed, embed=0.0, turn=None, bias=None, mask=None, D=16, H=4):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((12, D))[sentences] + embed  # (sentences, 3, D)
    W = rng.standard_normal((3, D, H * D)) / np.sqrt(D)
    q, k, v = (split_heads(x @ w, H) for w in W)  # (sentences, H, 3, D)
    if turn is not None:  # the frequencies of RoPE
        q, k = rope(q, np.arange(3), turn), rope(k, np.arange(3), turn)
    heads, _ = attention(q, k, v, mask=mask, bias=bias)
    y = x + merge_heads(heads) @ rng.standard_normal((H * D, D)) / np.sqrt(H * D)
    hidden = np.maximum(y @ rng.standard_normal((D, 512)) / np.sqrt(D), 0)
    return np.column_stack([hidden.mean(axis=1), np.ones(len(x))])  # (sentences, 513)


# %% [markdown]
# First comes what is **proved**. Without position, a sentence and its reversal have equal features, that
# is, equal inputs of the probe. The same is true if the only position is a *symmetric* bias
# $B_{ij}=-m\,|i-j|$. Let $J$ be the permutation matrix that reverses the order. Reversal changes no
# distance $|i-j|$, so $B$ does not change. Therefore the reversed sentence has the same weights in
# reversed order, and the mean ignores the order:
#
# $$J\,B\,J^\top=B,\qquad
#   \mathrm{softmax}(J\,S\,J^\top+B)=J\;\mathrm{softmax}(S+B)\;J^\top$$

# %%
J, B = np.eye(3)[::-1], -np.abs(distance) / 2
assert (J @ p).tolist() == [2, 1, 0] and B[0].tolist() == [0, -0.5, -1]
assert np.array_equal(J @ B @ J.T, B)
assert np.allclose(softmax(J @ S @ J.T + B), J @ softmax(S + B) @ J.T, rtol=0, atol=1e-12)
encodings = {
    "no position": {},
    "bias -|i-j|/2": {"bias": B},
    "RoPE": {"turn": rope_frequencies(16)},
    "RoPE, all pairs fast": {"turn": np.ones(8)},
    "causal mask only": {"mask": see},
    "sinusoidal, added": {"embed": sinusoidal(p, 16)},
}
found = {name: features(0, **encoding) for name, encoding in encodings.items()}
blind = [name for name, f in found.items() if np.allclose(f, f[mirror], rtol=0, atol=1e-12)]
assert blind == ["no position", "bias -|i-j|/2"]

# %% [markdown]
# Equal features give equal answers, but the reversed sentence has a different subject. We call such a
# layer blind. With a blind layer at most one of every two answers is right: **50% is the ceiling**, for
# every classifier.
#
# Now comes what is **measured**. The readout is a ridge regression: least squares with a small penalty
# $\lambda$ on large coefficients. With the features in the rows of $F$ and the subjects as one-hot rows
# in $T$ it is
#
# $$C=(F^\top F+\lambda I)^{-1}F^\top T$$
#
# These coefficients minimise the loss, because its gradient vanishes there: $F^\top(FC-T)+\lambda C = 0$.


# %%
def readout(seed, encoding, ridge=0.01):
    f, T = features(seed, **encoding), np.eye(8)[sentences[:, 0]]
    F, T = f[~held_out], T[~held_out]
    C = np.linalg.solve(F.T @ F + ridge * np.eye(F.shape[1]), F.T @ T)
    assert np.allclose(F.T @ (F @ C - T) + ridge * C, 0, rtol=0, atol=1e-6)
    return f[held_out] @ C  # a score for each noun


assert readout(0, {}).shape == (56, 8)

# %% alt="Bars show the accuracy of the word-order probe for six layers. The two layers without order information stay at the ceiling of 50 per cent, RoPE is above it on average, and the causal mask and the sinusoids are near 100."
percent = {}
for name, encoding in encodings.items():
    right = []
    for seed in range(5):  # five random layers
        answers = readout(seed, encoding)
        best = np.sort(answers, axis=1)
        assert (best[:, -1] - best[:, -2]).min() > 1e-7  # no answer hangs on a rounding error
        right.append(round(100 * np.mean(answers.argmax(axis=1) == sentences[held_out, 0])))
    percent[name] = round(np.mean(right))
    print(f"{name:21} {percent[name]:3} %   from {min(right)} to {max(right)}")
assert percent["no position"] <= 50 and percent["bias -|i-j|/2"] <= 50
assert percent["causal mask only"] > 95 and percent["sinusoidal, added"] > 95
assert 50 < percent["RoPE"] < 85 < percent["RoPE, all pairs fast"] < 100
plots.probe_accuracy(percent, ["none", "alibi", "rope", "rope", "none", "sinusoidal"])
plt.show()

# %% [markdown]
# *Proved*: the two blind layers cannot pass 50%. *Measured*: with only the causal mask, or with added
# sinusoids, a random layer answers correctly almost every time. RoPE lies between on average, its five
# layers from 48 to 71%. This is not a ranking. RoPE changes the weights only, and most of its pairs of
# components barely rotate within three positions. With all pairs at one radian per position the same
# layers get 95% on average. The symmetric bias is [ALiBi](35_alibi.ipynb) without a causal mask: it shows
# how far away a key is, but not on which side.

# %% [markdown]
# ## In short
#
# - **Does attention know the order of its words?** Not without positions or a mask. If you reorder the
#   input, it returns the same outputs, reordered. It is *equivariant*, at any depth, and only the mean of
#   its outputs is invariant. [Permutation equivariance](#attention-is-permutation-equivariant),
#   [equivariant or invariant](#equivariant-is-not-invariant).
# - **How well can a layer without positions do?** Asked "who bites?" of sentences and their reversals,
#   it is right in at most 50%, with any classifier. [The probe](#the-word-order-probe).
# - **Does a decoder need positional encoding?** It can do without (**NoPE**). One causal layer can turn a
#   mark on the first token into $1/t$ at token number $t$. An encoder has no such path.
#   [NoPE](#nope-a-causal-mask-can-count-positions).
# - **Where can position enter?** At four places: the token vector, queries and keys, the score, and the
#   weighted sum. An encoding is relative if scores depend on positions only through the distance.
#   [The four places](#the-four-places-where-position-enters).
# - **Why add a vector, and not the number, and not concatenate?** From position 10 on the number
#   outweighs the word. A projection adds concatenated parts too, $[x;p]\,W = xW_1 + pW_2$. In a wide space the
#   sum need not mix up the two.
#   [Number](#two-simple-encodings-that-fail-raw-number-and-one-hot),
#   [adding](#why-position-vectors-are-added-not-concatenated).
# - **What makes a positional encoding good?** Six properties can be tested. Of eight simple encodings
#   none has all six. The sinusoidal encoding has five.
#   [Six properties](#six-properties-of-a-good-positional-encoding).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 11` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 11_why_position.py` checks yours.
#
# ### Exercise 1: Only the direction
#
# The bias $-m\,|i-j|$ is blind to a reversal. Show that $-m\,(i-j)$, without the absolute value and
# without a mask, is not. Which side does it favour?
#
# <details><summary>Hint 1</summary>
#
# `features` takes any bias of shape `(3, 3)`; `distance` is $i-j$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# For a key in the past $i-j$ is positive, so its score is lowered. What happens to the future?
#
# </details>
#
# <details><summary>Solution</summary>
#
# The reversal changes the sign of $i-j$, so the features differ. Future keys gain weight.
#
# ```python
# signed = features(0, bias=-distance / 2)
# assert not np.allclose(signed, signed[mirror], rtol=0, atol=0.01)
# row = softmax(-distance / 2)[1]  # the middle word: past, itself, future
# assert row[2] > row[1] > row[0]
# ```
#
# </details>
#
# ### Exercise 2: Other ways to pool
#
# The mean of the outputs is invariant. Is the largest entry of each component? Is the output of the first
# token? Which of the three lets a probe answer "who bites?" without position?
#
# <details><summary>Hint 1</summary>
#
# For each kind of pooling, ask whether its result would change if the rows were reordered.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# "The first token" is a choice that depends on a position.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The maximum is invariant. The output of the first token is not. It is the output of "dog" in one order
# and the output of "man" in the other, so a probe that reads it can name the subject. Position came in
# through the pooling.
#
# ```python
# assert np.allclose(Y.max(axis=0), Y_reversed.max(axis=0), rtol=0, atol=1e-12)
# assert not np.allclose(Y[0], Y_reversed[0], rtol=0, atol=0.01)
# assert np.allclose(Y_reversed[0], Y[2], rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 3: Repair the binary encoding
#
# Binary digits fail "beyond training" because the norm of the vectors grows. Write 1 and -1 instead of 1
# and 0. Which of the six answers change, and would you trust the new one?
#
# <details><summary>Hint 1</summary>
#
# All vectors with entries 1 and -1 have the same norm.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# What did a model see in component 6 during training, and what does it see at position 64?
#
# </details>
#
# <details><summary>Solution</summary>
#
# Only "beyond training" changes, and it should not be trusted: component 6 was -1 at every position seen
# in training and is 1 at position 64.
#
# ```python
# digits = codes["binary digits"]
# signs = lambda p: 2 * digits(p) - 1
# changed = [name for name, test in tests.items() if test(signs) != test(digits)]
# assert changed == ["beyond training"]
# assert set(signs(np.arange(N))[:, 6].tolist()) == {-1.0}
# assert signs(np.arange(N + 1))[64, 6] == 1.0
# ```
#
# </details>
#
# ### Exercise 4: The theorem with a mask
#
# A causal mask breaks equivariance. A *padding* mask, which hides some tokens from everybody, does not,
# if it moves with its tokens. State the theorem with a mask $Z$ and test both.
#
# <details><summary>Hint 1</summary>
#
# Add to the scores a matrix of $0$ and $-\infty$. What must be true of it in step 3?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# If the mask belongs to the tokens it becomes $P Z P^\top$. If it belongs to the positions it is still
# $Z$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The layer is equivariant if the mask moves with the tokens, $Z \mapsto P Z P^\top$. The causal mask
# belongs to the positions and does not move.
#
# ```python
# order = [2, 0, 1]
# pad = np.broadcast_to([True, False, True], (3, 3))  # bites is padding
# assert np.allclose(layer(X[order], pad[:, order]), layer(X, pad)[order], rtol=0, atol=1e-12)
# carried = see[np.ix_(order, order)]  # P Z P^T
# assert np.allclose(layer(X[order], carried), Y_causal[order], rtol=0, atol=1e-12)
# assert not np.allclose(layer(X[order], see), Y_causal[order], rtol=0, atol=0.01)
# ```
#
# </details>
#
# ## In practice
#
# - **The encoding on the wrong axis.** A course's notebook added the encoding along the batch axis, until
#   a reader noticed it ([cmu-l3/anlp-fall2025-code
#   #1](https://github.com/cmu-l3/anlp-fall2025-code/issues/1)). Broadcasting raises no error. Each
#   *sequence* gets one encoding for all of its tokens, and the layer is as blind as before.
# - **Test inputs that hide bugs.** A reversal cannot tell $|i-j|$ from no position at all. Test with more
#   than one order, with a batch and a length that differ, and at positions other than 0.
# - **When order should be ignored.** A set of points or the candidates of a ranking have no order. There
#   you want equivariance, and you leave position out on purpose.

# %%
batch = np.random.default_rng(6).standard_normal((2, 3, D))  # two sentences
wrong, right = (
    sinusoidal(np.arange(2), D)[:, None],
    sinusoidal(p, D),
)  # an encoding for each sequence, token
for added, blind in ((wrong, True), (right, False)):
    turned, plain = layer(batch[:, ::-1] + added), layer(batch + added)
    assert np.allclose(turned, plain[:, ::-1], rtol=0, atol=1e-12) == blind
for order, blind in (([2, 1, 0], True), ([1, 0, 2], False)):  # reversed; first two swapped
    moved, kept = layer_with_doors(X[order], bias=B), layer_with_doors(X, bias=B)[order]
    assert np.allclose(moved, kept, rtol=0, atol=1e-9) == blind

# %% [markdown]
# ## Further reading
#
# - Vaswani et al. 2017, "Attention is all you need", section 3.5: why the model needs positional
#   encodings, in one paragraph (arXiv:1706.03762).
# - Lee et al. 2019, "Set Transformer" (arXiv:1810.00825): equivariance and invariance as the aim, for
#   inputs that are sets.
# - Haviv et al. 2022, "Transformer Language Models without Positional Encodings Still Learn Positional
#   Information" (arXiv:2203.16634): probes find positions in trained causal models. The authors
#   conjecture that the mask lets them count.
# - Kazemnejad et al. 2023, "The Impact of Positional Encoding on Length Generalization in Transformers"
#   (arXiv:2305.19466): the two theorems, and decoders with and without encodings, trained short and
#   tested long.
#
# **Cards**: [none](CARDS.md#none).
