"""From a path to an open checkpoint: folder, standard input, compressed or plain file.

Unpacked and piped content is in a scratch file, which lives as long as the checkpoint's tensors.
Messages name the file that the user named.
"""

import itertools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from embgeo.core.errors import EmbgeoError, WayOut
from embgeo.core.source import Source
from embgeo.io.bounded.compressed import MAX_BYTES, BoundedStream, codec_of
from embgeo.io.bounded.guard import (
    Damaged,
    Missing,
    cannot_read,
    list_short,
    reading,
    refuse,
    short,
    without_collection,
)
from embgeo.io.bounded.maps import Array, Bytes, map_file, path_of
from embgeo.io.bounded.scratch import ScratchFile, write_scratch
from embgeo.io.bounded.small_files import (
    COPY_IT,
    FOREIGN_LINK,
    HEAD_BYTES,
    is_foreign_link,
    is_plain_name,
    read_head,
)
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.convert.arrow import join_tables
from embgeo.io.foreign import refuse_unknown
from embgeo.io.formats import find_format, sharded
from embgeo.io.formats.format import Beside, Format, open_with
from embgeo.io.mapped import gguf, safetensors, torch_legacy, torch_zip
from embgeo.io.model import folder as model_folder
from embgeo.io.model.companions import read_parameters
from embgeo.io.model.facts import ModelFacts, read_facts
from embgeo.io.model.pieces import open_pieces, refuse_slice
from embgeo.io.remote.kept import KeptFolder
from embgeo.io.remote.needed import find_shards
from embgeo.io.remote.places import FILE_ENDINGS, SourcePlace, find_place
from embgeo.io.remote.source_record import bytes_text

#: Standard input on the command line, and in messages.
STDIN = "-"
_CALLED = Path("stdin")
#: Formats of files that a configuration beside them describes.
_OF_MODELS = (safetensors.NAME, torch_zip.NAME, torch_legacy.NAME, sharded.NAME)

_PIECE = 4 * 2**20
_LISTED = 6


@without_collection()
def open_checkpoint(path: Path | str) -> Checkpoint:
    """Open a file or model folder: read its headers, but no tensor.

    Parameters
    ----------
    path : Path or str
        A file in a format of :data:`embgeo.io.formats.FORMATS`, also compressed by gzip or zstd;
        ``"-"`` for stdin; a Hugging Face model folder; or a remote name (``hf://org/name``), of
        which the bytes are fetched that are read.

    Raises
    ------
    UnreadableFile
        A file that is missing, empty, damaged, hostile or of an unknown format.
    """
    place = find_place(path)
    return open_place(place, Source(path))


def open_place(place: SourcePlace, source: Source) -> Checkpoint:
    """Open what lies at a place; `source` says which shards of a remote model are needed."""
    if place.kept is not None:
        return _open_kept(place.kept, source)
    path = place.path
    if str(path) == STDIN:
        return _open_stdin()
    try:
        is_folder = path.is_dir()
    except OSError as error:  # a name that is too long, for instance
        raise cannot_read(path, error) from error
    if is_folder:
        found = model_folder.open_folder(path, _open_file, _is_known)
        return read_parameters(_refuse_lone_split(found.files[0], found))
    facts = _facts_beside(path)
    joined = open_pieces(path, facts, _open_file)
    found = joined or _open_file(path)
    if joined is None:
        _refuse_lone_split(path, found)
    if found.format in _OF_MODELS and found.facts == ModelFacts():
        found = replace(found, facts=facts)
    return read_parameters(found)


def _open_kept(kept: KeptFolder, source: Source) -> Checkpoint:
    """Open a remote model: read its headers, but no tensor.

    Of several shards only those are opened that may hold what `source` names, or the embedding,
    the output matrix and the final norm.
    """
    sizes = {name: one.size for name, one in kept.weights.items()}
    with kept.naming(), reading(kept.name, "model"):

        def is_known(name: str) -> bool:
            # Of other files not even the first bytes are fetched.
            head = (
                kept.open(name)[:HEAD_BYTES].tobytes() if Path(name).suffix in FILE_ENDINGS else b""
            )
            return codec_of(head) is not None or find_format(head) is not None

        def shards_of(name: str) -> set[str]:
            return {*sharded.read_weight_map(kept.open(name)).values()}

        names = [kept.chosen] if kept.chosen else []
        names = names or model_folder.choose_weights(sizes, is_known, shards_of)
        if not model_folder.is_one(names):
            raise _refuse_remote(kept, names)
        facts = read_facts(kept.folder)
        opened = [_open_remote(kept, name, source) for name in names]
        found = opened[0] if len(opened) == 1 else join_tables(kept.folder, opened)
        files = f"{len(found.files):,} files" if len(found.files) > 1 else "1 file"
        size = sum(kept.files[file.name].size for file in found.files)
        note = f"commit {kept.commit[:12]}: {bytes_text(size)} in {files}"
        found = replace(found, notes=(*found.notes, note))
        found = model_folder.describe_model(found, kept.folder, facts)
        return read_parameters(_refuse_lone_split(found.files[0], found))


def _refuse_remote(kept: KeptFolder, names: list[str]) -> Damaged:
    if not names:
        cause = "there are no weights of a language model"
        return Damaged(cause, "name the file that holds the matrix")
    listed = list_short(names, _LISTED)
    return Damaged(
        f"there are several files with tensors: {listed}",
        f"name one of them, as in {kept.name}/{names[0]}",
        [WayOut(f"{kept.name}/{name}") for name in names],
    )


def _open_remote(kept: KeptFolder, name: str, source: Source) -> Checkpoint:
    path, data = kept.folder / name, kept.open(name)
    refuse_slice(path)
    head = data[:HEAD_BYTES].tobytes()
    beside: Beside = _KeptFiles(kept, name)
    if not sharded.sniff(head):
        return _open_bytes(path, data, beside)
    with reading(path, sharded.NAME):
        weight_map = sharded.read_weight_map(data)
        shards = list(dict.fromkeys(weight_map.values()))
        for shard in shards:
            beside.open(shard)
        kept.indexes.append(name)
        index = json.dumps({"weight_map": find_shards(weight_map, source)}).encode()
    found = open_with(sharded, np.frombuffer(index, dtype=np.uint8), beside, path)
    notes = found.notes
    if len(found.holders) < len(shards):
        listed = f"{len(found.holders):,} of {len(shards):,} files are listed"
        notes = (*notes, f"{listed}: no others hold what is analyzed")
    return replace(found, files=tuple(map(path.with_name, shards)), notes=notes)


class _KeptFiles:
    """The remote folder of an opened file; a `Beside`."""

    def __init__(self, kept: KeptFolder, name: str) -> None:
        self._kept, self.name = kept, name

    def open(self, name: str, what: str = "shard") -> Bytes:
        if name not in self._kept.files:
            raise Missing(f"{what} {short(name)} of the index was not found", "check the model")
        return self._kept.open(name)

    def open_with(self, known: Format, name: str) -> Checkpoint:
        beside = _KeptFiles(self._kept, name)
        return open_with(known, self.open(name), beside, self._kept.folder / name)


def _refuse_lone_split(path: Path, found: Checkpoint) -> Checkpoint:
    """Refuse one file of a split GGUF under another name; others come back."""
    if found.facts.pieces > 1 and len(found.files) == 1 and gguf.NAME in found.format:
        raise refuse(
            path,
            f"is one of {found.facts.pieces} files of a split model",
            "name it as llama.cpp does, NAME-00001-of-00002.gguf, with the others next to it",
        )
    return found


def _facts_beside(path: Path) -> ModelFacts:
    """Return what the configuration beside a named file says; nothing if it cannot be read."""
    try:
        return read_facts(path.parent)
    except (EmbgeoError, OSError):
        return ModelFacts()


def open_as(known: Format, path: Path) -> Checkpoint:
    """Open a file on this machine as one of a format."""
    with reading(path, known.NAME):
        data = map_file(path)
    return open_with(known, data, _Folder(path), path)


class _Folder:
    """The folder of an opened file; a `Beside`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def name(self) -> str:
        return self._path.name

    def open(self, name: str, what: str = "shard") -> Bytes:
        return map_file(find_shard(self._path.parent, name, what))

    def open_with(self, known: Format, name: str) -> Checkpoint:
        return open_as(known, self._path.with_name(name))


def find_shard(folder: Path, name: str, what: str) -> Path:
    """Find the file that an index or other metadata in `folder` names."""
    if not is_plain_name(name):
        raise Damaged(f"the index names the {what} {short(name)}, which is not a plain file name")
    shard = folder / name
    if not shard.is_file():
        raise Missing(
            f"the {what} {short(name)} is missing",
            f"put every {what} that it names next to it",
        )
    if is_foreign_link(shard):
        raise Damaged(f"the {what} {shard.name} {FOREIGN_LINK}", COPY_IT)
    return shard


def _open_file(path: Path) -> Checkpoint:
    """Open a plain or a compressed file."""
    read_head(path)  # refuses what is no regular file, and an empty one
    with reading(path, "file"):
        data = map_file(path)
    return _open_bytes(path, data, _Folder(path))


def _open_bytes(path: Path, data: Bytes, beside: Beside) -> Checkpoint:
    """Open the content of a file, which errors call `path`."""
    head = data[:HEAD_BYTES].tobytes()
    codec = codec_of(head)
    if codec is None:
        return _open_plain(path, head, data, beside)
    with reading(path, f"{codec.name} file"), BoundedStream(path_of(data), codec) as source:
        head = source.read(HEAD_BYTES)
        if not head:
            raise Damaged("the file is empty", "write or download it again")
        pieces = itertools.chain([head], iter(lambda: source.read(_PIECE), b""))
        held = write_scratch(pieces, "its decompressed content")
    with _holding(held, path):
        found = _keep(held, _open_plain(path, head, map_file(held.path), beside))
    return replace(found, files=(path,), format=f"{found.format}, {codec.name}")


def _open_plain(path: Path, head: bytes, data: Bytes, beside: Beside) -> Checkpoint:
    known = find_format(head)
    if known is None:
        raise refuse_unknown(path, head)
    return open_with(known, data, beside, path)


@contextmanager
def _holding(held: ScratchFile, path: Path) -> Iterator[None]:
    """Remove a scratch file after an error, which names the user's file."""
    try:
        yield
    except EmbgeoError as error:
        held.remove()
        raise error.rename(str(held.path), str(path)) from error


def _keep(held: ScratchFile, checkpoint: Checkpoint) -> Checkpoint:
    """Let a scratch file live as long as the tensors in it."""

    def keep(tensor: Tensor) -> Tensor:
        opened = tensor.open

        def open_held(_held: ScratchFile = held) -> Array:
            return opened()

        return replace(tensor, open=open_held, ranges=None)

    return replace(checkpoint, tensors=tuple(map(keep, checkpoint.tensors)))


def _is_known(path: Path) -> bool:
    head = read_head(path)
    return codec_of(head) is not None or find_format(head) is not None


def _open_stdin() -> Checkpoint:
    with reading(_CALLED, "pipe"):
        held = write_scratch(_receive(), "what comes through stdin")
    with _holding(held, _CALLED):
        read_head(held.path)
        found = _open_bytes(_CALLED, map_file(held.path), _Folder(held.path))
    return replace(_keep(held, found), files=(held.path,))


def _receive() -> Iterator[bytes]:
    if sys.stdin is None or sys.stdin.isatty():
        raise Damaged("is not a pipe", "give a file name, or pipe a file into it")
    total = 0
    while piece := sys.stdin.buffer.read(_PIECE):
        total += len(piece)
        if total > MAX_BYTES:
            raise Damaged(f"gives more than {MAX_BYTES // 2**30} GiB", "save it as a file first")
        yield piece
