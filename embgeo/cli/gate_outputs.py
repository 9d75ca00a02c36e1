"""Where the outcome of a gate goes: terminal, files, GitHub."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.cli.shared import one_line
from embgeo.core.errors import EmbgeoError

if TYPE_CHECKING:
    from embgeo.gate.check import Outcome


@dataclass(frozen=True, slots=True)
class GateOutputs:
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
        named = {name: getattr(self, name) for name in ("junit", "metrics_json", "metrics_txt")}
        return {name: path for name, path in named.items() if path is not None}

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

    def write(self, outcome: Outcome) -> None:
        """Files first, then what people and GitHub read."""
        from embgeo.gate.outputs import as_json, github_annotations, github_summary, table
        from embgeo.workflows.gate_files import (
            append_summary,
            in_repository,
            summary_room,
            write_files,
        )

        write_files(self.files, outcome)
        shown = ""
        if self.as_json:
            shown = as_json.render(outcome)
        elif not self.quiet:
            shown = table.render(outcome)
        print(github_annotations.defuse(shown) if self.annotates else shown, end="")
        if self.annotates:
            self._command(github_annotations.render(outcome, in_repository))
        if self.summary is not None:
            room = min(summary_room(self.summary), github_summary.MOST_BYTES)
            append_summary(self.summary, github_summary.render(outcome, room))

    def _command(self, lines: str) -> None:
        """The runner reads both streams; stdout is for JSON alone where that is asked for."""
        print(lines, end="", file=sys.stderr if self.as_json else sys.stdout)

    @contextlib.contextmanager
    def report_errors(self) -> Iterator[None]:
        """Report to CI a run without an outcome as what it is: neither passed nor failed."""
        try:
            yield
        except Exception as error:
            message = one_line(error)
            with contextlib.suppress(EmbgeoError, OSError):
                self._write_error(message)
            from embgeo.gate.outputs.github_annotations import defuse

            if self.annotates and isinstance(error, EmbgeoError) and defuse(message) != message:
                raise EmbgeoError(defuse(message)) from error
            raise

    def _write_error(self, message: str) -> None:
        from embgeo.gate.outputs import github_annotations, github_summary, junit
        from embgeo.workflows.folders import write_file
        from embgeo.workflows.gate_files import append_summary, obstacle

        if self.junit is not None and not obstacle("junit", self.junit):
            write_file(self.junit, junit.render_error(message))
        if self.annotates:
            self._command(github_annotations.render_error(message))
        if self.summary is not None:
            append_summary(self.summary, github_summary.render_error(message))
