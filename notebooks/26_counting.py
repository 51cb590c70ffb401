# %% [markdown]
# # 26. Other position indices: randomized positions, Abacus, graph Laplacian
#
# *What if a position is not the index of a token but random, counted inside a number, or a node of a graph?*
#
# 40 minutes. Needs [20 Sinusoidal positional encoding](20_sinusoidal.ipynb), [21 Learned position embeddings](21_learned.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A position need not be the index of a token. It can be drawn at random, so
# that training on short texts reaches every row of a long table. It can be a digit's place in its
# number, so that a model adds by columns. And in a graph, such as a molecule, smooth patterns over
# the nodes replace positions on a line. You compute positions of these three kinds, mostly with the
# encodings that you know, and measure what each kind gives up. At the end you can choose what your
# model should count.

# %% fold="input" alt="Three panels: eight tokens at their index and at random positions; the digits of three reversed numbers, coloured by place; and a molecule of two rings, coloured by an encoding. Gaps are uneven but keep the order, each column has one colour, and the encoding changes sign between rings."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import Context, alibi_bias, digit_positions, laplacian_encoding, learned
from pe_numpy import random_positions, relative_distance, sinusoidal
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import counting as plots

places = [range(8), *(random_positions(np.random.default_rng(n), 8, 32) for n in (1, 2, 3))]
ring = np.exp(1j * np.pi * (0.5 + np.arange(6) / 3))  # below: naphthalene's carbon, in the plane
atoms = np.array([*(ring - 0.75**0.5), *(ring + 0.75**0.5)[[3, 4, 5, 0]]])
molecule = np.isclose(np.abs(atoms[:, None] - atoms), 1, rtol=0, atol=1e-9).astype(int)
codes = laplacian_encoding(molecule, 4)
plots.counting_three_ways(places, 32, ["857", "46", "228"], atoms, molecule, codes[:, 0])
plt.show()

# %% [markdown]
# On the left each row shows eight tokens: first at their index, then at three random draws from 32
# positions. In the middle numbers are written with the last digit first, and equal places have the
# same colour. On the right the colour of each atom is one number of its encoding.
#
# ## Positions are an argument of every encoding
#
# A table that was trained on texts of 8 tokens has 8 trained rows. On a text of 64 tokens it fails
# ([chapter 21](21_learned.ipynb#beyond-the-last-row-index-out-of-range)). One solution is another encoding. This chapter
# takes a different one: the same encodings, and *other positions*. Nothing forces us to count tokens
# from the left. A function of positions accepts whatever is counted, in any order and with any gaps.
# (Examples also use RoPE, [chapter 40](40_rope_derived.ipynb), and ALiBi,
# [chapter 35](35_alibi.ipynb); you can skip them for now.)

# %%
from pe_numpy import rope

table = np.random.default_rng(0).standard_normal((64, 8))  # (N, D)
p = np.array([1, 4, 6])
assert np.allclose(sinusoidal(p, 8), sinusoidal(np.arange(64), 8)[p], rtol=0, atol=1e-12)
assert np.array_equal(learned(table, p), table[[1, 4, 6]])
q, k = np.random.default_rng(1).standard_normal((2, 3, 8))  # (L, K)
turned = rope(q, p) @ rope(k, p).T
one_by_one = np.zeros((3, 3))
for i, j in np.ndindex(3, 3):
    one_by_one[i, j] = rope(q[[i]], p[[i]])[0] @ rope(k[[j]], p[[j]])[0]
assert np.allclose(turned, one_by_one, rtol=0, atol=1e-12)
print(relative_distance(p, p).tolist())

# %% [markdown]
# ## Randomized positional encodings
#
# Training texts have at most 8 tokens, future texts up to 64. So let training use all 64 possible
# positions, here called *places*. Draw 8 of them, and sort them, so that the tokens stay in order
# (Ruoss et al. 2023). For $L$ tokens and $N$ places,
#
# $$p_0 < p_1 < \dots < p_{L-1},\qquad P(\{p_0,\dots,p_{L-1}\}) = 1\Big/\binom{N}{L}$$
#
# for each set of $L$ of the numbers $0,\dots,N-1$. $N$ is at least the length of the longest future
# text.

# %%
from itertools import combinations
from math import comb

rng, seen = np.random.default_rng(0), {}
for _ in range(20_000):
    drawn = tuple(random_positions(rng, 2, 5).tolist())
    seen[drawn] = seen.get(drawn, 0) + 1
assert set(seen) == set(combinations(range(5), 2)) and len(seen) == comb(5, 2)
shares = np.array([*seen.values()]) / 20_000
assert np.allclose(shares, 1 / comb(5, 2), rtol=0, atol=0.01)
print("sets of 8 places out of 64:", comb(64, 8))
show_source(random_positions)

# %% [markdown]
# At test time the positions are also drawn. The index $0,\dots,7$ is one set of 4,426,165,368, which
# training almost certainly never saw
# ([issue 1](https://github.com/google-deepmind/randomized_positional_encodings/issues/1)). The
# [authors' code](https://github.com/google-deepmind/randomized_positional_encodings/blob/e8c6474/models/positional_encodings.py#L196)
# draws once for a whole batch.
#
# ### Relative distances between drawn positions
#
# A relative scheme depends on $p_i-p_j$. The positions $(1, 4, 6)$ gave the matrix printed above, and
# its diagonals are not constant. So a bias is no longer a window on $2L-1$ numbers
# ([chapter 30](30_expansion.ipynb)); it is gathered pair by pair. Everything else stays the same,
# also in a whole attention layer: for RoPE only differences of the drawn positions count.

# %%
from pe_numpy.transformer.encodings import Rope
from pe_numpy.transformer.model import self_attention

x = np.random.default_rng(2).standard_normal((1, 6, 8))  # (B, L, D)
layer = {f"W_{n}": np.random.default_rng(3).standard_normal((8, 8)) / 3 for n in "qkvo"}


def at(p):
    return self_attention(layer, x, 2, Context(p), Rope(), {})


p = random_positions(np.random.default_rng(4), 6, 64)
assert np.allclose(at(p), at(p + 100), rtol=0, atol=1e-12)
assert not np.allclose(at(p), at(np.arange(6)), rtol=0, atol=0.01)
assert relative_distance(p, p).strides[0] > 0 > relative_distance(range(6), range(6)).strides[1]

# %% [markdown]
# The Transformer of this book has no class for this. Its decoder counts its tokens itself, but a draw
# must know the last token before it can place the first. If you generate text, draw the positions of
# the whole answer beforehand; a KV cache keeps them.
#
# ### Drawn distances for ALiBi (second reading)
#
# For ALiBi and Transformer-XL the authors' code draws *distances*, not positions. With
# $0=u_0<u_1<\dots<u_{L-1}$, the last $L-1$ drawn from $1,\dots,N-1$, and the slope $m$ of a head,
#
# $$b_{ij} = -m\,u_{|i-j|}$$
#
# One increasing map of the distance serves all rows, so the bias is a window again: `each_distance`
# maps each distance once. (Without a causal mask their code adds half a step on one side, so that
# left and right differ.)

# %%
from pe_numpy.relative.distance import each_distance

u = np.array([0, *(1 + random_positions(np.random.default_rng(5), 5, 63))])
index = relative_distance(range(6), range(6))
drawn = each_distance(lambda d: np.sign(d) * u[abs(d)], index)
bias = alibi_bias([0.5], drawn)[0]  # (L, S)
for i, j in np.ndindex(6, 6):
    assert bias[i, j] == -0.5 * u[abs(i - j)]
assert bias.strides[0] == -bias.strides[1] != 0  # a window: L + S - 1 numbers
D = relative_distance(p, p)
print("drawn distances:", np.diag(drawn, -1).tolist())
print("drawn positions:", np.diag(D, -1).tolist())
assert np.diag(drawn, -1).tolist() == [u[1]] * 5
assert np.diag(D, -1).tolist() == np.diff(p).tolist()

# %% [markdown]
# *A common mistake* is a table that is too short. The authors' relative variant makes a table of $N$
# rows and reads it at distance plus $N$, up to $2N-1$, as reported in
# [issue 2](https://github.com/google-deepmind/randomized_positional_encodings/issues/2). JAX doesn't
# complain and takes the last row instead. Then all distances from $-1$ up are alike.

# %%
rows = 64 + np.array([-9, -2, -1, 0, 40])
print("rows read:", rows.tolist(), " with 64 rows:", np.minimum(rows, 63).tolist())
try:
    learned(table, rows)
    raise SystemExit
except ValueError as error:
    print(error)
assert len(set(np.minimum(rows, 63)[2:])) == 1

# %% [markdown]
# ### What random positions teach: order is kept, distance is blurred
#
# What can be learned from random positions? Take a very small model: a table with one number $f_p$
# for each of 64 places, and the probability that the token at $p_a$ comes before the token at $p_b$,
#
# $$P(a \text{ before } b) = \frac{1}{1+e^{f_{p_a}-f_{p_b}}}$$
#
# Training raises the logarithm of $P$ over all pairs of 8 tokens. Its slope by $f_{p_b}$ is $1-P$.
# Its slope by $f_{p_a}$ is minus that.


# %%
def chance(f, p_a, p_b):
    return 1 / (1 + np.exp(f[p_a] - f[p_b]))


f = np.array([0.3, 1.2, 0.9])
assert np.isclose(chance(f, 0, 2), 1 / (1 + np.e**-0.6), rtol=0, atol=1e-15)  # 0.3 - 0.9
step = np.array([0, 0, 1e-6])
slope = (np.log(chance(f + step, 0, 2)) - np.log(chance(f - step, 0, 2))) / 2e-6
assert abs(slope - (1 - chance(f, 0, 2))) < 1e-8
slope = (np.log(chance(f + step, 2, 1)) - np.log(chance(f - step, 2, 1))) / 2e-6
assert abs(slope + (1 - chance(f, 2, 1))) < 1e-8

# %% [markdown]
# Train it twice on texts of 8 tokens: with the index as position, and with positions drawn from 64.
# **Predict**: how often is each right on texts of 8, 16, 32 and 64 tokens?


# %% fold="output"
def train_order(places):
    f, (a, b), rng = np.zeros(64), np.triu_indices(8, 1), np.random.default_rng(0)
    for _ in range(2000):
        p = places(rng, 8)
        missing = 1 - chance(f, p[a], p[b])
        f = f + 0.5 / 28 * (np.bincount(p[b], missing, 64) - np.bincount(p[a], missing, 64))
    return f


ways = {"index": lambda rng, L: np.arange(L), "drawn": lambda rng, L: random_positions(rng, L, 64)}
trained = {name: train_order(places) for name, places in ways.items()}
print("index, first rows:", trained["index"][:10].round(1).tolist())
assert not trained["index"][8:].any() and trained["drawn"].all()
assert (np.diff(trained["drawn"][::4]) > 0).all()

# %% alt="Left: the trained tables. Right: the share of correct answers over the length. With the index, only eight rows are trained, the rest are zero, and answers fall to chance. With random positions, the whole table rises and answers stay correct."
lengths, shares = (8, 16, 32, 64), {}
for name, places in ways.items():
    shares[name], rng = [], np.random.default_rng(1)
    for L in lengths:
        (a, b), texts = np.triu_indices(L, 1), [places(rng, L) for _ in range(100)]
        ahead = np.array([trained[name][p[b]] - trained[name][p[a]] for p in texts])
        shares[name].append((ahead > 0).mean() + (ahead == 0).mean() / 2)
    print(f"{name}: {[f'{share:.2f}' for share in shares[name]]}")
assert min(shares["drawn"]) > 0.99 and shares["index"][0] == 1
plots.counting_learned_order(trained, lengths, shares)
plt.show()

# %% [markdown]
# With the index the rows from 8 on never moved, and pairs beyond them are a guess. With drawn
# positions each row was trained, and order is what was true in all draws.
#
# This is a table, not a Transformer; whether a deep model uses it is shown in the paper. But we can
# compute what one gap *loses*. A gap has the probability
#
# $$P(p_{i+1}-p_i = g) = \binom{N-g}{L-1}\Big/\binom{N}{L}$$
#
# with the mean $(N+1)/(L+1)$. The probability of $p_{i+2}-p_i=g$ is
# $(g-1)\binom{N-g}{L-2}\big/\binom{N}{L}$.


# %%
def gap_chances(N, L):  # of g = 1 .. N-1: between neighbours, and with one token between
    g = range(1, N)
    one = [comb(N - n, L - 1) / comb(N, L) for n in g]
    return np.array([one, [(n - 1) * comb(N - n, L - 2) / comb(N, L) for n in g]])


everything = np.array(list(combinations(range(9), 4)))  # all that can be drawn of 9, 4 at a time
one, two = gap_chances(9, 4)
for g in range(1, 9):
    for i in range(3):
        assert np.isclose((np.diff(everything)[:, i] == g).mean(), one[g - 1], rtol=0, atol=1e-12)
    skipping = everything[:, 3] - everything[:, 1]
    assert np.isclose((skipping == g).mean(), two[g - 1], rtol=0, atol=1e-12)
assert np.allclose(np.diff(everything).mean(axis=0), (9 + 1) / (4 + 1), rtol=0, atol=1e-12)

# %% [markdown]
# The two overlap. Suppose that you see one gap and must answer *neighbours* or *one between*, both
# equally often. The best answer is the likelier one. **Predict**: how often is it right for 8 tokens
# in 64 places, and for 64?

# %% fold="output"
for L in (8, 32, 64):
    best = gap_chances(64, L).max(axis=0).sum() / 2
    print(f"{L} tokens in 64 places: right in {best:.0%}")
assert round(gap_chances(64, 8).max(axis=0).sum() / 2, 2) == 0.71
assert gap_chances(64, 64)[0, 0] == gap_chances(64, 64)[1, 1] == 1

# %% alt="Probabilities of each gap between neighbours and with one token between, for 8 and for 48 tokens in 64 places. For 8, a long slope and a broad hump overlap widely. For 48, most neighbours are one place apart and most others two or three."
chances = {f"{L} tokens in 64 places": gap_chances(64, L)[:, :30] for L in (8, 48)}
plots.counting_gaps(np.arange(1, 31), chances)
plt.show()

# %% [markdown]
# For 8 tokens it is right in at most 71% of cases. So one gap doesn't show "exactly one back". But
# "the nearest before me" is not lost: a steep slope finds it in every draw.

# %%
rng = np.random.default_rng(6)
for _ in range(100):
    p = random_positions(rng, 8, 64)
    D = relative_distance(p, p)
    past = np.where(D > 0, alibi_bias([2.0], D)[0], -np.inf)
    assert past[1:].argmax(axis=1).tolist() == list(range(7))  # token i finds token i - 1

# %% [markdown]
# ### CAPE: shifted, jittered and scaled positions (second reading)
#
# For speech and images (Likhomanenko et al. 2021) CAPE computes the sinusoidal encoding at positions
# counted from their mean $\bar p$, which training shifts, jitters and stretches:
#
# $$p'_i = \lambda\,(p_i - \bar p + \Delta + \delta_i)$$
#
# In training $\Delta$, $\delta_i$ and $\ln\lambda$ are uniform random numbers, and all three are 0 in
# tests. A clip that starts later has the same encoding, since the mean moves along. In
# [a PyTorch version](https://github.com/gcambara/cape/blob/d456950/cape/cape.py) the length mask is
# `>` where `>=` is meant, so one padding token keeps an encoding.


# %%
def cape(p, shift=0.0, shake=0.0, log_stretch=0.0):
    return np.exp(log_stretch) * (p - p.mean() + shift + shake)


p, shake = np.array([3, 4, 5, 6, 7]), np.random.default_rng(0).uniform(-0.1, 0.1, 5)
by_steps = [-2, -1, 0, 1, 2]  # the mean is 5
assert cape(p).tolist() == by_steps
for i in range(5):
    by_steps[i] = 1.3 * (by_steps[i] - 0.4 + shake[i])  # shift to the left, shake, then stretch
drawn = {"shift": -0.4, "shake": shake, "log_stretch": np.log(1.3)}
assert np.allclose(cape(p, **drawn), by_steps, rtol=0, atol=1e-12)
for given in ({}, drawn):
    code, later = (sinusoidal(cape(at, **given), 8) for at in (p, 1000 + p))
    assert np.allclose(code, later, rtol=0, atol=1e-9)

# %% [markdown]
# ## Abacus: the position of a digit in its number
#
# To add long numbers such as 758 and 64, people write units under units. In a text the units of the
# two numbers are at some distance that depends on how long the numbers are, and a model must count
# it. McLeish et al. (2024) provide the column: the **place of a digit in its number**. Let $\ell_i$
# be the index of the last token before $i$ that is not a digit ($-1$ if there is none). A digit gets
#
# $$p_i = i - \ell_i + c$$
#
# and any other token 0. The offset $c$ is 0 in tests. The result is a row index of a table, so
# `learned` does the rest.


# %%
def place_by_loop(tokens, c):
    places, count = [], 0
    for token in tokens:
        count = count + 1 if token in range(10) else 0
        places.append(count + c if count else 0)
    return places


PLUS, EQUALS = 10, 11
tokens = [3, 2, 1, PLUS, 5, 4, EQUALS, 8, 6, 1]  # 123 + 45 = 168
for c in (0, 7):
    assert digit_positions(tokens, range(10), c).tolist() == place_by_loop(tokens, c)
print(digit_positions(tokens, range(10)).tolist(), digit_positions(tokens, range(10), 7).tolist())

# %%
show_source(digit_positions)

# %% [markdown]
# ### An attention head that adds by columns
#
# Numbers are written with the **last digit first**, so equal places are equally far from the start of
# their numbers, and share a row. Then one attention head gives the sums of all columns of two equally
# long numbers. The query is the row of a place, the keys are the rows of all tokens, the values are
# the digits.

# %%
from pe_numpy import attention

tokens = np.array([8, 5, 7, PLUS, 6, 2, 1, EQUALS])  # 758 + 126
rows = np.eye(5)  # a table (N, D), its rows at right angles
keys = learned(rows, digit_positions(tokens, range(10)))  # (S, D)
queries = 100 * learned(rows, [1, 2, 3])  # of the places of the answer
mean, weights = attention(queries, keys, tokens[:, None].astype(float))
columns = 2 * mean[:, 0]  # two digits a column
print("sums of the columns:", columns.round(6).tolist())
assert sum(columns.round(6) * [1, 10, 100]) == 758 + 126 == 884
assert np.allclose(weights[1], [0, 0.5, 0, 0, 0, 0.5, 0, 0], rtol=0, atol=1e-12)

# %% [markdown]
# Later layers must handle the carries. This head was written down, not trained.
#
# ### Common mistakes with Abacus, and its offset
#
# *A common mistake* is to write numbers as people do. Then the first digit of 758 shares its row with
# the first digit of 64, hundreds with tens. There are two more. Numbers side by side, with nothing
# between them, count as one. And with a cache the newest token cannot determine its place by itself.
# **Predict** the four lines.

# %% fold="output"
forward, reversed_ = [7, 5, 8, PLUS, 6, 4], [8, 5, 7, PLUS, 4, 6]
for tokens in (forward, reversed_):
    at_1 = np.array(tokens)[digit_positions(tokens, range(10)) == 1]
    print("in row 1:", at_1.tolist())
print("side by side:", digit_positions([8, 5, 7, 4, 6], range(10)).tolist())
whole, newest = (digit_positions(t, range(10))[-1] for t in (reversed_, reversed_[-1:]))
print("place of the newest digit, of the whole:", whole, " alone:", newest)
assert at_1.tolist() == [8, 4] and (whole, newest) == (2, 1)

# %% alt="The sum of 758 and 64 in three notations, with digits coloured by the row of the table that they read. Written forwards, 7 and 6 share a colour; reversed, 8 and 4 do; side by side without a sign, there are five colours."
spellings = {"forward": "758+64", "reversed": "857+46", "side by side": "85746"}
ids = {name: ["0123456789+".index(t) for t in text] for name, text in spellings.items()}
places = {name: digit_positions(text, range(10)).tolist() for name, text in ids.items()}
assert places["reversed"] == [1, 2, 3, 0, 1, 2] and places["side by side"] == [1, 2, 3, 4, 5]
plots.counting_columns(spellings, places)
plt.show()

# %% [markdown]
# **Why the offset?** Numbers of 5 digits train the rows 1 to 5, and the higher rows keep their random
# initial values. So in training the
# [authors' code](https://github.com/mcleish7/arithmetic/blob/86022a5/abacus.py) adds one random
# number from 0 to 99 to the places of all digits in a batch, and to nothing else. That trains the
# rows up to 104, so longer numbers find trained rows. Row 0, for all other tokens, does not change.

# %%
numbers = np.array([1, 2, 3, 4, 5, PLUS, 9, 8, 7, 6, 5])
reached = {c: set(digit_positions(numbers, range(10), c).tolist()) for c in range(100)}
assert set().union(*reached.values()) == set(range(105))

# %% [markdown]
# ### Position coupling: digits of one significance share a position
#
# In **position coupling** ([Cho et al. 2024](https://arxiv.org/abs/2405.20671)) the units of both
# numbers *and* of the result share one position, and so do the tens. Their
# [code](https://github.com/HanseulJo/position-coupling/blob/b9cad94/src/data/addition.py) can keep
# the operands forward and reverse the result. `+` and `=` have the position `start`, units the next.


# %%
def coupled(text, forward, start=1):
    positions = []
    for n, number in enumerate(text.replace("=", "+").split("+")):
        row = [start + 1 + place for place in range(len(number))]
        positions += [start] * (n > 0) + (row[::-1] if forward and n < 2 else row)
    return np.array(positions)


for text, forward in (("653+49=207", True), ("356+94=207", False)):  # the sum is 702
    abacus = digit_positions(["0123456789+=".index(t) for t in text], range(10), 1)
    theirs = coupled(text, forward)
    print(f"{text}: Abacus {abacus.tolist()}, coupled {theirs.tolist()}")
    assert np.array_equal(abacus, theirs * (abacus > 0)) != forward
assert len(set(coupled("653+49=207", True)[[2, 5, 7]])) == 1  # all units

# %% [markdown]
# If all numbers are reversed, each digit has its Abacus position with the offset 1. Written forward,
# the units 3, 9 and 2 stay together in coupling only. The price: Abacus reads only tokens, but
# coupling must know the task and where each number ends.
#
# ## Laplacian positional encodings for graphs
#
# The atoms of a molecule have no first and no next, only bonds. Let $A$ be the **adjacency matrix**
# ($A_{ij}=1$ for a bond, else 0). Let $d_i$ be the **degree** of node $i$, its number of bonds, and
# $d$ the diagonal matrix of the degrees. An encoding should change little along a bond. Take an
# encoding $v$ of one number per node. How much does it change in all?
#
# $$\sum_{i<j} A_{ij}\,(v_i-v_j)^2 = v^\top (d-A)\,v$$
#
# The matrix $d-A$ is the **Laplacian** of the graph.

# %%
A, d = molecule, np.diag(molecule.sum(axis=1))
v = np.random.default_rng(0).standard_normal(10)
change = sum(A[i, j] * (v[i] - v[j]) ** 2 for i, j in combinations(range(10), 2))
assert np.isclose(change, v @ (d - A) @ v, rtol=0, atol=1e-12)
assert np.allclose((d - A) @ np.ones(10), 0, rtol=0, atol=1e-12)
least, best = (part[..., 1] for part in np.linalg.eigh(d - A))  # the next eigenvalue
others = best + 0.03 * np.random.default_rng(1).standard_normal((1000, 10))  # encodings near it
others -= others.mean(axis=1, keepdims=True)  # at right angles to a constant
others /= np.sqrt((others**2).sum(axis=1, keepdims=True))
changes = ((others @ (d - A)) * others).sum(axis=1)
assert (changes > least).all() and np.allclose(changes, least, rtol=0, atol=0.1)

# %% [markdown]
# The smoothest encoding of all is constant, and useless. Of the encodings orthogonal to it (and of
# length 1) the smoothest is the **eigenvector** of the next eigenvalue; then comes the next, and so
# on. Dwivedi and Bresson (2020) give node $i$ its entries in $k$ of them. Their matrix divides each
# $A_{ij}$ by $\sqrt{d_id_j}$, so that nodes of high degree don't dominate. In a connected graph
# $v_0$, which is dropped, is now $\sqrt{d_i}$. A graph of several pieces with bonds has such a vector
# for each piece, and only the first piece's vector is dropped:
#
# $$\big(I - d^{-1/2}A\,d^{-1/2}\big)\,v_n = \lambda_n v_n,\qquad 0=\lambda_0\le\lambda_1\le\dots,\qquad
# \text{node } i \mapsto (v_1[i],\dots,v_k[i])$$

# %%
normalised = np.eye(10)
for i, j in np.ndindex(10, 10):
    normalised[i, j] -= A[i, j] / np.sqrt(d[i, i] * d[j, j])
values = [codes[:, n] @ normalised @ codes[:, n] for n in range(4)]
print("eigenvalues:", np.round(values, 4).tolist())
for n in range(4):
    assert np.allclose(normalised @ codes[:, n], values[n] * codes[:, n], rtol=0, atol=1e-12)
assert np.allclose(codes.T @ codes, np.eye(4), rtol=0, atol=1e-12)
assert np.allclose(values, np.linalg.eigvalsh(normalised)[1:5], rtol=0, atol=1e-12)
left_out = np.sqrt(np.diag(d)) / np.sqrt(d.sum())
assert np.allclose(normalised @ left_out, 0, rtol=0, atol=1e-12)
pair = laplacian_encoding(np.kron(np.eye(2), A), 2)  # two molecules: the second's root is in
assert np.allclose(pair[:, 0], [*np.zeros(10), *left_out], rtol=0, atol=1e-12)
assert abs(pair[:, 1] @ np.kron(np.eye(2), normalised) @ pair[:, 1] - values[0]) < 1e-12
show_source(laplacian_encoding)

# %% alt="Naphthalene's ten atoms four times, coloured by the first four eigenvectors. The first distinguishes left from right, the second top from bottom, and the third the middle from the sides."
plots.counting_molecule(atoms, molecule, codes)
plt.show()

# %% [markdown]
# The first vector shows the left or the right ring, although the function was never given the atoms'
# coordinates. Atoms that are mirror images, such as 0, 3, 6 and 9, differ only by signs.

# %%
left, right = [0, 1, 2, 3], [6, 7, 8, 9]
assert (codes[left, 0] > 0.1).all() and (codes[right, 0] < -0.1).all()
assert np.allclose(np.abs(codes[[0, 3, 6, 9]]), np.abs(codes[0]), rtol=0, atol=1e-12)

# %% [markdown]
# ### Eigenvectors of a path: cosines (DCT)
#
# A text is also a graph: a path, each token joined to the next. What are its eigenvectors? For $N$
# nodes the Laplacian $d-A$ has
#
# $$v_n[i] \propto \cos\frac{\pi n\,(i+\frac12)}{N},\qquad \lambda_n = 2-2\cos\frac{\pi n}{N}$$
#
# These are the waves of the second discrete cosine transform (DCT-II), in which JPEG stores its
# blocks. They are sinusoids, as in [chapter 20](20_sinusoidal.ipynb), with frequencies $\pi n/N$ in
# equal steps. But all eigenvalues differ, so each cosine comes without its sine.


# %%
def path(N):
    return np.eye(N, k=1) + np.eye(N, k=-1)


def of_length_one(v):
    return v / np.sqrt((v * v).sum(axis=0))


N, i, n = 12, np.arange(12)[:, None], np.arange(1, 12)
plain = laplacian_encoding(path(N), 11, normalized=False)
assert np.allclose(plain, of_length_one(np.cos(np.pi * n * (i + 0.5) / N)), rtol=0, atol=1e-12)
laplacian = np.diag(path(N).sum(axis=1)) - path(N)
assert np.allclose(laplacian @ plain, plain * (2 - 2 * np.cos(np.pi * n / N)), rtol=0, atol=1e-12)
assert len(set(np.linalg.eigvalsh(laplacian).round(6))) == N
print("path of 4:", laplacian_encoding(path(4), 1, normalized=False)[:, 0].round(6).tolist())

# %% [markdown]
# *A common mistake* is to claim this for the normalised form, which graph transformers use. Its waves
# reach their ends *at* the end nodes, and those nodes have one neighbour, not two:
#
# $$v_n[i] \propto \sqrt{d_i}\,\cos\frac{\pi n\,i}{N-1},\qquad \lambda_n = 1-\cos\frac{\pi n}{N-1}$$
#
# This is the DCT-I, times the square root of the degrees.

# %%
scaled, degree = laplacian_encoding(path(N), 11), path(N).sum(axis=1)[:, None]
dct1 = of_length_one(np.sqrt(degree) * np.cos(np.pi * n * i / 11))
assert np.allclose(scaled, dct1, rtol=0, atol=1e-12)
matrix = np.eye(N) - path(N) / np.sqrt(degree * degree.T)
assert np.allclose(matrix @ scaled, scaled * (1 - np.cos(np.pi * n / 11)), rtol=0, atol=1e-12)
assert not np.allclose(plain, scaled, rtol=0, atol=0.1)

# %% alt="First three eigenvectors of a path of 12 nodes as dots, with cosines through them, for both Laplacians. Both show the same waves inside. In the normalised form, the end nodes drop towards zero, off the curve of their neighbours."
fine = np.linspace(0, 11, 200)[:, None]
curves = {
    "$d - A$": (fine[:, 0], np.sqrt(2 / 12) * np.cos(np.pi * n[:3] * (fine + 0.5) / 12)),
    "normalised": (fine[:, 0], np.sqrt(2 / 11) * np.cos(np.pi * n[:3] * fine / 11)),
}
on_curve = np.sqrt(2 / 11) * np.cos(np.pi * n[:3] * i / 11)
assert np.allclose(scaled[1:-1, :3], on_curve[1:-1], rtol=0, atol=1e-12)
assert np.allclose(scaled[[0, -1], :3] * np.sqrt(2), on_curve[[0, -1]], rtol=0, atol=1e-12)
plots.counting_cosines({"$d - A$": plain[:, :3], "normalised": scaled[:, :3]}, curves)
plt.show()

# %% [markdown]
# ### Eigenvectors of a cycle: the sinusoidal encoding
#
# Join the ends of the path. Now all nodes are alike, each has two neighbours, and both Laplacians
# have the same vectors. Each eigenvalue comes twice, except for the first and, if $N$ is even, the
# last: with the wave $\cos(2\pi ni/N)$ comes $\sin(2\pi ni/N)$.


# %%
def cycle(N):
    return path(N) + np.eye(N, k=N - 1) + np.eye(N, k=1 - N)


for N, times in ((9, [1, 2, 2, 2, 2]), (10, [1, 2, 2, 2, 2, 1])):
    values = np.linalg.eigvalsh(2 * np.eye(N) - cycle(N)).round(9)
    assert np.unique(values, return_counts=True)[1].tolist() == times
plain, scaled = laplacian_encoding(cycle(9), 8, normalized=False), laplacian_encoding(cycle(9), 8)
assert np.allclose(plain, scaled, rtol=0, atol=1e-12)

# %% [markdown]
# They form pairs, and one step along the cycle is a rotation of each pair:
#
# $$\begin{pmatrix}\sin\theta(i+1)\\ \cos\theta(i+1)\end{pmatrix}
# = \begin{pmatrix}\cos\theta & \sin\theta\\ -\sin\theta & \cos\theta\end{pmatrix}
# \begin{pmatrix}\sin\theta i\\ \cos\theta i\end{pmatrix},\qquad \theta = \frac{2\pi n}{N}$$
#
# This is exactly `sinusoidal_shift` of chapter 20. A step forward and a step back add up to
# $2\cos\theta$ times the pair. So each wave is an eigenvector of $d-A$, with the eigenvalue
# $2-2\cos\theta$.

# %%
from pe_numpy import sinusoidal_shift

waves = laplacian_encoding(cycle(9), 8)
angle = 2 * np.pi * np.arange(9) / 9
for n in range(1, 5):
    cosine, sine = waves[:, 2 * n - 2], waves[:, 2 * n - 1]
    assert np.allclose(cosine, np.cos(n * angle) * np.sqrt(2 / 9), rtol=0, atol=1e-12)
    assert np.allclose(sine, np.sin(n * angle) * np.sqrt(2 / 9), rtol=0, atol=1e-12)
    step = sinusoidal_shift(2 * np.pi * n / 9, 2)  # one pair, one step of the cycle
    assert np.allclose(step + step.T, 2 * np.cos(n * angle[1]) * np.eye(2), rtol=0, atol=1e-12)
    code = np.stack([sine, cosine])  # (2, N)
    assert np.allclose(np.roll(code, -1, axis=1), step @ code, rtol=0, atol=1e-12)

# %% [markdown]
# ### Sign and basis ambiguity of eigenvectors
#
# If $v$ is an eigenvector, so is $-v$; and two vectors of one eigenvalue may be rotated in their
# plane. Neither the signs nor the basis of a double eigenvalue mean anything. What `eigh` returns may
# depend on the library and the processor. The package fixes it by two rules. The first node with a
# part that is not zero has a positive one. And of several vectors of one eigenvalue only the first
# reaches the first node that any of them reaches. (On the cycle this picks cosine and sine.) Another
# numbering of the nodes may give other signs, so this is a convention and not a cure. The authors
# flip each sign at random in training, so that the model learns to ignore it. **Predict** which of
# these do not change when a sign flips: the encodings, their distances, the products of two nodes'
# encodings?

# %% fold="output"
flipped = codes * [1, -1, -1, 1]
apart = [np.sqrt(((c[:, None] - c) ** 2).sum(axis=-1)) for c in (codes, flipped)]
print("codes:", np.allclose(codes, flipped, rtol=0, atol=1e-12))
print("distances:", np.allclose(*apart, rtol=0, atol=1e-12))
print("products:", np.allclose(codes @ codes.T, flipped @ flipped.T, rtol=0, atol=1e-12))
turn = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]
turned = waves[:, :2] @ turn  # another basis of the cycle's first pair
assert np.allclose(turned @ turned.T, waves[:, :2] @ waves[:, :2].T, rtol=0, atol=1e-12)
assert not np.allclose(turned, waves[:, :2], rtol=0, atol=0.01)
assert np.allclose(*apart, rtol=0, atol=1e-12) and not np.allclose(codes, flipped, rtol=0, atol=0.1)
star = np.array([[0, 1, 1, 1, 1], *[[1, 0, 0, 0, 0]] * 4])  # one eigenvalue three times
three = laplacian_encoding(star, 3)  # no vector reaches the centre, only the first node 1
assert np.allclose([*three[0], *three[1, 1:]], 0, rtol=0, atol=1e-12) and three[1, 0] > 0.8

# %% [markdown]
# *A common mistake* is a directed graph. Its matrix is not symmetric and need not have orthogonal
# eigenvectors. On a directed path $d^{-1/2}A\,d^{-1/2}$ has nothing on or below its diagonal, so all
# eigenvalues are 1, and the one eigenvector reaches only one node
# ([graphtransformer #12](https://github.com/graphdeeplearning/graphtransformer/issues/12)). Make a
# directed graph symmetric first. Another mistake is a graph of few nodes: $k$ must be below $N$. DGL
# can fill up with zeros ([dgl #4628](https://github.com/dmlc/dgl/pull/4628)); the package refuses
# both.

# %%
directed = np.eye(5, k=1)
incoming = np.maximum(directed.sum(axis=0), 1)  # at least 1, as in the authors' code
matrix = np.eye(5) - directed / np.sqrt(np.outer(incoming, incoming))
values, vectors = np.linalg.eig(matrix)
assert values.tolist() == [1] * 5 and np.allclose(vectors[1:], 0, rtol=0, atol=1e-12)
for graph, k in ((directed, 2), (path(3), 3)):
    try:
        laplacian_encoding(graph, k)
        raise SystemExit
    except ValueError as error:
        print(error)

# %% [markdown]
# ## In short
#
# - **Must a position be the index of a token?** No. `sinusoidal`, `learned`, `rope` and
#   `relative_distance` take positions, not lengths. You choose what is counted.
#   [Positions](#positions-are-an-argument-of-every-encoding).
# - **How are random positions drawn?** As $L$ different numbers below $N$, sorted. Draw again for
#   each batch, and also in tests. $N$ is at least the length of the longest future text.
#   [Randomized positions](#randomized-positional-encodings).
# - **What do they cost?** They blur distances and keep order. With 8 tokens in 64 places, one gap
#   distinguishes neighbours from tokens with one between, both equally often, in at most 71%.
#   [Measured](#what-random-positions-teach-order-is-kept-distance-is-blurred).
# - **Which position does a digit get in Abacus?** Its place in its number, from 1. Other tokens get
#   0. Write numbers with the last digit first, and add one random offset in training.
#   [Abacus](#abacus-the-position-of-a-digit-in-its-number).
# - **What is a position in a graph?** A node's entries in $v_1,\dots,v_k$, eigenvectors of the
#   normalised Laplacian. Use `eigh`, and flip signs at random in training. Make a directed graph
#   symmetric first. [Laplacian](#laplacian-positional-encodings-for-graphs).
# - **Are those sinusoids?** Yes on a cycle: pairs of cosine and sine, and one step is
#   `sinusoidal_shift`. On a path they are only cosines, a DCT.
#   [Path](#eigenvectors-of-a-path-cosines-dct),
#   [cycle](#eigenvectors-of-a-cycle-the-sinusoidal-encoding).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 26` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 26_counting.py` checks yours.
#
# ### Exercise 1: The mean gap
#
# Without binomials: why is the mean gap $(N+1)/(L+1)$? Where is the first position on average?
#
# <details><summary>Hint 1</summary>
#
# Put two more marks at $-1$ and at $N$. How many gaps are there, and what is their sum?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Does any gap have a reason to be larger than another?
#
# </details>
#
# <details><summary>Solution</summary>
#
# The $L+1$ gaps are whole numbers from 1 on with the sum $N+1$, and every such list is one draw. Two
# gaps may be exchanged, so all have the same mean. The first position is the first gap minus 1.
#
# ```python
# rng = np.random.default_rng(0)
# first = np.mean([random_positions(rng, 4, 64)[0] for _ in range(4000)])
# assert abs(first - ((64 + 1) / (4 + 1) - 1)) < 0.6
# ```
#
# </details>
#
# ### Exercise 2: Numbers as people write them
#
# A model's numbers are written forward and that can't be changed. Use `digit_positions` to give the
# units of all numbers row 1. What does a model that writes its answer token by token then not know?
#
# <details><summary>Hint 1</summary>
#
# At which end must the count begin?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Reverse the tokens, and reverse the result.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It must know how long its answer will be before it writes the first digit.
#
# ```python
# tokens = np.array([7, 5, 8, 10, 6, 4])
# places = digit_positions(tokens[::-1], range(10))[::-1]
# assert places.tolist() == [3, 2, 1, 0, 2, 1]
# ```
#
# </details>
#
# ### Exercise 3: A path is a folded cycle
#
# Derive the cosines of the path of $N$ nodes from the cycle of $2N$ nodes.
#
# <details><summary>Hint 1</summary>
#
# Fold the cycle flat, so that node $i$ is on top of node $2N-1-i$. Which nodes are the neighbours of
# node 0?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Which of the cycle's waves are equal on nodes that are on top of each other?
#
# </details>
#
# <details><summary>Solution</summary>
#
# A wave that is even about the folds, $w[i]=w[2N-1-i]$, gives node 0 the neighbour $2N-1$ with its
# own value. That neighbour adds $w[0]-w[0]=0$, as if it weren't there, just as on the path. The even
# waves of the cycle are $\cos(2\pi n(i+\frac12)/2N)$.
#
# ```python
# N, i = 6, np.arange(12)
# ring = path(12) + np.eye(12, k=11) + np.eye(12, k=-11)
# for n in range(1, N):
#     w = np.cos(np.pi * n * (i + 0.5) / N)
#     assert np.allclose(w, w[::-1], rtol=0, atol=1e-12)
#     change = 2 * w - ring @ w
#     folded = np.diag(path(N).sum(axis=1)) @ w[:N] - path(N) @ w[:N]
#     assert np.allclose(change[:N], folded, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 4: An encoding without signs
#
# GraphGPS also offers the probability that a random walk from node $i$ is back after $t$ steps, the
# diagonal of $(d^{-1}A)^t$. Compute it for the molecule and for a cycle. What does it need no
# convention for, and what can it not distinguish?
#
# <details><summary>Hint 1</summary>
#
# A power of a matrix has one value.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Look at atoms 0, 3, 6 and 9.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It has no sign and no basis to choose. But nodes that are mirror images of each other have equal
# encodings, and on a cycle all nodes do.
#
# ```python
# def returns(A, steps):
#     walk = A / A.sum(axis=1, keepdims=True)
#     return np.stack([np.diag(np.linalg.matrix_power(walk, t)) for t in range(1, steps + 1)], axis=1)
# back = returns(molecule, 8)
# assert np.allclose(back[[0, 3, 6, 9]], back[0], rtol=0, atol=1e-12)
# assert np.abs(back[0] - back[1]).max() > 0.01
# assert np.ptp(returns(cycle(9), 8), axis=0).max() < 1e-12
# ```
#
# </details>
#
# ## In practice
#
# | | random positions | Abacus | Laplacian |
# |---|---|---|---|
# | who uses it | research | research | graph transformers |
# | trained | what its host encoding trains | the table; rows above digits + offset stay untrained | a linear layer to the model's width |
# | a cache stores | the drawn positions, of the whole text | the running place | nothing |
# | cost | its host encoding's, by gather; drawn distances stay a line | a vector per token | one eigendecomposition per graph |
# | verdict | cheap reach for small tasks that need order | position may count something else than tokens | position without a line |
#
# - **Draw at test time as well**, and from the same $N$: rows above it stay untrained.
# - **Seed it.** Two runs of a model with drawn positions may give two answers.
# - **Abacus needs tokens that are single digits**, last digit first, with a sign between numbers.
# - **How many eigenvectors?** The authors' settings have 2, 8 or 10, depending on the data set. Their
#   code for molecules calls `eig`; for symmetric matrices `eigh` keeps the vectors orthogonal.
#
# ## Further reading
#
# - Ruoss et al. 2023, *Randomized Positional Encodings Boost Length Generalization of Transformers*,
#   [arXiv:2305.16843](https://arxiv.org/abs/2305.16843), and the
#   [authors' code](https://github.com/google-deepmind/randomized_positional_encodings/tree/e8c6474).
# - McLeish et al. 2024, *Transformers Can Do Arithmetic with the Right Embeddings*,
#   [arXiv:2405.17399](https://arxiv.org/abs/2405.17399).
# - Dwivedi and Bresson 2020, *A Generalization of Transformer Networks to Graphs*,
#   [arXiv:2012.09699](https://arxiv.org/abs/2012.09699), and
#   [their code](https://github.com/graphdeeplearning/graphtransformer/blob/c9cd493/data/molecules.py#L168);
#   GraphGPS collects
#   [more encodings for graphs](https://github.com/rampasek/GraphGPS/blob/2801570/graphgps/transform/posenc_stats.py).
# - Likhomanenko et al. 2021, *CAPE*, [arXiv:2106.03143](https://arxiv.org/abs/2106.03143).
