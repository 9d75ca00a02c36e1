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
    """What families compute from.

    Attributes
    ----------
    facts : Facts
        Shape, labels and companions of the matrix, and the options; its kept rows after the first
        pass.
    reader : RowReader
        Reads rows, after the first pass.
    shared : SharedStatistics
        The statistics of the finished passes.
    hidden : HiddenStates or None
    """

    facts: Facts
    reader: RowReader
    shared: SharedStatistics
    hidden: HiddenStates | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """One module of `metrics`.

    Attributes
    ----------
    section : str
        The name that ``--sections`` and the values' names use.
    compute : callable
        The values in the order in which they are shown.
    first : tuple of callables
        Statistics of the first pass, those of :mod:`embgeo.metrics.shared`.
    second : callable
        Statistics of the second pass, which may depend on the first. Statistics of equal key are
        computed once for all families.
    absent : callable
        Why the family is left out; empty if it is not.
    rows_read : callable
        Rows that `second` and `compute` read one by one, known after the first pass.
    """

    section: str
    compute: Callable[[Measurement], list[Value]]
    first: tuple[Callable[[Facts], Statistic], ...] = ()
    second: Callable[[Measurement], list[Statistic]] = lambda _: []
    absent: Callable[[Measurement], str] = lambda _: ""
    rows_read: Callable[[Measurement], IntArray] = lambda _: NO_ROWS
