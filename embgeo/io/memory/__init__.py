"""Matrices from objects in memory: arrays, tensors, models, word vectors, tables.

No library is imported: an object of a library exists only if the library is loaded.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.core.errors import BadOption
from embgeo.core.matrix import Matrix, Origin
from embgeo.io.labels.counts_file import from_rank
from embgeo.io.memory.labeling import with_counts, with_tokens
from embgeo.io.memory.objects import (
    MatrixOfObject,
    find_in_dataframe,
    find_in_keyed_vectors,
    find_in_torch,
)
from embgeo.io.model.rows import has_usable_row

#: One function for each kind of object; it returns None for other kinds.
KINDS: tuple[Callable[[Any], MatrixOfObject | None], ...] = (
    find_in_torch,
    find_in_keyed_vectors,
    find_in_dataframe,
)


def as_matrix(
    W: Any,
    *,
    tokens: Any = None,
    counts: Any = None,
    rank_order: bool = False,
    hidden: Any = None,
) -> Matrix:
    """Return the embedding matrix of an object in memory.

    Parameters
    ----------
    W : Matrix, array, tensor, module, KeyedVectors or DataFrame
        A matrix with one row per token. A torch module gives its input embedding and, if the model
        is untied, its output matrix; gensim vectors also give tokens and counts, a DataFrame the
        labels of its rows.
    tokens : sequence of str, mapping of token to row, or tokenizer, optional
        A sequence labels every row. A mapping or a tokenizer (any object with ``get_vocab``) may
        omit rows, which are masked as padding. A tokenizer also names the special tokens.
    counts : array of N numbers, or mapping of token to count, optional
        How often each token occurs; a mapping needs tokens.
    rank_order : bool
        Rows are sorted by frequency, the most frequent token first; excludes `counts`.
    hidden : array or tensor, optional
        Hidden states of the model, one per row.

    Returns
    -------
    Matrix
        A view of the memory of `W` where its type allows it.

    Raises
    ------
    BadOption
        `W` holds no matrix, or `counts` are not whole numbers.
    LabelMismatch
        Tokens or counts do not match the rows.
    """
    matrix = W if isinstance(W, Matrix) else from_found(find(W))
    if tokens is not None:
        matrix = with_tokens(matrix, tokens)
    if rank_order and counts is not None:
        raise BadOption("counts and rank_order exclude each other")
    if rank_order:
        matrix = matrix.with_frequency(from_rank(matrix.n))
    elif counts is not None:
        matrix = with_counts(matrix, counts)
    if hidden is not None:
        matrix = replace(matrix, hidden=states_of(hidden))
    return matrix


def states_of(hidden: Any) -> Matrix:
    """Return the hidden states, one per row; a batch of texts is flattened to its positions."""
    if isinstance(hidden, Matrix):
        return hidden
    found = find(hidden)
    rows = found.rows
    if rows.ndim > 2:
        rows = rows.reshape(-1, rows.shape[-1])
    return from_found(replace(found, rows=rows, name="hidden", tokens=None, output=None))


def find(W: Any) -> MatrixOfObject:
    found = next((held for kind in KINDS if (held := kind(W)) is not None), None)
    return from_array(W) if found is None else found


def from_array(W: Any) -> MatrixOfObject:
    """Return a numpy array, or one of a library whose arrays numpy converts."""
    name = type(W).__name__
    if isinstance(W, str | bytes) or hasattr(W, "__fspath__"):
        raise BadOption(
            f"{W!r} is a name, not a matrix", way_out="embgeo.load(name) reads what it names"
        )
    if hasattr(W, "toarray"):
        raise BadOption(f"{name} is sparse", way_out="give .toarray() of it")
    if isinstance(W, np.ma.MaskedArray):
        W = np.ma.filled(W.astype(np.result_type(W.dtype, np.float32)), np.nan)
    try:
        rows = np.asarray(W)
    except Exception as error:  # the object's own conversion may raise anything
        raise BadOption(f"{name} gives no array ({type(error).__name__}: {error})") from error
    if rows.dtype.kind in "OUS":
        raise BadOption(f"{name} is not a matrix of numbers")
    return MatrixOfObject(rows)


def from_found(found: MatrixOfObject) -> Matrix:
    output, notes = None, found.notes
    if found.output is not None and not has_usable_row(found.output):
        notes += (f"{found.output_name} is left out: all of its rows are zero or not finite",)
    elif found.output is not None:
        output = Matrix(
            found.output, name="output", origin=Origin(tensor=found.output_name, format="array")
        )
    matrix = Matrix(
        found.rows,
        name=found.name or "W",
        tokens=found.tokens,
        output=output,
        origin=Origin(
            format=found.format,
            tensor=found.name,
            stored_shape=tuple(found.rows.shape),
            dtype=str(found.rows.dtype),
            reason=found.reason,
            tied_by=found.tied_by,
            notes=notes,
        ),
    )
    return matrix.with_frequency(found.frequency)
