"""The model of a finished run, as a file that anything reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor

from embgeo.core.errors import EmbgeoError
from embgeo.training.models import LanguageModel

MODEL_NAME = "model.safetensors"


def model_bytes(model: LanguageModel) -> bytes:
    """All weights in float32, each once; what a tied one is also called stands in the metadata.

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
    """Write a file whole, or not at all.

    Raises
    ------
    EmbgeoError
        It cannot be written.
    """
    with write_whole(path, "make room, and go on with --resume") as file:
        file.write(content)


@contextmanager
def write_whole(path: Path, way_out: str) -> Iterator[BinaryIO]:
    """A file under a temporary name, which gets its own once all of it is on the disk.

    Raises
    ------
    EmbgeoError
        It cannot be written.
    """
    # Always the same name: what a killed process leaves, the next one writes over.
    fresh = path.with_name(f".{path.name}.new")
    try:
        with fresh.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise EmbgeoError(
            f"cannot be written: {error.strerror or error}", where=path, way_out=way_out
        ) from error


def count_parameters(model: LanguageModel) -> int:
    """Numbers that are trained, tied ones once."""
    return sum(p.numel() for p in model.parameters())
