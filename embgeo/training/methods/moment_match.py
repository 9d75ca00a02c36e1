"""Moment matching: rare rows get the mean, variance and shape of the popular ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from embgeo.training.checks import nonnegative, require
from embgeo.training.methods.popular import ClassRegularizer, classes
from embgeo.training.methods.regularizer import Step
from embgeo.training.methods.weights import Source, exact, to_single


class MomentMatch(ClassRegularizer):
    """λ·Σ_k ‖m_k(rare) − m_k(popular)‖₂ over mean, variance, skewness and kurtosis by coordinate.

    The public code of FRAGE does this for mixtures of softmaxes, in place of the discriminator. The
    popular rows are a fixed target: only rare rows have a gradient.

    Parameters
    ----------
    source : Module, Tensor or callable
        The embedding, its weight, or a function that returns the weight.
    popular : Tensor of bool
        True for popular rows; see :func:`popular_rows`.
    lambda_ : float
        The strength λ; 0.01 in the public code.
    moments : int
        The number of moments to match, starting from the mean.
    ignore_rows : sequence of int
        Rows that are neither popular nor rare, such as padding.

    Raises
    ------
    BadOption
        An empty class, or a number of moments other than 1 to 4.

    References
    ----------
    The public code of Gong et al., "FRAGE: frequency-agnostic word representation", NeurIPS 2018;
    the paper does not mention it.
    """

    NAME: ClassVar[str] = "moment-match"
    SOURCE: ClassVar[str] = "public code of Gong et al. 2018 (mixture of softmaxes)"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "not in the paper: the public code's replacement of the discriminator",
        "variances are divided by the number of rows, not by one less",
        "popular are the 20 % most frequent types; the public code takes the first 1,500 or 2,000",
    )

    def __init__(
        self,
        source: Source,
        popular: Tensor,
        *,
        lambda_: float = 0.01,
        moments: int = 4,
        ignore_rows: Sequence[int] = (),
    ) -> None:
        super().__init__(source)
        self.lambda_ = nonnegative("lambda_", lambda_)
        require("moments", moments, moments in (1, 2, 3, 4), "give 1, 2, 3 or 4")
        self.moments = moments
        common, rare = classes(len(self.weight()), popular, ignore_rows)
        self.common: Tensor
        self.rare: Tensor
        self.register_buffer("common", common, persistent=False)
        self.register_buffer("rare", rare, persistent=False)

    def penalty(self, step: Step) -> Tensor:  # noqa: ARG002
        W = self.weight()
        with exact(W):
            rows = to_single(W)
            target = moments(rows.detach()[self.common], self.moments)
            found = moments(rows[self.rare], self.moments)
            distances = [
                torch.linalg.vector_norm(a - b) for a, b in zip(found, target, strict=True)
            ]
        return self.lambda_ * torch.stack(distances).sum()


def moments(rows: Tensor, count: int) -> list[Tensor]:
    """The first `count` of mean, variance, skewness and kurtosis of each column.

    Skewness and kurtosis of a constant column are 0, without a gradient.
    """
    mean = rows.mean(dim=0)
    centered = rows - mean
    variance = centered.square().mean(dim=0)
    found = [mean, variance]
    if count > 2:
        spread = variance > 0.0
        safe = torch.where(spread, variance, 1.0)
        standard = torch.where(spread, centered * safe.rsqrt(), 0.0)
        cube = standard * standard * standard
        found += [cube.mean(dim=0), (cube * standard).mean(dim=0)]
    return found[:count]
