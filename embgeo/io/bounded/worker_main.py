"""Runs a worker within limits of memory and time, for `worker_process`.

The argument is the path of the worker, a script with a function ``serve(request, limit_time)``. Its
result is written to standard output as a line of JSON; a worker that writes its answers itself
returns None. A file that makes a library take all memory, hang or crash ends this process and
nothing else. Workers and this module import nothing of embgeo.
"""

from __future__ import annotations

import json
import runpy
import sys


def main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    worker = runpy.run_path(sys.argv[1])
    limit_memory(request["memory"])
    limit_time(request["seconds"])
    try:
        answer = worker["serve"](request, limit_time)
    # A panic of code in Rust is not an Exception.
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
    if answer is not None:
        sys.stdout.write(json.dumps(answer) + "\n")


def limit_memory(size: int) -> None:
    """Limit the memory of this process, if the system can do that."""
    try:
        import resource
    except ImportError:  # Windows
        return
    # No limit of addresses: threads reserve far more of them than they use.
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_time(seconds: float) -> None:
    """End this process after `seconds` of computing from now on, if the system can do that."""
    try:
        import signal

        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    except (ImportError, AttributeError):  # Windows
        return


if __name__ == "__main__":
    main()
