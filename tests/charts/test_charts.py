"""Every chart in every output: sound, safe with any label, the same bytes, with its numbers."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from embgeo.charts import CHARTS
from embgeo.charts.render.interactive import chart_key, is_interactive, render_interactive
from embgeo.charts.render.paper import render_paper
from embgeo.charts.render.svg import render_svg
from embgeo.charts.render.table import render_csv
from embgeo.charts.specification import Choices, HistogramSteps, Line, Specification
from embgeo.charts.subject import Subject
from embgeo.core.visible import drawable
from embgeo.result.analysis import Analysis
from tests.support.chart_samples import chart_named, specification

each_chart = pytest.mark.parametrize("name", [chart.name for chart in CHARTS])


def pdf(name: str, form: str = "pdf", *, hostile: bool = False) -> bytes:
    spec = specification(name, hostile=hostile)
    return render_paper(spec, form, 3.25, "embgeo 0").files[f"{name}.{form}"]


@each_chart
def test_svg_survives_a_server_that_strips_styles(name: str) -> None:
    """Also with names that try to break out of it."""
    spec = specification(name, hostile=True)
    svg = render_svg(spec)
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


@each_chart
def test_equal_charts_give_equal_bytes_under_any_settings(name: str) -> None:
    first = render_svg(specification(name)), pdf(name)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": True, "savefig.dpi": 10}):
        assert (render_svg(specification(name)), pdf(name)) == first
    assert not re.search(rb"CreationDate|dc:date|20\d\d-\d\d-\d\dT", first[1])


@each_chart
def test_nothing_is_shown_of_a_subject_without_values(name: str) -> None:
    chart = chart_named(name)
    empty = [Subject("a"), Subject("a", Analysis(provenance={}), x=1.0)]
    assert all(chart.refuse(subject, Choices()) for subject in empty)
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
            elif isinstance(line, Line) and line.form != "marks":
                found.append(line.y)
        if panel.is_map and panel.cloud is not None:
            found.append(panel.cloud.xy.ravel())
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
    assert drawn_numbers(spec) <= numbers


@each_chart
def test_interactive_panels_say_the_same_as_the_figure(name: str) -> None:
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
        lines = [line for line in panel.lines if isinstance(line, Line) and line.form == "line"]
        for line, values in zip((*steps, *lines), chart["lines"], strict=True):
            y = line.heights if isinstance(line, HistogramSteps) else line.y
            expected = [
                float(f"{v:.6g}") for v in y if np.isfinite(v) and (v > 0 or not chart["log"][1])
            ]
            assert set(expected) <= {v for v in values["y"] if v is not None}


@each_chart
@pytest.mark.parametrize("width", [1.5, 6.75])
def test_files_have_the_width_that_was_asked_for(name: str, width: float) -> None:
    drawn = render_paper(specification(name), "svg", width, "embgeo 0")
    assert drawn.width == width
    assert drawn.height > 1
    assert specification(name).caption


@pytest.fixture(scope="module")
def every_pdf() -> dict[str, bytes]:
    """With hostile labels."""
    return {chart.name: pdf(chart.name, hostile=True) for chart in CHARTS}


@pytest.mark.skipif(shutil.which("pdffonts") is None, reason="pdffonts (poppler) is not installed")
@each_chart
def test_fonts_are_embedded_and_none_is_type_3(
    name: str, every_pdf: dict[str, bytes], tmp_path: Path
) -> None:
    (tmp_path / "a.pdf").write_bytes(every_pdf[name])
    run = subprocess.run(
        ["pdffonts", str(tmp_path / "a.pdf")], capture_output=True, text=True, check=True
    )
    fonts = run.stdout.splitlines()[2:]
    assert fonts
    for line in fonts:
        assert "STIX" in line
        assert "Type 3" not in line
        assert re.search(r" yes yes (yes|no) ", line), line


def test_no_file_holds_a_type_3_font(every_pdf: dict[str, bytes]) -> None:
    for content in every_pdf.values():
        assert b"/Subtype /Type0" in content
        assert b"/Type3" not in content


def test_same_bytes_in_another_process() -> None:
    """Subsets of fonts have names made of hashes, which may differ between processes."""
    code = (
        "import hashlib\n"
        "from tests.charts.test_charts import pdf\n"
        "for name in ('scatter', 'spectrum'):\n"
        "    for form in ('pdf', 'svg'):\n"
        "        print(hashlib.sha256(pdf(name, form)).hexdigest())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": "."},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
