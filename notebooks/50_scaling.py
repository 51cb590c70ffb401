# %% [markdown]
# # 50. RoPE scaling: position interpolation, NTK, YaRN, LongRoPE
#
# *What does each scaling of RoPE do to each pair of components, and what does it cost?*
#
# 50 minutes. Needs [41 RoPE in code: signs, layouts, caches, precision](41_rope_computed.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** RoPE rotates each pair of components at its own speed. On a text longer than in training the
# slow pairs reach angles that training never showed, which is the likely reason why the model fails. Every remedy slows
# pairs down. Position interpolation slows all of them by the same factor. NTK-aware scaling, YaRN and Llama 3's rule
# spare the fast ones, and LongRoPE has a factor for each pair. You compute each scaling, see its price for three small
# attention heads, and learn what it means for a KV cache.

# %% fold="input" alt="Wavelength of each of 64 pairs under five schemes, and its ratio to unscaled RoPE. Linear scaling stretches all pairs by 4, NTK-aware scaling more and more, YaRN along a ramp, and Llama 3 in a steep step."
import matplotlib.pyplot as plt
import numpy as np

from pe_numpy import attention, causal_mask, dynamic_ntk_scaling, linear_scaling, llama3_scaling
from pe_numpy import longrope_scaling, ntk_scaling, rope, rope_frequencies, rope_from_config
from pe_numpy import yarn_attention_factor, yarn_scaling
from pe_numpy.book.show import show_source
from pe_numpy.book.plots import scaling as plots

d, base, L0, s = 128, 10_000, 2048, 4  # components, base, trained length, factor
theta = rope_frequencies(d, base)  # (d/2,)
schemes = {"direct": theta, "linear": linear_scaling(theta, s), "NTK-aware": ntk_scaling(d, s),
           "YaRN": yarn_scaling(d, s, L0)[0], "Llama 3": llama3_scaling(theta, s, L0)}  # fmt: skip
plots.scaled_wavelengths({name: 2 * np.pi / f for name, f in schemes.items()}, L0, s * L0)
plt.show()

# %% [markdown]
# ## Beyond the context length: angles that training did not show
#
# RoPE rotates pair $i$ of a query or key at position $m$ by the angle $m\theta_i$, with the **frequency**
# $\theta_i = b^{-2i/d}$. Here $d$ is the number of components that rotate, $b$ the **base** (`rope_theta`), and $i$ runs
# from 0 to $d/2-1$. A pair makes one turn in $\lambda_i = 2\pi/\theta_i$ positions, its **wavelength**. The figure shows
# the wavelengths of 64 pairs, and how much each scheme of this chapter lengthens them. *Direct* means unchanged. Within the
# trained length $L_0$, the context length of training, a pair makes this number of **turns**:
#
# $$r_i = \frac{L_0}{\lambda_i} = \frac{L_0\,\theta_i}{2\pi}$$
#
# We take the numbers of the first LLaMA: $d = 128$, so 64 pairs, and $L_0 = 2048$. The text to be read is
# $s = 4$ times as long. **Predict**: how many of the 64 pairs have shown their whole circle in training?

# %% fold="output"
import math

turns = L0 * theta / (2 * np.pi)  # (d/2,)
assert np.allclose(turns, L0 / (2 * np.pi * base ** (2 * np.arange(64) / d)), rtol=1e-13, atol=0)
for i in (0, 40, 41, 63):
    print(f"pair {i:2}: wavelength {2 * np.pi / theta[i]:7.1f}, rotations {turns[i]:6.2f}")
whole = int((turns >= 1).sum())
print(f"{whole} pairs show every angle, {64 - whole} do not")
assert whole == 41

# %% alt="Five clock faces, for pairs 0, 16, 41, 48 and 63. The first two are full from training. In the others, the long sequence adds a new arc to the trained one."
plots.seen_and_new_angles(L0 * theta, {"direct": s * L0 * theta}, [0, 16, 41, 48, 63])
plt.show()

# %% [markdown]
# 41 pairs have come round, so whatever angle they take later has been seen. The other 23 have shown only an arc of
# their circle, and the long text goes beyond it. Peng et al. 2023 build on the reading that these pairs are the cause of
# the failure. The reading is likely, not proved. In one trained model it is [half
# right](#the-same-schemes-in-a-trained-model-gemma-3-270m).
#
# ## What new angles do to attention: three heads built by hand
#
# A head's score depends only on the distance $\delta = m - n$ of query and key. With $R_m$ for the rotation at position
# $m$,
#
# $$\langle R_m q, R_n k\rangle = \langle R_\delta\, q, k\rangle$$
#
# So we choose contents $q$ and $k$ and read the score as a function of $\delta$. Take $q = R_{-w}k$, the key rotated
# backwards by $w$ positions. Then the score is largest at $\delta = w$, so the head attends to the token $w$ back. And it
# reads the pairs of $k$ that are not zero.


# %%
def head(pairs, back):
    key = np.zeros(d)
    key[2 * np.asarray(pairs)] = 1 / math.sqrt(len(pairs))
    return rope(key[None], [-back], theta)[0], key  # norm 1 both; best `back` positions ago


def score(content, distance, frequencies):
    q, k = content  # <R_delta q, k> for each distance delta
    return rope(np.tile(q, (len(distance), 1)), distance, frequencies) @ k


q, k = head([0, 7], 3)
assert np.allclose([k @ k, score((q, k), [3], theta)[0]], 1, rtol=0, atol=1e-12)  # the largest
on_both = rope(q[None], [1000], theta) @ rope(k[None], [996], theta).T
assert np.allclose(on_both, score((q, k), [4], theta), rtol=0, atol=1e-12)

# %% [markdown]
# The **near head** reads the 16 fastest pairs and looks 3 tokens back. The **far head** reads one slow pair,
# number 48. Its score is $\cos \delta\theta_{48}$, which falls as the key gets older and so tells old from
# new. The **wide head** reads all 64 pairs and looks 1000 tokens back. It comes later. **Predict**: at 8192
# positions with unchanged frequencies, which of the first two heads fails, and at which distance?

# %% fold="output"
near, far, wide = head(np.arange(16), 3), head([48], 0), head(np.arange(64), 1000)
delta = np.arange(s * L0)
old = score(far, delta, theta)
print("near head, best distance:", score(near, delta, theta).argmax())
print("far head at 0, 2047, 3142, 6283:", old[[0, 2047, 3142, 6283]].round(2).tolist())
assert np.allclose(old, np.cos(delta * theta[48]), rtol=0, atol=1e-9)
assert (
    (np.diff(old[:L0]) < 0).all() and old[6283] > 0.999 and score(near, delta, theta).argmax() == 3
)

# %% [markdown]
# The near head is unaffected by the length. To the far head a token 6283 positions back looks like the present
# one. In training its score was never below -0.46 and never rose. So there are two demands that seem to
# conflict: near distances must stay as they are, and far ones must be squeezed into what training has shown.
#
# ## Position interpolation (linear scaling)
#
# The simplest remedy is **position interpolation**, or **linear scaling** (Chen et al. 2023, section 2.3): it replaces
# position $m$ by $m/s$. Only the product of position and frequency matters, so we can leave the
# positions whole and slow down every pair instead:
#
# $$\frac ms\,\theta_i = m\,\frac{\theta_i}{s}$$

# %%
x = np.random.default_rng(0).standard_normal((3, d))
m = np.array([1, 1000, 8191])
slowed = np.array([f / s for f in theta])
assert np.allclose(rope(x, m / s, theta), rope(x, m, slowed), rtol=0, atol=1e-12)
show_source(linear_scaling)
assert np.array_equal(linear_scaling(theta, s), slowed)

# %% [markdown]
# No pair leaves its trained arc any more. **Predict** what the near head does now: at which distance is its score
# largest, and how sharply?

# %% fold="output"
for name in ("direct", "linear"):
    y = score(near, np.arange(64), schemes[name])
    best = int(y.argmax())
    print(f"{name}: best {best:2}, lead on the next distance {y[best] - y[best + 1]:.4f}")
assert best == 12 and (s * L0 * slowed <= L0 * theta * (1 + 1e-9)).all()

# %% [markdown]
# The near head no longer works. Neighbours are a quarter of a trained step apart, so the head looks 12 tokens back, and
# the lead of its best score over the neighbours is a fifteenth of what it was. Training can fix that: Chen et al. report that
# fine-tuning within 1000 steps is enough.
#
# ## NTK-aware scaling: change the base
#
# The fastest pair should stay as it is, the slowest should slow down by the factor $s$, and the pairs between by
# something between. Changing one number of RoPE does this, namely the base. Replace $b$ by $b'$, and pair $i$ changes by
#
# $$\frac{\theta_i'}{\theta_i} = \frac{b'^{-2i/d}}{b^{-2i/d}} = \Big(\frac{b'}{b}\Big)^{-2i/d}$$
#
# At $i = 0$ this is 1 for any base. Choose $b'$ so that the last pair, $i = d/2 - 1$, slows down by exactly
# $s$. Its exponent is $-2(d/2-1)/d = -(d-2)/d$, so
#
# $$\begin{gathered}\Big(\frac{b'}{b}\Big)^{-(d-2)/d} = \frac1s \quad\Longleftrightarrow\quad
# b' = b\,s^{d/(d-2)}\\[4pt]
# \text{and then}\quad \frac{\theta_i'}{\theta_i} = s^{-2i/(d-2)}\end{gathered}$$
#
# The exponent $d/(d-2)$ comes from $d/2$ pairs with $d/2 - 1$ steps from the first to the
# last. The scheme is called **NTK-aware**, after the neural tangent kernel, the theory that was its motive.


# %%
def ntk_by_loops(d, factor, base):
    new_base = base * factor ** (d / (d - 2))
    return [new_base ** (-2 * i / d) for i in range(d // 2)]


ratio, i = np.array(ntk_by_loops(d, s, base)) / theta, np.arange(d // 2)
new_base = base * s ** (d / (d - 2))
assert np.allclose(ratio, (new_base / base) ** (-2 * i / d), rtol=1e-12, atol=0)
assert np.allclose(ratio, s ** (-2 * i / (d - 2)), rtol=1e-12, atol=0)
print(f"new base {new_base:.2f}, ratios of pairs 0, 21, 42, 63:", ratio[::21].round(3).tolist())
assert ratio[0] == 1 and np.isclose(ratio[-1], 1 / s, rtol=1e-12, atol=0)
show_source(ntk_scaling)
assert np.allclose(ntk_scaling(d, s), ntk_by_loops(d, s, base), rtol=1e-12, atol=0)

# %% [markdown]
# It was proposed for use *without* training. A [later section](#the-same-schemes-in-a-trained-model-gemma-3-270m) tries
# that on a trained model. LLaMA 2 Long (Xiong et al. 2023) raises the base from 10,000 to
# 500,000 *and continues training* with long texts, which is another recipe.
#
# ### What NTK-aware scaling does not do
#
# The last pair stays within its trained arc. **Predict**: how many of the other 22 pairs that had not come round
# still reach new angles? To keep *every* slow pair inside, pair 41 itself must slow down by 4. A larger factor
# $s'$ does it:
#
# $$s'^{-2\cdot 41/(d-2)} = \frac1s \quad\Longleftrightarrow\quad s' = s^{(d-2)/82}$$

# %% fold="output"
beyond = (turns < 1) & (s * L0 * schemes["NTK-aware"] > L0 * theta * (1 + 1e-9))
print(f"NTK-aware, s = {s}: {int(beyond.sum())} of 23 slow pairs still have new angles")
enough = s ** ((d - 2) / 82)
safe = ntk_scaling(d, enough)
print(f"factor needed: {enough:.2f}; then the last pair slows down by {theta[-1] / safe[-1]:.2f}")
assert beyond.sum() == 22 and np.isclose(safe[41] / theta[41], 1 / s, rtol=1e-12, atol=0)
assert np.isclose((s * safe / theta)[turns < 1].max(), 1, rtol=1e-12, atol=0)  # of trained arcs

# %% [markdown]
# All 22 still reach new angles. So for a text 4 times as long the formula needs 8.42. Peng et al. (section 3.1) agree: the
# factor must be set higher than the growth of the text.
#
# ## NTK-by-parts: keep, divide, and mix between
#
# Now use the number of turns $r_i$ itself. A pair that turned often is *kept*. A pair that never came round is
# *divided* by $s$. Pairs between are mixed, with a share $g_i$ from 0 to 1:
#
# $$\begin{gathered}\theta_i' = (1 - g_i)\,\frac{\theta_i}{s} + g_i\,\theta_i\\[4pt]
# g_i = \begin{cases} 0 & r_i < \alpha\\ 1 & r_i > \beta\\
# \dfrac{r_i - \alpha}{\beta - \alpha} & \text{otherwise}\end{cases}\end{gathered}$$
#
# This is **NTK-by-parts** (Peng et al. 2023, section 3.2), which doesn't change the base. The authors recommend
# $\alpha = 1$ and $\beta = 32$ turns for LLaMA.


# %%
def by_parts_by_loops(frequencies, factor, trained_length, alpha, beta):
    scaled = []
    for f in frequencies:
        r = trained_length * f / (2 * math.pi)
        g = 0 if r < alpha else 1 if r > beta else (r - alpha) / (beta - alpha)
        scaled.append((1 - g) * f / factor + g * f)
    return np.array(scaled)


by_parts = by_parts_by_loops(theta, s, L0, 1, 32)
share = (by_parts / theta - 1 / s) / (1 - 1 / s)
assert np.allclose(share, np.clip((turns - 1) / 31, 0, 1), rtol=0, atol=1e-12)

# %% [markdown]
# ### Llama 3's RoPE scaling
#
# [Meta's code for Llama 3.1](https://github.com/meta-llama/llama-models/blob/a9c89c471f793423afd4cc3ca8671d6e56fe64cb/models/llama3/model.py#L45-L64)
# has three branches by wavelength: shorter than $L_0/4$ is kept, longer than $L_0$ is divided, and a line is between.
# It is the same function with $\alpha = 1$ (`low_freq_factor`) and $\beta = 4$ (`high_freq_factor`). A comment there
# says that the values were found by a grid search. Llama 3.1 itself has $b = 500{,}000$, $L_0 = 8192$, $s = 8$.

# %%
show_source(llama3_scaling)
for low, high in ((1, 4), (1, 32)):
    mine = by_parts_by_loops(theta, s, L0, low, high)
    assert np.allclose(llama3_scaling(theta, s, L0, low, high), mine, rtol=1e-12, atol=0)
meta = rope_frequencies(128, 500_000)
meta_ratio = llama3_scaling(meta, 8, 8192) / meta
print("\nLlama 3.1 keeps 29, divides 29, and mixes", meta_ratio[29:35].round(4).tolist())
assert (meta_ratio[:29] == 1).all() and np.allclose(meta_ratio[35:], 1 / 8, rtol=1e-12, atol=0)

# %% [markdown]
# ### YaRN's ramp: paper and code
#
# YaRN is NTK-by-parts and the attention factor that comes below. But
# [its authors' code](https://github.com/jquesnelle/yarn/blob/995db5b575e75230b3384d658f8b944c9662f775/scaled_rope/LlamaYaRNScaledRotaryEmbedding.py)
# has a different ramp from the paper. It asks which pair *index* turns $r$ times:
#
# $$i(r) = \frac{d\,\ln\dfrac{L_0}{2\pi r}}{2\ln b}$$
#
# It rounds $i(32)$ down and $i(1)$ up, and draws a straight line between the two *indices*.


# %%
def index_of(r):
    return d * math.log(L0 / (2 * math.pi * r)) / (2 * math.log(base))


assert np.allclose([index_of(r) for r in turns], np.arange(64), rtol=0, atol=1e-9)
low, high = math.floor(index_of(32)), math.ceil(index_of(1))
assert (low, high) == (16, 41)
show_source(yarn_scaling)
yarn, attention_factor = yarn_scaling(d, s, L0)
divided = np.clip((np.arange(64) - low) / (high - low), 0, 1)
assert np.allclose(yarn, theta / s * divided + theta * (1 - divided), rtol=1e-12, atol=0)

# %% [markdown]
# The turns fall by the same *ratio* from pair to pair, so a line in the turns and a line in the index are
# different curves. **Predict**: which of the two ramps keeps more of the middle pairs?

# %% fold="output" alt="Share of each frequency that is kept, for three ramps, over the pair and over its rotations. Over the pair, YaRN is a line and the paper's ramp is below it. Over rotations, the paper's ramp is the line."
ramps = {"by parts": by_parts, "YaRN": yarn, "Llama 3": schemes["Llama 3"]}
plots.two_ramps(turns, {n: (f / theta - 1 / s) / (1 - 1 / s) for n, f in ramps.items()})
plt.show()
gap = (yarn_scaling(d, 16, L0)[0] - llama3_scaling(theta, 16, L0, 1, 32)) / theta
print(f"s = 16: the released ramp keeps up to {gap.max():.2f} of a frequency more")
ends = np.delete(gap, range(17, 41))
assert (gap[17:41] > 1e-3).all() and np.allclose(ends, 0, rtol=0, atol=1e-14)

# %% [markdown]
# Both have one name, and a model tuned with one must be run with that one. Here
# `yarn_scaling` is the released ramp, and `llama3_scaling(f, s, L0, 1, 32)` the paper's.
#
# There is a third ramp. [gpt-oss](https://github.com/openai/gpt-oss/blob/7b58334/gpt_oss/torch/model.py) does not round
# $i(32)$ and $i(1)$, and a configuration says so with `"truncate": false`. It has 32 pairs, $b = 150{,}000$,
# $L_0 = 4096$ and $s = 32$. **Predict**: which of the pairs rotate at another speed if a program rounds all the same?

# %% fold="output"
rounded, real = (yarn_scaling(64, 32, 4096, 150_000, truncate=t)[0] for t in (True, False))
first, last = (64 * math.log(4096 / (2 * math.pi * r)) / (2 * math.log(150_000)) for r in (32, 1))
print(f"the ramp goes from {first:.4f} to {last:.4f}, or from 8 to 18")
for pair in (8, 9, 12, 17, 18):
    print(f"pair {pair:2}: rounded {rounded[pair]:.6g}, real {real[pair]:.6g}")
f = rope_frequencies(64, 150_000)
g = np.clip((last - np.arange(32)) / (last - first), 0, 1)
assert np.allclose(real, g * f + (1 - g) * f / 32, rtol=1e-12, atol=0)
assert np.flatnonzero(rounded != real).tolist() == list(range(9, 18))
print(f"pair 17 would rotate {rounded[17] / real[17]:.2f} times too fast")
assert (rounded / real).argmax() == 17

# %% [markdown]
# The pairs between the rounded ends do, 9 to 17.
# [Chapter 42](42_rope_in_models.ipynb#where-transformers-reads-a-configuration-differently-second-reading) tells one
# way to lose this config key.
#
# ## All RoPE scalings compared
#
# The figure at the top has the wavelengths of all 64 pairs. Its right panel shows the four characters. Linear scaling
# stretches every wavelength by 4. The new base stretches them along a curve that reaches 4 only at the last pair. YaRN
# leaves pairs 0 to 16, stretches those from 41 on by 4, and mixes between. Llama 3 does the same in ten pairs.
#
# What do the schemes do to the heads?

# %% alt="Scores of the near and the far head under five schemes. For the near head, linear scaling moves the peak to 12 and the others leave it at 3. For the far head, only direct extrapolation rises again."
small = np.arange(17)
near_scores = {name: score(near, small, f) for name, f in schemes.items()}
far_scores = {name: score(far, delta[::16], f) for name, f in schemes.items()}
plots.two_heads(small, near_scores, delta[::16], far_scores, trained=L0)
plt.show()
print("            near, best at   far, lowest   pairs with new angles")
for name, f in schemes.items():
    y, old = score(near, np.arange(64), f), score(far, delta, f)
    unseen = int(((turns < 1) & (s * L0 * f > L0 * theta * (1 + 1e-9))).sum())
    print(f"{name:10} {y.argmax():14} {old.min():13.2f} {unseen:23}")
    assert (unseen == 0) == (name in ("linear", "YaRN", "Llama 3"))
    assert (np.diff(old) < 0).all() == (name != "direct")
    assert (y.argmax() == 12) == (name == "linear")

# %% [markdown]
# By these two heads YaRN and Llama 3 are perfect. The near head reads pairs that both keep, and the far
# head one that both divide by 4. NTK-aware scaling is a compromise: its far head falls to -0.96, below anything
# seen in training.
#
# ### The price of RoPE scaling: heads that read all pairs
#
# Now take the wide head, which reads all pairs. Under linear scaling all of them agree: the distance that was 1000 is
# now 4000. Under YaRN the fast pairs still mean 1000 and the slow ones 4000. **Predict** the best score of
# such heads that look 10, 100, 1000 or 2000 tokens back, where 1 is the full score.

# %% fold="output"
print("w         ", "".join(f"{w:8}" for w in (10, 100, 1000, 2000)))
for name, f in schemes.items():
    heads = [head(np.arange(64), w) for w in (10, 100, 1000, 2000)]
    best = [score(content, delta, f).max() for content in heads]
    print(f"{name:10}", "".join(f"{b:8.2f}" for b in best))
    assert (best[2] > 0.99) == (name in ("direct", "linear"))
    assert best[2] > 0.99 or (best[0] > 0.97 and max(best[2:]) < 0.7)
assert score(wide, delta, schemes["linear"]).argmax() == 4000

# %% [markdown]
# Under the last three no distance fits all pairs any more. Ten tokens back almost nothing of the score is lost, and from
# 1000 on about a third or more. Linear scaling is the only one of the four that merely renames distances (exercise 4). But
# three heads made by hand are not a language model: they show what each scheme does to the input of attention, not which one
# reads best. [Chapter 71](71_study.ipynb) has small models trained for this book.
#
# ### The same schemes in a trained model: Gemma 3 270M
#
# In the local layers of Gemma 3 270M a query attends to the last 512 tokens. Widen this window to 1150, scale the
# rotations of these layers, train nothing, and read the loss of the tokens from 600 on ([chapter
# 81](81_real_rope.ipynb#a-longer-window-without-training-the-sine-comes-up-again)):

# %%
from pe_numpy.book.trained import changes

rows = ("nothing else", "linear", "NTK", "YaRN", "pairs 64 to 79 slower", "pairs 80 to 127 slower")
cost = {name: np.array(changes("window", f"1,150, {name}")) for name in rows}
for name, nats in cost.items():
    print(f"{name:22}", *(f"{x:+.2f}" for x in nats), "nats on three texts")
assert (cost["YaRN"] < 0.2).all() and (cost["linear"] < cost["NTK"]).all()
assert (cost["pairs 64 to 79 slower"] < 0.2).all() and (cost["pairs 80 to 127 slower"] > 2).all()

# %% [markdown]
# YaRN is best, and linear scaling costs less than NTK-aware scaling on each text. Pairs 80 to 127 meet new angles, too, but
# slowing them repairs nothing. Slowing pairs 64 to 79 repairs most. So a new angle need not do harm: in this model
# it depends on what training put into the pair. It is one model, in 4 to 8 bits.
#
# ## How large must the base (rope_theta) be? (second reading)
#
# A head that looks for keys like its query gets $q^\top R_m\,q$ from such a key at distance $m$. If all components of $q$ are
# 1 or -1 (or independent of variance 1, on average), that is
#
# $$q^\top R_m\,q = B(m), \qquad B(m) = 2\sum_i \cos m\theta_i$$
#
# A random key gets 0 on average. So where $B(m)$ is negative, the wanted key scores *below* a random one. [Men et al.
# 2024](https://arxiv.org/abs/2405.14591) ask of a base that $B(m)\ge 0$ up to the context length. **Predict**: does a base of a million
# serve longer texts than one of 500,000?


# %% fold="output"
def score_of_equals(width, base, distance):
    return 2 * np.cos(np.outer(distance, rope_frequencies(width, base))).sum(axis=1)


signs = np.random.default_rng(50).choice([-1.0, 1.0], d)
by_rope = rope(np.tile(signs, (4096, 1)), np.arange(4096), theta) @ signs
assert np.allclose(by_rope, score_of_equals(d, base, np.arange(4096)), rtol=0, atol=1e-9)
negative = {"LLaMA": L0, "Llama 3": 8192}  # trained lengths, and where B is negative first
for case in [(width, b) for width in (64, 128) for b in (10_000, 500_000, 1_000_000)]:
    negative[case] = int((score_of_equals(*case, np.arange(30_000)) < 0).argmax())
print(negative)
order = [(64, 10**4), (128, 10**4), "LLaMA", (64, 10**6), "Llama 3", (64, 500_000)]
assert sorted(negative, key=negative.get) == [*order, (128, 500_000), (128, 10**6)]

# %% [markdown]
# With 128 components yes, with 64 no: the first negative distance does not always grow with the base. The first LLaMA was trained beyond
# its own, 2048 over 1707. Llama 3, with base 500,000 and 8192 positions, stays below. The authors call this an "absolute lower
# bound" (abstract). But the formula is about content that no training chose.
#
# Training does choose. In Gemma 3 270M [fast pairs tell position and slow ones
# content](81_real_rope.ipynb#fast-pairs-for-position-slow-pairs-for-content), which Barbero et al. 2024 suspect of Gemma 7B. So
# [p-RoPE](42_rope_in_models.ipynb#partial-rope-and-proportional-rope-p-rope) stops the slow ones. **DroPE**
# ([Gelberg et al. 2025](https://arxiv.org/abs/2512.12167), abstract) removes all rotations after training, then trains briefly, without long texts. That
# training is needed:

# %%
for experiment, row in (("bands", "all: the slowest 32 stopped"), ("kinds", "all: no rotation")):
    print(f"{row:28}", *(f"{x:+.2f}" for x in changes(experiment, row)), "nats, untrained")
assert max(map(abs, changes("bands", "all: the slowest 32 stopped"))) < 0.05
assert min(changes("kinds", "all: no rotation")) > 1

# %% [markdown]
# ## YaRN's attention factor: sharper scores
#
# Peng et al. also found that perplexity (a measure of surprise, lower is better) falls if all scores are
# multiplied by a number that grows with $s$. With $t$ for a temperature, the softmax gets
# $\frac1t \cdot \frac{q\cdot k}{\sqrt d}$, and their section 3.4 gives
#
# $$\sqrt{\frac1t} = 0.1\,\ln s + 1$$
#
# This is a *fit* to measurements on LLaMA models, not a derivation ([chapter 51](51_extrapolation.ipynb) asks why longer
# texts need sharper scores). The square root is for convenience. Multiply rotated queries and keys by it (that is,
# all cosines and sines), leave attention as it is, and each score is multiplied by its square.

# %%
show_source(yarn_attention_factor)
print("\n  s   on q and k   on the score")
for factor in (1, 2, 4, 16, 40):
    a = yarn_scaling(d, factor, L0)[1]
    assert np.isclose(a, 0.1 * math.log(factor) + 1, rtol=1e-13, atol=0)
    assert a == yarn_attention_factor(factor)
    print(f"{factor:3} {a:10.4f} {a**2:13.4f}")
rng, at, a = np.random.default_rng(0), np.arange(6), attention_factor
q, k, v = rng.standard_normal((3, 6, d))
q, k = rope(q, at, yarn), rope(k, at, yarn)
assert np.allclose((a * q) @ (a * k).T, a**2 * (q @ k.T), rtol=1e-12, atol=1e-12)
sharp, forgot = (attention(f * q, f * k, v, causal_mask(at, at))[0] for f in (a, 1))
difference = np.abs(sharp - forgot).max(axis=1)
assert difference[0] == 0 and (difference[1:] > 0.001).all()

# %% [markdown]
# *A common mistake* is to test at position 0. The first token attends to one key, and the softmax of one score is
# 1 for every factor. A program that had left out such a factor of DeepSeek's agreed with the reference
# "almost exactly" there ([report](https://github.com/onnxruntime/mobius/pull/548)).
#
# **Static YaRN on short prompts.** The factor and the slowed pairs act on every text, also on one that fits into $L_0$. Qwen's
# [model cards](https://huggingface.co/Qwen/Qwen2-72B-Instruct/commit/f346172a0ddccccd0e87b8a47d7ef82e0ec1451f) therefore advise
# to add `rope_scaling` only where long texts are read. Qwen 3's add: set `factor` to the length that you need over the
# trained one ([quoted](https://github.com/turboderp-org/exllamav3/issues/29)). A short text
# has the same 1.2965 on its scores for $s=4$, and its slow pairs turn at a fourth of their speed.
#
# ### DeepSeek's mscale and mscale_all_dim (second reading)
#
# DeepSeek-V2 and V3 rotate only 64 of the 192 components of a query or key ([chapter 44](44_fewer_keys.ipynb)), and the
# factor above sharpens only what rotates. So their configurations have two extra numbers: $\mu$, called `mscale`, and
# $\nu$, called `mscale_all_dim`. With $A(s, \mu) = 0.1\,\mu \ln s + 1$, rotated components are multiplied by the
# left number, and every score by the right one:
#
# $$\frac{A(s, \mu)}{A(s, \nu)}\qquad\qquad A(s, \nu)^2$$
#
# In both models $\mu = \nu$, so the left one is 1.


# %%
def read(mu, nu):
    words = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096,
             "mscale": mu, "mscale_all_dim": nu}  # fmt: skip
    config = {"qk_rope_head_dim": 64, "rope_theta": base, "rope_scaling": words}
    return rope_from_config(config)


for mu, nu in ((0.707, 0.707), (1, 1), (1, 0.5)):
    found, left, right = read(mu, nu), *(0.1 * a * math.log(40) + 1 for a in (mu, nu))
    print(f"mu {mu}, nu {nu}: {found.attention_factor:.6f} {found.score_factor:.6f}")
    assert np.isclose(found.attention_factor, left / right, rtol=1e-12, atol=0)
    assert np.isclose(found.score_factor, right**2, rtol=1e-12, atol=0)

# %% [markdown]
# The right one acts on *all* components, YaRN's factor only on those that rotate. The angles of both are the same, so compare
# *scores*. In
# [DeepSeek's own code](https://github.com/deepseek-ai/DeepSeek-V3/blob/9b4e978/inference/model.py) neither the scale
# nor the frequencies are stretched if the longest text it is set up for fits into $L_0$. In transformers they always
# are.
#
# ## Dynamic NTK: a base that grows with the context length
#
# A fixed factor also changes short texts. **Dynamic NTK** (a post of the user emozilla, June 2023) chooses a new
# factor for each length $L$:
#
# $$s(L) = \begin{cases} 1 & L \le L_0\\ \gamma\,\dfrac{L}{L_0} - (\gamma - 1) & L > L_0\end{cases}$$
#
# With $\gamma = 1$ this is $L/L_0$, the form of Peng et al. (section 3.3). A larger $\gamma$, called `factor` in
# libraries, anticipates growth. It is not the factor of a static scheme: at $L = 2L_0$, $\gamma = 10$
# means $s = 11$.


# %%
def dynamic_by_loops(d, length, trained_length, gamma, base):
    growth = max(length, trained_length) / trained_length
    return ntk_by_loops(d, gamma * growth - (gamma - 1), base)


show_source(dynamic_ntk_scaling)
for length in (100, 2048, 4096, 16384):
    for gamma in (1, 10):
        f = dynamic_ntk_scaling(d, length, L0, gamma)
        assert np.allclose(f, dynamic_by_loops(d, length, L0, gamma, base), rtol=1e-12, atol=0)
assert np.array_equal(dynamic_ntk_scaling(d, 100, L0), theta)
assert np.allclose(dynamic_ntk_scaling(d, 2 * L0, L0, 10), ntk_scaling(d, 11), rtol=1e-12, atol=0)

# %% [markdown]
# ### Dynamic NTK with a KV cache: rotated or unrotated keys
#
# A KV cache keeps keys and values of earlier tokens. Should it store the keys *rotated* or *unrotated*? With
# fixed frequencies both are right ([chapter 41](41_rope_computed.ipynb)). Now the base changes with every
# token beyond $L_0$. We build two attention layers, and compare with a reference: the whole text in one pass.

# %%
rng = np.random.default_rng(0)
weights = rng.standard_normal((2, 3, 8, 8)) / np.sqrt(8)  # layers; W_q, W_k, W_v
tokens = rng.standard_normal((40, 8))
short = 16  # trained length of the toy


def whole_pass(length):
    """Outputs of both layers for the last token, everything rotated for this length."""
    f, at, h, last = dynamic_ntk_scaling(8, length, short), np.arange(length), tokens[:length], []
    for W_q, W_k, W_v in weights:
        q, k = rope(h @ W_q, at, f), rope(h @ W_k, at, f)
        h = h + attention(q, k, h @ W_v, causal_mask(at, at))[0]
        last.append(h[-1])
    return last


# %%
def decode_all(turned_cache):
    """Outputs of both layers for each token, one token at a time."""
    keys, values, rows = [np.zeros((0, 8))] * 2, [np.zeros((0, 8))] * 2, []
    for t in range(len(tokens)):
        f, h, row = dynamic_ntk_scaling(8, t + 1, short), tokens[t : t + 1], []
        for n, (W_q, W_k, W_v) in enumerate(weights):
            key = h @ W_k
            keys[n] = np.vstack([keys[n], rope(key, [t], f) if turned_cache else key])
            values[n] = np.vstack([values[n], h @ W_v])
            seen = keys[n] if turned_cache else rope(keys[n], np.arange(t + 1), f)
            h = h + attention(rope(h @ W_q, [t], f), seen, values[n])[0]
            row.append(h[0])
        rows.append(row)
    return np.array(rows)  # (L, layers, 8)


# %% [markdown]
# **Predict** four curves, for two caches in two layers: which of them stay at zero?

# %% fold="output" alt="Difference between decoding and one pass over all 40 tokens, with a training length of 16. Rotated keys in the cache go wrong in both layers. Unrotated keys are exact in layer 1 and slightly off in layer 2."
reference, errors = np.array([whole_pass(t + 1) for t in range(40)]), {}
for name, turned_cache in (("rotated keys", True), ("unrotated keys", False)):
    off = np.abs(decode_all(turned_cache) - reference).max(axis=-1)  # (L, layers)
    assert off[:short].max() < 1e-12  # up to the trained length nothing changes
    errors |= {f"{name}, layer 1": off[:, 0], f"{name}, layer 2": off[:, 1]}
plots.stale_keys(np.arange(1, 41), errors, short)
plt.show()
assert (
    errors["unrotated keys, layer 1"].max() < 1e-12 < 0.05 < errors["rotated keys, layer 1"].max()
)
assert 0.001 < errors["unrotated keys, layer 2"].max() < errors["rotated keys, layer 2"].max()

# %% [markdown]
# Rotated keys are wrong immediately: each was rotated for the length at which it was written. Unrotated keys make layer 1
# exact, but not layer 2. Its keys and values were computed from what layer 1 returned *then*, and in a whole pass layer 1
# returns something else for the same early tokens. So with dynamic scaling "decoding with a cache" and "reading the
# whole text in one pass" are two computations. A perplexity measured in whole passes is not the perplexity of
# text generated token by token.
#
# ### Dynamic NTK in libraries: which length they use (second reading)
#
# Libraries differ in which $L$ they use, if any.
# [transformers 5.23.0](https://github.com/huggingface/transformers/blob/v5.23.0/src/transformers/modeling_rope_utils.py)
# keeps the base of the longest text so far, until one *shorter* than $L_0$ comes. vLLM had one base, set by the longest text
# that it would accept ([#5093, 2024](https://github.com/vllm-project/vllm/issues/5093)).
# [KerasHub](https://github.com/keras-team/keras-hub/blob/71453d0/keras_hub/src/layers/modeling/rotary_embedding.py)
# divides *every* frequency by $\gamma^{d/(d-2)}$ and calls that dynamic. **Predict** the last of four
# frequencies for texts of 7, 12, 16, 12, 8 and 7 tokens, one after the other, with $L_0 = 8$ and $\gamma = 2$.

# %% fold="output"
texts, longest, kept = (7, 12, 16, 12, 8, 7), 8, []
formula = [dynamic_ntk_scaling(8, length, 8, 2)[-1] for length in texts]
for length in texts:
    longest = 8 if length < 8 else max(longest, length)
    kept.append(dynamic_ntk_scaling(8, longest, 8, 2)[-1])
fixed, every = dynamic_ntk_scaling(8, 16, 8, 2)[-1], rope_frequencies(8)[-1] / 2 ** (8 / 6)
rows = {"formula": formula, "transformers": kept, "vLLM": [fixed] * 6, "KerasHub": [every] * 6}
for name, row in rows.items():
    print(f"{name:12}", *(f"{f:.6f}" for f in row))
assert np.allclose(formula, [0.001 / max(1, n / 4 - 1) for n in texts], rtol=1e-12, atol=0)
assert np.allclose(kept, np.array([1, 1 / 2, 1 / 3, 1 / 3, 1 / 3, 1]) / 1000, rtol=1e-12, atol=0)

# %% [markdown]
# The class of transformers, run on these lengths, gives the second row. There the fourth and fifth texts get the base of
# the third: a text is read differently after a longer one.
#
# ## LongRoPE: a divisor for each pair
#
# **LongRoPE** (Ding et al. 2024) has no ramp. A search finds a divisor $u_i$ for each pair. A
# configuration has two lists of them, and the present length decides which one applies:
#
# $$\begin{gathered}\theta_i' = \frac{\theta_i}{u_i}\qquad
# u = \begin{cases}\text{short list} & L \le L_0\\ \text{long list} & L > L_0\end{cases}\\[4pt]
# a = \sqrt{1 + \frac{\ln s}{\ln L_0}}\end{gathered}$$
#
# Rotated queries and keys are multiplied by $a$ as in YaRN, *also below* $L_0$. Here $s$ is the longest length
# over $L_0$.

# %%
show_source(longrope_scaling)
ones, long = [1, 1, 1, 1], [1, 2, 4, 8]
for length, used in ((4096, ones), (4097, long)):
    f, a = longrope_scaling(8, length, ones, long, 4096, 32)
    print(length, f.round(6).tolist(), f"a = {a:.6f}")
    assert np.allclose(f, [base ** (-i / 4) / used[i] for i in range(4)], rtol=1e-13, atol=0)
    assert np.isclose(a * a, 17 / 12, rtol=1e-13, atol=0)  # 32 = 2^5 and 4096 = 2^12

phi3 = """1.03 1.05 1.05 1.08 1.23 1.23 1.3 1.45 1.6 1.65 1.9 2.86 3.69 5.42 5.49 5.49 9.09 11.58 15.66
15.77 15.79 18.36 21.99 23.08 30.01 32.35 32.59 35.56 39.95 53.84 56.2 57.95 59.29 59.77 59.92 61.19
61.96 62.5 63.37 63.48 63.48 63.66 63.85 64.08 64.76 64.8 64.81 64.81"""

# %% [markdown]
# Phi-3-mini-128k was stretched from 4096 to 131,072 positions, so $s = 32$. The 48 numbers above are the long list of its
# [first configuration](https://github.com/ggml-org/llama.cpp/issues/6849)
# ([another came in July 2024](https://github.com/ggml-org/llama.cpp/pull/8262)). **Predict**: linear, NTK-aware,
# YaRN and Llama 3 scaling all divide the last pair by 32. By what does the searched list divide it?

# %% fold="output" alt="Divisor of each of 48 pairs for a context 32 times as long. The searched list rises from the first pairs on, exceeds 32 at pair 25, where YaRN divides by 2 and Llama 3 by 1, and ends near 65."
phi, f = np.array(phi3.split(), float), rope_frequencies(96)
searched, a = longrope_scaling(96, 4097, np.ones(48), phi, 4096, 32)
found = {"linear": f / 32, "NTK-aware": ntk_scaling(96, 32), "LongRoPE": searched,
         "YaRN": yarn_scaling(96, 32, 4096)[0], "Llama 3": llama3_scaling(f, 32, 4096)}  # fmt: skip
plots.divisors({name: f / scaled for name, scaled in found.items()})
plt.show()
slow = 4096 * f < 2 * np.pi  # no whole rotation in training
reach = (32 * searched / f)[slow].max()  # of the trained arc
print(f"{(phi > 32).sum()} of 48 divisors exceed 32, the last is {phi[-1]}")
print(f"{slow.sum()} slow pairs reach at most {reach:.2f} of their trained arcs; a = {a:.4f}")
assert (found["YaRN"][:16] == f[:16]).all() and phi[15] == 5.49 and 32 * 4096 == 131_072
others = [f[-1] / y[-1] for name, y in found.items() if name != "LongRoPE"]
assert np.allclose(others, 32, rtol=0, atol=1e-12)

# %% [markdown]
# It divides by 64.81, about twice the growth of the text. At pair 15, which YaRN keeps, the list already divides by 5.49.
# These numbers do not say which curve reads best. Phi-3 was trained with its own list.
#
# One more token comes: do the scores of the old ones change? **Predict** it for four schemes with $L_0 = 8$.

# %% fold="output"
q8, k8 = rng.standard_normal((2, 7, 8))  # seven old tokens, in a text of n
ways = {"linear": lambda n: linear_scaling(rope_frequencies(8), 4),
        "YaRN": lambda n: yarn_scaling(8, 4, 8)[0], "dynamic": lambda n: dynamic_ntk_scaling(8, n, 8),
        "LongRoPE": lambda n: longrope_scaling(8, n, ones, long, 8, 4)[0]}  # fmt: skip
print("to length    8     9     10")
for name, way in ways.items():
    turned = [[rope(y, np.arange(7), way(n)) for n in (7, 8, 9, 10)] for y in (q8, k8)]
    scores = [q @ k.T for q, k in zip(*turned, strict=True)]
    same = np.abs(np.diff(scores, axis=0)).max(axis=(1, 2)) < 1e-9
    print(f"{name:12}", *("same " if yes else "other" for yes in same))
    assert same.tolist() == [True, name not in ("dynamic", "LongRoPE"), name != "dynamic"]

# %% [markdown]
# LongRoPE changes old scores once, at the ninth token. There, in mid-answer,
# transformers throws Phi-3's cache away and recomputes it
# ([PR 33129](https://github.com/huggingface/transformers/pull/33129)). vLLM chooses once, by the longest text that it
# accepts ([PR 27431](https://github.com/vllm-project/vllm/pull/27431)), so short prompts may get the long list.
# unsloth chose the long one at $L = L_0$ already ([PR 10681](https://github.com/unslothai/unsloth/pull/10681)).
#
# ## Config keys of RoPE scaling: two names for the trained length
#
# [Chapter 42](42_rope_in_models.ipynb#from-configjson-to-rope-functions) has a table of all config keys for RoPE in a model's
# `config.json`, and the function that reads them, `rope_from_config`. `rope_type` is `linear`, `dynamic`, `yarn`, `llama3`
# or `longrope`. There is one trap: the trained
# length has two names. `yarn`, `llama3` and `longrope` take $L_0$ from `original_max_position_embeddings`.
# `dynamic` takes it from `max_position_embeddings`. For the other three this is as a rule the *stretched* length, and
# they use it as $L_0$ only if the first is missing.

# %%
words = {"head_dim": d, "rope_theta": base, "max_position_embeddings": s * L0}
words["original_max_position_embeddings"] = L0


def read_type(kind, **beside):
    scaling = {"rope_type": kind, "factor": s, **beside}
    return rope_from_config({**words, "rope_scaling": scaling}, length=10_000).frequencies


assert np.array_equal(read_type("linear"), schemes["linear"])
assert np.array_equal(read_type("yarn"), schemes["YaRN"])
bounds = {"low_freq_factor": 1, "high_freq_factor": 4}  # alpha and beta
assert np.array_equal(read_type("llama3", **bounds), schemes["Llama 3"])
assert np.array_equal(read_type("dynamic"), dynamic_ntk_scaling(d, 10_000, s * L0, s))

# %% [markdown]
# ## In short
#
# - **Which config key has the trained length?** `original_max_position_embeddings`. With `dynamic` it is
#   `max_position_embeddings`. A fixed NTK-aware base is only a larger `rope_theta`.
#   [Config keys](#config-keys-of-rope-scaling-two-names-for-the-trained-length).
# - **What does each scaling do?** `linear` divides all frequencies by $s$. NTK-aware takes the base $b\,s^{d/(d-2)}$,
#   so the last is divided by $s$. YaRN and Llama 3 keep fast pairs and divide slow ones. LongRoPE
#   searches divisors. [All](#all-rope-scalings-compared), [NTK](#ntk-aware-scaling-change-the-base),
#   [LongRoPE](#longrope-a-divisor-for-each-pair).
# - **What is Llama 3's rule?** Pairs of more than 4 turns (`high_freq_factor`) in the trained length 8192 are kept. Pairs of
#   less than 1 (`low_freq_factor`) are divided by the factor, 8. The rest are mixed linearly. [Llama
#   3](#llama-3s-rope-scaling).
# - **What is YaRN's attention factor?** $0.1 \ln s + 1$ on rotated queries and keys, so its square on the
#   scores. For $s = 4$ that is 1.1386, and 1.2965 on the scores. Its ramp lies between 1 and 32 turns.
#   [YaRN's factor](#yarns-attention-factor-sharper-scores), [ramp](#ntk-by-parts-keep-divide-and-mix-between).
# - **Does a KV cache work with each scaling?** Yes, if the frequencies are fixed. With `dynamic` or
#   LongRoPE rotated keys in a cache go stale. Cache unrotated ones, but even so a second layer differs from a whole pass.
#   [KV cache](#dynamic-ntk-with-a-kv-cache-rotated-or-unrotated-keys).
# - **What breaks when a context is longer than trained?** Most likely some of the slow pairs. With 64 pairs, base 10,000 and 2048
#   trained positions, 23 pairs never came round, and a longer text shows them new angles.
#   [New angles](#beyond-the-context-length-angles-that-training-did-not-show).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 50` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 50_scaling.py` checks yours.
#
# ### Exercise 1: Scale RoPE twice
#
# A model was stretched by 2 with NTK-aware scaling, and somebody stretches it again by 3. Is the result the same
# as stretching by 6 in one step? And with the ramp of Llama 3, if the second call gets the scaled frequencies
# and the new trained length?
#
# <details><summary>Hint 1</summary>
#
# What does the first scaling do to the base?
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# How many turns does a pair make within the new trained length if the first ramp kept it?
#
# </details>
#
# <details><summary>Solution</summary>
#
# With NTK-aware scaling it is, because the base is multiplied by powers of the factors. With the ramp it is not. A pair that
# the first ramp kept turns twice as often within twice the length.
#
# ```python
# twice = ntk_scaling(d, 3, base * 2 ** (d / (d - 2)))
# assert np.allclose(twice, ntk_scaling(d, 6), rtol=1e-12, atol=0)
# ramp_twice = llama3_scaling(llama3_scaling(theta, 2, L0), 3, 2 * L0)
# assert not np.allclose(ramp_twice, llama3_scaling(theta, 6, L0), rtol=0.05, atol=0)
# ```
#
# </details>
#
# ### Exercise 2: A dynamic NTK base in steps
#
# A library rounds the dynamic factor up to the next power of two. How many different bases does a text get that
# grows from 2048 to 16384 tokens? And show that a cache of *rotated* keys can be brought to a new base.
#
# <details><summary>Hint 1</summary>
#
# The factor $L/L_0$ runs from 1 to 8.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Rotating by $m\theta'$ is rotating by $m\theta$ and then by $m(\theta' - \theta)$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# It gets four bases, so the cache is rotated again three times. Layers beyond the first stay inexact.
#
# ```python
# steps = {2 ** math.ceil(math.log2(length / L0)) for length in range(2048, 16385)}
# assert sorted(steps) == [1, 2, 4, 8]
# old_f, new_f = ntk_scaling(d, 2), ntk_scaling(d, 4)
# turned_keys = rope(x, m, old_f)
# assert np.allclose(rope(turned_keys, m, new_f - old_f), rope(x, m, new_f), rtol=0, atol=1e-9)
# ```
#
# </details>
#
# ### Exercise 3: Which pairs does Llama 3's ramp keep and divide?
#
# Give formulas for the number of pairs that `llama3_scaling` keeps and divides, and check them for Llama 3.1 (29
# kept, 29 divided).
#
# <details><summary>Hint 1</summary>
#
# Use $i(r)$ from the section on YaRN, with the base and the length of Llama 3.1.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Kept: $i \le i(4)$. Divided: $i \ge i(1)$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def place(turned):
#     return 128 * math.log(8192 / (2 * math.pi * turned)) / (2 * math.log(500_000))
#
# n_kept, n_divided = math.floor(place(4)) + 1, 64 - math.ceil(place(1))
# assert n_kept == (meta_ratio == 1).sum() == 29
# assert n_divided == np.isclose(meta_ratio, 1 / 8, rtol=1e-12, atol=0).sum() == 29
# ```
#
# </details>
#
# ### Exercise 4: Which scaling only renames distances?
#
# A scheme slows each pair by at most 4, $\theta_i/4 \le \theta_i' \le \theta_i$, for texts of 8192 tokens. Prove
# that it keeps every score of every head, at some other distance, only if it is linear scaling. Then compute
# what each scheme leaves of the score of a head that reads all pairs and looks 500 tokens back.
#
# <details><summary>Hint 1</summary>
#
# Take the head that reads all pairs and looks one token back. It needs one $\delta'$ with $\delta'\theta_i' = \theta_i$ for
# all $i$, up to whole turns.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The last pair doesn't come round in 8192 positions. What does that say about $\delta'$, and then about the other pairs?
#
# </details>
#
# <details><summary>Solution</summary>
#
# The last pair makes no whole turn, so $\delta' = \theta_{63}/\theta_{63}' \le 4$. Then
# $\delta'\theta_i' \le 4\theta_i \le 4 < 2\pi$, and no pair makes a whole turn. So $\theta_i' = \theta_i/\delta'$ for all
# $i$, which is linear scaling.
#
# ```python
# assert s * L0 * theta[-1] < 2 * np.pi and s * theta[0] < 2 * np.pi
# left = {name: score(head(np.arange(64), 500), delta, f).max() for name, f in schemes.items()}
# assert np.isclose(left["linear"], 1, rtol=1e-9, atol=0)
# assert [f"{left[n]:.2f}" for n in ("NTK-aware", "YaRN", "Llama 3")] == ["0.66", "0.61", "0.86"]
# ```
#
# </details>
#
# ## In practice
#
# - **Divide positions as numbers.** With integer division four tokens share one position, and nothing fails.
# - **Two ratios to test.** After NTK-aware scaling the first ratio is 1 and the last $1/s$. Dividing *every*
#   frequency by $s^{d/(d-2)}$ fails the first test. In partial RoPE, where only the first $d$ of $K$ components rotate,
#   the exponent also takes $d$. With $K$ the second test fails.
# - **Who uses what, with its factor.** `linear` is used by Gemma 3 from 4B on, only in global layers, with 8. `yarn` is
#   used by gpt-oss with 32, and by DeepSeek-V2 and V3 with 40. `llama3` is used by Llama 3.1 with 8. `longrope` is used by
#   Phi-3-mini with 128k, with 32, and by Phi-3.5 and Phi-4-mini.
# - **Batches.** If the length is the length of the longest text in the batch, a short text gets another output
#   beside a long neighbour than by itself. Compute the factor for each text.

# %%
x4 = np.tile(x[:1], (5, 1))
floored, right = (rope(x4, at, theta) for at in (np.arange(5) // s, np.arange(5) / s))
assert len(np.unique(floored.round(9), axis=0)) == 2 and len(np.unique(right.round(9), axis=0)) == 5


def ends(f, f0):
    return [round(float(f[0] / f0[0]), 4), round(float(f[-1] / f0[-1]), 4)]


plain = rope_frequencies(32)  # partial RoPE: 32 of 128 components
assert ends(ntk_scaling(d, 2), theta) == ends(ntk_scaling(32, 2), plain) == [1, 0.5]
assert ends(theta / 2 ** (d / (d - 2)), theta)[0] < 0.5
print("exponent from K:", ends(rope_frequencies(32, base * 2 ** (128 / 126)), plain))

# %% [markdown]
# ## Further reading
#
# - Chen et al. 2023, *Positional Interpolation*, [arXiv:2306.15595](https://arxiv.org/abs/2306.15595), section 2.3.
# - bloc97, June 2023, [on NTK-aware scaling](https://www.reddit.com/r/LocalLLaMA/comments/14lz7j5/); emozilla,
#   June 2023, [on dynamic scaling](https://www.reddit.com/r/LocalLLaMA/comments/14mrgpr/). On its caches:
#   [huggingface/transformers #25104](https://github.com/huggingface/transformers/issues/25104).
# - Peng et al. 2023, *YaRN*, [arXiv:2309.00071](https://arxiv.org/abs/2309.00071), sections 3.1 to 3.4, and its
#   authors'
#   [list of the mistakes of the first preprint](https://github.com/jquesnelle/yarn/blob/349d569839247a6a6ee9184cba070b1777fe2052/Errata.md).
# - Ding et al. 2024, *LongRoPE*, [arXiv:2402.13753](https://arxiv.org/abs/2402.13753), and its
#   [code](https://github.com/microsoft/LongRoPE/blob/c9e56aa/rope/longrope.py).
# - Su 2023, [kexue.fm/archives/9675](https://kexue.fm/archives/9675): RoPE as a number system, the subject of
#   [chapter 51](51_extrapolation.ipynb).
# - Xiong et al. 2023, *Effective Long-Context Scaling of Foundation Models*,
#   [arXiv:2309.16039](https://arxiv.org/abs/2309.16039): a larger base, with training.
#
# **Cards**: [linear](CARDS.md#linear), [ntk](CARDS.md#ntk), [dynamic_ntk](CARDS.md#dynamic_ntk),
# [yarn](CARDS.md#yarn), [longrope](CARDS.md#longrope), [llama3](CARDS.md#llama3).
