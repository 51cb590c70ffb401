"""What is told of any exercise, made from its reference, its signature and its cases.

Mistakes: a parameter is ignored, positions are counted from 0, batch axes are lost, results come in
another order. No exercise has to list them. And what the cases that are right have in common.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np

from pe_numpy.homework.cases import Case, Exercise, Outcome
from pe_numpy.homework.known import Mistake, late

LARGE = 20  # a product of two such numbers overflows in exp
Change = Callable[[dict[str, Any]], object]  # of the arguments, by their names


def mistakes(exercise: Exercise, cases: Sequence[Case]) -> Iterator[Mistake]:
    """Wrong functions: the reference, called with other arguments than those given."""
    reference, parameters = exercise.reference, inspect.signature(exercise.reference).parameters
    some = [named(exercise, one) for one in cases]
    used = {n: [values[n] for values in some if n in values] for n in parameters}

    def wrong(name: str, advice: str, change: Change) -> Mistake:
        return Mistake(name, advice, exercise.chapter, _changed(reference, reference, change))

    defaults = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
    given = [n for n in defaults if any(not at_default(v, defaults[n]) for v in used[n])]
    for names in [*combinations(given, 1), *combinations(given, 2)]:
        text, verb = " and ".join(names), "are" if len(names) > 1 else "is"
        values = [(n, defaults[n]) for n in names]
        were = " and ".join(f"{n}={d:g}" if type(d) is float else f"{n}={d!r}" for n, d in values)
        advice = f"Use the {text} that {verb} given: {were} {verb} for calls without."
        yield wrong(f"{text} ignored", advice, _put(dict(values)))
    for n in given:
        if isinstance(defaults[n], str | bool):
            for value in sorted({v for v in used[n] if v != defaults[n]}, key=str):
                use = "use the one that is given, or the default."
                advice = f"That is one of the values of {n}; {use}"
                yield wrong(f"always {n}={value!r}", advice, _put({n: value}))
            words = sorted({defaults[n], *used[n]}, key=str)
            if len(words) == 2:
                title = f"{n}={words[0]!r} and {n}={words[1]!r} exchanged"
                change = partial(_exchange, n, words, defaults[n])
                yield wrong(title, f"Each {n} does what the other should.", change)
    for known in exercise.mistakes:
        for n in given:
            yield Mistake(
                f"{known.name}; and {n} ignored",
                f"{known.advice} And use the {n} that is given.",
                known.chapter,
                _changed(known.function, reference, _put({n: defaults[n]})),
            )
    placed = [n for n in parameters if n.endswith(("positions", "distance"))]
    placed = [n for n in placed if any(isinstance(v, np.ndarray) and v.ndim for v in used[n])]
    for group in [placed, *([n] for n in placed if len(placed) > 1)]:
        if group:
            start = 0 if all(n.endswith("positions") for n in group) else 2
            for title, advice, how in PLACES[start:]:
                change = partial(_moved_to, how, group)
                yield wrong(title.format(" and ".join(group)), advice, change)
    for n in parameters:
        arrays = [v for v in used[n] if isinstance(v, np.ndarray)]
        least = min((v.ndim for v in arrays), default=0)
        if any(v.ndim > max(least, 1) for v in arrays) and n not in ("x", "q", "k", "v"):
            advice = f"{n} may differ from sequence to sequence: here the first one's serves all."
            change = partial(_moved_to, partial(_first, max(least, 1)), [n])
            yield wrong(f"the batch axes of {n} lost", advice, change)


def _put(values: dict[str, Any]) -> Change:
    return lambda a: a.update(values)


def _exchange(name: str, words: Sequence[Any], default: Any, a: dict[str, Any]) -> None:
    a[name] = words[1 - words.index(a.get(name, default))]


def _moved_to(how: Callable[[np.ndarray], np.ndarray], names: list[str], a: dict[str, Any]) -> None:
    a.update({n: how(np.asarray(a[n])) for n in names if a.get(n) is not None})


def _from_zero(at: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.arange(at.shape[-1] if at.ndim else 1), at.shape).copy()


def _first(least: int, value: np.ndarray) -> np.ndarray:
    """The first entry of each leading axis, in its place in the shape."""
    lead = max(value.ndim - least, 0)
    return np.broadcast_to(value[(slice(0, 1),) * lead], value.shape).copy()


PLACES: tuple[tuple[str, str, Callable[[np.ndarray], np.ndarray]], ...] = (
    (
        "{} counted from 0 whatever was given",
        "Use the positions that are given: with a cache or padding they do not begin at 0.",
        _from_zero,
    ),
    ("{} counted from 1", "The first position is 0.", lambda at: at + 1),
    ("{} cut to whole numbers", "They may lie between them.", lambda at: at - np.fmod(at, 1)),
    ("the absolute value of {}", "They may be negative: the sign counts.", np.abs),
)


def pairs(exercise: Exercise) -> Iterator[Mistake]:
    """Two mistakes of the table at once."""
    for a, b in combinations([m for m in exercise.mistakes if m.change], 2):
        change = (*a.change, *b.change)
        wrong = late(exercise.name, exercise.chapter, change)
        yield Mistake(f"{a.name}; and {b.name}", f"{a.advice} {b.advice}", a.chapter, wrong, change)


def of_results(pairs: Sequence[tuple[Outcome, Outcome]], precise: float) -> tuple[str, str]:
    """What was done to the right results in each case that fails: a name, and what to do."""
    if not pairs or any(not got.results for _, got in pairs):
        return "", ""

    def all_are(change: Callable[[list[np.ndarray]], list[np.ndarray] | None]) -> bool:
        for want, got in pairs:
            changed = change(want.results)
            if changed is None or not Outcome(changed).agrees(Outcome(got.results), precise):
                return False
        return True

    n = len(pairs[0][0].results)
    if n > 1 and all(_in_another_order(want, got, precise) for want, got in pairs):
        return "the results in another order", "Return them as the specification lists them."
    for i in range(n) if n > 1 else ():
        if all_are(partial(lambda i, results: results[i : i + 1], i)):
            return f"result {i + 1} of {n} alone", f"Return a tuple of all {n} results."
    if all_are(lambda r: [-a for a in r] if all(a.dtype.kind in "fci" for a in r) else None):
        return "the opposite sign", "Every number is right except for its sign."
    if n == 1:
        ndim = max(want.results[0].ndim for want, _ in pairs)
        for order in permutations(range(-ndim, 0)):
            moved = [k for k in range(-ndim, 0) if order[k] != k]
            if moved and all_are(partial(_moved, order, moved)):
                return "axes in another order", "The numbers are right; look at the axes' order."
    advice = "The numbers are right to seven digits: compute in float64 what is to be float64."
    return ("computed in float32", advice) if _in_float32(pairs, precise) else ("", "")


def _in_another_order(want: Outcome, got: Outcome, precise: float) -> bool:
    """Whether each result is one of those expected, each is there once, and not in its place."""
    left = [Outcome([a]) for a in want.results]
    for b in got.results:
        n = next((n for n, a in enumerate(left) if a.agrees(Outcome([b]), precise)), None)
        if n is None:
            return False
        del left[n]
    return not left and not want.agrees(got, precise)


def _moved(
    order: tuple[int, ...], moved: list[int], results: list[np.ndarray]
) -> list[np.ndarray] | None:
    """Axes counted from the end, so that one order serves arrays with and without batch axes."""
    (a,) = results
    if a.ndim < -min(moved):
        return None
    return [np.transpose(a, [*range(a.ndim - len(order)), *(a.ndim + k for k in order[-a.ndim :])])]


def _in_float32(pairs: Sequence[tuple[Outcome, Outcome]], precise: float) -> bool:
    """Whether float64 results have only the digits of float32, and these are right."""
    for want, got in pairs:
        if any(a.dtype != np.float64 for a in want.results):
            return False
        if not Outcome([a.astype(np.float32) for a in want.results]).agrees(got, precise):
            return False
        with np.errstate(over="ignore"):
            if any(b.dtype.kind != "f" or (b != b.astype(np.float32)).any() for b in got.results):
                return False
    return True


def _changed(function: Callable, reference: Callable, change: Change) -> Callable:
    """A function whose arguments are changed by the names that they have in the reference."""
    signature = inspect.signature(reference)

    def wrong(*args: Any, **options: Any) -> Any:
        bound = signature.bind(*args, **options)
        change(bound.arguments)
        return function(*bound.args, **bound.kwargs)

    return wrong


def at_default(value: Any, default: Any) -> bool:
    """Whether an argument is what a call without it has."""
    if value is None or default is None:
        return value is default
    return bool(np.array_equal(np.asarray(value), np.asarray(default)))


# ---- what cases have in common -------------------------------------------------------------------


def named(exercise: Exercise, one: Case) -> dict[str, Any]:
    """The arguments of a case, by their names."""
    names = [*inspect.signature(exercise.reference).parameters]
    return {**dict(zip(names, one.args, strict=False)), **one.options}


def leaves(value: Any) -> Iterator[np.ndarray]:
    """The arrays of a case, however deep."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)


def traits(exercise: Exercise, cases: Sequence[Case]) -> list[list[str]]:
    """What tells each case from the plainest: options, dtypes, keys, axes, strange numbers."""
    parameters = inspect.signature(exercise.reference).parameters
    defaults = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
    given = [named(exercise, one) for one in cases]
    arrays = [{n: a for n, a in some.items() if isinstance(a, np.ndarray)} for some in given]
    found = []
    for one, some, own in zip(cases, given, arrays, strict=True):
        told = ["several calls in a row"] if one.drive else []
        for n, value in some.items():
            if n in defaults and not at_default(value, defaults[n]):
                told.append(f"{n}={value!r}" if isinstance(value, str | bool) else n)
        kinds = {str(a.dtype) for a in leaves([*some.values()])}
        told += [f"{kind} arrays" for kind in ("float32", "float16", "complex64") if kind in kinds]
        for n, a in own.items():
            least = min(other[n].ndim for other in arrays if n in other)
            told += [f"batch axes of {n}"] if a.ndim > least else []
            told += _strange(n, a)
        told += [f"{n} and {m} of different lengths" for n, m in _unlike(own, -2)]
        for n, table in some.items():
            if isinstance(table, dict):
                told += [f"{key} in {n}" for key in table]
                told += [f"{a} and {b} of different widths" for a, b in _unlike(table, -1)]
        found.append(told)
    common = set.intersection(*map(set, found))
    return [[t for t in told if t not in common] for told in found]


def _unlike(some: dict[str, Any], axis: int) -> list[tuple[str, str]]:
    """Names of arrays of several axes that differ in one of these."""
    arrays = {n: a for n, a in some.items() if isinstance(a, np.ndarray) and a.ndim > 1}
    sizes = [(n, a.shape[axis]) for n, a in arrays.items()]
    return [(n, m) for (n, a), (m, b) in combinations(sizes, 2) if a != b]


def _strange(name: str, a: np.ndarray) -> Iterator[str]:
    """What is not plain in the numbers of an array."""
    a = np.atleast_1d(a)
    if not a.size:
        yield f"an empty {name}"
    elif a.dtype == bool and not a.any(axis=-1).all():
        yield f"a row of {name} that is all False"
    elif a.dtype.kind in "fi":
        if np.isneginf(a).all(axis=-1).any():
            yield f"a row of {name} that is all -inf"
        elif not np.isfinite(a).all():
            yield f"infinity in {name}"
        if name.endswith(("positions", "distance")):
            if (a < 0).any():
                yield f"negative {name}"
            if (a % 1 != 0).any():
                yield f"{name} between whole numbers"
        elif np.abs(a, where=np.isfinite(a), out=np.zeros(a.shape)).max() > LARGE:
            yield f"large numbers in {name}"


def stage(traits: Sequence[Sequence[str]], failing: Sequence[int]) -> str:
    """How many cases are right, and what these have in common that no wrong one has."""
    every = set(range(len(traits)))
    right, most, what = every - set(failing), 0, ""
    for trait in dict.fromkeys(t for some in traits for t in some):
        having = {n for n in every if trait in traits[n]}
        for word, some in (("without", every - having), ("with", having)):
            told = word == "without" or some == right or " " not in trait
            if some <= right and told and len(some) > most:
                most, what = len(some), f" {word} {trait}"
    text = f"Right in {len(right) or 'none'} of {len(every)} cases"
    if not most or 2 * most < len(right):
        return f"{text}."
    return f"{text}: all{what}." if most == len(right) else f"{text}, in all {most}{what}."


def why_nan(exercise: Exercise, one: Case) -> str:
    """The cause of NaNs in a case, as its arguments tell it."""
    arrays = [(n, a) for n, a in named(exercise, one).items() if isinstance(a, np.ndarray)]
    traits = [trait for n, a in arrays for trait in _strange(n, a)]
    if any(t.startswith("a row of") for t in traits):
        return "There are NaNs: where all is hidden or -inf, a softmax is 0/0."
    if not any(t.startswith("large numbers in") for t in traits):
        return "There are NaNs: 0/0, or infinity minus infinity?"
    why = "exp of a large number is infinity, of a very negative one 0: neither divides by itself"
    return f"There are NaNs: {why}. Subtract the largest of each row first."
