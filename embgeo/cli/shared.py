"""Options, errors, output and the progress bar that commands share."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import typer

from embgeo.cli.options import PrintFormat
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import EmbgeoError, argument
from embgeo.core.progress import QUIET, Progress
from embgeo.core.text import ColoredLine, Tone, defuse
from embgeo.core.text import printable as printable

#: Exit code of any error; a failed gate has 1.
FAILED = 2

COLORS: dict[Tone | None, str] = {"good": "green", "warning": "yellow", "bad": "red"}


class Stopped(KeyboardInterrupt):
    """The process received a signal to end, whose name is the text."""


class Ended(SystemExit):
    """A signal ended a command, which has said so."""


def find_code(error: BaseException) -> int:
    """Return the exit code of an error: that of shells after a signal, else `FAILED`."""
    by = error if isinstance(error, KeyboardInterrupt) else error.__cause__
    if not isinstance(by, KeyboardInterrupt):
        return FAILED
    return 128 + signal.Signals[str(by) if isinstance(by, Stopped) else "SIGINT"]


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Decorate a command: errors are one line with an exit code."""

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
            print_error(one_line(error))
            code = find_code(error)
            raise (typer.Exit if code == FAILED else Ended)(code) from None

    return run


def silence_stdout() -> None:
    """Discard buffered output of a closed pipe or a full disk."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_line(error: BaseException) -> str:
    if isinstance(error, EmbgeoError):
        return printable(error.command_line_text)
    if isinstance(error, KeyboardInterrupt):
        how = f"stopped by {error}" if isinstance(error, Stopped) else "interrupted"
        return printable(f"{how}; no result was written")
    if isinstance(error, MemoryError):
        return "out of memory; cut rows with --rows A:B or leave sections out with --sections"
    if isinstance(error, OSError) and error.strerror:
        return printable(
            f"{error.filename or 'output'}: {error.strerror}; correct that and try again"
        )
    text = printable(" ".join(str(error).split()))
    return f"unexpected {type(error).__name__}: {text}; --debug shows where"


def print_lines(*lines: str) -> None:
    """Print lines, with control characters escaped."""
    for line in lines:
        shown = printable(line)
        print_text(line.with_text(shown) if isinstance(line, ColoredLine) else shown)


def print_report(path: Path, quiet: bool, opens: bool) -> None:
    """Print the path of the report, and open it in the browser if `opens`."""
    if not quiet:
        shown = printable(str(path))
        if is_colorful(sys.stdout):  # terminals with colors have links
            shown = f"\x1b]8;;{path.absolute().as_uri()}\x1b\\{shown}\x1b]8;;\x1b\\"
        print_text(f"report: {shown}")
    if opens:
        import webbrowser

        if not webbrowser.open(path.absolute().as_uri()):
            print_text("embgeo: no browser was found; open the report by hand", sys.stderr)


def is_colorful(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal, and colors are not turned off."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream.isatty() and not plain


def check_output(
    json_: bool, format_: PrintFormat, opens: bool = False, out: Path | None = None
) -> None:
    """Refuse options of output that contradict each other."""
    markdown = json_ and format_ == "markdown"
    refuse_if(markdown, argument("json"), "prints no Markdown", "leave out --format or --json")
    unwritten = json_ and opens and out is None
    refuse_if(unwritten, argument("open"), "--json alone writes no report", "add -o FOLDER")


def print_result(result: Any, json_: bool, quiet: bool, format_: PrintFormat) -> None:
    """Print a result, which happens before it is written: the disk may be full."""
    if json_:
        print_json(result.to_dict())
    elif not quiet:
        from embgeo.report.text.markdown import render

        print_lines(*render(result, format_))


def print_found(content: object, lines: Iterable[str], json_: bool, quiet: bool) -> None:
    """Print what a command found as JSON, or as lines unless `quiet`."""
    if json_:
        print_json(content)
    elif not quiet:
        print_lines(*lines)


def print_json(content: object) -> None:
    print_text(json.dumps(content, indent=1, allow_nan=False))


def print_text(text: str, stream: TextIO | None = None) -> None:
    """Print text that holds no commands for GitHub's runner."""
    color = COLORS.get(text.tone) if isinstance(text, ColoredLine) else None
    if os.environ.get("GITHUB_ACTIONS") == "true":
        text = defuse(text)
    if color is not None and is_colorful(stream or sys.stdout):
        text = typer.style(text, fg=color)
    print(text, file=stream)


def print_error(message: str) -> None:
    """Print one line on stderr, its beginning in red on a terminal."""
    name = "embgeo:"
    if is_colorful(sys.stderr):
        name = typer.style(name, fg="red", bold=True)
    print_text(f"{name} {message}", sys.stderr)


def command_line() -> str:
    """Return the command for the provenance, without passwords and signatures in addresses."""
    import shlex

    from embgeo.io.places.names import hide_secrets

    shown = ["embgeo"]
    for given in sys.argv[1:]:
        option, sign, value = given.partition("=") if given.startswith("-") else ("", "", given)
        shown.append(f"{option}{sign}{hide_secrets(value)}")
    return shlex.join(shown)


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
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars
    from rich.table import Column
    from rich.text import Text

    class Count(ProgressColumn):
        """A column with the number of rows that are read; empty without a total."""

        def render(self, task: Task) -> Text:
            return Text(f"{task.completed:,.0f}/{task.total:,.0f}" if task.total else "")

    class Rate(ProgressColumn):
        """A column with the number of rows that are read in a second."""

        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed and task.total else "")

    console = Console(stderr=True)
    column = Column(no_wrap=True, overflow="ellipsis")
    text = TextColumn("{task.description}", markup=False, table_column=column)
    columns: tuple[ProgressColumn, ...] = (text, BarColumn(10), Count())
    if console.width >= WIDE:
        columns = (text, BarColumn(), Count(), Rate(), TimeRemainingColumn())
    with Bars(*columns, console=console, transient=True) as bars:
        tasks: list[Any] = []

        def start(what: str, rows: int) -> None:
            if tasks:
                bars.remove_task(tasks.pop())
            tasks.append(bars.add_task(printable(what), total=rows or None))

        def advance(rows: int) -> None:
            bars.advance(tasks[-1], rows)
            done = bars.tasks[-1]
            if done.finished:  # what is computed of the rows takes time, too
                start(f"{done.description}: computing", 0)

        yield Progress(start, advance)
