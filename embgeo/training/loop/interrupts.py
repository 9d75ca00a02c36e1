"""Ctrl-C and SIGTERM heard between two steps rather than in the middle of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class Interrupts:
    """Whether somebody asked to stop.

    Attributes
    ----------
    asked : bool
    """

    def __init__(self) -> None:
        self.asked = False

    def hear(self, _number: int, _frame: Any) -> None:
        """The first one is noted; the second one does not wait."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def hear_interrupts() -> Iterator[Interrupts]:
    """Note signals inside of the block, and leave them to whoever had them before after it.

    Outside of the main thread, where Python allows nobody to listen, nothing is noted.
    """
    interrupts = Interrupts()
    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError, OSError):
                before[name] = signal.signal(name, interrupts.hear)
    try:
        yield interrupts
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
