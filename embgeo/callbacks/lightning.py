"""A callback for Lightning."""

from typing import Any

from embgeo.callbacks.monitor import Monitor, warn
from embgeo.core.frames import import_base

Base: Any = import_base(("lightning.pytorch", "pytorch_lightning"), "Callback")


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
        self.monitor.send(values, step, *trainer.loggers)
