"""The rows of one matrix as statistics and metrics read them: sifted, in blocks, in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import ml_dtypes
import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray, IntArray, WorkingArray
from embgeo.core.matrix import Matrix
from embgeo.core.progress import Progress
from embgeo.numerics.eigen import Eigh
from embgeo.stats import Census, PairHistogram, RowHashes
from embgeo.stats.block import Block
from embgeo.stats.resources import NARROW, Resources, shared_fold
from embgeo.stats.statistic import Statistic, fold

if TYPE_CHECKING:
    from embgeo.stats.backend.executor import DeviceExecutor

T = TypeVar("T")
S = TypeVar("S", bound=Statistic)


class RowReader:
    """Reads the kept rows of a matrix, on all threads or on a device.

    Attributes
    ----------
    census : Census
        Rows that `sift` left out, by reason.
    takes_part : bool array, shape (N,)
        Rows that are kept; before `sift`, those that are not masked.
    passes_absent : str
        Why no further pass over all rows is possible; empty where it is.
    """

    passes_absent = ""

    def __init__(
        self,
        matrix: Matrix,
        resources: Resources | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.matrix = matrix
        self.resources = resources or Resources()
        self.progress = progress or Progress()
        #: Where an analysis is, as in "4/8"; in front of what is announced.
        self.stage = ""
        weighted = matrix.frequency is not None and matrix.frequency.kind != "rank"
        self.plan = self.resources.plan(matrix.n, matrix.d, weighted)
        self.census = Census()
        self._lock = Lock()
        self.takes_part: npt.NDArray[np.bool_] = np.ones(matrix.n, dtype=bool)
        for rows in matrix.masked.values():
            self.takes_part[rows] = False
        self.executor = self._open_executor()

    def _open_executor(self) -> DeviceExecutor | None:
        """What runs the passes on a device, where one was asked for."""
        if self.resources.device == "cpu":
            return None
        from embgeo.stats.backend.executor import open_executor

        return open_executor(
            self.resources.device,
            self.matrix,
            self.takes_part,
            self.resources.memory,
            lambda rows: self.progress.advance(rows),
        )

    @property
    def device(self) -> str:
        """Where sums over rows are computed: "cpu", or the name of a device."""
        return "cpu" if self.executor is None else self.executor.backend.description

    @property
    def narrow(self) -> bool:
        """Whether d×d matrices are so small that their products gain little by a second thread."""
        return self.matrix.d <= NARROW

    def announce(self, what: str, rows: int) -> None:
        """Report a further pass over this many rows before it begins."""
        self.progress.start(f"{self.stage} {what}".strip(), rows)

    def sift(self, statistics: Sequence[Statistic]) -> None:
        """Feed every usable row to the statistics, and note which rows are not usable."""
        self.announce("first pass", self.matrix.n)
        # The caller checks `census.largest` for squares that overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.executor is not None:
                self.executor.sift(statistics, self.census)
            else:
                self._shared_fold(self.sifted_blocks, statistics)

    def leave_out(self, statistics: Sequence[Statistic], rows: IntArray, norms: FloatArray) -> None:
        """Feed the usable rows but these to blank statistics, and leave them out from now on.

        Parameters
        ----------
        statistics : sequence of Statistic
        rows : int array
            Rows that are far shorter than all others.
        norms : float64 array
            Theirs.
        """
        self.census.leave_out(rows, norms)
        self.takes_part[rows] = False
        self.announce("first pass without damaged rows", self.matrix.n)
        with np.errstate(over="ignore", invalid="ignore"):
            self.fold(statistics)

    def sifted_blocks(self, start: int, stop: int) -> Iterator[Block]:
        """Usable rows of a range block by block, noting which are not."""
        census = Census()
        step = self.plan.block_rows
        for index, rows in self.matrix.blocks(start=start, stop=stop, step=step):
            wanted = self.takes_part[index]
            if wanted.all():
                good = census.sift(index, rows)
            else:
                good = np.zeros(len(index), dtype=bool)
                good[wanted] = census.sift(index[wanted], rows[wanted])
            self.takes_part[index] = good
            yield Block(index, rows) if good.all() else Block(index[good], rows[good])
        with self._lock:
            self.census.merge(census)

    def blocks(
        self, rows: IntArray | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[Block]:
        """Kept rows (or the named ones) block by block, with their output rows if there are any."""
        step = self.plan.block_rows
        for index, block in self.matrix.blocks(rows, start=start, stop=stop, step=step):
            good = self.takes_part[index]
            if not good.any():
                continue
            if not good.all():
                index, block = index[good], block[good]
            output = self.matrix.output if rows is None else None
            read_paired = None if output is None else partial(output.take, index)
            yield Block(index, block, read_paired)

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
        """Rows that are left out block by block, with their output rows if there are any."""
        left_out, output = np.flatnonzero(~self.takes_part), self.matrix.output
        for index, block in self.matrix.blocks(left_out, step=self.plan.block_rows):
            read_paired = None if output is None else partial(output.take, index)
            yield Block(index, block, read_paired)

    def _shared_fold(
        self,
        blocks: Callable[[int, int], Iterator[Block]],
        statistics: Sequence[Statistic],
        n: int | None = None,
    ) -> None:
        rows = self.matrix.n if n is None else n
        shared_fold(self.plan, rows, blocks, statistics, self.progress.advance)

    def take(self, rows: IntArray) -> FloatArray:
        """The named rows in float64, shape (len(rows), d)."""
        return self.matrix.take(rows)

    def take_stored(self, rows: IntArray) -> WorkingArray:
        """The same as float32, where every stored entry is exact in it."""
        return self.matrix.stored(rows)

    def take_unit(self, rows: IntArray) -> FloatArray:
        """The named rows divided by their norms, in float64."""
        return np.asarray(Block(rows, self.take(rows)).unit)

    def spread(self, work: Callable[[int], T], count: int, what: str = "") -> Iterator[T]:
        """``work(0)`` to ``work(count − 1)`` in order, by all threads; `what` names a progress bar.

        Parameters
        ----------
        work : callable
        count : int
        what : str, optional
            No bar where it is empty.
        """
        if what:
            self.announce(what, count)
        for result in self.plan.spread(work, count):
            if what:
                self.progress.advance(1)
            yield result

    def sweep(self, make: Callable[[Any], S], rows: IntArray, what: str) -> Iterator[S]:
        """Feed all kept rows to ``make(block)``, for every block of the named kept rows in order.

        Parameters
        ----------
        make : callable
            Gets a block with `index`, `rows` and `unit`, which may be tensors of a device.
        rows : int array
        what : str
            Names the progress bar.
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
        """The cosines of all pairs, counted on the device; None where there is no device."""
        if self.executor is None:
            return None
        self.announce("all pairs", self.matrix.n)
        return self.executor.count_pairs()

    @property
    def eigh(self) -> Eigh | None:
        """Eigendecompositions on the device; None where there is none with float64."""
        if self.executor is None or not self.executor.backend.has_float64:
            return None
        return self.executor.eigh


class HiddenStates:
    """The finite hidden states of a model; zero ones stay, they are points of the hull."""

    def __init__(self, states: Matrix) -> None:
        self.states = states
        self.width = states.d
        finfo: Callable[[Any], Any] = ml_dtypes.finfo
        #: Relative rounding of the stored entries.
        self.rounding = float(finfo(states.data.dtype).eps)

    def blocks(self) -> Iterator[tuple[IntArray, FloatArray]]:
        """Numbers and rows of the finite states, block by block."""
        for index, stored in self.states.blocks():
            rows = np.asarray(stored, dtype=np.float64)
            finite = np.isfinite(rows).all(axis=1)
            if finite.any():
                yield index[finite], rows[finite]

    def count_left_out(self) -> int:
        """States with a non-finite entry."""
        return self.states.n - sum(len(index) for index, _ in self.blocks())

    def find_repeated(self) -> npt.NDArray[np.bool_]:
        """By number, whether a state equals an earlier one (or is not finite)."""
        hashes = RowHashes(self.width)
        for index, rows in self.blocks():
            hashes.update(Block(index, rows))
        repeated = np.ones(self.states.n, dtype=bool)
        repeated[hashes.index()[np.unique(hashes.values(), return_index=True)[1]]] = False
        return repeated
