"""The nearest rows by cosine on the device, and the rank of given rows."""

from __future__ import annotations

import numpy as np

from embgeo.stats import TopNeighbors
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
from embgeo.stats.top_neighbors import GRID


class TopNeighborsKernel(Kernel[TopNeighbors]):
    """Candidates by one product in the stored precision, then their cosines in float64.

    Without float64 on the device the host computes those of the candidates.
    """

    def __init__(self, statistic: TopNeighbors, device: Device) -> None:
        super().__init__(statistic, device)
        xp = device.xp
        self.queries = {xp.float32: on_device(device, statistic.queries, xp.float32)}
        self.neighbors: Array = None
        self.cosines: Array = None
        if device.wide:
            self.queries[xp.float64] = on_device(device, statistic.queries, xp.float64)
            self.neighbors = device.put(self.found.neighbors)
            self.cosines = device.put(self.found.cosines)

    @classmethod
    def serves(cls, statistic: TopNeighbors, device: Device, working: Working) -> bool:
        return device.wide or working is np.float32

    def update(self, block: DeviceBlock) -> None:
        s, xp = self.statistic, self.device.xp
        if not len(s.index):
            return
        stored = block.stored_unit
        scores = self.queries[stored.dtype] @ stored.T
        leave_out_self(self.device, scores, s.index, block.index, -np.inf)
        slack = rounding(stored.shape[1], block.dtype)
        if not self.device.wide:
            self._leave_to_host(block, scores, slack)
            return
        least = self.cosines[:, -1]
        if bool(xp.any(xp.isinf(least))):
            least = xp.maximum(least, kth_best(self.device, scores, s.k))
        found = candidates(self.device, scores, xp.astype(least - slack, scores.dtype), s.k)
        del scores
        self._join(*(self._dense(block) if found is None else self._exact(block, *found)))

    def _leave_to_host(self, block: DeviceBlock, scores: Array, slack: float) -> None:
        s = self.statistic
        least = self.found.cosines[:, -1]
        if np.isneginf(least).any():
            seen = self.device.host(self.device.largest(scores, min(s.k, scores.shape[1])))
            best = seen[:, -1] if seen.shape[1] == s.k else -np.inf
            least = np.maximum(least, best)
        floor = self.device.put((least - slack).astype(np.float32))
        found = candidates(self.device, scores, floor, s.k)
        if found is None:
            self.found.update(block.host)
        else:
            self.found.take_in(block.host, *map(self.device.host, found))

    def _exact(self, block: DeviceBlock, query: Array, column: Array) -> tuple[Array, ...]:
        xp, queries = self.device.xp, self.queries[self.device.xp.float64]

        def cosines(part: slice) -> Array:
            return xp.sum(queries[query[part]] * block.unit[column[part]], axis=1)

        found = in_pieces(self.device, query.shape[0], block.unit.shape[1], cosines)
        return query, self.device.put(block.index)[column], gridded(xp, found)

    def _dense(self, block: DeviceBlock) -> tuple[Array, ...]:
        """Where very many rows are equally near: the k best of the block in float64."""
        xp, s = self.device.xp, self.statistic
        cosines = gridded(xp, self.queries[xp.float64] @ block.unit.T)
        leave_out_self(self.device, cosines, s.index, block.index, -np.inf)
        keep = min(s.k, cosines.shape[1])
        best = xp.argsort(-cosines, axis=1, stable=True)[:, :keep]
        near = xp.take_along_axis(cosines, best, axis=1)
        query, place = xp.nonzero(near > -np.inf)
        return query, self.device.put(block.index)[best[query, place]], near[query, place]

    def _join(self, query: Array, rows: Array, cosines: Array) -> None:
        xp, s = self.device.xp, self.statistic
        mine = xp.repeat(xp.arange(len(s.index), device=self.device.at), s.k)
        self.neighbors, self.cosines = best_of_each(
            self.device,
            xp.concat([mine, query]),
            xp.concat([xp.reshape(self.neighbors, (-1,)), rows]),
            xp.concat([xp.reshape(self.cosines, (-1,)), cosines]),
            len(s.index),
            s.k,
        )

    def finish(self) -> TopNeighbors:
        if not self.device.wide:
            return self.found
        return with_state(
            self.statistic,
            neighbors=self.device.host(self.neighbors),
            cosines=self.device.host(self.cosines),
        )


def gridded(xp: Array, cosines: Array) -> Array:
    """On the grid of `embgeo.stats.top_neighbors`, where exact duplicates agree."""
    return xp.round(cosines * GRID) / GRID
