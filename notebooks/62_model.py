# %% [markdown]
# # 62. Training an encoder-decoder Transformer
#
# *What must a model keep of what it reads, and what goes wrong without shift, mask or memory?*
#
# 45 minutes. Needs [20 Sinusoidal positional encoding](20_sinusoidal.ipynb), [60 The Transformer block: feed-forward, residual, layer norm](60_layers.ipynb), [61 Automatic differentiation from scratch](61_autodiff.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** A translator reads one sequence and writes another. You build a Transformer for the smallest
# such task, writing a string backwards: an encoder that reads, a decoder that writes, and attention between the two.
# You train it in seconds and look at what it attends to. Then you break it on purpose: the decoder sees the letter that
# it should predict, or the encoder passes on too little, or positions are left out. At the end you can write a training
# loop, and find mistakes that no error message reports.

# %% fold="input" alt="Two towers of boxes. The encoder on the left has letters, embedding, self-attention in both directions, feed-forward network and memory. The decoder on the right has shifted inputs, masked self-attention, cross-attention to the memory, feed-forward network and logits."
import math
import tempfile
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from pe_numpy.book.show import show_source
from pe_numpy.book.plots import model as plots
from pe_numpy.judging.tasks import LETTERS, PAD, reversal_batch, to_strings, to_tokens
from pe_numpy.transformer.encodings import Sinusoidal

plots.encoder_decoder_path("spoons", "^snoops", "snoops$")
plt.show()

# %% [markdown]
# ## Sequence to sequence: reversing strings
#
# Write "spoons" backwards. The first letter that you need is the last one that you read, and then you must still
# know every letter. A model that turns one sequence into another is called **sequence to sequence**. Reversing a
# string is a very small case that needs the whole source. Our alphabet has 29 tokens: the letters, and three marks.
# `_` fills up short strings (padding), `^` begins a target (BOS, "beginning of sequence"), `$` ends it (EOS).

# %%
from pe_numpy import Model, Sizes, causal_mask, cosine_schedule, cross_entropy, decode, dropout
from pe_numpy import embed_tokens, encode, feed_forward, greedy, init_params, layer_norm, load
from pe_numpy import multi_head_attention, save, sinusoidal, train, value_and_grad
from pe_numpy import warmup_schedule
from pe_numpy.transformer.model import block, cross_attention, stack

example = reversal_batch(np.random.default_rng(1), 3, longest=6)
for name, rows in example.items():
    print(f"{name:8} {' '.join(to_strings(rows[1], LETTERS))}   shape {rows.shape}")
no_end = np.where(example["targets"] == LETTERS.index("$"), PAD, example["targets"])
assert np.array_equal(example["inputs"][:, 1:], no_end[:, :-1])

# %% [markdown]
# The inputs are the targets without `$`, shifted by one position, with `^` in front. Most mistakes come from this
# shift.
#
# **Two attempts that fail.** *Write while reading* fails because the first letter that is needed has not been read yet.
# *Read to the end, keep one vector, then write* is how recurrent networks translated in 2014. One vector must then
# contain everything, however long the string. We will train such a model as well, and count its mistakes.
#
# **The idea**, in the figure at the top: keep a vector for *every* token of the source, and let the writer look at
# whichever it needs. The reader is the **encoder**. What it keeps is the **memory**. The writer is the **decoder**,
# and the looking is **cross-attention**: queries from the decoder, keys and values from the memory. $S$ is the number
# of source tokens, $L$ the number of target tokens, $D$ the width, $V$ the vocabulary, $B$ the number of strings
# computed together.
#
# ## The input: token embedding plus positional encoding
#
# A token is a number. The model looks up its row in a learned table $E$, the **embedding**, multiplies it by
# $\sqrt D$ (section 3.4 of Vaswani and others, 2017), and adds the encoding of its position:
#
# $$x_{i} = \sqrt{D}\;E_{w_i} + \mathrm{PE}(i)$$
#
# That paper gives no reason. The usual reading is that the same table serves at the output, where logits
# should not be large, so its entries are small, about $1/\sqrt D$. Beside such a word the positional encoding would be
# far too large.

# %%
word, D = to_tokens("spoons", LETTERS), 512
E = np.random.default_rng(0).standard_normal((29, D)) / math.sqrt(D)  # (V, D)
x = embed_tokens(E, word) + sinusoidal(np.arange(6), D)
for i, c in np.ndindex(6, D):
    code = (math.cos if c % 2 else math.sin)(i / 10000 ** ((c - c % 2) / D))
    assert abs(x[i, c] - (math.sqrt(D) * E[word[i], c] + code)) < 1e-9
lengths = [np.linalg.norm(v) for v in (sinusoidal([5], D), E[word[5]], embed_tokens(E, word[5]))]
print("encoding {:.1f}, word without the factor {:.1f}, with it {:.1f}\n".format(*lengths))
show_source(embed_tokens)

# %% [markdown]
# `Sizes` contains what the parameters will show: how many layers, how wide. `Model` contains what they cannot show:
# the number of heads, the encoding, and where the norm is. `init_params` draws the parameters for both. For the
# checks below they are tiny: width 8, two heads, one layer on each side.

# %% fold="output"
model = Model(n_heads=2, encoding=Sinusoidal(), cross_heads=1)
sides = {"n_layers": 1, "n_encoder_layers": 1}
tiny = Sizes(len(LETTERS), d_model=8, d_ff=16, **sides)
weights = init_params(tiny, model, np.random.default_rng(0), np.float64)
show_source(Sizes, Model)

# %% [markdown]
# ## The encoder: one vector for each token
#
# The encoder is a stack of the blocks of [chapter 60](60_layers.ipynb): self-attention mixes rows, a small network
# treats each row by itself, and around each is a residual connection with a norm. Our model is pre-norm. Nothing is
# compressed: $S$ tokens go in, $S$ vectors come out.
#
# Strings of different length share a batch, so the shorter ones are padded, and a mask must hide the padding. `real`
# marks the non-padding tokens. The test is that a string gives the same memory with padding and without. **Predict**
# what is wrong without `real`. (In the code, a `Context` is what one call knows about its tokens: positions, padding,
# masks. `stack` serves the decoder as well.)

# %% fold="output"
memory = encode(weights, model, [word])  # (1, S, D)
padded = to_tokens(["spoons", "owl"], LETTERS)
both = encode(weights, model, padded, padded != PAD)
alone = encode(weights, model, [to_tokens("owl", LETTERS)])
careless = encode(weights, model, padded)
assert memory.shape == (1, 6, 8) and alone.shape == (1, 3, 8)
assert np.allclose(both[1, :3], alone[0], rtol=0, atol=1e-12)
off = np.abs(careless[1, :3] - alone[0]).max(axis=1)
print("without the mask the three vectors of owl are off by", off.round(1).tolist(), "\n")
assert (off > 0.1).all()
show_source(encode, stack)

# %% [markdown]
# ## The decoder: causal self-attention and cross-attention
#
# A decoder layer has three steps. First, self-attention with the causal mask: row $t$ looks at the rows up to $t$.
# Second, cross-attention: row $t$ looks at the memory. Third, the feed-forward network. With $r_t$ for row $t$ of the
# decoder and $m_j$ for row $j$ of the memory, one head of the second step is (without biases)
#
# $$o_t=\sum_{j=0}^{S-1} w_{tj}\;m_j W^v,\qquad
#   w_{tj}=\operatorname{softmax}_j\frac{(r_t W^q)\cdot(m_j W^k)}{\sqrt K}$$
#
# It has no causal mask: the whole source is known before the first letter is written. Most language models of today
# are **decoder-only**: they have no encoder and no second step, and continue one text ([chapter 64](64_real_models.ipynb)).

# %%
p = weights["decoder"]["layers"]["0"]["cross"]
r = np.random.default_rng(2).standard_normal((1, 4, 8))  # L = 4 rows of a decoder, S = 6
q = r[0] @ p["W_q"]
k, v = (memory[0] @ p[f"W_{n}"] for n in "kv")
powers = [[math.exp(q[t] @ k[j] / math.sqrt(8)) for j in range(6)] for t in range(4)]
w = [[power / sum(row) for power in row] for row in powers]
o = np.array([sum(w[t][j] * v[j] for j in range(6)) for t in range(4)])
output, cross_weights = multi_head_attention(p, r, memory, n_heads=1)
assert cross_weights.shape == (1, 1, 4, 6)  # (B, H, L, S)
assert np.allclose(cross_weights[0, 0], w, rtol=0, atol=1e-12)
assert np.allclose(output[0], o @ p["W_o"], rtol=0, atol=1e-12)
show_source(cross_attention)

# %% [markdown]
# Here is the whole decoder, built from five functions that you know. It takes *any* mask, which we need later. The
# last line multiplies by the output matrix. The result is $V$ numbers per row, the **logits**, whose softmax is the
# distribution of the next token.


# %%
def decode_with(params, tokens, memory, mask, across=None):
    layer = params["decoder"]["layers"]["0"]

    def norm(name, x, of=layer):
        return layer_norm(x, of[name]["gain"], of[name]["bias"])

    x = embed_tokens(params["embedding"], tokens, math.sqrt(memory.shape[-1]))
    x = x + sinusoidal(np.arange(tokens.shape[1]), memory.shape[-1]).astype(memory.dtype)
    y = norm("attention_norm", x)
    x = x + multi_head_attention(layer["attention"], y, y, 2, mask)[0]
    y = norm("cross_norm", x)
    x = x + multi_head_attention(layer["cross"], y, memory, 1, across)[0]
    x = x + feed_forward(layer["feed_forward"], norm("feed_forward_norm", x))
    return norm("norm", x, params["decoder"]) @ params["output"]


# %% [markdown]
# The package's `decode` does the same for any model. Its `cache` is the subject of [chapter 63](63_decoding.ipynb), and
# `watch` takes the attention weights out, for us to look at. The last four lines of its `block` are the three steps.
# One call makes all predictions: because of the causal mask, row $t$ of the long call is the last row of a call
# with the first $t+1$ inputs. So when a model trains, *every* row predicts and enters the loss. When it writes, only
# the last row is used.

# %% fold="output"
shifted, see = to_tokens("^snoops", LETTERS), causal_mask(np.arange(7), np.arange(7))
whole = decode(weights, model, [shifted], memory)[0]  # (L, V): seven predictions at once
parts = decode_with(weights, shifted[None], memory, see)[0]
assert whole.shape == (7, 29) and np.allclose(parts, whole, rtol=0, atol=1e-12)
for t in range(7):
    last = decode(weights, model, [shifted[: t + 1]], memory)[0, -1]
    assert np.allclose(whole[t], last, rtol=0, atol=1e-12)
show_source(block)

# %% [markdown]
# ## Teacher forcing, and the shift to the right
#
# What should the decoder learn? The probability of a whole target $y = (y_0, \dots, y_n)$, given the source $x$. The
# definition of conditional probability, used again and again, splits it without any assumption into a product of
# $p(y_t \mid y_0, \dots, y_{t-1}, x)$ over all positions $t$. So it is enough to predict the *next* token from the
# true tokens before it. In training we have the true tokens, so the decoder gets them, whatever the model itself
# would have written. This is **teacher forcing**: after each answer, right or wrong, the teacher gives the right one,
# and the next question starts from there.
#
# Now the trap. The rows of the decoder see their own input (the mask allows $j \le t$). If input $t$ were the target
# $y_t$, row $t$ would be asked for a token that it is given. So the inputs are **shifted to the right**: row $t$ gets
# the token before, and row 0 gets the mark `^`. Here the batch contains the shifted inputs; some libraries shift in
# the model.
#
# $$u_0 = \text{BOS},\qquad u_t = y_{t-1}$$


# %%
def shift_by_loops(targets, begin=1):
    inputs = [begin] * len(targets)
    for t in range(1, len(targets)):
        inputs[t] = targets[t - 1]
    return inputs


targets = to_tokens("snoops$", LETTERS)
inputs = shift_by_loops(targets)
for t in (0, 1, 6):
    seen = to_strings(np.array(inputs[: t + 1]), LETTERS)
    print(f"row {t} sees {seen:8} and must say {LETTERS[targets[t]]}")
assert inputs == shifted.tolist()
assert inputs[0] == 1 and all(inputs[t] == targets[t - 1] for t in range(1, 7))

# %% [markdown]
# Row $t$ sees *inputs* up to and including $t$, and these are the *targets* before $t$. **A test for every training
# program**: exchange the target at position 3. **Predict** which rows change.

# %% fold="output"
changed = targets.copy()
changed[3] = LETTERS.index("z")  # "snozps$"
after = decode(weights, model, [shift_by_loops(changed)], memory)[0]
moved = (whole != after).any(axis=1)
print("rows that change:", np.flatnonzero(moved).tolist())
assert not moved[: 3 + 1].any() and moved[3 + 1 :].all()

# %% [markdown]
# Row 3, which must predict that target, does not change, because it cannot see the target. Shift and mask are needed
# *together*. The figure shows what each row sees with both, and with one missing.

# %% alt="Three grids of the inputs that each row sees. With shift and mask, no row sees its own target. Without the shift the answer is on the diagonal, without the mask one place right of it; both are marked red."
letters, shown = list("snoops$"), list("^snoops")
panels = [
    ("shift and mask", see, shown, [-1] * 7),
    ("no shift", see, letters, list(range(7))),
    ("no mask", np.ones((7, 7), bool), shown, [1, 2, 3, 4, 5, 6, -1]),
]
for _title, mask, columns, answers in panels[1:]:
    assert all(columns[j] == letters[t] and mask[t, j] for t, j in enumerate(answers) if j >= 0)
plots.teacher_forcing_grids(panels, letters)
plt.show()

# %% [markdown]
# (Even without the mask the last row does not see its answer, because `$` is never an input.)
#
# ## The loss: cross-entropy
#
# Each row ends in a softmax: $p_v$ is the probability that it gives to token $v$. The target is one-hot. The
# **cross-entropy** of the two is
#
# $$-\sum_{v} \operatorname{onehot}(y)_v \,\log p_v \;=\; -\log p_y$$
#
# the surprise at the right token, in **nats** (natural logarithms). The loss is 0 if the model was sure and right.
# Summed over the positions it is $-\log p(y \mid x)$, by the product above. So minimising the sum makes the true target
# as probable as possible. ($e^{\text{loss}}$ is called **perplexity**.)


# %%
def surprise_by_loops(logits, target):
    powers = [math.exp(z) for z in logits]
    p = [power / sum(powers) for power in powers]
    return -sum((v == target) * math.log(p[v]) for v in range(len(p)))


surprises = [surprise_by_loops(whole[t], targets[t]) for t in range(7)]
log_p = whole - np.log(np.exp(whole).sum(axis=1, keepdims=True))  # (7, 29)
assert np.allclose(surprises, -log_p[np.arange(7), targets], rtol=0, atol=1e-12)
print(f"mean {sum(surprises) / 7:.2f}, log 29 = {math.log(29):.2f}")

# %% [markdown]
# The mean is near $\log 29 = 3.37$, the surprise at one of 29 equally likely tokens: the model is untrained. **This
# is the first check of every training.** If the loss is far above it, the model starts out sure of wrong answers. If
# it is far below, the model starts out with knowledge, such as the frequencies of the tokens. A leak does not show
# here, since an untrained model cannot yet use an answer that it sees. The test above, which exchanges one target,
# finds it.
#
# The package's function takes the mean over all tokens that count. `ignore` leaves out the padding.

# %%
assert abs(cross_entropy(whole, targets) - np.mean(surprises)) < 1e-12
tail = np.concatenate([targets, [PAD, PAD]])  # two places of padding
longer = np.concatenate([whole, np.zeros((2, 29))])
assert abs(cross_entropy(longer, tail, ignore=PAD) - np.mean(surprises)) < 1e-12
show_source(cross_entropy)

# %% [markdown]
# ### Sum or mean over tokens?
#
# With $T$ tokens
#
# $$\sum_{t} \ell_t = T\cdot\frac1T\sum_t \ell_t,\qquad \nabla \sum_t \ell_t = T\,\nabla\Big(\frac1T\sum_t \ell_t\Big)$$
#
# Both are smallest at the same parameters. The step of ordinary gradient descent is $T$ times as long for the sum.

# %%
parts = value_and_grad(lambda z: sum(cross_entropy(z[t], targets[t]) for t in range(7)))
total, slope = parts(whole)
mean, mean_slope = value_and_grad(lambda z: cross_entropy(z, targets))(whole)
assert abs(total - 7 * mean) < 1e-12 and np.allclose(slope, 7 * mean_slope, rtol=0, atol=1e-12)
short, long = (  # two strings, made up: at token 0 the surprise is 2 in each of 4 rows, 0.5 in 11
    np.tile([0.0, math.log(math.exp(s) - 1)], (n, 1)) for s, n in ((2.0, 4), (0.5, 11))
)
over_strings = np.mean([cross_entropy(z, [0] * len(z)) for z in (short, long)])
over_tokens = cross_entropy(np.concatenate([short, long]), [0] * 15)
print(f"mean over all tokens {over_tokens:.2f}, mean of means {over_strings:.2f}")
assert np.allclose([over_tokens, over_strings], [0.9, 1.25], rtol=0, atol=1e-12)

# %% [markdown]
# **A common mistake** is to take the mean of each string, then the mean of these means. This gives a token of a short
# string more weight than a token of a long string. Batches too large for a machine are cut into pieces whose
# gradients are added ("gradient accumulation"). Libraries averaged each piece, then the pieces. With pieces of
# unequal length this is a different loss (huggingface/transformers, pull requests #34191 and #34198, October 2024).
#
# ### Label smoothing (second reading)
#
# A one-hot target asks for a probability of exactly 1, which takes infinite logits. **Label smoothing** asks for a
# little less: a share $\varepsilon$ of the target, 0.1 in the first Transformer, is spread over all $V$ tokens.
#
# $$\ell = -(1-\varepsilon)\,\log p_y - \frac{\varepsilon}{V}\sum_v \log p_v$$
#
# Its smallest value is not 0: the best $p$ is the smoothed target itself. A loss that "gets stuck" above zero may be
# perfect.

# %%
by_hand = [-0.9 * log_p[t, targets[t]] - 0.1 / 29 * log_p[t].sum() for t in range(7)]
assert abs(cross_entropy(whole, targets, label_smoothing=0.1) - np.mean(by_hand)) < 1e-12
smoothed = np.log(0.9 * np.eye(29)[targets] + 0.1 / 29)
smooth = value_and_grad(lambda z: cross_entropy(z, targets, label_smoothing=0.1))
print(f"smallest loss with 29 tokens: {smooth(smoothed)[0]:.3f}")
assert np.allclose(smooth(smoothed)[1], 0, rtol=0, atol=1e-12)  # the gradient vanishes

# %% [markdown]
# ## Training: warm-up, dropout, the loop
#
# **The learning rate.** In the usual reading the optimiser's estimates are poor at the start. So the rate begins small
# and rises for $w$ steps (**warm-up**). Later it falls, so that the parameters settle. Equation (3) of the 2017 paper
# does both:
#
# $$\text{rate}(t) = D^{-1/2}\,\min\!\big(t^{-1/2},\; t\,w^{-3/2}\big)$$
#
# The rate is largest at $t=w$, where it is $1/\sqrt{Dw}$. If you know the number of steps beforehand, a rate that falls
# like half a cosine is a common choice.

# %%
for t in range(1, 20_001, 100):
    rising, falling = t / 4000**1.5 / math.sqrt(512), 1 / math.sqrt(512 * t)
    assert abs(warmup_schedule(t, 512, 4000) - (rising if t <= 4000 else falling)) < 1e-12
rates = [cosine_schedule(t, 1000, 0.004) / 0.004 for t in (25, 50, 525, 1000)]
assert np.allclose(rates, [0.5, 1, (1 + 0.02) / 2, 0.02], rtol=0, atol=1e-12)
show_source(warmup_schedule, cosine_schedule)

# %% [markdown]
# **Dropout.** In training, each component of a sublayer's output, and of the embedded input, is set to zero with
# probability $p$, drawn again in each step, so that no later layer can rely on a single number. A component that is
# kept is scaled up, so that its expected value does not change:
#
# $$y_d=\frac{m_d\,x_d}{1-p},\qquad \mathrm{E}[y_d]=x_d$$
#
# with $m_d = 0$ or 1. At inference dropout is off. The function takes a generator of random numbers. Without a
# generator, or with $p=0$, it does nothing, so if you forget to pass one, an evaluation is still right. (Our small
# model needs none.)

# %%
x, p = np.array([1.0, 2.0, 4.0]), 0.25
masks = list(np.ndindex(2, 2, 2))  # all eight masks, each with its probability
chances = [math.prod(1 - p if kept else p for kept in m) for m in masks]
assert np.allclose(chances @ (np.array(masks) * x / (1 - p)), x, rtol=0, atol=1e-12)
dropped = dropout(np.ones((1000, 64)), p, np.random.default_rng(9))
assert set(dropped.ravel()) == {0, 1 / (1 - p)}
assert np.isclose((dropped == 0).mean(), p, rtol=0, atol=0.01)
assert np.array_equal(dropout(x, p), x)  # no generator: inference
show_source(dropout)

# %% [markdown]
# Now the real sizes: one layer on each side, width 32, 23,360 parameters. The `Model` is the same. It has a single
# head of cross-attention, so that there is one map to read. A step draws 32 fresh strings of 3 to 10 letters,
# computes loss and gradients, clips them, and moves the parameters by AdamW ([chapter 61](61_autodiff.ipynb)). One
# string in ten, by its checksum, is **held out**: no training ever draws it. The source needs its padding mask in
# both attentions that read it. The inputs are padded on the right, where the causal mask hides it.

# %%
sizes = Sizes(len(LETTERS), d_model=32, d_ff=64, **sides)


def logits_of(params, batch):
    real = batch["source"] != PAD
    memory = encode(params, model, batch["source"], real)
    return decode(params, model, batch["inputs"], memory, real)


def loss(params, batch, rng=None):
    return cross_entropy(logits_of(params, batch), batch["targets"], ignore=PAD)


# %%
def recipe(params, steps, of=loss, checkpoint=None):
    def batches(rng):
        return reversal_batch(rng, 32)

    def rate(t):
        return cosine_schedule(t, 1000, 4e-3)

    grad, kept = value_and_grad(of), {"checkpoint": checkpoint, "model": model}
    return train(params, grad, batches, steps, rate, **kept)


def count(tree):
    return sum(map(count, tree.values())) if isinstance(tree, dict) else tree.size


# %% [markdown]
# All that is random in step $t$ comes from a generator made from the seed and $t$. So a training that was cut off can
# continue from its `checkpoint` as if nothing had happened. We stop once at step 200, to keep a half-trained model.
# 1000 steps take less than ten seconds (`notebooks/results/bench_models.md`). Outputs are coarse, because another
# processor ends with slightly different parameters.

# %%
beginning = init_params(sizes, model, np.random.default_rng(0))
held_out = reversal_batch(np.random.default_rng(1), 500, held_out=True)
print(f"parameters {count(beginning):,}, loss before training {loss(beginning, held_out):.1f}")
assert abs(loss(beginning, held_out) - math.log(29)) < 0.3
folder = tempfile.TemporaryDirectory()
checkpoint = Path(folder.name) / "training.npz"
half_trained, _ = recipe(beginning, 200, checkpoint=checkpoint)

# %%
params, losses = recipe(beginning, 1000, checkpoint=checkpoint)  # continues at step 201
print("mean of the last fifty losses below 0.02:", np.mean(losses[-50:]) < 0.02)
assert len(losses) == 1000 and losses[0] > 3 and np.mean(losses[-50:]) < 0.02

# %% [markdown]
# Can the model *write*? Writing means: start with `^`, take the most probable token, append it, ask again, until `$`
# comes. `greedy` does this for a batch ([chapter 63](63_decoding.ipynb)). **Exact match** is the share of strings
# without a single mistake.


# %%
def written_by(params, batch, source_real=None):
    real = batch["source"] != PAD if source_real is None else source_real
    L, args = batch["targets"].shape[1], {"source": batch["source"], "source_real": real}
    written = greedy(params, model, batch["inputs"][:, :1], L, end=LETTERS.index("$"), **args)
    return np.pad(written, ((0, 0), (0, L - written.shape[1])))


def exact_match(params, batch, source_real=None):
    right = written_by(params, batch, source_real) == batch["targets"]
    return (right | (batch["targets"] == PAD)).all(axis=1).mean()


# %%
for row in (3, 4):
    source, target = held_out["source"][row], written_by(params, held_out)[row]
    print(to_strings(source, LETTERS).strip("_"), "->", to_strings(target, LETTERS).split("$")[0])
print("before training:", exact_match(beginning, held_out))
print("after 200 steps, between 10 % and 95 %:", 0.1 < exact_match(half_trained, held_out) < 0.95)
print("after 1000 steps, over 99 %:", exact_match(params, held_out) > 0.99)
assert exact_match(beginning, held_out) == 0 and exact_match(params, held_out) > 0.99

# %% [markdown]
# ## Cross-attention maps: what the decoder looks at
#
# From here on figures and tables show one committed training (`notebooks/results/make_reversal.py`, the recipe above,
# seed 0), so that they are the same on every machine. Row $t$ must predict letter $n-1-t$ of
# the source. **Predict** where in the map of cross-attention the large weights lie.

# %% fold="output" alt="Cross-attention maps of spoons and question. In both, the large weights are on the anti-diagonal, from the last source letter in the first row to the first letter; neighbours share some weight."
stored = load("results/reversal.npz")
kept = stored["params"]
for string, map_ in stored["maps"].items():
    watch = {}
    memory = encode(kept, model, [to_tokens(string, LETTERS)])
    decode(kept, model, [to_tokens("^" + string[::-1], LETTERS)], memory, watch=watch)
    assert np.allclose(watch["cross 0"][0, 0], map_, rtol=0, atol=2e-3)
plots.reversal_maps(stored["maps"])
plt.show()

# %% [markdown]
# They are on the anti-diagonal. Only the loss taught the model to look there. How often is the largest weight of a row
# on the anti-diagonal, and how large is the weight there?


# %%
def anti_diagonal(params, batch):
    watch, real = {}, batch["source"] != PAD
    memory = encode(params, model, batch["source"], real)
    said = decode(params, model, batch["inputs"], memory, real, watch=watch).argmax(axis=-1)
    w, n, t = watch["cross 0"][:, 0], real.sum(axis=1, keepdims=True), np.arange(11)
    place, letter = np.maximum(n - 1 - t, 0), t < n  # (B, L)
    on_it = np.take_along_axis(w, place[:, :, None], axis=2)[letter].mean()
    right = (said == batch["targets"])[letter].all()
    return (w.argmax(axis=2) == place)[letter].mean(), on_it, right


hits, weight, right = anti_diagonal(kept, held_out)
print(f"largest in {100 * hits:.0f} % of the rows, mean weight {weight:.2f}")
assert 0.95 < hits < 1 and right and anti_diagonal(params, held_out)[0] > 0.95

# %% [markdown]
# In 99% of the rows the *largest* weight is on the anti-diagonal (above 98% in five trainings with five seeds:
# `notebooks/results/bench_models.md`). The *mean weight* there is only 0.76; the neighbours share the rest. The model
# writes the right letter even where a neighbour has the largest weight. So the map by itself does not show what the
# model will write.
#
# ## Ablations: target shift and causal mask
#
# First **no shift**: inputs equal to the targets. Then **no causal mask**, with `decode_with`. **Predict** for both:
# does the loss fall faster or slower than above?


# %% fold="output"
def loss_without_shift(params, batch, rng=None):
    return loss(params, {**batch, "inputs": batch["targets"]})


def loss_without_mask(params, batch, rng=None):
    memory = encode(params, model, batch["source"], real := batch["source"] != PAD)
    logits = decode_with(params, batch["inputs"], memory, None, real[:, None, None, :])
    return cross_entropy(logits, batch["targets"], ignore=PAD)


for wrong in (loss_without_shift, loss_without_mask):
    cheat, falling = recipe(beginning, 200, of=wrong)
    print("below a third of the right loss:", np.mean(falling[-20:]) < np.mean(losses[180:200]) / 3)
    assert np.mean(falling[-20:]) < np.mean(losses[180:200]) / 3
    assert exact_match(cheat, held_out) < 0.01 and abs(falling[0] - math.log(29)) < 0.3

# %% [markdown]
# The loss falls *faster*, and the model cannot write a single string in a hundred. It learned to copy the answer that
# it was shown. Neither the loss nor the accuracy, measured with the true inputs, shows the mistake. Letting the model
# write shows it, and so does exchanging one target. **A common mistake**: a user of T5 gave `decoder_input_ids` equal
# to `labels`, and the trained model wrote "gibberish" (huggingface/transformers #11977).
#
# ## Ablations: memory and positions
#
# The committed run has three more, all with the full 1000 steps. *One vector in all*: the memory is replaced by the
# mean of its rows, one vector of 32 numbers. *No positions*: only embeddings, on both sides. *RoPE*: no sinusoids
# either, but `Rope()` as the encoding, which rotates queries and keys of every self-attention
# ([chapter 40](40_rope_derived.ipynb)).

# %%
tests, curves = stored["tests"], stored["curves"]
print(f"{'per cent right':18} given  free exact")
for name, test in tests.items():
    given, free = 100 * test["tokens"]
    print(f"{name:18} {given:5.1f} {free:5.1f} {100 * test['exact'][1]:5.1f}")
assert tests["as it should be"]["exact"][1] > 0.99 > 0.5 > tests["one vector in all"]["exact"][1]
assert tests["no shift"]["exact"][1] == tests["no causal mask"]["exact"][1] == 0
assert 0.9 < tests["RoPE"]["exact"][1] < 0.95

# %% [markdown]
# *given*: tokens right when the true prefix is given (the two cheats are also given the answer). *free*: when the
# model continues its own prefix. *exact*: strings without a mistake.

# %% alt="Left: losses of five training runs on a log scale. No shift and no causal mask fall fastest and lowest, then the correct one; one vector and no positions stay high. Right: exact match is 100, 0, 0, 40 and 4 per cent."
percent = {name: 100 * float(tests[name]["exact"][1]) for name in curves}
lowest = sorted(curves, key=lambda name: curves[name][-1])
assert set(lowest[:2]) == {"no shift", "no causal mask"}
plots.losses_and_matches(10 * np.arange(100) + 5.5, curves, percent)
plt.show()

# %% [markdown]
# The two lowest losses belong to the two models that can write nothing. **Without positions** 4% are right, because
# the model can tell *which* letters there are, but not their order. The run leaves positions out on both sides at
# once. The encoder, which has no causal mask, then has no order at all. In the decoder the causal mask still tells
# how many letters have been written ([chapter 11](11_why_position.ipynb)). **With RoPE** 92.7% are right, in one
# training with one seed. RoPE gives a self-attention the distances between tokens. Cross-attention has no position
# here, so a source letter's position reaches the decoder only if the encoder has put it into the memory.
#
# ### The fixed-vector bottleneck
#
# With one vector 40% of the strings are right. Which ones?

# %% alt="Exact match against the length of the string. With one vector per letter it stays at 100 per cent; with one vector in all it falls from 100 at three letters to 0 at ten."
each, one = (100 * tests[n]["exact by length"] for n in ("as it should be", "one vector in all"))
by_length = {"one vector for each letter": each, "one vector in all": one}
assert (each > 99).all() and (np.diff(one) < 0).all()
bits = 8 * encode(params, model, held_out["source"])[0].mean(axis=0).nbytes  # of one vector
assert bits == 1024 and 26**217 < 2**bits < 26**218
plots.match_by_length(np.arange(3, 11), by_length)
plt.show()

# %% [markdown]
# The short strings are right. Three letters fit into 32 numbers, ten don't (after this training). Bahdanau and others
# (2015, figure 2) found the same shape in translation. Counting proves that the curve must fall somewhere: 32 numbers
# of float32 are 1024 bits, and from 218 letters on there are more strings than 1024 bits can distinguish.
#
# ### Exposure bias: what teacher forcing hides
#
# After 200 steps the model gets 91.7% of the tokens right if the true prefix is given, and 86.1% if it must continue
# its own. In training it has never seen a prefix with a mistake in it. When it writes, its prefix contains its own
# mistakes. This gap is called **exposure bias**. After its first mistake in a string, 90% of the following tokens are
# right with the true prefix, 63% with its own. Exact match cannot show the gap. Up to the first mistake the true
# prefix and the model's own are the same, so a string is right in both ways or in neither:
#
# $$\text{exact match, given} = \text{exact match, free}$$

# %%
for name, test in tests.items():
    if name != "no shift" and name != "no causal mask":  # those two see the answer, not a prefix
        assert test["exact"][0] == test["exact"][1], name
given, free = tests["after 200 steps"]["after a mistake"]
print(f"after a mistake: {100 * given:.0f} % with the true prefix, {100 * free:.0f} % with its own")

# %% [markdown]
# ## In short
#
# - **What passes from the encoder to the decoder?** One vector *for each source token*, $(B, S, D)$. The
#   decoder's queries attend to its keys and values, with only a padding mask. One vector for all lowers exact match
#   from 100% to 40%. [Cross-attention](#the-decoder-causal-self-attention-and-cross-attention),
#   [the fixed-vector bottleneck](#the-fixed-vector-bottleneck).
# - **Why are the decoder's inputs shifted right?** Row $t$ sees inputs up to $t$, so input $t$ must be
#   target $t-1$. Without the shift, or without the causal mask, the loss falls faster and no string is written right.
#   [Teacher forcing](#teacher-forcing-and-the-shift-to-the-right),
#   [ablations](#ablations-target-shift-and-causal-mask).
# - **How long is the training, and what is the learning rate?** 1000 steps, less than ten seconds, give over 99% exact
#   match. The rate rises in a warm-up, then falls. From a checkpoint a training continues to the same bits.
#   [Training](#training-warm-up-dropout-the-loop), [checkpoints](#checkpoints-save-load-and-resume).
# - **When does writing stop, and do longer strings or no positions work?** It stops at `$`. Strings of 11 or 12 letters
#   fail after at most 10 in training. Without positions on both sides 4% are right.
#   Cross-attention uses no positions.
#   [Writing](#training-warm-up-dropout-the-loop), [no positions](#ablations-memory-and-positions),
#   [longer strings](#in-practice).
# - **What should the first loss be?** About $\log V$, here 3.37 for 29 tokens. A leak does not show in it. The mean
#   of the means of unequal pieces is a different loss. [The loss](#the-loss-cross-entropy),
#   [sum or mean](#sum-or-mean-over-tokens).
# - **Why is accuracy high and writing bad?** Accuracy is measured after the true prefix, but the model writes after
#   its own. Half-trained, it gets 91.7% of the tokens right after the true prefix, 86.1% after its own. [Exposure
#   bias](#exposure-bias-what-teacher-forcing-hides).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 62` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 62_model.py` checks yours.
#
# ### Exercise 1: Shifted twice
#
# A library shifts the targets, and you have shifted them as well: $u_0 = u_1 = \text{BOS}$, $u_t = y_{t-2}$. Which
# targets does row $t$ see? Is the answer in view? What is lost?
#
# <details><summary>Hint 1</summary>
#
# Apply `shift_by_loops` twice to `targets` and print what each row sees.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The answer must not be in view; the token before it should be.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Row $t$ sees the targets up to $t-2$. Nothing leaks, so the loss looks honest, but the newest token is missing. When
# the model writes, row $t$ would be given $y_{t-1}$, where training gave it $y_{t-2}$.
#
# ```python
# twice = shift_by_loops(shift_by_loops(targets))
# for t in range(2, 7):
#     assert twice[: t + 1][2:] == targets[: t - 1].tolist()
# assert twice[:2] == [1, 1]
# ```
#
# </details>
#
# ### Exercise 2: Padding in the loss
#
# Leave out `ignore=PAD`. How does the loss of the untrained model change, and how does the loss of the trained one?
# Which of the two numbers would mislead you?
#
# <details><summary>Hint 1</summary>
#
# Compute `cross_entropy(logits_of(params, held_out), held_out["targets"])`.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The trained model was never told what to predict after `$`.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Before training it changes a little: every token is about equally surprising. After training it is far higher, since
# what comes after `$` was never learned. The loss of the trained model is the number that misleads.
#
# ```python
# def counted(p):
#     return cross_entropy(logits_of(p, held_out), held_out["targets"])
# assert abs(counted(beginning) - loss(beginning, held_out)) < 0.5
# assert counted(kept) > 100 * loss(kept, held_out)
# ```
#
# </details>
#
# ### Exercise 3: Perplexity
#
# What is the perplexity for a model that gives equal probability to $V$ tokens? For one that hesitates between two
# tokens, equally likely, and rules out the rest?
#
# <details><summary>Hint 1</summary>
#
# The loss of the first is $\log V$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Logits of $-10^{9}$ rule tokens out.
#
# </details>
#
# <details><summary>Solution</summary>
#
# They are $V$ and 2: the number of equally likely tokens among which the model seems to choose.
#
# ```python
# two = np.where(np.arange(29) < 2, 0.0, -1e9)[None]
# assert abs(math.exp(cross_entropy(two, [1])) - 2) < 1e-9
# assert abs(math.exp(cross_entropy(0 * two, [1])) - 29) < 1e-9
# ```
#
# </details>

# %% [markdown]
# ## Deeper
#
# ### Checkpoints: save, load and resume
#
# `save` writes nested dictionaries of arrays into one file, which appears under its name only when it is complete.
# `load` compares the checksum of every array before it returns anything. Neither uses pickles, so an untrusted file
# cannot run code, and a size that it claims is compared with the file's own before memory is taken for it. Given the
# model, the file also records what parameters can't show (heads, the encoding and its base, the place of norms), and
# `load` compares it.

# %%
file, bad, other = (Path(folder.name) / f"{name}.npz" for name in ("model", "bad", "cut"))
save(file, {"params": params}, model=model)
again = load(file, like={"params": beginning}, model=model)["params"]  # the same, or an error
assert np.array_equal(logits_of(again, held_out), logits_of(params, held_out))  # to the last bit
data = bytearray(file.read_bytes())
data[len(data) // 2] ^= 1  # one bit flips on the disk
bad.write_bytes(data)
for path, expected in ((file, replace(model, n_heads=4)), (bad, model)):
    try:
        load(path, model=expected)
    except ValueError as error:
        print(str(error).replace(str(path), path.name))
recipe(beginning, 5, checkpoint=other)  # the power fails after step 5
straight, resumed = recipe(beginning, 12)[0], recipe(beginning, 12, checkpoint=other)[0]
assert np.array_equal(straight["output"], resumed["output"])  # to the last bit

# %% [markdown]
# ### The code of the decoder and the training loop
#
# Here is the package's code of the decoder, the training loop, and the two functions that keep its results:

# %% fold="output"
show_source(decode, train, save, load)

# %% [markdown]
# ## In practice
#
# **Who shifts?** Some libraries shift inside the model, some expect you to. For the first kind you give only labels.
# If you shift them yourself as well, the model learns to predict the token after next, with no error message
# (huggingface/transformers, pull request #44642; #14139 describes both kinds).
#
# **The padding mask.** If it is forgotten at test time only, strings that need no padding are still right, so a test
# on strings of one length would not find the mistake. **Longer strings**: the model was trained on 3 to 10 letters,
# and it fails on 11 or 12. The sinusoidal encoding can be *computed* there, but no training has used it. Which
# encodings do better is the subject of [chapter 71](71_study.ipynb).

# %%
forgotten = np.ones(held_out["source"].shape, bool)
print(f"exact match with the padding mask {exact_match(kept, held_out):.2f}", end="")
print(f", without {exact_match(kept, held_out, source_real=forgotten):.2f}")
longest = (held_out["source"] != PAD).all(axis=1)
full_length = {name: rows[longest] for name, rows in held_out.items()}
assert exact_match(kept, full_length, source_real=forgotten[longest]) > 0.99
assert exact_match(kept, held_out, source_real=forgotten) < 0.8
longer_strings = reversal_batch(np.random.default_rng(2), 200, 11, 12, held_out=True)
assert exact_match(params, longer_strings) < 0.1 and exact_match(kept, longer_strings) < 0.1
folder.cleanup()

# %% [markdown]
# ## Further reading
#
# - A. Vaswani and others, "Attention is all you need", 2017, [arXiv:1706.03762](https://arxiv.org/abs/1706.03762),
#   sections 3, 5.3 and 5.4.
# - I. Sutskever and others, "Sequence to sequence learning with neural networks", 2014,
#   [arXiv:1409.3215](https://arxiv.org/abs/1409.3215): one vector for the sentence. D. Bahdanau and others, "Neural
#   machine translation by jointly learning to align and translate", 2015,
#   [arXiv:1409.0473](https://arxiv.org/abs/1409.0473): attention to all source words.
# - R. Williams and D. Zipser, Neural Computation 1, 1989: teacher forcing. M. Ranzato and others, "Sequence level
#   training with recurrent neural networks", 2016, [arXiv:1511.06732](https://arxiv.org/abs/1511.06732): exposure
#   bias.
