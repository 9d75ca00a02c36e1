"""Scalars over the steps of training runs, a panel a scalar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from embgeo.charts.paper import style
from embgeo.charts.paper.base import NO_LOG, Choices, Data, Made, PaperFigure, Subject
from embgeo.charts.paper.lines import name_lines
from embgeo.charts.paper.style import Page
from embgeo.core.values import Cell

if TYPE_CHECKING:
    from matplotlib.ticker import FuncFormatter

#: What is shown where nobody chose, as far as the logs hold it.
PREFERRED = (
    "cosine.mean",
    "isotropy.i1_unit",
    "spectrum.effective_rank",
    "frequency.probe_auc",
    "valid.loss",
    "train.loss",
    "spectrum.top_share",
)
MOST_PANELS = 4


def missing(subject: Subject, choices: Choices) -> str:
    if subject.log is None:
        return NO_LOG
    if choices.scalars and not set(choices.scalars) & set(subject.log.curves):
        return f"its log holds no {' and no '.join(choices.scalars)}"
    return ""


def shown_names(subjects: Sequence[Subject], choices: Choices) -> tuple[list[str], int]:
    """The scalars that get a panel, and how many others the logs hold."""
    held = dict.fromkeys(name for s in subjects if s.log is not None for name in s.log.curves)
    if choices.scalars:
        return [name for name in choices.scalars if name in held], 0
    preferred = [name for name in PREFERRED if name in held]
    names = [*preferred, *(name for name in held if name not in preferred)][:MOST_PANELS]
    return names, len(held) - len(names)


def draw(subjects: Sequence[Subject], page: Page, choices: Choices) -> Made:
    names, others = shown_names(subjects, choices)
    across, down = style.grid(page, len(names), least=1.5)
    height = down * float(np.clip(0.75 * page.width / across, 1.2, 1.9))
    drawing, axes = style.panels(page, len(names), across, height)
    rows: list[tuple[Cell, ...]] = []
    handles = {}
    titles = []
    for ax, name in zip(axes, names, strict=True):
        title = name
        for place, subject in enumerate(subjects):
            if subject.log is None or name not in subject.log.curves:
                continue
            steps, values = subject.log.curves[name]
            (handles[place],) = ax.plot(steps, values, **style.line(place, len(steps)))
            title = subject.log.titles.get(name, title)
            rows += [
                (subject.label, name, step, value)
                for step, value in zip(steps.tolist(), values.tolist(), strict=True)
            ]
        titles.append(title)
        ax.set_title(page.text(title))
        ax.set_xlabel("training step")
        ax.locator_params(axis="x", nbins=4)
        ax.xaxis.set_major_formatter(step_format())
    drawn = [
        (handles[place], subject) for place, subject in enumerate(subjects) if place in handles
    ]
    name_lines(drawing, page, [h for h, _ in drawn], [s for _, s in drawn])
    notes = (f"{others:,} more in the logs: choose with --scalar",) if others else ()
    columns = ("run", "name", "step", "value")
    caption = f"{'; '.join(titles)}: over the steps of training."
    return Made(drawing, Data(columns, rows), caption, notes)


def step_format() -> FuncFormatter:
    """5000 as 5k: steps are large numbers and panels are narrow."""
    from matplotlib.ticker import FuncFormatter

    return FuncFormatter(lambda step, _: f"{step / 1000:g}k" if abs(step) >= 1000 else f"{step:g}")


FIGURE = PaperFigure("training", missing, draw)
