"""``embgeo train --experiment inan-subspace``: Figure 1 of Inan et al., by trained models."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.core.progress import RunMonitor
from embgeo.core.quantities import subspace
from embgeo.core.text import printable
from embgeo.core.values import format_number
from embgeo.io import load
from embgeo.io.bounded.records import RecordFormat
from embgeo.io.bounded.settings import parse_table
from embgeo.result.analysis import load_analysis
from embgeo.result.saved import JSON_NAME
from embgeo.workflows import figures
from embgeo.workflows.analyze import analyze
from embgeo.workflows.folders import ELSEWHERE, write_set
from embgeo.workflows.train import check_runs_folder, explain_interrupt, require_torch
from embgeo.workflows.train_settings import as_tables

if TYPE_CHECKING:
    from embgeo.training.data import Corpus
    from embgeo.training.inan_subspace import InanSubspace, Point

RECORD_NAME = "experiment.json"
FIGURES = "figures"
DISTANCE = subspace.DISTANCE.name


@dataclass(frozen=True, slots=True)
class PointResult:
    """A measured training; `folder` is relative to the folder of the experiment."""

    sweep: str
    value: float
    beta: float
    tau: float
    seed: int
    folder: str
    distance: float
    chance: float | None


@dataclass(frozen=True, slots=True)
class ExperimentRecord:
    """The content of ``experiment.json``."""

    name: str
    source: str
    deviations: tuple[str, ...]
    settings: Mapping[str, Any]
    corpus: Mapping[str, Any]
    points: tuple[PointResult, ...]
    command: str
    versions: Mapping[str, str]


EXPERIMENT = RecordFormat(
    "embgeo.experiment",
    1,
    ExperimentRecord,
    RECORD_NAME,
    what="an experiment",
    again="choose another folder",
)


def plan_sweep(
    data: Path | str | None = None, **arguments: Any
) -> tuple[dict[str, Any], list[str]]:
    """Return what :func:`run_sweep` would train, JSON-ready and as a line; nothing is written."""
    settings, corpus, folder, seeds, _ = prepare_sweep(data, **arguments)
    trainings, steps = len(seeds) * len(settings.points()), settings.count_steps(len(corpus.train))
    plan = {
        "trainings": trainings,
        "steps": steps,
        "tokens": len(corpus.train),
        "types": len(corpus.vocabulary),
        "settings": asdict(settings),
    }
    line = (
        f"{trainings} trainings of {steps:,} steps on {len(corpus.train):,} tokens of "
        f"{corpus.name} ({len(corpus.vocabulary):,} types), 2×{settings.hidden} LSTM, into "
        f"{folder}; nothing was written"
    )
    return plan, [line]


def prepare_sweep(
    data: Path | str | None = None,
    *,
    settings: Mapping[str, Any] | Sequence[str] = (),
    seeds: int | None = None,
    device: str | None = None,
    out: Path | str | None = None,
) -> tuple[InanSubspace, Corpus, Path, tuple[int, ...], str]:
    """Return the settings, text, folder, seeds and device of an experiment.

    Arguments are as in :func:`embgeo.train`, but `settings` belong to the experiment, such as
    ``{"betas": [0, 0.5, 1]}``.
    """
    require_torch()
    from embgeo.training.data import columns, load_corpus
    from embgeo.training.inan_subspace import NAME, InanSubspace
    from embgeo.training.loop.distributed import find_device

    if data is None:
        way_out = f"give a file or a folder with {argument('data')}"
        raise BadOption("no text is given", way_out=way_out)
    table = read_sweep_settings(settings)
    chosen: InanSubspace = parse_table(InanSubspace, table, argument("settings"), None)
    chosen.check()
    corpus = load_corpus(Path(data), min_count=1, tokens=chosen.tokens, shuffle=False)
    columns(corpus.train, chosen.batch)  # refuses too large a batch before anything is written
    folder = Path(out or f"{Path(data).resolve().name.partition('.')[0]}.{NAME}")
    return chosen, corpus, folder, tuple(range(seeds or 1)), str(find_device(device or "auto"))


def read_sweep_settings(settings: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Read the settings of the experiment, in which lists may be written as 0,0.5,1."""
    tables = as_tables(settings)
    tables |= tables.pop("experiment", {})
    for key, value in tables.items():
        if isinstance(value, dict):
            inner = f"{key}.{next(iter(value), '')}"
            cause = f"{inner} is not a setting of the experiment"
            raise BadOption(cause, where=argument("settings"))
    return {k: parse_numbers(v, k) if k in ("betas", "taus") else v for k, v in tables.items()}


def parse_numbers(value: Any, key: str) -> list[float]:
    """Parse ``0,0.5,1``, ``[0, 0.5, 1]``, one number, or nothing."""
    parts = value.split(",") if isinstance(value, str) else value
    parts = parts if isinstance(parts, list | tuple) else [parts]
    try:
        return [float(part) for part in parts if part != ""]
    except (TypeError, ValueError) as error:
        cause, where = f"{value!r} is not a list of numbers", argument("settings", key)
        raise BadOption(cause, where=where, way_out="write 0,0.5,1") from error


def run_sweep(
    data: Path | str | None = None,
    *,
    settings: Mapping[str, Any] | Sequence[str] = (),
    seeds: int | None = None,
    device: str | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    command: str = "",
    monitor: RunMonitor | None = None,
) -> tuple[dict[str, Any], Iterator[str]]:
    """Train and measure every point, and draw; finished points are kept.

    Returns the content of ``experiment.json``, and the lines of a summary.
    """
    monitor = monitor or RunMonitor()
    chosen, corpus, folder, all_seeds, device = prepare_sweep(
        data, settings=settings, seeds=seeds, device=device, out=out
    )
    record = begin(chosen, corpus, folder, command, resume=resume)
    tasks = [(point, seed) for seed in all_seeds for point in chosen.points()]
    monitor.expect(len(tasks))
    points = []
    try:
        for place, (point, seed) in enumerate(tasks, 1):
            name = f"{point.sweep} = {point.value:g}, seed {seed}"
            monitor.begin(place - 1)
            began = time.perf_counter()
            home = folder / point.folder / f"seed-{seed}"
            if not (home / JSON_NAME).is_file():
                monitor.progress.start(name, chosen.count_steps(len(corpus.train)))
                train_and_analyze(
                    chosen, point, seed, corpus, home, device, command, monitor.progress.advance
                )
            points.append(read_point(point, seed, home, folder))
            monitor.done(place)
            distance, seconds = points[-1].distance, time.perf_counter() - began
            result = f"{name}: distance {format_number(distance)} ({seconds:.0f} s)"
            monitor.say(f"{place}/{len(tasks)}  {result}")
    except KeyboardInterrupt as error:
        again = f"the same command with --resume -o {shlex.quote(str(folder))}"
        kept = "finished points are kept, the one in progress starts again"
        raise explain_interrupt(folder, again, kept) from error
    record = replace(record, points=tuple(points))
    EXPERIMENT.save(record, folder)
    monitor.progress.start("figures", 0)
    for parameter in ("beta", "tau"):
        draw_sweep(parameter, points, folder, command)
    return EXPERIMENT.to_json(record), tabulate_sweeps(chosen.tau, points, folder)


def begin(
    settings: InanSubspace, corpus: Corpus, folder: Path, command: str, *, resume: bool
) -> ExperimentRecord:
    """Write the record without points, or on resume compare it with the saved one."""
    from embgeo.training import inan_subspace
    from embgeo.training.loop.checkpoint import describe_dataset, list_versions

    record = ExperimentRecord(
        inan_subspace.NAME,
        inan_subspace.SOURCE,
        inan_subspace.DEVIATIONS,
        asdict(settings),
        describe_dataset(corpus),
        (),
        command,
        list_versions(),
    )
    check_runs_folder(folder, resume=resume, own=RECORD_NAME)
    if not resume:
        EXPERIMENT.save(record, folder)
        return record
    before, now = EXPERIMENT.to_json(EXPERIMENT.load(folder)), EXPERIMENT.to_json(record)
    differs = any(before[key] != now[key] for key in ("settings", "corpus"))
    cause = "holds the experiment with other settings or on another text"
    refuse_if(differs, str(folder), cause, ELSEWHERE)
    return record


def train_and_analyze(
    settings: InanSubspace,
    point: Point,
    seed: int,
    corpus: Corpus,
    home: Path,
    device: str,
    command: str,
    advance: Callable[[int], None],
) -> None:
    """Train a point and write its analysis, which marks the point as finished."""
    from embgeo.training.inan_subspace import train_point
    from embgeo.training.loop.checkpoint import MODEL_NAME

    size = len(corpus.vocabulary)
    train_point(
        settings, point, corpus.train, size, home, seed=seed, device=device, advance=advance
    )
    matrix = load(home / MODEL_NAME, tensor="encoder.weight", output="decoder.weight")
    analyze(matrix, sections=("subspace", "spectrum"), reference=False, command=command).save(home)


def read_point(point: Point, seed: int, home: Path, folder: Path) -> PointResult:
    """Read the distance of a finished point."""
    scalar = load_analysis(home).scalar(DISTANCE)
    if scalar is None or scalar.value is None:
        raise UnreadableFile(f"its analysis holds no {DISTANCE}", where=home)
    own = point.sweep, point.value, point.beta, point.tau, seed
    place = home.relative_to(folder).as_posix()
    return PointResult(*own, place, scalar.value, scalar.reference)


def draw_sweep(parameter: str, points: Sequence[PointResult], folder: Path, command: str) -> None:
    """Draw the distance against a parameter, as ``embgeo figures`` does."""
    own = [one for one in points if one.sweep == parameter]
    if len({one.value for one in own}) < 2:
        return  # one point is not a sweep
    made = figures.figures(
        [folder / one.folder for one in own],
        figure="sweep",
        format=("pdf", "svg"),
        parameter=parameter,
        command=printable(command),
    )
    write_set(folder / FIGURES / parameter, made.files)


def tabulate_sweeps(tau: float, points: Sequence[PointResult], folder: Path) -> Iterator[str]:
    """Yield the lines of each sweep: a table, and the path of its figure."""
    from embgeo.core.text import align
    from embgeo.training.study.spread import spread

    for parameter, where in (("beta", f"τ = {tau:g}"), ("tau", "β = 1")):
        own = [one for one in points if one.sweep == parameter]
        if not own:
            continue
        rows = [[parameter, "subspace distance", "chance"]]
        for value in dict.fromkeys(one.value for one in own):
            held = spread([one.distance for one in own if one.value == value])
            chance = next(one.chance for one in own if one.value == value)
            if held is not None:
                rows.append([f"{value:g}", held.text, format_number(chance or 0.0)])
        yield f"input against output embedding at {where}"
        yield from (f"  {line}" for line in align(rows))
        figure = folder / FIGURES / parameter / "sweep.pdf"
        if figure.is_file():
            yield f"figure: {figure}"
