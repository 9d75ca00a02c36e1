"""Reports of progress."""

import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field

#: Whether :func:`announce` says nothing, as with ``--quiet``.
QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


def announce(text: str) -> None:
    """Say on stderr what takes long before it begins, such as the size of a download."""
    if not QUIET.get():
        print(text, file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Progress:
    """Receives reports of progress, which the command line shows as bars.

    Attributes
    ----------
    start : callable
        ``start(what, rows)`` at the beginning of a pass; 0 rows if the number is unknown.
    advance : callable
        ``advance(rows)`` during the pass, from any thread.

    Examples
    --------
    >>> import embgeo
    >>> import numpy as np
    >>> shown = Progress(start=lambda what, rows: print(what, rows) if rows > 1 else None)
    >>> made = embgeo.analyze(np.eye(9), sections="cosine", reference=False, progress=shown)
    1/3 first pass 9
    2/3 second pass 9
    """

    start: Callable[[str, int], None] = lambda _what, _rows: None
    advance: Callable[[int], None] = lambda _rows: None


@dataclass(frozen=True, slots=True)
class RunMonitor:
    """Receives reports of many training runs."""

    #: Progress of the current run, or of other long work.
    progress: Progress = field(default_factory=Progress)
    #: ``say(line)`` with the result of a run.
    say: Callable[[str], None] = lambda _line: None


def report_bytes(progress: Progress | None, what: str) -> Callable[[int, int], None] | None:
    """Return a function that reports finished and total bytes, starting at its first call."""
    if progress is None:
        return None
    before = -1

    def report(done: int, total: int) -> None:
        nonlocal before
        if before < 0:
            progress.start(what, total)
            before = 0
        progress.advance(done - before)
        before = done

    return report
