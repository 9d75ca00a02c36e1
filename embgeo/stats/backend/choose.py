"""Resolve the name of a device and check that it exists."""

from __future__ import annotations

import importlib.util
import re
import warnings
from typing import TYPE_CHECKING

from embgeo.core.errors import BadOption, EmbgeoError, argument

if TYPE_CHECKING:
    from embgeo.stats.backend.torch import TorchBackend

#: What ``--device`` takes.
NAMES = ("cpu", "cuda", "mps", "auto")
#: Torch on the host, for tests: with float64 as cuda has it, and without it as mps.
FOR_TESTS = ("torch-cpu", "torch-cpu-single")
NEEDED = ("torch", "array_api_compat")


def check_device(name: str) -> None:
    """Refuse a missing device before anything is read."""
    resolve_device(name)


def open_device(name: str, memory: int) -> TorchBackend | None:
    """Open the device; None for the numpy path.

    Parameters
    ----------
    name : str
        One of `NAMES`, ``cuda:1`` and so on, or one of `FOR_TESTS`.
    memory : int
        Bytes that a pass may take where the device does not say how many are free.
    """
    chosen = resolve_device(name)
    if chosen == "cpu":
        return None
    from embgeo.stats.backend.torch import TorchBackend

    at = "cpu" if chosen in FOR_TESTS else chosen
    has_float64 = chosen not in ("mps", "torch-cpu-single")
    return TorchBackend(chosen, at, has_float64=has_float64, memory=memory)


def resolve_device(name: str) -> str:
    """Resolve a name: ``auto`` is the first of cuda, mps and cpu that exists."""
    if name == "cpu":
        return name
    if name not in (*NAMES, *FOR_TESTS) and not re.fullmatch(r"cuda:\d{1,3}", name):
        raise BadOption(
            f"no device is called {name!r}",
            where=argument("device"),
            way_out=f"give {', '.join(NAMES[:-1])} or {NAMES[-1]}",
        )
    missing = [package for package in NEEDED if importlib.util.find_spec(package) is None]
    if name == "auto":
        return "cpu" if missing else next(filter(is_present, ("cuda", "mps")), "cpu")
    if missing:
        raise EmbgeoError(
            f"{name} needs PyTorch and array-api-compat",
            where=argument("device"),
            way_out="pip install 'embgeo[gpu]'",
        )
    if name not in FOR_TESTS and not is_present(name):
        import torch

        raise BadOption(
            f"PyTorch {torch.__version__} finds no {name} here",
            where=argument("device"),
            way_out=f"give {argument('device', 'cpu')}, or install a PyTorch that is built for it",
        )
    return name


def is_present(name: str) -> bool:
    """Whether torch finds the device on this machine."""
    import torch

    if name == "mps":
        return bool(torch.backends.mps.is_available())
    number = int(name.partition(":")[2] or 0)
    with warnings.catch_warnings():  # of a driver that is too old, which means no device either
        warnings.simplefilter("ignore")
        return torch.cuda.is_available() and number < torch.cuda.device_count()
