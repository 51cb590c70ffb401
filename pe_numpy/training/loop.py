r"""The training loop: a batch, its gradients, a step; over and over, and again after a power cut.

Source: Vaswani et al. 2017, "Attention is all you need" (arXiv:1706.03762), section 5 (Adam and a
learning rate that changes with the step), with the decay and the clipping of `optimiser`.

Axes: those of the model.
Symbols: t is the step, from 1.
Convention: all that is random in step t (its batch, its dropout) comes from one generator,
``np.random.default_rng([seed, t])``. So a step depends on the step's number and not on the history
of a generator, and a checkpoint needs no state of one.
Differs from the paper: gradients are clipped, and a nan stops the training.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pe_numpy import checks
from pe_numpy.training.checkpoint import load, save
from pe_numpy.training.optimiser import (
    Tree,
    adamw,
    adamw_state,
    clip_gradients,
    not_finite,
    tree_map,
)
from pe_numpy.transformer.fits import fits


def train(
    params: Tree,
    value_and_grad_of_loss: Callable[..., tuple[Any, Tree]],
    batches: Callable[[np.random.Generator], Any],
    steps: int,
    learning_rate: float | Callable[[int], float],
    seed: int = 0,
    max_norm: float = 1.0,
    weight_decay: float = 0.01,
    decay: Callable[[str, np.ndarray], bool] | None = None,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-9,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 100,
    progress: bool = True,
    model: Any = None,
) -> tuple[Tree, list[float]]:
    """Train by AdamW with clipped gradients, from the start or from the last checkpoint.

    Parameters
    ----------
    params : nested dictionaries of arrays
        Parameters to start from.
    value_and_grad_of_loss : function of (params, batch, rng)
        Gives the loss and its gradients by `params`; `rng` is for dropout.
    batches : function of a generator
        Draws one batch, whatever the loss takes.
    steps : int
        Number of the last step.
    learning_rate : float, or function of the step (from 1)
        For instance ``lambda t: cosine_schedule(t, steps, 5e-3)``.
    seed : int
        Step t draws from ``np.random.default_rng([seed, t])``: first the batch, then the dropout.
    max_norm : float
        Largest global norm of the gradients, see `clip_gradients`.
    weight_decay, decay, betas, eps : as in `adamw`
        As there.
    checkpoint : path, optional
        File that holds parameters, both moments, step, losses and seed. If it is there, training
        goes on from it.
    every : int
        Steps between checkpoints; the last step is saved in any case.
    progress : bool
        Whether to show a bar: if stderr is a terminal and tqdm is installed, else nothing is shown.
    model : Model, optional
        What `params` belong to. The loss holds it, where `train` can't see it; given here as well,
        it must fit `params`, is written into the checkpoint, and compared when training goes on.

    Returns
    -------
    params : nested dictionaries of arrays
        Parameters after the last step.
    losses : list of floats
        Loss of every step from 1 on, before that step's update.

    Raises
    ------
    ValueError
        If a loss, gradient or parameter becomes nan or inf (the message tells step and path, and
        the checkpoint stays the last good one); if the checkpoint is of another model, other
        parameters, another seed or a later step than `steps`; if the model contradicts the
        parameters (`pe_numpy.transformer.fits`).

    Notes
    -----
    Source: Vaswani et al. 2017, section 5.3. A training that was cut off and started again with the
    same arguments gives the same bits as one that was not (on the same machine and libraries).

    Examples
    --------
    >>> def value_and_grad(params, batch, rng):
    ...     error = params["x"] - batch
    ...     return (error**2).sum(), {"x": 2 * error}
    >>> start = {"x": np.array([5.0])}
    >>> params, losses = train(start, value_and_grad, lambda rng: 3.0, 100, learning_rate=0.1)
    >>> params["x"].round(2).tolist(), losses[0], len(losses)
    ([3.0], 4.0, 100)
    """
    steps = checks.integer("train", "steps", steps, least=0)
    every = checks.integer("train", "every", every)
    seed = checks.integer("train", "seed", seed, least=0)
    progress = checks.flag("train", "progress", progress)
    _function("value_and_grad_of_loss", value_and_grad_of_loss, "(params, batch, rng)")
    _function("batches", batches, "a generator")
    rate = learning_rate if callable(learning_rate) else lambda t: learning_rate

    state = adamw_state(params)
    params = tree_map(checks.as_array, params)
    if model is not None:
        fits(params, model, "train")
    losses: list[float] = []
    if checkpoint is not None and Path(checkpoint).exists():
        params, state, losses = _resume(checkpoint, params, state, seed, steps, model)

    with progress_bar(steps, state["step"], progress) as bar:
        for t in range(state["step"] + 1, steps + 1):
            rng = np.random.default_rng([seed, t])
            batch = batches(rng)
            loss, grads = value_and_grad_of_loss(params, batch, rng)
            _refuse_bad_gradients(t, float(loss), grads)
            grads, _ = clip_gradients(grads, max_norm)
            params, state = adamw(params, grads, state, rate(t), betas, eps, weight_decay, decay)
            losses.append(float(loss))
            if t % every == 0 or t == steps:
                _refuse_bad_parameters(t, params)
                if checkpoint is not None:
                    save(checkpoint, _contents(params, state, np.array(losses), seed), model)
            if bar is not None:
                bar.set_postfix(loss=f"{float(loss):.3f}", refresh=False)
                bar.update()
    return params, losses


def _function(name: str, f: Any, of: str) -> None:
    if not callable(f):
        raise ValueError(f"train: {name} must be a function of {of}; got {type(f).__name__}")


def _refuse_bad_gradients(t: int, loss: float, grads: Tree) -> None:
    bad = not_finite(grads)
    if bad or not math.isfinite(loss):
        where = f"in the gradients of {_some(bad)}" if bad else "in none of the gradients"
        raise ValueError(
            f"train: loss and gradients must be finite; got at step {t} the loss {loss:g}, and nan "
            f"or inf {where}. A lower learning rate or max_norm may help"
        )


def _refuse_bad_parameters(t: int, params: Tree) -> None:
    """What the last step broke would show at the next one; but that may come after a checkpoint."""
    if bad := not_finite(params):
        raise ValueError(
            f"train: parameters must stay finite; got after step {t} nan or inf in {_some(bad)}. "
            "A lower learning rate may help"
        )


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return ", ".join(repr(path) for path in paths[:3]) + more


def _contents(params: Tree, state: Tree, losses: np.ndarray | None, seed: int) -> Tree:
    """What a checkpoint holds."""
    return {"params": params, "optimiser": state, "losses": losses, "seed": seed}


def _resume(
    checkpoint: str | os.PathLike[str],
    params: Tree,
    state: Tree,
    seed: int,
    steps: int,
    model: Any,
) -> tuple[Tree, Tree, list[float]]:
    """Read the checkpoint, if it belongs to this training."""
    saved = load(checkpoint, like=_contents(params, state, None, seed), model=model)
    step = saved["optimiser"]["step"]
    if saved["seed"] != seed or step > steps:
        raise ValueError(
            f"train: {os.fspath(checkpoint)} must be of this training, with seed {seed} and at "
            f"most {steps} steps; got seed {saved['seed']} and step {step}. Name another file"
        )
    return saved["params"], saved["optimiser"], saved["losses"].tolist()


def progress_bar(steps: int, done: int, progress: bool) -> contextlib.AbstractContextManager[Any]:
    """Give a bar by tqdm, or nothing where nobody would see it."""
    if progress and sys.stderr is not None and sys.stderr.isatty():
        with contextlib.suppress(ImportError):
            from tqdm import tqdm

            return tqdm(total=steps, initial=done, unit="step")
    return contextlib.nullcontext()
