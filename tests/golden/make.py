"""Make the golden files: run public libraries on random weights, keep what went in and came out.

Usage: python tests/golden/make.py     (once in each of the two environments of README.md)

    pip install torch==2.13.0 transformers==5.23.0 numpy==2.4.6 x-transformers==2.31.10
    pip install torch==2.13.0 transformers==4.30.2 numpy==1.26.4     (Python 3.11)

Each run writes the files that belong to the version of transformers at hand. Nothing is downloaded
but these packages: configurations are tiny, weights are random numbers from the seed written at
each function. Nothing of pe_numpy is imported, and the package never sees these libraries.

A function makes the file of its name. The decorator names the library code that it proves; that
code comes in as its arguments and is recorded in the file, as its provenance. Sizes all differ:
B batch, H heads, L queries, S keys, D model width, K width of one head, as in the package.
Computed in float64, wherever the library does not force float32.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import resolve_name

import numpy as np
import torch
import transformers
from torch import arange, randn

NEW, OLD = "5.23.0", "4.30.2"  # the old one still has Transformer-XL and BERT's relative keys
MODELS = "transformers.models."
GRAPHS = "networkx.linalg.laplacianmatrix:"
B, H, L, S, K = 2, 3, 5, 7, 6
MEMORY = S - L  # keys that stand before the first query
FIRST = 37  # a position at which something that was left out shows
FILES = {}


def golden(version: str, seed: int, *sources: str) -> Callable:
    """Register a function that makes a file, with the library code that it will be given."""

    def register(function: Callable) -> Callable:
        FILES[function.__name__] = (function, version, seed, sources)
        return function

    return register


def randomise(module: torch.nn.Module) -> torch.nn.Module:
    """Draw every parameter, also biases and gains that start at 0 and 1; switch dropout off.

    With this deviation scores stay near 1, where a softmax still tells them apart.
    """
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return module.double().eval()


def weights(module: torch.nn.Module, *names: str) -> dict:
    """Give the parameters by the names that the library gives them; all, if none are named."""
    return {n: p.detach() for n, p in module.named_parameters() if not names or n in names}


def causal(q_positions: torch.Tensor, k_positions: torch.Tensor) -> torch.Tensor:
    """Additive mask (L, S): 0 where a query may attend, the least number elsewhere."""
    future = k_positions > q_positions[:, None]
    return torch.zeros(future.shape).masked_fill(future, torch.finfo(torch.float64).min)


# ---- T5 -----------------------------------------------------------------------------------------


@golden(NEW, 1, MODELS + "t5.modeling_t5:T5Attention._relative_position_bucket")
def t5_buckets(relative_position_bucket):
    """Buckets of all distances near zero, for the sizes of T5 and others, in both directions."""
    distance = arange(-300, 301)  # query minus key; T5 wants key minus query
    sizes = [(32, 128), (16, 20), (64, 128), (32, 256)]
    arrays = {"distance": distance, "sizes": np.array(sizes)}
    for both, name in ((True, "bidirectional"), (False, "causal")):
        arrays[name] = torch.stack([relative_position_bucket(-distance, both, *s) for s in sizes])
    return arrays


def t5_layer(T5Attention, is_decoder):
    config = transformers.T5Config(
        d_model=10,
        d_kv=K,
        num_heads=H,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=6,
        is_decoder=is_decoder,
        attn_implementation="eager",
    )
    return randomise(T5Attention(config, has_relative_attention_bias=True, layer_idx=0))


@golden(NEW, 2, MODELS + "t5.modeling_t5:T5Attention")
def t5_encoder(T5Attention):
    """A whole bidirectional attention; other tokens for the keys, so that there are S of them."""
    layer = t5_layer(T5Attention, is_decoder=False)
    x, memory = randn(B, L, 10), randn(B, S, 10)
    output, bias, probabilities = layer(x, key_value_states=memory)
    made = dict(output=output, bias=bias, probabilities=probabilities)
    return dict(x=x, memory=memory, **weights(layer), **made)


@golden(NEW, 3, MODELS + "t5.modeling_t5:T5Attention")
def t5_decoder(T5Attention):
    """The last L of S tokens, after a cache has taken the first."""
    layer = t5_layer(T5Attention, is_decoder=True)
    x, cache = randn(B, S, 10), transformers.DynamicCache()
    layer(x[:, :MEMORY], past_key_values=cache)
    mask = causal(arange(MEMORY, S), arange(S))[None, None]
    output, bias, probabilities = layer(x[:, MEMORY:], mask=mask, past_key_values=cache)
    return dict(x=x, **weights(layer), output=output, bias=bias, probabilities=probabilities)


@golden(
    NEW,
    41,
    MODELS + "mpnet.modeling_mpnet:MPNetEncoder",
    MODELS + "mpnet.modeling_mpnet:MPNetSelfAttention",
)
def t5_mpnet(MPNetEncoder, MPNetSelfAttention):
    """A layer with T5's bias beside scaled scores; the table stands in the encoder."""
    config = transformers.MPNetConfig(hidden_size=H * K, num_attention_heads=H, num_hidden_layers=1)
    encoder, layer = (randomise(module(config)) for module in (MPNetEncoder, MPNetSelfAttention))
    x = randn(1, 20, H * K)
    bias = encoder.compute_position_bias(x)
    _, probabilities = layer(x, position_bias=bias, output_attentions=True)
    kept = weights(layer, "q.weight", "q.bias", "k.weight", "k.bias")
    table = encoder.relative_attention_bias.weight.detach()
    return dict(x=x, table=table, **kept, probabilities=probabilities)


@golden(NEW, 42, MODELS + "wavlm.modeling_wavlm:WavLMAttention")
def t5_wavlm(WavLMAttention):
    """A layer whose bias is multiplied by a gate of each query and head."""
    layer = randomise(WavLMAttention(H * K, H, num_buckets=8, max_distance=6))
    x = randn(B, S, H * K)
    output, _, bias = layer(x)
    return dict(x=x, **weights(layer), bias=bias, output=output)


@golden(
    NEW,
    43,
    MODELS + "layoutlmv3.modeling_layoutlmv3:LayoutLMv3Encoder",
    MODELS + "layoutlmv3.modeling_layoutlmv3:LayoutLMv3SelfAttention",
)
def t5_layoutlmv3(LayoutLMv3Encoder, LayoutLMv3SelfAttention):
    """A layer with three biases, of the text and of both axes of boxes, divided with q . k."""
    config = transformers.LayoutLMv3Config(
        hidden_size=H * K, num_attention_heads=H, num_hidden_layers=1, intermediate_size=4
    )
    encoder, layer = (
        randomise(module(config)) for module in (LayoutLMv3Encoder, LayoutLMv3SelfAttention)
    )
    x, boxes = randn(B, S, H * K), torch.randint(0, 400, (B, S, 4))
    positions = arange(S).expand(B, S)
    of_text, of_boxes = encoder._cal_1d_pos_emb(positions), encoder._cal_2d_pos_emb(boxes)
    options = dict(rel_pos=of_text, rel_2d_pos=of_boxes, output_attentions=True)
    _, probabilities = layer(x, None, **options)
    kept = weights(layer, "query.weight", "query.bias", "key.weight", "key.bias")
    tables = {name: table for name, table in weights(encoder).items() if "rel_pos" in name}
    return dict(x=x, boxes=boxes, **kept, **tables, probabilities=probabilities)


# ---- ALiBi --------------------------------------------------------------------------------------


@golden(
    NEW,
    4,
    MODELS + "bloom.modeling_bloom:build_alibi_tensor",
    MODELS + "mpt.modeling_mpt:build_mpt_alibi_tensor",
)
def alibi_slopes(build_alibi_tensor, build_mpt_alibi_tensor):
    """Slopes for many numbers of heads: what each library gives the last of two keys."""
    n_heads = [*range(1, 34), 40, 48, 71, 112]
    bloom = [build_alibi_tensor(torch.ones(1, 2), n, torch.float64)[:, 0, 1] for n in n_heads]
    mpt = [-build_mpt_alibi_tensor(n, 2)[:, 0, 0] for n in n_heads]
    return dict(n_heads=np.array(n_heads), bloom=torch.cat(bloom), mpt=torch.cat(mpt))


@golden(
    NEW,
    5,
    MODELS + "bloom.modeling_bloom:build_alibi_tensor",
    MODELS + "bloom.modeling_bloom:BloomAttention",
)
def alibi_bloom(build_alibi_tensor, BloomAttention):
    """Cached attention with padding on the left of the second sequence, and the tensors alone."""
    n_head = 12
    config = transformers.BloomConfig(hidden_size=2 * n_head, n_head=n_head)
    layer, cache = randomise(BloomAttention(config, layer_idx=0)), transformers.DynamicCache()
    x, real = randn(B, S, 2 * n_head), torch.ones(B, S, dtype=torch.long)
    real[1, :MEMORY] = 0
    alibi = build_alibi_tensor(real, n_head, torch.float64)
    mask = causal(arange(S), arange(S)).expand(B, 1, S, S).clone()
    mask.masked_fill_(real[:, None, None] == 0, torch.finfo(torch.float64).min)

    def attend(rows, n_keys):
        inputs = x[:, rows], torch.zeros_like(x[:, rows]), alibi[..., :n_keys]
        return layer(*inputs, mask[:, :, rows, :n_keys], layer_past=cache)

    attend(slice(0, MEMORY), MEMORY)
    output, probabilities = attend(slice(MEMORY, S), S)
    tensors = dict(alibi_12=alibi, alibi_8=build_alibi_tensor(real, 8, torch.float64))
    made = dict(output=output, probabilities=probabilities)
    return dict(x=x, real=real, **weights(layer), **tensors, **made)


@golden(NEW, 6, MODELS + "mpt.modeling_mpt:build_mpt_alibi_tensor")
def alibi_mpt(build_mpt_alibi_tensor):
    """The tensors alone, for a power of two and another number of heads."""
    return dict(alibi_8=build_mpt_alibi_tensor(8, S), alibi_12=build_mpt_alibi_tensor(12, S + 2))


# ---- RoPE ---------------------------------------------------------------------------------------


def queries_keys_positions(width):
    """Draw q and k, (B, H, L, width); one sequence goes on from FIRST, the other is padded."""
    positions = torch.stack([arange(FIRST, FIRST + L), torch.tensor([0, 0, 1, 2, 3])])
    return randn(B, H, L, width), randn(B, H, L, width), positions


@golden(
    NEW,
    7,
    MODELS + "llama.modeling_llama:LlamaRotaryEmbedding",
    MODELS + "llama.modeling_llama:apply_rotary_pos_emb",
)
def rope_llama(LlamaRotaryEmbedding, apply_rotary_pos_emb):
    """Rotated queries and keys of the half-split layout."""
    q, k, positions = queries_keys_positions(K)
    embedding = LlamaRotaryEmbedding(transformers.LlamaConfig(head_dim=K))
    q_turned, k_turned = apply_rotary_pos_emb(q, k, *embedding(q, positions))
    return dict(q=q, k=k, positions=positions, q_turned=q_turned, k_turned=k_turned)


@golden(
    NEW,
    8,
    MODELS + "gpt_neox.modeling_gpt_neox:GPTNeoXRotaryEmbedding",
    MODELS + "gpt_neox.modeling_gpt_neox:apply_rotary_pos_emb",
)
def rope_gpt_neox(GPTNeoXRotaryEmbedding, apply_rotary_pos_emb):
    """The half-split layout in 6 of 12 components."""
    q, k, positions = queries_keys_positions(12)
    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    config = transformers.GPTNeoXConfig(
        hidden_size=12 * H, num_attention_heads=H, rope_parameters=rope
    )
    q_turned, k_turned = apply_rotary_pos_emb(q, k, *GPTNeoXRotaryEmbedding(config)(q, positions))
    return dict(q=q, k=k, positions=positions, q_turned=q_turned, k_turned=k_turned)


@golden(
    NEW,
    9,
    MODELS + "gptj.modeling_gptj:create_sinusoidal_positions",
    MODELS + "gptj.modeling_gptj:apply_rotary_pos_emb",
)
def rope_gptj(create_sinusoidal_positions, apply_rotary_pos_emb):
    """The interleaved layout in 4 of 10 components, put together as in GPTJAttention.forward."""
    q, k, positions = queries_keys_positions(10)
    sin, cos = create_sinusoidal_positions(64, 4)[positions].chunk(2, dim=-1)

    def turn(x):  # GPT-J has the heads behind the positions
        x = x.transpose(1, 2)
        turned = torch.cat([apply_rotary_pos_emb(x[..., :4], sin, cos), x[..., 4:]], dim=-1)
        return turned.transpose(1, 2)

    return dict(q=q, k=k, positions=positions, q_turned=turn(q), k_turned=turn(k))


@golden(
    NEW,
    10,
    MODELS + "roformer.modeling_roformer:RoFormerSinusoidalPositionalEmbedding",
    MODELS + "roformer.modeling_roformer:RoFormerSelfAttention.apply_rotary_position_embeddings",
)
def rope_roformer(RoFormerSinusoidalPositionalEmbedding, apply_rotary_position_embeddings):
    """The model of the paper itself: the interleaved layout in all components."""
    q, k, positions = queries_keys_positions(K)
    table = RoFormerSinusoidalPositionalEmbedding(64, K).create_weight()  # (64, K)
    turned = apply_rotary_position_embeddings(table[positions][:, None], q, k)
    return dict(q=q, k=k, positions=positions, q_turned=turned[0], k_turned=turned[1])


@golden(NEW, 11, "transformers.core_model_loading:PermuteForRope")
def rope_weights(PermuteForRope):
    """Weights and a bias of interleaved RoPE, reordered for half-split code, and back."""
    config = transformers.LlamaConfig(hidden_size=H * K, num_attention_heads=H)
    there, back = PermuteForRope(), PermuteForRope(inverse=True)
    weight, bias = randn(H * K, 5), randn(H * K)
    arrays = dict(weight=weight, bias=bias, weight_back=back._permute_for_rope(weight, config))
    arrays["weight_there"] = there._permute_for_rope(weight, config)
    arrays["bias_there"] = there._permute_for_rope(bias, config)
    return arrays


def llama_layer(LlamaAttention, LlamaRotaryEmbedding, **rope):
    """The last L of S tokens after a cache; four heads of queries share two of keys."""
    config = transformers.LlamaConfig(
        hidden_size=12,
        head_dim=K,
        num_attention_heads=4,
        num_key_value_heads=2,
        attention_bias=True,
        max_position_embeddings=1024,
        rope_parameters={"rope_theta": 10000.0, **rope},
        attn_implementation="eager",
    )
    layer, embedding = randomise(LlamaAttention(config, layer_idx=0)), LlamaRotaryEmbedding(config)
    x, cache, positions = randn(B, S, 12), transformers.DynamicCache(), arange(FIRST, FIRST + S)
    for rows in (slice(0, MEMORY), slice(MEMORY, S)):
        mask = causal(positions[rows], positions[: rows.stop])[None, None]
        table = embedding(x, positions[None, rows])
        output, probabilities = layer(x[:, rows], table, mask, past_key_values=cache)
    made = dict(output=output, probabilities=probabilities)
    return dict(x=x, positions=positions, **weights(layer), **made)


LLAMA = [
    MODELS + "llama.modeling_llama:LlamaAttention",
    MODELS + "llama.modeling_llama:LlamaRotaryEmbedding",
]


@golden(NEW, 12, *LLAMA)
def llama_attention(LlamaAttention, LlamaRotaryEmbedding):
    """A whole causal layer with RoPE."""
    return llama_layer(LlamaAttention, LlamaRotaryEmbedding, rope_type="default")


@golden(NEW, 13, *LLAMA)
def yarn_attention(LlamaAttention, LlamaRotaryEmbedding):
    """A whole causal layer with YaRN, whose factor of the scores no rotation shows."""
    return llama_layer(
        LlamaAttention,
        LlamaRotaryEmbedding,
        rope_type="yarn",
        factor=4.0,
        original_max_position_embeddings=256,
    )


V3 = MODELS + "deepseek_v3.modeling_deepseek_v3:DeepseekV3"


@golden(NEW, 121, V3 + "Attention", V3 + "RotaryEmbedding")
def latent_attention(DeepseekV3Attention, DeepseekV3RotaryEmbedding):
    """The last L of S tokens after a cache of latent vectors, with YaRN and its scale of scores."""
    config = transformers.DeepseekV3Config(
        hidden_size=11,
        num_attention_heads=H,
        num_key_value_heads=H,
        q_lora_rank=8,
        kv_lora_rank=5,
        qk_nope_head_dim=6,
        qk_rope_head_dim=4,
        v_head_dim=7,
        max_position_embeddings=1024,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 256,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
        attn_implementation="eager",
    )
    layer = randomise(DeepseekV3Attention(config, layer_idx=0))
    embedding = DeepseekV3RotaryEmbedding(config)
    x, cache, positions = randn(B, S, 11), transformers.DynamicCache(), arange(FIRST, FIRST + S)
    for rows in (slice(0, MEMORY), slice(MEMORY, S)):
        mask = causal(positions[rows], positions[: rows.stop])[None, None]
        table = embedding(x, positions[None, rows])
        output, probabilities = layer(x[:, rows], table, mask, past_key_values=cache)
    made = dict(output=output, probabilities=probabilities, cached=cache.layers[0].keys)
    return dict(x=x, positions=positions, **weights(layer), **made)


@golden(NEW, 14, "transformers.modeling_rope_utils:ROPE_INIT_FUNCTIONS")
def rope_scaling(functions):
    """Frequencies of the four scalings for real configurations, one row of parameters each."""
    arrays = {}

    def add(kind, d, base, trained, factor, length=None, **options):
        rope = {"rope_type": kind, "rope_theta": base, "factor": factor, **options}
        longest = trained
        if kind in ("yarn", "llama3"):
            rope["original_max_position_embeddings"], longest = trained, int(trained * factor)
        config = transformers.LlamaConfig(
            head_dim=d, max_position_embeddings=longest, rope_parameters=rope
        )
        frequencies, attention_factor = functions[kind](config, seq_len=length)
        name = f"{kind}.{sum(key.endswith('frequencies') and kind in key for key in arrays)}"
        numbers = [d, base, trained, factor, *([length] if length else []), *options.values()]
        arrays[name + ".parameters"] = np.array(numbers, dtype=np.float64)
        arrays[name + ".frequencies"] = frequencies
        arrays[name + ".attention_factor"] = np.float64(attention_factor)

    add("linear", 128, 10000.0, 2048, 4.0)
    add("linear", 64, 500000.0, 8192, 2.5)
    for length in (1000, 2048, 2049, 16384):  # up to the trained length nothing changes
        add("dynamic", 128, 10000.0, 2048, 10.0, length)
    add("dynamic", 128, 500000.0, 8192, 1.0, 32768)
    add("yarn", 128, 10000.0, 4096, 16.0, beta_fast=32.0, beta_slow=1.0)
    add("yarn", 128, 500000.0, 8192, 4.0, beta_fast=32.0, beta_slow=1.0)
    add("yarn", 64, 10000.0, 4096, 40.0, beta_fast=32.0, beta_slow=1.0)  # DeepSeek-V2
    add("yarn", 128, 10000.0, 2048, 1.0, beta_fast=20.0, beta_slow=2.0)  # nothing to do
    add("yarn", 128, 10000.0, 4, 8.0, beta_fast=32.0, beta_slow=1.0)  # the bounds cross
    add("llama3", 128, 500000.0, 8192, 8.0, low_freq_factor=1.0, high_freq_factor=4.0)  # 3.1
    add("llama3", 64, 500000.0, 8192, 32.0, low_freq_factor=1.0, high_freq_factor=4.0)  # 3.2
    add("llama3", 128, 10000.0, 2048, 4.0, low_freq_factor=2.0, high_freq_factor=7.0)
    return arrays


CONFIGURED = (
    "cohere2:Cohere2 deepseek_v2:DeepseekV2 deepseek_v3:DeepseekV3 exaone4:Exaone4 gemma3:Gemma3 "
    "gemma4:Gemma4Text glm:Glm glm4v:Glm4vText gpt_neox:GPTNeoX gpt_oss:GptOss llama:Llama "
    "llama4:Llama4Text modernbert:ModernBert persimmon:Persimmon phi:Phi phi3:Phi3 "
    "qwen2_vl:Qwen2VL qwen3_5:Qwen3_5Text qwen3_next:Qwen3Next qwen3_vl:Qwen3VLText "
    "smollm3:SmolLM3 stablelm:StableLm"
).split()


@golden(
    NEW,
    46,
    *(MODELS + "{0}.modeling_{0}:{1}RotaryEmbedding".format(*m.split(":")) for m in CONFIGURED),
    MODELS + "deepseek_v2.modeling_deepseek_v2:DeepseekV2Attention",
    MODELS + "deepseek_v3.modeling_deepseek_v3:DeepseekV3Attention",
    MODELS + "smollm3.modeling_smollm3:SmolLM3Attention",
    MODELS + "llama4.modeling_llama4:Llama4TextAttention",
    MODELS + "cohere2.modeling_cohere2:Cohere2Attention",
    MODELS + "exaone4.modeling_exaone4:Exaone4Attention",
)
def rope_configs(*classes):
    """What each configuration of rope_configs.json makes of its layers at its lengths.

    M-RoPE shows in the cosines alone, at the coordinates (5, 6, 8); whether a layer turns, and
    DeepSeek's scale, in the attention of the layer.
    """
    arrays, factors, scales, use = {}, [], [], []
    embeddings, attentions = classes[: len(CONFIGURED)], classes[len(CONFIGURED) :]
    by_model = {c.__module__.split(".")[2]: c for c in embeddings}
    layer_of = {c.__module__.split(".")[2]: c for c in attentions}
    cases = json.loads(Path(__file__).with_name("rope_configs.json").read_text())
    for name, case in cases.items():
        kind = case["config"].pop("model_type")
        config = transformers.AutoConfig.for_model(kind, **case["config"])
        model, rows = kind.removesuffix("_text"), []
        for layer, length in itertools.product(case["layers"], case["lengths"]):
            embedding = by_model[model](config)
            nested = isinstance(getattr(embedding, "rope_type", None), dict)
            options = {"layer_type": config.layer_types[layer]} if nested else {}
            end, x = (length or 9) - 1, torch.zeros(1)
            if "mrope" in name:
                arrays[name] = embedding(x, torch.tensor([5, 6, 8])[:, None, None])[0].flatten()
                continue
            embedding(x, torch.tensor([[0, end]]), **options)
            prefix = options["layer_type"] + "_" if nested else ""
            rows.append(getattr(embedding, prefix + "inv_freq"))
            factors.append(getattr(embedding, prefix + "attention_scaling"))
        if rows:
            arrays[name] = torch.stack(rows)
        layers = range(config.num_hidden_layers)
        if model in ("smollm3", "llama4", "cohere2", "exaone4"):
            parts = [layer_of[model](config, n) for n in layers]
            if model == "exaone4":
                use.append([p.sliding_window is None or p.is_sliding for p in parts])
                continue
            windowed = model == "cohere2"  # whose layers with a window have RoPE
            use.append([p.sliding_window is not None if windowed else p.use_rope for p in parts])
        if model in ("deepseek_v2", "deepseek_v3"):
            layer = layer_of[model](config, 0)
            width = config.qk_nope_head_dim + config.qk_rope_head_dim
            scales.append(layer.scaling * width**0.5)
    arrays["use_rope"] = np.array(use, dtype=bool)
    arrays["score_factors"] = np.array(scales)
    arrays["attention_factors"] = np.array(factors, dtype=np.float64)
    return arrays


# ---- Shaw ---------------------------------------------------------------------------------------


@golden(
    NEW,
    15,
    MODELS + "wav2vec2_bert.modeling_wav2vec2_bert:Wav2Vec2BertSelfAttention",
    MODELS + "wav2vec2_bert.modeling_wav2vec2_bert:_apply_relative_key_position_encoding",
)
def shaw_keys(Wav2Vec2BertSelfAttention, apply_relative_key_position_encoding):
    """A whole layer with clipped relative keys, and the key term alone, with L queries."""
    config = transformers.Wav2Vec2BertConfig(
        hidden_size=H * K,
        num_attention_heads=H,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=3,
        right_max_position_embeddings=3,
        attn_implementation="eager",
    )
    layer = randomise(Wav2Vec2BertSelfAttention(config))
    x, q, k = randn(B, S, H * K), randn(B, H, L, K), randn(B, H, S, K)
    output, probabilities = layer(x)
    _, bias = apply_relative_key_position_encoding(layer, q, k)
    made = dict(bias=bias, output=output, probabilities=probabilities)
    return dict(x=x, q=q, k=k, **weights(layer), **made)


@golden(NEW, 16, MODELS + "vits.modeling_vits:VitsAttention")
def shaw_keys_and_values(VitsAttention):
    """A whole layer with relative keys and values in a window of 3, shorter than the sequence."""
    config = transformers.VitsConfig(hidden_size=H * K, num_attention_heads=H, window_size=3)
    layer, x = randomise(VitsAttention(config)), randn(B, S, H * K)
    output, probabilities = layer(x, output_attentions=True)
    return dict(x=x, **weights(layer), output=output, probabilities=probabilities)


BERT = MODELS + "bert.modeling_bert:BertSelfAttention"


def bert_layer(BertSelfAttention, kind):
    """Other tokens for the keys, so that there are S of them; a vector for each distance."""
    config = transformers.BertConfig(
        hidden_size=H * K,
        num_attention_heads=H,
        max_position_embeddings=S + 2,
        position_embedding_type=kind,
    )
    layer = randomise(BertSelfAttention(config))
    x, memory = randn(B, L, H * K), randn(B, S, H * K)
    output, probabilities = layer(x, encoder_hidden_states=memory, output_attentions=True)
    made = dict(output=output, probabilities=probabilities)
    return dict(x=x, memory=memory, **weights(layer), **made)


@golden(OLD, 17, BERT)
def bert_relative_key(BertSelfAttention):
    """Shaw's key term."""
    return bert_layer(BertSelfAttention, "relative_key")


@golden(OLD, 18, BERT)
def bert_relative_key_query(BertSelfAttention):
    """Shaw's key term, and the same vectors once more for the keys."""
    return bert_layer(BertSelfAttention, "relative_key_query")


@golden(
    OLD,
    40,
    MODELS + "nezha.modeling_nezha:NezhaSelfAttention",
    MODELS + "nezha.modeling_nezha:NezhaRelativePositionsEncoding",
)
def nezha(NezhaSelfAttention, NezhaRelativePositionsEncoding):
    """A whole layer with fixed vectors in keys and values, clipped at 3; its table by distance."""
    config = transformers.NezhaConfig(
        hidden_size=H * K,
        num_attention_heads=H,
        max_position_embeddings=S + 2,
        max_relative_position=3,
    )
    torch.set_default_dtype(torch.float32)  # its table is made in float32 alone
    layer, vectors = NezhaSelfAttention(config), NezhaRelativePositionsEncoding(S, K, 3)(S)
    torch.set_default_dtype(torch.float64)
    layer, x = randomise(layer), randn(B, S, H * K)
    output, probabilities = layer(x, output_attentions=True)
    made = dict(vectors=vectors, output=output, probabilities=probabilities)
    return dict(x=x, **weights(layer), **made)


# ---- Transformer-XL and XLNet -------------------------------------------------------------------


@golden(
    OLD,
    19,
    MODELS + "transfo_xl.modeling_transfo_xl:PositionalEmbedding",
    MODELS + "transfo_xl.modeling_transfo_xl:RelPartialLearnableMultiHeadAttn",
)
def transformer_xl(PositionalEmbedding, RelPartialLearnableMultiHeadAttn):
    """A whole layer under its causal mask, codes of the distances S - 1 .. 0, and its shift."""
    D = 10
    layer = randomise(RelPartialLearnableMultiHeadAttn(H, D, K, dropout=0.0)).float()
    x, memory = randn(L, B, D).float(), randn(MEMORY, B, D).float()  # its mask fits float32 alone
    codes = PositionalEmbedding(D)(arange(S - 1, -1, -1.0)).float()  # (S, 1, D)
    future = torch.triu(torch.ones(L, S, dtype=torch.bool), diagonal=1 + MEMORY)[:, :, None]
    _, probabilities = layer(x, codes, future, memory, output_attentions=True)
    products = randn(L, S, B, H)
    kept = weights(layer, "qkv_net.weight", "r_net.weight", "r_r_bias", "r_w_bias")
    shifted = layer._rel_shift(products)
    made = dict(probabilities=probabilities, products=products, shifted=shifted)
    return dict(x=x, memory=memory, codes=codes, **kept, **made)


def xlnet_layer(XLNetModel, attn_type):
    """Scores, weights and output of L queries after a memory; the model makes codes and mask."""
    config = transformers.XLNetConfig(
        vocab_size=6, d_model=H * K, n_head=H, n_layer=1, d_inner=4, attn_type=attn_type
    )
    model = randomise(XLNetModel(config))
    layer = model.layer[0].rel_attn
    x = randn(S, B, H * K)
    codes = model.relative_positional_encoding(L, S, bsz=B).to(x.dtype)  # (N, B, D)
    mask = model.create_mask(L, MEMORY)[:, :, None, None] if attn_type == "uni" else None

    def project(x, weight):
        return torch.einsum("ibh,hnd->ibnd", x, weight)

    q, k, v = project(x[MEMORY:], layer.q), project(x, layer.k), project(x, layer.v)
    r = project(codes, layer.r)
    output, probabilities = layer.rel_attn_core(
        q, k, v, r, attn_mask=None if mask is None else mask.to(x.dtype), output_attentions=True
    )
    kept = weights(layer, "q", "k", "v", "r", "r_r_bias", "r_w_bias")
    return dict(x=x, codes=codes[:, 0], **kept, output=output, probabilities=probabilities)


@golden(NEW, 20, MODELS + "xlnet.modeling_xlnet:XLNetModel")
def xlnet_both_directions(XLNetModel):
    """No mask, codes of the distances S .. 1 - L."""
    return xlnet_layer(XLNetModel, "bi")


@golden(NEW, 21, MODELS + "xlnet.modeling_xlnet:XLNetModel")
def xlnet_one_direction(XLNetModel):
    """A causal mask, codes of the distances S .. 0."""
    return xlnet_layer(XLNetModel, "uni")


# ---- DeBERTa ------------------------------------------------------------------------------------


@golden(OLD, 22, MODELS + "deberta.modeling_deberta:DisentangledSelfAttention")
def deberta_v1(DisentangledSelfAttention):
    """A whole layer, and the two position terms alone for the last L of S positions.

    The newer code of the two terms fails where L and S differ.
    """
    config = transformers.DebertaConfig(
        hidden_size=H * K,
        num_attention_heads=H,
        relative_attention=True,
        max_relative_positions=4,
        pos_att_type=["c2p", "p2c"],
    )
    layer = randomise(DisentangledSelfAttention(config))
    x, table = randn(B, S, H * K), randn(8, H * K)  # 4 rows for each direction
    q, k = randn(B, H, L, K), randn(B, H, S, K)
    mask = torch.ones(B, 1, S, S, dtype=torch.bool)
    mask[1, :, :, -1] = False
    square = arange(S)[:, None] - arange(S)
    output, probabilities = layer(x, mask, True, relative_pos=square, rel_embeddings=table)
    scaled = q / (3 * K) ** 0.5  # the layer does so before it calls the next
    bias = layer.disentangled_att_bias(scaled, k, square[MEMORY:], table, 3)
    made = dict(output=output, probabilities=probabilities, bias=bias)
    return dict(x=x, table=table, q=q, k=k, mask=mask, **weights(layer), **made)


@golden(NEW, 23, MODELS + "deberta_v2.modeling_deberta_v2:DisentangledSelfAttention")
def deberta_v2(DisentangledSelfAttention):
    """A whole layer with logarithmic buckets and shared projections, as in DeBERTa-v3."""
    n = 11
    config = transformers.DebertaV2Config(
        hidden_size=H * K,
        num_attention_heads=H,
        relative_attention=True,
        position_buckets=6,
        max_relative_positions=n + 1,
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
    )
    layer = randomise(DisentangledSelfAttention(config))
    x, table = randn(B, n, H * K), randn(12, H * K)
    mask = torch.ones(B, 1, n, n, dtype=torch.bool)
    q, k = randn(B * H, n, K), randn(B * H, n, K)
    bias = layer.disentangled_attention_bias(q, k, None, table, 3)
    output, probabilities = layer(x, mask, output_attentions=True, rel_embeddings=table)
    made = dict(output=output, probabilities=probabilities, bias=bias)
    return dict(x=x, table=table, q=q, k=k, **weights(layer), **made)


@golden(NEW, 24, MODELS + "deberta_v2.modeling_deberta_v2:make_log_bucket_position")
def deberta_buckets(make_log_bucket_position):
    """Logarithmic buckets of DeBERTa-v3 and of half its size, and what lies beyond them."""
    distance, sizes = arange(-700, 701), [(256, 512), (128, 512)]
    buckets = torch.stack([make_log_bucket_position(distance, *size).long() for size in sizes])
    return dict(distance=distance, sizes=np.array(sizes), buckets=buckets)


# ---- attention ----------------------------------------------------------------------------------


@golden(NEW, 25, "torch.nn:MultiheadAttention")
def torch_multihead(MultiheadAttention):
    """A whole layer; in its masks True means: may not attend."""
    layer = randomise(MultiheadAttention(H * K, H, kdim=10, vdim=9, batch_first=True))
    q, k, v = randn(B, L, H * K), randn(B, S, 10), randn(B, S, 9)
    forbidden, padding = torch.rand(L, S) < 0.3, torch.zeros(B, S, dtype=torch.bool)
    forbidden[:, 0], padding[1, -2:] = False, True
    output, probabilities = layer(
        q, k, v, key_padding_mask=padding, attn_mask=forbidden, average_attn_weights=False
    )
    masks = dict(forbidden=forbidden, padding=padding)
    made = dict(output=output, probabilities=probabilities)
    return dict(q=q, k=k, v=v, **masks, **weights(layer), **made)


@golden(NEW, 26, "torch.nn.functional:scaled_dot_product_attention")
def torch_scaled_dot_product(attention):
    """The function alone; in its mask True means: may attend. One query may attend to nothing."""
    q, k, v = randn(B, H, L, K), randn(B, H, S, K), randn(B, H, S, 4)
    mask, bias = torch.rand(B, 1, L, S) < 0.6, randn(H, L, S)
    mask[0, 0, 2] = False
    return dict(
        q=q,
        k=k,
        v=v,
        mask=mask,
        bias=bias,
        plain=attention(q, k, v),
        masked=attention(q, k, v, attn_mask=mask),
        biased=attention(q, k, v, attn_mask=bias),
        causal=attention(q, k, v, is_causal=True),
        scaled=attention(q, k, v, scale=0.3),
    )


# ---- packed rows, parts of one attention, ranks -------------------------------------------------


@golden(
    NEW,
    121,
    "transformers.masking_utils:find_packed_sequence_indices",
    "transformers.masking_utils:packed_sequence_mask_function",
    "transformers.modeling_flash_attention_utils:prepare_fa_kwargs_from_position_ids",
)
def packed_rows(find_packed_sequence_indices, packed_sequence_mask_function, prepare_fa_kwargs):
    """What is derived from positions that restart, for two rows of documents."""
    positions = torch.tensor([[0, 1, 2, 0, 1, 0, 0, 1, 2], [0, 0, 1, 2, 3, 4, 5, 6, 0]])
    documents = find_packed_sequence_indices(positions)
    b, q, k = arange(B)[:, None, None], arange(9)[:, None], arange(9)
    mask = packed_sequence_mask_function(documents)(b, 0, q, k)
    made = {f"borders_{n}": prepare_fa_kwargs(row)[0][0] for n, row in enumerate(positions)}
    return dict(positions=positions, documents=documents, mask=mask, **made)


CONTEXT_PARALLEL = "torch.distributed.tensor.experimental._context_parallel."


@golden(
    NEW,
    122,
    CONTEXT_PARALLEL + "_load_balancer:_HeadTailLoadBalancer",
    CONTEXT_PARALLEL + "_attention:_SDPAMerger",
    "torch:ops.aten._scaled_dot_product_flash_attention_for_cpu",
)
def torch_context_parallel(HeadTailLoadBalancer, SDPAMerger, flash_attention):
    """Attention over three parts of the keys, merged; in one part a query sees nothing."""
    q, k, v = randn(B, H, L, K), randn(B, H, 3 * S, K), randn(B, H, 3 * S, K)
    mask = torch.rand(B, H, L, 3 * S) < 0.6
    mask[0, 0, 2, S : 2 * S] = False
    parts, merger = [], SDPAMerger(convert_to_f32=False, seq_dim=2)
    for n in range(3):
        keys = slice(n * S, (n + 1) * S)
        seen = mask[..., keys]
        bias = torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)
        output, log_sum = flash_attention(q, k[:, :, keys], v[:, :, keys], attn_mask=bias)
        parts.append((output, log_sum))
        merger.step(output, log_sum.masked_fill(~seen.any(-1), -torch.inf), partial=False)
    output, log_sum = merger.results()
    made = dict(outputs=torch.stack([x for x, _ in parts]), output=output, log_sum=log_sum)
    sizes = np.array([(8, 2), (12, 3), (40, 4), (6, 1)])
    for n, (length, ranks) in enumerate(sizes.tolist()):
        made[f"zigzag_{n}"] = HeadTailLoadBalancer(length, ranks, "cpu")._generate_indices()
    log_sums = torch.stack([x for _, x in parts])
    return dict(q=q, k=k, v=v, mask=mask, sizes=sizes, log_sums=log_sums, **made)


# ---- sinusoids ----------------------------------------------------------------------------------


@golden(
    NEW,
    27,
    MODELS + "whisper.modeling_whisper:sinusoids",
    MODELS + "m2m_100.modeling_m2m_100:M2M100SinusoidalPositionalEmbedding.get_embedding",
    MODELS + "marian.modeling_marian:MarianSinusoidalPositionalEmbedding",
)
def sinusoids(whisper, m2m100, Marian):
    """Tables of 9 positions and 12 components."""
    marian = Marian(9, 12).create_weight()
    return dict(whisper=whisper(9, 12), m2m100=m2m100(9, 12), marian=marian)


@golden(NEW, 28, MODELS + "vit_mae.modeling_vit_mae:build_2d_sinusoidal_position_embedding")
def sinusoids_2d(build_2d_sinusoidal_position_embedding):
    """A grid of 3 rows and 5 columns, flattened."""
    return dict(table=build_2d_sinusoidal_position_embedding(3, 5, 12, dtype=torch.float64))


# ---- windows of images --------------------------------------------------------------------------

SWIN, SWIN2 = MODELS + "swin.modeling_swin:", MODELS + "swinv2.modeling_swinv2:"
BEIT = MODELS + "beit.modeling_beit:"


@golden(
    NEW,
    81,
    SWIN + "SwinRelativePositionBias",
    SWIN + "SwinAttention",
    BEIT + "BeitRelativePositionBias.generate_relative_position_index",
)
def swin(SwinRelativePositionBias, SwinAttention, beit_index):
    """Index and bias of a window 2 by 3; BEiT's index with a class token; a layer, 3 by 3."""
    oblong = randomise(SwinRelativePositionBias(H, (2, 3)))
    config = transformers.SwinConfig(qkv_bias=True, attn_implementation="eager")
    layer, x = randomise(SwinAttention(config, H * K, H, 3)), randn(B, 9, H * K)
    output, probabilities = layer(x)
    return dict(
        table=oblong.relative_position_bias_table.detach(),
        index=oblong.relative_position_index,
        bias=oblong()[0],
        with_class_token=beit_index((2, 3)),
        **dict(x=x, output=output, probabilities=probabilities, **weights(layer)),
    )


@golden(NEW, 82, SWIN2 + "Swinv2SelfAttention")
def swin_v2(Swinv2SelfAttention):
    """A layer in windows 2 by 3, pretrained at 4 by 5, and its coordinates, which are float32."""
    config = transformers.Swinv2Config(qkv_bias=True)
    layer = randomise(Swinv2SelfAttention(config, H * K, H, (2, 3), (4, 5)))
    layer.continuous_position_bias_mlp[0] = torch.nn.Linear(2, 8)  # 512 would fill the file
    layer.continuous_position_bias_mlp[2] = torch.nn.Linear(8, H, bias=False)
    x = randn(B, 6, H * K)
    output, probabilities = randomise(layer)(x, output_attentions=True)
    made = dict(coordinates=layer.relative_coords_table, output=output, probabilities=probabilities)
    return dict(x=x, **weights(layer), **made)


@golden(
    NEW,
    83,
    MODELS + "vitdet.modeling_vitdet:add_decomposed_relative_positions",
    MODELS + "sam.modeling_sam:SamVisionAttention",
)
def decomposed_positions(add_decomposed_relative_positions, SamVisionAttention):
    """Queries 2 by 3 with keys 4 by 2; tables that are resized, 3 by 5; a layer of SAM, 3 by 3."""
    q, k, rows, columns = randn(B, 6, K), randn(B, 8, K), randn(7, K), randn(5, K)
    unequal = add_decomposed_relative_positions(
        (q * K**-0.5) @ k.mT, q, rows, columns, (2, 3), (4, 2)
    )
    x5 = randn(B, 15, K)
    resized = add_decomposed_relative_positions(
        torch.zeros(B, 15, 15), x5, rows, columns, (3, 5), (3, 5)
    )
    config = transformers.SamVisionConfig(hidden_size=H * K, num_attention_heads=H)
    layer, x = randomise(SamVisionAttention(config, 3)), randn(B, 3, 3, H * K)
    output, probabilities = layer(x)
    made = dict(unequal=unequal, resized=resized, output=output, probabilities=probabilities)
    return dict(q=q, k=k, rows=rows, columns=columns, x5=x5, x=x, **weights(layer), **made)


@golden(NEW, 51, MODELS + "detr.modeling_detr:DetrSinePositionEmbedding")
def sinusoids_detr(DetrSinePositionEmbedding):
    """Two pictures in one batch, one of them padded; counts raw and normalised."""
    real = torch.ones(2, 4, 5, dtype=torch.bool)
    real[1, 3:] = real[1, :, 2:] = False
    arrays = dict(real=real)
    for name, normalize in (("raw", False), ("normalised", True)):
        layer = DetrSinePositionEmbedding(6, normalize=normalize)
        code = layer((2, 1, 4, 5), torch.device("cpu"), torch.float64, real)  # (B, D, h, w)
        arrays[name] = code.permute(0, 2, 3, 1)
    return arrays


@golden(
    NEW,
    52,
    "timm.layers.pos_embed_sincos:build_sincos2d_pos_embed",
    MODELS + "vit_mae.modeling_vit_mae:ViTMAEEmbeddings",
)
def sinusoids_in_order(build_sincos2d_pos_embed, ViTMAEEmbeddings):
    """timm's layouts of a grid of 3 by 5, and the table with which ViT-MAE begins, of 3 by 3."""
    config = transformers.ViTMAEConfig(
        hidden_size=12, num_attention_heads=1, num_hidden_layers=1, image_size=6, patch_size=2
    )
    layer = ViTMAEEmbeddings(config)
    layer.initialize_weights()
    return dict(
        default=build_sincos2d_pos_embed([3, 5], 12),
        interleaved=build_sincos2d_pos_embed([3, 5], 12, interleave_sin_cos=True),
        reversed=build_sincos2d_pos_embed([3, 5], 12, reverse_coord=True),
        mae=layer.position_embeddings[0],
    )


@golden(NEW, 53, "torch.nn.functional:interpolate", "timm.layers.pos_embed:resample_abs_pos_embed")
def resized_tables(interpolate, resample_abs_pos_embed):
    """A grid of 4 by 7 made larger along one axis and smaller along the other, and back."""
    table, arrays = randn(4, 7, 2), {}
    for size in ((9, 3), (3, 12)):
        name = "x".join(map(str, size))
        for mode in ("bilinear", "bicubic"):
            for way in ({}, {"align_corners": True}, {"antialias": True}):
                grid = table.permute(2, 0, 1)[None]
                made = interpolate(grid, size, mode=mode, **{"align_corners": False, **way})
                key = "_".join([mode, name, *way])
                arrays[key] = made[0].permute(1, 2, 0)
    prefixed = randn(1, 2 + 4 * 7, 2)  # two rows that are no patches
    timm = resample_abs_pos_embed(prefixed, [6, 5], [4, 7], num_prefix_tokens=2)
    return dict(table=table, prefixed=prefixed[0], timm=timm[0], **arrays)


@golden(NEW, 54, "segment_anything.modeling.prompt_encoder:PositionEmbeddingRandom")
def sam_features(PositionEmbeddingRandom):
    """The code of a grid, and of points in pixels, of SAM's prompt encoder."""
    layer = PositionEmbeddingRandom(5, scale=1.5).float()  # as its grid is
    points = 20 * torch.rand(2, 3, 2)
    return dict(
        waves=layer.positional_encoding_gaussian_matrix,  # (2, m)
        grid=layer((3, 4)).permute(1, 2, 0),  # (h, w, D)
        points=points,
        of_points=layer.forward_with_coords(points, (30, 20)),
    )


# ---- what the text decides ----------------------------------------------------------------------

X = "x_transformers.x_transformers:"


@golden(NEW, 71, X + "DataDependentAlibi", X + "CoPE")
def content(DataDependentAlibi, CoPE):
    """Biases of forget gates, for a decoder and an encoder; counts under a causal mask."""
    x, decoder = randn(B, S, 10), randomise(DataDependentAlibi(10, H))
    encoder = randomise(DataDependentAlibi(10, H, causal=False))
    cope, q = randomise(CoPE(K, H, max_pos=4)), randn(B, H, L, K)
    future = arange(S) > arange(MEMORY, S)[:, None]
    scores = randn(B, H, L, S).masked_fill(future, -1e9)
    return dict(
        x=x,
        decoder_weight=decoder.to_forget_gates[0].weight.detach(),
        decoder_bias=decoder.to_forget_gates[0].bias.detach(),
        decoder=decoder(x),
        encoder_weight=encoder.to_forget_gates[0].weight.detach(),
        encoder_bias=encoder.to_forget_gates[0].bias.detach(),
        encoder=encoder(x),
        q=q,
        scores=scores,
        table=cope.pos_emb.detach(),
        cope=cope(q, scores),
    )


@golden(NEW, 72, "x_transformers.x_transformers:AlibiPositionalBias")
def alibi_encoder(AlibiPositionalBias):
    """The symmetric bias of an encoder: the last queries of all keys, and positions of a batch."""
    bias, others = AlibiPositionalBias(heads=12), torch.tensor([[0, 0, 1, 7], [3, 2, 9, 4]])
    own = bias.forward_custom_pos(others, others[:, :3])
    return dict(last=bias(L, S), q_positions=others, k_positions=others[:, :3], own=own)


# ---- RoPE on grids ------------------------------------------------------------------------------

SINCOS = "timm.layers.pos_embed_sincos:"


@golden(
    NEW,
    110,
    MODELS + "qwen2_vl.modeling_qwen2_vl:Qwen2VLVisionRotaryEmbedding",
    MODELS + "pixtral.modeling_pixtral:PixtralVisionRotaryEmbedding",
    MODELS + "gemma4.modeling_gemma4:Gemma4VisionRotaryEmbedding",
    MODELS + "gemma4.modeling_gemma4:apply_multidimensional_rope",
    MODELS + "dinov3_vit.modeling_dinov3_vit:DINOv3ViTRopePositionEmbedding",
    MODELS + "dinov3_vit.modeling_dinov3_vit:apply_rotary_pos_emb",
    SINCOS + "build_rotary_pos_embed",
    SINCOS + "apply_rot_embed",
    SINCOS + "get_mixed_freqs",
    SINCOS + "apply_rot_embed_cat",
)
def rope_grid(qwen, pixtral, gemma, gemma_turn, dino, turn, axial, apply, mixed, apply_cat):
    """Queries of 2 by 3 patches, turned by four vision models and in four ways by timm."""
    grid = torch.stack(torch.meshgrid(arange(2), arange(3), indexing="ij"), -1).reshape(-1, 2)
    heads, four = dict(num_attention_heads=2), dict(rope_type="axial", rope_theta=10000.0)
    x, prefix, frequencies = randn(1, 2, 6, 8), randn(1, 2, 3, 8), randn(2, 2, 4)
    arrays = dict(x=x, prefix=prefix, frequencies=frequencies)
    qwen_config = transformers.models.qwen2_vl.Qwen2VLVisionConfig
    config = qwen_config(embed_dim=16, rope_parameters=four, **heads)
    arrays["qwen2_vl"] = turn(x, x, *qwen(config)(x, grid))[0]
    config = transformers.PixtralVisionConfig(hidden_size=16, rope_parameters=four, **heads)
    arrays["pixtral"] = turn(x, x, *pixtral(config)(x, grid))[0]
    config = transformers.models.gemma4.Gemma4VisionConfig(head_dim=8, hidden_size=16, **heads)
    arrays["gemma4"] = gemma_turn(x, *gemma(config)(x, grid[None]), grid[None], unsqueeze_dim=1)
    config = transformers.DINOv3ViTConfig(hidden_size=16, patch_size=2, **heads)
    both = torch.cat([prefix, x], 2)  # a class token and two registers
    arrays["dinov3"] = turn(both, both, *dino(config).eval()(randn(1, 3, 4, 6)))[0]
    options = dict(dim=8, in_pixels=False, temperature=10000.0)
    arrays["timm"] = apply(x, *axial([2, 3], **options))
    arrays["timm_trained"] = apply(x, *axial([2, 3], ref_feat_shape=[4, 5], **options))
    options["temperature"] = 100.0
    arrays["timm_half"] = apply(x, *axial([2, 3], rotate_half=True, **options), half=True)
    arrays["timm_mixed"] = apply_cat(x, mixed(frequencies, grid[:, 0], grid[:, 1]))
    return arrays


QWEN2, QWEN3 = MODELS + "qwen2_vl.modeling_qwen2_vl:", MODELS + "qwen3_vl.modeling_qwen3_vl:"


@golden(
    NEW,
    111,
    QWEN2 + "Qwen2VLModel",
    QWEN2 + "Qwen2VLRotaryEmbedding",
    QWEN3 + "Qwen3VLTextRotaryEmbedding",
    QWEN3 + "apply_rotary_pos_emb",
)
def mrope(Qwen2VLModel, contiguous, interleaved, turn):
    """Positions of two sequences of text and images; queries turned by both ways to share."""
    images = [[0] * 2 + [1] * 6 + [0] * 3 + [1] * 3 + [0], [0] * 4 + [1] * 8 + [0] * 3]
    kinds, grids = torch.tensor(images), torch.tensor([[1, 4, 6], [1, 6, 2], [1, 4, 8]])
    model = Qwen2VLModel.__new__(Qwen2VLModel)  # without its layers
    model.config = transformers.Qwen2VLConfig(vision_config=dict(spatial_merge_size=2))
    positions, delta = model.get_rope_index(kinds, kinds, image_grid_thw=grids)
    q, sizes = randn(2, 1, 15, 16), dict(hidden_size=32, num_attention_heads=2, head_dim=16)
    arrays = dict(q=q, positions=positions.permute(1, 2, 0), delta=delta[:, 0])
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]}
    config = transformers.models.qwen2_vl.Qwen2VLTextConfig(rope_parameters=rope, **sizes)
    arrays["qwen2_vl"] = turn(q, q, *contiguous(config)(q, positions))[0]
    rope = rope | {"mrope_section": [4, 2, 2]}
    config = transformers.models.qwen3_vl.Qwen3VLTextConfig(rope_parameters=rope, **sizes)
    arrays["qwen3_vl"] = turn(q, q, *interleaved(config)(q, positions))[0]
    return arrays


# ---- windows, chunks, sinks, temperature ---------------------------------------------------------


@golden(
    NEW,
    80,
    "transformers.masking_utils:sliding_window_causal_mask_function",
    "transformers.masking_utils:chunked_causal_mask_function",
)
def window_masks(sliding, chunked):
    """Masks of windows and chunks; the second sequence has three tokens of padding on the left."""
    sizes, padding = (1, 2, 3, 5), torch.tensor([0, 3])
    b, q, k = arange(B)[:, None, None], arange(9)[:, None], arange(9)
    windows = [sliding(n)(0, 0, q, k) for n in sizes]
    chunks = [chunked(n, padding)(b, 0, q, k) for n in sizes]
    made = dict(windows=torch.stack(windows), chunks=torch.stack(chunks))
    return dict(sizes=np.array(sizes), padding=padding, **made)


@golden(
    NEW,
    81,
    MODELS + "gpt_oss.modeling_gpt_oss:eager_attention_forward",
    MODELS + "granite_swa.modeling_granite_swa:eager_attention_forward",
    MODELS + "inkling2.modeling_inkling2:eager_attention_forward",
    "transformers.masking_utils:sliding_window_causal_mask_function",
)
def sinks(gpt_oss, granite, inkling, sliding):
    """The same attention in a window, with sinks as a column, as a sigmoid, and of each query."""
    q, k, v, sinks = randn(B, 4, L, K), randn(B, 2, S, K), randn(B, 2, S, K), 2 * randn(4)
    seen = sliding(3)(0, 0, arange(MEMORY, S)[:, None], arange(S))
    mask = torch.zeros(L, S).masked_fill(~seen, torch.finfo(torch.float64).min)[None, None]
    layer = torch.nn.Module()
    layer.num_key_value_groups, layer.sinks = 2, sinks
    by_query = 2 * randn(B, 4, L, 1)
    arrays = dict(q=q, k=k, v=v, sinks=sinks, by_query=by_query[..., 0])
    for name, attention in (("gpt_oss", gpt_oss), ("granite", granite)):
        output, _ = attention(layer, q, k, v, mask, K**-0.5)
        arrays[name] = output.transpose(1, 2)
    arrays["inkling"] = inkling(layer, q, k, v, mask, K**-0.5, sinks=by_query)[0].transpose(1, 2)
    return arrays


@golden(
    NEW,
    82,
    MODELS + "llama4.modeling_llama4:Llama4TextAttention",
    MODELS + "ministral3.modeling_ministral3:get_llama_4_attn_scale",
)
def temperature(Llama4TextAttention, get_llama_4_attn_scale):
    """A cached layer without RoPE, whose queries grow in steps of 3; Ministral's rule alone."""
    config = transformers.Llama4TextConfig(
        hidden_size=12,
        head_dim=K,
        num_attention_heads=2,
        num_key_value_heads=1,
        num_hidden_layers=2,
        no_rope_layers=[1, 0],
        floor_scale=3,
        attn_scale=0.5,
        attn_implementation="eager",
    )
    layer, cache = randomise(Llama4TextAttention(config, layer_idx=1)), transformers.DynamicCache()
    x = randn(B, S, 12)
    for rows in (slice(0, MEMORY), slice(MEMORY, S)):
        mask = causal(arange(S)[rows], arange(rows.stop))[None, None]
        output, probabilities = layer(x[:, rows], None, mask, past_key_values=cache)
    ministral = get_llama_4_attn_scale(arange(9)[None], 0.5, 3)[0, 0, :, 0]
    made = dict(output=output, probabilities=probabilities, ministral=ministral)
    return dict(x=x, **weights(layer), **made)


# ---- relatives of RoPE --------------------------------------------------------------------------


@golden(NEW, 130, X + "RotaryEmbedding", X + "apply_rotary_pos_emb")
def xpos(RotaryEmbedding, apply_rotary_pos_emb):
    """Four of six components turn and fade; the last L of S positions ask."""
    positions = FIRST + arange(S)
    q, k = randn(1, H, L, K), randn(1, H, S, K)
    angles, scale = RotaryEmbedding(4, use_xpos=True, scale_base=20)(positions)
    q_turned = apply_rotary_pos_emb(q, angles, scale)
    k_turned = apply_rotary_pos_emb(k, angles, scale**-1.0)
    return dict(q=q, k=k, positions=positions, q_turned=q_turned, k_turned=k_turned)


@golden(
    NEW,
    131,
    MODELS + "roformer.modeling_roformer:RoFormerSelfAttention",
    MODELS + "roformer.modeling_roformer:RoFormerSinusoidalPositionalEmbedding",
    MODELS + "deepseek_v4.modeling_deepseek_v4:apply_rotary_pos_emb",
)
def rotary_values(RoFormerSelfAttention, Embedding, apply_rotary_pos_emb):
    """A layer of RoFormer that turns values; DeepSeek-V4 turns them back, and the first 2 never."""
    config = transformers.RoFormerConfig(
        hidden_size=H * K, num_attention_heads=H, rotary_value=True
    )
    layer, x = randomise(RoFormerSelfAttention(config)), randn(1, S, H * K)
    table = Embedding(64, K).create_weight()[FIRST + arange(S)]
    output, probabilities = layer(x, sinusoidal_pos=table[None, None])
    probs, v = torch.softmax(randn(1, H, L, S), -1), randn(1, H, S, K)
    angles = (FIRST + arange(S))[:, None] * torch.tensor([1.0, 0.01])
    cos, sin = angles.cos()[None], angles.sin()[None]
    mixed = probs @ apply_rotary_pos_emb(v, cos, sin)
    turned_back = apply_rotary_pos_emb(mixed, cos[:, MEMORY:], -sin[:, MEMORY:])
    made = dict(output=output, probabilities=probabilities, probs=probs, turned_back=turned_back)
    return dict(x=x, **weights(layer, "value.weight", "value.bias"), v=v, **made)


@golden(NEW, 132, X + "PolarEmbedding", X + "apply_polar_pos_emb")
def pope(PolarEmbedding, apply_polar_pos_emb):
    """Phases beyond both ends of their clamp; the last L of S positions ask."""
    q, k = randn(1, H, L, K), randn(1, H, S, K)
    polar = PolarEmbedding(K, H)
    polar.learned_bias.data = 2 - 10 * torch.rand(H, 1, K)
    angles, bias = polar(FIRST + arange(S))
    q_turned, k_turned = apply_polar_pos_emb(q, angles), apply_polar_pos_emb(k, angles + bias)
    made = dict(q_turned=q_turned, k_turned=k_turned)
    return dict(q=q, k=k, bias=polar.learned_bias.data, **made)


# ---- linear attention with a state --------------------------------------------------------------

FLA = "fla.ops."


@golden(
    NEW,
    120,
    FLA + "retention.naive:naive_retention",
    FLA + "simple_gla.naive:naive_recurrent_simple_gla",
    FLA + "gla.naive:naive_recurrent_gla",
    FLA + "delta_rule.naive:delta_rule_chunkwise",
    FLA + "gated_delta_rule.naive:naive_recurrent_gated_delta_rule",
    FLA + "kda.naive:naive_recurrent_kda",
)
def recurrence(retention, simple_gla, gla, delta_rule, gated_delta_rule, kda):
    """Reference forms behind a state, in float32; two of them without one, DeltaNet in float64."""
    q, k, v = randn(B, H, S, K), randn(B, H, S, K), randn(B, H, S, L)
    k = torch.nn.functional.normalize(k, dim=-1)
    beta, decay, decays = torch.rand(B, H, S), -torch.rand(B, H, S), -torch.rand(B, H, S, K)
    state = randn(B, H, K, L)

    def by_token(function, *arrays):
        """In their layout, (B, S, H, ...), and back."""
        theirs = (x.transpose(1, 2) for x in arrays)
        output, last = function(*theirs, initial_state=state.clone(), output_final_state=True)
        return output.transpose(1, 2), last

    pairs = dict(
        simple_gla=by_token(simple_gla, q, k, v, decay),
        gla=by_token(gla, q, k, v, decays),
        delta_rule=delta_rule(q, k, v, beta, chunk_size=S),
        gated_delta_rule=by_token(gated_delta_rule, q, k, v, beta, decay),
        kda=by_token(kda, q, k, v, decays, beta),
    )
    made = {name: output for name, (output, _) in pairs.items()}
    made |= {f"{name}_state": last for name, (_, last) in pairs.items()}
    made["retention"] = retention(q, k, v)
    return dict(q=q, k=k, v=v, beta=beta, decay=decay, decays=decays, state=state, **made)


# ---- graphs -------------------------------------------------------------------------------------


@golden(NEW, 95, GRAPHS + "normalized_laplacian_matrix", GRAPHS + "laplacian_matrix")
def graph_laplacians(normalized_laplacian_matrix, laplacian_matrix):
    """Both Laplacians of a weighted graph, and their eigenvalues."""
    adjacency = (torch.rand(8, 8) * (torch.rand(8, 8) < 0.4)).triu(1)
    adjacency = adjacency + adjacency.T
    adjacency[0, 1:] = adjacency[1:, 0] = 0.5  # connected
    graph = resolve_name("networkx:from_numpy_array")(adjacency.numpy())
    arrays = {"adjacency": adjacency}
    for name, of in (("normalized", normalized_laplacian_matrix), ("plain", laplacian_matrix)):
        arrays[name] = of(graph).toarray()
        arrays[name + "_values"] = np.linalg.eigvalsh(arrays[name])
    return arrays


# ---- files --------------------------------------------------------------------------------------


def provenance(name: str, seed: int, sources: tuple[str, ...]) -> str:
    """JSON text: which code of which versions made this file, from which seed."""
    library = sources[0].partition(".")[0]
    own = {"fla": metadata.version("fla-core")} if library == "fla" else {}
    return json.dumps(
        {
            "file": f"{name}.npz",
            "library": library,
            "code": sources,
            **own,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "weights": "random, nothing downloaded",
            "seed": seed,
        }
    )


def code_of(source: str) -> Callable:
    """What a name stands for; of fla its file alone, since the packages around it import Triton."""
    module, _, name = source.partition(":")
    if not module.startswith("fla."):
        return resolve_name(source)
    (folder,) = find_spec("fla").submodule_search_locations
    path = Path(folder, *module.split(".")[1:]).with_suffix(".py")
    spec = spec_from_file_location(module, path)
    file = module_from_spec(spec)
    spec.loader.exec_module(file)
    return getattr(file, name)


def main() -> None:
    """Write every file of the script that runs, if the transformers at hand are to make it."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    own = {name: file for name, file in FILES.items() if file[0].__module__ == "__main__"}
    chosen = {name: file for name, file in own.items() if file[1] == transformers.__version__}
    if not chosen:
        wanted = " or ".join(sorted({version for _, version, *_ in own.values()}))
        raise SystemExit(f"transformers must be {wanted}; got {transformers.__version__}")
    for name, (function, _, seed, sources) in chosen.items():
        torch.manual_seed(seed)
        with torch.no_grad():
            arrays = function(*map(code_of, sources))
        arrays = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
        path = Path(__file__).with_name(f"{name}.npz")
        np.savez_compressed(path, provenance=provenance(name, seed, sources), **arrays)
        print(f"{path.name}: {', '.join(arrays)}")


if __name__ == "__main__":
    main()
