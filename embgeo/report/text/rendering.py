"""Results as lines of text, in one of several formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from embgeo.comparison.comparison import Comparison
from embgeo.report.text import analysis, comparison, markdown
from embgeo.result.analysis import Analysis


def render(result: Analysis | Comparison, form: Literal["text", "markdown"]) -> Iterator[str]:
    if isinstance(result, Comparison):
        return (comparison.render if form == "text" else markdown.render_comparison)(result)
    return (analysis.render if form == "text" else markdown.render_analysis)(result)
