"""Differences of every scalar from the baseline: size, direction, and error over tokens.

A shared token moves both scalars. It is in the same halves of the tokens on both sides
(:mod:`embgeo.numerics.halves`), so that the spread of the differences of halves is the error of the
difference, in which what the token does to both drops out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embgeo.comparison.comparison import Member
from embgeo.comparison.matching import Matching, match_rows
from embgeo.comparison.pair import Change, Difference, Direction
from embgeo.core.arrays import IntArray
from embgeo.core.numbers import Z_95, student_z
from embgeo.core.quantities.frequency import PROBE_AUC
from embgeo.core.values import FREEDOM, Quantity, Scalar
from embgeo.numerics.halves import (
    deal_groups,
    hash_numbers,
    hash_stems,
    measure_spread,
)
from embgeo.numerics.scores import adjust_holm, two_sided
from embgeo.result.analysis import Analysis

#: A difference is significant if its p-value, after Holm's correction for all judged differences,
#: is below this level.
LEVEL = 0.05
#: Numbers that agree to this share of the larger (or of `SMALL`) differ by rounding only: that of
#: sums in float64, and that of entries, where they are stored in fewer digits on either side.
ROUNDING = 1e-9
ROUNDED_ENTRIES = 1e-6
SMALL = 1e-3
#: That of a copy in half precision: half of the largest rounding of an entry.
ROUNDED_COPIES = {"float16": 2.0**-12, "bfloat16": 2.0**-9}
INDEPENDENT = "errors of both sides added in squares, as if independent"
PAIRED = "paired, token by token"
#: Options that change what a number is, and not only how well it is known, and the families of
#: these numbers; none for all.
DEFINING: dict[str, tuple[str, ...]] = {
    "isotropy_rows": ("isotropy",),
    "min_norm": (),
    "neighbors": ("frequency", "tokens"),
    "popular_share": ("frequency",),
}


def differences(
    members: Sequence[Member], matchings: Mapping[int, Matching]
) -> tuple[Difference, ...]:
    """Return the differences of every scalar of some member, by quantity.

    `matchings` holds the matching of each member with the baseline.
    """
    rows = []
    paired = {
        place: have_same_halves((members[0].analysis, member.analysis), matchings.get(place))
        for place, member in enumerate(members[1:], start=1)
    }
    for quantity in every_quantity(members):
        old = members[0].analysis.find_scalar(quantity.name)
        for place, member in enumerate(members[1:], start=1):
            new = member.analysis.find_scalar(quantity.name)
            error, both = None, (members[0].analysis, member.analysis)
            if old is not None and new is not None:
                error = population_error(old, new, both, paired[place])
            rounding = max(find_rounding(both), find_copy_rounding(both))
            row = difference(quantity, place, old, new, error, rounding)
            if old is not None and new is not None:
                why = explain_other_pairs(old, new, both) or explain_unlike(
                    quantity.family, *(analysis.provenance for analysis in both)
                )
                if why:
                    row = difference(quantity, place, old, quantity.undefined(why))
            if row.undefined and (old is None or new is None):
                row = replace(row, undefined=describe_absence(members, place, quantity, old))
            rows.append(row)
    return judge(rows)


def find_difference(name: str, old: Analysis, new: Analysis) -> Difference | None:
    """Find the difference of one scalar of two analyses; None if one of them has none."""
    before, after = old.find_scalar(name), new.find_scalar(name)
    if before is None or after is None:
        return None
    both = (old, new)
    error = population_error(before, after, both, have_same_halves(both, match_rows(old, new)))
    return difference(before.quantity, 1, before, after, error, find_rounding(both))


def judge(rows: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return the differences with their changes and directions, after Holm's correction."""
    adjusted = iter(adjust_holm([row.p_value for row in rows if row.p_value is not None]))
    judged = []
    for row in rows:
        if row.p_value is not None:
            p = next(adjusted)
            change: Change = "significant" if p < LEVEL else "not significant"
            row = replace(row, p_adjusted=p, change=change)
        way = direction(row.quantity, row.difference or 0.0, row.change)
        judged.append(replace(row, direction=way))
    return tuple(judged)


def every_quantity(members: Sequence[Member]) -> list[Quantity]:
    """Return all quantities, in the order of the first member that has them."""
    found: dict[str, Quantity] = {}
    for member in members:
        for scalar in member.analysis.scalars:
            found.setdefault(scalar.name, scalar.quantity)
    return list(found.values())


def describe_absence(
    members: Sequence[Member], place: int, quantity: Quantity, old: Scalar | None
) -> str:
    """Describe which member does not have the number, and why."""
    absent = members[0] if old is None else members[place]
    reason = absent.analysis.absent.get(quantity.family, "")
    return f"{absent.name} has no {quantity.name}" + (f": {reason}" if reason else "")


def difference(
    quantity: Quantity,
    member: int,
    old: Scalar | None,
    new: Scalar | None,
    population: PairedError | None = None,
    rounding: float = ROUNDING,
) -> Difference:
    """Return one difference before it is judged with others.

    Undefined unless both sides have a value.
    """
    before = None if old is None else old.value
    after = None if new is None else new.value
    row = Difference(quantity, member, before, after, None, change="undefined")
    if old is None or new is None:
        return replace(row, undefined="one side was not measured")
    if before is None or after is None:
        return replace(row, undefined=old.undefined or new.undefined)
    if old.size != new.size:
        sizes = " and ".join(
            "an unknown number of" if s is None else f"{s:,}" for s in (old.size, new.size)
        )
        return replace(row, undefined=f"it depends on the number of rows: {sizes} rows")
    step = after - before
    row = replace(row, difference=step, note=other_conventions(old, new))
    if abs(step) <= rounding * max(abs(before), abs(after), SMALL):
        return replace(row, change="equal")
    row = replace(row, change="not judged")
    if population is not None:
        row = with_error(row, population.standard_error, population.note, FREEDOM)
        error = population.standard_error
        p = two_sided(step / error if error else math.inf, FREEDOM)
        return replace(row, error_kind="population", p_value=p)
    errors = [s.standard_error for s in (old, new) if s.known != "exact"]
    known = [error for error in errors if error is not None]
    if errors and len(known) == len(errors):
        few = [s.freedom for s in (old, new) if s.freedom is not None]
        row = with_error(row, float(np.hypot.reduce(known)), INDEPENDENT, min(few, default=None))
        row = replace(row, error_kind="monte_carlo")
    return row


def with_error(row: Difference, error: float, note: str, freedom: int | None = None) -> Difference:
    """Return the difference with its standard error and interval."""
    step, reach = row.difference or 0.0, student_z(Z_95, freedom) * error
    interval = (step - reach, step + reach)
    return replace(row, standard_error=error, interval=interval, error_note=note)


def find_rounding(analyses: Sequence[Analysis]) -> float:
    """Find the relative difference that rounding alone makes between numbers of two matrices."""
    wide = all(analysis.provenance.get("dtype") == "float64" for analysis in analyses)
    return ROUNDING if wide else ROUNDED_ENTRIES


def find_copy_rounding(analyses: Sequence[Analysis]) -> float:
    """Find the relative difference between a matrix and its copy in half precision; else 0."""
    stored = {str(analysis.provenance.get("dtype")) for analysis in analyses}
    return max(ROUNDED_COPIES.get(name, 0.0) for name in stored) if len(stored) > 1 else 0.0


def explain_other_pairs(old: Scalar, new: Scalar, analyses: Sequence[Analysis]) -> str:
    """Explain why bounds are of unlike samples of pairs; empty if they are not."""
    before, after = ((a.provenance.get("options") or {}).get("pairs", "") for a in analyses)
    bounds = old.quantity.family == "cosine" and "at_least" in (old.known, new.known)
    if before == after or "" in (before, after) or not bounds:
        return ""
    old_pairs, new_pairs = ("all" if one is None else f"{one:,}" for one in (before, after))
    return f"it depends on the number of pairs: {old_pairs} and {new_pairs} pairs"


def explain_unlike(family: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Explain why the numbers of a family of two provenances are unlike ones; empty if not."""
    earlier, options = (provenance.get("options") or {} for provenance in (before, now))
    for name, families in DEFINING.items():
        if family not in families and families:
            continue
        if name in earlier and name in options and earlier[name] != options[name]:
            return f"the baseline was measured with {name} = {earlier[name]}, not {options[name]}"
    first, second = (provenance.get("frequency") for provenance in (before, now))
    if family != PROBE_AUC.family or not first or not second:
        return ""
    # Of unlike vocabularies, the counts differ anyway: there the source decides.
    by = "sha256" if before.get("n") == now.get("n") else "source"
    if (first["kind"], first[by]) == (second["kind"], second[by]):
        return ""
    sources = "other counts" if first["source"] == second["source"] else first["source"]
    return f"the baseline was measured with {sources}, not {second['source']}"


def direction(quantity: Quantity, step: float, change: Change) -> Direction:
    if quantity.better is None or change not in ("not judged", "significant"):
        return None
    rose = "higher" if step > 0 else "lower"
    return "better" if quantity.better == rose else "worse"


def other_conventions(old: Scalar, new: Scalar) -> str:
    """Describe how the conventions of the two measurements differ; empty if they do not."""
    if old.convention == new.convention:
        return ""
    return f"conventions differ: {old.convention or 'none'} / {new.convention or 'none'}"


@dataclass(frozen=True, slots=True)
class PairedError:
    """The standard error over tokens of a difference, and how it was computed."""

    standard_error: float
    note: str


def population_error(
    old: Scalar, new: Scalar, analyses: tuple[Analysis, Analysis], paired: bool
) -> PairedError | None:
    """Return the standard error over tokens of ``new − old``; None if a side has none.

    `paired`: whether the halves of both sides hold the same tokens.
    """
    if old.population_error is None or new.population_error is None:
        return None
    first, second = (analysis.by_half(old.name) for analysis in analyses)
    # Scores out of fold depend on the folds, too.
    seeds = {analysis.provenance.get("seed") for analysis in analyses}
    paired = paired and (old.error_kind != "population" or len(seeds) == 1)
    if first is None or second is None or not paired:
        return PairedError(float(np.hypot(old.population_error, new.population_error)), INDEPENDENT)
    return PairedError(float(measure_spread(second - first)), PAIRED)


def have_same_halves(analyses: tuple[Analysis, Analysis], matching: Matching | None) -> bool:
    """Tell whether most shared tokens are in the same group on both sides.

    They are if both have tokens, or neither: what only one side has moves few of the others across
    the edge of a group.
    """
    if matching is None or matching.by is None:
        return False
    first, second = map(deal_again, analyses)
    if first is None or second is None or not matching.shared:
        return False
    return bool(np.mean(first[matching.first] == second[matching.second]) > 0.5)


def deal_again(analysis: Analysis) -> IntArray | None:
    tokens = analysis.tokens
    return deal_groups(hash_numbers(analysis.rows) if tokens is None else hash_stems(tokens))
