# %% [markdown]
# # 25. 2-D positional encodings for images (ViT, DETR, NeRF features)
#
# *Which sinusoids does a checkpoint use, how does an image grid get encodings, and how is a trained table resized?*
#
# 35 minutes. Needs [20 Sinusoidal positional encoding](20_sinusoidal.ipynb), [21 Learned position embeddings](21_learned.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A Transformer for images cuts an image into patches. Each patch has a row and
# a column, so counting the patches with one number loses which of them are neighbours. You build
# positional encodings for grids from sines and cosines, skip padding as the detector DETR does, and
# resize a trained table for larger images. Points between the pixels get encodings too. At the end
# you can tell which variant of the sinusoidal encoding a file of trained weights uses.

# %% fold="input" alt="Three grids of 15 by 25 cells, coloured by the similarity of each cell's encoding to that of row 5, column 9. Counting row by row gives a smear along one row; row and column give a cross; Fourier features give a spot."
import math

import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import detr_sine, fourier_features, resize_matrix
from pe_numpy import sinusoidal, sinusoidal_2d, timing_signal, value_and_grad
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import grid as plots

cells = np.moveaxis(np.indices((15, 25)), 0, -1)  # (15, 25, 2): row and column of each cell
line, two = sinusoidal(np.arange(375).reshape(15, 25), 128), sinusoidal_2d(15, 25, 128)
spot = fourier_features(cells, 0.06 * np.random.default_rng(0).standard_normal((64, 2)))
plots.alike_on_a_grid([code @ code[5, 9] / 64 for code in (line, two, spot)], (5, 9))
plt.show()

# %% [markdown]
# The figure compares three encodings of a grid of 15 by 25 cells. A cell's colour shows how alike its
# encoding is to the encoding of the marked cell, in row 5 and column 9: it is their dot product. The
# third, Fourier features, comes [at the end](#fourier-features-for-points-without-a-grid).
#
# ## One index is not enough for an image
#
# An image model cuts an image into patches and reads them, row by row, as tokens. The first attempt
# is to number them consecutively (*counted through* in the figure). **Predict**, for rows of 25
# cells: whose encoding is more like a given cell's encoding, its neighbour below or the cell ten
# places to the right?

# %% fold="output"
alike = line @ line[5, 9] / 64
print(f"below: {alike[6, 9]:.2f}   ten to the right: {alike[5, 19]:.2f}")
assert alike[6, 9] < alike[5, 19] < alike[5, 10]

# %% [markdown]
# The cell below is 25 numbers away, so it counts as more distant. Instead, spend half of the
# components on the row $y$ and half on the column $x$. With $f_D(t)=\sum_i\cos t\,\theta_i$, the dot
# product of two encodings of width $D$ at distance $t$
# ([chapter 20](20_sinusoidal.ipynb#the-dot-product-depends-only-on-distance)),
#
# $$\begin{gathered}PE(y,x)=\big[\,PE_{D/2}(y)\,;\,PE_{D/2}(x)\,\big]\\
#   PE(y,x)\cdot PE(y',x')=f_{D/2}(y-y')+f_{D/2}(x-x')\end{gathered}$$


# %%
def code_by_loops(y, x, D):  # all sines of an axis, then its cosines
    theta = [10000 ** (-2 * i / (D / 2)) for i in range(D // 4)]
    waves = [(wave, at) for at in (y, x) for wave in (math.sin, math.cos)]
    return [wave(at * t) for wave, at in waves for t in theta]


for y, x in ((0, 0), (5, 9), (13, 7)):
    assert np.allclose(two[y, x], code_by_loops(y, x, 128), rtol=0, atol=1e-12)
theta = 10000.0 ** (-np.arange(32) / 32)
f = np.cos(np.arange(-15, 25)[:, None] * theta).sum(axis=-1)  # f(-15) ... f(24), width 64
expected = f[cells[..., 0] - 5 + 15] + f[cells[..., 1] - 9 + 15]
assert np.allclose(two @ two[5, 9], expected, rtol=0, atol=1e-11)

# %%
show_source(sinusoidal_2d)
alike = two @ two[5, 9] / 64
print(f"\n8 along the row: {alike[5, 17]:.2f}   6 right and 5 down: {alike[10, 15]:.2f}")
away = np.linalg.norm(cells - [5, 9], axis=-1)
assert alike[5, 17] > alike[10, 15] and away[5, 17] > away[10, 15]

# %% [markdown]
# That is the cross at the top. A cell of the same row shares half of its encoding exactly, and can be
# more alike than a nearer cell off both axes. The two axes are added; no term depends on row *and*
# column together.
#
# ### Component order in timm, MAE and DETR
#
# Libraries arrange the same sines and cosines in four orders, and only DETR alternates sines and
# cosines. (DETR counts [from 1](#padding-masks-in-detr).)

# %% alt="Five lines of eight boxes: the components of an encoding of width 8, one line per library. Sine and cosine blocks of the row in blue and of the column in red are in four different orders; only DETR's alternate one by one."
quarters = [[f"{wave} {axis}{i}" for i in (0, 1)] for axis in "yx" for wave in ("sin", "cos")]
sin_y, cos_y, sin_x, cos_x = quarters
layouts = {
    "here": sin_y + cos_y + sin_x + cos_x,
    "timm, interleaved": sin_y + cos_y + sin_x + cos_x,
    "timm": sin_y + sin_x + cos_y + cos_x,
    "MAE": sin_x + cos_x + sin_y + cos_y,
    "DETR": [part[i] for half in (quarters[:2], quarters[2:]) for i in (0, 1) for part in half],
}
plots.orders(layouts)
plt.show()

# %% [markdown]
# What timm calls interleaved
# ([aa4b585](https://github.com/huggingface/pytorch-image-models/blob/aa4b5850c1/timm/layers/pos_embed_sincos.py))
# are blocks. MAE's class token gets zeros. For row 1 and column 0 of 2 by 3 cells, with $D=8$:

# %%
sin_y, cos_y, sin_x, cos_x = sinusoidal_2d(2, 3, 8)[1, 0].reshape(4, 2)
timm = np.concatenate([sin_y, sin_x, cos_y, cos_x])
mae = np.concatenate([sin_x, cos_x, sin_y, cos_y])
print("timm:", timm.round(6).tolist())
print("MAE: ", mae.round(6).tolist())
assert timm.round(6).tolist() == [0.841471, 0.01, 0, 0, 0.540302, 0.99995, 1, 1]
assert mae.round(6).tolist() == [0, 0, 1, 1, 0.841471, 0.01, 0.540302, 0.99995]

# %% [markdown]
# *A common mistake* is to exchange the axes. In MAE's source code the half named `emb_h` contains the
# column ([mae #18](https://github.com/facebookresearch/mae/issues/18)). Its author calls the names
# not ideal, and warns that other numbers would break the released weights. RT-DETR's grid was
# flattened with the columns outermost
# ([transformers #41380](https://github.com/huggingface/transformers/pull/41380)). On a square grid
# this only exchanges the halves, and that layout is as good as any. On another grid it scrambles the
# image, so test with 2 by 3 cells.


# %%
def columns_outermost(height, width, D):
    return np.swapaxes(sinusoidal_2d(height, width, D), 0, 1).reshape(height * width, D)


for height, width in ((4, 4), (3, 5)):
    right = sinusoidal_2d(height, width, 8).reshape(-1, 8)
    halves = np.concatenate([right[:, 4:], right[:, :4]], axis=1)
    harmless = np.allclose(columns_outermost(height, width, 8), halves, rtol=0, atol=1e-12)
    assert harmless == (height == width)
got = columns_outermost(3, 5, 8)[:5]  # what the first row of the image gets
places = [int(np.abs(right - code).sum(axis=1).argmin()) for code in got]
print("3 by 5, row 0 gets the encodings of:", [divmod(place, 5) for place in places])
assert [divmod(place, 5) for place in places] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]

# %% [markdown]
# ## Sinusoidal layouts: paper, concatenated or timing signal
#
# Even on a line there is more than one layout. In the **paper's** layout sines and cosines alternate.
# The **concatenated** one
# ([Transformer-XL](https://github.com/kimiyoung/transformer-xl/blob/44781ed21d/pytorch/mem_transformer.py),
# XLNet, Marian in transformers) has the same numbers, all sines first. The **timing signal** comes
# from the authors' own library
# ([tensor2tensor](https://github.com/tensorflow/tensor2tensor/blob/bafdc1b677/tensor2tensor/layers/common_attention.py),
# then
# [fairseq](https://github.com/facebookresearch/fairseq/blob/3d262bb256/fairseq/modules/sinusoidal_positional_embedding.py),
# [Whisper](https://github.com/openai/whisper/blob/c0d2f624c0/whisper/model.py)). It has all sines
# first *and other frequencies*: $n=\lfloor D/2\rfloor$ of them, from $lo$ to $lo^2/hi$, by default
# from 1 to exactly $10^{-4}$.
#
# $$\theta_i=lo\,\Big(\frac{lo}{hi}\Big)^{i/(n-1)},\qquad i=0,\dots,n-1$$


# %%
def timing_by_loops(p, D, lo=1.0, hi=10000.0):
    n = D // 2
    theta = [lo * (lo / hi) ** (i / max(n - 1, 1)) for i in range(n)]
    return [math.sin(p * t) for t in theta] + [math.cos(p * t) for t in theta] + [0] * (D % 2)


for p, D in ((1, 8), (3, 5), (7, 2), (100, 512)):
    assert np.allclose(timing_signal(p, D), timing_by_loops(p, D), rtol=0, atol=1e-12)
one = timing_signal(1, 8, 0.5, 20)
assert np.allclose(one[[0, 3]], np.sin([0.5, 0.5**2 / 20]), rtol=0, atol=1e-12)

# %%
show_source(timing_signal)
rows = {
    "paper": sinusoidal(1, 8),
    "concatenated": sinusoidal(1, 8, layout="concatenated"),
    "timing": timing_signal(1, 8),
}
print()
for name, row in rows.items():
    print(f"{name:13}", " ".join(f"{x:8.6f}" for x in row))
assert np.array_equal(rows["paper"][[0, 2, 4, 6, 1, 3, 5, 7]], rows["concatenated"])
assert rows["timing"].round(6).tolist()[:4] == [0.841471, 0.046399, 0.002154, 0.0001]

# %% [markdown]
# To recognise a layout, print the row of position 1. If all sines come first, look at the last sine.
# If it is exactly $\sin10^{-4}$, the table is a timing signal; otherwise it is the paper's encoding
# in another order. In fairseq the padding row, often row 1, is zeros, so look at another row $p$ for
# $\sin10^{-4}p$.
#
# A permutation costs nothing, because a linear layer behind it can undo it. Is the other order a bug,
# then? [tensor2tensor #1925](https://github.com/tensorflow/tensor2tensor/issues/1925) asks why it is
# there. It is not one for a model trained with it. It is one for weights that were trained with the
# other order. **Predict**: do the two sets of frequencies matter at $D=512$, where $1/(n-1)$ and
# $1/n$ barely differ?

# %% fold="output"
paper, timing = (10000.0 ** (-np.arange(256) / n) for n in (256, 255))
print(f"frequencies differ by up to {np.max(1 - timing / paper):.1%}")
for p in (100, 500):
    gap = np.abs(timing_signal(p, 512) - sinusoidal(p, 512, layout="concatenated")).max()
    print(f"position {p}: components differ by up to {gap:.2f}")
assert 0.03 < np.max(1 - timing / paper) < 0.04 and gap > 0.5
larger = sinusoidal(range(9), 512, base=10000 ** (512 / 510), layout="concatenated")
assert np.allclose(timing_signal(range(9), 512), larger, rtol=0, atol=1e-12)

# %% [markdown]
# They do, far from the start: at position 500 the components differ by up to 0.70. The last two lines
# show that the timing signal is the paper's encoding with a base of $10000^{D/(D-2)}$. Marian itself
# ([c9f287d](https://github.com/marian-nmt/marian-dev/tree/c9f287db75)) spaces its frequencies by
# $n-1$, its port in transformers by $n$. Whether that changes translations was not measured here.
#
# *Two more mistakes.* With $D=2$ the divisor $n-1$ is 0, which tensor2tensor
# ([#1055](https://github.com/tensorflow/tensor2tensor/pull/1055)) and mlx
# ([#3614](https://github.com/ml-explore/mlx/pull/3614)) ran into. And in Python `a / b // 2` is not
# `a / (b // 2)`: in LoFTR ([#41](https://github.com/zju3dv/LoFTR/issues/41)) the step of the exponent
# became a whole number. The model was trained with it, and the authors report that fixing it changed
# little.

# %%
D = 256
meant, written = -math.log(10000) / (D // 2), -math.log(10000) / D // 2
print(f"step meant: {meant:.4f}, written: {written}")
print("frequencies:", *(f"{math.exp(2 * i * written):.5f}" for i in range(5)), "...")
assert written == -1 and math.exp(2 * 5 * written) < 1e-4 < math.exp(2 * 5 * meant)
assert np.isfinite(timing_signal(3, 2)).all()

# %% [markdown]
# ## Padding masks in DETR
#
# A batch may contain images of different sizes, so smaller ones are padded. DETR takes a **mask**,
# with $M_{yx}=1$ in an image cell and 0 in padding, and counts. Down a column and along a row,
#
# $$\hat y_{yx}=\sum_{y'\le y}M_{y'x},\qquad\hat x_{yx}=\sum_{x'\le x}M_{yx'}$$
#
# So counts begin at **1**. If they are normalised, each is divided by the last count of its column or
# row (plus $10^{-6}$) and multiplied by $2\pi$. Each count becomes an encoding of width $D/2$ in the
# paper's layout.


# %%
def detr_by_loops(mask, y, x, D, normalize):
    down, across = sum(mask[: y + 1, x]), sum(mask[y, : x + 1])
    if normalize:
        down = down / (sum(mask[:, x]) + 1e-6) * 2 * math.pi
        across = across / (sum(mask[y]) + 1e-6) * 2 * math.pi
    theta = [10000 ** (-2 * i / (D / 2)) for i in range(D // 4)]
    return [wave(at * t) for at in (down, across) for t in theta for wave in (math.sin, math.cos)]


padded = np.zeros((4, 5), bool)
padded[:3, :2] = True  # an image of 3 by 2 cells
for y, x, norm in np.ndindex(4, 5, 2):
    code = detr_sine(padded, 8, normalize=bool(norm))[y, x]
    assert np.allclose(code, detr_by_loops(padded, y, x, 8, norm), rtol=0, atol=1e-12)

# %%
show_source(detr_sine)
whole = np.ones((2, 3), bool)
print("\nrow 1, column 0 of 2 by 3:", (detr_sine(whole, 8)[1, 0].round(6) + 0.0).tolist())
print("not normalised:", detr_sine(whole, 8, normalize=False)[1, 0, :2].round(6).tolist(), "...")
assert detr_sine(whole, 8, normalize=False)[1, 0, 0] == math.sin(2)  # its count is 2

# %% [markdown]
# **Predict**: the image of 3 by 2 cells is padded to 4 by 5. How many of its six encodings change?

# %% fold="output"
alone = detr_sine(np.ones((3, 2), bool), 8)
changed = (detr_sine(padded, 8)[:3, :2] != alone).any(axis=-1).sum()
by_size = 2 * math.pi * np.arange(1, 4) / 4  # divided by the padded height instead
print("encodings changed by padding:", int(changed))
print("angles of its rows:", (2 * math.pi * np.arange(1, 4) / 3).round(2).tolist())
print("divided by the padded height:", by_size.round(2).tolist())
outside = detr_sine(padded, 8)[0, 3, :4].tolist()  # a column of padding only
assert changed == 0 and outside == [0, 1, 0, 1]

# %% [markdown]
# None. A column without an image cell counts 0, and the $10^{-6}$ prevents 0/0. *A common mistake* is
# to invert the mask. In DETR's own source code
# ([29901c5](https://github.com/facebookresearch/detr/blob/29901c51d7/models/position_encoding.py)) it
# is True at padding. Here, and in transformers, True means non-padding.
#
# DETR adds this encoding in every layer to the image's queries and keys, never to values. Normalised,
# the whole image is one turn of the fastest clock hand, at any size. The temperature (DETR's word for
# the base) stays 10000, as for text. How many of the pairs rotate at all?

# %%
theta = 10000.0 ** (-np.arange(64) / 64)  # D = 256: 64 pairs an axis
still = int((2 * math.pi * theta < 0.1).sum())
print(f"{still} of 64 pairs rotate by less than 0.1 radian over the whole image")
code = detr_sine(np.ones((40, 1), bool), 256)[:, 0, :128]
spread = np.ptp(code, axis=0).reshape(64, 2).max(axis=1)  # of each pair, over 40 rows
assert still > 32 and (spread[64 - still :] < 0.1).all() and (spread[: 64 - still] > 0.09).all()

# %% [markdown]
# ## Interpolating a position table for larger images
#
# A trained table of patches must be resized to fit larger images.
# [Chapter 21](21_learned.ipynb#resizing-the-position-embeddings-of-a-vision-transformer-vit) derives the linear case; here is the general form. The
# new table is $E'=WE$ with a constant matrix $W$. The new row $r$ has the place $s_r$ among the $N$
# old ones, and an old row $j$ gets the weight that a **kernel** $k$ gives to its distance from $s_r$.
# Weight that falls beyond an end goes to the end row. The two places $s_r$ are for rows as cells and
# for rows as corner points, with $N'$ new rows:
#
# $$W_{rj}=k(s_r-j),\qquad s_r=\big(r+\tfrac12\big)\frac{N}{N'}-\tfrac12\quad\text{or}\quad
#   s_r=r\,\frac{N-1}{N'-1}$$
#
# The linear kernel is $1-|t|$, and 0 beyond distance 1. The **cubic** kernel reaches to distance 2:
#
# $$k(t)=\begin{cases}(a+2)|t|^3-(a+3)|t|^2+1&|t|\le1\\
#   a|t|^3-5a|t|^2+8a|t|-4a&1<|t|<2\end{cases}$$


# %%
def cubic(t, a):
    t = abs(t)
    near, far = (a + 2) * t**3 - (a + 3) * t**2 + 1, a * (t**3 - 5 * t**2 + 8 * t - 4)
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


for old, new in ((4, 6), (20, 8), (5, 5)):
    W, r, j = np.zeros((4, new, old)), np.arange(new), np.arange(-2, old + 2)
    for s, corners in (((r + 0.5) * old / new - 0.5, 0), (r * (old - 1) / (new - 1), 2)):
        t = abs(s[:, None] - j)
        for n, weights in enumerate((np.maximum(1 - t, 0), cubic(t, -0.75))):
            np.add.at(W[corners + n].T, np.clip(j, 0, old - 1), weights.T)  # beyond: the last row
    ways = [resize_matrix(old, new, m, c) for c in (False, True) for m in ("linear", "cubic")]
    assert np.allclose(W, ways, rtol=0, atol=1e-12)

# %%
show_source(resize_matrix)
print("\nlinear, 4 rows to 6:", resize_matrix(4, 6).round(3), sep="\n")

# %%
ways = {
    "linear": {},
    "linear, corners": {"align_corners": True},
    "cubic": {"mode": "cubic"},
    "cubic, antialias": {"mode": "cubic", "antialias": True},
}
for name, way in ways.items():
    print(f"{name:17}", (resize_matrix(4, 6, **way) @ np.arange(4)).round(6).tolist())
    assert np.allclose(resize_matrix(4, 6, **way).sum(1), 1, rtol=0, atol=1e-12)
    assert np.allclose(resize_matrix(4, 4, **way), np.eye(4), rtol=0, atol=1e-12)

# %% [markdown]
# The four ways turn one table into four. Only `align_corners` (corners) keeps the straight line to
# its ends. The cubic ways overshoot, since some of their weights are negative.
#
# ### Bicubic interpolation in torch: two values of a (second reading)
#
# torch's bicubic has $a=-3/4$. With `antialias=True` it has $a=-1/2$, even when a table grows. When a
# table shrinks, antialias also stretches the kernel by $N/N'$, so that each old row counts. Weights
# beyond the ends are then cut off, and the rest are divided by their sum. **Predict**: a table that
# is a straight line, 0 to 19, shrinks to 8 rows with $a=-3/4$. Is it still straight?

# %% fold="output"
s = (np.arange(8) + 0.5) * 2.5 - 0.5
line = cubic(s[1:-1, None] - np.arange(20), -0.5) @ np.arange(20)
bent = (resize_matrix(20, 8, "cubic") @ np.arange(20))[1:-1]
off = np.abs(bent - s[1:-1]).max()
print(
    f"off by up to {off:.3f} of a row with a = -3/4, {abs(line - s[1:-1]).max() + 0.0:.3f} with -1/2"
)
assert f"{off:.3f}" == "0.047" and np.allclose(line, s[1:-1], rtol=0, atol=1e-12)

# %% [markdown]
# Not quite. With $a=-1/2$ it is, away from the ends. The figure shows the kernels, and what each does
# to a step.

# %% alt="Left: three kernels, a tent and two cubic ones with negative lobes, deeper for a of minus three quarters. Right: a step enlarged with each of them. The tent gives a ramp; the cubics overshoot, one by 7 and one by 11 per cent."
step = np.array([0, 0, 0, 1, 1, 1.0])
shapes = {
    "linear": (lambda t: np.maximum(1 - abs(t), 0), {}),
    "a = -1/2": (lambda t: cubic(t, -0.5), {"mode": "cubic", "antialias": True}),
    "a = -3/4": (lambda t: cubic(t, -0.75), {"mode": "cubic"}),
}
larger = {name: resize_matrix(6, 60, **way) @ step for name, (_, way) in shapes.items()}
assert [f"{made.max() - 1:.2f}" for made in larger.values()] == ["0.00", "0.07", "0.11"]
plots.kernels_and_a_step({name: kernel for name, (kernel, _) in shapes.items()}, step, larger)
plt.show()

# %% [markdown]
# Shrinking without antialias has a worse fault: some rows are never read.

# %%
unread = {name: int((~resize_matrix(16, 3, **way).any(axis=0)).sum()) for name, way in ways.items()}
print("of 16 rows, unread by 3 new ones:", unread)
assert list(unread.values()) == [10, 12, 4, 0]

# %% [markdown]
# ### Resizing a 2-D table with a class token
#
# A grid takes one matrix for its rows and one for its columns. Table rows that are not patches (a
# class token, registers) come before the grid. Cut them off, and put them back unchanged.


# %%
def resize_grid(table, old, new, prefix, **way):  # table (prefix + height width, D)
    down, right = (resize_matrix(o, n, **way) for o, n in zip(old, new, strict=True))
    grid = np.einsum("yr,rcd,xc->yxd", down, table[prefix:].reshape(*old, -1), right)
    return np.concatenate([table[:prefix], grid.reshape(-1, table.shape[1])])


tables = {"unrelated": np.random.default_rng(1).standard_normal((1 + 14 * 14, 64))}
tables["alike"] = np.concatenate([np.zeros((1, 64)), sinusoidal_2d(14, 14, 64).reshape(-1, 64)])
for name, way in ways.items():
    made = {rows: resize_grid(E, (14, 14), (24, 20), 1, **way) for rows, E in tables.items()}
    assert all(np.array_equal(made[rows][0], E[0]) for rows, E in tables.items())
    length = {r: np.linalg.norm(E[1:], axis=1).mean() for r, E in made.items()}
    shares = [length[r] / np.linalg.norm(E[1:], axis=1).mean() for r, E in tables.items()]
    print(f"{name:17} rows shrink to: unrelated {shares[0]:.2f}, alike {shares[1]:.2f}")
    assert shares[0] < 0.9 < 0.99 < shares[1] < 1.01

# %% [markdown]
# Unrelated rows become shorter, less so with cubic ways. Rows that are alike barely shrink. For each
# axis the table's gradient is $W^\top$ times the new table's gradient, also for cubic kernels with
# negative weights:

# %%
W, target = resize_matrix(4, 7, "cubic"), np.random.default_rng(2).standard_normal((7, 3))
gradient = value_and_grad(lambda p: (W @ p["E"] * target).sum())({"E": np.zeros((4, 3))})[1]["E"]
assert np.allclose(gradient, W.T @ target, rtol=0, atol=1e-12) and (W < 0).any()

# %% [markdown]
# *Two common mistakes.* **Cells instead of corners.** llama.cpp resized Qwen3-VL's table of 48 by 48
# as cells, where the model has corners ([#25781](https://github.com/ggml-org/llama.cpp/pull/25781)).
# The boxes that the model drew were off, and more so far from the middle. Seen from the middle, all
# places are stretched by a factor. **A factor instead of a size.** Asked for a scale of 61/14, an
# interpolation that rounds down turns 14 rows into 60
# ([dinov2 #378](https://github.com/facebookresearch/dinov2/pull/378)). Pass the size.

# %%
for new in (64, 112, 160):
    r, middle = np.arange(new), (48 - 1) / 2
    cell, corner = (r + 0.5) * 48 / new - 0.5 - middle, r * 47 / (new - 1) - middle
    assert np.allclose(cell, corner * 48 * (new - 1) / (new * 47), rtol=0, atol=1e-9)
    factor, end = 48 * (new - 1) / (new * 47), abs(cell - corner).max()
    print(f"48 to {new}: stretched by {factor:.4f}, places up to {end:.2f} rows apart")
print("floor(14 * (61 / 14)) =", math.floor(14 * (61 / 14)))
assert math.floor(14 * (61 / 14)) == 60 and math.floor(37 * (39 / 37)) == 38

# %% [markdown]
# ## Fourier features for points without a grid
#
# A click in an image and a point in space have coordinates that are not whole numbers. Draw $m$ waves
# once, the rows $b$ of a matrix $B$, from a normal distribution of standard deviation $\sigma$, and
# keep them. The **Fourier features** of a point $p$ (Tancik et al. 2020) and the product of two are
#
# $$\gamma(p)=[\cos2\pi Bp,\ \sin2\pi Bp],\qquad\gamma(p)\cdot\gamma(p')=\sum_b\cos2\pi\,b\cdot(p-p')$$
#
# Over the draws, $b\cdot(p-p')$ is a normal number of standard deviation $\sigma|p-p'|$. So the
# expected cosine is a bell:
#
# $$\mathrm E\,\cos2\pi\,b\cdot(p-p')=e^{-2\pi^2\sigma^2|p-p'|^2}$$

# %%
show_source(fourier_features)
rng = np.random.default_rng(3)
B, (p, other) = rng.standard_normal((4, 2)), rng.random((2, 2))
by_loops = [
    wave(2 * math.pi * (b[0] * p[0] + b[1] * p[1])) for wave in (math.cos, math.sin) for b in B
]
assert np.allclose(fourier_features(p, B), by_loops, rtol=0, atol=1e-12)
product = sum(math.cos(2 * math.pi * (b @ (p - other))) for b in B)
assert abs(fourier_features(p, B) @ fourier_features(other, B) - product) < 1e-12
z, share = np.polynomial.hermite_e.hermegauss(60)  # a standard normal number: values, shares
cosines = np.cos(2 * math.pi * 0.5 * np.stack(np.meshgrid(z, z), axis=-1) @ (p - other))
mean = share @ cosines @ share / share.sum() ** 2  # over both components of b, with sigma = 1/2
assert abs(mean - math.exp(-2 * math.pi**2 * 0.5**2 * np.sum((p - other) ** 2))) < 1e-12

# %% alt="Similarity of two points over their distance for three sigmas, with expected bells as lines and 256 drawn waves as dots. The larger sigma is, the narrower the bell. The dots stay within a tenth of their lines."
distance, unit = np.linspace(0, 1, 60), rng.standard_normal((256, 2))
steps, exact, drawn = distance[:, None] * [0.6, 0.8], {}, {}
for sigma in (0.25, 0.5, 1.0):
    exact[name := f"$\\sigma = {sigma}$"] = np.exp(-2 * (math.pi * sigma * distance) ** 2)
    features = fourier_features(steps, sigma * unit)
    drawn[name] = features @ features[0] / 256
    assert np.abs(drawn[name] - exact[name]).max() < 0.1
bell = np.exp(-2 * (math.pi * 0.06) ** 2 * ((cells - [5, 9]) ** 2).sum(axis=-1))  # first figure
miss = np.abs(spot @ spot[5, 9] / 64 - bell).max()
print(f"the spot of 64 waves: up to {miss:.2f} from its bell")
assert 0.15 < miss < 0.2
plots.gaussian_of_waves(distance, exact, drawn)
plt.show()

# %% [markdown]
# Hence the spot in the first figure. Its expected shape is a round bell, and its 64 waves come within
# 0.2 of it; the rest is still visible. The function calls the point `x`. Save the draw with the
# weights, because another draw is another encoding.
#
# **Three relatives.** The *sinusoidal encoding* is the case of one coordinate and $B=\theta/2\pi$.
# *NeRF* ([arXiv:2003.08934](https://arxiv.org/abs/2003.08934), equation 4) takes waves along the axes
# whose frequencies double, $\sin2^l\pi p$ and $\cos2^l\pi p$, so $B=2^{l-1}$. Its source code leaves
# out the $\pi$, on purpose ([nerf #12](https://github.com/bmild/nerf/issues/12)): with it the slowest
# wave gives both ends of $-1$ to 1 the same encoding. *SAM*
# ([dca509f](https://github.com/facebookresearch/segment-anything/blob/dca509fe79/segment_anything/modeling/prompt_encoder.py))
# encodes the middles of pixels, $x$ before $y$, from $-1$ to 1. It has the sines first, as the
# authors' notebook does, while their text has the cosines first.

# %%
doubling = fourier_features([0.25], [[0.5], [1.0], [2.0]]).reshape(2, 3)  # cosines, then sines
print("NeRF at 0.25:", (doubling[::-1].T.ravel().round(6) + 0.0).tolist())
tested = fourier_features([0.125, 0.25], np.diag([1.0, 2.0])).round(6) + 0.0
print("features of (1/8, 1/4), B = diag(1, 2):", tested.tolist())
for name, B in (("with pi", [[0.5]]), ("without", [[0.5 / math.pi]])):
    first, last = fourier_features([[-1.0], [1.0]], B)
    ends = np.round([first, last], 2) + 0.0
    print(f"the ends of -1 to 1, {name}:", ends.tolist())
    assert np.allclose(first, last, rtol=0, atol=1e-12) == (name == "with pi")
theta, at = 10000.0 ** (-np.arange(4) / 4), np.arange(50)
cosines, sines = np.split(fourier_features(at[:, None], theta[:, None] / (2 * math.pi)), 2, axis=1)
code = sinusoidal(at, 8, layout="concatenated")
assert np.allclose(np.hstack([sines, cosines]), code, rtol=0, atol=1e-12)

# %% [markdown]
# ## In short
#
# - **Which sinusoids does my checkpoint contain?** Print the row of position 1. If sines and cosines
#   alternate, it is the paper's. If all sines come first and the last is exactly $\sin 10^{-4}$, it
#   is the timing signal. [Layouts](#sinusoidal-layouts-paper-concatenated-or-timing-signal).
# - **Which axis comes first?** The column in MAE, the row in DETR, timm and here. Only DETR
#   alternates sines and cosines. A square grid hides an exchange, so test with 2 by 3 cells.
#   [Component order](#component-order-in-timm-mae-and-detr).
# - **Where does DETR start to count?** At 1, and it counts only non-padding cells. Normalised, the
#   last count is $2\pi$. Padding does not change an image's encodings.
#   [Padding masks](#padding-masks-in-detr).
# - **How do I resize a trained table?** Remove rows that are not patches, interpolate rows and
#   columns with one matrix each, put them back. Use the kernel, places and antialias of the
#   checkpoint. [Interpolation](#interpolating-a-position-table-for-larger-images),
#   [list by library](#in-practice).
# - **Which bicubic is it?** torch has two: $a=-3/4$ by default, and $a=-1/2$ with `antialias=True`.
#   They differ even when a table grows.
#   [Bicubic](#bicubic-interpolation-in-torch-two-values-of-a-second-reading).
# - **What about coordinates that are not whole numbers?** Use Fourier features, cosines and sines of
#   random waves. Their expected likeness is a Gaussian bell over the distance. A larger $\sigma$
#   makes it narrower. [Fourier features](#fourier-features-for-points-without-a-grid).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 25` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 25_grid.py` checks yours.
#
# ### Exercise 1: A detector
#
# Write `layout_of(row)`, which takes the encoding of position 1 (width 4 or more) and returns
# "paper", "concatenated" or "timing".
#
# <details><summary>Hint 1</summary>
#
# In the paper's layout the second number is a cosine.
#
# </details>
# <details><summary>Hint 2</summary>
#
# In the other two the last sine is in the middle of the row. How large is it?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# def layout_of(row):
#     if math.isclose(row[1], math.cos(1)):
#         return "paper"
#     return "timing" if math.isclose(row[len(row) // 2 - 1], math.sin(1e-4)) else "concatenated"
#
# for D in (4, 8, 64, 512):
#     assert layout_of(sinusoidal(1, D)) == "paper"
#     assert layout_of(sinusoidal(1, D, layout="concatenated")) == "concatenated"
#     assert layout_of(timing_signal(1, D)) == "timing"
# ```
#
# </details>
#
# ### Exercise 2: There and back
#
# Enlarge a table from 4 rows to 7 and shrink it again. Which of `ways` give the old table back?
#
# <details><summary>Hint 1</summary>
#
# `resize_matrix(7, 4, **way) @ resize_matrix(4, 7, **way)` should be the identity.
#
# </details>
# <details><summary>Hint 2</summary>
#
# With corners every second of the 7 rows is an old one.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# back = {n: resize_matrix(7, 4, **way) @ resize_matrix(4, 7, **way) for n, way in ways.items()}
# same = [n for n, W in back.items() if np.allclose(W, np.eye(4), rtol=0, atol=1e-12)]
# assert same == ["linear, corners"]
# ```
#
# </details>
#
# ### Exercise 3: As wide as you like
#
# Coordinates run from 0 to 1. For which $\sigma$ are points a quarter apart half as alike as a point
# is to itself? Test it with a hundred thousand waves.
#
# <details><summary>Hint 1</summary>
#
# $e^{-2\pi^2\sigma^2d^2}=1/2$ with $d=1/4$.
#
# </details>
# <details><summary>Hint 2</summary>
#
# $\sigma=\sqrt{\ln2/2}\,/(\pi d)$.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# sigma = math.sqrt(math.log(2) / 2) / (math.pi / 4)
# waves = sigma * np.random.default_rng(9).standard_normal((100_000, 2))
# codes = fourier_features([[0.5, 0.5], [0.65, 0.7]], waves)  # 3-4-5: 0.25 apart
# assert abs(codes[0] @ codes[1] / 100_000 - 0.5) < 0.01
# ```
#
# </details>
#
# ## In practice
#
# | | who uses it | trained | cost | verdict |
# |---|---|---|---|---|
# | timing signal | tensor2tensor, fairseq, Whisper, M2M100, Pegasus-X | nothing | a vector per token | know it, to load weights |
# | sinusoids on a grid | MAE (frozen), timm; DETR's form: Mask2Former, Grounding DINO, SAM 2 and 3 | nothing | a vector per token | the default for images if no table should be trained |
# | resized table | ViT, DINOv2, SigLIP-2, Qwen3-VL | the table | two small matrices, once per size | do what the checkpoint was evaluated with |
# | Fourier features | SAM, NeRF | nothing | a vector per point | for coordinates between the pixels |
#
# All four depend only on positions, and a cache stores nothing for them. Deformable DETR subtracts ½
# from the counts. For an image without padding transformers writes the count as a range. Its comment
# says that a compiler's form of the sum loses the dtype
# ([pytorch #189518](https://github.com/pytorch/pytorch/issues/189518)).
#
# **Which resizing?**
#
# | library or model | kernel | places | antialias |
# |---|---|---|---|
# | ViT, DINOv2 (transformers) | cubic (DINOv2 in float32) | cells | no |
# | timm | cubic | cells | yes |
# | SigLIP-2 | linear | cells | yes |
# | ViT (JAX) | linear | corners | no |
# | Qwen3-VL | linear | corners | no |
# | SAM's and MViT's tables of offsets | linear | cells | no |
#
# Bicubic instead of bilinear changes SigLIP-2's outputs
# ([pytorch-image-models #2543](https://github.com/huggingface/pytorch-image-models/pull/2543)).
# Version 2.13 of torch gives a new image of *one* column its first row everywhere, with antialias on
# the CPU. Here each axis is resized by itself.
#
# **Odd widths.** tensor2tensor and fairseq add a column of zeros, as `timing_signal` does. XLM's rule
# in transformers keeps the denominator $D$ and has one more sine than cosines. Marian's puts that
# sine at the end of the first half. `sinusoidal` refuses odd widths.

# %%
angle = [3 / 10000 ** (2 * i / 5) for i in range(3)]
xlm = [wave(a) for a in angle for wave in (math.sin, math.cos)][:5]
marian = [*map(math.sin, angle), *map(math.cos, angle[:2])]
for name, row in (("timing", timing_signal(3, 5)), ("XLM", xlm), ("Marian", marian)):
    print(f"{name:7} D = 5, p = 3:", np.round(row, 5).tolist())
assert timing_signal(3, 5)[-1] == 0 and sorted(xlm) == sorted(marian)

# %% [markdown]
# ## Further reading
#
# - Carion et al. 2020, *End-to-End Object Detection with Transformers*,
#   [arXiv:2005.12872](https://arxiv.org/abs/2005.12872): DETR.
# - He et al. 2021, *Masked Autoencoders Are Scalable Vision Learners*,
#   [arXiv:2111.06377](https://arxiv.org/abs/2111.06377): MAE; and its
#   [code](https://github.com/facebookresearch/mae/blob/efb2a8062c/util/pos_embed.py).
# - Tancik et al. 2020, *Fourier Features Let Networks Learn High Frequency Functions in Low
#   Dimensional Domains*, [arXiv:2006.10739](https://arxiv.org/abs/2006.10739).
# - Dosovitskiy et al. 2021, *An Image is Worth 16x16 Words*,
#   [arXiv:2010.11929](https://arxiv.org/abs/2010.11929): resizing for larger images.
