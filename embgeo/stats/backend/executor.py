"""Passes over a matrix on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np

from embgeo.core.arrays import Array, FloatArray, IntArray, Mask
from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.matrix import Matrix
from embgeo.stats.backend.torch import TorchBackend, open_device
from embgeo.stats.block import Block
from embgeo.stats.pair_cosines import PairHistogram
from embgeo.stats.per_row import Census
from embgeo.stats.statistic import Statistic, fold, merge_all

#: Rows in a piece: longer ones make nothing faster, and shorter ones need as much for the rest.
MOST_ROWS = 16384
LEAST_ROWS = 64
#: Bytes that a piece takes on the device for each entry, at the worst moment of a pass.
ENTRY_BYTES = 64
#: Bytes for each of d × d entries: sums of both precisions, and the eigenvectors of two matrices.
SQUARE_BYTES = 36
#: Shares of the free memory for the rows themselves, if they are to stay, and for the pass.
KEPT_SHARE = 0.4
PASS_SHARE = 0.5
#: Shares of the host's memory for two pieces on their way.
STAGED_SHARE = 0.25


class DeviceRows:
    """Stored rows on the device; the next piece is moved while the current one is processed.

    `memory`: bytes of host memory for pieces on their way. `step`: rows in the following pieces.
    `stay`: whether pieces stay on the device for the next pass.
    """

    def __init__(self, backend: TorchBackend, matrix: Matrix, memory: int) -> None:
        self.backend = backend
        self.matrix = matrix
        width = matrix.d
        free = max(0, backend.free() - SQUARE_BYTES * width**2)
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
        """Read this many rows at a time from now on, and keep none on the device."""
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


S = TypeVar("S", bound=Statistic)
T = TypeVar("T")

#: Rows of either side of a tile of pairs: no more cosines in it than float32 can count.
TILE = 4096


def open_executor(
    name: str,
    matrix: Matrix,
    takes_part: Mask,
    memory: int,
    progress: Callable[[int], None],
) -> DeviceExecutor | None:
    """Open the executor of the named device; None for the numpy path.

    BadOption if the device is missing, or cannot hold the rows as they are stored.
    """
    backend = open_device(name, memory)
    if backend is None:
        return None
    if not backend.has_float64 and matrix.working is np.float64:
        if name == "auto":
            return None
        raise BadOption(
            f"{matrix.name} is stored in float64, which {backend.name} does not have",
            where=argument("device"),
            way_out=f"give {argument('precision', 'float32')} or {argument('device', 'cpu')}",
        )
    return DeviceExecutor(backend, matrix, takes_part, memory, progress)


class DeviceFull(EmbgeoError):
    """The device has too little memory, even for half as many rows at a time."""

    def __init__(self, backend: TorchBackend, rows: int) -> None:
        super().__init__(
            f"out of memory on {backend.description} with {rows:,} rows at a time",
            where=argument("device"),
            way_out=f"free its memory, or give {argument('device', 'cpu')}",
        )


class DeviceExecutor:
    """Folds, searches and eigendecompositions of one matrix on one device.

    A pass that finds too little memory is repeated once, with half as many rows at a time.

    `takes_part`: shape (N,); rows that are not left out; `sift` writes to it. `memory`: bytes of
    host memory for rows on their way. `progress`: ``progress(rows)`` is called with the number of
    rows that were read.
    """

    def __init__(
        self,
        backend: TorchBackend,
        matrix: Matrix,
        takes_part: Mask,
        memory: int,
        progress: Callable[[int], None],
    ) -> None:
        self.backend = backend
        self.matrix = matrix
        self.takes_part = takes_part
        self.progress = progress
        self.rows = DeviceRows(backend, matrix, memory)

    def sift(self, statistics: Sequence[Statistic], census: Census) -> None:
        """Note unusable rows and feed the others to the statistics: the first pass."""

        def work() -> tuple[list[Statistic], Census, Mask]:
            own, takes_part = Census(), self.takes_part.copy()

            def keep(block: Block) -> Mask:
                return own.sift(block.index, *self.backend.extremes(block.stored), takes_part)

            found = self._feed(statistics, self._cut_blocks(self.rows.read_pieces(), keep))
            return found, own, takes_part

        found, own, self.takes_part[:] = self._within_memory(work)
        merge_all(statistics, found)
        census.merge(own)

    def fold(self, statistics: Sequence[Statistic], rows: IntArray | None = None) -> None:
        """Feed the kept rows, or the named ones, to the statistics."""
        found = self._within_memory(lambda: self._feed(statistics, self._read_kept(rows)))
        merge_all(statistics, found)

    def sweep(self, make: Callable[[Block], S], among: Mask) -> Iterator[S]:
        """Feed all kept rows to one statistic per block of query rows.

        `make`: makes the statistic for a block of rows. `among`: shape (N,); the rows that blocks
        are made of. Yields in the order of the rows.
        """
        rows, start = np.flatnonzero(among), 0
        while start < len(rows):
            index = rows[start : start + self.rows.step]

            def work(index: IntArray = index) -> list[S]:
                return [
                    self._feed([make(block)], self._read_kept(), report_rows=False)[0]
                    for block in self._read_kept(index)
                ]

            yield from self._within_memory(work)
            self.progress(len(index))
            start += len(index)

    def count_pairs(self) -> PairHistogram:
        """Count the cosines of all pairs of kept rows."""

        def work() -> PairHistogram:
            found, rows = PairHistogram(), min(TILE, self.rows.step)
            for index, piece in self.rows.read_pieces():
                lefts = list(cut(self._cut_piece(index, piece, self._is_kept), rows))
                # Tiles of the same piece, on and above the diagonal; then of all that follow.
                for number, left in enumerate(lefts):
                    for right in lefts[number:]:
                        found.add_pairs(left, right)
                following = self.rows.read_pieces(int(index[-1]) + 1)
                for right in cut(self._cut_blocks(following, self._is_kept), rows):
                    for left in lefts:
                        found.add_pairs(left, right)
                self.progress(len(index))
            found.to_host(self.backend)
            return found

        return self._within_memory(work)

    def eigh(self, gram: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the ascending eigenvalues and the eigenvectors; None if the device fails."""
        try:
            values, vectors = self.backend.xp.linalg.eigh(self.backend.put(gram))
            return self.backend.to_host(values), self.backend.to_host(vectors)
        except RuntimeError as error:
            failed = isinstance(error, self.backend.torch.linalg.LinAlgError)
            if not (failed or self.backend.is_full(error)):
                raise
            return None

    def _within_memory(self, work: Callable[[], T]) -> T:
        """Do the work with exact float32 products; repeat it if memory does not suffice."""
        for _ in range(2):
            try:
                with self.backend.exact_products():
                    return work()
            except RuntimeError as error:
                if not self.backend.is_full(error):
                    raise
            # Outside of the handler: the error refers to frames that hold arrays.
            rows = self.rows.step
            self.rows.shorten(max(1, rows // 2))
        raise DeviceFull(self.backend, rows)

    def _is_kept(self, block: Block) -> Mask:
        return self.takes_part[block.index]

    def _read_kept(self, rows: IntArray | None = None) -> Iterator[Block]:
        """Yield the kept rows, or the named ones, in blocks."""
        if rows is not None:
            return self._cut_blocks(self.rows.read_named(rows), self._is_kept)
        return self._cut_blocks(self.rows.read_pieces(), self._is_kept, paired=True)

    def _cut_blocks(
        self,
        pieces: Iterator[tuple[IntArray, Array]],
        keep: Callable[[Block], Mask],
        paired: bool = False,
    ) -> Iterator[Block]:
        for index, piece in pieces:
            yield from self._cut_piece(index, piece, keep, paired)

    def _cut_piece(
        self, index: IntArray, piece: Array, keep: Callable[[Block], Mask], paired: bool = False
    ) -> Iterator[Block]:
        """Yield the rows of a piece that `keep` marks, if any, in working precision."""
        xp, output = self.backend.xp, self.matrix.output
        working = xp.float32 if self.matrix.working is np.float32 else xp.float64
        read = partial(output.take, index) if paired and output is not None else None
        block = Block(index, self.backend.put(piece, working), read, self.backend)
        good = keep(block)
        if good.any():
            yield block if good.all() else block.take(good)

    def _feed(
        self, statistics: Sequence[S], blocks: Iterator[Block], report_rows: bool = True
    ) -> list[S]:
        """Feed blocks to blank copies of the statistics on the device; return them on the host."""
        copies = [statistic.blank() for statistic in statistics]
        fold(blocks, copies, self.progress if report_rows else None)
        for statistic in copies:
            statistic.to_host(self.backend)
        return copies


def cut(blocks: Iterable[Block], rows: int) -> Iterator[Block]:
    """Yield the blocks, in parts of at most `rows` rows."""
    for block in blocks:
        if len(block.index) <= rows:
            yield block
        else:
            for at in range(0, len(block.index), rows):
                yield block.take(slice(at, at + rows))
