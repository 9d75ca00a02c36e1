"""Are many rows equal? By the shares of rows that equal an earlier one, or nearly."""

from __future__ import annotations

from embgeo.core.quantities import cosine, tokens
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import (
    RANK,
    Numbers,
    Part,
    State,
    count_kept,
    find_scalar,
    format_percent,
    mean_squared_cosine,
    need,
    quote,
    quote_percent,
    quote_short,
)
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    equal = need(a, tokens.DUPLICATE_ROWS)
    share = float(equal) / max(1, count_kept(a))
    percent = format_percent(share)
    parts: list[Part] = [quote(equal, percent), " of the rows equal an earlier row"]
    distinct = find_scalar(a, tokens.MEAN_COSINE_DISTINCT)
    if distinct is not None:
        parts += ["; with every row counted once, the mean cosine is ", quote_short(distinct)]
    state, clause = limits.DUPLICATES.state(share), f"{percent} duplicate rows"
    near = find_scalar(a, tokens.NEAR_DUPLICATE_SHARE)
    by_near = _judge_twins(a)
    if near is not None and RANK[by_near] > RANK[state]:
        state, clause = by_near, f"{format_percent(float(near))} near-duplicate rows"
        parts = [
            quote_percent(near),
            " of the rows have another one at a cosine above 0.999; ",
            *parts,
        ]
    return state, [*parts, "."], clause


def _judge_twins(a: Numbers) -> State:
    """The state of near-duplicates beyond chance; in a narrow cone all rows are near each other."""
    near, mean = find_scalar(a, tokens.NEAR_DUPLICATE_SHARE), find_scalar(a, cosine.MEAN)
    squared = mean_squared_cosine(a)
    if near is None or mean is None or squared is None or near.reference is None:
        return "healthy"
    if "degenerate" in (limits.CONE.state(float(mean)), limits.LINE.state(squared)):
        return "healthy"
    beyond = float(near) - near.reference
    if near.reference > 0.5 or beyond <= limits.STANDARD_ERRORS * (near.standard_error or 0.0):
        return "healthy"
    return limits.NEAR_DUPLICATES.state(beyond / (1.0 - near.reference))


QUESTION = Question(
    "duplicates",
    "Are many rows equal?",
    answer,
    geometry=True,
    is_cause=True,
    shown="fault",
    any_size=True,
    one_dimension=True,
    why="Nothing that reads them can tell equal rows apart. Most were never trained and keep "
    "a common initial value.",
    advice="The table of duplicate rows names them. Train these tokens, or leave their rows out "
    "before the other numbers are read.",
)
