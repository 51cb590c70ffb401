"""Ports of PyTorch code: its names, its buffers, its float32."""

import math

import numpy as np
from answers.apart import case, wrong


def rotate_half(x):
    x1, x2 = np.split(x, 2, axis=-1)
    return np.concatenate((-x2, x1), axis=-1)


def F_softmax(x, dim=-1):
    m = np.amax(x, axis=dim, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(m), m, 0).astype(x.dtype))
    s = e.sum(axis=dim, keepdims=True)
    return e / np.where(s == 0, np.ones_like(s), s)


# ---- sinusoids, RoPE -----------------------------------------------------------------------------


@wrong(
    "sinusoidal",
    "angles in float32, as the buffer `pe` has it: at large positions they are off",
    ("float32", "precision", "rounded", "single", "32 bit"),
    lambda draw: case(np.array([100003.0, 99991.0]), 16),
)
def positional_encoding(positions, d_model, base=10000.0, layout="interleaved"):
    position = np.asarray(positions, dtype=np.float32)[..., None]
    div_term = np.exp(
        np.arange(0, d_model, 2, dtype=np.float32) * np.float32(-math.log(base) / d_model)
    )
    pe = np.zeros((*position.shape[:-1], d_model))
    if layout == "interleaved":
        pe[..., 0::2] = np.sin(position * div_term)
        pe[..., 1::2] = np.cos(position * div_term)
    else:
        pe[..., : d_model // 2] = np.sin(position * div_term)
        pe[..., d_model // 2 :] = np.cos(position * div_term)
    return pe


@wrong(
    "rope",
    "the layout is ignored: rotate_half always, pairs i and i + n",
    ("layout", "half", "interleav", "neighbour"),
    lambda draw: case(draw(2, 3, 8), np.arange(3)),
)
def apply_rotary_pos_emb(x, positions, frequencies=None, layout="interleaved"):
    dim = x.shape[-1]
    if frequencies is None:
        frequencies = 1.0 / (10000 ** (np.arange(0, dim, 2) / dim))
    freqs = np.asarray(positions)[..., None] * frequencies
    emb = np.concatenate((freqs, freqs), axis=-1)
    cos, sin = np.cos(emb).astype(x.dtype), np.sin(emb).astype(x.dtype)
    rot = emb.shape[-1]
    x_rot, x_pass = x[..., :rot], x[..., rot:]
    return np.concatenate((x_rot * cos + rotate_half(x_rot) * sin, x_pass), axis=-1)


@wrong(
    "rope",
    "positions are ignored: the first L rows of a cached table serve, whatever stands where",
    ("position", "ignor", "arange", "from 0", "index"),
    lambda draw: case(draw(3, 8), np.array([5, 6, 9])),
)
def forward_rope(x, positions, frequencies=None, layout="interleaved"):
    L, dim = x.shape[-2:]
    if frequencies is None:
        frequencies = 1.0 / (10000 ** (np.arange(0, dim, 2) / dim))
    n = len(frequencies)
    t = np.arange(L)
    freqs = np.outer(t, frequencies)
    cos, sin = np.cos(freqs).astype(x.dtype), np.sin(freqs).astype(x.dtype)
    out = np.array(x)
    if layout == "interleaved":
        x1, x2 = x[..., 0 : 2 * n : 2], x[..., 1 : 2 * n : 2]
        out[..., 0 : 2 * n : 2] = x1 * cos - x2 * sin
        out[..., 1 : 2 * n : 2] = x1 * sin + x2 * cos
    else:
        x1, x2 = x[..., :n], x[..., n : 2 * n]
        out[..., :n] = x1 * cos - x2 * sin
        out[..., n : 2 * n] = x1 * sin + x2 * cos
    return out


@wrong(
    "rope",
    "freqs_cis is complex64, also for x in float64",
    ("complex64", "float32", "precision", "rounded", "single"),
    lambda draw: case(draw(3, 8), np.array([1001, 5003, 70001])),
)
def apply_rotary_emb(x, positions, frequencies=None, layout="interleaved"):
    dim = x.shape[-1]
    if frequencies is None:
        frequencies = 1.0 / (10000 ** (np.arange(0, dim, 2) / dim))
    n = len(frequencies)
    angles = np.asarray(positions)[..., None] * np.asarray(frequencies)
    freqs_cis = np.exp(1j * angles.astype(np.float32)).astype(np.complex64)
    turned, rest = x[..., : 2 * n], x[..., 2 * n :]
    if layout == "interleaved":
        z = turned[..., 0::2] + 1j * turned[..., 1::2]
    else:
        z = turned[..., :n] + 1j * turned[..., n:]
    z = z * freqs_cis
    if layout == "interleaved":
        y = np.stack((z.real, z.imag), axis=-1).reshape(turned.shape)
    else:
        y = np.concatenate((z.real, z.imag), axis=-1)
    return np.concatenate((y, rest), axis=-1).astype(x.dtype)


@wrong(
    "rope",
    "rotate_half has the minus at the other half: it turns the other way",
    (
        "other way",
        "sign",
        "opposite",
        "clockwise",
        "minus",
        "backward",
        "negative angle",
        "inverse",
    ),
    lambda draw: case(draw(3, 8), np.arange(3)),
)
def apply_rope(x, positions, frequencies=None, layout="interleaved"):
    dim = x.shape[-1]
    if frequencies is None:
        frequencies = 10000.0 ** -(np.arange(0, dim, 2) / dim)
    n = frequencies.shape[0]
    freqs = np.asarray(positions)[..., None] * frequencies
    cos, sin = np.cos(freqs).astype(x.dtype), np.sin(freqs).astype(x.dtype)
    out = x.copy()
    first = np.arange(0, 2 * n, 2) if layout == "interleaved" else np.arange(n)
    second = first + 1 if layout == "interleaved" else first + n
    x1, x2 = x[..., first], x[..., second]
    out[..., first] = x1 * cos + x2 * sin
    out[..., second] = x2 * cos - x1 * sin
    return out


@wrong(
    "rope",
    "with fewer frequencies than K/2 in the half layout, the partner is K/2 away, not n",
    ("i + n", "i+n", "K/2", "partial", "fewer", "first 2n", "whole head", "whole width"),
    lambda draw: case(draw(3, 8), np.arange(3), np.array([1.0, 0.1]), layout="half"),
)
def rope(x, positions, frequencies=None, layout="interleaved"):
    dim = x.shape[-1]
    if frequencies is None:
        frequencies = 10000.0 ** -(np.arange(0, dim, 2) / dim)
    n = frequencies.shape[0]
    angles = np.asarray(positions)[..., None] * frequencies
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    y = x.copy()
    if layout == "interleaved":
        a, b = x[..., 0 : 2 * n : 2], x[..., 1 : 2 * n : 2]
        y[..., 0 : 2 * n : 2] = a * cos - b * sin
        y[..., 1 : 2 * n : 2] = b * cos + a * sin
    else:
        half = dim // 2
        a, b = x[..., :n], x[..., half : half + n]
        y[..., :n] = a * cos - b * sin
        y[..., half : half + n] = b * cos + a * sin
    return y


@wrong(
    "rope",
    "a table of cosines for 0 .. max is read at the positions: negative ones read it from its end",
    ("negative", "below 0", "from its end", "before 0", "table"),
    lambda draw: case(draw(4, 8), np.array([-2, -1, 0, 3])),
)
def rotary_embedding(x, positions, frequencies=None, layout="interleaved"):
    dim = x.shape[-1]
    inv_freq = 10000.0 ** -(np.arange(0, dim, 2) / dim) if frequencies is None else frequencies
    n = len(inv_freq)
    positions = np.asarray(positions)
    whole = np.abs(positions).max(initial=0)
    if np.any(positions != np.round(positions)) or whole > 2**20:
        angles = positions[..., None] * inv_freq
    else:
        angles = np.outer(np.arange(int(whole) + 1), inv_freq)[positions.astype(int)]
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    y = x.copy()
    one = slice(0, 2 * n, 2) if layout == "interleaved" else slice(0, n)
    two = slice(1, 2 * n, 2) if layout == "interleaved" else slice(n, 2 * n)
    y[..., one] = x[..., one] * cos - x[..., two] * sin
    y[..., two] = x[..., one] * sin + x[..., two] * cos
    return y


@wrong(
    "rope",
    "angles are computed in the dtype of x, so that float32 and float16 lose large positions",
    ("float16", "float32", "precision", "dtype of x", "x's dtype", "rounded"),
    lambda draw: case(draw(3, 8, dtype=np.float32), np.array([1001, 50003, 170001])),
)
def rope_forward(x, positions, frequencies=None, layout="interleaved"):
    dim = x.shape[-1]
    if frequencies is None:
        frequencies = 1.0 / (10000 ** (np.arange(0, dim, 2) / dim))
    n = len(frequencies)
    angles = np.asarray(positions, x.dtype)[..., None] * np.asarray(frequencies, x.dtype)
    c, s = np.cos(angles), np.sin(angles)
    o = x.copy()
    e = slice(0, 2 * n, 2) if layout == "interleaved" else slice(0, n)
    f = slice(1, 2 * n, 2) if layout == "interleaved" else slice(n, 2 * n)
    o[..., e] = x[..., e] * c - x[..., f] * s
    o[..., f] = x[..., e] * s + x[..., f] * c
    return o


# ---- heads and masks -----------------------------------------------------------------------------


@wrong(
    "split_heads",
    "view(B, H, L, K) at once: tokens are cut to pieces",
    ("reshape", "token", "exchange", "transpose", "axes", "pieces"),
    lambda draw: case(draw(2, 3, 8), 4),
)
def split_heads(x, n_heads):
    *batch, L, D = x.shape
    return x.reshape(*batch, n_heads, L, D // n_heads)


@wrong(
    "split_heads",
    "rearrange '... l (k h) -> ... h l k': heads take every H-th column, not a block",
    ("(K, H)", "every H", "block", "stride", "interleav", "c H + h", "columns", "neighbour"),
    lambda draw: case(draw(2, 3, 8), 2),
)
def split_into_heads(x, n_heads):
    *batch, L, D = x.shape
    return np.moveaxis(x.reshape(*batch, L, D // n_heads, n_heads), -1, -3)


@wrong(
    "padding_mask",
    "key_padding_mask: True stands where there is padding",
    ("invert", "opposite", "True", "blocked", "padding"),
    lambda draw: case(np.array([1, 3]), 4),
)
def key_padding_mask(lengths, size, side="right"):
    idx = np.arange(size)[None, :]
    if side == "right":
        mask = idx >= np.asarray(lengths)[:, None]
    else:
        mask = idx < size - np.asarray(lengths)[:, None]
    return mask[:, None, None, :]


@wrong(
    "causal_mask",
    "tril of ones: only the numbers of queries and keys are looked at, not their positions",
    ("tril", "index", "indices", "positions", "from 0"),
    lambda draw: case(np.array([4, 5]), np.arange(6)),
)
def causal_mask(q_positions, k_positions):
    L, S = q_positions.shape[-1], k_positions.shape[-1]
    shape = np.broadcast_shapes(q_positions.shape[:-1], k_positions.shape[:-1])
    return np.broadcast_to(np.tril(np.ones((L, S), dtype=bool)), (*shape, L, S))


# ---- relative ------------------------------------------------------------------------------------


@wrong(
    "relative_shift",
    "the column of zeros is put to the right",
    ("right", "left", "column of zeros", "zeros", "pad"),
    lambda draw: case(draw(2, 3, 5)),
)
def _rel_shift(products):
    *batch, L, N = products.shape
    zero_pad = np.zeros((*batch, L, 1), dtype=products.dtype)
    x_padded = np.concatenate([products, zero_pad], axis=-1)
    return x_padded.reshape(*batch, -1)[..., L:].reshape(*batch, L, N)


@wrong(
    "shaw_scores",
    "np.sqrt of a Python number is a float64, which promotes float32 scores",
    ("np.sqrt", "promot", "dtype", "float64"),
    lambda draw: case(
        draw(3, 4, dtype=np.float32),
        draw(3, 4, dtype=np.float32),
        draw(5, 4, dtype=np.float32),
        np.subtract.outer(np.arange(3), np.arange(3)),
    ),
)
def relative_attention_scores(q, k, key_table, distance):
    m = (key_table.shape[0] - 1) // 2
    rel = key_table[np.clip(distance, -m, m) + m]
    scores = np.einsum("...ik,...jk->...ij", q, k) + np.einsum("...ik,ijk->...ij", q, rel)
    return scores / np.sqrt(q.shape[-1])


@wrong(
    "shaw_scores",
    "the relative part is not scaled: q k / sqrt(K) + q r",
    ("scale", "sqrt", "divided"),
    lambda draw: case(
        draw(3, 4), draw(3, 4), draw(5, 4), np.subtract.outer(np.arange(3), np.arange(3))
    ),
)
def shaw(q, k, key_table, distance):
    max_rel = key_table.shape[0] // 2
    scores = np.matmul(q, np.swapaxes(k, -1, -2)) / math.sqrt(q.shape[-1])
    emb = key_table[np.clip(distance, -max_rel, max_rel) + max_rel]
    return scores + np.matmul(q[..., None, :], np.swapaxes(emb, -1, -2))[..., 0, :]


@wrong(
    "transformer_xl_scores",
    "the biases u and v are exchanged",
    ("u and v", "v and u", "exchang", "swap", "biases"),
    lambda draw: case(
        draw(2, 3, 4),
        draw(2, 3, 4),
        draw(2, 5, 4),
        draw(2, 4),
        draw(2, 4),
        np.subtract.outer(np.arange(3), np.arange(3)),
    ),
)
def rel_multihead_attn(q, k, r, u, v, distance):
    r_w_bias, r_r_bias = v[:, None, :], u[:, None, :]
    AC = np.einsum("...hik,...hjk->...hij", q + r_w_bias, k)
    rows = r[:, distance - distance.min()]
    BD = np.einsum("...hik,hijk->...hij", q + r_r_bias, rows)
    return (AC + BD) / math.sqrt(q.shape[-1])


@wrong(
    "t5_bias",
    "the table is read as (L, S, H) and stays so: no permute([2, 0, 1])",
    ("shape", "axis", "axes", "transpose", "head"),
    lambda draw: case(draw(32, 2), np.subtract.outer(np.arange(3), np.arange(4))),
)
def compute_bias(table, distance, max_distance=128, bidirectional=True):
    N = table.shape[0]
    half = N // 2 if bidirectional else N
    n = np.abs(distance) if bidirectional else np.maximum(distance, 0)
    exact = half // 2
    ratio = np.log(np.maximum(n, 1) / exact) / math.log(max_distance / exact)
    large = np.minimum(exact + np.floor(ratio * (half - exact) + 1e-9).astype(int), half - 1)
    bucket = np.where(n < exact, n, large)
    if bidirectional:
        bucket = bucket + half * (distance < 0)
    return table[bucket]


# ---- multi-head attention ------------------------------------------------------------------------


def _params(draw, D=8, H=4, G=4, K=2, bias=True):
    p = {
        "W_q": draw(D, H * K),
        "W_k": draw(D, G * K),
        "W_v": draw(D, G * K),
        "W_o": draw(H * K, D),
    }
    if bias:
        p |= {"b_q": draw(H * K), "b_k": draw(G * K), "b_v": draw(G * K), "b_o": draw(D)}
    return p


def _mha(params, x, source, n_heads, mask, groups="repeat", merge=True):
    B, L, _ = x.shape
    S = source.shape[1]
    q = x @ params["W_q"] + params.get("b_q", 0)
    k = source @ params["W_k"] + params.get("b_k", 0)
    v = source @ params["W_v"] + params.get("b_v", 0)
    head_dim = q.shape[-1] // n_heads
    q = q.reshape(B, L, n_heads, head_dim).transpose(0, 2, 1, 3)
    k = k.reshape(B, S, -1, head_dim).transpose(0, 2, 1, 3)
    v = v.reshape(B, S, -1, head_dim).transpose(0, 2, 1, 3)
    n_rep = n_heads // k.shape[1]
    if groups == "repeat":
        k, v = k.repeat(n_rep, axis=1), v.repeat(n_rep, axis=1)
    else:
        k, v = np.tile(k, (1, n_rep, 1, 1)), np.tile(v, (1, n_rep, 1, 1))
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(head_dim)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    w = F_softmax(scores)
    o = w @ v
    o = o.transpose(0, 2, 1, 3).reshape(B, L, -1) if merge else o.reshape(B, L, -1)
    return o @ params["W_o"] + params.get("b_o", 0), w


@wrong(
    "multi_head_attention",
    "the outputs (B, H, L, K) are viewed as (B, L, H K) without the transpose back",
    ("merge", "side by side", "transpose", "exchange", "reshape"),
    lambda draw: case(_params(draw), draw(2, 3, 8), draw(2, 3, 8), 4),
)
def forward(params, x, source, n_heads, mask=None):
    return _mha(params, x, source, n_heads, mask, merge=False)


@wrong(
    "multi_head_attention",
    "key heads are tiled, 0 1 0 1, not repeated, 0 0 1 1: head h reads h mod G",
    ("tile", "mod G", "h % G", "group", "repeat", "h // "),
    lambda draw: case(_params(draw, G=2), draw(2, 3, 8), draw(2, 3, 8), 4),
)
def grouped_query_attention(params, x, source, n_heads, mask=None):
    return _mha(params, x, source, n_heads, mask, groups="tile")


@wrong(
    "embed_tokens",
    "nn.Embedding alone: the square root of D is forgotten where no scale is given",
    ("scale", "sqrt", "root", "times the expected"),
    lambda draw: case(draw(5, 4), np.array([[0, 3]])),
)
def embedding(table, tokens, scale=None):
    out = table[tokens]
    return out if scale is None else out * np.asarray(scale, table.dtype)
