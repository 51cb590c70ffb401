# %% [markdown]
# # 71. Train short, test long
#
# *Which encodings hold beyond the trained length, at which task, and which claims show themselves in small models?*
#
# 50 minutes. Needs [35 Punish distance: ALiBi](35_alibi.ipynb), [51 Read longer than you trained](51_extrapolation.ipynb), [62 Train an encoder and a decoder](62_model.ipynb).

# %% fold="input" alt="Loss on long text against needles found, fourteen schemes. What one sees: DeBERTa, Shaw and Transformer-XL upper left; steep ALiBi with Shaw's loss but far lower; RoPE with linear scaling and TUPE upper right; direct RoPE lower right."
import csv
import matplotlib.pyplot as plt
import numpy as np
from pe_numpy.plots import study as plots

with open("results/study.csv", encoding="utf-8") as file:
    table = list(csv.DictReader(line for line in file if not line.startswith("#")))
points, axes = {}, (("text", "loss_8x"), ("needle", "accuracy_8x"))
for name, (encoding, scaling) in plots.MODELS.items():
    wanted = {"encoding": encoding, "scaling": scaling, "factor": "", "tuning": "0", "log_n": "0"}
    own = [row for row in table if wanted.items() <= row.items()]
    xy = [[float(row[column]) for row in own if row["task"] == task] for task, column in axes]
    points[name] = np.transpose(xy) * (1, 100)
plots.loss_against_needles(points)
plt.show()

# %% [markdown]
# ## Short answers
#
# - **Which encodings keep their loss on longer texts?** Of ten: Shaw, Transformer-XL, DeBERTa and ALiBi rise by less
#   than 0.06 nats at eight times the length. Sinusoidal, learned, TUPE and RoPE jump. [Shown](#ten-encodings-eight-times-as-far).
#   More training makes these worse there, and T5 better. [Shown](#what-more-training-changes).
# - **Does a flat loss mean a long memory?** No. ALiBi with steep slopes and Shaw's vectors have one loss on long text,
#   1.86; the first finds 57 % of the *needles* (one fact among many), the other 94 %. [Shown](#a-flat-loss-is-no-long-memory).
# - **Which scaling of RoPE?** As trained: on languages dynamic NTK; for needles YaRN or linear. But linear scaling
#   loses exact distances: "which symbol stood three back?" falls to 6 %, a guess. Fine-tuned for 60 steps at four times
#   the length: YaRN or dynamic NTK; linear is worse there, NTK with a fixed factor jumps beyond. [Shown](#stretching-rope).
# - **Which base for RoPE?** One that fits the length. Base 10000, trained on 32 tokens, fails at 64: a pair that made half a
#   turn in training goes beyond it. [Shown](#the-base-must-fit).
# - **Does $\log n$ help?** It finds needles for ALiBi and dynamic NTK, none for direct RoPE, and raises most losses of the
#   languages. [Shown](#does-log-n-help).
# - **How was it measured?** Small models, trained on 32 tokens (300 to 600 steps, three seeds), read
#   up to 256: two languages, two probes. [Shown](#the-table-of-the-study).

# %% [markdown]
# The picture shows the models at 256 tokens: to the right the loss on text, upwards the share of needles found. Large
# dots are means, small ones the three seeds.
#
# ## Two things can go wrong
#
# When a text is longer than the trained length $L_0$, two things can go wrong:
#
# 1. **Unseen positions.** A learned table has rows that no training has touched. A sinusoidal code and RoPE have
#    nothing to train, but the layers that read them never met these numbers.
# 2. **Scattered attention.** A softmax over 256 keys spreads its weight over more keys than one over 32, even if
#    nothing else has changed ([chapter 51](51_extrapolation.ipynb)).
#
# The first can strike at once, if what is unseen is unlike what was seen. The second should creep in.
# And what do papers, and common advice, say?
#
# | | claim | who |
# |---|---|---|
# | 1 | Sinusoidal models fail soon beyond $L_0$; ALiBi's loss stays as low as it was. | Press et al. 2022 |
# | 2 | T5's bias lasts longer than RoPE, RoPE longer than sinusoids. | Press et al. 2022 |
# | 3 | A decoder without any position code reads beyond $L_0$ at least as well as one with a code. | Kazemnejad et al. 2023, on reasoning |
# | 4 | RoPE read directly fails badly; with linear interpolation it needs a brief fine-tuning, and is then well. | Chen et al. 2023 |
# | 5 | NTK-aware scaling works without any fine-tuning; YaRN is better, above all after one. | bloc97 2023, Peng et al. 2023 |
# | 6 | Scores times $\log n$ keep attention together beyond $L_0$. | Su 2021, Chiang and Cholak 2022 |
# | 7 | A larger base makes RoPE fit for longer texts. | common advice |
# | 8 | Perplexity is a local measure, which favours attention to what is near. | common advice |
#
# **Place your bets.** For each claim write "holds", "half" or "fails" on a sheet of paper, for a model of two
# layers trained on 32 symbols. At the end of the chapter you compare.
#
# ## What is measured
#
# Two **languages** have to be continued. The first is made: 16 symbols, and the last two decide how likely each
# next one is (a **Markov** language of order two). Here we know the least possible loss, the entropy of the next
# symbol $c$ when the last two, $a$ and $b$, are known:
#
# $$H=-\sum_{a,b}p(a,b)\sum_c p(c\mid a,b)\,\ln p(c\mid a,b)$$

# %%
from pe_numpy.training import experiment

language = experiment.tasks.markov_language()
entropy = 0.0
for a in range(16):
    for b in range(16):
        for p in language["table"][a, b]:
            entropy -= language["pairs"][a, b] * p * np.log(p)
print(f"least possible loss {entropy:.3f} nats, of a blind guess {np.log(16):.3f}")
print(f"least possible perplexity {np.exp(entropy):.1f}, of a blind guess {np.exp(np.log(16)):.0f}")
assert abs(entropy - language["entropy"]) < 1e-9

# %% [markdown]
# (The exponential of a loss is the **perplexity**: a model is as unsure as one that wavers between so many
# equally likely symbols.) The second language is English: Newton's *Opticks*, in an alphabet of 49
# characters. Three **probes** ask for one skill each, and the share of right answers is compared with **chance**,
# that of a guess:
#
# - **offset**: which of 16 symbols stood three places back? Chance is one in 16, 6 per cent.
# - **needle**: each token is a pair of a key and a value, the last one names a key that occurred once. Which of 8
#   values stood with it? The needle may lie anywhere. Chance is one in 8.
# - **word order**: "dog bites man" or "man bites dog"? Who bites? Chance is one in two.
#
# All but the last are trained on windows of $L_0=32$ tokens and tested at $L=32, 64, 128, 256$.
#
# *A common mistake* is the mean over whole windows: the first tokens of a window are hard to predict, and a long
# window has a smaller share of them, so it would look *better* (exercise 1). Therefore every length has the same targets here, the last $L_0/2$ tokens of the same windows. What changes is how much
# context stands before them, and with it their index $i$. (Only the needle has one target, its last, and windows
# drawn anew for each length.)

# %% alt="Four bars, right ends aligned: windows of 32, 64, 128 and 256 tokens. What one sees: the last 16 tokens, those to be predicted, are the same in all four; only the context grows."
lengths = [32, 64, 128, 256]
plots.windows_of_the_test(lengths, asked=16)
plt.show()

# %%
from dataclasses import replace
from pe_numpy import decode
from pe_numpy.training.experiment import draw, fit, measure, model, recipe


def loss_by_loops(c, length, windows):
    """The mean surprise, one logit at a time."""
    params, transformer, total, last = fit(c), model(c), 0.0, c.length // 2
    for w in range(len(windows["inputs"])):
        x, targets = windows["inputs"][w, -length:], windows["targets"][w, -length:]
        logits = decode(params, transformer, x[None])[0]  # (L, V)
        for i in range(length - last, length):
            exponentials = [np.exp(float(logit)) for logit in logits[i]]
            total -= np.log(exponentials[targets[i]] / sum(exponentials))
    return total / (len(windows["inputs"]) * last)


# %% [markdown]
# In letters, with $W$ windows $x_1\dots x_W$:
#
# $$\mathrm{loss}(L)=-\frac{1}{W\,L_0/2}\sum_{w=1}^{W}\;\sum_{i=L-L_0/2}^{L-1}
#   \ln p\,(\text{target}_{w,i}\mid x_{w,0},\dots,x_{w,i})$$
#
# We try it on a model of the offset probe with RoPE, trained on the spot by 300 steps of AdamW: `recipe`
# knows sizes that learn a task in seconds, `fit` trains, `model` gives the Transformer, and `measure` does all of
# it and the test. What is drawn for a test occurs in no training.

# %%
live = replace(recipe("offset", "rope"), tests=4)
windows = draw("offset", np.random.default_rng(0), 4, 256, held_out=True)
by_loops = [loss_by_loops(live, length, windows) for length in lengths]
assert np.allclose(by_loops, measure(live).losses, rtol=1e-3, atol=1e-6)
print("loss at 32, 64, 128, 256:", [f"{loss:.0f}" for loss in by_loops])

# %% [markdown]
# ## Inside one small model
#
# This model has one layer and four heads. It was never told the rule "three places back": it has learned from
# examples which key to look at. Beyond 32 tokens we can read the same parameters in four ways: RoPE as it was
# trained (**direct**), or with frequencies stretched by $s=L/L_0$: **linear** interpolation, **dynamic NTK** (NTK
# with the factor of the present length), **YaRN** ([chapter 50](50_scaling.ipynb)).
#
# **Predict**: linear interpolation makes all angles of 128 positions fit into those of 32. Does it
# help a model that has to look three places back?

# %% fold="output"
live = recipe("offset", "rope")
answers = {}
for scaling in ("direct", "linear", "dynamic_ntk", "yarn"):
    answers[scaling] = np.array(measure(replace(live, scaling=scaling)).accuracies)
    print(f"{scaling:12}", [f"{100 * share:.0f} %" for share in answers[scaling]])

# %% [markdown]
# It does not help, it *destroys*: at twice the trained length the answers are guesses. Direct reading survives
# twice the length and breaks at four times. Dynamic NTK and YaRN, with nothing trained anew, keep most of their
# answers. Why? Ask the model where it looks: the mean weight that each head puts on the key at distance $i-j$.


# %%
def weight_by_distance(c, length, reach=20):
    """Mean attention weight (H, reach) at each distance, over windows and the last queries."""
    seen = {}
    inputs = draw(c.task, np.random.default_rng(1), 32, 256, held_out=True)["inputs"][:, -length:]
    decode(fit(c), model(c), inputs, watch=seen)
    weights = seen["attention 0"].mean(axis=0)  # (H, L, L)
    rows = [weights[:, i, i::-1][:, :reach] for i in range(length - 8, length)]
    return np.mean(rows, axis=0)


looks = {"as trained, $L$ = 32": weight_by_distance(live, 32)}
for scaling, name in (("direct", "direct"), ("linear", "linear"), ("dynamic_ntk", "dynamic NTK")):
    looks[f"{name}, $L$ = 128"] = weight_by_distance(replace(live, scaling=scaling), 128)

# %% alt="Attention weight over distance, four heads, four panels. What one sees: sharp peaks at 3 as trained; read directly at 128 one head keeps half of its peak; with linear scaling broad peaks at 12; with dynamic NTK peaks at 3 and small ones at 9."
plots.attention_by_distance(looks, places=3)
plt.show()
assert looks["direct, $L$ = 128"].mean(axis=0).sum() < 0.2

# %% [markdown]
# Read directly, most of the weight has gone to keys farther off than the panel reaches. With linear
# interpolation the heads look, all together, at distance **12**. They have not learned "three places", they have
# learned "the angle of three places", and with all angles four times smaller that angle belongs to $3\cdot4=12$
# places:
#
# $$\Bigl(\frac{\theta}{s}\Bigr)\cdot(s\,d)=\theta\cdot d$$

# %%
from pe_numpy import ntk_scaling, rope, rope_frequencies

q, k = np.random.default_rng(0).standard_normal((2, 1, 8))
theta = rope_frequencies(8, experiment.BASES["rope"])
scores = [(rope(q, [d], f) @ k.T).item() for d, f in ((12, theta / 4), (3, theta))]
assert np.isclose(*scores, rtol=1e-12)
trained, _, linear, ntk = (rows.mean(axis=0) for rows in looks.values())
assert (trained.argmax(), linear.argmax(), ntk.argmax(), 4 + ntk[4:].argmax()) == (3, 12, 3, 9)
assert np.allclose((ntk_scaling(8, 4, 500) / theta)[:2], [1, 2 / 3], rtol=0, atol=0.05)

# %% [markdown]
# Dynamic NTK leaves the fastest pair as it is (and slows the next by a third), and it is the fastest pair that
# tells 3 from 4 best. So its peak stays at 3, though lower. (The small peak at 9 is that pair's doing: it turns
# by one radian a token, and $3+2\pi\approx 9$.) A stretched RoPE is a stretched ruler. Whether that is bad
# depends on what the ruler is used for.
#
# ## The table of the study
#
# One model and one seed prove little. So the same was done for both languages and all probes, ten encodings
# and two variants (ALiBi with steep slopes, RoPE with base 10000), each with three seeds; all but word order
# with and without $\log n$, and scalings of RoPE with and without 60 steps of fine-tuning. RoPE's base, T5's
# buckets and the clips of Shaw and DeBERTa (16) are fitted to 32 tokens, ALiBi's slopes in the steep variant
# alone. Training takes 300 to 600 steps, and all verdicts hold for these. The results are kept
# in `results/study.csv`, with the sizes of the models at its head.


# %%
def pick(column, task, encoding="rope", scaling="direct", factor="", tuning=0, log_n=0):
    """Results (seeds, lengths) of one kind of model and test."""
    wanted = {"task": task, "encoding": encoding, "scaling": scaling, "factor": str(factor)}
    wanted |= {"tuning": str(tuning), "log_n": str(log_n)}
    own = [row for row in table if wanted.items() <= row.items()]
    assert len(own) == 3
    return np.array([[float(row[f"{column}_{n}x"] or "nan") for n in (1, 2, 4, 8)] for row in own])


for scaling, found in answers.items():
    assert np.abs(pick("accuracy", "offset", "rope", scaling)[0] - found).max() < 0.1
seeds = pick("accuracy", "offset")[:, 2]
print(len(table), "tests; offset, direct, at 128, by seed:", [f"{100 * x:.0f} %" for x in seeds])

# %% [markdown]
# The model that this chapter trained is the first of three, and agrees. But one of the three still answers more
# than half at 128 tokens, read directly. So spreads are shown, as the sample standard deviation (±) or as a band from the
# least to the largest seed. The text says that one encoding is better than another only where its
# worst seed beats the other's best one; two readings of *the same trained models* it compares seed by seed.


# %%
def show(name, values):
    """Mean and sample standard deviation over the seeds, at each length."""
    columns = zip(values.mean(axis=0), values.std(axis=0, ddof=1), strict=True)
    print(f"{name:20}", *(f"{m:6.2f}±{s:.2f}" for m, s in columns))


def below(a, b, at=256):
    """Whether at one length every seed of `a` is below every seed of `b`."""
    column = lengths.index(at)
    return bool(a[:, column].max() < b[:, column].min())


# %% [markdown]
# ## Ten encodings, eight times as far
#
# **Predict**: sort the ten into three groups. Which curves stay flat, which creep up, which jump?

# %% fold="output" alt="Loss over test length, ten encodings, Markov language and text. What one sees: sinusoidal, learned, TUPE and RoPE jump; T5 creeps up, no code a little; ALiBi stays flat but high; Shaw, Transformer-XL and DeBERTa stay flat and low."
curves = {
    title: {name: pick("loss", task, name) for name in plots.NAMES}
    for title, task in (("Markov language", "markov"), ("text", "text"))
}
plots.loss_over_length(curves, lengths, floors={"Markov language": entropy})
plt.show()

# %%
for task, code in curves.items():
    rises = {name: (values[:, 3] - values[:, 0]).mean() for name, values in code.items()}
    order = sorted(rises, key=lambda name: rises[name])
    print(f"{task}, rise from 32 to 256:", ", ".join(f"{n} {rises[n]:.2f}" for n in order))
    assert max(rises[n] for n in ("alibi", "transformer_xl", "shaw", "deberta")) < 0.06
    assert min(rises[n] for n in ("sinusoidal", "tupe", "rope")) > 0.5 > rises["learned"] > 0.4
    assert 0.05 < rises["none"] < 0.2 < 0.3 < rises["t5"]
    poor = [code[n] for n in ("sinusoidal", "tupe")]
    assert all(below(code["alibi"], v, at) for v in poor for at in (64, 256))
    assert below(code["rope"], code["sinusoidal"], 64) and below(code["t5"], code["rope"], 128)
assert min(
    curves["Markov language"][n][:, 3].min() for n in ("sinusoidal", "tupe", "rope")
) > np.log(16)

# %% [markdown]
# The two panels tell one story.
#
# - **Jump**: sinusoidal, learned, TUPE, RoPE. They give the model numbers that it has not met: rows of a
#   table, sines, angles. (That alone need not hurt: Transformer-XL meets new distances, too, and stays flat.)
#   RoPE's scores depend on distances alone, but beyond $L_0$ there are new distances: it gets to about twice its length, and no farther. On the Markov language all of these end above the blind guess (the learned code
#   with two seeds of three): they are sure of themselves, and wrong.
# - **Creep**: T5, and less so no code at all. To T5 no distance is unseen: its last bucket holds *every*
#   distance of 14 and more, but with one and the same number, and 242 far keys together can outweigh what 18
#   did not. That would be scattered attention; we look in a moment.
# - **Flat**: ALiBi, Shaw, Transformer-XL, DeBERTa. ALiBi silences far keys by a slope. The other three have
#   vectors with which a query can lift one near distance far above the rest.
#
# ### T5: crowded out
#
# Train T5 on the offset probe, here and now, and ask: how much weight does its best head give to the
# answer, and by which factor does its table prefer the answer's bucket?

# %%
from pe_numpy import t5_bucket

crowded = recipe("offset", "t5")
on_answer = [weight_by_distance(crowded, length)[:, 3].max() for length in lengths]
print("weight on the answer:", [f"{100 * share:.0f} %" for share in on_answer])
numbers = fit(crowded)["decoder"]["shared"]["table"]  # (buckets, H); bucket 3 is distance 3
print(f"answer's bucket against the last: factor {np.exp((numbers[3] - numbers[-1]).max()):.0f}")
halves = np.divide(on_answer[1:], on_answer[:-1])
assert (abs(halves - 0.5) < 0.06).all() and numbers[3].min() > np.delete(numbers, 3, axis=0).max()
far = t5_bucket(np.arange(13, 256), 12, max_distance=16, bidirectional=False)
assert far[0] == 10 and (far[1:] == 11).all()  # all from 14 on

# %% [markdown]
# The table has found the right bucket, and prefers it to any other by a factor. But a factor is all that it has:
# with twice as many far keys, each as loud as before, the weight on the answer **halves**. More training makes the
# factor larger ([below](#what-more-training-changes)).
#
# ### Flat is not low
#
# *Within* the length DeBERTa, TUPE and Transformer-XL have the lowest mean loss; ALiBi, the learned table and no code
# at all the highest. ALiBi is flat on a high level. Its slopes were chosen for lengths of a thousand: of the four here, 1/4 to 1/256, the mildest are no penalty to speak of over 32 tokens. The
# variant `alibi_steep` has slopes four times as steep. **Predict** what that does, within the length and beyond.

# %% fold="output"
for task in ("markov", "text"):
    order = sorted(plots.NAMES, key=lambda name: pick("loss", task, name)[:, 0].mean())
    assert order[:3] + order[7:] == "deberta tupe transformer_xl alibi learned none".split()
    mild, steep, best = (pick("loss", task, n) for n in ("alibi", "alibi_steep", "transformer_xl"))
    show(f"{task}, ALiBi", mild)
    show(f"{task}, steep", steep)
    assert below(steep, mild, at=32) and below(best, steep, at=32) and np.ptp(steep.mean(0)) < 0.02
    assert below(pick("loss", task), steep, at=32)  # RoPE
    assert (mild - steep)[:, 0].mean() > (mild - best)[:, 0].mean() / 2
    none, others = pick("loss", task, "none"), [n for n in plots.NAMES if n != "none"]
    assert all(below(pick("loss", task, n), none, at=32) for n in others)
    worse = [n for n in others if below(none, pick("loss", task, n))]
    assert worse == ["sinusoidal", "learned", "tupe", "rope"]

# %% [markdown]
# Steeper slopes close more than half of the gap to Transformer-XL, and the curve stays flat: much of ALiBi's
# distance was a setting that did not fit. **No code at all** is the worst of all within the length (a causal mask
# tells it something about positions, [chapter 11](11_why_position.ipynb)). But it does not jump, and ends below
# all four that do.
#
# ## Does log n help?
#
# If attention scatters because $n$ keys are there in place of $L_0$, sharpen it: multiply the queries by
#
# $$\lambda_n=\max\Bigl(1,\;\frac{\ln n}{\ln L_0}\Bigr)$$
#
# where $n$ is the number of keys that a query sees. Nothing changes within $L_0$, and no training knows of
# it. (Terms of a score without a query, like T5's bias, stay as they are.)

# %%
from pe_numpy import log_n_scale

sharp = model(recipe("text", "shaw", log_n=True)).encoding
ones, positions = np.ones((1, 1, 256, 8)), np.arange(256)
queries, keys = sharp.turn({}, ones, ones, positions, positions)
for n in (2, 32, 64, 256):
    assert np.isclose(queries[0, 0, n - 1, 0], max(1, np.log(n) / np.log(32)), rtol=1e-12)
    assert np.isclose(queries[0, 0, n - 1, 0], log_n_scale(n, 32), rtol=1e-12)
assert np.array_equal(keys, ones)
print(f"factor at 256 keys: {queries[0, 0, -1, 0]:.1f}")

# %% [markdown]
# **Predict**: for how many of the ten does the factor lower the loss at 256 tokens?

# %% fold="output"
for task in ("markov", "text"):
    change = {
        name: (pick("loss", task, name, log_n=1) - pick("loss", task, name))[:, 3]
        for name in plots.NAMES
    }
    lower = [f"{name} {x.mean():+.2f}" for name, x in change.items() if x.max() < 0]
    higher = [f"{name} {x.mean():+.2f}" for name, x in change.items() if x.min() > 0]
    print(f"{task}: lower {', '.join(lower)}; higher {', '.join(higher)}")
    assert len(lower) <= 2 and len(higher) >= 8

# %% [markdown]
# (Listed is what holds with every seed.) It raises nearly all of them. A likely reason, not tested here: trained
# heads are as sharp as their task wants. The needle below is a task that suits the factor better. Models that are
# *trained* with it may differ.
#
# ## Stretching RoPE
#
# Each scaling is tried on the same trained models, at first as they are, with $s=L/L_0$ anew for each length (for
# NTK that *is* dynamic NTK). Then the models are fine-tuned for 60 steps on sequences of 128 tokens, with the
# scaling on and $s=4$ (dynamic NTK keeps $L/L_0$). **Predict** the order of the scalings at 128 tokens, before and
# after.


# %% fold="output" alt="Loss over test length for five readings of RoPE, before and after fine-tuning. What one sees: before, dynamic NTK is lowest, then YaRN, linear, direct; after, up to 128 tokens linear is flat, NTK and YaRN flat and lower; past it NTK jumps."
def tuned(column, task, scaling):
    """Results after 60 steps at 128 tokens."""
    return pick(
        column, task, "rope", scaling, 4 if scaling in ("linear", "ntk", "yarn") else "", 60
    )


stretched = {}
for title, task in (("Markov", "markov"), ("text", "text")):
    free = {name: pick("loss", task, "rope", name) for name in plots.SCALINGS if name != "ntk"}
    stretched[title, "as trained, $s=L/L_0$"] = free
    after = {name: tuned("loss", task, name) for name in plots.SCALINGS}
    stretched[title, "after 60 steps at $L=128$, $s=4$"] = after
plots.loss_of_stretched_rope(stretched, lengths)
plt.show()

# %% [markdown]
# **As trained**, at 128 tokens, both languages give one order with every seed: dynamic NTK, YaRN, linear,
# direct. (At 64 linear interpolation is the worst.) The live model suggests why: a language asks for near tokens,
# and NTK leaves the fastest pair, which tells near tokens apart, as it was.
#
# **After 60 steps**, linear interpolation is flat as far as it was fine-tuned, and at 128 tokens below direct
# reading with the same fine-tuning. But NTK and YaRN are flat and lower. At 256 tokens NTK with its fixed factor
# jumps; YaRN and dynamic NTK rise by about a tenth of a nat.

# %%
for (task, _), found in stretched.items():
    if "ntk" not in found:  # as trained
        order = [found[name][:, 2] for name in ("dynamic_ntk", "yarn", "linear", "direct")]
        assert (np.diff(order, axis=0) > 0).all()  # at 128 tokens, for every seed
        assert all(below(found[n], found["linear"], 64) for n in ("direct", "yarn", "dynamic_ntk"))
        continue
    assert below(found["ntk"], found["linear"], 128) and below(found["yarn"], found["linear"], 128)
    assert below(found["yarn"], found["ntk"]) and below(found["linear"], found["ntk"])
    assert below(found["linear"], found["direct"], 128)
    print(f"{task}, at 128 and 256 tokens, tuned:")
    for name in ("linear", "ntk", "dynamic_ntk", "yarn"):
        at_128, at_256 = found[name].mean(axis=0)[2:]
        print(f"  {plots.SCALINGS[name]:12} {at_128:.2f} {at_256:.2f}")
    assert all(0.05 < np.diff(found[n].mean(axis=0))[2] < 0.16 for n in ("dynamic_ntk", "yarn"))

# %% [markdown]
# A served model often has one set of frequencies, made for the longest text. What does $s=8$ cost on *short* texts,
# without any fine-tuning?

# %%
for task in ("markov", "text"):
    direct = pick("loss", task)[:, 0].mean()
    cost = {
        n: pick("loss", task, "rope", n, 8)[:, 0].mean() - direct for n in ("linear", "ntk", "yarn")
    }
    print(f"{task}, at 32 tokens:", ", ".join(f"{name} +{c:.2f}" for name, c in cost.items()))
    assert min(cost.values()) > 0.15 and cost["linear"] > 1
    fixed, free = pick("loss", task, "rope", "ntk", 8), pick("loss", task, "rope", "dynamic_ntk")
    assert below(free, fixed, at=32) and np.allclose(fixed[:, 3], free[:, 3], rtol=0, atol=1e-3)

# %% [markdown]
# ### The base must fit
#
# A larger base is said to help. The usual 10000 goes with lengths of thousands. This study has 500, with which
# the slowest of four pairs makes a twentieth of a turn within 32 tokens, about as in LLaMA within its thousands.
# **Predict** what 10000 does here.

# %% fold="output"
for base in (500.0, 10000.0):
    turns = 32 * rope_frequencies(8, base) / (2 * np.pi)
    print(f"base {base:5.0f}: turns within 32 tokens", ", ".join(f"{t:.3f}" for t in turns))
slowest = 2048 * rope_frequencies(128)[-1] / (2 * np.pi)
print(f"LLaMA, slowest pair: turns within 2048 tokens {slowest:.3f}")
show("text, base 500", pick("loss", "text"))
show("text, base 10000", pick("loss", "text", "rope_10000"))
for task in ("markov", "text"):
    assert below(pick("loss", task), pick("loss", task, "rope_10000"), at=64)

# %% [markdown]
# Within the length nothing is lost. At twice the length, the models of base 10000 are no better than the others at
# four times. Which of the four pairs is to blame? Slow one pair at a time, on the offset probe, so that it turns
# no farther at the tested length than in training.

# %%
from pe_numpy.transformer.encodings import Rope


def slowed(c, trained, length, theta, pair):
    """Share of right answers if one pair turns no farther at `length` than it did in training."""
    frequencies = np.where(np.arange(4) == pair, theta * trained / length, theta)
    reader = replace(model(c), encoding=Rope(scaling=lambda K, L: frequencies))
    asked = draw(c.task, np.random.default_rng(0), 64, length, held_out=True)
    right = decode(fit(c), reader, asked["inputs"]).argmax(axis=-1) == asked["targets"]
    return right[:, -16:].mean()


# %%
tuned_ntk = replace(live, scaling="ntk", factor=4, tuning=60)
jumps = {
    "base 500": (live, 32, 128, rope_frequencies(8, 500)),
    "base 10000": (recipe("offset", "rope_10000"), 32, 64, rope_frequencies(8, 10000)),
    "tuned NTK": (tuned_ntk, 128, 256, ntk_scaling(8, 4, 500)),
}
fitted = [fit(c) for c, *_ in jumps.values()]  # trained once; `fit` remembers

# %% [markdown]
# **Predict** from the turns above which pair it is, with base 500 and with base 10000.

# %% fold="output"
for name, (c, trained, length, theta) in jumps.items():
    shares = [slowed(c, trained, length, theta, pair) for pair in (-1, 0, 1, 2, 3)]
    culprit = int(np.argmax(shares[1:]))
    turns = np.array([trained, length]) * theta[culprit] / (2 * np.pi)
    print(f"{name}, {trained} to {length}: right", [f"{100 * share:.0f} %" for share in shares])
    print(f"  pair {culprit} turns {turns[0]:.2f} -> {turns[1]:.2f}")
    assert shares[0] < 0.2 and shares[1 + culprit] > 0.9 and turns[0] < 0.6 < turns[1]

# %% [markdown]
# (The first number is without slowing, the others with each pair slowed.) One pair in each brings all answers back, and one rule fits
# them: a pair that made a part of a turn in training, about half of one at most, and goes well beyond the
# half now. Faster pairs have met all angles, slower ones still hardly turn. With base 10000 that pair is the
# second, which is fast enough to break at twice the length. (That is one seed of one probe.) So a larger
# base belongs to a model that is *trained on lengths to match*, which is not tried here.
#
# ## The probes
#
# What if a task does not want near tokens? The small panels show right answers at the **offset** probe in grey
# and at the **needle** probe in colour, dotted with $\log n$; thin dashes are chance. **Predict**: ALiBi is flat on both
# languages. Draw its two curves on paper. And which RoPE finds the needle, the one that keeps near distances
# apart, or the one that keeps all distances in range?

# %% fold="output" alt="Fourteen small panels, right answers over length. What one sees: Shaw, DeBERTa and Transformer-XL keep the offset; ALiBi does not learn it, and loses needles; RoPE read directly loses both, linear keeps needles but no offset, YaRN keeps both."
probes = {}
for name, (encoding, scaling) in plots.MODELS.items():
    probes[name] = tuple(
        100 * pick("accuracy", task, encoding, scaling, log_n=log_n)
        for task, log_n in (("offset", 0), ("needle", 0), ("needle", 1))
    )
plots.probes_over_length(probes, lengths, chances=(100 / 16, 100 / 8))
plt.show()

# %% [markdown]
# - **Offset.** Shaw, DeBERTa and Transformer-XL point at a distance, and do so at every tested length. ALiBi
#   does not learn it in 300 steps ("near" is not "third"), nor does a model without code. T5 is
#   crowded out, at this budget. The absolute codes fall below 17 per cent as soon as they leave their length.
# - **Needle.** It must be found by its content, wherever it lies. No code at all does that well. ALiBi has
#   punished distance all along, and loses needles from 128 tokens on; steeper slopes, which made it the better
#   language model, make its memory shorter.
# - **RoPE.** For the needle linear interpolation and YaRN are best, and equal; dynamic NTK loses a quarter, and direct
#   reading is left with twice chance: far keys must stay in range, and that is the slow pairs' affair. Linear
#   cannot point at the third token. YaRN does both. Base 10000, which ruined the languages, finds nearly twice as
#   many needles as base 500: its slow pairs hardly turn, so far keys look to them as near ones do.
# - **$\log n$** finds 6 to 13 more needles in a hundred, with every seed, for ALiBi and dynamic NTK. It does nothing
#   for those that have lost hardly any (Shaw, DeBERTa, TUPE), and nothing for direct RoPE, whose trouble is unseen angles.
#
# Fine-tuning does not bring the offset back to linear interpolation: 60 steps mended most of its loss on the
# languages, and on this probe nothing (more steps were not tried). Direct reading has learned it meanwhile.

# %%
mild, steep = (pick("accuracy", "needle", name)[:, 3] for name in ("alibi", "alibi_steep"))
assert steep.max() < mild.min()
for name in ("sinusoidal", "learned", "tupe"):
    assert pick("accuracy", "offset", name)[:, 1].max() < 0.17
for name, (_, needle, sharper) in probes.items():
    gain = (sharper - needle)[:, 3]
    if name in ("ALiBi", "ALiBi, steep", "RoPE, dynamic NTK"):
        assert 6 < gain.min() and gain.max() < 13.5
    if name in ("Shaw", "DeBERTa", "TUPE", "RoPE, direct"):
        assert abs(gain).max() <= 1
found = {b: pick("accuracy", "needle", b)[:, 3].mean() for b in ("rope", "rope_10000")}
assert 1.8 < found["rope_10000"] / found["rope"] < 2

# %%
share = {name: needle.mean(axis=0) for name, (_, needle, _) in probes.items()}
print({name: [round(x) for x in share[name]] for name in ("none", "ALiBi", "RoPE, direct")})
assert share["none"].min() > 85 and share["ALiBi"][0] > 90 > 85 > share["ALiBi"][2]
assert min(share["RoPE, linear"][3], share["RoPE, YaRN"][3]) > 95
assert 70 < share["RoPE, dynamic NTK"][3] < 75 and 20 < share["RoPE, direct"][3] < 27
for task in ("markov", "text"):
    mended = pick("loss", task, "rope", "linear") - tuned("loss", task, "linear")
    assert mended[:, 2].min() > 0.6
assert tuned("accuracy", "offset", "linear")[:, 2].max() < 0.2
assert min(tuned("accuracy", "offset", n)[:, 2].min() for n in ("direct", "ntk", "yarn")) > 0.9

# %% [markdown]
# ## A flat loss is no long memory
#
# Now read the picture at the top. (A small dot pairs two models of one encoding: one trained on text, one on
# needles.) A good scheme for long texts stands in the upper left corner.

# %%
for name in ("ALiBi, steep", "Shaw", "RoPE, dynamic NTK", "RoPE, linear"):
    (loss, found), spread = points[name].mean(axis=0), points[name].std(axis=0, ddof=1)
    print(f"{name:18} loss {loss:.2f}±{spread[0]:.2f}  needles {found:.0f}±{spread[1]:.0f} %")
steep, shaw = points["ALiBi, steep"], points["Shaw"]
assert abs(steep[:, 0].mean() - shaw[:, 0].mean()) < 0.01 and steep[:, 1].max() < shaw[:, 1].min()
near, far = points["RoPE, dynamic NTK"], points["RoPE, linear"]
assert near[:, 0].max() < far[:, 0].min() and near[:, 1].max() < far[:, 1].min()

# %% [markdown]
# Steep ALiBi and Shaw's vectors give one and the same loss on long texts; of the needles the one finds little more
# than half, the other nine in ten. ([Chapter 35](35_alibi.ipynb) puts a wall before an ALiBi model and shows that on
# text it makes no use of what lies behind.) And of dynamic NTK and linear interpolation the better one on text is
# the worse one at finding. **That an encoding's loss stays flat does not show that it finds what is far, nor the
# other way round.**
#
# ## Word order
#
# The last probe has three words and nothing to stretch. An **encoder** sees all three at once; its answer is
# read from the mean of its outputs, or at a token CLS in front. A **decoder** is read at its last token.
# **Predict** the row "none", and the row of ALiBi, whose form for encoders, $-m\,\lvert i-j\rvert$, is the
# same to the left and to the right.

# %% fold="output"
for name in plots.NAMES:
    shares = {
        part: pick("accuracy", f"order_{part}", name)[:, 0] for part in ("mean", "first", "causal")
    }
    if name in ("none", "alibi", "rope"):
        row = [f"{part} {100 * s.min():.0f} to {100 * s.max():.0f} %" for part, s in shares.items()]
        print(f"{name:6}", ", ".join(row))
    assert shares["causal"].min() > 0.95
    assert (shares["mean"].max() < 0.6) == (name in ("none", "alibi"))
    assert (shares["first"].max() < 0.6) == (name == "none")

# %% [markdown]
# The encoder without a code is at a coin's toss, and so is ALiBi read at the mean: "dog bites man" and "man
# bites dog" give *the same* mean, since one is the mirror image of the other. CLS breaks the mirror for ALiBi (the first word is nearer
# to it), not for no code. The decoder needs no code: its mask tells first from last.
#
# ## What more training changes
#
# All verdicts so far are of 300 to 600 steps. Here the ten are trained four times as long, on the Markov language (dotted:
# its least possible loss), and all that can be fitted to 32 tokens is fitted: ALiBi has steep slopes, sinusoids base 500. Of
# two rates, tried with one seed, the better one is kept, the higher one for all. (`results/budgets.csv`; `make study`
# measures its other rows.) **Predict**: while the loss at 32 tokens falls, what does that at 256 do?

# %% fold="output" alt="Loss over steps, ten panels, a line for each length from 32 to 256. What one sees: for sinusoidal, learned, TUPE and RoPE the lines open like scissors; for T5 they open and close again; for Shaw, Transformer-XL, DeBERTa and ALiBi they lie on each other."
from pe_numpy.training.verdicts import Study, paired_interval

longer = Study("results/budgets.csv")
drawn = {name: longer.curve("markov", name, 4) for name in plots.NAMES}
plots.learning_curves(drawn, lengths, floor=entropy)
plt.show()

# %%
for name, (steps, values) in drawn.items():
    rise = values[:, :, 3] - values[:, :, 0]  # (seeds, points): at 256 tokens over that at 32
    low, high = paired_interval(values[:, -1, 3], values[:, -1, 0])
    said = ", ".join(f"{x:.2f}" for x in rise.mean(axis=0))
    print(f"{name:15} rise after {steps[0]} to {steps[-1]} steps: {said} ({low:.2f} to {high:.2f})")

# %%
for name, (_, values) in drawn.items():
    gained, rise = values[:, 0] - values[:, -1], values[:, :, 3] - values[:, :, 0]
    if name in ("sinusoidal", "learned", "tupe", "rope"):
        assert (gained[:, 0] > 0.9).all() and (gained[:, 3] < -0.3).all()
    if name in ("shaw", "transformer_xl", "deberta", "alibi"):
        assert (rise.mean(axis=0) < 0.1).all() and (rise[:, -1] < 0.05).all()
    if name == "t5":
        assert (rise[:, 2] > 0.5).all() and (rise[:, -1] < 0.2).all()
    if name == "none":
        assert (gained[:, 0] > 0.3).all() and (gained[:, 3] < 0.03).all()
    assert longer.rates["markov", "2", name] == "0.005"

# %% [markdown]
# (In brackets: Student's interval of 95 per cent for the last rise.) For those that jump, the lines open like scissors: what
# a model learns within the length makes it *worse* beyond. T5's gap closes again: "creeps" was a verdict on a budget. No code at all gains within the length alone. The four that are flat
# rise by less than 0.1 at every step.
#
# **Other places.** RoPE's models, trained as long, can also be read with distances that never exceed the trained ones
# ([chapter 52](52_new_places.ipynb)): ReRoPE and Self-Extend keep 16 exact places, streaming a window of 28 and the
# first 4. Nothing is trained anew. **Predict** the rows.

# %% fold="output"
for places in ("direct", "yarn", "rerope", "self_extend", "streaming"):
    read = {"budget": 4, "scaling": places}
    loss = longer.losses("text", "rope", **read)[:, 3]
    offset, needle = (longer.shares(task, "rope", **read)[:, 3] for task in ("offset", "needle"))
    said = f"text {loss.mean():.2f}, offset {100 * offset.mean():.0f} %"
    print(f"{places:12} at 256: {said}, needles {100 * needle.mean():.0f} %")
    if places in ("rerope", "self_extend"):
        assert (loss < 1.65).all() and offset.min() == 1 and needle.min() > 0.97
    if places == "streaming":
        assert (loss < 1.65).all() and offset.min() == 1 and needle.max() < 0.27

# %% [markdown]
# Streaming reads on for ever and finds a needle as often as direct reading does; ReRoPE and Self-Extend keep everything that
# is measured here, from the same parameters.
#
# ## What held, and what did not
#
# Take out your sheet.
#
# | | claim | in these models |
# |---|---|---|
# | 1 | sinusoidal fails soon, ALiBi stays | **Holds.** But Shaw, DeBERTa and Transformer-XL stay as well, and are lower than ALiBi with its usual slopes. |
# | 2 | T5 lasts longer than RoPE, RoPE than sinusoids | **Holds** from 128 tokens on for the first half, at 64 for the second. |
# | 3 | no code does as well | **Half.** It does not jump, and it finds needles; as a language model it is the worst within its length. |
# | 4 | linear interpolation works after brief fine-tuning | **On languages.** It is flat as far as it was fine-tuned, not best. At the offset probe 60 steps do nothing. |
# | 5 | NTK without fine-tuning; YaRN better | **By the task.** NTK is first on languages as trained. YaRN finds more needles, and of the fixed factors it is lowest past the fine-tuned length. |
# | 6 | $\log n$ keeps attention together | **By the task.** It finds needles for ALiBi and dynamic NTK, and raises most losses of the languages. |
# | 7 | a larger base reaches further | **By the task.** On languages it fails at twice the length. It finds more needles. |
# | 8 | perplexity is local | **Fits.** ALiBi is flat on text, and loses needles. |
#
# Most of the claims say "longer texts" where they mean *a task* on longer texts.
#
# How far does this carry? These models have one or two layers and seconds of training. *Mechanisms* carry: what is unseen and what is scattered; the stretched ruler; that a mean over near tokens says
# nothing of far ones. They follow from the formulas, and the models made them visible. (The rule of the half turn
# does not follow from any formula here.) *Rankings* may not: one learning rate and a few hundred steps served all
# ten, and three seeds are few (exercise 3). No loss in this chapter is a forecast.
#
# ## Exercises
#
# ### Exercise 1: the flattering mean
#
# Take a *perfect* predictor of the Markov language. Its loss at the first token of a window is the entropy of a
# single symbol, at the second that of a symbol given one before it, and from the third on $H$. Compute its mean
# loss over whole windows of 32 and of 256 tokens. Which looks better, and what has improved?
#
# <details><summary>Hint 1</summary>
#
# `language["pairs"]` holds $p(a,b)$. Sum it over $a$ for the frequencies of single symbols.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# The entropy of $b$ given $a$ is that of the pairs less that of the single symbols.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The longer window looks better by several hundredths, as much as many encodings differ by. Nothing has
# improved.
#
# ```python
# pairs = language["pairs"]
# one = pairs.sum(axis=0)
# first = -(one * np.log(one)).sum()
# second = -(pairs * np.log(pairs)).sum() - first
# assert first > second > entropy
# means = [(first + second + (L - 2) * entropy) / L for L in (32, 256)]
# assert 0.03 < means[0] - means[1] < 0.1
# ```
#
# </details>
#
# ### Exercise 2: read the ruler
#
# With linear interpolation the heads of the live model looked at distance 12 when $L$ was 128. Predict
# where they look at $L=256$; and where at $L=32$ with a fixed $s=8$. Then let the model answer.
#
# <details><summary>Hint 1</summary>
#
# They look for an angle, that of three places at $s=1$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `replace(live, scaling="linear", factor=8)`; and give `weight_by_distance` a larger reach.
#
# </details>
#
# <details><summary>Solution</summary>
#
# Both at $3\cdot8=24$, give or take one, since the peak is broad by then.
#
# ```python
# stretched_live = replace(live, scaling="linear")
# far = weight_by_distance(stretched_live, 256, reach=40).mean(axis=0).argmax()
# fixed = weight_by_distance(replace(stretched_live, factor=8), 32, reach=25).mean(axis=0).argmax()
# assert abs(far - 24) <= 1 and abs(fixed - 24) <= 1
# ```
#
# </details>
#
# ### Exercise 3: better, or lucky?
#
# Suppose two encodings are equally good, and their six losses are six draws from one distribution. How likely
# is it that all three of A are below all three of B? And if you compare every two of ten encodings, how many
# such verdicts does chance give?
#
# <details><summary>Hint 1</summary>
#
# Sort the six. Every choice of three places for A is equally likely.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# There are 45 pairs, and either of the two may be the lucky one.
#
# </details>
#
# <details><summary>Solution</summary>
#
# One choice in $\binom63=20$: five per cent; ten per cent if either may win. Among 45 pairs chance gives four
# or five verdicts. So a verdict on two *neighbours* in a ranking is weak; one that repeats in both languages, at
# several lengths and by ten times the spread is not.
#
# ```python
# import math
# assert math.comb(6, 3) == 20
# draws = np.random.default_rng(0).standard_normal((20_000, 2, 3))
# share = (draws[:, 0].max(axis=1) < draws[:, 1].min(axis=1)).mean()
# assert abs(share - 1 / 20) < 0.01
# assert math.comb(10, 2) * 2 / 20 == 4.5
# ```
#
# </details>
#
# ## In practice
#
# - **Compare lengths on the same targets**, and use the same windows for all models.
# - **A cache and a moving factor do not go together**: beyond the trained length dynamic NTK changes all keys
#   with every token ([chapter 63](63_decoding.ipynb)).
# - **Probe what you promise.** Who sells a long context should show needles at every depth, and tasks that
#   need more than one of them (the RULER benchmark does that for large models).
# - **Run your own.** `study.run` measures any list of configurations, two or two thousand. Each result becomes a
#   small file, written whole or not at all; what is there is not measured again, so a study that was cut off
#   goes on where it stopped. Each job gets a process of its own, or any executor of `concurrent.futures`; on a
#   cluster of Dask that is `study.run(wanted, client.get_executor(), folder="results")`.

# %%
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pe_numpy.training import study

wanted = [recipe("offset", name, steps=30, tests=32) for name in ("shaw", "alibi")]
with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as workers:
    first = study.run(wanted, workers, folder)
    again = study.run(wanted, workers, folder)  # read, not measured
    print("\n".join(sorted(path.name for path in Path(folder).iterdir())))
assert first == again

# %% [markdown]
# ## What the documents say
#
# **Sections.** 003-4.3, 003-4.4.
#
# | id | what it says | what holds |
# |---|---|---|
# | 003-4.3 | two problems of long texts: unseen positions, scattered attention | both are seen (asserted above, *Ten encodings, eight times as far* and *T5: crowded out*) |
# | 003-4.4 | why few large models took up a scheme made for extrapolation (BLOOM and MPT did, with ALiBi): new and little tested; metrics differ, and perplexity favours local attention; quality *within* the length counts for more | the second reason is the picture at the top; for the third, within 32 tokens RoPE is below ALiBi on both languages, with every seed, steep slopes or mild (asserted above, *Flat is not low*) |
# | E-002-9 | to compare what four encodings do to a model, it gives their numbers of parameters: length times width for the learned code, and three times 0 | three times zero parameters are three different models (cell) |

# %% fold="cell"
# E-002-9
for name in ("learned", "sinusoidal", "rope", "alibi"):
    one_step = fit(replace(recipe("offset", name), steps=1))
    count = sum(array.size for array in one_step["decoder"]["shared"].values())
    assert (count > 0) == (name == "learned")
sinusoids, turned, biased = (pick("loss", "text", n) for n in ("sinusoidal", "rope", "alibi"))
assert below(turned, biased, at=32) and below(biased, turned) and below(biased, sinusoids)

# %% [markdown]
# ## Further reading
#
# - Press, Smith, Lewis 2022, "Train short, test long" (arXiv:2108.12409).
# - Kazemnejad et al. 2023, "The impact of positional encoding on length generalization in Transformers"
#   (arXiv:2305.19466): no code at all against four others, on tasks of reasoning.
# - Chen et al. 2023, "Extending context window of large language models via positional interpolation"
#   (arXiv:2306.15595). Peng et al. 2023, "YaRN" (arXiv:2309.00071).
# - Su 2021, [kexue.fm/archives/8823](https://kexue.fm/archives/8823), and Chiang and Cholak 2022, "Overcoming a
#   theoretical limitation of self-attention" (arXiv:2202.12172): attention scores times $\log n$.
# - Hsieh et al. 2024, "RULER" (arXiv:2404.06654): needles and other probes for large models.
