"""A matrix of GPT-2's size, in memory, against an earlier tree, the floor and weightwatcher."""

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
GEOMETRY, TREATED = "sections 1–4", "sections 1–4 and treatments"
CALL = "default call with counts"
FLOOR, PEER = "floor", "weightwatcher"


def measure(bench: Bench, shape: Shape = FULL) -> list[Row]:
    path = write_matrix(shape, bench.scratch)
    known = bench.call(compute_truth, {"path": str(path)})
    warm_cache(path)
    file = {"path": str(path)}
    calls: dict[str, dict[str, Any]] = {
        GEOMETRY: {**file, "sections": ours.GEOMETRY},
        TREATED: {**file, "sections": ours.GEOMETRY, "page": True},
        CALL: {**file, "sections": ours.EVERY, "labeled": True, "reference": True, "page": True},
    }
    right = partial(ours.check, truth=known)
    contenders = {}
    for name, asked in calls.items():
        contenders[name] = bench.contender(ours.from_memory, asked, right)
        if bench.before:
            earlier = bench.contender(ours.from_memory, asked, right, bench.before)
            contenders[f"{name} before"] = earlier
    contenders[FLOOR] = bench.contender(floor.measure, file, partial(floor.check, truth=known))
    has_peer = "weightwatcher" in peers.list_installed(bench.peers)
    if has_peer:
        contenders[PEER] = bench.contender(
            peers.weightwatcher, file, partial(peers.check_weightwatcher, truth=known), bench.peers
        )
    runs = bench.contest(contenders)
    rows = []
    for name, of_floor, of_peer in (
        (GEOMETRY, 1.5, 0.5),
        (TREATED, None, None),
        (CALL, None, 1.5),
    ):
        what = f"{name}, {shape.text}"
        if bench.before:
            before = runs[f"{name} before"]
            rows.append(ratio(what, runs[name], before, None, ours.list_moved(before, runs[name])))
        rows.append(ratio(what, runs[name], runs[FLOOR], of_floor))
        if has_peer:
            rows.append(ratio(what, runs[name], runs[PEER], of_peer))
        else:
            rows.append(absent(f"{what}, against {PEER}", peers.MISSING, of_peer))
    return rows
