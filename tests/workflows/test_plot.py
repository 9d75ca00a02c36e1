"""Charts of an analysis at hand: ``analysis.plot``."""

from __future__ import annotations

from pathlib import Path

import pytest

from embgeo.charts import CHARTS
from embgeo.core.errors import BadOption, EmbgeoError
from embgeo.workflows.analyze import Analysis
from tests.support.sample_analysis import sample, without


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return Analysis.of(sample())


def test_every_chart_of_one_analysis_is_a_method(analysis: Analysis) -> None:
    listed = dir(analysis.plot)
    assert {name.replace("_", "-") for name in listed} == {
        chart.name for chart in CHARTS if "analysis" in chart.pages and chart.least == 1
    }
    with pytest.raises(AttributeError, match="unknown chart 'spectra'; choose from scatter"):
        _ = analysis.plot.spectra


@pytest.mark.slow
def test_a_plot_is_a_picture_and_its_numbers(analysis: Analysis, tmp_path: Path) -> None:
    plot = analysis.plot.spectrum()
    assert plot._repr_svg_().startswith("<svg")
    assert repr(plot).startswith("<Plot spectrum: Singular values")
    assert plot.save(tmp_path / "new" / "s.svg").read_text("utf-8") == plot.svg
    assert plot.save(tmp_path / "s.csv").read_text("utf-8") == plot.csv
    assert len(plot.csv.splitlines()) > 10
    with pytest.raises(BadOption, match=r"\.pdf is not drawn here; .*embgeo\.figures"):
        plot.save(tmp_path / "s.pdf")


def test_a_chart_without_its_values_says_why(analysis: Analysis) -> None:
    bare = Analysis.of(without(analysis, "spectrum"))
    with pytest.raises(EmbgeoError, match=r"spectrum cannot be drawn: \w"):
        bare.plot.spectrum()
