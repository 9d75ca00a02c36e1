"""The log of a run: ``metrics.jsonl``, one JSON object per line."""

import json
import math
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from embgeo.core.errors import UnreadableFile, writing

#: The way out of a full disk, whatever was written.
MAKE_ROOM = "make room, and go on with --resume"


class RunLog:
    """The log of a run, written line by line.

    `path`: None in processes that write nothing. `length`: number of bytes to keep. What a killed
    run wrote after its last saved state is removed and written again.
    """

    def __init__(self, path: Path | None, length: int = 0) -> None:
        self.path, self.length = path, length
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
        if self.file is None or self.path is None or not known:
            return
        with writing(self.path, MAKE_ROOM):
            self.file.write(json.dumps({"step": step, **known}).encode() + b"\n")
            self.file.flush()
        self.length = self.file.tell()

    def close(self) -> None:
        if self.file is not None:
            # Of a full disk the last line is known by now.
            with suppress(OSError):
                self.file.close()


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
