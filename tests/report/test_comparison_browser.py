"""The page of a comparison in a real browser: maps tied together, scripts off, phone, paper."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from embgeo.core.text import visible
from embgeo.report.comparison import render
from tests.support import sampling
from tests.support.browser import (
    NEEDS_BROWSER,
    OUTSIDE,
    actions,
    complaints,
    frame,
    open_page,
    resize_window,
    search,
    text,
    without_scripts,
)
from tests.support.outlined import outline_figures
from tests.support.sample_analysis import HOSTILE
from tests.support.sample_comparison import sample_comparison
from tests.support.sampling import sample_cases

pytestmark = [pytest.mark.browser, NEEDS_BROWSER]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages")
    for name, options in (
        ("page", {"hostile": True}),
        ("track", {"track": True, "members": 6}),
        ("many", {"members": 4}),
    ):
        # Drawing takes most of the time; what the figures of all pages need is seen at night.
        with nullcontext() if name == "page" or sampling.AT_NIGHT else outline_figures():
            page = render(sample_comparison(**options))  # type: ignore[arg-type]
        (path / f"{name}.html").write_text(page, encoding="utf-8")
    return path


def selected(page: Any) -> list[int]:
    mask: list[int] | None = page.execute_script(
        "return embgeo.store.mask && Array.from(embgeo.store.mask)"
    )
    return [] if mask is None else [i for i, chosen in enumerate(mask) if chosen]


def where(page: Any, panel: int, row: int) -> tuple[float, float]:
    """Where a row is drawn on one of the maps, in pixels from its corner."""
    x, y = page.execute_script(
        "const map = embgeo.maps.maps[arguments[0]], row = arguments[1];"
        "return map.toPixel(map.view.x[row], map.view.y[row])",
        panel,
        row,
    )
    return float(x), float(y)


def reach(page: Any, chain: Any, panel: int, x: float, y: float) -> Any:
    """Selenium counts from the middle of the element."""
    canvas = page.execute_script(
        "const c = embgeo.maps.maps[arguments[0]].canvas;"
        "c.scrollIntoView({block: 'center', behavior: 'instant'}); return c",
        panel,
    )
    box = canvas.size
    return chain.move_to_element_with_offset(
        canvas, round(x - box["width"] / 2), round(y - box["height"] / 2)
    )


def alone(page: Any, panel: int) -> int:
    """A row that is drawn away from all others on that map."""
    row: int = page.execute_script(
        """
        const map = embgeo.maps.maps[arguments[0]], n = embgeo.data.rows;
        const places = Array.from({length: n}, (_, i) => map.toPixel(map.view.x[i], map.view.y[i]));
        let best = -1, far = 0;
        places.forEach(([x, y], i) => {
          if (x < 40 || y < 40 || x > map.cssWidth - 40 || y > map.cssHeight - 40) return;
          const apart = places.map(([u, v], j) => j === i ? 1e9 : Math.hypot(u - x, v - y));
          const near = Math.min(...apart);
          if (near > far) [best, far] = [i, near];
        });
        return best;
        """,
        panel,
    )
    assert row >= 0
    return row


# --- tied together ----------------------------------------------------------------------------


@pytest.mark.parametrize("panel", sample_cases([0, 1], 2))
def test_hover_on_one_map_shows_the_token_on_all(page: Any, panel: int) -> None:
    row = alone(page, panel)
    reach(page, actions(page), panel, *where(page, panel, row)).perform()
    frame(page)
    shown = page.execute_script(
        "return [...document.querySelectorAll('.map .tooltip')]"
        ".map(t => [t.hidden, t.firstElementChild.textContent, t.lastElementChild.textContent])"
    )
    token = visible(sample_comparison(hostile=True).baseline.analysis.tokens[row])  # type: ignore[index]
    # One card, where the pointer is; a ring and the token elsewhere.
    assert [hidden for hidden, *_ in shown] == [place != panel for place in (0, 1)]
    assert shown[panel][1] == token
    labels = "return embgeo.maps.maps.map(m => m.marks.hovered.textContent)"
    assert page.execute_script(labels) == ["" if place == panel else token for place in (0, 1)]
    rings = page.execute_script(
        "return [...document.querySelectorAll('.ring:not(.pinned)')]"
        ".map(r => r.getAttribute('visibility'))"
    )
    assert rings == ["visible"] * 2
    needles = page.execute_script(
        "return [...document.querySelectorAll('.needle')].map(n => Number(n.getAttribute('x1')))"
    )
    assert len(needles) == 5
    assert all(0 <= x <= 48 for x in needles)


def test_search_highlights_in_all_maps_and_leads_to_the_token(page: Any) -> None:
    search(page, "tok19")
    count = "return embgeo.maps.maps.map(m => m.%s.reduce((sum, v) => sum + v, 0))"
    assert page.execute_script(count % "found") == [10, 10]
    page.execute_script("document.getElementById('search-only').click()")
    assert selected(page) == list(range(190, 200))
    assert page.execute_script(count % "mask") == [10, 10]
    page.execute_script("document.querySelector('#search-list button').click()")
    frame(page)
    for panel in (0, 1):
        x, y = where(page, panel, 190)
        size = page.execute_script(
            "const m = embgeo.maps.maps[arguments[0]]; return [m.cssWidth, m.cssHeight]", panel
        )
        assert 0 <= x <= size[0]
        assert 0 <= y <= size[1]


@pytest.mark.parametrize("panel", sample_cases([1, 0], 2))
def test_a_lasso_on_one_map_selects_in_all(page: Any, panel: int) -> None:
    from selenium.webdriver.common.by import By

    page.find_element(By.ID, "lasso").click()
    width, height = page.execute_script(
        "const m = embgeo.maps.maps[arguments[0]]; return [m.cssWidth, m.cssHeight]", panel
    )
    left, right, top, bottom = width * 0.3, width * 0.75, height * 0.3, height * 0.7
    chain = reach(page, actions(page), panel, left, top).click_and_hold()
    for corner in ((right, top), (right, bottom), (left, bottom)):
        chain = reach(page, chain, panel, *corner)
    chain.release().perform()
    frame(page)
    chosen = set(selected(page))
    assert chosen
    places = page.execute_script(
        "const map = embgeo.maps.maps[arguments[0]];"
        "return Array.from(map.view.x, (x, row) => map.toPixel(x, map.view.y[row]))",
        panel,
    )
    inside = {
        row
        for row, (x, y) in enumerate(places)
        if left + 2 < x < right - 2 and top + 2 < y < bottom - 2
    }
    assert inside <= chosen
    assert text(page, "#selection-count").startswith(f"{len(chosen):,} of 590 tokens selected")
    sums = page.execute_script(
        "return embgeo.maps.maps.map(m => m.mask.reduce((a, b) => a + b, 0))"
    )
    assert sums == [len(chosen)] * 2
    dimmed = page.execute_script(
        "return [...document.querySelectorAll('.brush-chart')].every(c =>"
        "[...c.querySelectorAll('.bar-chosen')].some(b => Number(b.getAttribute('height')) > 0))"
    )
    assert dimmed


def test_escape_clears_everything(page: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    search(page, "tok1")
    page.execute_script("document.getElementById('search-only').click()")
    assert selected(page)
    page.find_element(By.CSS_SELECTOR, ".map canvas").send_keys(Keys.ESCAPE)
    frame(page)
    assert selected(page) == []
    assert text(page, "#selection-count") == "All 590 tokens."


def test_a_line_of_the_moved_tokens_selects_old_and_new_neighbors(page: Any) -> None:
    lines = page.execute_script("return [...document.querySelectorAll('tr[data-moved]')]")
    assert len(lines) == 30
    page.execute_script("arguments[0].click()", lines[4])
    frame(page)
    found = sample_comparison(hostile=True)
    tokens = found.baseline.analysis.tokens
    assert tokens is not None
    row = found.pairs[0].tables[0].rows[4]
    assert {tokens[i] for i in selected(page)} == {row[0], *row[3:]}
    assert page.execute_script("return embgeo.store.hover") == tokens.index(str(row[0]))


# --- scales -----------------------------------------------------------------------------------


def test_maps_have_one_scale_until_told_otherwise(page: Any) -> None:
    from selenium.webdriver.common.by import By

    scales = "return embgeo.maps.maps.map(m => m.scale)"
    a, b = page.execute_script(scales)
    assert a == pytest.approx(b)
    page.find_element(By.ID, "same-scale").click()
    frame(page)
    a, b = page.execute_script(scales)
    assert a != pytest.approx(b)
    for panel in (0, 1):
        (x0, y0), (x1, y1) = page.execute_script(
            "const m = embgeo.maps.maps[arguments[0]]; return [m.toPixel(0, 0), m.toPixel(1, 1)]",
            panel,
        )
        assert x1 - x0 == pytest.approx(y0 - y1)


def test_a_color_means_the_same_number_in_all_maps(page: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    same = page.execute_script(
        """
        const norm = (list) => list.find((c) => c.key === "tokens.norm");
        const sides = embgeo.maps.panels.map((p) => [norm(p.data.columns), norm(p.colorings)]);
        const pairs = sides.flatMap(([column, coloring]) =>
          Array.from(column.values, (value, i) => [value, coloring.levels[i]]));
        pairs.sort((x, y) => x[0] - y[0]);
        const rising = pairs.every((x, i) => i === 0 || pairs[i - 1][1] <= x[1]);
        return rising && String(sides[0][1].range) === String(sides[1][1].range);
        """
    )
    assert same
    Select(page.find_element(By.ID, "color")).select_by_value("tokens.norm")
    frame(page)
    keys = page.execute_script("return embgeo.maps.maps.map(m => m.coloring.key)")
    assert keys == ["tokens.norm"] * 2
    assert "‖" in text(page, "#legend") or "norm" in text(page, "#legend").lower()


def test_the_plane_changes_in_all_maps(page: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    Select(page.find_element(By.ID, "view")).select_by_index(1)
    frame(page)
    keys = page.execute_script("return embgeo.maps.maps.map(m => m.view.key)")
    assert keys == ["projection.pca2"] * 2


def test_brushes_of_one_number_share_their_axis(page: Any) -> None:
    ends = page.execute_script(
        "return [...document.querySelectorAll('[data-brushes]')].map(b =>"
        "[...b.querySelectorAll('input')].map(i => i.placeholder))"
    )
    assert ends[0] == ends[1]


# --- charts, safety ---------------------------------------------------------------------------


def test_overlays_read_out_every_matrix_under_the_pointer(page: Any) -> None:
    chart = page.execute_script(
        "const c = document.querySelector('[data-chart=\"cosines\"] .u-over');"
        "c.scrollIntoView({block: 'center', behavior: 'instant'}); return c"
    )
    actions(page).move_to_element(chart).perform()
    frame(page)
    values = page.execute_script(
        "return [...document.querySelectorAll('[data-chart=\"cosines\"] .u-value')]"
        ".map(v => v.textContent)"
    )
    assert len(values) == 4  # the cosine, both matrices, and isotropic rows
    assert all(any(c.isdigit() for c in v) for v in values)


def test_hostile_tokens_are_text_everywhere(page: Any) -> None:
    for row, token in enumerate(HOSTILE):
        page.execute_script("embgeo.store.point(arguments[0], 'test')", row)
        shown = page.execute_script(
            "return [...document.querySelectorAll('.map .tooltip')]"
            ".filter(t => !t.hidden).map(t => t.firstElementChild.textContent)"
        )
        assert set(shown) == {visible(token)}
    search(page, "<")
    assert "<b>bold</b>" in text(page, "#search-list")
    assert page.execute_script("return window.pwned") is None
    assert page.execute_script("return document.querySelectorAll('b, img').length") == 0


# --- several matrices, scripts off, phone, paper ----------------------------------------------


def test_a_track_has_a_map_and_a_curve_for_each(driver: Any, folder: Path) -> None:
    open_page(driver, folder / "track.html")
    assert driver.execute_script("return embgeo.maps.panels.length") == 6
    curves = driver.execute_script(
        "return document.querySelectorAll('#training .chart .u-over').length"
    )
    assert curves == 17
    # Six at once, the others folded.
    assert (
        driver.execute_script("return document.querySelectorAll('#training .curves').length") == 2
    )
    heading = driver.execute_script("return document.querySelector('.maps h3').textContent")
    assert heading == "step 500"
    assert complaints(driver) == []


def test_four_matrices_stand_side_by_side(driver: Any, folder: Path) -> None:
    open_page(driver, folder / "many.html")
    tops = driver.execute_script(
        "return embgeo.maps.maps.map(m => Math.round(m.canvas.getBoundingClientRect().left))"
    )
    assert len(set(tops)) > 1
    # More numbers than two matrices have would leave no room for tokens; cards have them.
    assert not [title for title in token_heads(driver) if title.endswith("other-3")]
    assert complaints(driver) == []
    # A question that is longer than its column breaks, and does not run into the answers.
    assert driver.execute_script(
        "return [...document.querySelectorAll('.headline-table tbody th')]"
        ".every((th) => th.scrollWidth <= th.clientWidth)"
    )


def test_the_table_of_two_matrices_has_the_numbers_of_both(driver: Any, folder: Path) -> None:
    open_page(driver, folder / "page.html")
    angles = [head for head in token_heads(driver) if head.startswith("angle to mean (°), ")]
    assert len(angles) == 2
    assert angles[0] == "angle to mean (°), baseline"


def test_the_table_of_many_matrices_without_tokens_says_how_near_to_the_mean_a_row_is(
    driver: Any, tmp_path: Path
) -> None:
    found = sample_comparison(members=3)
    bare = [replace(m, analysis=replace(m.analysis, tokens=None)) for m in found.members]
    with outline_figures():
        page = render(replace(found, members=tuple(bare)))
    (tmp_path / "bare.html").write_text(page, encoding="utf-8")
    open_page(driver, tmp_path / "bare.html")
    heads = token_heads(driver)
    assert "token" not in heads
    assert sum(head.startswith("angle to mean (°), ") for head in heads) == 3


def token_heads(driver: Any) -> list[str]:
    heads: list[str] = driver.execute_script(
        "return [...document.querySelectorAll('#token-table th')].map(t => t.textContent)"
    )
    return heads


def test_without_scripts_the_page_is_complete(driver: Any, folder: Path) -> None:
    from selenium.webdriver.common.by import By

    with without_scripts(driver):
        driver.get((folder / "page.html").as_uri())
        figures = driver.find_elements(By.CSS_SELECTOR, "svg.figure")
        folded = driver.find_elements(By.CSS_SELECTOR, "details svg.figure")
        assert (len(figures), len(folded)) == (8, 1)
        assert [f.is_displayed() for f in figures] == [f not in folded for f in figures]
        for selector in (".map canvas", "#search", "#token-table", ".chart"):
            assert not driver.find_element(By.CSS_SELECTOR, selector).is_displayed()
        headline = driver.find_element(By.CSS_SELECTOR, ".headline").text
        assert headline.startswith("No longer degenerate.")
        assert complaints(driver) == []


@pytest.mark.parametrize("name", sample_cases(["page", "track", "many"], 3))
def test_phone_has_no_sideways_scroll(driver: Any, folder: Path, name: str) -> None:
    with resize_window(driver, 390, 844):
        open_page(driver, folder / f"{name}.html")
        wide, inner = driver.execute_script(
            "return [document.scrollingElement.scrollWidth, innerWidth]"
        )
        assert wide <= inner == 390
        least = 150 if name == "track" else 300  # more than four maps are two in a row
        assert driver.execute_script("return embgeo.map.cssWidth") > least


@pytest.mark.parametrize("name", sample_cases(["page", "track", "many"], 3))
def test_paper_shows_the_figures_and_no_controls(driver: Any, folder: Path, name: str) -> None:
    open_page(driver, folder / f"{name}.html")
    try:
        # Folded parts stay folded unless they are asked for.
        driver.execute_script("document.getElementById('print-all').click()")
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        figures, controls = driver.execute_script(
            "const seen = (s) => [...document.querySelectorAll(s)]"
            ".filter(e => e.getClientRects().length > 0).length;"
            "return [seen('svg.figure'), seen('button, select, input, canvas, .contents')]"
        )
        drawn = (folder / f"{name}.html").read_text("utf-8").count(' class="figure"')
        assert (figures, controls) == (drawn, 0)
        # A4 less its margins at 96 pixels an inch: nothing is cut at the edge.
        with resize_window(driver, 688, 1017):
            assert driver.execute_script(OUTSIDE) == []
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
