"""Runs libraries in C in a process of its own, with limited memory and time and without network.

A job is a function of a module, named ``"module:function"``. The process
gets a line of JSON with the job, its arguments and its limits and, for a job that takes `text`,
pieces of bytes, each after its length in eight bytes, up to an empty one. It answers with a line of
JSON; large results go to a file that the arguments name. A file that makes a library take all
memory, hang or crash ends this process and nothing else.
"""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from embgeo.core.errors import UnreadableFile
from embgeo.files.guard import Damaged, plain
from embgeo.files.maps import Array, count, map_file, view
from embgeo.files.scratch import MEMORY_BYTES, ScratchFile

#: Memory of the process: a refusal may take 1 GB in all.
MOST_MEMORY = 900 * 2**20
# "::" keeps HDF5 from loading filters from a folder of plug-ins. More threads of tokenizers would
# use up the processor seconds faster.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "HDF5_PLUGIN_PRELOAD": "::",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "TOKENIZERS_PARALLELISM": "true",
    "RAYON_NUM_THREADS": "2",
}
_MAIN = "import sys; sys.path.append(sys.argv[1]); from embgeo.files.limited import serve; serve()"
#: The current folder is not on the path of the process.
COMMAND = [sys.executable, "-P", "-W", "ignore", "-c", _MAIN, str(Path(__file__).parents[2])]
_MOST_ANSWER = 64 * 2**20
#: Limit of wall time per second of computing, for busy machines; the process limits its computing.
_BUSY = 10
_LENGTH_BYTES = 8
# CLONE_NEWUSER and CLONE_NEWNET of Linux.
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000


def run_limited(
    job: str,
    library: str,
    seconds: float,
    *,
    memory: int = MOST_MEMORY,
    text: Iterable[bytes] | None = None,
    **arguments: Any,
) -> Any:
    """Run a job and return its answer.

    It may compute for `seconds` and take `memory` bytes; `library` names what it calls in errors.
    With `text` it may limit the time of each piece anew, and its wall time is not limited.
    """
    request = {
        "job": job,
        "arguments": arguments,
        "memory": memory,
        "seconds": seconds,
        "streams": text is not None,
    }
    code, line = exchange(request, text)
    if line is None or (hasattr(signal, "SIGPROF") and code == -signal.SIGPROF):
        raise Damaged(f"{library} needs more than {seconds:,.0f} seconds for it")
    try:
        answer = json.loads(line)
    except ValueError:
        raise Damaged(f"{library} cannot read it and ends without saying why") from None
    if "failure" in answer:
        raise Damaged(f"damaged or cut off ({library}: {plain(answer['failure'])})")
    if "error" in answer:
        raise Damaged(plain(answer["error"]), answer["way_out"])
    return answer["answer"]


def exchange(request: dict[str, Any], text: Iterable[bytes] | None) -> tuple[int, bytes | None]:
    """Return the exit code of a process and its answer; None if its wall time was over."""
    with start() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        limit = Timer(_BUSY * request["seconds"], process.kill)
        if text is None:
            limit.start()
        try:
            _send(process, request, text)
            line = process.stdout.read(_MOST_ANSWER)
            code = process.wait()
        finally:
            late = text is None and not limit.is_alive()
            limit.cancel()
            process.kill()
            with contextlib.suppress(OSError):  # flushes to a process that has ended
                process.stdin.close()
    return code, None if late else line


def start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **_ENVIRONMENT},
    )


def _send(
    process: subprocess.Popen[bytes], request: dict[str, Any], text: Iterable[bytes] | None
) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        for piece in () if text is None else text:
            process.stdin.write(len(piece).to_bytes(_LENGTH_BYTES, "little") + piece)
        process.stdin.write(bytes(_LENGTH_BYTES))
        process.stdin.flush()
    except OSError:
        return  # the process has ended; its answer says why


def fetch_array(
    job: str,
    library: str,
    seconds: float,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    *,
    memory: int = MOST_MEMORY,
    **arguments: Any,
) -> Array:
    """Read an array that a job writes to `output`."""
    size = count(shape) * dtype.itemsize
    with ScratchFile() as output:
        run_limited(job, library, seconds, memory=memory, output=str(output), **arguments)
        if output.stat().st_size != size:
            raise Damaged("it does not hold the numbers that it promises")
        # A map keeps the file after its removal; Windows removes it with the process.
        if size > MEMORY_BYTES:
            return view(map_file(output), dtype, shape)
        return view(np.fromfile(output, dtype=np.uint8), dtype, shape)


# The process


def serve() -> None:
    """Answer the request on standard input."""
    leave_network()
    request = json.loads(sys.stdin.buffer.readline())
    answer = answer_request(request, _pieces() if request["streams"] else None, limited=True)
    sys.stdout.write(json.dumps(answer) + "\n")


def answer_request(
    request: dict[str, Any], text: Iterable[bytes] | None, *, limited: bool = False
) -> dict[str, Any]:
    """Return the answer to a request, within its limits if this process is `limited`."""
    module, _, name = request["job"].partition(":")
    arguments = {**request["arguments"], **({} if text is None else {"text": text})}
    try:
        job = getattr(import_module(module), name)
        if limited:
            _limit_memory(request["memory"])
            limit_time(request["seconds"])
        return {"answer": job(**arguments)}
    except (Damaged, UnreadableFile) as error:
        return {"error": error.cause, "way_out": error.way_out}
    except MemoryError:
        return {
            "error": f"reading it takes more than {request['memory'] // 2**20:,} MiB",
            "way_out": "write it in smaller parts (row groups, chunks), or save the matrix as .npy",
        }
    # A panic of code in Rust is not an Exception.
    except BaseException as error:
        first = (str(error).strip().splitlines() or [""])[0][:120]
        return {"failure": f"{type(error).__name__}: {first}"}


def _pieces() -> Iterator[bytes]:
    source = sys.stdin.buffer
    while length := int.from_bytes(source.read(_LENGTH_BYTES), "little"):
        yield source.read(length)


def leave_network() -> None:
    """Move this process to a network of its own, without devices, if the system allows it.

    Sockets of Python are refused on every system.
    """
    sys.addaudithook(_refuse_sockets)
    with contextlib.suppress(AttributeError, OSError):
        # A user namespace would take the rights of root over other users' files.
        flags = _NEW_NETWORK if os.geteuid() == 0 else _NEW_NETWORK | _NEW_USER
        ctypes.CDLL(None).unshare(flags)


def _refuse_sockets(event: str, _arguments: tuple[Any, ...]) -> None:
    if event.startswith("socket."):
        raise PermissionError("this process has no network")


def _limit_memory(size: int) -> None:
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
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    except AttributeError:  # Windows
        return
