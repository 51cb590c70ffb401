"""The training loop: loop oracle, going on after a cut, what is not finite, progress, bad input."""

import math
import os
import signal
import subprocess
import sys
import time
import types
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import Model, Sizes, init_params
from pe_numpy.training.checkpoint import load, save
from pe_numpy.training.loop import train
from pe_numpy.training.optimiser import (
    adamw,
    adamw_state,
    clip_gradients,
    cosine_schedule,
    tree_map,
    tree_paths,
)
from pe_numpy.transformer.encodings import Alibi, Rope
from pe_numpy.transformer.masks import Window

TRUE = np.array([[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25]], np.float32)


def start():
    """Parameters of a linear model of two outputs."""
    rng = np.random.default_rng(5)
    W = rng.standard_normal((3, 2)).astype(np.float32)
    return {"linear": {"W": W, "b": np.zeros(2, np.float32)}, "encoding": {}}


def batches(rng):
    x = rng.standard_normal((8, 3)).astype(np.float32)
    return x, x @ TRUE


def value_and_grad(params, batch, rng, keep=0.9):
    """Mean squared error of a linear model with dropout on its input, and the gradients."""
    x, y = batch
    x = x * (rng.random(x.shape) < keep).astype(np.float32)
    error = x @ params["linear"]["W"] + params["linear"]["b"] - y
    slope = error * np.float32(2 / error.size)
    grads = {"linear": {"W": x.T @ slope, "b": slope.sum(axis=0)}, "encoding": {}}
    return (error * error).mean(), grads


def schedule(t):
    return cosine_schedule(t, 10, 0.1)


def same(a, b):
    """Whether two trees have the same paths, dtypes and bits."""
    a, b = tree_paths(a), tree_paths(b)
    return list(a) == list(b) and all(
        (a[p].dtype, a[p].tobytes()) == (b[p].dtype, b[p].tobytes()) for p in a
    )


def stops_at(step, function, error):
    """The function, which raises an error in its call number `step`."""
    calls = []

    def stopping(*args):
        calls.append(args)
        if len(calls) == step:
            raise error
        return function(*args)

    return stopping


# ---- loop oracle --------------------------------------------------------------------------------


def test_training_equals_its_steps_written_out():
    params, state, losses = start(), adamw_state(start()), []
    for t in range(1, 11):
        rng = np.random.default_rng([3, t])
        batch = batches(rng)
        loss, grads = value_and_grad(params, batch, rng)
        losses.append(float(loss))
        grads, _ = clip_gradients(grads, 0.7)
        params, state = adamw(
            params, grads, state, cosine_schedule(t, 10, 0.1), (0.8, 0.9), 1e-6, 0.2
        )
    result, found = train(
        start(),
        value_and_grad,
        batches,
        10,
        schedule,
        seed=3,
        max_norm=0.7,
        weight_decay=0.2,
        betas=(0.8, 0.9),
        eps=1e-6,
    )
    assert same(result, params)
    assert found == losses


def train_by_loops(x, y, steps, eta, betas, eps, lam, max_norm):
    """Clip, then AdamW, for a line w x + b, one number at a time; w decays as a matrix would."""
    theta, m, v, losses = [0.5, -0.25], [0.0, 0.0], [0.0, 0.0], []
    for t in range(1, steps + 1):
        errors = [theta[0] * a + theta[1] - b for a, b in zip(x, y, strict=True)]
        losses.append(sum(e * e for e in errors))
        g = [sum(2 * e * a for e, a in zip(errors, x, strict=True)), sum(2 * e for e in errors)]
        norm = math.sqrt(g[0] ** 2 + g[1] ** 2)
        if norm > max_norm:
            g = [a * max_norm / norm for a in g]
        for n in range(2):
            m[n] = betas[0] * m[n] + (1 - betas[0]) * g[n]
            v[n] = betas[1] * v[n] + (1 - betas[1]) * g[n] ** 2
            m_hat, v_hat = m[n] / (1 - betas[0] ** t), v[n] / (1 - betas[1] ** t)
            decay = lam * theta[n] if n == 0 else 0
            theta[n] -= eta(t) * (m_hat / (math.sqrt(v_hat) + eps) + decay)
    return theta, losses


@pytest.mark.parametrize("max_norm", [0.7, 1e9])
@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_training_equals_clipping_and_adamw_number_by_number(max_norm, lam):
    x, y = np.array([1.0, -2.0, 0.5]), np.array([2.0, 1.0, -1.0])

    def line(params, batch, rng):
        error = params["w"][0, 0] * x + params["b"][0] - y
        return (error**2).sum(), {
            "w": np.array([[2 * error @ x]]),
            "b": np.array([2 * error.sum()]),
        }

    params, losses = train(
        {"w": np.array([[0.5]]), "b": np.array([-0.25])},
        line,
        lambda rng: None,
        25,
        lambda t: 0.1 / t,
        max_norm=max_norm,
        weight_decay=lam,
        betas=(0.8, 0.95),
        eps=1e-6,
    )
    theta, expected = train_by_loops(x, y, 25, lambda t: 0.1 / t, (0.8, 0.95), 1e-6, lam, max_norm)
    assert_allclose([params["w"][0, 0], params["b"][0]], theta, rtol=0, atol=1e-12)
    assert_allclose(losses, expected, rtol=1e-12)


def test_first_step_is_the_learning_rate_whatever_the_gradient():
    """By hand: m_hat = g and v_hat = g^2 at t = 1, so each number moves by eta against its sign."""
    for g in (1e-3, 1.0, 5e4):
        params, losses = train(
            {"x": np.array([2.0, 2.0])},
            lambda params, batch, rng, g=g: (g, {"x": np.array([g, -g])}),
            lambda rng: None,
            1,
            0.25,
            max_norm=1e9,
            eps=1e-12,
        )
        assert_allclose(params["x"], [1.75, 2.25], rtol=0, atol=1e-8)
        assert losses == [g]


def test_a_linear_model_learns_its_task():
    params, losses = train(start(), value_and_grad, batches, 1, 0.0)
    assert_array_equal(params["linear"]["W"], start()["linear"]["W"])

    def without_dropout(*arguments):
        return value_and_grad(*arguments, keep=1.0)

    def rate(t):
        return cosine_schedule(t, 600, 0.1)

    params, losses = train(start(), without_dropout, batches, 600, rate, weight_decay=0)
    assert_allclose(params["linear"]["W"], TRUE, rtol=0, atol=0.02)
    assert losses[-1] < 1e-3 < 1 < losses[0]


def test_a_number_is_a_constant_learning_rate():
    by_number, _ = train(start(), value_and_grad, batches, 5, 0.05)
    by_function, _ = train(start(), value_and_grad, batches, 5, lambda t: 0.05)
    assert same(by_number, by_function)


def test_what_decays_is_handed_on():
    seen = []

    def decay(path, p):
        seen.append(path)
        return False

    plain, _ = train(start(), value_and_grad, batches, 3, 0.1, weight_decay=0)
    chosen, _ = train(start(), value_and_grad, batches, 3, 0.1, weight_decay=9, decay=decay)
    assert same(plain, chosen)
    assert set(seen) == {"linear/W", "linear/b"}


def test_steps_draw_from_their_own_generators_and_the_loss_goes_on_with_that_of_its_batch():
    drawn = []

    def note(params, batch, rng):
        drawn.append((batch, rng.random()))
        return 0.0, {"x": np.zeros(1)}

    train({"x": np.zeros(1)}, note, lambda rng: rng.random(), 3, 0.1, seed=8)
    for t, (batch, dropout) in enumerate(drawn, start=1):
        rng = np.random.default_rng([8, t])
        assert (batch, dropout) == (rng.random(), rng.random())


def test_no_steps_give_the_parameters_back():
    params, losses = train(start(), value_and_grad, batches, 0, 0.1)
    assert same(params, start())
    assert losses == []


# ---- cut off, and going on ----------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("power cut")])
@pytest.mark.parametrize("where", ["batch", "loss"])
def test_a_training_cut_off_at_step_7_goes_on_to_the_same_bits(tmp_path, error, where):
    path = tmp_path / "run.npz"
    whole, all_losses = train(start(), value_and_grad, batches, 10, schedule)
    draw = stops_at(7, batches, error) if where == "batch" else batches
    loss = stops_at(7, value_and_grad, error) if where == "loss" else value_and_grad
    with pytest.raises(type(error)):
        train(start(), loss, draw, 10, schedule, checkpoint=path, every=3)
    assert load(path)["optimiser"]["step"] == 6
    again = stops_at(99, batches, error)
    params, losses = train(start(), value_and_grad, again, 10, schedule, checkpoint=path, every=3)
    assert same(params, whole)
    assert losses == all_losses
    assert len(again.__closure__[0].cell_contents) == 4  # steps 7 to 10


def test_a_cut_before_the_first_checkpoint_starts_anew(tmp_path):
    path = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        draw = stops_at(3, batches, KeyboardInterrupt())
        train(start(), value_and_grad, draw, 10, schedule, checkpoint=path, every=3)
    assert not path.exists()
    params, _ = train(start(), value_and_grad, batches, 10, schedule, checkpoint=path, every=3)
    assert same(params, train(start(), value_and_grad, batches, 10, schedule)[0])


def test_many_cuts_change_nothing(tmp_path):
    path = tmp_path / "run.npz"
    for _ in range(9):
        with pytest.raises(KeyboardInterrupt):
            draw = stops_at(2, batches, KeyboardInterrupt())
            train(start(), value_and_grad, draw, 10, schedule, checkpoint=path, every=1)
    params, losses = train(start(), value_and_grad, batches, 10, schedule, checkpoint=path)
    whole, all_losses = train(start(), value_and_grad, batches, 10, schedule)
    assert same(params, whole)
    assert losses == all_losses


def test_the_last_step_is_saved_and_a_finished_training_not_repeated(tmp_path):
    path = tmp_path / "run.npz"
    params, losses = train(start(), value_and_grad, batches, 7, 0.1, checkpoint=path, every=5)
    saved = load(path)
    assert list(saved) == ["params", "optimiser", "losses", "seed"]
    assert same(saved["params"], params)
    assert saved["optimiser"]["step"] == 7
    assert list(saved["optimiser"]) == ["m", "v", "step"]
    assert saved["losses"].tolist() == losses
    never = stops_at(1, batches, AssertionError("drawn again"))
    again, same_losses = train(start(), value_and_grad, never, 7, 0.1, checkpoint=path)
    assert same(again, params)
    assert same_losses == losses


def test_a_finished_training_may_be_made_longer(tmp_path):
    path = tmp_path / "run.npz"
    train(start(), value_and_grad, batches, 4, 0.1, checkpoint=path)
    longer, losses = train(start(), value_and_grad, batches, 9, 0.1, checkpoint=path)
    assert same(longer, train(start(), value_and_grad, batches, 9, 0.1)[0])
    assert len(losses) == 9


PROGRAM = """
import os, signal, sys
import numpy as np
from pe_numpy.training import checkpoint
from pe_numpy.training.loop import train

path, steps, killed_at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
write, writes = np.lib.format.write_array, []
def write_or_die(file, array, **settings):
    if array.shape == (300, 40):
        writes.append(array)
    if len(writes) == killed_at:
        os.kill(os.getpid(), signal.SIGKILL)
    write(file, array, **settings)
np.lib.format.write_array = write_or_die

def value_and_grad(params, batch, rng, keep=0.9):
    error = params["W"] - batch
    return (error**2).mean(), {"W": error}

train({"W": np.zeros((300, 40))}, value_and_grad, lambda rng: rng.random((300, 40)), steps, 0.1,
      checkpoint=path, every=1)
"""


def run_program(path, steps, killed_at=0):
    command = [sys.executable, "-P", "-c", PROGRAM, path, str(steps), str(killed_at)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_training_killed_inside_a_write_goes_on_to_the_same_bits(tmp_path):
    path, other = tmp_path / "run.npz", tmp_path / "whole.npz"
    killed = run_program(path, 5, killed_at=8)  # the second of three arrays of the third checkpoint
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert load(path)["optimiser"]["step"] == 2
    assert run_program(path, 5).returncode == 0
    assert run_program(other, 5).returncode == 0
    assert path.read_bytes() == other.read_bytes()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_training_killed_at_any_moment_leaves_a_whole_checkpoint(tmp_path):
    path = tmp_path / "run.npz"
    for wait in (0.0, 0.013, 0.029):
        command = [sys.executable, "-P", "-c", PROGRAM, path, "1000000", "0"]
        before = load(path)["optimiser"]["step"] if path.exists() else 0
        with subprocess.Popen(command, stderr=subprocess.PIPE) as run:
            limit = time.monotonic() + 60
            while not path.exists() or load(path)["optimiser"]["step"] == before:
                assert run.poll() is None and time.monotonic() < limit, run.stderr.read()
                time.sleep(0.005)
            time.sleep(wait)
            run.kill()
        saved = load(path)
        assert saved["optimiser"]["step"] == len(saved["losses"]) > before


# ---- what is not finite -------------------------------------------------------------------------


def breaks_at(step, loss=None, path=None, value=math.nan):
    """The gradients of a linear model, broken in one call."""
    calls = []

    def breaking(params, batch, rng):
        calls.append(1)
        found, grads = value_and_grad(params, batch, rng)
        if len(calls) == step:
            found = found if loss is None else loss
            if path is not None:
                grads["linear"][path].reshape(-1)[1] = value
        return found, grads

    return breaking


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            breaks_at(7, loss=math.nan),
            "got at step 7 the loss nan, and nan or inf in none of the gradients",
        ),
        (
            breaks_at(7, loss=math.inf),
            "train: loss and gradients must be finite; got at step 7 .* inf",
        ),
        (
            breaks_at(7, path="W"),
            "at step 7 the loss .*, and nan or inf in the gradients of 'linear/W'",
        ),
        (breaks_at(7, path="b", value=-math.inf), "at step 7 .* in the gradients of 'linear/b'"),
    ],
)
def test_nan_stops_the_training_with_step_and_path_and_keeps_the_last_good_checkpoint(
    tmp_path, broken, message
):
    path = tmp_path / "run.npz"
    with pytest.raises(ValueError, match=message):
        train(start(), broken, batches, 10, schedule, checkpoint=path, every=2)
    assert load(path)["optimiser"]["step"] == 6
    params, _ = train(start(), value_and_grad, batches, 10, schedule, checkpoint=path)
    assert same(params, train(start(), value_and_grad, batches, 10, schedule)[0])


def test_many_broken_gradients_are_counted():
    params = {name: np.zeros(1) for name in "abcde"}
    grads = {name: np.array([np.nan]) for name in "abcde"}
    with pytest.raises(ValueError, match="in the gradients of 'a', 'b', 'c' and 2 more"):
        train(params, lambda *args: (0.0, grads), batches, 1, 0.1)


@pytest.mark.parametrize("every", [2, 100])
def test_parameters_that_a_step_breaks_are_not_saved(tmp_path, every):
    path = tmp_path / "run.npz"

    def rate(t):
        return 0.1 if t < 6 else 1e39

    with (
        np.errstate(all="ignore"),
        pytest.raises(
            ValueError, match="train: parameters must stay finite; got after step 6 nan or"
        ),
    ):
        train(start(), value_and_grad, batches, 6, rate, checkpoint=path, every=every)
    if every == 2:
        assert load(path)["optimiser"]["step"] == 4
    else:
        assert not path.exists()


# ---- progress -----------------------------------------------------------------------------------


class Terminal:
    """What sys.stderr is when somebody watches."""

    def isatty(self):
        return True


class Bar:
    """What tqdm offers, noting its calls."""

    def __init__(self, settings):
        self.settings, self.shown, self.count, self.closed = settings, [], 0, False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.closed = True

    def set_postfix(self, refresh, **values):
        self.shown.append(values)

    def update(self):
        self.count += 1


@pytest.fixture
def bars(monkeypatch):
    """The bars that are made; a stand-in for tqdm makes them."""
    made = []

    def tqdm(**settings):
        made.append(Bar(settings))
        return made[-1]

    monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=tqdm))
    return made


def test_nothing_is_shown_where_there_is_no_terminal(capfd, bars):
    train(start(), value_and_grad, batches, 3, 0.1)
    assert capfd.readouterr() == ("", "")
    assert bars == []


def test_a_terminal_gets_a_bar_that_counts_steps_and_tells_the_loss(monkeypatch, bars):
    monkeypatch.setattr(sys, "stderr", Terminal())
    _, losses = train(start(), value_and_grad, batches, 3, 0.1)
    (bar,) = bars
    assert bar.settings == {"total": 3, "initial": 0, "unit": "step"}
    assert (bar.count, bar.closed) == (3, True)
    assert bar.shown == [{"loss": f"{loss:.3f}"} for loss in losses]


def test_the_bar_goes_on_where_the_checkpoint_ends_and_closes_after_an_error(
    monkeypatch, bars, tmp_path
):
    monkeypatch.setattr(sys, "stderr", Terminal())
    path = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        draw = stops_at(4, batches, KeyboardInterrupt())
        train(start(), value_and_grad, draw, 5, 0.1, checkpoint=path, every=2)
    train(start(), value_and_grad, batches, 5, 0.1, checkpoint=path)
    assert [bar.settings["initial"] for bar in bars] == [0, 2]
    assert [bar.count for bar in bars] == [3, 3]
    assert all(bar.closed for bar in bars)


@pytest.mark.parametrize("stderr", [Terminal(), None])
def test_nothing_is_shown_without_tqdm_or_stderr_or_on_request(monkeypatch, bars, stderr):
    monkeypatch.setattr(sys, "stderr", stderr)
    _, losses = train(start(), value_and_grad, batches, 3, 0.1, progress=False)
    monkeypatch.setitem(sys.modules, "tqdm", None)  # as if it were not installed
    assert train(start(), value_and_grad, batches, 3, 0.1)[1] == losses
    assert bars == []


# ---- dtype, purity, bad input -------------------------------------------------------------------


def test_float32_stays_float32_and_the_start_is_not_changed(tmp_path):
    params = start()
    params["linear"]["W"].flags.writeable = False
    result, losses = train(
        params, value_and_grad, batches, 4, np.float64(0.1), checkpoint=tmp_path / "run.npz"
    )
    assert {p.dtype for p in tree_paths(result).values()} == {np.dtype(np.float32)}
    assert same(params, start())
    assert {type(loss) for loss in losses} == {float}
    saved = load(tmp_path / "run.npz")
    assert {p.dtype for p in tree_paths(saved["optimiser"]["m"]).values()} == {np.dtype(np.float32)}


def test_lists_may_stand_for_arrays(tmp_path):
    def bowl(params, batch, rng):
        return np.square(params["x"]).sum(), {"x": 2 * params["x"]}

    path = tmp_path / "run.npz"
    once, _ = train({"x": [1.0, 2.0]}, bowl, batches, 4, 0.1)
    train({"x": [1.0, 2.0]}, bowl, batches, 2, 0.1, checkpoint=path)
    twice, _ = train({"x": [1.0, 2.0]}, bowl, batches, 4, 0.1, checkpoint=path)
    assert same(once, twice)


def go(params=None, f=value_and_grad, draw=batches, steps=3, rate=0.1, **settings):
    return train(start() if params is None else params, f, draw, steps, rate, **settings)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: go(steps=-1), "train: steps must be at least 0; got -1"),
        (lambda: go(every=0), "train: every must be at least 1; got 0"),
        (lambda: go(seed=-1), "train: seed must be at least 0; got -1"),
        (lambda: go(seed=1.5), "train: seed must be a whole number; got 1.5"),
        (lambda: go(f=3), r"value_and_grad_of_loss must be a function of \(params, batch, rng\)"),
        (lambda: go(draw=[1, 2]), "train: batches must be a function of a generator; got list"),
        (lambda: go(rate=-1), "adamw: learning_rate must be at least 0; got -1"),
        (lambda: go(rate=lambda t: math.nan), "adamw: learning_rate must be finite; got nan"),
        (lambda: go(max_norm=0), "clip_gradients: max_norm must be above 0"),
        (
            lambda: go(params={"W": [[1.0], [2.0, 3.0]]}),
            "adamw_state: the parameter 'W' must have rows of one length",
        ),
        (lambda: go(params={"n": np.arange(3)}), "adamw_state: the parameter 'n' must be floating"),
        (lambda: go(f=lambda *args: (0.0, {})), "must have the same keys; got 'linear' in params"),
    ],
)
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_checkpoint_of_another_training_is_refused_and_kept(tmp_path):
    path = tmp_path / "run.npz"
    go(steps=4, checkpoint=path)
    before = path.read_bytes()
    other = start()
    other["linear"]["W"] = other["linear"]["W"].astype(np.float64)
    for settings, message in [
        (
            {"seed": 1, "steps": 4},
            r"train: .*run\.npz must be of this .* seed 1 and at most 4 .*; got seed 0 and step 4",
        ),
        ({"steps": 2}, "with seed 0 and at most 2 steps; got seed 0 and step 4. Name another file"),
        (
            {"params": other, "steps": 4},
            "'params/linear/W' is an array .* float32, expected .* float64",
        ),
        ({"params": {"x": np.ones(1)}}, "'params/x' is missing"),
    ]:
        with pytest.raises(ValueError, match=message):
            go(checkpoint=path, **settings)
    assert path.read_bytes() == before
    path.write_bytes(before[:-9])
    with pytest.raises(ValueError, match=r"load: .*run\.npz is damaged"):
        go(checkpoint=path)
    save(path, {"something": 1})
    with pytest.raises(ValueError, match=r"run\.npz is not what is expected"):
        go(checkpoint=path)
    assert os.listdir(tmp_path) == ["run.npz"]


# ---- the model ----------------------------------------------------------------------------------


def go_with(model, steps, path, told, of=None):
    """Train the parameters of a model by a loss that pulls all of them to zero."""
    params = init_params(Sizes(7, 8, 12, 1), of or model, np.random.default_rng(0))
    tell = {"model": told} if told else {}

    def pull(params, batch, rng):
        return 1.0, tree_map(np.array, params)

    return train(params, pull, lambda rng: None, steps, 0.1, checkpoint=path, **tell)


MODEL = Model(2, Rope(), scale=2.0)
DIFFERS = {
    "n_heads": 4,
    "encoding": Rope(base=500),
    "mask": Window(3),
    "norm": "post",
    "activation": "gelu",
    "cross_heads": 2,
    "scale": 3.0,
    "dropout": 0.1,
    "eps": 1e-3,
}


@pytest.mark.parametrize("name", [field.name for field in fields(Model)])
def test_a_training_goes_on_with_its_own_model_alone(tmp_path, name):
    path, other = tmp_path / "run.npz", replace(MODEL, **{name: DIFFERS[name]})
    whole, _ = go_with(MODEL, 4, None, MODEL)
    go_with(MODEL, 2, path, MODEL)
    before = path.read_bytes()
    message = (
        "norm must be pre" if name == "norm" else rf"run\.npz must be .* .model\.{name}.* in the"
    )
    with pytest.raises(ValueError, match=message):
        go_with(MODEL, 4, path, other)
    assert path.read_bytes() == before
    assert same(go_with(MODEL, 4, path, replace(MODEL))[0], whole)


def test_a_model_is_told_in_every_checkpoint_that_is_made_with_it_and_in_no_other(tmp_path):
    path = tmp_path / "run.npz"

    def told():
        with zipfile.ZipFile(path) as archive:
            return "model.txt" in archive.namelist()

    go_with(MODEL, 1, path, None)
    assert not told()
    go_with(MODEL, 2, path, replace(MODEL, eps=1e-3))  # it has nothing to compare with
    assert told()
    go_with(MODEL, 3, path, None)  # and here nobody asks
    assert not told()
    assert load(path)["optimiser"]["step"] == 3


def test_a_model_that_contradicts_the_parameters_is_refused_before_the_first_step(tmp_path):
    path = tmp_path / "run.npz"
    for told, message in (
        (Model(3), "train: n_heads must divide the width of W_q in decoder layer 0; got 3 and 8"),
        (Model(2, norm="post"), "train: norm must be pre"),
        ("Rope", "train: model must be a Model; got str"),
    ):
        with pytest.raises(ValueError, match=message):
            go_with(MODEL, 1, path, told)
    go_with(Model(2, Alibi()), 1, path, Model(2, Alibi()), of=MODEL)  # which parameters can't show
    with pytest.raises(ValueError, match="train: params must be the dictionaries"):
        train(start(), value_and_grad, batches, 1, 0.1, model=MODEL)
