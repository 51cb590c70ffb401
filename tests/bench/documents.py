"""The schemes as the usual PyTorch code writes them: what pe_numpy is measured against.

Written for this benchmark, after the algorithms of the tutorials that the book answers: Shaw's
vectors gathered for every pair, T5's buckets computed for every pair, RoPE by halves and by complex
numbers, ALiBi's whole matrix. For Transformer-XL and DeBERTa the tutorials have formulas alone;
here the vectors R_(i-j) are gathered, as their Shaw does. `gathered_scores` is the better form that
an expert would choose. The schemes that the tutorials do not have, from `kerple_log_bias` to
`mla_scores`, are computed as the released code of each does it: for every pair, or with its own
short cut. Nothing is kept from call to call, but for what a class makes when it is constructed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def distances(L: int) -> Tensor:
    """All pairs' i - j: (L, L)."""
    positions = torch.arange(L)
    return positions[:, None] - positions[None, :]


def sinusoidal(L: int, d_model: int) -> Tensor:
    """Sines in the even, cosines in the odd components, in float32."""
    position = torch.arange(L).float()[:, None]
    inverse = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    code = torch.zeros(L, d_model)
    code[:, 0::2] = torch.sin(position * inverse)
    code[:, 1::2] = torch.cos(position * inverse)
    return code


def shaw_scores(q: Tensor, k: Tensor, table: Tensor) -> Tensor:
    """A vector for every pair, (L, L, K), and an einsum with the queries."""
    L, K = q.shape[-2:]
    vectors = table[distances(L) + L - 1]  # (L, L, K)
    position = torch.einsum("bhld,lmd->bhlm", q, vectors)
    return (q @ k.transpose(-1, -2) + position) / math.sqrt(K)


def gathered_scores(q: Tensor, k: Tensor, table: Tensor) -> Tensor:
    """The same scores, by a product with each row of the table and a gather of the products."""
    L, K = q.shape[-2:]
    products = q @ table.T  # (B, H, L, 2L - 1)
    index = (distances(L) + L - 1).expand(*q.shape[:-2], L, L)
    return (q @ k.transpose(-1, -2) + products.gather(-1, index)) / math.sqrt(K)


def transformer_xl_scores(q: Tensor, k: Tensor, r: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """All four terms; R_(i-j), projected for each head, gathered for every pair: (H, L, L, K)."""
    L, K = q.shape[-2:]
    vectors = r[:, distances(L) + L - 1]
    content = (q + u[:, None]) @ k.transpose(-1, -2)
    position = torch.einsum("bhld,hlmd->bhlm", q + v[:, None], vectors)
    return (content + position) / math.sqrt(K)


def deberta_scores(q: Tensor, k: Tensor, q_table: Tensor, k_table: Tensor) -> Tensor:
    """Content to content, to position, and position to content, both tables gathered."""
    L, K = q.shape[-2:]
    m = k_table.shape[-2] // 2
    rows = (distances(L) + m).clamp(0, 2 * m - 1)  # [i, j] for delta(i, j), [j, i] for delta(j, i)
    c2p = torch.einsum("bhid,hijd->bhij", q, k_table[:, rows])  # (H, L, L, K) gathered
    p2c = torch.einsum("bhjd,hjid->bhji", k, q_table[:, rows])
    return (q @ k.transpose(-1, -2) + c2p + p2c.transpose(-1, -2)) / math.sqrt(3 * K)


def t5_bias(table: Tensor, L: int, max_distance: int = 128) -> Tensor:
    """Bidirectional buckets of all pairs, computed in float32, and a look-up: (1, H, L, L).

    The tutorial feeds i - j to code made for j - i, so the past reads the upper half of the table.
    """
    half = len(table) // 2
    exact = half // 2
    distance = distances(L)
    n = distance.abs()
    growth = torch.log(n.float().clamp(min=exact) / exact) / math.log(max_distance / exact)
    far = (exact + (growth * (half - exact)).long()).clamp(max=half - 1)
    bucket = torch.where(n < exact, n, far) + half * (distance >= 0).long()
    return table[bucket].permute(2, 0, 1).unsqueeze(0).contiguous()


class ALiBi:
    """The matrix -|i - j| at construction; times the slopes, plus the scores, in each call."""

    def __init__(self, n_heads: int, L: int) -> None:
        self.slopes = torch.tensor([2 ** (-8 * (h + 1) / n_heads) for h in range(n_heads)])
        self.distance = -distances(L).abs().float()

    def bias(self) -> Tensor:
        """The bias of each head: (1, H, L, L)."""
        return self.slopes.view(1, -1, 1, 1) * self.distance

    def __call__(self, scores: Tensor) -> Tensor:
        """Scores with the bias."""
        return scores + self.bias()


def kerple_log_bias(p: Tensor, a: Tensor, L: int) -> Tensor:
    """The logarithm of every pair, for each head: (H, L, L)."""
    return -p[:, None, None] * torch.log(1 + a[:, None, None] * distances(L).abs())


def sandwich_bias(n_heads: int, L: int, d: int = 128) -> Tensor:
    """The cosines of every pair, (L, L, d/2), summed, less d/2, then divided for each head."""
    frequencies = 10000.0 ** (-2 * torch.arange(1, d // 2 + 1) / d)
    cosines = (distances(L)[:, :, None] * frequencies).cos()  # (L, L, d/2)
    head = torch.arange(1, n_heads + 1)[:, None, None]
    return (cosines.sum(-1) - d / 2) / (8 * head / n_heads)


def fire_bias(params: dict[str, Tensor], L: int) -> Tensor:
    """The network at every pair: (L, L, 32) in between, (H, L, L) in the end."""
    c = params["c"]
    largest = torch.maximum(torch.arange(L).float(), params["L"])[:, None]
    quotient = torch.log(1 + c * distances(L).abs()) / (torch.log(1 + c * largest) + 1e-6)
    hidden = torch.relu(quotient[..., None] @ params["W1"] + params["b1"])
    return (hidden @ params["W2"] + params["b2"]).permute(2, 0, 1)


def forgetting_attention(q: Tensor, k: Tensor, v: Tensor, sums: Tensor) -> Tensor:
    """Scores of every pair, c_i - c_j added, the future masked, softmax, weighted sum."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    scores = scores + (sums[..., :, None] - sums[..., None, :])
    future = distances(q.shape[-2]) < 0
    return torch.softmax(scores.masked_fill(future, -math.inf), dim=-1) @ v


def cope_scores(q: Tensor, k: Tensor, table: Tensor) -> Tensor:
    """Gates, their sums from the right, and the two rows of the table beside each sum, gathered."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    gates = torch.sigmoid(scores).masked_fill(distances(q.shape[-2]) < 0, 0.0)
    counts = gates.flip(-1).cumsum(-1).flip(-1).clamp(max=len(table) - 1)
    above, below = counts.ceil().long(), counts.floor().long()
    of_rows = q @ table.T  # (B, H, L, N)
    share = counts - below
    return scores + of_rows.gather(-1, above) * share + of_rows.gather(-1, below) * (1 - share)


def relative_key_query_scores(q: Tensor, k: Tensor, table: Tensor) -> Tensor:
    """BERT's: a vector for every pair, (L, L, K), and an einsum with queries and with keys."""
    L, K = q.shape[-2:]
    vectors = table[distances(L) + L - 1]  # (L, L, K)
    of_query = torch.einsum("bhld,lrd->bhlr", q, vectors)
    of_key = torch.einsum("bhrd,lrd->bhlr", k, vectors)
    return (q @ k.transpose(-1, -2) + of_query + of_key) / math.sqrt(K)


class Swin:
    """The index of every pair of pixels at construction; a look-up and a copy in each call."""

    def __init__(self, side: int) -> None:
        row, column = torch.arange(side**2) // side, torch.arange(side**2) % side
        dy, dx = row[:, None] - row + side - 1, column[:, None] - column + side - 1
        self.index, self.pixels = (dy * (2 * side - 1) + dx).flatten(), side**2

    def bias(self, table: Tensor) -> Tensor:
        """The bias of each head: (H, hw, hw)."""
        by_pair = table[self.index].view(self.pixels, self.pixels, -1)
        return by_pair.permute(2, 0, 1).contiguous()


def sam_scores(q: Tensor, k: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Both tables gathered along their axes, (side, side, K), and added over the other axis."""
    *batch, L, K = q.shape
    side = math.isqrt(L)
    index = distances(side) + side - 1
    pixels = q.view(*batch, side, side, K)
    of_rows = torch.einsum("bhyxc,ykc->bhyxk", pixels, rows[index])
    of_columns = torch.einsum("bhyxc,xkc->bhyxk", pixels, columns[index])
    scores = (q / math.sqrt(K)) @ k.transpose(-1, -2)
    scores = scores.view(*batch, side, side, side, side)
    return (scores + of_rows[..., :, None] + of_columns[..., None, :]).view(*batch, L, L)


def rope_frequencies(K: int) -> Tensor:
    """Radians per position of each pair, in float32: (K/2,)."""
    return 10000.0 ** -(torch.arange(0, K, 2).float() / K)


def axial_unit_numbers(side: int, K: int) -> Tensor:
    """e^(i angle) of a square grid's cells: K/4 pairs turn by the row, K/4 by the column."""
    ladder = 100.0 ** -(torch.arange(0, K, 4).float() / K)
    cells = torch.arange(side * side)
    rows, columns = torch.outer(cells // side, ladder), torch.outer(cells % side, ladder)
    angles = torch.cat([rows, columns], dim=-1)  # (L, K/2)
    return torch.polar(torch.ones_like(angles), angles)


class MRope:
    """Qwen2-VL's: cosines and sines of all three positions, and of each section its own."""

    def __init__(self, sections: tuple[int, ...]) -> None:
        self.sections = sections * 2
        self.ladder = rope_frequencies(2 * sum(sections))

    def __call__(self, x: Tensor, coordinates: Tensor) -> Tensor:
        """Turn x of (B, H, L, K) by coordinates of (3, L)."""
        angles = coordinates[..., None].float() * self.ladder  # (3, L, K/2)
        angles = torch.cat([angles, angles], dim=-1)
        cos, sin = (
            torch.cat([m[i % 3] for i, m in enumerate(table.split(self.sections, dim=-1))], dim=-1)
            for table in (angles.cos(), angles.sin())
        )
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-second, first], dim=-1) * sin


def xpos(x: Tensor, scale_base: float = 512.0) -> Tensor:
    """Sines and cosines times zeta^(position / scale_base), each written twice."""
    L, K = x.shape[-2:]
    zeta = (torch.arange(0, K, 2) + 0.4 * K) / (1.4 * K)
    scale = (zeta ** (torch.arange(L) / scale_base)[:, None]).repeat_interleave(2, dim=-1)
    angles = rope_angles(L, K).repeat_interleave(2, dim=-1)
    turned = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
    return x * angles.cos() * scale + turned * angles.sin() * scale


def pope_scores(q: Tensor, k: Tensor) -> Tensor:
    """Radii by softplus, both of their components, and a product of twice the width."""
    L, K = q.shape[-2:]
    angles = torch.outer(torch.arange(L).float(), 10000.0 ** -(torch.arange(K) / K))
    wide = []
    for x in (q, k):
        radius = torch.nn.functional.softplus(x)
        wide.append(torch.cat([radius * angles.cos(), radius * angles.sin()], dim=-1))
    return wide[0] @ wide[1].transpose(-1, -2) / math.sqrt(K)


def self_extend_scores(q: Tensor, k: Tensor, window: int, group: int) -> Tensor:
    """Scores of all pairs twice, at exact and at grouped places, and a choice between them."""
    L, K = q.shape[-2:]
    at = torch.arange(L)

    def turn(x: Tensor, places: Tensor) -> Tensor:
        angles = torch.outer(places.float(), rope_frequencies(K))
        return complex_rope(x, torch.polar(torch.ones_like(angles), angles))

    near = turn(q, at) @ turn(k, at).transpose(-1, -2) / math.sqrt(K)
    grouped, shift = at // group, window - window // group
    far = turn(q, grouped + shift) @ turn(k, grouped).transpose(-1, -2) / math.sqrt(K)
    return torch.where(distances(L) < window, near, far)


def mla_scores(
    q_content: Tensor, q_rotary: Tensor, c: Tensor, k_rotary: Tensor, w: Tensor
) -> Tensor:
    """Keys of each head from the latent vectors, the turned key of all beside them, one product.

    The queries stand behind all keys; `k_rotary` and `q_rotary` are not turned yet.
    """
    S, d_r = k_rotary.shape[-2:]
    units = rope_unit_numbers(S, d_r)
    content = torch.einsum("bsr,hnr->bhsn", c, w)
    turned = complex_rope(k_rotary[:, None], units).expand(*content.shape[:-1], d_r)
    k = torch.cat([content, turned], dim=-1)
    q = torch.cat([q_content, complex_rope(q_rotary, units[S - q_rotary.shape[-2] :])], dim=-1)
    return q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])


def rope_angles(L: int, K: int) -> Tensor:
    """Position times frequency, in float32: (L, K/2)."""
    return torch.outer(torch.arange(L).float(), rope_frequencies(K))


class HalfSplitRope:
    """Pairs (i, i + K/2), with tables of cosines and sines made at construction."""

    def __init__(self, L: int, K: int) -> None:
        angles = rope_angles(L, K)
        angles = torch.cat([angles, angles], dim=-1)
        self.cos, self.sin = angles.cos(), angles.sin()  # (L, K)

    def __call__(self, x: Tensor) -> Tensor:
        """Turn x of (B, H, L, K)."""
        n = x.shape[-1] // 2
        first, second = x[..., :n], x[..., n:]
        cos, sin = self.cos[..., :n], self.sin[..., :n]
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def rope_unit_numbers(L: int, K: int) -> Tensor:
    """Complex e^(i m theta): (L, K/2)."""
    angles = rope_angles(L, K)
    return torch.polar(torch.ones_like(angles), angles)


def complex_rope(x: Tensor, units: Tensor) -> Tensor:
    """Neighbouring components as one complex number, times its unit number."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * units).flatten(3).type_as(x)


def attention(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Scores, softmax and weighted sum, one after the other."""
    weights = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]), dim=-1)
    return weights @ v, weights
