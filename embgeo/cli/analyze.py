"""``embgeo analyze``: from a checkpoint to a result folder with a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from embgeo.cli.fields import Loading, Measuring
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
    print_report,
    print_result,
)
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import argument
from embgeo.report.text.progress_bar import progress_bar


@guarded
def analyze(
    *,
    path: Annotated[
        Path,
        typer.Argument(help="Checkpoint, model folder or vector file; hf://org/name; - for stdin."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Result folder; NAME.embgeo here by default."),
    ] = None,
    loading: Loading,
    measuring: Measuring,
    sections: Sections = None,
    reference: Reference = True,
    memory: Memory = None,
    threads: Threads = None,
    device: Annotated[
        str,
        typer.Option(
            metavar="cpu|cuda|mps|auto",
            help="Where the passes run; auto: on a GPU if there is one. docs/device.md.",
        ),
    ] = "cpu",
    engine: Annotated[
        Literal["threads", "dask"],
        typer.Option(help="Threads of this machine, or tasks of a dask cluster."),
    ] = "threads",
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Its address; by default a cluster is started here."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Replace a result that has more sections or rows, or is of another file.",
        ),
    ] = False,
    open_: Open = False,
    format_: Format = "text",
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure an embedding matrix and write a report.

    Example: embgeo analyze fixtures/baseline.pt --counts fixtures/vocab_counts.tsv
    """
    from embgeo.workflows.analyze import analyze_sides
    from embgeo.workflows.folders import (
        check_analysis_folder,
        default_name,
        refuse_less,
        refuse_other,
        write_analysis,
    )
    from embgeo.workflows.request import AnalysisRequest, choose_resources

    check_output(json_, format_, open_, out)
    request = AnalysisRequest.of(
        path, sections=sections, reference=reference, **loading, **measuring
    )
    if engine == "dask":
        from embgeo.workflows.cluster import analyze_in_cluster, check_in_cluster

        check_in_cluster(request, device)
    alone = scheduler is not None and engine != "dask"
    way_out = f"add {argument('engine', 'dask')}"
    refuse_if(alone, argument("scheduler"), "belongs to a cluster", way_out)
    request = replace(request, resources=choose_resources(memory, threads, device))
    folder = out if out is not None else Path(f"{default_name(path)}.embgeo")
    writes = not json_ or out is not None
    if writes:
        check_analysis_folder(folder)
        if not force:
            if out is None:
                refuse_other(folder, path)
            refuse_less(folder, request)
    output = None
    with progress_bar(quiet) as progress:
        if engine == "dask":
            analysis = analyze_in_cluster(
                request, scheduler, command=command_line(), progress=progress
            )
        else:
            analysis, output = analyze_sides(request, command_line(), progress)
    print_result(analysis, json_, quiet, format_)
    if writes:
        report = write_analysis(analysis, folder, output)
        print_report(report, quiet or json_ or format_ != "text", open_)
