"""The shape of a language model's embedding matrix."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embgeo.sources import load

__all__ = ["__version__", "load"]

try:
    __version__ = metadata.version("embgeo")
except metadata.PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"


def __getattr__(name: str) -> Any:
    """Import numpy and the readers only when they are used, so that ``embgeo --help`` is quick."""
    if name == "load":
        from embgeo.sources import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
