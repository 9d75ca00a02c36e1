"""Keep U and V of a factored embedding orthonormal, by penalties or retractions."""

from typing import Any

import torch
from torch import Tensor, nn

from embgeo.core.errors import BadOption
from embgeo.training.methods.factored import FactoredEmbedding, Factorization
from embgeo.training.methods.regularizer import Step
from embgeo.training.methods.weights import exact, to_single
from embgeo.training.registry import take


class Orthogonality(nn.Module):
    """f·‖AᵀA − I‖_F² + s·‖AᵀA − I‖₂² for a matrix that is a multiple of A.

    The spectral norm is estimated along a vector that each call improves by steps of power
    iteration: a lower bound, which becomes tight within a few calls. A has `d` columns.
    """

    def __init__(self, d: int, frobenius: float, spectral: float, *, iterations: int = 2) -> None:
        super().__init__()
        self.frobenius, self.spectral, self.iterations = frobenius, spectral, iterations
        start = torch.randn(d, generator=torch.Generator().manual_seed(0))
        self.direction: Tensor
        self.register_buffer("direction", start / torch.linalg.vector_norm(start))

    def forward(self, matrix: Tensor, scale: float | Tensor = 1.0) -> Tensor:
        """Return the penalty of A = matrix/scale."""
        gram = residual(matrix.detach(), scale)
        if self.training and self.spectral:
            self.direction = improved(gram, self.direction.to(gram.dtype), self.iterations)
        value: Tensor = OrthogonalityPenalty.apply(  # type: ignore[no-untyped-call]
            matrix, gram, self.direction.to(gram.dtype), scale, self.frobenius, self.spectral
        )
        return value


class OrthogonalityPenalty(torch.autograd.Function):
    """The value from the d×d residual E, the gradient as one product with the matrix.

    With y = Ex the spectral part is y·y, whose gradient by E is xyᵀ + yxᵀ. The gradient of both
    parts by A is A·(4fE + 2s(xyᵀ + yxᵀ)), one product, where autograd takes four.
    """

    @staticmethod
    def forward(
        ctx: Any,
        matrix: Tensor,
        gram: Tensor,
        x: Tensor,
        scale: float | Tensor,
        frobenius: float,
        spectral: float,
    ) -> Tensor:
        with exact(matrix):
            y = gram @ x
        ctx.save_for_backward(matrix, gram, x, y)
        ctx.scale, ctx.frobenius, ctx.spectral = scale, frobenius, spectral
        return frobenius * gram.square().sum() + spectral * y.square().sum()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        matrix, gram, x, y = ctx.saved_tensors
        inner = 4.0 * ctx.frobenius * gram
        if ctx.spectral:
            inner = inner + 2.0 * ctx.spectral * (torch.outer(x, y) + torch.outer(y, x))
        inner = inner * (grads[0] / ctx.scale**2)
        with exact(matrix):
            gradient = to_single(matrix) @ inner.to(gram.dtype)
        return gradient.to(matrix.dtype), None, None, None, None, None


def residual(matrix: Tensor, scale: float | Tensor = 1.0) -> Tensor:
    """Return AᵀA − I of A = matrix/scale, shape (d, d)."""
    with exact(matrix):
        rows = to_single(matrix)
        gram = rows.T @ rows / scale**2
    gram.diagonal().sub_(1.0)
    return gram


def improved(gram: Tensor, x: Tensor, iterations: int) -> Tensor:
    """Get x after power iteration with E², which also converges if ±σ are both eigenvalues of E."""
    with exact(gram):
        for _ in range(iterations):
            y = gram @ (gram @ x)
            length = torch.linalg.vector_norm(y)
            x = torch.where(length > 0.0, y / length, x)
    return x


@torch.no_grad()
def retract(matrix: Tensor, scale: float | Tensor = 1.0) -> None:
    """Replace the matrix by Q·scale, with the orthonormal columns Q of its QR decomposition.

    Q comes from Cholesky decompositions of the Gram matrix, which cost a fraction of a Householder
    QR for thousands of rows. A second round restores the digits that the first loses with the
    square of the condition number (Yamamoto et al. 2015). If one fails, Q comes from QR itself.
    """
    with exact(matrix):
        Q = to_single(matrix)
        for _ in range(2):
            lower, failed = torch.linalg.cholesky_ex(Q.T @ Q)
            if bool(failed):
                Q, R = torch.linalg.qr(Q)
                Q = Q * torch.where(R.diagonal() < 0.0, -1.0, 1.0)
                break
            Q = torch.linalg.solve_triangular(lower.T, Q, upper=True, left=False)
    matrix.copy_(Q * scale)


#: Steps of SGD between two retractions.
RETRACT_EVERY = 20

#: Deviations of all methods with these constraints.
DEVIATIONS = (
    *Factorization.DEVIATIONS,
    "spectral norms of U and V are those along a vector that power iteration follows from step to "
    "step",
    "under SGD, U and V are retracted by QR every 20 steps in place of their penalties",
    "no weight decay on U, Σ and V",
)


class OrthogonalFactors(Factorization):
    """λ1‖UᵀU − I‖_F² + λ2‖VᵀV − I‖_F² + λ3‖UᵀU − I‖₂² + λ4‖VᵀV − I‖₂², or retractions.

    Parameters
    ----------
    embedding : FactoredEmbedding
        The layer that is used as input embedding, output layer or both.
    frobenius, spectral
        See `embgeo.training.components.Orthogonal`.
    sgd : bool
        Whether the optimizer is SGD. If so, U and V are replaced by the Q of their QR decomposition
        every `RETRACT_EVERY` steps, and nothing is added to the loss: at the learning rates of the
        papers (30), the penalties diverge unless λ < 0.25/lr.
    """

    def __init__(self, embedding: FactoredEmbedding, *, sgd: bool = False, **settings: Any) -> None:
        super().__init__(embedding)
        self.settings = take(self, settings)
        self.sgd = sgd
        self.steps = 0
        d = embedding.embedding_dim
        self.of_left, self.of_right = (
            Orthogonality(d, *weights)
            for weights in zip(self.settings.frobenius, self.settings.spectral, strict=True)
        )

    def acts_on(self) -> list[Tensor]:
        return self.factors()

    def penalty(self, step: Step) -> Tensor:  # noqa: ARG002
        e = self.embedding
        if self.sgd:
            # A product with a parameter, so that a loss without other terms has a graph.
            return 0.0 * e.sigma.sum()
        found: Tensor = self.of_left(e.left, e.scale) + self.of_right(e.right)
        return found

    @torch.no_grad()
    def after_step(self, lr: float | None = None) -> None:  # noqa: ARG002
        """Make U and V orthonormal at intervals under SGD."""
        self.steps += 1
        if self.sgd and self.steps % RETRACT_EVERY == 0:
            e = self.embedding
            retract(e.left, e.scale)
            retract(e.right)

    def get_extra_state(self) -> dict[str, int]:
        """Number of steps so far."""
        return {"steps": self.steps}

    def set_extra_state(self, state: dict[str, int]) -> None:
        self.steps = state["steps"]


def learning_rate(lr: float | None) -> float:
    """Return the learning rate of a proximal step; `BadOption` if it is not given."""
    if lr is None:
        raise BadOption("a proximal step needs the learning rate", way_out="call after_step(lr)")
    return lr
