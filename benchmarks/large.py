"""The embedding of a large language model in bfloat16: time and peak memory.

Time is compared with the products that no analysis can avoid; of memory, the pages of the matrix's
file do not count.
"""

from __future__ import annotations

from functools import partial

from benchmarks.harness import floor, ours, resident
from benchmarks.harness.contest import Bench
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix
from benchmarks.harness.row import Row, absent, over_rounds, ratio
from benchmarks.harness.truth import compute_truth

TITLE = "A large matrix, from its file"
FULL = Shape(128_256, 4096, "bfloat16")
TINY = Shape(700, 48, "bfloat16")
#: A round takes minutes.
USUAL_ROUNDS = 1
BOUND_GB = 1.0
ABOUT_PEAK = "all resident pages but those of the matrix's file: imports and libraries too"
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
    if not resident.available():
        return [*rows, absent(f"peak, {what}", "only Linux tells it apart", BOUND_GB)]
    for name, more, bound in (
        (what, {"sections": ours.GEOMETRY}, BOUND_GB),
        (f"every section, tokens and counts, {shape.text}", {"labeled": True, "page": True}, None),
    ):
        seen = resident.watch(path, ours.from_file, more)
        ours.check(seen["answers"], known)
        rows += [
            over_rounds(f"peak, {name}", [seen["above"]], unit="GB", bound=bound, note=ABOUT_PEAK),
            over_rounds(f"of that anonymous, {name}", [seen["anonymous"]], unit="GB"),
        ]
    return rows
