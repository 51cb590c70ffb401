"""Files and configurations as they were released: other names, other heads, 16 bits, real sizes.

Each file is a golden one whose tensors are renamed, added or left out; what the model makes of it
must be what it makes of the golden file, to the last bit.
"""

import importlib
import json
import math
import shutil

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from released import RELEASED
from safetensors.numpy import save_file
from test_shelf import FOLDERS, golden, model, names, source_of

from pe_numpy import gelu, layer_norm, load_model, load_weights, softmax
from pe_numpy.models.load import PAGES, settings

GOLDEN = FOLDERS[0].parent


def page_of(name):
    kind = json.loads((GOLDEN / name / "config.json").read_text())["model_type"]
    return importlib.import_module(f"pe_numpy.models.{PAGES[kind]}")


def released(name, folder, change, **entries):
    """A folder whose tensors went through `change`, and some entries of config.json."""
    config = {**json.loads((GOLDEN / name / "config.json").read_text()), **entries}
    (folder / "config.json").write_text(json.dumps(config))
    tensors = change(dict(load_weights(GOLDEN / name)))
    save_file(tensors, folder / "model.safetensors")
    return load_model(folder, np.float64)


def inputs(name):
    """What the golden model read, as `logits` takes it."""
    g = golden(name)
    if page_of(name).KIND == "pictures":
        return {"pixels": first_pixels(g)}
    types = {"types": g["types"]} if "types" in g else {}
    return {"tokens": g["tokens"], **types, **source_of(name)}


def first_pixels(g):
    return next(x for key, x in g.items() if key.startswith("pixels"))


def without(*starts):
    return lambda tensors: {k: x for k, x in tensors.items() if not k.startswith(starts)}


def bare(prefix, *dropped):
    """Without the prefix, and without what begins as said."""
    kept = without(*dropped) if dropped else dict
    return lambda tensors: {k.removeprefix(prefix): x for k, x in kept(tensors).items()}


def beside(more, change=dict):
    """With more tensors: shapes by name, or copies of others by theirs."""

    def changed(tensors):
        made = {
            k: tensors[x].copy() if isinstance(x, str) else np.ones(x, np.float32)
            for k, x in more.items()
        }
        return {**change(tensors), **made}

    return changed


def of_layers(pattern, shape, layers=2):
    return {pattern.format(n): shape for n in range(layers)}


# ---- a whole model under other names ------------------------------------------------------------


EMBEDDING = "model.embed_tokens.weight"
WHOLE = {  # the form: golden file, what is done to its tensors
    "GPT-2, bare, with its masks": (
        "gpt2",
        beside(
            {f"h.{n}.attn.{x}": (1, 1, 32, 32) for n in (0, 1) for x in ("bias", "masked_bias")},
            bare("transformer."),
        ),
    ),
    "Llama 2, with RoPE's frequencies": (
        "llama2", beside(of_layers("model.layers.{}.self_attn.rotary_emb.inv_freq", (2,)))
    ),
    "Mistral, with RoPE's frequencies": (
        "mistral", beside(of_layers("model.layers.{}.self_attn.rotary_emb.inv_freq", (2,)))
    ),
    "DeepSeek, with RoPE's frequencies": (
        "deepseek_v3", beside({"model.layers.61.self_attn.rotary_emb.inv_freq": (3,)})
    ),
    "Qwen 2, its tied head stored": ("qwen2", beside({"lm_head.weight": EMBEDDING})),
    "Qwen 2, bare, tied": ("qwen2", bare("model.")),
    "Qwen 3, bare, with its head": ("qwen3", bare("model.")),
    "Gemma 2, its tied head stored": ("gemma2", beside({"lm_head.weight": EMBEDDING})),
    "Gemma 2, bare": ("gemma2", bare("model.")),
    "Gemma 3, its tied head stored": ("gemma3_text", beside({"lm_head.weight": EMBEDDING})),
    "Gemma 3 with pictures, saved from memory": (
        "gemma3",
        lambda tensors: {
            **{
                f"model.{k}".replace("model.language_model.model.", "model.language_model."): x
                for k, x in tensors.items()
            },
            "lm_head.weight": tensors[f"language_model.{EMBEDDING}"].copy(),
        },
    ),
    "Phi-3, bare, with its head": ("phi3", bare("model.")),
    "MPT, bare": ("mpt", bare("transformer.")),
    "BLOOM, bare": ("bloom", bare("transformer.")),
    "Pythia, with masks and frequencies": (
        "gpt_neox",
        beside(
            {
                **of_layers("gpt_neox.layers.{}.attention.bias", (1, 1, 32, 32)),
                **of_layers("gpt_neox.layers.{}.attention.masked_bias", ()),
                **of_layers("gpt_neox.layers.{}.attention.rotary_emb.inv_freq", (2,)),
            }
        ),
    ),
    "T5, with copies": (
        "t5", beside(dict.fromkeys(
            ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"), "shared.weight"
        ))
    ),
    "Whisper, bare": ("whisper", bare("model.")),
    "BERT, with heads of other tasks": (
        "bert", beside({"bert.pooler.dense.weight": (12, 12), "cls.seq_relationship.bias": (2,),
                        "bert.embeddings.position_ids": (1, 16), "classifier.weight": (2, 12),
                        "cls.predictions.decoder.bias": "cls.predictions.bias"})
    ),
    "BERT, its tied head stored": (
        "bert",
        beside({"cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight"}),
    ),
    "BERT, bare, with its head": ("bert", bare("bert.")),
    "RoFormer, bare, with its head": ("roformer", bare("roformer.")),
    "DeBERTa, its tied head stored": (
        "deberta_v2",
        beside({"cls.predictions.decoder.weight": "deberta.embeddings.word_embeddings.weight",
                "cls.predictions.decoder.bias": "cls.predictions.bias"}),
    ),
    "XLNet, bare, with its head": ("xlnet", bare("transformer.")),
    "ViT, with a pooler": (
        "vit", beside({"vit.pooler.dense.weight": (12, 12), "vit.pooler.dense.bias": (12,)})
    ),
}  # fmt: skip


def test_each_page_has_a_file_of_a_released_form():
    forms = {page_of(name).__name__ for name, _ in WHOLE.values()}
    assert forms == {f"pe_numpy.models.{page}" for page in PAGES.values()}


@pytest.mark.parametrize("form", WHOLE)
def test_a_file_as_it_was_released_gives_the_golden_logits(form, tmp_path):
    name, change = WHOLE[form]
    m = released(name, tmp_path, change)
    assert m.logits(**inputs(name)).tobytes() == model(name).logits(**inputs(name)).tobytes()


COPIES = {
    "gemma2": ("lm_head.weight", EMBEDDING),
    "gemma3_text": ("lm_head.weight", EMBEDDING),
    "deberta_v2": (
        "cls.predictions.decoder.weight", "deberta.embeddings.word_embeddings.weight"
    ),
    "bert": ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    "roformer": ("cls.predictions.decoder.bias", "cls.predictions.bias"),
    "t5": ("decoder.embed_tokens.weight", "shared.weight"),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_that_differs_from_its_original_is_refused_by_name(name, tmp_path):
    copy, original = COPIES[name]

    def nearly(tensors):
        other = tensors[original].copy()
        other.flat[3] += 1
        return {**tensors, copy: other}

    own = {"gemma3_text": "language_model."}.get(name, "")
    message = f"{copy} must be equal to {own}{original}, .* they differ".replace(".", r"\.")
    with pytest.raises(ValueError, match=message.replace(r"\.*", ".*")):
        released(name, tmp_path, nearly)


# ---- a body alone -------------------------------------------------------------------------------


BODIES = {  # golden file: what is not of the body, the names that such files have beside it
    "bert": ("cls.", {"embeddings.position_ids": (1, 16), "pooler.dense.weight": (12, 12)}),
    "roformer": ("cls.", {}),
    "roformer_electra": ("cls.", {}),
    "deberta_v2": ("cls.", {}),
    "deberta_v3": ("lm_predictions.", {"mask_predictions.dense.weight": (2,)}),
    "xlnet": ("lm_loss.", {}),
    "vit": ("classifier.", {"pooler.dense.weight": (12, 12), "pooler.dense.bias": (12,)}),
    "llama": ("lm_head.", of_layers("layers.{}.self_attn.rotary_emb.inv_freq", (2,))),
    "llama2": ("lm_head.", {}),
    "mistral": ("lm_head.", {}),
    "qwen3": ("lm_head.", {}),
    "phi3": ("lm_head.", {}),
    "deepseek_v3": ("lm_head.", {}),
    "gpt_neox": ("embed_out.", of_layers("layers.{}.attention.masked_bias", ())),
}


def same_hidden(m, name):
    given = inputs(name)
    assert m.hidden(**given).tobytes() == model(name).hidden(**given).tobytes()
    assert m.headless and not model(name).headless
    with pytest.raises(
        ValueError, match=f"logits: the file must hold a head, {m.page.HEAD}.* take h"
    ):
        m.logits(**given)


def test_all_that_may_be_a_body_is_tried():
    def own_head(name):
        m = model(name)
        return hasattr(m.page, "HEAD") and (m.page.KIND != "decoder" or "head" in m.parameters)

    alike = {"deepseek_v2", "deepseek_lite"}
    assert {folder.name for folder in FOLDERS if own_head(folder.name)} - alike == set(BODIES)


@pytest.mark.parametrize("name", BODIES)
def test_a_body_without_prefix_and_head_gives_hidden_and_no_logits(name, tmp_path):
    head, more = BODIES[name]
    same_hidden(released(name, tmp_path, beside(more, bare(page_of(name).PREFIX, head))), name)


CLASSIFIERS = {  # golden file: the head of another task in place of its own
    "bert": {"classifier.weight": (2, 12), "bert.pooler.dense.bias": (12,)},
    "roformer": {"classifier.dense.weight": (12, 12), "classifier.out_proj.weight": (2, 12)},
    "deberta_v3": {"pooler.dense.weight": (12, 12), "classifier.weight": (3, 12)},
    "xlnet": {"sequence_summary.summary.weight": (12, 12), "logits_proj.weight": (2, 12)},
    "llama": {"score.weight": (2, 16)},
    "qwen3": {"score.weight": (1, 16)},
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_of_a_classifier_the_body_is_read(name, tmp_path):
    head, _ = BODIES[name]
    same_hidden(released(name, tmp_path, beside(CLASSIFIERS[name], without(head))), name)


def test_half_a_head_is_refused(tmp_path):
    for name, part in (("bert", "cls.predictions.transform"), ("vit", "classifier.bias")):
        with pytest.raises(ValueError, match="they lack"):
            released(name, tmp_path, without(part))
        (tmp_path / "model.safetensors").unlink()


def test_a_body_that_lacks_a_layer_s_tensor_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"lack 1 tensors: bert\.encoder\.layer\.1\.output"):
        released("bert", tmp_path, bare("bert.", "cls.", "bert.encoder.layer.1.output.dense.bias"))


def test_a_model_that_writes_without_its_head_is_refused_unless_it_is_a_body(tmp_path):
    with pytest.raises(ValueError, match=r"lm_head\.weight must be among the weights"):
        released("llama", tmp_path, without("lm_head."))
    with pytest.raises(ValueError, match=r"lack 1 tensors: embed_out\.weight"):
        released("gpt_neox", tmp_path, without("embed_out."))


# ---- hidden, and what is looked at --------------------------------------------------------------


def test_hidden_is_what_the_head_reads():
    m, g = model("llama"), golden("llama")
    h = m.hidden(g["tokens"])
    assert_allclose(h @ m.parameters["head"], m.logits(g["tokens"]), rtol=0, atol=1e-12)
    assert_allclose(np.mean((h / m.parameters["norm"]) ** 2, axis=-1), 1, rtol=0, atol=1e-2)
    m, g = model("bert"), golden("bert")
    h, p = m.hidden(g["tokens"], types=g["types"]), m.parameters
    x = layer_norm(gelu(h @ p["head"]["W"] + p["head"]["b"]), **p["head"]["norm"], eps=1e-12)
    assert_allclose(x @ p["embedding"].T + p["out"]["b"], g["logits"], rtol=0, atol=1e-5)
    m, pixels = model("vit"), first_pixels(golden("vit"))
    h, head = m.hidden(pixels), m.parameters["head"]
    assert h.shape[1] > 1
    assert_allclose(h[:, 0] @ head["W"] + head["b"], m.logits(pixels), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", names("decoder"))
def test_hidden_with_a_cache_is_hidden_without(name):
    from pe_numpy import Cache

    m, tokens, cache = model(name), golden(name)["tokens"], Cache(2, 9)
    parts = [m.hidden(tokens[:, a:b], cache=cache) for a, b in ((0, 4), (4, 9))]
    assert_allclose(np.concatenate(parts, axis=1), m.hidden(tokens), rtol=0, atol=1e-10)
    assert cache.length == 9


@pytest.mark.parametrize("name", names("encoder"))
def test_who_watches_an_encoder_sees_its_weights(name):
    g, m, seen, again = golden(name), model(name), {}, {}
    h = m.hidden(g["padded"], g["real"], watch=seen)
    assert h.tobytes() == m.hidden(g["padded"], g["real"]).tobytes()
    logits = m.logits(g["padded"], g["real"], watch=again)
    assert logits.tobytes() == m.logits(g["padded"], g["real"]).tobytes()
    B, L = g["padded"].shape
    assert list(seen) == list(again) == list(range(m.settings.layers))
    for n, w in seen.items():
        assert w.shape == (B, m.settings.H, L, L)
        assert_allclose(w.sum(axis=-1), 1, rtol=0, atol=1e-12)
        hidden = np.broadcast_to(~g["real"][:, None, None], w.shape)
        assert not w[hidden].any() and (w[~hidden] > 0).all()
        assert_array_equal(w, again[n])


def test_the_weights_of_bert_s_first_layer_by_hand():
    g, m, seen = golden("bert"), model("bert"), {}
    m.hidden(g["tokens"], watch=seen)
    p, H = m.parameters, m.settings.H
    x = p["embedding"][g["tokens"]] + p["positions"][: g["tokens"].shape[1]] + p["types"][0]
    x, layer = layer_norm(x, **p["norm"], eps=1e-12), p["layers"]["0"]
    for b, h in np.ndindex(len(x), H):
        q, k = (np.split(x[b] @ layer[f"W_{to}"] + layer[f"b_{to}"], H, axis=-1)[h] for to in "qk")
        weights = softmax(q @ k.T / math.sqrt(q.shape[-1]))
        assert_allclose(seen[0][b, h], weights, rtol=0, atol=1e-12)


def test_who_watches_a_reader_of_pictures_sees_its_weights():
    m, pixels, seen = model("vit"), first_pixels(golden("vit")), {}
    h = m.hidden(pixels, watch=seen)
    assert list(seen) == list(range(m.settings.layers))
    for w in seen.values():
        assert w.shape == (len(h), m.settings.H, h.shape[1], h.shape[1])
        assert_allclose(w.sum(axis=-1), 1, rtol=0, atol=1e-12)


def test_hidden_refuses_by_its_own_name():
    for m in (model("bert"), model("llama")):
        with pytest.raises(ValueError, match=r"^hidden: tokens must have the axes \(B, L\)"):
            m.hidden([3, 1])
        with pytest.raises(ValueError, match=r"^hidden: which of the tokens are real must be bool"):
            m.hidden([[3, 1]], [[1, 1]])
    with pytest.raises(ValueError, match=r"^hidden: types must have the tokens' shape"):
        model("bert").hidden([[3, 1]], types=[0])
    with pytest.raises(ValueError, match=r"^hidden: pixels must have the axes"):
        model("vit").hidden(np.zeros((3, 8, 8)))


# ---- 16 bits ------------------------------------------------------------------------------------


def as_bfloat16(tensors, path):
    """Write the upper halves of float32."""
    header, numbers = {}, b""
    for key, x in tensors.items():
        half = (np.ascontiguousarray(x, "<f4").view("<u4") >> 16).astype("<u2").tobytes()
        place = [len(numbers), len(numbers) + len(half)]
        header[key] = {"dtype": "BF16", "shape": list(x.shape), "data_offsets": place}
        numbers += half
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + numbers)


def leaves(tree):
    return [x for part in tree.values() for x in leaves(part)] if isinstance(tree, dict) else [tree]


@pytest.mark.parametrize("bits", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["bert", "gemma3_text", "gpt2", "llama", "t5", "vit", "whisper"])
def test_a_file_of_16_bits_is_computed_in_float32(name, bits, tmp_path):
    file, wide = tmp_path / "model.safetensors", tmp_path / "wide"
    wide.mkdir()
    for folder in (tmp_path, wide):
        shutil.copy(GOLDEN / name / "config.json", folder)
    tensors = {k: np.float32(1.1) * x for k, x in load_weights(GOLDEN / name).items()}
    if bits == "float16":
        half = {k: x.astype(np.float16) for k, x in tensors.items()}
        save_file(half, file)
        same = {k: x.astype(np.float32) for k, x in half.items()}
    else:
        as_bfloat16(tensors, file)
        upper = np.uint32(0xFFFF0000)
        same = {k: (x.view(np.uint32) & upper).view(np.float32) for k, x in tensors.items()}
    assert not any(np.array_equal(same[k], x) for k, x in tensors.items() if x.ndim > 1)
    save_file(same, wide / "model.safetensors")
    m, given = load_model(tmp_path), inputs(name)
    assert {x.dtype for x in leaves(m.parameters)} == {np.dtype(np.float32)}
    logits = m.logits(**given)
    assert m.dtype == logits.dtype == np.float32
    assert logits.tobytes() == load_model(wide).logits(**given).tobytes()


# ---- configurations -----------------------------------------------------------------------------


def ropes(s):
    """The frequencies of all that turns, of one kind of layer or of several."""
    return [rope.frequencies for rope in getattr(s, "ropes", None) or [s.rope]]


def seen_of(s, key):
    """A setting; of RoPE its base, read off the two fastest pairs, and its number of pairs."""
    if key == "pairs":
        return {f.shape[-1] for f in ropes(s)}.pop()
    if key == "base":
        bases = {float(f"{(f[0] / f[1]) ** f.shape[-1]:.5g}") for f in ropes(s)}
        return bases if len(bases) > 1 else bases.pop()
    return getattr(s, key)


@pytest.mark.parametrize("name", RELEASED)
def test_a_released_configuration_says_what_its_model_is(name):
    config, count, expected = RELEASED[name]
    page = importlib.import_module(f"pe_numpy.models.{PAGES[config['model_type']]}")
    s = settings(page, config)
    assert {key: seen_of(s, key) for key in expected} == expected
    replaced = getattr(page, "MAY_LACK", ()) if getattr(s, "tied", True) else ()
    shapes = [shape for key, (_, shape) in page.weights(s).items() if key not in replaced]
    assert count is None or sum(map(math.prod, shapes)) == count


def test_each_page_has_two_released_configurations():
    pages = [PAGES[config["model_type"]] for config, _, _ in RELEASED.values()]
    assert set(pages) == set(PAGES.values()) and min(map(pages.count, pages)) > 1
