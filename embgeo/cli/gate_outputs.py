"""Where the outcome of a gate goes: terminal, files, GitHub."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.cli.shared import one_line
from embgeo.core.errors import BadOption, EmbgeoError

if TYPE_CHECKING:
    from embgeo.gate.check import Outcome

#: What GitHub takes of a step's summary.
SUMMARY_BYTES = 2**20

#: How an earlier file of each kind begins; anything else is not ours to replace.
BEGINNINGS = {
    "--junit": (b"<?xml", b"<testsuite"),
    "--metrics-json": (b"{",),
    "--metrics-txt": (b"#", b"embgeo_"),
}


@dataclass(frozen=True, slots=True)
class Outputs:
    """What is written where; None where nothing is.

    Attributes
    ----------
    junit, metrics_json, metrics_txt : Path or None
    as_json, quiet : bool
        What goes to stdout: JSON, or nothing, in place of the table.
    github : bool or None
        Whether annotations and summary are made; None: if the environment is GitHub's.
    """

    junit: Path | None
    metrics_json: Path | None
    metrics_txt: Path | None
    as_json: bool
    quiet: bool
    github: bool | None

    @property
    def files(self) -> dict[str, Path]:
        named = {
            "--junit": self.junit,
            "--metrics-json": self.metrics_json,
            "--metrics-txt": self.metrics_txt,
        }
        return {option: path for option, path in named.items() if path is not None}

    @property
    def annotates(self) -> bool:
        if self.github is None:
            return os.environ.get("GITHUB_ACTIONS") == "true"
        return self.github

    @property
    def summary(self) -> Path | None:
        """The file that GitHub shows below the job."""
        name = os.environ.get("GITHUB_STEP_SUMMARY")
        return Path(name) if name and self.github is not False else None

    def check(self, inputs: Sequence[Path]) -> None:
        """Refuse, before anything is measured, to write over what is not an earlier output.

        Raises
        ------
        BadOption
        """
        taken = {path.resolve() for path in inputs}
        for option, path in self.files.items():
            where = f"{option} {path}"
            if path.resolve() in taken:
                raise BadOption("is read or written already", where=where)
            taken.add(path.resolve())
            if cause := obstacle(option, path):
                raise BadOption(cause, where=where, way_out="choose another file")

    def write(self, outcome: Outcome) -> None:
        """Files first, then what people and GitHub read."""
        from embgeo.gate.outputs import (
            as_json,
            github_annotations,
            github_summary,
            junit,
            metrics_json,
            metrics_txt,
            table,
        )
        from embgeo.workflows.folders import write_file

        for path, output in (
            (self.junit, junit),
            (self.metrics_json, metrics_json),
            (self.metrics_txt, metrics_txt),
        ):
            if path is not None:
                write_file(path, output.render(outcome))
        shown = ""
        if self.as_json:
            shown = as_json.render(outcome)
        elif not self.quiet:
            shown = table.render(outcome)
        print(github_annotations.defuse(shown) if self.annotates else shown, end="")
        if self.annotates:
            self._command(github_annotations.render(outcome, in_repository))
        if self.summary is not None:
            room = room_in(self.summary)
            self._summarize(github_summary.render(outcome, min(room, github_summary.MOST_BYTES)))

    def _command(self, lines: str) -> None:
        """The runner reads both streams; stdout is for JSON alone where that is asked for."""
        print(lines, end="", file=sys.stderr if self.as_json else sys.stdout)

    def _summarize(self, text: str) -> None:
        assert self.summary is not None
        if len(text.encode()) > room_in(self.summary):
            return
        try:
            with self.summary.open("a", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
        except OSError as error:
            raise EmbgeoError(
                f"cannot be written: {error.strerror}",
                where=self.summary,
                way_out="--no-github writes no summary",
            ) from error

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """Tell CI of a run that came to no outcome, as what it is: neither passed nor failed."""
        try:
            yield
        except Exception as error:
            message = one_line(error)
            with contextlib.suppress(EmbgeoError, OSError):
                self._tell(message)
            from embgeo.gate.outputs.github_annotations import defuse

            if self.annotates and isinstance(error, EmbgeoError) and defuse(message) != message:
                raise EmbgeoError(defuse(message)) from error
            raise

    def _tell(self, message: str) -> None:
        from embgeo.gate.outputs import github_annotations, github_summary, junit
        from embgeo.workflows.folders import write_file

        if self.junit is not None and not obstacle("--junit", self.junit):
            write_file(self.junit, junit.render_error(message))
        if self.annotates:
            self._command(github_annotations.render_error(message))
        if self.summary is not None:
            self._summarize(github_summary.render_error(message))


def obstacle(option: str, path: Path) -> str:
    """Why a file is not to be replaced; empty if it is new, empty or an earlier output."""
    try:
        if not path.exists():
            return ""
        with path.open("rb") as stream:
            start = stream.read(64).lstrip()
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    ours = not start or start.startswith(BEGINNINGS[option])
    return "" if ours else "exists and is nothing that this option writes"


def room_in(summary: Path) -> int:
    """Bytes that the summary of the step still takes; other tools may have written to it."""
    with contextlib.suppress(OSError):
        return SUMMARY_BYTES - summary.stat().st_size
    return SUMMARY_BYTES


def in_repository(file: str) -> str:
    """A file by its path from the root of the checkout, as annotations name it."""
    root = os.environ.get("GITHUB_WORKSPACE")
    path = Path(file).resolve()
    if root and path.is_relative_to(Path(root).resolve()):
        return path.relative_to(Path(root).resolve()).as_posix()
    return Path(file).as_posix()
