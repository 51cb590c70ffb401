# %% [markdown]
# # 23. How CNNs learn position from zero padding
#
# *How does a convolution know where it is, when nobody told it?*
#
# 35 minutes. Needs [11 Why attention needs positional encoding](11_why_position.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Convolutional networks (CNNs) mostly get no positional encoding, yet they can
# tell where in an image an object is. The position comes from zero padding, the zeros that a layer
# invents beyond the border. You follow this signal through the layers by hand and prove who can read
# it: with a ring instead of a border, nobody. You also compare it with the signal of a causal mask in
# attention. At the end you know how far a border reaches, and which border it is.

# %% fold="input" alt="Two tables of numbers as heat maps, layers by positions. With zero padding, a bright wedge grows inwards from each end by one position per layer, brighter on the right. With circular padding, every cell stays 1."
from itertools import product
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import convolve
from pe_numpy.book.plots import convolution as plots

KERNEL = (0.2, 0.5, 0.3)
zero, circular = [np.ones(13)], [np.ones(13)]
for _ in range(5):
    zero.append(convolve(zero[-1], KERNEL))
    circular.append(convolve(circular[-1], KERNEL, "circular"))
zero, circular = np.array(zero), np.array(circular)
plots.leak_by_layer(zero, circular, radius=1)
plt.show()

# %% [markdown]
# Both panels start with a row of ones and apply the same layer five times. Above, each layer reads
# zeros beyond the ends; below, the ends are joined to a ring. Each number is an output, the colour is
# its change, and the line marks how far the border reaches.
#
# ## Convolution, zero padding and circular padding
#
# Many networks for images are built of convolutions, mostly without a positional encoding. Yet they
# can tell where in the image an object is. A **convolution** computes each output from a small window
# of the input. Its **kernel** $w$ has $2m+1$ weights; $m$ is its **radius**. The output at position
# $i$ is the weighted sum of the inputs from $i-m$ to $i+m$:
#
# $$y_i=\sum_{j=-m}^{m} w_{j+m}\;x_{i+j}$$
#
# The same weights serve every position. But what is $x$ beyond the ends? **Zero padding** reads 0
# there. **Circular padding** continues from the other end, so that the line becomes a ring.
#
# *Predict*: the kernel is $(0.2, 0.5, 0.3)$, and the input is all zeros except for a single 1 in the
# middle. What is the output?


# %% fold="output"
def convolve_by_loops(x, w, padding="zero"):
    L, m, y = len(x), len(w) // 2, [0.0] * len(x)
    for i in range(L):
        for j in range(-m, m + 1):
            if padding == "circular":
                y[i] += w[j + m] * x[(i + j) % L]
            elif 0 <= i + j < L:  # zero padding: nothing to add beyond the ends
                y[i] += w[j + m] * x[i + j]
    return y


print(convolve_by_loops([0, 0, 1, 0, 0], KERNEL))
assert convolve_by_loops([0, 0, 1, 0, 0], KERNEL) == [0, 0.3, 0.5, 0.2, 0]
assert convolve_by_loops([0, 0, 0, 0, 1], KERNEL) == [0, 0, 0, 0.3, 0.5]
assert convolve_by_loops([0, 0, 0, 0, 1], KERNEL, "circular") == [0.2, 0, 0, 0.3, 0.5]

# %% [markdown]
# The output is the reversed kernel. The weight 0.2 belongs to the left neighbour, so the position to
# the *right* of the 1 reads it with 0.2. The package adds shifted copies of the padded input, one per
# weight.

# %%
from pe_numpy.book.show import show_source

show_source(convolve)
rng = np.random.default_rng(0)
for padding in ("zero", "circular"):
    for L, n in ((7, 3), (8, 5), (2, 5)):
        x, w = rng.standard_normal(L), rng.standard_normal(n)
        slow = convolve_by_loops(x, w, padding)
        assert np.allclose(convolve(x, w, padding), slow, rtol=0, atol=1e-12)

# %% [markdown]
# ## Far from the border, convolution is shift-equivariant
#
# Take a long signal $X$ and cut $L$ numbers out of it, from index $a$ on: $x_i=X_{a+i}$. As long as
# the kernel's window is inside the cut, its output is the long signal's output, $Y_{a+i}$. It depends
# on the content, regardless of the position $i$ of that content. A function that shifts its output as
# its input is shifted is called **equivariant to shifts**.
#
# Now stack $c$ layers. Between them is a function of each number by itself, such as the **ReLU**,
# $\max(0,\cdot)$; it cannot distinguish positions. The second layer is right where its whole window
# was right in the first, and so on. So in each layer the right outputs end one radius further from
# the border.
#
# $$y^{(c)}_i=Y^{(c)}_{a+i}\qquad\text{for } cm\le i\le L-1-cm$$
#
# *Predict* for $c=3$ layers, radius 1 and $L=12$: which outputs agree with the long signal?


# %% fold="output"
def stack(x, kernels, padding="zero"):
    for w in kernels:
        x = np.maximum(convolve(x, w, padding), 0)
    return x


L, X, kernels = 12, rng.standard_normal(40), np.random.default_rng(1).uniform(-0.5, 1.0, (3, 3))
for c in (1, 2, 3):
    cuts = np.lib.stride_tricks.sliding_window_view(X, L)[3:26]  # (cuts, L)
    whole = stack(X, kernels[:c])
    assert whole.min() == 0 < whole.max()
    wanted = np.lib.stride_tricks.sliding_window_view(whole, L)[3:26]
    agree = np.isclose(stack(cuts, kernels[:c]), wanted, rtol=0, atol=1e-12).all(axis=0)
    print(f"{c} layers, equal in every cut: i =", np.flatnonzero(agree).tolist())
    assert np.flatnonzero(agree).tolist() == list(range(c, L - c))

# %% [markdown]
# ## Circular padding: a constant stays constant
#
# With circular padding every position is interior. Let $T$ shift round the ring by one position,
# $(Tx)_i=x_{(i-1)\bmod L}$, and let $C$ be the circular convolution. Then
#
# $$(C\,Tx)_i=\sum_{j=-m}^{m} w_{j+m}\,x_{(i+j-1)\bmod L}=(Cx)_{(i-1)\bmod L}=(T\,Cx)_i$$
#
# A ReLU also commutes with the shift, so whole networks do. Let $x$ be constant. Then $Tx=x$, hence
# $T\,Cx=C\,Tx=Cx$: the output does not change when it is shifted. On a ring **a constant stays
# constant** for all kernels, and no position can differ from another.

# %%
T = np.roll(np.eye(L), 1, axis=0)
C = convolve(np.eye(L), KERNEL, "circular").T  # its columns: what becomes of a single 1
Z = convolve(np.eye(L), KERNEL, "zero").T
assert np.array_equal(T @ X[:L], np.roll(X[:L], 1))
assert np.allclose(C @ X[:L], convolve(X[:L], KERNEL, "circular"), rtol=0, atol=1e-12)
assert np.array_equal(C @ T, T @ C) and not np.array_equal(Z @ T, T @ Z)
ring, turned = (stack(np.roll(X[:L], n), kernels, "circular") for n in (0, 5))
assert np.allclose(turned, np.roll(ring, 5), rtol=0, atol=1e-12)
constant = stack(np.ones(L), kernels, "circular")
assert np.ptp(constant) < 1e-12 and constant.all()

# %% [markdown]
# ## How zero padding reveals the border
#
# Now take the constant with zero padding, in the figure at the top. The weights sum to 1, so the
# interior stays 1. At the first position the weight 0.2 is multiplied by a zero, and 0.8 remains. At
# the last position 0.3 is lost. In the second layer the loss spreads. The first position gets
# $0.5\cdot 0.8+0.3\cdot 1=0.7$, its neighbour $0.2\cdot 0.8+0.5+0.3=0.96$. This neighbour now depends
# on a border that its own window never touched. Two wedges grow inward, one position per layer.
# Between them all positions are 1 and cannot be distinguished.
#
# Expand the brackets of all $c$ layers. Then each term is a walk: from $i$ to $i+j_1$, on to
# $i+j_1+j_2$, and so on, with the product of the weights. Walks that step outside were multiplied by
# a zero:
#
# $$y^{(c)}_i=\sum_{\substack{\text{walks of } c \text{ steps from } i\\ \text{that stay in } 0\dots L-1}}
#   w_{j_1+m}\,w_{j_2+m}\cdots w_{j_c+m}$$
#
# With positive weights whose sum is 1 this is a probability: **the output is the share of random
# walks that have not fallen off after $c$ steps**.


# %%
def share_that_stays(i, L, c, w):
    m, share = len(w) // 2, 0.0
    for steps in product(range(-m, m + 1), repeat=c):
        if all(0 <= place < L for place in i + np.cumsum(steps)):
            share += np.prod([w[j + m] for j in steps])
    return share


print("first two positions, one and two layers:", zero[1:3, :2].round(2).tolist())
for c in range(5):
    assert np.allclose(zero[c], [share_that_stays(i, 13, c, KERNEL) for i in range(13)],
                       rtol=0, atol=1e-12)  # fmt: skip
    interior = [c <= i < 13 - c for i in range(13)]
    assert np.array_equal(np.isclose(zero[c], 1, rtol=0, atol=1e-9), interior)

# %% [markdown]
# ## Receptive field and signal strength
#
# The wedge *reaches* $cm$ positions after $c$ layers. But to fall off from the innermost of them a
# walk must take every step towards the border, and such a walk is rare. In $c$ steps a random walk
# strays by about $\sqrt c$. How deep can you *see* the border, then? *Predict*: with 64 layers of the
# kernel $(0.25, 0.5, 0.25)$, how many positions at an end are changed by more than 1%?

# %% fold="output" alt="Four curves over the distance to the border, for 1, 4, 16 and 64 layers. Four times as many layers make the visible dip only two or three times as deep, while the bars above, which show the reach, grow fourfold."
profiles, visible = {}, {}
y = np.ones(257)
for c in range(1, 65):
    y = convolve(y, (0.25, 0.5, 0.25))
    if c in (1, 4, 16, 64):
        profiles[c] = y[:96]  # by distance from the left end
        visible[c] = int((1 - y[:128] > 0.01).sum())
print("layers: positions changed by more than 1 %", visible)
assert visible == {1: 1, 4: 3, 16: 7, 64: 14}
plots.leak_in_depth(profiles, visible, radius=1, threshold=0.01)
plt.show()

# %% [markdown]
# With 64 layers 14 positions change. From 4 layers on, four times the layers give about twice the
# depth. The reach $cm$ is a limit that no network of this depth and radius can pass. How strong the
# signal is within it depends on the weights. (The $2cm+1$ inputs that an output can see are its
# **receptive field**. What counts in a deep network, the *effective* receptive field, is a Gaussian
# that fills a part of it: Luo et al. 2016.)
#
# Other weights use the whole reach. Add a bias of 1 and shift by one position, with the kernel
# $(1,0,0)$. Each layer adds one to the left neighbour's count. Beyond the end there is a zero, and
# the count begins there:
#
# $$\begin{gathered}p^{(c)}_i=p^{(c-1)}_{i-1}+1,\qquad p^{(c)}_0=0,\qquad p^{(0)}_i=0\\[4pt]
# \Longrightarrow\quad p^{(c)}_i=\min(i,c)\end{gathered}$$
#
# *Predict* what the same layers do on a ring.

# %% fold="output"
p, p_back, p_ring = np.zeros((3, 9))
for c in range(1, 5):
    p, p_back = convolve(p + 1, (1, 0, 0)), convolve(p_back + 1, (0, 0, 1))
    p_ring = convolve(p_ring + 1, (1, 0, 0), "circular")
    assert np.array_equal(p, np.minimum(np.arange(9), c)) and (p_ring == c).all()
    assert np.array_equal(p_back, np.minimum(8 - np.arange(9), c))
print(f"{c} layers: {p.astype(int).tolist()}   on a ring: {p_ring.astype(int).tolist()}")

# %% [markdown]
# With zero padding this is a counter. A second one, with the kernel $(0,0,1)$, counts from the other
# end. So it is *proved*: with a constant input, positions deeper than $cm$ look alike, and for radius
# 1 a network exists that distinguishes all others. Whether training finds such weights is another
# question.
#
# ## Symmetric and anisotropic kernels: which border?
#
# A kernel is **symmetric** if $w_{-j+m}=w_{j+m}$. Let $J$ reverse a sequence, $(Jx)_i=x_{L-1-i}$, and
# let $Z$ be a convolution with either padding. For a symmetric kernel
#
# $$(Z\,Jx)_i=\sum_j w_{j+m}\,x_{L-1-i-j}=\sum_j w_{-j+m}\,x_{L-1-i+j}=(Z\,x)_{L-1-i}=(J\,Zx)_i$$
#
# The second step renames $j$ to $-j$, the third needs the symmetry. A constant is its own mirror
# image. Therefore every layer's output is too: $y_i=y_{L-1-i}$. A network of symmetric kernels may
# learn how far away the border is. From a constant it cannot learn **which** border.

# %%
J = np.eye(L)[::-1]
for padding in ("zero", "circular"):
    even = convolve(np.eye(L), (0.25, 0.5, 0.25), padding).T
    slanted = convolve(np.eye(L), KERNEL, padding).T
    assert np.array_equal(even @ J, J @ even)
    assert not np.allclose(slanted @ J, J @ slanted, rtol=0, atol=0.01)
halves = np.random.default_rng(4).uniform(-0.5, 1.0, (6, 2))
y = stack(np.ones(L), [(a, b, a) for a, b in halves])  # six symmetric kernels, with ReLUs
assert np.allclose(y, np.flip(y), rtol=0, atol=1e-12) and y.max() != y.min()

# %% [markdown]
# A kernel that treats the two directions differently is called **anisotropic**. What does anisotropy
# show without any border? Let the inputs be vectors, like word vectors. Then a convolution has a
# *matrix* for each offset instead of a weight:
#
# $$y_i=\sum_{j=-m}^{m} W_{j}\;x_{i+j}$$
#
# The left neighbour and the right neighbour go through different matrices. So a convolution depends
# on the *order of neighbours* before any padding. We test it on a ring of three words, with a ReLU
# and the mean over all positions at the end.


# %%
def pooled(words, W):
    L = len(words)
    y = [sum(W[j + 1] @ words[(i + j) % L] for j in (-1, 0, 1)) for i in range(L)]
    return np.maximum(y, 0).mean(axis=0)


line = rng.standard_normal((7, 1))  # vectors of one number: the convolution from above
once = np.maximum(convolve(line[:, 0], KERNEL, "circular"), 0).mean()
assert np.allclose(pooled(line, np.reshape(KERNEL, (3, 1, 1))), once, rtol=0, atol=1e-12)
dog, bites, man = np.random.default_rng(3).standard_normal((3, 4))
W = np.random.default_rng(4).standard_normal((3, 6, 4))
for M, blind in ((W, False), (W[[0, 1, 0]], True)):  # anisotropic, symmetric
    seen, mirrored = pooled([dog, bites, man], M), pooled([man, bites, dog], M)
    assert np.allclose(seen, mirrored, rtol=0, atol=1e-12) == blind
    assert np.allclose(seen, pooled([bites, man, dog], M), rtol=0, atol=1e-12)

# %% [markdown]
# The anisotropic kernel distinguishes "dog bites man" from "man bites dog". On a ring it still can't
# tell which word comes first: "bites man dog" is the same ring. This is order without position. The
# four cases are:
#
# | | circular padding | zero padding |
# |---|---|---|
# | **symmetric kernel** | no position, no direction | distance to the border, not which one |
# | **anisotropic kernel** | order of neighbours, no position | distance to the border, and which one |
#
# The cell prints nine positions after two layers of zero padding. The symmetric kernel gives three
# kinds of positions: at an end, next to it, further in. There are five kinds when the ends differ.

# %%
for kernel_name, w in (("symmetric", (0.25, 0.5, 0.25)), ("anisotropic", KERNEL)):
    for padding in ("circular", "zero"):
        y = convolve(convolve(np.ones(9), w, padding), w, padding).round(9)
        kinds = len(set(y.tolist()))
        assert kinds == {"circular": 1, "zero": 3 if kernel_name == "symmetric" else 5}[padding]
    print(f"{kernel_name:11} zero padding: {y.round(2).tolist()}")

# %% [markdown]
# ## Zero padding in images
#
# The finding comes from images. Islam et al. (2020) trained readouts on networks that had been
# trained to recognise objects, and found positions in them. Their later paper sums up that zero
# padding drives networks to encode position and that a lack of padding precludes it.
#
# An image has four borders. Let the kernel be a product $u_a v_b$, one factor per axis. A constant
# image then becomes the product of two profiles, and a corner loses twice:
#
# $$\begin{gathered}y_{rs}=\sum_{a,b=-m}^{m} u_{a+m}\,v_{b+m}\,x_{r+a,\,s+b},\\[4pt]
# x=\mathbf 1\mathbf 1^\top
#   \;\Longrightarrow\; y=(Z_u\mathbf 1)(Z_v\mathbf 1)^\top\end{gathered}$$


# %%
def convolve_picture(x, u, v):
    """Convolve the rows of an image with v, then its columns with u."""
    return convolve(convolve(x, v).T, u).T


u, v = np.array(KERNEL), np.array([0.25, 0.5, 0.25])
noise = np.random.default_rng(4).standard_normal((6, 6))
padded, by_hand = np.pad(noise, 1), np.zeros((6, 6))
for r, s, a, b in np.ndindex(6, 6, 3, 3):
    by_hand[r, s] += u[a] * v[b] * padded[r + a, s + b]
assert np.allclose(convolve_picture(noise, u, v), by_hand, rtol=0, atol=1e-12)
profiles = [convolve(np.ones(6), kernel) for kernel in (u, v)]
flat = convolve_picture(np.ones((6, 6)), u, v)
assert np.allclose(flat, np.outer(*profiles), rtol=0, atol=1e-12)

# %% alt="Six heat maps of a constant image after 1, 4 and 16 layers, for two kernels. The dark frame grows inwards. With the symmetric kernel all sides are alike; with the slanted one, the frame is much thicker at the right and the bottom."
layers = (1, 4, 16)
pictures = {"symmetric kernel": [], "slanted kernel": []}
for name, w in zip(pictures, ((0.25, 0.5, 0.25), (0.1, 0.5, 0.4)), strict=True):
    picture = np.ones((24, 24))
    for c in range(1, 17):
        picture = convolve_picture(picture, w, w)
        if c in layers:
            pictures[name].append(picture)
    corners = [picture[r, s].round(9).item() for r in (0, -1) for s in (0, -1)]
    assert (len(set(corners)) == 1) == (name == "symmetric kernel")
plots.picture_leak(pictures, layers)
plt.show()

# %% [markdown]
# The symmetric kernel draws a frame in which all four corners look the same. The slanted kernel is
# darker towards one corner.
#
# ## Can a linear probe read the position? (second reading)
#
# Real inputs vary from position to position, and this variation hides the border. So we measure:
# networks with **random** weights, 16 numbers per position (**channels**), and random words as input.
# The code shifts by each offset (a kernel with a single 1), multiplies by that offset's matrix, and
# adds.
#
# $$h^{(c)}_i=\max\Big(0,\;\sum_{j=-1}^{1} W_j\,h^{(c-1)}_{i+j}\Big)$$


# %%
def layer(h, W, padding):
    """One layer for h (B, channels, L) with the matrices W (3, channels, channels)."""
    shifted = [convolve(h, unit, padding) for unit in np.eye(3)]  # x_(i-1), x_i, x_(i+1)
    return np.maximum(sum(W_j @ s for W_j, s in zip(W, shifted, strict=True)), 0)


h, W = rng.standard_normal((2, 5, 7)), rng.standard_normal((3, 5, 5))
for padding, mode in (("zero", "constant"), ("circular", "wrap")):
    padded = np.pad(h, [(0, 0), (0, 0), (1, 1)], mode=mode)
    for b, i in np.ndindex(2, 7):
        slow = np.maximum(sum(W[j] @ padded[b, :, i + j] for j in range(3)), 0)
        assert np.allclose(layer(h, W, padding)[b, :, i], slow, rtol=0, atol=1e-12)

# %% [markdown]
# The **probe** is given the 16 numbers at one position and must name the position $t_i=i-11.5$,
# counted from the middle of 24. It is a ridge regression, as in [chapter 11](11_why_position.ipynb),
# fitted on some sequences and tested on others. We judge it by the **explained variance** $R^2$: 1 if
# every answer is right, 0 if it is not better than always answering "the middle".
#
# $$R^2=1-\frac{\sum (\text{answer}-t)^2}{\sum t^2}$$

# %%
L, channels, t = 24, 16, np.arange(24) - 11.5


def probe(h, h_test, target):  # both h (B, channels, L): answers (B, L), explained variance
    F, F_test = (np.insert(x, 0, 1.0, axis=1).transpose(0, 2, 1) for x in (h, h_test))
    flat, wanted = F.reshape(-1, channels + 1), np.tile(target, len(h))
    penalty = 1e-3 * np.eye(channels + 1)
    answers = F_test @ np.linalg.solve(flat.T @ flat + penalty, flat.T @ wanted)
    return answers, 1 - ((answers - target) ** 2).mean() / (target**2).mean()


told = np.broadcast_to(t, (3, channels, L))  # hands over the position
answers, share = probe(told, told, t)
assert share > 0.999 and np.linalg.norm(answers[0]) < np.linalg.norm(t)  # the ridge
assert abs(probe(np.zeros_like(told), np.zeros_like(told), t)[1]) < 1e-9

# %% [markdown]
# What can we say *before* we measure? Let the set contain, with each sequence, all its 24 shifts
# round the ring, and all their mirror images.
#
# - **Circular padding.** If the sequence is shifted, the features shift with it. Over the whole set
#   each position has the very same features, equally often. No probe of any kind can do better than
#   one fixed answer, and $R^2=0$.
# - **Zero padding, symmetric kernels.** Positions $i$ and $L-1-i$ have the same features, and $t$ has
#   opposite signs there. Again $R^2=0$. But the *distance to the border* may be read.
# - **Zero padding, any kernels.** There is no such theorem. It takes 12 layers of radius 1 until the
#   border reaches every position.


# %%
def network(seed, padding, symmetric, depths=(1, 2, 4, 8, 12)):
    """Features of training and test sequences after some depths: depth -> (train, test)."""
    rng, features = np.random.default_rng(seed), {}
    vectors, words = rng.standard_normal((8, channels)), rng.integers(0, 8, (15, L))
    turned = np.stack([np.roll(words, n, axis=1) for n in range(L)], axis=1)
    both = np.concatenate([turned, turned[..., ::-1]], axis=1)  # (15, 2 L, L): and mirror images
    h = [vectors[part.reshape(-1, L)].transpose(0, 2, 1) for part in (both[:10], both[10:])]
    for c in range(1, max(depths) + 1):
        W = rng.standard_normal((3, channels, channels)) * np.sqrt(2 / (3 * channels))
        W[2] = W[0] if symmetric else W[2]
        h = [layer(part, W, padding) for part in h]
        features |= {c: h} if c in depths else {}
    return features


# %% alt="Three panels with the answers of a probe over the position, and explained variance over depth. With zero padding, answers are about right near the ends and improve with depth. With circular padding or symmetric kernels they stay at zero, but the symmetric network reveals the distance."
names = ["zero\npadding", "circular\npadding", "zero,\nsymmetric"]
far = np.minimum(np.arange(L), np.arange(L)[::-1])  # distance to the border
far = far - far.mean()
share, share_far, answers = {}, {}, {}
for name, padding in zip(names, ("zero", "circular", "zero"), strict=True):
    runs = [network(seed, padding, "symmetric" in name) for seed in range(3)]
    share[name] = [np.mean([probe(*run[c], t)[1] for run in runs]) for c in runs[0]]
    share_far[name] = [np.mean([probe(*run[c], far)[1] for run in runs]) for c in runs[0]]
    answers[name] = probe(*runs[0][12], t)[0]
curves = {name: (row, "-") for name, row in share.items()}
curves["distance"] = (share_far[names[2]], "--")
assert np.abs([share[names[1]], share_far[names[1]], share[names[2]]]).max() < 1e-6
assert share_far[names[2]][-1] > 0.2 and share[names[0]][0] < 0.05 and share[names[0]][-1] > 0.45
plots.probe_of_position(answers, t, list(runs[0]), curves)
plt.show()

# %% [markdown]
# The dotted line is the truth, and the band is one standard deviation of the answers. The dashed line
# is the distance to the border, read from the symmetric network. *Proved, and seen*: the second and
# the third network stay at 0 for the position, at every depth. *Measured*: with zero padding and
# random anisotropic kernels the probe explains nearly half of the variance at 12 layers. Nothing was
# trained except the probe.
#
# ## Zero padding and the causal mask compared
#
# Under a causal mask token $i$ sees $i+1$ tokens, which is another border that nobody drew.
# *Predict*: what does causal attention do to a constant?

# %% fold="output"
from pe_numpy import attention, causal_mask

L = 8
see = causal_mask(np.arange(L), np.arange(L))
any_q, any_k = np.random.default_rng(5).standard_normal((2, L, 4))
any_constant, weights = attention(any_q, any_k, np.ones((L, 1)), mask=see)
print("causal attention:", any_constant[:, 0].round(9).tolist())
assert np.allclose(any_constant, 1, rtol=0, atol=1e-12)  # whatever the scores
assert np.allclose(weights.sum(axis=1), 1, rtol=0, atol=1e-12)

# %% [markdown]
# Nothing. Attention *divides by the sum of its weights*. However many keys are hidden, the others
# share the whole weight, and a weighted mean of equal values is that value. A convolution does not
# divide. What leaks with a constant is not the zero as such but a missing division.
#
# The other difference is the shape. A convolution reaches one radius per layer; the causal mask
# reaches back to the first token in one layer. So as soon as the *first token* differs from the rest,
# one layer is enough for all positions. In [chapter 11](11_why_position.ipynb) it was a mark on the
# first token, and the output was $1/(i+1)$. The content is also enough: the mean of $i+1$ independent
# values with variance $\sigma^2$ varies the less, the further you are from the start. (Chi et al.
# 2023 find this in causal Transformers without any positional encoding, random and trained.)
#
# $$\mathrm{Var}\,o_i=\frac{1}{(i+1)^2}\sum_{j\le i}\mathrm{Var}\,v_j=\frac{\sigma^2}{i+1}$$

# %%
_, averages = attention(np.zeros((L, 1)), np.zeros((L, 1)), np.zeros((L, 1)), mask=see)
mark = np.eye(L)[:, :1]  # 1 for the first token
assert np.allclose((averages @ mark)[:, 0], 1 / (np.arange(L) + 1), rtol=0, atol=1e-12)
values = np.random.default_rng(6).standard_normal((20000, L, 1))
measured = (averages @ values).var(axis=0)[:, 0]
print("variance:", measured.round(2).tolist())
assert np.allclose(measured, 1 / (np.arange(L) + 1), rtol=0.05, atol=0)
assert np.allclose((averages**2).sum(axis=1), 1 / (np.arange(L) + 1), rtol=0, atol=1e-12)

# %% [markdown]
# *A common mistake* is to expect that appended zeros give attention a border, as padding does to a
# convolution. Without a mask they dilute every output, but none by its position. Attention has no
# neighbours, so no token is near the border.


# %%
def attention_with_zeros(x):
    keys = np.concatenate([x, np.zeros((3, 4))])
    return attention(x, keys, keys)[0]


x, order = np.random.default_rng(7).standard_normal((5, 4)), [3, 0, 4, 1, 2]
reordered = attention_with_zeros(x[order])
assert np.allclose(reordered, attention_with_zeros(x)[order], rtol=0, atol=1e-12)
assert np.abs(attention_with_zeros(x) - attention(x, x, x)[0]).max() > 0.1

# %% [markdown]
# | | zero padding, convolution | causal mask, attention |
# |---|---|---|
# | borders | both | the start |
# | reach of $c$ layers | $cm$ positions | all positions, from $c=1$ |
# | with a constant input | leaks | leaks nothing |
# | which positions differ | the outer $cm$ on each side | all, ever less sharply |
# | on a longer input | new positions in the middle, all alike | new positions at the end, new values |

# %% [markdown]
# ## In short
#
# - **How does a CNN know positions without a positional encoding?** From zero padding. Near a border
#   some weights of the kernel are multiplied by zeros, and the output is smaller.
#   [Zero padding](#how-zero-padding-reveals-the-border).
# - **How far into the input does the signal reach?** $c$ layers of radius $m$ reach $cm$ positions.
#   What you can *see* is less: 64 layers of $(0.25, 0.5, 0.25)$ change 14 positions at each end by
#   more than 1%. [Receptive field](#receptive-field-and-signal-strength).
# - **Does circular padding stop it?** Yes. The layer then commutes with shifts round the ring, and a
#   constant stays constant. [Circular padding](#circular-padding-a-constant-stays-constant).
# - **Does the shape of the kernel matter?** Yes. A symmetric kernel can show how far the border is,
#   but from a constant not *which* border. An anisotropic kernel can.
#   [Kernels](#symmetric-and-anisotropic-kernels-which-border).
# - **Does a causal mask leak in the same way?** No. Attention divides by the sum of its weights, so a
#   constant leaks nothing. But if the first token differs, one layer shows all positions.
#   [Causal mask](#zero-padding-and-the-causal-mask-compared).
# - **Is the kernel reversed?** Not in deep-learning libraries or this book. `np.convolve` reverses
#   it. [In practice](#in-practice).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 23` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 23_convolution.py` checks yours.
#
# ### Exercise 1: Repeat the edge
#
# `np.pad(x, 1, mode="edge")` repeats the outermost values. Show that a constant stays constant under
# it. Then show that it nevertheless differs from the output of a longer signal.
#
# <details><summary>Hint 1</summary>
#
# Pad first, convolve with zeros after, and throw the outermost outputs away.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# For the second part cut the long signal `X`, as in the section on equivariance far from the border.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The test with a constant is necessary, not sufficient: the first and the last output are computed
# from an invented neighbour. With varying content a network can notice that two neighbours are always
# equal.
#
# ```python
# def edge(x, w):
#     return convolve(np.pad(x, 1, mode="edge"), w)[1:-1]
#
# assert np.allclose(edge(np.ones(9), KERNEL), 1, rtol=0, atol=1e-12)
# agree = np.isclose(edge(X[3:15], KERNEL), convolve(X, KERNEL)[3:15], rtol=0, atol=1e-12)
# assert agree[1:-1].all() and not agree[0] and not agree[-1]
# ```
#
# </details>
#
# ### Exercise 2: A causal convolution
#
# A language model made of convolutions may not look ahead: its kernels read the position itself and
# the past. Which borders does it see, and how far?
#
# <details><summary>Hint 1</summary>
#
# With `convolve` a causal kernel of three weights is `(a, b, c, 0, 0)`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Look at the last position of a constant input.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It sees only the start, and it reaches two positions per layer. The last position is interior as
# long as $2c\le L-1$. Like the causal mask it shows the distance to the start, but within its reach.
#
# ```python
# w, y = (0.2, 0.3, 0.5, 0, 0), np.ones(12)
# for c in range(1, 4):
#     y = convolve(y, w)
#     assert (y[: 2 * c] < 1 - 1e-9).all()
#     assert np.allclose(y[2 * c :], 1, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 3: Divide, as attention does
#
# Divide each output by the sum of the weights that met an input. (Partial convolution, Liu et al.
# 2018, arXiv:1811.11718, divides by the share of the window instead.) Does a constant still leak? Is
# the layer now equivariant?
#
# <details><summary>Hint 1</summary>
#
# The sum of the weights that met an input is the convolution of ones.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Write the layer as a matrix, and ask whether it commutes with the shift round the ring.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The rows of its matrix have the sum 1, like attention's, so a constant leaks nothing at any depth.
# But the first and the last row have two entries and the others three. For a varying input the ends
# are therefore special: for instance they vary more, like the first tokens under a causal mask.
#
# ```python
# Z = convolve(np.eye(9), KERNEL).T
# N = Z / Z.sum(axis=1, keepdims=True)
# T = np.roll(np.eye(9), 1, axis=0)
# assert np.allclose(np.linalg.matrix_power(N, 5) @ np.ones(9), 1, rtol=0, atol=1e-12)
# assert not np.allclose(N @ T, T @ N, rtol=0, atol=0.01)
# variance = (N**2).sum(axis=1)
# assert variance[0] > variance[4] and variance[-1] > variance[4]
# ```
#
# </details>
#
# ## In practice
#
# **Is the kernel reversed?** Mathematics reverses the kernel before it slides it. Libraries for deep
# learning don't (their convolution is a *cross-correlation*), but NumPy's own function does. A
# symmetric kernel hides the difference, so test with a slanted one.

# %%
x = np.random.default_rng(8).standard_normal(9)
same = np.convolve(x, KERNEL[::-1], mode="same")
assert np.allclose(same, convolve(x, KERNEL), rtol=0, atol=1e-12)
assert np.abs(np.convolve(x, KERNEL, "same") - same).max() > 0.1

# %% [markdown]
# **A test that hides the leak.** Move a small object about on a background of zeros, and zero padding
# looks equivariant, because the zeros that it invents beyond the border equal the background. Then a
# bias changes the background to another value, and the next layer sees the border.

# %%
thing = np.zeros(14)
thing[4:7] = (1, -2, 3)
for bias in (0.0, 0.5):
    both = (np.maximum(convolve(z, KERNEL) + bias, 0) for z in (thing, np.roll(thing, 4)))
    y, y_moved = (convolve(z, KERNEL) for z in both)
    assert np.allclose(y_moved, np.roll(y, 4), rtol=0, atol=1e-12) == (bias == 0)

# %% [markdown]
# **A stride breaks the symmetry.** A *stride* of 2 keeps every second position. With an even length
# the last one is dropped, and with it the padding on the right. So even a symmetric kernel
# distinguishes left from right. Alsallakh et al. (2021) describe such uneven padding, and detectors
# that miss small objects where padding has weakened the features.

# %%
y = convolve(np.ones(8), (0.25, 0.5, 0.25))
assert np.array_equal(y, y[::-1]) and not np.array_equal(y[::2], y[::2][::-1])

# %% [markdown]
# **Zero padding as a positional encoding.** Conditional positional encodings (Chu et al. 2021) pass
# the tokens of a vision Transformer through a small convolution with zero padding between two layers.
# The encoding adapts to any size of the image. What it shows in the middle of a large image is
# bounded by its reach: for the middle of $L$ positions it needs $2cm\ge L$.
#
# **Other paddings are not innocent.** A padding that repeats the outermost value keeps a constant
# constant, yet is not equivariant (exercise 1). Trained networks learn to read borders under all
# kinds of padding (Lin et al. 2022). Even a ring has a seam, where the two ends of an image meet.

# %% [markdown]
# ## Further reading
#
# - Islam, Jia and Bruce 2020, "How Much Position Information Do Convolutional Neural Networks
#   Encode?" (arXiv:2001.08248), and Islam et al. 2021, "Position, Padding and Predictions"
#   (arXiv:2101.12322).
# - Kayhan and van Gemert 2020, "On Translation Invariance in CNNs" (arXiv:2003.07064).
# - Luo et al. 2016, "Understanding the Effective Receptive Field in Deep Convolutional Neural
#   Networks".
# - Alsallakh et al. 2021, "Mind the Pad" (arXiv:2010.02178).
# - Lin et al. 2022, "Unveiling The Mask of Position-Information Pattern Through the Mist of Image
#   Features" (arXiv:2206.01202).
# - Chu et al. 2021, "Conditional Positional Encodings for Vision Transformers" (arXiv:2102.10882).
# - Chi et al. 2023, "Latent Positional Information is in the Self-Attention Variance of Transformer
#   Language Models Without Positional Embeddings" (arXiv:2305.13571).
# - Gehring et al. 2017, "Convolutional Sequence to Sequence Learning" (arXiv:1705.03122):
#   convolutions for text, with added position vectors.
