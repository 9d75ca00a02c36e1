"""``metrics.jsonl``: the numbers of a run, a JSON object a line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.training.loop.sinks import Sink

LOG_NAME = "metrics.jsonl"


class RunLog:
    """The file of a run, written line by line; a resumed run goes on where its state was saved.

    Parameters
    ----------
    path : Path, optional
        None in processes that write nothing.
    length : int
        Bytes that count: what a killed run wrote after its last state is cut off, and written
        again.
    sinks : sequence of callables
        Hear of each line, too.

    Raises
    ------
    UnreadableFile
        The file is shorter than that.
    """

    def __init__(self, path: Path | None, length: int = 0, sinks: Sequence[Sink] = ()) -> None:
        self.sinks = sinks
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
                way_out="take the folder away to begin anew",
            )
        self.file.truncate(length)
        self.file.seek(length)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """One line; what is not finite has no JSON, and is left out."""
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        if self.file is None or not known:
            return
        self.file.write(json.dumps({"step": step, **known}).encode() + b"\n")
        self.file.flush()
        self.length = self.file.tell()
        for sink in self.sinks:
            sink(known, step)

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()
