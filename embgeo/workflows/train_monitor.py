"""Reports of runs while they are trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from embgeo.core.progress import Progress


def _ignore(_reported: object) -> None:
    """Drop a report."""


@dataclass(frozen=True, slots=True)
class RunMonitor:
    """Receives reports of many runs; the command line draws bars from them.

    Attributes
    ----------
    progress : Progress
        Progress of the current run, or of other long work.
    expect : callable
        ``expect(runs)`` before the first run.
    begin, done : callable
        ``begin(behind)`` before a run and ``done(behind)`` after it, with the number of runs that
        have ended.
    say : callable
        ``say(line)`` with the result of a run.
    """

    progress: Progress = field(default_factory=Progress)
    expect: Callable[[int], None] = _ignore
    begin: Callable[[int], None] = _ignore
    done: Callable[[int], None] = _ignore
    say: Callable[[str], None] = _ignore
