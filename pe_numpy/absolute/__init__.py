"""Position in the token vector: sinusoids, tables, recurrences, grids and graphs."""

from pe_numpy.absolute.complex_order import complex_attention, complex_order
from pe_numpy.absolute.convolution import convolve
from pe_numpy.absolute.fourier import fourier_features
from pe_numpy.absolute.grid import detr_sine, sinusoidal_2d
from pe_numpy.absolute.laplacian import laplacian_encoding
from pe_numpy.absolute.learned import hierarchical, learned, resize_matrix
from pe_numpy.absolute.positions import digit_positions, random_positions
from pe_numpy.absolute.recurrent import floater, recurrent
from pe_numpy.absolute.sinusoidal import sinusoidal, sinusoidal_shift, timing_signal, wavelengths

__all__ = [
    "complex_attention",
    "complex_order",
    "convolve",
    "detr_sine",
    "digit_positions",
    "floater",
    "fourier_features",
    "hierarchical",
    "laplacian_encoding",
    "learned",
    "random_positions",
    "recurrent",
    "resize_matrix",
    "sinusoidal",
    "sinusoidal_2d",
    "sinusoidal_shift",
    "timing_signal",
    "wavelengths",
]
