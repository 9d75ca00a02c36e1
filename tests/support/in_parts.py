"""A matrix measured in parts as several machines would; two analyses compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.matrix import Matrix
from embgeo.distributed import (
    add_rows,
    describe_part,
    extend_plan,
    files,
    finish,
    first_round,
    make_plan,
    second_round,
    take_first,
)
from embgeo.distributed.merging import merge_first, merge_second
from embgeo.distributed.plans import Fetch, read_plan, save_plan
from embgeo.distributed.rounds import read_task
from embgeo.distributed.states import save_first, save_second
from embgeo.result.analysis import Analysis

Cuts = Sequence[tuple[int, int]]


def even(n: int, parts: int) -> list[tuple[int, int]]:
    return [(n * i // parts, n * (i + 1) // parts) for i in range(parts)]


def first_files(matrix: Matrix, cuts: Cuts, folder: Path, **wanted: Any) -> list[files.Stored]:
    stored = []
    for number, (start, stop) in enumerate(cuts):
        part = describe_part(matrix, start, stop, total=matrix.n)
        path = folder / f"s{number}.npz"
        save_first(first_round(matrix, part, **wanted), path)
        stored.append(files.read(path, ("first",)))
    return stored


def second_files(matrix: Matrix, cuts: Cuts, plan: Path) -> list[files.Stored]:
    stored = []
    for number, (start, stop) in enumerate(cuts):
        part = describe_part(matrix, start, stop, total=matrix.n)
        path = plan.parent / f"t{number}.npz"
        save_second(second_round(read_task(files.read(plan)), matrix, part), plan, path)
        stored.append(files.read(path, ("second",)))
    return stored


def in_parts(
    matrix: Matrix, cuts: Cuts, folder: Path, fetch: Fetch | None = None, **wanted: Any
) -> tuple[Analysis, int]:
    """The analysis by files of states, and how many rounds it took."""
    plan = extend_plan(make_plan(merge_first(first_files(matrix, cuts, folder, **wanted))), fetch)
    for rounds in (2, 3, 4):
        path = folder / f"plan{rounds}.npz"
        save_plan(plan, path)
        stored = files.read(path, ("plan",))
        plan = read_plan(stored)
        seconds = second_files(matrix, cuts, path)
        second = merge_second(plan, stored.identity, seconds[::-1])
        if plan.repeats_first:
            plan = extend_plan(take_first(plan, second.statistics), fetch)
            continue
        gathered, plan = plan.only_gathers, add_rows(plan, second.rows)
        if not gathered:
            return finish(plan, second.statistics), rounds
        plan = extend_plan(plan)
    raise AssertionError("rows were asked for twice")


#: Found by an optimizer that stops about here; and the rounding of σ_d, times σ₁/σ_d.
LOOSE = {
    "spectrum.decay": 1e-5,
    "spectrum.decay_fit": 1e-5,
    "spectrum.condition_number": 1e-9,
    "spectrum.decay_slope": 1e-9,
    "frequency.weighted_effective_rank": 1e-9,
    "frequency.weighted_singular_values": 1e-9,
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
            check_same(mine, theirs, LOOSE.get(mine["name"], rel), mine["name"])
    for name in ("absent", "notes"):
        assert one[name] == other[name], name
    for mine, theirs in (
        *((p.xy, q.xy) for p, q in zip(found.points, expected.points, strict=True)),
        *((p.values, q.values) for p, q in zip(found.columns, expected.columns, strict=True)),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=rel, atol=rel * np.abs(theirs).max())
    np.testing.assert_array_equal(found.rows, expected.rows)
    assert found.tokens == expected.tokens
    for name in ("counts", "popular"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
