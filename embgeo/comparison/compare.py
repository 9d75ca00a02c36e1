"""Comparing analyses, and their matrices if these can be read."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.curves import track_of
from embgeo.comparison.differences import differences
from embgeo.comparison.overlap import NEIGHBORS
from embgeo.comparison.pair import Pair
from embgeo.comparison.pairs import ComparisonInput, ComparisonOptions, compared
from embgeo.comparison.sentences import describe_same, sentences
from embgeo.core.errors import BadOption
from embgeo.core.progress import Progress

#: Longest token in a note, in characters.
LONGEST = 40
#: Rows that are compared at once, and rows whose bytes distinguish most matrices.
BLOCK_ROWS = 4096
FIRST_ROWS = 16


def compare_inputs(
    inputs: Sequence[ComparisonInput],
    options: ComparisonOptions | None = None,
    *,
    steps_source: str = "",
    command: str = "",
    timing: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare analyses with the first of them.

    Parameters
    ----------
    inputs : sequence of ComparisonInput
        The baseline first, at least two; in a track in the order of their steps.
    steps_source : str
        For a track, the origin of the steps; else empty.
    timing : mapping of str to float, optional
        Seconds of earlier stages.
    """
    options, progress = options or ComparisonOptions(), progress or Progress()
    if len(inputs) < 2:
        raise BadOption("a comparison takes two at least", way_out="name another checkpoint")
    seconds = dict(timing or {})
    inputs = list(inputs)
    members = tuple(one.member for one in inputs)
    same_as = find_same(inputs)
    pairs: list[Pair] = []
    for first, second in places(same_as, consecutive=bool(steps_source)):
        began = time.perf_counter()
        same = same_as[second]
        if same:
            pairs.append(replace(next(p for p in pairs if p.second == same), second=second))
            continue
        pairs.append(compared(inputs, first, second, options, progress))
        name = f"{members[first].name} and {members[second].name}"
        seconds[name] = round(time.perf_counter() - began, 4)
    rows = differences(members, {pair.second: pair.matching for pair in pairs if pair.first == 0})
    track = track_of(members, pairs, steps_source, same_as) if steps_source else None
    comparison = Comparison(
        provenance=provenance(members, options, command),
        members=members,
        pairs=tuple(pairs),
        differences=rows,
        notes=notes(members, pairs),
        track=track,
        timing=seconds,
    )
    return replace(comparison, sentences=(*describe_same(members, same_as), *sentences(comparison)))


def places(same_as: Sequence[int | None], consecutive: bool) -> list[tuple[int, int]]:
    """Pairs of members: each with the baseline; in a track, then each with the previous one.

    The previous one is not a duplicate.
    """
    found = [(0, second) for second in range(1, len(same_as))]
    kept = [place for place, same in enumerate(same_as) if same is None]
    return found + list(itertools.pairwise(kept[1:])) if consecutive else found


def provenance(
    members: Sequence[Member], options: ComparisonOptions, command: str
) -> dict[str, Any]:
    """Command, options, and the versions of the first analysis made here."""
    fresh = next((m for m in members if not m.from_saved), None)
    from embgeo.measure.provenance import versions

    return {
        "command": command,
        "seed": options.seed,
        "options": {"match": options.match, "queries": options.queries, "neighbors": NEIGHBORS},
        "inputs": [
            {
                "given": m.given,
                "file": m.analysis.provenance.get("file", ""),
                "tensor": m.analysis.provenance.get("tensor", ""),
                "sha256": m.analysis.provenance.get("sha256", ""),
            }
            for m in members
        ],
        "versions": versions() if fresh is None else fresh.analysis.provenance["versions"],
    }


def notes(members: Sequence[Member], pairs: Sequence[Pair]) -> tuple[str, ...]:
    """How rows were matched, which were left out, and which matrices were not available."""
    between = [f"{members[p.first].name} and {members[p.second].name}" for p in pairs]
    names = [member.name for member in members]
    found = merge_notes(between, [matching_notes(p, members) for p in pairs])
    if any(part.missing + part.ambiguous for p in pairs for part in p.matching.left_out):
        found.append(
            "numbers of one matrix are over all its rows, those of two over the shared ones alone"
        )
    found += merge_notes(names, [[m.matrix_absent] if m.matrix_absent else [] for m in members])
    found += merge_notes(names, [[note.text for note in m.analysis.notes] for m in members])
    return tuple(dict.fromkeys(found))


def merge_notes(names: Sequence[str], notes: Sequence[Sequence[str]]) -> list[str]:
    """Notes with the name of their subject; a note about all subjects appears once."""
    return [
        f"{'all' if len(names) > 1 and all(note in others for others in notes) else name}: {note}"
        for name, own in zip(names, notes, strict=True)
        for note in own
    ]


def matching_notes(pair: Pair, members: Sequence[Member]) -> list[str]:
    matching = pair.matching
    if matching.by is None:
        return [f"rows are not matched: {matching.reason}"]
    what = "tokens" if matching.by == "token" else "rows"
    said = [f"{counted(matching.shared, what)} shared, matched by {matching.by}"]
    if matching.by == "row":
        said[0] += f" ({matching.reason})"
    for place, part in zip((pair.first, pair.second), matching.left_out, strict=True):
        if part.missing:
            more = ", …" if part.missing > len(part.examples) else ""
            only = f"only in {members[place].name}: {quote_examples(part.examples, what)}{more}"
            said.append(f"{counted(part.missing, what)} {only}")
    ambiguous = max(matching.left_out, key=lambda part: part.ambiguous)
    if ambiguous.ambiguous:
        said.append(
            f"{counted(ambiguous.ambiguous, 'rows')} left out: tokens that occur in several rows, "
            "not the same ones on both sides: "
            + quote_examples(ambiguous.ambiguous_examples, "tokens")
        )
    return said


def counted(number: int, what: str) -> str:
    return f"{number:,} {what[:-1] if number == 1 else what}"


def quote_examples(examples: Sequence[str], what: str) -> str:
    """Tokens in quotes and cut if very long; row numbers unchanged."""
    if what == "rows":
        return ", ".join(examples)
    return ", ".join(
        repr(token if len(token) <= LONGEST else f"{token[:LONGEST]}…") for token in examples
    )


def find_same(inputs: Sequence[ComparisonInput]) -> tuple[int | None, ...]:
    """For each input, the place of the first one with the same matrix; None if that is itself."""
    first_places: dict[object, list[int]] = {}
    found: list[int | None] = []
    for place, one in enumerate(inputs):
        alike = first_places.setdefault(describe(one), [])
        same = next((i for i in alike if is_same(inputs[i], one)), None)
        if same is None:
            alike.append(place)
        found.append(same)
    return tuple(found)


def describe(one: ComparisonInput) -> object:
    """A cheap key that two inputs share if they hold the same matrix."""
    if one.matrix is None:
        p = one.member.analysis.provenance
        return tuple(str(p.get(key)) for key in ("sha256", "tensor", "row_range", "n", "d"))
    data = one.matrix.data
    return data.shape, str(data.dtype), np.ascontiguousarray(data[:FIRST_ROWS]).tobytes()


def is_same(one: ComparisonInput, other: ComparisonInput) -> bool:
    """Whether two inputs of one description hold the same bytes."""
    if one.matrix is None or other.matrix is None:
        return bool(one.member.analysis.provenance.get("sha256"))
    first, second = one.matrix.data, other.matrix.data
    return first is second or all(
        np.ascontiguousarray(first[at : at + BLOCK_ROWS]).tobytes()
        == np.ascontiguousarray(second[at : at + BLOCK_ROWS]).tobytes()
        for at in range(0, len(first), BLOCK_ROWS)
    )
