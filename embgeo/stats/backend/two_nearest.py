"""Distances to the two nearest rows, on the device."""

from __future__ import annotations

import numpy as np

from embgeo.stats import TwoNearest
from embgeo.stats.backend.block import DeviceBlock
from embgeo.stats.backend.device import Array, Device
from embgeo.stats.backend.kernel import Kernel, Working, with_state
from embgeo.stats.backend.search import (
    best_of_each,
    candidates,
    in_pieces,
    kth_best,
    leave_out_self,
    on_device,
)
from embgeo.stats.candidates import rounding
from embgeo.stats.two_nearest import CANDIDATES, SINGLE_SQUARES


class TwoNearestKernel(Kernel[TwoNearest]):
    """Candidates by one product in the stored precision, then their distances in float64.

    Without float64 on the device the host computes those of the candidates.
    """

    def __init__(self, statistic: TwoNearest, device: Device) -> None:
        super().__init__(statistic, device)
        xp = device.xp
        self.queries = {xp.float32: on_device(device, statistic.queries, xp.float32)}
        self.distances: Array = None
        if device.wide:
            self.queries[xp.float64] = on_device(device, statistic.queries, xp.float64)
            self.own = xp.sum(self.queries[xp.float64] ** 2, axis=1)
            self.distances = device.put(self.found.distances)

    @classmethod
    def serves(cls, statistic: TwoNearest, device: Device, working: Working) -> bool:
        return device.wide or working is np.float32

    def update(self, block: DeviceBlock) -> None:
        s, xp = self.statistic, self.device.xp
        chosen = s.takes_part[block.index]
        if not chosen.any() or not len(s.index):
            return
        part = block if chosen.all() else block.take(chosen)
        if not self.device.wide:
            self._leave_to_host(part)
            return
        squares = part.norms * part.norms
        most = float(xp.maximum(xp.max(self.own), xp.max(squares)))
        scores = self._scores(part, part.stored if ordinary(most) else part.rows, squares)
        least = self.own - self.distances[:, 1] ** 2
        if bool(xp.any(xp.isinf(least))):
            least = xp.maximum(least, kth_best(self.device, scores, 2))
        dtype = np.float32 if scores.dtype == xp.float32 else np.float64
        slack = 2.0 * rounding(part.stored.shape[1], dtype)
        floor = least - slack * xp.maximum(self.own, xp.max(squares))
        found = candidates(self.device, scores, xp.astype(floor, scores.dtype), 2)
        del scores
        query, column = self._dense(part, squares) if found is None else found
        self._join(query, self._exact(part, query, column))

    def _scores(self, part: DeviceBlock, rows: Array, squares: Array) -> Array:
        """−‖x‖² + 2⟨q, x⟩, which orders the rows as their distances do."""
        scores = self.queries[rows.dtype] @ rows.T
        scores *= 2
        scores -= self.device.xp.astype(squares, scores.dtype)
        leave_out_self(self.device, scores, self.statistic.index, part.index, -np.inf)
        return scores

    def _leave_to_host(self, part: DeviceBlock) -> None:
        squares = np.square(part.host.norms)
        own = np.square(self.statistic.queries).sum(axis=1)
        if not ordinary(max(own.max(), squares.max())):
            self.found.update(part.host)
            return
        scores = self._scores(part, part.stored, self.device.put(squares, self.device.xp.float32))
        least = own - np.square(self.found.distances[:, 1])
        if np.isneginf(least).any():
            seen = self.device.host(self.device.largest(scores, min(2, scores.shape[1])))
            least = np.maximum(least, seen[:, 1] if seen.shape[1] == 2 else -np.inf)
        slack = 2.0 * rounding(part.stored.shape[1], part.dtype) * np.maximum(own, squares.max())
        floor = self.device.put((least - slack).astype(np.float32))
        found = candidates(self.device, scores, floor, 2)
        if found is None:
            self.found.update(part.host)
        else:
            self.found.take_in(part.host, *map(self.device.host, found))

    def _exact(self, part: DeviceBlock, query: Array, column: Array) -> Array:
        xp, queries = self.device.xp, self.queries[self.device.xp.float64]

        def distances(some: slice) -> Array:
            apart = part.rows[column[some]] - queries[query[some]]
            return xp.linalg.vector_norm(apart, axis=1)

        return in_pieces(self.device, query.shape[0], part.rows.shape[1], distances)

    def _dense(self, part: DeviceBlock, squares: Array) -> tuple[Array, Array]:
        """Where the product cannot tell the rows apart: the few best of it in float64."""
        xp, s = self.device.xp, self.statistic
        scores = 2.0 * (self.queries[xp.float64] @ part.rows.T) - squares
        leave_out_self(self.device, scores, s.index, part.index, -np.inf)
        keep = min(CANDIDATES, scores.shape[1])
        best = self.device.torch.topk(scores, keep, dim=1)
        query, place = xp.nonzero(best.values > -np.inf)
        return query, best.indices[query, place]

    def _join(self, query: Array, distances: Array) -> None:
        xp, queries = self.device.xp, len(self.statistic.index)
        mine = xp.repeat(xp.arange(queries, device=self.device.at), 2)
        every = xp.concat([xp.reshape(self.distances, (-1,)), distances])
        number = xp.concat([mine, query])
        _, best = best_of_each(self.device, number, xp.zeros_like(number), -every, queries, 2)
        self.distances = -best

    def finish(self) -> TwoNearest:
        if not self.device.wide:
            return self.found
        return with_state(self.statistic, distances=self.device.host(self.distances))


def ordinary(square: float) -> bool:
    """Whether float32 holds the largest square, and numbers far below it."""
    return SINGLE_SQUARES[0] < square < SINGLE_SQUARES[1]
