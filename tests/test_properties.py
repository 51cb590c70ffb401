"""The detector: every scheme has the properties that theory says, and planted faults are seen."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import pe_numpy
from pe_numpy.book.plots import algebra
from pe_numpy.judging.properties import Properties, properties
from pe_numpy.judging.schemes import BASE, every_scheme, score_function
from pe_numpy.transformer import encodings
from pe_numpy.transformer.encodings import every_encoding

SCHEMES = every_scheme()

# What theory says. Y yes, n no, - no meaning; shift: 1 relative, 0 not, else the period; zero: 0,
# T Toeplitz, X not; range: f free, s saturated, c constant, F finite. The rank of a table is that
# of a random one; the others are explained.
#                  pair shift bias bilin expan zero gain group exch mirr fall range bnd prefix rank
TABLE = """
none                Y    1    Y    Y    Y    0   1    Y    Y    Y  flat   c    Y    Y    1
sinusoidal          Y    0    n    n    Y    X   -    -    n    n  rises  f    Y    Y    8
multiplicative      Y    0    n    Y    Y    0   -    n    n    n  rises  f    Y    Y    8
learned             Y    0    n    n    Y    X   -    -    n    n  rises  F    -    Y    8
hierarchical        Y    0    n    n    Y    X   -    -    n    n  rises  F    -    Y    8
recurrent           Y    0    n    n    Y    X   -    -    n    n  rises  f    Y    Y    *
floater             Y    0    n    n    Y    X   -    -    n    n  rises  f    Y    Y    *
rope                Y    1    n    Y    Y    0   1    Y    Y    n  rises  f    Y    Y    8
shaw                Y    1    n    n    Y    0   -    -    n    n  rises  s    Y    Y    16
relative_key_query  Y    1    n    n    Y    0   -    -    n    n  rises  F    -    Y    32
nezha               Y    1    n    n    Y    0   -    -    n    n  rises  s    Y    Y    16
transformer_xl      Y    1    n    n    Y    T   -    -    n    n  rises  f    Y    Y    9
t5                  Y    1    Y    n    Y    T   -    -    n    n  rises  s    Y    Y    32
tupe                Y    0    Y    n    Y    X   -    -    n    n  rises  F    -    Y    32
deberta             Y    1    n    n    Y    0   -    -    n    n  rises  s    Y    Y    15
alibi               Y    1    Y    n    Y    T   -    -    Y    Y  falls  f    n    Y    2
kerple              Y    1    Y    n    Y    T   -    -    Y    Y  falls  f    n    Y    *
sandwich            Y    1    Y    n    Y    T   -    -    Y    Y  rises  f    Y    Y    *
fire                Y    0    Y    n    Y    X   -    -    Y    Y  rises  f    Y    Y    *
forgetting          n    1    -    -    -    T   -    -    -    -   -     -    -    Y    -
cope                n    1    -    -    -    0   -    -    -    -   -     -    -    Y    -
rerope              Y    1    n    Y    Y    0   1    n    Y    n  rises  s    Y    Y    *
leaky_rerope        Y    1    n    Y    Y    0   1    n    Y    n  rises  f    Y    Y    *
self_extend         Y    2    n    Y    Y    0   1    n    Y    n  rises  f    Y    Y    *
dual_chunk          Y    16   n    Y    Y    0   1    n    n    n  rises  s    Y    Y    *
streaming           Y    0    n    Y    Y    0   1    n    Y    n  rises  f    Y    Y    *
xpos                Y    1    n    Y    Y    0   -    Y    n    n  rises  f    Y    Y    8
pope                Y    1    n    n    n    T   -    -    n    n  rises  f    Y    Y    15
rotary_values       Y    1    n    Y    Y    0   1    Y    Y    n  rises  f    Y    Y    8
partial_rope        Y    1    n    Y    Y    0   1    Y    Y    n  rises  f    Y    Y    5
proportional_rope   Y    1    n    Y    Y    0   1    Y    Y    n  rises  f    Y    Y    5
linear              Y    1    n    Y    Y    0   1    Y    Y    n  rises  f    Y    Y    8
ntk                 Y    1    n    Y    Y    0   1    Y    Y    n  rises  f    Y    Y    8
llama3              Y    1    n    Y    Y    0   1    Y    Y    n  rises  f    Y    Y    8
yarn                Y    1    n    Y    Y    0   yarn Y    Y    n  rises  f    Y    Y    8
dynamic_ntk         Y    0    n    Y    Y    0   1    n    Y    n  rises  f    Y    n    8
longrope            Y    1    n    Y    Y    0   long n    Y    n  rises  f    Y    n    8
temperature         Y    0    n    Y    Y    0   -    n    n    n  rises  f    Y    Y    1
alibi_signed        Y    1    Y    n    Y    T   -    -    n    n  falls  f    n    Y    2
axial               Y    1    n    Y    Y    0   1    Y    Y    n  rises  f    Y    Y    8
mixed               Y    1    n    Y    Y    0   1    Y    Y    n  rises  f    Y    Y    8
mrope               Y    1    n    Y    Y    0   1    Y    Y    n  rises  f    Y    Y    8
"""
ROWS = {words[0]: words[1:] for words in map(str.split, TABLE.strip().splitlines())}
COLUMNS = [name for name in Properties._fields if name != "leak"]
MEANING = {
    "Y": True, "n": False, "-": None, "T": "Toeplitz", "X": "not Toeplitz",
    "f": "free", "s": "saturated", "c": "constant", "F": "finite",
}  # fmt: skip
GAINS = {
    "1": 1.0,
    "yarn": (0.1 * math.log(4) + 1) ** 2,
    "long": 1 + math.log(4) / math.log(32),  # (1 + ln s / ln L0), L0 = 32: a root on either side
}
MOVES = {
    "none": "none",
    "add": "sinusoidal learned hierarchical recurrent floater",
    "multiply": "multiplicative temperature",
    "expand": "shaw relative_key_query nezha transformer_xl deberta",
    "bias": "t5 tupe alibi kerple sandwich fire alibi_signed",
    "turn": "rope xpos rotary_values partial_rope proportional_rope linear ntk llama3 yarn axial "
    "mixed mrope",
    "turn after a nonlinearity": "pope",
    "index": "rerope leaky_rerope self_extend dual_chunk streaming dynamic_ntk longrope",
    "path": "forgetting cope",
}


def measured(name: str, **options) -> Properties:
    return properties(SCHEMES[name].scores, axes=SCHEMES[name].axes, **options)


@pytest.mark.parametrize("name", SCHEMES)
def test_every_scheme_has_the_properties_that_theory_says(name):
    found = measured(name)
    expected = dict(zip(COLUMNS, ROWS[name], strict=True))
    for column, word in expected.items():
        value = getattr(found, column)
        if column == "gain" and word in GAINS:
            assert value == pytest.approx(GAINS[word], abs=1e-8), column
        elif column == "shift" or (column == "rank" and word.isdigit()):
            assert value == int(word), column
        elif column in ("zero", "fall"):
            assert value == MEANING.get(word, word) or (value, word) == (None, "-"), column
        elif word != "*":
            assert value is MEANING[word] or value == MEANING[word], column
    (move,) = (move for move, names in MOVES.items() if name in names.split())
    assert found.move == move
    if found.shift == 1:
        assert found.leak < 1e-9
    else:
        assert found.leak > 1e-3


def test_a_move_is_one_of_ten_words_and_the_figure_has_a_colour_for_each():
    written = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(Properties.move.fget))))
    returned = [n.value for n in written if isinstance(n, ast.Return)]
    words = {n.value for r in returned for n in _ends(r) if isinstance(n, ast.Constant)}
    assert words == {*MOVES, "other"} == {*algebra.MOVES} and len(words) == 10
    assert of(lambda c, D, i, j: np.tanh(c) * (1 + 0.1 * i)).move == "other"
    assert of(lambda c, D, i, j: np.tanh(c) * (1 + 0.1 * D)).move == "turn after a nonlinearity"


def _ends(node):
    """Branches of a conditional expression."""
    if isinstance(node, ast.IfExp):
        return [*_ends(node.body), *_ends(node.orelse)]
    return [node]


def test_the_table_is_of_all_schemes():
    assert set(ROWS) == set(SCHEMES) == set(" ".join(MOVES.values()).split())
    assert set(every_encoding(128)) <= set(SCHEMES)


@pytest.mark.parametrize("name", ["none", "sinusoidal", "rope", "shaw", "alibi", "xpos", "pope"])
@pytest.mark.parametrize("seed", [1, 2])
def test_contents_do_not_change_the_verdicts(name, seed):
    assert measured(name, seed=seed)._replace(leak=0) == measured(name)._replace(leak=0)


@pytest.mark.parametrize("width", [2, 6])
def test_the_width_is_free(width):
    found = properties(score_function(encodings.Rope(base=BASE), width), width)
    assert (found.rank, found.gain, found.move) == (width, 1.0, "turn")


# ---- each measure alone --------------------------------------------------------------------------


def of(f) -> Properties:
    """Properties of f(c, D, i, j): contents q k^T (L, S), distances, and positions beside them."""
    return properties(lambda q, k, i, j: f(q @ k.T, i[:, None] - j, i[:, None], j) + 0.0)


def wave(omega, distance=lambda D: D):
    """RoPE with one frequency for each pair of components, by complex numbers."""

    def score(q, k, i, j):
        q, k = q[:, ::2] + 1j * q[:, 1::2], k[:, ::2] + 1j * k[:, 1::2]
        D = distance(i[:, None] - j)[..., None]
        return ((q[:, None] * np.conj(k) * np.exp(1j * D * omega)).sum(-1) / math.sqrt(8)).real

    return score


OMEGA = np.array((1, 0.3, 0.1, 0.03))


def test_softmax_is_not_of_pairs():
    def soft(q, k, i, j):
        s = q @ k.T
        return s - np.log(np.exp(s).sum(-1, keepdims=True))

    assert not properties(soft).pairwise
    assert properties(lambda q, k, i, j: q @ k.T).pairwise


def test_places_counted_from_the_mean_are_not_of_pairs():
    def centred(q, k, i, j):
        return wave(OMEGA)(q, k, i - i.mean(), j - j.mean())

    assert not properties(centred).pairwise


@pytest.mark.parametrize("period", [5, 7, 8, 40, 200])
def test_a_period_is_no_end(period):
    assert of(lambda c, D, i, j: c + np.sin(2 * np.pi * D / period)).range == "free"


def test_the_future_may_be_masked():
    def causal(q, k, i, j):
        return np.where(j <= i[:, None], q @ k.T / math.sqrt(8), -np.inf)

    found = properties(causal)
    assert (found.pairwise, found.shift, found.bilinear, found.gain) == (True, 1, True, 1.0)
    assert found.mirror is found.exchange is None
    assert found.rank == 1


@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.5])
def test_a_leak_is_found_and_its_size_told(epsilon):
    found = of(lambda c, D, i, j: 1.0 * D + epsilon * i + 0 * c)
    assert found.shift == 0
    largest = 47 + epsilon * (47 + 40)  # D = 47 at i = 47, moved by 40
    assert found.leak == pytest.approx(40 * epsilon / largest, rel=1e-6)


def test_a_leak_that_begins_far_away_is_found():
    assert of(lambda c, D, i, j: c + np.maximum(i - 60, 0)).shift == 0
    assert of(lambda c, D, i, j: c + np.maximum(i - 60, 0)).leak > 0.1


@pytest.mark.parametrize("period", [2, 3, 7, 48])
def test_a_period_is_found(period):
    assert of(lambda c, D, i, j: c + (i % period == 0)).shift == period


def test_a_period_above_48_is_none():
    assert of(lambda c, D, i, j: c + (i % 49 == 0)).shift == 0


def test_bias_is_a_number_beside_the_content():
    assert of(lambda c, D, i, j: c - D).bias
    assert not of(lambda c, D, i, j: c * (1 + 0.001 * D)).bias
    assert of(lambda c, D, i, j: c).move == "none"


def test_bilinear_is_linear_in_both():
    def norm(x):
        return np.sqrt((x**2).sum(-1))

    assert properties(lambda q, k, i, j: np.outer(q[:, 0] * i, k[:, 1])).bilinear
    assert not properties(lambda q, k, i, j: np.outer(q[:, 0], norm(k))).bilinear
    assert not properties(lambda q, k, i, j: np.outer(norm(q), k[:, 0])).bilinear
    assert not properties(lambda q, k, i, j: q @ k.T * norm(k)).bilinear
    assert not properties(lambda q, k, i, j: q @ k.T * norm(q)[:, None]).bilinear


def test_terms_of_q_and_k_alone_leave_an_expansion():
    def terms(q, k, i, j, content=lambda c: c):
        D = i[:, None] - j
        return content(q @ k.T) + q[:, :1] * D + k[:, 1] - D

    assert properties(terms).expansion
    assert not properties(lambda *a: terms(*a, content=abs)).expansion


def test_what_is_left_without_content():
    assert of(lambda c, D, i, j: c).zero == "0"
    assert of(lambda c, D, i, j: c + D).zero == "Toeplitz"
    assert of(lambda c, D, i, j: c + D + 1e-6 * i).zero == "not Toeplitz"


def test_gain_is_one_number_for_all_directions_and_places():
    def faded(q, k, i, j):
        return wave(OMEGA)(q, k, i, j) * 0.99 ** (i[:, None] - j)

    assert properties(wave(OMEGA)).gain == 1
    assert properties(lambda *a: 1.5 * wave(OMEGA)(*a)).gain == 1.5
    assert properties(faded).gain is None
    assert properties(faded).group
    assert properties(lambda q, k, i, j: np.outer(q[:, 0], k[:, 0]) + q @ k.T).gain is None


def test_a_group_holds_beyond_every_window():
    assert properties(wave(OMEGA)).group
    assert not properties(wave(OMEGA, lambda D: np.minimum(D, 90))).group
    assert not properties(wave(OMEGA, lambda D: D * D)).group


def test_two_symmetries():
    A = np.triu(np.ones((8, 8)))
    assert of(lambda c, D, i, j: c * abs(D)).exchange
    assert not properties(lambda q, k, i, j: q @ A @ k.T).exchange
    assert properties(lambda q, k, i, j: q @ A @ k.T * (i[:, None] - j) ** 2).mirror
    assert not of(lambda c, D, i, j: c * D).mirror


def test_falling_is_at_every_step():
    assert of(lambda c, D, i, j: c - 0.01 * D).fall == "falls"
    assert of(lambda c, D, i, j: c - np.minimum(D, 80)).fall == "falls"
    assert of(lambda c, D, i, j: c).fall == "flat"
    assert of(lambda c, D, i, j: c - D % 90).fall == "rises"


def test_far_away():
    assert of(lambda c, D, i, j: c - np.log1p(abs(D))).range == "free"
    assert of(lambda c, D, i, j: c - np.minimum(D, 190)).range == "saturated"
    assert of(lambda c, D, i, j: c).range == "constant"
    table = np.linspace(0, 1, 300)
    assert of(lambda c, D, i, j: c + table[D]).range == "finite"


def test_bounded_tells_a_logarithm_from_a_limit():
    assert not of(lambda c, D, i, j: c - np.log1p(abs(D))).bounded
    assert of(lambda c, D, i, j: c - np.tanh(D)).bounded
    near = 63 / 100  # the largest near by, at D = 63
    for far, expected in ((1.4, True), (1.6, False)):
        grown = of(lambda c, D, i, j, far=far: 0 * c + np.where(D < 99, D / 100, far * near))
        assert grown.bounded is expected
    assert properties(wave(OMEGA)).bounded


def test_old_rows_that_change_are_seen_whatever_the_trained_length():
    for L0 in (24, 50, 95):

        def stretched(q, k, i, j, L0=L0):
            return q @ k.T / max(i.max() + 1, L0)

        assert not properties(stretched).prefix
    assert properties(lambda q, k, i, j: q @ k.T / (1.0 + i[:, None])).prefix


@pytest.mark.parametrize("turning", [0, 1, 2, 3, 4])
def test_rank_counts_the_pairs_that_turn(turning):
    omega = [1, 0.5, 0.25, 0.125][:turning] + [0] * (4 - turning)
    assert properties(wave(np.array(omega))).rank == 2 * turning + (turning < 4)


def test_points_move_by_a_vector():
    assert properties(SCHEMES["axial"].scores, axes=2).shift == 1

    def first_axis(q, k, i, j):
        return q @ k.T + (i[:, :1] - j[:, 0]) * (1 + i[:, 1:])

    assert properties(first_axis, axes=2).shift == 0


def test_turns_that_do_not_commute_are_not_relative():
    """On a plane: exp(pA + rB) with skew A and B that do not commute."""
    rng = np.random.default_rng(0)
    A, B = (M - M.T for M in 0.1 * rng.standard_normal((2, 8, 8)))

    def turned(x, p):
        values, vectors = np.linalg.eigh(1j * (p[:, :1, None] * A + p[:, 1:, None] * B))
        G = vectors @ (np.exp(-1j * values)[..., None] * np.swapaxes(vectors.conj(), -1, -2))
        return (G.real @ x[..., None])[..., 0]

    found = properties(lambda q, k, i, j: turned(q, i) @ turned(k, j).T / math.sqrt(8), axes=2)
    assert (found.shift, found.gain, found.group) == (0, 1.0, False)


# ---- planted faults ------------------------------------------------------------------------------


def turned(sign=1, leak=0.0, layout="interleaved"):
    def scores(q, k, i, j):
        theta = pe_numpy.rope_frequencies(8, BASE)
        q = pe_numpy.rope(q, i + leak * i**2, theta)
        return q @ pe_numpy.rope(k, sign * j, theta, layout).T / math.sqrt(8)

    return scores


def test_planted_faults_are_seen():
    right = properties(turned())
    assert right.move == "turn"
    assert properties(turned(sign=-1)).shift == 0  # turns by i + j
    assert properties(turned(leak=1e-5)).shift == 0
    assert properties(turned(layout="half")).shift == 0  # two layouts in one score

    def renumbered(q, k, i, j):  # a cache that counts its keys, whatever their positions
        return turned()(q, k, i, np.arange(len(j)))

    assert properties(renumbered).shift == 0

    def one_pair_forgotten(q, k, i, j):
        theta = pe_numpy.rope_frequencies(8, BASE)[:3]
        return pe_numpy.rope(q, i, theta) @ pe_numpy.rope(k, j, theta).T / math.sqrt(8)

    assert properties(one_pair_forgotten).rank == 7

    def without_root(q, k, i, j):
        return turned()(q, k, i, j) * math.sqrt(8)

    assert properties(without_root).gain == pytest.approx(math.sqrt(8))


# ---- bad input -----------------------------------------------------------------------------------


def test_a_bare_function_is_asked_for():
    for wrong in (encodings.Rope, encodings.Rope(), "rope", None):
        with pytest.raises(ValueError, match="properties: scores must be a function"):
            properties(wrong)


@pytest.mark.parametrize("change", [np.diagonal, np.float32, np.complex128])
def test_no_scores_are_refused(change):
    with pytest.raises(ValueError, match=r"scores must be float64 of shape \(L, S\)"):
        properties(lambda q, k, i, j: change(q @ k.T))


def test_an_error_of_the_function_is_passed_on():
    with pytest.raises(ValueError, match="learned: a table of 4 rows"):
        properties(lambda q, k, i, j: pe_numpy.learned(np.zeros((4, 8)), i))


@pytest.mark.parametrize("options", [{"width": 0}, {"axes": 0}, {"width": 2.5}])
def test_sizes_are_checked(options):
    with pytest.raises(ValueError, match=r"properties: (width|axes) must be"):
        properties(lambda q, k, i, j: q @ k.T, **options)


def test_a_function_may_change_what_it_gets():
    def careless(q, k, i, j):
        scores = q @ k.T
        q *= 0
        k *= 0
        i *= 0
        return scores

    assert properties(careless).move == "none"


# ---- bare functions of encodings -----------------------------------------------------------------


def test_a_bare_function_is_the_places_one_after_the_other():
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((2, 3, 8))
    i, j = np.array([5, 9, 30]), np.array([0, 4, 5])
    theta = pe_numpy.rope_frequencies(8, BASE)
    expected = [
        [
            pe_numpy.rope(a[None], [m], theta)[0] @ pe_numpy.rope(b[None], [n], theta)[0] / 8**0.5
            for b, n in zip(k, j, strict=True)
        ]
        for a, m in zip(q, i, strict=True)
    ]
    assert_allclose(score_function(encodings.Rope(base=BASE))(q, k, i, j), expected, atol=1e-12)
    expected = q @ k.T / 8**0.5 - np.abs(i[:, None] - j) / 256  # the slope of one head is 2^-8
    assert_allclose(score_function(encodings.Alibi())(q, k, i, j), expected, atol=1e-12)


def test_the_sequence_ends_with_its_last_query():
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((2, 1, 8))
    asked = SCHEMES["dynamic_ntk"].scores(q, k, np.array([99]), np.array([7]))
    theta = pe_numpy.dynamic_ntk_scaling(8, 100, 32, 4.0, BASE)
    turned = [pe_numpy.rope(x, [p], theta) for x, p in ((q, 99), (k, 7))]
    assert_allclose(asked, turned[0] @ turned[1].T / 8**0.5, atol=1e-12)


def test_what_begins_as_zeros_is_drawn():
    q = k = np.ones((4, 8))
    places = np.arange(4)
    counted = score_function(encodings.Cope(9))(q, k, places, places)
    assert not np.allclose(counted, q @ k.T / 8**0.5)


def test_bases_are_small_and_seeds_change_the_tables():
    assert all(getattr(s.encoding, "base", BASE) == BASE for s in SCHEMES.values())
    x, places = np.ones((3, 8)), np.arange(3)
    one, other = (score_function(encodings.T5(), seed=n)(x, x, places, places) for n in (0, 1))
    assert not np.allclose(one, other)


def test_the_width_of_a_bare_function_is_checked():
    for wrong in (encodings.Rope, "rope"):
        with pytest.raises(ValueError, match="score_function: encoding must be an Encoding"):
            score_function(wrong)
    with pytest.raises(ValueError, match="score_function: width"):
        score_function(encodings.Rope(), 0)


def test_each_scaling_of_the_package_is_a_scheme():
    scalings = {n.removesuffix("_scaling") for n in pe_numpy.__all__ if n.endswith("_scaling")}
    assert scalings <= set(SCHEMES)
    assert replace(encodings.Rope(), base=BASE) == SCHEMES["rope"].encoding
