"""What a task is to the loop that trains, and to the study that compares methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from embgeo.core.errors import BadOption
from embgeo.core.values import Quantity
from embgeo.training.checks import list_defaults, refuse_others
from embgeo.training.data.vocabulary import Vocabulary
from embgeo.training.loop.process import World
from embgeo.training.methods import Regularizer
from embgeo.training.methods.catalog import Method
from embgeo.training.models import EmbeddingModel
from embgeo.training.settings import StudySettings
from embgeo.training.study.samples import Samples

#: Scores of one split by name; None where one is not known.
SplitScores = dict[str, float | None]


class Dataset(Protocol):
    """What a task reads: the vocabulary of its matrices, and what a result says of the data.

    Attributes
    ----------
    name, unit : str
    vocabulary : Vocabulary
        A row of the matrices for each token, with the counts of the training split.
    sizes : dict of str to int
        Tokens, pairs or documents of each split.
    notes : tuple of str
        What was decided about the data, in words.
    files : dict of str to str
        SHA-256 of each file that was read; a run is resumed with the same ones only.
    """

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def sizes(self) -> Mapping[str, int]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def files(self) -> Mapping[str, str]: ...


class Batch(Protocol):
    """What one step is given.

    Attributes
    ----------
    units : float
        What the loss is a mean over: targets, pairs, documents. Batches of one step have the same
        number in every process, so that means average to means; where they have not, it is the
        mean over the processes, and `Task.loss` divides by it.
    length_ratio : float
        Multiplies the learning rate of the step; usually 1.
    first : bool
        Whether the state that is carried from batch to batch starts anew.
    """

    @property
    def units(self) -> float: ...
    @property
    def length_ratio(self) -> float: ...
    @property
    def first(self) -> bool: ...


class Feed(Protocol):
    """A deterministic walk over the batches of a process that can be resumed anywhere.

    Attributes
    ----------
    epoch : int
        How many epochs are finished.
    offset, steps_per_epoch : int
        Where in the epoch the next batch begins, and where the epoch ends.
    windows_per_epoch : int
        Batches of an epoch.
    """

    epoch: int
    offset: int

    @property
    def steps_per_epoch(self) -> int: ...
    @property
    def windows_per_epoch(self) -> int: ...
    def take(self) -> Any:
        """The next batch; behind the last one of an epoch comes the first of the next."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


@dataclass(slots=True)
class Losses:
    """What a batch costs.

    Attributes
    ----------
    mean : Tensor
        Mean loss of a unit, without penalties.
    objective : Tensor
        What is differentiated.
    carry : object
        For the next batch: tensors without a graph, in tuples, lists or dicts; None for nothing.
    """

    mean: Tensor
    objective: Tensor
    carry: Any = None


class Evaluator(Protocol):
    """What a run finds out about its model on data that it is not trained on.

    One whose evaluation takes long may have ``sample()``, for estimates of time: an evaluator of a
    part, and how much longer `valid` and `final` of all take.
    """

    def valid(self, model: Any) -> SplitScores:
        """On the validation split, with ``"loss"``, by which the best weights are kept."""

    def final(self, model: Any) -> tuple[SplitScores, SplitScores | None, Samples | None]:
        """At the end: validation split, test split if there is one, what bootstraps need."""

    def describe_parts(self) -> list[str]:
        """What a reader has to know of the numbers; asked for after `final`."""


class SplitEvaluator:
    """An evaluator that scores the test split as it does the validation split, all of both."""

    config: StudySettings

    def score_split(self, model: Any, split: str) -> tuple[SplitScores, Samples | None]:
        """The scores of ``"valid"`` or ``"test"``, and what bootstraps need."""
        raise NotImplementedError

    def valid(self, model: Any) -> SplitScores:
        """On the validation split."""
        return self.score_split(model, "valid")[0]

    def final(self, model: Any) -> tuple[SplitScores, SplitScores | None, Samples | None]:
        """Both splits, and what bootstraps need of the last one."""
        valid, samples = self.score_split(model, "valid")
        if not self.config.evaluation.test:
            return valid, None, samples
        return valid, *self.score_split(model, "test")

    def describe_parts(self) -> list[str]:
        """Nothing is left out."""
        return []


class Task:
    """What is learned: reads data, makes a model, gives the loss of a batch, evaluates.

    Its settings, those of ``[task]``, are keyword-only arguments of its constructor.

    Attributes
    ----------
    NAME : str
        As in ``[task] name``.
    MODELS : tuple of type
        Kinds of `EmbeddingModel` for ``[model] name``, which take the number of tokens, and their
        settings as keyword-only arguments.
    QUALITY : str
        The score that decides.
    SCORES : tuple of str
        Scores that are logged, of those that `Evaluator` gives.
    QUANTITIES : tuple of Quantity
        The facts of ``valid.SCORE`` and ``test.SCORE``; `Quantity.better` says the good direction.
    SPARSE : bool
        Whether gradients are of the rows that a step looks up, which plain SGD alone takes.
    """

    NAME: ClassVar[str]
    MODELS: ClassVar[tuple[type[EmbeddingModel], ...]] = ()
    QUALITY: ClassVar[str] = "loss"
    SCORES: ClassVar[tuple[str, ...]] = ("loss",)
    QUANTITIES: ClassVar[tuple[Quantity, ...]] = ()
    SPARSE: ClassVar[bool] = False

    def find_model(self, name: str) -> type[EmbeddingModel]:
        """The model of that name; `BadOption` if there is none."""
        for model in self.MODELS:
            if name == model.NAME:
                return model
        names = ", ".join(model.NAME for model in self.MODELS)
        raise BadOption(
            f"the task {self.NAME} has no model {name!r}", way_out=f"choose from {names}"
        )

    def make_model(self, name: str, n_tokens: int, settings: Mapping[str, Any], *more: Any) -> Any:
        """Make a model, drawn from torch's global generator."""
        model = self.find_model(name)
        refuse_others(name, settings, list_defaults(model))
        return model(n_tokens, *more, **settings)

    def quality(self, config: StudySettings) -> str:  # noqa: ARG002
        """The score that decides a comparison with these settings."""
        return self.QUALITY

    def resolve(self, config: StudySettings) -> StudySettings:
        """The settings, with defaults of the task for those that are not set."""
        return config

    def load(self, config: StudySettings) -> Any:
        """Read the data, a `Dataset`; `BadOption` or `UnreadableFile` for what cannot be read."""
        raise NotImplementedError

    def build(self, config: StudySettings, method: Method, dataset: Any) -> Any:
        """The model before its first step, from the first seed alone."""
        settings = {**config.model.settings, **method.model_settings}
        torch.manual_seed(config.seeds[0])
        first, *more = self.size_model(dataset)
        return self.make_model(config.model.name, first, settings, *more)

    def size_model(self, dataset: Any) -> tuple[Any, ...]:
        """Arguments of a model that depend on the data, the number of its rows first."""
        return (len(dataset.vocabulary),)

    def feed(self, config: StudySettings, dataset: Any, world: World, device: torch.device) -> Feed:
        """The batches of a process."""
        raise NotImplementedError

    def loss(
        self, model: Any, batch: Any, carry: Any, regularizer: Regularizer, *, in_loss: bool
    ) -> Losses:
        """The loss of a batch, with ``regularizer(step)`` added to the objective if `in_loss`."""
        raise NotImplementedError

    def weigh(self, config: StudySettings, batch: Any) -> float:  # noqa: ARG002
        """What the mean loss of a batch is multiplied by, and penalties with it."""
        return 1.0

    def evaluator(self, config: StudySettings, dataset: Any, device: torch.device) -> Evaluator:
        """What evaluates models on the other splits."""
        raise NotImplementedError

    def rehearse(self, config: StudySettings, dataset: Any) -> None:
        """Refuse settings that do not go with the data, before anything is trained."""

    def check_model(self, config: StudySettings, model: Any) -> None:
        """Refuse settings that do not go with a model, which has no weights yet."""

    def estimate_batch(self, config: StudySettings, n_tokens: int) -> int:  # noqa: ARG002
        """Bytes that a step keeps for a batch, at least."""
        return 0


#: Settings by table that only language models have a use for.
OF_TEXTS = {
    "data": ("unit", "tokenizer", "tokens", "bpe"),
    "training": ("random_lengths", "sum_over_steps", "windows"),
    "evaluation": ("cache", "dynamic"),
}


def refuse_settings(config: StudySettings, tables: Mapping[str, Sequence[str]]) -> None:
    """`BadOption` for the first of these settings that is set."""
    for table, names in tables.items():
        for name in names:
            if getattr(getattr(config, table), name):
                raise BadOption(
                    f"{name} of [{table}] is not for the task {config.task.name}",
                    way_out="leave it out",
                )
