"""``embgeo figures``: figures and LaTeX tables for papers, from saved results."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from embgeo.cli.figure_choice import ABOUT, check_about, choose, given_options
from embgeo.cli.figure_maker import Made, Maker
from embgeo.cli.outputs import write_set
from embgeo.cli.shared import Debug, Json, Quiet, command_line, guarded, printable
from embgeo.cli.subjects import load_subjects
from embgeo.core.errors import BadOption


class Form(StrEnum):
    """File formats of figures."""

    pdf = "pdf"
    svg = "svg"
    png = "png"
    pgf = "pgf"


class Color(StrEnum):
    """What colors the points of a scatter."""

    cls = "class"
    frequency = "frequency"
    none = "none"


class Signs(StrEnum):
    """Of the eigenvectors over which I1 and I2 are taken."""

    both = "both"
    one = "one"


class VenueName(StrEnum):
    """Whose widths figures have."""

    iclr = "iclr"
    neurips = "neurips"
    icml = "icml"
    acl = "acl"


@guarded
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
            help="scatter, scatter-centered, spectrum, spectrum-log, cosines, partition, "
            "norms-by-frequency, sweep or training; repeatable. All that can be drawn by default."
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(help="LaTeX table: isotropy or neighbors; repeatable."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder that the files go to.")] = Path(
        "figures"
    ),
    label: Annotated[
        list[str] | None,
        typer.Option(help="What legends call a PATH; one for each, in their order."),
    ] = None,
    format_: Annotated[
        list[Form] | None, typer.Option("--format", help="Repeatable; pdf by default.")
    ] = None,
    venue: Annotated[
        VenueName | None, typer.Option(help="Whose widths figures have; iclr by default.")
    ] = None,
    text: Annotated[
        bool | None,
        typer.Option("--text/--column", help="As wide as the text, or as one column of it."),
    ] = None,
    width: Annotated[
        float | None, typer.Option(min=1.5, max=20.0, help="Width in inches, for other venues.")
    ] = None,
    color: Annotated[
        Color | None,
        typer.Option(help="What colors the points of a scatter: the class, rare or popular."),
    ] = None,
    x: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Values of the swept parameter, one for each PATH."),
    ] = None,
    parameter: Annotated[
        str | None,
        typer.Option(help="Its name, by which values are read from paths such as beta=0.5."),
    ] = None,
    scalar: Annotated[
        list[str] | None,
        typer.Option(
            help="What a sweep shows (subspace.distance by default) or training curves; repeatable."
        ),
    ] = None,
    signs: Annotated[
        Signs | None,
        typer.Option(help="Of the eigenvectors in the table of I1 and I2; both by default."),
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Draw figures and LaTeX tables for a paper from saved results.

    Example: embgeo figures baseline.embgeo --venue icml -o figures
    """
    wanted = choose(figure or (), table or ())
    given = {
        "--format": format_, "--venue": venue, "--width": width, "--text/--column": text,
        "--color": color, "--x": x, "--parameter": parameter, "--scalar": scalar, "--signs": signs,
    }  # fmt: skip
    check_about(wanted, given)
    made_by = Maker(
        forms=tuple(dict.fromkeys(form.value for form in format_ or (Form.pdf,))),
        width=chosen_width(venue, text, width),
        color="class" if color is None else color.value,
        scalars=tuple(dict.fromkeys(scalar or ())),
        parameter=parameter or "",
        signs="both" if signs is None else signs.value,
        command=printable(command_line()),
    )
    made_by.check(out, wanted)
    subjects = load_subjects(paths, label or (), numbers(x), parameter or "")
    made, left_out = made_by.make_all(wanted, subjects)
    check_used(made, left_out, given)
    write_set(out, {name: content for one in made for name, content in one.files.items()})
    if json_:
        print(json.dumps([one.record for one in made], indent=1))
    elif not quiet:
        summary(out, made, left_out)


def chosen_width(venue: VenueName | None, text: bool | None, width: float | None) -> float:
    """Width in inches of a column of the venue, unless something else was asked for.

    Raises
    ------
    BadOption
    """
    from embgeo.charts.paper.style import VENUES

    if width is not None:
        if venue is not None or text is not None:
            raise BadOption(
                "cannot be combined with --venue, --text or --column",
                where="--width",
                way_out="leave one of them out",
            )
        return width
    of = VENUES["iclr" if venue is None else venue.value]
    return of.text if text else of.column


def numbers(text: str | None) -> list[float]:
    """Numbers with commas between them.

    Raises
    ------
    BadOption
    """
    if text is None:
        return []
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = [math.nan]
    if not all(map(math.isfinite, values)):
        raise BadOption(f"{text!r} is no list of numbers", where="--x", way_out="write --x 0,0.5,1")
    return values


def check_used(
    made: Sequence[Made], left_out: Mapping[str, str], given: Mapping[str, object]
) -> None:
    """Refuse an option about figures none of which could be made.

    Raises
    ------
    BadOption
    """
    names = {one.name for one in made}
    for option in given_options(given):
        about = ABOUT.get(option, ())
        if about and not names & set(about):
            reason = next(left_out[name] for name in about if name in left_out)
            raise BadOption(f"has nothing to be used for: {reason}", where=option)


def summary(out: Path, made: Sequence[Made], left_out: Mapping[str, str]) -> None:
    """What was written, what a caption should not hide, and what could not be made."""
    from embgeo.charts.paper.base import NO_MATTER

    for one in made:
        shown = [name for name in one.files if not name.endswith((".json", ".csv"))]
        size = "" if one.size is None else f"  {one.size[0]:.2f} × {one.size[1]:.2f} in"
        print(printable(f"{', '.join(str(out / name) for name in shown)}{size}"))
        for note in one.record["notes"]:
            print(printable(f"  note: {note}"))
    for name, reason in left_out.items():
        if not reason.endswith(NO_MATTER):
            print(printable(f"left out: {name}, {reason}"))
