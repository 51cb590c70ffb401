"""Measure the names that the wrong answers get, and write them down: python tests/answers.

A name that is new has a question mark in the column `fits`: look at it, and write yes or no.
`python tests/answers held_out` prints the score of the answers that were written apart: apart.py;
`python tests/answers second` that of a second list.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from answers import collected, summary
from answers.apart import FOLDER, report
from answers.counts import write as write_counts
from answers.record import measured, read, write

if __name__ == "__main__":
    if sys.argv[1:] in (["held_out"], ["second"]):
        print(report(FOLDER.with_name(sys.argv[1])))
        raise SystemExit
    before = {row["place"]: row for row in read()}
    rows = []
    for answer in collected():
        row = measured(answer)
        old = before.get(row["place"], {})
        same = old and all(old[key] == row[key] for key in ("flaw", "name", "guess"))
        named = row["name"] or row["guess"]
        rows.append({**row, "fits": old["fits"] if same else "?" if named else ""})
    write(rows)
    write_counts(rows)
    print(summary(rows))
