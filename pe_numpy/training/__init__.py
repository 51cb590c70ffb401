"""What trains a model: gradients by a tape, losses, optimisers, the loop, checkpoints."""

from pe_numpy.training.autodiff import value_and_grad
from pe_numpy.training.checkpoint import load, save
from pe_numpy.training.loop import train
from pe_numpy.training.loss import cross_entropy
from pe_numpy.training.optimiser import (
    adamw,
    adamw_state,
    clip_gradients,
    cosine_schedule,
    sgd,
    warmup_schedule,
)

__all__ = [
    "adamw",
    "adamw_state",
    "clip_gradients",
    "cosine_schedule",
    "cross_entropy",
    "load",
    "save",
    "sgd",
    "train",
    "value_and_grad",
    "warmup_schedule",
]
