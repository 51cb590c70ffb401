"""pe_numpy: a textbook that runs, on positional encodings and the Transformer in pure NumPy.

Every public function, by the place at which position enters attention:

1. the token vector
       sinusoidal, sinusoidal_shift, sinusoidal_2d, wavelengths
2. queries and keys
       rope, rope_frequencies, rope_matrix, rope_permutation
3. the score of a pair, and 4. the weighted sum
       attention, attend, attention_blockwise, softmax, log_softmax,
       causal_mask, padding_mask, split_heads, merge_heads

The axis letters of all shapes: B batch, H heads, L queries, S keys, D model width (d_model),
K width of one head (d_k), F feed-forward width, V vocabulary, N rows of a table. Distances are
query minus key position, so the past is positive. Masks are boolean, True = may attend. Positions
are arrays, never lengths. A function of data keeps the dtype of its data; a function of positions
alone gives float64.
"""

from pe_numpy.absolute.sinusoidal import (
    sinusoidal,
    sinusoidal_2d,
    sinusoidal_shift,
    wavelengths,
)
from pe_numpy.rotary.rope import rope, rope_frequencies, rope_matrix, rope_permutation
from pe_numpy.transformer.attention import (
    attend,
    attention,
    attention_blockwise,
    causal_mask,
    log_softmax,
    merge_heads,
    padding_mask,
    softmax,
    split_heads,
)

__version__ = "0.1.0"

__all__ = [
    "attend",
    "attention",
    "attention_blockwise",
    "causal_mask",
    "log_softmax",
    "merge_heads",
    "padding_mask",
    "rope",
    "rope_frequencies",
    "rope_matrix",
    "rope_permutation",
    "sinusoidal",
    "sinusoidal_2d",
    "sinusoidal_shift",
    "softmax",
    "split_heads",
    "wavelengths",
]
