"""Every scalar of the analyses beside that of the baseline: difference, error, direction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from embgeo.comparison.comparison import Member
from embgeo.comparison.pair import Change, Difference, Direction
from embgeo.comparison.paired import PairedError
from embgeo.core.values import Quantity, Scalar

#: Standard errors to either side of an estimate that make a 95 % interval.
REACH = 1.96
#: Exact numbers that agree to this share of the larger (or of `SMALL`) differ by rounding only.
ROUNDING = 1e-9
SMALL = 1e-3
INDEPENDENT = "errors of both sides added in squares, as if independent"


def differences(
    members: Sequence[Member], paired: Mapping[int, Mapping[str, PairedError]]
) -> tuple[Difference, ...]:
    """Of every scalar that the baseline or another member has, quantity by quantity.

    Parameters
    ----------
    paired : mapping of int to mapping of str to PairedError
        By member and name: differences whose error was found from the same sample on both sides.
    """
    rows = []
    for quantity in every_quantity(members):
        old = members[0].analysis.scalar(quantity.name)
        for place, member in enumerate(members[1:], start=1):
            new = member.analysis.scalar(quantity.name)
            row = difference(quantity, place, old, new, paired.get(place, {}).get(quantity.name))
            if row.undefined and (old is None or new is None):
                row = replace(row, undefined=describe_absence(members, place, quantity, old))
            rows.append(row)
    return tuple(rows)


def every_quantity(members: Sequence[Member]) -> list[Quantity]:
    """In the order of the first member that has it."""
    found: dict[str, Quantity] = {}
    for member in members:
        for scalar in member.analysis.scalars:
            found.setdefault(scalar.name, scalar.quantity)
    return list(found.values())


def describe_absence(
    members: Sequence[Member], place: int, quantity: Quantity, old: Scalar | None
) -> str:
    """Whose analysis does not hold the number, and why."""
    absent = members[0] if old is None else members[place]
    reason = absent.analysis.absent.get(quantity.family, "")
    return f"{absent.name} has no {quantity.name}" + (f": {reason}" if reason else "")


def difference(
    quantity: Quantity,
    member: int,
    old: Scalar | None,
    new: Scalar | None,
    paired: PairedError | None = None,
) -> Difference:
    """One row; undefined unless both sides have a value."""
    before = None if old is None else old.value
    after = None if new is None else new.value
    row = Difference(quantity, member, before, after, None, change="undefined")
    if old is None or new is None:
        return replace(row, undefined="one side was not measured")
    if before is None or after is None:
        return replace(row, undefined=old.undefined or new.undefined)
    step = after - before
    row = replace(row, difference=step, note=other_conventions(old, new))
    unjudged = paired is None and any(is_unjudged(scalar) for scalar in (old, new))
    if paired is not None:
        row = replace(
            row,
            standard_error=paired.standard_error,
            interval=(step + paired.below, step + paired.above),
            error_note=paired.note,
        )
    elif not unjudged and (old.standard_error, new.standard_error) != (None, None):
        error = float(np.hypot(old.standard_error or 0.0, new.standard_error or 0.0))
        reach = REACH * error
        row = replace(
            row,
            standard_error=error,
            interval=(step - reach, step + reach),
            error_note=INDEPENDENT,
        )
    change: Change = "not judged" if unjudged else change_of(row)
    return replace(row, change=change, direction=direction(quantity, step, change))


def is_unjudged(scalar: Scalar) -> bool:
    """Sampled, without a word on how far off it may be."""
    return bool(scalar.sample) and scalar.standard_error is None


def change_of(row: Difference) -> Change:
    if row.difference is None or row.baseline is None or row.value is None:
        return "undefined"
    if row.interval is not None:
        low, high = row.interval
        return "within error" if low <= 0.0 <= high else "beyond error"
    size = max(abs(row.baseline), abs(row.value), SMALL)
    return "equal" if abs(row.difference) <= ROUNDING * size else "exact"


def direction(quantity: Quantity, step: float, change: Change) -> Direction:
    if quantity.better is None or change not in ("exact", "beyond error"):
        return None
    rose = "higher" if step > 0 else "lower"
    return "better" if quantity.better == rose else "worse"


def other_conventions(old: Scalar, new: Scalar) -> str:
    """What keeps the two from being one measurement; empty where nothing does."""
    if old.convention == new.convention:
        return ""
    return f"conventions differ: {old.convention or 'none'} / {new.convention or 'none'}"
