"""A matrix measured in parts by an engine in this process; two analyses compared."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embgeo.core.matrix import Matrix
from embgeo.distributed.passes import Part, PassState, PassTask, run_pass
from embgeo.distributed.reader import analyze_remotely
from embgeo.result.analysis import Analysis
from embgeo.stats.resources import Resources

Cuts = Sequence[tuple[int, int]]


def even(n: int, parts: int) -> list[tuple[int, int]]:
    return [(n * i // parts, n * (i + 1) // parts) for i in range(parts)]


class EngineHere:
    """Measures the parts of a matrix one after the other; counts its passes."""

    def __init__(self, matrix: Matrix, cuts: Cuts) -> None:
        self.matrix = matrix
        self.parts = [Part(start, stop) for start, stop in cuts]
        self.tasks: list[PassTask] = []

    def run(self, task: PassTask, advance: Callable[[int], None]) -> PassState:
        self.tasks.append(pickle.loads(pickle.dumps(task)))
        states = []
        for part in self.parts:
            own, output = slice(part.start, part.stop), self.matrix.output
            if output is not None:
                output = replace(output, data=output.data[own])
            piece = replace(self.matrix, data=self.matrix.data[own], output=output, hidden=None)
            states.append(run_pass(self.tasks[-1], piece, part.start, Resources(threads=1)))
            advance(part.stop - part.start)
        while len(states) > 1:
            states[-2].merge(pickle.loads(pickle.dumps(states.pop())))
        return states[0]


def through(engine: EngineHere, **wanted: Any) -> Analysis:
    """The analysis of the matrix of an engine."""
    return analyze_remotely(engine.matrix, engine.parts, engine.run, **wanted)


def in_parts(matrix: Matrix, cuts: Cuts, **wanted: Any) -> Analysis:
    """The analysis of a matrix that is cut into parts."""
    return through(EngineHere(matrix, cuts), **wanted)


#: Found by an optimizer that stops about here; and the rounding of σ_d, times σ₁/σ_d.
LOOSE = {
    "spectrum.decay": 1e-5,
    "spectrum.largest_p": 1e-5,
    "spectrum.decay_fit": 1e-5,
    "spectrum.condition_number": 4e-9,
}


def is_number(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool)


def check_same(found: Any, expected: Any, rel: float = 1e-12, at: str = "") -> None:
    """Equal in everything but the rounding of numbers; `found` and `expected` are JSON."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), at
        for key in expected:
            check_same(found[key], expected[key], rel, f"{at}.{key}")
    elif isinstance(expected, list) and expected and all(map(is_number, expected)):
        scale = max(1.0, *map(abs, expected))
        np.testing.assert_allclose(found, expected, rtol=rel, atol=rel * scale, err_msg=at)
    elif isinstance(expected, list):
        assert len(found) == len(expected), at
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            check_same(one, other, rel, f"{at}[{number}]")
    elif isinstance(expected, float) and isinstance(found, float):
        assert math.isclose(found, expected, rel_tol=rel, abs_tol=rel), (at, found, expected)
    else:
        assert found == expected, at


def check_analyses(found: Analysis, expected: Analysis, rel: float = 1e-12) -> None:
    """Every value of two analyses, by name; and everything that has an entry a row."""
    one, other = found.to_dict(), expected.to_dict()
    for whole in (one, other):
        whole["scalars"] = list(whole["scalars"].values())
    for kind in ("scalars", "series", "histograms", "points", "columns", "tables"):
        assert [v["name"] for v in one[kind]] == [v["name"] for v in other[kind]]
        for mine, theirs in zip(one[kind], other[kind], strict=True):
            # Near-identical rows are not searched in parts.
            if mine["name"] in ("suspects.near_identical", "suspects.mean_cosine_others"):
                continue
            check_same(mine, theirs, LOOSE.get(mine["name"], rel), mine["name"])
    for name in ("absent", "notes"):
        assert one[name] == other[name], name
    for mine, theirs in (
        *((p.xy, q.xy) for p, q in zip(found.points, expected.points, strict=True)),
        *((p.values, q.values) for p, q in zip(found.columns, expected.columns, strict=True)),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=rel, atol=rel * np.abs(theirs).max())
    np.testing.assert_array_equal(found.rows, expected.rows)
    if found.nearest is None:
        # Neighbors of all rows are not searched in parts, those that a section names are.
        assert expected.nearest is None or "tokens" not in expected.provenance["sections"]
    else:
        assert expected.nearest is not None
        np.testing.assert_array_equal(found.nearest.rows, expected.nearest.rows)
        np.testing.assert_allclose(found.nearest.cosines, expected.nearest.cosines, atol=1e-6)
    assert found.tokens == expected.tokens
    for name in ("counts", "popular"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
