"""The triangular factor of a tall matrix, on the device."""

from __future__ import annotations

from embgeo.stats import StackedQR
from embgeo.stats.backend.block import DeviceBlock
from embgeo.stats.backend.device import Array, Device
from embgeo.stats.backend.kernel import Kernel, with_state


class StackedQRKernel(Kernel[StackedQR]):
    """R of the factor so far stacked on each block."""

    def __init__(self, statistic: StackedQR, device: Device) -> None:
        super().__init__(statistic, device)
        self.n = 0
        self.r: Array = None

    def update(self, block: DeviceBlock) -> None:
        xp = self.device.xp
        rows = block.rows
        if self.statistic.of == "paired":
            usable = xp.all(xp.isfinite(block.paired), axis=1) & xp.any(block.paired != 0, axis=1)
            rows = xp.concat([block.rows, block.paired], axis=1)[usable]
        if self.statistic.shift is not None:
            rows = rows - self.device.put(self.statistic.shift)
        if not rows.shape[0]:
            return
        stacked = rows if self.r is None else xp.concat([self.r, rows])
        self.r = self.device.torch.linalg.qr(stacked, mode="r").R
        self.n += rows.shape[0]

    def finish(self) -> StackedQR:
        if self.r is None:
            return self.statistic.blank()
        return with_state(self.statistic, n=self.n, r=self.device.host(self.r))
