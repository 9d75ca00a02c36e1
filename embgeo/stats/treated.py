"""Rows after the treatments of the literature: their directions, norms and coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from embgeo.core.arrays import Array, FloatArray, SingleArray
from embgeo.stats.block import Block
from embgeo.stats.per_row import CANCELLED, PerRow


@dataclass(eq=False)
class TreatedRows(PerRow):
    """Σ y/‖y‖ over treated rows y = A(w − mean), for several linear maps A.

    A may leave the centered rows, divide coordinates by `scales`, remove the first of the `axes`,
    or whiten. As A is linear, sums are taken of (w − mean)/‖y‖, and A is left to the reader.

    `totals`: shape (maps, d). `least`, `most`: the extreme norms, shape (maps,). The values of a
    row, if rows are whitened: its coordinates on `axes`, and its norms as stored, centered,
    standardized and whitened; float32.
    """

    STATE = (*PerRow.STATE, "totals", "least", "most")

    name: str
    #: Subtracted from the rows, or from the rows divided by their norms; shape (d,).
    mean: FloatArray
    unit: bool
    #: The first are orthonormal; shape (d, axes).
    axes: FloatArray
    #: How many of them are removed.
    removed: tuple[int, ...]
    #: Standard deviations of the coordinates; shape (d,).
    scales: FloatArray
    #: All directions and the standard deviations along them, if rows are whitened, too; infinite
    #: where rows do not differ; shape (d, d) and (d,).
    directions: FloatArray | None = None
    deviations: FloatArray = field(default_factory=lambda: np.zeros(0))
    #: As in `Block.product`.
    single: SingleArray | None = None

    def clear(self) -> None:
        super().clear()
        maps = 2 + len(self.removed) + (self.directions is not None)
        self.totals: FloatArray = np.zeros((maps, len(self.mean)))
        self.least: FloatArray = np.full(maps, np.inf)
        self.most: FloatArray = np.zeros(maps)

    def update(self, block: Block) -> None:
        if not len(block.index):
            return
        wide, xp = block.wide, block.wide.xp
        whitened = self._whiten(block)
        axes, inverse = wide.constant(self.axes), wide.put(1.0 / self.scales)
        # A few rows at a time stay in the cache, because they are read several times.
        for part in wide.slices(*block.rows.shape):
            rows = block.rows[part]
            if self.unit:
                rows = rows / block.norms[part, None] if block.is_divisible else block.unit[part]
            rows = rows - wide.constant(self.mean)
            along = rows @ axes
            squares = [*self._square(xp, rows, along, inverse), *(w[part] for w in whitened)]
            lengths = xp.sqrt(xp.stack(squares))
            lost = lengths == 0.0
            weights = xp.where(lost, 0.0, 1.0 / xp.where(lost, 1.0, lengths))
            self.totals = self.totals + wide.to_host(weights @ rows)
            self.least = np.minimum(self.least, wide.to_host(xp.min(lengths, axis=1)))
            self.most = np.maximum(self.most, wide.to_host(xp.max(lengths, axis=1)))
            if whitened:
                norms = [block.norms[part], lengths[0], lengths[1], lengths[-1]]
                kept = xp.concat([along, xp.stack(norms, axis=1)], axis=1)
                self.add(block.index[part], wide.to_host(kept).astype(np.float32))

    def _square(self, xp: Any, rows: Array, along: Array, inverse: Array) -> list[Array]:
        """Return the squared norms, and those after each map but the last."""
        whole, scaled = xp.vecdot(rows, rows), rows * inverse
        rests = [whole - xp.vecdot(along[:, :k], along[:, :k]) for k in self.removed]
        # A device is waited for once, as hardly any row lies in the first directions alone.
        if rests and xp.any(xp.stack(rests) <= CANCELLED * whole):
            for k, rest in zip(self.removed, rests, strict=True):
                (near,) = xp.nonzero(rest <= CANCELLED * whole)
                top = xp.asarray(self.axes[:, :k].T, device=rows.device)
                left = rows[near] - along[near, :k] @ top
                rest[near] = xp.vecdot(left, left)
        return [whole, xp.vecdot(scaled, scaled), *rests]

    def _whiten(self, block: Block) -> list[Array]:
        """Return the squared norms of the whitened rows, if rows are whitened."""
        if self.directions is None:
            return []
        backend, products = block.backend, block.product(self.directions, self.single)
        shift = backend.put(self.mean @ self.directions, products.dtype)
        inverse = backend.put(1.0 / self.deviations, products.dtype)
        parts = []
        for part in backend.slices(*products.shape):
            whitened = (products[part] - shift) * inverse
            parts.append(backend.xp.vecdot(whitened, whitened))
        return [block.wide.put(backend.to_wide(backend.xp.concat(parts)), block.wide.xp.float64)]

    def forget_directions(self) -> None:
        """Release the directions and keep the sums; no rows can be added afterwards."""
        self.directions, self.single = None, None

    def merge(self, other: Self) -> None:
        least = np.minimum(self.least, other.least)
        most = np.maximum(self.most, other.most)
        super().merge(other)
        self.least, self.most = least, most
