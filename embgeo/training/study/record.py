"""The record of a study, and its file ``training.json``.

Reports and figures need nothing else. Next to the file are the runs (``METHOD/seed-S``), the
comparison of the embeddings of one seed (see :mod:`embgeo.comparison.comparison`) and, once
rendered, ``report.html``.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from embgeo.core.arguments import as_path
from embgeo.core.text import visible, visible_text
from embgeo.core.values import Quantity
from embgeo.files.records import RecordFormat
from embgeo.training.study.spread import SeedDifference

#: Methods and sentences that a `repr` shows.
MOST_SHOWN = 8

#: Why to doubt a method's numbers: perplexity not below that of a unigram model, or an isotropy
#: that a few long rows decide.
WarningCode = Literal["not_below_unigram", "long_rows"]

#: A matrix of a model: the input embedding, the output matrix, or the source embedding of a
#: translation model.
Role = Literal["input", "output", "source"]
ROLES: tuple[Role, ...] = get_args(Role)

#: Whether the validation perplexity of a run had stopped falling at its end; "unknown" where
#: neither a validation curve nor early stopping says so.
Learning = Literal["converged", "learning", "unknown"]

#: Why a claim is not decided; docs/training.md explains each cause.
Cause = Literal[
    "no_reference",
    "no_number",
    "same_runs",
    "few_seeds",
    "still_learning",
    "unknown_learning",
    "at_chance",
    "interval",
]

#: The outcome of a claim. "nominal": its own interval lies on one side, but among all claims of the
#: study that may be chance.
Verdict = Literal["reproduced", "nominal", "not reproduced", "not decidable"]


@dataclass(frozen=True, slots=True)
class TrainingCurve:
    """A number over the steps of a run; steps ascend."""

    steps: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One method, trained once."""

    method: str
    seed: int
    #: Folder of the run, relative to that of the study.
    folder: str = ""
    steps: int = 0
    epochs: float = 0.0
    #: Number of targets that the run trained on.
    tokens: int = 0
    seconds: float = 0.0
    parameters: int | None = None
    #: Scores (``valid.perplexity``, ``test.rare``, …), speed, and every defined scalar of the
    #: analysis of the input embedding, by name.
    numbers: Mapping[str, float] = field(default_factory=dict)
    #: Numbers over the steps, by their names in ``metrics.jsonl``.
    curves: Mapping[str, TrainingCurve] = field(default_factory=dict)
    #: Hash of the weights before the first step.
    initial: str = ""
    notes: tuple[str, ...] = ()
    #: Every defined scalar of the model's other matrices, by role (``output``, ``source``).
    others: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    stopped_early: bool = False
    task: str = "lm"
    #: The score that decides, on the test split or else on the validation split.
    quality: str = "perplexity"

    def select_numbers(self, role: Role | None) -> Mapping[str, float]:
        """Return the numbers of a role's matrix; `numbers` if the model has a single matrix."""
        return self.others.get(role or "input", self.numbers)


@dataclass(frozen=True, slots=True)
class TriedValue:
    """A value of a setting that was tried for a method."""

    #: Dotted name of the setting, such as ``optimizer.lr``.
    setting: str
    #: JSON-ready.
    value: Any
    #: The `score_name` on the validation split with a seed apart; None if the trial failed.
    score: float | None
    score_name: str
    #: Whether the runs of the method use this value.
    chosen: bool


@dataclass(frozen=True, slots=True)
class StudyMethod:
    """A method of a study."""

    name: str
    title: str
    #: Name of the control; empty for a method without one.
    reference: str
    #: The matrix that the method acts on, and is judged by.
    role: Role = "input"
    source: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: Each way in which it differs from the publication.
    deviations: tuple[str, ...] = ()
    #: The values of settings that were compared; empty without tuning.
    tried: tuple[TriedValue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOutcome:
    """A claim of a paper, and its outcome in these runs."""

    key: str
    text: str
    source: str
    method: str
    reference: str
    number: str
    verdict: Verdict
    #: The verdict by the claim's own interval, without the other claims.
    alone: Verdict
    #: The method against its reference, over their common seeds; None without one.
    contrast: SeedDifference | None = None
    reason: str
    published: str = ""
    #: The matrix that the number is measured on; None for numbers of the whole model.
    role: Role | None = None
    #: Why the claim is not decided; None if it is.
    cause: Cause | None = None
    #: Whether the method minimizes this number, or nearly so; such claims are not counted as tests.
    sanity: bool = False
    #: The difference as a share of the first published one, in the score that the paper has; None
    #: without one.
    share: float | None = None
    #: 95% interval of the difference over other texts or documents, for the models of these seeds,
    #: by a paired bootstrap.
    text_interval: tuple[float, float] | None = None
    #: Two-sided p-value of Student's t over the seeds for a difference at the limit of the claim.
    p_value: float | None = None
    #: `p_value` after Holm's correction over all claims of the study but sanity checks.
    p_adjusted: float | None = None
    #: How many settings validation chose from, of the method and of its reference: the one with
    #: more has the better chance.
    trials: int = 0
    reference_trials: int = 0


@dataclass(frozen=True, slots=True)
class StudyWarning:
    """A reason to doubt the numbers of a method."""

    code: WarningCode
    method: str
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Study:
    """A study: methods, their runs, and the outcomes of the papers' claims.

    Attributes
    ----------
    provenance : dict
        Command, versions, corpus and settings, JSON-ready.
    quantities : tuple of Quantity
        Definitions of all numbers of the runs.
    methods : tuple of StudyMethod
        The baseline first.
    runs : tuple of Run
        Ordered by method, then by seed.
    outcomes : tuple of ClaimOutcome
    sentences : tuple of str
        The effect of each method.
    warnings : tuple of StudyWarning
    notes : tuple of str
    """

    provenance: Mapping[str, Any]
    sentences: tuple[str, ...] = ()
    warnings: tuple[StudyWarning, ...] = ()
    outcomes: tuple[ClaimOutcome, ...] = field(default=(), metadata={"key": "claims"})
    methods: tuple[StudyMethod, ...] = ()
    runs: tuple[Run, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        names = ", ".join(visible(method.name) for method in self.methods[:MOST_SHOWN])
        lines = [f"<Study with {len(self.methods)} methods: {names}"]
        lines += [visible_text(sentence) for sentence in self.sentences[:MOST_SHOWN]]
        return "\n  ".join(lines) + ">"

    @property
    def baseline(self) -> StudyMethod:
        return self.methods[0]

    @property
    def seeds(self) -> tuple[int, ...]:
        """All seeds, ascending."""
        return tuple(sorted({run.seed for run in self.runs}))

    @property
    def shown_seed(self) -> int | None:
        """The first seed that all methods share; None without one."""
        held = [{run.seed for run in self.runs_of(method.name)} for method in self.methods]
        return min(set.intersection(*held), default=None)

    def choose_shown_run(self, method: str) -> Run:
        """Choose the run shown for a method: that of `shown_seed`, else the first."""
        runs = self.runs_of(method)
        return next((run for run in runs if run.seed == self.shown_seed), runs[0])

    def runs_of(self, method: str) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.method == method)

    def values(self, method: str, name: str, role: Role | None = None) -> dict[int, float]:
        """Return the values of a number by seed."""
        return select_values(self.runs_of(method), name, role)

    def roles(self, method: str) -> tuple[Role, ...]:
        """Return the roles of the analyzed matrices of the method's models."""
        held = {role for run in self.runs_of(method) for role in run.others}
        return ("input", *(role for role in ROLES[1:] if role in held))

    def quantity(self, name: str) -> Quantity | None:
        return next((q for q in self.quantities if q.name == name), None)


def select_values(runs: Iterable[Run], name: str, role: Role | None) -> dict[int, float]:
    """Return the values of a number by seed, for the matrix of a role."""
    held = {run.seed: run.select_numbers(role) for run in runs}
    return {seed: numbers[name] for seed, numbers in held.items() if name in numbers}


def group_runs(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Group the runs by method, in their order."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.method, []).append(run)
    return found


STUDY_NAME = "training.json"
#: Allowed folders of runs: none leads out of the folder of the study.
RUN_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}/seed-\d{1,10}")
#: The folder with the comparison of the embeddings.
COMPARISON_FOLDER = "comparison"


def check(study: Study) -> None:
    """Raise ValueError unless runs and methods belong together."""
    names = {method.name for method in study.methods}
    if not study.runs or {run.method for run in study.runs} != names:
        raise ValueError("runs and methods do not belong together")
    for name in ("corpus", "settings", "versions"):
        if not isinstance(study.provenance.get(name) or {}, Mapping):
            raise ValueError(f"{name} of the provenance is not a table")
    settings = study.provenance.get("settings") or {}
    if not isinstance(settings.get("model") or {}, Mapping):
        raise ValueError("the model of the settings is not a table")
    for run in study.runs:
        if any(len(curve.steps) != len(curve.values) for curve in run.curves.values()):
            raise ValueError("a curve with steps that have no value")
        if not RUN_FOLDER.fullmatch(run.folder):
            raise ValueError("a run in no folder of its own")
        if not run.others.keys() <= set(ROLES[1:]):
            raise ValueError(f"numbers of a matrix of another role than {' or '.join(ROLES[1:])}")


STUDY = RecordFormat(
    "embgeo.training",
    11,
    Study,
    STUDY_NAME,
    what="a comparison of methods",
    again="train again with: embgeo train --resume",
    check=check,
)


def load_study(folder: Path | str) -> Study:
    """Read the record of a training.

    Parameters
    ----------
    folder : Path or str
        A folder that ``embgeo train`` or :func:`embgeo.train` wrote.

    Returns
    -------
    Study

    Raises
    ------
    UnreadableFile
        If the record is missing or damaged, or its format version is not known.

    Examples
    --------
    >>> import embgeo
    >>> embgeo.load_study("wiki.runs").values("cosreg", "cosine.mean")  # doctest: +SKIP
    {0: 0.0052, 1: 0.0049, 2: 0.0051}
    """
    return STUDY.load(as_path(folder, "folder"))
