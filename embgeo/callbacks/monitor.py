"""Measuring scalars of a model's embedding while it trains."""

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from embgeo.callbacks.loggers import sender
from embgeo.core.errors import BadOption, EmbgeoError
from embgeo.core.options import Options
from embgeo.core.quantities import QUANTITIES, cosine, require_known, spectrum
from embgeo.io.memory import as_matrix
from embgeo.metrics.pairs import skip_pairs
from embgeo.stats.resources import Resources
from embgeo.workflows.analyze import analyze

#: Cheap, and enough to see a cone form.
SCALARS = (cosine.MEAN.name, spectrum.EFFECTIVE_RANK.name, spectrum.TOP_SHARE.name)


def warn(message: str) -> None:
    """Warn the user of a trainer, without a line of code: none of theirs is the cause."""
    warnings.warn_explicit(message, UserWarning, "embgeo", 1, module=__name__)


class Monitor:
    """Measures an embedding at regular steps of a training.

    Parameters
    ----------
    scalars : sequence of str
        Names of scalars, as in ``analysis.json``; only their sections are measured.
    every : int
        Steps between two measurements.
    of : callable, optional
        ``of(model)`` gives the layer or tensor to measure; the input embedding by default.
    tokens, counts
        As in :func:`embgeo.analyze`; scalars about frequency need counts.
    options : Options, optional
    prefix : str
        Prefix of each logged name.
    resources : Resources, optional
        Memory, threads and device of a measurement; by default the device of the weight.
    budget : float, optional
        The largest share, in (0, 1], of the time since the first measurement that measurements may
        take. While they have taken more, due steps but the first and the last are skipped, and
        counted in ``skipped_steps`` of the next measurement.

    Attributes
    ----------
    seconds : float
        Duration of the last measurement.
    measured_at : int or None
        Step of the last measurement.
    skipped_steps : int
        Number of due steps skipped since the last measurement.

    Raises
    ------
    BadOption
        If a name is unknown, or a number of steps is below 1.
    """

    def __init__(
        self,
        scalars: Sequence[str] = SCALARS,
        *,
        every: int = 500,
        of: Callable[[Any], Any] | None = None,
        tokens: Any = None,
        counts: Any = None,
        options: Options | None = None,
        prefix: str = "embgeo/",
        resources: Resources | None = None,
        budget: float | None = None,
    ) -> None:
        if isinstance(scalars, str) or not scalars:
            raise BadOption("scalars is not a list of names", way_out='give ["cosine.mean", …]')
        if every < 1:
            raise BadOption(f"every is {every}", way_out="give a number of steps from 1")
        if budget is not None and not 0.0 < budget <= 1.0:
            raise BadOption(f"budget is {budget}", way_out="give a share above 0 and up to 1")
        for name in scalars:
            require_known(name, QUANTITIES, "scalars")
        self.scalars = tuple(dict.fromkeys(scalars))
        self.every = every
        self.of = of
        self.tokens = tokens
        self.counts = counts
        self.options = skip_pairs(options or Options(), self.scalars)
        self.prefix = prefix
        self.resources = resources
        self.budget = budget
        self.skipped_steps = 0
        self.seconds = 0.0
        self._spent = 0.0
        self._started: float | None = None
        self.measured_at: int | None = None
        self._warned: set[str] = set()

    def due(self, step: int, *, last: bool = False) -> bool:
        """Tell whether to measure at this step; the last step of a training is always due."""
        if step == self.measured_at or last:
            return step != self.measured_at
        return step % self.every == 0 and not self._is_over_budget()

    def _is_over_budget(self) -> bool:
        if self.budget is None or self._started is None:
            return False
        return self._spent > self.budget * (time.perf_counter() - self._started)

    def observe(
        self, model: Any, step: int, *, last: bool = False, report: bool = True
    ) -> dict[str, float]:
        """Measure if it is due at this step.

        All processes of a distributed training call it at each step. Arguments are those of
        :meth:`due` and :meth:`measure`.
        """
        due = self.due(step, last=last)
        if self.budget is not None and not last and step % self.every == 0:
            due = not is_any_true(not due)
            self.skipped_steps += not due and step != self.measured_at
        return self.measure(model, step, report=report) if due else {}

    def measure(self, model: Any, step: int, *, report: bool = True) -> dict[str, float]:
        """Measure the scalars by name, with the seconds that they took.

        No error stops the training: it becomes a warning, once, and the result is empty.

        Parameters
        ----------
        model : module, tensor or array
        step : int
        report : bool
            False in all processes but one, which only contribute their parts of a sharded tensor.
        """
        self.measured_at = step
        start = time.perf_counter()
        self._started = start if self._started is None else self._started
        try:
            with gather_embeddings(model):
                chosen = model if self.of is None else self.of(model)
                matrix = as_matrix(chosen, tokens=self.tokens, counts=self.counts)
                resources = self.resources or choose_device(chosen)
                values = self._values(matrix, resources) if report else {}
        except Exception as error:
            self._warn_of("measured", step, error)
            return {}
        self.seconds = time.perf_counter() - start
        self._spent += self.seconds
        if values and self.budget is not None:
            values[f"{self.prefix}skipped_steps"] = float(self.skipped_steps)
        self.skipped_steps = 0
        return values | {f"{self.prefix}seconds": self.seconds} if values else {}

    def _values(self, matrix: Any, resources: Resources | None) -> dict[str, float]:
        sections = tuple(dict.fromkeys(name.partition(".")[0] for name in self.scalars))
        analysis = analyze(
            matrix,
            sections=sections,
            options=self.options,
            reference=False,
            resources=resources,
        )
        if lost := analysis.provenance["masked"].get("non-finite"):
            which = f"rows with non-finite numbers at step {self.measured_at:,}"
            self._warn(f"the logged numbers leave out {which}: {lost:,}", "rows")
        found: dict[str, float] = {}
        for name in self.scalars:
            scalar = analysis.find_scalar(name)
            if scalar is not None and scalar.value is not None:
                found[self.prefix + name] = scalar.value
                continue
            family = name.partition(".")[0]
            reason = analysis.absent.get(family, "it is not a single number here")
            reason = reason if scalar is None else scalar.undefined
            if family == "frequency" and self.counts is None:
                reason = "no token frequencies; give Monitor(counts=…)"
            self._warn(f"{name} is not logged: {reason}", name)
        return found

    def send(self, values: dict[str, float], step: int, *targets: Any) -> None:
        """Send measured values to loggers; as in :meth:`measure`, an error becomes a warning."""
        for target in targets if values else ():
            try:
                sender(target)(values, step)
            except Exception as error:
                self._warn_of("logged", step, error)

    def _warn_of(self, what: str, step: int, error: Exception) -> None:
        kind = "" if isinstance(error, EmbgeoError) else f"{type(error).__name__}: "
        why = kind + " ".join(str(error).split())
        self._warn(f"embgeo {what} nothing at step {step:,}: {why}", why)

    def _warn(self, message: str, key: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            warn(message)


def choose_device(chosen: Any) -> Resources | None:
    """Choose the accelerator that holds the weight; None if it is in main memory."""
    device = getattr(chosen, "device", None)
    if device is None and hasattr(chosen, "parameters"):
        device = next((parameter.device for parameter in chosen.parameters()), None)
    if getattr(device, "type", "cpu") not in ("cuda", "mps"):
        return None
    return Resources(device=str(device))


def is_any_true(answer: bool) -> bool:
    """Tell whether `answer` is true in any process; all of them call it together."""
    torch: Any = sys.modules.get("torch")
    distributed = None if torch is None else torch.distributed
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return answer
    answers = [None] * distributed.get_world_size()
    distributed.all_gather_object(answers, answer)
    return any(answers)


@contextmanager
def gather_embeddings(model: Any) -> Iterator[None]:
    """Gather the embeddings that FSDP 1 has sharded, in every process.

    Only the units that hold an embedding are gathered, without the units inside them. Tensors of
    FSDP 2 gather themselves.
    """
    fsdp: Any = sys.modules.get("torch.distributed.fsdp")
    torch: Any = sys.modules.get("torch")
    with ExitStack() as units:
        if fsdp is not None and isinstance(model, torch.nn.Module):
            kind = fsdp.FullyShardedDataParallel
            for unit in kind.fsdp_modules(model):
                if any(hasattr(module, "num_embeddings") for module in unit.modules()):
                    units.enter_context(
                        kind.summon_full_params(unit, recurse=False, writeback=False)
                    )
        yield
