"""Large libraries in C read files in a process of their own, within memory and time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from embgeo.io.bounded.guard import GET_AGAIN, Damaged, plain

#: What one may take: a file is refused with no more than 1 GB.
MOST_MEMORY = 900 * 2**20
# HDF5 would load filters from a folder of plug-ins; the mark says: none.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "HDF5_PLUGIN_PRELOAD": "::",
}
_MOST_ANSWER = 64 * 2**20
#: On a busy machine a second of computing takes many; a script that computes too long ends itself.
_BUSY = 10


def ask(
    script: Path,
    library: str,
    request: dict[str, Any],
    seconds: float,
    memory: int = MOST_MEMORY,
) -> dict[str, Any]:
    """What the script answers to a request; both are JSON.

    Parameters
    ----------
    script : Path
        A module that can be run by itself: nothing of embgeo is on its path.
    library : str
        What it uses, for errors.
    request : dict
    seconds, memory : float, int
        Of computing, and bytes: what it may take. The script is told under these names and has to
        limit itself; where it does not, its time ends it.

    Raises
    ------
    Damaged
        With its reason, or because it took too long or ended without an answer.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", str(script)],
            input=json.dumps({**request, "memory": memory, "seconds": seconds}).encode() + b"\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_BUSY * seconds,
            env={**os.environ, **_ENVIRONMENT},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _too_long(library, seconds) from None
    if hasattr(signal, "SIGPROF") and done.returncode == -signal.SIGPROF:
        raise _too_long(library, seconds)
    try:
        answer: dict[str, Any] = json.loads(done.stdout[:_MOST_ANSWER])
    except ValueError:
        raise Damaged(f"{library} cannot read it and ends without saying why") from None
    if "error" in answer:
        raise Damaged(plain(answer["error"]), answer.get("way_out") or GET_AGAIN)
    return answer


def _too_long(library: str, seconds: float) -> Damaged:
    return Damaged(f"{library} needs more than {seconds:,.0f} seconds for it")
