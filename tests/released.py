"""Configurations of released models, two and more a page: the keys that count, and what follows.

Of each: entries of config.json; how many numbers the model has, as its publisher or the library
counts them (None where nobody does; about, where it is rounded); and settings by our names. `base`
is that of RoPE, `pairs` how many components turn in twos; of several kinds of layers, one each.
"""

from pytest import approx

GPT2 = {"model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_ctx": 1024,
        "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}  # fmt: skip
BERT = {"model_type": "bert", "vocab_size": 30522, "max_position_embeddings": 512,
        "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12,
        "position_embedding_type": "absolute"}  # fmt: skip
LLAMA = {"model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5}
LLAMA_3_2 = {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
             "original_max_position_embeddings": 8192, "rope_type": "llama3"}  # fmt: skip
QWEN = {"rms_norm_eps": 1e-6, "rope_theta": 1e6, "use_sliding_window": False, "hidden_act": "silu"}
QWEN_2, QWEN_3 = {"model_type": "qwen2", **QWEN}, {"model_type": "qwen3", **QWEN, "head_dim": 128}
GEMMA_2 = {"model_type": "gemma2", "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
           "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 4096, "rope_theta": 1e4,
           "vocab_size": 256000, "torch_dtype": "float32"}  # fmt: skip
GEMMA_3 = {"model_type": "gemma3_text", "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
           "query_pre_attn_scalar": 256, "sliding_window": 512, "rope_theta": 1e6,
           "rope_local_base_freq": 1e4, "vocab_size": 262144, "torch_dtype": "bfloat16",
           "num_attention_heads": 4, "num_key_value_heads": 1}  # fmt: skip
PYTHIA = {"model_type": "gpt_neox", "hidden_act": "gelu", "layer_norm_eps": 1e-5,
          "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": False,
          "use_parallel_residual": True}  # fmt: skip
T5 = {"model_type": "t5", "d_kv": 64, "d_model": 512, "relative_attention_num_buckets": 32,
      "vocab_size": 32128, "layer_norm_epsilon": 1e-6}  # fmt: skip
WHISPER = {"model_type": "whisper", "activation_function": "gelu", "scale_embedding": False,
           "max_source_positions": 1500, "max_target_positions": 448}  # fmt: skip
VIT = {"model_type": "vit", "hidden_act": "gelu", "image_size": 224, "patch_size": 16,
       "num_channels": 3, "qkv_bias": True, "layer_norm_eps": 1e-12,
       "id2label": dict.fromkeys(map(str, range(1000)), "")}  # fmt: skip
DEBERTA = {"model_type": "deberta-v2", "hidden_act": "gelu", "relative_attention": True,
           "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": True,
           "layer_norm_eps": 1e-7, "max_relative_positions": -1, "max_position_embeddings": 512,
           "position_biased_input": False, "type_vocab_size": 0,
           "vocab_size": 128100}  # fmt: skip
XLNET = {"model_type": "xlnet", "ff_activation": "gelu", "attn_type": "bi", "bi_data": False,
         "clamp_len": -1, "d_head": 64, "layer_norm_eps": 1e-12, "vocab_size": 32000}  # fmt: skip
PHI = {"model_type": "phi3", "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 1e4,
       "original_max_position_embeddings": 4096, "hidden_size": 3072, "intermediate_size": 8192,
       "num_hidden_layers": 32}  # fmt: skip
YARN = {"beta_fast": 32, "beta_slow": 1, "factor": 40, "original_max_position_embeddings": 4096,
        "type": "yarn"}  # fmt: skip
DEEPSEEK = {"hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000, "kv_lora_rank": 512,
            "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
            "max_position_embeddings": 163840, "tie_word_embeddings": False}  # fmt: skip
BLOOM = {"model_type": "bloom", "layer_norm_epsilon": 1e-5, "vocab_size": 250880,
         "apply_residual_connection_post_layernorm": False}  # fmt: skip
MPT = {"model_type": "mpt", "no_bias": True, "norm_type": "low_precision_layernorm",
       "expansion_ratio": 4, "logit_scale": None, "vocab_size": 50432,
       "attn_config": {"alibi": True, "alibi_bias_max": 8, "attn_type": "multihead_attention",
                       "clip_qkv": None, "prefix_lm": False, "qk_ln": False,
                       "softmax_scale": None}}  # fmt: skip
ROFORMER = {"model_type": "roformer", "hidden_act": "gelu", "layer_norm_eps": 1e-12,
            "rotary_value": False, "type_vocab_size": 2, "vocab_size": 50000}  # fmt: skip


def of_bert(D, H, layers, F=None):
    """The names of BERT and of most others."""
    return {"hidden_size": D, "num_attention_heads": H, "num_hidden_layers": layers,
            "intermediate_size": F or 4 * D}  # fmt: skip


def of_llama(D, H, G, layers, F, V=None, tied=False):
    """The names of LLaMA and its kin."""
    known = {**of_bert(D, H, layers, F), "num_key_value_heads": G, "tie_word_embeddings": tied}
    return known if V is None else {**known, "vocab_size": V}


RELEASED = {
    "gpt2": (
        {**GPT2, "n_embd": 768, "n_layer": 12, "n_head": 12},
        124_439_808, {"D": 768, "H": 12, "F": 3072, "N": 1024, "eps": 1e-5, "tied": True},
    ),
    "gpt2-xl": (
        {**GPT2, "n_embd": 1600, "n_layer": 48, "n_head": 25},
        1_557_611_200, {"D": 1600, "H": 25, "F": 6400, "N": 1024},
    ),
    "bert-base-uncased": (
        {**BERT, **of_bert(768, 12, 12)},
        109_514_298, {"H": 12, "F": 3072, "N": 512, "types": 2, "eps": 1e-12, "tied": True},
    ),
    "bert-large-uncased": (
        {**BERT, **of_bert(1024, 16, 24)}, 335_174_458, {"H": 16, "layers": 24, "eps": 1e-12},
    ),
    "Llama-2-7b": (
        {**LLAMA, **of_llama(4096, 32, 32, 32, 11008, 32000)},
        6_738_415_616, {"G": 32, "K": 128, "base": 1e4, "window": None, "eps": 1e-5},
    ),
    "Llama-3.2-1B": (
        {**LLAMA, **of_llama(2048, 32, 8, 16, 8192, 128256, True), "head_dim": 64,
         "rope_theta": 5e5, "rope_scaling": LLAMA_3_2},
        1_235_814_400, {"G": 8, "K": 64, "base": 5e5, "pairs": 32, "tied": True},
    ),
    "SmolLM2-135M": (
        {**LLAMA, **of_llama(576, 9, 3, 30, 1536, 49152, True), "rope_theta": 1e5},
        134_515_008, {"H": 9, "G": 3, "K": 64, "base": 1e5, "tied": True},
    ),
    "Mistral-7B-v0.1": (
        {**LLAMA, **of_llama(4096, 32, 8, 32, 14336, 32000), "model_type": "mistral",
         "sliding_window": 4096, "rope_theta": 1e4},
        7_241_732_096, {"G": 8, "K": 128, "base": 1e4, "window": 4096, "tied": False},
    ),
    "Qwen2.5-0.5B": (
        {**QWEN_2, **of_llama(896, 14, 2, 24, 4864, 151936, True), "sliding_window": 32768},
        494_032_768, {"G": 2, "K": 64, "base": 1e6, "tied": True, "eps": 1e-6},
    ),
    "Qwen2.5-7B": (
        {**QWEN_2, **of_llama(3584, 28, 4, 28, 18944, 152064), "sliding_window": 131072},
        7_615_616_512, {"G": 4, "K": 128, "base": 1e6, "tied": False},
    ),
    "Qwen3-0.6B": (
        {**QWEN_3, **of_llama(1024, 16, 8, 28, 3072, 151936, True), "sliding_window": None},
        596_049_920, {"H": 16, "G": 8, "K": 128, "base": 1e6, "tied": True},
    ),
    "Qwen3-8B": (
        {**QWEN_3, **of_llama(4096, 32, 8, 36, 12288, 151936), "sliding_window": None},
        8_190_735_360, {"H": 32, "G": 8, "K": 128, "base": 1e6, "tied": False},
    ),
    "gemma-2-2b": (
        {**GEMMA_2, **of_llama(2304, 8, 4, 26, 9216, tied=True), "head_dim": 256,
         "query_pre_attn_scalar": 256},
        2_614_341_888, {"K": 256, "scalar": 256, "score_cap": 50, "logit_cap": 30, "base": 1e4,
                        "embedding_scale": 48, "windows": [4096, None] * 13},
    ),
    "gemma-2-27b": (
        {**GEMMA_2, **of_llama(4608, 32, 16, 46, 36864, tied=True), "head_dim": 128,
         "query_pre_attn_scalar": 144},
        27_227_128_320, {"K": 128, "scalar": 144, "base": 1e4, "windows": [4096, None] * 23},
    ),
    "gemma-3-270m": (
        {**GEMMA_3, **of_bert(640, 4, 18, 2048), "_sliding_window_pattern": 6,
         "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 3},
        268_098_176, {"G": 1, "K": 256, "embedding_scale": 25.25, "base": {1e4, 1e6},
                      "windows": ([512] * 5 + [None]) * 3},
    ),
    "gemma-3-1b-pt": (
        {**GEMMA_3, **of_bert(1152, 4, 26, 6912), "sliding_window_pattern": 6},
        999_885_952, {"G": 1, "K": 256, "embedding_scale": 34, "base": {1e4, 1e6},
                      "windows": ([512] * 5 + [None]) * 4 + [512] * 2},
    ),
    "pythia-160m": (
        {**PYTHIA, **of_bert(768, 12, 12), "vocab_size": 50304},
        162_322_944, {"H": 12, "pairs": 8, "base": 1e4, "parallel": True, "activation": "gelu"},
    ),
    "pythia-6.9b": (
        {**PYTHIA, **of_bert(4096, 32, 32), "vocab_size": 50432},
        6_857_302_016, {"H": 32, "pairs": 16, "base": 1e4},
    ),
    "t5-small": (
        {**T5, "d_ff": 2048, "num_heads": 8, "num_layers": 6},
        60_506_624, {"H": 8, "K": 64, "N": 32, "far": 128, "decoder": 6, "activation": "relu",
                     "tied": True, "factor": approx(512**-0.5)},
    ),
    "flan-t5-small": (
        {**T5, "d_ff": 1024, "num_heads": 6, "num_layers": 8, "num_decoder_layers": 8,
         "relative_attention_max_distance": 128, "feed_forward_proj": "gated-gelu",
         "tie_word_embeddings": False},
        76_961_152, {"H": 6, "K": 64, "activation": "gelu_tanh", "tied": False, "factor": 1},
    ),
    "whisper-tiny": (
        {**WHISPER, "d_model": 384, "decoder_attention_heads": 6, "encoder_attention_heads": 6,
         "decoder_ffn_dim": 1536, "encoder_ffn_dim": 1536, "decoder_layers": 4,
         "encoder_layers": 4, "num_mel_bins": 80, "vocab_size": 51865},
        37_760_640, {"mel": 80, "frames": 3000, "N": 448, "H_decoder": 6, "tied": True},
    ),
    "whisper-large-v3": (
        {**WHISPER, "d_model": 1280, "decoder_attention_heads": 20, "encoder_attention_heads": 20,
         "decoder_ffn_dim": 5120, "encoder_ffn_dim": 5120, "decoder_layers": 32,
         "encoder_layers": 32, "num_mel_bins": 128, "vocab_size": 51866},
        1_543_490_560, {"mel": 128, "frames": 3000, "H_encoder": 20, "decoder": 32},
    ),
    "vit-base-patch16-224": (
        {**VIT, **of_bert(768, 12, 12)},
        86_567_656, {"V": 1000, "grid": [14, 14], "patch": [16, 16], "eps": 1e-12},
    ),
    "vit-large-patch16-224": (
        {**VIT, **of_bert(1024, 16, 24)}, 304_326_632, {"V": 1000, "grid": [14, 14], "H": 16},
    ),
    "deberta-v3-base": (
        {**DEBERTA, **of_bert(768, 12, 12), "pos_att_type": "p2c|c2p"},
        approx(184e6, abs=1e6), {"H": 12, "m": 256, "max_distance": 512, "kernel": 0, "eps": 1e-7},
    ),
    "deberta-v2-xxlarge": (
        {**DEBERTA, **of_bert(1536, 24, 48), "pos_att_type": ["p2c", "c2p"], "conv_act": "gelu",
         "conv_kernel_size": 3, "attention_head_size": 64},
        approx(1.5e9, abs=1e8), {"H": 24, "m": 256, "max_distance": 512, "kernel": 3},
    ),
    "xlnet-base-cased": (
        {**XLNET, "d_model": 768, "d_inner": 3072, "n_head": 12, "n_layer": 12},
        116_718_336 - 768 + 32_000,  # the body without mask_emb, and the head's bias
        {"H": 12, "K": 64, "F": 3072, "eps": 1e-12, "tied": True},
    ),
    "xlnet-large-cased": (
        {**XLNET, "d_model": 1024, "d_inner": 4096, "n_head": 16, "n_layer": 24},
        None, {"H": 16, "K": 64, "F": 4096, "layers": 24},
    ),
    "Phi-3-mini-4k": (
        {**PHI, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064,
         "tie_word_embeddings": False, "max_position_embeddings": 4096, "sliding_window": 2047,
         "rope_scaling": None},
        3_821_079_552, {"G": 32, "K": 96, "base": 1e4, "pairs": 48, "window": 2047},
    ),
    "Phi-4-mini": (
        {**PHI, "num_attention_heads": 24, "num_key_value_heads": 8, "vocab_size": 200064,
         "tie_word_embeddings": True, "max_position_embeddings": 131072,
         "sliding_window": 262144, "partial_rotary_factor": 0.75,
         "rope_scaling": {"type": "longrope", "short_factor": [1.0] * 48,
                          "long_factor": [2.0] * 48}},
        3_836_021_760, {"G": 8, "K": 128, "pairs": 48, "L0": 4096, "tied": True},
    ),
    "DeepSeek-V2-Lite": (
        {**DEEPSEEK, **of_llama(2048, 16, 16, 27, 10944, 102400), "model_type": "deepseek_v2",
         "first_k_dense_replace": 1, "q_lora_rank": None, "moe_intermediate_size": 1408,
         "n_group": 1, "topk_group": 1, "n_routed_experts": 64, "n_shared_experts": 2,
         "norm_topk_prob": False, "num_experts_per_tok": 6, "routed_scaling_factor": 1.0,
         "scoring_func": "softmax", "topk_method": "greedy",
         "rope_scaling": {**YARN, "mscale": 0.707, "mscale_all_dim": 0.707}},
        15_706_484_224, {"E": 64, "used": 6, "groups": 1, "r": 512, "r_q": None, "d_n": 128,
                         "factor": 1, "pairs": 32, "v3": False},
    ),
    "DeepSeek-V3": (
        {**DEEPSEEK, **of_llama(7168, 128, 128, 61, 18432, 129280), "model_type": "deepseek_v3",
         "first_k_dense_replace": 3, "q_lora_rank": 1536, "moe_intermediate_size": 2048,
         "n_group": 8, "topk_group": 4, "n_routed_experts": 256, "n_shared_experts": 1,
         "norm_topk_prob": True, "num_experts_per_tok": 8, "routed_scaling_factor": 2.5,
         "scoring_func": "sigmoid", "topk_method": "noaux_tc",
         "rope_scaling": {**YARN, "mscale": 1.0, "mscale_all_dim": 1.0}},
        671_026_419_200, {"E": 256, "used": 8, "groups": 8, "groups_used": 4, "r_q": 1536,
                          "factor": 2.5, "dense": 3, "v3": True},
    ),
    "bloom-560m": (
        {**BLOOM, "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16},
        559_214_592, {"D": 1024, "H": 16, "eps": 1e-5, "tied": True},
    ),
    "bloom-7b1": (
        {**BLOOM, "n_embed": 4096, "n_layer": 30, "num_attention_heads": 32},
        7_069_016_064, {"D": 4096, "H": 32, "layers": 30},
    ),
    "mpt-7b": (
        {**MPT, "d_model": 4096, "n_heads": 32, "n_layers": 32},
        6_649_286_656, {"H": 32, "F": 16384, "tied": True},
    ),
    "mpt-30b": (
        {**MPT, "d_model": 7168, "n_heads": 64, "n_layers": 48},
        approx(29.95e9, abs=1e7), {"H": 64, "F": 28672},
    ),
    "roformer_chinese_base": (
        {**ROFORMER, **of_bert(768, 12, 12), "embedding_size": 768,
         "max_position_embeddings": 1536},
        None, {"E": 768, "H": 12, "N": 1536, "rotary_value": False, "eps": 1e-12},
    ),
    "roformer_chinese_small": (
        {**ROFORMER, **of_bert(384, 6, 6), "embedding_size": 384, "max_position_embeddings": 512},
        None, {"E": 384, "H": 6, "F": 1536, "layers": 6},
    ),
}  # fmt: skip
