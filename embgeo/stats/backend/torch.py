"""Devices by name, and the torch backend: arrays on a device, transfers, its memory."""

from __future__ import annotations

import importlib.util
import re
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from embgeo.core.arrays import Array
from embgeo.core.errors import BadOption, EmbgeoError, argument
from embgeo.stats.backend.backend import HOST, Backend

#: What ``--device`` takes.
NAMES = ("cpu", "cuda", "mps", "auto")
#: Torch on the host, for tests: with float64 as cuda has it, and without it as mps.
FOR_TESTS = ("torch-cpu", "torch-cpu-single")
NEEDED = ("torch", "array_api_compat")


def open_device(name: str, memory: int) -> TorchBackend | None:
    """Open the device; None for the numpy path.

    `name`: one of `NAMES`, ``cuda:1`` and so on, or one of `FOR_TESTS`. `memory`: bytes that a pass
    may take where the device does not say how many are free.
    """
    chosen = resolve_device(name)
    if chosen == "cpu":
        return None
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
    """Tell whether torch finds the device on this machine."""
    import torch

    if name == "mps":
        return bool(torch.backends.mps.is_available())
    number = int(name.partition(":")[2] or 0)
    with warnings.catch_warnings():  # of a driver that is too old, which means no device either
        warnings.simplefilter("ignore")
        return torch.cuda.is_available() and number < torch.cuda.device_count()


#: Stored dtypes that torch knows, with the dtype of numpy in which their bytes are handed over.
STORED: dict[Any, tuple[str, type[np.generic]]] = {
    np.dtype(np.float64): ("float64", np.float64),
    np.dtype(np.float32): ("float32", np.float32),
    np.dtype(np.float16): ("float16", np.float16),
    np.dtype(ml_dtypes.bfloat16): ("bfloat16", np.int16),
    np.dtype(ml_dtypes.float8_e4m3fn): ("float8_e4m3fn", np.uint8),
    np.dtype(ml_dtypes.float8_e5m2): ("float8_e5m2", np.uint8),
}
#: What a device without float64 is sent as it is stored.
NARROW = ("float32", "float16", "bfloat16")
#: Panels of columns of an upper triangle: with four, 62.5% of the work of a whole product.
PANELS = 4
#: Rows whose products are summed in float32 in one call.
SINGLE_ROWS = 4096


class TorchBackend(Backend):
    """Arrays of torch on a device.

    `name`: recorded name: ``cuda``, ``mps``, …. `at`: name of the device in torch. `has_float64`:
    if False, work that needs float64 is done by numpy. `memory`: bytes to use if the device does
    not report its free memory.
    """

    chunk = 2**24

    def __init__(self, name: str, at: str, *, has_float64: bool, memory: int) -> None:
        import torch
        from array_api_compat import torch as xp

        self.name = name
        self.torch: Any = torch
        self.xp = xp
        self.at = torch.device(at)
        self.has_float64 = has_float64
        self.wide = self if has_float64 else HOST
        self._memory = memory
        self._stream: Any = None

    @property
    def description(self) -> str:
        """Name of the device, and of the card where there is one."""
        if self.at.type == "cuda":
            return f"{self.name} ({self.torch.cuda.get_device_name(self.at)})"
        return self.name

    def put(self, array: Array, dtype: Any = None) -> Array:
        if isinstance(array, self.torch.Tensor):
            return array if dtype is None else array.to(dtype)
        if dtype is not None:
            array = array.astype(str(dtype).removeprefix("torch."), copy=False)
        return self.torch.tensor(np.ascontiguousarray(array), device=self.at)

    def to_host(self, array: Any) -> Any:
        return array.cpu().numpy() if isinstance(array, self.torch.Tensor) else array

    def upload(self, rows: npt.NDArray[Any], working: type[np.generic]) -> Array:
        """Upload rows in their stored precision, if torch and the device support it.

        `rows`: shape (b, d); usually a slice of a memory map. `working`: numpy.float32,
        numpy.float64; precision to send them in otherwise.
        """
        torch = self.torch
        known = STORED.get(rows.dtype.newbyteorder("="))
        if known is None or not (self.has_float64 or known[0] in NARROW):
            rows, known = rows.astype(working), (np.dtype(working).name, working)
        name, carrier = known
        on_card = self.at.type == "cuda"
        dtype = getattr(torch, name)
        staged = torch.empty(rows.shape, dtype=dtype, device="cpu", pin_memory=on_card)
        carried = staged.view(getattr(torch, np.dtype(carrier).name)).numpy()
        carried[...] = rows if rows.dtype == carrier else to_native(rows).view(carrier)
        if not on_card:
            return staged.to(self.at)
        # The copy overlaps with the work of the card; the thread that reads rows waits for it here.
        compute = torch.cuda.current_stream(self.at)
        if self._stream is None:
            self._stream = torch.cuda.Stream(self.at)
        with torch.cuda.stream(self._stream):
            sent = staged.to(self.at, non_blocking=True)
            self._stream.synchronize()
        sent.record_stream(compute)
        return sent

    def sum64(self, array: Array) -> Array:
        if not self.has_float64:
            return HOST.sum64(self.to_host(array))
        return self.xp.sum(array, axis=0, dtype=self.xp.float64)

    def empty_gram(self, d: int, dtype: Any) -> Array:
        return self.torch.zeros((d, d), dtype=dtype, device=self.at).T

    def add_gram(self, rows: Array, into: Array) -> None:
        step = len(rows) if rows.dtype == self.xp.float64 else SINGLE_ROWS
        width = -(-rows.shape[1] // PANELS)
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            for start in range(0, rows.shape[1], width):
                stop = min(start + width, rows.shape[1])
                into[:stop, start:stop].addmm_(part[:, :stop].T, part[:, start:stop])

    def stack_rows(self, r: Array, rows: Array) -> Array:
        return self.torch.linalg.qr(self.torch.cat([r, rows]), mode="r").R

    def kth_largest(self, values: Array, k: int) -> Array:
        return self.torch.topk(values, k, dim=1).values[:, -1]

    def topk(self, values: Array, k: int) -> Array:
        return self.torch.topk(values, k, dim=1).indices

    def histogram(self, values: Array, bins: int) -> Array:
        # At most 2²⁴ values, beyond which float32 cannot count.
        return self.torch.histc(values, bins, -1.0, 1.0).to(self.torch.int64)

    def words(self, rows: Array) -> Array:
        return rows.view(self.torch.int32).to(self.torch.int64) & 0xFFFFFFFF

    def extremes(self, rows: Array) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        if not self.has_float64:  # comparisons of such a device may pass a NaN over
            return HOST.extremes(self.to_host(rows))
        return self.to_host(self.xp.max(rows, axis=1)), self.to_host(self.xp.min(rows, axis=1))

    def free(self) -> int:
        """Return the number of free bytes."""
        torch = self.torch
        if self.at.type == "cuda":
            held = torch.cuda.memory_reserved(self.at) - torch.cuda.memory_allocated(self.at)
            return int(torch.cuda.mem_get_info(self.at)[0] + held)
        if self.at.type == "mps":
            most = torch.mps.recommended_max_memory()
            return int(most - torch.mps.driver_allocated_memory())
        return self._memory

    def release(self) -> None:
        """Free cached memory and constants, which can be moved again."""
        self._constants.clear()
        if self.at.type == "cuda":
            self.torch.cuda.empty_cache()
        elif self.at.type == "mps":
            self.torch.mps.empty_cache()

    def is_full(self, error: BaseException) -> bool:
        """Tell whether an error reports exhausted memory of the device."""
        if isinstance(error, self.torch.OutOfMemoryError):
            return True
        said = str(error)
        return isinstance(error, RuntimeError) and (
            "out of memory" in said or "ALLOC_FAILED" in said or "allocate memory" in said
        )

    @contextmanager
    def exact_products(self) -> Iterator[None]:
        """Disable TF32 and autocast, which the calling program may have enabled for training."""
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


def to_native(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert to native byte order and C order."""
    return np.ascontiguousarray(rows, dtype=rows.dtype.newbyteorder("="))
