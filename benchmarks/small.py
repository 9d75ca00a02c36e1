"""A small matrix at the command line: everything from the shell's prompt to the report."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import ours
from benchmarks.harness.answers import errors
from benchmarks.harness.call import Wrong
from benchmarks.harness.command import EMBGEO, PYTHON, command
from benchmarks.harness.contest import Bench, Round
from benchmarks.harness.matrices import Shape, warm_cache, write_matrix
from benchmarks.harness.row import Row, seconds
from benchmarks.harness.truth import compute_truth

TITLE = "A small matrix at the command line"
FULL = Shape(30_000, 384)
TINY = Shape(400, 12)
WHOLE, PART = "embgeo analyze, whole report", "embgeo analyze --json, spectrum and isotropy"
IMPORTS = "imports alone"


def measure(bench: Bench, shape: Shape = FULL) -> list[Row]:
    path = write_matrix(shape, bench.scratch)
    known = bench.call(compute_truth, {"path": str(path)})
    warm_cache(path)
    out = bench.scratch / "small.embgeo"
    analyze = [*EMBGEO, "analyze", str(path)]
    labels = side_files(shape.rows, bench.scratch)
    sections = ["--json", "--sections", "spectrum,isotropy"]

    def whole() -> Round:
        shutil.rmtree(out, ignore_errors=True)
        once = command([*analyze, *labels, "--out", str(out)], lambda _: check_report(out, known))
        return once()

    runs = bench.contest(
        {
            WHOLE: whole,
            PART: command([*analyze, "--quiet", *sections], partial(check_json, known=known)),
            IMPORTS: command(
                [*PYTHON, "-c", "import numpy, scipy.linalg, matplotlib.figure"], lambda _: {}
            ),
        }
    )
    shutil.rmtree(out)
    return [
        seconds(f"{WHOLE}, {shape.text}", runs[WHOLE], 5.0, "tokens and counts, every section"),
        seconds(f"{PART}, {shape.text}", runs[PART], 1.5),
        seconds("import of numpy, scipy.linalg, matplotlib.figure", runs[IMPORTS]),
    ]


def side_files(rows: int, folder: Path) -> list[str]:
    """Options that name the tokens and their counts."""
    names = ours.labels(rows)
    tokens, counts = folder / f"{rows}.tokens.txt", folder / f"{rows}.counts.tsv"
    tokens.write_text("".join(f"{name}\n" for name in names))
    pairs = zip(names, ours.counts(rows).astype(int), strict=True)
    counts.write_text("".join(f"{name}\t{count}\n" for name, count in pairs))
    return ["--tokens", str(tokens), "--counts", str(counts)]


def check_report(out: Path, known: dict[str, Any]) -> dict[str, float]:
    analysis = json.loads((out / "analysis.json").read_text("utf-8"))
    found = {name.partition(".")[0] for name in analysis["scalars"]}
    if missing := set(ours.EVERY) - found:
        raise Wrong(f"sections without values: {', '.join(sorted(missing))}")
    page = (out / "report.html").read_text("utf-8")
    if "</html>" not in page or "<svg" not in page:
        raise Wrong("report.html is not a report")
    return ours.check(ours.collect_answers(analysis), known)


def check_json(printed: str, known: dict[str, Any]) -> dict[str, float]:
    found = ours.collect_answers(json.loads(printed))
    names = ("singular_values", "top_share", "effective_rank", "i1", "i2", "isoscore")
    return errors("embgeo", found, known, {name: ours.TOLERANCES[name] for name in names})
