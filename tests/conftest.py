"""Settings of all tests: the same hypothesis examples on every run, and no clock in any verdict."""

from hypothesis import settings

settings.register_profile("book", derandomize=True, deadline=None)
settings.load_profile("book")

collect_ignore = ["golden/make.py", "golden/make_models.py"]  # for environments that have torch
