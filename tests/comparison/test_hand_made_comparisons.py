"""What a comparison says of hand-made numbers, recorded in comparisons.txt, to be read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.differences import differences
from embgeo.comparison.matching import Matching
from embgeo.comparison.pair import Pair
from embgeo.comparison.sentences import (
    describe_isotropy_move,
    headline,
    sentences,
    track_sentences,
)
from embgeo.comparison.shifts import shifts, state_rows
from embgeo.comparison.track import ChangePoint, Curve, Track
from embgeo.core.quantities import OF_PAIRS, QUANTITIES
from embgeo.core.values import Column
from embgeo.result.analysis import Analysis
from tests.diagnosis.test_hand_made import CONE, LINE, Number, Numbers, make, of
from tests.support.record import check_record

RECORD = Path(__file__).with_name("comparisons.txt")
FEW: Numbers = dict.fromkeys(
    (
        "frequency.probe_auc",
        "frequency.neighbor_rarity_rare",
        "frequency.neighbor_rarity_popular",
        "frequency.norm_spearman",
    )
)


def known(value: float, error: float, **more: Any) -> Number:
    return value, {"population_error": error, **more}


def analysis(numbers: Numbers, norm: float | None = None) -> Analysis:
    found = make({**FEW, **numbers}, {"tables": ()})
    if norm is None:
        return found
    columns = (
        Column(QUANTITIES["cosine.angle_to_mean"], np.full(3, 80.0), "°"),
        Column(QUANTITIES["tokens.norm"], np.full(3, norm), "‖w‖"),
    )
    return replace(found, columns=columns)


def pair(overlap: float | None, chance: float | None = 0.01, **scalars: float) -> Pair:
    rows = np.arange(3)
    found = [OF_PAIRS[f"compare.{name}"].measured(value) for name, value in scalars.items()]
    if overlap is not None:
        more: dict[str, Any] = {"reference_kind": "chance", "reference_note": "chance"}
        more = {} if chance is None else {**more, "reference": chance}
        found.append(OF_PAIRS["compare.neighbor_overlap"].measured(overlap, **more))
    return Pair(0, 1, Matching("row", "", rows, rows), scalars=tuple(found))


def join(sides: Sequence[Analysis], pairs: Sequence[Pair] = (), **more: Any) -> Comparison:
    members = tuple(
        Member(f"m{place}", f"m{place}.npy", side, step=more.get("track") and 100.0 * place)
        for place, side in enumerate(sides)
    )
    return Comparison({}, members, tuple(pairs), differences(members, {}), **more)


def i1(raw: float, unit: float | None = None, each: float = 0.9) -> Numbers:
    return {
        "isotropy.i1": raw,
        "isotropy.i1_unit": unit,
        "isotropy.i1_unit_rows": of(each, 0.95),
    }


HEALTHY: Numbers = {}
MILD: Numbers = {"cosine.mean": 0.2}
UNKNOWN: Numbers = {"cosine.mean": None}


def two(
    before: Numbers, after: Numbers, norms: tuple[float, float] | None = None, **more: Any
) -> Comparison:
    first, second = norms or (None, None)
    return join([analysis(before, first), analysis(after, second)], **more)


def cases() -> Iterator[tuple[str, Comparison]]:
    states: Mapping[str, Numbers] = {
        "healthy": HEALTHY, "mild": MILD, "degenerate": CONE, "undecided": UNKNOWN,
    }  # fmt: skip
    for before, old in states.items():
        for after, new in states.items():
            yield f"{before}, then {after}", two({**old, **i1(0.5)}, {**new, **i1(0.5)})
    yield "cone, then line", two(CONE, LINE)
    yield "line, then healthy", two(LINE, HEALTHY)
    yield "mild spectrum, then cone", two({"spectrum.effective_rank": of(10.0, 31.0)}, CONE)
    for raw, unit, norms in (
        ((0.1, 0.8), (0.2, 0.85), (2.0, 1.0)),
        ((0.1, 0.8), (0.2, 0.2), (2.0, 1.0)),
        ((0.1, 0.8), (0.2, 0.2), (1.0, 2.0)),
        ((0.1, 0.8), (0.2, 0.22), (2.0, 1.0)),
        ((0.1, 0.8), (0.2, 0.19), (2.0, 1.961)),
        ((0.1, 0.8), (0.2, 0.19), (2.0, 1.959)),
        ((0.8, 0.1), (0.2, 0.19), (1.0, 1.019)),
        ((0.8, 0.1), (0.2, 0.19), (1.0, 1.021)),
        ((0.01, 0.02), (0.2, 0.19), (1.0, 1.0)),
        ((0.5, 0.51), (0.2, 0.19), (1.0, 1.0)),
        ((0.5, 0.5101), (0.2, 0.2026), (1.0, 1.0)),
        ((0.5, 0.4899), (0.2, 0.2), (1.0, 1.5)),
        ((0.5, 0.54), (0.2, 0.2101), (1.0, 1.0)),
        ((0.5, 0.542), (0.2, 0.2101), (1.0, 1.0)),
    ):
        sides = (i1(raw[0], unit[0]), i1(raw[1], unit[1]))
        yield f"I1 {raw}, unit {unit}, norms {norms}", two(*sides, norms=norms)
    yield "I1 without the other", two(i1(0.1), i1(0.8))
    yield "I1 of one side", two(i1(0.1), {"isotropy.i1": None})
    for each in ((0.9, 0.9), (0.9, 0.5), (0.9, 0.8)):
        sides = (i1(0.9, 0.8, each[0]), i1(0.1, 0.4, each[1]))
        yield f"I1 of unit rows {each}", two(*sides, norms=(1.0, 1.0))
    yield "norms of one side", join([analysis(i1(0.1, 0.2), 2.0), analysis(i1(0.8, 0.2))])
    for overlap, chance in (
        (1.0, 0.01),
        (0.9999, 0.01),
        (0.0149, 0.01),
        (0.015, 0.01),
        (0.5, None),
    ):
        yield (
            f"overlap {overlap} by {chance}",
            two(HEALTHY, HEALTHY, pairs=[pair(overlap, chance, cka=0.9, subspace_distance=0.3)]),
        )
    yield "no overlap", two(HEALTHY, HEALTHY, pairs=[pair(None, cka=0.9)])
    near = {"cosine.std": known(0.18, 0.01), "cosine.mean": known(0.01, 0.01)}
    names = ("spectrum.effective_rank", "spectrum.top_share", "isotropy.isoscore")
    more = {name: known(0.1, 0.01) for name in names}
    one_more = {**more, "spectrum.effective_rank": known(0.11, 0.01)}
    for count in (1, 2, 4, 5):
        old = dict(list({**near, **more}.items())[:count])
        new = {name: known(0.9 * value[0], 0.01) for name, value in old.items()}  # type: ignore[index]
        yield f"{count} insignificant", two(old, new)
    far = {"cosine.std": known(0.4, 0.01)}
    yield "one significant of two", two(near, {**near, **far})
    yield "all significant", two({"cosine.std": known(0.18, 0.01)}, far)
    yield "one insignificant of two", two({**near, **more}, {**near, **one_more, **far})
    rows = {"suspects.damaged": 3.0, "suspects.mean": 0.0, "cosine.cone_half_angle_median": 80.0}
    yield "damaged rows", two(rows, {**rows, "suspects.damaged": 0.0})
    yield "other suspects", two(rows, {**rows, "suspects.damaged": 0.0, "suspects.mean": 9.0})
    yield "suspects not searched", two(HEALTHY, {**HEALTHY, "suspects.zero": None})
    probed: Numbers = {
        "frequency.probe_auc": known(0.9, 0.01),
        "frequency.neighbor_rarity_rare": known(0.95, 0.01, reference=0.8),
        "frequency.neighbor_rarity_popular": known(0.3, 0.01, reference=0.8),
    }
    yield "probes", two(probed, {**probed, "frequency.probe_auc": known(0.5, 0.01)})
    mixed = {**probed, "frequency.neighbor_rarity_rare": known(0.81, 0.01, reference=0.8)}
    yield "mixed, then separated", two(mixed, probed)
    yield "separated, then mixed", two(probed, mixed)
    yield "three, two separated", join([analysis(one) for one in (probed, probed, mixed)])
    yield "three, all separated", join([analysis(one) for one in (probed, probed, probed)])
    unit = {"isotropy.i1": None, "isotropy.i1_unit": 0.3}
    yield "mean norm alone", two(unit, unit, norms=(1.5, 2.5))
    three = [analysis(one) for one in (CONE, HEALTHY, MILD)]
    yield "three", join(three)
    yield "three with I1", join([analysis({**one, **i1(0.5)}) for one in (CONE, CONE, HEALTHY)])


def tracks() -> Iterator[tuple[str, Comparison]]:
    bend = ChangePoint(100.0, 0.0, 0.1, 0.2)
    for first, last, outliers in ((CONE, CONE, ()), (HEALTHY, CONE, (1,)), (CONE, MILD, (1, 2))):
        curves = tuple(
            Curve(QUANTITIES[name], against, (0.1, 0.2, 0.3), (None,) * 3, point)  # type: ignore[arg-type]
            for name, against, point in (
                ("cosine.mean", "", bend),
                ("isotropy.i1", "", None),
                ("isotropy.i1_unit", "first", bend),
                ("cosine.std", "", bend),
            )
        )
        track = Track((0.0, 100.0, 200.0), "names", curves, (), outliers)
        numbers = ({**first, **i1(0.2)}, HEALTHY, {**last, **i1(0.7)})
        yield f"a track, unfit {outliers}", join([analysis(one) for one in numbers], track=track)


def describe(found: Comparison) -> Iterator[str]:
    yield headline(found)
    last = len(found.members) - 1
    said = track_sentences(found, found.track) if found.track else sentences(found)
    yield from (f". {one}" for one in said)
    yield describe_isotropy_move(found, last)
    for shift in shifts(found, last):
        states = [one.word if one else None for one in (shift.before, shift.after)]
        yield f"{shift.key} {states}: {shift.sentence}"
    rows = state_rows(found, range(last + 1))
    yield f"{[[one.word if one else None for one in row.findings] for row in rows]}"


def write() -> Iterator[str]:
    """Each case, without the lines that the first one has as well."""
    usual: set[str] = set()
    for name, found in (*cases(), *tracks()):
        yield name
        lines = list(describe(found))
        yield from (f"  {line}" for line in lines if line not in usual)
        usual = usual or set(lines)


def test_the_words_are_those_that_were_read() -> None:
    check_record(RECORD, "comparisons", write())
