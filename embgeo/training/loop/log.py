"""The log of a run: ``metrics.jsonl``, one JSON object per line, and TensorBoard."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from embgeo.core.errors import BadOption, UnreadableFile


def open_tensorboard(folder: Path) -> Any:
    """A writer of event files in the folder of a run."""
    return import_tensorboard().SummaryWriter(str(folder))


def import_tensorboard() -> Any:
    """The module that writes event files; BadOption if it is not installed."""
    try:
        return import_module("torch.utils.tensorboard")
    except ImportError as error:
        raise BadOption(
            "numbers are written for tensorboard, which is not installed",
            way_out="pip install tensorboard, or leave tensorboard of [training] out",
        ) from error


class RunLog:
    """The log of a run, written line by line.

    `path`: None in processes that write nothing. `length`: number of bytes to keep. What a killed
    run wrote after its last saved state is removed and written again. `tensorboard`: a writer that
    receives the numbers, too.
    """

    def __init__(self, path: Path | None, length: int = 0, tensorboard: Any = None) -> None:
        self.tensorboard = tensorboard
        self.length = length
        self.file = None
        if path is None:
            return
        path.touch()
        self.file = path.open("r+b")
        if self.file.seek(0, 2) < length:
            self.file.close()
            raise UnreadableFile(
                f"is shorter than the {length:,} bytes that the run had written",
                where=path,
                way_out="remove the folder to start again",
            )
        self.file.truncate(length)
        self.file.seek(length)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write one line, without values that are not finite, which JSON lacks."""
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        if self.file is None or not known:
            return
        self.file.write(json.dumps({"step": step, **known}).encode() + b"\n")
        self.file.flush()
        self.length = self.file.tell()
        if self.tensorboard is not None:
            for name, value in known.items():
                self.tensorboard.add_scalar(name, value, step)

    def close(self) -> None:
        """Close the files."""
        if self.file is not None:
            self.file.close()
        if self.tensorboard is not None:
            self.tensorboard.close()
