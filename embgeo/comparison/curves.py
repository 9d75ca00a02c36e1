"""Every number over training, and its bend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from embgeo.comparison.bends import bend
from embgeo.comparison.comparison import Member
from embgeo.comparison.differences import every_quantity
from embgeo.comparison.outliers import find_outliers
from embgeo.comparison.pair import Pair
from embgeo.comparison.track import Bend, Curve, Track
from embgeo.core.quantities.compare import SCALARS
from embgeo.core.values import Quantity, Scalar


def track_of(
    members: Sequence[Member],
    pairs: Sequence[Pair],
    source: str,
    same_as: Sequence[int | None],
) -> Track:
    """The curves of checkpoints, which are in the order of their steps."""
    track = Track(tuple(member.step or 0.0 for member in members), source, (), tuple(same_as))
    curves = [
        curve(track, quantity, "", [m.analysis.scalar(quantity.name) for m in members])
        for quantity in every_quantity(members)
    ]
    against: tuple[Literal["first", "previous"], ...] = ("first", "previous")
    for quantity in SCALARS:
        for other in against:
            found: list[Scalar | None] = [None] * len(members)
            for pair in pairs:
                if is_against(track, pair, other):
                    found[pair.second] = pair.scalar(quantity)
            curves.append(curve(track, quantity, other, found))
    kept = track.distinct
    outliers = find_outliers([[c.values[i] for i in kept] for c in curves if not c.against])
    return replace(track, curves=tuple(curves), outliers=tuple(kept[i] for i in outliers))


def is_against(track: Track, pair: Pair, other: Literal["first", "previous"]) -> bool:
    """Whether a pair is of a member and the first, or the previous one that is not a duplicate."""
    if other == "first":
        return pair.first == 0
    kept = track.distinct
    return pair.second in kept and pair.first == kept[kept.index(pair.second) - 1]


def curve(
    track: Track,
    quantity: Quantity,
    against: Literal["", "first", "previous"],
    scalars: Sequence[Scalar | None],
) -> Curve:
    """A number over training; its bend leaves duplicates out."""
    values = tuple(None if s is None else s.value for s in scalars)
    errors = tuple(None if s is None else s.standard_error for s in scalars)
    known = [i for i in track.distinct if values[i] is not None]
    found = bend(
        np.array([track.steps[i] for i in known], dtype=np.float64),
        np.array([values[i] for i in known], dtype=np.float64),
    )
    bent = (found, "") if isinstance(found, Bend) else (None, found)
    return Curve(quantity, against, values, errors, *bent)
