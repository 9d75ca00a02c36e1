"""Methods and the matrices of a model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from embgeo.training.methods.factored import FactoredHead
from embgeo.training.methods.popular import ClassRegularizer
from embgeo.training.methods.regularizer import Combined, Regularizer, Setup
from embgeo.training.methods.weights import find_layer, read_weight
from embgeo.training.registry import Method


def attach_method(
    method: Method, model: nn.Module, setup: Setup, given: Mapping[str, Any]
) -> Regularizer:
    """Make the regularizer of a method for a model; some replace layers of the model.

    Methods for rare and frequent rows also act on a separate source embedding, FRAGE with a second
    discriminator (Gong et al. 2018, §5).
    """
    made: list[Regularizer] = []
    for part, own in zip(method.classes, method.settings(given), strict=True):
        made.append(part.attach(model, setup, **own))
        if setup.source_counts is not None and issubclass(part, ClassRegularizer):
            source = replace(setup, counts=setup.source_counts)
            made.append(part.attach(SourceSide(model), source, **own))
    if not made:
        return Regularizer()
    return made[0] if len(made) == 1 else Combined(made)


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
