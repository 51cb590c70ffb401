"""Which layout? The scores of a pair of small projections, rotated in both ways."""

from __future__ import annotations

import numpy as np

from pe_numpy.book.explore.figure import Bet, Control, Explorable, State, number, path, rows, text
from pe_numpy.rotary.rope import rope, rope_convert_weights

W_Q = """\
1 0 2
0 1 -1
1 1 0
2 0 1"""
W_K = """\
0 1 1
1 0 1
2 -1 0
1 1 1"""
LEFT, WIDE, MOST = 44, 426, 16
NAMES = ("interleaved", "half", "converted")


def which_layout(
    w_q: np.ndarray, w_k: np.ndarray, x_q: np.ndarray, x_k: np.ndarray, m: float, n: float, own: str
) -> State:
    """Scores q . k of one head: rows as pairs of neighbours, as halves, converted to halves."""
    if w_q.shape != w_k.shape or {x_q.size, x_k.size} != {w_q.shape[1]}:
        raise ValueError("both weights need the same shape, and token vectors their columns")
    places = np.arange(MOST + 1)  # of the key, for the picture
    converted = [rope_convert_weights(w, n_heads=1, to="half") for w in (w_q, w_k)]
    curves, scores = [], []
    for weights, layout in (((w_q, w_k), "interleaved"), ((w_q, w_k), "half"), (converted, "half")):
        q, k = weights[0] @ x_q.ravel(), weights[1] @ x_k.ravel()  # (K,) each
        turned = rope(np.tile(q, (1, 1)), [m], layout=layout)[0]
        scores.append(float(turned @ rope(k[None], [n], layout=layout)[0]))
        curves.append(rope(np.tile(k, (MOST + 1, 1)), places, layout=layout) @ turned)
    says = "Both layouts agree: at one position nothing rotates. Choose two." if m == n else (
        f"As neighbours {scores[0]:.6f}, as halves {scores[1]:.6f}."
    )  # fmt: skip
    if own:
        near = np.abs(np.array(scores[:2]) - number(own)) < 1e-4 * max(1.0, abs(number(own)))
        says = {
            (True, False): "Yours is interleaved: pairs of neighbours.",
            (False, True): "Yours is half-split: pairs of i and i + K/2.",
            (True, True): "Both layouts give your score: take other positions.",
        }.get(
            (bool(near[0]), bool(near[1])), "Neither gives your score: scale, sign or base differ."
        )
    low, high = min(c.min() for c in curves[:2]), max(c.max() for c in curves[:2])
    room = (high - low) or 1.0

    def place(x: float, y: float) -> str:
        return f"{LEFT + x * WIDE / MOST:.1f} {180 - 145 * (y - low) / room:.1f}"

    state = {"note": says, "low": f"{low:.3g}", "high": f"{high:.3g}"}
    for name, score, curve in zip(NAMES, scores, curves, strict=True):
        state[name] = f"{score + 0.0:.6f}"
        points = (place(x, y) for x, y in enumerate(curve))
        state[f"{name}-curve@d"] = "M" + "L".join(points)
        state[f"{name}-dot@d"] = f"M{place(min(max(n, 0), MOST), score)}h0"
    return state


def _picture() -> str:
    parts = [path(f"M{LEFT} 30V185H470"), text(LEFT - 5, 40, key="high", look="small end")]
    parts.append(text(LEFT - 5, 184, key="low", look="small end"))
    for x in range(0, MOST + 1, 4):
        parts.append(text(LEFT + x * WIDE / MOST, 200, str(x), look="small middle"))
    parts.append(text(LEFT + WIDE / 2, 216, "position n of the key", look="middle"))
    parts += [path("", "converted-curve", "pale"), path("", "converted-dot", "pale dot")]
    parts += [path("", "interleaved-curve", "one curve"), path("", "half-curve", "two curve")]
    parts += [path("", "interleaved-dot", "one dot"), path("", "half-dot", "two dot")]
    parts.append(text(470, 16, "interleaved blue, half red, converted pale", look="end"))
    return "".join(parts)


FIGURE = Explorable(
    title="Which layout? Paste rows of a query and a key weight, compare the scores",
    alt="The score of one query over the position of the key, its rows read as interleaved pairs, "
    "as half-split pairs, and converted from one to the other, which lies on the first.",
    controls=(
        Control("m", "position m of the query", "5", number, [*map(str, range(9))]),
        Control("n", "position n of the key", "2", number, [*map(str, range(9))]),
        Control("w_q", "rows of W_q of one head", W_Q, rows, kind="rows"),
        Control("w_k", "rows of W_k of one head", W_K, rows, kind="rows"),
        Control("x_q", "token vector of the query", "1 2 1", rows, kind="field"),
        Control("x_k", "token vector of the key", "1 -1 2", rows, kind="field"),
        Control("own", "score of your code, without 1/sqrt(K)", "", str, kind="field"),
    ),
    compute=which_layout,
    picture=_picture(),
    height=222,
    values=(
        ("interleaved: rows 2c and 2c + 1", "interleaved"),
        ("half: rows c and c + K/2", "half"),
        ("converted to half, rotated as half", "converted"),
    ),
    bet=Bet(
        question="Query and key both move by 3. Do the scores of the two layouts change?",
        answers={"Yes": "other", "No": "same"},
        move="Shift both by 3",
        change={"m": 3, "n": 3},
        subject="The pair of scores",
        measured=("interleaved", "half"),
    ),
    more="Your own rows, vectors and score",
)
