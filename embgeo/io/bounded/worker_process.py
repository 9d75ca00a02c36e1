"""Runs libraries in C in a process of their own, with limited memory and time."""

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

#: Memory of a worker: a refusal may take 1 GB in all.
MOST_MEMORY = 900 * 2**20
# "::" keeps HDF5 from loading filters from a folder of plug-ins.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "HDF5_PLUGIN_PRELOAD": "::",
}
_MAIN = Path(__file__).with_name("worker_main.py")
_MOST_ANSWER = 64 * 2**20
#: Limit of wall time per second of computing, for busy machines; the worker limits its computing.
_BUSY = 10


def worker_command(script: Path) -> list[str]:
    """Command that starts a worker; the current folder is not on its path."""
    return [sys.executable, "-P", "-W", "ignore", str(_MAIN), str(script)]


def ask(
    script: Path,
    library: str,
    request: dict[str, Any],
    seconds: float,
    memory: int = MOST_MEMORY,
) -> dict[str, Any]:
    """Send a request to a worker and return its answer, both as JSON.

    `script` is a worker for `worker_main`, `library` its library, for errors. It may compute for
    `seconds` and take `memory` bytes.
    """
    answer = run_worker(script, library, {**request, "memory": memory, "seconds": seconds})
    if "error" in answer:
        raise Damaged(plain(answer["error"]), answer.get("way_out") or GET_AGAIN)
    return answer


def run_worker(script: Path, library: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a worker, which may be an error."""
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
    """Read an array that a worker writes, or return its answer if that names a place instead.

    `write` asks the worker to write to a file of this name; `what` is the error for a wrong size.
    """
    output, size = ScratchFile(), count(shape) * dtype.itemsize
    try:
        answer = write(str(output.path))
        if answer.get("offset") is not None:
            return answer
        if output.path.stat().st_size != size:
            raise Damaged(what)
        # A map keeps the file after its removal; Windows removes it with the process.
        if size > MEMORY_BYTES:
            return view(map_file(output.path), dtype, shape)
        return view(np.fromfile(output.path, dtype=np.uint8), dtype, shape)
    finally:
        output.remove()


def _too_long(library: str, seconds: float) -> Damaged:
    return Damaged(f"{library} needs more than {seconds:,.0f} seconds for it")
