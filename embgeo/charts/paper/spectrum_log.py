"""Normalized singular values on a logarithmic axis, which shows how the tail decays."""

from __future__ import annotations

from collections.abc import Sequence

from embgeo.charts.paper.base import Choices, Made, PaperFigure, Subject
from embgeo.charts.paper.singular_values import draw_spectra, missing_spectrum
from embgeo.charts.paper.style import Page


def draw(subjects: Sequence[Subject], page: Page, _choices: Choices) -> Made:
    return draw_spectra(subjects, page, logarithmic=True)


FIGURE = PaperFigure("spectrum-log", missing_spectrum, draw)
