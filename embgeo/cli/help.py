"""The help of a command: its options in groups, first those that most people need."""

import re
import sys
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.core import TyperCommand

from embgeo.cli.shared import is_colorful
from embgeo.core.errors import BadOption
from embgeo.core.options import LOADING, MEASURING, OF_ANALYZE

#: Group → names of its options; "Options" has all that are in no group.
GROUPS: dict[str, tuple[str, ...]] = {
    "Reading": tuple(LOADING),
    "Measuring": ("sections", "reference", "show_neighbors", "metrics", *MEASURING),
    "Options": (),
    "Resources": ("memory", "threads", "device", "engine", "scheduler"),
    "Output": ("out", "force", "open_", "format_", "json_", "quiet", "debug", "help_all", "help"),
}
#: Options of loading and measuring that the first help of a command lists.
FIRST = (
    "tensor", "rows", "tokens", "counts", "corpus", "rank_order", "sections", "show_neighbors",
    "pairs", "device",
)  # fmt: skip
#: Command → options that only ``--help-all`` lists.
RARE: dict[str, set[str]] = {
    "analyze": {
        *LOADING,
        *MEASURING,
        *OF_ANALYZE,
        *("metrics", "engine", "scheduler", "no_config", "trust_settings", "format_"),
    }
    - {*FIRST},
}
#: Placeholders of values by type.
PLACEHOLDERS = {Path: "FILE", int: "N", float: "X", str: "TEXT"}
_ALL = "embgeo.help_all"


def show_all(ctx: typer.Context, requested: bool) -> None:
    """Print the help with all options, and end."""
    if requested:
        ctx.meta[_ALL] = True
        print(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option("--help-all", is_eager=True, callback=show_all, help="List all options and exit."),
]


#: Stands for a hyphen where help is wrapped, so that no option is broken at its hyphen.
NO_BREAK = "\u2011"
#: What is colored in help: headings, and options.
HEADING = re.compile(r"^(?:Usage(?=:)|[A-Z]\w+(?=:$))", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")


def finish_help(text: str) -> str:
    """Put hyphens back into wrapped help, and color it on a terminal."""
    text = text.replace(NO_BREAK, "-")
    if is_colorful(sys.stdout):
        text = HEADING.sub(lambda found: typer.style(found[0], bold=True), text)
        text = OPTION.sub(lambda found: typer.style(found[0], fg="cyan"), text)
    return text


def find_type(param: Any) -> Any:
    """Find the type of one value of a parameter."""
    # The function is not part of the older versions of typer.
    made = getattr(param, "get_runtime_param", None)
    kind = None if made is None else made().annotation
    return get_args(kind)[0] if get_origin(kind) is list else kind


def placeholder(param: Any) -> str:
    """Return what stands for the value of an option."""
    if param.metavar:
        return str(param.metavar)
    kind = find_type(param)
    choices = get_args(kind) or tuple(getattr(kind, "__members__", ()))
    return "|".join(map(str, choices)) or PLACEHOLDERS.get(kind, "VALUE")


def describe(param: Any, ctx: Any) -> tuple[str, str]:
    """Write the names and the help of a parameter."""
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper()), str(param.help).replace("-", NO_BREAK)
    names = ", ".join(sorted(param.opts, key=len))
    if param.secondary_opts:
        names = "/".join((names, *param.secondary_opts))
    elif not param.is_flag:
        names = f"{names} {placeholder(param)}"
    return names, str(param.help).replace("-", NO_BREAK)


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by group."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True  # refused below, with a way out
        extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            names = [p.name for p in self.params if p.param_type_name == "argument"]
            way_out = f"see {ctx.command_path} --help"
            if self.name == "analyze":
                import shlex

                paths = map(str, (ctx.params[names[0]], *extra))
                way_out = f"compare them with embgeo diff {shlex.join(paths)}"
            cause = f"{self.name} takes {'one path' if names else 'options only'}"
            raise BadOption(cause, where=extra[0], way_out=way_out)
        return extra

    def get_help(self, ctx: Any) -> str:
        return finish_help(super().get_help(ctx))

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        text, example, line = str(self.help).partition("\n\nExample: ")
        self.help = text.replace("-", NO_BREAK)
        super().format_help_text(ctx, formatter)
        self.help = text + example + line
        formatter.write(f"\nExample:\n  {line.strip()}\n")

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        places = (p for p in self.get_params(ctx) if p.param_type_name == "argument")
        names = (describe(param, ctx)[0] for param in places)
        return ["[OPTIONS]", *names]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rare = set() if ctx.meta.get(_ALL) else RARE.get(str(self.name), set())
        lists: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{name: [] for name in GROUPS}}
        for param in self.get_params(ctx):
            if param.name in rare:
                continue
            group = next((g for g, names in GROUPS.items() if param.name in names), "Options")
            is_argument = param.param_type_name == "argument"
            lists["Arguments" if is_argument else group].append(describe(param, ctx))
        for name, records in lists.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
