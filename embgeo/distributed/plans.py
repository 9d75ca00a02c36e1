"""What the second pass needs of the first one over all parts, and the rows that are wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.matrix import Matrix
from embgeo.distributed import files
from embgeo.distributed.gathered import Gathered, Rows, RowsMissing
from embgeo.distributed.part import Part, Setup
from embgeo.distributed.seen_norms import SeenNorms, pieces, statistic_of
from embgeo.distributed.states import longest
from embgeo.io.bounded.guard import Damaged, reading
from embgeo.measure.analysis import check_usable, chosen_families, present
from embgeo.measure.passes import Progress, Run, distinct
from embgeo.measure.resources import Resources
from embgeo.metrics import Family, Seen
from embgeo.metrics.base import NO_ROWS
from embgeo.stats import Census, Norms
from embgeo.stats.statistic import Statistic

#: Bytes of rows that are gathered for one family at most.
MOST_GATHERED = 2 * 2**30
IN_PARTS = "the matrix was measured in parts, where each step of the search would be another round"

Fetch = Callable[[IntArray], npt.NDArray[Any]]


@dataclass
class Plan:
    """The first pass over the whole matrix, and what the next round has to find out.

    Attributes
    ----------
    setup : Setup
    parts : list of Part
    matrix : Matrix
        The whole, without its entries.
    census : Census
    first : list of Statistic
        Of the first pass, over all parts.
    derived : dict of str to anything
        What was computed from them, so that all parts see the same eigenvectors.
    statistics : list of Statistic
        Of the second pass, without rows; empty where rows have to be gathered before.
    rows : Rows
        Rows that are at hand.
    wanted : int array
        Rows that the parts are asked for.
    """

    setup: Setup
    parts: list[Part]
    matrix: Matrix
    census: Census
    first: list[Statistic]
    derived: dict[str, Any] = field(default_factory=dict)
    statistics: list[Statistic] = field(default_factory=list)
    rows: Rows = field(default_factory=Rows)
    wanted: IntArray = field(default_factory=lambda: NO_ROWS)

    @property
    def left_out(self) -> IntArray:
        """Rows that no statistic sees, ascending."""
        masked = self.matrix.masked.values()
        every = [self.census.zero, self.census.nonfinite, *masked]
        return np.unique(np.concatenate(every).astype(np.int64))

    @property
    def only_gathers(self) -> bool:
        """Whether the next round gathers rows and makes no pass."""
        return not self.statistics and len(self.wanted) > 0


@dataclass
class Known:
    """A plan as the metrics see it.

    Attributes
    ----------
    run : Run
    seen : Seen
    families : list of Family
        Those that are not absent.
    absent : dict of str to str
    notes : tuple of str
    """

    run: Run
    seen: Seen
    families: list[Family]
    absent: dict[str, str]
    notes: tuple[str, ...]


def known_from(
    plan: Plan,
    fetch: Fetch | None = None,
    progress: Progress | None = None,
    resources: Resources | None = None,
) -> Known:
    """The context after the first pass.

    Parameters
    ----------
    plan : Plan
    fetch : callable, optional
        Reads rows that are not at hand, or raises `RowsMissing`.

    Raises
    ------
    EmbgeoError
        If no row is left to analyze, or the options do not fit.
    """
    whole = plan.matrix
    data: Any = Gathered((whole.n, whole.d), whole.data.dtype, plan.rows, fetch)
    run = Run(replace(whole, data=data), plan.setup.options, progress or Progress(), resources)
    absent: dict[str, str] = {}
    families = present(chosen_families(plan.setup.sections), run.context, absent)
    run.census = plan.census
    run.takes_part[plan.left_out] = False
    run.know_rows()
    run.context = replace(run.context, passes_absent=IN_PARTS)
    check_usable(whole, run, plan.setup.options)
    families = present(families, run.context, absent)
    seen = Seen()
    seen.statistics = {s.key: s for s in plan.first}
    vars(seen).update(plan.derived)
    families, notes = within_bounds(families, run, seen)
    return Known(run, seen, families, absent, notes)


def within_bounds(
    families: Sequence[Family], run: Run, seen: Seen
) -> tuple[list[Family], tuple[str, ...]]:
    """The families that do not ask for more rows than can be gathered, and what is left out."""
    bytes_a_row = run.matrix.d * run.matrix.data.dtype.itemsize
    kept, notes = [], []
    for family in families:
        rows = len(family.rows_read(run.context, seen))
        if rows * bytes_a_row <= MOST_GATHERED:
            kept.append(family)
        else:
            name = family.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
            notes.append(
                f"left out: {family.FAMILY} ({name}), which looks at {rows:,} single rows, more "
                "than are gathered from parts"
            )
    return kept, tuple(notes)


def planned(plan: Plan, fetch: Fetch | None = None, progress: Progress | None = None) -> Plan:
    """The plan with the statistics of the second pass and the rows that are wanted.

    Where the statistics themselves hang on rows that are out of reach, rows come first.
    """
    known = known_from(plan, fetch, progress)
    context, seen = known.run.context, known.seen
    try:
        statistics = distinct(s for f in known.families for s in f.second(context, seen))
    except RowsMissing:
        statistics = []
    data = cast(Gathered, known.run.matrix.data)
    read = np.concatenate([NO_ROWS, *(f.rows_read(context, seen) for f in known.families)])
    return replace(
        plan,
        derived={name: value for name, value in vars(seen).items() if is_derived(name)},
        statistics=statistics,
        rows=data.rows,
        wanted=np.setdiff1d(read, data.rows.index),
    )


def is_derived(name: str) -> bool:
    return isinstance(vars(Seen).get(name), cached_property)


# Files -------------------------------------------------------------------------------------------


def save_plan(plan: Plan, path: Path) -> None:
    """Write a plan.

    Raises
    ------
    EmbgeoError
    """
    content = {name: getattr(plan, name) for name in PLAIN}
    content |= {"index": plan.rows.index, "rows": plan.rows.entries, "left_out": plan.left_out}
    if norms := SeenNorms.of(plan.first):
        content["first"] = [s for s in plan.first if not isinstance(s, Norms)]
        content |= pieces(norms, plan.matrix.n)
    files.write(path, "plan", content)


PLAIN = ("setup", "parts", "matrix", "census", "first", "derived", "statistics", "wanted")


def read_plan(stored: files.Stored) -> Plan:
    """Read what :func:`save_plan` wrote.

    Raises
    ------
    UnreadableFile
    """
    found = stored.unpack(*PLAIN, "index", "rows", longest=longest(stored))
    with reading(stored.path, "plan"):
        plan = Plan(
            **{name: found[name] for name in PLAIN}, rows=Rows(found["index"], found["rows"])
        )
        kinds = {"setup": Setup, "matrix": Matrix, "census": Census, "derived": dict}
        if not all(isinstance(getattr(plan, name), kind) for name, kind in kinds.items()):
            raise Damaged("damaged, or not written by embgeo")
        if not all(isinstance(s, Statistic) for s in (*plan.first, *plan.statistics)):
            raise Damaged("damaged, or not written by embgeo")
        if not all(isinstance(part, Part) for part in plan.parts):
            raise Damaged("damaged, or not written by embgeo")
        if not all(map(is_derived, plan.derived)):
            raise Damaged("damaged, or not written by embgeo")
        norms = statistic_of(stored, plan.matrix.n)
        return replace(plan, first=[*plan.first, *norms])
