"""Folders of ``torch.distributed.checkpoint``, without torch.

``.metadata`` is a pickle of dataclasses: for each tensor its type, shape and pieces, and for each
piece its file, offset and length. A piece is saved by ``torch.save``. A tensor in one piece is
mapped; several pieces are copied, beyond `scratch.MEMORY_BYTES` into a temporary file.
"""

from dataclasses import dataclass
from functools import partial

from embgeo.files.guard import Damaged, plain, short
from embgeo.files.maps import Array, Bytes, count, number_type, whole_numbers
from embgeo.files.zip_members import MAGICS
from embgeo.io.formats.format import Beside, Box, is_grid, join_grid
from embgeo.io.formats.pickle.loading import load
from embgeo.io.formats.pickle.objects import Global, KeyBox, Stub
from embgeo.io.formats.torch_tensors import DTYPES, TORCH
from embgeo.io.formats.torch_zip import saved_tensor
from embgeo.io.model.checkpoint import Checkpoint, Tensor, unreadable

NAME = "torch.distributed.checkpoint"
RECOGNIZED = "a folder with .metadata, a pickle of torch.distributed.checkpoint.metadata.Metadata"
READ = "tensors in one piece are mapped, others joined when opened; .metadata is read"
EXTRA = ""

METADATA = ".metadata"

_MODULES = (
    b"torch.distributed.checkpoint.metadata",
    b"torch.distributed._shard.checkpoint.metadata",
)
#: Limit over all tensors, which may share a list of pieces.
_MOST_PIECES = 1_000_000


def sniff(head: bytes) -> bool:
    return head[:1] == b"\x80" and any(module in head[:128] for module in _MODULES)


def open_checkpoint(data: Bytes, beside: Beside) -> Checkpoint:
    fields = _fields(load(data.data, TORCH), "Metadata")
    places, files = _places(beside, _dict_of(fields, "storage_data"))
    room = sum(map(len, files.values()))
    tensors: list[Tensor] = []
    pieces_left = _MOST_PIECES
    for name, entry in _dict_of(fields, "state_dict_metadata").items():
        if not isinstance(name, str):
            raise Damaged("the metadata name a tensor that is not a string")
        if not isinstance(entry, Stub) or not entry.name.endswith(".TensorStorageMetadata"):
            continue  # BytesStorageMetadata: an object of the training program
        listed = _fields(entry, "TensorStorageMetadata").get("chunks")
        pieces_left -= 1 + (len(listed) if isinstance(listed, (list, tuple)) else 0)
        if pieces_left < 0:
            raise Damaged("the metadata list implausibly many pieces")
        tensors.append(_tensor(name, entry, places, room))
    return Checkpoint(NAME, tuple(tensors), holders=tuple(files))


@dataclass(frozen=True, slots=True)
class _PiecePlace:
    file: str
    data: Bytes
    transformed: bool

    def open(self, shape: tuple[int, ...], dtype: str) -> Array:
        if self.data[:4].tobytes() != MAGICS[0]:
            raise Damaged(f"a piece in {self.file} was not written by torch.save")
        leaf = saved_tensor(self.data)
        if leaf.shape != shape or leaf.dtype != dtype:
            raise Damaged(f"a piece in {self.file} has another shape or type than promised")
        return leaf.open()


#: Places by name of the tensor and first element of the piece.
_Places = dict[tuple[str, tuple[int, ...]], _PiecePlace]


def _tensor(name: str, entry: Stub, places: _Places, room: int) -> Tensor:
    """Return the tensor of an entry of the metadata."""
    fields = _fields(entry, "TensorStorageMetadata")
    shape = whole_numbers(fields.get("size"), "a tensor's shape")
    dtype = _dtype(fields.get("properties"))
    if not dtype:
        return _cannot(name, shape, "is of a type that is not known")
    pieces: list[tuple[Box, _PiecePlace]] = []
    for first, part in _chunks(fields.get("chunks"), shape):
        place = places.get((name, first))
        if place is None:
            raise Damaged(f"a piece of {short(name)} is in no file")
        if place.transformed:
            return _cannot(name, shape, "has compressed pieces")
        pieces.append(((first, part), place))
    if not pieces and count(shape):
        raise Damaged(f"{short(name)} has no pieces")
    if len(pieces) > 1:
        _check_room(name, pieces, number_type(dtype).itemsize, room)
    if not is_grid([box for box, _ in pieces], shape):
        return _cannot(name, shape, "has pieces that do not fill it like the cells of a grid")
    parts = [(box, partial(place.open, box[1], dtype)) for box, place in pieces]
    opened = parts[0][1] if len(parts) == 1 else partial(join_grid, parts, shape, dtype)
    return Tensor(plain(name), shape, dtype, opened)


def _cannot(name: str, shape: tuple[int, ...], problem: str) -> Tensor:
    way_out = "convert it: python -m torch.distributed.checkpoint.format_utils dcp_to_torch IN OUT"
    return unreadable(plain(name), shape, "", problem, way_out)


def _chunks(value: object, shape: tuple[int, ...]) -> list[Box]:
    """Return the first element and the shape of each piece, without empty and repeated ones."""
    if not isinstance(value, (list, tuple)):
        raise Damaged("the metadata list no pieces of a tensor")
    chunks: dict[tuple[int, ...], tuple[int, ...]] = {}
    for chunk in value:
        fields = _fields(chunk, "ChunkStorageMetadata")
        first = whole_numbers(fields.get("offsets"), "the place of a piece")
        part = whole_numbers(fields.get("sizes"), "the shape of a piece")
        if not len(first) == len(part) == len(shape):
            raise Damaged("a piece has other dimensions than its tensor")
        if any(a + n > size for a, n, size in zip(first, part, shape, strict=True)):
            raise Damaged("a piece reaches beyond its tensor")
        if count(part):
            chunks.setdefault(first, part)
    return list(chunks.items())


def _check_room(name: str, pieces: list[tuple[Box, _PiecePlace]], item: int, room: int) -> None:
    """Refuse pieces that would take more memory than their bytes in the files."""
    sizes = [len(place.data) for _, place in pieces]
    if any(count(box[1]) * item > size for (box, _), size in zip(pieces, sizes, strict=True)):
        raise Damaged(f"a piece of {short(name)} is larger than the bytes that hold it")
    if sum(sizes) > room:
        raise Damaged(f"the pieces of {short(name)} use the same bytes over and over")


def _places(beside: Beside, storage: dict[object, object]) -> tuple[_Places, dict[str, Bytes]]:
    """Return the places of all pieces, and the files by name.

    Checks that the pieces are in them.
    """
    places: _Places = {}
    files: dict[str, Bytes] = {}
    for key, value in storage.items():
        index = _fields(key.value if isinstance(key, KeyBox) else key, "MetadataIndex")
        name, first = index.get("fqn"), index.get("offset")
        if first is None:
            continue  # not a tensor
        fields = _fields(value, "_StorageInfo")
        file = fields.get("relative_path")
        numbers = (fields.get("offset"), fields.get("length"))
        start, length = whole_numbers(numbers, "the place of a piece")
        if not isinstance(name, str) or not isinstance(file, str):
            raise Damaged("the metadata have a damaged list of pieces")
        if file not in files:
            files[file] = beside.open(file)
        if start + length > len(files[file]):
            raise Damaged(f"a piece lies outside of its file {short(file)}")
        transformed = bool(fields.get("transform_descriptors"))
        place = _PiecePlace(file, files[file][start : start + length], transformed)
        places[name, whole_numbers(first, "the place of a piece")] = place
    return places, files


def _dtype(properties: object) -> str:
    """Return the numpy name of the type; empty for unknown types."""
    states = properties.states if isinstance(properties, Stub) else []
    for state in states:
        value = state.get("dtype") if isinstance(state, dict) else state
        first = value[0] if isinstance(value, tuple) and value else value
        if isinstance(first, Global) and first.name.startswith("torch."):
            return DTYPES.get(first.name.removeprefix("torch."), "")
    return ""


def _dict_of(fields: dict[object, object], name: str) -> dict[object, object]:
    value = fields.get(name)
    if not isinstance(value, dict):
        raise Damaged("the metadata do not say what the checkpoint holds")
    return value


def _fields(value: object, cls: str) -> dict[object, object]:
    """Return the fields of a dataclass of this name."""
    if isinstance(value, Stub) and value.name.endswith(f".{cls}"):
        for state in value.states:
            if isinstance(state, dict):
                return state
    raise Damaged(f"the metadata lack a {cls}")
