"""Vectors of benchmarks for nearest neighbors: ``.fvecs`` and ``.fbin``, mapped.

In ``.fvecs`` each vector follows the number of its columns (int32); ``.fbin`` begins with the
numbers of vectors and columns (uint32). Numbers are float32 and little-endian. Sources:
http://corpus-texmex.irisa.fr and https://big-ann-benchmarks.com.
"""

from functools import partial
from pathlib import Path

import numpy as np

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import SWAPPED, Array, Bytes, map_file, view
from embgeo.io.checkpoint import Checkpoint, Tensor, stored_tensor
from embgeo.io.foreign import is_of_numbers

NAME = "fvecs or fbin"
RECOGNIZED = "fvecs: the number of columns before each vector; fbin: numbers of vectors and columns"
READ = "mapped"
EXTRA = ""

_COUNT = 4
_WIDEST = 65_536
_FLOAT = np.dtype(np.float32)


def sniff(head: bytes) -> bool:
    """Recognize possible counts, followed by numbers of the size of vectors' entries."""
    return _is_fvecs(head) or _is_fbin(head)


def _counts(head: bytes) -> tuple[int, int]:
    return int.from_bytes(head[:_COUNT], "little"), int.from_bytes(head[_COUNT:8], "little")


def _is_fvecs(head: bytes) -> bool:
    columns, _ = _counts(head)
    length = _COUNT * (columns + 1)
    if not 2 <= columns <= _WIDEST or head[length : length + _COUNT] not in (b"", head[:_COUNT]):
        return False
    return is_of_numbers(head[_COUNT:length], fewest=2)


def _is_fbin(head: bytes) -> bool:
    vectors, columns = _counts(head)
    return vectors > 0 and 2 <= columns <= _WIDEST and is_of_numbers(head[8:], fewest=2)


def open_checkpoint(path: Path) -> Checkpoint:
    data = map_file(path)
    head = data[:4096].tobytes()
    tensor = _from_fvecs(data, _counts(head)[0]) if _is_fvecs(head) else _from_fbin(data)
    return Checkpoint(path, NAME, (tensor,), (path,))


def _from_fvecs(data: Bytes, columns: int) -> Tensor:
    rows, rest = divmod(len(data), _COUNT * (columns + 1))
    if rest:
        raise Damaged(f"its {len(data):,} bytes are no whole number of vectors of {columns:,}")
    return Tensor("vectors", (rows, columns), _FLOAT.name, partial(_open, data, rows, columns))


def _open(data: Bytes, rows: int, columns: int) -> Array:
    counts = view(data, np.dtype(np.int32), (rows,), (columns + 1,), swapped=SWAPPED)
    odd = np.flatnonzero(counts != columns)
    if len(odd):
        raise Damaged(
            f"vector {odd[0] + 1:,} has {counts[odd[0]]:,} numbers where {columns:,} are expected",
            "every vector needs the same number of them",
        )
    return view(data, _FLOAT, (rows, columns), (columns + 1, 1), 1, swapped=SWAPPED)


def _from_fbin(data: Bytes) -> Tensor:
    vectors, columns = _counts(data[:8].tobytes())
    promised = vectors * columns * _FLOAT.itemsize
    if promised != len(data) - 8:
        raise Damaged(
            f"it promises {vectors:,}×{columns:,} numbers in {promised:,} bytes, and "
            f"{len(data) - 8:,} follow"
        )
    return stored_tensor("vectors", data[8:], _FLOAT.name, (vectors, columns))
