"""Sending values to trainers, experiment trackers, writers and functions."""

from collections.abc import Callable
from typing import Any

from embgeo.core.errors import BadOption

Values = dict[str, float]


def sender(target: Any) -> Callable[[Values, int], object]:
    """Return a function that sends values and their step to `target`.

    Parameters
    ----------
    target : object
        A Trainer of transformers (which passes them on to all its loggers), a logger of Lightning
        or the module mlflow (``log_metrics``), a SummaryWriter (``add_scalar``), a run of Weights &
        Biases (``log``), or a function of values and step.
    """
    # The second argument of the Trainer's log is not the step, which it knows.
    if hasattr(target, "callback_handler") and callable(getattr(target, "log", None)):
        return lambda values, _step: target.log(dict(values))
    if callable(getattr(target, "log_metrics", None)):
        return lambda values, step: target.log_metrics(dict(values), step=step)
    if callable(getattr(target, "add_scalar", None)):
        return lambda values, step: [target.add_scalar(*one, step) for one in values.items()]
    if callable(getattr(target, "log", None)):
        return lambda values, step: target.log(dict(values), step=step)
    if callable(target):
        return lambda values, step: target(dict(values), step)
    way_out = "give a Trainer, a logger with log_metrics, add_scalar or log, or a function"
    raise BadOption(f"{type(target).__name__} logs nothing", way_out=way_out)
