"""``embgeo inspect``: the tensors of a checkpoint, and the one that would be analyzed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from embgeo.cli import options as o
from embgeo.cli.shared import guarded, print_json, print_lines

if TYPE_CHECKING:
    from embgeo.io import Checkpoint
    from embgeo.io.inspection import Inspection


@guarded
def inspect(
    *,
    path: o.Checkpoint,
    tensor: o.Tensor = None,
    output: o.Output = None,
    transpose: o.Transpose = None,
    json_: o.Json = False,
    debug: o.Debug = False,
) -> None:
    """List tensors, shapes, types and sizes, and the chosen one; reads headers only.

    Example: embgeo inspect fixtures/baseline.pt
    """
    from embgeo.io import open_checkpoint
    from embgeo.io.inspection import inspect_checkpoint
    from embgeo.io.remote.names import as_written

    checkpoint = open_checkpoint(path)
    found = inspect_checkpoint(checkpoint, tensor=tensor, output=output, transpose=bool(transpose))
    if json_:
        shown = {"file": as_written(path), "format": checkpoint.format, **asdict(found)}
        print_json(shown)
    else:
        listing(checkpoint, found, str(checkpoint.path) if str(path) == "-" else as_written(path))


def listing(checkpoint: Checkpoint, found: Inspection, shown_path: str) -> None:
    """The tensors as an aligned table, then the choice and the notes."""
    from embgeo.io.model.candidates import shape_text
    from embgeo.report.text.columns import align

    lines = [("tensor", "shape and type", "size", "")]
    for shown, stored in zip(found.tensors, checkpoint.tensors, strict=True):
        size = f"{shown.nbytes / 1e6:,.3f} MB" if shown.nbytes else ""
        lines.append((shown.name, shape_text(stored), size, shown.role))
    print_lines(f"{shown_path}: {checkpoint.format}")
    print_lines(*(f"  {line}" for line in align(lines, left=frozenset({0, 1, 3}))))
    print_lines(f"choice: {found.reason or found.problem}")
    if found.tokens:
        print_lines(f"tokens: {found.tokens:,}, {found.tokens_source}")
    if found.counts:
        print_lines(f"counts: {found.counts:,}, {found.counts_source}")
    for note in found.notes:
        print_lines(f"note: {note}")
