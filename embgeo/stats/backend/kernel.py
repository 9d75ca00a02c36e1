"""What feeds a statistic from blocks on a device.

A kernel sums where the rows are and brings the state of the statistic to the host when the rows
are through, so that merging, saving and the metrics never see where it came from.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

from embgeo.stats.backend.block import DeviceBlock
from embgeo.stats.backend.device import Device
from embgeo.stats.statistic import Statistic

S = TypeVar("S", bound=Statistic)

Working = type[np.float32] | type[np.float64]


class Kernel(Generic[S]):
    """Base of the kernels, one for each kind of statistic.

    `update` takes in the whole block or, where the device's memory does not suffice, nothing:
    whatever needs memory comes before the first sum is changed.

    Parameters
    ----------
    statistic : Statistic
        What it was made with is read; its rows are left alone.
    device : Device
    """

    def __init__(self, statistic: S, device: Device) -> None:
        self.statistic = statistic
        self.device = device
        self.found = statistic.blank()

    @classmethod
    def serves(cls, statistic: S, device: Device, working: Working) -> bool:
        """Whether this device can do it, for rows that are worked with in this precision."""
        return device.wide

    def update(self, block: DeviceBlock) -> None:
        """Add the rows of a block."""
        raise NotImplementedError

    def finish(self) -> S:
        """The statistic of the rows seen, on the host."""
        return self.found


class HostKernel(Kernel[Statistic]):
    """A statistic that the device has no kernel for, or no precision: fed on the host."""

    @classmethod
    def serves(cls, statistic: Statistic, device: Device, working: Working) -> bool:
        return True

    def update(self, block: DeviceBlock) -> None:
        self.found.update(block.host)


def with_state(statistic: S, **state: Any) -> S:
    """A blank copy of a statistic with this state, every part of it named."""
    if set(state) != set(statistic.STATE):
        raise TypeError(f"{type(statistic).__name__} has the state {statistic.STATE}")
    found = statistic.blank()
    for name, value in state.items():
        setattr(found, name, value)
    return found
