"""Other places for the numbers of a run, if what they need is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from embgeo.core.errors import BadOption

#: Takes numbers by name, and their step.
Sink = Callable[[Mapping[str, float], int], None]


#: What each sink is imported from.
MODULES = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb"}


def tensorboard(folder: Path, _settings: Mapping[str, Any], closing: ExitStack) -> Sink:
    """Event files in the folder of the run."""
    writer = package(MODULES["tensorboard"], "tensorboard").SummaryWriter(str(folder))
    closing.callback(writer.close)

    def write(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return write


def wandb(folder: Path, settings: Mapping[str, Any], closing: ExitStack) -> Sink:
    """A run of Weights & Biases, where and as its own environment says."""
    method, seed = settings["compare"][0], settings["seeds"][0]
    run = package(MODULES["wandb"], "wandb").init(
        project="embgeo", name=f"{method}-{seed}", dir=str(folder), config=dict(settings)
    )
    closing.callback(run.finish)
    return lambda values, step: run.log(dict(values), step=step)


SINKS: dict[str, Callable[[Path, Mapping[str, Any], ExitStack], Sink]] = {
    "tensorboard": tensorboard,
    "wandb": wandb,
}


def open_sinks(
    names: tuple[str, ...], folder: Path, settings: Mapping[str, Any], closing: ExitStack
) -> list[Sink]:
    """The sinks of a run; `closing` closes them.

    Raises
    ------
    BadOption
        There is none of this name, or what it needs is not installed.
    """
    check_sinks(names)
    return [SINKS[name](folder, settings, closing) for name in names]


def check_sinks(names: tuple[str, ...]) -> None:
    """Refuse sinks that cannot be opened.

    Raises
    ------
    BadOption
        As of :func:`open_sinks`.
    """
    for name in names:
        if name not in SINKS:
            raise BadOption(f"no sink {name!r}", way_out=f"there are {', '.join(SINKS)}")
        package(MODULES[name], name)


def package(module: str, name: str) -> Any:
    """A module of a package that need not be installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise BadOption(
            f"numbers go to {name}, which is not installed",
            way_out=f"pip install {name}, or take it out of sinks",
        ) from error
