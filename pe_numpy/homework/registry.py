"""All exercises, by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from importlib import import_module

from pe_numpy.homework import variants
from pe_numpy.homework.cases import Exercise, run
from pe_numpy.homework.check import Verdict, judge

ROOMS = (
    "absolute grid counting relative distance_functions content windows recurrence rotary "
    "rope_in_models rope_relatives rope_grid fewer_keys length new_places attention transformer "
    "real_models rosetta algebra scaling blocks conversions gradients training decoding serving"
)
EXERCISES: dict[str, Exercise] = {
    e.name: e
    for room in ROOMS.split()
    for e in import_module(f"pe_numpy.homework.exercises.{room}").EXERCISES
}
EXERCISES = variants.Register(EXERCISES)  # a variant has a name, and is in no list


def exercise_of(name: str) -> Exercise:
    """Return the exercise of this name; suggest the nearest if there is none."""
    if name in EXERCISES or variants.told_of(name):
        return EXERCISES[name]
    near = difflib.get_close_matches(name.lower(), EXERCISES, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(EXERCISES)}"
    raise ValueError(f"check: there is no exercise {name!r}; {hint}")


def check(name: str, function: Callable, to: Callable | None = None, seed: int = 0) -> Verdict:
    """Check a function of your own against the reference, over many sizes, dtypes and edge cases.

    Parameters
    ----------
    name : str
        A public function of this package, or another exercise; `python -m pe_numpy list` tells.
    function : function
        Yours: the same arguments, in the same order. Its results may be arrays of any library
        that `numpy.asarray` can read.
    to : function, optional
        Makes your library's array of a NumPy array, if your function needs it.
    seed : int, optional
        From which the numbers of the cases are drawn.

    Returns
    -------
    A verdict: print it, or look at its `passed`, `mistake`, `guess`, `advice` and `chapter`.

    Raises
    ------
    ValueError
        If there is no exercise of this name; the message suggests the nearest.

    Notes
    -----
    Source: the known mistakes are those of widely read texts, which this book corrects.

    Examples
    --------
    >>> def rope_frequencies(d, base=10000.0):
    ...     return [base ** (-i / d) for i in range(d // 2)]
    >>> verdict = check("rope_frequencies", rope_frequencies)
    >>> verdict.passed, verdict.mistake
    (False, 'exponent i/d for 2i/d')
    """
    exercise = exercise_of(name)
    cases = exercise.all_cases(seed)
    return judge(exercise, run(function, cases, to), cases, seed)
