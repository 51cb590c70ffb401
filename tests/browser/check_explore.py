"""Figures that answer the hand: what a page shows against what the package computes.

Python of the page is played by the Python of this test, which evaluates what the page asks; a last
test lets the real one answer, if the site has it. What is right is computed here, apart from
`pe_numpy.book.explore`, by the functions that a figure is about.
"""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from conftest import in_mode, resize
from playwright.sync_api import expect

import pe_numpy as pe

SITE = Path(__file__).parent.parent.parent / "docs" / "_build" / "html"
SHOTS = os.environ.get("PE_NUMPY_SHOTS", "")  # as in check_book.py
PAGES = {
    "softmax-and-masks": "chapters/10_attention.html",
    "one-distance": "chapters/33_t5.html",
    "rope-clocks": "chapters/40_rope_derived.html",
    "turning-clocks": "chapters/40_rope_derived.html",
    "scaling-lab": "chapters/50_scaling.html",
    "the-cache": "chapters/63_decoding.html",
    "filling-cache": "chapters/63_decoding.html",
    "which-layout": "chapters/65_rosetta.html",
}
FAKE = """Object.defineProperty(window, "peLive", { value: {
  available: %s, ready: async () => {}, call: (code) => window.askPython(code),
  started: () => !sessionStorage.cold, fetched: () => true,
  warm: () => {}, draws: () => false } });"""
BUILT, NOW = "when the book was built", "just now"
# Whether a figure shows what its controls say.
SHOWN = """box => {
  const fields = [...box.querySelectorAll("[data-name]")];
  const names = [...new Set(fields.map((f) => f.dataset.name))];
  const text = (name) =>
    fields.filter((f) => f.dataset.name === name).map((f) => f.value).join(" ");
  return (box.dataset.shows ?? "").split(/[\\s|]+/).join() === names.map(text).join("|")
    .split(/[\\s|]+/).join();
}"""


class Figure:
    """A figure of a page, and a reader who has a keyboard alone."""

    def __init__(self, reader, name, page="", here=False):
        self.page = reader.page if here else reader.open(page or PAGES[name])
        self.name = name
        self.box = self.page.locator(f"figure#{name}")
        self.box.scroll_into_view_if_needed()
        self.box.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")

    def set(self, **settings):
        """Type or choose, and wait until the figure shows it."""
        for name, value in settings.items():
            field = self.box.locator(f"#{self.name}-{name}")
            if field.evaluate("field => field.localName") == "select":
                field.select_option(value)
                continue
            field.focus()
            self.page.keyboard.press("ControlOrMeta+a")
            self.page.keyboard.insert_text(value) if value else self.page.keyboard.press("Delete")
            self.page.keyboard.press("Tab")
        self.wait()

    def wait(self):
        self.page.wait_for_function(SHOWN, arg=self.box.element_handle(), timeout=60_000)

    def press(self, do):
        self.box.locator(f"[data-do={do}]").focus()
        self.page.keyboard.press("Enter")

    def bet(self, answer):
        """Bet, make the move, and return what is said of it; the texts that were compared."""
        bet = self.box.locator(".explore-bet")
        keys = bet.get_attribute("data-measure").split()
        before = [self.says(key) for key in keys]
        bet.get_by_text(answer, exact=True).focus()
        self.page.keyboard.press("Enter")
        assert bet.locator("[aria-pressed=true]").all_text_contents() == [answer]
        self.press("move")
        self.wait()
        now = [self.says(key) for key in keys]
        said = self.box.locator(".explore-seen").text_content()
        assert f"was {' and '.join(before)} and is {' and '.join(now)}: " in said
        return said.split(": ")[-1], before, now

    def value(self, name):
        return self.box.locator(f"#{self.name}-{name}").input_value()

    def middle(self, key):
        """Of a handle, on the screen."""
        handle = self.box.locator(f'[data-key="{key}"]')
        handle.evaluate("one => one.scrollIntoView({ block: 'center', behavior: 'instant' })")
        box = handle.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(self, key, turns=(), by=0):
        """Drag a handle with the mouse: in a circle, by these radians, or to the right."""
        x, y = self.middle(key)
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + by, y, steps=4)
        if len(turns):
            face = self.box.locator(f'[data-key="{key.split("-")[0]}"] circle').first
            face = face.bounding_box()
            centre = face["x"] + face["width"] / 2, face["y"] + face["height"] / 2
            start = np.arctan2(centre[1] - y, x - centre[0])
            for turn in turns:
                a = start + turn
                self.page.mouse.move(centre[0] + 30 * np.cos(a), centre[1] - 30 * np.sin(a))
        self.page.mouse.up()
        self.wait()

    def says(self, key):
        return self.box.locator(f'[data-key="{key}"]').text_content()

    def number(self, key):
        return float(self.says(key))

    def numbers(self, key):
        return np.array([float(word) for word in self.says(key).split(",")])

    def has(self, key, name):
        return self.box.locator(f'[data-key="{key}"]').get_attribute(name)

    def hand(self, key):
        """Where a hand points, as a number of the plane."""
        return np.exp(-1j * np.radians(float(self.has(key, "transform")[7:-1])))

    @property
    def source(self):
        return self.box.locator("[data-source]").text_content()


def reading(kind, chromium, address, live, **options):
    """Someone who reads a book with, or without, Python in its pages."""
    one = kind(chromium, address, **options)
    one.context.expose_function("askPython", lambda code: eval(code, {"np": np, "pe_numpy": pe}))
    one.context.add_init_script(FAKE % str(live).lower())
    return one


@pytest.fixture(scope="module")
def live(reader, chromium, address):
    one = reading(type(reader), chromium, address, True)
    yield one
    assert one.wrong == []
    one.context.close()


@pytest.fixture(scope="module")
def plain(reader, chromium, address):
    one = reading(type(reader), chromium, address, False, reduced_motion="reduce")
    yield one
    assert one.wrong == []
    one.context.close()


# ---- each figure, in the page and in the package ------------------------------------------------


def test_one_distance(live):
    figure = Figure(live, "one-distance")
    slide = figure.box.locator("[data-slides=distance]")
    slide.focus()
    for steps in range(1, 3):
        live.page.keyboard.press("ArrowRight")
        figure.wait()
        assert figure.says("t5-encoder") == f"bucket {pe.t5_bucket(12 + steps)}"
        assert slide.get_attribute("aria-valuetext") == str(12 + steps)
    for distance, heads, source in ((-5, 8, BUILT), (90, 8, BUILT), (700, 8, NOW), (-300, 12, NOW)):
        figure.set(distance=str(distance), heads=str(heads))
        assert source in figure.source
        assert figure.says("t5-encoder") == f"bucket {pe.t5_bucket(distance)}"
        decoder = pe.t5_bucket(distance, bidirectional=False)
        assert figure.says("t5-decoder").split(",")[0] == f"bucket {decoder}"
        assert figure.says("deberta") == f"bucket {pe.deberta_bucket(distance, 256, 512)}"
        slopes = pe.alibi_slopes(heads)
        np.testing.assert_allclose(figure.numbers("alibi"), -slopes * abs(distance), rtol=1e-3)
        angles = distance * pe.rope_frequencies(8)
        np.testing.assert_allclose(figure.numbers("rope"), angles, rtol=1e-3)
        for c, angle in enumerate(angles):
            assert figure.hand(f"face{c}-query") == pytest.approx(np.exp(1j * angle), abs=2e-3)
        row = pe.offset_index(7, 7)[0, -distance] if distance == -5 else None
        assert figure.says("swin").startswith("none" if row is None else f"row {row}")
    for distance, answer, said in (
        ("14", "No", "it stays, as you bet."),  # 14 and 15 share a bucket
        ("15", "No", "it changes, and you bet otherwise."),
        ("800", "Yes", "it stays, and you bet otherwise."),
    ):
        figure.set(distance=distance)
        assert figure.bet(answer)[0] == said
        assert figure.value("distance") == str(int(distance) + 1)
    figure.set(distance="2", heads="8")
    assert figure.box.locator(".explore-seen").text_content() == ""
    ruler = figure.box.locator("svg path").first.bounding_box()
    figure.drag("token", by=200)  # to the right of the query: the future
    distance = int(figure.value("distance"))
    assert distance < -5 and "the future" in figure.says("note")
    token = figure.box.locator("[data-key=token]").bounding_box()
    part = (token["x"] + token["width"] / 2 - ruler["x"]) / ruler["width"]
    assert part == pytest.approx(0.5 + np.log1p(-distance) / np.log1p(140) / 2, abs=0.01)


def test_what_is_set_while_python_computes_is_asked_afterwards(live):
    """A slow Python: of two more settings that come meanwhile, the last is asked and shown."""
    figure = Figure(live, "one-distance")
    live.page.evaluate(
        """() => {
          const call = peLive.call;
          window.asked = [];
          peLive.call = async (code) => {
            asked.push(/"distance": ?"(-?\\d+)"/.exec(code)[1]);
            await new Promise((go) => { window.go = go; });
            return call(code);
          };
        }"""
    )
    field = figure.box.locator("#one-distance-distance")
    for words in ("700", "800", "900"):
        field.fill(words)
        field.press("Tab")
    assert figure.says("t5-encoder") == f"bucket {pe.t5_bucket(12)}"
    for count in (1, 2):
        live.page.wait_for_function("n => asked.length === n", arg=count)
        live.page.evaluate("go()")
    figure.wait()
    assert live.page.evaluate("asked") == ["700", "900"]
    assert figure.numbers("rope")[0] == 900


def test_the_clocks_of_rope(live):
    figure = Figure(live, "rope-clocks")
    cases = (
        ("7", "2", "10000", "8", BUILT),
        ("30", "2.5", "500", "12", NOW),
        ("-3", "9", "100", "16", NOW),
    )
    for m, n, base, d, source in cases:
        figure.set(m=m, n=n, base=base, d=d)
        theta = pe.rope_frequencies(int(d), float(base))
        q, k = pe.rope(np.tile([1.0, 0.0], (2, int(d) // 2)), [float(m), float(n)], theta)
        assert source in figure.source
        assert figure.number("score") == pytest.approx(q @ k, abs=1e-4)
        for c in range(len(theta)):
            for hand, (a, b) in (("query", q[2 * c : 2 * c + 2]), ("key", k[2 * c : 2 * c + 2])):
                assert figure.hand(f"face{c}-{hand}") == pytest.approx(complex(a, b), abs=2e-3)
        assert figure.box.locator("svg g[visibility=visible]").count() == len(theta)
    # Shift both, where Python computes and where it has: the score stays.
    for answer, said in (("It stays", "it stays, as you bet."), ("It grows", "it stays, and you")):
        assert figure.bet(answer)[0].startswith(said)
    assert (figure.value("m"), figure.value("n")) == ("3", "15")
    figure.set(d="8", base="10000", m="11", n="4")
    assert figure.bet("It stays")[0] == "it stays, as you bet." and BUILT in figure.source
    assert (figure.value("m"), figure.value("n")) == ("8", "1")  # back: 14 was not computed
    # Drag: a hand follows the pointer, and the slider the hand. One radian is one position here.
    figure.drag("face0-query", [1, 2, 3])
    assert figure.value("m") == "11"
    figure.drag("face0-query", [-1, -2])
    assert figure.value("m") == "9"
    figure.drag("face1-key", [0.2, 0.4])  # a tenth of that
    assert figure.value("n") == "5"
    assert figure.box.locator("[data-slides=n]").input_value() == "5"
    assert "m=9&n=5" in live.page.url
    figure.set(base="400")  # no longer beforehand
    figure.drag("face0-query", [1, 2])
    assert figure.value("m") == "11" and NOW in figure.source
    # What is wrong is said, and the picture stays.
    before = figure.says("score")
    figure.set(d="7")
    assert "d must be even" in figure.says("note") and figure.says("score") == before
    figure.set(d="8", m="6")
    assert "score is" in figure.says("note") and figure.says("score") != before


def test_the_scaling_lab(live):
    figure = Figure(live, "scaling-lab")
    cases = (
        (2048, 8, 128, 10000, BUILT),
        (8192, 32, 128, 10000, BUILT),
        (8192, 8, 64, 500000, NOW),
    )
    for trained, factor, d, base, source in cases:
        figure.set(trained=str(trained), factor=str(factor), d=str(d), base=str(base))
        theta = pe.rope_frequencies(d, base)
        yarn, attention = pe.yarn_scaling(d, factor, trained, base)
        schemes = (
            theta,
            theta / factor,
            pe.ntk_scaling(d, factor, base),
            yarn,
            pe.llama3_scaling(theta, factor, trained),
        )
        assert source in figure.source
        assert figure.number("attention") == pytest.approx(attention, abs=1e-4)
        for n, scaled in enumerate(schemes):
            old = np.minimum(trained * theta, 2 * np.pi)
            used = np.minimum(factor * trained * scaled, 2 * np.pi)
            new = (used - old) * (used > old * (1 + 1e-8))
            assert figure.says(f"count{n}") == f"in {(new > 0).sum()} of {d // 2} pairs"
            share = float(figure.says(f"share{n}").removesuffix("% new"))
            assert share == pytest.approx(100 * new.sum() / used.sum(), abs=0.051)
            waves = f"{2 * np.pi / scaled[0]:,.1f} to {2 * np.pi / scaled[-1]:,.0f}"
            assert figure.says(f"waves{n}") == waves
            assert figure.has(f"new{n}", "d").count("z") == (new > 0).sum()
    figure.set(trained="2048", factor="4", d="128", base="10000")
    assert figure.bet("It stays") == (
        "it grows, and you bet otherwise.",
        ["4.3% new"],
        ["8.6% new"],
    )
    figure.press("move")
    assert "set already" in figure.box.locator(".explore-seen").text_content()


def test_softmax_temperature_and_masks(live):
    figure = Figure(live, "softmax-and-masks")
    cell = figure.box.locator("[data-name=scores]")
    scores = np.array([float(v) for v in cell.evaluate_all("all => all.map(f => f.value)")])
    at, scores = np.arange(6), scores.reshape(6, 6)
    masks = {
        "none": np.ones((6, 6), bool),
        "causal": pe.causal_mask(at, at),
        "causal, window of 3": pe.window_mask(at, at, 3),
        "causal, padding: first two": pe.causal_mask(at, at) & (at > 1),
    }
    cases = (
        ("0.5", "causal", None, BUILT),
        ("2", "causal, padding: first two", None, BUILT),
        ("0.7", "causal, window of 3", (3, 2, "4"), NOW),
        ("3", "none", (0, 5, "-2.5"), NOW),
    )
    for temperature, mask, edit, source in cases:
        if edit is not None:
            i, j, score = edit
            scores[i, j] = float(score)
            figure.set(**{f"scores-{i}-{j}": score})
        figure.set(temperature=temperature, mask=mask)
        raised = np.exp(scores / float(temperature)) * masks[mask]
        weights = raised / np.maximum(raised.sum(1, keepdims=True), 1e-9)
        assert source in figure.source
        for i, j in np.ndindex(6, 6):
            right = f"{weights[i, j]:.2f}" if masks[mask][i, j] else "hidden"
            assert figure.says(f"w{i}{j}") == right
        assert ("the, cat" in figure.says("note")) == ("first two" in mask)
    said, before, now = figure.bet("It falls")
    assert said == "it falls, as you bet." and float(before[0]) > float(now[0])


def test_the_cache(live):
    figure = Figure(live, "the-cache")
    for forward, total in ((0, 3), (1, 4), (2, 5)):
        for _ in range(min(forward, 1)):
            figure.press("forward")
        figure.wait()
        assert BUILT in figure.source
        assert (figure.number("computed"), figure.number("held")) == (1, total - 1)
        assert figure.number("total") == total
        assert figure.box.locator("svg rect.fresh[data-key^=key]").count() == 1
        assert figure.box.locator("svg rect.kept[data-key^=key]").count() == total - 1
    first = figure.says("key0"), figure.says("value0")
    figure.set(keep="no")
    assert figure.number("computed") == 5 and figure.number("total") == 2 + 3 + 4 + 5
    figure.set(keep="yes", prompt="wǒ shì zhōng")
    assert "there are 3 steps; got 4" in figure.says("note")
    figure.press("back")
    figure.press("back")
    figure.wait()
    assert NOW in figure.source and figure.number("held") == 3 and figure.number("total") == 4
    assert (figure.says("key0"), figure.says("value0")) == first
    assert figure.bet("More") == ("it grows, as you bet.", ["1"], ["4"])
    figure.set(keep="yes")
    figure.press("back")
    figure.wait()
    assert figure.number("computed") == 3 and figure.number("held") == 0
    assert figure.says("difference") == "below 1e-12"
    assert figure.bet("More")[0] == "it stays, and you bet otherwise."


def test_which_layout(live):
    figure = Figure(live, "which-layout")
    w_q = np.array([[1, 0, 2], [0, 1, -1], [1, 1, 0], [2, 0, 1.0]])
    w_k = np.array([[0, 1, 1], [1, 0, 1], [2, -1, 0], [1, 1, 1.0]])
    other = np.random.default_rng(1).normal(size=(4, 3)).round(2)
    for m, n, w, source in ((8, 1, w_q, BUILT), (0, 7, w_q, BUILT), (40, 3, other, NOW)):
        figure.set(m=str(m), n=str(n))
        if w is other:
            figure.set(w_q="\n".join(" ".join(map(str, row)) for row in w))
        q, k = w @ [1, 2, 1], w_k @ [1, -1, 2]
        assert source in figure.source
        for layout in ("interleaved", "half"):
            score = pe.rope(q[None], [m], layout=layout) @ pe.rope(k[None], [n], layout=layout).T
            assert figure.number(layout) == pytest.approx(score.item(), abs=1e-6)
        assert figure.says("converted") == figure.says("interleaved")
        figure.set(own=figure.says("half"))
        assert "half-split" in figure.says("note")
        figure.set(own="")
    said, *texts = figure.bet("No")
    assert said == "it stays, as you bet." and texts[0] == texts[1] and len(texts[0]) == 2


def test_rows_come_from_a_file(live):
    figure = Figure(live, "which-layout")
    rows = b"[[1, 2, 3],\n [0, 0, 1],\n [2, 1, 0],\n [1, 1, 1]]\n"
    figure.box.locator("[data-into=w_q]").set_input_files(
        {"name": "w.txt", "mimeType": "text/plain", "buffer": rows}
    )
    figure.page.wait_for_function("document.querySelector('#which-layout-w_q').value.includes('[')")
    figure.wait()
    q, k = np.array([8, 1, 4, 4.0]), np.array([1, 3, 3, 2.0])  # of the vectors that stand there
    right = (pe.rope(q[None], [5]) @ pe.rope(k[None], [2]).T).item()
    assert figure.number("interleaved") == pytest.approx(right, abs=1e-6)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_rows_come_from_a_file_of_numpy_and_what_is_none_is_refused(live):
    """The figure keeps what it shows while a file is wrong; then it goes on."""
    figure = Figure(live, "which-layout")
    w = np.random.default_rng(8).normal(size=(4, 3)).astype("f4")

    def give(name, data):
        figure.box.locator("[data-into=w_q]").set_input_files(
            {"name": name, "mimeType": "application/octet-stream", "buffer": data}
        )

    before = figure.says("interleaved"), figure.box.locator("#which-layout-w_q").input_value()
    for name, data, words in (
        ("all.npy", b"PK\x03\x04 is a zip file", "magic string"),
        ("one.npy", npy(np.ones(4)), "rows and columns are wanted"),
        ("large.npy", npy(np.ones((400, 400))), "larger than a megabyte"),
    ):
        give(name, data)
        expect(figure.box.locator("[data-key=note]")).to_contain_text(f"{name}: ")
        assert words in figure.says("note")
        assert before == (
            figure.says("interleaved"),
            figure.box.locator("#which-layout-w_q").input_value(),
        )
    give("w_q.npy", npy(w))
    expect(figure.box.locator("#which-layout-w_q")).not_to_have_value(before[1])
    figure.wait()
    q, k = w.astype(float) @ [1, 2, 1], np.array([1, 3, 3, 2.0])  # the other rows stay
    for layout in ("interleaved", "half"):
        score = pe.rope(q[None], [5], layout=layout) @ pe.rope(k[None], [2], layout=layout).T
        assert figure.number(layout) == pytest.approx(score.item(), abs=1e-6)


# ---- what moves ---------------------------------------------------------------------------------


def test_the_moving_clocks_step_back_and_forward_and_play(live):
    figure = Figure(live, "turning-clocks")
    theta = pe.rope_frequencies(8, 100.0)
    for step in (1, 2, 3):
        figure.press("forward")
        for c in range(4):
            turned = np.exp(1j * (2 + step / 4) * theta[c])
            assert figure.hand(f"face{c}-query") == pytest.approx(turned, abs=2e-3)
            between = figure.hand(f"face{c}-query") / figure.hand(f"face{c}-key")
            assert between == pytest.approx(np.exp(2j * theta[c]), abs=4e-3)
    figure.press("back")
    assert figure.box.locator("[data-name=step]").input_value() == "2"
    figure.press("play")
    assert figure.box.locator("[data-do=play]").text_content() == "Pause"
    live.page.wait_for_function(
        "Number(document.querySelector('#turning-clocks [data-name=step]').value) > 5"
    )
    figure.press("play")
    at = figure.box.locator("[data-name=step]").input_value()
    live.page.wait_for_timeout(400)
    assert figure.box.locator("[data-name=step]").input_value() == at
    figure.drag("face0-query", [0.5, 1, 1.5])
    assert figure.value("step") == str(int(at) + 6)


def test_the_filling_cache_computes_a_row_a_step(live):
    figure = Figure(live, "filling-cache")
    words = "wǒ shì zhōng guó rén end".split()
    for frame in range(1, 10):
        figure.press("forward")
        step, says = divmod(frame, 2)
        assert figure.box.locator("svg rect.fresh[data-key^=key]").count() == 1
        assert figure.box.locator("svg rect.kept[data-key^=key]").count() == step
        read = [figure.says(f"word{t}") for t in range(6)]
        assert [word for word in read if word] == words[: step + 1 + says]


# ---- without Python, without scripts, with other needs ------------------------------------------


TOGETHER = [[n for n in PAGES if PAGES[n] == page] for page in dict.fromkeys(PAGES.values())]


@pytest.mark.parametrize("names", TOGETHER, ids=lambda names: names[0])
def test_without_python_and_on_a_phone(names, plain):
    """The nearest values that are there are shown; all fits, with two controls in view."""
    for name in names:
        figure = Figure(plain, name, here=name != names[0])
        fields = figure.box.locator("[data-live]")
        assert all(fields.nth(n).is_disabled() for n in range(fields.count()))
        if name == "one-distance":
            figure.set(distance="5000")
            assert figure.value("distance") == "140"
            assert figure.says("t5-encoder") == "bucket 15" and "nearest" in figure.source
        if name == "rope-clocks":  # neither 15 and 3 nor 9 and -3 were computed: nothing is said
            figure.set(m="12", n="0")
            figure.press("move")
            assert "Not all" in figure.box.locator(".explore-seen").text_content()
            assert (figure.value("m"), figure.value("n")) == ("12", "0")
        for slide in figure.box.locator("[data-slides]").all():
            slide.focus()
            before = figure.box.locator("svg").inner_html()
            at_end = slide.input_value() == slide.get_attribute("max")
            plain.page.keyboard.press("ArrowLeft" if at_end else "ArrowRight")
            figure.wait()
            assert figure.box.locator("svg").inner_html() != before
        for menu in figure.box.locator("select").all():
            before = figure.box.inner_text()
            menu.focus()
            plain.page.keyboard.press("ArrowDown")
            figure.wait()
            assert figure.box.inner_text() != before
    sides = "all => all.map(e => e.getBoundingClientRect().right)"
    hands = ".explore-controls > div:has([data-name], [data-slides])"
    resize(plain.page, 320)
    for name in names:
        box = plain.page.locator(f"figure#{name}")
        controls = box.locator("input:visible, select, textarea, button:visible, svg")
        assert max(controls.evaluate_all(sides)) <= 320
        assert box.locator(hands).count() <= 2
        for mode in ("dark", "light") if SHOTS else ():
            in_mode(plain.page, mode)
            box.screenshot(path=f"{SHOTS}/explore-{name}-{mode}-phone.png")
    resize(plain.page, 1280)


def test_figures_stand_without_scripts(chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    for names in TOGETHER:
        page.goto(address + PAGES[names[0]], wait_until="domcontentloaded")
        for name in names:
            figure = page.locator(f"figure#{name}")
            assert figure.locator("svg").bounding_box()["height"] > 80
            assert figure.locator("[data-key=note]").inner_text()
            assert not figure.locator(".explore-controls").is_visible()
    context.close()


def test_the_address_has_what_is_set(live):
    """It opens as it was left, near the top of the screen; Python waits for a click."""
    figure = Figure(live, "rope-clocks")
    figure.set(m="9", n="4")
    assert live.page.url.endswith("#toy=rope-clocks&m=9&n=4")
    figure.press("copy")
    expect(figure.box.locator("[data-do=copy]")).to_have_text("Copied")
    score, link = figure.says("score"), live.page.url
    live.page.evaluate("navigator.clipboard.readText = undefined")
    area = "document.body.append(Object.assign(document.createElement('textarea'), {id: 'in'}))"
    live.page.evaluate(f"{area}; document.getElementById('in').focus()")
    live.page.keyboard.press("ControlOrMeta+v")
    assert live.page.locator("#in").input_value() == link

    there = "document.querySelector('#rope-clocks').getBoundingClientRect().top"
    live.page.goto("about:blank")
    live.page.goto(link)
    assert (figure.value("m"), figure.value("n"), figure.says("score")) == ("9", "4", score)
    assert 0 <= live.page.evaluate(there) < 200
    more = figure.box.locator(".explore-controls details")
    assert more.get_attribute("open") is None

    live.page.evaluate("sessionStorage.cold = 1; location.hash = 'toy=rope-clocks&m=1&base=50'")
    expect(more).to_have_attribute("open", "")
    assert (figure.value("m"), figure.value("n"), figure.value("base")) == ("1", "3", "50")
    assert "press Compute" in figure.says("note") and figure.says("score") == score
    figure.press("compute")
    figure.wait()
    right = np.cos(-2 * pe.rope_frequencies(8, 50.0)).sum()
    assert figure.number("score") == pytest.approx(right, abs=1e-4)
    live.page.evaluate("sessionStorage.clear(); location.hash = '#in-short'")
    assert (
        figure.value("base") == "50"
        and 0 <= live.page.evaluate(there.replace("rope-clocks", "in-short")) < 200
    )
    live.page.evaluate("location.hash = 'toy=rope-clocks&base=&d=%22&m=x&k=1'")  # a spoilt link
    figure.wait()
    assert "is wanted" in figure.says("note")


def test_a_finger_drags_a_hand_and_the_page_stays(chromium, address, reader):
    one = reading(type(reader), chromium, address, False, has_touch=True, is_mobile=True)
    figure = Figure(one, "one-distance")
    send = one.context.new_cdp_session(one.page).send

    def swipe(x, y, by):
        send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
        for n in range(1, 11):
            points = [{"x": x, "y": y + by * n / 10}]
            send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": points})
        send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        one.page.wait_for_timeout(300)

    x, y = figure.middle("token")
    top = one.page.evaluate("scrollY")
    swipe(x, y, -150)
    assert one.page.evaluate("scrollY") == top
    swipe(x, y + 60, -150)  # beside the handle the page moves
    assert one.page.evaluate("scrollY") > top + 50
    one.context.close()


def test_who_wants_no_motion_gets_slow_steps(plain):
    figure = Figure(plain, "turning-clocks")
    figure.press("play")
    plain.page.wait_for_timeout(600)
    assert figure.box.locator("[data-name=step]").input_value() == "0"
    plain.page.wait_for_timeout(800)
    assert figure.box.locator("[data-name=step]").input_value() == "1"


def test_the_front_page_moves_once_and_only_where_motion_is_welcome(live, plain):
    still = Figure(plain, "turning-clocks", "index.html")
    figure = Figure(live, "turning-clocks", "index.html")
    end = "document.querySelector('#turning-clocks [data-name=step]').value === '40'"
    live.page.wait_for_function(end, timeout=60_000)
    assert figure.box.locator("[data-do=play]").text_content() == "Play"
    assert still.box.locator("[data-name=step]").input_value() == "0"
    assert still.box.locator("[data-do=play]").text_content() == "Play"


def test_python_of_the_page_says_the_same(reader):
    if not (SITE / "_static" / "live" / "python.js").exists():
        pytest.skip("this site has no Python in its pages")
    figure = Figure(reader, "one-distance")
    figure.set(distance="777")
    assert NOW in figure.source
    assert figure.says("t5-encoder") == f"bucket {pe.t5_bucket(777)}"
    assert figure.says("deberta") == f"bucket {pe.deberta_bucket(777, 256, 512)}"
    for distance in (-1000, 300):
        figure.set(distance=str(distance))
        penalties = -abs(distance) * pe.alibi_slopes(8)
        np.testing.assert_allclose(figure.numbers("alibi"), penalties, rtol=1e-3)
    assert "bucket" in figure.says("t5-decoder") and reader.wrong == []
