"""Only `make bench` collects this folder: it needs PyTorch, and so an environment of its own."""

from pathlib import Path


def pytest_ignore_collect(config):
    return None if config.rootpath == Path(__file__).parent else True
