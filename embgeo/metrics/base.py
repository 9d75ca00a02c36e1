"""What a metric family is given, and what it has to offer."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray, WorkingArray
from embgeo.core.options import Options
from embgeo.core.values import Value
from embgeo.numerics.block_rotation import BlockRotation, block_rotation
from embgeo.numerics.rank_one import add_rank_one
from embgeo.stats import LogPartition, Moments, PairHistogram
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic

T = TypeVar("T")
X = TypeVar("X", bound=Statistic)

#: Above this many entries `i_sphere`, which reads the matrix once a step, is only made on demand.
SPHERE_LIMIT = 10**8


class Fold(Protocol):
    """Feeds the kept rows, or the named ones, to statistics."""

    def __call__(self, statistics: Sequence[Statistic], rows: IntArray | None = None) -> None: ...


class Spread(Protocol):
    """Gives ``work(0)`` to ``work(count − 1)`` in order, made on all threads; `what` has a bar."""

    def __call__(self, work: Callable[[int], T], count: int, what: str = "") -> Iterator[T]: ...


class Sweep(Protocol):
    """Feeds all kept rows to ``make(block)``, for every block of the named rows, in their order.

    `make` gets a block with `index`, `rows` and `unit`, which may be tensors of a device.
    """

    def __call__(self, make: Callable[[Any], X], rows: IntArray, what: str) -> Iterator[X]: ...


#: Eigenvalues, rising, and eigenvectors of a symmetric matrix; None where it cannot be done.
Eigh = Callable[[FloatArray], tuple[FloatArray, FloatArray] | None]


#: Up to this size eigenvectors come from numpy, beyond it from scipy, which needs less memory.
NUMPY_EIGH = 2048


@dataclass(frozen=True)
class Context:
    """The matrix as a metric sees it.

    Attributes
    ----------
    n, d : int
        Shape of the matrix.
    options : Options
    blocks : callable
        ``blocks(rows=None)`` gives the kept rows (or the named ones) block by block.
    fold : callable
        ``fold(statistics, rows=None)`` feeds those rows to the statistics, on all threads.
    spread : callable
        ``spread(work, count)`` gives ``work(0), work(1), …``, made on all threads.
    sweep : callable
        ``sweep(make, rows, what)`` gives a statistic of all kept rows for each block of `rows`.
    take : callable
        ``take(rows)`` gives the named rows in float64, shape (len(rows), d).
    stored : callable
        The same as float32, where every stored entry is exact in it.
    tokens : sequence of str or None
        One label for each of the N rows.
    counts : float64 array, shape (N,), or None
    frequency_kind : {"counts", "rank"} or None
    frequency_source : str
    output_width : int or None
        Columns of the output projection, where the model is untied.
    output_absent : str
        Why there is no output projection.
    hidden_blocks : callable or None
        Gives the hidden states block by block, where there are any.
    hidden_width : int
        Their number of columns.
    hidden_rounding : float
        Relative rounding of their stored entries.
    layernorm : tuple or None
        Name, scale and bias of the model's final LayerNorm.
    layernorm_absent : str
        Why there is none.
    device : str
        Where sums over rows are made: "cpu", or the name of a device.
    pair_histogram : callable or None
        Every pair, counted on a device.
    eigh : callable or None
        Eigendecompositions on a device.
    kept : int array, shape (M,)
        Rows that take part, ascending. Known after the first pass; empty before.
    masked, zero, nonfinite : int
        Rows left out: by request, exactly zero, with a non-finite entry.
    masked_rows : mapping of str to int array
        Those left out by request, by reason.
    announce : callable
        ``announce(what, rows)`` before a further pass over so many rows, for who watches.
    passes_absent : str
        Why there can be no further pass over all rows; empty where there can.
    """

    n: int
    d: int
    options: Options
    blocks: Callable[[IntArray | None], Iterator[Block]]
    fold: Fold
    spread: Spread
    sweep: Sweep
    take: Callable[[IntArray], FloatArray]
    stored: Callable[[IntArray], WorkingArray]
    tokens: Sequence[str] | None = None
    counts: FloatArray | None = None
    frequency_kind: Literal["counts", "rank"] | None = None
    frequency_source: str = ""
    output_width: int | None = None
    output_absent: str = ""
    hidden_blocks: Callable[[], Iterator[Block]] | None = None
    hidden_width: int = 0
    hidden_rounding: float = 0.0
    layernorm: tuple[str, FloatArray, FloatArray] | None = None
    layernorm_absent: str = ""
    device: str = "cpu"
    pair_histogram: Callable[[], PairHistogram] | None = None
    eigh: Eigh | None = None
    kept: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    masked: int = 0
    zero: int = 0
    nonfinite: int = 0
    masked_rows: Mapping[str, IntArray] = field(default_factory=dict)
    announce: Callable[[str, int], None] = lambda _what, _rows: None
    passes_absent: str = ""

    @property
    def m(self) -> int:
        """Number of kept rows."""
        return len(self.kept)

    def rng(self, purpose: str) -> np.random.Generator:
        """A generator of its own for each purpose: no draw depends on which metrics ran before."""
        return np.random.default_rng([self.options.seed, zlib.crc32(purpose.encode())])

    def token(self, row: int) -> str:
        """The label of a row, or its number where there are no labels."""
        return f"row {row}" if self.tokens is None else self.tokens[row]

    def unit_rows(self, rows: IntArray) -> FloatArray:
        return Block(rows, self.take(rows)).unit


@dataclass(frozen=True, slots=True)
class Eigen:
    """Eigenvalues of WᵀW (or of the centered matrix), falling, and their vectors as columns."""

    values: FloatArray
    vectors: FloatArray

    def rank(self, rows: int) -> int:
        """Numerical rank: eigenvalues above the rounding error of the largest one."""
        if not len(self.values) or self.values[0] <= 0:
            return 0
        floor = self.values[0] * max(rows, len(self.values)) * np.finfo(float).eps
        return int(np.count_nonzero(self.values > floor))


S = TypeVar("S")


class Seen:
    """The statistics after their passes, by key, with what several families derive from them."""

    def __init__(self, eigh: Eigh | None = None, frugal: bool = False) -> None:
        """With `frugal`, scatter matrices and directions are let go of once they are used."""
        self.statistics: dict[Hashable, Statistic] = {}
        self._eigh = eigh
        self._frugal = frugal and eigh is None

    def add(self, statistics: Iterable[Statistic]) -> None:
        """Statistics of a pass that is over."""
        for statistic in statistics:
            if self._frugal and isinstance(statistic, Moments) and statistic.of == "unit":
                statistic.forget_scatter()  # of which only sums are wanted
            elif self._frugal and isinstance(statistic, LogPartition):
                statistic.forget_directions()
            self.statistics[statistic.key] = statistic

    def find(self, kind: type[S], key: Hashable) -> S:
        statistic = self.statistics[key]
        if not isinstance(statistic, kind):
            raise TypeError(f"{key!r} is {type(statistic).__name__}, not {kind.__name__}")
        return statistic

    @property
    def moments(self) -> Moments:
        return self.find(Moments, ("moments", "rows"))

    @property
    def unit_moments(self) -> Moments:
        return self.find(Moments, ("moments", "unit"))

    @cached_property
    def all_rows_equal(self) -> str:
        """A reason if nothing but rounding is left once the mean row is subtracted, else empty."""
        left = self.moments.trace()
        total = left + self.moments.n * float(np.square(self.moments.mean).sum())
        if left > total * 1e-28:
            return ""
        return "all kept rows are equal, nothing is left once the mean row is subtracted"

    @property
    def eigen(self) -> Eigen:
        """Of WᵀW; signs so that ⟨mean row, v⟩ ≥ 0."""
        return self._uncentered[0]

    @property
    def rotation(self) -> BlockRotation | None:
        """What turns the centered eigenvectors into those of WᵀW, where a product gains by it."""
        return self._uncentered[1]

    @cached_property
    def _uncentered(self) -> tuple[Eigen, BlockRotation | None]:
        """WᵀW is the centered scatter and n·μμᵀ."""
        if self._eigh is not None:
            return signed_eigen(self.moments.gram(), self.moments.mean, self._eigh), None
        known = self.eigen_centered
        mean = known.vectors.T @ self.moments.mean
        values, q = add_rank_one(known.values, np.sqrt(self.moments.n) * mean)
        q *= np.where(mean @ q < 0, -1.0, 1.0)
        return Eigen(values, known.vectors @ q), block_rotation(q)

    @cached_property
    def eigen_centered(self) -> Eigen:
        """Of the centered scatter; signs so that the entry of largest magnitude is positive."""
        scatter = self.moments.scatter
        if self._frugal:
            self.moments.forget_scatter()
        return signed_eigen(scatter, None, self._eigh)


def signed_eigen(gram: FloatArray, mean: FloatArray | None, on_device: Eigh | None = None) -> Eigen:
    """Eigenpairs of a symmetric matrix in falling order, with a stated sign for each vector."""
    found = None if on_device is None else on_device(gram)
    values, vectors = found or _eigh(gram)
    values, vectors = np.maximum(values[::-1], 0.0), np.ascontiguousarray(vectors[:, ::-1])
    if mean is None:
        largest = np.argmax(np.abs(vectors), axis=0)
        side = vectors[largest, np.arange(vectors.shape[1])]
    else:
        side = mean @ vectors
    vectors *= np.where(side < 0, -1.0, 1.0)
    return Eigen(values, vectors)


def _eigh(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rising eigenvalues and their vectors; a large `gram` is overwritten.

    scipy brings a BLAS of its own, whose threads stay awake for a while after a call and keep
    those of numpy's BLAS from working. But numpy needs five matrices where scipy needs three.
    """
    if len(gram) <= NUMPY_EIGH:
        values, vectors = np.linalg.eigh(gram)
        return values, vectors
    from scipy.linalg import eigh

    values, vectors = eigh(gram, driver="evd", overwrite_a=True, check_finite=False)
    return values, vectors


class Family(Protocol):
    """One module of `metrics`: a section of the analysis.

    FAMILY is the name that ``--sections`` and the values' names use. The passes come before
    `compute`: a statistic wanted by several families is taken once, by key. A family may also
    have ``ahead(context, seen)``: statistics that it gathers by itself after the first pass,
    while matrices are decomposed; nothing may hang on whether they were.
    """

    FAMILY: str

    def absent(self, context: Context) -> str:
        """Why the family is left out; empty if it is not."""

    def first(self, context: Context) -> list[Statistic]:
        """Statistics of the first pass."""

    def second(self, context: Context, seen: Seen) -> list[Statistic]:
        """Statistics of the second pass, which may depend on the first."""

    def rows_read(self, context: Context, seen: Seen) -> IntArray:
        """Rows that `second` and `compute` look at one by one, known after the first pass.

        Where a matrix is measured in parts, they are gathered from the parts that hold them.
        """

    def compute(self, context: Context, seen: Seen) -> list[Value]:
        """The values, in the order in which they are shown."""


NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)


def row_moments(context: Context) -> Moments:
    """Mean and scatter of the rows, in the precision that was asked for."""
    return Moments(context.d, single=context.options.precision == "float32")


def sampled(rows: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """At most `count` of the rows without replacement, ascending."""
    if len(rows) <= count:
        return rows
    chosen: npt.NDArray[Any] = rng.choice(rows, size=count, replace=False)
    return np.sort(chosen)
