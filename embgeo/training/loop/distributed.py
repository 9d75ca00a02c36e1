"""Several processes that train one model, each on some of the streams; started by torchrun."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

from embgeo.core.errors import BadOption


@dataclass(slots=True)
class World:
    """The processes of a run; one alone unless torchrun started more.

    Gradients are averaged by hand rather than by `DistributedDataParallel`: tied, factored and
    accumulated gradients need no special care then, and whoever looks at weights alone adds its
    gradient afterwards, once.

    Attributes
    ----------
    rank, size : int
    talk : object, optional
        The group that small messages go through, by way of the CPU; None for that of all.
    """

    rank: int = 0
    size: int = 1
    talk: Any = None

    @property
    def leads(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def part(self, columns: Tensor) -> Tensor:
        """The streams of this process: as many as of any other, so that means average to means.

        Raises
        ------
        BadOption
            The batch cannot be split evenly.
        """
        batch = columns.shape[1]
        if batch % self.size:
            raise BadOption(
                f"a batch of {batch:,} streams cannot be split over {self.size} processes",
                where="batch",
                way_out=f"give a multiple of {self.size}",
            )
        own = batch // self.size
        return columns[:, self.rank * own : (self.rank + 1) * own].contiguous()

    @torch.no_grad()
    def average(
        self, parameters: Sequence[Tensor], loss: Tensor, flags: Sequence[float] = ()
    ) -> tuple[Tensor, list[float]]:
        """Replace gradients by their means over the processes.

        Returns
        -------
        loss : Tensor
            Its mean.
        flags : list of float
            Their sums.
        """
        if self.size == 1:
            return loss, list(flags)
        gradients = [p.grad for p in parameters if p.grad is not None]
        told = torch.tensor(flags, dtype=torch.float32, device=loss.device)
        flat = torch.cat([*(g.reshape(-1) for g in gradients), loss.reshape(1), told])
        dist.all_reduce(flat)
        sizes = [g.numel() for g in gradients]
        *sums, loss, told = torch.split(flat, [*sizes, 1, len(flags)])
        for gradient, found in zip(gradients, sums, strict=True):
            torch.div(found.view_as(gradient), self.size, out=gradient)
        return loss[0] / self.size, [float(value) for value in told.tolist()]

    def gather(self, value: Any) -> list[Any]:
        """What each process gives, in the order of ranks; known to all."""
        if self.size == 1:
            return [value]
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value, group=self.talk)
        return found

    def broadcast(self, value: Any) -> Any:
        """What the leading process gives."""
        if self.size == 1:
            return value
        said = [value]
        dist.broadcast_object_list(said, src=0, group=self.talk)
        return said[0]


@contextmanager
def join_processes(device: str) -> Iterator[World]:
    """The processes that torchrun started with this one.

    Parameters
    ----------
    device : str
        As in the settings: the kind of device decides between NCCL and Gloo.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1 and not dist.is_initialized():
        yield World()
        return
    started = not dist.is_initialized()
    if started:
        # Imported later, as optimizers do, its functions would have the group of all as a default
        # value and keep it alive; its threads then abort the process at its end.
        import_module("torch.distributed.nn")
        on_gpu = device != "cpu" and torch.cuda.is_available()
        if on_gpu:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        dist.init_process_group("nccl" if on_gpu else "gloo")
    # None is the group of all.
    talk = None if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")
    world = World(dist.get_rank(), dist.get_world_size(), talk)
    try:
        yield world
    finally:
        world.talk = talk = None
        if started:
            dist.destroy_process_group()
