"""The process that libraries in C run in: its limits, and what is said of what becomes of it."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from typing import Any

import pytest

from embgeo.files import limited
from embgeo.files.guard import Damaged
from tests.support.refusals import refusal

JOBS = """
import ctypes, os, signal, socket
from embgeo.files.guard import Damaged
from embgeo.files.limited import limit_time

def echo(**arguments):
    return arguments
def refuse():
    raise Damaged("no\\u001b", "a way out")
def fail():
    raise ValueError("first line\\nsecond line")
def abort():
    os.abort()
def abort_in(text):
    os.abort()
def compute():
    while True:
        pass
def wait():
    signal.pause()
def fill():
    return len(bytearray(10**9))
def connect():
    socket.create_connection(("127.0.0.1", 9))
def connect_in_c():
    library = ctypes.CDLL(None, use_errno=True)
    handle = library.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    library.connect(handle, bytes([2, 0, 0, 9, 127, 0, 0, 1]) + bytes(8), 16)
    return ctypes.get_errno()
def join(text):
    return [piece.decode() for piece in text]
def compute_on(text):
    for piece in text:
        limit_time(0.1)
        while True:
            pass
"""


@pytest.fixture(autouse=True)
def jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import sys, types; sys.path.append(sys.argv[1]); "
        "from embgeo.files import limited; m = types.ModuleType('jobs'); "
        f"exec({JOBS!r}, m.__dict__); sys.modules['jobs'] = m; limited.serve()"
    )
    command = [code if part == limited._MAIN else part for part in limited.COMMAND]
    monkeypatch.setattr(limited, "COMMAND", command)


def run(job: str, seconds: float = 20, **options: Any) -> Any:
    return limited.run_limited(f"jobs:{job}", "the library", seconds, **options)


def test_arguments_and_answers_are_json() -> None:
    assert run("echo", a=[1, "é"], b=None) == {"a": [1, "é"], "b": None}


@pytest.mark.parametrize(
    ("job", "seconds"),
    [
        ("refuse", 20),
        ("fail", 20),
        ("abort", 20),
        ("compute", 0.2),
        ("fill", 20),
        ("connect", 20),
    ],
)
@pytest.mark.slow
def test_a_job_that_fails(job: str, seconds: float) -> None:
    pytest.importorskip("resource", reason="this system does not limit processes")
    with refusal(Damaged):
        run(job, seconds, memory=300 * 2**20)


@pytest.mark.slow
def test_a_job_that_waits_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited, "_BUSY", 0.01)
    with refusal(Damaged):
        run("wait")


@pytest.mark.slow
def test_code_in_c_has_no_network() -> None:
    """Not even the loopback device, where the system lets a process leave its network."""
    found = run("connect_in_c")
    if found == errno.ECONNREFUSED:
        pytest.skip("this system does not let a process leave its network")
    assert found == errno.ENETUNREACH


@pytest.mark.slow
def test_text_is_sent_in_pieces_and_the_time_of_each_is_limited() -> None:
    def pieces() -> Iterator[bytes]:
        yield from (b"a" * 10, "é".encode(), b"c" * 100_000)

    assert run("join", text=pieces()) == ["a" * 10, "é", "c" * 100_000]
    with refusal(Damaged):
        run("compute_on", text=pieces())
    with refusal(Damaged):
        run("abort_in", text=pieces())


@pytest.mark.slow
def test_the_process_does_not_outlive_an_error_of_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    processes: list[Any] = []
    start = limited.start
    monkeypatch.setattr(limited, "start", lambda: processes.append(start()) or processes[0])

    def pieces() -> Iterator[bytes]:
        yield b"a"
        raise KeyError("the corpus")

    with pytest.raises(KeyError):
        run("join", text=pieces())
    assert processes[0].poll() is not None


def test_a_job_answers_in_the_same_way_in_this_process() -> None:
    request = {
        "job": "embgeo.io.formats.hdf5:sniff",
        "arguments": {"head": b"x"},
        "memory": 2**20,
        "seconds": 1,
    }
    assert json.dumps(limited.answer_request(request, None)) == '{"answer": false}'
