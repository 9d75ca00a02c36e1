"""What happens when the memory of a device is exhausted: work is halved, down to a floor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from embgeo.core.errors import EmbgeoError, argument
from embgeo.stats.backend.torch import TorchBackend

T = TypeVar("T")

#: Rows below which a block is not cut any more.
FLOOR = 64


class DeviceFull(EmbgeoError):
    """The memory of the device does not suffice, even for few rows."""

    def __init__(self, backend: TorchBackend, rows: int) -> None:
        super().__init__(
            f"out of memory on {backend.description} with {rows:,} rows at a time",
            where=argument("device"),
            way_out=f"free its memory, or give {argument('device', 'cpu')}",
        )


def try_within_memory(backend: TorchBackend, work: Callable[[], T]) -> tuple[bool, T | None]:
    """Whether the work could be done in the device's memory, and what it gave."""
    try:
        return True, work()
    except Exception as error:
        if not backend.is_full(error):
            raise
    # Only here is the error gone, and with it the arrays that its frames refer to.
    backend.release()
    return False, None
