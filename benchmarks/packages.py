"""A smaller matrix, against packages that answer one question each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.harness import ours, peers, plain
from benchmarks.harness.answers import errors
from benchmarks.harness.contest import Bench, Runs
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix
from benchmarks.harness.row import Row, absent, ratio
from benchmarks.harness.truth import compute_truth

TITLE = "Packages that answer one question, in process"
FULL = Shape(20_000, 300)
TINY = Shape(500, 16)
#: Contender → the sections of embgeo that hold its answer, and its package.
QUESTIONS = {
    "weightwatcher": (ours.GEOMETRY, "weightwatcher"),
    "IsoScore": (("isotropy",), "isoscore"),
    "I1 by a loop over eigenvectors": (("isotropy",), ""),
    "scikit-dimension, TwoNN": (("tokens",), "scikit-dimension"),
}


def measure(bench: Bench, shape: Shape = FULL) -> list[Row]:
    path = write_matrix(shape, bench.scratch)
    known = bench.call(compute_truth, {"path": str(path)}) | bench.call(
        plain.two_nn, {"path": str(path)}
    )
    warm_cache(path)
    file = {"path": str(path)}
    contenders = {
        name_of(sections): bench.contender(
            ours.from_memory, {**file, "sections": sections}, partial(check, known=known)
        )
        for sections, _ in QUESTIONS.values()
    }
    loop = "I1 by a loop over eigenvectors"
    contenders[loop] = bench.contender(
        plain.isotropy_loop, file, lambda found: errors(loop, found, known, {"i1": 1e-9})
    )
    have = peers.list_installed(bench.peers)
    for name, work, right in (
        ("weightwatcher", peers.weightwatcher, peers.check_weightwatcher),
        ("IsoScore", peers.isoscore, peers.check_isoscore),
        ("scikit-dimension, TwoNN", peers.two_nn, peers.check_two_nn),
    ):
        if QUESTIONS[name][1] in have:
            contenders[name] = bench.contender(work, file, partial(right, truth=known), bench.peers)
    runs = bench.contest(contenders)
    return [make_row(name, sections, shape, runs) for name, (sections, _) in QUESTIONS.items()]


def name_of(sections: tuple[str, ...]) -> str:
    return f"embgeo, {', '.join(sections)}"


def make_row(name: str, sections: tuple[str, ...], shape: Shape, runs: Mapping[str, Runs]) -> Row:
    what = f"{', '.join(sections)}, {shape.text}"
    if name not in runs:
        return absent(f"{what}, against {name}", peers.MISSING)
    return ratio(what, runs[name_of(sections)], runs[name])


def check(found: dict[str, Any], known: dict[str, Any]) -> dict[str, float]:
    """How far off what the sections hold is; the dimension, which is sampled, by its error."""
    dimension = found.pop("dimension", None)
    tolerances = {name: most for name, most in ours.TOLERANCES.items() if name in found}
    seen = errors("embgeo", found, known, tolerances)
    if dimension is not None:
        value, error = dimension
        most = 1e-9 if error is None else 4 * error / known["dimension"]
        seen |= errors("embgeo", {"dimension": value}, known, {"dimension": most})
    return seen
