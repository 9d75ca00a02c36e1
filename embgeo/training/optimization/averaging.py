"""Average of a model's weights over training steps, and when it starts (NT-ASGD)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from embgeo.training.checks import whole


class WeightAverage:
    """Running mean of parameters, which can be swapped with them.

    It is that of the parameters as they are trained: for a factored embedding that of U, Σ and V,
    which is not quite the mean of their products.

    `parameters`: of the model; one that appears twice is taken once. Make it after the layers that
    a method replaces, and from the parameters that the optimizer has.

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
        """Add the current weights to the mean.

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

    @torch.no_grad()
    def settle(self) -> None:
        """Replace the weights of the model by the mean, if any, and reset the mean."""
        if self.count:
            for mean, p in zip(self.mean, self.parameters, strict=True):
                p.copy_(mean)
        self.restart()

    def restart(self) -> None:
        """Reset the mean."""
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
        """Use the mean as weights inside the block, and restore the weights afterwards."""
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
        """The mean and the number of averaged weights."""
        self.require_own_weights()
        return {"count": self.count, "mean": self.mean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the saved state, on the devices of the parameters."""
        self.require_own_weights()
        self.count = state["count"]
        pairs = zip(state["mean"], self.parameters, strict=self.count > 0)
        self.mean = [mean.to(p.device, p.dtype, copy=True) for mean, p in pairs]


class NtAsgd:
    """The average and when it starts; the steps are those of SGD.

    A check whose validation loss is above the best of all checks but the last `window` before it
    begins the averaging: of the weights as they then are, and of those after each further step.
    In finetuning the average is kept from the start, and that check is the end.

    The average is a plain running mean. `torch.optim.ASGD` takes the one that it had a step before
    into account where the learning rate changes from step to step, and leaves out the weights at
    which it begins.

    `average`: of the model that is trained. `window`: how many of the last checks do not count; 5
    in the paper.

    Attributes
    ----------
    averaging : bool
        Whether the average has begun.
    finished : bool
        Whether finetuning is over.

    Raises
    ------
    BadOption
        A window below 1.

    References
    ----------
    Merity, Keskar and Socher, "Regularizing and optimizing LSTM language models", ICLR 2018,
    Algorithm 1.
    """

    def __init__(self, average: WeightAverage, *, window: int = 5, finetune: bool = False) -> None:
        self.average = average
        self.window = whole("window", window)
        self.finetune = finetune
        self.losses: list[float] = []
        self.finished = False
        self.averaging = finetune
        if finetune:
            average.update()

    def after_step(self) -> None:
        """After each step of the optimizer."""
        if self.averaging:
            self.average.update()

    def checked(self, loss: float) -> bool:
        """Record a validation loss, which is that of the averaged weights if there are any.

        Returns whether this check begins the averaging, or ends finetuning.
        """
        before = self.losses[: -self.window]
        self.losses.append(float(loss))
        if not before or not loss > min(before):
            return False
        if self.finetune:
            first, self.finished = not self.finished, True
            return first
        if self.averaging:
            return False
        self.averaging = True
        self.average.update()
        return True

    def state_dict(self) -> dict[str, Any]:
        """State with the average."""
        return {
            "losses": list(self.losses),
            "averaging": self.averaging,
            "finished": self.finished,
            "average": self.average.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the saved state."""
        self.losses = list(state["losses"])
        self.averaging = state["averaging"]
        self.finished = state["finished"]
        self.average.load_state_dict(state["average"])
