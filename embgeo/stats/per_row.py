"""One or a few numbers for each row, gathered in row order."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic, concatenated

#: Up to this cosine the angle follows from it to 1e-12.
NEAR_ONE = 0.999


class PerRow(Statistic):
    """Base of the statistics that keep O(1) numbers a row; subclasses say which."""

    STATE = ("_index", "_values")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._index: list[IntArray] = []
        self._values: list[npt.NDArray[Any]] = []

    def compute(self, block: Block) -> npt.NDArray[Any]:
        """One entry (or one row of entries) for each row of the block."""
        raise NotImplementedError

    def update(self, block: Block) -> None:
        if len(block.index):
            self.add(block.index, self.compute(block))

    def add(self, index: IntArray, values: npt.NDArray[Any]) -> None:
        """Keep what was computed of these rows."""
        self._index.append(index)
        self._values.append(values)

    def merge(self, other: Self) -> None:
        self._index += other._index
        self._values += other._values

    def index(self) -> IntArray:
        """Row numbers seen, ascending."""
        return np.sort(concatenated(self._index).astype(np.int64))

    def values(self) -> npt.NDArray[Any]:
        """The numbers, in ascending order of row number."""
        index = concatenated(self._index)
        values: npt.NDArray[Any] = concatenated(self._values)
        if np.all(index[:-1] < index[1:]):  # as passes leave them
            return values
        return np.asarray(values[np.argsort(index, kind="stable")])


class Norms(PerRow):
    """Euclidean norm of each row."""

    def compute(self, block: Block) -> FloatArray:
        return block.norms


class RowHashes(PerRow):
    """A 64-bit hash of each row's stored bits; equal rows have equal hashes.

    Multiply-and-add modulo 2⁶⁴ of the bits in words of 32, with random odd multipliers;
    accidental collisions are about one in 2³² a pair or rarer, and whoever needs certainty
    compares the rows themselves.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        words = np.random.default_rng(0x5EED).integers(0, 2**63, size=2 * d, dtype=np.uint64)
        self.multipliers = words * np.uint64(2) + np.uint64(1)

    def compute(self, block: Block) -> npt.NDArray[np.uint64]:
        # Adding zero turns −0.0 into 0.0: rows that compare equal must hash equal.
        bits = np.ascontiguousarray(block.stored + block.stored.dtype.type(0)).view(np.uint32)
        multipliers = self.multipliers[: bits.shape[1]]
        hashed = np.empty(len(bits), dtype=np.uint64)
        step = max(1, 2**18 // bits.shape[1])
        for start in range(0, len(bits), step):
            hashed[start : start + step] = (
                bits[start : start + step].astype(np.uint64) @ multipliers
            )
        return hashed


class Projection2(PerRow):
    """Coordinates of each row on two axes, after subtracting `shift`; shape (M, 2)."""

    def __init__(self, name: str, axes: FloatArray, shift: FloatArray) -> None:
        super().__init__()
        self.name = name
        self.axes = axes
        self.shift = shift

    @property
    def key(self) -> Hashable:
        return ("projection", self.name)

    def compute(self, block: Block) -> FloatArray:
        # One axis at a time: BLAS is slow at products with so few columns.
        along = np.stack([block.rows @ axis for axis in self.axes.T], axis=1)
        return np.asarray(along - self.shift @ self.axes)


class AngleTo(PerRow):
    """Angle in radians between each row and a unit direction.

    From the cosine, except near 0 and π where arccos loses digits.
    """

    def __init__(self, name: str, direction: FloatArray) -> None:
        super().__init__()
        self.name = name
        self.direction = direction

    @property
    def key(self) -> Hashable:
        return ("angle to", self.name)

    def compute(self, block: Block) -> FloatArray:
        # A norm that cannot be divided by has a NaN for a cosine, and is taken the other way.
        with np.errstate(all="ignore"):
            cosines = block.rows @ self.direction / block.norms
        angles = np.arccos(np.clip(cosines, -1.0, 1.0))
        near = np.flatnonzero(~(np.abs(cosines) < NEAR_ONE))
        if len(near):
            part = Block(block.index[near], block.stored[near])
            angles[near] = angle_between(part.unit, self.direction)
        return angles


def angle_between(u: FloatArray, v: FloatArray) -> FloatArray:
    """Angles in radians between unit rows of `u` and of `v` (or one unit vector `v`).

    2·atan2(‖u−v‖, ‖u+v‖) (Kahan), accurate at 0 and at π.
    """
    apart = np.linalg.norm(u - v, axis=-1)
    together = np.linalg.norm(u + v, axis=-1)
    return np.asarray(2.0 * np.arctan2(apart, together))


class AngleAfterRemoval(PerRow):
    """Angle in radians to a unit direction, after one direction is removed from every row.

    A row that lies along the removed direction has no angle left and counts as orthogonal.
    """

    def __init__(self, name: str, direction: FloatArray, removed: FloatArray) -> None:
        super().__init__()
        self.name = name
        self.direction = direction
        self.removed = removed

    @property
    def key(self) -> Hashable:
        return ("angle after removal", self.name)

    def compute(self, block: Block) -> FloatArray:
        rest = block.unit - np.outer(block.unit @ self.removed, self.removed)
        lengths = np.linalg.norm(rest, axis=1, keepdims=True)
        angles = angle_between(rest / np.maximum(lengths, 1e-300), self.direction)
        return np.where(lengths[:, 0] > 1e-12, angles, np.pi / 2)
