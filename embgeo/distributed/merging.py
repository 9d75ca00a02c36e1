"""Merging of states, in the order of their rows regardless of the order of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from embgeo.core.errors import EmbgeoError, UnreadableFile, argument
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.source import NO_TOKENS, Source
from embgeo.distributed import files
from embgeo.distributed.code_version import check_version
from embgeo.distributed.part import MeasuringSetup, StatePart
from embgeo.distributed.plans import MergePlan
from embgeo.distributed.rounds import first_statistics
from embgeo.distributed.rows import StoredRows
from embgeo.distributed.states import (
    FirstState,
    SecondState,
    read_first,
    read_second,
    read_setup,
)
from embgeo.distributed.whole import check_cover, join_pieces, sort_parts
from embgeo.io.bounded.guard import Damaged, reading
from embgeo.io.bounded.small_files import safe_text
from embgeo.io.labels.label_file import read_labels
from embgeo.io.labels.rows import RowCut, RowLabels, lay_given
from embgeo.io.selecting import Labeling, count_named
from embgeo.stats import Census
from embgeo.stats.statistic import merge_all


def merge_first(states: Sequence[files.Stored]) -> FirstState:
    """The first round of all parts, with no more than two states in memory.

    UnreadableFile for a damaged state, or one whose setup differs from that of the first.
    """
    setup = read_setup(states[0])
    check_version(setup.embgeo, states[0].path)
    for stored in states[1:]:
        if difference := read_setup(stored).difference(setup):
            raise files.refuse_state(stored.path, f"differs from {states[0].path} in {difference}")
    with reading(states[0].path, "state"):
        blanks = first_statistics(setup)
    whole = FirstState(setup, [], Census(), blanks)
    for stored in sort_by_first_row(states, "pieces"):
        state = read_first(stored, blanks)
        with reading(stored.path, "state"):
            whole.merge(state)
    return whole


def sort_by_first_row(states: Sequence[files.Stored], name: str) -> list[files.Stored]:
    """The files by their first rows, so that sums do not depend on the order of names."""

    def key(stored: files.Stored) -> tuple[int, int]:
        kind = [StatePart] if name == "parts" else [(StatePart, Matrix | None)]
        found = stored.unpack(**{name: kind})[name]
        parts = found if name == "parts" else [part for part, _ in found]
        with reading(stored.path, "state"):
            if not parts:
                raise Damaged(files.NOT_OURS)
            return min((int(part.start), int(part.stop)) for part in parts)

    return sorted(states, key=key)


def make_plan(state: FirstState) -> MergePlan:
    """A plan with the first pass over all parts, and no requests yet."""
    parts = sort_parts([part for part, _ in state.pieces])
    n = check_cover(parts)
    matrix = join_pieces(state.pieces, state.setup)
    setup = replace(state.setup, options=state.setup.options.for_tokens(matrix.tokens))
    if matrix.n != n:
        raise EmbgeoError(f"the parts hold {matrix.n:,} rows, the matrix has {n:,}")
    # A plan does not depend on the paths of states.
    parts = [replace(part, state="") for part in parts]
    return MergePlan(setup, parts, matrix, state.census, state.statistics)


def add_labels(
    plan: MergePlan, tokens: tuple[str, ...] | None, frequency: Frequency | None
) -> MergePlan:
    """The plan with labels and counts of the whole, which no part may have."""
    matrix: Matrix = plan.matrix
    for what, given, own in (
        (argument("tokens"), tokens, matrix.tokens),
        (f"{argument('counts')} or {argument('rank_order')}", frequency, matrix.frequency),
    ):
        if given is not None and own is not None:
            raise EmbgeoError(
                "the parts have their own",
                where=what,
                way_out="leave it out here, or measure the parts without",
            )
    matrix = replace(
        matrix,
        tokens=tokens if tokens is not None else matrix.tokens,
        frequency=frequency if frequency is not None else matrix.frequency,
    )
    setup = replace(plan.setup, options=plan.setup.options.for_tokens(matrix.tokens))
    return replace(plan, matrix=matrix, setup=setup)


def merge_second(plan: MergePlan, identity: str, states: Sequence[files.Stored]) -> SecondState:
    """The second round of all parts, which have to cover all rows once, for this plan."""
    blanks = plan.statistics
    whole = SecondState(identity, [], [blank.blank() for blank in blanks])
    rows: list[StoredRows] = []
    for stored in sort_by_first_row(states, "parts"):
        if stored.content.get("plan") != identity:
            raise UnreadableFile(
                "made for another plan",
                where=stored.path,
                way_out="merge states of one plan, with that plan",
            )
        state = read_second(stored, blanks)
        with reading(stored.path, "state"):
            check_rows(state.rows, plan.setup)
            whole.parts += state.parts
            merge_all(whole.statistics, state.statistics)
            rows.append(state.rows)
    check_cover(whole.parts, plan.matrix.n)
    return replace(whole, rows=StoredRows().join(*rows))


def check_rows(rows: StoredRows, setup: MeasuringSetup) -> None:
    """Refuse gathered rows of another shape or type than the matrix."""
    entries = rows.entries
    if entries is not None and (
        entries.shape[1:] != (setup.d,) or str(entries.dtype) != setup.dtype
    ):
        raise Damaged("it holds rows of another matrix")


def add_rows(plan: MergePlan, rows: StoredRows) -> MergePlan:
    """The plan with the rows that it requested."""
    if len(np.setdiff1d(plan.needed, rows.index)):
        raise EmbgeoError(
            "no state holds some of the rows that the plan requested", way_out="measure again"
        )
    return replace(plan, rows=plan.rows.join(rows), needed=np.zeros(0, dtype=np.int64))


def find_plan(states: Sequence[files.Stored]) -> files.Stored:
    """The plan of second rounds, at the path that they recorded."""
    place = states[0].content.get("plan_path")
    found = files.read(Path(place), ("plan",)) if isinstance(place, str) and place else None
    if found is None or found.identity != states[0].content.get("plan"):
        raise UnreadableFile(
            "its plan is missing or was replaced",
            where=states[0].path,
            way_out="name the plan: embgeo merge plan.npz t*.npz",
        )
    return found


def label_plan(plan: MergePlan, source: Source) -> MergePlan:
    """The plan with the labels and frequencies of a source, one for each row of the whole."""
    source.check()
    if str(source.tokens) == NO_TOKENS:
        plan = replace(plan, matrix=replace(plan.matrix, tokens=None))
        source = replace(source, tokens=None)
    n, d = plan.matrix.n, plan.matrix.d
    cut = RowCut(n, 0, n)
    labels = None
    if plan.matrix.tokens is not None:
        labels = RowLabels(plan.matrix.tokens)
    elif source.tokens is not None:
        labels = lay_given(read_labels(source.tokens).tokens, cut, "auto", source.tokens, d)
    labeling = Labeling(labels)
    labeling = count_named(source, labeling, cut, d) or labeling
    given = None
    if labeling.labels is not None and (source.tokens is not None or plan.matrix.tokens is None):
        given = tuple(map(safe_text, labeling.labels.tokens))
    plan = add_labels(plan, given, labeling.frequency)
    origin = replace(plan.matrix.origin, notes=(*plan.matrix.origin.notes, *labeling.notes))
    return replace(plan, matrix=replace(plan.matrix, origin=origin))
