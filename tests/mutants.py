"""Test the tests: seed one mistake at a time; each must turn at least one test red.

Usage: python tests/mutants.py [WORD]     (only mutants whose file or text contains WORD)

A mutant is a line of the package and what a tired author might have written instead. It is planted
in a copy of the package; the module's own tests run against the copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


# Modules whose mistakes show in the tests of those who call them, too.
CALLERS = {"checks": ["tests/test_attention.py", "tests/test_distance.py"]}


class Mutant(NamedTuple):
    """One seeded mistake: its name, the module, the right text and the wrong one."""

    name: str
    module: str
    right: str
    wrong: str

    @property
    def source(self) -> Path:
        """The module's file in this repository."""
        return ROOT / "pe_numpy" / f"{self.module}.py"

    @property
    def tests(self) -> str:
        """The test file of the same stem."""
        return f"tests/test_{self.module.rpartition('/')[2]}.py"


SINUSOIDAL, ROPE, ATTENTION = "absolute/sinusoidal", "rotary/rope", "transformer/attention"
DISTANCE, SHAW, TRANSFORMER_XL = "relative/distance", "relative/shaw", "relative/transformer_xl"
T5, TUPE, DEBERTA = "relative/t5", "relative/tupe", "relative/deberta"
ALIBI, EXPANSION = "relative/alibi", "relative/expansion"
LEARNED, RECURRENT = "absolute/learned", "absolute/recurrent"
COMPLEX, CONVOLUTION = "absolute/complex_order", "absolute/convolution"
SCALING, EXTRAPOLATION = "rotary/scaling", "extrapolation"

MUTANTS = [
    Mutant("i for 2i", SINUSOIDAL, "base ** (-np.arange(0, d_model, 2) / d_model)  #",
           "base ** (-np.arange(d_model // 2) / d_model)  #"),
    Mutant("base forgotten", SINUSOIDAL, "theta = base **", "theta = 10000.0 **"),
    Mutant("exponents of tensor2tensor", SINUSOIDAL, "(-np.arange(0, d_model, 2) / d_model)  #",
           "(-np.arange(0, d_model, 2) / max(d_model - 2, 1))  #"),
    Mutant("cosine first", SINUSOIDAL, "np.stack([np.sin(angles), np.cos(angles)]",
           "np.stack([np.cos(angles), np.sin(angles)]"),
    Mutant("layouts swapped", SINUSOIDAL, 'layout == "concatenated"', 'layout == "interleaved"'),
    Mutant("positions from 1", SINUSOIDAL, "positions[..., None] * theta",
           "(positions[..., None] + 1) * theta"),
    Mutant("period of 1 radian", SINUSOIDAL, "return 2 * math.pi * base", "return math.pi * base"),
    Mutant("frequency for wavelength", SINUSOIDAL, "math.pi * base ** (np", "math.pi * base ** -(np"),
    Mutant("shift turns the other way", SINUSOIDAL, "shift[sin, cos] = np.sin(angles)",
           "shift[sin, cos] = -np.sin(angles)"),
    Mutant("shift transposed", SINUSOIDAL, "shift[cos, sin] = -np.sin(angles)",
           "shift[cos, sin] = np.sin(angles)"),
    Mutant("shift forgets the base", SINUSOIDAL, "offset * base **", "offset * 10000.0 **"),
    Mutant("column before row", SINUSOIDAL, "[np.broadcast_to(rows[:, None], half), np",
           "[np.broadcast_to(columns, half), np.broadcast_to(rows[:, None], half), np"),
    Mutant("2-D with the whole width", SINUSOIDAL,
           'sinusoidal(np.arange(height), d_model // 2, base, "concatenated")',
           'sinusoidal(np.arange(height), d_model, base, "concatenated")[:, : d_model // 2]'),
    Mutant("2-D forgets the base", SINUSOIDAL, 'np.arange(width), d_model // 2, base, "con',
           'np.arange(width), d_model // 2, 100.0, "con'),
    Mutant("clockwise", ROPE, "np.sin(angles, out=table.imag)", "np.sin(-angles, out=table.imag)"),
    Mutant("i for 2i", ROPE, "np.arange(0, d, 2) / d)", "np.arange(d // 2) / d)"),
    Mutant("base forgotten", ROPE, "return base ** (", "return 10000.0 ** ("),
    Mutant("float32 angles", ROPE, "angles = p[..., None] * frequencies",
           "angles = (p[..., None] * frequencies).astype(np.float32)"),
    Mutant("half-split turns back", ROPE, "[-second, first]", "[second, -first]"),
    Mutant("cosine for sine", ROPE, "turned *= sin\n", "turned *= cos\n"),
    Mutant("rest of partial RoPE dropped", ROPE,
           "return turned if n == x.shape[-1] // 2 else np.concatenate([turned, rest], axis=-1)",
           "return np.concatenate([turned, 0 * rest], axis=-1)"),
    Mutant("partial RoPE by the whole width", ROPE, "first, second, rest = x[..., :n], x[..., n : 2",
           "first, second, rest = x[..., :n], x[..., -n:], x[..., 2 * n :]; _ = x[..., n : 2"),
    Mutant("layouts swapped", ROPE, 'if layout == "interleaved" else _turn_half',
           'if layout == "half" else _turn_half'),
    Mutant("any positions taken for consecutive", ROPE,
           "not (positions[1:] - positions[:-1] == 1).all()", "False"),
    Mutant("first position ignored", ROPE, "coarse = unit(positions[::s])",
           "coarse = unit(positions[::s] - positions[0])"),
    Mutant("coarse table off by one", ROPE, "fine = unit(np.arange(s))",
           "fine = unit(np.arange(1, s + 1))"),
    Mutant("complex64 tables", ROPE, "table = np.empty(angles.shape, np.complex128)",
           "table = np.empty(angles.shape, np.complex64)"),
    Mutant("strides not looked at", ROPE, "if x.strides[-1] == x.itemsize else", "if True else"),
    Mutant("float64 comes back", ROPE, ".astype(x.dtype, copy=False)\n\n\ndef _table",
           ".astype(np.float64, copy=False)\n\n\ndef _table"),
    Mutant("matrix transposed", ROPE, "matrix[first, second] = -np.sin(angles)\n    matrix[second, fi",
           "matrix[first, second] = np.sin(angles)\n    matrix[second, fi"),
    Mutant("permutation the other way", ROPE,
           "np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)])",
           "np.argsort(np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)]))"),
    Mutant("no scale", ATTENTION, "scale = 1 / math.sqrt(q.shape[-1])", "scale = 1.0"),
    Mutant("scale by K", ATTENTION, "scale = 1 / math.sqrt(q.shape[-1])", "scale = 1 / q.shape[-1]"),
    Mutant("bias before the scale", ATTENTION, "scores = scores + bias.astype(scores.dtype, copy=False)\n"
           "    if mask", "scores = scores + bias.astype(scores.dtype, copy=False) * scale\n    if mask"),
    Mutant("mask polarity", ATTENTION, "scores = np.where(mask, scores, -np.inf)\n    weights",
           "scores = np.where(mask, -np.inf, scores)\n    weights"),
    Mutant("mask added as -1e9", ATTENTION, "scores = np.where(mask, scores, -np.inf)\n    weights",
           "scores = np.where(mask, scores, scores - 1e9)\n    weights"),
    Mutant("softmax over the queries", ATTENTION, "weights = softmax(scores)",
           "weights = softmax(scores, axis=-2)"),
    Mutant("no largest score subtracted", ATTENTION, "weights = work - shift",
           "weights = work.copy()"),
    Mutant("NaN for a row without a key", ATTENTION, "weights /= np.where(total == 0, 1, total)",
           "weights /= total"),
    Mutant("log of the rounded softmax", ATTENTION,
           "result = work - (shift + np.log(np.where(total == 0, 1, total)))",
           "result = np.log(np.exp(work - shift) / np.where(total == 0, 1, total))"),
    Mutant("a query may not see itself", ATTENTION, "q[..., :, None] >= k[..., None, :]",
           "q[..., :, None] > k[..., None, :]"),
    Mutant("causal mask transposed", ATTENTION, "q[..., :, None] >= k[..., None, :]",
           "q[..., :, None] <= k[..., None, :]"),
    Mutant("padding off by one", ATTENTION, "(place < lengths[:, None])", "(place <= lengths[:, None])"),
    Mutant("sides of padding swapped", ATTENTION, 'if side == "right" else', 'if side == "left" else'),
    Mutant("heads not moved", ATTENTION, "x.reshape(*batch, L, n_heads, D // n_heads), -2, -3)",
           "x.reshape(*batch, n_heads, L, D // n_heads).swapaxes(-2, -3), -2, -3)"),
    Mutant("heads interleaved", ATTENTION, "np.swapaxes(x.reshape(*batch, L, n_heads, D // n_heads), -2",
           "np.swapaxes(x.reshape(*batch, L, D // n_heads, n_heads).swapaxes(-1, -2), -2"),
    Mutant("merge without moving", ATTENTION, "np.swapaxes(x, -2, -3).reshape(*batch, L, H * K)",
           "x.reshape(*batch, L, H * K)"),
    Mutant("sums not rescaled", ATTENTION, "total = total * shrink +", "total = total +"),
    Mutant("outputs not rescaled", ATTENTION, "mixed = mixed * shrink +", "mixed = mixed +"),
    Mutant("blocks skip too much", ATTENTION, "k_at[..., columns].min() > q_at[..., rows].max()",
           "k_at[..., columns].min() >= q_at[..., rows].max()"),
    Mutant("blocks skip nothing", ATTENTION, "if causal and k_at[..., columns].min() >",
           "if False and k_at[..., columns].min() >"),
    Mutant("distance key minus query", ATTENTION, "q_at[..., rows, None] - k_at[..., None, columns]",
           "k_at[..., None, columns] - q_at[..., rows, None]"),
    Mutant("queries at the first positions", ATTENTION, "q_positions = np.arange(S - L, S)",
           "q_positions = np.arange(L)"),
    Mutant("all in one block", ATTENTION, 'block = checks.integer(name, "block", block)',
           'block = max(L, S, checks.integer(name, "block", block))'),
    Mutant("float mask taken", "checks", "if mask.dtype != np.bool_:", "if False:"),
    Mutant("shapes may enlarge", "checks", "if len(shape) > len(target) or any(",
           "if any("),
    Mutant("lists of other libraries unpacked", "checks",
           'return x if hasattr(x, "__array_ufunc__") else np.asarray(x)', "return np.asarray(x)"),
    Mutant("key minus query", DISTANCE, "return q[..., :, None] - k[..., None, :]", "return k[..., None, :] - q[..., :, None]"),
    Mutant("window off by one", DISTANCE, "least = int(q[0]) - int(k[-1])", "least = int(q[0]) - int(k[-1]) + 1"),
    Mutant("window mirrored", DISTANCE, "(*batch, step, -step)", "(*batch, -step, step)"),
    Mutant("any positions taken for consecutive", DISTANCE, "return bool((positions[1:] - positions[:-1] == 1).all())", "return True"),
    Mutant("window can be written to", DISTANCE, "as_strided(line[..., S - 1 :], shape, strides, writeable=False)", "as_strided(line[..., S - 1 :], shape, strides)"),
    Mutant("opposite keeps the sign", DISTANCE, "return -np.swapaxes(distance, -1, -2)", "return np.swapaxes(distance, -1, -2)"),
    Mutant("opposite window keeps the sign", DISTANCE, "_window(-_line(distance)[::-1]", "_window(_line(distance)[::-1]"),
    Mutant("every pair computed", DISTANCE, "if _is_window(distance):\n        return _window(function", "if False:\n        return _window(function"),
    Mutant("line not reversed", DISTANCE, "vectors = table[..., row_of(_line(distance)[::-1]), :]  # (..., L + S - 1, K), the past first", "vectors = table[..., row_of(_line(distance)), :]"),
    Mutant("blocks start at the first row", DISTANCE, "vectors[..., first : first + n + S - 1]\n        out", "vectors[..., : n + S - 1]\n        out"),
    Mutant("skew one short", DISTANCE, "[..., n - 1 : n - 1 + n * (width - 1)]", "[..., n : n + n * (width - 1)]"),
    Mutant("integers stay small", "checks", "return p.astype(np.int64, copy=False)", "return p"),
    Mutant("fractions read tables", "checks", "if p.dtype.kind == \"f\" and p.size:", "if False:"),
    Mutant("clip off by one", SHAW, "np.clip(distance, -m, m) + m", "np.clip(distance, 1 - m, m) + m"),
    Mutant("sign of the distance", SHAW, "np.clip(distance, -m, m) + m", "np.clip(-distance, -m, m) + m"),
    Mutant("clip without shift", SHAW, "np.clip(distance, -m, m) + m", "np.clip(distance, -m, m)"),
    Mutant("key term outside the scale", SHAW, "content += spread_products(q, table", "content += spread_products(q * math.sqrt(q.shape[-1]), table"),
    Mutant("no scale", SHAW, "q = q.astype(work) * (1 / math.sqrt(q.shape[-1]))", "q = q.astype(work)"),
    Mutant("values without their term", SHAW, "mixed += spread_sums(weights, table.astype(work, copy=False), distance, row_of)", "pass"),
    Mutant("even tables taken", SHAW, "if table.shape[-2] % 2 == 0:", "if False:"),
    Mutant("u and v swapped", TRANSFORMER_XL, "q, k, r, u, v = (a.astype(work, copy=False) for a in (q, k, r, u, v))", "q, k, r, u, v = (a.astype(work, copy=False) for a in (q, k, r, v, u))"),
    Mutant("u forgotten", TRANSFORMER_XL, "((q + u[:, None, :]) * scale)", "(q * scale)"),
    Mutant("v forgotten", TRANSFORMER_XL, "(q + v[:, None, :]) * scale, r", "q * scale, r"),
    Mutant("codes descend", TRANSFORMER_XL, "lambda d: d - least)", "lambda d: N - 1 - (d - least))"),
    Mutant("no scale", TRANSFORMER_XL, "scale = 1 / math.sqrt(K)", "scale = 1.0"),
    Mutant("shift keeps its padding", TRANSFORMER_XL, "[..., L:].reshape(*batch, L, N)", "[..., : L * N].reshape(*batch, L, N)"),
    Mutant("padding at the end", TRANSFORMER_XL, "np.concatenate([np.zeros((*batch, L, 1), x.dtype), x], axis=-1)", "np.concatenate([x, np.zeros((*batch, L, 1), x.dtype)], axis=-1)"),
    Mutant("fed j - i", T5, "n = np.abs(d) if bidirectional else np.maximum(d, 0)", "n = np.abs(d) if bidirectional else np.maximum(-d, 0)"),
    Mutant("halves swapped", T5, "(half * (d < 0) if bidirectional else 0)", "(half * (d >= 0) if bidirectional else 0)"),
    Mutant("epsilon in the logarithm", T5, "math.log(max_distance / exact)", "math.log(max_distance / exact + 1e-10)"),
    Mutant("rounded, not cut", T5, "(growth * (half - exact)).astype(np.int64)", "np.rint(growth * (half - exact)).astype(np.int64)"),
    Mutant("last bucket one short", T5, "half - 1)\n        return", "half - 2)\n        return"),
    Mutant("bias ignores the direction", T5, "np.take(by_head, t5_bucket(d, len(table), max_distance, bidirectional), axis=1)", "np.take(by_head, t5_bucket(d, len(table), max_distance), axis=1)"),
    Mutant("bias ignores max_distance", T5, "t5_bucket(d, len(table), max_distance, bidirectional)", "t5_bucket(d, len(table), 128, bidirectional)"),
    Mutant("scale of plain attention", TUPE, "scale = 1 / math.sqrt(2 * K)", "scale = 1 / math.sqrt(K)"),
    Mutant("bias before the scale", TUPE, "scores = scores + bias.astype(work, copy=False)", "scores = scores + bias.astype(work, copy=False) * scale"),
    Mutant("positions of queries twice", TUPE, "np.swapaxes(pk, -1, -2)", "np.swapaxes(pk * 0 + pk[:, :1], -1, -2)"),
    Mutant("scale of plain attention", DEBERTA, "scale = 1 / math.sqrt(3 * q.shape[-1])", "scale = 1 / math.sqrt(q.shape[-1])"),
    Mutant("the code's p2c for the paper's", DEBERTA, "of_keys, sign = opposite(distance), 1", "of_keys, sign = opposite(distance), -1"),
    Mutant("the paper's p2c for the code's", DEBERTA, 'shape, "p2c_distance")), -1', 'shape, "p2c_distance")), 1'),
    Mutant("tables swapped", DEBERTA, '(("q_table", q_table), ("k_table", k_table))', '(("q_table", k_table), ("k_table", q_table))'),
    Mutant("c2p off by one", DEBERTA, "np.clip(d + m_k, 0, 2 * m_k - 1)", "np.clip(d + m_k - 1, 0, 2 * m_k - 1)"),
    Mutant("p2c without its scale", DEBERTA, "k * scale, tables[0]", "k, tables[0]"),
    Mutant("p2c not turned back", DEBERTA, "scores += np.swapaxes(p2c, -1, -2)", "scores += p2c.reshape(scores.shape)"),
    Mutant("floor for ceiling", DEBERTA, "np.ceil(growth", "np.floor(growth"),
    Mutant("sign lost in far buckets", DEBERTA, "np.sign(d) * far)", "far)"),
    Mutant("no clamp beyond max_distance", DEBERTA, "np.clip(np.abs(d), mid, max_distance - 1)", "np.maximum(np.abs(d), mid)"),
    Mutant("plain slopes for 12 heads", ALIBI, "return np.concatenate([geometric(power), geometric(2 * power)[::2][: n_heads - power]])", "return geometric(n_heads)"),
    Mutant("slopes from h = 0", ALIBI, "np.arange(1, n + 1)", "np.arange(n)"),
    Mutant("odd ones for even ones", ALIBI, "geometric(2 * power)[::2]", "geometric(2 * power)[1::2]"),
    Mutant("reward for distance", ALIBI, "np.multiply.outer(-slopes", "np.multiply.outer(slopes"),
    Mutant("signed distance", ALIBI, "np.abs(d).astype(slopes.dtype)", "d.astype(slopes.dtype)"),
    Mutant("cross terms swapped", EXPANSION, "return xq @ xk, xq @ pk, pq @ xk, pq @ pk", "return xq @ xk, pq @ xk, xq @ pk, pq @ pk"),
    Mutant("scale on content alone", EXPANSION, "(p @ w_q) * scale, p @ w_k", "p @ w_q, p @ w_k"),
    Mutant("positions from 1", LEARNED, "return table[_rows(", "return table[-1 + _rows("),
    Mutant("negative positions read from the end", LEARNED, "p[(p < 0) | (p >= N**digits)]",
           "p[p >= N**digits]"),
    Mutant("one row too many", LEARNED, "(p >= N**digits)]", "(p > N**digits)]"),
    Mutant("last row refused", LEARNED, "(p >= N**digits)]", "(p >= N**digits - 1)]"),
    Mutant("stretched table no longer than the table", LEARNED, 'positions, N, 2)', 'positions, N, 1)'),
    Mutant("fractions rounded down", LEARNED, 'checks.whole_numbers(function, "positions", positions)',
           'checks.position_array(function, "positions", positions)'),
    Mutant("digits swapped", LEARNED, "alpha * u[rows // N] + (1 - alpha) * u[rows % N]",
           "alpha * u[rows % N] + (1 - alpha) * u[rows // N]"),
    Mutant("no base vectors", LEARNED, "u = (E - alpha * E[:1]) / (1 - alpha)", "u = E"),
    Mutant("base vectors not rescaled", LEARNED, "(E - alpha * E[:1]) / (1 - alpha)",
           "(E - alpha * E[:1])"),
    Mutant("mean in place of the first row", LEARNED, "alpha * E[:1])", "alpha * E.mean(0))"),
    Mutant("other default weight", LEARNED, "alpha: float = 0.4", "alpha: float = 0.5"),
    Mutant("alpha of 1 taken", LEARNED, "if alpha == 1:", "if False:"),
    Mutant("half precision throughout", LEARNED,
           "table.astype(np.float32) if table.dtype == np.float16 else table", "table"),
    Mutant("float32 comes back", LEARNED, "return codes.astype(table.dtype, copy=False)", "return codes"),
    Mutant("start left out", RECURRENT, "np.stack(codes)[:length]",
           "np.stack([*codes, step(codes[-1].copy())])[1 : length + 1]"),
    Mutant("one code too few", RECURRENT, "range(length - 1)", "range(length - 2)"),
    Mutant("always a step from the start", RECURRENT, "step(codes[-1].copy())", "step(codes[0].copy())"),
    Mutant("step may change the code before", RECURRENT, "step(codes[-1].copy())", "step(codes[-1])"),
    Mutant("result of a step not copied", RECURRENT, "return result.astype(p.dtype)",
           "return result.astype(p.dtype, copy=False)"),
    Mutant("derivative may change the code", RECURRENT, "derivative(p.copy(), t)", "derivative(p, t)"),
    Mutant("any shape taken", RECURRENT, "if result.shape != p.shape:", "if False:"),
    Mutant("Euler's method", RECURRENT, "return p + h / 6 * (a + 2 * b + 2 * c + d)", "return p + h * a"),
    Mutant("the midpoint method", RECURRENT, "return p + h / 6 * (a + 2 * b + 2 * c + d)",
           "return p + h * b"),
    Mutant("weights of the 3/8 rule", RECURRENT, "h / 6 * (a + 2 * b + 2 * c + d)",
           "h / 8 * (a + 3 * b + 3 * c + d)"),
    Mutant("second midpoint from the first slope", RECURRENT, "c = slope(p + h / 2 * b, t + h / 2)",
           "c = slope(p + h / 2 * a, t + h / 2)"),
    Mutant("time stands still within a step", RECURRENT, "b = slope(p + h / 2 * a, t + h / 2)",
           "b = slope(p + h / 2 * a, t)"),
    Mutant("end slope at the middle", RECURRENT, "d = slope(p + h * c, t + h)",
           "d = slope(p + h * c, t + h / 2)"),
    Mutant("substeps all at one time", RECURRENT, "t + n * h, h)", "t, h)"),
    Mutant("step of 1 whatever the times", RECURRENT, "h = (end - t) / substeps", "h = 1 / substeps"),
    Mutant("flow never runs back", RECURRENT, "h = (end - t) / substeps", "h = abs(end - t) / substeps"),
    Mutant("other default substeps", RECURRENT, "substeps: int = 8", "substeps: int = 4"),
    Mutant("half precision throughout", RECURRENT,
           "start, start.astype(np.float32) if start.dtype == np.float16 else start", "start, start"),
    Mutant("dtype of the derivative", RECURRENT, "return result.astype(p.dtype)", "return result.copy()"),
    Mutant("clockwise", COMPLEX, "np.exp(1j * angles)", "np.exp(-1j * angles)"),
    Mutant("phase forgotten", COMPLEX, "* pos[..., None] + theta", "* pos[..., None] + 0 * theta"),
    Mutant("phase inside the product", COMPLEX, "omega.astype(np.float64) * pos[..., None] + theta",
           "omega.astype(np.float64) * (pos[..., None] + theta)"),
    Mutant("positions from 1", COMPLEX, "* pos[..., None] + theta", "* (pos[..., None] + 1) + theta"),
    Mutant("amplitude inside the exponent", COMPLEX, "(r * np.exp(1j * angles))",
           "(np.exp(1j * r * angles))"),
    Mutant("float32 angles", COMPLEX, "angles = omega.astype(np.float64) * pos[..., None] + theta",
           "angles = (omega * pos[..., None] + theta).astype(omega.dtype)"),
    Mutant("complex128 comes back", COMPLEX, ".astype(np.result_type(r, np.complex64))  # (",
           ".astype(np.complex128)  # ("),
    Mutant("shapes may enlarge", COMPLEX,
           'checks.fits("complex_order", "frequency", omega.shape, r.shape, "amplitude")', "pass"),
    Mutant("no conjugate", COMPLEX, "np.swapaxes(z_k, -1, -2).conj()", "np.swapaxes(z_k, -1, -2)"),
    Mutant("modulus for real part", COMPLEX, "scores = product.real /", "scores = abs(product) /"),
    Mutant("imaginary part", COMPLEX, "scores = product.real /", "scores = product.imag /"),
    Mutant("scale by twice the width", COMPLEX, "math.sqrt(z_q.shape[-1])",
           "math.sqrt(2 * z_q.shape[-1])"),
    Mutant("softmax over the queries", COMPLEX, "weights /= weights.sum(axis=-1, keepdims=True)",
           "weights /= weights.sum(axis=-2, keepdims=True)"),
    Mutant("no largest score subtracted", COMPLEX, "np.exp(scores - top)", "np.exp(scores)"),
    Mutant("values conjugated", COMPLEX, "return weights @ z_v, weights",
           "return weights @ z_v.conj(), weights"),
    Mutant("no keys refused", COMPLEX, "keepdims=True, initial=-np.inf)", "keepdims=True)"),
    Mutant("kernel turned round", CONVOLUTION, "enumerate(kernel.astype(work))",
           "enumerate(kernel[::-1].astype(work))"),
    Mutant("paddings swapped", CONVOLUTION, 'padding == "circular" and L', 'padding == "zero" and L'),
    Mutant("border repeated", CONVOLUTION, 'else "constant"', 'else "edge"'),
    Mutant("border mirrored", CONVOLUTION, 'mode="wrap" if', 'mode="symmetric" if'),
    Mutant("other default padding", CONVOLUTION, 'padding: str = "zero"', 'padding: str = "circular"'),
    Mutant("causal", CONVOLUTION, "[(m, m)]", "[(2 * m, 0)]"),
    Mutant("rows padded, too", CONVOLUTION, "[(0, 0)] * (x.ndim - 1) + [(m, m)]",
           "[(m, m)] + [(0, 0)] * (x.ndim - 1)"),
    Mutant("last weight forgotten", CONVOLUTION, "kernel.size // 2", "(kernel.size - 1) // 2 * 0 + 1"),
    Mutant("even kernels taken", CONVOLUTION, "or kernel.size % 2 == 0", "or kernel.size == 0"),
    Mutant("half precision throughout", CONVOLUTION,
           "work = np.float32 if x.dtype == np.float16 else x.dtype", "work = x.dtype"),
    Mutant("float32 comes back", CONVOLUTION, "return y.astype(x.dtype, copy=False)", "return y"),
    Mutant("no positions refused", CONVOLUTION, '"circular" and L else', '"circular" else'),
    Mutant("interpolation the wrong way", SCALING, "return frequencies / checks.positive",
           "return frequencies * checks.positive"),
    Mutant("exponent without the last pair", SCALING, "base * factor ** (d / (d - 2))",
           "base * factor"),
    Mutant("exponent upside down", SCALING, "base * factor ** (d / (d - 2))",
           "base * factor ** ((d - 2) / d)"),
    Mutant("every frequency divided, not the base", SCALING,
           "return rope_frequencies(d, base * factor ** (d / (d - 2)))",
           "return rope_frequencies(d, base) / factor ** (d / (d - 2))"),
    Mutant("d = 2 let through", SCALING, "if d == 2:", "if d == 0:"),
    Mutant("shorter sequences scaled, too", SCALING, "growth = max(1, length / trained_length)",
           "growth = length / trained_length"),
    Mutant("dynamic factor one position late", SCALING, "growth = max(1, length / trained_length)",
           "growth = max(1, (length - 1) / trained_length)"),
    Mutant("dynamic factor forgotten", SCALING, "1 + factor * (growth - 1)", "growth"),
    Mutant("jump at the trained length", SCALING, "1 + factor * (growth - 1)", "factor * growth"),
    Mutant("dynamic scaling forgets the base", SCALING, "(growth - 1), base)", "(growth - 1))"),
    Mutant("turns in radians", SCALING, "math.log(trained_length / (turns * 2 * math.pi))",
           "math.log(trained_length / turns)"),
    Mutant("index over components", SCALING, "/ (2 * math.log(base))", "/ math.log(base)"),
    Mutant("betas swapped", SCALING, "low = max(math.floor(index(beta_fast)), 0)\n"
           "    high = min(math.ceil(index(beta_slow)), d - 1)",
           "low = max(math.floor(index(beta_slow)), 0)\n"
           "    high = min(math.ceil(index(beta_fast)), d - 1)"),
    Mutant("ceiling for floor", SCALING, "math.floor(index(beta_fast))", "math.ceil(index(beta_fast))"),
    Mutant("floor for ceiling", SCALING, "math.ceil(index(beta_slow))", "math.floor(index(beta_slow))"),
    Mutant("lower bound not clipped", SCALING, "max(math.floor(index(beta_fast)), 0)",
           "math.floor(index(beta_fast))"),
    Mutant("upper bound clipped to the pairs", SCALING, "d - 1)\n    ramp", "d // 2 - 1)\n    ramp"),
    Mutant("division by zero for equal bounds", SCALING, "((high - low) or 0.001)", "(high - low)"),
    Mutant("crossing bounds straightened", SCALING, "((high - low) or 0.001)",
           "max(high - low, 0.001)"),
    Mutant("ramp turned around", SCALING, "theta / factor * ramp + theta * (1 - ramp)",
           "theta / factor * (1 - ramp) + theta * ramp"),
    Mutant("wavelengths mixed, not frequencies", SCALING, "theta / factor * ramp + theta * (1 - ramp)",
           "theta / (factor * ramp + 1 - ramp)"),
    Mutant("attention factor squared", SCALING, "0.1 * math.log(factor) + 1 if",
           "(0.1 * math.log(factor) + 1) ** 2 if"),
    Mutant("attention factor below 1", SCALING, "+ 1 if factor > 1 else 1.0", "+ 1"),
    Mutant("logarithm of base 10", SCALING, "0.1 * math.log(factor)", "0.1 * math.log10(factor)"),
    Mutant("wavelength for turns", SCALING, "turns = trained_length * np.abs(theta) / (2 * math.pi)",
           "turns = 2 * math.pi / np.abs(theta) / trained_length"),
    Mutant("no band between", SCALING, "np.clip((turns - low) / (high - low), 0, 1)",
           "np.where(turns > low, 1.0, 0.0)"),
    Mutant("band not clipped", SCALING, "np.clip((turns - low) / (high - low), 0, 1)",
           "(turns - low) / (high - low)"),
    Mutant("band by low alone", SCALING, "(turns - low) / (high - low)", "(turns - low) / high"),
    Mutant("kept and divided swapped", SCALING, "(1 - g) * theta / factor + g * theta",
           "g * theta / factor + (1 - g) * theta"),
    Mutant("equal bounds let through", SCALING, "if high <= low:", "if high < low:"),
    Mutant("float32 frequencies", SCALING, "return theta.astype(np.float64)", "return theta"),
    Mutant("conversion the other way", ROPE, 'turned if to == "half" else np.argsort(turned)',
           'turned if to == "interleaved" else np.argsort(turned)'),
    Mutant("conversion across all heads", ROPE, "turned = rope_permutation(d)\n    order = np.arange(K)",
           "turned = rope_permutation(d * n_heads)\n    return weight[turned]\n    order = np.arange(K)"),
    Mutant("heads all read from the first", ROPE, "K * np.arange(n_heads)[:, None] + order",
           "0 * np.arange(n_heads)[:, None] + order"),
    Mutant("heads interleaved", ROPE, "(K * np.arange(n_heads)[:, None] + order).reshape(-1)",
           "(K * np.arange(n_heads)[:, None] + order).T.reshape(-1)"),
    Mutant("partial heads converted whole", ROPE, "turned = rope_permutation(d)\n    order = np.arange(K)\n"
           "    order[:d] =", "d = K\n    turned = rope_permutation(d)\n    order = np.arange(K)\n    order[:d] ="),
    Mutant("columns for rows", ROPE, "return weight[rows]", "return weight[..., rows]"),
    Mutant("least significant digit first", EXTRAPOLATION, "for place in reversed(range(width)):",
           "for place in range(width):"),
    Mutant("overflow unseen", EXTRAPOLATION, "if (rest > 0).any():", "if False:"),
    Mutant("overflow from 2 on", EXTRAPOLATION, "if (rest > 0).any():", "if (rest > 1).any():"),
    Mutant("fraction cut off", EXTRAPOLATION,
           'rest = n.astype(np.float64 if n.dtype.kind == "f" else np.int64)',
           "rest = n.astype(np.int64)"),
    Mutant("digits of negative positions", EXTRAPOLATION, "if (n < 0).any():\n        raise ValueError(f\"to_",
           "if False:\n        raise ValueError(f\"to_"),
    Mutant("narrow integers overflow", EXTRAPOLATION,
           'rest = n.astype(np.float64 if n.dtype.kind == "f" else np.int64)', "rest = n"),
    Mutant("digits read from the wrong end", EXTRAPOLATION, "value = value * base + digits[..., place]",
           "value = value * base + digits[..., -1 - place]"),
    Mutant("digit equal to the base", EXTRAPOLATION, "(digits >= base)", "(digits > base)"),
    Mutant("divide, not multiply, by log n", EXTRAPOLATION,
           "np.log(np.maximum(n, 1)) / math.log(trained_length))",
           "math.log(trained_length) / np.log(np.maximum(n, 2)))"),
    Mutant("base of the logarithm forgotten", EXTRAPOLATION, "np.log(np.maximum(n, 1)) / math.log(trained_length)",
           "np.log(np.maximum(n, 1))"),
    Mutant("short sequences flattened", EXTRAPOLATION, "return np.maximum(1, np.log(", "return np.maximum(0, np.log("),
    Mutant("factor in the dtype of n", EXTRAPOLATION, "    n = n.astype(np.float64)  # float64 also for a float32 n\n", ""),
    Mutant("bits for nats", EXTRAPOLATION, "work * np.log(np.where(", "work * np.log2(np.where("),
    Mutant("0 ln 0 is NaN", EXTRAPOLATION, "np.log(np.where(work == 0, 1, work))", "np.log(work)"),
    Mutant("entropy below zero", EXTRAPOLATION, "(0.0 - terms.sum(axis=axis))", "terms.sum(axis=axis)"),
    Mutant("entropy of -0.0", EXTRAPOLATION, "(0.0 - terms.sum(axis=axis))", "(-terms.sum(axis=axis))"),
    Mutant("mean for sum", EXTRAPOLATION, "terms.sum(axis=axis)", "terms.mean(axis=axis)"),
    Mutant("always the last axis", EXTRAPOLATION, "terms.sum(axis=axis)", "terms.sum(axis=-1)"),
    Mutant("sums in float16", EXTRAPOLATION, "weights.astype(checks.working(weights)[0], copy=False)", "weights"),
    Mutant("scores taken for weights", EXTRAPOLATION, "| (weights > 1)", ""),
    Mutant("bound itself let through", "checks", "if value <= bound:", "if value < bound:"),
]  # fmt: skip


def survives(mutant: Mutant) -> bool:
    """Whether the tests stay green with the mistake in place."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "pe_numpy"
        shutil.copytree(ROOT / "pe_numpy", copy, ignore=shutil.ignore_patterns("__pycache__"))
        planted = copy / f"{mutant.module}.py"
        planted.write_text(planted.read_text().replace(mutant.right, mutant.wrong))
        pytest = [sys.executable, "-P", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        run = subprocess.run(
            [*pytest, mutant.tests, *CALLERS.get(mutant.module, [])],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
    if run.returncode not in (0, 1):
        raise SystemExit(f"{mutant.module}: {mutant.name}: the tests did not run\n{run.stdout}")
    return run.returncode == 0


def main(word: str = "") -> None:
    """Run all mutants, two at a time, and report the survivors."""
    chosen = [m for m in MUTANTS if word in f"{m.module} {m.name} {m.right}"]
    for mutant in chosen:
        if mutant.source.read_text().count(mutant.right) != 1:
            raise SystemExit(f"{mutant.module}: {mutant.name}: its text must occur exactly once")
    with ThreadPoolExecutor(2) as pool:
        survivors = [
            m for m, alive in zip(chosen, pool.map(survives, chosen), strict=True) if alive
        ]
    for mutant in survivors:
        print(f"SURVIVED  {mutant.module}: {mutant.name}")
    print(f"{len(chosen)} mutants, {len(chosen) - len(survivors)} caught")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main(*sys.argv[1:])
