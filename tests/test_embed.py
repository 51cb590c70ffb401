"""Sentence vectors: the mean of tokens, what a folder says of it, and what is refused."""

import json
import shutil
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from test_shelf import FOLDERS, model

from pe_numpy import load_model
from pe_numpy.models.embed import mean_of_tokens, read_pooling

BERT = FOLDERS[0].parent / "bert"  # 16 positions, 37 tokens
OLD, NEW = "sentence_transformers.models.{}", "sentence_transformers.base.modules.x.{}"
TEXTS = [[3, 1, 4], [7], [2, 6, 5], [9, 8, 1, 30]]


def modules(*kinds, name=OLD, path="1_Pooling"):
    paths = ["", path, *(f"{n}_{kind}" for n, kind in enumerate(kinds[2:], 2))]
    return [{"type": name.format(kind), "path": path} for kind, path in zip(kinds, paths)]  # noqa: B905


@pytest.fixture
def folder(tmp_path):
    """A function that makes a folder of sentence-transformers of the golden BERT."""

    def make(**files):
        files = {
            "modules": modules("Transformer", "Pooling", "Normalize"),
            "pooling": {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
            "sentence_bert_config": {"max_seq_length": 6, "do_lower_case": False},
            **files,
        }
        for name in ("config.json", "model.safetensors"):
            if not (tmp_path / name).exists():
                shutil.copy(BERT / name, tmp_path)
        (tmp_path / "1_Pooling").mkdir(exist_ok=True)
        for name, content in files.items():
            path = tmp_path / ("1_Pooling/config.json" if name == "pooling" else f"{name}.json")
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_text(content if isinstance(content, str) else json.dumps(content))
        return tmp_path

    return make


def by_hand(tokens, unit=True):
    h = model("bert").hidden([tokens])[0]
    m = sum(h[i] for i in range(len(tokens))) / len(tokens)
    return m / np.sqrt(sum(m**2)) if unit else m


def test_the_mean_leaves_padding_out():
    rng = np.random.default_rng(0)
    h, real = rng.standard_normal((2, 5, 3)), np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], bool)
    for b, d in np.ndindex(2, 3):
        alone = [h[b, i, d] for i in range(5) if real[b, i]]
        assert_allclose(mean_of_tokens(h, real)[b, d], sum(alone) / len(alone), rtol=1e-12)
    h[~real] = np.nan
    assert np.isfinite(mean_of_tokens(h, real)).all()
    narrow = mean_of_tokens(np.ones((1, 2, 3), np.float32), np.ones((1, 2), bool))
    assert narrow.dtype == np.float32


@pytest.mark.parametrize(
    ("h", "real", "message"),
    [
        (np.ones((2, 3)), np.ones((2, 3), bool), r"h must have the axes \(B, L, D\)"),
        (np.ones((1, 2, 3)), np.ones((2, 1), bool), r"real be boolean \(B, L\); got \(1, 2, 3\)"),
        (np.ones((1, 2, 3)), np.ones((1, 2)), "and float64"),
        (np.ones((2, 1, 3)), [[True], [False]], "each text must have a real token"),
    ],
)
def test_the_mean_refuses(h, real, message):
    with pytest.raises(ValueError, match=f"^mean_of_tokens: .*{message}"):
        mean_of_tokens(h, real)


@pytest.mark.parametrize("unit", [True, False])
def test_texts_of_any_lengths_have_the_vectors_that_each_has_alone(unit, folder):
    kinds = ["Transformer", "Pooling", "Normalize"][: 2 + unit]
    m = load_model(folder(modules=modules(*kinds)), np.float64)
    many = TEXTS + [[n % 37] * (1 + n % 3) for n in range(130)]
    vectors = m.embed(many)
    assert vectors.shape == (134, 12)
    for tokens, v in zip(many, vectors, strict=True):
        assert_allclose(v, by_hand(tokens, unit), rtol=0, atol=1e-12)
    assert m.embed([]).shape == (0, 12)
    assert_array_equal(m.embed(np.array([[3, 1], [4, 1]])), m.embed([[3, 1], [4, 1]]))
    assert load_model(folder()).embed(TEXTS).dtype == np.float32


def test_a_long_text_keeps_its_beginning_and_its_last_token(folder):
    long = [5, 1, 2, 3, 4, 6, 7, 8, 35]
    for most, kept in ((6, [5, 1, 2, 3, 4, 35]), (1, [35]), (9, long)):
        m = load_model(folder(sentence_bert_config={"max_seq_length": most}), np.float64)
        assert_allclose(m.embed([long])[0], by_hand(kept), rtol=0, atol=1e-12)
    assert long == [5, 1, 2, 3, 4, 6, 7, 8, 35]


def test_the_limit_is_the_folder_s_the_tokenizer_s_or_the_table_s(folder):
    own, cutter = {"max_seq_length": 6}, {"model_max_length": 9}
    for words, limit, rows, most in (
        (own, cutter, 16, 6),
        ({}, cutter, 16, 9),
        (None, cutter, 16, 9),
        (None, None, 16, 16),
        (own, None, 4, 4),
        (None, {"model_max_length": 10**30}, 16, 16),
        (None, {"model_max_length": None}, None, 2**24),
    ):
        place = folder(sentence_bert_config=words, tokenizer_config=limit)
        assert read_pooling(place, rows).longest == most
    m = load_model(folder(sentence_bert_config=None, tokenizer_config=None))
    assert m.embed([[3] * 17]).shape == (1, 12)  # its table has 16 rows


def test_both_spellings_of_the_library_mean_the_same(folder):
    new = {"embedding_dimension": 12, "pooling_mode": "mean", "include_prompt": True}
    kinds = "Transformer", "Pooling", "Normalize"
    first = load_model(folder()).embed(TEXTS)
    for pooling in (new, {**new, "pooling_mode": ["mean"]}):
        place = folder(modules=modules(*kinds, name=NEW), pooling=pooling)
        assert_array_equal(load_model(place).embed(TEXTS), first)


def test_experiments_reach_the_vectors(folder):
    m = load_model(folder(), np.float64)
    moved = m.replace(places=lambda positions: positions + 3).embed(TEXTS)
    assert np.abs(moved - m.embed(TEXTS)).max() > 1e-3
    bare = {**m.parameters, "positions": 0 * m.parameters["positions"]}
    a, b = m.replace(parameters=bare).embed([[3, 1, 4], [4, 3, 1]])
    assert_allclose(a, b, rtol=0, atol=1e-12)  # a mean knows no order


def test_text_is_cut_by_the_folder_s_tokenizer(folder):
    tokenizers = pytest.importorskip("tokenizers")
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({f"w{n}": n for n in range(36)} | {"?": 36}, unk_token="?")
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    words.post_processor = tokenizers.processors.TemplateProcessing(
        single="w34 $A w35", special_tokens=[("w34", 34), ("w35", 35)]
    )
    words.enable_truncation(3)
    words.enable_padding(length=12)  # as MiniLM's file says; neither is done
    place = folder(tokenizer=words.to_str())
    m = load_model(place, np.float64)
    found = m.embed(["w3 w1 w4", "", "w1 w2 w3 w4 w5 w6", "so w2", [7, 8]])
    ids = [[34, 3, 1, 4, 35], [34, 35], [34, 1, 2, 3, 4, 35], [34, 36, 2, 35], [7, 8]]
    for v, tokens in zip(found, ids, strict=True):
        assert_allclose(v, by_hand(tokens), rtol=0, atol=1e-12)
    (place / "tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match=r"^embed: tokenizer\.json can't be read"):
        m.embed(["w3"])
    (place / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"^embed: FOLDER must hold tokenizer\.json"):
        m.embed(["w3"])


def test_without_the_tokenizers_package_ids_serve(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    m = load_model(folder())
    assert m.embed(TEXTS).shape == (4, 12)
    with pytest.raises(
        ValueError, match=r"^embed: text needs the tokenizers package, `pip install"
    ):
        m.embed(["w3"])


KINDS = ("Transformer", "Pooling", "Normalize")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"modules": None}, "there is no modules.json in .*: take `hidden`"),
        ({"modules": "[{"}, "modules.json must hold JSON"),
        ({"modules": {}}, "modules.json must hold list; got dict"),
        ({"modules": [3]}, "modules.json must be a list of objects with a type and a path"),
        ({"modules": [{"type": "Transformer"}]}, "a type and a path"),
        ({"modules": []}, "must be Transformer, Pooling and perhaps Normalize; got none"),
        ({"modules": modules("Transformer")}, "perhaps Normalize; got Transformer$"),
        ({"modules": modules("Transformer", "Pooling", "Dense", "Normalize")}, "got .* Dense, Nor"),
        ({"modules": modules(*KINDS, path="../1_Pooling")}, "in a folder of it; got '' and '../1_"),
        ({"modules": [{"type": "Transformer", "path": "0"}, *modules(*KINDS)[1:]]}, "got '0' and"),
        ({"pooling": None}, "must hold 1_Pooling/config.json"),
        ({"pooling": {}}, "the mean of tokens alone; got none"),
        ({"pooling": {"pooling_mode_cls_token": True}}, "got pooling_mode_cls_token in"),
        (
            {"pooling": {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}},
            "got pooling_mode_mean_tokens, pooling_mode_max_tokens in 1_Pooling/config.json",
        ),
        ({"pooling": {"pooling_mode": "lasttoken"}}, "got lasttoken in"),
        ({"pooling": {"pooling_mode": ["mean", "cls"]}}, "got mean, cls in"),
        ({"sentence_bert_config": {"do_lower_case": True}}, "do_lower_case must not be set"),
        ({"sentence_bert_config": {"max_seq_length": 0}}, "max_seq_length must be a whole number"),
        (
            {"config_sentence_transformers": {"default_prompt_name": "query"}},
            "default_prompt_name must not be set, it is not done here; got 'query'",
        ),
    ],
)
def test_a_folder_that_asks_for_more_is_refused(files, message, folder):
    m = load_model(folder(**files))
    with pytest.raises(ValueError, match=f"^embed: .*{message}"):
        m.embed(TEXTS)


def test_what_are_no_texts_is_refused(folder):
    m = load_model(folder())
    for texts in ("w3 w1", [3, 1], [["w3"], 4]):
        with pytest.raises(ValueError, match=r"^embed: texts must be a list of texts, or of lists"):
            m.embed(texts)
    with pytest.raises(ValueError, match=r"^embed: each text must have a token; text 1 has none"):
        m.embed([[3], []])
    with pytest.raises(ValueError, match="tokens must be from 0 to V - 1 = 36"):
        m.embed([[37]])
    with pytest.raises(ValueError, match=r"^embed: the folder must say how to pool"):
        model("bert").replace(folder=None).embed(TEXTS)
