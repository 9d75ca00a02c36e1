"""The version of embgeo."""

from __future__ import annotations

from importlib import metadata


def embgeo_version() -> str:
    """The version that is installed; ``0+unknown`` for a source tree that never was."""
    try:
        return metadata.version("embgeo")
    except metadata.PackageNotFoundError:
        return "0+unknown"
