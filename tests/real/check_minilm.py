"""all-MiniLM-L6-v2 as it was released: its vectors are the library's, its table is five clocks.

`minilm.json` was made by sentence-transformers, in float64; it names the versions. Of each text it
has the token ids and the first eight numbers of the vector.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy.models.embed import mean_of_tokens, tokens_of

GIVEN = json.loads(Path(__file__).with_name("minilm.json").read_text(encoding="utf-8"))
TEXTS = [each["text"] * each["times"] for each in GIVEN["texts"]]
IDS = [each["ids"] for each in GIVEN["texts"]]
VECTORS = np.array([each["vector"] for each in GIVEN["texts"]])  # (10, 8)


def numbers(tree):
    return sum(map(numbers, tree.values())) if isinstance(tree, dict) else tree.size


def test_it_is_a_bert_without_a_head(minilm):
    m = minilm()
    s = m.settings
    assert (s.layers, s.H, s.D, s.F, s.N, s.V) == (6, 12, 384, 1536, 512, 30522)
    assert m.dtype == np.float32
    assert numbers(m.parameters) == 22_713_216 - 384 * 385  # its publisher counts the pooler
    with pytest.raises(ValueError, match="logits: the file must hold a head"):
        m.logits([[101, 102]])


def test_vectors_are_those_of_sentence_transformers(minilm):
    pytest.importorskip("tokenizers")
    wide = minilm(np.float64).embed(TEXTS)
    assert wide.shape == (10, 384)
    assert_allclose(wide[:, :8], VECTORS, rtol=0, atol=1e-12)
    assert_allclose(np.linalg.norm(wide, axis=1), 1, rtol=0, atol=1e-12)
    narrow = minilm().embed(TEXTS)
    assert narrow.dtype == np.float32
    assert_allclose(narrow, wide, rtol=0, atol=1e-6)


def test_token_ids_are_those_of_sentence_transformers(minilm):
    pytest.importorskip("tokenizers")
    ids = tokens_of(minilm().folder, TEXTS)
    assert len(ids[-1]) > 256 == len(IDS[-1])
    assert [*ids[:-1], [*ids[-1][:255], ids[-1][-1]]] == IDS


def test_ids_give_the_vectors_of_their_texts_also_beside_padding(minilm):
    m = minilm(np.float64)
    vectors = m.embed(IDS)
    assert_allclose(vectors[:, :8], VECTORS, rtol=0, atol=1e-12)
    some, seen = IDS[:8], {}
    L = max(map(len, some))
    tokens = np.array([[*own, *[0] * (L - len(own))] for own in some])
    real = np.array([[n < len(own) for n in range(L)] for own in some])
    pooled = mean_of_tokens(m.hidden(tokens, real, watch=seen), real)
    pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
    assert_allclose(pooled, vectors[:8], rtol=0, atol=1e-12)
    assert sorted(seen) == list(range(6))
    for weights in seen.values():  # (B, H, L, L)
        assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-12)
        assert not weights[np.broadcast_to(~real[:, None, None], weights.shape)].any()


def test_exchanged_roles_are_nearer_than_a_paraphrase(minilm):
    bites, bitten, paraphrase, *_ = minilm().embed(IDS[:3])
    assert_allclose(bites @ bitten, 0.9727, rtol=0, atol=5e-4)
    assert_allclose(bites @ paraphrase, 0.9037, rtol=0, atol=5e-4)


def test_norms_of_the_table_tell_where_texts_were_cut(minilm):
    norms = np.linalg.norm(minilm().parameters["positions"], axis=1)
    assert_allclose(norms[[0, 127, 510, 511]], [2.362, 0.689, 0.857, 0.970], rtol=0, atol=5e-4)
    others = np.delete(norms, [0, 127, 510, 511])
    assert 0.39 < others.min() and others.max() < 0.57
    assert_array_equal(np.argsort(-norms)[:4], [0, 511, 510, 127])


def test_one_matrix_steps_through_the_table_in_five_circles(minilm):
    table = minilm(np.float64).parameters["positions"][128:510]
    table = table - table.mean(axis=0)
    z = table @ np.linalg.svd(table, full_matrices=False)[2][:10].T  # ten components
    before = np.concatenate([z[:-1], np.ones((len(z) - 1, 1))], axis=1)
    step = np.linalg.lstsq(before, z[1:], rcond=None)[0]
    rest = np.sum((z[1:] - before @ step) ** 2) / np.sum((z[1:] - z[1:].mean(axis=0)) ** 2)
    assert_allclose(1 - rest, 0.9975, rtol=0, atol=2e-4)
    turns = np.linalg.eigvals(step[:10])
    assert_allclose(abs(turns), 1, rtol=0, atol=4e-3)
    waves = np.sort(2 * np.pi / np.angle(turns[turns.imag > 0]))
    assert_allclose(waves, [6.0, 17.8, 53.3, 161, 576], rtol=0.01)
