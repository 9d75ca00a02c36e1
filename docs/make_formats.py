"""Write the tables of ``docs/formats.md`` from the formats in the code.

    python docs/make_formats.py

A table stands behind each line ``<!-- NAME: … -->``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from embgeo.core.errors import on_command_line
from embgeo.io.formats import FORMATS, model_folder, torch_distributed
from embgeo.io.formats.foreign import FOREIGN

TARGET = Path(__file__).with_name("formats.md")
PLACE = re.compile(r"^(<!-- (formats|refused): .+ -->\n)(?:\|.*\n)*", re.MULTILINE)


def list_formats() -> Iterator[tuple[str, ...]]:
    """Yield what is read: files, then folders."""
    folders = (torch_distributed, model_folder)
    yield "format", "recognized by", "what is mapped, what is read", "extra"
    for module in (*(m for m in FORMATS if m not in folders), *folders):
        extra = f"`{module.EXTRA}`" if module.EXTRA else ""
        yield module.NAME, module.RECOGNIZED, module.READ, extra


def list_refused() -> Iterator[tuple[str, ...]]:
    """Yield what is recognized and refused, with the tool that converts it."""
    yield "what", "way out"
    for kind in FOREIGN:
        yield re.sub(r"^is ", "", str(kind.what)), str(kind.way_out)


def write_table(rows: Iterator[tuple[str, ...]]) -> str:
    lines = [[on_command_line(cell).replace("|", "\\|") for cell in row] for row in rows]
    head, *body = (f"| {' | '.join(cells)} |\n" for cells in lines)
    return f"{head}{'|---' * len(lines[0])}|\n{''.join(body)}"


def document() -> str:
    """Make the page: its text as it is, its tables from the code."""
    tables = {"formats": write_table(list_formats()), "refused": write_table(list_refused())}
    return PLACE.sub(lambda found: found[1] + tables[found[2]], TARGET.read_text("utf-8"))


if __name__ == "__main__":
    TARGET.write_text(document(), encoding="utf-8", newline="\n")
