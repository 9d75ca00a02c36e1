"""A run: from settings, data and a folder to its result, which can be stopped and resumed anywhere.

Read it downwards: `train_run` prepares the process and the folder, `RunLoop.train` is the loop,
`RunLoop.finish` evaluates the trained model. `Trainer` takes the steps.
"""

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from embgeo.core.errors import BadOption, Diverged, EmbgeoError
from embgeo.core.progress import Progress
from embgeo.training.complete import complete_settings
from embgeo.training.loop import checkpoint, distributed, facts
from embgeo.training.loop.checkpoint import write
from embgeo.training.loop.log import LossInterval, RunLog
from embgeo.training.loop.trainer import StepReport, Trainer
from embgeo.training.methods import make_plain
from embgeo.training.registry import file_of
from embgeo.training.settings import StudySettings
from embgeo.training.study import run_result
from embgeo.training.study.log import LOG_NAME
from embgeo.training.study.outcomes import OUTCOMES
from embgeo.training.tasks import Dataset, SplitScores

#: Computes numbers of the embedding and, of an untied model, of the output matrix.
Measure = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32] | None], dict[str, float]]

#: The state is saved at the end of an epoch unless the last save took more than this share of the
#: time since then.
_SAVING = 0.1

#: The settings of a folder cannot change.
DIVERGED_WAY_OUT = "lower lr, or set clip in [training], and give another folder"


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
        interrupt = stack.enter_context(distributed.note_interrupts())
        if group.leads:
            checkpoint.begin_folder(config, dataset, folder)
        run = RunLoop(config, dataset, folder, device, group, identity, measure)
        stack.callback(run.log.close)
        run.train(progress, interrupt)
        result = run.finish(command)
        if group.broadcast(interrupt.asked):
            raise KeyboardInterrupt
        return result


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
        self.evaluator = self.trainer.task.evaluator(config, dataset, device)
        self.measure = measure if config.geometry.every else None
        self.notes: list[str] = []
        self.best: dict[str, Any] = {"loss": math.inf, "step": 0, "later": 0, "model": None}
        self.interval = LossInterval()
        self.restored = False
        self.seconds_before, self.peak_before = 0.0, 0
        facts.reset_peak(device)
        length = 0
        if state is not None:
            with checkpoint.guard_state(folder):
                self.trainer.load_state_dict(state["trainer"])
                self.notes, self.best = list(state["notes"]), state["best"]
                self.interval = LossInterval(**state["interval"])
                self.seconds_before, length = state["seconds"], state["log"]
                self.peak_before = state["peak"]
        path = folder / LOG_NAME if group.leads else None
        self.log = RunLog(path, length)
        self.started = self.saved = time.perf_counter()
        self.saving = 0.0

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
    def weights_step(self) -> int:
        """The step that the weights are of, at which their numbers are logged."""
        return self.best["step"] if self.restored else self.trainer.step_number

    @property
    def stopped(self) -> bool:
        """Whether early stopping ends the run: more patience would change nothing.

        After `patience` evaluations without a new best it goes on for as many again. A model may
        leave a plateau in these, whose loss then is the best.
        """
        patience = self.config.training.patience
        return patience is not None and self.best["later"] >= 2 * patience

    def train(self, progress: Progress, interrupt: distributed.Interrupt) -> None:
        """Take all remaining steps."""
        trainer = self.trainer
        progress.start(f"{trainer.method.name}, seed {self.config.seeds[0]}", trainer.all_steps)
        progress.advance(trainer.step_number)
        if not trainer.step_number:
            self.measure_geometry()
        while not (trainer.finished or self.stopped):
            if trainer.stage_ended:
                self.restore_best()
                self.notes.append(f"finetuning begins at step {trainer.step_number:,}")
                trainer.begin_finetuning()
            epoch, began = trainer.batches.epoch, time.perf_counter()
            stepped = trainer.step((float(interrupt.asked), float(self.save_is_due())))
            self.log_step(stepped, time.perf_counter() - began)
            epoch_ended = trainer.batches.epoch > epoch
            self.evaluate(epoch_ended)
            if trainer.step_number % (self.config.geometry.every or math.inf) == 0:
                self.measure_geometry()
            progress.advance(1)
            asked, due = stepped.flags
            if asked:
                self.save()
                raise KeyboardInterrupt
            if due or self.group.broadcast(epoch_ended and self.saving_is_cheap()):
                self.save()
        if self.stopped and not trainer.finished:
            self.notes.append(
                f"stopped at step {trainer.step_number:,} of {trainer.all_steps:,}: "
                f"{self.best['later']} evaluations in a row, twice the patience, without a lower "
                "validation loss"
            )
        if self.group.broadcast(interrupt.asked):
            self.save()
            raise KeyboardInterrupt

    # --- Numbers on the way -------------------------------------------------------------------

    def write_log(self, values: dict[str, float]) -> None:
        self.log.write(self.weights_step, values)

    def log_step(self, stepped: StepReport, seconds: float) -> None:
        """Add a step to the next line of the log, and write the line if it is due."""
        self.interval.add(stepped.loss, stepped.tokens, seconds)
        trainer = self.trainer
        if trainer.step_number % self.config.training.log_every and not trainer.finished:
            return
        values, self.interval = self.interval.describe(), LossInterval()
        if not math.isfinite(values["train.loss"]):
            raise self.diverged("the loss became NaN or infinite")
        values |= self.penalties() | trainer.regularizer.numbers()
        self.write_log({**values, "train.seconds": round(self.seconds, 3)})

    def penalties(self) -> dict[str, float]:
        """Get last value of every penalty; means over all processes for penalties of positions."""
        own = {name: float(value) for name, value in self.trainer.regularizer.terms.items()}
        found = self.group.gather(own)
        return {f"penalty.{name}": fmean(one[name] for one in found) for name in own}

    def evaluate(self, epoch_ended: bool) -> None:
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

    def measure_geometry(self) -> None:
        """Log the geometry of the weights that an evaluation would use."""
        if self.measure is None:
            return
        with self.trainer.evaluated():
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
        if training.save_steps and (self.trainer.step_number + 1) % training.save_steps == 0:
            late = True
        return self.group.leads and late

    def saving_is_cheap(self) -> bool:
        """Tell whether saving takes little of the time since the last save."""
        return self.saving < _SAVING * (time.perf_counter() - self.saved)

    def save(self) -> None:
        """Write the state; all processes must call it."""
        began = time.perf_counter()
        self.require_equal_weights()
        state = {
            "identity": self.identity,
            "trainer": self.trainer.state_dict(),
            "notes": self.notes,
            "best": self.best,
            "interval": self.interval.state_dict(),
            "seconds": self.seconds,
            "peak": self.peak or 0,
            "log": self.log.length,
        }
        if self.group.leads:
            checkpoint.save_state(state, self.folder)
        self.saved = time.perf_counter()
        self.saving = self.saved - began

    def require_equal_weights(self) -> None:
        """Refuse to save where the processes no longer hold the same weights."""
        if self.group.size == 1:
            return
        hashes = self.group.gather(checkpoint.hash_weights(self.trainer.model.named_parameters()))
        if len(set(hashes)) > 1:
            ranks = [rank for rank, one in enumerate(hashes) if one != hashes[0]]
            cause = f"at step {self.trainer.step_number:,} the weights of the processes "
            cause += f"{', '.join(map(str, ranks))} differ from those of process 0"
            way_out = "resume from the state before with --resume; a model or method that draws "
            way_out += "from a generator of its own has to draw the same in each process"
            raise EmbgeoError(cause, where=self.folder, way_out=way_out)

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
            parameters = checkpoint.count_parameters(model)
            of_rows = facts.measure_rows(trainer, self.dataset, self.config)
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
            deviations=facts.list_deviations(trainer),
            notes=tuple(self.notes),
            versions=checkpoint.list_versions(),
            command=command,
            corpus=checkpoint.describe_dataset(self.dataset),
            initial_sha256=trainer.initial_sha256,
            stopped_early=self.stopped,
            task=trainer.task.NAME,
            quality=trainer.task.quality(self.config),
            quantities=trainer.task.QUANTITIES,
            peak_memory=self.peak,
            of_rows=of_rows,
            predictions=getattr(self.evaluator, "predictions", ()),
        )
        if self.group.leads:
            for name, kept in getattr(self.evaluator, "files", {}).items():
                write(folder / name, kept)
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
        quality = task.quality(self.config)
        if test is not None and quality not in valid | test:
            raise BadOption(
                f"the evaluator of the task {task.NAME} gives no {quality}",
                where=file_of(task),
                way_out="give the score that QUALITY names, by this name",
            )
        valid, test = self.finite("validation", valid), test and self.finite("test", test)
        values = self.name_scores("valid", valid)
        self.write_log(values | (self.name_scores("test", test) if test else {}))
        if self.measure is not None and self.group.leads:
            W, output = self.trainer.matrices()
            self.write_log(self.measure(W.numpy(), None if output is None else output.numpy()))
        return valid, test, outcomes

    def finite(self, split: str, found: SplitScores) -> SplitScores:
        """Return the scores; infinite values and NaN, which JSON lacks, become None."""
        known = {k: v if v is None or math.isfinite(v) else None for k, v in found.items()}
        quality = self.trainer.task.quality(self.config)
        if quality in found and known[quality] is None:
            raise self.diverged(f"there is no finite {quality} on the {split} split")
        return known
