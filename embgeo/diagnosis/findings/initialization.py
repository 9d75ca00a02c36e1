"""Can the rows be told from an initialization? By directions, spectrum and norms."""

from __future__ import annotations

import math

from embgeo.core.quantities import cosine, frequency, spectrum, tokens
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import (
    Numbers,
    Part,
    Undecided,
    count_kept,
    dimensions,
    find_scalar,
    format_short,
    isotropic_cosine_spread,
    need,
    quote,
    quote_short,
)
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    mean, p, variation = (
        need(a, one) for one in (cosine.MEAN, spectrum.LARGEST_P, tokens.NORM_VARIATION)
    )
    spread = isotropic_cosine_spread(a) or 0.0
    normal = (2.0 * dimensions(a)) ** -0.5
    # The standard deviation of norms is known to one part in √(2M).
    most = normal * (1.0 + limits.STANDARD_ERRORS * (2.0 * max(1, count_kept(a))) ** -0.5)
    if (
        abs(float(mean)) > limits.STANDARD_ERRORS * spread
        or float(p) < limits.INITIAL_P
        or float(variation) > most
        or _has_other_structure(a)
    ):
        raise Undecided("the rows have structure")
    parts: list[Part] = [
        "The rows cannot be told from an initialization, they hold no structure: their mean cosine "
        "is ",
        quote(mean),
        f" (isotropic rows: 0 ± {format_short(spread)}), the strongest direction of unit rows is "
        "within chance (p = ",
        quote_short(p, digits=2),
        "), and norms vary by ",
        quote_short(variation, digits=2),
        f" of their mean (independent normal entries: {format_short(normal)}).",
    ]
    return "healthy", parts, "the rows cannot be told from an initialization"


def _has_other_structure(a: Numbers) -> bool:
    """Whether rows are equal, or tell frequent from rare tokens."""
    duplicates = find_scalar(a, tokens.DUPLICATE_ROWS)
    if duplicates:
        return True
    area = find_scalar(a, frequency.PROBE_AUC)
    if area is not None and float(area) - 0.5 > limits.STANDARD_ERRORS * (
        area.standard_error or 0.0
    ):
        return True
    rho = find_scalar(a, frequency.NORM_SPEARMAN)
    chance = limits.STANDARD_ERRORS / math.sqrt(max(1, count_kept(a) - 1))
    return rho is not None and abs(float(rho)) > chance


QUESTION = Question(
    "initialization",
    "Can the rows be told from an initialization?",
    answer,
    shown="decided",
    why="Rows that were never trained, or whose training was never read, have no geometry yet.",
    advice="Look whether the file holds the weights after training: embgeo inspect FILE.",
)
