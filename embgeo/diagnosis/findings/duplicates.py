"""Are many rows equal? By the shares of rows that equal an earlier one, or nearly."""

from embgeo.core.quantities import cosine, tokens
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question


def answer(a: finding.Numbers) -> Answer:
    equal = finding.need(a, tokens.DUPLICATE_ROWS)
    share = float(equal) / max(1, finding.count_kept(a))
    percent = finding.format_percent(share)
    parts: list[finding.Part] = [finding.quote(equal, percent), " of the rows equal an earlier row"]
    distinct = finding.find_scalar(a, tokens.MEAN_COSINE_DISTINCT)
    if distinct is not None:
        parts += [
            ". With every row counted once, the mean cosine is ",
            finding.quote_short(distinct),
        ]
    state, clause = limits.DUPLICATES.state(share), f"{percent} duplicate rows"
    near = finding.find_scalar(a, tokens.NEAR_DUPLICATE_SHARE)
    by_near = _judge_twins(a)
    if near is not None and finding.RANK[by_near] > finding.RANK[state]:
        state, clause = by_near, f"{finding.format_percent(float(near))} near-duplicate rows"
        parts = [
            finding.quote_percent(near),
            " of the rows have another one at a cosine above 0.999. ",
            *parts,
        ]
    return state, [*parts, "."], clause


def _judge_twins(a: finding.Numbers) -> finding.State:
    """Return the state of near-duplicates beyond chance.

    In a narrow cone all rows are near each other.
    """
    near, mean = (
        finding.find_scalar(a, tokens.NEAR_DUPLICATE_SHARE),
        finding.find_scalar(a, cosine.MEAN),
    )
    squared = finding.mean_squared_cosine(a)
    if near is None or mean is None or squared is None or near.reference is None:
        return "healthy"
    if "degenerate" in (limits.CONE.state(float(mean)), limits.LINE.state(squared)):
        return "healthy"
    beyond = float(near) - near.reference
    if near.reference > 0.5 or beyond <= limits.STANDARD_ERRORS * (near.standard_error or 0.0):
        return "healthy"
    return limits.NEAR_DUPLICATES.state(beyond / (1.0 - near.reference))


def advise(a: finding.Numbers) -> str:
    """Advise by the kind of duplicates: equal rows may be untrained, near ones are not."""
    share = float(finding.need(a, tokens.DUPLICATE_ROWS)) / max(1, finding.count_kept(a))
    if finding.RANK[_judge_twins(a)] > finding.RANK[limits.DUPLICATES.state(share)]:
        return (
            "See which rows are nearest to each other on the map: copies with noise, variants of "
            "one text or token. Keep one of each where they mean the same, and measure again."
        )
    return (
        "The table of duplicate rows names them. Most equal rows were never trained and keep a "
        "common initial value: train these tokens, or leave out their rows and measure again."
    )


QUESTION = Question(
    "duplicates",
    "Are many rows equal?",
    answer,
    geometry=True,
    is_cause=True,
    shown="fault",
    any_size=True,
    one_dimension=True,
    why="No model can tell equal rows apart, and cosines hardly those that are nearly equal.",
    advice=advise,
)
