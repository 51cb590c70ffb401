"""Only `make test-real` collects this folder: it needs trained weights, which nobody commits.

They lie in `weights/`, or in the folder that PE_NUMPY_WEIGHTS names: MiniLM in `minilm`, Gemma in
`gemma` there.
"""

import functools
from pathlib import Path

import pytest

from pe_numpy import load_model
from pe_numpy.book.fetch import weights_folder

WEIGHTS = weights_folder()


def pytest_ignore_collect(config):
    return None if config.rootpath == Path(__file__).parent else True


@pytest.fixture(scope="session")
def minilm():
    """A function that loads all-MiniLM-L6-v2, in a dtype."""
    folder = WEIGHTS / "minilm"
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}: `make real` fetches it")
    return functools.cache(functools.partial(load_model, folder))
