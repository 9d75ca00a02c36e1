"""Numbers over training: the ``metrics.jsonl`` of a run.

Each line is a JSON object with ``"step"`` and numbers under names such as ``"cosine.mean"``; other
values are skipped. Of a step that occurs twice, as in resumed runs, the last line counts. The last
line may be incomplete, as in a run that is still writing.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from embgeo.core.arguments import is_number
from embgeo.core.arrays import FloatArray
from embgeo.core.errors import UnreadableFile
from embgeo.files.settings import read_document

LOG_NAME = "metrics.jsonl"

#: Prefix of the names of numbers of the output matrix of an untied model.
OF_OUTPUT = "output."


def name_of_output(name: str) -> str:
    """Name of a number of the output matrix of an untied model."""
    return f"{OF_OUTPUT}{name}"


@dataclass(frozen=True, slots=True)
class Log:
    """Curves over the steps of a training run."""

    #: Ascending steps and values by name; both of shape (m,), m ≥ 1.
    curves: dict[str, tuple[FloatArray, FloatArray]]
    #: Axis titles by name; other curves have their name as title.
    titles: dict[str, str] = field(default_factory=dict)

    def last(self, name: str) -> float | None:
        """Return the value at the last step; None without such a curve."""
        return float(self.curves[name][1][-1]) if name in self.curves else None


def read_log(path: Path) -> Log:
    """Read a ``metrics.jsonl``."""
    found: dict[str, dict[float, float]] = {}
    lines = read_document(path, "give the log of a run").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        entry = _entry(line)
        if entry is None:
            if number == len(lines):
                continue  # no newline behind it: cut off while it was written
            raise UnreadableFile(
                f"line {number:,} is not a JSON object with a number as its step",
                where=path,
                way_out='lines look like {"step": 100, "cosine.mean": 0.1}',
            )
        step, numbers = entry
        for name, value in numbers.items():
            found.setdefault(name, {})[step] = value
    if not found:
        raise UnreadableFile("holds no numbers by step", where=path, way_out="give another run")
    return Log({name: _sorted(values) for name, values in found.items()})


def _entry(line: str) -> tuple[float, dict[str, float]] | None:
    try:
        d = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(d, dict) or not is_number(d.get("step")):
        return None
    return float(d["step"]), {k: float(v) for k, v in d.items() if k != "step" and is_number(v)}


def _sorted(values: dict[float, float]) -> tuple[FloatArray, FloatArray]:
    steps = np.array(sorted(values), dtype=np.float64)
    return steps, np.array([values[step] for step in steps.tolist()], dtype=np.float64)
