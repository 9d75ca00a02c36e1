"""Average of a model's weights over training steps, and when it starts (NT-ASGD)."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from embgeo.core.settings import Positive, parse_value


class WeightAverage:
    """Running mean of parameters, which can take their place for an evaluation.

    For a factored embedding it is the mean of U, Σ and V, which differs slightly from the mean of
    their products. `count`: the number of averaged sets of weights.
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.parameters = list({id(p): p for p in parameters}.values())
        self.mean: list[Tensor] = []
        self.count = 0

    @torch.no_grad()
    def update(self) -> None:
        """Add the current weights to the mean."""
        self.count += 1
        if self.count == 1:
            self.mean = [p.detach().clone() for p in self.parameters]
            return
        for mean, p in zip(self.mean, self.parameters, strict=True):
            mean.lerp_(p.detach(), 1.0 / self.count)

    def adopt(self) -> None:
        """Replace the weights of the model by the mean, if any, and reset the mean."""
        copy_to(self.parameters, self.mean)
        self.restart()

    def restart(self) -> None:
        """Reset the mean."""
        self.mean, self.count = [], 0

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Use the mean, if any, as weights inside the block."""
        own = [p.detach().clone() for p in self.parameters] if self.count else []
        try:
            copy_to(self.parameters, self.mean)
            yield
        finally:
            copy_to(self.parameters, own)

    def state_dict(self) -> dict[str, Any]:
        """Return the mean and the number of averaged sets of weights."""
        return {"count": self.count, "mean": self.mean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the saved state, on the devices of the parameters."""
        self.count = state["count"]
        pairs = list(zip(state["mean"], self.parameters, strict=self.count > 0))
        if any(mean.shape != p.shape for mean, p in pairs):
            raise ValueError("the mean weights are of other shapes")
        self.mean = [mean.to(p.device, p.dtype, copy=True) for mean, p in pairs]


@torch.no_grad()
def copy_to(parameters: list[Tensor], values: list[Tensor]) -> None:
    """Set parameters to values, if there are any."""
    for p, value in zip(parameters, values, strict=bool(values)):
        p.copy_(value)


class NtAsgd:
    """Decides when averaging of the weights starts; the steps are those of SGD.

    An evaluation with a validation loss above the best of all but the last `window` before it
    starts the average of the present weights and those after each further step. In finetuning, the
    average starts at once, and this evaluation ends the training.

    The average is a plain running mean. `torch.optim.ASGD` lags one step behind if the learning
    rate changes from step to step, and leaves out the weights at which it starts.

    References
    ----------
    Merity, Keskar and Socher, "Regularizing and optimizing LSTM language models", ICLR 2018,
    Algorithm 1.
    """

    def __init__(self, average: WeightAverage, *, window: int = 5, finetune: bool = False) -> None:
        self.average = average
        self.window = parse_value(window, Positive, "window")
        self.finetune = finetune
        self.losses: list[float] = []
        self.finished = False
        self.averaging = finetune
        if finetune:
            average.update()

    def after_step(self) -> None:
        """Update the average after a step of the optimizer."""
        if self.averaging:
            self.average.update()

    def checked(self, loss: float) -> bool:
        """Record the validation loss, of the averaged weights if any.

        Returns whether this evaluation starts the averaging or ends finetuning.
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
