"""Figures of a saved analysis, one file each; nothing here needs the checkpoint."""

from __future__ import annotations

from embgeo.charts import (
    cone,
    coordinates,
    cosines,
    decay,
    frequency,
    mixture,
    norms,
    partition,
    pca_map,
    spectrum,
    subspaces,
    svd_map,
)
from embgeo.charts.base import Figure
from embgeo.charts.style import settings, svg
from embgeo.result.analysis import Analysis

FIGURES: tuple[Figure, ...] = (
    svd_map.FIGURE,
    pca_map.FIGURE,
    spectrum.FIGURE,
    decay.FIGURE,
    cosines.FIGURE,
    cone.FIGURE,
    coordinates.FIGURE,
    partition.FIGURE,
    mixture.FIGURE,
    frequency.FIGURE,
    subspaces.FIGURE,
    norms.FIGURE,
)


def render_svg(analysis: Analysis, figure: Figure) -> str | None:
    """`figure` as an inline ``<svg>`` element, or None where the analysis lacks its values."""
    with settings():
        drawing = figure.draw(analysis)
        return None if drawing is None else svg(drawing, figure.name, figure.alternative)
