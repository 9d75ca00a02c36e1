"""From a path and its options to a matrix: open, select, label, count, build, in this order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from embgeo.core.matrix import Matrix
from embgeo.core.source import RowRange, Source
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


def load(
    path: Path | str,
    *,
    tensor: str | None = None,
    output: str | None = None,
    rows: RowRange = None,
    transpose: bool = False,
    tokens: Path | str | None = None,
    counts: Path | str | None = None,
    corpus: Path | str | None = None,
    rank_order: bool = False,
    padding: str = "auto",
    hidden: Path | str | None = None,
    hidden_tensor: str | None = None,
    hash_file: bool = True,
    progress: ByteProgress | None = None,
) -> Matrix:
    """Load an embedding matrix, and the output projection of an untied model.

    Parameters
    ----------
    path : Path or str
        Checkpoint, file of vectors, or Hugging Face model folder; its format is recognized by
        its bytes. Also what :func:`open_checkpoint` takes besides these.
    tensor : str, optional
        Name of the embedding matrix, in place of the choice by name and shape.
    output : str, optional
        Name of the output projection; ``"none"`` leaves it out.
    rows : str or tuple of two ints, optional
        ``"A:B"`` or (A, B): only these rows, counted from 0, B excluded. The cut comes before
        labels are laid along the rows.
    transpose : bool
        Words are the columns of the embedding matrix.
    tokens : Path or str, optional
        A file of labels, one for each row (of the cut, or of the whole matrix), or a tokenizer's
        own file; counts that it carries are used where no others are named.
    counts : Path or str, optional
        A file of tokens with their counts, matched by token; where the matrix has no labels and
        the file has one entry for each row, it labels them in its order.
    corpus : Path or str, optional
        A text, or a folder of them, whose tokens are counted: by the model's own tokenizer where
        there is one and the package that runs it is installed (``embgeo[hf]``), else by words
        between white space. :attr:`Frequency.source` says which.
    rank_order : bool
        The rows are sorted by frequency, the most frequent token first.
    padding : {"auto", "mask", "keep"}
        Rows beyond the vocabulary: "auto" masks them if the labels came with the model and
        refuses a `tokens` file of another length, "mask" masks them for such a file too, "keep"
        keeps them.
    hidden : Path or str, optional
        A file with hidden states of the model, one a row, in any format; `hidden_tensor` names
        the tensor where the file holds several. Of arrays with more axes, such as (batch, time,
        d), all but the last are rows.
    hash_file : bool
        Whether to compute the SHA-256 of the files for the provenance.
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
    options: dict[str, Any] = locals().copy()  # the parameters are the fields of Source
    del options["progress"]
    return open_source(Source(**options), progress)


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
