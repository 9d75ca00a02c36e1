"""Progress of many runs: a bar for all of them, and one for the current run."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embgeo.cli.shared import printable
from embgeo.core.progress import Progress, RunMonitor

if TYPE_CHECKING:
    from rich.progress import TaskID

#: Units of the bar of all runs for each run.
_WHOLE = 1000.0


@contextlib.contextmanager
def monitor_runs(quiet: bool) -> Iterator[RunMonitor]:
    """Show bars on a terminal, lines elsewhere, and nothing if `quiet`."""
    if quiet:
        yield RunMonitor()
    elif not sys.stderr.isatty():
        yield RunMonitor(say=print_line)
    else:
        with draw_bars() as monitor:
            yield monitor


def print_line(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


@contextlib.contextmanager
def draw_bars() -> Iterator[RunMonitor]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[shown_count]}", markup=False),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Bars(*columns, console=console, transient=True, speed_estimate_period=120.0) as shown:
        total = shown.add_task("all runs", total=None, shown_count="")
        state = BarState()

        def expect(runs: int) -> None:
            state.runs = runs
            shown.update(total, total=_WHOLE * max(runs, 1), shown_count=f"0/{runs}")

        def start(what: str, steps: int) -> None:
            if state.task is not None:
                shown.remove_task(state.task)
            shown_count = "" if steps else " "
            state.task = shown.add_task(
                printable(what), total=steps or None, shown_count=shown_count
            )
            state.steps, state.done = steps, 0

        def advance(steps: int) -> None:
            if state.task is None:
                return
            state.done += steps
            shown_count = f"{state.done:,}/{state.steps:,}" if state.steps else ""
            shown.update(state.task, advance=steps, shown_count=shown_count)
            if state.steps and state.in_run:
                share = min(1.0, state.done / state.steps)
                shown.update(total, completed=_WHOLE * (state.behind + share))

        def count(behind: int, in_run: bool) -> None:
            state.behind, state.in_run = behind, in_run
            shown_count = f"{behind}/{state.runs}"
            shown.update(total, completed=_WHOLE * behind, shown_count=shown_count)

        yield RunMonitor(
            Progress(start, advance),
            expect,
            lambda behind: count(behind, True),
            lambda behind: count(behind, False),
            lambda line: console.print(printable(line), markup=False, highlight=False),
        )


@dataclass(slots=True)
class BarState:
    """The state of the bars."""

    runs: int = 0
    task: TaskID | None = None
    steps: int = 0
    done: int = 0
    behind: int = 0
    in_run: bool = False
