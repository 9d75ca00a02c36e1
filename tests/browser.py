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
def chromium(
    profile: Path, width: int = 1300, height: int = 900, scripts: bool = True
) -> Iterator[Any]:
    """A driver of a browser with an empty profile and a window of this size in CSS pixels."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not scripts:
        # 2 is "block" among Chromium's content settings.
        prefs = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", prefs)
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


READY = """
const done = arguments[arguments.length - 1];
const settled = () => requestAnimationFrame(() => requestAnimationFrame(() => done(true)));
const ready = () => document.documentElement.dataset.ready === "true";
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
