"""The page of methods in a real browser: curves, embeddings below them, a phone, scripts off."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from embgeo.charts.items import method_items
from embgeo.charts.training import page_names
from embgeo.report.study import render
from tests.report.test_training import METHODS, few_figures
from tests.support.browser import (
    NEEDS_BROWSER,
    OUTSIDE,
    complaints,
    open_page,
    resize_window,
    without_scripts,
)
from tests.support.sample_runs import embeddings, sample_training

pytestmark = [pytest.mark.browser, NEEDS_BROWSER]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "page.html"
    training = sample_training(methods=METHODS, hostile=True)
    with few_figures():
        page = render(training, embeddings(hostile=True))
    path.write_text(page, encoding="utf-8")
    return path


def test_curves_and_embeddings_come_alive_in_silence(driver: Any, file: Path) -> None:
    open_page(driver, file)
    plots = driver.execute_script(
        "return document.querySelectorAll('#training .chart canvas').length"
    )
    assert plots == len(page_names(method_items(sample_training(methods=METHODS))))
    assert driver.execute_script("return document.querySelectorAll('.map canvas').length") == 3
    assert driver.execute_script("return window.pwned") is None
    assert complaints(driver) == []


def test_labels_of_an_axis_tell_its_ticks_apart(driver: Any, file: Path) -> None:
    open_page(driver, file)
    folder = files("embgeo.report") / "static"
    code = "".join((folder / name).read_text("utf-8") for name in ("data.js", "charts.js"))
    for values, shown in (
        ([15.92, 15.94, 15.96], ["15.92", "15.94", "15.96"]),
        ([15.95025, 15.9505, 15.95075], ["15.95025", "15.9505", "15.95075"]),
        ([-0.0005, 0, 0.0005], ["−0.0005", "0", "0.0005"]),
        ([100.0002, 100.0003], ["100.0002", "100.0003"]),
        ([None, 0.25], ["", "0.25"]),
        ([], []),
    ):
        found = driver.execute_script(f"{code}return tickTexts(...arguments)", values)
        assert found == shown
    # Decades alone, of many every n-th; within a decade and a half 2 and 5, too.
    for ends, ticks in (
        ((1, 10), ["1", "2", "5", "10"]),
        ((1e-6, 1e-3), ["10⁻⁶", "10⁻⁵", "10⁻⁴", "0.001"]),
        ((1e-13, 1), ["10⁻¹³", "10⁻¹¹", "10⁻⁹", "10⁻⁷", "10⁻⁵", "0.001", "0.1"]),
        ((2e5, 9e5), ["2·10⁵", "5·10⁵"]),
    ):
        call = f"{code}return decades(...arguments).map(writePower)"
        assert driver.execute_script(call, *ends) == ticks


#: The left ends of charts that stand side by side or below each other, and what of them scrolls.
STACKED = """
const charts = [...document.querySelectorAll("#balance svg.figure, #training .chart")];
return [new Set(charts.map((c) => Math.round(c.getBoundingClientRect().left))).size,
        document.querySelectorAll("#balance .scroll, #training .scroll").length];
"""


def test_on_a_phone_panels_stack_and_the_page_scrolls_in_one_direction(
    driver: Any, file: Path
) -> None:
    open_page(driver, file)
    side_by_side, _ = driver.execute_script(STACKED)
    with resize_window(driver, 390, 844):
        width = driver.execute_script("return document.documentElement.scrollWidth")
        stacked = driver.execute_script(STACKED)
    assert side_by_side > 1
    assert stacked[0] <= 2  # drawings and charts
    assert stacked[1] == 0
    assert width <= 390


def test_each_panel_of_marks_is_a_drawing_with_its_numbers(driver: Any, file: Path) -> None:
    open_page(driver, file)
    drawings, buttons, line = driver.execute_script(
        """
        navigator.clipboard.writeText = async (text) => { window.copied = text; };
        const figure = document.querySelector("#balance figure");
        const buttons = [...figure.querySelectorAll(".take button")];
        buttons[0].click();
        const drawings = figure.querySelectorAll("svg.figure").length;
        return [drawings, buttons.map((b) => b.textContent), copied.split("\\r\\n")[0]];
        """
    )
    assert buttons == ["Copy", "CSV", *(f"SVG {i + 1}" for i in range(drawings))]
    assert drawings > 1
    assert line.startswith('"method","name","seed"')


#: Parts of the numbers of methods and of claims that stick out of their section.
CUT = """
for (const part of document.querySelectorAll("details")) part.open = true;
return ["#all-numbers", "#claims"].flatMap((id) => {
  const right = document.querySelector(id).getBoundingClientRect().right + 1;
  return [...document.querySelectorAll(`${id} *`)]
    .filter((e) => e.getBoundingClientRect().right > right).map((e) => `${id} ${e.outerHTML}`);
});
"""


def test_numbers_of_methods_are_cut_at_no_width(driver: Any, file: Path) -> None:
    open_page(driver, file)
    for width in (1440, 1261, 1000, 700, 390):
        with resize_window(driver, width, 844):
            assert driver.execute_script(CUT) == [], width


def test_paper_cuts_nothing_off(driver: Any, file: Path) -> None:
    open_page(driver, file)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        with resize_window(driver, 688, 1017):
            assert driver.execute_script(OUTSIDE) == []
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_everything_is_there_with_scripts_off(driver: Any, file: Path) -> None:
    with without_scripts(driver):
        driver.get(file.as_uri())
        shown = driver.find_element("id", "training").find_elements("css selector", "svg.figure")
        assert [figure.is_displayed() for figure in shown] == [True]
        table = driver.find_element("css selector", ".methods-table")
        assert "97.1" in table.text
