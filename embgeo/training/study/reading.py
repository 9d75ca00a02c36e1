"""The folder of a finished run, read: ``result.json`` and ``metrics.jsonl``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from embgeo.core.typed import is_number
from embgeo.training.study.log import LOG_NAME, Log, read_log
from embgeo.training.study.numbers import OF_A_SPLIT, PARAMETERS, SECONDS, SECONDS_PER_TOKEN
from embgeo.training.study.run_result import RunResult, load_result
from embgeo.training.study.training import Curve

#: Points of a curve that are kept; a page shows no more.
MOST_POINTS = 300
SPEED = "train.tokens_per_second"


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """What a finished run says about itself.

    Attributes
    ----------
    result : RunResult
    curves : dict of str to Curve
    numbers : dict of str to float
        Of the evaluation and of the speed.
    """

    result: RunResult
    curves: Mapping[str, Curve]
    numbers: Mapping[str, float]


def read_run(folder: Path) -> FinishedRun:
    """Read a run; UnreadableFile for a missing or damaged file, or one of an unknown format."""
    result = load_result(folder)
    log = folder / LOG_NAME
    curves = {} if not log.exists() else kept_curves(read_log(log))
    return FinishedRun(result, curves, numbers_of(result, curves))


def kept_curves(log: Log) -> dict[str, Curve]:
    """Every curve of the log, thinned evenly to `MOST_POINTS`, both ends kept."""
    found = {}
    for name, (steps, values) in log.curves.items():
        places = kept_places(len(steps))
        found[name] = Curve(
            tuple(float(steps[i]) for i in places), tuple(float(values[i]) for i in places)
        )
    return found


def kept_places(n: int) -> list[int]:
    """0 … n − 1, or `MOST_POINTS` of them evenly apart with both ends."""
    if n <= MOST_POINTS:
        return list(range(n))
    return sorted({round(i * (n - 1) / (MOST_POINTS - 1)) for i in range(MOST_POINTS)})


def numbers_of(result: RunResult, curves: Mapping[str, Curve]) -> dict[str, float]:
    """The numbers of a result, under the names of `embgeo.training.study.numbers`."""
    found: dict[str, float] = {}
    for split, scores in (("valid", result.valid), ("test", result.test or {})):
        for key in OF_A_SPLIT:
            value = scores.get(key)
            if value is not None and is_number(value):
                found[f"{split}.{key}"] = float(value)
    found[SECONDS.name] = result.seconds
    found[PARAMETERS.name] = float(result.parameters)
    speeds = [v for v in curves[SPEED].values if v > 0] if SPEED in curves else []
    if speeds:
        found[SECONDS_PER_TOKEN.name] = 1e6 / median(speeds)
    return found
