"""What tests of the passes on a device share: devices, engines, and torch's memory running out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("array_api_compat")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

from embgeo.core.matrix import Matrix  # noqa: E402
from embgeo.stats.backend.executor import DeviceExecutor  # noqa: E402
from embgeo.stats.backend.torch import open_device  # noqa: E402
from tests.support import sampling  # noqa: E402

#: With float64, as cuda; and without, as mps.
WIDE, SINGLE = "torch-cpu", "torch-cpu-single"
MEMORY = 2**26


def make_executor(
    matrix: Matrix, step: int = 1000, device: str = WIDE, *, stay: bool = True
) -> DeviceExecutor:
    """Of all rows, in blocks of that many."""
    backend = open_device(device, MEMORY)
    assert backend is not None
    everything = np.ones(matrix.n, dtype=bool)
    executor = DeviceExecutor(backend, matrix, everything, MEMORY, lambda _rows: None)
    executor.rows.step = step
    executor.rows.stay = stay
    return executor


class Shortage(TorchDispatchMode):  # type: ignore[misc]
    """Torch without memory for the n-th new tensor; counts all of them."""

    def __init__(self, at: int | None = None) -> None:
        super().__init__()
        self.at = at
        self.made = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if takes_memory(func):
            self.made += 1
            if self.made - 1 == self.at:
                raise torch.OutOfMemoryError("out of memory, as the test wants it")
        return func(*args, **(kwargs or {}))


class NothingWide(TorchDispatchMode):  # type: ignore[misc]
    """Torch without float64."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(made):
            wide = isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float64
            assert not wide, f"{func} makes float64"
        return made


def takes_memory(func: Any) -> bool:
    """Whether an operation makes a new tensor, and not a view or a change in place."""
    return not (func.is_view or func._schema.is_mutable)


def shortages(work: Callable[[], Any]) -> Iterator[Any]:
    """The outcome of the work with memory running out at every fourth place, at night at each."""
    with Shortage() as count:
        work()
    for at in range(0, count.made, 1 if sampling.AT_NIGHT else 4):
        with Shortage(at) as short:
            outcome = work()
        assert short.made > at, "the shortage was not met"
        yield outcome
