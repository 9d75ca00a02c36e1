"""A run from its first step or saved state to the end: logs, evaluations, saves."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from embgeo.core.errors import BadOption, Diverged
from embgeo.core.progress import Progress
from embgeo.training.loop import checkpoint
from embgeo.training.loop.log import RunLog
from embgeo.training.loop.loop import Loop, StepReport, move_to
from embgeo.training.loop.process import Interrupts, World
from embgeo.training.methods import make_plain
from embgeo.training.registry import file_of
from embgeo.training.settings import StudySettings
from embgeo.training.study.log import LOG_NAME
from embgeo.training.study.samples import Samples
from embgeo.training.tasks import Dataset, SplitScores

#: Computes numbers of the embedding and, of an untied model, of the output matrix.
Measure = Callable[[npt.NDArray[np.float32], npt.NDArray[np.float32] | None], dict[str, float]]


#: The state is saved at the end of an epoch unless the last save took more than this share of the
#: time since then.
_SAVING = 0.1

#: Way out if a training diverges; the settings of a folder cannot change.
CALMER = "lower lr, or set clip in [training], and give another folder"


class Session:
    """The work of one process for a run; `notes` are for the result."""

    def __init__(
        self,
        config: StudySettings,
        dataset: Dataset,
        folder: Path,
        device: torch.device,
        world: World,
        identity: dict[str, Any],
        measure: Measure | None = None,
        tensorboard: Any = None,
    ) -> None:
        self.config, self.dataset, self.folder = config, dataset, folder
        self.world, self.identity = world, identity
        state = checkpoint.load_state(folder)
        if state is not None:
            checkpoint.require_same(state["identity"], identity, folder)
        self.loop = Loop(config, dataset, device, world)
        self.scores = self.loop.task.evaluator(config, dataset, device)
        self.measure = measure if config.geometry.every else None
        self.notes: list[str] = []
        self.best: dict[str, Any] = {"loss": math.inf, "step": 0, "later": 0, "model": None}
        self.interval = LossInterval()
        self.before = 0.0
        length = 0
        if state is not None:
            self.loop.load_state_dict(state["loop"])
            self.notes, self.best = list(state["notes"]), state["best"]
            self.interval = LossInterval(**state["interval"])
            self.before, length = state["seconds"], state["log"]
        self.log = RunLog(folder / LOG_NAME if world.leads else None, length, tensorboard)
        self.started = time.perf_counter()
        self.saved = self.started
        self.saving = 0.0

    @property
    def seconds(self) -> float:
        """Seconds of all sessions of the run."""
        return self.before + time.perf_counter() - self.started

    @property
    def stopped(self) -> bool:
        """Whether early stopping ends the run: its last evaluations did not improve."""
        patience = self.config.training.patience
        return patience is not None and self.best["later"] >= patience

    def train(self, progress: Progress, interrupts: Interrupts) -> None:
        """Take all remaining steps."""
        loop = self.loop
        progress.start(f"{loop.method.name}, seed {self.config.seeds[0]}", loop.all_steps)
        progress.advance(loop.step_number)
        if not loop.step_number:
            self.measure_geometry()
        while not (loop.finished or self.stopped):
            if loop.stage_ended:
                self.restore_best()
                self.notes.append(f"finetuning begins at step {loop.step_number:,}")
                loop.begin_finetuning()
            epoch = loop.batches.epoch
            began = time.perf_counter()
            stepped = loop.step((float(interrupts.asked), float(self.due())))
            self.note(stepped, time.perf_counter() - began)
            ended = loop.batches.epoch > epoch
            self.check(ended)
            if loop.step_number % (self.config.geometry.every or math.inf) == 0:
                self.measure_geometry()
            progress.advance(1)
            asked, due = stepped.flags
            if asked:
                self.save()
                raise KeyboardInterrupt
            if due or self.world.broadcast(ended and self.cheap()):
                self.save()
        if self.stopped and not loop.finished:
            self.notes.append(
                f"stopped at step {loop.step_number:,} of {loop.all_steps:,}: "
                f"{self.config.training.patience} evaluations in a row without a lower validation "
                "loss"
            )
        if self.world.broadcast(interrupts.asked):
            self.save()
            raise KeyboardInterrupt

    # --- Numbers on the way -------------------------------------------------------------------

    def note(self, stepped: StepReport, seconds: float) -> None:
        """Add a step to the next line of the log, and write the line if it is due."""
        self.interval.add(stepped, seconds)
        if self.loop.step_number % self.config.training.log_every and not self.loop.finished:
            return
        values = self.interval.take()
        if not math.isfinite(values["train.loss"]):
            raise self.diverged("the loss became NaN or infinite")
        values |= self.penalties() | self.loop.regularizer.numbers() | self.loop.step_sizes
        self.log.write(self.loop.step_number, {**values, "train.seconds": round(self.seconds, 3)})

    def penalties(self) -> dict[str, float]:
        """Last value of every penalty; means over all processes for penalties of positions."""
        own = {name: float(value) for name, value in self.loop.regularizer.terms.items()}
        found = self.world.gather(own)
        return {f"penalty.{name}": fmean(one[name] for one in found) for name in own}

    def check(self, ended: bool) -> None:
        """Evaluate on the validation split if it is due."""
        every = self.config.evaluation.every
        keeps = self.config.training.keep == "best"
        due = ended if every is None else self.loop.step_number % every == 0
        if not (keeps if self.loop.finished else due):
            return  # without best weights the last evaluation is that of the end
        with self.loop.evaluated() as model:
            found = self.world.broadcast(self.scores.valid(model) if self.world.leads else None)
            loss = float(found["loss"])
            better = loss < self.best["loss"]
            self.best["later"] = 0 if better else self.best["later"] + 1
            if keeps and better:
                weights = move_to("cpu", {k: v.clone() for k, v in model.state_dict().items()})
                self.best = {
                    "loss": loss,
                    "step": self.loop.step_number,
                    "later": 0,
                    "model": weights,
                }
        self.log.write(self.loop.step_number, self.name_scores("valid", found))
        if self.loop.asgd is not None and self.loop.asgd.checked(loss):
            what = "averaging begins" if self.loop.finetune_end is None else "finetuning ends"
            self.notes.append(f"{what} at step {self.loop.step_number:,} (NT-ASGD)")

    def measure_geometry(self) -> None:
        """Log the geometry of the weights that an evaluation would use."""
        if self.measure is None:
            return
        with self.loop.evaluated():
            W, output = self.loop.matrices()
        if not bool(torch.isfinite(W).all()):  # in all processes, which hold the same
            raise self.diverged("the embedding holds numbers that are not finite")
        if self.world.leads:
            self.log.write(self.loop.step_number, measure_matrices(self.measure, W, output))

    def finite(self, split: str, found: SplitScores) -> SplitScores:
        """The scores; infinite values and NaN, which JSON lacks, become None."""
        known = {k: v if v is None or math.isfinite(v) else None for k, v in found.items()}
        quality = self.loop.task.quality(self.config)
        if quality in found and known[quality] is None:
            raise self.diverged(f"there is no finite {quality} on the {split} split")
        return known

    def name_scores(self, split: str, found: SplitScores) -> dict[str, float]:
        """Scores under the names of the log."""
        names = self.loop.task.SCORES
        return {f"{split}.{name}": v for name in names if (v := found.get(name)) is not None}

    def diverged(self, what: str) -> Diverged:
        """The error of a diverged training."""
        where = f"{self.loop.method.name}, step {self.loop.step_number:,}"
        return Diverged(
            f"the training diverged: {what} ({where})", where=self.folder, way_out=CALMER
        )

    # --- States -------------------------------------------------------------------------------

    def due(self) -> bool:
        """Whether this process leads and the state is to be saved after the next step."""
        training = self.config.training
        late = time.perf_counter() - self.saved > training.save_seconds
        if training.save_steps and (self.loop.step_number + 1) % training.save_steps == 0:
            late = True
        return self.world.leads and late

    def cheap(self) -> bool:
        """Whether saving takes little of the time since the last save."""
        return self.saving < _SAVING * (time.perf_counter() - self.saved)

    def save(self) -> None:
        """Write the state; all processes must call it."""
        began = time.perf_counter()
        state = {
            "identity": self.identity,
            "loop": self.loop.state_dict(),
            "notes": self.notes,
            "best": self.best,
            "interval": self.interval.state_dict(),
            "seconds": self.seconds,
            "log": self.log.length,
        }
        if self.world.leads:
            checkpoint.save_state(state, self.folder)
        self.saved = time.perf_counter()
        self.saving = self.saved - began

    def restore_best(self) -> None:
        """Restore the weights with the lowest validation loss, if they are kept."""
        if self.best["model"] is not None:
            self.loop.model.load_state_dict(self.best["model"])
            self.loop.average.restart()

    # --- The end ------------------------------------------------------------------------------

    @contextmanager
    def final(self) -> Iterator[Any]:
        """The final model as plain layers."""
        if self.best["model"] is not None:
            self.notes.append(
                f"the weights are those of step {self.best['step']:,}, with the lowest validation "
                "loss"
            )
            self.restore_best()
        with self.loop.evaluated() as model:
            make_plain(model)
            yield model

    def final_scores(self) -> tuple[SplitScores, SplitScores | None, Samples | None]:
        """Evaluate both splits, with samples for bootstraps, and log the final numbers."""
        found = None
        if self.world.leads:
            found = self.scores.final(self.loop.model)
        self.notes += self.scores.describe_parts()
        valid, test, samples = self.world.broadcast(found)
        quality = self.loop.task.quality(self.config)
        if test is not None and quality not in valid | test:
            raise BadOption(
                f"the evaluator of the task {self.loop.task.NAME} gives no {quality}",
                where=file_of(self.loop.task),
                way_out="give the score that QUALITY names, by this name",
            )
        valid, test = self.finite("validation", valid), test and self.finite("test", test)
        values = self.name_scores("valid", valid)
        values |= self.name_scores("test", test) if test else {}
        self.log.write(self.loop.step_number, values)
        if self.measure is not None and self.world.leads:
            numbers = measure_matrices(self.measure, *self.loop.matrices())
            self.log.write(self.loop.step_number, numbers)
        return valid, test, samples


class LossInterval:
    """The steps since the last line of training loss.

    Losses stay on the device until they are needed, so that a GPU need not wait. They are added one
    by one, so that a resumed run gets the same sum.
    """

    def __init__(self, loss: float = 0.0, tokens: int = 0, seconds: float = 0.0) -> None:
        self.loss, self.tokens, self.seconds = loss, tokens, seconds
        self.waiting: list[tuple[Tensor, int]] = []

    def add(self, stepped: StepReport, seconds: float) -> None:
        """One step."""
        self.waiting.append((stepped.loss, stepped.tokens))
        self.seconds += seconds

    def settle(self) -> None:
        """Fetch pending losses."""
        if self.waiting:
            began = time.perf_counter()
            losses = torch.stack([loss for loss, _ in self.waiting]).tolist()
            for loss, (_, tokens) in zip(losses, self.waiting, strict=True):
                self.loss += loss * tokens
                self.tokens += tokens
            self.seconds += time.perf_counter() - began
            self.waiting = []

    def take(self) -> dict[str, float]:
        """The numbers for a line of the log; starts the next interval."""
        self.settle()
        loss = self.loss / self.tokens
        values = {
            "train.loss": loss,
            "train.perplexity": math.exp(min(loss, 700.0)),
            "train.tokens_per_second": round(self.tokens / max(self.seconds, 1e-9), 1),
        }
        self.loss, self.tokens, self.seconds = 0.0, 0, 0.0
        return values

    def state_dict(self) -> dict[str, Any]:
        """State of the interval."""
        self.settle()
        return {"loss": self.loss, "tokens": self.tokens, "seconds": self.seconds}


def measure_matrices(measure: Measure, W: Tensor, output: Tensor | None) -> dict[str, float]:
    """Geometry of matrices on the CPU."""
    return measure(W.numpy(), None if output is None else output.numpy())
