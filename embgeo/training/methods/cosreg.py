"""Cosine regularization: the mean cosine of all pairs of rows, by one product with the matrix."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from embgeo.training import components
from embgeo.training.methods.regularizer import Step, WeightRegularizer
from embgeo.training.methods.weights import Source, exact, to_single
from embgeo.training.registry import take

#: Rows of this norm or less do not count: the gradient grows with 1/‖w_i‖, and a row that was set
#: to zero would explode.
SHORTEST = 1e-8


class CosReg(WeightRegularizer):
    """γ/N²·Σ_i Σ_{j≠i} cos(w_i, w_j), added to the loss.

    With s = Σ_i ŵ_i it is γ·(s·s/N² − 1/N), and row i has the gradient
    2γ/(N²‖w_i‖)·(s − ŵ_i(ŵ_i·s)), of length 2γ/(N‖w_i‖) at most. Value and gradient take one pass
    over the matrix each, and the gradient one matrix of memory. The value is γ·(N − 1)/N
    times `cosine.mean` of an analysis.

    In the paper, γ is not sensitive. That holds for SGD, where the gradient is small. Adam divides
    each element by its own scale, and rare rows have hardly any other gradient, so that they take
    full steps at any γ. With Adam, try γ over powers of ten.

    Parameters
    ----------
    source : Module, Tensor or callable
        W: the output layer of the model, its weight, or a function that returns the weight.
    gamma
        See `embgeo.training.components.CosReg`.
    ignore_rows : sequence of int
        Rows without a token, such as padding: not summed, not counted in N, no gradient.

    References
    ----------
    Gao et al., "Representation degeneration problem in training natural language generation
    models", ICLR 2019, Eq. 6.
    """

    NAME: ClassVar[str] = "cosreg"
    SETTINGS = components.CosReg
    SOURCE: ClassVar[str] = "Gao et al. 2019, Eq. 6"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "padding rows and rows of norm zero are left out of the sum and of N",
    )

    def __init__(self, source: Source, *, ignore_rows: Sequence[int] = (), **settings: Any) -> None:
        super().__init__(source)
        self.gamma: float = take(self, settings).gamma
        self.keep_rows(ignore_rows)

    def penalty(self, step: Step) -> Tensor:  # noqa: ARG002
        value: Tensor = MeanCosine.apply(self.weight(), self.kept)  # type: ignore[no-untyped-call]
        return self.gamma * value


class MeanCosine(torch.autograd.Function):
    """‖Σ_i ŵ_i‖²/N² − 1/N; the gradient takes one matrix of memory, where autograd takes three."""

    @staticmethod
    def forward(ctx: Any, W: Tensor, kept: Tensor | None) -> Tensor:
        with exact(W):
            rows = to_single(W)
            lengths = torch.linalg.vector_norm(rows, dim=1)
            counts = lengths > SHORTEST
            if kept is not None:
                counts &= kept
            inverse = torch.where(counts, lengths.reciprocal(), 0.0)
            n = counts.sum().clamp(min=1)
            total = inverse @ rows
            # Without rows, n is 1 and the second term has to be 0, too.
            value: Tensor = total @ total / n**2 - counts.any().to(total.dtype) / n
        ctx.save_for_backward(W, inverse, total, n)
        return value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        W, inverse, total, n = ctx.saved_tensors
        with exact(W):
            rows = to_single(W)
            along = inverse * (rows @ total)  # ŵ_i·s
            outer = grads[0] * 2.0 / n**2 * inverse
            gradient = rows * (-outer * along * inverse).unsqueeze(1)
            gradient.addr_(outer, total)
        return gradient.to(W.dtype), None
