"""The import path of the command: nothing in the current folder takes a library's place."""

import importlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

from pe_numpy.homework.registry import EXERCISES

ROOT = Path(__file__).parents[1]
CASES = len(EXERCISES["rope_frequencies"].all_cases())
OWN = """
def rope_frequencies(d, base=10000.0):
    return [base ** (-2 * i / d) for i in range(d // 2)]
"""


def test_the_current_folder_is_not_on_the_path_of_the_command(tmp_path):
    for name in ("numpy", "json", "random", "copy", "argparse"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "answers.py").write_text(OWN)
    command = ["-m", "pe_numpy", "check", "answers.py"]
    done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == f"answers.py\n  rope_frequencies: right in all {CASES} cases\n", done


def test_what_python_itself_takes_from_the_folder_ends_the_command(tmp_path):
    (tmp_path / "warnings.py").write_text("print('imported')")
    command = [sys.executable, "-m", "pe_numpy", "list"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    taken = done.stdout.startswith("imported")
    assert taken or sys.version_info >= (3, 12)  # newer ones import less before they begin
    assert done.returncode == int(taken)
    assert ("warnings.py in this folder took the place" in done.stderr) == taken
    command.insert(1, "-P")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0


def test_a_python_without_numpy_says_in_a_line_what_to_do(tmp_path):
    """-S leaves out site-packages, where NumPy is."""
    (tmp_path / "program.py").write_text("import pe_numpy\n")
    ends = {}
    for call in ("pe_numpy", "program"):
        command = [sys.executable, "-S", "-m", call]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1 and not done.stdout
        ends[call] = done.stderr
    assert ends["pe_numpy"].count("\n") == 1
    for way in ("source .venv/bin/activate", r".venv\Scripts\activate", "pip install numpy"):
        assert f"`{way}`" in ends["pe_numpy"].replace("python -m pip", "pip")
    assert "ModuleNotFoundError: No module named 'numpy'" in ends["program"]


def test_a_program_that_imports_the_package_keeps_its_path(tmp_path):
    (tmp_path / "beside.py").write_text("print('found')\n")
    (tmp_path / "program.py").write_text("import pe_numpy\nimport beside\n")
    command = [sys.executable, "-m", "program"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "found\n", done


def test_the_command_has_a_script():
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, name = metadata["scripts"]["pe-numpy"].partition(":")
    assert getattr(importlib.import_module(module), name)(["list"]) == 0
