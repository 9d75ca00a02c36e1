"""Rounding of float64 to narrower types, ties to even.

Conversions of ml_dtypes go through float32 or float16 and round twice.
"""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray

#: numpy rounds once. Types of ml_dtypes may have the kind "f", too.
_OF_NUMPY = (np.float16, np.float32, np.float64)


def round_to(values: FloatArray, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the nearest numbers of `dtype`; numbers that are too large become infinite or NaN.

    `values`: finite. `dtype`: a floating-point type of numpy, or one of ml_dtypes with at most 16
    bits.
    """
    if dtype in _OF_NUMPY:
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(values.astype(dtype))
    numbers, patterns = _list_numbers(dtype)
    above = np.clip(np.searchsorted(numbers, values), 1, len(numbers) - 1)
    middle = (numbers[above - 1] + numbers[above]) / 2
    is_odd = (patterns[above - 1] & 1).astype(bool)
    up = (values > middle) | ((values == middle) & is_odd)
    rounded = patterns[above - 1 + up].view(dtype)
    step = numbers[-1] - numbers[-2]
    rounded[np.abs(values) >= numbers[-1] + step / 2] = np.nan
    return np.asarray(rounded)


@cache
def _list_numbers(dtype: np.dtype[Any]) -> tuple[FloatArray, npt.NDArray[Any]]:
    """List all finite numbers of a type, ascending, and their bits."""
    unsigned = np.dtype(f"u{dtype.itemsize}")
    patterns = np.arange(2 ** (8 * dtype.itemsize), dtype=np.int64).astype(unsigned)
    with np.errstate(invalid="ignore"):
        values = patterns.view(dtype).astype(np.float64)
    finite = np.isfinite(values)
    numbers, first = np.unique(values[finite], return_index=True)
    return numbers, patterns[finite][first]
