"""What a LaTeX table is: analyses go in, the content of a template and its numbers come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from embgeo.core.values import Cell
from embgeo.publish.latex.latex_text import DEFINITION, latex_text
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


def render_table(table: LatexTable, content: Content, made_by: str) -> str:
    """The table as a file to ``\\input``; equal content gives equal text.

    Parameters
    ----------
    content : Content
        From ``table.fill``.
    made_by : str
        Said in a comment on the first line.
    """
    template = _environment().get_template(f"{table.name}.tex.j2")
    body = template.render(content.values)
    definition = f"{DEFINITION}\n" if r"\embgeochar" in body else ""
    comment = " ".join(made_by.split())
    return f"% {comment}\n% needs \\usepackage{{booktabs}}\n{definition}{body}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("embgeo.publish.latex"),
        undefined=StrictUndefined,
        # Braces are LaTeX's.
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=escape,
    )
    environment.filters["cells"] = lambda row: Latex(" & ".join(map(escape, row)))
    return environment


def escape(value: Any) -> str:
    return value if isinstance(value, Latex) else latex_text(str(value))
