"""Runs a worker within limits of memory and time: the other side of `worker_process`.

Run as a script with the path of the worker, another script that has a function ``serve`` of the
request and of :func:`limit_time`. A file that makes a library take all memory, hang or crash ends
this process and nothing else. Workers, and this module, import nothing of embgeo.
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
    worker["serve"](request, limit_time)


def limit_memory(size: int) -> None:
    """Refuse memory beyond `size` bytes to this process, where the system can do that."""
    try:
        import resource
    except ImportError:  # Windows
        return
    # Not of addresses: threads reserve far more of them than they use.
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_time(seconds: float) -> None:
    """End this process after `seconds` of computing from now on, where there is a clock."""
    try:
        import signal

        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    except (ImportError, AttributeError):  # Windows
        return


if __name__ == "__main__":
    main()
