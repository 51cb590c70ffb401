"""The package as a whole: what importing it brings in, and what it offers."""

import subprocess
import sys

import pytest

import pe_numpy


def test_import_brings_in_numpy_and_the_standard_library_alone():
    program = (
        "import sys; before = set(sys.modules); import pe_numpy; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    foreign = set(run.stdout.split()) - set(sys.stdlib_module_names) - {"numpy", "pe_numpy"}
    assert not {name for name in foreign if not name.startswith("_")}
    assert "numpy" in run.stdout.split()


def test_the_homework_is_loaded_when_it_is_asked_for():
    program = (
        "import sys; import pe_numpy; print('pe_numpy.homework' in sys.modules); "
        "print(pe_numpy.check.__name__, 'pe_numpy.homework' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["False", "check", "True"]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        pe_numpy.nothing  # noqa: B018


def test_every_public_name_is_listed_by_its_place_in_the_package_docstring():
    listed = pe_numpy.__doc__.split("The axis letters")[0].replace(",", " ").split()
    assert set(pe_numpy.__all__) <= set(listed)
    assert pe_numpy.__all__ == sorted(pe_numpy.__all__)
    assert all(callable(getattr(pe_numpy, name)) for name in pe_numpy.__all__)
