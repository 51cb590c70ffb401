"""pe_numpy: a textbook that runs, on positional encodings and the Transformer in pure NumPy.

Where to look first::

    transformer/original.py    the Transformer of 2017 on one page, only NumPy
    transformer/decoder.py     a decoder of today, likewise
    absolute, relative, rotary the encodings: a file a paper
    transformer, training      attention, the model, its cache, what it generates; how it is trained
    models                     released models, a page each
    judging                    what kind an encoding is, what it costs, how models learn with it
    book, copy, homework       what shows, copies and checks all this

`python -m pe_numpy list` gives every public function by the place at which position enters
attention, with its equation and its chapter.

The axis letters of all shapes: B batch, H heads, L queries, S keys, D model width (d_model),
K width of one head (d_k), F feed-forward width, V vocabulary, N rows of a table. Distances are
query minus key position, so the past is positive. Masks are boolean, True = may attend. Positions
are arrays, never lengths. A function of data keeps the dtype of its data; a function of positions
alone gives float64.
"""

from typing import TYPE_CHECKING, Any

from pe_numpy import startup  # noqa: F401  (first: it looks after the import path)

# isort: split
from pe_numpy import absolute, judging, models, relative, rotary, training, transformer
from pe_numpy.absolute import *
from pe_numpy.judging import *
from pe_numpy.models import *
from pe_numpy.relative import *
from pe_numpy.rotary import *
from pe_numpy.training import *
from pe_numpy.transformer import *

__version__ = "0.2.0"

if TYPE_CHECKING:
    from pe_numpy.homework.registry import check


def __getattr__(name: str) -> Any:
    """Load the homework when somebody asks for `check`, and not before."""
    if name == "check":
        from pe_numpy.homework.registry import check

        return check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["check"]
__all__ += absolute.__all__
__all__ += relative.__all__
__all__ += rotary.__all__
__all__ += transformer.__all__
__all__ += training.__all__
__all__ += models.__all__
__all__ += judging.__all__
