"""The clock of a run: of the wall, or of the processor, which does not count waiting for others."""

from __future__ import annotations

import os
import resource
import time

#: Set by run.py for every process that it starts.
PROCESSOR = "EMBGEO_BENCHMARKS_PROCESSOR"


def now() -> float:
    """Return seconds: of the wall, or those of this process and of its children that have ended."""
    if not os.environ.get(PROCESSOR):
        return time.perf_counter()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
