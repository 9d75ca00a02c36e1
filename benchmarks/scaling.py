"""How time grows with the rows and with the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import ours
from benchmarks.harness.contest import Bench, Runs
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix
from benchmarks.harness.row import Row, over_rounds
from benchmarks.harness.truth import compute_truth

TITLE = "Growth with rows and columns: sections 1–4, float32 in memory"


@dataclass(frozen=True)
class Sizes:
    """What is varied, and how long a time is taken at least."""

    rows: tuple[int, ...]
    columns: int
    widths: tuple[int, ...]
    height: int
    least_seconds: float


FULL = Sizes(
    rows=(10_000, 31_623, 100_000, 316_228, 1_000_000),
    columns=256,
    widths=(128, 256, 512, 1024, 2048),
    height=20_000,
    least_seconds=1.0,
)
TINY = Sizes(rows=(500, 1000), columns=12, widths=(8, 16), height=300, least_seconds=0.0)


def measure(bench: Bench, sizes: Sizes = FULL) -> list[Row]:
    tall = write_matrix(Shape(max(sizes.rows), sizes.columns), bench.scratch)
    wide = write_matrix(Shape(sizes.height, max(sizes.widths)), bench.scratch)
    with_rows = times(bench, tall, [(n, sizes.columns) for n in sizes.rows], sizes.least_seconds)
    with_columns = times(
        bench, wide, [(sizes.height, d) for d in sizes.widths], sizes.least_seconds
    )
    return [
        growth(f"exponent in N, d = {sizes.columns}", sizes.rows, with_rows, 1.05),
        growth("the same between the two longest", sizes.rows[-2:], with_rows[-2:]),
        growth(f"exponent in d, N = {sizes.height:,}", sizes.widths, with_columns),
        growth("the same between the two widest", sizes.widths[-2:], with_columns[-2:]),
    ]


def times(bench: Bench, path: Path, shapes: Sequence[tuple[int, int]], least: float) -> list[Runs]:
    """Of the first rows and columns of a matrix, the sizes in turn."""
    warm_cache(path)
    contenders = {}
    for rows, columns in shapes:
        part = {"path": str(path), "rows": rows, "columns": columns}
        known = bench.call(compute_truth, part)
        asked = {**part, "sections": ours.GEOMETRY, "least": least}
        contenders[f"{rows:,} × {columns:,}"] = bench.contender(
            ours.from_memory, asked, partial(ours.check, truth=known)
        )
    return list(bench.contest(contenders).values())


def growth(
    what: str, sizes: Sequence[int], runs: Sequence[Runs], bound: float | None = None
) -> Row:
    """The exponent of a power law through the times of one round; the median over the rounds."""
    by_round = zip(*(one.seconds for one in runs), strict=True)
    return over_rounds(what, [exponent(sizes, seconds) for seconds in by_round], runs, bound=bound)


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Least squares in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
