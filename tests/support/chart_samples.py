"""Items that every chart has something to show of."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from embgeo.charts import CHARTS
from embgeo.charts.items import ChartItem, StepCurve, compared_items, method_items
from embgeo.charts.specification import Chart, Choices, Specification
from tests.support.sample_analysis import HOSTILE
from tests.support.sample_comparison import sample_comparison
from tests.support.sample_runs import sample_training

COURSES = {
    "cosine.mean": StepCurve(np.arange(5.0), np.linspace(0, 0.5, 5)),
    "train.loss": StepCurve(np.arange(30.0), np.exp(-np.arange(30.0))),
}


def find_chart(name: str) -> Chart:
    return next(chart for chart in CHARTS if chart.name == name)


@cache
def every_subject(*, hostile: bool = False) -> tuple[ChartItem, ...]:
    """Members with pairs and values of a parameter, two runs, and two methods."""
    members = compared_items(sample_comparison(members=3, hostile=hostile))
    runs = [
        ChartItem(HOSTILE[1] if hostile else "run", step_curves=COURSES),
        ChartItem("b", step_curves=COURSES),
    ]
    track = sample_comparison(members=3, hostile=hostile, track=True)
    runs += [ChartItem(HOSTILE[2] if hostile else "track", track=track)]
    methods = method_items(sample_training(hostile=hostile))
    swept = [replace(item, x=float(i)) for i, item in enumerate(members)]
    return (*swept, *runs, *methods)


@cache
def specification(
    name: str, *, hostile: bool = False, choices: Choices = Choices()
) -> Specification:
    """The chart of every item that it can show."""
    spec = find_chart(name).specify(every_subject(hostile=hostile), choices)
    assert spec is not None, (
        f"no item has what the chart {name} shows: add it to tests/support/sample_analysis.py"
    )
    return spec
