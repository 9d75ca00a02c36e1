"""A matrix of GPT-2's size, in memory, against weightwatcher's analysis of it."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.harness import floor, ours, peers
from benchmarks.harness.contest import Bench
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix
from benchmarks.harness.row import Row, absent, ratio
from benchmarks.harness.truth import compute_truth

TITLE = "A matrix of GPT-2's size, in process"
FULL = Shape(50_257, 768)
TINY = Shape(600, 24)
GEOMETRY, EVERY, CALL = "embgeo, sections 1–4", "embgeo, every section", "embgeo, all defaults"
FLOOR, PEER = "floor", "weightwatcher"


def measure(bench: Bench, shape: Shape = FULL) -> list[Row]:
    path = write_matrix(shape, bench.scratch)
    known = bench.call(compute_truth, {"path": str(path)})
    warm_cache(path)
    file = {"path": str(path)}
    every = {**file, "sections": ours.EVERY, "labeled": True}
    calls: dict[str, dict[str, Any]] = {
        GEOMETRY: {**file, "sections": ours.GEOMETRY},
        EVERY: every,
        CALL: {**every, "reference": True},
    }
    right = partial(ours.check, truth=known)
    contenders = {
        name: bench.contender(ours.from_memory, asked, right) for name, asked in calls.items()
    }
    contenders[FLOOR] = bench.contender(floor.measure, file, partial(floor.check, truth=known))
    has_peer = "weightwatcher" in peers.list_installed(bench.peers)
    if has_peer:
        contenders[PEER] = bench.contender(
            peers.weightwatcher, file, partial(peers.check_weightwatcher, truth=known), bench.peers
        )
    runs = bench.contest(contenders)
    rows = []
    for name, bound, note in (
        (GEOMETRY, 0.6, "without isotropic reference"),
        (EVERY, 1.5, "with tokens and counts: probe, neighbors, pairs too"),
        (CALL, None, "isotropic reference too"),
    ):
        what = f"{name.removeprefix('embgeo, ')}, {shape.text}"
        if has_peer:
            rows.append(ratio(what, runs[name], runs[PEER], bound, note))
        else:
            rows.append(absent(f"{what}, against {PEER}", peers.MISSING, bound))
        rows.append(ratio(what, runs[name], runs[FLOOR]))
    return rows
