"""Comparing analyses, and their matrices if these can be read."""

import hashlib
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from embgeo.comparison import overlap
from embgeo.comparison.comparison import Comparison, Member
from embgeo.comparison.curves import track_of
from embgeo.comparison.differences import differences, explain_unlike
from embgeo.comparison.film import share_plane
from embgeo.comparison.matching import By, Matching, match_rows
from embgeo.comparison.pair import Pair
from embgeo.comparison.sentences import describe_same, sentences
from embgeo.comparison.shared import Joint, Shared, read_joint
from embgeo.comparison.similarity import permutation_p, similarities
from embgeo.comparison.suspects import compare_suspects
from embgeo.comparison.track import Unmeasured
from embgeo.core.arrays import IntArray
from embgeo.core.errors import BadOption
from embgeo.core.matrix import Matrix
from embgeo.core.progress import Progress
from embgeo.core.quantities import compare as q
from embgeo.core.values import Scalar, Series, Table
from embgeo.stats.resources import Resources

#: Longest token in a note, in characters.
LONGEST = 40
#: Rows that are compared at once, and rows whose bytes distinguish most matrices.
BLOCK_ROWS, FIRST_ROWS = 4096, 16
#: A member of a comparison, with its matrix if it can be read.
Input: TypeAlias = "tuple[Member, Matrix | None]"


def compare(
    inputs: Sequence[Input],
    *,
    match: By | None = None,
    queries: overlap.QueryCount = None,
    seed: int = 0,
    resources: Resources | None = None,
    steps_source: str = "",
    unmeasured: Sequence[Unmeasured] = (),
    command: str = "",
    timing: Mapping[str, float] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare analyses with the first of them, and matrices that could be read.

    `inputs`: the baseline first, at least two; in a track in the order of their steps. `match`: how
    rows are matched; by token if all have tokens, else by row. `queries`: tokens whose neighbors
    are compared; all up to 5,000, else 1,000; 0 for none. `steps_source`: for a track, the origin
    of the steps; else empty. `unmeasured`: its checkpoints without numbers. `timing`: seconds of
    earlier stages.
    """
    resources, progress = resources or Resources(), progress or Progress()
    if len(inputs) < 2:
        raise BadOption("a comparison takes two at least", way_out="name another checkpoint")
    seconds = dict(timing or {})
    members = tuple(member for member, _ in inputs)
    same_as = find_same(inputs)
    pairs: list[Pair] = []
    for first, second in places(same_as, consecutive=bool(steps_source)):
        began = time.perf_counter()
        same = same_as[second]
        if same:
            pairs.append(replace(next(p for p in pairs if p.second == same), second=second))
            continue
        # Not by name: the progress bar would read markup in it.
        title = f"matrices {first + 1} and {second + 1}"
        matching = match_rows(members[first].analysis, members[second].analysis, match)
        found = compare_pair(
            inputs[first], inputs[second], matching, queries, seed, resources, progress, title
        )
        pairs.append(replace(found, first=first, second=second))
        name = f"{members[first].name} and {members[second].name}"
        seconds[name] = round(time.perf_counter() - began, 4)
    rows = differences(members, {pair.second: pair.matching for pair in pairs if pair.first == 0})
    track = track_of(members, pairs, steps_source, same_as) if steps_source else None
    if track is not None:
        places_of = share_plane([(at, *inputs[at]) for at in track.distinct])
        track = replace(track, places=places_of, unmeasured=tuple(unmeasured))
    last = len(members) - 1
    for _, matrix in inputs:
        if matrix is not None:
            matrix.origin.check_files(at_end=True)
    comparison = Comparison(
        provenance=provenance(members, match, queries, seed, command),
        members=members,
        pairs=tuple(pairs),
        differences=rows,
        suspects=tuple(
            change
            for pair in pairs
            if pair.first == 0 and pair.matching.by and (track is None or pair.second == last)
            for change in compare_suspects(
                members[0].analysis,
                members[pair.second].analysis,
                pair.second,
                by_token=pair.matching.by == "token",
            )
        ),
        notes=notes(members, pairs),
        track=track,
        timing=seconds,
    )
    return replace(comparison, sentences=(*describe_same(members, same_as), *sentences(comparison)))


def places(same_as: Sequence[int | None], consecutive: bool) -> list[tuple[int, int]]:
    """Return pairs of members: each with the baseline; in a track, then each with the previous one.

    The previous one is not a duplicate.
    """
    found = [(0, second) for second in range(1, len(same_as))]
    kept = [place for place, same in enumerate(same_as) if same is None]
    return found + list(itertools.pairwise(kept[1:])) if consecutive else found


def compare_pair(
    one: Input,
    other: Input,
    matching: Matching,
    queries: overlap.QueryCount,
    seed: int,
    resources: Resources,
    progress: Progress,
    title: str,
) -> Pair:
    """Return all values of two of the inputs, the first two of a comparison."""
    (before, x), (after, y) = one, other
    reason = explain_undefined(one, other, matching)
    if reason or x is None or y is None:
        return Pair(0, 1, matching, tuple(s.undefined(reason) for s in q.SCALARS))
    rows = before.analysis.rows[matching.first], after.analysis.rows[matching.second]
    shared = Shared(x, y, *rows, resources)
    progress.start(title, shared.n)
    reason = no_neighbors(shared.n, queries)
    drawn = overlap.draw_queries(shared.n, 0 if reason else queries, seed)
    known = [
        None if one.from_saved else overlap.recall_neighbors(one.analysis, places, drawn)
        for one, places in ((before, matching.first), (after, matching.second))
    ]
    joint, found = read_both(shared, drawn, progress.advance, known)
    values: list[Scalar | Series | Table] = [
        *similarities(joint),
        permutation_p(shared, seed),
    ]
    if found is None:
        values.append(q.NEIGHBOR_OVERLAP.undefined(reason))
    else:
        counts = before.analysis.counts
        counts = None if counts is None else counts[matching.first]
        values.append(overlap.measure_overlap(found, seed))
        drops = overlap.measure_drops(shared, found)
        values.append(overlap.build_moved_table(found, drops, labels(before, matching), counts))
    order = {quantity.name: place for place, quantity in enumerate(q.SCALARS)}
    scalars = [v for v in values if isinstance(v, Scalar)]
    return Pair(
        0,
        1,
        matching,
        tuple(sorted(scalars, key=lambda s: order[s.name])),
        tuple(v for v in values if isinstance(v, Series)),
        tables=tuple(v for v in values if isinstance(v, Table)),
        reordered=matching.by == "row" and is_reordered(x, y),
    )


def read_both(
    shared: Shared,
    queries: IntArray,
    advance: Callable[[int], None],
    known: Sequence[IntArray | None] = (None, None),
) -> tuple[Joint, overlap.Overlap | None]:
    """Read one pass for neighbors and sums, a second that needs the means.

    Very many queries need further passes; `known` neighbors in both matrices need none.
    """
    one, other = known
    if one is not None and other is not None and len(queries):
        return read_joint(shared, advance), overlap.Overlap(queries, one, other, shared.n)
    chunks = overlap.in_chunks(queries, shared.resources.room)
    if not chunks:
        return read_joint(shared, advance), None
    before, after = overlap.searches(shared, chunks[0])
    joint = read_joint(shared, advance, (before, after))
    found = [overlap.Overlap(chunks[0], before.neighbors, after.neighbors, shared.n)]
    for chunk in chunks[1:]:
        before, after = overlap.searches(shared, chunk)
        shared.fold((before, after), lambda _rows: None)
        found.append(overlap.Overlap(chunk, before.neighbors, after.neighbors, shared.n))
    return joint, overlap.join_overlaps(found)


def explain_undefined(one: Input, other: Input, matching: Matching) -> str:
    """Explain why values of two matrices are undefined; empty if they are not."""
    if matching.by is None:
        return matching.reason
    if matching.shared < 2:
        number = "one" if matching.shared else "no"
        if matching.by == "token":
            return f"{number} token is shared; --match row pairs equal row numbers"
        return f"{number} row is shared"
    for member, matrix in (one, other):
        if matrix is None:
            return member.matrix_absent or "the matrix is not available"
    return ""


def no_neighbors(shared: int, queries: overlap.QueryCount) -> str:
    if queries == 0:
        return "no queries were requested"
    if shared <= overlap.NEIGHBORS:
        return f"{shared:,} shared tokens have no {overlap.NEIGHBORS} neighbors each"
    return ""


def labels(member: Member, matching: Matching) -> list[str]:
    """Return tokens of the shared rows, or their row numbers."""
    analysis = member.analysis
    if analysis.tokens is None:
        return [f"row {row}" for row in analysis.rows[matching.first].tolist()]
    return [analysis.tokens[at] for at in matching.first.tolist()]


def provenance(
    members: Sequence[Member],
    match: By | None,
    queries: overlap.QueryCount,
    seed: int,
    command: str,
) -> dict[str, Any]:
    """Return the command, the options, and the versions of the first analysis made here."""
    fresh = next((m for m in members if not m.from_saved), None)
    from embgeo.measure.provenance import versions

    return {
        "command": command,
        "seed": seed,
        "options": {"match": match, "queries": queries, "neighbors": overlap.NEIGHBORS},
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
    """Describe how rows were matched, which were left out, and which matrices were missing."""
    between = [f"{members[p.first].name} and {members[p.second].name}" for p in pairs]
    names = [member.name for member in members]
    found = merge_notes(between, [matching_notes(p, members) for p in pairs])
    if any(part.missing + part.ambiguous for p in pairs for part in p.matching.left_out):
        found.append(
            "numbers of one matrix are over all its rows, those of two over the shared ones alone"
        )
    found += merge_notes(names, [unlike_notes(members[0], member) for member in members])
    found += merge_notes(names, [[m.matrix_absent] if m.matrix_absent else [] for m in members])
    found += merge_notes(names, [[note.text for note in m.analysis.notes] for m in members])
    return tuple(dict.fromkeys(found))


def unlike_notes(baseline: Member, member: Member) -> list[str]:
    before, now = baseline.analysis.provenance, member.analysis.provenance
    families = dict.fromkeys(scalar.quantity.family for scalar in member.analysis.scalars)
    reasons = dict.fromkeys(explain_unlike(family, before, now) for family in families)
    return [f"some numbers are not compared: {why}" for why in reasons if why]


def merge_notes(names: Sequence[str], notes: Sequence[Sequence[str]]) -> list[str]:
    """Return notes with the name of their subject; a note about all subjects appears once."""
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
    """Return tokens in quotes and cut if very long; row numbers unchanged."""
    if what == "rows":
        return ", ".join(examples)
    return ", ".join(
        repr(token if len(token) <= LONGEST else f"{token[:LONGEST]}…") for token in examples
    )


def find_same(inputs: Sequence[Input]) -> tuple[int | None, ...]:
    """Find for each input the place of the first one with the same matrix.

    None if that is itself.
    """
    first_places: dict[object, list[int]] = {}
    found: list[int | None] = []
    for place, one in enumerate(inputs):
        alike = first_places.setdefault(describe(one), [])
        same = next((i for i in alike if is_same(inputs[i], one)), None)
        if same is None:
            alike.append(place)
        found.append(same)
    return tuple(found)


def describe(one: Input) -> object:
    """Return a cheap key that two inputs share if they hold the same matrix."""
    member, matrix = one
    if matrix is None:
        p = member.analysis.provenance
        return tuple(str(p.get(key)) for key in ("sha256", "tensor", "row_range", "n", "d"))
    data = matrix.data
    return data.shape, str(data.dtype), np.ascontiguousarray(data[:FIRST_ROWS]).tobytes()


def is_reordered(one: Matrix, other: Matrix) -> bool:
    """Tell whether the rows of two matrices have the same bytes, in another order."""
    if one.data.shape != other.data.shape or one.data.dtype != other.data.dtype:
        return False
    first, second = (
        np.sort(np.concatenate([rows[:, 0].copy() for _, rows in matrix.blocks()]))
        for matrix in (one, other)
    )
    if not np.array_equal(first, second, equal_nan=True):  # as of most matrices
        return False
    before, after = hash_rows(one), hash_rows(other)
    return before != after and sorted(before) == sorted(after)


def hash_rows(matrix: Matrix) -> list[bytes]:
    found = []
    for at in range(0, matrix.n, BLOCK_ROWS):
        rows = np.ascontiguousarray(matrix.data[at : at + BLOCK_ROWS])
        found += [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows]
    return found


def is_same(one: Input, other: Input) -> bool:
    """Tell whether two inputs of one description hold the same bytes."""
    (member, matrix), (_, reference) = one, other
    if matrix is None or reference is None:
        return bool(member.analysis.provenance.get("sha256"))
    first, second = matrix.data, reference.data
    return first is second or all(
        np.ascontiguousarray(first[at : at + BLOCK_ROWS]).tobytes()
        == np.ascontiguousarray(second[at : at + BLOCK_ROWS]).tobytes()
        for at in range(0, len(first), BLOCK_ROWS)
    )
