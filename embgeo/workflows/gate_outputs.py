"""What a gate writes: its table or JSON, files for CI servers, and what GitHub shows."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from embgeo.core.errors import EmbgeoError
from embgeo.core.visible import defuse
from embgeo.gate.check import Outcome
from embgeo.gate.outputs import as_json, github_annotations, github_summary, junit, table
from embgeo.workflows.folders import write_file
from embgeo.workflows.gate import (
    append_summary,
    in_repository,
    obstacle,
    summary_room,
    write_files,
)


@dataclass(frozen=True, slots=True)
class GateOutputs:
    """What is written where; None where nothing is.

    Attributes
    ----------
    junit, metrics_json, metrics_txt : Path or None
    as_json, as_markdown, quiet : bool
        What goes to stdout: JSON, Markdown or nothing, in place of the table.
    github : bool or None
        Whether annotations and summary are made; None: if the environment is GitHub's.
    command : callable
        Hands lines to GitHub's runner.
    """

    junit: Path | None
    metrics_json: Path | None
    metrics_txt: Path | None
    as_json: bool
    quiet: bool
    github: bool | None
    command: Callable[[str], None]
    as_markdown: bool = False

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

    def write(self, outcome: Outcome, say: Callable[[str], None]) -> None:
        """Files first, then what people and GitHub read; `say` prints the table or JSON."""
        write_files(self.files, outcome)
        shown: Iterable[str] = ()
        if self.as_json:
            shown = [as_json.render(outcome).rstrip("\n")]
        elif not self.quiet:
            shown = (
                github_summary.render(outcome).splitlines()
                if self.as_markdown
                else table.lines(outcome)
            )
        for text in shown:
            say(defuse(text) if self.annotates else text)
        if self.annotates:
            self.command(github_annotations.render(outcome, in_repository))
        if self.summary is not None:
            room = min(summary_room(self.summary), github_summary.MOST_BYTES)
            append_summary(self.summary, github_summary.render(outcome, room))

    @contextlib.contextmanager
    def report_errors(self, describe: Callable[[BaseException], str]) -> Iterator[None]:
        """Report to CI a run without an outcome as what it is: neither passed nor failed."""
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            message = describe(error)
            with contextlib.suppress(EmbgeoError, OSError):
                self._write_error(message)
            raise

    def _write_error(self, message: str) -> None:
        if self.junit is not None and not obstacle("junit", self.junit):
            write_file(self.junit, junit.render_error(message))
        if self.annotates:
            self.command(github_annotations.render_error(message))
        if self.summary is not None:
            append_summary(self.summary, github_summary.render_error(message))
