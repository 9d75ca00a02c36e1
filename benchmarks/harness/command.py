"""Whole commands, from start to end, as a shell sees them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.harness import clock
from benchmarks.harness.call import ROOT, Failed
from benchmarks.harness.contest import Round

PYTHON = (sys.executable,)
EMBGEO = (*PYTHON, "-m", "embgeo")


def command(
    arguments: Sequence[str], check: Callable[[str], dict[str, float]], cwd: Path = ROOT
) -> Callable[[], Round]:
    """A command to be timed.

    Parameters
    ----------
    arguments : sequence of str
    check : callable
        Given what the command printed: how far off its answers are. It raises Wrong.
    cwd : Path
        Folder in which it runs.
    """

    def once() -> Round:
        # An installed package has its bytecode after the first call.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        began = clock.now()
        done = subprocess.run(
            arguments, capture_output=True, text=True, cwd=cwd, env=environment, check=False
        )
        seconds = clock.now() - began
        if done.returncode:
            raise Failed(f"{' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
        return {"seconds": seconds}, check(done.stdout)

    return once
