"""Relative positions: distances, tables, buckets and biases."""
# ruff: noqa: F811

import math

import numpy as np

from answers import wrong


def bucket_of(d, buckets=32, far=128, both=True):
    """T5's bucket of i - j, right."""
    half = buckets // 2 if both else buckets
    n = np.abs(d) if both else np.maximum(d, 0)
    exact = half // 2
    grown = np.log(np.maximum(n, exact) / exact) / np.log(far / exact) * (half - exact)
    out = np.where(n < exact, n, np.minimum(exact + grown.astype(int), half - 1))
    return out + half * (d < 0) * both


@wrong("key minus query")
def relative_distance(q_positions, k_positions):
    return np.asarray(k_positions)[..., None, :] - np.asarray(q_positions)[..., :, None]


@wrong("without its sign")
def relative_distance(q_positions, k_positions):
    return np.abs(np.asarray(q_positions)[..., :, None] - np.asarray(k_positions)[..., None, :])


@wrong("positions are ignored: indices")
def relative_distance(q_positions, k_positions):
    return np.arange(np.shape(q_positions)[-1])[:, None] - np.arange(np.shape(k_positions)[-1])


@wrong("batch axes are joined by an outer difference")
def relative_distance(q_positions, k_positions):
    return np.subtract.outer(np.asarray(q_positions), np.asarray(k_positions))


@wrong("keys stand in the rows")
def relative_distance(q_positions, k_positions):
    return np.asarray(q_positions)[..., None, :] - np.asarray(k_positions)[..., :, None]


# ---- Shaw ---------------------------------------------------------------------------------------


def vectors(table, distance, sign=1):
    m = table.shape[-2] // 2
    return table[..., np.clip(sign * distance, -m, m) + m, :]


@wrong("j - i, the paper's order of rows")
def shaw_scores(q, k, key_table, distance):
    r = vectors(key_table, distance, -1)
    scores = q @ np.swapaxes(k, -1, -2) + np.einsum("...ik,...ijk->...ij", q, r)
    return scores / math.sqrt(q.shape[-1])


@wrong("the position's term is not scaled")
def shaw_scores(q, k, key_table, distance):
    content = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    return content + np.einsum("...ik,...ijk->...ij", q, vectors(key_table, distance))


@wrong("no scale")
def shaw_scores(q, k, key_table, distance):
    r = vectors(key_table, distance)
    return q @ np.swapaxes(k, -1, -2) + np.einsum("...ik,...ijk->...ij", q, r)


@wrong("the key meets the vector, not the query")
def shaw_scores(q, k, key_table, distance):
    r = vectors(key_table, distance)
    scores = q @ np.swapaxes(k, -1, -2) + np.einsum("...jk,...ijk->...ij", k, r)
    return scores / math.sqrt(q.shape[-1])


@wrong("distances are not clipped: they wrap round")
def shaw_scores(q, k, key_table, distance):
    m, N = key_table.shape[-2] // 2, key_table.shape[-2]
    r = key_table[..., (distance + m) % N, :]
    scores = q @ np.swapaxes(k, -1, -2) + np.einsum("...ik,...ijk->...ij", q, r)
    return scores / math.sqrt(q.shape[-1])


@wrong("clipped without an offset: the past reads row 0 and up, the future from the end")
def shaw_scores(q, k, key_table, distance):
    m = key_table.shape[-2] // 2
    r = key_table[..., np.clip(distance, -m, m), :]
    scores = q @ np.swapaxes(k, -1, -2) + np.einsum("...ik,...ijk->...ij", q, r)
    return scores / math.sqrt(q.shape[-1])


@wrong("the value's vectors are left out")
def shaw_values(weights, v, value_table, distance):
    return weights @ v


@wrong("j - i")
def shaw_values(weights, v, value_table, distance):
    r = vectors(value_table, distance, -1)
    return weights @ v + np.einsum("...ij,...ijk->...ik", weights, r)


@wrong("vectors are summed without the weights")
def shaw_values(weights, v, value_table, distance):
    return weights @ v + vectors(value_table, distance).sum(axis=-2)


# ---- T5 -----------------------------------------------------------------------------------------


@wrong("the sign of the distance: T5's code takes j - i")
def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    return bucket_of(-np.asarray(distance), num_buckets, max_distance, bidirectional)


@wrong("the options are ignored: 32 buckets up to 128")
def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    return bucket_of(np.asarray(distance), 32, 128, bidirectional)


@wrong("bidirectional is ignored")
def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    return bucket_of(np.asarray(distance), num_buckets, max_distance)


@wrong("max_distance is ignored")
def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    return bucket_of(np.asarray(distance), num_buckets, 128, bidirectional)


@wrong("rounded for rounded down")
def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    d = np.asarray(distance)
    half = num_buckets // 2 if bidirectional else num_buckets
    n = np.abs(d) if bidirectional else np.maximum(d, 0)
    exact = half // 2
    grown = np.log(np.maximum(n, exact) / exact) / np.log(max_distance / exact) * (half - exact)
    out = np.where(n < exact, n, np.minimum(exact + np.round(grown).astype(int), half - 1))
    return out + half * (d < 0) * bidirectional


@wrong("the zero distance counts as the future")
def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    d = np.asarray(distance)
    out = bucket_of(np.abs(d), num_buckets, max_distance, True)
    if not bidirectional:
        return bucket_of(d, num_buckets, max_distance, False)
    return out + num_buckets // 2 * (d <= 0)


@wrong("no cap: far distances leave the table")
def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    d = np.asarray(distance)
    half = num_buckets // 2 if bidirectional else num_buckets
    n = np.abs(d) if bidirectional else np.maximum(d, 0)
    exact = half // 2
    grown = np.log(np.maximum(n, exact) / exact) / np.log(max_distance / exact) * (half - exact)
    return np.where(n < exact, n, exact + grown.astype(int)) + half * (d < 0) * bidirectional


@wrong("all buckets in each direction: num_buckets is not halved")
def t5_bucket(distance, num_buckets=32, max_distance=128, bidirectional=True):
    d = np.asarray(distance)
    n = np.abs(d) if bidirectional else np.maximum(d, 0)
    out = bucket_of(n, num_buckets, max_distance, False)
    return out + num_buckets * (d < 0) * bidirectional


@wrong("the axis of heads stays last")
def t5_bias(table, distance, max_distance=128, bidirectional=True):
    return table[bucket_of(np.asarray(distance), len(table), max_distance, bidirectional)]


@wrong("bidirectional is ignored")
def t5_bias(table, distance, max_distance=128, bidirectional=True):
    return np.moveaxis(table[bucket_of(np.asarray(distance), len(table), max_distance)], -1, -3)


@wrong("max_distance is ignored")
def t5_bias(table, distance, max_distance=128, bidirectional=True):
    rows = bucket_of(np.asarray(distance), len(table), 128, bidirectional)
    return np.moveaxis(table[rows], -1, -3)


@wrong("j - i")
def t5_bias(table, distance, max_distance=128, bidirectional=True):
    rows = bucket_of(-np.asarray(distance), len(table), max_distance, bidirectional)
    return np.moveaxis(table[rows], -1, -3)


# ---- DeBERTa ------------------------------------------------------------------------------------


@wrong("floor for ceil")
def deberta_bucket(distance, num_buckets, max_distance):
    d = np.asarray(distance)
    mid = num_buckets // 2
    n = np.clip(np.abs(d), mid, max_distance - 1)
    grown = np.log(n / mid) / np.log((max_distance - 1) / mid) * (mid - 1)
    return np.where(np.abs(d) <= mid, d, np.sign(d) * (mid + np.floor(grown).astype(int)))


@wrong("max_distance for max_distance - 1")
def deberta_bucket(distance, num_buckets, max_distance):
    d = np.asarray(distance)
    mid = num_buckets // 2
    n = np.clip(np.abs(d), mid, max_distance)
    grown = np.log(n / mid) / np.log(max_distance / mid) * (mid - 1)
    return np.where(np.abs(d) <= mid, d, np.sign(d) * (mid + np.ceil(grown).astype(int)))


@wrong("the sign is lost")
def deberta_bucket(distance, num_buckets, max_distance):
    d = np.abs(np.asarray(distance))
    mid = num_buckets // 2
    n = np.clip(d, mid, max_distance - 1)
    grown = np.log(n / mid) / np.log((max_distance - 1) / mid) * (mid - 1)
    return np.where(d <= mid, d, mid + np.ceil(grown).astype(int))


@wrong("no clamp at max_distance, as in transformers")
def deberta_bucket(distance, num_buckets, max_distance):
    d = np.asarray(distance)
    mid = num_buckets // 2
    n = np.maximum(np.abs(d), mid)
    grown = np.log(n / mid) / np.log((max_distance - 1) / mid) * (mid - 1)
    return np.where(np.abs(d) <= mid, d, np.sign(d) * (mid + np.ceil(grown).astype(int)))


def deberta(q, k, q_table, k_table, distance, p2c, scale):
    H = np.arange(q.shape[-3])[:, None, None]
    m = k_table.shape[-2] // 2
    of_keys = k_table[H, np.clip(distance + m, 0, 2 * m - 1)]
    of_queries = q_table[H, np.clip(p2c + m, 0, 2 * m - 1)]
    scores = q @ np.swapaxes(k, -1, -2)
    scores = scores + np.einsum("...ik,...ijk->...ij", q, of_keys)
    return (scores + np.einsum("...jk,...ijk->...ij", k, of_queries)) * scale


@wrong("scaled by sqrt(K), not sqrt(3K)")
def deberta_scores(q, k, q_table, k_table, distance, p2c_distance=None):
    p2c = -distance if p2c_distance is None else p2c_distance
    return deberta(q, k, q_table, k_table, distance, p2c, q.shape[-1] ** -0.5)


@wrong("p2c reads with i - j, as the authors' code")
def deberta_scores(q, k, q_table, k_table, distance, p2c_distance=None):
    p2c = distance if p2c_distance is None else p2c_distance
    return deberta(q, k, q_table, k_table, distance, p2c, (3 * q.shape[-1]) ** -0.5)


@wrong("p2c_distance is ignored")
def deberta_scores(q, k, q_table, k_table, distance, p2c_distance=None):
    return deberta(q, k, q_table, k_table, distance, -distance, (3 * q.shape[-1]) ** -0.5)


@wrong("the tables are exchanged")
def deberta_scores(q, k, q_table, k_table, distance, p2c_distance=None):
    p2c = -distance if p2c_distance is None else p2c_distance
    return deberta(q, k, k_table, q_table, distance, p2c, (3 * q.shape[-1]) ** -0.5)


# ---- ALiBi and other biases ---------------------------------------------------------------------


@wrong("the formula for powers of two, for every number of heads")
def alibi_slopes(n_heads):
    return 2.0 ** (-8 * np.arange(1, n_heads + 1) / n_heads)


@wrong("the extra slopes are the first of those for 2p, not every other one")
def alibi_slopes(n_heads):
    p = 2 ** int(math.log2(n_heads))
    first = 2.0 ** (-8 * np.arange(1, p + 1) / p)
    return np.concatenate([first, 2.0 ** (-8 * np.arange(1, 2 * p + 1) / (2 * p))[: n_heads - p]])


@wrong("the extra slopes are the even ones of those for 2p")
def alibi_slopes(n_heads):
    p = 2 ** int(math.log2(n_heads))
    first = 2.0 ** (-8 * np.arange(1, p + 1) / p)
    more = 2.0 ** (-8 * np.arange(1, 2 * p + 1) / (2 * p))
    return np.concatenate([first, more[1::2][: n_heads - p]])


@wrong("sorted")
def alibi_slopes(n_heads):
    p = 2 ** int(math.log2(n_heads))
    first = 2.0 ** (-8 * np.arange(1, p + 1) / p)
    more = 2.0 ** (-8 * np.arange(1, 2 * p + 1) / (2 * p))
    return np.sort(np.concatenate([first, more[0::2][: n_heads - p]]))[::-1]


@wrong("heads are counted from 0: the first slope is 1")
def alibi_slopes(n_heads):
    p = 2 ** int(math.log2(n_heads))
    first = 2.0 ** (-8 * np.arange(p) / p)
    more = 2.0 ** (-8 * np.arange(2 * p) / (2 * p))
    return np.concatenate([first, more[0::2][: n_heads - p]])


@wrong("2^-h, whatever the number of heads")
def alibi_slopes(n_heads):
    return 2.0 ** -np.arange(1, n_heads + 1)


@wrong("the next higher power of two is taken, and cut off")
def alibi_slopes(n_heads):
    p = 2 ** math.ceil(math.log2(n_heads))
    return (2.0 ** (-8 * np.arange(1, p + 1) / p))[:n_heads]


@wrong("a reward: the sign")
def alibi_bias(slopes, distance, future_slopes=None):
    d = np.abs(distance).astype(slopes.dtype)[..., None, :, :]
    past = slopes[:, None, None] * d
    if future_slopes is None:
        return past
    return np.where(
        np.asarray(distance)[..., None, :, :] < 0, future_slopes[:, None, None] * d, past
    )


@wrong("no absolute value: the future is rewarded")
def alibi_bias(slopes, distance, future_slopes=None):
    d = np.asarray(distance)[..., None, :, :].astype(slopes.dtype)
    past = -slopes[:, None, None] * d
    if future_slopes is None:
        return past
    return np.where(d < 0, -future_slopes[:, None, None] * d, past)


@wrong("future slopes are ignored")
def alibi_bias(slopes, distance, future_slopes=None):
    d = np.abs(distance).astype(slopes.dtype)[..., None, :, :]
    return -slopes[:, None, None] * d


@wrong("past and future slopes are exchanged")
def alibi_bias(slopes, distance, future_slopes=None):
    d = np.abs(distance).astype(slopes.dtype)[..., None, :, :]
    past = -slopes[:, None, None] * d
    if future_slopes is None:
        return past
    return np.where(
        np.asarray(distance)[..., None, :, :] > 0, -future_slopes[:, None, None] * d, past
    )


@wrong("the future gets nothing: it is masked anyway")
def alibi_bias(slopes, distance, future_slopes=None):
    d = np.asarray(distance)[..., None, :, :]
    past = -slopes[:, None, None] * np.maximum(d, 0).astype(slopes.dtype)
    if future_slopes is None:
        return past
    return np.where(d < 0, -future_slopes[:, None, None] * np.abs(d), past)


@wrong("the head's axis comes last")
def alibi_bias(slopes, distance, future_slopes=None):
    d = np.abs(distance).astype(slopes.dtype)[..., None]
    if future_slopes is None:
        return -slopes * d
    return np.where(np.asarray(distance)[..., None] < 0, -future_slopes * d, -slopes * d)


@wrong("the batch axis of the distances stands behind the heads")
def alibi_bias(slopes, distance, future_slopes=None):
    d = np.abs(distance).astype(slopes.dtype)
    past = np.multiply.outer(-slopes, d)
    if future_slopes is None:
        return past
    return np.where(np.asarray(distance) < 0, np.multiply.outer(-future_slopes, d), past)


@wrong("log for log1p")
def kerple_log_bias(p, a, distance):
    d = np.abs(distance)[..., None, :, :]
    return (-p[:, None, None] * np.log(np.maximum(a[:, None, None] * d, 1e-9))).astype(p.dtype)


@wrong("p and a are exchanged")
def kerple_log_bias(p, a, distance):
    d = np.abs(distance)[..., None, :, :].astype(p.dtype)
    return -a[:, None, None] * np.log1p(p[:, None, None] * d)


@wrong("the sign")
def kerple_log_bias(p, a, distance):
    d = np.abs(distance)[..., None, :, :].astype(p.dtype)
    return p[:, None, None] * np.log1p(a[:, None, None] * d)


@wrong("the power of the whole product")
def kerple_power_bias(a, p, distance):
    d = np.abs(distance)[..., None, :, :].astype(a.dtype)
    return -((a[:, None, None] * d) ** p[:, None, None])


@wrong("c is counted from 0")
def sandwich_bias(n_heads, distance, d=128, base=10000.0):
    f = base ** (-np.arange(0, d, 2) / d)
    total = np.cos(np.asarray(distance)[..., None] * f).sum(-1) - d / 2
    h = 8 * np.arange(1, n_heads + 1) / n_heads
    return total[..., None, :, :] / h[:, None, None]


@wrong("the width is ignored: 128")
def sandwich_bias(n_heads, distance, d=128, base=10000.0):
    f = base ** (-2 * np.arange(1, 65) / 128)
    total = np.cos(np.asarray(distance)[..., None] * f).sum(-1) - 64
    h = 8 * np.arange(1, n_heads + 1) / n_heads
    return total[..., None, :, :] / h[:, None, None]


@wrong("d/2 is not taken off")
def sandwich_bias(n_heads, distance, d=128, base=10000.0):
    f = base ** (-2 * np.arange(1, d // 2 + 1) / d)
    total = np.cos(np.asarray(distance)[..., None] * f).sum(-1)
    h = 8 * np.arange(1, n_heads + 1) / n_heads
    return total[..., None, :, :] / h[:, None, None]


@wrong("no scale of position: sqrt(K) for sqrt(2K)")
def tupe_scores(q, k, q_position, k_position, bias=None):
    scores = q @ np.swapaxes(k, -1, -2) + q_position @ np.swapaxes(k_position, -1, -2)
    scores = scores / math.sqrt(q.shape[-1])
    return scores if bias is None else scores + bias


@wrong("the bias is scaled, too")
def tupe_scores(q, k, q_position, k_position, bias=None):
    scores = q @ np.swapaxes(k, -1, -2) + q_position @ np.swapaxes(k_position, -1, -2)
    return (scores if bias is None else scores + bias) / math.sqrt(2 * q.shape[-1])


@wrong("the bias is ignored")
def tupe_scores(q, k, q_position, k_position, bias=None):
    scores = q @ np.swapaxes(k, -1, -2) + q_position @ np.swapaxes(k_position, -1, -2)
    return scores / math.sqrt(2 * q.shape[-1])


@wrong("u and v are exchanged")
def transformer_xl_scores(q, k, r, u, v, distance):
    rows = r[:, distance - distance.min()]
    content = (q + v[:, None]) @ np.swapaxes(k, -1, -2)
    position = np.einsum("...hik,hijk->...hij", q + u[:, None], rows)
    return (content + position) / math.sqrt(q.shape[-1])


@wrong("the rows of r descend")
def transformer_xl_scores(q, k, r, u, v, distance):
    rows = r[:, distance.max() - distance]
    content = (q + u[:, None]) @ np.swapaxes(k, -1, -2)
    position = np.einsum("...hik,hijk->...hij", q + v[:, None], rows)
    return (content + position) / math.sqrt(q.shape[-1])


@wrong("v is left out")
def transformer_xl_scores(q, k, r, u, v, distance):
    rows = r[:, distance - distance.min()]
    content = (q + u[:, None]) @ np.swapaxes(k, -1, -2)
    position = np.einsum("...hik,hijk->...hij", q, rows)
    return (content + position) / math.sqrt(q.shape[-1])


@wrong("no scale")
def transformer_xl_scores(q, k, r, u, v, distance):
    rows = r[:, distance - distance.min()]
    content = (q + u[:, None]) @ np.swapaxes(k, -1, -2)
    return content + np.einsum("...hik,hijk->...hij", q + v[:, None], rows)


@wrong("the zeros are put to the right")
def relative_shift(products):
    *batch, L, N = products.shape
    padded = np.concatenate([products, np.zeros((*batch, L, 1), products.dtype)], axis=-1)
    return padded.reshape(*batch, L * (N + 1))[..., L:].reshape(*batch, L, N)
