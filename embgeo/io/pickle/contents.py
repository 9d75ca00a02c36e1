"""A checkpoint from an unpickled object: its tensors, and what labels their rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from embgeo.io.bounded.guard import GET_AGAIN, Damaged, guarded
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.labels.word_lists import tokens_for, word_lists
from embgeo.io.pickle.pickle_tensors import tensors_of
from embgeo.io.pickle.stacked_rows import Rows, rows_of
from embgeo.io.pickle.tree import walk

_SAVE_DENSE = "save it as a dense tensor of floating-point numbers"
#: A tuple with a matrix and its words has no more entries.
_SHORT = 8


def checkpoint_of(
    root: object, path: Path, name: str, *, constants: object = None, way_out: str = GET_AGAIN
) -> Checkpoint:
    """Every array and tensor of an unpickled object, and the word lists beside them.

    Parameters
    ----------
    root : object
    path : Path
    name : str
        Of the format.
    constants : object
        A second object, whose tensors come under ``constants``.
    way_out : str
        Of the error for a file without a tensor.

    Raises
    ------
    Damaged
        Nothing that can be read.
    """
    rows = rows_of(root, path) if constants is None else None
    if rows is not None:
        return _of_rows(rows, path, name)
    found = walk(root)
    leaves = found.leaves
    if constants is not None:
        leaves = leaves + walk({"constants": constants}).leaves
    tensors, notes = tensors_of(leaves, path, name)
    if not tensors:
        if notes:
            raise Damaged(f"it holds no tensor that can be read: {notes[0]}", _SAVE_DENSE)
        raise Damaged("it holds no array of numbers and no tensor", way_out)
    vocabularies = [*found.vocabularies, *_beside(root)]
    tokens, source = tokens_for(tensors, vocabularies)
    return Checkpoint(
        path,
        name,
        tensors,
        (path,),
        tokens,
        source,
        notes=notes,
        vocabularies=word_lists(vocabularies),
    )


def _of_rows(rows: Rows, path: Path, name: str) -> Checkpoint:
    n, _ = rows.shape
    tensor = Tensor("vectors", rows.shape, rows.dtype, guarded(path, name, rows.open))
    return Checkpoint(
        path,
        name,
        (tensor,),
        (path,),
        rows.words,
        "the words under which the vectors stand" if rows.words else "",
        notes=(f"{n:,} vectors that the file holds one by one are the rows of a matrix",),
    )


def _beside(root: object) -> Iterator[tuple[str, object]]:
    """Lists and dicts in a tuple: ``(words, vectors)``, or ``(itos, stoi, vectors, dim)``."""
    if isinstance(root, (list, tuple)) and len(root) <= _SHORT:
        for place, value in enumerate(root):
            if isinstance(value, (list, tuple, dict)) and len(value) > 1:
                yield f"entry {place}", value
