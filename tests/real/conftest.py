"""Only `make test-real` collects this folder: it needs trained weights, which nobody commits.

They lie in `weights/`, or in the folder that PE_NUMPY_WEIGHTS names: MiniLM in `minilm`, Gemma in
`gemma` there.
"""

import functools
import os
from pathlib import Path

import pytest

from pe_numpy import load_model

ROOT = Path(__file__).parent.parent.parent
WEIGHTS = Path(os.environ.get("PE_NUMPY_WEIGHTS") or ROOT / "weights")


def pytest_ignore_collect(config):
    return None if config.rootpath == Path(__file__).parent else True


@pytest.fixture(scope="session")
def minilm():
    """A function that loads all-MiniLM-L6-v2, in a dtype."""
    folder = WEIGHTS / "minilm"
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}: `make real` fetches it")
    return functools.cache(functools.partial(load_model, folder))
