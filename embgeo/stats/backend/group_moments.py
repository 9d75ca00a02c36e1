"""Mean and spread of rows by group, on the device."""

from __future__ import annotations

import numpy as np

from embgeo.stats import GroupMoments
from embgeo.stats.backend.block import DeviceBlock
from embgeo.stats.backend.kernel import Kernel, with_state


class GroupMomentsKernel(Kernel[GroupMoments]):
    """Each block centered at its own means; blocks are joined on the host."""

    def update(self, block: DeviceBlock) -> None:
        xp = self.device.xp
        labels = self.statistic.labels[block.index]
        inside = labels >= 0
        if not inside.any():
            return
        part = block if inside.all() else block.take(inside)
        labels = labels[inside]
        x = part.rows if self.statistic.of == "rows" else part.unit
        n = np.bincount(labels, minlength=self.statistic.shape[0]).astype(np.float64)
        member = self.device.put(labels[None] == np.arange(len(n))[:, None], xp.float64)
        mean = member @ x / self.device.put(np.maximum(n, 1.0))[:, None]
        apart = xp.linalg.vector_norm(x - mean[self.device.put(labels)], axis=1)
        spread = member @ (apart * apart)
        self.found.merge(
            with_state(
                self.statistic,
                n=n,
                mean=self.device.host(mean),
                spread=self.device.host(spread),
            )
        )
