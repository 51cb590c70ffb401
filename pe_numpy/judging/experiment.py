r"""One experiment of "train short, test long": a configuration goes in, a result comes out.

Source: Press et al. 2022, "Train short, test long" (arXiv:2108.12409), section 2: train on short
sequences, test on longer ones. Bases, buckets, clips and slopes are fitted to sequences of 32
tokens by this book; a number in an encoding's name is the published one in place of the fitted.

Axes: B sequences, L tokens, V vocabulary, K width of one head.
Symbols: L0 is the trained length, L the tested one, s the factor by which RoPE is stretched.
Convention: a result is a function of only its configuration (to the bit, on the same machine and
libraries). At every L a model has the same tokens to predict, the last L0/2 of the same windows
that no training draws; so a loss that rises with L comes from the longer context, from nothing else
(for the needle, which may stand anywhere, the windows of each L are drawn again).
Differs from the paper: the models are tiny, and windows don't slide along one text.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import itertools
import json
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from pe_numpy import checks
from pe_numpy.absolute.positions import random_positions
from pe_numpy.judging import tasks
from pe_numpy.judging.hybrids import GatedDelta, GatedLinear
from pe_numpy.relative.alibi import alibi_slopes
from pe_numpy.rotary.rope import rope_frequencies
from pe_numpy.rotary.scaling import dynamic_ntk_scaling, linear_scaling, ntk_scaling, yarn_scaling
from pe_numpy.training.autodiff import value_and_grad
from pe_numpy.training.loop import train
from pe_numpy.training.loss import cross_entropy
from pe_numpy.training.optimiser import cosine_schedule, tree_map
from pe_numpy.transformer import encodings
from pe_numpy.transformer.init import Sizes, init_params
from pe_numpy.transformer.length import log_n_scale
from pe_numpy.transformer.masks import Causal, Window
from pe_numpy.transformer.model import Model, decode, encode

MULTIPLES = (1, 2, 4, 8)  # L / L0
TUNED_AT = 4  # L / L0 of a fine-tuning
CURVE_TESTS = {"needle": 256}  # windows at each point of a learning curve; 64 elsewhere
BASES = {"rope": 500.0, "rope_10000": 10000.0}
SCALINGS = ("direct", "linear", "ntk", "dynamic_ntk", "yarn")
PLACES: dict[str, Callable[[Configuration], encodings.Encoding]] = {  # RoPE's, at test time alone
    "rerope": lambda c: encodings.ReRope(c.length // 2, base=BASES[c.encoding]),
    "self_extend": lambda c: encodings.SelfExtend(
        c.length // 2, 2 * MULTIPLES[-1], base=BASES[c.encoding]
    ),
    "streaming": lambda c: encodings.Streaming(c.length - 4, base=BASES[c.encoding]),
}
# What has a number to be fitted is fitted to L0 = 32; a number in the name is the published one.
ENCODINGS: dict[str, Callable[[Configuration], Any]] = {
    "none": lambda c: encodings.Encoding(),
    "sinusoidal": lambda c: encodings.Sinusoidal(500.0),
    "sinusoidal_10000": lambda c: encodings.Sinusoidal(),
    "learned": lambda c: encodings.Learned(MULTIPLES[-1] * c.length),
    "shaw": lambda c: encodings.Shaw(clip=16),
    "transformer_xl": lambda c: encodings.TransformerXL(500.0),
    "transformer_xl_10000": lambda c: encodings.TransformerXL(),
    "t5": lambda c: encodings.T5(12, max_distance=16),
    "t5_128": lambda c: encodings.T5(),
    "tupe": lambda c: encodings.Tupe(12, max_distance=16, length=MULTIPLES[-1] * c.length),
    "tupe_128": lambda c: encodings.Tupe(length=MULTIPLES[-1] * c.length),
    "deberta": lambda c: encodings.Deberta(clip=16),
    "deberta_512": lambda c: encodings.Deberta(clip=512),
    "alibi": lambda c: encodings.Alibi(tuple(4 * alibi_slopes(c.n_heads))),
    "alibi_256": lambda c: encodings.Alibi(),
    **dict.fromkeys(BASES, lambda c: encodings.Rope(BASES[c.encoding], scaling=_scaling(c))),
    "kerple": lambda c: encodings.Kerple(),
    "sandwich": lambda c: encodings.Sandwich(base=500.0),
    "sandwich_10000": lambda c: encodings.Sandwich(),
    "fire": lambda c: encodings.Fire(threshold=c.length),
    "fire_512": lambda c: encodings.Fire(),
    "fox": lambda c: encodings.Forgetting(),
    "cope": lambda c: encodings.Cope(16),
    "cope_64": lambda c: encodings.Cope(),
    "xpos": lambda c: encodings.XPos(500.0, scale_base=c.length / 2),
    "xpos_10000": lambda c: encodings.XPos(),
    "rope_half": lambda c: encodings.Rope(scaling=lambda K, _: rope_frequencies(K // 2, 500.0)),
    "rope_nope": lambda c: (encodings.Rope(500.0), encodings.Encoding()),
    "sinusoidal_random": lambda c: _RandomPlaces(500.0, reach=MULTIPLES[-1] * c.length),
    "gated_linear": lambda c: GatedLinear(),
    "gated_linear_nope": lambda c: (GatedLinear(), encodings.Encoding()),
    "gated_delta_nope": lambda c: (GatedDelta(), encodings.Encoding()),
}
_SENTENCE = {"length": 3, "d_model": 16, "n_heads": 2, "n_layers": 1, "steps": 300}
TASKS: dict[str, dict[str, Any]] = {  # what differs from the sizes of a `Configuration`
    "markov": {},
    "text": {"steps": 500},
    "offset": {"n_layers": 1, "steps": 300},
    "needle": {
        **{"n_heads": 2, "n_layers": 1, "batch": 64, "steps": 600, "tests": 512},
        "learning_rate": 8e-3,
    },
    "order_mean": _SENTENCE,  # an encoder, read at the mean of its outputs
    "order_first": _SENTENCE,  # an encoder, read at a token CLS in front
    "order_causal": _SENTENCE,  # a decoder, read at its last token
}


@dataclass(frozen=True)
class Configuration:
    """All that a result depends on, except for the versions of the libraries.

    Parameters
    ----------
    task, encoding, scaling : str
        Keys of `TASKS` and `ENCODINGS`, and one of `SCALINGS` or `PLACES`: how RoPE is stretched at
        test time, or at which places it turns.
    factor : float, optional
        s of linear, NTK and YaRN scaling; by default L / L0, again for every L.
    tuning : int
        Steps of fine-tuning at 4 L0 with the scaling on, 0 for none.
    log_n : bool
        Whether queries are multiplied by `log_n_scale` at test time.
    seed : int
        Of the parameters and the batches.
    length, d_model, n_heads, n_layers, batch, steps, learning_rate, tests : numbers
        L0, D, H, layers, B, steps of training, peak rate, and number of windows of a test.
    curve : int
        Points of the learning curve: after the last step, half as many, a quarter and so on.

    Raises
    ------
    ValueError
        If a choice has nothing to act on: scaling without RoPE, a factor where there is none, other
        places with tuning or log n, anything beyond the three words of a sentence.

    Notes
    -----
    Source: this book. `recipe` fills in the sizes that learn a task in seconds.

    Examples
    --------
    >>> Configuration("text", "rope", "yarn", factor=8, seed=1).length
    32
    """

    task: str
    encoding: str = "none"
    scaling: str = "direct"
    factor: float | None = None
    tuning: int = 0
    log_n: bool = False
    seed: int = 0
    length: int = 32
    d_model: int = 32
    n_heads: int = 4
    n_layers: int = 2
    batch: int = 32
    steps: int = 400
    learning_rate: float = 5e-3
    tests: int = 256
    curve: int = 0

    def __post_init__(self) -> None:
        readings = (*SCALINGS, *PLACES)
        for key, known in (("task", TASKS), ("encoding", ENCODINGS), ("scaling", readings)):
            _refuse_unknown(key, getattr(self, key), known)
        least = {"length": 2, "seed": 0, "tuning": 0, "curve": 0}
        for key in (*least, "d_model", "n_heads", "n_layers", "batch", "steps", "tests"):
            n = checks.integer("Configuration", key, getattr(self, key), least.get(key, 1))
            self._keep(key, n)
        for key in ("learning_rate", "factor"):
            if (value := getattr(self, key)) is not None:
                self._keep(key, checks.positive("Configuration", key, value))
        self._keep("log_n", bool(self.log_n))
        if self.scaling != "direct" and self.encoding not in BASES:
            raise ValueError(
                f"Configuration: scaling must be 'direct' without RoPE; got {self.scaling!r} for "
                f"{self.encoding!r}"
            )
        if self.factor is not None and self.scaling not in ("linear", "ntk", "yarn"):
            raise ValueError(
                f"Configuration: factor must be None for {self.scaling!r}; got {self.factor:g}"
            )
        if self.scaling in PLACES and (self.tuning or self.log_n or self.length < 5):
            raise ValueError(
                f"Configuration: {self.scaling!r} must have length >= 5, and neither tuning nor "
                f"log_n; got length {self.length}, tuning {self.tuning}, log_n {self.log_n}"
            )
        beyond = self.scaling != "direct" or self.tuning or self.log_n
        if self.task.startswith("order") and (beyond or self.length != 3):
            raise ValueError(
                f"Configuration: {self.task!r} must have length = 3, and nothing that acts beyond "
                f"it; got length {self.length}, scaling {self.scaling!r}, tuning {self.tuning}, "
                f"log_n {self.log_n}. `recipe` knows its sizes"
            )

    def _keep(self, key: str, value: Any) -> None:
        object.__setattr__(self, key, value)  # a plain number of Python: it is written to files

    def trained_as(self) -> Configuration:
        """All configurations whose training, before any fine-tuning, is the same, as one."""
        return replace(self, scaling="direct", factor=None, tuning=0, log_n=False, tests=1)

    def name(self) -> str:
        """Name of the file that holds the result: some words to read, and a digest of the whole."""
        words = [
            self.task,
            self.encoding,
            self.scaling,
            f"by-{self.factor:g}" if self.factor else "",
            f"tuned-{self.tuning}" if self.tuning else "",
            "log-n" if self.log_n else "",
            f"seed-{self.seed}",
        ]
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()
        return f"{'_'.join(filter(None, words))}_{digest[:12]}.json"


def _refuse_unknown(key: str, value: Any, known: Iterable[str]) -> None:
    if value not in tuple(known):
        nearest = difflib.get_close_matches(str(value), known, n=1, cutoff=0)[0]
        raise ValueError(
            f"Configuration: {key} must be one of {', '.join(known)}; got {value!r}, the nearest "
            f"is {nearest!r}"
        )


@dataclass(frozen=True)
class Result:
    """What a configuration gave: mean loss in nats and share of right answers at each length L.

    `seconds` is processor time, that of a training counted with the first test of its model. A row
    of `curve` is a step, and the losses and shares after it, on fewer windows than the test's.
    """

    configuration: Configuration
    lengths: tuple[int, ...]
    losses: tuple[float, ...]
    accuracies: tuple[float, ...]
    seconds: float
    versions: str
    curve: tuple[tuple[float, ...], ...] = ()


def recipe(task: str, encoding: str = "none", *, budget: int = 1, **choices: Any) -> Configuration:
    """Configure a task with sizes that learn it within seconds.

    Parameters
    ----------
    task, encoding : str
        As in `Configuration`.
    budget : int
        How many times as many steps.
    **choices
        Anything else that it takes.

    Returns
    -------
    Configuration.

    Notes
    -----
    Source: this book.

    Examples
    --------
    >>> recipe("needle", "alibi", log_n=True).steps, recipe("needle", budget=4).steps
    (600, 2400)
    """
    sizes = {"steps": Configuration.steps, **TASKS.get(str(task), {})}
    sizes["steps"] *= checks.integer("recipe", "budget", budget)
    return Configuration(task, encoding, **{**sizes, **choices})


# ---- one configuration --------------------------------------------------------------------------


@functools.cache
def _language() -> dict[str, Any]:
    return tasks.markov_language()


@functools.cache
def _corpus() -> dict[str, Any]:
    return tasks.text_corpus()


def draw(
    task: str, rng: np.random.Generator, size: int, length: int, held_out: bool = False
) -> tasks.Batch:
    """Draw a batch of a task: {"inputs": (B, L), "targets": (B, L), or (B, 1) for word order}.

    Parameters
    ----------
    task : str
        A key of `TASKS`.
    rng : numpy.random.Generator
        Where it comes from.
    size, length : int
        B and L.
    held_out : bool
        For testing, or for training.

    Returns
    -------
    Dictionary of integer arrays, as in `pe_numpy.judging.tasks`.

    Notes
    -----
    Source: this book.

    Examples
    --------
    >>> draw("needle", np.random.default_rng(2), 1, 5)["inputs"].tolist()
    [[3, 56, 10, 52, 70]]
    """
    if task == "markov":
        return tasks.markov_batch(rng, size, length, _language(), held_out)
    if task == "text":
        return tasks.text_batch(rng, size, length, _corpus(), held_out)
    if task == "offset":
        return tasks.offset_batch(rng, size, length, held_out=held_out)
    if task == "needle":
        return tasks.needle_batch(rng, size, length, held_out=held_out)
    batch = tasks.word_order_batch(rng, size, cls=task == "order_first", held_out=held_out)
    return {**batch, "targets": batch["targets"][:, None]}


def model(c: Configuration) -> Model:
    """Give the Transformer of a configuration, as it is when it is tested.

    Examples
    --------
    >>> model(recipe("offset", "shaw")).encoding
    Shaw(clip=16)
    """
    encoding_of: Callable[[Configuration], Any] = PLACES.get(c.scaling, ENCODINGS[c.encoding])
    encoding = encoding_of(c)
    if c.log_n:
        encoding = _sharpened(encoding, c.length)
    streaming = c.scaling == "streaming"
    mask = Window(encoding.window, encoding.sinks) if streaming else Causal()
    return Model(c.n_heads, encoding, mask)


def sizes(c: Configuration) -> Sizes:
    """Give the sizes of the Transformer of a configuration.

    Examples
    --------
    >>> sizes(recipe("offset")).vocabulary
    16
    """
    vocabulary = {"markov": 16, "text": len(_corpus()["alphabet"]), "offset": 16, "needle": 72}
    V, D = vocabulary.get(c.task, tasks.CLS + 1), c.d_model
    encoder = c.n_layers if c.task in ("order_mean", "order_first") else 0
    return Sizes(V, D, 4 * D, c.n_layers, encoder)


def _scaling(c: Configuration) -> Callable[[int, int], Any] | None:
    """Frequencies from K and L, for `encodings.Rope`."""
    base = BASES[c.encoding]

    def scaled(K: int, length: int) -> Any:
        s = c.factor or max(1.0, length / c.length)
        if c.scaling == "linear":
            return linear_scaling(rope_frequencies(K, base), s)
        if c.scaling == "ntk":
            return ntk_scaling(K, s, base)
        if c.scaling == "yarn":
            return yarn_scaling(K, s, c.length, base)
        return dynamic_ntk_scaling(K, length, c.length, base=base)

    return None if c.scaling == "direct" else scaled


@dataclass(frozen=True)
class _RandomPlaces(encodings.Sinusoidal):
    """Randomized positions (Ruoss et al. 2023): a new draw for every batch, in tests, too."""

    reach: int = 512
    rng: np.random.Generator = field(
        default_factory=lambda: np.random.default_rng(0), compare=False
    )

    def embed(self, params, x, positions):  # type: ignore[no-untyped-def]
        places = random_positions(self.rng, x.shape[1], self.reach)
        return super().embed(params, x, places)  # type: ignore[no-untyped-call]


def _sharpened(encoding: Any, trained_length: int) -> Any:
    """The same encoding with queries times max(1, log n / log L0), where n keys are visible."""
    if isinstance(encoding, tuple):
        return tuple(_sharpened(member, trained_length) for member in encoding)

    class Sharpened(type(encoding)):  # type: ignore[misc]
        def turn(self, params, q, k, context):  # type: ignore[no-untyped-def]
            q, k = super().turn(params, q, k, context)
            factor = log_n_scale(context.q_positions + 1, trained_length)[:, None]  # (L, 1)
            return q * factor.astype(q.dtype), k

    return Sharpened(*(getattr(encoding, own.name) for own in fields(encoding)))


def answer(params: dict[str, Any], model: Model, task: str, inputs: np.ndarray) -> np.ndarray:
    """Logits (B, L, V) of a batch; for word order (B, 1, V), read where the task says.

    Examples
    --------
    >>> c = recipe("order_first")
    >>> answer(fit(replace(c, steps=1)), model(c), c.task, np.array([[12, 0, 8, 1]])).shape
    (1, 1, 13)
    """
    if task == "order_mean":
        return encode(params, model, inputs).mean(axis=1, keepdims=True) @ params["output"]
    if task == "order_first":
        return encode(params, model, inputs)[:, :1] @ params["output"]
    logits = decode(params, model, inputs)
    return logits[:, -1:] if task == "order_causal" else logits


def fit(c: Configuration) -> dict[str, Any]:
    """Train the model of a configuration, and fine-tune it if it says so.

    Parameters
    ----------
    c : Configuration
        What concerns only the test (log n, and a scaling with which nothing is tuned) changes
        nothing here.

    Returns
    -------
    Parameters, shared by all who ask for them: their arrays are read-only.

    Raises
    ------
    ValueError
        If a loss becomes nan or inf.

    Notes
    -----
    Source: this book: AdamW, clipped gradients, a warm-up and half a cosine. A fine-tuning draws
    sequences of 4 L0 tokens, a quarter as many, at 0.3 of the rate, with the scaling on. The last
    few results are kept in memory, since many tests share one training.

    Examples
    --------
    >>> params = fit(recipe("offset", "shaw", steps=2))
    >>> params["decoder"]["layers"]["0"]["encoding"]["key_table"].shape
    (33, 8)
    """
    return _fit(replace(c, log_n=False) if c.tuning else c.trained_as())[0]


@functools.lru_cache(maxsize=8)
def _fit(c: Configuration) -> tuple[dict[str, Any], tuple[tuple[float, ...], ...]]:
    """Parameters, and the learning curve."""
    own, steps, rate, size, length = model(c), c.steps, c.learning_rate, c.batch, c.length
    if c.tuning:
        start, _ = _fit(c.trained_as())
        steps, rate = c.tuning, 0.3 * rate
        size, length = max(1, size // TUNED_AT), TUNED_AT * length
    else:
        start = init_params(sizes(c), own, np.random.default_rng([c.seed, 0]))

    def loss(params: Any, batch: tasks.Batch, rng: np.random.Generator) -> Any:
        logits = answer(params, own, c.task, batch["inputs"])
        return cross_entropy(logits, batch["targets"], ignore=tasks.IGNORE)

    gradients, halves = value_and_grad(loss), [steps >> n for n in range(c.curve)]
    at = replace(c, tests=CURVE_TESTS.get(c.task, 64))
    seen, curve, windows = itertools.count(), [], _windows(at) if halves and not c.tuning else []

    def note(step: int, params: dict[str, Any]) -> None:
        if windows and step and step in halves:
            here = model(c)  # random positions of its own
            measured = [_test(at, params, here, batch) for batch in windows]
            curve.append((step, *(x for both in zip(*measured, strict=True) for x in both)))

    def step(params: Any, batch: tasks.Batch, rng: np.random.Generator) -> Any:
        note(next(seen), params)
        return gradients(params, batch, rng)

    params, _ = train(
        start,
        step,
        lambda rng: draw(c.task, rng, size, length),
        steps,
        lambda t: cosine_schedule(t, steps, rate),
        seed=c.seed,
        progress=False,
    )
    note(steps, params)
    tree_map(lambda array: array.setflags(write=False), params)
    return params, tuple(curve)


def measure(c: Configuration) -> Result:
    """Train a model and test it at 1, 2, 4 and 8 times its trained length.

    Parameters
    ----------
    c : Configuration
        What to train and how to test it.

    Returns
    -------
    Result, of one length for word order.

    Notes
    -----
    Source: Press et al. 2022, section 2.

    Examples
    --------
    >>> result = measure(recipe("offset", "alibi", length=8, steps=2, tests=2))
    >>> result.lengths, len(result.losses)
    ((8, 16, 32, 64), 4)
    """
    start = time.process_time()
    params, own = fit(c), model(c)
    plain = replace(c, tests=1) == c.trained_as()
    measured = [_test(c, params, own, batch) for batch in _windows(c)]
    return Result(
        c,
        tuple(c.length * n for n in MULTIPLES[: len(measured)]),
        tuple(loss for loss, _ in measured),
        tuple(accuracy for _, accuracy in measured),
        time.process_time() - start,
        f"Python {platform.python_version()}, numpy {np.__version__}",
        _fit(c.trained_as())[1] if plain else (),
    )


def _windows(c: Configuration) -> list[tasks.Batch]:
    """Draw the windows of the test at each length, the same for every encoding and seed."""

    def held_out(length: int) -> tasks.Batch:
        return draw(c.task, np.random.default_rng(0), c.tests, length, held_out=True)

    if c.task.startswith("order"):
        return [held_out(c.length)]
    lengths = [c.length * n for n in MULTIPLES]
    if c.task == "needle":  # a cut could lose it
        return [held_out(length) for length in lengths]
    longest = held_out(lengths[-1])
    return [{key: rows[:, -length:] for key, rows in longest.items()} for length in lengths]


def _test(
    c: Configuration, params: dict[str, Any], own: Model, batch: tasks.Batch
) -> tuple[float, float]:
    """Mean loss and share of right answers on the last L0/2 tokens, a few windows at a time."""
    few, last = max(1, 8192 // batch["inputs"].shape[1]), -(c.length // 2)
    logits = np.concatenate([
        answer(params, own, c.task, batch["inputs"][n : n + few])[:, last:]
        for n in range(0, c.tests, few)
    ])  # fmt: skip
    targets = batch["targets"][:, last:]
    right = (logits.argmax(axis=-1) == targets)[targets != tasks.IGNORE]
    return float(cross_entropy(logits, targets, ignore=tasks.IGNORE)), float(right.mean())
