"""What a gate writes: stdout, files for CI servers, annotations and summary of GitHub."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from embgeo.core.errors import BadOption, EmbgeoError, argument, writing
from embgeo.core.text import defuse
from embgeo.rules.check import Outcome
from embgeo.rules.outputs import (
    as_json,
    github_annotations,
    github_summary,
    junit,
    sarif,
    table,
)
from embgeo.workflows.folders import write_file

#: Option → the output, and how an earlier file begins; no other file is replaced.
OUTPUTS: Mapping[str, tuple[ModuleType, tuple[bytes, ...]]] = {
    "junit": (junit, (b"<?xml", b"<testsuite")),
    "sarif": (sarif, (b"{",)),
}
#: Outputs that say that a run has no outcome, from the start of the run.
WITH_ERRORS = {"junit": junit, "sarif": sarif}
#: GitHub's limit for the summary of a step.
SUMMARY_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class GateOutputs:
    """The outputs that the options request."""

    #: Files by option, see `OUTPUTS`.
    files: Mapping[str, Path]
    #: Writes commands for GitHub's runner.
    command: Callable[[str], None]
    as_json: bool = False
    as_markdown: bool = False
    quiet: bool = False
    #: Whether to annotate and summarize; None: if the environment is GitHub's.
    github: bool | None = None

    @property
    def annotates(self) -> bool:
        return os.environ.get("GITHUB_ACTIONS") == "true" if self.github is None else self.github

    @property
    def summary(self) -> Path | None:
        """The file that GitHub shows below the job."""
        name = os.environ.get("GITHUB_STEP_SUMMARY")
        return Path(name) if name and self.github is not False else None

    def prepare(self, inputs: Sequence[Path]) -> None:
        """Refuse to replace any file but earlier outputs, and mark those as unfinished.

        No earlier outcome may outlive a run that is killed.
        """
        taken = {path.resolve() for path in inputs}
        for name, path in self.files.items():
            where = f"{argument(name)} {path}"
            # A circle of links has no resolved path.
            dead = path.is_symlink() and not path.exists()
            if not dead and path.resolve() in taken:
                raise BadOption("is read or written already", where=where)
            if cause := find_obstacle(name, path):
                raise BadOption(cause, where=where, way_out="choose another file")
            taken.add(path.resolve())
        for name, path in self.files.items():
            if path.exists() and not path.is_file():
                continue
            if name in WITH_ERRORS:
                write_file(path, WITH_ERRORS[name].render_error("the run did not finish"))
            elif not path.is_symlink():
                path.unlink(missing_ok=True)

    def write(self, outcome: Outcome, say: Callable[[str], None]) -> None:
        """Write the files, then the text for people and GitHub; `say` prints a line on stdout."""
        for name, path in self.files.items():
            more = (locate_in_repository,) if name == "sarif" else ()
            write_file(path, OUTPUTS[name][0].render(outcome, *more))
        shown: Iterable[str] = ()
        if self.as_json:
            shown = [as_json.render(outcome).rstrip("\n")]
        elif self.as_markdown and not self.quiet:
            shown = github_summary.render(outcome).splitlines()
        elif not self.quiet:
            shown = table.lines(outcome)
        for text in shown:
            say(defuse(text) if self.annotates else text)
        if self.annotates:
            self.command(github_annotations.render(outcome, locate_in_repository))
        if self.summary is not None:
            room = min(measure_room(self.summary), github_summary.MOST_BYTES)
            append_summary(self.summary, github_summary.render(outcome, room))

    @contextlib.contextmanager
    def report_errors(self, describe: Callable[[BaseException], str]) -> Iterator[None]:
        """Report an error to CI as a run without an outcome: neither passed nor failed."""
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            message = describe(error)
            with contextlib.suppress(EmbgeoError, OSError):
                for name, output in WITH_ERRORS.items():
                    path = self.files.get(name)
                    if path is not None and not find_obstacle(name, path):
                        write_file(path, output.render_error(message))
                if self.annotates:
                    self.command(github_annotations.render_error(message))
                if self.summary is not None:
                    append_summary(self.summary, github_summary.render_error(message))
            raise


def find_obstacle(name: str, path: Path) -> str:
    """Find why a file must not be written to; empty for a new or empty one and an earlier output.

    Devices and pipes are written to and not read.
    """
    try:
        if path.is_symlink() and not path.exists():
            return "is a link to nothing"
        if path.is_dir():
            return "is a folder"
        if not path.is_file():
            return ""
        with path.open("rb") as stream:
            start = stream.read(64).lstrip()
    except OSError as error:
        return f"cannot be used: {error.strerror}"
    ours = not start or start.startswith(OUTPUTS[name][1])
    return "" if ours else "exists and was not written by this option"


def measure_room(summary: Path) -> int:
    """Count the bytes left in the summary of the step; other tools may have written to it."""
    with contextlib.suppress(OSError):
        return SUMMARY_BYTES - summary.stat().st_size
    return SUMMARY_BYTES


def append_summary(summary: Path, text: str) -> None:
    """Add to the summary of the step, unless it would become too long."""
    if len(text.encode()) > measure_room(summary):
        return
    with (
        writing(summary, f"{argument('no_github')} writes no summary"),
        open(summary, "a", encoding="utf-8", newline="\n", opener=open_now) as stream,
    ):
        stream.write(text)


def open_now(path: str, flags: int) -> int:
    """Open a file to write; OSError for a pipe that nobody reads, without waiting for a reader."""
    if not hasattr(os, "O_NONBLOCK"):  # Windows has no pipes among files
        return os.open(path, flags, 0o666)
    found = os.open(path, flags | os.O_NONBLOCK, 0o666)
    os.set_blocking(found, True)
    return found


def locate_in_repository(file: str) -> str:
    """Return the path of a file from the root of the checkout, as annotations name it."""
    root = os.environ.get("GITHUB_WORKSPACE")
    path = Path(file).resolve()
    if root and path.is_relative_to(Path(root).resolve()):
        return path.relative_to(Path(root).resolve()).as_posix()
    return Path(file).as_posix()
