"""The page in a real browser: hover, search, lasso, brush, keyboard, policy, size, no scripts."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embgeo.core.rows import NearestRows
from embgeo.core.text import visible
from embgeo.report.analysis import render
from embgeo.result.analysis import Analysis
from tests.report.test_payload import with_a_clump
from tests.support.browser import (
    NEEDS_BROWSER,
    READY,
    actions,
    canvas,
    complaints,
    frame,
    lonely_row,
    move_to,
    open_page,
    place,
    search,
    text,
)
from tests.support.outlined import outline_figures
from tests.support.sample_analysis import HOSTILE, sample

pytestmark = [pytest.mark.browser, NEEDS_BROWSER, pytest.mark.usefixtures("outlines")]

N = 2000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages")
    with outline_figures():
        page = render(analyzed())
    (path / "page.html").write_text(page, encoding="utf-8")
    return path


@cache
def analyzed() -> Analysis:
    """As if the neighbors of even rows alone had been searched."""
    analysis = sample(n=N, hostile=True)
    found = analysis.nearest
    assert found is not None
    even = NearestRows(found.rows[::2], found.neighbors[::2], found.cosines[::2])
    return replace(analysis, nearest=even)


def selected(page: Any) -> list[int]:
    mask = page.execute_script("return embgeo.store.mask && Array.from(embgeo.store.mask)")
    return list(range(N)) if mask is None else np.flatnonzero(mask).tolist()


def press(page: Any, *keys: str) -> None:
    from selenium.webdriver.common.by import By

    page.find_element(By.ID, "scatter").send_keys(*keys)
    frame(page)


# --- pointing -------------------------------------------------------------------------------


def test_hover_shows_the_token_its_row_and_its_numbers(page: Any) -> None:
    row = lonely_row(page)
    move_to(page, actions(page), *place(page, row)).perform()
    frame(page)
    assert text(page, "#tooltip bdi") == visible(sample(n=N, hostile=True).tokens[row])  # type: ignore[index]
    words = text(page, "#tooltip span")
    # Two numbers; the card has the others.
    assert words.count(" · ") == 1
    assert "angle" in words
    assert page.execute_script("return !document.getElementById('tooltip').hidden")


def test_hover_is_linked_to_histograms_and_table(page: Any) -> None:
    row = first_rows(page)[3]
    page.execute_script("embgeo.store.point(arguments[0], 'test')", row)
    needles = page.execute_script(
        "return [...document.querySelectorAll('.needle')].map(n => Number(n.getAttribute('x1')))"
    )
    assert len(needles) == 3
    assert all(0 <= x <= 48 for x in needles)
    assert text(page, "#token-table tr.pointed td") == f"{row:,}"


def test_hostile_tokens_are_text_in_tooltip_table_and_list(page: Any) -> None:
    for row, token in enumerate(HOSTILE):
        page.execute_script("embgeo.store.point(arguments[0], 'test')", row)
        assert text(page, "#tooltip bdi") == visible(token)
    sort_by_row(page)
    cells: list[str] = []
    while len(cells) < len(HOSTILE):
        cells += page.execute_script(
            "return [...document.querySelectorAll('#token-table td.token:nth-child(2)')]"
            ".map(c => c.textContent)"
        )
        page.execute_script("document.getElementById('page-forward').click()")
    assert cells[: len(HOSTILE)] == [visible(token) for token in HOSTILE]
    search(page, "<")
    assert "<b>bold</b>" in text(page, "#search-list")
    assert page.execute_script("return window.pwned") is None
    assert page.execute_script("return document.querySelectorAll('b, img').length") == 0


def test_tokens_outside_the_first_view_are_counted_below_the_map(page: Any) -> None:
    move = """
        const { view } = embgeo.map;
        for (const row of arguments) view.x[row] = 1e6;
        embgeo.map.setView(view);
    """
    counts = []
    for rows in ((), (5, 9)):
        page.execute_script(move, *rows)
        said = text(page, "#map-caption").partition("outside the first view: ")[2]
        counts.append(int(said.partition(".")[0] or 0))
    assert counts[1] == counts[0] + 2


# --- selection ------------------------------------------------------------------------------


def found(page: Any) -> list[int]:
    return page.execute_script("return [...embgeo.store.found].flatMap((f, i) => (f ? [i] : []))")


def show_only(page: Any) -> None:
    page.execute_script("document.getElementById('search-only').click()")
    frame(page)


def test_search_counts_lists_and_highlights(page: Any) -> None:
    search(page, "tok19")
    expected = [i for i in range(len(HOSTILE), N) if f"tok{i}".find("tok19") == 0]
    assert found(page) == expected
    # Nothing is hidden, so that a lasso still selects what it surrounds.
    assert selected(page) == list(range(N))
    assert text(page, "#search-count") == f"{len(expected)} found"
    assert page.execute_script("return document.querySelectorAll('#search-list li').length") == 8
    assert text(page, "#search-list li bdi") == "tok190"
    show_only(page)
    assert selected(page) == expected
    assert text(page, "#selection-count").startswith(f"{len(expected)} of 2,000 tokens selected")
    sort_by_row(page)
    assert text(page, "#token-table tbody td") == "190"
    show_only(page)
    assert selected(page) == list(range(N))


@pytest.mark.parametrize("arrows", [0, 1])
def test_search_by_keyboard_leads_to_a_token(page: Any, arrows: int) -> None:
    """Enter takes the token that was typed; the magnification stays."""
    from selenium.webdriver.common.keys import Keys

    page.execute_script("embgeo.map.zoom(16)")
    frame(page)
    zoomed = page.execute_script("return embgeo.map.scale / embgeo.map.home")
    search(page, "tok77")
    for key in (*[Keys.ARROW_DOWN] * arrows, Keys.ENTER):
        page.switch_to.active_element.send_keys(key)
    frame(page)
    assert page.execute_script("return embgeo.store.pinned") == 77
    assert page.execute_script("return embgeo.map.scale / embgeo.map.home") == zoomed
    x, y = place(page, 77)
    box = canvas(page).size
    assert 0 <= x <= box["width"]
    assert 0 <= y <= box["height"]
    ring = page.execute_script(
        "const r = document.querySelector('.ring.pinned'); "
        "return [r.getAttribute('visibility'), +r.getAttribute('cx'), +r.getAttribute('cy')]"
    )
    assert ring == ["visible", pytest.approx(x, abs=1), pytest.approx(y, abs=1)]


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
    places = page.execute_script(
        "const {map} = embgeo;"
        "return Array.from(map.view.x, (x, row) => map.toPixel(x, map.view.y[row]))"
    )
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
        "return [...document.querySelectorAll('.brush .brush-chart')].map(chart =>"
        "[...chart.querySelectorAll('.bar-chosen')].map(b => Number(b.getAttribute('height'))))"
    )
    return bars


def brush(page: Any, which: int, start: float, end: float) -> None:
    from selenium.webdriver.common.by import By

    chart = page.find_elements(By.CSS_SELECTOR, ".brush .brush-chart")[which]
    width = chart.size["width"]
    actions(page).move_to_element_with_offset(
        chart, round((start - 0.5) * width), 0
    ).click_and_hold().move_to_element_with_offset(
        chart, round((end - 0.5) * width), 0
    ).release().perform()
    frame(page)


def test_brushes_select_and_combine_and_every_panel_follows(page: Any) -> None:
    before = chosen_bars(page)
    brush(page, 2, 0.2, 0.5)
    first = selected(page)
    norms = np.asarray(page.execute_script("return Array.from(embgeo.data.columns[2].values)"))
    low, high = page.execute_script(
        "return [...document.querySelectorAll('.brush')[2].querySelectorAll('input')]"
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
    sort_by_row(page)
    assert first_rows(page)[0] == both[0]


def test_typing_a_range_does_what_brushing_does(page: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    inputs = page.find_elements(By.CSS_SELECTOR, ".brush")[2].find_elements(By.TAG_NAME, "input")
    inputs[0].send_keys("9", Keys.TAB)
    frame(page)
    norms = np.asarray(page.execute_script("return Array.from(embgeo.data.columns[2].values)"))
    assert selected(page) == np.flatnonzero(norms >= 9).tolist()


def test_one_long_row_leaves_the_other_norms_in_many_bars_with_their_digits(
    driver: Any, tmp_path: Path
) -> None:
    analysis = sample(n=N)
    norms = next(c for c in analysis.columns if c.name == "tokens.norm").values
    norms[7] = 1e4
    (tmp_path / "page.html").write_text(render(analysis), encoding="utf-8")
    open_page(driver, tmp_path / "page.html")
    assert text(driver, ".brush:nth-child(3) legend").endswith(", log scale")
    assert np.count_nonzero(chosen_bars(driver)[2]) > 5
    sort_by_row(driver)
    norm = text(driver, "#token-table tbody tr td:last-child")
    assert float(norm) == pytest.approx(norms[0], rel=1e-3)
    brush(driver, 2, 0.5, 1.1)
    assert selected(driver) == [7]


def test_escape_clears_everything(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    search(page, "tok1")
    brush(page, 2, 0.1, 0.6)
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

    home = page.execute_script("return [embgeo.map.scale, ...embgeo.map.center]")
    press(page, Keys.ARROW_RIGHT)
    assert page.execute_script("return embgeo.map.center[0]") > home[1]
    press(page, "+")
    assert page.execute_script("return embgeo.map.scale") == pytest.approx(home[0] * 1.3)
    press(page, "0")
    assert page.execute_script("return [embgeo.map.scale, ...embgeo.map.center]") == home
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
        "{deltaY: -120, ctrlKey: true, clientX: 0, clientY: 0, bubbles: true, cancelable: true}))"
    )
    frame(page)
    assert page.execute_script("return embgeo.map.scale / embgeo.map.home") == pytest.approx(
        np.exp(0.4), rel=1e-6
    )


def test_a_plain_wheel_scrolls_the_page(page: Any) -> None:
    scrolls = page.execute_script(
        "return document.getElementById('scatter').dispatchEvent("
        "new WheelEvent('wheel', {deltaY: 120, bubbles: true, cancelable: true}))"
    )
    assert scrolls
    assert page.execute_script("return embgeo.map.scale / embgeo.map.home") == 1


def listed(page: Any) -> list[int]:
    """What the card lists next to the pinned token."""
    found: list[int] = page.execute_script(
        "return embgeo.map.nearestTo(embgeo.store.pinned).map(near => near.row)"
    )
    return found


def test_suspects_have_cards_and_names_that_do_not_overlap(driver: Any, tmp_path: Path) -> None:
    path = tmp_path / "clump.html"
    path.write_text(render(with_a_clump()), encoding="utf-8")
    open_page(driver, path)
    driver.execute_script("document.querySelector('.board .word').click()")
    assert text(driver, "#card .word") == "gone"
    found = driver.execute_script(
        """
        navigator.clipboard.writeText = async (text) => { window.copied = text; };
        const lines = [...document.querySelectorAll(".board [data-reason]")];
        return lines.map((line) => {
          const [show, copy] = line.querySelectorAll("button");
          copy.click();
          show.click();
          const marked = embgeo.store.found && [...embgeo.store.found].filter(Boolean).length;
          const pressed = show.getAttribute("aria-pressed");
          show.click();
          return [line.dataset.reason, copied.trim().split("\\r\\n").length - 1, marked, pressed];
        });
        """
    )
    suspects = {one.reason: len(one) for one in with_a_clump().suspects}
    assert found[0] == ["zero", suspects["zero"], None, "false"]
    for reason, rows, marked, pressed in found[1:]:
        assert (rows, marked, pressed) == (suspects[reason], suspects[reason], "true")
    card = text(driver, "#card")
    assert "row 600 · zero row, left out of all numbers and of the map · ‖w‖ 0" in card
    assert "Nearest by cosine: a row that is left out is not compared" in card
    driver.execute_script("embgeo.store.pin(1)")
    assert "State: unused by its spelling, never counted" in text(driver, "#card")
    # Eight tokens in one place, which share a name, and eight others.
    overlaps = driver.execute_script(
        """
        const {map, data} = embgeo;
        const rows = [...Array(16).keys()].map((i) => (i < 8 ? i : 100 + i));
        map.named = rows.map((row) => [row, data.label(row)]);
        map.draw();
        const texts = [...document.querySelectorAll("#overlay text")].filter((t) => t.textContent);
        const boxes = texts.map((t) => !t.closest(".ticks") && t.getBoundingClientRect());
        const named = [...document.querySelectorAll("#overlay .named text")];
        const shared = named.filter((t) => t.textContent.startsWith("[unused")).length;
        const rings = document.querySelectorAll("#overlay .named circle").length;
        const hit = (a, b) => a && b && a.left < b.right && b.left < a.right
          && a.top + 3 < b.bottom && b.top + 3 < a.bottom;
        const overlap = boxes.some((a, i) => boxes.slice(i + 1).some((b) => hit(a, b)));
        return [named.length, shared, rings, overlap];
        """
    )
    assert overlaps[0] > 1
    assert overlaps[1:] == [1, 16, False]
    assert complaints(driver) == []


def test_the_map_stands_next_to_the_findings_below_the_output_matrix(
    driver: Any, tmp_path: Path
) -> None:
    analysis = sample(n=50)
    output = {"tensor": "head", "verdict": {"state": "healthy", "headline": "–"}}
    provenance = {**analysis.provenance, "output": output}
    path = tmp_path / "untied.html"
    path.write_text(render(replace(analysis, provenance=provenance)), encoding="utf-8")
    open_page(driver, path)
    tops = driver.execute_script(
        "return ['.output-verdict', '.evidence', '.map-panel'].map("
        "s => document.querySelector(`.first > ${s}`).getBoundingClientRect().top)"
    )
    assert tops[0] < tops[1] == tops[2]


def test_a_walk_from_token_to_token_and_back_by_a_link(page: Any) -> None:
    row = lonely_row(page)
    analysis = analyzed()
    move_to(page, actions(page), *place(page, row)).click().perform()
    frame(page)
    assert analysis.tokens is not None
    assert analysis.nearest is not None
    assert text(page, "#card .word") == visible(analysis.tokens[row])
    # Of even rows the neighbors are known.
    page.execute_script("embgeo.store.pin(arguments[0])", row | 1)
    assert listed(page) == []
    assert "not searched for this token: for all 2,000 it takes less than a minute" in text(
        page, "#card"
    )
    assert "embgeo analyze --neighbors-of page does it, --show-neighbors TOKEN for one." in text(
        page, "#card"
    )
    assert "Select the 1,000 tokens that have them" in text(page, "#card button:last-child")
    page.execute_script("document.querySelector('#card p button').click()")
    assert selected(page) == list(range(0, N, 2))
    page.execute_script("embgeo.store.clear()")
    table = next(table for table in analysis.tables if table.columns[0] == "row")
    page.execute_script("embgeo.store.pin(arguments[0])", table.rows[0][0])
    assert "Listed under: " in text(page, "#card")
    assert table.quantity.title in text(page, "#card")
    even = row & ~1
    page.execute_script("embgeo.store.pin(arguments[0])", even)
    near = analysis.nearest.neighbors[even // 2].tolist()
    assert listed(page) == near
    shown = f"{visible(analysis.tokens[near[0]])} {analysis.nearest.cosines[even // 2, 0]:.2f}"
    assert f"Nearest by cosine: {shown} " in text(page, "#card")
    frame(page)
    assert page.execute_script("return embgeo.map.marks.near.getAttribute('d')").count("L") == 10
    page.execute_script("document.querySelector('#card p button').click()")
    assert page.execute_script("return embgeo.store.pinned") == near[0]
    search(page, "tok1")
    show_only(page)
    chosen = selected(page)
    page.execute_script("document.getElementById('copy-link').click()")
    link = page.current_url
    page.get("about:blank")
    page.get(link)
    page.execute_async_script(READY)
    assert page.execute_script("return embgeo.store.pinned") == near[0]
    assert selected(page) == chosen
    assert 0 < len(chosen) < N


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


def test_plane_and_color_can_be_changed(page: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    before = pixels(page)
    Select(page.find_element(By.ID, "color")).select_by_index(2)
    frame(page)
    colored = pixels(page)
    assert colored != before
    assert "ramp" in page.execute_script("return document.getElementById('legend').innerHTML")
    Select(page.find_element(By.ID, "view")).select_by_index(1)
    frame(page)
    assert pixels(page) != colored
    assert analyzed().points[1].x_label in text(page, "#overlay")


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

    norms = np.asarray(page.execute_script("return Array.from(embgeo.data.columns[2].values)"))
    heading = page.find_element(By.XPATH, "//table[@id='token-table']//button[text()='norm (‖w‖)']")
    heading.click()
    order = np.argsort(-norms, kind="stable")
    assert first_rows(page) == order[:8].tolist()
    cell = heading.find_element(By.XPATH, "..")
    assert cell.get_attribute("aria-sort") == "descending"
    line = page.find_element(By.CSS_SELECTOR, "#token-table tbody tr")
    line.send_keys(Keys.ARROW_DOWN)
    assert page.execute_script("return embgeo.store.hover") == order[1]
    page.switch_to.active_element.send_keys(Keys.ENTER)
    assert page.execute_script("return embgeo.store.pinned") == order[1]
    page.find_element(By.CSS_SELECTOR, "#card button").send_keys(Keys.ESCAPE)
    assert page.execute_script("return document.activeElement.dataset.row") == str(order[1])
    assert page.execute_script("return embgeo.store.pinned") == -1
    page.switch_to.active_element.send_keys(Keys.PAGE_DOWN)
    assert first_rows(page) == order[8:16].tolist()
    assert text(page, "#page-number") == "of 250"
    assert page.execute_script("return document.getElementById('page-jump').value") == "2"


def test_the_table_begins_with_suspects_and_turns_to_any_page(page: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    suspects = sample(n=N, hostile=True).suspects
    first = [row for own in suspects for row in own.rows[own.serious].tolist()]
    angles = np.asarray(page.execute_script("return Array.from(embgeo.data.columns[0].values)"))
    others = [row for row in np.argsort(angles, kind="stable").tolist() if row not in first]
    assert first_rows(page) == [*first, *others][:8]
    jump = page.find_element(By.ID, "page-jump")
    jump.send_keys(Keys.CONTROL, "a")
    jump.send_keys("249", Keys.TAB)
    assert first_rows(page) == [*first, *others][8 * 248 : 8 * 249]
    Select(page.find_element(By.ID, "page-size")).select_by_visible_text("100")
    assert first_rows(page) == [*first, *others][:100]


def sort_by_row(page: Any) -> None:
    page.execute_script("document.querySelector('#token-table th button').click()")


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
    reading = text(page, "[data-chart='spectrum-log'] .u-legend")
    assert any(character.isdigit() for character in reading)


def test_every_table_and_chart_can_be_taken_along(page: Any) -> None:
    found = page.execute_script(
        """
        navigator.clipboard.writeText = async (text) => { window.copied = text; };
        const bars = [...document.querySelectorAll(".take")];
        const tables = document.querySelectorAll("table.data:not(.tokens), .headline-table");
        const figures = [...document.querySelectorAll("figure.picture")];
        const press = (bar) => { bar.querySelector("button").click(); return copied; };
        const spectrum = document.querySelector("#spectrum figure .take");
        return [
          bars.length === tables.length + figures.length,
          figures.every((f) => f.querySelector(".take button:last-child").textContent === "SVG"),
          press(spectrum).split("\\r\\n").length,
          press(document.querySelector(".headline-table ~ .take")).split("\\r\\n")[0],
        ];
        """
    )
    assert found[:2] == [True, True]
    assert found[2] > 8
    assert found[3] == '"number","this matrix","reference","how to read it"'
