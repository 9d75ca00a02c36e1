"""Charts of saved results: specifications that every renderer of `render` draws."""

from embgeo.charts import (
    balance,
    composites,
    curves,
    film,
    frequency,
    histograms,
    norms_by_frequency,
    partition,
    scatter,
    seeds,
    spectrum,
    sweep,
    training,
    words,
)
from embgeo.charts.specification import Chart

#: In the order of reports and of ``embgeo figures``.
CHARTS: tuple[Chart, ...] = (
    scatter.PLAIN,
    scatter.WITHOUT_MEAN,
    spectrum.LINEAR,
    spectrum.LOGARITHMIC,
    curves.DECAY,
    histograms.COSINES,
    histograms.CONE,
    partition.CHART,
    histograms.NORMS,
    norms_by_frequency.CHART,
    frequency.CHART,
    curves.SUBSPACES,
    curves.ANGLES,
    balance.CHART,
    seeds.CHART,
    sweep.CHART,
    training.CHART,
    composites.FIRST_FIGURE,
    composites.GAO_FIGURE,
    words.CHART,
    film.CHART,
)
