"""Are a few coordinates to blame? By their share of the variance and of the mean cosine."""

import math

from embgeo.core.quantities import coordinates, cosine
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.findings.spectrum import explain_by_norms
from embgeo.diagnosis.question import Answer, Question

#: Wide coordinates stand apart if a fall as 1/k from the widest would make more than this many
#: times their number; a fall as k^−1.5 makes four times their number.
GRADUAL = 5


def answer(a: finding.Numbers) -> Answer:
    if finding.dimensions(a) < 2:
        raise finding.Undecided("there is only one coordinate")
    tests = [found for judge in (_by_variance, _by_mean_cosine) if (found := judge(a))]
    if not tests:
        raise finding.Undecided("there is no cone to explain, and no variances of coordinates")
    # The test that decided comes first; the sort keeps the order of equals.
    tests.sort(key=lambda test: -finding.RANK[test[0]])
    state, _, clause = tests[0]
    return state, finding.join_parts(" ", [sentence for _, sentence, _ in tests]), clause


def _by_variance(a: finding.Numbers) -> Answer | None:
    if explain_by_norms(a):
        return None  # a coordinate holds much because these rows are long
    ratio = finding.find_scalar(a, coordinates.VARIANCE_RATIO)
    wide = finding.find_scalar(a, coordinates.ROGUE_COORDINATES)
    share = finding.find_scalar(a, coordinates.ROGUE_SHARE if wide else coordinates.VARIANCE_SHARE)
    if share is None or ratio is None or wide is None:
        return None
    state = finding.milder(
        limits.ROGUE_VARIANCE.state(float(share)), limits.ROGUE_SPREAD.state(float(ratio))
    )
    count = int(wide)
    # In principal axes coordinates are directions, whose shares the spectrum judges. Variances fall
    # gradually there: as 1/k from a widest one of `ratio` medians, ratio/25 coordinates are wide.
    ordinary = finding.ordinary_share(a, max(1, count))
    odds = finding.relative_odds(float(share), ordinary)
    is_gradual = float(ratio) <= GRADUAL * limits.ROGUE_SPREAD.mild * max(1, count)
    is_ordinary = is_gradual and limits.TOP_ODDS.state(odds) != "degenerate"
    lead = "The widest coordinate carries " if count < 2 else f"{count:,} coordinates carry "
    which = "" if count < 2 else " the widest of them"
    parts: list[finding.Part] = [
        lead,
        finding.quote_percent(share),
        f" of the variance,{which} ",
        finding.quote_short(ratio),
        " times that of the median coordinate.",
    ]
    if is_ordinary and state == "degenerate":
        state = "mild"
        parts.append(
            " An ordinary spectrum (λ_k ∝ 1/k) in its principal axes has "
            f"{finding.format_percent(ordinary)} in as many coordinates."
        )
    who = "one coordinate carries" if count < 2 else f"{count:,} coordinates carry"
    return state, parts, f"{who} {finding.format_percent(float(share))} of the variance"


def _by_mean_cosine(a: finding.Numbers) -> Answer | None:
    """Judge the mean cosine where the cone exceeds chance; at most mild where it is small."""
    mean = finding.find_scalar(a, cosine.MEAN)
    if mean is None or not finding.is_cone_significant(a):
        return None
    share, d = finding.need(a, cosine.MAX_DIMENSION_SHARE), finding.dimensions(a)
    expected = 2.0 * math.log(d) / d
    shares = _list_rogue_shares(a, expected) or [float(share)]
    count, value = len(shares), sum(shares)
    state = finding.milder(
        limits.ROGUE.state(value), limits.ROGUE_RATIO.state(value / (count * expected))
    )
    if limits.CONE.state(float(mean)) == "healthy":
        state = finding.milder(state, "mild" if finding.is_faint_cone(a) else "healthy")
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
    who = "one coordinate contributes" if count == 1 else f"{count:,} coordinates contribute"
    return state, [*parts, "."], f"{who} {finding.format_percent(value)} of the mean cosine"


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
    "Are a few coordinates to blame?",
    answer,
    geometry=True,
    is_cause=True,
    shown="fault",
    why="One to three coordinates can decide cosines and distances although the model hardly "
    "depends on them (Timkey and van Schijndel 2021).",
    advice="Before you compare rows, standardize every coordinate: subtract its mean and divide "
    "by its standard deviation (Timkey and van Schijndel 2021). Do not zero such coordinates "
    "in the model: removing outlier dimensions degrades it (Kovaleva et al. 2021).",
)
