"""Exercises of chapter 65: the conventions of other codes.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 65_rosetta.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""


def flip_table(table, kind="shaw"):
    """Rows of a table read by i - j, reordered for code that counts j - i.

    table    (..., N, K), one row a distance or bucket
    kind     "shaw": row clip(D, -m, m) + m of 2m + 1
             "deberta": row clip(D + m, 0, 2m - 1) of 2m; row 0 has no mirror image and stays
             "t5": a half of the N rows for the past and the query itself, a half for the future
    returns  the same rows in another order, of the data's dtype
    """
    raise NotImplementedError


def convert_mask(mask, source, to="attend"):
    """A mask that says the same in other words.

    mask        any shape: boolean, or numbers to add
    source, to  "attend": True = may attend; "blocked": True = may not; "additive": 0 or -inf,
                from libraries also -10,000 and less
    returns     booleans, or 0 and -inf: of the mask's dtype if that is additive, else float64
    """
    raise NotImplementedError


def convert_layout(x, to="half", d=None):
    """Reorder the last axis from neighbouring pairs to pairs that are d/2 apart, or back.

    x        (..., K)   queries, keys, sinusoids: what has one number a component
    to       "half" or "interleaved": the layout wanted; x has the other one
    d        int        components that pair up, the first ones; K by default
    returns  of x's shape and dtype

    for c in 0 .. d/2 - 1:
        to half:        y[c] = x[2c],  y[d/2 + c] = x[2c + 1]
        to interleaved: y[2c] = x[c],  y[2c + 1] = x[d/2 + c]
    the other components stay
    """
    raise NotImplementedError


def relative_gather(products, distance, largest=None):
    """Look up the product of each pair by its distance.

    products  (..., L, N)   products of each query with the codes of N distances, the largest first
    distance  (..., L, S)   integers, query minus key position
    largest   int           distance of column 0; N - 1 by default
    returns   (..., L, S)   of the products' dtype

    for each query i and key j:
        result[i, j] = products[i, largest - distance[i, j]]
    """
    raise NotImplementedError


def alibi_key_bias(slopes, k_positions):
    """ALiBi without queries, as some codes have it.

    slopes       (H,)
    k_positions  (S,), or (B, S) if each row has its own
    returns      (H, 1, S), or (B, H, 1, S), of the slopes' dtype

    for each head h and key j:
        bias[h, 0, j] = slope[h] position[j]
    """
    raise NotImplementedError


def join_fused(q, k, v, order, n_heads, n_kv_heads=None):
    """Put queries, keys and values side by side, as one projection of some code makes them.

    q                    (..., H K)   head by head
    k, v                 (..., G K)   likewise
    order                "q|k|v": all queries, all keys, all values
                         "3HK": the same, for G = H
                         "H3K": query, key, value of head 0, then those of head 1, ...
    n_heads, n_kv_heads  int          H and G; G is H by default, and with the last two orders
    returns              (..., (H + 2 G) K)   of the data's dtype
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# flip_table, 1: the row of the distance D must go to where the row of -D was.
# flip_table, 2: in "deberta" row r goes to 2m - r, and row 0 stays.
# flip_table, 3: in "t5" each half has the near distances first; rows 0 and N/2 stay.
# convert_mask, 1: first make booleans of it, True = may attend; then the other words.
# convert_mask, 2: what adds nothing may be seen; all else of an additive mask is blocked.
# convert_mask, 3: np.where(free, 0.0, -np.inf); a product of 0 and infinity is no number.
# convert_layout, 1: slices with a step: x[..., 0:d:2] and x[..., 1:d:2].
# convert_layout, 2: or two axes, (d/2, 2), that change places.
# relative_gather, 1: np.take_along_axis looks up along one axis.
# relative_gather, 2: it wants the same other axes in both: np.broadcast_shapes, np.broadcast_to.
# alibi_key_bias, 1: slopes[:, None, None] has the axes (H, 1, 1).
# alibi_key_bias, 2: positions need an axis for the heads and one for the queries before S.
# join_fused, 1: two of the three orders are one concatenation.
# join_fused, 2: for H3K give each its axes (H, 1, K), or stack them behind H.
