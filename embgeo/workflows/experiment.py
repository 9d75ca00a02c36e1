"""Experiments: a model is trained at every value of a setting, and analyzed."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.core.quantities import subspace
from embgeo.core.values import format_number
from embgeo.core.visible import printable
from embgeo.io import load
from embgeo.io.bounded.records import RecordFormat
from embgeo.io.bounded.settings import parse_table
from embgeo.result.analysis import load_analysis
from embgeo.result.saved import JSON_NAME
from embgeo.workflows import figures
from embgeo.workflows.analyze import analyze
from embgeo.workflows.folders import write_set
from embgeo.workflows.train import require_torch
from embgeo.workflows.train_monitor import RunMonitor
from embgeo.workflows.train_task import as_tables, begin_experiment, explain_interrupt

if TYPE_CHECKING:
    from embgeo.core.progress import Progress
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


@dataclass(frozen=True, slots=True)
class SettingSweep:
    """An experiment to run."""

    settings: InanSubspace
    corpus: Corpus
    folder: Path
    seeds: tuple[int, ...]
    device: str
    command: str

    @property
    def tasks(self) -> list[tuple[Point, int]]:
        return [(point, seed) for seed in self.seeds for point in self.settings.points()]

    @property
    def steps(self) -> int:
        """Steps of one training."""
        return self.settings.count_steps(len(self.corpus.train))

    def home(self, point: Point, seed: int) -> Path:
        return self.folder / point.folder / f"seed-{seed}"

    def plan(self) -> dict[str, Any]:
        """What would be trained, JSON-ready."""
        return {
            "trainings": len(self.tasks),
            "steps": self.steps,
            "tokens": len(self.corpus.train),
            "types": len(self.corpus.vocabulary),
            "settings": asdict(self.settings),
        }

    def describe_plan(self) -> str:
        return (
            f"{len(self.tasks)} trainings of {self.steps:,} steps on {len(self.corpus.train):,} "
            f"tokens of {self.corpus.name} ({len(self.corpus.vocabulary):,} types), "
            f"2×{self.settings.hidden} LSTM, into {self.folder}; nothing was written"
        )

    def run(self, *, resume: bool, monitor: RunMonitor) -> tuple[dict[str, Any], Iterator[str]]:
        """Train and measure every point, and draw; finished points are kept.

        Returns the content of ``experiment.json``, and the lines of a summary.
        """
        record = begin(self, resume)
        points = measure_points(self, monitor)
        record = replace(record, points=tuple(points))
        EXPERIMENT.save(record, self.folder)
        monitor.progress.start("figures", 0)
        draw_sweeps(self)
        return EXPERIMENT.to_json(record), tabulate_sweeps(self, points)


def prepare_sweep(
    data: Path | str | None = None,
    *,
    settings: Mapping[str, Any] | Sequence[str] = (),
    seeds: int | None = None,
    device: str | None = None,
    out: Path | str | None = None,
    command: str = "",
) -> SettingSweep:
    """Read the settings and the text of an experiment; nothing is written.

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
    return SettingSweep(
        chosen,
        corpus,
        Path(out or f"{Path(data).resolve().name.partition('.')[0]}.{NAME}"),
        tuple(range(seeds or 1)),
        str(find_device(device or "auto")),
        command,
    )


def read_sweep_settings(settings: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Settings of the experiment, in which lists may be written as 0,0.5,1."""
    tables = as_tables(settings)
    tables |= tables.pop("experiment", {})
    for key, value in tables.items():
        if isinstance(value, dict):
            inner = f"{key}.{next(iter(value), '')}"
            cause = f"{inner} is not a setting of the experiment"
            raise BadOption(cause, where=argument("settings"))
    return {k: parse_numbers(v, k) if k in ("betas", "taus") else v for k, v in tables.items()}


def parse_numbers(value: Any, key: str) -> list[float]:
    """``0,0.5,1``, ``[0, 0.5, 1]``, one number, or nothing."""
    parts = value.split(",") if isinstance(value, str) else value
    parts = parts if isinstance(parts, list | tuple) else [parts]
    try:
        return [float(part) for part in parts if part != ""]
    except (TypeError, ValueError) as error:
        cause, where = f"{value!r} is not a list of numbers", argument("settings", key)
        raise BadOption(cause, where=where, way_out="write 0,0.5,1") from error


def begin(sweep: SettingSweep, resume: bool) -> ExperimentRecord:
    """The record before the first point."""
    from embgeo.training import inan_subspace
    from embgeo.training.loop.checkpoint import describe_dataset, list_versions

    record = ExperimentRecord(
        inan_subspace.NAME,
        inan_subspace.SOURCE,
        inan_subspace.DEVIATIONS,
        asdict(sweep.settings),
        describe_dataset(sweep.corpus),
        (),
        sweep.command,
        list_versions(),
    )
    begin_experiment(EXPERIMENT, record, sweep.folder, ("settings", "corpus"), resume=resume)
    return record


def measure_points(sweep: SettingSweep, monitor: RunMonitor) -> list[PointResult]:
    """Train and measure every point that is not finished."""
    monitor.expect(len(sweep.tasks))
    points = []
    try:
        for place, (point, seed) in enumerate(sweep.tasks, 1):
            monitor.begin(place - 1)
            began = time.perf_counter()
            points.append(measure_point(sweep, point, seed, monitor.progress))
            monitor.done(place)
            distance, seconds = points[-1].distance, time.perf_counter() - began
            name = f"{point.sweep} = {point.value:g}, seed {seed}"
            result = f"{name}: distance {format_number(distance)} ({seconds:.0f} s)"
            monitor.say(f"{place}/{len(sweep.tasks)}  {result}")
    except KeyboardInterrupt as error:
        command = f"the same command with --resume -o {shlex.quote(str(sweep.folder))}"
        kept = "finished points are kept, the one in progress starts again"
        raise explain_interrupt(sweep.folder, command, kept) from error
    return points


def measure_point(sweep: SettingSweep, point: Point, seed: int, progress: Progress) -> PointResult:
    """Train a point unless it is finished, and read its distance from the analysis."""
    home = sweep.home(point, seed)
    if not (home / JSON_NAME).is_file():
        train_and_analyze(sweep, point, seed, home, progress)
    scalar = load_analysis(home).scalar(DISTANCE)
    if scalar is None or scalar.value is None:
        raise UnreadableFile(f"its analysis holds no {DISTANCE}", where=home)
    return PointResult(
        point.sweep,
        point.value,
        point.beta,
        point.tau,
        seed,
        home.relative_to(sweep.folder).as_posix(),
        scalar.value,
        scalar.reference,
    )


def train_and_analyze(
    sweep: SettingSweep, point: Point, seed: int, home: Path, progress: Progress
) -> None:
    """Train a point and write its analysis, which marks the point as finished."""
    from embgeo.training import inan_subspace
    from embgeo.training.loop.checkpoint import MODEL_NAME

    progress.start(f"{point.sweep} = {point.value:g}, seed {seed}", sweep.steps)
    inan_subspace.train_point(
        sweep.settings,
        point,
        sweep.corpus.train,
        len(sweep.corpus.vocabulary),
        home,
        seed=seed,
        device=sweep.device,
        advance=progress.advance,
    )
    matrix = load(home / MODEL_NAME, tensor="encoder.weight", output="decoder.weight")
    sections = ("subspace", "spectrum")
    analyze(matrix, sections=sections, reference=False, command=sweep.command).save(home)


def draw_sweeps(sweep: SettingSweep) -> None:
    """Draw the distance against each parameter, as ``embgeo figures`` does."""
    for parameter in ("beta", "tau"):
        homes = [sweep.home(point, seed) for point, seed in sweep.tasks if point.sweep == parameter]
        if len({home.parent for home in homes}) < 2:
            continue  # one point is not a sweep
        made = figures.figures(
            homes,
            figure="sweep",
            format=("pdf", "svg"),
            parameter=parameter,
            command=printable(sweep.command),
        )
        write_set(sweep.folder / FIGURES / parameter, made.files)


def tabulate_sweeps(sweep: SettingSweep, points: Sequence[PointResult]) -> Iterator[str]:
    """The lines of each sweep: a table, and the path of its figure."""
    from embgeo.report.text.columns import align
    from embgeo.training.study.spread import spread

    for parameter, where in (("beta", f"τ = {sweep.settings.tau:g}"), ("tau", "β = 1")):
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
        figure = sweep.folder / FIGURES / parameter / "sweep.pdf"
        if figure.is_file():
            yield f"figure: {figure}"
