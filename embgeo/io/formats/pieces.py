"""Tensors that are stored in pieces, each of them a box of the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from embgeo.io.bounded import scratch
from embgeo.io.bounded.maps import Array, count, number_type

#: The first element of a piece, and its shape.
Box = tuple[tuple[int, ...], tuple[int, ...]]


def fill(boxes: Sequence[Box], shape: tuple[int, ...]) -> bool:
    """Whether the boxes are the fields of a grid: every element is in exactly one of them."""
    if not count(shape):
        return not boxes
    if not boxes or any(not len(first) == len(part) == len(shape) for first, part in boxes):
        return False
    fields = 1
    for axis, size in enumerate(shape):
        starts = sorted({first[axis] for first, _ in boxes})
        ends = dict(zip(starts, [*starts[1:], size], strict=True))
        if starts[0] != 0:
            return False
        if any(first[axis] + part[axis] != ends[first[axis]] for first, part in boxes):
            return False
        fields *= len(starts)
    return fields == len(boxes)


def put_together(
    pieces: Iterable[tuple[Box, Callable[[], Array]]],
    shape: tuple[int, ...],
    dtype: str,
    path: Path,
) -> Array:
    """The whole, read-only; beyond `scratch.MEMORY_BYTES` in a temporary file.

    Parameters
    ----------
    pieces : iterable of (box, callable)
        What each box holds; together they :func:`fill` the shape.
    shape : tuple of int
    dtype : str
    path : Path
        Named where there is no room.
    """
    whole: Array = scratch.empty(shape, path, number_type(dtype))
    for (first, part), read in pieces:
        whole[tuple(slice(a, a + n) for a, n in zip(first, part, strict=True))] = read()
    whole.flags.writeable = False
    return whole
