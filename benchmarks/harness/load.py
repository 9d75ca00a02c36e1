"""How busy the machine was with other things while something was timed."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

#: Share of all cores that others may take before times are called doubtful.
BUSY = 0.05


@dataclass(frozen=True)
class Moment:
    """Load average, time, and processor seconds so far: of everybody, and of our own processes."""

    load: float
    time: float
    everybody: float | None
    own: float

    @classmethod
    def now(cls) -> Self:
        """Own processes are this one and those that it started and that have ended."""
        spent = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own = sum(usage.ru_utime + usage.ru_stime for usage in spent)
        return cls(os.getloadavg()[0], time.monotonic(), processor_seconds(), own)


def processor_seconds() -> float | None:
    """Seconds that all cores together have worked since the start, or None where not told."""
    listing = Path("/proc/stat")
    if not listing.exists():
        return None
    ticks = [int(field) for field in listing.read_text().partition("\n")[0].split()[1:9]]
    user, nice, system, _idle, _waiting, irq, softirq, steal = ticks
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Load:
    """How busy the machine was.

    Attributes
    ----------
    before, after : float
        Load average of one minute; the second one counts what was timed too.
    others : float or None
        Share of all cores that other processes took meanwhile; None where not told.
    """

    before: float
    after: float
    others: float | None

    @classmethod
    def between(cls, start: Moment, end: Moment) -> Self:
        others = None
        if start.everybody is not None and end.everybody is not None:
            seconds = end.everybody - start.everybody - (end.own - start.own)
            cores = os.cpu_count() or 1
            others = max(0.0, seconds / (cores * max(end.time - start.time, 1e-9)))
        return cls(start.load, end.load, others)

    @property
    def warning(self) -> str:
        """What a reader of the times has to know, or nothing."""
        if self.others is not None:
            busy, how = self.others > BUSY, f"other processes took {self.others:.0%} of it"
        else:
            busy = self.before > BUSY * (os.cpu_count() or 1)
            how = f"its load average was {self.before:.2f} before"
        return f"the machine was busy: {how}" if busy else ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"warning": self.warning}
