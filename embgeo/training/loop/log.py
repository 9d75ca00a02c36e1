"""The log of a run: ``metrics.jsonl``, one JSON object per line, and further sinks."""

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

#: Receives numbers by name, and their step.
Sink = Callable[[Mapping[str, float], int], None]


def open_tensorboard(
    module: Any, folder: Path, _settings: Mapping[str, Any], closing: ExitStack
) -> Sink:
    """Event files in the folder of the run."""
    writer = module.SummaryWriter(str(folder))
    closing.callback(writer.close)

    def write(values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return write


def open_wandb(module: Any, folder: Path, settings: Mapping[str, Any], closing: ExitStack) -> Sink:
    """A run of Weights & Biases, configured by its environment variables."""
    method, seed = settings["compare"][0], settings["seeds"][0]
    run = module.init(
        project="embgeo", name=f"{method}-{seed}", dir=str(folder), config=dict(settings)
    )
    closing.callback(run.finish)
    return lambda values, step: run.log(dict(values), step=step)


#: The module that each sink needs, and what opens it.
SINKS: dict[str, tuple[str, Callable[[Any, Path, Mapping[str, Any], ExitStack], Sink]]] = {
    "tensorboard": ("torch.utils.tensorboard", open_tensorboard),
    "wandb": ("wandb", open_wandb),
}


def open_sinks(
    names: tuple[str, ...], folder: Path, settings: Mapping[str, Any], closing: ExitStack
) -> list[Sink]:
    """Open the sinks of a run, which `closing` closes."""
    modules = import_sinks(names)
    return [SINKS[name][1](modules[name], folder, settings, closing) for name in names]


def import_sinks(names: tuple[str, ...]) -> dict[str, Any]:
    """The module of each sink; BadOption for an unknown sink or a missing package."""
    found = {}
    for name in names:
        if name not in SINKS:
            raise refuse_name("sink", name, SINKS)
        try:
            found[name] = import_module(SINKS[name][0])
        except ImportError as error:
            raise BadOption(
                f"numbers go to {name}, which is not installed",
                way_out=f"pip install {name}, or take it out of sinks",
            ) from error
    return found


class RunLog:
    """The log of a run, written line by line.

    `path`: None in processes that write nothing. `length`: number of bytes to keep. What a killed
    run wrote after its last saved state is removed and written again. `sinks`: receive each line.
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
        """Write one line, without values that are not finite, which JSON lacks."""
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
