"""Spectrum control: the singular values of the embedding follow a given decay."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from embgeo.core.errors import BadOption
from embgeo.training.checks import choice, nonnegative, positive, require
from embgeo.training.methods.factored import FactoredEmbedding
from embgeo.training.methods.orthogonality import DEVIATIONS, Constrained, learning_rate
from embgeo.training.methods.regularizer import Step
from embgeo.training.methods.weights import follow
from embgeo.training.study.numbers import prior as prior_shape

Prior = Literal["exponential", "polynomial"]


class SpectrumControl(Constrained):
    """λ·Σ_k (σ_k − σ*_k)² and four penalties that keep U and V orthonormal, for W = UΣVᵀ.

    The prior is σ*_k = c1·exp(−c2·k^γ) (for small corpora) or c1·k^(−γ) (for large ones), k from 1;
    c1 is such that ‖σ*‖ equals ‖Σ‖ at the start. In mode ``penalty``, for optimizers of Adam's
    kind, all is added to the loss. In mode ``proximal``, for SGD, nothing is: `after_step` moves
    σ ← (σ + 2ηλσ*)/(1 + 2ηλ), and every few steps puts the Q of a QR decomposition in place of U
    and V. As penalties under the SGD that the paper builds on (learning rate 30), the orthogonality
    terms diverge within a few steps unless λ < 0.25/30.

    W is never multiplied out in training. To save or analyze it, take `embedding.export()`, or
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
        σ*_d/σ*_1 of the exponential prior, which stands for its c2; by default 0.1. The polynomial
        prior has none: there it is d^(−γ).
    **constraints
        ``frobenius`` = (λ1, λ2), ``spectral`` = (λ3, λ4) with the paper's grid of 0.01, 0.1, 1, 10,
        ``mode`` and ``retract_every``; see :class:`Constrained`.

    Raises
    ------
    BadOption
        A prior, mode or number that makes no sense.

    References
    ----------
    Wang et al., "Improving neural language generation with spectrum control", ICLR 2020, §4.
    """

    NAME: ClassVar[str] = "spectrum-control"
    SOURCE: ClassVar[str] = "Wang et al. 2020, §4"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "c1, c2 and γ are not published: the prior is given by γ (1; polynomial 0.6) and the ratio "
        "of the last to the first singular value (0.1), and keeps ‖Σ‖ as it is at the start",
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
        **constraints: Any,
    ) -> None:
        super().__init__(embedding, **constraints)
        self.prior = prior
        self.strength = nonnegative("strength", strength)
        shape = decay(prior, embedding.embedding_dim, gamma, tail_ratio)
        start = embedding.singular_values().detach()
        level = torch.linalg.vector_norm(start) / torch.linalg.vector_norm(shape)
        self.target: Tensor
        self.register_buffer("target", shape.to(start) * level)

    def penalty(self, step: Step) -> Tensor:
        found = super().penalty(step)
        if self.mode == "proximal":
            return found
        e = self.embedding
        follow(self, e.sigma)
        return found + self.strength * (e.singular_values() - self.target).square().sum()

    @torch.no_grad()
    def after_step(self, lr: float | None = None) -> None:
        """In mode ``proximal``: Σ towards the prior, and now and then U and V orthonormal again."""
        if self.mode == "proximal":
            e = self.embedding
            # A step of sigma = Σ/c by lr is one of Σ by lr·c².
            pull = 2.0 * learning_rate(lr) * self.strength * e.scale**2
            e.sigma.add_(pull / e.scale * self.target.to(e.sigma)).div_(1.0 + pull)
        super().after_step(lr)


def decay(kind: str, d: int, gamma: float | None, tail_ratio: float | None) -> Tensor:
    """The shape of the prior, 1 at its head; see :func:`embgeo.training.study.numbers.prior`.

    Raises
    ------
    BadOption
        A prior that is neither, or parameters outside their range.
    """
    choice("prior", kind, ("exponential", "polynomial"))
    if gamma is not None:
        positive("gamma", gamma)
    if tail_ratio is not None:
        if kind == "polynomial":
            raise BadOption(
                "the polynomial prior has no tail_ratio: it is d^(−gamma)",
                way_out="give gamma alone",
            )
        require("tail_ratio", tail_ratio, 0.0 < tail_ratio <= 1.0, "give 0 < tail_ratio ≤ 1")
    return torch.from_numpy(prior_shape(kind, d, {"gamma": gamma, "tail_ratio": tail_ratio}))
