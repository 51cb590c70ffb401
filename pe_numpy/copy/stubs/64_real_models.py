"""Exercises of chapter 64: real models.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 64_real_models.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""


def split_fused(x, order, n_heads, n_kv_heads=None):
    """Queries, keys and values that one projection made.

    x           (..., (H + 2 G) K)
    order       "q|k|v" or "3HK", another name of it; or "H3K"
    n_heads     H
    n_kv_heads  G, H if left out; other than H only in the order "q|k|v"
    returns     (..., H K), (..., G K), (..., G K)   of the data's dtype

    "q|k|v": all heads of the queries, then all of the keys, then all of the values
    "H3K":   for each head: its query, its key, its value, K numbers each
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# split_fused, 1: how wide is a head? The last axis holds H + 2 G of them.
# split_fused, 2: "q|k|v" is two cuts of the last axis; they are thirds only where G = H.
# split_fused, 3: "H3K" says the shape: reshape the last axis to (H, 3, K); take [..., 0, :].
