"""Symmetric rank-k update C ← C + XᵀX of one triangle by BLAS, without Python's lock.

One triangle takes half the work of a product (Dongarra et al. 1990, routine SYRK).
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from embgeo.core.arrays import WorkingArray

#: Routine, and C type of its two factors.
ROUTINES = {
    np.dtype(np.float32): ("ssyrk", ctypes.c_float),
    np.dtype(np.float64): ("dsyrk", ctypes.c_double),
}
#: Types of the arguments as scipy declares them, with "real" for its names of real types.
ARGUMENTS = ("char", "char", "int", "int", "real", "real", "int", "real", "real", "int")


def add_gram(rows: WorkingArray, into: WorkingArray) -> None:
    """Add ``rowsᵀ rows`` to the upper triangle of `into`.

    `rows`: shape (b, d); in C order. `into`: shape (d, d); in Fortran order; unchanged below the
    diagonal. Raises ValueError if the arrays do not fit together.

    Examples
    --------
    >>> total = np.zeros((2, 2), order="F")
    >>> add_gram(np.array([[1.0, 2.0], [3.0, 4.0]]), total)
    >>> total.tolist()
    [[10.0, 14.0], [0.0, 20.0]]
    """
    _, d = rows.shape
    contiguous = rows.flags.c_contiguous and into.flags.f_contiguous
    if into.dtype != rows.dtype or into.shape != (d, d) or not contiguous:
        raise ValueError("rows and sum do not fit together")
    if rows.size:
        _find_update(rows.dtype)(rows, into)


@cache
def _find_update(dtype: np.dtype[Any]) -> Callable[[WorkingArray, WorkingArray], None]:
    """Find the routine that scipy exports to compiled code, or else scipy's wrapper.

    A call through ctypes releases Python's lock; the wrapper holds it, so that threads wait.
    """
    try:
        return _compiled_update(dtype)
    except (ImportError, AttributeError, LookupError, TypeError, ValueError):
        return _wrapped_update(dtype)


def _compiled_update(dtype: np.dtype[Any]) -> Callable[[WorkingArray, WorkingArray], None]:
    """Return LAPACK's update from scipy; several errors if Python or scipy is built differently."""
    from scipy.linalg import cython_blas

    name, real = ROUTINES[dtype]
    capsule: Any = dict(cython_blas.__pyx_capi__)[name]
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = python.PyCapsule_GetName(capsule)
    declared = signature.decode().partition("(")[2].rstrip(")").replace(" *", "").split(", ")
    kinds = tuple("real" if kind.startswith("__pyx") else kind for kind in declared)
    if kinds != ARGUMENTS:  # as with a BLAS of 64-bit integers
        raise TypeError(f"{name} takes {signature.decode()}")
    integer, factor = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(real)
    text, data = ctypes.c_char_p, ctypes.c_void_p
    arguments = (text, text, integer, integer, factor, data, integer, factor, data, integer)
    address = python.PyCapsule_GetPointer(capsule, signature)
    routine, one = ctypes.CFUNCTYPE(None, *arguments)(address), real(1.0)

    def update(rows: WorkingArray, into: WorkingArray) -> None:
        b, d = map(ctypes.c_int, rows.shape)
        # BLAS, which uses Fortran order, sees rows in C order as their transpose.
        routine(b"U", b"N", d, b, one, rows.ctypes.data, d, one, into.ctypes.data, d)

    return update


def _wrapped_update(dtype: np.dtype[Any]) -> Callable[[WorkingArray, WorkingArray], None]:
    from scipy.linalg import blas

    routine = getattr(blas, ROUTINES[dtype][0])

    def update(rows: WorkingArray, into: WorkingArray) -> None:
        routine(1.0, rows.T, beta=1.0, c=into, overwrite_c=1)

    return update
