"""``embgeo diff``: checkpoints and saved analyses next to a baseline, or over training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from embgeo.cli.fields import EachField, Given
from embgeo.cli.shared import (
    Debug,
    Format,
    Json,
    Memory,
    Open,
    Quiet,
    Reference,
    Sections,
    Threads,
    check_output,
    command_line,
    guarded,
    print_json,
    print_lines,
    print_report,
    print_result,
)
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import BadOption, argument
from embgeo.core.options import Options
from embgeo.core.source import Source
from embgeo.report.text.progress_bar import progress_bar


@guarded
def diff(
    *,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="BASELINE OTHER…",
            help="Checkpoints and saved analyses, the baseline first. Where they need options of "
            "their own, analyze each with embgeo analyze and name the folders.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Result folder; BASELINE-vs-OTHER.embgeo by default."),
    ] = None,
    track: Annotated[
        bool,
        typer.Option(
            "--track",
            help="The files, or revisions as in hf://org/name@step*, are checkpoints of one run: "
            "order them by step (from their names, else from what they hold) and show every "
            "number over training.",
        ),
    ] = False,
    every: Annotated[
        int | None, typer.Option(metavar="N", help="Every N-th checkpoint of a track and the last.")
    ] = None,
    added: Annotated[
        bool,
        typer.Option(
            "--added",
            help="Two checkpoints, before and after tokens were added: compare their rows only, "
            "and write nothing.",
        ),
    ] = False,
    match: Annotated[
        Literal["token", "row"] | None,
        typer.Option(help="Match rows by token or by row number; by token where all have some."),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="N|all",
            help="Tokens whose neighbors are compared; all up to 5000, else 1000; 0: none.",
        ),
    ] = None,
    loading: Annotated[Given, EachField(Source, without=("hidden", "hidden_tensor"))],
    measuring: Annotated[Given, EachField(Options, without=("asked", "neighbors_of"))],
    sections: Sections = None,
    reference: Reference = True,
    memory: Memory = None,
    threads: Threads = None,
    open_: Open = False,
    format_: Format = "text",
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare checkpoints and saved analyses with a baseline, and write one report.

    Matched by token (else by row), over the shared vocabulary: subspace distance and principal
    angles, CKA, Procrustes residual, neighbor overlap, the tokens that moved most, and every
    number of both with its difference. A saved analysis holds no matrix: what takes both comes
    from its checkpoint, if that is still where it was and the same. Options about reading and
    measuring are about checkpoints and hold for all of them.

    Example: embgeo diff fixtures/baseline.pt fixtures/cosreg.safetensors
    """
    if added:
        others: dict[str, object] = {"out": out, "track": track, "match": match, "queries": queries}
        others |= {"every": every, "sections": sections, "memory": memory, "threads": threads}
        others["reference"] = not reference
        way_out = f"leave it out, or {argument('added')}"
        for name in (*measuring, *(name for name, value in others.items() if value)):
            cause = "does nothing where only rows are compared"
            raise BadOption(cause, where=argument(name), way_out=way_out)
        diff_rows(paths, loading, json_, quiet)
        return
    from embgeo.workflows.diff import diff_run, list_run
    from embgeo.workflows.folders import (
        check_comparison_folder,
        comparison_folder,
        write_comparison,
    )
    from embgeo.workflows.request import choose_resources
    from embgeo.workflows.track import steps_folder

    check_output(json_, format_, open_, out)
    alone, way_out = every is not None and not track, f"add {argument('track')}"
    refuse_if(alone, argument("every"), "is about a track", way_out)
    run = list_run(paths, every) if track else None
    inputs = paths if run is None else run.paths
    folder = out if out is not None else comparison_folder(inputs, track)
    writes = not json_ or out is not None
    if writes:
        check_comparison_folder(folder, inputs)
    with progress_bar(quiet) as progress:
        comparison = diff_run(
            paths,
            run,
            match=match,
            queries=queries,
            sections=sections,
            reference=reference,
            keep=steps_folder(folder, run) if writes and run is not None else None,
            command=command_line(),
            progress=progress,
            resources=choose_resources(memory, threads),
            **loading,
            **measuring,
        )
    print_result(comparison, json_, quiet, format_)
    if writes:
        page = write_comparison(comparison, folder)
        print_report(page, quiet or json_ or format_ != "text", open_)


def diff_rows(paths: list[Path], loading: Given, json_: bool, quiet: bool) -> None:
    """Print the rows that were added, removed, moved and changed."""
    from dataclasses import asdict

    from embgeo.report.text.vocabularies import render
    from embgeo.workflows.diff import compare_vocabularies

    if len(paths) != 2:
        raise BadOption("takes two checkpoints", where=argument("added"), way_out="name both")
    with progress_bar(quiet) as progress:
        change = compare_vocabularies(*paths, progress=progress, **loading)
    if json_:
        print_json(asdict(change))
    elif not quiet:
        print_lines(*render(change))
