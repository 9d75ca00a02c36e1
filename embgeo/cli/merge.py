"""``embgeo merge``: states of parts become a plan for the second round, or a result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embgeo.cli.shared import (
    Debug,
    Json,
    Open,
    Quiet,
    command_line,
    guarded,
    print_lines,
    print_report,
    print_result,
)
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import argument
from embgeo.core.source import Source
from embgeo.report.text.progress_bar import progress_bar


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
    open_: Open = False,
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Merge the states of all parts of a matrix, in any order.

    States of the first round give a plan, with which each part is measured again; states of
    that second round give the result.

    Example: embgeo merge s1.npz s2.npz --plan plan.npz
    """
    both = plan is not None and (out is not None or json_)
    refuse_if(both, argument("plan"), "a plan is not a result yet", "leave -o and --json out")
    from embgeo.workflows.folders import check_analysis_folder, keep_earlier, write_analysis
    from embgeo.workflows.merge import StateMerge, describe_plan
    from embgeo.workflows.parts import check_state_file

    if plan is not None:
        check_state_file(plan)
    merged = StateMerge(states, Source(tokens=tokens, counts=counts, rank_order=rank_order))
    merged.check(makes_plan=plan is not None)
    if plan is not None:
        with progress_bar(quiet) as progress:
            work = describe_plan(merged.write_plan(plan, progress))
        if not quiet:
            following = f"embgeo analyze PART --plan {plan} --save-state FILE, for all parts"
            print_lines(f"{plan}: {work}", f"next: {following}")
        return
    writes = not json_ or out is not None
    folder = out if out is not None else Path(f"{merged.name}.embgeo")
    if writes:
        check_analysis_folder(folder)
    with keep_earlier(folder), progress_bar(quiet) as progress:
        found = merged.analyze(command=command_line(), progress=progress)
    assert found.analysis is not None
    print_result(found.analysis, json_, quiet, "text")
    if writes:
        print_report(write_analysis(found.analysis, folder), quiet or json_, open_)
    if found.missing and not (quiet or json_):
        missing = ", ".join(found.missing)
        print(f"a second round adds {missing}: embgeo merge STATES --plan plan.npz")
