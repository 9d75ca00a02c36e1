"""Saved results for the tests of paper figures: analyses and logs in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.core.values import Points
from embgeo.result.analysis import Analysis
from tests.support.sample_analysis import sample


def add_neighbors(analysis: Analysis, *words: tuple[str, Sequence[str]]) -> Analysis:
    """The analysis as if these words had been asked for with --show-neighbors."""
    options = {"show_neighbors": [[word, list(others)] for word, others in words]}
    return replace(analysis, provenance={**analysis.provenance, "options": options})


def with_cloud(analysis: Analysis, name: str, xy: Any) -> Analysis:
    """The analysis with other coordinates in one projection."""
    changed = [
        replace(p, xy=np.asarray(xy, dtype=np.float64)) if p.name == name else p
        for p in analysis.points
    ]
    assert all(isinstance(p, Points) for p in changed)
    return replace(analysis, points=tuple(changed))


def save_analyses(folder: Path, **analyses: Analysis) -> list[str]:
    """Save analyses under their names; the paths as arguments of a command."""
    for name, analysis in analyses.items():
        analysis.save(folder / name)
    return [str(folder / name) for name in analyses]


def write_log(folder: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    """A ``metrics.jsonl`` in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "metrics.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def large_cloud(n: int) -> Analysis:
    """An analysis of `n` tokens with little in it but a cloud of points."""
    small = sample(n=600)
    rng = np.random.default_rng(0)
    xy = rng.standard_normal((n, 2)) @ np.array([[1.5, 0.2], [0.0, 0.8]]) + 1.0
    points = tuple(replace(p, xy=xy) for p in small.points if p.name == "projection.svd2")
    return Analysis(
        provenance={**small.provenance, "n": n, "kept": n},
        points=points,
        rows=np.arange(n, dtype=np.int64),
        counts=np.floor(1e6 / np.arange(1, n + 1)),
        popular=np.arange(n) < n // 5,
    )
