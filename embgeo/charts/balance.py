"""Perplexity against geometry: whether a method that helps the one helps the other."""

from __future__ import annotations

import numpy as np

from embgeo.charts.specification import (
    Axis,
    Chart,
    Choices,
    FigureTable,
    Line,
    Panel,
    Specification,
    StyledSubjects,
)
from embgeo.charts.subject import Subject, Unrelated
from embgeo.core.quantities import cosine, frequency, isotropy
from embgeo.core.values import Cell
from embgeo.training.study.deciding import describe_quality, quality_name

TITLES = (
    (cosine.MEAN.name, "mean cosine"),
    (isotropy.I1_UNIT.name, "I1, mean norm 1"),
    (frequency.PROBE_AUC.name, "rare/popular probe, AUC"),
)


def refuse(subject: Subject, _choices: Choices) -> str:
    held = {name for run in subject.runs for name in run.numbers}
    if quality_name(subject.runs) not in held:
        return Unrelated.NO_METHOD
    return "" if any(name in held for name, _ in TITLES) else Unrelated.NO_METHOD


def build(subjects: StyledSubjects, _choices: Choices) -> Specification:
    across = quality_name([run for subject, _ in subjects for run in subject.runs])
    held = {name for subject, _ in subjects for run in subject.runs for name in run.numbers}
    shown = [(name, title) for name, title in TITLES if name in held]
    quality = describe_quality(across)
    panels = []
    rows: list[tuple[Cell, ...]] = []
    for name, title in shown:
        lines: list[Line] = []
        for subject, style in subjects:
            pairs = [
                (run.seed, run.numbers[across], run.numbers[name])
                for run in sorted(subject.runs, key=lambda run: run.seed)
                if across in run.numbers and name in run.numbers
            ]
            if not pairs:
                continue
            rows += [(subject.label, name, *cells) for cells in pairs]
            x, y = np.array([p[1] for p in pairs]), np.array([p[2] for p in pairs])
            if len(pairs) > 1:
                lines.append(Line(x, y, style, subject.label, form="dots"))
            mean = np.array([x.mean()]), np.array([y.mean()])
            lines.append(Line(*mean, style, subject.label, form="marks"))
        panels.append(Panel(Axis(quality), Axis(""), tuple(lines), key=name, title=title))
    side = " (to the left is better)" if across.endswith(".perplexity") else ""
    return Specification(
        tuple(panels),
        f"Each method by its {across.partition('.')[2]}{side} and its geometry. With several "
        "seeds the large mark is their mean, the dots are the seeds.",
        table=FigureTable(("method", "name", "seed", across, "value"), rows),
    )


CHART = Chart(
    "balance",
    "Scatter of methods: perplexity across, geometry upwards",
    refuse,
    build,
    section="balance",
    pages=("training",),
    least=2,
)
