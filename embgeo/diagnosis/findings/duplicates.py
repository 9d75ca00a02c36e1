"""Are many rows equal? By the share of rows that equal an earlier one."""

from __future__ import annotations

from embgeo.core.quantities import tokens
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import (
    Numbers,
    Part,
    find_scalar,
    format_percent,
    need,
    quote,
    quote_short,
)
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    equal = need(a, tokens.DUPLICATE_ROWS)
    share = float(equal) / max(1, int(a.provenance.get("kept") or 1))
    percent = format_percent(share)
    parts: list[Part] = [quote(equal, percent), " of the rows equal an earlier row"]
    distinct = find_scalar(a, tokens.MEAN_COSINE_DISTINCT)
    if distinct is not None:
        parts += ["; with every row counted once, the mean cosine is ", quote_short(distinct)]
    return limits.DUPLICATES.state(share), [*parts, "."], f"{percent} duplicate rows"


QUESTION = Question(
    "duplicates",
    "Are many rows equal?",
    answer,
    geometry=True,
    is_cause=True,
    shown="fault",
    why="Nothing that reads them can tell equal rows apart. Most were never trained and keep "
    "a common initial value.",
    advice="The table of duplicate rows names them. Train these tokens, or leave their rows out "
    "before the other numbers are read.",
)
