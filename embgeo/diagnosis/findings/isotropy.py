"""Are all directions alike? By the partition function at unit scale."""

import math

from embgeo.core.quantities import isotropy
from embgeo.core.values import Scalar
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question

_LEADS = {
    "degenerate": ("Directions are far from alike", "to"),
    "mild": ("Directions are not alike", "to"),
    "healthy": ("Directions are nearly alike", "no lower than"),
}


def answer(a: finding.Numbers) -> Answer:
    # Files of earlier versions have only the variant that divides all rows by one number.
    old = a.scalar(isotropy.I1_UNIT_ROWS) is None and a.scalar(isotropy.I1_UNIT) is not None
    unit = finding.need(a, isotropy.I1_UNIT if old else isotropy.I1_UNIT_ROWS)
    value = float(unit)
    state = limits.PARTITION.state(value)
    if unit.reference is not None and 0.0 < unit.reference < 1.0 and value > 0.0:
        multiple = math.log(value) / math.log(unit.reference)
        state = finding.milder(state, limits.PARTITION_MULTIPLE.state(multiple))
    lead, bound = _LEADS[state]
    parts: list[finding.Part] = [
        f"{lead}: with every row scaled to norm 1, the partition function falls {bound} ",
        finding.quote(unit),
        " of its peak",
        _describe_reference(unit),
    ]
    raw = finding.find_scalar(a, isotropy.I1)
    if raw is not None:
        parts += ["; as stored, where large norms alone can lower it, to ", finding.quote(raw)]
        parts.append(_describe_reference(raw))
    parts.append(".")
    gap = finding.find_scalar(a, isotropy.EIGENGAP)
    if gap is not None and gap < limits.EIGENGAP:
        parts += [
            " Two eigenvalues nearly coincide (relative gap ",
            finding.quote(gap),
            "), so these numbers depend on the choice of eigenvectors.",
        ]
    return (
        state,
        parts,
        f"an uneven partition function (I1 of unit rows {finding.format_short(value)})",
    )


def _describe_reference(scalar: Scalar) -> str:
    return f" (isotropic rows: {scalar.reference_text})" if scalar.reference is not None else ""


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
