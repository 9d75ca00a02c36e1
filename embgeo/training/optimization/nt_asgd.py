"""NT-ASGD: SGD that begins to average its weights once validation no longer improves."""

from __future__ import annotations

from typing import Any

from embgeo.core.errors import BadOption
from embgeo.training.optimization.averaging import WeightAverage


class NtAsgd:
    """When to average, and the average; the steps themselves are those of SGD.

    A check whose validation loss is above the best of all checks but the last `window` before it
    begins the averaging: of the weights as they then are, and of those after each further step.
    In finetuning the average is kept from the start, and that check is the end.

    The average is a plain running mean. `torch.optim.ASGD` takes the one that it had a step before
    into account where the learning rate changes from step to step, and leaves out the weights at
    which it begins.

    Parameters
    ----------
    average : WeightAverage
        Of the model that is trained.
    window : int
        How many of the last checks do not count; 5 in the paper.
    finetune : bool

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
        if isinstance(window, bool) or not isinstance(window, int) or window < 1:
            raise BadOption(f"window is {window!r}", way_out="give a whole number from 1")
        self.average = average
        self.window = window
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
        """Take note of a validation loss; of the averaged weights, if there are any.

        Returns
        -------
        bool
            Whether this check begins the averaging, or ends finetuning.
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
        """What is known so far, with the average."""
        return {
            "losses": list(self.losses),
            "averaging": self.averaging,
            "finished": self.finished,
            "average": self.average.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Put back what was saved."""
        self.losses = list(state["losses"])
        self.averaging = state["averaging"]
        self.finished = state["finished"]
        self.average.load_state_dict(state["average"])
