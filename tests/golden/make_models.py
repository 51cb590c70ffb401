"""Make the golden files of whole models: logits, gradients, steps of training, tokens written.

Usage: python tests/golden/make_models.py     (in the first of the two environments of README.md)

What make.py says of its files holds here, too. B batch, S source tokens, L target tokens, V
vocabulary, D model width, F feed-forward width. Weights are coarse numbers, which compress well and
which float32 holds exactly.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import transformers
from torch import arange, randint

from make import MODELS, NEW, golden, main, randomise, weights

B, S, L, V, D, F = 2, 7, 5, 17, 12, 20
IGNORED, SMOOTHING, STEPS = 0, 0.1, 3


def coarse(module: torch.nn.Module) -> torch.nn.Module:
    """Draw every parameter, as multiples of 1/64; gains near 1 and small biases.

    Else all tokens become alike from layer to layer, and attention has nothing to tell apart.
    """
    randomise(module)
    for name, parameter in module.named_parameters():
        parameter.copy_((64 * parameter).round() / 64)
        if parameter.ndim == 1:
            parameter.copy_(parameter / 4 if name.endswith("bias") else 1 + parameter)
    return module


def exact(module: torch.nn.Module) -> dict:
    """Give all parameters in float32, which holds them exactly."""
    return {name: p.float() for name, p in weights(module).items()}


def flat(tensors: Iterable[torch.Tensor]) -> torch.Tensor:
    """Put what belongs to all parameters into one vector, in their order, rounded to float32."""
    return torch.cat([x.detach().reshape(-1) for x in tensors]).float()


# ---- the Transformer of torch -------------------------------------------------------------------


class Translator(torch.nn.Module):
    """torch.nn.Transformer with what it leaves to its users: embedding, positions, output layer."""

    def __init__(self, Transformer, n_heads, **options):
        super().__init__()
        sizes = dict(num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=F)
        self.embedding = torch.nn.Embedding(V, D)
        self.transformer = Transformer(
            D, n_heads, **sizes, dropout=0.0, batch_first=True, **options
        )
        self.output = torch.nn.Linear(D, V, bias=False)

    def embed(self, tokens):
        """sqrt(D) E_token + PE(pos)."""
        angles = arange(tokens.shape[1])[:, None] / 10000 ** (arange(0, D, 2) / D)
        codes = torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(-1, D)
        return D**0.5 * self.embedding(tokens) + codes

    def forward(self, source, padding, target):
        """Memory (B, S, D) and logits (B, L, V); in both masks True means: may not attend."""
        future = torch.ones(L, L, dtype=torch.bool).triu(diagonal=1)
        memory = self.transformer.encoder(self.embed(source), src_key_padding_mask=padding)
        out = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=future,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return memory, self.output(out)


def translation(Transformer, cross_entropy, AdamW, SGD, kept, n_heads, **options):
    """Loss, memory, logits, all gradients; then three steps of each optimiser from the same start.

    The losses before each step and after the last are kept for both optimisers; the parameters at
    the end, for one.
    """
    model = coarse(Translator(Transformer, n_heads, **options))
    source, target, expected = randint(V, (B, S)), randint(V, (B, L)), randint(1, V, (B, L))
    padding = torch.zeros(B, S, dtype=torch.bool)
    padding[1, -2:] = True
    expected[0, 3], expected[1, 1] = IGNORED, IGNORED
    start = {name: p.clone() for name, p in model.state_dict().items()}
    arrays = dict(source=source, padding=padding, target=target, expected=expected, **exact(model))

    def loss():
        memory, logits = model(source, padding, target)
        value = cross_entropy(
            logits.transpose(1, 2), expected, ignore_index=IGNORED, label_smoothing=SMOOTHING
        )
        return value, memory, logits

    decayed = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": decayed}, {"params": rest, "weight_decay": 0.0}]
    optimisers = {
        "adamw": lambda: AdamW(groups, lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01),
        "sgd": lambda: SGD(model.parameters(), lr=0.1, momentum=0.9),
    }
    with torch.enable_grad():
        for name, optimiser in optimisers.items():
            model.load_state_dict(start)
            optimiser, losses = optimiser(), []
            for step in range(STEPS + 1):
                model.zero_grad()
                value, memory, logits = loss()
                losses.append(value.detach())
                value.backward()
                if name == "adamw" and step == 0:
                    arrays |= dict(memory=memory.detach(), logits=logits.detach())
                    arrays["gradients"] = flat(p.grad for p in model.parameters())
                if step < STEPS:
                    optimiser.step()
            arrays[f"losses.{name}"] = torch.stack(losses)
            if name == kept:
                arrays[name] = flat(model.parameters())
    return arrays


TORCH = [
    "torch.nn:Transformer",
    "torch.nn.functional:cross_entropy",
    "torch.optim:AdamW",
    "torch.optim:SGD",
]


@golden(NEW, 29, *TORCH)
def torch_transformer_post(*code):
    """The paper's order, with ReLU; three heads."""
    return translation(*code, kept="adamw", n_heads=3, norm_first=False, activation="relu")


@golden(NEW, 30, *TORCH)
def torch_transformer_pre(*code):
    """Norms first, with GELU; two heads."""
    return translation(*code, kept="sgd", n_heads=2, norm_first=True, activation="gelu")


# ---- LLaMA and GPT-2 ----------------------------------------------------------------------------
# Their seeds were chosen among a few for text that does not repeat itself at once.


def language_model(model, generate):
    """Logits of a batch; 20 tokens after two prompts, one padded on the left, and their logits."""
    vocabulary = model.config.vocab_size
    coarse(model)
    tokens, prompt = randint(vocabulary, (3, 9)), randint(vocabulary, (2, 5))
    real = torch.ones(2, 5, dtype=torch.bool)
    real[1, :2] = False
    made = generate(
        model,
        prompt,
        attention_mask=real.long(),
        max_new_tokens=20,
        do_sample=False,
        use_cache=True,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    written, logits = made.sequences[:, 5:], torch.stack(made.logits, dim=1)
    best = logits.topk(2, dim=-1).values
    assert written.shape == (2, 20) and (best[..., 0] - best[..., 1]).min() > 0.005  # no near ties
    return dict(
        tokens=tokens,
        logits=model(tokens).logits,
        prompt=prompt,
        real=real,
        written=written,
        written_logits=logits,
        **exact(model),
    )


LLAMA = MODELS + "llama.modeling_llama:LlamaForCausalLM"
GPT2 = MODELS + "gpt2.modeling_gpt2:GPT2LMHeadModel"


@golden(NEW, 42, LLAMA, LLAMA + ".generate")
def llama(LlamaForCausalLM, generate):
    """RMS norms, a gated SiLU, half-split RoPE, no bias anywhere."""
    config = transformers.LlamaConfig(
        vocab_size=31,
        hidden_size=16,
        num_attention_heads=4,
        num_hidden_layers=2,
        intermediate_size=24,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        tie_word_embeddings=False,
        attn_implementation="sdpa",
        bos_token_id=None,
        eos_token_id=None,
    )
    return language_model(LlamaForCausalLM(config), generate)


@golden(NEW, 67, GPT2, GPT2 + ".generate")
def gpt2(GPT2LMHeadModel, generate):
    """Pre-norm, the tanh form of GELU, a learned table of 32 positions, a tied output layer."""
    config = transformers.GPT2Config(
        vocab_size=31,
        n_positions=32,
        n_embd=16,
        n_head=2,
        n_layer=2,
        n_inner=24,
        attn_implementation="sdpa",
        bos_token_id=None,
        eos_token_id=None,
    )
    return language_model(GPT2LMHeadModel(config), generate)


if __name__ == "__main__":
    main()
