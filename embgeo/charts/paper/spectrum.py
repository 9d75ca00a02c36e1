"""Normalized singular values, as in Gao et al. 2019 (Fig. 2b) and Wang et al. 2020 (Fig. 1)."""

from __future__ import annotations

from collections.abc import Sequence

from embgeo.charts.paper.base import Choices, Made, PaperFigure, Subject
from embgeo.charts.paper.singular_values import draw_spectra, missing_spectrum
from embgeo.charts.paper.style import Page


def draw(subjects: Sequence[Subject], page: Page, _choices: Choices) -> Made:
    return draw_spectra(subjects, page, logarithmic=False)


FIGURE = PaperFigure("spectrum", missing_spectrum, draw)
