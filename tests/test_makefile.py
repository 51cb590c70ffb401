"""The Makefile: a reader's own environment changes nothing that its recipes see."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

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
    ours = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
    assert {name: seen[name] for name in OWN.keys() & seen} == ours
    assert KEPT.items() <= seen.items()
