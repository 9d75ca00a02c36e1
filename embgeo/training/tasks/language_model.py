"""Language modeling, evaluated by perplexity, and its loss."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from msgspec.structs import replace
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from embgeo.core.errors import BadOption
from embgeo.training import components
from embgeo.training.data import (
    Batches,
    Corpus,
    Window,
    columns,
    load_corpus,
    log_unigram,
)
from embgeo.training.data.batches import BatchIterator, RandomWindows
from embgeo.training.evaluation.perplexity import STATEFUL_BPTT
from embgeo.training.evaluation.scores import Scores
from embgeo.training.loop.distributed import ProcessGroup
from embgeo.training.methods import Method, Regularizer, Step
from embgeo.training.models import LanguageModel, detach
from embgeo.training.registry import take
from embgeo.training.sections import EvaluationSettings
from embgeo.training.settings import StudySettings
from embgeo.training.study.numbers import BITS_PER_BYTE
from embgeo.training.tasks.task import Losses, Task

#: Maximum number of logits computed at once: 1 GiB in float32, and as much for their gradient.
AT_ONCE = 2**28
#: Fewest tokens of a split to evaluate, with an error of ln perplexity of about 0.02.
FEWEST_EVALUATED = 20_000


class LanguageModeling(Task):
    """Predict each token of a text from the tokens before it.

    Settings are those of `embgeo.training.components.LanguageModeling`.
    """

    NAME: ClassVar[str] = "lm"
    SETTINGS = components.LanguageModeling
    QUALITY: ClassVar[str] = "perplexity"
    EVALUATOR: ClassVar[type[Scores]] = Scores
    SCORES: ClassVar[tuple[str, ...]] = (
        "loss",
        "perplexity",
        "rare",
        "popular",
        "cache",
        "dynamic",
        BITS_PER_BYTE,
    )

    def __init__(self, **settings: Any) -> None:
        own: components.LanguageModeling = take(self, settings)
        self.z_loss, self.smoothing = own.z_loss, own.smoothing

    def quality(self, config: StudySettings) -> str:
        """Return the bits per byte with a learned tokenizer, on which perplexities depend."""
        return self.QUALITY if config.data.bpe is None else BITS_PER_BYTE

    def adapt(self, config: StudySettings) -> StudySettings:
        kind: Any = self.find_model(config.model.name)
        refuse_together(config)
        found = resolve_windows(limit_evaluation(config), config.training.bptt, kind)
        return replace(config, evaluation=found)

    def load(self, config: StudySettings) -> Corpus:
        return load_corpus(config.data)

    def build(self, config: StudySettings, method: Method, dataset: Any) -> LanguageModel:
        """Build the model before its first step.

        A model draws its output layer last, so that tied and untied models share all other weights.
        """
        model: LanguageModel = super().build(config, method, dataset)
        if config.model.bias_init == "log-counts":
            model.start_bias(torch.from_numpy(log_unigram(dataset.vocabulary.counts)))
        return model

    def feed(
        self, config: StudySettings, dataset: Corpus, group: ProcessGroup, device: torch.device
    ) -> BatchIterator:
        chosen, seed = config.training, config.seeds[0]
        if chosen.windows == "random":
            rows = torch.from_numpy(dataset.train).to(device)
            return RandomWindows(rows, chosen.batch, chosen.bptt, group=group, seed=seed)
        streams = columns(dataset.train, chosen.batch)
        return Batches(
            group.part(streams).to(device),
            chosen.bptt,
            random_lengths=chosen.random_lengths,
            seed=seed,
        )

    def loss(
        self, model: LanguageModel, batch: Window, carry: Any, regularizer: Regularizer
    ) -> Losses:
        output = model(batch.inputs, carry)
        step = Step(output.hidden, None, batch.targets, batch.inputs)
        at_once = split_positions(model, regularizer, batch.targets.numel())

        def logits_of(hidden: Tensor, targets: Tensor) -> Tensor:
            return regularizer.logits(Step(hidden, model.head(hidden), targets))

        if at_once < batch.targets.numel():
            step.logits_of, step.positions = logits_of, at_once
            mean, added = cross_entropy_in_parts(
                logits_of, output.hidden, batch.targets, at_once, self.add_to_loss
            )
        else:
            step.logits = model.head(output.hidden)
            step.logits = regularizer.logits(step)
            mean = cross_entropy(step.logits, batch.targets)
            added = self.add_to_loss(step.logits).mean()
        objective = (1.0 - self.smoothing) * mean + added + model.activation_penalty(output)
        return Losses(mean, objective, step, detach(output.state))

    def add_to_loss(self, logits: Tensor) -> Tensor:
        """Return what z_loss and smoothing add to the loss of positions; shape (…), or ()."""
        if not (self.z_loss or self.smoothing):
            return logits.new_zeros(())
        logits = logits.float() if logits.element_size() < 4 else logits
        log_z = logits.logsumexp(-1)
        found = self.z_loss * log_z.square()
        if self.smoothing:
            found = found + self.smoothing * (log_z - logits.mean(-1))
        return found

    def weigh(self, config: StudySettings, batch: Window) -> float:
        return float(len(batch.targets)) if config.training.sum_over_steps else 1.0

    def check_model(self, config: StudySettings, model: LanguageModel) -> None:
        if self.z_loss and getattr(model, "mixture", None) is not None:
            raise BadOption(
                "z_loss is 0 with a mixture of softmaxes, whose logits are log-probabilities",
                way_out="leave z_loss out, or set model.experts to 1",
            )


def split_positions(model: LanguageModel, method: Regularizer, positions: int) -> int:
    """Return of how many of a window's positions the logits are computed at once."""
    if "logits" in method.NEEDS and not method.IN_PARTS:
        return positions
    return min(positions, max(1, AT_ONCE // model.logits_per_state))


def refuse_together(config: StudySettings) -> None:
    """Refuse settings that exclude each other."""
    data, training = config.data, config.training
    for name in ("size", "min_count"):
        if data.bpe is not None and getattr(data, name) is not None:
            raise BadOption(
                f"bpe of [data] learns a tokenizer, and {name} is given", way_out="leave one out"
            )
    if training.windows == "random" and training.random_lengths:
        raise BadOption(
            "random windows of [training] have one length, and random_lengths is set",
            way_out="leave one out",
        )


def limit_evaluation(config: StudySettings) -> EvaluationSettings:
    """Limit the evaluated tokens in proportion to a short training."""
    training, found = config.training, config.evaluation
    if found.tokens is not None or training.steps is None:
        return found
    trained = training.steps * training.accumulate * training.batch * training.bptt
    return replace(found, tokens=max(FEWEST_EVALUATED, trained // 4))


def resolve_windows(
    found: EvaluationSettings, trained: int, kind: type[LanguageModel]
) -> EvaluationSettings:
    """Choose the windows of evaluation: as in training if they limit the context of tokens.

    `trained`: tokens of a training window.
    """
    usual = trained if kind.WINDOWED or not kind.CARRIES_STATE else STATEFUL_BPTT
    bptt = usual if found.bptt is None else found.bptt
    if found.stride is not None and kind.CARRIES_STATE:
        raise BadOption(
            f"stride of [evaluation] is {found.stride}, and {kind.NAME} carries its state over",
            way_out="leave it out: every token is seen with all before it",
        )
    if found.stride is not None and found.stride > bptt:
        raise BadOption(
            f"stride of [evaluation] is {found.stride:,}, in windows of {bptt:,} tokens",
            way_out=f"give {bptt:,} at most",
        )
    own = {"memory": found.memory, "clamp": found.clamp, "same_length": found.same_length}
    for name, value in own.items():
        if value and not hasattr(kind, "reading"):
            raise BadOption(
                f"{name} of [evaluation] is {value}, and {kind.NAME} has no memory of tokens",
                way_out="leave it out",
            )
    return replace(found, bptt=bptt)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean of −log softmax(logits)[target] over all positions.

    Like `torch.nn.functional.cross_entropy`, in float32 or wider, but on a CPU in half the time and
    with two matrices of the size of the logits less at the peak: softmax − one-hot overwrites the
    log-probabilities, and is scaled in place in a single backward pass.

    `logits` have shape (…, N), `targets` shape (…), each from 0 to N − 1.
    """
    flat = logits.flatten(0, -2)
    flat = flat.float() if flat.element_size() < 4 else flat
    found: Tensor = CrossEntropy.apply(flat, targets.flatten())  # type: ignore[no-untyped-call]
    return found


def cross_entropy_in_parts(
    logits_of: Callable[[Tensor, Tensor], Tensor],
    hidden: Tensor,
    targets: Tensor,
    at_once: int,
    more: Callable[[Tensor], Tensor] = lambda logits: logits.new_zeros(()),
) -> Tensor:
    """Get mean cross-entropy, and the mean of `more` of the logits, for `at_once` positions a time.

    The backward pass computes the logits again, so that the output layer takes a third longer.

    `logits_of` gives logits of shape (…, N) for states of shape (…, d) and targets; `hidden` has
    shape (…, d), `targets` (…).
    """

    def add(states: Tensor, expected: Tensor) -> Tensor:
        logits = logits_of(states, expected)
        loss = cross_entropy(logits, expected) * len(expected)
        return torch.stack((loss, more(logits).sum().float()))

    total = torch.zeros(2, device=hidden.device)
    parts = zip(
        torch.split(hidden.flatten(0, -2), at_once),
        torch.split(targets.flatten(), at_once),
        strict=True,
    )
    for states, expected in parts:
        total = total + checkpoint(add, states, expected, use_reentrant=False)
    return total / targets.numel()


class CrossEntropy(torch.autograd.Function):
    """Mean cross-entropy of logits of shape (T, N)."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        place = targets.unsqueeze(1)
        log_p = F.log_softmax(logits, dim=1)
        loss = -log_p.gather(1, place).mean()
        if ctx.needs_input_grad[0]:
            difference = log_p.exp_()
            one = difference.new_ones(()).expand(place.shape)
            ctx.save_for_backward(difference.scatter_add_(1, place, -one))
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (difference,) = ctx.saved_tensors
        # In place: autograd refuses a second backward pass, as what it saved has changed.
        return difference.mul_(grads[0] / len(difference)), None
