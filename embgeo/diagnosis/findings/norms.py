"""Is a part of the rows far shorter, or longer, than the others? By the list of suspects."""

import numpy as np

from embgeo.core.suspects import REASONS, Suspects, describe_group
from embgeo.core.text import capital
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question


def answer(a: finding.Numbers) -> Answer:
    odd = max(find_odd(a), key=measure_ratio, default=None)
    if odd is None:
        return "healthy", ["No part of the rows is far shorter or longer than the others."]
    said = capital(describe_group(odd.reason, [odd]))
    return limits.ODD_NORMS.state(measure_ratio(odd)), [f"{said}: norms have two modes."]


def find_odd(a: finding.Numbers) -> list[Suspects]:
    """Find rows of odd norms that are not few; none where the others were never trained."""
    least = limits.NOT_FEW * finding.count_kept(a)
    many = [own for own in a.suspects if own.side == "input" and len(own) >= least]
    if any(own.reason == "untrained" for own in many):
        return []
    return [own for own in many if own.reason in ("long", "short")]


def measure_ratio(odd: Suspects) -> float:
    """Measure how many times shorter or longer they are."""
    if odd.values is None:
        return 1.0
    return float(np.median(odd.values if odd.reason == "long" else 1.0 / odd.values))


QUESTION = Question(
    "norms",
    "Is a part of the rows far shorter than the others?",
    answer,
    geometry=True,
    fault="norms of two modes",
    shown="fault",
    why="Dot products hardly see short rows, and a mean over all rows is that of the long ones.",
    advice=f"{capital(REASONS['short'].help)}. Compare rows by cosine, which norms do not change.",
)
