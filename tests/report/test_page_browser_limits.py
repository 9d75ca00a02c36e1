"""The page in a real browser: policy, untrusted text, size, no scripts, phone and paper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embgeo.core.text import visible
from embgeo.report.analysis import render
from tests.support.browser import (
    NEEDS_BROWSER,
    OUTSIDE,
    complaints,
    frame,
    open_page,
    resize_window,
    search,
    without_scripts,
)
from tests.support.outlined import outline_figures
from tests.support.sample_analysis import HOSTILE, sample
from tests.support.sampling import sample_cases

pytestmark = [pytest.mark.browser, NEEDS_BROWSER]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages")
    (path / "page.html").write_text(render(sample(n=2000, hostile=True)), encoding="utf-8")
    return path


# --- safety ---------------------------------------------------------------------------------


def test_a_script_that_is_not_ours_does_not_run(driver: Any, folder: Path, tmp_path: Path) -> None:
    page = (folder / "page.html").read_text(encoding="utf-8")
    (tmp_path / "changed.html").write_text(
        page.replace("<body>", "<body onload='window.ran = 1'><script>window.ran = 2</script>"),
        encoding="utf-8",
    )
    open_page(driver, tmp_path / "changed.html")
    assert driver.execute_script("return window.ran") is None
    said = complaints(driver)
    assert len(said) == 2
    assert all("violates the following Content Security Policy directive" in line for line in said)


def test_text_cannot_become_markup_style_or_a_request(driver: Any, folder: Path) -> None:
    open_page(driver, folder / "page.html")
    assert complaints(driver) == []
    markup = driver.execute_script(
        "try { document.body.insertAdjacentHTML('beforeend', '<p>') } catch (e) { return e.name }"
    )
    color = driver.execute_script(
        "const p = document.createElement('p'); p.setAttribute('style', 'color: red');"
        "document.body.append(p); return getComputedStyle(p).color"
    )
    loaded = driver.execute_async_script(
        "fetch('data:text/plain,x').then(() => arguments[0](true), () => arguments[0](false))"
    )
    assert markup == "TypeError"
    assert color != "rgb(255, 0, 0)"
    assert loaded is False
    assert len(complaints(driver)) >= 3


def test_visible_agrees_with_its_twin(page: Any) -> None:
    odd = [*HOSTILE, *(chr(c) for c in range(0x20, 0x3000, 7)), "a\ufe0f", "\U000e0001x",
           " \u00a0 ", "x" * 81, "x" * 80, "😀" * 90, "\u0301", "a\u0301 "]  # fmt: skip
    strings = [s for s in odd if s.isprintable() or len(s) < 3 or s in HOSTILE]
    # Lone surrogates do not pass the wire: they go as numbers.
    units = [list(np.frombuffer(s.encode("utf-16-le", "surrogatepass"), "<u2")) for s in strings]
    shown = page.execute_script(
        "return JSON.stringify(JSON.parse(arguments[0]).map("
        "u => embgeo.data.visible(String.fromCharCode(...u))))",
        json.dumps([[int(v) for v in u] for u in units]),
    )
    assert json.loads(shown) == [visible(s) for s in strings]


# --- size, scripts off, phone, paper ----------------------------------------------------------


@pytest.mark.parametrize("n", sample_cases([10_000, 260_000], 2))
def test_many_tokens(
    driver: Any, tmp_path: Path, n: int, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "many.html"
    analysis = sample(n=n, d=8, untied=False)
    with outline_figures():
        target.write_text(render(analysis), encoding="utf-8")
    open_page(driver, target)
    assert driver.execute_script("return embgeo.data.rows") == n
    assert driver.execute_script("return embgeo.data.token(arguments[0])", n - 1) == f"tok{n - 1}"
    times = driver.execute_async_script(
        """
        const done = arguments[0];
        const {map} = embgeo;
        map.buildIndex();
        const drawing = [];
        let left = 30;
        const step = () => {
          const start = performance.now();
          map.pan(left % 2 ? 7 : -7, 3);
          cancelAnimationFrame(map.pending);
          map.draw();
          drawing.push(performance.now() - start);
          if (--left) requestAnimationFrame(step); else done(drawing);
        };
        requestAnimationFrame(step);
        """
    )
    assert driver.execute_script("return embgeo.map.frames") >= 30
    driver.execute_script("embgeo.map.fit()")
    frame(driver)
    drawn = driver.execute_script(
        "const back = embgeo.map.pixels[0]; return embgeo.map.pixels.some(p => p !== back)"
    )
    assert drawn
    found = driver.execute_script(
        "const {map, data} = embgeo, i = data.rows - 1;"
        "map.center = [map.view.x[i], map.view.y[i]]; map.zoom(1e4);"
        "return map.nearest(map.cssWidth / 2, map.cssHeight / 2)"
    )
    assert found == n - 1
    search(driver, str(n - 1))
    assert driver.execute_script("return embgeo.store.found.reduce((a, b) => a + b)") == 1
    assert complaints(driver) == []
    with capsys.disabled():
        megabytes = target.stat().st_size / 1e6
        print(f"\n{n:,} tokens: {megabytes:.2f} MB, {np.median(times):.1f} ms a frame (median)")


def test_without_scripts_the_page_is_complete(driver: Any, folder: Path) -> None:
    from selenium.webdriver.common.by import By

    with without_scripts(driver):
        driver.get((folder / "page.html").as_uri())
        figures = driver.find_elements(By.CSS_SELECTOR, "svg.figure")
        folded = driver.find_elements(By.CSS_SELECTOR, "details svg.figure")
        assert (len(figures), len(folded)) == (10, 2)
        assert [f.is_displayed() for f in figures] == [f not in folded for f in figures]
        for selector in ("#scatter", "#search", "#token-table", ".chart"):
            assert not driver.find_element(By.CSS_SELECTOR, selector).is_displayed()
        assert driver.find_element(By.CSS_SELECTOR, ".headline").text.startswith("Narrow cone")
        assert complaints(driver) == []


def test_the_contents_are_open_beside_wide_pages_and_folded_on_a_phone(
    driver: Any, folder: Path
) -> None:
    seen = (
        "return ['nav', 'summary'].map((part) => "
        "document.querySelector(`.contents ${part}`).checkVisibility())"
    )
    for width, shown in ((1300, [True, False]), (390, [False, True])):
        with resize_window(driver, width, 844):
            open_page(driver, folder / "page.html")
            assert driver.execute_script(seen) == shown


def test_the_tables_of_extremes_fit_beside_each_other(page: Any) -> None:
    cut = page.execute_script(
        "return [...document.querySelectorAll('.extremes .scroll')]"
        ".map(e => e.scrollWidth - e.clientWidth)"
    )
    assert cut == [0, 0, 0]


def test_phone_has_no_sideways_scroll(driver: Any, folder: Path) -> None:
    with resize_window(driver, 390, 844):
        open_page(driver, folder / "page.html")
        wide, inner = driver.execute_script(
            "return [document.scrollingElement.scrollWidth, innerWidth]"
        )
        assert wide <= inner == 390
        assert driver.execute_script("return embgeo.map.cssWidth") > 300
        # A number at the edge of the map is left out: cut, it would lose its sign.
        inside = driver.execute_script(
            """
            const {map} = embgeo;
            const across = "text[text-anchor=middle]";
            const ticks = () => [...map.marks.ticks.querySelectorAll(across)]
              .map((tick) => Number(tick.getAttribute("x")));
            map.pan(3 - Math.min(...ticks()), 0);
            map.flush();
            return ticks().every((x) => x > 16 && x < map.cssWidth - 16);
            """
        )
        assert inside


def test_paper_shows_the_figures_and_no_controls(page: Any, folder: Path) -> None:
    try:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        shown = page.execute_script(
            "const seen = (s) => [...document.querySelectorAll(s)]"
            ".filter(e => e.getClientRects().length > 0).length;"
            "return [seen('svg.figure'), seen('button, select, input, canvas'), seen('.contents')]"
        )
        folded = len(page.find_elements("css selector", "details svg.figure"))
        drawn = (folder / "page.html").read_text("utf-8").count(' class="figure"')
        assert shown == [drawn - folded, 0, 0]
        # A4 less its margins at 96 pixels an inch: nothing is cut at the edge, no chart overlaps.
        with resize_window(page, 688, 1017):
            assert page.execute_script(OUTSIDE) == []
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
