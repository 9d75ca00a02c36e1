"""Are many rows equal? By the share of rows that equal an earlier one."""

from __future__ import annotations

from embgeo.core.quantities import tokens
from embgeo.core.values import format_number
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import Numbers, Part, Quote, State, format_percent, need, value_of
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    equal = need(a, tokens.DUPLICATE_ROWS)
    share = value_of(equal) / max(1, int(a.provenance.get("kept") or 1))
    state: State = limits.DUPLICATES.state(share)
    parts: list[Part] = [
        Quote(equal.name, format_percent(share)),
        " of the rows equal an earlier row",
    ]
    distinct = a.scalar(tokens.MEAN_COSINE_DISTINCT)
    if distinct is not None and distinct.value is not None:
        parts += [
            "; with every row counted once, the mean cosine is ",
            Quote(distinct.name, format_number(distinct.value, 3)),
        ]
    return state, (*parts, "."), f"{format_percent(share)} duplicate rows"


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
