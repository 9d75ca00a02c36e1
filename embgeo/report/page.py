"""What every kind of page is made with: templates that escape all text, and the code beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from embgeo.core.values import format_number
from embgeo.core.visible import visible_text
from embgeo.report import assets
from embgeo.report.charts import script_json
from embgeo.report.tables import capital

Render = Callable[[Any, Any], str | None]


@cache
def environment() -> Environment:
    """The templates of all pages."""
    made = Environment(
        loader=PackageLoader("embgeo.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Whatever a template prints: what is text has its hidden characters spelled out.
        finalize=lambda value: visible_text(value) if type(value) is str else value,
    )
    made.filters["definition"] = lambda name: "def-" + str(name).replace(".", "-")
    made.filters["number"] = format_number
    made.filters["capital"] = capital
    return made


def drawings(subject: Any, figures: Iterable[Any], render: Render) -> dict[str, dict[str, Any]]:
    """The figures that there is something to draw for, by name.

    Parameters
    ----------
    subject : Analysis, Comparison or Training
    figures : iterable
        Of this kind of page: each has a name, a caption and an alternative.
    render : callable
        ``render(subject, figure)`` gives an ``<svg>`` element, or None.
    """
    drawn = {}
    for figure in figures:
        svg = render(subject, figure)
        if svg is not None:
            drawn[figure.name] = {
                "svg": Markup(svg),
                "caption": figure.caption,
                "alternative": figure.alternative,
            }
    return drawn


def code(
    bundle: assets.Bundle, charts: dict[str, Any], meta: dict[str, Any] | None, block: str
) -> dict[str, Any]:
    """Script, style and data: with the figures, the only text that goes into a page unescaped.

    Parameters
    ----------
    bundle : Bundle
        The scripts and styles of this kind of page.
    charts : dict
        What ``static/charts.js`` draws, by name.
    meta : dict or None
        How `block` is read; None makes a page without scripts.
    block : str
        base64, see :mod:`embgeo.report.block`.
    """
    return {
        "policy": Markup(assets.policy(bundle)),
        "style": Markup(assets.style(bundle)),
        "scripts": [Markup(text) for text in assets.scripts(bundle)],
        "charts": Markup(script_json(charts)),
        "payload": meta and {"meta": Markup(script_json(meta)), "block": Markup(block)},
    }
