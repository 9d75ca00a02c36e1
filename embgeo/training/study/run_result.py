"""The result of a finished run: ``result.json``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from embgeo.core.arguments import is_number
from embgeo.core.errors import UnreadableFile
from embgeo.core.values import Quantity
from embgeo.files.records import RecordFormat
from embgeo.result.analysis import Analysis, load_analysis
from embgeo.training.study.log import LOG_NAME, Curves, read_log
from embgeo.training.study.numbers import OF_A_SPLIT, PARAMETERS, PEAK, SECONDS, SECONDS_PER_TOKEN
from embgeo.training.study.outcomes import OUTCOMES, Outcomes
from embgeo.training.study.record import ROLES, Role, TrainingCurve

RESULT_NAME = "result.json"
#: Folders in a run with the analyses of matrices other than the input embedding.
OUTPUT_FOLDER, SOURCE_FOLDER = ROLES[1:]

#: Scores of one split by name; None for an unknown one.
SplitScores = Mapping[str, int | float | None]


@dataclass(frozen=True, slots=True)
class RunResult:
    """A finished run."""

    method: str
    seed: int
    steps: int
    epochs: float
    #: Number of targets that the run trained on.
    tokens: int
    #: Time of all sessions of the run, evaluation included.
    seconds: float
    #: Number of parameters of the saved model; tied ones count once.
    parameters: int
    #: Scores of a split. Of language models ``perplexity``, ``loss``, ``tokens``, the perplexities
    #: ``rare``, ``popular`` and ``unigram`` (a unigram model on the same tokens), and on request
    #: ``cache`` and ``dynamic``. `test` is None without a test split.
    valid: SplitScores
    test: SplitScores | None
    settings: Mapping[str, Any]
    source: str
    #: Each way in which the run differs from the publication.
    deviations: tuple[str, ...]
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    command: str
    #: ``name``, ``unit``, ``rows``, ``tokens`` by split, ``files`` (file to sha256), ``notes``.
    corpus: Mapping[str, Any]
    #: Hash of the plain weights before the first step: the same for all methods of a study with the
    #: same matrices.
    initial_sha256: str
    stopped_early: bool = False
    #: ``name`` of ``[task]``.
    task: str = "lm"
    #: The score of ``valid`` and ``test`` that decides.
    quality: str = "perplexity"
    #: Definitions of scores other than those of language models.
    quantities: tuple[Quantity, ...] = ()
    #: Bytes that torch held on the GPU at most, or the process on a CPU; None where unknown.
    peak_memory: int | None = None
    #: By role of the matrix, numbers of its frequent and rare rows beside those of an analysis.
    of_rows: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def own_settings(self) -> dict[str, Any]:
        """Settings of the method: the table ``[method.NAME]``."""
        table = self.settings.get("method")
        own = table.get(self.method) if isinstance(table, Mapping) else None
        return dict(own) if isinstance(own, Mapping) else {}


def _check(result: RunResult) -> None:
    files = result.corpus.get("files")
    if not isinstance(files, Mapping) or not all(isinstance(one, str) for one in files.values()):
        raise ValueError("the corpus has no files with their SHA-256")


RUN_RESULT = RecordFormat(
    "embgeo.run",
    5,
    RunResult,
    RESULT_NAME,
    what="the result of a run",
    again="train it again with: embgeo train",
    check=_check,
)


def is_finished(folder: Path) -> bool:
    """Tell whether a run's folder holds its result."""
    return (folder / RESULT_NAME).is_file()


def load_result(folder: Path) -> RunResult:
    if not (folder / RESULT_NAME).exists():
        raise UnreadableFile(
            "the run is not finished", where=folder, way_out="let the run finish first"
        )
    return RUN_RESULT.load(folder)


#: Maximum number of points of a curve.
MOST_POINTS = 300
SPEED = "train.tokens_per_second"


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """The files of a finished run."""

    #: Relative to the folder of the study.
    folder: str
    result: RunResult
    curves: Mapping[str, TrainingCurve]
    #: By role; every model has an input embedding.
    analyses: Mapping[Role, Analysis]
    #: What bootstraps need, if the task keeps it.
    outcomes: Outcomes | None = None


def read_run(study: Path, home: Path) -> FinishedRun:
    """Read a run of a study; UnreadableFile for a missing or damaged file."""
    result = load_result(home)
    log = home / LOG_NAME
    curves = thin_curves(read_log(log)) if log.exists() else {}
    others = {role: load_analysis(home / role) for role in ROLES[1:] if (home / role).is_dir()}
    analyses = {ROLES[0]: load_analysis(home), **others}
    place = home.relative_to(study).as_posix()
    outcomes = OUTCOMES.load(home) if (home / OUTCOMES.file).is_file() else None
    return FinishedRun(place, result, curves, analyses, outcomes)


def thin_curves(curves: Curves) -> dict[str, TrainingCurve]:
    """Return every curve, thinned evenly to `MOST_POINTS`, both ends kept."""
    found = {}
    for name, (steps, values, *_) in curves.items():
        n = len(steps)
        most = min(n, MOST_POINTS) - 1
        places = [round(i * (n - 1) / max(most, 1)) for i in range(most + 1)]
        found[name] = TrainingCurve(
            tuple(float(steps[i]) for i in places), tuple(float(values[i]) for i in places)
        )
    return found


def collect_numbers(result: RunResult, curves: Mapping[str, TrainingCurve]) -> dict[str, float]:
    """Collect the numbers of a result, under the names of `embgeo.training.study.numbers`."""
    found: dict[str, float] = {}
    for split, scores in (("valid", result.valid), ("test", result.test or {})):
        own = [q.name.partition(".")[2] for q in result.quantities]
        for key in dict.fromkeys((*OF_A_SPLIT, *own)):
            value = scores.get(key)
            if value is not None and is_number(value):
                found[f"{split}.{key}"] = float(value)
    found[SECONDS.name] = result.seconds
    found[PARAMETERS.name] = float(result.parameters)
    if result.peak_memory is not None:
        found[PEAK.name] = result.peak_memory / 1e6
    speeds = [v for v in curves[SPEED].values if v > 0] if SPEED in curves else []
    if speeds:
        found[SECONDS_PER_TOKEN.name] = 1e6 / median(speeds)
    return found
