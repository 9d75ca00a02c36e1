"""From the content of a table to LaTeX; every plain string on the way is escaped."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from embgeo.publish.latex.latex_table import Content, Latex, LatexTable
from embgeo.publish.latex.latex_text import DEFINITION, latex_text


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
