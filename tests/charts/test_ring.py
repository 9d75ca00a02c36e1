"""Rows that form a clump have a ring on every map, with their number and a few of them."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

import embgeo
from embgeo.charts.items import ChartItem
from embgeo.charts.render import paper
from embgeo.charts.render.drawing import draw
from embgeo.charts.render.svg import render_svg
from embgeo.charts.scatter import PLAIN, find_ring
from embgeo.charts.specification import Choices, Specification
from embgeo.report.payload import build
from tests.support.figure_boxes import find_faults
from tests.support.sample_analysis import sample


@cache
def clumped(sections: tuple[str, ...] = ("projection", "cosine", "tokens")) -> embgeo.Analysis:
    rows = np.random.default_rng(3).standard_normal((600, 8))
    rows[:60] = 0.02 * rows[:60] + 0.1
    tokens = ("</script>$x$", *(f"t{row}" for row in range(1, 600)))
    matrix = embgeo.Matrix(rows, tokens=tokens)
    return embgeo.analyze(matrix, sections=sections, reference=False)


def specify(analysis: embgeo.Analysis) -> Specification:
    spec = PLAIN.specify([ChartItem("one", analysis)], Choices())
    assert spec is not None
    return spec


@pytest.mark.parametrize("sections", [("projection", "cosine", "tokens"), ("projection", "tokens")])
def test_the_ring_is_around_the_rows(sections):
    found = clumped(sections)
    points = next(p for p in found.points if p.name == "projection.svd2")
    ring = find_ring(found, points)
    assert ring.label == "clump of 60 tokens"
    assert len(ring.examples) == 5
    inside = np.linalg.norm(points.xy - [ring.x, ring.y], axis=1) <= ring.radius
    assert inside[:60].mean() > 0.5
    assert inside[60:].mean() < 0.3


def test_the_ring_is_around_rows_that_gather_elsewhere():
    rows = np.random.default_rng(3).standard_normal((600, 8)) - 0.5
    rows[:60] = 0.15 * rows[:60] + 2.0
    found = embgeo.analyze(rows, sections=("projection", "tokens"), reference=False)
    assert found["tokens.clump_tilt"].value > 90
    points = next(p for p in found.points if p.name == "projection.svd2")
    ring = find_ring(found, points)
    inside = np.linalg.norm(points.xy - [ring.x, ring.y], axis=1) <= ring.radius
    assert inside[:60].mean() > 0.9
    assert inside[60:].mean() < 0.1


def test_no_ring_without_a_clump():
    spec = specify(sample("cone"))
    assert [panel.cloud.ring for panel in spec.panels] == [None]
    assert "Ring" not in spec.caption
    assert build(sample("cone")).meta["views"][0]["ring"] is None


@pytest.mark.slow
def test_every_renderer_draws_it():
    spec = specify(clumped())
    assert re.search(r"Ring: clump of 60 tokens \(t\d+ .*, …\)\.$", spec.caption)
    svg = render_svg(spec)
    assert "clump of 60 tokens" in svg
    assert "</script>" not in svg
    with paper.settings():
        figure, _ = draw(spec, paper.output(3.25, paper.plain_text))
        assert find_faults(figure) == []
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["clump of 60 tokens"]
    ring = build(clumped()).meta["views"][0]["ring"]
    assert ring["label"] == "clump of 60 tokens"
    assert ring["radius"] > 0


def test_the_end_of_a_line_is_no_clump():
    """Rows of other norms on one side of the origin are a cluster, which has its own question."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((600, 8)) * 0.1
    rows[:200, 0] -= 0.3 + 0.05 * rng.random(200)
    rows[200:, 0] += 3.0 + rng.random(400)
    found = embgeo.analyze(rows, sections=("projection", "cosine", "tokens"), reference=False)
    assert found["tokens.clump_rows"].value
    assert found["cosine.silhouette"].value >= 0.6
    points = next(p for p in found.points if p.name == "projection.svd2")
    assert find_ring(found, points) is None
    assert found.verdict.finding("clump") is None
