"""Baselines in a file that people can review: one number a line, and where it comes from.

Format and version are checked as of every record. The rest is written and read here, because the
schema of a dataclass does not say what a review needs: a bare number where it is exact, an object
where it is not, and each on a line of its own.

Format history
--------------
1 : first version (embgeo 0.1).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from embgeo.core.errors import UnreadableFile, argument
from embgeo.gate.check import Measured
from embgeo.gate.rule_value import SCALES, Known, RuleValue, show
from embgeo.gate.text import round_digits
from embgeo.io.bounded.records import RecordFormat

FORMAT = RecordFormat(
    "embgeo.baseline",
    1,
    Measured,
    "baseline.json",
    what="a baseline",
    again=f"write it again with {argument('update_baseline')}",
)
#: Fields of an analysis' provenance that say what was measured, and by what.
KEPT = ("file", "tensor", "sha256", "dtype", "n", "d", "kept", "sections", "options", "versions")
#: Digits of a standard error: more would change with every run on another machine.
ERROR_DIGITS = 3


def render(matrices: Sequence[Measured], command: str) -> str:
    """The text of a baseline file: sorted by name, numbers with ten significant digits."""
    lines = [
        "{",
        f' "format": {_json(FORMAT.name)},',
        f' "format_version": {FORMAT.version},',
        f' "command": {_json(command)},',
        ' "matrices": [',
    ]
    for last, matrix in _marked(matrices):
        lines.append("  {")
        lines += [f'   "{k}": {_json(matrix.provenance[k])},' for k in KEPT]
        lines.append(f'   "absent": {_json(dict(sorted(matrix.absent.items())))},')
        lines.append('   "scalars": {')
        for end, name in _marked(sorted(matrix.readings)):
            entry = _json(to_json(matrix.readings[name]))
            lines.append(f"    {_json(name)}: {entry}{'' if end else ','}")
        lines += ["   }", "  }" if last else "  },"]
    return "\n".join([*lines, " ]", "}"]) + "\n"


def _marked(items: Sequence[Any]) -> list[tuple[bool, Any]]:
    return [(at == len(items) - 1, item) for at, item in enumerate(items)]


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False)


def to_json(reading: RuleValue) -> Any:
    """A bare number where it is exact, else an object that says what is known."""
    if reading.value is None:
        return {"undefined": reading.undefined}
    if reading.scale:
        return show(reading.value, reading.scale)
    value = round_digits(reading.value)
    if reading.known == "exact":
        return value
    if reading.standard_error is None:
        return {"value": value, "known": reading.known}
    known = {"value": value, "standard_error": round_digits(reading.standard_error, ERROR_DIGITS)}
    return known if reading.freedom is None else known | {"freedom": reading.freedom}


def is_baseline(path: Path) -> bool:
    """Whether a file begins like a baseline, of this version or another."""
    try:
        with path.open("rb") as stream:
            start = stream.read(4096)
    except OSError:
        return False
    return start.lstrip().startswith(b"{") and f'"{FORMAT.name}"'.encode() in start


def read(path: Path) -> list[Measured]:
    """The matrices of a baseline file."""
    content = FORMAT.read(path)
    try:
        matrices = [_matrix(entry) for entry in content["matrices"]]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UnreadableFile(
            f"damaged baseline ({type(error).__name__}: {error})",
            where=path,
            way_out=FORMAT.again,
        ) from error
    if not matrices:
        raise UnreadableFile("a baseline without a matrix", where=path)
    return matrices


def _matrix(entry: dict[str, Any]) -> Measured:
    readings = {str(name): from_json(value, name) for name, value in entry["scalars"].items()}
    absent = {str(section): str(why) for section, why in entry["absent"].items()}
    provenance = {key: entry[key] for key in KEPT}
    if not isinstance(provenance["sections"], list):
        raise TypeError("sections are not a list")
    return Measured(provenance, readings, (), absent)


def from_json(entry: Any, name: str = "") -> RuleValue:
    """What `to_json` wrote.

    Raises
    ------
    ValueError, TypeError
        Something else.
    """
    scale = SCALES.get(name, ())
    if entry in scale:
        return RuleValue(float(scale.index(entry)), scale=scale)
    if not isinstance(entry, dict):
        return RuleValue(_number(entry))
    if "undefined" in entry:
        return RuleValue.missing(str(entry["undefined"]))
    if "standard_error" in entry:
        error = _number(entry["standard_error"])
        if error < 0:
            raise ValueError(f"a standard error of {error}")
        freedom = entry.get("freedom")
        if freedom is not None and (type(freedom) is not int or freedom < 1):
            raise ValueError(f"{freedom!r} degrees of freedom")
        return RuleValue(_number(entry["value"]), error, "sampled", freedom=freedom)
    if entry["known"] not in get_args(Known):
        raise ValueError(f"known {entry['known']!r}")
    return RuleValue(_number(entry["value"]), None, entry["known"])


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    if not math.isfinite(value):
        raise ValueError(f"{value!r} is not finite")
    return float(value)
