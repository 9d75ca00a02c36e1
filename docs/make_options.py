"""Write the help of every command into docs/options.md, behind its hand-written beginning."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from embgeo.cli.app import COMMANDS, app
from embgeo.cli.help import RARE

TARGET = Path(__file__).parent / "options.md"
BEGINS = "<!-- Made by docs/make_options.py from the code below this line. -->\n"


def show(command: str) -> str:
    """The help of a command with all of its options."""
    flag = "--help-all" if command in RARE else "--help"
    shown = CliRunner().invoke(app, [command, flag], prog_name="embgeo")
    return f"\n## embgeo {command}\n\n```text\n{shown.output.strip()}\n```\n"


def document() -> str:
    head, begins, _ = TARGET.read_text("utf-8").partition(BEGINS)
    return head + begins + "".join(map(show, COMMANDS))


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8", newline="\n")
