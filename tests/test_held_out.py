"""Answers that were written apart: what each says of itself is true, whatever the homework says."""

import pytest
from answers.apart import FOLDER, Held, held, untrue

ANSWERS, SECOND = held(), held(FOLDER.with_name("second"))


@pytest.mark.parametrize(
    "answer", [*ANSWERS, *SECOND], ids=lambda answer: answer.place.replace(" ", "-")
)
def test_the_wrong_are_wrong_on_their_own_call_and_the_right_are_right(answer: Held):
    assert untrue(answer) == ""


def test_there_are_a_hundred_wrong_and_twenty_right_and_their_first_score_is_kept():
    wrong = [a for a in ANSWERS if a.flaw]
    assert (len(wrong), len(ANSWERS) - len(wrong)) == (100, 20)
    assert all(a.says for a in wrong) and len({a.flaw for a in wrong}) == 100
    assert len({a.exercise for a in ANSWERS}) >= 45
    first = (FOLDER / "first_score.txt").read_text(encoding="utf-8")
    assert all(f"  {a.place}, {a.exercise}: {a.flaw}" in first for a in wrong)
    assert " of 100\n" in first and " of 20\n" in first


def test_the_second_list_has_42_wrong_and_8_right_and_mixes_two_mistakes_in_ten():
    wrong = [a for a in SECOND if a.flaw]
    assert (len(wrong), len(SECOND) - len(wrong)) == (42, 8)
    assert all(a.says for a in wrong) and len({a.flaw for a in wrong}) == 42
    assert len({a.exercise for a in SECOND}) >= 25
    assert sum(a.place.startswith("two_at_once ") for a in wrong) == 10
    first = (FOLDER.with_name("second") / "first_score.txt").read_text(encoding="utf-8")
    assert all(f"  {a.place}, {a.exercise}: {a.flaw}" in first for a in wrong)


def test_an_answer_that_is_other_than_it_says_is_told():
    right = next(a for a in ANSWERS if a.exercise == "alibi_slopes" and not a.flaw)
    wrong = next(a for a in ANSWERS if a.exercise == right.exercise and a.flaw)
    assert untrue(wrong._replace(function=right.function)) == "it is right on its own call"
    assert untrue(right._replace(function=wrong.function)).startswith("call 0: ")
