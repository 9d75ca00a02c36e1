"""The questions that the verdict asks of an analysis, each a pure function of its numbers.

Every sentence quotes the numbers that it rests on; every limit stands in
:mod:`embgeo.diagnosis.thresholds` and is argued in docs/verdict.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from embgeo.core.quantities import cosine, isotropy, spectrum
from embgeo.core.values import format_number
from embgeo.diagnosis import thresholds as limits
from embgeo.diagnosis.finding import (
    RANK,
    Finding,
    Numbers,
    Part,
    Quote,
    State,
    Undecided,
    dimensions,
    format_percent,
    format_short,
    milder,
    need,
    reference_of,
    value_of,
)
from embgeo.diagnosis.frequency_finding import judge_frequency

# --- the single questions -------------------------------------------------------------------


def _cone(a: Numbers) -> tuple[State, tuple[Part, ...], str]:
    mean = need(a, cosine.MEAN)
    value = value_of(mean)
    state: State = limits.CONE.state(value)
    spread = _isotropic_cosine_spread(a)
    if spread is not None and value <= limits.STANDARD_ERRORS * spread:
        state = "healthy"
    isotropic = f"isotropic rows: 0{f' ± {format_number(spread, 2)}' if spread else ''}"
    parts: list[Part] = [
        {
            "degenerate": "The rows form a narrow cone: two random rows have a mean cosine of ",
            "mild": "The rows lean to one side: two random rows have a mean cosine of ",
            "healthy": "There is no cone: two random rows have a mean cosine of ",
        }[state],
        Quote(mean.name, mean.text),
        f" ({isotropic})",
    ]
    positive, angle = a.scalar(cosine.POSITIVE_SHARE), a.scalar(cosine.CONE_HALF_ANGLE_MEDIAN)
    if positive is not None and positive.value is not None:
        parts += [
            ", ",
            Quote(positive.name, format_percent(positive.value)),
            " of all pairs are positive",
        ]
    if angle is not None and angle.value is not None:
        parts += [
            ", and half of the rows lie within ",
            Quote(angle.name, f"{format_number(angle.value, 3)}°"),
            " of the mean direction (isotropic rows: 90°)",
        ]
    parts.append(".")
    clause = {
        "degenerate": f"a narrow cone (mean cosine {format_short(value)})",
        "mild": f"a wide cone (mean cosine {format_short(value)})",
        "healthy": f"no cone (mean cosine {format_short(value)})",
    }[state]
    return state, tuple(parts), clause


def _spectrum(a: Numbers) -> tuple[State, tuple[Part, ...], str]:
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
            Quote(cosine.STD.name, format_number(_mean_squared_cosine(a) or 0.0, 3)),
            "): a few rows of very large norm carry that energy.",
        ]
    if by_top == "healthy" and by_rank == state != "healthy":
        clause = f"an effective rank of {format_short(value_of(rank))} in {d:,} dimensions"
    else:
        clause = f"one direction holds {format_percent(share)} of the energy"
    return state, tuple(parts), clause if state != "healthy" else "no collapsed spectrum"


def few_large_rows(a: Numbers) -> bool:
    """Whether one direction holds most of the energy while the directions of rows are spread."""
    top, squared = a.scalar(spectrum.TOP_SHARE), _mean_squared_cosine(a)
    if top is None or top.value is None or squared is None:
        return False
    ratio = top.value / reference_of(top, 1.0 / dimensions(a))
    by_top = milder(limits.TOP_SHARE.state(top.value), limits.TOP_RATIO.state(ratio))
    return by_top == "degenerate" and limits.LINE.state(squared) == "healthy"


def _two_sided(a: Numbers) -> tuple[State, tuple[Part, ...], str]:
    mean, std = need(a, cosine.MEAN), need(a, cosine.STD)
    d = dimensions(a)
    squared = value_of(mean) ** 2 + value_of(std) ** 2
    numbers: tuple[Part, ...] = (
        "the mean cosine is ",
        Quote(mean.name, mean.text),
        " while the mean squared cosine is ",
        Quote(std.name, format_number(squared, 3)),
        f" (isotropic rows: {format_number(1.0 / d, 3)})",
    )
    if limits.CONE.state(value_of(mean)) != "healthy":
        raise Undecided("the rows lie on one side of the origin, which the mean cosine shows")
    state = milder(limits.LINE.state(squared), limits.LINE_RATIO.state(squared * d))
    if state == "healthy":
        return state, ("No hidden two-sided collapse: ", *numbers, "."), ""
    lead = {
        "degenerate": "The rows have collapsed on to a line through the origin, on both sides: ",
        "mild": "The rows gather along few directions, on both sides of the origin: ",
    }[state]
    clause = f"a collapse on both sides of the origin (mean squared cosine {format_short(squared)})"
    return state, (lead, *numbers, ". The mean cosine alone would miss it."), clause


def _isotropy(a: Numbers) -> tuple[State, tuple[Part, ...], str]:
    unit = need(a, isotropy.I1_UNIT)
    value = value_of(unit)
    state: State = limits.PARTITION.state(value)
    if unit.reference:
        state = milder(state, limits.PARTITION_RATIO.state(value / unit.reference))
    parts: list[Part] = [
        {
            "degenerate": "Directions are far from alike: at a mean norm of 1, the partition "
            "function falls to ",
            "mild": "Directions are not alike: at a mean norm of 1, the partition function falls "
            "to ",
            "healthy": "Directions are nearly alike: at a mean norm of 1, the partition function "
            "falls no lower than ",
        }[state],
        Quote(unit.name, unit.text),
        " of its peak",
    ]
    if unit.reference is not None:
        parts.append(f" (isotropic rows: {unit.reference_text})")
    raw = a.scalar(isotropy.I1)
    if raw is not None and raw.value is not None:
        parts += [
            "; as stored, where large norms alone can lower it, to ",
            Quote(raw.name, raw.text),
        ]
        if raw.reference is not None:
            parts.append(f" (isotropic rows: {raw.reference_text})")
    parts.append(".")
    gap = a.scalar(isotropy.EIGENGAP)
    if gap is not None and gap.value is not None and gap.value < limits.EIGENGAP:
        parts += [
            " Two eigenvalues nearly coincide (relative gap ",
            Quote(gap.name, gap.text),
            "), so these numbers depend on the choice of eigenvectors.",
        ]
    return (
        state,
        tuple(parts),
        f"an uneven partition function (I1 at unit scale {format_short(value)})",
    )


def _coordinate(a: Numbers) -> tuple[State, tuple[Part, ...], str]:
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


_Test = Callable[[Numbers], tuple[State, tuple[Part, ...], str]]

TESTS: tuple[tuple[str, str, _Test], ...] = (
    ("cone", "Do the rows point the same way?", _cone),
    ("spectrum", "Do a few directions hold everything?", _spectrum),
    ("two-sided", "Is there a collapse that the mean hides?", _two_sided),
    ("isotropy", "Are all directions alike?", _isotropy),
    ("frequency", "Do rare and popular tokens live apart?", judge_frequency),
    ("coordinate", "Is a single coordinate to blame?", _coordinate),
)


# --- shared pieces --------------------------------------------------------------------------


def decide(key: str, title: str, test: _Test, analysis: Numbers) -> Finding:
    try:
        if key != "frequency" and analysis.provenance.get("d") == 1:
            raise Undecided("one dimension has only two directions")
        state, parts, clause = test(analysis)
    except Undecided as why:
        reason = str(why).rstrip(".")
        return Finding(key, title, "undecided", (f"Not decided: {reason}.",), open=reason)
    return Finding(key, title, state, parts, clause)


def _isotropic_cosine_spread(analysis: Numbers) -> float | None:
    # Cosines of independent uniform directions have variance 1/d and are pairwise uncorrelated,
    # so their mean over M(M−1)/2 pairs has variance 2/(d·M·(M−1)).
    kept = int(analysis.provenance.get("kept") or 0)
    if kept < 2:
        return None
    return math.sqrt(2.0 / (dimensions(analysis) * kept * (kept - 1.0)))


def _mean_squared_cosine(analysis: Numbers) -> float | None:
    mean, std = analysis.scalar(cosine.MEAN), analysis.scalar(cosine.STD)
    if mean is None or std is None or mean.value is None or std.value is None:
        return None
    return mean.value**2 + std.value**2
