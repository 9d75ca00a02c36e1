"""The values of a pair of matrices, or why there are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from embgeo.comparison.comparison import Member
from embgeo.comparison.joint import Joint, read_joint
from embgeo.comparison.matching import By, Matching, match
from embgeo.comparison.overlap import (
    NEIGHBORS,
    Overlap,
    QueryCount,
    build_moved_table,
    draw_queries,
    in_chunks,
    join_overlaps,
    overlap_values,
    searches,
    token_overlap,
)
from embgeo.comparison.pair import Pair
from embgeo.comparison.shared import Shared
from embgeo.comparison.similarity import permutation_p, similarities
from embgeo.core.arrays import IntArray
from embgeo.core.quantities import compare as q
from embgeo.core.values import Histogram, Scalar, Series, Table
from embgeo.stats.resources import Resources

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.core.progress import Progress


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """Options of a comparison."""

    seed: int = 0
    #: How rows are matched; None: by token if all have tokens, else by row.
    match: By | None = None
    #: Tokens whose neighbors are compared; None: all up to 5,000, else 1,000; 0: none.
    queries: QueryCount = None
    resources: Resources = field(default_factory=Resources)


@dataclass(frozen=True, slots=True)
class ComparisonInput:
    """A member of a comparison, with its matrix if it can be read."""

    member: Member
    matrix: Matrix | None = None


def compared(
    inputs: list[ComparisonInput],
    first: int,
    second: int,
    options: ComparisonOptions,
    progress: Progress,
) -> Pair:
    """All values of two of the inputs."""
    one, other = inputs[first], inputs[second]
    matching = match(one.member.analysis, other.member.analysis, options.match)
    reason = explain_undefined(one, other, matching)
    if reason or one.matrix is None or other.matrix is None:
        return Pair(first, second, matching, tuple(s.undefined(reason) for s in q.SCALARS))
    shared = Shared(
        one.matrix,
        other.matrix,
        one.member.analysis.rows[matching.first],
        other.member.analysis.rows[matching.second],
        options.resources,
    )
    # Not by name: the progress bar would read markup in it.
    progress.start(f"matrices {first + 1} and {second + 1}", shared.n)
    reason = no_neighbors(shared.n, options)
    queries = draw_queries(shared.n, 0 if reason else options.queries, options.seed)
    joint, found = read_both(shared, queries, progress.advance)
    values: list[Scalar | Series | Histogram | Table] = [
        *similarities(joint),
        permutation_p(shared, options.seed),
    ]
    by_token = None if found is None else token_overlap(found)
    if found is None:
        values += [x.undefined(reason) for x in (q.NEIGHBOR_OVERLAP, q.MUTUAL_NEIGHBORS)]
    else:
        values += overlap_values(found, options.seed)
        counts = one.member.analysis.counts
        values.append(
            build_moved_table(
                found,
                labels(one.member, matching),
                None if counts is None else counts[matching.first],
            )
        )
    order = {quantity.name: place for place, quantity in enumerate(q.SCALARS)}
    scalars = [v for v in values if isinstance(v, Scalar)]
    return Pair(
        first,
        second,
        matching,
        tuple(sorted(scalars, key=lambda s: order[s.name])),
        tuple(v for v in values if isinstance(v, Series)),
        tuple(v for v in values if isinstance(v, Histogram)),
        columns=() if by_token is None else (by_token,),
        tables=tuple(v for v in values if isinstance(v, Table)),
    )


def read_both(
    shared: Shared, queries: IntArray, advance: Callable[[int], None]
) -> tuple[Joint, Overlap | None]:
    """One pass for neighbors and sums, a second that needs the means.

    Very many queries need further passes.
    """
    chunks = in_chunks(queries, shared.resources.memory)
    if not chunks:
        return read_joint(shared, advance), None
    before, after = searches(shared, chunks[0])
    joint = read_joint(shared, advance, (before, after))
    found = [Overlap(chunks[0], before.neighbors, after.neighbors, shared.n)]
    for chunk in chunks[1:]:
        before, after = searches(shared, chunk)
        shared.fold((before, after), lambda _rows: None)
        found.append(Overlap(chunk, before.neighbors, after.neighbors, shared.n))
    return joint, join_overlaps(found)


def explain_undefined(one: ComparisonInput, other: ComparisonInput, matching: Matching) -> str:
    """Why values of two matrices are undefined; empty if they are not."""
    if matching.by is None:
        return matching.reason
    if matching.shared < 2:
        number = "one" if matching.shared else "no"
        if matching.by == "token":
            return f"{number} token is shared; --match row pairs equal row numbers"
        return f"{number} row is shared"
    for side in (one, other):
        if side.matrix is None:
            return side.member.matrix_absent or "the matrix is not available"
    return ""


def no_neighbors(shared: int, options: ComparisonOptions) -> str:
    if options.queries == 0:
        return "no queries were requested"
    if shared <= NEIGHBORS:
        return f"{shared:,} shared tokens have no {NEIGHBORS} neighbors each"
    return ""


def labels(member: Member, matching: Matching) -> list[str]:
    """Tokens of the shared rows, or their row numbers."""
    analysis = member.analysis
    if analysis.tokens is None:
        return [f"row {row}" for row in analysis.rows[matching.first].tolist()]
    return [analysis.tokens[at] for at in matching.first.tolist()]
