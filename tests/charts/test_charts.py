"""Every chart in every output: sound, safe with any label, the same bytes, with its numbers."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from embgeo.charts import CHARTS
from embgeo.charts.items import ChartItem
from embgeo.charts.render import drawing
from embgeo.charts.render.interactive import chart_key, is_interactive, render_interactive
from embgeo.charts.render.paper import RenderedFigure, render_paper
from embgeo.charts.render.svg import render_svg
from embgeo.charts.render.table import render_csv
from embgeo.charts.specification import Choices, HistogramSteps, Line, Specification
from embgeo.core.text import drawable
from embgeo.result.analysis import Analysis
from tests.support.chart_samples import find_chart, specification
from tests.support.sampling import sample_cases

some_charts = pytest.mark.parametrize("name", sample_cases([chart.name for chart in CHARTS], 3))
each_chart = pytest.mark.parametrize("name", [chart.name for chart in CHARTS])


def paper(name: str, form: str = "pdf") -> RenderedFigure:
    """With hostile labels."""
    return render_paper(specification(name, hostile=True), form, 3.25, "embgeo 0")


@cache
def drawn(name: str) -> tuple[str, RenderedFigure]:
    """On a page and on paper, with hostile labels."""
    return render_svg(specification(name, hostile=True)), paper(name)


@some_charts
@pytest.mark.slow
def test_svg_survives_a_server_that_strips_styles(name: str) -> None:
    """Also with names that try to break out of it."""
    spec = specification(name, hostile=True)
    svg, _ = drawn(name)
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        assert element.tag not in ("style", "script", "image", "metadata", "foreignObject")
        assert "style" not in element.attrib
        for attribute, value in element.attrib.items():
            assert not attribute.startswith("on")
            assert "http" not in value
            if attribute == "href":
                assert value.startswith(f"#{name}-")
    ids = re.findall(r' id="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg))
    assert {a or b for a, b in used} == set(ids)
    assert root.get("aria-label") == spec.alternative
    # Mathematics that was not drawn would show its source.
    assert "mathdefault" not in svg
    texts = {"".join(e.itertext()) for e in root.iter() if e.tag == "text"}
    names = {panel.member for panel in spec.panels}
    names |= {line.member for panel in spec.panels for line in panel.lines}
    assert {drawable(name) for name in names} - {""} <= texts


@pytest.mark.parametrize("name", sample_cases([chart.name for chart in CHARTS], 6))
@pytest.mark.slow
def test_equal_charts_give_equal_bytes_under_any_settings(name: str) -> None:
    svg, figure = drawn(name)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "savefig.dpi": 10}):
        assert render_svg(specification(name, hostile=True)) == svg
        assert paper(name).files == figure.files


@each_chart
def test_nothing_is_shown_of_a_subject_without_values(name: str) -> None:
    chart = find_chart(name)
    empty = [ChartItem("a"), ChartItem("a", Analysis(provenance={}), x=1.0)]
    assert all(chart.refuse(item, Choices()) for item in empty)
    assert chart.specify(empty) is None


def table(spec: Specification) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render_csv(spec).decode(), newline="")))


def drawn_numbers(spec: Specification) -> set[float]:
    """Every height that is drawn; means of several rows of the table are not among them."""
    found: list[np.ndarray] = []
    for panel in spec.panels:
        for line in panel.lines:
            if isinstance(line, HistogramSteps):
                found.append(line.heights)
            elif isinstance(line, Line) and line.form not in ("marks", "arrow"):
                found.append(line.y)
        if panel.is_map and panel.cloud is not None:
            # Words are shown among tokens that the map of all tokens has.
            named = [xy for point in panel.cloud.named for xy in (point.x, point.y)]
            found.append(np.array(named) if named else panel.cloud.xy.ravel())
    return {float(v) for v in np.concatenate(found) if np.isfinite(v)}


@each_chart
def test_the_table_holds_what_is_drawn(name: str) -> None:
    spec = specification(name, hostile=True)
    cells = {cell for row in table(spec) for cell in row.values()}
    numbers = set()
    for cell in cells:
        try:
            numbers.add(float(cell))
        except ValueError:
            continue
    drawn = drawn_numbers(spec)
    for reel in spec.film:  # draws each histogram in units of its peak
        for k, densities in enumerate(reel.film.densities):
            drawn -= set(reel.cosines(k).heights.tolist())
            drawn |= set(densities.tolist())
    assert drawn <= numbers


def test_interactive_panels_say_the_same_as_the_figure() -> None:
    for name in [chart.name for chart in CHARTS if chart.pages]:
        spec = specification(name, hostile=True)
        charts = render_interactive(spec)
        json.dumps(charts, allow_nan=False)
        for panel in spec.panels:
            if not is_interactive(panel):
                continue
            chart = charts[chart_key(spec, panel)]
            assert all(len(line["y"]) == len(chart["x"]) for line in chart["lines"])
            assert all(line["label"] and line["color"].startswith("--") for line in chart["lines"])
            steps = [line for line in panel.lines if isinstance(line, HistogramSteps)]
            lines = [line for line in panel.lines if isinstance(line, Line)]
            guides = [line for line in lines if line.style.scale == "guide"][:1]
            lines = [*(line for line in lines if line.form == "line"), *guides]
            for line, values in zip((*steps, *lines), chart["lines"], strict=True):
                y = line.heights if isinstance(line, HistogramSteps) else line.y
                expected = [
                    float(f"{v:.6g}")
                    for v in y
                    if np.isfinite(v) and (v > 0 or not chart["log"][1])
                ]
                assert set(expected) <= {v for v in values["y"] if v is not None}


@pytest.mark.parametrize(
    ("name", "width"),
    sample_cases([(chart.name, width) for chart in CHARTS for width in (1.5, 6.75)], 7),
)
@pytest.mark.slow
def test_files_have_the_width_that_was_asked_for(name: str, width: float) -> None:
    figure = render_paper(specification(name), "svg", width, "embgeo 0")
    assert figure.width == width
    assert figure.height > 1


def test_labels_of_maps_are_text_beside_dots_that_are_a_picture() -> None:
    svg = render_paper(specification("scatter"), "svg", 3.25, "embgeo 0").files["scatter.svg"]
    assert svg.count(b"<!-- axis 1") == svg.count(b"<image ") == 3


@pytest.mark.parametrize("form", ["pdf", "svg", "png"])
@pytest.mark.slow
def test_a_figure_is_drawn_without_a_file(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    """Of a file on a full disk, matplotlib hides what went wrong."""
    monkeypatch.setattr("tempfile.TemporaryDirectory", None)
    figure = render_paper(specification("spectrum"), form, 3.25, "embgeo 0")
    assert list(figure.files) == [f"spectrum.{form}"]


def test_matplotlib_does_not_speak_of_its_cache_when_it_is_imported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def speak(name: str) -> object:
        logging.getLogger(name).warning("created a temporary cache directory")
        return matplotlib

    monkeypatch.setattr(drawing, "import_module", speak)
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "matplotlib")
        drawing.import_matplotlib()
    assert not caplog.records
    drawing.import_matplotlib()
    assert len(caplog.records) == 1


@some_charts
@pytest.mark.slow
def test_a_paper_figure_has_a_width_a_caption_and_no_date(name: str) -> None:
    _, figure = drawn(name)
    assert figure.width == 3.25
    assert figure.height > 1
    assert specification(name, hostile=True).caption
    assert not re.search(rb"CreationDate|dc:date|20\d\d-\d\d-\d\dT", figure.files[f"{name}.pdf"])


@pytest.mark.skipif(shutil.which("pdffonts") is None, reason="pdffonts (poppler) is not installed")
@some_charts
@pytest.mark.slow
def test_fonts_are_embedded_and_none_is_type_3(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(drawn(name)[1].files[f"{name}.pdf"])
    run = subprocess.run(
        ["pdffonts", str(tmp_path / "a.pdf")], capture_output=True, text=True, check=True
    )
    fonts = run.stdout.splitlines()[2:]
    assert fonts
    for line in fonts:
        assert "STIX" in line
        assert "Type 3" not in line
        assert re.search(r" yes yes (yes|no) ", line), line


@some_charts
@pytest.mark.slow
def test_no_file_holds_a_type_3_font(name: str) -> None:
    content = drawn(name)[1].files[f"{name}.pdf"]
    assert b"/Subtype /Type0" in content
    assert b"/Type3" not in content


@pytest.mark.slow
def test_same_bytes_in_another_process() -> None:
    """Subsets of fonts have names made of hashes, which may differ between processes."""
    code = (
        "import hashlib\n"
        "from tests.charts.test_charts import paper\n"
        "for form in ('pdf', 'svg'):\n"
        "    print(hashlib.sha256(paper('spectrum', form).files[f'spectrum.{form}']).hexdigest())\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
        env={"PYTHONHASHSEED": "1", "PATH": "", "PYTHONPATH": "."},
    ).stdout.split()  # fmt: skip
    files = [paper("spectrum", form).files[f"spectrum.{form}"] for form in ("pdf", "svg")]
    assert other == [hashlib.sha256(content).hexdigest() for content in files]
