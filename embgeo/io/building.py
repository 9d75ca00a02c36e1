"""A matrix from what was selected, labeled and counted: the first place that reads tensors."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from embgeo.core.file_stamp import FileStamp
from embgeo.core.matrix import Matrix, Origin
from embgeo.io.bounded.guard import cannot_read, short
from embgeo.io.bounded.small_files import safe_text
from embgeo.io.checkpoint import Tensor
from embgeo.io.labels.rows import PADDING_REASON
from embgeo.io.matrix_facts import (
    Rows,
    count_vocabulary,
    find_unreachable_rows,
    has_same_values,
    is_tied_as_configured,
    place_special,
    read_rows,
)
from embgeo.io.selecting import Counting, Labeling, Selection

_HASH_BLOCK = 4 * 2**20


def build_matrix(selection: Selection, labeling: Labeling, counting: Counting) -> Matrix:
    """Map the selected rows and put labels, frequencies and origin next to them."""
    source, checkpoint, choice = selection.source, selection.checkpoint, selection.choice
    # Files that were unpacked and removed have none.
    stamps = tuple(FileStamp.of(path) for path in checkpoint.files if path.is_file())
    labels = counting.labels
    data = read_rows(choice.input, choice.input_transposed, selection)
    projection, tied_by = _read_output(selection, data)
    notes = (
        *choice.notes,
        *checkpoint.notes,
        *labeling.notes,
        *(labels.notes if labels else ()),
        *counting.notes,
        *_shape_note(selection),
    )
    origin = Origin(
        path=str(source.path),
        format=checkpoint.format,
        sha256=sha256_of(checkpoint.files) if source.hash_file else "",
        rows=None if source.rows is None else (selection.cut.start, selection.cut.stop),
        tied_by=choice.tied_by or tied_by,
        notes=notes,
        stamps=stamps,
    )
    origin.check_files()
    matrix = Matrix(
        data,
        name=checkpoint.path.name or checkpoint.path.resolve().name,
        tokens=tuple(map(safe_text, labels.tokens)) if labels else None,
        frequency=counting.frequency,
        masked={PADDING_REASON: labels.masked} if labels and len(labels.masked) else {},
        special=place_special(selection),
        vocabulary_size=count_vocabulary(selection, labeling),
        unreachable=find_unreachable_rows(selection, labeling),
        tied_as_configured=is_tied_as_configured(selection, data, projection, origin.tied),
        origin=_of(origin, choice.input, choice.input_transposed, choice.reason),
    )
    if projection is None or choice.output is None:
        return matrix
    why = "named with --output" if source.output else "output projection by name and shape"
    output = replace(
        matrix,
        data=projection,
        special=(),
        name=f"{matrix.name} (output)",
        origin=_of(origin, choice.output, choice.output_transposed, why),
    )
    return replace(matrix, output=output)


def _of(origin: Origin, tensor: Tensor, transposed: bool, reason: str) -> Origin:
    return replace(
        origin,
        tensor=tensor.name,
        stored_shape=tensor.shape,
        dtype=tensor.dtype,
        transposed=transposed,
        reason=reason,
        columns=() if transposed else tensor.columns,
    )


def _shape_note(selection: Selection) -> tuple[str, ...]:
    n, d, transpose = selection.cut.total, selection.d, selection.source.transpose
    if n >= d:
        return ()
    way_out = "drop --transpose" if transpose else "use --transpose"
    whose = "rows" if transpose else "columns"
    return (f"fewer rows ({n:,}) than columns ({d:,}): if words are {whose}, {way_out}",)


def _read_output(selection: Selection, data: Rows) -> tuple[Rows | None, str]:
    """The rows of the output projection; none, and why, if it is a copy of the embedding."""
    choice = selection.choice
    if choice.output is None:
        return None, ""
    projection = read_rows(choice.output, choice.output_transposed, selection)
    if selection.source.output is None and has_same_values(data, projection):
        return None, f"{short(choice.output.name)} holds the same numbers"
    return projection, ""


def sha256_of(files: Sequence[Path]) -> str:
    """SHA-256 of the files' bytes, one file after the other, in hexadecimal."""
    digest = hashlib.sha256()
    for path in files:
        try:
            with path.open("rb") as file:
                while block := file.read(_HASH_BLOCK):
                    digest.update(block)
        except OSError as error:
            raise cannot_read(path, error) from error
    return digest.hexdigest()
