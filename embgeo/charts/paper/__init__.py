"""Figures for papers, one file each; they see nothing but saved results."""

from __future__ import annotations

from embgeo.charts.paper import (
    cosines,
    norms_by_frequency,
    partition,
    scatter,
    scatter_centered,
    spectrum,
    spectrum_log,
    sweep,
    training,
)
from embgeo.charts.paper.base import PaperFigure

PAPER_FIGURES: tuple[PaperFigure, ...] = (
    scatter.FIGURE,
    scatter_centered.FIGURE,
    spectrum.FIGURE,
    spectrum_log.FIGURE,
    cosines.FIGURE,
    partition.FIGURE,
    norms_by_frequency.FIGURE,
    sweep.FIGURE,
    training.FIGURE,
)
