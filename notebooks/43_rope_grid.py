# %% [markdown]
# # 43. 2-D and multimodal RoPE (axial RoPE, M-RoPE)
#
# *How does RoPE rotate by a row and a column, and which position does an image have among words?*
#
# 35 minutes. Needs [25 2-D positional encodings for images (ViT, DETR, NeRF features)](25_grid.ipynb), [40 Rotary position embedding (RoPE): the derivation](40_rope_derived.ipynb), [41 RoPE in code: signs, layouts, caches, precision](41_rope_computed.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Ordinary RoPE rotates queries and keys by one number, the token's position. A
# piece of an image has two numbers, a row and a column, and a piece of a video has a time as well.
# You extend the rotation to several coordinates, first for images, then for chats that mix text and
# images, as Qwen2-VL reads them. At the end you can tell which variant a model uses, handle images of
# another size, and give the word after an image its right position.

# %% fold="input" alt="One query among 15 by 23 patches, and its score with each patch. Numbering row by row gives a streaked band along its row. Axial RoPE gives a cross, mixed RoPE with one head a cross rotated by 22 degrees, and mixed RoPE with twelve heads a round spot."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import axial_frequencies, mixed_frequencies, mrope_frequencies, mrope_positions
from pe_numpy import patch_coordinates, rope, rope_frequencies, rope_nd
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import rope_grid as plots

rng, theta = np.random.default_rng(1), rope_frequencies(64)
Omegas = {"row by row": np.stack([23 * theta, theta]), "axial": axial_frequencies(64)}
heads = [mixed_frequencies(rng, 64) for _ in range(12)]
Omegas |= {"mixed, one head": heads[4], "mixed, 12 heads": np.hstack(heads)}
plots.rope_grid_maps(Omegas, 15, 23, (7, 11))
plt.show()

# %% [markdown]
# ## One index is not enough for RoPE on images
#
# A model for images cuts an image into **patches**, small squares of pixels, and turns each into a
# token. The figure shows one query, in the black square, and its score with equal keys at all 15 by
# 23 patches. The first map numbers the patches row by row.
#
# Number the patches row by row, $i=wy+x$ for the patch in row $y$ and column $x$ of an image $w$
# patches wide, and rotate by that number ([chapter 40](40_rope_derived.ipynb)). **Predict**, for 2 rows of 3 patches: which kind of
# neighbour does the last patch of row 0 seem to be for the first patch of row 1?

# %% fold="output"
h, w = 2, 3
z = np.random.default_rng(0).standard_normal((2, 8))  # one query, one key
number = {(y, x): w * y + x for y in range(h) for x in range(w)}


def score_by_number(query, key):
    return (rope(z[:1], [number[query]]) @ rope(z[1:], [number[key]]).T).item()


neighbour, line_end = score_by_number((0, 1), (0, 0)), score_by_number((1, 0), (0, 2))
print(f"left neighbour {neighbour:.4f}, end of the line above {line_end:.4f}")
assert np.isclose(neighbour, line_end, rtol=0, atol=1e-12)
assert not np.isclose(neighbour, score_by_number((1, 0), (0, 0)), rtol=0, atol=0.1)

# %% [markdown]
# It seems to be a left neighbour. One number mixes two distances that have nothing to do with each
# other.
#
# ## 2-D RoPE: one angle from two coordinates
#
# Give the token its two **coordinates** $p=(y,x)$, and give each pair of components a **frequency**
# along each of them, in radians per row and per column. The frequencies of one pair are a column of a
# matrix $\Omega$, which has one row for each axis $a$. The angle of pair $c$ is
#
# $$\alpha_c=\sum_a p_a\,\Omega_{ac},\qquad \alpha=p\,\Omega$$
#
# and the pair turns counter-clockwise, as in ordinary RoPE. That is the whole function,
# `rope_nd(q, coordinates, Omega)`. For the patches of an image, counted row by row, it takes a
# shortcut, because $e^{i(y\omega_y+x\omega_x)}=e^{iy\omega_y}e^{ix\omega_x}$ and there are few
# different $y$ and $x$.

# %%
show_source(rope_nd)
Omega = rng.standard_normal((2, 4))
p = patch_coordinates(h, w)
x8 = rng.standard_normal((h * w, 8))
turned = rope_nd(x8, p, Omega)
for i, (y, x) in enumerate(np.ndindex(h, w)):
    for c in range(4):
        cos, sin = (f(y * Omega[0, c] + x * Omega[1, c]) for f in (np.cos, np.sin))
        one, other = x8[i, 2 * c : 2 * c + 2]
        pair = [one * cos - other * sin, one * sin + other * cos]
        assert np.allclose(turned[i, 2 * c : 2 * c + 2], pair, rtol=0, atol=1e-12)

# %% [markdown]
# Work it out by hand with head dimension $K=4$. There are two pairs, the first for the row and the
# second for the column, both with frequency 1. The image has 2 rows and 3 columns of patches, and
# each has the same vector $(1,0,1,0)$, two clock hands that point to the right.

# %% alt="Six patches, two rows of three, each with two clocks. The first hand rotates from row to row and is equal along a row. The second rotates from column to column and is equal down a column."
plots.rope_grid_hands((p @ np.eye(2)).reshape(h, w, 2))
plt.show()
six = rope_nd(np.tile([1.0, 0, 1, 0], (6, 1)), p, np.eye(2))
score = six[5] @ six[0] / 2
print(f"patch (1, 2): {six[5].round(4).tolist()}, score with patch (0, 0): {score:.4f}")
assert np.allclose(six[5], [np.cos(1), np.sin(1), np.cos(2), np.sin(2)], rtol=0, atol=1e-15)
assert np.isclose(score, (np.cos(1) + np.cos(2)) / 2, rtol=0, atol=1e-15)

# %% [markdown]
# Patch (1, 2) turns its first hand by 1 radian and its second by 2. Its score with patch (0, 0) is
# $(\cos1+\cos2)/\sqrt4 = 0.0621$.
#
# ### 2-D RoPE scores depend only on the offset
#
# Rotations of one pair add up, so the score of a query at $p$ and a key at $p'$ depends only on the
# difference. With $R(p)$ for the rotation:
#
# $$\big(R(p)\,q\big)\cdot\big(R(p')\,k\big) = \big(R(p-p')\,q\big)\cdot k$$

# %%
q, k = rng.standard_normal((2, 6, 8))
scores = rope_nd(q, p, Omega) @ rope_nd(k, p, Omega).T
for i, j in np.ndindex(6, 6):
    alone = rope_nd(q[i : i + 1], p[i : i + 1] - p[j : j + 1], Omega) @ k[j]
    assert np.isclose(scores[i, j], alone.item(), rtol=0, atol=1e-12)
moved = rope_nd(q, p + [40, -7.5], Omega) @ rope_nd(k, p + [40, -7.5], Omega).T
assert np.allclose(moved, scores, rtol=0, atol=1e-11)
by_number = rope_nd(q, p, np.stack([w * rope_frequencies(8), rope_frequencies(8)]))
assert np.allclose(by_number, rope(q, range(6)), rtol=0, atol=1e-12)

# %% [markdown]
# So the same patches have the same scores wherever they are in the image, and rotated keys may be
# kept in a KV cache. The last two lines of the cell show that the row-by-row number is also a choice
# of $\Omega$, with all columns in one direction $(w,1)\,\theta_c$.
#
# ## Axial RoPE: each pair has its axis
#
# Half of the pairs turn with the row and half with the column, so each column of $\Omega$ has one
# entry that is not 0. Each half has its own **ladder** of frequencies, from 1 down towards $1/b$,
# where $b$ is the base:
#
# $$\Omega=\begin{pmatrix}\theta&0\\0&\theta\end{pmatrix},\qquad \theta_c=b^{-4c/K},\quad c=0,\dots,K/4-1$$

# %%
show_source(axial_frequencies)
Omega = axial_frequencies(8, base=100.0)
print(Omega.round(4).tolist())
by_formula = np.zeros((2, 4))
for c in range(2):
    by_formula[0, c] = by_formula[1, 2 + c] = 100.0 ** (-4 * c / 8)
assert np.allclose(Omega, by_formula, rtol=0, atol=1e-15)
theta = 100.0 ** (-4 * np.arange(2) / 8)
rows, columns = rope(q[:, :4], p[:, 0], theta), rope(q[:, 4:], p[:, 1], theta)
assert np.allclose(rope_nd(q, p, Omega), np.hstack([rows, columns]), rtol=0, atol=1e-15)

# %% [markdown]
# Axial RoPE is two RoPEs side by side, so what you know about one
# ([chapter 41](41_rope_computed.ipynb)) applies to each. The base may be small, because an image has
# few rows. Over 16 steps and with $K=64$ the slowest pair turns by 0.213 radians for the base 100,
# and by 0.0028 for 10,000. On a grid, slow pairs nearly stand still.

# %%
for base in (100, 10_000):
    print(f"base {base}: {16 * axial_frequencies(64, base=base)[0, 15]:.4f}")
assert round(16 * axial_frequencies(64, base=100)[0, 15], 3) == 0.213

# %% [markdown]
# ### A common mistake: row plus column as one position
#
# Give both rows of $\Omega$ the same ladder, so that every pair turns by $(y+x)\,\theta_c$. Then row
# 3, column 5 and row 4, column 4 have one position, 8, and no query can tell equal keys there apart.
# With axial RoPE these keys differ.

# %%
both, ladder = np.array([[3, 5], [4, 4]]), rope_frequencies(8)
for name, choice in (("row + column", np.stack([ladder, ladder])), ("axial", Omega)):
    one, other = rope_nd(np.tile(k[0], (2, 1)), both, choice)
    print(f"{name}: the keys differ by up to {np.abs(one - other).max():.2f}")
    assert np.allclose(one, other, rtol=0, atol=1e-12) == (name == "row + column")

# %% [markdown]
# ### What an axial score cannot express
#
# An axial score is a sum of a part that depends on the rows and one that depends on the columns. Put
# equal keys at the corners of a rectangle, $(y_1,x_1)$ to $(y_2,x_2)$.
# For any query and any key,
#
# $$s_{y_1x_1}+s_{y_2x_2}=s_{y_1x_2}+s_{y_2x_1}$$
#
# So three scores fix the fourth, and the first figure has a cross. **Predict**: does the equation
# hold for a random $\Omega$?

# %% fold="output"
y1, x1, y2, x2 = 1, 2, 4, 7
corners = np.array([[y1, x1], [y2, x2], [y1, x2], [y2, x1]])
for name, choice in (("axial", Omega), ("random", rng.standard_normal((2, 4)))):
    query, keys = rope_nd(q[:1], [[0, 0]], choice), rope_nd(np.tile(k[0], (4, 1)), corners, choice)
    s11, s22, s12, s21 = (query @ keys.T)[0]
    print(f"{name}: {s11 + s22:.4f} and {s12 + s21:.4f}")
    assert np.isclose(s11 + s22, s12 + s21, rtol=0, atol=1e-12) == (name == "axial")

# %% [markdown]
# ## Mixed RoPE: trained directions
#
# To reach the diagonals, let each pair turn along its own direction, and train the directions.
# $\Omega$ becomes a parameter of each head. The authors' code
# ([rope-vit](https://github.com/naver-ai/rope-vit/blob/ce85c2e/models/vit_rope.py)) begins with two
# directions at right angles. It draws an angle $\varphi$ for each head and sets, for
# $c=0,\dots,K/4-1$,
#
# $$\Omega_c=b^{-4c/K}\begin{pmatrix}\cos\varphi\\\sin\varphi\end{pmatrix},\qquad
# \Omega_{c+K/4}=b^{-4c/K}\begin{pmatrix}-\sin\varphi\\\cos\varphi\end{pmatrix},\qquad b=10$$

# %%
show_source(mixed_frequencies)
Omega = mixed_frequencies(np.random.default_rng(3), 8)
phi = np.random.default_rng(3).uniform(0, 2 * np.pi)
first, second = np.split(Omega, 2, axis=1)
for c in range(2):
    length = 10.0 ** (-4 * c / 8)
    assert np.allclose(first[:, c] / length, [np.cos(phi), np.sin(phi)], rtol=0, atol=1e-14)
    assert np.allclose(second[:, c] / length, [-np.sin(phi), np.cos(phi)], rtol=0, atol=1e-14)
turn = np.array([[np.cos(phi), -np.sin(phi)], [np.sin(phi), np.cos(phi)]])
assert np.allclose(Omega, turn @ axial_frequencies(8, base=10.0), rtol=0, atol=1e-15)

# %% [markdown]
# So a new mixed head is an axial one, of base 10, whose axes are rotated by $\varphi$. In the figure,
# each dot is a column of $\Omega$, the frequencies of one pair.

# %% alt="The columns of four matrices Omega as dots on rays. Axial RoPE has four dots straight down, for the row, and four to the right, for the column. Three mixed heads have the same right angle, rotated by other amounts."
rng = np.random.default_rng(1)
heads = {f"mixed, head {i}": mixed_frequencies(rng, 16) for i in range(3)}
plots.rope_grid_columns({"axial": axial_frequencies(16, base=10.0)} | heads)
plt.show()
around = np.arange(24) * np.pi / 12
ring = 4 * np.stack([np.cos(around), np.sin(around)], axis=1)  # in the first figure
for name in ("axial", "mixed, one head", "mixed, 12 heads"):
    seen = np.cos(ring @ Omegas[name]).mean(axis=1)
    print(f"{name}, four patches away: from {seen.min():.2f} to {seen.max():.2f}")
    assert (np.ptp(seen) < 0.05) == (name == "mixed, 12 heads")

# %% [markdown]
# Together, these twelve heads attend to a round neighbourhood: their mean score is nearly the same
# in all directions. Training then moves each column. `rope_nd` takes the matrices of all heads,
# $(H, 2, K/2)$.
#
# ## Seven implementations of 2-D RoPE: axis order, base, pairs
#
# Seven libraries differ in the order of the axes, the ladder, the base, the pairs and the unit of
# length. The table gives the four angles of the token in row 1 and column 2, with $K=8$:
#
# | code | base | axes | angles | pairs |
# |---|---|---|---|---|
# | [rope-vit](https://github.com/naver-ai/rope-vit/tree/ce85c2e), axial | 100 | column first | 2, 0.2, 1, 0.1 | interleaved |
# | [timm](https://github.com/huggingface/pytorch-image-models/tree/aa4b585), `in_pixels=False` | 10,000 | row first | 1, 0.01, 2, 0.02 | interleaved, or half |
# | Qwen2-VL's image part | 10,000 | row first | 1, 0.01, 2, 0.02 | half |
# | Pixtral | 10,000 | one ladder, rungs in turn | 1, 0.01, 0.2, 0.002 | half |
# | Gemma 4's image part | 100 | column first | 2, 0.2, 1, 0.1 | half, inside each axis |
# | [EVA-02](https://github.com/baaivision/EVA/tree/5623d08) | 10,000 | row first | as timm, count squeezed | interleaved |
# | [DINOv3](https://github.com/facebookresearch/dinov3/tree/6876159) | 100 | row first | from -1 to 1, times $2\pi$ | half |
#
# Qwen2-VL, Pixtral and Gemma 4 are listed as in transformers 5.23.0.

# %%
at, two = np.array([[1, 2]]), axial_frequencies(8, base=1e4)
alternate = axial_frequencies(8, base=1e4, spacing="alternate")
hundred = axial_frequencies(8, base=100.0)
columns_first = hundred[:, [2, 3, 0, 1]]
assert np.allclose(at @ columns_first, [2, 0.2, 1, 0.1], rtol=0, atol=1e-15)
assert np.allclose(at @ two, [1, 0.01, 2, 0.02], rtol=0, atol=1e-15)
assert np.allclose(at @ alternate, [1, 0.01, 0.2, 0.002], rtol=0, atol=1e-15)
assert np.allclose(at @ hundred, [1, 0.1, 2, 0.2], rtol=0, atol=1e-15)

# %% [markdown]
# Equal angles can still apply to different components. Gemma 4 pairs halves *within* the components
# of each axis, which is the half layout with permuted components:

# %%
one_to_eight, order = np.arange(1.0, 9.0)[None], [0, 1, 4, 5, 2, 3, 6, 7]
blocks = rope_nd(one_to_eight[:, order], at, hundred, "half")[0, order]
turn, fours = [1, 0.1], np.split(one_to_eight, 2, axis=1)
by_axis = [rope(four, [n], turn, "half") for n, four in enumerate(fours, 1)]
assert np.allclose(blocks, np.hstack(by_axis), rtol=0, atol=1e-14)

# %% [markdown]
# ### A common mistake: swapped height and width
#
# Suppose the coordinates are made for $(w,h)$, but the patches come from $(h,w)$. On a square
# nothing changes, so no test on squares can show the mistake. timm's
# [#2541](https://github.com/huggingface/pytorch-image-models/pull/2541) fixed the order for
# column-first models and images that are not square. **Predict** what happens to the coordinates of
# a 2 by 3 image.

# %% fold="output"
right, wrong = patch_coordinates(2, 3), patch_coordinates(3, 2)
print("right:", right.astype(int).tolist())
print("wrong:", wrong.astype(int).tolist())
good, bad = (rope_nd(q, at, hundred) @ rope_nd(k, at, hundred).T for at in (right, wrong))
print(f"largest change of a score: {np.abs(good - bad).max():.2f}")
assert np.abs(good - bad).max() > 1

# %% [markdown]
# ## 2-D RoPE for images of another size
#
# A model trained on 14 by 14 patches is given 20 by 20. Three answers are in use. The first
# continues to count (Qwen2-VL, Pixtral). Then fast pairs are fine, but slow pairs reach new angles,
# as with longer texts. The second squeezes the count by the trained over the present size (EVA-02;
# timm's `ref_feat_shape`). The third measures the middle of patch $i$ of $N$ from -1 to 1 and puts
# a factor $2\pi$ into $\Omega$ (DINOv3). With $N_0$ patches in training, the second and the third
# positions are
#
# $$i\,\frac{N_0}{N}\qquad\text{and}\qquad \frac{2\,(i+\tfrac12)}{N}-1$$

# %%
show_source(patch_coordinates)
squeezed, centred = patch_coordinates(1, 3, trained=2)[:, 1], patch_coordinates(2, 3, "centred")
print("3 columns, trained with 2:", squeezed.round(4).tolist())
assert np.allclose(squeezed, [i * 2 / 3 for i in range(3)], rtol=0, atol=1e-15)
for i, (y, x) in enumerate(np.ndindex(2, 3)):
    middle = [2 * (y + 0.5) / 2 - 1, 2 * (x + 0.5) / 3 - 1]
    assert np.allclose(centred[i], middle, rtol=0, atol=1e-15)
angles = centred[5] @ (2 * np.pi * hundred)
print("last of 2 by 3:", centred[5].round(6).tolist(), "rotates by", angles.round(6).tolist())
assert angles.round(6).tolist() == [3.141593, 0.314159, 4.18879, 0.418879]

# %% alt="Positions of 14 trained patches of an axis and of 20 later ones, in three ways. Counted, the last six are outside the trained range. Squeezed, all but the last are inside, closer together. Centred, both fill the range from -1 to 1."
fourteen, twenty = (patch_coordinates(1, N)[:, 1] for N in (14, 20))
ways = {"counted": (fourteen, twenty)}
ways["squeezed"] = fourteen, patch_coordinates(1, 20, trained=14)[:, 1]
ways["centred"] = tuple(patch_coordinates(1, N, "centred")[:, 1] for N in (14, 20))
plots.rope_grid_sizes(ways)
plt.show()
assert (twenty > 13).sum() == 6 and (ways["squeezed"][1] > 13).sum() == 1

# %% [markdown]
# Squeezing keeps the image's size, not the patch's, so one step to the right now counts 0.7. This
# is right if the same image comes with finer patches ([chapter 25](25_grid.ipynb) has the same
# choice for tables).
#
# A class token, like DINOv3's registers (extra tokens without a patch), has no position and is not
# rotated. It then *is at the origin*, which is the upper left corner for counted patches and the
# middle of the image for centred ones.

# %%
assert np.allclose(np.diff(patch_coordinates(20, 20, trained=14)[:20, 1]), 0.7, rtol=0, atol=1e-12)
token = rng.standard_normal((1, 8))
assert np.array_equal(rope_nd(token, [[0, 0]], hundred), token)
assert patch_coordinates(14, 14)[0].tolist() == [0, 0]
assert patch_coordinates(15, 15, "centred")[112].tolist() == [0, 0]  # row 7, column 7

# %% [markdown]
# ### DINOv3: shift, jitter and rescale coordinates in training
#
# In training, DINOv3's
# [code](https://github.com/facebookresearch/dinov3/blob/6876159/dinov3/layers/rope_position_encoding.py)
# can add one random number to all rows and another to all columns (**shift**). It can multiply each
# axis by a factor (**jitter**), or both by the same one (**rescale**). Its file
# `dinov3_vit7b16_pretrain.yaml` asks only for the last, by 1/2 to 2. **Predict**: which of the three
# changes no score between patches?

# %% fold="output"
grid, ladder = patch_coordinates(2, 3, "centred"), 2 * np.pi * hundred
changed = {"shift": grid + [0.3, -0.2], "jitter": grid * [1.5, 0.8], "rescale": grid * 1.6}
for name, at in changed.items():
    (q0, k0), (q1, k1) = ([rope_nd(v, here, ladder) for v in (q, k)] for here in (grid, at))
    patches, class_token = np.abs(q1 @ k1.T - q0 @ k0.T), np.abs(token @ (k1 - k0).T)
    print(f"{name:7} patches {patches.max():.2f}, class token {class_token.max():.2f}")
    assert (patches.max() < 1e-12) == (name == "shift") and class_token.max() > 0.1

# %% [markdown]
# A shift, because no difference of coordinates changes. But the class token does not move, so its
# scores change. The factors change distances, as images with another number of patches do.
#
# ## M-RoPE: text and images in one sequence
#
# A chat contains words, images and videos. **M-RoPE** (multimodal RoPE, Qwen2-VL) gives every token
# three coordinates: time, row and column. For text all three are equal. An image begins at the next
# free number $n$. Its time is $n$, and its rows and columns count from $n$. What follows begins one
# after the largest number so far. All counts are in tokens, and Qwen2-VL merges 2 by 2 patches into
# one. A token's **slot** is its index in the sequence, and so its row in the KV cache. The example
# has two words, an image of 2 by 3 tokens and a word:

# %%
show_source(mrope_positions)
positions, delta = mrope_positions([2, (1, 2, 3), 1])
for axis, row in zip(("time", "row", "column"), positions.T, strict=True):
    print(f"{axis:6}", row.tolist())
print("delta", delta)
by_hand = [[n, n, n] for n in (0, 1)] + [[2, 2 + y, 2 + x] for y in (0, 1) for x in (0, 1, 2)]
assert positions.tolist() == by_hand + [[5, 5, 5]] and delta == 6 - 9

# %% alt="Nine tokens: two words, six patches, one word. On the left, words are on the diagonal, with the image between them as a block of two rows and three columns. On the right, position equals slot up to the image, where time does not advance. The last word, in slot 8, is three below the diagonal."
plots.rope_grid_places(positions, [0, 1, 8])
plt.show()

# %% [markdown]
# The largest number in the image is 4, in its last column. So the word after it is at 5, three less
# than its slot, 8. What is $\Omega$? There is only *one* ladder, and each pair belongs to one axis,
# $a(c)$:
#
# $$\Omega_{ac}=b^{-2c/K}\ \text{ if } a=a(c),\ \text{ else } 0$$
#
# `mrope_section` contains the number of pairs for time, row and column. Qwen2-VL assigns them in
# order (16, 24, 24). Qwen3-VL assigns them in turn (24, 20, 20), as time, row, column, time, ..., and
# gives all the rest to time.

# %%
show_source(mrope_frequencies)
for sections, flag, owners in (((2, 3, 3), False, "ttyyyxxx"), ((4, 2, 2), True, "tyxtyxtt")):
    Omega = mrope_frequencies(sections, interleaved=flag)
    for c, owner in enumerate(owners):
        column = [10_000 ** (-2 * c / 16) if axis == owner else 0 for axis in "tyx"]
        assert np.allclose(Omega[:, c], column, rtol=0, atol=1e-15)
    print(owners, "at (5, 6, 8):", ([5, 6, 8] @ Omega).round(4).tolist())
    text = rope_nd(np.ones((7, 16)), np.tile(np.arange(7)[:, None], 3), Omega, "half")
    assert np.allclose(text, rope(np.ones((7, 16)), range(7), layout="half"), rtol=0, atol=1e-12)

# %% alt="The axis of each of 64 pairs. Qwen2-VL has blocks: 16 pairs for time, 24 for the row, 24 for the column. Qwen3-VL alternates the three up to pair 59, then has four for time. VideoRoPE alternates row and column up to pair 47, then has 16 for time."
shares = {
    "Qwen2-VL": np.argmax(mrope_frequencies((16, 24, 24)) > 0, axis=0),
    "Qwen3-VL": np.argmax(mrope_frequencies((24, 20, 20), interleaved=True) > 0, axis=0),
    "VideoRoPE": np.where(np.arange(64) < 48, 1 + np.arange(64) % 2, 0),
}
plots.rope_grid_ladders(shares)
plt.show()
counts = [np.bincount(own).tolist() for own in shares.values()]
assert counts == [[16, 24, 24], [24, 20, 20], [16, 24, 24]]
assert (shares["Qwen3-VL"][60:] == 0).all()

# %% [markdown]
# For text the three coordinates are equal, so each pair turns as in ordinary RoPE, no matter which
# axis owns it. Therefore a model for images can begin with the weights of one for text. In blocks,
# time has the fast pairs. If pairs are assigned in turn, each axis has fast and slow ones.
#
# ### M-RoPE by hand: a small image
#
# Take three pairs, $K=6$, one for each axis, and the base 1000, so the frequencies are 1, 0.1 and
# 0.01. Every token has $(1,0)$ in each pair. What is the score $s$ of the last word with the last
# patch of the image, row 1 and column 2?
#
# | | time | row | column |
# |---|---|---|---|
# | the word is at | 5 | 5 | 5 |
# | the patch is at | 2 | 2 + 1 = 3 | 2 + 2 = 4 |
# | difference | 3 | 2 | 1 |
# | times the frequency | 3 | 0.2 | 0.01 |
#
# Each pair contributes the cosine of its angle, so
#
# $$s=\frac{\cos 3+\cos 0.2+\cos 0.01}{\sqrt6}$$

# %%
Omega = mrope_frequencies((1, 1, 1), base=1000.0)
nine = rope_nd(np.tile([1.0, 1, 1, 0, 0, 0], (9, 1)), positions, Omega, "half")
score, cos = nine[8] @ nine[7] / np.sqrt(6), np.cos
print(f"the last word with the last patch: {score:.4f}")
assert np.isclose(score, (cos(3) + cos(0.2) + cos(0.01)) / np.sqrt(6), rtol=0, atol=1e-14)

# %% [markdown]
# From patch to patch the hand of time does not turn: all patches of an image share one time.
#
# ### A common mistake: two meanings of interleaved in M-RoPE
#
# Here `interleaved` says which axis owns pair $c$. Which *components* form pair $c$ is another
# question, and the answer of Qwen2-VL and Qwen3-VL is the half layout. (GLM-4V, in transformers
# 5.23.0, has blocks and interleaved pairs.)

# %%
Omega = mrope_frequencies((4, 2, 2), interleaved=True)
q16, k16 = rng.standard_normal((2, 9, 16))
ways = ("half", "interleaved")
turned = [[rope_nd(v, positions, Omega, way) for v in (q16, k16)] for way in ways]
right, wrong = (a @ b.T / 4 for a, b in turned)
print(f"a score of {right[8, 2]:.3f} becomes {wrong[8, 2]:.3f}")
assert np.abs(right - wrong).max() > 0.5
assert np.isclose(right[4, 4], wrong[4, 4], rtol=0, atol=1e-12)  # no distance, no difference

# %% [markdown]
# ### A common mistake: forgetting rope_deltas
#
# While a model answers, it reads one token at a time, in slot $m$ of its cache. Let the prompt have
# $L$ tokens and let its largest number be $M$. The new token is text, so its position is
#
# $$m+\delta,\qquad \delta=M+1-L$$
#
# on all three axes. Libraries store $\delta$ as `rope_deltas`. **Predict** $\delta$ for two words and
# an image of 16 by 16.

# %% fold="output"
prompt, delta = mrope_positions([2, (1, 16, 16)])
print("L =", len(prompt), " M =", prompt.max(), " delta =", delta)
assert delta == prompt.max() + 1 - len(prompt) == -240
longer, _ = mrope_positions([2, (1, 16, 16), 4])
for slot in range(258, 262):
    assert longer[slot].tolist() == [slot + delta] * 3
new, old = rope_nd(q16[:1], [[18] * 3], Omega, "half"), rope_nd(k16[:1], prompt[-1:], Omega, "half")
lost = rope_nd(q16[:1], [[258] * 3], Omega, "half")
right, wrong = ((query @ old.T).item() / 4 for query in (new, lost))
print(f"score with the last patch: {right:.3f}, without delta {wrong:.3f}")
assert not np.isclose(right, wrong, rtol=0, atol=0.4)

# %% [markdown]
# Without $\delta$ the first answer token would be 240 positions too far from everything it has
# read. The prompt is computed correctly, so only the answer suffers: "the the the" in
# [mlx-vlm #1619](https://github.com/Blaizzy/mlx-vlm/issues/1619), where the answer's tokens were at
# 0 and then at their slots. The delta belongs to a sequence, not to a model. If it is kept on the
# model, a later request can overwrite it
# ([mlx-vlm #1415](https://github.com/Blaizzy/mlx-vlm/issues/1415)).
#
# ### Video: frame numbers, seconds or timestamps
#
# A model reads a video's frames at a sampling rate (`fps`), and these four merge each two into one
# *step*. What is the time of the step that begins $s$ seconds into the video? With $n$ for the next
# free number, in transformers 5.23.0 (`get_rope_index`, and `processing_qwen3_vl.py`):
#
# | model | time of the step |
# |---|---|
# | Qwen2-VL | **frame numbers**: $n$, $n+1$, $n+2$, ... |
# | Qwen2.5-VL | **seconds**: $n$ plus `tokens_per_second` (4 by default) times $s$, rounded down |
# | Qwen2.5-Omni | **TMRoPE**: $n+25s$, rounded down; 40 ms per number, also for audio |
# | Qwen3-VL | a **timestamp** written before it, then the next free number, as for an image |
#
# **Predict**: for which models do the times of the seconds 0 to 3 change if `fps` doubles?


# %% fold="output"
def times_of(fps, n=2, h=2, w=3, stamp=6):  # four seconds; a timestamp of six tokens
    f = np.arange(4 * fps // 2)
    seconds = 2 * f / fps  # `second_per_grid_ts` is 2 / fps
    counted, _ = mrope_positions([n, (len(f), h, w)])
    written, _ = mrope_positions([n, *[stamp + 1, (1, h, w), 1] * len(f)])  # start, step, end
    return {
        "Qwen2-VL": counted[n :: h * w, 0],
        "Qwen2.5-VL": n + (4 * seconds).astype(int),
        "Qwen2.5-Omni": n + (25 * seconds).astype(int),
        "Qwen3-VL": written[n + stamp + 1 :: stamp + 2 + h * w, 0],
    }


# %% fold="output"
slow, fast = times_of(2), times_of(4)
for name in slow:
    print(f"{name:12} 2 fps {slow[name].tolist()}, 4 fps {fast[name].tolist()}")
    assert np.array_equal(slow[name], fast[name][::2]) == (name[:7] == "Qwen2.5")
print("written:", *(f"<{s + 0.25:.1f} seconds>" for s in range(4)))  # the mean of two frames
assert set(np.diff(slow["Qwen3-VL"])) == set(np.diff(fast["Qwen3-VL"])) == {6 + 2 + 3}

# %% [markdown]
# In Qwen2.5-VL and Qwen2.5-Omni each second keeps its time, and in Qwen2.5-Omni a sound has the time
# of its frame. (With `use_audio_in_video`, 2 seconds of frames and of sound alternate.) In Qwen2-VL
# one second is one number at 2 fps and two at 4. In Qwen3-VL the next step is 11 further at any
# rate, and the seconds are only in the text, to one decimal.
#
# ### Text positions after a video in M-RoPE
#
# Where does the text after a video continue? With $F$ frames of $h\times w$, it continues at
# $n+\max(F,h,w)$ here and in transformers, version 4.57, and at $n+\max(h,w)$ in 5.23.0.
# ([#45381](https://github.com/huggingface/transformers/issues/45381) reports wrong video positions
# in version 5.3.0.) The two rules differ once there are more frames than rows and columns. In
# 5.23.0 text after Qwen2.5-VL's video above begins at 5, but at 4 fps the video's times reach 16.

# %%
film, _ = mrope_positions([2, (6, 2, 3), 1])
print("text after a video of 6 frames:", film[-1].tolist(), " in 5.23.0:", 2 + max(2, 3))
assert film[-1].tolist() == [8, 8, 8] and film[-2].tolist() == [7, 3, 4]

# %% [markdown]
# ## VideoRoPE and LieRE (second reading)
#
# **VideoRoPE**
# ([code](https://github.com/Wiselnn570/VideoRoPE/blob/7712ca3/videorope-transformer/modeling_videorope.py))
# gives time the *slowest* pairs, and rows and columns the rest in turn. It puts frames along a
# diagonal. Frame $f$ (from 0) is at $t=n+2f$, with its rows and columns around $t$.
# (`ernie4_5_vl_moe` in transformers 5.23.0 shares the pairs in the same way; its `mrope_section` has
# time last.)

# %%
f, y, x = np.indices((2, 2, 3)).reshape(3, -1)
t = 2 + 2 * f  # two words before
diagonal = np.stack([t, t + y - (2 - 1) // 2, t + x - (3 - 1) // 2], axis=1)
print(diagonal[:6].tolist(), "then text at", t.max() + 1)
assert (diagonal[:, 0] + 1 == diagonal[:, 2]).sum() == 4 and t.max() + 1 == 5

# %% [markdown]
# **LieRE** ([arXiv:2406.10322](https://arxiv.org/abs/2406.10322)) lets a coordinate rotate more
# than pairs, by $R(p)=\exp(\sum_a p_aG_a)$ with trained matrices $G_a^\top=-G_a$. If these don't
# commute, scores depend on more than the difference. STRING
# ([arXiv:2502.02562](https://arxiv.org/abs/2502.02562)) requires that they commute. Then one change
# of basis turns all of them into pairs, and the result is mixed RoPE again
# ([chapter 70](70_algebra.ipynb#several-axes-commuting-generators-second-reading) computes both).

# %% [markdown]
# ## In short
#
# - **What is 2-D RoPE, axial or mixed?** A pair turns by $(p\,\Omega)_c$, with $p=(y,x)$. Scores
#   depend only on the *difference* of coordinates. Axial RoPE turns each pair with the row or the
#   column. Mixed RoPE trains a direction per pair and head.
#   [2-D RoPE](#2-d-rope-one-angle-from-two-coordinates),
#   [axial](#axial-rope-each-pair-has-its-axis), [mixed](#mixed-rope-trained-directions).
# - **Row or column first, which base, which pairs?** Libraries differ, as a table of seven shows.
#   The base is 100 or 10,000. Test with an image that is higher than wide.
#   [Seven implementations](#seven-implementations-of-2-d-rope-axis-order-base-pairs).
# - **What about a larger image?** Continue to count, squeeze the count into the trained range
#   (EVA-02), or measure from -1 to 1 (DINOv3). [Other sizes](#2-d-rope-for-images-of-another-size).
# - **What do `mrope_section` and `rope_deltas` mean?** The first lists how many pairs turn with time,
#   row and column. The second is added to cache slots: after an image of $h\times w$ tokens, text
#   continues only $\max(h,w)$ further. [M-RoPE](#m-rope-text-and-images-in-one-sequence),
#   [delta](#a-common-mistake-forgetting-rope_deltas).
# - **What is the time of a video frame?** Its number (Qwen2-VL) or its seconds times a factor
#   (Qwen2.5-VL, Qwen2.5-Omni). Qwen3-VL writes a timestamp before it instead.
#   [Video](#video-frame-numbers-seconds-or-timestamps).
# - **Does "interleaved" mean interleaved pairs?** Not in M-RoPE. It says which axis owns which pair,
#   in turn or in blocks. Qwen3-VL still pairs $c$ with $c+K/2$.
#   [Two meanings](#a-common-mistake-two-meanings-of-interleaved-in-m-rope).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 43` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 43_rope_grid.py` checks yours.
#
# ### Exercise 1: load rope-vit
#
# The axial heads of rope-vit rotate by the column first. You have its weights and code that expects
# rows first. Which components of each head do you reorder, so that `rope_nd` with
# `axial_frequencies` gives its scores?
#
# <details><summary>Hint 1</summary>
#
# Pairs are interleaved, and the first half of the components belongs to columns.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Reordering queries and keys in the same way changes no score.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Exchange the halves of each head, in $W_q$ and in $W_k$.
#
# ```python
# theirs = lambda v: rope_nd(v, p, hundred[:, [2, 3, 0, 1]])
# ours = lambda v: rope_nd(np.roll(v, 4, axis=-1), p, hundred)
# assert np.allclose(theirs(q) @ theirs(k).T, ours(q) @ ours(k).T, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 2: M-RoPE positions of two images
#
# A sequence has three words, an image of 2 by 2, two words, and an image of 1 by 4. Find by hand
# where the next word is. What is $\delta$?
#
# <details><summary>Hint 1</summary>
#
# The first image takes the numbers 3 and 4.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The words are at 5 and 6. The second image begins at 7, and its columns reach 10.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It is at 11, in slot 13, so $\delta=-2$.
#
# ```python
# where, delta = mrope_positions([3, (1, 2, 2), 2, (1, 1, 4)])
# assert (where.max() + 1, len(where), delta) == (11, 13, -2)
# ```
#
# </details>
#
# ### Exercise 3: rotate the image
#
# Rotate an image of patches by 90°. Which mixed head gives the rotated image the scores that an axial
# head gave the upright one?
#
# <details><summary>Hint 1</summary>
#
# The patch at $(y,x)$ goes to $(x,-y)$, up to a shift, which changes no score.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $p\,\Omega=p'\,\Omega'$ with $p'=pT$ requires $\Omega'=T^{-1}\Omega$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It is the head with $\varphi=-\pi/2$, or $\pi/2$ for the other direction.
#
# ```python
# T = np.array([[0, -1], [1, 0]])
# there = p @ T
# upright = rope_nd(q, p, hundred) @ rope_nd(k, p, hundred).T
# head = np.linalg.inv(T) @ hundred
# assert np.allclose(rope_nd(q, there, head) @ rope_nd(k, there, head).T, upright, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ## In practice
#
# | scheme | who | trained, cached | cost | verdict |
# |---|---|---|---|---|
# | axial | Qwen2-VL's and Gemma 4's image parts, Pixtral, EVA-02; from -1 to 1 in DINOv3 | nothing trained; rotated keys are safe in a cache | as RoPE | simple: rows and columns, no diagonals of its own |
# | mixed | rope-vit | $\Omega$ per head and layer; safe | a table of angles per head | diagonals, if you train |
# | M-RoPE | Qwen2-VL, Qwen2.5-VL (blocks); Qwen3-VL, Qwen3.5 (in turn) | nothing; safe, with its delta | as RoPE | text weights remain valid; in turn, each axis has fast and slow pairs |
#
# - **Write $\Omega$ down.** Its rows are the angles of the patches (1, 0) and (0, 1), counted from 0.
#   One rotated vector 1, ..., $K$ then shows the pairs. Test with an image that has two different
#   sides.
# - **Find out how your video counts time**
#   ([four ways](#video-frame-numbers-seconds-or-timestamps)). Tests with single images pass with any.
# - **Make the causal mask from slots.** All patches of an image share one time, so a mask made from
#   times would let a patch see later ones.
#
# ## Further reading
#
# - Heo et al. 2024, *Rotary Position Embedding for Vision Transformer*,
#   [arXiv:2403.13298](https://arxiv.org/abs/2403.13298).
# - Wang et al. 2024, *Qwen2-VL*, [arXiv:2409.12191](https://arxiv.org/abs/2409.12191).
# - *VideoRoPE*, [arXiv:2502.05173](https://arxiv.org/abs/2502.05173).
#
# **Cards**: [axial](CARDS.md#axial), [mixed](CARDS.md#mixed), [mrope](CARDS.md#mrope).
