"""Write the options of every command into docs/options.md, behind its hand-written beginning."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

from embgeo.cli.app import COMMANDS, load_command
from embgeo.cli.help import GROUPS, NO_BREAK, describe

TARGET = Path(__file__).parent / "options.md"
BEGINS = "<!-- Made by docs/make_options.py from the code below this line. -->\n"
#: Options of at least this many commands are described once.
SHARED = 3
HEAD = "\n| option | |\n|---|---|\n"

Row = tuple[str, str]


def list_rows(command: str) -> list[Row]:
    """List the arguments and options of a command with their help, in the order of its help."""
    order = [name for names in GROUPS.values() for name in (names or ("options",))]
    last = order.index("options")
    rows = []
    for param in load_command(command).params:
        is_argument = param.param_type_name == "argument"
        place = -1 if is_argument else order.index(param.name) if param.name in order else last
        name, text = (part.replace(NO_BREAK, "-") for part in describe(param, None))
        rows.append((place, (name, text)))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def write_rows(rows: list[Row]) -> str:
    cells = ((name.replace("|", "\\|"), text.replace("|", "\\|")) for name, text in rows)
    return "".join(f"| `{name}` | {text} |\n" for name, text in cells)


def describe_command(command: str, rows: list[Row], shared: list[Row]) -> str:
    """Write what a command does, its example, its own options, and the names of shared ones."""
    function = getattr(import_module(f"embgeo.cli.{command}"), command)
    said, _, example = inspect.cleandoc(function.__doc__).partition("\n\nExample: ")
    own = [row for row in rows if row not in shared]
    also = ", ".join(f"`{re.findall('--[a-z-]+', row[0])[0]}`" for row in shared if row in rows)
    table = HEAD + write_rows(own) if own else ""
    block = f"\n```text\n{example.strip()}\n```\n"
    return f"\n## embgeo {command}\n\n{said}\n{block}{table}\nAlso {also}.\n"


def document() -> str:
    head, begins, _ = TARGET.read_text("utf-8").partition(BEGINS)
    rows = {command: list_rows(command) for command in COMMANDS}
    times = Counter(row for own in rows.values() for row in own)
    shared = [row for row, count in times.items() if count >= SHARED]
    parts = "".join(describe_command(name, own, shared) for name, own in rows.items())
    text = f"\n## Options of several commands\n{HEAD}{write_rows(shared)}{parts}"
    return head + begins + text


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8", newline="\n")
