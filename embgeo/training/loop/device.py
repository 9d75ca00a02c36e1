"""Where a run computes, with how many digits, and that it gives the same numbers again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from embgeo.core.errors import BadOption


def find_device(name: str) -> torch.device:
    """The device that a setting names; ``auto`` takes a GPU where there is one.

    Raises
    ------
    BadOption
        No such device here.
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise BadOption(f"no device {name!r}", way_out="give auto, cpu, cuda or mps") from error
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(device.type, False):
        raise BadOption(f"there is no {name} here", way_out="give auto or cpu")
    if name == "cuda":
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    return device


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """What the forward pass runs under."""
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


@contextmanager
def numerics(precision: str, device: torch.device, threads: int | None = None) -> Iterator[None]:
    """TF32 where it is wanted; on a CPU so many threads, and nothing but deterministic algorithms.

    What was set before is set again afterwards.
    """
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    deterministic = torch.are_deterministic_algorithms_enabled()
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    number = torch.get_num_threads()
    short = precision != "float32"
    torch.set_float32_matmul_precision("high" if short else "highest")
    torch.backends.cudnn.allow_tf32 = short
    if device.type == "cpu":
        torch.use_deterministic_algorithms(True)
        # Memory that is written anyway need not be filled first.
        memory.fill_uninitialized_memory = False
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(number)
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]
        torch.use_deterministic_algorithms(deterministic)
        memory.fill_uninitialized_memory = filled


def get_random_state(device: torch.device) -> dict[str, Any]:
    """Of the global generators that dropout draws from."""
    found = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        found["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        found["mps"] = torch.mps.get_rng_state()
    return found


def set_random_state(state: dict[str, Any], device: torch.device) -> None:
    """Put `get_random_state` back; what the device has no generator for is left out."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
    if device.type == "mps" and "mps" in state:
        torch.mps.set_rng_state(state["mps"])
