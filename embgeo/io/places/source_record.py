"""``source.json`` of a reduced model folder: the remote files and bytes that it was made of."""

from dataclasses import dataclass
from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.files.guard import refuse, short
from embgeo.files.records import RecordFormat, digest_of
from embgeo.files.saved import DAMAGE
from embgeo.files.small_files import is_companion

#: A record of a model in thousands of shards is smaller; strangers' folders may hold such a file.
_MOST_BYTES = 2**20
_MOST_SIZE = 2**63


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A remote file with the SHA-256 that the server states; may be empty."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class SourceTensor:
    """A tensor in bytes `start` to `stop` of a remote file."""

    name: str
    file: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class ReducedSource:
    """Where a reduced model folder comes from."""

    #: Remote name, as in ``hf://org/name``.
    source: str
    #: The Hub's commit, or a hash of the sizes and versions that a store states.
    commit: str
    #: Bytes of the fetched tensors, and of all remote weights.
    read: int
    size: int
    whole: bool
    #: Remote files that hold the tensors.
    files: tuple[SourceFile, ...]
    tensors: tuple[SourceTensor, ...]
    #: The files of the folder itself as they were fetched, without this record.
    kept: tuple[SourceFile, ...] = ()

    @property
    def note(self) -> str:
        """Note for analyses of the folder."""
        read = self.size if self.whole else self.read
        return source_note(self.source, self.commit, read, self.size)


def _check_sizes(record: ReducedSource) -> None:
    if not 0 <= record.read <= record.size < _MOST_SIZE:
        raise ValueError("sizes that no files have")


SOURCE_RECORD = RecordFormat(
    name="embgeo.source",
    version=2,
    kind=ReducedSource,
    file="source.json",
    what="the source of a reduced model folder",
    again="fetch it again",
    check=_check_sizes,
)


def list_files(folder: Path, record: str) -> tuple[SourceFile, ...]:
    """List the files of a folder with their SHA-256, without its record."""
    return tuple(
        SourceFile(path.name, path.stat().st_size, digest_of(path))
        for path in sorted(folder.iterdir())
        if path.name != record and path.is_file()
    )


def require_kept(folder: Path) -> Path:
    """Return the reduced folder; UnreadableFile if its files are not as they were fetched."""
    record = read_source(folder)
    try:
        is_same = record is not None and list_files(folder, SOURCE_RECORD.file) == record.kept
    except OSError:
        is_same = False
    if not is_same:
        raise not_as_fetched(folder)
    return folder


def not_as_fetched(
    path: Path, way_out: str = "remove this folder and fetch it again"
) -> UnreadableFile:
    """Return the error for a file or folder that has changed since it was fetched."""
    return refuse(path, "is not as it was fetched (another SHA-256)", way_out)


def source_note(source: str, commit: str, read: int, size: int) -> str:
    """Say where a matrix comes from, and whether parts of the files were read."""
    stated = f"from {short(source)}, commit {short(commit[:12])}"
    if read == size:
        return stated
    return (
        f"{stated}: {bytes_text(read)} of {bytes_text(size)} were read; the SHA-256 of the files "
        "cannot be checked from a part"
    )


def bytes_text(size: int) -> str:
    """Format a number of bytes.

    >>> bytes_text(1_050_000_000), bytes_text(12_300)
    ('1.05 GB', '0.01 MB')
    """
    return f"{size / 1e9:,.2f} GB" if size >= 1e9 else f"{size / 1e6:,.2f} MB"


def read_source(folder: Path) -> ReducedSource | None:
    """Read the record of a reduced model folder; None for other folders."""
    path = folder / SOURCE_RECORD.file
    if not is_companion(path) or path.stat().st_size > _MOST_BYTES:
        return None
    try:
        # Not `load`, which would read an archive of arrays next to it, of any size.
        return SOURCE_RECORD.from_json(SOURCE_RECORD.read(path))
    except (UnreadableFile, *DAMAGE):
        return None
