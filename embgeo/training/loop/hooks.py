"""What is handed in by whoever starts a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

#: Numbers by name from the embedding W, and the output matrix where that is another one.
Measure = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32] | None], dict[str, float]]


class Progress(Protocol):
    """Hears about long work; `embgeo.core.progress.Progress` is one."""

    @property
    def start(self) -> Callable[[str, int], None]:
        """``start(what, total)`` at the beginning of something; 0: nobody knows how much."""

    @property
    def advance(self) -> Callable[[int], None]:
        """``advance(done)`` while it goes on."""
