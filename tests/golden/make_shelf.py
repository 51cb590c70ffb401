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


def writes(name: str, model: torch.nn.Module, padded: bool = True, steps: int = 20) -> None:
    """Keep what a decoder makes of 9 tokens, of 5 and 3 padded on the left, and 20 of its own."""
    tokens = torch.randint(0, V, (2, L0 + 1))
    prompt, real = tokens[:, :5].clone(), torch.ones(2, 5, dtype=torch.long)
    prompt[1, :2], real[1, :2] = 0, 0
    model = model.double()  # the weights are those of float32
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
    keep(name, model.float(), **arrays)


# ---- decoders -----------------------------------------------------------------------------------


@golden
def gpt2():
    config = transformers.GPT2Config(
        vocab_size=V, n_positions=32, n_embd=12, n_layer=2, n_head=3, n_inner=20
    )
    writes("gpt2", randomise(transformers.GPT2LMHeadModel(config)))


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
