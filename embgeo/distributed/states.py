"""States: what a pass over a part of a matrix found. States merge like statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from embgeo.core.errors import UnreadableFile
from embgeo.core.matrix import Matrix
from embgeo.distributed import files
from embgeo.distributed.part import MeasuringSetup, StatePart
from embgeo.distributed.rows import StoredRows
from embgeo.io.bounded.guard import Damaged, reading
from embgeo.stats import Census
from embgeo.stats.statistic import Statistic, merge_all

S = TypeVar("S", bound=Statistic)

#: Key and state of a statistic in a file.
STATE = (tuple, dict)


@dataclass
class FirstState:
    """The first pass over one or several parts, with row numbers of the whole matrix."""

    setup: MeasuringSetup
    #: The parts with their matrices without entries; None for empty parts.
    pieces: list[tuple[StatePart, Matrix | None]]
    census: Census
    statistics: list[Statistic]

    def blank(self) -> Self:
        """The same statistics without rows."""
        return type(self)(self.setup, [], Census(), [s.blank() for s in self.statistics])

    def merge(self, other: Self) -> None:
        """Add the parts of another state of the same setup."""
        if difference := other.setup.difference(self.setup):
            (part, _), *_ = other.pieces
            raise UnreadableFile(
                f"the parts differ in {difference}",
                where=part.named,
                way_out="measure parts of one kind, all with the same embgeo",
            )
        self.pieces += other.pieces
        self.census.merge(other.census)
        merge_all(self.statistics, other.statistics)


@dataclass
class SecondState:
    """The second pass over one or several parts, by the plan of this identity."""

    plan: str
    parts: list[StatePart]
    statistics: list[Statistic]
    #: The requested rows that the parts hold.
    rows: StoredRows = field(default_factory=StoredRows)

    def blank(self) -> Self:
        """The same statistics without rows."""
        return type(self)(self.plan, [], [s.blank() for s in self.statistics])

    def merge(self, other: Self) -> None:
        """Add the parts of another state of the same plan."""
        self.parts += other.parts
        merge_all(self.statistics, other.statistics)
        self.rows = self.rows.join(other.rows)


# Files -------------------------------------------------------------------------------------------


def save_first(state: FirstState, path: Path) -> None:
    """Write the first round of a part, with the states of its statistics only."""
    content = {
        "setup": state.setup,
        "pieces": state.pieces,
        "census": state.census.state(),
        "states": [(s.key, s.state()) for s in state.statistics],
    }
    files.write(path, "first", content)


def read_first(stored: files.Stored, blanks: Sequence[Statistic]) -> FirstState:
    """Read what :func:`save_first` wrote into copies of blank statistics."""
    piece = (StatePart, Matrix | None)
    found = stored.unpack(setup=MeasuringSetup, pieces=[piece], census=dict, states=[STATE])
    with reading(stored.path, "state"):
        census = _restored(Census(), found["census"])
        path = str(stored.path)
        for part, _ in found["pieces"]:
            stored.check_shape(part.stop - part.start, found["setup"].d)
        pieces = [(replace(part, state=path), matrix) for part, matrix in found["pieces"]]
        return FirstState(found["setup"], pieces, census, _of_keys(blanks, found["states"]))


def read_setup(stored: files.Stored) -> MeasuringSetup:
    """The setup of a first round."""
    setup: MeasuringSetup = stored.unpack(setup=MeasuringSetup)["setup"]
    with reading(stored.path, "state"):
        stored.check_shape(0, setup.d)
    return setup


def save_second(state: SecondState, plan: Path, path: Path) -> None:
    """Write the second round of a part, with the path of its plan."""
    content = {
        "plan": state.plan,
        "plan_path": str(plan.absolute()),
        "parts": state.parts,
        "states": [(s.key, s.state()) for s in state.statistics],
        "index": state.rows.index,
        "rows": state.rows.entries,
    }
    files.write(path, "second", content)


def read_second(stored: files.Stored, blanks: Sequence[Statistic]) -> SecondState:
    """Read what :func:`save_second` wrote into copies of blank statistics."""
    rows = np.ndarray | None
    found = stored.unpack(plan=str, parts=[StatePart], states=[STATE], index=np.ndarray, rows=rows)
    with reading(stored.path, "state"):
        parts = [replace(part, state=str(stored.path)) for part in found["parts"]]
        states = _of_keys(blanks, found["states"])
        return SecondState(found["plan"], parts, states, StoredRows(found["index"], found["rows"]))


def _of_keys(
    blanks: Sequence[Statistic], states: Sequence[tuple[tuple[str, str], dict[str, Any]]]
) -> list[Statistic]:
    """Copies of blank statistics with the states saved under their keys."""
    known = dict(states)
    if len(known) != len(states) or set(known) != {blank.key for blank in blanks}:
        raise Damaged("its statistics differ from those of the other parts")
    return [_restored(blank.blank(), known[blank.key]) for blank in blanks]


def _restored(statistic: S, state: dict[str, Any]) -> S:
    try:
        statistic.restore(state)
    except ValueError:
        raise Damaged(f"{type(statistic).__name__} is not complete") from None
    return statistic
