"""Training steps of checkpoints: from their names, else from their content."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from embgeo.core.errors import BadOption
from embgeo.io.remote.names import as_written

#: A number in a path, with the word in front of it and the letter behind it, as in 10k and 1M.
NUMBER = re.compile(r"(?:([A-Za-z_]+)[-_=.]*)?(\d+)(?:([kKmM])(?![A-Za-z0-9]))?")
FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}
#: Names of steps, the best first.
WORDS = ("step", "steps", "iteration", "iter", "update", "updates", "batch", "epoch")

ReadStep = Callable[[Path], "tuple[float, str] | None"]


@dataclass(frozen=True, slots=True)
class Steps:
    """One step for each file, and the origin of the steps in words."""

    values: tuple[float, ...]
    source: str

    @property
    def order(self) -> list[int]:
        """Places of the files, by rising step."""
        return sorted(range(len(self.values)), key=self.values.__getitem__)


def steps_of(paths: Sequence[Path], read: ReadStep) -> Steps:
    """The steps of checkpoints of one run.

    `read` returns the step in a file with the name of its entry, or None.
    """
    named = from_names([str(path) for path in paths])
    if named is not None:
        return named
    held = [read(path) for path in paths]
    missing = [path for path, step in zip(paths, held, strict=True) if step is None]
    if missing:
        raise BadOption(
            "neither its name nor the file states its step",
            where=as_written(missing[0]),
            way_out="name checkpoints by their step, as in ckpt-500.pt",
        )
    known = [step for step in held if step is not None]
    values = tuple(value for value, _ in known)
    refuse_equal(paths, values)
    entries = dict.fromkeys(entry for _, entry in known)
    return Steps(values, f"the entry {' or '.join(map(repr, entries))} of the checkpoints")


def refuse_equal(paths: Sequence[Path], values: Sequence[float]) -> None:
    seen: dict[float, Path] = {}
    for path, value in zip(paths, values, strict=True):
        if value in seen:
            raise BadOption(
                f"is of the same step ({value:,.15g}) as {as_written(seen[value])}",
                where=as_written(path),
                way_out="name each step once",
            )
        seen[value] = path


def from_names(names: Sequence[str]) -> Steps | None:
    """The number that distinguishes the names; None if there is none.

    If several numbers differ, one that is called a step (an iteration, …) is preferred, then the
    last one.

    >>> from_names(["run2/ckpt-500.pt", "run2/ckpt-1000.pt"]).values
    (500.0, 1000.0)
    """
    found = [list(NUMBER.finditer(name)) for name in names]
    if not names or len({len(numbers) for numbers in found}) != 1 or not found[0]:
        return None
    columns = [
        column
        for column in zip(*found, strict=True)
        if len({value_of(match) for match in column}) == len(names)
    ]
    if not columns:
        return None
    column = min(reversed(columns), key=lambda c: rank_of(word_of(c[0])))
    word = word_of(column[0])
    called = f" after {word!r}" if word else ""
    return Steps(tuple(value_of(m) for m in column), f"the number{called} in the names")


def value_of(match: re.Match[str]) -> float:
    return float(int(match[2]) * FACTORS[(match[3] or "").lower()])


def word_of(match: re.Match[str]) -> str:
    return (match[1] or "").strip("_").lower()


def rank_of(word: str) -> int:
    """The place in `WORDS` of a word or its ending (global_step); lower is better."""
    ranks = (rank for rank, name in enumerate(WORDS) if f"_{word}".endswith(f"_{name}"))
    return next(ranks, len(WORDS))
