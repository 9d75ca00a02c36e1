"""How many rows are nearer to a query than a given row, on the device."""

from __future__ import annotations

from embgeo.stats import CloserRows
from embgeo.stats.backend.block import DeviceBlock
from embgeo.stats.backend.kernel import Kernel, with_state
from embgeo.stats.backend.top_neighbors import gridded


class CloserRowsKernel(Kernel[CloserRows]):
    """Counted from products in float64."""

    def update(self, block: DeviceBlock) -> None:
        s, xp, put = self.statistic, self.device.xp, self.device.put
        if not len(s.index):
            return
        cosines = gridded(xp, put(s.queries) @ block.unit.T)
        closer = cosines > gridded(xp, put(s.cosines))[:, None]
        rows = put(block.index)[None, :]
        closer &= put(s.index)[:, None] != rows
        closer &= put(s.others)[:, None] != rows
        counted = self.device.host(xp.sum(closer, axis=1, dtype=xp.int64))
        self.found.merge(with_state(s, closer=counted))
