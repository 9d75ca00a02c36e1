"""Plans: the first pass over all parts, and what the next round has to find."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from embgeo.core.arrays import IntArray
from embgeo.core.matrix import Matrix
from embgeo.core.progress import Progress
from embgeo.core.values import Note
from embgeo.distributed import files
from embgeo.distributed.code_version import check_version
from embgeo.distributed.part import MeasuringSetup, StatePart
from embgeo.distributed.rows import (
    Fetch,
    Gathered,
    RowsMissing,
    SeenNorms,
    StoredRows,
    read_norms_statistic,
    split_norms,
)
from embgeo.io.bounded.guard import Damaged, reading
from embgeo.measure.checks import check_usable
from embgeo.measure.passes import Measurement
from embgeo.metrics import SharedStatistics
from embgeo.metrics.facts import NO_ROWS
from embgeo.stats import Census, Norms
from embgeo.stats.reader import RowReader
from embgeo.stats.resources import Resources
from embgeo.stats.statistic import Statistic

#: Most bytes of rows that are gathered for one family.
MOST_GATHERED = 2 * 2**30
IN_PARTS = "the matrix was measured in parts, where each further pass would be another round"

FoldParts = Callable[[Sequence[Statistic]], None]


@dataclass
class MergePlan:
    """The first pass over the whole matrix, and the tasks of the next round."""

    setup: MeasuringSetup
    parts: list[StatePart]
    #: The whole matrix without its entries.
    matrix: Matrix
    census: Census
    #: Statistics of the first pass over all parts.
    first: list[Statistic]
    #: Values derived from them, so that all parts use the same eigenvectors.
    derived: dict[str, Any] = field(default_factory=dict)
    #: Blank statistics of the second pass; empty if rows have to be gathered first.
    statistics: list[Statistic] = field(default_factory=list)
    rows: StoredRows = field(default_factory=StoredRows)
    #: Rows that the parts have to give.
    needed: IntArray = field(default_factory=lambda: NO_ROWS)
    #: Whether the next round repeats the first pass without damaged rows.
    repeats_first: bool = False

    @property
    def left_out(self) -> IntArray:
        """Masked and damaged rows, ascending."""
        masked = self.matrix.masked.values()
        every = [self.census.zero, self.census.nonfinite, self.census.small, *masked]
        return np.unique(np.concatenate(every).astype(np.int64))

    @property
    def only_gathers(self) -> bool:
        """Whether the next round gathers rows without a pass."""
        return not self.statistics and len(self.needed) > 0

    @property
    def is_preliminary(self) -> bool:
        """Whether the second pass comes after the next round."""
        return self.repeats_first or self.only_gathers


class PartsReader(RowReader):
    """Reads gathered rows; `fold_parts` feeds the rows of all parts to statistics, if possible."""

    def __init__(
        self,
        matrix: Matrix,
        resources: Resources | None = None,
        progress: Progress | None = None,
        fold_parts: FoldParts | None = None,
    ) -> None:
        super().__init__(matrix, resources, progress)
        self.fold_parts = fold_parts
        self.passes_absent = "" if fold_parts else IN_PARTS

    def fold(self, statistics: Sequence[Statistic], rows: IntArray | None = None) -> None:
        if rows is None and self.fold_parts is not None:
            self.fold_parts(statistics)
        else:
            super().fold(statistics, rows)


def resume(
    plan: MergePlan,
    fetch: Fetch | None = None,
    progress: Progress | None = None,
    resources: Resources | None = None,
    fold_parts: FoldParts | None = None,
) -> tuple[Measurement, tuple[Note, ...]]:
    """The measurement of a plan after its first pass, and notes on families that are left out.

    `fetch` reads rows that were not gathered, or raises `RowsMissing`.
    """
    whole, setup = plan.matrix, plan.setup
    data: Any = Gathered((whole.n, whole.d), whole.data.dtype, plan.rows, fetch)
    matrix = replace(whole, data=data, rounded=setup.options.precision == "float32")
    reader = PartsReader(matrix, resources, progress, fold_parts)
    measurement = Measurement(reader, setup.options, setup.sections, frugal=False)
    reader.census = plan.census
    reader.takes_part[plan.left_out] = False
    measurement.know_rows()
    check_usable(measurement)
    measurement.shared.add(plan.first)
    vars(measurement.shared).update(plan.derived)
    return measurement, leave_out_large(measurement)


def leave_out_large(measurement: Measurement) -> tuple[Note, ...]:
    """Leave out families that read more rows than can be gathered; a note on each."""
    matrix = measurement.reader.matrix
    bytes_a_row = matrix.d * matrix.data.dtype.itemsize
    kept, notes = [], []
    for family in measurement.families:
        rows = len(measurement.ask(family, "rows_read"))
        if rows * bytes_a_row <= MOST_GATHERED:
            kept.append(family)
        else:
            name = family.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
            text = (
                f"left out: {family.FAMILY} ({name}), which reads {rows:,} single rows, too many "
            )
            notes.append(Note("parts", f"{text}to gather from parts"))
    measurement.families = kept
    return tuple(notes)


def extend_plan(
    plan: MergePlan, fetch: Fetch | None = None, progress: Progress | None = None
) -> MergePlan:
    """The plan with the statistics and the rows of the next round.

    If rows turn out to be damaged, the first pass is repeated without them. If the statistics
    depend on rows that are out of reach, these rows are gathered first.
    """
    plan = leave_out_damaged(plan)
    if plan.repeats_first:
        return plan
    measurement, _ = resume(plan, fetch, progress)
    try:
        statistics = measurement.collect("second")
    except RowsMissing:
        statistics = []
    data = cast(Gathered, measurement.reader.matrix.data)
    read = [measurement.ask(family, "rows_read") for family in measurement.families]
    shared = vars(measurement.shared)
    return replace(
        plan,
        derived={name: value for name, value in shared.items() if is_derived(name)},
        statistics=statistics,
        rows=data.rows,
        needed=np.setdiff1d(np.concatenate([NO_ROWS, *read]), data.rows.index),
    )


def leave_out_damaged(plan: MergePlan) -> MergePlan:
    """The plan that repeats the first pass without damaged rows; unchanged if there are none."""
    norms = next((s for s in plan.first if isinstance(s, Norms)), None)
    if norms is None or len(plan.census.small):  # they were found before
        return plan
    rows, values = norms.find_small(plan.setup.options.min_norm)
    if not len(rows):
        return plan
    census = plan.census.renumber(0)
    census.leave_out(rows, values)
    blanks = [statistic.blank() for statistic in plan.first]
    return replace(plan, census=census, statistics=blanks, repeats_first=True)


def take_first(plan: MergePlan, statistics: Sequence[Statistic]) -> MergePlan:
    """The plan with its repeated first pass."""
    return replace(plan, first=list(statistics), statistics=[], repeats_first=False)


def is_derived(name: str) -> bool:
    """Whether an attribute of `SharedStatistics` is derived from the statistics."""
    return isinstance(vars(SharedStatistics).get(name), cached_property)


#: Attributes of a plan that its file holds unchanged, with their kinds.
PLAIN = {
    "setup": MeasuringSetup,
    "parts": [StatePart],
    "matrix": Matrix,
    "census": Census,
    "first": [Statistic],
    "derived": dict,
    "statistics": [Statistic],
    "needed": np.ndarray,
    "repeats_first": bool,
}


# Files -------------------------------------------------------------------------------------------


def save_plan(plan: MergePlan, path: Path) -> None:
    """Write a plan."""
    content = {name: getattr(plan, name) for name in PLAIN}
    content |= {"index": plan.rows.index, "rows": plan.rows.entries, "left_out": plan.left_out}
    if norms := SeenNorms.of(plan.first):
        content["first"] = [s for s in plan.first if not isinstance(s, Norms)]
        content |= split_norms(norms, plan.matrix.n)
    files.write(path, "plan", content)


def read_plan(stored: files.Stored) -> MergePlan:
    """Read what :func:`save_plan` of this version wrote."""
    found = stored.unpack(**PLAIN, index=np.ndarray, rows=np.ndarray | None)
    check_version(found["setup"].embgeo, stored.path)
    with reading(stored.path, "plan"):
        if not all(map(is_derived, found["derived"])):
            raise Damaged(files.NOT_OURS)
        stored.check_shape(found["matrix"].n, found["setup"].d)
        rows = StoredRows(found.pop("index"), found.pop("rows"))
        plan = MergePlan(**found, rows=rows)
        norms = read_norms_statistic(stored, plan.matrix.n)
        return replace(plan, first=[*plan.first, *norms])
