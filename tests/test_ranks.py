"""Ranks of one attention: processes together give what one gives, in little memory."""

import csv
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scripts import ROOT

from pe_numpy import attention, causal_mask
from pe_numpy.book.ranks import WIDTH, rank_attention, shards, tokens

LENGTH, RANKS, TILE = 512, 2, 64


def whole():
    at = np.arange(LENGTH)
    q, k, v = tokens(at, TILE)
    return attention(q, k, v, causal_mask(at, at))[0]


@pytest.mark.parametrize("name", ["contiguous", "zigzag"])
def test_ranks_together_compute_one_causal_attention(name):
    held, expected = shards(name, LENGTH, RANKS), whole()
    for rank in range(RANKS):
        outputs, tiles, peak = rank_attention(rank, name, LENGTH, RANKS, TILE)
        assert_allclose(outputs, expected[held[rank]], rtol=0, atol=1e-12)
        firsts, every = held[rank][::TILE], np.arange(0, LENGTH, TILE)
        assert tiles == (firsts[:, None] >= every).sum()
        assert outputs.nbytes < peak < LENGTH**2 * 8  # less than all scores would take


def test_processes_that_are_started_anew_compute_it_too():
    held, expected = shards("zigzag", LENGTH, RANKS), whole()
    given = [(r, "zigzag", LENGTH, RANKS, TILE) for r in range(RANKS)]
    with ProcessPoolExecutor(RANKS, get_context("spawn")) as pool:
        done = list(pool.map(rank_attention, *zip(*given, strict=True)))
    for rows, (outputs, _, _) in zip(held, done, strict=True):
        assert_allclose(outputs, expected[rows], rtol=0, atol=1e-12)


def test_each_process_makes_the_same_tokens_of_a_position():
    at = np.arange(LENGTH)
    some = shards("zigzag", LENGTH, RANKS)[0]
    assert_array_equal(tokens(some, TILE), tokens(at, TILE)[:, some])
    assert tokens(some, TILE).shape == (3, len(some), WIDTH)


def test_the_table_has_the_tiles_that_the_shards_need():
    with open(ROOT / "notebooks" / "results" / "context_parallel.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(r["shards"], int(r["rank"])) for r in rows] == [
        (name, rank) for name in ("contiguous", "zigzag") for rank in range(4)
    ]
    every = np.arange(0, 65_536, 512)
    for row in rows:
        firsts = shards(row["shards"], 65_536, 4)[int(row["rank"])][::512]
        assert int(row["tiles"]) == (firsts[:, None] >= every).sum()


def test_tiles_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="rank_attention: tile must divide the blocks of 128 tok"):
        rank_attention(0, "zigzag", LENGTH, RANKS, 100)
    with pytest.raises(ValueError, match="shards: name must be"):
        shards("striped", LENGTH, RANKS)
