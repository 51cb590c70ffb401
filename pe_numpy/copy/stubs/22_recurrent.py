"""Exercises of chapter 22: make each code from the one before.

Write the functions, then ask what is still wrong:

    python -m pe_numpy check 22_recurrent.py

Arrays are NumPy arrays, not lists. "Of x's dtype" and "of the data's dtype" mean that float32
stays float32. Hints are at the end of the file, the gentle ones first.
"""

import numpy as np


def recurrent(start, step, length):
    """Each code from the one before it.

    start    (D,)          the first code
    step     function      takes a code (D,), gives the next
    length   int           number of codes, at least 1
    returns  (length, D)   of start's dtype, float64 for integers

    code[0] = start
    for k in 1 .. length-1:
        code[k] = step(code[k-1])
    """
    raise NotImplementedError


def floater(start, derivative, times, substeps=8):
    """Follow dp/dt = derivative(p, t) by the classical Runge-Kutta method.

    start       (D,)       the code at times[0]
    derivative  function   takes a code (D,) and a time, gives dp/dt (D,)
    times       (L,)       numbers
    returns     (L, D)     of start's dtype, float64 for integers

    for n in 1 .. L-1, from times[n-1] to times[n] in `substeps` equal steps of h:
        k1 = derivative(p, t)
        k2 = derivative(p + h/2 k1, t + h/2)
        k3 = derivative(p + h/2 k2, t + h/2)
        k4 = derivative(p + h k3, t + h)
        p = p + h/6 (k1 + 2 k2 + 2 k3 + k4),   t = t + h
        code[n] = p after the last step
    """
    raise NotImplementedError


# ---- hints --------------------------------------------------------------------------------------

# recurrent, 1: a list of codes, then np.stack.
# recurrent, 2: length 1 is only the start.
# recurrent, 3: 1.0 * start keeps float32 and makes float64 of integers; cast each step to its dtype.

# floater, 1: code[0] is the start.
# floater, 2: h = (times[n] - times[n-1]) / substeps; step m begins at times[n-1] + m h.
# floater, 3: times may be float64 where start is float32: cast the codes at the end.
