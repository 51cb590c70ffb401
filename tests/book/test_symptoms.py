"""Each symptom has a cause, a link into the book, and a test that runs."""

import re

import pytest
from reading import ROOT

PAGE = (ROOT / "notebooks" / "SYMPTOMS.md").read_text(encoding="utf-8")
HEAD, *ENTRIES = re.split(r"^### ", PAGE, flags=re.M)
CODE = re.compile(r"```python\n(.*?)```", re.S)


def test_there_are_many():
    assert len(ENTRIES) >= 30


def test_each_message_of_the_index_is_in_the_entry_that_it_leads_to():
    entries = {
        re.sub(r"[^\w\- ]", "", e.partition("\n")[0].lower()).replace(" ", "-"): e for e in ENTRIES
    }
    rows = re.findall(r"^\| `(.*?)`(?:, `.*`)? \| \[.*\]\(#(.*)\) \|$", HEAD, re.M)
    assert len(rows) >= 15 and len(rows) == HEAD.count("\n| `")
    for message, anchor in rows:
        entry = entries[anchor].replace("`", "")
        assert all(part in entry for part in message.replace("`", "").split("…")), message


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.partition("\n")[0])
def test_a_symptom_leads_to_its_chapter_and_its_test_holds(entry):
    assert re.search(r"\[[Cc]hapter \d+\]\(\d\d_\w+\.ipynb", entry)
    names = {}
    exec(CODE.search(HEAD)[1], names)
    (code,) = CODE.findall(entry)
    assert re.search(r"^ *assert ", code, re.M)
    exec(code, names)
