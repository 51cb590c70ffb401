"""What the homework says of each answer, as it was looked through: names.csv."""

import csv
from pathlib import Path

from answers import Answer
from pe_numpy.homework.registry import check

FILE = Path(__file__).with_name("names.csv")
COLUMNS = ("place", "exercise", "flaw", "passed", "name", "guess", "fits")


def measured(answer: Answer, seed: int = 0) -> dict[str, str]:
    """Check one answer."""
    v = check(answer.exercise, answer.function, seed=seed)
    said = ("yes" if v.passed else "no", v.mistake, v.guess)
    return dict(zip(COLUMNS, (answer.place, answer.exercise, answer.flaw, *said), strict=False))


def read() -> list[dict[str, str]]:
    """The rows of the record."""
    if not FILE.exists():
        return []
    with FILE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(rows: list[dict[str, str]]) -> None:
    """Write the record."""
    with FILE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
