"""Out-of-memory handling on a device: work is halved down to a minimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from embgeo.core.errors import EmbgeoError, argument
from embgeo.stats.backend.torch import TorchBackend

T = TypeVar("T")

#: Rows below which a block is not cut any more.
FLOOR = 64


class DeviceFull(EmbgeoError):
    """The device has too little memory even for a few rows."""

    def __init__(self, backend: TorchBackend, rows: int) -> None:
        super().__init__(
            f"out of memory on {backend.description} with {rows:,} rows at a time",
            where=argument("device"),
            way_out=f"free its memory, or give {argument('device', 'cpu')}",
        )


def try_within_memory(backend: TorchBackend, work: Callable[[], T]) -> tuple[bool, T | None]:
    """Try the work; returns whether it fitted into the memory of the device, and its result."""
    try:
        return True, work()
    except Exception as error:
        if not backend.is_full(error):
            raise
    # Released outside of the handler: the error refers to frames that hold arrays.
    backend.release()
    return False, None
