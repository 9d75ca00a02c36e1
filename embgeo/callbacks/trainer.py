"""A callback for the Trainer of transformers."""

from typing import Any

from embgeo.callbacks.loggers import sender
from embgeo.callbacks.monitor import Monitor
from embgeo.core.frames import import_base

Base: Any = import_base(("transformers",), "TrainerCallback")


class TrainerGeometry(Base):  # type: ignore[misc]
    """Logs scalars of the embedding at the start, every `monitor.every` steps and at the end.

    Parameters
    ----------
    to : object
        The Trainer, whose loggers all get the values, or a logger; see
        :func:`embgeo.callbacks.loggers.sender`. A callback does not know its Trainer, so that
        :func:`attach` makes one for a Trainer.
    monitor : Monitor, optional
        What to measure, and when.
    """

    def __init__(self, to: Any, monitor: Monitor | None = None) -> None:
        sender(to)  # which refuses what logs nothing
        self.to = to
        self.monitor = monitor or Monitor()

    def on_train_begin(
        self, _args: Any, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        """Log at the first step."""
        self._log(state, control, model, first=True)

    def on_step_end(
        self, _args: Any, state: Any, control: Any, model: Any = None, **_: Any
    ) -> None:
        """Log if it is due."""
        self._log(state, control, model)

    def _log(self, state: Any, control: Any, model: Any, *, first: bool = False) -> None:
        last = first or 0 < state.max_steps <= state.global_step
        report = bool(state.is_world_process_zero)
        values = self.monitor.observe(model, state.global_step, last=last, report=report)
        # The Trainer takes this for the log of the step, and would leave out its own.
        own = control.should_log
        self.monitor.send(values, state.global_step, self.to)
        control.should_log = own


def attach(trainer: Any, monitor: Monitor | None = None) -> TrainerGeometry:
    """Let a Trainer log scalars of its model's embedding to all its loggers.

    Parameters
    ----------
    trainer : transformers.Trainer
    monitor : Monitor, optional
        What to measure, and when.
    """
    callback = TrainerGeometry(trainer, monitor)
    trainer.add_callback(callback)
    return callback
