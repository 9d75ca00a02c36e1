"""Numbers over training: the ``metrics.jsonl`` of a run.

Each line is a JSON object with ``"step"`` and numbers under names such as ``"cosine.mean"``; other
values, and those that are too large to draw, are skipped. Of a step that occurs twice, as in
resumed runs, the last line counts. The last line may be incomplete, as in a run that is still
writing.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from embgeo.core.arguments import is_number
from embgeo.core.arrays import FloatArray
from embgeo.core.errors import UnreadableFile
from embgeo.files.settings import read_document

LOG_NAME = "metrics.jsonl"
#: Prefix of the names of numbers of the output matrix of an untied model.
OF_OUTPUT = "output."


class LogCurve(NamedTuple):
    """A number over the steps, which ascend; both of shape (m,), m ≥ 1."""

    steps: FloatArray
    values: FloatArray
    #: A step behind the last one at which it is null, NaN, infinite or too large, if there is one.
    lost: float | None = None


Curves = Mapping[str, LogCurve]


#: Numbers beyond cannot be drawn: differences and powers of ten overflow. They are no losses.
LARGEST = 1e100


def _can_be_drawn(value: Any) -> bool:
    return is_number(value) and abs(value) <= LARGEST


def read_log(path: Path) -> Curves:
    """Read a ``metrics.jsonl``."""
    found: dict[str, dict[float, float]] = {}
    lost: dict[str, float] = {}
    lines = read_document(path).split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            step = entry.pop("step")
            if not _can_be_drawn(step):
                raise ValueError("its step is not a number")
        except (ValueError, RecursionError, AttributeError, LookupError, TypeError) as error:
            if number == len(lines):
                continue  # no newline behind it: cut off while it was written
            cause = f"line {number:,} is not a JSON object with a number as its step"
            raise UnreadableFile(cause, where=path) from error
        for name, value in entry.items():
            if _can_be_drawn(value):
                found.setdefault(name, {})[float(step)] = float(value)
            elif value is None or type(value) in (int, float):
                lost[name] = max(float(step), lost.get(name, float(step)))
    if not found:
        raise UnreadableFile("holds no numbers by step", where=path)
    curves = {
        name: np.array(sorted(held.items()), dtype=np.float64) for name, held in found.items()
    }
    return {
        name: LogCurve(
            curve[:, 0],
            curve[:, 1],
            lost[name] if lost.get(name, -np.inf) > curve[-1, 0] else None,
        )
        for name, curve in curves.items()
    }
