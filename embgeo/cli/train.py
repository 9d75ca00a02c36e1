"""``embgeo train``: language models with the published methods, next to their controls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from embgeo.cli import options as o
from embgeo.cli.shared import (
    command_line,
    guarded,
    print_json,
    print_lines,
    print_report,
)
from embgeo.cli.train_experiment import train_experiment
from embgeo.cli.train_progress import monitor_runs
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import argument
from embgeo.workflows import train as workflow


@guarded
def train(
    data: Annotated[
        Path | None,
        typer.Option(help="Text file, or a folder with a training, validation and test split."),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Methods by name, such as mle,cosreg,frage; docs/training.md lists all, and so "
            "does the message about an unknown one.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Settings: tiny-cpu (by default), overfit-cpu, tiny-llama-cpu, ptb-inan, wt2-fast "
            "or wt2-paper; to classify documents, trec-cpu, 20ng-cpu or imdb-cpu; for word "
            "vectors, skipgram-cpu."
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="TOML settings; override the preset.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting; repeatable."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds for each method: 0, 1, ….")
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(help="In place of a comparison: inan-subspace, Figure 1 of Inan et al."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="cpu|cuda|mps|auto", help="Device; auto by default.")
    ] = None,
    tune: Annotated[
        str | None,
        typer.Option(
            metavar="lr=RATE,RATE,...",
            help="Try learning rates with the first seed; each method takes its best by the "
            "validation split.",
        ),
    ] = None,
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="RUN|FOLDER",
            help="Start from the weights of a finished run, or of the same runs of a folder.",
        ),
    ] = None,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.py",
            help="Run this code, which registers models, methods or tasks of your own; repeatable.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Folder of the runs; NAME.runs here by default."
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the runs of the folder.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be trained, and write nothing.")
    ] = False,
    open_: o.Open = False,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Train language models with each of several methods, and compare what they did.

    All methods start from the same weights and see the same text in the same order. Perplexity is
    evaluated, every embedding is analyzed as embgeo analyze does it, and one report says which
    method did what to both, and which claims of the papers held. docs/training.md says more.

    Example: embgeo train --data fixtures/pydocs.txt.gz --preset tiny-cpu --dry-run
    """
    arguments: dict[str, Any] = {"data": data, "settings": set_ or (), "seeds": seeds}
    arguments |= {"device": device, "out": out, "resume": resume, "command": command_line()}
    of_studies: dict[str, Any] = {"compare": compare, "preset": preset, "config": config}
    of_studies |= {"tune": tune, "start": from_, "plugins": plugin}
    if experiment is not None:
        way_out = f"leave it out; {argument('settings')} changes settings of the experiment"
        for name, value in of_studies.items():
            cause = "is about comparisons of methods, not about an experiment"
            refuse_if(value is not None, argument(name), cause, way_out)
        train_experiment(experiment, arguments, dry_run=dry_run, json_=json_, quiet=quiet)
    elif dry_run:
        from embgeo.report.text.study import render_plan

        task, plan = workflow.plan_training(**arguments, **of_studies)
        if json_:
            print_json(plan)
        else:
            print_lines(*render_plan(plan, task.folder))
    else:
        train_study({**arguments, **of_studies}, json_=json_, quiet=quiet, open_=open_)


def train_study(arguments: Mapping[str, Any], *, json_: bool, quiet: bool, open_: bool) -> None:
    """Train, print the study and raise the error of diverged runs."""
    from embgeo.training.study.record import STUDY

    with monitor_runs(quiet) as monitor:
        trained = workflow.train(**arguments, monitor=monitor)
    if trained is None:  # only the first process of a distributed training writes
        return
    if json_:
        print_json(STUDY.to_json(trained.study))
    elif not quiet:
        from embgeo.report.text.study import render

        print_lines(*render(trained.study))
    print_report(trained.report, quiet or json_, open_)
    if (error := trained.error()) is not None:
        raise error
