"""Tying (RE): one matrix for input and output, without an output bias."""

from typing import ClassVar

from torch import nn

from embgeo.core.errors import BadOption
from embgeo.training import components
from embgeo.training.methods.regularizer import Regularizer
from embgeo.training.methods.weights import find_layer, read_weight


class Tying(Regularizer):
    """W = Lᵀ and no output bias; the constructor ties the layers, and the penalty is 0.

    Safetensors refuses to save a tensor under two names: save one of them.

    References
    ----------
    Inan et al., "Tying word vectors and word classifiers: a loss framework for language modeling",
    ICLR 2017, §4.
    """

    NAME: ClassVar[str] = "tying"
    SETTINGS = components.Tying
    SOURCE: ClassVar[str] = "Inan et al. 2017, §4 (RE)"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the output bias is removed rather than held at zero, which is the same function",
    )

    def __init__(self, embedding: nn.Module, output: nn.Module) -> None:
        super().__init__()
        rows, columns = read_weight(embedding), read_weight(output)
        if rows.shape != columns.shape:
            raise BadOption(
                f"an embedding of shape {tuple(rows.shape)} and an output weight of shape "
                f"{tuple(columns.shape)} cannot be one matrix",
                way_out="make the last layer as wide as the embedding",
            )
        output.weight = embedding.weight
        if getattr(output, "bias", None) is not None:
            output.register_parameter("bias", None)

    @classmethod
    def find_layers(cls, model: nn.Module) -> tuple[nn.Module, ...]:
        return find_layer(model, "input"), find_layer(model, "output")
