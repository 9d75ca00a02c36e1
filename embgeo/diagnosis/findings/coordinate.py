"""Is a single coordinate to blame? By its share of the mean cosine."""

from __future__ import annotations

import math

from embgeo.core.quantities import cosine
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import (
    Numbers,
    Part,
    Quote,
    Undecided,
    dimensions,
    format_percent,
    milder,
    need,
    value_of,
)
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    share = need(a, cosine.MAX_DIMENSION_SHARE)
    mean = need(a, cosine.MEAN)
    d = dimensions(a)
    if d < 2 or limits.CONE.state(value_of(mean)) == "healthy":
        raise Undecided("there is no cone to explain")
    value = value_of(share)
    expected = 2.0 * math.log(d) / d
    state = milder(limits.ROGUE.state(value), limits.ROGUE_RATIO.state(value / expected))
    parts: tuple[Part, ...] = (
        "A single coordinate makes ",
        Quote(share.name, format_percent(value)),
        f" of that mean cosine (a random direction in {d:,} dimensions: about "
        f"{format_percent(expected)}): a rogue coordinate, which centring removes.",
    )
    return state, parts, ""


QUESTION = Question("coordinate", "Is a single coordinate to blame?", answer, shown="fault")
