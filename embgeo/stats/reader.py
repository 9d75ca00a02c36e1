"""Reads the rows of a matrix for statistics and metrics: in blocks, in parallel."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import ml_dtypes
import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask, WorkingArray
from embgeo.core.matrix import Matrix
from embgeo.core.progress import Progress
from embgeo.numerics.eigen import Eigh
from embgeo.stats import Census, PairHistogram, RowHashes
from embgeo.stats.backend.backend import HOST
from embgeo.stats.block import Block
from embgeo.stats.resources import NARROW, Resources, shared_fold
from embgeo.stats.statistic import Statistic, fold

if TYPE_CHECKING:
    from embgeo.stats.backend.executor import DeviceExecutor

T = TypeVar("T")
S = TypeVar("S", bound=Statistic)


class RowReader:
    """Reads the kept rows of a matrix, on all threads or on a device.

    Blocks of a part of a matrix have the row numbers of the whole, in which `first_row` is the
    number of the part's row 0; parts are not read on devices.

    `census`: rows that `sift` left out, by reason. `takes_part`: shape (N,); rows that are kept;
    before `sift`, those that are not masked.
    """

    #: Whether rows are read from a file here, so that all may be read at once.
    is_local = True

    def __init__(
        self,
        matrix: Matrix,
        resources: Resources | None = None,
        progress: Progress | None = None,
        first_row: int = 0,
    ) -> None:
        self.matrix = matrix
        self.first_row = first_row
        self.resources = resources or Resources()
        self.progress = progress or Progress()
        #: Progress of the analysis, such as "4/8"; a prefix of announcements.
        self.stage = ""
        self.plan = self.resources.plan(matrix.n, matrix.d)
        self.census = Census()
        self._lock = Lock()
        self.takes_part: Mask = np.ones(matrix.n, dtype=bool)
        for rows in matrix.masked.values():
            self.takes_part[rows] = False
        self.executor: DeviceExecutor | None = None
        if self.resources.device != "cpu":
            from embgeo.stats.backend.executor import open_executor

            self.executor = open_executor(
                self.resources.device,
                matrix,
                self.takes_part,
                self.resources.room,
                lambda rows: self.progress.advance(rows),
            )

    def open_output(self, output: Matrix) -> "RowReader":
        """Read the rows of the output matrix, on the processor.

        It may be stored in a type that the device of the input does not have.
        """
        return RowReader(output, replace(self.resources, device="cpu"), self.progress)

    @property
    def device(self) -> str:
        """Name of the device that computes sums over rows, or "cpu"."""
        return "cpu" if self.executor is None else self.executor.backend.description

    @property
    def narrow(self) -> bool:
        """Whether products of d×d matrices are too small to gain from a second thread."""
        return self.matrix.d <= NARROW

    def announce(self, what: str, rows: int) -> None:
        """Announce a pass over this many rows."""
        self.progress.start(f"{self.stage} {what}".strip(), rows)

    def sift(self, statistics: Sequence[Statistic]) -> None:
        """Feed every usable row to the statistics, and note the unusable ones."""
        self.announce("first pass", self.matrix.n)
        # The caller checks `census.largest` for squares that overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.executor is not None:
                self.executor.sift(statistics, self.census)
            else:
                self._shared_fold(self.sifted_blocks, statistics)

    def leave_out(self, statistics: Sequence[Statistic], rows: IntArray, norms: FloatArray) -> None:
        """Leave out these rows from now on, and feed the remaining ones to blank statistics.

        `rows`: rows that are far shorter than all others. `norms`: norms of these rows.
        """
        self.census.leave_out(rows, norms)
        self.takes_part[rows] = False
        self.announce("first pass without damaged rows", self.matrix.n)
        with np.errstate(over="ignore", invalid="ignore"):
            self.fold(statistics)

    def sifted_blocks(self, start: int, stop: int) -> Iterator[Block]:
        """Yield the usable rows of a range in blocks, and note the unusable ones."""
        census = Census()
        step = self.plan.block_rows
        for index, rows in self.matrix.blocks(start=start, stop=stop, step=step):
            good = census.sift(index, *HOST.extremes(rows), self.takes_part)
            if not good.all():
                index, rows = index[good], rows[good]
            yield Block(index + self.first_row, rows)
        with self._lock:
            self.census.merge(census)

    def blocks(
        self, rows: IntArray | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[Block]:
        """Yield kept rows (or the named ones) in blocks, with their output rows, if any."""
        step = self.plan.block_rows
        for index, block in self.matrix.blocks(rows, start=start, stop=stop, step=step):
            good = self.takes_part[index]
            if not good.any():
                continue
            if not good.all():
                index, block = index[good], block[good]
            output = self.matrix.output if rows is None else None
            read_paired = None if output is None else partial(output.take, index)
            yield Block(index + self.first_row, block, read_paired)

    def fold(self, statistics: Sequence[Statistic], rows: IntArray | None = None) -> None:
        """Feed the kept rows (or the named ones) to the statistics."""
        if self.executor is not None:
            self.executor.fold(statistics, rows)
        else:
            n = None if rows is None else len(rows)
            self._shared_fold(lambda start, stop: self.blocks(rows, start, stop), statistics, n)
        if rows is None:
            fold(self.read_left_out(), [s for s in statistics if s.of_left_out])

    def read_left_out(self) -> Iterator[Block]:
        """Yield left-out rows in blocks, with their output rows if there are any."""
        left_out, output = np.flatnonzero(~self.takes_part), self.matrix.output
        for index, block in self.matrix.blocks(left_out, step=self.plan.block_rows):
            read_paired = None if output is None else partial(output.take, index)
            yield Block(index + self.first_row, block, read_paired)

    def _shared_fold(
        self,
        blocks: Callable[[int, int], Iterator[Block]],
        statistics: Sequence[Statistic],
        n: int | None = None,
    ) -> None:
        rows = self.matrix.n if n is None else n
        shared_fold(self.plan, rows, blocks, statistics, self.progress.advance)

    def take(self, rows: IntArray) -> FloatArray:
        """Read the named rows in float64, shape (len(rows), d)."""
        return self.matrix.take(rows)

    def take_stored(self, rows: IntArray) -> WorkingArray:
        """Read the named rows in the narrower of float32 and float64 that is exact."""
        return self.matrix.stored(rows)

    def take_unit(self, rows: IntArray) -> FloatArray:
        """Read the named rows divided by their norms, in float64."""
        return np.asarray(Block(rows, self.take(rows)).unit)

    def spread(self, work: Callable[[int], T], count: int, what: str = "") -> Iterator[T]:
        """Yield ``work(0)`` to ``work(count − 1)`` in order, computed by all threads.

        `what`: label of a progress bar; no bar if it is empty.
        """
        if what:
            self.announce(what, count)
        for result in self.plan.spread(work, count):
            if what:
                self.progress.advance(1)
            yield result

    def sweep(self, make: Callable[[Any], S], rows: IntArray, what: str) -> Iterator[S]:
        """Feed all kept rows to ``make(block)`` for each block of the named rows, in order.

        `make`: takes a block with `index`, `rows` and `unit`, which may be tensors of a device.
        `what`: label of the progress bar.
        """
        if self.executor is not None:
            among = np.zeros(self.matrix.n, dtype=bool)
            among[rows] = True
            self.announce(what, len(rows))
            yield from self.executor.sweep(make, among)
            return
        step = self.plan.block_rows

        def work(number: int) -> S:
            index = rows[number * step : (number + 1) * step]
            statistic = make(Block(index, self.take_stored(index)))
            for block in self.blocks():
                statistic.update(block)
            return statistic

        yield from self.spread(work, -(-len(rows) // step), what)

    def count_pairs(self) -> PairHistogram | None:
        """Count the cosines of all pairs on the device; None without a device."""
        if self.executor is None:
            return None
        self.announce("all pairs", self.matrix.n)
        return self.executor.count_pairs()

    @property
    def eigh(self) -> Eigh | None:
        """Eigendecomposition on the device; None without a device that has float64."""
        if self.executor is None or not self.executor.backend.has_float64:
            return None
        return self.executor.eigh


class HiddenStates:
    """The finite hidden states of a model, with zero ones, which are points of the hull."""

    def __init__(self, states: Matrix) -> None:
        self.states = states
        self.width = states.d
        finfo: Callable[[Any], Any] = ml_dtypes.finfo
        #: Relative rounding of the stored entries.
        self.rounding = float(finfo(states.data.dtype).eps)

    def blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield numbers and rows of the finite states in blocks."""
        for index, stored in self.states.blocks():
            rows = np.asarray(stored, dtype=np.float64)
            finite = np.isfinite(rows).all(axis=1)
            if finite.any():
                yield index[finite], rows[finite]

    def count_left_out(self) -> int:
        """Count the states with a non-finite entry."""
        return self.states.n - sum(len(index) for index, _ in self.blocks())

    def find_repeated(self) -> Mask:
        """Mask of the states that equal an earlier one or are not finite."""
        hashes = RowHashes(self.width)
        for index, rows in self.blocks():
            hashes.update(Block(index, rows))
        repeated = np.ones(self.states.n, dtype=bool)
        repeated[hashes.index()[np.unique(hashes.values(), return_index=True)[1]]] = False
        return repeated
