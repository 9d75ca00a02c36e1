"""From a path and its options to a matrix: open, select, label, count, build, in this order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from embgeo.core.matrix import Matrix
from embgeo.core.source import Source, with_source_options
from embgeo.io.building import build_matrix
from embgeo.io.checkpoint import Checkpoint
from embgeo.io.choosing import EMBEDDING, TensorRole
from embgeo.io.counting import count_rows
from embgeo.io.final_norm import find_final_norm
from embgeo.io.hidden_states import HIDDEN_STATES, flatten, shape_note
from embgeo.io.labeling import label_rows
from embgeo.io.labels.corpus_text import ByteProgress
from embgeo.io.opening import open_checkpoint
from embgeo.io.selecting import select


@with_source_options
def load(path: Path | str, *, progress: ByteProgress | None = None, **options: Any) -> Matrix:
    """Load an embedding matrix, and the output projection of an untied model.

    Parameters
    ----------
    path : Path or str
        Checkpoint, file of vectors, or Hugging Face model folder; its format is recognized by
        its bytes. Also what :func:`open_checkpoint` takes besides these.
    **options
    progress : callable, optional
        ``progress(done, total)`` hears how many bytes of the corpus are read, and of how many; 0
        of them where the corpus is compressed.

    Returns
    -------
    Matrix
        Usually over a map of the file, not a copy.

    Raises
    ------
    UnreadableFile, AmbiguousTensor, LabelMismatch, BadOption
        Each with the cause and the way out, before anything is computed.
    """
    return open_source(Source(path, **options), progress)


def open_source(source: Source, progress: ByteProgress | None = None) -> Matrix:
    """The matrix that a source describes; :func:`load` with its options in one value.

    Parameters
    ----------
    source : Source
    progress : callable, optional

    Raises
    ------
    UnreadableFile, AmbiguousTensor, LabelMismatch, BadOption
    """
    source.check()
    checkpoint = open_checkpoint(source.path)
    matrix = read_matrix(checkpoint, source, progress)
    matrix = replace(matrix, final_norm=find_final_norm(checkpoint, matrix.d))
    return matrix if source.hidden is None else _with_hidden_states(matrix, source)


def read_matrix(
    checkpoint: Checkpoint,
    source: Source,
    progress: ByteProgress | None = None,
    role: TensorRole = EMBEDDING,
) -> Matrix:
    """The matrix that a source selects from an open checkpoint.

    Labels and counts are lined up with the rows before any tensor is read.

    Raises
    ------
    EmbgeoError
    """
    selection = select(checkpoint, source, role)
    labeling = label_rows(selection)
    counting = count_rows(selection, labeling, progress)
    return build_matrix(selection, labeling, counting)


def _with_hidden_states(matrix: Matrix, source: Source) -> Matrix:
    assert source.hidden is not None
    checkpoint = open_checkpoint(source.hidden)
    of_states = Source(
        source.hidden, tensor=source.hidden_tensor, output="none", hash_file=source.hash_file
    )
    states = read_matrix(flatten(checkpoint), of_states, role=HIDDEN_STATES)
    notes = (*matrix.origin.notes, *shape_note(checkpoint, states))
    return replace(matrix, hidden=states, origin=replace(matrix.origin, notes=notes))
