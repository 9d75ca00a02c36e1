"""The command line: one file a command, put together here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from embgeo.cli.analyze import analyze
from embgeo.cli.inspect import inspect
from embgeo.cli.report import report

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
    app()
