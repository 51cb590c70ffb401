"""What is told of each function: its place, its chapter, its source."""

import pytest

import pe_numpy
from pe_numpy import contents


def test_each_public_name_has_one_chapter_and_one_place():
    placed = [name for _, names in contents.places() for name in names]
    assert sorted(placed) == sorted(pe_numpy.__all__)
    assert all(10 <= contents.chapter_of(name) <= 73 for name in placed)


@pytest.mark.parametrize("name", pe_numpy.__all__)
def test_each_public_name_has_a_summary_and_a_source(name):
    assert 10 < len(contents.summary_of(name)) < 150
    assert len(contents.source_of(name)) > 5


def test_known_names_pass_and_others_get_a_suggestion():
    assert contents.known_name("rope") == "rope"
    with pytest.raises(ValueError, match="did you mean sinusoidal"):
        contents.known_name("sinusodial")
    with pytest.raises(ValueError, match="list"):
        contents.known_name("zzz")
