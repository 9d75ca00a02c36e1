"""A matrix measured in parts whose states are merged, against one run over the whole."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import ours
from benchmarks.harness.answers import error
from benchmarks.harness.call import Failed
from benchmarks.harness.contest import Bench
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix
from benchmarks.harness.row import Row, over_rounds, ratio
from benchmarks.harness.truth import compute_truth

TITLE = "States of 16 parts, merged, against one run"
FULL = (Shape(50_257, 256, "float64"), Shape(50_257, 256))
TINY = (Shape(400, 12, "float64"),)
PARTS = 16
WHOLE, MERGED = "one run", f"{PARTS} parts, both rounds and merging"
SEARCHED = "spectrum.decay_fit"
#: 1 − λ_(k+1)/λ_k: compared as the ratio, from which the subtraction takes the leading digits.
GAP = "isotropy.eigengap"
WHAT = (
    "every scalar, curve and histogram of all sections but i_sphere, which takes a pass for each "
    "of its steps, and but the fitted decay; relative to the largest entry of each"
)
CUTS = "products of float32 round otherwise where blocks are cut otherwise"


def measure(bench: Bench, shapes: Sequence[Shape] = FULL) -> list[Row]:
    return [row for shape in shapes for row in compare_parts(bench, shape)]


def compare_parts(bench: Bench, shape: Shape) -> list[Row]:
    path = write_matrix(shape, bench.scratch)
    known = bench.call(compute_truth, {"path": str(path)})
    warm_cache(path)
    asked = {"path": str(path), "folder": str(bench.scratch / "parts")}
    right = partial(ours.check, truth=known)
    whole, merged = f"{WHOLE}, {shape.dtype}", f"{MERGED}, {shape.dtype}"
    runs = bench.contest(
        {
            whole: bench.contender(one_run, asked, right),
            merged: bench.contender(in_parts, asked, right),
        }
    )
    pairs = zip(runs[merged].results, runs[whole].results, strict=True)
    moved = [differences(parts["numbers"], one["numbers"]) for parts, one in pairs]
    exact = shape.dtype == "float64"
    between = f"{PARTS} parts and one run, {shape.text}"
    return [
        over_rounds(
            f"largest difference between {between}",
            [max(d for name, d in by_name.items() if not is_searched(name)) for by_name in moved],
            bound=1e-12 if exact else None,
            note=WHAT if exact else CUTS,
        ),
        over_rounds(
            f"the same of the fitted decay, {shape.text}",
            [max(d for name, d in by_name.items() if is_searched(name)) for by_name in moved],
            note="found by a search that stops when it hardly moves",
        ),
        ratio(f"time in one process, {shape.text}", runs[merged], runs[whole]),
    ]


def is_searched(name: str) -> bool:
    return name.startswith(SEARCHED)


def one_run(path: str, folder: str) -> dict[str, Any]:
    with empty_folder(Path(folder)):
        began = time.perf_counter()
        printed = embgeo("analyze", path, "--rank-order", "--no-sphere", "--json")
        return read_printed(printed, time.perf_counter() - began)


def in_parts(path: str, folder: str) -> dict[str, Any]:
    """Both rounds over all parts, one after the other, by the commands that a scheduler runs."""
    with empty_folder(Path(folder)) as home:
        plan = str(home / "plan.npz")
        began = time.perf_counter()
        first = [str(home / f"first{i}.npz") for i in range(1, PARTS + 1)]
        for i, state in enumerate(first, 1):
            embgeo("analyze", path, "--part", f"{i}/{PARTS}", "--save-state", state)
        embgeo("merge", *first, "--rank-order", "--plan", plan)
        second = [str(home / f"second{i}.npz") for i in range(1, PARTS + 1)]
        for i, state in enumerate(second, 1):
            part = ("--part", f"{i}/{PARTS}")
            embgeo("analyze", path, "--plan", plan, *part, "--save-state", state)
        printed = embgeo("merge", *second, plan, "--json")
        return read_printed(printed, time.perf_counter() - began)


@contextlib.contextmanager
def empty_folder(folder: Path) -> Iterator[Path]:
    """A new folder that is gone afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def embgeo(*arguments: str) -> str:
    """What a command prints, run in this process."""
    from embgeo.cli.app import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([*arguments, "--quiet"])
    if code:
        raise Failed(f"embgeo {' '.join(arguments)}: {err.getvalue().strip() or code}")
    return out.getvalue()


def read_printed(printed: str, seconds: float) -> dict[str, Any]:
    analysis = json.loads(printed)
    return {
        "seconds": seconds,
        "answers": ours.collect_answers(analysis),
        "numbers": numbers(analysis),
    }


def numbers(analysis: Mapping[str, Any]) -> dict[str, Any]:
    """Everything measured that is a number, by name."""
    found = {name: scalar["value"] for name, scalar in analysis["scalars"].items()}
    if found.get(GAP) is not None:
        found[GAP] = 1.0 - found[GAP]
    for series in analysis["series"]:
        found |= {f"{series['name']}: {line}": y for line, y in series["y"].items()}
    return found | {h["name"]: h["counts"] for h in analysis["histograms"]}


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, float]:
    """Of each number, by name; infinite where it is on one side only."""
    names = [*wanted, *(name for name in found if name not in wanted)]
    return {name: difference(found.get(name), wanted.get(name)) for name in names}


def difference(found: Any, wanted: Any) -> float:
    if found == wanted:
        return 0.0
    return float("inf") if found is None or wanted is None else error(found, wanted)
