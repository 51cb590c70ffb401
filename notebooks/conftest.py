"""How nbval checks the notebooks here: strictly, and pictures byte by byte."""

import re
from pathlib import Path

import matplotlib
import pytest

collect_ignore_glob = ["*.py"]  # the reviewed sources are not test modules

LOCK = Path(__file__).parent.parent / "requirements" / "dev.lock"
LOCKED = re.search(r"^matplotlib==(\S+)", LOCK.read_text(), re.M).group(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collectstart(collector):
    """Compare PNG outputs too, which nbval skips; another matplotlib draws other bytes."""
    if type(collector).__name__ == "IPyNbFile" and matplotlib.__version__ == LOCKED:
        collector.skip_compare = tuple(k for k in collector.skip_compare if k != "image/png")
