"""All tokens in the plane of the two strongest singular directions, not centered."""

from __future__ import annotations

from collections.abc import Sequence

from embgeo.charts.paper.base import Choices, Made, PaperFigure, Subject
from embgeo.charts.paper.clouds import draw_clouds, missing_cloud
from embgeo.charts.paper.style import Page

NAME = "projection.svd2"
CAPTION = (
    "Tokens in the plane of the two strongest singular directions of the embedding matrix, not "
    "centered; the cross is the origin. In brackets: the share of the energy on each axis."
)


def missing(subject: Subject, choices: Choices) -> str:
    return missing_cloud(subject, choices, NAME)


def draw(subjects: Sequence[Subject], page: Page, choices: Choices) -> Made:
    return draw_clouds(subjects, page, choices, NAME, CAPTION)


FIGURE = PaperFigure("scatter", missing, draw)
