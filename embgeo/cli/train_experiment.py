"""``embgeo train --experiment``: sweeps of a paper, measured by the analysis, with their figure."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.cli.outputs import record_bytes, write_set
from embgeo.cli.shared import command_line, printable
from embgeo.cli.train_folder import check_runs_folder, interrupted
from embgeo.cli.train_progress import Watch, watch
from embgeo.cli.train_settings import Given
from embgeo.cli.train_summary import aligned
from embgeo.core.errors import BadOption, UnreadableFile
from embgeo.core.values import format_number

if TYPE_CHECKING:
    from embgeo.core.progress import Progress
    from embgeo.result.analysis import Analysis
    from embgeo.training.data import Corpus
    from embgeo.training.experiments import InanSubspace, Point

FORMAT = "embgeo.experiment"
FORMAT_VERSION = 1
RECORD_NAME = "experiment.json"
DISTANCE = "subspace.distance"
FIGURES = "figures"


@dataclass(frozen=True, slots=True)
class Sweep:
    """The experiment as it was asked for.

    Attributes
    ----------
    settings : InanSubspace
    corpus : Corpus
    folder : Path
    seeds : tuple of int
    device : str
    """

    settings: InanSubspace
    corpus: Corpus
    folder: Path
    seeds: tuple[int, ...]
    device: str

    @property
    def tasks(self) -> list[tuple[Point, int]]:
        return [(point, seed) for seed in self.seeds for point in self.settings.points()]

    def home(self, point: Point, seed: int) -> Path:
        return self.folder / point.folder / f"seed-{seed}"


def run_experiment(name: str, given: Given, *, dry_run: bool, json_: bool, quiet: bool) -> None:
    """Train every point of the sweeps, measure it, and draw the figure.

    Raises
    ------
    EmbgeoError
    """
    sweep = asked(name, given)
    if dry_run:
        print(json.dumps(plan(sweep), indent=1) if json_ else plan_text(sweep))
        return
    check_runs_folder(sweep.folder, resume=given.resume, own=RECORD_NAME)
    begin(sweep)
    with watch(len(sweep.tasks), quiet) as watching:
        try:
            found = points(sweep, watching)
            watching.progress.start("figures", 0)
            draw(sweep)
        except KeyboardInterrupt as error:
            raise interrupted(
                sweep.folder,
                f"the same command with --resume -o {sweep.folder}",
                "finished points are kept, the one in progress begins anew",
            ) from error
    record = record_of(sweep, found)
    write_set(sweep.folder, {RECORD_NAME: record_bytes(record)})
    if json_:
        print(json.dumps(record, indent=1))
    elif not quiet:
        summary(sweep, found)


def points(sweep: Sweep, watching: Watch) -> list[dict[str, Any]]:
    """Every point, measured."""
    found = []
    for place, (point, seed) in enumerate(sweep.tasks):
        watching.begin(place)
        began = time.perf_counter()
        one = measured(sweep, point, seed, watching.progress)
        found.append(one)
        watching.done(place + 1)
        seconds = time.perf_counter() - began
        watching.say(f"{place + 1}/{len(sweep.tasks)}  {told(one, seconds)}")
    return found


def asked(name: str, given: Given) -> Sweep:
    """The experiment with its settings and its text.

    Raises
    ------
    EmbgeoError
    """
    from embgeo.io.bounded.settings import parse_table
    from embgeo.training.data import columns, load_corpus
    from embgeo.training.experiments import EXPERIMENTS, InanSubspace
    from embgeo.training.loop.device import device_of

    known = [module.NAME for module in EXPERIMENTS]
    if name not in known:
        raise BadOption(
            f"there is no {name!r}", where="--experiment", way_out=f"there is {', '.join(known)}"
        )
    if given.data is None:
        raise BadOption("no text is given", way_out="give a file or a folder with --data")
    settings: InanSubspace = parse_table(InanSubspace, settings_given(given), "--set", None)
    settings.check()
    corpus = load_corpus(given.data, min_count=1, tokens=settings.tokens)
    columns(corpus.train, settings.batch)  # refuses too large a batch before anything is written
    return Sweep(
        settings,
        corpus,
        given.out or Path(f"{given.data.resolve().name.partition('.')[0]}.{name}"),
        tuple(range(given.seeds or 1)),
        str(device_of(given.device or "auto")),
    )


def settings_given(given: Given) -> dict[str, Any]:
    """What --set says, in which lists may be written as 0,0.5,1."""
    from embgeo.cli.train_settings import assignment

    found: dict[str, Any] = {}
    for text in given.set_:
        (*outer, key), value = assignment(text)
        if outer not in ([], ["experiment"]):
            raise BadOption(
                f"{'.'.join([*outer, key])} is no setting of the experiment", where="--set"
            )
        if key in ("betas", "taus"):
            value = numbers(value, key)
        found[key] = value
    return found


def numbers(value: Any, key: str) -> list[float]:
    """``0,0.5,1``, ``[0, 0.5, 1]``, one number, or nothing."""
    parts = value.split(",") if isinstance(value, str) else value
    parts = parts if isinstance(parts, list) else [parts]
    try:
        return [float(part) for part in parts if part != ""]
    except (TypeError, ValueError) as error:
        raise BadOption(
            f"{value!r} is no list of numbers", where=f"--set {key}", way_out="write 0,0.5,1"
        ) from error


def told(one: dict[str, Any], seconds: float) -> str:
    """The line of a finished point."""
    where = f"{one['sweep']} = {one['value']:g}, seed {one['seed']}"
    return f"{where}: distance {format_number(one['distance'])} ({seconds:.0f} s)"


def plan(sweep: Sweep) -> dict[str, Any]:
    """What ``--dry-run`` tells, JSON-ready."""
    from embgeo.training.experiments.inan_subspace import steps_per_epoch

    tokens = len(sweep.corpus.train)
    return {
        "trainings": len(sweep.tasks),
        "steps": sweep.settings.epochs * steps_per_epoch(sweep.settings, tokens),
        "tokens": tokens,
        "types": len(sweep.corpus.vocabulary),
        "settings": asdict(sweep.settings),
    }


def plan_text(sweep: Sweep) -> str:
    said = plan(sweep)
    return printable(
        f"{said['trainings']} trainings of {said['steps']:,} steps on {said['tokens']:,} tokens of "
        f"{sweep.corpus.name} ({said['types']:,} types), 2×{sweep.settings.hidden} LSTM, into "
        f"{sweep.folder}; nothing was written"
    )


def begin(sweep: Sweep) -> None:
    """The record before the first point; of a folder that is resumed, it has to be the same.

    Raises
    ------
    BadOption
    """
    path = sweep.folder / RECORD_NAME
    wanted = json.loads(record_bytes(record_of(sweep, [])))
    if path.is_file():
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
            same = all(before[key] == wanted[key] for key in ("settings", "corpus"))
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise UnreadableFile("damaged", where=path, way_out="choose another folder") from error
        if not same:
            raise BadOption(
                "holds the experiment with other settings or on another text",
                where=sweep.folder,
                way_out="choose another folder with -o",
            )
        return
    write_set(sweep.folder, {RECORD_NAME: record_bytes(wanted)})


def measured(sweep: Sweep, point: Point, seed: int, progress: Progress) -> dict[str, Any]:
    """One point, trained unless it was before, and its distance by the analysis."""
    from embgeo.result.analysis import load_analysis
    from embgeo.result.saved import JSON_NAME

    home = sweep.home(point, seed)
    if not (home / JSON_NAME).is_file():
        train(sweep, point, seed, home, progress)
    analysis = load_analysis(home)
    scalar = analysis.scalar(DISTANCE)
    if scalar is None or scalar.value is None:
        raise UnreadableFile(f"its analysis holds no {DISTANCE}", where=home)
    return {
        "sweep": point.sweep,
        "value": point.value,
        "beta": point.beta,
        "tau": point.tau,
        "seed": seed,
        "folder": home.relative_to(sweep.folder).as_posix(),
        "distance": scalar.value,
        "chance": scalar.reference,
    }


def train(sweep: Sweep, point: Point, seed: int, home: Path, progress: Progress) -> None:
    """Train a point and write its analysis, which tells that the point is finished."""
    from embgeo.training.experiments.inan_subspace import MODEL_NAME, steps_per_epoch, train_point

    rows = sweep.corpus.train
    steps = sweep.settings.epochs * steps_per_epoch(sweep.settings, len(rows))
    progress.start(f"{point.sweep} = {point.value:g}, seed {seed}", steps)
    train_point(
        sweep.settings,
        point,
        rows,
        len(sweep.corpus.vocabulary),
        home,
        seed=seed,
        device=sweep.device,
        advance=progress.advance,
    )
    analysis_of(home / MODEL_NAME).save(home)


def analysis_of(model: Path) -> Analysis:
    import embgeo

    matrix = embgeo.load(model, tensor="encoder.weight", output="decoder.weight")
    return embgeo.analyze(
        matrix, sections=("subspace", "spectrum"), reference=False, command=command_line()
    )


def draw(sweep: Sweep) -> None:
    """The distance against each parameter, as ``embgeo figures`` draws a sweep."""
    from embgeo.charts.paper.style import VENUES
    from embgeo.cli.figure_choice import choose
    from embgeo.cli.figure_maker import Maker
    from embgeo.cli.subjects import load_subjects

    for parameter in ("beta", "tau"):
        homes = [sweep.home(point, seed) for point, seed in sweep.tasks if point.sweep == parameter]
        if len({home.parent for home in homes}) < 2:
            continue  # one point is no sweep
        maker = Maker(
            forms=("pdf", "svg"),
            width=VENUES["iclr"].column,
            color="class",
            scalars=(),
            parameter=parameter,
            signs="both",
            command=printable(command_line()),
        )
        subjects = load_subjects(homes, parameter=parameter)
        (made,), _ = maker.make_all(choose(("sweep",), ()), subjects)
        write_set(sweep.folder / FIGURES / parameter, made.files)


def record_of(sweep: Sweep, points: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The content of ``experiment.json``."""
    from embgeo.training.experiments import inan_subspace
    from embgeo.training.loop.run import corpus_facts, versions

    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "name": inan_subspace.NAME,
        "source": inan_subspace.SOURCE,
        "deviations": list(inan_subspace.DEVIATIONS),
        "settings": asdict(sweep.settings),
        "corpus": corpus_facts(sweep.corpus),
        "points": list(points),
        "command": command_line(),
        "versions": versions(),
    }


def summary(sweep: Sweep, found: Sequence[dict[str, Any]]) -> None:
    """Each sweep as a table, and where its figure is."""
    from embgeo.training.study.spread import spread

    for parameter, where in (("beta", f"τ = {sweep.settings.tau:g}"), ("tau", "β = 1")):
        own = [one for one in found if one["sweep"] == parameter]
        if not own:
            continue
        rows = [[parameter, "subspace distance", "chance"]]
        for value in dict.fromkeys(one["value"] for one in own):
            held = spread([one["distance"] for one in own if one["value"] == value])
            chance = next(one["chance"] for one in own if one["value"] == value)
            if held is not None:
                rows.append([f"{value:g}", held.text, format_number(chance or 0.0)])
        print(printable(f"input against output embedding at {where}"))
        for line in aligned(rows):
            print(f"  {line}")
        figure = sweep.folder / FIGURES / parameter / "sweep.pdf"
        if figure.is_file():
            print(printable(f"figure: {figure}"))
