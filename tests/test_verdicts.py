"""Verdicts: intervals by hand, shuffled labels one by one, the rule on all sign patterns."""

import itertools

import numpy as np
import pytest

from pe_numpy.judging.verdicts import (
    STUDENT,
    Study,
    holm,
    lower,
    paired_interval,
    paired_p,
    relabelled_chance,
    verdict,
    verdict_p,
)

HEAD = "task,layers,encoding,budget,rate,scaling,factor,tuning,log_n,seed," + ",".join(
    f"{kind}_{n}x" for kind in ("loss", "accuracy") for n in (1, 2, 4, 8)
)


def line(
    task="text", layers=2, encoding="t5", budget=1, rate=0.005, log_n=0, seed=0, loss=1.0, rise=1
):
    values = ",".join(f"{loss + rise * n:.4f}" for n in range(4)) + ",.1,.2,.3,.4"
    return f"{task},{layers},{encoding},{budget},{rate},direct,,0,{log_n},{seed},{values}"


@pytest.fixture
def study(tmp_path):
    lines = [
        line(seed=1, loss=2.0),
        line(seed=0, loss=1.0),
        line(budget=4, loss=0.5),
        line(budget=4, loss=0.7, rate=0.002),  # the rate that was not kept
        line(log_n=1, loss=7.0),
        line("needle", 1, seed=0, rate=0.008),
        line("offset", 1, rate=0.005, loss=1.5),
        line("offset", 1, rate=0.002, loss=1.4, budget=4),
        line("needle", 2, seed=0, rate=0.008, loss=3.0),
    ]
    (tmp_path / "study.csv").write_text("\n".join(["# where from", HEAD, *lines]) + "\n")
    head = HEAD.replace("scaling,factor,tuning,log_n,seed", "seed,step")
    points = [
        f"text,2,t5,4,0.005,{seed},{step},{seed}.5,{step},2,3,0.1,0.2,0.3,0.4"
        for seed, step in itertools.product((1, 0), (200, 100))
    ]
    points.append("text,2,t5,10,0.005,0,100,9,9,9,9,0,0,0,0")
    (tmp_path / "study_curves.csv").write_text("\n".join([head, *points]) + "\n")
    return Study(tmp_path / "study.csv")


def test_results_are_found_by_kind_seed_by_seed_at_the_rate_that_was_kept(study):
    assert study.losses("text", "t5").tolist() == [[1, 2, 3, 4], [2, 3, 4, 5]]
    assert study.losses("text", "t5", budget=4).tolist() == [[0.5, 1.5, 2.5, 3.5]]
    assert study.losses("text", "t5", budget=4, rate=0.002)[0, 0] == 0.7
    assert study.losses("text", "t5", log_n=1)[0, 0] == 7
    assert study.losses("needle", "t5").tolist() == [[1, 2, 3, 4]]
    assert study.losses("needle", "t5", layers=2)[0, 0] == 3
    assert study.shares("text", "t5")[1].tolist() == [0.1, 0.2, 0.3, 0.4]
    assert [*study.by_budget("text", "t5")] == [1, 4]
    assert [*study.by_budget("needle", "t5")] == [1]
    assert study.rates["offset", "1", "t5"] == "0.002"  # of two trials the one with the lower loss


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda s: s.losses("text", "rope"), "Study: there must be results of .*'rope'.* has none"),
        (lambda s: s.losses("text", "t5", budget=10), "'t5' was given at 'text', 1, 4; got 10"),
        (lambda s: s.means("text", "tt5"), "got 'tt5', the nearest is 't5'"),
        (lambda s: s.means("txt", "t5"), "got 'txt', the nearest is 'text'"),
        (
            lambda s: s.means("text", "t5", "share"),
            "kind must be 'loss' or 'accuracy'; got 'share'",
        ),
        (lambda s: s.compare("text", "t5", "t5", 3), "multiple must be one of 1, 2, 4, 8; got 3"),
        (
            lambda s: s.compare("offset", "t5", {"encoding": "t5", "rate": 0.005}),
            r"share a budget; the table has \[4\] of 't5' and \[1\] of",
        ),
    ],
)
def test_a_question_that_the_table_cannot_answer_is_named(study, ask, message):
    with pytest.raises(ValueError, match=message):
        ask(study)


def test_means_are_those_over_the_seeds_by_budget(study):
    means = study.means("text", "t5")
    assert {budget: x.tolist() for budget, x in means.items()} == {
        1: [1.5, 2.5, 3.5, 4.5],
        4: [0.5, 1.5, 2.5, 3.5],
    }
    assert study.means("needle", "t5", "accuracy", layers=2)[1].tolist() == [0.1, 0.2, 0.3, 0.4]


def test_two_kinds_are_compared_at_all_budgets_that_both_have(tmp_path):
    lines = [
        line(encoding=name, budget=budget, seed=seed, loss=loss + seed, log_n=n)
        for name, budget, loss, n in (
            *(("t5", 1, 3.0, 0), ("t5", 4, 1.0, 0), ("t5", 4, 9.0, 1), ("t5", 10, 1.0, 0)),
            *(("rope", 1, 2.0, 0), ("rope", 4, 2.0, 0)),
        )
        for seed in range(3)
    ]
    lines += [line(encoding="alibi", seed=seed, loss=3.5 + seed, rise=0) for seed in range(3)]
    (tmp_path / "study.csv").write_text("\n".join([HEAD, *lines]) + "\n")
    (tmp_path / "study_curves.csv").write_text(HEAD + "\n")
    table = Study(tmp_path / "study.csv")
    said = "depends on the budget: higher at 1, lower at 4"
    assert table.compare("text", "t5", "rope") == said
    assert table.compare("text", "t5", {"encoding": "rope"}, multiple=1) == said
    assert table.compare("text", "t5", "rope", margin=1.5) == "not decided"
    sharper = {"encoding": "t5", "log_n": 1}
    assert table.compare("text", sharper, "rope") == "higher at 4, the one budget"
    assert table.compare("text", "t5", "alibi", 1) == "lower at 1, the one budget"
    assert table.compare("text", "t5", "alibi", 8) == "higher at 1, the one budget"
    assert table.compare("text", "t5", "rope", kind="accuracy") == "not decided"


def test_a_curve_has_axes_seed_step_and_length(study):
    steps, values = study.curve("text", "t5", 4)
    assert steps.tolist() == [100, 200] and values.shape == (2, 2, 4)
    assert values[1, 0].tolist() == [1.5, 100, 2, 3] and values[0, 1].tolist() == [0.5, 200, 2, 3]
    assert study.curve("text", "t5", 4, "accuracy")[1][0, 0].tolist() == [0.1, 0.2, 0.3, 0.4]


def test_an_interval_is_that_of_the_differences_seed_by_seed():
    a, b = [5.0, 1.0, 3.0, 9.0], [5.5, 1.4, 3.6, 9.5]
    d = [-0.5, -0.4, -0.6, -0.5]
    s = (sum((x + 0.5) ** 2 for x in d) / 3) ** 0.5
    low, high = paired_interval(a, b)
    assert abs(low - (-0.5 - 3.182 * s / 2)) < 1e-12 and abs(high - (-0.5 + 3.182 * s / 2)) < 1e-12
    assert paired_interval([*a, 99.0], b) == (low, high)
    assert lower(a, b) == 1 and lower(b, a) == -1 and lower(a, a) == 0
    assert lower(a, b, margin=0.4) == 1 and lower(a, b, margin=0.51) == 0
    assert lower(b, a, margin=0.4) == -1 and lower(b, a, margin=0.51) == 0
    crossed = [1.0, 3.0, 2.0], [3.1, 2.1, 1.1]  # as sorted lists they are 0.1 apart
    assert lower(*crossed) == 0


def test_the_interval_holds_the_truth_95_times_in_100():
    """For every number of seeds, by drawing; the table of Student's t has no slip."""
    rng = np.random.default_rng(0)
    for n in range(2, len(STUDENT) + 2):
        d = rng.standard_normal((20_000, n))
        half = STUDENT[n - 2] * d.std(axis=1, ddof=1) / n**0.5
        assert abs((np.abs(d.mean(axis=1)) < half).mean() - 0.95) < 0.006
        low, high = paired_interval(d[0], np.zeros(n))
        assert np.isclose((high - low) / 2, half[0], rtol=1e-12)


def test_a_p_is_the_area_of_both_tails_of_students_density():
    """Simpson's rule on the density, for every number of seeds; the ends of the interval agree."""
    x = np.linspace(0, 1, 20_001)
    weights = np.array([1, *[4, 2] * 9_999, 4, 1]) / 3 / 20_000
    for n in range(2, len(STUDENT) + 2):
        freedom, spread = n - 1, np.arange(n) - (n - 1) / 2
        spread /= spread.std(ddof=1) / n**0.5  # a mean of 0 and a standard error of 1
        for t in (0.0, 0.3, 1.0, 2.5, 9.0):
            u = np.tan(x[:-1] * np.pi / 2)  # all of 0 to infinity
            density = (1 + u**2 / freedom) ** (-n / 2) * (1 + u**2) * np.pi / 2
            density = np.append(density, 0 if n > 2 else np.pi / 2)
            inner = (1 + (x * t) ** 2 / freedom) ** (-n / 2) * t
            expected = 1 - weights @ inner / (weights @ density)
            assert abs(paired_p(spread + t, np.zeros(n)) - expected) < 1e-9
            assert abs(paired_p(np.zeros(n), spread + t) - expected) < 1e-9
        for t, p in ((STUDENT[n - 2] + 6e-4, 0), (STUDENT[n - 2] - 6e-4, 1)):
            low, _ = paired_interval(spread + t, np.zeros(n))
            assert (paired_p(spread + t, np.zeros(n)) > 0.05) == p == (low < 0)
    assert paired_p([1.0, 1.0], [0.0, 0.0]) == 0 and paired_p([1.0, 2.0], [1.0, 2.0]) == 1
    assert paired_p([1.0, 2.0, 3.0], [2.0, 4.0, 6.0, 99.0]) == paired_p([1, 2, 3], [2, 4, 6])


def test_holm_multiplies_the_least_p_by_all_the_next_by_one_less():
    """By hand: 4 * 0.005, 3 * 0.01, 2 * 0.03; 1 * 0.04 is below the one before it, so 0.06."""
    assert np.allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02], rtol=1e-12)
    assert holm([0.5, 0.9, 0.6]).tolist() == [1, 1, 1] and holm([0.04]).tolist() == [0.04]
    assert holm([0.0, 0.02, 0.02]).tolist() == [0, 0.04, 0.04]
    asked = np.array([0.3, 0.01])
    holm(asked)
    assert asked.tolist() == [0.3, 0.01]


def test_holm_errs_once_in_twenty_tables_and_bonferroni_rejects_no_more():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=(4000, 6))
    p[:, 4:] /= 1000  # two true differences
    corrected = np.array([holm(row) for row in p])
    assert abs((corrected[:, :4] < 0.05).any(axis=1).mean() - (1 - (1 - 0.05 / 4) ** 4)) < 0.01
    assert (corrected <= 6 * p).all() and (corrected >= p).all()
    assert (corrected < 0.05).sum() > (6 * p < 0.05).sum()


def test_three_equal_signs_alone_decide_nothing():
    assert lower([1.0, 1.0, 1.0], [1.1, 2.0, 4.0]) == 0


def test_shuffled_labels_are_counted_one_by_one():
    rng = np.random.default_rng(1)
    for n, m in ((3, 3), (3, 5), (5, 2)):
        a, b = rng.standard_normal(n), rng.standard_normal(m) + 1
        everything, far = [*a, *b], abs(a.mean() - b.mean())
        hits = total = 0
        for chosen in itertools.permutations(range(n + m)):
            first = sum(everything[i] for i in chosen[:n]) / n
            second = sum(everything[i] for i in chosen[n:]) / m
            hits += abs(first - second) >= far - 1e-9
            total += 1
        assert np.isclose(relabelled_chance(a, b), hits / total, rtol=1e-12)
    assert relabelled_chance([1.0], [1.0]) == 1


def test_the_rule_on_every_pattern_of_three_budgets():
    for pattern in itertools.product((-1, 0, 1), repeat=3):
        said = verdict(dict(zip((1, 4, 10), pattern, strict=True)))
        both = {-1, 1} <= {*pattern}
        if both or pattern[2] == 0 != pattern[0] or (pattern[1] == 0 != pattern[0]):
            assert said.startswith("depends on the budget: ") or not any(pattern)
        if pattern == (0, 1, 1):
            assert said == "lower from 4 on"
        if pattern == (0, -1, -1):
            assert said == "higher from 4 on"
        if pattern == (0, 0, 1):
            assert said == "depends on the budget: not decided at 1, not decided at 4, lower at 10"
        if len({*pattern}) == 1:
            assert said == {1: "lower", -1: "higher", 0: "not decided"}[pattern[0]]
    assert verdict({4: -1}) == "higher at 4, the one budget" and verdict({4: 0}) == "not decided"
    assert verdict({1: 0, 4: 1}) == "depends on the budget: not decided at 1, lower at 4"
    assert verdict({4: 1, 1: -1}) == "depends on the budget: higher at 1, lower at 4"
    assert verdict({1: 0, 4: 1, 10: 1, 20: 1}) == "lower from 4 on"
    assert verdict({1: 0, 4: 0, 10: 1, 20: 1}).startswith("depends on the budget: not decided at 1")


def test_the_p_of_a_verdict_is_the_largest_of_the_budgets_that_it_names(tmp_path):
    a, near, far, mixed = [0.0] * 3, [1.0, 1.3, 1.7], [9.0, 9.1, 9.2], [-1.0, 0.5, 2.0]
    p = paired_p(a, near)
    assert paired_p(a, far) < p < 0.05 < paired_p(a, mixed)
    assert verdict_p({1: (a, far), 4: (a, near), 10: (a, far)}) == p
    assert verdict_p({1: (far, a), 4: (near, a)}) == p and verdict_p({4: (a, near)}) == p
    assert verdict_p({1: (a, mixed), 4: (a, near), 10: (a, far)}) == p  # from 4 on
    assert verdict_p({1: (a, mixed), 4: (a, near)}) == 1  # of two budgets both must decide
    assert verdict_p({1: (a, far), 4: (far, a)}) == verdict_p({1: (a, mixed)}) == 1
    lines = [
        line(encoding=name, budget=budget, seed=seed, loss=loss)
        for budget, values in ((1, near), (4, far))
        for name, own in (("t5", values), ("rope", a))
        for seed, loss in enumerate(own)
    ]
    (tmp_path / "study.csv").write_text("\n".join([HEAD, *lines]) + "\n")
    (tmp_path / "study_curves.csv").write_text(HEAD + "\n")
    found = Study(tmp_path / "study.csv").p_value("text", "rope", "t5", 2)
    assert np.isclose(found, p, rtol=1e-9)
    assert Study(tmp_path / "study.csv").p_value("text", "rope", "t5", kind="accuracy") == 1


def test_a_table_of_comparisons_is_corrected_as_one(tmp_path):
    ends = {"t5": [1.0, 1.1, 1.2], "rope": [1.5, 2.0, 2.1], "alibi": [9.0, 9.1, 9.21]}
    lines = [
        line(encoding=name, seed=seed, loss=loss, budget=budget)
        for name, own in ends.items()
        for seed, loss in enumerate(own)
        for budget in (1, 4)
    ]
    (tmp_path / "study.csv").write_text("\n".join([HEAD, *lines]) + "\n")
    (tmp_path / "study_curves.csv").write_text(HEAD + "\n")
    table = Study(tmp_path / "study.csv")
    near, far = ("text", "t5", "rope", 1), ("text", "t5", "alibi", 1)
    p = table.p_value(*near)
    assert 0.025 < p < 0.05 and table.p_value(*far) < 1e-3
    assert table.together([near]).tolist() == [True]
    assert table.together([near, far]).tolist() == [True, True]
    assert table.together([near, near, far]).tolist() == [False, False, True]
    assert table.together([near], level=0.02).tolist() == [False]


def test_a_rise_is_paired_with_the_losses_at_the_trained_length(study):
    found = study.rise("text", "t5", 0.5, 4)
    assert {budget: [x.tolist() for x in pair] for budget, pair in found.items()} == {
        1: [[3.0, 4.0], [1.5, 2.5]],
        4: [[2.5], [1.0]],
    }
    assert study.rise("text", "t5")[1][0].tolist() == [4, 5]


def test_the_two_trials_of_a_rate_are_those_of_one_seed_at_budget_4(study):
    assert study.trials("text", "loss_1x") == {"t5": [0.7, 0.5]}  # the lower rate first
    assert study.trials("text", "accuracy_8x") == {"t5": [0.4, 0.4]}
    assert study.trials("offset", "loss_1x") == {}  # only one rate was tried at budget 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_interval([1.0], [2.0]), "paired_interval: .* 2 to 10 seeds; got 1"),
        (lambda: paired_interval([1.0] * 11, [2.0] * 11), "must share 2 to 10 seeds; got 11"),
        (lambda: paired_p([1.0], [2.0]), "paired_p: a and b must share 2 to 10 seeds; got 1"),
        (lambda: verdict_p({}), "verdict: signs must have a budget at least"),
        (lambda: verdict_p({4: ([1.0], [2.0])}), "must share 2 to 10 seeds; got 1"),
        (lambda: holm([]), r"holm: p_values must be .* from 0 to 1, one a comparison; got \[\]"),
        (lambda: holm([0.5, 1.5]), r"holm: p_values must be .* got \[0.5, 1.5\]"),
        (lambda: holm([-0.5]), r"holm: p_values must be .* got \[-0.5\]"),
        (lambda: holm([np.nan]), "holm: p_values must be a list of finite numbers"),
        (lambda: lower([1.0, 2.0], [1.0, 2.0], -1), "lower: margin must be at least 0; got -1"),
        (lambda: relabelled_chance([], [1.0]), "relabelled_chance: .* got 0 and 1"),
        (lambda: relabelled_chance([1.0] * 11, [2.0] * 10), "at most 20 .* got 11 and 10"),
        (lambda: paired_interval([1.0, np.nan], [2.0, 3.0]), "paired_interval: a must be .* nan"),
        (lambda: lower([1.0, 2.0], "ab"), "paired_interval: b must"),
        (lambda: verdict({1: 2}), "verdict: signs must have .* 1, -1 or 0 .*; got {1: 2}"),
        (lambda: verdict({}), "verdict: signs must have a budget at least, .*; got {}"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
