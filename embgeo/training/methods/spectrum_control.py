"""Spectrum control: the singular values of the embedding follow a given decay."""

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from embgeo.core.errors import BadOption
from embgeo.training.checks import choice, nonnegative, positive, require
from embgeo.training.methods.factored import FactoredEmbedding
from embgeo.training.methods.orthogonality import DEVIATIONS, OrthogonalFactors, learning_rate
from embgeo.training.methods.regularizer import Step
from embgeo.training.study.numbers import GAMMA, TAIL_RATIO
from embgeo.training.study.numbers import prior as prior_shape

Prior = Literal["exponential", "polynomial"]


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
    prior : {"exponential", "polynomial"}
    strength : float
        λ_e or λ_p; the paper's grid is 0.1, 1, 10, 100.
    gamma : float, optional
        γ; by default 1 for the exponential prior and 0.6 for the polynomial one.
    tail_ratio : float, optional
        σ*_d/σ*_1 of the exponential prior, which determines c2; by default 0.1. The polynomial
        prior has no such setting: its ratio is d^(−γ).
    c1 : {"fixed", "free"} or float
        "fixed": ‖σ*‖ equals ‖Σ‖ at the start, which holds W at its initial norm. "free": the c1
        that fits Σ best at each step, so that the penalty is on the shape of the decay alone. A
        number: c1 itself.
    frobenius, spectral : tuple of float
        (λ1, λ2) and (λ3, λ4), with the paper's grid of 0.01, 0.1, 1, 10, of which 0.01 had the
        lowest validation perplexity in `benchmarks/results/campaign-grids.md`.

    References
    ----------
    Wang et al., "Improving neural language generation with spectrum control", ICLR 2020, §4.
    """

    NAME: ClassVar[str] = "spectrum-control"
    SOURCE: ClassVar[str] = "Wang et al. 2020, §4"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "c1, c2 and γ are not published: the prior is given by γ (1; polynomial 0.6) and the ratio "
        "of the last to the first singular value (0.1); it keeps ‖Σ‖ as it is at the start, unless "
        "c1 is set",
        "the start is not published: it is the SVD of the usual initialization",
        "under SGD the prior is followed by a proximal step of Σ in place of its penalty",
        *DEVIATIONS,
    )

    def __init__(
        self,
        embedding: FactoredEmbedding,
        *,
        prior: Prior = "exponential",
        strength: float = 1.0,
        gamma: float | None = None,
        tail_ratio: float | None = None,
        c1: float | Literal["fixed", "free"] = "fixed",
        frobenius: tuple[float, float] = (0.01, 0.01),
        spectral: tuple[float, float] = (0.01, 0.01),
        **others: Any,
    ) -> None:
        super().__init__(embedding, frobenius=frobenius, spectral=spectral, **others)
        self.prior = prior
        self.strength = nonnegative("strength", strength)
        self.c1 = c1
        polynomial = choice("prior", prior, ("exponential", "polynomial")) == "polynomial"
        if gamma is not None:
            positive("gamma", gamma)
        if tail_ratio is not None:
            if polynomial:
                raise BadOption(
                    "the polynomial prior has no tail_ratio: it is d^(−gamma)",
                    way_out="give gamma alone",
                )
            require("tail_ratio", tail_ratio, 0.0 < tail_ratio <= 1.0, "give 0 < tail_ratio ≤ 1")
        start = embedding.singular_values().detach()
        d = len(start)
        shape = torch.from_numpy(prior_shape(prior, d, {"gamma": gamma, "tail_ratio": tail_ratio}))
        if isinstance(c1, str):
            choice("c1", c1, ("fixed", "free"))
            level = torch.linalg.vector_norm(start) / torch.linalg.vector_norm(shape)
        else:  # σ*_1, which is c1·exp(−c2) or c1
            flat = polynomial or d == 1
            grown = 1.0 if flat else d ** (gamma or GAMMA[prior]) - 1.0
            first = 1.0 if flat else (tail_ratio or TAIL_RATIO) ** (1.0 / grown)
            level = torch.tensor(positive("c1", c1) * first)
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
        found = self.shape * (free if self.c1 == "free" else self.level)
        return found.to(sigma)

    def penalty(self, step: Step) -> Tensor:
        found = super().penalty(step)
        if self.sgd:
            return found
        return (
            found + self.strength * (self.embedding.singular_values() - self.goal()).square().sum()
        )

    @torch.no_grad()
    def after_step(self, lr: float | None = None) -> None:
        """Move Σ towards the prior, and make U and V orthonormal at intervals, under SGD."""
        if self.sgd:
            e = self.embedding
            # A step of sigma = Σ/c by lr is one of Σ by lr·c².
            pull = 2.0 * learning_rate(lr) * self.strength * e.scale**2
            e.sigma.add_(pull / e.scale * self.goal()).div_(1.0 + pull)
        super().after_step(lr)
