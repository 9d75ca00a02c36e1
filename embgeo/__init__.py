"""The shape of a language model's embedding matrix."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embgeo.core.matrix import Matrix
    from embgeo.core.options import Options
    from embgeo.io import load
    from embgeo.workflows.analyze import Analysis, analyze, load_analysis

    __version__: str

__all__ = ["Analysis", "Matrix", "Options", "__version__", "analyze", "load", "load_analysis"]

_HOME = {
    "Analysis": "embgeo.workflows.analyze",
    "Matrix": "embgeo.core.matrix",
    "Options": "embgeo.core.options",
    "analyze": "embgeo.workflows.analyze",
    "load": "embgeo.io",
    "load_analysis": "embgeo.workflows.analyze",
}


def __getattr__(name: str) -> Any:
    """Import numpy and the rest only when they are used, so that ``embgeo --help`` is quick."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("embgeo")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"
