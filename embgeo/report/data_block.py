"""Binary columns for the page's script, compressed into one block of text.

Coordinates, norms and angles are quantized to 16 bits (a 65,535th of their span: finer than a
pixel until the map is magnified a hundred times); tokens travel as UTF-16 code units with their
lengths, so that any string survives, NULs and lone surrogates included.
"""

from __future__ import annotations

import base64
import gzip
from typing import Any

import numpy as np
import numpy.typing as npt

#: UTF-16 code units of a token that a page holds.
MOST_UNITS = 1000

#: A column whose extremes lie further out than this many times its bulk keeps 32 bits.
HEAVY_TAIL = 64.0

FloatArray = npt.NDArray[np.float64]


class DataBlock:
    """Columns one behind the other, each aligned to 8 bytes."""

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
        """Sixteen bits between `low` and `high`, or 32 where the tail would cost the bulk."""
        bulk = float(np.subtract(*np.quantile(values, [0.995, 0.005]))) if len(values) else 0.0
        if not high > low or high - low > HEAVY_TAIL * bulk:
            return self.add(values.astype(np.float32))
        steps = np.rint((values - low) / (high - low) * 65535.0)
        return {**self.add(steps.astype(np.uint16)), "low": low, "high": high}

    def text(self) -> str:
        packed = gzip.compress(b"".join(self.parts), 9, mtime=0)
        return base64.b64encode(packed).decode("ascii")


def pack_tokens(
    tokens: tuple[str, ...] | None, rows: npt.NDArray[np.int64], block: DataBlock
) -> dict[str, Any] | None:
    """The tokens of these rows: lengths and code units, and the full length of those cut short."""
    if tokens is None:
        return None
    chosen = [tokens[i] for i in rows]
    encoded = [t.encode("utf-16-le", "surrogatepass")[: 2 * MOST_UNITS] for t in chosen]
    lengths = np.array([len(units) // 2 for units in encoded], dtype=np.uint16)
    units = np.frombuffer(b"".join(encoded), dtype="<u2").astype(np.uint16)
    cut = {i: len(t) for i, t in enumerate(chosen) if lengths[i] == MOST_UNITS}
    return {"lengths": block.add(lengths), "units": block.add(units), "true_length": cut}
