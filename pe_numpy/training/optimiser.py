r"""Optimisers: how parameters move against their gradients, and how fast at each step.

Source: Loshchilov and Hutter 2019, "Decoupled weight decay regularization" (arXiv:1711.05101),
algorithm 2, which is Adam (Kingma and Ba 2015, arXiv:1412.6980, algorithm 1) with the decay outside
the moments::

    m_t = beta_1 m_(t-1) + (1 - beta_1) g_t,     v_t = beta_2 v_(t-1) + (1 - beta_2) g_t^2
    theta_t = theta_(t-1) - eta (m_t / (1 - beta_1^t) / (sqrt(v_t / (1 - beta_2^t)) + eps)
                                 + lambda theta_(t-1))

Axes: any; parameters, gradients and moments are nested dictionaries of the same shape.
Symbols: theta is a parameter, g its gradient, m and v its moments, t the step (from 1), eta the
learning rate, lambda the weight decay. A path such as "0/attention/W_q" names one array.
Convention: pure functions; new dictionaries come back, and nothing that goes in is changed. Moments
have the dtype of their parameter (float32 for float16).
Differs from the papers: the constants of "Attention is all you need" are the defaults (see
`adamw`); arrays of one axis (biases, gains) don't decay unless `decay` says so; here eta multiplies
lambda, as in PyTorch's AdamW (algorithm 2 multiplies it with only the schedule).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np

from pe_numpy import checks

Tree = dict[str, Any]


def tree_map(f: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply f to each array of a nested dictionary (and its partners in others of the same keys).

    Parameters
    ----------
    f : function
        Called with one leaf of each tree; a leaf is whatever is not a dictionary.
    tree : nested dictionaries of arrays
        Gives the structure of the result.
    *others : nested dictionaries
        Of the same keys.

    Returns
    -------
    Nested dictionaries with the results of f.

    Notes
    -----
    Source: the usual name for it in functional libraries; there is no paper.

    Examples
    --------
    >>> tree_map(lambda a, b: a + b, {"W": 1, "norm": {"gain": 2}}, {"W": 10, "norm": {"gain": 20}})
    {'W': 11, 'norm': {'gain': 22}}
    """
    names = ["the first tree", *(f"tree {n + 2}" for n in range(len(others)))]
    return _walk("tree_map", names, lambda path, *leaves: f(*leaves), (tree, *others))


def _walk(
    function: str, names: list[str], f: Callable[..., Any], trees: tuple[Any, ...], path: str = ""
) -> Any:
    """Call f(path, *leaves) at each leaf; refuse trees whose keys differ from the first one's."""
    first, *others = trees
    keys = first.keys() if isinstance(first, dict) else None
    if any((other.keys() if isinstance(other, dict) else None) != keys for other in others):
        _refuse_other_keys(function, names, trees, path)
    if keys is None:
        return f(path, *trees)
    return {
        key: _walk(function, names, f, tuple(tree[key] for tree in trees), _join(path, key))
        for key in keys
    }


def _refuse_other_keys(function: str, names: list[str], trees: tuple[Any, ...], path: str) -> None:
    """Name the first key that one of the trees has and another has not."""
    first = trees[0]
    for name, other in zip(names[1:], trees[1:], strict=True):
        for (one, keys), (two, beside) in permutations(
            [(names[0], _keys(first, path)), (name, _keys(other, path))]
        ):
            if odd := [key for key in keys if key not in beside]:
                raise ValueError(
                    f"{function}: {names[0]} and {name} must have the same keys; "
                    f"got {odd[0]!r} in {one} and not in {two}"
                )


def _keys(tree: Any, path: str) -> list[str]:
    """Paths of what stands directly under a dictionary; a leaf stands for an array."""
    return [_join(path, key) for key in tree] if isinstance(tree, dict) else [f"the array {path}"]


def _join(path: str, key: Any) -> str:
    return f"{path}/{key}" if path else str(key)


def tree_paths(tree: Any) -> dict[str, Any]:
    """List the leaves of a nested dictionary by their paths, keys joined by "/".

    Parameters
    ----------
    tree : nested dictionaries of arrays
        Parameters, gradients, moments.

    Returns
    -------
    Dictionary from path to leaf, in the order of the tree. An empty dictionary has no leaf.

    Notes
    -----
    Source: the way in which this book names a parameter in messages and in checkpoints.

    Examples
    --------
    >>> tree_paths({"embedding": 1, "0": {"attention": {"W_q": 2}}})
    {'embedding': 1, '0/attention/W_q': 2}
    """
    if not isinstance(tree, dict):
        raise ValueError(
            f"tree_paths: tree must be a dictionary of arrays; got {type(tree).__name__}"
        )
    found: dict[str, Any] = {}

    def note(path: str, leaf: Any) -> None:
        found[path] = leaf

    _walk("tree_paths", ["tree"], note, (tree,))
    return found


def not_finite(tree: Any) -> list[str]:
    """Name the arrays that hold a nan or inf.

    Parameters
    ----------
    tree : nested dictionaries of arrays
        Parameters or gradients.

    Returns
    -------
    List of paths, empty if all is well.

    Notes
    -----
    Source: common practice; a nan spreads to every parameter within one step, so it must be caught
    before that step.

    Examples
    --------
    >>> not_finite({"W": [1.0, 2.0], "norm": {"gain": [float("nan")]}})
    ['norm/gain']
    """
    leaves = tree_paths(tree).items()
    return [path for path, x in leaves if not np.isfinite(_real("not_finite", path, x)).all()]


def _real(function: str, path: str, x: Any) -> np.ndarray:
    return checks.real_array(function, f"the array {path!r}", x)


def clip_gradients(grads: Tree, max_norm: float) -> tuple[Tree, float]:
    """Shorten the gradients, all by the same factor, to a global norm of at most `max_norm`.

    Parameters
    ----------
    grads : nested dictionaries of arrays
        Gradients g.
    max_norm : float
        Largest norm that passes, above 0.

    Returns
    -------
    grads : nested dictionaries of arrays
        g max_norm / norm if the norm is above `max_norm`, else g as it is; dtypes are kept.
    norm : float
        sqrt(sum of all squares), before clipping, summed in float64.

    Raises
    ------
    ValueError
        If a gradient holds nan or inf (the message names its path).

    Notes
    -----
    Source: Pascanu et al. 2013, "On the difficulty of training recurrent neural networks"
    (arXiv:1211.5063), algorithm 1. The direction stays; clipping each array alone would turn it.

    Examples
    --------
    >>> grads, norm = clip_gradients({"W": np.array([3.0]), "b": np.array([4.0])}, 1.25)
    >>> grads["W"].tolist(), grads["b"].tolist(), norm
    ([0.75], [1.0], 5.0)
    """
    max_norm = checks.positive("clip_gradients", "max_norm", max_norm)
    norms = []
    for path, g in tree_paths(grads).items():
        flat = _real("clip_gradients", path, g).reshape(-1).astype(np.float64, copy=False)
        norms.append(float(np.linalg.norm(flat)))
        if not math.isfinite(norms[-1]):
            raise ValueError(
                f"clip_gradients: gradients must be finite; the one of {path!r} has the norm "
                f"{norms[-1]}"
            )
    norm = math.hypot(*norms)
    if norm <= max_norm:
        return grads, norm
    return tree_map(lambda g: np.asarray(checks.as_array(g) * (max_norm / norm)), grads), norm


def adamw_state(params: Tree) -> Tree:
    """Moments of zero for each parameter: the state before the first step of `adamw`.

    Parameters
    ----------
    params : nested dictionaries of arrays
        Parameters theta.

    Returns
    -------
    {"m": ..., "v": ..., "step": 0}: both moments with the keys and shapes of `params`, in the dtype
    of each (float32 for float16).

    Notes
    -----
    Source: Loshchilov and Hutter 2019, algorithm 2, line 2.

    Examples
    --------
    >>> adamw_state({"b": np.ones(2)})
    {'m': {'b': array([0., 0.])}, 'v': {'b': array([0., 0.])}, 'step': 0}
    """

    def zeros(path: str, p: Any) -> np.ndarray:
        p = _parameter("adamw_state", path, p)
        return np.zeros(p.shape, checks.working(p)[0])

    m, v = (_walk("adamw_state", ["params"], zeros, (params,)) for _ in range(2))
    return {"m": m, "v": v, "step": 0}


def _parameter(function: str, path: str, p: Any) -> np.ndarray:
    p = checks.whole_array(function, f"the parameter {path!r}", p)
    if p.dtype.kind != "f":
        raise ValueError(
            f"{function}: the parameter {path!r} must be floating point; got dtype {p.dtype}"
        )
    return p


def _gradient(function: str, path: str, p: np.ndarray, g: Any) -> np.ndarray:
    g = checks.real_array(function, f"the gradient of {path!r}", g)
    if g.shape != p.shape:
        raise ValueError(
            f"{function}: the gradient of {path!r} must have the shape of its parameter, "
            f"{p.shape}; got {g.shape}"
        )
    return g.astype(checks.working(p)[0], copy=False)


def adamw(
    params: Tree,
    grads: Tree,
    state: Tree,
    learning_rate: float,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-9,
    weight_decay: float = 0.01,
    decay: Callable[[str, np.ndarray], bool] | None = None,
) -> tuple[Tree, Tree]:
    """One step of AdamW: theta - eta (m_hat / (sqrt(v_hat) + eps) + lambda theta).

    Parameters
    ----------
    params : nested dictionaries of arrays
        Parameters theta, floating point.
    grads : nested dictionaries of arrays
        Their gradients g, of the same keys and shapes; cast to the dtype of the moments.
    state : dictionary
        From `adamw_state`, or what the step before gave back.
    learning_rate : float
        eta of this step.
    betas : pair of floats
        beta_1 and beta_2, from 0 to below 1: how much of each moment is kept.
    eps : float
        Above 0; keeps a gradient of zero from dividing by zero.
    weight_decay : float
        lambda, 0 for Adam itself.
    decay : function of (path, parameter), optional
        Whether a parameter decays; by default those of two axes or more.

    Returns
    -------
    params, state : new dictionaries
        Dtypes are kept; state["step"] has grown by one.

    Notes
    -----
    Source: Loshchilov and Hutter 2019, algorithm 2, without a schedule of its own (give it as the
    learning rate). betas and eps are those of Vaswani et al. 2017, section 5.3: Kingma and Ba, and
    PyTorch, have beta_2 = 0.999 and eps = 1e-8. beta_2 = 0.98 forgets old gradients after
    about 50 steps, which suits runs of a few hundred.

    Examples
    --------
    >>> params = {"b": np.array([1.0])}
    >>> params, state = adamw(params, {"b": np.array([5.0])}, adamw_state(params), 0.1)
    >>> params["b"].round(6).tolist(), state["step"]
    ([0.9], 1)
    """
    eta = _at_least_zero("adamw", "learning_rate", learning_rate)
    lam = _at_least_zero("adamw", "weight_decay", weight_decay)
    beta_1, beta_2 = (_share("adamw", f"betas[{n}]", beta) for n, beta in enumerate(betas))
    eps = checks.positive("adamw", "eps", eps)
    if not isinstance(state, dict) or state.keys() != {"m", "v", "step"}:
        raise ValueError(f"adamw: state must come from adamw_state; got {_outline(state)}")
    step = checks.integer("adamw", "the step of the state", state["step"], least=0) + 1
    correct_1, correct_2 = 1 - beta_1**step, 1 - beta_2**step

    def update(path: str, p: Any, g: Any, m: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
        p = _parameter("adamw", path, p)
        g = _gradient("adamw", path, p, g)
        work = p.astype(g.dtype, copy=False)
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g * g
        change = m / correct_1 / (np.sqrt(v / correct_2) + eps)
        if lam and (p.ndim > 1 if decay is None else decay(path, p)):
            change = change + lam * work  # outside the moments: decoupled
        moved = (work - eta * change).astype(p.dtype, copy=False)
        return tuple(map(np.asarray, (moved, m, v)))  # of no axis: still arrays, not numbers

    trees = (params, grads, state["m"], state["v"])
    new = _walk("adamw", ["params", "grads", "the moments m", "the moments v"], update, trees)
    params, m, v = (tree_map(lambda leaf, n=n: leaf[n], new) for n in range(3))
    return params, {"m": m, "v": v, "step": step}


def _outline(x: Any) -> str:
    return f"the keys {list(x)}" if isinstance(x, dict) else type(x).__name__


def _at_least_zero(function: str, name: str, x: Any) -> float:
    value = checks.number(function, name, x)
    if value < 0:
        raise ValueError(f"{function}: {name} must be at least 0; got {value:g}")
    return value


def _share(function: str, name: str, x: Any, top: bool = False) -> float:
    """A number from 0 to 1, and 1 itself only with `top`."""
    value = checks.number(function, name, x)
    if not (0 <= value < 1 or (top and value == 1)):
        rule = "from 0 to 1" if top else "at least 0 and below 1"
        raise ValueError(f"{function}: {name} must be {rule}; got {value:g}")
    return value


def sgd(
    params: Tree,
    grads: Tree,
    learning_rate: float,
    momentum: float = 0.0,
    state: Tree | None = None,
) -> tuple[Tree, Tree]:
    """One step of gradient descent with momentum: u = mu u - eta g, theta + u.

    Parameters
    ----------
    params : nested dictionaries of arrays
        Parameters theta, floating point.
    grads : nested dictionaries of arrays
        Their gradients g, of the same keys and shapes.
    learning_rate : float
        eta.
    momentum : float
        mu, from 0 to below 1; 0 is plain gradient descent.
    state : nested dictionaries of arrays, optional
        The velocities u that the step before gave back; none at the first step.

    Returns
    -------
    params, state : new dictionaries
        Dtypes are kept (velocities of float16 parameters are float32).

    Notes
    -----
    Source: Sutskever et al. 2013, "On the importance of initialization and momentum in deep
    learning", equations (1) and (2). Libraries that keep u without eta differ from them while eta
    changes.

    Examples
    --------
    >>> params, state = sgd({"b": np.array([1.0])}, {"b": np.array([2.0])}, 0.25, momentum=0.5)
    >>> params, state = sgd(params, {"b": np.array([2.0])}, 0.25, momentum=0.5, state=state)
    >>> params["b"].tolist(), state["b"].tolist()
    ([-0.25], [-0.75])
    """
    eta = _at_least_zero("sgd", "learning_rate", learning_rate)
    mu = _share("sgd", "momentum", momentum)

    def velocity(path: str, p: Any, g: Any, u: Any = 0.0) -> np.ndarray:
        g = _gradient("sgd", path, _parameter("sgd", path, p), g)
        return np.asarray(mu * u - eta * g)

    names = ["params", "grads", "the state"]
    trees = (params, grads) if state is None else (params, grads, state)
    state = _walk("sgd", names[: len(trees)], velocity, trees)

    def move(p: Any, u: np.ndarray) -> np.ndarray:
        p = checks.as_array(p)
        return np.asarray((p + u).astype(p.dtype, copy=False))

    return tree_map(move, params, state), state


def warmup_schedule(step: int, d_model: int, warmup: int) -> float:
    """Learning rate that grows for `warmup` steps, then falls with 1/sqrt(step).

    Parameters
    ----------
    step : int
        Number of the step, from 1.
    d_model : int
        Width D of the model.
    warmup : int
        Steps until the peak, 4000 in the paper.

    Returns
    -------
    float: D^-0.5 min(step^-0.5, step warmup^-1.5); its peak, at step = warmup, is
    1 / sqrt(D warmup). A Python float, so that float32 parameters stay float32.

    Raises
    ------
    ValueError
        If the step is 0, which would divide.

    Notes
    -----
    Source: Vaswani et al. 2017, section 5.3, equation (3).

    Examples
    --------
    >>> [round(warmup_schedule(step, 64, 4), 4) for step in (1, 2, 4, 16)]
    [0.0156, 0.0312, 0.0625, 0.0312]
    """
    step = checks.integer("warmup_schedule", "step", step)
    d_model = checks.integer("warmup_schedule", "d_model", d_model)
    warmup = checks.integer("warmup_schedule", "warmup", warmup)
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def cosine_schedule(
    step: int, steps: int, peak: float, warmup: float = 0.05, floor: float = 0.02
) -> float:
    """Learning rate that grows linearly to its peak, then falls along half a cosine to its floor.

    Parameters
    ----------
    step : int
        Number of the step, from 1 to `steps`.
    steps : int
        Length of the whole training.
    peak : float
        Largest rate, above 0.
    warmup : float
        Share of the steps, rounded to a whole number of them, that ends with the peak.
    floor : float
        Rate at the last step, as a share of the peak.

    Returns
    -------
    float: peak step / w for the w steps of warm-up, then
    peak (floor + (1 - floor) (1 + cos(pi (step - w) / (steps - w))) / 2).

    Raises
    ------
    ValueError
        If the step is above `steps`.

    Notes
    -----
    Source: Loshchilov and Hutter 2017, "SGDR" (arXiv:1608.03983), equation (5), one period of it;
    the linear warm-up is common practice.

    Examples
    --------
    >>> [round(cosine_schedule(step, 100, 1.0), 4) for step in (1, 5, 52, 53, 100)]
    [0.2, 1.0, 0.5181, 0.5019, 0.02]
    """
    name = "cosine_schedule"
    steps = checks.integer(name, "steps", steps)
    step = checks.integer(name, "step", step)
    if step > steps:
        raise ValueError(f"{name}: step must be from 1 to steps = {steps}; got {step}")
    peak = checks.positive(name, "peak", peak)
    floor = _share(name, "floor", floor, top=True)
    rising = round(_share(name, "warmup", warmup, top=True) * steps)
    if step <= rising:
        return peak * step / rising
    fallen = (step - rising) / (steps - rising)
    return peak * (floor + (1 - floor) * (1 + math.cos(math.pi * fallen)) / 2)
