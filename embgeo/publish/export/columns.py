"""An analysis as columns with one entry a kept row."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.charts.lookup import find_frequencies
from embgeo.core.values import Cell, Column, Points
from embgeo.result.analysis import Analysis

Array = npt.NDArray[Any]


def frequency(analysis: Analysis) -> tuple[str, Array] | None:
    """Return ``"count"`` or ``"rank"`` with the values, as integers if all are whole."""
    known = find_frequencies(analysis)
    if known is None:
        return None
    integers = known.values.astype(np.int64)
    return known.kind, integers if np.array_equal(integers, known.values) else known.values


def collect_columns(analysis: Analysis) -> dict[str, Sequence[Cell] | Array]:
    """Collect all columns by name, the tokens after the row numbers, coordinates as two columns."""
    found: dict[str, Sequence[Cell] | Array] = {"row": analysis.rows}
    if analysis.tokens is not None:
        found["token"] = analysis.tokens
    known = frequency(analysis)
    if known is not None:
        found[known[0]] = known[1]
    if analysis.popular is not None:
        found["popular"] = analysis.popular
    for column in analysis.columns:
        found[column.name] = column.values
    for points in analysis.points:
        found |= {f"{points.name}.x": points.xy[:, 0], f"{points.name}.y": points.xy[:, 1]}
    return found


def iterate_rows(columns: dict[str, Sequence[Cell] | Array]) -> Iterator[tuple[Cell, ...]]:
    """Return the columns row by row; booleans as ``true`` and ``false``."""
    plain = [
        np.where(c, "true", "false").tolist() if isinstance(c, np.ndarray) and c.dtype == bool
        else c.tolist() if isinstance(c, np.ndarray)
        else c
        for c in columns.values()
    ]  # fmt: skip
    return zip(*plain, strict=True)


def describe_columns(analysis: Analysis) -> dict[str, dict[str, str]]:
    """Describe each measured column: title, meaning, formula and source."""
    measured: list[Column | Points] = [*analysis.columns, *analysis.points]
    keys = ("title", "meaning", "formula", "source")
    return {one.name: {key: getattr(one.quantity, key) for key in keys} for one in measured}


def thin_rows(falling: Array | None, rows: int, most: int | None) -> npt.NDArray[np.int64]:
    """Return the ascending positions of at most `most` rows, evenly over the order of frequency.

    `falling` is larger for more frequent tokens; without it, rows are taken evenly.
    """
    order = np.arange(rows)
    if falling is not None:
        order = np.argsort(-falling.astype(np.float64), kind="stable")
    if most is not None and rows > most:
        order = order[np.linspace(0, rows - 1, most).round().astype(np.int64)]
    return np.sort(order).astype(np.int64)
