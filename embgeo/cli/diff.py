"""``embgeo diff``: checkpoints and saved analyses next to a baseline, or over training."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from embgeo.cli import options as o
from embgeo.cli import shared
from embgeo.cli.shared import progress_bar
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import argument
from embgeo.core.options import LOADING, RESOURCES


@shared.guarded
def diff(
    *,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="BASELINE OTHER...",
            help="Checkpoints and saved analyses, the baseline first. Checkpoints are measured "
            "with the defaults, or as [analyze] of the settings says; for anything else, analyze "
            "each with embgeo analyze and name the folders.",
        ),
    ],
    out: Annotated[
        Path | None,
        o.option(
            "Result folder; BASELINE-vs-OTHER.embgeo by default, none with --json.",
            "--out",
            "-o",
            metavar="FOLDER",
        ),
    ] = None,
    track: Annotated[
        bool,
        o.option(
            "Take the files, those of a folder, or revisions (hf://org/name@step*), as "
            "checkpoints of one run, in the order of their steps (by name, else by content), and "
            "show every number over training.",
            "--track",
        ),
    ] = False,
    every: Annotated[
        int | None, o.option("Take every N-th checkpoint of a track, and the last.", metavar="N")
    ] = None,
    added: Annotated[
        bool,
        o.option(
            "Compare the rows of two checkpoints, before and after tokens were added; write "
            "nothing.",
            "--added",
        ),
    ] = False,
    against: Annotated[
        list[Path] | None,
        o.option(
            "Compare two groups, such as seeds: the paths, and those behind this option. Print "
            "what differs by more than the seeds do; write nothing.",
            "--against",
            metavar="PATH",
        ),
    ] = None,
    match: Annotated[
        Literal["token", "row"] | None,
        o.option(
            "Match rows by token or by row number; by default by token where all have labels."
        ),
    ] = None,
    queries: Annotated[
        str | None,
        o.option(
            "Tokens whose neighbors are compared; all of up to 5000, else 1000; 0: none.",
            metavar="N|all",
        ),
    ] = None,
    config: o.Config = None,
    no_config: o.NoConfig = False,
    trust_settings: o.TrustSettings = False,
    open_: o.Open = False,
    format_: o.Format = "text",
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Compare checkpoints and saved analyses with a baseline, and write one report.

    Rows are matched by token, else by row number. Over the shared tokens the report has the
    subspace distance, CKA, Procrustes residual, neighbor overlap and the tokens that moved most,
    and every number of both matrices with its difference. A saved analysis holds no matrix:
    numbers that take both matrices need its checkpoint, unchanged and in the same place.

    Example: embgeo diff fixtures/baseline.pt fixtures/cosreg.safetensors
    """
    from embgeo.rules.settings import find_options

    settings = find_options(config, search=not no_config, trust_settings=trust_settings)
    settings.pop("show_neighbors", None)
    if added or against:
        mode = argument("added" if added else "against")
        others = {"out": out, "track": track, "match": match, "queries": queries, "every": every}
        for name, value in others.items():
            refuse_if(bool(value), argument(name), f"has no effect with {mode}", "leave it out")
        if added:
            loading = {key: settings[key] for key in settings if key in LOADING}
            compare_rows(paths, loading, json_, quiet)
        else:
            compare_groups(paths, against or [], settings, json_, quiet)
        return
    from embgeo.stats.resources import Resources
    from embgeo.workflows.diff import diff as compare
    from embgeo.workflows.diff import is_measured, list_run, parse_queries
    from embgeo.workflows.folders import check_comparison_folder, choose_folder, write_comparison
    from embgeo.workflows.saved_analysis import comparison_folder

    shared.check_output(json_, format_, open_, out)
    searched = parse_queries(queries)
    run = list_run(paths, track, every)
    inputs = paths if run is None else run.paths
    folder = out if out is not None else comparison_folder(inputs, track)
    resources = Resources(**{k: settings.pop(k) for k in RESOURCES if k in settings})
    if all(map(is_measured, inputs)):
        settings = {}
    writes = not json_ or out is not None
    if writes:
        check_comparison_folder(choose_folder(out, folder), inputs)
    with progress_bar(quiet) as progress:
        comparison = compare(
            *(paths if run is None else [run]),
            match=match,
            queries=searched,
            command=shared.command_line(),
            progress=progress,
            resources=resources,
            **settings,
        )
    try:
        page = write_comparison(comparison, folder) if writes else None
    finally:
        shared.print_result(comparison, json_, quiet, format_)
    if page is not None:
        shared.print_report(page, quiet or json_ or format_ != "text", open_)


def compare_groups(
    paths: list[Path], against: list[Path], settings: dict[str, Any], json_: bool, quiet: bool
) -> None:
    """Print what differs between two groups by more than their seeds."""
    from embgeo.workflows.groups import compare_groups as compare
    from embgeo.workflows.groups import render_groups

    with progress_bar(quiet) as progress:
        found = compare(paths, against, progress=progress, **settings)
    shared.print_found(asdict(found), render_groups(found), json_, quiet)


def compare_rows(paths: list[Path], loading: dict[str, Any], json_: bool, quiet: bool) -> None:
    """Print the rows that were added, removed, moved and changed."""
    from embgeo.report.text.vocabularies import render
    from embgeo.workflows.diff import compare_vocabularies

    refuse_if(len(paths) != 2, argument("added"), "takes two checkpoints", "name both")
    with progress_bar(quiet) as progress:
        change = compare_vocabularies(*paths, progress=progress, **loading)
    shared.print_found(asdict(change), render(change), json_, quiet)
