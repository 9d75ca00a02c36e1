"""``metrics.jsonl``, the numbers of a run with one JSON object per line, and further sinks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from embgeo.core.arguments import refuse_name
from embgeo.core.errors import BadOption, UnreadableFile

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
    """A run of Weights & Biases, configured by its environment variables."""
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
    """Refuse sinks that cannot be opened."""
    for name in names:
        if name not in SINKS:
            raise refuse_name("sink", name, SINKS)
        package(MODULES[name], name)


def package(module: str, name: str) -> Any:
    """Import a module of an optional package."""
    try:
        return import_module(module)
    except ImportError as error:
        raise BadOption(
            f"numbers go to {name}, which is not installed",
            way_out=f"pip install {name}, or take it out of sinks",
        ) from error


class RunLog:
    """The file of a run, written line by line; a resumed run continues at its saved state.

    `path`: None in processes that write nothing. `length`: bytes that count: what a killed run
    wrote after its last state is cut off, and written again. `sinks`: get each line, too.
    """

    def __init__(self, path: Path | None, length: int = 0, sinks: Sequence[Sink] = ()) -> None:
        self.sinks = sinks
        self.length = length
        self.file = None
        if path is None:
            return
        path.touch()
        self.file = path.open("r+b")
        if self.file.seek(0, 2) < length:
            self.file.close()
            raise UnreadableFile(
                f"is shorter than the {length:,} bytes that the run had written",
                where=path,
                way_out="remove the folder to start again",
            )
        self.file.truncate(length)
        self.file.seek(length)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write one line, without non-finite values, which JSON lacks."""
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        if self.file is None or not known:
            return
        self.file.write(json.dumps({"step": step, **known}).encode() + b"\n")
        self.file.flush()
        self.length = self.file.tell()
        for sink in self.sinks:
            sink(known, step)

    def close(self) -> None:
        """Close the file."""
        if self.file is not None:
            self.file.close()
