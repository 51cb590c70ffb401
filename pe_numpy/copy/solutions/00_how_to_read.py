"""Solutions of the exercises of chapter 0."""

import numpy as np


def relative_distance(q_positions, k_positions):
    return q_positions[..., :, None] - k_positions[..., None, :]  # query minus key


def causal_mask(q_positions, k_positions):
    return q_positions[..., :, None] >= k_positions[..., None, :]  # a token sees itself
