"""Who handed in one function twice, with other names and comments."""

import time
from itertools import combinations

import pytest

from pe_numpy.copy.copy import SOLUTIONS, copy
from pe_numpy.homework.likeness import ALIKE, LEAST, alike, functions_of, likeness, runs_of

OWN = '''import numpy as np


def rope(x, positions, frequencies=None, layout="interleaved"):
    """Turn."""
    if frequencies is None:
        frequencies = 10000.0 ** (-2 * np.arange(x.shape[-1] // 2) / x.shape[-1])
    angles = np.multiply.outer(positions, frequencies)
    z = np.exp(1j * angles) * (x[..., 0::2] + 1j * x[..., 1::2])  # complex numbers turn
    result = np.empty_like(x)
    result[..., 0::2], result[..., 1::2] = z.real, z.imag
    return result
'''
RENAMED = OWN
for name, other in {
    "angles": "phi", "result": "out", "positions": "where", "(x": "(data", " x[": " data[",
    " x.": " data.", " x)": " data)", "like(x)": "like(data)", "  # complex numbers turn": "",
    '    """Turn."""\n': "    # my own\n", " z ": " pairs ", "z.": "pairs.",
}.items():  # fmt: skip
    RENAMED = RENAMED.replace(name, other)


@pytest.fixture
def files(tmp_path):
    """Students' files by name."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        return {name: str(tmp_path / f"{name}.py") for name in texts}

    return write


def test_names_and_comments_hide_nothing(files):
    assert "phi" in RENAMED and "x" not in RENAMED.replace("np.exp", "").split()
    assert alike(files(anna=OWN, ben=RENAMED), ["rope"]) == ["alike in rope: anna, ben"]


def test_a_variant_is_compared_under_its_own_name(files):
    texts = files(anna=OWN, ben=RENAMED.replace("def rope(", "def rope_turned("))
    assert alike(texts, ["rope"]) == []
    told = alike(texts, ["rope"], {"ben": {"rope": "rope_turned"}})
    assert told == ["alike in rope: anna, ben"]


def test_a_copy_of_the_book_is_told_without_its_notice(files):
    plain = copy(["rope"], plain=True)
    plain = plain[plain.index("import numpy") :]
    assert alike(files(anna=OWN, ben=plain), ["rope"]) == ["alike in rope: ben, the book"]


def test_another_way_of_writing_is_another(files):
    loops = OWN.replace("np.multiply.outer(positions, frequencies)", "angles_of(positions)")
    loops = loops.replace(
        "result[..., 0::2], result[..., 1::2] = z.real, z.imag", "fill(result, z)"
    )
    assert alike(files(anna=OWN, ben=loops), ["rope"]) == []


def test_what_is_short_is_alike_by_nature(files):
    short = "def rope_frequencies(d, base=1e4):\n    return base ** (-2 * np.arange(d // 2) / d)\n"
    assert alike(files(anna=short, ben=short), ["rope_frequencies"]) == []


def test_solutions_of_different_exercises_are_not_alike():
    found = {
        name: runs_of(tokens)
        for path in SOLUTIONS.glob("*.py")
        for name, tokens in functions_of(path).items()
        if len(runs_of(tokens)) >= LEAST
    }
    near = [(a, b) for a, b in combinations(found, 2) if likeness(found[a], found[b]) >= ALIKE]
    assert not near


def test_what_can_not_be_read_is_like_nothing(files, tmp_path):
    paths = files(anna=OWN, ben="def rope(:", cleo=OWN) | {"dan": str(tmp_path), "eve": ""}
    assert alike(paths, ["rope", "softmax"]) == ["alike in rope: anna, cleo"]


def test_a_class_of_two_hundred_takes_seconds(files):
    texts = {f"s{n}": OWN.replace("10000.0", f"{n}.0") for n in range(200)}
    start = time.process_time()
    (line,) = alike(files(**texts), ["rope"])
    assert len(line.split(", ")) == 200 and time.process_time() - start < 20
