"""What ``--precision float32`` loses and what it gains."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benchmarks.harness import ours
from benchmarks.harness.answers import errors
from benchmarks.harness.contest import Bench, Runs
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix
from benchmarks.harness.row import Row, ratio
from benchmarks.harness.truth import compute_truth

TITLE = "What --precision float32 loses: sections 1–4"
FULL = {
    "ordinary": Shape(50_257, 768),
    "steep spectrum": Shape(50_257, 768, decay=1.0),
    "long rows": Shape(50_257, 768, length=20.0),
}
TINY = {"ordinary": Shape(300, 10), "long rows": Shape(300, 10, length=5.0)}
#: float32 may lose digits, not sense.
LOOSE = dict.fromkeys(ours.TOLERANCES, 1e-2)


def measure(bench: Bench, shapes: Mapping[str, Shape] = FULL) -> list[Row]:
    times, losses = [], {}
    for name, shape in shapes.items():
        exact, single = both(bench, shape, name)
        times.append(ratio(f"time, {shape.text}, {name}", single, exact))
        losses[name] = lost(exact, single)
    return [*times, *table(losses)]


def both(bench: Bench, shape: Shape, name: str) -> tuple[Runs, Runs]:
    """float64 and float32 of the same matrix."""
    path = write_matrix(shape, bench.scratch)
    known = bench.call(compute_truth, {"path": str(path)})
    warm_cache(path)
    contenders = {}
    for precision, tolerances in (("float64", ours.TOLERANCES), ("float32", LOOSE)):
        asked = {"path": str(path), "sections": ours.GEOMETRY, "precision": precision}
        right = partial(errors, precision, truth=known, tolerances=tolerances)
        contenders[f"{precision}, {name}"] = bench.contender(ours.from_memory, asked, right)
    exact, single = bench.contest(contenders).values()
    return exact, single


def lost(exact: Runs, single: Runs) -> dict[str, float]:
    """How far each number moved, relatively; the spectrum as a share of its largest value."""
    wanted, found = exact.results[0]["scalars"], single.results[0]["scalars"]
    moved = {name: relative(found[name], wanted[name]) for name in wanted if name in found}
    return {"spectrum.singular_values": single.errors["singular_values"], **moved}


def relative(found: float, wanted: float) -> float:
    return 0.0 if found == wanted else abs(found - wanted) / (abs(wanted) or abs(found))


def table(losses: Mapping[str, Mapping[str, float]]) -> list[Row]:
    """The worst loss of each number, and that on each matrix."""
    names = dict.fromkeys(name for moved in losses.values() for name in moved)
    rows = []
    for name in names:
        each = {matrix: moved[name] for matrix, moved in losses.items() if name in moved}
        note = ", ".join(f"{matrix} {value:.0e}" for matrix, value in each.items())
        rows.append(Row(f"loss of {name}", max(each.values()), note=note))
    return rows
