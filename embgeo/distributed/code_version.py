"""The version of the code that makes and merges states."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.core.version import VERSION

#: Packages whose code decides what a state holds and how states merge.
PACKAGES = ("core", "numerics", "stats", "metrics", "measure", "distributed")


@cache
def code_version() -> str:
    """The version of embgeo with a hash of its code, which changes between releases.

    For example ``0.1.0+1f2e3d4c5b6a``.
    """
    return f"{VERSION}+{hash_code(Path(__file__).parents[1])}"


def check_version(made_by: str, where: Path | str) -> None:
    """Refuse states that another version of the code made."""
    own = code_version()
    if made_by != own:
        raise UnreadableFile(
            f"made by embgeo {made_by}, this is {own}",
            where=where,
            way_out="make and merge all states with one version",
        )


def hash_code(home: Path) -> str:
    """The first twelve hexadecimal digits of the SHA-256 of all modules and their names."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((home / package).rglob("*.py")):
            digest.update(path.relative_to(home).as_posix().encode())
            # A checkout on Windows has other line endings.
            digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:12]
