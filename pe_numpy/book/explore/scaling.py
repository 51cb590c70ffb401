"""Scaling lab: wavelengths of RoPE's pairs, and the angles that training never showed."""

from __future__ import annotations

import numpy as np

from pe_numpy.book.explore.clocks import frequencies
from pe_numpy.book.explore.figure import Control, Explorable, State, number, path, text
from pe_numpy.rotary.rope import rope_frequencies
from pe_numpy.rotary.scaling import yarn_attention_factor

LEFT, WIDE = 58, 412
SCHEMES = ("none", "linear", "NTK-aware", "YaRN", "Llama 3")


def scaling_lab(trained: float, factor: float, scheme: str, d: int, base: float) -> State:
    """What a scheme does to each pair, and which part of its circle a longer text shows anew."""
    plain = rope_frequencies(d, base)  # (d/2,)
    scaled = frequencies(d, base, scheme, factor, trained)
    long = factor * trained
    seen = np.minimum(trained * plain / (2 * np.pi), 1)  # part of the circle, in training
    direct, reached = (np.minimum(long * f / (2 * np.pi), 1) for f in (plain, scaled))
    unseen, before = (np.maximum(r - seen, 0).round(9) for r in (reached, direct))
    count = int((unseen > 0).sum())
    attention = yarn_attention_factor(factor) if scheme == "YaRN" else 1.0
    return {
        "note": f"{count} of {d // 2} pairs meet new angles in a text of {long:,.0f} tokens; "
        f"without scaling {int((before > 0).sum())} would.",
        "count": f"{count} of {d // 2}",
        "most": f"{unseen.max():.1%} of a circle",
        "first": f"{2 * np.pi / plain[0]:,.1f} to {2 * np.pi / scaled[0]:,.1f}",
        "last": f"{2 * np.pi / plain[-1]:,.0f} to {2 * np.pi / scaled[-1]:,.0f}",
        "attention": f"{attention:.4f}",
        "plain@d": _curve(2 * np.pi / plain),
        "scaled@d": _curve(2 * np.pi / scaled),
        "trained@d": f"M{LEFT} {_height(trained):.1f}h{WIDE}",
        "long@d": f"M{LEFT} {_height(long):.1f}h{WIDE}",
        "unseen@d": _bars(unseen),
        "before@d": _bars(before),
    }


def _height(wavelength: float) -> float:
    """A wavelength on a logarithmic axis from 1 to 10 million."""
    return float(190 - 25 * np.clip(np.log10(wavelength), 0, 7))


def _curve(wavelengths: np.ndarray) -> str:
    x = LEFT + (np.arange(len(wavelengths)) + 0.5) * WIDE / len(wavelengths)
    return "M" + "L".join(f"{a:.0f} {_height(w):.1f}" for a, w in zip(x, wavelengths, strict=True))


def _bars(parts: np.ndarray) -> str:
    """A line upwards for each part of a circle above 0."""
    x = LEFT + (np.arange(len(parts)) + 0.5) * WIDE / len(parts)
    found = (f"M{a:.0f} 290v{-70 * p:.1f}" for a, p in zip(x, parts, strict=True) if p)
    return "".join(found) or "M0 0"


def _picture() -> str:
    parts = [path(f"M{LEFT} 10V190H{LEFT + WIDE}M{LEFT} 220V290H{LEFT + WIDE}")]
    for power, words in ((1, "10"), (3, "1,000"), (5, "100,000"), (7, "10 M")):
        y = 190 - 25 * power
        parts.append(text(LEFT - 5, y + 4, words, look="small end"))
        parts.append(path(f"M{LEFT} {y}h{WIDE}", look="faint"))
    parts += [path("", "trained", "dashed"), path("", "long", "dashed two")]
    parts += [path("", "plain", "grey curve"), path("", "scaled", "one curve")]
    parts += [path("", "before", "pale bars"), path("", "unseen", "hot bars")]
    parts.append(text(LEFT + 6, 32, "wavelength of each pair: unscaled grey, scaled blue", look=""))
    parts.append(text(LEFT + 6, 50, "dashed: trained and new length", look="small"))
    parts.append(text(LEFT + 6, 214, "new part of its circle: direct pale, scaled orange", look=""))
    for share, words in ((0, "0"), (1, "all")):
        parts.append(text(LEFT - 5, 294 - 70 * share, words, look="small end"))
    parts.append(text(LEFT + WIDE / 2, 308, "fast pairs to slow pairs", look="middle"))
    return "".join(parts)


FIGURE = Explorable(
    title="Scaling lab: which pairs are stretched, and which meet new angles",
    alt="Above, the wavelength of each pair of components, unscaled and scaled, beside the trained "
    "and the new length. Below, the part of each pair's circle that training never showed.",
    controls=(
        Control("trained", "trained length", "2048", number, ["2048", "8192"]),
        Control("factor", "factor s", "4", number, ["1", "2", "4", "8", "16", "32"]),
        Control("scheme", "scaling", "NTK-aware", str, SCHEMES, "choice"),
        Control("d", "width of the head", "64", kind="field"),
        Control("base", "base b", "10000", number, kind="field"),
    ),
    compute=scaling_lab,
    picture=_picture(),
    height=314,
    values=(
        ("pairs with new angles", "count"),
        ("largest new part", "most"),
        ("wavelength of the first pair", "first"),
        ("wavelength of the last pair", "last"),
        ("queries and keys times", "attention"),
    ),
)
