"""Chapters that need trained weights run only where these are; else they stay as committed."""

from concurrent.futures import ThreadPoolExecutor

import matrix
import pytest
import toc
from scripts import script

from pe_numpy.book.fetch import RELEASES

build = script("notebooks/build.py")


def apart():
    """What was changed since a chapter with weights was executed, a line a chapter."""
    now = {p.stem: build.made_of(p) for p in build.sources() if toc.needs_weights(p.stem)}
    then = build.recorded()
    for stem in sorted(now.keys() | then.keys()):
        rows = now.get(stem, {}), then.get(stem, {})
        differs = [
            part for part in {**rows[0], **rows[1]} if rows[0].get(part) != rows[1].get(part)
        ]
        if differs:
            yield f"{stem}: {', '.join(differs)}"


def test_source_tables_and_outputs_of_these_chapters_belong_together():
    """If not: `make real-book` executes them with the weights of `make real`."""
    assert list(apart()) == [], "make real-book executes these chapters again"


@pytest.mark.parametrize("stem", toc.chapters())
def test_a_chapter_needs_weights_that_can_be_fetched(stem):
    assert set(toc.needs_weights(stem)) <= RELEASES.keys()


# ---- a small book -------------------------------------------------------------------------------

CONTENTS = """
[[part]]
title = "All"
[[part.chapter]]
stem = "10_plain"
question = "What?"
minutes = 5
needs = []
[[part.chapter]]
stem = "80_small"
question = "What?"
minutes = 5
needs = []
weights = ["minilm"]
[[part.chapter]]
stem = "81_large"
question = "What?"
minutes = 5
needs = []
weights = ["gemma"]
"""
SOURCE = '# %% [markdown]\n# # 80. Small\n# %%\nprint(rows("clocks"))\n'
TABLES = (
    "# made by hand (once\nexperiment,setting,text,value\nclocks,all,,1.5\nshift,1,opticks,0.02\n"
)


@pytest.fixture
def book(tmp_path, monkeypatch):
    """Three chapters; of two models that they need, the files of one."""
    results, figures, weights = (tmp_path / name for name in ("results", "figures", "weights"))
    for folder in (results, figures, weights):
        folder.mkdir()
    for stem in ("10_plain", "80_small", "81_large"):
        (tmp_path / f"{stem}.py").write_text(SOURCE)
    (tmp_path / "contents.toml").write_text(CONTENTS)
    (results / "real.csv").write_text(TABLES)
    for name in RELEASES["minilm"].files:
        (weights / "minilm" / name).parent.mkdir(parents=True, exist_ok=True)
        (weights / "minilm" / name).touch()
    monkeypatch.setenv("PE_NUMPY_WEIGHTS", str(weights))
    monkeypatch.setattr(toc, "NOTEBOOKS", tmp_path)
    names = {"HERE": tmp_path, "FIGURES": figures, "TABLES": results / "real.csv"}
    for name, value in (names | {"RECORD": results / "real_chapters.csv"}).items():
        monkeypatch.setattr(build, name, value)

    def write(path):
        path.with_suffix(".ipynb").write_text("1.5")
        (figures / f"{path.stem[:2]}_clocks.png").write_text("a clock")
        return f"{path.stem}.ipynb: written"

    monkeypatch.setattr(build, "write", write)
    monkeypatch.setattr(build, "ProcessPoolExecutor", ThreadPoolExecutor)
    return tmp_path


def stems(*arguments):
    return [path.stem for path in build.choose([*arguments])[0]]


def test_they_are_executed_where_their_weights_are_and_only_if_asked(book):
    assert stems() == ["10_plain"]
    assert stems("80_small") == stems("--real") == ["80_small"]
    assert stems("80_small", "10_plain") == ["10_plain", "80_small"]
    with pytest.raises(
        SystemExit, match=r"81_large needs weights; fetch: gemma is not in .* fetch gemma"
    ):
        stems("80_small", "81_large")
    with pytest.raises(SystemExit, match="no such chapter: --reel"):
        stems("--reel")


def test_a_line_says_which_stay_as_they_are_committed(book):
    large = "81_large.ipynb: as committed (needs weights: make real)"
    assert build.choose(["--real"])[1] == [large]
    small = "80_small.ipynb: as committed (make real-book executes it)"
    assert build.choose([])[1] == [small, large]
    assert build.choose(["10_plain"])[1] == []
    build.main([])
    assert not build.RECORD.exists()


def test_the_first_cell_says_that_weights_are_needed(book):
    assert "5 minutes. To run it, fetch trained weights: `make real`. Looking" in toc.head(
        "80_small"
    )
    assert "weights" not in toc.head("10_plain")


def test_the_matrix_runs_those_whose_weights_are_there(book):
    chapters, tests = matrix.with_weights()
    assert chapters.endswith("=1200 notebooks/80_small.ipynb") and "tests/real" in tests
    (book / "weights" / "minilm" / "config.json").unlink()
    assert matrix.with_weights() == [tests]


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    "file, old, new, said",
    [
        ("80_small.py", "Small", "Smell", ["80_small: source"]),
        ("80_small.ipynb", "1.5", "1.6", ["80_small: outputs"]),
        ("figures/80_clocks.png", "a", "b", ["80_small: outputs"]),
        ("results/real.csv", "clocks,all,,1.5", "clocks,all,,1.6", ["80_small: tables"]),
        ("results/real.csv", "clocks,all,,1.5\n", "", ["80_small: tables"]),
        ("results/real.csv", "shift,1,opticks,0.02", "shift,1,opticks,0.03", []),
        ("results/real.csv", "by hand", "by foot", []),
        ("10_plain.py", "Small", "Smell", []),
    ],
)
def test_a_change_after_the_run_is_seen_and_another_run_ends_it(book, file, old, new, said):
    change(book / "contents.toml", 'weights = ["gemma"]', "")
    assert list(apart()) == ["80_small: chapter, source, tables, outputs"]
    build.main(["--real"])
    assert list(apart()) == []
    change(book / file, old, new)
    assert list(apart()) == said
    build.main(["--real"])
    assert list(apart()) == []
    build.main([])
    assert list(build.recorded()) == ["80_small"]


def test_a_chapter_that_is_gone_is_forgotten(book):
    build.main(["--real"])
    change(book / "results" / "real_chapters.csv", "80_small", "82_gone")
    build.main(["--real"])
    assert list(build.recorded()) == ["80_small"]
