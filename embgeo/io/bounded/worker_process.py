"""Large libraries in C read files in a process of their own, within memory and time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.io.bounded.guard import GET_AGAIN, Damaged, plain
from embgeo.io.bounded.maps import Array, count, map_file, view
from embgeo.io.bounded.scratch import MEMORY_BYTES, ScratchFile

#: What one may take: a file is refused with no more than 1 GB.
MOST_MEMORY = 900 * 2**20
# HDF5 would load filters from a folder of plug-ins; the mark says: none.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "HDF5_PLUGIN_PRELOAD": "::",
}
_MAIN = Path(__file__).with_name("worker_main.py")
_MOST_ANSWER = 64 * 2**20
#: On a busy machine a second of computing takes many; a script that computes too long ends itself.
_BUSY = 10


def worker_command(script: Path) -> list[str]:
    """What starts a worker; nothing of the current folder is on its path."""
    return [sys.executable, "-P", "-W", "ignore", str(_MAIN), str(script)]


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
        A worker as :mod:`embgeo.io.bounded.worker_main` runs it.
    library : str
        What it uses, for errors.
    request : dict
    seconds, memory : float, int
        Of computing, and bytes: what it may take.
    """
    answer = run_worker(script, library, {**request, "memory": memory, "seconds": seconds})
    if "error" in answer:
        raise Damaged(plain(answer["error"]), answer.get("way_out") or GET_AGAIN)
    return answer


def run_worker(script: Path, library: str, request: dict[str, Any]) -> dict[str, Any]:
    """The answer as it came, within the memory and the seconds that the request names."""
    seconds = request["seconds"]
    try:
        done = subprocess.run(
            worker_command(script),
            input=json.dumps(request).encode() + b"\n",
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
    return answer


def fetch_array(
    write: Callable[[str], dict[str, Any]], dtype: np.dtype[Any], shape: tuple[int, ...], what: str
) -> Array | dict[str, Any]:
    """The numbers that a worker writes, read-only; its answer where it names a place instead.

    Parameters
    ----------
    write : callable
        Asks the worker to write to the file of this name, and gives its answer.
    dtype : dtype
    shape : tuple of int
    what : str
        The error for other than the bytes that these ask for.
    """
    output, size = ScratchFile(), count(shape) * dtype.itemsize
    try:
        answer = write(str(output.path))
        if answer.get("offset") is not None:
            return answer
        if output.path.stat().st_size != size:
            raise Damaged(what)
        # Beyond this size a map keeps the nameless file; Windows removes it with the process.
        if size > MEMORY_BYTES:
            return view(map_file(output.path), dtype, shape)
        return view(np.fromfile(output.path, dtype=np.uint8), dtype, shape)
    finally:
        output.remove()


def _too_long(library: str, seconds: float) -> Damaged:
    return Damaged(f"{library} needs more than {seconds:,.0f} seconds for it")
