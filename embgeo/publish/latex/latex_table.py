"""What a LaTeX table is: analyses go in, the content of its template and its numbers come out."""

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
    """An analysis and its label, which is untrusted text."""

    label: str
    analysis: Analysis


@dataclass(frozen=True, slots=True)
class TableContent:
    """The content of a table."""

    #: Values of the template by name; all but `Latex` are escaped.
    values: dict[str, Any]
    #: The numbers behind the table.
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]


@dataclass(frozen=True, slots=True)
class LatexTable:
    """A kind of table."""

    #: Of the option, of the file and of the template.
    name: str
    #: Why an analysis cannot be in the table; empty if it can.
    missing: Callable[[Analysis], str]
    #: Makes the content from the columns and the signs of the eigenvectors, "both" or "one".
    fill: Callable[[Sequence[TableColumn], str], TableContent]


class Latex(str):
    """LaTeX source, which is not escaped."""

    __slots__ = ()


def render_table(table: LatexTable, content: TableContent, made_by: str) -> str:
    """Render the table as a file to ``\\input``, with `made_by` in a comment on the first line."""
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
