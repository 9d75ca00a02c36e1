"""Files of a run: the state to resume from (``state.pt``), and the model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import NoneType
from typing import Any, BinaryIO

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from embgeo.core.errors import BadOption, UnreadableFile, writing

MODEL_NAME = "model.safetensors"
VOCABULARY_NAME = "vocabulary.tsv"
#: The vocabulary of the source language of translations, if it has its own.
SOURCE_NAME = "vocabulary.source.tsv"


def run_folder(folder: Path, method: str, seed: int) -> Path:
    """Folder of a run of a comparison."""
    return folder / method / f"seed-{seed}"


def model_bytes(model: nn.Module) -> bytes:
    """Save all weights in float32, each once; the metadata names the aliases of tied ones.

    Call :func:`make_plain` first.
    """
    first: dict[int, str] = {}
    tensors: dict[str, Tensor] = {}
    tied = []
    for name, tensor in model.state_dict().items():
        known = first.setdefault(tensor.data_ptr(), name) if tensor.numel() else name
        if known == name:
            tensors[name] = tensor.detach().to("cpu", torch.float32).contiguous()
        else:
            tied.append(f"{name}={known}")
    # One entry only: the order of several is not the same from process to process.
    return to_bytes(tensors, metadata={"tied": ",".join(sorted(tied))} if tied else None)


def write(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    with write_whole(path, "make room, and go on with --resume") as file:
        file.write(content)


@contextmanager
def write_whole(path: Path, way_out: str) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` once it is written completely."""
    # Always the same name, so that the next process overwrites what a killed one left.
    fresh = path.with_name(f".{path.name}.new")
    with writing(path, way_out):
        try:
            with fresh.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise


def count_parameters(model: nn.Module) -> int:
    """Number of trained parameters; tied ones count once."""
    return sum(p.numel() for p in model.parameters())


STATE_NAME = "state.pt"
FORMAT = 1
_PLAIN = (bool, int, float, str, bytes, NoneType)

#: Settings that may change when a run is resumed: on the same device they change no number.
FREE = {
    "data": ("path",),
    "task": ("wordsim",),
    "training": ("device", "save_seconds", "save_steps", "tensorboard"),
}


def identity(tables: dict[str, Any], files: dict[str, str]) -> dict[str, Any]:
    """What must be the same to resume a run: settings, and hashes of the text."""
    kept = {
        name: (
            {key: v for key, v in table.items() if key not in FREE.get(name, ())}
            if isinstance(table, dict)
            else table
        )
        for name, table in tables.items()
    }
    return {"settings": kept, "files": sorted(files.values())}


def describe_difference(before: Any, now: Any, name: str = "") -> str:
    """Name a setting in which two identities differ, with both values."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now}):
            if before.get(key) != now.get(key):
                inner = f"{name}.{key}" if name else str(key)
                return describe_difference(before.get(key), now.get(key), inner)
    if name == "files":
        return "the text is another one"
    return f"{name.removeprefix('settings.')} was {before!r} and is {now!r}"


def require_same(before: Any, now: Any, where: Path) -> None:
    """Raise `BadOption` if the run of a folder has other settings."""
    if before != now:
        raise BadOption(
            f"holds a run of other settings: {describe_difference(before, now)}",
            where=where,
            way_out="resume with the settings it began with, or choose another folder with -o",
        )


def save_state(state: dict[str, Any], folder: Path) -> None:
    """Replace the saved state."""
    require_plain(state)
    way_out = "make room; the state saved before is still whole"
    with write_whole(folder / STATE_NAME, way_out) as file:
        torch.save({"format": FORMAT, **state}, file)


def require_plain(value: Any, name: str = "state") -> None:
    """Raise TypeError for values that `load_state`, which runs no code, cannot read."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            require_plain(entry, f"{name}.{key}")
    elif type(value) in (list, tuple):
        for place, entry in enumerate(value):
            require_plain(entry, f"{name}.{place}")
    elif not isinstance(value, Tensor) and type(value) not in _PLAIN:
        raise TypeError(f"{name} is a {type(value).__name__}, which is not saved")


def load_state(folder: Path) -> dict[str, Any] | None:
    """Load the state of a folder; None without one."""
    path = folder / STATE_NAME
    if not path.exists():
        return None
    way_out = "remove the file to start again"
    cause = "no state of a run, or damaged"
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the reader of zip files and pickles raises all kinds
        raise UnreadableFile(cause, where=path, way_out=way_out) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise UnreadableFile(f"no state in format {FORMAT}", where=path, way_out=way_out)
    return state
