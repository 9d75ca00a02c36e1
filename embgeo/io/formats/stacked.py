"""Vectors that a file holds one by one, under their words, as one matrix."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.files.maps import Array, count, number_type
from embgeo.files.scratch import fill_rows
from embgeo.files.small_files import safe_text
from embgeo.io.model.checkpoint import FEWEST_VECTORS, Checkpoint, Tensor

#: Names of arrays without names: ``numpy.savez(path, *rows)``, and lists.
_NUMBERED = re.compile(r"(?:arr_)?(\d{1,9})")
#: Norms and biases of a model are vectors of one length, too, and no table.
_PARAMETER = re.compile(r"(?i)(?:^|[./_:])(?:weight|bias|scale|gamma|beta|kernel|norm)(?::0)?$")


def stack_vectors(checkpoint: Checkpoint) -> Checkpoint:
    """Return the vectors of a file that holds nothing else as one matrix, labeled by their names.

    Vectors named by the numbers 0, 1, …, N−1 are put in this order, without labels.
    """
    vectors = checkpoint.tensors
    if len(vectors) < FEWEST_VECTORS or checkpoint.tokens is not None:
        return checkpoint
    shape, dtype = vectors[0].shape, vectors[0].dtype
    if not is_vector(shape):
        return checkpoint
    if any(t.shape != shape or t.dtype != dtype or _PARAMETER.search(t.name) for t in vectors):
        return checkpoint
    ordered = _in_order(vectors)
    rows = ordered or vectors

    def opened() -> Iterator[Array]:
        return (vector.open() for vector in rows)

    return replace(
        checkpoint,
        tensors=(matrix_of(opened, len(rows), shape[-1], number_type(dtype)),),
        tokens=None if ordered else tuple(safe_text(vector.name) for vector in vectors),
        tokens_source="the names of the vectors",
        notes=(*checkpoint.notes, note_stacked(len(vectors))),
    )


def is_vector(shape: tuple[int, ...]) -> bool:
    """Tell whether an array, (d) or (1, d), may be a row of a matrix."""
    return len(shape) in (1, 2) and count(shape[:-1]) == 1 and shape[-1] >= 2


def note_stacked(n: int) -> str:
    return f"{n:,} vectors that the file holds one by one are the rows of a matrix"


def _in_order(vectors: Sequence[Tensor]) -> list[Tensor] | None:
    found = {int(m[1]): v for v in vectors if (m := _NUMBERED.fullmatch(v.name))}
    places = range(len(vectors))
    return [found[place] for place in places] if found.keys() == set(places) else None


def matrix_of(rows: Callable[[], Iterable[Array]], n: int, d: int, dtype: np.dtype[Any]) -> Tensor:
    """Return the matrix of n vectors, which `rows` opens one after the other."""

    def stack() -> Array:
        return fill_rows((row.reshape(1, -1) for row in rows()), (n, d), dtype)

    return Tensor("vectors", (n, d), dtype.name, stack)
