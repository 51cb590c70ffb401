"""Encodings on trial: what kind each is, what it costs, how well models learn with it."""

from pe_numpy.judging.cache import cache_properties
from pe_numpy.judging.properties import properties
from pe_numpy.judging.schemes import score_function

__all__ = ["cache_properties", "properties", "score_function"]
