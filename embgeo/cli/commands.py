"""Every command by name; a command's file is imported when the command is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

#: Command → what the list of commands says about it, which is the first line of its help. A new
#: command is a file of that name, with a function of that name, and a line here.
COMMANDS = {
    "analyze": "Measure an embedding matrix and write a report.",
    "diff": "Compare checkpoints and saved analyses with a baseline, and write one report.",
    "export": "Write a saved analysis in the format of another program.",
    "figures": "Draw figures and LaTeX tables for a paper from saved results.",
    "gate": "Hold saved analyses or checkpoints to rules: exit code 1 if one fails.",
    "inspect": "List tensors, shapes, types and sizes, and the choice; reads headers only.",
    "merge": "Merge the states of all parts of a matrix, in any order.",
    "report": "Render the report of a saved analysis or comparison again.",
    "train": "Train language models with each of several methods, and compare what they did.",
}


#: How typer shows every command, and the list of them.
APPEARANCE: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class Commands(Mapping[str, Any]):
    """The commands as typer wants them, each made when it is first looked up."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        if name not in self._made:
            alone = typer.Typer(**APPEARANCE)
            alone.command(name)(getattr(import_module(f"embgeo.cli.{name}"), name))
            self._made[name] = typer.main.get_command(alone)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class LazyGroup(TyperGroup):
    """A group whose list of commands imports none of them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """The list in the help, from the texts here."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
