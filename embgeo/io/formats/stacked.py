"""Vectors that a file holds one by one, under their words, as one matrix."""

import re
from collections.abc import Sequence
from dataclasses import replace

from embgeo.files.maps import Array, count, number_type
from embgeo.files.scratch import fill_rows
from embgeo.files.small_files import safe_text
from embgeo.io.model.checkpoint import Checkpoint, Tensor

#: Fewer vectors of one length are a few parameters, no table.
FEWEST = 8
#: Names of arrays without names: ``numpy.savez(path, *rows)``, and lists.
_NUMBERED = re.compile(r"(?:arr_)?(\d{1,9})")
#: Norms and biases of a model are vectors of one length, too, and no table.
_PARAMETER = re.compile(r"(?i)(?:^|[./_:])(?:weight|bias|scale|gamma|beta|kernel|norm)(?::0)?$")


def stack_vectors(checkpoint: Checkpoint) -> Checkpoint:
    """Return the vectors of a file that holds nothing else as one matrix, labeled by their names.

    Vectors named by the numbers 0, 1, …, N−1 are put in this order, without labels.
    """
    vectors = checkpoint.tensors
    if len(vectors) < FEWEST or checkpoint.tokens is not None:
        return checkpoint
    shape, dtype = vectors[0].shape, vectors[0].dtype
    if len(shape) not in (1, 2) or count(shape[:-1]) != 1 or shape[-1] < 2:
        return checkpoint
    if any(t.shape != shape or t.dtype != dtype or _PARAMETER.search(t.name) for t in vectors):
        return checkpoint
    ordered = _in_order(vectors)
    note = f"{len(vectors):,} vectors that the file holds one by one are the rows of a matrix"
    return replace(
        checkpoint,
        tensors=(_matrix_of(ordered or vectors),),
        tokens=None if ordered else tuple(safe_text(vector.name) for vector in vectors),
        tokens_source="the names of the vectors",
        notes=(*checkpoint.notes, note),
    )


def _in_order(vectors: Sequence[Tensor]) -> list[Tensor] | None:
    found = {int(m[1]): v for v in vectors if (m := _NUMBERED.fullmatch(v.name))}
    places = range(len(vectors))
    return [found[place] for place in places] if found.keys() == set(places) else None


def _matrix_of(vectors: Sequence[Tensor]) -> Tensor:
    whole, dtype = (len(vectors), vectors[0].shape[-1]), vectors[0].dtype

    def stack() -> Array:
        return fill_rows((v.open().reshape(1, -1) for v in vectors), whole, number_type(dtype))

    return Tensor("vectors", whole, dtype, stack)
