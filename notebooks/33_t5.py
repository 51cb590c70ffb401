# %% [markdown]
# # 33. T5 relative position bias, and TUPE
#
# *How can 32 numbers per head serve all distances, and what can they not express?*
#
# 50 minutes. Needs [30 From absolute to relative: the four terms of a score](30_expansion.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** T5 adds one learned number to each attention score, and the number depends
# only on the distance between the two words. A separate number for every distance would leave the
# long distances almost untrained. Therefore distances share numbers: near ones have their own,
# distant ones are grouped into buckets. You derive the bucket rule, learn which sign and which
# scale it needs, and see what such a bias can and cannot express. At the end you can port T5's bias
# and test it.

# %% fold="input" alt="T5's buckets over distance as staircases, encoder above and decoder below. Near zero each distance has its own step; further away steps are wider. On a logarithmic axis the wide steps follow a straight line."
import math
import matplotlib.pyplot as plt
import numpy as np
from pe_numpy import attention, attention_blockwise, causal_mask, relative_distance, softmax
from pe_numpy import t5_bias, t5_bucket, tupe_scores, value_and_grad
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import t5 as plots

span, past, line = np.arange(-140, 141), np.arange(1, 261), np.geomspace(1, 260, 400)
curves = {}
for name, both, h in (("encoder", True, 16), ("decoder", False, 32)):
    steps = [t5_bucket(n, bidirectional=both) for n in (span, past)]
    curves[name] = (*steps, h)
plots.bucket_staircases(span, curves, line, max_distance=128)
plt.show()

# %% [markdown]
# ## A learned bias: one number added to a score
#
# The figure shows T5's buckets, that is, groups of distances that share one number. The distance is
# the query's position minus the key's, and each step is one bucket. *Before rounding* is explained
# below.
#
# T5 (Raffel et al. 2020) has an encoder and a decoder. With $i$ for the query's position and $j$
# for the key's, its score is
#
# $$s_{ij}=q_i\cdot k_j+b_{ij}$$
#
# where $b_{ij}$ is called the **relative position bias**. The paper says that each "embedding" is
# "simply a scalar that is added to the corresponding logit". A logit is a score, before the
# softmax. Of the four terms of a score ([chapter 30](30_expansion.ipynb)) the words' product
# remains, the two mixed terms are dropped, and the last becomes a learned number that does not
# depend on the words.
#
# The softmax takes exponentials, so a bias becomes a factor. If $w_{ij}$ are the weights without
# the bias, the weights with it are
#
# $$w'_{ij}=\frac{w_{ij}\exp b_{ij}}{\sum_{j'}w_{ij'}\exp b_{ij'}}$$
#
# A key with $b=0.3$ gains a factor of 1.35 over a key with $b=0$. **Predict** the effect of adding
# the same number, say 7, to every score of a row.

# %% fold="output"
q, k = np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
bias = np.array([[-0.1, 0.3, 0.1]])
before = softmax(q @ k.T)
after = attention(q, k, k, bias=bias, scale=1.0)[1]
seven = softmax(q @ k.T + bias + 7)
for name, w in (("without", before), ("with the bias", after), ("and 7 more", seven)):
    print(f"{name:14}", w.round(4).tolist())
print(f"exp 0.3 = {math.exp(0.3):.2f}")
product = before * np.exp(bias)
assert np.allclose(after, product / product.sum(), rtol=0, atol=1e-12)
assert np.allclose(seven, after, rtol=0, atol=1e-12)

# %% [markdown]
# Nothing changes, because the factor $\exp 7$ appears in the numerator and in the denominator.
#
# ## One number per distance, and why distances share
#
# A number for each pair of positions would be a table as long and as wide as the text. Therefore
# let the number depend only on the distance, since "the previous word" should mean the same
# everywhere. In this book the distance is $i-j$, so the past is positive. In T5's code
# ([tensorflow/mesh,
# da90793](https://github.com/tensorflow/mesh/blob/da907937e68aa421186f1178d71eb5f736fcb069/mesh_tensorflow/transformer/transformer_layers.py))
# it is $j-i$, and the past is negative. Count how many pairs of a text share a distance.

# %%
L = 512
distance = relative_distance(np.arange(L), np.arange(L))
values, pairs = np.unique(distance, return_counts=True)
print("different distances:", len(values))
print("pairs at the distances 1, 100, 511:", [int(pairs[values == n][0]) for n in (1, 100, 511)])
assert len(values) == 2 * L - 1 and np.array_equal(pairs, L - np.abs(values))
assert distance[3, 0] == 3  # query 3, key 0: the past is positive

# %% [markdown]
# A text of 512 tokens shows the distance 1 to the model 511 times and the distance 511 once, so the
# numbers for long distances learn from almost nothing. And a longer text has distances without any
# number. One idea solves both problems: let long distances share. The previous word and the word
# two before play different parts in a sentence. Whether a word is 103 or 104 positions back barely
# matters. That is a belief about language. A group of distances with one number is called a
# **bucket**. Near buckets contain one distance, and distant ones contain many.
#
# ## T5 buckets: the rule, derived
#
# Take only the past, with distances $n=0,1,2,\dots$ Let there be $h$ buckets for it, numbered $0$
# to $h-1$. The first $e=h/2$ contain one distance each. In T5's encoder $h=16$ and $e=8$. In its
# decoder, which needs no buckets for the future, $h=32$ and $e=16$.
#
# From $e$ on, each bucket should be wider than the one before by the same *factor* $r$. So the
# buckets open at $e,\ er,\ er^2,\dots$ There are $h-e$ of them, and T5 wants them to reach a
# distance $M$, its `max_distance`, which is 128:
#
# $$e\,r^{\,h-e}=M\qquad\Longrightarrow\qquad r=\Big(\frac Me\Big)^{1/(h-e)}$$
#
# Distances are whole numbers, so a bucket opens at the next whole number. **Predict** the eight
# opening distances of the encoder: compute $r$, then multiply.

# %% fold="output"
factors, opens = {}, {}
for name, e, h in (("encoder", 8, 16), ("decoder", 16, 32)):
    r = factors[name] = (128 / e) ** (1 / (h - e))
    edges = [e * r**t for t in range(h - e + 1)]
    opens[name] = [math.ceil(round(edge, 9)) for edge in edges[:-1]]  # 16 may be 16.000000000000004
    print(f"{name}: r = {r:.2f}, opens", *opens[name])
    assert math.isclose(edges[-1], 128)
assert math.isclose(factors["encoder"], math.sqrt(2))
assert math.isclose(factors["decoder"], 2 ** (3 / 16))

# %% [markdown]
# In the encoder the distance doubles every two buckets, because $r=\sqrt2$.
#
# Which bucket contains a given $n\ge e$? Let $t$ be the number of factors $r$ that fit between $e$
# and $n$, so that $e\,r^t\le n$. A logarithm counts factors, and rounding down makes it whole. We
# use $\ln r=\ln(M/e)/(h-e)$, and a cap that puts every longer distance into the last bucket:
#
# $$t=\Big\lfloor\log_r\frac ne\Big\rfloor=\Big\lfloor\frac{\ln(n/e)}{\ln(M/e)}\,(h-e)\Big\rfloor$$
#
# $$f(n)=\begin{cases}n&\text{if }n<e\\\min(e+t,\ h-1)&\text{if }n\ge e\end{cases}$$


# %%
def f_by_the_formula(n, h, M=128):
    e = h // 2
    if n < e:
        return n
    return min(e + math.floor(math.log(n / e) / math.log(M / e) * (h - e)), h - 1)


for name, h in (("encoder", 16), ("decoder", 32)):
    opening = [n for n in range(1, 400) if f_by_the_formula(n, h) > f_by_the_formula(n - 1, h)]
    assert opening == [*range(1, h // 2), *opens[name]]

# %% [markdown]
# ### Exact bucket edges in whole numbers (second reading)
#
# A logarithm is rounded, and rounding down right at an edge is delicate: is $\ln 2/\ln 16\cdot 8$
# two, or a little less? Whole numbers do not round. Take $e\,r^t\le n$ to the power $h-e$ and put
# in $r^{h-e}=M/e$:
#
# $$n^{\,h-e}\,e^{\,t}\ge M^{\,t}\,e^{\,h-e}$$
#
# Here is the complete rule in whole numbers. In the encoder there are $h=16$ buckets for each
# direction, and the future takes the upper half.


# %%
def bucket_by_integers(distance, num_buckets=32, M=128, bidirectional=True):
    h = num_buckets // 2 if bidirectional else num_buckets  # buckets of one direction
    first = h if bidirectional and distance < 0 else 0  # the future: the upper half
    n = abs(distance) if bidirectional else max(distance, 0)
    e, t = h // 2, 0
    if n < e:
        return first + n
    while e + t < h - 1 and n ** (h - e) * e ** (t + 1) >= M ** (t + 1) * e ** (h - e):
        t += 1
    return first + e + t


assert [bucket_by_integers(n) for n in range(400)] == [f_by_the_formula(n, 16) for n in range(400)]
assert bucket_by_integers(-90) == 16 + 14 and bucket_by_integers(90, bidirectional=False) == 29

# %% [markdown]
# Does the rounding ever matter? Take nine buckets for the past and $M=128$. Then $e=4$ and $r=2$,
# and a bucket opens at 8 itself. Now compute the formula in float64, and in float32, in which T5's
# code computes, with each step rounded.


# %%
def f_rounded(n, h, M, number):
    """The formula in float64 (`number` is float) or in float32 (np.float32)."""
    e = h // 2
    share = number(math.log(number(n / e))) / number(math.log(M / e))
    return min(e + math.floor(share * number(h - e)), h - 1)


print("ln 2 / ln 32 * 5 =", math.log(2) / math.log(32) * 5)
print("  h    M    n   exact  float64  float32")
found = []
for h, M, n in ((9, 128, 8), (19, 16, 12), (17, 27, 12), (46, 164, 107)):
    exact = bucket_by_integers(n, h, M, bidirectional=False)
    found.append((exact, f_rounded(n, h, M, float), f_rounded(n, h, M, np.float32)))
    print(f"{h:3}{M:5}{n:5}", "{:7}{:9}{:9}".format(*found[-1]))
assert found == [(5, 4, 5), (14, 13, 14), (11, 11, 10), (40, 40, 41)]

# %%
for h, M in ((16, 128), (32, 128), (32, 256), (160, 800)):  # T5, LayoutLMv3 and WavLM
    for n in range(h // 2, 2 * M):
        exact = bucket_by_integers(n, h, M, bidirectional=False)
        assert f_rounded(n, h, M, float) == exact == f_rounded(n, h, M, np.float32)

# %% [markdown]
# A float may therefore open a bucket one distance late, or early (the last row). At the sizes of T5
# and of the models [below](#t5s-bias-in-other-models-mpnet-umt5-layoutlmv3-wavlm) it doesn't, if
# logarithms are rounded to nearest. If you choose other sizes, a model that was trained with one
# rule and runs with the other reads a different number at such a distance.
#
# The package's function gives the exact bucket for whole arrays. There `half` is our $h$, and
# `exact` is $e$. It counts the edges $e\,r^t$ that a distance reaches. It compares powers only
# where an edge is so near to a whole number that rounding could decide. (`each_distance` computes
# each distance once, [chapter 30](30_expansion.ipynb).)

# %%
from pe_numpy.relative.distance import edges_reached, first_beyond

show_source(edges_reached, first_beyond)

# %%
show_source(t5_bucket)
everything = np.arange(-300, 301)
sizes = [(32, 128), (16, 20), (64, 128), (32, 256), (8, 8), (18, 128), (36, 32)]
sizes = [(N, M, both) for N, M in sizes for both in (True, False)]
for N, M, both in (*sizes, (9, 128, False), (38, 16, True)):
    expected = [bucket_by_integers(int(d), N, M, both) for d in everything]
    assert t5_bucket(everything, N, M, both).tolist() == expected

# %% [markdown]
# ### T5 bucket tables for 32 buckets and max_distance 128
#
# The package's function is `t5_bucket`. The cell prints which distances each bucket contains, in
# one direction of the encoder and in the decoder:

# %%
spans = {}
for name, h in (("encoder", 16), ("decoder", 32)):
    buckets = t5_bucket(np.arange(1000), bidirectional=name == "encoder")
    ends = [np.flatnonzero(buckets == row)[[0, -1]] for row in range(h)]
    spans[name] = [f"{a}" if a == z else f"{a}-{z}" for a, z in ends[:-1]] + [f"{ends[-1][0]}-"]
    print(f"{name}, from bucket {h // 2} on:", *spans[name][h // 2 :])
alone = " ".join(map(str, range(16)))
assert spans["encoder"] == f"{alone[:15]} 8-11 12-15 16-22 23-31 32-45 46-63 64-90 91-".split()
near = "16-18 19-20 21-23 24-26 27-30 31-34 35-39 40-45"
far = "46-51 52-58 59-66 67-76 77-86 87-98 99-112 113-"
assert spans["decoder"] == f"{alone} {near} {far}".split()

# %% [markdown]
# In the encoder, the distances 0 to 7 have their own buckets, and further buckets open at 8, 12,
# 16, 23, 32, 46, 64 and 91. In the decoder, 0 to 15 have their own buckets, and further buckets
# open at 16, 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99 and 113.
#
# The figure at the top shows them. On its logarithmic axis the steps from $e$ on are about equally
# wide. Except for rounding, their edges lie on the dashed line $e+(h-e)\ln(n/e)/\ln(M/e)$.
#
# ### max_distance is not a cut-off
#
# That dashed line reaches $h$ exactly at 128. But bucket $h$ does not exist. The last bucket is
# $h-1$, and it opens one factor $r$ earlier, at 91 in the encoder and at 113 in the decoder. The
# paper says that the ranges grow "up to an offset of 128 beyond which we assign all relative
# positions to the same embedding". **A common mistake** is to leave out the cap. Then the distance
# 128 falls into bucket 16, which is not the past any more, and 182 reads the number of the *next
# word*. huggingface/candle had to add the cap (PR #1312).

# %%
far = (90, 91, 127, 128, 182)
print("without the cap:", {n: 8 + math.floor(math.log(n / 8) / math.log(16) * 8) for n in far})
print("with it:        ", {n: int(t5_bucket(n)) for n in far}, " next word:", t5_bucket(-1))
assert t5_bucket(far).tolist() == [14, 15, 15, 15, 15] and t5_bucket(-1) == 17

# %% [markdown]
# ## Bidirectional and causal buckets
#
# In an encoder a query sees both sides, and the previous word is not the next word. T5 gives each
# side half of the buckets:
#
# $$\text{bucket}(i-j)=f(|i-j|)+\begin{cases}0&\text{if }i-j\ge0\ \text{(past, itself)}\\h&\text{if }i-j<0\ \text{(future)}\end{cases}$$
#
# **Predict** which of the 32 rows of the table is read by no distance at all.

# %% fold="output"
both = t5_bucket(everything).tolist()
assert both == [f_by_the_formula(abs(d), 16) + 16 * (d < 0) for d in everything]
print("one back:", t5_bucket(1), "  itself:", t5_bucket(0), "  one ahead:", t5_bucket(-1))
unread = sorted(set(range(32)) - set(both))
print("rows that no distance reads:", unread)
assert t5_bucket([1, 0, -1]).tolist() == [1, 0, 17] and unread == [16]
assert not t5_bucket(-past, bidirectional=False).any()  # a decoder's future: bucket 0, and masked

# %% [markdown]
# Row 16 would be the future at distance 0, and there is no such thing. So the encoder uses 31 of
# its 32 numbers: rows 0 to 15 for the past and the token itself, rows 17 to 31 for the future. The
# decoder puts its whole future into bucket 0, which its causal mask hides.
#
# ### A common mistake: the wrong sign puts all keys in one bucket
#
# The mistake is to give $i-j$ to a formula that T5 wrote for $j-i$, or the other way round. In the
# encoder, past and future then change places. In the decoder every key that the query may see lands
# in bucket 0. What remains of the bias is one number $b_0$ for all visible keys of a row, and that
# does nothing:
#
# $$\mathrm{softmax}_j\,(s_{ij}+b_0)=\mathrm{softmax}_j\,(s_{ij})$$
#
# To test it, draw the table again, and compare the outputs of attention.

# %%
at = np.arange(6)
six, mask = relative_distance(at, at), causal_mask(at, at)
q, k, v = np.random.default_rng(0).standard_normal((3, 4, 6, 8))  # (H, L, K) each
visible = np.where(mask, q @ k.swapaxes(1, 2), -np.inf)
assert np.allclose(softmax(visible + 2.5), softmax(visible), rtol=0, atol=1e-12)
no_position = attention(q, k, v, mask)[0]
for name, d in (("right sign", six), ("wrong sign", -six)):
    for seed in (1, 2):
        table = np.random.default_rng(seed).standard_normal((32, 4))  # (N, H)
        output = attention(q, k, v, mask, t5_bias(table, d, bidirectional=False))[0]
        silent = np.allclose(output, no_position, rtol=0, atol=1e-12)
        print(f"{name}, table {seed}: as without a bias: {silent}")
        assert silent == (name == "wrong sign")

# %% alt="Four 6 by 6 matrices of bucket numbers, encoder and decoder, each with the right and the wrong sign. In the encoder, past and future are exchanged. The decoder with the wrong sign has zeros in all visible cells."
matrices = {}
for name in ("encoder", "decoder"):
    for sign, d in (("", six), (", wrong sign", -six)):
        matrices[name + sign] = t5_bucket(d, bidirectional=name == "encoder")
assert not matrices["decoder, wrong sign"][mask].any()
assert np.array_equal(matrices["encoder, wrong sign"], matrices["encoder"].T)
plots.bucket_matrices(matrices, hidden=~mask)
plt.show()

# %% [markdown]
# What remains is a model without positions. It trains, because its causal mask carries some
# position ([chapter 11](11_why_position.ipynb)). No error is raised, and no shape is wrong. The
# only sign is a loss that is too high when order matters. The test above catches it: draw the table
# again, and require that the output changes.
#
# ## The bias table: from buckets to scores
#
# The table has one row for each bucket and one column for each head, because heads look for
# different things. Each pair $(i,j)$ finds its bucket, and each head reads its column:
#
# $$b^{\,\text{head}}_{ij}=\text{table}\big[\text{bucket}(i-j),\,\text{head}\big]$$

# %%
show_source(t5_bias)
table = np.random.default_rng(3).standard_normal((32, 3))
queries, keys = np.array([7, 8, 9, 3]), np.arange(5)  # any positions, in any order
for both in (True, False):
    bias = t5_bias(table, relative_distance(queries, keys), bidirectional=both)
    for head, row, column in np.ndindex(3, 4, 5):
        a = bucket_by_integers(int(queries[row] - keys[column]), bidirectional=both)
        assert bias[head, row, column] == table[a, head]
looked_up = table[t5_bucket(six)]  # (L, S, H)
heads_first = np.moveaxis(looked_up, -1, 0)[None]  # (1, H, L, S)
print("\nshapes:", six.shape, looked_up.shape, heads_first.shape[1:], heads_first.shape)
assert np.array_equal(heads_first[0], t5_bias(table, six)) and heads_first.shape == (1, 3, 6, 6)

# %% [markdown]
# The matrix of bucket numbers is the same after each training step, but the bias is not. If you
# cache one of the two, cache the bucket numbers.
#
# ## What 32 buckets can express
#
# Suppose that a head needs the bias $g(n)$ at every distance $n$. Each bucket allows one number.
# The number with the least sum of squared errors over the distances of a bucket is their mean. For
# bucket $a$:
#
# $$b_a=\frac{1}{|\{n:f(n)=a\}|}\sum_{n:\,f(n)=a}g(n)$$
#
# **Predict** which of four functions 32 numbers can express: fall in proportion to the distance (as
# in ALiBi, [chapter 35](35_alibi.ipynb)), fall with its logarithm, look exactly three back, or look
# exactly forty back.

# %% fold="output"
n = np.arange(160)
bucket = t5_bucket(n, bidirectional=False)
wishes = {
    "a line, $-n/16$": -n / 16,
    "a logarithm, $-\\ln(1+n)$": -np.log(1 + n),
    "exactly 3 back": np.where(n == 3, 0.0, -4.0),
    "exactly 40 back": np.where(n == 40, 0.0, -4.0),
}
fits = {name: (np.bincount(bucket, g) / np.bincount(bucket))[bucket] for name, g in wishes.items()}
errors = {name: np.abs(fits[name] - g)[:113].max() for name, g in wishes.items()}
for name, g in wishes.items():
    assert np.allclose(np.bincount(bucket, fits[name] - g), 0, rtol=0, atol=1e-9)  # the mean
    print(f"largest error up to 112, {name.partition(',')[0]:15} {errors[name]:.3f}")

# %% alt="Four target biases over the distance, and the staircase that T5's buckets can make of each. The line and the logarithm are followed, three back is exact, and forty back is spread over six distances."
by_name = list(errors.values())
assert by_name[2] == 0 and by_name[1] < by_name[0] < by_name[3]
plots.wishes_and_fits(n, wishes, fits)
plt.show()

# %% [markdown]
# The logarithm is the function that these buckets are made for. The buckets follow the line in
# growing steps. "Exactly three back" is exact, and "exactly forty back" is out of reach, because 40
# shares its bucket with 41 to 45. That is less of a loss than it seems. The paper notes that later
# layers can tell far distances apart "by combining local information from previous layers";
# exercise 3 does it.
#
# ## Gradients of shared buckets
#
# How does a shared number learn? Train one head without content: its scores are 0, and only the
# bias decides. It should attend to the previous word. The loss of query $i$ is $-\ln w_{i,i-1}$,
# the surprise at the word before. A number that appears in many scores collects a gradient from all
# of them. The chain rule gives
#
# $$\frac{\partial\,\text{loss}}{\partial b_a}=\sum_{(i,j):\ \text{bucket}(i-j)=a}\frac{\partial\,\text{loss}}{\partial s_{ij}}$$
#
# For the softmax, the gradient with respect to the scores is the weights, minus 1 at the target,
# here divided by the number of queries. `value_and_grad` finds the gradient by going through the
# package's functions ([chapter 61](61_autodiff.ipynb)).

# %%
L = 64
distance = relative_distance(np.arange(L), np.arange(L))


def loss(table):
    weights = softmax(t5_bias(table, distance)[0])  # (L, S), of one head
    return -np.log(weights[np.arange(1, L), np.arange(L - 1)]).mean()


gradient = value_and_grad(loss)(np.zeros((32, 1)))[1]
by_pair = np.full((L, L), 1 / L)  # the weights at the start
by_pair[np.arange(1, L), np.arange(L - 1)] -= 1
by_pair[0] = 0  # query 0 has no word before it
by_hand = np.bincount(t5_bucket(distance).ravel(), (by_pair / (L - 1)).ravel(), minlength=32)
assert np.allclose(gradient[:, 0], by_hand, rtol=0, atol=1e-12)

# %%
learned = np.zeros((32, 1))
for _ in range(300):
    learned = learned - 5.0 * value_and_grad(loss)(learned)[1]
weight = softmax(t5_bias(learned, distance)[0])[5, 4]
untouched = np.flatnonzero(learned[:, 0] == 0).tolist()
print(f"weight of the word before, at the start {1 / L:.3f}, after 300 steps {weight:.2f}")
print("rows that no step has changed:", untouched)
assert weight > 0.95 and learned.argmax() == 1 and untouched == [14, 15, 16, 30, 31]

# %% [markdown]
# We know row 16 already. But texts of 64 tokens do not contain distances of 64 and more, so rows
# 14, 15, 30 and 31 keep their initial values. A text of 200 tokens still reads them all. So **T5's
# bias is defined for every length, and trained only if the training texts reach the last bucket**,
# 91 in the encoder, 113 in the decoder. T5 was trained on 512 tokens.
#
# The next figure counts how many pairs train each number in the decoder.

# %% alt="Number of pairs that train each number, with one number per distance and with 32 buckets, for sequences of 64 and 512 tokens. Distant single distances get few pairs; distant buckets get many, or none at 64 tokens."
counts = {}
for length in (512, 64):
    n = np.arange(length)
    pairs = length - n  # how often each distance of the past occurs
    counts[length] = pairs, np.bincount(t5_bucket(n, bidirectional=False), pairs, minlength=32)
by_bucket = counts[512][1]
print(f"512 tokens: fewest pairs {by_bucket.min():.0f}, last {by_bucket[31] / by_bucket.sum():.0%}")
assert counts[512][0].min() == 1 and by_bucket.min() == 497 and (counts[64][1] == 0).sum() == 5
plots.pairs_per_number(counts)
plt.show()

# %% [markdown]
# With one number for each distance, the most distant one gets one pair in a text of 512. With
# buckets, none gets fewer than 497. The price is that 61% of the pairs are in the last bucket.
#
# ## T5's bias in attention
#
# ### T5 does not divide by the square root of the head dimension
#
# Attention divides the product $q\cdot k$ by $\sqrt K$ ($K=d_k$, the head dimension), so that
# scores of random vectors have variance 1 ([chapter 10](10_attention.ipynb)). T5 does not. Its
# $W_q$ is initialised smaller by a factor of $\sqrt K$, and the bias is added to the undivided
# product. Both ways can compute the same function. Let $x$ be a token vector, as a row:
#
# $$\frac{(x_iW_q)\cdot(x_jW_k)}{\sqrt K}+b=\Big(x_i\,\frac{W_q}{\sqrt K}\Big)\cdot(x_jW_k)+b$$

# %%
D, K, L = 512, 64, 200
rng = np.random.default_rng(9)
x, W_q, W_k = rng.standard_normal((L, D)), *rng.standard_normal((2, D, K)) / math.sqrt(D)
divided = (x @ W_q) @ (x @ W_k).T / math.sqrt(K)
folded = (x @ (W_q / math.sqrt(K))) @ (x @ W_k).T
spreads = [scores.std() for scores in (divided * math.sqrt(K), divided, folded)]
print("spread of scores: as they are {:.0f}, divided {:.0f}, folded {:.0f}".format(*spreads))
assert np.allclose(divided, folded, rtol=0, atol=1e-12)
assert math.isclose(spreads[2], 1, abs_tol=0.1)

# %% [markdown]
# At the start the two are the same function. Training differs, because a step of equal size moves a
# small $W_q$ relatively more. And trained weights must not be exchanged between the two. Put T5's
# matrices into attention that divides, and all products shrink by $\sqrt K=8$ while the bias does
# not change, so position outweighs the words. Multiply their $W_q$ by $\sqrt K$, or give the
# package's `attention` the scale 1.

# %%
q, k, v = rng.standard_normal((3, 1, 6, 64)) / 64**0.25  # trained so that q.k needs no division
b = t5_bias(np.random.default_rng(5).standard_normal((32, 1)), six)
right, wrong = (attention(q, k, v, bias=b, scale=scale)[1] for scale in (1.0, None))
apart = [np.abs(weights - softmax(b)).mean() for weights in (right, wrong)]  # from the bias alone
print("mean effect of the words on a weight: {:.2f} as trained, {:.2f} divided".format(*apart))
assert apart[1] < 0.3 * apart[0]

# %% [markdown]
# ### One bias table for all layers
#
# In T5 all layers of the encoder share one table, and all layers of the decoder another. With 12
# heads, each has $32\cdot12=384$ numbers. The paper's reason is efficiency: the bias is computed
# once and reused in every layer.
#
# Cross-attention, where the decoder looks at the encoder's output, has no bias. There the query is
# in one text and the key in another: position 5 of a translation is not "two after" position 3 of
# the original. (Hugging Face's port once had one, which changed the results very little:
# huggingface/transformers PR #8518.)
#
# ### A common mistake: a KV cache without its offset
#
# Code that builds bias and mask from two *lengths* puts the newest query of a decoder with a cache
# ([chapter 63](63_decoding.ipynb)) at position 0, where it sees only the oldest key.
# [Chapter 35](35_alibi.ipynb) explains this mistake. The missing offset is the number of keys less
# the number of queries, here with six keys and one query $6-1=5$.

# %%
q, k, v = np.random.default_rng(3).standard_normal((3, 8, 6, 32))
table = np.random.default_rng(1).standard_normal((32, 8))
full = attention(q, k, v, mask, t5_bias(table, six, bidirectional=False))[0]
for position in (0, 5):  # the position that the newest query is given
    d = relative_distance([position], at)
    bias = t5_bias(table, d, bidirectional=False)
    output, weights = attention(q[:, 5:], k, v, causal_mask([position], at), bias)
    print(f"at position {position}: weights of head 0 {weights[0, 0].round(2).tolist()}")
    assert np.allclose(output, full[:, 5:], rtol=0, atol=1e-12) == (position == 5)
assert t5_bucket(d, bidirectional=False).tolist() == [[5, 4, 3, 2, 1, 0]]
moved = t5_bias(table, relative_distance(at + 1000, at + 1000), bidirectional=False)
assert np.array_equal(
    moved, t5_bias(table, six, bidirectional=False)
)  # all positions shifted: the same bias

# %% [markdown]
# ## Length extrapolation with T5's bias
#
# Bucket 31 contains all keys that are 113 or more positions back. These are 15 keys at the end of
# 128 tokens, and nearly all keys at the end of a hundred thousand. Take a head whose scores are all
# equal except for the bias, with the table that comes nearest to ALiBi's line $-n/32$ over the
# distances 0 to 159. How much of its weight goes to keys at 113 and beyond? With $Z$ for the sum of
# $\exp b$ over the 113 nearer keys, and a query at the end of $L$ tokens:
#
# $$\text{far share}=\frac{(L-113)\,\exp b_{31}}{Z+(L-113)\,\exp b_{31}}\xrightarrow{\,L\to\infty\,}1$$
#
# $Z$ does not grow, and the other term does, regardless of the number $b_{31}$. ALiBi's far share
# tends to $\exp(-113/32)$, because its terms form a geometric series.

# %% alt="Share of the weight on keys at distance 113 and beyond, against the length of the sequence on a logarithmic axis. The share of T5 climbs towards 1; that for ALiBi stays below 0.03."
n = np.arange(1 << 17)
bucket = t5_bucket(n, bidirectional=False)
like_alibi = np.bincount(bucket[:160], -n[:160] / 32) / np.bincount(bucket[:160])  # means again
Z, far = np.exp(like_alibi[bucket[:113]]).sum(), math.exp(like_alibi[31])
lengths = np.unique(np.geomspace(114, len(n), 60).astype(int))
t5_share = (lengths - 113) * far / (Z + (lengths - 113) * far)
direct = [softmax(like_alibi[bucket[:length]])[113:].sum() for length in lengths]
alibi_share = np.array([softmax(-n[:length] / 32)[113:].sum() for length in lengths])
print(f"at {len(n):,} tokens: T5 {t5_share[-1]:.2f}, ALiBi {alibi_share[-1]:.3f}")
assert np.allclose(direct, t5_share, rtol=0, atol=1e-12) and (np.diff(t5_share) > 0).all()
assert t5_share[-1] > 0.95 and (alibi_share < 0.03).all()
assert np.isclose(alibi_share.max(), math.exp(-113 / 32), rtol=0, atol=1e-12)
plots.far_share(lengths, {"t5": t5_share, "alibi": alibi_share})
plt.show()

# %% [markdown]
# What is proved here is small: with *equal* scores the far keys win in the end, no matter how low
# their number. With real contents the dot products matter too. As long as they are bounded, the
# limit is the same. Press et al. 2022 (sections 2 and 4) measured trained models. Trained short and
# tested long, T5's bias extrapolated better than sinusoids and RoPE, but worse than ALiBi. Its
# training took at least twice as long as with sinusoids. [Chapter 71](71_study.ipynb) trains all of
# them.
#
# ## TUPE: untie positions from words
#
# T5 dropped the absolute position. TUPE (Ke et al. 2021) keeps it, and draws a different conclusion
# from the four terms. Adding a position vector to a word vector sends both through the same
# matrices $W_q$, $W_k$, though words and positions have little in common. TUPE therefore gives
# positions their own matrices $U_q$, $U_k$, and drops the mixed terms, as T5 does:
#
# $$s_{ij}=\frac{(x_iW_q)\cdot(x_jW_k)}{\sqrt{2K}}+\frac{(p_iU_q)\cdot(p_jU_k)}{\sqrt{2K}}$$
#
# Why $2K$? Two independent products of width $K$ have twice the variance of one
# ([chapter 30](30_expansion.ipynb#one-scale-for-all-terms-why-more-terms-need-a-larger-divisor)):
#
# $$\mathrm{var}\big((x_iW_q)\cdot(x_jW_k)+(p_iU_q)\cdot(p_jU_k)\big)=K+K=2K$$

# %%
q, k, pq, pk = np.random.default_rng(10).standard_normal((4, 1, 400, 64))  # projected, one head
words, places = q[0] @ k[0].T, pq[0] @ pk[0].T
both = words + places
print(f"variance / K: one product {words.var() / 64:.1f}, both {both.var() / 64:.1f}")
assert math.isclose(words.var(), 64, rel_tol=0.05) and math.isclose(both.var(), 128, rel_tol=0.05)
expected = both / math.sqrt(2 * 64)
assert np.allclose(tupe_scores(q, k, pq, pk)[0], expected, rtol=0, atol=1e-12)
show_source(tupe_scores)

# %% [markdown]
# With T5's bias added the paper calls it TUPE-R (relative), without it TUPE-A (absolute). The
# position term is the same for every text, so it is computed once and shared by all layers, like
# T5's table. It is *not* constant along diagonals, because it depends on where a pair is, not only
# on how far apart it is. And it is a product of narrow matrices, so its rank is at most $K$. T5's
# bias has no such limit.

# %%
L, K, D = 24, 8, 32
P = rng.standard_normal((L, D))  # a learned vector for each position
pq, pk = (P @ U for U in rng.standard_normal((2, 1, D, K)) / math.sqrt(D))  # (H, L, K)
x, zero = rng.standard_normal((1, L, K)), np.zeros((1, L, K))
position = tupe_scores(zero, zero, pq, pk)[0]
relative = t5_bias(rng.standard_normal((32, 1)), relative_distance(np.arange(L), np.arange(L)))[0]
for name, term in (("TUPE's position term", position), ("T5's bias", relative)):
    diagonals = np.allclose(term[1:, 1:], term[:-1, :-1], rtol=0, atol=1e-12)
    print(f"{name:21} constant along diagonals: {diagonals!s:5}  rank", np.linalg.matrix_rank(term))
    assert diagonals == (term is relative)
assert np.linalg.matrix_rank(position) == K and np.linalg.matrix_rank(relative) > K

# %% [markdown]
# ### TUPE's reset of the [CLS] token (second reading)
#
# BERT-like models put a token [CLS] in front of the text. Its output represents the whole text, so
# it should not prefer the first words only because they are next to it. TUPE **resets** what
# position contributes to it. Let $u_{ij}$ be all that does not come from words: the position
# product and, in TUPE-R, the bias. With [CLS] at position 0, and two learned numbers $\theta_1$,
# $\theta_2$,
#
# $$\mathrm{reset}(u)_{ij}=\begin{cases}\theta_1&i=0\ \text{(from [CLS])}\\\theta_2&i\ne0,\ j=0\ \text{(to [CLS])}\\u_{ij}&\text{otherwise}\end{cases}$$
#
# With `tupe_scores` this takes no new function: the reset position part goes in as the bias, beside
# positions of zero. (In guolinke/TUPE, commit 4c64ff7, each head has its own two numbers, each the
# product of a position with itself. With T5's buckets two more are added; one of them is in row 16,
# the row that no distance reads.)

# %%
theta_1, theta_2 = 0.8, -1.2
reset = position + relative
reset[0], reset[1:, 0] = theta_1, theta_2
total = tupe_scores(x, x, zero, zero, bias=reset[None])[0]
plain = tupe_scores(x, x, pq, pk, relative[None])[0]  # TUPE-R, no reset
words = x[0] @ x[0].T / math.sqrt(2 * K)
for i, j in np.ndindex(L, L):
    u = theta_1 if i == 0 else theta_2 if j == 0 else plain[i, j] - words[i, j]
    assert math.isclose(total[i, j], words[i, j] + u, abs_tol=1e-12)
assert np.ptp(softmax(reset[0])) < 1e-12  # [CLS] prefers no place

# %% alt="Four heat maps: the product of words, the product of positions, T5's bias, and the position part after the reset. The product of positions has no diagonal pattern, the bias has one, and the reset row and column are uniform."
names = ["words", "positions", "T5's bias (TUPE-R)", "position part, reset"]
plots.tupe_parts(dict(zip(names, (words, position, relative, reset), strict=True)))
plt.show()

# %% [markdown]
# The numbers are random, so only the structure matters. Like every table of positions, TUPE's is
# undefined beyond its last vector ([chapter 21](21_learned.ipynb)).

# %% [markdown]
# ## In short
#
# - **Which sign does the bucket function take?** T5's code takes $j-i$, key minus query.
#   `t5_bucket` takes $i-j$, query minus key. With the wrong sign a decoder puts all keys that it
#   may see into bucket 0.
#   [The wrong sign](#a-common-mistake-the-wrong-sign-puts-all-keys-in-one-bucket).
# - **Bidirectional or causal?** The encoder is bidirectional, with half of the 32 rows for each
#   side. Row 16 is never read. The decoder (`bidirectional=False`) uses all 32 for the past.
#   [Directions](#bidirectional-and-causal-buckets).
# - **What happens beyond `max_distance`?** Nothing happens at 128. From 91 on (decoder: 113) all
#   distances share the last bucket. If the training texts are shorter, its number is untrained.
#   [max_distance](#max_distance-is-not-a-cut-off), [untrained rows](#gradients-of-shared-buckets).
# - **Does T5 divide its scores by $\sqrt{d_k}$?** No. $W_q$ is initialised smaller by that factor.
#   Code that divides needs T5's $W_q$ times $\sqrt{d_k}$. [No
#   division](#t5-does-not-divide-by-the-square-root-of-the-head-dimension).
# - **Does TUPE divide its scores by $\sqrt{d_k}$?** No, by $\sqrt{2d_k}$. Positions have their own
#   projections, so two products are added. [TUPE](#tupe-untie-positions-from-words).
# - **Does each layer have a table?** No. One table of 32 numbers per head serves all layers of the
#   encoder, another all layers of the decoder. Cross-attention has none.
#   [One table](#one-bias-table-for-all-layers),
#   [other models](#t5s-bias-in-other-models-mpnet-umt5-layoutlmv3-wavlm).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 33` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 33_t5.py` checks yours.
#
# ### Exercise 1: T5 buckets by hand
#
# A small encoder has 8 buckets in all and `max_distance` 16. Write down the buckets of the
# distances 0 to 20. What is $r$?
#
# <details><summary>Hint 1</summary>
#
# There are four buckets for each direction, two of them exact.
#
# </details>
# <details><summary>Hint 2</summary>
#
# $r=(16/2)^{1/2}=2\sqrt2$, so the shared buckets open at 2 and at $2r$.
#
# </details>
# <details><summary>Solution</summary>
#
# $2r$ is between 5 and 6. Distances 0 and 1 have their own buckets, then 2 to 5 share one, then all
# from 6 on.
#
# ```python
# mine = [0, 1, 2, 2, 2, 2] + [3] * 15
# assert t5_bucket(range(21), num_buckets=8, max_distance=16).tolist() == mine
# ```
#
# </details>
#
# ### Exercise 2: Load a bias table across two conventions
#
# You have T5's trained table for its encoder, and code with the halves swapped: it reads row
# $(a+16)\bmod 32$ where T5 reads row $a$. What do you do to the table?
#
# <details><summary>Hint 1</summary>
#
# Do you move the rows, or change the sign of the distance?
#
# </details>
# <details><summary>Hint 2</summary>
#
# One of the two misses the query itself.
#
# </details>
# <details><summary>Solution</summary>
#
# Roll the rows by 16. Changing the sign swaps past and future, and leaves the query itself at row 16.
#
# ```python
# trained = np.random.default_rng(7).standard_normal((32, 2))
# swapped = (t5_bucket(six) + 16) % 32
# assert np.array_equal(np.roll(trained, 16, axis=0)[swapped], trained[t5_bucket(six)])
# negated = trained[(t5_bucket(-np.array(six)) + 16) % 32]
# wrong = (negated != trained[t5_bucket(six)]).any(axis=-1)
# assert np.array_equal(wrong, np.eye(6, dtype=bool))  # the diagonal alone
# ```
#
# </details>
#
# ### Exercise 3: Attend forty back in three layers
#
# In a decoder, 15 is the longest distance with its own bucket. Build three layers of attention,
# using only the bias, whose product looks exactly 40 back.
#
# <details><summary>Hint 1</summary>
#
# A large number in row $n$ makes a head look exactly $n$ back, for $n\le15$.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Weights of layers multiply like matrices: $15+15+10=40$.
#
# </details>
# <details><summary>Solution</summary>
#
# It works from position 40 on, because earlier queries have no key 40 positions back.
#
# ```python
# p = np.arange(100)
# mask, steps = causal_mask(p, p), relative_distance(p, p)
#
# def look_back(n):
#     hard = np.zeros((32, 1))
#     hard[n] = 60.0
#     return softmax(np.where(mask, t5_bias(hard, steps, bidirectional=False)[0], -np.inf))
#
# together = look_back(15) @ look_back(15) @ look_back(10)
# exactly = np.eye(100)[:60]  # query 40 reads key 0, query 41 key 1, ...
# assert np.allclose(together[40:], exactly, rtol=0, atol=1e-9)
# ```
#
# </details>

# %% [markdown]
# ## In practice
#
# **A table to compare with.** A port of T5 went wrong in the buckets, and its author printed what
# the encoder's buckets of ten tokens should be (ml-explore/mlx-examples PR #113). Compare your
# matrix with it before anything else: the first row looks ahead, the last back.
#
# **Low precision.** bfloat16 keeps 8 significant bits, so each step of the logarithm is off by up
# to 0.4%, and distances near an edge change their bucket. A port to MindSpore takes the logarithm
# in float32, "to align with the PyTorch implementation" (mindspore-lab/mindone PR #670). The next
# cell prints the ten tokens, then imitates bfloat16 by rounding after each step.


# %%
def bfloat16(x):
    """Round float32 to the 8 significant bits of bfloat16, to nearest."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


ten = t5_bucket(relative_distance(np.arange(10), np.arange(10)))
print(ten[0].tolist(), ten[-1].tolist())
n = np.arange(8, 128)
growth = bfloat16(bfloat16(np.log(n / 8)) / bfloat16(math.log(16)))
low = np.minimum(8 + np.floor(bfloat16(growth * 8)).astype(int), 15)
wrong = {int(d): (int(a), int(b)) for d, a, b in zip(n, low, t5_bucket(n), strict=True) if a != b}
print("distance: (bfloat16, right)", wrong)
assert wrong == {45: (13, 12), 90: (15, 14)} and ten[0, -1] == 24 and ten[-1, 0] == 8
assert bfloat16(1 + 2**-8) == 1 and round(100 * 2**-8, 1) == 0.4  # per cent

# %% [markdown]
# **Long texts.** A bias of shape $(H,L,S)$ is as large as the scores. FlashAttention 2 takes no
# bias except ALiBi's; in Transformers T5 runs in other fused kernels ([PR
# #47014](https://github.com/huggingface/transformers/pull/47014)). Attention in blocks computes the
# bias block by block: `attention_blockwise` ([chapter 12](12_attention_blocks.ipynb)) takes a
# function of distances.

# %%
q, k, v = np.random.default_rng(6).standard_normal((3, 8, 6, 16))
by_blocks = attention_blockwise(q, k, v, bias=lambda d: t5_bias(table, d), block=2)
assert np.allclose(by_blocks, attention(q, k, v, bias=t5_bias(table, six))[0], rtol=0, atol=1e-12)

# %% [markdown]
# ### T5's bias in other models: MPNet, UMT5, LayoutLMv3, WavLM
#
# All of these have our buckets, computed from $j-i$:
#
# | where | what differs from `t5_bias` with divided scores |
# |---|---|
# | Hugging Face T5, mT5 | scores undivided; the one table is in block 0 |
# | UMT5 | scores undivided; a table in every layer |
# | T5X, flaxformer (399ea3a) | scores undivided; the table is $(H,32)$, and an epsilon in the logarithm is without effect |
# | x-transformers (9252ed7) | the bias times $\sqrt K$ |
# | MPNet | nothing |
# | LayoutLMv3 | The bias is also divided by $\sqrt K$. The table is $(H,32)$. Two more tables, 64 buckets up to 256, serve the left and the bottom edges of boxes. |
# | WavLM | There are 320 buckets up to 800. Each query and head multiplies its row of the bias by $g=\sigma(\alpha)(\sigma(\beta)\,c-1)+2$, with $\alpha$, $\beta$ from the token and $c$ trained from 1. At $\alpha=\beta=0$ and $c=1$ the gate $g$ is 1.75. |

# %%
H, K = 3, 16
rng = np.random.default_rng(8)
theirs, (q, k) = rng.standard_normal((32, H)), rng.standard_normal((2, H, 6, K))
b = np.array([[theirs[bucket_by_integers(i - j)] for j in range(6)] for i in range(6)])
b, product, root = np.moveaxis(b, -1, 0), q @ k.swapaxes(1, 2), math.sqrt(K)
converted = {  # their scores; our queries and table
    "T5, mT5, UMT5": (product + b, root * q, theirs),
    "T5X": (product + b, root * q, theirs.T.copy().T),  # stored as (H, 32)
    "x-transformers": (product / root + root * b, q, root * theirs),
    "MPNet": (product / root + b, q, theirs),
    "LayoutLMv3, text": ((product + b) / root, q, theirs.T.copy().T / root),  # (H, 32), too
}
for scores, ours, table in converted.values():
    weights = attention(ours, k, k, bias=t5_bias(table, six))[1]
    assert np.allclose(weights, softmax(scores), rtol=0, atol=1e-12)

# %%
n = np.arange(8, 1000, dtype=np.float32)
growth = np.log(n / 8 + np.finfo(np.float32).eps) / np.float32(math.log(128 / 8)) * 8  # T5X
assert np.array_equal(np.minimum(8 + growth.astype(int), 15), t5_bucket(n.astype(int)))
left, of_x = np.array([31, 400, 90]), rng.standard_normal((64, H))  # edges of three boxes
pair = of_x[bucket_by_integers(31 - 400, 64, 256)]
assert np.array_equal(t5_bias(of_x, relative_distance(left, left), 256)[:, 0, 1], pair)


def gate(alpha, beta, c):
    return (c / (1 + math.exp(-beta)) - 1) / (1 + math.exp(-alpha)) + 2


print("WavLM's gate for alpha = beta = 0, c = 1:", gate(0.0, 0.0, 1.0))
assert gate(0.0, 0.0, 1.0) == 1.75 and 1 < gate(9.0, -9.0, 1.0) < gate(-9.0, 9.0, 1.0) < 2

# %% [markdown]
# **A table that does not train.** To make LayoutLMv2 and v3 fast again, huggingface/transformers
# [PR #30988](https://github.com/huggingface/transformers/pull/30988) (2024) put the look-up under
# `torch.no_grad()`, since indices "remain constant throughout training". The indices are constant,
# but the values that they read are not. Run in version 5.23.0, the three tables of LayoutLMv3 still
# get no gradient. The loss still falls, because the other parameters train. To test it, change a
# number, and check that the gradient agrees with the change of the loss.

# %%
table = np.zeros((32, 1))
moved = table + 1e-4 * (np.arange(32) == 1)[:, None]
slope = (loss(moved) - loss(table)) / 1e-4
for name, f in (("look-up on the tape", loss), ("look-up outside of it", lambda _: loss(table))):
    found = value_and_grad(f)(table)[1][1, 0]
    print(f"{name:21} gradient {found:6.3f}, slope {slope:6.3f}")
    assert math.isclose(found, slope, abs_tol=1e-3) == (f is loss)

# %% [markdown]
# ## Further reading
#
# - Raffel et al. 2020, "Exploring the limits of transfer learning with a unified text-to-text
#   Transformer" (arXiv:1910.10683), section 2.1: one paragraph on the bias.
# - Ke et al. 2021, "Rethinking positional encoding in language pre-training" (arXiv:2006.15595),
#   section 3.1, equations (7) and (8), and section 3.2, equation (9), for [CLS].
# - Press et al. 2022, "Train short, test long" (arXiv:2108.12409), section 2: T5's bias on longer
#   texts.
# - `tests/test_golden.py` compares with Hugging Face's T5, MPNet, WavLM and LayoutLMv3.
#
# **Cards**: [t5](CARDS.md#t5), [tupe](CARDS.md#tupe).
