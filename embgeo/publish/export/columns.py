"""An analysis as columns: one entry a kept row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.charts.lookup import find_frequencies
from embgeo.core.values import Cell, Column, Points
from embgeo.result.analysis import Analysis

Array = npt.NDArray[Any]


def frequency(analysis: Analysis) -> tuple[str, Array] | None:
    """``"count"`` or ``"rank"`` with the values; None where the analysis does not say."""
    known = find_frequencies(analysis)
    return None if known is None else (known.kind, as_whole(known.values))


def as_whole(values: Array) -> Array:
    """As integers, where all of them are."""
    integers = values.astype(np.int64)
    return integers if np.array_equal(integers, values) else values


def collect_arrays(analysis: Analysis) -> dict[str, Array]:
    """Every column but the tokens, by name; coordinates keep both axes, shape (M, 2)."""
    found: dict[str, Array] = {"row": analysis.rows}
    known = frequency(analysis)
    if known is not None:
        found[known[0]] = known[1]
    if analysis.popular is not None:
        found["popular"] = analysis.popular
    for column in analysis.columns:
        found[column.name] = column.values
    for points in analysis.points:
        found[points.name] = points.xy
    return found


def collect_columns(analysis: Analysis) -> dict[str, Sequence[Cell] | Array]:
    """Every column with one entry a row, the tokens after the row numbers."""
    found: dict[str, Sequence[Cell] | Array] = {}
    for name, values in collect_arrays(analysis).items():
        if values.ndim == 2:
            found |= {f"{name}.x": values[:, 0], f"{name}.y": values[:, 1]}
        else:
            found[name] = values
        if name == "row" and analysis.tokens is not None:
            found["token"] = analysis.tokens
    return found


def iterate_rows(columns: dict[str, Sequence[Cell] | Array]) -> Iterator[tuple[Cell, ...]]:
    """The columns row by row; truth as ``true`` and ``false``."""
    plain = [
        np.where(c, "true", "false").tolist() if isinstance(c, np.ndarray) and c.dtype == bool
        else c.tolist() if isinstance(c, np.ndarray)
        else c
        for c in columns.values()
    ]  # fmt: skip
    return zip(*plain, strict=True)


def describe_columns(analysis: Analysis) -> dict[str, dict[str, str]]:
    """What each measured column is: title, meaning, formula and source."""
    measured: list[Column | Points] = [*analysis.columns, *analysis.points]
    return {
        value.name: {
            "title": value.quantity.title,
            "meaning": value.quantity.meaning,
            "formula": value.quantity.formula,
            "source": value.quantity.source,
        }
        for value in measured
    }


def thin_rows(
    falling: npt.NDArray[np.float64] | None, rows: int, most: int
) -> npt.NDArray[np.int64]:
    """Positions of at most `most` of the rows, evenly over the order of frequency.

    Parameters
    ----------
    falling : float64 array, shape (rows,), or None
        Larger for more frequent tokens; None where nothing is known: then evenly over the rows.

    Returns
    -------
    int array
        Rising.
    """
    order = np.arange(rows) if falling is None else np.argsort(-falling, kind="stable")
    if rows > most:
        order = order[np.linspace(0, rows - 1, most).round().astype(np.int64)]
    return np.sort(order).astype(np.int64)
