"""Checkpoints: named tensors whose headers are read and whose content is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.errors import EmbgeoError
from embgeo.core.special import SpecialToken
from embgeo.files.guard import Damaged, list_short, refuse, short
from embgeo.files.maps import SWAPPED, TEXT, Array, Bytes, count, number_type, type_name, view
from embgeo.io.labels.vocabulary import TextEncoder
from embgeo.io.model.facts import ModelFacts

#: Most tensors of a file. Files of the largest models, with a tensor for each expert, have fewer.
MOST_TENSORS = 200_000
#: Fewer vectors of one length are a few parameters, no table.
FEWEST_VECTORS = 8
#: Way out for a tensor whose form is not read.
SAVE_FLOATS = "save the matrix as float32 with numpy.save"


@dataclass(frozen=True, slots=True)
class RowRanges:
    """Reads some rows of a matrix that has to be decoded."""

    #: ``read(start, stop)`` returns these rows; ``read(start, stop, rows)`` those of an ascending
    #: array of row numbers between them.
    read: Callable[..., npt.NDArray[Any]]
    #: Distinguishes the matrix from others of its shape, without decoding it.
    identity: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named tensor inside a checkpoint."""

    #: Name in the file; entries of nested containers are joined by dots, entries of lists are
    #: called by their index (``"0"``).
    name: str
    shape: tuple[int, ...]
    #: numpy's or ml_dtypes' name (``"bfloat16"``, ``"float8_e4m3fn"``).
    dtype: str
    #: Returns the array, if possible as a read-only map of the file.
    open: Callable[[], npt.NDArray[Any]]
    #: Name of an earlier tensor with the same storage, offset, shape and strides.
    alias_of: str = ""
    #: For a matrix of which some rows take less work than all.
    ranges: RowRanges | None = None
    columns: tuple[str, ...] = ()
    #: Stored tensors that a decoded parameter is made of.
    parts: tuple[str, ...] = ()
    #: How it is decoded, in words; empty for a tensor as it is stored.
    form: str = ""
    #: Why its form cannot be read, a clause such as "is quantized by GPTQ", and what to do.
    problem: str = ""
    way_out: str = ""
    #: What the reader should know of a form, such as an adapter that is not merged.
    note: str = ""
    #: Returns the token ids of the rows, where they are not 0, 1, ….
    row_ids: Callable[[], npt.NDArray[np.int64]] | None = None
    #: Bytes in the file, if they are not those of the values.
    stored_bytes: int = 0

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self.stored_bytes or self.nbytes

    @property
    def nbytes(self) -> int:
        if not self.dtype:  # of a type that is not known
            return 0
        return count(self.shape) * np.dtype(self.dtype).itemsize


_values_of = attrgetter(*(field.name for field in fields(Tensor)))


def replace_open(tensor: Tensor, opened: Callable[[], npt.NDArray[Any]]) -> Tensor:
    """Replace `open`; :func:`dataclasses.replace` is slow, and a file may have 200,000 tensors."""
    name, shape, dtype, _, *others = _values_of(tensor)
    return Tensor(name, shape, dtype, opened, *others)


def stored_tensor(
    name: str, raw: Bytes, dtype: str, shape: tuple[int, ...], *, swapped: bool = SWAPPED
) -> Tensor:
    """Return a tensor that is opened as a view of `raw`, exactly its bytes.

    Little-endian by default.
    """
    kind = number_type(dtype)
    needed = count(shape) * kind.itemsize
    if len(raw) != needed:
        raise Damaged(
            f"{short(name) or 'the tensor'} has other than the bytes that its shape asks for: "
            f"{len(raw):,} in place of {needed:,}"
        )
    return Tensor(name, shape, type_name(kind), partial(view, raw, kind, shape, swapped=swapped))


def unreadable(
    name: str, shape: tuple[int, ...], dtype: str, problem: str, way_out: str, *parts: Tensor
) -> Tensor:
    """Return a tensor that cannot be read; `problem` is a clause such as "is quantized by GPTQ".

    Shape and type are empty where they are not known.
    """

    def refuse_opening() -> Array:
        raise refuse(short(name), problem, way_out)

    names = tuple(part.name for part in parts)
    return Tensor(name, shape, dtype, refuse_opening, parts=names, problem=problem, way_out=way_out)


def too_many_tensors(held: int) -> Damaged:
    """Return the error for a file with more than `MOST_TENSORS`, before they are looked at."""
    return Damaged(
        f"it holds {held:,} tensors, more than {MOST_TENSORS:,}",
        "save the embedding alone with numpy.save",
    )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An opened file or folder: headers are read, tensors are not."""

    format: str
    tensors: tuple[Tensor, ...]
    #: Labels from the file or folder, in row order.
    tokens: tuple[str, ...] | None = None
    #: Where the tokens come from, in words; has no meaning without tokens.
    tokens_source: str = ""
    notes: tuple[str, ...] = ()
    #: All word lists in the file by name, such as those of two languages.
    vocabularies: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: How often the token of row 0, 1, … occurred in training, if the file says it.
    counts: npt.NDArray[np.float64] | None = None
    #: Where the counts come from, in words; has no meaning without counts.
    counts_source: str = ""
    #: Tokenizer next to the weights whose ids are the rows.
    encoder: TextEncoder | None = None
    #: Tokens that the tokenizer or a chat template names.
    special: tuple[SpecialToken, ...] = ()
    #: What the configuration says of the matrices.
    facts: ModelFacts = field(default_factory=ModelFacts)
    #: Whether its format is one of models, which a configuration beside the file describes.
    is_of_model: bool = False
    #: Why the tokenizer beside the weights cannot be read; raised where its labels are wanted.
    label_error: EmbgeoError | None = None
    #: Ids of tokens that were added to the tokenizer.
    added: frozenset[int] = frozenset()
    #: The tensors as they are stored, where `tensors` are parameters made of them.
    stored: tuple[Tensor, ...] = ()
    #: Names of the files that hold the tensors, in order; empty for the opened file itself.
    holders: tuple[str, ...] = ("",)
    #: The opened file or folder, and the files that hold the tensors, in order; their SHA-256 goes
    #: into the provenance. Whoever opens a file adds them.
    path: Path = Path()
    files: tuple[Path, ...] = ()
    #: Returns the SHA-256 of what was read, if the files lie elsewhere.
    digest: Callable[[], str] | None = None


def note_unread(tensors: Iterable[Tensor]) -> tuple[str, ...]:
    """Return one note per reason why tensors cannot be read; texts are no tensors."""
    names: dict[str, list[str]] = {}
    for tensor in tensors:
        if tensor.problem and tensor.dtype != TEXT:
            names.setdefault(tensor.problem, []).append(tensor.name)
    return tuple(f"not read: {list_short(listed)} ({problem})" for problem, listed in names.items())
