"""``embgeo diff``: checkpoints and saved analyses beside a baseline, or over training."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from embgeo.cli.analyze import Padding, Precision
from embgeo.cli.diff_folder import check_folder, default_folder, write_comparison
from embgeo.cli.diff_inputs import How, Loading, in_order, read_inputs
from embgeo.cli.diff_summary import summary
from embgeo.cli.measuring import Wanted, chosen_resources
from embgeo.cli.shared import Debug, Json, Quiet, command_line, guarded, progress_bar
from embgeo.core.errors import BadOption


class Match(StrEnum):
    """How rows of two matrices are matched."""

    token = "token"
    row = "row"


@guarded
def diff(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="BASELINE OTHER…",
            help="Checkpoints and saved analyses, the baseline first. Where they need options of "
            "their own, analyze each with embgeo analyze and name the folders.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Result folder; BASELINE-vs-OTHER.embgeo by default."),
    ] = None,
    track: Annotated[
        bool,
        typer.Option(
            "--track",
            help="The files are checkpoints of one run: order them by step (from their names, "
            "else from what they hold) and show every number over training.",
        ),
    ] = False,
    match: Annotated[
        Match | None,
        typer.Option(help="Match rows by token or by row number; by token where all have some."),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="N|all",
            help="Tokens whose neighbors are compared; all up to 5000, else 1000; 0: none.",
        ),
    ] = None,
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
    padding: Annotated[
        Padding,
        typer.Option(help="Rows beyond the vocabulary."),
    ] = Padding.auto,
    popular_share: Annotated[
        float | None,
        typer.Option(help="Share called popular; 0.2."),
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(metavar="N|all", help="Sampled pairs; 100000."),
    ] = None,
    isotropy_rows: Annotated[
        int | None,
        typer.Option(min=2, help="I1/I2 also of samples of so many rows."),
    ] = None,
    isotropy_runs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of those samples; 10."),
    ] = None,
    sphere: Annotated[
        bool | None,
        typer.Option("--sphere/--no-sphere", help="Search the whole sphere for the extremes of Z."),
    ] = None,
    reference: Annotated[bool, typer.Option(help="Compare with isotropic rows.")] = True,
    precision: Annotated[
        Precision,
        typer.Option(help="Of sums of products in the analyses."),
    ] = Precision.float64,
    sections: Annotated[
        str | None,
        typer.Option(help="Only these sections, with commas; of saved analyses too."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of whatever is sampled, the same on all sides.")
    ] = 0,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Memory for the passes, as in 2GB; 640MiB."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; as many as BLAS uses by default.")
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare checkpoints and saved analyses with a baseline, and write one report.

    Matched by token (else by row), over the shared vocabulary: subspace distance and principal
    angles, CKA, Procrustes residual, neighbor overlap, the tokens that moved most, and every
    number of both with its difference. A saved analysis holds no matrix: what takes both comes
    from its checkpoint, if that is still where it was and the same. Options from --tensor to
    --precision are about checkpoints and hold for all of them.

    Example: embgeo diff fixtures/baseline.pt fixtures/cosreg.safetensors
    """
    wanted = Wanted(
        sections=None if sections is None else tuple(s.strip() for s in sections.split(",")),
        seed=seed,
        pairs=pairs,
        popular_share=popular_share,
        isotropy_rows=isotropy_rows,
        isotropy_runs=isotropy_runs,
        sphere=sphere,
        neighbors=(),
        precision=precision.value,
    )
    loading = Loading(
        tensor=tensor,
        output=output,
        rows=rows,
        transpose=transpose,
        tokens=tokens,
        counts=counts,
        corpus=corpus,
        rank_order=rank_order,
        padding=padding.value,
        reference=reference,
    )
    how_many = asked_queries(queries)
    resources = chosen_resources(memory, threads)
    loading.check(paths, wanted)
    ordered, steps = in_order(paths) if track else (paths, None)
    folder = out if out is not None else default_folder(ordered, track)
    if not json_ or out is not None:
        check_folder(folder, ordered)

    from embgeo.comparison.files import comparison_to_json
    from embgeo.comparison.making import Run, compare
    from embgeo.comparison.pairs import Options

    with progress_bar(quiet) as progress:
        how = How(loading, wanted, resources, quiet)
        inputs, timing = read_inputs(ordered, steps, how, progress)
        comparison = compare(
            inputs,
            Options(seed, None if match is None else match.value, how_many, resources),
            Run(command_line(), "" if steps is None else steps.source, timing),
            progress,
        )
    if not json_ or out is not None:
        page = write_comparison(comparison, folder)
        if not quiet and not json_:
            summary(comparison, page)
    if json_:
        print(json.dumps(comparison_to_json(comparison), indent=1, allow_nan=False))


def asked_queries(text: str | None) -> int | None:
    """A number of queries; None where nothing is said."""
    if text is None:
        return None
    if text == "all":
        return 2**62
    if not (text.isascii() and text.isdigit()):
        raise BadOption(
            f"{text!r} is not a number of tokens",
            where="--queries",
            way_out="give N, 0 for none, or all",
        )
    return int(text)
