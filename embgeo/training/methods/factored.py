"""An embedding stored as its singular value decomposition, never multiplied out in training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.core.errors import BadOption
from embgeo.training.methods.weights import find_layer, to_single

#: The name of the plain matrix in state dicts.
PLAIN = "weight"


class FactoredEmbedding(nn.Module):
    """W = U·Σ·Vᵀ as an embedding layer: rows (U[i]·Σ)Vᵀ, logits ((hV)·Σ)Uᵀ.

    Kept are left = c·U, sigma = Σ/c and right = V, with c the mean singular value at the start: a
    step of `left` then moves W as far as the same step of a plain W would, under Adam, under SGD
    and under a clipped gradient norm. Without c, the entries of U are 1/√N (0.005 for 33,000 rows),
    and a step of Adam at 1e-3 is a fifth of that.

    Its state dict holds W itself next to the factors, as ``weight``, where a reader of a plain
    embedding looks for it; loading takes the factors and leaves W out.

    Parameters
    ----------
    weight : Tensor
        W, copied; shape (N, d) with N ≥ d.
    padding_idx : int, optional
        The row whose look-up is zero and has no gradient, as in `torch.nn.Embedding`.
    scale : float, optional
        c; 1 is the plain decomposition.

    Attributes
    ----------
    left : Parameter
        c·U, shape (N, d).
    sigma : Parameter
        Σ/c, shape (d,). Their order is that of the start, and is not renewed; once U or V are not
        quite orthonormal, they are not quite the singular values of W either.
    right : Parameter
        V, shape (d, d).

    Raises
    ------
    BadOption
        Fewer rows than columns, a matrix of zeros, or numbers that are not finite.
    """

    def __init__(
        self, weight: Tensor, *, padding_idx: int | None = None, scale: float | None = None
    ) -> None:
        super().__init__()
        n, d = weight.shape
        W = to_single(weight.detach())
        if n < d:
            raise BadOption(f"{n} rows of {d} numbers", way_out="give a matrix with N ≥ d")
        if not bool(torch.isfinite(W).all()) or not bool(W.any()):
            raise BadOption("W is zero or has non-finite numbers", way_out="initialize it first")
        U, S, Vh = torch.linalg.svd(W, full_matrices=False)
        c = (S.mean() if scale is None else torch.tensor(scale)).to(S.device, torch.float32)
        self.num_embeddings, self.embedding_dim = n, d
        self.padding_idx = None if padding_idx is None else padding_idx % n
        # Contiguous, where LAPACK gives columns: rows are looked up, and products want them.
        self.left = nn.Parameter((U * c).contiguous().to(weight.dtype))
        self.sigma = nn.Parameter((S / c).to(weight.dtype))
        self.right = nn.Parameter(Vh.T.contiguous().to(weight.dtype))
        self.scale: Tensor
        self.register_buffer("scale", c)

    def forward(self, ids: Tensor) -> Tensor:
        """Rows of W; shape (…, d) for numbers of shape (…)."""
        rows = F.linear(F.embedding(ids, self.left) * self.sigma, self.right)
        if self.padding_idx is None:
            return rows
        return rows.masked_fill((ids == self.padding_idx).unsqueeze(-1), 0.0)

    def logits(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        """h·Wᵀ + bias; shape (…, N) for states of shape (…, d)."""
        return F.linear((hidden @ self.right) * self.sigma, self.left, bias)

    @property
    def weight(self) -> Tensor:
        """W multiplied out: a new tensor each time, not used in training."""
        return F.linear(self.left * self.sigma, self.right)

    @torch.no_grad()
    def export(self) -> Tensor:
        """W as a plain matrix, without a graph: what to save, and what to analyze."""
        return self.weight.detach().clone()

    def singular_values(self) -> Tensor:
        """Σ = c·sigma, with its graph."""
        return self.sigma * self.scale.to(self.sigma.dtype)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}{PLAIN}"] = self.export()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        state_dict.pop(f"{prefix}{PLAIN}", None)
        super()._load_from_state_dict(state_dict, prefix, *others)

    def extra_repr(self) -> str:
        return f"{self.num_embeddings}, {self.embedding_dim}"


class FactoredHead(nn.Module):
    """An output layer that shares the weight of a `FactoredEmbedding`.

    Parameters
    ----------
    embedding : FactoredEmbedding
    bias : Tensor, optional
        Copied; shape (N,).
    tied : bool
        The embedding is the model's input layer, too: this layer refers to it, and its parameters
        appear once in a checkpoint. Otherwise it is a part of this layer, whose state dict has W
        as its own ``weight``.
    """

    def __init__(
        self, embedding: FactoredEmbedding, bias: Tensor | None = None, *, tied: bool = True
    ) -> None:
        super().__init__()
        if not tied:
            self.embedding = embedding
            self.register_state_dict_post_hook(name_plain_weight)  # type: ignore[no-untyped-call]
        # In a tuple, where the module does not see it as a part.
        self._embedding = (embedding,)
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone())

    @property
    def factored(self) -> FactoredEmbedding:
        return self._embedding[0]

    @property
    def weight(self) -> Tensor:
        """See `FactoredEmbedding.weight`."""
        return self.factored.weight

    def forward(self, hidden: Tensor) -> Tensor:
        return self.factored.logits(hidden, self.bias)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        state_dict.pop(f"{prefix}{PLAIN}", None)
        super()._load_from_state_dict(state_dict, prefix, *others)


def name_plain_weight(_head: nn.Module, state_dict: Any, prefix: str, _metadata: Any) -> None:
    """Rename W in a state dict as in a plain output layer."""
    state_dict[f"{prefix}{PLAIN}"] = state_dict.pop(f"{prefix}embedding.{PLAIN}")


def factorize(model: nn.Module, *, scale: float | None = None) -> FactoredEmbedding:
    """Replace the output layer of a model, and the input embedding if it is tied, by factors.

    Parameters
    ----------
    model : Module
        With `get_input_embeddings`, `get_output_embeddings` and the corresponding setters.
    scale : float, optional
        See `FactoredEmbedding`.

    Returns
    -------
    FactoredEmbedding
        The new layer; one that is there already is returned as it is.

    Raises
    ------
    BadOption
        The model does not let its layers be replaced, or W cannot be decomposed.
    """
    before, output = find_layer(model, "input"), find_layer(model, "output")
    if isinstance(output, FactoredHead):
        return output.factored
    tied = before.weight is output.weight
    embedding = FactoredEmbedding(
        weight_of(output), padding_idx=getattr(before, "padding_idx", None), scale=scale
    )
    bias = getattr(output, "bias", None)
    if tied:
        replace(model, "set_input_embeddings", embedding)
    replace(model, "set_output_embeddings", FactoredHead(embedding, bias, tied=tied))
    return embedding


def make_plain(model: nn.Module) -> None:
    """Undo `factorize`: plain layers with the matrix multiplied out, tied as they were.

    Call it before a model is saved for good: a state dict with factors holds the matrix, too, but
    is twice as large.
    """
    output = find_layer(model, "output")
    if not isinstance(output, FactoredHead):
        return
    factored = output.factored
    weight = nn.Parameter(factored.export())
    n, d = weight.shape
    head = nn.Linear(d, n, bias=output.bias is not None, device="meta")
    head.weight = weight
    if output.bias is not None:
        head.bias = output.bias
    if find_layer(model, "input") is factored:
        # Not by its constructor, which would set the padding row to zero in place.
        plain = nn.Embedding(n, d, padding_idx=factored.padding_idx, device="meta")
        plain.weight = weight
        replace(model, "set_input_embeddings", plain)
    replace(model, "set_output_embeddings", head)


def replace(model: nn.Module, setter: str, layer: nn.Module) -> None:
    change: Any = getattr(model, setter, None)
    if change is None:
        raise BadOption(
            f"{type(model).__name__} has no {setter}()", way_out="give it one, or replace by hand"
        )
    change(layer)


def weight_of(layer: nn.Module) -> Tensor:
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, Tensor) or weight.ndim != 2:
        raise BadOption(f"{type(layer).__name__} has no weight of two dimensions")
    return weight
