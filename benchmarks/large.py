"""The embedding of a large language model in bfloat16, against the products it cannot avoid."""

from __future__ import annotations

from functools import partial

from benchmarks.harness import floor, ours
from benchmarks.harness.answers import errors
from benchmarks.harness.contest import Bench
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix
from benchmarks.harness.row import Row, ratio
from benchmarks.harness.truth import compute_truth

TITLE = "Sections 1–4 of a large matrix, from its file"
FULL = Shape(128_256, 4096, "bfloat16")
TINY = Shape(700, 48, "bfloat16")
#: A round takes minutes.
USUAL_ROUNDS = 5
OURS = "embgeo"
FLOOR, SVD = "floor", "numpy.linalg.svd, float32"
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
    floor_right = partial(floor.check, truth=known)
    svd_right = partial(errors, SVD, truth=known, tolerances={"singular_values": 1e-4})
    runs = bench.contest(
        {
            OURS: bench.contender(ours.from_file, asked, right),
            FLOOR: bench.contender(floor.measure, file, floor_right),
            SVD: bench.contender(floor.float32_svd, file, svd_right),
        },
        USUAL_ROUNDS,
    )
    what = f"sections 1–4, {shape.text}"
    return [
        ratio(what, runs[OURS], runs[FLOOR], 1.3, ABOUT_FLOOR),
        ratio(what, runs[OURS], runs[SVD], 0.9, "svd alone, the matrix in memory as float32"),
    ]
