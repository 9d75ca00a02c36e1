"""Clumps: rows apart from all others, by second modes of angle and norm.

Rows that training hardly touches keep moving along one common direction (Gao et al. 2019, §4). They
gather around it with norms of their own, and form a second mode both of the angles to the mean
direction and of the norms. Without such a mode, the angles to the densest direction of a sample of
rows are tested for a second mode, regardless of norms.

Examples
--------
>>> import embgeo
>>> W = np.random.default_rng(0).standard_normal((2000, 32))
>>> W[:100] = 0.1 * W[:100] + 0.3
>>> names = [f"[unused{i}]" for i in range(100)] + [f"word{i}" for i in range(1900)]
>>> found = embgeo.analyze(W, tokens=names, sections=["tokens"], reference=False)
>>> found["tokens.clump_rows"].value, found["tokens.clump_kinds"].rows[0][:2]
(100.0, ('unused', 100))
"""

from collections import Counter
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from embgeo.core.arrays import FloatArray, IntArray, Mask
from embgeo.core.quantities import clump as q
from embgeo.core.values import Cell, Column, Quantity, Scalar, Table, Value
from embgeo.metrics.dimension import find_distinct_rows
from embgeo.metrics.facts import NO_ROWS, Facts, note_shown
from embgeo.metrics.family import Family, Measurement
from embgeo.metrics.shared import SharedStatistics, hashes, norms, unit_moments
from embgeo.metrics.token_kinds import find_kinds, find_unused_rows
from embgeo.numerics import clumps
from embgeo.numerics.sampling import generator, sample_rows
from embgeo.numerics.scores import auc
from embgeo.stats import AngleTo
from embgeo.stats.statistic import Statistic

SHOWN = 20
SHOWN_SCRIPTS = 40
SCRIPT_COLUMNS = (
    "script",
    "tokens",
    "share",
    "median ‖w‖",
    "mean cosine to the mean direction",
    "share in the clump",
    "share damaged",
)
#: Sample in which a dense direction is searched: this many entries at most, within bounds.
SAMPLE_ENTRIES = 2**22
SAMPLE = (600, 2000)
#: Samples of rows in each of which a dense direction is searched. Most have to find the same rows;
#: they are drawn whatever the seed, so that no state of the verdict depends on it.
SAMPLES = 3
FEW_ROWS = f"fewer than {clumps.LEAST} different rows"
NO_DIRECTION = "the unit rows cancel, there is no common direction"
NO_CLUMP = "no rows form a clump apart from the others"
NO_DENSE = "no direction has many rows near it and few opposite to it"
DENSE = tuple(f"dense {number}" for number in range(SAMPLES))
TESTS = (q.ANGLE_EXCESS, q.NORM_EXCESS, q.DENSE_EXCESS)
OF_CLUMP = (
    q.CLUMP_ROWS,
    q.CLUMP_ANGLE,
    q.CLUMP_MEAN_COSINE,
    q.CLUMP_TILT,
    q.SCATTERED_ROWS,
    q.MEAN_COSINE_GATHERED,
)


def draw_samples(m: Measurement) -> list[IntArray]:
    """Draw samples of distinct rows, or one of all rows if these are few."""
    rows = find_distinct_rows(m.facts, m.shared)
    if len(rows) < clumps.LEAST:
        return []
    size = int(np.clip(SAMPLE_ENTRIES // m.facts.d, *SAMPLE))
    samples = [sample_rows(rows, size, generator(0, purpose)) for purpose in DENSE]
    return samples[:1] if len(rows) <= size else samples


def rows_read(m: Measurement) -> IntArray:
    return np.unique(np.concatenate([NO_ROWS, *draw_samples(m)]))


def second(m: Measurement) -> list[Statistic]:
    if m.shared.mean_direction is None:
        return []
    found = [clumps.find_dense_direction(m.reader.take_unit(rows)) for rows in draw_samples(m)]
    searched = [
        AngleTo(name, dense) for name, dense in zip(DENSE, found, strict=False) if dense is not None
    ]
    return [*m.shared.request_mean_angles(), *searched]


class ChosenClump(NamedTuple):
    """A clump, the name of its direction, and how many of the samples show it."""

    clump: clumps.Clump | None
    name: str
    votes: int = 1
    samples: int = 1


def choose_clump(m: Measurement, angles: FloatArray) -> ChosenClump:
    """Choose the clump that most samples find."""
    shared, samples = m.shared, max(1, len(draw_samples(m)))
    directions = [name for name in DENSE if shared.get(AngleTo, name) is not None]
    found = [
        (
            clumps.find_clump(
                angles, shared.norms, shared.hashes, shared.find(AngleTo, name).values()
            ),
            name,
        )
        for name in directions
    ]
    own = [(clump, name) for clump, name in found if clump is not None and clump.is_own]
    if not own:
        clump, name = next(
            iter(found), (clumps.find_clump(angles, shared.norms, shared.hashes, None), "")
        )
        return ChosenClump(clump, name)
    first, name = own[0]
    votes = sum(
        clumps.measure_agreement(first.rows, other.rows) >= clumps.AGREEMENT for other, _ in own
    )
    return ChosenClump(first, name, votes, samples)


def compute(m: Measurement) -> list[Value]:
    facts, shared = m.facts, m.shared
    angles, lengths = shared.mean_angles, shared.norms
    if angles is None:
        return [one.undefined(NO_DIRECTION) for one in (*TESTS, *OF_CLUMP)]
    choice = choose_clump(m, angles)
    clump, name, votes, samples = choice
    dense = shared.find(AngleTo, name).values() if name else None
    groups = group_by_kind(find_kinds(facts, facts.kept))
    scripts = []
    if facts.tokens is not None:
        rows = None if clump is None else clump.rows
        scripts.append(tabulate_scripts(facts, groups, lengths, angles, rows))
    if clump is None:
        return [*(one.undefined(FEW_ROWS) for one in (*TESTS, *OF_CLUMP)), *scripts]
    if 2 * votes <= samples:
        undecided = f"{votes} of {samples} samples of the rows show it"
        rest = [one.undefined(undecided) for one in OF_CLUMP]
        return [*describe_modes(clump), *rest, *scripts]
    around = dense if clump.is_own and dense is not None else angles
    values: list[Value] = [
        *describe_modes(clump),
        *describe_clump(clump, around),
        describe_tilt(clump, shared, name),
        *describe_scattered(clump, angles),
        *scripts,
    ]
    if clump.scattered.any():
        table = tabulate_rows(facts, q.SCATTERED, clump.scattered, groups, -angles, lengths)
        values.append(table)
    if not clump.rows.any():
        return values
    values += [
        *count_unused(facts, clump),
        tabulate_kinds(facts, clump, groups),
        tabulate_rows(facts, q.CLUMP, clump.rows, groups, around, lengths),
    ]
    if clump.is_own:
        column = np.degrees(facts.take_listed(around))
        values.append(Column(q.ANGLE_TO_CLUMP, column, "angle to the clump"))
    return values


def describe_modes(clump: clumps.Clump) -> list[Scalar]:
    critical = clumps.find_critical_excess(clump.distinct)
    tested = [(q.ANGLE_EXCESS, clump.angles, critical), (q.NORM_EXCESS, clump.norms, critical)]
    if clump.own is not None:
        of_group = clumps.find_critical_excess_of_group(clump.distinct, clump.own_share)
        tested.append((q.DENSE_EXCESS, clump.own, of_group))
    scalars = [
        quantity.measured(modes.excess, reference=level, reference_note="what one mode stays below")
        for quantity, modes, level in tested
    ]
    return scalars if clump.own is not None else [*scalars, q.DENSE_EXCESS.undefined(NO_DENSE)]


def describe_clump(clump: clumps.Clump, angles: FloatArray) -> list[Scalar]:
    """Return size, width and mean cosine of the clump; `angles` are to its direction."""
    rows, count = clump.rows, int(clump.rows.sum())
    if not count:
        return [q.CLUMP_ROWS.measured(0), *(one.undefined(NO_CLUMP) for one in OF_CLUMP[1:3])]
    counted = [q.CLUMP_ROWS.measured(count)]
    angle = q.CLUMP_ANGLE.measured(float(np.degrees(clump.limit)))
    if count < 2:
        return [*counted, angle, q.CLUMP_MEAN_COSINE.undefined("a single row has no pairs")]
    bound = bound_mean_cosine(angles[rows])
    return [*counted, angle, q.CLUMP_MEAN_COSINE.measured(bound, known="at_least")]


def describe_tilt(clump: clumps.Clump, shared: SharedStatistics, name: str) -> Scalar:
    """Return the angle between the direction of the clump and the mean direction."""
    if not clump.rows.any():
        return q.CLUMP_TILT.undefined(NO_CLUMP)
    mean = shared.mean_direction
    if not clump.is_own or mean is None:
        return q.CLUMP_TILT.measured(0.0)
    cosine = float(shared.find(AngleTo, name).direction @ mean)
    return q.CLUMP_TILT.measured(float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))))


def describe_scattered(clump: clumps.Clump, angles: FloatArray) -> list[Scalar]:
    """Return the number of scattered rows, and the mean cosine of the others."""
    count = q.SCATTERED_ROWS.measured(int(clump.scattered.sum()))
    if not clump.scattered.any():
        return [count, q.MEAN_COSINE_GATHERED.undefined("no rows are scattered")]
    bound = bound_mean_cosine(angles[~clump.scattered])
    return [count, q.MEAN_COSINE_GATHERED.measured(bound, known="at_least")]


def bound_mean_cosine(angles: FloatArray) -> float:
    """Return a lower bound of the mean cosine of rows, from angles to one direction.

    The mean of unit rows is at least as long as its part along the direction.
    """
    count = len(angles)
    return (float(np.cos(angles).sum()) ** 2 - count) / (count * (count - 1.0))


def count_unused(facts: Facts, clump: clumps.Clump) -> list[Scalar]:
    """Tell whether unused and rare tokens lie in the clump; empty if none are known."""
    found: list[Scalar] = []
    unused, said = find_unused_rows(facts)
    if len(unused):
        share = float(np.isin(unused, facts.kept[clump.rows]).mean())
        found.append(q.CLUMP_UNUSED_SHARE.measured(share, convention=said))
    if facts.frequency is not None and min(clump.rows.sum(), (~clump.rows).sum()) > 1:
        area, _ = auc(facts.frequency.counts[facts.kept], ~clump.rows)
        found.append(q.CLUMP_RARITY.measured(area, convention=facts.frequency.source))
    return found


def group_by_kind(kinds: list[str]) -> dict[str, IntArray]:
    """Return the positions among the kept rows by kind, ascending."""
    names, inverse = np.unique(np.array(kinds), return_inverse=True)
    groups = np.split(np.argsort(inverse, kind="stable"), np.cumsum(np.bincount(inverse))[:-1])
    return dict(zip(names.tolist(), groups, strict=True))


def select_by_kind(groups: dict[str, IntArray], rows: Mask) -> dict[str, IntArray]:
    """Return the positions of some rows by kind, the largest kind first."""
    found = {kind: positions[rows[positions]] for kind, positions in groups.items()}
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return {kind: positions for kind, positions in ordered if len(positions)}


def tabulate_scripts(
    facts: Facts,
    groups: dict[str, IntArray],
    norms: FloatArray,
    angles: FloatArray,
    clump: Mask | None,
) -> Table:
    """Return a line for each script or other kind of token, the largest first."""
    damaged = Counter(find_kinds(facts, facts.damaged))
    every = Counter({kind: len(positions) for kind, positions in groups.items()}) + damaged
    total = sum(every.values())
    rows: list[tuple[Cell, ...]] = []
    for kind, count in sorted(every.items(), key=lambda item: (-item[1], item[0]))[:SHOWN_SCRIPTS]:
        measured: tuple[Cell, ...] = (None, None, None)
        if (own := groups.get(kind)) is not None:
            inside = None if clump is None else float(clump[own].mean())
            measured = (float(np.median(norms[own])), float(np.cos(angles[own]).mean()), inside)
        rows.append((kind, count, count / total, *measured, damaged[kind] / count))
    note = note_shown(len(every), "scripts", SHOWN_SCRIPTS)
    return Table(q.BY_SCRIPT, SCRIPT_COLUMNS, tuple(rows), note=note)


def tabulate_kinds(facts: Facts, clump: clumps.Clump, groups: dict[str, IntArray]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for kind, positions in select_by_kind(groups, clump.rows).items():
        share = len(positions) / len(groups[kind])
        rows.append((kind, len(positions), share, facts.list_examples(facts.kept[positions])))
    if facts.counts is not None:
        never = facts.counts[facts.kept] == 0
        both = np.flatnonzero(clump.rows & never)
        if len(both):
            share, examples = len(both) / int(never.sum()), facts.list_examples(facts.kept[both])
            rows.append(("never in the counts", len(both), share, examples))
    return Table(q.CLUMP_KINDS, ("kind", "rows", "share of the kind", "tokens"), tuple(rows))


def tabulate_rows(
    facts: Facts,
    quantity: Quantity,
    members: Mask,
    groups: dict[str, IntArray],
    angles: FloatArray,
    norms: FloatArray,
) -> Table:
    """Tabulate the rows of smallest angle, one of each kind in turn.

    Negated angles give the largest first.
    """
    by_kind = (
        [(kind, at) for at in positions[np.argsort(angles[positions], kind="stable")][:SHOWN]]
        for kind, positions in select_by_kind(groups, members).items()
    )
    in_turn = [entry for turn in zip_longest(*by_kind) for entry in turn if entry is not None]
    kinds, places = zip(*in_turn[:SHOWN], strict=True)
    at = np.array(places)
    degrees = np.degrees(np.abs(angles[at])).tolist()
    rows = facts.list_rows(at, kinds, degrees, norms[at].tolist())
    columns = ("row", "token", "count", "kind", "angle (°)", "‖w‖")
    return Table(quantity, columns, rows, note=note_shown(int(members.sum()), "rows", SHOWN))


FAMILY = Family(
    "tokens",
    compute,
    first=(norms, hashes, unit_moments),
    second=second,
    rows_read=rows_read,
)
