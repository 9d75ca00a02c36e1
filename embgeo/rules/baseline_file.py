"""Baseline files, in a form that people can review: one number a line, with its provenance.

Written and read by hand, since a dataclass schema cannot say that a number is bare where it is
exact and an object where it is not.

Format history
--------------
1 : first version (embgeo 0.1).
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from embgeo.core.errors import UnreadableFile, argument
from embgeo.files.records import NewerFormat, RecordFormat
from embgeo.files.saved import has_format
from embgeo.rules.check import Measured
from embgeo.rules.rule_value import SCALES, Known, RuleValue, round_digits, show

FORMAT = RecordFormat(
    "embgeo.baseline",
    1,
    Measured,
    "baseline.json",
    what="a baseline",
    again=f"write it again with {argument('update_baseline')}",
)
#: Entries of the provenance that a baseline keeps, with their types.
KEPT: dict[str, type] = {
    **dict.fromkeys(("file", "tensor", "sha256", "dtype"), str),
    **dict.fromkeys(("n", "d", "kept"), int),
    "sections": list,
    **dict.fromkeys(("options", "versions"), dict),
    "frequency": dict,
}
#: Digits of a standard error; more would differ from machine to machine.
ERROR_DIGITS = 3


def render(matrices: Sequence[Measured], command: str) -> str:
    """Render the text of a baseline file: sorted by name, numbers with ten significant digits."""
    head = {"format": FORMAT.name, "format_version": FORMAT.version, "command": command}
    listed = ",\n".join(map(_render_matrix, matrices))
    return f'{{\n{_entries(head, 1)},\n "matrices": [\n{listed}\n ]\n}}\n'


def _render_matrix(matrix: Measured) -> str:
    head = {key: matrix.provenance[key] for key in KEPT}
    head["absent"] = dict(sorted(matrix.absent.items()))
    scalars = {name: to_json(matrix.readings[name]) for name in sorted(matrix.readings)}
    return f'  {{\n{_entries(head, 3)},\n   "scalars": {{\n{_entries(scalars, 4)}\n   }}\n  }}'


def _entries(content: Mapping[str, object], indent: int) -> str:
    """Return the entries of a JSON object, one a line."""
    entry = json.JSONEncoder(allow_nan=False).encode
    lines = (f"{' ' * indent}{entry(key)}: {entry(value)}" for key, value in content.items())
    return ",\n".join(lines)


def to_json(reading: RuleValue) -> Any:
    """Return a bare number where it is exact, else an object."""
    if reading.value is None:
        return {"undefined": reading.undefined}
    if reading.scale:
        return show(reading.value, reading.scale)
    value = round_digits(reading.value)
    facts = {
        "known": None if reading.standard_error is not None else reading.known,
        "standard_error": reading.standard_error
        and round_digits(reading.standard_error, ERROR_DIGITS),
        "freedom": reading.freedom,
        "size": reading.size,
        "population_error": reading.population_error
        and round_digits(reading.population_error, ERROR_DIGITS),
    }
    if reading.known == "exact" and reading.size is None and not reading.population_error:
        return value
    return {"value": value} | {name: fact for name, fact in facts.items() if fact is not None}


def is_baseline(path: Path) -> bool:
    """Tell whether a file begins like a baseline of any version."""
    return has_format(path, FORMAT.name)


def read(path: Path) -> list[Measured]:
    """Read the matrices of a baseline file; one that raises NewerFormat must not be replaced."""
    try:
        content = FORMAT.read(path)
    except NewerFormat as error:
        way_out = f"update embgeo, or name another file with {argument('baseline')}"
        raise NewerFormat(error.cause, where=path, way_out=way_out) from error
    try:
        matrices = [_read_matrix(entry) for entry in content["matrices"]]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        cause = f"damaged baseline ({type(error).__name__}: {error})"
        raise UnreadableFile(cause, where=path, way_out=FORMAT.again) from error
    if not matrices:
        raise UnreadableFile("a baseline without a matrix", where=path, way_out=FORMAT.again)
    return matrices


def _read_matrix(entry: dict[str, Any]) -> Measured:
    readings = {str(name): from_json(value, name) for name, value in entry["scalars"].items()}
    absent = {str(section): str(why) for section, why in entry["absent"].items()}
    provenance = {key: entry[key] for key in KEPT}
    for key, kind in KEPT.items():
        value = provenance[key]
        if key == "frequency" and value is None:
            continue
        if type(value) is not kind or (isinstance(value, int) and value < 0):
            raise TypeError(f"{key} is {value!r:.100}")
    return Measured(provenance, readings, (), absent)


def from_json(entry: Any, name: str = "") -> RuleValue:
    """Return what `to_json` wrote; ValueError or TypeError for anything else."""
    scale = SCALES.get(name, ())
    if entry in scale:
        return RuleValue(float(scale.index(entry)), scale=scale)
    if not isinstance(entry, dict):
        return RuleValue(_number(entry))
    if "undefined" in entry:
        return RuleValue.missing(str(entry["undefined"]))
    error = _error(entry, "standard_error")
    known: Known = entry["known"] if error is None else "sampled"
    if known not in get_args(Known):
        raise ValueError(f"known {known!r}")
    freedom, size = _count(entry, "freedom"), _count(entry, "size")
    population = _error(entry, "population_error")
    return RuleValue(
        _number(entry["value"]),
        error,
        known,
        freedom=freedom,
        size=size,
        population_error=population,
    )


def _error(entry: dict[str, Any], name: str) -> float | None:
    """Read a standard error, if there is one."""
    error = None if entry.get(name) is None else _number(entry[name])
    if error is not None and error < 0:
        raise ValueError(f"{name} is {error}")
    return error


def _count(entry: dict[str, Any], name: str) -> int | None:
    """Count a whole number from 1, if there is one."""
    value = entry.get(name)
    if value is not None and (type(value) is not int or value < 1):
        raise ValueError(f"{name} is {value!r}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    if not math.isfinite(value):
        raise ValueError(f"{value!r} is not finite")
    return float(value)
