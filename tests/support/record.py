"""Records: what code gives, line by line under a name, in a text file beside the test, to be read.

``pytest -n 0 --update-refusals PATH`` writes them, as it does refusals.txt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest

import embgeo
from tests.support import refusals

PINNED = (Path(__file__).parents[2] / "constraints.txt").read_text("utf-8").split("\n")
#: Where Matplotlib puts things differs between its versions.
drawn_by_pinned = pytest.mark.skipif(
    f"matplotlib=={version('matplotlib')}" not in PINNED,
    reason="recorded with the Matplotlib of constraints.txt",
)
DECIMAL = re.compile(r"-?\d+\.\d*(?:e[+-]\d+)?")


def check_record(file: Path, name: str, lines: Iterable[str], apart: float = 0.0) -> None:
    """Each line is the recorded one; numbers with a point may differ by `apart`, or that share."""
    found, held = [escape(line) for line in lines], read_record(file)
    if refusals.UPDATE:
        held[name] = found
        text = "".join(f"{key}\n" + "".join(f"  {one}\n" for one in held[key]) for key in held)
        file.write_text(text, "utf-8", newline="\n")
    for now, before in zip_longest(found, held[name], fillvalue="no line"):
        if not (apart and is_near(now, before, apart)):
            assert now == before, f"{file.name}, {name}: {now!r} was {before!r}"


def escape(line: str) -> str:
    """The line as it is on every machine and of every version."""
    shown = re.sub(rf'(embgeo |"){re.escape(embgeo.__version__)}\b', r"\1VERSION", line)
    shown = re.sub(r"\d(\.\d+)?e-1[4-9]", "ROUNDING", shown)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown)


def read_record(file: Path) -> dict[str, list[str]]:
    held: dict[str, list[str]] = {}
    for line in file.read_text("utf-8").split("\n")[:-1] if file.is_file() else ():
        if line.startswith("  "):
            held[next(reversed(held))].append(line[2:])
        else:
            held[line] = []
    return held


def is_near(now: str, before: str, apart: float) -> bool:
    """Whether only numbers differ, of as many digits each, and by little."""
    if DECIMAL.sub("#", now) != DECIMAL.sub("#", before):
        return False
    pairs = list(zip(DECIMAL.findall(now), DECIMAL.findall(before), strict=True))
    if any(count_digits(one) != count_digits(other) for one, other in pairs):
        return False
    values = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return np.allclose(values[:, 0], values[:, 1], rtol=apart, atol=apart)


def count_digits(number: str) -> int:
    return len(number.partition("e")[0].replace(".", "").lstrip("-0"))
