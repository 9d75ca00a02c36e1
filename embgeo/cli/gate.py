"""``embgeo gate``: rules that a matrix has to keep, for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embgeo.cli.gate_outputs import Outputs
from embgeo.cli.gate_plan import plan, settings_of, write_baseline
from embgeo.cli.measured import Measuring
from embgeo.cli.shared import Debug, Json, Quiet, guarded

#: The exit code of a gate that a rule failed; whatever else goes wrong ends with 2.
RULE_FAILED = 1


@guarded
def gate(
    sources: Annotated[
        list[Path] | None,
        typer.Argument(help="Saved analyses or checkpoints; those of the settings by default."),
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
    tensor: Annotated[
        str | None,
        typer.Option(help="Name of the embedding tensor."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(help="Name of the output projection, or none."),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(metavar="A:B", help="Rows A to B−1."),
    ] = None,
    transpose: Annotated[
        bool,
        typer.Option("--transpose", help="Tokens are columns."),
    ] = False,
    tokens: Annotated[Path | None, typer.Option(help="Token labels.")] = None,
    counts: Annotated[Path | None, typer.Option(help="Token counts.")] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(help="Text whose tokens are counted."),
    ] = None,
    rank_order: Annotated[
        bool,
        typer.Option("--rank-order", help="Rows are sorted by frequency."),
    ] = False,
    hidden: Annotated[Path | None, typer.Option(help="Hidden states.")] = None,
    pairs: Annotated[
        str | None,
        typer.Option(metavar="N|all", help="Sampled pairs."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of whatever is sampled."),
    ] = None,
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
    """Hold saved analyses or checkpoints to rules: exit code 1 if one fails.

    Example: embgeo gate fixtures/cosreg.safetensors --rule "cosine.mean <= 0.1"
    """
    outputs = Outputs(junit, metrics_json, metrics_txt, json_, quiet, github)
    options = Measuring(
        tensor=tensor,
        output=output,
        rows=rows,
        transpose=transpose or None,
        tokens=tokens,
        counts=counts,
        corpus=corpus,
        rank_order=rank_order or None,
        hidden=hidden,
        pairs=pairs,
        seed=seed,
    )
    with outputs.telling():
        settings = settings_of(config, no_config)
        planned = plan(settings, rule or (), sources or (), baseline, level, options, outputs)
        if update_baseline:
            write_baseline(planned, outputs)
            return
        if baseline is not None:
            planned.require_comparison()
        outcome = planned.outcome()
        outputs.write(outcome)
    if not outcome.passed:
        raise typer.Exit(RULE_FAILED)
