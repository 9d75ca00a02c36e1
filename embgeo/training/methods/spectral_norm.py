"""Spectral normalization of the embedding, alone and with the D-optimal regularizer."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from embgeo.training import components
from embgeo.training.methods.factored import FactoredEmbedding
from embgeo.training.methods.orthogonality import DEVIATIONS, OrthogonalFactors, learning_rate
from embgeo.training.methods.regularizer import Step


class SpectralNorm(OrthogonalFactors):
    """Σ ← s·Σ/max|σ| at the start and after each step, with U and V kept orthonormal.

    s is the largest singular value at the start. As printed, it is 1: with orthonormal U and V, the
    mean norm of rows is then √(d/N) at most, so that logits of states with entries below 1 hardly
    differ from the bias, and any training gives a unigram model. Settings are those of
    :class:`OrthogonalFactors`.

    References
    ----------
    Wang et al., "Improving neural language generation with spectrum control", ICLR 2020, Table 6;
    Jiang et al., "On computation and generalization of generative adversarial networks under
    spectrum control", ICLR 2019.
    """

    NAME: ClassVar[str] = "spectral-norm"
    SETTINGS: ClassVar[type[components.Orthogonal]] = components.SpectralNorm
    SOURCE: ClassVar[str] = "Wang et al. 2020, Table 6, after Jiang et al. 2019"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "Σ is divided after each step, not inside of the differentiated function",
        "the largest singular value stays what it is at the start; at 1, as printed, the logits "
        "are too small for anything but the bias",
        *DEVIATIONS,
    )

    def __init__(self, embedding: FactoredEmbedding, **settings: Any) -> None:
        super().__init__(embedding, **settings)
        self.bound: Tensor
        self.register_buffer("bound", embedding.singular_values().detach().abs().max())
        self.normalize()

    @torch.no_grad()
    def normalize(self) -> None:
        """Scale Σ such that its largest entry is `bound`."""
        found = self.embedding.singular_values().abs().max().clamp(min=1e-30)
        self.embedding.sigma.mul_(self.bound / found)

    def after_step(self, lr: float | None = None) -> None:
        """Scale Σ to its bound; under SGD, make U and V orthonormal at intervals."""
        self.normalize()
        super().after_step(lr)


#: Singular values below this share of the largest add no gradient to the penalty.
SMALLEST = 1e-6


class DOptimal(SpectralNorm):
    """−λ·mean_k log(|σ_k|/max|σ|), on top of `SpectralNorm`, whose settings it has, too.

    Parameters
    ----------
    lambda_
        See `embgeo.training.components.DOptimal`.

    References
    ----------
    See `SpectralNorm`.
    """

    NAME: ClassVar[str] = "d-optimal"
    SETTINGS = components.DOptimal
    SOURCE: ClassVar[str] = "Wang et al. 2020, Table 6 (SN + D-optimal), after Jiang et al. 2019"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        *SpectralNorm.DEVIATIONS,
        "the strength is not published: 1",
        "singular values enter by their size, as nothing keeps them positive",
        "under SGD it is a proximal step of Σ in place of a penalty",
    )

    def penalty(self, step: Step) -> Tensor:
        found = super().penalty(step)
        if self.sgd:
            return found
        sizes = self.embedding.sigma.abs()
        relative = (sizes / sizes.max()).clamp(min=SMALLEST)
        total: Tensor = found - self.settings.lambda_ * relative.log().mean()
        return total

    @torch.no_grad()
    def after_step(self, lr: float | None = None) -> None:
        """Move Σ to larger values before the step of `SpectralNorm`, under SGD.

        With the largest value fixed, the proximal step of −(λ/d)·log σ is
        σ ← (|σ| + √(σ² + 4ηλ/d))/2.
        """
        if self.sgd:
            e = self.embedding
            # A step of sigma = Σ/c by lr is one of Σ by lr·c², and c drops out of the formula.
            room = 4.0 * learning_rate(lr) * self.settings.lambda_ / len(e.sigma)
            e.sigma.copy_((e.sigma.abs() + torch.sqrt(e.sigma.square() + room)) / 2.0)
        super().after_step(lr)
