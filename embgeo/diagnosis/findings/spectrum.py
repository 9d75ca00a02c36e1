"""Do a few directions hold everything? By the first direction and the effective rank."""

from __future__ import annotations

from embgeo.core.quantities import cosine, spectrum, tokens
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
from embgeo.diagnosis.ordinary import ordinary_share, relative_odds
from embgeo.diagnosis.question import Answer, Question


def answer(a: Numbers) -> Answer:
    top, rank = need(a, spectrum.TOP_SHARE), need(a, spectrum.EFFECTIVE_RANK)
    share, d = value_of(top), dimensions(a)
    share_reference = reference_of(top, 1.0 / d)
    rank_reference = reference_of(rank, float(d))
    by_norms = share_of_long_rows(a)
    by_top: State = judge_share(a, share)
    # Long rows do not bend the others: what they hold is worth a word, and no collapse.
    if by_norms is not None:
        by_top = "mild"
    elif is_made_by_norms(a, share):
        by_top = "healthy"
    by_rank = limits.RANK_RATIO.state(value_of(rank) / rank_reference)
    state: State = max(by_top, by_rank, key=RANK.__getitem__)
    top_parts: list[Part] = [
        Quote(top.name, format_percent(share)),
        f" of the energy (isotropic rows: {format_percent(share_reference)})",
    ]
    rank_parts: list[Part] = [
        Quote(rank.name, rank.text),
        f" of {d:,} (isotropic rows: {format_number(rank_reference)})",
    ]
    parts: list[Part] = [
        {
            "degenerate": "The spectrum has collapsed: ",
            "mild": "The spectrum is uneven: ",
            "healthy": "The spectrum is spread out: ",
        }[state]
    ]
    if by_top == state:
        strongest = "the strongest" if state == "healthy" else "one"
        parts += [f"{strongest} direction holds ", *top_parts]
        parts += [", and the effective rank is ", *rank_parts, "."]
        clause = f"one direction holds {format_percent(share)} of the energy"
    else:
        parts += ["the effective rank is ", *rank_parts]
        parts += [", and the strongest direction holds ", *top_parts, "."]
        clause = f"an effective rank of {format_short(value_of(rank))} in {d:,} dimensions"
    if by_norms is not None:
        clause = f"{_describe_long_rows(a)} {format_percent(by_norms)} of the energy"
        squared = mean_squared_cosine(a) or 0.0
        spread = "Directions are spread all the same"
        if limits.LINE.state(squared) != "healthy":
            spread = "Rows of norm 1 would not have such a share in any direction"
        parts += [
            f" {spread} (mean squared cosine ",
            Quote(cosine.STD.name, format_number(squared, 3)),
            f"): {clause}.",
        ]
    return state, tuple(parts), clause if state != "healthy" else "no collapsed spectrum"


def judge_share(a: Numbers, share: float) -> State:
    """The energy of the first direction, by itself and against an ordinary spectrum."""
    return milder(
        limits.TOP_SHARE.state(share),
        limits.TOP_ODDS.state(relative_odds(share, ordinary_share(a))),
    )


def share_of_long_rows(a: Numbers) -> float | None:
    """Share of the energy in a few long rows while directions are spread; None if it is small."""
    top, squared = a.scalar(spectrum.TOP_SHARE), mean_squared_cosine(a)
    if top is None or top.value is None or squared is None:
        return None
    energy = a.scalar(tokens.LONG_ROWS_ENERGY)
    is_spread = limits.LINE.state(squared) == "healthy"
    made = judge_share(a, top.value) == "degenerate" and is_made_by_norms(a, top.value)
    if (is_spread or made) and count_long_rows(a) and energy is not None:
        return energy.value
    if made:
        return top.value
    rms, median = a.scalar(tokens.NORM_RMS), a.scalar(tokens.NORM_MEDIAN)
    if rms is None or median is None or not rms.value or not median.value:
        return None
    if not is_spread or rms.value < limits.LONG_ROWS * median.value:
        return None
    return 1.0 - (median.value / rms.value) ** 2


def count_long_rows(a: Numbers) -> int:
    """How many rows are too long for lognormal norms; 0 where they are many or hold little."""
    rows, energy = a.scalar(tokens.LONG_ROWS), a.scalar(tokens.LONG_ROWS_ENERGY)
    if rows is None or energy is None or not rows.value or not energy.value:
        return 0
    few = rows.value <= limits.FEW_LONG_ROWS * int(a.provenance.get("kept") or 0)
    return int(rows.value) if few and energy.value >= limits.LONG_ROWS_ENERGY else 0


def _describe_long_rows(a: Numbers) -> str:
    """``3 long rows hold``."""
    count = count_long_rows(a)
    if count == 1:
        return "1 long row holds"
    return f"{count:,} long rows hold" if count else "a few long rows hold"


def is_made_by_norms(a: Numbers, share: float) -> bool:
    """Whether rows of unit length would not have such a share in any direction.

    The mean squared cosine is Σλ² over the eigenvalues' shares of the unit rows, at least the
    square of the largest share.
    """
    squared = mean_squared_cosine(a)
    return squared is not None and squared**0.5 < share / 2.0


QUESTION = Question(
    "spectrum",
    "Do a few directions hold everything?",
    answer,
    geometry=True,
    essential=True,
    why="Tokens then differ along few directions, and the other dimensions add little (Gao et "
    "al. 2019; Wang et al. 2020).",
    advice="In training, spectrum control sets how singular values fall (Wang et al. 2020): "
    "embgeo train --data TEXT --compare mle,sc-exp,sc-poly. Where a few long rows hold "
    "the energy, look at the table of the largest norms first, and compare rows by "
    "cosine, which norms do not change.",
)
