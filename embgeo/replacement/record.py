"""The record of a repair, ``embgeo-repair.json``, which is a patch for other copies, too."""

from __future__ import annotations

import base64
import binascii
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embgeo.core.special import Role, RowState
from embgeo.io.bounded.maps import number_type
from embgeo.io.bounded.records import RecordFormat

RECORD_NAME = "embgeo-repair.json"


@dataclass(frozen=True, slots=True)
class ReplacedRow:
    """A row before and after.

    Attributes
    ----------
    row : int
    token : str or None
    roles : tuple of Role
        Of a special token.
    state : RowState or None
        Before; None for a row without a token.
    norm_before : float or None
        None where it is not finite.
    norm_after : float
        Of the row as it is stored.
    values : str
        The new row as the file stores it, in Base64.
    """

    row: int
    token: str | None
    roles: tuple[Role, ...]
    state: RowState | None
    norm_before: float | None
    norm_after: float
    values: str


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A file that holds the matrix, and the SHA-256 of all its bytes before and after."""

    file: str
    tensors: tuple[str, ...]
    sha256_before: str
    sha256_after: str


@dataclass(frozen=True, slots=True)
class RepairRecord:
    """What a repair changed.

    Attributes
    ----------
    source : str
        The model as the user named it.
    tensor : str
        Name of the matrix.
    shape : tuple of int
    dtype : str
    sha256_before, sha256_after : str
        Of the bytes of the matrix.
    method : str
    seed : int or None
        Of methods that draw random numbers.
    length : str
        Which norm of the healthy rows the new rows have: ``rms`` or ``median``.
    norm : float
        That norm.
    version : str
        Of embgeo.
    rows : tuple of ReplacedRow
        Ascending.
    files : tuple of RewrittenFile
        Files that were written anew; all others are as they were.
    """

    source: str
    tensor: str
    shape: tuple[int, ...]
    dtype: str
    sha256_before: str
    sha256_after: str
    method: str
    seed: int | None
    length: str
    norm: float
    version: str
    rows: tuple[ReplacedRow, ...]
    files: tuple[RewrittenFile, ...]

    @property
    def places(self) -> list[int]:
        """Numbers of the rows."""
        return [one.row for one in self.rows]

    def read_values(self) -> list[bytes]:
        """The new rows as they are stored."""
        return [base64.b64decode(one.values, validate=True) for one in self.rows]


def encode_row(values: npt.NDArray[np.generic]) -> str:
    """A row in the byte order of the file, in Base64."""
    kind = values.dtype
    stored = values.view(f"u{kind.itemsize}").astype(f"<u{kind.itemsize}")
    return base64.b64encode(stored.tobytes()).decode("ascii")


def check_record(record: RepairRecord) -> None:
    """Refuse, with a ValueError, rows that do not fit the matrix."""
    if len(record.shape) != 2 or not record.rows:
        raise ValueError("there are no rows")
    n, d = record.shape
    places = record.places
    if places != sorted(set(places)) or places[0] < 0 or places[-1] >= n:
        raise ValueError("the rows are not in order")
    width = d * number_type(record.dtype).itemsize
    try:
        fits = all(len(values) == width for values in record.read_values())
    except binascii.Error as error:
        raise ValueError("the rows are not in Base64") from error
    if not fits or not math.isfinite(record.norm):
        raise ValueError("the rows have another length")


FORMAT = RecordFormat(
    "embgeo.repair",
    1,
    RepairRecord,
    RECORD_NAME,
    "a record of a repair",
    "repair the model again with embgeo repair",
    check=check_record,
)
