"""Places 3 and 4: schemes that make the scores (B, H, L, S), or join the weighted sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pe_numpy.absolute.learned import learned
from pe_numpy.absolute.sinusoidal import sinusoidal
from pe_numpy.relative.alibi import alibi_bias, alibi_slopes
from pe_numpy.relative.cope import cope_bias
from pe_numpy.relative.deberta import deberta_scores
from pe_numpy.relative.distance import relative_distance
from pe_numpy.relative.fire import fire_bias
from pe_numpy.relative.forgetting import forgetting_bias
from pe_numpy.relative.kerple import kerple_log_bias
from pe_numpy.relative.sandwich import sandwich_bias
from pe_numpy.relative.shaw import (
    nezha_table,
    relative_key_query_scores,
    shaw_scores,
    shaw_values,
)
from pe_numpy.relative.t5 import t5_bias, t5_bucket
from pe_numpy.relative.transformer_xl import transformer_xl_scores
from pe_numpy.relative.tupe import tupe_scores
from pe_numpy.rotary.new_places import (
    chunk_distance,
    put_products,
    rerope_distance,
    self_extend_distance,
    streaming_distance,
)
from pe_numpy.rotary.rope import rope, rope_frequencies
from pe_numpy.transformer.attention import split_heads
from pe_numpy.transformer.context import beside_heads
from pe_numpy.transformer.encodings.base import Bias, Encoding, normal
from pe_numpy.transformer.masks import Window


@dataclass(frozen=True)
class Shaw(Encoding):
    """Chapter 31: vectors of clipped distances beside keys and values, two tables per layer."""

    clip: int = 16

    def layer(self, rng, shape):
        size = (2 * self.clip + 1, shape.d_head)
        return {name: 0.1 * rng.standard_normal(size) for name in ("key_table", "value_table")}

    def scores(self, params, q, k, context):
        return shaw_scores(q, k, params["key_table"], context.head_distance)

    def mix(self, params, weights, v, context):
        return shaw_values(weights, v, params["value_table"], context.head_distance)


@dataclass(frozen=True)
class RelativeKeyQuery(Encoding):
    """Chapter 31: BERT's vectors for query and key, up to `length` tokens; one table per layer."""

    length: int

    def layer(self, rng, shape):
        return {"table": 0.1 * rng.standard_normal((2 * self.length - 1, shape.d_head))}

    def scores(self, params, q, k, context):
        return relative_key_query_scores(q, k, params["table"], context.head_distance)


@dataclass(frozen=True)
class Nezha(Encoding):
    """Chapter 31: Shaw's two terms with one fixed table of sinusoids."""

    clip: int = 64

    def scores(self, params, q, k, context):
        return shaw_scores(q, k, nezha_table(self.clip, q.shape[-1]), context.head_distance)

    def mix(self, params, weights, v, context):
        table = nezha_table(self.clip, v.shape[-1])
        return shaw_values(weights, v, table, context.head_distance)


@dataclass(frozen=True)
class TransformerXL(Encoding):
    """Chapter 32: projected sinusoids of the distance, and two biases per head."""

    base: float = 10000.0

    def layer(self, rng, shape):
        D, H, K = shape.d_model, shape.n_heads, shape.d_head
        return {"W_r": normal(rng, D, H * K), "u": np.zeros((H, K)), "v": np.zeros((H, K))}

    def scores(self, params, q, k, context):
        distance, W_r = context.head_distance, params["W_r"]
        span = np.arange(distance.min(), distance.max() + 1) if distance.size else np.arange(0)
        codes = sinusoidal(span, W_r.shape[0], self.base).astype(W_r.dtype)  # (N, D)
        r = split_heads(codes @ W_r, q.shape[-3])  # (H, N, K)
        return transformer_xl_scores(q, k, r, params["u"], params["v"], distance)


@dataclass(frozen=True)
class T5(Bias):
    """Chapter 33: one number per head and bucket, shared by all layers."""

    num_buckets: int = 32
    max_distance: int = 128
    bidirectional: bool = False

    def __post_init__(self):
        super().__post_init__()
        t5_bucket([], self.num_buckets, self.max_distance, self.bidirectional)  # refuses too few

    def for_encoder(self):
        return T5(self.num_buckets, self.max_distance, bidirectional=True)

    def shared(self, rng, shape):
        return {"table": 0.1 * rng.standard_normal((self.num_buckets, shape.n_heads))}

    def bias(self, params, context):
        return t5_bias(params["table"], context.distance, self.max_distance, self.bidirectional)


@dataclass(frozen=True)
class Tupe(T5):
    """Chapter 33: positions correlated by their own projections, and T5's bias beside them."""

    length: int = 512

    def for_encoder(self):
        return Tupe(self.num_buckets, self.max_distance, True, self.length)

    def shared(self, rng, shape):
        D, HK = shape.d_model, shape.n_heads * shape.d_head
        own = {"positions": rng.standard_normal((self.length, D)) / 2}
        own = super().shared(rng, shape) | own
        return own | {"U_q": normal(rng, D, HK), "U_k": normal(rng, D, HK)}

    def scores(self, params, q, k, context):
        H = q.shape[-3]
        p_q = split_heads(learned(params["positions"], context.q_positions) @ params["U_q"], H)
        p_k = split_heads(learned(params["positions"], context.k_positions) @ params["U_k"], H)
        return tupe_scores(q, k, p_q, p_k, self.bias(params, context))


@dataclass(frozen=True)
class Deberta(Encoding):
    """Chapter 34: shared vectors of clipped distances, projected again in each layer."""

    clip: int = 16

    def shared(self, rng, shape):
        return {"relative": 0.5 * rng.standard_normal((2 * self.clip, shape.d_model))}

    def layer(self, rng, shape):
        D, HK = shape.d_model, shape.n_heads * shape.d_head
        return {"W_qr": normal(rng, D, HK), "W_kr": normal(rng, D, HK)}

    def scores(self, params, q, k, context):
        q_table = split_heads(params["relative"] @ params["W_qr"], q.shape[-3])  # (H, 2m, K)
        k_table = split_heads(params["relative"] @ params["W_kr"], q.shape[-3])
        return deberta_scores(q, k, q_table, k_table, context.head_distance)


@dataclass(frozen=True)
class Alibi(Bias):
    """Chapter 35: a fixed penalty on distance; symmetric, the same as the paper's if causal.

    The slopes are the authors' rule for the number of heads, unless they are given.
    """

    slopes: tuple[float, ...] | None = None

    def bias(self, params, context):
        slopes = np.array(self.slopes or alibi_slopes(context.heads), context.dtype)
        if len(slopes) != context.heads:
            raise ValueError(
                f"Alibi: slopes must be one for each of the {context.heads} heads; "
                f"got {len(slopes)}"
            )
        return alibi_bias(slopes, context.distance)


@dataclass(frozen=True)
class Kerple(Bias):
    """Chapter 36: -p ln(1 + a abs(i - j)), two numbers per head for all layers, as in the code.

    p = exp(`log_p`) and a = exp(`log_a`) stay above 0, where the authors cut them off at 0.01.
    """

    def shared(self, rng, shape):
        p, a = (rng.uniform(0.01, most, shape.n_heads) for most in (2, 1))
        return {"log_p": np.log(p), "log_a": np.log(a)}

    def bias(self, params, context):
        return kerple_log_bias(np.exp(params["log_p"]), np.exp(params["log_a"]), context.distance)


@dataclass(frozen=True)
class Sandwich(Bias):
    """Chapter 36: the inner product of two encodings of width `d`, minus its largest value."""

    d: int = 128
    base: float = 10000.0

    def bias(self, params, context):
        bias = sandwich_bias(context.heads, context.distance, self.d, self.base)
        return bias.astype(context.dtype)


@dataclass(frozen=True)
class Fire(Bias):
    """Chapter 36: a network of the distance as a share of the query's position, one per layer.

    Beyond L, `threshold` times the trained abs(`times`), rows depend on the query's position.
    b2 is left out: the softmax does not see a number that is added to all scores of a head.
    """

    threshold: float = 512.0
    hidden: int = 32

    def layer(self, rng, shape):
        M, H = self.hidden, shape.n_heads
        return {
            "W1": normal(rng, 1, M),
            "b1": 0.1 * rng.standard_normal(M),
            "W2": normal(rng, M, H),
            "c": np.array(0.1),
            "times": np.array(1.0),
        }

    def bias(self, params, context):
        b2 = np.zeros(context.heads, context.dtype)
        own = {**params, "b2": b2, "L": np.abs(params["times"]) * self.threshold}
        return fire_bias(own, context.q_positions, context.k_positions)


@dataclass(frozen=True)
class Forgetting(Encoding):
    """Chapter 37: each token has gates; a key is weighted with the product of those after it.

    The bias is -|c_i - c_j|: under a causal mask the paper's, and for an encoder, which the paper
    does not have, our symmetric form. A gate opens with sigmoid(`start`) where its input says
    nothing.
    """

    start: float = 0.0

    def layer(self, rng, shape):
        H = shape.n_heads
        return {"W_f": normal(rng, shape.d_model, H), "b_f": np.zeros(H) + self.start}

    def gates(self, params, x):
        z = np.swapaxes(x @ params["W_f"] + params["b_f"], -1, -2)  # (B, H, L)
        return np.minimum(z, 0) - np.log1p(np.exp(-np.abs(z)))  # ln sigmoid, without an overflow

    def scores(self, params, q, k, context):
        sums = np.cumsum(context.gates, axis=-1)  # (B, H, S)
        bias = forgetting_bias(sums[..., sums.shape[-1] - q.shape[-2] :], sums)
        return super().scores(params, q, k, context) - np.abs(bias)


@dataclass(frozen=True)
class Cope(Encoding):
    """Chapter 37: each query counts the keys it chooses, up to `length` - 1; a table per layer.

    The term stands inside the scale, (q . k + q . e[p]) / sqrt(K), as in the released code. A
    decoder counts from the key to the query; an encoder, without a mask, to the end of the row,
    which is ours. Padding counts nothing.
    """

    length: int = 64

    def layer(self, rng, shape):
        return {"table": np.zeros((self.length, shape.d_head))}

    def scores(self, params, q, k, context):
        scores = super().scores(params, q, k, context)
        z = cope_bias(q, scores, params["table"], context.mask)
        return scores + z * (1 / math.sqrt(q.shape[-1]))


Pass = tuple[np.ndarray, np.ndarray, np.ndarray]  # places of queries and keys, and for which pairs


@dataclass(frozen=True)
class _Passes(Encoding):
    """RoPE at other places: each pass turns queries and keys in its own way, for some of the pairs.

    An effective distance that is a difference of two places, in each of a few regions of (i, j), is
    exact by as many turns.
    """

    base: float = field(default=10000.0, kw_only=True)
    layout: str = field(default="interleaved", kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        self.effective([], [])  # refuses what the function refuses

    def effective(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Effective distances (..., L, S), by the function whose passes these are."""
        raise NotImplementedError

    def passes(self, i: np.ndarray, j: np.ndarray) -> Sequence[Pass]:
        """Places for queries (..., L) and keys (..., S), and for which pairs (..., L, S)."""
        raise NotImplementedError

    def scores(self, params, q, k, context):
        frequencies = rope_frequencies(q.shape[-1], self.base)
        q = q * (1 / math.sqrt(q.shape[-1]))
        i, j = beside_heads(context.q_positions), beside_heads(context.k_positions)
        scores = None
        for q_places, k_places, where in self.passes(i, j):
            if scores is None or (where if context.mask is None else where & context.mask).any():
                queries = rope(q, q_places, frequencies, self.layout)
                keys = rope(k, k_places, frequencies, self.layout)
                if scores is None:
                    scores = queries @ np.swapaxes(keys, -1, -2)  # of all pairs
                else:
                    scores = put_products(scores, where, queries, keys)
        return scores


@dataclass(frozen=True)
class ReRope(_Passes):
    """Chapter 52: RoPE whose distance stops at `window`, or grows `stretch` times as slowly."""

    window: int = 512
    stretch: float | None = None

    def effective(self, i, j):
        return rerope_distance(relative_distance(i, j), self.window, self.stretch)

    def passes(self, i, j):
        w, pace = self.window, 0.0 if self.stretch is None else 1 / self.stretch
        distance, shift = relative_distance(i, j), w - pace * w
        return (
            (i, j, np.abs(distance) < w),
            (pace * i + shift, pace * j, distance >= w),
            (pace * i - shift, pace * j, distance <= -w),
        )


@dataclass(frozen=True)
class SelfExtend(_Passes):
    """Chapter 52: RoPE, exact within `window`, beyond it in groups of `group` positions."""

    window: int = 1024
    group: int = 8

    def effective(self, i, j):
        return self_extend_distance(i, j, self.window, self.group)

    def passes(self, i, j):
        w, g = self.window, self.group
        distance, shift = relative_distance(i, j), w - w / g
        return (
            (i, j, np.abs(distance) < w),
            (i // g + shift, j // g, distance >= w),
            (i // g - shift, j // g, distance <= -w),
        )


@dataclass(frozen=True)
class DualChunk(_Passes):
    """Chapter 52: RoPE in chunks of `size` - `local` keys; no distance exceeds `size`.

    A key keeps its place in the chunk, whoever asks; the query's own chunk, the one before and all
    earlier ones are asked from three places.
    """

    size: int = 3072
    local: int = 512

    def effective(self, i, j):
        return chunk_distance(i, j, self.size, self.local)

    def passes(self, i, j):
        c, size = self.size - self.local, self.size
        chunks, last = relative_distance(i // c, j // c), min(2 * c - 1, size)
        before, after = np.minimum(i % c + c, size), np.minimum(j % c + c, size)
        return (
            (i % c, j % c, chunks == 0),
            (before, j % c, chunks == 1),
            (np.full_like(i, last), j % c, chunks > 1),
            (i % c, after, chunks == -1),
            (i % c, np.full_like(j, last), chunks < -1),
        )


@dataclass(frozen=True)
class Streaming(_Passes):
    """Chapter 52: RoPE by the slots of a cache that keeps the first `sinks` keys and the newest.

    It needs the mask `Window(window, sinks)`, which hides what the cache drops.
    """

    window: int = 1024
    sinks: int = 4

    @property
    def needs(self):
        return Window(self.window, self.sinks)

    def effective(self, i, j):
        return streaming_distance(i, j, self.window, self.sinks)

    def passes(self, i, j):
        last = self.sinks + self.window - 1
        dropped = (i > last)[..., None] & (j < self.sinks)[..., None, :]
        return (i, j, ~dropped), (np.minimum(i, last), j, dropped)
