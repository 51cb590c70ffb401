"""Cards say what is so: their code runs beside the schemes, their numbers are measured anew."""

import math
import re
from dataclasses import fields, replace

import cards as measure
import numpy as np
import pytest

import pe_numpy
from pe_numpy.__main__ import main
from pe_numpy.book import cards
from pe_numpy.book.census import census, users_of
from pe_numpy.contents import chapter_of, functions_of
from pe_numpy.judging.cache import cache_properties
from pe_numpy.judging.schemes import BASE, SCHEMES, every_scheme
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.encodings import Alibi, Deberta, Encoding, Learned, Rope, Shape, Shaw

L, K = 40, 8  # longer than the trained length of the scalings
JUDGED = every_scheme()
NAMES = list(SCHEMES)


def trained(encoding):
    """Numbers for all that a scheme learns, none of them 0."""
    rng, shape = np.random.default_rng(1), Shape(K, 1)
    params = {**encoding.shared(rng, shape), **encoding.layer(rng, shape)}
    return {
        n: np.where(p == 0, 0.3 * rng.standard_normal(np.shape(p)), p) for n, p in params.items()
    }


def surroundings(name, scheme):
    """What a card's code may name, and what the scheme itself makes of the same, by place."""
    rng = np.random.default_rng(2)
    encoding = scheme.encoding or Encoding()
    if hasattr(encoding, "base"):
        encoding = replace(encoding, base=10000.0)  # that of the functions, where none is given
    x, q, k, v = rng.standard_normal((4, L, K))
    i = j = np.arange(L)
    params, mask = trained(encoding), np.tri(L, dtype=bool)
    gates = encoding.gates(params, x[None])
    here = Context(i, mask=mask, gates=gates)
    own = encoding.scores(params, *encoding.turn(params, q[None, None], k[None, None], here), here)
    own = own[0, 0]
    if scheme.encoding is None:
        i = j = np.array([[n, n % 7, n % 5] for n in range(L)])[:, : scheme.axes].squeeze()
        own = scheme.scores(q, k, i, j)
    weights = pe_numpy.softmax(np.where(mask, own, -np.inf))
    expected = {
        "1": encoding.embed(params, x[None], i)[0] if scheme.encoding else None,
        "2": own,
        "3": own,
        "4": encoding.mix(params, weights[None, None], v[None, None], here)[0, 0]
        if scheme.encoding
        else None,
    }
    theta = pe_numpy.rope_frequencies(K)
    flow = np.zeros((K, K))
    for c, speed in enumerate(theta):
        flow[2 * c, 2 * c + 1], flow[2 * c + 1, 2 * c] = speed, -speed
    names = {n: getattr(pe_numpy, n) for n in pe_numpy.__all__}
    names |= dict(np=np, sqrt=math.sqrt, rng=np.random.default_rng(0), H=1, D=K, K=K, L=L, S=L)
    names |= dict(x=x, q=q, k=k, v=v, i=i, j=j, mask=mask, weights=weights, A=flow)
    names |= dict(scores=q @ k.T / math.sqrt(K), base=BASE, s=4.0, L0=32)
    names |= dict(short=np.ones(K // 2), long=np.linspace(1, 4, K // 2))
    names |= params
    names |= {f.name: getattr(encoding, f.name) for f in fields(encoding) if f.name != "base"}
    if name == "fire":
        own = {**params, "b2": np.zeros(1), "L": abs(params["times"]) * encoding.threshold}
        names["params"] = own
    if name == "kerple":
        names |= dict(p=np.exp(params["log_p"]), a=np.exp(params["log_a"]))
    if gates is not None:
        names["gates"] = np.exp(gates[0])
    return names, expected, mask


def computes_the_same(name, scheme, places):
    """The code of a row computes what the scheme does at each of its places."""
    names, expected, mask = surroundings(name, scheme)
    assert re.search(rf"\b{SCHEMES[name].function}\(", SCHEMES[name].code)
    places = places.replace("0", "4").split("+")
    places = [p for p in places if not (p == "2" and "3" in places)]
    for line in SCHEMES[name].code.split("\n"):
        if re.match(r"[\w, ]+ = ", line):
            exec(line, names)
            continue
        place, result = places.pop(0), np.asarray(eval(line, names))
        seen = mask if place in "23" else np.ones(result.shape[-2:], bool)
        if name == "none":
            expected["4"] = pe_numpy.attention(names["q"], names["k"], names["v"])[0]
        got = result.reshape(result.shape[-2:])
        assert np.allclose(got[seen], expected[place][seen], rtol=0, atol=1e-12), line
    assert not places


def test_there_is_a_card_for_each_scheme_and_no_other():
    assert NAMES == list(JUDGED) == list(cards.measured())


@pytest.mark.parametrize("name", NAMES)
def test_the_code_of_a_card_computes_what_the_scheme_does_at_each_of_its_places(name):
    computes_the_same(name, JUDGED[name], cards.measured()[name]["place"])


@pytest.mark.parametrize("name", NAMES)
def test_the_table_is_what_is_measured_anew(name):
    row, encoding = cards.measured()[name], measure.encoding_of(name)
    assert row["place"] == measure.place(encoding)
    assert row["trained"] == measure.trained(name)
    assert row["cache"] == cache_properties(measure.encoding_of(name, 128)).holds


@pytest.mark.parametrize("name", ["rope", "shaw", "dynamic_ntk", "mixed"])
def test_what_takes_longer_is_measured_anew_for_some(name):
    assert {**measure.row(name), "beyond L0": measure.longer()[name]} == {
        "name": name,
        **cards.measured()[name],
    }


def test_the_study_is_read_as_it_is():
    assert {name: row["beyond L0"] for name, row in cards.measured().items()} == measure.longer()


def test_operations_are_counted_as_by_hand():
    a, b = (np.ones(shape).view(measure.Counted) for shape in ((3, 5), (5, 7)))
    for compute, count in (
        (lambda: a + 1, 15),
        (lambda: np.exp(a), 15),
        (lambda: a @ b, 3 * 7 * 2 * 5),
        (lambda: a.sum(axis=0), 15),
        (lambda: np.cumsum(a, axis=1), 15),
        (lambda: a.view(float) * 1j, 6 * 15),
        (lambda: a[:2], 0),
    ):
        measure.Counted.total = 0
        compute()
        assert measure.Counted.total == count
    plain = measure.operations(Encoding(), 20)
    assert plain == 8 * 20 * 20 * 4 * 64 + 8 * 20 * 64  # two products; the scale, on the queries
    rope = measure.operations(Rope(), 20) - plain
    assert 2 * 8 * 20 * 32 * 6 <= rope <= 2 * 8 * 20 * 32 * 6 + 2 * 20 * 32 * 10  # turns; angles
    assert measure.growth(measure.operations, Alibi())[0] == 1
    once = measure.growth(measure.operations, Deberta(16))[2]
    assert round(once, -3) == round(2 * 2 * 32 * 512 * 512, -3)  # two projections of 32 vectors


def test_trained_numbers_are_counted_as_by_hand():
    assert measure.count(Learned(512)) == 512 * 512
    assert measure.count(Shaw(16)) == 6 * 2 * 33 * 64
    assert "524,288 for twice the length" in measure.trained("learned")


def test_the_place_is_one_that_is_measured_and_the_chapter_shows_the_function():
    for name, row in cards.measured().items():
        function, stem = SCHEMES[name].function, SCHEMES[name].chapter
        assert str(SCHEMES[name].place) in row["place"].split("+"), name
        chapter = int(stem[:2])
        source = (measure.ROOT / "notebooks" / f"{stem}.py").read_text("utf-8")
        assert function in functions_of(chapter) or f"{function}(" in source, name


@pytest.mark.parametrize("name", NAMES)
def test_a_card_is_a_small_page(name):
    lines = cards.card(name).split("\n")
    assert len(lines) <= 26 and max(map(len, lines)) <= 80
    text = "\n".join(lines)
    for label in (
        "place",
        "what",
        "equation",
        "code",
        "kind",
        "trained",
        "cost",
        "memory",
        "cache",
    ):
        assert re.search(rf"^{label} ", text, re.M), label
    for label in ("beyond L0", "used by", "trap"):
        assert re.search(rf"^{label} ", text, re.M), label


def test_a_card_names_its_own_equation_convention_users_and_first_trap():
    for name, label, text in (
        (
            "sinusoidal",
            "equation",
            "PE(pos, 2i)   = sin(pos / 10000^(2i/d_model))\nPE(pos, 2i+1) = c",
        ),
        ("learned", "equation", "Look every position up in a trained table: p_k = E_k"),
        ("multiplicative", "what", "x times 1 + PE(pos), so that"),
        (
            "yarn",
            "equation",
            "(1 - g_i) theta_i / s + g_i theta_i; every score times (0.1 ln s + 1)^2\ng_i a ramp",
        ),
        ("linear", "equation", "theta_i / s"),
        ("ntk", "equation", "b'^(-2i/d),"),
        ("dynamic_ntk", "equation", "NTK-aware with max"),
        ("proportional_rope", "equation", "theta_i for i < floor(p d/2)"),
        ("yarn", "used by", "gpt-oss, Ministral 3; beside another scheme DeepSeek-V2, DeepSeek-V3"),
        ("rotary_values", "used by", "beside another scheme DeepSeek-V4"),
        ("leaky_rerope", "equation", "delta if delta < w, else w + (delta - w) / s"),
        ("dual_chunk", "equation", "a - j mod c, with c = size - local"),
        ("mixed", "what", "Omega with which the training of mixed RoPE begins"),
        ("mixed", "equation", "angles = p @ Omega"),
        ("llama3", "equation", "(1 - g_i) theta_i / s + g_i theta_i\ng_i a ramp in the turns"),
        ("temperature", "equation", "Multiply queries with this, by steps: 1 + scale"),
        ("partial_rope", "what", "RoPE of the first half of the components, as if"),
        ("linear", "what", "Interpolate positions: every pair turns `factor` times slower"),
        ("alibi_signed", "what", "ALiBi with its sign: the future is raised"),
        (
            "shaw",
            "convention",
            "distance = i - j, so a pair reads row clip(i - j, -m, m) + m. Row 0",
        ),
        ("rope", "trap", "turned the other way. A pair (a, b) becomes"),
        ("kerple", "used by", "no model of the census"),
        ("t5", "used by", ", ".join(users_of("t5"))),
    ):
        assert cards.facts(name)[label].startswith(text), (name, label)
    shown, more = cards.facts("rope")["used by"].split(" and ")
    assert len(shown.split(", ")) + int(more.split()[0]) == len(users_of("rope"))
    beside = {model for models in cards.BESIDE.values() for model in models}
    assert beside <= {row.model for row in census() if row.kind != "scheme"}
    assert not any(set(cards.BESIDE[name]) & set(users_of(name)) for name in cards.BESIDE)
    assert "convention" not in cards.facts("temperature")  # its module's is of other things
    assert cards.title("rope") == "RoPE (rope), chapter 40"
    assert cards.title("linear") == "linear, chapter 50"


def test_each_chapter_leads_to_the_cards_of_its_schemes():
    for name in NAMES:
        source = (measure.ROOT / "notebooks" / f"{SCHEMES[name].chapter}.py").read_text("utf-8")
        assert f"](CARDS.md#{name})" in source.rpartition("## Further reading")[2], name


def test_the_page_has_every_card():
    page = measure.PAGE.read_text("utf-8")
    assert page == measure.page()
    assert re.findall(r"^## (\w+)$", page, re.M) == NAMES


def test_the_command_prints_cards(capsys):
    assert main(["card", "rope", "t5"]) == 0
    out = capsys.readouterr().out
    assert out == f"{cards.card('rope')}\n\n{cards.card('t5')}\n"


@pytest.mark.parametrize("name", sorted({*pe_numpy.__all__} - {*NAMES}))
def test_a_function_is_not_a_scheme_and_what_to_try_works(name, capsys):
    assert main(["card", name]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"python -m pe_numpy: card: {name} is a function, not a scheme; try ")
    assert said.endswith(f"chapter {chapter_of(name)}\n") and said.count("\n") == 1
    ways = [way.split() for way in re.findall("`python -m pe_numpy (.*?)`", said)]
    assert [main(way) for way in ways] == [0] * len(ways)
    schemes = [key for key in NAMES if SCHEMES[key].function == name and key != "none"]
    assert [way[1:] for way in ways if way[0] == "card"] == [schemes] * bool(schemes)
    assert (["copy", name] in ways) == (name not in ("check", "load_model"))


@pytest.mark.parametrize(("word", "hint"), [("roep", "rope"), ("FoX", "forgetting"), ("T5", "t5")])
def test_an_unknown_name_gets_the_nearest(word, hint, capsys):
    assert main(["card", word]) == 2
    assert f"did you mean {hint}?" in capsys.readouterr().err
    with pytest.raises(ValueError, match="card: there is no scheme 'qqqqqq'; there are none, sin"):
        cards.card("qqqqqq")
