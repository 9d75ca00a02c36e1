"""Parts of every page: templates that escape all text, charts, scripts and styles."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from embgeo.charts import CHARTS, theme
from embgeo.charts.items import ChartItem
from embgeo.charts.render.interactive import chart_key, is_interactive, render_interactive
from embgeo.charts.render.svg import render_svg
from embgeo.charts.render.table import find_table
from embgeo.charts.specification import Choices, Specification
from embgeo.core.numbers import format_brief, format_optional, format_p
from embgeo.core.text import visible, visible_text
from embgeo.report.payload import Payload
from embgeo.report.tables import start_sentence

#: Third-party scripts, each an element of its own.
VENDOR_SCRIPTS = ("vendor/uplot/uPlot.iife.min.js", "vendor/kdbush/kdbush.min.js")
_OPTION = re.compile("--[a-z]+(?:-[a-z]+)*")


@cache
def environment() -> Environment:
    """Return the templates of all pages."""
    made = Environment(
        loader=PackageLoader("embgeo.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # All printed text has its hidden characters spelled out.
        finalize=lambda value: visible_text(value) if type(value) is str else value,
    )
    made.filters["definition"] = lambda name: "def-" + str(name).replace(".", "-")
    made.filters["number"] = format_optional
    made.filters["chance"] = format_p
    made.filters["brief"] = lambda scalar: format_brief(scalar.value, scalar.quantity.unit)
    made.filters["change"] = lambda change: "not comparable" if change == "undefined" else change
    made.filters["capital"] = start_sentence
    made.filters["whole_options"] = keep_options_whole
    return made


def keep_options_whole(text: str) -> Markup:
    """Get `text` as HTML in which no line breaks at the hyphens of an option (``--rank-order``)."""
    html = escape(visible_text(text))
    return Markup(_OPTION.sub(lambda option: f'<span class="option">{option[0]}</span>', html))


@dataclass(frozen=True, slots=True)
class FigureView:
    """A chart ready to print."""

    name: str
    section: str
    caption: str
    alternative: str
    #: One drawing, or one for each panel of marks, which a narrow window stacks.
    drawings: tuple[Markup, ...]
    #: The shown members, if not all are shown.
    shown: str
    #: The quantity whose definition explains the chart; may be empty.
    quantity: str
    #: Key, title and quantity of each panel that a script draws instead.
    panels: tuple[dict[str, str], ...]
    #: Whether it has several panels.
    wide: bool


class Gallery:
    """The charts of a page; templates take each once, by its name or with its section."""

    def __init__(self, figures: Iterable[FigureView], charts: dict[str, Any]) -> None:
        self.left = {figure.name: figure for figure in figures}
        self.names = frozenset(self.left)
        self.charts = charts

    def take(self, name: str) -> FigureView | None:
        """Return the chart of that name, unless it is missing or was taken before."""
        return self.left.pop(name, None)

    def rest(self, section: str) -> list[FigureView]:
        """Return the charts of a section that no template took by name."""
        names = [name for name, figure in self.left.items() if figure.section == section]
        return [self.left.pop(name) for name in names]

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __or__(self, other: Gallery) -> Gallery:
        figures = (*self.left.values(), *other.left.values())
        return Gallery(figures, self.charts | other.charts)


def draw_charts(subjects: Sequence[ChartItem], page: str, choices: Choices = Choices()) -> Gallery:
    """Draw every chart of this kind of page that the subjects have values for."""
    figures: list[FigureView] = []
    charts: dict[str, Any] = {}
    for chart in CHARTS:
        spec = chart.specify(subjects, choices) if page in chart.pages and chart.section else None
        if spec is None:
            continue
        charts |= render_interactive(spec)
        shown = [spec]
        if not any(is_interactive(p) or p.is_map for p in spec.panels):
            table = find_table(spec)
            charts[spec.name] = {"table": [table.columns, *table.rows]}
            shown = [
                replace(spec, name=f"{spec.name}-{p.key}", panels=(p,), one_row=True)
                for p in spec.panels
            ]
        figures.append(
            FigureView(
                spec.name,
                chart.section,
                spec.caption,
                spec.alternative,
                tuple(Markup(render_svg(one)) for one in shown),
                name_members(spec),
                spec.quantity,
                tuple(
                    {"key": chart_key(spec, p), "title": p.title, "quantity": p.quantity}
                    for p in spec.panels
                    if is_interactive(p)
                ),
                len(spec.panels) > 1,
            )
        )
    return Gallery(figures, charts)


def name_members(spec: Specification) -> str:
    """Name the end of a caption if not every member is shown."""
    if len(spec.members) == spec.total:
        return ""
    names = ", ".join(visible(name) for name in spec.members)
    return f"Shown are {len(spec.members)} of {spec.total}: {names}."


def code(charts: dict[str, Any], payload: Payload | None) -> dict[str, Any]:
    """Get script, style and data: with the figures, the only text that goes into a page unescaped.

    `charts` is what ``static/charts.js`` draws, by name. Without a payload the page has no scripts.
    """
    data = payload and {
        "meta": Markup(script_json(payload.meta)),
        "block": Markup(payload.block),
    }
    return {
        "policy": Markup(policy()),
        "style": Markup(style()),
        "scripts": [Markup(text) for text in scripts()],
        "charts": Markup(script_json(charts)),
        "payload": data,
    }


def script_json(value: Any) -> str:
    """Return JSON that may stand inside a script element: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


#: Own scripts under ``static`` become one script element, one function scope, in this order. Every
#: page has all of them, and all styles: they are a small part of it.
OWN_SCRIPTS = (
    "visible.js",
    "data.js",
    "store.js",
    "colors.js",
    "scatter.js",
    "what_if.js",
    "gestures.js",
    "lasso.js",
    "maps.js",
    "histogram.js",
    "tokens.js",
    "search.js",
    "card.js",
    "board.js",
    "share.js",
    "charts.js",
    "take.js",
    "page.js",
    "compared_data.js",
    "film.js",
    "app.js",
    "compared_app.js",
)
#: They become the one style element.
STYLES = ("vendor/uplot/uPlot.min.css", "report.css", "comparison.css", "training.css")


@cache
def scripts() -> tuple[str, ...]:
    """Return the text of every script element of a page."""
    own = "\n".join(_read(name) for name in OWN_SCRIPTS)
    code = f'(() => {{\n"use strict";\n{own}}})();\n'
    return (*(_read(name) for name in VENDOR_SCRIPTS), code)


@cache
def style() -> str:
    """Return the text of the page's one style element."""
    return "\n".join((theme.stylesheet(), *(_read(name) for name in STYLES)))


@cache
def policy() -> str:
    """Return the content security policy: these scripts, this style, nothing else, from nowhere."""
    allowed = " ".join(_hash(text) for text in scripts())
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {allowed}",
            f"style-src {_hash(style())}",
            "base-uri 'none'",
            "form-action 'none'",
            # No string may become markup, whatever the code does.
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _read(name: str) -> str:
    text = files("embgeo.report").joinpath("static", name).read_text(encoding="utf-8")
    # Inside <script> and <style> nothing can be escaped, so the files must not need it.
    if "</script" in text.lower() or "</style" in text.lower() or "<!--" in text:
        raise ValueError(f"{name} would end its own element")
    return text


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
