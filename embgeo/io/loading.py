"""From a path and options to a matrix: open, select, label and count, build."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from embgeo.core.matrix import Matrix
from embgeo.core.source import Padding, RowRange, Source
from embgeo.io.bounded.guard import short
from embgeo.io.bounded.maps import count
from embgeo.io.building import build_matrix
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.labels.corpus_text import ByteProgress
from embgeo.io.model.input import EMBEDDING, TensorRole
from embgeo.io.model_facts import find_final_norm
from embgeo.io.opening import open_place
from embgeo.io.remote.kept import KeptFolder
from embgeo.io.remote.places import find_place
from embgeo.io.remote.reduced import check_plan, reduce_model
from embgeo.io.remote.source_record import source_note
from embgeo.io.selecting import Selection, count_rows, label_rows, select

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
