"""``embgeo-repair.json``: the record of a repair."""

import math
from dataclasses import dataclass

from embgeo.core.special import Role, RowState
from embgeo.io.bounded.records import RecordFormat

RECORD_NAME = "embgeo-repair.json"


@dataclass(frozen=True, slots=True)
class ReplacedRow:
    """A row before and after."""

    row: int
    token: str | None
    roles: tuple[Role, ...]
    #: The state before; None for a row without a token.
    state: RowState | None
    #: None if it is not finite.
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
    """The changes of a repair."""

    #: The model as the user named it.
    source: str
    tensor: str
    shape: tuple[int, ...]
    dtype: str
    #: Hashes of the bytes of the matrix.
    sha256_before: str
    sha256_after: str
    method: str
    #: Norm of the new rows: the root mean square norm of the healthy rows.
    norm: float
    version: str
    #: In ascending order.
    rows: tuple[ReplacedRow, ...]
    #: Changed files; all others are unchanged.
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
