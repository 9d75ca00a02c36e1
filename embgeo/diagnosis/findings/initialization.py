"""Do the rows look like an initialization? By directions, spectrum and norms."""

import math

from embgeo.core.quantities import cosine, frequency, spectrum, suspects, tokens
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question

#: Dimensions from which norms vary by 1/√(2d) of their mean, to four digits.
LARGE = 10_000


def answer(a: finding.Numbers) -> Answer:
    mean, p, variation = (
        finding.need(a, one) for one in (cosine.MEAN, spectrum.LARGEST_P, tokens.NORM_VARIATION)
    )
    spread = finding.isotropic_cosine_spread(a) or 0.0
    normal = vary_by_chance(finding.dimensions(a))
    # The standard deviation of norms is known to one part in √(2M).
    most = normal * (1.0 + limits.STANDARD_ERRORS * (2.0 * max(1, finding.count_kept(a))) ** -0.5)
    if (
        abs(float(mean)) > limits.STANDARD_ERRORS * spread
        or float(p) < limits.INITIAL_P
        or float(variation) > most
        or _has_other_structure(a)
    ):
        raise finding.Undecided("the rows have structure")
    parts: list[finding.Part] = [
        "The rows look like an initialization and hold no structure. Their mean cosine is ",
        finding.quote(mean),
        " (isotropic rows: 0). The top direction of unit rows is within chance (p = ",
        finding.quote_short(p, digits=2),
        "). Norms vary by ",
        finding.quote_short(variation, digits=2),
        f" of their mean (independent normal entries: {finding.format_short(normal)}). "
        "Check that the file holds the weights after training.",
    ]
    return "healthy", parts


def vary_by_chance(d: int) -> float:
    """Return the relative standard deviation of norms of rows of d independent normal entries.

    >>> round(vary_by_chance(3), 3), round(vary_by_chance(10**6) * (2 * 10**6) ** 0.5, 6)
    (0.422, 1.0)
    """
    if d > LARGE:  # where the difference would cancel
        return float((2.0 * d) ** -0.5)
    mean = math.sqrt(2.0) * math.exp(math.lgamma((d + 1.0) / 2.0) - math.lgamma(d / 2.0))
    return math.sqrt(d / mean**2 - 1.0)


def _has_other_structure(a: finding.Numbers) -> bool:
    """Tell whether rows are equal, or tell frequent from rare tokens."""
    if any(finding.find_scalar(a, one) for one in (suspects.DUPLICATE, suspects.NEAR_IDENTICAL)):
        return True
    area = finding.find_scalar(a, frequency.PROBE_AUC)
    if area is not None and float(area) - 0.5 > limits.STANDARD_ERRORS * (
        area.standard_error or 0.0
    ):
        return True
    rho = finding.find_scalar(a, frequency.NORM_SPEARMAN)
    chance = limits.STANDARD_ERRORS / math.sqrt(max(1, finding.count_kept(a) - 1))
    return rho is not None and abs(float(rho)) > chance


QUESTION = Question(
    "initialization",
    "Do the rows look like an initialization?",
    answer,
    shown="decided",
    why="Rows that were never trained, or whose training was never read, have no geometry yet.",
)
