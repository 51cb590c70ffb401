# %% [markdown]
# # 38. Relative position bias in vision: Swin, MViT, SAM
#
# *What is the distance in an image, how is its table read without an index, and what if the window grows?*
#
# 35 minutes. Needs [25 2-D positional encodings for images (ViT, DETR, NeRF features)](25_grid.ipynb), [30 From absolute to relative: the four terms of a score](30_expansion.ipynb), [31 Relative position representations (Shaw et al.) and the skew trick](31_shaw.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** In an image the distance from one pixel to another has two parts: how far down
# and how far across. Vision models such as Swin, MViT and SAM cut an image into windows and train one
# number or two vectors for each such offset. You number the offsets of a window, read the trained
# table without building an index, and split it into two short tables. At the end you can load such
# tables, test them on windows that are not square, and resize them for larger images.

# %% fold="input" alt="A window of 4 by 5 pixels for three queries, with the row of the table that each key reads. Below, the table, 7 by 9. The colours of the keys are a frame of 4 by 5 in the table, rotated by 180 degrees. The frame moves with the query."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import attend, attention, decomposed_scores, log_cpb_coordinates
from pe_numpy import offset_bias, offset_index, relative_distance, relu, resize_matrix
from pe_numpy import shaw_scores, softmax, value_and_grad
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import windows as plots
from pe_numpy.relative import windows

plots.windows_view(4, 5, [(0, 0), (1, 3), (3, 4)])
plt.show()

# %% [markdown]
# The figure shows a window of 4 by 5 pixels for three queries, each in a thick black frame. Above,
# each key shows which row of a trained table it reads for that query. Below, the whole table is laid
# out as a grid, and the frame marks the rows that the query reads.
#
# ## Two distances in a window: why one number is not enough
#
# Cut an image into windows of $h$ rows and $w$ columns of pixels, or of patches (small squares of
# pixels). Let each pixel attend to the pixels of its own window. A bias may distinguish near from
# far, as [T5's](33_t5.ipynb) does. A first attempt numbers the pixels row by row and takes the
# distance $i-j$, as in a sentence. **Predict**, for 2 rows of 3 pixels: which pairs of pixels have
# $i-j=1$?

# %% fold="output"
h, w = 2, 3
pixels = [(y, x) for y in range(h) for x in range(w)]
offsets = {}
for i, (y, x) in enumerate(pixels):
    for j, (other_y, other_x) in enumerate(pixels):
        offsets.setdefault(i - j, set()).add((y - other_y, x - other_x))
for d in (1, 2, 3):
    print("i - j =", d, " offsets (dy, dx):", sorted(offsets[d]))
assert offsets[1] == {(0, 1), (1, -2)}
print(len(offsets), "distances,", len(set().union(*offsets.values())), "offsets")
assert len(offsets) == 11 and len(set().union(*offsets.values())) == 15

# %% [markdown]
# A pixel and its right neighbour have this distance, and so do the last pixel of one row and the
# first of the next. One number then means two things. In an image "how far" has two parts, the
# **offset** $(\Delta y,\Delta x) = (y-y',\,x-x')$ of the query at $(y,x)$ from the key at
# $(y',x')$.
#
# ## Swin's relative_position_index: numbering the offsets
#
# $\Delta y$ runs from $-(h-1)$ to $h-1$, so it has $2h-1$ values; $\Delta x$ has $2w-1$. Give each
# offset its own row in a table of $(2h-1)(2w-1)$ rows. Shift both parts so that they begin at 0,
# then count in reading order, with the large steps for $\Delta y$:
#
# $$I = (\Delta y+h-1)\,(2w-1)+\Delta x+w-1$$

# %%
show_source(offset_index)
by_hand = np.zeros((h * w, h * w), int)
for i, (y, x) in enumerate(pixels):
    for j, (other_y, other_x) in enumerate(pixels):
        by_hand[i, j] = (y - other_y + h - 1) * (2 * w - 1) + x - other_x + w - 1
assert np.array_equal(offset_index(h, w), by_hand)
print("first query:", by_hand[0].tolist(), " last:", by_hand[-1].tolist())
assert by_hand[0].tolist() == [7, 6, 5, 2, 1, 0] and by_hand[5].tolist() == [14, 13, 12, 9, 8, 7]

# %% alt="The index of a window of 2 by 3, a matrix of 6 by 6 in four blocks of 3 by 3. Every diagonal of a block has one number and one colour. The blocks on the diagonal are equal, and the middle number is 7."
plots.windows_index(h, w, offset_index(h, w))
plt.show()

# %% [markdown]
# Work the first row out by hand. The query (0, 0) and the key (0, 0) have the offset (0, 0), so
# $I = (0+1)\cdot 5+0+2 = 7$, the middle of 15 rows. One key to the right makes $\Delta x=-1$ and
# $I=6$; one row down makes $\Delta y=-1$ and $I = 2$.
#
# Why this order? A reader asked the authors
# ([Swin-Transformer #281](https://github.com/microsoft/Swin-Transformer/issues/281)). Any numbering
# would do if it distinguishes the offsets; this one lets the table be laid out as a grid. Each head
# has its own table $b$, with one trained number per offset:
#
# $$\mathrm{softmax}_j\Big(\frac{q_i\cdot k_j}{\sqrt K}+b[I_{ij}]\Big)$$

# %%
H, K = 2, 4
rng = np.random.default_rng(0)
q, k, v = rng.standard_normal((3, H, h * w, K))
table = rng.standard_normal((15, H))
_, weights = attention(q, k, v, bias=offset_bias(table, h, w))
for head, i in np.ndindex(H, h * w):
    row = [q[head, i] @ k[head, j] / K**0.5 + table[by_hand[i, j], head] for j in range(h * w)]
    assert np.allclose(weights[head, i], softmax(np.array(row)), rtol=0, atol=1e-12)

# %% [markdown]
# ### Symmetries of the index (second reading)
#
# The matrix has three regularities. Exchanging query and key negates the offset, so the two numbers
# are equally far from the middle. Rotating the window by 180° also negates it. Finally, an offset
# occurs once for each place where it fits into the window. With $N=(2h-1)(2w-1)$:
#
# $$I+I^\top=N-1,\qquad I^{\text{turned}}=I^\top,\qquad
# \#\{I=(\Delta y,\Delta x)\}=(h-|\Delta y|)\,(w-|\Delta x|)$$

# %%
for height, width in ((2, 3), (5, 4), (7, 7)):
    index, N = offset_index(height, width), (2 * height - 1) * (2 * width - 1)
    assert (index + index.T == N - 1).all()
    assert np.array_equal(index[::-1, ::-1], index.T)
    met = np.bincount(index.ravel(), minlength=N).reshape(2 * height - 1, -1)
    down, across = range(1 - height, height), range(1 - width, width)
    room = [[(height - abs(dy)) * (width - abs(dx)) for dx in across] for dy in down]
    assert np.array_equal(met, room)
print("7 by 7:", N, "rows; the middle is met", met.max(), "times, a corner", met[0, 0])
assert (N, met.max(), met[0, 0]) == (169, 49, 1)

# %% alt="The number of pairs of a window of 7 by 7 that have each of its 13 by 13 offsets. The numbers form a pyramid, from 49 in the middle to 1 in each corner."
plots.windows_met(met)
plt.show()

# %% [markdown]
# The counts also describe training: the gradient of a row of the table is the sum of the gradients
# of all scores that read it. In a window of 7 by 7 a corner row learns from one pair and the middle
# row from 49. Swin moves its windows by half their side in every other layer, and a mask separates
# pixels that are not neighbours. The bias does not change.

# %%
g = rng.standard_normal((H, h * w, h * w))  # gradient of the loss with respect to the scores
_, grads = value_and_grad(lambda p: np.sum(g * offset_bias(p["b"], h, w)))({"b": table})
for head in range(H):
    sums = np.bincount(by_hand.ravel(), g[head].ravel(), minlength=15)
    assert np.allclose(grads["b"][:, head], sums, rtol=0, atol=1e-12)

# %% [markdown]
# ### A common mistake: height for width in the index
#
# With the factor $2h-1$ instead of $2w-1$, a window that is wider than tall gives no error.
# **Predict**: how many of its 15 rows does a window of 2×3 then use, and how many of its 169 a
# window of 7×7?


# %% fold="output"
def wrong_index(height, width):
    y, x = np.divmod(np.arange(height * width), width)
    dy, dx = y[:, None] - y, x[:, None] - x
    return (dy + height - 1) * (2 * height - 1) + dx + width - 1


wrong = wrong_index(2, 3)
print("2 by 3:", len(np.unique(wrong)), "rows of 15;  7 by 7:", len(np.unique(wrong_index(7, 7))))
assert len(np.unique(wrong)) == 11 and np.array_equal(wrong_index(7, 7), offset_index(7, 7))
for height, width in np.argwhere(np.ones((12, 12))) + 1:
    beyond = wrong_index(height, width).max() >= (2 * height - 1) * (2 * width - 1)
    assert beyond == (height > width)
i_minus_j = np.subtract.outer(np.arange(6), np.arange(6))
assert np.array_equal(wrong, i_minus_j + 5)

# %% alt="Bars show how many pairs of a window of 2 by 3 read each of the 15 rows of the table. With the right factor all rows are read, symmetrically. With the wrong one only the first eleven are read, and the last four never."
counts = [np.bincount(index.ravel(), minlength=15) for index in (by_hand, wrong)]
plots.windows_factor(*counts)
plt.show()

# %% [markdown]
# For 2×3 the wrong factor is 3, the width, and the index is the $i-j$ of the first attempt, plus 5.
# A square hides the mistake. A window that is taller than wide shows it: the index runs beyond the
# table, and NumPy raises an IndexError. In three dimensions equal sides do not help. nnFormer
# multiplies by $3w-1$, $2w-1$ and 1. Its issue [#8](https://github.com/282857341/nnFormer/issues/8)
# calls this "not important, as long as the three dimensions can be distinguished". For $w=4$ they
# cannot be.

# %%
z, y, x = np.indices((7, 7, 7))  # offsets of a window of 4 by 4 by 4, shifted to 0..6
theirs, right = z * (3 * 4 - 1) + y * (2 * 4 - 1) + x, (z * 7 + y) * 7 + x
print(right.size, "offsets;", len(np.unique(theirs)), "and", len(np.unique(right)), "rows")
assert (right.size, len(np.unique(theirs)), len(np.unique(right))) == (343, 115, 343)

# %% [markdown]
# ## Reading the bias table through a strided view
#
# For a window of $14\times 14$ the index has 38,416 entries, but the table has only 729 rows. Is
# the index needed? Lay out the table of a head as a grid $T$ of $2h-1$ rows and $2w-1$ columns.
# Then
#
# $$B_{(y,x),(y',x')} = T[\,y-y'+h-1,\;x-x'+w-1\,]$$
#
# For one query the keys fill a frame of $h\times w$ in the grid, rotated by 180°, as in the figure
# at the top of this chapter. The next query has the next frame. One step of the query moves forward
# in memory, and one step of the key moves back. So the bias is a **view** of four axes, whose last
# two strides are the first two, negated.

# %%
assert offset_index(14, 14).size == 38_416 and 27 * 27 == 729
T = np.arange(15.0).reshape(2 * h - 1, 2 * w - 1)
down, across = T.strides
start = T[h - 1 :, w - 1 :]  # the offset (0, 0)
B = np.lib.stride_tricks.as_strided(start, (h, w, h, w), (down, across, -down, -across))
for y, x, other_y, other_x in np.ndindex(h, w, h, w):
    assert B[y, x, other_y, other_x] == T[y - other_y + h - 1, x - other_x + w - 1]
assert np.shares_memory(B, T) and np.array_equal(B.reshape(6, 6), by_hand)
assert not np.shares_memory(B.reshape(6, 6), T)
show_source(offset_bias, windows.grid_of)
assert windows.grid_of(T[None], h, w).strides[1:] == B.strides

# %% [markdown]
# The package makes this view with a function that it already has, a *window* on a line ([chapter
# 30](30_expansion.ipynb)), first for the columns and then for the rows. Then `reshape` to
# $(hw, hw)$ copies, since no single stride leads from the end of a row of pixels to the next row.
# The bias is as large as the scores in any case, so only the index is saved. `_window` has a
# gradient rule, so the table can be trained through the view, as above.
#
# ### Bias for the class token (BEiT)
#
# BEiT adds a class token to its one large window. The token has no offset, so it gets three rows
# behind the others: class to pixel, pixel to class, class to itself.


# %%
def with_class_token(index):
    N = index.max() + 1
    larger = np.pad(index, ((1, 0), (1, 0)))
    larger[0, :], larger[:, 0], larger[0, 0] = N, N + 1, N + 2
    return larger


print(with_class_token(offset_index(1, 2)).tolist())
assert with_class_token(offset_index(2, 3)).max() == 15 + 3 - 1

# %% [markdown]
# ## Decomposed relative positions: two short tables (MViT, SAM)
#
# A trained *vector* per offset, like Shaw's vector per distance ([chapter 31](31_shaw.ipynb)),
# would need $(2h-1)(2w-1)$ vectors: 16,129 for the $64\times64$ patches of SAM's global layers.
# MViT (version 2) takes two tables, one for rows and one for columns, with 254 vectors in all.
#
# $$s_{ij} = \frac{q_i\cdot k_j}{\sqrt K} + q_i\cdot R_{\Delta y} + q_i\cdot C_{\Delta x}$$
#
# Only the first term is divided, both in the [code of
# MViT](https://github.com/facebookresearch/mvit/blob/dfbdfdf/mvit/models/attention.py) and in the
# code [of
# SAM](https://github.com/facebookresearch/segment-anything/blob/dca509f/segment_anything/modeling/image_encoder.py).
# All heads share the tables. In the listing, `row_of` adds $n-1$ to the distances, which gives rows
# of a table of $2n-1$. The branch with `add_query_products` is for pixels that do not fill a grid.
# The cell works out a window by hand, with $K=1$, keys of 0, two rows and two columns:

# %%
show_source(decomposed_scores)
assert (2 * 64 - 1) ** 2 == 16_129 and 2 * (2 * 64 - 1) == 254
four, zeros = np.array([[1.0], [2.0], [3.0], [4.0]]), np.zeros((4, 1))
R, C = np.array([[0.1], [0.2], [0.3]]), np.array([[1.0], [2.0], [3.0]])
side = relative_distance([0, 1], [0, 1])  # of rows, and of columns
got = decomposed_scores(four, zeros, R, C, side, side)
print(got.round(1).tolist()[0], got.round(1).tolist()[3])
for i, (y, x) in enumerate(np.ndindex(2, 2)):
    for j, (other_y, other_x) in enumerate(np.ndindex(2, 2)):
        position = four[i] @ R[y - other_y + 1] + four[i] @ C[x - other_x + 1]
        assert np.isclose(got[i, j], position, rtol=0, atol=1e-12)
assert got[0].round(9).tolist() == [2.2, 1.2, 2.1, 1.1]
assert got[3].round(9).tolist() == [13.2, 9.2, 12.8, 8.8]

# %% [markdown]
# Each query is multiplied by the vectors of its $h$ rows and $w$ columns of keys once, which takes
# $L\,(h+w)$ products. Then both results are spread over the keys by broadcasting, $(h, w, h, 1)$ and
# $(h, w, 1, w)$. For SAM's $64\times64$ patches these are 32 times fewer products than one for each
# pair would be.

# %% alt="What one query of a window of 6 by 9 adds to the score of each key: a part that is constant along rows, a part that is constant along columns, and their sum. Horizontal and vertical stripes add up to a plaid."
L = 64 * 64
assert L * L // (L * (64 + 64)) == 32
rng = np.random.default_rng(3)
q1, R6, C9 = rng.standard_normal(8), rng.standard_normal((11, 8)), rng.standard_normal((17, 8))
y, x = 2, 3  # the query
by_row, by_column = R6[y - np.arange(6) + 5] @ q1, C9[x - np.arange(9) + 8] @ q1
plots.windows_sum_of_two(by_row, by_column, (y, x))
plt.show()

# %% [markdown]
# This *is* Shaw's scheme, with a table in which each vector is the sum $R_{\Delta y}+C_{\Delta x}$.
# The package's `shaw_scores` divides its term by $\sqrt K$, so the cell multiplies the vectors by
# $\sqrt K$. A sum cannot express everything. For any query, the number added for an offset is one
# number for the row plus one for the column. So for any two rows and two columns of keys
#
# $$p_{y_1x_1}+p_{y_2x_2} = p_{y_1x_2}+p_{y_2x_1}$$
#
# If a query adds 0 for its own pixel and 1 for the neighbours above and beside it, it must add 2
# for the diagonal neighbour between them (exercise 4).

# %%
q, k = rng.standard_normal((2, H, h * w, K))
R, C = rng.standard_normal((2 * h - 1, K)), rng.standard_normal((2 * w - 1, K))
sides = relative_distance(range(h), range(h)), relative_distance(range(w), range(w))
scores = decomposed_scores(q, k, R, C, *sides)
whole = (R[:, None] + C).reshape(15, K)  # a vector for each offset
assert np.allclose(
    scores, shaw_scores(q, k, whole * K**0.5, offset_index(h, w) - 7), rtol=0, atol=1e-12
)
p = decomposed_scores(q, np.zeros_like(k), R, C, *sides).reshape(H, h * w, h, w)
assert np.allclose(p[..., 0, 0] + p[..., 1, 2], p[..., 0, 2] + p[..., 1, 0], rtol=0, atol=1e-12)
divided = decomposed_scores(q, k, R / K**0.5, C / K**0.5, *sides)
print("if the query were divided there, too, scores would move by up to", end=" ")
print(round(float(np.abs(scores - divided).max()), 2))
assert np.abs(scores - divided).max().round(2) == 3.22

# %% [markdown]
# If pixels do not fill a grid (some dropped, some packed), pass the distances of all pairs, with
# shape $(L, S)$. The scores are the same. Each query is then multiplied by all $2h-1$ and $2w-1$
# vectors.

# %%
some = [5, 0, 3]  # three pixels of the six, in any order
y, x = np.divmod(np.array(some), w)
pairs = relative_distance(y, y), relative_distance(x, x)
few = decomposed_scores(q[:, some], k[:, some], R, C, *pairs)
assert np.allclose(few, scores[:, some][:, :, some], rtol=0, atol=1e-12)

# %% [markdown]
# ### Pooled queries and keys: grids of different sizes (second reading)
#
# MViT pools keys, and sometimes queries, to coarser grids. Let an axis have $n_q$ queries and $n_k$
# keys, and the table $2\max(n_q,n_k)-1$ rows. The code brings both to the finer scale. For the key
# at $y'$ the query at $y$ reads the row
#
# $$r = y\,\max\!\big(\tfrac{n_k}{n_q},1\big) - y'\,\max\!\big(\tfrac{n_q}{n_k},1\big)
# + (n_k-1)\max\!\big(\tfrac{n_q}{n_k},1\big)$$
#
# with its fraction cut off. **Predict**: 4 queries and 2 keys have a table of 7 rows. Which row
# does query 0 read for key 0, and which row is never read?


# %% fold="output"
def rows_read(n_q, n_k):
    r = np.zeros((n_q, n_k), int)
    for y, other in np.ndindex(n_q, n_k):
        to_q, to_k = max(n_k / n_q, 1), max(n_q / n_k, 1)
        r[y, other] = int(y * to_q - other * to_k + (n_k - 1) * to_k)
    return r


for n_q, n_k in ((2, 4), (4, 2), (3, 2)):
    print(n_q, "queries,", n_k, "keys: rows", rows_read(n_q, n_k).tolist())
assert rows_read(4, 2).tolist() == [[2, 0], [3, 1], [4, 2], [5, 3]]
assert rows_read(2, 4).tolist() == [[3, 2, 1, 0], [5, 4, 3, 2]]
assert np.array_equal(rows_read(5, 5), relative_distance(range(5), range(5)) + 4)

# %% [markdown]
# Query 0 reads row 2, not the middle row, which is 3. With fewer keys than queries the offset 0
# comes $\frac{n_q}{n_k}-1$ rows before the middle (rounded up), and the last row is never read. To
# load such weights, pass `decomposed_scores` the distance $r$ minus half the table's length,
# rounded down.

# %%
for n_q in range(2, 12):
    for n_k in range(1, n_q):
        r, middle = rows_read(n_q, n_k), n_q - 1
        assert middle - r[0, 0] == np.ceil(n_q / n_k - 1) and r.max() < 2 * n_q - 2 and r.min() == 0
q_up, k_up = rng.standard_normal((4 * 3, K)), rng.standard_normal((2 * 3, K))  # 4 by 3, 2 by 3
R7, C5 = rng.standard_normal((7, K)), rng.standard_normal((5, K))
r = rows_read(4, 2)
got = decomposed_scores(q_up, k_up, R7, C5, r - 3, relative_distance(range(3), range(3)))
for (y, x), (other_y, other_x) in ((a, b) for a in np.ndindex(4, 3) for b in np.ndindex(2, 3)):
    i, j = 3 * y + x, 3 * other_y + other_x
    position = q_up[i] @ R7[r[y, other_y]] + q_up[i] @ C5[x - other_x + 2]
    assert np.isclose(got[i, j], q_up[i] @ k_up[j] / 2 + position, rtol=0, atol=1e-12)

# %% [markdown]
# ## Resizing a bias table for larger windows
#
# If a model is to run on larger images with larger windows, its table is too short and the weights
# don't load. Swin's authors resize the grid $T$ of each head with bicubic interpolation
# ([#24](https://github.com/microsoft/Swin-Transformer/issues/24),
# [#58](https://github.com/microsoft/Swin-Transformer/issues/58)). SAM's code resizes its two tables
# with linear interpolation ([#338](https://github.com/facebookresearch/segment-anything/issues/338)
# and [#374](https://github.com/facebookresearch/segment-anything/issues/374) ask why the global
# layers don't load). With one matrix $W$ of [chapter 25](25_grid.ipynb), `resize_matrix(old, new)`,
# per axis, the new grid is
#
# $$T' = W_h\,T\,W_w^\top$$

# %%
T = rng.standard_normal((13, 13))  # a head of a window of 7 by 7
W = resize_matrix(13, 23, mode="cubic")  # to 12 by 12
larger = W @ T @ W.T
one_axis_at_a_time = np.stack([W @ column for column in (T @ W.T).T], axis=1)
assert np.allclose(larger, one_axis_at_a_time, rtol=0, atol=1e-12) and larger.shape == (23, 23)
assert np.isclose(larger[11, 11], T[6, 6], rtol=0, atol=1e-12)  # the middle stays the middle
offset = np.arange(-6.0, 7.0)
now = resize_matrix(13, 23) @ offset
print("the offsets 0, 1, 2 read what were", now[11:14].round(3).tolist())
assert np.allclose(now[11:14], np.arange(3) * 13 / 23, rtol=0, atol=1e-12)

# %% [markdown]
# Resizing **stretches**: a step of one pixel now reads what 0.565 of a step had learned. This is
# right when the same image comes with finer pixels, and wrong when a larger part of the scene comes
# with the same pixels.
#
# *A common mistake* again exchanges two sides: the table is laid out as $(2w-1, 2h-1)$ before it is
# resized. In transformers 5.23.0, `BeitRelativePositionBias` does so even if the window keeps its
# size, when nothing should change. Square windows hide the mistake.

# %%
T = rng.standard_normal((3, 5))  # a head of a window of 2 by 3
theirs = resize_matrix(5, 3) @ T.reshape(5, 3) @ resize_matrix(3, 5).T
print("row 0 should stay", T[0].round(2).tolist(), "and becomes", theirs[0].round(2).tolist())
assert np.allclose(resize_matrix(3, 3) @ T @ resize_matrix(5, 5).T, T, rtol=0, atol=1e-12)
assert np.abs(theirs - T).max() > 1

# %% [markdown]
# ## Swin-2: coordinates and a network instead of a table (continuous position bias)
#
# Swin-2 does not store the table. A small network computes it from *coordinates* of the offset, so
# another window is only another list of coordinates. They are spaced logarithmically, so that a
# larger window does not go far beyond what the network saw in training. On each axis, with the
# window $P$ of the *pretraining*:
#
# $$u(\Delta) = \mathrm{sign}(\Delta)\;\frac{\log_2\!\big(1+8\,|\Delta|/(P-1)\big)}{\log_2 8}$$

# %%
show_source(log_cpb_coordinates)
u = log_cpb_coordinates(8, 8)  # P = 8
for row, (dy, dx) in enumerate((dy, dx) for dy in range(-7, 8) for dx in range(-7, 8)):
    for axis, d in enumerate((dy, dx)):
        expected = np.sign(d) * np.log2(1 + 8 * abs(d) / 7) / np.log2(8)
        assert np.isclose(u[row, axis], expected, rtol=0, atol=1e-15)
print(u[112:120, 1].round(6).tolist())  # dx = 0 ... 7
assert u.max().round(6) == 1.056642 and np.isclose(
    u.max(), np.log(9) / np.log(8), rtol=0, atol=1e-12
)

# %% alt="Coordinates over the offset for P = 8: in a window of 8, in a window of 16, and evenly spaced. The curves are steep at 0, then flat. Both windows share one curve. The window of 8 ends just above 1, that of 16 below 1.5, and even spacing above 2."
d = np.arange(-15, 16)
curves = {f"window {n}, $P = 8$": log_cpb_coordinates(1, n, 8)[:, 1] for n in (16, 8)}
plots.windows_coordinates(d, curves | {"window 16, evenly spaced": d / 7})
plt.show()
assert curves["window 16, $P = 8$"].max() < 1.4 and (d / 7).max() > 2.1

# %% [markdown]
# Why 1.056642 and not 1? The code divides by $\log_2 8$, but $1+8\cdot1=9$. A reader asked, and an
# author answered that the range is $\pm7$
# ([#224](https://github.com/microsoft/Swin-Transformer/issues/224)). In the
# [code](https://github.com/microsoft/Swin-Transformer/blob/f82860b/models/swin_transformer_v2.py)
# it is $\pm8$ ([#329](https://github.com/microsoft/Swin-Transformer/issues/329) asks again). This
# does no harm, but weights were trained with it. A window of 1 would divide 0 by 0, so the function
# refuses it.
#
# The network has 512 hidden units (here 32) and one output per head.

# %%
A1, a1, A2 = rng.standard_normal((2, 32)), rng.standard_normal(32), rng.standard_normal((32, H))
net = relu(log_cpb_coordinates(h, w, 8) @ A1 + a1) @ A2  # a table: (N, H)
print("table:", net.shape, " bias:", offset_bias(net, h, w).shape)
try:
    log_cpb_coordinates(1, 8)
except ValueError as refused:
    print(refused)

# %% [markdown]
# Swin-2 squeezes this output into $(0, 16)$ with the logistic function $\sigma$. Its scores are
# cosines times a trained $\tau\le100$ of each head, which starts at 10. With $\mathrm{net}$ for a
# head's output:
#
# $$s_{ij} = \tau\,\frac{q_i\cdot k_j}{|q_i|\,|k_j|} + 16\,\sigma\big(\mathrm{net}(u_{ij})\big)$$

# %%
tau = np.exp(np.minimum([np.log(10), 7.0], np.log(100)))  # the second is above its limit


def swin_2_scores(q, k):
    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    bias = 16 / (1 + np.exp(-offset_bias(net, h, w)))
    return tau[:, None, None] * (q @ np.swapaxes(k, -1, -2)) + bias


got = swin_2_scores(q, k)
for head, i, j in np.ndindex(H, 6, 6):
    cosine = q[head, i] @ k[head, j] / np.sqrt((q[head, i] ** 2).sum() * (k[head, j] ** 2).sum())
    bias = 16 / (1 + np.exp(-net[by_hand[i, j], head]))
    assert np.isclose(got[head, i, j], (10, 100)[head] * cosine + bias, rtol=0, atol=1e-11)

# %% [markdown]
# A longer query changes nothing, and every score remains between $-\tau$ and $\tau+16$.

# %%
assert np.allclose(swin_2_scores(1000 * q, k), got, rtol=0, atol=1e-10)
assert ((got > -tau[:, None, None]) & (got < tau[:, None, None] + 16)).all()
same = swin_2_scores(q, q)  # a query is its own key
middle = np.diagonal(same, axis1=1, axis2=2) - 16 / (1 + np.exp(-net[7]))[:, None]
assert np.allclose(middle, tau[:, None], rtol=0, atol=1e-11)  # the cosine is 1
assert np.allclose(attend(got, k)[1], softmax(got), rtol=0, atol=1e-12)  # nothing else is scaled

# %% [markdown]
# Now let the window grow from 4 to 8. The same offset has the same coordinates, so every bias of the
# small window is unchanged in the middle of the large one. **Predict** how this differs from a table
# that is resized.


# %% fold="output" alt="A bias over the offsets of one axis, for a window of 4 and one of 8. The resized table is the same curve, stretched sideways. With coordinates, the old values stay and new ones continue the curve."
def bias_of(u):  # a network of two hidden units, by hand: it falls on both sides of 0
    return 16 / (1 + np.exp(4 * relu(u) + 2.5 * relu(-u)))


small, kept = (bias_of(log_cpb_coordinates(1, n, 4)[:, 1]) for n in (4, 8))
stretched = resize_matrix(7, 15) @ small
assert np.array_equal(kept[4:11], small)  # P = 4 in both
assert np.isclose(stretched[8], small[3] + 7 / 15 * (small[4] - small[3]), rtol=0, atol=1e-12)
plots.windows_grown(small, stretched, kept)
plt.show()

# %% [markdown]
# *A common mistake* is to compute the coordinates with the new window as $P$. They then end at
# 1.056642 again, and the bias is stretched after all.

# %%
forgot = bias_of(log_cpb_coordinates(1, 8, 8)[:, 1])
print("neighbours:", kept[8].round(3), "with P kept,", forgot[8].round(3), "with P forgotten")
assert abs(forgot[8] - kept[8]) > 0.5 and np.isclose(forgot[-1], small[-1], rtol=0, atol=1e-12)

# %% [markdown]
# Windows are not the only case of two distances. LayoutLMv3 reads pages, where each word has a box
# around it. The distances of the left edges and of the bottom edges go through T5's buckets, with
# one trained table each ([chapter 33](33_t5.ipynb)), and the two biases are added. Boxes may be
# anywhere, so neither a view nor a grid exists.

# %% [markdown]
# ## In short
#
# - **What is `relative_position_index`?** It gives each offset, query minus key, its row in a
#   trained table: $(\Delta y+h-1)(2w-1)+\Delta x+w-1$. For 2×3 it begins `7 6 5 2 1 0`.
#   [Numbering the offsets](#swins-relative_position_index-numbering-the-offsets).
# - **Why $2w-1$, and not $2h-1$?** One step down must skip all offsets of a row. On squares both
#   factors are equal. On 2×3 the wrong factor uses 11 of 15 rows, without an error.
#   [Height for width](#a-common-mistake-height-for-width-in-the-index).
# - **What is divided by $\sqrt K$?** In Swin, MViT and SAM only $q\cdot k$ is divided. Position
#   terms are added after that, and the terms of MViT and SAM use the undivided query. Swin-2 has
#   cosines and no $\sqrt K$.
#   [Two short tables](#decomposed-relative-positions-two-short-tables-mvit-sam).
# - **What does it cost?** Swin copies $(hw)^2$ numbers per head from a view on the table, without an
#   index. Two tables need $L\,(h+w)$ products instead of $L\,S$. There is nothing to cache.
#   [Strided view](#reading-the-bias-table-through-a-strided-view).
# - **What if my window has grown?** Resize the table, as Swin does (bicubic, on both axes) and SAM
#   does (linear, on each). Swin-2 needs nothing if the window $P$ of its pretraining is kept.
#   [Resizing](#resizing-a-bias-table-for-larger-windows).
# - **Why do Swin-2's coordinates exceed 1?** The code divides by $\log_2 8$, so in a window of $P$
#   they reach $\log_2(1+8)/\log_2 8 = 1.056642$.
#   [Swin-2](#swin-2-coordinates-and-a-network-instead-of-a-table-continuous-position-bias).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 38` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 38_windows.py` checks yours.
#
# ### Exercise 1: A bias that cannot distinguish mirror images
#
# Average Swin's table over $\Delta x$ and $-\Delta x$. Show that for $q=k=v=z$ a mirrored window
# then has mirrored outputs. Show also that with the original table it does not.
#
# <details><summary>Hint 1</summary>
#
# Mirroring moves pixel $(y, x)$ to $(y, w-1-x)$: `np.arange(6).reshape(2, 3)[:, ::-1].ravel()`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# As a grid, `T[:, ::-1]` is the table of $-\Delta x$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# mirror = np.arange(6).reshape(2, 3)[:, ::-1].ravel()
# z, T = rng.standard_normal((H, 6, K)), table.reshape(3, 5, H)
# for picture, blind in (((T + T[:, ::-1]) / 2, True), (T, False)):
#     bias = offset_bias(picture.reshape(15, H), 2, 3)
#     out, turned = (attention(z, z, z, bias=bias)[0] for z in (z, z[:, mirror]))
#     assert np.allclose(turned, out[:, mirror], rtol=0, atol=1e-9) == blind
# ```
#
# </details>
#
# ### Exercise 2: Three-dimensional windows for video
#
# Write the index of a window of $t\times h\times w$, and show that it distinguishes all offsets.
#
# <details><summary>Hint 1</summary>
#
# A step in time must skip a whole grid of offsets.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Build it from `offset_index(h, w)` and the distances of the frames.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def film_index(t, h, w):
#     frames = relative_distance(range(t), range(t)) + t - 1  # (t, t)
#     large = frames[:, None, :, None] * (2 * h - 1) * (2 * w - 1)
#     return (large + offset_index(h, w)[None, :, None, :]).reshape(t * h * w, -1)
#
# assert len(np.unique(film_index(4, 4, 4))) == 343
# assert np.array_equal(film_index(1, 2, 3), offset_index(2, 3))
# ```
#
# </details>
#
# ### Exercise 3: ALiBi in a window
#
# Which table of Swin subtracts a slope times $|\Delta y|+|\Delta x|$? Which two tables of MViT do so,
# for queries whose first component is 1?
#
# <details><summary>Hint 1</summary>
#
# Take `np.abs(np.arange(1 - n, n))` for each axis, then an outer sum.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Only the first component of each vector is not 0.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# far_y, far_x = (np.abs(np.arange(1 - n, n)) for n in (2, 3))
# swin = -0.5 * (far_y[:, None] + far_x).reshape(15, 1)
# R, C = (np.stack([-0.5 * far, 0 * far], axis=1) for far in (far_y, far_x))
# ones = np.stack([np.ones(6), rng.standard_normal(6)], axis=1)
# two_tables = decomposed_scores(ones, np.zeros((6, 2)), R, C, *sides)
# assert np.allclose(two_tables, offset_bias(swin, 2, 3)[0], rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 4: What two tables cannot express
#
# A bias is 1 for the four direct neighbours and the pixel itself, and 0 for the four diagonal ones.
# How close to it can one number per row and one number per column come?
#
# <details><summary>Hint 1</summary>
#
# Use `np.linalg.lstsq` with six columns, one for each row and one for each column of a grid of 3×3.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The best sum is the mean of the row plus the mean of the column minus the mean of all.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It misses each diagonal neighbour by $1/9$, each direct one by $2/9$ and the middle by $4/9$.
#
# ```python
# cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0.0]])
# best = cross.mean(1, keepdims=True) + cross.mean(0) - cross.mean()
# A = np.concatenate([np.repeat(np.eye(3), 3, axis=0), np.tile(np.eye(3), (3, 1))], axis=1)
# fit = A @ np.linalg.lstsq(A, cross.ravel(), rcond=None)[0]
# assert np.allclose(fit, best.ravel(), rtol=0, atol=1e-12)
# assert np.allclose(9 * np.abs(cross - best), [[1, 2, 1], [2, 4, 2], [1, 2, 1]], rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ## In practice
#
# | scheme | in transformers 5.23.0 | trained, cached | cost | verdict |
# |---|---|---|---|---|
# | Swin's table | swin, beit, data2vec_vision, donut, clap, maskformer | one table per head and layer; no cache | one copy of a view | small windows of one size |
# | two tables | sam, sam_hq, vitdet, seggpt, got_ocr2, deepseek_ocr2, unlimited_ocr, pp_formulanet, slanext | two tables per layer; no cache | $L(h+w)$ products | many pixels, where a table of vectors is too large |
# | Swin-2's network | swinv2, swin2sr | network and $\tau$; no cache | one run of the network per offset | windows that will change their size |
#
# - **Test on a window that is not square.** The wrong factor and exchanged sides pass on squares.
# - **Resize, don't switch off.** SAM without its tables (`use_rel_pos=False`) lacks a term that all
#   its layers were trained with.
# - **The index is not a weight.** It belongs to a window, not to a model: transformers 5.23.0
#   computes Swin's `relative_position_index` again and ignores the one in an old checkpoint.
# - **A fused kernel** that divides $q\cdot k$ by $\sqrt K$ takes the undivided query. MViT's two
#   terms are computed beforehand from the same query and passed as a bias.

# %%
scores = decomposed_scores(q, k, R, C, *sides)
extra = decomposed_scores(q, 0 * k, R, C, *sides)  # only the two terms, as a bias
as_bias = attention(q, k, k, bias=extra)[1]
assert np.allclose(as_bias, softmax(scores), rtol=0, atol=1e-12)

# %% [markdown]
# ## Further reading
#
# - Liu et al. 2021, *Swin Transformer*, [arXiv:2103.14030](https://arxiv.org/abs/2103.14030), and
#   [Swin Transformer V2](https://arxiv.org/abs/2111.09883); their
#   [code](https://github.com/microsoft/Swin-Transformer/tree/f82860b).
# - Li et al. 2021, *MViTv2*, [arXiv:2112.01526](https://arxiv.org/abs/2112.01526);
#   [code](https://github.com/facebookresearch/mvit/tree/dfbdfdf).
# - Bao et al. 2021, *BEiT*, [arXiv:2106.08254](https://arxiv.org/abs/2106.08254).
