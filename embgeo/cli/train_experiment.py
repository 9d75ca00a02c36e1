"""``embgeo train --experiment``: sweeps of a paper, measured by the analysis, with their figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from embgeo.cli.shared import print_json, print_lines, printable
from embgeo.cli.train_progress import monitor_runs
from embgeo.workflows.folders import write_set

if TYPE_CHECKING:
    from embgeo.workflows.experiment import PointResult, SettingSweep

FIGURES = "figures"


def train_experiment(
    name: str, arguments: Mapping[str, Any], *, dry_run: bool, json_: bool, quiet: bool
) -> None:
    """Train every point of the sweeps, measure it, and draw the figure.

    Raises
    ------
    EmbgeoError
    """
    from embgeo.training.study import gao_figure
    from embgeo.workflows.experiment import EXPERIMENT, prepare_experiment, run_experiment

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
        draw(sweep)
    if json_:
        print_json(EXPERIMENT.to_json(record))
    elif not quiet:
        print_summary(sweep, record.points)


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


def draw(sweep: SettingSweep) -> None:
    """The distance against each parameter, as ``embgeo figures`` draws a sweep."""
    from embgeo.workflows import figures

    for parameter in ("beta", "tau"):
        homes = [sweep.home(point, seed) for point, seed in sweep.tasks if point.sweep == parameter]
        if len({home.parent for home in homes}) < 2:
            continue  # one point is not a sweep
        made = figures.draw(
            homes,
            figure="sweep",
            format=("pdf", "svg"),
            parameter=parameter,
            command=printable(sweep.command),
        )
        write_set(sweep.folder / FIGURES / parameter, made.files)


def print_summary(sweep: SettingSweep, points: Sequence[PointResult]) -> None:
    """Each sweep as a table, and where its figure is."""
    from embgeo.core.values import format_number
    from embgeo.report.text.columns import align
    from embgeo.training.study.spread import spread

    for parameter, where in (("beta", f"τ = {sweep.settings.tau:g}"), ("tau", "β = 1")):
        own = [one for one in points if one.sweep == parameter]
        if not own:
            continue
        rows = [[parameter, "subspace distance", "chance"]]
        for value in dict.fromkeys(one.value for one in own):
            held = spread([one.distance for one in own if one.value == value])
            chance = next(one.chance for one in own if one.value == value)
            if held is not None:
                rows.append([f"{value:g}", held.text, format_number(chance or 0.0)])
        print_lines(f"input against output embedding at {where}")
        print_lines(*(f"  {line}" for line in align(rows)))
        figure = sweep.folder / FIGURES / parameter / "sweep.pdf"
        if figure.is_file():
            print_lines(f"figure: {figure}")
