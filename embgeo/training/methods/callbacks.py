"""Regularizers in the trainers of transformers and Lightning, which are imported if installed.

Both callbacks take methods of weights alone (`NEEDS` is empty), and add the gradient of the penalty
once per optimizer step, however many batches are accumulated. Methods that need logits or hidden
states belong in the loss of the model.
"""

from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from embgeo.core.errors import BadOption
from embgeo.core.frames import import_base
from embgeo.training.methods.regularizer import Regularizer

TrainerBase: Any = import_base(("transformers",), "TrainerCallback")
LightningBase: Any = import_base(("lightning.pytorch", "pytorch_lightning"), "Callback")


class StepRegularizer:
    """Applies regularizers around each step of the optimizer.

    Replace layers (`SpectrumControl.attach`) before the Trainer or the optimizer is made. `values`
    has the last value of each penalty, by name.
    """

    def __init__(self, *regularizers: Regularizer) -> None:
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
        self._lr: float | None = None

    def before_step(self, optimizer: Optimizer) -> None:
        """Add the gradients of the penalties."""
        self._lr = float(optimizer.param_groups[0]["lr"])
        for reg in self.regularizers:
            self.values[reg.NAME] = reg.add_gradient()

    def after_step(self) -> None:
        """Run the steps of the methods, unless no step was taken since the last call."""
        lr, self._lr = self._lr, None
        if lr is not None:
            for reg in self.regularizers:
                reg.after_step(lr)


class TrainerRegularizer(StepRegularizer, TrainerBase):  # type: ignore[misc]
    """For the Trainer of transformers: ``Trainer(…, callbacks=[TrainerRegularizer(reg)])``.

    The gradient is added after that of the loss was clipped, and is not clipped itself. In float16,
    leave clipping on, as it is by default: the Trainer divides gradients by the loss scale when it
    clips. The Trainer's checkpoints lack the state of a regularizer, such as a discriminator.
    """

    def on_pre_optimizer_step(
        self, _args: Any, _state: Any, _control: Any, *, optimizer: Any, **_: Any
    ) -> None:
        self.before_step(optimizer)

    def on_optimizer_step(self, _args: Any, _state: Any, _control: Any, **_: Any) -> None:
        self.after_step()


class LightningRegularizer(StepRegularizer, LightningBase):  # type: ignore[misc]
    """For Lightning: ``Trainer(…, callbacks=[LightningRegularizer(reg)])``.

    The gradient is added before clipping, if the Trainer clips. Lightning's checkpoints hold the
    state of a regularizer, such as a discriminator.
    """

    def on_before_optimizer_step(self, _trainer: Any, _module: Any, optimizer: Any) -> None:
        """Add the gradients, unless this optimizer trains none of the weights."""
        trained = {id(p) for group in optimizer.param_groups for p in group["params"]}
        weights = [w for reg in self.regularizers for w in reg.acts_on()]
        if not weights or any(id(weight) in trained for weight in weights):
            self.before_step(optimizer)

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        self.after_step()

    def state_dict(self) -> dict[str, Any]:
        return {str(i): reg.state_dict() for i, reg in enumerate(self.regularizers)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the saved state."""
        for i, reg in enumerate(self.regularizers):
            reg.load_state_dict(state_dict[str(i)])
