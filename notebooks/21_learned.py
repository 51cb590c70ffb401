# %% [markdown]
# # 21. Learned position embeddings
#
# *What if the table is trained, do its rows become alike, and where does it end?*
#
# 30 minutes. Needs [11 Why attention needs positional encoding](11_why_position.ipynb), [20 Sinusoidal positional encoding](20_sinusoidal.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** The simplest positional encoding is a table with one vector per position,
# trained like the rest of the model. BERT, GPT-2 and vision transformers use such learned position
# embeddings. You see how training moves each row, train small tables yourself, and check whether
# neighbouring rows become similar. Then you meet the problem of every table: it ends. At the end
# you can resize a table for larger images, lengthen one for longer texts, and test what a model
# then does.

# %% fold="input" alt="A component of a table for 4 by 4 patches, and the same component resized to 7 by 7 in two ways, with the old cells marked by dots. If rows are points, the outer dots are on the outer cells; if rows are cells, the dots are further in."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import Model, Sizes, cosine_schedule, cross_entropy, decode, hierarchical
from pe_numpy import init_params, learned, sinusoidal, train, value_and_grad
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import learned as plots
from pe_numpy.judging.tasks import offset_batch, text_batch, text_corpus
from pe_numpy.transformer.encodings import Learned

component = np.random.default_rng(3).standard_normal((4, 4))
plots.resized_grids(component, 7)
plt.show()

# %% [markdown]
# ## A position embedding is a row of a table
#
# A **table** $E$ has $N$ rows of width $D$. Training sets these $ND$ numbers. BERT has
# $512\cdot768$ of them, nearly four hundred thousand. Row $k$ is the **position embedding** of
# position $k$. It is added to the vector of the token at this position:
#
# $$p_k = E_k,\qquad x'_k = x_k + E_k$$
#
# The figure shows one component of such a table for an image, with one row per patch, before and
# after [resizing](#resizing-the-position-embeddings-of-a-vision-transformer-vit). Here is a table
# of 4 rows and a text of 3 tokens, one number at a time.


# %%
def add_rows_by_loops(x, table):
    y = np.zeros((len(x), len(x[0])))
    for k in range(len(x)):
        for d in range(len(x[0])):
            y[k, d] = x[k][d] + table[k][d]
    return y


table = np.array([[0.5, 1.0], [2.0, 3.0], [4.0, 6.0], [1.0, 0.0]])  # (N, D)
words = np.array([[1.0, 1.0], [0.0, 0.0], [1.0, -1.0]])  # (L, D)
assert add_rows_by_loops(words, table).tolist() == [[1.5, 2.0], [2.0, 3.0], [5.0, 5.0]]
show_source(learned)
assert np.array_equal(words + learned(table, np.arange(3)), add_rows_by_loops(words, table))

# %% [markdown]
# The package's function takes positions of any shape. A look-up is a matrix product in disguise:
# row $k$ is the **one-hot vector** $e_k$ (a 1 in component $k$, 0 elsewhere) times a trained
# matrix, $E_k = e_k^\top E$. Everything below about the rows follows from this product.
#
# ## Gradients: which rows learn from which texts
#
# Training moves each number against its gradient, which says how much the loss $\ell$ would grow if
# that number grew. Row $k$ is added to the token at position $k$ in every text $b$ of a batch. So
# its gradient is a sum over the batch:
#
# $$\frac{\partial \ell}{\partial E_k} = \sum_b \frac{\partial \ell}{\partial x'_{b,k}}$$
#
# We check this on a small loss. The package computes the gradients ([chapter
# 61](61_autodiff.ipynb)). **Predict** which of the 8 rows get a gradient from texts of 5 tokens.


# %% fold="output"
def small_loss(params, x, W):
    return (np.tanh((x + learned(params["E"], np.arange(x.shape[1]))) @ W) ** 2).mean()


def loss_of_sums(params, W):
    return (np.tanh(params["sums"] @ W) ** 2).mean()


rng = np.random.default_rng(0)
x, W = rng.standard_normal((3, 5, 4)), rng.standard_normal((4, 4))  # 3 texts of 5 tokens
rows = {"E": rng.standard_normal((8, 4))}  # a table of 8 rows
by_row = value_and_grad(small_loss)(rows, x, W)[1]["E"]  # (8, 4)
by_sum = value_and_grad(loss_of_sums)({"sums": x + rows["E"][:5]}, W)[1]["sums"]  # (3, 5, 4)
assert np.allclose(by_row[:5], by_sum.sum(axis=0), rtol=0, atol=1e-14)
print("rows with a gradient:", np.flatnonzero(by_row.any(axis=1)).tolist())

# %% [markdown]
# Late rows learn only from long texts. The authors of BERT planned for this (Devlin et al. 2019,
# appendix A.2): 90% of the steps use 128 tokens, to save time, and the last 10% use 512, "to learn
# the positional embeddings". So three quarters of the rows get a gradient in one step out of ten.
#
# ### Positions are names, not numbers
#
# Does a table encode that 5 and 6 are neighbours? Give the positions other names: a permutation
# $\pi$ sends $k$ to $\pi(k)$. If the rows move with them, each token gets the same vector as
# before:
#
# $$E'_{\pi(k)} = E_k \;\Rightarrow\; x_k + E'_{\pi(k)} = x_k + E_k$$
#
# Every loss, every gradient and every step of training is then the same. Any order that the rows
# show after training comes from the task (and from the causal mask).

# %%
pi = rng.permutation(8)
E, renamed = rows["E"], np.empty((8, 4))
renamed[pi] = E
assert np.array_equal(x + learned(renamed, pi[np.arange(5)]), x + learned(E, np.arange(5)))
print("new names:", pi.tolist(), "  same sums: True")

# %% [markdown]
# ## Are neighbouring position embeddings similar?
#
# For trained models like BERT and GPT-2, people plot the similarity of each row with every other
# row and find a bright diagonal: neighbouring rows are alike. It is tempting to read that as "the
# table has discovered order, and this is how the model knows positions". Let us train some and see.
#
# We take two tasks, a table of 32 rows, one layer of attention and four heads. In **three back**
# the model reads random symbols and names the one three positions before. In **text** it guesses
# the next letter of Newton's *Opticks*. The rows start as random numbers of a given size (their
# standard deviation): 0.5, or 0.02 as in BERT.

# %%
N, D, corpus = 32, 32, text_corpus()
symbols = {"three back": 16, "text": len(corpus["alphabet"])}


def batch_of(task, rng, size, length, held_out=False):
    if task == "text":
        return text_batch(rng, size, length, corpus, held_out=held_out)
    return offset_batch(rng, size, length, places=3, symbols=16, held_out=held_out)


def table_of(params):
    return params["decoder"]["shared"]["table"]


# %%
def with_table(params, table):
    return {**params, "decoder": {**params["decoder"], "shared": {"table": table}}}


def trained(task, params, length, steps, rate, texts):
    """Train `params` on texts of this length; the table has as many rows."""
    model = Model(4, Learned(length))

    def loss(params, batch, rng):
        logits = decode(params, model, batch["inputs"])
        return cross_entropy(logits, batch["targets"], ignore=-1)

    draw = lambda rng: batch_of(task, rng, texts, length)  # noqa: E731
    return train(params, value_and_grad(loss), draw, steps, rate)


# %%
def learn(task, size, steps, seed=0):
    sizes = Sizes(symbols[task], D, 64, n_layers=1)
    params = init_params(sizes, Model(4, Learned(N)), np.random.default_rng(seed), np.float64)
    start = with_table(params, table_of(params) * (size / table_of(params).std()))
    return trained(task, start, N, steps, lambda t: cosine_schedule(t, steps, 8e-3), 16)


runs = {}
for task, size, steps in (("three back", 0.5, 200), ("three back", 0.02, 200), ("text", 0.02, 300)):
    runs[task, size], losses = learn(task, size, steps)
    print(f"{task:10} loss {losses[0]:.1f} to {np.mean(losses[-20:]):.1f}", end=", ")
    print(f"size of the rows {size} to {table_of(runs[task, size]).std():.2f}")

# %% [markdown]
# **Predict** the similarities for each of the three tables, that is, the cosines of the angles
# between rows. Will neighbours be alike? Will rows that are three apart be alike?


# %% fold="output" alt="Cosines of all pairs of 32 rows, for sines and three trained tables. Sines give a smooth band. A table that starts at 0.5 shows only the diagonal, one from 0.02 a texture, and the one trained on text a soft, smooth block."
def cosines(E):
    unit = E / np.linalg.norm(E, axis=1, keepdims=True)
    return unit @ unit.T


similar = {"sines": cosines(sinusoidal(np.arange(32), 32))}
similar |= {f"{task}, from {size}": cosines(table_of(p)) for (task, size), p in runs.items()}
for name, c in similar.items():
    near = [np.diagonal(c, d).mean() for d in (1, 2, 3, 4)]
    print(f"{name:22} mean cosine at distance 1 to 4:", *(f"{a + 0.0:5.2f}" for a in near))
    assert (max(map(abs, near)) < 0.1) == (name == "three back, from 0.5")
plots.row_similarities(similar)
plt.show()

# %% [markdown]
# - **Three back, from 0.5**: on average the rows are not similar. They look as random as before
#   training, and the model makes almost no mistakes (next cell).
# - **Three back, from 0.02**: the rows have grown to ten times their size, so nearly everything you
#   see comes from the task. You see a texture, not a smooth band.
# - **Text, from 0.02**: neighbours are alike, as in the plots of large models. In the table of a
#   trained encoder, MiniLM, rows 6 apart are more alike than rows 3 apart. The band has waves ([chapter
#   80](80_real_table.ipynb#a-table-of-512-rows-that-training-wrote)).
#
# How can random rows work? The score of two positions is not the dot product of their rows. It
# contains $E_m W_Q W_K^\top E_n^\top$, and training also sets $W_Q$ and $W_K$. Look at the
# attention weights.

# %% alt="Attention weights of the best head of the two models that attend three tokens back, 32 by 32. Both show a line three places below the diagonal, brighter from 0.5 but with gaps, although their tables look nothing alike."
weights = {}
for size in (0.5, 0.02):
    model = Model(4, Learned(N))
    watch, test = {}, offset_batch(np.random.default_rng(5), 64, N, held_out=True)
    logits = decode(runs["three back", size], model, test["inputs"], watch=watch)
    right = (logits.argmax(axis=-1) == test["targets"])[:, 3:].mean()
    heads = watch["attention 0"].mean(axis=0)  # (H, L, L), mean over the test
    back = np.diagonal(heads, -3, axis1=1, axis2=2)  # (H, L - 3), weight three back
    best = back.mean(axis=1).argmax()
    weights[f"three back, from {size}"] = heads[best]
    print(f"from {size:4}: {right:.1%} right; best head: {back[best].mean():.0%} three back")
    assert right > 0.99 and back[best].mean() > 0.7 and back.max(0).min() > 0.5 > back[best].min()
plots.three_back_weights(weights)
plt.show()

# %% [markdown]
# Both models have learned a line three below the diagonal, from very different tables. Where the
# left map has gaps, other heads look three back. So a model can use positions without similar rows.
# Wang and Chen (2020) study what the tables of BERT, RoBERTa and GPT-2 have learned.
#
# ### Any independent rows can serve (second reading)
#
# A short proof shows that *any* independent rows are enough. Take as many rows as components, so
# that $E$ has an inverse, and any table of scores $S = AB^\top$. Choose $W_Q = E^{-1}A$ and
# $W_K = E^{-1}B$. Then
#
# $$(E\,W_Q)\,(E\,W_K)^\top = A\,B^\top = S$$

# %%
anything = np.random.default_rng(8).standard_normal((32, 32))  # unrelated rows
B = sinusoidal(np.arange(32), 8)  # eight numbers per position are enough, (N, 8)
A = np.roll(B, 3, axis=0)  # query m holds what key m - 3 holds
W_Q, W_K = np.linalg.solve(anything, A), np.linalg.solve(anything, B)
S = (anything @ W_Q) @ (anything @ W_K).T
assert np.allclose(S, A @ B.T, rtol=0, atol=1e-6)
assert np.array_equal(S.argmax(axis=1), (np.arange(32) - 3) % 32)
print("scores from unrelated rows, largest three back for every query: True")

# %% [markdown]
# ## Beyond the last row: index out of range
#
# A model trained with 512 rows gets a text of 1024 tokens. **Predict** what NumPy by itself says,
# and what it says to position $-1$.

# %% fold="output"
E = rng.standard_normal((512, 8))
for what, look_up in (("E[positions]", lambda p: E[p]), ("learned", lambda p: learned(E, p))):
    for name, positions in (("0 .. 1023", np.arange(1024)), ("-1", np.array([-1]))):
        try:
            print(f"{what:12} {name:9} gives {look_up(positions).shape}")
        except (IndexError, ValueError) as error:
            print(f"{what:12} {name:9} {type(error).__name__}: {error}")
assert np.array_equal(E[-1], E[511])  # a negative position reads from the end, without a word

# %% [markdown]
# **A common mistake.** A position becomes negative when somebody subtracts the padding. Then a
# wrong embedding is added without any error. The package refuses both.
#
# ## Interpolating a learned table
#
# Row 2.5 does not exist either. You can put a weighted mean of two rows there, by **linear
# interpolation**: at the place $t=j+w$, between rows $j$ and $j+1$,
#
# $$\begin{gathered}E(t) = (1-w)\,E_j + w\,E_{j+1}\\
#   \big\lVert \tfrac12 (E_j + E_{j+1}) \big\rVert \le \tfrac12\,\lVert E_j\rVert + \tfrac12\,\lVert
#   E_{j+1}\rVert\end{gathered}$$
#
# The second line is the triangle inequality. The mean is shorter than its rows are on average,
# unless they point the same way. For equally long rows at right angles, as unrelated rows nearly
# are, it is shorter by the factor $\sqrt2$.


# %%
def between(E, t):
    j = np.minimum(np.floor(t).astype(int), len(E) - 2)
    w = (t - j)[:, None]
    return (1 - w) * E[j] + w * E[j + 1]


assert np.allclose(between(table, np.array([0.25, 3]))[:, 0], [0.875, 1], rtol=0, atol=1e-12)
tables = {"sines": sinusoidal(np.arange(32), 32)}
tables |= {f"{t}, {s}": table_of(p) for (t, s), p in runs.items()}
for name, E in tables.items():
    ends, middle = (np.linalg.norm(v, axis=1) for v in (E, between(E, np.arange(31) + 0.5)))
    ratio = 2 * middle / (ends[:-1] + ends[1:])
    print(f"{name:16}: length of the mean of two neighbours, by their own: {ratio.mean():.2f}")
    assert (ratio < 1).all() and (ratio > 0.98).all() == (name == "sines")
assert np.isclose(np.linalg.norm(between(np.eye(2), np.array([0.5]))), 0.5**0.5, rtol=0, atol=1e-12)

# %% [markdown]
# ### align_corners: corners or cell centres?
#
# To stretch $N$ rows to $N'$, each new row $k$ needs a place $t_k$ in the old table. There are two
# conventions, which PyTorch names `align_corners=True` and `False`. In the first, rows are
# **points**, and the first and the last do not move. In the second, rows are **cells** of equal
# width, and the new cells divide the same total width. A centre that falls outside the old centres
# is moved to the nearest one.
#
# $$t_k = k\,\frac{N-1}{N'-1}\qquad\text{or}\qquad t_k = \Big(k+\frac12\Big)\frac N{N'}-\frac12$$


# %%
def places(old, new, points):
    k = np.arange(new)
    return k * (old - 1) / (new - 1) if points else np.clip((k + 0.5) * old / new - 0.5, 0, old - 1)


for points in (True, False):
    print("points" if points else "cells ", places(4, 8, points).round(2).tolist())
assert places(4, 7, True).tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3]
assert places(4, 8, False).tolist() == [0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3]
apart = np.abs(places(14, 24, True) - places(14, 24, False)).max()
print(f"14 rows to 24: the two differ by up to {apart:.2f} of a row")
assert apart < 0.2

# %% [markdown]
# ## Resizing the position embeddings of a vision transformer (ViT)
#
# A vision transformer cuts an image into a grid of patches and trains one row for each. A larger
# image has more patches. With 16 pixels each, it has a grid of 14 by 14 at 224 pixels and of 24 by
# 24 at 384. The table is read as a grid and interpolated along both axes, **bilinearly**. At the
# place $(r+s,\,c+w)$, with $s$ and $w$ from 0 to 1,
#
# $$\begin{aligned}E(r+s,\,c+w)={}&(1-s)(1-w)\,E_{r,c}+(1-s)\,w\,E_{r,c+1}\\
#   &+s\,(1-w)\,E_{r+1,c}+s\,w\,E_{r+1,c+1}\end{aligned}$$
#
# This is one interpolation along the rows, then one along the columns, so multiplying by two
# matrices gives all patches.


# %%
def at_place(E, down, right):
    r, c = min(int(down), len(E) - 2), min(int(right), len(E[0]) - 2)
    s, w = down - r, right - c
    above = (1 - s) * (1 - w) * E[r, c] + (1 - s) * w * E[r, c + 1]
    return above + s * (1 - w) * E[r + 1, c] + s * w * E[r + 1, c + 1]


numbers = np.stack(np.indices((3, 5)), axis=-1).astype(float)  # row r, column c holds (r, c)
for place in ((0.25, 1.5), (1.25, 3.5), (2, 4)):
    assert np.allclose(at_place(numbers, *place), place, rtol=0, atol=1e-12)


# %%
def resize(E, height, width, points=False):  # (h, w, D) to (height, width, D)
    down = between(np.eye(len(E)), places(len(E), height, points))  # (height, h)
    right = between(np.eye(len(E[0])), places(len(E[0]), width, points))  # (width, w)
    return np.einsum("yr,rcd,xc->yxd", down, E, right)


grid = rng.standard_normal((3, 5, 4))  # 3 rows and 5 columns of patches, D = 4
for points in (True, False):
    down, right = places(3, 6, points), places(5, 7, points)
    by_hand = [[at_place(grid, y, x) for x in right] for y in down]
    assert np.allclose(resize(grid, 6, 7, points), by_hand, rtol=0, atol=1e-12)
small = np.array([[[1.0], [2.0]], [[4.0], [5.0]]])
print("2 by 2 to 4 by 4, as cells:", resize(small, 4, 4)[:2, :, 0].tolist(), "...")
assert resize(small, 4, 4)[1, :, 0].tolist() == [1.75, 2, 2.5, 2.75]

# %% [markdown]
# The figure at the top shows one component both ways. The dots mark the centres of the old cells.
#
# **Which one do programs use?** The released code of the vision transformer
# (google-research/vision_transformer, commit
# [2ecbc73](https://github.com/google-research/vision_transformer/blob/2ecbc73207056d8fcbd7513ab43cd417a0b385b3/vit_jax/checkpoint.py),
# `interpolate_posembed`) calls `scipy.ndimage.zoom` with `order=1`. This is bilinear, and rows are
# points. The library timm (huggingface/pytorch-image-models, commit
# [aa4b585](https://github.com/huggingface/pytorch-image-models/blob/aa4b5850c1543fa488abf260f18390eda46cf85d/timm/layers/pos_embed.py),
# `resample_abs_pos_embed`) calls PyTorch's `interpolate`, bicubic (over 16 neighbours) with
# smoothing. It leaves `align_corners` at its default, so rows are cells. MAE (facebookresearch/mae,
# commit
# [be47fef](https://github.com/facebookresearch/mae/blob/be47fef7a727943547afb0c670cf1b26034c3c89/util/pos_embed.py))
# does the same without smoothing. [Chapter
# 25](25_grid.ipynb#interpolating-a-position-table-for-larger-images) has the matrices of all of
# them.
#
# **The class token.** Many tables begin with a row for a token that is not a patch. All three
# programs remove it, resize the rest, and put it back unchanged. With a grid of 14 by 14 that makes
# 197 rows:


# %%
def resize_table(table, old, new, extra=1):
    """Resize a table (extra + h w, D) from the grid `old` = (h, w) to `new`."""
    grid = table[extra:].reshape(*old, -1)
    return np.concatenate([table[:extra], resize(grid, *new).reshape(new[0] * new[1], -1)])


vit = rng.standard_normal((1 + 14 * 14, 6))
larger = resize_table(vit, (14, 14), (24, 24))
print("rows:", len(vit), "to", len(larger))
assert np.array_equal(larger[0], vit[0]) and len(larger) == 1 + 24 * 24
lengths = [np.linalg.norm(E[1:], axis=1).mean() for E in (vit, larger)]
print(f"mean length of unrelated rows falls to {lengths[1] / lengths[0]:.2f} of what it was")
assert np.allclose(resize_table(vit, (14, 14), (14, 14)), vit, rtol=0, atol=1e-12)

# %% [markdown]
# Means of unrelated rows are shorter than the rows; means of similar rows are barely shorter. That
# is why the authors of DeiT resize bicubically ([pytorch-image-models
# #750](https://github.com/huggingface/pytorch-image-models/pull/750) quotes them).
#
# ## Hierarchical decomposition: two digits per position (second reading)
#
# A text grows at its end, not between its words, so rows are missing *after* the last. Su Jianlin
# (2020) computes these from the existing rows. Write the position with two digits in base $N$,
# $k = iN + j$ with $0 \le i, j < N$, and ask for three things (**hierarchical decomposition**):
#
# 1. the encoding is a weighted sum of one vector for each digit, with weights $\alpha$ and
#    $1-\alpha$;
# 2. both digits use the same vectors $u_0, \dots, u_{N-1}$;
# 3. the first $N$ positions keep their rows, so that short texts are read as before.
#
# For $k=j<N$ the leading digit is 0, so $\alpha u_0 + (1-\alpha)\,u_j = E_j$. At $j = 0$ this says
# $u_0 = E_0$. Substitute that and solve for $u_j$. Then substitute $u$ into $p$, with
# $\beta=\frac{\alpha}{1-\alpha}$:
#
# $$\begin{gathered}p_{iN+j} = \alpha\,u_i + (1-\alpha)\,u_j,\qquad u_j = \frac{E_j - \alpha\,E_0}{1-\alpha}\\[1ex]
#   p_{iN+j} = E_j + \beta\,(E_i - E_0)\end{gathered}$$

# %%
show_source(hierarchical)
E = np.random.default_rng(1).standard_normal((6, 4))
for alpha in (0.1, 0.4, 0.75):
    p, beta = hierarchical(E, np.arange(36), alpha), alpha / (1 - alpha)
    assert np.allclose(p[:6], E, rtol=0, atol=1e-12)
    for k in range(36):
        i, j = divmod(k, 6)
        u_i, u_j = ((E[n] - alpha * E[0]) / (1 - alpha) for n in (i, j))
        assert np.allclose(p[k], alpha * u_i + (1 - alpha) * u_j, rtol=0, atol=1e-12)
        assert np.allclose(p[k], E[j] + beta * (E[i] - E[0]), rtol=0, atol=1e-12)

# %% [markdown]
# In words: *take the row of the last digit, and move it by $\beta$ times the step from row 0 to the
# row of the leading digit*. Su's library
# ([bert4keras](https://github.com/bojone/bert4keras/blob/09d83e353a946da3cce30a4038d3944bef7dcf12/bert4keras/layers.py))
# takes $\alpha = 0.4$, so $\beta = 2/3$. We know of no derivation of that number. Which positions
# look alike? Exchange the digits, or move the leading digit by one, and subtract:
#
# $$\begin{aligned}p_{jN+i} - p_{iN+j} &= (1-\beta)\,(E_i - E_j)\\
# p_{(i+1)N+j} - p_{iN+j} &= \beta\,(E_{i+1} - E_i)\end{aligned}$$

# %%
for alpha in (0.25, 0.4, 0.5, 0.75):
    beta, p = alpha / (1 - alpha), hierarchical(E, np.arange(36), alpha).reshape(6, 6, 4)
    for i, j in np.ndindex(5, 6):
        assert np.allclose(p[j, i] - p[i, j], (1 - beta) * (E[i] - E[j]), rtol=0, atol=1e-12)
        assert np.allclose(p[i + 1, j] - p[i, j], beta * (E[i + 1] - E[i]), rtol=0, atol=1e-12)
    different = len(np.unique(p.reshape(36, 4).round(9), axis=0))
    print(f"alpha {alpha:4}: beta {beta:.2f}, different encodings: {different} of 36")
    assert different == (21 if alpha == 0.5 else 36)

# %% [markdown]
# **$\alpha = 1/2$ gives two positions one encoding**: the digits 1, 2 and 2, 1 share it. And with
# $\alpha=0.4$ a step of $N$ positions is $\beta=2/3$ of a step between rows. Where all steps are
# about equally long, position $k+N$ is nearer to $k$ than $k+1$ is.
#
# ## Extending a position table to longer texts
#
# Four models that look three back start from different random numbers. They are trained on 32
# positions and then get texts of 64. Each table is lengthened in four ways: by random rows, by the
# same rows repeated, by [two
# digits](#hierarchical-decomposition-two-digits-per-position-second-reading) per position, and by
# interpolation. Then each model trains for 20 more steps on texts of 64 tokens, with all rows free
# to move. Only the last 16 answers count.


# %%
def percent(params, length, back=3):
    """How many of the last 16 answers name the symbol that stands so many places before?"""
    model = Model(4, Learned(length))
    test = batch_of("three back", np.random.default_rng(5), 96, length, held_out=True)
    answers = decode(params, model, test["inputs"]).argmax(axis=-1)[:, -16:]
    named = test["inputs"][:, length - 16 - back : length - back]
    return round(100 * float((answers == named).mean()))


models = [learn("three back", 0.02, 200, seed)[0] for seed in range(4)]
print("right at 32 positions:", [percent(params, N) for params in models])
assert min(percent(params, N) for params in models) >= 99


# %%
def longer_tables(E):
    random_rows = E.std() * np.random.default_rng(3).standard_normal(E.shape)
    return {
        "random rows": np.concatenate([E, random_rows]),
        "rows repeated": np.concatenate([E, E]),
        "two digits, 0.4": hierarchical(E, np.arange(2 * N)),
        "interpolated": between(E, places(N, 2 * N, points=False)),
    }


# %%
at_once, later, elsewhere = {}, {}, {}
for params in models:
    for name, table in longer_tables(table_of(params)).items():
        longer, back = with_table(params, table), 6 if name == "interpolated" else 3 + N
        more, _ = trained("three back", longer, 2 * N, 20, 2e-3, 8)
        at_once.setdefault(name, []).append(percent(longer, 2 * N))
        elsewhere.setdefault(name, []).append(percent(longer, 2 * N, back))
        later.setdefault(name, []).append(percent(more, 2 * N))

# %% [markdown]
# **Predict**: which table works best immediately ("at once" in the cell), and which after 20 steps?
# And how far back does a model with an interpolated table look?

# %% fold="output" alt="Correct answers at 64 positions, four models each, for four ways to lengthen a table of 32 rows. Without training none exceeds one half; after 20 steps, repeated rows and two digits are far above the others."
print("per cent of four models  at once          elsewhere        after 20 steps")
for name in at_once:
    print(f"{name:24} {at_once[name]!s:16} {elsewhere[name]!s:16} {later[name]}")
assert max(max(row) for row in at_once.values()) < 50
assert min(elsewhere["interpolated"]) > 50 and max(at_once["interpolated"]) < 20
assert max(later["random rows"] + later["interpolated"]) < 30 < 40 < min(later["two digits, 0.4"])
assert min(later["rows repeated"]) > 60 and max(elsewhere["two digits, 0.4"]) > 35
plots.longer_tables(at_once, later, chance=100 / 16)
plt.show()

# %% [markdown]
# - **Immediately, none works.** Chance is 6%. *Elsewhere* counts answers that name the symbol 35
#   positions back (the same row or last digit, one block earlier). For the interpolated tables it
#   counts the symbol *six* back, which most answers name, because three rows are now six tokens.
#   For an image that is right, since the same image is cut into finer patches. In a text, distances
#   count words.
# - **After 20 steps** repeated rows give more than three fifths of the answers, two digits more
#   than two fifths, and the others less than three tenths.
#
# This is one small task. It does not refute what Su reports for BERT. It shows what to ask about
# such a report. Does the method work immediately, or after how much training? Over how many models
# was it measured, and compared with what?

# %% [markdown]
# ## In short
#
# - **Do neighbouring rows become alike?** Yes, if the task asks for it. A table has names for
#   positions, not their order. Rows without any similarity can serve as well.
#   [Similar rows](#are-neighbouring-position-embeddings-similar).
# - **How do rows start, and which learn?** They start as small random numbers (BERT: standard
#   deviation 0.02). A row's gradient is a sum over the texts that reach it. Late rows learn only
#   from long texts. [Gradients](#gradients-which-rows-learn-from-which-texts).
# - **What happens beyond the last row?** Neither row $N$ nor row 2.5 exists. NumPy refuses 512 in a
#   table of 512 rows, and takes $-1$ for the last row without an error.
#   [Index out of range](#beyond-the-last-row-index-out-of-range).
# - **How do I resize the table of an image model?** Interpolate the grid along both axes, without
#   the class token's row. Rows are points (`align_corners=True`, the first vision transformer) or
#   cells (`False`, timm, MAE). Keep the convention of the training.
#   [Resizing](#resizing-the-position-embeddings-of-a-vision-transformer-vit).
# - **How do I lengthen the table of a text model?** Doubling the rows made small models that look
#   three back look six back. None of four ways worked immediately. Repeated rows and two-digit
#   rows learned quickly. An [encoder](80_real_table.ipynb#beyond-512-positions) tolerates more.
#   [Longer texts](#extending-a-position-table-to-longer-texts).
# - **What are two digits for a position?** Position $iN+j$ gets the encoding
#   $E_j+\beta\,(E_i-E_0)$. This makes $N^2$ positions from $N$ rows.
#   [Hierarchical decomposition](#hierarchical-decomposition-two-digits-per-position-second-reading).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 21` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 21_learned.py` checks yours.
#
# ### Exercise 1: Another table
#
# GPT-2's smallest model has 1024 positions and width 768. How many parameters does its table have,
# and how many times as many as BERT's?
#
# <details><summary>Hint 1</summary>
#
# Multiply rows by width.
#
# </details>
# <details><summary>Hint 2</summary>
#
# BERT has 512 rows of the same width.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# assert 1024 * 768 == 786_432 == 2 * 512 * 768
# ```
#
# </details>
#
# ### Exercise 2: Which rows learn?
#
# Take `small_loss` with 4 texts of 7 tokens, and give text $b$ only $b+1$ non-padding tokens: the
# others are multiplied by 0 *after* the rows were added. Which rows get a gradient?
#
# <details><summary>Hint 1</summary>
#
# Put the mask into the loss: `(x + rows) * mask[..., None]`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# In which columns of the mask does any text have a non-padding token?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# mask = np.arange(7) <= np.arange(4)[:, None]  # 4 texts with 1, 2, 3 and 4 real tokens
# texts = np.random.default_rng(6).standard_normal((4, 7, 4))
#
# def masked_loss(params):
#     sums = (texts + learned(params["E"], np.arange(7))) * mask[..., None]
#     return (np.tanh(sums @ W) ** 2).mean()
#
# gradient = value_and_grad(masked_loss)({"E": rows["E"]})[1]["E"]
# assert np.flatnonzero(gradient.any(axis=1)).tolist() == [0, 1, 2, 3]
# ```
#
# </details>
#
# ### Exercise 3: Rows and columns exchanged
#
# A table of 3 by 5 patches is read as a grid of 5 by 3 and resized. No error is raised. Find a test
# of one line that catches it.
#
# <details><summary>Hint 1</summary>
#
# Resizing to the same size must change nothing. Does that catch it?
#
# </details>
# <details><summary>Hint 2</summary>
#
# It does not. Take a table that contains its own row and column numbers.
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# numbers = np.stack(np.indices((3, 5)), axis=-1).reshape(15, 2).astype(float)
# good = resize_table(numbers, (3, 5), (6, 10), extra=0).reshape(6, 10, 2)
# bad = resize_table(numbers, (5, 3), (6, 10), extra=0).reshape(6, 10, 2)
# assert np.ptp(good[..., 0], axis=1).max() < 1e-12 < np.ptp(bad[..., 0], axis=1).max()
# assert np.allclose(resize_table(numbers, (5, 3), (5, 3), extra=0), numbers, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ## In practice
#
# **Left padding.** In a batch padded on the left, positions must count only the non-padding tokens.
# A program that numbers the columns gives the shorter texts the wrong rows ([nnsight
# #672](https://github.com/ndif-team/nnsight/issues/672) measures it in GPT-2).

# %%
real = np.array([[True] * 5, [False, False, True, True, True]])  # the second text has 3 tokens
right = np.maximum(np.cumsum(real, axis=1) - 1, 0)
E = table_of(runs["text", 0.02])
print("positions of the short text:", right[1].tolist(), " by columns: [0, 1, 2, 3, 4]")
assert np.array_equal(learned(E, right)[1, 2:], learned(E, np.arange(3)))
assert not np.allclose(learned(E, np.arange(5))[2:], learned(E, np.arange(3)), rtol=0, atol=0.1)

# %% [markdown]
# **One token at a time.** With a KV cache only the newest token is embedded. Its position is the
# number of tokens before it, not 0.
#
# **Rows that are not positions.** RoBERTa's code numbers positions from 2, so its table has 514
# rows for 512 tokens ([transformers #1363](https://github.com/huggingface/transformers/issues/1363)
# asks why). A program that counts from 0 reads the wrong rows.
#
# **Too long on a GPU.** On a GPU, an index beyond the table ends in a message about a "device-side
# assert", far from its cause ([fairseq
# #757](https://github.com/facebookresearch/fairseq/issues/757)). Run the same batch on the CPU, or
# check the positions first.

# %% [markdown]
# ## Further reading
#
# - Gehring et al. 2017, *Convolutional Sequence to Sequence Learning*,
#   [arXiv:1705.03122](https://arxiv.org/abs/1705.03122), section 3.1: position vectors that are
#   learned.
# - Dosovitskiy et al. 2021, *An Image is Worth 16x16 Words*,
#   [arXiv:2010.11929](https://arxiv.org/abs/2010.11929): the vision transformer, whose table is
#   interpolated for larger images.
# - Wang and Chen 2020, *What Do Position Embeddings Learn?*,
#   [arXiv:2010.04903](https://arxiv.org/abs/2010.04903): the tables of trained models, compared.
# - Su Jianlin 2020, on the hierarchical decomposition, in Chinese
#   ([kexue.fm](https://kexue.fm/archives/7947)).
#
# **Cards**: [learned](CARDS.md#learned), [hierarchical](CARDS.md#hierarchical).
