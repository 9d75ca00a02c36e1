"""LaTeX tables, from analyses to the content of a template, and untrusted text as LaTeX."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from embgeo.charts.render.paper import Venue
from embgeo.core.values import Cell
from embgeo.result.analysis import Analysis

if TYPE_CHECKING:
    from embgeo.training.study.record import Run

#: Points of an inch in TeX.
POINTS = 72.27
#: Mean width of a letter of small text in points, and the room between two columns.
LETTER, BETWEEN = 4.7, 12.0


@dataclass(frozen=True, slots=True)
class TableColumn:
    """An analysis and its label, which is untrusted text."""

    label: str
    analysis: Analysis
    #: Of a study: the runs of the method, one for each seed. Of a member of a group: its own.
    runs: tuple["Run", ...] = ()
    #: Label of the group that it is a member of.
    group: str = ""


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

    #: Of the option and of the file.
    name: str
    #: Why an analysis cannot be in the table; empty if it can.
    missing: Callable[[Analysis], str]
    #: Makes the content from the columns, the signs of the eigenvectors ("both" or "one"), and the
    #: width of the page.
    fill: Callable[[Sequence[TableColumn], str, Venue], TableContent]
    #: Name of the template; that of the table by default.
    template: str = ""


class Latex(str):
    """LaTeX source, which is not escaped."""

    __slots__ = ()


def render_table(table: LatexTable, content: TableContent, made_by: str) -> str:
    """Render the table as a file to ``\\input``, with `made_by` in a comment on the first line."""
    body = render_body(table.template or table.name, content.values)
    definition = f"{DEFINITION}\n" if r"\embgeochar" in body else ""
    comment = " ".join(made_by.split())
    return f"% {comment}\n% needs \\usepackage{{booktabs}}\n{definition}{body}"


def render_body(template: str, values: dict[str, Any]) -> str:
    return _environment().get_template(f"{template}.tex.j2").render(values)


def lay_out(
    heads: Sequence[Latex],
    rows: Sequence[Sequence[Latex]],
    page: Venue,
    caption: Latex,
    label: str,
    *,
    last: Sequence[Latex] = (),
    alignment: str = "",
) -> dict[str, Any]:
    """Lay out a table for the template ``grid``: as wide as a column, else as the text.

    What is wider than the text is split into tables below each other, which repeat the first
    columns, those of words. `alignment` is a letter for each column: by default numbers after a
    name.
    """
    columns = list(zip(heads, *rows, *([last] if last else []), strict=True))
    widths = [max(map(measure, column)) + BETWEEN for column in columns]
    alignment = alignment or "l" + "r" * (len(heads) - 1)
    repeated = range(len(alignment) - len(alignment.lstrip("l")))

    def fits(part: Sequence[int]) -> bool:
        return bool(sum(widths[i] for i in (*repeated, *part)) <= page.text * POINTS)

    parts: list[list[int]] = [[]]
    for place in range(len(repeated), len(heads)):
        if not fits([*parts[-1], place]) and parts[-1]:
            parts.append([])
        parts[-1].append(place)
    places = [place for part in parts for place in part]
    size = -(-len(places) // len(parts))
    # A table of words alone has no places: its columns are all repeated.
    even = [places[i : i + size] for i in range(0, len(places), size or 1)]
    parts = even if even and all(map(fits, even)) else parts
    blocks: list[dict[str, Any]] = []
    for part in ([*repeated, *part] for part in parts):
        blocks.append({
            "alignment": Latex("".join(alignment[i] for i in part)),
            "heads": [heads[i] for i in part],
            "rows": [[row[i] for i in part] for row in rows],
            "last": [last[i] for i in part] if last else [],
            "width": sum(widths[i] for i in part),
        })  # fmt: skip
    widest = max(block["width"] for block in blocks)
    return {
        "environment": choose_environment(widest, page),
        "caption": caption,
        "label": label,
        "blocks": blocks,
    }


def choose_environment(width: float, page: Venue) -> Latex:
    """Return ``table``, or ``table*`` for what is wider in points than one of several columns."""
    return Latex("table*" if page.column < page.text and width > page.column * POINTS else "table")


def measure(cell: str) -> float:
    r"""Estimate the width of a cell of LaTeX in points.

    >>> round(measure(r"$0.5$"), 1), round(measure(r"\textbackslash{}x"), 1)
    (14.1, 9.4)
    """
    text = re.sub(r"\\(?:mathbf|emph|textbf|hat|scriptsize|rlap)\b", "", cell)
    # Any other command draws about one sign.
    text = re.sub(r"\\[A-Za-z]+ ?(?:\{\})?", "x", text)
    return LETTER * len(re.sub(r"[{}$^_ ]|\\,", "", text))


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


#: Longest text that is printed whole.
LIMIT = 32

#: The definition that text with other characters needs, which other fonts have. A paper with such a
#: font may define it, before the table, to print its first argument.
DEFINITION = r"\providecommand{\embgeochar}[2]{{\scriptsize U+#2}}"

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    # Not \$, whose backslash matplotlib removes before PGF sees it.
    "$": r"\textdollar{}",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    # An active character in some languages of babel.
    '"': r"{\char34}",
    # Several in a row would become a dash or a quotation mark.
    "-": "{-}",
    ",": "{,}",
    # At the start of a row it would be an argument of the line break before it.
    "[": "{[}",
    "*": "{*}",
    "\n": r"\textbackslash{}n",
    "\t": r"\textbackslash{}t",
    "\r": r"\textbackslash{}r",
}
_LETTERS = {
    "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}",
    "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}",
    "–": r"\textendash{}", "—": r"\textemdash{}", "‘": r"\textquoteleft{}",
    "’": r"\textquoteright{}", "“": r"\textquotedblleft{}", "”": r"\textquotedblright{}",
    "…": r"\dots{}", "£": r"\pounds{}", "§": r"\S{}", "¶": r"\P{}", "©": r"\copyright{}",
    "°": r"\textdegree{}", "·": r"\textperiodcentered{}", "•": r"\textbullet{}",
}  # fmt: skip
#: Combining characters → the commands that set them, in every encoding of Latin fonts.
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u",
    "\u0307": ".", "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0327": "c",
}  # fmt: skip


def latex_text(text: str, limit: int = LIMIT) -> str:
    r"""`text` as LaTeX source that prints it, cut if it is long, with blanks at its ends visible.

    >>> print(latex_text("50% of $x_1$"), latex_text("Gödel"), latex_text("日"))
    50\% of \textdollar{}x\_1\textdollar{} G\"{o}del \embgeochar{日}{65E5}
    """
    if not text:
        return r"\emph{(empty)}"
    shown = text if len(text) <= limit else text[: limit - 1]
    body = shown.lstrip(" ")
    left = len(shown) - len(body)
    right = len(body) - len(body.rstrip(" "))
    middle = "".join(map(_character, body.rstrip(" ")))
    out = r"\textvisiblespace{}" * left + middle + r"\textvisiblespace{}" * right
    return out if shown is text else out + r"\dots{}"


def _character(c: str) -> str:
    if c in _SPECIAL:
        return _SPECIAL[c]
    if " " <= c <= "~":
        return c
    if c in _LETTERS:
        return _LETTERS[c]
    parts = unicodedata.normalize("NFD", c)
    if len(parts) == 2 and parts[0].isascii() and parts[0].isalpha() and parts[1] in _ACCENTS:
        return rf"\{_ACCENTS[parts[1]]}{{{parts[0]}}}"
    # Characters that are invisible, or change the direction of the text, are only named.
    printed = c if c.isprintable() and not unicodedata.combining(c) else ""
    return rf"\embgeochar{{{printed}}}{{{ord(c):04X}}}"


def latex_number(text: str) -> str:
    r"""Return a number from :func:`embgeo.core.values.format_number` as LaTeX.

    >>> print(latex_number("−1.5e-08"), latex_number("12,345"))
    $-1.5\times10^{-8}$ $12{,}345$
    """
    mantissa, e, exponent = text.replace("−", "-").partition("e")
    body = mantissa.replace(",", "{,}")
    return f"${body}$" if not e else rf"${body}\times10^{{{int(exponent)}}}$"
