"""Perplexity against geometry: whether a method that helps the one helps the other."""

from __future__ import annotations

import numpy as np

from embgeo.charts.specification import (
    Axis,
    Chart,
    Choices,
    FigureTable,
    Line,
    MemberStyle,
    Panel,
    Specification,
    StyledSubjects,
)
from embgeo.charts.subject import Subject, Unrelated
from embgeo.core.arrays import FloatArray
from embgeo.core.quantities import cosine, frequency, isotropy
from embgeo.core.values import Cell
from embgeo.training.study.deciding import describe_quality, quality_name, spell_score

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
        means: dict[str, tuple[float, float]] = {}
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
            means[subject.label] = (float(x.mean()), float(y.mean()))
            lines.append(mark_mean(x, y, style, subject.label))
        for subject, style in subjects:
            if subject.reference in means and subject.label in means:
                ends = np.array([means[subject.reference], means[subject.label]])
                lines.append(Line(ends[:, 0], ends[:, 1], style, subject.label, form="arrow"))
        panels.append(Panel(Axis(quality), Axis(""), tuple(lines), key=name, title=title))
    side = " (to the left is better)" if across.endswith(".perplexity") else ""
    return Specification(
        tuple(panels),
        f"Each method by its {spell_score(across.partition('.')[2])}{side} and its geometry. "
        "With several seeds the large mark is their mean with its standard deviation, the dots are "
        "the seeds. "
        "An arrow leads from the control of a method to the method.",
        table=FigureTable(("method", "name", "seed", across, "value"), rows),
    )


def mark_mean(x: FloatArray, y: FloatArray, style: MemberStyle, label: str) -> Line:
    """The mean over seeds, with bars of one standard deviation along both axes."""
    mean = np.array([x.mean()]), np.array([y.mean()])
    if len(x) < 2:
        return Line(*mean, style, label, form="marks")
    bars = [np.array([values.std(ddof=1)]) for values in (y, x)]
    return Line(*mean, style, label, form="marks", error=bars[0], error_x=bars[1])


CHART = Chart(
    "balance",
    "Scatter of methods: perplexity across, geometry upwards",
    refuse,
    build,
    section="balance",
    pages=("training",),
    least=2,
)
