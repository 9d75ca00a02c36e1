"""The analysis from merged rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from embgeo.core.errors import EmbgeoError
from embgeo.core.progress import Progress
from embgeo.core.values import Note
from embgeo.distributed.plans import FoldParts, MergePlan, leave_out_damaged, resume
from embgeo.distributed.rows import RowsMissing
from embgeo.measure.analyze import Clock, complete
from embgeo.measure.passes import Measurement
from embgeo.metrics import SECTIONS, Family
from embgeo.result.analysis import Analysis
from embgeo.stats.resources import Resources
from embgeo.stats.statistic import Statistic

#: Why a section is left out after a single round.
SECOND_ROUND = "needs a second round over the parts"


@dataclass(frozen=True, slots=True)
class Partial:
    """The result of a single round, None if all sections are in `missing`: they need the second."""

    analysis: Analysis | None
    missing: tuple[str, ...]


def finish(
    plan: MergePlan,
    statistics: Sequence[Statistic],
    *,
    command: str = "",
    progress: Progress | None = None,
    resources: Resources | None = None,
    fold: FoldParts | None = None,
) -> Analysis:
    """The analysis from a plan with its gathered rows and its statistics over all parts.

    `fold` makes a further pass over all parts, if the engine can.
    """
    clock = Clock()
    measurement, notes = resume(plan, None, progress, resources, fold)
    measurement.shared.add(statistics)
    clock.lap("merging")
    return complete_parts(plan, measurement, notes, command, clock)


def finish_after_one_round(
    plan: MergePlan, *, command: str = "", progress: Progress | None = None
) -> Partial:
    """The sections that need the first pass only."""
    if (again := leave_out_damaged(plan)).repeats_first:
        raise EmbgeoError(
            f"damaged rows ({len(again.census.small):,}) have to be left out of the first round",
            way_out="write a plan to repeat it: embgeo merge STATES --plan plan.npz",
        )
    clock = Clock()
    measurement, notes = resume(plan, None, progress)
    quick = replace(measurement.options, row_errors=False)
    measurement.facts = replace(measurement.facts, options=quick)
    needy = {f.FAMILY for f in measurement.families if needs_more(f, measurement)}
    missing = tuple(section for section in SECTIONS if section in needy)
    measurement.families = [f for f in measurement.families if f.FAMILY not in needy]
    if not measurement.families:
        return Partial(None, missing)
    measurement.absent |= dict.fromkeys(missing, SECOND_ROUND)
    clock.lap("merging")
    return Partial(complete_parts(plan, measurement, notes, command, clock), missing)


def needs_more(family: Family, measurement: Measurement) -> bool:
    """Whether a family reads rows after the first pass."""
    try:
        return any(len(measurement.ask(family, question)) for question in ("rows_read", "second"))
    except RowsMissing:
        return True


def complete_parts(
    plan: MergePlan, measurement: Measurement, notes: tuple[Note, ...], command: str, clock: Clock
) -> Analysis:
    """The analysis, with notes and provenance of the parts."""
    compared = [f.FAMILY for f in measurement.families if plan.setup.reference]
    analysis = complete(measurement, compared, command, clock)
    return replace(
        analysis,
        notes=(*analysis.notes, *notes),
        provenance={**analysis.provenance, "parts": describe_parts(plan)},
    )


def describe_parts(plan: MergePlan) -> list[dict[str, Any]]:
    """The parts as plain data for JSON."""
    return [
        {
            "file": part.file,
            "tensor": part.tensor,
            "rows": [part.start, part.stop],
            "sha256": part.sha256,
        }
        for part in plan.parts
    ]
