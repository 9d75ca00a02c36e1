"""Are all directions alike? By the partition function at unit scale."""

from __future__ import annotations

import math

from embgeo.core.quantities import isotropy
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import (
    Numbers,
    Part,
    Quote,
    State,
    format_short,
    milder,
    need,
    value_of,
)
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    # Files of earlier versions have only the variant that divides all rows by one number.
    old = a.scalar(isotropy.I1_UNIT_ROWS) is None and a.scalar(isotropy.I1_UNIT) is not None
    unit = need(a, isotropy.I1_UNIT if old else isotropy.I1_UNIT_ROWS)
    value = value_of(unit)
    state: State = limits.PARTITION.state(value)
    if unit.reference is not None and 0.0 < unit.reference < 1.0 and value > 0.0:
        multiple = math.log(value) / math.log(unit.reference)
        state = milder(state, limits.PARTITION_MULTIPLE.state(multiple))
    parts: list[Part] = [
        {
            "degenerate": "Directions are far from alike: with every row scaled to norm 1, the "
            "partition function falls to ",
            "mild": "Directions are not alike: with every row scaled to norm 1, the partition "
            "function falls to ",
            "healthy": "Directions are nearly alike: with every row scaled to norm 1, the "
            "partition function falls no lower than ",
        }[state],
        Quote(unit.name, unit.text),
        " of its peak",
    ]
    if unit.reference is not None:
        parts.append(f" (isotropic rows: {unit.reference_text})")
    raw = a.scalar(isotropy.I1)
    if raw is not None and raw.value is not None:
        parts += [
            "; as stored, where large norms alone can lower it, to ",
            Quote(raw.name, raw.text),
        ]
        if raw.reference is not None:
            parts.append(f" (isotropic rows: {raw.reference_text})")
    parts.append(".")
    gap = a.scalar(isotropy.EIGENGAP)
    if gap is not None and gap.value is not None and gap.value < limits.EIGENGAP:
        parts += [
            " Two eigenvalues nearly coincide (relative gap ",
            Quote(gap.name, gap.text),
            "), so these numbers depend on the choice of eigenvectors.",
        ]
    return (
        state,
        tuple(parts),
        f"an uneven partition function (I1 of unit rows {format_short(value)})",
    )


QUESTION = Question(
    "isotropy",
    "Are all directions alike?",
    answer,
    geometry=True,
    why="Logits then depend on where a context points, whatever the token: log-linear models "
    "presuppose a partition function that is nearly the same in all directions (Arora et "
    "al. 2016).",
    advice="It mostly follows from a cone or a collapsed spectrum, and goes with them. Compare "
    "the centered I1: where that is near 1, the mean row is the cause.",
)
