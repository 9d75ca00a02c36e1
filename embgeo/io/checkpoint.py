"""What every file format gives: named tensors, seen but not yet read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.special import SpecialToken
from embgeo.io.bounded.guard import Damaged, short
from embgeo.io.bounded.maps import SWAPPED, Bytes, count, number_type, view
from embgeo.io.labels.vocabulary import TextEncoder

_LISTED = 4


@dataclass(frozen=True, slots=True)
class RowRanges:
    """Some rows of a matrix that is decoded.

    Attributes
    ----------
    read : callable
        ``read(start, stop)`` gives these rows; ``read(start, stop, rows)`` the rows among them
        that an array names, ascending, each once.
    identity : str
        What tells the matrix from others of its shape, without decoding it.
    """

    read: Callable[..., npt.NDArray[Any]]
    identity: str


@dataclass(frozen=True, slots=True)
class Tensor:
    """A named tensor inside a checkpoint.

    Attributes
    ----------
    name : str
        As the file calls it; entries of nested containers are joined by dots, entries of lists
        are called by their index (``"0"``).
    shape : tuple of int
    dtype : str
        numpy's or ml_dtypes' name (``"bfloat16"``, ``"float8_e4m3fn"``).
    open : callable
        Gives the array: a read-only map of the file wherever the bytes allow it.
    alias_of : str
        Name of an earlier tensor that shares this one's storage, offset, shape and strides.
    ranges : RowRanges or None
        Of a matrix of which some rows are less work than all.
    columns : tuple of str
        Names of its columns, where each is one of a table.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    open: Callable[[], npt.NDArray[Any]]
    alias_of: str = ""
    ranges: RowRanges | None = None
    columns: tuple[str, ...] = ()

    @property
    def nbytes(self) -> int:
        return count(self.shape) * np.dtype(self.dtype).itemsize


def stored_tensor(
    name: str, raw: Bytes, dtype: str, shape: tuple[int, ...], *, swapped: bool = SWAPPED
) -> Tensor:
    """A tensor that lies in a file in one piece; opened as a view of its bytes.

    Parameters
    ----------
    name : str
    raw : array of uint8
        All of its bytes, and no others.
    dtype : str
    shape : tuple of int
    swapped : bool
        Whether they are in the other byte order than this machine's; by default whether
        little-endian ones are.
    """
    kind = number_type(dtype)
    needed = count(shape) * kind.itemsize
    if len(raw) != needed:
        raise Damaged(
            f"{short(name) or 'the tensor'} has other than the bytes that its shape asks for: "
            f"{len(raw):,} in place of {needed:,}"
        )
    return Tensor(name, shape, kind.name, partial(view, raw, kind, shape, swapped=swapped))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An opened file or folder: headers are read, tensors are not.

    Attributes
    ----------
    path : Path
        As the user named it.
    format : str
        NAME of the format.
    tensors : tuple of Tensor
    files : tuple of Path
        Every file that holds tensors, in order (their sha256 goes into the provenance).
    tokens : tuple of str or None
        Labels that the file or folder itself carries, in row order.
    tokens_source : str
        Where they come from, in words.
    tied : bool or None
        What the model's configuration says about tying; None where it says nothing.
    notes : tuple of str
    vocabularies : tuple of (str, tuple of str)
        Every word list inside the file, with its name; a model of two languages has more than
        the one in `tokens`.
    counts : array of float64 or None
        How often the token of row 0, 1, … occurred in training, where the file says it.
    counts_source : str
        Where the counts come from, in words.
    encoder : TextEncoder or None
        The tokenizer whose ids are the rows, where it lies next to the weights.
    special : tuple of SpecialToken
        Tokens that the tokenizer or a chat template names.
    """

    path: Path
    format: str
    tensors: tuple[Tensor, ...]
    files: tuple[Path, ...]
    tokens: tuple[str, ...] | None = None
    tokens_source: str = ""
    tied: bool | None = None
    notes: tuple[str, ...] = ()
    vocabularies: tuple[tuple[str, tuple[str, ...]], ...] = ()
    counts: npt.NDArray[np.float64] | None = None
    counts_source: str = ""
    encoder: TextEncoder | None = None
    special: tuple[SpecialToken, ...] = ()


class Omissions:
    """Collects names by the reason for which they are left out."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, name: str, reason: str) -> None:
        """Note that `name` is not read because `reason`, a clause such as "it holds no numbers"."""
        named = self._names.setdefault(reason, [])
        if len(named) < _LISTED:
            named.append(short(name))
        self._counts[reason] = self._counts.get(reason, 0) + 1

    def notes(self) -> tuple[str, ...]:
        """A sentence for each reason."""
        made = []
        for reason, names in self._names.items():
            more = self._counts[reason] - len(names)
            listed = ", ".join(names) + (f" and {more:,} more" if more else "")
            made.append(f"not read, because {reason}: {listed}")
        return tuple(made)
