"""The clocks of RoPE: query and key turn, pair by pair."""

from __future__ import annotations

import numpy as np

from pe_numpy.book.explore.figure import Bet, Control, Explorable, State, clock, number, text, turn
from pe_numpy.rotary.rope import rope, rope_frequencies

FACES = 8  # at most so many pairs


def rope_clocks(m: float, n: float, base: float, d: int) -> State:
    """Hands of a query at position m and of a key at n, whose contents point right."""
    if d > 2 * FACES:
        raise ValueError(f"the width is at most {2 * FACES} here, {FACES} clocks; got {d}")
    theta = rope_frequencies(d, base)
    content = np.tile([1.0, 0.0], (2, d // 2))  # (2, K), a query and a key
    query, key = turned = rope(content, [m, n], theta)  # (K,) each
    score = f"{query @ key + 0.0:.4f}"
    state = {
        "svg@viewBox": f"0 0 480 {130 if d <= FACES else 262}",
        "note": f"The score is {score}, and m - n = {m - n:g}.",
        "score": score,
        "theta": ", ".join(f"{angle:.4g}" for angle in theta),
        "between": ", ".join(f"{angle:.4g}" for angle in (m - n) * theta),
    }
    hands = turned.reshape(2, -1, 2)  # (2, pairs, 2)
    for c in range(FACES):
        state[f"face{c}@visibility"] = "visible" if c < len(theta) else "hidden"
        a, b = hands[:, c] if c < len(theta) else content[:, :2]
        angle = (m - n) * theta[c] if c < len(theta) else 0.0
        state |= {
            f"face{c}-query@transform": turn(a),
            f"face{c}-key@transform": turn(b),
            **wedge(f"face{c}", a, b, angle),
            f"name{c}": f"pair {c}: {angle:.3g}" if c < len(theta) else "",
        }
    return state


def wedge(face: str, a: np.ndarray, b: np.ndarray, angle: float) -> State:
    """The grey part of a clock from the key's hand b to the query's a: the angle between them."""
    size = min(abs(float(np.degrees(angle))), 360.0)
    first = a if angle >= 0 else b  # the wedge runs clockwise on the screen, from this hand
    return {
        f"{face}-wedge@transform": turn(first),
        f"{face}-wedge@stroke-dasharray": f"{size:.1f} 400",
    }


def _picture() -> str:
    parts = []
    for c in range(FACES):
        x, y = 62 + 119 * (c % 4), 54 + 132 * (c // 4)
        drag = "m n" if c < 2 else ""  # the others hardly move from position to position
        parts.append(clock(x, y, 48, f"face{c}", ("query", "key"), drag))
        parts.append(text(x, y + 66, key=f"name{c}", look="middle"))
    return "".join(parts)


FIGURE = Explorable(
    title="The clocks of RoPE: drag a hand of the first two, or shift both",
    alt="A clock face for each pair of components, with a hand for the query and a hand for "
    "the key; the angle between the two hands is grey.",
    controls=(
        Control("m", "position m of the query (blue)", "5", number, [*map(str, range(13))]),
        Control("n", "position n of the key (orange)", "3", number, [*map(str, range(13))]),
        Control("base", "base b", "10000", number, kind="field"),
        Control("d", "width of the head, at most 16", "8", kind="field"),
    ),
    compute=rope_clocks,
    picture=_picture(),
    height=130,
    values=(
        ("score of these two", "score"),
        ("rotation of each pair per position", "theta"),
        ("angle between the hands", "between"),
    ),
    bet=Bet(
        question="Query and key both move by 3. What happens to the score?",
        answers={"It grows": "more", "It falls": "less", "It stays": "same"},
        move="Shift both by 3",
        change={"m": 3, "n": 3},
        subject="The score",
        measured=("score",),
    ),
)


def turning_clocks(step: int) -> State:
    """Four clocks while query and key walk on, two places apart, a quarter of a place a step."""
    m, n = 2 + step / 4, step / 4
    theta = rope_frequencies(8, base=100.0)
    hands = rope(np.tile([1.0, 0.0], (2, 4)), [m, n], theta).reshape(2, 4, 2)
    score = hands[0].ravel() @ hands[1].ravel()
    places = f"Query (blue) at {m:g}, key (orange) at {n:g}"
    state = {"note": f"{places}: both hands rotated, and the score is {score:.4f}."}
    for c in range(4):
        state |= {
            f"face{c}-query@transform": turn(hands[0, c]),
            f"face{c}-key@transform": turn(hands[1, c]),
            **wedge(f"face{c}", hands[0, c], hands[1, c], (m - n) * theta[c]),
            f"name{c}": f"rotates by {theta[c]:.2g}",
        }
    return state


MOTION = Explorable(
    title="RoPE rotates query and key; the angle between them does not change (base 100)",
    alt="Four clocks, one for each pair of components. The hands of query and key rotate at a "
    "different speed in each, and the angle between them stays.",
    controls=(Control("step", "shift both", "0", values=[*map(str, range(41))], kind="steps"),),
    compute=turning_clocks,
    picture="".join(
        clock(62 + 119 * c, 54, 48, f"face{c}", ("query", "key"), "step step")
        + text(62 + 119 * c, 120, key=f"name{c}", look="small middle")
        for c in range(4)
    ),
    height=130,
    interval=120,
)
