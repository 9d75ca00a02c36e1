"""The passes over a matrix on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray
from embgeo.core.errors import BadOption
from embgeo.core.matrix import Matrix
from embgeo.stats import (
    AngleAfterRemoval,
    AngleTo,
    Census,
    CloserRows,
    GroupMoments,
    LogPartition,
    Moments,
    Norms,
    PairHistogram,
    PartitionGradient,
    Projection2,
    RowHashes,
    StackedQR,
    TopNeighbors,
    TwoNearest,
)
from embgeo.stats.backend.all_pairs import AllPairs
from embgeo.stats.backend.block import DeviceBlock
from embgeo.stats.backend.choose import open_device
from embgeo.stats.backend.closer_rows import CloserRowsKernel
from embgeo.stats.backend.device import Array, Device
from embgeo.stats.backend.full import FLOOR, DeviceFull, fits
from embgeo.stats.backend.group_moments import GroupMomentsKernel
from embgeo.stats.backend.kernel import HostKernel, Kernel
from embgeo.stats.backend.log_partition import LogPartitionKernel
from embgeo.stats.backend.moments import MomentsKernel
from embgeo.stats.backend.partition_gradient import PartitionGradientKernel
from embgeo.stats.backend.per_row import PerRowKernel
from embgeo.stats.backend.rows import Rows
from embgeo.stats.backend.stacked_qr import StackedQRKernel
from embgeo.stats.backend.top_neighbors import TopNeighborsKernel
from embgeo.stats.backend.two_nearest import TwoNearestKernel
from embgeo.stats.statistic import Statistic

S = TypeVar("S", bound=Statistic)
Mask = npt.NDArray[np.bool_]

#: Which kernel feeds which statistic; whatever is not here is fed on the host.
KERNELS: dict[type[Statistic], type[Kernel[Any]]] = {
    AngleAfterRemoval: PerRowKernel,
    AngleTo: PerRowKernel,
    CloserRows: CloserRowsKernel,
    GroupMoments: GroupMomentsKernel,
    LogPartition: LogPartitionKernel,
    Moments: MomentsKernel,
    Norms: PerRowKernel,
    PartitionGradient: PartitionGradientKernel,
    Projection2: PerRowKernel,
    RowHashes: PerRowKernel,
    StackedQR: StackedQRKernel,
    TopNeighbors: TopNeighborsKernel,
    TwoNearest: TwoNearestKernel,
}


def open_engine(
    name: str,
    matrix: Matrix,
    takes_part: Mask,
    memory: int,
    progress: Callable[[int], None],
) -> Engine | None:
    """What runs the passes on the device of that name; None where that is the numpy path.

    Parameters
    ----------
    name : str
        As of `embgeo.stats.backend.choose.open_device`.
    matrix, takes_part, memory, progress
        As of `Engine`.

    Raises
    ------
    BadOption
        If the device is not there, or cannot hold the rows as they are stored.
    EmbgeoError
        If torch is not installed.
    """
    device = open_device(name, memory)
    if device is None:
        return None
    if not device.wide and matrix.working is np.float64:
        if name == "auto":
            return None
        raise BadOption(
            f"{matrix.name} is stored in float64, which {device.name} does not have",
            where="--device",
            way_out="give --precision float32 or --device cpu",
        )
    return Engine(device, matrix, takes_part, memory, progress)


class Engine:
    """Folds, searches and eigendecompositions of one matrix on one device.

    Parameters
    ----------
    device : Device
    matrix : Matrix
    takes_part : bool array, shape (N,)
        Rows that are not left out; `sift` writes to it.
    memory : int
        Bytes that rows may take on the host on their way.
    progress : callable
        ``progress(rows)`` hears of rows that were read.
    """

    def __init__(
        self,
        device: Device,
        matrix: Matrix,
        takes_part: Mask,
        memory: int,
        progress: Callable[[int], None],
    ) -> None:
        self.device = device
        self.matrix = matrix
        self.takes_part = takes_part
        self.progress = progress
        self.rows = Rows(device, matrix, memory)

    def sift(self, statistics: Sequence[Statistic], census: Census) -> None:
        """The first pass: note which rows are unusable, feed the others to the statistics."""

        def keep(block: DeviceBlock) -> Mask:
            index = block.index
            wanted = self.takes_part[index]
            high, low = self._extremes(block)
            good = np.zeros(len(index), dtype=bool)
            good[wanted] = census.sift_by_extremes(index[wanted], high[wanted], low[wanted])
            self.takes_part[index] = good
            return good

        with self._guarded():
            self._merge(statistics, self._fed(statistics, self._blocks(self.rows.pieces(), keep)))

    def fold(self, statistics: Sequence[Statistic], rows: IntArray | None = None) -> None:
        """Feed the kept rows, or the named ones, to the statistics."""
        with self._guarded():
            self._merge(statistics, self._fed(statistics, self._kept_blocks(rows)))

    def sweep(self, make: Callable[[Any], S], among: Mask | None = None) -> Iterator[S]:
        """All kept rows, fed to a statistic for each block of rows.

        Parameters
        ----------
        make : callable
            Makes the statistic for a block with `index`, `rows` and `unit`; these are tensors
            where the device has float64.
        among : bool array, shape (N,), optional
            The rows that blocks are made of; the kept ones by default.

        Yields
        ------
        Statistic
            In the order of the rows.
        """
        chosen = self.takes_part if among is None else among
        for block in self._blocks(self.rows.pieces(), lambda block: chosen[block.index]):
            with self._guarded():
                found = list(self._swept(make, block))
            yield from found
            self.progress(len(block.index))

    def pair_histogram(self) -> PairHistogram:
        """The cosines of all pairs of kept rows."""
        with self._guarded():
            counted = AllPairs(self.device)
            for index, piece in self.rows.pieces():
                # Of the same piece, perhaps cut; then of all that follow.
                lefts = list(self._widened(index, piece, self._kept, None))
                for number, left in enumerate(lefts):
                    for right in lefts[number:]:
                        counted.add(left, right)
                for right in self._blocks(self.rows.pieces(int(index[-1]) + 1), self._kept):
                    for left in lefts:
                        counted.add(left, right)
                self.progress(len(index))
            return counted.finish(self.matrix.take)

    def eigh(self, gram: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Eigenvalues, rising, and eigenvectors; None where the device fails at it."""

        def solve() -> tuple[FloatArray, FloatArray]:
            values, vectors = self.device.xp.linalg.eigh(self.device.put(gram))
            return self.device.host(values), self.device.host(vectors)

        try:
            return fits(self.device, solve)[1]
        except self.device.torch.linalg.LinAlgError:
            return None

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Products as float32 has them; memory that runs out is said in one line."""
        try:
            with self.device.exact_products():
                yield
        except RuntimeError as error:
            if not self.device.is_full(error):
                raise
        else:
            return
        raise DeviceFull(self.device, self.rows.step)

    def _kept(self, block: DeviceBlock) -> Mask:
        return self.takes_part[block.index]

    def _kept_blocks(self, rows: IntArray | None = None) -> Iterator[DeviceBlock]:
        """Kept rows, or the named ones of them, block by block."""
        if rows is not None:
            return self._blocks(self.rows.named(rows), self._kept)
        output = self.matrix.output
        return self._blocks(self.rows.pieces(), self._kept, output.take if output else None)

    def _blocks(
        self,
        pieces: Iterator[tuple[IntArray, Array]],
        keep: Callable[[DeviceBlock], Mask],
        pair: Callable[[IntArray], FloatArray] | None = None,
    ) -> Iterator[DeviceBlock]:
        for index, piece in pieces:
            yield from self._widened(index, piece, keep, pair)

    def _widened(
        self,
        index: IntArray,
        piece: Array,
        keep: Callable[[DeviceBlock], Mask],
        pair: Callable[[IntArray], FloatArray] | None,
    ) -> Iterator[DeviceBlock]:
        """Those rows of a piece that `keep` says, in the precision that they are worked with in."""
        xp = self.device.xp
        working = xp.float32 if self.matrix.working is np.float32 else xp.float64

        def whole() -> DeviceBlock:
            stored = xp.astype(piece, working, copy=False)
            return DeviceBlock(self.device, index, stored, pair)

        block = fits(self.device, whole)[1]
        if block is not None:
            yield from self._taken(block, keep(block))
            return
        self.rows.shrink(len(index))
        middle = len(index) // 2
        for part in (slice(0, middle), slice(middle, None)):
            yield from self._widened(index[part], piece[part], keep, pair)

    def _taken(self, block: DeviceBlock, good: Mask) -> Iterator[DeviceBlock]:
        """Those rows of a block that are good, if any."""
        if not good.any():
            return
        part = block if good.all() else fits(self.device, lambda: block.take(good))[1]
        if part is not None:
            yield part
            return
        self.rows.shrink(len(good))
        first, second = block.halves()
        yield from self._taken(first, good[: len(first.index)])
        yield from self._taken(second, good[len(first.index) :])

    def _extremes(self, block: DeviceBlock) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Largest and smallest entry of each row; NaN where there is one."""
        if not self.device.wide:  # whose comparisons may pass a NaN over
            return block.host.stored.max(axis=1), block.host.stored.min(axis=1)
        xp, host = self.device.xp, self.device.host
        return host(xp.max(block.stored, axis=1)), host(xp.min(block.stored, axis=1))

    def _kernel(self, statistic: Statistic) -> Kernel[Any]:
        kind = KERNELS.get(type(statistic), HostKernel)
        if not kind.serves(statistic, self.device, self.matrix.working):
            kind = HostKernel
        kernel = fits(self.device, lambda: kind(statistic, self.device))[1]
        if kernel is None:
            self.rows.forget()
            kernel = fits(self.device, lambda: kind(statistic, self.device))[1]
        if kernel is None:
            raise DeviceFull(self.device, self.rows.step)
        return kernel

    def _merge(self, statistics: Sequence[Statistic], found: Sequence[Statistic]) -> None:
        for statistic, other in zip(statistics, found, strict=True):
            statistic.merge(other)

    def _fed(
        self, statistics: Sequence[Statistic], blocks: Iterator[DeviceBlock], heard: bool = True
    ) -> list[Statistic]:
        """What each statistic sees of the blocks."""
        kernels = [self._kernel(statistic) for statistic in statistics]
        for block in blocks:
            for kernel in kernels:
                self._feed(kernel, block)
            if heard:
                self.progress(len(block.index))
        return [kernel.finish() for kernel in kernels]

    def _feed(self, kernel: Kernel[Any], block: DeviceBlock) -> None:
        """Hand a block to a kernel, in halves where the memory does not suffice."""
        if fits(self.device, lambda: kernel.update(block))[0]:
            return
        self.rows.shrink(len(block.index))
        # Of so few rows, all that was kept on the device has made room.
        for part in [block] if len(block.index) <= FLOOR else block.halves():
            self._feed(kernel, part)

    def _swept(self, make: Callable[[Any], S], block: DeviceBlock) -> Iterator[S]:
        """The statistics of a block of queries; of its halves where its memory does not suffice."""
        try:
            statistic = make(block if self.device.wide else block.host)
            found: Any = self._fed([statistic], self._kept_blocks(), heard=False)[0]
        except DeviceFull:
            if len(block.index) <= FLOOR:
                raise
        else:
            yield found
            return
        for half in block.halves():
            yield from self._swept(make, half)
