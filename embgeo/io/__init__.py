"""Checkpoints and vector files: opened, labeled and counted as matrices.

From the ground up: `bounded` (files within limits), `pickle` (a machine that cannot call anything),
`labels`, `formats` (one module each), `memory` (objects of other libraries), and the way from a
path to a matrix: `opening`, `selecting`, `building`, which `loading` walks in this order.

Readers raise `Damaged` with a cause and a way out. `formats.format.open_with` and, for other files,
`bounded.guard.reading` make of it, and of whatever else bad bytes cause, an `UnreadableFile` that
names the file in one line. Importing the package imports none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embgeo.io.loading import load, open_source
    from embgeo.io.opening import open_checkpoint

__all__ = ["load", "open_checkpoint", "open_source"]

_HOMES = {"load": "loading", "open_source": "loading", "open_checkpoint": "opening"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"embgeo.io.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
