"""How nbval checks the notebooks here: strictly, and pictures byte by byte."""

import platform
import re
import sys
from pathlib import Path

import matplotlib
import pytest

from pe_numpy.book import ignore_settings

ignore_settings()
collect_ignore_glob = ["*.py"]  # the reviewed sources are not test modules

LOCK = Path(__file__).parent.parent / "requirements" / "dev.lock"
LOCKED = re.search(r"^matplotlib==(\S+)", LOCK.read_text(), re.M)[1] == matplotlib.__version__
SAME_BYTES = LOCKED and sys.platform == "linux" and platform.machine() == "x86_64"


@pytest.hookimpl(tryfirst=True)
def pytest_collectstart(collector):
    """Compare PNG outputs too, which nbval skips, where equal bytes are promised."""
    if type(collector).__name__ == "IPyNbFile" and SAME_BYTES:
        collector.skip_compare = tuple(k for k in collector.skip_compare if k != "image/png")
