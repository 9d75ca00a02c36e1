"""Reads checkpoints and vector files as matrices with labels and counts.

From the ground up: `bounded` (files within limits), `pickle` (a machine that cannot call anything),
`labels`, `mapped` (formats whose tensors lie in the file as they are), `convert` (the others),
`formats` (their list), `model` (which matrix, and how it is decoded) and `memory` (objects of other
libraries). `loading` goes from a path to a matrix: `opening`, `selecting`, `building`.

Readers raise `Damaged` with a cause and a way out. `formats.format.open_with` and, for other files,
`bounded.guard.reading` turn it, and other errors that bad bytes cause, into an `UnreadableFile`,
one line that names the file. Importing the package imports none of these modules.
"""

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
