"""What one call of a model knows of its tokens, and what a cache keeps of them.

Axes: B batch, L new tokens, S all tokens, H heads, G heads of keys, K width of a head.
Convention: positions count real tokens from 0, so padding may stand on the left.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.relative.distance import relative_distance
from pe_numpy.transformer.layers import dropout
from pe_numpy.transformer.masks import Causal, Full


def real_positions(real: np.ndarray) -> np.ndarray:
    """Positions of tokens (..., L), True where real: real ones count from 0."""
    return np.maximum(np.cumsum(real, axis=-1) - 1, 0)


DRAFT = 64  # tokens that a cache which obeys windows can forget again, at least


def beside_heads(positions: np.ndarray) -> np.ndarray:
    """(L,) as it is, (B, L) as (B, 1, L)."""
    return positions if positions.ndim == 1 else positions[:, None]


class Context:
    """What one call knows of its tokens; the methods of an encoding get it.

    Source: what the encodings of the papers look at (`pe_numpy.transformer.encodings`).

    Parameters
    ----------
    q_positions, k_positions : (L,) or (B, L), and (S,) or (B, S) arrays
        Positions of the queries, and of the keys, which are those of the queries by default.
    mask : boolean array that broadcasts to (B, H, L, S), optional
        True = may attend; None if every query may attend to every key.
    gates : (B, H, S) array, optional
        What each key says of position, for schemes of content; the queries are the last L of them.

    Examples
    --------
    >>> Context([3], [0, 1, 2, 3]).distance.tolist()
    [[3, 2, 1, 0]]
    """

    length = 0  # tokens of earlier calls
    real: np.ndarray | None = None  # (B, S), False where a token is padding; None: all are real
    order: np.ndarray  # (S,) or (B, S), the true positions, which masks follow
    masks: dict[Full, np.ndarray | None]  # of this call, by rule
    before: Context  # what the call began with: a cache, or nothing
    owner: tuple[Any, ...] = ()  # the parameters and the model that read
    source: Any = None  # what the encoder read, or its memory: a cache serves one
    source_real: Any = None  # (B, S), False where it is padding
    memory: Any = None  # (B, S, D), what the encoder made of it
    memory_mask: np.ndarray | None = None
    watch: dict[Any, np.ndarray] | None = None  # gets the attention weights, if it is given
    rate: float  # of dropout
    rng: np.random.Generator | None
    new_real: np.ndarray | None = None  # (B, L), of the new tokens
    heads, dtype = 0, np.dtype(np.float64)  # of the queries

    def __init__(
        self,
        q_positions: ArrayLike = (),
        k_positions: ArrayLike | None = None,
        mask: np.ndarray | None = None,
        gates: np.ndarray | None = None,
    ) -> None:
        self.q_positions = np.asarray(q_positions)
        self.k_positions = self.q_positions if k_positions is None else np.asarray(k_positions)
        self.mask, self.gates = mask, gates
        self.held: dict[Any, list[np.ndarray]] = {}  # what a cache keeps of each layer
        self.made: dict[Any, tuple[np.ndarray, ...]] = {}  # what each layer made of the memory
        self.first: dict[Any, tuple[int, int]] = {}  # first token held, and to how many it can cut

    @cached_property
    def distance(self) -> np.ndarray:
        """Distances i - j, (L, S) or (B, L, S)."""
        return relative_distance(self.q_positions, self.k_positions)

    @cached_property
    def head_distance(self) -> np.ndarray:
        """Distances beside scores of several heads, (L, S) or (B, 1, L, S)."""
        return relative_distance(beside_heads(self.q_positions), beside_heads(self.k_positions))

    def positions_of(self, k: np.ndarray) -> np.ndarray:
        """Positions of keys (B, G, S, K): all keys, or only the newest."""
        return self.k_positions[..., self.k_positions.shape[-1] - k.shape[-2] :]

    def begin(
        self,
        shape: tuple[int, int],
        real: np.ndarray | None = None,
        rate: float = 0.0,
        rng: np.random.Generator | None = None,
        places: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> Context:
        """Give the context of a call that reads new tokens (B, L), True in `real` where no padding.

        `places` changes the positions that the encoding is told; masks follow the true order. What
        is kept changes only at the end of the call.
        """
        now = object.__new__(type(self))  # a copy, in a third of the time of `copy.copy`
        vars(now).update(vars(self))
        now.before, now.held, now.made = self, dict(self.held), dict(self.made)
        now.first = dict(self.first)
        now.rate, now.rng, now.masks = rate, rng, {}
        now.real = self.all_real(shape, real)
        S = self.length + shape[1]
        now.order = np.arange(S) if now.real is None else real_positions(now.real)
        now.k_positions = now.order if places is None else places(now.order)
        now.q_positions = now.k_positions[..., self.length :]
        now.new_real = None if now.real is None else now.real[:, self.length :]
        return now

    def all_real(self, shape: tuple[int, int], real: np.ndarray | None) -> np.ndarray | None:
        """Which of all tokens are real; None if all are."""
        return real

    def serve(
        self, function: str, params: Any, model: Any, source: Any = None, source_real: Any = None
    ) -> None:
        """Note who reads what; a cache refuses others than those of its first call."""
        if self.owner:
            for what, same in (
                ("model", self.owner[1] is model or self.owner[1] == model),
                ("set of parameters", self.owner[0] is params),
                ("source", source is None or np.array_equal(self.source, source)),
                ("memory_real", source is None or np.array_equal(self.source_real, source_real)),
            ):
                if not same:
                    raise ValueError(
                        f"{function}: the cache serves one {what}; got another, make a new cache"
                    )
        self.owner, self.source, self.source_real = (params, model), source, source_real

    def mask_of(self, rule: Full, keys: int | None = None) -> np.ndarray | None:
        """(L, S), or (B, 1, L, S) with padding; None if every query may attend to every key.

        With a number of keys only the mask of the newest ones.
        """
        mask = self._mask_of(rule)
        return mask if mask is None or keys is None else mask[..., -keys:]

    def _mask_of(self, rule: Full) -> np.ndarray | None:
        if self.real is None and self.order.size == self.length + 1 and type(rule) is Causal:
            return None  # only the newest token
        if rule not in self.masks:
            mask = rule.mask(self.order[..., self.length :], self.order)
            if self.real is not None:
                own = self.real[:, None, None, :]
                mask = own if mask is None else mask[:, None] & own
            self.masks[rule] = None if mask is None or mask.all() else mask
        return self.masks[rule]

    def drop(self, x: np.ndarray) -> np.ndarray:
        """Dropout, if the call has a generator."""
        return x if self.rng is None else dropout(x, self.rate, self.rng)

    def keep(
        self, layer: Any, *new: np.ndarray, window: int | None = None
    ) -> tuple[np.ndarray, ...]:
        """All keys and values (..., S, width) of a layer, of which `new` are the newest.

        With a window, a cache gives those that it has room for, the newest: `mask_of` with their
        number has the mask.
        """
        return new

    def once(self, layer: Any, make: Callable[[], tuple[np.ndarray, ...]]) -> tuple:
        """What a layer makes of the memory, made at the first call only."""
        if layer not in self.made:
            self.made[layer] = make()
        return self.made[layer]

    def look(self, name: Any, weights: np.ndarray) -> None:
        """Note attention weights (B, H, L, S), if somebody watches."""
        if self.watch is not None:
            self.watch[name] = weights

    def again(self) -> None:
        """Count all tokens as new: the layers make again, elsewhere, what is held of them."""
        self.length, self.q_positions, self.held, self.first = 0, self.k_positions, {}, {}

    def end(self) -> None:
        """All layers have read the new tokens."""
        return None


class Cache(Context):
    """A context that remembers: keys and values of all earlier tokens, so each new one costs a row.

    One cache serves one set of parameters, one model and one memory, those of its first call. A
    call that fails leaves it as it was. Room is taken once, for `capacity` tokens: `held` has, of
    each layer, a list of arrays (..., capacity, width), keys, values and what else the layer keeps;
    `length` tokens of them are read. Of a layer with a window a page holds only the window, and
    `DRAFT` tokens before it, which `cut` may go back.

    Keys are kept rotated where the rotation of a key depends on its own position only; an encoding
    whose frequencies change with the length gets them as they were before.

    Source: common practice; the causal mask is what allows it, since old rows never change. If the
    frequencies of RoPE change with the length (dynamic NTK), that is true of the first layer only:
    keys of deeper layers contain what the first layer gave under earlier frequencies.

    Parameters
    ----------
    batch, capacity : int
        Number of sequences B, and of tokens that each may have.

    Examples
    --------
    >>> from pe_numpy import Model, Sizes, decode, init_params
    >>> model = Model(n_heads=2)
    >>> params = init_params(Sizes(11, 8, 16, n_layers=1), model, np.random.default_rng(0))
    >>> cache = Cache(1, 3)
    >>> steps = [decode(params, model, [[token]], cache=cache) for token in (3, 1, 4)]
    >>> bool(np.allclose(steps[-1], decode(params, model, [[3, 1, 4]])[:, -1:], atol=1e-6))
    True
    """

    def __init__(self, batch: int, capacity: int) -> None:
        super().__init__()
        self.batch = checks.integer("Cache", "batch", batch)
        self.capacity = checks.integer("Cache", "capacity", capacity)
        self.length = 0

    def all_real(self, shape: tuple[int, int], real: np.ndarray | None) -> np.ndarray | None:
        """Check that the new tokens (B, L) fit; give which of all tokens are real."""
        batch, new = shape
        if batch != self.batch:
            raise ValueError(
                f"Cache: the batch must be that of the cache, {self.batch}; got {batch}"
            )
        if self.length + new > self.capacity:
            raise ValueError(
                f"Cache: there is room for {self.capacity} tokens; got {self.length + new}, "
                "make it larger"
            )
        if real is None and self.real is None:
            return None
        parts = (self.length, self.real), (new, real)
        return np.concatenate([np.ones((batch, n), bool) if r is None else r for n, r in parts], 1)

    def keep(
        self, layer: Any, *new: np.ndarray, window: int | None = None
    ) -> tuple[np.ndarray, ...]:
        """Write what a layer made of the new tokens (..., L, width); give that of all.

        With a window, of those alone that are held: the last `window` and `DRAFT` more at least.
        """
        start, end = self.length, self.k_positions.shape[-1]
        size = self.capacity if window is None else min(self.capacity, 2 * (window + DRAFT))
        first, _ = self.first.get(layer, (0, 0))
        if layer not in self.held or end - first > size:
            whole = new
            if layer in self.held:
                old = (room[..., : start - first, :] for room in self.held[layer])
                whole = tuple(np.concatenate(x, axis=-2) for x in zip(old, new, strict=True))
            seen = (window or 1) - 1  # earlier keys that a query sees
            kept = first if end - first <= size else end - seen - DRAFT
            least = kept + seen if kept else 0
            rooms = [np.zeros((*x.shape[:-2], size, x.shape[-1]), x.dtype) for x in new]
            for room, x in zip(rooms, whole, strict=True):
                room[..., : end - kept, :] = x[..., kept - first :, :]
            self.held[layer], self.first[layer] = rooms, (kept, least)
            return whole
        rooms = self.held[layer]
        for room, x in zip(rooms, new, strict=True):
            room[..., start - first : end - first, :] = x
        return tuple(room[..., : end - first, :] for room in rooms)

    def end(self) -> None:
        """Hold the new tokens; only now does the cache change."""
        cache = self.before
        if not cache.owner:  # the caller's arrays may change later
            cache.source, cache.source_real = copy.copy(self.source), copy.copy(self.source_real)
        cache.length, cache.real = self.k_positions.shape[-1], self.real
        cache.held, cache.made, cache.owner = self.held, self.made, self.owner
        cache.first = self.first
        cache.memory, cache.memory_mask = self.memory, self.memory_mask

    def take(self, rows: ArrayLike) -> None:
        """Keep these sequences, in this order; one may come several times."""
        rows = checks.whole_numbers("Cache.take", "rows", rows)
        self.held = {layer: [x[rows] for x in rooms] for layer, rooms in self.held.items()}
        self.made = {layer: tuple(x[rows] for x in made) for layer, made in self.made.items()}
        for name in ("real", "source", "source_real", "memory", "memory_mask"):
            if getattr(self, name) is not None:
                setattr(self, name, getattr(self, name)[rows])
        self.batch = len(rows)

    def cut(self, length: int) -> None:
        """Forget all tokens but the first `length`."""
        if checks.integer("Cache.cut", "length", length, least=0) > self.length:
            raise ValueError(
                f"Cache.cut: length must be at most the tokens held, {self.length}; got {length}"
            )
        least = max((least for _, least in self.first.values()), default=0)
        if length < least:
            raise ValueError(
                f"Cache.cut: length must be at least {least}, layers with a window hold no "
                f"earlier keys; got {length}: make a new cache"
            )
        self.length, self.real = length, None if self.real is None else self.real[:, :length]
