"""Peak resident memory above the mapped file, at the size of a large language model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from subprocess import Popen

from benchmarks.harness import ours, resident
from benchmarks.harness.call import Result, in_a_process
from benchmarks.harness.contest import Bench
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix
from benchmarks.harness.row import Row, absent, over_rounds
from benchmarks.harness.truth import compute_truth

TITLE = "Peak resident memory above the mapped file"
FULL = Shape(128_256, 4096, "bfloat16")
TINY = Shape(700, 48, "bfloat16")
#: Peaks hardly differ between runs of some minutes each.
USUAL_ROUNDS = 1
BOUND_GB = 1.0
GIGA = 1e9


def measure(bench: Bench, shape: Shape = FULL) -> list[Row]:
    if not resident.available():
        return [absent(f"peak, {shape.text}", "only Linux tells it apart", BOUND_GB)]
    path = write_matrix(shape, bench.scratch)
    known = bench.call(compute_truth, {"path": str(path)})
    warm_cache(path)
    rows = []
    for name, asked, bound in (
        ("sections 1–4", {"sections": ours.GEOMETRY}, BOUND_GB),
        ("every section, tokens and counts", {"labeled": True}, None),
    ):
        rounds = bench.runs or USUAL_ROUNDS
        seen = [peak(path, asked) for _ in range(rounds)]
        for result in seen:
            ours.check(result["answers"], known)
        rows += lines(f"{name}, {shape.text}", seen, bound)
    return rows


def peak(path: Path, asked: Result) -> Result:
    """An analysis in a process of its own, with the most memory that it ever held."""

    def watch(process: Popen[bytes]) -> Result:
        most = resident.peak(process, path)
        return {"above": most.above / GIGA, "anonymous": most.anonymous / GIGA}

    return in_a_process(ours.from_file, {"path": str(path), **asked}, watch=watch)


def lines(what: str, seen: Sequence[Result], bound: float | None) -> list[Row]:
    line = partial(over_rounds, unit="GB")
    return [
        line(
            f"peak, {what}",
            [result["above"] for result in seen],
            bound=bound,
            note="all resident pages but those of the matrix's file: imports and libraries too",
        ),
        line(
            f"of that anonymous, {what}",
            [result["anonymous"] for result in seen],
            note="pages of no file at all",
        ),
    ]
