"""``embgeo gate``: rules that a matrix has to keep, for continuous integration."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embgeo.cli.fields import EachField, Given, Loading
from embgeo.cli.shared import (
    Debug,
    Json,
    Quiet,
    command_line,
    guarded,
    one_line,
    print_lines,
    print_text,
    progress_bar,
)
from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.core.options import Options
from embgeo.core.visible import defuse

if TYPE_CHECKING:
    from embgeo.gate.check import Outcome
    from embgeo.workflows.gate import Gate

#: The exit code of a gate that a rule failed; whatever else goes wrong ends with 2.
RULE_FAILED = 1


@guarded
def gate(
    *,
    sources: Annotated[
        list[Path] | None,
        typer.Argument(help="Saved analyses or tracks, or checkpoints; default: the settings."),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            "-r",
            help='"cosine.mean <= 0.1", "isotropy.i1 drop <= 5%, warn"; repeatable, and in '
            "addition to those of the settings.",
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Also the rules of this name: finetune-ready.")
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline",
            "-b",
            help="What drop, rise and change compare with: a baseline file, a saved analysis or a "
            "checkpoint.",
        ),
    ] = None,
    update_baseline: Annotated[
        bool,
        typer.Option(
            "--update-baseline", help="Write what is measured to the baseline file; check nothing."
        ),
    ] = False,
    level: Annotated[
        float | None,
        typer.Option(help="Confidence that a sampled value has to pass with; 0.95."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="Settings; embgeo.toml or pyproject.toml here, or in the nearest folder above, "
            "by default."
        ),
    ] = None,
    no_config: Annotated[bool, typer.Option("--no-config", help="Look for no settings.")] = False,
    loading: Loading,
    measuring: Annotated[Given, EachField(Options, without=("asked",))],
    junit: Annotated[Path | None, typer.Option(help="JUnit XML, for CI servers.")] = None,
    metrics_json: Annotated[
        Path | None,
        typer.Option(help="Flat JSON, for DVC and MLflow."),
    ] = None,
    metrics_txt: Annotated[
        Path | None,
        typer.Option(help="OpenMetrics text, for GitLab."),
    ] = None,
    github: Annotated[
        bool | None,
        typer.Option(
            "--github/--no-github",
            help="Annotations and step summary; by default if the environment is GitHub's.",
        ),
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Check saved analyses or checkpoints against rules: exit code 1 if one fails.

    Example: embgeo gate fixtures/cosreg.safetensors --rule "cosine.mean <= 0.1"
    """
    outputs = GateOutputs(junit, metrics_json, metrics_txt, json_, quiet, github)
    with outputs.report_errors():
        from embgeo.workflows.check import gate_settings, plan_gate
        from embgeo.workflows.gate import check_files, remove_earlier

        settings = gate_settings(config, search=not no_config)
        given = {**loading, **measuring}
        planned = plan_gate(
            rule or (), sources or (), baseline, level, given, settings, preset=preset
        )
        check_files(outputs.files, planned.files)
        remove_earlier(outputs.files)
        if update_baseline:
            write_baseline(planned, outputs)
            return
        if baseline is not None:
            planned.require_comparison()
        with progress_bar(quiet) as progress:
            outcome = planned.check(command_line(), progress)
        outputs.write(outcome)
    if not outcome.passed:
        raise typer.Exit(RULE_FAILED)


def write_baseline(planned: Gate, outputs: GateOutputs) -> None:
    """Replace the baseline file, and print what changed."""
    from embgeo.workflows.gate import update_baseline

    if planned.baseline is not None and (outputs.files or outputs.as_json):
        raise BadOption(
            "checks nothing, so that there is no outcome to write",
            where=argument("update_baseline"),
            way_out="check in a run of its own",
        )
    with progress_bar(outputs.quiet) as progress:
        made = update_baseline(planned, command_line(), progress)
    if not outputs.quiet:
        changes = "" if made.changed is None else f", {made.changed} of them new or changed"
        print_lines(f"baseline: {made.path}, {made.numbers} numbers{changes}; no rule was checked")


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
        from embgeo.workflows.gate import (
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
        if shown:
            print_text(defuse(shown.rstrip("\n")) if self.annotates else shown.rstrip("\n"))
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
        except (Exception, KeyboardInterrupt) as error:
            message = one_line(error)
            with contextlib.suppress(EmbgeoError, OSError):
                self._write_error(message)
            raise

    def _write_error(self, message: str) -> None:
        from embgeo.gate.outputs import github_annotations, github_summary, junit
        from embgeo.workflows.folders import write_file
        from embgeo.workflows.gate import append_summary, obstacle

        if self.junit is not None and not obstacle("junit", self.junit):
            write_file(self.junit, junit.render_error(message))
        if self.annotates:
            self._command(github_annotations.render_error(message))
        if self.summary is not None:
            append_summary(self.summary, github_summary.render_error(message))
