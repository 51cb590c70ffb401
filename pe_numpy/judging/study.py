r"""A study: many experiments at once, on any executor, each result kept as soon as it is there.

Source: this book; executors are those of Python's `concurrent.futures` (PEP 3148), which Dask and
others speak, too.

Axes: none.
Convention: a result is a file, named after its configuration and written whole or not at all. So
the folder is all the state that a study has: what is there is never measured again, and a study
that was cut off, by a key, a killed worker or a power cut, goes on where it stopped.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pe_numpy import checks
from pe_numpy.files import write_whole
from pe_numpy.judging.experiment import Configuration, Result, measure
from pe_numpy.training.loop import progress_bar


def run(
    configurations: Iterable[Configuration],
    executor: Executor | None = None,
    folder: str | os.PathLike[str] = "_build/study",
    progress: bool = True,
) -> list[Result]:
    """Measure many configurations at once, and keep each result as a file.

    Parameters
    ----------
    configurations : several Configuration
        Those whose training is the same are measured by one worker, and their model trained once.
    executor : concurrent.futures.Executor, optional
        Who does the work, for instance ``distributed.Client(...).get_executor()`` for a cluster of
        Dask; by default new processes of one BLAS thread each, as many as there are processors.
    folder : path
        Where the results are kept. One that is there is read, not measured again.
    progress : bool
        Whether to show a bar: if stderr is a terminal and tqdm is installed, else nothing is shown.

    Returns
    -------
    Results in the order of the configurations.

    Raises
    ------
    ValueError
        If something is no configuration, the executor is none, or a file in the folder is damaged
        or of another configuration.
    RuntimeError
        If a worker dies or a training fails: after all others are done.

    Notes
    -----
    Source: this book. Each file is written whole or not at all, by the worker itself and, if the
    worker has another disk, by the caller too. So whatever ends a study, running it again measures
    only what is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pe_numpy.judging.experiment import recipe
    >>> small = [recipe("offset", name, steps=1, tests=1) for name in ("none", "shaw")]
    >>> with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as threads:
    ...     results = run(small, threads, folder)
    ...     [result.configuration.encoding for result in results], len(os.listdir(folder))
    (['none', 'shaw'], 2)
    """
    wanted = list(configurations)
    if strange := [c for c in wanted if not isinstance(c, Configuration)]:
        raise ValueError(f"run: each configuration must be a Configuration; got {strange[0]!r}")
    if not isinstance(executor, Executor | None):
        raise ValueError(
            "run: executor must be a concurrent.futures.Executor; "
            f"got {type(executor).__name__}, of a Dask client give client.get_executor()"
        )
    progress = checks.flag("run", "progress", progress)
    folder = Path(folder).absolute()
    results = {c: found for c in wanted if (found := _read(folder, c))}
    jobs: dict[Configuration, list[Configuration]] = {}
    for c in dict.fromkeys(wanted):
        if c not in results:
            jobs.setdefault(c.trained_as(), []).append(c)
    failures: list[Exception] = []
    workers = _Processes(os.cpu_count()) if executor is None else nullcontext(executor)
    with workers as pool, progress_bar(len({*wanted}), len(results), progress) as bar:
        futures = [pool.submit(_measure_all, job, folder) for job in jobs.values()]
        try:
            for future in as_completed(futures):
                try:
                    new = future.result()
                except Exception as error:  # the others go on
                    failures.append(error)
                    continue
                for result in new:
                    _write(folder, result)
                    results[result.configuration] = result
                    if bar is not None:
                        bar.update()
        finally:
            for future in futures:
                future.cancel()
    if failures:  # a worker may have died after its last result
        results |= {c: found for c in wanted if (found := _read(folder, c))}
    if missing := {c for c in wanted if c not in results}:
        raise RuntimeError(
            f"run: {len(missing)} of {len({*wanted})} results are missing, because a worker "
            f"failed: {failures[0]}. All others are in {folder}; run it again for the rest"
        ) from failures[0]
    return [results[c] for c in wanted]


def _measure_all(job: list[Configuration], folder: Path) -> list[Result]:
    """What a worker does: measure configurations of one training, writing each when it is done."""
    results = []
    for c in job:
        results.append(_read(folder, c) or measure(c))
        _write(folder, results[-1])
    return results


def _read(folder: Path, c: Configuration) -> Result | None:
    """Return the result of a configuration, if it is there."""
    path = folder / c.name()
    if not path.exists():
        return None
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept.pop("configuration") != asdict(c):
            raise ValueError("it is of another configuration")
        kept = {key: tuple(x) if isinstance(x, list) else x for key, x in kept.items()}
        kept["curve"] = tuple(tuple(point) for point in kept["curve"])
        return Result(c, **kept)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"run: {path} must be a result; {error}. Remove the file") from error


def _write(folder: Path, result: Result) -> None:
    """Write a result, whole or not at all, unless it is there."""
    path = folder / result.configuration.name()
    if path.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asdict(result), indent=1))


class _Processes(ThreadPoolExecutor):
    """Threads, each of which runs a job in a new Python that imports nothing of the caller's."""

    def submit(self, job: Callable[..., Any], /, *arguments: Any) -> Future[Any]:  # type: ignore
        return super().submit(_in_new_process, job, *arguments)


def _in_new_process(job: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of one BLAS thread."""
    program = (
        "import pickle, sys; job, arguments = pickle.load(sys.stdin.buffer); "
        "pickle.dump(job(*arguments), sys.stdout.buffer)"
    )
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        input=pickle.dumps((job, arguments)),
        capture_output=True,
        env={**os.environ, **threads, "PYTHONPATH": path},
    )
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise RuntimeError(f"its process ended with {done.returncode}: {last or 'killed'}")
    return pickle.loads(done.stdout)
