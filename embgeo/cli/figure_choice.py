"""Which figures and tables are wanted, and whether every option is about one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embgeo.core.errors import BadOption

if TYPE_CHECKING:
    from embgeo.charts.paper.base import PaperFigure
    from embgeo.publish.latex.base import LatexTable

#: The figures and tables that an option is about; options of all figures are about "figures".
ABOUT = {
    "--color": ("scatter", "scatter-centered"),
    "--x": ("sweep",),
    "--parameter": ("sweep",),
    "--scalar": ("sweep", "training"),
    "--signs": ("isotropy",),
}
OF_FIGURES = ("--format", "--venue", "--width", "--text/--column")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to make.

    Attributes
    ----------
    figures, tables
        In the order of their tuples.
    asked : bool
        Whether the user named them; otherwise it is whatever the analyses hold.
    """

    figures: tuple[PaperFigure, ...]
    tables: tuple[LatexTable, ...]
    asked: bool


def choose(figures: Sequence[str], tables: Sequence[str]) -> Wanted:
    """The named figures and tables; all of both where nothing is named.

    Raises
    ------
    BadOption
    """
    from embgeo.charts.paper import PAPER_FIGURES
    from embgeo.publish.latex import TABLES

    for given, known, option in (
        (figures, [f.name for f in PAPER_FIGURES], "--figure"),
        (tables, [t.name for t in TABLES], "--table"),
    ):
        unknown = [name for name in given if name not in known]
        if unknown:
            way_out = f"choose among {', '.join(known)}"
            raise BadOption(f"there is no {unknown[0]!r}", where=option, way_out=way_out)
    if not figures and not tables:
        return Wanted(PAPER_FIGURES, TABLES, asked=False)
    return Wanted(
        tuple(f for f in PAPER_FIGURES if f.name in figures),
        tuple(t for t in TABLES if t.name in tables),
        asked=True,
    )


def check_about(wanted: Wanted, given: Mapping[str, object]) -> None:
    """Refuse options that would do nothing.

    Parameters
    ----------
    wanted : Wanted
    given : mapping
        All options with their values; None or empty where they were not given.

    Raises
    ------
    BadOption
    """
    names = {f.name for f in wanted.figures} | {t.name for t in wanted.tables}
    for option in given_options(given):
        about = ABOUT.get(option, ())
        if (option in OF_FIGURES and not wanted.figures) or (about and not names & set(about)):
            raise BadOption(
                f"is about {' or '.join(about) or 'figures'}, which is not asked for",
                where=option,
                way_out="leave it out, or ask for that",
            )


def given_options(options: Mapping[str, object]) -> list[str]:
    """The options that the user gave."""
    return [option for option, value in options.items() if value is not None and value != []]
