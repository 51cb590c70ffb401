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


def test_a_bound_is_not_above_itself():
    assert checks.above("f", "x", 1.5, 1) == 1.5
    with pytest.raises(ValueError, match="f: x must be above 1, so that it counts; got 1"):
        checks.above("f", "x", 1, 1, "it counts")
    with pytest.raises(ValueError, match="f: x must be above 0; got 0"):
        checks.positive("f", "x", 0)
