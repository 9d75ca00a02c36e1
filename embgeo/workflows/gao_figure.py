"""Figure 1 of Gao et al. 2019: matrices of three tasks, given or trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embgeo.core.arguments import refuse_if
from embgeo.core.errors import BadOption, UnreadableFile, argument
from embgeo.core.visible import printable
from embgeo.io import load
from embgeo.io.bounded.saved import write_text
from embgeo.io.bounded.settings import parse_table
from embgeo.result.analysis import REPORT_NAME, Analysis, load_analysis
from embgeo.result.saved import JSON_NAME
from embgeo.training.study.gao_figure import (
    DEVIATIONS,
    GAO_FIGURE,
    NAME,
    NUMBERS,
    PANELS,
    SOURCE,
    GaoFigure,
    MatrixNumbers,
    decide_limits,
    tabulate_panels,
)
from embgeo.training.study.run_result import RESULT_NAME, is_finished, load_result
from embgeo.workflows import figures
from embgeo.workflows.analyze import analyze
from embgeo.workflows.folders import write_set
from embgeo.workflows.train import train
from embgeo.workflows.train_monitor import RunMonitor
from embgeo.workflows.train_task import as_tables, begin_experiment

if TYPE_CHECKING:
    from embgeo.charts.subject import Subject

TRAINED = {"translation": "multi30k-cpu", "words": "skipgram-cpu", "classes": "digits-cpu"}
METHOD = "mle"
SECTIONS = ("cosine", "spectrum", "projection")


@dataclass(frozen=True, slots=True)
class PanelSources:
    """The settings of the experiment."""

    #: A comparison (of which `METHOD` is taken), a run, an analysis or a checkpoint.
    translation: str = ""
    words: str = ""
    #: By default digits are trained.
    classes: str = ""
    #: Data to train on if no run is given.
    translation_data: str = ""
    words_data: str = ""
    wordsim: str = ""

    @property
    def panels(self) -> tuple[str, ...]:
        """The panels of the figure."""
        return tuple(
            panel
            for panel in PANELS
            if panel == "classes" or getattr(self, panel) or getattr(self, f"{panel}_data")
        )


@dataclass(frozen=True, slots=True)
class GaoTask:
    """A figure to make; `seeds` is the number of runs to train for each missing panel."""

    sources: PanelSources
    seeds: int
    folder: Path
    device: str | None
    command: str

    def plan(self) -> dict[str, Any]:
        """What would be made, JSON-ready."""
        return {"panels": self.sources.panels, "folder": str(self.folder)}

    def describe_plan(self) -> str:
        return f"{', '.join(self.sources.panels)} into {self.folder}; nothing was written"

    def run(self, *, resume: bool, monitor: RunMonitor) -> tuple[dict[str, Any], Iterator[str]]:
        """Measure every matrix, decide the claims, and write the figure and the page.

        Returns the content of ``experiment.json``, and the lines of a summary.
        """
        record, subjects = self.measure(resume=resume, monitor=monitor)
        monitor.progress.start("figures", 0)
        figure, page = write_figure_and_page(self, record, subjects)
        return GAO_FIGURE.to_json(record), list_results(record, figure, page)

    def measure(
        self, *, resume: bool, monitor: RunMonitor | None = None
    ) -> tuple[GaoFigure, list[Subject]]:
        """Train what is missing, measure every matrix, and decide the claims.

        Returns the record, and the subjects of the chart: the first seed of each panel.
        """
        from embgeo.charts.subject import Subject
        from embgeo.training.loop.run import list_versions

        record = GaoFigure(
            NAME, SOURCE, DEVIATIONS, asdict(self.sources), self.seeds, (), (), self.command,
            list_versions(),
        )  # fmt: skip
        begin_experiment(GAO_FIGURE, record, self.folder, ("settings", "seeds"), resume=resume)
        matrices, subjects = [], []
        for panel in self.sources.panels:
            found = measure_panel(self, panel, monitor)
            matrices += [describe_matrix(panel, *one) for one in found]
            subjects.append(Subject(PANELS[panel], found[0][2]))
        record = replace(record, matrices=tuple(matrices), outcomes=decide_limits(matrices))
        GAO_FIGURE.save(record, self.folder)
        return record, subjects


def prepare_gao_figure(
    data: Path | str | None = None,
    *,
    settings: Mapping[str, Any] | Sequence[str] = (),
    seeds: int | None = None,
    device: str | None = None,
    out: Path | str | None = None,
    command: str = "",
) -> GaoTask:
    """Read the settings of the figure; nothing is written."""
    where, cause = argument("settings"), "is not for this experiment, which has data of three tasks"
    way_out = f"give {argument('settings', 'translation_data=FOLDER')} and words_data"
    refuse_if(data is not None, argument("data"), cause, way_out)
    table = {key: str(value) for key, value in as_tables(settings).items()}
    sources: PanelSources = parse_table(PanelSources, table, where, None)
    for key, value in asdict(sources).items():
        if value and not Path(value).exists():
            raise BadOption(f"{key} names {value}, which is not there", where=where)
    if len(sources.panels) < 2:
        runs = argument("settings", "translation=RUNS")
        way_out = f"give {runs} or translation_data=FOLDER, and the same of words"
        raise BadOption("there is nothing to compare the classes with", way_out=way_out)
    lacks_sets = bool(sources.words_data) and not (sources.words or sources.wordsim)
    cause = "words_data is given without sets of word similarity"
    way_out = f"give {argument('settings', 'wordsim=FOLDER')}, too"
    refuse_if(lacks_sets, where, cause, way_out)
    return GaoTask(sources, seeds or 1, Path(out or NAME), device, command)


def write_figure_and_page(
    task: GaoTask, record: GaoFigure, subjects: Sequence[Subject]
) -> tuple[Path, Path]:
    """Write the figure and the page into the folder, and return their paths."""
    from embgeo.charts import composites
    from embgeo.report import gao_figure as page

    made = figures.draw(
        [subject.analysis for subject in subjects if subject.analysis is not None],
        figure=composites.GAO_FIGURE.name,
        format=("pdf", "svg"),
        label=[subject.label for subject in subjects],
        command=printable(task.command),
    )
    folder = task.folder / "figures"
    write_set(folder, made.files)
    spec = composites.GAO_FIGURE.specify(subjects)
    assert spec is not None  # there are two panels or more
    write_text(task.folder / REPORT_NAME, page.render(record, spec))
    return folder / f"{composites.GAO_FIGURE.name}.pdf", task.folder / REPORT_NAME


def list_results(record: GaoFigure, figure: Path, page: Path) -> Iterator[str]:
    """The lines of a summary: the table, the claims and the files."""
    from embgeo.report.text.columns import align

    yield from align(tabulate_panels(record.matrices))
    yield from (f"{one.verdict}: {one.text}; {one.reason}" for one in record.outcomes)
    yield from (f"figure: {figure}", f"report: {page}")


def measure_panel(
    task: GaoTask, panel: str, monitor: RunMonitor | None
) -> list[tuple[int, Path, Analysis]]:
    """Seed, folder and analysis of every matrix of a panel."""
    own = task.folder / panel
    given = getattr(task.sources, panel)
    if not given:
        train_panel(task, panel, own, monitor)
    found = []
    for place, home in enumerate(list_homes(Path(given) if given else own)):
        seed = load_result(home).seed if (home / RESULT_NAME).is_file() else place
        folder = find_analysis(home, panel, own / f"analysis-{seed}", task.command)
        analysis = load_analysis(folder)
        if any(analysis.scalar(name) is None for name in NUMBERS):
            way_out = f"analyze it with the sections {', '.join(SECTIONS)}"
            raise UnreadableFile("its analysis leaves out sections", where=folder, way_out=way_out)
        found.append((seed, folder, analysis))
    return found


def list_homes(source: Path) -> list[Path]:
    """The finished runs of `METHOD` in a comparison; else the source itself."""
    if not (source / METHOD).is_dir():
        return [source]
    homes = [home for home in sorted((source / METHOD).glob("seed-*")) if is_finished(home)]
    if not homes:
        raise BadOption(f"holds no finished run of {METHOD}", where=source)
    return homes


def find_analysis(home: Path, panel: str, own: Path, command: str) -> Path:
    """The folder with the analysis of a matrix; a matrix without one is analyzed into `own`.

    The output matrix is taken of an untied translation model, the rows of the classes of a
    classifier of documents. An earlier analysis in `own` is not used: the matrix may have changed.
    """
    from embgeo.training.loop.checkpoint import MODEL_NAME

    run = (home / RESULT_NAME).is_file()
    documents = run and load_result(home).task == "classification"
    if panel == "translation" and (home / "output" / JSON_NAME).is_file():
        return home / "output"
    if (home / JSON_NAME).is_file() and not documents:
        return home
    model = home / MODEL_NAME if run else home
    matrix = load(model, tensor="classes.weight") if documents else load(model)
    analyze(matrix, sections=SECTIONS, reference=False, command=command).save(own)
    return own


def train_panel(task: GaoTask, panel: str, folder: Path, monitor: RunMonitor | None) -> None:
    """Train the preset of a panel by plain maximum likelihood; finished runs are kept."""
    sources = task.sources
    train(
        getattr(sources, f"{panel}_data", None) or None,
        preset=TRAINED[panel],
        compare=METHOD,
        settings={"task.wordsim": sources.wordsim} if panel == "words" else {},
        seeds=task.seeds,
        device=task.device,
        out=folder,
        resume=(folder / "train.toml").is_file(),
        command=task.command,
        monitor=monitor,
    )


def describe_matrix(panel: str, seed: int, folder: Path, analysis: Analysis) -> MatrixNumbers:
    """The numbers of a matrix; undefined ones are left out."""
    scalars = (analysis.scalar(name) for name in NUMBERS)
    values = {s.name: s.value for s in scalars if s is not None and s.value is not None}
    d = int(analysis.provenance["d"])
    return MatrixNumbers(panel, seed, folder.as_posix(), analysis.kept, d, values)
