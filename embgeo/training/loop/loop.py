"""A run: from settings, data and a folder to its result, which can be stopped and resumed anywhere.

Read it downwards: `train_run` prepares the process and the folder, `RunLoop.train` is the loop,
`RunLoop.finish` evaluates the trained model, `Trainer.step` is a step. The loss of a step is that
of its task: `embgeo.training.tasks.language_model.LanguageModeling.loss`, for example.
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embgeo.core.errors import BadOption, Diverged, EmbgeoError, UnreadableFile, writing
from embgeo.core.progress import Progress
from embgeo.training.complete import complete_settings
from embgeo.training.loop import checkpoint, distributed, facts
from embgeo.training.loop.checkpoint import MAKE_ROOM, fingerprint, move_to, write
from embgeo.training.methods import Setup, make_plain
from embgeo.training.methods.method import attach_method, list_embeddings
from embgeo.training.methods.weights import check_state
from embgeo.training.models.recurrent import keep_recurrence_exact
from embgeo.training.optimization.averaging import NtAsgd, WeightAverage
from embgeo.training.optimization.optimizers import (
    apply_factor,
    build_optimizer,
    parameter_groups,
)
from embgeo.training.registry import find_method
from embgeo.training.sections import Sgd
from embgeo.training.settings import StudySettings
from embgeo.training.study import run_result
from embgeo.training.study.log import LOG_NAME
from embgeo.training.study.outcomes import OUTCOMES
from embgeo.training.tasks import Dataset, SplitScores, make_task

#: Computes numbers of the embedding and, of an untied model, of the output matrix.
Measure = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32] | None], dict[str, float]]

#: The settings of a folder cannot change.
DIVERGED_WAY_OUT = "lower lr, or set clip in [training], and give another folder"
#: Offsets of the seeds of dropout and of processes from the seed of the initialization.
_DROPOUT = 1_000_003
_RANK = 7_919


def train_run(
    config: StudySettings,
    dataset: Dataset,
    folder: Path,
    *,
    measure: Measure | None,
    progress: Progress,
    command: str,
) -> run_result.RunResult:
    """Train one method with one seed, or resume it; return the saved result of a finished run.

    Ctrl-C and SIGTERM save the state, then raise KeyboardInterrupt. `config` has one method and one
    seed; see `StudySettings.one`. `measure` gives numbers of the embedding every `geometry.every`
    steps and at the end. `command` is recorded in the result.
    """
    config = complete_settings(config)
    if len(config.compare) != 1 or len(config.seeds) != 1:
        raise BadOption(
            "a run has one method and one seed", way_out="take them by StudySettings.one()"
        )
    identity = checkpoint.identity(config.tables(), dict(dataset.files))
    name = f"{config.compare[0]}, seed {config.seeds[0]}"
    with ExitStack() as stack:
        group = stack.enter_context(distributed.join_processes(config.training.device))
        if group.size == 1:
            waits = partial(progress.start, f"{name}: waiting for another process", 0)
            stack.enter_context(checkpoint.hold_folder(folder, waits))
        if run_result.is_finished(folder):
            checkpoint.require_same(checkpoint.read_identity(folder), identity, folder)
            # Left by a process that was killed after it wrote the result.
            (folder / checkpoint.STATE_NAME).unlink(missing_ok=True)
            return run_result.load_result(folder)
        device = distributed.find_device(config.training.device)
        stack.enter_context(
            distributed.numerics(config.training.precision, device, config.training.threads)
        )
        asked = stack.enter_context(distributed.note_interrupts())
        if group.leads:
            checkpoint.begin_folder(config, dataset, folder)
        run = RunLoop(config, dataset, folder, device, group, identity, measure)
        stack.callback(run.log.close)
        run.train(progress, asked.is_set)
        result = run.finish(command)
        if group.broadcast(asked.is_set()):
            raise KeyboardInterrupt
        return result


class StepReport(NamedTuple):
    """An optimizer step."""

    #: Mean loss of a unit over all processes, without penalties; on the device.
    loss: Tensor
    #: Number of units of all processes: targets, pairs, documents.
    tokens: int
    #: Sums of the flags over the processes.
    flags: list[float]


class RunLoop:
    """A run in one of its processes, from the beginning or its saved state.

    `notes`: notes for the result. `best`: the evaluation with the lowest validation loss, with its
    weights if they are kept. `restored`: whether these have replaced the last weights for good.
    """

    def __init__(
        self,
        config: StudySettings,
        dataset: Dataset,
        folder: Path,
        device: torch.device,
        group: distributed.ProcessGroup,
        identity: dict[str, Any],
        measure: Measure | None,
    ) -> None:
        self.config, self.dataset, self.folder = config, dataset, folder
        self.group, self.identity = group, identity
        state = checkpoint.load_state(folder)
        if state is not None:
            with checkpoint.guard_state(folder):
                checkpoint.require_same(state["identity"], identity, folder)
        self.trainer = Trainer(config, dataset, device, group)
        task = self.trainer.task
        self.evaluator = task.EVALUATOR(task, config, dataset, device)
        self.measure = measure if config.geometry.every else None
        self.notes: list[str] = []
        self.best: dict[str, Any] = {"loss": math.inf, "step": 0, "later": 0, "model": None}
        #: Since the last line of training loss: the sum of losses, of units, and seconds.
        self.interval: dict[str, float] = {"loss": 0.0, "tokens": 0, "seconds": 0.0}
        #: Losses stay on the device until they are needed, so that a GPU need not wait.
        self.waiting: list[StepReport] = []
        self.restored = False
        self.seconds_before, self.peak_before = 0.0, 0
        facts.reset_peak(device)
        length = 0
        if state is not None:
            with checkpoint.guard_state(folder):
                self.trainer.load_state_dict(state["trainer"])
                self.notes, self.best = list(state["notes"]), state["best"]
                self.interval = state["interval"]
                self.seconds_before, length = state["seconds"], state["log"]
                self.peak_before = state["peak"]
        path = folder / LOG_NAME if group.leads else None
        self.log = RunLog(path, length)
        self.started = self.saved = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds of the run, with those before it was resumed."""
        return self.seconds_before + time.perf_counter() - self.started

    @property
    def peak(self) -> int | None:
        """Peak of memory in bytes, also before the run was resumed; None where it is unknown."""
        found = facts.read_peak(self.trainer.device)
        return found and max(found, self.peak_before)

    @property
    def stopped(self) -> bool:
        """Whether early stopping ends the run: more patience would change nothing.

        After `patience` evaluations without a new best it goes on for as many again. A model may
        leave a plateau in these, whose loss then is the best.
        """
        patience = self.config.training.patience
        return patience is not None and self.best["later"] >= 2 * patience

    def train(self, progress: Progress, is_asked: Callable[[], bool]) -> None:
        """Take all remaining steps, unless `is_asked` to stop."""
        trainer = self.trainer
        progress.start(f"{trainer.method.name}, seed {self.config.seeds[0]}", trainer.all_steps)
        progress.advance(trainer.step_number)
        if not trainer.step_number:
            with trainer.evaluated():
                self.log_geometry()
        while not (trainer.finished or self.stopped):
            if trainer.stage_ended:
                self.restore_best()
                self.notes.append(f"finetuning begins at step {trainer.step_number:,}")
                trainer.begin_finetuning()
            epoch, began = trainer.batches.epoch, time.perf_counter()
            stepped = trainer.step((float(is_asked()), float(self.save_is_due())))
            self.waiting.append(stepped)
            self.interval["seconds"] += time.perf_counter() - began
            if trainer.finished or trainer.step_number % self.config.training.log_every == 0:
                self.log_losses()
            self.evaluate(epoch_ended=trainer.batches.epoch > epoch)
            if trainer.step_number % (self.config.geometry.every or math.inf) == 0:
                with trainer.evaluated():
                    self.log_geometry()
            progress.advance(1)
            asked, due = stepped.flags
            if asked or due:
                self.save()
            if asked:
                raise KeyboardInterrupt
        if self.stopped and not trainer.finished:
            self.notes.append(
                f"stopped at step {trainer.step_number:,} of {trainer.all_steps:,}: "
                f"{self.best['later']} evaluations in a row, twice the patience, without a lower "
                "validation loss"
            )
        if self.group.broadcast(is_asked()):
            self.save()
            raise KeyboardInterrupt

    # --- Numbers on the way -------------------------------------------------------------------

    def write_log(self, values: dict[str, float]) -> None:
        """Write numbers at the step that the weights are of."""
        self.log.write(self.best["step"] if self.restored else self.trainer.step_number, values)

    def add_losses(self) -> dict[str, float]:
        """Fetch all losses from the device, and return the sums since the last line.

        They are added one by one, so that a resumed run gets the same sum.
        """
        if self.waiting:
            began = time.perf_counter()
            losses = torch.stack([stepped.loss for stepped in self.waiting]).tolist()
            for loss, stepped in zip(losses, self.waiting, strict=True):
                self.interval["loss"] += loss * stepped.tokens
                self.interval["tokens"] += stepped.tokens
            self.waiting = []
            self.interval["seconds"] += time.perf_counter() - began
        return self.interval

    def log_losses(self) -> None:
        """Write a line of training loss."""
        found = self.add_losses()
        loss = found["loss"] / found["tokens"]
        if not math.isfinite(loss):
            raise self.diverged("the loss became NaN or infinite")
        values = {
            "train.loss": loss,
            "train.perplexity": math.exp(min(loss, 700.0)),
            "train.tokens_per_second": round(found["tokens"] / max(found["seconds"], 1e-9), 1),
            "train.seconds": round(self.seconds, 3),
        }
        self.interval = {"loss": 0.0, "tokens": 0, "seconds": 0.0}
        self.write_log(values)

    def evaluate(self, *, epoch_ended: bool) -> None:
        """Evaluate on the validation split if it is due."""
        trainer, every = self.trainer, self.config.evaluation.every
        keeps = self.config.training.keep == "best"
        due = epoch_ended if every is None else trainer.step_number % every == 0
        if not (keeps if trainer.finished else due):
            return  # without best weights the last evaluation is that of the end
        with trainer.evaluated() as model:
            scores = self.evaluator.valid(model) if self.group.leads else None
            scores = self.group.broadcast(scores)
            loss = float(scores["loss"])
            better = loss < self.best["loss"]
            self.best["later"] = 0 if better else self.best["later"] + 1
            if keeps and better:
                weights = {name: value.clone() for name, value in model.state_dict().items()}
                weights, step = checkpoint.move_to("cpu", weights), trainer.step_number
                self.best = {"loss": loss, "step": step, "later": 0, "model": weights}
        self.write_log(self.name_scores("valid", scores))
        if trainer.asgd is not None and trainer.asgd.checked(loss):
            what = "averaging begins" if trainer.finetune_end is None else "finetuning ends"
            self.notes.append(f"{what} at step {trainer.step_number:,} (NT-ASGD)")

    def log_geometry(self) -> None:
        """Log the geometry of the weights of an evaluation, inside of `Trainer.evaluated`."""
        if self.measure is None:
            return
        W, output = self.trainer.matrices()
        if not bool(torch.isfinite(W).all()):  # in all processes, which hold the same
            raise self.diverged("the embedding holds numbers that are not finite")
        if self.group.leads:
            self.write_log(self.measure(W.numpy(), None if output is None else output.numpy()))

    def name_scores(self, split: str, found: SplitScores) -> dict[str, float]:
        """Name scores under the names of the log."""
        names = self.trainer.task.SCORES
        return {f"{split}.{name}": v for name in names if (v := found.get(name)) is not None}

    def diverged(self, what: str) -> Diverged:
        """Return the error of a diverged training."""
        where = f"{self.trainer.method.name}, step {self.trainer.step_number:,}"
        cause = f"the training diverged: {what} ({where})"
        return Diverged(cause, where=self.folder, way_out=DIVERGED_WAY_OUT)

    # --- States -------------------------------------------------------------------------------

    def save_is_due(self) -> bool:
        """Tell whether this process leads and the state is to be saved after the next step."""
        training = self.config.training
        late = time.perf_counter() - self.saved > training.save_seconds
        due = (self.trainer.step_number + 1) % (training.save_steps or math.inf) == 0
        return self.group.leads and (late or due)

    def save(self) -> None:
        """Write the state; all processes must call it."""
        state = {
            "identity": self.identity,
            "trainer": self.trainer.state_dict(),
            "notes": self.notes,
            "best": self.best,
            "interval": self.add_losses(),
            "seconds": self.seconds,
            "peak": self.peak or 0,
            "log": self.log.length,
        }
        if self.group.leads:
            checkpoint.save_state(state, self.folder)
        self.saved = time.perf_counter()

    def restore_best(self) -> None:
        """Restore the weights with the lowest validation loss, if they are kept."""
        if self.best["model"] is not None:
            self.trainer.model.load_state_dict(self.best["model"])
            self.trainer.average.restart()

    # --- The end ------------------------------------------------------------------------------

    def finish(self, command: str) -> run_result.RunResult:
        """Evaluate and write the final model as plain layers, then the result; remove the state."""
        trainer, folder = self.trainer, self.folder
        if self.best["model"] is not None:
            step = self.best["step"]
            self.notes.append(
                f"the weights are those of step {step:,}, with the lowest validation loss"
            )
            self.restore_best()
            self.restored = True
        with trainer.evaluated() as model:
            make_plain(model)
            valid, test, outcomes = self.final_scores()
            parameters = facts.count_parameters(model)
            with torch.random.fork_rng(devices=[]):  # it depends on the seed alone
                first = trainer.task.build(self.config, trainer.method, self.dataset)
            of_rows = facts.measure_rows(
                first,
                model,
                torch.from_numpy(self.dataset.vocabulary.counts),
            )
            content = checkpoint.model_bytes(model) if self.group.leads else b""
        result = run_result.RunResult(
            method=trainer.method.name,
            seed=self.config.seeds[0],
            steps=trainer.step_number,
            epochs=round(trainer.epochs, 6),
            tokens=trainer.tokens,
            seconds=round(self.seconds, 3),
            parameters=parameters,
            valid=valid,
            test=test,
            settings=self.config.tables(),
            source=trainer.method.publication,
            deviations=facts.list_deviations(trainer.method, trainer.model, self.config.model),
            notes=tuple(self.notes),
            versions=facts.list_versions(),
            command=command,
            corpus=facts.describe_dataset(self.dataset),
            initial_sha256=trainer.initial_sha256,
            stopped_early=self.stopped,
            task=trainer.task.NAME,
            quality=trainer.task.quality(self.config),
            quantities=trainer.task.QUANTITIES,
            peak_memory=self.peak,
            of_rows=of_rows,
        )
        if self.group.leads:
            write(folder / checkpoint.MODEL_NAME, content)
            if outcomes is not None:
                write(folder / OUTCOMES.file, OUTCOMES.text(outcomes).encode())
            write(folder / run_result.RESULT_NAME, run_result.RUN_RESULT.text(result).encode())
            (folder / checkpoint.STATE_NAME).unlink(missing_ok=True)
        return result

    def final_scores(self) -> tuple[SplitScores, SplitScores | None, Any]:
        """Evaluate both splits, with outcomes for bootstraps, and log the final numbers."""
        task = self.trainer.task
        found = self.evaluator.final(self.trainer.model) if self.group.leads else None
        self.notes += self.evaluator.describe_parts()
        valid, test, outcomes = self.group.broadcast(found)
        if test is not None and (quality := task.quality(self.config)) not in valid | test:
            raise BadOption(
                f"the evaluator of the task {task.NAME} gives no {quality}",
                way_out="give the score that QUALITY names, by this name",
            )
        valid, test = self.finite("validation", valid), test and self.finite("test", test)
        values = self.name_scores("valid", valid)
        self.write_log(values | (self.name_scores("test", test) if test else {}))
        self.log_geometry()
        return valid, test, outcomes

    def finite(self, split: str, found: SplitScores) -> SplitScores:
        """Return the scores; infinite values and NaN, which JSON lacks, become None."""
        known = {k: v if v is None or math.isfinite(v) else None for k, v in found.items()}
        quality = self.trainer.task.quality(self.config)
        if quality in found and known[quality] is None:
            raise self.diverged(f"there is no finite {quality} on the {split} split")
        return known


class RunLog:
    """The log of a run, one JSON object per line.

    `path`: None in processes that write nothing. `length`: number of bytes to keep. What a killed
    run wrote after its last saved state is removed and written again.
    """

    def __init__(self, path: Path | None, length: int = 0) -> None:
        self.path, self.length = path, length
        self.file = None
        if path is None:
            return
        again = "remove the folder to start again"
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        with writing(path, again):
            self.file = os.fdopen(os.open(path, flags, 0o666), "r+b")
        if self.file.seek(0, 2) < length:
            self.file.close()
            raise UnreadableFile(
                f"is shorter than the {length:,} bytes that the run had written",
                where=path,
                way_out=again,
            )
        self.file.truncate(length)
        self.file.seek(length)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write one line, without values that are not finite, which JSON lacks."""
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        if self.file is None or self.path is None or not known:
            return
        with writing(self.path, MAKE_ROOM):
            self.file.write(json.dumps({"step": step, **known}).encode() + b"\n")
            self.file.flush()
        self.length = self.file.tell()

    def close(self) -> None:
        if self.file is not None:
            with suppress(OSError):  # of a full disk, which `write` has reported
                self.file.close()


class Trainer:
    """Trains one model with one method, step by step.

    The initial weights depend on the seed alone; dropout has its own seed, set after the method is
    attached. So all methods start from the same weights and see the same windows, and the same
    masks if they draw the same things. `config` has one method and one seed.
    """

    def __init__(
        self,
        config: StudySettings,
        dataset: Dataset,
        device: torch.device,
        group: distributed.ProcessGroup,
    ) -> None:
        self.config, self.device, self.group = config, device, group
        self.training = config.training
        self.method = find_method(config.compare[0], config.method)
        seed = config.seeds[0]
        self.task = make_task(config)
        self.batches = self.task.feed(config, dataset, group, device)
        self.model = self.task.build(config, self.method, dataset)
        self.initial_sha256 = fingerprint(self.model)
        self.model.to(device)
        source = getattr(dataset, "source_vocabulary", None)
        self.regularizer = attach_method(
            self.method,
            self.model,
            Setup(
                counts=torch.from_numpy(dataset.vocabulary.counts),
                sgd=config.optimizer.kind == "sgd",
                seed=seed,
                source_counts=None if source is None else torch.from_numpy(source.counts),
            ),
            config.method.get(self.method.name, {}),
        ).to(device)
        if self.training.precision == "bf16":
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
        """Make the optimizer of a stage, with the parameters grouped by weight decay and rate."""
        chosen, algorithm = self.config.optimizer, self.config.optimizer.algorithm
        groups: list[dict[str, Any]] = [{"params": self.parameters}]
        if chosen.decay != "all":
            special, rows = self.regularizer.parameter_groups(), self.model.embedding_parameters()
            groups = parameter_groups(self.model, special, rows)
        coupled = list_embeddings(self.model) if self.method.coupled else ()
        sparse = self.task.SPARSE
        self.optimizer = build_optimizer(algorithm, groups, coupled=coupled, sparse=sparse)
        self.schedule = chosen.factor
        self.average = WeightAverage(self.parameters)
        self.asgd = None
        if isinstance(algorithm, Sgd) and algorithm.asgd:
            again = self.finetune_end is not None
            self.asgd = NtAsgd(self.average, window=algorithm.window, finetune=again)

    def begin_finetuning(self) -> None:
        """Start the finetuning stage from the current weights, with a new optimizer."""
        self.average.adopt()
        self.finetune_end = self.batches.epoch + self.config.optimizer.finetune
        self._make_optimizer()

    # --- How far the run is -------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Number of steps of the first stage; an estimate if lengths of windows are random."""
        windows = self.training.epochs * self.batches.windows_per_epoch
        found = -(-windows // self.training.accumulate)
        return found if self.training.steps is None else min(found, self.training.steps)

    @property
    def all_steps(self) -> int:
        """Number of steps, including those of finetuning, which may end earlier."""
        windows = self.config.optimizer.finetune * self.batches.windows_per_epoch
        return self.steps + -(-windows // self.training.accumulate)

    @property
    def epochs(self) -> float:
        """Number of epochs so far."""
        return self.batches.epoch + self.batches.offset / self.batches.steps_per_epoch

    @property
    def progress(self) -> float:
        """Finished share of the first stage, 0 to 1."""
        found = self.epochs / self.training.epochs
        if self.training.steps is not None:
            found = max(found, self.step_number / self.training.steps)
        return min(found, 1.0)

    @property
    def stage_ended(self) -> bool:
        """Whether the current stage has no step left."""
        if self.finetune_end is not None:
            over = self.asgd is not None and self.asgd.finished
            return over or self.batches.epoch >= self.finetune_end
        most = self.training.steps
        enough = most is not None and self.step_number >= most
        return enough or self.batches.epoch >= self.training.epochs

    @property
    def finished(self) -> bool:
        """Whether no step is left, including finetuning."""
        pending = self.finetune_end is None and self.config.optimizer.finetune
        return self.stage_ended and not pending

    # --- A step -------------------------------------------------------------------------------

    def step(self, flags: Sequence[float] = ()) -> StepReport:
        """Take one optimizer step; `flags` are summed over the processes.

        A method that depends on weights alone adds its gradient once for all windows and processes.
        The mean weight of the batches applies to it as to every other penalty, and scales the steps
        that a method takes itself.
        """
        factor = 1.0
        if self.finetune_end is None:
            done = self.step_number
            if self.training.random_lengths:  # the number of steps is an estimate
                done = round(self.progress * max(self.steps - 1, 0))
            factor = self.schedule(done, self.steps, self.batches.epoch)
        self.optimizer.zero_grad(set_to_none=True)
        accumulate = self.training.accumulate
        losses: list[Tensor] = []
        batches: list[Any] = []
        while len(losses) < accumulate and not (losses and self.stage_ended):
            batches.append(self.batches.take())
            loss, objective = self.loss(batches[-1])
            (objective / accumulate).backward()  # type: ignore[no-untyped-call]
            losses.append(loss)
        mean = losses[0] if len(losses) == 1 else torch.stack(losses).mean()
        mean, flag_sums = self.group.average(self.parameters, mean, flags)
        number = len(batches)
        if number < accumulate:  # at the end of a stage
            for p in self.parameters:
                if p.grad is not None:
                    p.grad.mul_(accumulate / number)
        weight = sum(self.task.weigh(self.config, batch) for batch in batches) / number
        if not self.in_loss:
            self.regularizer.add_gradient(weight)
        if self.training.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.training.clip)
        factor = factor * sum(batch.length_ratio for batch in batches) / number
        lr = apply_factor(self.optimizer, factor)
        self.optimizer.step()
        self.regularizer.after_step(lr * weight)
        self.step_number += 1
        if self.asgd is not None:
            self.asgd.after_step()
        elif (share := self.config.optimizer.average) and self.progress > 1.0 - share:
            self.average.update()
        tokens = round(sum(batch.units for batch in batches) * self.group.size)
        self.tokens += tokens
        return StepReport(mean, tokens, flag_sums)

    def loss(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Compute the loss of a batch, detached, and the value to differentiate."""
        carry, short = None if batch.first else self.hidden, self.training.precision == "bf16"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=short):
            found = self.task.loss(self.model, batch, carry, self.regularizer)
            if self.in_loss:
                found.objective = found.objective + self.regularizer(found.step)
        self.hidden = found.carry
        return found.mean.detach(), found.objective * self.task.weigh(self.config, batch)

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
