"""Regularizers in the trainers of transformers and Lightning, which are imported if installed.

Both take methods that look at weights alone (`NEEDS` is empty), and add the gradient of their
penalty once per optimizer step, however many batches are accumulated. What needs the logits or the
hidden states has to be added to the loss, where those are.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from embgeo.core.errors import BadOption
from embgeo.training.methods.regularizer import Regularizer


def base_of(names: tuple[str, ...], name: str) -> Any:
    """A class of the first installed package, imported ones first; else `object`."""
    for package in sorted(names, key=lambda package: package not in sys.modules):
        try:
            return getattr(import_module(package), name)
        except ImportError:
            continue
    return object


TrainerBase: Any = base_of(("transformers",), "TrainerCallback")
LightningBase: Any = base_of(("lightning.pytorch", "pytorch_lightning"), "Callback")


class StepBoundary:
    """Calls the regularizers around one step of an optimizer."""

    def __init__(self, regularizers: tuple[Regularizer, ...]) -> None:
        if not regularizers:
            raise BadOption("no regularizer is given", way_out="give one or more")
        for reg in regularizers:
            if reg.NEEDS:
                raise BadOption(
                    f"{reg.NAME} needs {' and '.join(reg.NEEDS)}, which a callback does not see",
                    way_out="add it to the loss of the model",
                )
        self.regularizers = regularizers
        self.values: dict[str, Tensor] = {}
        self.lr: float | None = None

    def before(self, optimizer: Optimizer) -> None:
        self.lr = float(optimizer.param_groups[0]["lr"])
        for reg in self.regularizers:
            reg.before_step(self.lr)
            self.values[reg.NAME] = reg.add_gradient()

    def after(self) -> None:
        """Do nothing unless there was a step since the last call."""
        lr, self.lr = self.lr, None
        if lr is not None:
            for reg in self.regularizers:
                reg.after_step(lr)


class StepRegularizer:
    """Adds the gradients of regularizers once per step of the optimizer.

    Parameters
    ----------
    *regularizers : Regularizer
        On the model that is trained. Replace layers (`SpectrumControl.attach`) before the Trainer
        or the optimizer is made.

    Attributes
    ----------
    values : dict
        The last value of each penalty, by name.

    Raises
    ------
    BadOption
        A method that needs what a callback does not see.
    """

    def __init__(self, *regularizers: Regularizer) -> None:
        self.between = StepBoundary(regularizers)
        self.values = self.between.values


class TrainerRegularizer(StepRegularizer, TrainerBase):  # type: ignore[misc]
    """For the Trainer of transformers: ``Trainer(…, callbacks=[TrainerRegularizer(reg)])``.

    The gradient is added after that of the loss was clipped, and is not clipped itself. In float16
    leave clipping on (it is by default): it is then that the Trainer takes the scale of the loss
    out of the gradients. What a regularizer owns, such as a discriminator, is not in the Trainer's
    checkpoints.
    """

    def on_pre_optimizer_step(
        self, _args: Any, _state: Any, _control: Any, *, optimizer: Any, **_: Any
    ) -> None:
        """Add the gradients."""
        self.between.before(optimizer)

    def on_optimizer_step(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        """Run the steps of the methods."""
        self.between.after()


class LightningRegularizer(StepRegularizer, LightningBase):  # type: ignore[misc]
    """For Lightning: ``Trainer(…, callbacks=[LightningRegularizer(reg)])``.

    The gradient is added before clipping, if the Trainer clips. What a regularizer owns, such as a
    discriminator, is kept in Lightning's checkpoints.
    """

    def on_before_optimizer_step(self, _trainer: Any, _module: Any, optimizer: Any) -> None:
        """Add the gradients, unless the optimizer has none of the weights."""
        trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
        weights = [w for reg in self.between.regularizers for w in reg.acts_on()]
        if not weights or any(id(weight) in trained for weight in weights):
            self.between.before(optimizer)

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        """Run the steps of the methods, if the optimizer took a step."""
        self.between.after()

    def state_dict(self) -> dict[str, Any]:
        """State of the regularizers."""
        return {str(i): reg.state_dict() for i, reg in enumerate(self.between.regularizers)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the saved state."""
        for i, reg in enumerate(self.between.regularizers):
            reg.load_state_dict(state_dict[str(i)])
