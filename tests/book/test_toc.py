"""The table of contents is the one source of the order, and nothing points forward."""

import nbformat
import pytest
import toc
from reading import NOTEBOOKS, ROOT, prose_of

STEMS = list(toc.chapters())


def test_it_lists_each_chapter_once_in_order():
    assert [p.stem for p in NOTEBOOKS] == STEMS
    parts = [{chapter["stem"][0] for chapter in part["chapter"]} for part in toc.read()["part"]]
    assert all(len(numbers) == 1 for numbers in parts)
    assert len({number for numbers in parts for number in numbers}) == len(parts)


@pytest.mark.parametrize("stem", STEMS)
def test_a_chapter_needs_earlier_ones_alone(stem):
    chapter = toc.chapters()[stem]
    assert all(STEMS.index(other) < STEMS.index(stem) for other in chapter["needs"])
    assert chapter["question"].endswith(("?", ".")) and 10 <= chapter["minutes"] <= 90


def test_each_chapter_has_a_title_of_its_own_for_who_shows_a_link():
    benefits = [chapter.get("benefit", "") for chapter in toc.chapters().values()]
    assert all(20 < len(benefit) <= 70 for benefit in benefits)
    assert len(set(benefits)) == len(STEMS)
    assert not {toc.title(stem) for stem in STEMS} & set(benefits)  # more than the heading


@pytest.mark.parametrize("route", toc.read()["route"], ids=lambda route: route["title"])
def test_a_route_holds_all_that_its_chapters_need(route):
    way = route["chapters"]
    for stem in way:
        assert set(toc.chapters()[stem]["needs"]) <= {*way, *route.get("knows", [])}, stem
    assert way == sorted(way)


def test_the_readme_has_the_chapters_and_routes_of_the_table():
    """If not: `make contents` writes them."""
    assert (ROOT / "README.md").read_text(encoding="utf-8") == toc.readme()


def test_chapter_0_has_the_routes_of_the_table():
    prose = prose_of(nbformat.read(NOTEBOOKS[0], as_version=4).cells)
    assert any(toc.routes("") in text for text in prose)


def test_second_readings_take_no_time_of_a_route(monkeypatch, tmp_path):
    source = """# %% [markdown]
# ## A title (second reading)
# one two
#
# ### Below
# three
# %%
four = 5  # six
# %% [markdown]
# ## Another
# not counted
# ### And this (second reading)
# seven
# ### Not this
"""
    assert toc.second(source) == 5 + 2 + 2 + 1 + 5 + 5 + 1
    (tmp_path / "10_x.py").write_text(source + "# ## Long (second reading)\n#" + " word" * 2996)
    monkeypatch.setattr(toc, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(toc, "chapters", lambda: {"10_x": {"minutes": 50}})
    assert toc.first_minutes("10_x") == pytest.approx(50 - (21 + 3000) / 150)
    assert toc.time_of(["10_x"]) == "1 hour"


def test_the_chapters_have_second_readings():
    short = {stem for stem in STEMS if toc.first_minutes(stem) < toc.chapters()[stem]["minutes"]}
    assert {"10_attention", "20_sinusoidal", "40_rope_derived", "60_layers", "61_autodiff"} <= short
