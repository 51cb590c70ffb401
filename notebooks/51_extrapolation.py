# %% [markdown]
# # 51. Length extrapolation: why models fail past their training length
#
# *How can a model be given a longer sequence, and what does length do to attention?*
#
# 40 minutes. Needs [50 RoPE scaling: position interpolation, NTK, YaRN, LongRoPE](50_scaling.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A language model that was trained on short texts often fails on longer ones.
# There are two reasons: the positions are new, and each word has more words to choose from. You first
# write positions as digits of a number. Digits show what the common methods do, and RoPE turns out to
# be such a number system. Then you measure how attention flattens over more words, derive a factor
# that counteracts it, and compare it with a window that limits attention.

# %% fold="input" alt="Entropy over the number of keys for normal scores and for a needle: unscaled, divided by ln n, and multiplied by ln n over ln of the trained length. Division is close to ln n. Multiplication bends the curve of normal scores a little and that of a needle fully."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import attention_entropy, log_n_scale, softmax
from pe_numpy.book.plots import extrapolation as plots

lengths = 2 ** np.arange(7, 16)
kinds = {"normal scores": lambda n: np.random.default_rng(n).standard_normal((4, n)),
         "a needle, $a = 1.25$": lambda n: np.eye(1, n) * 1.25 * np.log(512)}  # fmt: skip
ways = {"equal scores: ln n": lambda n: 0, "divided by ln n": lambda n: 1 / np.log(n),
        "plain": lambda n: 1, "times ln n / ln $L_0$": lambda n: log_n_scale(n, 512)}  # fmt: skip
curves = {kind: {way: np.array([attention_entropy(softmax(c(n) * z(n))).mean() for n in lengths])
                 for way, c in ways.items()} for kind, z in kinds.items()}  # fmt: skip
plots.entropy_over_length(lengths, curves, 512)
plt.show()

# %% [markdown]
# ## Numbers as network inputs: digits in a base
#
# Training on long texts is expensive: the number of scores grows with the square of the length.
# **Length extrapolation** means that a model trained on at most $L_0$ tokens works well on longer
# texts, if possible without more training. $L_0$ is the training context length. The figure above
# belongs to the second half of the chapter. It shows how evenly attention is spread over $n$ keys.
# On the left the scores are normal random numbers; on the right one score is high, the *needle*. A
# higher entropy means a more even spread.
#
# A position is a number, so we ask in the simplest form: how can a network be given an integer from
# 0 to 999? The number 749 itself is far beyond the inputs near 1 that networks handle well. If we
# divide by 1000, neighbours are hard to tell apart. With several components there is a solution
# that everybody knows: *digits*. In base $\beta$, digit $c$ of the number $p$, counted from the
# units at $c = 0$, is
#
# $$\mathrm{digit}_c(p) = \Big\lfloor \frac{p}{\beta^c} \Big\rfloor \bmod \beta$$
#
# where $\lfloor\cdot\rfloor$ rounds down and $\bmod$ takes the remainder.

# %%
import math

from pe_numpy import alibi_bias, alibi_slopes, attention, causal_mask, from_digits, learned
from pe_numpy import linear_scaling, llama3_scaling, ntk_scaling, relative_distance, rope
from pe_numpy import rope_frequencies, t5_bucket, to_digits, yarn_scaling
from pe_numpy.book.show import show_source
from pe_numpy.book.slider import slider

show_source(to_digits, from_digits)
for p, base in ((749, 10), (1749, 6), (127, 2)):
    by_formula = [p // base**c % base for c in reversed(range(8))]  # most significant first
    assert to_digits(p, base, 8).tolist() == by_formula
    assert from_digits(by_formula, base) == p
assert to_digits(749, 10, 3).tolist() == [7, 4, 9]

# %% alt="The number 1749 in bases 16, 10, 8, 6 and 2, with a box for each digit. From base 16 down to base 2, the number of digits grows from 3 to 11, and the digits get smaller."
in_bases = {}
for base, width in ((16, 3), (10, 4), (8, 4), (6, 5), (2, 11)):
    in_bases[base] = to_digits(1749, base, width).tolist()
plots.number_in_bases(in_bases)
plt.show()

# %% [markdown]
# ## Extrapolation, interpolation and a larger base
#
# The network was trained on 0 to 999, which needs three digits. Now it should be given numbers up to
# 1999, such as 1749. There are three ways to show it a number that it has never seen.
#
# ### Direct extrapolation: one more digit
#
# Keep a fourth digit, reserved from the beginning. In training it is always 0; now it becomes 1.
# **Predict**: what has the network learned about that digit? The smallest network can answer this.
# It is a weighted sum $\hat p = \sum_c u_c x_c$ of the digits $x_c$ that should return the number.
# Training moves a weight against the gradient of the mean squared error,
#
# $$\frac{\partial}{\partial u_c}\; \mathrm{mean}\,(\hat p - p)^2
# = 2\;\mathrm{mean}\,\big((\hat p - p)\,x_c\big)$$
#
# and $x_c = 0$ for the reserved digit in every example.


# %% fold="output"
def loss(u):
    return np.mean((x @ u - p) ** 2)


p = np.arange(1000)
x = to_digits(p, 10, 4).astype(float)  # (1000, 4), the first place always 0
start = u = np.random.default_rng(0).standard_normal(4)
slopes = [(loss(start + 1e-4 * e) - loss(start - 1e-4 * e)) / 2e-4 for e in np.eye(4)]
for step in range(2000):
    gradient = 2 * (x @ u - p) @ x / len(p)
    assert step or np.allclose(gradient, slopes, rtol=1e-5, atol=1e-3)
    u = u - 0.005 * gradient
print("weights:", u[1:].round(3).tolist(), " reserved place as at the start:", u[0] == start[0])
assert np.allclose(u[1:], [100, 10, 1], rtol=0, atol=1e-3) and slopes[0] == 0 and u[0] == start[0]

# %% [markdown]
# The weight of the reserved digit is the random number it started from. The network therefore reads
# 1749 as the sum of 749 and that random number.
#
# ### Interpolation: squeeze the range
#
# Divide by 2. Then three digits suffice for 0 to 1999, if the last one may be a multiple of one
# half. For example, 1749 becomes 874.5, with the digits [8, 7, 4.5]. The encoding that used to mean
# 749 now stands for 1498.

# %%
halved = to_digits(np.arange(2000) / 2, 10, 3)
assert halved[1749].tolist() == [8, 7, 4.5] and halved[1498].tolist() == [7, 4, 9]
for place, name in enumerate(("hundreds", "tens", "units")):
    steps = np.abs(np.diff(halved[:, place]))
    values = len(np.unique(halved[:, place]))
    print(f"{name:9} smallest step {steps[steps > 0].min()}, {values:2} different values")

# %% [markdown]
# The whole squeeze falls on the finest digit: the units take 20 values instead of 10. The network
# must learn this digit again, so interpolation is usually followed by some training.
#
# ### Base conversion: raise the base
#
# Keep three digits and keep the gap of 1 between neighbours. Change the base instead: three digits in
# base 16 reach up to $16^3 - 1 = 4095$, and 1749 becomes [6, 13, 5]. A digit now runs from 0 to 15
# instead of 9. **Predict**: is 16 the smallest base that suffices for 0 to 1999?

# %% fold="output"
sixteen = to_digits(np.arange(2000), 16, 3)
enough = [base for base in range(2, 20) if base**3 > 1999]
print("smallest base:", enough[0], "  largest number in base 16:", 16**3 - 1)
assert sixteen[1749].tolist() == [6, 13, 5] and enough[0] == 13
assert np.unique(np.diff(sixteen[:, 2])).tolist() == [-15, 1]  # neighbours differ by 1, or a carry
for name, digits in (("halved", halved[1749]), ("in base 16", sixteen[1749])):
    print(f"the network of three weights reads 1749 {name} as {digits @ u[1:]:.1f}")
pairs = np.random.default_rng(0).integers(0, 2000, (1000, 2))
for base in (10, 13, 16):
    a, b = (to_digits(column, base, 4).tolist() for column in pairs.T)
    by_places = [left < right for left, right in zip(a, b, strict=True)]  # lists compare so
    assert by_places == (pairs[:, 0] < pairs[:, 1]).tolist()

# %% [markdown]
# Base 13 would do. One thing carries over to every base: the larger of two numbers is larger at the
# first digit from the left where they differ. A network that *compares* in this way still works.
# This is Su's argument (2023) for the change of base, proposed for use without training.
# Our network *adds*, and for it the ranking is reversed: 874.5 is right up to the factor 2, but
# 735.0 is not. The catch is that the digits 10 to 15 are new. For RoPE this need not be a flaw,
# since its "digits" are angles on a circle. A clock hand that has been all the way round meets no
# new angles.
#
# ## RoPE is a number system
#
# Compare the formula of a digit with the angle of RoPE's pair $c$. Let $b$ be RoPE's base, $d$ the
# number of components and $\beta = b^{2/d}$. The frequency is then
# $\theta_c = b^{-2c/d} = \beta^{-c}$, and an angle counts only up to whole turns:
#
# $$\mathrm{digit}_c(p) = \Big\lfloor \frac{p}{\beta^c} \Big\rfloor \bmod \beta,
# \qquad \mathrm{angle}_c(p) = \frac{p}{\beta^c} \bmod 2\pi$$
#
# Both contain the same quotient. The angle is not rounded, and its modulus is $2\pi$. With $d = 8$
# and the base 10,000 we get $\beta = 10$: RoPE has the digits of decimal numbers, units first.

# %%
d = 8
beta = 10_000 ** (2 / d)
quotients = 1749 / beta ** np.arange(d // 2)
units_first = to_digits(1749, 10, 4)[::-1]
assert np.array_equal(np.floor(quotients + 1e-9) % 10, units_first)
turned = rope(np.tile([[1.0, 0.0]], (1, d // 2)).reshape(1, d), [1749])[0].reshape(-1, 2)
angles = np.arctan2(turned[:, 1], turned[:, 0]) % (2 * np.pi)  # what RoPE does to (1, 0)
assert np.allclose(angles, quotients % (2 * np.pi), rtol=0, atol=1e-9)
print("quotients", quotients.round(3).tolist(), " digits", units_first.tolist())

# %% [markdown]
# So each way to write a larger number is a way to stretch RoPE. Continuing as before is direct
# extrapolation. Dividing the number by $s$ is linear scaling, also called position interpolation. And
# raising the base of the number system,
#
# $$\beta' = \beta\, s^{2/(d-2)} \quad\Longleftrightarrow\quad b' = \beta'^{\,d/2} = b\,s^{d/(d-2)},$$
#
# is NTK-aware scaling, the formula of [chapter 50](50_scaling.ipynb).

# %%
d, s, base = 128, 4, 10_000
beta = base ** (2 / d)
wider = beta * s ** (2 / (d - 2))
assert np.isclose(wider ** (d / 2), base * s ** (d / (d - 2)), rtol=1e-12, atol=0)
assert np.allclose(ntk_scaling(d, s), wider ** -np.arange(64.0), rtol=1e-11, atol=0)
linear = linear_scaling(rope_frequencies(d), s)
assert np.allclose(linear, beta ** -np.arange(64.0) / s, rtol=1e-11, atol=0)
print(f"base of the number system: {beta:.4f}, stretched by {s}: {wider:.4f}")

# %% [markdown]
# ### Four ways compared: digits and RoPE angles
#
# Let 27 positions be trained, in base 3 with three digits, and let 54 be needed. A fourth way, "by
# parts", keeps the lower digits and interpolates only the first, as NTK-by-parts does with RoPE.
# RoPE with three pairs and $\beta = 3$ has the frequencies 1, 1/3 and 1/9. Its slowest hand doesn't
# come round within 27 positions. The figure marks each value as seen in training at this digit, as
# a half step between whole digits, or as new.

# %% alt="Encodings of 54 positions in four ways, above as digits, below as RoPE angles. Direct extrapolation has new values in the highest digit. Interpolation puts the units closer together. A new base brings new digits but no new angles."
p = np.arange(54)
by_digits = {
    "direct": to_digits(p, 3, 4),
    "interpolation": to_digits(p / 2, 3, 3),
    "base conversion": to_digits(p, 4, 3),
    "by parts": np.stack([p // 9 / 2, p // 3 % 3, p % 3], axis=-1),
}
theta = rope_frequencies(6, 27)  # 1, 1/3, 1/9
by_angles = {"direct": theta, "linear": linear_scaling(theta, 2),
             "NTK-aware": ntk_scaling(6, 2, 27), "by parts": llama3_scaling(theta, 2, 27, 1, 1.2)}  # fmt: skip
plots.digits_and_angles(by_digits, by_angles, 27)
plt.show()

# %%
for name, digits in by_digits.items():
    print(f"{name:16} 49: {digits[49].tolist()}")
    assert len(np.unique(digits, axis=0)) == 54  # every position has its own encoding
seen_arc = np.minimum(27 * theta, 2 * np.pi)
for name, f in by_angles.items():
    new = (seen_arc < 2 * np.pi) & (54 * f > seen_arc * (1 + 1e-9))
    assert new.sum() == (name == "direct")

# %% [markdown]
# In *direct* extrapolation the leading digit and the slowest pair show new values. In
# *interpolation* no value is new, but the units take half steps. Among the angles *every* pair
# takes finer steps, since an angle is not rounded. After a *change of base* every digit takes a new
# value (above), but no angle is new (below). With one slow pair this is easy. Of the 23 slow pairs
# in chapter 50, 22 still meet new angles. *By parts*, only the leading digit changes.
#
# ## Two problems of long texts: new positions and more keys
#
# A long text brings **positions that were never seen**. It also brings **attention that is more
# scattered** (has a higher entropy), because there are more keys. Stretching positions cannot
# change the number of keys. Which encodings suffer from the first problem? Suppose that 64
# positions were trained and a text has 256:

# %%
short, long = np.arange(64), np.arange(256)
try:
    learned(np.zeros((64, 8)), long)
except ValueError:
    print("learned table   no row for positions 64 to 255: ValueError")
slow = int((64 * rope_frequencies(64) < 2 * np.pi).sum())
print(f"sinusoidal, RoPE {slow} of 32 pairs take new angles")
near, far = (relative_distance(at, at)[-1:] for at in (short, long))  # the last query
for buckets, farthest in ((32, 128), (32, 64)):
    before, after = (t5_bucket(x, buckets, farthest, bidirectional=False) for x in (near, far))
    new = len(np.setdiff1d(after, before))
    print(f"T5, {buckets} buckets to {farthest:3}: {new} of them new")
    assert new == (5 if farthest == 128 else 0)
lowest_near, lowest_far = (alibi_bias(alibi_slopes(8), x).min() for x in (near, far))
assert slow == 23 and lowest_far < lowest_near

# %% [markdown]
# Sinusoidal encodings and RoPE have nothing to train, but the layers above have been trained on
# their values. T5's last bucket takes all distances from the maximum on, so nothing is new if the
# maximum is at most the training length. ALiBi's bias falls below any value seen in training, but a
# lower value only means "even less weight".
#
# ## Attention entropy grows with length
#
# Over more keys, with scores as scattered as before, the softmax is flatter. How scattered is
# attention over $n$ keys? The usual measure is the **entropy** of the weights $w_1, \dots, w_n$, in
# nats (natural logarithms), with $0 \ln 0 = 0$:
#
# $$H = -\sum_{j=1}^n w_j \ln w_j$$
#
# It is 0 if one key has all the weight. Its largest value is $\ln n$, if all keys have the same
# weight. $e^H$ can be read as a number of keys, since $e^H$ equal weights have the entropy $H$.

# %%
show_source(attention_entropy)
rows = softmax(np.random.default_rng(0).standard_normal((5, 7)))
for row, entropy in zip(rows, attention_entropy(rows), strict=True):
    assert np.isclose(entropy, -sum(w * math.log(w) for w in row), rtol=1e-13, atol=0)
assert attention_entropy([0.0, 1.0, 0.0]) == 0
assert np.isclose(attention_entropy(np.full(9, 1 / 9)), math.log(9), rtol=1e-13, atol=0)

# %% [markdown]
# How does $H$ grow with $n$? Let the scores $z_j$ be independent normal numbers with mean 0 and
# standard deviation $\sigma$. The weights are $w_j = e^{z_j}/Z$ with $Z = \sum_j e^{z_j}$, so
#
# $$H = -\sum_j w_j\,(z_j - \ln Z) = \ln Z - \sum_j w_j z_j$$
#
# For many keys, sums become means. For the normal distribution the mean of $e^z$ is $e^{\sigma^2/2}$,
# and the mean of $z\,e^z$ is $\sigma^2 e^{\sigma^2/2}$. So $\ln Z \approx \ln n + \sigma^2/2$ and
# $\sum_j w_j z_j \approx \sigma^2$:
#
# $$H \approx \ln n + \frac{\sigma^2}{2} - \sigma^2 = \ln n - \frac{\sigma^2}{2}$$

# %%
rng = np.random.default_rng(1)
for sigma in (0.5, 1.0, 1.5):
    z = sigma * rng.standard_normal(100_000)
    w = softmax(z)
    exact = np.log(np.exp(z).sum()) - w @ z
    assert np.isclose(attention_entropy(w), exact, rtol=1e-10, atol=0)
    about = math.log(len(z)) - sigma**2 / 2
    print(f"sigma {sigma}: entropy {exact:.2f}, ln n - sigma^2/2 = {about:.2f}")
    assert np.isclose(exact, about, rtol=0, atol=0.05)

# %% [markdown]
# As long as $\sigma^2/2$ is well below $\ln n$, every doubling of the text adds $\ln 2$: the same
# head attends to twice as many keys. With a larger $\sigma$ a few keys dominate, and the growth is
# slower. So it is in the layers without a window of Gemma 3 270M ([chapter
# 82](82_real_cache.ipynb#entropy-by-length-in-a-trained-head)):

# %%
from pe_numpy.book.trained import changes

for layer in (5, 11, 17):
    name = f"layer {layer}, %d tokens"
    start, end = (np.array(changes("entropy_by_length", name % n)) for n in (40, 1150))
    rise = (end - start) / np.log2(1150 / 40)
    print(f"{layer:2}: a doubling adds", *(f"{x:.2f}" for x in rise), f"nats, not {np.log(2):.2f}")
    assert (rise > 0.2).all() and (rise < 0.6).all()

# %% [markdown]
# ### The needle: one key among many
#
# Scattering hurts where a head looks for one key among all. Let this **needle** have the score $g$
# and all $n - 1$ others the score 0. Its weight is
#
# $$w = \frac{e^g}{e^g + n - 1}$$
#
# **Predict**: a lead $g$ gives the needle 90% of the weight among 512 keys. How much does the same
# lead give it among 8192?


# %% fold="output"
def needle(n, g):
    return 1 / (1 + (n - 1) * np.exp(-g))


trained = 512
lead = math.log(0.9 / 0.1 * (trained - 1))  # solves w = 0.9 for g
assert np.isclose(needle(trained, lead), 0.9, rtol=1e-12, atol=0)
for n in (512, 2048, 8192):
    assert np.isclose(softmax(np.eye(1, n) * lead)[0, 0], needle(n, lead), rtol=1e-10, atol=0)
    print(f"{n:6} keys: weight of the needle {needle(n, lead):.2f}")

# %% [markdown]
# ## Log-n scaling: why the logarithm
#
# What lead would keep the weight as it is? Solve for $g$:
#
# $$g = \ln\frac{w}{1-w} + \ln(n-1)$$
#
# The lead must grow with $\ln n$, since $n-1$ rivals together get as much weight as one rival with
# the score $\ln(n-1)$. We can't raise only the needle's score, because the layer doesn't know which
# key is the needle. We can multiply all scores by a factor $\lambda_n$, chosen to be 1 at the
# training length. This is **log-n scaling**:
#
# $$\lambda_n = \frac{\ln n}{\ln L_0}$$

# %%
for n in (512, 2048, 8192):
    g = math.log(0.9 / 0.1) + math.log(n - 1)
    assert np.isclose(needle(n, g), 0.9, rtol=1e-12, atol=0)
    factor = math.log(n) / math.log(trained)
    weight = softmax(factor * np.eye(1, n) * lead)[0, 0]
    assert np.isclose(weight, needle(n, lead * factor), rtol=1e-10, atol=0)
    print(f"{n:5} keys: lead needed {g:.2f}, lead times factor {lead * factor:.2f}, {weight:.3f}")

# %% [markdown]
# When does this work? Write the lead in units of $\ln L_0$ as $g = a \ln L_0$. Then
# $e^{\lambda_n g} = n^a$, and with the factor
#
# $$w = \frac{n^a}{n^a + n - 1} \;\longrightarrow\;
# \begin{cases} 1 & a > 1 \\ \tfrac12 & a = 1 \\ 0 & a < 1\end{cases} \qquad (n \to \infty),$$
#
# while without the factor $w \to 0$ for every $a$. The factor doesn't make every needle visible. It
# makes visibility depend on $a$, which training sets, rather than on the length.

# %% alt="Weight of a needle over the number of keys for four leads, with unscaled scores and with the log n factor. Without the factor, all four fall to zero. With it, those above 1 rise and those below fall."
many = 2.0 ** np.arange(9, 31)
plain_w = {a: needle(many, a * math.log(trained)) for a in (1.5, 1.25, 1.0, 0.75)}
scaled_w = {a: needle(many, a * np.log(many)) for a in plain_w}
limits = {1.5: 1, 1.25: 1, 1.0: 0.5, 0.75: 0}
for a, w in scaled_w.items():
    assert np.allclose(w, many**a / (many**a + many - 1), rtol=1e-9, atol=0)
    assert np.isclose(w[-1], limits[a], rtol=0, atol=0.01)
    plain = trained**a / (trained**a + many - 1)
    assert np.allclose(plain_w[a], plain, rtol=1e-9, atol=0) and plain[-1] < 1e-4
plots.needle_weights(many, plain_w, scaled_w)
plt.show()

# %% [markdown]
# Why not a faster factor, such as $\sqrt{n/L_0}$? **Predict** what becomes of a needle with
# $a = 0.5$, nearly invisible among 512 keys.

# %% fold="output"
for n in (512, 8192):
    by_log = needle(n, 0.5 * math.log(n))
    by_root = needle(n, 0.5 * math.log(trained) * math.sqrt(n / trained))
    print(f"{n:4} keys: weight {by_log:.2f} by the logarithm, {by_root:.2f} by the square root")
assert by_log < 0.05 and by_root > 0.9

# %% [markdown]
# With the square root every needle wins in the end, and the length decides again.
#
# ## Log-n scaling in code
#
# `log_n_scale` computes the factor. It is never below 1, so nothing changes for short texts.

# %%
show_source(log_n_scale)
ns = [1, 100, 512, 2048, 8192]
expected = [max(1.0, math.log(n) / math.log(512)) for n in ns]
assert np.allclose(log_n_scale(ns, 512), expected, rtol=1e-14, atol=0)
print("\nfactors:", dict(zip(ns, log_n_scale(ns, 512).round(3).tolist(), strict=True)))

# %% [markdown]
# ### A common mistake: dividing scores by log n
#
# "Attention scatters, so divide the scores by $\log n$" is wrong. Division flattens the softmax,
# the opposite of the aim. The first preprint of YaRN also had the direction of this effect
# backwards, as its authors
# [said](https://github.com/jquesnelle/yarn/blob/349d569839247a6a6ee9184cba070b1777fe2052/Errata.md).
# A larger factor sharpens the softmax of any scores. Multiply the scores by $\lambda$. As above,
# $H = \ln Z - \lambda\,\bar z$, with the weighted mean $\bar z = \sum_j w_j z_j$. The derivative of
# $\ln Z$ is $\bar z$. The derivative of $\bar z$ is the weighted variance
# $\mathrm{Var}_w = \sum_j w_j z_j^2 - \bar z^2$, since $dw_j/d\lambda = w_j(z_j - \bar z)$. So
#
# $$\frac{dH}{d\lambda} = \bar z - \bar z - \lambda\,\mathrm{Var}_w = -\lambda\,\mathrm{Var}_w \le 0$$

# %%
z = np.random.default_rng(0).standard_normal(50)
for factor in (0.2, 1.0, 3.0):
    w = softmax(factor * z)
    up, down = (attention_entropy(softmax((factor + h) * z)) for h in (1e-5, -1e-5))
    variance = w @ z**2 - (w @ z) ** 2
    assert np.isclose((up - down) / 2e-5, -factor * variance, rtol=1e-5, atol=0)
    print(f"factor {factor}: entropy {attention_entropy(w):.2f}, slope {-factor * variance:.2f}")

# %% [markdown]
# ### Which factor keeps the entropy (second reading)
#
# The figure at the top has both kinds of scores. For the needle, on its right, the factor turns a
# steep rise into a slow fall. For normal scores, on its left, it bends the curve but doesn't stop
# its rise. The formula for normal scores explains why. With the factor, $\sigma$ becomes
# $\lambda\sigma$, so
#
# $$H \approx \ln n - \frac{\lambda^2\sigma^2}{2}, \qquad\text{constant if}\qquad
# \lambda^2 = 1 + \frac{2}{\sigma^2}\,\ln\frac{n}{L_0}$$
#
# Here the factor that keeps the entropy constant grows like $\sqrt{\ln n}$, with a larger constant.
# So "multiply by $\log n$" has the right direction for any scores. The right amount depends on how
# the scores of the rivals are spread.

# %%
rng = np.random.default_rng(2)
for n in (512, 2048, 8192, 32768):
    z = rng.standard_normal((20, n))
    factor = math.sqrt(1 + 2 * math.log(n / 512))
    entropy = attention_entropy(softmax(factor * z)).mean()
    predicted = math.log(n) - factor**2 / 2
    print(f"{n:6} keys: factor {factor:.2f}, log n factor {log_n_scale(n, 512):.2f}")
    assert np.isclose(predicted, math.log(512) - 0.5, rtol=1e-12, atol=0)
    assert np.isclose(entropy, predicted, rtol=0, atol=0.2)
for kind, rows in curves.items():  # the figure at the top, beyond 512 keys
    equal, divided, plain, times = (curve[3:] for curve in rows.values())
    assert (times < plain).all() and (plain < divided).all() and (divided < equal).all()
    assert (np.diff(times) > 0).all() if kind == "normal scores" else (np.diff(times) < 0).all()

# %% [markdown]
# The factor is one over a temperature, by which scores are divided. Before you move a slider, guess
# at which temperature 16 times as many keys add the most to the entropy of normal scores.


# %%
def shares(temperature, n):
    z = np.random.default_rng(1).standard_normal(n)
    weights = np.sort(softmax(z / temperature))[::-1]  # the largest first
    rank = (n * np.arange(65)) // 64
    total = np.append(0, np.cumsum(weights))[rank]
    note = f"entropy {attention_entropy(weights):.2f} of at most {math.log(n):.2f}"
    return {"weights": (rank / n, total), "equal": ([0, 1], [0, 1])}, note


controls = {"temperature": [0.25, 0.5, 1.0, 2.0, 4.0], "number of keys": [64, 256, 1024, 4096]}
words = ("Share of the keys, largest weight first", "Share of the weight")
slider("Weight of the largest scores", controls, shares, words, (0, 1, 0, 1.3), start=(2, 1))

# %% [markdown]
# Does the factor help? On inputs like the needle it does, as computed above. In a language model
# this must be measured, because a factor that sharpens every head also sharpens those that should
# attend to many keys. [Chapter 71](71_study.ipynb) turns to trained models.
#
# ### One factor per query, and the KV cache
#
# Under a causal mask query $i$ sees $i + 1$ keys, so each row has its own factor. You may multiply
# the scores or the query by it. The factor depends only on the query, so a KV cache is not
# affected.

# %%
rng = np.random.default_rng(0)
q, k, v = rng.standard_normal((3, 10, 8))
at = np.arange(10)
factor = log_n_scale(at + 1, 4)[:, None]  # (L, 1): L0 = 4
whole, weights = attention(factor * q, k, v, causal_mask(at, at))
on_scores = np.where(causal_mask(at, at), factor * (q @ k.T) / np.sqrt(8), -np.inf)
assert np.allclose(weights, softmax(on_scores), rtol=0, atol=1e-12)
for t in range(10):  # one token at a time, with the keys so far
    one, _ = attention(log_n_scale(t + 1, 4) * q[t : t + 1], k[: t + 1], v[: t + 1])
    assert np.allclose(one, whole[t : t + 1], rtol=0, atol=1e-12)

# %% [markdown]
# ### YaRN's attention factor and log n
#
# YaRN multiplies the scores by $(0.1 \ln s + 1)^2$, fitted to measurements
# ([chapter 50](50_scaling.ipynb)). With $n = sL_0$ keys the factor of this chapter is
# $1 + \ln s / \ln L_0$. Both are 1 at $s = 1$ and grow with $\ln s$. The attention factor for
# `longrope` in
# [Transformers](https://github.com/huggingface/transformers/blob/ef46806472a64b0013ed413781e3afed82bfa047/src/transformers/modeling_rope_utils.py)
# is $\sqrt{1 + \ln s/\ln L_0}$ on queries and keys. On the scores this is the factor of this chapter
# at the longest text.

# %%
for factor in (1, 2, 4, 16):
    fitted = yarn_scaling(128, factor, 2048)[1] ** 2
    derived = float(log_n_scale(factor * 2048, 2048))
    assert np.isclose(derived, 1 + math.log(factor) / math.log(2048), rtol=1e-12, atol=0)
    print(f"s = {factor:2}: YaRN {fitted:.3f}, log n {derived:.3f}")

# %% [markdown]
# Both factors answer the same need, so use only one of them. YaRN's factor is one number for all
# queries, and it also applies to short texts.
#
# ### Llama 4's iRoPE: temperature on layers without RoPE (second reading)
#
# Llama 4 mixes two kinds of layers (**iRoPE**, known from its
# [code](https://github.com/meta-llama/llama-models/tree/a9c89c4)). Three of four have RoPE, and a
# query sees its own chunk of 8192 tokens ([chapter 12](12_attention_blocks.ipynb)). The fourth sees
# all tokens and has no encoding at all
# ([NoPE](11_why_position.ipynb#nope-a-causal-mask-can-count-positions)), so no angle is new there,
# at any length. The second problem remains. Therefore, only in these layers, the query at position
# $i$ gets a factor that rises once every $T = 8192$ tokens:
#
# $$\mu_i = 1 + 0.1\,\ln\Big(1 + \Big\lfloor \frac{i + 1}{T} \Big\rfloor\Big)$$

# %%
from pe_numpy import attention_temperature

show_source(attention_temperature)
at = np.array([0, 8190, 8191, 16383, 131071, 1048575])
for i, factor in zip(at.tolist(), attention_temperature(at), strict=True):
    by_formula = 1 + 0.1 * math.log(1 + (i + 1) // 8192)
    log_n = float(log_n_scale(i + 1, 8192))
    print(f"position {i:7}: {factor:.6f}, log n factor {log_n:.3f}")
    assert np.isclose(factor, by_formula, rtol=1e-14, atol=0)
slope = 1 / math.log(8192)  # of the log n factor, over ln n
print(f"for each ln n: 0.1, or {slope:.3f} with L0 = 8192")

# %% [markdown]
# The code calls this factor a temperature, but it multiplies, so it is one over a temperature. At
# distant positions it grows with $\ln n$, at nearly the same rate as the log-n factor. The factor
# belongs to the query, so keys are cached as they are.
#
# Read other code with care. In transformers 5.23.0 Ministral 3 uses $i$ instead of $i + 1$, on
# layers that have RoPE. Inkling has no steps, $1 + 0.1\,\ln\max(n/T, 1)$ with $n = i + 1$, and also
# multiplies its bias. Each has its own $T$. The cell compares the three around the first step, with
# the same $T$ for all:

# %%
at = np.arange(8190, 8194)
llama = attention_temperature(at)
ministral = 1 + 0.1 * np.log(1 + at // 8192)
inkling = 1 + 0.1 * np.log(np.maximum((at + 1) / 8192, 1))
for name, factors in (("Llama 4", llama), ("Ministral 3", ministral), ("Inkling", inkling)):
    print(f"{name:12}", *(f"{factor:.5f}" for factor in factors))
assert np.array_equal(ministral[1:], llama[:-1])  # one token later
rope_in_layer = [int((layer + 1) % 4 != 0) for layer in range(8)]
print("no_rope_layers:", rope_in_layer)

# %% [markdown]
# *A common mistake* is to misread the setting `no_rope_layers`. The last line of the output is what
# it contains, and a 1 means that the layer *has* RoPE
# ([transformers #43756](https://github.com/huggingface/transformers/issues/43756)). SmolLM3 also
# has this setting. Cohere 2, and EXAONE 4 if it has windows, have RoPE in the layers with a window
# and none in the others.
#
# ## Sliding windows bound distance and entropy
#
# One old remedy solves both problems: let each query see only the last $r$ keys, with $r \le L_0$.
# This is **sliding-window attention**. Then no distance exceeds $r - 1$, and no entropy exceeds
# $\ln r$:
#
# $$j \text{ is seen by } i \iff 0 \le i - j < r \qquad\Longrightarrow\qquad H_i \le \ln r$$

# %%
from pe_numpy import window_mask

at, r = np.arange(200), 32
mask = window_mask(at, at, r)
assert mask.tolist() == [[0 <= i - j < r for j in range(200)] for i in range(200)]
q, k, v = np.random.default_rng(0).standard_normal((3, 200, 16))
seen = attention(rope(q, at), rope(k, at), v, mask)[1]
_, equal = attention(np.zeros_like(q), k, v, mask)  # all scores alike: the bound is reached
assert relative_distance(at, at)[mask].max() == r - 1
assert (attention_entropy(seen) <= math.log(r)).all()
assert np.isclose(attention_entropy(equal)[-1], math.log(r), rtol=1e-12, atol=0)

# %% [markdown]
# The price is that this layer does not see anything more distant. But the output of a token depends
# on what that token saw, so with every layer information can travel $r - 1$ positions further. With
# the mask as a matrix of zeros and ones $M$, an entry of $M^N$ is positive exactly where a path of
# $N$ steps exists,
#
# $$(M^N)_{ij} > 0 \iff 0 \le i - j \le N(r-1)$$

# %% alt="Which tokens can reach which through one, two and four layers with a sliding window of six. A narrow band along the diagonal becomes wider with depth."
small, reaches = window_mask(range(24), range(24), 6), {}
distance = relative_distance(range(24), range(24))
for depth in (1, 2, 4):
    power = np.linalg.matrix_power(small.astype(int), depth)
    reaches["1 layer" if depth == 1 else f"{depth} layers"] = power > 0
    assert np.array_equal(power > 0, (distance >= 0) & (distance <= depth * (6 - 1)))
plots.window_reach(reaches)
plt.show()

# %% [markdown]
# "Can travel" does not mean "does travel". A window added after training is also not as harmless as
# the bounds suggest. Xiao et al. (2023) found that models trained without a window fail when the
# first tokens leave the window. They keep these tokens as *attention sinks*
# ([chapter 12](12_attention_blocks.ipynb#attention-sinks-streamingllm)). ALiBi's steep slopes are a
# soft window ([chapter 35](35_alibi.ipynb)).
#
# ## Which tasks generalise in length? RASP-L and C-RASP (second reading)
#
# So far only the encoding mattered. The task does, too. **RASP-L** (Zhou et al. 2023) is a small language for
# what a Transformer computes. Its authors' conjecture (abstract): a model tends to generalise in length
# if a *short* program in it solves the task at all lengths. Huang et al. 2024 prove for an idealised training with learned
# absolute positions that many tasks do (abstract). They extend **C-RASP**, a language that
# counts ([Yang and Chiang 2024](https://arxiv.org/abs/2404.04393)). Two tasks of [chapter
# 71](71_study.ipynb#diagnostic-tasks-exact-distance-and-needle-in-a-haystack) need one selection each: the *needle* selects by
# content, the *offset* the token three back. Models of one layer, trained on 32 tokens, tested on 256:

# %%
from pe_numpy.judging.verdicts import Study

book, right = Study("results/study.csv"), {}
print("right of 100     none  sinusoidal  T5  Shaw  RoPE")
for task in ("needle", "offset"):
    for encoding in ("none", "sinusoidal", "t5", "shaw", "rope"):
        right[task, encoding] = 100 * book.means(task, encoding, "accuracy")[4][[0, 3]]
    for n, length in ((0, 32), (1, 256)):
        shares = [right[task, e][n] for e in ("none", "sinusoidal", "t5", "shaw", "rope")]
        print(f"{task:7} {length:3} tokens ", *(f"{x:6.0f}" for x in shares))
assert right["needle", "none"][1] > 95 > 40 > right["needle", "rope"][1]
assert right["offset", "shaw"][1] > 99 > 30 > right["offset", "none"][0]

# %% [markdown]
# Both programs are short. But without positions the needle is found and the offset is not learned, and RoPE
# has lost both at 256 tokens. So such a result holds for a task *together with* an encoding.

# %% [markdown]
# ## In short
#
# - **Interpolate or extrapolate?** Neither is safe without training.
#   [Direct extrapolation](#direct-extrapolation-one-more-digit) leaves the trained range of values.
#   [Interpolation](#interpolation-squeeze-the-range) stays inside, but squeezes neighbours together.
#   [A larger base](#base-conversion-raise-the-base) keeps the gap and brings new digits.
# - **What do digits have to do with RoPE?** The angle of pair $c$ at position $p$ is a digit
#   without the rounding, in base $\beta = b^{2/d}$. Linear scaling is interpolation, and NTK-aware
#   scaling is a larger base. [RoPE is a number system](#rope-is-a-number-system)
# - **Why does attention scatter on long texts?** There are more keys. For normal scores the entropy
#   is about $\ln n - \sigma^2/2$: each doubling adds $\ln 2$, in Gemma less. Stretching positions doesn't change
#   that. [Attention entropy](#attention-entropy-grows-with-length)
# - **Multiply or divide by $\log n$?** Multiply all scores by $\ln n/\ln L_0$, where the query sees
#   $n$ keys. Up to $n = L_0$ the factor is 1. Dividing flattens the softmax.
#   [Dividing is a mistake](#a-common-mistake-dividing-scores-by-log-n)
# - **Does log-n scaling always work?** No. It keeps a needle visible if its lead is above
#   $\ln L_0$. For normal scores it slows the growth of the entropy but doesn't stop it.
#   [Why the logarithm](#log-n-scaling-why-the-logarithm)
# - **Can I combine log-n scaling with YaRN?** Use only one, since YaRN's attention factor answers the
#   same need. [YaRN and log n](#yarns-attention-factor-and-log-n)

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 51` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 51_extrapolation.py` checks yours.
#
# ### Exercise 1: NTK-by-parts in digits
#
# Write `parts(p, s)` for three decimal digits that keeps tens and units and squeezes the hundreds by
# any factor $s$. Show that all $1000s$ encodings differ and that no digit reaches 10. Which numbers
# are hard to tell apart now?
#
# <details><summary>Hint 1</summary>
#
# The hundreds of $p$ are `p // 100`, and may be larger than 9.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Look at numbers that differ only in the hundreds, such as 749 and 849.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Direct neighbours differ by 1 as before. Numbers that are 100 apart differ by $1/s$ in one digit.
#
# ```python
# def parts(p, s):
#     return np.stack([p // 100 / s, p // 10 % 10, p % 10], axis=-1)
#
# codes = parts(np.arange(4000), 4)
# assert len(np.unique(codes, axis=0)) == 4000 and codes.max() < 10
# assert np.abs(np.diff(codes[:, 2])).min() == 1
# assert (parts(np.array(849), 4) - parts(np.array(749), 4)).tolist() == [0.25, 0, 0]
# ```
#
# </details>
#
# ### Exercise 2: Several needles
#
# Let $m$ of $n$ keys have the lead $g$. What is their common weight, and which lead keeps it when
# both $m$ and $n$ double?
#
# <details><summary>Hint 1</summary>
#
# $w = m e^g / (m e^g + n - m)$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Divide numerator and denominator by $m$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Only $n/m$ enters, so the same lead suffices. $\log n$ serves heads that look for a fixed number of
# keys.
#
# ```python
# def needles(n, m, g):
#     return softmax(np.where(np.arange(n) < m, g, 0.0))[:m].sum()
#
# assert np.isclose(needles(512, 8, 5.0), needles(1024, 16, 5.0), rtol=1e-12, atol=0)
# assert needles(1024, 8, 5.0) < needles(512, 8, 5.0)
# ```
#
# </details>
#
# ### Exercise 3: A sliding window or log-n scaling
#
# One head has a window of 32, and the other sees everything, with the factor $\log n$. A needle is
# at a random position among $n$ keys, with $a = 1.25$ and $L_0 = 512$. On average, which head puts
# more weight on the needle, for $n = 512$ and $n = 8192$?
#
# <details><summary>Hint 1</summary>
#
# The needle is in the window with probability $32/n$, and then it has the weight of a needle among
# 32 keys.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `needle(n, g)` gives the weight for the other head, with $g$ times the factor.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The factor wins, more than tenfold for both lengths.
#
# ```python
# g = 1.25 * math.log(512)
# for n in (512, 8192):
#     assert needle(n, g * log_n_scale(n, 512)) > 10 * 32 / n * needle(32, g)
# ```
#
# </details>
#
# ## In practice
#
# - **Count the keys that are seen.** In a padded batch, $n$ is the number of non-padding keys, not
#   the padded length. With a window of $r \le L_0$ keys the factor stays 1.
# - **Any logarithm will do**, since only the ratio of two enters.
# - **Training decides.** A model that was *trained* with the factor $\ln n$ must also be run with
#   it.
# - **Don't combine** YaRN's factor and $\log n$ without thinking: the product sharpens twice.

# %%
real_keys = np.minimum(np.arange(1, 6), np.array([3, 5])[:, None])  # two texts, padded to 5
print("keys seen, a row for each text:", real_keys.tolist())
assert np.isclose(np.log2(2048) / np.log2(512), log_n_scale(2048, 512), rtol=1e-12, atol=0)
assert log_n_scale(np.minimum(np.arange(1, 10_000), 32), 512).max() == 1

# %% [markdown]
# ## Further reading
#
# - Su 2023, [kexue.fm/archives/9675](https://kexue.fm/archives/9675): RoPE as a number system, with
#   the digits of 1749; and [9706](https://kexue.fm/archives/9706), the sequel.
# - Su 2021, [kexue.fm/archives/8823](https://kexue.fm/archives/8823): $\log n$ from the invariance of
#   the entropy; and Su 2022, [9034](https://kexue.fm/archives/9034), the short form. The same factor
#   from another question: Chiang and Cholak 2022,
#   [arXiv:2202.12172](https://arxiv.org/abs/2202.12172).
# - Chen et al. 2025, *Critical attention scaling in long-context transformers*,
#   [arXiv:2510.05554](https://arxiv.org/abs/2510.05554), and Hayase and Karakida 2026,
#   [arXiv:2605.12697](https://arxiv.org/abs/2605.12697): for which scores $\log n$ is the critical
#   factor.
# - Zhou et al. 2023, *What Algorithms can Transformers Learn?*, [arXiv:2310.16028](https://arxiv.org/abs/2310.16028),
#   and Huang et al. 2024, *A Formal Framework for Understanding Length Generalization in Transformers*,
#   [arXiv:2410.02140](https://arxiv.org/abs/2410.02140).
# - Press et al. 2022, *Train Short, Test Long*, [arXiv:2108.12409](https://arxiv.org/abs/2108.12409).
# - Xiao et al. 2023, *Efficient Streaming Language Models with Attention Sinks*,
#   [arXiv:2309.17453](https://arxiv.org/abs/2309.17453): why a window should keep the first tokens.
#
# **Cards**: [temperature](CARDS.md#temperature).
