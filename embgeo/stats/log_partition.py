"""ℓ(a) = log Σ_i exp⟨w_i, a⟩ for many directions a at once: Arora's partition function."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from embgeo.core.arrays import Array, FloatArray, IntArray, Mask, SingleArray
from embgeo.numerics.eigen import BlockRotation
from embgeo.numerics.halves import HALVES
from embgeo.stats.backend.backend import Backend
from embgeo.stats.block import SQUARABLE, Block
from embgeo.stats.statistic import Statistic

#: Exponents up to this are good to 5e-7 in float32: half its spacing there.
SINGLE_BOUND = 16.0
#: Exponents of rows up to this norm err by at most four times that, which a sum averages where no
#: row makes more than a sixteenth of it: the errors of rows add as the root of their squares.
AVERAGED_BOUND = 64.0
MOST_SHARE = 1.0 / 16.0
#: Up to this exponent sums of exponentials and of their reciprocals hold in float64 as they are.
PLAIN_BOUND = 300.0


@dataclass(eq=False)
class LogPartition(Statistic):
    """log Z at each column a of `directions`, and at −a, in the log domain."""

    STATE = ("_top", "_sum")

    name: str
    #: Unit columns; shape (d, k).
    directions: FloatArray
    #: Z is taken of ``scale·W`` for each scale, from one product.
    scales: tuple[float, ...] = (1.0,)
    #: Upper bound of |scale·⟨w, a⟩|. Up to `SINGLE_BOUND`, rows stored in float32 or less
    #: are multiplied in float32; up to `PLAIN_BOUND`, exponentials need no common factor; beyond,
    #: everything is in float64 and relative to the largest exponent.
    bound: float = np.inf
    #: What rows in float32 are multiplied with, where several statistics share the product;
    #: `directions` by default; shape (d, k).
    single: SingleArray | None = None
    #: Turns the product with `single` into that with `directions`.
    rotation: BlockRotation | None = None
    #: Whether to take Z of ``(w_i / ‖w_i‖)`` too, from the same product.
    unit_rows: bool = False
    #: Beyond `SINGLE_BOUND`, rows of at most this norm are multiplied in float32 all the same, but
    #: for those that may make more than `MOST_SHARE` of a sum: few rows are long or far out.
    longest_single: float = 0.0
    rows: int = 0
    #: ⟨w, a⟩ of the mean row, by default 0. Z is at least N·exp of that (Jensen), and the share of
    #: a row at most exp(⟨w, a⟩ − mean)/N; shape (k,).
    mean: FloatArray | None = None
    #: Group of each row of the matrix, from 0; Z is the sum over all groups; shape (N,).
    labels: IntArray | None = None
    groups: int = 1

    def __post_init__(self) -> None:
        if self.single is None:
            self.single = self.directions.astype(np.float32)
        self.clear()

    def clear(self) -> None:
        # Sums of exponentials relative to the largest exponent, so that none overflows.
        shape = (self.groups, len(self.scales) + self.unit_rows, 2, self.directions.shape[1])
        self._top = np.full(shape, 0.0 if self.bounded else -np.inf)
        self._sum = np.zeros(shape)

    @property
    def bounded(self) -> bool:
        """Whether exponentials need no common factor."""
        return self.bound <= PLAIN_BOUND

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        if self.bounded:
            for part, single in self._split(block):
                self._add_bounded(part, single)
        else:
            self._join(*self._add_unbounded(block))

    def merge(self, other: Self) -> None:
        self._join(other._top, other._sum)

    def _join(self, top: FloatArray, total: FloatArray) -> None:
        both = np.maximum(self._top, top)
        known = np.where(np.isneginf(both), 0.0, both)  # no rows of a group yet
        with np.errstate(under="ignore"):
            self._sum = self._sum * np.exp(self._top - known) + total * np.exp(top - known)
        self._top = both

    def _split(self, block: Block) -> list[tuple[Block, bool]]:
        """Return the rows whose products float32 holds, and the others."""
        if self.bound <= SINGLE_BOUND:
            return [(block, True)]
        return [
            (part, single)
            for part, single in zip(block.split(self.longest_single), (True, False), strict=True)
            if part is not None
        ]

    def _multiply(self, block: Block, single: bool) -> tuple[Backend, Array]:
        """Get ⟨w_i, a⟩, shape (b, k), in the precision that the bound allows, and its backend."""
        if not single:
            return block.wide, block.rows @ block.wide.constant(self.directions)
        return block.backend, block.product(self.directions, self.single, self.rotation)

    def _order(self, block: Block) -> tuple[IntArray | None, IntArray]:
        """Return the order of the rows by group, None as they are, and where each group ends."""
        if self.labels is None:
            return None, np.array([0, len(block.index)])
        labels = self.labels[block.index]
        order = np.argsort(labels, kind="stable")
        return order, np.searchsorted(labels[order], np.arange(self.groups + 1))

    def _add_bounded(self, block: Block, single: bool) -> None:
        """Add Σ exp of the products, if no exponent overflows."""
        backend, products = self._multiply(block, single)
        xp = backend.xp
        averaged = single and min(self.bound, self.longest_single) > SINGLE_BOUND
        if averaged and products.dtype != xp.float64:
            far = self._find_far(backend, products)
            if far is not None:
                self._add_bounded(block.take(far), False)
                block, products = block.take(~far), products[backend.put(~far)]
        inverse = self._inverse_norms(block, backend, products.dtype)
        order, ends = self._order(block)
        if order is not None:
            moved = backend.put(order)
            products, inverse = products[moved], [column[moved] for column in inverse]
        at, sums = list[tuple[int, int, int]](), list[Array]()
        for group in range(self.groups):
            first, last = int(ends[group]), int(ends[group + 1])
            for rows in backend.slices(last - first, products.shape[1]):
                chosen = slice(first + rows.start, min(first + rows.stop, last))
                part = products[chosen]
                factors = (*self.scales, *(column[chosen] for column in inverse))
                for s, factor in enumerate(factors):
                    terms = xp.exp(
                        part if s < len(self.scales) and factor == 1.0 else part * factor
                    )
                    sums += [backend.sum64(terms), backend.sum64(xp.reciprocal(terms, out=terms))]
                    at += [(group, s, 0), (group, s, 1)]
        # A device is waited for once.
        for place, found in zip(at, backend.wide.to_host(backend.wide.xp.stack(sums)), strict=True):
            self._sum[place] += found

    def _add_unbounded(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """Return the largest of the products, and Σ exp relative to it."""
        wide = block.wide
        products = block.rows @ wide.constant(self.directions)
        xp, tops, total = wide.xp, np.full_like(self._top, -np.inf), np.zeros_like(self._sum)
        scaled = [(products, scale) for scale in self.scales]
        if self.unit_rows:
            if xp.min(block.norms) < SQUARABLE[0]:  # which cannot be divided by
                block = Block(block.index, block.unit, backend=wide)
                products = block.rows @ wide.constant(self.directions)
            scaled.append((products, self._inverse_norms(block, wide)[0]))
        order, ends = self._order(block)
        for s, (of, factor) in enumerate(scaled):
            exponents = of * factor
            if order is not None:
                exponents = exponents[wide.put(order)]
            for group in np.flatnonzero(np.diff(ends)):
                part = exponents[int(ends[group]) : int(ends[group + 1])]
                high, low = xp.max(part, axis=0), xp.min(part, axis=0)
                for at, sign in enumerate((1.0, -1.0)):
                    top = high if sign > 0 else -low
                    tops[group, s, at] = wide.to_host(top)
                    terms = part * sign
                    terms -= top
                    total[group, s, at] = wide.to_host(wide.sum64(xp.exp(terms, out=terms)))
        return tops, total

    def _find_far(self, backend: Backend, products: Array) -> Mask | None:
        """Find rows that may make more than `MOST_SHARE` of a sum; None if there are none."""
        xp, zero = backend.xp, np.zeros(self.directions.shape[1])
        center = zero if self.mean is None else self.mean
        limit = np.log(max(self.rows * MOST_SHARE, 1.0)) / max(self.scales)
        high, low = (backend.put(center + side * limit, products.dtype) for side in (1.0, -1.0))
        if xp.all(xp.max(products, axis=0) <= high) and xp.all(xp.min(products, axis=0) >= low):
            return None
        inside = xp.all((products <= high) & (products >= low), axis=1)
        return ~np.asarray(backend.to_host(inside), dtype=bool)

    def _inverse_norms(self, block: Block, backend: Backend, dtype: Any = None) -> list[Array]:
        """Get 1/‖w_i‖ for products of unit rows, shape (b, 1); empty if they are not requested."""
        if not self.unit_rows:
            return []
        inverse = 1.0 / block.wide.to_host(block.norms)
        return [backend.put(inverse, dtype or backend.xp.float64)[:, None]]

    def forget_directions(self) -> None:
        """Release the directions and keep the sums; no rows can be added afterwards."""
        self.directions, self.rotation = np.empty((0, 0)), None
        self.single = np.empty((0, 0), dtype=np.float32)

    def log_z(self, scale: float = 1.0) -> FloatArray:
        """log Z: row 0 at the directions, row 1 at their negatives; k columns."""
        return add_logs(self._log(self.scales.index(scale)))

    def log_z_of_unit_rows(self) -> FloatArray:
        """log Z of the rows divided by their norms."""
        return add_logs(self._log(-1))

    def log_z_of_unit_rows_by_half(self) -> FloatArray:
        """The same of each half of the groups, shape (30, 2, k)."""
        by_group = self._log(-1)
        return np.array([add_logs(by_group[half]) for half in HALVES])

    def _log(self, place: int) -> FloatArray:
        with np.errstate(divide="ignore"):  # of no rows, Z is 0
            return np.asarray(self._top[:, place] + np.log(self._sum[:, place]))


def add_logs(logs: FloatArray) -> FloatArray:
    """Return the log of the sum over the first axis of what these are the logs of."""
    top = logs.max(axis=0)
    finite = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        return np.asarray(finite + np.log(np.exp(logs - finite).sum(axis=0)))
