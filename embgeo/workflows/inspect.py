"""``embgeo.inspect``: the tensors of a checkpoint, and the one that would be analyzed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.core.arguments import as_path
from embgeo.core.options import known_arguments
from embgeo.core.source import Source

if TYPE_CHECKING:
    from embgeo.io.model.inspection import Inspection


@known_arguments
def inspect(
    path: Path | str,
    *,
    tensor: str | None = None,
    output: str | None = None,
    transpose: bool = False,
) -> Inspection:
    """List the tensors of a checkpoint and the chosen one; no tensor is read.

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

    Examples
    --------
    >>> import embgeo
    >>> found = embgeo.inspect("fixtures/cosreg.safetensors")
    >>> found.reason, [tensor.name for tensor in found.tensors if tensor.role == "embedding"]
    ('the only matrix in the file', ['encoder.weight'])
    """
    from embgeo.io.load import open_checkpoint
    from embgeo.io.model.inspection import inspect_checkpoint
    from embgeo.io.places.names import as_written

    Source(path, tensor=tensor, output=output, transpose=transpose)  # checks them
    checkpoint = open_checkpoint(as_path(path, "path"))
    found = inspect_checkpoint(checkpoint, tensor=tensor, output=output, transpose=transpose)
    # What comes through stdin is called so.
    return found if str(path) == "-" else replace(found, file=as_written(path))
