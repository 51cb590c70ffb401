r"""The register of schemes: one row for each, and all lists of schemes are read from it.

Source: the papers that the functions of the package name.
Axes: L queries, S keys, D model width, H heads, K width of one head.
Symbols: in a row's code x are token vectors, i and j the positions of queries and keys; scores are
the plain q @ k.T / sqrt(K), L0 the trained length, s the factor of a scaling. What else the code
names is a parameter, or a field, of the class, or what the docstring of the function names so.
Convention: code is written for one head, q (L, K) and k (S, K); what wants an axis of heads gets
one by [None]. A line for each place of the scheme, after those that prepare it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pe_numpy.rotary.rope import rope_frequencies
from pe_numpy.rotary.scaling import (
    dynamic_ntk_scaling,
    linear_scaling,
    llama3_scaling,
    longrope_scaling,
    ntk_scaling,
    proportional_frequencies,
    yarn_scaling,
)
from pe_numpy.transformer.encodings.base import Encoding
from pe_numpy.transformer.encodings.rotation import Pope, Rope, RotaryValues, Tempered, XPos
from pe_numpy.transformer.encodings.score import (
    T5,
    Alibi,
    Cope,
    Deberta,
    DualChunk,
    Fire,
    Forgetting,
    Kerple,
    Nezha,
    RelativeKeyQuery,
    ReRope,
    Sandwich,
    SelfExtend,
    Shaw,
    Streaming,
    TransformerXL,
    Tupe,
)
from pe_numpy.transformer.encodings.token import (
    Floater,
    Hierarchical,
    Learned,
    Multiplicative,
    Recurrent,
    Sinusoidal,
)


class Reach(NamedTuple):
    """What an encoding is made for.

    Texts of up to `length` tokens, distances of up to `clip`, and waves of up to 2 pi `base`.
    """

    length: int
    clip: int = 16
    base: float = 10000.0

    @property
    def trained(self) -> int:
        """L0, the trained length, which a scaling by 4 stretches to `length`."""
        return self.length // 4


class Scheme(NamedTuple):
    """A row: the scheme as texts call it, its place (0 none, 1 to 4), its chapter, and its code.

    `function` is the one of `pe_numpy` that the scheme is, `code` calls it, and `make` gives the
    encoding for a `Reach`; in place of an encoding a bare function of scores may stand, of points
    with so many `axes`. The words say what it does where the function's docstring speaks of
    another scheme. What is a choice `of` another encoding is not in `every_encoding`.
    """

    label: str
    place: int
    chapter: str
    function: str
    code: str
    make: Callable[[Reach], Any]
    words: str = ""
    of: str = ""
    axes: int = 1


TURN = "rope(q, i, theta) @ rope(k, j, theta).T / sqrt(K)"
TURN_TIMES_T = "rope(t * q, i, theta) @ rope(t * k, j, theta).T / sqrt(K)"
MOVED = "rotary_distance_scores(q, k, distance)"
FACTOR = 4.0  # s, by which scalings stretch the trained length


def _turn(frequencies: Callable[[Reach, int, int], Any]) -> Callable[[Reach], Rope]:
    """RoPE with frequencies that the reach, the width of a head and the length decide."""
    return lambda n: Rope(n.base, scaling=lambda K, length: frequencies(n, K, length))


def _longrope(n: Reach, K: int, length: int) -> tuple[np.ndarray, float]:
    short, long = np.ones(K // 2), np.linspace(1, FACTOR, K // 2)
    return longrope_scaling(K, length, short, long, n.trained, FACTOR, n.base)


SCHEMES = {
    "none": Scheme("no position", 0, "11_why_position", "attention",
        "attention(q, k, v)[0]",
        lambda n: Encoding()),
    "sinusoidal": Scheme("sinusoid", 1, "20_sinusoidal", "sinusoidal",
        "x + sinusoidal(i, D)",
        lambda n: Sinusoidal(n.base)),
    "multiplicative": Scheme("multiplicative", 1, "22_recurrent", "sinusoidal",
        "x * (1 + sinusoidal(i, D))",
        lambda n: Multiplicative(n.base)),
    "learned": Scheme("table", 1, "21_learned", "learned",
        "x + learned(table, i)",
        lambda n: Learned(n.length)),
    "hierarchical": Scheme("hierarchical", 1, "21_learned", "hierarchical",
        "x + hierarchical(table, i)",
        lambda n: Hierarchical(math.isqrt(max(n.length - 1, 0)) + 1)),
    "recurrent": Scheme("recurrent", 1, "22_recurrent", "recurrent",
        "x + recurrent(start, lambda p: np.tanh(p @ W + b), L)[i]",
        lambda n: Recurrent()),
    "floater": Scheme("FLOATER", 1, "22_recurrent", "floater",
        "x + floater(start, lambda p, t: A @ p, i)",
        lambda n: Floater()),
    "rope": Scheme("RoPE", 2, "40_rope_derived", "rope",
        "rope(q, i) @ rope(k, j).T / sqrt(K)",
        lambda n: Rope(n.base)),
    "shaw": Scheme("Shaw", 3, "31_shaw", "shaw_scores",
        "shaw_scores(q, k, key_table, relative_distance(i, j))\n"
        "shaw_values(weights, v, value_table, relative_distance(i, j))",
        lambda n: Shaw(n.clip)),
    "relative_key_query": Scheme("relative_key_query", 3, "31_shaw", "relative_key_query_scores",
        "relative_key_query_scores(q, k, table, relative_distance(i, j))",
        lambda n: RelativeKeyQuery(n.length)),
    "nezha": Scheme("NEZHA", 3, "31_shaw", "nezha_table",
        "table = nezha_table(clip, K)\n"
        "shaw_scores(q, k, table, relative_distance(i, j))\n"
        "shaw_values(weights, v, table, relative_distance(i, j))",
        lambda n: Nezha(n.clip)),
    "transformer_xl": Scheme("Transformer-XL", 3, "32_transformer_xl", "transformer_xl_scores",
        "r = sinusoidal(np.arange(1 - S, L), D) @ W_r\n"
        "distance = relative_distance(i, j)\n"
        "transformer_xl_scores(q[None], k[None], r[None], u, v, distance)",
        lambda n: TransformerXL(n.base)),
    "t5": Scheme("T5", 3, "33_t5", "t5_bias",
        "scores + t5_bias(table, relative_distance(i, j), bidirectional=False)",
        lambda n: T5()),
    "tupe": Scheme("TUPE", 3, "33_t5", "tupe_scores",
        "bias = t5_bias(table, relative_distance(i, j), bidirectional=False)\n"
        "p_q, p_k = positions[i] @ U_q, positions[j] @ U_k\n"
        "tupe_scores(q[None], k[None], p_q[None], p_k[None], bias)",
        lambda n: Tupe(length=n.length)),
    "deberta": Scheme("DeBERTa", 3, "34_deberta", "deberta_scores",
        "q_table, k_table = (relative @ W_qr)[None], (relative @ W_kr)[None]\n"
        "deberta_scores(q[None], k[None], q_table, k_table, relative_distance(i, j))",
        lambda n: Deberta(n.clip)),
    "alibi": Scheme("ALiBi", 3, "35_alibi", "alibi_bias",
        "scores + alibi_bias(alibi_slopes(H), relative_distance(i, j))",
        lambda n: Alibi()),
    "kerple": Scheme("KERPLE", 3, "36_distance_functions", "kerple_log_bias",
        "scores + kerple_log_bias(p, a, relative_distance(i, j))",
        lambda n: Kerple()),
    "sandwich": Scheme("Sandwich", 3, "36_distance_functions", "sandwich_bias",
        "scores + sandwich_bias(H, relative_distance(i, j))",
        lambda n: Sandwich(base=n.base)),
    "fire": Scheme("FIRE", 3, "36_distance_functions", "fire_bias",
        "scores + fire_bias(params, i, j)",
        lambda n: Fire(max(n.length // 8, 2))),
    "forgetting": Scheme("FoX", 3, "37_content", "forgetting_bias",
        "sums = np.cumsum(np.log(gates), axis=-1)\n"
        "scores + forgetting_bias(sums, sums)",
        lambda n: Forgetting()),
    "cope": Scheme("CoPE", 3, "37_content", "cope_bias",
        "scores + cope_bias(q, scores, table, mask) / sqrt(K)",
        lambda n: Cope(n.length + 1)),
    "rerope": Scheme("ReRoPE", 3, "52_new_places", "rerope_distance",
        f"distance = rerope_distance(relative_distance(i, j), window)\n{MOVED}",
        lambda n: ReRope(n.clip, base=n.base)),
    "self_extend": Scheme("Self-Extend", 3, "52_new_places", "self_extend_distance",
        f"distance = self_extend_distance(i, j, window, group)\n{MOVED}",
        lambda n: SelfExtend(n.clip, 2, base=n.base)),
    "dual_chunk": Scheme("dual chunk", 3, "52_new_places", "chunk_distance",
        f"distance = chunk_distance(i, j, size, local)\n{MOVED}",
        lambda n: DualChunk(n.clip + 2, 2, base=n.base)),
    "streaming": Scheme("StreamingLLM", 3, "52_new_places", "streaming_distance",
        f"distance = streaming_distance(i, j, window, sinks)\n{MOVED}",
        lambda n: Streaming(n.clip, 2, base=n.base)),
    "xpos": Scheme("xPos", 2, "45_rope_relatives", "xpos",
        "xpos(q, i) @ xpos(k, j, key=True).T / sqrt(K)",
        lambda n: XPos(n.base)),
    "pope": Scheme("PoPE", 2, "45_rope_relatives", "pope",
        "pope(q, i) @ pope(k, j, bias=phase).T / sqrt(K)",
        lambda n: Pope(n.base)),
    "rotary_values": Scheme("values", 4, "45_rope_relatives", "rotary_values",
        "rope(q, i) @ rope(k, j).T / sqrt(K)\n"
        "rotary_values(weights, v, i, j)",
        lambda n: RotaryValues(n.base)),
    "partial_rope": Scheme("partial RoPE", 2, "42_rope_in_models", "rope",
        f"theta = rope_frequencies(K // 2, base)\n{TURN}",
        _turn(lambda n, K, length: rope_frequencies(K // 2, n.base)),
        "RoPE of the first half of the components, as if these were all; the rest do not change",
        of="rope"),
    "proportional_rope": Scheme("p-RoPE", 2, "42_rope_in_models", "proportional_frequencies",
        f"theta = proportional_frequencies(K, 0.5, base)\n{TURN}",
        _turn(lambda n, K, length: proportional_frequencies(K, 0.5, n.base)),
        of="rope"),
    "linear": Scheme("linear", 2, "50_scaling", "linear_scaling",
        f"theta = linear_scaling(rope_frequencies(K, base), s)\n{TURN}",
        _turn(lambda n, K, length: linear_scaling(rope_frequencies(K, n.base), FACTOR)),
        of="rope"),
    "ntk": Scheme("NTK", 2, "50_scaling", "ntk_scaling",
        f"theta = ntk_scaling(K, s, base)\n{TURN}",
        _turn(lambda n, K, length: ntk_scaling(K, FACTOR, n.base)),
        of="rope"),
    "dynamic_ntk": Scheme("dynamic NTK", 2, "50_scaling", "dynamic_ntk_scaling",
        f"theta = dynamic_ntk_scaling(K, S, L0, s, base)\n{TURN}",
        _turn(lambda n, K, length: dynamic_ntk_scaling(K, length, n.trained, FACTOR, n.base)),
        of="rope"),
    "yarn": Scheme("YaRN", 2, "50_scaling", "yarn_scaling",
        f"theta, t = yarn_scaling(K, s, L0, base)\n{TURN_TIMES_T}",
        _turn(lambda n, K, length: yarn_scaling(K, FACTOR, n.trained, n.base)),
        of="rope"),
    "longrope": Scheme("LongRoPE", 2, "50_scaling", "longrope_scaling",
        f"theta, t = longrope_scaling(K, S, short, long, L0, s, base)\n{TURN_TIMES_T}",
        _turn(_longrope),
        of="rope"),
    "llama3": Scheme("Llama 3", 2, "50_scaling", "llama3_scaling",
        f"theta = llama3_scaling(rope_frequencies(K, base), s, L0)\n{TURN}",
        _turn(lambda n, K, length: llama3_scaling(rope_frequencies(K, n.base), FACTOR, n.trained)),
        of="rope"),
    "leaky_rerope": Scheme("leaky ReRoPE", 3, "52_new_places", "rerope_distance",
        f"distance = rerope_distance(relative_distance(i, j), window, s)\n{MOVED}",
        lambda n: ReRope(n.clip, stretch=FACTOR, base=n.base),
        of="rerope"),
    "temperature": Scheme("temperature", 2, "51_extrapolation", "attention_temperature",
        "t = attention_temperature(i, floor_scale)\n(t[:, None] * q) @ k.T / sqrt(K)",
        lambda n: Tempered(floor_scale=8),
        of="none"),
}  # fmt: skip


def every_encoding(length: int, clip: int = 16) -> dict[str, Encoding]:
    """One of each scheme, by name, for sequences of up to `length` tokens.

    Examples
    --------
    >>> list(every_encoding(8))[:4]
    ['none', 'sinusoidal', 'multiplicative', 'learned']
    """
    reach = Reach(length, clip)
    return {name: row.make(reach) for name, row in SCHEMES.items() if not row.of}
