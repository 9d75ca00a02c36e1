"""``embgeo analyze``: from a checkpoint to a result folder with a report."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embgeo.cli.in_parts import InParts, save_part
from embgeo.cli.matrix_source import MatrixSource
from embgeo.cli.measuring import Wanted, chosen_resources
from embgeo.cli.on_cluster import measured_on_cluster
from embgeo.cli.shared import (
    Debug,
    Json,
    Quiet,
    check_output,
    command_line,
    guarded,
    printable,
    progress_bar,
    write_folder,
)

if TYPE_CHECKING:
    from embgeo.result.analysis import Analysis
    from embgeo.stats.resources import Resources


class Precision(StrEnum):
    """Of the sums of products over rows."""

    float64 = "float64"
    float32 = "float32"


class Queries(StrEnum):
    """Rows whose neighbors are searched."""

    sample = "sample"
    all = "all"


class Engine(StrEnum):
    """What makes the passes."""

    threads = "threads"
    dask = "dask"


class Padding(StrEnum):
    """What becomes of rows beyond the vocabulary."""

    auto = "auto"
    mask = "mask"
    keep = "keep"


@guarded
def analyze(
    path: Annotated[
        Path, typer.Argument(help="Checkpoint, model folder or vector file; - for stdin.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Result folder; NAME.embgeo here by default."),
    ] = None,
    tensor: Annotated[
        str | None, typer.Option(help="Name of the embedding tensor; see: embgeo inspect.")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(help="Name of the output projection of an untied model; none: without."),
    ] = None,
    rows: Annotated[str | None, typer.Option(metavar="A:B", help="Analyze rows A to B−1.")] = None,
    transpose: Annotated[
        bool, typer.Option("--transpose", help="Tokens are columns in the file.")
    ] = False,
    tokens: Annotated[
        Path | None,
        typer.Option(help="Token labels, one a row (txt, tsv, json), or a tokenizer's file."),
    ] = None,
    counts: Annotated[
        Path | None, typer.Option(help="Token counts (tsv, or json {token: count}).")
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Text, or a folder of texts, whose tokens are counted.")
    ] = None,
    rank_order: Annotated[
        bool,
        typer.Option("--rank-order", help="Rows are sorted by frequency, most frequent first."),
    ] = False,
    padding: Annotated[
        Padding,
        typer.Option(
            help="Rows beyond the vocabulary: mask them, keep them, or mask them only when the "
            "model itself brings the vocabulary.",
        ),
    ] = Padding.auto,
    hidden: Annotated[
        Path | None, typer.Option(help="Hidden states of the model, one a row, in any format.")
    ] = None,
    hidden_tensor: Annotated[
        str | None, typer.Option(help="Name of the tensor that holds them.")
    ] = None,
    popular_share: Annotated[
        float | None, typer.Option(help="Share of the tokens that is called popular; 0.2.")
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            metavar="N|all", help="Pairs sampled for the cosine distribution; 100000; 0: none."
        ),
    ] = None,
    isotropy_rows: Annotated[
        int | None, typer.Option(min=2, help="Also I1/I2 of samples of so many rows.")
    ] = None,
    isotropy_runs: Annotated[
        int | None, typer.Option(min=1, help="Number of those samples; 10.")
    ] = None,
    sphere: Annotated[
        bool | None,
        typer.Option(
            "--sphere/--no-sphere",
            help="Search the whole sphere for the extremes of Z; by default for up to 1e8 entries.",
        ),
    ] = None,
    neighbors: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOKEN[=A,B]",
            help="List the neighbors of TOKEN, and the ranks of A and B among them; repeatable.",
        ),
    ] = None,
    neighbors_of: Annotated[
        Queries | None,
        typer.Option(
            help="Rows whose neighbors tell hubs, rarity and the intrinsic dimension; sample. All "
            "of them take as long as --pairs all.",
        ),
    ] = None,
    sections: Annotated[
        str | None,
        typer.Option(
            help="Only these, with commas: spectrum, projection, cosine, isotropy, frequency, "
            "subspace, hidden, tokens."
        ),
    ] = None,
    reference: Annotated[
        bool, typer.Option(help="Compare with isotropic Gaussian rows of the same norms.")
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of whatever is sampled.")] = 0,
    precision: Annotated[
        Precision,
        typer.Option(help="Of sums of products; float32 is faster, docs/scale.md says how much."),
    ] = Precision.float64,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Memory for the passes, as in 2GB; 640MiB."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads; as many as BLAS uses by default.")
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            metavar="cpu|cuda|mps|auto",
            help="Where the passes run; auto: on a GPU if there is one. docs/device.md.",
        ),
    ] = "cpu",
    save_state: Annotated[
        Path | None,
        typer.Option(help="Save what a pass over these rows saw, for: embgeo merge."),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="The second round, as a plan of embgeo merge wants it.")
    ] = None,
    part: Annotated[
        str | None, typer.Option(metavar="I/P", help="Part I of P of the rows, I from 1.")
    ] = None,
    first_row: Annotated[
        int | None,
        typer.Option(min=0, help="Number of this file's first row in a matrix of several files."),
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Threads of this machine, or tasks of a dask cluster.")
    ] = Engine.threads,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Of the cluster; without, one is started here."),
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Measure an embedding matrix and write a report.

    Example: embgeo analyze fixtures/baseline.pt --counts fixtures/vocab_counts.tsv

    In parts, each of which could be measured on another machine:

    Example: embgeo analyze fixtures/baseline.pt --part 1/2 --save-state s1.npz

    Example: embgeo analyze fixtures/baseline.pt --part 2/2 --save-state s2.npz
    """
    source = MatrixSource(
        path,
        tensor=tensor,
        output=output,
        rows=rows,
        transpose=transpose,
        padding=padding.value,
        tokens=tokens,
        counts=counts,
        corpus=corpus,
        rank_order=rank_order,
        hidden=hidden,
        hidden_tensor=hidden_tensor,
    )
    wanted = Wanted(
        sections=None if sections is None else tuple(s.strip() for s in sections.split(",")),
        seed=seed,
        pairs=pairs,
        popular_share=popular_share,
        isotropy_rows=isotropy_rows,
        isotropy_runs=isotropy_runs,
        sphere=sphere,
        neighbors=tuple(neighbors or ()),
        precision=precision.value,
        neighbors_of=None if neighbors_of is None else neighbors_of.value,
    )
    wanted.check()
    in_parts = InParts(save_state, plan, part, first_row, engine is Engine.dask, scheduler)
    in_parts.check(source, wanted, device, writes_result=json_ or out is not None)
    resources = chosen_resources(memory, threads, device)
    if save_state is not None:
        save_part(source, in_parts, wanted, reference, resources, quiet)
        return
    folder = out if out is not None else Path(f"{default_name(path)}.embgeo")
    if not json_ or out is not None:
        check_output(folder)

    if engine is Engine.dask:
        analysis = measured_on_cluster(source, scheduler, wanted, reference, resources, quiet)
    else:
        analysis = measured(source, wanted, reference, resources, quiet)
    if not json_ or out is not None:
        report = write_folder(analysis, folder)
        if not quiet and not json_:
            summary(analysis, report)
    if json_:
        print(json.dumps(analysis.to_json(), indent=1, allow_nan=False))


def measured(
    source: MatrixSource, wanted: Wanted, reference: bool, resources: Resources, quiet: bool
) -> Analysis:
    """The whole matrix measured in this process.

    Raises
    ------
    EmbgeoError
    """
    import embgeo

    matrix = source.load(quiet)
    with progress_bar(quiet) as progress:
        return embgeo.analyze(
            matrix,
            sections=wanted.sections,
            options=wanted.options(matrix),
            reference=reference,
            command=command_line(),
            progress=progress,
            resources=resources,
        )


def default_name(path: Path) -> str:
    """The file's name without its last suffix; of a folder or a member of an archive, its own."""
    if str(path) == "-":
        return "stdin"
    _, _, member = str(path).partition("::")
    resolved = Path(member if member and not path.exists() else path).resolve()
    return (resolved.name if resolved.is_dir() else resolved.stem) or "analysis"


def summary(analysis: Analysis, report: Path) -> None:
    """Verdict and headline numbers on stdout."""
    from embgeo.diagnosis.verdict import judge

    p = analysis.provenance
    verdict = judge(analysis)
    print(printable(f"{p['file']}  {p['tensor']}  {p['n']:,} × {p['d']:,}  {p['dtype']}"))
    print(printable(verdict.headline))
    if verdict.blame_sentence:
        print(printable(verdict.blame_sentence))
    shown = [s for name in HEADLINE if (s := analysis.scalar(name)) is not None]
    width = max((len(s.quantity.title) for s in shown), default=0)
    for scalar in shown:
        chance = scalar.reference_note.startswith("chance")
        beside = f"  ({'chance' if chance else 'isotropic rows'}: {scalar.reference_text})"
        shown_beside = "" if scalar.reference is None else beside
        print(f"  {scalar.quantity.title:<{width}}  {scalar.text}{shown_beside}")
    for family in ("frequency", "subspace"):
        if family in analysis.absent:
            print(printable(f"  left out: {family}, {analysis.absent[family]}"))
    for note in analysis.notes:
        print(printable(f"  note: {note}"))
    print(printable(f"report: {report}"))


HEADLINE = (
    "spectrum.effective_rank",
    "spectrum.top_share",
    "cosine.mean",
    "isotropy.i1",
    "isotropy.i1_unit",
    "frequency.probe_auc",
    "frequency.neighbor_rarity_rare",
    "subspace.distance",
)
