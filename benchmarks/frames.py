"""Time of a frame while the map of a report is dragged, from a trace of Chromium.

    python benchmarks/frames.py [--rows 260000] [--frames 300] [--trace FILE]

Makes a report of random rows, opens it in headless Chromium without a graphics card and drags the
map by a pixel or two a frame, as often as the browser asks for a frame. That the map moved by
exactly as much, and was drawn once a frame, is checked before a time is printed. ``--trace`` keeps
the trace, which Chromium's developer tools and Perfetto open.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import embgeo
from tests.support.browser import CHROMIUM, DRIVER, FLAGS, READY

CATEGORIES = "toplevel,devtools.timeline,blink.user_timing"
#: What one turn of a thread's loop is called; the longest of nested ones counts.
TURNS = ("RunTask", "ThreadControllerImpl::RunTask")
#: Frames before the first that counts, in which the browser compiles the script.
WARM_UP = 60
DRAG = """
const [frames, done] = arguments;
const { map } = embgeo;
const before = { center: map.center, drawn: map.frames };
const times = [];
let dx = 0, dy = 0;
const step = (now) => {
  times.push(now);
  if (times.length > frames) {
    const [x, y] = map.center;
    const moved = [(before.center[0] - x) * map.scale, (y - before.center[1]) * map.scale];
    done({ times, drawn: map.frames - before.drawn, asked: [dx, dy], moved });
    return;
  }
  const turn = times.length % 100 < 50 ? 1 : -1;
  map.pan(2 * turn, turn);
  dx += 2 * turn;
  dy += turn;
  requestAnimationFrame(step);
};
performance.mark("drag");
requestAnimationFrame(step);
"""


class Wrong(Exception):
    """The map is not where it should be."""


def write_report(rows: int, folder: Path) -> Path:
    """A report whose map shows this many rows: a Gaussian cloud and its mean."""
    rng = np.random.default_rng(0)
    rows_of_cone = rng.standard_normal((rows, 8), dtype=np.float32) + np.float32(0.5)
    found = embgeo.analyze(rows_of_cone, sections=("projection",), reference=False)
    page = folder / "report.html"
    embgeo.render(found, page)
    return page


def drag(page: Path, frames: int, profile: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the page says of the frames, and the events of the trace."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={profile}", "--window-size=1440,1000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    options.add_experimental_option("perfLoggingPrefs", {"traceCategories": CATEGORIES})
    driver: Any = webdriver.Chrome(options=options, service=Service(executable_path=DRIVER))
    try:
        driver.set_script_timeout(120)
        driver.get(page.as_uri())
        driver.execute_async_script(READY)
        driver.execute_async_script(DRAG, WARM_UP)
        said = driver.execute_async_script(DRAG, frames)
        # Chromedriver hands the trace out once, from the start of the session.
        messages = [json.loads(one["message"])["message"] for one in driver.get_log("performance")]
    finally:
        driver.quit()
    return said, [one["params"] for one in messages if one["method"] == "Tracing.dataCollected"]


def cut(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events since the last drag began, and the names of the threads."""
    began = max(event["ts"] for event in events if event["name"] == "drag")
    return [one for one in events if one["ts"] >= began or one["name"] == "thread_name"]


def check(said: Mapping[str, Any], frames: int) -> None:
    """Stop unless each frame was drawn and the map is where it was dragged to."""
    if said["drawn"] != frames:
        raise Wrong(f"{said['drawn']} frames were drawn, {frames} were asked for")
    if not np.allclose(said["moved"], said["asked"], atol=1e-6):
        raise Wrong(f"the map moved by {said['moved']} pixels, it was dragged by {said['asked']}")


def busy_by_thread(events: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Milliseconds that each named thread was at work; of nested turns the outermost counts."""
    names, turns = {}, defaultdict(list)
    for event in events:
        thread = (event.get("pid"), event.get("tid"))
        if event.get("name") == "thread_name":
            names[thread] = event["args"]["name"]
        elif event.get("name") in TURNS and "dur" in event:
            turns[thread].append((event["ts"], event["ts"] + event["dur"]))
    busy: dict[str, float] = defaultdict(float)
    for thread, intervals in turns.items():
        end = 0
        for first, last in sorted(intervals):
            busy[names.get(thread, "unnamed")] += max(0, last - max(first, end)) / 1000
            end = max(end, last)
    return busy


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=260_000)
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--trace", type=Path, help="where the trace is kept")
    options = parser.parse_args()
    if CHROMIUM is None or DRIVER is None:
        raise SystemExit("nothing measured: chromium and chromedriver are needed")
    with tempfile.TemporaryDirectory() as scratch:
        page = write_report(options.rows, Path(scratch))
        said, events = drag(page, options.frames, Path(scratch) / "profile")
    check(said, options.frames)
    if options.trace:
        options.trace.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    intervals = np.diff(said["times"])
    median, high = np.quantile(intervals, [0.5, 0.95])
    print(f"{options.rows:,} rows, {len(intervals)} frames: moved as dragged, each frame drawn")
    print(f"between frames: {median:.1f} ms (median), {high:.1f} ms (95%)")
    print("at work, a frame:")
    for name, spent in sorted(busy_by_thread(cut(events)).items(), key=lambda item: -item[1])[:6]:
        print(f"  {spent / options.frames:5.1f} ms  {name}")


if __name__ == "__main__":
    main()
