"""The page *Break a real model*: each mistake is measured, explained and can be repeated."""

import json
import re
import sys

import breaks
import pytest
from bs4 import BeautifulSoup

from pe_numpy.__main__ import main
from pe_numpy.book import passport, trained

sys.path.insert(0, str(trained.RESULTS))
import real_break

PAGE = breaks.page()


def test_every_mistake_that_is_measured_is_on_the_dial():
    assert ["right", *breaks.MISTAKES] == list(real_break.MISTAKES)
    page = BeautifulSoup(PAGE, "html.parser")
    radios = [one["value"] for one in page.select("input[name=mistake]")]
    assert radios == [one["data-mistake"] for one in page.select(".break-about")]
    assert radios == list(breaks.MISTAKES)
    assert len(page.select("#break-sentence option")) == len(real_break.SENTENCES)


@pytest.mark.parametrize("name", breaks.MISTAKES)
def test_a_command_is_one_that_the_program_knows(name, monkeypatch, tmp_path, capsys):
    """Without the weights it gets as far as to ask for them."""
    monkeypatch.setenv("PE_NUMPY_WEIGHTS", str(tmp_path))
    line = breaks.command(name, "Paris is in")
    words = [one.strip('"') for one in re.findall(r'"[^"]*"|\S+', line)]
    assert "Paris is in" in words
    if words[1] == "-m":
        assert main(words[3:]) != 0
        assert "fetch gemma" in capsys.readouterr().err
    else:
        assert words[1] == "notebooks/results/real_break.py"
        with pytest.raises(SystemExit, match="fetch gemma"):
            real_break.main(words[2:])


def test_the_page_holds_the_table_and_no_tag_of_it():
    held = re.search(r'<script type="application/json">(.*?)</script>', PAGE)[1]
    assert json.loads(held)["sentences"] == breaks.table()["sentences"]
    assert "<" not in held and "&" not in held


def test_the_still_table_is_what_was_measured():
    page = BeautifulSoup(PAGE, "html.parser")
    for row in page.select(".break-all tbody tr"):
        entry = breaks.entry(0, row["data-mistake"])
        assert row.select("td")[0].text == f"{entry['loss']:.2f}"
        marked = [one.text for one in row.select("mark")]
        wrong = entry["wrong"]
        assert len(marked) == (wrong >= 0)
        if marked:
            assert marked[0].replace("⏎", "\n").replace("␣", " ") == entry["written"][wrong]


def test_the_sandbox_holds_the_examples_and_chapter_70_leads_to_it():
    page = BeautifulSoup(PAGE, "html.parser")
    names = [one.text for one in page.select("#sandbox-example option")]
    held = json.loads(page.select_one("form.sandbox script").string)
    assert names[1:] == list(held) == list(passport.EXAMPLES) and held == passport.EXAMPLES
    chapters = {path.stem: path.read_text() for path in trained.RESULTS.parent.glob("[0-9]*.ipynb")}
    links = {
        stem: breaks.with_sandbox(text).count("break.html#") for stem, text in chapters.items()
    }
    assert {stem: n for stem, n in links.items() if n} == {"70_algebra": 1}
    anchor = (
        breaks.with_sandbox(chapters["70_algebra"]).partition("break.html#")[2].partition('"')[0]
    )
    heading = next(line for line in PAGE.split("\n") if line.endswith("a passport"))
    assert anchor == heading.removeprefix("## ").lower().replace(" ", "-")


def test_the_teaser_shows_that_a_shift_changes_nothing():
    front = breaks.with_teaser(f"before\n{breaks.MARK}after")
    right, shifted, zero = (dd.text for dd in BeautifulSoup(front, "html.parser").select("dd"))
    assert right == shifted != zero and right.startswith(real_break.SENTENCES[0])
