"""What the report says of hidden states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

import embgeo
from embgeo.core.matrix import FinalNorm, Matrix
from embgeo.core.values import Scalar
from embgeo.report.analysis import render
from tests.report.test_page import Page

EVIL = "<img src=x onerror=alert(1)>"


def analysis(shift: float | None, norm: FinalNorm | None = None) -> embgeo.Analysis:
    g = np.random.default_rng(0)
    rows = g.standard_normal((40, 5))
    tokens = ("<s>", "[unused1]", EVIL, *(f"t{i}" for i in range(37)))
    hidden = None if shift is None else Matrix(g.standard_normal((90, 5)) + shift)
    matrix = Matrix(rows, tokens=tokens, hidden=hidden, final_norm=norm)
    return embgeo.analyze(matrix, sections=("hidden", "tokens"), reference=False)


@pytest.fixture(autouse=True)
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embgeo.report.page.CHARTS", ())


def section(page: Page, title: str) -> str:
    """The text from one heading to the next."""
    after = page.text.rsplit(f"{title}\n", 1)[1]  # behind the list of sections
    following = page.headings[page.headings.index(title) + 1]
    return after.split(f"{following}\n", 1)[0]


@pytest.mark.parametrize(
    ("shift", "said"),
    [
        (2.0, "The origin lies outside the convex hull of the 90 hidden states"),
        (0.0, "The origin lies inside the convex hull of the 90 hidden states"),
    ],
)
def test_the_side_is_said_in_one_sentence(shift: float, said: str) -> None:
    page = Page(render(analysis(shift)))
    assert said in section(page, "Hidden states")
    assert "#hidden" in page.links
    assert all(link[1:] in page.ids for link in page.links)


def test_an_undecided_finding_is_said_to_be() -> None:
    found = analysis(0.0)
    scalars = [
        Scalar(s.quantity, None, undefined="undecided: between 0 and 1")
        if s.name == "hidden.hull_distance"
        else s
        for s in found.scalars
    ]
    page = Page(render(replace(found, scalars=tuple(scalars))))
    assert "is not settled: undecided: between 0 and 1." in section(page, "Hidden states")


def test_without_hidden_states_there_is_no_section() -> None:
    page = Page(render(analysis(None)))
    assert "Hidden states" not in page.headings
    assert "#hidden" not in page.links
    assert "Hidden: no hidden states (embgeo analyze --hidden FILE)." in page.text


def test_the_layernorm_alone_makes_a_section_without_a_sentence() -> None:
    ones: npt.NDArray[np.float64] = np.ones(5)
    page = Page(render(analysis(None, FinalNorm("ln_f", ones, ones))))
    text = section(page, "Hidden states")
    assert "LayerNorm condition" in text
    assert "The origin lies" not in text


def test_tokens_in_tables_are_text() -> None:
    html = render(analysis(None))
    page = Page(html)
    assert EVIL not in html
    assert page.tags["img"] == 0
    assert EVIL in section(page, "Tokens at the extremes")
