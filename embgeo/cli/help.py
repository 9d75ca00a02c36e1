"""The help of a command, with its options in groups."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from typer.core import TyperCommand

from embgeo.core.options import Options
from embgeo.core.source import Source

#: Sections of the fields of `Source` that are about tokens.
LABELS = ("labels", "frequencies")
#: Group → names of its options; "Options" has all that are in no group.
GROUPS: dict[str, tuple[str, ...]] = {
    "Input": tuple(f.name for f in fields(Source) if f.metadata["section"] not in LABELS),
    "Tokens": tuple(f.name for f in fields(Source) if f.metadata["section"] in LABELS),
    "Options": (),
    "What to measure": ("sections", "reference", *(f.name for f in fields(Options))),
    "Resources": ("memory", "threads", "device"),
    "Clusters": ("engine", "scheduler"),
    "Output": ("out", "force", "open_", "format_", "json_", "quiet", "debug", "help"),
}


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by group."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        lists: dict[str, list[tuple[str, str]]] = {"Arguments": [], **{name: [] for name in GROUPS}}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                group = next((g for g, names in GROUPS.items() if param.name in names), "Options")
                lists["Arguments" if param.param_type_name == "argument" else group].append(record)
        for name, records in lists.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)
