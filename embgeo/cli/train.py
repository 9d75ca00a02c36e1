"""``embgeo train``: language models with the published cures, beside their baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embgeo.cli.shared import Debug, Json, Quiet, guarded
from embgeo.cli.train_settings import Given


@guarded
def train(
    data: Annotated[
        Path | None,
        typer.Option(help="Text file, or a folder with a training, validation and test split."),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,...",
            help="Methods: mle, untied, cosreg, sc-exp, sc-poly, frage, al, re, real, "
            "spectral-norm, d-optimal, moment-match, adversarial, coupled-adam.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Settings: tiny-cpu (by default), ptb-inan, wt2-fast or wt2-paper."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings in TOML; they stand over those of the preset.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting; repeatable."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Train each method so many times: seeds 0, 1, ….")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Fit epochs to this time for everything: 5m, 90s, 2h."),
    ] = None,
    experiment: Annotated[
        str | None,
        typer.Option(help="inan-subspace: Figure 1 of Inan et al. in place of a comparison."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="cpu|cuda|mps|auto", help="Where to train; auto.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder of the runs; NAME.runs here by default."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the runs of the folder.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be trained, and how long it takes.")
    ] = False,
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train language models with each of several methods, and compare what they did.

    All methods start from the same weights and see the same text in the same order. Perplexity is
    evaluated, every embedding is analyzed as embgeo analyze does it, and one report says which
    method did what to both, and which claims of the papers held. docs/training.md says more.

    Example: embgeo train --data fixtures/pydocs.txt.gz --preset tiny-cpu --dry-run
    """
    given = Given(
        data=data,
        compare=compare,
        preset=preset,
        config=config,
        set_=tuple(set_ or ()),
        seeds=seeds,
        budget=budget,
        device=device,
        out=out,
        resume=resume,
    )
    given.check(experiment)
    require_torch()
    if experiment is not None:
        from embgeo.cli.train_experiment import run_experiment

        run_experiment(experiment, given, dry_run=dry_run, json_=json_, quiet=quiet)
        return
    from embgeo.cli.train_runs import compare_methods, foretell

    if dry_run:
        foretell(given, json_=json_)
    else:
        compare_methods(given, json_=json_, quiet=quiet)


def require_torch() -> None:
    """Say in one line what is missing.

    Raises
    ------
    EmbgeoError
    """
    from importlib.util import find_spec

    from embgeo.core.errors import EmbgeoError

    missing = [name for name in ("torch", "tomli_w") if find_spec(name) is None]
    if missing:
        raise EmbgeoError(
            f"training needs {' and '.join(missing).replace('tomli_w', 'tomli-w')}, which is not "
            "installed",
            way_out="pip install 'embgeo[train]'",
        )
