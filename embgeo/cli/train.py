"""``embgeo train``: language models with the published methods, next to their controls."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from embgeo.cli import options as o
from embgeo.cli import shared
from embgeo.core.progress import Progress, RunMonitor
from embgeo.workflows import train as workflow


@shared.guarded
def train(
    data: Annotated[
        Path | None, o.option("Text file, or folder with train, valid, test.", metavar="TEXT")
    ] = None,
    compare: Annotated[
        str | None,
        o.option(
            "Methods to train, such as mle,cosreg,frage.",
            metavar="NAME,NAME,…",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        o.option(
            "Settings to begin with; tiny-cpu by default.",
            metavar="NAME",
        ),
    ] = None,
    config: Annotated[
        Path | None, o.option("Settings that override the preset.", metavar="TOML")
    ] = None,
    set_: Annotated[
        list[str] | None,
        o.option("Override one setting; repeatable.", "--set", metavar="KEY=VALUE"),
    ] = None,
    seeds: Annotated[
        int | None, o.option("Train each method with seeds 0 to N − 1.", metavar="N")
    ] = None,
    tune: Annotated[
        list[str] | None,
        o.option("Let validation choose a value; repeatable.", metavar="KEY=VALUE,VALUE,…"),
    ] = None,
    plugin: Annotated[
        list[Path] | None, o.option("Load code of your own; repeatable.", metavar="FILE.py")
    ] = None,
    device: Annotated[
        str | None,
        o.option(
            "cpu, cuda, mps or auto (the default).",
            metavar="NAME",
        ),
    ] = None,
    jobs: Annotated[int, o.option("Train N runs at once; same results.", metavar="N")] = 1,
    out: Annotated[
        Path | None,
        o.option("Folder of the runs; TEXT.runs by default.", "--out", "-o", metavar="FOLDER"),
    ] = None,
    resume: Annotated[bool, o.option("Continue the runs in the folder.", "--resume")] = False,
    dry_run: Annotated[
        bool, o.option("Show what would be trained, and write nothing.", "--dry-run")
    ] = False,
    open_: o.Open = False,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Train language models with several methods, and compare the results.

    All methods start from the same weights and see the same text in the same order. One report
    says what each did to perplexity and geometry, and which claims of the papers held.
    docs/training.md has the methods and settings.

    Presets, of language models: tiny-cpu, overfit-cpu, tiny-llama-cpu, xl-cpu, mos-cpu, ptb-inan,
    ptb-rhn, ptb-mos, wt2-cycle, wt2-paper, wt2-mos, wt103-xl-small, wt103-xl, wt103-llama; of
    translation: multi30k-cpu, multi30k-lstm-cpu, iwslt14, wmt14-base, wmt14-big; of classes:
    20ng-cpu, imdb-cpu; of word vectors: skipgram-cpu, skipgram-enwik9.

    Example: embgeo train --data fixtures/pydocs.txt.gz --dry-run
    """
    from embgeo.report.text import study as text

    arguments: dict[str, Any] = {
        "data": data, "compare": compare, "preset": preset, "config": config, "resume": resume,
        "settings": set_ or (), "seeds": seeds, "tune": tune, "plugins": plugin,
        "device": device, "out": out,
    }  # fmt: skip
    if dry_run:
        folder, plan = workflow.plan_training(**arguments)
        shared.print_found(plan, text.render_plan(plan, folder), json_, quiet=False)
        return
    with shared.progress_bar(quiet) as progress:
        monitor = RunMonitor(progress or Progress())
        if not quiet:
            monitor = replace(monitor, say=print_line)
        trained = workflow.train(
            **arguments, jobs=jobs, command=shared.command_line(), monitor=monitor
        )
    if trained is None:  # only the first process of a distributed training writes
        return
    from embgeo.training.study.record import STUDY

    shared.print_found(STUDY.to_json(trained.study), text.render(trained.study), json_, quiet)
    shared.print_report(trained.report, quiet or json_, open_)
    if (error := trained.error()) is not None:
        raise error


def print_line(line: str) -> None:
    print(shared.printable(line), file=sys.stderr, flush=True)
