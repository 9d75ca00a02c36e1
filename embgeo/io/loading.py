"""From a path and the user's options to a matrix with labels, frequencies and its origin."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.core.matrix import Frequency, Matrix, Origin
from embgeo.io.bounded.guard import short
from embgeo.io.bounded.small_files import cannot_read, safe_text
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.choosing import Choice, choose
from embgeo.io.labels import counts_file, fairseq
from embgeo.io.labels.corpus_text import Heard
from embgeo.io.labels.counting import along_rows, from_corpus_file, from_counts_file
from embgeo.io.labels.label_file import read_labels
from embgeo.io.labels.rows import (
    PADDING_REASON,
    PADDINGS,
    Cut,
    Labeled,
    Rows,
    lay_found,
    lay_given,
    parse_rows,
)
from embgeo.io.labels.tokenizer_json import Vocabulary
from embgeo.io.labels.word_lists import fitting

_HASH_BLOCK = 4 * 2**20
_COMPARED_ROWS = 4096


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may say about a matrix; see :func:`embgeo.load` for the meaning of each."""

    tensor: str | None = None
    output: str | None = None
    rows: Rows = None
    transpose: bool = False
    tokens: Path | None = None
    counts: Path | None = None
    corpus: Path | None = None
    rank_order: bool = False
    padding: str = "auto"
    hash_file: bool = True
    heard: Heard | None = None


def build(checkpoint: Checkpoint, given: str, options: Options) -> Matrix:
    """The matrix that `options` choose from a checkpoint.

    Labels and counts are lined up with the rows before any tensor is read.

    Parameters
    ----------
    checkpoint : Checkpoint
    given : str
        The path as the user wrote it; goes into the provenance.
    options : Options

    Raises
    ------
    EmbgeoError
    """
    _check(options)
    choice = choose(
        checkpoint, tensor=options.tensor, output=options.output, transpose=options.transpose
    )
    n, d = choice.input.shape[::-1] if choice.input_transposed else choice.input.shape
    cut = parse_rows(options.rows, n)
    labels, vocabulary, label_notes = _labels(checkpoint, choice, cut, d, options)
    labels, frequency, frequency_notes = _frequency(labels, vocabulary, cut, d, options)
    if frequency is None:
        frequency = _own_frequency(checkpoint, labels, vocabulary, choice, cut, d)
    laid_notes = labels.notes if labels else ()
    notes = [*choice.notes, *checkpoint.notes, *label_notes, *laid_notes, *frequency_notes]
    if n < d:
        way_out = "drop --transpose" if options.transpose else "use --transpose"
        whose = "rows" if options.transpose else "columns"
        notes.append(f"fewer rows ({n:,}) than columns ({d:,}): if words are {whose}, {way_out}")
    data = _rows_of(choice.input, choice.input_transposed, cut, checkpoint.path)
    projection, tied_note = _projection(choice, data, cut, checkpoint.path, options)
    matrix = Matrix(
        data,
        name=checkpoint.path.name or checkpoint.path.resolve().name,
        tokens=tuple(map(safe_text, labels.tokens)) if labels else None,
        frequency=frequency,
        masked={PADDING_REASON: labels.masked} if labels and len(labels.masked) else {},
        origin=Origin(
            path=given,
            format=checkpoint.format,
            sha256=sha256_of(checkpoint.files) if options.hash_file else "",
            rows=None if options.rows is None else (cut.start, cut.stop),
            notes=(*notes, *tied_note),
        ),
    )
    why = "named with --output" if options.output else "output projection by name and shape"
    output = None
    if projection is not None and choice.output is not None:
        output = replace(
            matrix,
            data=projection,
            name=f"{matrix.name} (output)",
            origin=_of(matrix.origin, choice.output, choice.output_transposed, why),
        )
    origin = _of(matrix.origin, choice.input, choice.input_transposed, choice.reason)
    return replace(matrix, output=output, origin=origin)


def _of(origin: Origin, tensor: Tensor, transposed: bool, reason: str) -> Origin:
    return replace(
        origin,
        tensor=tensor.name,
        stored_shape=tensor.shape,
        dtype=tensor.dtype,
        transposed=transposed,
        reason=reason,
    )


def sha256_of(files: Sequence[Path]) -> str:
    """SHA-256 of the files' bytes, one file after the other, in hexadecimal."""
    digest = hashlib.sha256()
    for path in files:
        try:
            with path.open("rb") as file:
                while block := file.read(_HASH_BLOCK):
                    digest.update(block)
        except OSError as error:
            raise cannot_read(path, error) from error
    return digest.hexdigest()


def _check(options: Options) -> None:
    if options.padding not in PADDINGS:
        raise BadOption(
            f"--padding {options.padding!r} is not known", way_out="use auto, mask or keep"
        )
    named = {
        "--counts": options.counts is not None,
        "--corpus": options.corpus is not None,
        "--rank-order": options.rank_order,
    }
    given = [name for name, present in named.items() if present]
    if len(given) > 1:
        raise BadOption(f"{' and '.join(given)} exclude each other", way_out="give one of them")


def _labels(
    checkpoint: Checkpoint, choice: Choice, cut: Cut, d: int, options: Options
) -> tuple[Labeled | None, Vocabulary | None, tuple[str, ...]]:
    """Labels laid along the rows, the vocabulary that they come from, and notes on files of it."""
    if options.tokens is not None:
        vocabulary = fairseq.fitted(read_labels(options.tokens), cut)
        laid = lay_given(vocabulary.tokens, cut, options.padding, options.tokens, d)
        return laid, vocabulary, vocabulary.notes
    inside, source = fitting(checkpoint.vocabularies, choice.input.name, cut.total)
    if inside is not None:
        return lay_found(inside, cut, options.padding, source), None, ()
    tokens = checkpoint.tokens
    if tokens is not None and not _belongs_elsewhere(len(tokens), checkpoint, choice, cut, d):
        vocabulary = Vocabulary(tokens, checkpoint.tokens_source, encoder=checkpoint.encoder)
        return lay_found(tokens, cut, options.padding, vocabulary.source), vocabulary, ()
    beside, notes = fairseq.beside(checkpoint.path, cut)
    if beside is None:
        return None, None, notes
    laid = lay_found(beside.tokens, cut, options.padding, beside.source)
    return laid, beside, (*notes, f"tokens from {beside.source}")


def _belongs_elsewhere(
    length: int, checkpoint: Checkpoint, choice: Choice, cut: Cut, d: int
) -> bool:
    """Whether tokens or counts in the file are those of another matrix, or of the columns."""
    if length == cut.total or checkpoint.path.is_dir():
        return False
    return length == d or any(length in t.shape for t in choice.candidates if t != choice.input)


def _own_frequency(
    checkpoint: Checkpoint,
    labels: Labeled | None,
    vocabulary: Vocabulary | None,
    choice: Choice,
    cut: Cut,
    d: int,
) -> Frequency | None:
    """The counts that the tokens' file or the checkpoint itself gives; 0 beyond the last one."""
    if vocabulary is not None and vocabulary.counts is not None and labels is not None:
        laid = along_rows(vocabulary.counts, labels.first, cut)
        return Frequency("counts", laid, f"counts in {vocabulary.source}")
    counts = checkpoint.counts
    if counts is None or _belongs_elsewhere(len(counts), checkpoint, choice, cut, d):
        return None
    return Frequency("counts", along_rows(counts, 0, cut), checkpoint.counts_source)


def _frequency(
    labels: Labeled | None, vocabulary: Vocabulary | None, cut: Cut, d: int, options: Options
) -> tuple[Labeled | None, Frequency | None, tuple[str, ...]]:
    """Labels (a counts file may give them), the frequencies that the user named, and notes."""
    if options.rank_order:
        return labels, counts_file.from_rank(cut.size), ()
    if options.counts is not None:
        return from_counts_file(options.counts, labels, cut, d)
    if options.corpus is not None:
        return labels, *from_corpus_file(options.corpus, labels, vocabulary, cut, options.heard)
    return labels, None, ()


def _rows_of(tensor: Tensor, transposed: bool, cut: Cut, path: Path) -> npt.NDArray[Any]:
    try:
        array = tensor.open()
    except OSError as error:
        raise cannot_read(path, error) from error
    except MemoryError as error:
        raise UnreadableFile(
            f"tensor {tensor.name!r} ({tensor.nbytes / 2**20:,.0f} MiB) does not fit into memory",
            where=path,
            way_out="use a machine with more memory, or save the matrix alone as .npy",
        ) from error
    if transposed:
        array = array.T
    return array if cut.is_whole else array[cut.start : cut.stop]


def _projection(
    choice: Choice, data: npt.NDArray[Any], cut: Cut, path: Path, options: Options
) -> tuple[npt.NDArray[Any] | None, tuple[str, ...]]:
    """The rows of the output projection; none, and a note, if it is a copy of the embedding."""
    if choice.output is None:
        return None, ()
    projection = _rows_of(choice.output, choice.output_transposed, cut, path)
    if options.output is None and _same_values(data, projection):
        return None, (f"tied: {short(choice.output.name)} holds the same numbers",)
    return projection, ()


def _same_values(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Whether two matrices are equal number by number; stops at the first block that is not."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return all(
        np.array_equal(one[start : start + _COMPARED_ROWS], other[start : start + _COMPARED_ROWS])
        for start in range(0, len(one), _COMPARED_ROWS)
    )
