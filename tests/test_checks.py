"""The shared checks: what they let through unchanged, and what they turn away."""

import numpy as np
import pytest

from pe_numpy import checks


class Foreign:
    """An array of another library that speaks NumPy's dispatch protocol."""

    __array_ufunc__ = None


def test_lists_become_arrays_and_foreign_arrays_are_left_alone():
    assert checks.as_array([1, 2]).tolist() == [1, 2]
    foreign, array = Foreign(), np.zeros(3)
    assert checks.as_array(foreign) is foreign
    assert checks.as_array(array) is array


def test_floating_arrays_pass_without_a_copy():
    x = np.zeros((2, 3), np.float32)
    assert checks.real_array("f", "x", x) is x
    assert checks.real_array("f", "x", [True, False]).dtype == np.float64


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 1), (1, 3), (2, 3)])
def test_shapes_that_broadcast_without_enlarging_fit(shape):
    checks.fits("f", "x", shape, (2, 3), "y")


@pytest.mark.parametrize("shape", [(2,), (3, 3), (1, 2, 3), (1, 3, 7), (2, 0)])
def test_shapes_that_clash_or_enlarge_do_not(shape):
    with pytest.raises(ValueError, match=r"f: x must broadcast to the shape of y, \(2, 3\); got"):
        checks.fits("f", "x", shape, (2, 3), "y")


def test_numpy_integers_are_whole_numbers():
    assert checks.integer("f", "n", np.int8(3)) == 3
    assert type(checks.number("f", "x", np.float32(0.5))) is float


@pytest.mark.parametrize("strange", [True, 2.0, "2", None, [2], np.array([2])])
def test_what_python_would_take_for_a_whole_number_is_refused(strange):
    with pytest.raises(ValueError, match="f: n must be a whole number; got"):
        checks.integer("f", "n", strange)


@pytest.mark.parametrize("strange", [True, "0.5", b"1", None, [0.5], 1j])
def test_what_python_would_take_for_a_number_is_refused(strange):
    with pytest.raises(ValueError, match="f: x must be one real number; got"):
        checks.number("f", "x", strange)


def test_a_share_is_from_0_to_below_1():
    assert checks.share("f", "x", 0) == 0 and checks.share("f", "x", 0.75) == 0.75
    for strange in (1, -0.1):
        with pytest.raises(ValueError, match="f: x must be from 0 to below 1; got"):
            checks.share("f", "x", strange)


def test_only_true_and_false_are_flags():
    assert checks.flag("f", "x", True) is True and checks.flag("f", "x", np.False_) is False
    for strange in (0, 1, "no", None):
        with pytest.raises(ValueError, match="f: x must be True or False; got"):
            checks.flag("f", "x", strange)


def test_a_choice_is_one_of_the_words():
    assert checks.choice("f", "x", "a", ("a", "b")) == "a"
    for strange in ("c", None, ["a"], np.array(["a", "b"])):
        with pytest.raises(ValueError, match="f: x must be 'a' or 'b'; got"):
            checks.choice("f", "x", strange, ("a", "b"))


def test_a_bound_is_not_above_itself():
    assert checks.above("f", "x", 1.5, 1) == 1.5
    with pytest.raises(ValueError, match="f: x must be above 1, so that it counts; got 1"):
        checks.above("f", "x", 1, 1, "it counts")
    with pytest.raises(ValueError, match="f: x must be above 0; got 0"):
        checks.positive("f", "x", 0)


@pytest.mark.parametrize("ragged", [[[1], [1, 2]], [[1, [2]]], [[[1, 2]], [[3]]]])
@pytest.mark.parametrize("check", [checks.position_array, checks.real_array, checks.whole_numbers])
def test_rows_of_different_lengths_are_refused_by_name(check, ragged):
    with pytest.raises(ValueError, match=r"f: x must have rows of one length; got \[\[") as error:
        check("f", "x", ragged)
    assert repr(ragged) in str(error.value)


def test_a_long_ragged_list_is_shortened_in_its_message():
    with pytest.raises(ValueError, match="f: x must have rows of one length") as error:
        checks.real_array("f", "x", [[0.0] * 1000] * 1000 + [[0.0]])
    assert len(str(error.value)) < 500


def test_a_ragged_mask_is_refused_by_name():
    with pytest.raises(ValueError, match="f: mask must have rows of one length"):
        checks.mask_array("f", [[True], [True, False]], (2, 2))


def test_a_seed_is_no_generator():
    rng = np.random.default_rng(0)
    assert checks.generator("f", "rng", rng) is rng
    for seed in (None, 0, np.random.RandomState(0)):
        with pytest.raises(ValueError, match=r"f: rng must be a generator, such as .*; got "):
            checks.generator("f", "rng", seed)
