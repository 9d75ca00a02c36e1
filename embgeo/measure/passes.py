"""The two passes over the rows of a matrix, shared by all families."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import argument
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.values import Value
from embgeo.metrics import FAMILIES, SECTIONS, Facts, Family, SharedStatistics
from embgeo.metrics.family import ask, request_first
from embgeo.numerics.blas_threads import limited
from embgeo.stats import Norms
from embgeo.stats.reader import HiddenStates, RowReader
from embgeo.stats.resources import Resources, as_caller
from embgeo.stats.statistic import Statistic


def open_rows(
    matrix: Matrix,
    options: Options,
    resources: Resources | None = None,
    progress: Progress | None = None,
    first_row: int = 0,
) -> RowReader:
    """Open the rows of a matrix, or of a part, in the requested precision."""
    if options.precision == "float32":
        matrix = replace(matrix, rounded=True)
    return RowReader(matrix, resources, progress, first_row)


class Measurement:
    """The state of a measurement: facts, shared statistics, and the passes that families need.

    Parameters
    ----------
    reader : RowReader
    options : Options
    sections : sequence of str, optional
        All by default.
    frugal : bool
        Whether large statistics are released once they are used.

    Attributes
    ----------
    facts : Facts
    shared : SharedStatistics
    hidden : HiddenStates or None
    families : list of Family
        Those that are not absent.
    absent : dict of str to str
        Sections that are left out, and why.
    """

    def __init__(
        self,
        reader: RowReader,
        options: Options,
        sections: Sequence[str] | None = None,
        *,
        frugal: bool = True,
    ) -> None:
        matrix = reader.matrix
        self.reader = reader
        self.facts = Facts.of(matrix, options)
        self.hidden = None if matrix.hidden is None else HiddenStates(matrix.hidden)
        self.shared = SharedStatistics(reader.eigh, frugal)
        self.absent: dict[str, str] = {}
        self.families = choose_families(sections)
        self._leave_out_absent()

    @property
    def options(self) -> Options:
        return self.facts.options

    def ask(self, family: Family, question: str) -> Any:
        """The answer of a family to one of `embgeo.metrics.family.QUESTIONS`."""
        return ask(family, question, self)

    def _leave_out_absent(self) -> None:
        reasons = {id(family): self.ask(family, "absent") for family in self.families}
        self.absent |= {f.FAMILY: reasons[id(f)] for f in self.families if reasons[id(f)]}
        self.families = [family for family in self.families if not reasons[id(family)]]

    def quiet(self) -> AbstractContextManager[None]:
        """Limit BLAS to one thread per call for a narrow matrix.

        After a call its threads stay awake for some hundredths of a second, which is as long as
        a pass over a narrow matrix takes, and compete with the threads of the pass.
        """
        return limited(1) if self.reader.narrow else nullcontext()

    def first_pass(self) -> None:
        """Read all rows once, or twice if some are damaged; then `facts` knows the kept rows.

        A norm is small only in comparison with all others. Subtracting the short rows from the sums
        would keep their rounding errors, so the pass is repeated without them.
        """
        norms = Norms()
        statistics = distinct([norms, *self.request_first()])
        self.reader.sift(statistics)
        small = norms.find_small(self.options.min_norm)
        if len(small[0]):
            statistics = [statistic.blank() for statistic in statistics]
            self.reader.leave_out(statistics, *small)
        self.shared.add(statistics)
        self.know_rows()

    def know_rows(self) -> None:
        """Update `facts` with the kept rows, and drop the families that have too few of them."""
        self.facts = self.facts.after_sifting(self.reader)
        self._leave_out_absent()

    def second_pass(self) -> None:
        """Decompose the sums of the first pass, and feed the rows to further statistics."""
        plan = self.reader.plan
        if self.reader.narrow and plan.workers * plan.threads > 1:
            # Decompositions take one thread: another one has time for what needs none of them.
            with self.quiet(), ThreadPoolExecutor(1) as other:
                ahead = other.submit(as_caller(self.collect), "ahead")
                statistics = self.collect("second")
            self.shared.add(ahead.result())
        else:
            statistics = self.collect("second")
        if statistics:
            self.reader.announce("second pass", self.facts.m)
            self.reader.fold(statistics)
        self.shared.add(statistics)

    def request_first(self) -> list[Statistic]:
        """The statistics of the first pass that the families name."""
        return distinct(s for family in self.families for s in request_first(family, self.facts))

    def collect(self, question: str) -> list[Statistic]:
        """Collect the statistics that the families request, each once."""
        return distinct(s for family in self.families for s in self.ask(family, question))

    def compute(self, family: Family) -> list[Value]:
        """Compute the values of a family; both passes must be over."""
        self.reader.announce(family.FAMILY, 0)
        values: list[Value] = self.ask(family, "compute")
        return values


def choose_families(sections: Sequence[str] | None) -> list[Family]:
    """Choose the families of the named sections."""
    chosen = SECTIONS if sections is None else tuple(sections)
    for name in chosen or ("",):
        if name not in SECTIONS:
            raise refuse_name("section", name, SECTIONS, argument("sections"))
    return [family for family in FAMILIES if family.FAMILY in chosen]


def distinct(statistics: Iterable[Statistic]) -> list[Statistic]:
    """Keep the first statistic of each key, so that shared ones are computed once."""
    by_key: dict[Any, Statistic] = {}
    for statistic in statistics:
        by_key.setdefault(statistic.key, statistic)
    return list(by_key.values())
