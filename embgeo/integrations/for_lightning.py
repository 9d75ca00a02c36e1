"""A callback for Lightning."""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import Any

from embgeo.integrations.gauge import Gauge
from embgeo.integrations.loggers import sender

#: Both names that the package has; who has both uses the one that is imported already.
PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def base() -> Any:
    """The class that callbacks are made of; where there is no Lightning, any will do."""
    for name in sorted(PACKAGES, key=lambda name: name not in sys.modules):
        try:
            return import_module(name).Callback
        except ImportError:
            continue
    return object


Base: Any = base()


class LightningGeometry(Base):  # type: ignore[misc]
    """Logs numbers of the embedding at the start, every `gauge.every` steps, and at the end.

    They go to every logger of the trainer, with the step.

    Parameters
    ----------
    gauge : Gauge, optional
        What to measure, and when.
    """

    def __init__(self, gauge: Gauge | None = None) -> None:
        self.gauge = gauge or Gauge()
        self._warned = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """At the first step of this run."""
        self._log(trainer, pl_module, last=True)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any, **__: Any) -> None:
        """What is due; batches that are accumulated are one step. A rule may end the training."""
        self._log(trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """At the last step, unless it was due anyway."""
        self._log(trainer, pl_module, last=True)

    def _log(self, trainer: Any, pl_module: Any, *, last: bool = False) -> None:
        step = trainer.global_step
        report = bool(trainer.is_global_zero)
        values = self.gauge.observe(pl_module, step, last=last, report=report)
        if self.gauge.stop:
            trainer.should_stop = True
        if values and not trainer.loggers and not self._warned:
            self._warned = True
            warnings.warn("the trainer has no logger: nothing is kept", stacklevel=3)
        for logger in trainer.loggers if values else ():
            sender(logger)(values, step)
