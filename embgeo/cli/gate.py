"""``embgeo gate``: rules about embedding matrices, for continuous integration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embgeo.cli import options as o
from embgeo.cli import shared
from embgeo.cli.shared import progress_bar
from embgeo.core.arguments import refuse_if
from embgeo.core.errors import argument

if TYPE_CHECKING:
    from embgeo.workflows.gate import Gate, GateOutputs

#: The exit code of a gate with a failed rule.
RULE_FAILED = 1


@shared.guarded
def gate(
    *,
    sources: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SOURCE...]",
            help="Saved analyses, tracks or checkpoints; by default those of the settings.",
        ),
    ] = None,
    rule: Annotated[
        list[str] | None,
        o.option(
            '"cosine.mean <= 0.1", "isotropy.i1_unit_rows drop <= 5%, warn"; repeatable, and '
            "in addition to those of the settings.",
            "--rule",
            "-r",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        o.option(
            "Add the rules of this preset: finetune-ready.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        o.option(
            "What drop, rise and change compare with: a baseline file, a saved analysis or a "
            "checkpoint.",
            "--baseline",
            "-b",
        ),
    ] = None,
    update_baseline: Annotated[
        bool,
        o.option(
            "Write the measured values to the baseline file; check nothing.", "--update-baseline"
        ),
    ] = False,
    level: Annotated[
        float | None,
        o.option("Confidence level at which a sampled value has to pass; 0.95 by default."),
    ] = None,
    config: o.Config = None,
    no_config: o.NoConfig = False,
    trust_settings: o.TrustSettings = False,
    junit: Annotated[Path | None, o.option("Write JUnit XML, for CI servers.")] = None,
    sarif: Annotated[Path | None, o.option("Write SARIF, for code scanning.")] = None,
    github: Annotated[
        bool | None,
        o.option(
            "Write annotations and a step summary; by default where GitHub Actions runs.",
            "--github/--no-github",
        ),
    ] = None,
    format_: o.Format = "text",
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Check saved analyses or checkpoints against rules: exit code 1 if one fails.

    Example: embgeo gate fixtures/cosreg.safetensors --rule "cosine.mean <= 0.1"
    """
    shared.check_output(json_, format_)
    from embgeo.workflows.gate import GateOutputs

    def command(lines: str) -> None:
        # The runner reads both streams; with --json, stdout is for JSON alone.
        print(lines, end="", file=sys.stderr if json_ else sys.stdout)

    files = {name: path for name, path in (("junit", junit), ("sarif", sarif)) if path is not None}
    outputs = GateOutputs(files, command, json_, format_ == "markdown", quiet, github)
    with outputs.report_errors(shared.one_line):
        from embgeo.workflows.gate import gate_settings, plan_gate

        settings = gate_settings(config, search=not no_config, trust_settings=trust_settings)
        planned = plan_gate(
            rule or (),
            sources or (),
            baseline,
            level,
            settings=settings,
            preset=preset,
        )
        outputs.prepare(planned.files)
        if update_baseline:
            write_baseline(planned, outputs)
            return
        with progress_bar(quiet) as progress:
            outcome = planned.check(shared.command_line(), progress)
        outputs.write(outcome, shared.print_text)
    if not outcome.passed:
        raise typer.Exit(RULE_FAILED)


def write_baseline(planned: Gate, outputs: GateOutputs) -> None:
    """Replace the baseline file, and print what changed."""
    from embgeo.workflows.gate import update_baseline

    useless = planned.baseline is not None and bool(outputs.files or outputs.as_json)
    cause = "checks nothing, so that there is no outcome to write"
    refuse_if(useless, argument("update_baseline"), cause, "check in a run of its own")
    with progress_bar(outputs.quiet) as progress:
        made = update_baseline(planned, shared.command_line(), progress)
    if not outputs.quiet:
        changes = "" if made.changed is None else f", {made.changed} of them new or changed"
        shared.print_lines(
            f"baseline: {made.path}, {made.numbers} numbers{changes}; no rule was checked"
        )
