r"""Every scheme as a class that plugs it into the four places: a file a place.

Position can enter an attention layer at four places, and at no other. An encoding is four methods,
one for each, and a fifth for schemes in which the text decides; each does nothing unless a
scheme says otherwise::

    1  embed    the token vectors      x becomes embed(x, positions)
    2  turn     queries and keys       q, k become turn(q, k, positions)
    3  scores   the score of a pair    q . k / sqrt(K), and what a scheme adds to it
       gates    what each token says   kept beside the keys, handed to scores with the mask
    4  mix      the weighted sum       weights @ v, and what a scheme adds to it

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

import math

from pe_numpy.transformer.encodings.base import Encoding, Params, Shape
from pe_numpy.transformer.encodings.rotation import Pope, Rope, RotaryValues, Tempered, XPos
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
    "Recurrent",
    "RelativeKeyQuery",
    "Rope",
    "RotaryValues",
    "Sandwich",
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


def every_encoding(length: int, clip: int = 16) -> dict[str, Encoding]:
    """One of each scheme, by name, for sequences of up to `length` tokens.

    Examples
    --------
    >>> list(every_encoding(8))[:4]
    ['none', 'sinusoidal', 'multiplicative', 'learned']
    """
    return {
        "none": Encoding(),
        "sinusoidal": Sinusoidal(),
        "multiplicative": Multiplicative(),
        "learned": Learned(length),
        "hierarchical": Hierarchical(math.isqrt(max(length - 1, 0)) + 1),
        "recurrent": Recurrent(),
        "floater": Floater(),
        "rope": Rope(),
        "shaw": Shaw(clip),
        "relative_key_query": RelativeKeyQuery(length),
        "nezha": Nezha(clip),
        "transformer_xl": TransformerXL(),
        "t5": T5(),
        "tupe": Tupe(length=length),
        "deberta": Deberta(clip),
        "alibi": Alibi(),
        "kerple": Kerple(),
        "sandwich": Sandwich(),
        "fire": Fire(max(length // 8, 2)),
        "forgetting": Forgetting(),
        "cope": Cope(length + 1),
        "rerope": ReRope(clip),
        "self_extend": SelfExtend(clip, 2),
        "dual_chunk": DualChunk(clip + 2, 2),
        "streaming": Streaming(clip, 2),
        "xpos": XPos(),
        "pope": Pope(),
        "rotary_values": RotaryValues(),
    }
