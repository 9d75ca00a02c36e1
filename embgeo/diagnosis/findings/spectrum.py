"""Do a few directions hold everything? By the first direction and the effective rank."""

from embgeo.core.quantities import cosine, spectrum, tokens
from embgeo.core.values import format_number
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question

_LEADS = {
    "degenerate": "The spectrum has collapsed: ",
    "mild": "The spectrum is uneven: ",
    "healthy": "The spectrum is spread out: ",
}


def answer(a: finding.Numbers) -> Answer:
    top, rank = finding.need(a, spectrum.TOP_SHARE), finding.need(a, spectrum.EFFECTIVE_RANK)
    share, d = float(top), finding.dimensions(a)
    rank_reference = rank.reference or float(d)
    by_norms = share_of_long_rows(a)
    by_top = judge_share(a, share)
    # Long rows do not bend the others: their energy is mentioned, but is not a collapse.
    if by_norms is not None:
        by_top = "mild"
    elif is_made_by_norms(a, share):
        by_top = "healthy"
    by_rank = limits.RANK_RATIO.state(float(rank) / rank_reference)
    state = max(by_top, by_rank, key=finding.RANK.__getitem__)
    top_parts: list[finding.Part] = [
        finding.quote_percent(top),
        f" of the energy (isotropic rows: {finding.format_percent(top.reference or 1.0 / d)})",
    ]
    rank_parts: list[finding.Part] = [
        finding.quote(rank),
        f" of {d:,} (isotropic rows: {format_number(rank_reference)})",
    ]
    parts: list[finding.Part] = [_LEADS[state]]
    if by_top == state:
        strongest = "the strongest" if state == "healthy" else "one"
        parts += [f"{strongest} direction holds ", *top_parts]
        parts += [", and the effective rank is ", *rank_parts, "."]
        clause = f"one direction holds {finding.format_percent(share)} of the energy"
    else:
        parts += ["the effective rank is ", *rank_parts]
        parts += [", and the strongest direction holds ", *top_parts, "."]
        clause = f"an effective rank of {finding.format_short(float(rank))} in {d:,} dimensions"
    if by_norms is not None:
        clause = f"{_describe_long_rows(a)} {finding.format_percent(by_norms)} of the energy"
        squared = finding.mean_squared_cosine(a) or 0.0
        spread = "Directions are spread all the same"
        if limits.LINE.state(squared) != "healthy":
            spread = "Rows of norm 1 would not have such a share in any direction"
        number = finding.Quote(cosine.STD.name, finding.format_short(squared))
        parts += [f" {spread} (mean squared cosine ", number, f"): {clause}."]
    return state, parts, clause if state != "healthy" else "no collapsed spectrum"


def judge_share(a: finding.Numbers, share: float) -> finding.State:
    """The state of the first direction's energy, also relative to an ordinary spectrum."""
    return finding.milder(
        limits.TOP_SHARE.state(share),
        limits.TOP_ODDS.state(finding.relative_odds(share, finding.ordinary_share(a))),
    )


def share_of_long_rows(a: finding.Numbers) -> float | None:
    """Share of the energy in a few long rows while directions are spread; None if it is small."""
    top, squared = finding.find_scalar(a, spectrum.TOP_SHARE), finding.mean_squared_cosine(a)
    if top is None or squared is None:
        return None
    energy = a.scalar(tokens.LONG_ROWS_ENERGY)
    is_spread = limits.LINE.state(squared) == "healthy"
    made = judge_share(a, float(top)) == "degenerate" and is_made_by_norms(a, float(top))
    if (is_spread or made) and count_long_rows(a) and energy is not None:
        return energy.value
    if made:
        return top.value
    rms, median = (
        finding.find_scalar(a, tokens.NORM_RMS),
        finding.find_scalar(a, tokens.NORM_MEDIAN),
    )
    damaged = finding.find_scalar(a, tokens.DAMAGED_ROWS)
    if damaged and damaged > limits.FEW_LONG_ROWS * finding.count_kept(a):
        return None  # the median is that of damaged rows, too
    if not rms or not median or not is_spread or rms < limits.LONG_ROWS * float(median):
        return None
    return 1.0 - (float(median) / float(rms)) ** 2


def count_long_rows(a: finding.Numbers) -> int:
    """Rows that are too long for lognormal norms; 0 where they are many or hold little."""
    rows, energy = (
        finding.find_scalar(a, tokens.LONG_ROWS),
        finding.find_scalar(a, tokens.LONG_ROWS_ENERGY),
    )
    if not rows or not energy:
        return 0
    few = rows <= limits.FEW_LONG_ROWS * int(a.provenance.get("kept") or 0)
    return int(rows) if few and energy >= limits.LONG_ROWS_ENERGY else 0


def _describe_long_rows(a: finding.Numbers) -> str:
    """``3 long rows hold``."""
    count = count_long_rows(a)
    if count == 1:
        return "1 long row holds"
    return f"{count:,} long rows hold" if count else "a few long rows hold"


def is_made_by_norms(a: finding.Numbers, share: float) -> bool:
    """Whether rows of unit length would not have such a share in any direction.

    The mean squared cosine is Σλ² over the eigenvalues' shares of the unit rows, at least the
    square of the largest share.
    """
    squared = finding.mean_squared_cosine(a)
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
