"""The interface of a module of `metrics`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any, Protocol

from embgeo.core.values import Value
from embgeo.metrics.facts import NO_ROWS, Facts
from embgeo.metrics.shared import FIRST_PASS
from embgeo.stats.statistic import Statistic


class Family(Protocol):
    """One module of `metrics`: a section of the analysis, or a part of one.

    A family has `FAMILY`, the name that ``--sections`` and the values' names use, and `compute`,
    which gives the values in the order in which they are shown. It may have

    FIRST
        Names of the statistics of the first pass that it uses, from
        :data:`embgeo.metrics.shared.FIRST_PASS`.
    absent
        Why the family is left out; empty if it is not.
    second
        Statistics of the second pass, which may depend on the first. Statistics of equal key are
        computed once for all families.
    ahead
        Statistics that it gathers itself after the first pass, while matrices are decomposed.
        The values must not depend on whether it was called.
    rows_read
        Rows that `second` and `compute` read one by one, known after the first pass. If a matrix
        lies elsewhere, these are fetched at once; others when they are read.

    The functions take what they need by the names of their parameters:

    facts : Facts
        Shape, labels and companions of the matrix, and the options; its kept rows after the first
        pass.
    reader : RowReader
        After the first pass.
    shared : SharedStatistics
        The statistics of the finished passes.
    hidden : HiddenStates or None
    """

    FAMILY: str

    @property
    def compute(self) -> Callable[..., list[Value]]: ...


#: The functions of a family with their defaults.
QUESTIONS: dict[str, Callable[[], Any]] = {
    "absent": str,
    "ahead": list,
    "rows_read": lambda: NO_ROWS,
    "second": list,
    "compute": list,
}


def request_first(family: Family, facts: Facts) -> list[Statistic]:
    """The statistics that `FIRST` of a family names."""
    return [FIRST_PASS[name](facts) for name in getattr(family, "FIRST", ())]


def ask(family: Family, question: str, source: Any) -> Any:
    """Call a function of a family with the attributes of `source` that its parameters name."""
    function = getattr(family, question, QUESTIONS[question])
    if function is QUESTIONS[question]:
        return function()
    return function(**{name: getattr(source, name) for name in _list_parameters(function)})


@cache
def _list_parameters(function: Callable[..., object]) -> tuple[str, ...]:
    # Cached, because looking a signature up is slow.
    return tuple(signature(function).parameters)
