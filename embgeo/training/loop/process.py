"""The process of a run: device, precision, signals."""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch

from embgeo.core.errors import BadOption, argument


def find_device(name: str) -> torch.device:
    """Resolve the device of a setting; ``auto`` takes a GPU if there is one."""
    if name == "auto":
        name = "mps" if torch.backends.mps.is_available() else "cpu"
        name = "cuda" if torch.cuda.is_available() else name
    try:
        device = torch.device(name)
    except RuntimeError as error:
        way_out = "give auto, cpu, cuda or mps"
        raise BadOption(f"no device {name!r}", where=argument("device"), way_out=way_out) from error
    there = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(device.type, False):
        cause = f"there is no {name} here"
        raise BadOption(cause, where=argument("device"), way_out="give auto or cpu")
    return torch.device("cuda", 0) if name == "cuda" else device


@contextmanager
def numerics(precision: str, device: torch.device, threads: int | None = None) -> Iterator[None]:
    """Set TF32, threads and, on a CPU, deterministic algorithms; restore them at the end."""
    with ExitStack() as undo:
        for place, name, exact, short in list_precisions():
            undo.callback(setattr, place, name, getattr(place, name))
            setattr(place, name, exact if precision == "float32" else short)
        if device.type == "cpu":
            before = torch.are_deterministic_algorithms_enabled()
            undo.callback(torch.use_deterministic_algorithms, before)
            torch.use_deterministic_algorithms(True)
            # Do not fill new memory first: it is written anyway.
            memory: Any = torch.utils.deterministic
            name = "fill_uninitialized_memory"
            undo.callback(setattr, memory, name, getattr(memory, name))
            setattr(memory, name, False)
        undo.callback(torch.set_num_threads, torch.get_num_threads())
        if threads is not None:
            torch.set_num_threads(threads)
        yield


def list_precisions() -> list[tuple[Any, str, Any, Any]]:
    """List objects and attributes that decide on TF32, each with its values for float32 and TF32.

    Since torch 2.9 the older attributes cannot be read once a program has set a newer one.
    """
    matmul: Any = torch.backends.cuda.matmul
    cudnn: Any = torch.backends.cudnn
    if not hasattr(matmul, "fp32_precision"):
        return [(place, "allow_tf32", False, True) for place in (matmul, cudnn)]
    return [(place, "fp32_precision", "ieee", "tf32") for place in (matmul, cudnn.conv, cudnn.rnn)]


def get_random_state(device: torch.device) -> dict[str, Any]:
    """State of the global random generators, which dropout uses."""
    found = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        found["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        found["mps"] = torch.mps.get_rng_state()
    return found


def set_random_state(state: dict[str, Any], device: torch.device) -> None:
    """Restore `get_random_state`, without generators that the device lacks."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
    if device.type == "mps" and "mps" in state:
        torch.mps.set_rng_state(state["mps"])


@contextmanager
def note_interrupts() -> Iterator[threading.Event]:
    """Set the event at the first SIGINT or SIGTERM inside the block; stop at once at the second.

    Python allows handlers in the main thread only; in others, nothing is noted.
    """
    asked = threading.Event()

    def note(_number: int, _frame: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    with ExitStack() as undo:
        if threading.current_thread() is threading.main_thread():
            for name in (signal.SIGINT, signal.SIGTERM):
                with suppress(ValueError, OSError):
                    undo.callback(signal.signal, name, signal.signal(name, note))
        yield asked
