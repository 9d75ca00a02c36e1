"""Do a few directions hold everything? By the first direction and the effective rank."""

from __future__ import annotations

from embgeo.core.quantities import cosine, spectrum
from embgeo.core.values import format_number
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import (
    RANK,
    Numbers,
    Part,
    Quote,
    State,
    dimensions,
    format_percent,
    format_short,
    mean_squared_cosine,
    milder,
    need,
    reference_of,
    value_of,
)
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    top, rank = need(a, spectrum.TOP_SHARE), need(a, spectrum.EFFECTIVE_RANK)
    share, d = value_of(top), dimensions(a)
    share_reference = reference_of(top, 1.0 / d)
    rank_reference = reference_of(rank, float(d))
    by_top = milder(limits.TOP_SHARE.state(share), limits.TOP_RATIO.state(share / share_reference))
    by_rank = limits.RANK_RATIO.state(value_of(rank) / rank_reference)
    state: State = max(by_top, by_rank, key=RANK.__getitem__)
    parts: list[Part] = [
        {
            "degenerate": "The spectrum has collapsed: one direction holds ",
            "mild": "The spectrum is uneven: one direction holds ",
            "healthy": "The spectrum is spread out: the strongest direction holds ",
        }[state],
        Quote(top.name, format_percent(share)),
        f" of the energy (isotropic rows: {format_percent(share_reference)})",
        ", and the effective rank is ",
        Quote(rank.name, rank.text),
        f" of {d:,} (isotropic rows: {format_number(rank_reference)}).",
    ]
    if few_large_rows(a):
        parts += [
            " Directions are spread all the same (mean squared cosine ",
            Quote(cosine.STD.name, format_number(mean_squared_cosine(a) or 0.0, 3)),
            "): a few rows of very large norm carry that energy.",
        ]
    if by_top == "healthy" and by_rank == state != "healthy":
        clause = f"an effective rank of {format_short(value_of(rank))} in {d:,} dimensions"
    else:
        clause = f"one direction holds {format_percent(share)} of the energy"
    return state, tuple(parts), clause if state != "healthy" else "no collapsed spectrum"


def few_large_rows(a: Numbers) -> bool:
    """Whether one direction holds most of the energy while the directions of rows are spread."""
    top, squared = a.scalar(spectrum.TOP_SHARE), mean_squared_cosine(a)
    if top is None or top.value is None or squared is None:
        return False
    ratio = top.value / reference_of(top, 1.0 / dimensions(a))
    by_top = milder(limits.TOP_SHARE.state(top.value), limits.TOP_RATIO.state(ratio))
    return by_top == "degenerate" and limits.LINE.state(squared) == "healthy"


QUESTION = Question(
    "spectrum", "Do a few directions hold everything?", answer, geometry=True, essential=True
)
