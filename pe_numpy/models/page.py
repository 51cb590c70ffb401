"""What the pages share: how to read a configuration, and how to turn as it says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from pe_numpy.models.entries import entry
from pe_numpy.models.rope_config import RopeSettings
from pe_numpy.rotary.rope import rope
from pe_numpy.transformer.context import beside_heads
from pe_numpy.transformer.layers import linear
from pe_numpy.transformer.masks import Causal, Window

Params = dict[str, Any]
Look = Callable[[int, np.ndarray], None]  # gets a layer's number and attention weights
Table = dict[str, tuple[str, tuple[int, ...]]]  # name in the file: our place, our shape
DIVIDES = ("G", "H"), ("H", "D"), ("H_encoder", "D"), ("H_decoder", "D"), ("groups", "E")
AT_MOST = ("used", "E"), ("groups_used", "groups")


class Settings(SimpleNamespace):
    """What a page reads of config.json; equal to itself alone, since a cache serves one."""

    def __eq__(self, other: object) -> bool:
        return self is other


def sizes(page: str, config: Mapping[str, Any], **keys: Any) -> Settings:
    """Read entries of the configuration: name=key, or name=(key, default); K is D / H by default.

    What must divide another number, or not exceed it, is checked.
    """
    found, called = {}, {}
    for name, key in keys.items():
        called[name], *default = key if isinstance(key, tuple) else (key,)
        found[name] = entry(page, config, called[name], *default)
        if found[name] is None and not default:
            raise ValueError(f"{page}: config.json must have {called[name]}")
    for least, most in (*DIVIDES, *AT_MOST):
        a, b = found.get(least), found.get(most)
        if a is None or b is None or (most == "D" and found.get("K", found.get("d_n"))):
            continue
        if b % a if (least, most) in DIVIDES else a > b:
            rule = "divide" if (least, most) in DIVIDES else "be at most"
            raise ValueError(
                f"{page}: {called[least]} must {rule} {called[most]}; got {a} and {b} in "
                "config.json"
            )
    if "K" in found and found["K"] is None:
        found["K"] = found["D"] // found["H"]
    return Settings(**found)


def expect(page: str, config: Mapping[str, Any], **values: Any) -> None:
    """Refuse a configuration that asks for what the page does not do; a missing key is right."""
    for key, value in values.items():
        if config.get(key, value) != value:
            got = f"{config[key]!r:.80} in config.json"
            raise ValueError(f"{page}: {key} must be {value!r} here; got {got}")


def changed(s: Settings, **changes: Any) -> Settings:
    """Give a copy of the settings with some of them changed."""
    return Settings(**{**vars(s), **changes})


def rounded(page: str, config: Mapping[str, Any], x: float) -> float:
    """Round a number to the bits of the weights' dtype, which the configuration names."""
    dtype = config.get("dtype") or config.get("torch_dtype")
    bits = {"bfloat16": 8, "float16": 11, "float32": 24}.get(str(dtype))
    if bits is None:
        raise ValueError(f"{page}: dtype must be bfloat16, float16 or float32; got {dtype!r}")
    fraction, exponent = math.frexp(x)
    return math.ldexp(round(math.ldexp(fraction, bits)), exponent - bits)


def windows(page: str, config: Mapping[str, Any], every: int) -> list[int | None]:
    """Window of each layer: as "layer_types" says, or of all but each `every`-th."""
    kinds = ("full_attention", "sliding_attention")
    layers = config["num_hidden_layers"]
    by_number = [kinds[n % every > 0] for n in range(1, layers + 1)]
    types = entry(page, config, "layer_types", by_number)
    if len(types) != layers or not set(types) <= set(kinds):
        raise ValueError(
            f"{page}: layer_types must be {layers} of {' and '.join(kinds)}; got {types} in "
            "config.json"
        )
    return [config["sliding_window"] if kind == kinds[1] else None for kind in types]


def rule(window: int | None) -> Causal:
    """The mask of a layer: all up to the query, or a window of them."""
    return Causal() if window is None else Window(window)


def turn(x: np.ndarray, positions: np.ndarray, settings: RopeSettings) -> np.ndarray:
    """Turn queries or keys (B, H, L, K) as a configuration says, its attention factor included."""
    if settings.frequencies is None:
        return x
    if x.ndim > 3:  # heads stand between
        positions = beside_heads(positions)
    turned = rope(x, positions, settings.frequencies, settings.layout)
    if settings.attention_factor == 1:
        return turned
    n = 2 * settings.frequencies.shape[-1]  # what is not turned keeps its size
    return np.concatenate([turned[..., :n] * settings.attention_factor, turned[..., n:]], axis=-1)


def by_group(
    G: int, q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Heads (B, H, L, K) by the group that shares keys, (B, G, H/G, L, K): no key is repeated."""
    q, k, v = (x.reshape(len(x), G, -1, *x.shape[2:]) for x in (q, k, v))
    return q, k, v, mask if mask is None else np.expand_dims(mask, -3)


def all_heads(x: np.ndarray) -> np.ndarray:
    """Heads of all groups in a row again: (B, G, H/G, L, K) to (B, H, L, K)."""
    return x.reshape(len(x), -1, *x.shape[3:])


def by_head(params: Params, s: Any, h: np.ndarray) -> np.ndarray:
    """Logits (B, L, V) of the token after each, by a head of its own or by the embedding."""
    return linear(h, params.get("head", params["embedding"].T))


def without_turns(params: Params, s: Any) -> tuple[Params, Any]:
    """Give parameters and settings of the same model whose queries and keys do not turn."""
    return params, changed(s, rope=s.rope._replace(frequencies=0 * s.rope.frequencies))
