"""The tables of part 8: a sample is measured anew; Gemma as the book runs it is Gemma's page."""

import sys

import numpy as np
import pytest

from pe_numpy.__main__ import main
from pe_numpy.book import trained

sys.path.insert(0, str(trained.RESULTS))
import real
import real_break


@pytest.mark.parametrize("name", real.SAMPLE)
def test_a_sample_is_measured_again(name):
    if real.missing(name):
        pytest.skip(real.missing(name))
    assert list(real.differences(name, real.read()[name])) == []


def test_the_forward_pass_is_that_of_the_page():
    try:
        gemma = trained.gemma()
    except ValueError as error:
        pytest.skip(str(error))
    tokens = trained.tokens_of("opticks", 600)  # longer than a window
    page = gemma.model.hidden([tokens.tolist()])[0]
    np.testing.assert_allclose(gemma.hidden(tokens), page, rtol=0, atol=1e-4)
    logits = gemma.model.logits([tokens[:64].tolist()])[0].astype(np.float64)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    right = -log_p[np.arange(63), tokens[1:64]]
    np.testing.assert_allclose(gemma.losses(tokens[:64], every=1), right, rtol=0, atol=1e-4)


def test_two_entries_of_break_are_measured_again_and_are_what_the_command_writes(capsys):
    if real.missing("told"):
        pytest.skip(real.missing("told"))
    table = real_break.read()
    assert list(real_break.differences(table, 7, ("zero", "layout"))) == []
    one = table["sentences"][7]
    for mistake, option in (("zero", "--positions=zero"), ("shift", "--positions=shift=100")):
        assert main(["run", "gemma", one["text"], "--steps", "20", option]) == 0
        written = one["entries"][real_break.MISTAKES.index(mistake)]["written"]
        assert capsys.readouterr().out == "".join(written) + "\n"
