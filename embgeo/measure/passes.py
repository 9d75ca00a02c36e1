"""The two passes over the rows of a matrix, shared by all families."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import argument
from embgeo.core.matrix import Matrix
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.core.values import Value
from embgeo.metrics import FAMILIES, SECTIONS, Facts, Family, Measurement, SharedStatistics
from embgeo.numerics.blas_threads import limited
from embgeo.stats import Norms
from embgeo.stats.reader import HiddenStates, RowReader
from embgeo.stats.resources import Resources
from embgeo.stats.statistic import Statistic


def open_rows(
    matrix: Matrix,
    options: Options,
    resources: Resources | None = None,
    progress: Progress | None = None,
) -> RowReader:
    """Open the rows of a matrix in the requested precision."""
    if options.precision == "float32":
        matrix = replace(matrix, rounded=True)
    return RowReader(matrix, resources, progress)


class Passes(Measurement):
    """A measurement with the passes that its families need.

    Parameters
    ----------
    reader : RowReader
    options : Options
    sections : sequence of str, optional
        All by default.

    Attributes
    ----------
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
    ) -> None:
        matrix = reader.matrix
        super().__init__(
            Facts.of(matrix, options),
            reader,
            SharedStatistics(reader.eigh),
            None if matrix.hidden is None else HiddenStates(matrix.hidden),
        )
        self.absent: dict[str, str] = {}
        self.families = choose_families(sections)
        self._leave_out_absent()

    @property
    def options(self) -> Options:
        return self.facts.options

    def _leave_out_absent(self) -> None:
        reasons = [(family, family.absent(self)) for family in self.families]
        self.absent |= {family.section: reason for family, reason in reasons if reason}
        self.families = [family for family, reason in reasons if not reason]

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
        statistics = self.request_second()
        if statistics:
            self.reader.announce("second pass", self.facts.m)
            self.reader.fold(statistics)
        self.shared.add(statistics)

    def request_first(self) -> list[Statistic]:
        """The statistics of the first pass that the families name."""
        return distinct(make(self.facts) for family in self.families for make in family.first)

    def request_second(self) -> list[Statistic]:
        """The statistics of the second pass that the families request, each once."""
        return distinct(one for family in self.families for one in family.second(self))

    def compute(self, family: Family) -> list[Value]:
        """Compute the values of a family; both passes must be over."""
        self.reader.announce(family.section, 0)
        return family.compute(self)


def choose_families(sections: Sequence[str] | None) -> list[Family]:
    """Choose the families of the named sections."""
    chosen = SECTIONS if sections is None else tuple(sections)
    for name in chosen or ("",):
        if name not in SECTIONS:
            raise refuse_name("section", name, SECTIONS, argument("sections"))
    return [family for family in FAMILIES if family.section in chosen]


def distinct(statistics: Iterable[Statistic]) -> list[Statistic]:
    """Keep the first statistic of each key, so that shared ones are computed once."""
    by_key: dict[Any, Statistic] = {}
    for statistic in statistics:
        by_key.setdefault(statistic.key, statistic)
    return list(by_key.values())
