"""The items of figures, from analyses, comparisons, studies and logs of runs."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from embgeo.charts.items import ChartItem, compared_items, log_curves, method_items
from embgeo.comparison.comparison import (
    COMPARISON_NAME,
    Comparison,
    distinguish_names,
    load_comparison,
)
from embgeo.core.arguments import refuse_if, refuse_type
from embgeo.core.errors import UnreadableFile, argument
from embgeo.result.analysis import Analysis, load_analysis
from embgeo.result.saved import JSON_NAME
from embgeo.training.study.log import LOG_NAME, read_log
from embgeo.training.study.record import STUDY_NAME, load_study

NUMBER = r"[=_:-]?(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
#: A result, or the path of one.
Result = Analysis | Comparison | Path | str


def load_items(
    results: Iterable[Result] | Result,
    labels: Sequence[str] = (),
    xs: Sequence[float] = (),
    parameter: str = "",
) -> list[ChartItem]:
    """Load one item for each analysis or run, in the order of the results.

    A comparison gives its members, and the run if it is a track; a study gives its methods. A path
    names a folder, or the JSON file in it. Without `xs`, the values of
    `parameter` are parsed from the paths.
    """
    if isinstance(results, Analysis | Comparison | Path | str):
        results = [results]
    results = list(results)
    refuse_if(not results, argument("results"), "there is nothing to draw", "give one")
    for result in results:
        if not isinstance(result, Analysis | Comparison | Path | str):
            raise refuse_type(result, "results", "analyses, comparisons, or folders of them")
    of_results = [list_items(result) for result in results]
    pairs = [pair for of_result in of_results for pair in of_result]
    items = [item for item, _ in pairs]
    paths = [path for _, path in pairs]
    if xs:
        check_number(xs, items, "x")
        items = [replace(s, x=x) for s, x in zip(items, xs, strict=True)]
    elif parameter:
        values = [parse_parameter(str(path), parameter) for path in paths]
        unknown = all(value is None for value in values)
        cause, way_out = f"no path names a value of {parameter}", argument("x", "0,0.5,1")
        refuse_if(unknown, argument("parameter"), cause, f"give the values with {way_out}")
        items = [replace(s, x=x) for s, x in zip(items, values, strict=True)]
    names = distinguish_names([s.label for s in items], paths)
    if labels and len(labels) == len(results) < len(items):
        names = name_runs(names, items, of_results, labels)
    elif labels:
        check_number(labels, items, "label")
        names = list(labels)
    return [replace(s, label=name) for s, name in zip(items, names, strict=True)]


def name_runs(
    names: Sequence[str],
    items: Sequence[ChartItem],
    of_results: Sequence[Sequence[object]],
    labels: Sequence[str],
) -> list[str]:
    """Give each result a label: of a track it names the run, not the checkpoints."""
    given = [label for held, label in zip(of_results, labels, strict=True) for _ in held]
    counts = [len(held) for held in of_results for _ in held]
    named = [count == 1 or s.track is not None for s, count in zip(items, counts, strict=True)]
    if sum(named) < len(labels):
        check_number(labels, items, "label")
    return [b if is_named else a for a, b, is_named in zip(names, given, named, strict=True)]


def check_number(values: Sequence[object], items: Sequence[ChartItem], name: str) -> None:
    """Refuse more or fewer values than there are items."""
    labels = ", ".join(item.label for item in items)
    cause = f"{len(values)} for {len(items)} analyses ({labels})"
    refuse_if(len(values) != len(items), argument(name), cause, "give one for each")


def list_items(result: Result) -> list[tuple[ChartItem, Path]]:
    """List the items of a result, each with a path that names it."""
    if isinstance(result, Analysis):
        file = Path(str(result.provenance.get("file") or "matrix"))
        return [(ChartItem(file.stem, result), file)]
    if isinstance(result, Comparison):
        return list_members(result, Path("comparison"))
    path = Path(result)
    names = (STUDY_NAME, COMPARISON_NAME, JSON_NAME, LOG_NAME)
    home = path.parent if path.name in names and not path.is_dir() else path
    held = [name for name in names if (path / name).is_file() or path.name == name]
    if STUDY_NAME in held:
        return list_methods(home)
    if COMPARISON_NAME in held:
        return list_members(load_comparison(home), home)
    analysis = load_analysis(home) if JSON_NAME in held else None
    step_curves = log_curves(read_log(home / LOG_NAME)) if LOG_NAME in held else {}
    if analysis is None and not step_curves:
        raise UnreadableFile(
            "no saved analysis, comparison or log of a run" if path.exists() else "no such folder",
            where=path,
            way_out="make an analysis with: embgeo analyze CHECKPOINT",
        )
    return [(ChartItem(folder_name(home), analysis, step_curves), home)]


def list_methods(home: Path) -> list[tuple[ChartItem, Path]]:
    """List each method of a study: its curves, and its analysis for the first common seed."""
    training = load_study(home)
    places = [home / training.choose_shown_run(method.name).folder for method in training.methods]
    return [
        (replace(item, analysis=load_analysis(place)), place)
        for item, place in zip(method_items(training), places, strict=True)
    ]


def list_members(comparison: Comparison, home: Path) -> list[tuple[ChartItem, Path]]:
    """List the compared analyses and, of a track, the run."""
    items = compared_items(comparison)
    members = zip(items, comparison.members, strict=False)
    found = [(replace(s, label=m.name, x=m.step, place=None), Path(m.given)) for s, m in members]
    runs = [replace(s, label=folder_name(home)) for s in items[len(comparison.members) :]]
    return [*found, *((run, home) for run in runs)]


def folder_name(folder: Path) -> str:
    """Return the name of a saved result in legends."""
    return (folder.name or folder.resolve().name).removesuffix(".embgeo")


def parse_parameter(name: str, parameter: str) -> float | None:
    """Parse the finite number behind the last mention of `parameter`, or None.

    >>> parse_parameter("runs/beta=0.25.embgeo", "beta"), parse_parameter("tau2", "tau")
    (0.25, 2.0)
    """
    # "beta" does not mention "eta".
    pattern = rf"(?<![^\W\d_]){re.escape(parameter)}{NUMBER}"
    numbers = re.findall(pattern, name, re.IGNORECASE)
    value = float(numbers[-1]) if numbers else math.nan
    return value if math.isfinite(value) else None
