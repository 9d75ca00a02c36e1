"""Analyses of the steps of a track, which are kept and read again by the next run.

A folder of them may come from somebody else, or be edited: only those are believed that this user
made of the same file with the same code, by a seal under a key in embgeo's cache.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.core.errors import EmbgeoError
from embgeo.core.version import VERSION
from embgeo.io.bounded.saved import atomic_file, write_text
from embgeo.io.remote.cache import own_cache
from embgeo.measure.provenance import versions
from embgeo.result.analysis import load_analysis
from embgeo.result.saved import JSON_NAME

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.result.analysis import Analysis

SEAL_NAME = "seal.txt"
KEY_NAME = "seal.key"
_KEY_BYTES = 32
#: The packages of embgeo that numbers do not depend on.
_WITHOUT_NUMBERS = (
    "callbacks",
    "charts",
    "cli",
    "publish",
    "report",
    "row_repair",
    "rules",
    "training",
)


def read_kept(folder: Path, matrix: Matrix) -> Analysis | None:
    """Read the analysis of a matrix in a folder; None without one, and for one that is not ours."""
    seal = _hash_record(folder)
    try:
        if seal is None or not hmac.compare_digest((folder / SEAL_NAME).read_bytes(), seal):
            return None
        found = load_analysis(folder)
    except (OSError, EmbgeoError):  # missing or damaged
        return None
    p, origin = found.provenance, matrix.origin
    made_of = (p.get("sha256"), p.get("n"), p.get("d"))
    return found if made_of == (origin.sha256, matrix.n, matrix.d) else None


def keep_analysis(analysis: Analysis, folder: Path) -> None:
    """Write an analysis with its seal; not through a link, which may lead anywhere."""
    if folder.is_symlink() or folder.parent.is_symlink():
        return
    analysis.save(folder)
    if seal := _hash_record(folder):
        write_text(folder / SEAL_NAME, seal.decode("ascii"))


def identify(matrix: Matrix, how: object) -> str:
    """Return a hash of everything that decides the numbers of an analysis."""
    origin = matrix.origin
    hidden = None if matrix.hidden is None else matrix.hidden.origin.sha256
    facts = (
        (VERSION, digest_code(), sorted(versions().items())),
        (origin.sha256, origin.tensor, origin.rows, origin.transposed, origin.notes, hidden),
        (matrix.tokens, matrix.special, matrix.vocabulary_size, matrix.unreachable),
        {reason: rows.tolist() for reason, rows in matrix.masked.items()},
        None if matrix.frequency is None else matrix.frequency.source,
        how,
    )
    digest = hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass"))
    if matrix.frequency is not None:
        digest.update(matrix.frequency.counts.tobytes())
    return digest.hexdigest()[:12]


@cache
def digest_code() -> str:
    """Return the SHA-256 of the source files that numbers depend on."""
    home = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        name = path.relative_to(home)
        if name.parts[0] not in _WITHOUT_NUMBERS:
            digest.update(f"{name.as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _hash_record(folder: Path) -> bytes | None:
    """Return the seal of the record in a folder; its SHA-256 of the arrays seals those, too."""
    try:
        content = (folder / JSON_NAME).read_bytes()
        named = folder.name.encode("utf-8", "surrogateescape")
        return hmac.digest(_read_key(), named + b"\0" + content, "sha256").hex().encode("ascii")
    except OSError:  # also where no key can be kept
        return None


def _read_key() -> bytes:
    """Read the key of this user, which is made when it is needed first."""
    path = own_cache() / KEY_NAME
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as temporary:
            temporary.touch(mode=0o600)
            temporary.write_bytes(secrets.token_bytes(_KEY_BYTES))
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        raise OSError(f"{path} is not a key")
    return key
