"""One experiment: written out by hand, what each choice changes, names, bad input."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    Context,
    adamw,
    adamw_state,
    clip_gradients,
    cosine_schedule,
    cross_entropy,
    decode,
    dynamic_ntk_scaling,
    encode,
    init_params,
    linear_scaling,
    ntk_scaling,
    random_positions,
    rope_frequencies,
    sinusoidal,
    softmax,
    value_and_grad,
    yarn_scaling,
)
from pe_numpy.judging import experiment
from pe_numpy.judging.experiment import (
    ENCODINGS,
    PLACES,
    TASKS,
    Configuration,
    answer,
    draw,
    fit,
    measure,
    model,
    recipe,
)
from pe_numpy.judging.experiment import sizes as sizes_of
from pe_numpy.judging.tasks import offset_batch
from pe_numpy.training.optimiser import tree_paths
from pe_numpy.transformer.masks import Causal, Window

SMALL = {"d_model": 8, "n_heads": 2, "n_layers": 1, "batch": 8, "steps": 3, "tests": 5}


def small(task="offset", encoding="rope", **choices):
    """A configuration that takes a few milliseconds."""
    lengths = {} if task.startswith("order") else {"length": 8}
    return recipe(task, encoding, **{**SMALL, **lengths, **choices})


def same(a, b):
    """Whether two trees of parameters have the same bits."""
    a, b = tree_paths(a), tree_paths(b)
    return list(a) == list(b) and all(a[path].tobytes() == b[path].tobytes() for path in a)


# ---- loop oracle --------------------------------------------------------------------------------


def stepwise(params, own, seed, steps, size, length, peak):
    """Steps of AdamW on the offset task, one after another."""

    def loss(params, batch):
        return cross_entropy(decode(params, own, batch["inputs"]), batch["targets"], ignore=-1)

    state = adamw_state(params)
    for t in range(1, steps + 1):
        batch = offset_batch(np.random.default_rng([seed, t]), size, length)
        _, grads = value_and_grad(loss)(params, batch)
        grads, _ = clip_gradients(grads, 1.0)
        params, state = adamw(params, grads, state, cosine_schedule(t, steps, peak))
    return params


def loss_and_accuracy_by_loops(params, own, inputs, targets, last):
    """Window by window and token by token."""
    losses, right = [], []
    for row, wanted in zip(inputs, targets, strict=True):
        logits = decode(params, own, row[None])[0].astype(np.float64)
        for i in range(len(row) - last, len(row)):
            losses.append(-np.log(softmax(logits[i])[wanted[i]]))
            right.append(logits[i].argmax() == wanted[i])
    return np.mean(losses), np.mean(right)


@pytest.mark.parametrize("tuning", [0, 2])
def test_a_result_equals_its_training_and_test_written_out(tuning):
    c = small(scaling="ntk", factor=4, tuning=tuning, seed=3, learning_rate=0.02)
    plain, own = model(replace(c, scaling="direct", factor=None)), model(c)
    params = init_params(sizes_of(c), plain, np.random.default_rng([3, 0]))
    params = stepwise(params, plain, 3, 3, 8, 8, 0.02)
    if tuning:
        params = stepwise(params, own, 3, 2, 2, 32, 0.3 * 0.02)
    assert same(fit(c), params)
    windows = offset_batch(np.random.default_rng(0), 5, 64, held_out=True)
    result = measure(c)
    assert result.configuration == c and result.lengths == (8, 16, 32, 64)
    for length, loss, accuracy in zip(
        result.lengths, result.losses, result.accuracies, strict=True
    ):
        inputs, targets = windows["inputs"][:, -length:], windows["targets"][:, -length:]
        expected = loss_and_accuracy_by_loops(params, own, inputs, targets, last=4)
        assert_allclose((loss, accuracy), expected, rtol=1e-5, atol=0)
    assert result.seconds >= 0 and np.__version__ in result.versions


def test_only_the_answer_counts_where_all_other_targets_are_to_be_ignored():
    c = small("needle", tests=40)
    windows = draw("needle", np.random.default_rng(0), 40, 64, held_out=True)
    expected = loss_and_accuracy_by_loops(fit(c), model(c), *windows.values(), last=1)
    result = measure(c)
    assert_allclose((result.losses[3], result.accuracies[3]), expected, rtol=1e-5, atol=0)
    assert result.accuracies[3] > 0


def test_many_windows_a_few_at_a_time_give_the_mean_of_all(monkeypatch):
    c = small(tests=300)  # 8192 tokens at once: 128 windows of 64
    whole = measure(c)
    sizes = []

    def noting(params, own, task, inputs):
        sizes.append(inputs.shape)
        return answer(params, own, task, inputs)

    monkeypatch.setattr(experiment, "answer", noting)
    assert measure(c).losses == whole.losses
    assert sizes[-3:] == [(128, 64), (128, 64), (44, 64)]


# ---- what a choice changes ----------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_every_encoding_learns_every_task_a_little(task):
    for encoding in ENCODINGS:
        result = measure(small(task, encoding))
        assert np.isfinite(result.losses).all() and len(result.losses) == len(result.lengths)
        batch = draw(task, np.random.default_rng(0), 4, 8)
        logits = answer(
            fit(result.configuration), model(result.configuration), task, batch["inputs"]
        )
        assert logits.shape[:2] == batch["targets"].shape
        assert logits.shape[2] > max(batch["targets"].max(), batch["inputs"].max())


@pytest.mark.parametrize("length", [5, 9, 16, 40])
def test_scalings_are_those_of_the_rotary_room(length):
    K, L0, base, theta = 4, 8, 500.0, rope_frequencies(4, 500.0)

    def frequencies(scaling, factor=None):
        return model(small(scaling=scaling, factor=factor)).encoding.scaling(K, length)

    growth = max(1, length / L0)
    assert model(small()).encoding.scaling is None and model(small()).encoding.base == base
    for factor, s in ((None, growth), (3, 3)):
        assert_array_equal(frequencies("linear", factor), linear_scaling(theta, s))
        assert_array_equal(frequencies("ntk", factor), ntk_scaling(K, s, base))
        for got, want in zip(
            frequencies("yarn", factor), yarn_scaling(K, s, L0, base), strict=True
        ):
            assert_array_equal(got, want)
    assert_array_equal(frequencies("dynamic_ntk"), dynamic_ntk_scaling(K, length, L0, base=base))
    assert_allclose(frequencies("dynamic_ntk"), frequencies("ntk"), rtol=1e-12, atol=0)


def test_ntk_by_the_present_length_is_dynamic_ntk_and_nothing_happens_within_the_trained_one():
    losses = {s: measure(small(scaling=s)).losses for s in experiment.SCALINGS}
    assert_allclose(losses["ntk"], losses["dynamic_ntk"], rtol=1e-5, atol=0)
    assert len({loss[0] for loss in losses.values()}) == 1
    assert len({loss[-1] for loss in losses.values()}) >= 4
    slow = model(recipe("markov", "rope_10000")).encoding
    assert slow.base == 10000.0


@pytest.mark.parametrize("encoding", [e for e in ENCODINGS if "gated" not in e])  # no softmax there
def test_log_n_multiplies_queries_beyond_the_trained_length_alone(encoding):
    c = small("markov", encoding, length=3)
    place = model(replace(c, log_n=True)).encoding
    own = model(c).encoding
    if encoding == "rope_nope":
        assert all(type(a) in type(b).__mro__ for a, b in zip(own, place, strict=True))
        own, place = own[0], place[0]
    assert isinstance(place, type(own))
    assert str(vars(place)).partition(" at ")[0] == str(vars(own)).partition(" at ")[0]
    rng, positions, context = np.random.default_rng(0), np.arange(9), Context(range(9))
    q, k = rng.standard_normal((2, 1, 2, 9, 4)).astype(np.float32)
    turned, keys = own.turn({}, q, k, context)
    sharper, same_keys = place.turn({}, q, k, context)
    assert_array_equal(same_keys, keys)
    for i in positions:
        factor = max(1, np.log(i + 1) / np.log(3))
        assert_allclose(sharper[..., i, :], turned[..., i, :] * factor, rtol=1e-6, atol=0)
    assert sharper.dtype == np.float32
    plain, sharp = measure(c), measure(replace(c, log_n=True))
    assert plain.losses[0] == sharp.losses[0] and plain.losses[3] != sharp.losses[3]


def test_the_training_knows_nothing_of_the_test():
    c = small()
    assert fit(replace(c, log_n=True, scaling="yarn", tests=9)) is fit(c)
    tuned = replace(c, tuning=2, scaling="linear", factor=4)
    assert fit(replace(tuned, log_n=True)) is fit(tuned) is not fit(c)
    assert not same(fit(tuned), fit(replace(tuned, scaling="direct", factor=None)))
    assert not same(fit(replace(c, seed=1)), fit(c))


def test_what_many_share_cannot_be_changed_by_one():
    c = small()
    for params in (fit(c), fit(replace(c, tuning=1, scaling="linear", factor=4))):
        for array in tree_paths(params).values():
            with pytest.raises(ValueError, match="read-only"):
                array += 1


def test_rows_of_a_table_beyond_the_trained_length_are_not_trained():
    c = small("markov", "learned", learning_rate=1e-3)
    table = fit(c)["decoder"]["shared"]["table"]
    before = init_params(sizes_of(c), model(c), np.random.default_rng([0, 0]))["decoder"]["shared"][
        "table"
    ]
    moved = np.abs(table - before).max(axis=1)
    assert table.shape == (64, 8)
    assert moved[:8].min() > 1e-4 > 1e-5 * 4 > moved[8:].max()  # weight decay alone


@pytest.mark.parametrize("task", ["markov", "text", "offset"])
def test_the_targets_are_the_same_at_every_length(task):
    windows = experiment._windows(recipe(task, tests=4))
    assert [batch["inputs"].shape for batch in windows] == [(4, L) for L in (32, 64, 128, 256)]
    for batch in windows:
        assert_array_equal(batch["targets"][:, -16:], windows[0]["targets"][:, -16:])
        assert_array_equal(batch["inputs"][:, -32:], windows[0]["inputs"])
        assert (batch["targets"][:, -16:] >= 0).all()


def test_the_needle_is_in_every_window_and_the_sentence_has_one_length():
    for L, batch in zip((8, 16, 32, 64), experiment._windows(small("needle")), strict=True):
        asked = batch["inputs"][:, -1:] - 64
        assert batch["inputs"].shape == (5, L)
        assert ((batch["inputs"][:, :-1] // 8 == asked).sum(axis=1) == 1).all()
    assert measure(small("order_first")).lengths == (3,)


def test_test_windows_are_held_out_and_the_same_for_every_seed_and_encoding():
    windows = [
        experiment._windows(c)[-1]["inputs"] for c in (small(), small("offset", "t5", seed=2))
    ]
    assert_array_equal(*windows)
    for task in TASKS:
        c = recipe(task, tests=6)
        longest = draw(task, np.random.default_rng(0), 6, 8 * c.length, held_out=True)
        assert_array_equal(experiment._windows(c)[-1]["inputs"], longest["inputs"])


def test_word_order_is_read_at_the_mean_at_cls_or_at_the_last_token():
    sentence = np.array([[0, 8, 1]])  # dog bites man
    for task, read in (("order_mean", "mean"), ("order_first", 0), ("order_causal", -1)):
        c = small(task, "sinusoidal")
        params, own = fit(c), model(c)
        inputs = np.concatenate([[[12]], sentence], axis=1) if task == "order_first" else sentence
        if task == "order_causal":
            expected = decode(params, own, inputs)[0, -1]
        else:
            rows = encode(params, own, inputs)[0]
            expected = (rows.mean(axis=0) if read == "mean" else rows[read]) @ params["output"]
        got = answer(params, own, task, inputs)
        assert got.shape == (1, 1, 13)
        assert_allclose(got[0, 0], expected, rtol=1e-5, atol=1e-6)
    blind = small("order_mean", "none")
    dog, man = (
        answer(fit(blind), model(blind), "order_mean", s) for s in (sentence, sentence[:, ::-1])
    )
    assert_allclose(dog, man, rtol=0, atol=1e-6)


def test_what_can_be_fitted_is_fitted_and_the_number_in_a_name_is_the_published_one():
    def own(name, task="markov"):
        return model(recipe(task, name)).encoding

    assert own("alibi").slopes == (1, 1 / 4, 1 / 16, 1 / 64) and own("alibi_256").slopes is None
    for name in ("sinusoidal", "transformer_xl", "sandwich", "xpos", "rope"):
        assert (own(name).base, own(f"{name}_10000").base) == (500, 10000)
    assert (own("t5").max_distance, own("t5_128").max_distance) == (16, 128)
    assert (own("tupe").num_buckets, own("tupe_128").num_buckets) == (12, 32)
    assert (own("deberta").clip, own("deberta_512").clip) == (16, 512)
    assert (own("fire").threshold, own("fire_512").threshold) == (32, 512)
    assert (own("cope").length, own("cope_64").length) == (16, 64)
    assert (own("xpos").scale_base, own("xpos_10000").scale_base) == (16, 512)
    assert_array_equal(own("rope_half").scaling(8, 32), rope_frequencies(4, 500))
    assert [type(member).__name__ for member in own("rope_nope")] == ["Rope", "Encoding"]


def test_random_places_are_drawn_for_every_batch_within_eight_lengths():
    own = model(small("markov", "sinusoidal_random")).encoding
    zeros = np.zeros((1, 8, 8), np.float32)
    draws = [own.embed({}, zeros, np.arange(8))[0] for _ in range(3)]
    assert not np.array_equal(draws[0], draws[1])
    codes = sinusoidal(np.arange(64), 8, 500).astype(np.float32)
    rng = np.random.default_rng(0)
    for drawn in draws:
        assert_array_equal(drawn, codes[random_positions(rng, 8, 64)])
    again = model(small("markov", "sinusoidal_random")).encoding
    assert_array_equal(again.embed({}, zeros, np.arange(8))[0], draws[0])


@pytest.mark.parametrize("places", PLACES)
def test_other_places_are_a_change_of_the_test_alone(places):
    c = small(length=16, scaling=places)
    plain = replace(c, scaling="direct")
    assert fit(c) is fit(plain)
    theirs, own = measure(c).losses, measure(plain).losses
    assert theirs[0] == own[0] or places != "direct"
    assert theirs[3] != own[3]
    there = model(c)
    assert there.encoding.base == 500 and there.encoding.window < 16
    assert there.mask == (Window(12, sinks=4) if places == "streaming" else Causal())


def test_self_extend_reaches_eight_lengths_within_the_trained_distances():
    own = model(small(length=32, scaling="self_extend")).encoding
    (_, _, _), (i, j, where), _ = own.passes(np.arange(256), np.arange(256))
    assert (i[:, None] - j)[where].max() <= 31


@pytest.mark.parametrize("tuning", [0, 2])
def test_a_learning_curve_is_what_shorter_looks_at_the_same_training_give(tuning):
    c = small("markov", "alibi", steps=8, curve=3, length=4)
    curve = measure(c).curve
    assert [point[0] for point in curve] == [2, 4, 8]
    for point in curve:
        params = init_params(sizes_of(c), model(c), np.random.default_rng([0, 0]))
        state = adamw_state(params)
        for t in range(1, point[0] + 1):
            rng = np.random.default_rng([0, t])
            batch = draw("markov", rng, c.batch, c.length)

            def loss(params, batch=batch):
                logits = decode(params, model(c), batch["inputs"])
                return cross_entropy(logits, batch["targets"], ignore=-1)

            grads, _ = clip_gradients(value_and_grad(loss)(params)[1], 1.0)
            params, state = adamw(params, grads, state, cosine_schedule(t, 8, c.learning_rate))
        windows = draw("markov", np.random.default_rng(0), 64, 32, held_out=True)
        for n, length in enumerate((4, 8, 16, 32)):
            inputs, targets = windows["inputs"][:, -length:], windows["targets"][:, -length:]
            expected = loss_and_accuracy_by_loops(params, model(c), inputs, targets, last=2)
            assert_allclose((point[1 + n], point[5 + n]), expected, rtol=1e-5, atol=0)
    assert measure(replace(c, log_n=True)).curve == ()
    assert measure(replace(c, tuning=tuning)).curve == (() if tuning else curve)
    assert same(fit(replace(c, curve=0)), fit(c))


# ---- names, bad input ---------------------------------------------------------------------------


def test_a_budget_multiplies_the_steps_of_the_recipe_and_nothing_else():
    for task, steps in (("markov", 400), ("text", 500), ("needle", 600)):
        assert recipe(task, "rope", budget=10) == replace(recipe(task, "rope"), steps=10 * steps)
    with pytest.raises(ValueError, match=r"recipe: budget must be .*; got 0"):
        recipe("text", budget=0)


def test_names_tell_configurations_apart_and_stay():
    choices = [
        {}, {"scaling": "yarn"}, {"scaling": "yarn", "factor": 8}, {"scaling": "yarn", "factor": 4},
        {"tuning": 60}, {"log_n": True}, {"seed": 1}, {"steps": 4}, {"tests": 6}, {"batch": 9},
        {"learning_rate": 0.1}, {"n_layers": 2}, {"d_model": 16}, {"length": 9}, {"task": "markov"},
        {"encoding": "rope_10000"}, {"n_heads": 1}, {"curve": 2},
    ]  # fmt: skip
    names = [replace(small(), **choice).name() for choice in choices]
    assert len(set(names)) == len(names) == len(asdict(small())) + 2
    name = recipe("text", "rope", scaling="yarn", factor=8, tuning=60, log_n=True).name()
    assert name == "text_rope_yarn_by-8_tuned-60_log-n_seed-0_c401244f563c.json"
    twin = recipe("text", "rope", scaling="yarn", factor=np.float32(8), seed=np.int64(0), log_n=1)
    assert replace(twin, tuning=60).name() == name
    assert hash(twin) == hash(replace(twin))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: recipe("markof"),
            "Configuration: task must be one of markov, text, .*; got 'markof', the nearest is "
            "'markov'",
        ),
        (lambda: recipe("needle", "Sinus"), "encoding must be one of .* nearest is 'sinusoidal'"),
        (lambda: recipe("text", "rope", scaling="dynamic"), "the nearest is 'dynamic_ntk'"),
        (lambda: recipe(["text"]), "task must be one of .* got .*'text'.*, the nearest is 'text'"),
        (
            lambda: recipe("text", "alibi", scaling="yarn"),
            "scaling must be 'direct' without RoPE; got 'yarn' for 'alibi'",
        ),
        (
            lambda: recipe("text", "rope", factor=2),
            "factor must be None for 'direct'; got 2",
        ),
        (lambda: recipe("text", "rope", scaling="dynamic_ntk", factor=2), "None for 'dynamic_ntk'"),
        (lambda: recipe("text", "rope", scaling="ntk", factor=0), "factor must be above 0; got 0"),
        (lambda: recipe("text", learning_rate=np.nan), "learning_rate must be finite; got nan"),
        (lambda: recipe("text", steps=0), "steps must be at least 1; got 0"),
        (lambda: recipe("text", length=1), "length must be at least 2; got 1"),
        (lambda: recipe("text", seed=-1), "seed must be at least 0; got -1"),
        (lambda: recipe("text", tuning=1.5), "tuning must be a whole number; got 1.5"),
        (
            lambda: recipe("order_mean", log_n=True),
            "'order_mean' must have length = 3, and nothing that acts beyond it; got length 3, "
            "scaling 'direct', tuning 0, log_n True",
        ),
        (lambda: recipe("order_first", "rope", scaling="ntk"), "got length 3, scaling 'ntk'"),
        (lambda: recipe("order_mean", tuning=5), "tuning 5"),
        (lambda: Configuration("order_causal"), "got length 32, .*`recipe` knows its sizes"),
        (lambda: measure(recipe("text", n_heads=5)), "heads must divide d_model; got 5 and 32"),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_the_rule_and_the_numbers(call, message):
    with pytest.raises(ValueError, match=message):
        call()
