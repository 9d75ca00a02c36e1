"""The D-optimal regulariser: all singular values near the largest."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from embgeo.train.regularizers.base import Step
from embgeo.train.regularizers.factored import FactoredEmbedding
from embgeo.train.regularizers.spectral_norm import SpectralNorm

#: Relative to the largest: below this, a singular value no longer adds to the penalty's gradient.
SMALLEST = 1e-6


class DOptimal(SpectralNorm):
    """−λ·mean_k log(|σ_k|/max|σ|), on top of spectral normalisation.

    The worst of the rivals in the paper on spectrum control: perplexity 98.3 in place of 69.1
    (WikiText-2, validation).

    Parameters
    ----------
    embedding : FactoredEmbedding
        The layer that is used as input embedding, output layer or both.
    lambda_ : float
        The strength λ.
    frobenius, spectral : tuple of float
        Weights of the penalties of U and V, as in `SpectrumControl`.

    References
    ----------
    As of `SpectralNorm`.
    """

    NAME: ClassVar[str] = "d-optimal"
    SOURCE: ClassVar[str] = "Wang et al. 2020, Table 6 (SN + D-optimal), after Jiang et al. 2019"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        *SpectralNorm.DEVIATIONS,
        "the strength is not published: 1",
        "singular values enter by their size, as nothing keeps them positive",
    )

    def __init__(
        self,
        embedding: FactoredEmbedding,
        *,
        lambda_: float = 1.0,
        frobenius: tuple[float, float] = (1.0, 1.0),
        spectral: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        super().__init__(embedding, frobenius=frobenius, spectral=spectral)
        self.lambda_ = lambda_

    def penalty(self, step: Step) -> Tensor:
        sizes = self.embedding.sigma.abs()
        relative = (sizes / sizes.max()).clamp(min=SMALLEST)
        return super().penalty(step) - self.lambda_ * relative.log().mean()

    def extra_repr(self) -> str:
        return f"lambda_={self.lambda_:g}"
