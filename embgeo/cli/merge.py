"""``embgeo merge``: states of parts become a plan for the second round, or a result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embgeo.cli.analyze import summary
from embgeo.cli.in_parts import check_state_file
from embgeo.cli.shared import (
    Debug,
    Json,
    Quiet,
    command_line,
    guarded,
    printable,
    progress_bar,
)
from embgeo.core.errors import BadOption, EmbgeoError

if TYPE_CHECKING:
    from embgeo.distributed.files import Stored
    from embgeo.distributed.plans import MergePlan
    from embgeo.result.analysis import Analysis


@guarded
def merge(
    states: Annotated[
        list[Path], typer.Argument(help="States of all parts; their plan may stand among them.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Result folder; NAME.embgeo here by default."),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="Write what the parts need for the second round.")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="Token labels of the whole, where the parts have none.")
    ] = None,
    counts: Annotated[
        Path | None, typer.Option(help="Token counts of the whole, where the parts have none.")
    ] = None,
    rank_order: Annotated[
        bool,
        typer.Option("--rank-order", help="Rows are sorted by frequency, most frequent first."),
    ] = False,
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Merge the states of all parts of a matrix, in any order.

    States of the first round give a plan, with which each part is measured once more; states of
    that second round give the result.

    Example: embgeo merge s1.npz s2.npz --plan plan.npz
    """
    if plan is not None and (out is not None or json_):
        raise BadOption(
            "a plan is no result yet", where="--plan", way_out="leave -o and --json out"
        )
    if plan is not None:
        check_state_file(plan)
    from embgeo.distributed import files
    from embgeo.distributed.merging import label_plan, merged_first, plan_of

    stored = [files.read(path) for path in states]
    kinds = {one.kind for one in stored}
    if kinds == {"first"}:
        with files.consistent(stored[0].path):
            whole = plan_of(merged_first(stored))
            whole = label_plan(whole, tokens, counts, rank_order)
        if plan is not None:
            write_plan(whole, plan, stored[0].path, quiet)
            return
        with files.consistent(stored[0].path):
            finish_first(whole, out, json_, quiet)
        return
    if tokens or counts or rank_order:
        raise BadOption(
            "belong to the first round",
            where="--tokens, --counts and --rank-order",
            way_out="give them where the plan is written",
        )
    finish_second(stored, plan, out, json_, quiet)


def write_plan(whole: MergePlan, path: Path, state: Path, quiet: bool) -> None:
    """Write the plan, and say what it wants."""
    from embgeo.distributed import files, planned
    from embgeo.distributed.plans import save_plan
    from embgeo.distributed.rows import SeenNorms, fetch_from_files

    with progress_bar(quiet) as progress, files.consistent(state):
        norms = SeenNorms.of(whole.first)
        fetch = fetch_from_files(whole.parts, whole.setup, norms, state.absolute().parent)
        whole = planned(whole, fetch, progress)
    save_plan(whole, path)
    if quiet:
        return
    gathers = f"gathers {len(whole.wanted):,} rows"
    if not whole.statistics and not len(whole.wanted):
        print(printable(f"{path}: asks for nothing, the second round is empty"))
    elif whole.only_gathers:
        print(printable(f"{path}: {gathers} first, which no file within reach holds"))
    else:
        print(printable(f"{path}: second pass over {whole.matrix.n:,} rows, {gathers}"))
    print(printable(f"next: embgeo analyze PART --plan {path} --save-state FILE, for all parts"))


def finish_first(whole: MergePlan, out: Path | None, json_: bool, quiet: bool) -> None:
    """Write what one round gives, and say what the second would add."""
    from embgeo.distributed import after_one_round

    folder = result_folder(whole, out, json_)
    with progress_bar(quiet) as progress:
        found = after_one_round(whole, command=command_line(), progress=progress)
    missing = ", ".join(found.missing)
    if found.analysis is None:
        raise EmbgeoError(
            f"every section needs a second round ({missing})",
            way_out="write its plan: embgeo merge STATES --plan plan.npz",
        )
    give(found.analysis, folder, json_, quiet)
    if missing and not quiet and not json_:
        print(f"a second round adds {missing}: embgeo merge STATES --plan plan.npz")


def finish_second(
    stored: list[Stored], path: Path | None, out: Path | None, json_: bool, quiet: bool
) -> None:
    """Write the result of the second round; or, where it gathered rows, the plan of the pass."""
    from embgeo.distributed import files, finished, with_rows
    from embgeo.distributed.merging import load_plan, merged_second, plan_for

    check_mixture(stored)
    seconds = [one for one in stored if one.kind == "second"]
    plans = [one for one in stored if one.kind == "plan"]
    known = plans[0] if plans else plan_for(seconds)
    plan = load_plan(known)
    gathered = plan.only_gathers
    if gathered and path is None:
        raise EmbgeoError(
            "these states hold the rows that a plan asked for, the pass is still to come",
            where=seconds[0].path,
            way_out="write its plan: embgeo merge STATES --plan plan2.npz",
        )
    if path is not None and not gathered:
        raise BadOption(
            "these states are those of the last round", where="--plan", way_out="give -o OUT"
        )
    folder = None if gathered else result_folder(plan, out, json_)
    with files.consistent(seconds[0].path):
        second = merged_second(plan, known.identity, seconds)
        plan = with_rows(plan, second.rows)
    if path is not None:
        write_plan(plan, path, seconds[0].path, quiet)
        return
    with progress_bar(quiet) as progress, files.consistent(known.path):
        analysis = finished(plan, second.statistics, command=command_line(), progress=progress)
    give(analysis, folder, json_, quiet)


def check_mixture(stored: list[Stored]) -> None:
    """Refuse all but states of the second round, with one plan at most.

    Raises
    ------
    BadOption
    """
    from embgeo.distributed.files import KINDS

    of_kind = {kind: [one.path for one in stored if one.kind == kind] for kind in KINDS}
    first, plans, second = of_kind["first"], of_kind["plan"], of_kind["second"]
    if first:
        other = next(one for one in stored if one.kind != "first")
        raise BadOption(
            f"holds {KINDS['first']}, {other.path} {KINDS[other.kind]}",
            where=first[0],
            way_out="merge states of one round: embgeo merge s*.npz --plan plan.npz, then "
            "embgeo merge t*.npz -o OUT",
        )
    if len(plans) > 1:
        raise BadOption(
            f"a plan, and so is {plans[0]}", where=plans[1], way_out="give one plan at most"
        )
    if not second:
        raise BadOption(
            "a plan alone", where=plans[0], way_out="give the states of its second round too"
        )


def result_folder(plan: MergePlan, out: Path | None, json_: bool) -> Path | None:
    """Where the result goes; None where it is only printed."""
    if json_ and out is None:
        return None
    files = {part.file for part in plan.parts}
    from embgeo.workflows.folders import check_analysis_folder
    from embgeo.workflows.names import default_name

    name = default_name(Path(files.pop())) if len(files) == 1 else "merged"
    folder = out if out is not None else Path(f"{name}.embgeo")
    check_analysis_folder(folder)
    return folder


def give(analysis: Analysis, folder: Path | None, json_: bool, quiet: bool) -> None:
    """Write and print the result as ``embgeo analyze`` does."""
    if folder is not None:
        from embgeo.workflows.folders import write_analysis

        report = write_analysis(analysis, folder)
        if not quiet and not json_:
            summary(analysis, report)
    if json_:
        print(json.dumps(analysis.to_dict(), indent=1, allow_nan=False))
