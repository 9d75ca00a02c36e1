"""CSV: a row a token, and next to it its provenance in JSON and the suspects in CSV."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from embgeo.core.suspects import REASONS, Suspects
from embgeo.core.values import Cell
from embgeo.files.records import as_text
from embgeo.files.saved import csv_lines, is_record, write_file
from embgeo.publish.export.columns import collect_columns, iterate_rows
from embgeo.publish.export.target import FORMAT, Request, Target

RECORD_ENDING, SUSPECTS_ENDING = ".provenance.json", ".suspects.csv"
#: Columns of the suspects; `measure` says what `value` is.
COLUMNS = (
    "reason", "side", "serious", "row", "token", "norm", "measure", "value", "group", "help",
)  # fmt: skip


def write(request: Request, path: Path) -> None:
    columns = collect_columns(request.analysis)
    write_file(path, csv_lines(tuple(columns), iterate_rows(columns)))
    suspects = list_suspects(request.analysis.suspects)
    write_file(path.with_name(path.name + SUSPECTS_ENDING), csv_lines(COLUMNS, suspects))
    write_file(path.with_name(path.name + RECORD_ENDING), as_text(request.record))


def list_suspects(suspects: Sequence[Suspects]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each suspect, the most serious reason first."""
    for own in suspects:
        meaning = REASONS[own.reason]
        numbers = [
            [None] * len(own) if one is None else one.tolist()
            for one in (own.norms, own.values, own.group)
        ]
        tokens = own.tokens or [None] * len(own)
        for row, serious, token, norm, value, group in zip(
            own.rows.tolist(), own.serious.tolist(), tokens, *numbers, strict=True
        ):
            cells = (own.reason, own.side, int(serious), row, token, norm)
            yield (*cells, meaning.measure or None, value, group, meaning.help)


def is_ours(path: Path) -> bool:
    return is_record(path.with_name(path.name + RECORD_ENDING), FORMAT)


TARGET = Target("csv", ".csv", write, is_ours)
