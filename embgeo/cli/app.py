"""The command line: one file a command, put together here."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated

import typer

from embgeo.cli.commands import APPEARANCE, LazyGroup
from embgeo.cli.shared import FAILED, one_line, printable, silence_stdout

#: typer's own answer to an interrupt that it catches first.
INTERRUPTED = 130

app = typer.Typer(
    name="embgeo",
    cls=LazyGroup,
    help="The shape of a language model's embedding matrix: is it degenerate, by which evidence, "
    "and which tokens are to blame.",
    no_args_is_help=True,
    **APPEARANCE,
)


def show_version(wanted: bool) -> None:
    if wanted:
        from embgeo import __version__

        print(f"embgeo {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Options that stand before the command."""


def main() -> None:
    """Entry point of the ``embgeo`` command."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this process
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        stream = getattr(sys, name)
        # Tokens are arbitrary text: what the terminal cannot show is shown escaped.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # A polite request to end clears away scratch files like any other end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code; whatever goes wrong is told in one line."""
    try:
        code = app(arguments, standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as error:
        code = error.code if error.code in (None, 0, INTERRUPTED) else FAILED
    except (Exception, KeyboardInterrupt) as error:
        return failed(arguments, error)
    if code == INTERRUPTED:
        return failed(arguments, KeyboardInterrupt())
    return code if isinstance(code, int) else 0


def failed(arguments: list[str], error: BaseException) -> int:
    """One line about what reached the outermost level."""
    # typer carries its own copy of click: its usage errors are known by what they can do.
    if not arguments and hasattr(error, "show"):
        error.show()
        return FAILED
    if isinstance(error, OSError):  # what is still buffered must not complain again at exit
        silence_stdout()
    message = one_line(error)
    if hasattr(error, "format_message"):
        usage = printable(" ".join(error.format_message().split())).rstrip(".")
        message = f"{usage}; embgeo COMMAND --help says more"
    print(f"embgeo: {message}", file=sys.stderr)
    return FAILED
