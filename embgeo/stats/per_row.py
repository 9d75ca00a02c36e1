"""One or a few numbers for each row, and the rows that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import Array, FloatArray, IntArray, Mask, WorkingArray
from embgeo.core.rows import is_listed
from embgeo.numerics.row_norms import find_norm_limit
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic, concatenate

#: Up to this cosine the angle follows from it to 1e-12.
NEAR_ONE = 0.999
#: Where less than this share of the squares is left, a distance is taken from the differences:
#: sixteen digits of the squares would leave fewer than thirteen.
CANCELLED = 1e-3


class PerRow(Statistic):
    """Base of the statistics that keep a fixed number of values per row."""

    STATE: ClassVar[tuple[str, ...]] = ("_index", "_values")

    def clear(self) -> None:
        self._index: list[IntArray | range] = []
        self._values: list[npt.NDArray[Any]] = []

    def compute(self, block: Block) -> Array:
        """Compute one entry, or one row of entries, per row of the block, on its backend."""
        raise NotImplementedError

    def update(self, block: Block) -> None:
        if len(block.index):
            self.add(block.index, block.backend.to_host(self.compute(block)))

    def add(self, index: IntArray, values: npt.NDArray[Any]) -> None:
        self._index.append(shorten(index))
        self._values.append(values)

    def index(self) -> IntArray:
        """Return the row numbers seen, ascending."""
        return np.sort(concatenate([np.asarray(part) for part in self._index]).astype(np.int64))

    def values(self) -> npt.NDArray[Any]:
        """Return the values in ascending order of row number; joins the parts."""
        if len(self._values) != 1 or not isinstance(self._index[0], range):
            self._join()
        return self._values[0]

    def _join(self) -> None:
        pieces = [(i, v) for i, v in zip(self._index, self._values, strict=True) if len(i)]
        pieces.sort(key=lambda piece: int(piece[0][0]))
        index = join_ranges([numbers for numbers, _ in pieces])
        values: npt.NDArray[Any] = concatenate([numbers for _, numbers in pieces])
        if not isinstance(index, range) and not np.all(index[:-1] < index[1:]):
            order = np.argsort(index, kind="stable")
            index, values = index[order], values[order]
        self._index = [index if isinstance(index, range) else shorten(index)]
        self._values = [values]


def shorten(index: IntArray) -> IntArray | range:
    """Replace consecutive row numbers, or none, by a range."""
    if not len(index):
        return range(0)
    first, last = int(index[0]), int(index[-1])
    is_range = last - first == len(index) - 1 and np.all(np.diff(index) == 1)
    return range(first, last + 1) if is_range else index


def join_ranges(parts: Sequence[IntArray | range]) -> IntArray | range:
    """Concatenate row numbers, to a range if they are consecutive."""
    first, *others = parts or [range(0)]
    for part in others:
        if not (isinstance(first, range) and isinstance(part, range) and part.start == first.stop):
            return concatenate([np.asarray(part) for part in parts])
        first = range(first.start, part.stop)
    return first


class Norms(PerRow):
    """Euclidean norm of each row."""

    def compute(self, block: Block) -> Array:
        return block.norms

    def find_small(self, d: int, limit: float | None) -> tuple[IntArray, FloatArray]:
        """Find the rows, of width d, with a norm below a limit, ascending, and their norms.

        Without a limit, the largest gap between norms decides.
        """
        values = self.values()
        small = values < find_norm_limit(values, d, limit)
        return self.index()[small], values[small]


class OutputNorms(PerRow):
    """Euclidean norm of each output row (left-out ones too); not finite if an entry is not."""

    of_left_out = True

    def compute(self, block: Block) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return block.wide.xp.sqrt(block.wide.xp.vecdot(block.paired, block.paired))


@dataclass(eq=False)
class RowHashes(PerRow):
    """A 64-bit hash of each row's stored bits; equal rows have equal hashes.

    Multiply-and-add modulo 2⁶⁴ of the bits in words of 32, with random odd multipliers;
    accidental collisions happen for about one pair in 2³² or fewer; for certainty, compare the
    rows themselves.
    """

    d: int
    multipliers: npt.NDArray[np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        words = np.random.default_rng(0x5EED).integers(0, 2**63, size=2 * self.d, dtype=np.uint64)
        self.multipliers = words * np.uint64(2) + np.uint64(1)
        self.clear()

    def compute(self, block: Block) -> npt.NDArray[np.uint64]:
        # Adding zero turns −0.0 into 0.0: rows that compare equal must hash equal.
        stored, backend = block.backend.to_wide(block.stored) + 0.0, block.wide
        # Products of int64 are the same modulo 2⁶⁴, and every backend has them.
        multipliers = backend.constant(self.multipliers.view(np.int64))
        parts = []
        for part in backend.slices(len(block.index), stored.shape[1]):
            words = backend.words(stored[part])
            words *= multipliers[: words.shape[1]]
            parts.append(backend.xp.sum(words, axis=1))
        return np.asarray(backend.to_host(backend.xp.concat(parts)).view(np.uint64))


@dataclass(eq=False)
class Projection2(PerRow):
    """Coordinates of rows on two axes, after subtracting `shift`; shape (M, 2).

    Only for the rows that `embgeo.core.rows` chooses by a bound; None means all.
    """

    name: str
    axes: FloatArray
    shift: FloatArray
    bound: int | None = None

    def update(self, block: Block) -> None:
        if self.bound is not None:
            block = block.take(is_listed(block.index, self.bound))
        super().update(block)

    def compute(self, block: Block) -> Array:
        axes = block.wide.constant(self.axes)
        # One axis at a time: BLAS is slow at products with so few columns.
        along = [block.rows @ axes[:, k] for k in range(axes.shape[1])]
        return block.wide.xp.stack(along, axis=1) - block.wide.put(self.shift @ self.axes)


@dataclass(eq=False)
class UnitProjections(PerRow):
    """Coordinates of unit rows on some axes, in float32; shape (M, axes)."""

    name: str
    #: Shape (d, axes).
    axes: FloatArray

    def compute(self, block: Block) -> Array:
        wide = block.wide
        return wide.to_host(block.along(wide.constant(self.axes))).astype(np.float32)

    def update(self, block: Block) -> None:
        if len(block.index):
            self.add(block.index, self.compute(block))


@dataclass(eq=False)
class DistanceTo(PerRow):
    """Euclidean distance of each row to a point.

    Computed from norms and products, or from the differences of the entries if these cancel.
    """

    name: str
    #: Shape (d,).
    point: FloatArray

    def compute(self, block: Block) -> Array:
        wide, xp = block.wide, block.wide.xp
        point = wide.constant(self.point)
        if not block.is_divisible:
            with np.errstate(over="ignore"):  # squares of huge numbers
                return xp.linalg.vector_norm(block.rows - point, axis=1)
        whole = xp.square(block.norms) + xp.vecdot(point, point)
        squares = whole - 2.0 * (block.rows @ point)
        (near,) = xp.nonzero(~(squares > CANCELLED * whole))
        distances = xp.sqrt(xp.clip(squares, 0.0, None))
        if len(near):
            distances[near] = xp.linalg.vector_norm(block.rows[near] - point, axis=1)
        return distances


@dataclass(eq=False)
class AngleTo(PerRow):
    """Angle in radians between each row and a unit direction.

    Computed from the cosine, except near 0 and π, where arccos loses digits.
    """

    name: str
    direction: FloatArray

    def compute(self, block: Block) -> Array:
        wide = block.wide
        direction = wide.constant(self.direction)
        # A norm that cannot be divided by gives NaN, which the second formula handles.
        with np.errstate(all="ignore"):
            cosines = block.rows @ direction / block.norms
        angles = wide.xp.acos(wide.xp.clip(cosines, -1.0, 1.0))
        (near,) = wide.xp.nonzero(~(wide.xp.abs(cosines) < NEAR_ONE))
        if len(near):
            part = block.take(wide.to_host(near))
            angles[near] = angle_between(wide.xp, part.unit, direction)
        return angles


def angle_between(xp: Any, u: Array, v: Array) -> Array:
    """Return the angles in radians between unit rows of `u` and of `v` (or one unit vector `v`).

    2·atan2(‖u−v‖, ‖u+v‖) (Kahan), accurate at 0 and at π.
    """
    apart = xp.linalg.vector_norm(u - v, axis=-1)
    together = xp.linalg.vector_norm(u + v, axis=-1)
    return 2.0 * xp.atan2(apart, together)


@dataclass(eq=False)
class AngleAfterRemoval(PerRow):
    """Angle in radians to a unit direction, after one direction is removed from every row.

    A row along the removed direction has no angle afterwards and counts as orthogonal.
    """

    name: str
    direction: FloatArray
    removed: FloatArray

    def compute(self, block: Block) -> Array:
        wide, xp = block.wide, block.wide.xp
        removed = wide.constant(self.removed)
        rest = block.unit - (block.unit @ removed)[:, None] * removed
        lengths = xp.linalg.vector_norm(rest, axis=1)
        rest /= xp.clip(lengths, 1e-300, None)[:, None]
        angles = angle_between(xp, rest, wide.constant(self.direction))
        return xp.where(lengths > 1e-12, angles, np.pi / 2)


#: Rows whose entries differ by less than this share of the largest one may be constant.
FLAT = 1e-3


class Census(Statistic):
    """Rows that are exactly zero, rows with a non-finite entry, and rows that are far too short.

    The last kind is known once all norms are, and is added by `leave_out`.

    `highest`, `lowest`: largest and smallest entry in the rows that take part; infinite if there
    is none.
    """

    STATE = ("highest", "lowest", "_zero", "_nonfinite", "_flat", "_small", "_small_norms")

    def clear(self) -> None:
        self.highest, self.lowest = -np.inf, np.inf
        self._zero: list[IntArray] = []
        self._nonfinite: list[IntArray] = []
        self._flat: list[IntArray] = []
        self._small: list[IntArray] = []
        self._small_norms: list[FloatArray] = []

    @property
    def largest(self) -> float:
        """Largest magnitude of an entry in these rows; 0 if there is none."""
        return max(self.highest, -self.lowest, 0.0)

    def sift(
        self, index: IntArray, high: WorkingArray, low: WorkingArray, takes_part: Mask
    ) -> Mask:
        """Note the unusable rows, and take them out of `takes_part`.

        `index`: shape (b,). `high`, `low`: shape (b,); largest and smallest entry of each row; NaN
        for a row with one. `takes_part`: shape (N,); rows of the matrix to look at. Returns the
        usable rows among those that took part.
        """
        finite = np.isfinite(high) & np.isfinite(low)
        used = takes_part[index]
        good: Mask = used & finite & ((high != 0) | (low != 0))
        if not good.all():
            self._nonfinite.append(index[used & ~finite])
            self._zero.append(index[used & finite & ~good])
        largest = np.maximum(high, -low)
        with np.errstate(invalid="ignore", over="ignore"):
            flat = good & (high - low <= FLAT * largest)
        if flat.any():
            self._flat.append(index[flat])
        self.highest = max(self.highest, float(high[good].max(initial=-np.inf)))
        self.lowest = min(self.lowest, float(low[good].min(initial=np.inf)))
        takes_part[index] = good
        return good

    def leave_out(self, rows: IntArray, norms: FloatArray) -> None:
        """Note rows that are far shorter than all others, with their norms."""
        self._small.append(rows)
        self._small_norms.append(norms)

    def merge(self, other: Self) -> None:
        extremes = max(self.highest, other.highest), min(self.lowest, other.lowest)
        super().merge(other)
        self.highest, self.lowest = extremes

    def renumber(self, by: int) -> Census:
        """Return the same rows with larger row numbers."""
        other = copy(self)
        for name in ("_zero", "_nonfinite", "_flat"):
            setattr(other, name, [rows + by for rows in getattr(self, name)])
        return other

    @property
    def zero(self) -> IntArray:
        """Row numbers, ascending."""
        return np.sort(concatenate(self._zero)).astype(np.int64)

    @property
    def nonfinite(self) -> IntArray:
        """Row numbers, ascending."""
        return np.sort(concatenate(self._nonfinite)).astype(np.int64)

    @property
    def flat(self) -> IntArray:
        """Numbers of the rows whose entries are nearly equal, ascending: candidates for a check."""
        return np.sort(concatenate(self._flat)).astype(np.int64)

    @property
    def small(self) -> IntArray:
        """Numbers of the rows noted by `leave_out`, ascending."""
        return np.sort(concatenate(self._small)).astype(np.int64)

    @property
    def small_norms(self) -> FloatArray:
        """Their norms, in the order of `small`."""
        return np.asarray(concatenate(self._small_norms)[np.argsort(concatenate(self._small))])
