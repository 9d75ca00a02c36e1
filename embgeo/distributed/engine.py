"""Both passes through an engine that measures all parts and merges their states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy.typing as npt

from embgeo.core.arrays import IntArray
from embgeo.core.errors import EmbgeoError
from embgeo.core.options import Options
from embgeo.core.progress import Progress
from embgeo.distributed.code_version import check_version
from embgeo.distributed.finish import finish
from embgeo.distributed.merging import add_rows, make_plan
from embgeo.distributed.plans import MergePlan, extend_plan, leave_out_damaged, take_first
from embgeo.distributed.rounds import SecondPassTask, make_task
from embgeo.distributed.states import FirstState, SecondState
from embgeo.metrics.facts import NO_ROWS
from embgeo.result.analysis import Analysis
from embgeo.stats.resources import Resources
from embgeo.stats.statistic import Statistic, merge_all


class Engine(Protocol):
    """Measures all parts of a matrix."""

    @property
    def progress(self) -> Progress: ...

    def first(
        self, sections: tuple[str, ...] | None, options: Options, reference: bool
    ) -> FirstState:
        """The first pass over all parts."""

    def second(self, task: SecondPassTask) -> SecondState:
        """A pass for the statistics of a task, its requested rows or both; no pass for neither."""


def analyze_through(
    engine: Engine,
    *,
    sections: Sequence[str] | None = None,
    options: Options | None = None,
    reference: bool = True,
    described: Callable[[MergePlan], MergePlan] = lambda plan: plan,
    command: str = "",
    resources: Resources | None = None,
) -> Analysis:
    """Measure a matrix with both passes over its parts.

    `described` adds labels, counts and origin of the whole to the plan.
    """
    chosen = None if sections is None else tuple(sections)
    first = engine.first(chosen, options or Options(), reference)
    check_version(first.setup.embgeo, "the workers")
    known = described(make_plan(first))
    again = leave_out_damaged(known)
    if again.repeats_first:
        known = take_first(again, engine.second(make_task(again)).statistics)
    plan = extend_plan(known, lambda needed: fetch(engine, known, needed), engine.progress)
    second = engine.second(make_task(plan))

    def fold(statistics: Sequence[Statistic]) -> None:
        task = replace(make_task(plan), statistics=statistics, needed=NO_ROWS)
        merge_all(statistics, engine.second(task).statistics)

    return finish(
        add_rows(plan, second.rows),
        second.statistics,
        command=command,
        progress=engine.progress,
        resources=resources,
        fold=fold,
    )


def fetch(engine: Engine, plan: MergePlan, needed: IntArray) -> npt.NDArray[Any]:
    """Rows of the whole matrix, shape (len(needed), d)."""
    found = engine.second(replace(make_task(plan), statistics=(), needed=needed)).rows
    if found.entries is None:
        raise EmbgeoError("no rows came back from the parts")
    return found.entries
