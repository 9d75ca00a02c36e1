"""The shape of a language model's embedding matrix."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embgeo.api import Analysis, analyze, load_analysis
    from embgeo.matrix import Matrix
    from embgeo.metrics import Options
    from embgeo.sources import load

__all__ = ["Analysis", "Matrix", "Options", "__version__", "analyze", "load", "load_analysis"]

try:
    __version__ = metadata.version("embgeo")
except metadata.PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

_HOME = {
    "Analysis": "embgeo.api",
    "Matrix": "embgeo.matrix",
    "Options": "embgeo.metrics",
    "analyze": "embgeo.api",
    "load": "embgeo.sources",
    "load_analysis": "embgeo.api",
}


def __getattr__(name: str) -> Any:
    """Import numpy and the rest only when they are used, so that ``embgeo --help`` is quick."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
