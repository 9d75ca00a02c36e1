"""What a module of `metrics` has to offer, and how it is asked."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any, Protocol

from embgeo.core.values import Value
from embgeo.metrics.facts import NO_ROWS


class Family(Protocol):
    """One module of `metrics`: a section of the analysis, or a part of one.

    A family has `FAMILY`, the name that ``--sections`` and the values' names use, and `compute`,
    which gives the values in the order in which they are shown. It may have

    absent
        Why the family is left out; empty if it is not.
    first, second
        Statistics of the first pass, and of the second one, which may depend on the first.
        A statistic that several families need is computed once, by key.
    ahead
        Statistics that it gathers itself after the first pass, while matrices are decomposed.
        The values must not depend on whether it was called.
    rows_read
        Rows that `second` and `compute` read one by one, known after the first pass. Where a
        matrix is measured in parts, they are gathered from the parts that hold them.

    Each of them declares what it needs by the names of its parameters:

    facts : Facts
        Shape, labels and companions of the matrix; its kept rows after the first pass.
    options : Options
    reader : RowReader
        After the first pass.
    shared : SharedStatistics
        The statistics of the passes that are over.
    hidden : HiddenStates or None
    """

    FAMILY: str

    @property
    def compute(self) -> Callable[..., list[Value]]: ...


#: The functions of a family and what those that it does not have would answer.
QUESTIONS: dict[str, Callable[[], Any]] = {
    "absent": str,
    "first": list,
    "ahead": list,
    "rows_read": lambda: NO_ROWS,
    "second": list,
    "compute": list,
}


def ask(family: Family, question: str, source: object) -> Any:
    """Call a function of a family with what its parameters name, taken from `source`.

    Parameters
    ----------
    family : Family
    question : str
        One of `QUESTIONS`.
    source : object
        Has an attribute for each parameter.
    """
    function = getattr(family, question, QUESTIONS[question])
    if function is QUESTIONS[question]:
        return function()
    return function(**{name: getattr(source, name) for name in list_parameters(function)})


@cache
def list_parameters(function: Callable[..., object]) -> tuple[str, ...]:
    """The names of a function's parameters, which take time to look up."""
    return tuple(signature(function).parameters)
