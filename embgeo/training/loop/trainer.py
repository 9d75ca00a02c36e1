"""One model with one method in training: its batches, loss, optimizer and steps."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from embgeo.core.errors import BadOption, EmbgeoError
from embgeo.training.checks import check_state
from embgeo.training.complete import set_fields
from embgeo.training.loop import distributed
from embgeo.training.loop.checkpoint import fingerprint, move_to
from embgeo.training.methods import Setup
from embgeo.training.methods.definitions import find_method
from embgeo.training.methods.method import list_embeddings, refuse_sgd
from embgeo.training.models.recurrent import keep_recurrence_exact
from embgeo.training.optimization import (
    NtAsgd,
    WeightAverage,
    apply_factor,
    build_optimizer,
    build_schedule,
    parameter_groups,
    split_rates,
)
from embgeo.training.registry import file_of
from embgeo.training.settings import OF_OPTIMIZER, OF_SCHEDULE, StudySettings
from embgeo.training.tasks import Dataset, Losses, make_task

#: Offsets of the seeds of dropout and of processes from the seed of the initialization.
_DROPOUT = 1_000_003
_RANK = 7_919


class StepReport(NamedTuple):
    """An optimizer step."""

    #: Mean loss of a unit over all processes, without penalties; on the device.
    loss: Tensor
    #: Number of units of all processes: targets, pairs, documents.
    tokens: int
    #: Sums of the flags over the processes.
    flags: list[float]


class Trainer:
    """Trains one model with one method, step by step.

    The initial weights depend on the seed alone; dropout has its own seed, set after the method is
    attached. So all methods start from the same weights and see the same windows, and the same
    masks if they draw the same things.

    `config` has one method and one seed.

    `step_number`: number of optimizer steps so far. `tokens`: number of units of all processes so
    far. `initial_sha256`: hash of the weights before the method was attached; see
    :func:`fingerprint`.
    """

    def __init__(
        self,
        config: StudySettings,
        dataset: Dataset,
        device: torch.device,
        group: distributed.ProcessGroup,
    ) -> None:
        self.config, self.device, self.group = config, device, group
        self.method = find_method(config.compare[0], config.method)
        seed = config.seeds[0]
        self.task = make_task(config)
        self.batches = self.task.feed(config, dataset, group, device)
        self.model = self.task.build(config, self.method, dataset)
        self.initial_sha256 = fingerprint(self.model)
        self.model.to(device)
        source = getattr(dataset, "source_vocabulary", None)
        self.regularizer = self.method.attach(
            self.model,
            Setup(
                counts=torch.from_numpy(dataset.vocabulary.counts),
                sgd=config.optimizer.kind == "sgd",
                seed=seed,
                source_counts=None if source is None else torch.from_numpy(source.counts),
            ),
            config.method.get(self.method.name, {}),
        ).to(device)
        if config.training.compile:
            self.model.layers_of = torch.compile(self.model.layers_of)
        if config.training.precision == "bf16":
            keep_recurrence_exact(self.model)
        # A method that depends on weights alone can act once a step, unless these are products.
        leaves = all(weight.is_leaf for weight in self.regularizer.acts_on())
        self.in_loss = bool(self.regularizer.NEEDS) or not leaves
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.finetune_end: int | None = None
        self._make_optimizer()
        self.hidden: Any = None
        self.step_number = 0
        self.tokens = 0
        torch.manual_seed(seed + _DROPOUT + _RANK * group.rank)
        self.model.train()

    def _make_optimizer(self) -> None:
        chosen = self.config.optimizer
        coupled = list_embeddings(self.model) if self.method.coupled else ()
        if coupled and chosen.kind == "sgd":
            raise refuse_sgd(self.method)
        self.optimizer = build_optimizer(
            "coupled-adam" if coupled else chosen.kind,
            self._group_parameters(),
            set_fields(chosen, OF_OPTIMIZER),
            coupled=coupled,
            sparse=self.task.SPARSE,
        )
        self.schedule = build_schedule(chosen.schedule, set_fields(chosen, OF_SCHEDULE))
        self.average = WeightAverage(self.parameters)
        self.asgd = None
        if chosen.asgd:
            again = self.finetune_end is not None
            self.asgd = NtAsgd(self.average, window=chosen.window, finetune=again)

    def _group_parameters(self) -> list[dict[str, Any]]:
        """Group trained parameters by weight decay, plain and factored embeddings alike."""
        chosen, rows = self.config.optimizer, self.model.embedding_parameters()
        groups: list[dict[str, Any]] = [{"params": self.parameters}]
        if chosen.decay != "all":
            special = self.regularizer.parameter_groups()
            spared = rows if chosen.decay == "matrices" else ()
            groups = parameter_groups(self.model, special, embeddings=spared)
        if chosen.embedding_lr is None:
            return groups
        assert chosen.lr is not None
        return split_rates(groups, rows, chosen.embedding_lr * chosen.lr)

    def begin_finetuning(self) -> None:
        """Start the finetuning stage from the current weights, with a new optimizer."""
        epochs = self.config.optimizer.finetune
        assert epochs is not None
        self.average.adopt()
        self.finetune_end = self.batches.epoch + epochs
        self._make_optimizer()

    # --- How far the run is -------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Number of steps of the first stage; an estimate if lengths of windows are random."""
        training = self.config.training
        windows = training.epochs * self.batches.windows_per_epoch
        found = -(-windows // training.accumulate)
        return found if training.steps is None else min(found, training.steps)

    @property
    def all_steps(self) -> int:
        """Number of steps, including those of finetuning, which may end earlier."""
        training, epochs = self.config.training, self.config.optimizer.finetune or 0
        return self.steps + -(-epochs * self.batches.windows_per_epoch // training.accumulate)

    @property
    def epochs(self) -> float:
        """Number of epochs so far."""
        return self.batches.epoch + self.batches.offset / self.batches.steps_per_epoch

    @property
    def progress(self) -> float:
        """Finished share of the first stage, 0 to 1."""
        training = self.config.training
        found = self.epochs / training.epochs
        if training.steps is not None:
            found = max(found, self.step_number / training.steps)
        return min(found, 1.0)

    @property
    def stage_ended(self) -> bool:
        """Whether the current stage has no step left."""
        if self.finetune_end is not None:
            over = self.asgd is not None and self.asgd.finished
            return over or self.batches.epoch >= self.finetune_end
        training = self.config.training
        enough = training.steps is not None and self.step_number >= training.steps
        return enough or self.batches.epoch >= training.epochs

    @property
    def finished(self) -> bool:
        """Whether no step is left, including finetuning."""
        pending = self.finetune_end is None and self.config.optimizer.finetune
        return self.stage_ended and not pending

    # --- A step -------------------------------------------------------------------------------

    def step(self, flags: Sequence[float] = ()) -> StepReport:
        """Take one optimizer step; `flags` are summed over the processes."""
        factor = 1.0
        if self.finetune_end is None:
            factor = self.schedule(self._schedule_step(), self.steps, self.batches.epoch)
        self.optimizer.zero_grad(set_to_none=True)
        accumulate = self.config.training.accumulate
        losses: list[Tensor] = []
        ratios: list[float] = []
        weights: list[float] = []
        units = 0.0
        while len(losses) < accumulate and not (losses and self.stage_ended):
            batch = self.batches.take()
            loss, objective = self.loss(batch)
            (objective / accumulate).backward()  # type: ignore[no-untyped-call]
            losses.append(loss)
            ratios.append(batch.length_ratio)
            weights.append(self.task.weigh(self.config, batch))
            units += batch.units
        mean = losses[0] if len(losses) == 1 else torch.stack(losses).mean()
        mean, flag_sums = self.group.average(self.parameters, mean, flags)
        self.update(
            factor * sum(ratios) / len(ratios),
            accumulate / len(losses),
            sum(weights) / len(weights),
        )
        tokens = round(units * self.group.size)
        self.tokens += tokens
        return StepReport(mean, tokens, flag_sums)

    def _schedule_step(self) -> int:
        """Step number for schedules, from 0."""
        if not self.config.training.random_lengths:
            return self.step_number
        return round(self.progress * max(self.steps - 1, 0))

    def loss(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Compute the loss of a batch, detached, and the value to differentiate."""
        carry = None if batch.first else self.hidden
        with distributed.autocast(self.config.training.precision, self.device):
            found = self.task.loss(self.model, batch, carry, self.regularizer, in_loss=self.in_loss)
        if not isinstance(found, Losses) or found.mean.ndim or found.objective.ndim:
            raise BadOption(
                f"the loss of the task {self.task.NAME} is not two numbers",
                where=file_of(self.task),
                way_out="give Losses(mean, objective), each a tensor without dimensions",
            )
        self.hidden = found.carry
        return found.mean.detach(), found.objective * self.task.weigh(self.config, batch)

    def update(self, factor: float, scale: float, weight: float) -> None:
        """Apply the optimizer to the gradients of all processes.

        A method that depends on weights alone adds its gradient here, once for all windows and
        processes. The `weight` of a batch applies to it as to every other penalty, and scales the
        steps that a method takes itself.
        """
        if scale != 1.0:
            for p in self.parameters:
                if p.grad is not None:
                    p.grad.mul_(scale)
        if not self.in_loss:
            self.regularizer.add_gradient(weight)
        training, chosen = self.config.training, self.config.optimizer
        if training.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters, training.clip)
        lr = apply_factor(self.optimizer, factor)
        if chosen.embedding_lr is not None and chosen.lr is not None:
            lr = chosen.lr * chosen.embedding_lr * factor  # methods step on embeddings
        self.regularizer.before_step(lr * weight)
        self.optimizer.step()
        self.regularizer.after_step(lr * weight)
        self.step_number += 1
        if self.asgd is not None:
            self.asgd.after_step()
        elif chosen.average and self.progress > 1.0 - chosen.average:
            self.average.update()

    # --- The weights that count ---------------------------------------------------------------

    @contextmanager
    def evaluated(self) -> Iterator[Any]:
        """Put the model into evaluation mode, with averaged weights if there are any."""
        self.model.eval()
        try:
            with self.average.applied():
                yield self.model
        finally:
            self.model.train()

    def matrices(self) -> tuple[Tensor, Tensor | None]:
        """Return copies of the embedding, and of the output matrix of an untied model."""
        found = list_embeddings(self.model)
        weights = [w.detach().to("cpu", torch.float32, copy=True) for w in found]
        return weights[0], weights[1] if len(weights) > 1 else None

    # --- The state ----------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state on which the next steps depend; all processes must call it."""
        own = {"hidden": self.hidden, "random": distributed.get_random_state(self.device)}
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "regularizer": self.regularizer.state_dict(),
            "average": (self.asgd or self.average).state_dict(),
            "batches": self.batches.state_dict(),
            "step": self.step_number,
            "finetune_end": self.finetune_end,
            "tokens": self.tokens,
            "processes": self.group.gather(move_to("cpu", own)),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from `state`; EmbgeoError if it is of another number of processes."""
        if len(state["processes"]) != self.group.size:
            raise EmbgeoError(
                f"the run was begun by {len(state['processes'])} processes, these are "
                f"{self.group.size}",
                way_out="resume it with as many as it began with",
            )
        self.model.load_state_dict(state["model"])
        self.finetune_end = state["finetune_end"]
        if self.finetune_end is not None:
            self._make_optimizer()
        self.optimizer.load_state_dict(state["optimizer"])
        check_state(self.optimizer)
        self.regularizer.load_state_dict(state["regularizer"])
        (self.asgd or self.average).load_state_dict(state["average"])
        self.batches.load_state_dict(state["batches"])
        self.step_number, self.tokens = state["step"], state["tokens"]
        own = state["processes"][self.group.rank]
        self.hidden = move_to(self.device, own["hidden"])
        distributed.set_random_state(own["random"], self.device)
