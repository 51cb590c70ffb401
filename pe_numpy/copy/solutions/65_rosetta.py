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


def convert_layout(x, to="half", d=None):
    d = x.shape[-1] if d is None else d
    shape = (d // 2, 2) if to == "half" else (2, d // 2)
    pairs = x[..., :d].reshape(*x.shape[:-1], *shape).swapaxes(-1, -2)
    return np.concatenate([pairs.reshape(*x.shape[:-1], d), x[..., d:]], axis=-1)


def relative_gather(products, distance, largest=None):
    column = (products.shape[-1] - 1 if largest is None else largest) - distance
    batch = np.broadcast_shapes(products.shape[:-2], column.shape[:-2])
    products = np.broadcast_to(products, (*batch, *products.shape[-2:]))
    column = np.broadcast_to(column, (*batch, *column.shape[-2:]))
    return np.take_along_axis(products, column, axis=-1)


def alibi_key_bias(slopes, k_positions):
    return slopes[:, None, None] * k_positions[..., None, None, :].astype(slopes.dtype)


def join_fused(q, k, v, order, n_heads, n_kv_heads=None):
    if order != "H3K":
        return np.concatenate([q, k, v], axis=-1)
    by_head = [x.reshape(*x.shape[:-1], n_heads, -1) for x in (q, k, v)]
    return np.stack(by_head, axis=-2).reshape(*q.shape[:-1], -1)
