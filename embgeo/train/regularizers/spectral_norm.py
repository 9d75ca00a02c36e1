"""Spectral normalisation of the embedding: the largest singular value is 1."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from embgeo.train.regularizers.base import Regularizer, Setup, Step
from embgeo.train.regularizers.factored import FactoredEmbedding, factorise
from embgeo.train.regularizers.orthogonality import Orthogonality


class SpectralNorm(Regularizer):
    """Σ ← Σ/max|σ| at the start and after each step, with U and V kept orthonormal by penalties.

    A rival that the paper on spectrum control compares with, and that did harm: perplexity 76.3
    in place of 69.1 (WikiText-2, validation).

    Parameters
    ----------
    embedding : FactoredEmbedding
        The layer that is used as input embedding, output layer or both.
    frobenius, spectral : tuple of float
        Weights of the penalties of U and V, as in `SpectrumControl`.

    References
    ----------
    Wang et al., "Improving neural language generation with spectrum control", ICLR 2020, Table 6;
    Jiang et al., "On computation and generalization of generative adversarial networks under
    spectrum control", ICLR 2019.
    """

    NAME: ClassVar[str] = "spectral-norm"
    SOURCE: ClassVar[str] = "Wang et al. 2020, Table 6, after Jiang et al. 2019"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "Σ is divided after each step, not inside of the differentiated function",
        "U and Σ are kept as c·U and Σ/c, with c the mean singular value at the start, so that a "
        "step moves W as far as it would move a plain W",
        "spectral norms of U and V are those along a vector that power iteration follows",
        "no weight decay on U, Σ and V",
    )

    def __init__(
        self,
        embedding: FactoredEmbedding,
        *,
        frobenius: tuple[float, float] = (1.0, 1.0),
        spectral: tuple[float, float] = (1.0, 1.0),
    ) -> None:
        super().__init__()
        self._embedding = (embedding,)
        d = embedding.embedding_dim
        self.of_left = Orthogonality(d, frobenius[0], spectral[0])
        self.of_right = Orthogonality(d, frobenius[1], spectral[1])
        self.after_step()

    @classmethod
    def attach(cls, model: nn.Module, setup: Setup = Setup(), **settings: Any) -> Self:  # noqa: ARG003
        """Replace the output layer, and the input if it is tied."""
        return cls(factorise(model), **settings)

    @property
    def embedding(self) -> FactoredEmbedding:
        """The layer, which belongs to the model."""
        return self._embedding[0]

    def acts_on(self) -> list[Tensor]:
        e = self.embedding
        return [e.left, e.sigma, e.right]

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [{"params": self.acts_on(), "weight_decay": 0.0}]

    def penalty(self, step: Step) -> Tensor:  # noqa: ARG002
        e = self.embedding
        found: Tensor = self.of_left(e.left, e.scale) + self.of_right(e.right)
        return found

    @torch.no_grad()
    def after_step(self, lr: float | None = None) -> None:  # noqa: ARG002
        """Divide Σ by its largest entry."""
        e = self.embedding
        e.sigma.div_(e.singular_values().abs().max().clamp(min=1e-30))
