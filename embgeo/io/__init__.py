"""Checkpoints and vector files: one module for each format, told apart by their bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

from embgeo.core.errors import BadOption
from embgeo.core.matrix import Matrix
from embgeo.io import containers, stand_ins
from embgeo.io.bounded.small_files import cannot_read, read_head
from embgeo.io.checkpoint import Checkpoint, Tensor
from embgeo.io.final_norm import find_final_norm
from embgeo.io.formats import pickled
from embgeo.io.formats.arrow import arrow, parquet
from embgeo.io.formats.fasttext import model
from embgeo.io.formats.frameworks import flax, gguf, hdf5, onnx, tensorflow
from embgeo.io.formats.gensim import saves
from embgeo.io.formats.huggingface import model_folder, safetensors, sharded
from embgeo.io.formats.numpy import npy, npz
from embgeo.io.formats.text import (
    glove_binary,
    projector_bytes,
    projector_tsv,
    table,
    word2vec_binary,
    word_vectors,
)
from embgeo.io.formats.torch import (
    distributed_checkpoint,
    legacy_checkpoint,
    tar_checkpoint,
    zip_checkpoint,
)
from embgeo.io.hidden_states import load_hidden
from embgeo.io.labels.corpus_text import Heard
from embgeo.io.labels.rows import Rows
from embgeo.io.loading import Options, build
from embgeo.io.unknown import unknown_format

__all__ = ["BESIDE", "FORMATS", "Checkpoint", "Tensor", "load", "open_checkpoint"]

#: Every format, in the order in which the first bytes are shown to them: those with a magic
#: number first, those that are guessed from text last.
FORMATS: tuple[ModuleType, ...] = (
    zip_checkpoint,
    npz,
    npy,
    legacy_checkpoint,
    tar_checkpoint,
    distributed_checkpoint,
    gguf,
    hdf5,
    tensorflow,
    onnx,
    flax,
    model,
    parquet,
    arrow,
    safetensors,
    sharded,
    saves,
    pickled,
    word2vec_binary,
    table,
    projector_tsv,
    word_vectors,
)

#: Formats of bare numbers: nothing in the file tells them, only what lies beside it. They are
#: asked, by ``belongs(path)``, about files that none of `FORMATS` knows.
BESIDE: tuple[ModuleType, ...] = (projector_bytes, glove_binary)


def open_checkpoint(path: Path | str) -> Checkpoint:
    """Open a file or model folder, whatever its name; headers are read, tensors are not.

    Parameters
    ----------
    path : Path or str
        A file in one of `FORMATS`; one that is compressed, or an archive with one in it; a file
        of an archive (``vectors.zip::glove.50d.txt``); ``"-"`` for stdin; or a Hugging Face model
        folder.

    Raises
    ------
    UnreadableFile
        Missing, empty, damaged, hostile or of a format that is not known.
    """
    if str(path) == stand_ins.SIGN:
        return stand_ins.open_checkpoint(_open_file)
    path = Path(path)
    try:
        path = tensorflow.with_ending(path)
        is_folder = path.is_dir()
        archive, member = ("", "") if path.exists() else containers.split_member(str(path))
    except OSError as error:  # a name that is too long, for instance
        raise cannot_read(path, error) from error
    if is_folder:
        return model_folder.open_folder(path, _open_file, _is_known)
    return _open_file(Path(archive), member) if member else _open_file(path)


def load(
    path: Path | str,
    *,
    tensor: str | None = None,
    output: str | None = None,
    rows: Rows = None,
    transpose: bool = False,
    tokens: Path | str | None = None,
    counts: Path | str | None = None,
    corpus: Path | str | None = None,
    rank_order: bool = False,
    padding: str = "auto",
    hidden: Path | str | None = None,
    hidden_tensor: str | None = None,
    hash_file: bool = True,
    progress: Heard | None = None,
) -> Matrix:
    """Load an embedding matrix, and the output projection of an untied model.

    Parameters
    ----------
    path : Path or str
        Checkpoint, file of vectors, or Hugging Face model folder; its format is told by its bytes.
        Also what :func:`open_checkpoint` takes beside these.
    tensor : str, optional
        Name of the embedding matrix, where the choice by name and shape is not wanted.
    output : str, optional
        Name of the output projection; ``"none"`` leaves it out.
    rows : str or tuple of two ints, optional
        ``"A:B"`` or (A, B): only these rows, counted from 0, B excluded. The cut comes before
        labels are laid along the rows.
    transpose : bool
        Words are the columns of the embedding matrix.
    tokens : Path or str, optional
        A file of labels, one for each row (of the cut, or of the whole matrix), or a tokenizer's
        own file; counts that it carries are used where no others are named.
    counts : Path or str, optional
        A file of tokens with their counts, matched by token; where the matrix has no labels and
        the file has one entry for each row, it labels them in its order.
    corpus : Path or str, optional
        A text, or a folder of them, whose tokens are counted: by the model's own tokenizer where
        there is one and the package that runs it is installed (``embgeo[hf]``), else by words
        between white space. :attr:`Frequency.source` says which.
    rank_order : bool
        The rows are sorted by frequency, the most frequent token first.
    padding : {"auto", "mask", "keep"}
        Rows beyond the vocabulary: "auto" masks them if the labels came with the model and
        refuses a `tokens` file of another length, "mask" masks them for such a file too, "keep"
        keeps them.
    hidden : Path or str, optional
        A file with hidden states of the model, one a row, in any format; `hidden_tensor` names
        the tensor where the file holds several. Of arrays with more axes, such as (batch, time,
        d), all but the last are rows.
    hash_file : bool
        Whether to compute the SHA-256 of the files for the provenance.
    progress : callable, optional
        ``progress(done, total)`` hears how many bytes of the corpus are read, and of how many; 0
        of them where the corpus is compressed.

    Returns
    -------
    Matrix
        Usually over a map of the file, not a copy.

    Raises
    ------
    UnreadableFile, AmbiguousTensor, LabelMismatch, BadOption
        Each with the cause and the way out, before anything is computed.
    """
    options = Options(
        tensor=tensor,
        output=output,
        rows=rows,
        transpose=transpose,
        tokens=None if tokens is None else Path(tokens),
        counts=None if counts is None else Path(counts),
        corpus=None if corpus is None else Path(corpus),
        rank_order=rank_order,
        padding=padding,
        hash_file=hash_file,
        heard=progress,
    )
    if hidden_tensor is not None and hidden is None:
        raise BadOption(
            "names a tensor of no file", where="--hidden-tensor", way_out="give --hidden FILE too"
        )
    checkpoint = open_checkpoint(path)
    matrix = build(checkpoint, str(path), options)
    matrix = replace(matrix, final_norm=find_final_norm(checkpoint, matrix.d))
    if hidden is None:
        return matrix
    held = open_checkpoint(hidden)
    states, notes = load_hidden(held, str(hidden), hidden_tensor, hash_file=hash_file)
    origin = replace(matrix.origin, notes=(*matrix.origin.notes, *notes))
    return replace(matrix, hidden=states, origin=origin)


def _open_file(path: Path, member: str = "") -> Checkpoint:
    known = containers.Formats(_open_plain, lambda start: _format_of(start) is not None)
    return containers.open_through(path, member, known)


def _open_plain(path: Path, head: bytes) -> Checkpoint:
    known = _format_of(head) or _format_beside(path)
    if known is None:
        raise unknown_format(path, head)
    try:
        checkpoint: Checkpoint = known.open_checkpoint(path)
    except OSError as error:
        raise cannot_read(path, error) from error
    return checkpoint


def _format_of(head: bytes) -> ModuleType | None:
    return next((known for known in FORMATS if known.sniff(head)), None)


def _format_beside(path: Path) -> ModuleType | None:
    return next((known for known in BESIDE if known.belongs(path)), None)


def _is_known(path: Path) -> bool:
    head = read_head(path)
    known = _format_of(head) is not None or containers.is_wrapped(path, head)
    return known or _format_beside(path) is not None
