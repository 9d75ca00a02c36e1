"""``embgeo figures``: figures and LaTeX tables for papers, from saved results."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from embgeo.cli import options as o
from embgeo.cli import shared

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
        o.option(
            "scatter, spectrum, film, …; docs/figures.md lists all. Repeatable. "
            "All that can be drawn by default.",
        ),
    ] = None,
    table: Annotated[
        list[str] | None, o.option("LaTeX table: numbers, isotropy or neighbors; repeatable.")
    ] = None,
    out: Annotated[
        Path | None, o.option("Output folder; figures by default.", "--out", "-o", metavar="FOLDER")
    ] = None,
    label: Annotated[
        list[str] | None, o.option("Legend label of a PATH; one for each, in order.")
    ] = None,
    format_: Annotated[
        list[Form] | None, o.option("File format; repeatable; pdf by default.", "--format")
    ] = None,
    venue: o.Venue = None,
    text: Annotated[
        bool | None, o.option("Width of the text, or of one of its columns.", "--text/--column")
    ] = None,
    width: Annotated[float | None, o.option("Width in inches, for other venues.")] = None,
    color: Annotated[
        Color | None,
        o.option("Color points by class (rare or frequent), by frequency, or not at all."),
    ] = None,
    annotate: Annotated[
        list[str] | None, o.option("Name this token in a scatter; repeatable.")
    ] = None,
    free_axes: Annotated[
        bool, o.option("Give each map a scale of its own.", "--free-axes")
    ] = False,
    parameter: Annotated[
        str | None,
        o.option("Name of the swept parameter; its values are read from paths such as beta=0.5."),
    ] = None,
    scalar: Annotated[
        list[str] | None,
        o.option("Value that a sweep (subspace.distance by default) or a curve shows; repeatable."),
    ] = None,
    signs: Annotated[
        Signs | None,
        o.option("Signs of the eigenvectors in the table of I1 and I2; both by default."),
    ] = None,
    against: Annotated[
        list[Path] | None,
        o.option(
            "Draw two groups, such as seeds: the paths, and those behind this option, with means "
            "and spreads over their members. Checkpoints are measured.",
            "--against",
            metavar="PATH",
        ),
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
        against=against or (),
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
