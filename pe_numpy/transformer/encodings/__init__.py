r"""Every scheme as a class that plugs it into the four places: a file a place, and a register.

Position can enter an attention layer at four places, and at no other. An encoding is four methods,
one for each, and a fifth for schemes in which the text decides; each does nothing unless a
scheme says otherwise::

    1  embed    the token vectors      x becomes embed(x, positions)
    2  turn     queries and keys       q, k become turn(q, k, positions)
    3  scores   the score of a pair    q . k / sqrt(K), and what a scheme adds to it
       gates    what each token says   kept beside the keys, handed to scores with the mask
    4  mix      the weighted sum       weights @ v, and what a scheme adds to it

`SCHEMES` has a row for each scheme; `every_encoding`, the detector, cards and census read it.

Source: the modules of this package, which name theirs.
Axes: B batch, H heads, L queries, S keys, D model width, K width of one head, N rows of a table.
Symbols: `params` holds what a scheme learns: its own entry of one layer, together with what all
layers share (T5's table, TUPE's projections, DeBERTa's vectors).
Convention: positions are (L,), or (B, L) for a batch with padding; q, k, v are (B, H, L, K). A term
of place 3 owns its scale. The encodings serve self-attention; cross-attention has none.
Differs from the papers: in the papers some tables belong to each layer and some are shared in ways
that vary between models; here that is what each class says.
"""

from __future__ import annotations

from pe_numpy.transformer.encodings.base import Encoding, Params, Shape
from pe_numpy.transformer.encodings.rotation import Pope, Rope, RotaryValues, Tempered, XPos
from pe_numpy.transformer.encodings.schemes import SCHEMES, Reach, Scheme, every_encoding
from pe_numpy.transformer.encodings.score import (
    T5,
    Alibi,
    Cope,
    Deberta,
    DualChunk,
    Fire,
    Forgetting,
    Kerple,
    Nezha,
    RelativeKeyQuery,
    ReRope,
    Sandwich,
    SelfExtend,
    Shaw,
    Streaming,
    TransformerXL,
    Tupe,
)
from pe_numpy.transformer.encodings.token import (
    Floater,
    Hierarchical,
    Learned,
    Multiplicative,
    Recurrent,
    Sinusoidal,
)

__all__ = [
    "SCHEMES",
    "T5",
    "Alibi",
    "Cope",
    "Deberta",
    "DualChunk",
    "Encoding",
    "Fire",
    "Floater",
    "Forgetting",
    "Hierarchical",
    "Kerple",
    "Learned",
    "Multiplicative",
    "Nezha",
    "Params",
    "Pope",
    "ReRope",
    "Reach",
    "Recurrent",
    "RelativeKeyQuery",
    "Rope",
    "RotaryValues",
    "Sandwich",
    "Scheme",
    "SelfExtend",
    "Shape",
    "Shaw",
    "Sinusoidal",
    "Streaming",
    "Tempered",
    "TransformerXL",
    "Tupe",
    "XPos",
    "every_encoding",
]
