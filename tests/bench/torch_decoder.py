"""A decoder-only Transformer in eager PyTorch, the twin of `pe_numpy.decode` with RoPE.

It takes pe_numpy's parameters by their names, so both sides compute the same numbers.
"""

from __future__ import annotations

import math
from time import perf_counter

import torch
import torch.nn.functional as F
from torch import Tensor


def leaves(tree, make):
    """A copy of nested dictionaries with `make` applied to each array."""
    if isinstance(tree, dict):
        return {key: leaves(value, make) for key, value in tree.items()}
    return make(tree)


def flat(tree):
    """All tensors of nested dictionaries."""
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in flat(value)]
    return [tree]


def linear(x, params, name):
    """x W + b in one call."""
    return F.linear(x, params[f"W_{name}"].T, params[f"b_{name}"])


class Decoder:
    """Two pre-norm layers of causal attention with RoPE and a ReLU network."""

    def __init__(self, params, n_heads: int, longest: int) -> None:
        self.params = leaves(params, lambda a: torch.tensor(a, requires_grad=True))
        self.heads = n_heads
        width = params["embedding"].shape[1]
        theta = 10000.0 ** (-torch.arange(0, width // n_heads, 2) / (width // n_heads))
        angles = torch.arange(longest)[:, None] * theta
        self.table = torch.polar(torch.ones_like(angles), angles)
        self.mask = torch.ones(longest, longest, dtype=torch.bool).tril()
        self.width = width

    def turn(self, x: Tensor, start: int) -> Tensor:
        """RoPE by one complex product."""
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        turned = pairs * self.table[start : start + x.shape[-2]]
        return torch.view_as_real(turned).flatten(-2)

    def split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def logits(self, tokens: Tensor, cache: list | None = None, start: int = 0) -> Tensor:
        """(B, L) to (B, L, V); a cache is a list of (keys, values) with room for all tokens."""
        params, norm = (
            self.params,
            lambda p, x: F.layer_norm(x, (self.width,), p["gain"], p["bias"]),
        )
        x = F.embedding(tokens, params["embedding"]) * math.sqrt(self.width)
        end = start + tokens.shape[1]
        for n, layer in enumerate(params["decoder"]["layers"].values()):
            own, h = layer["attention"], norm(layer["attention_norm"], x)
            q, k, v = (self.split(linear(h, own, c)) for c in "qkv")
            q, k = self.turn(q, start), self.turn(k, start)
            if cache is not None:
                cache[n][0][:, :, start:end], cache[n][1][:, :, start:end] = k, v
                k, v = (a[:, :, :end] for a in cache[n])
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            if end - start > 1:  # one new token sees all
                scores = scores.masked_fill(~self.mask[start:end, :end], -math.inf)
            weights = scores.softmax(-1)
            mixed = (weights @ v).transpose(1, 2).flatten(-2)
            x = x + linear(mixed, own, "o")
            own, h = layer["feed_forward"], norm(layer["feed_forward_norm"], x)
            x = x + linear(F.relu(linear(h, own, "1")), own, "2")
        return norm(params["decoder"]["norm"], x) @ params["output"]

    def trainer(self, tokens: Tensor, targets: Tensor):
        """Give a function that makes one AdamW step and returns the loss before it."""
        decayed = [p for p in flat(self.params) if p.ndim > 1]
        plain = [p for p in flat(self.params) if p.ndim <= 1]
        groups = [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
        optimiser = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.98), eps=1e-9)

        def step() -> float:
            optimiser.zero_grad()
            loss = F.cross_entropy(self.logits(tokens).flatten(0, 1), targets.flatten())
            loss.backward()
            optimiser.step()
            return float(loss.detach())

        return step

    @torch.no_grad()
    def greedy(self, prompt: Tensor, steps: int, marks: list | None = None) -> Tensor:
        """Continue a prompt with the most probable tokens, with a cache taken once.

        `marks` gets the time after each token.
        """
        layers = self.params["decoder"]["layers"]
        shape = prompt.shape[0], self.heads, prompt.shape[1] + steps, self.width // self.heads
        cache = [(torch.zeros(shape), torch.zeros(shape)) for _ in layers]
        tokens, start, new = prompt, 0, []
        for _ in range(steps):
            chosen = self.logits(tokens, cache, start)[:, -1].argmax(-1, keepdim=True)
            start, tokens = start + tokens.shape[1], chosen
            new.append(chosen)
            if marks is not None:
                marks.append(perf_counter())
        return torch.cat(new, 1)
