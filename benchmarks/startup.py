"""How long ``embgeo --help`` takes, next to the import of typer alone."""

from __future__ import annotations

from benchmarks.harness.call import Wrong
from benchmarks.harness.command import EMBGEO, PYTHON, command
from benchmarks.harness.contest import Bench
from benchmarks.harness.row import Row, ratio

TITLE = "Start-up"
#: Rounds of a fraction of a second each.
FULL, TINY = 21, 1
OURS, TYPER = "embgeo --help", 'python -c "import typer"'


def measure(bench: Bench, rounds: int = FULL) -> list[Row]:
    contenders = {
        OURS: command([*EMBGEO, "--help"], check_help),
        TYPER: command([*PYTHON, "-c", "import typer"], lambda _: {}),
    }
    for once in contenders.values():
        once()
    runs = bench.contest(contenders, rounds)
    return [ratio(OURS, runs[OURS], runs[TYPER], 2.0, "whole processes")]


def check_help(printed: str) -> dict[str, float]:
    if "analyze" not in printed:
        raise Wrong("embgeo --help does not name its commands")
    return {}
