"""Numbers of the user's own: functions of a matrix, given by the caller or installed as packages.

An installed metric is code that the user installed and names; nothing in a file can name one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from embgeo.core.arguments import refuse_name, refuse_type
from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.matrix import Matrix
from embgeo.core.quantities import is_own
from embgeo.core.values import Scalar
from embgeo.result.analysis import Analysis

#: The group of entry points that packages register metrics in.
GROUP = "embgeo.metrics"
Metric = Callable[[Matrix], Scalar]
A = TypeVar("A", bound=Analysis)


def choose_metrics(metrics: Any) -> tuple[Metric, ...]:
    """Return the functions that are given, or installed by these names.

    Raises
    ------
    BadOption
        If something is neither a function nor the name of an installed metric.
    """
    given = [metrics] if isinstance(metrics, str) or callable(metrics) else [*metrics]
    for one in given:
        if not (isinstance(one, str) or callable(one)):
            raise refuse_type(one, "metrics", "functions of a Matrix, or names of installed ones")
    return tuple(_load(one) if isinstance(one, str) else one for one in given)


def _load(name: str) -> Metric:
    from importlib.metadata import entry_points

    entries = {entry.name: entry for entry in entry_points(group=GROUP)}
    if not entries:
        cause = f"no installed package has a metric, so there is no {name!r}"
        raise BadOption(cause, where=argument("metrics"))
    if name not in entries:
        raise refuse_name("metric", name, entries, argument("metrics"))
    try:
        found: Metric = entries[name].load()
    except Exception as error:
        cause = f"{entries[name].value} cannot be imported ({error})"
        way_out = "repair or remove the package that installs it"
        raise BadOption(cause, where=argument("metrics", name), way_out=way_out) from error
    return found


def add_metrics(analysis: A, matrix: Matrix, metrics: Sequence[Metric]) -> A:
    """Return the analysis with the numbers of these functions after its own.

    Raises
    ------
    BadOption
        If a function does not return a :class:`embgeo.Scalar`, or one whose name is taken.
    EmbgeoError
        If a function fails.
    """
    scalars = list(analysis.scalars)
    for metric in metrics:
        where = f"{argument('metrics')} {getattr(metric, '__name__', repr(metric))}"
        try:
            scalar: object = metric(matrix)
        except Exception as error:
            raise EmbgeoError(f"failed: {type(error).__name__}: {error}", where=where) from error
        if not isinstance(scalar, Scalar):
            cause = f"returns a {type(scalar).__name__}"
            raise BadOption(cause, where=where, way_out="return QUANTITY.measured(number)")
        if not is_own(scalar.name):
            cause = f"{scalar.name!r} is not a name of your own"
            raise BadOption(cause, where=where, way_out="write a family of your own: mine.NAME")
        if any(scalar.name == other.name for other in scalars):
            raise BadOption(f"{scalar.name} is there already", where=where)
        scalars.append(scalar)
    return replace(analysis, scalars=tuple(scalars))
