"""``embgeo train --experiment``: a figure of a paper from models that are trained for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embgeo.cli.shared import print_json, print_lines
from embgeo.cli.train_progress import monitor_runs
from embgeo.core.arguments import refuse_name
from embgeo.core.errors import argument


def train_experiment(
    name: str, arguments: Mapping[str, Any], *, dry_run: bool, json_: bool, quiet: bool
) -> None:
    """Run an experiment, and print its numbers."""
    from embgeo.workflows.experiment import prepare_sweep

    known: dict[str, Any] = {"inan-subspace": prepare_sweep}
    if name not in known:
        raise refuse_name("experiment", name, known, argument("experiment"))
    task = known[name](**{key: value for key, value in arguments.items() if key != "resume"})
    if dry_run:
        if json_:
            print_json(task.plan())
        else:
            print_lines(task.describe_plan())
        return
    with monitor_runs(quiet) as monitor:
        content, lines = task.run(resume=arguments["resume"], monitor=monitor)
    if json_:
        print_json(content)
    elif not quiet:
        print_lines(*lines)
