"""``embgeo-repair.json``: the record of a repair."""

from dataclasses import dataclass

from embgeo.core.suspects import Reason, Side
from embgeo.files.records import RecordFormat

RECORD_NAME = "embgeo-repair.json"


@dataclass(frozen=True, slots=True)
class ReplacedRow:
    """A row before and after."""

    row: int
    token: str | None
    #: Why it was replaced; None if it was named.
    reason: Reason | None
    #: None if it is not finite.
    norm_before: float | None
    norm_after: float


@dataclass(frozen=True, slots=True)
class RepairedSide:
    """The replaced rows of one matrix."""

    side: Side
    tensor: str
    shape: tuple[int, ...]
    dtype: str
    #: Hashes of the bytes of the matrix.
    sha256_before: str
    sha256_after: str
    #: In ascending order.
    rows: tuple[ReplacedRow, ...]


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A file that holds a matrix, and the SHA-256 of all its bytes before and after."""

    file: str
    tensors: tuple[str, ...]
    sha256_before: str
    sha256_after: str


@dataclass(frozen=True, slots=True)
class RepairRecord:
    """The changes of a repair."""

    #: The model as the user named it.
    source: str
    method: str
    #: The token that was copied; None for other methods.
    copied: str | None
    seed: int
    version: str
    sides: tuple[RepairedSide, ...]
    #: Changed files; all others are unchanged.
    files: tuple[RewrittenFile, ...]


def check_record(record: RepairRecord) -> None:
    """Raise ValueError for rows that do not fit their matrix."""
    for side in record.sides:
        places = [one.row for one in side.rows]
        if len(side.shape) != 2 or not places:
            raise ValueError("there are no rows")
        if places != sorted(set(places)) or places[0] < 0 or places[-1] >= side.shape[0]:
            raise ValueError("the rows are not in order")


FORMAT = RecordFormat(
    "embgeo.repair",
    2,
    RepairRecord,
    RECORD_NAME,
    "a record of a repair",
    "repair the model again with embgeo repair",
    check=check_record,
)
