"""Figures of a saved comparison, one file each; nothing here needs a checkpoint."""

from __future__ import annotations

import warnings

from embgeo.charts.compared import (
    angles,
    by_frequency,
    cones,
    cosines,
    maps,
    norms,
    overlaps,
    partitions,
    spectra,
    training,
)
from embgeo.charts.compared.base import ComparedFigure
from embgeo.charts.style import settings, svg
from embgeo.comparison.comparison import Comparison

FIGURES: tuple[ComparedFigure, ...] = (
    maps.FIGURE,
    spectra.FIGURE,
    cosines.FIGURE,
    cones.FIGURE,
    partitions.FIGURE,
    norms.FIGURE,
    by_frequency.FIGURE,
    angles.FIGURE,
    overlaps.FIGURE,
    training.FIGURE,
)


def render_svg(comparison: Comparison, figure: ComparedFigure) -> str | None:
    """`figure` as an inline ``<svg>`` element, or None where the comparison lacks its values."""
    with settings(), warnings.catch_warnings():
        # Names may be in any script; the text stays text, and the reader's own fonts show it.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        drawing = figure.draw(comparison)
        return None if drawing is None else svg(drawing, figure.name, figure.alternative)
