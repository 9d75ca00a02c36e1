"""What somebody who waits for many runs sees: a bar over all of them, and one for the present."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from embgeo.cli.shared import printable
from embgeo.core.progress import Progress

#: Units of the bar over all runs for each of them.
_WHOLE = 1000.0


@dataclass(frozen=True, slots=True)
class Watch:
    """What is told while runs go on.

    Attributes
    ----------
    progress : Progress
        For a run, and for what else takes long.
    begin, done : callable
        A run begins, or so many of them have ended; how many are behind. What takes long between
        the two is part of the run.
    say : callable
        A line that stays.
    """

    progress: Progress
    begin: Callable[[int], None]
    done: Callable[[int], None]
    say: Callable[[str], None]


@contextlib.contextmanager
def watch(runs: int, quiet: bool) -> Iterator[Watch]:
    """Bars where somebody is watching, lines where output goes to a file, nothing if `quiet`."""
    if quiet:
        yield Watch(Progress(), nothing, nothing, nothing)
    elif not sys.stderr.isatty():
        yield Watch(Progress(), nothing, nothing, say)
    else:
        with bars(runs) as found:
            yield found


def nothing(_told: object) -> None:
    """What is heard where nobody is told."""


def say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


@contextlib.contextmanager
def bars(runs: int) -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[told]}", markup=False),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Bars(*columns, console=console, transient=True, speed_estimate_period=120.0) as shown:
        total = shown.add_task("all runs", total=_WHOLE * max(runs, 1), told=f"0/{runs}")
        state = State()

        def start(what: str, steps: int) -> None:
            if state.task is not None:
                shown.remove_task(TaskID(state.task))
            told = "" if steps else " "
            state.task = shown.add_task(printable(what), total=steps or None, told=told)
            state.steps, state.done = steps, 0

        def advance(steps: int) -> None:
            if state.task is None:
                return
            state.done += steps
            told = f"{state.done:,}/{state.steps:,}" if state.steps else ""
            shown.update(TaskID(state.task), advance=steps, told=told)
            if state.steps and state.in_run:
                share = min(1.0, state.done / state.steps)
                shown.update(total, completed=_WHOLE * (state.behind + share))

        def count(behind: int, in_run: bool) -> None:
            state.behind, state.in_run = behind, in_run
            shown.update(total, completed=_WHOLE * behind, told=f"{behind}/{runs}")

        yield Watch(
            Progress(start, advance),
            lambda behind: count(behind, True),
            lambda behind: count(behind, False),
            lambda line: console.print(printable(line), markup=False, highlight=False),
        )


@dataclass(slots=True)
class State:
    """Where the bars are."""

    task: int | None = None
    steps: int = 0
    done: int = 0
    behind: int = 0
    in_run: bool = False
