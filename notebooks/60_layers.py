# %% [markdown]
# # 60. The Transformer block: feed-forward, residual, layer norm
#
# *What surrounds attention, and why can the layers be stacked?*
#
# 55 minutes. Needs [10 Attention by hand: scores, softmax, heads, masks](10_attention.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Attention only mixes tokens. A Transformer layer needs more: a small network that changes each
# token by itself, a path past each part so that the training signal survives many layers, and a step that keeps
# the numbers at one size. You build these parts one by one and measure what goes wrong without each. Then you assemble
# a block and a whole encoder. At the end you have the parts that courses usually set as homework on one page, and you
# can read the first Transformer line by line.

# %% fold="input" alt="Two data paths from left to right, with attention and feed-forward networks on branches. In post-norm, both norms are on the thick main line. In pre-norm, they are on the branches, with one more norm on the main line after the last block."
import math
from functools import partial

import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import Model, Sizes, attention, cross_entropy, decode, encode, feed_forward, gelu
from pe_numpy import init_params, layer_norm, linear, multi_head_attention, relu, rms_norm, silu
from pe_numpy import sinusoidal, value_and_grad
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import layers as plots
from pe_numpy.transformer.encodings import Sinusoidal

plots.block_paths()
plt.show()

# %% [markdown]
# ## Feed-forward network (MLP)
#
# The figure shows two ways to build a layer. A token's numbers $x$ travel along the thick line. Attention and a
# *feed-forward* network compute something to add ($+$), and a *norm* brings the numbers to one size. This chapter
# explains each box, and why the place of the norm matters.
#
# Attention gives each token a weighted mean of values. For given weights that is linear in the values, so it cannot
# turn a number $x$ into something as simple as its absolute value $|x|$. If a later layer needs such a number,
# another part must compute it. So each token also goes through a small network, the same for all tokens: the
# **feed-forward network**, or **MLP** (multilayer perceptron). Its simplest part is a **linear** layer. It multiplies
# the token, a row of $D$ numbers, by a matrix of weights, and adds a row of numbers, the **bias**.
#
# $$y_f=\sum_{d} x_d\,W_{df}+b_f$$


# %%
def linear_by_loops(x, W, b):
    """The sum above, for one token."""
    D, F = len(W), len(W[0])
    return [sum(x[d] * W[d][f] for d in range(D)) + b[f] for f in range(F)]


W, b = [[1.0, 0.0, 3.0], [0.0, 1.0, 4.0]], [0.5, 0.0, 0.0]
assert linear_by_loops([1.0, 2.0], W, b) == [1.5, 2.0, 11.0]
tokens = np.random.default_rng(0).standard_normal((2, 3, 2))  # (B, L, D)
y = linear(tokens, W, b)  # (B, L, F)
for place in np.ndindex(2, 3):
    assert np.allclose(y[place], linear_by_loops(tokens[place], W, b), rtol=0, atol=1e-12)
show_source(linear)

# %% [markdown]
# Two linear layers in a row are one:
#
# $$(x W_1 + b_1)\,W_2 + b_2 = x\,(W_1 W_2) + (b_1 W_2 + b_2)$$

# %%
rng = np.random.default_rng(1)
W_1, b_1, W_2, b_2 = (rng.standard_normal(s) for s in ((2, 5), (5,), (5, 2), (2,)))
two = linear(linear(tokens, W_1, b_1), W_2, b_2)
one = linear(tokens, W_1 @ W_2, b_1 @ W_2 + b_2)
assert np.allclose(two, one, rtol=0, atol=1e-12)

# %% [markdown]
# Therefore something that is not linear must come between them: the **activation**. The smallest is a kink, called
# **ReLU** (rectified linear unit): keep what is positive, set the rest to 0. This is the feed-forward network of the
# first Transformer:
#
# $$\mathrm{FFN}(x)=\max(0,\;x W_1+b_1)\,W_2+b_2$$
#
# The first layer is wider: $F$ hidden numbers for $D$ numbers of the token, usually $F=4D$. **Predict**:
# which weights make $|x|$, with $D=1$ and $F=2$? (The second cell also draws the weights of a whole layer, to count
# them. `Sizes(11, D, F, 1)` asks for a vocabulary of 11 words, the widths $D$ and $F$, and one layer. `Model(8)` has
# eight heads.)


# %% fold="output"
def feed_forward_by_loops(x, W_1, b_1, W_2, b_2):
    """The formula above, for one token."""
    hidden = [h if h > 0 else 0.0 for h in linear_by_loops(x, W_1, b_1)]
    return linear_by_loops(hidden, W_2, b_2)


up, down = [[1.0, -1.0]], [[1.0], [1.0]]  # max(0, x) + max(0, -x)
for number in (3.0, -2.0, 0.0):
    absolute = feed_forward_by_loops([number], up, [0.0, 0.0], down, [0.0])
    print(f"x = {number:4}   FFN(x) = {absolute[0]}")
    assert absolute == [abs(number)]

# %%
params = {"W_1": W_1, "b_1": b_1, "W_2": W_2, "b_2": b_2}
y, changed = feed_forward(params, tokens), tokens.copy()
changed[0, 1] += 1.0
for place in np.ndindex(2, 3):
    expected = feed_forward_by_loops(tokens[place], W_1, b_1, W_2, b_2)
    assert np.allclose(y[place], expected, rtol=0, atol=1e-12)
moved = (feed_forward(params, changed) != y).any(axis=-1)
assert moved.sum() == 1 and moved[0, 1]  # each token passes by itself
D, F = 512, 2048  # as in the first Transformer
drawn = init_params(Sizes(11, D, F, 1), Model(8), np.random.default_rng(0))["decoder"]
parts = (drawn["layers"]["0"][name] for name in ("attention", "feed_forward"))
look, network = (sum(W.size for n, W in part.items() if n[0] == "W") for part in parts)
print(f"weights: attention {look:,}, feed-forward {network:,}\n")
assert look == 4 * D * D and network == 2 * look
show_source(relu, feed_forward)

# %% [markdown]
# Each token passes by itself: change one input, and only one output changes. So attention mixes tokens, and the
# network works on each one separately. With $F=4D$ the network has twice as many weights as an attention layer with its
# four $D\times D$ matrices. Together they have $12D^2$, not counting biases and norms.
#
# ### GELU and SiLU: smooth activations
#
# ReLU has a slope of 0 wherever its input is negative, so no gradient passes there. Two smooth alternatives multiply
# $x$ by a weight between 0 and 1 instead of cutting it off:
#
# $$\mathrm{GELU}(x)=x\,\Phi(x),\qquad \Phi(x)=\tfrac12\left(1+\operatorname{erf}\frac{x}{\sqrt2}\right),
#   \qquad \mathrm{SiLU}(x)=\frac{x}{1+e^{-x}}$$
#
# $\Phi(x)$ is the probability that a standard normal number is below $x$. SiLU uses the logistic curve instead. GPT-2
# approximates GELU by a tanh. **Predict**: what is $f(x)-f(-x)$, for all three? (`value_and_grad(f)` makes a function
# that returns $f$ and its gradient; [chapter 61](61_autodiff.ipynb) builds it.)

# %% fold="output"
x = np.linspace(-4, 4, 161)
by_formula = {
    "ReLU": [t * (t > 0) for t in x],
    "GELU": [t * (1 + math.erf(t / math.sqrt(2))) / 2 for t in x],
    "SiLU": [t / (1 + math.exp(-t)) for t in x],
}
functions = {"ReLU": relu, "GELU": gelu, "SiLU": silu}
for name, f in functions.items():
    print(name, "at -1, 0, 1, 3:", f(np.array([-1.0, 0.0, 1.0, 3.0])).round(4).tolist())
    assert np.allclose(f(x), by_formula[name], rtol=0, atol=1e-12)
    assert np.allclose(f(x) - f(-x), x, rtol=0, atol=1e-12)
assert np.allclose(gelu(x, "tanh"), gelu(x), rtol=0, atol=5e-4)  # GPT-2's form
show_source(gelu, silu)

# %% alt="ReLU, GELU and SiLU on the left, their slopes on the right. The smooth functions dip below zero, and their slopes exceed 1 and fall below 0. The slope of ReLU jumps from 0 to 1."
slopes = {n: value_and_grad(lambda x, f=f: np.sum(f(x)))(x)[1] for n, f in functions.items()}
for name, f in functions.items():  # a derivative, by differences, away from the kink
    away = np.abs(x) > 0.01
    differences = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
    assert np.allclose(slopes[name][away], differences[away], rtol=0, atol=1e-8)
plots.activation_curves(x, {n: (f(x), slopes[n]) for n, f in functions.items()})
plt.show()

# %% [markdown]
# The difference is $x$ itself, since the weights of $x$ and $-x$ add up to 1.
#
# ### Gated feed-forward networks: SwiGLU
#
# In many recent models, such as LLaMA, the activation does not replace the hidden numbers but *multiplies* them. A second
# linear layer computes a **gate** for each hidden number.
#
# $$\bigl(\mathrm{SiLU}(x W_g)\odot(x W_1)\bigr)\,W_2$$
#
# $\odot$ multiplies component by component. With SiLU this is called SwiGLU. There are three matrices now, so
# $F$ is often made smaller by a third, so that the number of weights does not change.

# %%
W_gate = rng.standard_normal((2, 5))
gated = {"W_1": W_1, "W_2": W_2, "W_gate": W_gate}
y = feed_forward(gated, tokens, "silu")
expected = (silu(tokens @ W_gate) * (tokens @ W_1)) @ W_2
assert np.allclose(y, expected, rtol=0, atol=1e-12)
pair = Sizes(11, 6, 24, 1), Sizes(11, 6, 16, 1, gated=True)  # F = 24, then 16
drawn = (init_params(s, Model(1), np.random.default_rng(0))["decoder"]["layers"]["0"] for s in pair)
parts = [layer["feed_forward"].items() for layer in drawn]
ungated, with_gate = (sum(W.size for n, W in part if n[0] == "W") for part in parts)
assert ungated == with_gate

# %% [markdown]
# ## Weight initialisation: Xavier and He (second reading)
#
# Training starts from random weights. How large should they be? Take a linear layer with $D$ inputs of mean square 1
# and $F$ outputs, whose weights are independent with mean 0 and variance $s^2$. Each output is a sum of $D$ terms. On
# the way back, each gradient of an input is a sum of $F$ terms. (E is the mean over the weights. In formulas with
# gradients $L$ is the loss. In the shapes of the code it remains the number of tokens.)
#
# $$\mathrm{E}\,y_f^2=D\,s^2,\qquad \mathrm{E}\Bigl(\frac{\partial L}{\partial x_d}\Bigr)^2
#   =F\,s^2\;\mathrm{E}\Bigl(\frac{\partial L}{\partial y_f}\Bigr)^2$$
#
# The choice $s^2=1/D$ keeps the size on the way forward, and $s^2=1/F$ on the way back. Glorot and Bengio (2010) take
# the compromise $s^2=2/(D+F)$, named **Xavier's rule** after Glorot's first name. It is made for layers that are
# linear near 0. A ReLU cuts off half: if the numbers are spread symmetrically around 0, it keeps half of the mean
# square. **He's rule** ([2015](https://arxiv.org/abs/1502.01852)) makes up for it, with the variance 2 over the
# number of inputs for a layer whose input comes from a ReLU.
#
# A feed-forward network with weights of variance $s_1^2$ and $s_2^2$, without biases, does all this one after the
# other. Forward, the mean square is multiplied by $D s_1^2$, a half and $F s_2^2$. Backward, the factors are
# $D s_2^2$, a half (the slope of ReLU) and $F s_1^2$. The product is the same:
#
# $$\sigma^2=\tfrac12\,D F\,s_1^2\,s_2^2$$
#
# With Xavier's rule and $F=4D$ this product is 0.32: each network shrinks its input, and the gradient, to
# $\sigma=0.566$ of its size. With variances $1/D$ and $2/F$, as He's rule asks for (the first input comes from no
# ReLU), $\sigma=1$.

# %%
D, F, S = 64, 256, math.sqrt(2 / (64 + 256))  # Xavier's rule
xavier, he = {"s_1": S, "s_2": S}, {"s_1": math.sqrt(1 / D), "s_2": math.sqrt(2 / F)}
rng, sigma = np.random.default_rng(2), math.sqrt(D * F * S**4 / 2)
print(f"Xavier: sigma^2 = {sigma**2:.2f}, sigma = {sigma:.3f}")
for rule, law in ((xavier, sigma**2), (he, 1)):
    (s_1, s_2), sizes = rule.values(), []
    assert math.isclose(law, D * F * s_1**2 * s_2**2 / 2)
    for _ in range(60):
        W_1, W_2 = s_1 * rng.standard_normal((D, F)), s_2 * rng.standard_normal((F, D))
        x, g = rng.choice([-1.0, 1.0], (2, D))  # of mean square 1
        back = g @ W_2.T * (x @ W_1 > 0)  # the chain rule, from the output to the hidden numbers
        steps = (x @ W_1, relu(x @ W_1) @ W_2, back, back @ W_1.T)
        sizes.append([np.mean(v**2) for v in steps])
    hidden, y, back, end = np.mean(sizes, axis=0) / [D * s_1**2, law, 1, law]
    assert np.allclose([hidden, y, end, end * law / (F * s_1**2 * back)], 1, rtol=0, atol=0.06)

# %% [markdown]
# ## Vanishing gradients in a deep stack
#
# Xavier's rule and He's rule are the two usual ways to draw random weights. With Xavier's rule a feed-forward network
# multiplies the mean square of its input by a factor $\sigma^2=0.32$, and with He's rule it keeps the mean square
# ([derivation](#weight-initialisation-xavier-and-he-second-reading)). Now stack 24 such networks, $D=64$, $F=256$.
# Each is a **sublayer**, and here a whole layer. A function called `wiring` says how a sublayer is built in. The
# first is `plain`: its output is the next input.


# %%
def plain(x, sublayer):
    return sublayer(x)


def through(x, W_1, W_2, wiring):
    """Send x through all sublayers."""
    for W, V in zip(W_1, W_2.values(), strict=True):
        x = wiring(x, partial(feed_forward, {"W_1": W, "W_2": V}))
    return x


def loss(W_2, W_1, x, t, wiring, end=lambda x: x):
    return np.sum((end(through(x, W_1, W_2, wiring)) - t) ** 2) / (2 * D)


# %% [markdown]
# We compare the final output with a random target $t$ by half the mean squared error. This is the loss $L$. (In
# formulas with gradients $L$ is the loss, in the shapes of arrays the number of tokens.) We compute its gradient with
# respect to each $W_2$. If $h$ are the hidden numbers and $g$ the gradient with respect to the output $y=hW_2$, then
#
# $$L=\frac{1}{2D}\sum_{d}(y_d-t_d)^2,\qquad \frac{\partial L}{\partial W_2}=h^\top g,\qquad
#   \left\lVert\frac{\partial L}{\partial W_2}\right\rVert=\lVert h\rVert\,\lVert g\rVert$$
#
# where the norm of a matrix is the square root of the sum of its squares. The gradient's size is the size of what
# came in, times the size of what came back.


# %%
def draw(n_layers, seed, s_1=S, s_2=S):
    """Weights of all sublayers (the second ones by name), an input and a target."""
    rng = np.random.default_rng(seed)
    W_1 = [s_1 * rng.standard_normal((F, D)).T for _ in range(n_layers)]
    W_2 = {str(n): s_2 * rng.standard_normal((D, F)).T for n in range(n_layers)}
    return W_2, W_1, rng.standard_normal(D), rng.standard_normal(D)


W_2, W_1, x, t = draw(1, seed=0)
h = relu(x @ W_1[0])
g = (h @ W_2["0"] - t) / D
_, gradients = value_and_grad(loss)(W_2, W_1, x, t, plain)
assert np.allclose(gradients["0"], h[:, None] * g[None, :], rtol=0, atol=1e-12)
product = np.linalg.norm(h) * np.linalg.norm(g)
assert np.isclose(np.linalg.norm(gradients["0"]), product, rtol=1e-12, atol=0)

# %% [markdown]
# What comes into layer $n$ has passed $n-1$ others, and what comes back to it has passed $24-n$. The product is the
# same for all layers: about $\sigma^{23}$ of what a single layer would have. **Predict** its order of magnitude for
# both rules.


# %% fold="output"
def gradient_norms(wiring, n_layers, seeds, **choices):
    """Norm of the gradient of each W_2, first layer first: the mean over some seeds."""
    end, norms = choices.pop("end", lambda x: x), []
    for seed in range(seeds):
        _, gradients = value_and_grad(loss)(*draw(n_layers, seed, **choices), wiring, end)
        norms.append([np.linalg.norm(g) for g in gradients.values()])
    return np.mean(norms, axis=0)


stacks = {"plain": gradient_norms(plain, 24, seeds=6)}
by_he = gradient_norms(plain, 24, seeds=6, **he)
print(f"sigma^23 = {sigma**23:.0e}")
for name, v in (("Xavier", stacks["plain"]), ("He", by_he)):
    print(f"{name:6} gradient, first and last layer: {v[0]:.1g}, {v[-1]:.1g}")
assert (stacks["plain"] < 1e-5).all() and (by_he > 0.5).all() and (by_he < 5).all()

# %% [markdown]
# Xavier's rule leaves a millionth of the gradient, which is called a **vanishing gradient**. With $\sigma>1$ it would
# explode instead. With
# He's rule the plain stack keeps the size of its gradient. Then why not stack plain layers? Send two random tokens
# through the same stack, and measure the cosine of the angle between them (about 0 at first).


# %%
def cosine(wiring, **rule):
    """Mean cosine of two random tokens after 24 layers."""
    cosines = []
    for seed in range(20):
        W_2, W_1, *pair = draw(24, seed, **rule)
        a, b = (through(x, W_1, W_2, wiring) for x in pair)
        cosines.append(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    return np.mean(cosines)


for rule in (xavier, he):
    print(f"cosine after 24 plain layers: {cosine(plain, **rule):.3f}")
    assert cosine(plain, **rule) > 0.9

# %% [markdown]
# The two outputs point in nearly the same direction, so they barely show which token came in. No factor on the
# weights can fix this, because without biases a positive factor changes all lengths and no angle. And He and others
# ([2016](https://arxiv.org/abs/1512.03385), figure 1) trained plain convolutional networks, with his rule and a norm.
# The network with 56 layers had a larger error *on the training data* than the one with 20.
#
# ## Residual connections
#
# The remedy is one plus sign. Let the sublayer compute what to *add* to its input, $y = x + F(x)$. ($F$ with an
# argument is the sublayer; $F$ by itself remains the width.) This is a **residual connection**. A sublayer that
# returns 0 now leaves $x$ as it is. The path of $x$ past all sublayers is called the **residual stream**. For single
# numbers the chain rule gives
#
# $$\frac{\partial L}{\partial x}=\frac{\partial L}{\partial y}\cdot\frac{\partial y}{\partial x}
#   =\frac{\partial L}{\partial y}\left(\frac{\partial F}{\partial x}+1\right)$$
#
# The gradient passes even where $\partial F/\partial x$ is small.


# %%
def residual(x, sublayer):
    return x + sublayer(x)


x, step = 0.3, 1e-6
for small in (0.5, 0.01, 0.0):
    ends = [residual(x + d, lambda z, small=small: small * math.sin(z)) for d in (step, -step)]
    by_formula = small * math.cos(x) + 1
    assert np.isclose((ends[0] - ends[1]) / (2 * step), by_formula, rtol=0, atol=1e-8)

# %% [markdown]
# For vectors the 1 becomes the identity matrix $I$
# ([Jacobians](#jacobians-of-the-residual-connection-and-of-layer-norm)). But the gradient can now be *large*. If
# $F(x)$ has mean 0 and is independent of $x$, the mean square of $x+F(x)$ is $1+\sigma^2$ times the mean square of
# $x$, forward and backward. **Predict** what 24 residual layers do to the gradient, if one multiplies by $1.32$.

# %% fold="output"
stacks["residual"] = gradient_norms(residual, 24, seeds=6)
print(f"1 + sigma^2 = {1 + sigma**2:.2f},  its 24th power: {(1 + sigma**2) ** 24:.0f}")
print("gradient, first and last layer:", *(f"{v:.0e}" for v in stacks["residual"][[0, -1]]))
together = cosine(residual)
print(f"cosine after 24 residual layers: {together:.3f}")
assert (stacks["residual"] > 100).all() and together < 0.8

# %% [markdown]
# The two tokens remain further apart, but the gradient went from a millionth to hundreds and more. By this law
# the mean square of the numbers in the stream grows 783-fold, so the error grows, and the gradient with it. We still
# need something that keeps a token at one size.
#
# ## Layer norm
#
# Take a token with the components 1, 2, 3, 4. Their mean is 2.5. The mean of their squared distances from 2.5, the
# variance, is 1.25. Subtract the mean and divide by the square root of the variance: the token now has variance 1
# and mean 0. This is **layer norm** (layer normalisation):
#
# $$\mathrm{LN}(x)_d=\gamma_d\,\frac{x_d-\mu}{\sqrt{v+\varepsilon}}+b_d,\qquad
#   \mu=\frac1D\sum_d x_d,\qquad v=\frac1D\sum_d (x_d-\mu)^2$$
#
# The small $\varepsilon$ avoids a division by zero for a token of equal components. Training sets the **gain**
# $\gamma$ and the bias $b$, one number for each component; they start at 1 and 0.


# %%
def layer_norm_by_loops(x, gain, bias, eps=1e-5):
    """The formula above, for one token."""
    D, mean = len(x), sum(x) / len(x)
    variance = sum((x[d] - mean) ** 2 for d in range(D)) / D
    return [gain[d] * (x[d] - mean) / math.sqrt(variance + eps) + bias[d] for d in range(D)]


x, ones, zeros = [1.0, 2.0, 3.0, 4.0], np.ones(4), np.zeros(4)
print([round(float(v), 4) for v in layer_norm_by_loops(x, ones, zeros)])
assert np.mean(x) == 2.5 and np.var(x) == 1.25
tokens, gain, bias = np.random.default_rng(4).standard_normal((2, 3, 4)), x, [7.0, 8.0, 9.0, 6.0]
for token in tokens.reshape(6, 4):
    expected = layer_norm_by_loops(token, gain, bias)
    assert np.allclose(layer_norm(token, gain, bias), expected, rtol=0, atol=1e-12)
assert layer_norm([7.0] * 4, gain, bias).tolist() == bias  # equal components

# %% [markdown]
# What is lost? Shift all components of a token, or stretch it by a positive factor, and layer norm returns the
# same result:
#
# $$\mathrm{LN}(a\,x+c\,\mathbf 1)=\mathrm{LN}(x)\qquad(a>0,\ \varepsilon\to0)$$
#
# Of $D$ numbers $D-2$ remain free: the components sum to 0, and their squares sum to $D$.

# %%
stretched = layer_norm(5 * tokens - 30, ones, zeros, eps=1e-12)
normed = layer_norm(tokens, ones, zeros, eps=1e-12)
assert np.allclose(stretched, normed, rtol=0, atol=1e-9)
assert np.allclose(normed.sum(axis=-1), 0, rtol=0, atol=1e-9)
assert np.allclose(np.square(normed).sum(axis=-1), 4, rtol=0, atol=1e-9)

# %% [markdown]
# On the way back, **layer norm divides the gradient by the size of its input.** A token twice as large gets half the
# gradient ([derivation](#jacobians-of-the-residual-connection-and-of-layer-norm)).
#
# ### Layer norm or batch norm: which numbers share a mean
#
# **Batch norm** is older and was made for vision models. It takes the mean and variance of each *component* over all
# $M$ tokens of the batch:
#
# $$\mathrm{BN}(x)_{bid}=\frac{x_{bid}-\mu_d}{\sqrt{v_d+\varepsilon}},\qquad
#   \mu_d=\frac1M\sum_{b,i} x_{bid},\qquad v_d=\frac1M\sum_{b,i}(x_{bid}-\mu_d)^2$$
#
# As a third choice, the cell normalises each whole sequence. There are 2 sequences of 3 tokens of 4 components.


# %% alt="Three tables of six tokens by four components, with their means. The means are 0 in each row for layer norm, in each column for batch norm, and in neither for whole-sequence norm."
def over(axes, x):
    """Mean 0 and variance 1 over some axes."""
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


X = np.random.default_rng(0).standard_normal((2, 3, 4)) + np.arange(4)  # (B, L, D)
norms = {"layer norm: by token": 2, "batch norm: by component": (0, 1), "by sequence": (1, 2)}
LN, BN, _ = tables = [over(axes, X) for axes in norms.values()]
mu = X[:, :, 3].sum() / (2 * 3)  # component 3, by the sums above
v = np.square(X[:, :, 3] - mu).sum() / (2 * 3)
assert np.allclose(BN[1, 2, 3], (X[1, 2, 3] - mu) / math.sqrt(v + 1e-5), rtol=0, atol=1e-12)
assert np.allclose(LN, layer_norm(X, ones, zeros), rtol=0, atol=1e-12)
names = [f"{b}, token {i}" for b in "AB" for i in range(3)]
plots.norm_tables({n: t.reshape(6, 4) for n, t in zip(norms, tables, strict=True)}, names)
plt.show()

# %% [markdown]
# Read the means at the edges: layer norm makes the right-hand column 0, batch norm the bottom row. *Which numbers
# share a mean* decides *which tokens can influence each other*. Triple token 1 of sequence A, add padding, leave out
# sequence B, and look how far token 0 of A moves:

# %%
tripled, padded = X.copy(), np.concatenate([X, np.zeros((2, 5, 4))], axis=1)
tripled[0, 1] *= 3
for name, axes in norms.items():
    before, others = over(axes, X)[0, 0], (tripled, padded, X[:1])
    changes = [np.abs(over(axes, x)[0, 0] - before).max() for x in others]
    print(f"{name:25} neighbour {changes[0]:.2f}, padding {changes[1]:.2f}, batch {changes[2]:.2f}")
    assert (max(changes) < 1e-12) == (name == "layer norm: by token")

# %% [markdown]
# Token 1 is the *future* of token 0. In a decoder, a norm that mixes tokens shows the future to the past, no matter
# what the causal mask hides. At inference, batch norm replaces the means of the batch by averages kept from training,
# and so computes something else.
#
# ### RMS norm: without the mean
#
# **RMS norm** leaves out the mean, and also the bias. It divides by the *square root of the mean square*:
#
# $$\mathrm{RMS}(x)_d=\gamma_d\,\frac{x_d}{\sqrt{\frac1D\sum_{c}x_c^2+\varepsilon}}$$

# %%
for token in tokens.reshape(6, 4):
    root = math.sqrt(sum(value**2 for value in token) / 4 + 1e-6)
    expected = [gain[d] * token[d] / root for d in range(4)]
    assert np.allclose(rms_norm(token, gain), expected, rtol=0, atol=1e-12)
centred = tokens - tokens.mean(axis=-1, keepdims=True)
by_rms, by_layer = rms_norm(centred, ones, 1e-5), layer_norm(tokens, ones, zeros)
assert np.allclose(by_rms, by_layer, rtol=0, atol=1e-12)
show_source(layer_norm, rms_norm)

# %% [markdown]
# The last assertion shows that layer norm is RMS norm of the centred token. RMS norm ignores the length of a token's
# vector and keeps its direction. Its authors suppose that subtracting the mean plays no role, and their measurements
# agree, but it is not proved. T5 and LLaMA use RMS norm.
#
# ## Pre-norm and post-norm
#
# There are two places for the norm, as in the figure at the top. The first Transformer had the norm *after* the
# addition, which is called **post-norm**. Most later models have it on the branch, before the sublayer, which is called
# **pre-norm**.
#
# $$\text{post:}\quad y=\mathrm{norm}\bigl(x+F(x)\bigr)\qquad\qquad
#   \text{pre:}\quad y=x+F\bigl(\mathrm{norm}(x)\bigr)$$
#
# Pre-norm has no norm on the stream itself, so one more comes at the very end.


# %%
def norm(x):
    return layer_norm(x, np.ones(D), np.zeros(D))


def post(x, sublayer):
    return norm(x + sublayer(x))


def pre(x, sublayer):
    return x + sublayer(norm(x))


x = np.random.default_rng(7).standard_normal(D)
assert np.array_equal(post(x, lambda z: z**2), norm(x + x**2))
assert np.array_equal(pre(x, lambda z: z**2), x + norm(x) ** 2)

# %% [markdown]
# **Predict** how the two change the gradients of the stack of 24 networks, with Xavier's rule as before.

# %% fold="output" alt="Gradient norms of 24 layers in four sublayer arrangements, on a log axis. Without residual connections they are at a millionth, with only residual connections at hundreds and more. Post-norm and pre-norm are near one, and pre-norm falls slowly."
stacks["post-norm"] = gradient_norms(post, 24, seeds=6)
stacks["pre-norm"] = gradient_norms(pre, 24, seeds=6, end=norm)
assert all(0.1 < v < 1 for name in ("post-norm", "pre-norm") for v in stacks[name])
plots.wiring_gradients(stacks)
plt.show()

# %% [markdown]
# The curves of the two norms are near 1, and the other two are far above and far below. Post-norm gives all layers
# the same gradient. In pre-norm a layer's gradient falls with its number $n$ and does not depend on how many layers
# follow. Both laws can be derived: [Gradients by hand](#gradients-by-hand).
#
# Xiong and others (2020, theorem 1) *prove* upper bounds for the last layer of a simplified Transformer at
# initialisation, which are true with high probability: $O(D\sqrt{\ln D})$ for post-norm, regardless of the depth $N$,
# and $O(D\sqrt{\ln D/N})$ for pre-norm. Post-norm needs a warm-up, a learning rate that starts small
# ([chapter 62](62_model.ipynb)). Their hypothesis is that larger gradients near the output are one reason for that,
# and their experiments support it.
#
# ## The encoder block
#
# [Chapter 10](10_attention.ipynb) built attention and heads. In a block three linear layers come before them, $W_q$,
# $W_k$, $W_v$, whose columns are divided among the heads, and $W_o$ comes after them. The package's function has a
# second argument, `source`, the rows that give keys and values: $x$ again in self-attention, another sequence in
# **cross-attention** ([chapter 62](62_model.ipynb)). `share` gives the same keys and values to several query heads,
# if there are fewer KV heads ([chapter 44](44_fewer_keys.ipynb)). With positions the function becomes
# `self_attention`, which [chapter 63](63_decoding.ipynb#the-kv-cache-a-list-of-keys-and-a-list-of-values) shows.

# %%
rng = np.random.default_rng(10)
params = {f"W_{n}": rng.standard_normal((8, 8)) / math.sqrt(8) for n in "qkvo"}
x, other, heads = rng.standard_normal((2, 5, 8)), rng.standard_normal((2, 7, 8)), []
for own in (slice(0, 4), slice(4, 8)):  # the columns of each head
    q, k, v = (y @ params[f"W_{n}"][:, own] for y, n in ((x, "q"), (other, "k"), (other, "v")))
    heads.append(attention(q, k, v)[0])
output, weights = multi_head_attention(params, x, other, 2)
expected = np.concatenate(heads, axis=-1) @ params["W_o"]
assert np.allclose(output, expected, rtol=0, atol=1e-12)
assert weights.shape == (2, 2, 5, 7)  # (B, H, L, S)
show_source(multi_head_attention)

# %% [markdown]
# A **block** of an encoder has two sublayers, attention and feed-forward, and around each a
# residual connection and a norm. (In training, dropout is applied to the output of each sublayer, before the addition:
# [chapter 62](62_model.ipynb#training-warm-up-dropout-the-loop).)


# %%
def block(layer, x, n_heads, place):
    """One encoder block: two sublayers, each with its residual connection and norm."""
    sublayers = {
        "attention": lambda z: multi_head_attention(layer["attention"], z, z, n_heads)[0],
        "feed_forward": lambda z: feed_forward(layer["feed_forward"], z),
    }
    for name, sublayer in sublayers.items():
        own = layer[f"{name}_norm"]
        if place == "post":
            x = layer_norm(x + sublayer(x), own["gain"], own["bias"])
        else:
            x = x + sublayer(layer_norm(x, own["gain"], own["bias"]))
    return x


# %% [markdown]
# A whole encoder looks up the vectors of the words, times $\sqrt D$
# ([why](62_model.ipynb#the-input-token-embedding-plus-positional-encoding)). It then adds positions, applies the
# blocks and, with pre-norm, applies a final norm. The package's function is `encode` ([chapter 62](62_model.ipynb)).
# `Sizes(11, 8, 32, 1, n_encoder_layers=3)` gives the sizes of all parameters: 11 words, $D=8$, $F=32$, one decoder
# layer (not used here) and three encoder layers. `Model(2, Sinusoidal(), norm=place)` says what the parameters cannot
# show: two heads, the encoding, and the place of the norm. `init_params` draws the parameters. The cell compares
# `encode` with our block:

# %%
tokens = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])  # (B, L)
for place in ("post", "pre"):
    model, sizes = Model(2, Sinusoidal(), norm=place), Sizes(11, 8, 32, 1, n_encoder_layers=3)
    params = init_params(sizes, model, np.random.default_rng(11), np.float64)
    stack = params["encoder"]
    x = math.sqrt(8) * params["embedding"][tokens] + sinusoidal(np.arange(5), 8)
    for layer in stack["layers"].values():
        x = block(layer, x, 2, place)
    if place == "pre":
        x = layer_norm(x, stack["norm"]["gain"], stack["norm"]["bias"])
    assert np.allclose(x, encode(params, model, tokens), rtol=0, atol=1e-12)

# %% [markdown]
# ## The homework on one page: softmax, RoPE and causal multi-head attention
#
# A common homework asks for three functions. In plain NumPy they are one page. Softmax subtracts the largest score of
# each row first, so that `exp` cannot overflow ([chapter 10](10_attention.ipynb)). RoPE, the rotary position
# embedding, rotates each pair of components by an angle that grows with the position
# ([chapter 40](40_rope_derived.ipynb)). It is applied to queries and keys, not to values. The mask hides every key
# after the query.


# %%
def my_softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def my_rope(x, positions, base=10000.0):  # (..., L, K), (L,) -> (..., L, K)
    K = x.shape[-1]
    theta = base ** (-np.arange(0, K, 2) / K)  # (K/2,): radians per position
    angles = positions[:, None] * theta  # (L, K/2)
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = x[..., 0::2], x[..., 1::2]  # components 2i and 2i + 1 are a pair
    return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)


# %%
def my_attention(params, x, n_heads):  # (B, L, D) -> (B, L, D)
    B, L, D = x.shape
    split = (B, L, n_heads, D // n_heads)
    q, k, v = ((x @ params[f"W_{n}"]).reshape(split).swapaxes(1, 2) for n in "qkv")  # (B, H, L, K)
    i = np.arange(L)
    q, k = my_rope(q, i), my_rope(k, i)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(D // n_heads)  # (B, H, L, L)
    scores = np.where(i[None, :] > i[:, None], -np.inf, scores)  # no key after the query
    mixed = my_softmax(scores) @ v  # (B, H, L, K)
    return mixed.swapaxes(1, 2).reshape(B, L, D) @ params["W_o"]


# %%
from pe_numpy import causal_mask, merge_heads, rope, softmax, split_heads

rng, places = np.random.default_rng(13), np.arange(6)
params = {f"W_{n}": rng.standard_normal((8, 8)) / math.sqrt(8) for n in "qkvo"}
x = rng.standard_normal((2, 6, 8))
assert np.allclose(my_softmax(x), softmax(x), rtol=0, atol=1e-12)
assert np.allclose(my_rope(x, places), rope(x, places), rtol=0, atol=1e-12)
q, k, v = (split_heads(x @ params[f"W_{n}"], 2) for n in "qkv")
mixed, _ = attention(rope(q, places), rope(k, places), v, causal_mask(places, places))
expected = merge_heads(mixed) @ params["W_o"]
assert np.allclose(my_attention(params, x, 2), expected, rtol=0, atol=1e-12)

# %% [markdown]
# The page gives the same numbers as the package. Two choices differ between courses. Some pair the first half of the
# components with the second half, where this page pairs neighbours ([chapter 40](40_rope_derived.ipynb)). And some give
# the linear layers biases, where this page has none.
#
# The whole is also an exercise of this chapter: under the name `causal_rope_attention`, `my_attention` passes the
# checker (`python -m pe_numpy check FILE`). The exercises `softmax`, `rope` and `multi_head_attention` ask for more than
# this page. This is what to add:
#
# - `softmax(x, axis=-1)`: use `axis` instead of -1. In a row of only $-\infty$ subtract 0 instead of the largest score,
#   and divide by 1 instead of the sum 0. All weights of the row are then 0.
# - `rope(x, positions, frequencies=None, layout="interleaved")`: if $n$ `frequencies` are given, they replace `theta`,
#   and only the first $2n$ components rotate. Write the rotated pairs into `y = x.copy()`, which keeps the rest, and
#   float32. In the layout `"half"` $a$ is `x[..., :n]` and $b$ is `x[..., n:2 * n]`. With `positions[..., None]` each
#   sequence may have its own positions.
# - `multi_head_attention(params, x, source, n_heads, mask=None)` has no RoPE. Keys and values come from `source`,
#   `mask` is True where a query may attend, biases such as `params["b_q"]` are added where there are some, and the
#   weights are also returned. A head has the dimension $K$, the columns of `W_q` over `n_heads`. `W_k` and `W_v` may
#   have only $G$ heads, so repeat each with `np.repeat(k, n_heads // G, axis=1)`.
#
# ## The Transformer of 2017 on one page
#
# `pe_numpy/transformer/original.py` is the encoder-decoder of the paper: only NumPy, no options, no checks. We read
# it whole, from top to bottom. `softmax` and `layer_norm` are the functions that you know. `sinusoidal` is the
# sinusoidal positional encoding of [chapter 20](20_sinusoidal.ipynb), in one step for all positions: sines and
# cosines take turns. `split` cuts a token's $D$ numbers into $H$ heads and puts the heads in front.

# %%
from pe_numpy.copy.copy import copy
from pe_numpy.training.optimiser import tree_map
from pe_numpy.transformer import original

show_source(original.softmax, original.layer_norm, original.sinusoidal, original.split)

# %% [markdown]
# `attention` makes queries from `x`, and keys and values from `source`, each with a bias, and splits them into heads.
# The scores are divided by the square root of the head dimension. `hidden` is True where a query may *not* attend:
# these scores become minus infinity, so their weights become 0. The last line joins the heads and multiplies by
# $W_o$. In `feed_forward`, `np.maximum` is the ReLU.

# %%
show_source(original.attention, original.feed_forward)

# %% [markdown]
# The last three functions put the parts together. `embed` looks up the words, times $\sqrt D$, and adds the
# sinusoidal encoding. In each layer of `encode` the source attends to itself, then each token passes through the
# network. Each result is added to its input, and the sum is normalised, which is post-norm. `decode` does the same with
# the target, but hides the future. Between attention and network it also attends to the memory, which is what `encode`
# returned. The last line compares each row with the vector of every word, which gives the logits. So the table of
# embeddings is also the output matrix: these weights are **tied**.

# %%
model = Model(2, Sinusoidal(), norm="post")
sizes = Sizes(11, 8, 32, n_layers=3, n_encoder_layers=3, tied=True)
rng = np.random.default_rng(12)
params = init_params(sizes, model, rng, np.float64)
params = tree_map(lambda x: x + 0.1 * rng.standard_normal(x.shape), params)  # no bias is 0
source, target = rng.integers(0, 11, (2, 4, 6))
memory = encode(params, model, source)
assert np.allclose(original.encode(params, source, 2), memory, rtol=0, atol=1e-12)
logits = original.decode(params, target, memory, 2)
assert np.allclose(logits, decode(params, model, target, memory), rtol=0, atol=1e-12)
exec(copy(["original"]), page := {})  # as a file: python -m pe_numpy copy original
assert np.array_equal(page["decode"](params, target, memory, 2), logits)
show_source(original.embed, original.encode, original.decode)

# %% [markdown]
# ## In short
#
# - **What is the feed-forward network, and how many weights has a layer?** Two linear layers with an activation
#   between them, applied to each token: $\max(0,xW_1+b_1)W_2+b_2$, usually $F=4D$. It computes what a mean
#   cannot. With attention a layer has $12D^2$ weights. GELU, SiLU and SwiGLU are other activations.
#   [Feed-forward network](#feed-forward-network-mlp), [GELU and SiLU](#gelu-and-silu-smooth-activations),
#   [SwiGLU](#gated-feed-forward-networks-swiglu).
# - **Pre-norm or post-norm?** Pre-norm, $x+F(\mathrm{norm}(x))$. It trains without warm-up (Xiong and others, 2020) and
#   has one more norm after the last layer. Post-norm is $\mathrm{norm}(x+F(x))$.
#   [Pre-norm and post-norm](#pre-norm-and-post-norm), [how gradients differ](#gradients-by-hand).
# - **Layer norm, batch norm or RMS norm?** Layer norm uses only the $D$ numbers of *one token*. Batch norm mixes
#   tokens, so padding, other sentences and the future leak in. RMS norm leaves out the mean and the bias.
#   [Layer norm or batch norm](#layer-norm-or-batch-norm-which-numbers-share-a-mean),
#   [RMS norm](#rms-norm-without-the-mean).
# - **What has a decoder block more, and where is dropout?** An encoder block has attention and feed-forward. A decoder
#   block also has cross-attention, and hides the future. Dropout acts on each sublayer's output.
#   [The encoder block](#the-encoder-block), [the decoder's code](#the-transformer-of-2017-on-one-page),
#   [with RoPE](#the-homework-on-one-page-softmax-rope-and-causal-multi-head-attention).
# - **Why a residual connection?** It keeps a path open around each layer: the derivative is $I+J$. Without it, 24
#   layers turn two random tokens into nearly one direction: by Xavier's rule their cosine is 0.965, and with the
#   connection 0.687. [Residual connections](#residual-connections).
# - **Xavier or He?** Xavier (Glorot) for layers that are linear near 0: variance $2/(D+F)$ for $D$ inputs and $F$
#   outputs. He after a ReLU: $2/D$, because ReLU removes half of the mean square.
#   [Weight initialisation](#weight-initialisation-xavier-and-he-second-reading),
#   [deep models](#gpt-2s-initialisation-smaller-output-projections).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 60` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 60_layers.py` checks yours.
#
# ### Exercise 1: Multiply with a gate
#
# A token has two components. Choose the weights of a gated feed-forward network with ReLU so that it computes
# their product $x_0 x_1$, exactly. Why can't a network without a gate do that?
#
# <details><summary>Hint 1</summary>
#
# $x_0=\max(0,x_0)-\max(0,-x_0)$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Two hidden numbers are enough. The gates are given $x_0$ and $-x_0$; both gated numbers are $x_1$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Along the line $x_0=x_1$ the product is $x^2$. A network of linear layers and ReLUs consists of straight pieces
# there; $x^2$ does not.
#
# ```python
# own = {"W_gate": [[1.0, -1.0], [0.0, 0.0]], "W_1": [[0.0, 0.0], [1.0, 1.0]], "W_2": [[1.0], [-1.0]]}
# pairs = np.random.default_rng(0).standard_normal((20, 2))
# assert np.allclose(feed_forward(own, pairs)[:, 0], pairs[:, 0] * pairs[:, 1], rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 2: Attention without anything else
#
# Stack 4 attention layers without anything else, then with a residual connection. Measure how much the tokens have
# in common: the length of their mean vector, as a share of the root mean square of their lengths. What
# happens, and why?
#
# <details><summary>Hint 1</summary>
#
# Each output is a weighted mean of the values. Take a mean of means of means.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Draw new random projections for each layer; `multi_head_attention` needs $W_q,W_k,W_v,W_o$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Without a residual connection, the tokens become almost identical within four layers. Dong and others (2021) prove
# this for attention only, and find that residual connections and feed-forward networks stop it. With random weights
# of this size the residual connection only slows it down. Branches scaled by $1/\sqrt N$ keep the tokens apart (Noci
# and others, 2022).
#
# ```python
# def share_in_common(residual_too, n_layers=4, branch=1.0):
#     rng = np.random.default_rng(0)
#     x = rng.standard_normal((1, 8, 32))
#     for _ in range(n_layers):
#         own = {f"W_{n}": rng.standard_normal((32, 32)) / math.sqrt(32) for n in "qkvo"}
#         x = branch * multi_head_attention(own, x, x, 4)[0] + residual_too * x
#     return np.linalg.norm(x.mean(axis=1)) / math.sqrt(np.square(x).sum(axis=2).mean())
#
# assert share_in_common(False) > 0.999 and share_in_common(True) < 0.8
# assert share_in_common(True, 16) > 0.99
# assert all(share_in_common(True, n, 1 / math.sqrt(n)) < 0.5 for n in (4, 16, 64))
# ```
#
# </details>
#
# ### Exercise 3: Fold the gain into the next layer
#
# At inference the gain and the bias of a layer norm in front of a linear layer can be folded into that layer. Find
# the new weights. Why does this work for pre-norm and not for post-norm?
#
# <details><summary>Hint 1</summary>
#
# $(\gamma\odot z+b)\,W = z\,(\,\cdot\,)+(\,\cdot\,)$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Multiplying $z$ by $\gamma$ component by component is multiplying it by a diagonal matrix.
#
# </details>
#
# <details><summary>Solution</summary>
#
# $W'=\operatorname{diag}(\gamma)\,W$ and $b'=bW$. In pre-norm the norm's output goes into the sublayer and nowhere
# else. In post-norm it is the stream itself, which is also added further on.
#
# ```python
# rng = np.random.default_rng(2)
# x, gain, b, W = (rng.standard_normal(s) for s in ((3, 6), (6,), (6,), (6, 4)))
# folded = linear(layer_norm(x, np.ones(6), np.zeros(6)), gain[:, None] * W, b @ W)
# assert np.allclose(folded, linear(layer_norm(x, gain, b), W), rtol=0, atol=1e-12)
# ```
#
# </details>

# %% [markdown]
# ## Deeper
#
# ### Jacobians of the residual connection and of layer norm
#
# Tokens are vectors, so the derivative of a sublayer is a matrix, the **Jacobian** $J$ with
# $J_{cd}=\partial F_c/\partial x_d$, and the 1 of the residual connection becomes the identity matrix $I$. For two
# sublayers the chain rule multiplies, and the product expands into a sum:
#
# $$(I+J_2)(I+J_1)=I+J_1+J_2+J_2J_1$$
#
# The sum has four paths: around both, through the first, through the second, through both. A stack of $N$ has $2^N$
# paths, and one of them is the identity, no matter what the sublayers do. A sum of $2^N$ paths can be *large*.


# %%
def jacobian(f, x, step=1e-5):
    """J[c, d] = df_c / dx_d, by differences."""
    columns = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    return np.stack(columns, axis=1)


rng = np.random.default_rng(3)
A_1, A_2 = rng.standard_normal((2, 4, 4))
first, second = (lambda x: np.tanh(x @ A_1)), (lambda x: np.tanh(x @ A_2))
x = rng.standard_normal(4)
whole = jacobian(lambda x: residual(residual(x, first), second), x)
J_1, J_2, I = jacobian(first, x), jacobian(second, residual(x, first)), np.eye(4)
assert np.allclose(whole, I + J_1 + J_2 + J_2 @ J_1, rtol=0, atol=1e-7)

# %% [markdown]
# Now layer norm. Write $z$ for the normalised token (before gain and bias). When $x_d$ moves, the mean moves at the
# rate $1/D$ and the variance at $2(x_d-\mu)/D$. So the derivative has three terms: the division itself, the part
# that comes by the mean, and the part that comes by the variance ($\delta_{cd}$ is 1 for $c=d$ and 0 otherwise).
#
# $$\frac{\partial z_c}{\partial x_d}=\frac{1}{\sqrt{v+\varepsilon}}\left(\delta_{cd}-\frac1D
#   -\frac{z_c z_d}{D}\right)$$
#
# The second and third terms remove exactly the two directions that layer norm ignores, a shift and a stretch. The
# factor in front is one over the size of the input, so a token twice as large gets half the gradient.

# %%
x = np.random.default_rng(5).standard_normal(6)


def normalised(x):
    return layer_norm(x, np.ones(6), np.zeros(6))


z, root = normalised(x), math.sqrt(x.var() + 1e-5)
by_formula = (np.eye(6) - 1 / 6 - np.outer(z, z) / 6) / root
assert np.allclose(jacobian(normalised, x), by_formula, rtol=0, atol=1e-8)
assert np.allclose(by_formula @ np.ones(6), 0, rtol=0, atol=1e-12)  # a shift changes nothing
assert np.allclose(by_formula @ z, 0, rtol=0, atol=1e-4)  # nor does a stretch (except for eps)
assert np.allclose(jacobian(normalised, 2 * x), by_formula / 2, rtol=0, atol=1e-4)

# %% [markdown]
# ### Gradients by hand
#
# Here are the two laws of [Pre-norm and post-norm](#pre-norm-and-post-norm). Assume, as before, that a sublayer's
# output is independent of its input. That is a model of random weights, not a theorem about trained ones.
#
# *Post-norm, last layer.* The hidden numbers of a normalised token have the length $\lVert h\rVert=\sqrt{FDs^2/2}$.
# The error comes back through the norm, which removes the mean and the part along its output $y$. Of $(y-t)/D$ only
# the target remains, less two directions, and its length is $\sqrt{D-2}/D$. Call the product $c$. The norm divides it
# by the size of its input $x+F(x)$, which is $\sqrt{1+\sigma^2}$. *One layer down:* through $x+F(x)$ the gradient
# grows by $\sqrt{1+\sigma^2}$; through the norm it shrinks by as much. So all layers get the same:
#
# $$c=\sqrt{\tfrac12 FDs^2}\;\frac{\sqrt{D-2}}{D},\qquad
#   \text{post:}\quad\left\lVert\frac{\partial L}{\partial W_2^{(n)}}\right\rVert
#   \approx\frac{c}{\sqrt{1+\sigma^2}}$$

# %%
c = math.sqrt(F * D * S**2 / 2) * math.sqrt(D - 2) / D
law_post = c / math.sqrt(1 + sigma**2)
print(f"c = {c:.3f}   predicted for every layer: {law_post:.3f}")
measured = {"post-norm": {n: gradient_norms(post, n, seeds=20) for n in (6, 12, 24)}}
for values in measured["post-norm"].values():
    assert np.allclose(values.mean(), law_post, rtol=0.05, atol=0)
    assert np.allclose(values, law_post, rtol=0.1, atol=0)

# %% [markdown]
# *Pre-norm.* The stream only adds: its mean square after $n$ layers is $1+n\sigma^2$. The norm at the end divides by
# the size of the stream, so the last layer gets $c/\sqrt{1+N\sigma^2}$. On the way down past layer $n$, the identity
# keeps the gradient $g_n$. The branch adds to its square the share $\sigma^2$, divided by the mean square of the
# stream at that entrance, where the norm is:
#
# $$\lVert g_{n-1}\rVert^2\approx\lVert g_n\rVert^2\left(1+\frac{\sigma^2}{1+(n-1)\sigma^2}\right)
#   =\lVert g_n\rVert^2\,\frac{1+n\sigma^2}{1+(n-1)\sigma^2}$$
#
# Multiplied from layer $N$ down to layer $n+1$ these fractions leave $(1+N\sigma^2)/(1+n\sigma^2)$. The depth $N$
# cancels:
#
# $$\text{pre:}\quad\left\lVert\frac{\partial L}{\partial W_2^{(n)}}\right\rVert
#   \approx\frac{c}{\sqrt{1+N\sigma^2}}\sqrt{\frac{1+N\sigma^2}{1+n\sigma^2}}
#   =\frac{c}{\sqrt{1+n\sigma^2}}$$

# %% alt="Dots of the measured gradient norms of 6, 12 and 24 layers are on the predicted lines. Post-norm has a level line; pre-norm has one falling curve for all depths."
layers = np.arange(1, 25)
law_pre = c / np.sqrt(1 + layers * sigma**2)
measured["pre-norm"] = {n: gradient_norms(pre, n, seeds=20, end=norm) for n in (6, 12, 24)}
for n, values in measured["pre-norm"].items():
    assert np.allclose(values, law_pre[:n], rtol=0.1, atol=0)
    steps = (1 + layers * sigma**2) / (1 + (layers - 1) * sigma**2)
    law = (1 + 24 * sigma**2) / (1 + n * sigma**2)
    assert np.isclose(np.prod(steps[n:]), law, rtol=1e-12, atol=0)
plots.gradient_laws(measured, {"post-norm": np.full(24, law_post), "pre-norm": law_pre})
plt.show()

# %% [markdown]
# A pre-norm layer gets a gradient that depends on its own number $n$, and not on how many layers follow.
#
# ### GPT-2's initialisation: smaller output projections
#
# `init_params` draws each projection with variance 1 over the number of its inputs: a sum of inputs of size 1 then
# has size 1. The projections that *end* a sublayer, $W_o$ and $W_2$, begin smaller, after GPT-2. A decoder of $N$
# layers without cross-attention has $2N$ sublayers, and the stream adds up all of their outputs. With
#
# $$\operatorname{Var}(W_o)=\frac{1}{2N}\cdot\frac1D,\qquad
#   \operatorname{Var}(W_2)=\frac{1}{2N}\cdot\frac1F$$
#
# the sum of $2N$ outputs has the size of one.

# %%
params = init_params(Sizes(50, 64, 256, n_layers=12), Model(4), np.random.default_rng(0))
layers = params["decoder"]["layers"].values()
for part, name, inputs in (("attention", "W_o", 64), ("feed_forward", "W_2", 256)):
    variance = np.mean([np.square(layer[part][name]).mean() for layer in layers])
    assert np.isclose(variance, 1 / (2 * 12 * inputs), rtol=0.02, atol=0)
variance = np.mean([layer["attention"]["W_q"].var() for layer in layers])
assert np.isclose(variance, 1 / 64, rtol=0.02, atol=0)
show_source(init_params)

# %% [markdown]
# ### The gradient in a whole Transformer
#
# Is the law also true with attention, and in a decoder with a third sublayer, cross-attention to the encoder's output
# ([chapter 62](62_model.ipynb))? We measure at initialisation, with 12 blocks on each side and random texts, and
# without GPT-2's factor. The loss is the mean surprise at the next word.


# %%
def start(place, seed, ending=24**0.5, cross=1.0, n=12):
    """A Transformer before training, a random source and target, and independent vectors."""
    model, sizes = Model(4, Sinusoidal(), norm=place), Sizes(50, 64, 256, n, n_encoder_layers=n)
    rng = np.random.default_rng(seed)
    params = init_params(sizes, model, rng, np.float64)
    for part in ("encoder", "decoder"):
        for layer in params[part]["layers"].values():
            layer["feed_forward"]["W_2"] *= ending
            layer["attention"]["W_o"] *= ending
            if "cross" in layer:
                layer["cross"]["W_o"] *= ending * cross
    source, target = rng.integers(0, 50, (2, 16)), rng.integers(0, 50, (2, 17))
    return (params, model, source, target), norm(rng.standard_normal((2, 16, 64)))


# %%
def surprise(params, model, source, target, memory=None):
    """Mean surprise at each word of the target, from the words before it and the source."""
    memory = encode(params, model, source) if memory is None else memory
    return cross_entropy(decode(params, model, target[:, :-1], memory), target[:, 1:])


# %%
def transformer_gradients(place, seeds=3, unlike=False, **choices):
    """Gradient norms of W_2 by layer, (encoder and decoder, n): the mean over some seeds."""
    norms = []
    for seed in range(seeds):
        inputs, vectors = start(place, seed, **choices)
        _, g = value_and_grad(surprise)(*inputs, vectors if unlike else None)
        stacks = [g[part]["layers"].values() for part in ("encoder", "decoder")]
        own = [[layer["feed_forward"]["W_2"] for layer in stack] for stack in stacks]
        norms.append([[np.linalg.norm(W) for W in stack] for stack in own])
    return np.mean(norms, axis=0)


# %% alt="Gradient norms of W_2 by layer, encoder and decoder of 12 blocks, on a log axis. All are between 0.2 and 1, except for the post-norm decoder, which falls to 0.02 at its first block."
by_norm = {f"{p}-norm": transformer_gradients(p) for p in ("post", "pre")}
for name, stacks in by_norm.items():
    a, b = (f"{v[0]:.2f} to {v[-1]:.2f}" for v in stacks)
    step = (stacks[1][-1] / stacks[1][0]) ** (1 / 11)
    print(f"{name:9} encoder {a}, decoder {b}, a factor {step:.2f} per block")
encoder, sinking = by_norm["post-norm"]
assert (np.diff(sinking) > 0).all() and 35 < sinking[-1] / sinking[0] < 50
assert encoder.max() < 2 * encoder.min() and by_norm["pre-norm"].min() > 0.1
assert (by_norm["pre-norm"][:, 0] > 1.5 * by_norm["pre-norm"][:, -1]).all()
plots.gradient_by_layer(by_norm)
plt.show()

# %% [markdown]
# In the encoder the law is true in kind: gradients agree within a factor of 2 for post-norm and fall for
# pre-norm. In the post-norm decoder the gradient shrinks in every block on its way down and ends near a fortieth.
#
# Why there? Cross-attention computes $\mathrm{norm}(x+C(x))$, where $C(x)$ is a weighted mean of values made from the
# *encoder's* output. $C(x)$ makes the sum longer, and the norm divides by that length. But at initialisation $C(x)$
# barely depends on $x$, so almost no gradient comes back through it. And $C(x)$ is long, because the encoder's tokens
# have become almost identical (as in exercise 2). The mean of sixteen different vectors would be short. The cell
# takes one half of this explanation away at a time: it turns cross-attention off, by $W_o=0$, or leaves it on, with
# independent vectors instead of the encoder's output. Then it puts GPT-2's factor back in.

# %%
runs = {"as it is": {}, "no cross": {"cross": 0.0}, "independent": {"unlike": True}}
for name, own in {**runs, "GPT-2": {"ending": 1.0}}.items():
    v = transformer_gradients("post", seeds=2, **own)[1]
    print(f"{name:12} {v[0]:.2f} to {v[-1]:.2f}")
    assert (v[0] > 0.5 * v[-1]) == (name != "as it is")

# %% [markdown]
# Take either half away, and the gradient no longer vanishes. At initialisation only the post-norm *decoder* loses its
# gradient here, and smaller initial weights prevent that. Liu and others (2020) report the same decoder's vanishing
# gradient in full-sized models, and that curing it does not make post-norm train as easily.
#
# ## In practice
#
# **A common mistake: the formula is post-norm, the code is pre-norm.** *The Annotated Transformer*
# ([0a91a25](https://github.com/harvardnlp/annotated-transformer/blob/0a91a254735c07532e23733dce8a693e504f3a08/the_annotated_transformer.py))
# prints $\mathrm{LayerNorm}(x+\mathrm{Sublayer}(x))$ and computes $x+\mathrm{Sublayer}(\mathrm{LayerNorm}(x))$.
# Readers have asked about it since 2018 (harvardnlp/annotated-transformer, issues 1, 13, 92, 100, 110). Both are
# Transformers, but weights trained for one do not fit the other. And pre-norm without its last norm passes the output
# layer a stream that grows with the depth:

# %%
W_2, W_1, x, _ = draw(24, seed=0)
size = math.sqrt(np.mean(through(x, W_1, W_2, pre) ** 2))
print(f"24 layers: size of the stream {size:.1f}, predicted {math.sqrt(1 + 24 * sigma**2):.1f}")
assert np.isclose(size, math.sqrt(1 + 24 * sigma**2), rtol=0.15, atol=0)

# %% [markdown]
# ## Further reading
#
# - A. Vaswani and others, "Attention is all you need", 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762),
#   sections 3.1 and 3.3.
# - X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010,
#   equation (16).
# - J. L. Ba and others, "Layer normalization", 2016, [arXiv:1607.06450](https://arxiv.org/abs/1607.06450). B. Zhang
#   and R. Sennrich, "Root mean square layer normalization", 2019,
#   [arXiv:1910.07467](https://arxiv.org/abs/1910.07467).
# - R. Xiong and others, "On layer normalization in the Transformer architecture", 2020,
#   [arXiv:2002.04745](https://arxiv.org/abs/2002.04745). L. Liu and others, "Understanding the difficulty of training
#   Transformers", 2020, [arXiv:2004.08249](https://arxiv.org/abs/2004.08249), section 3.
# - Y. Dong and others, "Attention is not all you need", 2021, [arXiv:2103.03404](https://arxiv.org/abs/2103.03404);
#   L. Noci and others, "Signal propagation in Transformers", 2022,
#   [arXiv:2206.03126](https://arxiv.org/abs/2206.03126): the same with residual connections.
