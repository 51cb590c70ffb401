"""The Makefile and make.py: a reader's environment changes nothing; both run the same."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import script

ROOT = Path(__file__).parent.parent
SHOW = "show:\n\t@env\n"
OWN = {
    "PYTHONPATH": "elsewhere",
    "PYTHONSTARTUP": "startup.py",
    "PYTHONOPTIMIZE": "2",
    "PYTHONHASHSEED": "7",
    "PYTHONSAFEPATH": "1",
    "PYTEST_ADDOPTS": "-k nothing",
    "NPY_DISABLE_CPU_FEATURES": "AVX2",
    "OPENBLAS_NUM_THREADS": "8",
    "OPENBLAS_CORETYPE": "Haswell",
    "IPYTHONDIR": "profile",
    "JUPYTER_CONFIG_DIR": "profile",
    "MPLBACKEND": "TkAgg",
    "MATPLOTLIBRC": "matplotlibrc",
    "PIP_TARGET": "elsewhere",
    "UV_PYTHON": "3.9",
}
OURS = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
KEPT = {"PIP_INDEX_URL": "of the house", "UV_INDEX_URL": "of the house", "HTTPS_PROXY": "proxy"}


@pytest.mark.skipif(not shutil.which("make"), reason="this system has no make")
def test_settings_of_a_reader_are_not_passed_on_and_addresses_are(tmp_path):
    (tmp_path / "show.mk").write_text(SHOW)
    done = subprocess.run(
        ["make", "-s", "-f", "Makefile", "-f", tmp_path / "show.mk", "show"],
        cwd=ROOT,
        env={**os.environ, **OWN, **KEPT},
        capture_output=True,
        text=True,
        check=True,
    )
    seen = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    assert {name: seen[name] for name in OWN.keys() & seen} == OURS
    assert KEPT.items() <= seen.items()


def last_words():
    """The lines that `make` prints at its end."""
    done = subprocess.run(["make", "-n", "all"], cwd=ROOT, capture_output=True, text=True)
    said = [line for line in done.stdout.splitlines() if line.startswith("echo")]
    return subprocess.run(["sh", "-c", "\n".join(said)], capture_output=True, text=True).stdout


@pytest.mark.skipif(not shutil.which("make"), reason="this system has no make")
@pytest.mark.skipif(not shutil.which("bash"), reason="this system has no bash")
def test_the_last_words_of_make_are_lines_that_work(tmp_path):
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = f'python() {{ PYTHONPATH={ROOT} {sys.executable} "$@"; }}\n'
    (tmp_path / ".venv" / "bin" / "activate").write_text(python)
    lines = re.findall(r"^    (.*)$", last_words(), re.M)
    assert len(lines) == 3
    for line in lines:
        command = ["bash", "-c", line]
        if line.startswith("make "):
            command = ["make", "-n", *line.partition("#")[0].split()[1:]]
        cwd = ROOT if line.startswith("make ") else tmp_path
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stderr)
    assert " rope " in done.stdout and lines[-1].startswith("source .venv/bin/activate && ")


def test_the_targets_that_help_lists_are_no_files():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split()
    assert set(re.findall(r"^([a-z-]+):.*## ", text, re.M)) <= set(phony)


# ---- make.py, where there is no make ------------------------------------------------------------


@pytest.fixture
def make():
    return script("make.py")


def test_make_py_has_the_variables_of_the_makefile(make, monkeypatch):
    for name, value in {**OWN, **KEPT}.items():
        monkeypatch.setenv(name, value)
    seen = make.environment()
    assert {name: seen[name] for name in OWN.keys() & seen} == OURS
    assert KEPT.items() <= seen.items() and seen["SOURCE_DATE_EPOCH"] == "0"


@pytest.mark.skipif(not shutil.which("make"), reason="this system has no make")
def test_make_py_runs_the_commands_of_the_makefile(make):
    for target, commands in make.TARGETS.items():
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        ran = re.findall(r"^\.venv/bin/python (.*)$", done.stdout, re.M)
        assert ran[-len(commands) :] == commands


def test_make_py_sets_up_once_and_again_for_another_lock(make, monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(make, "HOME", tmp_path)
    monkeypatch.setattr(make, "LOCK", tmp_path / "dev.lock")
    monkeypatch.setattr(make.venv, "create", lambda folder, **_: calls.append(folder))
    monkeypatch.setattr(make, "python", lambda *arguments: calls.append(arguments))
    for name in ("dev.lock", "bootstrap.lock"):
        (tmp_path / name).touch()
    make.set_up()
    assert calls[0] == tmp_path and calls[-1][-2:] == ("-e", ".") and len(calls) == 4
    make.set_up()
    assert len(calls) == 4
    later = (tmp_path / "ok").stat().st_mtime + 10
    os.utime(tmp_path / "dev.lock", (later, later))
    make.set_up()
    assert len(calls) == 8


def test_make_py_ends_with_the_code_of_what_fails_and_refuses_what_it_does_not_know(make):
    with pytest.raises(SystemExit) as ended:
        make.main(["tests"])
    assert "it knows all and test; got tests" in str(ended.value)
    assert ".venv" in make.last_words()
    make.BIN = Path(sys.executable).parent
    with pytest.raises(SystemExit) as ended:
        make.python("-c", "raise SystemExit(3)")
    assert ended.value.code == 3
