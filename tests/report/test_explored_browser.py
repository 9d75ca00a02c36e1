"""A real matrix in a real browser: true neighbors, treatments, the film; nothing is cut off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import embgeo
from embgeo.core.arrays import FloatArray
from embgeo.core.matrix import Frequency, Matrix
from embgeo.core.treated import (
    TREATMENTS,
    UNIT_AFTER,
    UNIT_FIRST,
    base_of,
    place_treated,
    write_code,
)
from embgeo.report.analysis import render
from embgeo.report.comparison import render as render_comparison
from tests.support.browser import (
    NEEDS_BROWSER,
    complaints,
    frame,
    open_page,
    resize_window,
    text,
)
from tests.support.outlined import outline_figures
from tests.support.sample_comparison import sample_comparison
from tests.support.sampling import each_value

pytestmark = [pytest.mark.browser, NEEDS_BROWSER]

N, D = 500, 11
SECTIONS = ("spectrum", "cosine", "isotropy", "projection")
#: Texts and tables that are wider than their boxes, where these do not scroll.
CUT = """
const scrolls = (e) => {
  for (; e; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true;
  return false;
};
const wide = document.documentElement.clientWidth;
return [...document.querySelectorAll("body *:not(svg *, option, script, style)")].flatMap((e) => {
  const box = e.getBoundingClientRect();
  if (!box.width || e.closest(".visually-hidden, [hidden], .skip") || scrolls(e)) return [];
  const cut = box.right > wide + 1 || box.left < -1;
  const hidden = getComputedStyle(e).overflowX === "hidden" && e.scrollWidth > e.clientWidth + 1;
  return cut || hidden ? [`${e.tagName}.${e.className} ${box.left} ${box.right}`] : [];
});
"""


def make_rows() -> FloatArray:
    rng = np.random.default_rng(5)
    return np.asarray(rng.standard_normal((N, D)) * np.linspace(2.0, 0.5, D) + 0.8)


@pytest.fixture(scope="module")
def analysis() -> embgeo.Analysis:
    frequency = Frequency("counts", np.arange(N, 0, -1.0), "made")
    matrix = Matrix(make_rows(), tokens=tuple(f"t{i}" for i in range(N)), frequency=frequency)
    return embgeo.analyze(matrix, reference=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, analysis: embgeo.Analysis) -> Path:
    path = tmp_path_factory.mktemp("pages")
    with outline_figures():
        page = render(analysis)
        (path / "page.html").write_text(page, encoding="utf-8")
        track = render_comparison(sample_comparison(members=5, track=True))
        (path / "track.html").write_text(track, encoding="utf-8")
        two = render_comparison(sample_comparison())
        (path / "two.html").write_text(two, encoding="utf-8")
    return path


def list_neighbors(rows: FloatArray) -> list[list[int]]:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2.0)
    return [np.argsort(-one, kind="stable")[:10].tolist() for one in cosines]


NEAR = """
const near = (row) => embgeo.map.nearestTo(row).map((n) => n.row);
return Array.from({ length: embgeo.data.rows }, (_, row) => near(row));
"""


def test_a_click_on_any_token_shows_its_true_neighbors(page: Any) -> None:
    expected = list_neighbors(make_rows())
    assert page.execute_script(NEAR) == expected
    page.execute_script("embgeo.store.pin(7)")
    shown = page.execute_script(
        "return [...document.querySelectorAll('#card p button')].map((b) => b.textContent)"
    )
    assert [name.split()[0] for name in shown] == [f"t{i}" for i in expected[7]]


def treat(name: str) -> FloatArray:
    held = {"W": make_rows(), "np": np}
    exec(write_code(name), held)
    return np.asarray(held["W"]) * (np.sqrt(N) if base_of(name) == "whiten" else 1.0)


SET_TREATMENT = """
const [place, unit] = arguments;
const set = (id, value, event) => {
  document.getElementById(id).value = value;
  document.getElementById(id).dispatchEvent(new Event(event));
};
set("treatment-unit", unit, "change");
set("treatment", place, "input");
return [...document.querySelectorAll("#treatment-numbers [data-number]")].map((c) => c.textContent);
"""
PLACED = "const { x, y } = embgeo.map.view; return [Array.from(x), Array.from(y)];"


@each_value
@pytest.mark.parametrize("unit", ["", "first", "after"])
@pytest.mark.parametrize("base", TREATMENTS)
def test_the_slider_shows_the_treated_matrix(
    page: Any, analysis: embgeo.Analysis, base: str, unit: str
) -> None:
    shown = page.execute_script(SET_TREATMENT, list(TREATMENTS).index(base), unit)
    when = "after" if base == "none" and unit else unit
    name = {"": base, "first": UNIT_FIRST + base, "after": base + UNIT_AFTER}[when]
    rows = treat(name)
    found = embgeo.analyze(rows, sections=SECTIONS, reference=False)
    numbers = ["cosine.mean", "spectrum.effective_rank", "spectrum.top_share"]
    if base == "whiten" and unit != "after":
        assert shown[3] == "none: no direction differs"
    else:
        numbers.append("isotropy.i1_unit_rows")
    for cell, number in zip(shown, numbers, strict=False):
        value = found[number].value
        assert float(cell.replace("−", "-")) == pytest.approx(value, rel=6e-3, abs=1e-9)
    assert text(page, "#treatment-code") == write_code(name)
    assert analysis.treated_places is not None
    xy = analysis.points[0].xy
    if name == "none" + UNIT_AFTER:
        xy = xy / analysis.treated_places.norms[:, :1]
    elif base != "none":
        xy = place_treated(analysis.treated_places, name)
    places = np.array(page.execute_script(PLACED)).T
    # What is left of a norm without most directions is a small difference of 16-bit numbers.
    near = {"": 5e-5, "first": 2e-4, "after": 2e-2}[unit]
    assert np.abs(places - xy).max() < np.ptp(xy, axis=0).max() * near
    known = base == "none" or unit != "first"
    assert page.execute_script(NEAR) == (list_neighbors(rows) if known else [[]] * N)


def test_another_plane_resets_the_treatment(page: Any) -> None:
    page.execute_script(SET_TREATMENT, 2, "first")
    page.execute_script(
        "const view = document.getElementById('view');"
        "view.value = 'projection.pca2'; view.dispatchEvent(new Event('change'));"
    )
    assert page.execute_script("return document.getElementById('treatment').value") == "0"
    assert page.execute_script("return document.getElementById('treatment-unit').value") == ""
    assert text(page, "#treatment-name") == "as stored"
    assert page.execute_script("return embgeo.map.view.key") == "projection.pca2"


def test_the_page_says_what_treatments_are_for(page: Any) -> None:
    assert "The other layers of a language model expect its rows as they are" in text(
        page, ".explored"
    )


# --- the film ---------------------------------------------------------------------------------


@pytest.fixture
def track(driver: Any, folder: Path) -> Iterator[Any]:
    open_page(driver, folder / "track.html")
    yield driver
    assert complaints(driver) == []


PLACES = "const { x, y } = embgeo.film.map.view; return [Array.from(x), Array.from(y)];"


def test_the_last_frame_is_the_map_of_the_last_checkpoint(track: Any) -> None:
    shown = np.array(track.execute_script(PLACES)).T
    comparison = sample_comparison(members=5, track=True)
    last = comparison.members[-1].analysis
    pair = comparison.pair(0, 4)
    assert pair is not None
    xy = last.points[0].xy[pair.matching.second]
    assert np.abs(shown - xy).max() < np.ptp(xy) * 1e-4
    own = np.array(
        track.execute_script(
            "const { x, y } = embgeo.maps.panels.at(-1).map.view;"
            "return [Array.from(x), Array.from(y)]"
        )
    ).T
    assert np.abs(shown - own).max() < np.ptp(xy) * 1e-4
    assert text(track, "#film-state") == last.verdict.state


def press(track: Any, *keys: str) -> None:
    from selenium.webdriver.common.by import By

    track.find_element(By.ID, "film-at").send_keys(*keys)
    frame(track)


def test_arrow_keys_step_through_checkpoints(track: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    steps = []
    for _ in range(5):
        steps.append((text(track, "#film-step"), text(track, "#film-state")))
        press(track, Keys.ARROW_LEFT)
    names = [m.name for m in sample_comparison(members=5, track=True).members]
    assert len({step for step, _ in steps}) == len(names)
    tones = [m.analysis.verdict.state for m in sample_comparison(members=5, track=True).members]
    assert [tone for _, tone in steps] == tones[::-1]
    assert len(set(tones)) > 1
    press(track, Keys.ARROW_LEFT)  # the first stays
    assert text(track, "#film-step") == steps[-1][0]


def test_between_checkpoints_tokens_lie_on_straight_lines(track: Any) -> None:
    before, between, after = (
        np.array(track.execute_script(f"embgeo.film.show({at}); {PLACES}")) for at in (1, 1.25, 2)
    )
    assert np.abs(between - (0.75 * before + 0.25 * after)).max() < 1e-5
    assert re.fullmatch(
        r"Since the checkpoint before, vectors changed by 1\d\d%, their dots by [\d.,]+%\.",
        text(track, "#film-change"),
    )


def test_where_the_plane_turned_tokens_jump(track: Any) -> None:
    track.execute_script("embgeo.film.film.frames[2].turned = true")
    before, early, late, after = (
        np.array(track.execute_script(f"embgeo.film.show({at}); {PLACES}"))
        for at in (1, 1.4, 1.6, 2)
    )
    assert np.array_equal(early, before)
    assert np.array_equal(late, after)
    assert text(track, "#film-change").endswith(": the plane has turned.")


def test_without_motion_the_film_shows_whole_checkpoints(track: Any) -> None:
    # The browser of the tests prefers reduced motion.
    seen = track.execute_async_script(
        """
        const done = arguments[0], seen = [];
        const show = embgeo.film.show.bind(embgeo.film);
        embgeo.film.show = (at) => { seen.push(at); show(at); };
        embgeo.film.show(3);
        document.getElementById("film-play").click();
        const wait = () => (embgeo.film.playing ? requestAnimationFrame(wait) : done(seen));
        requestAnimationFrame(wait);
        """
    )
    assert set(seen) == {3, 4}
    assert text(track, "#film-play") == "Play"


# --- nothing is cut off -----------------------------------------------------------------------


@each_value
@pytest.mark.parametrize("width", [360, 768, 1440])
@pytest.mark.parametrize("name", ["page", "two", "track"])
def test_nothing_is_cut_off_at_any_width(driver: Any, folder: Path, name: str, width: int) -> None:
    with resize_window(driver, width, 900):
        open_page(driver, folder / f"{name}.html")
        driver.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
        frame(driver)
        assert driver.execute_script(CUT) == []
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1200, 1440])
def test_the_longest_row_of_two_matrices_fits(driver: Any, folder: Path, width: int) -> None:
    with resize_window(driver, width, 900):
        open_page(driver, folder / "two.html")
        wide, room = driver.execute_script(
            """
            const numbers = document.querySelector(".headline-numbers");
            const row = numbers.querySelector("tbody tr");
            row.querySelector("th").textContent = "Subspace distance, input to output";
            row.querySelector("td.own").textContent = "not measured";
            row.querySelector("td.sure").textContent = "not comparable";
            numbers.querySelectorAll("thead .num").forEach((e, i) => {
              if (i < 2) e.textContent = "llama-sharded";
            });
            return [numbers.scrollWidth, numbers.clientWidth];
            """
        )
        assert wide <= room
