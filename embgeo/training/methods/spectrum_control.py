"""Spectrum control: the singular values of the embedding follow a given decay."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from embgeo.training import components
from embgeo.training.methods.factored import FactoredEmbedding
from embgeo.training.methods.orthogonality import DEVIATIONS, OrthogonalFactors, learning_rate
from embgeo.training.methods.regularizer import Step
from embgeo.training.study.numbers import GAMMA, TAIL_RATIO
from embgeo.training.study.numbers import prior as prior_shape


class SpectrumControl(OrthogonalFactors):
    """λ·Σ_k (σ_k − σ*_k)² and four penalties that keep U and V orthonormal, for W = UΣVᵀ.

    The prior is σ*_k = c1·exp(−c2·k^γ) (for small corpora) or c1·k^(−γ) (for large ones), k from 1.
    For optimizers of Adam's kind, all terms are added to the loss. For SGD, none is: `after_step`
    moves σ ← (σ + 2ηλσ*)/(1 + 2ηλ), and every few steps replaces U and V by the Q of their QR
    decomposition. With the SGD of the paper (learning rate 30), the orthogonality terms diverge
    within a few steps unless λ < 0.25/30.

    Training never multiplies W out. To save or analyze W, use `embedding.export()`, or
    :func:`make_plain` for a whole model.

    Parameters
    ----------
    embedding : FactoredEmbedding
        The layer that is used as input embedding, output layer or both.
    prior, strength, gamma, tail_ratio, c1, frobenius, spectral
        See `embgeo.training.components.SpectrumControl`.

    References
    ----------
    Wang et al., "Improving neural language generation with spectrum control", ICLR 2020, §4.
    """

    NAME: ClassVar[str] = "spectrum-control"
    SETTINGS = components.SpectrumControl
    SOURCE: ClassVar[str] = "Wang et al. 2020, §4"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "c1, c2 and γ are not published: the prior is given by γ (1; polynomial 0.6) and the ratio "
        "of the last to the first singular value (0.1); it keeps ‖Σ‖ as it is at the start, unless "
        "c1 is set",
        "the start is not published: it is the SVD of the usual initialization",
        "under SGD the prior is followed by a proximal step of Σ in place of its penalty",
        *DEVIATIONS,
    )

    def __init__(self, embedding: FactoredEmbedding, **settings: Any) -> None:
        super().__init__(embedding, **settings)
        own: components.SpectrumControl = self.settings
        start = embedding.singular_values().detach()
        d = len(start)
        given = {"gamma": own.gamma, "tail_ratio": own.tail_ratio}
        shape = torch.from_numpy(prior_shape(own.prior, d, given))
        if isinstance(own.c1, str):
            level = torch.linalg.vector_norm(start) / torch.linalg.vector_norm(shape)
        else:  # σ*_1, which is c1·exp(−c2) or c1
            flat = own.prior == "polynomial" or d == 1
            grown = 1.0 if flat else d ** (own.gamma or GAMMA[own.prior]) - 1.0
            first = 1.0 if flat else (own.tail_ratio or TAIL_RATIO) ** (1.0 / grown)
            level = torch.tensor(own.c1 * first)
        self.shape: Tensor
        self.register_buffer("shape", shape.to(start))
        self.level: Tensor
        self.register_buffer("level", level.to(start))

    @torch.no_grad()
    def goal(self) -> Tensor:
        """Return σ* at this step, shape (d,)."""
        sigma = self.embedding.singular_values()
        # At the c1 that fits best, the gradient by Σ is that for a constant c1.
        free = (sigma @ self.shape) / (self.shape @ self.shape)
        found = self.shape * (free if self.settings.c1 == "free" else self.level)
        return found.to(sigma)

    def penalty(self, step: Step) -> Tensor:
        found = super().penalty(step)
        if self.sgd:
            return found
        distance = (self.embedding.singular_values() - self.goal()).square().sum()
        total: Tensor = found + self.settings.strength * distance
        return total

    @torch.no_grad()
    def after_step(self, lr: float | None = None) -> None:
        """Move Σ towards the prior, and make U and V orthonormal at intervals, under SGD."""
        if self.sgd:
            e = self.embedding
            # A step of sigma = Σ/c by lr is one of Σ by lr·c².
            pull = 2.0 * learning_rate(lr) * self.settings.strength * e.scale**2
            e.sigma.add_(pull / e.scale * self.goal()).div_(1.0 + pull)
        super().after_step(lr)
