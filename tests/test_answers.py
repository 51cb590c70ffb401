"""What the homework says of answers that were written before anybody looked at its names."""

import pytest
from answers import Answer, collected, counts, summary
from answers.record import measured, read

ANSWERS = collected()
RECORD = {row["place"]: row for row in read()}
ALL = pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.place.replace(" ", "-"))


@ALL
def test_each_answer_gets_the_verdict_and_the_name_that_were_looked_through(answer: Answer):
    found = measured(answer)
    row = RECORD[answer.place]
    assert found == {key: row[key] for key in found}, "python tests/answers writes them anew"


@pytest.mark.parametrize("seed", [7, 2026])
def test_right_answers_are_right_with_other_numbers_too(seed):
    right = [answer for answer in ANSWERS if not answer.flaw]
    assert [a.place for a in right if measured(a, seed)["passed"] == "no"] == []


def test_all_are_caught_most_are_named_and_no_name_is_wrong(capsys):
    rows = list(RECORD.values())
    with capsys.disabled():
        print(f"\n{summary(rows)}")
    wrong, right = [r for r in rows if r["flaw"]], [r for r in rows if not r["flaw"]]
    assert len(wrong) >= 150 and len(right) >= 34
    assert {r["passed"] for r in wrong} == {"no"} and {r["passed"] for r in right} == {"yes"}
    assert sum(bool(r["name"]) for r in wrong) >= 0.85 * len(wrong)
    assert {r["fits"] for r in wrong if r["name"] or r["guess"]} == {"yes"}


def test_the_book_shows_these_counts():
    text = counts.as_csv(read(), counts.at_first())
    assert counts.FILE.read_text(encoding="utf-8") == text, "python tests/answers"
    rows = [{"place": "held_out 1", "flaw": "x", "passed": "yes", "name": "", "guess": "y"}]
    rows = [{**row, "fits": fits} for row in rows for fits in ("yes", "no")]
    none, *held = counts.as_csv(rows, [{**rows[0], "name": "z", "passed": "no"}]).splitlines()[1:]
    assert none == "first list" + 8 * ",0"
    assert held == ["held out,1,1,1,0,1,0,0,0", "held out; mended since,2,0,0,0,2,1,0,0"]


def test_answers_were_held_out_and_none_of_their_first_names_was_wrong():
    before, now = counts.at_first(), [r for r in read() if r["place"].startswith(counts.HELD_OUT)]
    same = ("place", "exercise", "flaw", "passed")
    assert [[r[key] for key in same] for r in before] == [[r[key] for key in same] for r in now]
    assert len(before) >= 40 and len({r["exercise"] for r in before}) >= 20
    assert {r["fits"] for r in before if r["name"] or r["guess"]} == {"yes"}
    for row, new in zip(before, now, strict=True):
        assert new["name"] == row["name"] or not row["name"], "names are added, not exchanged"
