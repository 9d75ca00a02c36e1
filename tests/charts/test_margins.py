"""Margins of charts on the page: nothing leaves its panel, without matplotlib's layout."""

import pytest

from embgeo.charts import CHARTS
from embgeo.charts.render import svg
from embgeo.charts.render.drawing import draw
from embgeo.charts.specification import Choices
from tests.charts.test_figure_boxes import list_items
from tests.support.figure_boxes import find_faults

CASES = [(chart, count) for chart in CHARTS for count in (1, 2, 3, 6) if count >= chart.least]


@pytest.mark.slow
@pytest.mark.parametrize(("chart", "count"), CASES[::14], ids=lambda x: getattr(x, "name", str(x)))
def test_labels_have_room(chart, count):
    spec = chart.specify(list_items(chart, count), Choices())
    if spec is None:
        pytest.skip("no values")
    with svg.settings():
        figure, _ = draw(spec, svg.MEDIUM)
        assert figure.get_layout_engine() is None
        assert not find_faults(figure)
        figure.subplots_adjust(bottom=0.0)
        assert find_faults(figure)
