"""All tokens in the plane of the first two principal components."""

from __future__ import annotations

from collections.abc import Sequence

from embgeo.charts.paper.base import Choices, Made, PaperFigure, Subject
from embgeo.charts.paper.clouds import draw_clouds, missing_cloud
from embgeo.charts.paper.style import Page

NAME = "projection.pca2"
CAPTION = (
    "Tokens in the plane of the first two principal components of the embedding matrix (centered); "
    "the cross is the mean. In brackets: the share of the variance on each axis."
)


def missing(subject: Subject, choices: Choices) -> str:
    return missing_cloud(subject, choices, NAME)


def draw(subjects: Sequence[Subject], page: Page, choices: Choices) -> Made:
    return draw_clouds(subjects, page, choices, NAME, CAPTION)


FIGURE = PaperFigure("scatter-centered", missing, draw)
