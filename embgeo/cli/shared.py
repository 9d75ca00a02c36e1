"""What every command shares: options, exit codes, progress, the result folder."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from embgeo.core.errors import BadOption, EmbgeoError

if TYPE_CHECKING:
    from embgeo.core.progress import Progress
    from embgeo.result.analysis import Analysis

#: 0: done and passed; 1: a gate failed; 2: anything else that went wrong, a crash included.
FAILED = 2

P = ParamSpec("P")

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")]


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Turn whatever goes wrong in a command into one line on stderr and exit code 2."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except typer.Exit:
            raise
        except BrokenPipeError:
            silence_stdout()
            raise typer.Exit(FAILED) from None
        except (Exception, KeyboardInterrupt) as error:
            if kwargs.get("debug"):
                traceback.print_exc()
            print(f"embgeo: {one_line(error)}", file=sys.stderr)
            raise typer.Exit(FAILED) from None

    return run


def silence_stdout() -> None:
    """Send what is still buffered nowhere: whoever read stdout has gone, or its disk is full."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def one_line(error: BaseException) -> str:
    if isinstance(error, EmbgeoError):
        return printable(error.command_line_text)
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; nothing was written"
    if isinstance(error, MemoryError):
        return "out of memory; cut rows with --rows A:B or leave sections out with --sections"
    if isinstance(error, OSError) and error.strerror:
        return printable(f"{error.filename or 'output'}: {error.strerror}; mend that and try again")
    text = printable(" ".join(str(error).split()))
    return f"unexpected {type(error).__name__}: {text}; --debug shows where"


def printable(text: str) -> str:
    """Text without control characters, which a hostile file name could carry."""
    return "".join(c if c.isprintable() or c == "\xa0" else repr(c)[1:-1] for c in text)


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
        """So many a second."""

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


def is_occupied(folder: Path) -> bool:
    """Whether a folder to be written to exists and holds something.

    Raises
    ------
    BadOption
        It can be no folder.
    """
    try:
        near = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
        if near.is_dir():
            return near == folder.absolute() and any(near.iterdir())
        cause = f"{near} is not a folder"
    except OSError as error:  # too long a name, a loop of links, a folder that may not be read
        cause = f"cannot be used: {error.strerror or error}"
    raise BadOption(cause, where=folder, way_out="choose another folder with -o")


def check_output(folder: Path) -> None:
    """Refuse, before anything is computed, a folder whose content is not ours to replace.

    Raises
    ------
    BadOption
    """
    from embgeo.result.analysis import JSON_NAME

    if is_occupied(folder) and not (folder / JSON_NAME).exists():
        raise BadOption(
            "exists and holds something else than an analysis",
            where=folder,
            way_out="choose another folder with -o",
        )


def write_folder(analysis: Analysis, folder: Path) -> Path:
    """Result and report in `folder`, whole or not at all; the path of the report."""
    from embgeo.report.html import write
    from embgeo.result.analysis import ARRAYS_NAME, JSON_NAME, REPORT_NAME

    folder = folder.absolute()
    fresh: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        analysis.save(fresh)
        write(analysis, fresh)
        if folder.exists():
            for name in (ARRAYS_NAME, JSON_NAME, REPORT_NAME):
                (fresh / name).replace(folder / name)
        else:
            mask = os.umask(0)
            os.umask(mask)
            fresh.chmod(0o777 & ~mask)
            fresh.rename(folder)
    except (OSError, EmbgeoError) as error:
        cause = error.cause if isinstance(error, EmbgeoError) else error.strerror or str(error)
        raise EmbgeoError(
            f"cannot be written: {cause.removeprefix('cannot be written: ')}",
            where=folder,
            way_out="choose another folder with -o",
        ) from error
    finally:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)
    return folder / REPORT_NAME
