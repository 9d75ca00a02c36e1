"""From a path, a name or an address to a matrix: open, choose, label and count, read.

This module alone knows paths, options and errors: formats get bytes, and the choice gets a
checkpoint. Messages name the file that the user named; unpacked and piped content is in a scratch
file, which lives as long as the checkpoint's tensors.
"""

import hashlib
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from embgeo.core.errors import EmbgeoError, UnreadableFile, WayOut
from embgeo.core.matrix import FileStamp, Matrix, Origin
from embgeo.core.options import known_arguments
from embgeo.core.source import Padding, RowRange, Source
from embgeo.core.special import cut_special, place_special
from embgeo.files.compressed import MAX_BYTES, BoundedStream, codec_of
from embgeo.files.guard import (
    Damaged,
    cannot_read,
    list_short,
    reading,
    refuse,
    short,
    without_collection,
)
from embgeo.files.links import FOREIGN_LINK, is_foreign_link
from embgeo.files.maps import Array, Bytes, count, map_file, stamp_of
from embgeo.files.scratch import ScratchFile, write_scratch
from embgeo.files.small_files import HEAD_BYTES, read_head, safe_text
from embgeo.io.formats import find_format, safetensors, sharded, torch_legacy, torch_zip
from embgeo.io.formats.arrow import is_dataset, join_tables
from embgeo.io.formats.foreign import refuse_files, refuse_folder, refuse_unknown
from embgeo.io.formats.format import Beside, Folder, Format, open_with
from embgeo.io.formats.model_folder import (
    NAME,
    OF_OPTIMIZER,
    choose_weights,
    holds_weights,
    note_other_weights,
    order_folders,
)
from embgeo.io.formats.pieces import are_shards, open_pieces, refuse_slice
from embgeo.io.labels.corpus_text import ByteProgress
from embgeo.io.labels.matrix_labels import (
    Labeling,
    Selection,
    count_rows,
    find_doubt,
    label_rows,
    lay_counts,
)
from embgeo.io.labels.model_folder import label_model
from embgeo.io.labels.rows import PADDING_REASON
from embgeo.io.labels.tokenizer_runs import NotUsable, find_unreachable
from embgeo.io.model.checkpoint import Checkpoint, Tensor
from embgeo.io.model.choice import EMBEDDING, TensorRole, choose
from embgeo.io.model.companions import read_parameters
from embgeo.io.model.facts import ModelFacts
from embgeo.io.model.final_norm import find_final_norm
from embgeo.io.model.names import input_rank, kind_of, layer_of, output_rank
from embgeo.io.model.rows import (
    is_tied_as_configured,
    note_copies,
    parse_rows,
    read_output,
    read_rows,
)
from embgeo.io.places.finding import FILE_ENDINGS, SourcePlace, find_place
from embgeo.io.places.kept import KeptFolder
from embgeo.io.places.local import LocalFolder, read_facts
from embgeo.io.places.needed import find_shards
from embgeo.io.places.reduced import check_plan, reduce_model
from embgeo.io.places.source_record import bytes_text, read_source, source_note

#: Standard input on the command line, and in messages.
STDIN = "-"
_CALLED = Path("stdin")
#: Formats of files that a configuration beside them describes.
_OF_MODELS = (safetensors, torch_zip, torch_legacy, sharded)
#: Reason for masking rows of the output that the model does not have.
WITHOUT_OUTPUT = "without a row in the output matrix"

_PIECE = 4 * 2**20


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
    return open_place(find_place(path), Source(path))


def open_place(place: SourcePlace, source: Source) -> Checkpoint:
    """Open what lies at a place: a file, or the weights of a folder, here or elsewhere.

    Of a remote model in several shards only those are opened that may hold what `source` names, or
    the embedding, the output matrix and the final norm.
    """
    kept, path = place.kept, place.path
    if kept is not None:
        with kept.naming(), reading(kept.name, "model"):
            return _open_model(kept, kept.chosen, source)
    if str(path) == STDIN:
        return _open_stdin()
    try:
        is_folder = path.is_dir()
    except OSError as error:  # a name that is too long, for instance
        raise cannot_read(path, error) from error
    if is_folder:
        with reading(path, NAME):
            return _open_model(LocalFolder(path), "", source)
    return _open_model(LocalFolder(path.parent, path.name), path.name, source)


def _open_model(folder: Folder, chosen: str, source: Source) -> Checkpoint:
    """Open the file `chosen` of a folder; if it is empty, the weights of the folder."""

    def open_file(file: Beside) -> Checkpoint:
        return _open_file(file, source)

    names = [chosen] if chosen else _find_weights(folder, open_file)
    # A folder without a file that is named, and a remote one, have to be sound.
    is_model = not chosen or not folder.is_here
    facts = read_facts(folder.path) if is_model else _facts_beside(folder.path)
    files = [Beside(folder, name) for name in names]
    if len(files) == 1:
        whole = None if source.stacked else open_pieces(files[0], facts, open_file)
        found = whole or open_file(files[0])
    else:
        found = join_tables(folder.path, [open_file(file) for file in files])
    # A lone shard is known by its name; any other file of several says itself that it is one.
    if found.facts.pieces > 1 and not are_shards(names):
        raise refuse(
            files[0].path,
            f"is one of {found.facts.pieces} files of a split model",
            "name it as llama.cpp does, NAME-00001-of-00002.gguf, with the others next to it",
        )
    if is_model:
        notes = (*found.notes, *_note_folder(folder, found, names[0]), *facts.notes)
        facts = found.facts if facts == ModelFacts() else facts
        name = f"{NAME} ({found.format})"
        found = replace(found, path=folder.path, format=name, facts=facts)
        found = label_model(replace(found, notes=notes), folder.path, facts.model_type)
    elif found.is_of_model and found.facts == ModelFacts():
        found = replace(found, facts=facts)
    return read_parameters(found)


def _facts_beside(folder: Path) -> ModelFacts:
    """Return what the configuration beside a named file says; nothing if it cannot be read."""
    try:
        return read_facts(folder)
    except (EmbgeoError, OSError):
        return ModelFacts()


def _note_folder(folder: Folder, found: Checkpoint, read: str) -> Iterator[str]:
    """Yield notes on the source of a folder, and on other weights beside those that are read."""
    if isinstance(folder, KeptFolder):
        files = f"{len(found.files):,} files" if len(found.files) > 1 else "1 file"
        size = sum(folder.files[file.name].size for file in found.files)
        yield f"commit {folder.commit[:12]}: {bytes_text(size)} in {files}"
    yield from note_other_weights(folder, read)
    if folder.is_here and (source := read_source(folder.path)) is not None:
        yield source.note


def _find_weights(folder: Folder, open_file: Callable[[Beside], Checkpoint]) -> list[str]:
    """Find the file with the weights of a folder, or the files of a table."""
    path = folder.path
    names = choose_weights(folder, lambda name: _is_known(Beside(folder, name)))
    if len(names) == 1 or is_dataset(names):
        for name in names if folder.is_here else ():
            if is_foreign_link(path / name):
                raise refuse(path / name, FOREIGN_LINK, "name that file instead of the folder")
        return names
    if are_shards(names):
        return names[:1]
    if names:
        files = [Beside(folder, name) for name in names]
        for file in files:  # the way out names no slice
            refuse_slice(file)
        open_pieces(files[0], _facts_beside(path), open_file)
        listed = list_short(names)
        raise refuse(
            path,
            f"the folder holds several files that may hold the matrix: {listed}",
            f"name one of them: {path / names[0]}",
            [WayOut(str(path / name)) for name in names],
        )
    raise _refuse_folder(folder, open_file)


def _is_known(file: Beside) -> bool:
    """Tell whether a file is of a format that is read."""
    # Of other remote files not even the first bytes are fetched.
    if not file.folder.is_here and file.path.suffix not in FILE_ENDINGS:
        return False
    if file.folder.is_here:
        head = read_head(file.path)
    else:
        with reading(file.path, "file"):
            head = file.folder.open(file.name)[:HEAD_BYTES].tobytes()
    return codec_of(head) is not None or find_format(head) is not None


def _refuse_folder(folder: Folder, open_file: Callable[[Beside], Checkpoint]) -> UnreadableFile:
    """Return the error for a folder without weights."""
    path = folder.path
    if (foreign := refuse_folder(path, folder.sizes)) is not None:
        return foreign
    below = folder.find_below(holds_weights) if isinstance(folder, LocalFolder) else []
    if below:
        inner = {str(one.path.relative_to(path)): one for one in below}
        listed = sorted(inner, key=order_folders, reverse=True)
        first = inner[listed[0]]
        for name, size in first.sizes.items():  # the way out names no slice
            file = Beside(first, name)
            if size and OF_OPTIMIZER not in name and _is_known(file):
                open_pieces(file, _facts_beside(first.path), open_file)
        return refuse(
            path,
            f"no model weights in this folder, but in {list_short(listed)}",
            f"name it: {first.path}",
            [WayOut(str(first.path))],
        )
    here = [path / name for name in folder.sizes] if folder.is_here else []
    listed = list(folder.sizes)
    return refuse_files(here) or refuse(
        path,
        f"no model weights in this folder (it holds {list_short(listed) or 'no files'})",
        "name a checkpoint file, or a folder with model.safetensors or pytorch_model.bin",
    )


def _open_file(file: Beside, source: Source) -> Checkpoint:
    """Open a plain or a compressed file; of the index of a remote model the shards in need."""
    if file.folder.is_here:
        read_head(file.path)  # refuses what is no regular file, and an empty one
    with reading(file.path, "file"):
        data = file.folder.open(file.name)
    if isinstance(file.folder, KeptFolder) and sharded.sniff(data[:HEAD_BYTES].tobytes()):
        return _open_shards(file, file.folder, data, source)
    return _open_bytes(data, file)


def _open_shards(file: Beside, kept: KeptFolder, data: Bytes, source: Source) -> Checkpoint:
    with reading(file.path, sharded.NAME):
        weight_map = sharded.read_weight_map(data)
        shards = list(dict.fromkeys(weight_map.values()))
        for shard in shards:
            file.open(shard)
    kept.indexes.append(file.name)
    index = json.dumps({"weight_map": find_shards(weight_map, source)}).encode()
    found = open_with(sharded, np.frombuffer(index, dtype=np.uint8), file)
    notes = found.notes
    if len(found.holders) < len(shards):
        listed = f"{len(found.holders):,} of {len(shards):,} files are listed"
        notes = (*notes, f"{listed}: no others hold what is analyzed")
    files = tuple(map(file.path.with_name, shards))
    return replace(found, files=files, notes=notes, is_of_model=True)


def _open_bytes(data: Bytes, file: Beside) -> Checkpoint:
    """Open the content of a file, plain or compressed."""
    head, path = data[:HEAD_BYTES].tobytes(), file.path
    codec = codec_of(head)
    if codec is None:
        return _open_plain(_find_known(head, path), data, file)
    with reading(path, f"{codec.name} file"), stamp_of(data).open() as packed:
        source = BoundedStream(path, packed, codec)
        head = source.read(HEAD_BYTES)
        if not head:
            raise Damaged("the file is empty")
        known = _find_known(head, path)
        pieces = itertools.chain([head], iter(lambda: source.read(_PIECE), b""))
        held = write_scratch(pieces, "its decompressed content")
    with _holding(held, path):
        found = _keep(held, _open_plain(known, map_file(held.path), file))
    return replace(found, files=(path,), format=f"{found.format}, {codec.name}")


def _find_known(head: bytes, path: Path) -> Format:
    known = find_format(head)
    if known is None:
        raise refuse_unknown(path, head)
    return known


def _open_plain(known: Format, data: Bytes, file: Beside) -> Checkpoint:
    return replace(open_with(known, data, file), is_of_model=known in _OF_MODELS)


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


def _open_stdin() -> Checkpoint:
    with reading(_CALLED, "pipe"):
        held = write_scratch(_receive(), "what comes through stdin")
    with _holding(held, _CALLED):
        read_head(held.path)
        data = map_file(held.path)
        found = _keep(held, _open_bytes(data, Beside(LocalFolder(Path()), str(_CALLED))))
    return read_parameters(replace(found, files=(held.path,)))


def _receive() -> Iterator[bytes]:
    if sys.stdin is None or sys.stdin.isatty():
        raise Damaged("is not a pipe", "give a file name, or pipe a file into it")
    total, size = 0, HEAD_BYTES
    while piece := sys.stdin.buffer.read(size):
        if not total and codec_of(piece) is None:
            _find_known(piece, _CALLED)  # before a stream that may not end fills the disk
        size = _PIECE
        total += len(piece)
        if total > MAX_BYTES:
            raise Damaged(f"gives more than {MAX_BYTES // 2**30} GiB", "save it as a file first")
        yield piece


@known_arguments
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

    Examples
    --------
    >>> import embgeo
    >>> embgeo.load("fixtures/baseline.pt", counts="fixtures/vocab_counts.tsv")
    <Matrix fixtures/baseline.pt: 5,000 × 64 float32, with tokens, frequency>
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
    *,
    role: TensorRole = EMBEDDING,
    on_demand: bool = False,
) -> tuple[Checkpoint, Matrix]:
    """Read the matrix of a source, wherever it lies."""
    place = find_place(source.path)
    kept = place.kept
    with nullcontext() if kept is None else kept.naming():
        if kept is not None:
            kept.most = source.most_bytes
        checkpoint = open_place(place, source)
        if role is HIDDEN_STATES:
            checkpoint = flatten(checkpoint)
        selection = _select(checkpoint, source, role)
        if kept is not None:
            selection = _plan(kept, selection)
        notes = (*selection.checkpoint.notes, *filter(None, [place.note]))
        selection = replace(
            selection,
            source=replace(source, path=place.given),
            checkpoint=replace(selection.checkpoint, notes=notes),
        )
        return checkpoint, _read(selection, place.name, progress, on_demand=on_demand)


def _select(checkpoint: Checkpoint, source: Source, role: TensorRole = EMBEDDING) -> Selection:
    """Choose the tensors and cut the rows."""
    choice = choose(
        checkpoint,
        tensor=source.tensor,
        output=source.output,
        transpose=source.transpose,
        role=role,
    )
    n, d = choice.input.shape[::-1] if choice.input_transposed else choice.input.shape
    return Selection(source, checkpoint, choice, parse_rows(source.rows, n), d)


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
        files = tuple(map(Path, reduced.files))
        checkpoint = replace(checkpoint, files=files, digest=reduced.digest, notes=notes)
    return replace(selection, checkpoint=checkpoint)


def read_matrix(checkpoint: Checkpoint, source: Source) -> Matrix:
    """Read the matrix that a source selects; checks labels and counts before it reads a tensor."""
    return _read(_select(checkpoint, source))


def _read(
    selection: Selection,
    name: str = "",
    progress: ByteProgress | None = None,
    *,
    on_demand: bool = False,
) -> Matrix:
    """Label and count the rows, then read them."""
    labeling = count_rows(selection, label_rows(selection), progress)
    source, checkpoint, choice = selection.source, selection.checkpoint, selection.choice
    # Files that were unpacked and removed have no stamp, and those with a digest lie elsewhere.
    here = () if checkpoint.digest else checkpoint.files
    stamps = tuple(FileStamp.of(path) for path in here if path.is_file())
    endings = {path.suffix for path in checkpoint.files}
    labels, cut = labeling.labels, selection.cut
    on_demand = on_demand and choice.output is None
    data = read_rows(choice.input, cut, transposed=choice.input_transposed, on_demand=on_demand)
    output = read_output(choice, cut, data, is_named=source.output is not None)
    special = () if find_doubt(selection) else place_special(checkpoint.special, cut.total)
    if not cut.is_whole:
        special = cut_special(special, cut.start, cut.stop)
    digest = checkpoint.digest or partial(sha256_of, checkpoint.files)
    origin = Origin(
        path=str(source.path),
        format=checkpoint.format,
        sha256=digest() if source.hash_file else "",
        rows=None if source.rows is None else (cut.start, cut.stop),
        repairable=endings == {".safetensors"},
        tied_by=choice.tied_by or output.tied_by,
        notes=(
            *choice.notes,
            *note_copies(choice, data),
            *output.notes,
            *checkpoint.notes,
            *labeling.notes,
            *_shape_note(selection),
        ),
        stamps=stamps,
    )
    origin.check_files()
    is_tied = None
    if source.output is None:
        is_tied = is_tied_as_configured(checkpoint, choice, data, output, cut)
    matrix = Matrix(
        data,
        name=name or checkpoint.path.name or checkpoint.path.resolve().name,
        tokens=tuple(map(safe_text, labels.tokens)) if labels else None,
        frequency=labeling.frequency,
        masked={PADDING_REASON: labels.masked} if labels and len(labels.masked) else {},
        special=special,
        vocabulary_size=_count_vocabulary(selection, labeling),
        unreachable=_find_unreachable_rows(selection, labeling),
        tied_as_configured=is_tied,
        origin=_of(origin, choice.input, choice.input_transposed, choice.reason),
    )
    if output.rows is None or choice.output is None:
        return matrix
    why = "named with --output" if source.output else "output matrix by name and shape"
    missing = {WITHOUT_OUTPUT: output.missing} if len(output.missing) else {}
    of_output = replace(
        matrix,
        data=output.rows,
        masked=matrix.masked | missing,
        special=(),
        name=f"{matrix.name} (output)",
        origin=_of(origin, choice.output, choice.output_transposed, why),
    )
    return replace(matrix, output=of_output)


def _of(origin: Origin, tensor: Tensor, transposed: bool, reason: str) -> Origin:
    return replace(
        origin,
        tensor=tensor.name,
        stored_shape=tensor.shape,
        dtype=tensor.dtype,
        transposed=transposed,
        reason=reason,
        columns=() if transposed else tensor.columns,
        form=tensor.form,
        parts=tensor.parts if tensor.form else (),
    )


def _shape_note(selection: Selection) -> tuple[str, ...]:
    n, d, transpose = selection.cut.total, selection.d, selection.source.transpose
    if n >= d:
        return ()
    way_out = "drop --transpose" if transpose else "use --transpose"
    whose = "rows" if transpose else "columns"
    return (f"fewer rows ({n:,}) than columns ({d:,}): if tokens are {whose}, {way_out}",)


def sha256_of(files: Sequence[Path]) -> str:
    """Return SHA-256 of the concatenated files, in hexadecimal."""
    digest = hashlib.sha256()
    for path in files:
        try:
            with path.open("rb") as file:
                hashlib.file_digest(file, lambda: digest)
        except OSError as error:
            raise cannot_read(path, error) from error
    return digest.hexdigest()


def _count_vocabulary(selection: Selection, labeling: Labeling) -> int | None:
    """Count the tokens: those of the tokenizer, else those that the configuration says.

    None without either, for a cut, and for rows of other ids than text.
    """
    chosen, checkpoint, facts = (
        selection.choice.input, selection.checkpoint, selection.checkpoint.facts
    )  # fmt: skip
    if not selection.cut.is_whole:
        return None
    if labeling.vocabulary is not None and labeling.vocabulary.encoder is not None:
        return len(labeling.vocabulary.tokens)
    is_named = input_rank(chosen.name) is not None
    if all(input_rank(t.name) is None for t in selection.choice.candidates):
        is_named = output_rank(chosen.name) is not None  # stored alone by a tied model
    is_of_text = is_named and not kind_of(chosen.name)
    is_of_others = selection.cut.total in facts.others.values() or layer_of(chosen.name) is not None
    if not is_of_text or is_of_others or chosen.row_ids is not None:
        return None
    if checkpoint.encoder is not None and checkpoint.tokens is not None:
        return len(checkpoint.tokens)
    return facts.vocabulary


def _find_unreachable_rows(
    selection: Selection, labeling: Labeling
) -> tuple[int, ...] | str | None:
    """Find rows of tokens that no text leads to, or why they are not known.

    None if not requested.
    """
    if not selection.source.check_reachable:
        return None
    try:
        ids = find_unreachable(labeling.vocabulary)
    except NotUsable as error:
        return str(error)
    assert labeling.labels is not None
    assert labeling.vocabulary is not None
    marks = np.bincount(ids, minlength=len(labeling.vocabulary.tokens))
    laid = lay_counts(marks.astype(np.float64), labeling.labels.first, selection.cut)
    return tuple(np.flatnonzero(laid).tolist())


# --- hidden states ------------------------------------------------------------------------------

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


def _with_hidden_states(matrix: Matrix, source: Source) -> Matrix:
    assert source.hidden is not None
    of_states = Source(
        source.hidden,
        tensor=source.hidden_tensor,
        output="none",
        max_download=source.max_download,
        hash_file=source.hash_file,
    )
    opened, states = _open_and_read(of_states, role=HIDDEN_STATES)
    notes = (*matrix.origin.notes, *shape_note(opened, states))
    return replace(matrix, hidden=states, origin=replace(matrix.origin, notes=notes))
