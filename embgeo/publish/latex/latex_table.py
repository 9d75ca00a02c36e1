"""What a LaTeX table is: analyses go in, the content of a template and its numbers come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from embgeo.core.values import Cell
from embgeo.result.analysis import Analysis


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One analysis and what the table calls it; the name is hostile text."""

    label: str
    analysis: Analysis


@dataclass(frozen=True, slots=True)
class Content:
    """What a template is filled with.

    Attributes
    ----------
    values : dict
        By the names that the template uses; what is not `Latex` is escaped.
    columns, rows
        The numbers behind the table.
    """

    values: dict[str, Any]
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class LatexTable:
    """One kind of table.

    Attributes
    ----------
    name : str
        Of the option, of the file and of the template.
    missing : callable
        Why an analysis has nothing for it; empty if it has.
    fill : callable
        From methods that lack nothing, and which signs of the eigenvectors to take ("both" or
        "one"), to the content.
    """

    name: str
    missing: Callable[[Analysis], str]
    fill: Callable[[Sequence[TableColumn], str], Content]


class Latex(str):
    """LaTeX source, which a template takes as it stands."""

    __slots__ = ()
