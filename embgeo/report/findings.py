"""The questions that the verdict asks of an analysis, each a pure function of its numbers.

Every sentence quotes the numbers that it rests on; every limit stands in
:mod:`embgeo.report.thresholds` and is argued in docs/verdict.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from embgeo.report import thresholds as limits
from embgeo.result import Analysis
from embgeo.values import Scalar, format_number

State = Literal["healthy", "mild", "degenerate", "undecided"]

RANK: dict[State, int] = {"undecided": -1, "healthy": 0, "mild": 1, "degenerate": 2}


@dataclass(frozen=True, slots=True)
class Quote:
    """A number inside a sentence: the quantity that defines it, and how it reads."""

    name: str
    text: str


Part = str | Quote


@dataclass(frozen=True, slots=True)
class Finding:
    """One question, answered.

    Attributes
    ----------
    key : str
        "cone", "spectrum", "two-sided", "isotropy", "frequency" or "coordinate".
    title : str
        The question as a heading.
    state : {"healthy", "mild", "degenerate", "undecided"}
    parts : tuple of str and Quote
        The sentence with its numbers.
    clause : str
        What the headline takes over; empty if it says nothing there.
    """

    key: str
    title: str
    state: State
    parts: tuple[Part, ...]
    clause: str = ""

    @property
    def sentence(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def quoted(self) -> tuple[str, ...]:
        """Names of the quantities that the sentence rests on."""
        return tuple(part.name for part in self.parts if isinstance(part, Quote))


class Undecided(Exception):
    """A number that a finding needs is not there; the message says why."""


def percent(share: float) -> str:
    """A share in [0, 1] as per cent; 0 % and 100 % only when exact."""
    value = 100.0 * share
    for digits in range(2, 12):
        text = format_number(value, digits)
        if float(text) not in (0.0, 100.0) or value in (0.0, 100.0):
            return f"{text}\u00a0%"
    return f"{format_number(value, 12)}\u00a0%"


# --- the single questions -------------------------------------------------------------------


def _cone(a: Analysis) -> tuple[State, tuple[Part, ...], str]:
    mean = _need(a, "cosine.mean")
    value = _value(mean)
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
    positive, angle = a.scalar("cosine.positive_share"), a.scalar("cosine.cone_half_angle_median")
    if positive is not None and positive.value is not None:
        parts += [", ", Quote(positive.name, percent(positive.value)), " of all pairs are positive"]
    if angle is not None and angle.value is not None:
        parts += [
            ", and half of the rows lie within ",
            Quote(angle.name, f"{format_number(angle.value, 3)}°"),
            " of the mean direction (isotropic rows: 90°)",
        ]
    parts.append(".")
    clause = {
        "degenerate": f"a narrow cone (mean cosine {_short(value)})",
        "mild": f"a wide cone (mean cosine {_short(value)})",
        "healthy": f"no cone (mean cosine {_short(value)})",
    }[state]
    return state, tuple(parts), clause


def _spectrum(a: Analysis) -> tuple[State, tuple[Part, ...], str]:
    top, rank = _need(a, "spectrum.top_share"), _need(a, "spectrum.effective_rank")
    share, d = _value(top), _dimensions(a)
    share_reference = _reference(top, 1.0 / d)
    rank_reference = _reference(rank, float(d))
    by_top = _both(limits.TOP_SHARE.state(share), limits.TOP_RATIO.state(share / share_reference))
    by_rank = limits.RANK_RATIO.state(_value(rank) / rank_reference)
    state: State = max(by_top, by_rank, key=RANK.__getitem__)
    parts: list[Part] = [
        {
            "degenerate": "The spectrum has collapsed: one direction holds ",
            "mild": "The spectrum is uneven: one direction holds ",
            "healthy": "The spectrum is spread out: the strongest direction holds ",
        }[state],
        Quote(top.name, percent(share)),
        f" of the energy (isotropic rows: {percent(share_reference)}), and the effective rank is ",
        Quote(rank.name, rank.text),
        f" of {d:,} (isotropic rows: {format_number(rank_reference)}).",
    ]
    squared = _mean_squared_cosine(a)
    if by_top == "degenerate" and squared is not None and limits.LINE.state(squared) == "healthy":
        parts += [
            " Directions are spread all the same (mean squared cosine ",
            Quote("cosine.std", format_number(squared, 3)),
            "): a few rows of very large norm carry that energy.",
        ]
    if by_top == "healthy" and by_rank == state != "healthy":
        clause = f"an effective rank of {_short(_value(rank))} in {d:,} dimensions"
    else:
        clause = f"one direction holds {percent(share)} of the energy"
    return state, tuple(parts), clause if state != "healthy" else "no collapsed spectrum"


def _two_sided(a: Analysis) -> tuple[State, tuple[Part, ...], str]:
    mean, std = _need(a, "cosine.mean"), _need(a, "cosine.std")
    d = _dimensions(a)
    squared = _value(mean) ** 2 + _value(std) ** 2
    numbers: tuple[Part, ...] = (
        "the mean cosine is ",
        Quote(mean.name, mean.text),
        " while the mean squared cosine is ",
        Quote(std.name, format_number(squared, 3)),
        f" (isotropic rows: {format_number(1.0 / d, 3)})",
    )
    if limits.CONE.state(_value(mean)) != "healthy":
        raise Undecided("the rows lie on one side of the origin, which the mean cosine shows")
    state = _both(limits.LINE.state(squared), limits.LINE_RATIO.state(squared * d))
    if state == "healthy":
        return state, ("No hidden two-sided collapse: ", *numbers, "."), ""
    lead = {
        "degenerate": "The rows have collapsed on to a line through the origin, on both sides: ",
        "mild": "The rows gather along few directions, on both sides of the origin: ",
    }[state]
    clause = f"a collapse on both sides of the origin (mean squared cosine {_short(squared)})"
    return state, (lead, *numbers, ". The mean cosine alone would miss it."), clause


def _isotropy(a: Analysis) -> tuple[State, tuple[Part, ...], str]:
    unit = _need(a, "isotropy.i1_unit")
    value = _value(unit)
    state: State = limits.PARTITION.state(value)
    if unit.reference:
        state = _both(state, limits.PARTITION_RATIO.state(value / unit.reference))
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
    raw = a.scalar("isotropy.i1")
    if raw is not None and raw.value is not None:
        parts += [
            "; as stored, where large norms alone can lower it, to ",
            Quote(raw.name, raw.text),
        ]
        if raw.reference is not None:
            parts.append(f" (isotropic rows: {raw.reference_text})")
    parts.append(".")
    gap = a.scalar("isotropy.eigengap")
    if gap is not None and gap.value is not None and gap.value < limits.EIGENGAP:
        parts += [
            " Two eigenvalues nearly coincide (relative gap ",
            Quote(gap.name, gap.text),
            "), so these numbers depend on the choice of eigenvectors.",
        ]
    return state, tuple(parts), f"an uneven partition function (I1 at unit scale {_short(value)})"


def _frequency(a: Analysis) -> tuple[State, tuple[Part, ...], str]:
    auc = _need(a, "frequency.probe_auc")
    value, error = _value(auc), auc.standard_error or 0.0
    above_chance = value - 0.5 > limits.STANDARD_ERRORS * error
    by_probe: State = limits.PROBE.state(value) if above_chance else "healthy"
    by_neighbors, neighbors_parts, neighbors_clause = _neighbors(a)
    by_norm, norm_parts, norm_clause = _norms(a)
    state: State = max(by_probe, by_neighbors, by_norm, key=RANK.__getitem__)
    lead = {
        "degenerate": "Rare and popular tokens live apart: a linear probe has an AUC of ",
        "mild": "Rare and popular tokens partly live apart: a linear probe has an AUC of ",
        "healthy": "Rare and popular tokens are mixed: a linear probe has an AUC of only ",
    }[state]
    if state == "healthy":
        clause = f"rare and popular tokens are mixed (AUC {_short(value)})"
    elif by_probe == state:
        partly = "" if state == "degenerate" else "partly "
        clause = f"rare tokens are {partly}separable from popular ones (AUC {_short(value)})"
    else:
        clause = neighbors_clause if by_neighbors == state else norm_clause
    parts = (lead, Quote(auc.name, auc.text), " (chance: 0.5)", *neighbors_parts, *norm_parts, ".")
    return state, parts, clause


def _neighbors(a: Analysis) -> tuple[State, tuple[Part, ...], str]:
    rare = a.scalar("frequency.neighbor_rarity_rare")
    popular = a.scalar("frequency.neighbor_rarity_popular")
    if rare is None or popular is None or rare.value is None or popular.value is None:
        return "healthy", (), ""
    gap = rare.value - popular.value
    error = math.hypot(rare.standard_error or 0.0, popular.standard_error or 0.0)
    within_error = gap <= limits.STANDARD_ERRORS * error
    state: State = "healthy" if within_error else limits.NEIGHBOR_GAP.state(gap)
    base = f" (base rate {percent(rare.reference)})" if rare.reference is not None else ""
    shares = percent(rare.value), percent(popular.value)
    parts: tuple[Part, ...] = (
        "; of the nearest neighbours of rare tokens ",
        Quote(rare.name, shares[0]),
        " are rare, of those of popular tokens ",
        Quote(popular.name, shares[1]),
        base,
    )
    clause = f"neighbours of rare tokens are rare ({shares[0]}, of popular tokens {shares[1]})"
    return state, parts, clause


def _norms(a: Analysis) -> tuple[State, tuple[Part, ...], str]:
    rho = a.scalar("frequency.norm_spearman")
    if rho is None or rho.value is None:
        return "healthy", (), ""
    # A rank correlation of M unrelated pairs has standard error 1/√(M−1).
    kept = max(2, int(a.provenance.get("kept") or 2))
    size = abs(rho.value)
    state: State = (
        limits.NORM_RANK.state(size)
        if size * math.sqrt(kept - 1) > limits.STANDARD_ERRORS
        else "healthy"
    )
    if state == "healthy":
        return state, (), ""
    parts: tuple[Part, ...] = (
        "; norms follow frequency (rank correlation ",
        Quote(rho.name, rho.text),
        ")",
    )
    return state, parts, f"norms follow frequency (rank correlation {_short(rho.value)})"


def _coordinate(a: Analysis) -> tuple[State, tuple[Part, ...], str]:
    share = _need(a, "cosine.max_dimension_share")
    mean = _need(a, "cosine.mean")
    d = _dimensions(a)
    if d < 2 or limits.CONE.state(_value(mean)) == "healthy":
        raise Undecided("there is no cone to explain")
    value = _value(share)
    expected = 2.0 * math.log(d) / d
    state = _both(limits.ROGUE.state(value), limits.ROGUE_RATIO.state(value / expected))
    parts: tuple[Part, ...] = (
        "A single coordinate makes ",
        Quote(share.name, percent(value)),
        f" of that mean cosine (a random direction in {d:,} dimensions: about {percent(expected)})"
        ": a rogue coordinate, which centring removes.",
    )
    return state, parts, ""


_Test = Callable[[Analysis], tuple[State, tuple[Part, ...], str]]

TESTS: tuple[tuple[str, str, _Test], ...] = (
    ("cone", "Do the rows point the same way?", _cone),
    ("spectrum", "Do a few directions hold everything?", _spectrum),
    ("two-sided", "Is there a collapse that the mean hides?", _two_sided),
    ("isotropy", "Are all directions alike?", _isotropy),
    ("frequency", "Do rare and popular tokens live apart?", _frequency),
    ("coordinate", "Is a single coordinate to blame?", _coordinate),
)


# --- shared pieces --------------------------------------------------------------------------


def decide(key: str, title: str, test: _Test, analysis: Analysis) -> Finding:
    try:
        state, parts, clause = test(analysis)
    except Undecided as why:
        reason = str(why).rstrip(".")
        return Finding(key, title, "undecided", (f"Not decided: {reason}.",))
    return Finding(key, title, state, parts, clause)


def _need(analysis: Analysis, name: str) -> Scalar:
    scalar = analysis.scalar(name)
    if scalar is None:
        family = name.partition(".")[0]
        reason = analysis.absent.get(family, f"{name} is not part of this analysis")
        raise Undecided(reason)
    if scalar.value is None:
        raise Undecided(f"{scalar.quantity.title} is not defined ({scalar.undefined})")
    return scalar


def _value(scalar: Scalar) -> float:
    if scalar.value is None:
        raise Undecided(f"{scalar.quantity.title} is not defined ({scalar.undefined})")
    return scalar.value


def _dimensions(analysis: Analysis) -> int:
    return max(1, int(analysis.provenance.get("d") or 1))


def _reference(scalar: Scalar, fallback: float) -> float:
    return scalar.reference if scalar.reference else fallback


def _both(first: State, second: State) -> State:
    """The milder of two states: a finding that needs two tests is as bad as the better one."""
    return min(first, second, key=RANK.__getitem__)


def _isotropic_cosine_spread(analysis: Analysis) -> float | None:
    # Cosines of independent uniform directions have variance 1/d and are pairwise uncorrelated,
    # so their mean over M(M−1)/2 pairs has variance 2/(d·M·(M−1)).
    kept = int(analysis.provenance.get("kept") or 0)
    if kept < 2:
        return None
    return math.sqrt(2.0 / (_dimensions(analysis) * kept * (kept - 1.0)))


def _mean_squared_cosine(analysis: Analysis) -> float | None:
    mean, std = analysis.scalar("cosine.mean"), analysis.scalar("cosine.std")
    if mean is None or std is None or mean.value is None or std.value is None:
        return None
    return mean.value**2 + std.value**2


def _short(value: float) -> str:
    return format_number(value, 3)
