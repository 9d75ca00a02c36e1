"""The files that the outcome of a gate goes to: reports for CI servers, the summary of GitHub."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.gate.check import Outcome
from embgeo.gate.outputs import junit, metrics_json, metrics_txt
from embgeo.workflows.folders import write_file

#: What GitHub takes of a step's summary.
SUMMARY_BYTES = 2**20

#: What makes each file.
OUTPUTS = {"junit": junit, "metrics_json": metrics_json, "metrics_txt": metrics_txt}
#: How an earlier file of each kind begins; anything else is not ours to replace.
BEGINNINGS = {
    "junit": (b"<?xml", b"<testsuite"),
    "metrics_json": (b"{",),
    "metrics_txt": (b"#", b"embgeo_"),
}


def check_files(files: Mapping[str, Path], inputs: Sequence[Path]) -> None:
    """Refuse, before anything is measured, to write over what is not an earlier output."""
    taken = {path.resolve() for path in inputs}
    for name, path in files.items():
        where = f"{argument(name)} {path}"
        if path.resolve() in taken:
            raise BadOption("is read or written already", where=where)
        taken.add(path.resolve())
        if cause := obstacle(name, path):
            raise BadOption(cause, where=where, way_out="choose another file")


def obstacle(name: str, path: Path) -> str:
    """Why a file is not to be replaced; empty if it is new, empty or an earlier output."""
    try:
        if not path.exists():
            return ""
        with path.open("rb") as stream:
            start = stream.read(64).lstrip()
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    ours = not start or start.startswith(BEGINNINGS[name])
    return "" if ours else "exists and is nothing that this option writes"


def write_files(files: Mapping[str, Path], outcome: Outcome) -> None:
    """Write each file whole."""
    for name, path in files.items():
        write_file(path, OUTPUTS[name].render(outcome))


def summary_room(summary: Path) -> int:
    """Bytes that the summary of the step still takes; other tools may have written to it."""
    with contextlib.suppress(OSError):
        return SUMMARY_BYTES - summary.stat().st_size
    return SUMMARY_BYTES


def append_summary(summary: Path, text: str) -> None:
    """Add to the summary of the step, unless it would become too long."""
    if len(text.encode()) > summary_room(summary):
        return
    try:
        with summary.open("a", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
    except OSError as error:
        raise EmbgeoError(
            f"cannot be written: {error.strerror}",
            where=summary,
            way_out=f"{argument('no_github')} writes no summary",
        ) from error


def in_repository(file: str) -> str:
    """A file by its path from the root of the checkout, as annotations name it."""
    root = os.environ.get("GITHUB_WORKSPACE")
    path = Path(file).resolve()
    if root and path.is_relative_to(Path(root).resolve()):
        return path.relative_to(Path(root).resolve()).as_posix()
    return Path(file).as_posix()
