"""Settings of all tests: the same hypothesis examples on every run, and no clock in any verdict."""

import gc
import os

from hypothesis import find, settings
from hypothesis import strategies as st

settings.register_profile("book", derandomize=True, deadline=None)
settings.load_profile("book")

if "PE_NUMPY_MISTAKE" in os.environ:  # of `tests/mutants.py`
    from mutants import plant

    plant(os.environ["PE_NUMPY_MISTAKE"])

collect_ignore_glob = ["golden/make*.py"]  # for environments that have torch


def pytest_collection_finish():
    """Let the garbage collector leave out the tests themselves: twelve thousand cost it much."""
    find(st.none(), lambda _: True)  # Hypothesis must see who holds its generator: before freezing
    gc.collect()
    gc.freeze()
