"""Exercises of chapter 65: the conventions of other codes.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check notebooks/exercises/65_rosetta.py

Hints stand at the end of the file, the gentle ones first.
"""


def flip_table(table, kind="shaw"):
    """Rows of a table read by i - j, reordered for code that counts j - i.

    table    (..., N, K), one row a distance or bucket
    kind     "shaw": row clip(D, -m, m) + m of 2m + 1
             "deberta": row clip(D + m, 0, 2m - 1) of 2m; row 0 has no mirror image and stays
             "t5": a half of the N rows for the past and the query itself, a half for the future
    returns  the same rows in another order
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


# ---- hints --------------------------------------------------------------------------------------

# flip_table, 1: the row of the distance D must go to where the row of -D was.
# flip_table, 2: in "deberta" row r goes to 2m - r, and row 0 stays.
# flip_table, 3: in "t5" each half has the near distances first; rows 0 and N/2 stay.
# convert_mask, 1: first make booleans of it, True = may attend; then the other words.
# convert_mask, 2: what adds nothing may be seen; all else of an additive mask is blocked.
# convert_mask, 3: np.where(free, 0.0, -np.inf); a product of 0 and infinity is no number.
