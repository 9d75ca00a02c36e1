"""A bar on stderr while a corpus is counted."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def corpus_bar(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Draws a bar from the first bytes that are read; None where nobody is watching."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: list[TaskID] = []

        def hear(done: int, total: int) -> None:
            if not tasks:
                tasks.append(bars.add_task("counting the corpus", total=total or None))
            bars.update(tasks[0], completed=done)

        yield hear
