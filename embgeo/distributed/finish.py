"""From the merged rounds to the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from embgeo.core.arrays import IntArray
from embgeo.distributed.gathered import RowsMissing
from embgeo.distributed.plans import Known, Plan, known_from
from embgeo.measure.analysis import Clock, complete
from embgeo.measure.passes import Progress
from embgeo.measure.resources import Resources
from embgeo.metrics import SECTIONS, Context, Family
from embgeo.result.analysis import Analysis
from embgeo.stats.statistic import Statistic

#: Why a section is left out after a single round.
SECOND_ROUND = "needs a second round over the parts"


@dataclass(frozen=True, slots=True)
class Partial:
    """What a single round gives.

    Attributes
    ----------
    analysis : Analysis or None
        None where every section needs the second round.
    missing : tuple of str
        Sections that need it.
    """

    analysis: Analysis | None
    missing: tuple[str, ...]


def finished(
    plan: Plan,
    statistics: Sequence[Statistic],
    *,
    command: str = "",
    progress: Progress | None = None,
    resources: Resources | None = None,
    fold: Callable[[Sequence[Statistic]], None] | None = None,
) -> Analysis:
    """The analysis, from a plan and the second pass over all parts.

    Parameters
    ----------
    plan : Plan
        With all rows that it wanted.
    statistics : sequence of Statistic
        Those of the plan, over all parts.
    command : str
        Recorded in the provenance.
    progress : Progress, optional
    resources : Resources, optional
    fold : callable, optional
        Makes a further pass over all parts, where that can be done.

    Raises
    ------
    EmbgeoError
    """
    clock = Clock()
    known = known_from(plan, None, progress, resources)
    known.seen.statistics |= {s.key: s for s in statistics}
    if fold is not None:
        known.run.context = with_passes(known.run.context, fold)
    clock.lap("merging")
    return completed(plan, known, known.families, command, clock)


def with_passes(context: Context, fold: Callable[[Sequence[Statistic]], None]) -> Context:
    """The context where further passes over all rows can be made."""

    def either(statistics: Sequence[Statistic], rows: IntArray | None = None) -> None:
        if rows is None:
            fold(statistics)
        else:
            context.fold(statistics, rows)

    return replace(context, fold=either, passes_absent="")


def after_one_round(
    plan: Plan,
    *,
    command: str = "",
    progress: Progress | None = None,
    resources: Resources | None = None,
) -> Partial:
    """What can be said after the first pass alone: sections that need nothing else."""
    clock = Clock()
    known = known_from(plan, None, progress, resources)
    needy = {f.FAMILY for f in known.families if needs_more(f, known)}
    missing = tuple(section for section in SECTIONS if section in needy)
    families = [f for f in known.families if f.FAMILY not in needy]
    if not families:
        return Partial(None, missing)
    known.absent |= dict.fromkeys(missing, SECOND_ROUND)
    clock.lap("merging")
    return Partial(completed(plan, known, families, command, clock), missing)


def needs_more(family: Family, known: Known) -> bool:
    """Whether a family looks at the rows again, all of them or some."""
    context, seen = known.run.context, known.seen
    try:
        return bool(len(family.rows_read(context, seen)) or family.second(context, seen))
    except RowsMissing:
        return True


def completed(
    plan: Plan, known: Known, families: Sequence[Family], command: str, clock: Clock
) -> Analysis:
    setup = plan.setup
    present = [f.FAMILY for f in families]
    compared = [s for s in present if setup.reference]
    analysis = complete(known.run, families, known.seen, known.absent, compared, command, clock)
    return replace(
        analysis,
        notes=(*analysis.notes, *known.notes),
        provenance={**analysis.provenance, "parts": provenance_of(plan)},
    )


def provenance_of(plan: Plan) -> list[dict[str, Any]]:
    """The parts, ready for JSON."""
    found = []
    for part in plan.parts:
        known = asdict(part)
        found.append(
            {
                "file": known["file"],
                "tensor": known["tensor"],
                "rows": [known["start"], known["stop"]],
                "sha256": known["sha256"],
            }
        )
    return found
