"""The census: its rules, its places and chapters, its figure, what the reader refuses."""

import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from pe_numpy.book.census import (
    APART,
    ENCODINGS,
    KINDS,
    VERDICTS,
    Row,
    candidates,
    census,
    users_of,
)
from pe_numpy.judging.schemes import SCHEMES
from pe_numpy.transformer.encodings import Encoding, every_encoding

ROOT = Path(__file__).parent.parent
FILE = ROOT / "pe_numpy" / "book" / "census.csv"
ROWS = census()
FAMILIES = [row for row in ROWS if row.kind == "family"]
LIBRARY = "transformers 5.23.0: models/"
GOOD = "2017-06,A,model,rope,base 10000,a.py,arXiv 1706.03762"


# ---- the data -----------------------------------------------------------------------------------


def test_each_line_of_the_file_is_a_row_in_the_order_of_time():
    lines = FILE.read_text(encoding="utf-8").splitlines()
    assert lines[0] == ",".join(Row._fields) and len(lines) - 1 == len(ROWS)
    for line, row in zip(lines[1:], ROWS, strict=True):
        assert line.startswith(f"{row.date},{row.model},{row.kind},{row.encoding},")
        assert line.endswith(f",{row.source},{row.dated}")
    assert [row.date for row in ROWS] == sorted(row.date for row in ROWS)
    assert (ROWS[0].model, ROWS[0].date) == ("Transformer", "2017-06")


def test_each_row_is_whole_and_no_model_comes_twice():
    assert all(text == text.strip() != "" for row in ROWS for text in row)
    assert max(Counter(row.model for row in ROWS).values()) == 1
    assert {row.kind for row in ROWS} == set(KINDS)
    assert {row.encoding for row in ROWS} <= set(ENCODINGS)


def test_a_source_is_a_file_of_a_version_and_a_date_is_a_paper_or_a_dated_page():
    version = re.compile(r"transformers \d+\.\d+\.\d+: |[\w./-]+ [0-9a-f]{7,10}(?:: |$)")
    dated = re.compile(
        r"arXiv \d{4}\.\d{5}$|[\w./-]+ [0-9a-f]{10}: |.*/\d{4}/\d\d/|name of the "
        r"|transformers \d+\.\d+\.0: the first release with its folder$"
    )
    for row in ROWS:
        assert version.match(row.source), row
        assert dated.match(row.dated), row


def test_dates_of_papers_are_the_months_of_their_numbers():
    papers = [row for row in ROWS if row.dated.startswith("arXiv ")]
    assert len(papers) > 50
    for row in papers:
        assert row.date[2:4] + row.date[5:] == row.dated[6:10]


def test_the_middle_of_a_month_in_years():
    row = ROWS[0]
    assert (row.year, row.month) == (2017, 2017 + 5.5 / 12)
    assert row._replace(date="2019-01").month == 2019 + 1 / 24
    assert row._replace(date="2019-12").month == 2020 - 1 / 24


# ---- the rule -----------------------------------------------------------------------------------


def test_each_candidate_has_one_verdict_and_each_that_counts_a_row_with_its_file():
    assert len({one.key for one in candidates()}) == len(candidates()) == 189
    assert {one.verdict for one in candidates()} == set(VERDICTS)
    counted = [one.folder for one in candidates() if one.verdict == "counted"]
    files = [row.source.removeprefix(LIBRARY) for row in FAMILIES]
    assert sorted(counted) == sorted(file.split("/")[0] for file in files)
    for file in files:
        folder, name = file.split("/")
        assert name in (f"modeling_{folder}.py", f"configuration_{folder}.py")
    for one in candidates():  # a size is asked for last
        assert bool(one.size) == (one.verdict in ("counted", "small"))


def test_a_size_that_counts_is_a_billion_at_least():
    """As far as its text gives a number; the others stand for what was read."""
    number = re.compile(r"(?<![\w.])E?(\d+(?:\.\d+)?)( billion|b\b)", re.IGNORECASE)
    for one in candidates():
        if one.size:
            size = float(number.search(one.size.split("/")[-1].replace("_", "-"))[1])
            assert (size >= 1) == (one.verdict == "counted"), one
        # Small is who is small by default, too: a small checkpoint alone says nothing.
        assert one.verdict != "small" or one.size.endswith(" billion by default"), one


def test_an_alias_stands_after_its_folder_or_under_another_name():
    for n, one in enumerate(candidates()):
        before = {other.folder for other in candidates()[:n] if other.verdict != "alias"}
        own = one.key.replace("-", "_") in (one.folder, f"{one.folder}_text")
        if one.verdict == "alias":
            assert one.folder in before or not own, one
        elif one.verdict == "counted":
            assert own and one.folder not in before, one


def test_hybrids_of_both_kinds_are_in_the_census():
    place = {row.source.removeprefix(LIBRARY).split("/")[0]: row.place for row in FAMILIES}
    none = {"jamba", "zamba", "zamba2", "nemotron_h", "granitemoehybrid", "kimi_linear"}
    assert {folder for folder, n in place.items() if n == 0} == none
    rotate = ("bamba", "falcon_h1", "minimax", "qwen3_next", "recurrent_gemma", "olmo_hybrid")
    assert all(place[folder] == 2 for folder in rotate)


# ---- encodings ----------------------------------------------------------------------------------


def test_no_encoding_of_the_census_alone_is_a_scheme_of_the_register():
    assert not set(APART) & set(SCHEMES) and set(APART) <= {row.encoding for row in ROWS}


@pytest.mark.parametrize("name", every_encoding(8))
def test_the_place_of_an_encoding_is_one_of_those_where_its_class_does_something(name):
    kind = type(every_encoding(8)[name])
    methods = ("embed", "turn", "scores", "mix")
    places = {n for n, m in enumerate(methods, 1) if getattr(kind, m) is not getattr(Encoding, m)}
    assert ENCODINGS[name].place in (places or {0})


@pytest.mark.parametrize("name", ENCODINGS)
def test_each_encoding_has_a_chapter_that_speaks_of_it(name):
    label, place, chapter = ENCODINGS[name][:3]
    contents = tomllib.loads((ROOT / "notebooks" / "contents.toml").read_text(encoding="utf-8"))
    assert chapter in {c["stem"] for part in contents["part"] for c in part.get("chapter", [])}
    text = (ROOT / "notebooks" / f"{chapter}.py").read_text(encoding="utf-8")
    assert label.lower() in text.lower() and place in range(5)


def test_users_are_released_models_in_the_order_of_time():
    assert users_of("alibi") == ["BLOOM", "MPT"]  # the paper ALiBi is a scheme
    assert users_of("kerple") == users_of("floater") == []
    assert users_of("rope")[:3] == ["RoFormer", "NeoX-Japanese", "LLaMA"]
    listed = [model for name in ENCODINGS for model in users_of(name)]
    assert sorted(listed) == sorted(row.model for row in ROWS if row.kind != "scheme")


# ---- the figure, and the chapter ----------------------------------------------------------------


def test_each_encoding_of_the_census_stands_on_one_line_of_the_figure():
    lines = pytest.importorskip("pe_numpy.book.plots.census").LINES.values()
    assert sorted(sum(lines, ())) == sorted({row.encoding for row in ROWS})
    assert all(len({ENCODINGS[name].place for name in line}) == 1 for line in lines)


def test_no_label_of_the_figure_meets_another():
    plots = pytest.importorskip("pe_numpy.book.plots.census")
    figure = plots.census_timeline(ROWS)
    figure.draw_without_rendering()
    common = {"rope", "partial_rope", "mla"}  # families with these have a dot alone
    models = {row.model for row in ROWS if row.kind != "family" or row.encoding not in common}
    texts = [t for t in figure.axes[0].texts if t.get_text()]
    assert models <= {t.get_text() for t in texts}
    boxes = [t.get_window_extent().padded(-1) for t in texts]
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])
    assert all(t.get_fontsize() >= 8 for axes in figure.axes for t in axes.texts)
    plots.plt.close(figure)


def test_the_counts_of_the_chapter_are_those_of_the_file():
    """The lines that the chapter prints, counted from the bare text of the file."""
    notebook = json.loads((ROOT / "notebooks" / "72_which_one.ipynb").read_text(encoding="utf-8"))
    cell = next(c for c in notebook["cells"] if "census_timeline(" in "".join(c["source"]))
    printed = "".join("".join(o.get("text", "")) for o in cell["outputs"]).splitlines()
    lines = FILE.read_text(encoding="utf-8").splitlines()[1:]
    families = [line.split(",")[:4] for line in lines if ",family," in line]
    assert printed[0].startswith("189 candidates: {'counted': 127,") and len(families) == 127
    years = Counter(date[:4] for date, *_ in families)
    turned = Counter(d[:4] for d, _, _, name in families if ENCODINGS[name].place == 2)
    said = [f"{y}: {turned[y]:2} of {n:2} families rotate" for y, n in years.items()]
    assert printed[1:] == said


# ---- bad files ----------------------------------------------------------------------------------


def refusal(folder, *lines):
    """What the reader says of a file with these lines under the right head."""
    file = folder / "mine.csv"
    file.write_text("\n".join([",".join(Row._fields), *lines]) + "\n", encoding="utf-8")
    with pytest.raises(ValueError) as caught:
        census(file)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (GOOD.replace("a.py", ""), "source must not be empty"),
        (GOOD.replace("a.py", "  "), "source must not be empty"),
        (GOOD.replace("A", "", 1), "model must not be empty"),
        (GOOD.replace("2017-06", "2017-13"), "a year and a month, like 2017-06; got 2017-13"),
        (GOOD.replace("2017-06", "2017-00"), "a year and a month, like 2017-06; got 2017-00"),
        (GOOD.replace("2017-06", "2017-6"), "a year and a month, like 2017-06; got 2017-6"),
        (GOOD.replace("2017-06", "June 2017"), "like 2017-06; got June 2017"),
        (GOOD.replace("2017-06", "2017-07"), "the month of arXiv 1706.03762; got 2017-07"),
        (GOOD.replace("2017-06", "2016-06"), "the month of arXiv 1706.03762; got 2016-06"),
        (GOOD.replace("1706.03762", "1706.0376"), "is like 1706.03762; got arXiv 1706.0376"),
        (GOOD.replace("model", "paper"), "kind must be one of family, model, scheme; got paper"),
        (GOOD.replace("rope", "RoPE"), "got RoPE"),
        (GOOD + ",more", "must have 7 fields; got 8"),
        ("", "must have 7 fields; got 0"),
    ],
)
def test_a_bad_line_is_refused_with_file_and_line(tmp_path, line, message):
    said = refusal(tmp_path, line)
    assert said.startswith("census: mine.csv, line 2: ") and said.endswith(message)


def test_rows_that_do_not_go_together_are_refused(tmp_path):
    again = GOOD.replace("rope", "alibi")  # another encoding does not make it another model
    assert "line 3: a model has one row; got A again" in refusal(tmp_path, GOOD, again)
    earlier = "2017-05,B,scheme,alibi,slopes,b.py,arXiv 1705.03762"
    said = refusal(tmp_path, GOOD, earlier)
    order = "rows must be in the order of time; got 2017-05 after 2017-06"
    assert said == f"census: mine.csv, line 3: {order}"
    file = tmp_path / "mine.csv"
    file.write_text("\n".join([",".join(Row._fields), earlier, GOOD]), encoding="utf-8")
    assert [row.model for row in census(file)] == ["B", "A"]


@pytest.mark.parametrize("head", ["", "date,model", ",".join(reversed(Row._fields))])
def test_other_columns_are_refused(tmp_path, head):
    (tmp_path / "mine.csv").write_text(head, encoding="utf-8")
    with pytest.raises(ValueError, match=r"census: mine\.csv, line 1: the columns must be date,mo"):
        census(tmp_path / "mine.csv")


def test_an_unknown_encoding_has_no_users():
    with pytest.raises(ValueError, match=r"users_of: encoding must be 'none' or .*; got 'rop'"):
        users_of("rop")
