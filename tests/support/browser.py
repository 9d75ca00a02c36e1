"""A headless Chromium for the tests of the page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
     if (found := shutil.which(name))),
    None,
)  # fmt: skip
DRIVER = shutil.which("chromedriver")

NEEDS_BROWSER = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None,
    reason="needs chromium (or google-chrome) and chromedriver on the PATH",
)

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-sync",
    "--hide-scrollbars",
    # Smooth scrolling would move elements while a test points at them.
    "--force-prefers-reduced-motion",
)


@contextmanager
def chromium(profile: Path, width: int = 1300, height: int = 900) -> Iterator[Any]:
    """A driver of a browser with an empty profile and a window of this size in CSS pixels."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(executable_path=DRIVER))
    try:
        driver.set_script_timeout(30)
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        yield driver
    finally:
        driver.quit()


@contextmanager
def resize_window(driver: Any, width: int, height: int) -> Iterator[None]:
    """The window of a phone, or the area of a sheet of paper, for a while."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        yield
    finally:
        size = {"width": 1300, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@contextmanager
def without_scripts(driver: Any) -> Iterator[None]:
    """Pages that are loaded meanwhile run no scripts; those of the driver still run."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        yield
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


#: Figures, tables and cells that stick out of the page or of the block that holds them.
OUTSIDE = """
return [...document.querySelectorAll("svg.figure, table, .many td")].flatMap((e) => {
  const holder = e.closest("figure, .scroll, section").getBoundingClientRect();
  const box = e.getBoundingClientRect();
  if (!box.width) return [];
  const right = Math.min(holder.right, document.documentElement.clientWidth);
  return box.right > right + 1 ? [`${e.outerHTML.slice(0, 90)} ${box.right} > ${right}`] : [];
});
"""

READY = """
const done = arguments[arguments.length - 1];
const settled = () => requestAnimationFrame(() => requestAnimationFrame(() => done(true)));
const ready = () => document.documentElement.dataset.ready === "true" || !document.scripts.length;
if (ready()) settled();
else new MutationObserver((_, seen) => {
  if (ready()) { seen.disconnect(); settled(); }
}).observe(document.documentElement, { attributes: true });
"""


def open_page(driver: Any, path: Path) -> None:
    """Load the page and wait until its script is at rest, without sleeping."""
    driver.get(path.as_uri())
    assert driver.execute_async_script(READY)


def frame(driver: Any) -> None:
    """Wait for the next two frames, in which everything pending is drawn."""
    driver.execute_async_script(
        "const done = arguments[0];"
        "requestAnimationFrame(() => requestAnimationFrame(() => done()));"
    )


def complaints(driver: Any) -> list[str]:
    """What the page wrote to the console, of whatever level, since the last call."""
    return [f"{entry['level']}: {entry['message']}" for entry in driver.get_log("browser")]


def text(page: Any, selector: str) -> str:
    out: str = page.execute_script(
        "return document.querySelector(arguments[0]).textContent", selector
    )
    return out


def search(page: Any, words: str) -> None:
    from selenium.webdriver.common.by import By

    box = page.find_element(By.ID, "search")
    box.clear()
    box.send_keys(words)
    frame(page)


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
