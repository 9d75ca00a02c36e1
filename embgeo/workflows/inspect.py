"""``embgeo.inspect``: the tensors of a checkpoint, and the one that would be analyzed."""

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
    """List the tensors of a checkpoint and the chosen one; only headers are read.

    Parameters
    ----------
    path : Path or str
        A checkpoint, as :func:`embgeo.load` takes it.
    tensor, output : str, optional
        Names of the tensor and of the output matrix.
    transpose : bool
        Whether tokens are columns in the file.

    Returns
    -------
    Inspection
        ``tensors`` (name, shape, dtype, size and role of each), the choice and its ``reason``, or
        the ``problem`` that prevents one.

    Raises
    ------
    UnreadableFile
        If there is no checkpoint, or it is damaged.
    """
    from embgeo.io import open_checkpoint
    from embgeo.io.inspection import inspect_checkpoint

    checkpoint = open_checkpoint(as_path(path, "path"))
    return inspect_checkpoint(checkpoint, tensor=tensor, output=output, transpose=transpose)
