"""Make the golden files of the shelf: tiny models, and what transformers makes of them.

Usage: python tests/golden/make_shelf.py [NAME...]     (first environment of README.md)

What make.py says of its files holds here, too. A folder of tests/golden/models holds config.json
and model.safetensors, as transformers writes them, and golden.npz: inputs and logits. Weights are
large enough for each mistake to show: attention that is nearly uniform tells no heads apart.
"""

from __future__ import annotations

import json
import math
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers

HERE = Path(__file__).parent / "models"
V, L0 = 37, 8  # vocabulary, trained length
MAKERS: dict[str, Callable] = {}


def golden(maker: Callable) -> Callable:
    """Register a function that makes the folder of its name."""
    MAKERS[maker.__name__] = maker
    return maker


def randomise(model: torch.nn.Module, centre_of_gains: float = 1.0) -> torch.nn.Module:
    """Draw all: matrices 1.5/sqrt(fan-in), embeddings 0.8, gains 1 +- 0.2, biases 0.3."""
    kinds = {}
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            kinds[id(parameter)] = type(module).__name__, name
    for parameter in model.parameters():
        kind, name = kinds[id(parameter)]
        with torch.no_grad():
            if kind == "Embedding":
                parameter.normal_(std=0.8)
            elif parameter.ndim == 1 and name == "weight":
                parameter.normal_(centre_of_gains, 0.2)
            elif parameter.ndim == 1:
                parameter.normal_(std=0.3)
            else:
                fan_in = parameter.shape[0] if kind == "Conv1D" else parameter[0].numel()
                parameter.normal_(std=1.5 / math.sqrt(fan_in))
            parameter.copy_((256 * parameter).round() / 256)  # coarse numbers compress well
    return model.eval()


def keep(name: str, model: torch.nn.Module, **arrays: torch.Tensor) -> None:
    """Write the folder."""
    folder = HERE / name
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    model.save_pretrained(folder)
    for path in folder.iterdir():
        if path.name not in ("config.json", "model.safetensors", "golden.npz"):
            path.unlink()
    provenance = {
        "code": type(model).__module__ + ":" + type(model).__name__,
        **{"transformers": transformers.__version__, "torch": torch.__version__},
        **{"python": platform.python_version(), "seed": 0},
    }
    arrays = {
        key: np.asarray(x.detach() if hasattr(x, "detach") else x) for key, x in arrays.items()
    }
    np.savez_compressed(folder / "golden.npz", provenance=json.dumps(provenance), **arrays)


def writes(
    name: str,
    model: torch.nn.Module,
    padded: bool = True,
    steps: int = 20,
    dtype: torch.dtype = torch.float64,
    stored: torch.dtype = torch.float32,
    **more: torch.Tensor,
) -> None:
    """Keep what a decoder makes of 9 tokens, of 5 and 3 padded on the left, and 20 of its own."""
    tokens = torch.randint(0, V, (2, L0 + 1))
    prompt, real = tokens[:, :5].clone(), torch.ones(2, 5, dtype=torch.long)
    prompt[1, :2], real[1, :2] = 0, 0
    model = model.to(dtype)  # the weights are those of the file
    with torch.no_grad():
        arrays = {"tokens": tokens, "logits": model(tokens).logits}
        if padded:
            places = (real.cumsum(1) - 1).clamp(min=0)
            told = {} if name in ("bloom", "mpt") else {"position_ids": places}
            arrays |= {"prompt": prompt, "real": real.bool()}
            arrays["padded_logits"] = model(prompt, attention_mask=real, **told).logits
        else:
            prompt, real = prompt[:1], real[:1]
            arrays |= {"prompt": prompt, "real": real.bool()}
        arrays["written"] = model.generate(
            prompt, attention_mask=real, do_sample=False, max_new_tokens=steps,
            min_new_tokens=steps, pad_token_id=0, eos_token_id=None,
        )[:, prompt.shape[1] :]  # fmt: skip
    keep(name, model.to(stored), **arrays, **more)


def fills_in(
    name: str, model: torch.nn.Module, length: int = L0 + 1, typed: bool = True, **more: np.ndarray
) -> None:
    """Keep what an encoder makes of tokens of two types, and of 7 and 4 padded on the right."""
    tokens = torch.randint(0, V, (2, length))
    types = (torch.arange(length) >= torch.tensor([[5], [3]])).long()
    padded, real = tokens[:, :7].clone(), torch.ones(2, 7, dtype=torch.long)
    padded[1, 4:], real[1, 4:] = 0, 0
    model = model.double()
    with torch.no_grad():
        told = {"token_type_ids": types} if typed else {}
        arrays = {"tokens": tokens, "logits": model(tokens, **told).logits, **more}
        arrays |= {"types": types} if typed else {}
        arrays |= {"padded": padded, "real": real.bool()}
        arrays["padded_logits"] = model(padded, attention_mask=real).logits
    keep(name, model.float(), **arrays)


# ---- decoders -----------------------------------------------------------------------------------


@golden
def gpt2():
    config = transformers.GPT2Config(
        vocab_size=V, n_positions=32, n_embd=12, n_layer=2, n_head=3, n_inner=20
    )
    writes("gpt2", randomise(transformers.GPT2LMHeadModel(config)))


def gemma(model: torch.nn.Module) -> torch.nn.Module:
    """Draw all: gains about 0, and an embedding that its factor does not make outweigh the rest."""
    model = randomise(model, 0.0)
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(0.25)
    return model


@golden
def gemma2():
    """A window that the tokens outgrow, caps that bend, a scale that is not sqrt(K)."""
    config = transformers.Gemma2Config(
        vocab_size=V, hidden_size=12, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=6, query_pre_attn_scalar=9,
        sliding_window=4, attn_logit_softcapping=5.0, final_logit_softcapping=3.0,
        rope_parameters={"rope_type": "default", "rope_theta": 100.0}, max_position_embeddings=64,
        rms_norm_eps=1e-3,
    )  # fmt: skip
    # Its attention casts a mask of float64 to float32, where a row of padding becomes NaN.
    writes("gemma2", gemma(transformers.Gemma2ForCausalLM(config)), dtype=torch.float32)


GEMMA3 = {
    "vocab_size": V, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 6, "query_pre_attn_scalar": 9,
    "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"],
    "max_position_embeddings": 64, "rms_norm_eps": 1e-3,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
        "full_attention": {"rope_type": "linear", "rope_theta": 1000.0, "factor": 8.0},
    },
}  # fmt: skip


@golden
def gemma3():
    """The file of a model that sees pictures, asked for text; bfloat16 rounds sqrt(D)."""
    eyes = {
        "hidden_size": 4, "intermediate_size": 4, "num_hidden_layers": 1, "num_attention_heads": 1,
        "image_size": 4, "patch_size": 2, "vision_use_head": False,
    }  # fmt: skip
    config = transformers.Gemma3Config(
        text_config=GEMMA3, vision_config=eyes, mm_tokens_per_image=4,
        boi_token_index=V, eoi_token_index=V + 1, image_token_index=V + 2,
    )  # fmt: skip
    model = gemma(transformers.Gemma3ForConditionalGeneration(config))
    embedding = model.get_input_embeddings()
    embedding.embed_scale = embedding.embed_scale.bfloat16()  # as it does when it computes in that
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16())
    writes("gemma3", model, stored=torch.bfloat16)


@golden
def gemma3_text():
    config = transformers.Gemma3TextConfig(**GEMMA3)
    writes("gemma3_text", gemma(transformers.Gemma3ForCausalLM(config)))


@golden
def llama():
    """Grouped queries and the bands of LLaMA 3.1, beyond whose length the tokens go."""
    rope = {"rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": L0}  # fmt: skip
    config = transformers.LlamaConfig(
        vocab_size=V, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        rms_norm_eps=1e-5, tie_word_embeddings=False, rope_parameters=rope,
    )  # fmt: skip
    writes("llama", randomise(transformers.LlamaForCausalLM(config)))


@golden
def mistral():
    """A head wider than D / H, and a window that the tokens outgrow."""
    config = transformers.MistralConfig(
        vocab_size=V, hidden_size=12, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=6, sliding_window=4,
        max_position_embeddings=64, rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 100.0},
    )  # fmt: skip
    writes("mistral", randomise(transformers.MistralForCausalLM(config)))


@golden
def llama2():
    """As many heads of keys as of queries, no scaling."""
    config = transformers.LlamaConfig(
        vocab_size=V, hidden_size=12, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, max_position_embeddings=32,
        rms_norm_eps=1e-5, tie_word_embeddings=False,
    )  # fmt: skip
    writes("llama2", randomise(transformers.LlamaForCausalLM(config)))


@golden
def gpt_neox():
    """Half of each head turns; then the same weights as a model that takes one step at a time."""
    config = transformers.GPTNeoXConfig(
        vocab_size=V, hidden_size=24, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=3, max_position_embeddings=32,
        rope_parameters={"rope_theta": 100.0, "partial_rotary_factor": 0.5},
    )  # fmt: skip
    model = randomise(transformers.GPTNeoXForCausalLM(config))
    other = {**config.to_dict(), "use_parallel_residual": False, "hidden_act": "gelu_fast"}
    other = transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**other)).eval()
    other.load_state_dict(model.state_dict())
    text = torch.randint(0, V, (2, L0 + 1))
    with torch.no_grad():
        writes("gpt_neox", model, text=text, one_by_one=other.double()(text).logits)


@golden
def bloom():
    """In float32: a mask of float64 is -inf in its softmax, where a row of padding becomes NaN."""
    config = transformers.BloomConfig(vocab_size=V, hidden_size=12, n_layer=2, n_head=3)
    writes("bloom", randomise(transformers.BloomForCausalLM(config)), dtype=torch.float32)


@golden
def mpt():
    """In float32, as BLOOM."""
    config = transformers.MptConfig(vocab_size=V, d_model=18, n_layers=2, n_heads=3, max_seq_len=32)
    writes("mpt", randomise(transformers.MptForCausalLM(config)), dtype=torch.float32)


@golden
def qwen2():
    config = transformers.Qwen2Config(
        vocab_size=V, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        tie_word_embeddings=True, rope_parameters={"rope_theta": 1e6},
    )  # fmt: skip
    writes("qwen2", randomise(transformers.Qwen2ForCausalLM(config)))


@golden
def qwen3():
    """Heads wider than D/H, the YaRN that its makers advise, and an epsilon that shows."""
    rope = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0,
            "original_max_position_embeddings": L0}  # fmt: skip
    config = transformers.Qwen3Config(
        vocab_size=V, hidden_size=16, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=6, max_position_embeddings=32,
        rms_norm_eps=1e-4, tie_word_embeddings=False, rope_parameters=rope,
    )  # fmt: skip
    writes("qwen3", randomise(transformers.Qwen3ForCausalLM(config)))


@golden
def phi3():
    """12 tokens make use of the short list, 13 of the long one, and the text written crosses."""
    trained = 12
    rope = {"rope_type": "longrope", "rope_theta": 100.0, "partial_rotary_factor": 0.75,
            "short_factor": [1.0, 1.5, 2.0], "long_factor": [1.5, 4.0, 9.0]}  # fmt: skip
    config = transformers.Phi3Config(
        vocab_size=V, hidden_size=24, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, max_position_embeddings=64,
        original_max_position_embeddings=trained, rope_parameters=rope, sliding_window=6,
        pad_token_id=0, eos_token_id=1,
    )  # fmt: skip
    model = randomise(transformers.Phi3ForCausalLM(config)).double()
    text, real = torch.randint(0, V, (2, trained + 1)), torch.ones(2, trained + 1, dtype=torch.long)
    real[1, :3] = 0
    more = {"text": text, "text_real": real.bool()}
    with torch.no_grad():
        more["short"], more["long"] = model(text[:1, :-1]).logits, model(text[:1]).logits
        places = (real.cumsum(1) - 1).clamp(min=0)
        more["text_padded"] = model(text, attention_mask=real, position_ids=places).logits
    writes("phi3", model.float(), **more)


def latent(config, name: str) -> None:
    """Latent attention and experts, the norms within attention with an eps of their own."""
    how = {"experts_implementation": "eager"}  # the others know no float64
    model = randomise(transformers.AutoModelForCausalLM.from_config(config, **how))
    for module in model.modules():  # the experts of a layer are one tensor in memory
        if type(module).__name__.endswith("Experts"):
            for x in module.parameters():
                with torch.no_grad():
                    x.copy_((256 * x.normal_(std=1.5 / math.sqrt(x.shape[-1]))).round() / 256)
        if hasattr(module, "e_score_correction_bias"):
            module.e_score_correction_bias.normal_(std=0.3)
    writes(name, model)


LATENT = {
    "vocab_size": V, "hidden_size": 14, "intermediate_size": 20, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 2, "kv_lora_rank": 8, "q_lora_rank": 10,
    "qk_nope_head_dim": 4, "qk_rope_head_dim": 6, "v_head_dim": 5, "moe_intermediate_size": 9,
    "rms_norm_eps": 1e-3, "first_k_dense_replace": 1, "max_position_embeddings": 800,
    "tie_word_embeddings": False,
}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "beta_fast": 32.0,
        "beta_slow": 1.0, "original_max_position_embeddings": 200}  # fmt: skip


@golden
def deepseek_v2():
    """Both mscales, which differ, and groups of experts of which the best expert speaks."""
    yarn = {**YARN, "mscale": 1.0, "mscale_all_dim": 0.7}
    latent(transformers.DeepseekV2Config(
        **LATENT, rope_parameters=yarn, topk_method="group_limited_greedy", n_group=4, topk_group=2,
        n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2, routed_scaling_factor=4.0,
    ), "deepseek_v2")  # fmt: skip


@golden
def deepseek_lite():
    """Queries without a latent vector, and no groups."""
    yarn = {**YARN, "mscale": 0.7, "mscale_all_dim": 0.7}
    latent(transformers.DeepseekV2Config(
        **{**LATENT, "q_lora_rank": None}, rope_parameters=yarn, topk_method="greedy", n_group=1,
        topk_group=1, n_routed_experts=6, num_experts_per_tok=2, n_shared_experts=2,
    ), "deepseek_lite")  # fmt: skip


@golden
def deepseek_v3():
    yarn = {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}
    latent(transformers.DeepseekV3Config(
        **LATENT, rope_parameters=yarn, n_group=3, topk_group=2, n_routed_experts=9,
        num_experts_per_tok=3, n_shared_experts=1,
    ), "deepseek_v3")  # fmt: skip


# ---- encoders -----------------------------------------------------------------------------------


@golden
def bert():
    config = transformers.BertConfig(
        vocab_size=V, hidden_size=12, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=3, max_position_embeddings=16,
    )  # fmt: skip
    fills_in("bert", randomise(transformers.BertForMaskedLM(config)))


def turning(name: str, **options) -> None:
    config = transformers.RoFormerConfig(
        vocab_size=V, hidden_size=12, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=16, **options,
    )  # fmt: skip
    model = randomise(transformers.RoFormerForMaskedLM(config))
    table = model.roformer.encoder.embed_positions
    with torch.no_grad():
        table.weight.copy_(table.create_weight())  # no parameter
    fills_in(name, model)


@golden
def roformer():
    turning("roformer")


@golden
def roformer_electra():
    """Values that turn, too, and an embedding of another width."""
    turning("roformer_electra", rotary_value=True, embedding_size=10)


def deberta(**options) -> torch.nn.Module:
    config = transformers.DebertaV2Config(
        vocab_size=V, hidden_size=12, intermediate_size=20, num_hidden_layers=2,
        num_attention_heads=3, relative_attention=True, position_buckets=8,
        norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type="p2c|c2p",
        position_biased_input=False, max_position_embeddings=32, layer_norm_eps=1e-3, **options,
    )  # fmt: skip
    return randomise(transformers.DebertaV2ForMaskedLM(config))


@golden
def deberta_v2():
    """24 tokens reach the logarithmic buckets; the convolution of the largest models."""
    model = deberta(conv_kernel_size=3, conv_act="gelu", max_relative_positions=28)
    fills_in("deberta_v2", model, 24, typed=False)


@golden
def deberta_v3():
    """The head under the names of Microsoft's files, and a text beyond the largest distance.

    There transformers reads row 0, which for that text alone is a copy of row 1.
    """
    model = deberta(legacy=False)
    text = torch.randint(0, V, (1, 40))
    table = model.deberta.encoder.rel_embeddings.weight
    with torch.no_grad():
        row = table[0].clone()
        table[0] = table[1]
        more = {"text": text, "text_logits": model.double()(text).logits}
        table[0] = row
    fills_in("deberta_v3", model, 24, typed=False, **more)


@golden
def xlnet():
    config = transformers.XLNetConfig(
        vocab_size=V, d_model=12, n_layer=2, n_head=3, d_inner=20, pad_token_id=0,
        layer_norm_eps=1e-3,
    )  # fmt: skip
    fills_in("xlnet", randomise(transformers.XLNetLMHeadModel(config)))


# ---- pictures -----------------------------------------------------------------------------------


@golden
def vit():
    """Pictures of the trained size, 4 by 4 patches, and others of 5 by 7 and 2 by 3."""
    config = transformers.ViTConfig(
        hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3,
        image_size=8, patch_size=2, num_labels=5,
    )  # fmt: skip
    model = randomise(transformers.ViTForImageClassification(config))
    with torch.no_grad():
        for x in (model.vit.embeddings.cls_token, model.vit.embeddings.position_embeddings):
            x.copy_((256 * 0.8 * torch.randn(x.shape)).round() / 256)
    model, arrays = model.double(), {}
    for end, height, width in ("", 8, 8), ("_10x14", 10, 14), ("_5x7", 5, 7):
        pixels = torch.randn(2, 3, height, width).double()
        arrays["pixels" + end] = pixels
        with torch.no_grad():
            arrays["logits" + end] = model(pixels, interpolate_pos_encoding=True).logits
    keep("vit", model.float(), **arrays)


# ---- encoder-decoders ---------------------------------------------------------------------------


def translates(name: str, model: torch.nn.Module, steps: int = 20, **source: torch.Tensor) -> None:
    """Keep what a model makes of a source and 9 tokens, of 5 and 3, and 20 of its own."""
    tokens = torch.randint(0, V, (2, L0 + 1))
    prompt, real = tokens[:, :5].clone(), torch.ones(2, 5, dtype=torch.long)
    prompt[1, :2], real[1, :2] = 0, 0
    model = model.double()  # the weights are those of float32

    def read(tokens, real):
        told = {"decoder_input_ids": tokens, "decoder_attention_mask": real}
        if name == "whisper":
            told["decoder_position_ids"] = (real.cumsum(1) - 1).clamp(min=0)
        return model(**source, **told).logits

    with torch.no_grad():
        arrays = {"tokens": tokens, "logits": read(tokens, torch.ones_like(tokens))}
        arrays |= {"prompt": prompt, "real": real.bool(), "padded_logits": read(prompt, real)}
        for _ in range(steps):
            chosen = read(prompt, real)[:, -1:].argmax(-1)
            prompt = torch.cat([prompt, chosen], 1)
            real = torch.cat([real, torch.ones_like(chosen)], 1)
    arrays |= {"written": prompt[:, 5:], "source": source[model.main_input_name]}
    if "attention_mask" in source:
        arrays["source_real"] = source["attention_mask"].bool()
    keep(name, model.float(), **arrays)


def t5_with(name: str, **choices) -> None:
    """Make a T5; its source is longer than where the last bucket begins, and one row is padded."""
    config = transformers.T5Config(
        vocab_size=V, d_model=12, d_kv=5, num_heads=3, d_ff=20, num_layers=2,
        num_decoder_layers=3, relative_attention_num_buckets=8,
        relative_attention_max_distance=20, decoder_start_token_id=0, **choices,
    )  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config)
    if name == "t5_v11":  # as in released files, which hold a head of their own
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
        model.config.tie_word_embeddings = False
    real = torch.ones(2, 24, dtype=torch.long)
    real[1, 19:] = 0
    source = torch.randint(0, V, (2, 24)) * real
    translates(name, randomise(model), input_ids=source, attention_mask=real)


@golden
def t5():
    t5_with("t5")


@golden
def t5_v11():
    t5_with("t5_v11", feed_forward_proj="gated-gelu", tie_word_embeddings=False)


@golden
def whisper():
    """The sinusoids stay as they are."""
    config = transformers.WhisperConfig(
        vocab_size=V, d_model=12, num_mel_bins=5, max_source_positions=10,
        max_target_positions=32, encoder_layers=2, decoder_layers=3, encoder_attention_heads=3,
        decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=16, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    model = transformers.WhisperForConditionalGeneration(config)
    table = model.model.encoder.embed_positions.weight
    sinusoids = table.detach().clone()
    randomise(model)
    table.data.copy_(sinusoids)
    model.model.decoder.embed_positions.weight.data.mul_(8)  # else it writes one token for ever
    features = (256 * torch.randn(2, 5, 20)).round() / 256
    translates("whisper", model, input_features=features.double())


if __name__ == "__main__":
    if transformers.__version__ != "5.23.0":
        sys.exit(
            f"these files are made with transformers 5.23.0; here is {transformers.__version__}"
        )
    for name in sys.argv[1:] or MAKERS:
        torch.manual_seed(0)
        MAKERS[name]()
        sizes = {path.name: path.stat().st_size for path in (HERE / name).iterdir()}
        print(name, sizes)
