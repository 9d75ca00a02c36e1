"""Matrices of few columns and of many: every section, and what the page shows of treatments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import floor, ours, plain, resident
from benchmarks.harness.answers import errors
from benchmarks.harness.contest import Bench
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix
from benchmarks.harness.row import Row, over_rounds, ratio, seconds
from benchmarks.harness.truth import compute_truth

TITLE = "Few columns and many, in process"


@dataclass(frozen=True)
class Sizes:
    few: tuple[Shape, ...]
    many: Shape


FULL = Sizes((Shape(39_078, 10), Shape(28_996, 2)), Shape(9_000, 4096))
TINY = Sizes((Shape(500, 10), Shape(500, 2)), Shape(200, 60))
OURS, BEFORE, TREE, FLOOR = "embgeo", "embgeo before", "ten neighbors by SciPy's tree", "floor"
BOUND_SECONDS, BOUND_GB = 3.0, 0.3


def measure(bench: Bench, sizes: Sizes = FULL) -> list[Row]:
    rows = [row for shape in sizes.few for row in measure_few(bench, shape)]
    return [*rows, *measure_many(bench, sizes.many)]


def measure_few(bench: Bench, shape: Shape) -> list[Row]:
    """Every section and the report's neighbors of all rows, beside a search for these alone."""
    path = write_matrix(shape, bench.scratch)
    file = {"path": str(path)}
    known = bench.call(compute_truth, file) | bench.call(plain.find_nearest, file)["answers"]
    asked = {
        **file,
        "sections": (*ours.GEOMETRY, "tokens", "suspects"),
        "reference": True,
        "page": True,
    }
    right = partial(check, known=known)
    right_tree = partial(errors, TREE, truth=known, tolerances={"nearest_cosine": 1e-12})
    contenders = list_contenders(bench, asked, right) | {
        TREE: bench.contender(plain.find_nearest, file, right_tree)
    }
    runs, what = bench.contest(contenders), f"every section, {shape.text}"
    seen = resident.watch(path, ours.from_file, asked)
    check(seen["answers"], known)
    return [
        seconds(what, runs[OURS], BOUND_SECONDS),
        ratio(what, runs[OURS], runs[TREE]),
        *([ratio(what, runs[OURS], runs[BEFORE])] if bench.before else []),
        over_rounds(f"peak, {what}", [seen["above"]], unit="GB", bound=BOUND_GB),
    ]


def measure_many(bench: Bench, shape: Shape) -> list[Row]:
    """Sections 1–4 with every treatment, which take eigenvalues of three further matrices."""
    path = write_matrix(shape, bench.scratch)
    known = bench.call(compute_truth, {"path": str(path)})
    warm_cache(path)
    asked = {"path": str(path), "sections": ours.GEOMETRY, "page": True}
    right = partial(floor.check, truth=known)
    contenders = list_contenders(bench, asked, partial(ours.check, truth=known)) | {
        FLOOR: bench.contender(floor.measure, {"path": str(path)}, right)
    }
    runs, what = bench.contest(contenders, 3), f"sections 1–4 and treatments, {shape.text}"
    before = [ratio(what, runs[OURS], runs[BEFORE])] if bench.before else []
    return [ratio(what, runs[OURS], runs[FLOOR]), *before]


def list_contenders(bench: Bench, asked: dict[str, Any], right: Any) -> dict[str, Any]:
    pythons: dict[str, Path | None] = {OURS: None}
    pythons |= {BEFORE: bench.before} if bench.before else {}
    return {
        name: bench.contender(ours.from_memory, asked, right, python)
        for name, python in pythons.items()
    }


def check(found: dict[str, Any], known: dict[str, Any]) -> dict[str, float]:
    """How far off the neighbors are; of two columns other numbers are differences of rounding."""
    return errors("embgeo", found, known, {"nearest_cosine": 1e-7, "top_share": 1e-7})
