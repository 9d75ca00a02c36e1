"""The mean of a model's weights over the steps of training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


class WeightAverage:
    """The running mean of parameters, which can change places with them.

    It is that of the parameters as they are trained: for a factored embedding that of U, Σ and V,
    which is not quite the mean of their products.

    Parameters
    ----------
    parameters : iterable of Tensor
        Of the model; one that appears twice is taken once. Make it after the layers that a method
        replaces, and from the parameters that the optimizer has.

    Attributes
    ----------
    count : int
        How many sets of weights the mean is of. As long as there is none, nothing changes places.
    swapped : bool
        Whether the model holds the mean at the moment.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.parameters = list({id(p): p for p in parameters}.values())
        self.mean: list[Tensor] = []
        self.count = 0
        self.swapped = False

    @torch.no_grad()
    def update(self) -> None:
        """Take the weights as they are now into the mean.

        Raises
        ------
        ValueError
            The model holds the mean.
        """
        self.require_own_weights()
        self.count += 1
        if self.count == 1:
            self.mean = [p.detach().clone() for p in self.parameters]
            return
        for mean, p in zip(self.mean, self.parameters, strict=True):
            mean.lerp_(p.detach(), 1.0 / self.count)

    def restart(self) -> None:
        """Forget the mean."""
        self.require_own_weights()
        self.mean, self.count = [], 0

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the weights of the model and the mean, if there is one."""
        if not self.count:
            return
        for mean, p in zip(self.mean, self.parameters, strict=True):
            kept = p.detach().clone()
            p.copy_(mean)
            mean.copy_(kept)
        self.swapped = not self.swapped

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model with the mean inside of the block, and its own weights after it."""
        self.require_own_weights()
        self.swap()
        try:
            yield
        finally:
            if self.swapped:
                self.swap()

    def require_own_weights(self) -> None:
        if self.swapped:
            raise ValueError("the model holds its mean weights: swap() first")

    def state_dict(self) -> dict[str, Any]:
        """The mean, and of how many."""
        self.require_own_weights()
        return {"count": self.count, "mean": self.mean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what was saved; on the devices where the parameters are."""
        self.require_own_weights()
        self.count = state["count"]
        pairs = zip(state["mean"], self.parameters, strict=self.count > 0)
        self.mean = [mean.to(p.device, p.dtype, copy=True) for mean, p in pairs]
