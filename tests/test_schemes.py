"""The register of schemes: its rows are true, and one more row is all that a new encoding needs."""

import inspect
from dataclasses import dataclass, replace

import cards as measure
import numpy as np
import pytest
from builders import L, built
from numpy.testing import assert_allclose
from test_cards import computes_the_same

from pe_numpy import Cache, cache_properties, decode, encode, kerple_power_bias, properties
from pe_numpy.book import cards
from pe_numpy.book.census import ENCODINGS, Row, census, users_of
from pe_numpy.judging import experiment
from pe_numpy.judging.schemes import every_scheme
from pe_numpy.transformer import encodings
from pe_numpy.transformer.encodings import SCHEMES, Encoding, Reach, Scheme, every_encoding
from pe_numpy.transformer.encodings.base import Bias
from pe_numpy.transformer.fits import fits


def test_each_class_has_a_row_and_each_choice_that_of_which_it_is_one():
    faces = [getattr(encodings, name) for name in encodings.__all__]
    classes = {face for face in faces if inspect.isclass(face) and issubclass(face, Encoding)}
    assert classes == {type(row.make(Reach(8))) for row in SCHEMES.values()}
    one_each = every_encoding(8)
    assert len(set(map(type, one_each.values()))) == len(one_each)
    assert {row.of for row in SCHEMES.values() if row.of} <= set(one_each)


@pytest.mark.parametrize("name", SCHEMES)
def test_tables_windows_and_waves_grow_with_what_an_encoding_is_made_for(name):
    small, large = map(SCHEMES[name].make, (Reach(64, 5, 10.0), Reach(256, 9, 100.0)))
    for field in ("length", "threshold", "clip", "window", "size", "base"):
        if hasattr(small, field):
            assert getattr(small, field) < getattr(large, field), field


def test_what_the_study_calls_by_the_name_of_a_scheme_is_that_scheme():
    assert {*experiment.SCALINGS, *experiment.PLACES} - {"direct"} <= set(SCHEMES)
    known = {name: choices for name, choices in measure.STUDIED.items() if name in SCHEMES}
    for name, choices in known.items():
        c = experiment.recipe("markov", **choices)
        maker = experiment.PLACES.get(c.scaling, experiment.ENCODINGS[c.encoding])
        assert type(maker(c)) is type(SCHEMES[name].make(Reach(8))), name
    published = {n for n in experiment.ENCODINGS if n.rpartition("_")[2].isdigit()}
    assert {n.rpartition("_")[0] for n in published} <= set(known)
    mixtures = {"rope_nope", "sinusoidal_random"}
    mixtures |= {"gated_linear", "gated_linear_nope", "gated_delta_nope"}  # chapter 39's hybrids
    own = {choices["encoding"] for choices in known.values()}
    assert set(experiment.ENCODINGS) == own | published | mixtures


# ---- a new encoding -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Root(Bias):
    """Chapter 36: a penalty that grows as the root of the distance, with a strength a head."""

    scale: float = 2.0

    def layer(self, rng, shape):
        return {"log_a": np.log(rng.uniform(0.1, 1, shape.n_heads))}

    def bias(self, params, context):
        a = np.exp(params["log_a"])
        root = np.full(context.heads, 0.5, context.dtype)
        return kerple_power_bias(a, root, context.distance) / self.scale


ROW = Scheme(
    *("root", 3, "36_distance_functions", "kerple_power_bias"),
    "scores + kerple_power_bias(np.exp(log_a), [0.5], relative_distance(i, j)) / scale",
    lambda n: Root(n.clip),
)


@pytest.fixture
def root(monkeypatch):
    """Add the row, and nothing else, for the time of a test; give the encoding."""
    monkeypatch.setitem(SCHEMES, "root", ROW)
    return every_encoding(40, clip=3)["root"]


def test_a_row_makes_a_class_an_encoding_of_the_model(root):
    assert root == Root(3) and list(every_encoding(8))[-1] == "root"
    with pytest.raises(ValueError, match=r"^Root: scale must be above 0; got -1$"):
        Root(-1)
    model, params, tokens = built(root, n_encoder_layers=1, dtype=np.float32)
    memory = encode(params, model, tokens)
    whole, cache = decode(params, model, tokens, memory), Cache(*tokens.shape)
    rows = [decode(params, model, tokens[:, n : n + 1], memory, cache=cache) for n in range(L)]
    assert whole.dtype == np.float32
    assert_allclose(np.concatenate(rows, axis=1), whole, rtol=0, atol=1e-5)
    weaker = decode(params, replace(model, encoding=Root(9)), tokens, memory)
    assert np.abs(whole - weaker)[:, 1:].max() > 1e-3
    with pytest.raises(ValueError, match=r"own arrays in encoder layer 0, none; .* {'log_a': \(2,"):
        fits(params, replace(model, encoding=Encoding()))


def test_a_row_brings_a_scheme_before_the_detector_and_the_cache_laboratory(root):
    judged = every_scheme(40)["root"]
    found = properties(judged.scores, axes=judged.axes)
    assert (found.move, found.shift, found.mirror, found.fall) == ("bias", 1, True, "falls")
    assert cache_properties(root).holds == "keys and positions"
    computes_the_same("root", judged, measure.place(root))


def test_a_row_gives_a_scheme_a_name_in_the_census_and_a_card(root, monkeypatch, tmp_path):
    line = "2026-01,Mine,model,root,scale 3,a.py abcdef0: a,arXiv 2601.00001"
    (tmp_path / "mine.csv").write_text(f"{','.join(Row._fields)}\n{line}\n", encoding="utf-8")
    assert census(tmp_path / "mine.csv")[0].place == ENCODINGS["root"].place == 3
    assert users_of("root") == []
    with pytest.raises(ValueError, match="did you mean root"):
        cards.known("roots")
    row = {**measure.row("root"), "beyond L0": measure.longer()["root"]}
    table = {**cards.measured(), row.pop("name"): row}
    monkeypatch.setattr(cards, "measured", lambda: {name: {**table[name]} for name in table})
    card = cards.card("root")
    assert card.startswith("root, chapter 36\nplace      3, the score of a pair\n")
    assert ROW.code.split()[0] in card and "not in the study" in card
    assert "## root\n" in measure.page()
