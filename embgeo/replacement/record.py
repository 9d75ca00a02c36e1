"""``embgeo-repair.json``: the record of a repair, which is a patch for other copies."""

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
        Roles of a special token.
    state : RowState or None
        The state before; None for a row without a token.
    norm_before : float or None
        None if it is not finite.
    norm_after : float
        Norm of the stored row.
    values : str
        The new row in the bytes of the file, in Base64.
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
    """The changes of a repair.

    Attributes
    ----------
    source : str
        The model as the user named it.
    tensor : str
        Name of the matrix.
    shape : tuple of int
    dtype : str
    sha256_before, sha256_after : str
        Hashes of the bytes of the matrix.
    method : str
    seed : int or None
        None for methods without random numbers.
    length : str
        The norm of the new rows, over the norms of the healthy rows: ``rms`` or ``median``.
    norm : float
        Its value.
    version : str
        Version of embgeo.
    rows : tuple of ReplacedRow
        In ascending order.
    files : tuple of RewrittenFile
        Changed files; all others are unchanged.
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
        """Row numbers."""
        return [one.row for one in self.rows]

    def read_values(self) -> list[bytes]:
        """The bytes of the new rows."""
        return [base64.b64decode(one.values, validate=True) for one in self.rows]


def encode_row(values: npt.NDArray[np.generic]) -> str:
    """A row in the byte order of the file, in Base64."""
    kind = values.dtype
    stored = values.view(f"u{kind.itemsize}").astype(f"<u{kind.itemsize}")
    return base64.b64encode(stored.tobytes()).decode("ascii")


def check_record(record: RepairRecord) -> None:
    """ValueError for rows that do not fit the matrix."""
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
