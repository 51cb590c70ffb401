# %% [markdown]
# # 72. Choosing a positional encoding
#
# *Which encoding for what, what does the advice rest on, and which tests show that code computes it?*
#
# 55 minutes. Needs [51 Length extrapolation: why models fail past their training length](51_extrapolation.ipynb), [71 Train short, test long: a length-generalization study](71_study.ipynb). Looking for an answer? [In short](#in-short).

# %% [markdown]
# **In this chapter.** There are dozens of ways to tell a Transformer the order of its tokens.
# Tables of advice grade them as "good" or "poor", but rarely say at what. Here one small layer puts
# the same thirteen yes-or-no questions to fifteen schemes, small trained models show what training
# changes, and a census shows what released models use. At the end you can choose a positional
# encoding, say what your choice rests on, and test that your program computes it.

# %% fold="input" alt="A table of fifteen encodings by thirteen questions, green for yes. No row is all green. Only ALiBi falls with distance, and RoPE lacks three. Only encodings in the token vector and Shaw distinguish equal words."
import matplotlib.pyplot as plt

from pe_numpy.book.show import show_source
from pe_numpy.book.plots import which_one as plots

questions = "tells all apart, defined beyond, nothing new beyond, distance alone"
questions += ", falls at each step, steps on a grid, sees the mirror, tells equal words apart"
questions += ", asking word has a say, answering has a say, exact with a cache, plain attention, a bias will do"
sheet = """.yyy......yyy yy....yyy.yyy yy....yyyyyyy y.....yyy.yyy y.....yyy.yyy
    yy....yyy.yyy yy....yyy.yyy yy.y.yy.yyyyy yy...yy.yy.yy .yyy.yyyy.y..
    yy.y.yy.y.y.. .yyy.yy...y.y y.....y...y.y .yyy.yy.yyy.. yy.yy.....y.y"""
rows = [[letter == "y" for letter in row] for row in sheet.split()]
known = dict(zip(plots.NAMES, rows, strict=True))
plots.answers_of_all(known, questions.split(", "))
plt.show()

# %% [markdown]
# Each cell of the figure is computed below, in
# [One test bench for fifteen schemes](#one-test-bench-for-fifteen-schemes). A **score** is the number
# that says how much a query attends to a key, before the softmax. The columns ask:
#
# | column | question |
# |---|---|
# | `tells all apart` | Do all 64 keys get different scores from the last query, if all tokens are equal? |
# | `defined beyond` | Are there scores at all beyond the trained length? |
# | `nothing new beyond` | Is each score in a text four times as long equal to one at a trained distance? |
# | `distance alone` | Do weights depend only on distance? |
# | `falls at each step` | Does the score fall with each step away from the query? |
# | `steps on a grid` | On an image, does each step have its own score, wherever it starts? |
# | `sees the mirror` | Can an encoder tell a text from its mirror image? |
# | `tells equal words apart` | Does an encoder give equal tokens different outputs? |
# | `asking word has a say` | Does the content of the query decide which distances it prefers? |
# | `answering has a say` | Does the content of the key decide it? |
# | `exact with a cache` | Does decoding with a KV cache give what one pass gives? |
# | `plain attention` | Is the attention inside standard, so that FlashAttention serves it unchanged? |
# | `a bias will do` | Is it standard up to a scale and a number added to each score? |
#
# ## Why one grade for extrapolation is not enough
#
# Advice often comes as a small table: "extrapolation: poor, fair, good, very good". Such tables call
# ALiBi very good at long texts. Ask one ALiBi head for something simple: *attend exactly three tokens
# back*, whatever the tokens are. If the contents add nothing to the scores, ALiBi's weights over a
# long past fall by the factor $r=e^{-m}$ for each step, where $m$ is the slope
# ([chapter 35](35_alibi.ipynb)). So the key at distance $n$ gets
#
# $$w_n=(1-r)\,r^n\;\le\;\frac{n^n}{(n+1)^{n+1}},\qquad\text{with equality at } r=\frac n{n+1}$$
#
# At the maximum the derivative, $n\,r^{n-1}-(n+1)\,r^n$, is 0. **Predict** the best that any slope
# can do for $n=3$.

# %% fold="output"
import numpy as np

from pe_numpy import alibi_bias, relative_distance, softmax

for n in (1, 3, 10):
    r = np.append(np.linspace(0, 1, 1001), n / (n + 1))
    w = (1 - r) * r**n
    bound = n**n / (n + 1) ** (n + 1)
    assert abs(w[-1] - bound) < 1e-12 and abs(w.max() - bound) < 1e-12
slopes = np.linspace(0.01, 2, 400)
three_back = softmax(alibi_bias(slopes, relative_distance([400], np.arange(401))))[:, 0, -4]
best = slopes[three_back.argmax()]
print(f"largest weight three back: {three_back.max():.3f}, at slope {best:.2f}")
assert np.isclose(three_back.max(), 27 / 256, rtol=1e-3, atol=0)
assert np.isclose(best, np.log(4 / 3), rtol=0, atol=0.01)

# %% [markdown]
# Even the best of all slopes gives that key a tenth of the weight, 27/256. A head with a learned
# table can attend there without effort ([chapter 21](21_learned.ipynb)). So we take "very good"
# apart into questions that a cell can answer. The bound holds only for *one head* with contents
# that add nothing. Contents may reveal the key, and [four heads,
# mixed](71_study.ipynb#an-alibi-layer-that-attends-three-tokens-back), find the third token every
# time.
#
# ## One test bench for fifteen schemes
#
# Position enters an attention layer at four places ([chapter 11](11_why_position.ipynb)): the token
# vectors, the queries and keys, the scores, and the weighted sum of the values. So one layer with
# these four places serves every scheme of the figure at the top. These are thirteen encodings, no
# position, and RoPE with a base that grows with the text (dynamic NTK, [chapter
# 50](50_scaling.ipynb)).
#
# On this bench the "trained" length is 64 positions, and all tables have that size. In fact nothing
# is trained: the bench shows what an encoding *can* express. An encoding that is not used at one of
# the places inherits the default method there, which ignores positions. A `Context` gives each
# scheme the positions, a mask and gates.

# %%
from pe_numpy import Context, dynamic_ntk_scaling, merge_heads, split_heads
from pe_numpy.transformer.encodings import Encoding, Rope, Shape, T5, Tupe, every_encoding

D, H, N = 16, 2, 64  # width, heads, positions that were "trained"
made = every_encoding(N, clip=16)
made |= {"t5": T5(max_distance=N), "tupe": Tupe(max_distance=N, length=N)}
made["rope_dynamic"] = Rope(scaling=lambda K, n: dynamic_ntk_scaling(K, n, N // 2))
schemes = {name: made[name] for name in plots.NAMES}
show_source(Context.__init__)


def parameters(e):
    """What an encoding learns, as it is before training."""
    draw, shape = np.random.default_rng(1), Shape(D, H)
    return {**e.shared(draw, shape), **e.layer(draw, shape)}


# %%
W_q, W_k, W_v = np.random.default_rng(0).standard_normal((3, D, D)) / np.sqrt(D)
words = np.random.default_rng(2).standard_normal((N, D))


def layer(e, x, at):
    """Outputs (L, D), weights and scores (H, L, L) of one layer with an encoding."""
    p, context = parameters(e), Context(at)
    x = e.embed(p, x, at)[None]  # place 1: the token vectors
    q, k, v = (split_heads(x @ W, H) for W in (W_q, W_k, W_v))
    q, k = e.turn(p, q, k, context)  # place 2: queries and keys
    s = e.scores(p, q, k, context)  # place 3: the score of a pair
    w = softmax(s)
    return merge_heads(e.mix(p, w, v, context))[0], w[0], s[0]  # place 4: the weighted sum


# %%
methods = ("embed", "turn", "scores", "mix")


def where_is(e):
    return [n for n, m in enumerate(methods, 1) if getattr(type(e), m) is not getattr(Encoding, m)]


place = {name: where_is(e) for name, e in schemes.items()}
for where in ([1], [2], [3], [3, 4]):
    found = [plots.NAMES[name] for name, own in place.items() if own == where]
    print(f"place {' and '.join(map(str, where)):7} {'; '.join(found)}")
assert place["shaw"] == [3, 4] and place["rope"] == [2] and place["none"] == []

# %% [markdown]
# ### Tests of distance: extrapolation, translation invariance, decay
#
# To see only the effect of position we use a text of one repeated word: "the the the ...". Any
# difference there comes from position. The test `nothing new beyond` compares 256 positions with the
# trained 64. The test `distance alone` moves all positions by the same number. A score $s_{i,j}$ of
# query $i$ and key $j$ passes if
#
# $$s_{i+t,\,j+t}=s_{i,\,j}\qquad\text{for all } i, j, t$$


# %%
def distance_alone(e, by=50):
    """Whether the weights of ten words stay when their positions are shifted."""
    here, there = (layer(e, words[:10], np.arange(n, n + 10))[1] for n in (0, by))
    return bool(np.allclose(here, there, rtol=0, atol=1e-9))


i, i_j = np.arange(10), relative_distance(np.arange(10), np.arange(10))
assert np.array_equal(i_j[5:, 5:], i_j[:5, :5])  # i - j is only the distance
assert not np.array_equal(np.outer(i, i)[5:, 5:], np.outer(i, i)[:5, :5])  # i * j does not
assert distance_alone(schemes["rope"]) and not distance_alone(schemes["sinusoidal"])


# %%
def row_of_last(e, n):
    """Scores of the last query in a text of one word, by distance: (n, H)."""
    return layer(e, np.tile(words[0], (n, 1)), np.arange(n))[2][:, -1, ::-1].T


def tells_apart(e):
    return len(np.unique(row_of_last(e, N).round(9), axis=0)) == N


def falls(e):
    return bool((np.diff(row_of_last(e, N), axis=0) < -1e-12).all())


# %%
def defined_beyond(e):
    try:
        return np.isfinite(row_of_last(e, 4 * N)).all().item()
    except ValueError:
        return False  # a table ends where it ends


def nothing_new(e):
    if not defined_beyond(e):
        return False
    near, far = row_of_last(e, N), row_of_last(e, 4 * N)[N:]
    gaps = np.abs(far[:, None] - near[None]).max(axis=-1)  # (far distances, near distances)
    return bool((gaps.min(axis=1) < 1e-9).all())


# %% [markdown]
# `steps on a grid` puts the cells of an image, 8 by 8, in place of words. One set of heads gets the
# row of each cell as its position, another set the column. A step passes if its scores are the same
# wherever it starts, and differ from the scores of every other step.


# %%
def steps_on_grid(e, n=8):
    row, column = np.divmod(np.arange(n * n), n)
    e = e.for_encoder()  # an image is seen in both directions
    s = [layer(e, np.tile(words[0], (n * n, 1)), at)[2] for at in (row, column)]
    s = np.stack(s).reshape(-1, n**4)  # (axes and heads, pairs of cells)
    step = 100 * (row[:, None] - row) + column[:, None] - column
    steps, first, which = np.unique(step.ravel(), return_index=True, return_inverse=True)
    same = np.allclose(s, s[:, first][:, which.ravel()], rtol=0, atol=1e-9)
    return bool(same) and np.unique(s[:, first].round(9), axis=1).shape[1] == len(steps)


# %% [markdown]
# ### Tests of content: direction, equal tokens, query and key
#
# For `sees the mirror` the text is reversed, and its outputs are reversed back before they are
# compared with the outputs of the original text. The next test gives an encoder seven equal tokens.
# The last two ask whether the content of the query, or of the key, changes which distance is
# preferred. A number added to all scores of a row is not a preference, since the softmax ignores
# it.


# %%
def sees_the_mirror(e):
    at = np.arange(7)
    there, back = (layer(e.for_encoder(), x, at)[0] for x in (words[:7], words[6::-1]))
    return not np.allclose(back[::-1], there, rtol=0, atol=1e-6)


def sees_equal_words(e):
    out = layer(e.for_encoder(), np.tile(words[0], (7, 1)), np.arange(7))[0]
    return bool(np.ptp(out, axis=0).max() > 1e-6)


# %%
def taste(e, asks, answers):
    """Scores by distance, less their mean, when word `asks` looks at words `answers`."""
    s = layer(e, np.vstack([words[[answers] * 9], words[[asks]]]), np.arange(10))[2][:, -1, :9]
    return s - s.mean(axis=-1, keepdims=True)


def asker_has_a_say(e):
    return not np.allclose(taste(e, 1, 0), taste(e, 2, 0), rtol=0, atol=1e-6)


def answerer_has_a_say(e):
    return not np.allclose(taste(e, 0, 1), taste(e, 0, 2), rtol=0, atol=1e-6)


# %% [markdown]
# ### Tests of implementation: KV cache and FlashAttention
#
# *Fused* attention computes scores block by block and never stores them all, as FlashAttention does
# ([chapter 12](12_attention_blocks.ipynb)). Any fused attention will do if the attention inside is
# plain, that is, standard. If it is not plain, is it standard up to a scale and a *bias*, a number
# that does not depend on the words?

# %%
from pe_numpy import Cache, Model, Sizes, decode, init_params
from pe_numpy.transformer.masks import Causal


def exact_with_cache(e):
    """Whether a prompt of 40 tokens and 10 single ones give the logits of one pass."""
    tokens = np.random.default_rng(4).integers(0, 11, (1, 50))
    model, cache = Model(H, e, e.needs or Causal()), Cache(1, 50)
    params = init_params(Sizes(11, D, 2 * D, 2), model, np.random.default_rng(5), np.float64)
    cuts = [(0, 40), *((n, n + 1) for n in range(40, 50))]
    parts = [decode(params, model, tokens[:, a:b], cache=cache) for a, b in cuts]
    whole = decode(params, model, tokens)
    return bool(np.allclose(np.concatenate(parts, axis=1), whole, rtol=0, atol=1e-9))


# %%
def plain_inside(e):
    return not {3, 4} & set(where_is(e))


def a_bias_will_do(e):
    """Whether scores are plain, or plain up to a scale and a bias that ignores the words."""
    at = np.arange(12)
    here, there = words[:12], words[20:32]  # the bias goes out in the difference of two texts
    s, plain = (layer(f, here, at)[2] - layer(f, there, at)[2] for f in (e, Encoding()))
    scaled = plain * (s * plain).sum() / (plain**2).sum()
    return plain_inside(e) or (4 not in where_is(e) and np.allclose(s, scaled, rtol=0, atol=1e-9))


# %%
tests = tells_apart, defined_beyond, nothing_new, distance_alone, falls, steps_on_grid
tests += sees_the_mirror, sees_equal_words, asker_has_a_say, answerer_has_a_say
tests += exact_with_cache, plain_inside, a_bias_will_do
answers = {name: [bool(test(e)) for test in tests] for name, e in schemes.items()}
assert answers == known and not any(map(all, answers.values()))  # the figure at the top


def who(asked):
    return [n for n, row in answers.items() if row[questions.split(", ").index(asked)]]


assert who("falls at each step") == ["alibi"]
assert who("nothing new beyond") == ["none", "shaw", "t5", "deberta"]
assert set(who("tells equal words apart")) == {n for n in schemes if 1 in place[n]} | {"shaw"}
assert set(schemes) - set(who("exact with a cache")) == {"rope_dynamic"}

# %% [markdown]
# ### What the tests show
#
# - `tells all apart`, `nothing new beyond`: clipping (Shaw, DeBERTa) and buckets (T5) merge far
#   distances. That is the price for treating a distance of 250 like one of 60. T5 gains from this
#   only if its last bucket is reached in training ([chapter 33](33_t5.ipynb)).
# - `distance alone`: encodings in the token vector (place 1) fail, because $W_Q$ and $W_K$ come
#   between them ([chapter 20](20_sinusoidal.ipynb)). TUPE is often listed as relative, but its scores
#   are not ([chapter 30](30_expansion.ipynb)).
# - `falls at each step`: only ALiBi passes. RoPE does not, whatever is said about its "long-term
#   decay" ([chapter 41](41_rope_computed.ipynb)). A "no" need not be a fault: should a model be
#   *forced* to attend to near tokens?
# - `steps on a grid`, `sees the mirror`: without position, or with ALiBi's symmetric penalty, an
#   encoder cannot tell left from right, nor up from down. ALiBi was made for decoders, whose mask
#   breaks the symmetry.
# - `tells equal words apart`: weights sum to 1, so no score can tell equal words apart. Encodings in
#   the token vector can, and so can vectors added to the values (Shaw).
# - `asking word has a say`, `answering has a say`: T5, TUPE and ALiBi prefer the same distances for
#   all words. In Shaw's and Transformer-XL's schemes the query's content decides, in DeBERTa's and
#   RoPE's the contents of both.
# - `exact with a cache`: all are exact except the growing base, for which the cached keys would
#   have to change ([chapter 63](63_decoding.ipynb)).
# - `plain attention`: places 1 and 2 do not change the attention inside, so any fused attention
#   serves RoPE. T5, ALiBi and TUPE need a fused attention that takes a bias. FlashAttention takes
#   ALiBi's slopes since its version 2.4 (`alibi_slopes` of `flash_attn_func`, seen in
#   [Dao-AILab/flash-attention](https://github.com/Dao-AILab/flash-attention/tree/0251105)).
# - `a bias will do`: for the scores of Shaw, Transformer-XL and DeBERTa the bias would depend on the
#   words. PyTorch's `flex_attention` (2.13.0, `torch/nn/attention/flex_attention.py`) calls a
#   `score_mod` for each score, which may read a table of products computed before, $q_iR_n^\top$ for
#   each distance $n$. Shaw's term in the values needs the weights, which no `score_mod` receives.
#
# ## Parameters and operations of each encoding
#
# First we count the learned parameters in a model with the sizes of BERT-base: width 768, 12 heads,
# 12 layers, 512 positions, distances clipped at 16.


# %%
def count(tree):
    return sum(map(count, tree.values())) if isinstance(tree, dict) else tree.size


bert, draw = Shape(768, 12), np.random.default_rng(0)
numbers = {
    name: count(e.shared(draw, bert)) + sum(count(e.layer(draw, bert)) for _ in range(12))
    for name, e in every_encoding(512).items()
    if name in plots.NAMES
}
for name, n in sorted(numbers.items(), key=lambda item: item[1]):
    print(f"{plots.NAMES[name]:20} {n:10,}")
assert numbers["learned"] == 512 * 768 and numbers["t5"] == 32 * 12 and numbers["rope"] == 0
assert numbers["shaw"] == 12 * 2 * 33 * 64

# %% [markdown]
# Sinusoids, RoPE and ALiBi need none, T5 needs 384, a learned table 393,216 and DeBERTa 14,180,352.
#
# [Chapter 30](30_expansion.ipynb) counts the operations. Shaw and Transformer-XL double the cost of a
# score (a second product of vectors) and DeBERTa triples it. T5 and ALiBi add one number. So does
# TUPE, if its product of positions, which all layers share, is computed once. RoPE rotates each query
# and key once. Operations are not seconds: Press et al. (2022, section 2.2) found T5's bias, one
# addition, at least twice as slow in training as sinusoids.
#
# ## A hand-built head at eight times its length (second reading)
#
# What breaks at twice the length? First we build by hand a head that attends three tokens back, and
# scale its scores so that 90% of the weight among 32 keys goes there. Sinusoidal encodings get the
# matrix that shifts by three ([chapter 20](20_sinusoidal.ipynb)). RoPE gets a query rotated back by
# three. A table of distances (Shaw, DeBERTa, T5) gets a 1 in one row.

# %%
from pe_numpy import rope, sinusoidal, sinusoidal_shift


def made_by_hand(n):
    """Scores of the last of n queries, by distance."""
    at, codes, ones = np.arange(n), sinusoidal(np.arange(n), D), np.ones((n, D))
    turned = rope(rope(ones, np.full(n, -3)), at)
    rows = {"sinusoidal": codes[-1] @ sinusoidal_shift(3, D) @ codes.T}
    rows |= {"RoPE": turned[-1] @ rope(ones, at).T, "table": 1.0 * (at[::-1] == 3)}
    return {name: row[::-1] for name, row in rows.items()}


# %% [markdown]
# **Predict**: which of them keep the 90% among 256 keys?

# %% fold="output"
loud = np.linspace(0, 20, 2001)
for name, scores in made_by_hand(32).items():
    factor = loud[(softmax(np.outer(loud, scores))[:, 3] < 0.9).sum()]
    weights = [softmax(factor * made_by_hand(n)[name])[3] for n in (32, 64, 128, 256)]
    print(f"{name:10}", [f"{w:.2f}" for w in weights])
    assert (weights[-1] > 0.88) == (name != "table") and weights[-1] > 0.5

# %% [markdown]
# Built by hand, the sinusoidal head works at eight times its length, and so does RoPE's. So when
# sinusoidal models fail, the reason is not that the encoding cannot express the head. The table's
# weights scatter: it has one high score and hundreds of equal low ones, and the low ones grow in
# number ([chapter 51](51_extrapolation.ipynb)).
#
# ## Length extrapolation of trained models
#
# In a longer text an absolute encoding encounters new *positions*, and all pairs of tokens there
# are new. A relative encoding encounters new *distances*, and only pairs that are far apart are
# new. That is why a window saves RoPE and does not save sinusoids ([chapter 35](35_alibi.ipynb)).
# [Deeper](#a-straight-penalty-fitted-at-32-positions-second-reading) fits one penalty with each
# scheme and shows five ways to behave beyond training.
#
# [Chapter 71](71_study.ipynb) trains tiny models on 32 symbols, at several budgets, and tests them
# on up to 256. The cell prints that chapter's numbers on which the advice rests, as means over the
# seeds at the middle budget:
#
# - the loss on text at 32 symbols and its rise at 256;
# - "back", the share of right answers to "which symbol was three back?";
# - "needles", the share of values found beside a key that is named at the end (*needle in a
#   haystack*).
#
# ALiBi is shown with its published slopes, and with steeper ones that fit 32 symbols.

# %%
from pe_numpy.judging.verdicts import Study

book, compared = Study("results/study.csv"), {}


def compare(task, a, b, multiple=8, kind="loss", margin=0.0):
    """As `book.compare`, and keep the question and what came out."""
    found = book.compare(task, a, b, multiple, kind, margin)
    names = [x if isinstance(x, str) else f"{x['encoding']} {x['scaling']}" for x in (a, b)]
    names = [n + " tuned" * ("tuning" in x) for n, x in zip(names, (a, b), strict=True)]
    compared[task, *names, multiple, kind] = a, b, found
    return found


# %%
names = "none learned sinusoidal tupe alibi_256 alibi t5 shaw transformer_xl deberta rope".split()
models = {name: {"encoding": name} for name in names}
for name in ("linear", "dynamic_ntk", "yarn", "rerope", "self_extend"):
    models[f"RoPE {name}"] = {"encoding": "rope", "scaling": name}
for name in ("direct", "linear", "ntk", "dynamic_ntk", "yarn"):  # tuned at four times the length
    models[f"RoPE {name} tuned"] = {"encoding": "rope", "scaling": name, "tuning": 60}
    models[f"RoPE {name} tuned"] |= {} if name in ("direct", "dynamic_ntk") else {"factor": 4}
text, back, needle = (
    {key: book.means(task, kind=kind, **model)[4] for key, model in models.items()}
    for task, kind in (("text", "loss"), ("offset", "accuracy"), ("needle", "accuracy"))
)

# %%
rise = {key: loss - loss[0] for key, loss in text.items()}
print("trained on 32, tested on 256   loss  rise  back %  needles %")
for key in models:
    row = f"{100 * back[key][3]:7.0f} {100 * needle[key][3]:10.0f}"
    print(f"{key:30} {text[key][0]:.2f}  {rise[key][3]:.2f} {row}")

# %% [markdown]
# The bench predicted a good part of this. At new positions even near pairs fail (learned,
# sinusoidal, TUPE), whereas encodings with vectors for distances still work for near pairs (Shaw,
# Transformer-XL, DeBERTa). With a table of buckets attention scatters (T5), but less so the longer
# the model is trained. ALiBi's loss is level, with its authors' slopes and with steeper ones, and a
# model with one layer of it answers a part of the questions "three back".
#
# RoPE's scalings trade one result for another. Linear scaling keeps only the needles. Dynamic NTK
# keeps more of "three back" and fewer needles, and YaRN keeps most of both. The loss of all three
# scalings rises. ReRoPE and Self-Extend do not change the frequencies but the *positions*, and keep
# loss, "three back" and needles without a step of training ([chapter 52](52_new_places.ipynb)).
#
# After tuning for 60 steps at four times the trained length, NTK, dynamic NTK and YaRN keep all
# three results at that length. RoPE as it is ("direct") and linear scaling don't. At eight times
# none of the five keeps all three. There NTK's loss on text is above the losses of YaRN and dynamic
# NTK, and YaRN's is below dynamic NTK's from budget 4 on. The needles do not decide between YaRN
# and dynamic NTK. [Not one of these verdicts](#many-comparisons-holms-correction-second-reading)
# survives a correction for the number of comparisons. Tasks this small cannot guide the choice for
# a large model.

# %%
assert min(back[key][3] for key in ("shaw", "transformer_xl", "deberta")) > 0.95
level = ("alibi", "alibi_256", "shaw", "transformer_xl", "deberta")
assert max(rise[key][3] for key in level) < 0.1
assert all(0.3 < back[key][3] < 0.7 for key in level[:2])
assert back["RoPE linear"][1] < 0.2 and needle["RoPE linear"][3] > 0.95
assert back["RoPE dynamic_ntk"][3] > 0.85 > 0.8 > needle["RoPE dynamic_ntk"][3]
assert back["RoPE yarn"][3] > 0.85 and needle["RoPE yarn"][3] > 0.95
assert min(rise[f"RoPE {name}"][3] for name in ("linear", "dynamic_ntk", "yarn")) > 0.5
ntk, dynamic, yarn = (models[f"RoPE {name} tuned"] for name in ("ntk", "dynamic_ntk", "yarn"))
assert compare("text", ntk, yarn) == compare("text", ntk, dynamic) == "higher"
assert compare("needle", ntk, dynamic, kind="accuracy") == "lower"
assert compare("needle", ntk, yarn, kind="accuracy").endswith("lower at 4, not decided at 10")
assert compare("text", yarn, dynamic) == "lower from 4 on"
assert compare("needle", yarn, dynamic, kind="accuracy") == "not decided"


# %%
def keeps_all(key, n):
    """At one length: loss, three back and needles."""
    return bool(rise[key][n] < 0.1 and back[key][n] > 0.9 and needle[key][n] > 0.9)


at_four, at_eight = ([key for key in models if keeps_all(key, n)] for n in (2, 3))
print("keep all three at four times:", ", ".join(at_four))
print("and at eight times:", ", ".join(at_eight))
vectors, places = ["shaw", "transformer_xl", "deberta"], ["RoPE rerope", "RoPE self_extend"]
tuned = [f"RoPE {name} tuned" for name in ("ntk", "dynamic_ntk", "yarn")]
assert at_eight == [*vectors, *places] and at_four == ["t5", *at_eight, *tuned]

# %% [markdown]
# In Gemma 3 270M, with windows widened from 512 to 1150 tokens, ReRoPE and Self-Extend lead, too ([chapter
# 81](81_real_rope.ipynb#all-scalings-on-the-same-window)):

# %%
from pe_numpy.book.trained import changes

tried = ("ReRoPE 256", "Self-Extend 256, groups of 4", "YaRN", "linear", "NTK", "nothing else")
loss = {name: np.mean(changes("window", f"1,150, {name}")) for name in tried}
print("mean of three texts, nats:", ", ".join(f"{name} {x:+.2f}" for name, x in loss.items()))
assert sorted(loss, key=loss.get) == [*tried]

# %% [markdown]
# The book has more schemes than these fifteen, and several are one formula seen from another side.
# [Chapter 70](70_algebra.ipynb#equivalences-of-encodings-second-reading) lists which of them are
# equal and when, and asserts each equality.
#
# ## Which models use which encoding: a census
#
# Advice follows custom, and customs can be dated. The package has a census: the month, the
# encoding, and the file that shows it. A rule fixed which models count before the counting began.
# It takes every family of decoders in the transformers library (release 5.23.0, the mapping
# `MODEL_FOR_CAUSAL_LM_MAPPING_NAMES`) that has attention and its own code. The family must reach a
# billion parameters, by default or in a model that it names. **Predict** since when most of them
# rotate queries and keys.

# %% fold="output" alt="Models from 2017 to 2026 on one line per encoding; below, each place's share of the families by year. Token vectors are on the left, the score in the middle, and dozens of green dots on the right. Bars are mostly green since 2023, nearly all since 2024; the rest is grey, in 2026 red."
from collections import Counter

from pe_numpy.book.census import candidates, census, users_of
from pe_numpy.book.plots.census import census_timeline

entries = census()
census_timeline(entries)
plt.show()
families = [row for row in entries if row.kind == "family"]
print(f"{len(candidates())} candidates:", dict(Counter(one.verdict for one in candidates())))
turn = {}  # by year: does some layer rotate?
for row in families:
    turn.setdefault(row.year, []).append(row.place == 2)
for year, answer in turn.items():
    print(f"{year}: {sum(answer):2} of {len(answer):2} families rotate")

# %%
assert [year for year in turn if np.mean(turn[year]) > 0.5] == [2023, 2024, 2025, 2026]
since = [row for row in families if row.year >= 2024]
without, scored, rotating = ([row.model for row in since if row.place == n] for n in (0, 3, 2))
partly = sum(row.encoding == "nope_layers" for row in since)
print(f"{len(families)} families; since 2024 {len(rotating)} of {len(since)} rotate")
print(partly, "in part; no position:", ", ".join(without), "- in the score:", *scored)
others = [row.setting for row in families if row.place == 0]
assert all("recurrent" in said or "state spaces" in said for said in others)
assert len(without) == len(others) == 6 and scored == ["Inkling", "Inkling 2"]
assert {"Bamba", "Falcon-H1", "MiniMax", "Qwen3-Next"} < set(rotating)
assert (len(families), len(rotating), len(since), partly) == (127, 100, 108, 10)
alone = [row.model for row in entries if row.kind == "scheme" and not users_of(row.encoding)]
print("schemes that set no released model apart:", ", ".join(alone))
assert {"KERPLE", "FIRE", "CoPE", "FoX"} < set(alone)

# %% [markdown]
# Since 2023 most of the 127 families that count rotate queries and keys; since 2024, 100 of 108 do.
# In ten of these 100 some layers of self-attention have no positional encoding. Of the eight
# others, six have none in any attention layer (Jamba, Zamba, Zamba2, Granite 4.0-H, Kimi Linear,
# Nemotron-H). All six are hybrids: their other layers, which are recurrent or state-space layers,
# encode the order. Hybrids can also rotate: Bamba, Falcon-H1, MiniMax and Qwen3-Next do. The last
# two, both Inkling, use Shaw's idea. No released model in the census is set apart by KERPLE, FIRE,
# CoPE or FoX. [Deeper](#what-the-census-leaves-out-second-reading) says what the census leaves out.
#
# ## Which encoding should I choose?
#
# ### Shortlist: which schemes pass
#
# Name the properties you need, and compute the schemes that have all of them. **Predict** which
# schemes pass in the first line of the output.

# %% fold="output"
decoder = "distance alone", "exact with a cache", "defined beyond"
needs = {
    "decoder, any fused attention": (*decoder, "plain attention"),
    "decoder, fused, with a bias": (*decoder, "a bias will do"),
    "encoder": ("distance alone", "sees the mirror"),
    "encoder, both words have a say": ("distance alone", "sees the mirror", "answering has a say"),
    "equal words must be counted": ("tells equal words apart", "defined beyond"),
    "images of several sizes": ("distance alone", "steps on a grid", "defined beyond"),
}
left = {case: [n for n in schemes if all(n in who(w) for w in needs[case])] for case in needs}
for case, found in left.items():
    print(f"{case:31} {', '.join(found)}")
assert left["decoder, any fused attention"] == ["none", "rope"]  # among the fifteen
assert left["encoder, both words have a say"] == ["rope", "deberta"]

# %%
from pe_numpy.transformer.encodings import SCHEMES, Reach

# The first line's questions again, to all schemes that the book's model takes.
everyone = {name: scheme.make(Reach(N)) for name, scheme in SCHEMES.items()}
del everyone["forgetting"]  # its gates are not in the bench's layer; it is a bias
four = distance_alone, exact_with_cache, defined_beyond, plain_inside
passing = [name for name, e in everyone.items() if all(test(e) for test in four)]
print(", ".join(passing))
fixed = ["partial_rope", "proportional_rope", "linear", "ntk", "yarn", "llama3"]
assert passing == ["none", "rope", "xpos", "pope", *fixed]
turning = {name for name, e in everyone.items() if 2 in where_is(e)}
assert turning - set(passing) == {"dynamic_ntk", "longrope", "temperature", "rotary_values"}

# %% [markdown]
# In the first line two of the fifteen remain. One is RoPE. The other has no position at all, and no
# shift can change its scores, since they do not depend on distance either. A causal mask tells a
# decoder the order ([chapter 11](11_why_position.ipynb)). But the fifteen include only one other
# rotation. So the last line asks all schemes. Those that encode a position and pass are rotations
# with fixed frequencies (xPos also scales, PoPE turns contents into radii); frequencies that change
# with the length fail with a cache. So the tests answer "why a rotation?", without a claim that a
# rotation gives the lowest loss. Among rotations RoPE is the simplest; [chapter
# 42](42_rope_in_models.ipynb) and [chapter 50](50_scaling.ipynb) compare frequencies.
#
# ### Guide: which positional encoding for which use
#
# Each line says what to take, and what that rests on: **measured** here or in the chapter named,
# **sourced** from papers, or **custom**, what most people do.
#
# | situation | take | rests on |
# |---|---|---|
# | short texts, one fixed length | whatever is simplest, or try RoPE | sourced: a table and sinusoids give "nearly identical results" in translation (Vaswani et al. 2017, table 3, row E). Measured: on the study's text RoPE's loss is below the losses of both at every budget, on its Markov language only at the shortest budget |
# | a new decoder, served at its trained length | RoPE | measured: nothing to learn, plain attention, exact cache. Custom: the [census](#which-models-use-which-encoding-a-census). That it reads *better* is believed: Scao et al. (2022), before BLOOM, found ALiBi best, and rotary worse than learned |
# | longer texts than trained, no more training, near words matter | ALiBi, or RoPE with a window or with changed positions; Shaw, Transformer-XL or DeBERTa if their price does not matter | measured: level loss ([above](#length-extrapolation-of-trained-models) and [chapter 35](35_alibi.ipynb)). Sourced for ALiBi (Press et al. 2022). Models trained without a window may need their first tokens (sourced: Xiao et al. 2024) |
# | longer texts than trained, far words matter | RoPE, stretched *and* tuned on long texts; untuned, ReRoPE or Self-Extend | sourced: Chen et al. 2023, Peng et al. 2023, Xiong et al. 2023, Jin et al. 2024. Measured: [above](#length-extrapolation-of-trained-models) |
# | more steps of reasoning than trained (longer sums, longer copies) | an open question | sourced: ALiBi, RoPE and absolute encodings all do badly, no position at all does best (Kazemnejad et al. 2023, small models) |
# | an encoder | RoPE, T5's bias, Shaw or DeBERTa; not a symmetric ALiBi by itself | measured: mirror images. Between the four: custom |
# | images of one size | a learned table | sourced: which kind it is barely matters, but having one does (Dosovitskiy et al. 2021, appendix D.4) |
# | images of many sizes | RoPE with half of the components rotated by the row, half by the column (*axial*), or a learned bias for each step | measured: only the step counts. Sourced: Heo et al. 2024 for RoPE, Liu et al. 2021 for a bias |
# | streaming with a cache | a relative encoding with fixed frequencies. Take true positions in a plain window, and positions within the cache if the first tokens are also kept | measured: keys rotated once keep their scores ([chapter 63](63_decoding.ipynb)). Sourced: Xiao et al. 2024, section 3.2 |
# | equal things must be counted | an encoding at place 1, Shaw's value term, or one token that is different | measured and proved ([chapter 30](30_expansion.ipynb)). Sourced: Luo et al. 2022 |
# | a set without an order | nothing, and no causal mask | proved ([chapter 11](11_why_position.ipynb)) |
# | a pretrained model | the encoding it was trained with, to the last detail | measured: each mistake below changes the numbers |
#
# For example, a decoder is trained from scratch at 2048 tokens and must serve four times as many.
# If it needs only near words, take ALiBi, or RoPE with a window. If it also needs far words, take
# RoPE, stretched by 4 with YaRN or NTK and tuned for some steps at that length, or untuned with the
# positions of Self-Extend. In the study all three methods keep loss, "three back" and needles at
# that factor. Self-Extend needs two products for each pair, and plain attention, in the sense of
# the figure, does not choose between them. A study of larger models would change this advice, if
# its results differ.
#
# For a pretrained model check
#
# - the layout and base of RoPE ([chapter 40](40_rope_derived.ipynb)), its scaling and attention
#   factor ([chapter 50](50_scaling.ipynb));
# - the rule for slopes ([chapter 35](35_alibi.ipynb)), the sign and buckets of distances
#   ([chapter 33](33_t5.ipynb), [chapter 34](34_deberta.ipynb)), where a table begins
#   ([chapter 21](21_learned.ipynb)), and whether scores are divided at all.
#
# ## How to test a RoPE implementation
#
# You have chosen; does your program compute what you chose? The book's homework has wrong versions
# of `rope`, made on purpose. Here are ten of them. How many does each of seven usual checks catch?

# %%
from pe_numpy.homework.registry import EXERCISES

x, y = np.random.default_rng(11).standard_normal((2, 6, 8))
p = np.arange(6)


def close(a, b):
    return np.allclose(a, b, rtol=0, atol=1e-9)


def scores_of(f, p):
    return f(x, p) @ f(y, p).T


# %% [markdown]
# **Predict** the number for the most famous check: shift all positions, and the scores do not
# change.

# %% fold="output" alt="Which of ten wrong versions of rope is caught by which of seven checks. Shape, norm, position 0 and the shift catch almost nothing. Scores catch eight, and one vector at position 3 catches all ten."
checks = {
    "shape": lambda f: f(x, p).shape == x.shape,
    "norms are kept": lambda f: close((f(x, p) ** 2).sum(-1), (x**2).sum(-1)),
    "position 0 unchanged": lambda f: close(f(x[:1], p[:1]), x[:1]),
    "a shift keeps scores": lambda f: close(scores_of(f, p), scores_of(f, p + 99)),
    "last token alone": lambda f: close(f(x[5:], p[5:]), f(x, p)[5:]),
    "scores are right": lambda f: close(scores_of(f, p), scores_of(rope, p)),
    "one vector at position 3": lambda f: close(f(x[:1], p[3:4]), rope(x[:1], [3])),
}
wrong = {m.name: m.function for m in EXERCISES["rope"].mistakes[:10]}
caught = {name: [not check(f) for check in checks.values()] for name, f in wrong.items()}
plots.what_catches_what(caught, list(checks), best=["one vector at position 3"])
plt.show()
assert all(check(rope) for check in checks.values()) and len(wrong) == 10
assert np.sum(list(caught.values()), axis=0).tolist() == [0, 1, 1, 1, 1, 8, 10]

# %% [markdown]
# Nine of ten wrong versions pass the shift test, which is the theorem of [chapter
# 40](40_rope_derived.ipynb). Among them are a rotation the other way, the other layout, wrong
# frequencies, and degrees. Most of these *are* relative encodings, only not RoPE. The dullest check
# catches all ten: one vector, one position that is not 0, and numbers from an independent source.
# Other mistakes of the homework need other inputs: the other layout, a partial rotation, negative
# or fractional positions, another dtype.
#
# This gives a recipe for any encoding:
#
# 1. **One value at one position that is not 0**, from an independent source.
# 2. **The whole layer on one well-chosen input**: no two sizes equal, positions with gaps that do
#    not begin at 0, a number of heads that isn't a power of two, nothing that is 1. [Chapter
#    73](73_exercises.ipynb) shows which inputs miss which mistakes.
# 3. For a decoder, **a prompt followed by single tokens gives what one pass gives**
#    (`exact_with_cache` above).

# %% [markdown]
# ## In short
#
# - **Which encoding for a new decoder?** RoPE: it depends only on distance and works with
#   FlashAttention and a KV cache. No position at all passes the same tests, but has a higher loss
#   in the study (2.05 against 1.60). [Shortlist](#shortlist-which-schemes-pass).
# - **Which one for texts longer than trained?** RoPE with YaRN, NTK or dynamic NTK, tuned for some
#   steps on long texts. With nothing trained again, take Self-Extend.
#   [Length extrapolation](#length-extrapolation-of-trained-models).
# - **Is ALiBi's level loss enough?** Not for *needles*, facts far back: it finds 74% at eight times
#   the trained length, where DeBERTa finds 100%.
#   [Length extrapolation](#length-extrapolation-of-trained-models).
# - **Which one for encoders and images?** An encoder takes RoPE, T5's bias, Shaw or DeBERTa. Images
#   of one size take a learned table, images of many sizes RoPE by row and column.
#   [Guide](#guide-which-positional-encoding-for-which-use).
# - **Which encodings can FlashAttention serve?** Encodings in the token vector, RoPE and ALiBi. T5
#   and TUPE need a fused attention with a bias. Shaw, Transformer-XL and DeBERTa need a function
#   for each score. [What the tests show](#what-the-tests-show).
# - **How do I test my own?** Compare one vector at one position that is not 0 with an independent
#   source. Then compare a prompt and single tokens with one pass.
#   [Testing RoPE](#how-to-test-a-rope-implementation).

# %% [markdown]
# ## Exercises
#
# `python -m pe_numpy copy --stub 72` writes this chapter's empty functions into the current folder, and
# `python -m pe_numpy check 72_which_one.py` checks yours.
#
# ### Exercise 1: How far back can ALiBi attend?
#
# Use the bound at the start of this chapter. How far back may the wanted key be if ALiBi, with its
# best slope and contents that add nothing, can still give it 5% of the weight? And roughly how
# large is the best weight for large $n$?
#
# <details><summary>Hint 1</summary>
#
# Try $n^n/(n+1)^{n+1}$ for a few $n$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# $\big(\frac{n}{n+1}\big)^n$ tends to $1/e$.
#
# </details>
#
# <details><summary>Solution</summary>
#
# The key can be six back. For large $n$ the best weight is about $\frac1{e\,n}$.
#
# ```python
# best_weight = lambda n: n**n / (n + 1) ** (n + 1)
# assert best_weight(6) > 0.05 > best_weight(7)
# assert np.isclose(best_weight(100) * 100 * np.e, 1, rtol=0.01, atol=0)
# ```
#
# </details>
#
# ### Exercise 2: KERPLE on the bench
#
# KERPLE (Chi et al. 2022), in its logarithmic form, subtracts $b\,\ln(1+a\,|i-j|)$ from each score,
# with learned positive $a$ and $b$. Write it as an encoding with $a=b=1$ and fill in its row of the
# figure. Predict first: which answers differ from ALiBi's?
#
# <details><summary>Hint 1</summary>
#
# Only `scores` is needed: `super().scores(...)` plus a bias.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Like ALiBi's, the penalty falls at each step, for ever, and is the same on both sides.
#
# </details>
#
# <details><summary>Solution</summary>
#
# None differs: these questions cannot tell the two encodings apart. The two differ in how fast the
# penalty grows, and therefore in the share of weight that far keys get.
#
# ```python
# class Kerple(Encoding):
#     def scores(self, params, q, k, context):
#         return super().scores(params, q, k, context) - np.log1p(np.abs(context.distance))
#
# assert [bool(test(Kerple())) for test in tests] == answers["alibi"]
# ```
#
# </details>
#
# ### Exercise 3: A fast test of translation invariance
#
# For scores of equal words, write `depends_on_distance` without a loop over the entries: True if on
# each diagonal all scores are equal up to 1e-9. Find a matrix that is symmetric and not relative, and
# one that is relative and not symmetric. This is also this chapter's homework.
#
# <details><summary>Hint 1</summary>
#
# Each distance has its diagonal, for $n$ from $1-L$ to $L-1$.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# `np.diagonal(scores, n)` is that diagonal: take its range. Steps from neighbour to neighbour add up.
#
# </details>
#
# <details><summary>Solution</summary>
#
# ```python
# def depends_on_distance(scores):
#     L = len(scores)
#     return all(np.ptp(np.diagonal(scores, n)) <= 1e-9 for n in range(1 - L, L))
#
# i = np.arange(6)
# symmetric, relative_only = np.outer(i, i), i[:, None] - i
# creeping = 0.4e-9 * np.add.outer(i, i)  # neighbours agree to the tolerance, ends do not
# assert not depends_on_distance(symmetric) and depends_on_distance(relative_only)
# assert np.abs(np.diff(np.diagonal(creeping))).max() < 1e-9 and not depends_on_distance(creeping)
# ```
#
# </details>
#
# ## Deeper
#
# ### What the census leaves out (second reading)
#
# The census counts code, not models. Llama 1 to 3 are one family, near copies are several, and a
# checkpoint may differ from the default (in its base, its scaling, or layers without an encoding).
# Left out are closed models, models whose code is not in that library, decoders that it contains
# only as parts of image models, and small models (GPT-2, whose page names no size). In the figure
# of the census, squares and open dots are entries that were chosen by hand and are not counted.
# Full dots without a name are families whose rotation is plain, partial or latent. Methods that
# give RoPE other distances are drawn in red, the colour of the score, because there the pair of
# tokens decides the distance. Models copy their predecessors: what is common is not therefore
# better.
#
# ### A straight penalty fitted at 32 positions (second reading)
#
# A head [built by hand](#a-hand-built-head-at-eight-times-its-length-second-reading) works far
# beyond its length, but a trained head has seen only 32 positions. So let each scheme *fit* a
# target there, by least squares, and predict it at 64. The target is ALiBi's own: a straight
# penalty of 1/8 per step. Each scheme has its features:
#
# - RoPE with fixed contents and Transformer-XL have a cosine and a sine of the distance for each
#   frequency.
# - T5 has a 1 in the column of the bucket, Shaw and DeBERTa in the column of the clipped distance,
#   and ALiBi has the distance.
# - Sinusoidal encodings have all products of a component of $p_i$ and one of $p_j$ (any matrix
#   $W_QW_K^\top$). A learned table has a number for each pair of rows.
#
# RoPE is also read with two of its scalings, linear and NTK.

# %%
from pe_numpy import linear_scaling, ntk_scaling, rope_frequencies, t5_bucket

seen, asked = 32, 64
d, wish, theta = np.arange(asked), -np.arange(asked) / 8, rope_frequencies(D)


def fit(F, y, ridge=1e-3):
    """Least squares with a small penalty on large coefficients."""
    return np.linalg.solve(F.T @ F + ridge * np.eye(F.shape[1]), F.T @ y)


def clocks(theta):
    return np.concatenate([np.cos(np.outer(d, theta)), np.sin(np.outer(d, theta))], axis=1)


# %%
def products(i, j):
    p = sinusoidal(d, D)
    return (p[i][:, :, None] * p[j][:, None, :]).reshape(len(i), -1)


c, last = fit(clocks(theta)[:seen], wish[:seen]), np.full(asked, asked - 1)
mends = {"as it is": theta, "linear, 2": linear_scaling(theta, 2), "NTK, 2": ntk_scaling(D, 2)}
i, j = np.tril_indices(seen)  # all pairs of 32 places, j not after i
pairs = fit(products(i, j), wish[i - j])
at_31 = products(last[:32] - 32, 31 - d[:32]) @ pairs
panels = {"sinusoidal": {"query at 63": products(last, last - d) @ pairs}}
panels["sinusoidal"]["query at 31"] = np.append(at_31, np.full(32, np.nan))
panels["learned"] = {"": np.where(d < seen, wish, np.nan)}
panels["RoPE, Transformer-XL"] = {name: clocks(t) @ c for name, t in mends.items()}

# %% [markdown]
# **Predict**: which of the six are right beyond 32?

# %% fold="output" alt="Six panels: what each encoding makes of a linear penalty within the trained grey band and beyond. Sinusoids are wrong even nearby, the table ends, clocks bend away, T5 and Shaw become flat, and ALiBi continues."
buckets = t5_bucket(d, 16, 32, bidirectional=False)
features = {"T5": np.eye(16)[buckets], "Shaw, DeBERTa": np.eye(17)[np.minimum(d, 16)]}
for title, F in (features | {"ALiBi": d[:, None] * 1.0}).items():
    panels[title] = {"": F @ fit(F[:seen], wish[:seen])}
plots.a_line_beyond_training(
    panels, ("sinusoidal", "learned", "rope", "t5", "shaw", "alibi"), wish, seen
)
plt.show()
error = {title: np.abs(next(iter(curves.values())) - wish) for title, curves in panels.items()}
near = {title: e[:9].max() for title, e in error.items()}
assert near["sinusoidal"] > 0.5 and max(e for t, e in near.items() if t != "sinusoidal") < 0.3
clock = panels["RoPE, Transformer-XL"]
assert error["RoPE, Transformer-XL"][:seen].max() < 0.1 and clock["as it is"][-1] - wish[-1] > 1
assert abs(clock["linear, 2"][16] / wish[16] - 0.5) < 0.03 and error["ALiBi"].max() < 1e-3
assert np.ptp(panels["T5"][""][seen:]) < 1e-9 and np.ptp(panels["Shaw, DeBERTa"][""][16:]) < 1e-9

# %% [markdown]
# The schemes behave in five ways beyond training:
#
# - The **sinusoidal** head is right for a query at 31 (dotted) and wrong for a query at 63, *even
#   about its direct neighbours*. The distance is not new, but the positions are.
# - The **learned** table stops.
# - **Waves of the distance** (RoPE, Transformer-XL) are right wherever the distance was trained, and
#   then bend with their sines. Linear scaling (dotted) gives half the target.
# - **Buckets and clipping** go flat: beyond the last bucket or clipped distance, all keys count as
#   equally far.
# - **ALiBi** continues as it began. It was not fitted to the line; it is the line.
#
# This is one target and one fit. The figure shows what the features leave open, not what training
# does with that freedom.
#
# ## In practice
#
# **Say which questions you asked.** "Extrapolates well" in a report should name the length, whether
# the loss or a search was tested, whether anything was tuned, and how many seeds there were.
#
# **In a fair comparison the models share everything but the encoding**: the head dimension, the
# windows of the test, and a base and slopes that are fitted to the length. An ALiBi with slopes
# made for a thousand tokens is a straw man if it is trained on 32; a RoPE with the base 10,000 may
# be one too. The study has both forms of both. On text, fitted slopes have the lower loss at the
# trained length, and a fitted base has it at twice the length, each at every budget. Further out
# the order changes. At four and eight times the trained length, the base 10,000 finds more needles
# at every budget. The loss decides nothing there, except at budget 10 and eight times the length,
# where it is lower for 10,000. [None of these
# verdicts](#many-comparisons-holms-correction-second-reading) survives a correction for the number
# of comparisons. If the choice matters to you, train two small models on *your* task.

# %%
assert compare("text", "alibi", "alibi_256", multiple=1, margin=0.05) == "lower"
assert compare("text", "rope", "rope_10000", multiple=2, margin=0.5) == "lower"
for multiple in (4, 8):
    assert compare("needle", "rope", "rope_10000", multiple, "accuracy") == "lower"
assert compare("text", "rope", "rope_10000", multiple=4) == "not decided"
assert compare("text", "rope", "rope_10000", multiple=8).endswith("higher at 10")

# %% [markdown]
# ## Many comparisons: Holm's correction (second reading)
#
# Each verdict of this chapter went through `compare`, which kept a list. The cell adds the verdicts
# on RoPE, ALiBi, sinusoids and the learned table that the guide's first row and the
# [In short](#in-short) answers rest on.

# %% fold="output"
assert not {"learned", "tupe"} & set(who("defined beyond")) and numbers["alibi"] == 0
for task in ("markov", "text"):
    assert compare(task, "rope", "sinusoidal", multiple=2) == "lower"
    assert compare(task, "alibi", "rope", multiple=4) == "lower"
    for name in ("sinusoidal", "learned", "alibi"):
        print(f"{task}, at 32, RoPE against {name}:", compare(task, "rope", name, multiple=1))
assert 0.7 < needle["alibi"][3] < 0.8 < 0.99 < needle["deberta"][3]
dynamic = {"encoding": "rope", "scaling": "dynamic_ntk"}
for task in ("markov", "text"):
    assert compare(task, dynamic, "rope", multiple=4) == "lower"
assert compare("needle", "rope", dynamic, 8, "accuracy") == "lower"
relative = {"rope", *list(plots.NAMES)[9:]}
assert relative - set(who("distance alone")) == {"tupe"}

# %% [markdown]
# The table of [length extrapolation](#length-extrapolation-of-trained-models) compares means with
# thresholds and does not ask whether chance could explain them. If you make many comparisons, you
# find something by chance. So `p_value` takes the p of Student's test at the worst budget of a
# verdict, and 1 where the verdict names no direction. Then Holm's rule corrects all these values
# for their number, as in [chapter 71](71_study.ipynb#many-verdicts-at-once-holms-correction).

# %% fold="output"
from pe_numpy.judging.verdicts import holm

alike = {key: found for key, (_, _, found) in compared.items() if found in ("lower", "higher")}
p = [book.p_value(key[0], a, b, *key[3:]) for key, (a, b, _) in compared.items()]
corrected = dict(zip(compared, holm(p), strict=True))
print(f"{len(compared)} comparisons; {len(alike)} alike at every budget; * holds corrected")
for (task, a, b, multiple, kind), found in alike.items():
    mark = "*" if corrected[task, a, b, multiple, kind] < 0.05 else " "
    print(f"{mark} {task}, at {32 * multiple}, {kind}: {a} {found} than {b}")

# %%
hold = [key[:4] for key in alike if corrected[key] < 0.05]
both = [("rope", "sinusoidal", 2), ("alibi", "rope", 4)]
wanted = {(task, *pair) for task in ("markov", "text") for pair in both}
assert set(hold) == wanted | {("markov", "rope", "alibi", 1), ("text", "rope", "sinusoidal", 1)}
missed = [key for key in alike if 0.05 <= corrected[key] < 0.06]
assert len(missed) == 2 and all("rope dynamic_ntk" in key for key in missed)
assert (len(compared), len(alike), len(hold)) == (25, 18, 6)

# %% [markdown]
# Of 25 comparisons 18 come out alike at every budget, and six of these still hold after the
# correction for all 25. On both languages the sinusoids' loss is above RoPE's at twice the length,
# and RoPE's above ALiBi's at four times. At the trained length RoPE's loss is below ALiBi's on the
# Markov language and below the sinusoids' on text. The other verdicts, among them all on tuned
# models, dynamic NTK and the base 10,000, are hints from few seeds. The list has only comparisons
# that this chapter reports; more were looked at while it was written, so a full correction would be
# stricter. Nor is the border sharp: two verdicts on dynamic NTK miss .05 by less than 0.01.
#
# ## Further reading
#
# - Press et al. 2022, "Train short, test long" (arXiv:2108.12409): four encodings compared on longer
#   texts, with their speed.
# - Kazemnejad et al. 2023, "The impact of positional encoding on length generalization in
#   Transformers" (arXiv:2305.19466): five encodings on small tasks; no position at all does best.
# - Scao et al. 2022, "What language model to train if you have one million GPU hours?"
#   (arXiv:2210.15424): the comparison behind BLOOM's choice of ALiBi.
# - Dosovitskiy et al. 2021 (arXiv:2010.11929), Liu et al. 2021, "Swin Transformer"
#   (arXiv:2103.14030), Heo et al. 2024 (arXiv:2403.13298): positions in images.
# - Chen et al. 2023 (arXiv:2306.15595), Peng et al. 2023 (arXiv:2309.00071), Xiong et al. 2023
#   (arXiv:2309.16039): RoPE stretched and tuned. Jin et al. 2024 (arXiv:2401.01325): Self-Extend.
# - Xiao et al. 2024, "Efficient streaming language models with attention sinks" (arXiv:2309.17453).
# - Luo et al. 2022 (arXiv:2205.13401): what no relative score can compute.
# - Chi et al. 2022, "KERPLE" (arXiv:2205.09921): ALiBi and its relatives as one family.
