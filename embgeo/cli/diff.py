"""``embgeo diff``: checkpoints and saved analyses next to a baseline, or over training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from embgeo.cli.fields import EachField, Given
from embgeo.cli.shared import (
    Debug,
    Json,
    Memory,
    Quiet,
    Reference,
    Sections,
    Threads,
    command_line,
    guarded,
    printable,
    progress_bar,
)
from embgeo.core.options import Options
from embgeo.core.source import Source

if TYPE_CHECKING:
    from embgeo.comparison.comparison import Comparison
    from embgeo.comparison.pair import Difference, Pair
    from embgeo.comparison.track import Curve, Track

#: Steps of a track that are shown at most; the report shows all.
MOST_STEPS = 12
MOST_NOTES = 8
MOST_TOKENS = 5
LONGEST_TOKEN = 40


@guarded
def diff(
    *,
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
        Literal["token", "row"] | None,
        typer.Option(help="Match rows by token or by row number; by token where all have some."),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="N|all",
            help="Tokens whose neighbors are compared; all up to 5000, else 1000; 0: none.",
        ),
    ] = None,
    loading: Annotated[Given, EachField(Source, without=("hidden", "hidden_tensor"))],
    measuring: Annotated[Given, EachField(Options, without=("asked", "neighbors_of"))],
    sections: Sections = None,
    reference: Reference = True,
    memory: Memory = None,
    threads: Threads = None,
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare checkpoints and saved analyses with a baseline, and write one report.

    Matched by token (else by row), over the shared vocabulary: subspace distance and principal
    angles, CKA, Procrustes residual, neighbor overlap, the tokens that moved most, and every
    number of both with its difference. A saved analysis holds no matrix: what takes both comes
    from its checkpoint, if that is still where it was and the same. Options about reading and
    measuring are about checkpoints and hold for all of them.

    Example: embgeo diff fixtures/baseline.pt fixtures/cosreg.safetensors
    """
    from embgeo.workflows.compare import (
        check_inputs,
        comparison_options,
        order_by_step,
        run_comparison,
    )
    from embgeo.workflows.folders import (
        check_comparison_folder,
        comparison_folder,
        write_comparison,
    )
    from embgeo.workflows.request import AnalysisRequest, choose_resources

    request = AnalysisRequest.of(
        sections=sections,
        reference=reference,
        resources=choose_resources(memory, threads),
        **loading,
        **measuring,
    )
    options = comparison_options(request, match, queries)
    check_inputs(paths, request)
    ordered, steps = order_by_step(paths) if track else (paths, None)
    folder = out if out is not None else comparison_folder(ordered, track)
    writes = not json_ or out is not None
    if writes:
        check_comparison_folder(folder, ordered)
    with progress_bar(quiet) as progress:
        comparison = run_comparison(
            ordered, request, options, steps=steps, command=command_line(), progress=progress
        )
    if writes:
        page = write_comparison(comparison, folder)
        if not quiet and not json_:
            summary(comparison, page)
    if json_:
        print(json.dumps(comparison.to_dict(), indent=1, allow_nan=False))


def summary(comparison: Comparison, page: Path) -> None:
    """Verdicts, headline numbers and their differences, what takes both matrices, notes."""
    verdicts(comparison)
    if comparison.track is not None:
        track_table(comparison.track)
    else:
        for place in range(1, len(comparison.members)):
            differences_table(comparison, place)
    for sentence in comparison.sentences:
        print(printable(sentence))
    for note in comparison.notes[:MOST_NOTES]:
        print(printable(f"  note: {note}"))
    if len(comparison.notes) > MOST_NOTES:
        print(f"  and {len(comparison.notes) - MOST_NOTES} more notes in the report")
    print(printable(f"report: {page}"))


def verdicts(comparison: Comparison) -> None:
    shown = comparison.members
    if comparison.track is not None:
        shown = (shown[0], shown[-1])
    for member in shown:
        p = member.analysis.provenance
        shape = f"{p.get('n', 0):,} × {p.get('d', 0):,}"
        print(printable(f"{member.name}  {member.given}  {p.get('tensor', '')}  {shape}"))
        print(printable(f"  {member.analysis.verdict.headline}"))


def differences_table(comparison: Comparison, place: int) -> None:
    """Headline numbers of one member next to the baseline's, and those of the pair."""
    from embgeo.result.analysis import HEADLINE

    rows = {d.name: d for d in comparison.differences_of(place)}
    found = [rows[q.name] for q in HEADLINE if q.name in rows]
    chosen = [row for row in found if not row.undefined]
    lines = [("", comparison.baseline.name, comparison.members[place].name, "difference")]
    lines += [(d.quantity.title, *cells(d)) for d in chosen]
    print_columns(lines)
    pair = comparison.pair(0, place)
    if pair is not None:
        pair_lines(pair)


def cells(row: Difference) -> tuple[str, str, str]:
    values = [number_text(v, 4) for v in (row.baseline, row.value) if v is not None]
    return values[0], values[1], difference_text(row)


def difference_text(row: Difference) -> str:
    """The difference with its sign, its error, and whether it may be chance."""
    if row.difference is None:
        return ""
    if row.change == "equal":
        return "equal"
    text = signed(row.difference)
    if row.standard_error is not None:
        text += f" ± {number_text(row.standard_error, 2)}"
    remark = {"within error": "within error", "not judged": "sampled"}.get(row.change, "")
    remark = ", ".join(filter(None, (row.direction, remark)))
    return f"{text} ({remark})" if remark else text


def signed(value: float) -> str:
    text = number_text(value, 4)
    return f"+{text}" if value > 0 else text


def print_columns(lines: Sequence[tuple[str, ...]]) -> None:
    """Left column flush left, the others flush right but the last."""
    clean = [tuple(printable(cell) for cell in line) for line in lines]
    widths = [max(len(line[i]) for line in clean) for i in range(len(clean[0]))]
    last = len(widths) - 1
    for line in clean:
        parts = [
            cell.ljust(widths[i]) if i in (0, last) else cell.rjust(widths[i])
            for i, cell in enumerate(line)
        ]
        print(f"  {'  '.join(parts)}".rstrip())


def pair_lines(pair: Pair) -> None:
    """What takes both matrices; one reason once where nothing is defined."""
    from embgeo.core.quantities.compare import HEADLINE, MOVED

    headline = [quantity.name for quantity in HEADLINE]
    shown = [s for s in pair.scalars if s.name in headline]
    reasons = {s.undefined for s in shown}
    if len(reasons) == 1 and "" not in reasons:
        print(printable(f"  both matrices: not defined: {reasons.pop()}"))
        return
    width = max(len(s.quantity.title) for s in shown)
    for scalar in shown:
        chance = "" if scalar.reference is None else f"  (chance: {scalar.reference_text})"
        print(printable(f"  {scalar.quantity.title:<{width}}  {scalar.text}{chance}"))
    moved = next((t for t in pair.tables if t.name == MOVED.name), None)
    if moved is not None and moved.rows:
        tokens = ", ".join(short(str(row[0])) for row in moved.rows[:MOST_TOKENS])
        print(printable(f"  Moved most: {tokens}"))


def short(token: str) -> str:
    return token if len(token) <= LONGEST_TOKEN else f"{token[:LONGEST_TOKEN]}…"


def track_table(track: Track) -> None:
    """Headline curves, a line a step, and where they bend."""
    from embgeo.core.quantities import compare
    from embgeo.result.analysis import HEADLINE

    by_name = {c.quantity.name: c for c in track.curves if not c.against}
    curves = [by_name[q.name] for q in HEADLINE if q.name in by_name]
    paired = [quantity.name for quantity in compare.HEADLINE]
    to_first = [c for c in track.curves if c.against == "first" and known(c)]
    curves += [c for c in to_first if c.quantity.name in paired]
    if not curves:
        return
    places = list(range(len(track.steps)))
    if len(places) > MOST_STEPS:
        places = sorted(
            {round(i * (len(places) - 1) / (MOST_STEPS - 1)) for i in range(MOST_STEPS)}
        )
    heads = [f"{c.quantity.title}{', to the first' if c.against else ''}" for c in curves]
    steps = [number_text(track.steps[i]) for i in places]
    lines = [("step", *steps)]
    for head, curve in zip(heads, curves, strict=True):
        lines.append((head, *(format_cell(curve.values[i]) for i in places)))
    print_columns([(*line, "") for line in lines])
    if len(places) < len(track.steps):
        print(f"  {len(places)} of {len(track.steps)} steps")
    print(printable(f"  steps: {track.source}"))


def known(curve: Curve) -> bool:
    return any(value is not None for value in curve.values)


def number_text(value: float, digits: int = 4) -> str:
    from embgeo.core.values import format_number  # brings numpy, which --help must not wait for

    return format_number(value, digits)


def format_cell(value: float | None) -> str:
    return "–" if value is None else number_text(value, 4)
