"""Charts of saved results: one specification a file, drawn by every renderer of `render`."""

from __future__ import annotations

from embgeo.charts import (
    angles,
    balance,
    cone,
    coordinates,
    cosines,
    decay,
    first_figure,
    frequency,
    gao_figure,
    mixture,
    norms,
    norms_by_frequency,
    overlaps,
    partition,
    scatter,
    spectrum,
    subspaces,
    sweep,
    training,
)
from embgeo.charts.specification import Chart

CHARTS: tuple[Chart, ...] = (
    scatter.PLAIN,
    scatter.WITHOUT_MEAN,
    mixture.CHART,
    spectrum.LINEAR,
    spectrum.LOGARITHMIC,
    decay.CHART,
    cosines.CHART,
    cone.CHART,
    coordinates.CHART,
    partition.CHART,
    norms.CHART,
    norms_by_frequency.CHART,
    frequency.CHART,
    subspaces.CHART,
    angles.CHART,
    overlaps.CHART,
    balance.CHART,
    sweep.CHART,
    training.CHART,
    first_figure.CHART,
    gao_figure.CHART,
)
