"""What pages and terminal say of the samples, recorded in words.txt, to be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embgeo.core.matrix import FinalNorm, Matrix
from embgeo.measure.analyze import analyze
from embgeo.report import analysis, comparison, study
from embgeo.report.comparison_payload import build as build_comparison
from embgeo.report.payload import build
from embgeo.report.text import analysis as analysis_text
from embgeo.report.text import comparison as comparison_text
from embgeo.report.text import markdown
from embgeo.report.text import study as study_text
from tests.charts.test_drawings import show
from tests.support.outlined import outline_figures
from tests.support.record import check_record
from tests.support.sample_analysis import sample
from tests.support.sample_comparison import sample_comparison
from tests.support.sample_runs import embeddings, sample_training

RECORD = Path(__file__).with_name("words.txt")
BLOCKS = {
    "p", "li", "tr", "h1", "h2", "h3", "caption", "summary", "section", "figcaption", "button",
    "label", "details", "div",
}  # fmt: skip
#: Rows of a table that are recorded, with its head.
ROWS = 3
CUT = {"script", "style", "svg", "dl", "nav"}


class Lines(HTMLParser):
    """The text of a page by its blocks, without definitions, with few rows of each table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.lines: list[list[str]] = [[]]
        self.cut = self.row = 0
        self.elements: Counter[str] = Counter()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        self.cut += tag in CUT
        if not self.cut:
            self.elements[".".join((tag, *(held.get("class") or "").split()))] += 1
        if tag in BLOCKS:
            self.lines.append([f"# {held['id']}"] if tag == "section" and "id" in held else [])
        self.row = 0 if tag == "table" else self.row + (tag == "tr")
        if tag in ("td", "th"):
            self.lines[-1].append("|")

    def handle_endtag(self, tag: str) -> None:
        self.cut -= tag in CUT
        self.row = 0 if tag == "table" else self.row

    def handle_data(self, data: str) -> None:
        if not self.cut and self.row <= 1 + ROWS:
            self.lines[-1] += data.split()


def read_page(html: str) -> Iterator[str]:
    parsed = Lines(html)
    yield from filter(None, (" ".join(line).strip("| ") for line in parsed.lines))
    yield ", ".join(f"{times} {name}" for name, times in sorted(parsed.elements.items()))


def read_payload(payload: Any) -> Iterator[str]:
    for key, value in (payload.meta if payload else {}).items():
        yield f"{key}: {flatten(value)}"


def flatten(value: Any) -> str:
    if isinstance(value, dict):
        shown = list(value.items())[:4]
        return f"{len(value)} ({', '.join(f'{key} {flatten(one)}' for key, one in shown)})"
    if isinstance(value, list) and value and isinstance(value[0], dict | list):
        return f"{len(value)} of {flatten(value[-1])}"
    return show(value)


def of_analysis(**options: Any) -> Iterator[Iterable[str]]:
    found = sample(**options)
    yield analysis_text.render(found)
    yield markdown.render(found, "markdown")
    yield read_payload(build(found))
    with outline_figures():
        yield read_page(analysis.render(found))


def of_hidden(shift: float | None, norm: FinalNorm | None = None) -> Iterator[Iterable[str]]:
    g = np.random.default_rng(0)
    rows = g.standard_normal((40, 5))
    hidden = None if shift is None else Matrix(g.standard_normal((90, 5)) + shift)
    matrix = Matrix(rows, hidden=hidden, final_norm=norm)
    with outline_figures():
        yield read_page(analysis.render(analyze(matrix, sections=("hidden",), reference=False)))


def of_comparison(**options: Any) -> Iterator[Iterable[str]]:
    found = sample_comparison(**options)
    yield comparison_text.render(found)
    yield markdown.render(found, "markdown")
    yield read_payload(build_comparison(found))
    with outline_figures():
        yield read_page(comparison.render(found))


def of_study(**options: Any) -> Iterator[Iterable[str]]:
    found = sample_training(**options)
    yield study_text.render(found)
    with outline_figures():
        yield read_page(study.render(found, embeddings()))


FINAL = FinalNorm("ln_f", np.ones(5), np.ones(5))
#: By name: its kind, of which the first is recorded in full, and what reads it.
CASES: dict[str, Callable[[], Iterator[Iterable[str]]]] = {
    "an analysis": of_analysis,
    "an analysis, isotropic": partial(of_analysis, shape="isotropic", counts=False, untied=False),
    "an analysis, hidden states inside": partial(of_hidden, 0.0),
    "an analysis, hidden states outside": partial(of_hidden, 2.0),
    "an analysis, a final norm": partial(
        of_hidden, None, FinalNorm("ln_f", np.ones(5), np.ones(5))
    ),
    "a comparison": of_comparison,
    "a comparison of four": partial(of_comparison, members=4),
    "a comparison as a track": partial(of_comparison, members=6, track=True),
    "a comparison without matrices": partial(of_comparison, matrices=False),
    "a study": partial(of_study, methods=("mle", "cosreg", "untied", "al")),
    "a study, one seed": partial(of_study, seeds=1),
}


@pytest.mark.parametrize("name", CASES)
def test_the_words_are_those_that_were_read(name: str) -> None:
    """Of a kind after the first, what the first one does not say."""
    first = next(
        one for one in CASES if one.split(",")[0] == " ".join(name.split(",")[0].split()[:2])
    )
    usual = set() if first == name else {line for part in CASES[first]() for line in part}
    lines = [line for part in CASES[name]() for line in part if line not in usual]
    check_record(RECORD, name, lines, apart=0.005)
