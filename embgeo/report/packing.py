"""Columns of numbers packed into one compressed text."""

import base64
import gzip
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray

#: A column whose extremes lie further out than this many times its bulk keeps 32 bits.
HEAVY_TAIL = 64.0


class DataBlock:
    """Consecutive columns, each aligned to 8 bytes, compressed into one text.

    Coordinates, norms and angles are quantized to 16 bits (a 65,535th of their span: finer than a
    pixel until the map is magnified a hundred times); tokens are stored as UTF-16 code units with
    their lengths, which preserves any string, NULs and lone surrogates included.
    """

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, array: npt.NDArray[Any]) -> dict[str, Any]:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        raw = little.tobytes()
        at = self.size
        padding = -len(raw) % 8
        self.parts += [raw, b"\0" * padding]
        self.size += len(raw) + padding
        return {"at": at, "length": len(array), "type": array.dtype.name}

    def add_floats(self, values: FloatArray, low: float, high: float) -> dict[str, Any]:
        """Add numbers in 16 bits from `low` to `high`, or in 32 where a heavy tail needs them."""
        if not np.isfinite(values).all():
            return self.add(values.astype(np.float32))
        bulk = float(np.subtract(*np.quantile(values, [0.995, 0.005]))) if len(values) else 0.0
        if not high > low or high - low > HEAVY_TAIL * bulk:
            return self.add(values.astype(np.float32))
        steps = np.rint((values - low) / (high - low) * 65535.0)
        return {**self.add(steps.astype(np.uint16)), "low": low, "high": high}

    def text(self) -> str:
        packed = gzip.compress(b"".join(self.parts), 4, mtime=0)
        return base64.b64encode(packed).decode("ascii")
