"""Write ``docs/formats.md`` from the formats in the code: ``python docs/make_formats.py``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from embgeo.core.errors import on_command_line
from embgeo.files.compressed import CODECS, MAX_BYTES, MAX_RATIO, RATIO_FREE_BYTES
from embgeo.io.formats import FORMATS, torch_distributed
from embgeo.io.formats.foreign import FOREIGN
from embgeo.io.formats.format import GROUP
from embgeo.io.model import folder as model_folder

TARGET = Path(__file__).with_name("formats.md")

OPENING = """\
# Formats

<!-- Made by docs/make_formats.py from the code; change it there, then run it. -->

What `embgeo analyze` and `embgeo inspect` open. Formats are detected from file contents, never from
the file's name. *Mapped* means that the numbers stay in the file and are read block by block. The
last column names the [extra](../README.md#start) that is needed.

| format | recognized by | what is mapped, what is read | extra |
|---|---|---|---|
"""

FOLDERS = """
## Folders

| folder | recognized by | what is mapped, what is read | extra |
|---|---|---|---|
"""

AROUND = """
## Around any of them

- Compressed by {codecs}. A file that unfolds to more than {free} MiB and {ratio} times its size, or
  to more than {most} GiB, is refused.
- Through a pipe: `embgeo analyze -` reads stdin.
"""

FORMS = """

## Stored forms, pieces and names

Which matrix is read of a file, in which stored forms and of how many files: [layouts](layouts.md).
"""

PLUGINS = """
## Formats of other packages

A package adds a format by an entry point of the group `{group}`. It names a module, or another
object, with the attributes of `Format` in `embgeo/io/formats/format.py`: `NAME`, `RECOGNIZED`,
`READ`, `EXTRA`, `sniff(head)` and `open_checkpoint(data, beside)`. It returns every member of the
file: one that cannot be read has a reason in place of its numbers, and the choice of the embedding
decides what follows from it.

```toml
[project.entry-points."{group}"]
zarr = "embgeo_zarr"
```

Such formats are asked last. Their code runs as it is.
"""

REFUSED = """
## Known, and not read

| what | way out |
|---|---|
"""


def prose(text: str) -> str:
    """Text that cannot end its table cell."""
    return on_command_line(text).replace("|", "\\|")


def extra(name: str) -> str:
    return f"`{name}`" if name else ""


def make_row(module: Any) -> str:
    cells = (module.NAME, prose(module.RECOGNIZED), prose(module.READ), extra(module.EXTRA))
    return f"| {' | '.join(cells)} |\n"


def codecs() -> str:
    named = [
        f"**{codec.name}**" + (f" (extra {extra(codec.extra)})" * bool(codec.extra))
        for codec in CODECS
    ]
    return f"{', '.join(named[:-1])} or {named[-1]}"


def list_refused() -> str:
    """What is recognized and refused, with the tool that converts it."""
    rows = (f"| {re.sub(r'^is ', '', kind.what)} | {kind.way_out} |\n" for kind in FOREIGN)
    return "".join(map(str, rows))


def document() -> str:
    folders = (torch_distributed, model_folder)
    files = [module for module in FORMATS if module not in folders]
    around = AROUND.format(
        codecs=codecs(),
        free=RATIO_FREE_BYTES // 2**20,
        ratio=MAX_RATIO,
        most=MAX_BYTES // 2**30,
    )
    return (
        OPENING
        + "".join(map(make_row, files))
        + FOLDERS
        + "".join(map(make_row, folders))
        + around
        + FORMS
        + PLUGINS.format(group=GROUP)
        + REFUSED
        + list_refused()
    )


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8", newline="\n")
