"""Results in notebooks, as DataFrames, in the browser."""

from __future__ import annotations

import html
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pandas as pd
import pytest

import embgeo
from embgeo.comparison.pair import Difference
from embgeo.report import notebook
from embgeo.workflows.analyze import Analysis
from tests.support.refusals import refusal
from tests.support.sample_analysis import HOSTILE, sample
from tests.support.sample_comparison import sample_comparison

#: Pages are shown here, not looked at.
pytestmark = pytest.mark.usefixtures("outlines")


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return Analysis.of(sample(hostile=True))


# --- The small table --------------------------------------------------------------------------


class Tags(HTMLParser):
    """Which tags and attributes a page has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_the_table_is_small_and_plain(analysis: Analysis) -> None:
    page = analysis._repr_html_()
    assert len(page) < 4_000
    assert "Mean cosine" in page
    tags = Tags(page)
    plain = {"p", "b", "table", "caption", "thead", "tbody", "tr", "th", "td", "code"}
    assert tags.found <= plain
    assert tags.attributes == set()


@pytest.mark.slow
def test_names_in_the_table_are_text() -> None:
    for text in HOSTILE:
        facts = {**sample().provenance, "file": text, "tensor": text}
        named = Analysis.of(replace(sample(), provenance=facts))
        page = named._repr_html_()
        assert Tags(page).found == Tags(Analysis.of(sample())._repr_html_()).found
        page.encode("utf-8")


def test_the_table_of_an_analysis_with_a_single_section() -> None:
    found = embgeo.analyze(np.eye(5), sections=["tokens"], reference=False)
    assert "5 × 5" in found._repr_html_()


def test_what_is_loaded_has_a_face_too(analysis: Analysis, tmp_path: Path) -> None:
    analysis.save(tmp_path)
    again = embgeo.load_analysis(tmp_path)
    assert isinstance(again, embgeo.Analysis)
    assert again._repr_html_() == analysis._repr_html_()
    assert isinstance(embgeo.load_analysis(str(tmp_path)), embgeo.Analysis)


# --- DataFrames -------------------------------------------------------------------------------


def test_single_numbers_as_a_frame(analysis: Analysis) -> None:
    frame = analysis.to_pandas()
    assert list(frame.index) == [s.name for s in analysis.scalars]
    assert frame.loc["cosine.mean", "value"] == analysis["cosine.mean"].value
    assert frame["value"].dtype == np.float64
    errors = analysis["cosine.mean"].errors
    assert errors == {"population": frame.loc["cosine.mean", "population_error"]}
    assert np.isnan(frame.loc["cosine.mean", "standard_error"])
    undefined = [s.name for s in analysis.scalars if s.value is None]
    assert list(frame.index[frame["value"].isna()]) == undefined


def test_rows_as_a_frame(analysis: Analysis) -> None:
    frame = analysis.to_pandas(rows=True)
    assert list(frame.index) == analysis.rows.tolist()
    assert list(frame["token"]) == list(analysis.tokens or ())
    assert {"count", "popular", "tokens.norm", "projection.svd2.x"} <= set(frame.columns)
    assert frame["projection.svd2.y"].tolist() == analysis["projection.svd2"].xy[:, 1].tolist()


def test_rows_of_which_little_is_known() -> None:
    found = embgeo.analyze(np.eye(4), sections=["cosine"], reference=False)
    frame = found.to_pandas(rows=True)
    assert isinstance(frame, pd.DataFrame)
    assert "token" not in frame.columns
    assert len(frame) == 4


def test_a_comparison_as_a_frame() -> None:
    found = sample_comparison(members=3)
    frame = found.to_pandas()
    assert set(frame.index) == {d.name for d in found.differences} | {
        s.name for pair in found.pairs for s in pair.scalars
    }
    first = frame[frame["member"] == found.members[1].name].loc["cosine.mean"]
    difference = found["cosine.mean"]
    assert isinstance(difference, Difference)
    assert (first["value"], first["difference"]) == (difference.value, difference.difference)
    chance = frame[frame["member"] == found.members[2].name].loc["compare.cka", "baseline"]
    pair = found.pair(0, 2)
    assert pair is not None
    assert chance == pair["compare.cka"].reference


def test_without_pandas_the_way_out_is_said(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with refusal():
        analysis.to_pandas()


# --- The report -------------------------------------------------------------------------------


@pytest.mark.slow
def test_show_opens_the_report_in_the_browser(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(notebook.webbrowser, "open", lambda url: opened.append(url) or True)
    monkeypatch.setattr(notebook.tempfile, "mkdtemp", lambda **_: str(tmp_path))
    analysis.show()
    (url,) = opened
    path = Path(unquote(urlparse(url).path))
    assert path.read_text("utf-8").lower().startswith("<!doctype html")


@pytest.mark.slow
def test_show_says_where_the_report_is_if_there_is_no_browser(
    analysis: Analysis,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(notebook.webbrowser, "open", lambda _: False)
    monkeypatch.setattr(notebook.tempfile, "mkdtemp", lambda **_: str(tmp_path))
    analysis.show()
    assert capsys.readouterr().out == f"report: {tmp_path / 'report.html'}\n"


def ipython(kernel: object, shown: list[Any]) -> dict[str, ModuleType]:
    """IPython as far as it is used."""
    package, display = ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = lambda: SimpleNamespace(kernel=kernel)  # type: ignore[attr-defined]
    display.HTML = lambda page: page  # type: ignore[attr-defined]
    display.display = shown.append  # type: ignore[attr-defined]
    return {"IPython": package, "IPython.display": display}


@pytest.mark.slow
def test_show_in_a_notebook_is_a_frame_below_the_cell(
    analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []
    for name, module in ipython(object(), shown).items():
        monkeypatch.setitem(sys.modules, name, module)
    analysis.show()
    (frame,) = shown
    assert Tags(frame).found == {"iframe"}
    assert 'sandbox="allow-scripts"' in frame
    inner = re.search(r'srcdoc="([^"]*)"', frame)
    assert inner is not None
    assert html.unescape(inner[1]).lower().startswith("<!doctype html")


def test_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not notebook.is_notebook()
    for name, module in ipython(None, []).items():
        monkeypatch.setitem(sys.modules, name, module)
    assert not notebook.is_notebook()
