"""The package as a whole: what importing it brings in, and what it offers."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import pe_numpy

PACKAGE = Path(pe_numpy.__file__).parent
SUBJECT = "absolute", "relative", "rotary", "transformer", "training", "models"
# From the ground up: a room imports from its own floor nothing, from those above nothing.
FLOORS = (
    ("startup", "dispatch", "files"),
    ("checks",),
    ("absolute",),
    ("relative",),
    ("rotary",),
    ("transformer",),
    ("training", "models"),
    ("judging",),
    ("", "contents"),  # the face of the package
    ("copy",),
    ("homework",),
    ("book",),
    ("__main__",),
)


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


def test_every_public_name_is_on_the_face_of_one_room():
    assert len(pe_numpy.__all__) == len({*pe_numpy.__all__}) > 130
    for room in (getattr(pe_numpy, name) for name in (*SUBJECT, "judging")):
        assert room.__all__ == sorted(room.__all__)
        assert all(callable(getattr(room, name)) for name in room.__all__)
        assert all(getattr(room, name) is getattr(pe_numpy, name) for name in room.__all__)


def imports() -> dict[str, set[str]]:
    """Module -> the modules of this package that it imports, those inside functions too."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        name = ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)
        used = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pe_numpy"):
                inner = {f"{node.module}.{x.name}" for x in node.names}
                used |= {x if is_module(x) else node.module for x in inner}
        found[name.removesuffix(".__init__")] = used
    return found


def is_module(name: str) -> bool:
    place = PACKAGE.parent.joinpath(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def room_of(module: str) -> str:
    """The folder of a module; a file at the top of the package is a room of its own."""
    return [*module.split("."), ""][1]


def test_no_room_imports_one_above_it_and_none_reads_what_is_private():
    floor = {room: n for n, rooms in enumerate(FLOORS) for room in rooms}
    for module, used in imports().items():
        here = room_of(module)
        late = "pe_numpy.homework.registry" if module == "pe_numpy" else ""  # for `check`
        for other in map(room_of, used - {"pe_numpy", late}):
            assert here == other or floor[here] > floor[other], f"{module} imports {other}"
    for file in PACKAGE.rglob("*.py"):
        read = re.findall(
            r"^from pe_numpy\.\S+ import (.*|\([^)]*\))$", file.read_text("utf-8"), re.M
        )
        assert not re.search(r"\b_[a-z]", " ".join(read)), file


def test_no_module_imports_itself_by_way_of_others():
    tree = {module: used - {"pe_numpy"} for module, used in imports().items()}
    list(TopologicalSorter(tree).static_order())


def test_the_package_has_at_most_eight_files_at_its_top():
    assert len([*PACKAGE.glob("*.py")]) <= 8
    rooms = {file.parent.name for file in PACKAGE.glob("*/__init__.py")}
    assert rooms < {room for floor in FLOORS for room in floor}


def test_no_two_helpers_of_the_tests_have_one_name(pytestconfig):
    found = {}
    for folder in pytestconfig.getini("pythonpath"):
        for path in (pytestconfig.rootpath / folder).iterdir():
            if path.suffix == ".py" or (path / "__init__.py").exists():
                assert path.stem not in found, f"`import {path.stem}`: {path} or {found[path.stem]}"
                found[path.stem] = path
