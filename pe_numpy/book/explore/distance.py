"""One distance, as each relative scheme reads it."""

from __future__ import annotations

import numpy as np

from pe_numpy.book.explore.figure import (
    Bet,
    Control,
    Explorable,
    State,
    box,
    clock,
    path,
    text,
    turn,
)
from pe_numpy.relative.alibi import alibi_bias, alibi_slopes
from pe_numpy.relative.deberta import deberta_bucket
from pe_numpy.relative.t5 import t5_bucket
from pe_numpy.relative.windows import offset_index
from pe_numpy.rotary.rope import rope, rope_frequencies

LEFT, WIDE = 104, 368  # where the strips begin, and how wide they are
HEADS = 16  # at most so many bars


def one_distance(distance: int, heads: int) -> State:
    """What T5, DeBERTa, Swin, ALiBi and RoPE make of query minus key position."""
    encoder, decoder = (int(t5_bucket(distance, bidirectional=b)) for b in (True, False))
    deberta = int(deberta_bucket(distance, num_buckets=256, max_distance=512))
    inside = abs(distance) < 7  # two pixels of one row of a window of 7 by 7
    swin = int(offset_index(7, 7)[max(distance, 0), max(-distance, 0)]) if inside else -1
    penalties = alibi_bias(alibi_slopes(heads), [[distance]])[:, 0, 0] + 0.0  # (H,)
    theta = rope_frequencies(8)
    hands = rope(np.tile([1.0, 0.0], (1, 4)), [distance], theta).reshape(4, 2)
    future = distance < 0
    side = "after the query: the future" if future else "before the query"
    state = {
        "note": f"A key {abs(distance)} places {side}." if distance else "The query's own key.",
        "t5-encoder": f"bucket {encoder}",
        "t5-decoder": f"bucket {decoder}" + ", but a causal mask hides the future" * future,
        "deberta": f"bucket {deberta}",
        "swin": f"row {swin}" if inside else "none: not in one window",
        "alibi": ", ".join(f"{penalty:.4g}" for penalty in penalties),
        "rope": ", ".join(f"{angle:.4g}" for angle in distance * theta),
        "t5-encoder-at@x": f"{LEFT + encoder * WIDE / 32:.1f}",
        "t5-decoder-at@x": f"{LEFT + decoder * WIDE / 32:.1f}",
        "deberta-at@x": f"{LEFT + (deberta + 255) * WIDE / 511:.1f}",
        "swin-at@x": f"{LEFT + (swin - 78) * WIDE / 13:.1f}" if inside else "-99",
        "token@transform": f"translate({_ruler(distance):.1f})",
    }
    weights = np.zeros(HEADS)
    weights[:heads] = np.exp(penalties)[:HEADS]  # what is left of a weight, before the division
    state |= {f"bar{h}@height": f"{50 * weight:.1f}" for h, weight in enumerate(weights)}
    return state | {f"face{c}-query@transform": turn(hand) for c, hand in enumerate(hands)}


def _ruler(distance: int) -> float:
    """Where a key stands, the query in the middle: logarithmic, so that near keys have room."""
    far = np.log1p(min(abs(distance), 140)) / np.log1p(140)
    return float(LEFT + WIDE / 2 * (1 - np.sign(distance) * far))


def _picture() -> str:
    parts = [text(0, 21, "drag the key"), path(f"M{LEFT} 26h{WIDE}")]
    for tick in (-140, -30, -7, -2, 0, 2, 7, 30, 140):
        parts.append(path(f"M{_ruler(tick):.1f} 21v10"))
        words = str(abs(tick)) if tick else "query"
        parts.append(text(_ruler(tick), 44, words, look="small middle"))
    held = box(-17, 2, 34, 19, look="fresh") + text(0, 16, "key", look="small middle")
    parts.append(f'<g data-key="token" data-drag="distance">{held}</g>')
    return f'{"".join(parts)}<g transform="translate(0 52)">{_schemes()}</g>'


def _schemes() -> str:
    parts = []
    strips = (("T5, encoder", 32), ("T5, decoder", 32), ("DeBERTa-v3", 511), ("Swin, a row", 13))
    keys = ("t5-encoder-at", "t5-decoder-at", "deberta-at", "swin-at")
    ends = (("0", "31"), ("0", "31"), ("-255", "255"), ("78", "90"))
    for n, ((name, cells), key, (first, last)) in enumerate(zip(strips, keys, ends, strict=True)):
        y = 8 + 40 * n
        parts += [text(0, y + 13, name), box(LEFT, y, WIDE, 18)]
        if cells < 100:
            inner = (LEFT + WIDE * cell / cells for cell in range(1, cells))
            parts.append(path("".join(f"M{x:.2f} {y}v18" for x in inner), look="faint"))
        parts.append(box(LEFT, y, max(WIDE / cells, 3), 18, key, "hot"))
        parts += [
            text(LEFT, y + 31, first, look="small"),
            text(472, y + 31, last, look="small end"),
        ]
    parts.append(text(LEFT + WIDE / 2, 39, "past | future", look="small middle"))
    parts += [text(0, 212, "ALiBi, what"), text(0, 230, "it leaves")]
    for h in range(HEADS):
        x = LEFT + h * WIDE / HEADS
        bar = f'<rect x="{x + 3:g}" width="17" data-key="bar{h}" class="solid"/>'
        parts.append(f'<g transform="translate(0 232) scale(1 -1)">{bar}</g>')
    parts.append(path(f"M{LEFT} 232h{WIDE}", look="faint"))
    parts += [text(0, 286, "RoPE, four"), text(0, 304, "clocks")]
    parts += [clock(LEFT + 46 + 92 * c, 292, 40, f"face{c}") for c in range(4)]
    return "".join(parts)


FIGURE = Explorable(
    title="One distance: drag the key, and see what each scheme makes of it",
    alt="A ruler with the query in its middle and a key. Strips with the bucket or row that T5, "
    "DeBERTa and Swin read for their distance, bars for what ALiBi leaves of a weight in each "
    "head, and four clock faces rotated by RoPE.",
    controls=(
        Control(
            "distance", "distance, query minus key", "12", values=[*map(str, range(-140, 141))]
        ),
        Control("heads", "heads of ALiBi", "8", kind="field"),
    ),
    compute=one_distance,
    picture=_picture(),
    height=392,
    values=(
        ("T5, encoder: 32 buckets, 128", "t5-encoder"),
        ("T5, decoder: 32 buckets, 128", "t5-decoder"),
        ("DeBERTa-v3: 256 buckets, 512", "deberta"),
        ("Swin: window 7, same row", "swin"),
        ("ALiBi: each head adds", "alibi"),
        ("RoPE, width 8: radians", "rope"),
    ),
    bet=Bet(
        question="The distance grows by 1. Does T5's encoder read another bucket?",
        answers={"Yes": "other", "No": "same"},
        move="Add 1 to the distance",
        change={"distance": 1},
        subject="What T5's encoder reads",
        measured=("t5-encoder",),
    ),
)
