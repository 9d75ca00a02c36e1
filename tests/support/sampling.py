"""Cases of which ordinary runs take a sample and the nightly run takes all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

#: Whether this run takes nightly cases; where not, they are not even collected (conftest.py).
AT_NIGHT = True


def sample_cases(cases: Iterable[Any], keep: int | Callable[[Any], bool]) -> list[Any]:
    """All cases, for ``pytest.mark.parametrize``; those not sampled are marked nightly.

    Parameters
    ----------
    cases : iterable
        Values, tuples of values (one per argument) or ``pytest.param``.
    keep : int or callable
        Every `keep`-th case is sampled, the first included; or those for which it is true.
    """
    chosen = [
        (case, keep(case) if callable(keep) else not number % keep)
        for number, case in enumerate(cases)
    ]
    return [case if kept else nightly(case) for case, kept in chosen if kept or AT_NIGHT]


def nightly(case: Any) -> Any:
    """The case, as one that only the nightly run takes."""
    if hasattr(case, "marks"):
        return case._replace(marks=(*case.marks, pytest.mark.nightly))
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.nightly)


def each_value(function: Any) -> Any:
    """Combine the lists of several ``pytest.mark.parametrize`` so that each value occurs.

    There are as many cases as the longest list has values, instead of every combination. The
    short lists are combined with one another as far as that number of cases goes. The nightly
    run takes all combinations.
    """
    if AT_NIGHT:
        return function
    marks: list[pytest.Mark] = function.pytestmark
    crossed = [mark for mark in marks if mark.name == "parametrize"]
    lists = [list(mark.args[1]) for mark in crossed]
    longest = max(lists, key=len)
    stride, rows = 1, []
    for values in lists:
        step = stride if values is not longest and stride * len(values) <= len(longest) else 1
        rows.append([values[number // step % len(values)] for number in range(len(longest))])
        stride *= 1 if values is longest else len(values)
    names = [
        [name.strip() for name in mark.args[0].split(",")]
        if isinstance(mark.args[0], str)
        else list(mark.args[0])
        for mark in crossed
    ]
    cases = []
    for row in zip(*rows, strict=True):
        parts: list[Any] = []
        kept: list[Any] = []
        for own, value in zip(names, row, strict=True):
            if hasattr(value, "marks"):
                parts += value.values
                kept += value.marks
            else:
                parts += value if len(own) > 1 else [value]
        cases.append(pytest.param(*parts, marks=kept))
    function.pytestmark = [mark for mark in marks if mark.name != "parametrize"]
    return pytest.mark.parametrize(list(chain(*names)), cases)(function)


def each_folder(base: Path, cases: Iterable[T]) -> Iterator[tuple[Path, T]]:
    """Cases of a table, each with an empty folder of its own."""
    for number, case in enumerate(cases):
        folder = base / str(number)
        folder.mkdir()
        yield folder, case
