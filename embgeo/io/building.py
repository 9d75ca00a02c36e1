"""Build a matrix of the selected tensors with labels and counts; reads the tensors."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.matrix import FileStamp, Matrix, Origin
from embgeo.core.special import cut_special, place_special
from embgeo.files.guard import cannot_read, short
from embgeo.files.scratch import fill_rows
from embgeo.files.small_files import safe_text
from embgeo.io.labels.rows import PADDING_REASON
from embgeo.io.labels.tokenizer_runs import NotUsable, find_unreachable
from embgeo.io.model.checkpoint import Checkpoint, RowsOnDemand, Tensor
from embgeo.io.model.choice import Choice, choose
from embgeo.io.model.names import input_rank, kind_of, layer_of, output_rank
from embgeo.io.selecting import Labeling, Selection, lay_counts

_COMPARED_ROWS = 4096
#: Reason for masking rows of the output that the model does not have.
WITHOUT_OUTPUT = "without a row in the output matrix"

Rows = npt.NDArray[Any]


def build_matrix(selection: Selection, labeling: Labeling, *, on_demand: bool = False) -> Matrix:
    """Map the selected rows and add labels, frequencies and origin.

    `on_demand` says whether rows that have to be decoded are read when they are needed.
    """
    source, checkpoint, choice = selection.source, selection.checkpoint, selection.choice
    # Files that were unpacked and removed have no stamp.
    stamps = tuple(FileStamp.of(path) for path in checkpoint.files if path.is_file())
    labels = labeling.labels
    on_demand = on_demand and choice.output is None
    data = _read_rows(choice.input, choice.input_transposed, selection, on_demand=on_demand)
    output = _read_output(selection, data)
    projection, tied_by = output.rows, output.tied_by
    cut, special = selection.cut, place_special(checkpoint.special, selection.cut.total)
    if not cut.is_whole:
        special = cut_special(special, cut.start, cut.stop)
    notes = (
        *choice.notes,
        *_note_copies(choice, data),
        *output.notes,
        *checkpoint.notes,
        *labeling.notes,
        *_shape_note(selection),
    )
    origin = Origin(
        path=str(source.path),
        format=checkpoint.format,
        sha256=_digest(checkpoint) if source.hash_file else "",
        rows=None if source.rows is None else (cut.start, cut.stop),
        tied_by=choice.tied_by or tied_by,
        notes=notes,
        stamps=stamps,
    )
    origin.check_files()
    matrix = Matrix(
        data,
        name=checkpoint.path.name or checkpoint.path.resolve().name,
        tokens=tuple(map(safe_text, labels.tokens)) if labels else None,
        frequency=labeling.frequency,
        masked={PADDING_REASON: labels.masked} if labels and len(labels.masked) else {},
        special=special,
        vocabulary_size=_count_vocabulary(selection, labeling),
        unreachable=_find_unreachable_rows(selection, labeling),
        tied_as_configured=_is_tied_as_configured(selection, data, projection, origin.tied),
        origin=_of(origin, choice.input, choice.input_transposed, choice.reason),
    )
    if projection is None or choice.output is None:
        return matrix
    why = "named with --output" if source.output else "output matrix by name and shape"
    missing = {WITHOUT_OUTPUT: output.missing} if len(output.missing) else {}
    of_output = replace(
        matrix,
        data=projection,
        masked=matrix.masked | missing,
        special=(),
        name=f"{matrix.name} (output)",
        origin=_of(origin, choice.output, choice.output_transposed, why),
    )
    return replace(matrix, output=of_output)


def _of(origin: Origin, tensor: Tensor, transposed: bool, reason: str) -> Origin:
    return replace(
        origin,
        tensor=tensor.name,
        stored_shape=tensor.shape,
        dtype=tensor.dtype,
        transposed=transposed,
        reason=reason,
        columns=() if transposed else tensor.columns,
        form=tensor.form,
        parts=tensor.parts if tensor.form else (),
    )


def _shape_note(selection: Selection) -> tuple[str, ...]:
    n, d, transpose = selection.cut.total, selection.d, selection.source.transpose
    if n >= d:
        return ()
    way_out = "drop --transpose" if transpose else "use --transpose"
    whose = "rows" if transpose else "columns"
    return (f"fewer rows ({n:,}) than columns ({d:,}): if words are {whose}, {way_out}",)


@dataclass(frozen=True, slots=True)
class _Projection:
    """Rows of the output matrix, one for each row of the embedding, if it takes part."""

    rows: Rows | None = None
    tied_by: str = ""
    missing: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))  # without a row
    notes: tuple[str, ...] = ()


def _read_output(selection: Selection, data: Rows) -> _Projection:
    """Read the output matrix, unless it is a copy of the embedding or has no usable row."""
    choice, cut = selection.choice, selection.cut
    if choice.output is None:
        return _Projection()
    ids = choice.output.row_ids
    if ids is not None and choice.input.row_ids is None:
        return _read_draft_output(selection, choice.output, ids())
    stored = choice.output.shape[1 if choice.output_transposed else 0]
    missing = np.arange(max(stored, cut.start), max(stored, cut.stop)) - cut.start
    projection = _read_rows(choice.output, choice.output_transposed, selection)[: len(data)]
    if selection.source.output is None and _has_same_values(data, projection):
        return _Projection(tied_by=f"{short(choice.output.name)} holds the same numbers")
    if not has_usable_row(projection):
        name = short(choice.output.name)
        note = f"the output matrix {name} is left out: all of its rows are zero or not finite"
        return _Projection(notes=(note,))
    if len(missing):
        typical = np.broadcast_to(_median_row(projection), (len(missing), projection.shape[1]))
        shape = (len(projection) + len(missing), projection.shape[1])
        projection = fill_rows([projection, typical], shape, projection.dtype)
    return _Projection(projection, missing=missing)


def _read_draft_output(selection: Selection, output: Tensor, ids: IntArray) -> _Projection:
    """Lay the rows of a draft head at their ids; other tokens have none."""
    cut, rows = selection.cut, output.open()
    if len(ids) != len(rows) or len(ids) == 0 or ids.min() < 0 or ids.max() >= cut.total:
        note = f"the ids of {short(output.name)} are not rows of the embedding; it is left out"
        return _Projection(notes=(note,))
    laid = np.full(cut.total, -1, dtype=np.int64)
    laid[ids] = np.arange(len(ids))
    laid = laid[cut.start : cut.stop]
    missing = np.flatnonzero(laid < 0).astype(np.int64)
    if len(missing) == len(laid) or not has_usable_row(rows):
        note = f"the output matrix {short(output.name)} has no usable row, and is left out"
        return _Projection(notes=(note,))
    made = np.array(rows[np.maximum(laid, 0)])
    made[missing] = _median_row(rows)
    made.flags.writeable = False
    return _Projection(made, missing=missing)


def has_usable_row(rows: Rows) -> bool:
    """Tell whether a row is finite and not zero; stops at the first block with one."""
    return any(
        bool((np.isfinite(block).all(axis=1) & block.any(axis=1)).any())
        for start in range(0, len(rows), _COMPARED_ROWS)
        if len(block := _wide(rows[start : start + _COMPARED_ROWS]))
    )


def _wide(rows: Rows) -> Rows:
    with np.errstate(all="ignore"):  # casts of numbers that are not finite
        return np.asarray(rows, dtype=np.float64)


def _median_row(rows: Rows) -> Rows:
    """Return the row of median norm among the first ones."""
    with np.errstate(all="ignore"):
        norms = np.linalg.norm(_wide(rows[:_COMPARED_ROWS]), axis=1)
    order = np.argsort(norms)
    return np.asarray(rows[order[len(order) // 2]])


def _note_copies(choice: Choice, data: Rows) -> tuple[str, ...]:
    """Return notes on copies of the embedding for multi-token prediction: equal to it or not."""
    notes = []
    for copy in choice.copies if not choice.input_transposed else ():
        rows = copy.open()
        equal = rows.shape == data.shape and _has_same_values(data, rows)
        which = "holds the same numbers" if equal else "differs, and is not analyzed"
        notes.append(f"{short(copy.name)}, for multi-token prediction, {which}")
    return tuple(notes)


def _digest(checkpoint: Checkpoint) -> str:
    return sha256_of(checkpoint.files) if checkpoint.digest is None else checkpoint.digest()


def sha256_of(files: Sequence[Path]) -> str:
    """Return SHA-256 of the concatenated files, in hexadecimal."""
    digest = hashlib.sha256()
    for path in files:
        try:
            with path.open("rb") as file:
                hashlib.file_digest(file, lambda: digest)
        except OSError as error:
            raise cannot_read(path, error) from error
    return digest.hexdigest()


def _read_rows(
    tensor: Tensor, transposed: bool, selection: Selection, *, on_demand: bool = False
) -> Rows:
    """Read the selected rows of a tensor, mapped if its format allows it."""
    cut = selection.cut
    if tensor.ranges is not None and not transposed:
        if not cut.is_whole:
            return tensor.ranges.read(cut.start, cut.stop)
        if on_demand:
            return cast(Rows, RowsOnDemand(tensor, tensor.ranges))
    array = tensor.open()
    if transposed:
        array = array.T
    return array if cut.is_whole else array[cut.start : cut.stop]


def _has_same_values(one: Rows, other: Rows) -> bool:
    """Tell whether two matrices are equal; stops at the first block that differs."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return all(
        np.array_equal(one[start : start + _COMPARED_ROWS], other[start : start + _COMPARED_ROWS])
        for start in range(0, len(one), _COMPARED_ROWS)
    )


def _count_vocabulary(selection: Selection, labeling: Labeling) -> int | None:
    """Count the tokens: those of the tokenizer, else those that the configuration says.

    None without either, for a cut, and for rows of other ids than text.
    """
    chosen, checkpoint, facts = (
        selection.choice.input, selection.checkpoint, selection.checkpoint.facts
    )  # fmt: skip
    if not selection.cut.is_whole:
        return None
    if labeling.vocabulary is not None and labeling.vocabulary.encoder is not None:
        return len(labeling.vocabulary.tokens)
    is_of_text = input_rank(chosen.name) is not None and not kind_of(chosen.name)
    is_of_others = selection.cut.total in facts.others.values() or layer_of(chosen.name) is not None
    if not is_of_text or is_of_others or chosen.row_ids is not None:
        return None
    if checkpoint.encoder is not None and checkpoint.tokens is not None:
        return len(checkpoint.tokens)
    return facts.vocabulary


def _find_unreachable_rows(
    selection: Selection, labeling: Labeling
) -> tuple[int, ...] | str | None:
    """Find rows of tokens that no text leads to, or why they are not known.

    None if not requested.
    """
    if not selection.source.check_reachable:
        return None
    try:
        ids = find_unreachable(labeling.vocabulary)
    except NotUsable as error:
        return str(error)
    assert labeling.labels is not None
    assert labeling.vocabulary is not None
    marks = np.bincount(ids, minlength=len(labeling.vocabulary.tokens))
    laid = lay_counts(marks.astype(np.float64), labeling.labels.first, selection.cut)
    return tuple(np.flatnonzero(laid).tolist())


def _is_tied_as_configured(
    selection: Selection, data: Rows, projection: Rows | None, is_tied: bool
) -> bool | None:
    """Tell whether configuration and tensors agree on tying; None if that is not known.

    `projection` is the output matrix, if it is another one than `data`; `is_tied` says whether the
    tensors themselves show that they are tied.
    """
    source, checkpoint, choice = selection.source, selection.checkpoint, selection.choice
    if checkpoint.tied is None or source.output is not None:
        return None
    if not checkpoint.tied:
        unsure = choice.has_unread_output or any(
            output_rank(tensor.name) is not None for tensor in choice.candidates
        )
        return None if projection is None and unsure and not is_tied else projection is not None
    silent = replace(checkpoint, tied=None)
    stored = choose(silent, tensor=choice.input.name, transpose=source.transpose)
    if stored.output is None:
        return None if stored.has_unread_output else True
    return _has_same_values(data, _read_rows(stored.output, stored.output_transposed, selection))
