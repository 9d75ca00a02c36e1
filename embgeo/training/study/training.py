"""The result of a comparison of methods, and its file ``training.json``.

A page or a figure needs nothing else. Next to the file are the runs (``METHOD/seed-S``), the
comparison of the embeddings of one seed (see :mod:`embgeo.comparison.comparison`) and, once
rendered, ``report.html``.

Format history
--------------
1 : first version (embgeo 0.1).
2 : p-values of claims.
3 : warnings; numbers of the output matrix, the role of methods, and learning rates that were tried;
    of claims the cause, the share of the published difference, and the interval over the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from embgeo.core.arguments import as_path
from embgeo.core.typed import keyed
from embgeo.core.values import Quantity
from embgeo.core.visible import visible, visible_text
from embgeo.io.bounded.records import RecordFormat
from embgeo.training.study.upgrades import UPGRADES

#: Methods and sentences that a `repr` shows.
MOST_SHOWN = 8

#: What a reader has to know before any number of a method: its perplexity is not below that of a
#: unigram model, or part of it is the price of a missing output bias.
WarningCode = Literal["not_below_unigram", "long_rows", "no_output_bias"]

#: Which of the two matrices of an untied model: the embedding of the input, or the weight of the
#: output layer.
Role = Literal["input", "output", "source"]
#: What a model reads, predicts, and in translation reads of the source language.
ROLES: tuple[Role, ...] = get_args(Role)

#: What is known of the end of a run: whether its validation perplexity had stopped falling;
#: "unknown" without a validation curve.
Learning = Literal["converged", "learning", "unknown"]

#: Why a claim is not decided: its reference was not trained, no two runs of one seed hold the
#: number, fewer than three do, a limit lies in the interval, some run was still learning when it
#: ended, or nothing is known of that.
Cause = Literal[
    "no_reference", "no_number", "few_seeds", "interval", "still_learning", "unknown_learning"
]

#: What becomes of a claim.
Verdict = Literal["reproduced", "not reproduced", "not decidable"]


@dataclass(frozen=True, slots=True)
class TrainingCurve:
    """A number over the steps of a run; steps ascend."""

    steps: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """One method, trained once.

    Attributes
    ----------
    method : str
    seed : int
    folder : str
        Relative to the folder of the comparison.
    steps : int
        Of the optimizer.
    epochs : float
    tokens : int
        That were trained on.
    seconds : float
    parameters : int or None
    numbers : dict of str to float
        Of the evaluation (``valid.perplexity``, ``test.rare``, …), of the speed, and every scalar
        of the analysis of the input embedding under its name; what has no value is not there.
    others : dict of str to dict of str to float
        By role (``output``, ``source``), every scalar of the analyses of the model's other
        matrices.
    stopped_early : bool
        Whether the run ended because its validation loss no longer fell.
    task : str
        What was learned.
    quality : str
        The score that decides, on the test split or else on the validation split.
    curves : dict of str to TrainingCurve
        By the names of ``metrics.jsonl``.
    initial : str
        Hash of the weights before the first step.
    notes : tuple of str
    """

    method: str
    seed: int
    folder: str
    steps: int
    epochs: float
    tokens: int
    seconds: float
    parameters: int | None = None
    numbers: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, TrainingCurve] = field(default_factory=dict)
    initial: str = ""
    notes: tuple[str, ...] = ()
    others: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    stopped_early: bool = False
    task: str = "lm"
    quality: str = "perplexity"

    def select_numbers(self, role: Role | None) -> Mapping[str, float]:
        """Numbers of the matrix of a role; `numbers` if the model has a single matrix."""
        return self.others.get(role or "input", self.numbers)


@dataclass(frozen=True, slots=True)
class TriedRate:
    """A learning rate that was tried for a method.

    Attributes
    ----------
    lr : float
    perplexity : float or None
        On the validation split, with the first seed; None if the training diverged.
    chosen : bool
        Whether it is that of the method's runs.
    """

    lr: float
    perplexity: float | None
    chosen: bool


@dataclass(frozen=True, slots=True)
class StudyMethod:
    """What was compared.

    Attributes
    ----------
    name : str
    title : str
        As people call it.
    reference : str
        The method that this one is compared with; empty for the reference of all.
    role : Role
        The matrix of an untied model that the method acts on, and is judged by.
    source : str
        The publication.
    settings : dict
        What is particular to the method, JSON-ready.
    deviations : tuple of str
        Each way in which it is not what was published.
    tried : tuple of TriedRate
        The rates of which the best was taken; empty where none was searched for.
    """

    name: str
    title: str
    reference: str
    role: Role = "input"
    source: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    deviations: tuple[str, ...] = ()
    tried: tuple[TriedRate, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOutcome:
    """A claim of a paper, and its outcome in these runs.

    Attributes
    ----------
    key : str
    text : str
        The claim.
    source : str
    method, reference : str
        The two methods that are compared.
    number : str
        Name of the number that decides.
    role : Role or None
        Whose number it is: of that matrix of an untied model, or, if None, of the whole model.
    relative : bool
        Whether differences are taken of logarithms, and shown in per cent.
    verdict : Verdict
    before, after : float or None
        Mean over the seeds that both have; of the reference, and of the method.
    difference, standard_error : float or None
        Mean over seeds, and its standard error; of logarithms where `relative`.
    interval : tuple of two floats or None
        95 % interval of the difference, by Student's t.
    seeds : int
        That both have.
    reason : str
        In words, how it was decided.
    published : str
        What the paper reports, with where it stands.
    p_value : float or None
        Chance of a difference at least as far from the limit of the claim, if it lay there:
        two-sided, by Student's t over the seeds.
    p_adjusted : float or None
        After Holm's correction over all claims of the comparison that have one, without those
        that only check that a method works as built.
    cause : Cause or None
        Why it is not decided; None if it is.
    sanity : bool
        Whether the method minimizes this very number; such claims are not counted among the tests.
    share : float or None
        The difference as a share of the one that the paper reports; None without a number there.
    text_interval : tuple of two floats or None
        Of a perplexity: 95 % interval of the difference over blocks of the text, for the models of
        these seeds, by a paired bootstrap.
    detectable : float or None
        The distance from the limit that this many seeds would find at 5 % in about 80 % of studies;
        of logarithms where `relative`.
    """

    key: str
    text: str
    source: str
    method: str
    reference: str
    number: str
    relative: bool
    verdict: Verdict
    before: float | None = None
    after: float | None = None
    difference: float | None = None
    standard_error: float | None = None
    interval: tuple[float, float] | None = None
    seeds: int = 0
    reason: str
    published: str = ""
    role: Role | None = None
    cause: Cause | None = None
    sanity: bool = False
    share: float | None = None
    text_interval: tuple[float, float] | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    detectable: float | None = None


@dataclass(frozen=True, slots=True)
class StudyWarning:
    """A reason to doubt the numbers of a method.

    Attributes
    ----------
    code : WarningCode
    method : str
    text : str
        In a sentence.
    """

    code: WarningCode
    method: str
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Training:
    """Methods side by side.

    Attributes
    ----------
    provenance : dict
        JSON-ready: command, versions, corpus, settings.
    quantities : tuple of Quantity
        The facts of every number that the runs hold.
    methods : tuple of StudyMethod
        In the order of the comparison; the first is the baseline.
    runs : tuple of Run
        StudyMethod by method, within one by seed.
    outcomes : tuple of ClaimOutcome
    sentences : tuple of str
        What each method did, one each.
    warnings : tuple of StudyWarning
    notes : tuple of str
    """

    provenance: Mapping[str, Any]
    sentences: tuple[str, ...] = ()
    warnings: tuple[StudyWarning, ...] = ()
    outcomes: tuple[ClaimOutcome, ...] = field(default=(), metadata=keyed("claims"))
    methods: tuple[StudyMethod, ...] = ()
    runs: tuple[Run, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        names = ", ".join(visible(method.name) for method in self.methods[:MOST_SHOWN])
        lines = [f"<Training with {len(self.methods)} methods: {names}"]
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
        """The run shown for a method: that of `shown_seed`, else the first."""
        runs = self.runs_of(method)
        return next((run for run in runs if run.seed == self.shown_seed), runs[0])

    def runs_of(self, method: str) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.method == method)

    def values(self, method: str, name: str, role: Role | None = None) -> dict[int, float]:
        """Values of a number by seed."""
        held = {run.seed: run.select_numbers(role) for run in self.runs_of(method)}
        return {seed: numbers[name] for seed, numbers in held.items() if name in numbers}

    def roles(self, method: str) -> tuple[Role, ...]:
        """Roles of the analyzed matrices of the method's models."""
        held = {role for run in self.runs_of(method) for role in run.others}
        return ("input", *(role for role in ROLES[1:] if role in held))

    def quantity(self, name: str) -> Quantity | None:
        return next((q for q in self.quantities if q.name == name), None)


TRAINING_NAME = "training.json"
#: What the folder of a run may be called: nothing leads out of that of the comparison.
RUN_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}/seed-\d{1,10}")
#: The folder with the comparison of the embeddings.
COMPARISON_FOLDER = "comparison"


def check(training: Training) -> None:
    """ValueError unless runs and methods belong together."""
    names = {method.name for method in training.methods}
    if not training.runs or {run.method for run in training.runs} != names:
        raise ValueError("runs and methods do not belong together")
    for run in training.runs:
        if any(len(curve.steps) != len(curve.values) for curve in run.curves.values()):
            raise ValueError("a curve with steps that have no value")
        if not RUN_FOLDER.fullmatch(run.folder):
            raise ValueError("a run in no folder of its own")
        if not run.others.keys() <= set(ROLES[1:]):
            raise ValueError(f"numbers of a matrix of another role than {' or '.join(ROLES[1:])}")


TRAINING = RecordFormat(
    "embgeo.training",
    5,
    Training,
    TRAINING_NAME,
    what="a comparison of methods",
    again="train again with: embgeo train --resume",
    check=check,
    upgrades=UPGRADES,
)


def training_to_json(training: Training) -> dict[str, Any]:
    """The content of ``training.json``."""
    return TRAINING.to_json(training)


def save_training(training: Training, folder: Path) -> Path:
    """Write ``training.json`` into `folder`; EmbgeoError if that cannot be written to."""
    return TRAINING.save(training, folder)


def load_training(folder: Path | str) -> Training:
    """Read the `folder` of a training; UnreadableFile if that is missing or damaged."""
    return TRAINING.load(as_path(folder, "folder"))
