"""The interface of tasks for the training loop and the study."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from embgeo.core.errors import BadOption, argument
from embgeo.core.values import Quantity
from embgeo.training import components
from embgeo.training.data.batches import BatchIterator
from embgeo.training.evaluation.evaluator import SplitEvaluator
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.methods import Method, Regularizer, Step
from embgeo.training.models import EmbeddingModel
from embgeo.training.registry import find_method, find_model, load_class
from embgeo.training.settings import StudySettings


@dataclass(slots=True)
class Losses:
    """The loss of a batch."""

    #: Mean loss of a unit, without penalties.
    mean: Tensor
    #: The scalar to differentiate, to which the loop adds the penalty of the method.
    objective: Tensor
    #: What the method sees of the step.
    step: Step = field(default_factory=Step)
    #: State for the next batch: tensors without a graph, in tuples, lists or dicts, or None.
    carry: Any = None


#: Settings that a task uses or not, by table; every task uses the others.
OF_SOME_TASKS = {
    "data": ("min_count", "size", "bpe"),
    "model": ("bias_init",),
    "training": ("bptt", "windows", "random_lengths", "sum_over_steps", "accumulate"),
    "evaluation": (
        *("batch", "test"),
        *("tokens", "bptt", "stride", "memory", "clamp", "same_length", "cache", "dynamic"),
    ),
}


class Task:
    """Reads data, makes a model, computes the loss of a batch, and evaluates.

    The settings of ``[task]`` are keyword-only arguments of the constructor.
    """

    #: The name in ``[task]``.
    NAME: ClassVar[str]
    #: The settings, where the constructor of a class of embgeo takes them as keywords.
    SETTINGS: ClassVar[type[components.TaskSettings]] = components.TaskSettings
    #: Of a plug-in, the models for ``[model] name``. Their constructors take the number of tokens,
    #: and their settings as keyword-only arguments.
    MODELS: ClassVar[tuple[type[EmbeddingModel], ...]] = ()
    #: Evaluates the other splits.
    EVALUATOR: ClassVar[type[SplitEvaluator]] = SplitEvaluator
    #: The batches of a training split; a task whose batches need more overrides `feed`.
    BATCHES: ClassVar[Callable[..., BatchIterator] | None] = None
    #: The score that decides a comparison.
    QUALITY: ClassVar[str] = "loss"
    #: Scores of the evaluator to log.
    SCORES: ClassVar[tuple[str, ...]] = ("loss",)
    #: Definitions of ``valid.SCORE`` and ``test.SCORE``; `Quantity.better` is the good direction.
    QUANTITIES: ClassVar[tuple[Quantity, ...]] = ()
    #: Whether gradients have only the rows that a step looks up, which requires plain SGD.
    SPARSE: ClassVar[bool] = False
    #: Those of `OF_SOME_TASKS` that the task uses, by table; the others are refused.
    USES: ClassVar[Mapping[str, Sequence[str]]] = OF_SOME_TASKS

    def find_model(self, name: str) -> type[EmbeddingModel]:
        kind: type[EmbeddingModel] = load_class(find_model(self.NAME, name))
        return kind

    def make_model(self, name: str, n_tokens: int, settings: Mapping[str, Any], *more: Any) -> Any:
        """Make a model, drawn from torch's global generator."""
        return self.find_model(name)(n_tokens, *more, **settings)

    def quality(self, config: StudySettings) -> str:
        """Return the score that decides a comparison with these settings; by default `QUALITY`."""
        return self.QUALITY

    def adapt(self, config: StudySettings) -> StudySettings:
        """Fill in defaults of the task; `BadOption` for settings that do not go together."""
        return config

    def load(self, config: StudySettings) -> Any:
        """Read the data, a `Dataset`; `BadOption` or `UnreadableFile` if that is impossible."""
        raise NotImplementedError

    def build(self, config: StudySettings, method: Method, dataset: Any) -> Any:
        """Make the model before its first step; it depends on the first seed alone."""
        settings = {**config.model.settings, **method.model_settings}
        torch.manual_seed(config.seeds[0])
        first, *more = self.size_model(dataset)
        return self.make_model(config.model.name, first, settings, *more)

    def size_model(self, dataset: Any) -> tuple[Any, ...]:
        """Return the positional arguments of a model, by the data: first its rows."""
        return (len(dataset.vocabulary),)

    def feed(
        self, config: StudySettings, dataset: Any, group: ProcessGroup, device: torch.device
    ) -> BatchIterator:
        """Return the batches of a process."""
        if self.BATCHES is None:
            raise NotImplementedError
        batch, seed = config.training.batch, config.seeds[0]
        return self.BATCHES(dataset.train, batch=batch, seed=seed, group=group, device=device)

    def loss(self, model: Any, batch: Any, carry: Any, regularizer: Regularizer) -> Losses:
        """Return the loss of a batch, whose logits are those of ``regularizer.logits(step)``."""
        raise NotImplementedError

    def weigh(self, config: StudySettings, batch: Any) -> float:
        """Return the factor of the mean loss of a batch and its penalties."""
        return 1.0

    def check_model(self, config: StudySettings, model: Any) -> None:
        """Refuse settings that do not fit a model, which has no weights yet."""


def refuse_unused(config: StudySettings, uses: Mapping[str, Sequence[str]]) -> None:
    """Refuse settings that a task would ignore; see `Task.USES`."""
    usual = StudySettings()
    way_out = f"leave it out, or choose a preset of the task with {argument('preset')}"
    for table, names in OF_SOME_TASKS.items():
        for name in (name for name in names if name not in uses.get(table, ())):
            if getattr(getattr(config, table), name) != getattr(getattr(usual, table), name):
                cause = f"{name} of [{table}] is not for the task {config.task.name}"
                raise BadOption(cause, way_out=way_out)


def refuse_methods(
    config: StudySettings, refuses: Callable[[type[Regularizer]], bool], about: str, instead: str
) -> None:
    """Refuse compared methods that tie matrices, or with a part that `refuses`."""
    for name in config.compare:
        method = find_method(name, config.method)
        if method.tied is not None or any(refuses(part) for part in method.classes):
            raise BadOption(f"{name} is about {about}", way_out=f"compare {instead}")
