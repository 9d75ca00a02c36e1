"""fastText's product-quantized matrices (``.ftz``), decoded row by row.

A row is cut into pieces, each piece is the number of one of 256 centroids, and where the model was
quantized with ``-qnorm`` a further number gives the row's length. Source: Joulin et al. (2016),
"FastText.zip: Compressing text classification models", section 3.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.io.bounded import scratch
from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import SWAPPED, Bytes, view

_HEADER = struct.Struct("<?qqi")  # with norms; rows, columns; bytes of codes
_QUANTIZER = struct.Struct("<4i")  # columns, pieces, columns of a piece, of the last one
_CENTROIDS = 256
_BLOCK_ROWS = 4096

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class QuantizedMatrix:
    """Codes and centroids of a matrix.

    Attributes
    ----------
    shape : tuple of two ints
    codes : array of uint8, shape (rows, pieces)
    pieces : list of arrays, shape (256, columns of the piece)
    lengths : tuple of arrays, optional
        The code of each row's length, and the 256 lengths.
    """

    shape: tuple[int, int]
    codes: Bytes
    pieces: list[Floats]
    lengths: tuple[Bytes, Floats] | None

    def rows(self, numbers: npt.NDArray[np.int64]) -> Floats:
        """The rows with these numbers."""
        codes = self.codes[numbers]
        out = np.concatenate([piece[codes[:, q]] for q, piece in enumerate(self.pieces)], axis=1)
        if self.lengths is not None:
            row_codes, lengths = self.lengths
            with np.errstate(over="ignore", invalid="ignore"):
                out *= lengths[row_codes[numbers]][:, None]
        return out

    def dense(self, start: int, stop: int, path: Path) -> Floats:
        """Rows `start` to `stop` decoded, in memory or in a scratch file."""
        out = scratch.empty((stop - start, self.shape[1]), path)
        for first in range(start, stop, _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, stop)
            out[first - start : last - start] = self.rows(np.arange(first, last))
        out.flags.writeable = False
        return out


def read_quantized(data: Bytes, at: int) -> tuple[QuantizedMatrix, int]:
    """The quantized matrix at byte `at`, and the byte behind it.

    Raises
    ------
    Damaged
        Sizes that contradict each other or leave the file.
    """
    with_lengths, rows, columns, size = _HEADER.unpack(data[at : at + _HEADER.size].tobytes())
    at += _HEADER.size
    if rows <= 0 or columns <= 0 or size <= 0 or rows > len(data) or at + size > len(data):
        raise Damaged("a quantized matrix is longer than the file, or empty")
    codes = data[at : at + size]
    pieces, at = _quantizer(data, at + size, columns)
    if size != rows * len(pieces):
        raise Damaged("a quantized matrix has other than the codes that its shape asks for")
    lengths = None
    if with_lengths:
        row_codes = view(data[at:], np.dtype(np.uint8), (rows,))
        ((values,), at) = _quantizer(data, at + rows, 1)
        lengths = row_codes, values[:, 0]
    shape = (rows, columns)
    return QuantizedMatrix(shape, codes.reshape(rows, len(pieces)), pieces, lengths), at


def _quantizer(data: Bytes, at: int, columns: int) -> tuple[list[Floats], int]:
    stated, count, width, last = _QUANTIZER.unpack(data[at : at + _QUANTIZER.size].tobytes())
    at += _QUANTIZER.size
    if stated != columns or width <= 0 or count <= 0 or (count - 1) * width + last != columns:
        raise Damaged("a product quantizer contradicts its matrix")
    if not 0 < last <= width:
        raise Damaged("a product quantizer contradicts itself")
    numbers = view(data[at:], np.dtype(np.float32), (columns * _CENTROIDS,), swapped=SWAPPED)
    pieces, start = [], 0
    for piece in range(count):
        size = width if piece < count - 1 else last
        pieces.append(numbers[start : start + size * _CENTROIDS].reshape(_CENTROIDS, size))
        start += size * _CENTROIDS
    return pieces, at + 4 * columns * _CENTROIDS
