"""What a cache of keys must hold for an encoding, and what may be done to it, found by trying.

Source: our own measurement, on the five methods of an encoding and nothing else: neither its name
nor what it says of itself. What is tried is common practice: prefill and chunks, padding on the
left, sliding windows, the renumbered slots of StreamingLLM (Xiao et al. 2024, arXiv:2309.17453).

Axes: B batch (1), H heads, L queries, S keys, D model width, K width of one head.
Symbols: none.
Convention: a query sees itself and what is before it. Padding stands on the left, is hidden, and
its gates are 0.
Differs from the paper: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pe_numpy import checks
from pe_numpy.transformer.attention import attend, causal_mask, split_heads
from pe_numpy.transformer.context import Context
from pe_numpy.transformer.encodings.base import Encoding, Shape, as_if_trained

HEADS = 2
PADDING = 7  # odd: a scheme of groups or chunks must not take it for a whole number of them
GONE = [2, 3, 5]  # tokens that are thrown away: more than one gap

Tokens = dict[str, np.ndarray]  # of some tokens: "k", "v", "gates" and "turned", S on axis 2


class CacheProperties(NamedTuple):
    """What `cache_properties` found, and says of each field; values are always kept."""

    keys: str  # "plain", "coded", "turned", "raw" or "none"
    positions: bool
    gates: str  # "none", "own", "sums" or "all"
    chunks: bool
    padding: str  # "slots", "real" or "no"
    eviction: bool
    renumbering: str  # "any", "raw" or "no"

    @property
    def holds(self) -> str:
        """What a cache holds beside the values, in a few words."""
        if self.keys == "none":
            return "nothing that would serve"
        kind = {
            "plain": "keys",
            "coded": "keys, their positions inside",
            "turned": "rotated keys",
            "raw": "unrotated keys",
        }
        gates = {"none": "", "sums": " and sums of gates"}.get(self.gates, " and gates")
        keys = kind[self.keys] + " and positions" * self.positions + gates
        return keys if self.eviction else f"all {keys}"


def cache_properties(encoding: Encoding, length: int = 40, d_head: int = 8) -> CacheProperties:
    """Try what a cache must hold, and what may be done to it, on a layer of random numbers.

    Parameters
    ----------
    encoding : Encoding
        Any: what its `embed`, `turn`, `gates`, `scores` and `mix` do is all that counts.
    length : int
        Positions that are tried, 0 to length - 1; at least 16. What a scheme does from a greater
        length on is not seen.
    d_head : int
        Width K of a head; two heads are tried.

    Returns
    -------
    CacheProperties, a tuple of
        keys : as what they may be kept, so that the newest row is right: "plain", if nothing tells
        where they stood; "coded", if their token vectors did; "turned", as they were when they were
        written; "raw", to be rotated again at each step; "none", if not even those are right.
        positions : whether the position of each key must be kept beside it, for the gaps that
        eviction leaves.
        gates : which must be kept: "none", if there are none; "own", those of the keys that stay;
        "sums", the sum up to each key that stays; "all", those of evicted keys, too.
        chunks : whether a text in pieces has the rows of the whole. If not, old rows change as it
        grows, and keys of deeper layers, which are made from such rows, grow stale.
        padding : which positions are right with padding on the left: "slots", even those that count
        it; "real", those that count only real tokens; "no", neither.
        eviction : whether keys that stay at their positions keep their scores.
        renumbering : which keys may move up into the gaps, as if the tokens there had never been:
        "any"; "raw", those that were not turned; "no", none.
        The property `holds` says in a few words what a cache holds. Right means up to 1e-9.

    Raises
    ------
    ValueError
        If the length is below 16 or more than the table holds.

    Notes
    -----
    Source: our own; see the module. Parameters that begin at 0 are drawn, so that they say
    something.

    Examples
    --------
    >>> class Coded(Encoding):
    ...     def embed(self, params, x, positions):
    ...         return x + positions[..., None]
    >>> cache_properties(Encoding()).holds, cache_properties(Coded()).holds
    ('keys', 'keys, their positions inside')
    >>> cache_properties(Coded()).renumbering
    'no'
    """
    if not isinstance(encoding, Encoding):
        raise ValueError(
            f"cache_properties: encoding must be an Encoding, such as Rope(); got {encoding!r}"
        )
    checks.integer("cache_properties", "length", length, least=16)
    checks.integer("cache_properties", "d_head", d_head)
    layer, n = _Layer(encoding, d_head), length - PADDING
    x, at = layer.rng.standard_normal((1, n, HEADS * d_head)), np.arange(n)
    whole = layer.read(x, at, (0, n), turned=False)[0]
    keys, rows, kept = _keys(layer, x, at, whole)
    turned = keys not in ("raw", "none")
    pieces = layer.read(x, at, (0, 3, 5, n - 2, n), turned)[0]
    positions, gates, eviction = _evict(layer, x, at, turned, kept, whole)
    return CacheProperties(
        keys,
        positions,
        gates,
        chunks=_equal(rows, whole) and _equal(pieces, whole),
        padding=_pad(layer, x, at, turned, rows),
        eviction=eviction,
        renumbering=_renumber(layer, x, at, kept),
    )


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.allclose(a, b, rtol=0, atol=1e-9))


class _Layer:
    """One layer of attention: random weights, and the methods of the encoding."""

    def __init__(self, encoding: Encoding, d_head: int) -> None:
        self.encoding, self.rng = encoding, np.random.default_rng(0)
        D = HEADS * d_head
        self.params = as_if_trained(encoding, self.rng, Shape(D, HEADS))
        self.weights = self.rng.standard_normal((3, D, D)) / np.sqrt(D)

    def make(self, x: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, Tokens]:
        """Queries of tokens (1, L, D) at their positions; and what can be kept of them."""
        x = self.encoding.embed(self.params, x, at)
        q, k, v = (split_heads(x @ W, HEADS) for W in self.weights)  # (1, H, L, K)
        gates = self.encoding.gates(self.params, x)  # (1, H, L)
        return q, {"k": k, "v": v} if gates is None else {"k": k, "v": v, "gates": gates}

    def turn(self, q: np.ndarray, k: np.ndarray, q_at: np.ndarray, k_at: np.ndarray) -> np.ndarray:
        """Keys of the queries, which are the last, turned in the sequence as it is."""
        return self.encoding.turn(self.params, q, k, Context(q_at, k_at))[1][:, :, -q.shape[2] :]

    def see(
        self,
        q: np.ndarray,
        kept: Tokens,
        q_at: np.ndarray,
        k_at: np.ndarray,
        turned: bool,
        mask: np.ndarray | None = None,
    ) -> np.ndarray:
        """Scores and outputs side by side, (1, H, L, S + K), from keys kept turned or raw."""
        if mask is None:
            mask = np.ones((q.shape[2], kept["k"].shape[2]), bool)
        context = Context(q_at, k_at, mask, kept.get("gates"))
        q, k = self.encoding.turn(self.params, q, kept["k"], context)
        k = kept["turned"] if turned else k
        scores = self.encoding.scores(self.params, q, k, context)
        mixed, weights = attend(scores, kept["v"], mask)
        mixed = self.encoding.mix(self.params, weights, kept["v"], context)
        return np.concatenate([np.where(mask, scores, 0), mixed], axis=-1)

    def read(
        self,
        x: np.ndarray,
        at: np.ndarray,
        cuts: Iterable[int],
        turned: bool,
        real: np.ndarray | None = None,
    ) -> tuple[np.ndarray, Tokens]:
        """Rows (1, H, S, S + K) of a text read in pieces, and what is kept of it."""
        S = x.shape[1]
        real = np.ones(S, bool) if real is None else real
        mask = causal_mask(np.arange(S), np.arange(S)) & real
        rows: list[np.ndarray] = []
        kept: Tokens = {}
        for start, stop in pairwise(cuts):
            now = slice(start, stop)
            q, new = self.make(x[:, now], at[..., now])
            if "gates" in new:
                new["gates"] = np.where(real[now], new["gates"], 0.0)
            k = np.concatenate([kept["k"], new["k"]], axis=2) if start else new["k"]
            new["turned"] = self.turn(q, k, at[..., now], at[..., :stop])
            kept = {
                name: np.concatenate([kept[name], each], axis=2) if start else each
                for name, each in new.items()
            }
            seen = self.see(q, kept, at[..., now], at[..., :stop], turned, mask[now, :stop])
            unseen = np.zeros((*seen.shape[:3], S - stop))
            rows.append(np.concatenate([seen[..., :stop], unseen, seen[..., stop:]], axis=-1))
        return np.concatenate(rows, axis=2), kept


def _keys(
    layer: _Layer, x: np.ndarray, at: np.ndarray, whole: np.ndarray
) -> tuple[str, np.ndarray, Tokens]:
    """As what keys may be kept; and the rows of the text read so, one by one, with what is kept."""
    one_by_one = range(len(at) + 1)
    for turned in (True, False):
        rows, kept = layer.read(x, at, one_by_one, turned)
        right = _equal(rows[:, :, -1], whole[:, :, -1])
        if right:
            break
    if not (turned and right):
        return "raw" if right else "none", rows, kept
    if kept["turned"].shape != kept["k"].shape or not _equal(kept["turned"], kept["k"]):
        return "turned", rows, kept
    here, moved = (layer.encoding.embed(layer.params, x, at + n) for n in (0, PADDING))
    return "plain" if _equal(here, moved) else "coded", rows, kept


def _evict(
    layer: _Layer, x: np.ndarray, at: np.ndarray, turned: bool, kept: Tokens, whole: np.ndarray
) -> tuple[bool, str, bool]:
    """Fields `positions`, `gates` and `eviction`: the newest query after a few tokens went."""
    stay, last = np.setdiff1d(at, GONE), at[-1:]
    q, held = layer.make(x[:, -1:], last)[0], {name: a[:, :, stay] for name, a in kept.items()}

    def seen(k_at: np.ndarray) -> np.ndarray:
        return layer.see(q, held, last, k_at, turned)

    def right() -> bool:
        return _equal(seen(stay)[..., : len(stay)], whole[:, :, -1:, stay])

    positions = not _equal(seen(np.arange(len(stay))), seen(stay))
    if "gates" not in held:
        return positions, "none", right()
    if right():
        return positions, "own", True
    held["gates"] = np.diff(np.cumsum(kept["gates"], axis=-1)[..., stay], axis=-1, prepend=0)
    return (positions, "sums", True) if right() else (positions, "all", False)


def _pad(layer: _Layer, x: np.ndarray, at: np.ndarray, turned: bool, expected: np.ndarray) -> str:
    """Field `padding`: a row at a time behind padding, as without it."""
    x = np.concatenate([layer.rng.standard_normal((1, PADDING, x.shape[2])), x], axis=1)
    real = np.arange(x.shape[1]) >= PADDING
    cuts = (0, *range(PADDING + 1, len(real) + 1))

    def right(positions: np.ndarray) -> bool:
        rows = layer.read(x, positions[None], cuts, turned, real)[0]
        return _equal(rows[:, :, PADDING:, PADDING:], expected)

    if right(np.concatenate([np.zeros(PADDING, int), at])):
        return "slots" if right(np.arange(len(real))) else "real"
    return "no"


def _renumber(layer: _Layer, x: np.ndarray, at: np.ndarray, kept: Tokens) -> str:
    """Field `renumbering`: the newest query, at the last of the new numbers."""
    stay = np.setdiff1d(at, GONE)
    slots = np.arange(len(stay))
    last = slots[-1:]
    never = layer.read(x[:, stay], slots, (0, len(stay)), turned=False)[0][:, :, -1:]
    held = {name: a[:, :, stay] for name, a in kept.items()}
    q, new = layer.make(x[:, -1:], last)
    for name, a in new.items():
        held[name][:, :, -1:] = a
    held["turned"][:, :, -1:] = layer.turn(q, held["k"], last, slots)
    for turned, keys in ((True, "any"), (False, "raw")):
        if _equal(layer.see(q, held, last, slots, turned), never):
            return keys
    return "no"
