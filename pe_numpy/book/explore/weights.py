"""Temperature and masks: six words, their scores, and what the softmax makes of them."""

from __future__ import annotations

import numpy as np

from pe_numpy.book.explore.figure import Bet, Control, Explorable, State, box, number, rows, text
from pe_numpy.transformer.attention import causal_mask, padding_mask, softmax, window_mask

WORDS = ("the", "cat", "saw", "a", "big", "dog")
SCORES = """\
2 1 0 0 0 0
1 2 1 0 0 -1
0 2 1 0 0 2
0 0 0 2 0 1
-1 0 0 1 2 2
0 1 1 0 3 2"""
CELL, LEFT, TOP = 64, 60, 24
AT = np.arange(6)
MASKS = {
    "none": np.ones((6, 6), bool),
    "causal": causal_mask(AT, AT),
    "causal, window of 3": window_mask(AT, AT, 3),
    "padding: last two words": padding_mask([4], 6)[0, 0],
    "causal, padding: first two": causal_mask(AT, AT) & padding_mask([4], 6, "left")[0, 0],
}


def softmax_and_masks(scores: np.ndarray, temperature: float, mask: str) -> State:
    """Weights of six queries over six keys: softmax of score / temperature, -inf where hidden."""
    if scores.shape != (6, 6) or temperature <= 0:
        raise ValueError("36 scores are wanted, and a temperature above 0")
    allowed = np.broadcast_to(MASKS[mask], (6, 6))
    weights = softmax(np.where(allowed, scores / temperature, -np.inf))
    sums, most = weights.sum(axis=1), weights.max(axis=1)
    empty = [word for word, total in zip(WORDS, sums, strict=True) if total == 0]
    state = {
        "note": f"Nothing to look at for: {', '.join(empty)}. The weights are 0, not NaN."
        if empty
        else "Every row of weights adds up to 1.",
        "most": ", ".join(f"{w:.2f}" for w in most),
        "sums": ", ".join(f"{total:.0f}" for total in sums),
    }
    for i, j in np.ndindex(6, 6):
        state[f"w{i}{j}"] = f"{weights[i, j]:.2f}" if allowed[i, j] else "hidden"
        state[f"w{i}{j}@class"] = "middle" if allowed[i, j] else "middle small"
        state[f"box{i}{j}@fill-opacity"] = f"{0.55 * weights[i, j]:.2f}"
    return state


def _picture() -> str:
    parts = [text(LEFT + CELL * (j + 0.5), 14, word, look="middle") for j, word in enumerate(WORDS)]
    for i, word in enumerate(WORDS):
        y = TOP + 36 * i
        parts.append(text(LEFT - 8, y + 22, word, look="end"))
        for j in range(6):
            x = LEFT + CELL * j
            parts.append(box(x + 1, y + 1, CELL - 2, 34, f"box{i}{j}", "tint"))
            parts.append(text(x + CELL / 2, y + 22, key=f"w{i}{j}"))
    return "".join(parts)


FIGURE = Explorable(
    title="Softmax: change scores, temperature and mask",
    alt="A grid of weights, a row for each of six queries, a column for each of six keys; the "
    "larger the weight, the darker the cell.",
    controls=(
        Control("temperature", "temperature", "1", number, ["0.1", "0.25", "0.5", "1", "2", "10"]),
        Control("mask", "mask", "none", str, tuple(MASKS), "choice"),
        Control("scores", "scores: rows ask, columns are asked", SCORES, rows, (), "cells", WORDS),
    ),
    compute=softmax_and_masks,
    picture=_picture(),
    height=244,
    values=(("largest weight of each row", "most"), ("sum of each row", "sums")),
    bet=Bet(
        question='All scores are divided by 10. What happens to the weight of "cat" for "saw"?',
        answers={"It grows": "more", "It falls": "less", "It stays": "same"},
        move="Set the temperature to 10",
        change={"temperature": "10"},
        subject='The weight of "cat" for "saw"',
        measured=("w21",),
    ),
    more="Change the scores",
)
