"""Functions called in a process of their own: nothing is warm, shared or left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[2]

#: The other end of a call. The Python's own embgeo, if it has one, is the one that is measured;
#: the benchmarks are always those of this tree.
WORKER = f"""
import sys
try:
    import embgeo
except ImportError:
    pass
sys.path.insert(0, {str(ROOT)!r})
from benchmarks.harness.worker import main
main(*sys.argv[1:])
"""

Result = dict[str, Any]
Work = Callable[..., Result]
#: Looks after a process until it has ended, and gives what it saw.
Watch = Callable[["subprocess.Popen[bytes]"], Result]


class Wrong(Exception):
    """An answer is not what it should be: no time is shown."""


class Failed(Exception):
    """A process ended without an answer."""


class Call(Protocol):
    """Calls a function of a module with arguments that JSON can hold."""

    def __call__(self, work: Work, arguments: Result, python: Path | None = None) -> Result: ...


def wait(process: subprocess.Popen[bytes]) -> Result:
    process.wait()
    return {}


def in_a_process(
    work: Work,
    arguments: Result,
    python: Path | None = None,
    watch: Watch = wait,
    loud: bool = False,
) -> Result:
    """Call a function in a new process.

    Parameters
    ----------
    work : callable
        A function at the top of a module.
    arguments : dict
    python : Path, optional
        Interpreter; the one that runs now by default.
    watch : callable, optional
    loud : bool
        Whether what the process writes to stderr is shown as it comes.

    Returns
    -------
    dict
        The function's result, with what `watch` saw.

    Raises
    ------
    Wrong
        If the function did.
    Failed
        If it ended in any other way, with the last line that it wrote.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, said = Path(folder) / "result.json", Path(folder) / "stderr"
        command = [
            *(str(python or sys.executable), "-c", WORKER),
            *(work.__module__, work.__qualname__, json.dumps(arguments), str(out)),
        ]
        # Another Python has an embgeo of its own, which nothing of this tree may hide.
        own = python is None
        environment = {k: v for k, v in os.environ.items() if own or k != "PYTHONPATH"}
        with said.open("wb") as kept:
            stderr = None if loud else kept
            process = subprocess.Popen(
                command,
                cwd=ROOT if own else folder,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
            try:
                seen = watch(process)
            finally:
                process.kill()
                process.wait()
        if not out.exists():
            lines = said.read_text(errors="replace").splitlines()
            last = next((line for line in reversed(lines) if line.strip()), "see above")
            raise Failed(f"{work.__qualname__} ended with {process.returncode}: {last}")
        result: Result = json.loads(out.read_text())
    if "wrong" in result:
        raise Wrong(result["wrong"])
    if "failed" in result:
        raise Failed(result["failed"])
    return result | seen


def here(work: Work, arguments: Result, python: Path | None = None) -> Result:
    """The same in this process: for trying out, not for timing."""
    if python is not None:
        raise Failed(f"{work.__qualname__}: another Python needs a process of its own")
    result: Result = json.loads(json.dumps(work(**json.loads(json.dumps(arguments)))))
    return result
