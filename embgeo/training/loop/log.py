"""The log of a run: ``metrics.jsonl``, one JSON object per line, and TensorBoard."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from embgeo.core.errors import BadOption, UnreadableFile


def import_tensorboard() -> Any:
    """Return the module that writes event files; BadOption if it is not installed."""
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
    run wrote after its last saved state is removed and written again. `tensorboard`: whether the
    numbers are written to event files, too.
    """

    def __init__(self, path: Path | None, length: int = 0, *, tensorboard: bool = False) -> None:
        self.length = length
        self.file = self.events = None
        if path is None:
            return
        if tensorboard:
            self.events = import_tensorboard().SummaryWriter(str(path.parent))
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
        if self.events is not None:
            for name, value in known.items():
                self.events.add_scalar(name, value, step)

    def close(self) -> None:
        for file in (self.file, self.events):
            if file is not None:
                file.close()


@dataclass(slots=True)
class LossInterval:
    """The steps since the last line of training loss.

    Losses stay on the device until they are needed, so that a GPU need not wait. They are added one
    by one, so that a resumed run gets the same sum.
    """

    loss: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    waiting: list[tuple[Tensor, int]] = field(default_factory=list)

    def add(self, loss: Tensor, tokens: int, seconds: float) -> None:
        self.waiting.append((loss, tokens))
        self.seconds += seconds

    def state_dict(self) -> dict[str, Any]:
        """Return the sums so far, with all losses fetched from the device."""
        if self.waiting:
            began = time.perf_counter()
            losses = torch.stack([loss for loss, _ in self.waiting]).tolist()
            for loss, (_, tokens) in zip(losses, self.waiting, strict=True):
                self.loss += loss * tokens
                self.tokens += tokens
            self.seconds += time.perf_counter() - began
            self.waiting = []
        return {"loss": self.loss, "tokens": self.tokens, "seconds": self.seconds}

    def describe(self) -> dict[str, float]:
        """Write the numbers for a line of the log."""
        self.state_dict()
        loss = self.loss / self.tokens
        return {
            "train.loss": loss,
            "train.perplexity": math.exp(min(loss, 700.0)),
            "train.tokens_per_second": round(self.tokens / max(self.seconds, 1e-9), 1),
        }
