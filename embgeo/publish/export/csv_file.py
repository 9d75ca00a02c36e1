"""CSV: a row a token; how it was made in a JSON file next to it."""

from __future__ import annotations

import json
from pathlib import Path

from embgeo.io.bounded.saved import csv_lines, is_record
from embgeo.publish.export.columns import collect_columns, iterate_rows
from embgeo.publish.export.target import FORMAT, Request, Target

BESIDE = ".provenance.json"


def write(request: Request, path: Path) -> None:
    columns = collect_columns(request.saved())
    with path.open("wb") as stream:
        stream.writelines(csv_lines(tuple(columns), iterate_rows(columns)))
    text = json.dumps(request.record, indent=1, allow_nan=False) + "\n"
    path.with_name(path.name + BESIDE).write_text(text, "ascii")


def is_ours(path: Path) -> bool:
    return is_record(path.with_name(path.name + BESIDE), FORMAT)


TARGET = Target("csv", ".csv", write, is_ours)
