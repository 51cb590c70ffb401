# %% [markdown]
# # 61. Automatic differentiation from scratch
#
# *How does plain NumPy get its gradients, and what does an optimiser do with them?*
#
# 45 minutes. Needs [10 Attention by hand: scores, softmax, heads, masks](10_attention.ipynb), [60 The Transformer block: feed-forward, residual, layer norm](60_layers.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Training needs the gradient: how the loss changes when each parameter moves a little. A
# derivation by hand is new work for each model, and moving each parameter takes too many runs. You build a machine
# that records each operation and applies the chain rule backwards, first for single numbers, then for arrays in
# ordinary NumPy code. Then you use the gradients to train, by gradient descent and its improvements: momentum, Adam,
# weight decay and clipping. At the end a small attention layer learns where to look.

# %% fold="input" alt="A graph of five boxes: x and y lead to u, u and x lead to v, and v leads twice to L. Each box shows its value and its gradient, each arrow its slope. The gradients 16 and 48 add up to 64 at x."
import math

import matplotlib.pyplot as plt
import numpy as np

from pe_numpy.book.show import show_source
from pe_numpy.book.plots import autodiff as plots

nodes = {"x": (0, 2.6, 2, 64), "y": (0, 0, 3, 32), "u": (3.2, 0.9, 6, 16), "v": (6.2, 2, 8, 16)}
nodes["L"] = (9.3, 2, 64, 1)  # place, value, gradient
edges = [("x", "u", 3), ("y", "u", 2), ("u", "v", 1), ("x", "v", 1), ("v", "L", 8), ("v", "L", 8)]
bends = (0, 0, 0, 0, 0.25, -0.25)
named = [(a, b, f"slope {s}", bend) for (a, b, s), bend in zip(edges, bends, strict=True)]
plots.computation_graph(nodes, named)
plt.show()

# %%
import inspect
from functools import partial

from pe_numpy import adamw, adamw_state, attend, attention, causal_mask, clip_gradients
from pe_numpy import cross_entropy, feed_forward, layer_norm, relative_distance, rope, sgd, softmax
from pe_numpy import t5_bias, value_and_grad
from pe_numpy.training import autodiff, rules

# %% [markdown]
# ## Three ways to compute a gradient
#
# In the figure each box is a number, and each arrow says that one number was computed from another. $L$ is the
# **loss**, the number that training makes small. The **gradient** of a number says how fast $L$ moves when that
# number moves a little.
#
# Training asks for it again and again. Here is a loss with two parameters, small enough to work by hand: $u=xy$,
# $v=u+x$ and $L=v^2$, at $x=2$, $y=3$. So $u=6$, $v=8$, $L=64$. **By hand**, $L=(xy+x)^2$, so
#
# $$\frac{\partial L}{\partial x}=2\,(xy+x)(y+1)=64,\qquad
#   \frac{\partial L}{\partial y}=2\,(xy+x)\,x=32$$
#
# **By finite differences**: move $x$ by a small $h$, see how $L$ moves, divide.


# %%
def L(x, y):
    v = x * y + x
    return v * v


x, y, h = 2.0, 3.0, 1e-5
by_hand = [2 * (x * y + x) * (y + 1), 2 * (x * y + x) * x]
differences = [(L(x + h, y) - L(x, y)) / h, (L(x, y + h) - L(x, y)) / h]
print(f"by differences: {differences[0]:.4f}, {differences[1]:.4f}")
assert by_hand == [64, 32] and np.allclose(differences, by_hand, rtol=0, atol=1e-3)

# %% [markdown]
# Neither way is enough. By hand, each new model needs a new derivation. Differences need one more run of the model for
# each parameter, and one block of the first Transformer has about three million ([chapter 60](60_layers.ipynb)). The
# third way, a machine that applies the chain rule for us, is the subject of this chapter.
#
# ### Gradient check by finite differences
#
# The machine must be checked by something that is not itself, and finite differences are right for that. Differences
# taken from both sides are called **central**. In float64, central differences with a step near $10^{-5}$ are good to
# ten digits; in float32, at the best step, to about four. So **check gradients in float64**
# ([why](#how-exact-is-a-finite-difference)).
#
# And you need not move each parameter by itself. Move all of them in one step along a random direction $d$: the loss
# then changes at the rate
#
# $$\lim_{h\to0}\frac{L(\theta+hd)-L(\theta-hd)}{2h}=\sum_k\frac{\partial L}{\partial\theta_k}\,d_k$$
#
# Two runs check the whole gradient. An error would have to be orthogonal to $d$ to hide.

# %%
d, h = np.array([0.6, -0.8]), 1e-5
rate = (L(x + h * d[0], y + h * d[1]) - L(x - h * d[0], y - h * d[1])) / (2 * h)
print(f"measured {rate:.6f}")
assert abs(rate - np.dot(by_hand, d)) < 1e-8

# %% [markdown]
# ## Reverse mode: a tape for single numbers
#
# Now the machine. The derivative of a single operation is easy: $u=xy$ moves by $y$ for each unit of $x$, and by $x$
# for each unit of $y$. Call these numbers **slopes**. So we let a number record how it was made: the numbers it was
# made from, its **parents**, each with its slope. Python lets a class define what `+` and `*` mean for it.


# %%
class Number:
    """A number that knows how it was made: pairs (parent, slope)."""

    def __init__(self, value, steps=()):
        self.value, self.steps, self.grad = value, steps, 0.0

    def __add__(self, other):
        return Number(self.value + other.value, [(self, 1.0), (other, 1.0)])

    def __mul__(self, other):
        return Number(self.value * other.value, [(self, other.value), (other, self.value)])

    def tanh(self):
        t = math.tanh(self.value)
        return Number(t, [(self, 1 - t * t)])


# %% [markdown]
# The function `L` need not change: it multiplies and adds what it is given. The record is a **graph**, the one in the
# figure at the top. It is called a **tape**, because it contains the computation in order. The chain rule says how
# the loss depends on a number $z$ through everything that was made from it:
#
# $$\frac{\partial L}{\partial z}=\sum_{w\text{ made from }z}\frac{\partial L}{\partial w}\,
#   \frac{\partial w}{\partial z}$$
#
# So start with $\partial L/\partial L=1$, pass each number's gradient to its parents, times the slope, and add up what
# arrives. A first attempt follows every path back to its end:


# %%
def follow_paths(node, gradient):
    """Hand a gradient to a number and on to all its parents; count the visits."""
    node.grad += gradient
    return 1 + sum(follow_paths(parent, gradient * slope) for parent, slope in node.steps)


x, y = Number(2.0), Number(3.0)
result = L(x, y)
v = result.steps[0][0]
u = v.steps[0][0]
print("visits:", follow_paths(result, 1.0))
assert (x.grad, y.grad) == (64.0, 32.0)
assert x.grad == v.grad + u.grad * y.value  # both uses of x

# %% [markdown]
# The gradients are right, without a derivation. Now double a number sixteen times, $z\leftarrow z+z$: there are 17
# numbers. **Predict** how many visits the walk makes.

# %% fold="output"
z = start = Number(1.0)
for _ in range(16):
    z = z + z
visits = follow_paths(z, 1.0)
print(f"16 doublings: {visits:,} visits, gradient {start.grad:,.0f}")
assert visits == 2**17 - 1 and start.grad == 2**16

# %% [markdown]
# There are $2^{16}$ paths, and the walk takes each of them. The remedy is to wait at each number until *everything*
# made from it has passed down its share, then pass on the sum, once. So put the numbers in an order in which each
# comes after its parents, and walk that order from the end.


# %%
def parents_first(node, order):
    if node not in order:
        for parent, _ in node.steps:
            parents_first(parent, order)
        order[node] = None
    return order


def walk_back(root):
    """Give every number on the tape its gradient; return them, parents first."""
    order, root.grad = list(parents_first(root, {})), 1.0
    for node in reversed(order):
        for parent, slope in node.steps:
            parent.grad += node.grad * slope
    return order


# %%
names = dict(zip(walk_back(L(Number(2.0), Number(3.0))), "xyuvL", strict=True))
for node, name in names.items():
    assert (node.value, node.grad) == nodes[name][2:]
arrows = [(names[p], name, s) for node, name in names.items() for p, s in node.steps]
assert arrows == edges  # the figure at the top

# %% [markdown]
# This is **reverse mode**, or backpropagation, in about 25 lines. *Forward mode* carries the slopes the other way,
# and needs one run for each parameter ([exercise 1](#exercise-1-forward-mode-with-dual-numbers)). Reverse mode
# differentiates every function made of `+`, `*` and `tanh`, with any loops and branches (as deep as Python's
# recursion goes). An example is a linear layer with a tanh. What does the walk cost? It takes each arrow once, with
# one multiplication and one addition, and an operation has one or two arrows. So, **however many parameters there
# are**, all gradients together cost a small multiple of the computation itself. Count the multiplications by
# something other than 1:
#
# $$\text{forward: } DF,\qquad\text{back: } 2DF\;+\;F\ \text{for the }\tanh$$

# %%
rng, D, F = np.random.default_rng(0), 8, 32
data = rng.standard_normal(D), rng.standard_normal((D, F)) / math.sqrt(D), rng.standard_normal(F)
x, W, b = ([Number(t) for t in a] if a.ndim == 1 else [[*map(Number, r)] for r in a] for a in data)
outputs = []
for f_ in range(F):  # tanh(x W + b), one number at a time
    outputs.append(sum((x[d] * W[d][f_] for d in range(D)), start=b[f_]).tanh())
order = walk_back(sum(outputs, start=Number(0.0)))
loops = np.array([[w.grad for w in row] for row in W])
forward = sum(len(node.steps) == 2 and node.steps[0][1] != 1.0 for node in order)
back = sum(slope != 1.0 for node in order for _, slope in node.steps)
print(f"{len(order)} numbers, {D * F + F} parameters; forward {forward}, back {back} products")
assert forward == D * F and back == 2 * D * F + F

# %% [markdown]
# The way back takes twice the forward multiplications for all 288 parameters, where central differences need two runs
# for each. The steps of this tape are too small: it needs over eight hundred Python objects for one small layer and one
# token.
#
# ## From numbers to arrays: vector-Jacobian products
#
# Record whole array operations instead. Let $g$ be the gradient with respect to an operation's result. From each
# operation we need a function that turns $g$ into the gradient of an argument. Such a function is called a
# **vector-Jacobian product** (VJP). This book also calls it a **pull**. *Matrix product*, $z_{ab}=\sum_k x_{ak}y_{kb}$:
# the entry $x_{ak}$ moves every $z_{ab}$ of its row, with slope $y_{kb}$. So
#
# $$\frac{\partial L}{\partial x_{ak}}=\sum_b g_{ab}\,y_{kb}=(g\,y^\top)_{ak},\qquad
#   \frac{\partial L}{\partial y_{kb}}=\sum_a x_{ak}\,g_{ab}=(x^\top g)_{kb}$$

# %%
x, y, g = rng.standard_normal((4, 3)), rng.standard_normal((3, 5)), rng.standard_normal((4, 5))
dx, dy = np.zeros_like(x), np.zeros_like(y)
for a, k, b in np.ndindex(4, 3, 5):  # one arrow of the graph of numbers
    dx[a, k] += g[a, b] * y[k, b]
    dy[k, b] += x[a, k] * g[a, b]
assert np.allclose(dx, g @ y.T, rtol=0, atol=1e-12)
assert np.allclose(dy, x.T @ g, rtol=0, atol=1e-12)
tanh_slope = 1 - np.tanh(data[0] @ data[1] + data[2]) ** 2  # the layer by hand, in two lines
assert np.allclose(loops, data[0][:, None] * tanh_slope[None, :], rtol=0, atol=1e-12)

# %% [markdown]
# *Broadcasting.* NumPy adds a row $b$ to each row of $x$. It uses $b_k$ many times, and a number that is used many
# times gets the sum of what comes back: forward a copy, backward a sum. *Reading rows* follows the same rule. An
# embedding reads rows of a table, $z_n=E_{w_n}$, some of them twice. Its pull adds each $g_n$ to the row that was
# read:
#
# $$\frac{\partial L}{\partial b_k}=\sum_n g_{nk},\qquad
#   \frac{\partial L}{\partial E_w}=\sum_{n\,:\,w_n=w}g_n$$
#
# **A common mistake**: `grad[read] += g` adds to a repeated row only once. (The package's `value_and_grad(f)`, built
# below, returns the value of $f$ and its gradient.)

# %%
table, row, g = rng.standard_normal((4, 2)), rng.standard_normal(2), rng.standard_normal((3, 2))
read = np.array([2, 0, 2])
_, slope = value_and_grad(lambda b: np.sum(g * (np.zeros((3, 2)) + b)))(row)
assert np.allclose(slope, [sum(g[n, k] for n in range(3)) for k in range(2)], rtol=0, atol=1e-12)
_, slope = value_and_grad(lambda E: np.sum(g * E[read]))(table)
by_rows = [sum((g[n] for n in range(3) if read[n] == w), start=np.zeros(2)) for w in range(4)]
assert np.allclose(slope, by_rows, rtol=0, atol=1e-12)
wrong = np.zeros((4, 2))
wrong[read] += g
lost = [[0, 0], [0, 0], g[0], [0, 0]]  # row 2 was read twice, and the last g is all it got
assert np.allclose(by_rows - wrong, lost, rtol=0, atol=1e-12)

# %% [markdown]
# Here are some of the package's rules for NumPy's ufuncs (functions that work entry by entry, and the matrix product).
# Each takes the value $z$ and the arguments, and returns one pull for each argument. A table of derivatives can have
# misprints, so the second cell below checks the rule for each argument of each ufunc by finite differences.


# %%
def difference(f, x, h=1e-5):
    """Slopes of a number f(x) by each entry of x."""
    bumps = h * np.eye(x.size).reshape(-1, *x.shape)
    return np.array([(f(x + e) - f(x - e)) / (2 * h) for e in bumps]).reshape(x.shape)


def weigh(ufunc, before, after, weights, z):
    return np.sum(weights * ufunc(*before, z, *after))


lines = inspect.getsource(rules).splitlines()
for name in ("add", "multiply", "divide", "exp", "log", "tanh"):
    print(next(line.strip() for line in lines if line.startswith(f"    np.{name}:")))

# %%
checked = 0
for ufunc in rules.UFUNCS:  # arguments of both signs, except for roots, logarithms and powers
    low = 0.5 if ufunc in (np.sqrt, np.log, np.log1p, np.power) else -2.0
    arguments = [rng.uniform(low, 2.0, (3, 3)) for _ in range(ufunc.nargs - 1)]
    arguments[-1] = np.where(abs(arguments[-1]) < 0.5, 0.5, arguments[-1])  # no division by 0
    weights = rng.standard_normal((3, 3))
    for n in range(len(arguments)):
        before, after = arguments[:n], arguments[n + 1 :]
        f_n = partial(weigh, ufunc, before, after, weights)
        slope = value_and_grad(f_n)(arguments[n])[1]
        assert np.allclose(slope, difference(f_n, arguments[n]), rtol=0, atol=1e-8), ufunc
        checked += 1
print(f"{len(rules.UFUNCS)} ufuncs, {checked} rules, all right")

# %% [markdown]
# ## Hooking into NumPy: `__array_ufunc__`
#
# How do these rules get called? The functions of this book write `np.exp(x)`, not `our_exp(x)`. NumPy itself provides
# a hook. When an argument isn't an array, NumPy looks for two methods: `__array_ufunc__`, for ufuncs and for
# operators such as `+` and `@`, and `__array_function__`, for most other functions. If the object has them, NumPy
# passes it the call, and returns whatever it answers. **Predict** what `np.ones(2) + spy` returns for the spy below.


# %% fold="output"
class Spy:
    """Answers every call with its name."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return f"ufunc {ufunc.__name__}"

    def __array_function__(self, function, types, args, kwargs):
        return f"function {function.__name__}"


spy = Spy()
answers = [np.exp(spy), np.ones(2) + spy, np.ones((2, 2)) @ spy, np.sum(spy)]
print(answers)
assert answers[1] == "ufunc add" and answers[3] == "function sum"

# %% [markdown]
# Even with an ordinary array on the left of the `+`, NumPy asked the spy. So an object that looks like an array can
# travel through ordinary NumPy code and take notes on the way. (Functions of our own, such as `softmax`, are not part
# of NumPy; the decorator `differentiable` lets them ask first as well.) The package's `Tensor` does for arrays what
# `Number` does for numbers. It has a value, and steps of (parent, pull). It computes each value on ordinary arrays,
# and records the pulls. `value_and_grad(f)` wraps the arrays of the first argument, which may be nested dictionaries,
# calls $f$ and walks back, as you did, but without recursion. Each step is freed as soon as it is used. Nothing is
# stored in the parameters: an ordinary call of $f$ leaves no tape.

# %%
t = autodiff.Tensor(np.array([[0.0, 1.0], [2.0, 3.0]]))
z = np.sum(np.exp(t) * 2.0, axis=0)  # three steps: exp, product, sum
assert [node.shape for node in autodiff.parents_first(z)] == [(2, 2), (2, 2), (2, 2), (2,)]
value, gradient = value_and_grad(lambda p: L(p[0], p[1]))(np.array([2.0, 3.0]))
assert value == 64 and gradient.tolist() == by_hand
layer = value_and_grad(lambda p: np.sum(np.tanh(data[0] @ p["W"] + p["b"])))
_, gradients = layer({"W": data[1], "b": data[2]})
assert np.allclose(gradients["W"], loops, rtol=0, atol=1e-12)  # the tape of numbers agrees
show_source(value_and_grad)

# %% [markdown]
# Now the promise of the opening: ordinary NumPy code. `attention` of [chapter 10](10_attention.ipynb) and `rope` of
# [chapter 40](40_rope_derived.ipynb) are functions of arrays. Except for the decorator, their code does not mention
# a tape. Here they are differentiated with respect to queries, keys and values, and checked by two runs.

# %%
places = np.arange(5)
see, target = causal_mask(places, places), rng.standard_normal((5, 8))


def loss(p):
    output, _ = attention(rope(p["q"], places), rope(p["k"], places), p["v"], mask=see)
    return np.mean((output - target) ** 2)


p, way = ({n: rng.standard_normal((5, 8)) for n in "qkv"} for _ in range(2))
_, gradients = value_and_grad(loss)(p)
ends = [loss({n: p[n] + h * way[n] for n in "qkv"}) for h in (1e-5, -1e-5)]
rate = sum(np.sum(gradients[n] * way[n]) for n in "qkv")
assert abs(rate - (ends[0] - ends[1]) / 2e-5) < 1e-9

# %% [markdown]
# ## Gradients of softmax, layer norm, cross-entropy and RoPE
#
# Rules for single steps would be enough, but some functions are worth a separate rule. **Softmax**:
# [chapter 10](10_attention.ipynb) derived $\partial w_j/\partial x_m=w_j(\delta_{jm}-w_m)$. A masked score has the weight 0,
# so its gradient is 0 as well. **Layer norm**: [chapter 60](60_layers.ipynb) has the Jacobian of $z=s\,(x-\bar x)$,
# where $s$ is one over the standard deviation. The Jacobian is symmetric, so pulling back means multiplying by it.
#
# $$\text{softmax:}\quad\frac{\partial L}{\partial x_m}=\sum_j g_j\,w_j(\delta_{jm}-w_m)
#   =w_m\Bigl(g_m-\sum_j g_jw_j\Bigr)$$
#
# $$\text{layer norm:}\quad\frac{\partial L}{\partial x}=
#   s\,\bigl(g-\operatorname{mean}(g)-z\,\operatorname{mean}(g\,z)\bigr)$$

# %%
x, g = rng.standard_normal((2, 6))
w = softmax(x)
by_loops = [sum(g[j] * w[j] * ((j == m) - w[m]) for j in range(6)) for m in range(6)]
_, slope = value_and_grad(lambda x: np.sum(g * softmax(x)))(x)
assert np.allclose(slope, by_loops, rtol=0, atol=1e-12)
assert np.allclose(slope, w * (g - np.sum(g * w)), rtol=0, atol=1e-12)
seen = np.arange(6) < 4
_, slope = value_and_grad(lambda x: np.sum(g * softmax(np.where(seen, x, -np.inf))))(x)
assert (slope[~seen] == 0).all() and (slope[seen] != 0).all()  # masked scores
one, zero = np.ones(6), np.zeros(6)
z, s = layer_norm(x, one, zero), 1 / math.sqrt(x.var() + 1e-5)
_, slope = value_and_grad(lambda x: np.sum(g * layer_norm(x, one, zero)))(x)
assert np.allclose(slope, s * (g - g.mean() - z * np.mean(g * z)), rtol=0, atol=1e-12)
by_steps = difference(lambda x: np.sum(g * layer_norm(x, one, zero)), x)
assert np.allclose(slope, by_steps, rtol=0, atol=1e-8)

# %% [markdown]
# **Cross-entropy** is the loss of models that predict a token: $-\log p_t$ for the right token $t$, with
# $p=\mathrm{softmax}(x)$. Written out it is $\log\sum_v e^{x_v}-x_t$. The derivative of the first part is $p$ again:
#
# $$\frac{\partial L}{\partial x_v}=p_v-[v=t]$$
#
# where $[v=t]$ is 1 for the right token and 0 for all others. No logarithm remains, and no division by $p_t$, which
# may round to 0. For a mean over $n$ tokens divide by $n$.

# %%
logits, right = rng.standard_normal((3, 6)), np.array([2, 0, 5])
_, slope = value_and_grad(lambda x: cross_entropy(x, right))(logits)
assert np.allclose(slope, (softmax(logits) - np.eye(6)[right]) / 3, rtol=0, atol=1e-12)
sure = np.array([[1000.0, 0.0]])  # a wrong answer, held with certainty
value, slope = value_and_grad(lambda x: cross_entropy(x, [1]))(sure)
assert value == 1000 and slope.tolist() == [[1.0, -1.0]]

# %% [markdown]
# **RoPE** rotates each pair of components by an angle that depends on the position: $z=R_mx$. A linear map with the
# matrix $R$ has the pull $R^\top$, and the transpose of a rotation is the rotation back. So the gradient of RoPE is
# RoPE, at the opposite position:
#
# $$\frac{\partial L}{\partial x}=R_m^\top g=R_{-m}\,g$$

# %%
x, g = rng.standard_normal((2, 5, 8))
places = np.array([0, 1, 2, 30, 4000])
_, slope = value_and_grad(lambda x: np.sum(g * rope(x, places)))(x)
assert np.allclose(slope, rope(g, -places), rtol=0, atol=1e-12)
assert np.allclose(rope(slope, places), g, rtol=0, atol=1e-12)  # no length is lost on the way

# %% [markdown]
# ## The cost of backpropagation: time and memory
#
# Time: a matrix product of sizes $(n,D)$ and $(D,F)$ takes $nDF$ multiplications, and each of its two pulls takes as
# many. In a large model the matrix products are most of the work, so a step costs about **three forward runs**.
#
# Memory: the walk back needs the values of the forward run, so all of them are stored until it has used them. Here are
# pre-norm feed-forward layers of [chapter 60](60_layers.ipynb), float32, for 256 tokens. **Predict** how the tape
# grows with the layers.

# %% fold="output"
up, down, ones = (np.ones(shape, np.float32) for shape in ((64, 256), (256, 64), 64))
for n_layers in (1, 2, 4):
    x = autodiff.Tensor(np.ones((256, 64), np.float32))
    params = {"W_1": autodiff.Tensor(up), "W_2": autodiff.Tensor(down)}
    for _ in range(n_layers):
        x = x + feed_forward(params, layer_norm(x, ones, 0 * ones))
    held = [node.value for node in autodiff.parents_first(x) if node.steps]
    print(
        f"{n_layers} layers: {len(held)} steps, {sum(v.nbytes for v in held) / 2**20:.2f} MB held"
    )
    assert len(held) == 7 * n_layers

# %% [markdown]
# The tape grows in proportion to the number of layers. On ordinary arrays the same call stores nothing.
#
# ## Limits of the tape (second reading)
#
# The worst gradient is a wrong one that looks right. So whatever the tape can't follow must raise an error: functions
# without a rule, changes in place, ordinary arrays made of Tensors, gradients of gradients, and float64 in a float32
# model. Float64 would double the cost of everything after it (`np.sqrt(4)` is a float64; `math.sqrt(4)` is a Python
# number and changes nothing). And there are things that no such machine can see:
#
# - **Kinks.** At 0 the function $|x|$ has no slope. A rule must choose; ours takes the middle of $-1$ and $+1$.
# - **Branches.** `if x > 0` is ordinary Python: the tape records the branch that was taken, and nothing of the other.
# - **Steps.** `np.argmax` and comparisons have no gradient, and the tape ends there.
# - **Values computed but not chosen.** `np.where(x > 0, np.log(x), 0.0)` chooses the 0 where $x=0$, but has also
#   computed $\log 0$. Its slope $1/0$ is infinite, times the gradient 0 of a value that was not chosen: not a number.
#   Choose first, then compute.

# %%
single, x = np.ones(2, np.float32), np.array([0.0, 1.0])
attempts = [np.cumprod, lambda t: np.exp(t, out=single), lambda t: t / np.sqrt(4)]
attempts += [lambda t: np.array([t]), lambda t: value_and_grad(lambda u: np.sum(t * u))(single)[1]]
for attempt in attempts:
    try:
        value_and_grad(lambda t, attempt=attempt: np.sum(attempt(t)))(single)
        raise AssertionError(f"{attempt} should have been refused")
    except (TypeError, ValueError, NotImplementedError) as error:
        print(str(error).split(";")[0][:90])
with np.errstate(divide="ignore", invalid="ignore"):
    _, poisoned = value_and_grad(lambda x: np.sum(np.where(x > 0, np.log(x), 0.0)))(x)
_, clean = value_and_grad(lambda x: np.sum(np.log(np.where(x > 0, x, 1.0))))(x)
assert np.isnan(poisoned[0]) and clean.tolist() == [0.0, 1.0]
assert value_and_grad(lambda x: np.sum(abs(x)))(np.zeros(1))[1].tolist() == [0.0]

# %% [markdown]
# ## Gradient descent, momentum and Adam
#
# Gradients point uphill, so training moves the other way. Call all parameters $\theta$, their gradient $g$.
# **Gradient descent** takes steps of a **learning rate** $\eta$. (With data in random batches it is called stochastic
# gradient descent, SGD.) We try it on a bowl, $\tfrac12(a^2+25\,b^2)$, shallow in $a$, steep in $b$. Its gradient is
# $(a, 25\,b)$, so each step multiplies $a$ by $1-\eta$ and $b$ by $1-25\eta$. In general, if a bowl has the
# curvatures $\lambda_k$,
#
# $$\theta_t=\theta_{t-1}-\eta\,g_t,\qquad\theta_{k,t}=(1-\eta\lambda_k)^t\;\theta_{k,0}$$
#
# Every component shrinks only if $|1-\eta\lambda_k|<1$ for all $k$, that is, if $\eta<2/\lambda_{\max}$. The steepest
# direction sets the limit, and in the shallowest direction progress is therefore slow. **Predict** what happens at
# $\eta=0.079$ and at $0.081$.


# %% fold="output"
def descend(step, n):
    path, state = [{"w": np.array([10.0, 1.0])}], None
    for _ in range(n):
        params, state = step(path[-1], slope_of(path[-1])[1], state)
        path.append(params)
    return np.array([params["w"] for params in path])


curvatures = np.array([1.0, 25.0])
slope_of = value_and_grad(lambda p: 0.5 * np.sum(curvatures * p["w"] ** 2))
for eta in (0.079, 0.081):
    path = descend(lambda p, g, state, eta=eta: sgd(p, g, eta), 100)
    print(f"eta = {eta}: after 100 steps b = {path[-1, 1]:.4f}")
    assert np.allclose(path, path[0] * (1 - eta * curvatures) ** np.c_[:101], rtol=0, atol=1e-9)
    assert (np.diff(abs(path), axis=0) < 0).all() == (eta < 2 / max(curvatures))

# %% [markdown]
# **Momentum** helps the shallow direction. It keeps a velocity $u$. Each gradient adds to it, and a share $\mu$ of it
# remains from step to step:
#
# $$u_t=\mu\,u_{t-1}-\eta\,g_t,\qquad\theta_t=\theta_{t-1}+u_t$$
#
# Where gradients keep their sign, they add up; where they alternate, they cancel in part. The rate and the share in
# the cell below are the best for this bowl, by a theorem of Polyak (1964). At this rate gradient descent by itself
# would multiply $b$ by $1-25\eta=-16/9$ in each step.

# %%
swift = descend(lambda p, g, state: sgd(p, g, 4 / 36, (4 / 6) ** 2, state), 60)
theta, u = swift[0], np.zeros(2)
for t in range(60):
    u = (4 / 6) ** 2 * u - 4 / 36 * curvatures * theta
    theta = theta + u
    assert np.allclose(swift[t + 1], theta, rtol=0, atol=1e-12)
alone = descend(lambda p, g, state: sgd(p, g, 4 / 36), 5)[:, 1]
assert np.allclose(alone[1:] / alone[:-1], -16 / 9, rtol=0, atol=1e-9)
show_source(sgd)

# %% [markdown]
# **Adam** asks another question: why should all parameters share one learning rate? It keeps two running means for
# each number, of its gradients and of their squares, and divides the first by the square root of the second:
#
# $$\begin{aligned}m_t&=\beta_1m_{t-1}+(1-\beta_1)\,g_t\\ v_t&=\beta_2v_{t-1}+(1-\beta_2)\,g_t^2\\
#   \theta_t&=\theta_{t-1}-\eta\,\frac{m_t/(1-\beta_1^t)}{\sqrt{v_t/(1-\beta_2^t)}+\epsilon}\end{aligned}$$
#
# Both means start at 0, so at first they are too small: after $t$ equal gradients $g$ the first is
# $(1-\beta_1^t)\,g$. Dividing by $1-\beta_1^t$ makes it right from the first step. Except for $\epsilon$, the first
# step has the length $\eta$ in *every* parameter whose gradient is not 0: $g/\sqrt{g^2}=\pm1$. And a loss that is
# multiplied by a thousand gives the same path. So layers whose gradients differ in size, as in
# [chapter 60](60_layers.ipynb), move at the same speed.

# %% fold="output"
adam = descend(lambda p, g, s: adamw(p, g, s or adamw_state(p), 0.5, weight_decay=0), 60)
theta, m, v = adam[0], np.zeros(2), np.zeros(2)
louder, state = {"w": adam[0]}, adamw_state({"w": adam[0]})
for t in range(1, 61):
    g = curvatures * theta
    m, v = 0.9 * m + (1 - 0.9) * g, 0.98 * v + (1 - 0.98) * g * g
    theta = theta - 0.5 * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.98**t)) + 1e-9)
    assert np.allclose(adam[t], theta, rtol=0, atol=1e-9)
    louder, state = adamw(louder, {"w": 1000 * g}, state, 0.5, weight_decay=0)
    assert np.allclose(louder["w"], adam[t], rtol=0, atol=1e-6)
assert np.allclose(adam[1] - adam[0], -0.5, rtol=0, atol=1e-6)
show_source(adamw_state, adamw)

# %% alt="Three paths on the level lines of an elongated bowl. Gradient descent zigzags slowly along the valley. Momentum swings widely across it and arrives first. Adam starts on the diagonal, overshoots and comes back."
paths = {"gradient descent, best rate 2/26": descend(lambda p, g, state: sgd(p, g, 2 / 26), 60)}
paths |= {"momentum": swift, "Adam": adam}
assert (np.diff(np.sign(swift[:16, 1])) != 0).all() and abs(swift[:, 1]).max() > 1.9  # it swings
for name, path in paths.items():
    distance = np.linalg.norm(path, axis=1)
    near = np.flatnonzero(distance > 0.1 * distance[0])[-1] + 1
    print(f"{name}: within a tenth of the way from step {near} on")
plots.bowl_paths(curvatures, paths)
plt.show()

# %% [markdown]
# The bowl is chosen to show *how* the optimisers move, and is not a race: which one is fastest depends on the bowl and
# on the rates.
#
# **Which learning rate for a real model?** Its curvatures are not known, so the rate is found by trial. A rule of
# thumb is to try a few rates, each about three times the one before, and to take the largest with which the loss
# still falls smoothly. The rate is mostly combined with a warm-up and falls later
# ([schedules in chapter 62](62_model.ipynb#training-warm-up-dropout-the-loop)).
#
# ### Weight decay and clipping
#
# **Weight decay** pulls every weight a little towards 0 in each step. In gradient descent you may add $\lambda\theta$
# to the gradient. In Adam you may not, because the decay would be divided by the square root of $v$ like the gradient.
# **AdamW** subtracts the decay outside this division ($\hat m$ and $\hat v$ are the corrected means):
#
# $$\theta_t=\theta_{t-1}-\eta\left(\frac{\hat m_t}{\sqrt{\hat v_t}+\epsilon}+\lambda\,\theta_{t-1}\right)$$
#
# Here are two weights of 1 whose gradients alternate in sign, so that they give no direction. The gradients of the
# first are a hundred times larger. Without a direction to go, both should shrink to $(1-\eta\lambda)^{200}$ in 200
# steps.


# %%
def shrink(inside, eta=0.01, lam=0.1):
    params, state = {"w": np.ones(2)}, adamw_state({"w": np.ones(2)})
    for t in range(200):
        g, decay = (1 - 2 * (t % 2)) * np.array([10.0, 0.1]), 0 if inside else lam
        g = {"w": g + lam * params["w"] if inside else g}
        params, state = adamw(params, g, state, eta, weight_decay=decay, decay=lambda path, p: True)
    return params["w"].round(2).tolist()


should, outside, inside = round((1 - 0.01 * 0.1) ** 200, 2), shrink(False), shrink(True)
print("should be", should, "  AdamW", outside, "  decay in the gradient", inside)
assert outside[0] == outside[1] > should - 0.03 and inside[0] > 0.9 and inside[1] < 0.2
W = {"W": np.full((1, 1), 2.0)}
step, _ = adamw(W, {"W": np.full((1, 1), 3.0)}, adamw_state(W), 0.01, weight_decay=0.1)
assert np.isclose(step["W"][0, 0], 2 - 0.01 * (3 / (3 + 1e-9) + 0.1 * 2), rtol=0, atol=1e-12)

# %% [markdown]
# With the decay outside, both weights shrink alike (the difference comes from Adam's first steps, which do not quite
# cancel). With the decay inside, the weight with the small gradients falls to 0.16, and the other barely moves.
#
# **Clipping.** Once in a while a batch gives a gradient that is ten times too long, and one step undoes the work of
# many. So the
# gradients of *all* parameters together are shortened to a largest norm $c$:
#
# $$g\leftarrow g\,\min\left(1,\frac{c}{\lVert g\rVert}\right)$$
#
# The norm is taken over all gradients together, as if they were one vector. Clipping each array by itself would
# change the direction.

# %%
grads = {"W": np.array([[30.0]]), "b": np.array([0.4])}
clipped, norm = clip_gradients(grads, 1.0)
flat, after = (np.array([g["W"][0, 0], g["b"][0]]) for g in (grads, clipped))
assert np.allclose(after, flat * min(1, 1 / np.linalg.norm(flat)), rtol=0, atol=1e-12)
each = np.array([1.0, 0.4])  # every array clipped to 1 by itself
assert flat @ each < 0.95 * np.linalg.norm(flat) * np.linalg.norm(each)  # another direction
show_source(clip_gradients)

# %% [markdown]
# ## Train a T5 bias to attend to the previous token
#
# Last, we use everything together, on the subject of this book. Each token should attend to the token before it. We
# give the model nothing but a T5 bias ([chapter 33](33_t5.ipynb)): one number for each distance, added to scores that
# are all 0, and values that are one-hot tokens. The loss is the mean squared difference between the output and the
# token before. At the start all biases are 0, so every token attends equally to itself and its whole past.

# %%
places = np.arange(12)
distance, see = relative_distance(places, places), causal_mask(places, places)


def look_back(params, tokens):
    """Loss and weights of attention with only a T5 bias; tokens (B, L)."""
    bias = t5_bias(params["table"], distance, bidirectional=False)  # (1, L, S)
    scores, values = bias + np.zeros((len(tokens), 1, 12, 12)), np.eye(8)[tokens][:, None]
    output, weights = attend(scores, values, see)
    return np.mean((output[:, 0, 1:] - np.eye(8)[tokens[:, :-1]]) ** 2), weights


# %% alt="Left: falling losses of SGD with momentum and of AdamW. Middle: the learned bias, high only at distance 1. Right: attention weights, bright on the cells one left of the diagonal."
gradient, losses = value_and_grad(lambda params, tokens: look_back(params, tokens)[0]), {}
for name in ("SGD, momentum", "AdamW"):
    rng, state, losses[name] = np.random.default_rng(0), None, np.zeros(150)
    params = {"table": np.zeros((24, 1))}  # (N, H): rows 0 to 11 for distances 0 to 11
    for t in range(150):
        losses[name][t], g = gradient(params, rng.integers(0, 8, (16, 12)))
        if name == "AdamW":
            params, state = adamw(params, g, state or adamw_state(params), 0.1, weight_decay=0)
        else:
            params, state = sgd(params, clip_gradients(g, 1.0)[0], 5.0, 0.9, state)
    weights = look_back(params, places[None] % 8)[1][0, 0]
    assert params["table"].argmax() == 1 and weights[1:].diagonal().min() > 0.9
    assert not params["table"][12:].any()  # rows that were never read: a gradient of exactly 0
plots.learned_bias(losses, params["table"][:12, 0], weights)
plt.show()

# %% [markdown]
# Nobody told the bias about distance 1; the gradient did. It came back through the softmax and the mask, was summed
# over the batch and along every diagonal, and moved twelve numbers in the right direction. (The first token has
# nothing before it, so it looks at itself.)

# %% [markdown]
# ## In short
#
# - **What do all gradients cost?** Time: a training step costs about three forward runs, however many parameters there
#   are. Memory: all values of the forward run are stored. Forward mode would need a run per parameter.
#   [The cost of backpropagation](#the-cost-of-backpropagation-time-and-memory),
#   [forward mode](#exercise-1-forward-mode-with-dual-numbers).
# - **How large may the learning rate be?** For gradient descent on a bowl, less than $2/\lambda_{\max}$, two over its
#   largest curvature. For a real model try rates, and use a
#   [schedule](62_model.ipynb#training-warm-up-dropout-the-loop).
#   [Gradient descent](#gradient-descent-momentum-and-adam).
# - **How do I check a gradient?** By central differences in float64, with a step near $10^{-5}$, along one random
#   direction. Two runs check all parameters. [Gradient check](#gradient-check-by-finite-differences).
# - **What are the gradients of softmax, cross-entropy, broadcasting?** Softmax has $w\,(g-\sum gw)$. Cross-entropy has
#   $p-\mathrm{onehot}$, what the model believes minus what is true. Broadcasting has the sum over all copies.
#   [Softmax and cross-entropy](#gradients-of-softmax-layer-norm-cross-entropy-and-rope),
#   [broadcasting](#from-numbers-to-arrays-vector-jacobian-products).
# - **Where is decay in AdamW, and what does clipping do?** Decay is subtracted beside Adam's step. Inside, it would be
#   divided like the gradient, and parameters with large gradients would barely shrink. Clipping shortens all gradients
#   together so that their norm stays within a limit. [Weight decay and clipping](#weight-decay-and-clipping).
# - **How can NumPy differentiate my function as it stands?** NumPy asks an unknown argument what `np.exp` of it is,
#   by `__array_ufunc__` and `__array_function__`. A `Tensor` answers, and records what was done.
#   [Hooking into NumPy](#hooking-into-numpy-__array_ufunc__), [the walk back](#reverse-mode-a-tape-for-single-numbers).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 61` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 61_autodiff.py` checks yours.
#
# ### Exercise 1: Forward mode with dual numbers
#
# Slopes can also travel forwards. Write a class `Dual` that carries a value and its slope with respect to *one*
# parameter, through `+` and `*`. Differentiate `L` at $(2, 3)$. How many runs do $P$ parameters need?
#
# <details><summary>Hint 1</summary>
#
# $(a+b)'=a'+b'$ and $(ab)'=a'b+ab'$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Start $x$ with the slope 1 and $y$ with the slope 0; then the other way round.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It needs one run for each parameter, as with differences, but is exact. Forward mode is right for few parameters and
# many results.
#
# ```python
# class Dual:
#     def __init__(self, value, slope):
#         self.value, self.slope = value, slope
#
#     def __add__(self, other):
#         return Dual(self.value + other.value, self.slope + other.slope)
#
#     def __mul__(self, other):
#         slope = self.slope * other.value + self.value * other.slope
#         return Dual(self.value * other.value, slope)
#
# assert L(Dual(2.0, 1.0), Dual(3.0, 0.0)).slope == 64
# assert L(Dual(2.0, 0.0), Dual(3.0, 1.0)).slope == 32
# ```
#
# </details>
#
# ### Exercise 2: A rule for differences of neighbours
#
# `np.diff` is refused. Write its rule for one axis, add it to `autodiff.RULES`, and check it by finite differences.
#
# <details><summary>Hint 1</summary>
#
# $z_a=x_{a+1}-x_a$. Which $z_a$ does $x_k$ move?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# It moves $z_{k-1}$ up and $z_k$ down. That is minus the differences of $g$, which is 0 beyond its ends.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# autodiff.RULES[np.diff] = lambda z, x: (lambda g: -np.diff(g, prepend=0, append=0),)
# x, g = np.random.default_rng(0).standard_normal((2, 7))
#
# def weighted(x):
#     return np.sum(g[1:] * np.diff(x) ** 2)
#
# slope = value_and_grad(weighted)(x)[1]
# del autodiff.RULES[np.diff]
# assert np.allclose(slope, difference(weighted, x), rtol=0, atol=1e-8)
# ```
#
# </details>
#
# ### Exercise 3: The gradient of attention scores
#
# Let $o=wv$ with weights $w=\mathrm{softmax}(s)$, and $g$ the gradient with respect to $o$. Derive the gradient with
# respect to the scores. Show that the sum over keys in it needs no weights if you know $o$.
#
# <details><summary>Hint 1</summary>
#
# First to the weights: $\partial L/\partial w_{ij}=g_i\cdot v_j$. Then through the softmax.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $\sum_j w_{ij}\,(g_i\cdot v_j)=g_i\cdot\sum_j w_{ij}v_j$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# $\partial L/\partial s_{ij}=w_{ij}\,(g_i\cdot v_j-g_i\cdot o_i)$ (Dao and others, 2022). The package's rule for
# `attend` is this line.
#
# ```python
# rng = np.random.default_rng(0)
# s, v, g = rng.standard_normal((4, 6)), rng.standard_normal((6, 3)), rng.standard_normal((4, 3))
# o, w = attend(s, v)
# formula = w * (g @ v.T - np.sum(g * o, axis=1, keepdims=True))
# slope = value_and_grad(lambda s: np.sum(g * attend(s, v)[0]))(s)[1]
# assert np.allclose(slope, formula, rtol=0, atol=1e-12)
# ```
#
# </details>

# %% [markdown]
# ## Deeper
#
# ### How exact is a finite difference?
#
# Taylor's series gives the error of a difference. Taken from both sides, the even terms cancel:
#
# $$\frac{f(x+h)-f(x)}{h}\approx f'+\frac h2f'',\qquad
#   \frac{f(x+h)-f(x-h)}{2h}\approx f'+\frac{h^2}{6}f'''$$
#
# As an example take $f(x)=1/(1+x^2)$ at $x=\tfrac12$. There $f=0.8$, $f'=-0.64$, $f''=-0.256$ and $f'''=3.6864$.


# %%
def f(x):
    return 1 / (1 + x * x)


value, f_1, f_2, f_3, h = 0.8, -0.64, -0.256, 3.6864, 2.0**-8
one_sided = (f(0.5 + h) - f(0.5)) / h - f_1
central = (f(0.5 + h) - f(0.5 - h)) / (2 * h) - f_1
print(f"one-sided: off by {one_sided:.7f}, central: off by {central:.7f}")
assert np.isclose(one_sided, h / 2 * f_2, rtol=0.05, atol=0)
assert np.isclose(central, h**2 / 6 * f_3, rtol=0.01, atol=0)

# %% [markdown]
# So are smaller steps better? Only until rounding matters. A float64 stores a number to a relative error of
# $\varepsilon=2^{-53}$. Each of the two values is off by up to $\varepsilon|f|$, their difference by up to twice that.
# Divided by $2h$ it is $\varepsilon|f|/h$. Together:
#
# $$\text{error}(h)\approx\frac{h^2}{6}|f'''|+\frac{\varepsilon|f|}{h},\qquad
#   h_{\text{best}}=\left(\frac{3\,\varepsilon|f|}{|f'''|}\right)^{1/3}$$
#
# (The best step is where the error's derivative vanishes.) **Predict** the best step as a power of ten.

# %% fold="output" alt="Errors of three difference quotients over the step size, on log axes. All curves have a minimum. The central quotient in float64 has the lowest, near the predicted step; float32 rises again near a thousandth."
steps, epsilon, half = 2.0 ** -np.arange(3, 46), 2.0**-53, np.float32(0.5)
law, best = steps**2 / 6 * f_3 + epsilon * value / steps, (3 * epsilon * value / f_3) ** (1 / 3)
central = np.array([abs((f(0.5 + h) - f(0.5 - h)) / (2 * h) - f_1) for h in steps])
ratio = central / law  # each dot is luck, their size is not
print(f"best step: {best:.1e}")
assert 0.99 < ratio.max() < 1 + 1e-6 and ratio[steps < 1e-6].max() > 0.4
assert math.isclose(best / 3 * f_3, epsilon * value / best**2, rel_tol=1e-9)  # error's slope 0
one_sided = np.array([abs((f(0.5 + h) - f(0.5)) / h - f_1) for h in steps])
h = steps.astype(np.float32)
coarse = abs((f(half + h) - f(half - h)) / (2 * h) - f_1)
errors = {"one-sided, float64": one_sided, "central, float64": central, "central, float32": coarse}
assert all(e.min() < 1e-5 for e in errors.values())
plots.difference_errors(steps, errors, law, best)
plt.show()

# %% [markdown]
# From left to right, from large steps to small, each curve falls along its Taylor term, then rises as rounding takes
# over. (A dot far below the line is luck: two roundings that cancel.) In float64 central differences with a step near
# $10^{-5}$ are good to ten digits; in float32, at the best step, to about four.
#
# ## In practice
#
# **A common mistake: gradients that add up.** In PyTorch `backward()` *adds* to the `.grad` that each parameter
# keeps, so a loop must clear it before each step. Forget it, and the steps use the sum of all gradients so far. Here,
# as in JAX, gradients are results of a function, and there is nothing to clear.
#
# **Two definitions of momentum.** PyTorch's SGD keeps $u_t=\mu u_{t-1}+g_t$ and moves by $-\eta u_t$: the rate is
# outside. At a constant rate both give the same path. When the rate changes, they differ: ours carries on old
# velocities, theirs rescales them.
#
# **Defaults differ.** With $\beta_1=0.9$, Kingma and Ba suggest $\beta_2=0.999$ and $\epsilon=10^{-8}$; "Attention is
# all you need" has $0.98$ and $10^{-9}$, which are the defaults here. The first remembers a thousand steps, the second fifty. Some
# libraries decay every parameter. Here biases and gains, arrays of one axis, do not decay unless you ask for it.

# %%
for rates in ([0.02] * 40, [0.02] * 20 + [0.002] * 20):
    a = b = np.array([10.0, 1.0])
    u = w = np.zeros(2)
    for eta in rates:
        u, w = 0.9 * u - eta * curvatures * a, 0.9 * w + curvatures * b
        a, b = a + u, b - eta * w
    assert (np.abs(a - b).max() < 1e-9) == (rates[-1] == rates[0])

# %%
defaults = inspect.signature(adamw).parameters
assert (defaults["betas"].default, defaults["eps"].default) == ((0.9, 0.98), 1e-9)
for beta, steps in ((0.999, 1000), (0.98, 50)):  # the shares of older gradients, all together
    own, state = {"w": np.zeros(1)}, adamw_state({"w": np.zeros(1)})
    _, state = adamw(own, {"w": np.ones(1)}, state, 0.1, (0.9, beta))
    assert round(1 / state["v"]["w"][0]) == steps
params = {"W": np.ones((2, 2)), "gain": np.ones(2)}
nothing = {name: np.zeros_like(p) for name, p in params.items()}
moved, _ = adamw(params, nothing, adamw_state(params), 0.1, weight_decay=0.5)
assert (moved["gain"] == 1).all() and np.allclose(moved["W"], 0.95, rtol=0, atol=1e-12)

# %% [markdown]
# ## Further reading
#
# - S. Linnainmaa, master's thesis, Helsinki 1970; in English "Taylor expansion of the accumulated rounding error",
#   BIT 16, 1976: the walk back, for the study of rounding errors.
# - NumPy Enhancement Proposals [13](https://numpy.org/neps/nep-0013-ufunc-overrides.html) and
#   [18](https://numpy.org/neps/nep-0018-array-function-protocol.html): the two methods by which NumPy asks.
# - A. Karpathy, [micrograd](https://github.com/karpathy/micrograd): a tape for single numbers.
# - B. Polyak, USSR Computational Mathematics and Mathematical Physics 4, 1964: momentum. D. Kingma and J. Ba, "Adam",
#   2015, [arXiv:1412.6980](https://arxiv.org/abs/1412.6980). I. Loshchilov and F. Hutter, "Decoupled weight decay
#   regularization", 2019, [arXiv:1711.05101](https://arxiv.org/abs/1711.05101).
# - R. Pascanu and others, "On the difficulty of training recurrent neural networks", 2013,
#   [arXiv:1211.5063](https://arxiv.org/abs/1211.5063): clipping. T. Dao and others, "FlashAttention", 2022,
#   [arXiv:2205.14135](https://arxiv.org/abs/2205.14135), appendix B: the way back through attention.
