"""Several methods at once, as if they were one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from torch import Tensor, nn

from embgeo.core.errors import BadOption
from embgeo.training.methods.regularizer import Regularizer, Step


class Several(Regularizer):
    """The penalties are added, logits and steps are taken one after the other.

    The paper's REAL, for one, is ``Several([Tying(…), AugmentedLoss(…)])``.

    Parameters
    ----------
    parts : sequence of Regularizer

    Raises
    ------
    BadOption
        No part at all.
    """

    NAME: ClassVar[str] = "several"
    SOURCE: ClassVar[str] = "as of its parts"

    def __init__(self, parts: Sequence[Regularizer]) -> None:
        super().__init__()
        if not parts:
            raise BadOption("no regularizer is given", way_out="give one or more")
        self.parts = nn.ModuleList(parts)
        self.NEEDS = tuple(dict.fromkeys(name for part in parts for name in part.NEEDS))  # type: ignore[misc]
        self.DEVIATIONS = tuple(line for part in parts for line in part.DEVIATIONS)  # type: ignore[misc]

    def __iter__(self) -> Iterator[Regularizer]:
        for part in self.parts:
            assert isinstance(part, Regularizer)
            yield part

    def penalty(self, step: Step) -> Tensor:
        first, *others = (part.penalty(step) for part in self)
        return sum(others, start=first)

    def logits(self, step: Step) -> Tensor:
        found = super().logits(step)
        for part in self:
            found = part.logits(replace(step, logits=found))
        return found

    def before_step(self, lr: float | None = None) -> None:
        for part in self:
            part.before_step(lr)

    def after_step(self, lr: float | None = None) -> None:
        for part in self:
            part.after_step(lr)

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [group for part in self for group in part.parameter_groups()]

    def acts_on(self) -> list[Tensor]:
        seen = {id(weight): weight for part in self for weight in part.acts_on()}
        return list(seen.values())
