"""Types of arrays."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
SingleArray = npt.NDArray[np.float32]
#: float32 or float64.
WorkingArray = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
#: An array of numpy or of torch, used through the array API standard.
Array: TypeAlias = Any
