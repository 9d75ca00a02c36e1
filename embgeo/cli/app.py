"""The command line: one file a command, put together here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from embgeo.cli.analyze import analyze
from embgeo.cli.inspect import inspect
from embgeo.cli.report import report
from embgeo.cli.shared import FAILED, printable

app = typer.Typer(
    name="embgeo",
    help="The shape of a language model's embedding matrix: is it degenerate, by which evidence, "
    "and which tokens are to blame.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: Every command; a new one is a file and a line here.
COMMANDS = (analyze, inspect, report)

for command in COMMANDS:
    app.command()(command)


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
    for stream in (sys.stdout, sys.stderr):
        # Tokens are arbitrary text: what the terminal cannot show is shown escaped.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code; a wrong option is told in one line."""
    try:
        code = app(arguments, standalone_mode=False)
    except Exception as error:
        # typer carries its own copy of click: its usage errors are known by what they can do.
        if not arguments and hasattr(error, "show"):
            error.show()
            return FAILED
        if not hasattr(error, "format_message"):
            raise
        print(f"embgeo: {one_line_usage(error.format_message())}", file=sys.stderr)
        return FAILED
    return code if isinstance(code, int) else 0


def one_line_usage(message: str) -> str:
    return f"{printable(' '.join(message.split())).rstrip('.')}; embgeo COMMAND --help says more"
