"""The study of chapter 71: what it measures, and the tables that it writes.

Usage: python notebooks/results/study.py            measures what the tables lack, for hours
       python notebooks/results/study.py --tables   writes what is measured so far
       python notebooks/results/study.py --quick    measures a part anew, in 15 minutes, and compares

What stands in the tables is not measured again; what was measured since waits in `_build/study`,
so that a study that was cut off goes on where it stopped. To measure all of it, remove both tables
and that folder. The rates come first, then the budgets; what a later step asks for is decided by
what the steps before it gave (`best_rates`, `still_falling`).
"""

from __future__ import annotations

import csv
import io
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from pe_numpy.files import write_whole
from pe_numpy.judging.experiment import (
    ENCODINGS,
    MULTIPLES,
    PLACES,
    TASKS,
    Configuration,
    Result,
    recipe,
)
from pe_numpy.judging.study import run
from pe_numpy.judging.verdicts import read_table

TABLE = Path(__file__).with_name("study.csv")
CURVES = TABLE.with_stem(f"{TABLE.stem}_curves")
FOLDER = Path(__file__).parents[2] / "_build" / "study"

LANGUAGES = ("markov", "text")
PROBES = ("offset", "needle")
SENTENCES = ("order_mean", "order_first", "order_causal")
BUDGETS = (1, 4, 10)  # times the steps of `TASKS`
SLOWER = 0.4  # the second rate of each scheme, as a share of the first
FALLING = 0.01  # nats by which 4 budgets must beat 1 at the trained length, or 10 are not tried
POINTS = 6  # of a learning curve: after all steps, a half, ... a 32nd
LONGEST = (  # those that are trained for all three budgets; the others for two
    *("none", "sinusoidal", "sinusoidal_10000", "learned", "shaw", "transformer_xl"),
    *("transformer_xl_10000", "t5", "tupe", "deberta", "alibi", "alibi_256", "rope", "rope_10000"),
)
HYBRIDS = {  # of two layers, on some tasks: chapter 39
    "gated_linear": PROBES,
    "gated_linear_nope": ("markov", *PROBES),
    "gated_delta_nope": ("markov", *PROBES),
}
COMPARED = ("none", "sinusoidal", "t5", "alibi", "rope")  # with five seeds
STRETCHED = (
    *(("linear", None), ("dynamic_ntk", None), ("yarn", None)),  # s = L / L0, anew at each L
    *(("linear", 8), ("ntk", 8), ("yarn", 8)),  # one s, that of the longest L
)
TUNED = (("direct", None), ("linear", 4), ("ntk", 4), ("dynamic_ntk", None), ("yarn", 4))
TUNING = 60

# What another processor may change, since training multiplies the last bit of a sum: nats on a
# language, share of answers at a probe (whose loss depends on how sure a wrong answer is).
TOLERANCE = 0.15
CHOICES = (
    *("task", "layers", "encoding", "budget", "rate", "scaling", "factor", "tuning", "log_n"),
    "seed",
)
LOSSES = tuple(f"loss_{n}x" for n in MULTIPLES)
ACCURACIES = tuple(f"accuracy_{n}x" for n in MULTIPLES)
Row = dict[str, str]
Table = dict[Configuration, Row]


# ---- what is measured ---------------------------------------------------------------------------


def trained(task: str, encoding: str, budget: int, seed: int, **choices: Any) -> Configuration:
    """One training, and its test as it was trained."""
    curve = POINTS if budget > 1 and task not in SENTENCES else 0
    return recipe(task, encoding, budget=budget, seed=seed, curve=curve, **choices)


def kinds() -> Iterator[tuple[str, int, str]]:
    """Task, layers and encoding of all models that are trained."""
    for task, encoding in product(LANGUAGES + PROBES, ENCODINGS):
        if (layers := recipe(task).n_layers) > 1 or encoding != "rope_nope":
            if encoding not in HYBRIDS:
                yield task, layers, encoding
    yield from product(SENTENCES, (1,), LONGEST)
    yield from product(PROBES, (2,), (*filter(fitted, LONGEST), "rope_nope"))
    for encoding, some in HYBRIDS.items():
        yield from product(some, (2,), (encoding,))


def fitted(encoding: str) -> bool:
    """Whether it is no published variant, which has a number in its name."""
    return not encoding[-1].isdigit() or encoding == "t5"


def seeds(task: str, encoding: str) -> range:
    """Five where encodings are compared in words, else three."""
    return range(5 if encoding in COMPARED and task not in SENTENCES else 3)


def rates(task: str) -> tuple[float, float]:
    """The two rates that are tried."""
    return recipe(task).learning_rate, SLOWER * recipe(task).learning_rate


def trials(task: str, layers: int, encoding: str) -> list[Configuration]:
    """The two trainings that decide the rate of a scheme: one seed at the middle budget.

    What is found for the Markov language holds for text, that of one layer for two.
    """
    task = "markov" if task == "text" else task
    layers = 2 if encoding in ("rope_nope", *HYBRIDS) else recipe(task).n_layers
    return [
        trained(task, encoding, BUDGETS[1], 0, n_layers=layers, learning_rate=rate)
        for rate in rates(task)
    ]


def rate_trials() -> Iterator[Configuration]:
    """All trainings that decide a rate."""
    for task, layers, encoding in kinds():
        if task not in SENTENCES:
            yield from trials(task, layers, encoding)


def best_rates(table: Table) -> dict[tuple[str, int, str], float]:
    """The rate with the lower loss at the trained length, where both were tried."""
    found = {}
    for kind in kinds():
        task, both = kind[0], trials(*kind)
        if task in SENTENCES:
            found[kind] = rates(task)[0]
        elif all(c in table for c in both):
            losses = [float(table[c]["loss_1x"]) for c in both]
            found[kind] = rates(task)[losses.index(min(losses))]
    return found


def budgets(table: Table, budget: int, some: Iterable[int]) -> Iterator[Configuration]:
    """All trainings of one budget and some seeds, with the other tests of their models."""
    best = best_rates(table)
    for task, layers, encoding in kinds():
        for seed in set(some) & set(seeds(task, encoding)):
            if (kind := (task, layers, encoding)) in best:
                sizes = {"n_layers": layers, "learning_rate": best[kind]}
                c = trained(task, encoding, budget, seed, **sizes)
                yield from (c, *other_tests(c))


def other_tests(c: Configuration) -> Iterator[Configuration]:
    """Other ways to read the model of a configuration, on languages and probes of their layers."""
    if c.task in SENTENCES or c.n_layers != recipe(c.task).n_layers or c.seed > 2:
        return
    if c.encoding in LONGEST and c.task != "offset":
        yield replace(c, log_n=True)
    if c.encoding == "rope":
        for scaling, s in STRETCHED:
            yield replace(c, scaling=scaling, factor=s)
        for places in PLACES:
            yield replace(c, scaling=places)
        for scaling, s in TUNED:
            yield replace(c, scaling=scaling, factor=s, tuning=TUNING)
    if c.encoding == "rope_10000" and c.task in LANGUAGES:
        for scaling, s in STRETCHED[:3]:
            yield replace(c, scaling=scaling, factor=s)


def still_falling(table: Table) -> set[tuple[str, int, str]]:
    """Kinds whose mean loss at the trained length fell by more than `FALLING` from 1 to 4."""
    best, found = best_rates(table), set()
    for kind in best:
        task, layers, encoding = kind
        means = []
        for budget in BUDGETS[:2]:
            own = [
                trained(task, encoding, budget, seed, n_layers=layers, learning_rate=best[kind])
                for seed in range(3)
            ]
            if all(c in table for c in own):
                means.append(np.mean([float(table[c]["loss_1x"]) for c in own]))
        if len(means) == 2 and means[0] - means[1] > FALLING:
            found.add(kind)
    return found


def longest(table: Table, some: Iterable[int]) -> Iterator[Configuration]:
    """The largest budget, for those of `core` whose loss was still falling."""
    falling = still_falling(table)
    for c in core(table, BUDGETS[2], some):
        if (c.task, c.n_layers, c.encoding) in falling:
            yield c


def core(table: Table, budget: int, some: Iterable[int] = range(3)) -> Iterator[Configuration]:
    """Of one budget those of `LONGEST` on languages and probes of one kind of layers."""
    for c in budgets(table, budget, some):
        if c.encoding in LONGEST and c.task not in SENTENCES:
            if c.n_layers == recipe(c.task).n_layers:
                yield c


STEPS: tuple[Callable[[Table], Iterator[Configuration]], ...] = (
    lambda table: rate_trials(),
    lambda table: core(table, 4),
    lambda table: core(table, 1),
    lambda table: (c for c in longest(table, range(3)) if fitted(c.encoding)),
    lambda table: (c for b in BUDGETS[:2] for c in core(table, b, (3, 4))),
    lambda table: budgets(table, 4, range(3)),
    lambda table: budgets(table, 1, range(3)),
    lambda table: (c for b in BUDGETS[:2] for c in budgets(table, b, (3, 4))),
    lambda table: longest(table, range(5)),
)


# ---- tables -------------------------------------------------------------------------------------


def as_row(result: Result) -> Row:
    """Write a result as a line of the table; word order has one length."""
    c = result.configuration
    row = {key: getattr(c, key) for key in ("task", "encoding", "scaling", "tuning", "seed")}
    row |= {"layers": c.n_layers, "budget": c.steps // recipe(c.task).steps}
    row |= {"rate": f"{c.learning_rate:g}", "log_n": int(c.log_n)}
    row |= {"factor": "" if c.factor is None else f"{c.factor:g}"}
    for columns, values in ((LOSSES, result.losses), (ACCURACIES, result.accuracies)):
        row |= dict.fromkeys(columns, "")
        row |= {column: f"{x:.4f}" for column, x in zip(columns, values, strict=False)}
    row = {key: str(value) for key, value in (row | {"seconds": f"{result.seconds:.1f}"}).items()}
    return {key: row[key] for key in (*CHOICES, *LOSSES, *ACCURACIES, "seconds")}


def as_configuration(row: Mapping[str, str]) -> Configuration:
    """Return what a line of the table has measured."""
    c = trained(
        row["task"],
        row["encoding"],
        int(row["budget"]),
        int(row["seed"]),
        n_layers=int(row["layers"]),
        learning_rate=float(row["rate"]),
    )
    return replace(
        c,
        scaling=row["scaling"],
        factor=float(row["factor"]) if row["factor"] else None,
        tuning=int(row["tuning"]),
        log_n=row["log_n"] == "1",
    )


def as_points(result: Result) -> Iterator[Row]:
    """Write the learning curve of a result, a line for each point."""
    row = as_row(result)
    for step, *values in result.curve:
        point = {key: row[key] for key in ("task", "layers", "encoding", "budget", "rate", "seed")}
        point |= {"step": f"{step:g}"}
        columns = (*LOSSES, *ACCURACIES)
        yield point | {key: f"{x:.4f}" for key, x in zip(columns, values, strict=True)}


def read(path: Path) -> list[Row]:
    """Read a table, its lines as dictionaries; of one that is not there, none."""
    return read_table(path) if path.exists() else []


def known() -> Table:
    """What the committed table holds."""
    return {as_configuration(row): row for row in read(TABLE)}


def write(path: Path, rows: Sequence[Row], head: Iterable[str] = ()) -> None:
    """Write a table, with lines of comment at its head."""
    text = io.StringIO()
    text.writelines(f"# {line}".rstrip() + "\n" for line in head)
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write_whole(path, text.getvalue())


def order(row: Mapping[str, str]) -> tuple[Any, ...]:
    """Where a line stands: by task, layers, encoding and budget, then what is read how."""
    places = (list(TASKS).index(row["task"]), int(row["layers"]))
    encoding = list(ENCODINGS).index(row["encoding"])
    rest = [row.get(key, "") for key in ("scaling", "factor", "tuning", "log_n")]
    return *places, encoding, int(row["budget"]), row["rate"], *rest, int(row["seed"])


def add(results: Sequence[Result]) -> Table:
    """Add results to both tables; what was there stays as it is."""
    old = known()
    new = {r.configuration: r for r in results if r.configuration not in old}
    table = {**old, **{c: as_row(r) for c, r in new.items()}}
    if new:
        write(TABLE, sorted(table.values(), key=order), provenance(new.values(), table))
        points = [*read(CURVES), *(point for r in new.values() for point in as_points(r))]
        if points:
            write(CURVES, sorted(points, key=lambda p: (order(p), float(p["step"]))))
    return table


def provenance(results: Iterable[Result], table: Table) -> Iterator[str]:
    """Say where the numbers come from: a line for each time that results were added."""
    yield "Train short, test long: the study of chapter 71, written by `make study`."
    yield "A line is a model and a test: loss in nats and share of right answers, mean over the"
    yield "windows, at 1, 2, 4 and 8 times the trained length L0. budget: times the steps below;"
    yield "rate: peak learning rate; factor: s of the scaling, empty for L/L0; tuning: steps at"
    yield "4 L0 with the scaling on; seconds: of one processor, those of a training (and of its"
    yield f"learning curve, in {CURVES.name}) beside the first test of its model. Sizes:"
    for task in TASKS:
        c = recipe(task)
        yield (
            f"- {task}: L0 {c.length}, D {c.d_model}, H {c.n_heads}, layers {c.n_layers}, "
            f"B {c.batch}, steps {c.steps}, rate {c.learning_rate:g}, windows {c.tests}"
        )
    yield f"{sum(float(row['seconds']) for row in table.values()):.0f} seconds in all. Added:"
    if TABLE.exists():
        lines = TABLE.read_text(encoding="utf-8").splitlines()
        yield from (line.removeprefix("# ") for line in lines if line.startswith("# - at "))
    results = list(results)
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    yield (
        f"- at {_commit()}: {len(results)} results in {sum(r.seconds for r in results):.0f} "
        f"seconds, {names[0] if names else platform.machine()}, {platform.system()}, "
        f"{'; '.join(sorted({r.versions for r in results}))} with {blas['name']} {blas['version']}"
    )


def _commit() -> str:
    """The commit of the package, if it is a checkout; whether more than the tables differs."""

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=TABLE.parent, capture_output=True, text=True)

    head = git("rev-parse", "--short", "HEAD")
    if head.returncode:
        return "an unknown commit"
    tables = (f":!{path.name}" for path in (TABLE, CURVES))  # an earlier step may have written them
    changed = git("diff", "--quiet", "HEAD", "--", ":/", *tables)
    return head.stdout.strip() + "-dirty" * (changed.returncode != 0)


# ---- commands -----------------------------------------------------------------------------------


def measured(table: Table) -> list[Result]:
    """What waits in the folder and is not in the table yet."""
    waiting = {
        c: None
        for step in STEPS
        for c in step(table)
        if c not in table and (FOLDER / c.name()).exists()
    }
    return run(waiting, folder=FOLDER)


def collect() -> Table:
    """Put what is measured into the tables; what that decides may be measured already, too."""
    table = known()
    while results := measured(table):
        table = add(results)
    return table


def main() -> None:
    """Measure what the tables lack, step by step."""
    table = collect()
    if sys.argv[1:] == ["--tables"]:
        return
    for number, step in enumerate(STEPS, 1):
        missing = [c for c in dict.fromkeys(step(table)) if c not in table]
        print(f"step {number} of {len(STEPS)}: {len(missing)} results are missing", flush=True)
        run(missing, folder=FOLDER)
        table = collect()
    print(f"{TABLE.name}: {len(table)} results")


QUICK = (("markov", "t5"), ("text", "rope"), ("text", "sinusoidal"), ("offset", "t5"))


def quick() -> None:
    """Measure a part of the table anew, and say how far it is from what is committed."""
    table = known()
    wanted = [
        c
        for c, row in table.items()
        if (c.task, c.encoding) in QUICK and c.seed == 0 and row["budget"] in ("1", "4")
    ]
    with tempfile.TemporaryDirectory() as folder:
        results = run(wanted, folder=folder)
    found = differences([as_row(r) for r in results], table)
    worst = max(found, key=lambda c: found[c])
    print(f"{len(found)} results; the largest difference is {found[worst]:.4f}, in {worst.name()}")
    sys.exit(found[worst] > TOLERANCE)


def differences(rows: Iterable[Row], table: Table) -> dict[Configuration, float]:
    """Largest difference, see `TOLERANCE`, for each configuration that both hold."""
    found = {}
    for row in rows:
        if (c := as_configuration(row)) in table:
            columns = LOSSES if c.task in LANGUAGES else ACCURACIES
            pairs = ((row[key], table[c][key]) for key in columns if row[key])
            found[c] = max(abs(float(new) - float(old)) for new, old in pairs)
    return found


if __name__ == "__main__":
    quick() if sys.argv[1:] == ["--quick"] else main()
