"""A device that torch computes on: arrays to it and back, its memory, and what it can hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import FloatArray

#: A tensor of torch; functions see it through the array API standard.
Array: TypeAlias = Any

#: Stored dtypes that torch knows, with the dtype of numpy in which their bytes are handed over.
STORED: dict[Any, tuple[str, type[np.generic]]] = {
    np.dtype(np.float64): ("float64", np.float64),
    np.dtype(np.float32): ("float32", np.float32),
    np.dtype(np.float16): ("float16", np.float16),
    np.dtype(ml_dtypes.bfloat16): ("bfloat16", np.int16),
    np.dtype(ml_dtypes.float8_e4m3fn): ("float8_e4m3fn", np.uint8),
    np.dtype(ml_dtypes.float8_e5m2): ("float8_e5m2", np.uint8),
}
#: Rows that are summed in float32 where there is no float64; such sums go on in it on the host.
SUMMED = 256
#: What a device without float64 is sent as it is stored.
NARROW = ("float32", "float16", "bfloat16")


class Device:
    """Where a pass runs.

    Parameters
    ----------
    name : str
        As it is recorded: ``cuda``, ``mps``, …
    at : str
        What torch calls it.
    wide : bool
        Whether it has float64; where it has not, what needs float64 stays on the host.
    memory : int
        Bytes that may be taken where the device does not say how many are free.

    Attributes
    ----------
    xp : module
        Torch through the array API standard.
    """

    def __init__(self, name: str, at: str, *, wide: bool, memory: int) -> None:
        import torch
        from array_api_compat import torch as xp

        self.name = name
        self.torch: Any = torch
        self.xp: Any = xp
        self.at = torch.device(at)
        self.wide = wide
        self._memory = memory
        self._stream: Any = None

    @property
    def description(self) -> str:
        """Name of the device, and of the card where there is one."""
        if self.at.type == "cuda":
            return f"{self.name} ({self.torch.cuda.get_device_name(self.at)})"
        return self.name

    def put(self, array: npt.NDArray[Any], dtype: Any = None) -> Array:
        """A copy of a small array on the device; of floats, in the given dtype of torch."""
        if dtype is not None:
            wanted = np.float32 if dtype == self.xp.float32 else np.float64
            array = array.astype(wanted, copy=False)
        return self.torch.tensor(np.ascontiguousarray(array), device=self.at)

    def host(self, array: Array) -> npt.NDArray[Any]:
        """A tensor as an array of numpy."""
        found: npt.NDArray[Any] = array.cpu().numpy()
        return found

    def upload(self, rows: npt.NDArray[Any], working: type[np.generic]) -> Array:
        """Rows in the precision in which they are stored, where torch and the device have it.

        Parameters
        ----------
        rows : array, shape (b, d)
            Usually a slice of a memory map.
        working : {numpy.float32, numpy.float64}
            What they are sent as where they cannot be sent as they are.
        """
        torch = self.torch
        known = STORED.get(rows.dtype.newbyteorder("="))
        if known is None or not (self.wide or known[0] in NARROW):
            rows, known = rows.astype(working), (np.dtype(working).name, working)
        name, carrier = known
        on_card = self.at.type == "cuda"
        dtype = getattr(torch, name)
        staged = torch.empty(rows.shape, dtype=dtype, device="cpu", pin_memory=on_card)
        carried = staged.view(getattr(torch, np.dtype(carrier).name)).numpy()
        carried[...] = rows if rows.dtype == carrier else native(rows).view(carrier)
        if not on_card:
            return staged.to(self.at)
        # Copied beside the work of the card; whoever asked for the rows waits for the copy here.
        compute = torch.cuda.current_stream(self.at)
        if self._stream is None:
            self._stream = torch.cuda.Stream(self.at)
        with torch.cuda.stream(self._stream):
            sent = staged.to(self.at, non_blocking=True)
            self._stream.synchronize()
        sent.record_stream(compute)
        return sent

    def sum_rows(self, array: Array) -> FloatArray:
        """Sum over the rows in float64, on the host; float32 is summed so on a device without."""
        xp = self.xp
        if self.wide:
            return self.host(xp.sum(array, axis=0, dtype=xp.float64))
        parts = [
            xp.sum(array[start : start + SUMMED], axis=0)
            for start in range(0, array.shape[0], SUMMED)
        ]
        return np.asarray(self.host(xp.stack(parts)).sum(axis=0, dtype=np.float64))

    def histogram(self, values: Array, bins: int) -> Array:
        """Counts over [−1, 1], as int64; at most 2²⁴ values, beyond which float32 cannot count."""
        counts = self.torch.histc(values, bins, -1.0, 1.0)
        return self.xp.astype(counts, self.xp.int64)

    def largest(self, values: Array, k: int) -> Array:
        """The k largest entries of each row, falling."""
        return self.torch.topk(values, k, dim=1).values

    def free(self) -> int:
        """Bytes that are free."""
        torch = self.torch
        if self.at.type == "cuda":
            held = torch.cuda.memory_reserved(self.at) - torch.cuda.memory_allocated(self.at)
            return int(torch.cuda.mem_get_info(self.at)[0] + held)
        if self.at.type == "mps":
            most = torch.mps.recommended_max_memory()
            return int(most - torch.mps.driver_allocated_memory())
        return self._memory

    def release(self) -> None:
        """Give back what torch keeps for later."""
        if self.at.type == "cuda":
            self.torch.cuda.empty_cache()
        elif self.at.type == "mps":
            self.torch.mps.empty_cache()

    def is_full(self, error: BaseException) -> bool:
        """Whether an error says that the device's memory is exhausted."""
        if isinstance(error, self.torch.OutOfMemoryError):
            return True
        said = str(error)
        return isinstance(error, RuntimeError) and (
            "out of memory" in said or "ALLOC_FAILED" in said or "allocate memory" in said
        )

    @contextmanager
    def exact_products(self) -> Iterator[None]:
        """Products as their dtypes say, whatever the calling program has chosen for a training."""
        torch = self.torch
        matmul = torch.backends.cuda.matmul
        # Of torch's two switches for TF32, reading the older after the newer was set is an error.
        newer = hasattr(matmul, "fp32_precision")
        name, exact = ("fp32_precision", "ieee") if newer else ("allow_tf32", False)
        before = getattr(matmul, name)
        strict = torch.are_deterministic_algorithms_enabled()
        warn = torch.is_deterministic_algorithms_warn_only_enabled()
        setattr(matmul, name, exact)
        # It forbids histograms, whose counts add up to the same in any order.
        torch.use_deterministic_algorithms(False)
        try:
            with self._no_autocast():
                yield
        finally:
            setattr(matmul, name, before)
            torch.use_deterministic_algorithms(strict, warn_only=warn)

    def _no_autocast(self) -> AbstractContextManager[Any]:
        amp, kind = self.torch.amp, self.at.type
        if not amp.is_autocast_available(kind):
            return nullcontext()
        off: AbstractContextManager[Any] = amp.autocast(kind, enabled=False)
        return off


def native(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """In native byte order and C order."""
    return np.ascontiguousarray(rows, dtype=rows.dtype.newbyteorder("="))
