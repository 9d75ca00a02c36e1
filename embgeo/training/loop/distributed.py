"""The process of a run: device, precision, other processes, signals."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

from embgeo.core.errors import BadOption, argument

#: The longest wait for another process, which may analyze an embedding. A process that has ended
#: is noticed at once.
_LONGEST = timedelta(hours=12)


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
    return torch.device("cuda", _local_rank()) if name == "cuda" else device


def _local_rank() -> int:
    return int(os.environ.get("LOCAL_RANK", "0"))


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


@dataclass(slots=True)
class ProcessGroup:
    """The processes of a run: one, or those of torchrun.

    Gradients are averaged here rather than by `DistributedDataParallel`: tied, factored and
    accumulated gradients then need no special care, and penalties of weights add their gradient
    once, afterwards.
    """

    rank: int = 0
    size: int = 1
    #: Process group for small messages on the CPU; None is the default group.
    talk: Any = None

    @property
    def leads(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def share(self, batch: int, unit: str = "streams") -> slice:
        """Return this process's share of a batch.

        All have the same size, so means average to means.
        """
        if batch % self.size:
            raise BadOption(
                f"a batch of {batch:,} {unit} cannot be split over {self.size} processes",
                where="batch",
                way_out=f"give a multiple of {self.size}",
            )
        own = batch // self.size
        return slice(self.rank * own, (self.rank + 1) * own)

    def part(self, columns: Tensor) -> Tensor:
        """Return the streams of this process, shape (T, B / size)."""
        return columns[:, self.share(columns.shape[1])].contiguous()

    @torch.no_grad()
    def average(
        self, parameters: Sequence[Tensor], loss: Tensor, flags: Sequence[float] = ()
    ) -> tuple[Tensor, list[float]]:
        """Replace gradients by their means over the processes; return mean loss and flag sums."""
        if self.size == 1:
            return loss, list(flags)
        for p in parameters:
            if p.grad is not None and p.grad.is_sparse:
                p.grad = p.grad.to_dense()
        gradients = [p.grad for p in parameters if p.grad is not None]
        flag_sums = torch.tensor(flags, dtype=torch.float32, device=loss.device)
        flat = torch.cat([*(g.reshape(-1) for g in gradients), loss.reshape(1), flag_sums])
        dist.all_reduce(flat)
        sizes = [g.numel() for g in gradients]
        *sums, loss, flag_sums = torch.split(flat, [*sizes, 1, len(flags)])
        for gradient, found in zip(gradients, sums, strict=True):
            torch.div(found.view_as(gradient), self.size, out=gradient)
        return loss[0] / self.size, [float(value) for value in flag_sums.tolist()]

    def gather(self, value: Any) -> list[Any]:
        """Gather the values of all processes, in the order of ranks."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value, group=self.talk)
        return found

    def wait(self) -> None:
        """Wait for the leading process, over Gloo: NCCL gives up after ten minutes."""
        self.broadcast(None)

    def broadcast(self, value: Any) -> Any:
        """Return the value of the leading process."""
        if self.size == 1:
            return value
        said = [value]
        dist.broadcast_object_list(said, src=0, group=self.talk)
        return said[0]


@contextmanager
def join_processes(device: str) -> Iterator[ProcessGroup]:
    """Join the processes of torchrun; the `device` setting decides between NCCL and Gloo."""
    started = not dist.is_initialized()
    if started and int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ProcessGroup()
        return
    if started:
        # Imported later, as by optimizers, its functions would keep the default group alive as a
        # default value, and the group's threads would abort the process at its end.
        import_module("torch.distributed.nn")
        on_gpu = device != "cpu" and torch.cuda.is_available()
        if on_gpu:
            torch.cuda.set_device(_local_rank())
        dist.init_process_group("nccl" if on_gpu else "gloo", timeout=_LONGEST)
    # None is the default group.
    talk = (
        None if dist.get_backend() == "gloo" else dist.new_group(backend="gloo", timeout=_LONGEST)
    )
    group = ProcessGroup(dist.get_rank(), dist.get_world_size(), talk)
    try:
        yield group
    finally:
        group.talk = talk = None
        if started:
            dist.destroy_process_group()


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
