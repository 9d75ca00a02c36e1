"""Contenders timed in turn, so that a drift of the machine hits all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness.call import Call, Result, Work, in_a_process

#: Of one round: a result with "seconds", and how far off each of its answers was.
Round = tuple[Result, dict[str, float]]


@dataclass
class Runs:
    """What one contender did, round by round.

    Attributes
    ----------
    name : str
    results : list of dict
    errors : dict of str to float
        How far off each checked answer was at worst.
    """

    name: str
    results: list[Result] = field(default_factory=list)
    errors: dict[str, float] = field(default_factory=dict)

    def add(self, result: Result, errors: Mapping[str, float]) -> None:
        self.results.append(result)
        for name, error in errors.items():
            self.errors[name] = max(error, self.errors.get(name, 0.0))

    @property
    def seconds(self) -> list[float]:
        return [float(result["seconds"]) for result in self.results]

    @property
    def stages(self) -> dict[str, float]:
        """Median seconds of each stage, where the contender tells them."""
        names: list[str] = list(self.results[0].get("stages", {}))
        return {name: median(r["stages"][name] for r in self.results) for name in names}

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "seconds": self.seconds,
            "stages": self.stages,
            "errors": self.errors,
        }


@dataclass(frozen=True)
class Bench:
    """Where and how a case works.

    Attributes
    ----------
    scratch : Path
        Folder for matrices, kept for the next time.
    runs : int or None
        Rounds; None: as many as the case thinks right.
    peers : Path or None
        Python interpreter where the peers are installed.
    before : Path or None
        Python interpreter where an earlier embgeo is installed.
    call : Call
        How a function is called that times itself.
    """

    scratch: Path
    runs: int | None = None
    peers: Path | None = None
    before: Path | None = None
    call: Call = in_a_process

    def contest(
        self, contenders: Mapping[str, Callable[[], Round]], usual: int = 5
    ) -> dict[str, Runs]:
        """Every contender once a round, forwards and backwards in turn.

        Parameters
        ----------
        contenders : mapping of name to callable
            Each gives its result once the answer in it is checked, and raises Wrong otherwise:
            no time is kept whose answer was not checked.
        usual : int
            Rounds where nobody says otherwise.
        """
        rounds = self.runs or usual
        found = {name: Runs(name) for name in contenders}
        for number in range(rounds):
            for name in list(contenders)[:: 1 if number % 2 == 0 else -1]:
                result, errors = contenders[name]()
                found[name].add(result, errors)
                line = f"  round {number + 1} of {rounds}: {name} {result['seconds']:.3g} s"
                print(line, file=sys.stderr, flush=True)
        return found

    def contender(
        self,
        work: Work,
        arguments: Result,
        check: Callable[[Result], dict[str, float]],
        python: Path | None = None,
    ) -> Callable[[], Round]:
        """A function that times itself, with the check of its answers."""

        def once() -> Round:
            result = self.call(work, arguments, python)
            return result, check(result.pop("answers"))

        return once
