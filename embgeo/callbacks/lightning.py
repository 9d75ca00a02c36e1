"""A callback for Lightning."""

import sys
from importlib import import_module
from typing import Any

from embgeo.callbacks.loggers import sender
from embgeo.callbacks.monitor import Monitor, warn

#: The names of the package; of two installed ones, the imported one is in use.
PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def base() -> Any:
    """Return the base class of callbacks; `object` without Lightning."""
    for name in sorted(PACKAGES, key=lambda name: name not in sys.modules):
        try:
            return import_module(name).Callback
        except ImportError:
            continue
    return object


Base: Any = base()


class LightningGeometry(Base):  # type: ignore[misc]
    """Logs scalars of the embedding at the start, every `monitor.every` steps and at the end.

    All loggers of the trainer get them, with the step.

    Parameters
    ----------
    monitor : Monitor, optional
        What to measure, and when.
    """

    def __init__(self, monitor: Monitor | None = None) -> None:
        self.monitor = monitor or Monitor()
        self._warned = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Log at the first step."""
        self._log(trainer, pl_module, last=True)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any, **__: Any) -> None:
        """Log if it is due; accumulated batches are one step."""
        self._log(trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Log at the last step, unless it was due."""
        self._log(trainer, pl_module, last=True)

    def _log(self, trainer: Any, pl_module: Any, *, last: bool = False) -> None:
        step = trainer.global_step
        report = bool(trainer.is_global_zero)
        values = self.monitor.observe(pl_module, step, last=last, report=report)
        if values and not trainer.loggers and not self._warned:
            self._warned = True
            warn("the trainer has no logger: nothing is kept")
        for logger in trainer.loggers if values else ():
            sender(logger)(values, step)
