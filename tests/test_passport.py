"""The passport of a score: right words for what is known, wrong variants, and what may be typed."""

import functools
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pe_numpy.book import passport as module
from pe_numpy.book.passport import (
    EXAMPLES,
    TESTS,
    Held,
    held,
    kept,
    measured,
    nearest,
    of_pairs,
    opposite,
    passport,
    unlike,
)
from pe_numpy.judging.cache import cache_properties
from pe_numpy.judging.properties import properties
from pe_numpy.judging.schemes import every_scheme

SCHEMES = every_scheme()
NAMES = list(kept())
ROPE = EXAMPLES["RoPE"].replace("/ 8**0.5", "/ 8**0.5 + BIAS")
PLAIN = "def score(q, k, i, j): return q @ k / 8**0.5"
KEYS = "keys as they are written"
APART, INSIDE = f"{KEYS}, and positions", "keys, their positions inside"
TABLE = "import numpy as np\nt = np.random.default_rng(0).standard_normal((ROWS, 8))\n"


@functools.cache
def found_of():
    """What the detector finds, once for all tests."""
    return measured()


def words(text):
    """The short answers, in their order, and the nearest scheme."""
    found = passport(text)
    assert "error" not in found, found
    return [*(word for word, _ in found["rows"].values()), found["like"][0]["name"]]


# ---- what is known ------------------------------------------------------------------------------

KNOWN = {
    "no position": ["yes", "neither", KEYS, "always the same", "none"],
    "RoPE": ["yes", "rotates", "rotated keys", "still changes", "rope"],
    "RoPE with a wrong sign": ["no", "rotates", "rotated keys", "still changes", "rope"],
    "ReRoPE: a distance that ends at 16": ["yes", "rotates", APART, "no longer changes", "rerope"],
    "ALiBi": ["yes", "adds", APART, "still changes", "alibi"],
    "sinusoids, added to q and k": ["no", "adds", INSIDE, "still changes", "sinusoidal"],
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_example_has_its_passport(name):
    assert words(EXAMPLES[name]) == KNOWN[name]


OTHERS = {
    "a decay": (
        f"{PLAIN} * 0.97 ** (i - j)",
        ["yes", "multiplies", INSIDE, "still changes", "xpos"],
    ),
    "a temperature": (
        f"{PLAIN} * (1 + i)",
        ["no", "multiplies", KEYS, "still changes", "multiplicative"],
    ),
    "a table of distances": (
        TABLE.replace("ROWS", "9") + f"{PLAIN} + t[min(max(i - j, 0), 8), 0]",
        ["yes", "adds", APART, "no longer changes", "t5"],
    ),
    "a table of distances on both sides": (
        TABLE.replace("ROWS", "9") + f"{PLAIN} + t[min(abs(i - j), 8), 0]",
        ["yes", "adds", APART, "no longer changes", "t5"],
    ),
    "vectors of distances": (
        TABLE.replace("ROWS", "9")
        + "def score(q, k, i, j): return q @ (k + t[min(max(i - j, 0), 8)])",
        ["yes", "adds", APART, "no longer changes", "shaw"],
    ),
    "a table that ends": (
        TABLE.replace("ROWS", "100") + "def score(q, k, i, j): return (q + t[i]) @ (k + t[j])",
        ["no", "adds", INSIDE, "no score", "learned"],
    ),
    "a table that ends too early to be told": (
        TABLE.replace("ROWS", "64") + "def score(q, k, i, j): return (q + t[i]) @ (k + t[j])",
        ["unknown", "adds", INSIDE, "no score", "learned"],
    ),
    "groups of two": (
        f"{PLAIN} - abs(i // 2 - j // 2)",
        ["in steps of 2", "adds", APART, "still changes", "alibi"],
    ),
    "only a bias": (
        "def score(q, k, i, j): return abs(j - i) / -4",
        ["yes", "adds", "no keys", "still changes", "alibi"],
    ),
    "one number": (
        "def score(q, k, i, j): return 1",
        ["yes", "neither", "no keys", "always the same", "none"],
    ),
    "no position, not linear": (
        "def score(q, k, i, j): return np.tanh(q @ k)",
        ["yes", "neither", KEYS, "always the same", "none"],
    ),
    "not linear, and not relative": (
        "def score(q, k, i, j): return np.tanh(q @ k) * (1 + 0.1 * i)",
        ["no", "neither", KEYS, "still changes", "sinusoidal"],
    ),
    "a masked future": (
        f"{PLAIN} if j <= i else -np.inf",
        ["yes", "neither", KEYS, "always the same", "none"],
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_functions_have_theirs(name):
    text, expected = OTHERS[name]
    assert words(text) == expected


def test_a_leak_and_a_wrong_sign_are_told_apart():
    right = passport(ROPE.replace("BIAS", "0"))
    leak = passport(ROPE.replace("BIAS", "1e-6 * j"))
    sign = passport(EXAMPLES["RoPE with a wrong sign"])
    assert [one["rows"]["Relative"][0] for one in (right, leak, sign)] == ["yes", "almost", "no"]
    assert right["notes"] == [] and "used by itself" in leak["notes"][0]
    assert "i + j" in sign["notes"][0] and "139%" in sign["rows"]["Relative"][1]
    assert passport(EXAMPLES["sinusoids, added to q and k"])["notes"] == []
    assert right["unlike"] == [] and "whether it is relative" in sign["unlike"]


def test_what_more_is_said():
    alibi = passport(EXAMPLES["ALiBi"])["rows"]
    assert "Keys of 10 components" in alibi["A cache must hold"][1]
    assert alibi["Far away"][1].endswith("near by. On average it falls at every step.")
    by_key = passport(f"{PLAIN} + 0.1 * j")["rows"]
    assert "Longer keys" in by_key["A cache must hold"][1]
    no_root = passport("def score(q, k, i, j): return q @ k")
    assert no_root["notes"] == ["Scores are √8 times as large as in the book: 1/√K is missing."]
    assert passport(PLAIN)["notes"] == []
    assert (
        "nothing but a bias" in passport(OTHERS["only a bias"][0])["rows"]["A cache must hold"][1]
    )
    assert "all keys are alike" in passport(OTHERS["one number"][0])["rows"]["A cache must hold"][1]
    decay = passport(OTHERS["a decay"][0])["rows"]["Rotates or adds"][1]
    assert "more than rotate" in decay


def test_nothing_of_one_call_reaches_another():
    careless = (
        "def score(q, k, i, j):\n    print(q)\n    s = q @ k / 8**0.5\n    q *= 0\n    k *= 0\n"
    )
    once = passport(careless + "    return s")
    assert once == passport(PLAIN)


# ---- the schemes of chapter 70 -------------------------------------------------------------------


def test_the_kept_table_is_what_is_measured():
    """If it is not: `make cards`."""
    assert list(found_of()) == NAMES
    for name, found in found_of().items():
        for test in TESTS:
            value, here = getattr(found, test), kept()[name][test]
            if test == "gain" and value:
                assert here == pytest.approx(value, abs=1e-5)
            elif test != "rank" or found.move == "turn":
                assert here == value, (name, test)


def test_all_schemes_are_there_that_a_function_of_pairs_can_be():
    left_out = set(SCHEMES) - set(found_of())
    assert left_out == {
        *("forgetting", "cope", "dynamic_ntk", "longrope", "rotary_values"),
        *("axial", "mixed", "mrope"),
    }


@pytest.mark.parametrize("name", NAMES)
def test_each_scheme_is_the_same_pair_by_pair_and_resembles_itself(name):
    scores = SCHEMES[name].scores
    pairs = of_pairs(lambda q, k, i, j: scores(*(np.array([x]) for x in (q, k, i, j)))[0, 0])
    q, k = np.random.default_rng(1).standard_normal((2, 6, 8))
    i, j = np.array([40, 7, 19, 33, 9, 47]), np.array([0, 5, 2, 3, 6])
    assert_allclose(pairs(q, k[:5], i, j), scores(q, k[:5], i, j), rtol=0, atol=1e-12)
    assert_allclose(pairs(q, k, i, i), np.where(i <= i[:, None], scores(q, k, i, i), 0), atol=1e-12)
    names = nearest(found_of()[name])
    assert name in names and all(unlike(found_of()[name], kept()[one]) == [] for one in names)


def test_only_what_no_score_tells_apart_is_as_near():
    names = {frozenset(nearest(found)) for found in found_of().values()}
    together = sorted(sorted(one) for one in names if len(one) > 1)
    assert together == [
        ["alibi", "kerple"],
        ["deberta", "nezha", "shaw"],
        ["floater", "recurrent", "sinusoidal"],
        ["hierarchical", "learned"],
        ["linear", "llama3", "ntk", "rope"],
        ["multiplicative", "temperature"],
        ["partial_rope", "proportional_rope"],
    ]


CACHE = {  # what `cache_properties` says of keys, and whether positions are beside them
    ("plain", False): KEYS,
    ("plain", True): APART,
    ("coded", False): INSIDE,
    ("turned", False): "rotated keys",
}


@pytest.mark.parametrize("name", [name for name in NAMES if SCHEMES[name].encoding])
def test_a_cache_must_hold_what_the_measured_cache_holds(name):
    cache = cache_properties(SCHEMES[name].encoding)
    expected = CACHE[cache.keys, cache.positions]
    found, said = found_of()[name], held(SCHEMES[name].scores)
    word, sentence = module.holds(found, said)
    if name == "xpos":  # it fades as well: "rotated" says too little
        assert (word, expected) == (INSIDE, "rotated keys")
    elif name == "pope":  # its keys are twice as wide
        assert word == APART and "Keys of 16 components" in sentence
    else:
        assert word == expected


# ---- each measure alone --------------------------------------------------------------------------


def of(f):
    return lambda q, k, i, j: f(q @ k.T, i[:, None] - j, i[:, None], j) + 0.0 * (i[:, None] + j)


def test_what_a_score_reads_of_a_key():
    assert held(of(lambda c, D, i, j: c)) == Held(True, False, 8)
    assert held(of(lambda c, D, i, j: c * i)) == Held(True, False, 8)
    assert held(of(lambda c, D, i, j: c * (1 + j)))[:2] == (True, True)
    assert held(of(lambda c, D, i, j: 0 * c + i))[:2] == (False, False)
    assert held(of(lambda c, D, i, j: 0 * c - D))[:2] == (False, True)
    assert held(of(lambda c, D, i, j: c + (D < 2)))[:2] == (True, True)  # near by alone


def test_a_key_that_can_be_prepared():
    assert held(of(lambda c, D, i, j: c - D)).components == 10
    assert held(of(lambda c, D, i, j: c + D**2)).components == 11
    assert held(of(lambda c, D, i, j: c * 0.9**D)).components == 8
    assert held(of(lambda c, D, i, j: c + np.log1p(np.abs(D)))).components is None
    assert held(of(lambda c, D, i, j: c - np.minimum(np.abs(D), 3))).components is None
    assert held(of(lambda c, D, i, j: np.tanh(c))).components is None
    assert held(of(lambda c, D, i, j: 0 * c)).components == 0


def test_a_sum_of_positions():
    assert opposite(of(lambda c, D, i, j: c + np.cos(i + j)))
    assert not opposite(of(lambda c, D, i, j: c + np.cos(D)))
    assert not opposite(of(lambda c, D, i, j: c + np.cos(i)))


def test_a_pair_is_asked_for_once_and_the_future_of_a_text_not_at_all():
    asked = []
    scores = of_pairs(lambda q, k, i, j: asked.append((i, j)) or 1.0)
    x, at = np.zeros((3, 8)), np.arange(3)
    assert scores(x, x, at, at).tolist() == np.tri(3).tolist()
    assert asked == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert scores(x, x, at, at + 1).all() and len(asked) == 6 + 9
    assert all(type(i) is int and type(j) is int for i, j in asked)


def test_a_partial_rotation_and_a_gain_part_ties():
    rope = found_of()["rope"]
    assert nearest(rope._replace(rank=5)) == ["partial_rope", "proportional_rope"]
    assert nearest(rope._replace(gain=found_of()["yarn"].gain)) == ["yarn"]
    assert nearest(rope._replace(rank=7))[0] == "rope"
    assert properties(SCHEMES["rope"].scores) == rope


# ---- what is wrong is said -----------------------------------------------------------------------

LINE = "def score(q, k, i, j):\n    "
WRONG = {
    "def score(q, k, i, j) return 1": r"not Python: expected ':', in line 1: `def score\(q",
    "": "there is no function named score: begin with `def score",
    "score = 3": "there is no function named score",
    "def score(q, k): return q @ k": r"two positions, `def score.*; this is `score\(q, k\)`",
    "import nothing_at_all": "ModuleNotFoundError: No module.*in line 1: `import nothing_at_all`",
    "raise SystemExit": "^Python says SystemExit, in line 1: `raise SystemExit`$",
    LINE + "exit()": r"in line 2: `exit\(\)` \(at i = 0, j = 0\)",
    LINE + "return q[9]": r"IndexError: .*in line 2: `return q\[9\]` \(at i = 0, j = 0\)",
    LINE + "return np.sum(q, 7)": r"AxisError: .*in line 2: `return np.sum\(q, 7\)`",
    LINE + "return 1 / (i - 1)": r"ZeroDivisionError: .* \(at i = 1, j = 0\)",
    LINE + "return score(q, k, i, j)": "RecursionError",
    LINE + "return 10 ** 999": "OverflowError",
    LINE
    + "return q @ k / (i - j)": "at i = 0, j = 0.* A query sees its own key, so i - j can be 0",
    LINE + "return q @ k / np.linalg.norm(q)": "score gives nan .*Vectors of zeros",
    LINE + "return q @ k / np.linalg.norm(k)": "score gives nan .*Vectors of zeros",
    LINE + "return q @ k / np.linalg.norm(k) if q.any() else 0": "gives nan .*Vectors of zeros",
    LINE + "return q @ k if i - j < 9 else -np.inf": "gives -inf at i = 47, j = 3.* A mask is not",
    LINE + "q @ k": "it returns None: is a `return` missing",
    LINE + "return 'a'": "it returns a str: return a float",
    LINE + "return q * k": r"an array of shape \(8,\): `q @ k` is one number",
    LINE + "return 1j": "a complex number: take its real part",
    LINE + "return q[0] + 1j": "it returns a complex number: take its real part",
    LINE + "return np.random.rand()": "for the same input: draw random numbers and tables once",
    "n = []\n" + LINE + "n.append(1); return len(n)": "gives 1 and then 2 for the same input",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said(text):
    found = passport(text)
    assert list(found) == ["error"]
    assert re.search(WRONG[text], found["error"]), found["error"]


def test_a_function_is_no_text():
    with pytest.raises(ValueError, match=r"^passport: text .* got function.*getsource"):
        passport(lambda q, k, i, j: q @ k)


@pytest.mark.parametrize("given", ["np.array([[q @ k]])", "[q @ k]", "int(q @ k > 0)", "q @ k > 0"])
def test_one_number_may_be_in_a_box(given):
    assert words(LINE + f"return {given}")[0] == "yes"


def test_other_arguments_may_have_defaults():
    assert (
        words("def score(q, k, i, j, slope=0.5): return q @ k - slope * abs(i - j)")[4] == "alibi"
    )
    assert words("def score(*all): return all[0] @ all[1]")[4] == "none"
