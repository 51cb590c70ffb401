# %% [markdown]
# # 24. Complex-valued word embeddings: Complex Order
#
# *What if each word has its own function of the position, and why are complex numbers the answer?*
#
# 35 minutes. Needs [20 Sinusoidal positional encoding](20_sinusoidal.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** Most encodings add the same vector to every word at a position. Complex Order
# lets each word change in its own way as it moves. Two simple requirements force the form: each
# component is a complex number that rotates at a constant speed. You derive this, and find the
# sinusoidal encoding among its special cases. Then you test when attention scores depend only on
# distance, and train a small model that learns which words should rotate. At the end you know how
# the rotary encoding (RoPE, chapter 40) differs.

# %% fold="input" alt="Paths of three components of two words in the plane, with numbered positions, and real parts as waves. Every component runs round its own circle at its own speed; one does not move, and one rotates clockwise."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import complex_order
from pe_numpy.book.plots import complex_order as plots

dog = [1.0, 0.7, 0.5], np.array([1 / 12, 1 / 6, 0]), [0, 0.8, 1.2]  # amplitude, turns, phase
bites = [0.6, 1.0, 0.8], np.array([-1 / 9, 1 / 24, 1 / 3]), [0.5, 2.5, 0]
lexicon, words, smooth = {"dog": dog, "bites": bites}, {}, {}
for name, (r, cycles, theta) in lexicon.items():
    for kept, p in ((words, np.arange(9)), (smooth, np.linspace(0, 8, 321))):
        kept[name] = complex_order(np.tile(r, (len(p), 1)), 2 * np.pi * cycles, theta, p)
plots.word_paths(words, smooth)
plt.show()

# %% [markdown]
# Each row is one word, and each of the first three panels is one component of its vector: a point in
# the plane, numbered by the word's position. The last panel shows the points' horizontal coordinates,
# the *real parts*, over the position.
#
# ## Complex numbers and rotation in one page
#
# A **complex number** is a point in the plane, $z=a+b\,\mathrm i$. Its **modulus**
# $|z|=\sqrt{a^2+b^2}$ is its length. Its **angle** $\alpha$ (or *argument*) is its direction, counted
# from the positive axis. Both together are written $z=|z|\,e^{\mathrm i\alpha}$, where
# $e^{\mathrm i\alpha}=\cos\alpha+\mathrm i\sin\alpha$ is the point of the unit circle in that
# direction. Complex numbers are added like vectors. When they are multiplied, lengths multiply and
# **angles add**. The **conjugate** $z^*=a-b\,\mathrm i$ has the opposite angle:
#
# $$\begin{gathered}r e^{\mathrm i\alpha}\cdot s e^{\mathrm i\beta}=rs\,e^{\mathrm i(\alpha+\beta)}\\[4pt]
# r e^{\mathrm i\alpha}\cdot\big(s e^{\mathrm i\beta}\big)^*=rs\,e^{\mathrm i(\alpha-\beta)},\qquad z z^*=|z|^2\end{gathered}$$
#
# So multiplying by $e^{\mathrm i\omega}$ is a rotation by the angle $\omega$. Python writes `1j` for
# $\mathrm i$.

# %%
import cmath

r, s, alpha, beta = 1.5, 0.8, 0.7, 2.0
z1, z2 = r * np.exp(1j * alpha), s * np.exp(1j * beta)
assert abs(z1 * z2 - r * s * np.exp(1j * (alpha + beta))) < 1e-12
assert abs(z1 * z2.conjugate() - r * s * np.exp(1j * (alpha - beta))) < 1e-12
assert abs(z1 * z1.conjugate() - r**2) < 1e-12
print("a quarter rotation of 2 + i:", (2 + 1j) * 1j)

# %% [markdown]
# ## Two requirements: position-free offsets and boundedness
#
# The usual encoding adds the same vector to every word at a position. Suppose that each word itself
# determines how it changes when it moves. Then it is not a vector but a *function* of the position.
# Let $g(\text{pos})$ be one component of it, at $\text{pos}=0,1,2,\dots$ Wang et al. (2020) require
# two properties.
#
# **Requirement 1: an offset does not depend on where it starts** (a *position-free offset
# transformation*). Moving the word by $t$ positions should be the same operation at every start, and
# the easiest operation is multiplication by a factor. **Requirement 2: boundedness.** However long
# the text is, the numbers stay within some limit $\delta$:
#
# $$\begin{gathered}g(\text{pos}+t)=w(t)\,g(\text{pos})\\[4pt]
#   |g(\text{pos})|\le\delta\end{gathered}\qquad\text{for all pos and } t$$


# %%
def grants(g, reach=30, limit=10.0):
    """Test both conditions on a function of positions: (condition 1, condition 2)."""
    pos = np.arange(reach)
    w = g(pos) / g(pos[:1])  # what the factors would have to be
    moves = np.array([np.abs(g(pos + t) - w[t] * g(pos)).max() for t in pos])
    return bool((moves < 1e-9).all()), bool(np.abs(g(np.arange(500))).max() < limit)


assert grants(lambda pos: 9 * np.exp(0.3j * pos)) == (True, True)  # a glimpse of the end
assert grants(lambda pos: np.exp(0.3j * pos).real) == (False, True)
assert grants(lambda pos: 1.01**pos) == (True, False)

# %% [markdown]
# The cell tests both. Here are six attempts with *real* numbers. *Predict*: which of them pass both
# tests?

# %% fold="output"
attempts = {
    "stay": lambda pos: 1.0 + 0 * pos,
    "count": lambda pos: 1 + pos / 10,
    "wave": lambda pos: np.cos(pos / 1.0),
    "grow": lambda pos: 1.1**pos,
    "fade": lambda pos: 0.9**pos,
    "flip": lambda pos: (-1.0) ** pos,
}
print("meet both:", [name for name, g in attempts.items() if grants(g) == (True, True)])
assert [grants(attempts[name]) for name in ("count", "wave")] == [(False, False), (False, True)]
print("what fading leaves after 100 positions:", f"{0.9**100:.5f}")

# %% [markdown]
# Three pass, and none is useful: *stay* carries no position, *flip* distinguishes only odd from even,
# *fade* forgets. The *wave* fails. Its next value depends on whether it is rising or falling, so no
# single factor carries it on. The sine shows which: cosine and sine together are a point on a circle,
# and the next point is a rotation away. That takes two real numbers, or one complex number.
#
# ## The solutions: rotations that may fade
#
# Take $g$ complex, and let $w(1)$ be any complex number. Move by $t_1$ and then by $t_2$, or by
# $t_1+t_2$ in one step: the word arrives at the same position. So $w(t)=w(1)\,w(t-1)=\dots=w(1)^t$.
# Call $z_1=w(1)$ and $z_2=g(0)$, and move from 0 to $\text{pos}$:
#
# $$\begin{gathered}w(t_1)\,w(t_2)=w(t_1+t_2)\\[4pt]
#   g(\text{pos})=w(\text{pos})\,g(0)=z_2\,z_1^{\text{pos}}\end{gathered}$$

# %%
w1, start, pos = cmath.rect(0.98, 0.4), cmath.rect(0.7, 1), np.arange(61)  # modulus and angle
g = [start]
for _ in pos[1:]:
    g.append(w1 * g[-1])  # condition 1 with t = 1, and nothing else
g = np.array(g)
w = g[:31] / g[0]  # w(t), measured from the start
assert np.allclose([g[25 + t] / g[25] for t in range(31)], w, rtol=1e-9, atol=0)  # and from 25
for t1, t2 in np.ndindex(15, 15):
    assert cmath.isclose(w[t1] * w[t2], w[t1 + t2], rel_tol=1e-9)
assert np.allclose(g, start * w1**pos, rtol=0, atol=1e-12)

# %% [markdown]
# Moduli multiply, so $|g(\text{pos})|=|z_2|\,|z_1|^{\text{pos}}$. This is bounded if and only if
# $|z_1|\le1$ (or $z_2=0$, and the component is always 0). Write both by modulus and angle,
# $z_1=\rho\,e^{\mathrm i\omega}$ and $z_2=re^{\mathrm i\theta}$. Angles add, so in $\text{pos}$ steps
# the angle grows by $\omega\,\text{pos}$:
#
# $$g(\text{pos})=r\,\rho^{\text{pos}}\,e^{\mathrm i(\omega\,\text{pos}+\theta)},\qquad \rho\le1$$
#
# This is claim 1 of Wang et al.: these functions meet the requirements, and no others do.

# %%
rho, omega = np.abs(w1), np.angle(w1)
r, theta = np.abs(start), np.angle(start)
assert np.allclose(np.abs(g), r * rho**pos, rtol=0, atol=1e-12)
assert np.allclose(g, r * rho**pos * np.exp(1j * (omega * pos + theta)), rtol=0, atol=1e-12)
assert (np.abs(g) <= r + 1e-12).all()  # bounded, since rho = 0.98
assert grants(lambda p: cmath.rect(1.02, 0.4) ** p) == (True, False)

# %% alt="Three paths of points in the plane. With a factor shorter than 1, the path spirals inwards; with one of length 1, it runs round a circle; with a longer one, it spirals outwards."
turn = np.exp(2j * np.pi / 12)
paths = {
    "$|z_1|=0.93$: fades": (0.93 * turn) ** np.arange(40),
    "$|z_1|=1$: rotates": turn ** np.arange(40),
    "$|z_1|=1.04$: grows": (1.04 * turn) ** np.arange(40),
}
plots.powers_in_plane(paths, numbered=6)
plt.show()

# %% [markdown]
# The authors keep $\rho=1$, because a constraint is a nuisance in training. There is another reason.
# Where a text begins is a matter of counting, so let the word also move to the *left*, without limit:
# $t$ may be negative. Then $|z_1|^t$ is bounded in both directions if and only if $|z_1|=1$. What
# remains is a rotation of constant speed, with **amplitude** $r$, **frequency** $\omega$ in radians
# per position, and **phase** $\theta$:
#
# $$g(\text{pos})=r\,e^{\mathrm i(\omega\,\text{pos}+\theta)}$$

# %%
both_ways = np.arange(-400, 401)
for rho in (0.98, 1.0, 1.02):
    largest = (rho ** both_ways.astype(float)).max()
    print(f"modulus {rho}: {largest:.0f}")
    assert (largest == 1) == (rho == 1)
turning = r * np.exp(1j * (omega * both_ways + theta))
assert np.allclose(turning, start * (w1 / abs(w1)) ** both_ways, rtol=0, atol=1e-12)
assert np.allclose(np.abs(turning), r, rtol=1e-12, atol=0)

# %% [markdown]
# This *assumed* one component at a time, and a factor as the operation. If the operation may mix
# components, it is a matrix. [Chapter 22](22_recurrent.ipynb) asks which matrices stay bounded, and
# finds rotations again.
#
# ## Complex Order: amplitude, frequency and phase
#
# Each word has an amplitude, a frequency and a phase for each of $D$ components. These are three
# vectors $r$, $\omega$, $\theta$, none of which depends on a position. Equation (5) of the paper, for
# one word:
#
# $$f(\text{pos})=\big[\,r_1e^{\mathrm i(\omega_1\text{pos}+\theta_1)},\;
#   r_2e^{\mathrm i(\omega_2\text{pos}+\theta_2)},\;\dots,\;
#   r_De^{\mathrm i(\omega_D\text{pos}+\theta_D)}\,\big]$$
#
# In the figure at the top each component stays on its circle. The word determines the radius, and the
# position moves the point round. Component 3 of *dog* has frequency 0, component 1 of *bites* a
# negative frequency.


# %%
def complex_order_by_loops(amplitude, frequency, phase, positions):
    L, D = len(amplitude), len(amplitude[0])
    z = np.zeros((L, D), complex)
    for token in range(L):
        for c in range(D):
            angle = frequency[token][c] * positions[token] + phase[token][c]
            z[token, c] = amplitude[token][c] * (np.cos(angle) + 1j * np.sin(angle))
    return z


quarter = [[np.pi / 2]] * 3
turns = complex_order_by_loops([[2.0]] * 3, quarter, quarter, [0, 1, 2])
assert np.allclose(turns[:, 0], [2j, -2, -2j], rtol=0, atol=1e-15)
for name, (amplitude, *_) in lexicon.items():
    assert np.allclose(np.abs(words[name]), amplitude, rtol=0, atol=1e-12)  # on its circle

# %% [markdown]
# The package's function takes the vectors that were looked up for the tokens; what words share need
# not be repeated. (It computes token vectors, like the encodings of chapters 20 to 22. They are
# complex, so it does not fit into this book's Transformer, whose numbers are real.)

# %%
from pe_numpy.book.show import show_source

show_source(complex_order)
rng = np.random.default_rng(0)
r, omega, theta = rng.standard_normal((3, 5, 4))  # five tokens, four components
positions = np.array([0, 1, 2, 7, 100])
z = complex_order(r, omega, theta, positions)
slow = complex_order_by_loops(r, omega, theta, positions)
assert z.shape == (5, 4) and np.allclose(z, slow, rtol=0, atol=1e-12)

# %% [markdown]
# How far does one step move a component? The frequency shows *how sensitive the word is to its
# position*, and it can be learned for each word. At $\omega=2\pi$ the component does not move: at
# whole positions only $\omega$ up to whole turns counts, and the fastest is $\omega=\pi$, where it
# flips.
#
# $$|g(\text{pos}+1)-g(\text{pos})|=r\,|e^{\mathrm i\omega}-1|=2r\,\Big|\sin\frac{\omega}{2}\Big|$$

# %%
for omega in (0.0, 0.1, np.pi / 3, np.pi, 2 * np.pi):
    steps = np.diff(complex_order(np.full((9, 1), 1.5), omega, 0.4, np.arange(9))[:, 0])
    assert np.allclose(np.abs(steps), 3 * abs(np.sin(omega / 2)), rtol=0, atol=1e-12)
    print(f"omega {omega:.2f}: {abs(steps[0]):.2f}")

# %% [markdown]
# To save parameters, the paper sets all phases to a constant such as 0, and shares frequencies. They
# are shared among all words (*word-sharing*: each component has its frequency), or among the
# components of a word (*dimension-sharing*). With $|W|$ words this takes $|W|D+D$ or $|W|D+|W|$
# parameters. (The paper has the two the other way round.)

# %%
V, D = 10_000, 128
amplitude = np.ones((V, D))
for name, shape, count in (("word", (1, D), V * D + D), ("dimension", (V, 1), V * D + V)):
    frequency = np.random.default_rng(4).standard_normal(shape)
    z = complex_order(amplitude, frequency, 0.0, np.full(V, 7))  # all words at one position
    alike = [bool(np.abs(z - first).max() < 1e-12) for first in (z[:1], z[:, :1])]
    assert alike == [name == "word", name == "dimension"]  # all words; all components of a word
    assert amplitude.size + frequency.size == count
    print(f"{name}-sharing: {count:,} parameters")

# %% [markdown]
# Word-sharing adds only $D$ numbers in all to the $|W|D$ numbers of ordinary word vectors.
#
# ## Special cases: word vectors, sinusoidal encoding, RoPE
#
# **No frequency, no phase**: $\omega=\theta=0$ gives the word vector $r$ at every position. **All
# words alike**: take $r=1$, $\theta=0$ and the frequencies $\omega_c=10000^{-c/D}$, $c=0,\dots,D-1$,
# of [chapter 20](20_sinusoidal.ipynb). Then the word is gone, and the rest is the sinusoidal encoding
# of width $2D$, with sines as imaginary and cosines as real parts:
#
# $$\begin{aligned}\mathrm{Im}\,e^{\mathrm i\omega_c\text{pos}}&=\mathrm{PE}_{2c}(\text{pos})\\[4pt]
# \mathrm{Re}\,e^{\mathrm i\omega_c\text{pos}}&=\mathrm{PE}_{2c+1}(\text{pos})\end{aligned}$$

# %%
from pe_numpy import rope, rope_frequencies, sinusoidal

D, p = 4, np.arange(50)
pure = complex_order(np.ones((50, D)), 10000.0 ** (-np.arange(D) / D), 0.0, p)
assert np.allclose(pure.imag, sinusoidal(p, 2 * D)[:, 0::2], rtol=0, atol=1e-12)
assert np.allclose(pure.real, sinusoidal(p, 2 * D)[:, 1::2], rtol=0, atol=1e-12)
assert np.array_equal(complex_order(r, 0.0, 0.0, positions), r.astype(complex))

# %% [markdown]
# One difference from the usual use of the sinusoidal encoding remains: there the encoding is *added*
# to the word; here word and encoding are *multiplied*, component by component. If words share their
# frequencies, the rotation is RoPE's ([chapter 40](40_rope_derived.ipynb)): a pair of numbers
# $(x_{2c},x_{2c+1})$ of the word becomes the complex number $r_ce^{\mathrm i\theta_c}$. RoPE itself
# rotates later, after the projection to queries and keys.
#
# $$r_ce^{\mathrm i(\omega_c\text{pos}+\theta_c)}=(x_{2c}+\mathrm i\,x_{2c+1})\,e^{\mathrm i\omega_c\text{pos}}$$

# %%
x, at = rng.standard_normal((5, 8)), np.array([3, 4, 5, 6, 7])
pairs = x[:, 0::2] + 1j * x[:, 1::2]
turned = complex_order(np.abs(pairs), rope_frequencies(8), np.angle(pairs), at)
by_hand = pairs * np.exp(1j * rope_frequencies(8) * at[:, None])
assert np.allclose(turned, by_hand, rtol=0, atol=1e-12)
assert np.allclose(turned.real, rope(x, at)[:, 0::2], rtol=0, atol=1e-12)
assert np.allclose(turned.imag, rope(x, at)[:, 1::2], rtol=0, atol=1e-12)

# %% [markdown]
# ## Attention scores of rotated words
#
# How do we multiply a query vector $q$ at position $m$ by a key vector $k$ at position $n$? For
# complex vectors the inner product takes the conjugate of one side (the **Hermitian product**), so
# that a vector times itself is its squared length. Let the query have amplitudes $r_c$ and phases
# $\theta_c$, the key $s_c$ and $\phi_c$, and let both *share* the frequencies $\omega_c$. Angles
# subtract, and the score depends on the distance $m-n$. *A common mistake* is to forget the
# conjugate. Then the angles add, and the score depends on the *sum* of the two positions:
#
# $$\begin{aligned}\sum_{c=1}^{D} q_{m,c}\,k_{n,c}^*&=\sum_{c=1}^{D} r_c s_c\;e^{\mathrm i(\omega_c(m-n)+\theta_c-\phi_c)}\\[4pt]
# \sum_{c=1}^{D} q_{m,c}\,k_{n,c}&=\sum_{c=1}^{D} r_c s_c\;e^{\mathrm i(\omega_c(m+n)+\theta_c+\phi_c)}\end{aligned}$$
#
# (The authors' code for text classification,
# [`attention_complex.py`](https://github.com/iclr-complex-order/complex-order/blob/4c4ec24/TEXT%20CLASSIFICATION/Transformer/attention_complex.py)
# of iclr-complex-order/complex-order, leaves the conjugate out; the paper's equation (14) has it.)

# %%
L = 24
r, theta, s, phi = (np.broadcast_to(v, (L, D)) for v in np.random.default_rng(1).random((4, D)) * 2)
shared, p = np.array([0.6, 0.3, 0.12, 0.05]), np.arange(L)
q, k = complex_order(r, shared, theta, p), complex_order(s, shared, phi, p)
z, without = q @ k.conj().T, q @ k.T  # (L, L)
for sign, product in ((-1, z), (1, without)):
    angles = shared * (p[:, None] + sign * p)[..., None] + theta + sign * phi  # (L, L, D)
    assert np.allclose(product, (r * s * np.exp(1j * angles)).sum(axis=-1), rtol=0, atol=1e-12)
q0, k0 = (
    np.stack([a * np.cos(b), a * np.sin(b)], axis=-1).reshape(L, 2 * D)
    for a, b in ((r, theta), (s, phi))
)
assert np.allclose(z.real, rope(q0, p, shared) @ rope(k0, p, shared).T, rtol=0, atol=1e-12)

# %% [markdown]
# The real part equals `rope` of the same vectors. But if every word has **its own frequencies**,
# $\omega_c$ for the query and $\omega'_c$ for the key, the angle is $\omega_c m-\omega'_c n$. It
# depends on both positions, not only on their distance or their sum. Only where a word is compared
# with *itself* does the distance remain.

# %% alt="Maps of scores over query and key positions, and below them the scores over the distance. With the conjugate, stripes run along the diagonals and all points are on one curve. Without it, or with separate frequencies for each word, they form a cloud."
own = complex_order(s, 1.3 * shared + 0.05, phi, p)
z_own, z_self = q @ own.conj().T, q @ q.conj().T
for name, field in (("shared", z), ("no conjugate", without), ("own", z_own), ("itself", z_self)):
    moved = np.abs(field[5:, 5:] - field[:-5, :-5]).max()  # both positions moved by 5
    assert (moved < 1e-12) == (name in ("shared", "itself"))
fields = {
    "with the conjugate": z.real,
    "without the conjugate": without.real,
    "own frequencies": z_own.real,
}
plots.scores_and_conjugate(fields)
plt.show()

# %% [markdown]
# On the left is one curve: a score for each distance. In the middle the stripes run the other way,
# and over the distance there is a cloud. On the right the stripes are slanted, and again distance
# does not decide by itself. The paper's own setting is this last one. Requirement 1 is about one word
# that moves, and promises nothing about *two*.
#
# ### Rotate before or after the projection? (second reading)
#
# Attention first multiplies word vectors by trained matrices, $W^Q$ and $W^K$. In the complex
# Transformer of the paper words are rotated *before* that. RoPE rotates *after* it. Take the first
# order. With $M=W^Q(W^K)^\dagger$ (the dagger is the conjugate transpose) a row vector $x$ at $m$ and
# $y$ at $n$ score
#
# $$z_{mn}=\sum_{a,b} x_a\,M_{ab}\,y_b^*\;e^{\mathrm i(\omega_a m-\omega_b n)}$$
#
# *Predict*: with shared frequencies, does this depend only on $m-n$?


# %% fold="output"
def complex_normal(rng, *shape):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)


rng = np.random.default_rng(2)
x, y, W_q, W_k = (complex_normal(rng, *shape) for shape in ((D,), (D,), (D, D), (D, D)))
turns = np.exp(1j * shared * np.arange(200)[:, None])  # a row for each position
early = (x * turns @ W_q) @ (y * turns @ W_k).conj().T  # rotate, then project
late = (x @ W_q * turns) @ (y @ W_k * turns).conj().T  # project, then rotate
M = W_q @ W_k.conj().T
terms = x[:, None] * M * y.conj() * np.exp(1j * (shared[:, None] * 7 - shared * 3))
assert abs(early[7, 3] - terms.sum()) < 1e-12
moved = [abs(score[107, 103] - score[7, 3]) for score in (early, late)]
print(f"change when both move by 100: rotate first {moved[0]:.2f}, project first {moved[1]:.2f}")
assert not np.isclose(moved[0], 0, rtol=0, atol=0.1) and np.isclose(moved[1], 0, rtol=0, atol=1e-9)

# %% [markdown]
# It does not: $M$ pairs component $a$ with component $b$, and these rotate at different speeds. Terms
# with $\omega_a=\omega_b$ depend only on the distance. RoPE rotates *after* the projection, so its
# scores depend on the distance for all matrices.
#
# ### Modulus or real part before the softmax? (second reading)
#
# A softmax needs real scores. The paper takes the modulus (equation (14); its $n$ we read as the
# width $D$, as the authors' code does), the package's function the real part:
#
# $$e_{mn}=\sqrt{\frac{(\mathrm{Re}\,z)^2+(\mathrm{Im}\,z)^2}{D}}=\frac{|z|}{\sqrt D}
# \qquad\text{against}\qquad \frac{\mathrm{Re}\,z}{\sqrt D}$$
#
# *Predict*: how does the modulus depend on the distance if there is one component, $D=1$? And what is
# it for a key that is the exact opposite of the query?

# %% fold="output" alt="Real part and modulus of a Hermitian product over the distance, for one, two and eight components. With one component, the modulus is a flat line while the real part is a wave. No modulus falls below zero."
curves, apart = {}, np.arange(41)
for width in (1, 2, 8):
    speed = rope_frequencies(2 * width, base=100.0)
    z_n = np.exp(1j * apart[:, None] * speed).sum(axis=1)  # all amplitudes 1, phases 0
    real, modulus = z_n.real / np.sqrt(width), np.sqrt((z_n.real**2 + z_n.imag**2) / width)
    against = np.cos(apart[:, None, None] * (speed[:, None] - speed))  # one against another
    assert np.allclose(width * modulus**2, against.sum(axis=(1, 2)), rtol=0, atol=1e-9)
    assert np.allclose(real * width**0.5, np.cos(apart[:, None] * speed).sum(1), rtol=0, atol=1e-12)
    curves[f"{width} component{'s' if width > 1 else ''}"] = real, modulus
assert np.ptp(curves["1 component"][1]) < 1e-12 < 1.9 < np.ptp(curves["1 component"][0])
same, opposite = x @ x.conj(), x @ (-x).conj()
assert abs(same) == abs(opposite) and opposite.real < 0 < same.real
plots.real_and_modulus(curves)
plt.show()

# %% [markdown]
# One component rotates as a whole, and its modulus does not change, so position is lost. With more
# components the modulus depends on how far they have rotated *against each other*. It can't be
# negative, so no key scores below a key that is orthogonal to the query, and a key and its opposite
# score alike. The real part has none of these properties; it is RoPE's score, except for the divisor.
#
# Is a complex Transformer a new kind of machine? A complex matrix is a real one of twice the size
# with a pattern (half as many free numbers). This attention is ordinary attention between vectors
# that contain first the real, then the imaginary parts:
#
# $$\begin{gathered}z=Wx,\quad W=A+\mathrm iB\quad\iff\quad
# \begin{pmatrix}\mathrm{Re}\,z\\ \mathrm{Im}\,z\end{pmatrix}=\begin{pmatrix}A&-B\\ B&A\end{pmatrix}\begin{pmatrix}\mathrm{Re}\,x\\ \mathrm{Im}\,x\end{pmatrix}\\[4pt]
#   \mathrm{Re}(qk^\dagger)=\mathrm{Re}\,q\cdot\mathrm{Re}\,k+\mathrm{Im}\,q\cdot\mathrm{Im}\,k\end{gathered}$$

# %%
from pe_numpy import attention, complex_attention


def reals(v):
    return np.concatenate([v.real, v.imag], axis=-1)


W, v, *z_qkv = (complex_normal(rng, *n) for n in ((3, 4), (4,), (3, 4), (5, 4), (5, 4)))
pattern = np.block([[W.real, -W.imag], [W.imag, W.real]])
assert np.allclose(pattern @ reals(v), reals(W @ v), rtol=0, atol=1e-12)
output, weights = complex_attention(*z_qkv)
as_real = np.hstack(attention(*map(reals, z_qkv), scale=1 / np.sqrt(4)))
assert np.allclose(as_real, np.hstack([reals(output), weights]), rtol=0, atol=1e-12)
hermitian, plain = z_qkv[0] @ z_qkv[1].conj().T, reals(z_qkv[0]) @ reals(z_qkv[1]).T
assert np.allclose(hermitian.real, plain, rtol=0, atol=1e-12)

# %% [markdown]
# The paper compares complex versions of fastText, LSTM, CNN and Transformer. Its appendix C adds that
# real and imaginary parts may as well be concatenated and given to any real network. Here is the
# layer:

# %%
show_source(complex_attention)
z_q, z_k, z_v = z_qkv
for m in range(3):
    score = [sum(z_q[m][c] * z_k[n][c].conjugate() for c in range(4)).real for n in range(5)]
    w = np.exp(score / np.sqrt(4)) / np.exp(score / np.sqrt(4)).sum()
    assert np.allclose(output[m], sum(w[n] * z_v[n] for n in range(5)), rtol=0, atol=1e-12)

# %% [markdown]
# ## A bag of words with learned frequencies
#
# Who bites? Take sentences of three words, like "dog bites man", from eight nouns and four verbs. The
# model is a **bag of words** (fastText is one): the mean of the three word vectors, then a linear
# readout of the subject. First *add* a positional encoding of any kind. The mean of the sums is the
# sum of the means,
#
# $$\frac13\sum_{\text{pos}}\big(x_\text{pos}+p_\text{pos}\big)
#   =\frac13\sum_{\text{pos}}x_\text{pos}+\frac13\sum_{\text{pos}}p_\text{pos}$$
#
# and the order is lost: a sentence and its mirror image have the same vector. At best the model
# answers "dog or man, I can't say", half of the probability each, and the loss can't fall below
# $\log2$. (Inside attention an added encoding is not lost, [chapter 30](30_expansion.ipynb).)

# %%
from itertools import combinations, permutations

sentences = np.array([(a, 8 + v, b) for a, b in permutations(range(8), 2) for v in range(4)])
kinds = [(a, 8 + v, b) for a, b in combinations(range(8), 2) for v in range(4)]
chosen = np.random.default_rng(0).permutation(len(kinds))[: len(kinds) // 4]
test_kinds = {kinds[n] for n in chosen}  # with their mirror images
held_out = np.array([(min(a, b), v, max(a, b)) in test_kinds for a, v, b in sentences])
x, code = rng.standard_normal((12, 6)), rng.standard_normal((3, 6))
bag = (x[sentences] + code).mean(axis=1)
mirror = (x[sentences[:, [2, 1, 0]]] + code).mean(axis=1)
assert np.allclose(bag, x[sentences].mean(axis=1) + code.mean(axis=0), rtol=0, atol=1e-12)
assert np.allclose(bag, mirror, rtol=0, atol=1e-12)
print(len(sentences), "sentences,", int(held_out.sum()), "held out; log 2 =", f"{np.log(2):.3f}")

# %% [markdown]
# With Complex Order the same word is rotated differently at position 2 than at position 0. The
# readout is a Hermitian product with one complex vector $u_y$ per answer $y$, which in real numbers
# is a matrix product:
#
# $$\begin{aligned}h&=\frac13\sum_{\text{pos}}f_\text{pos}(\text{pos}),\qquad
# \text{logit}_y=\mathrm{Re}\sum_{c} h_c\,u_{y,c}^*\\[4pt]
# &=\sum_{c}\mathrm{Re}\,h_c\,\mathrm{Re}\,u_{y,c}+\mathrm{Im}\,h_c\,\mathrm{Im}\,u_{y,c}\end{aligned}$$
#
# Here $f_\text{pos}$ belongs to the word at $\text{pos}$.


# %%
def turning_bag(params, words):  # real parts, then imaginary parts: (sentences, 2 D)
    r, angle = params["r"][words], params["omega"][words] * np.arange(3)[:, None]
    parts = [(r * np.cos(angle)).mean(axis=1), (r * np.sin(angle)).mean(axis=1)]
    return np.concatenate(parts, axis=-1)


def adding_bag(params, words):
    return (params["x"][words] + params["p"]).mean(axis=1)


(r, omega), U = rng.standard_normal((2, 12, 5)), complex_normal(rng, 8, 5)
h = complex_order(r[sentences], omega[sentences], 0.0, np.arange(3)).mean(axis=1)
logits = turning_bag({"r": r, "omega": omega}, sentences) @ reals(U).T
assert np.allclose(logits, (h @ U.conj().T).real, rtol=0, atol=1e-12)
assert np.allclose(adding_bag({"x": x, "p": code}, sentences), bag, rtol=0, atol=1e-12)

# %% [markdown]
# Both models have 32 real numbers per word and the same training. [Chapter 61](61_autodiff.ipynb)
# explains `value_and_grad` and `adamw`.

# %%
from pe_numpy import adamw, adamw_state, cross_entropy, value_and_grad


def fit(bag, params):
    def loss(p, words):
        return cross_entropy(bag(p, words) @ p["U"], words[:, 0])

    step, state, losses = value_and_grad(loss), adamw_state(params), []
    for _ in range(160):
        value, gradient = step(params, sentences[~held_out])
        params, state = adamw(params, gradient, state, 0.02, weight_decay=0.0)
        losses.append(float(value))
    answers = (bag(params, sentences[held_out]) @ params["U"]).argmax(axis=1)
    return params, losses, np.mean(answers == sentences[held_out, 0])


# %% [markdown]
# All frequencies *start at 0*, so no word rotates. *Predict*: which words will learn to rotate, nouns
# or verbs?

# %% fold="output" alt="Left: the loss of the added encoding stops at log 2; that of complex order falls almost to zero. Right: bars of the learned speed of each word, with a dot for each run. On average, all nouns have learned to rotate faster than the verbs."
runs = []
for seed in range(5):
    rng = np.random.default_rng(seed)
    U, r = rng.standard_normal((32, 8)) / 10, rng.standard_normal((12, 16))
    runs.append(fit(turning_bag, {"r": r, "omega": np.zeros((12, 16)), "U": U}))
x, code = rng.standard_normal((12, 32)), rng.standard_normal((3, 32))
_, adding_losses, half = fit(adding_bag, {"x": x, "p": code, "U": U})
assert half <= 0.5 and min(adding_losses) > np.log(2) - 1e-9
assert all(right == 1 and losses[-1] < 0.05 for _, losses, right in runs)
names = "dog man cat boy girl bird fox cow bites sees hears calls".split()
speed = np.array([np.abs(params["omega"]).mean(axis=1) for params, *_ in runs])  # (runs, words)
assert (speed[:, :8].mean(axis=1) > 1.3 * speed[:, 8:].mean(axis=1)).all()  # in each run
losses = {"added encoding": adding_losses, "complex order": runs[0][1]}
plots.learned_turns(losses, np.log(2), names, speed, nouns=8)
plt.show()

# %% [markdown]
# *Proved*: the added encoding can't pass 50% in this model. *Measured*: Complex Order answers all
# held-out sentences, from frequencies that began at 0. The nouns' position decides the answer, and
# the verbs are always in the middle. In each of five runs the nouns have learned to rotate faster on
# average than the verbs. The bars are means, the dots single runs. The verbs rotate too, because
# nothing in the loss stops them.

# %% [markdown]
# ## In short
#
# - **Why do complex numbers come out?** A word should move by a factor that does not depend on its
#   start, and its numbers should stay bounded. Only complex rotations
#   $r\,e^{\mathrm i(\omega\,\text{pos}+\theta)}$, which may fade, meet both.
#   [Derivation](#the-solutions-rotations-that-may-fade).
# - **What is stored for a word?** For each of $D$ components, an amplitude $r$, a frequency $\omega$
#   and a phase $\theta$, but no position. That is $3D$ numbers, fewer if words share frequencies.
#   [Complex Order](#complex-order-amplitude-frequency-and-phase).
# - **Do its scores depend on the distance?** Yes if all words share their frequencies and one side is
#   conjugated. No if each word has its own frequencies. [Scores](#attention-scores-of-rotated-words).
# - **How does it differ from RoPE?** Complex Order rotates words *before* the projections, which mix
#   components of different speed. RoPE rotates queries and keys *after* them.
#   [Before or after](#rotate-before-or-after-the-projection-second-reading).
# - **Does the softmax take the modulus or the real part?** The paper takes the modulus, which can't
#   be negative and, with one component, loses the distance. The package takes the real part.
#   [Modulus or real part](#modulus-or-real-part-before-the-softmax-second-reading).
# - **Does NumPy conjugate for me?** Not in `@`, `np.dot` and `np.einsum`. `np.vdot` and `np.vecdot`
#   conjugate their first argument. [In practice](#in-practice).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 24` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 24_complex_order.py` checks yours.
#
# ### Exercise 1: Real and bounded
#
# Prove that over the *real* numbers the two requirements, with moves to the left allowed, leave only
# *stay* and *flip*. Then find both among the complex solutions.
#
# <details><summary>Hint 1</summary>
#
# Up to $|z_1|=1$ the derivation does not use that the numbers are complex.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Which real numbers have modulus 1?
#
# </details>
#
# <details><summary>Solution</summary>
#
# $g(\text{pos})=z_2z_1^{\text{pos}}$ with $|z_1|=1$ and $z_1$ real, so $z_1=1$ or $z_1=-1$. They are
# the frequencies 0 and $\pi$.
#
# ```python
# p = np.arange(6)
# z = complex_order(np.ones((6, 2)), [0.0, np.pi], 0.0, p)
# assert np.allclose(z[:, 0], 1, rtol=0, atol=1e-12)
# assert np.allclose(z[:, 1], (-1.0) ** p, rtol=0, atol=1e-12)
# ```
#
# </details>
#
# ### Exercise 2: Fading scores
#
# Keep $\rho=0.9$ instead of 1. Show that the Hermitian product with shared frequencies no longer
# depends only on the distance. What does it fade with?
#
# <details><summary>Hint 1</summary>
#
# Moduli multiply: what is $\rho^m\,\rho^n$?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# A decay with the *distance* would need $\rho^m$ on one side and $\rho^{-n}$ on the other.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It fades with the sum $m+n$, so two neighbours far into the text score almost 0. A factor that
# shrinks for queries and *grows* for keys gives a decay with the distance (for $m\ge n$), at the
# price of unbounded keys. So the distance also needs $\rho=1$.
#
# ```python
# fading = lambda m: (0.9 * np.exp(0.3j)) ** m
# near = fading(3) * np.conj(fading(2))
# far_in = fading(103) * np.conj(fading(102))
# assert abs(far_in) < 0.01 * abs(near)
# assert cmath.isclose(far_in / near, 0.9**200)
# growing = lambda n: (np.exp(0.3j) / 0.9) ** n
# assert cmath.isclose(fading(103) * np.conj(growing(102)), fading(3) * np.conj(growing(2)))
# ```
#
# </details>
#
# ### Exercise 3: Which projections keep the distance?
#
# Words share the frequencies $(1, 1, 0.1)$ and rotate *before* the projections. Find a matrix
# $M=W^Q(W^K)^\dagger$ that is not diagonal and for which the score still depends only on the
# distance. How many of its nine entries may differ from 0?
#
# <details><summary>Hint 1</summary>
#
# Look at the exponent in the sum over $a$ and $b$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $M_{ab}$ may differ from 0 where $\omega_a=\omega_b$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Components 1 and 2 rotate alike and may be mixed, and component 3 is separate. This gives $4+1=5$
# entries. In general there is one block for each distinct frequency.
#
# ```python
# w = np.array([1.0, 1.0, 0.1])
# allowed = np.isclose(w[:, None], w, rtol=0, atol=1e-12)
# assert allowed.sum() == 5
# rng = np.random.default_rng(3)
# M, a, b = complex_normal(rng, 3, 3), complex_normal(rng, 3), complex_normal(rng, 3)
#
# def score(M, m, n):
#     return (a * np.exp(1j * w * m)) @ M @ (b * np.exp(1j * w * n)).conj()
#
# assert cmath.isclose(score(M * allowed, 9, 4), score(M * allowed, 59, 54))
# assert abs(score(M, 9, 4) - score(M, 59, 54)) > 0.01
# ```
#
# </details>
#
# ## In practice
#
# **NumPy won't conjugate for you.** `@`, `np.dot`, `np.inner` and `np.einsum` multiply complex
# numbers as they are, and `.T` is the transpose without conjugation. `np.vdot` and `np.vecdot` do
# conjugate, their *first* argument. The mistake raises no error: shapes fit, and at position 0, with
# real vectors, the numbers are even equal.

# %%
a, b = complex_normal(rng, 2, 6)
assert cmath.isclose(np.vdot(a, b), a.conj() @ b) and not cmath.isclose(a @ b, np.vdot(a, b))
assert cmath.isclose(np.vecdot(a, b), a.conj() @ b) and cmath.isclose(a @ b, np.dot(a, b))
assert cmath.isclose(a @ b, np.einsum("c,c", a, b)) and cmath.isclose(a @ b, np.inner(a, b))
start = complex_order(np.ones((2, 3)), shared[:3], 0.0, [0, 0])
assert np.array_equal(start @ start.T, start @ start.conj().T)  # position 0 hides it

# %% [markdown]
# **Dropout on angles.** Dropout sets a share of the numbers to 0 in training and enlarges the rest,
# so that their mean does not change. The authors' code for text classification
# ([`model_transformer/Complex_order.py`](https://github.com/iclr-complex-order/complex-order/blob/4c4ec24/TEXT%20CLASSIFICATION/Transformer/model_transformer/Complex_order.py))
# applies it to the *angles*. But those that survive rotate faster in training than in use, the others
# not at all.
#
# **Phases that never train.** The listing in the paper's appendix C takes the phases modulo $2\pi$ at
# each call and stores the result as a *new* parameter object. An optimiser that was given the old
# object continues to update that one. Reduce angles where they are used.
#
# **Normalised twice.** Appendix B of the paper prints the weights as the softmax of
# $e_{ij}/\sum_i e_{ij}$. The softmax normalises by itself, and over the keys.

# %% [markdown]
# ## Further reading
#
# - Wang et al. 2020, "Encoding word order in complex embeddings" (arXiv:1912.12333): section 2.2 for
#   the two properties and the proof, appendix B for the complex layers, appendix D for learned
#   frequencies.
# - Trabelsi et al. 2017, "Deep Complex Networks" (arXiv:1705.09792): complex layers in general.
# - Su et al. 2021, "RoFormer" (arXiv:2104.09864): the rotation moved behind the projections.
