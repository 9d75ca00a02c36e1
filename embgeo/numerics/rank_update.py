"""XᵀX added to a triangle in place, by BLAS, while other threads go on."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from embgeo.core.arrays import WorkingArray

#: Routine and the C type of its two factors.
ROUTINES = {
    np.dtype(np.float32): ("ssyrk", ctypes.c_float),
    np.dtype(np.float64): ("dsyrk", ctypes.c_double),
}


def add_gram(rows: WorkingArray, into: WorkingArray) -> None:
    """Add ``rowsᵀ rows`` to the upper triangle of `into`: half the work of a product.

    Parameters
    ----------
    rows : float32 or float64 array, shape (b, d)
        In the order of C.
    into : array of the same type, shape (d, d)
        In the column order of BLAS; below the diagonal it is left as it is.
    """
    b, d = rows.shape
    contiguous = rows.flags.c_contiguous and into.flags.f_contiguous
    if into.dtype != rows.dtype or into.shape != (d, d) or not contiguous:
        raise ValueError("rows and sum do not fit together")
    width, height = ctypes.c_int(d), ctypes.c_int(b)
    routine, one = _routine(rows.dtype)
    # To BLAS, which counts by columns, rows in the order of C are their own transpose.
    routine(b"U", b"N", width, height, one, rows.ctypes.data, width, one, into.ctypes.data, width)


@cache
def _routine(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The BLAS routine that scipy offers to compiled code, and a factor of one.

    scipy's own wrapper of it holds Python's lock during the call, so that threads would wait for
    one another; a call through ctypes gives it back.
    """
    from scipy.linalg import cython_blas

    name, real = ROUTINES[dtype]
    capsule: Any = dict(cython_blas.__pyx_capi__)[name]
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule))
    integer, factor = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(real)
    text, data = ctypes.c_char_p, ctypes.c_void_p
    arguments = (text, text, integer, integer, factor, data, integer, factor, data, integer)
    return ctypes.CFUNCTYPE(None, *arguments)(address), real(1.0)
