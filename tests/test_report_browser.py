"""The page in a real browser: hover, search, lasso, brush, keyboard, policy, size, no scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embgeo.report.html import render
from embgeo.report.visible import visible
from tests.browser import NEEDS_BROWSER, chromium, complaints, frame, open_page
from tests.sample_analysis import HOSTILE, sample

pytestmark = [pytest.mark.browser, NEEDS_BROWSER]

N = 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages")
    (path / "page.html").write_text(render(sample(n=N, hostile=True)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(driver: Any, folder: Path) -> Iterator[Any]:
    """The page, fresh; at the end of every test the console must have stayed silent."""
    open_page(driver, folder / "page.html")
    yield driver
    assert complaints(driver) == []


def text(page: Any, selector: str) -> str:
    out: str = page.execute_script(
        "return document.querySelector(arguments[0]).textContent", selector
    )
    return out


def selected(page: Any) -> list[int]:
    mask = page.execute_script("return embgeo.store.mask && Array.from(embgeo.store.mask)")
    return list(range(N)) if mask is None else np.flatnonzero(mask).tolist()


def place(page: Any, row: int) -> tuple[float, float]:
    """Where a row is drawn, in pixels from the map's corner."""
    x, y = page.execute_script(
        "const {map} = embgeo;"
        "return map.toPixel(map.view.x[arguments[0]], map.view.y[arguments[0]])",
        row,
    )
    return float(x), float(y)


def actions(page: Any) -> Any:
    from selenium.webdriver.common.action_chains import ActionChains

    return ActionChains(page, duration=0)


def canvas(page: Any) -> Any:
    from selenium.webdriver.common.by import By

    return page.find_element(By.ID, "scatter")


def move_to(page: Any, chain: Any, x: float, y: float) -> Any:
    """Selenium counts from the middle of the element."""
    box = canvas(page).size
    return chain.move_to_element_with_offset(
        canvas(page), round(x - box["width"] / 2), round(y - box["height"] / 2)
    )


def press(page: Any, *keys: str) -> None:
    from selenium.webdriver.common.by import By

    page.find_element(By.ID, "scatter").send_keys(*keys)
    frame(page)


def lonely_row(page: Any) -> int:
    """A row that is drawn away from the buttons and from all other rows."""
    row: int = page.execute_script(
        """
        const {map, data} = embgeo;
        const at = (i) => map.toPixel(map.view.x[i], map.view.y[i]);
        const places = Array.from({length: data.rows}, (_, i) => at(i));
        let best = -1, far = 0;
        places.forEach(([x, y], i) => {
          if (x < 60 || y < 60 || x > map.cssWidth - 60 || y > map.cssHeight - 60) return;
          let near = Infinity;
          places.forEach(([u, v], j) => {
            if (j !== i) near = Math.min(near, Math.hypot(u - x, v - y));
          });
          if (near > far) [best, far] = [i, near];
        });
        return best;
        """
    )
    assert row >= 0
    return row


# --- pointing -------------------------------------------------------------------------------


def test_hover_shows_the_token_its_row_and_its_numbers(page: Any) -> None:
    row = lonely_row(page)
    move_to(page, actions(page), *place(page, row)).perform()
    frame(page)
    assert text(page, "#tooltip bdi") == visible(sample(n=N, hostile=True).tokens[row])  # type: ignore[index]
    words = text(page, "#tooltip span")
    assert words.startswith(f"row {row:,} · count ")
    assert "angle" in words
    assert page.execute_script("return !document.getElementById('tooltip').hidden")


def test_hover_is_linked_to_histograms_and_table(page: Any) -> None:
    page.execute_script("embgeo.store.point(3, 'test')")
    needles = page.execute_script(
        "return [...document.querySelectorAll('.needle')].map(n => Number(n.getAttribute('x1')))"
    )
    assert len(needles) == 3
    assert all(0 <= x <= 48 for x in needles)
    assert text(page, "#token-table tr.pointed td") == "3"


def test_hostile_tokens_are_text_in_tooltip_table_and_list(page: Any) -> None:
    for row, token in enumerate(HOSTILE):
        page.execute_script("embgeo.store.point(arguments[0], 'test')", row)
        assert text(page, "#tooltip bdi") == visible(token)
    cells = page.execute_script(
        "return [...document.querySelectorAll('#token-table td.token:nth-child(2)')]"
        ".map(c => c.textContent)"
    )
    assert cells == [visible(token) for token in HOSTILE[:20]]
    search(page, "<")
    assert "<b>bold</b>" in text(page, "#search-list")
    assert page.execute_script("return window.pwned") is None
    assert page.execute_script("return document.querySelectorAll('b, img').length") == 0


# --- selection ------------------------------------------------------------------------------


def search(page: Any, words: str) -> None:
    from selenium.webdriver.common.by import By

    box = page.find_element(By.ID, "search")
    box.clear()
    box.send_keys(words)
    frame(page)


def test_search_counts_lists_and_selects(page: Any) -> None:
    search(page, "tok19")
    expected = [i for i in range(len(HOSTILE), N) if f"tok{i}".find("tok19") == 0]
    assert selected(page) == expected
    assert text(page, "#search-count") == f"{len(expected)} found"
    assert page.execute_script("return document.querySelectorAll('#search-list li').length") == 8
    assert text(page, "#search-list li bdi") == "tok190"
    assert text(page, "#selection-count").startswith(f"{len(expected)} of 2,000 tokens selected")
    assert text(page, "#token-table tbody td") == "190"


def test_search_by_keyboard_leads_to_a_token(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    search(page, "tok77")
    page.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    page.switch_to.active_element.send_keys(Keys.ENTER)
    frame(page)
    assert page.execute_script("return embgeo.store.hover") == 77
    x, y = place(page, 77)
    box = canvas(page).size
    assert (x, y) == (
        pytest.approx(box["width"] / 2, abs=1),
        pytest.approx(box["height"] / 2, abs=1),
    )


def lasso(page: Any, corners: list[tuple[float, float]]) -> None:
    from selenium.webdriver.common.by import By

    page.find_element(By.ID, "lasso").click()
    chain = move_to(page, actions(page), *corners[0]).click_and_hold()
    for corner in corners[1:]:
        move_to(page, chain, *corner)
    chain.release().perform()
    frame(page)


def test_lasso_selects_exactly_what_it_surrounds(page: Any) -> None:
    box = canvas(page).size
    left, right = round(box["width"] * 0.3), round(box["width"] * 0.6)
    top, bottom = round(box["height"] * 0.3), round(box["height"] * 0.7)
    lasso(page, [(left, top), (right, top), (right, bottom), (left, bottom)])
    places = [place(page, row) for row in range(N)]
    inside = [
        row
        for row, (x, y) in enumerate(places)
        if left + 2 < x < right - 2 and top + 2 < y < bottom - 2
    ]
    around = [
        row
        for row, (x, y) in enumerate(places)
        if left - 2 < x < right + 2 and top - 2 < y < bottom + 2
    ]
    assert len(inside) > 20
    assert set(inside) <= set(selected(page)) <= set(around)


def chosen_bars(page: Any) -> list[list[float]]:
    bars: list[list[float]] = page.execute_script(
        "return [...document.querySelectorAll('.brush-chart')].map(chart =>"
        "[...chart.querySelectorAll('.bar-chosen')].map(b => Number(b.getAttribute('height'))))"
    )
    return bars


def brush(page: Any, which: int, start: float, end: float) -> None:
    from selenium.webdriver.common.by import By

    chart = page.find_elements(By.CSS_SELECTOR, ".brush-chart")[which]
    width = chart.size["width"]
    actions(page).move_to_element_with_offset(
        chart, round((start - 0.5) * width), 0
    ).click_and_hold().move_to_element_with_offset(
        chart, round((end - 0.5) * width), 0
    ).release().perform()
    frame(page)


def test_brushes_select_and_combine_and_every_panel_follows(page: Any) -> None:
    before = chosen_bars(page)
    brush(page, 1, 0.2, 0.5)
    first = selected(page)
    norms = np.asarray(page.execute_script("return Array.from(embgeo.data.columns[1].values)"))
    low, high = page.execute_script(
        "return [...document.querySelectorAll('.brush')[1].querySelectorAll('input')]"
        ".map(i => Number(i.value))"
    )
    step = (norms.max() - norms.min()) / 100
    assert set(np.flatnonzero((norms > low + step) & (norms < high - step))) <= set(first)
    assert set(first) <= set(np.flatnonzero((norms > low - step) & (norms < high + step)))
    after = chosen_bars(page)
    assert all(sum(a) < sum(b) for a, b in zip(after, before, strict=True))
    brush(page, 0, 0.02, 0.4)
    both = selected(page)
    assert set(both) < set(first)
    assert text(page, "#selection-count").startswith(f"{len(both):,} of 2,000")
    shown = page.execute_script(
        "return Number(document.querySelector('#token-table tbody td').textContent)"
    )
    assert shown == both[0]


def test_typing_a_range_does_what_brushing_does(page: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    inputs = page.find_elements(By.CSS_SELECTOR, ".brush")[1].find_elements(By.TAG_NAME, "input")
    inputs[0].send_keys("9", Keys.TAB)
    frame(page)
    norms = np.asarray(page.execute_script("return Array.from(embgeo.data.columns[1].values)"))
    assert selected(page) == np.flatnonzero(norms >= 9).tolist()


def test_escape_clears_everything(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    search(page, "tok1")
    brush(page, 1, 0.1, 0.6)
    assert len(selected(page)) < N
    press(page, Keys.ESCAPE)
    assert selected(page) == list(range(N))
    assert text(page, "#selection-count") == "All 2,000 tokens."
    assert page.execute_script("return document.getElementById('search').value") == ""


# --- map ------------------------------------------------------------------------------------


def test_both_axes_have_the_same_scale(page: Any) -> None:
    a, b = page.execute_script("return [embgeo.map.toPixel(0, 0), embgeo.map.toPixel(1, 1)]")
    assert b[0] - a[0] == pytest.approx(a[1] - b[1])


def test_keyboard_pans_zooms_resets_and_steps(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    home = page.execute_script("return [embgeo.map.scale, ...embgeo.map.centre]")
    press(page, Keys.ARROW_RIGHT)
    assert page.execute_script("return embgeo.map.centre[0]") > home[1]
    press(page, "+")
    assert page.execute_script("return embgeo.map.scale") == pytest.approx(home[0] * 1.3)
    press(page, "0")
    assert page.execute_script("return [embgeo.map.scale, ...embgeo.map.centre]") == home
    press(page, Keys.SHIFT, Keys.ARROW_LEFT)
    first = page.execute_script("return embgeo.store.hover")
    press(page, Keys.SHIFT, Keys.ARROW_LEFT)
    second = page.execute_script("return embgeo.store.hover")
    assert first >= 0
    assert place(page, second)[0] < place(page, first)[0]
    assert f"row {second:,}" in text(page, "#announcer")


def test_drag_pans_and_wheel_zooms_about_the_pointer(page: Any) -> None:
    x, y = place(page, 50)
    chain = move_to(page, actions(page), 200, 200).click_and_hold()
    move_to(page, chain, 240, 170).release().perform()
    frame(page)
    assert place(page, 50) == (pytest.approx(x + 40, abs=1), pytest.approx(y - 30, abs=1))
    page.execute_script(
        "document.getElementById('scatter').dispatchEvent(new WheelEvent('wheel',"
        "{deltaY: -120, clientX: 0, clientY: 0, bubbles: true, cancelable: true}))"
    )
    frame(page)
    assert page.execute_script("return embgeo.map.scale / embgeo.map.home") == pytest.approx(
        np.exp(0.4), rel=1e-6
    )


def test_two_fingers_zoom(page: Any) -> None:
    box = page.execute_script(
        "const b = embgeo.map.canvas.getBoundingClientRect(); return [b.left, b.top]"
    )

    def touch(kind: str, *points: tuple[int, int]) -> None:
        page.execute_cdp_cmd(
            "Input.dispatchTouchEvent",
            {
                "type": kind,
                "touchPoints": [
                    {"x": box[0] + x, "y": box[1] + y, "id": i} for i, (x, y) in enumerate(points)
                ],
            },
        )

    touch("touchStart", (200, 200), (300, 200))
    touch("touchMove", (150, 200), (350, 200))
    touch("touchEnd")
    frame(page)
    assert page.execute_script("return embgeo.map.scale / embgeo.map.home") == pytest.approx(
        2.0, rel=0.05
    )
    row = page.execute_script("embgeo.map.fit(); return 0") or lonely_row(page)
    x, y = place(page, row)
    touch("touchStart", (round(x), round(y)))
    touch("touchEnd")
    frame(page)
    assert page.execute_script("return embgeo.store.hover") == row


def test_plane_and_colour_can_be_changed(page: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    before = pixels(page)
    Select(page.find_element(By.ID, "colour")).select_by_index(2)
    frame(page)
    coloured = pixels(page)
    assert coloured != before
    assert "ramp" in page.execute_script("return document.getElementById('legend').innerHTML")
    Select(page.find_element(By.ID, "view")).select_by_index(1)
    frame(page)
    assert pixels(page) != coloured
    assert "principal" in text(page, "#overlay")


def test_dark_page_has_a_dark_map(page: Any) -> None:
    try:
        light = page.execute_script(CORNER)
        page.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark"}]},
        )
        frame(page)
        assert max(page.execute_script(CORNER)) < 40 < 200 < min(light)
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


CORNER = (
    "const pixel = embgeo.map.pixels[0];"
    "return [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255]"
)


def pixels(page: Any) -> int:
    """A checksum of the map's picture."""
    out: int = page.execute_script(
        "let sum = 0; embgeo.map.pixels.forEach((v, i) => { sum = (sum * 31 + v) % 4294967291 });"
        "return sum"
    )
    return out


# --- table and charts -----------------------------------------------------------------------


def test_table_sorts_pages_and_walks_by_keyboard(page: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    norms = np.asarray(page.execute_script("return Array.from(embgeo.data.columns[1].values)"))
    heading = page.find_element(By.XPATH, "//table[@id='token-table']//button[text()='norm']")
    heading.click()
    order = np.argsort(-norms, kind="stable")
    assert first_rows(page) == order[:20].tolist()
    cell = heading.find_element(By.XPATH, "..")
    assert cell.get_attribute("aria-sort") == "descending"
    line = page.find_element(By.CSS_SELECTOR, "#token-table tbody tr")
    line.send_keys(Keys.ARROW_DOWN)
    assert page.execute_script("return embgeo.store.hover") == order[1]
    page.switch_to.active_element.send_keys(Keys.PAGE_DOWN)
    assert first_rows(page) == order[20:40].tolist()
    assert text(page, "#page-number") == "page 2 of 100"


def first_rows(page: Any) -> list[int]:
    rows: list[int] = page.execute_script(
        "return [...document.querySelectorAll('#token-table tbody tr')]"
        ".map(r => Number(r.dataset.row))"
    )
    return rows


def test_charts_read_out_values_under_the_pointer(page: Any) -> None:
    from selenium.webdriver.common.by import By

    charts = page.find_elements(By.CSS_SELECTOR, ".chart .u-over")
    assert len(charts) == 9
    page.execute_script(
        "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", charts[0]
    )
    actions(page).move_to_element(charts[0]).perform()
    frame(page)
    reading = text(page, "[data-chart='spectrum.singular_values'] .u-legend")
    assert any(character.isdigit() for character in reading)


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
    colour = driver.execute_script(
        "const p = document.createElement('p'); p.setAttribute('style', 'color: red');"
        "document.body.append(p); return getComputedStyle(p).color"
    )
    loaded = driver.execute_async_script(
        "fetch('data:text/plain,x').then(() => arguments[0](true), () => arguments[0](false))"
    )
    assert markup == "TypeError"
    assert colour != "rgb(255, 0, 0)"
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


@pytest.mark.parametrize("n", [50_000, 260_000])
def test_many_tokens(
    driver: Any, tmp_path: Path, n: int, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "many.html"
    analysis = sample(n=n, d=8, untied=False)
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
        "map.centreOn(i); map.zoom(1e4);"
        "return map.nearest(map.cssWidth / 2, map.cssHeight / 2)"
    )
    assert found == n - 1
    search(driver, str(n - 1))
    assert driver.execute_script("return embgeo.store.count") == 1
    assert complaints(driver) == []
    with capsys.disabled():
        megabytes = target.stat().st_size / 1e6
        print(f"\n{n:,} tokens: {megabytes:.2f} MB, {np.median(times):.1f} ms a frame (median)")


def test_without_scripts_the_page_is_complete(folder: Path, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By

    with chromium(tmp_path / "profile", scripts=False) as driver:
        driver.get((folder / "page.html").as_uri())
        shown = [s for s in driver.find_elements(By.CSS_SELECTOR, "svg.figure") if s.is_displayed()]
        assert len(shown) == 12
        for selector in ("#scatter", "#search", "#token-table", ".chart"):
            assert not driver.find_element(By.CSS_SELECTOR, selector).is_displayed()
        assert driver.find_element(By.CSS_SELECTOR, ".headline").text.startswith("Degenerate")
        assert complaints(driver) == []


def test_phone_has_no_sideways_scroll(folder: Path, tmp_path: Path) -> None:
    with chromium(tmp_path / "profile", width=390, height=844) as driver:
        open_page(driver, folder / "page.html")
        wide, inner = driver.execute_script(
            "return [document.scrollingElement.scrollWidth, innerWidth]"
        )
        assert wide <= inner == 390
        assert driver.execute_script("return embgeo.map.cssWidth") > 300


def test_paper_shows_the_figures_and_no_controls(page: Any) -> None:
    try:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        shown = page.execute_script(
            "const seen = (s) => [...document.querySelectorAll(s)]"
            ".filter(e => e.getClientRects().length > 0).length;"
            "return [seen('svg.figure'), seen('button, select, input, canvas'), seen('.contents')]"
        )
        assert shown == [12, 0, 0]
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
