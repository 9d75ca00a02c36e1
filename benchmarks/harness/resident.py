"""Resident memory of a process, without the pages of one mapped file (Linux)."""

from __future__ import annotations

import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.call import Result, Work, in_a_process

#: Seconds between two looks.
PAUSE = 0.03
HEADER = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+\s*(.*)$")
SIZE = re.compile(r"^(Rss|Anonymous):\s+(\d+) kB$")


@dataclass(frozen=True)
class Resident:
    """Bytes in memory.

    Attributes
    ----------
    above : int
        All resident pages but those of the file: libraries count.
    anonymous : int
        Pages that belong to no file.
    """

    above: int = 0
    anonymous: int = 0


def available() -> bool:
    return Path("/proc/self/smaps").exists()


def read(maps: str, file: Path) -> Resident:
    """From the text of ``/proc/PID/smaps``."""
    of_file, above, anonymous = False, 0, 0
    for line in maps.splitlines():
        if header := HEADER.match(line):
            of_file = header[1] == str(file)
        elif size := SIZE.match(line):
            if size[1] == "Anonymous":
                anonymous += int(size[2])
            elif not of_file:
                above += int(size[2])
    return Resident(above * 1024, anonymous * 1024)


def watch(path: Path, work: Work, arguments: Result) -> Result:
    """Call a function in a process of its own, with the most gigabytes that it ever held."""

    def look(process: subprocess.Popen[bytes]) -> Result:
        most = peak(process, path)
        return {"above": most.above / 1e9, "anonymous": most.anonymous / 1e9}

    return in_a_process(work, {"path": str(path), **arguments}, watch=look)


def peak(process: subprocess.Popen[bytes], file: Path) -> Resident:
    """The most of each that was seen until the process ended."""
    most = Resident()
    maps = Path(f"/proc/{process.pid}/smaps")
    file = file.resolve()
    while process.poll() is None:
        try:
            seen = read(maps.read_text(), file)
        except (FileNotFoundError, ProcessLookupError):
            break
        most = Resident(max(most.above, seen.above), max(most.anonymous, seen.anonymous))
        time.sleep(PAUSE)
    process.wait()
    return most
