"""Has the spectrum collapsed? By the top direction and the effective rank."""

from embgeo.core.quantities import cosine, spectrum, tokens
from embgeo.diagnosis import finding
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.findings import two_sided
from embgeo.diagnosis.origin import advise
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
    by_norms = explain_by_norms(a)
    by_top = judge_share(a, share)
    # Long rows do not bend the others: their share is mentioned, but is not a collapse.
    if by_norms:
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
        f" of {d:,} (isotropic rows: {finding.format_short(rank_reference)})",
    ]
    parts: list[finding.Part] = [_LEADS[state]]
    if by_top == state:
        parts += [*top_parts, ". The ", *rank_parts, "."]
    else:
        parts += [*rank_parts, ". The ", *top_parts, "."]
    if by_norms:
        squared = finding.mean_squared_cosine(a) or 0.0
        spread = "The directions of the rows are spread out"
        if limits.LINE.state(squared) != "healthy":
            spread = "Unit rows would not put such a share on any direction"
        number = finding.Quote(cosine.STD.name, finding.format_short(squared))
        parts += [f" {spread} (mean squared cosine ", number, f"): {by_norms}."]
    return state, parts


def judge_share(a: finding.Numbers, share: float) -> finding.State:
    """Judge the share of the top direction, also relative to an ordinary spectrum."""
    return finding.milder(
        limits.TOP_SHARE.state(share),
        limits.TOP_ODDS.state(finding.relative_odds(share, finding.ordinary_share(a))),
    )


def explain_by_norms(a: finding.Numbers) -> str:
    """Say what long rows carry while directions are spread, as a clause; empty if it is little."""
    top, squared = finding.find_scalar(a, spectrum.TOP_SHARE), finding.mean_squared_cosine(a)
    if top is None or squared is None:
        return ""
    energy, count = finding.find_scalar(a, tokens.LONG_ROWS_ENERGY), count_long_rows(a)
    is_spread = limits.LINE.state(squared) == "healthy"
    made = judge_share(a, float(top)) == "degenerate" and is_made_by_norms(a, float(top))
    if (is_spread or made) and count and energy is not None:
        who = "1 long row carries" if count == 1 else f"{count:,} long rows carry"
        return f"{who} {finding.format_percent(float(energy))} of the variance (uncentered)"
    if made:
        share = finding.format_percent(float(top))
        return f"long rows along one direction carry {share} of the variance (uncentered)"
    rms = finding.find_scalar(a, tokens.NORM_RMS)
    median = finding.find_scalar(a, tokens.NORM_MEDIAN)
    if not rms or not median or not is_spread or _has_many_short_rows(a):
        return ""
    ratio = float(rms) / float(median)
    if ratio < limits.LONG_ROWS:
        return ""
    return f"unequal norms (root mean square {finding.format_short(ratio)} times the median)"


def _has_many_short_rows(a: finding.Numbers) -> bool:
    """Tell whether the median norm may be that of damaged or short rows."""
    short = ("zero", "damaged", "untrained", "short")
    rows = sum(len(own) for own in a.suspects if own.side == "input" and own.reason in short)
    return rows > limits.FEW_LONG_ROWS * finding.count_kept(a)


def count_long_rows(a: finding.Numbers) -> int:
    """Count rows that are too long for lognormal norms; 0 where they are many or hold little."""
    rows, energy = (
        finding.find_scalar(a, tokens.LONG_ROWS),
        finding.find_scalar(a, tokens.LONG_ROWS_ENERGY),
    )
    if not rows or not energy:
        return 0
    few = rows <= limits.FEW_LONG_ROWS * int(a.provenance.get("kept") or 0)
    return int(rows) if few and energy >= limits.LONG_ROWS_ENERGY else 0


def is_made_by_norms(a: finding.Numbers, share: float) -> bool:
    """Tell whether rows of unit length would not have such a share in any direction.

    The mean squared cosine is Σλ² over the eigenvalues' shares of the unit rows, at least the
    square of the largest share.
    """
    squared = finding.mean_squared_cosine(a)
    return squared is not None and squared**0.5 < share / 2.0


def advise_on_spectrum(a: finding.Numbers) -> str:
    if explain_by_norms(a):
        return (
            "Look at the table of the largest norms first, and compare rows by cosine, which norms "
            "do not change."
        )
    if two_sided.QUESTION.decide(a).is_fault:
        return two_sided.ADVICE
    return advise(
        a,
        usual="In training, spectrum control sets how singular values fall (Wang et al. 2020): "
        "embgeo train --data TEXT --compare mle,sc-exp,sc-poly.",
    )


def name_fault(a: finding.Numbers, state: finding.State) -> str:
    if explain_by_norms(a):
        return "unequal norms"
    return "collapsed spectrum" if state == "degenerate" else "uneven spectrum"


QUESTION = Question(
    "spectrum",
    "Has the spectrum collapsed?",
    answer,
    geometry=True,
    essential=True,
    fault=name_fault,
    why="Tokens then differ along few directions. The other dimensions add little (Gao et "
    "al. 2019; Wang et al. 2020).",
    advice=advise_on_spectrum,
)
