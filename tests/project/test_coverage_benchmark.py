"""The benchmark of coverage runs, and marks intervals that do not hold what they claim."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import coverage
from embgeo.core.values import Quantity
from embgeo.result.analysis import Analysis

NUMBER = Quantity("cosine.mean", "Mean", "")


def drawn(claimed: float) -> list[Analysis]:
    rng = np.random.default_rng(0)
    return [
        Analysis({}, scalars=(NUMBER.measured(value, population_error=claimed),))
        for value in rng.standard_normal(2_000)
    ]


@pytest.mark.parametrize(("claimed", "held"), [(1.0, 0.95), (0.5, 0.67), (2.0, 1.0)])
@pytest.mark.slow
def test_coverage_is_that_of_the_intervals(claimed, held):
    ((name, share, ratio),) = coverage.cover(drawn(claimed), "population", {})
    assert name == NUMBER.name
    assert share == pytest.approx(held, abs=0.015)
    assert ratio == pytest.approx(claimed, rel=0.05)


def test_a_known_truth_takes_the_place_of_the_mean():
    ((_, share, _),) = coverage.cover(drawn(1.0), "population", {NUMBER.name: 5.0})
    assert share < 0.01


def test_what_is_outside_is_marked(capsys):
    coverage.show("cone", "a.b", 0.95, 1.0)
    coverage.show("cone", "a.b", 0.99, 1.0)
    coverage.show("cone", "a.b", 0.99, 1.0, conservative=True)
    inside, outside, conservative = capsys.readouterr().out.splitlines()
    assert "<--" not in inside + conservative
    assert outside.endswith("<--")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "table", ["population_errors", "unseen_populations", "differences", "paired_differences"]
)
def test_each_table_is_made(table, monkeypatch, capsys):
    monkeypatch.setattr(coverage, "ROWS", 100)
    monkeypatch.setattr(coverage, "POPULATIONS", (coverage.cone,))
    getattr(coverage, f"show_{table}")(2)
    assert "cone" in capsys.readouterr().out


@pytest.mark.nightly
def test_two_draws_of_one_population_rarely_differ():
    """Of 25 comparisons about one may; before, 85% of them did."""
    flagged = [
        coverage.is_flagged(
            coverage.compare_matrices(
                (
                    coverage.draw_matrix(coverage.cone, s),
                    coverage.draw_matrix(coverage.cone, s + 50),
                ),
                (0, 0),
            )
        )
        for s in range(25)
    ]
    assert sum(flagged) <= 4
