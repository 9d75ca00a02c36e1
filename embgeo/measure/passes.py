"""The passes over a matrix: its rows sifted, its statistics fed, and the context of the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import ml_dtypes
import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.matrix import FinalNorm, Matrix
from embgeo.core.options import Options
from embgeo.measure.resources import NARROW, Resources, as_caller, shared_fold
from embgeo.metrics import Context, Family, Seen
from embgeo.numerics.blas_threads import limited
from embgeo.stats import Census, PairHistogram
from embgeo.stats.block import Block
from embgeo.stats.statistic import Statistic

if TYPE_CHECKING:
    from embgeo.stats.backend.engine import Engine

T = TypeVar("T")
S = TypeVar("S", bound=Statistic)


@dataclass(frozen=True, slots=True)
class Progress:
    """Hears about long work; the command line draws bars with it.

    Attributes
    ----------
    start : callable
        ``start(what, rows)`` at the beginning of a pass; 0 rows: nobody knows how many.
    advance : callable
        ``advance(rows)`` while it goes on, from any thread.
    """

    start: Callable[[str, int], None] = lambda _what, _rows: None
    advance: Callable[[int], None] = lambda _rows: None


class Run:
    """The matrix with its rows sifted, and the context that metrics see."""

    def __init__(
        self,
        matrix: Matrix,
        options: Options,
        progress: Progress,
        resources: Resources | None = None,
    ) -> None:
        if options.precision == "float32":
            matrix = replace(matrix, rounded=True)
        self.matrix = matrix
        self.progress = progress
        self.resources = resources or Resources()
        self.plan = self.resources.plan(matrix.n, matrix.d)
        self.census = Census()
        self._lock = Lock()
        self.takes_part: npt.NDArray[np.bool_] = np.ones(matrix.n, dtype=bool)
        for rows in matrix.masked.values():
            self.takes_part[rows] = False
        self.engine = self._engine()
        frequency = matrix.frequency
        self.context = Context(
            n=matrix.n,
            d=matrix.d,
            options=options,
            blocks=self.blocks,
            fold=self.fold,
            spread=self.spread,
            sweep=self.sweep,
            take=matrix.take,
            stored=matrix.stored,
            tokens=matrix.tokens,
            counts=None if frequency is None else frequency.counts,
            frequency_kind=None if frequency is None else frequency.kind,
            frequency_source="" if frequency is None else frequency.source,
            output_width=None if matrix.output is None else matrix.output.d,
            output_absent=output_absent(matrix),
            hidden_blocks=None if matrix.hidden is None else self.hidden_blocks,
            hidden_width=0 if matrix.hidden is None else matrix.hidden.d,
            hidden_rounding=rounding(matrix.hidden),
            masked=int((~self.takes_part).sum()),
            masked_rows=matrix.masked,
            announce=progress.start,
            **({} if self.engine is None else self._on_device(self.engine)),
            **final_norm(matrix.final_norm),
        )

    def _engine(self) -> Engine | None:
        """What runs the passes on a device, where one was asked for."""
        if self.resources.device == "cpu":
            return None
        from embgeo.stats.backend.engine import open_engine

        return open_engine(
            self.resources.device,
            self.matrix,
            self.takes_part,
            self.resources.memory,
            lambda rows: self.progress.advance(rows),
        )

    def _on_device(self, engine: Engine) -> dict[str, Any]:
        """What the context offers where there is a device."""

        def pair_histogram() -> PairHistogram:
            self.progress.start("all pairs", self.matrix.n)
            return engine.pair_histogram()

        return {
            "device": engine.device.description,
            "pair_histogram": pair_histogram,
            "eigh": engine.eigh if engine.device.wide else None,
        }

    def hidden_blocks(self) -> Iterator[Block]:
        """Finite hidden states block by block; zero ones stay, they are points of the hull."""
        if self.matrix.hidden is None:
            return
        for index, stored in self.matrix.hidden.blocks():
            rows = np.asarray(stored, dtype=np.float64)
            finite = np.isfinite(rows).all(axis=1)
            if finite.any():
                yield Block(index[finite], rows[finite])

    def hidden_left_out(self) -> int:
        """Hidden states with a non-finite entry."""
        if self.matrix.hidden is None:
            return 0
        return self.matrix.hidden.n - sum(len(block.index) for block in self.hidden_blocks())

    @property
    def narrow(self) -> bool:
        """Whether d×d matrices are so small that their products gain little by a second thread."""
        return self.matrix.d <= NARROW

    def quiet(self) -> AbstractContextManager[None]:
        """BLAS held to one thread a call where that is enough.

        Its threads stay awake for some hundredths of a second after a call, in the way of the
        passes' own, which take as long for a narrow matrix.
        """
        return limited(1) if self.narrow else nullcontext()

    def first_pass(self, families: Sequence[Family], seen: Seen) -> None:
        statistics = distinct(s for family in families for s in family.first(self.context))
        self.progress.start("first pass", self.matrix.n)
        # Squares that overflow are caught by `check_usable`, with a message that says so.
        with np.errstate(over="ignore", invalid="ignore"):
            if self.engine is not None:
                self.engine.sift(statistics, self.census)
            else:
                shared_fold(
                    self.plan, self.matrix.n, self.sifted_blocks, statistics, self.progress.advance
                )
        seen.add(statistics)
        self.know_rows()

    def know_rows(self) -> None:
        """Tell the context which rows take part, once all of them were sifted."""
        kept = np.flatnonzero(self.takes_part)
        self.context = replace(
            self.context,
            kept=kept,
            zero=len(self.census.zero),
            nonfinite=len(self.census.nonfinite),
        )

    def second_pass(self, families: Sequence[Family], seen: Seen) -> None:
        """Decompose what the first pass summed, and feed the rows again to what needs it."""

        def wanted() -> list[Statistic]:
            return distinct(s for f in families for s in f.second(self.context, seen))

        if self.narrow and self.plan.workers * self.plan.threads > 1:
            # Decompositions take one thread: another one has time for what needs none of them.
            with self.quiet(), ThreadPoolExecutor(1) as other:
                ahead = other.submit(as_caller(self._ahead), families, seen)
                statistics = wanted()
            seen.add(ahead.result())
        else:
            statistics = wanted()
        if statistics:
            self.progress.start("second pass", self.context.m)
            self.fold(statistics)
        seen.add(statistics)

    def _ahead(self, families: Sequence[Family], seen: Seen) -> list[Statistic]:
        """What families gather by themselves while matrices are decomposed."""
        hooks = [family.ahead for family in families if hasattr(family, "ahead")]
        return [s for ahead in hooks for s in ahead(self.context, seen)]

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
            paired = None
            if self.matrix.output is not None and rows is None:
                paired = self.matrix.output.take(index)
            yield Block(index, block, paired)

    def fold(
        self,
        statistics: Sequence[Statistic],
        rows: IntArray | None = None,
    ) -> None:
        """Feed the kept rows (or the named ones) to the statistics, on all threads or a device."""
        if self.engine is not None:
            self.engine.fold(statistics, rows)
            return
        n = self.matrix.n if rows is None else len(rows)
        shared_fold(
            self.plan,
            n,
            lambda start, stop: self.blocks(rows, start, stop),
            statistics,
            self.progress.advance,
        )

    def spread(self, work: Callable[[int], T], count: int, what: str = "") -> Iterator[T]:
        """``work(0)`` to ``work(count − 1)`` in order, by all threads; a bar if it is named."""
        if what:
            self.progress.start(what, count)
        for result in self.plan.spread(work, count):
            if what:
                self.progress.advance(1)
            yield result

    def sweep(self, make: Callable[[Any], S], rows: IntArray, what: str) -> Iterator[S]:
        """All kept rows fed to ``make(block)``, for every block of the named kept rows."""
        if self.engine is not None:
            among = np.zeros(self.matrix.n, dtype=bool)
            among[rows] = True
            self.progress.start(what, len(rows))
            yield from self.engine.sweep(make, among)
            return
        step = self.plan.block_rows

        def work(number: int) -> S:
            index = rows[number * step : (number + 1) * step]
            statistic = make(Block(index, self.matrix.stored(index)))
            for block in self.blocks():
                statistic.update(block)
            return statistic

        yield from self.spread(work, -(-len(rows) // step), what)


def output_absent(matrix: Matrix) -> str:
    """Why there is no output projection to compare with."""
    if any(note.startswith("tied") for note in matrix.origin.notes):
        return "the model is tied: input and output share one matrix"
    return "no output projection was found beside the embedding; --output NAME names one"


def final_norm(found: FinalNorm | None) -> dict[str, Any]:
    """What the context says about the final LayerNorm."""
    if found is None:
        return {"layernorm_absent": "an array has no LayerNorm beside it"}
    if found.scale is None or found.bias is None:
        return {"layernorm_absent": found.absent}
    return {"layernorm": (found.name, found.scale, found.bias)}


def rounding(hidden: Matrix | None) -> float:
    """Relative rounding of the stored entries."""
    finfo: Callable[[Any], Any] = ml_dtypes.finfo
    return 0.0 if hidden is None else float(finfo(hidden.data.dtype).eps)


def distinct(statistics: Iterator[Statistic]) -> list[Statistic]:
    """The first of each key: what several families want is taken once."""
    by_key: dict[Any, Statistic] = {}
    for statistic in statistics:
        by_key.setdefault(statistic.key, statistic)
    return list(by_key.values())
