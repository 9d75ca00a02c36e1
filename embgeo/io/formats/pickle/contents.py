"""A checkpoint from an unpickled object: its tensors, or its vectors stacked to a matrix."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from embgeo.files.compressed import MAX_RATIO, RATIO_FREE_BYTES
from embgeo.files.guard import Damaged
from embgeo.files.maps import TEXT, Array, number_type
from embgeo.io.formats.pickle.numpy_arrays import PickledArray
from embgeo.io.formats.pickle.objects import Leaf
from embgeo.io.formats.pickle.tree import walk
from embgeo.io.formats.stacked import is_vector, matrix_of, note_stacked
from embgeo.io.formats.word_lists import LOOKED_AT, are_words, tokens_for, word_list, word_lists
from embgeo.io.model.checkpoint import (
    FEWEST_VECTORS,
    SAVE_FLOATS,
    Checkpoint,
    Tensor,
    unreadable,
)

#: A tuple with a matrix and its words has no more entries.
_SHORT = 8
#: Key of the names of parameters in files of Paddle.
_PADDLE = "StructuredToParameterName@@"
_BFLOAT16 = "whole numbers of 16 bits are read as bfloat16, as Paddle writes them"


def checkpoint_of(root: object, size: int, name: str, *, way_out: str = "") -> Checkpoint:
    """Collect the arrays and tensors of an unpickled object, and the word lists next to them.

    `size` is that of the file, and `way_out` is for one without a tensor.
    """
    if (vectors := _open_vectors(root, size, name)) is not None:
        return vectors
    found = walk(root)
    tensors, notes = tensors_of(found.leaves), tuple[str, ...]()
    if isinstance(root, dict) and _PADDLE in root and any(t.dtype == "uint16" for t in tensors):
        tensors, notes = tuple(map(_as_bfloat16, tensors)), (_BFLOAT16,)
    if not tensors:
        raise Damaged("it holds no array of numbers and no tensor", way_out)
    vocabularies = [*found.vocabularies, *_walk_tuple(root)]
    tokens, source = tokens_for(tensors, vocabularies)
    return Checkpoint(
        name,
        tensors,
        tokens,
        source,
        notes=notes,
        vocabularies=word_lists(vocabularies),
    )


def _as_bfloat16(tensor: Tensor) -> Tensor:
    """Read a tensor of Paddle, which writes bfloat16 as whole numbers: numpy has no such type."""
    if tensor.dtype != "uint16":
        return tensor
    dtype = number_type("bfloat16")
    return replace(tensor, dtype="bfloat16", open=lambda: tensor.open().view(dtype))


def _open_vectors(root: object, size: int, name: str) -> Checkpoint | None:
    """Open the vectors of a dict or list that holds nothing else, as one matrix.

    The keys of a dict are its words, unless they are 0, 1, …, N−1.
    """
    keys, values = _entries(root)
    if len(values) < FEWEST_VECTORS:
        return None
    vectors = _stack_leaves(values) or _stack_lists(values)
    if vectors is None:
        return None
    # What is copied is bounded by the size of the file.
    if vectors.nbytes > max(RATIO_FREE_BYTES, MAX_RATIO * size):
        raise Damaged("its vectors use the same bytes over and over")
    words = None
    if keys is not None:
        words = word_list([str(key) if isinstance(key, (int, float)) else key for key in keys])
    source = "the keys of the vectors"
    return Checkpoint(name, (vectors,), words, source, notes=(note_stacked(len(values)),))


def _entries(root: object) -> tuple[list[object] | None, Sequence[object]]:
    """Return the keys and values of a dict; no keys for a list, and for keys 0, 1, …, N−1."""
    if isinstance(root, (list, tuple)):
        return None, root
    if not isinstance(root, dict):
        return None, ()
    numbers = [key for key in root if type(key) is int]
    if len(numbers) == len(root) and sorted(numbers) == list(range(len(root))):
        return None, [root[number] for number in range(len(root))]
    return list(root), list(root.values())


def _stack_leaves(values: Sequence[object]) -> Tensor | None:
    """Stack arrays or tensors of one shape, (d) or (1, d)."""
    first = values[0]
    if not isinstance(first, Leaf) or first.problem:
        return None
    shape, dtype = first.shape, first.dtype
    if not is_vector(shape):
        return None
    # Millions of entries may be the same few objects.
    distinct = {id(value): value for value in values}
    leaves = [value for value in distinct.values() if isinstance(value, Leaf) and not value.problem]
    if len(leaves) != len(distinct):
        return None
    if any(leaf.shape != shape or leaf.dtype != dtype for leaf in leaves):
        return None
    for leaf in leaves:
        leaf.check()

    def rows() -> Iterator[Array]:
        return (leaf.open() for leaf in values if isinstance(leaf, Leaf))

    return matrix_of(rows, len(values), shape[-1], number_type(dtype))


def _stack_lists(values: Sequence[object]) -> Tensor | None:
    first = values[0]
    if not isinstance(first, (list, tuple)) or len(first) < 2 or not _are_numbers(first):
        return None
    d = len(first)
    lists = [value for value in values if isinstance(value, (list, tuple)) and len(value) == d]
    if len(lists) != len(values) or all(type(number) is int for number in first):
        return None

    def row(place: int) -> Array:
        if not _are_numbers(lists[place]):
            raise Damaged(f"vector {place:,} holds something that is not a number")
        return np.array(lists[place], dtype=np.float64)

    return matrix_of(lambda: map(row, range(len(lists))), len(lists), d, np.dtype(np.float64))


def _are_numbers(values: Sequence[object]) -> bool:
    return all(type(value) in (float, int) for value in values)


def _walk_tuple(root: object) -> Iterator[tuple[str, object]]:
    """Yield lists and dicts in a tuple like ``(words, vectors)`` or ``(itos, stoi, vectors)``."""
    if isinstance(root, (list, tuple)) and len(root) <= _SHORT:
        for place, value in enumerate(root):
            if isinstance(value, (list, tuple, dict)) and len(value) > 1:
                yield f"entry {place}", value


def tensors_of(leaves: Iterable[tuple[str, Leaf]]) -> tuple[Tensor, ...]:
    """Make tensors of named leaves."""
    tensors: list[Tensor] = []
    first: dict[object, str] = {}
    for name, leaf in leaves:
        if leaf.problem:
            dtype = leaf.dtype
            if isinstance(leaf, PickledArray) and dtype == TEXT:
                dtype = TEXT if are_words(leaf.texts(LOOKED_AT)) else ""
            way_out = leaf.way_out or SAVE_FLOATS
            tensors.append(unreadable(name, leaf.shape, dtype, leaf.problem, way_out))
            continue
        leaf.check()
        alias = first.setdefault(leaf.key, name)
        shared = "" if alias == name else alias
        tensors.append(Tensor(name, leaf.shape, leaf.dtype, leaf.open, shared))
    return tuple(tensors)
