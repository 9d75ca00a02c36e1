"""Every malicious and broken file of our own making, and what `embgeo analyze` does with it.

    python tests/support/hostile_corpus.py --report [--part NAME] [--only TEXT] [--quick]
        [--sample N] [--every]

writes each file of the corpus into a folder of its own and analyses it in a process of its own,
which watches itself: it may run no program but embgeo's own workers, open no socket, write to no
file outside of the output folder and the folder of temporary files, and never reach Python's own
unpickler. What is reported is how many files there are, how each ended, and the slowest refusal
and the one that took the most memory.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib.util
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Processes are copies of this one, which must have no threads.
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(Path(__file__).parents[2])]

from embgeo.io.convert import limited
from tests.support import (
    hostile_archives,
    hostile_folders,
    hostile_formats,
    hostile_libraries,
    hostile_pickles,
)
from tests.support.hostile_cases import CANARY, Case

#: What no refusal may pass: seconds of a processor, and bytes.
MOST_SECONDS = 10
MOST_MEMORY = 10**9
#: When a process that hangs is ended.
_PATIENCE = 120
_OUT = "out"

PARTS: dict[str, tuple[Case, ...]] = {
    "pickles": tuple(hostile_pickles.cases()),
    "archives": tuple(hostile_archives.cases()),
    "formats": tuple(hostile_formats.cases()),
    "folders": tuple(hostile_folders.cases()),
    "libraries": tuple(hostile_libraries.cases()),
}
CORPUS = tuple(case for part in PARTS.values() for case in part)


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case: exit code, what it said, what it did that it must not, its cost."""

    code: int
    said: str
    forbidden: tuple[str, ...] = ()
    seconds: float = 0
    memory: int = 0

    def complaint(self, case: Case) -> str:
        """What is wrong with it; empty if nothing is."""
        if self.forbidden:
            return f"it did what no file may make it do: {'; '.join(self.forbidden[:3]):.200}"
        if self.code != (0 if case.opens else 2):
            return f"exit code {self.code}: {self.said[-300:]}"
        lines = self.said.splitlines()
        if not case.opens and (len(lines) != 1 or not lines[0].startswith("embgeo: ")):
            return f"not one line: {self.said[-300:]}"
        if "embgeo: unexpected" in self.said:
            return f"nobody foresaw this: {self.said[-300:]}"
        if case.opens and lines:
            return f"said on stderr: {self.said[-300:]}"
        return ""


def missing(case: Case) -> bool:
    return bool(case.needs) and importlib.util.find_spec(case.needs) is None


def command(case: Case, path: Path, folder: Path) -> list[str]:
    more = [part.replace("{}", str(folder)) for part in case.more]
    quick = ["--sections", "tokens", "--no-reference", "--quiet"]
    return ["analyze", str(path), "-o", str(folder / _OUT), *quick, *more]


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below `folder` besides the output: its size and when it was changed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] != _OUT:
            status = path.lstat()
            found[name] = (status.st_size if path.is_file() else 0, status.st_mtime_ns)
    return found


class NoNetwork(socket.socket):
    """What stands in place of every socket."""

    def __init__(self, *_args: Any, **_more: Any) -> None:
        raise AssertionError("a socket was opened")


# Watching


#: Events of the interpreter that no file may cause.
_NEVER = (
    "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.symlink", "os.link",
    "pickle.find_class", "socket.connect", "socket.bind",
    "socket.getaddrinfo", "webbrowser.open", "urllib.Request",
)  # fmt: skip
_CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod")


def watch(allowed: tuple[Path, ...], forbidden: list[str]) -> None:
    """Note in `forbidden` whatever this process does from now on that no file may make it do."""
    roots = tuple(str(path.resolve()) for path in allowed)

    def outside(path: object) -> bool:
        if isinstance(path, int) or path is None:
            return False
        real = os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]
        return not real.startswith((*roots, "/dev/null"))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and arguments[0] is not None:
            mode, flags = arguments[1], arguments[2]
            writes = bool(set(mode or "") & set("wax+")) or bool(
                isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            )
            if writes and outside(arguments[0]):
                forbidden.append(f"wrote {arguments[0]}")
        elif event in _CHANGES and outside(arguments[0]):
            forbidden.append(f"{event} {arguments[0]}")
        elif event == "subprocess.Popen":
            if arguments[0] != sys.executable or arguments[1] != limited.COMMAND:
                forbidden.append(f"ran {arguments[1]}")
        elif event in _NEVER:
            forbidden.append(f"{event} {arguments!r:.100}")

    sys.addaudithook(hook)


def in_child(action: Callable[[], None], said: Path) -> tuple[int, float, int]:
    """Exit code, seconds of processor and largest memory of `action` in a process of its own."""
    process = os.fork()
    if process == 0:
        with contextlib.suppress(BaseException):
            target = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(target, 1)
            os.dup2(target, 2)
            signal.alarm(_PATIENCE)
            action()
        os._exit(99)
    _, status, usage = os.wait4(process, 0)
    code = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    return code, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit


def measure_case(case: Case) -> Outcome:
    """Build and analyze a case, each in a process of its own."""
    from embgeo.cli.app import run

    with tempfile.TemporaryDirectory(prefix="corpus-") as name:
        folder, scratch = Path(name) / "case", Path(name) / "scratch"
        folder.mkdir()
        scratch.mkdir()
        notes, said = Path(name) / "notes", Path(name) / "said"
        log = os.open(notes, os.O_WRONLY | os.O_CREAT)

        def build() -> None:
            path = case.build(folder)
            (Path(name) / "path").write_text(str(path))
            os._exit(0)

        def analyze() -> None:
            path = Path((Path(name) / "path").read_text())
            os.chdir(folder)
            os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
            socket.socket = NoNetwork  # type: ignore[misc]
            forbidden: list[str] = []
            watch((folder / _OUT, folder, scratch), forbidden)
            code = run(command(case, path, folder))
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(log, json.dumps(forbidden).encode())
            os._exit(code)

        if in_child(build, said)[0] != 0:
            return Outcome(-1, f"cannot be built: {said.read_text()}")
        before = tree(folder)
        code, seconds, memory = in_child(analyze, said)
        os.close(log)
        forbidden = json.loads(notes.read_text() or "[]")
        forbidden += changes(before, tree(folder), folder)
        left = [] if code >= 0 else [path.name for path in scratch.iterdir()]
        return Outcome(
            code,
            said.read_text(errors="replace"),
            (*forbidden, *(f"left {file} behind" for file in left)),
            seconds,
            memory,
        )


def changes(before: dict[str, Any], after: dict[str, Any], folder: Path) -> list[str]:
    """Files that came, went or changed, the canary among them."""
    found = [
        f"changed {name}" for name in before.keys() | after if before.get(name) != after.get(name)
    ]
    canary = [f"ran: {path}" for path in folder.rglob(f"*{CANARY}*")]
    return found + canary


def run_cases(cases: list[Case]) -> Iterator[tuple[Case, Outcome]]:
    """Everything is imported once, by an analysis: each process is a copy of this one."""
    from embgeo.cli.app import run

    sound = Case("", "", lambda _: hostile_formats.FIXTURES.parent / "tiny" / "tiny.npy")
    with tempfile.TemporaryDirectory() as folder:
        run(command(sound, sound.build(Path(folder)), Path(folder)))
    for case in cases:
        yield case, measure_case(case)


# Reporting


def report(cases: list[Case], *, every: bool) -> bool:
    started, done, complaints = time.monotonic(), [], []
    for case, outcome in run_cases(cases):
        complaint = outcome.complaint(case)
        if not complaint and not case.opens:
            if outcome.seconds > MOST_SECONDS:
                complaint = f"took {outcome.seconds:.1f} s to be refused"
            elif outcome.memory > MOST_MEMORY:
                complaint = f"took {outcome.memory / 1e6:,.0f} MB to be refused"
        done.append((case, outcome))
        if complaint:
            complaints.append(f"{case.id}: {complaint}")
        if every or complaint:
            said = complaint or outcome.said.strip() or "analyzed"
            print(f"{case.id:60} {outcome.seconds:6.2f} s {outcome.memory / 1e6:6.0f} MB  {said}")
    print(table(done, time.monotonic() - started))
    print(*complaints, sep="\n")
    return not complaints


def table(done: list[tuple[Case, Outcome]], seconds: float) -> str:
    refused = [(case, outcome) for case, outcome in done if not case.opens]
    rows = [
        f"files                 {len(done)}, in {seconds:.0f} s",
        f"analyzed, sound       {sum(case.opens for case, _ in done)}",
        f"refused in one line   {sum(o.code == 2 and not o.complaint(c) for c, o in refused)}",
        f"executed, or wrote    {sum(bool(o.forbidden) for _, o in done)}",
    ]
    if refused:
        slowest = max(refused, key=lambda pair: pair[1].seconds)
        largest = max(refused, key=lambda pair: pair[1].memory)
        rows += [
            f"slowest refusal       {slowest[1].seconds:.2f} s ({slowest[0].id})",
            f"most memory           {largest[1].memory / 1e6:.0f} MB ({largest[0].id})",
        ]
    counts = collections.Counter(case.format for case, _ in done)
    rows.append("by format             " + ", ".join(f"{k} {n}" for k, n in counts.items()))
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--report", action="store_true", help="Run the corpus and print a table.")
    parser.add_argument("--only", default="", help="Only cases whose name holds this text.")
    parser.add_argument("--part", choices=PARTS, help="Only one of the tables.")
    parser.add_argument("--quick", action="store_true", help="Without those that take seconds.")
    parser.add_argument("--sample", type=int, default=1, help="Only each N-th case.")
    parser.add_argument("--every", action="store_true", help="A line for each file.")
    arguments = parser.parse_args()
    cases = [
        case
        for case in (PARTS[arguments.part] if arguments.part else CORPUS)
        if arguments.only in case.id and not missing(case) and not (case.dense and arguments.quick)
    ][:: arguments.sample]
    if not arguments.report:
        print(*(case.id for case in cases), sep="\n")
        return
    if not hasattr(os, "fork"):
        sys.exit("measuring a refusal needs a system with fork")
    sys.exit(0 if report(cases, every=arguments.every) else 1)


if __name__ == "__main__":
    main()
