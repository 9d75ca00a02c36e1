"""One case, as run.py calls it in a process of its own."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.harness.contest import Bench


def measure_case(
    name: str, scratch: str, runs: int | None, peers: str | None, before: str | None, tiny: bool
) -> dict[str, Any]:
    """The lines that ``benchmarks/NAME.py`` gives; at tiny sizes no bound means anything."""
    module = import_module(f"benchmarks.{name}")
    packages, earlier = (python and Path(python) for python in (peers, before))
    bench = Bench(Path(scratch), runs, packages or None, earlier or None)
    rows = module.measure(bench, module.TINY if tiny else module.FULL)
    if tiny:
        rows = [replace(row, bound=None) for row in rows]
    return {"title": module.TITLE, "rows": [row.to_json() for row in rows]}
