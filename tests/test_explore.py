"""Figures that answer the hand: each state against the functions it is about, and the markup."""

import base64
import io
import itertools
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import pe_numpy as pe
from pe_numpy.book.explore import FIGURES, from_npy, state
from pe_numpy.book.explore.figure import filled, number, rows, whole


def of(name, **settings):
    return state(name, {**FIGURES[name].start(), **settings})


def numbers(text):
    return np.array([float(word) for word in text.split(",")])


def angle(transform):
    """Of a hand, in radians, counter-clockwise."""
    return -np.radians(float(re.fullmatch(r"rotate\((.*)\)", transform)[1]))


@pytest.mark.parametrize("distance", [-300, -7, -1, 0, 1, 6, 7, 8, 12, 90, 91, 128, 5000])
def test_one_distance_is_read_as_each_scheme_reads_it(distance):
    shown = of("one-distance", distance=str(distance), heads="12")
    assert shown["t5-encoder"] == f"bucket {pe.t5_bucket(distance)}"
    decoder = int(pe.t5_bucket(distance, bidirectional=False))
    assert shown["t5-decoder"].split(",")[0] == f"bucket {decoder}"
    assert ("mask" in shown["t5-decoder"]) == (distance < 0)
    assert shown["deberta"] == f"bucket {pe.deberta_bucket(distance, 256, 512)}"
    place = float(re.fullmatch(r"translate\((.*)\)", shown["token@transform"])[1])
    far = np.sign(distance) * np.log1p(min(abs(distance), 140)) / np.log1p(140)
    assert place == pytest.approx(288 - 184 * far, abs=0.06)  # the past is on the left
    penalties = -pe.alibi_slopes(12) * abs(distance)
    np.testing.assert_allclose(numbers(shown["alibi"]), penalties, rtol=1e-3)
    np.testing.assert_allclose(numbers(shown["rope"]), distance * 0.1 ** np.arange(4), rtol=1e-3)
    if abs(distance) < 7:  # the middle row of a table of 13 by 13
        assert shown["swin"] == f"row {6 * 13 + 6 + distance}"
    else:
        assert shown["swin"].startswith("none")
    for c in range(4):
        hand = angle(shown[f"face{c}-query@transform"])
        assert np.exp(1j * hand) == pytest.approx(np.exp(1j * distance * 0.1**c), abs=2e-3)


@pytest.mark.parametrize("m, n", [(5, 3), (9, 0), (2, 7)])
def test_the_clocks_show_turned_hands_and_their_score(m, n):
    shown = of("rope-clocks", m=str(m), n=str(n), d="10", base="300")
    theta = 300.0 ** (-np.arange(5) / 5)
    assert shown["score"] in shown["note"]
    assert float(shown["score"]) == pytest.approx(np.cos((m - n) * theta).sum(), abs=1e-4)
    np.testing.assert_allclose(numbers(shown["between"]), (m - n) * theta, rtol=1e-3)
    for c in range(5):
        for place, hand in ((m, "query"), (n, "key")):
            turned = angle(shown[f"face{c}-{hand}@transform"])
            assert np.exp(1j * turned) == pytest.approx(np.exp(1j * place * theta[c]), abs=2e-3)
        # A circle's line runs clockwise: the grey part begins at the hand that has turned further.
        further = "query" if m >= n else "key"
        assert shown[f"face{c}-wedge@transform"] == shown[f"face{c}-{further}@transform"]
        degrees = min(np.degrees(abs(m - n) * theta[c]), 360)
        assert shown[f"face{c}-wedge@stroke-dasharray"] == f"{degrees:.1f} 400"
    visible = [shown[f"face{c}@visibility"] == "visible" for c in range(8)]
    assert visible == [True] * 5 + [False] * 3


def test_the_moving_clocks_keep_their_angles():
    for step in (0, 7, 40):
        shown = of("turning-clocks", step=str(step))
        for c, theta in enumerate(pe.rope_frequencies(8, 100.0)):
            a, b = (angle(shown[f"face{c}-{hand}@transform"]) for hand in ("query", "key"))
            assert np.exp(1j * (a - b)) == pytest.approx(np.exp(2j * theta), abs=4e-3)
            assert shown[f"face{c}-wedge@stroke-dasharray"] == f"{np.degrees(2 * theta):.1f} 400"
        score = np.cos(2 * pe.rope_frequencies(8, 100.0)).sum()
        assert f"the score is {score:.4f}." in shown["note"]


def test_the_clocks_of_chapter_40_have_the_base_of_its_text():
    np.testing.assert_allclose(numbers(of("rope-clocks")["theta"]), pe.rope_frequencies(8))


def heights(path):
    """Of a line over 24 pairs: the height of each pair's step."""
    steps = [part.split("H") for part in path.split("V")[1:] if not part.endswith("z")]
    ends = 92 + 256 * np.arange(1, 25) / 24
    return np.array([next(float(y) for y, x in steps if float(x) > end - 0.1) for end in ends])


def test_the_scaling_lab_counts_the_new_angles_of_every_scheme():
    shown = of("scaling-lab", trained="3000", factor="6", d="48", base="5000")
    theta = pe.rope_frequencies(48, 5000)
    yarn, attention = pe.yarn_scaling(48, 6, 3000, 5000)
    schemes = (
        theta,
        theta / 6,
        pe.ntk_scaling(48, 6, 5000),
        yarn,
        pe.llama3_scaling(theta, 6, 3000),
    )
    full = 2 * np.pi
    assert float(shown["attention"]) == pytest.approx(attention, abs=1e-4)
    for n, scaled in enumerate(schemes):
        old = [min(3000 * t, full) for t in theta]
        used = [min(18000 * t, full) for t in scaled]
        new = [b - a if b > a * (1 + 1e-9) else 0 for a, b in zip(old, used, strict=True)]
        assert shown[f"count{n}"] == f"in {sum(x > 0 for x in new)} of 24 pairs"
        share = float(shown[f"share{n}"].removesuffix("% new"))
        assert share == pytest.approx(100 * sum(new) / sum(used), abs=0.051)
        assert shown[f"waves{n}"].endswith(f" to {full / scaled[-1]:,.0f}")
        assert shown[f"new{n}@d"].count("z") == sum(x > 0 for x in new)
        # The picture: 40 units are the whole circle, or the whole way from kept to divided by 6.
        bottom = 90 + 54 * n
        seen = np.minimum(old, used) / full
        np.testing.assert_allclose(bottom - heights(shown[f"old{n}@d"]), 40 * seen, atol=0.06)
        slowed = np.log(theta / scaled) / np.log(6)
        kept = bottom - heights(shown[f"speed{n}@d"])
        np.testing.assert_allclose(kept, 40 * (1 - slowed), atol=0.06)


def test_the_scaling_lab_begins_where_the_schemes_differ():
    shown = of("scaling-lab")
    assert [shown[f"share{n}"] for n in range(5)] == [
        "15.8% new",
        "0% new",
        "4.3% new",
        "0% new",
        "0% new",
    ]
    assert "direct 15.8%, NTK-aware 4.3%." in shown["note"]
    assert "no scheme has any" in of("scaling-lab", factor="1")["note"]


@pytest.mark.parametrize("mask", ["none", "causal", "causal, padding: first two"])
def test_weights_are_the_softmax_of_what_may_be_seen(mask):
    scores = np.random.default_rng(3).normal(size=(6, 6)).round(2)
    text = "\n".join(" ".join(map(str, row)) for row in scores)
    shown = of("softmax-and-masks", scores=text, temperature="0.7", mask=mask)
    for i in range(6):
        seen = [
            j for j in range(6)
            if mask == "none" or (j <= i and (mask == "causal" or j > 1))
        ]  # fmt: skip
        raised = {j: np.exp(scores[i, j] / 0.7) for j in seen}
        for j in range(6):
            right = f"{raised[j] / sum(raised.values()):.2f}" if j in seen else "hidden"
            assert shown[f"w{i}{j}"] == right
    assert ("the, cat" in shown["note"]) == (mask == "causal, padding: first two")


def test_the_decoder_computes_one_row_a_step_and_keeps_the_others():
    for step in (1, 2, 3, 4):
        kept = of("the-cache", step=str(step))
        anew = of("the-cache", step=str(step), keep="no")
        prompt = 2
        read = prompt + step - 1
        assert kept["computed"] == str(prompt if step == 1 else 1)
        assert kept["held"] == str(0 if step == 1 else read - 1)
        assert (anew["computed"], anew["held"]) == (str(read), "0")
        assert kept["total"] == str(read)
        assert anew["total"] == str(sum(range(prompt, read + 1)))
        assert kept["difference"] == "below 1e-12"
        assert [kept[f"word{t}"] for t in range(read + 1)] == [
            "wǒ", "shì", "zhōng", "guó", "rén", "end",
        ][: read + 1]  # fmt: skip
        looks = [kept[f"key-box{t}@class"] for t in range(6)]
        new = int(kept["computed"])
        assert looks == ["kept"] * (read - new) + ["fresh"] * new + ["empty"] * (6 - read)


def test_keys_that_are_kept_do_not_change():
    first = of("the-cache", step="1")
    last = of("the-cache", step="4")
    for t in range(2):
        assert first[f"key{t}"] == last[f"key{t}"] != ""


def test_the_layouts_differ_and_conversion_joins_them():
    w_q, w_k = np.random.default_rng(5).normal(size=(2, 4, 3)).round(3)
    x_q, x_k = np.array([1.0, -2.0, 0.5]), np.array([0.3, 1.0, 1.0])
    text = {n: "\n".join(map(str, w.tolist())) for n, w in (("w_q", w_q), ("w_k", w_k))}
    settings = {**text, "x_q": "1 -2 .5", "x_k": "[.3, 1, 1]", "m": "11", "n": "4"}
    shown = of("which-layout", **settings)
    q, k = w_q @ x_q, w_k @ x_k
    right = {}
    for layout, pairs in (("interleaved", [(0, 1), (2, 3)]), ("half", [(0, 2), (1, 3)])):
        terms = []
        for (a, b), theta in zip(pairs, (1, 0.01), strict=True):
            z, w = complex(q[a], q[b]), complex(k[a], k[b])
            terms.append((z * w.conjugate() * np.exp(7j * theta)).real)
        right[layout] = sum(terms)
        assert float(shown[layout]) == pytest.approx(right[layout], abs=1e-6)
    assert shown["converted"] == shown["interleaved"] != shown["half"]
    assert "interleaved" in of("which-layout", **settings, own=shown["interleaved"])["note"]
    assert "half-split" in of("which-layout", **settings, own=shown["half"])["note"]
    assert "Neither" in of("which-layout", **settings, own="77")["note"]
    assert "Both" in of("which-layout", **{**settings, "n": "11"})["note"]


# ---- markup -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def markup():
    return {name: figure.markup(name) for name, figure in FIGURES.items()}


def unpacked(text):
    """State of each setting that the page holds."""
    table = json.loads(re.search(r'json">(.*?)</script>', text, re.S)[1])
    for setting, values in table["states"].items():
        yield (
            setting,
            {
                key: first if value == 0 else value
                for key, first, value in zip(table["keys"], table["first"], values, strict=True)
            },
        )


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_computed_beforehand_is_what_python_would_say(name, markup):
    figure = FIGURES[name]
    found = list(unpacked(markup[name]))
    assert len(found) == len({setting for setting, _ in found}) > 4
    first = figure.state(figure.start())
    for setting, stored in found[:: max(1, len(found) // 7)]:
        given = dict(zip(figure.start(), setting.split("|"), strict=True))
        assert {**first, **stored} == figure.state(given)
        assert "error" not in stored


@pytest.mark.parametrize("name", FIGURES)
def test_the_still_picture_shows_the_first_state(name, markup):
    figure = FIGURES[name]
    svg = ElementTree.fromstring(re.search(r"<svg.*?</svg>", markup[name], re.S)[0])
    assert svg.get("role") == "img" and svg.get("aria-label") == figure.alt
    places = {e.get("data-key"): e for e in svg.iter()}
    for key, value in figure.state(figure.start()).items():
        place, _, attribute = key.partition("@")
        if place in places:
            assert (
                places[place].get(attribute) if attribute else places[place].text or ""
            ) == value
        else:  # in the table or the line below
            assert f'data-key="{place}"' in markup[name]


@pytest.mark.parametrize("name", FIGURES)
def test_each_control_has_a_name_for_those_who_hear_it(name, markup):
    tags = re.findall(r"<(?:input|select|textarea)[^>]*>", markup[name])
    for tag in tags:
        key = re.search(r' id="([^"]+)"', tag)
        labelled = key is not None and f'<label for="{key[1]}">' in markup[name]
        assert labelled or "aria-label" in tag or 'type="hidden"' in tag
    keys = re.findall(r' id="([^"]+)"', markup[name])
    assert len(keys) == len(set(keys)) and "http" not in markup[name]


@pytest.mark.parametrize("name", [name for name in FIGURES if FIGURES[name].bet])
def test_a_bet_is_on_what_is_shown_and_its_move_can_be_made(name, markup):
    """Whatever comes out, one answer claims it; the move leads to what was computed beforehand."""
    figure, bet = FIGURES[name], FIGURES[name].bet
    claims = set(bet.answers.values())
    assert claims in ({"same", "more", "less"}, {"same", "other"}) and len(bet.answers) == len(
        claims
    )
    first, start = figure.state(figure.start()), figure.start()
    if "more" in claims:
        float(first[bet.measured[0]].split("%")[0])
    to = {
        key: value if isinstance(value, str) else str(int(start[key]) + value)
        for key, value in bet.change.items()
    }
    assert to.keys() <= start.keys() and bet.measured
    assert "|".join({**start, **to}.values()) in dict(unpacked(markup[name]))
    for key in bet.measured:
        assert f'data-key="{key}"' in markup[name] and key in first


@pytest.mark.parametrize("name", FIGURES)
def test_what_is_dragged_moves_in_the_pictures_that_were_computed(name, markup):
    figure = FIGURES[name]
    for key, control in re.findall(r'data-key="([^"]+)" data-drag="([^"]+)"', markup[name]):
        (values,) = (c.values for c in figure.controls if c.name == control)
        places = [figure.state({**figure.start(), control: v})[f"{key}@transform"] for v in values]
        assert all(a != b for a, b in itertools.pairwise(places))


def test_the_same_text_each_time():
    assert FIGURES["the-cache"].markup("the-cache") == FIGURES["the-cache"].markup("the-cache")


def test_an_unchanged_place_keeps_its_text():
    tree = '<div><p data-key="a">old</p><b data-key="c" class="x">t</b></div>'
    right = '<div><p data-key="a">new &lt;</p><b data-key="c" class="y">t</b></div>'
    assert filled(tree, {"a": "new <", "c@class": "y", "none": "1"}) == right


@pytest.mark.parametrize(
    "name, settings, message",
    [
        ("one-distance", {"distance": "1.5"}, "distance, query minus key: a whole number"),
        ("one-distance", {"heads": "0"}, "alibi_slopes: n_heads"),
        ("rope-clocks", {"d": "7"}, "rope_frequencies: d must be even"),
        ("rope-clocks", {"d": "18"}, "at most 16"),
        ("rope-clocks", {"base": "nan"}, "base b: a number is wanted"),
        ("scaling-lab", {"factor": "-1"}, "must be above 0"),
        ("softmax-and-masks", {"temperature": "0"}, "temperature above 0"),
        ("softmax-and-masks", {"scores": "1 2\n3"}, "rows of equal length"),
        ("the-cache", {"prompt": "wo"}, "of the words"),
        ("the-cache", {"step": "9"}, "there are 4 steps"),
        ("which-layout", {"x_q": "1 2"}, "token vectors"),
        ("which-layout", {"own": "x"}, "a number is wanted"),
    ],
)
def test_what_is_wrong_is_said_in_words(name, settings, message):
    found = of(name, **settings)
    assert list(found) == ["error"] and message in found["error"]


def npy(array):
    """As a page hands a .npy file on."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return base64.b64encode(buffer.getvalue()).decode()


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64])
def test_rows_of_a_file_keep_every_digit(kind):
    array = (100 * np.random.default_rng(2).normal(size=(4, 3))).astype(kind)
    for stored in (array, np.asfortranarray(array)):
        found = rows(from_npy(npy(stored))["rows"]).astype(kind)
        assert np.array_equal(found, array)


def test_a_file_without_rows_is_refused_in_words():
    for bad in (np.ones(3), np.ones((2, 2, 2)), np.array([["a"]]), np.array([[1j]])):
        assert "rows and columns are wanted" in from_npy(npy(bad))["error"]
    pickled = npy(np.array([[None]], dtype=object))
    for text in (
        pickled,
        npy(np.ones((2, 2)))[:-8],
        "",
        base64.b64encode(b"PK\x03\x04 zip").decode(),
    ):
        assert from_npy(text)["error"].startswith("this .npy file: ")


def test_texts_become_numbers():
    assert whole(" -3 ") == -3 and number("1e3") == 1000
    assert rows("[[1, 2],\n [3, 4.5]]").tolist() == [[1, 2], [3, 4.5]]
    assert rows("1 2; 3 4").tolist() == [[1, 2], [3, 4]]
