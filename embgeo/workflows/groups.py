"""Two groups of matrices, such as seeds: what differs by more than the seeds do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embgeo.comparison.differences import explain_unlike
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import argument
from embgeo.core.numbers import format_p
from embgeo.core.progress import Progress
from embgeo.core.text import align
from embgeo.files.guard import list_short
from embgeo.numerics.scores import adjust_holm
from embgeo.result.analysis import Analysis
from embgeo.training.study.deciding import MOST_P
from embgeo.training.study.spread import LEAST_SEEDS, compare_seeds, signed, spread
from embgeo.workflows.analyze import analyze, load_analysis
from embgeo.workflows.diff import is_measured

#: The last number of a path, which names the seed of a run.
_SEED = re.compile(r"\d+(?=\D*$)")


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """A number of two groups, and its difference over seeds."""

    name: str
    #: With the unit.
    title: str
    #: Mean ± standard deviation over the members.
    before: str
    after: str
    difference: float
    interval: tuple[float, float] | None
    p_value: float | None
    #: "lower", "higher", "nominally lower", "nominally higher", "within seeds" or "too few seeds".
    word: str
    #: After Holm's correction over all numbers.
    p_adjusted: float | None = None


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """Two groups of matrices.

    Attributes
    ----------
    baseline, others : tuple of str
        The paths of the members.
    paired : bool
        Whether members of one seed were compared with each other: if both groups have the same
        seeds, by the last number of their paths. Otherwise the intervals are those of Welch's t.
    differences : tuple of GroupDifference
        The scalars that all members have.
    unlike : dict of str to str
        Why other scalars are different quantities in the members, by name.
    """

    baseline: tuple[str, ...]
    others: tuple[str, ...]
    paired: bool
    differences: tuple[GroupDifference, ...]
    unlike: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Group:
    """A group of matrices, such as the seeds of a method."""

    paths: tuple[Path, ...]
    #: The seeds of a pair of groups that have the same ones, else the places of the members.
    keys: tuple[int, ...]
    members: tuple[Analysis, ...]


def compare_groups(
    baseline: Sequence[Path | str],
    others: Sequence[Path | str],
    *,
    progress: Progress | None = None,
    **settings: Any,
) -> GroupComparison:
    """Compare each scalar of two groups of checkpoints or saved analyses, over their seeds.

    `settings`: arguments of `embgeo.analyze` for checkpoints.

    Raises
    ------
    BadOption
        If a group has no member, or one of them twice.
    """
    groups, paired = open_groups(baseline, others, progress=progress, **settings)
    first, second = (tuple(map(str, group.paths)) for group in groups)
    unlike = find_unlike(groups)
    return GroupComparison(first, second, paired, list_differences(groups, unlike, paired), unlike)


def open_groups(
    baseline: Sequence[Path | str],
    others: Sequence[Path | str],
    *,
    progress: Progress | None = None,
    **settings: Any,
) -> tuple[tuple[Group, Group], bool]:
    """Open both groups, and tell whether their members are paired by seed."""
    groups = [expand_patterns(paths) for paths in (baseline, others)]
    for name, paths in zip(("baseline", "against"), groups, strict=True):
        refuse_if(not paths, argument(name), "names no checkpoint", "name one or more")
    seeds = [[read_seed(path) for path in paths] for paths in groups]
    paired = None not in seeds[0] and set(seeds[0]) == set(seeds[1])
    paired = paired and all(len(set(own)) == len(own) for own in seeds)
    first, second = (
        Group(
            tuple(paths),
            tuple(int(seed or 0) if paired else place for place, seed in enumerate(own)),
            tuple(open_member(path, progress, settings) for path in paths),
        )
        for paths, own in zip(groups, seeds, strict=True)
    )
    refuse_copies(first)
    refuse_copies(second)
    return (first, second), paired


def refuse_copies(group: Group) -> None:
    """Refuse a matrix that is in a group twice, which would count as two seeds."""
    seen: dict[tuple[object, ...], Path] = {}
    for path, member in zip(group.paths, group.members, strict=True):
        values = (scalar.value for scalar in member.scalars)
        other = seen.setdefault((member.provenance.get("sha256"), *values), path)
        cause = f"is in its group twice, also as {other}, and counts as two seeds"
        refuse_if(other is not path, str(path), cause, "name each matrix once")


def expand_patterns(paths: Sequence[Path | str]) -> list[Path]:
    """Return the paths, each with a pattern replaced by the paths that match it."""
    found: list[Path] = []
    for path in map(Path, paths):
        anchor = Path(path.anchor or ".")
        held = [path] if path.exists() else sorted(anchor.glob(str(path.relative_to(path.anchor))))
        found += held or [path]
    return found


def read_seed(path: Path) -> str | None:
    match = _SEED.search(str(path.with_suffix("") if path.is_file() else path))
    return match[0] if match else None


def open_member(path: Path, progress: Progress | None, settings: dict[str, Any]) -> Analysis:
    """Read a saved analysis, or measure a checkpoint."""
    if is_measured(path):
        return load_analysis(path)
    return analyze(path, reference=False, progress=progress, **settings)


def list_differences(
    groups: Sequence[Group], unlike: Collection[str], paired: bool
) -> tuple[GroupDifference, ...]:
    """Compare the other scalars that all members have, with Holm's correction over all of them."""
    found = []
    for scalar in groups[0].members[0].scalars:
        if scalar.name in unlike:
            continue
        sides = []
        for group in groups:
            held = [one.find_scalar(scalar.name) for one in group.members]
            values = [one.value for one in held if one is not None and one.value is not None]
            if len(values) == len(held):
                sides.append(dict(zip(group.keys, values, strict=True)))
        if len(sides) < len(groups):
            continue
        texts = [spread(list(side.values())) for side in sides]
        difference = compare_seeds(*sides, paired=paired)
        if difference is None or texts[0] is None or texts[1] is None:
            continue
        side = difference.side()
        word = "within seeds" if side == "open" else side
        quantity = scalar.quantity
        found.append(
            GroupDifference(
                scalar.name,
                f"{quantity.title} ({quantity.unit})" if quantity.unit else quantity.title,
                texts[0].text,
                texts[1].text,
                difference.difference,
                difference.interval,
                difference.p_value(),
                word="too few seeds" if difference.interval is None else word,
            )
        )
    tested = iter(adjust_holm([one.p_value for one in found if one.p_value is not None]))
    adjusted = [
        one if one.p_value is None else replace(one, p_adjusted=next(tested)) for one in found
    ]
    return tuple(
        replace(one, word=f"nominally {one.word}")
        if one.word in ("lower", "higher") and (one.p_adjusted or 0.0) > MOST_P
        else one
        for one in adjusted
    )


def find_unlike(groups: Sequence[Group]) -> dict[str, str]:
    """Explain by name which scalars are different quantities in some of the members."""
    first, *others = (member for group in groups for member in group.members)
    found = {}
    for scalar in first.scalars:
        for other in others:
            if why := explain_unlike(scalar.quantity.family, first.provenance, other.provenance):
                found[scalar.name] = why
            again = other.find_scalar(scalar.name)
            if again is not None and again.size != scalar.size:
                found[scalar.name] = "it depends on the number of rows, which differs"
    return found


def name_unlike(unlike: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each reason why scalars are not compared."""
    reasons: dict[str, list[str]] = {}
    for name, why in unlike.items():
        reasons.setdefault(why, []).append(name)
    for why, named in reasons.items():
        yield f"Not compared: {list_short(named)} ({why})."


def render_groups(found: GroupComparison) -> Iterator[str]:
    """Yield the lines of the table, and what it rests on."""
    rows = [["", "baseline", "against", "difference", "p (Holm)", ""]]
    for one in found.differences:
        ends = "" if one.interval is None else f" ({' … '.join(map(signed, one.interval))})"
        p = "" if one.p_adjusted is None else format_p(one.p_adjusted)
        change = f"{signed(one.difference)}{ends}"
        word = "" if one.interval is None else one.word
        rows.append([one.title, one.before, one.after, change, p, word])
    yield from align(rows, left=frozenset({0, 5}))
    yield from name_unlike(found.unlike)
    sizes = f"{len(found.baseline)} against {len(found.others)}"
    how = "paired by seed" if found.paired else "without pairs of seeds (Welch's t)"
    yield f"{sizes}, {how}; 95% intervals, p after Holm's correction over all numbers."
    if min(len(found.baseline), len(found.others)) < LEAST_SEEDS:
        yield f"Too few seeds to test: {LEAST_SEEDS} or more in each group have an interval."
