"""Every number over training, and where each curve bends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from embgeo.comparison.bends import bend
from embgeo.comparison.comparison import Member
from embgeo.comparison.differences import every_quantity
from embgeo.comparison.pair import Pair
from embgeo.comparison.track import Bend, Curve, Track
from embgeo.core.quantities.compare import SCALARS
from embgeo.core.values import Quantity, Scalar


def track_of(members: Sequence[Member], pairs: Sequence[Pair], source: str) -> Track:
    """The curves of checkpoints that are in the order of their steps."""
    steps = tuple(member.step or 0.0 for member in members)
    curves = [
        curve(quantity, "", steps, [m.analysis.scalar(quantity.name) for m in members])
        for quantity in every_quantity(members)
    ]
    taken = {(pair.first, pair.second): pair for pair in pairs}
    against: tuple[Literal["first", "previous"], ...] = ("first", "previous")
    for quantity in SCALARS:
        for other in against:
            found: list[Scalar | None] = [None]
            for place in range(1, len(members)):
                pair = taken.get((0 if other == "first" else place - 1, place))
                found.append(scalar_of(pair, quantity))
            curves.append(curve(quantity, other, steps, found))
    return Track(steps, source, tuple(curves))


def scalar_of(pair: Pair | None, quantity: Quantity) -> Scalar | None:
    if pair is None:
        return None
    return next((s for s in pair.scalars if s.name == quantity.name), None)


def curve(
    quantity: Quantity,
    against: Literal["", "first", "previous"],
    steps: Sequence[float],
    scalars: Sequence[Scalar | None],
) -> Curve:
    values = tuple(None if s is None else s.value for s in scalars)
    errors = tuple(None if s is None else s.standard_error for s in scalars)
    known = [i for i, value in enumerate(values) if value is not None]
    found = bend(
        np.array([steps[i] for i in known], dtype=np.float64),
        np.array([values[i] for i in known], dtype=np.float64),
    )
    if isinstance(found, Bend):
        return Curve(quantity, against, values, errors, found)
    return Curve(quantity, against, values, errors, None, found)
