"""Solutions of the exercises of chapter 65."""

import numpy as np


def flip_table(table, kind="shaw"):
    if kind == "shaw":
        return table[..., ::-1, :]
    first, past = table[..., :1, :], table[..., 1:, :]
    if kind == "deberta":
        return np.concatenate([first, past[..., ::-1, :]], axis=-2)
    half = table.shape[-2] // 2
    none, future = table[..., half : half + 1, :], table[..., half + 1 :, :]
    return np.concatenate([first, future, none, table[..., 1:half, :]], axis=-2)


def convert_mask(mask, source, to="attend"):
    free = {"attend": mask, "blocked": mask == 0, "additive": mask == 0}[source]
    if to == "additive":
        dtype = mask.dtype if source == "additive" else np.float64
        return np.where(free, 0.0, -np.inf).astype(dtype)
    return free if to == "attend" else ~free
