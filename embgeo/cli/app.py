"""The command line, which imports the file of a command when it is called."""

import os
import re
import signal
import sys
from enum import EnumType
from functools import cache
from importlib import import_module
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperGroup

from embgeo.cli.shared import (
    FAILED,
    Ended,
    Stopped,
    find_code,
    one_line,
    print_error,
    printable,
    silence_stdout,
)
from embgeo.core.arguments import find_nearest, refuse_if, refuse_name
from embgeo.core.errors import BadOption

#: Command → the first line of its help. A command is a function in a file of the same name.
COMMANDS = {
    "analyze": "Measure an embedding matrix and write a report.",
    "diff": "Compare checkpoints and saved analyses with a baseline, and write one report.",
    "export": "Write a saved analysis, or a study, in the format of another program.",
    "fetch": "Fetch the embedding, output matrix, final norm and tokenizer of a remote model.",
    "figures": "Draw figures and LaTeX tables for a paper from saved results.",
    "gate": "Check saved analyses or checkpoints against rules: exit code 1 if one fails.",
    "inspect": "Show which matrix would be analyzed, and why; read headers only.",
    "repair": "Replace suspicious rows of a model, in a copy.",
    "report": "Render the report of a saved analysis or comparison again.",
    "train": "Train language models with several methods, and compare the results.",
}

#: Options of typer for every command, and for the group.
APPEARANCE: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 80},
}
#: The exit code of typer for an interrupt that it catches.
INTERRUPTED = 130


@cache
def load_command(name: str) -> Any:
    """Import the file of a command and make the command."""
    from embgeo.cli.help import GroupedCommand

    alone = typer.Typer(**APPEARANCE)
    alone.command(name, cls=GroupedCommand)(getattr(import_module(f"embgeo.cli.{name}"), name))
    return typer.main.get_command(alone)


class LazyGroup(TyperGroup):
    """A group that imports a command when it is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)  # typer suggests one of these names

    def get_help(self, ctx: Any) -> str:
        from embgeo.cli.help import finish_help

        return finish_help(super().get_help(ctx))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        near = find_nearest(args[0].lower(), COMMANDS)
        way_out = f"did you mean {near}?" if near else f"see {ctx.command_path} --help"
        if os.path.exists(args[0]):
            import shlex

            way_out = f"measure a checkpoint with: embgeo analyze {shlex.quote(args[0])}"
        refuse_if(args[0] not in COMMANDS, args[0], "no such command", way_out)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    name="embgeo",
    cls=LazyGroup,
    help="Measure the geometry of a language model's embedding matrix: whether it is degenerate, "
    "by which evidence, and which tokens to look at.",
    no_args_is_help=True,
    **{**APPEARANCE, "add_completion": True},
)


def show_version(requested: bool) -> None:
    if requested:
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
    """Take the options before the command."""


def main() -> None:
    """Run the ``embgeo`` command."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        stream = getattr(sys, name)
        # Tokens are arbitrary text; characters that the terminal cannot show are escaped.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # huggingface_hub prints warnings of a server as they are, with terminal controls.
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, stop)
    sys.exit(run(sys.argv[1:]))


def stop(number: int, _frame: object) -> None:
    """Raise, so that temporary files are removed."""
    raise Stopped(signal.Signals(number).name)


def run(arguments: list[str]) -> int:
    """Run a command line and return its exit code; any error is printed as one line."""
    try:
        refuse_empty(arguments)
        code = app(repeat_against(arguments), standalone_mode=False, prog_name="embgeo")
        sys.stdout.flush()
    except Ended as error:
        return int(error.code or FAILED)
    except SystemExit as error:
        code = error.code if error.code in (None, 0, INTERRUPTED) else FAILED
    except (Exception, KeyboardInterrupt) as error:
        return failed(arguments, error)
    if code == INTERRUPTED:
        return failed(arguments, KeyboardInterrupt())
    return code if isinstance(code, int) else 0


def refuse_empty(arguments: list[str]) -> None:
    """Refuse an empty argument or value, which as a path would be the current folder."""
    for one in arguments:
        name = one.removesuffix("=")
        empty = not one or (name != one and re.fullmatch(r"--[\w-]+", name) is not None)
        cause = "needs a value" if name else "an argument is empty"
        refuse_if(empty, name, cause, "name a file or a folder, or leave it out")


def repeat_against(arguments: list[str]) -> list[str]:
    """Write ``--against`` before each path that follows it.

    Of an unquoted pattern a shell makes several paths; none of them is of the other group.
    """
    found: list[str] = []
    follows = False
    for one in arguments:
        if one.startswith("-"):
            follows = one.partition("=")[0] == "--against"
        elif follows and found[-1] != "--against":
            found.append("--against")
        found.append(one)
    return found


def explain_unknown(error: Any, arguments: list[str]) -> BadOption:
    """Return the error for an option that a command does not take, with the one that was meant."""
    from embgeo.core.options import LOADING, MEASURING, OF_ANALYZE

    name, command = error.option_name, error.ctx.command
    plain = name.lstrip("-").replace("-", "_")
    # Of "-q=1", the parser complains about "-=".
    flag = next(
        (one[:2] for one in arguments if one[0] == "-" != one[1:2] and plain in one[2:]), ""
    )
    if not name.startswith("--") and flag:
        return BadOption("takes no value", where=flag, way_out=f"write {flag} alone")
    of_analyze = {**LOADING, **MEASURING, **OF_ANALYZE}
    if command.name in ("diff", "gate") and plain in of_analyze:
        return BadOption(
            f"{command.name} takes no option about how a checkpoint is measured",
            where=name,
            way_out=f"give it to embgeo analyze and {command.name} the saved analyses, or write it "
            "into the table [analyze] of embgeo.toml",
        )
    options = (p for p in command.params if p.param_type_name == "option")
    known = {p.name: max(p.opts, key=len) for p in options}
    near = known.get(find_nearest(plain, known))
    way_out = f"did you mean {near}?" if near else f"see {error.ctx.command_path} --help"
    return BadOption("no such option", where=name, way_out=way_out)


def explain_value(arguments: list[str], name: str) -> BadOption:
    """Return the error for an option without its value, or with one that it does not take."""
    if any(argument.startswith(f"{name}=") for argument in arguments):
        return BadOption("takes no value", where=name, way_out=f"write {name} alone")
    return BadOption("needs a value", where=name, way_out="give it after the option")


def explain_wrong(error: Any, way_out: str) -> BadOption:
    """Return the error for a value of the wrong kind: not one of the choices, or not a number."""
    from embgeo.cli.help import find_type

    param, kind = error.param, find_type(error.param)
    wrong, name = error.__cause__.errors()[0]["input"], param.opts[0]
    choices = [str(value) for value in (kind if isinstance(kind, EnumType) else get_args(kind))]
    if choices:
        return refuse_name("choice", wrong, choices, name)
    number = {int: "a whole number", float: "a number"}.get(kind, "a value of its kind")
    cause = f"{str(wrong)!r} is not {number}"
    return BadOption(cause, where=name, way_out=way_out)


def explain_usage(error: Any, arguments: list[str]) -> str:
    """Explain an error of typer about the command line.

    typer may bring its own copy of click, so that errors are recognized by attributes.
    """
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "embgeo"
    way_out = f"see {command} --help"
    options = (one for one in arguments if one != "-" and one.startswith("-"))
    if dashed := next(filter(os.path.lexists, options), ""):
        return one_line(
            BadOption("begins like an option", where=dashed, way_out=f"write ./{dashed}")
        )
    if hasattr(error, "possibilities"):
        return one_line(explain_unknown(error, arguments))
    if hasattr(error, "option_name"):
        return one_line(explain_value(arguments, error.option_name))
    if hasattr(error, "param_type") and error.param is not None:
        param = error.param
        is_option = param.param_type_name == "option"
        name = param.opts[0] if is_option else param.metavar or param.name.upper()
        return one_line(BadOption("is missing", where=name, way_out=way_out))
    if hasattr(error, "param") and hasattr(error.__cause__, "errors"):
        return one_line(explain_wrong(error, way_out))
    said = printable(" ".join(error.format_message().split())).rstrip(".")
    return f"{said[:1].lower()}{said[1:]}; {way_out}"


def failed(arguments: list[str], error: BaseException) -> int:
    """Print an error that no command handled as one line."""
    if not arguments and hasattr(error, "show"):
        error.show()
        return FAILED
    if isinstance(error, OSError):  # flushing the buffer at exit would fail again
        silence_stdout()
    is_usage = hasattr(error, "format_message")
    message = explain_usage(error, arguments) if is_usage else one_line(error)
    print_error(message)
    return find_code(error)
