"""What a page does with a damaged config.json, and what a refused call leaves of a cache."""

import copy
import itertools
import json
import math
import re
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from safetensors.numpy import save_file
from test_shelf import FOLDERS, model, names, source_of

from pe_numpy import Cache, beam_search, greedy, load_weights, rope_frequencies, sample, speculative
from pe_numpy.models import load
from pe_numpy.models.entries import HOLDS, entry
from pe_numpy.models.rope_config import rope_from_config


def test_a_number_has_bounds():
    """First of all: without them the tests below would take minutes and all memory."""
    for key, least, most in (
        ("hidden_size", 1, 2**24),
        ("num_hidden_layers", 0, 1000),
        ("n_routed_experts", 1, 1000),
        ("max_relative_positions", -1, 2**24),
    ):
        for n in (least, most, np.int64(most)):
            assert entry("page", {key: n}, key) == n
        for n in (least - 1, most + 1, True, 2.0):
            with pytest.raises(
                ValueError, match=f"page: {key} must be a whole number from {least}"
            ):
                entry("page", {key: n}, key)


def state(cache):
    """Give all that a cache holds of the tokens that it has read."""
    n = cache.length
    held = {layer: tuple(x[..., :n, :] for x in rooms) for layer, rooms in cache.held.items()}
    rest = {key: x for key, x in vars(cache).items() if key not in ("held", "cache", "owner")}
    return copy.deepcopy({**rest, "held": held}), cache.owner


def assert_same(a, b):
    """Arrays may stand in dictionaries and tuples."""
    if isinstance(a, np.ndarray):
        assert_array_equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    else:
        assert a == b


def broken(positions):
    raise ValueError("no positions")


@pytest.mark.parametrize("held", [0, 5, 12])
@pytest.mark.parametrize("name", names("decoder") + names("encoder-decoder"))
def test_a_refused_call_leaves_the_cache_as_it_was(name, held):
    m = model(name)
    tokens = np.arange(2 * 14).reshape(2, 14) % 31 + 3
    source = source_of(name)
    cache = Cache(2, 13)
    if held:
        m.logits(tokens[:, :held], cache=cache, **source)
    before = state(cache)
    for wrong, call in (
        ("tokens must be from 0", lambda: m.logits([[3], [37]], cache=cache, **source)),
        ("room for 13", lambda: m.logits(tokens, cache=cache, **source)),
        (
            "no positions",
            lambda: m.replace(places=broken).logits(tokens[:, :1], cache=cache, **source),
        ),
        ("boolean", lambda: m.logits(tokens[:, :1], real=[[1], [1]], cache=cache, **source)),
    ):
        with pytest.raises(ValueError, match=wrong):
            call()
        assert_same(state(cache), before)
    whole = m.logits(tokens[:, :13], **source)[:, held:]
    rest = m.logits(tokens[:, held:13], cache=cache, **source)
    assert np.abs(rest - whole).max() < 1e-10


# ---- damaged configurations ---------------------------------------------------------------------

WRONG = ("3", "false", True, [2], {"a": 1}, None, "missing", 2.5, -1, 0, 10**9, 10**400, math.nan)
NUMBERS = re.compile(  # any number above 0 is obeyed; of eps and shares, any up to 1
    "rope_theta|.*_base(_freq)?|.*factor|beta_.*|.*scalar|.*softcapping|.*eps(ilon)?|.*mscale.*"
)
FLAGS = {"use_parallel_residual", "rotary_value", "tie_word_embeddings", "scale_decoder_outputs"}
COUNTS = re.compile(
    "num_hidden_layers|n_layers?|num_(decoder_)?layers|(en|de)coder_layers|first_k.*|mscale.*|conv_k.*"
)
# What transformers 5.23.0 takes for what is missing (its configuration_*.py), where a page does.
GLOBAL, LOCAL = {"rope_theta": 1e6}, {"rope_theta": 1e4}
PLAIN = {"rope_theta": 1e4, "rope_parameters": LOCAL}
LATENT = {"rms_norm_eps": 1e-6, "rope_theta": 1e4, "rope_parameters": LOCAL, "mscale": 0,
          "mscale_all_dim": 0, "original_max_position_embeddings": 800}  # fmt: skip
LEFT_OUT = {
    "bert": {"type_vocab_size": 2, "layer_norm_eps": 1e-12},
    "bloom": {"layer_norm_epsilon": 1e-5},
    "deberta-v2": {"max_relative_positions": -1, "conv_kernel_size": 0, "layer_norm_eps": 1e-7,
                   "max_position_embeddings": 512},
    "deepseek_v2": {**LATENT, "q_lora_rank": 1536, "topk_method": "greedy"},
    "deepseek_v3": {**LATENT, "q_lora_rank": 1536, "n_group": 8, "topk_group": 4},
    "gemma2": {**PLAIN, "rms_norm_eps": 1e-6,
               "layer_types": ["sliding_attention", "full_attention"]},
    "gemma3_text": {"vocab_size": 262_208, "num_attention_heads": 8, "num_key_value_heads": 4,
                    "head_dim": 256, "rms_norm_eps": 1e-6, "query_pre_attn_scalar": 256,
                    "layer_types": ["sliding_attention"] * 2, "full_attention": GLOBAL,
                    "sliding_attention": LOCAL, "full_attention.rope_theta": 1e6,
                    "sliding_attention.rope_theta": 1e4,
                    "rope_parameters": {"full_attention": GLOBAL, "sliding_attention": LOCAL}},
    "gpt2": {"layer_norm_epsilon": 1e-5, "n_inner": 4 * 12},
    "gpt_neox": {"layer_norm_eps": 1e-5, "rope_theta": 1e4, "partial_rotary_factor": 0.25,
                 "rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.25}},
    "llama": {"num_key_value_heads": 4, "rms_norm_eps": 1e-6, "rope_theta": 1e4,
              "rope_parameters": LOCAL, "original_max_position_embeddings": 64},
    "mistral": {**PLAIN, "rms_norm_eps": 1e-6, "sliding_window": 4096, "head_dim": 3},
    "mpt": {"expansion_ratio": 4, "layer_norm_epsilon": 1e-5},
    "phi3": {"num_key_value_heads": 3, "rms_norm_eps": 1e-5, "partial_rotary_factor": 1.0,
             "original_max_position_embeddings": 4096, "rope_theta": 1e4, "sliding_window": None,
             "rope_parameters": LOCAL},
    "qwen2": {**PLAIN, "rms_norm_eps": 1e-6, "tie_word_embeddings": False},
    "qwen3": {**PLAIN, "rms_norm_eps": 1e-6},
    "roformer": {"type_vocab_size": 2, "layer_norm_eps": 1e-12, "rotary_value": False,
                 "embedding_size": 12},
    "t5": {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
           "layer_norm_epsilon": 1e-6, "num_decoder_layers": 2,
           "tie_word_embeddings": True, "feed_forward_proj": "relu"},
    "vit": {"num_channels": 3, "layer_norm_eps": 1e-12, "id2label": {"0": "no", "1": "yes"}},
    "xlnet": {"layer_norm_eps": 1e-12},
}  # fmt: skip
NULL_SAYS = "q_lora_rank", "sliding_window"  # no such thing; that they are missing says another
OTHER_WORDS = {"head_dim": "hidden_size", "rope_parameters": "rope_theta|rope_type",
               "text_config": "hidden_size", "num_hidden_layers": "layer_types",
               "full_attention": "rope_type", "sliding_attention": "rope_type"}  # fmt: skip


def told(x):
    """Give settings as text."""
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, list | tuple):
        return [told(each) for each in x]
    return x


def outcome(page, config):
    """What the page makes of a configuration, or how it refuses it."""
    try:
        s = load.settings(page, config)
        return repr({key: told(x) for key, x in vars(s).items()}), page.weights(s)
    except ValueError as error:
        return str(error)


def places(config):
    """Where the entries stand: in the configuration, and in the dictionaries within."""
    for key, x in config.items():
        if key != "model_type":
            yield (key,)
        if isinstance(x, dict) and key not in ("vision_config", "id2label", "label2id"):
            yield from ((key, *rest) for rest in places(x))


def damaged(config, place, value):
    config = copy.deepcopy(config)
    room = config
    for key in place[:-1]:
        room = room[key]
    if value == "missing":
        room.pop(place[-1], None)
    else:
        room[place[-1]] = value
    return config


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_damaged_configuration_is_refused_by_name_or_means_what_transformers_takes(folder):
    config = json.loads((folder / "config.json").read_text())
    page = model(folder.name).page
    right = outcome(page, config)
    assert isinstance(right, tuple)
    wrongs = []
    known = LEFT_OUT.get(config.get("text_config", config)["model_type"], {})
    known = {"scale_decoder_outputs": config.get("tie_word_embeddings"), **known}  # of T5
    unsaid = itertools.product([(key,) for key in HOLDS if key not in config], ("3", -1))
    for place, value in (*itertools.product(places(config), WRONG), *unsaid):
        key, wrong = place[-1], damaged(config, place, value)
        try:
            found = outcome(page, wrong)
        except Exception as error:  # the test says which
            found = repr(error)
        if isinstance(found, str):
            named = re.search(rf"{key}|{OTHER_WORDS.get(key, key)}", found)
            fine = named and "config.json" in found
        else:
            fine = found == right or obeyed(key, value)
        for said in (".".join(place[-2:]), key):
            if not fine and value in (None, "missing") and said in known:
                fine = found == outcome(page, damaged(config, place, known[said]))
        if not fine:
            wrongs.append((place, value, found if isinstance(found, str) else "other numbers"))
    assert not wrongs, "\n".join(map(str, wrongs))


def obeyed(key, value):
    """Whether this is no damage but another choice."""
    if value is True:
        return key in FLAGS
    if value is None:
        return key in NULL_SAYS
    if value == 0:
        return COUNTS.fullmatch(key) or key == "max_relative_positions"
    if (key, value) == ("max_relative_positions", -1):
        return True
    if type(value) in (int, float):
        return NUMBERS.fullmatch(key) and 0 < value < 1e300
    return key == "id2label" and isinstance(value, dict)


# ---- what else a file and its configuration may say ---------------------------------------------


def test_rope_is_refused_by_the_name_of_its_entry():
    for key in ("rope_parameters", "rope_scaling", "text_config"):
        for value in ("3", 5, True, [2], 0, False, [], ""):
            with pytest.raises(ValueError, match=f"rope_from_config: {key} must be an object; got"):
                rope_from_config({"head_dim": 8, "rope_theta": 1e4, key: value})
    for value in ("3", 5, [2]):
        layers = {"full_attention": value, "sliding_attention": {"rope_theta": 1e4}}
        config = {"head_dim": 8, "layer_types": ["full_attention"], "rope_parameters": layers}
        with pytest.raises(ValueError, match="rope_from_config: full_attention must be an object"):
            rope_from_config(config)
    with pytest.raises(ValueError, match="rotary_dim must be at most the width of a head, 8; got"):
        rope_from_config({"head_dim": 8, "rope_theta": 1e4, "rotary_dim": 10})
    word = {"head_dim": 8, "rope_theta": 1e4, "sliding_window_pattern": "LLLG"}
    assert rope_from_config(word).frequencies.shape == (4,)


def test_gemma_3_takes_null_for_the_defaults_of_its_layers():
    for layer, base in (("full_attention", 1e6), ("sliding_attention", 1e4)):
        config = {"model_type": "gemma3_text", "head_dim": 8, "layer_types": [layer]}
        found = rope_from_config({**config, "rope_parameters": {layer: None}})
        assert_array_equal(found.frequencies, rope_frequencies(8, base))
    other = {"head_dim": 8, "layer_types": ["full_attention"]}
    assert rope_from_config({**other, "rope_parameters": {"full_attention": None}})[0] is None


@pytest.mark.parametrize("value", [["llama"], {"llama": 1}, 3, None, True, "lstm"])
def test_a_model_type_that_is_no_name_of_a_page_is_refused(value):
    with pytest.raises(
        ValueError, match=r"load_model: model_type must be one of .* in config.json"
    ):
        load.load_model(FOLDERS[0].parent / "llama", changes={"model_type": value})


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "qwen3", "phi3", "deepseek_v3"])
def test_a_file_without_a_head_must_say_that_it_is_tied(name, tmp_path):
    tensors = load_weights(FOLDERS[0].parent / name)
    tensors.pop("lm_head.weight", None)
    save_file(tensors, tmp_path / "model.safetensors")
    config = json.loads((FOLDERS[0].parent / name / "config.json").read_text())
    said = {**config, "tie_word_embeddings": True}
    for tied in (False, None):  # null, or nothing, is false in these families
        (tmp_path / "config.json").write_text(json.dumps({**said, "tie_word_embeddings": tied}))
        with pytest.raises(ValueError, match=r"lm_head\.weight must be among .* tie_word_embedd"):
            load.load_model(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(said))
    m = load.load_model(tmp_path)
    assert "head" not in m.parameters
    assert m.logits([[3, 1]]).shape == (1, 2, 37)


def test_deepseek_v3_has_eight_groups_and_uses_four_unless_it_says_otherwise():
    config = {**model("deepseek_v3").config, "n_routed_experts": 16}
    bare = {key: x for key, x in config.items() if key not in ("n_group", "topk_group")}
    s = load.settings(model("deepseek_v3").page, bare)
    assert (s.groups, s.groups_used) == (8, 4)
    for key, wrong in (("n_group", 3), ("topk_group", 9), ("num_experts_per_tok", 17)):
        with pytest.raises(ValueError, match=f"deepseek: {key} must (divide|be at most) n_"):
            load.settings(model("deepseek_v3").page, {**bare, key: wrong})
    assert load.settings(model("deepseek_v3").page, {**bare, "num_experts_per_tok": 8}).used == 8
    rule = "num_experts_per_tok must be at most 8, the experts in the 4 groups .*; got 9 in config"
    with pytest.raises(ValueError, match=rf"deepseek: {rule}\.json"):
        load.settings(model("deepseek_v3").page, {**bare, "num_experts_per_tok": 9})
    limited = {key: x for key, x in model("deepseek_v2").config.items() if key != "n_group"}
    with pytest.raises(ValueError, match=r"deepseek: config\.json must have n_group"):
        load.settings(model("deepseek_v2").page, limited)


def test_deberta_without_relative_attention_is_refused():
    config = model("deberta_v3").config
    for key, default in (
        ("relative_attention", False),
        ("share_att_key", False),
        ("norm_rel_ebd", "none"),
    ):
        bare = {name: x for name, x in config.items() if name != key}
        for wrong in (bare, {**bare, key: default}):
            with pytest.raises(ValueError, match=f"deberta: {key} must be .* got {default!r}"):
                load.settings(model("deberta_v3").page, wrong)


def test_heads_must_divide_what_they_share():
    for name, key, wrong, whole in (
        ("gpt2", "n_head", 5, "n_embd"),
        ("llama", "num_key_value_heads", 3, "num_attention_heads"),
        ("whisper", "decoder_attention_heads", 5, "d_model"),
    ):
        with pytest.raises(ValueError, match=f"{name}: {key} must divide {whole}; got {wrong} and"):
            load.load_model(FOLDERS[0].parent / name, changes={key: wrong})
    freely = load.settings(model("qwen3").page, {**model("qwen3").config, "hidden_size": 13})
    assert (freely.D, freely.H) == (13, 4)  # its heads have a width of their own


def test_a_wrong_number_of_layers_costs_no_memory():
    tracemalloc.start()
    try:
        for n in (100_000, 10**9):
            with pytest.raises(ValueError, match="num_hidden_layers must be a whole number from 0"):
                load.load_model(FOLDERS[0].parent / "llama", changes={"num_hidden_layers": n})
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["bert", "vit"])
def test_what_does_not_write_is_refused_by_all_that_decode(name):
    m, llama = model(name), model("llama")
    rng = np.random.default_rng(0)
    calls = {
        "greedy": lambda: greedy(m.parameters, m, [[3]], 2),
        "sample": lambda: sample(m.parameters, m, [[3]], 2, rng),
        "beam_search": lambda: beam_search(m.parameters, m, [[3]], 2, 2, 1),
        "speculative": lambda: speculative(m.parameters, m, m.parameters, m, [[3]], 2, rng),
    }
    for function, call in calls.items():
        with pytest.raises(
            ValueError, match=f"{function}: model must be one that writes; got {name}"
        ):
            call()
    if name == "bert":
        with pytest.raises(
            ValueError, match="speculative: model must be one that writes; got bert"
        ):
            speculative(llama.parameters, llama, m.parameters, m, [[3]], 2, rng)


@pytest.mark.parametrize(
    ("kind", "width"),
    [("gemma2", 256), ("qwen3", 128), ("glm", 128), ("glm4", 128), ("qwen3_next", 256),
     ("llama4_text", 128), ("qwen3_vl_text", 128)],
)  # fmt: skip
def test_heads_have_the_width_that_transformers_fills_in(kind, width):
    found = rope_from_config({"model_type": kind, "hidden_size": 24, "num_attention_heads": 3})
    share = {"glm": 0.5, "glm4": 0.5, "qwen3_next": 0.25}.get(kind, 1)
    assert 2 * found.frequencies.shape[-1] == share * width


@pytest.mark.parametrize("name", ["qwen2", "qwen3"])
def test_qwen_has_no_layer_with_a_window(name):
    for types in (["full_attention", "sliding_attention"], ["full_attention"], []):
        with pytest.raises(
            ValueError, match=f"{name}: layer_types must be .'full_attention', 'full"
        ):
            load.load_model(FOLDERS[0].parent / name, changes={"layer_types": types})
    m = load.load_model(FOLDERS[0].parent / name, changes={"layer_types": None})
    assert m.logits([[3, 1]]).shape == (1, 2, 37)
