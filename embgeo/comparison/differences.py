"""Differences of every scalar from the baseline: size, error, direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from embgeo.comparison.comparison import Member
from embgeo.comparison.matching import Matching
from embgeo.comparison.pair import Change, Difference, Direction
from embgeo.comparison.paired import INDEPENDENT, PairedError, population_error
from embgeo.core.reach import REACH, student_reach
from embgeo.core.values import Quantity, Scalar
from embgeo.numerics.multiple_tests import adjust_holm, two_sided

#: A difference is beyond error if its p-value, after Holm's correction for all judged differences,
#: is below this level.
LEVEL = 0.05
#: Exact numbers that agree to this share of the larger (or of `SMALL`) differ by rounding only.
ROUNDING = 1e-9
SMALL = 1e-3


def differences(
    members: Sequence[Member], matchings: Mapping[int, Matching]
) -> tuple[Difference, ...]:
    """The differences of every scalar of some member, by quantity.

    `matchings` holds the matching of each member with the baseline.
    """
    rows = []
    for quantity in every_quantity(members):
        old = members[0].analysis.scalar(quantity.name)
        for place, member in enumerate(members[1:], start=1):
            new = member.analysis.scalar(quantity.name)
            error = None
            if old is not None and new is not None:
                both = (members[0].analysis, member.analysis)
                error = population_error(old, new, both, matchings.get(place))
            row = difference(quantity, place, old, new, error)
            if row.undefined and (old is None or new is None):
                row = replace(row, undefined=describe_absence(members, place, quantity, old))
            rows.append(row)
    return judge(rows)


def judge(rows: Sequence[Difference]) -> tuple[Difference, ...]:
    """The differences with their changes and directions, after Holm's correction."""
    adjusted = iter(adjust_holm([row.p_value for row in rows if row.p_value is not None]))
    judged = []
    for row in rows:
        if row.p_value is not None:
            p = next(adjusted)
            change: Change = "beyond error" if p < LEVEL else "within error"
            row = replace(row, p_adjusted=p, change=change)
        way = direction(row.quantity, row.difference or 0.0, row.change)
        judged.append(replace(row, direction=way))
    return tuple(judged)


def every_quantity(members: Sequence[Member]) -> list[Quantity]:
    """All quantities, in the order of the first member that has them."""
    found: dict[str, Quantity] = {}
    for member in members:
        for scalar in member.analysis.scalars:
            found.setdefault(scalar.name, scalar.quantity)
    return list(found.values())


def describe_absence(
    members: Sequence[Member], place: int, quantity: Quantity, old: Scalar | None
) -> str:
    """Which member does not have the number, and why."""
    absent = members[0] if old is None else members[place]
    reason = absent.analysis.absent.get(quantity.family, "")
    return f"{absent.name} has no {quantity.name}" + (f": {reason}" if reason else "")


def difference(
    quantity: Quantity,
    member: int,
    old: Scalar | None,
    new: Scalar | None,
    population: PairedError | None = None,
) -> Difference:
    """One difference before it is judged with others; undefined unless both sides have a value."""
    before = None if old is None else old.value
    after = None if new is None else new.value
    row = Difference(quantity, member, before, after, None, change="undefined")
    if old is None or new is None:
        return replace(row, undefined="one side was not measured")
    if before is None or after is None:
        return replace(row, undefined=old.undefined or new.undefined)
    if old.size != new.size:
        sizes = " and ".join(
            "an unknown number of" if s is None else f"{s:,}" for s in (old.size, new.size)
        )
        return replace(row, undefined=f"it depends on the number of rows: {sizes} rows")
    step = after - before
    row = replace(row, difference=step, note=other_conventions(old, new))
    exact = old.known == new.known == "exact"
    if exact and abs(step) <= ROUNDING * max(abs(before), abs(after), SMALL):
        return replace(row, change="equal")
    if population is not None:
        row = with_error(row, population.standard_error, population.note)
        error = population.standard_error
        p = two_sided(step / error) if error else float(step == 0.0)
        return replace(row, error_kind="population", p_value=p)
    if exact:
        return replace(row, change="exact")
    errors = [s.standard_error for s in (old, new) if s.known != "exact"]
    known = [error for error in errors if error is not None]
    if len(known) == len(errors):
        few = [s.freedom for s in (old, new) if s.freedom is not None]
        row = with_error(row, float(np.hypot.reduce(known)), INDEPENDENT, min(few, default=None))
        row = replace(row, error_kind="monte_carlo")
    return replace(row, change="not judged")


def with_error(row: Difference, error: float, note: str, freedom: int | None = None) -> Difference:
    """The difference with its standard error and interval."""
    step, reach = row.difference or 0.0, student_reach(REACH, freedom) * error
    interval = (step - reach, step + reach)
    return replace(row, standard_error=error, interval=interval, error_note=note)


def direction(quantity: Quantity, step: float, change: Change) -> Direction:
    if quantity.better is None or change not in ("exact", "beyond error"):
        return None
    rose = "higher" if step > 0 else "lower"
    return "better" if quantity.better == rose else "worse"


def other_conventions(old: Scalar, new: Scalar) -> str:
    """How the conventions of the two measurements differ; empty if they do not."""
    if old.convention == new.convention:
        return ""
    return f"conventions differ: {old.convention or 'none'} / {new.convention or 'none'}"
