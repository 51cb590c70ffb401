"""Count what was measured of the answers, as chapter 73 shows it: notebooks/results/answers.csv."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

FILE = Path(__file__).parents[2] / "notebooks" / "results" / "answers.csv"
HELD_OUT = "held_out "  # how the places of those begin that no name was made for, at first
FIRST = Path(__file__).with_name("held_out.csv")  # what was said of them then


def counts(rows: Sequence[dict[str, str]]) -> dict[str, int]:
    """Numbers of wrong answers, and of right ones in odd style."""
    wrong, right = [r for r in rows if r["flaw"]], [r for r in rows if not r["flaw"]]
    named, guessed = [r for r in wrong if r["name"]], [r for r in wrong if r["guess"]]
    return {
        "wrong": len(wrong),
        "caught": sum(r["passed"] == "no" for r in wrong),
        "named": len(named),
        "misnamed": sum(r["fits"] != "yes" for r in named),
        "guesses": len(guessed),
        "wrong guesses": sum(r["fits"] != "yes" for r in guessed),
        "right": len(right),
        "accepted": sum(r["passed"] == "yes" for r in right),
    }


def at_first() -> list[dict[str, str]]:
    """What was said of the answers held out, before any name was mended with them."""
    with FIRST.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def as_csv(rows: Sequence[dict[str, str]], before: Sequence[dict[str, str]]) -> str:
    """Lines for the first answers, and for those held out: as they were at first, and now."""
    held = [r for r in rows if r["place"].startswith(HELD_OUT)]
    first = [r for r in rows if r not in held]
    text = io.StringIO()
    writer = csv.DictWriter(text, ["answers", *counts([])], lineterminator="\n")
    writer.writeheader()
    writer.writerow({"answers": "first list", **counts(first)})
    if held:
        writer.writerow({"answers": "held out", **counts(before)})
        writer.writerow({"answers": "held out; mended since", **counts(held)})
    return text.getvalue()


def write(rows: Sequence[dict[str, str]]) -> None:
    """Write the counts."""
    FILE.write_text(as_csv(rows, at_first()), encoding="utf-8", newline="\n")
