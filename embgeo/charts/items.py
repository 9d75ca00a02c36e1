"""Items of charts: a saved analysis, a member of a comparison, a run or a method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from embgeo.comparison.comparison import Comparison, name_of
from embgeo.comparison.pair import Pair
from embgeo.core.arrays import FloatArray
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from embgeo.training.study.log import Curves
    from embgeo.training.study.record import Role, Run, Study, StudyMethod


class Unrelated(StrEnum):
    """Why an item has nothing to do with a chart; reported only if the chart was requested."""

    NO_ANALYSIS = "it is not an analysis"
    NO_LOG = "it is neither a run with a metrics.jsonl nor a track"
    NO_VALUE = "no value of the parameter is known; name it with --parameter"
    NO_PAIR = "it is not compared with a baseline"
    NO_METHOD = "it is not a method of a training"
    NO_GROUP = "it is not a group of runs; name groups with --against"
    NO_OUTPUT = "its analysis has no output matrix"
    NO_TRACK = "it is not a track; compare checkpoints of a run with: embgeo diff --track"


@dataclass(frozen=True, slots=True)
class StepCurve:
    """A number over the steps of training."""

    #: Shape (m,), rising steps.
    steps: FloatArray
    values: FloatArray
    #: Untrusted text; empty for the name.
    title: str = ""
    #: Name of the quantity; empty for the name of the curve.
    quantity: str = ""
    #: The range over seeds.
    low: FloatArray | None = None
    high: FloatArray | None = None
    #: Two standard errors at each step, 0 if nothing was sampled.
    error: FloatArray | None = None
    #: The step at which the slope changes.
    bend: float | None = None
    #: Steps and values of checkpoints that hold the matrix of an earlier one.
    duplicates: tuple[FloatArray, FloatArray] | None = None
    #: A later step whose value cannot be drawn, as in a run that diverged.
    lost: float | None = None


@dataclass(frozen=True, slots=True)
class ChartItem:
    """One line, panel or point of a chart."""

    #: Name in a legend; untrusted text.
    label: str
    analysis: Analysis | None = None
    #: Numbers over training.
    step_curves: Mapping[str, StepCurve] = field(default_factory=dict)
    #: Value of the swept parameter.
    x: float | None = None
    #: The pair of the baseline and this member.
    pair: Pair | None = None
    #: Runs of a method or of a group, one per seed.
    runs: tuple[Run, ...] = ()
    #: Label of the control of a method; empty for others.
    reference: str = ""
    #: The matrix that a method acts on; for a control, that of its first method.
    role: Role = "input"
    #: Training step in a track.
    step: float | None = None
    #: The run of a checkpoint, where several runs are drawn; untrusted text.
    run: str = ""
    #: Label of the group that it is a member of, such as seeds; untrusted text.
    group: str = ""
    #: The place among all members, which gives the style; None: the place among those shown.
    place: int | None = None
    #: The checkpoints of a run.
    track: Comparison | None = None


def compared_items(comparison: Comparison) -> list[ChartItem]:
    """Return every member with its pair; a track is also one run."""
    track = comparison.track
    found = [
        ChartItem(
            name_of(member, track is not None),
            member.analysis,
            pair=comparison.pair(0, place) if place else None,
            step=None if track is None else member.step,
            place=place,
        )
        for place, member in enumerate(comparison.members)
    ]
    if track is not None:
        found.append(ChartItem("", step_curves=track_curves(comparison), track=comparison))
    return found


def track_curves(comparison: Comparison) -> dict[str, StepCurve]:
    """Return the curves of a track; the names of those of two matrices end in the other member."""
    track = comparison.track
    assert track is not None
    steps = np.array(track.steps)
    distinct = np.isin(np.arange(len(steps)), track.distinct)
    step_curves = {}
    for curve in track.curves:
        values = np.array([np.nan if v is None else v for v in curve.values])
        known = np.isfinite(values) & distinct
        if not known.any():
            continue
        again = np.isfinite(values) & ~distinct
        name, title = curve.quantity.name, curve.quantity.title
        errors = np.array([0.0 if e is None else 2.0 * e for e in curve.standard_errors])
        step_curves[f"{name}.{curve.against}" if curve.against else name] = StepCurve(
            steps[known],
            values[known],
            f"{title}, to the {curve.against}" if curve.against else title,
            name,
            error=errors[known] if np.any(errors > 0) else None,
            bend=None if curve.change_point is None else curve.change_point.step,
            duplicates=(steps[again], values[again]) if again.any() else None,
        )
    return step_curves


def method_items(training: Study) -> list[ChartItem]:
    return [
        ChartItem(
            method.name,
            step_curves=method_curves(training.runs_of(method.name)),
            runs=training.runs_of(method.name),
            reference=method.reference or "",
            role=choose_role(training, method),
            place=place,
        )
        for place, method in enumerate(training.methods)
    ]


def choose_role(training: Study, method: StudyMethod) -> Role:
    """Choose the matrix that a method acts on; for a control, that of its first method."""
    own = (one.role for one in training.methods if one.reference == method.name)
    return method.role if method.reference else next(own, method.role)


def method_curves(runs: Sequence[Run]) -> dict[str, StepCurve]:
    """Return each curve over seeds: mean and range at the steps that all runs have."""
    step_curves = {}
    for name in dict.fromkeys(name for run in runs for name in run.curves):
        curves = [run.curves[name] for run in runs if name in run.curves]
        steps = sorted(set(curves[0].steps).intersection(*(curve.steps for curve in curves)))
        if not steps:
            continue
        table = np.array(
            [[dict(zip(c.steps, c.values, strict=True))[step] for step in steps] for c in curves]
        )
        several = len(runs) > 1
        step_curves[name] = StepCurve(
            np.array(steps, dtype=np.float64),
            table.mean(axis=0),
            low=table.min(axis=0) if several else None,
            high=table.max(axis=0) if several else None,
        )
    return step_curves


def log_curves(curves: Curves) -> dict[str, StepCurve]:
    return {
        name: StepCurve(curve.steps, curve.values, lost=curve.lost)
        for name, curve in curves.items()
    }
