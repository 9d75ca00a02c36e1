"""Figures of a saved comparison of methods, one file each."""

from __future__ import annotations

import warnings

from embgeo.charts.style import settings, svg
from embgeo.charts.trained import balance, curves
from embgeo.charts.trained.base import TrainedFigure
from embgeo.training.study.training import Training

FIGURES: tuple[TrainedFigure, ...] = (balance.FIGURE, curves.FIGURE)


def render_svg(training: Training, figure: TrainedFigure) -> str | None:
    """`figure` as an inline ``<svg>`` element, or None where the training lacks its values."""
    with settings(), warnings.catch_warnings():
        # Names may be in any script; the text stays text, and the reader's own fonts show it.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        drawing = figure.draw(training)
        return None if drawing is None else svg(drawing, figure.name, figure.alternative)
