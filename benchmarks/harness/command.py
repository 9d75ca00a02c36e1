"""Whole commands, from start to end, as a shell sees them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
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
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
            began = clock.now()
            process = subprocess.Popen(arguments, stdout=out, stderr=said, cwd=cwd, env=environment)
            _, status, used = os.wait4(process.pid, 0)
            seconds = clock.now() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            said.seek(0)
            printed, stderr = out.read().decode(), said.read().decode()
        if process.returncode:
            raise Failed(f"{' '.join(arguments)}: {stderr.strip() or process.returncode}")
        return {"seconds": seconds, "peak_gb": used.ru_maxrss * 1024 / 1e9}, check(printed)

    return once
