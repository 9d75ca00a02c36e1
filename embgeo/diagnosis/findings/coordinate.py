"""Do a few coordinates dominate? By their share of the variance and of the mean cosine.

Another basis has other coordinates: the answer names causes and decides no state.
"""

import math

from embgeo.core.quantities import coordinates, cosine
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.findings.spectrum import explain_by_norms
from embgeo.diagnosis.question import Answer, Question

#: Fewer wide coordinates than these may be the first ones by chance.
LEAST_LEADING = 4


def answer(a: finding.Numbers) -> Answer:
    if finding.dimensions(a) < 2:
        raise finding.Undecided("there is only one coordinate")
    if a.provenance.get("principal_axes"):
        raise finding.Undecided("coordinates are principal axes, whose shares the spectrum judges")
    tests = [found for judge in (_by_variance, _by_mean_cosine) if (found := judge(a))]
    if not tests:
        raise finding.Undecided("there is no cone to explain, and no variances of coordinates")
    # The test that decided comes first; the sort keeps the order of equals.
    tests.sort(key=lambda test: -finding.RANK[test[0]])
    return tests[0][0], finding.join_parts(" ", [sentence for _, sentence in tests])


def _by_variance(a: finding.Numbers) -> Answer | None:
    if explain_by_norms(a):
        return None  # a coordinate holds much because these rows are long
    ratio = finding.find_scalar(a, coordinates.VARIANCE_RATIO)
    wide = finding.find_scalar(a, coordinates.ROGUE_COORDINATES)
    share = finding.find_scalar(a, coordinates.ROGUE_SHARE)
    if share is None or ratio is None or not wide:
        return None
    state = finding.milder(
        limits.ROGUE_VARIANCE.state(float(share)), limits.ROGUE_SPREAD.state(float(ratio))
    )
    count = int(wide)
    lead = "The widest coordinate carries " if count < 2 else f"{count:,} coordinates carry "
    which = "" if count < 2 else " the widest of them"
    parts: list[finding.Part] = [
        lead,
        finding.quote_percent(share),
        f" of the variance,{which} ",
        finding.quote_short(ratio),
        " times that of the median coordinate.",
    ]
    return state, parts


def advise_on_coordinates(a: finding.Numbers) -> str:
    """Return the advice; columns of a nested table are wide because they come first."""
    wide = int(finding.find_scalar(a, coordinates.ROGUE_COORDINATES) or 0)
    table = finding.find_table(a, coordinates.LARGEST)
    first = table is not None and all(int(row[0] or 0) < wide for row in table.rows[:wide])
    if wide >= LEAST_LEADING and first:
        return (
            "The wide coordinates come first, as in nested (Matryoshka) tables, which can be cut "
            "after them (Kusupati et al. 2022): compare the rows as they are."
        )
    return (
        "Before you compare rows, standardize every coordinate: subtract its mean and divide "
        "by its standard deviation (Timkey and van Schijndel 2021). Do not zero such coordinates "
        "in the model: removing outlier dimensions degrades it (Kovaleva et al. 2021)."
    )


def _by_mean_cosine(a: finding.Numbers) -> Answer | None:
    """Judge the mean cosine where the cone exceeds chance; never worse than the cone itself."""
    mean = finding.find_scalar(a, cosine.MEAN)
    if mean is None or not finding.is_cone_significant(a):
        return None
    share, d = finding.need(a, cosine.MAX_DIMENSION_SHARE), finding.dimensions(a)
    count, value, state = _judge_makers(a, float(share))
    state = finding.milder(state, limits.CONE.state(float(mean)))
    expected = _expect_share(d)
    who = "A single coordinate contributes" if count == 1 else f"{count:,} coordinates contribute"
    parts: list[finding.Part] = [
        f"{who} ",
        finding.quote(share, finding.format_percent(value)),
        " of the mean cosine (the largest of a random direction in "
        f"{d:,} dimensions: about {finding.format_percent(expected)})",
    ]
    left = finding.find_scalar(a, coordinates.MEAN_COSINE_WITHOUT_1)
    if left is not None and _is_largest_among(a, count):
        one = "it" if count == 1 else "the largest of them"
        parts += [f". Without {one} the mean cosine is ", finding.quote_short(left)]
    return state, [*parts, "."]


def count_makers(a: finding.Numbers) -> int:
    """Count the coordinates that make the mean cosine; 0 where no few do, or axes are principal."""
    share = finding.find_scalar(a, cosine.MAX_DIMENSION_SHARE)
    if share is None or finding.dimensions(a) < 2 or a.provenance.get("principal_axes"):
        return 0
    count, _, state = _judge_makers(a, float(share))
    return 0 if state == "healthy" else count


def _judge_makers(a: finding.Numbers, largest: float) -> tuple[int, float, finding.State]:
    """Return how many coordinates make much of the mean cosine, their share, and how much it is."""
    expected = _expect_share(finding.dimensions(a))
    shares = _list_rogue_shares(a, expected) or [largest]
    count, value = len(shares), sum(shares)
    return (
        count,
        value,
        finding.milder(
            limits.ROGUE.state(value), limits.ROGUE_RATIO.state(value / (count * expected))
        ),
    )


def _expect_share(d: int) -> float:
    """Return the square of the largest coordinate of a random unit vector, about."""
    return 2.0 * math.log(d) / d


def _is_largest_among(a: finding.Numbers, count: int) -> bool:
    """Tell whether the largest coordinate is one of those that contribute most."""
    makers = finding.find_table(a, cosine.TOP_DIMENSIONS)
    largest = finding.find_table(a, coordinates.LARGEST)
    if makers is None or largest is None:
        return True
    return largest.rows[0][0] in [row[0] for row in makers.rows[:count]]


def _list_rogue_shares(a: finding.Numbers, expected: float) -> list[float]:
    """List the shares of the mean cosine that are each beyond those of a random direction."""
    table = finding.find_table(a, cosine.TOP_DIMENSIONS)
    shares = [] if table is None else [float(row[1] or 0.0) for row in table.rows]
    return [one for one in shares if limits.ROGUE_RATIO.state(one / expected) != "healthy"]


QUESTION = Question(
    "coordinate",
    "Do a few coordinates dominate?",
    answer,
    by_axes=True,
    fault="dominant coordinates",
    shown="fault",
    why="One to three coordinates can decide cosines and distances although the model hardly "
    "depends on them (Timkey and van Schijndel 2021).",
    advice=advise_on_coordinates,
)
