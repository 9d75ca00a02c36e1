"""``embgeo figures``: figures and LaTeX tables for papers, from saved results."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from embgeo.cli import completion, shared
from embgeo.cli import options as o

if TYPE_CHECKING:
    from embgeo.workflows.figures import FigureSet


class Form(StrEnum):
    """File formats of figures; Typer takes a list of no other type of choices."""

    pdf = "pdf"
    svg = "svg"
    png = "png"
    pgf = "pgf"


Color = Literal["class", "frequency", "none"]
Signs = Literal["both", "one"]
VenueName = Literal["iclr", "neurips", "icml", "acl"]


@shared.guarded
def figures(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Folders that embgeo analyze or diff wrote, or of runs with a metrics.jsonl.",
        ),
    ],
    figure: Annotated[
        list[str] | None,
        typer.Option(
            help="scatter, spectrum, film, …; docs/figures.md lists all. Repeatable. "
            "All that can be drawn by default.",
            autocompletion=completion.complete_one(completion.list_charts),
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(help="LaTeX table: numbers, isotropy or neighbors; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Output folder; figures by default."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="Legend label of a PATH; one for each, in order."),
    ] = None,
    format_: Annotated[
        list[Form] | None, typer.Option("--format", help="File format; repeatable; pdf by default.")
    ] = None,
    venue: Annotated[
        VenueName | None, typer.Option(help="Venue that sets the width; iclr by default.")
    ] = None,
    text: Annotated[
        bool | None,
        typer.Option("--text/--column", help="Width of the text, or of one of its columns."),
    ] = None,
    width: Annotated[
        float | None, typer.Option(min=1.5, max=20.0, help="Width in inches, for other venues.")
    ] = None,
    color: Annotated[
        Color | None,
        typer.Option(help="Color points by class (rare or frequent), by frequency, or not at all."),
    ] = None,
    annotate: Annotated[
        list[str] | None, typer.Option(help="Name this token in a scatter; repeatable.")
    ] = None,
    free_axes: Annotated[
        bool, typer.Option("--free-axes", help="Give each map a scale of its own.")
    ] = False,
    parameter: Annotated[
        str | None,
        typer.Option(
            help="Name of the swept parameter; its values are read from paths such as beta=0.5."
        ),
    ] = None,
    scalar: Annotated[
        list[str] | None,
        typer.Option(
            help="Value that a sweep (subspace.distance by default) or a curve shows; repeatable."
        ),
    ] = None,
    signs: Annotated[
        Signs | None,
        typer.Option(help="Signs of the eigenvectors in the table of I1 and I2; both by default."),
    ] = None,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    debug: o.Debug = False,
) -> None:
    """Draw figures and LaTeX tables for a paper from saved results.

    Example: embgeo figures baseline.embgeo --venue icml -o figures
    """
    from embgeo.workflows.figures import figures as make_figures
    from embgeo.workflows.folders import choose_folder

    folder = choose_folder(out, Path("figures"))
    made = make_figures(
        *paths,
        figure=figure or (),
        table=table or (),
        out=folder,
        label=label or (),
        format=[form.value for form in format_ or ()],
        venue=venue,
        text=text,
        width=width,
        color=color,
        annotate=annotate or (),
        free_axes=free_axes,
        parameter=parameter,
        scalar=scalar or (),
        signs=signs,
        command=shared.printable(shared.command_line()),
    )
    if json_:
        shared.print_json([one.record for one in made.figures])
    elif not quiet:
        summary(folder, made)


def summary(out: Path, made: FigureSet) -> None:
    """Print the files, the notes about them, and why other figures could not be made."""
    for one in made.figures:
        shown = [name for name in one.files if not name.endswith((".json", ".csv"))]
        size = "" if one.size is None else f"  {one.size[0]:.2f} × {one.size[1]:.2f} in"
        shared.print_lines(f"{', '.join(str(out / name) for name in shown)}{size}")
        for note in one.record["notes"]:
            shared.print_lines(f"  note: {note}")
    for name, reason in made.left_out.items():
        if name not in made.unrelated:
            shared.print_lines(f"skipped {name}: {reason}")
