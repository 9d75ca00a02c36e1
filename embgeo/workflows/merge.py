"""``embgeo.merge``: from the states of all parts to a plan for the second round, or an analysis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from embgeo.core.arguments import as_path, refuse_if, refuse_type
from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.progress import Progress
from embgeo.core.source import Source
from embgeo.distributed import (
    add_rows,
    extend_plan,
    files,
    finish,
    finish_after_one_round,
    take_first,
)
from embgeo.distributed.finish import Partial
from embgeo.distributed.merging import (
    find_plan,
    label_plan,
    make_plan,
    merge_first,
    merge_second,
)
from embgeo.distributed.plans import MergePlan, read_plan, save_plan
from embgeo.distributed.rows import SeenNorms, fetch_from_files
from embgeo.workflows.analyze import Analysis
from embgeo.workflows.folders import default_name
from embgeo.workflows.parts import check_state_file


def merge(
    states: Sequence[Path | str],
    *,
    plan: Path | str | None = None,
    tokens: Path | str | None = None,
    counts: Path | str | None = None,
    rank_order: bool = False,
    command: str = "",
    progress: Progress | None = None,
) -> Analysis | None:
    """Merge the states of all parts of a matrix.

    Parameters
    ----------
    states : sequence of Path or str
        In any order. States of the first round give a plan, or the sections that need no other
        round; states of the second round give all sections.
    plan : Path or str, optional
        File for the plan of the second round, in place of an analysis.
    tokens, counts : Path or str, optional
        Labels and counts of the whole matrix, if the parts have none; for the first round only.
    rank_order : bool
        Whether rows are sorted by frequency, most frequent first.
    command : str
        Recorded in the provenance.
    progress : Progress, optional

    Returns
    -------
    Analysis or None
        None if a plan was written.

    Raises
    ------
    EmbgeoError
        If states do not belong together, rows are missing, or all sections need a second round.
    """
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise refuse_type(states, "states", "the paths of states in a list")
    paths = [as_path(state, "states") for state in states]
    refuse_if(not paths, argument("states"), "there are none", "give the states of all parts")
    labels: dict[str, Any] = {"tokens": tokens, "counts": counts}
    merged = StateMerge(paths, Source(rank_order=rank_order, **labels))
    if plan is not None:
        path = as_path(plan, "plan")
        check_state_file(path)
        merged.write_plan(path, progress)
        return None
    found = merged.analyze(command=command, progress=progress).analysis
    return None if found is None else Analysis.of(found)


class StateMerge:
    """The states of all parts of a matrix, of one round and in any order.

    The plan of a second round may be among the states. `labels` names tokens and frequencies of the
    whole matrix, for the first round only. `plan` is that of the second round, or of the merged
    states of the first.
    """

    def __init__(self, states: Sequence[Path], labels: Source = Source()) -> None:
        stored = [files.read(path) for path in states]
        self._first = {one.kind for one in stored} == {"first"}
        if self._first:
            self._states, self._where = stored, stored[0].path
            with files.consistent(self._where):
                whole = make_plan(merge_first(stored))
                self.plan = label_plan(whole, labels)
            return
        for name in labels.collect_changes():
            way_out = "give it when the plan is written"
            raise BadOption("belongs to the first round", where=argument(name), way_out=way_out)
        check_mixture(stored)
        self._states = [one for one in stored if one.kind == "second"]
        plans = [one for one in stored if one.kind == "plan"]
        self._stored_plan = plans[0] if plans else find_plan(self._states)
        self._where = self._states[0].path
        self.plan = read_plan(self._stored_plan)

    @property
    def name(self) -> str:
        """The name of the result: of the file, if all parts are of one file."""
        parts = {part.file for part in self.plan.parts}
        return default_name(Path(parts.pop())) if len(parts) == 1 else "merged"

    def check(self, makes_plan: bool) -> None:
        """Refuse a result that needs another round, and a plan after the last one."""
        if self._first:
            return
        more = self.plan.is_preliminary
        if more and not makes_plan:
            repeated = self.plan.repeats_first
            held = "the first pass again" if repeated else "the rows that a plan requested"
            raise EmbgeoError(
                f"these states hold {held}, the second pass is still to come",
                where=self._where,
                way_out="write its plan: embgeo merge STATES --plan plan2.npz",
            )
        cause = "these states are those of the last round"
        refuse_if(makes_plan and not more, argument("plan"), cause, "give -o OUT")

    def write_plan(self, path: Path, progress: Progress | None = None) -> MergePlan:
        """Write the plan of the next round."""
        self.check(makes_plan=True)
        plan = self.plan
        if not self._first:
            with files.consistent(self._where):
                second = merge_second(plan, self._stored_plan.identity, self._states)
                if plan.repeats_first:
                    plan = take_first(plan, second.statistics)
                else:
                    plan = add_rows(plan, second.rows)
        with files.consistent(self._where):
            norms, folder = SeenNorms.of(plan.first), self._where.absolute().parent
            fetch = fetch_from_files(plan.parts, plan.setup, norms, folder)
            plan = extend_plan(plan, fetch, progress)
        save_plan(plan, path)
        return plan

    def analyze(self, *, command: str = "", progress: Progress | None = None) -> Partial:
        """The analysis; after one round, of the sections that need no second."""
        self.check(makes_plan=False)
        if self._first:
            with files.consistent(self._where):
                partial = finish_after_one_round(self.plan, command=command, progress=progress)
            if partial.analysis is None:
                raise EmbgeoError(
                    f"every section needs a second round ({', '.join(partial.missing)})",
                    way_out="write its plan: embgeo merge STATES --plan plan.npz",
                )
            return partial
        with files.consistent(self._where):
            second = merge_second(self.plan, self._stored_plan.identity, self._states)
            plan = add_rows(self.plan, second.rows)
        with files.consistent(self._stored_plan.path):
            analysis = finish(plan, second.statistics, command=command, progress=progress)
        return Partial(analysis, ())


def describe_plan(plan: MergePlan) -> str:
    """The work of the parts for a plan."""
    if plan.repeats_first:
        damaged = len(plan.census.small)
        return f"first pass again over {plan.matrix.n:,} rows, without {damaged:,} damaged ones"
    gathers = f"gathers {len(plan.needed):,} rows"
    if not plan.statistics and not len(plan.needed):
        return "the second round is empty"
    if plan.only_gathers:
        return f"{gathers} first, which are in no file within reach"
    return f"second pass over {plan.matrix.n:,} rows, {gathers}"


def check_mixture(stored: Sequence[files.Stored]) -> None:
    """Refuse anything but states of the second round with at most one plan."""
    of_kind = {kind: [one.path for one in stored if one.kind == kind] for kind in files.KINDS}
    first, plans, second = of_kind["first"], of_kind["plan"], of_kind["second"]
    if first:
        other = next(one for one in stored if one.kind != "first")
        raise BadOption(
            f"holds {files.KINDS['first']}, {other.path} {files.KINDS[other.kind]}",
            where=first[0],
            way_out="merge states of one round: embgeo merge s*.npz --plan plan.npz, then "
            "embgeo merge t*.npz -o OUT",
        )
    if len(plans) > 1:
        cause = f"a plan, and so is {plans[0]}"
        raise BadOption(cause, where=plans[1], way_out="give one plan at most")
    if not second:
        way_out = "give the states of its second round, too"
        raise BadOption("a plan alone", where=plans[0], way_out=way_out)
