"""``embgeo train --experiment``: sweeps of a paper, measured by the analysis, with their figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from embgeo.cli.shared import print_json, print_lines
from embgeo.cli.train_progress import monitor_runs

if TYPE_CHECKING:
    from embgeo.workflows.experiment import SettingSweep


def train_experiment(
    name: str, arguments: Mapping[str, Any], *, dry_run: bool, json_: bool, quiet: bool
) -> None:
    """Train every point of the sweeps, measure it, and draw the figure."""
    from embgeo.training.study import gao_figure
    from embgeo.workflows.experiment import (
        EXPERIMENT,
        draw_sweeps,
        prepare_experiment,
        run_experiment,
        tabulate_sweeps,
    )

    own = dict(arguments)
    resume = own.pop("resume")
    if name == gao_figure.NAME:
        make_gao_figure(own, resume=resume, dry_run=dry_run, json_=json_, quiet=quiet)
        return
    sweep = prepare_experiment(name, **own)
    if dry_run:
        if json_:
            print_json(sweep.plan())
        else:
            print_lines(plan_text(sweep))
        return
    with monitor_runs(quiet) as monitor:
        record = run_experiment(sweep, resume=resume, monitor=monitor)
        monitor.progress.start("figures", 0)
        draw_sweeps(sweep)
    if json_:
        print_json(EXPERIMENT.to_json(record))
    elif not quiet:
        print_lines(*tabulate_sweeps(sweep, record.points))


def make_gao_figure(
    arguments: Mapping[str, Any], *, resume: bool, dry_run: bool, json_: bool, quiet: bool
) -> None:
    """Train what is missing of Figure 1 of Gao et al., and write its picture and its page."""
    from embgeo.report.text.columns import align
    from embgeo.training.study import gao_figure as study
    from embgeo.workflows import gao_figure

    task = gao_figure.prepare_gao_figure(**arguments)
    if dry_run and json_:
        print_json({"panels": task.sources.panels, "folder": str(task.folder)})
        return
    if dry_run:
        print_lines(f"{', '.join(task.sources.panels)} into {task.folder}; nothing was written")
        return
    with monitor_runs(quiet) as monitor:
        record, subjects = gao_figure.make_gao_figure(task, resume=resume, monitor=monitor)
        monitor.progress.start("figures", 0)
        figure, page = gao_figure.write_figure_and_page(task, record, subjects)
    if json_:
        print_json(study.GAO_FIGURE.to_json(record))
    elif not quiet:
        print_lines(*align(study.tabulate_panels(record.matrices)))
        print_lines(*(f"{one.verdict}: {one.text}; {one.reason}" for one in record.outcomes))
        print_lines(f"figure: {figure}", f"report: {page}")


def plan_text(sweep: SettingSweep) -> str:
    plan = sweep.plan()
    return (
        f"{plan['trainings']} trainings of {plan['steps']:,} steps on {plan['tokens']:,} tokens of "
        f"{sweep.corpus.name} ({plan['types']:,} types), 2×{sweep.settings.hidden} LSTM, into "
        f"{sweep.folder}; nothing was written"
    )
