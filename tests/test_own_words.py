"""The book's own decoder, broken: what a mistake changes, and what a reader may not type."""

import numpy as np
import pytest

from pe_numpy import Model, decode, rope_frequencies
from pe_numpy.book.own_words import MOST, STEPS, continued, decoder, mistakes
from pe_numpy.judging.tasks import to_tokens
from pe_numpy.transformer.encodings import Rope

TEXT = "the rays of light "


def test_right_is_the_decoder_of_chapter_63():
    params, alphabet = decoder()
    tokens = to_tokens(TEXT, alphabet).tolist()
    loss = []
    for _ in range(STEPS):
        z = decode(params, Model(2, Rope(base=1000.0)), [tokens])[0, -1]
        loss.append(np.log(np.exp(z - z.max()).sum()) + z.max() - z.max())
        tokens.append(int(z.argmax()))
    shown = continued(TEXT, "zero")
    assert shown["right"]["written"] == "".join(alphabet[v] for v in tokens[len(TEXT) :])
    np.testing.assert_allclose(shown["right"]["surprise"], loss, rtol=0, atol=0.0051)
    assert shown["loss"]["right"] == pytest.approx(np.mean(loss))


@pytest.mark.parametrize("text", [TEXT, "a", "z" * MOST])
def test_a_shift_changes_nothing_and_no_rotation_is_position_0(text):
    shift, zero, none = (continued(text, name) for name in ("shift", "zero", "none"))
    assert shift["right"] == shift["broken"]
    assert zero["broken"] == none["broken"]
    assert zero["loss"]["broken"] > zero["loss"]["right"] + 1


def test_each_other_mistake_changes_the_loss():
    right = continued(TEXT, "right")["loss"]["right"]
    for name in set(mistakes(1)) - {"right", "shift"}:
        assert continued(TEXT, name)["loss"]["broken"] > right + 0.1, name


def test_frequencies_of_the_stretched_ones():
    theta = rope_frequencies(16, 1000.0)
    kinds = mistakes(4)
    np.testing.assert_allclose(kinds["linear"].scaling(16, None), theta / 4)
    yarn, factor = kinds["yarn"].scaling(16, None)
    assert yarn[0] == theta[0] and yarn[-1] == pytest.approx(theta[-1] / 4)
    assert factor == pytest.approx(0.1 * np.log(4) + 1)


@pytest.mark.parametrize(
    "text, mistake, words",
    [
        ("", "zero", "text must have 1 to 60 characters; got 0"),
        ("a" * 61, "zero", "got 61"),
        ("5 \u00a7 \u00a7", "zero", "got '\u00a7'"),
        ("a", "nobos", "mistake must be one of right, shift"),
    ],
)
def test_what_is_wrong_is_said(text, mistake, words):
    assert words in continued(text, mistake)["error"]
