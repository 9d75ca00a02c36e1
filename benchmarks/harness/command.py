"""Whole commands, from start to end, as a shell sees them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks.harness.call import ROOT, Failed
from benchmarks.harness.contest import Round

PYTHON = (sys.executable,)
EMBGEO = (*PYTHON, "-m", "embgeo")


def command(
    arguments: Sequence[str], check: Callable[[str], dict[str, float]]
) -> Callable[[], Round]:
    """A command to be timed.

    Parameters
    ----------
    arguments : sequence of str
    check : callable
        Given what the command printed: how far off its answers are. It raises Wrong.
    """

    def once() -> Round:
        began = time.perf_counter()
        done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, check=False)
        seconds = time.perf_counter() - began
        if done.returncode:
            raise Failed(f"{' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
        return {"seconds": seconds}, check(done.stdout)

    return once
