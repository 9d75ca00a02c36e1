"""Figures: vector drawings that need no style sheet, the same bytes every time."""

from __future__ import annotations

import importlib
import pkgutil
import re
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

import embgeo
import embgeo.charts
from embgeo.charts import FIGURES, render_svg
from embgeo.charts.base import Figure, singular_values
from embgeo.charts.hexagons import count_hexagons
from embgeo.charts.maps import view_box
from embgeo.charts.style import axes, log_axis, power_of_ten
from embgeo.report.charts import chart_data
from embgeo.result.analysis import Analysis
from tests.support.sample_analysis import sample


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)
def test_svg_survives_a_server_that_strips_styles(figure: Figure) -> None:
    svg = render_svg(sample(), figure)
    assert svg is not None
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        assert element.tag not in ("style", "script", "image", "metadata", "foreignObject")
        assert "style" not in element.attrib
        for name, value in element.attrib.items():
            assert not name.startswith("on")
            assert "http" not in value
            if name == "href":
                assert value.startswith(f"#{figure.name}-")
    ids = re.findall(r' id="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(i.startswith(f"{figure.name}-") for i in ids)
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg))
    assert {a or b for a, b in used} == set(ids)
    assert root.get("aria-label") == figure.alternative


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)
def test_equal_analyses_give_equal_bytes_under_any_settings(figure: Figure) -> None:
    first = render_svg(sample(), figure)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "lines.linewidth": 9}):
        assert render_svg(sample(), figure) == first


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.name)
def test_nothing_is_drawn_without_values(figure: Figure) -> None:
    assert render_svg(Analysis(provenance={}), figure) is None


def test_every_module_with_a_figure_is_listed() -> None:
    found = {
        module.FIGURE.name
        for info in pkgutil.iter_modules(embgeo.charts.__path__)
        if hasattr(module := importlib.import_module(f"embgeo.charts.{info.name}"), "FIGURE")
    }
    assert found == {f.name for f in FIGURES}
    assert len(FIGURES) == len(found)


def test_hexagons_count_every_point_in_the_nearest_cell() -> None:
    xy = np.random.default_rng(0).standard_normal((500, 2))
    cells = count_hexagons(xy, 0.4)
    assert cells.counts.sum() == 500
    own = np.linalg.norm(xy - cells.centers[cells.members], axis=1)
    others = np.linalg.norm(xy[:, None] - cells.centers[None], axis=2).min(axis=1)
    assert own == pytest.approx(others)
    assert own.max() <= 0.4 / np.sqrt(3) + 1e-12


def test_the_view_holds_the_origin_and_nearly_all_points() -> None:
    xy = np.random.default_rng(0).standard_normal((10_000, 2)) + np.array([50.0, 0.0])
    xy[0] = 1e6
    left, right, bottom, top = view_box(xy)
    assert left < 0 < right < 100
    inside = (xy[:, 0] > left) & (xy[:, 0] < right) & (xy[:, 1] > bottom) & (xy[:, 1] < top)
    assert inside.mean() > 0.99


def test_one_point_at_the_origin_has_a_view() -> None:
    left, right, bottom, top = view_box(np.zeros((1, 2)))
    assert left < right
    assert bottom < top


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1"), (0.001, "0.001"), (1e-6, "10⁻⁶"), (2e5, "2·10⁵"), (500.0, "500")],
)
def test_power_of_ten(value: float, text: str) -> None:
    assert power_of_ten(value) == text


@pytest.mark.parametrize("shape", [(16, 300), (3, 40), (1, 5), (40, 3)])
def test_fewer_rows_than_dimensions_draw_without_a_warning(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    analysis = embgeo.analyze(embgeo.Matrix(rows), sections=("spectrum",))
    curve = singular_values(analysis, "spectrum.singular_values")
    assert curve is not None
    assert len(curve.x) == min(shape)
    assert len(chart_data(analysis)["spectrum.singular_values"]["x"]) == min(shape)
    for figure in FIGURES:
        render_svg(analysis, figure)


def test_a_logarithmic_axis_spans_the_whole_range_of_floats() -> None:
    drawing, (ax,) = axes()
    log_axis(ax.yaxis, np.array([5e-324, 1.0, 1e308]))
    assert ax.get_yscale() == "log"
    assert drawing.axes == [ax]
