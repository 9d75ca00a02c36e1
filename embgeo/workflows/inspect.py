"""Inspecting: what a checkpoint holds, and which tensor would be analyzed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.core.arguments import as_path

if TYPE_CHECKING:
    from embgeo.io.inspection import Inspection


def inspect(
    path: Path | str,
    *,
    tensor: str | None = None,
    output: str | None = None,
    transpose: bool = False,
) -> Inspection:
    """List the tensors of a checkpoint, and the choice among them; only headers are read.

    Parameters
    ----------
    path : Path or str
        What :func:`embgeo.load` takes.
    tensor, output : str, optional
        Choose this tensor, and this output projection.
    transpose : bool
        Tokens are columns in the file.

    Returns
    -------
    Inspection
        ``tensors`` (name, shape, dtype, size and role of each), the choice and its ``reason``, or
        the ``problem`` that leaves none.

    Raises
    ------
    UnreadableFile
        If there is no checkpoint, or a damaged one.
    """
    from embgeo.io import open_checkpoint
    from embgeo.io.inspection import inspect_checkpoint

    checkpoint = open_checkpoint(as_path(path, "path"))
    return inspect_checkpoint(checkpoint, tensor=tensor, output=output, transpose=transpose)
