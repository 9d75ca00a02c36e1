"""What every command shares: options, exit codes, progress, the result folder."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from embgeo.cli.fields import expand
from embgeo.core.errors import EmbgeoError
from embgeo.core.visible import defuse
from embgeo.core.visible import printable as printable

if TYPE_CHECKING:
    from embgeo.core.progress import Progress

#: 0: done and passed; 1: a gate failed; 2: anything else that went wrong, a crash included.
FAILED = 2


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end."""


Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")]
Sections = Annotated[
    str | None,
    typer.Option(
        help="Only these, with commas: spectrum, projection, cosine, isotropy, frequency, "
        "subspace, hidden, tokens."
    ),
]
Reference = Annotated[
    bool, typer.Option(help="Compare with isotropic Gaussian rows of the same norms.")
]
Memory = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Memory for the passes, as in 2GB; 640MiB.")
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads; as many as BLAS uses by default.")
]


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors are one line and exit code 2; its groups of options are expanded."""

    @functools.wraps(command)
    def run(**kwargs: Any) -> None:
        try:
            command(**kwargs)
            sys.stdout.flush()
        except typer.Exit:
            raise
        except BrokenPipeError:
            silence_stdout()
            raise typer.Exit(FAILED) from None
        except (Exception, KeyboardInterrupt) as error:
            if kwargs.get("debug"):
                print_text(traceback.format_exc(), sys.stderr)
            print_text(f"embgeo: {one_line(error)}", sys.stderr)
            raise typer.Exit(FAILED) from None

    return expand(run)


def silence_stdout() -> None:
    """Send what is still buffered nowhere: whoever read stdout has gone, or its disk is full."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_line(error: BaseException) -> str:
    if isinstance(error, EmbgeoError):
        return printable(error.command_line_text)
    if isinstance(error, KeyboardInterrupt):
        how = f"stopped by {error}" if isinstance(error, Stopped) else "interrupted"
        return f"{how}; nothing was written"
    if isinstance(error, MemoryError):
        return "out of memory; cut rows with --rows A:B or leave sections out with --sections"
    if isinstance(error, OSError) and error.strerror:
        return printable(
            f"{error.filename or 'output'}: {error.strerror}; correct that and try again"
        )
    text = printable(" ".join(str(error).split()))
    return f"unexpected {type(error).__name__}: {text}; --debug shows where"


def print_lines(*lines: str) -> None:
    """Print text that a hostile file name cannot break."""
    for line in lines:
        print_text(printable(line))


def print_json(content: object) -> None:
    print_text(json.dumps(content, indent=1, allow_nan=False))


def print_text(text: str, stream: TextIO | None = None) -> None:
    """Print; names in files give GitHub's runner no commands."""
    on_github = os.environ.get("GITHUB_ACTIONS") == "true"
    print(defuse(text) if on_github else text, file=stream)


def command_line() -> str:
    """The command as it was typed, for the provenance."""
    import shlex

    return shlex.join(["embgeo", *sys.argv[1:]])


@contextlib.contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress | None]:
    """A bar on stderr where somebody is watching; None where nobody is."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
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
    from rich.text import Text

    from embgeo.core.progress import Progress

    class Rate(ProgressColumn):
        """Rows a second."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.0f}/s")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: list[Any] = []

        def start(what: str, rows: int) -> None:
            if tasks:
                bars.remove_task(tasks.pop())
            tasks.append(bars.add_task(what, total=rows or None))

        def advance(rows: int) -> None:
            bars.advance(tasks[-1], rows)

        yield Progress(start, advance)
