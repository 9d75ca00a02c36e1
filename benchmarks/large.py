"""The embedding of a large language model in bfloat16, against the products it cannot avoid."""

from __future__ import annotations

from functools import partial

from benchmarks.harness import floor, ours
from benchmarks.harness.contest import Bench
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix
from benchmarks.harness.row import Row, ratio
from benchmarks.harness.truth import compute_truth

TITLE = "Sections 1–4 of a large matrix, from its file"
FULL = Shape(128_256, 4096, "bfloat16")
TINY = Shape(700, 48, "bfloat16")
#: A round takes minutes.
USUAL_ROUNDS = 1
OURS, BEFORE, FLOOR = "embgeo", "embgeo before", "floor"
ABOUT_FLOOR = (
    "from load (hash included) to result; floor: read, one float64 and one "
    "float32 syrk pass, eigh, one float32 product with the eigenvectors"
)


def measure(bench: Bench, shape: Shape = FULL) -> list[Row]:
    path = write_matrix(shape, bench.scratch)
    known = bench.call(compute_truth, {"path": str(path)})
    warm_cache(path)
    file = {"path": str(path)}
    asked = {**file, "sections": ours.GEOMETRY}
    right = partial(ours.check, truth=known)
    contenders = {
        OURS: bench.contender(ours.from_file, asked, right),
        FLOOR: bench.contender(floor.measure, file, partial(floor.check, truth=known)),
    }
    if bench.before:
        contenders[BEFORE] = bench.contender(ours.from_file, asked, right, bench.before)
    runs = bench.contest(contenders, USUAL_ROUNDS)
    what = f"sections 1–4, {shape.text}"
    rows = [ratio(what, runs[OURS], runs[FLOOR], 1.15, ABOUT_FLOOR)]
    if bench.before:
        moved = ours.list_moved(runs[BEFORE], runs[OURS])
        rows.append(ratio(what, runs[OURS], runs[BEFORE], None, moved))
    return rows
