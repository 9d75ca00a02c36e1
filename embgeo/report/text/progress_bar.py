"""A progress bar on a terminal."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from embgeo.core.progress import QUIET, Progress

#: Columns of a terminal below which rate and remaining time are left out.
WIDE = 80


@contextlib.contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress | None]:
    """Show a bar on stderr if that is a terminal; `quiet` silences announcements, too."""
    before = QUIET.set(quiet)
    try:
        with _bar() if sys.stderr.isatty() and not quiet else contextlib.nullcontext() as progress:
            yield progress
    finally:
        QUIET.reset(before)


@contextlib.contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars
    from rich.table import Column
    from rich.text import Text

    class Rate(ProgressColumn):
        """A column with the number of rows that are read in a second."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f}/s")

    console = Console(stderr=True)
    text = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    columns: tuple[ProgressColumn, ...] = (text, BarColumn(10), MofNCompleteColumn())
    if console.width >= WIDE:
        columns = (text, BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        tasks: list[Any] = []

        def start(what: str, rows: int) -> None:
            if tasks:
                bars.remove_task(tasks.pop())
            tasks.append(bars.add_task(what, total=rows or None))

        def advance(rows: int) -> None:
            bars.advance(tasks[-1], rows)

        yield Progress(start, advance)
