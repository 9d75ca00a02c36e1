"""log Z and its gradient at a few directions, on the device."""

from __future__ import annotations

import numpy as np

from embgeo.stats import PartitionGradient
from embgeo.stats.backend.block import DeviceBlock
from embgeo.stats.backend.device import Device
from embgeo.stats.backend.kernel import Kernel, Working, with_state


class PartitionGradientKernel(Kernel[PartitionGradient]):
    """Products in the precision of the stored rows where exponents are small, else in float64."""

    @classmethod
    def serves(cls, statistic: PartitionGradient, device: Device, working: Working) -> bool:
        return device.wide or (statistic.single is not None and working is np.float32)

    def update(self, block: DeviceBlock) -> None:
        xp = self.device.xp
        rows = block.rows if self.statistic.single is None else block.stored
        exponents = rows @ self.device.put(self.statistic.directions, rows.dtype)
        top = xp.max(exponents, axis=0)
        terms = xp.exp(exponents - top)
        self.found.merge(
            with_state(
                self.statistic,
                _top=self.device.host(top).astype(np.float64),
                _sum=self.device.sum_rows(terms),
                _weighted=self.device.host(rows.T @ terms).astype(np.float64),
            )
        )
