"""The version of the code that states are made and merged with."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from embgeo.core.version import VERSION

#: Whose code decides what a state holds and how states are merged.
PACKAGES = ("core", "numerics", "stats", "metrics", "measure", "distributed")


@cache
def code_version() -> str:
    """The version of embgeo, and behind a plus sign a hash of that code: ``0.1.0+1f2e3d4c5b6a``.

    Between two releases the version stays the same while the code changes.
    """
    return f"{VERSION}+{hash_code(Path(__file__).parents[1])}"


def hash_code(home: Path) -> str:
    """Twelve digits of the SHA-256 of all modules of these packages, with their names."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((home / package).rglob("*.py")):
            digest.update(path.relative_to(home).as_posix().encode())
            # A checkout on Windows has other line ends.
            digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:12]
