"""CSV: a row a token, with its provenance in a JSON file next to it."""

from pathlib import Path

from embgeo.io.bounded.records import as_text
from embgeo.io.bounded.saved import csv_lines, is_record
from embgeo.publish.export.columns import collect_columns, iterate_rows
from embgeo.publish.export.target import FORMAT, Request, Target

RECORD_ENDING = ".provenance.json"


def write(request: Request, path: Path) -> None:
    columns = collect_columns(request.saved())
    with path.open("wb") as stream:
        stream.writelines(csv_lines(tuple(columns), iterate_rows(columns)))
    path.with_name(path.name + RECORD_ENDING).write_text(as_text(request.record), "ascii")


def is_ours(path: Path) -> bool:
    return is_record(path.with_name(path.name + RECORD_ENDING), FORMAT)


TARGET = Target("csv", ".csv", write, is_ours)
