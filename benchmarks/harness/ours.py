"""embgeo, in a process where everything is imported and nothing was measured before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from benchmarks.harness import clock
from benchmarks.harness.answers import errors
from benchmarks.harness.call import Wrong
from benchmarks.harness.matrices import cut

if TYPE_CHECKING:
    from benchmarks.harness.contest import Runs
    from embgeo.result.analysis import Analysis

#: Sections 1 to 4 of the definitions.
GEOMETRY = ("spectrum", "projection", "cosine", "isotropy")
#: All that a single matrix with tokens and counts has.
EVERY = (*GEOMETRY, "frequency", "tokens")
#: How far an answer may be off: singular values as a share of the largest, the rest relatively.
#: Scatter matrices and the products for Z are float32, right to 1e-6 at worst; I1 is a ratio of two
#: Z, I2 a difference of Z that nearly agree.
TOLERANCES = {
    "singular_values": 1e-7,
    "top_share": 1e-7,
    "effective_rank": 1e-7,
    "mean_cosine": 1e-9,
    "std_cosine": 1e-6,
    "i1": 2e-6,
    "i2": 1e-5,
    "isoscore": 1e-7,
}
#: Scalars that differ by more than this share of themselves have moved.
MOVED = 1e-6
SCALARS = {
    "spectrum.top_share": "top_share",
    "spectrum.effective_rank": "effective_rank",
    "cosine.mean": "mean_cosine",
    "cosine.std": "std_cosine",
    "isotropy.i1": "i1",
    "isotropy.i2": "i2",
    "isotropy.isoscore": "isoscore",
}


def from_file(path: str, **asked: Any) -> dict[str, Any]:
    """Load a file, hash included, and analyze it."""
    import embgeo

    warm_up(asked)
    began = clock.now()
    analysis = analyze_sections(embgeo.load(path), **asked)
    return summarize(analysis, clock.now() - began)


def from_memory(
    path: str, rows: int | None = None, columns: int | None = None, least: float = 0.0, **asked: Any
) -> dict[str, Any]:
    """Analyze an array; again until `least` seconds are over, and the median of these times."""
    W = cut(Path(path), rows, columns)
    warm_up(asked)
    taken: list[float] = []
    while not taken or sum(taken) < least:
        began = clock.now()
        analysis = analyze_sections(W, **asked)
        taken.append(clock.now() - began)
    return summarize(analysis, float(np.median(taken)))


def warm_up(asked: dict[str, Any]) -> None:
    """Import what the analysis imports as it goes along."""
    few = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
    analyze_sections(few, **asked)


def analyze_sections(
    W: Any,
    sections: Sequence[str] = EVERY,
    reference: bool = False,
    labeled: bool = False,
    precision: Literal["float64", "float32"] = "float64",
    page: bool = False,
) -> Analysis:
    """An analysis; `labeled` gives the rows tokens and counts that fall as 1/rank.

    With `page`, also what a report alone shows: treatments, and neighbors of many rows.

    Raises
    ------
    Wrong
        If a section was left out.
    """
    import embgeo
    from embgeo.measure.analyze import analyze

    W = W if isinstance(W, embgeo.Matrix) else embgeo.Matrix(W)
    options = embgeo.Options(precision=precision)
    analysis: Analysis
    if page:
        analysis = embgeo.analyze(
            W,
            tokens=labels(W.n) if labeled else None,
            counts=counts(W.n) if labeled else None,
            sections=sections,
            options=options,
            reference=reference,
        )
    else:
        analysis = analyze(W, sections=sections, options=options, reference=reference, page=False)
    if missing := set(sections) - {scalar.quantity.family for scalar in analysis.scalars}:
        raise Wrong(f"embgeo left out {', '.join(sorted(missing))}")
    return analysis


def labels(n: int) -> tuple[str, ...]:
    return tuple(f"t{row}" for row in range(n))


def counts(n: int) -> npt.NDArray[np.float64]:
    return np.asarray(np.floor(1e8 / (1.0 + np.arange(n))))


def summarize(analysis: Analysis, seconds: float) -> dict[str, Any]:
    scalars = {s.name: s.value for s in analysis.scalars if s.value is not None}
    answers, near = collect_answers(analysis.to_dict()), analysis.nearest
    if near is not None and len(near.rows) == len(analysis.rows):
        answers["nearest_cosine"] = float(near.cosines[:, 0].mean(dtype=np.float64))
    stages = analysis.timing
    return {"seconds": seconds, "stages": stages, "answers": answers, "scalars": scalars}


def collect_answers(analysis: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a saved analysis that are checked, by their names in the truth."""
    found = {
        SCALARS[scalar["name"]]: scalar["value"]
        for scalar in analysis["scalars"].values()
        if scalar["name"] in SCALARS
    }
    curves = {series["name"]: series["y"] for series in analysis["series"]}
    if "spectrum.singular_values" in curves:
        found["singular_values"] = curves["spectrum.singular_values"]["uncentered"]
    for scalar in analysis["scalars"].values():
        if scalar["name"] == "tokens.intrinsic_dimension":
            found["dimension"] = (scalar["value"], scalar["standard_error"])
    return found


def list_moved(before: Runs, now: Runs) -> str:
    """List the scalars that differ by more than 1e-6 between two trees, and those of one only."""
    old, new = (runs.results[-1]["scalars"] for runs in (before, now))
    moved = [
        f"{name} {old[name]!r} → {new[name]!r}"
        for name in sorted(old.keys() & new.keys())
        if abs(new[name] - old[name]) > MOVED * max(abs(old[name]), 1e-3)
    ]
    moved += [f"{name} only in one" for name in sorted(old.keys() ^ new.keys())]
    both = len(old.keys() & new.keys())
    return f"moved by more than {MOVED:g} among {both} scalars: {'; '.join(moved) or 'none'}"


def check(found: dict[str, Any], truth: dict[str, Any]) -> dict[str, float]:
    """How far off the checked numbers of sections 1 to 4 are; raises Wrong."""
    return errors("embgeo", found, truth, TOLERANCES)
