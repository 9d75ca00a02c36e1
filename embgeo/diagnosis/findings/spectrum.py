"""Has the spectrum collapsed? By the top direction and the effective rank."""

from embgeo.core.quantities import cosine, spectrum, tokens
from embgeo.core.values import format_number
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.question import Answer, Question

_LEADS = {
    "degenerate": "Collapsed spectrum: the ",
    "mild": "Uneven spectrum: the ",
    "healthy": "No collapsed spectrum: the ",
}


def answer(a: finding.Numbers) -> Answer:
    top, rank = finding.need(a, spectrum.TOP_SHARE), finding.need(a, spectrum.EFFECTIVE_RANK)
    share, d = float(top), finding.dimensions(a)
    rank_reference = rank.reference or float(d)
    by_norms = share_of_long_rows(a)
    by_top = judge_share(a, share)
    # Long rows do not bend the others: their share is mentioned, but is not a collapse.
    if by_norms is not None:
        by_top = "mild"
    elif is_made_by_norms(a, share):
        by_top = "healthy"
    by_rank = limits.RANK_RATIO.state(float(rank) / rank_reference)
    state = max(by_top, by_rank, key=finding.RANK.__getitem__)
    top_parts: list[finding.Part] = [
        "top direction carries ",
        finding.quote_percent(top),
        " of the variance (uncentered; isotropic rows: ",
        f"{finding.format_percent(top.reference or 1.0 / d)})",
    ]
    rank_parts: list[finding.Part] = [
        "effective rank is ",
        finding.quote(rank),
        f" of {d:,} (isotropic rows: {format_number(rank_reference)})",
    ]
    parts: list[finding.Part] = [_LEADS[state]]
    if by_top == state:
        parts += [*top_parts, ". The ", *rank_parts, "."]
        percent = finding.format_percent(share)
        clause = f"the top direction carries {percent} of the variance (uncentered)"
    else:
        parts += [*rank_parts, ". The ", *top_parts, "."]
        clause = f"an effective rank of {finding.format_short(float(rank))} in {d:,} dimensions"
    if by_norms is not None:
        rows = _describe_long_rows(a)
        clause = f"{rows} {finding.format_percent(by_norms)} of the variance (uncentered)"
        squared = finding.mean_squared_cosine(a) or 0.0
        spread = "The directions of the rows are spread out"
        if limits.LINE.state(squared) != "healthy":
            spread = "Unit rows would not put such a share on any direction"
        number = finding.Quote(cosine.STD.name, finding.format_short(squared))
        parts += [f" {spread} (mean squared cosine ", number, f"): {clause}."]
    return state, parts, clause if state != "healthy" else "no collapsed spectrum"


def judge_share(a: finding.Numbers, share: float) -> finding.State:
    """Judge the share of the top direction, also relative to an ordinary spectrum."""
    return finding.milder(
        limits.TOP_SHARE.state(share),
        limits.TOP_ODDS.state(finding.relative_odds(share, finding.ordinary_share(a))),
    )


def share_of_long_rows(a: finding.Numbers) -> float | None:
    """Return the share of Σ‖w‖² in a few long rows while directions are spread, or None."""
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
    """Write the subject: ``3 long rows carry``."""
    count = count_long_rows(a)
    if count == 1:
        return "1 long row carries"
    return f"{count:,} long rows carry" if count else "a few long rows carry"


def is_made_by_norms(a: finding.Numbers, share: float) -> bool:
    """Whether rows of unit length would not have such a share in any direction.

    The mean squared cosine is Σλ² over the eigenvalues' shares of the unit rows, at least the
    square of the largest share.
    """
    squared = finding.mean_squared_cosine(a)
    return squared is not None and squared**0.5 < share / 2.0


QUESTION = Question(
    "spectrum",
    "Has the spectrum collapsed?",
    answer,
    geometry=True,
    essential=True,
    why="Tokens then differ along few directions. The other dimensions add little (Gao et "
    "al. 2019; Wang et al. 2020).",
    advice="In training, spectrum control sets how singular values fall (Wang et al. 2020): "
    "embgeo train --data TEXT --compare mle,sc-exp,sc-poly. If a few long rows carry the "
    "variance, look at the table of the largest norms first, and compare rows by cosine, which "
    "norms do not change.",
)
