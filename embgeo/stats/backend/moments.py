"""Scatter matrices on the device: symmetric updates, in float64 or float32 as on the host."""

from __future__ import annotations

import numpy as np

from embgeo.core.arrays import FloatArray
from embgeo.stats import Moments
from embgeo.stats.backend.block import DeviceBlock
from embgeo.stats.backend.device import Array, Device
from embgeo.stats.backend.kernel import Kernel, Working, with_state

#: The upper triangle is made in so many panels of columns: 62.5 % of the work of a whole product.
PANELS = 4
#: Rows whose products are summed in float32 before they go into float64.
SINGLE_ROWS = 4096


class MomentsKernel(Kernel[Moments]):
    """n, mean and centered scatter of the rows or of the unit rows.

    Each block is centered at its own mean; what lies between the means of the blocks is one more
    row for each, added at the end (Chan, Golub & LeVeque 1979, as in `Moments`).
    """

    def __init__(self, statistic: Moments, device: Device) -> None:
        super().__init__(statistic, device)
        self.n = 0
        self.mean: FloatArray = np.zeros(statistic.d)
        self._steps: list[FloatArray] = []
        self._sum: Array = None
        self._product: Array = None

    @classmethod
    def serves(cls, statistic: Moments, device: Device, working: Working) -> bool:
        narrow = working is np.float32 and (statistic.of == "unit" or statistic.single)
        return device.wide or narrow

    def update(self, block: DeviceBlock) -> None:
        x, mean = self._rows_and_mean(block)
        centered = x - self.device.put(mean, x.dtype)
        self._make_room(x.dtype)
        self._add(centered)
        n = len(block.index)
        total = self.n + n
        step = mean - self.mean
        self._steps.append(step * np.sqrt(self.n * n / total))
        self.mean = self.mean + step * (n / total)
        self.n = total

    def _rows_and_mean(self, block: DeviceBlock) -> tuple[Array, FloatArray]:
        """What is multiplied, and its mean in float64."""
        n, xp = len(block.index), self.device.xp
        if self.statistic.of == "rows":
            rows = block.rows if self.device.wide else block.host.rows
            mean = rows.mean(axis=0)
            x = block.stored if self.statistic.single else block.rows
        else:
            if not self.device.wide:
                mean = (1.0 / block.host.norms) @ block.host.rows / n
            elif block.dtype is np.float64:
                mean = xp.mean(block.unit, axis=0)
            else:
                mean = (1.0 / block.norms) @ block.rows / n
            x = block.stored_unit
        return x, np.asarray(self.device.host(mean) if self.device.wide else mean)

    def _make_room(self, dtype: Array) -> None:
        xp, d = self.device.xp, self.statistic.d
        if self._sum is None and self.device.wide:
            self._sum = xp.zeros((d, d), dtype=xp.float64, device=self.device.at)
        elif self._sum is None:
            self._sum = np.zeros((d, d))
        if self._product is None and dtype == xp.float32:
            self._product = xp.zeros((d, d), dtype=xp.float32, device=self.device.at)

    def _add(self, centered: Array) -> None:
        """Add ``centeredᵀ centered`` in place, which takes no memory."""
        if self._product is None:
            self._multiply(centered, self._sum, 1.0)
            return
        for start in range(0, centered.shape[0], SINGLE_ROWS):
            self._multiply(centered[start : start + SINGLE_ROWS], self._product, 0.0)
            self._sum += self._product if self.device.wide else self.device.host(self._product)

    def _multiply(self, rows: Array, into: Array, keep: float) -> None:
        """``keep·into + rowsᵀ rows``, upper triangle and a little below it."""
        d = self.statistic.d
        width = -(-d // PANELS)
        for start in range(0, d, width):
            stop = min(start + width, d)
            left, right = rows[:, :stop], rows[:, start:stop]
            into[:stop, start:stop].addmm_(left.T, right, beta=keep)

    def finish(self) -> Moments:
        if not self.n:
            return self.statistic.blank()
        total = self.device.host(self._sum) if self.device.wide else self._sum
        between = np.stack(self._steps)
        triangle = np.asfortranarray(np.triu(total + between.T @ between))
        return with_state(
            self.statistic,
            n=self.n,
            mean=self.mean,
            _triangle=triangle,
            _recent=None,
            _recent_blocks=0,
            _kept=None,
        )
