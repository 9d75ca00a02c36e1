"""The code and style of every page: which files, in which order, and the hashes that allow them."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from embgeo.charts import theme

#: Third-party scripts, each an element of its own.
VENDOR_SCRIPTS = ("vendor/uplot/uPlot.iife.min.js", "vendor/kdbush/kdbush.min.js")


@dataclass(frozen=True, slots=True)
class Bundle:
    """What one kind of page carries.

    Attributes
    ----------
    own_scripts : tuple of str
        Files under ``static`` that become one script element, one function scope, in this order.
    styles : tuple of str
        Files under ``static`` that become the page's one style element.
    """

    own_scripts: tuple[str, ...]
    styles: tuple[str, ...]


ANALYSIS = Bundle(
    own_scripts=(
        "visible.js",
        "data.js",
        "store.js",
        "colors.js",
        "scatter.js",
        "gestures.js",
        "lasso.js",
        "histogram.js",
        "tokens.js",
        "search.js",
        "charts.js",
        "page.js",
        "app.js",
    ),
    styles=("vendor/uplot/uPlot.min.css", "report.css"),
)

COMPARISON = Bundle(
    own_scripts=(
        *ANALYSIS.own_scripts[:-1],
        "compared_data.js",
        "compared_maps.js",
        "compared_app.js",
    ),
    styles=(*ANALYSIS.styles, "comparison.css"),
)

TRAINING = Bundle(COMPARISON.own_scripts, (*COMPARISON.styles, "training.css"))

#: Every kind of page.
BUNDLES = (ANALYSIS, COMPARISON, TRAINING)


@cache
def scripts(bundle: Bundle = ANALYSIS) -> tuple[str, ...]:
    """The text of every script element of a page."""
    own = "\n".join(_read(name) for name in bundle.own_scripts)
    code = f'(() => {{\n"use strict";\n{own}}})();\n'
    return (*(_read(name) for name in VENDOR_SCRIPTS), code)


@cache
def style(bundle: Bundle = ANALYSIS) -> str:
    """The text of the page's one style element."""
    return "\n".join((theme.stylesheet(), *(_read(name) for name in bundle.styles)))


@cache
def policy(bundle: Bundle = ANALYSIS) -> str:
    """The content security policy: these scripts, this style, nothing else, from nowhere."""
    allowed = " ".join(_hash(text) for text in scripts(bundle))
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {allowed}",
            f"style-src {_hash(style(bundle))}",
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
