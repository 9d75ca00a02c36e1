"""New rows by a method, from the rows that live, rounded to the type of the file."""

from functools import cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from embgeo.core.arguments import refuse_if
from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.errors import argument
from embgeo.core.matrix import Matrix
from embgeo.numerics.sampling import generator
from embgeo.stats import Moments
from embgeo.stats.reader import RowReader

#: From the mean and the whole covariance of the rows that live; along their mean, or a copy of a
#: named token, with noise.
Method = Literal["draw", "mean", "copy"]
METHODS: tuple[Method, ...] = get_args(Method)
#: Length of the noise as a share of that of the row: cosines of new rows stay below 0.995, and
#: near-identical ones have more than 0.999.
NOISE = 0.1
#: Rows longer than this many times the median norm are not drawn from: one of them would make the
#: covariance.
FAR = 100.0


class Living(NamedTuple):
    """Mean, root of the covariance and median norm of the rows that live."""

    mean: FloatArray
    #: Shape (d, k); times its transpose the covariance.
    root: FloatArray
    median: float


def measure_living(matrix: Matrix, rows: IntArray) -> Living:
    """Measure the rows that live, which are finite and not all equal."""
    cause, way_out = "fewer than two rows live: there is nothing to draw from", "train it again"
    refuse_if(len(rows) < 2, matrix.name, cause, way_out)
    moments, reader = Moments(matrix.d), RowReader(matrix)
    norms = np.concatenate([block.norms for block in reader.blocks(rows)])
    median = float(np.median(norms))
    for block in reader.blocks(rows[norms <= FAR * median]):
        moments.update(block)
    values, vectors = np.linalg.eigh(moments.scatter / moments.n)
    refuse_if(not values[-1] > 0.0, matrix.name, "all rows that live are equal", way_out)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    return Living(moments.mean, root, median)


def make_rows(
    living: Living,
    count: int,
    method: Method,
    named: FloatArray | None,
    purpose: str,
    seed: int,
    dtype: np.dtype[Any],
) -> npt.NDArray[np.generic]:
    """Make new rows as the file stores them, shape (count, d); no two are alike.

    `named`: the row that is copied; None for other methods. `purpose`: of the random numbers.
    """
    normal = generator(seed, purpose).standard_normal((count, len(living.mean)))
    rows = normal @ living.root.T
    if method == "draw":
        rows += living.mean
    else:
        center, length = (living.mean, living.median) if named is None else (named, None)
        size = float(np.linalg.norm(center))
        cause = "the mean of the rows is zero: it has no direction"
        refuse_if(not size, argument("method", method), cause, "choose draw")
        length = size if length is None else length
        rows *= NOISE * length / np.linalg.norm(rows, axis=1, keepdims=True)
        rows += center * (length / size)
    stored = round_to(rows, dtype)
    lost = not np.isfinite(stored.astype(np.float64)).all()
    refuse_if(lost, str(dtype), "does not hold the new rows", "store the model in a wider type")
    return stored


#: numpy rounds once. Types of ml_dtypes may have the kind "f", too.
_OF_NUMPY = (np.float16, np.float32, np.float64)


def round_to(values: FloatArray, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the nearest numbers of `dtype`; numbers that are too large become infinite or NaN.

    Ties go to even. Conversions of ml_dtypes go through float32 or float16 and round twice.

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
