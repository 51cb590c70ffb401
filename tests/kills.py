"""Kill a training and a study a hundred times, and see that nothing that was finished is lost.

Usage: python tests/kills.py [KILLS [SEED]]     (50 of each, seed 0: a minute)

Each runs in a process of its own that is killed (SIGKILL) at a random moment, most often while it
works, at times while Python starts. After each kill what lies on the disk is looked at, and the
next process goes on from it. What is seen to:

- nothing that the process had told to be finished is missing, and what was there stays as it was;
- what is there is whole: a checkpoint has the very bits that an undisturbed training has at its
  step, a result those of an undisturbed study;
- so has the end, which the last process is left to reach.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pe_numpy.judging import study
from pe_numpy.judging.experiment import Configuration, Result, recipe
from pe_numpy.training.checkpoint import load
from pe_numpy.training.loop import train

STEPS, WIDTH = 600, 120
SMALL: dict[str, Any] = {
    "length": 8,
    "d_model": 8,
    "n_heads": 2,
    "batch": 8,
    "steps": 3,
    "tests": 5,
}


# ---- what is killed -----------------------------------------------------------------------------


def tell(words: object) -> None:
    """Say at once that something is finished."""
    os.write(1, f"{words}\n".encode())


def training(path: Path | None, told: Callable[[int], None], seen: Any = None) -> tuple[Any, Any]:
    """Train with a checkpoint after each step; at a step's rate, the steps before are saved."""

    def value_and_grad(params: Any, batch: Any, rng: Any) -> Any:
        if seen is not None:
            seen.append(digest(params))
        error = params["W"] @ batch - batch[::-1]
        return float((error**2).mean()), {"W": 2 * error @ batch.T / error.size}

    def rate(t: int) -> float:
        told(t - 1)
        return 1e-2

    def batches(rng: Any) -> Any:
        return rng.standard_normal((WIDTH, 8))

    start = {"W": np.zeros((WIDTH, WIDTH))}
    return train(
        start, value_and_grad, batches, STEPS, rate, checkpoint=path, every=1, progress=False
    )


def digest(params: Any) -> str:
    """A short name of all bits of the parameters."""
    return hashlib.sha256(params["W"].tobytes()).hexdigest()


def configurations() -> list[Configuration]:
    """Experiments of some milliseconds each."""
    return [
        recipe("offset", encoding, seed=seed, **SMALL)
        for seed in range(50)
        for encoding in ("none", "rope", "shaw", "alibi")
    ]


def small_study(folder: Path) -> list[Result]:
    """Measure them all, two at a time, in this process."""
    with ThreadPoolExecutor(2) as threads:
        return study.run(configurations(), threads, folder, progress=False)


def telling_study(folder: Path) -> None:
    """The same, telling each file that is written."""
    write = study._write

    def write_and_tell(folder: Path, result: Result) -> None:
        write(folder, result)
        tell(result.configuration.name())

    study._write = write_and_tell
    small_study(folder)


# ---- killing ------------------------------------------------------------------------------------


def killed(kind: str, place: Path, rng: random.Random) -> list[str] | None:
    """Start one, kill it; return what it told until then, or None if it came to its end."""
    command = [sys.executable, __file__, kind, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = b""
        if rng.random() < 0.9:
            first = process.stdout.readline()
            time.sleep(rng.uniform(0, 0.2))
        else:
            time.sleep(rng.uniform(0, 0.5))
        process.kill()
        lines = (first + process.stdout.read()).decode().split("\n")[:-1]  # whole ones
    if process.returncode not in (0, -signal.SIGKILL):
        raise SystemExit(f"the {kind} failed by itself, with {process.returncode}")
    return lines if process.returncode else None


def kill_trainings(kills: int, folder: Path, rng: random.Random) -> str:
    """Kill a training again and again; return what was seen."""
    states: list[str] = []
    end, losses = training(None, lambda t: None, states)
    states.append(digest(end))
    done = repeated = ended = 0
    path = folder / "training.npz"
    for _ in range(kills):
        told = killed("training", path, rng)
        step = 0
        if path.exists():
            saved = load(path)
            step = saved["optimiser"]["step"]
            assert digest(saved["params"]) == states[step], f"other bits at step {step}"
            assert saved["losses"].tolist() == losses[:step], f"other losses at step {step}"
        least = max([done, *map(int, told or [])])
        assert step >= least, f"{least} steps were finished, {step} are there"
        repeated, done = repeated + (step == done), step
        if done == STEPS:
            path.unlink()
            done, ended = 0, ended + 1
    again, losses_again = training(path, lambda t: None)
    assert digest(again) == states[-1] and losses_again == losses, "the end has other bits"
    left = len(list(folder.glob("training.npz.*.part")))
    return (
        f"training: {kills} kills, {left} of them within a write, {repeated} before a new step; "
        f"{ended * STEPS + done} steps before the last start; all bits are those of one undisturbed"
    )


def kill_studies(kills: int, folder: Path, rng: random.Random) -> str:
    """Kill a study again and again; return what was seen."""
    whole = {r.configuration.name(): r for r in small_study(folder / "undisturbed")}
    place = folder / "study"
    there: dict[str, tuple[int, bytes]] = {}
    finished = left = ended = 0
    for _ in range(kills):
        told = killed("study", place, rng)
        files = {
            p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in place.glob("*") if p.is_file()
        }
        left = len([name for name in files if name.endswith(".part")])
        now = {name: kept for name, kept in files.items() if not name.endswith(".part")}
        lost = {*there, *(told or [])} - {*now}
        assert not lost, f"finished and lost: {sorted(lost)}"
        assert there.items() <= now.items(), "a finished result was written again"
        for c in configurations():
            if c.name() in now.keys() - there.keys():
                found = study._read(place, c)
                assert found is not None and same(found, whole[c.name()]), f"{c.name()} differs"
        finished += len(now) - len(there)
        there = now
        if len(now) == len(whole):
            place = place.with_name(f"{place.name}+")
            there, ended = {}, ended + 1
    results = small_study(place)
    assert all(map(same, results, whole.values())), "the end differs"
    return (
        f"study: {kills} kills, {left} parts left behind in the last folder; {finished} results "
        f"before the last start, {ended} times all {len(whole)}; all are those of one undisturbed"
    )


def same(a: Result, b: Result) -> bool:
    """Whether all but the time is equal."""
    return replace(a, seconds=0.0) == replace(b, seconds=0.0)


def main(kills: str = "50", seed: str = "0") -> None:
    """Kill both."""
    for kill in (kill_trainings, kill_studies):
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            said = kill(int(kills), Path(folder), random.Random(int(seed)))
        print(f"{said} ({time.perf_counter() - start:.0f} s)", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["training"]:
        training(Path(sys.argv[2]), tell)
    elif sys.argv[1:2] == ["study"]:
        telling_study(Path(sys.argv[2]))
    else:
        main(*sys.argv[1:])
