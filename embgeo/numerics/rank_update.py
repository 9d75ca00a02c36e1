"""Updates of a triangle by further rows X, by BLAS and LAPACK without Python's lock.

C ← C + XᵀX takes half the work of a product (Dongarra et al. 1990, routine SYRK). The R of a QR
decomposition of R on top of X takes half the work of that of a full matrix of their size, since
the zeros of R stay zero (LAPACK's routine TPQRT).
"""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from embgeo.core.arrays import FloatArray, WorkingArray

#: Routine, and C type of its two factors.
ROUTINES = {
    np.dtype(np.float32): ("ssyrk", ctypes.c_float),
    np.dtype(np.float64): ("dsyrk", ctypes.c_double),
}
#: Types of the arguments as scipy declares them, with "real" for its names of real types.
SYRK = ("char", "char", "int", "int", "real", "real", "int", "real", "real", "int")
TPQRT = ("int", "int", "int", "int", "real", "int", "real", "int", "real", "int", "real", "int")
#: Columns that TPQRT treats at once.
PANEL = 64


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


def stack_rows(r: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the R of the QR decomposition of `r`, upper triangular, on top of `rows`.

    `r`: shape (k, d), with k ≤ d. `rows`: shape (b, d).
    """
    d = rows.shape[1]
    stack = _find_stacking() if len(r) == d and rows.size else None
    if stack is None:
        return np.asarray(np.linalg.qr(np.concatenate([r, rows]), mode="r"))
    r = np.array(r, dtype=np.float64, order="F")
    stack(r, np.array(rows, dtype=np.float64, order="F"))
    return r


@cache
def _find_update(dtype: np.dtype[Any]) -> Callable[[WorkingArray, WorkingArray], None]:
    """Find the routine that scipy exports to compiled code, or else scipy's wrapper.

    A call through ctypes releases Python's lock; the wrapper holds it, so that threads wait.
    """
    try:
        return _compiled_update(dtype)
    except (ImportError, AttributeError, LookupError, TypeError, ValueError):
        return _wrapped_update(dtype)


@cache
def _find_stacking() -> Callable[[FloatArray, FloatArray], None] | None:
    """Find the routine that scipy exports to compiled code; None if there is none."""
    try:
        return _compiled_stacking()
    except (ImportError, AttributeError, LookupError, TypeError, ValueError):
        return None


def _compiled_update(dtype: np.dtype[Any]) -> Callable[[WorkingArray, WorkingArray], None]:
    from scipy.linalg import cython_blas

    name, real = ROUTINES[dtype]
    routine, one = _open_routine(cython_blas, name, SYRK), real(1.0)

    def update(rows: WorkingArray, into: WorkingArray) -> None:
        b, d = map(ctypes.c_int, rows.shape)
        # BLAS, which uses Fortran order, sees rows in C order as their transpose.
        routine(
            *(b"U", b"N", d, b, ctypes.byref(one), rows.ctypes.data, d),
            *(ctypes.byref(one), into.ctypes.data, d),
        )

    return update


def _compiled_stacking() -> Callable[[FloatArray, FloatArray], None]:
    from scipy.linalg import cython_lapack

    routine = _open_routine(cython_lapack, "dtpqrt", TPQRT)

    def stack(r: FloatArray, rows: FloatArray) -> None:
        """Overwrite both, in Fortran order; `r` becomes the R of both."""
        b, d = map(ctypes.c_int, rows.shape)
        panel, failed = ctypes.c_int(min(PANEL, d.value)), ctypes.c_int()
        space = np.empty((2, panel.value * d.value))
        routine(
            *(b, d, ctypes.c_int(), panel, r.ctypes.data, d, rows.ctypes.data, b),
            *(space[0].ctypes.data, panel, space[1].ctypes.data, failed),
        )

    return stack


def _open_routine(module: Any, name: str, arguments: tuple[str, ...]) -> Any:
    """Open a routine of scipy; several errors if Python or scipy is built differently."""
    capsule: Any = dict(module.__pyx_capi__)[name]
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = python.PyCapsule_GetName(capsule)
    declared = signature.decode().partition("(")[2].rstrip(")").replace(" *", "").split(", ")
    kinds = tuple("real" if kind.startswith("__pyx") else kind for kind in declared)
    if kinds != arguments:  # as with a BLAS of 64-bit integers
        raise TypeError(f"{name} takes {signature.decode()}")
    types: dict[str, Any] = {
        "char": ctypes.c_char_p,
        "int": ctypes.POINTER(ctypes.c_int),
        "real": ctypes.c_void_p,
    }
    address = python.PyCapsule_GetPointer(capsule, signature)
    return ctypes.CFUNCTYPE(None, *(types[kind] for kind in kinds))(address)


def _wrapped_update(dtype: np.dtype[Any]) -> Callable[[WorkingArray, WorkingArray], None]:
    from scipy.linalg import blas

    routine = getattr(blas, ROUTINES[dtype][0])

    def update(rows: WorkingArray, into: WorkingArray) -> None:
        routine(1.0, rows.T, beta=1.0, c=into, overwrite_c=1)

    return update
