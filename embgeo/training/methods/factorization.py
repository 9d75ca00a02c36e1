"""The embedding as factors U·Σ·Vᵀ without a penalty: the control of methods on factors."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from torch import Tensor, nn

from embgeo.training.methods.factored import FactoredEmbedding, factorize
from embgeo.training.methods.regularizer import Regularizer, Setup


class Factorization(Regularizer):
    """W = UΣVᵀ without any penalty: the effect of the factors alone.

    Under an optimizer of Adam's kind, three factors move W faster than W itself would move. A
    method that keeps the embedding as factors is therefore compared with this one; compared with a
    plain model, it would be credited with the speed of its parametrization.

    Parameters
    ----------
    embedding : FactoredEmbedding
        The layer that is used as input embedding, output layer or both.

    References
    ----------
    Wang et al., "Improving neural language generation with spectrum control", ICLR 2020, §4, which
    has no such control.
    """

    NAME: ClassVar[str] = "factored"
    SOURCE: ClassVar[str] = "the factors of Wang et al. 2020, §4, without its penalties: a control"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "U and Σ are kept as c·U and Σ/c, with c the mean singular value at the start, so that a "
        "step moves W as far as it would move a plain W",
    )

    def __init__(self, embedding: FactoredEmbedding) -> None:
        super().__init__()
        # In a tuple, where the module does not see it as a part.
        self._embedding = (embedding,)

    @classmethod
    def attach(cls, model: nn.Module, setup: Setup = Setup(), **settings: Any) -> Self:  # noqa: ARG003
        """Replace the output layer, and the input if it is tied."""
        return cls(factorize(model), **settings)

    @property
    def embedding(self) -> FactoredEmbedding:
        """The layer, which belongs to the model."""
        return self._embedding[0]

    def factors(self) -> list[Tensor]:
        """c·U, Σ/c and V."""
        e = self.embedding
        return [e.left, e.sigma, e.right]

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [{"params": self.factors(), "weight_decay": 0.0}]
