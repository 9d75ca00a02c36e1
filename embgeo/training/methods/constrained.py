"""What the methods on a factored embedding share: U and V stay orthonormal."""

from __future__ import annotations

from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from embgeo.core.errors import BadOption
from embgeo.training.methods.factored import FactoredEmbedding, factorize
from embgeo.training.methods.orthogonality import Orthogonality, retract
from embgeo.training.methods.regularizer import Regularizer, Setup, Step, require_weight

Mode = Literal["penalty", "proximal"]

#: Said of every method that is made of this.
DEVIATIONS = (
    "U and Σ are kept as c·U and Σ/c, with c the mean singular value at the start, so that a step "
    "moves W as far as it would move a plain W",
    "spectral norms of U and V are those along a vector that power iteration follows from step to "
    "step",
    "under SGD, U and V are retracted by QR every 20 steps in place of their penalties",
    "no weight decay on U, Σ and V",
)


class Constrained(Regularizer):
    """λ1‖UᵀU − I‖_F² + λ2‖VᵀV − I‖_F² + λ3‖UᵀU − I‖₂² + λ4‖VᵀV − I‖₂², or retractions.

    Parameters
    ----------
    embedding : FactoredEmbedding
        The layer that is used as input embedding, output layer or both.
    frobenius : tuple of float
        λ1 of U and λ2 of V.
    spectral : tuple of float
        λ3 of U and λ4 of V.
    mode : {"penalty", "proximal"}
        Whether the penalties are added to the loss, for optimizers of Adam's kind, or U and V are
        replaced by the Q of their QR decomposition every few steps, for SGD. At the learning rates
        of SGD (30 in the papers), the penalties diverge unless λ < 0.25/lr.
    retract_every : int
        Steps between two retractions in mode ``proximal``.
    """

    def __init__(
        self,
        embedding: FactoredEmbedding,
        *,
        frobenius: tuple[float, float] = (1.0, 1.0),
        spectral: tuple[float, float] = (1.0, 1.0),
        mode: Mode = "penalty",
        retract_every: int = 20,
    ) -> None:
        super().__init__()
        if mode not in ("penalty", "proximal"):
            raise BadOption(f"no mode {mode!r}", way_out="give penalty or proximal")
        if retract_every < 1:
            raise BadOption(f"retract_every is {retract_every}", way_out="give a number from 1")
        for weight in (*frobenius, *spectral):
            require_weight("of orthogonality", weight)
        # In a tuple, where the module does not see it as a part.
        self._embedding = (embedding,)
        self.mode = mode
        self.retract_every = retract_every
        self.steps = 0
        d = embedding.embedding_dim
        self.of_left = Orthogonality(d, frobenius[0], spectral[0])
        self.of_right = Orthogonality(d, frobenius[1], spectral[1])

    @classmethod
    def attach(cls, model: nn.Module, setup: Setup = Setup(), **settings: Any) -> Self:
        """Replace the output layer, and the input if it is tied; proximal if SGD trains."""
        mode = "proximal" if setup.sgd else "penalty"
        return cls(factorize(model), **{"mode": mode, **settings})

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
        if self.mode == "proximal":
            # Of the parameters, so that a loss that is nothing else still has a graph.
            return 0.0 * e.sigma.sum()
        found: Tensor = self.of_left(e.left, e.scale) + self.of_right(e.right)
        return found

    @torch.no_grad()
    def after_step(self, lr: float | None = None) -> None:  # noqa: ARG002
        """In mode ``proximal``, now and then: U and V orthonormal again."""
        self.steps += 1
        if self.mode == "proximal" and self.steps % self.retract_every == 0:
            e = self.embedding
            retract(e.left, e.scale)
            retract(e.right)

    def get_extra_state(self) -> dict[str, int]:
        """How many steps were taken."""
        return {"steps": self.steps}

    def set_extra_state(self, state: dict[str, int]) -> None:
        self.steps = state["steps"]


def learning_rate(lr: float | None) -> float:
    """`BadOption` unless a proximal step was told the learning rate."""
    if lr is None:
        raise BadOption("a proximal step needs the learning rate", way_out="call after_step(lr)")
    return lr
