"""``embgeo repair``: damaged rows get new values, in a copy of the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embgeo.cli.diff import cells, number_text, print_columns
from embgeo.cli.fields import EachField, Given
from embgeo.cli.shared import Debug, Json, Quiet, guarded, printable, progress_bar
from embgeo.core.source import Source

if TYPE_CHECKING:
    from embgeo.comparison.comparison import Comparison
    from embgeo.replacement.record import RepairRecord
    from embgeo.workflows.repair import Repair

#: Rows that are shown at most; the record has all.
MOST_ROWS = 12


@guarded
def repair(
    *,
    model: Annotated[
        Path, typer.Argument(help="Model folder with safetensors files, or one such file.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of the repaired copy; must not exist."),
    ] = None,
    rows: Annotated[
        str,
        typer.Option(
            metavar="damaged|special|FILE",
            help="Rows to replace: damaged ones, those among special tokens only, or the row "
            "numbers or tokens in a file, one a line.",
        ),
    ] = "damaged",
    method: Annotated[
        str | None,
        typer.Option(
            metavar="output|subwords|mean|mean-cov|median-norm",
            help="What new rows are made of; output for untied models by default, else mean.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of mean-cov.")] = 0,
    max_rows: Annotated[int, typer.Option(min=1, help="Refuse to replace more rows.")] = 256,
    patch: Annotated[
        Path | None,
        typer.Option(
            help="embgeo-repair.json of another copy of this model: take its new rows.",
        ),
    ] = None,
    damaged_below: Annotated[
        float | None,
        typer.Option(help="Rows of a smaller norm are damaged; by default the gap decides."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")
    ] = False,
    loading: Annotated[Given, EachField(Source, only=("tensor", "output"))],
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Give damaged rows of a model new values, in a copy.

    Only the file that holds the matrix is written anew, and in it only those rows; all other files
    of the model are linked. The copy says in embgeo-repair.json what was changed, which is a patch
    for other copies of the model, too.

    Example: embgeo repair fixtures/cosreg.safetensors --dry-run
    """
    from embgeo.workflows.repair import repair as run

    with progress_bar(quiet) as progress:
        done = run(
            model,
            out,
            rows=rows,
            method=method,
            seed=seed,
            max_rows=max_rows,
            patch=patch,
            damaged_below=damaged_below,
            dry_run=dry_run,
            diff=not (quiet or json_),
            progress=progress,
            **loading,
        )
    if json_:
        from embgeo.replacement.record import FORMAT

        record = None if done.record is None else FORMAT.to_json(done.record)
        print(json.dumps(record, indent=1, allow_nan=False))
    elif not quiet:
        summary(done, model)


def summary(done: Repair, model: Path) -> None:
    """What was replaced, the difference of old and new, and where the new model is."""
    if done.record is None:
        print(printable(f"{model}: no such row is damaged, there is nothing to repair"))
        return
    replaced_rows(done.record)
    if done.comparison is not None:
        differences(done.comparison)
    for note in done.notes:
        print(printable(f"  note: {note}"))
    if done.folder is None:
        print("nothing was written")
    else:
        print(printable(f"repaired: {done.folder}"))


def differences(comparison: Comparison) -> None:
    """Numbers about the health of rows in both models, and what takes both matrices."""
    from embgeo.core.quantities import compare, tokens

    health = (
        tokens.DAMAGED_ROWS,
        tokens.SPECIAL_DAMAGED_ROWS,
        tokens.NONFINITE_ROWS,
        tokens.NORM_MIN,
        tokens.NORM_MEDIAN,
        tokens.NORM_RMS,
    )
    known = {one.name: one for one in comparison.differences_of(1)}
    chosen = [known[q.name] for q in health if q.name in known and not known[q.name].undefined]
    lines = [("", "old", "new", "difference")]
    lines += [(one.quantity.title, *cells(one)) for one in chosen]
    pair = comparison.pair(0, 1)
    headline = {quantity.name for quantity in compare.HEADLINE}
    shown = [s for s in pair.scalars if s.name in headline and not s.undefined] if pair else []
    print_columns([*lines, *((s.quantity.title, "", "", s.text) for s in shown)])


def replaced_rows(record: RepairRecord) -> None:
    """The rows before and after, as a table."""
    n, d = record.shape
    print(printable(f"{record.source}  {record.tensor}  {n:,} × {d:,}  {record.dtype}"))
    length = {"rms": "root mean square", "median": "median"}[record.length]
    count = f"{len(record.rows):,} row{'' if len(record.rows) == 1 else 's'}"
    print(f"  {count} by {record.method}, {length} norm {number_text(record.norm)}")
    lines = [("row", "token", "state", "norm", "new norm", "")]
    # Special tokens first, those of the chat template before the others.
    ordered = sorted(record.rows, key=lambda one: ("template" not in one.roles, not one.roles))
    for one in ordered[:MOST_ROWS]:
        before = "–" if one.norm_before is None else number_text(one.norm_before)
        after = number_text(one.norm_after)
        lines.append((f"{one.row:,}", one.token or "", one.state or "masked", before, after, ""))
    print_columns(lines)
    if len(record.rows) > MOST_ROWS:
        print(f"  and {len(record.rows) - MOST_ROWS:,} more rows")
