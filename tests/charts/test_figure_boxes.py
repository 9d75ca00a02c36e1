"""Nothing leaves its panel: a sample of figures, venues and numbers of members."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embgeo.charts import CHARTS
from embgeo.charts.items import ChartItem, compared_items, method_items
from embgeo.charts.render import paper
from embgeo.charts.render.drawing import draw
from embgeo.charts.specification import Chart, Choices, Specification
from tests.support.chart_samples import COURSES, find_chart
from tests.support.figure_boxes import find_faults
from tests.support.sample_comparison import sample_comparison
from tests.support.sample_runs import sample_training

#: Short, long and awkward names.
NAMES = ("MLE", "MLE-CosReg", "spectrum control with a polynomial prior", "日本", "_hidden", "w-60")
NUMBERS = (1, 2, 3, 6, 8)
WIDTHS = {name: venue for name, venue in paper.VENUES.items() if name != "neurips"}
CASES = [
    (chart.name, venue, count)
    for chart in CHARTS
    for venue in WIDTHS
    for count in NUMBERS
    if count >= chart.least
]
#: Those in which labels and limits changed each other.
HARD = [
    ("scatter", "acl", 1),
    ("scatter", "acl", 2),
    ("figure1", "icml", 3),
]


def list_items(chart: Chart, count: int) -> list[ChartItem]:
    """So many items, or as many as there are, that the chart can show."""
    members = compared_items(sample_comparison(members=max(2, count)))
    track = sample_comparison(members=max(3, count), track=True)
    runs = [ChartItem("", step_curves=COURSES) for _ in range(count)]
    tracks = [ChartItem("", track=track) for _ in range(count)]
    every = [*members, *runs, *tracks, *method_items(sample_training())]
    able = [item for item in every if not chart.refuse(replace(item, x=1.0), Choices())]
    names = [NAMES[i % len(NAMES)] + "'" * (i // len(NAMES)) for i in range(count)]
    return [
        replace(item, label=name, x=float(i), place=None)
        for i, (item, name) in enumerate(zip(able, names, strict=False))
    ]


def draw_faults(spec: Specification, width: float) -> list[str]:
    with paper.settings():
        return find_faults(draw(spec, paper.output(width, paper.plain_text))[0])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "venue", "count"), [*CASES[::57], *HARD])
def test_nothing_leaves_its_panel(name: str, venue: str, count: int) -> None:
    chart = find_chart(name)
    choices = Choices(annotate=("tok0", "tok1", "tok2", "tok599"))
    spec = chart.specify(list_items(chart, count), choices)
    if spec is None:
        pytest.skip("too few of them")
    sizes = WIDTHS[venue]
    assert draw_faults(spec, sizes.text if spec.one_row else sizes.column) == []


@pytest.mark.slow
@pytest.mark.parametrize("color", ["frequency"])
def test_nothing_leaves_its_panel_in_other_colors(color: str) -> None:
    for name in ("scatter", "figure1"):
        chart = find_chart(name)
        spec = chart.specify(list_items(chart, 3), Choices(color))
        assert spec is not None
        assert draw_faults(spec, 6.75) == []


@pytest.mark.slow
def test_long_names_of_panels_are_cut_in_their_middle() -> None:
    chart = find_chart("scatter")
    items = list_items(chart, 3)
    spec = chart.specify(items)
    assert spec is not None
    with paper.settings():
        narrow, _ = draw(spec, paper.output(3.25, paper.plain_text))
        wide, _ = draw(spec, paper.output(20.0, paper.plain_text))
    titles = [figure.axes[2].get_title(loc="left") for figure in (narrow, wide)]
    assert titles[1] == f"(c) {NAMES[2]}"
    assert titles[0].startswith("(c) spec")
    assert "…" in titles[0]
    assert titles[0].endswith("rior")


def test_members_have_other_colors_than_classes() -> None:
    from embgeo.charts import theme

    used = {theme.RARE.light, theme.POPULAR.light}
    assert not used & {color.light for color in (*theme.LINES, *theme.AGES)}
    assert len(np.unique([color.light for color in theme.LINES])) == len(theme.LINES)
