"""The folder of a finished run, read: ``result.json`` and ``metrics.jsonl``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from embgeo.core.errors import UnreadableFile
from embgeo.training.study.log import LOG_NAME, Log, read_log
from embgeo.training.study.numbers import OF_A_SPLIT, PARAMETERS, SECONDS, SECONDS_PER_TOKEN, SPLITS
from embgeo.training.study.training import Curve

RESULT_NAME = "result.json"
FORMAT = 1
#: Points of a curve that are kept; a page shows no more.
MOST_POINTS = 300
SPEED = "train.tokens_per_second"

_AGAIN = "train it again with: embgeo train"


@dataclass(frozen=True, slots=True)
class Finished:
    """What a finished run says about itself.

    Attributes
    ----------
    result : dict
        The content of ``result.json``, its types checked as far as they are used.
    curves : dict of str to Curve
    numbers : dict of str to float
        Of the evaluation and of the speed.
    """

    result: Mapping[str, Any]
    curves: Mapping[str, Curve]
    numbers: Mapping[str, float]


def read_run(folder: Path) -> Finished:
    """Read a run.

    Raises
    ------
    UnreadableFile
        A missing or damaged file, or one of a format that this embgeo does not know.
    """
    path = folder / RESULT_NAME
    result = _result(path)
    log = folder / LOG_NAME
    curves = {} if not log.exists() else kept_curves(read_log(log))
    return Finished(result, curves, numbers_of(result, curves))


def _result(path: Path) -> dict[str, Any]:
    try:
        d = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UnreadableFile("the run is not finished", where=path.parent) from error
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableFile(
            f"not readable as the result of a run ({error})", where=path, way_out=_AGAIN
        ) from error
    if not isinstance(d, dict) or d.get("format") != FORMAT:
        said = d.get("format") if isinstance(d, dict) else None
        raise UnreadableFile(
            f"format {said!r}, this embgeo reads {FORMAT}", where=path, way_out=_AGAIN
        )
    wrong = [name for name, kinds in _FIELDS.items() if not _fits(d.get(name), kinds)]
    if wrong:
        raise UnreadableFile(f"its field {wrong[0]} is damaged", where=path, way_out=_AGAIN)
    return d


#: Fields that are used, with their types.
_FIELDS: dict[str, tuple[type, ...]] = {
    "method": (str,),
    "test": (dict, type(None)),
    "seed": (int,),
    "steps": (int,),
    "epochs": (int, float),
    "tokens": (int,),
    "seconds": (int, float),
    "valid": (dict,),
    "settings": (dict,),
    "source": (str,),
    "deviations": (list,),
    "notes": (list,),
    "versions": (dict,),
    "command": (str,),
    "corpus": (dict,),
    "initial_sha256": (str,),
}


def _fits(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool)


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


def numbers_of(result: Mapping[str, Any], curves: Mapping[str, Curve]) -> dict[str, float]:
    """What `result.json` says in numbers, under the names of `embgeo.training.study.numbers`."""
    found: dict[str, float] = {}
    for split in SPLITS:
        told = result.get(split) or {}
        for key in OF_A_SPLIT:
            if _is_number(told.get(key)):
                found[f"{split}.{key}"] = float(told[key])
    found[SECONDS.name] = float(result["seconds"])
    if _is_number(result.get("parameters")):
        found[PARAMETERS.name] = float(result["parameters"])
    speeds = [v for v in curves[SPEED].values if v > 0] if SPEED in curves else []
    if speeds:
        found[SECONDS_PER_TOKEN.name] = 1e6 / median(speeds)
    return found


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < math.inf  # also false of NaN
    )
