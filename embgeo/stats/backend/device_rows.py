"""The rows of a matrix, moved to the device in pieces, or once if they fit."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from embgeo.core.arrays import Array, IntArray
from embgeo.core.matrix import Matrix
from embgeo.stats.backend.torch import TorchBackend

#: Rows in a piece: longer ones make nothing faster, and shorter ones need as much for the rest.
MOST_ROWS = 16384
LEAST_ROWS = 64
#: Bytes that a piece takes on the device for each entry, at the worst moment of a pass.
ENTRY_BYTES = 64
#: Shares of the free memory for the rows themselves, if they are to stay, and for the pass.
KEPT_SHARE = 0.4
PASS_SHARE = 0.5
#: Shares of the host's memory for two pieces on their way.
STAGED_SHARE = 0.25


class DeviceRows:
    """Stored rows on the device; the next piece is moved while the current one is processed.

    Parameters
    ----------
    backend : TorchBackend
    matrix : Matrix
    memory : int
        Bytes of host memory for pieces on their way.

    Attributes
    ----------
    step : int
        Rows in the following pieces.
    stay : bool
        Whether pieces stay on the device for the next pass.
    """

    def __init__(self, backend: TorchBackend, matrix: Matrix, memory: int) -> None:
        self.backend = backend
        self.matrix = matrix
        free, width = backend.free(), max(matrix.d, 1)
        itemsize = matrix.data.dtype.itemsize
        self.stay = matrix.n * width * itemsize <= KEPT_SHARE * free
        room = PASS_SHARE * free / (ENTRY_BYTES * width)
        staged = STAGED_SHARE * memory / (itemsize * width)
        most = max(LEAST_ROWS, min(MOST_ROWS, int(room), int(staged)))
        # Pieces of one size, so that none is short.
        self.step = -(-matrix.n // -(-matrix.n // most))
        self._here: dict[tuple[int, int], Array] = {}

    def read_pieces(self, start: int = 0) -> Iterator[tuple[IntArray, Array]]:
        """Yield all rows from `start` on, in pieces: row numbers and stored rows."""
        with ThreadPoolExecutor(1) as pool:
            waiting = self._ask(pool, start)
            while waiting is not None:
                stop, asked = waiting
                piece = asked.result()
                if self.stay:
                    self._here[start, stop] = piece
                waiting = self._ask(pool, stop)
                yield np.arange(start, stop, dtype=np.int64), piece
                start = stop

    def read_named(self, rows: IntArray) -> Iterator[tuple[IntArray, Array]]:
        """Read the named rows, in the given order."""
        for start in range(0, len(rows), self.step):
            index = rows[start : start + self.step]
            yield index, self._send(index)

    def shorten(self, step: int) -> None:
        """Read so many rows at a time from now on, and keep none on the device."""
        self.step = step
        self.stay = False
        self._here.clear()
        self.backend.release()

    def _ask(self, pool: ThreadPoolExecutor, start: int) -> tuple[int, Future[Array]] | None:
        """Request the piece that begins with a row; returns the pending piece and its end."""
        if start >= self.matrix.n:
            return None
        stop = min(start + self.step, self.matrix.n)
        if (start, stop) in self._here:
            here: Future[Array] = Future()
            here.set_result(self._here[start, stop])
            return stop, here
        return stop, pool.submit(self._send, slice(start, stop))

    def _send(self, which: slice | IntArray) -> Array:
        return self.backend.upload(self.matrix.data[which], self.matrix.working)
