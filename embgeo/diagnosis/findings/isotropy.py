"""Is the partition function isotropic? By I1 of unit rows."""

import math

from embgeo.core.quantities import isotropy
from embgeo.core.values import Scalar
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question

_LEADS = {
    "degenerate": "Far from isotropic",
    "mild": "Not isotropic",
    "healthy": "Nearly isotropic",
}


def answer(a: finding.Numbers) -> Answer:
    unit = finding.need(a, isotropy.I1_UNIT_ROWS)
    value = float(unit)
    state = limits.PARTITION.state(value)
    if unit.reference is not None and 0.0 < unit.reference < 1.0 and value > 0.0:
        multiple = math.log(value) / math.log(unit.reference)
        state = finding.milder(state, limits.PARTITION_MULTIPLE.state(multiple))
    parts: list[finding.Part] = [
        f"{_LEADS[state]}: {unit.quantity.title} = ",
        finding.quote(unit),
        _describe_reference(unit),
    ]
    parts.append(".")
    gap = finding.find_scalar(a, isotropy.EIGENGAP)
    if gap is not None and gap < limits.EIGENGAP:
        parts += [
            " Two eigenvalues nearly coincide (relative gap ",
            finding.quote(gap),
            "): the value depends on the choice of eigenvectors.",
        ]
    return state, parts


def _describe_reference(scalar: Scalar) -> str:
    if scalar.reference is None:
        return ""
    return f" (isotropic rows: {finding.format_short(scalar.reference)})"


QUESTION = Question(
    "isotropy",
    "Is the partition function isotropic?",
    answer,
    geometry=True,
    fault="anisotropic partition function",
    why="Logits then depend on the direction of the context, regardless of the token. Log-linear "
    "models assume a partition function that is nearly the same in all directions (Arora et "
    "al. 2016).",
    advice="It usually follows from a cone or a collapsed spectrum, and goes away with them. "
    "If I1 is near 1 once the mean row is subtracted, that row is the cause.",
)
