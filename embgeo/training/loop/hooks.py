"""What is handed in by whoever starts a run."""

from __future__ import annotations

from collections.abc import Callable
import numpy as np
import numpy.typing as npt

#: Numbers by name from the embedding W, and the output matrix where that is another one.
Measure = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32] | None], dict[str, float]]
