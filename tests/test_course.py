"""Points of a class, from reports that are made up here: no file is run."""

import csv
import dataclasses
import io
import json

import pytest

import pe_numpy
from pe_numpy.homework import course
from pe_numpy.homework.cases import Case, Exercise
from pe_numpy.homework.check import Verdict
from pe_numpy.homework.course import Assignment, Grade, grade, groups_of, read_assignment
from pe_numpy.homework.registry import EXERCISES, check
from pe_numpy.homework.runner import Report
from pe_numpy.homework.variants import VARIANTS

WEEK = """
title = "Week 3"
deadline = "Friday, 18:00"
feedback = "name"
salt = "autumn"

[points]
rope_frequencies = 2
rope = { numbers = 2, options = 1, types = 0.5 }
"""
RIGHT = Verdict("rope_frequencies", True, 12)
NAMED = Verdict(
    "rope_frequencies",
    False,
    12,
    "3 of 4 numbers differ, by up to 0.9",
    mistake="exponent i/d for 2i/d",
    advice="secret advice",
    stage="secret stage",
    chapter=40,
    call="secret call",
    expected="secret numbers",
    given="their numbers",
    right=[False] * 12,
)


@pytest.fixture
def week(tmp_path):
    return written(tmp_path, WEEK)


def written(tmp_path, text):
    path = tmp_path / "week3.toml"
    path.write_text(text, encoding="utf-8")
    return read_assignment(path)


def rope_verdict(week, student, *wrong):
    """A verdict on rope with all the cases of these groups wrong."""
    right = [g not in wrong for g in groups_of(EXERCISES["rope"], week.seed_of(student))]
    return Verdict("rope", all(right), len(right), "numbers differ", right=right)


def given(week, student="anna", *verdicts, **options):
    options = {"seed": week.seed_of(student), **options}
    return grade(week, Report(f"{student}.py", list(verdicts), **options), student)


@pytest.fixture
def grades(week):
    return [
        given(week, "anna", RIGHT, rope_verdict(week, "anna")),
        given(week, "ben", NAMED, rope_verdict(week, "ben", "options"), flags=["copied"]),
        given(week, "cleo", problem="syntax error in line 2"),
    ]


# ---- the assignment ------------------------------------------------------------------------------


def test_an_assignment_is_read(week):
    assert (week.name, week.title, week.deadline) == ("week3", "Week 3", "Friday, 18:00")
    assert week.points["rope_frequencies"] == {"all": 2.0}
    assert week.points["rope"] == {"numbers": 2.0, "options": 1.0, "types": 0.5}
    assert (week.possible("rope"), week.total) == (3.5, 5.5)


def test_points_alone_are_an_assignment(tmp_path):
    week = written(tmp_path, "[points]\nrope = 1\n")
    assert (week.title, week.feedback, week.seed, week.salt) == ("week3", "full", 0, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rope = ", "week3.toml: it must be a file of TOML; Invalid value"),
        ("", r"a table \[points\] must give each exercise its points"),
        ("points = 3", r"a table \[points\] must give .* got 3"),
        ("[points]", r"must give each exercise its points, as in rope = 4; got {}"),
        ("[points]\nropes = 1", "week3.toml: there is no exercise 'ropes'; did you mean rope"),
        ("[points]\nrope = -1", "rope: points must be a number from 0; got -1"),
        ("[points]\nrope = nan", "rope: points must be a number from 0; got nan"),
        ("[points]\nrope = true", "rope: points must be a number from 0; got True"),
        ("[points]\nrope = 'many'", "rope: points must be a number from 0; got 'many'"),
        ("[points]\nrope = 0", "rope: there must be points for something; got 0"),
        ("[points]\nrope = {}", "rope: there must be points for something; got {}"),
        ("[points]\nrope = {option = 1}", "no group of cases 'option'; did you mean options"),
        ("[points]\nto_digits = {types = 1}", "no group of cases 'types'; there are all, "),
        ("titles = 'x'\n[points]\nrope = 1", "no key 'titles'; did you mean title"),
        ("feedback = 'some'\n[points]\nrope = 1", "must be one of full, name, none; got 'some'"),
        ("seed = -1\n[points]\nrope = 1", "seed must be a whole number from 0; got -1"),
        ("seed = true\n[points]\nrope = 1", "seed must be a whole number from 0; got True"),
        ("seed = 1\nsalt = 'a'\n[points]\nrope = 1", "got both, 1 and 'a'"),
        ("variants = true\n[points]\nrope = 1", "variants must be true or false, and need a salt"),
    ],
)
def test_what_is_wrong_with_an_assignment_is_told(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        written(tmp_path, text)


def test_a_salt_gives_each_student_a_seed_of_their_own(week, tmp_path):
    assert week.seed_of("anna") == course.seed_of("autumn", "anna") != week.seed_of("ben")
    plain = written(tmp_path, "seed = 7\n[points]\nrope = 1")
    assert plain.seed_of("anna") == plain.seed_of("ben") == 7


def test_a_variant_comes_from_salt_student_and_exercise(tmp_path):
    text = "variants = true\nsalt = '{}'\n[points]\nrope = 1\nsoftmax = 1\nrotary_scores = 1"
    one, other = (written(tmp_path, text.format(salt)) for salt in ("autumn", "spring"))
    names = [[week.names_of(f"s{n}") for n in range(20)] for week in (one, other)]
    assert names[0] != names[1] and names[0] == [one.names_of(f"s{n}") for n in range(20)]
    assert {own["softmax"] for own in names[0]} == {"softmax"}  # which has none
    for name in ("rope", "rotary_scores"):
        assert {own[name] for own in names[0]} == {f"{name}_{word}" for word in VARIANTS[name]}
    turned = [
        [own[name].endswith("turned") for own in names[0]] for name in ("rope", "rotary_scores")
    ]
    assert turned[0] != turned[1]
    assert dataclasses.replace(one, variants=False).names_of("s1")["rope"] == "rope"


def test_cases_are_grouped_by_what_is_special_in_them():
    def function(x, n=2, table=None):
        return x

    def cases(rng):
        ones = pe_numpy.checks.np.ones(2)
        yield Case((ones,), {})
        yield Case((ones, 2), {"table": None})  # the defaults, written out
        yield Case((ones, 3), {})
        yield Case((ones,), {"table": ones})
        yield Case((ones.astype("f4"),), {})
        yield Case(({"a": (ones, [ones.astype("f2")])},), {})
        yield Case((ones.astype("f4"),), {"n": 1})

    found = groups_of(Exercise("function", function, cases))
    assert found == [*["numbers"] * 2, *["options"] * 2, *["types"] * 2, "options"]


# ---- the grade -----------------------------------------------------------------------------------


def test_points_are_for_all_cases_or_for_none(grades):
    assert [one.points["rope_frequencies"] for one in grades] == [2, 0, 0]


def test_points_are_given_group_by_group(week, grades):
    assert [one.points["rope"] for one in grades] == [3.5, 2.5, 0]
    for wrong, points in (("types", 3), ("numbers", 1.5)):
        assert given(week, "anna", rope_verdict(week, "anna", wrong)).points["rope"] == points
    one_case = rope_verdict(week, "anna")
    one_case.passed, one_case.right[0] = False, False  # the first is one of numbers
    assert given(week, "anna", one_case).points["rope"] == 1.5


def test_points_for_all_cases_stand_beside_those_of_groups(tmp_path):
    week = written(tmp_path, "[points]\nrope = {all = 4, options = 1}")
    assert given(week, "anna", rope_verdict(week, "anna")).points["rope"] == 5
    assert given(week, "anna", rope_verdict(week, "anna", "types")).points["rope"] == 1


def test_who_fails_every_case_gets_nothing_for_a_group_that_has_no_cases(week, monkeypatch):
    monkeypatch.setattr(course, "groups_of", lambda *_: ["numbers", "options"])
    verdict = Verdict("rope", False, 2, "numbers differ", right=[True, False])
    assert given(week, "anna", verdict).points["rope"] == 2  # not the half for types


def test_what_was_not_run_gets_no_points(week):
    ended = Verdict("rope", False, 0, "it did not end within 20 seconds")
    assert given(week, "anna", ended).points == {"rope_frequencies": 0, "rope": 0}


def test_a_student_is_known_by_the_file_or_by_its_folder(tmp_path):
    named = [f"{tmp_path}/{name}.py" for name in ("anna", "ben")]
    assert course.students_of(named, "week3") == ["anna", "ben"]
    by_folder = [f"{tmp_path}/{name}/week3.py" for name in ("anna", "ben")]
    assert course.students_of(by_folder, "week3") == ["anna", "ben"]
    other = [f"{tmp_path}/{name}/answers.py" for name in ("anna", "ben")]
    assert course.students_of(other, "week3") == ["anna/answers", "ben/answers"]
    twice = [f"{tmp_path}/anna.{suffix}" for suffix in ("py", "ipynb")]
    here = tmp_path.name
    assert course.students_of([*twice, named[1]]) == [
        *(f"{here}/anna.py", f"{here}/anna.ipynb", "ben")
    ]
    with pytest.raises(ValueError, match=r"one file per student; got answers.py twice"):
        course.students_of([other[0]] * 2)


def test_files_of_students_have_names_that_every_system_keeps_apart():
    found = course.file_names(["anna b", "anna_b", "Anna_B", "ben", "../ben"])
    assert [*found.values()] == ["anna_b", "anna_b-2", "Anna_B-3", "ben", ".._ben"]


def test_a_deadline_is_a_time_or_a_text(tmp_path):
    for told, due in {
        '"Friday, 18:00"': None,
        "1970-01-02T01:00:00+01:00": 86400,
        "1970-01-02T00:00:00Z": 86400,
    }.items():
        week = written(tmp_path, f"deadline = {told}\n[points]\nrope = 1")
        assert (week.due and week.due.timestamp()) == due and week.deadline
    assert course.late_by(week.due, 86400) == "" and course.late_by(None, 9e9) == ""
    assert course.late_by(week.due, 86461.5) == "late by 0:01:01"
    day = written(tmp_path, "deadline = 1970-01-02\n[points]\nrope = 1").due
    assert (day.day, day.hour, day.minute) == (2, 23, 59)  # of this machine


def test_a_roster_has_a_row_for_each_student(week, grades, tmp_path):
    path = tmp_path / "roster.csv"
    path.write_text("id,name\ndan,Dan\ncleo,Cleo\nben,Ben\n", encoding="utf-8-sig")
    found = course.of_roster(week, grades, course.read_roster(path))
    assert [one.student for one in found] == ["dan", "cleo", "ben", "anna"]
    assert [one.total for one in found] == [0, 0, 2.5, 5.5]
    assert found[0].notes == "handed in nothing" and found[3].notes == "not on the roster"
    for text, message in (("id\nben\nben", "got two ben"), ("id\n", "a head and a row for each")):
        path.write_text(text)
        with pytest.raises(ValueError, match=rf"roster.csv: .*{message}"):
            course.read_roster(path)


# ---- what students are told ----------------------------------------------------------------------


def test_full_feedback_tells_all():
    assert course.limited(NAMED, "full") is NAMED


def test_a_name_is_told_alone():
    said = str(course.limited(NAMED, "name"))
    assert "exponent i/d for 2i/d" in said and "chapter 40" in said
    assert "secret" not in said and "their numbers" not in said


def test_none_tells_that_it_is_wrong_and_no_more():
    assert str(course.limited(NAMED, "none")) == "rope_frequencies: not right in all cases"
    assert course.limited(RIGHT, "none") is RIGHT


@pytest.mark.parametrize("level", ["name", "none"])
def test_what_kept_a_function_from_being_run_is_told_at_every_level(level):
    verdict = Verdict("rope", False, 0, "it did not end within 20 seconds (line 3)")
    assert "did not end" in str(course.limited(verdict, level))
    stub = check("rope", lambda *_: exec("raise NotImplementedError"))
    assert stub.cases and "is not written yet" in str(course.limited(stub, level))


@pytest.mark.parametrize("level", ["name", "none"])
def test_nothing_is_told_that_the_level_holds_back(tmp_path, level):
    week = written(tmp_path, f"feedback = '{level}'\n[points]\nrope_frequencies = 2")
    one = given(week, "ben", NAMED)
    for text in (course.told(week, one), course.as_json(week, [one])):
        assert "secret" not in text and "their numbers" not in text
        assert ("exponent i/d" in text) == (level == "name")
    assert "secret call" in course.told(week, one, "full")


def test_a_student_reads_points_version_and_seed(week, grades):
    right, wrong, broken = (course.told(week, one) for one in grades)
    assert right.splitlines()[0] == "Week 3: anna, 5.5 of 5.5 points"
    assert "  rope_frequencies: right in all 12 cases (2 of 2)" in right.splitlines()
    assert "  rope_frequencies: exponent i/d for 2i/d (0 of 2)" in wrong.splitlines()
    assert "  rope: numbers differ (2.5 of 3.5)" in wrong.splitlines()
    assert "  flag: copied" in wrong.splitlines() and "flag" not in right
    assert broken.splitlines()[1] == "  syntax error in line 2"
    stamp = f"pe_numpy {pe_numpy.__version__}, week3, seed {week.seed_of('ben')}"
    assert wrong.splitlines()[-1].strip() == stamp


# ---- tables --------------------------------------------------------------------------------------


def test_the_table_has_a_line_for_each_student(week, grades):
    _, head, _, anna, ben, cleo = course.table(week, grades).splitlines()
    assert head.split() == ["student", "rope_frequencies", "rope", "total"]
    assert anna.split() == ["anna", "2", "3.5", "5.5"]
    assert ben.split() == ["ben", "0", "2.5", "2.5", "copied"]
    assert cleo.endswith("0  syntax error in line 2")


def test_csv_has_a_line_for_each_student(week, grades):
    rows = list(csv.DictReader(io.StringIO(course.as_csv(week, grades))))
    keys = ("student", "rope_frequencies", "rope", "total", "possible")
    assert [[row[key] for key in keys] for row in rows] == [
        ["anna", "2", "3.5", "5.5", "5.5"],
        ["ben", "0", "2.5", "2.5", "5.5"],
        ["cleo", "0", "0", "0", "5.5"],
    ]
    assert rows[1]["mistakes"] == "rope_frequencies: exponent i/d for 2i/d; rope: another mistake"
    assert [row["notes"] for row in rows] == ["", "copied", "syntax error in line 2"]
    assert rows[1]["seed"] == str(week.seed_of("ben")) and rows[1]["assignment"] == "week3"


def test_no_cell_of_the_csv_is_a_formula(week):
    one = given(week, "=1+1", problem="@problem")
    (row,) = csv.DictReader(io.StringIO(course.as_csv(week, [one])))
    assert row["student"] == "'=1+1" and row["notes"] == "'@problem"


def test_json_has_seed_version_and_assignment(week, grades):
    whole = json.loads(course.as_json(week, grades))
    assert whole["version"] == pe_numpy.__version__ and whole["assignment"]["name"] == "week3"
    assert [one["seed"] for one in whole["grades"]] == [
        week.seed_of(student) for student in ("anna", "ben", "cleo")
    ]
    assert week.salt == "autumn" and "salt" not in whole["assignment"]
    assert whole["grades"][1]["points"] == {"rope_frequencies": 0, "rope": 2.5}
    assert whole["grades"][2]["verdicts"][0]["problem"] == "syntax error in line 2"


# As gradescope-autograders.readthedocs.io/en/latest/specs has it: each key with its type; and
# the words that a visibility and a status may be.
GRADESCOPE = {"score": float, "execution_time": float, "output": str, "output_format": str}
GRADESCOPE |= {"visibility": str, "stdout_visibility": str, "extra_data": dict, "tests": list}
GRADESCOPE_TEST = {"score": float, "max_score": float, "status": str, "name": str, "number": str}
GRADESCOPE_TEST |= {"output": str, "tags": list, "visibility": str, "extra_data": dict}
VISIBLE = {"hidden", "after_due_date", "after_published", "visible"}


def test_gradescope_gets_its_published_form(week, grades):
    for one in grades:
        whole = json.loads(course.as_gradescope(week, one))
        for row, form in [(whole, GRADESCOPE), *((t, GRADESCOPE_TEST) for t in whole["tests"])]:
            assert row.keys() <= form.keys()
            assert all(isinstance(value, form[key]) for key, value in row.items())
            assert {row["visibility"], row.get("stdout_visibility", "visible")} <= VISIBLE
            assert row.get("status", "passed") in ("passed", "failed")
        assert whole["score"] == sum(t["score"] for t in whole["tests"]) == one.total
        assert sum(t["max_score"] for t in whole["tests"]) == week.total
        assert whole["extra_data"]["seed"] == week.seed_of(one.student)
        # The top's default is HTML, and hidden tests hide the total.
        assert whole["output_format"] == "text"
        assert whole["output"].startswith(f"{one.total:g} of 5.5 points\n")


def test_gradescope_shows_after_the_deadline_what_was_held_back(week):
    tests = json.loads(course.as_gradescope(week, given(week, "ben", NAMED)))["tests"]
    now = [t["output"] for t in tests if t["visibility"] == "visible"]
    later = [t["output"] for t in tests if t["visibility"] == "after_due_date"]
    assert "secret" not in "".join(now) and "secret call" in later[0]


# ---- the class -----------------------------------------------------------------------------------


def test_the_summary_counts_mistakes(week, grades):
    found = course.summary(week, [*grades, given(week, "dan", NAMED)])
    assert found["rope_frequencies"] == {"right": 1, "exponent i/d for 2i/d": 2, "not run": 1}
    assert next(iter(found["rope_frequencies"])) == "exponent i/d for 2i/d"  # the commonest first
    assert found["rope"] == {"right": 1, "another mistake": 1, "not run": 2}
    stub = check("rope", lambda *_: exec("raise NotImplementedError"))
    assert course.summary(week, [given(week, "eva", stub)])["rope"] == {"not run": 1}
    lines = course.summary_text(found).splitlines()
    assert lines[0] == "rope_frequencies: 1 of 4 right"
    assert lines[1] == "     2  exponent i/d for 2i/d"
    assert not any(line.endswith("  right") for line in lines)


def test_an_assignment_can_be_made_without_a_file():
    plain = Assignment("quiz", "Quiz", {"rope": {"all": 1.0}})
    assert Grade("anna", Report("anna.py"), {"rope": 1.0}, {}).total == plain.total == 1
