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
    Mutant("no largest score subtracted", ATTENTION, "weights = np.exp(work - shift)",
           "weights = np.exp(work)"),
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
]  # fmt: skip


def survives(mutant: Mutant) -> bool:
    """Whether the tests stay green with the mistake in place."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "pe_numpy"
        shutil.copytree(ROOT / "pe_numpy", copy, ignore=shutil.ignore_patterns("__pycache__"))
        planted = copy / f"{mutant.module}.py"
        planted.write_text(planted.read_text().replace(mutant.right, mutant.wrong))
        run = subprocess.run(
            [
                sys.executable,
                "-P",
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                mutant.tests,
            ]
            + (["tests/test_attention.py"] if mutant.module == "checks" else []),
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
