# %% [markdown]
# # 80. Learned position embeddings in a trained model (MiniLM)
#
# *What did training write into a real table of 512 position embeddings, and what does the model do with it?*
#
# 40 minutes. Needs [20 Sinusoidal positional encoding](20_sinusoidal.ipynb), [21 Learned position embeddings](21_learned.ipynb). To run it, fetch trained weights: `make real`. Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A learned position table starts as random numbers, and nobody says what its
# rows should become. So what do they become in a model that people use? You open the table of
# all-MiniLM-L6-v2, a small BERT that turns sentences into vectors. The similarity of its rows rises
# and falls in waves. You find rotations behind the waves, test whether they are real, and change
# the table to see what the sentence vectors notice. It is one model. Others may differ.

# %% fold="input" alt="Left, cosines of rows 128 to 175 of MiniLM's table: stripes beside the diagonal, six rows apart. Right, the mean cosine by distance. MiniLM's curve falls, rises again at 6, 12 and 18, and is still rising and falling at 60. The sinusoidal curve falls slowly."
import csv

import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import load_model, sinusoidal
from pe_numpy.book.fetch import found
from pe_numpy.book.plots import real_table as plots

model = load_model(found("minilm"))
E = np.asarray(model.parameters["positions"], float)  # (512, 384)
square = {"MiniLM": plots.cosines(E[1:])}  # row 0 belongs to a special token
square["sinusoidal"] = plots.cosines(sinusoidal(np.arange(1, 512), 384))
plots.cosines_in_waves(square, 128, 48, 60)
plt.show()

# %% [markdown]
# ## A table of 512 rows that training wrote
#
# The left panel compares rows of the table with each other, as in [chapter
# 21](21_learned.ipynb#are-neighbouring-position-embeddings-similar). There a small model trained on
# text gave a soft, smooth block. Here are stripes. On average, a row is more similar to the row six
# positions on than to the row three positions on. Nothing in the model's code asks for this.
#
# **The model.** all-MiniLM-L6-v2 is a BERT with six layers ([chapter
# 64](64_real_models.ipynb#supported-models-what-each-family-changes)) that computes one vector for
# a sentence. `python -m pe_numpy fetch minilm` fetches it (84 MB, Apache-2.0). Without it you can
# read on, since the outputs are stored. By its model card it began as a
# [model](https://huggingface.co/nreimers/MiniLM-L6-H384-uncased) that keeps every second layer of a
# [distilled one](https://huggingface.co/microsoft/MiniLM-L12-H384-uncased). Then it was fine-tuned
# on pairs of sentences, cut off at 128 tokens.

# %%
for key in ("position_embedding_type", "initializer_range", "max_position_embeddings"):
    print(f"{key}: {model.config[key]}")
print("the table:", E.shape, "that is", f"{E.size:,} numbers")
assert E.shape == (model.config["max_position_embeddings"], model.settings.D) == (512, 384)

# %% [markdown]
# "Absolute" means a table: row $p$ is added to the embedding of the token at position $p$. By the
# configuration, weights start as random numbers with a standard deviation of 0.02. No sine is
# mentioned. We leave out row 0, which always belongs to the token `[CLS]`. The right panel above
# shows the mean cosine of two rows by their distance $d$:
#
# $$c(d)=\frac1{511-d}\sum_{p=1}^{511-d}\frac{E_p\cdot E_{p+d}}{\lVert E_p\rVert\,\lVert E_{p+d}\rVert}$$


# %%
def mean_cosine(E, d):
    pairs = [(E[p], E[p + d]) for p in range(1, 512 - d)]
    return sum(x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in pairs) / (511 - d)


distances = (1, 2, 3, 5, 6, 10, 20, 100)
print("distance", *(f"{d:5}" for d in distances))
print("cosine  ", *(f"{mean_cosine(E, d):5.2f}" for d in distances))
assert np.argsort([mean_cosine(E, d) for d in (3, 6, 1)]).tolist() == [0, 1, 2]
for d in distances:
    assert np.isclose(mean_cosine(E, d), np.diagonal(square["MiniLM"], d).mean(), rtol=0, atol=1e-9)
nearest = (square["MiniLM"] - 2 * np.eye(511)).argmax(axis=1)
assert (abs(nearest - np.arange(511)) == 1).all()  # for each row a direct neighbour
print(f"least cosine of a row with it: {square['MiniLM'][np.arange(511), nearest].min():.2f}")

# %% [markdown]
# As in the plots that people make of BERT's table, neighbours are alike. For each row from 1 on,
# the most similar of the others is a direct neighbour. But further from the diagonal you see waves,
# not a smooth band. What makes them?
#
# ## Ten components of 384
#
# If a few waves make the table, its rows vary in few directions. The **singular value
# decomposition** finds them (principal component analysis). Subtract the mean row. Then write each row as a sum of
# orthonormal vectors $v_k$, the one that explains most first:
#
# $$E_p-\bar E=\sum_k z_{p,k}\,v_k,\qquad \text{share}_k=\frac{\sum_p z_{p,k}^2}{\sum_p\lVert E_p-\bar E\rVert^2}$$


# %%
def components(rows):
    centred = rows - rows.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]  # (k, D), the v_k
    return centred @ axes.T, axes


tables = {"MiniLM": E[1:], "sinusoidal": sinusoidal(np.arange(1, 512), 384)}
tables["random"] = np.random.default_rng(0).standard_normal((511, 384))
for name, rows in tables.items():
    z, axes = components(rows)
    assert np.allclose(z @ axes, rows - rows.mean(axis=0), rtol=0, atol=1e-10)
    share = (z**2).sum(axis=0) / ((rows - rows.mean(axis=0)) ** 2).sum()
    print(f"{name:10} 95% in {(share.cumsum() < 0.95).sum() + 1:3} components;", end=" ")
    print("the first twelve in %:", *(f"{100 * s:.0f}" for s in share[:12]))

# %% [markdown]
# MiniLM's 511 rows have 95% of their variance in 11 of 384 components. A sinusoidal table of this
# size needs 84, a random one 265. And the first ten have 13% to 7% each, the next 3%. Ten could be
# five pairs, like the pairs of sine and cosine in [chapter
# 20](20_sinusoidal.ipynb#the-sinusoidal-formula).
#
# ## One matrix for a step of one position
#
# In [chapter 20](20_sinusoidal.ipynb#the-shift-matrix-one-rotation-for-every-position) one matrix
# moves the encoding of every position one step forward, and it consists of rotations. Does the
# learned table have such a matrix? Take the first ten components $z_p$ of some rows, and fit a
# matrix $M$ and a vector $b$ by least squares. To test the method, we also plant rotations in a
# made-up table.


# %%
def step_matrix(rows, r=10):
    """Eigenvalues and hands of the rotations, fastest first; the share explained; z, M, b."""
    z = components(rows)[0][:, :r]
    before = np.column_stack([z[:-1], np.ones(len(z) - 1)])
    fit = np.linalg.lstsq(before, z[1:], rcond=None)[0]
    M, b = fit[:r].T, fit[r]
    missed = ((z[1:] - z[:-1] @ M.T - b) ** 2).sum() / (z[1:] ** 2).sum()
    mu, planes = np.linalg.eig(M.T)
    some = [k for k in np.argsort(-np.angle(mu)) if mu[k].imag > 0]  # one of each pair
    hands = (z @ planes - b @ planes / (1 - mu)).T  # each turns around its own centre
    return mu[some], hands[some], 1 - missed, (z, M, b)


# %%
def planted(wavelengths, rows, seed=0):
    """Rows with a rotation in a random plane for each wavelength, and a random centre."""
    rng, turns = np.random.default_rng(seed), np.arange(rows)[:, None] / np.array(wavelengths)
    waves = np.concatenate([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], axis=1)
    return waves @ rng.standard_normal((waves.shape[1], 384)) + rng.standard_normal(384)


# %% [markdown]
# If $M$ rotates a plane by the angle $\alpha$ per step and scales it by $\rho$, it has the
# eigenvalue $\mu$ below. The **hand** of row $p$ points from the plane's centre to the row's place
# in it. It needs $\lambda$ rows for a full turn. If $\rho=1$, it keeps its length:
#
# $$z_{p+1}\approx M z_p+b,\qquad \mu=\rho\,e^{i\alpha},\qquad \lambda=\frac{2\pi}{\alpha}$$

# %%
mu, hands, explained, (z, M, b) = step_matrix(planted((5, 14, 40, 110, 300), 382))
print("found:", (2 * np.pi / np.angle(mu)).round(6).tolist(), "explained:", round(explained, 6))
assert np.allclose(z[1:], z[:-1] @ M.T + b, rtol=0, atol=1e-9) and explained > 1 - 1e-12
assert np.allclose(2 * np.pi / np.angle(mu), (5, 14, 40, 110, 300), rtol=0, atol=1e-6)
assert np.allclose(mu, np.exp(2j * np.pi / np.array((5, 14, 40, 110, 300))), rtol=0, atol=1e-9)
turned = np.abs(hands[:, 1:] - mu[:, None] * hands[:, :-1])
assert (turned < 1e-6).all()  # each hand turns by its eigenvalue

# %% [markdown]
# The method finds what was planted. Now MiniLM, without rows 0 to 127 and the last two, which
# [differ](#row-norms-show-how-the-model-was-trained) from the rest.

# %%
steady = E[128:510]  # rows 128 to 509
mu, hands, explained, (z, M, b) = step_matrix(steady)
wavelengths = 2 * np.pi / np.angle(mu)
ten = (z**2).sum() / ((steady - steady.mean(axis=0)) ** 2).sum()
print(f"the ten components have {ten:.0%} of the variance; a step explains {explained:.3f} of it")
print("rho:       ", *(f"{x:6.2f}" for x in np.abs(mu)))
print("wavelength:", *(f"{x:6.1f}" for x in wavelengths))
print("each by the one before:", *(f"{x:.2f}" for x in wavelengths[1:] / wavelengths[:-1]))
assert explained > 0.995 and len(mu) == 5 and (abs(abs(mu) - 1) < 0.005).all()
assert (abs(wavelengths[1:4] / wavelengths[:3] - 3) < 0.05).all()

# %% [markdown]
# One matrix of 10 by 10, with $b$, nearly makes the ten components of each row from the row before.
# It explains 0.997 of their variance. Its eigenvalues are within 0.005 of the unit circle. It looks
# like five clocks: wavelengths of about 6, 18, 53, 161 and 576 positions, each about three times
# the one before except for the last. We seem to have found chapter 20's kind of shift matrix inside
# a learned table.
#
# ### A control: do smooth random rows rotate as well?
#
# What else would look like this? **Predict** what the same method finds in random rows that are
# merely smooth: independent random numbers, averaged over neighbouring rows.


# %% fold="output"
def smooth_rows(rows, width=20, seed=0):
    weights = np.exp(-((np.arange(-4 * width, 4 * width + 1) / width) ** 2) / 2)
    noise = np.random.default_rng(seed).standard_normal((384, rows + 8 * width))
    return np.array([np.convolve(row, weights, mode="valid") for row in noise]).T


control = {}
for name, table in (("MiniLM", E), ("smooth", smooth_rows(512))):
    for first, last in ((128, 509), (128, 318), (224, 414), (319, 509)):
        values, _, share, _ = step_matrix(table[first : last + 1])
        control[name, first, last] = 2 * np.pi / np.angle(values)
        assert share > 0.99 and (abs(np.abs(values) - 1) < 0.01).all()
        print(f"{name} rows {first} to {last}: {share:.3f}; wavelengths", end="")
        print(*(f"{x:6.1f}" for x in control[name, first, last]))

# %% [markdown]
# Smooth random rows pass the test as well. One matrix explains them, and its eigenvalues are near
# the unit circle. So *neither number proves a clock*. The principal components of smooth data tend
# to look like waves, which Shinn (2023) calls "phantom oscillations". Two differences remain. With
# this much smoothing, the random table has no wave as short as 6. And its waves depend on how many
# rows you look at: in half as many, they are little more than half as long. MiniLM's first four
# change by less than a tenth.


# %%
def part_by_whole(name, count=4):
    whole, *parts = (x[:count] for (table, *_), x in control.items() if table == name)
    return np.array([part / whole for part in parts])


for name in ("MiniLM", "smooth"):
    ratio = part_by_whole(name)
    print(f"{name}: wavelength in half as many rows, by that in all:", end=" ")
    print(f"{ratio.min():.2f} to {ratio.max():.2f}")
assert abs(part_by_whole("MiniLM") - 1).max() < 0.1 < 0.3 < 1 - part_by_whole("smooth").max()
assert [len(x) for (name, *_), x in control.items() if name == "MiniLM"] == [5, 4, 4, 4]

# %% [markdown]
# The fifth does not pass. In half of the rows the fit finds only four. In rows 128 to 509 it makes
# less than one full turn (next figure), so we cannot see it come back. We count **four rotations
# and a slow hand**.
#
# ## Four rotations, gears of three, and a slow hand
#
# Here are the hands, a dot per row, around their centres. The joined dots are the first eight rows.

# %% alt="Five planes with a dot for each of the rows 128 to 509. In the first four, the dots lie close to a circle around the centre. The fastest hand goes around in six rows. In the fifth plane the dots cover about two thirds of a circle."
plots.rotations(hands, wavelengths, 128)
plt.show()
phases = np.unwrap(np.angle(hands), axis=1) / (2 * np.pi)  # in turns, (5, 382)
length = np.abs(hands).std(axis=1) / np.abs(hands).mean(axis=1)
print("turns in 381 steps:    ", *(f"{x:5.1f}" for x in phases[:, -1] - phases[:, 0]))
print("length changes by (std):", *(f"{x:4.0%}" for x in length))
assert length.max() < 0.1 and phases[4, -1] - phases[4, 0] < 0.7

# %% [markdown]
# They go around in circles. (These coordinates would make an ellipse a circle too.) But do they
# keep time, as chapter 20's clocks do? Take the phase $\varphi_j(p)$ of rotation $j$ at row $p$, in
# turns, and subtract a constant speed. The fastest runs more than half a turn ahead and behind
# (figure below). If these errors were independent, the ratio of 3 would hold only on average.
# Instead
#
# $$\varphi_j(p)=3\,\varphi_{j+1}(p)+\text{const}\qquad\text{nearly, at each row } p,\ j=1,2,3$$


# %%
def gears(phases):
    """How far each phase is from a constant speed, and from three times the next (std)."""
    p = np.arange(phases.shape[1])
    own = [(phi - np.polyval(np.polyfit(p, phi, 1), p)).std() for phi in phases[:-1]]
    return np.array(own), (phases[:-1] - 3 * phases[1:]).std(axis=1)


own, slip = gears(phases)
for j in range(4):
    print(f"rotation {j + 1}: from a constant speed {own[j]:.2f} turns,", end=" ")
    print(f"from three times the next {slip[j]:.2f}")
assert (slip[:3] < 0.035).all() and slip[3] > 0.08
assert (own[:2] / slip[:2] > 5).all()

# %% [markdown]
# Does the fit itself make such ratios? We plant three hands that wander about as much, but each in
# its own way.

# %%
p = np.arange(382)
wander = ((6, 0.6, 41), (18, 0.2, 57), (54, 0.07, 73))  # wavelength, turns, how slowly
turns = np.stack([p / length + a * np.sin(p / slow) for length, a, slow in wander], axis=1)
waves = np.concatenate([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], axis=1)
found_hands = step_matrix(waves @ np.random.default_rng(2).standard_normal((6, 384)), r=6)[1]
own, slip = gears(np.unwrap(np.angle(found_hands), axis=1) / (2 * np.pi))
for j in range(2):
    print(f"independent {j + 1}: from a constant speed {own[j]:.2f} turns,", end=" ")
    print(f"from three times the next {slip[j]:.2f}")
assert (slip > own).all()

# %% [markdown]
# Not here: a constant speed fits better. Back to MiniLM. If its ratio of 3 holds, three curves
# coincide.

# %% alt="Turns that three rotations run ahead of a constant speed, over rows 128 to 509. The fastest, three times the second and nine times the third give almost the same curve. It rises by about a turn, falls by more than one and rises again."
rows, lead = np.arange(128, 510), {}
for j, times in enumerate((1, 3, 9)):
    own = times * phases[j]
    name = "rotation 1" if j == 0 else f"{times} times rotation {j + 1}"
    lead[name] = own - np.polyval(np.polyfit(rows, own, 1), rows)
plots.geared_phases(rows, lead)
plt.show()
for a, last in ((128, 255), (256, 383), (384, 509)):
    steps = phases[:3, last - 128] - phases[:3, a - 128]
    print(f"rows {a} to {last}: wavelengths", *(f"{x:5.1f}" for x in (last - a) / steps))

# %% [markdown]
# The first three speed up and slow down together, like wheels with 3 to 1 **gears**. The fastest
# needs 5.8 rows per turn, then 6.4, then 5.6, and the others follow. Hands that wander
# independently do not, so this is our strongest evidence that the rotations are real. (Rotation 3
# also fits three times the fourth, but its own error is not much larger than what remains.) Why
# three, and why the speed changes, we do not know. The distilled model that it began with was
# trained to imitate the attention of a larger one, which we have not seen.
#
# With a changing speed, one matrix should not serve long shifts. A shift by one position is nearly
# $M$. A shift by 64 is not $M^{64}$:

# %%
whole = np.block([[M, b[:, None]], [np.zeros(10), np.ones(1)]])  # M and b in one matrix
for k in (1, 8, 64):
    jump = np.linalg.matrix_power(whole, k)[:10]
    missed = ((z[k:] - np.column_stack([z[:-k], np.ones(len(z) - k)]) @ jump.T) ** 2).sum()
    share = 1 - missed / ((z[k:] - z[k:].mean(axis=0)) ** 2).sum()
    print(f"a shift by {k:2}: the power of M explains {share:.2f}")
    assert (share > 0.9) == (k < 64)

# %% [markdown]
# So with the powers of one matrix, the table behaves like chapter 20's encoding over short
# distances only.
#
# Others have seen such waves. We read only the abstracts. A paper at EMNLP 2023 ([*Absolute
# Position Embedding Learns Sinusoid-like Waves*](https://openreview.net/forum?id=zpayaLaUhL))
# reports them in learned position embeddings. There, heads shift the phases to attend to near
# positions. Song and Zhong (2023) find that the mean vectors of positions form "a low-dimensional,
# continuous, and often spiral shape". We have not seen a report of the gears.
#
# ## A head that attends to the previous token
#
# Chapter 20 shows that a head [can look three
# back](20_sinusoidal.ipynb#a-head-that-looks-three-back) at every position, because one matrix
# shifts all encodings. It adds that this is what a model *can* learn. Has this one? We give it
# random tokens, which do not tell a head their order. Of the 72 heads we have picked two: head 2 of
# layer 0 and head 8 of layer 1, counted from 0.

# %%
rng = np.random.default_rng(0)
tokens = rng.integers(2000, 30000, (8, 64))  # 8 texts of random tokens
tokens[:, 0], tokens[:, -1] = 101, 102  # [CLS] and [SEP]


def with_table(table):
    return model.replace(parameters={**model.parameters, "positions": np.float32(table)})


def weights(model):
    """Mean weight of head 2 of layer 0 on the token before, of head 8 of layer 1 on the next."""
    watch = {}
    model.hidden(tokens, watch=watch)
    before, after = watch[0][:, 2, 1:-1, 1:-1], watch[1][:, 8, 1:-1, 1:-1]
    return [np.diagonal(x, d, 1, 2).mean() for x, d in ((before, -1), (after, 1))]


# %%
mean, (z, axes) = E[1:].mean(axis=0), components(E[1:])
looks = {
    "as trained": model,
    "rows 200 later": model.replace(places=lambda p: np.where(p == 0, 0, p + 200)),
    "ten components": with_table(np.concatenate([E[:1], mean + z[:, :10] @ axes[:10]])),
    "rows shuffled": with_table(np.concatenate([E[:1], rng.permutation(E[1:])])),
    "zeros": with_table(np.zeros_like(E)),
}
for name, changed in looks.items():
    looks[name] = weights(changed)
    print(f"{name:15} previous token {looks[name][0]:.2f}, next token {looks[name][1]:.2f}")
assert looks["as trained"][0] > 0.98 and looks["rows 200 later"][0] > 0.98
assert max(looks["zeros"] + looks["rows shuffled"]) < 0.1

# %% [markdown]
# Head 2 of layer 0 gives on average 0.99 of its weight to the previous token. It does the same 200
# rows later. With only the ten components, it still gives 0.96. With zeros, or with the rows
# shuffled, almost nothing remains. So this head has learned what chapter 20 shows to be possible,
# and the ten components are nearly enough for it. The other head gives the next token 0.57 of its
# weight, and 0.41 with the ten components.
#
# ## Row norms show how the model was trained
#
# **Predict** which of the 512 rows have a larger norm than the others. Each text begins with
# `[CLS]` and ends with `[SEP]`.

# %% fold="output" alt="Norm of each of the 512 rows. Nearly all are between 0.4 and 0.6. Row 0 is at 2.36. Rows 127, 510 and 511 also rise above their neighbours."
norms = np.linalg.norm(E, axis=1)
named = (0, 127, 510, 511)
plots.row_norms(norms, named, 0.02 * 384**0.5)
plt.show()
others = np.delete(norms, named)
print("norms of rows 0, 127, 510, 511:", *(f"{x:.2f}" for x in norms[list(named)]))
print(f"all others: {others.min():.2f} to {others.max():.2f};", end=" ")
print(f"a row as drawn, 0.02 sqrt(384) = {0.02 * 384**0.5:.2f}")
assert set(np.argsort(-norms)[:4].tolist()) == set(named)

# %% [markdown]
# - **Row 0** belongs to `[CLS]` in every text.
# - **Row 127** is the last position of a text that was cut off at 128 tokens, where the token is
#   always `[SEP]`. The card reports this length, and the table agrees.
# - **Row 511** is the last position of a text that fills the table. Presumably an earlier training
#   had many. Why row 510 has a large norm as well, we do not know.
#
# The norm does not show whether a row was trained, because a row as drawn has a norm of 0.39, near
# the others. The cosines show it. Independent random rows have cosines near 0, and each row from 1
# on has a neighbour with a cosine of at least 0.52
# ([above](#a-table-of-512-rows-that-training-wrote)). The boundary at 128 is visible in the gears
# as well. Put all rows into the planes of rows 128 to 509. How much does
# $\varphi_j-3\,\varphi_{j+1}$ vary there (std)?

# %%
values, planes = np.linalg.eig(M.T)
inside = (E - steady.mean(axis=0)) @ components(steady)[1][:10].T  # all 512 rows, in the ten
around = (inside @ planes - b @ planes / (1 - values)).T
around = around[[int(abs(values - x).argmin()) for x in mu]]
assert np.allclose(around[:, 128:510], hands, rtol=0, atol=1e-9)
angle = np.unwrap(np.angle(around), axis=1) / (2 * np.pi)
for first, last in ((1, 63), (64, 126), (128, 254), (255, 381), (382, 509)):
    slip = gears(angle[:4, first : last + 1])[1]
    print(f"rows {first} to {last}: the gears slip by", *(f"{x:.2f}" for x in slip), "turns")
    assert (slip.max() < 0.1) == (first >= 128)

# %% [markdown]
# Before row 127 the gears slip, at least in these planes. Those rows were also trained in the
# fine-tuning, which cut the texts off at 128 tokens. That it loosened the gears is our guess.
#
# ## Replacing, shifting, shuffling and resizing the table
#
# What does the model need of its table? We change it, and measure the cosine between a text's
# vector before and after. The texts are 20 sentences (the first two of each line
# [below](#what-word-order-does-to-a-sentence-vector)) and 16 passages of 128 tokens from Newton's
# *Opticks*. So the unchanged model uses only rows 0 to 127. Row 0 is kept, except where noted and
# with zeros. The sinusoidal and the random rows have the mean and the spread of the real ones.
# *Interpolated by two* puts means between rows, *every second row* gives position $p$ row $2p$, and
# *reversed* counts backwards. The long measurements are in `results/real.csv`, made by
# `results/real_minilm.py`.

# %%
with open("results/real.csv", encoding="utf-8", newline="") as file:
    table = list(csv.DictReader(line for line in file if not line.startswith("#")))
real = {(row["experiment"], row["setting"], row["text"]): row["value"] for row in table}
texts = ("20 sentences", "16 passages of 128 tokens, Opticks")
settings = [s for e, s, t in real if (e, t) == ("replaced_tables", texts[0]) and "least" not in s]
near = {s: tuple(float(real["replaced_tables", s, t]) for t in texts) for s in settings}
print(f"{'sentences':>35} {'passages':>9}")
for name, values in near.items():
    print(f"{name:25}", *(f"{x:9.2f}" for x in values))

# %% alt="Mean cosines with the vector of the trained table, for 17 changes, from 0.64 to 1. Shuffled rows and zeros are the furthest from 1. Eleven components, and shifts by 1 or 10, are near 1. Sentences and passages mostly agree to within 0.1."
plots.changed_tables(
    {k: v for k, v in near.items() if k != "as trained"}, ("20 sentences", "16 passages")
)
plt.show()
assert near["11 components"][0] > 0.99 > 0.9 > near["2 components"][0]
assert near["shifted by 10"][0] > near["shifted by 100"][0] > near["shifted by 300"][0]
assert near["own rows shuffled"][0] < near["random rows"][0]
inside, variance = components(E[1:])[1][:10] ** 2, E[1:].var(axis=0)
print(f"random rows inside the ten components: {(inside @ variance).sum() / variance.sum():.0%}")

# %% [markdown]
# - **Eleven components are enough** for these texts, and ten nearly.
# - **The mean row for all positions from 1 on gives 0.83 and 0.85.** So most of such a vector does
#   not depend on positions. Zeros, which also replace row 0, are worse.
# - **Shifts by 1 or 10 change little, a shift by 300 much.** So it matters where the words stand,
#   not only their order. A shift by 100 changes less than the reversed order does. If row 0 moves
#   too, the change is larger.
# - **Random rows are about as good as the mean row.** They are almost entirely outside the ten
#   components. The model seems to ignore what is there.
# - **The model's own rows in a random order are worse.** They are inside the components and point
#   to wrong positions.
# - **A sinusoidal table of the right size is not better than the mean row.** It has other planes and
#   other wavelengths.
#
# ## Beyond 512 positions
#
# A text of 900 tokens needs rows that do not exist. [Chapter
# 21](21_learned.ipynb#extending-a-position-table-to-longer-texts) tried four ways on small models,
# and none worked immediately. Here are six ways on 16 texts of 900 tokens from *Opticks*, after two
# that need no new rows: read it in two halves, or cut it off. The last way lets the rotations
# [continue](#one-matrix-for-a-step-of-one-position) from row 509 on. Given 30 tokens from a text's
# second half, is that text's vector the nearest of 16? And how similar are tokens 520 to 879 to
# themselves when the second half is read by itself?

# %%
where = "16 texts of 900 tokens, Opticks"
ways = [s.removesuffix(", found") for e, s, t in real if e == "longer_texts" and ", found" in s]
questions = int(real["longer_texts", "questions", where])
print(f"{'':25} found   cosine, of {questions} questions")
for way in ways:
    found_it = float(real["longer_texts", f"{way}, found", where])
    cosine = real.get(("longer_texts", f"{way}, cosine", where))
    error = (found_it * (1 - found_it) / questions) ** 0.5
    print(f"{way:25} {found_it:.2f} ({error:.2f})", f"{float(cosine):5.2f}" if cosine else "")

# %% [markdown]
# In brackets is the standard error for independent questions, perhaps too small, because 13 share a
# text. So most ways are about as good as two halves read by themselves, and none is clearly better.
# Only two are clearly worse: cutting off the text, which loses nearly all that is asked for, and
# row 509 for all later tokens. For the tokens themselves, the rows repeated and the rotations
# continued are the nearest. This refines what chapter 21 found. Its models had to look exactly
# three back, where a wrong row is a wrong answer. A mean over 900 tokens is a milder judge.
#
# ## What word order does to a sentence vector
#
# "The dog bites the man." and "The man bites the dog." have the same words. [Chapter
# 11](11_why_position.ipynb#equivariant-is-not-invariant) proves that without positions the mean of
# the outputs is the same. MiniLM takes this mean and divides it by its length. If every position
# has the same row, then for each reordering $\pi$ of the tokens the vector $v$ is the same:
#
# $$E_p=e\ \text{ for all } p\quad\Rightarrow\quad v(x_{\pi(1)},\dots,x_{\pi(L)})=v(x_1,\dots,x_L)$$

# %%
sentences = """The dog bites the man. | The man bites the dog. | A man is bitten by a dog.
Mary gave John a book. | John gave Mary a book. | John received a book from Mary.
The cat chased the mouse. | The mouse chased the cat. | The mouse was chased by the cat.
France defeated Germany. | Germany defeated France. | Germany lost to France.
The teacher praised the student. | The student praised the teacher. | The student was praised by the teacher.
Alice is taller than Bob. | Bob is taller than Alice. | Bob is shorter than Alice.
The car hit the truck. | The truck hit the car. | The truck was hit by the car.
The lawyer sued the bank. | The bank sued the lawyer. | The lawyer took the bank to court.
The boy taught the girl. | The girl taught the boy. | The girl learned from the boy.
Oil floats on water. | Water floats on oil. | Water carries oil on its surface."""
own, exchanged, paraphrase = zip(*(row.split(" | ") for row in sentences.split("\n")), strict=True)
zeros = with_table(np.zeros_like(E))
v, w = zeros.embed(list(own)), zeros.embed(list(exchanged))
assert np.allclose(v, w, rtol=0, atol=1e-5) and np.allclose((v**2).sum(1), 1, rtol=0, atol=1e-5)

# %% [markdown]
# With zeros for positions the ten pairs have equal vectors, up to rounding. With the trained table,
# **predict** which is more similar to the first sentence: the second, which says something else, or
# the third, which says about the same?

# %% fold="output"
v, w, u = (model.embed(list(texts)) for texts in (own, exchanged, paraphrase))
swap, say = (v * w).sum(axis=1), (v * u).sum(axis=1)
for text, a, b in zip(own, swap, say, strict=True):
    print(f"{text:33} exchanged {a:.2f}, paraphrase {b:.2f}")
print(f"mean: exchanged {swap.mean():.2f}, paraphrase {say.mean():.2f}")
print(f"two different sentences: {(v @ v.T)[~np.eye(10, dtype=bool)].mean():.2f}")
assert (swap > say).all()

# %% [markdown]
# In 10 of 10 pairs the exchanged sentence is nearer. Does the vector ignore word order then? A
# paraphrase has other words, so this is not fair. Give both sentences the same words. Which is
# nearer to "The dog chased the man."?
#
# - "The man was chased by the dog." is the same event.
# - "The dog was chased by the man." is the opposite event.
#
# With zeros for positions, the two have the same vector. If the vector knew who chased whom, the
# first would be nearer.

# %%
pairs = "dog man, cat mouse, teacher student, boy girl, lawyer bank, doctor nurse".split(", ")
active, same, opposite = [], [], []
for verb in "chased praised hit sued taught helped feared called followed paid".split():
    for pair in pairs:
        for a, b in (pair.split(), pair.split()[::-1]):
            active.append(f"The {a} {verb} the {b}.")
            same.append(f"The {b} was {verb} by the {a}.")
            opposite.append(f"The {a} was {verb} by the {b}.")
v, right, wrong = (model.embed(texts) for texts in (active, same, opposite))
right, wrong = (v * right).sum(axis=1), (v * wrong).sum(axis=1)
print(f"same event {right.mean():.2f}, opposite event {wrong.mean():.2f}")
print(f"the same event is nearer in {(right > wrong).sum()} of {len(active)}")
assert (right > wrong).mean() < 1 / 3

# %% [markdown]
# Only 30 of 120 are right, fewer than a coin would get. The vector does depend on word order: it
# mostly prefers the sentence in which the nouns appear *in the same order*, which here means the
# opposite. So positions reach the vector, but here as the order of words, not as roles. Nikolaev
# and Padó (2023, abstract) report for several sentence models that the nouns count, and that their
# functions "are largely irrelevant". The six pairs of nouns and ten verbs share one pattern. Other
# patterns may give other numbers.

# %% [markdown]
# ## In short
#
# - **What do MiniLM's position embeddings look like?** Their similarity rises and falls in waves of
#   about six rows. Eleven of 384 components have 95% of their variance. Rows 0, 127, 510 and 511
#   have the largest norms. [Ten components](#ten-components-of-384),
#   [norms](#row-norms-show-how-the-model-was-trained).
# - **Is there a shift matrix in a learned table?** Nearly, for [short
#   shifts](#one-matrix-for-a-step-of-one-position). One of ten by ten makes each row from the one
#   before. That does not prove sinusoids, because [smooth random
#   rows](#a-control-do-smooth-random-rows-rotate-as-well) give as good a matrix. A
#   [head](#a-head-that-attends-to-the-previous-token) attends to the previous token.
# - **Which wavelengths are there, and are they real?** About 6, 18, 53 and 161, also in half of the
#   rows. Our strongest evidence: the first three phases keep a ratio of three where their speed
#   changes. A fifth wave shows no full turn. [Four
#   rotations](#four-rotations-gears-of-three-and-a-slow-hand).
# - **What does the model need of its table?** Eleven components give nearly the same vectors. The
#   mean row for all positions but 0 gives cosines of 0.83 and 0.85, the model's own rows shuffled
#   0.64 and 0.75. [Replacing](#replacing-shifting-shuffling-and-resizing-the-table).
# - **Can I use more than 512 positions?** Most ways of adding rows are about as good as two halves
#   read separately, for finding a text. Cutting it off or repeating the last row is clearly worse.
#   [Beyond 512 positions](#beyond-512-positions).
# - **Does a sentence vector know who bites whom?** Not in our tests. It depends on word order, but
#   in all ten examples the sentence with exchanged roles is nearer than a paraphrase. [Word
#   order](#what-word-order-does-to-a-sentence-vector).

# %% [markdown]
# ## Exercises
#
# All but the last need no weights, only `components`, `step_matrix`, `planted` and `smooth_rows`
# from above.
#
# ### Exercise 1: Planted rotations
#
# Plant rotations with wavelengths 7, 21 and 63 in 200 rows, and add random numbers of standard
# deviation 0.1. Find the wavelengths with `step_matrix`. How many components must you keep?
#
# <details><summary>Hint 1</summary>
#
# How many numbers does a hand have?
#
# </details>
# <details><summary>Hint 2</summary>
#
# Print the shares of the first ten components. Where is the drop?
#
# </details>
# <details><summary>Solution</summary>
#
# Six: a sine and a cosine for each rotation.
#
# ```python
# noisy = planted((7, 21, 63), 200) + np.random.default_rng(1).normal(0, 0.1, (200, 384))
# size = (components(noisy)[0] ** 2).sum(axis=0)
# assert size[5] > 20 * size[6]  # a drop after six
# values = step_matrix(noisy, r=6)[0]
# assert np.allclose(2 * np.pi / np.angle(values), (7, 21, 63), rtol=0.01, atol=0)
# ```
#
# </details>
#
# ### Exercise 2: Waves that are not there
#
# Take `smooth_rows` with 200 and with 400 rows, and `planted((5, 14, 40), 200)` and with 400. For
# each kind of table, compare the slowest wavelengths that `step_matrix` finds with six components.
#
# <details><summary>Hint 1</summary>
#
# Look at the slowest rotation: the last of the eigenvalues that `step_matrix` returns.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Print the ratio of the two wavelengths for both kinds of table.
#
# </details>
# <details><summary>Solution</summary>
#
# Planted waves keep their length. The others grow with the number of rows.
#
# ```python
# def slowest(rows):
#     return 2 * np.pi / np.angle(step_matrix(rows, r=6)[0][-1])
#
# assert abs(slowest(planted((5, 14, 40), 400)) / slowest(planted((5, 14, 40), 200)) - 1) < 1e-6
# growth = [slowest(smooth_rows(400, seed=n)) / slowest(smooth_rows(200, seed=n)) for n in range(5)]
# assert min(growth) > 1.5
# ```
#
# </details>
#
# ### Exercise 3: Half a step between two rows
#
# [Chapter 21](21_learned.ipynb#interpolating-a-learned-table) puts the mean of two rows between
# them. Find a matrix that moves a planted table by *half* a step. Compare it with the mean of two
# rows.
#
# <details><summary>Hint 1</summary>
#
# A matrix $R$ with $R^2=M$ moves by half a step, around the same centre.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Take the square roots of the eigenvalues. The centre $c$ does not move, so $c=Mc+b$.
#
# </details>
# <details><summary>Solution</summary>
#
# With wavelengths 12 and 36, every second row is a table with wavelengths 6 and 18. The mean of two
# rows shortens the fast hand by the factor $\cos(\pi/6)$.
#
# ```python
# fine = planted((12, 36), 199)
# rows, between = fine[::2], fine[1::2]
# z, M, b = step_matrix(rows, r=4)[3]
# values, vectors = np.linalg.eig(M)
# half = np.real((vectors * np.sqrt(values)) @ np.linalg.inv(vectors))
# centre = np.linalg.solve(np.eye(4) - M, b)
# moved = ((z - centre) @ half.T + centre) @ components(rows)[1][:4] + rows.mean(axis=0)
# assert np.allclose(moved[:-1], between, rtol=0, atol=1e-8)
# mean = (rows[:-1] + rows[1:]) / 2
# assert np.linalg.norm(mean - between) > 0.05 * np.linalg.norm(between - fine.mean(axis=0))
# ```
#
# </details>
#
# ### Exercise 4: Geared or independent?
#
# A slow hand has the phase `slow = p / 18 + 0.3 * np.sin(p / 60)`, in turns, at `p = np.arange(400)`.
# Two fast hands have the phases `3 * slow` and `p / 6 + 0.9 * np.sin(p / 45)`. Both are on average
# three times as fast. Which one is geared to the slow hand, and which test shows it?
#
# <details><summary>Hint 1</summary>
#
# The wavelengths from fits over all rows are nearly equal.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Which difference of phases should stay constant?
#
# </details>
# <details><summary>Solution</summary>
#
# ```python
# p = np.arange(400)
# slow = p / 18 + 0.3 * np.sin(p / 60)
# fast_1, fast_2 = 3 * slow, p / 6 + 0.9 * np.sin(p / 45)
# gear = lambda fast: (fast - 3 * slow).std()
# assert gear(fast_1) < 1e-9 and gear(fast_2) > 0.5
# ```
#
# </details>
#
# ### Exercise 5: Another way to pool
#
# An encoder without positions makes the same mean for "dog bites man" and "man bites dog". Would
# the vector of the *last* token tell them apart? And of the first token if it is always `[CLS]`?
# Use one layer of attention on random vectors.
#
# <details><summary>Hint 1</summary>
#
# `attention(x, x, x)[0] + x` is a layer without positions. Reorder the rows of `x`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Reordered inputs give reordered outputs. Which output is the last?
#
# </details>
# <details><summary>Solution</summary>
#
# The last token's output changes, but only because another word is last. The output of `[CLS]` does
# not change.
#
# ```python
# from pe_numpy import attention
#
# def layer(x):
#     return attention(x, x, x)[0] + x
#
# x = np.random.default_rng(0).standard_normal((4, 8))  # [CLS] dog bites man
# y = x[[0, 3, 2, 1]]  # [CLS] man bites dog
# assert np.allclose(layer(x).mean(axis=0), layer(y).mean(axis=0), rtol=0, atol=1e-12)
# assert np.allclose(layer(x)[0], layer(y)[0], rtol=0, atol=1e-12)
# assert not np.allclose(layer(x)[3], layer(y)[3], rtol=0, atol=0.1)
# assert np.allclose(layer(x)[3], layer(y)[1], rtol=0, atol=1e-12)  # "man" in both
# ```
#
# </details>
#
# ### Exercise 6: The row of [CLS] (needs the weights)
#
# Which change moves the vectors of the ten sentences more: the mean row instead of row 0, or the
# mean row instead of all others?
#
# <details><summary>Hint 1</summary>
#
# Copy `E`, change it, and give it to `with_table`.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Compare by the mean cosine with the vectors `model.embed(list(own))`.
#
# </details>
# <details><summary>Solution</summary>
#
# The others, although row 0 has by far [the largest
# norm](#row-norms-show-how-the-model-was-trained).
#
# ```python
# def cosine_after(rows):
#     changed = np.float32(E)
#     changed[rows] = E[1:].mean(axis=0)
#     other = with_table(changed).embed(list(own))
#     return (model.embed(list(own)) * other).sum(axis=1).mean()
#
# first, others = cosine_after(slice(0, 1)), cosine_after(slice(1, 512))
# assert 0.9 > others and first > 0.9
# ```
#
# </details>
#
# ## In practice
#
# **Three lengths.** The table has 512 rows. The folder's own setting cuts texts at 256 tokens
# (`max_seq_length`), and the fine-tuning used 128. Beyond 256 a text loses its end without a
# message. Two halves and the mean of their tokens keep it ([above](#beyond-512-positions)).

# %%
ids = list(range(2000, 2400))  # 400 tokens
whole, cut = model.embed([[101, *ids, 102], [101, *ids[:254], 102]])
print("cosine of the vectors of 402 tokens and of its first 256:", round(float(whole @ cut), 4))
assert np.allclose(whole, cut, rtol=0, atol=1e-5)

# %% [markdown]
# **Do not read meaning off a cosine.** A cosine of 0.99 looks like "the same meaning". In this
# model it can be the opposite. Try exchanged roles on your own sentences before you trust a
# threshold.
#
# ## Further reading
#
# - Reimers and Gurevych 2019, *Sentence-BERT*, [arXiv:1908.10084](https://arxiv.org/abs/1908.10084):
#   sentence vectors by the mean of the outputs.
# - Wang et al. 2020, *MiniLM: Deep Self-Attention Distillation*,
#   [arXiv:2002.10957](https://arxiv.org/abs/2002.10957): how the larger model was distilled.
# - *Absolute Position Embedding Learns Sinusoid-like Waves for Attention Based on Relative
#   Position*, EMNLP 2023, [abstract](https://openreview.net/forum?id=zpayaLaUhL).
# - Song and Zhong 2023, *Uncovering Hidden Geometry in Transformers via Disentangling Position and
#   Context*, [arXiv:2310.04861](https://arxiv.org/abs/2310.04861): the mean vector of each
#   position, in all layers.
# - Shinn 2023, *Phantom oscillations in principal component analysis*,
#   [PNAS 120](https://pmc.ncbi.nlm.nih.gov/articles/PMC10691246): why smooth data look like waves.
# - Nikolaev and Padó 2023, *Representation biases in sentence transformers*,
#   [arXiv:2301.13039](https://arxiv.org/abs/2301.13039).
