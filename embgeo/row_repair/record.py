"""``embgeo-repair.json``: the record of a repair."""

import math
from dataclasses import dataclass

from embgeo.core.special import Role, RowState
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
    """

    row: int
    token: str | None
    roles: tuple[Role, ...]
    state: RowState | None
    norm_before: float | None
    norm_after: float


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
    norm : float
        Norm of the new rows: the root mean square norm of the healthy rows.
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
    norm: float
    version: str
    rows: tuple[ReplacedRow, ...]
    files: tuple[RewrittenFile, ...]

    @property
    def places(self) -> list[int]:
        """Row numbers."""
        return [one.row for one in self.rows]


def check_record(record: RepairRecord) -> None:
    """Raise ValueError for rows that do not fit the matrix."""
    if len(record.shape) != 2 or not record.rows:
        raise ValueError("there are no rows")
    places = record.places
    if places != sorted(set(places)) or places[0] < 0 or places[-1] >= record.shape[0]:
        raise ValueError("the rows are not in order")
    if not math.isfinite(record.norm):
        raise ValueError("the norm is not finite")


FORMAT = RecordFormat(
    "embgeo.repair",
    1,
    RepairRecord,
    RECORD_NAME,
    "a record of a repair",
    "repair the model again with embgeo repair",
    check=check_record,
)
