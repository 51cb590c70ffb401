"""Figures that answer the hand: what a page shows against what the package computes.

Python of the page is played by the Python of this test, which evaluates what the page asks; a last
test lets the real one answer, if the site has it. What is right is computed here, apart from
`pe_numpy.book.explore`, by the functions that a figure is about.
"""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

import pe_numpy as pe

SITE = Path(__file__).parent.parent.parent / "docs" / "_build" / "html"
SHOTS = SITE.parent / "screenshots"
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
  started: () => true, fetched: () => true, warm: () => {}, draws: () => false } });"""
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

    def __init__(self, reader, name, page=""):
        self.page, self.name = reader.open(page or PAGES[name]), name
        self.box = self.page.locator(f"figure#{name}")
        self.box.scroll_into_view_if_needed()

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


def test_the_slider_of_one_distance_moves_by_arrows(live):
    figure = Figure(live, "one-distance")
    slide = figure.box.locator("[data-slides=distance]")
    slide.focus()
    for steps in range(1, 4):
        live.page.keyboard.press("ArrowRight")
        figure.wait()
        assert figure.says("t5-encoder") == f"bucket {pe.t5_bucket(12 + steps)}"
        assert slide.get_attribute("aria-valuetext") == str(12 + steps)


def test_the_clocks_of_rope(live):
    figure = Figure(live, "rope-clocks")
    cases = (
        ("7", "2", "none", "100", "8", BUILT),
        ("11", "4", "YaRN", "100", "8", BUILT),
        ("30", "2.5", "linear", "500", "12", NOW),
        ("-3", "9", "none", "10000", "16", NOW),
    )
    for m, n, scheme, base, d, source in cases:
        figure.set(m=m, n=n, scheme=scheme, base=base, d=d)
        theta = pe.rope_frequencies(int(d), float(base))
        if scheme == "YaRN":
            theta = pe.yarn_scaling(int(d), 4, 64, float(base))[0]
        if scheme == "linear":
            theta = pe.linear_scaling(theta, 4)
        q, k = pe.rope(np.tile([1.0, 0.0], (2, int(d) // 2)), [float(m), float(n)], theta)
        assert source in figure.source
        assert figure.number("score") == pytest.approx(q @ k, abs=1e-4)
        for c in range(len(theta)):
            for hand, (a, b) in (("query", q[2 * c : 2 * c + 2]), ("key", k[2 * c : 2 * c + 2])):
                assert figure.hand(f"face{c}-{hand}") == pytest.approx(complex(a, b), abs=2e-3)
        assert figure.box.locator("svg g[visibility=visible]").count() == len(theta)


def test_the_scaling_lab(live):
    figure = Figure(live, "scaling-lab")
    cases = (
        (2048, 8, "NTK-aware", 64, 10000, BUILT),
        (8192, 32, "YaRN", 64, 10000, BUILT),
        (8192, 8, "Llama 3", 128, 500000, NOW),
        (512, 3, "none", 32, 10000, NOW),
    )
    for trained, factor, scheme, d, base, source in cases:
        figure.set(
            trained=str(trained), factor=str(factor), scheme=scheme, d=str(d), base=str(base)
        )
        theta = pe.rope_frequencies(d, base)
        scaled, attention = theta, 1.0
        if scheme == "NTK-aware":
            scaled = pe.ntk_scaling(d, factor, base)
        if scheme == "YaRN":
            scaled, attention = pe.yarn_scaling(d, factor, trained, base)
        if scheme == "Llama 3":
            scaled = pe.llama3_scaling(theta, factor, trained)
        turned, reached = trained * theta, factor * trained * scaled
        new = (turned < 2 * np.pi) & (reached > turned * (1 + 1e-8))
        assert source in figure.source
        assert figure.says("count") == f"{new.sum()} of {d // 2}"
        last = f"{2 * np.pi / theta[-1]:,.0f} to {2 * np.pi / scaled[-1]:,.0f}"
        assert figure.says("last") == last
        assert figure.number("attention") == pytest.approx(attention, abs=1e-4)
        assert figure.has("scaled", "d").count("L") == d // 2 - 1


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
    figure.press("back")
    figure.wait()
    assert figure.number("computed") == 3 and figure.number("held") == 0
    assert figure.says("difference") == "below 1e-12"


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


@pytest.mark.parametrize("name", PAGES)
def test_without_python_the_nearest_values_that_are_there_are_shown(name, plain):
    figure = Figure(plain, name)
    fields = figure.box.locator("[data-live]")
    assert all(fields.nth(n).is_disabled() for n in range(fields.count()))
    if name == "one-distance":
        figure.set(distance="5000")
        assert figure.box.locator("#one-distance-distance").input_value() == "140"
        assert figure.says("t5-encoder") == "bucket 15" and "nearest" in figure.source
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


@pytest.mark.parametrize("name", PAGES)
def test_a_figure_stands_without_scripts(name, chromium, address):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + PAGES[name])
    figure = page.locator(f"figure#{name}")
    assert figure.locator("svg").bounding_box()["height"] > 80
    assert figure.locator("[data-key=note]").inner_text()
    assert not figure.locator(".explore-controls").is_visible()
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_a_figure_fits_a_phone(name, live):
    """What axe says of it stands in check_book.py, with all that is on a page."""
    live.page.set_viewport_size({"width": 390, "height": 900})
    figure = Figure(live, name)
    SHOTS.mkdir(exist_ok=True)
    for mode in ("dark", "light"):
        live.page.emulate_media(color_scheme=mode)
        live.page.wait_for_function(f"document.documentElement.dataset.theme == '{mode}'")
        figure.box.screenshot(path=SHOTS / f"explore-{name}-{mode}-phone.png")
    sides = "all => all.map(e => e.getBoundingClientRect().right)"
    controls = figure.box.locator("input:visible, select, textarea, button, svg")
    assert max(controls.evaluate_all(sides)) <= 390
    live.page.set_viewport_size({"width": 1280, "height": 900})
    figure.box.screenshot(path=SHOTS / f"explore-{name}-desk.png")


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


def test_a_wrong_setting_is_said_and_the_picture_stays(live):
    figure = Figure(live, "rope-clocks")
    before = figure.says("score")
    figure.set(d="7")
    assert "d must be even" in figure.says("note") and figure.says("score") == before
    figure.set(d="8", m="6")
    assert "score is" in figure.says("note") and figure.says("score") != before


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
    assert re.search("bucket", figure.says("t5-decoder")) and reader.wrong == []
