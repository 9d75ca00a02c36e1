"""From a path to an open checkpoint: folder, standard input, compressed or plain file.

Unpacked and piped content is in a scratch file, which lives as long as the checkpoint's tensors.
Messages name the file that the user named.
"""

import itertools
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from embgeo.core.errors import EmbgeoError, UnreadableFile
from embgeo.core.source import Source
from embgeo.io.bounded.compressed import MAX_BYTES, BoundedStream, codec_of
from embgeo.io.bounded.guard import Damaged, cannot_read, reading, refuse, without_collection
from embgeo.io.bounded.maps import Array
from embgeo.io.bounded.scratch import ScratchFile, write_scratch
from embgeo.io.bounded.small_files import HEAD_BYTES, read_head
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.foreign import refuse_unknown
from embgeo.io.formats import find_format, sharded
from embgeo.io.formats.format import open_with
from embgeo.io.mapped import gguf, safetensors, torch_legacy, torch_zip
from embgeo.io.model import folder as model_folder
from embgeo.io.model.companions import read_parameters
from embgeo.io.model.facts import ModelFacts, read_facts
from embgeo.io.model.pieces import open_pieces
from embgeo.io.remote.names import as_written
from embgeo.io.remote.places import find_here, find_place

#: Standard input on the command line, and in messages.
STDIN = "-"
_CALLED = Path("stdin")
#: Formats of files that a configuration beside them describes.
_OF_MODELS = (safetensors.NAME, torch_zip.NAME, torch_legacy.NAME, sharded.NAME)

_PIECE = 4 * 2**20


@without_collection()
def open_checkpoint(path: Path | str) -> Checkpoint:
    """Open a file or model folder: read its headers, but no tensor.

    Parameters
    ----------
    path : Path or str
        A file in a format of :data:`embgeo.io.formats.FORMATS`, also compressed by gzip or zstd;
        ``"-"`` for stdin; or a Hugging Face model folder. Of a remote name (``hf://org/name``) the
        headers of safetensors files are fetched, and tensors cannot be opened; other files are
        fetched whole.

    Raises
    ------
    UnreadableFile
        A file that is missing, empty, damaged, hostile or of an unknown format.
    """
    if str(path) == STDIN:
        return _open_stdin()
    place = find_here(Source(path))
    if place is None:
        from embgeo.io.remote.fetching import open_headers

        headers = open_headers(as_written(path))
        if headers is not None:
            return headers
        place = find_place(Source(path))
    path = place.path
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


def _open_file(path: Path) -> Checkpoint:
    """Open a plain or a compressed file."""
    head = read_head(path)
    codec = codec_of(head)
    if codec is None:
        return _open_plain(path, head)
    with reading(path, f"{codec.name} file"), BoundedStream(path, codec) as source:
        head = source.read(HEAD_BYTES)
        if not head:
            raise Damaged("the file is empty", "write or download it again")
        pieces = itertools.chain([head], iter(lambda: source.read(_PIECE), b""))
        held = write_scratch(pieces, "its decompressed content")
    try:
        checkpoint = _open_plain(held.path, head)
    except EmbgeoError as error:
        held.remove()
        raise _rename_error(path, error, held) from error
    named = _rename_checkpoint(path, checkpoint, held)
    return replace(named, files=(path,), format=f"{checkpoint.format}, {codec.name}")


def _open_plain(path: Path, head: bytes) -> Checkpoint:
    known = find_format(head)
    if known is None:
        raise refuse_unknown(path, head)
    return open_with(known, path)


def _is_known(path: Path) -> bool:
    head = read_head(path)
    return codec_of(head) is not None or find_format(head) is not None


def _open_stdin() -> Checkpoint:
    with reading(_CALLED, "pipe"):
        held = write_scratch(_receive(), "what comes through stdin")
    try:
        checkpoint = _open_file(held.path)
    except EmbgeoError as error:
        held.remove()
        raise _rename_error(_CALLED, error, held) from error
    # A compressed file has a scratch file of its own; the piped bytes are hashed.
    return replace(_rename_checkpoint(_CALLED, checkpoint, held), files=(held.path,))


def _receive() -> Iterator[bytes]:
    if sys.stdin is None or sys.stdin.isatty():
        raise Damaged("is not a pipe", "give a file name, or pipe a file into it")
    total = 0
    while piece := sys.stdin.buffer.read(_PIECE):
        total += len(piece)
        if total > MAX_BYTES:
            raise Damaged(f"gives more than {MAX_BYTES // 2**30} GiB", "save it as a file first")
        yield piece


def _rename_checkpoint(path: Path, checkpoint: Checkpoint, held: ScratchFile) -> Checkpoint:
    """Replace the name of the scratch file `held` by that of `path`."""
    return replace(
        checkpoint,
        path=path,
        tensors=tuple(
            replace(t, open=partial(_open, t, held, path), ranges=None) for t in checkpoint.tensors
        ),
        tokens_source=checkpoint.tokens_source.replace(held.path.name, path.name),
        notes=tuple(note.replace(held.path.name, path.name) for note in checkpoint.notes),
    )


def _rename_error(path: Path, error: EmbgeoError, held: ScratchFile) -> UnreadableFile:
    """Make the error one about the file `path`."""

    def rename(text: str) -> str:
        return text.replace(str(held.path), str(path)).replace(held.path.name, path.name)

    named = UnreadableFile(rename(str(error)), ways_out=error.ways_out)
    # The arguments in the text are options on the command line.
    named.command_line_text = rename(error.command_line_text)
    return named


def _open(tensor: Tensor, held: ScratchFile, path: Path) -> Array:
    try:
        return tensor.open()
    except EmbgeoError as error:
        raise _rename_error(path, error, held) from error
