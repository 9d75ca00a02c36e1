"""TensorBoard projector's ``.bytes``: bare float32 numbers, whose shape a configuration gives."""

from __future__ import annotations

from pathlib import Path

from embgeo.io.bounded.guard import Damaged
from embgeo.io.bounded.maps import count, map_file
from embgeo.io.checkpoint import Checkpoint, stored_tensor
from embgeo.io.formats.text.projector_config import entry_for, metadata_of

NAME = "projector bytes"
RECOGNIZED = "a projector_config.pbtxt or .json beside it that names the file and its shape"
READ = "mapped"
EXTRA = ""


def belongs(path: Path) -> bool:
    """Whether a configuration next to the file names it with a shape of two sizes."""
    entry = entry_for(path)
    return entry is not None and len(entry.shape) == 2


def open_checkpoint(path: Path) -> Checkpoint:
    """The one matrix of the file, with labels from the metadata next to it."""
    data = map_file(path)
    entry = entry_for(path)
    shape = () if entry is None else entry.shape
    if len(shape) != 2 or 4 * count(shape) != len(data):
        raise Damaged(
            f"the configuration's shape {'×'.join(map(str, shape))} does not fit "
            f"its {len(data):,} bytes",
            "put the configuration of the same run beside it",
        )
    metadata = metadata_of(path, shape[0])
    return Checkpoint(
        path=path,
        format=NAME,
        tensors=(stored_tensor("vectors", data, "float32", shape),),
        files=(path,),
        tokens=metadata.tokens,
        tokens_source=metadata.source,
        notes=metadata.notes,
        counts=metadata.counts,
        counts_source=f"counts in {metadata.source}" if metadata.counts is not None else "",
    )
