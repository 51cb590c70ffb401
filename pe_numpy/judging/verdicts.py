r"""From a table of results to a sentence: which comparisons hold, at which budgets, by one rule.

Source: Student 1908, "The probable error of a mean" (paired differences); Fisher 1935, "The design
of experiments", section 21 (what chance gives when the labels are shuffled); Holm 1979, "A simple
sequentially rejective multiple test procedure" (many comparisons at once).

Axes: n seeds, L lengths (1, 2, 4 and 8 times the trained one), m comparisons.
Convention: models of one seed share their batches, so values are compared seed by seed. A is
*lower* than B at a budget if the interval of the mean difference leaves out 0; a verdict on all
budgets is one of the sentences of `verdict`.
Differs from Student: only the interval of 95 per cent, for up to ten seeds.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pe_numpy import checks
from pe_numpy.judging.experiment import MULTIPLES, recipe

# Half the width of a 95 per cent interval in standard errors, for n - 1 = 1, 2, ... 9.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


class Study:
    """The tables of a study: results as in `results/study.csv`, and the learning curves beside.

    Parameters
    ----------
    path : path
        The table of results; that of the curves is called alike, `study_curves.csv`.

    Examples
    --------
    >>> Study("notebooks/results/study.csv").losses("markov", "rope").shape  # doctest: +SKIP
    (5, 4)
    """

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        self.rows = read_table(path)
        self.points = read_table(path.with_stem(f"{path.stem}_curves"))
        self.rates = self._rates()

    def _rates(self) -> dict[tuple[str, str, str], str]:
        """The rate of each scheme: that of most of its lines; the other one was tried once.

        Of two with as many lines it is the one with the lower loss at the trained length.
        """
        found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
        for row in self.rows:
            kind = row["task"], row["layers"], row["encoding"]
            found.setdefault(kind, {}).setdefault(row["rate"], []).append(float(row["loss_1x"]))
        return {
            kind: min(rates, key=lambda rate: (-len(rates[rate]), min(rates[rate])))
            for kind, rates in found.items()
        }

    def by_budget(
        self, task: str, encoding: str, **choices: Any
    ) -> dict[int, list[dict[str, str]]]:
        """Lines of one kind of model and test by budget, a line a seed.

        Without choices: as many layers as the task's recipe, the better rate, read as it was
        trained.
        """
        layers = str(choices.pop("layers", recipe(task, encoding).n_layers))
        wanted = {"task": task, "encoding": encoding, "layers": layers}
        wanted |= {"scaling": "direct", "factor": "", "tuning": "0", "log_n": "0"}
        wanted |= {"rate": self.rates.get((task, layers, encoding), "")}
        wanted |= {key: str(value) for key, value in choices.items()}
        own = [row for row in self.rows if wanted.items() <= row.items()]
        if not own:
            said = ", ".join(f"{key} {value!r}" for key, value in wanted.items() if value)
            raise ValueError(f"Study: there must be results of {said}; the table has none")
        found: dict[int, list[dict[str, str]]] = {}
        for row in sorted(own, key=lambda row: (int(row["budget"]), int(row["seed"]))):
            found.setdefault(int(row["budget"]), []).append(row)
        return found

    def find(
        self, task: str, encoding: str, *, budget: int = 1, **choices: Any
    ) -> list[dict[str, str]]:
        """Lines of one kind of model and test at one budget."""
        found = self.by_budget(task, encoding, **choices)
        if budget not in found:
            raise ValueError(
                f"Study: budget must be one that {encoding!r} was given at {task!r}, "
                f"{', '.join(map(str, found))}; got {budget!r}"
            )
        return found[budget]

    def losses(self, task: str, encoding: str, **choices: Any) -> np.ndarray:
        """Losses in nats (n, L)."""
        return _values("loss", self.find(task, encoding, **choices))

    def shares(self, task: str, encoding: str, **choices: Any) -> np.ndarray:
        """Shares of right answers (n, L)."""
        return _values("accuracy", self.find(task, encoding, **choices))

    def means(
        self, task: str, encoding: str, kind: str = "loss", **choices: Any
    ) -> dict[int, np.ndarray]:
        """Means over the seeds (L,) of losses, or of shares ("accuracy"), by budget."""
        found = self.by_budget(task, encoding, **choices)
        return {budget: _values(kind, rows).mean(axis=0) for budget, rows in found.items()}

    def compare(
        self,
        task: str,
        a: str | Mapping[str, Any],
        b: str | Mapping[str, Any],
        multiple: int = 8,
        kind: str = "loss",
        margin: float = 0.0,
    ) -> str:
        """Say by `verdict` whether a is lower than b, over all budgets that both were given.

        Each is an encoding, or what `find` takes: {"encoding": "rope", "scaling": "yarn"}.
        Compared are values of one kind ("loss", or "accuracy") at one multiple of the length.
        """
        pairs = self.pairs(task, a, b, multiple, kind)
        return verdict({budget: lower(a, b, margin) for budget, (a, b) in pairs.items()})

    def p_value(
        self,
        task: str,
        a: str | Mapping[str, Any],
        b: str | Mapping[str, Any],
        multiple: int = 8,
        kind: str = "loss",
    ) -> float:
        """Give the p of what `compare` says, by `verdict_p`, to be corrected by `holm`."""
        return verdict_p(self.pairs(task, a, b, multiple, kind))

    def together(self, questions: Iterable[Sequence[Any]], level: float = 0.05) -> np.ndarray:
        """Say which comparisons of one table hold together: `holm` of their `p_value`s.

        A question holds the arguments of `compare`, without a margin.
        """
        return holm([self.p_value(*question) for question in questions]) < level

    def rise(
        self, task: str, encoding: str, edge: float = 0.0, multiple: int = 8
    ) -> dict[int, list[np.ndarray]]:
        """Losses (n,) at a multiple of the length, and `edge` above those at the length itself.

        By budget, as pairs for `lower` and `verdict_p`.
        """
        far = self.pairs(task, encoding, encoding, multiple)
        near = self.pairs(task, encoding, encoding, 1)
        return {budget: [far[budget][0], near[budget][0] + edge] for budget in far}

    def trials(self, task: str, column: str) -> dict[str, list[float]]:
        """Numbers of one column at the two rates that were tried, the lower rate first.

        By encoding; of seed 0 at budget 4, at as many layers as the task's recipe.
        """
        wanted = {"task": task, "budget": "4", "seed": "0", "scaling": "direct", "tuning": "0"}
        wanted |= {"log_n": "0", "layers": str(recipe(task).n_layers)}
        own = [row for row in self.rows if wanted.items() <= row.items()]
        found: dict[str, list[float]] = {}
        for row in sorted(own, key=lambda row: float(row["rate"])):
            found.setdefault(row["encoding"], []).append(float(row[column]))
        return {encoding: both for encoding, both in found.items() if len(both) == 2}

    def pairs(
        self,
        task: str,
        a: str | Mapping[str, Any],
        b: str | Mapping[str, Any],
        multiple: int = 8,
        kind: str = "loss",
    ) -> dict[int, list[np.ndarray]]:
        """Values (n,) of a and of b, as `compare` pairs them, by budget."""
        if multiple not in MULTIPLES:
            raise ValueError(
                f"Study: multiple must be one of {', '.join(map(str, MULTIPLES))}; got {multiple!r}"
            )
        column = MULTIPLES.index(multiple)
        first, second = (
            self.by_budget(task, **({"encoding": x} if isinstance(x, str) else x)) for x in (a, b)
        )
        shared = sorted(set(first) & set(second))
        if not shared:
            raise ValueError(
                f"Study: a and b must share a budget; the table has {list(first)} of {a!r} and "
                f"{list(second)} of {b!r}"
            )
        return {
            budget: [_values(kind, side[budget])[:, column] for side in (first, second)]
            for budget in shared
        }

    def curve(
        self, task: str, encoding: str, budget: int, kind: str = "loss"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Steps (P,) of a learning curve, and its values (n, P, L)."""
        layers = str(recipe(task, encoding).n_layers)
        wanted = {"task": task, "encoding": encoding, "layers": layers, "budget": str(budget)}
        wanted["rate"] = self.rates.get((task, layers, encoding), "")
        own = [point for point in self.points if wanted.items() <= point.items()]
        steps = sorted({int(point["step"]) for point in own})
        seeds = sorted({int(point["seed"]) for point in own})
        place = {(int(p["seed"]), int(p["step"])): p for p in own}
        return np.array(steps), np.array(
            [_values(kind, [place[seed, step] for step in steps]) for seed in seeds]
        )


def read_table(path: Path) -> list[dict[str, str]]:
    """Read a table of a study, its lines as dictionaries."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def _values(kind: str, rows: Iterable[Mapping[str, str]]) -> np.ndarray:
    kind = checks.choice("Study", "kind", kind, ("loss", "accuracy"))
    columns = [f"{kind}_{n}x" for n in MULTIPLES]
    return np.array([[float(row[key]) for key in columns if row[key]] for row in rows])


# ---- the rule -----------------------------------------------------------------------------------


def paired_interval(a: ArrayLike, b: ArrayLike) -> tuple[float, float]:
    """Give the 95 per cent interval of the mean of a - b, over seeds that both share.

    Parameters
    ----------
    a, b : (n,) arrays
        One number for each seed, in the same order; the longer one is cut to the shorter.

    Returns
    -------
    low, high : floats

    Raises
    ------
    ValueError
        If they share fewer than two seeds or more than ten.

    Notes
    -----
    Source: Student 1908: mean of the differences, plus and minus t s / sqrt(n).

    Examples
    --------
    >>> low, high = paired_interval([1.0, 2.0, 3.0], [2.0, 4.0, 6.0])
    >>> round(low, 2), round(high, 2)
    (-4.48, 0.48)
    """
    d = _differences("paired_interval", a, b)
    half = STUDENT[len(d) - 2] * float(d.std(ddof=1)) / math.sqrt(len(d))
    return float(d.mean()) - half, float(d.mean()) + half


def _differences(function: str, a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Differences (n,) over seeds that both share."""
    first, second = _numbers(function, a=a, b=b)
    n = min(len(first), len(second))
    if not 2 <= n <= len(STUDENT) + 1:
        raise ValueError(f"{function}: a and b must share 2 to {len(STUDENT) + 1} seeds; got {n}")
    return first[:n] - second[:n]


def _numbers(function: str, **values: ArrayLike) -> list[np.ndarray]:
    """Lists of finite numbers as arrays."""
    arrays = []
    for name, numbers in values.items():
        array = checks.real_array(function, name, numbers).astype(float)
        if array.ndim != 1 or not np.isfinite(array).all():
            raise ValueError(
                f"{function}: {name} must be a list of finite numbers, one a seed; got {array}"
            )
        arrays.append(array)
    return arrays


def lower(a: ArrayLike, b: ArrayLike, margin: float = 0.0) -> int:
    """Compare two encodings: 1 if a is lower than b, -1 if b is, 0 if it is not decided.

    Parameters
    ----------
    a, b : (n,) arrays
        As in `paired_interval`.
    margin : float
        By how much the mean difference must be above 0 beside: what is too small to matter.

    Returns
    -------
    1, -1 or 0.

    Notes
    -----
    Source: this book's rule. Three equal signs alone decide nothing: a coin gives them one time in
    four.

    Examples
    --------
    >>> lower([1.0, 1.1, 1.2], [2.0, 2.1, 2.3]), lower([1.0, 1.1, 1.2], [1.1, 1.11, 2.3])
    (1, 0)
    """
    if checks.number("lower", "margin", margin) < 0:
        raise ValueError(f"lower: margin must be at least 0; got {margin:g}")
    low, high = paired_interval(a, b)
    middle = (low + high) / 2
    return int(high < 0 and middle < -margin) - int(low > 0 and middle > margin)


def relabelled_chance(a: ArrayLike, b: ArrayLike) -> float:
    """How often shuffled labels give means as far apart as those of a and b, or further.

    Parameters
    ----------
    a, b : (n,) and (m,) arrays
        One number for each seed, in any order.

    Returns
    -------
    Share of all ways to call n of the n + m numbers a.

    Raises
    ------
    ValueError
        If both have more than 20.

    Notes
    -----
    Source: Fisher 1935, section 21. Of 3 and 3 numbers the least possible share is 2/20.

    Examples
    --------
    >>> relabelled_chance([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    0.1
    """
    own, others = _numbers("relabelled_chance", a=a, b=b)
    if not own.size or not others.size or own.size + others.size > 20:
        raise ValueError(
            "relabelled_chance: a and b must not be empty, and have at most 20 numbers together, "
            f"since all ways to share them are counted; got {own.size} and {others.size}"
        )
    everything = np.concatenate([own, others])
    chosen = np.array(list(itertools.combinations(range(len(everything)), own.size)))
    first = everything[chosen].mean(axis=1)
    second = (everything.sum() - everything[chosen].sum(axis=1)) / others.size
    apart = abs(first[0] - second[0])  # the first choice is a itself
    return float(np.mean(np.abs(first - second) >= apart * (1 - 1e-12)))


def paired_p(a: ArrayLike, b: ArrayLike) -> float:
    """Give the two-sided p of Student's t for the mean of a - b, over seeds that both share.

    Parameters
    ----------
    a, b : (n,) arrays
        As in `paired_interval`.

    Returns
    -------
    The chance of a mean as far from 0 in standard errors, or further, if the true mean is 0 and
    differences are spread as a normal law has it. 0 if all differences are one number that is not
    0, and 1 if all are 0.

    Notes
    -----
    Source: Student 1908; the finite sums for a whole number of degrees of freedom are 26.7.3 and
    26.7.4 of Abramowitz and Stegun 1964. It is below 0.05 where `paired_interval` leaves out 0, but
    for the fourth digit of `STUDENT`.

    Examples
    --------
    >>> round(paired_p([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]), 4)  # t = -2 * sqrt(3), 2 degrees
    0.0742
    """
    d = _differences("paired_p", a, b)
    freedom, error = len(d) - 1, float(d.std(ddof=1)) / math.sqrt(len(d))
    angle = math.atan2(abs(float(d.mean())), error * math.sqrt(freedom))
    odd, c = freedom % 2, math.cos(angle)
    term, total = (c, 0.0) if odd else (1.0, 0.0)
    for m in range(1 + odd, freedom, 2):
        total += term
        term *= c * c * m / (m + 1)
    inside = math.sin(angle) * total
    return max(0.0, 1 - (2 / math.pi * (angle + inside) if odd else inside))


def holm(p_values: ArrayLike) -> np.ndarray:
    """Correct the p of m comparisons for their number.

    Parameters
    ----------
    p_values : (m,) array
        One for each comparison that was made, whether something came out or not.

    Returns
    -------
    (m,) array: the least level at which each is rejected if all m are tested together. Those below
    0.05 hold together: if each p by itself is right, the chance that a single one of them is wrong
    is at most one in twenty, however the comparisons depend on each other.

    Notes
    -----
    Source: Holm 1979: the smallest p is multiplied by m, the next by m - 1, and so on; none falls
    below one before it, and none exceeds 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, 0.005]).round(3).tolist()
    [0.03, 0.06, 0.06, 0.02]
    """
    (p,) = _numbers("holm", p_values=p_values)
    if not p.size or p.min() < 0 or p.max() > 1:
        raise ValueError(
            "holm: p_values must be a list of numbers from 0 to 1, one a comparison; got "
            f"{p.tolist()}"
        )
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    corrected[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)).clip(max=1)
    return corrected


def verdict(signs: Mapping[int, int]) -> str:
    """Say what the comparisons at all budgets amount to.

    Parameters
    ----------
    signs : {budget: 1, -1 or 0}
        What `lower` gave at each.

    Returns
    -------
    "lower", "higher", "not decided" (at no budget), "lower from 4 on", "lower at 4, the one
    budget", or "depends on the budget: ..."

    Notes
    -----
    Source: this book's rule: a direction must hold at every budget, or at every one but the first,
    which must then be not decided; and of two budgets at both. More points to start from would be
    more ways for chance to give a verdict.

    Examples
    --------
    >>> verdict({1: 1, 4: 1, 10: 1}), verdict({1: 0, 4: 1, 10: 1})
    ('lower', 'lower from 4 on')
    >>> verdict({1: 1, 4: 0, 10: -1})
    'depends on the budget: lower at 1, not decided at 4, higher at 10'
    """
    if not signs or not {*signs.values()} <= {1, -1, 0}:
        raise ValueError(
            "verdict: signs must have a budget at least, each with 1, -1 or 0 of `lower`; got "
            f"{dict(signs)}"
        )
    words = {1: "lower", -1: "higher", 0: "not decided"}
    budgets = sorted(signs)
    found = [signs[budget] for budget in budgets]
    if len(found) == 1 and found[0]:
        return f"{words[found[0]]} at {budgets[0]}, the one budget"
    if len({*found}) == 1:
        return words[found[0]]
    if len({*found} - {0}) == 1 and found[0] == 0 and len({*found[1:]}) == 1 and len(found) > 2:
        return f"{words[found[1]]} from {budgets[1]} on"
    each = ", ".join(f"{words[signs[b]]} at {b}" for b in budgets)
    return f"depends on the budget: {each}"


def verdict_p(pairs: Mapping[int, Sequence[ArrayLike]]) -> float:
    """Give the p of a verdict, from which `holm` corrects for the number of verdicts.

    Parameters
    ----------
    pairs : {budget: (a, b)}
        Numbers of both at each budget, one a seed, as in `lower`.

    Returns
    -------
    The largest `paired_p` of the budgets for which the verdict names a direction; 1 if it is
    "not decided" or "depends on the budget".

    Notes
    -----
    Source: Berger 1982, "Multiparameter hypothesis testing and acceptance sampling": that all of
    several hypotheses are wrong is tested by the largest of their p. Which budgets a verdict names
    is seen in the data; what the correction protects is therefore the part that all verdicts have:
    the direction from the second budget on (of three or more budgets; of fewer, at all).

    Examples
    --------
    >>> three, far = [0.0, 0.0, 0.0], [9.0, 9.1, 9.2]
    >>> pairs = {1: (three, [1.0, 2.0, 3.0]), 4: (three, far), 10: (three, far)}
    >>> verdict({budget: lower(*pair) for budget, pair in pairs.items()}), verdict_p(pairs) < 0.001
    ('lower from 4 on', True)
    """
    signs = {budget: lower(a, b) for budget, (a, b) in pairs.items()}
    said = verdict(signs)
    if said == "not decided" or said.startswith("depends"):
        return 1.0
    return max(paired_p(a, b) for budget, (a, b) in pairs.items() if signs[budget])
