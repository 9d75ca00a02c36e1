"""What figures draw, from paths: saved analyses, comparisons, logs of training runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from embgeo.core.errors import BadOption, UnreadableFile

if TYPE_CHECKING:
    from embgeo.charts.paper.base import Subject
    from embgeo.comparison.comparison import Comparison
    from embgeo.training.study.log import Log


def load_subjects(
    paths: Sequence[Path],
    labels: Sequence[str] = (),
    xs: Sequence[float] = (),
    parameter: str = "",
) -> list[Subject]:
    """One subject an analysis or run, in the order of the paths.

    Parameters
    ----------
    paths
        Folders of analyses, of comparisons (which stand for their members, and for a run if they
        track one), of trainings (which stand for the first run of each method) or of runs with a
        ``metrics.jsonl``, or the JSON files themselves.
    labels
        What to call them; the names of the folders by default.
    xs
        Values of the swept parameter.
    parameter
        Its name, by which a value is looked for in the paths where `xs` gives none.

    Raises
    ------
    EmbgeoError
    """
    from embgeo.charts.paper.parameter import parameter_value
    from embgeo.comparison.names import told_apart

    found = [pair for path in paths for pair in load_path(path)]
    subjects = [subject for subject, _ in found]
    given = [path for _, path in found]
    if xs:
        check_number(xs, subjects, "--x")
        subjects = [replace(s, x=x) for s, x in zip(subjects, xs, strict=True)]
    elif parameter:
        values = [parameter_value(str(path), parameter) for path in given]
        if not any(value is not None for value in values):
            raise BadOption(
                f"no path names a value of {parameter}",
                where="--parameter",
                way_out="give the values with --x 0,0.5,1",
            )
        subjects = [replace(s, x=x) for s, x in zip(subjects, values, strict=True)]
    if labels:
        check_number(labels, subjects, "--label")
        return [replace(s, label=label) for s, label in zip(subjects, labels, strict=True)]
    names = told_apart([s.label for s in subjects], given)
    return [replace(s, label=name) for s, name in zip(subjects, names, strict=True)]


def check_number(values: Sequence[object], subjects: Sequence[Subject], option: str) -> None:
    if len(values) != len(subjects):
        raise BadOption(
            f"{len(values)} for {len(subjects)} analyses ({', '.join(s.label for s in subjects)})",
            where=option,
            way_out="give one for each",
        )


def load_path(path: Path) -> list[tuple[Subject, Path]]:
    """What one path stands for, each with a path that names it."""
    from embgeo.charts.paper.base import Subject
    from embgeo.comparison.files import COMPARISON_NAME, load_comparison
    from embgeo.result.analysis import load_analysis
    from embgeo.result.saved import JSON_NAME
    from embgeo.training.study.files import TRAINING_NAME
    from embgeo.training.study.log import LOG_NAME, read_log

    file_names = (TRAINING_NAME, COMPARISON_NAME, JSON_NAME, LOG_NAME)
    home = path.parent if path.name in file_names and not path.is_dir() else path
    held = [name for name in file_names if (path / name).is_file() or path.name == name]
    if TRAINING_NAME in held:
        return methods(home)
    if COMPARISON_NAME in held:
        return members(load_comparison(home), home)
    analysis = load_analysis(home) if JSON_NAME in held else None
    log = read_log(home / LOG_NAME) if LOG_NAME in held else None
    if analysis is None and log is None:
        raise UnreadableFile(
            "no saved analysis, comparison or log of a run" if path.exists() else "no such folder",
            where=path,
            way_out="make an analysis with: embgeo analyze CHECKPOINT",
        )
    return [(Subject(folder_name(home), analysis, log), home)]


def methods(home: Path) -> list[tuple[Subject, Path]]:
    """Each method of a training, by its run with the first seed that all have."""
    from embgeo.charts.paper.base import Subject
    from embgeo.result.analysis import load_analysis
    from embgeo.training.study.files import load_training
    from embgeo.training.study.log import LOG_NAME, read_log

    training = load_training(home)
    found = []
    for method in training.methods:
        place = home / training.shown_run(method.name).folder
        log = read_log(place / LOG_NAME)
        found.append((Subject(method.name, load_analysis(place), log), place))
    return found


def folder_name(folder: Path) -> str:
    return (folder.name or folder.resolve().name).removesuffix(".embgeo")


def members(comparison: Comparison, home: Path) -> list[tuple[Subject, Path]]:
    """The compared analyses, and the run that they make up where they are a track."""
    from embgeo.charts.paper.base import Subject

    found = [(Subject(m.name, m.analysis, x=m.step), Path(m.given)) for m in comparison.members]
    if comparison.track is not None:
        found.append((Subject(folder_name(home), log=track_log(comparison)), home))
    return found


def track_log(comparison: Comparison) -> Log:
    """The curves of a track; those that take two matrices are named by what they are against."""
    import numpy as np

    from embgeo.training.study.log import Log

    track = comparison.track
    assert track is not None
    steps = np.array(track.steps)
    curves, titles = {}, {}
    for curve in track.curves:
        values = np.array([np.nan if v is None else v for v in curve.values], dtype=np.float64)
        known = np.isfinite(values)
        if not known.any():
            continue
        suffix = f".{curve.against}" if curve.against else ""
        name = f"{curve.quantity.name}{suffix}"
        curves[name] = steps[known], values[known]
        beside = f", to the {curve.against}" if curve.against else ""
        titles[name] = f"{curve.quantity.title}{beside}"
    return Log(curves, titles)
