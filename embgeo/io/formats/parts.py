"""Checkpoints in several files of one folder, and tensors in several pieces."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from embgeo.io.bounded import companions, scratch
from embgeo.io.bounded.guard import Damaged, Missing, short
from embgeo.io.bounded.maps import Array, Bytes, count, map_file, number_type

#: Index of the first element of a piece, and its shape.
Box = tuple[tuple[int, ...], tuple[int, ...]]


def is_grid(boxes: Sequence[Box], shape: tuple[int, ...]) -> bool:
    """Tell whether the boxes are the cells of a grid, so that each element is in exactly one."""
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


def join_grid(
    pieces: Iterable[tuple[Box, Callable[[], Array]]],
    shape: tuple[int, ...],
    dtype: str,
) -> Array:
    """Return the read-only tensor of pieces that make up a grid.

    A large one is in a temporary file.
    """
    whole: Array = scratch.empty(shape, number_type(dtype))
    for (first, part), read in pieces:
        whole[tuple(slice(a, a + n) for a, n in zip(first, part, strict=True))] = read()
    whole.flags.writeable = False
    return whole


class SideFiles:
    """Files next to a checkpoint that hold its tensors; `what` names them in errors."""

    def __init__(self, folder: Path, what: str) -> None:
        self.paths: dict[str, Path] = {}
        self._maps: dict[str, Bytes] = {}
        self._folder, self._what = folder, what

    def read(self, name: str, start: int, end: int, label: str) -> Bytes:
        """Map bytes `start` to `end` of a file; `label` names the tensor in errors."""
        if name not in self._maps:
            self.paths[name] = find_shard(self._folder, name, self._what)
            self._maps[name] = map_file(self.paths[name])
        if end > len(self._maps[name]):
            raise Damaged(f"{label} reaches beyond the end of {short(name)}")
        return self._maps[name][start:end]

    @property
    def size(self) -> int:
        return sum(map(len, self._maps.values()))


def find_shard(folder: Path, name: str, what: str = "shard") -> Path:
    """Find the file that an index or other metadata in `folder` names."""
    if not companions.is_plain_name(name):
        raise Damaged(f"the index names the {what} {short(name)}, which is not a plain file name")
    shard = folder / name
    if not shard.is_file():
        raise Missing(
            f"the {what} {short(name)} is missing",
            f"put every {what} that the index names next to it",
        )
    if companions.is_foreign_link(shard):
        raise Damaged(f"the {what} {shard.name} {companions.FOREIGN_LINK}", companions.COPY_IT)
    return shard
