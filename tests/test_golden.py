"""Golden files: what public libraries computed on random weights, computed again by the package.

The files, the versions of the libraries and the script that ran them are in tests/golden. Where a
library departs from the paper, the name of the test says so and its body says how.
"""

import hashlib
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pe_numpy import (
    alibi_bias,
    alibi_slopes,
    attend,
    attention,
    attention_blockwise,
    attention_temperature,
    axial_frequencies,
    causal_mask,
    chunk_mask,
    cope_bias,
    deberta_bucket,
    deberta_scores,
    decomposed_scores,
    delta_rule,
    detr_sine,
    document_mask,
    forgetting_bias,
    fourier_features,
    gated_linear_attention,
    laplacian_encoding,
    log_cpb_coordinates,
    merge_attention,
    merge_heads,
    mla_scores,
    mrope_frequencies,
    mrope_positions,
    nezha_table,
    offset_bias,
    offset_index,
    pack,
    padding_mask,
    partial_attention,
    patch_coordinates,
    pope,
    relative_distance,
    relative_key_query_scores,
    relative_shift,
    relu,
    resize_matrix,
    retention,
    rms_norm,
    rope,
    rope_frequencies,
    rope_nd,
    rotary_values,
    shaw_scores,
    shaw_values,
    sinusoidal,
    sinusoidal_2d,
    split_heads,
    t5_bias,
    t5_bucket,
    timing_signal,
    transformer_xl_scores,
    window_mask,
    xpos,
    zigzag,
)
from pe_numpy.models.rope_config import rope_from_config
from pe_numpy.rotary.rope import rope_convert_weights
from pe_numpy.rotary.scaling import (
    dynamic_ntk_scaling,
    linear_scaling,
    llama3_scaling,
    yarn_scaling,
)

FILES = sorted((Path(__file__).parent / "golden").glob("*.npz"))
LIBRARIES = "torch transformers timm segment_anything x_transformers networkx fla".split()
SAME = 1e-13  # the library computed in float64 throughout
NEAR = 1e-6  # somewhere inside, the library rounds to float32
H, L, S, K = 3, 5, 7, 6
MEMORY = S - L
LATE, KEYS = np.arange(MEMORY, S), np.arange(S)  # the last L of S positions, and all of them


def golden(name):
    """The arrays of one file, floating point as float64."""
    with np.load(Path(__file__).parent / "golden" / f"{name}.npz", allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    return {key: a.astype(np.float64) if a.dtype.kind == "f" else a for key, a in arrays.items()}


def linear(g, name, x):
    """A linear layer of the library: x W^T + b."""
    return x @ g[f"{name}.weight"].T + g.get(f"{name}.bias", 0)


def project(g, name, x, n_heads=H):
    """A linear layer, cut into heads: (B, L, D) to (B, H, L, K)."""
    return split_heads(linear(g, name, x), n_heads)


def agree(g, output, weights, atol, out):
    """Whether weights, and the output behind the layer's last projection, are the library's."""
    assert_allclose(weights, g["probabilities"], rtol=0, atol=atol)
    assert_allclose(linear(g, out, merge_heads(output)), g["output"], rtol=0, atol=atol)


# ---- T5 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("direction", "both"), [("bidirectional", True), ("causal", False)])
def test_t5_buckets_are_those_of_t5_with_the_past_in_the_lower_half(direction, both):
    g = golden("t5_buckets")
    for size, expected in zip(g["sizes"], g[direction], strict=True):
        assert_array_equal(t5_bucket(g["distance"], *size, bidirectional=both), expected)


def test_t5_encoder_is_attention_without_a_scale_and_with_a_bias():
    g = golden("t5_encoder")
    bias = t5_bias(g["relative_attention_bias.weight"], relative_distance(range(L), KEYS), 6)
    assert_array_equal(bias, g["bias"][0])
    q, k, v = project(g, "q", g["x"]), project(g, "k", g["memory"]), project(g, "v", g["memory"])
    agree(g, *attention(q, k, v, bias=bias, scale=1.0), SAME, out="o")
    assert np.abs(attention(q, k, v, bias=bias)[1] - g["probabilities"]).max() > 0.1  # 1/sqrt(K)


def test_t5_decoder_with_a_cache_counts_its_queries_from_the_end():
    g = golden("t5_decoder")
    table, distance = g["relative_attention_bias.weight"], relative_distance(LATE, KEYS)
    bias = t5_bias(table, distance, 6, bidirectional=False)
    assert_array_equal(bias, g["bias"][0])
    q, k, v = (project(g, name, g["x"]) for name in "qkv")
    mask = causal_mask(LATE, KEYS)
    result = attention(q[..., MEMORY:, :], k, v, mask=mask, bias=bias, scale=1.0)
    agree(g, *result, SAME, out="o")


def test_mpnet_adds_the_bias_of_t5_to_scaled_scores():
    g = golden("t5_mpnet")
    q, k = (project(g, name, g["x"]) for name in "qk")
    at = np.arange(q.shape[-2])
    weights = attention(q, k, k, bias=t5_bias(g["table"], relative_distance(at, at)))[1]
    assert_allclose(weights, g["probabilities"], rtol=0, atol=SAME)


def test_wavlm_multiplies_the_bias_by_a_gate_of_each_query_and_head():
    g = golden("t5_wavlm")
    q, k, v = (project(g, f"{name}_proj", g["x"]) for name in "qkv")
    bias = t5_bias(g["rel_attn_embed.weight"], relative_distance(KEYS, KEYS), max_distance=6)
    assert_allclose(bias, g["bias"][:H], rtol=0, atol=SAME)
    a_and_b = linear(g, "gru_rel_pos_linear", split_heads(g["x"], H)).reshape(*q.shape[:-1], 2, 4)
    a, b = 1 / (1 + np.exp(-np.moveaxis(a_and_b.sum(-1), -1, 0)[..., None]))  # (B, H, S, 1) each
    gate = a * (b * g["gru_rel_pos_const"] - 1) + 2
    output = attention(q, k, v, bias=gate * bias)[0]
    assert_allclose(linear(g, "out_proj", merge_heads(output)), g["output"], rtol=0, atol=SAME)


def test_layoutlmv3_divides_three_biases_with_the_product():
    g = golden("t5_layoutlmv3")
    q, k = (project(g, name, g["x"]) for name in ("query", "key"))
    left, bottom = g["boxes"][..., 0], g["boxes"][..., 3]
    bias = t5_bias(g["rel_pos_bias.weight"].T, relative_distance(KEYS, KEYS))
    for name, edge in (("x", left), ("y", bottom)):
        table = g[f"rel_pos_{name}_bias.weight"].T
        bias = bias + t5_bias(table, relative_distance(edge, edge), max_distance=256)
    weights = attention(q, k, k, bias=bias / np.sqrt(K))[1]
    assert_allclose(weights, g["probabilities"], rtol=0, atol=SAME)


# ---- ALiBi --------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["bloom", "mpt"])
def test_alibi_slopes_are_those_of_bloom_and_mpt_for_every_number_of_heads(library):
    g = golden("alibi_slopes")
    slopes = np.concatenate([alibi_slopes(n) for n in g["n_heads"]])
    assert_allclose(slopes, g[library], rtol=NEAR)


def test_bloom_adds_a_bias_of_the_key_alone_which_differs_by_a_constant_of_each_query():
    # slope j in place of -slope (i - j): a softmax does not see the difference, slope i. Padding on
    # the left has position 0 there, and is masked.
    g = golden("alibi_bloom")
    at = np.maximum(np.cumsum(g["real"], axis=1) - 1, 0)  # (B, S)
    seen = causal_mask(at, at) & (g["real"] == 1)[:, None, :]  # (B, S, S)
    for n_heads in (8, 12):
        slopes = alibi_slopes(n_heads)
        of_keys = g[f"alibi_{n_heads}"].reshape(2, n_heads, 1, S)
        by_distance = alibi_bias(slopes, relative_distance(at, at))  # (B, H, S, S)
        lost = slopes[:, None, None] * at[:, None, :, None]  # (B, H, S, 1)
        difference = np.where(seen[:, None], of_keys - lost - by_distance, 0)
        assert_allclose(difference, np.zeros((2, n_heads, S, S)), rtol=0, atol=NEAR)


def test_bloom_attends_with_padding_and_cache_as_alibi_by_distance_does():
    g = golden("alibi_bloom")
    qkv = linear(g, "query_key_value", g["x"]).reshape(2, S, 12, 3, 2)  # three for each head
    q, k, v = np.moveaxis(qkv, (3, 2), (0, 2))  # each (B, H, S, K)
    at = np.cumsum(g["real"], axis=1) - 1
    bias = alibi_bias(alibi_slopes(12), relative_distance(at, at))
    mask = causal_mask(at, at)[:, None] & padding_mask(g["real"].sum(axis=1), S, side="left")
    output, weights = attention(q, k, v, mask=mask, bias=bias)
    agree(g, output[..., MEMORY:, :], weights[..., MEMORY:, :], NEAR, out="dense")


@pytest.mark.parametrize(("n_heads", "length"), [(8, S), (12, S + 2)])
def test_mpt_has_the_bias_of_the_last_query_for_all_queries_and_the_same_weights(n_heads, length):
    # Another bias of the key alone, for causal attention.
    slopes, at = alibi_slopes(n_heads), np.arange(length)
    of_keys = golden("alibi_mpt")[f"alibi_{n_heads}"]
    last = alibi_bias(slopes, relative_distance([length - 1], at))
    assert_allclose(last, of_keys, rtol=NEAR, atol=0)
    q, k, v = np.random.default_rng(0).standard_normal((3, n_heads, length, K))
    _, weights = attention(q, k, v, mask=causal_mask(at, at), bias=of_keys)
    bias = alibi_bias(slopes, relative_distance(at, at))
    _, expected = attention(q, k, v, mask=causal_mask(at, at), bias=bias)
    assert_allclose(weights, expected, rtol=0, atol=NEAR)


def test_an_encoder_of_x_transformers_adds_the_symmetric_bias():
    g, slopes = golden("alibi_encoder"), alibi_slopes(12)
    last = alibi_bias(slopes, relative_distance(LATE, KEYS))
    assert_allclose(last, g["last"], rtol=0, atol=NEAR)
    own = alibi_bias(slopes, relative_distance(g["q_positions"], g["k_positions"]))
    assert_allclose(own, g["own"], rtol=0, atol=NEAR)


# ---- RoPE ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("library", "layout", "turned"),
    [
        ("llama", "half", K),
        ("gpt_neox", "half", 6),  # of 12
        ("gptj", "interleaved", 4),  # of 10
        ("roformer", "interleaved", K),
    ],
)
def test_rope_turns_queries_and_keys_as_four_models_do(library, layout, turned):
    g = golden(f"rope_{library}")
    positions, frequencies = g["positions"][:, None, :], rope_frequencies(turned)
    for x in "qk":
        result = rope(g[x], positions, frequencies, layout)
        assert_allclose(result, g[f"{x}_turned"], rtol=0, atol=NEAR)
        other = rope(g[x], positions, frequencies, "half" if layout != "half" else "interleaved")
        assert np.abs(other - g[f"{x}_turned"]).max() > 1


def test_weights_are_reordered_as_libraries_do_when_they_load_interleaved_models():
    g = golden("rope_weights")
    assert_array_equal(rope_convert_weights(g["weight"], H), g["weight_there"])
    assert_array_equal(rope_convert_weights(g["bias"], H), g["bias_there"])
    assert_array_equal(rope_convert_weights(g["weight"], H, to="interleaved"), g["weight_back"])


@pytest.mark.parametrize(
    ("name", "frequencies", "factor"),
    [("llama_attention", rope_frequencies(K), 1.0), ("yarn_attention", *yarn_scaling(K, 4.0, 256))],
)
def test_llama_attends_with_rope_and_with_yarn_whose_factor_enters_scores_twice(
    name, frequencies, factor
):
    g = golden(name)
    q, k, v = (
        project(g, f"{n}_proj", g["x"], heads) for n, heads in (("q", 4), ("k", 2), ("v", 2))
    )
    k, v = np.repeat(k, 2, axis=1), np.repeat(v, 2, axis=1)  # two query heads share a key head
    q, k = (factor * rope(x, g["positions"], frequencies, "half") for x in (q, k))
    mask = causal_mask(LATE, KEYS)
    agree(g, *attention(q[..., MEMORY:, :], k, v, mask=mask), NEAR, out="o_proj")
    if factor > 1:
        unscaled = attention(q[..., MEMORY:, :] / factor, k / factor, v, mask=mask)[1]
        assert np.abs(unscaled - g["probabilities"]).max() > 0.01


@pytest.mark.parametrize("absorbed", [True, False])
def test_deepseek_attends_with_latent_vectors_one_turned_key_and_yarns_scale(absorbed):
    g = golden("latent_attention")
    d_n, d_r, r, d_v = 6, 4, 5, 7
    q = linear(g, "q_a_proj", g["x"][:, MEMORY:])
    q = project(g, "q_b_proj", rms_norm(q, g["q_a_layernorm.weight"], 1e-6))
    down = linear(g, "kv_a_proj_with_mqa", g["x"])  # (B, S, r + d_r)
    latent = rms_norm(down[..., :r], g["kv_a_layernorm.weight"], 1e-6)
    assert_allclose(latent, g["cached"][:, 0], rtol=0, atol=NEAR)
    up = g["kv_b_proj.weight"].reshape(H, d_n + d_v, r)  # keys, then values, head by head
    w_uk, w_uv = up[:, :d_n], up[:, d_n:]
    positions, (frequencies, _) = g["positions"], yarn_scaling(d_r, 4.0, 256)
    x = q[..., :d_n], q[..., d_n:], latent, down[..., r:], w_uk, positions[MEMORY:], positions
    scores = mla_scores(*x, frequencies, absorbed=absorbed) * (0.1 * math.log(4) + 1) ** 2
    mask = causal_mask(LATE, KEYS)
    if absorbed:  # the latent vectors serve as values, too
        output, weights = attend(scores, latent[:, None], mask)
        output = output @ np.swapaxes(w_uv, -1, -2)
    else:
        output, weights = attend(scores, latent[:, None] @ np.swapaxes(w_uv, -1, -2), mask)
    agree(g, output, weights, NEAR, out="o_proj")
    plain = attend(mla_scores(*x, frequencies), latent[:, None], mask)[1]
    assert np.abs(plain - g["probabilities"]).max() > 0.01  # without YaRN's scale


def scalings(kind):
    """The cases of one kind: parameters, frequencies and the factor of attention."""
    g = golden("rope_scaling")
    for n in itertools.count():
        if f"{kind}.{n}.parameters" not in g:
            assert n > 1
            return
        names = ("parameters", "frequencies", "attention_factor")
        yield [g[f"{kind}.{n}.{name}"] for name in names]


def test_linear_scaling_is_that_of_the_library():
    for (d, base, _, factor), expected, attention_factor in scalings("linear"):
        scaled = linear_scaling(rope_frequencies(int(d), base), factor)
        assert_allclose(scaled, expected, rtol=NEAR)
        assert attention_factor == 1


def test_dynamic_ntk_scaling_is_that_of_the_library_at_lengths_around_the_trained_one():
    for (d, base, trained, factor, length), expected, attention_factor in scalings("dynamic"):
        scaled = dynamic_ntk_scaling(int(d), length, trained, factor, base)
        assert_allclose(scaled, expected, rtol=NEAR)
        assert attention_factor == 1


def test_yarn_scaling_and_its_attention_factor_are_those_of_the_library():
    for (d, base, trained, factor, fast, slow), expected, attention_factor in scalings("yarn"):
        scaled, own_factor = yarn_scaling(int(d), factor, trained, base, fast, slow)
        assert_allclose(scaled, expected, rtol=NEAR)
        assert_allclose(own_factor, attention_factor, rtol=1e-15)


def test_configurations_are_read_as_the_library_reads_them():
    g = golden("rope_configs")
    cases = json.loads((Path(__file__).parent / "golden" / "rope_configs.json").read_text())
    factors, scales, use = [], [], []
    for name, case in cases.items():
        config = case["config"]
        runs = itertools.product(case["layers"], case["lengths"])
        found = [rope_from_config(config, *run) for run in runs]
        if name.startswith("mrope"):
            angles = [5, 6, 8] @ found[0].frequencies
            pairs = np.repeat(angles, 2) if found[0].layout == "interleaved" else np.tile(angles, 2)
            cosines = found[0].attention_factor * np.cos(pairs)
            assert_allclose(g[name], cosines, rtol=0, atol=1e-6)
            continue
        assert_allclose([s.frequencies for s in found], g[name], rtol=NEAR, err_msg=name)
        factors += [s.attention_factor for s in found]
        if name.startswith("deepseek"):
            scales += [s.score_factor for s in found]
        if name in ("smollm3", "llama4", "cohere2", "exaone4"):
            use.append([rope_from_config(config, n).frequencies is not None for n in range(8)])
    assert_allclose(factors, g["attention_factors"], rtol=1e-15)
    assert_allclose(scales, g["score_factors"], rtol=1e-15)
    assert_array_equal(use, g["use_rope"])


def test_llama3_scaling_is_that_of_the_library():
    for (d, base, trained, factor, low, high), expected, attention_factor in scalings("llama3"):
        scaled = llama3_scaling(rope_frequencies(int(d), base), factor, trained, low, high)
        assert_allclose(scaled, expected, rtol=NEAR)
        assert attention_factor == 1


# ---- RoPE on grids ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "omega", "layout"),
    [
        ("qwen2_vl", axial_frequencies(8, base=1e4), "half"),
        ("pixtral", axial_frequencies(8, base=1e4, spacing="alternate"), "half"),
        ("timm", axial_frequencies(8, base=1e4), "interleaved"),
        ("timm_half", axial_frequencies(8), "half"),
        ("timm_mixed", None, "interleaved"),
    ],
)
def test_patches_turn_as_in_four_vision_models(name, omega, layout):
    g = golden("rope_grid")
    omega = np.swapaxes(g["frequencies"], 0, 1) if omega is None else omega  # (H, 2, K/2)
    turned = rope_nd(g["x"], patch_coordinates(2, 3), omega, layout)
    assert_allclose(turned, g[name], rtol=0, atol=NEAR)


def test_gemma_4_pairs_components_inside_the_half_of_each_axis():
    g, order = golden("rope_grid"), [0, 1, 4, 5, 2, 3, 6, 7]
    omega = axial_frequencies(8, base=100.0)
    turned = rope_nd(g["x"][..., order], patch_coordinates(2, 3), omega, "half")
    assert_allclose(turned[..., order], g["gemma4"], rtol=0, atol=NEAR)


def test_dinov3_turns_patches_by_where_they_are_in_the_image_and_no_other_token():
    g = golden("rope_grid")
    omega = 2 * np.pi * axial_frequencies(8)
    turned = rope_nd(g["x"], patch_coordinates(2, 3, "centred"), omega, "half")
    assert_allclose(g["dinov3"][:, :, 3:], turned, rtol=0, atol=NEAR)
    assert_allclose(g["dinov3"][:, :, :3], g["prefix"], rtol=0, atol=SAME)


def test_timm_stretches_the_index_of_a_trained_grid():
    g = golden("rope_grid")
    squeezed = patch_coordinates(2, 3, trained=(4, 5))
    turned = rope_nd(g["x"], squeezed, axial_frequencies(8, base=1e4))
    assert_allclose(turned, g["timm_trained"], rtol=0, atol=NEAR)


def test_text_and_images_are_counted_as_in_qwen2_vl():
    g = golden("mrope")
    for n, parts in enumerate(([2, (1, 2, 3), 3, (1, 3, 1), 1], [4, (1, 2, 4), 3])):
        positions, delta = mrope_positions(parts)
        assert_array_equal(positions, g["positions"][n])
        assert delta == g["delta"][n]


@pytest.mark.parametrize(("name", "sections"), [("qwen2_vl", (2, 3, 3)), ("qwen3_vl", (4, 2, 2))])
def test_queries_turn_by_three_coordinates_as_in_qwen2_vl_and_qwen3_vl(name, sections):
    g = golden("mrope")
    omega = mrope_frequencies(sections, 1e6, interleaved=name == "qwen3_vl")
    turned = rope_nd(g["q"], g["positions"][:, None], omega, "half")
    assert_allclose(turned, g[name], rtol=0, atol=NEAR)


# ---- windows, chunks, sinks, temperature ---------------------------------------------------------


def test_windows_count_the_query_and_chunks_begin_at_the_first_real_token():
    g, at = golden("window_masks"), np.arange(9)
    places = at - g["padding"][:, None]  # from 0 at the first real token
    for n, window, chunks in zip(g["sizes"], g["windows"], g["chunks"], strict=True):
        assert_array_equal(window_mask(at, at, n), window)
        assert_array_equal(chunk_mask(places, places, n), chunks)
    assert (chunk_mask(at, at, 2) != g["chunks"][1]).any()  # counted from the padding


def test_a_sink_is_a_column_a_sigmoid_and_a_number_of_each_query():
    """gpt-oss sets it beside the scores, Granite takes a sigmoid, Inkling makes it of tokens."""
    g, mask = golden("sinks"), window_mask(LATE, KEYS, 3)
    k, v = (np.repeat(g[name], 2, axis=1) for name in "kv")
    scores = g["q"] @ k.mT / np.sqrt(K)
    output, weights = attend(scores, v, mask, g["sinks"])
    assert_allclose(output, g["gpt_oss"], rtol=0, atol=SAME)
    assert_allclose(output, g["granite"], rtol=0, atol=NEAR)
    assert_allclose(attend(scores, v, mask, g["by_query"])[0], g["inkling"], rtol=0, atol=NEAR)
    assert weights.sum(-1).min() < 0.5 and np.abs(attend(scores, v, mask)[0] - output).max() > 0.1


def test_llama_4_heats_its_queries_in_steps_and_ministral_a_token_later():
    g = golden("temperature")
    heads = {"q": 2, "k": 1, "v": 1}
    q, k, v = (project(g, f"{name}_proj", g["x"], n) for name, n in heads.items())
    q = q[..., MEMORY:, :] * attention_temperature(LATE, 3, 0.5)[:, None]
    agree(g, *attention(q, k, v, causal_mask(LATE, KEYS)), NEAR, out="o_proj")
    after_0 = attention_temperature(np.arange(8), 3, 0.5)
    assert_allclose(g["ministral"], [1, *after_0], rtol=0, atol=NEAR)


# ---- Shaw ---------------------------------------------------------------------------------------


def test_shaw_keys_with_clipping_are_those_of_wav2vec2_bert_with_its_table_upside_down():
    # The library, like the paper, counts key minus query.
    g = golden("shaw_keys")
    table = g["distance_embedding.weight"][::-1]
    nothing = np.zeros_like(g["k"])
    bias = shaw_scores(g["q"], nothing, table, relative_distance(range(L), KEYS))
    assert_allclose(bias, g["bias"], rtol=0, atol=SAME)
    q, k, v = (project(g, f"linear_{name}", g["x"]) for name in "qkv")
    scores = shaw_scores(q, k, table, relative_distance(KEYS, KEYS))
    agree(g, *attend(scores, v), SAME, out="linear_out")


def test_shaw_keys_and_values_are_those_of_vits_which_has_zeros_where_the_paper_clips():
    g = golden("shaw_keys_and_values")
    distance = relative_distance(KEYS, KEYS)
    q, k, v = (project(g, f"{name}_proj", g["x"]) for name in "qkv")
    beyond = np.zeros((S - 1 - 3, K))  # the window ends at 3, distances at S - 1
    key_table, value_table = (
        np.concatenate([beyond, g[name][0, ::-1], beyond]) for name in ("emb_rel_k", "emb_rel_v")
    )
    _, weights = attend(shaw_scores(q, k, key_table, distance), v)
    agree(g, shaw_values(weights, v, value_table, distance), weights, SAME, out="out_proj")
    clipped = attend(shaw_scores(q, k, g["emb_rel_k"][0, ::-1], distance), v)[1]
    assert np.abs(clipped - g["probabilities"]).max() > 0.01


def bert(g):
    """Queries, keys, values, the table and the distances of a BERT layer."""
    q = project(g, "query", g["x"])
    k, v = project(g, "key", g["memory"]), project(g, "value", g["memory"])
    return q, k, v, g["distance_embedding.weight"], relative_distance(range(L), KEYS)


def test_bert_relative_key_is_shaw_in_our_order_without_clipping_and_without_values():
    # 2 max - 1 rows, and row i - j + max - 1: query minus key, where the paper has key minus query.
    g = golden("bert_relative_key")
    q, k, v, table, distance = bert(g)
    output, weights = attend(shaw_scores(q, k, table, distance), v)
    assert_allclose(weights, g["probabilities"], rtol=0, atol=SAME)
    assert_allclose(merge_heads(output), g["output"], rtol=0, atol=SAME)
    reversed_table = attend(shaw_scores(q, k, table[::-1], distance), v)[1]
    assert np.abs(reversed_table - g["probabilities"]).max() > 0.1


def test_bert_relative_key_query_adds_the_dot_product_of_the_key_with_the_same_vector():
    g = golden("bert_relative_key_query")
    q, k, v, table, distance = bert(g)
    output, weights = attend(relative_key_query_scores(q, k, table, distance), v)
    assert_allclose(weights, g["probabilities"], rtol=0, atol=SAME)
    assert_allclose(merge_heads(output), g["output"], rtol=0, atol=SAME)
    of_query_alone = attend(shaw_scores(q, k, table, distance), v)[1]
    assert np.abs(of_query_alone - g["probabilities"]).max() > 0.1


def test_nezha_is_shaw_with_sinusoids_by_key_minus_query_from_position_0():
    g = golden("nezha")
    table, distance = nezha_table(3, K), relative_distance(KEYS, KEYS)
    assert_allclose(g["vectors"], table[np.clip(distance, -3, 3) + 3], rtol=0, atol=NEAR)
    q, k, v = (project(g, name, g["x"]) for name in ("query", "key", "value"))
    _, weights = attend(shaw_scores(q, k, table, distance), v)
    assert_allclose(weights, g["probabilities"], rtol=0, atol=NEAR)
    output = merge_heads(shaw_values(weights, v, table, distance))
    assert_allclose(output, g["output"], rtol=0, atol=NEAR)
    other_end = attend(shaw_scores(q, k, table[::-1], distance), v)[1]
    assert np.abs(other_end - g["probabilities"]).max() > 0.1


# ---- Transformer-XL and XLNet -------------------------------------------------------------------


def test_transformer_xl_attends_under_its_causal_mask_with_codes_in_descending_order():
    g = golden("transformer_xl")
    x = np.concatenate([g["memory"], g["x"]]).swapaxes(0, 1)  # (B, S, D)
    q, k, v = np.split(linear(g, "qkv_net", x), 3, axis=-1)
    q, k, v = (split_heads(y, H) for y in (q[:, MEMORY:], k, v))
    assert_allclose(
        g["codes"][:, 0], sinusoidal(KEYS[::-1], 10, layout="concatenated"), rtol=0, atol=NEAR
    )
    past = project(g, "r_net", g["codes"][::-1, 0])  # (H, S, K), the distances 0 .. S - 1
    future = np.full((H, L - 1, K), 1e3)  # the library has no code for these; the mask hides them
    r = np.concatenate([future, past], axis=1)
    scores = transformer_xl_scores(
        q, k, r, g["r_w_bias"], g["r_r_bias"], relative_distance(LATE, KEYS)
    )
    weights = attend(scores, v, causal_mask(LATE, KEYS))[1]
    assert_allclose(weights, np.transpose(g["probabilities"], (2, 3, 0, 1)), rtol=0, atol=NEAR)


def test_relative_shift_is_that_of_transformer_xl_with_what_it_leaves_beyond_the_diagonal():
    g = golden("transformer_xl")
    products, shifted = (np.transpose(g[name], (2, 3, 0, 1)) for name in ("products", "shifted"))
    assert_array_equal(relative_shift(products), shifted)


@pytest.mark.parametrize(("direction", "least"), [("both_directions", 1 - L), ("one_direction", 0)])
def test_xlnet_attends_in_both_directions_and_in_one(direction, least):
    # Its codes descend from the distance S, which no pair has, and end at -L + 1 or at 0.
    g = golden(f"xlnet_{direction}")
    listed = np.arange(S, least - 1, -1)
    codes = sinusoidal(listed, H * K, layout="concatenated")
    assert_allclose(codes, g["codes"], rtol=0, atol=NEAR)
    q, k, v = (np.einsum("sbd,dhk->bhsk", g["x"], g[name]) for name in "qkv")
    r = np.einsum("nd,dhk->hnk", g["codes"][:0:-1], g["r"])  # from the least distance to S - 1
    r = np.concatenate([np.full((H, L - 1 + least, K), 1e3), r], axis=1)  # masked, if absent
    scores = transformer_xl_scores(
        q[..., MEMORY:, :], k, r, g["r_w_bias"], g["r_r_bias"], relative_distance(LATE, KEYS)
    )
    mask = causal_mask(LATE, KEYS) if direction == "one_direction" else None
    output, weights = attend(scores, v, mask)
    assert_allclose(weights, np.transpose(g["probabilities"], (2, 3, 0, 1)), rtol=0, atol=SAME)
    assert_allclose(output, np.transpose(g["output"], (1, 2, 0, 3)), rtol=0, atol=SAME)


# ---- DeBERTa ------------------------------------------------------------------------------------


def test_deberta_v1_reads_p2c_at_query_minus_key_where_the_paper_has_key_minus_query():
    g = golden("deberta_v1")
    k_table, q_table = project(g, "pos_proj", g["table"]), project(g, "pos_q_proj", g["table"])
    # The two position terms alone, for the last L of S positions: without the content term.
    q, k, distance = g["q"], g["k"], relative_distance(LATE, KEYS)
    content = attention_scores(q, k) / np.sqrt(3)
    released = deberta_scores(q, k, q_table, k_table, distance, p2c_distance=distance)
    assert_allclose(released - content, g["bias"], rtol=0, atol=NEAR)
    paper = deberta_scores(q, k, q_table, k_table, distance)
    assert np.abs(paper - content - g["bias"]).max() > 1
    # The whole layer.
    q, k, v = np.split(split_heads(g["x"] @ g["in_proj.weight"].T, H), 3, axis=-1)
    q, v = (a + g[name].reshape(H, 1, K) for a, name in ((q, "q_bias"), (v, "v_bias")))
    distance = relative_distance(KEYS, KEYS)
    released = deberta_scores(q, k, q_table, k_table, distance, p2c_distance=distance)
    output, weights = attend(released, v, g["mask"])
    assert_allclose(weights, g["probabilities"], rtol=0, atol=NEAR)
    assert_allclose(merge_heads(output), g["output"], rtol=0, atol=NEAR)


def attention_scores(q, k):
    """The scores q . k / sqrt(K) of plain attention."""
    return q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])


def test_deberta_v2_reads_logarithmic_buckets_and_p2c_at_query_minus_key_too():
    g = golden("deberta_v2")
    n = g["x"].shape[1]
    bucket = deberta_bucket(relative_distance(range(n), range(n)), 6, n + 1)
    k_table, q_table = project(g, "key_proj", g["table"]), project(g, "query_proj", g["table"])
    q, k = (g[name].reshape(2, H, n, K) for name in "qk")
    content = attention_scores(q, k) / np.sqrt(3)
    released = deberta_scores(q, k, q_table, k_table, bucket, p2c_distance=bucket)
    assert_allclose(released - content, g["bias"].reshape(2, H, n, n), rtol=0, atol=NEAR)
    q, k, v = (project(g, f"{name}_proj", g["x"]) for name in ("query", "key", "value"))
    released = deberta_scores(q, k, q_table, k_table, bucket, p2c_distance=bucket)
    output, weights = attend(released, v)
    assert_allclose(weights, g["probabilities"], rtol=0, atol=NEAR)
    assert_allclose(merge_heads(output), g["output"], rtol=0, atol=NEAR)
    paper = attend(deberta_scores(q, k, q_table, k_table, bucket), v)[1]
    assert np.abs(paper - g["probabilities"]).max() > 0.1


def test_deberta_buckets_are_those_of_v3_which_go_on_past_max_distance_where_ours_are_clamped():
    # With b = num_buckets the released table has the rows -b .. b - 1 and clamps to these: its far
    # future reads a row of its own, -b, from max_distance on; here it stays at -(b - 1).
    g = golden("deberta_buckets")
    distance = g["distance"]
    for (b, farthest), expected in zip(g["sizes"], g["buckets"], strict=True):
        ours, within = deberta_bucket(distance, b, farthest), np.abs(distance) < farthest
        assert_array_equal(ours[within], expected[within])
        assert_array_equal(ours, np.clip(expected, -(b - 1), b - 1))
        assert (expected[distance >= farthest] >= b).all()
        assert (expected[distance <= -farthest] <= -b).all()


# ---- attention ----------------------------------------------------------------------------------


def test_attention_is_multihead_attention_of_torch_whose_masks_mean_the_opposite():
    g = golden("torch_multihead")
    biases = np.split(g["in_proj_bias"], 3)
    q, k, v = (
        split_heads(g[name] @ g[f"{name}_proj_weight"].T + bias, H)
        for name, bias in zip("qkv", biases, strict=True)
    )
    mask = ~g["forbidden"] & ~g["padding"][:, None, None, :]  # True = may attend
    output, weights = attention(q, k, v, mask=mask)
    agree(g, output, weights, SAME, out="out_proj")
    for block in (1, 2, 3, 16):
        agree(g, attention_blockwise(q, k, v, mask=mask, block=block), weights, SAME, "out_proj")


@pytest.mark.parametrize("case", ["plain", "masked", "biased", "causal", "scaled"])
def test_attention_is_scaled_dot_product_attention_of_torch(case):
    # A query that may attend to nothing gets zeros there, too. Its is_causal puts the queries at
    # the first positions, where attention_blockwise puts them at the last by default.
    g = golden("torch_scaled_dot_product")
    q, k, v = (g[name] for name in "qkv")
    options = {
        "plain": {},
        "masked": {"mask": g["mask"]},
        "biased": {"bias": g["bias"]},
        "causal": {"mask": causal_mask(range(L), KEYS)},
        "scaled": {"scale": 0.3},
    }[case]
    assert_allclose(attention(q, k, v, **options)[0], g[case], rtol=0, atol=SAME)
    if case == "scaled":
        q, options = q * 0.3 * np.sqrt(K), {}
    if case == "causal":
        options = {"causal": True, "q_positions": range(L)}
    for block in (1, 2, 3, 16):
        output = attention_blockwise(q, k, v, block=block, **options)
        assert_allclose(output, g[case], rtol=0, atol=SAME)
    if case == "masked":
        assert not g["masked"][0, :, 2].any()


# ---- packed rows, parts of one attention, ranks -------------------------------------------------


def test_documents_masks_and_borders_are_what_transformers_derives_from_positions():
    g = golden("packed_rows")
    for n in range(2):
        borders = g[f"borders_{n}"]
        positions, documents, mask = pack(np.diff(borders))
        assert_array_equal(positions, g["positions"][n])
        assert_array_equal(documents, g["documents"][n])
        assert_array_equal(document_mask(documents, documents), g["mask"][n])
        assert_array_equal(mask, g["mask"][n] & causal_mask(range(9), range(9)))


def test_parts_and_their_merging_are_torch_s_which_writes_0_where_nothing_is_seen():
    g = golden("torch_context_parallel")
    parts = []
    for n in range(3):
        keys = slice(n * S, (n + 1) * S)
        mask = g["mask"][..., keys]
        outputs, log_sums = partial_attention(g["q"], g["k"][:, :, keys], g["v"][:, :, keys], mask)
        assert_allclose(outputs, g["outputs"][n], rtol=0, atol=SAME)
        nothing = ~mask.any(axis=-1)
        assert_array_equal(log_sums == -np.inf, nothing)
        assert_allclose(np.where(nothing, 0, log_sums), g["log_sums"][n], rtol=0, atol=SAME)
        parts.append((outputs, log_sums))
    outputs, log_sums = merge_attention(*zip(*parts, strict=True))
    assert_allclose(outputs, g["output"], rtol=0, atol=SAME)
    assert_allclose(log_sums, g["log_sum"], rtol=0, atol=SAME)
    as_written = merge_attention(g["outputs"], g["log_sums"])[0]  # with the zeros
    assert np.abs(as_written - outputs).max() > 0.01


def test_zigzag_is_torch_s_head_and_tail():
    g = golden("torch_context_parallel")
    for n, (length, ranks) in enumerate(g["sizes"].tolist()):
        assert_array_equal(zigzag(length, ranks).reshape(1, -1), g[f"zigzag_{n}"])


# ---- sinusoids ----------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["whisper", "m2m100"])
def test_whisper_and_m2m100_have_another_base_than_the_paper_so_that_1e4_is_reached(library):
    # Their exponents are i/(D/2 - 1), from 0 to 1; the paper's 2i/D end before 1. They are the
    # paper's with the base b for which b^(2i/D) = 10000^(i/(D/2 - 1)): b = 10000^(D/(D - 2)).
    table, D = golden("sinusoids")[library], 12
    assert_allclose(table, timing_signal(range(9), D), rtol=0, atol=NEAR)
    code = sinusoidal(range(9), D, base=10000 ** (D / (D - 2)), layout="concatenated")
    assert_allclose(table, code, rtol=0, atol=NEAR)
    assert np.abs(table - sinusoidal(range(9), D, layout="concatenated")).max() > 0.1


def test_marian_has_the_sinusoids_of_the_paper_with_all_sines_first():
    code = sinusoidal(range(9), 12, layout="concatenated")
    assert_allclose(golden("sinusoids")["marian"], code, rtol=0, atol=NEAR)


def test_two_dimensional_sinusoids_are_those_of_vit_mae_with_the_row_in_the_first_half():
    code = sinusoidal_2d(3, 5, 12).reshape(15, 12)
    assert_allclose(golden("sinusoids_2d")["table"], code, rtol=0, atol=SAME)


def test_vit_mae_begins_with_the_column_first_and_zeros_for_the_class_token():
    g, code = golden("sinusoids_in_order"), sinusoidal_2d(3, 3, 12).reshape(9, 12)
    swapped = np.concatenate([code[:, 6:], code[:, :6]], axis=1)
    assert_allclose(g["mae"], np.concatenate([np.zeros((1, 12)), swapped]), rtol=0, atol=NEAR)
    assert np.abs(g["mae"][1:] - code).max() > 0.5


def test_timm_interleaves_blocks_and_by_default_has_the_sines_of_both_axes_first():
    g, code = golden("sinusoids_in_order"), sinusoidal_2d(3, 5, 12)
    flat = code.reshape(15, 12)
    assert_allclose(g["interleaved"], flat, rtol=0, atol=NEAR)
    quarters = flat.reshape(15, 4, 3)  # sin y, cos y, sin x, cos x
    assert_allclose(g["default"], quarters[:, [0, 2, 1, 3]].reshape(15, 12), rtol=0, atol=NEAR)
    column_first = np.swapaxes(code, 0, 1).reshape(15, 4, 3)[:, [2, 0, 3, 1]]  # cells, too
    assert_allclose(g["reversed"], column_first.reshape(15, 12), rtol=0, atol=NEAR)


def test_detr_counts_real_cells_from_1():
    g = golden("sinusoids_detr")
    assert_allclose(detr_sine(g["real"], 12, normalize=False), g["raw"], rtol=0, atol=SAME)
    assert_allclose(detr_sine(g["real"], 12), g["normalised"], rtol=0, atol=SAME)


def test_tables_are_resized_as_by_torch_and_timm():
    g = golden("resized_tables")

    def resized(table, height, width, mode, **way):
        down, right = (
            resize_matrix(old, new, mode, **way)
            for old, new in zip(table.shape, (height, width), strict=False)
        )
        return np.einsum("yr,rcd,xc->yxd", down, table, right)

    made = [name for name in g if name.startswith("bi")]
    assert len(made) == 12
    for name in made:
        mode, size, *way = name.split("_", 2)
        mode, options = {"bilinear": "linear", "bicubic": "cubic"}[mode], dict.fromkeys(way, True)
        expected = resized(g["table"], *map(int, size.split("x")), mode, **options)
        assert_allclose(g[name], expected, rtol=0, atol=SAME, err_msg=name)
    grid = resized(g["prefixed"][2:].reshape(4, 7, 2), 6, 5, "cubic", antialias=True)
    expected = np.concatenate([g["prefixed"][:2], grid.reshape(30, 2)])  # two rows as they were
    assert_allclose(g["timm"], expected, rtol=0, atol=NEAR)


def test_sam_has_sines_first_and_points_from_minus_1_to_1_with_x_before_y():
    g = golden("sam_features")
    y, x = np.meshgrid((np.arange(3) + 0.5) / 3, (np.arange(4) + 0.5) / 4, indexing="ij")
    for name, points in (("grid", np.stack([x, y], -1)), ("of_points", g["points"] / [20, 30])):
        cosines, sines = np.split(fourier_features(2 * points - 1, g["waves"].T), 2, axis=-1)
        code = np.concatenate([sines, cosines], axis=-1)
        assert_allclose(g[name], code, rtol=0, atol=5e-6, err_msg=name)


# ---- windows of images --------------------------------------------------------------------------


def test_swin_counts_offsets_and_adds_its_bias_as_we_do():
    g = golden("swin")
    assert_array_equal(g["index"].reshape(6, 6), offset_index(2, 3))
    assert_array_equal(offset_bias(g["table"], 2, 3), g["bias"])
    assert_array_equal(g["with_class_token"][1:, 1:], offset_index(2, 3))
    edges = g["with_class_token"][0, 0], g["with_class_token"][0, 1], g["with_class_token"][1, 0]
    assert edges == (17, 15, 16)  # BEiT's three rows stand behind the 15 of the window
    q, k, v = (project(g, f"{name}_proj", g["x"]) for name in "qkv")
    bias = offset_bias(g["relative_position_bias.relative_position_bias_table"], 3, 3)
    output, weights = attention(q, k, v, bias=bias)
    assert_allclose(weights, g["probabilities"], rtol=0, atol=NEAR)
    assert_allclose(linear(g, "o_proj", merge_heads(output)), g["output"], rtol=0, atol=NEAR)


def test_swin_2_makes_its_bias_from_coordinates_and_scores_cosines():
    g = golden("swin_v2")
    u = log_cpb_coordinates(2, 3, pretrained=(4, 5))
    assert_allclose(u, g["coordinates"].reshape(15, 2), rtol=0, atol=NEAR)
    table = linear(g, mlp := "continuous_position_bias_mlp.0", u)
    table = linear(g, mlp[:-1] + "2", relu(table))
    q, k, v = (project(g, name, g["x"]) for name in ("query", "key", "value"))
    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    tau = np.exp(np.minimum(g["logit_scale"], np.log(100)))  # (H, 1, 1)
    bias = 16 / (1 + np.exp(-offset_bias(table, 2, 3)))
    output, weights = attend(tau * (q @ np.swapaxes(k, -1, -2)) + bias, v)
    assert_allclose(weights, g["probabilities"], rtol=0, atol=NEAR)
    assert_allclose(merge_heads(output), g["output"], rtol=0, atol=NEAR)


def test_vitdet_and_sam_add_two_products_of_queries_that_are_not_scaled():
    g = golden("decomposed_positions")
    rows = [[2 * y - other for other in range(4)] for y in range(2)]  # 2 by 3 queries, 4 by 2 keys
    columns = [[int(x - 1.5 * other + 1.5) - 2 for other in range(2)] for x in range(3)]
    got = decomposed_scores(g["q"], g["k"], g["rows"], g["columns"], rows, columns)
    assert_allclose(got, g["unequal"], rtol=0, atol=SAME)
    row, column = (relative_distance(range(n), range(n)) for n in (3, 5))
    tables = [resize_matrix(len(g[name]), n) @ g[name] for name, n in (("rows", 5), ("columns", 9))]
    got = decomposed_scores(g["x5"], 0 * g["x5"], *tables, row, column)
    assert_allclose(got, g["resized"], rtol=0, atol=SAME)
    x = g["x"].reshape(2, 9, -1)
    q, k, v = np.moveaxis(linear(g, "qkv", x).reshape(2, 9, 3, H, K), (2, 3), (0, 2))
    scores = decomposed_scores(q, k, g["rel_pos_h"], g["rel_pos_w"], row, row)
    output, weights = attend(scores, v)
    assert_allclose(weights.reshape(-1, 9, 9), g["probabilities"], rtol=0, atol=NEAR)
    made = linear(g, "proj", merge_heads(output)).reshape(g["output"].shape)
    assert_allclose(made, g["output"], rtol=0, atol=NEAR)


# ---- what the text decides ----------------------------------------------------------------------


def log_gates(g, name):
    """Logarithms of the forget gates (B, gates, S) of a layer of x-transformers."""
    z = g["x"] @ g[f"{name}_weight"].T + g[f"{name}_bias"]
    return -np.logaddexp(0, -np.swapaxes(z, -1, -2))


def test_forget_gates_are_those_of_x_transformers_which_has_others_for_the_future():
    g = golden("content")
    c = np.cumsum(log_gates(g, "decoder"), axis=-1)
    assert_allclose(forgetting_bias(c, c), g["decoder"], rtol=0, atol=SAME)
    past, future = np.split(np.cumsum(log_gates(g, "encoder"), axis=-1), 2, axis=1)
    ours = np.where(KEYS[:, None] >= KEYS, forgetting_bias(past, past), 0)
    ours = ours - np.where(KEYS[:, None] <= KEYS, forgetting_bias(future, future), 0)
    assert_allclose(ours, g["encoder"], rtol=0, atol=SAME)


def test_cope_is_that_of_x_transformers_whose_mask_is_in_the_scores():
    g = golden("content")
    mask = causal_mask(LATE, KEYS)
    z = cope_bias(g["q"], g["scores"], g["table"], mask)
    assert_allclose(z, g["cope"], rtol=0, atol=SAME)
    without = cope_bias(g["q"], np.where(mask, g["scores"], 0), g["table"])
    assert np.abs(without - g["cope"]).max() > 0.1


# ---- linear attention with a state --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "atol"),
    [
        *((name, NEAR) for name in "simple_gla gla gated_delta_rule kda".split()),
        ("delta_rule", SAME),
    ],
)
def test_states_and_outputs_are_fla_s_which_scales_queries(name, atol):
    g = golden("recurrence")
    q, k, v = g["q"] / math.sqrt(K), g["k"], g["v"]
    decay = g["decays"] if name in ("gla", "kda") else g["decay"][..., None]
    if name.endswith("gla"):
        output, state = gated_linear_attention(q, k, v, decay, g["state"], chunk=3)
    elif name == "delta_rule":
        output, state = delta_rule(q, k, v, g["beta"], chunk=3)
    else:
        output, state = delta_rule(q, k, v, g["beta"], decay, g["state"], chunk=3)
    assert_allclose(output, g[name], rtol=0, atol=atol)
    assert_allclose(state, g[name + "_state"], rtol=0, atol=atol)


def test_retention_is_fla_s_with_the_decays_of_the_paper():
    g = golden("recurrence")
    decay = 1 - 2.0 ** (-5 - np.arange(H))
    output = retention(g["q"] / math.sqrt(K), g["k"], g["v"], decay)
    assert_allclose(output, g["retention"], rtol=0, atol=NEAR)


# ---- graphs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["normalized", "plain"])
def test_columns_are_the_eigenvectors_of_the_laplacians_of_networkx(form):
    g = golden("graph_laplacians")
    V = laplacian_encoding(g["adjacency"], 7, normalized=form == "normalized")
    assert_allclose(g[form] @ V, V * g[form + "_values"][1:], rtol=0, atol=SAME)
    assert_allclose(V.T @ V, np.eye(7), rtol=0, atol=SAME)


# ---- relatives of RoPE --------------------------------------------------------------------------


def test_xpos_is_that_of_x_transformers_whose_centre_is_half_the_length_at_hand():
    g = golden("xpos")
    at, theta = g["positions"], rope_frequencies(4)
    centre = (at.max() + 1) // 2
    q = xpos(g["q"], at[MEMORY:], theta, 20, centre=centre)
    k = xpos(g["k"], at, theta, 20, key=True, centre=centre)
    assert_allclose(q, g["q_turned"], rtol=0, atol=4 * NEAR)
    assert_allclose(k, g["k_turned"], rtol=0, atol=4 * NEAR)
    own = xpos(g["q"], at[MEMORY:], theta, 20), xpos(g["k"], at, theta, 20, key=True)
    assert np.abs(own[0] - q).max() > 0.1  # with another centre: the same scores
    assert_allclose(own[0] @ own[1].swapaxes(-1, -2), q @ k.swapaxes(-1, -2), rtol=0, atol=1e-12)


def test_pope_is_that_of_x_transformers_whose_cosines_stand_before_its_sines():
    g = golden("pope")
    at = 37 + np.arange(S)
    assert g["bias"].min() < -2 * np.pi and g["bias"].max() > 0  # clamped at both ends
    q, k = pope(g["q"], at[MEMORY:]), pope(g["k"], at, bias=g["bias"])
    for own, theirs in ((q, g["q_turned"]), (k, g["k_turned"])):
        apart = np.concatenate([own[..., ::2], own[..., 1::2]], axis=-1)
        assert_allclose(apart, theirs, rtol=0, atol=4 * NEAR)


def test_roformer_leaves_its_values_turned_and_deepseek_turns_them_back():
    g = golden("rotary_values")
    at = 37 + np.arange(S)
    v = project(g, "value", g["x"])
    left = merge_heads(g["probabilities"] @ rope(v, at))
    assert_allclose(left, g["output"], rtol=0, atol=NEAR)
    back = rotary_values(g["probabilities"], v, at, at)
    assert_allclose(back, rope(split_heads(g["output"], H), -at), rtol=0, atol=NEAR)
    theta = [1.0, 0.01]
    whole = rotary_values(g["probs"], g["v"][..., 2:], at[MEMORY:], at, theta)
    assert_allclose(whole, g["turned_back"][..., 2:], rtol=0, atol=NEAR)
    never = g["probs"] @ g["v"][..., :2]
    assert_allclose(never, g["turned_back"][..., :2], rtol=0, atol=NEAR)


# ---- the files themselves -----------------------------------------------------------------------


def test_no_golden_file_needs_pickle_and_each_carries_its_provenance():
    assert len(FILES) >= 49
    assert sum(path.stat().st_size for path in FILES) < 900_000
    for path in FILES:
        arrays = golden(path.stem)
        said = json.loads(str(arrays.pop("provenance")))
        assert said["file"] == path.name
        assert said["library"] in LIBRARIES
        assert said["code"] and all(said[name] for name in ("transformers", "torch", "numpy"))
        assert isinstance(said["seed"], int)
        assert {array.dtype.kind for array in arrays.values()} <= set("fib"), path.name


def test_no_two_golden_files_and_no_two_arrays_in_one_are_identical():
    digests = {}
    for path in FILES:
        arrays = golden(path.stem)
        arrays.pop("provenance")
        content = [(a.shape, str(a.dtype), a.tobytes()) for _, a in sorted(arrays.items())]
        if path.stem != "rope_scaling":  # up to the trained length nothing changes
            assert len(set(content)) == len(content), path.name
        digests[path.name] = hashlib.sha256(repr(content).encode()).hexdigest()
    assert len(set(digests.values())) == len(FILES)


def test_no_array_is_degenerate():
    # A bias of zeros, a constant or one number would agree with a wrong formula by accident.
    for path in FILES:
        arrays = golden(path.stem)
        for name, array in arrays.items():
            if not name.endswith(("provenance", "attention_factor")):
                assert np.isfinite(array).all(), (path.name, name)
                assert len(np.unique(array)) > 1, (path.name, name)
