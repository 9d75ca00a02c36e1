"""What a module of `metrics` declares: a section of the analysis, or a part of one."""

from collections.abc import Callable
from dataclasses import dataclass

from embgeo.core.arrays import IntArray
from embgeo.core.values import Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.shared import SharedStatistics
from embgeo.stats.reader import HiddenStates, RowReader
from embgeo.stats.statistic import Statistic


@dataclass
class Measurement:
    """What families compute from."""

    #: Shape, labels and companions of the matrix, and the options; its kept rows after the first
    #: pass.
    facts: Facts
    #: Reads rows, after the first pass.
    reader: RowReader
    #: The statistics of the finished passes.
    shared: SharedStatistics
    hidden: HiddenStates | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """One module of `metrics`."""

    #: The name that ``--sections`` and the values' names use.
    section: str
    #: The values in the order in which they are shown.
    compute: Callable[[Measurement], list[Value]]
    #: Statistics of the first pass, or None where it needs none.
    first: tuple[Callable[[Facts], Statistic | None], ...] = ()
    #: Statistics of the second pass, which may depend on the first. Statistics of equal key are
    #: computed once for all families.
    second: Callable[[Measurement], list[Statistic]] = lambda _: []
    #: Why the family is left out; empty if it is not.
    absent: Callable[[Measurement], str] = lambda _: ""
    #: Rows that `second` and `compute` read one by one, known after the first pass.
    rows_read: Callable[[Measurement], IntArray] = lambda _: NO_ROWS
