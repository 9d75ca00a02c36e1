"""How far columns are from orthonormal, in the Frobenius and the spectral norm."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from embgeo.training.methods.regularizer import exact, to_single


class Orthogonality(nn.Module):
    """f·‖AᵀA − I‖_F² + s·‖AᵀA − I‖₂² for a matrix that is kept as a multiple of A.

    The spectral norm is that along a vector which power iteration improves in each call, and which
    is kept from call to call: a lower bound that catches up in the course of a few steps.

    Parameters
    ----------
    d : int
        Columns of A.
    frobenius, spectral : float
        The weights f and s.
    iterations : int
        Steps of power iteration in each call.
    """

    def __init__(self, d: int, frobenius: float, spectral: float, *, iterations: int = 2) -> None:
        super().__init__()
        self.frobenius = frobenius
        self.spectral = spectral
        self.iterations = iterations
        start = torch.randn(d, generator=torch.Generator().manual_seed(0))
        self.direction: Tensor
        self.register_buffer("direction", start / torch.linalg.vector_norm(start))

    def forward(self, matrix: Tensor, scale: float | Tensor = 1.0) -> Tensor:
        """The penalty of A = matrix/scale; with columns of U, scale 1."""
        if self.direction.device != matrix.device:
            self.to(matrix.device)
        gram = residual(matrix.detach(), scale)
        if self.training and self.spectral:
            self.direction = improved(gram, self.direction.to(gram.dtype), self.iterations)
        value: Tensor = OrthogonalityPenalty.apply(  # type: ignore[no-untyped-call]
            matrix, gram, self.direction.to(gram.dtype), scale, self.frobenius, self.spectral
        )
        return value


class OrthogonalityPenalty(torch.autograd.Function):
    """The value from the d×d residual E, the gradient as one product with the matrix.

    With y = Ex the spectral part is y·y, whose gradient by E is xyᵀ + yxᵀ; by A it is then
    A·(4fE + 2s(xyᵀ + yxᵀ)), one product for both parts, where autograd takes four.
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
    """AᵀA − I of A = matrix/scale, shape (d, d)."""
    with exact(matrix):
        rows = to_single(matrix)
        gram = rows.T @ rows / scale**2
    gram.diagonal().sub_(1.0)
    return gram


def improved(gram: Tensor, x: Tensor, iterations: int) -> Tensor:
    """x after power iteration with E², which converges also where ±σ are both eigenvalues of E."""
    with exact(gram):
        for _ in range(iterations):
            y = gram @ (gram @ x)
            length = torch.linalg.vector_norm(y)
            x = torch.where(length > 0.0, y / length, x)
    return x


@torch.no_grad()
def retract(matrix: Tensor, scale: float | Tensor = 1.0) -> None:
    """Put the nearby orthonormal columns Q·scale of the QR decomposition in place of the matrix.

    By Cholesky decompositions of the Gram matrix, which cost a fraction of a Householder QR for
    thousands of rows; twice, as the first loses digits with the square of the condition number
    (Yamamoto et al. 2015). Where one breaks down, by QR itself.
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
