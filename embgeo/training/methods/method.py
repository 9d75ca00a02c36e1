"""What a method changes in the model, the loss and the step."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from embgeo.core.errors import BadOption
from embgeo.core.settings import parse_value, refuse_unknown
from embgeo.files.settings import to_toml
from embgeo.training.methods import regularizer
from embgeo.training.methods.coupled_adam import CoupledAdam
from embgeo.training.methods.factored import FactoredHead
from embgeo.training.methods.popular import ClassRegularizer
from embgeo.training.methods.weights import find_layer, read_weight
from embgeo.training.study.record import Role


@dataclass(frozen=True, slots=True)
class Method:
    """A published way to train against degeneration, or a control."""

    #: The name in settings and folders.
    name: str
    #: The name in tables and pages.
    title: str
    #: Classes of regularizers, attached to the model in this order.
    parts: tuple[type[regularizer.Regularizer], ...] = ()
    #: Defaults of this method for settings of the parts.
    usual: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the output layer is the input embedding; by default, the model's settings decide.
    tied: bool | None = None
    #: Whether `CoupledAdam` is the optimizer.
    coupled: bool = False
    #: Name of its control: the same model trained by maximum likelihood. Empty for a control.
    reference: str = "mle"
    #: The publication; by default that of the parts.
    source: str = ""
    #: For a method that settings define, the keys of its table that define it.
    definition: Mapping[str, Any] = field(default_factory=dict)
    #: Settings of the model that the method changes.
    model: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model_settings(self) -> dict[str, Any]:
        """Settings of the model that the method changes, with `tied`."""
        return {**({} if self.tied is None else {"tied": self.tied}), **self.model}

    @property
    def role(self) -> Role:
        """The matrix of an untied model that the method acts on, and is judged by."""
        if self.parts:
            return self.parts[-1].ROLE
        # Coupled Adam is derived for gradients of the output matrix (§2–3).
        return "output" if self.coupled else "input"

    @property
    def publication(self) -> str:
        """The publication of the method or of its parts."""
        return self.source or "; ".join(part.SOURCE for part in self.parts)

    @property
    def deviations(self) -> tuple[str, ...]:
        """All differences from the publication."""
        kinds: tuple[Any, ...] = (*self.parts, *([CoupledAdam] if self.coupled else []))
        return tuple(dict.fromkeys(line for kind in kinds for line in kind.DEVIATIONS))

    def settings(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return all settings of each part; `BadOption` for unknown ones and wrong types."""
        given = {name: value for name, value in given.items() if name not in self.definition}
        known = [
            {k: v for k, v in settings.items() if k not in regularizer.FROM_SETUP}
            for settings in map(regularizer.list_settings, self.parts)
        ]
        hints = {name: setting.hint for own in known for name, setting in own.items()}
        where = f"[method.{self.name}]"
        refuse_unknown(given, hints, where)
        values = {
            name: parse_value(value, hints[name], f"{name} of {where}", None)
            for name, value in {**self.usual, **given}.items()
        }
        return [
            {name: values.get(name, setting.default) for name, setting in own.items()}
            for own in known
        ]

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all settings in one table, for the record of a run."""
        own = {name: value for part in self.settings(given) for name, value in part.items()}
        found: dict[str, Any] = to_toml({**self.definition, **own})
        return found

    def attach(
        self, model: nn.Module, setup: regularizer.Setup, given: Mapping[str, Any]
    ) -> regularizer.Regularizer:
        """Make the regularizer of the method for a model; some replace layers of the model.

        Methods for rare and frequent rows also act on a separate source embedding, FRAGE with a
        second discriminator (Gong et al. 2018, §5).
        """
        made = []
        for part, own in zip(self.parts, self.settings(given), strict=True):
            made.append(part.attach(model, setup, **own))
            if setup.source_counts is not None and issubclass(part, ClassRegularizer):
                source = replace(setup, counts=setup.source_counts)
                made.append(part.attach(SourceSide(model), source, **own))
        if not made:
            return regularizer.Regularizer()
        return made[0] if len(made) == 1 else regularizer.Combined(made)


#: Controls of methods for models with two matrices, and with factors.
UNTIED, FACTORED = "untied", "factored"


class SourceSide(nn.Module):
    """A view of a translation model whose input embedding is the source embedding."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.layer = find_layer(model, "source")

    def get_input_embeddings(self) -> nn.Module:
        return self.layer


@torch.no_grad()
def list_embeddings(model: nn.Module) -> list[Tensor]:
    """List the matrices with a row for each token: input, and output if it is not tied."""
    before, output = find_layer(model, "input"), find_layer(model, "output")
    found = read_weight(before)
    if isinstance(output, FactoredHead) and output.factored is before:
        return [found]
    other = read_weight(output)
    return [found] if other is found else [found, other]


def refuse_sgd(method: Method) -> BadOption:
    """Return the error about Coupled Adam in a training with SGD."""
    return BadOption(
        f"{method.name} is an optimizer, and so is sgd",
        way_out='leave it out, or set kind = "adamw" in [optimizer]',
    )
