"""The decorator: who gets the call, and that plain arrays never notice it."""

import inspect

import numpy as np
import pytest

from pe_numpy.dispatch import differentiable


@differentiable
def scaled(x, factor=2.0, *, shift=0.0):
    """Multiply and shift."""
    return x * factor + shift


class Witness:
    """Answers every call with what it was told."""

    def __array_function__(self, function, types, args, kwargs):
        return function, types, args, kwargs


class Mute:
    """Has the method, and nothing to say."""

    def __array_function__(self, function, types, args, kwargs):
        return NotImplemented


class Child(np.ndarray):
    """An ndarray of another name."""


def test_plain_arrays_numbers_and_lists_go_straight_to_the_function():
    x = np.arange(3.0)
    assert scaled(x, shift=1.0).tolist() == [1.0, 3.0, 5.0]
    assert scaled(3, 4) == 12 and scaled(np.float32(3)).dtype == np.float32


def test_subclasses_of_ndarray_are_plain_arrays_too():
    x = np.arange(3.0).view(Child)
    assert type(scaled(x)) is Child and scaled(x).tolist() == [0.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda w: (scaled(w), (w,), {}),
        lambda w: (scaled(np.ones(2), w), None, {}),
        lambda w: (scaled(1.0, factor=w), (1.0,), {"factor": w}),
        lambda w: (scaled(1.0, shift=w), (1.0,), {"shift": w}),
    ],
    ids=["first", "second", "by name", "by name only"],
)
def test_call_goes_to_the_argument_that_asks_for_it(call):
    witness = Witness()
    (function, types, args, kwargs), expected_args, expected_kwargs = call(witness)
    assert function is scaled and types == (Witness,)
    assert kwargs == expected_kwargs
    assert expected_args is None or args == expected_args


def test_first_of_several_is_asked():
    first, second = Witness(), Mute()
    assert scaled(first, second)[2] == (first, second)


def test_nobody_who_answers_is_an_error():
    with pytest.raises(TypeError, match="scaled: Mute has no answer for this function"):
        scaled(Mute())


def test_name_signature_docstring_and_plain_function_stay_at_hand():
    assert scaled.__name__ == "scaled" and scaled.__doc__ == "Multiply and shift."
    assert list(inspect.signature(scaled).parameters) == ["x", "factor", "shift"]
    assert scaled.__wrapped__(3.0) == 6.0


def test_functions_of_the_package_that_are_differentiable_still_show_their_doctests():
    import doctest

    from pe_numpy.rotary import rope

    found = {test.name.rpartition(".")[2] for test in doctest.DocTestFinder().find(rope)}
    assert "rope" in found
