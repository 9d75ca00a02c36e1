"""log Z at many directions, on the device."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.stats import LogPartition
from embgeo.stats.backend.block import DeviceBlock
from embgeo.stats.backend.device import Array, Device
from embgeo.stats.backend.kernel import Kernel, Working, with_state


class LogPartitionKernel(Kernel[LogPartition]):
    """Products in the precision of the stored rows where exponents are small, else in float64."""

    def __init__(self, statistic: LogPartition, device: Device) -> None:
        super().__init__(statistic, device)
        self._directions: dict[Array, Array] = {}

    @classmethod
    def serves(cls, statistic: LogPartition, device: Device, working: Working) -> bool:
        return device.wide or (statistic.bounded and working is np.float32)

    def update(self, block: DeviceBlock) -> None:
        shape = (len(self.statistic.scales), len(self.statistic.signs), -1)
        if self.statistic.bounded:
            sums = self._bounded(self._products(block.stored))
            tops = [np.zeros_like(one) for one in sums]
        else:
            tops, sums = self._unbounded(self._products(block.rows))
        self.found.merge(
            with_state(
                self.statistic,
                _top=np.stack(tops).reshape(shape),
                _sum=np.stack(sums).reshape(shape),
            )
        )

    def _products(self, rows: Array) -> Array:
        dtype = rows.dtype
        if dtype not in self._directions:
            self._directions[dtype] = self.device.put(self.statistic.directions, dtype)
        products = rows @ self._directions[dtype]
        if self.statistic.offset is not None:
            products -= self.device.put(self.statistic.offset, dtype)
        return products

    def _bounded(self, products: Array) -> list[FloatArray]:
        xp = self.device.xp
        sums = []
        for scale in self.statistic.scales:
            terms = xp.exp(products if scale == 1.0 else products * scale)
            sums.append(self.device.sum_rows(terms))
            if len(self.statistic.signs) == 2:
                sums.append(self.device.sum_rows(1.0 / terms))
        return sums

    def _unbounded(self, products: Array) -> tuple[list[FloatArray], list[FloatArray]]:
        xp = self.device.xp
        high, low = xp.max(products, axis=0), xp.min(products, axis=0)
        tops, sums = [], []
        for scale in self.statistic.scales:
            for sign in self.statistic.signs:
                top = scale * high if sign > 0 else -scale * low
                tops.append(self.device.host(top))
                sums.append(self.device.sum_rows(xp.exp(products * (sign * scale) - top)))
        return tops, sums
