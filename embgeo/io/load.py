"""From a path, a name or an address to a matrix: open, select, label and count, build.

This module alone knows paths, options and errors: formats get bytes, and the choice gets a
checkpoint. Messages name the file that the user named; unpacked and piped content is in a scratch
file, which lives as long as the checkpoint's tensors.
"""

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from embgeo.core.errors import EmbgeoError, WayOut
from embgeo.core.matrix import Matrix
from embgeo.core.source import Padding, RowRange, Source
from embgeo.files.compressed import MAX_BYTES, BoundedStream, codec_of
from embgeo.files.guard import (
    Damaged,
    Missing,
    cannot_read,
    list_short,
    reading,
    refuse,
    short,
    without_collection,
)
from embgeo.files.maps import Array, Bytes, count, map_file, path_of
from embgeo.files.scratch import ScratchFile, write_scratch
from embgeo.files.small_files import (
    COPY_IT,
    FOREIGN_LINK,
    HEAD_BYTES,
    is_foreign_link,
    is_plain_name,
    read_head,
)
from embgeo.io.building import build_matrix
from embgeo.io.formats import (
    find_format,
    gguf,
    model_folder,
    safetensors,
    sharded,
    torch_legacy,
    torch_zip,
)
from embgeo.io.formats.arrow import join_tables
from embgeo.io.formats.foreign import refuse_unknown
from embgeo.io.formats.format import Beside, Format, open_with
from embgeo.io.formats.pieces import open_pieces, refuse_slice
from embgeo.io.labels.corpus_text import ByteProgress
from embgeo.io.model.checkpoint import Checkpoint, Tensor
from embgeo.io.model.companions import read_parameters
from embgeo.io.model.facts import ModelFacts, read_facts
from embgeo.io.model.final_norm import find_final_norm
from embgeo.io.model.input import EMBEDDING, TensorRole
from embgeo.io.places.finding import FILE_ENDINGS, SourcePlace, find_place
from embgeo.io.places.kept import KeptFolder
from embgeo.io.places.needed import find_shards
from embgeo.io.places.reduced import check_plan, reduce_model
from embgeo.io.places.source_record import bytes_text, source_note
from embgeo.io.selecting import Selection, count_rows, label_rows, select

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


HIDDEN_STATES = TensorRole(
    "hidden_tensor",
    "the hidden states",
    "hidden states are an array whose last axis is as wide as the embedding",
)


def flatten(checkpoint: Checkpoint) -> Checkpoint:
    """Reshape tensors to matrices: all axes but the last become one."""

    def flatten_tensor(tensor: Tensor) -> Tensor:
        if len(tensor.shape) < 3:
            return tensor
        shape = (count(tensor.shape[:-1]), tensor.shape[-1])
        return replace(tensor, shape=shape, open=lambda: tensor.open().reshape(shape))

    return replace(checkpoint, tensors=tuple(map(flatten_tensor, checkpoint.tensors)))


def shape_note(checkpoint: Checkpoint, states: Matrix) -> tuple[str, ...]:
    """Return a note on hidden states that are stored with more than two axes."""
    stored = next(t for t in checkpoint.stored if t.name == states.origin.tensor)
    if len(stored.shape) == 2:
        return ()
    shape = "×".join(f"{size:,}" for size in stored.shape)
    named = f" of {short(stored.name)}" if stored.name else ""
    return (f"the {shape} hidden states{named} are read as {states.n:,} rows",)


def load(
    path: Path | str,
    *,
    tensor: str | None = None,
    output: str | None = None,
    rows: RowRange = None,
    transpose: bool = False,
    tokens: Path | str | None = None,
    counts: Path | str | None = None,
    corpus: Path | str | None = None,
    rank_order: bool = False,
    padding: Padding = "auto",
    check_reachable: bool = False,
    hidden: Path | str | None = None,
    hidden_tensor: str | None = None,
    max_download: str | None = None,
    hash_file: bool = True,
    progress: ByteProgress | None = None,
) -> Matrix:
    """Load an embedding matrix, and the output matrix of an untied model.

    Parameters
    ----------
    path : Path or str
        Checkpoint, file of vectors, or Hugging Face model folder, recognized by its bytes; see
        :func:`open_checkpoint` for more. ``hf://org/name`` or the URL of an object store fetches
        no more than is read; ``org/name`` is a model in the Hub's cache.
    tensor : str, optional
        Name of the embedding tensor; see: embgeo inspect. By default it is chosen by name and
        shape.
    output : str, optional
        Name of the output matrix of an untied model; none leaves it out.
    rows : str or tuple, optional
        Rows to analyze: ``"A:B"`` or (A, B), counted from 0, B excluded. Rows are cut before they
        are labeled.
    transpose : bool
        Whether tokens are columns in the file.
    tokens : Path or str, optional
        Token labels, one a row (txt, tsv, json), or a tokenizer's file; none: no labels. One label
        for each row of the range, or of the whole matrix. Counts in the file are used unless other
        frequencies are given.
    counts : Path or str, optional
        Token counts (tsv, or json {token: count}). Matched by token. If the rows have no labels and
        the file has an entry for each row, its tokens label the rows in order.
    corpus : Path or str, optional
        Text, or a folder of texts, whose tokens are counted. Text is cut by the model's tokenizer
        if there is one and its package is installed (``embgeo[hf]``), else at white space.
        :attr:`Frequency.source` says which.
    rank_order : bool
        Whether rows are sorted by frequency, most frequent first.
    padding : {"auto", "mask", "keep"}
        Rows beyond the vocabulary: mask them, keep them, or mask them only when the model itself
        brings the vocabulary. "auto" refuses a `tokens` file of another length; "mask" masks the
        rows that a shorter one does not label.
    check_reachable : bool
        Find unreachable tokens: decode each with the model's tokenizer.json and encode it again.
        Needs the package tokenizers, and takes seconds for large vocabularies.
    hidden : Path or str, optional
        Hidden states of the model, one a row, in any format. An array with more axes, such as
        (batch, time, d), is flattened to rows.
    hidden_tensor : str, optional
        Name of the tensor that holds them. Required if the file of hidden states holds several.
    max_download : str, optional
        Most bytes to fetch of a remote model, such as 2GB or 640MiB.
    hash_file : bool
        Whether the SHA-256 of the files goes into the provenance.
    progress : callable, optional
        Called as ``progress(done, total)`` with bytes of the corpus; `total` is 0 if the corpus is
        compressed.

    Returns
    -------
    Matrix
        Usually a map of the file, not a copy.

    Raises
    ------
    UnreadableFile, AmbiguousTensor, LabelMismatch, BadOption
        One line with cause and way out, before anything is computed.
    """
    options = locals() | {}  # by name; nothing else is local yet
    del options["progress"]
    return open_source(Source(**options), progress)


def open_source(
    source: Source, progress: ByteProgress | None = None, *, on_demand: bool = False
) -> Matrix:
    """Load the matrix of a source; see :func:`load`.

    Parameters
    ----------
    source : Source
    progress : callable, optional
    on_demand : bool
        Whether rows that have to be decoded are read when they are needed.
    """
    checkpoint, matrix = _open_and_read(source, progress, on_demand=on_demand)
    matrix = replace(matrix, final_norm=find_final_norm(checkpoint, matrix.d))
    return matrix if source.hidden is None else _with_hidden_states(matrix, source)


def _open_and_read(
    source: Source,
    progress: ByteProgress | None = None,
    role: TensorRole = EMBEDDING,
    prepare: Callable[[Checkpoint], Checkpoint] | None = None,
    *,
    on_demand: bool = False,
) -> tuple[Checkpoint, Matrix]:
    """Read the matrix of a source, wherever it lies; `prepare` changes what was opened."""
    place = find_place(source.path)
    with nullcontext() if place.kept is None else place.kept.naming():
        if place.kept is not None:
            place.kept.most = source.most_bytes
        checkpoint = open_place(place, source)
        if prepare is not None:
            checkpoint = prepare(checkpoint)
        selection = select(checkpoint, source, role)
        if place.kept is not None:
            selection = _plan(place.kept, selection)
        notes = (*selection.checkpoint.notes, *filter(None, [place.note]))
        selection = replace(
            selection,
            source=replace(source, path=place.given),
            checkpoint=replace(selection.checkpoint, notes=notes),
        )
        matrix = _build(selection, progress, on_demand=on_demand)
    return checkpoint, _rename(matrix, place.name) if place.name else matrix


def _plan(kept: KeptFolder, selection: Selection) -> Selection:
    """Refuse to fetch too much; add a note on what is read of the model, and its digest."""
    checkpoint = selection.checkpoint
    reduced = reduce_model(kept, checkpoint, selection.choice)
    check_plan(reduced, checkpoint, selection.choice)
    if kept.whole:  # their content is hashed as that of other files
        checkpoint = replace(checkpoint, files=tuple(kept.whole.values()))
    else:
        read = min(reduced.read, reduced.size)
        note = source_note(kept.name, kept.commit, read, reduced.size)
        notes = (*checkpoint.notes, note)
        checkpoint = replace(checkpoint, files=(), digest=reduced.digest, notes=notes)
    return replace(selection, checkpoint=checkpoint)


def _rename(matrix: Matrix, name: str) -> Matrix:
    output = matrix.output
    if output is not None:
        output = replace(output, name=f"{name} (output)")
    return replace(matrix, name=name, output=output)


def read_matrix(
    checkpoint: Checkpoint,
    source: Source,
    progress: ByteProgress | None = None,
    role: TensorRole = EMBEDDING,
    *,
    on_demand: bool = False,
) -> Matrix:
    """Read the matrix that a source selects; checks labels and counts before it reads a tensor."""
    return _build(select(checkpoint, source, role), progress, on_demand=on_demand)


def _build(selection: Selection, progress: ByteProgress | None, *, on_demand: bool) -> Matrix:
    labeling = count_rows(selection, label_rows(selection), progress)
    return build_matrix(selection, labeling, on_demand=on_demand)


def _with_hidden_states(matrix: Matrix, source: Source) -> Matrix:
    assert source.hidden is not None
    of_states = Source(
        source.hidden,
        tensor=source.hidden_tensor,
        output="none",
        max_download=source.max_download,
        hash_file=source.hash_file,
    )
    opened, states = _open_and_read(of_states, role=HIDDEN_STATES, prepare=flatten)
    notes = (*matrix.origin.notes, *shape_note(opened, states))
    return replace(matrix, hidden=states, origin=replace(matrix.origin, notes=notes))
