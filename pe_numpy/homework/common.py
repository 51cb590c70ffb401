"""Mistakes that any exercise knows: they are made from its reference, its signature and its cases.

A parameter is ignored, positions are counted from 0, batch axes are lost, results come in another
order. No exercise has to list them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, Outcome
from pe_numpy.homework.known import Mistake

Change = Callable[[dict[str, Any]], object]  # of the arguments, by their names
MOST = 5  # results whose orders are all tried; steps in a row have a dozen, in 12! orders


def mistakes(exercise: Exercise, cases: Sequence[Case]) -> Iterator[Mistake]:
    """Wrong functions: the reference, called with other arguments than those given."""
    parameters = inspect.signature(exercise.reference).parameters
    used = _values(exercise, cases)

    def wrong(name: str, advice: str, change: Change) -> Mistake:
        return Mistake(name, advice, exercise.chapter, _changed(exercise.reference, change))

    defaults = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
    given = [n for n in defaults if any(not at_default(v, defaults[n]) for v in used[n])]
    for count in (1, 2):
        for names in combinations(given, count):
            text = " and ".join(names)
            were = " and ".join(f"{n}={_told(defaults[n])}" for n in names)
            yield wrong(
                f"{text} ignored",
                f"Use the {text} that {'is' if count == 1 else 'are'} given: {were} "
                f"{'is' if count == 1 else 'are'} for calls without.",
                partial(_dropped, names),
            )
    for n in given:
        if isinstance(defaults[n], str | bool):
            for value in sorted({v for v in used[n] if v != defaults[n]}, key=str):
                yield wrong(
                    f"always {n}={value!r}",
                    f"That is one of the values of {n}; use the one that is given, or the default.",
                    partial(_put, n, value),
                )
    for known in exercise.mistakes:
        for n in given:
            yield Mistake(
                f"{known.name}; and {n} ignored",
                f"{known.advice} And use the {n} that is given.",
                known.chapter,
                _with_default(known.function, exercise.reference, n),
            )
    placed = [n for n in parameters if n.endswith("positions") and _are_arrays(used[n])]
    for some in [placed, *([n] for n in placed if len(placed) > 1)]:
        if some:
            yield from _at_other_places(wrong, some)
    for n in parameters:
        arrays = [v for v in used[n] if isinstance(v, np.ndarray)]
        least = min((v.ndim for v in arrays), default=0)
        if any(v.ndim > max(least, 1) for v in arrays) and n not in ("x", "q", "k", "v"):
            yield wrong(
                f"the batch axes of {n} lost",
                f"{n} may differ from sequence to sequence: here the first one's serves all.",
                partial(_first_alone, n, least),
            )


def _dropped(names: Sequence[str], a: dict[str, Any]) -> None:
    for n in names:
        a.pop(n, None)


def _put(name: str, value: Any, a: dict[str, Any]) -> None:
    a[name] = value


def _first_alone(name: str, least: int, a: dict[str, Any]) -> None:
    if name in a:
        a[name] = _first(a[name], least)


def _at_other_places(wrong: Callable[..., Mistake], names: list[str]) -> Iterator[Mistake]:
    text = " and ".join(names)

    def from_zero(a: dict[str, Any]) -> None:
        for n in names:
            at = np.asarray(a[n])
            a[n] = np.broadcast_to(np.arange(at.shape[-1] if at.ndim else 1), at.shape).copy()

    def from_one(a: dict[str, Any]) -> None:
        a.update({n: np.asarray(a[n]) + 1 for n in names})

    yield wrong(
        f"{text} counted from 0 whatever was given",
        "Use the positions that are given: with a cache or padding they do not begin at 0.",
        from_zero,
    )
    yield wrong(f"{text} counted from 1", "The first position is 0.", from_one)


def of_results(
    expected: Sequence[Outcome], outcomes: Sequence[Outcome], precise: float
) -> tuple[str, str]:
    """What was done to the right results in each case that fails: a name, and what to do."""
    pairs = [(a, b) for a, b in zip(expected, outcomes, strict=True) if not a.agrees(b, precise)]
    if not pairs or any(not b.results for _, b in pairs):
        return "", ""

    def all_are(change: Callable[[list[np.ndarray]], list[np.ndarray] | None]) -> bool:
        for want, got in pairs:
            changed = change(want.results)
            if changed is None or not Outcome(changed).agrees(Outcome(got.results), precise):
                return False
        return True

    n = len(pairs[0][0].results)
    for order in permutations(range(n)) if 1 < n <= MOST else ():
        if order != tuple(range(n)) and all_are(partial(_chosen, order)):
            return "the results in another order", "Return them as the specification lists them."
    for i in range(n) if n > 1 else ():
        if all_are(partial(_chosen, (i,))):
            return f"result {i + 1} of {n} alone", f"Return a tuple of all {n} results."
    if all_are(lambda r: [-a for a in r] if all(a.dtype.kind in "fci" for a in r) else None):
        return "the opposite sign", "Every number is right but for its sign."
    if n == 1:
        ndim = max(want.results[0].ndim for want, _ in pairs)
        for order in permutations(range(-ndim, 0)):
            moved = [k for k in range(-ndim, 0) if order[k] != k]
            if moved and all_are(partial(_moved, order, moved)):
                return "axes in another order", "The numbers are right; look at the axes' order."
    if _in_float32(pairs, precise):
        return (
            "computed in float32",
            "The numbers are right to seven digits: compute in float64 what is to be float64.",
        )
    return "", ""


def _chosen(places: Sequence[int], results: list[np.ndarray]) -> list[np.ndarray]:
    return [results[n] for n in places]


def _moved(
    order: tuple[int, ...], moved: list[int], results: list[np.ndarray]
) -> list[np.ndarray] | None:
    """Axes counted from the end, so that one order serves arrays with and without batch axes."""
    (a,) = results
    if a.ndim < -min(moved):
        return None
    return [np.transpose(a, [*range(a.ndim - len(order)), *(a.ndim + k for k in order[-a.ndim :])])]


def _in_float32(pairs: Sequence[tuple[Outcome, Outcome]], precise: float) -> bool:
    """Whether float64 results have the digits of float32 alone, and these are right."""
    for want, got in pairs:
        if [a.shape for a in want.results] != [b.shape for b in got.results]:
            return False
        for a, b in zip(want.results, got.results, strict=True):
            if a.dtype != np.float64 or b.dtype.kind != "f" or not np.isfinite(b).all():
                return False
            with np.errstate(over="ignore"):
                if not np.array_equal(b, b.astype(np.float32).astype(np.float64)):
                    return False
        narrow = Outcome([a.astype(np.float32) for a in want.results])
        if not narrow.agrees(Outcome(got.results), precise):
            return False
    return True


def _values(exercise: Exercise, cases: Sequence[Case]) -> dict[str, list[Any]]:
    """What the cases give for each parameter."""
    signature = inspect.signature(exercise.reference)
    found: dict[str, list[Any]] = {name: [] for name in signature.parameters}
    for one in cases:
        try:
            bound = signature.bind(*one.args, **one.options).arguments
        except TypeError:  # a case of several calls, with arguments of its own
            continue
        for name, value in bound.items():
            found[name].append(value)
    return found


def _changed(reference: Callable, change: Change) -> Callable:
    """The reference, with its arguments changed by their names."""
    signature = inspect.signature(reference)

    def wrong(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options)
        change(bound.arguments)
        return reference(*bound.args, **bound.kwargs)

    return wrong


def _with_default(function: Callable, reference: Callable, name: str) -> Callable:
    """A function that gets one argument's default, whatever is given."""
    parameters = inspect.signature(reference).parameters
    place, default = [*parameters].index(name), parameters[name].default

    def wrong(*args: Any, **options: Any) -> Any:
        args = tuple(default if n == place else value for n, value in enumerate(args))
        return function(*args, **{key: v for key, v in options.items() if key != name})

    return wrong


def _first(value: Any, least: int) -> Any:
    """The first entry of each leading axis, in its place in the shape."""
    if not isinstance(value, np.ndarray) or value.ndim <= max(least, 1):
        return value
    lead = value.ndim - max(least, 1)
    first = value[(slice(0, 1),) * lead]
    return np.broadcast_to(first, value.shape).copy()


def _are_arrays(values: list[Any]) -> bool:
    return any(isinstance(v, np.ndarray) and v.ndim for v in values)


def at_default(value: Any, default: Any) -> bool:
    """Whether an argument is what a call without it has."""
    if value is None or default is None:
        return value is default
    return bool(np.array_equal(np.asarray(value), np.asarray(default)))


def _told(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)
