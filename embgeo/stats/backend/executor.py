"""Passes over a matrix on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import numpy as np

from embgeo.core.arrays import Array, FloatArray, IntArray, Mask
from embgeo.core.errors import BadOption, argument
from embgeo.core.matrix import Matrix
from embgeo.stats.backend.choose import open_device
from embgeo.stats.backend.device_rows import DeviceRows
from embgeo.stats.backend.memory import FLOOR, DeviceFull, try_within_memory
from embgeo.stats.backend.torch import TorchBackend
from embgeo.stats.block import Block
from embgeo.stats.census import Census
from embgeo.stats.pair_cosines import PairHistogram
from embgeo.stats.statistic import Statistic, merge_all

S = TypeVar("S", bound=Statistic)

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


class DeviceExecutor:
    """Folds, searches and eigendecompositions of one matrix on one device.

    A block that does not fit into the memory of the device is split in halves.

    Parameters
    ----------
    backend : TorchBackend
    matrix : Matrix
    takes_part : bool array, shape (N,)
        Rows that are not left out; `sift` writes to it.
    memory : int
        Bytes of host memory for rows on their way.
    progress : callable
        ``progress(rows)`` is called with the number of rows that were read.
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
        """First pass: note unusable rows, feed the others to the statistics."""

        def keep(block: Block) -> Mask:
            return census.sift(block.index, *self.backend.extremes(block.stored), self.takes_part)

        with self._guard():
            merge_all(
                statistics,
                self._feed_all(statistics, self._cut_blocks(self.rows.read_pieces(), keep)),
            )

    def fold(self, statistics: Sequence[Statistic], rows: IntArray | None = None) -> None:
        """Feed the kept rows, or the named ones, to the statistics."""
        with self._guard():
            merge_all(statistics, self._feed_all(statistics, self._read_kept(rows)))

    def sweep(self, make: Callable[[Block], S], among: Mask) -> Iterator[S]:
        """Feed all kept rows to one statistic per block of query rows.

        Parameters
        ----------
        make : callable
            Makes the statistic for a block of rows.
        among : bool array, shape (N,)
            The rows that blocks are made of.

        Yields
        ------
        Statistic
            In the order of the rows.
        """
        pieces = self.rows.read_pieces()
        for block in self._cut_blocks(pieces, lambda block: among[block.index]):
            with self._guard():
                found = list(self._sweep_block(make, block))
            yield from found
            self.progress(len(block.index))

    def count_pairs(self) -> PairHistogram:
        """Count the cosines of all pairs of kept rows."""
        found = PairHistogram()
        with self._guard():
            for index, piece in self.rows.read_pieces():
                lefts = cut(self._cut_piece(index, piece, self._is_kept), TILE)
                # Tiles of the same piece, on and above the diagonal; then of all that follow.
                for number, left in enumerate(lefts):
                    for right in lefts[number:]:
                        self._add_pairs(found, left, right)
                following = self.rows.read_pieces(int(index[-1]) + 1)
                for block in self._cut_blocks(following, self._is_kept):
                    for right in cut([block], TILE):
                        for left in lefts:
                            self._add_pairs(found, left, right)
                self.progress(len(index))
            found.to_host(self.backend)
        return found

    def eigh(self, gram: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Eigenvalues in ascending order and eigenvectors; None if the device fails."""

        def solve() -> tuple[FloatArray, FloatArray]:
            values, vectors = self.backend.xp.linalg.eigh(self.backend.put(gram))
            return self.backend.to_host(values), self.backend.to_host(vectors)

        try:
            return try_within_memory(self.backend, solve)[1]
        except self.backend.torch.linalg.LinAlgError:
            return None

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Exact float32 products; exhausted memory becomes a one-line error."""
        try:
            with self.backend.exact_products():
                yield
        except RuntimeError as error:
            if not self.backend.is_full(error):
                raise
        else:
            return
        raise DeviceFull(self.backend, self.rows.step)

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
        """Select the rows of a piece that `keep` marks, in working precision."""
        xp, output = self.backend.xp, self.matrix.output
        working = xp.float32 if self.matrix.working is np.float32 else xp.float64

        def widen() -> Block:
            read = partial(output.take, index) if paired and output is not None else None
            return Block(index, self.backend.put(piece, working), read, self.backend)

        block = try_within_memory(self.backend, widen)[1]
        if block is not None:
            yield from self._take(block, keep(block))
            return
        self.rows.shrink(len(index))
        for half in halve(len(index)):
            yield from self._cut_piece(index[half], piece[half], keep, paired)

    def _take(self, block: Block, good: Mask) -> Iterator[Block]:
        """Select the usable rows of a block, if any."""
        if not good.any():
            return
        part = block if good.all() else try_within_memory(self.backend, lambda: block.take(good))[1]
        if part is not None:
            yield part
            return
        self.rows.shrink(len(good))
        for half in halve(len(good)):
            yield from self._take(block.take(half), good[half])

    def _feed_all(
        self, statistics: Sequence[S], blocks: Iterator[Block], report_rows: bool = True
    ) -> list[S]:
        """Feed blocks to blank copies of the statistics on the device; return them on the host."""
        copies = [statistic.blank() for statistic in statistics]
        for block in blocks:
            for statistic in copies:
                self._feed(statistic, block)
            if report_rows:
                self.progress(len(block.index))
        for statistic in copies:
            statistic.to_host(self.backend)
        return copies

    def _feed(self, statistic: Statistic, block: Block) -> None:
        """Feed a block to a statistic; split it in halves if memory does not suffice."""
        if try_within_memory(self.backend, lambda: statistic.update(block))[0]:
            return
        rows = len(block.index)
        self.rows.shrink(rows)
        # Of so few rows, all that was kept on the device has made room.
        for part in [slice(None)] if rows <= FLOOR else halve(rows):
            self._feed(statistic, block.take(part))

    def _add_pairs(self, found: PairHistogram, left: Block, right: Block) -> None:
        """Add the pairs of a tile; split it in quarters if memory does not suffice."""
        if try_within_memory(self.backend, lambda: found.add_pairs(left, right))[0]:
            return
        if len(left.index) <= FLOOR:
            raise DeviceFull(self.backend, len(left.index))
        lefts = cut([left], -(-len(left.index) // 2))
        rights = lefts if left is right else cut([right], -(-len(right.index) // 2))
        for number, one in enumerate(lefts):
            for other in rights[number:] if left is right else rights:
                self._add_pairs(found, one, other)

    def _sweep_block(self, make: Callable[[Block], S], block: Block) -> Iterator[S]:
        """Sweep a block of queries; split it in halves if memory does not suffice."""
        try:
            blank = try_within_memory(self.backend, lambda: make(block))[1]
            if blank is None:
                raise DeviceFull(self.backend, len(block.index))
            found = self._feed_all([blank], self._read_kept(), report_rows=False)[0]
        except DeviceFull:
            if len(block.index) <= FLOOR:
                raise
        else:
            yield found
            return
        for half in halve(len(block.index)):
            yield from self._sweep_block(make, block.take(half))


def halve(rows: int) -> tuple[slice, slice]:
    """The first and the second half of a number of rows."""
    return slice(0, rows // 2), slice(rows // 2, None)


def cut(blocks: Iterable[Block], rows: int) -> list[Block]:
    """The blocks, in parts of at most `rows` rows."""
    return [
        block if len(block.index) <= rows else block.take(slice(at, at + rows))
        for block in blocks
        for at in range(0, len(block.index), rows)
    ]
