"""Write docs/options.md: every option of every command, as its help lists them."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from embgeo.cli.app import COMMANDS, app
from embgeo.cli.help import RARE

TARGET = Path(__file__).parent / "options.md"

OPENING = """# Options

<!-- Made by docs/make_options.py from the code; change it there, then run it. -->

All options of every command. `embgeo COMMAND --help` prints those of one; for `analyze` and
`export` it leaves rare ones out, which `--help-all` prints, too. Give options of measuring to
`embgeo analyze`: `embgeo diff` and `embgeo gate` take the folders that it writes, or checkpoints,
which are measured with the defaults or as the settings say.

## Settings

Options of `embgeo analyze` can stand in the table `[analyze]` of `embgeo.toml`, or under
`[tool.embgeo.analyze]` in `pyproject.toml`, with `_` for `-`:

```toml
[analyze]
counts = "counts.tsv"
pairs = "all"
sections = "cosine,isotropy"
reference = false
```

They hold for `embgeo analyze` and for the checkpoints of `embgeo diff` and `embgeo gate`; a gate
chooses the sections by its rules, and its own table `[gate.analyze]` goes before (see
[the gate](gate.md)). Paths are relative to the file, and stay inside its repository or folder
unless `--trust-settings` says that the file is yours. The file is the nearest one that has the
table: in the current folder, or in one above it, up to the root of the repository or the home
folder. `--config FILE` names another, `--no-config` looks for none, and what stands on the command
line goes before the settings.
"""


def show(command: str) -> str:
    """The help of a command with all of its options."""
    flag = "--help-all" if command in RARE else "--help"
    shown = CliRunner().invoke(app, [command, flag], prog_name="embgeo")
    return f"\n## embgeo {command}\n\n```text\n{shown.output.strip()}\n```\n"


def document() -> str:
    return OPENING + "".join(map(show, COMMANDS))


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8", newline="\n")
