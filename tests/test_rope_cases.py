"""Wrong answers that once passed, in the exercises of chapters 40 to 50: now a case shows each."""

import pytest

from pe_numpy.homework.cases import run
from pe_numpy.homework.check import judge
from pe_numpy.homework.known import exchanged
from pe_numpy.homework.registry import EXERCISES

PASSED = [  # the exercise, a text of its solution, and what stands in its place
    ("rope", "frequencies is None", "frequencies is None or len(frequencies) == x.shape[-1] // 2"),
    ("rope", "positions)[", "positions).clip(0)["),
    ("rope", "x.copy()", "x.astype(np.result_type(x, np.float32))"),
    ("rope", "positions)[", "positions + np.arange(x.shape[-2]) * (len(positions) == 1))["),
    ("rotary_scores", "positions)[", "positions).clip(-50, 200)["),
    ("rotary_scores", "np.asarray(positions)", "np.asarray(positions, int)"),
    ("rope_nd", "coordinates @", "coordinates.clip(0, 99) @"),
    ("xpos", "- centre)", "- abs(centre))"),
    ("rotary_values", "turn(v, k_positions", "turn(v, abs(k_positions)"),
    ("rotary_values", "np.asarray(q_positions)", "abs(q_positions)"),
    ("pope", "np.asarray(positions)", "np.asarray(positions, int)"),
    ("pope", "np.logaddexp(0, x)", "np.log(1 + np.exp(x))"),
    ("grouped_scores", "np.asarray(positions)", "np.abs(positions)"),
    ("mla_scores", "np.asarray(positions)", "np.abs(positions)"),
    ("yarn_attention_factor", "factor > 1", "factor >= 2"),
    ("longrope_scaling", "factor > 1", "factor >= 2"),
    ("mixed_frequencies", "base=10.0", "base=100.0"),
    ("layer_frequencies", "[layer]:", "[layer] and layer:"),
    ("rope_settings", 'p["low_freq_factor"], p["high_freq_factor"]', "1.0, 4.0"),
    ("rope_settings", "layer=0", "layer=1"),
]


@pytest.mark.parametrize(("name", "right", "wrong"), PASSED)
def test_a_wrong_answer_that_passed_is_caught(name, right, wrong):
    exercise = EXERCISES[name]
    function = exchanged(name, exercise.chapter, [right, wrong])
    assert not judge(exercise, run(function, exercise.all_cases())).passed
