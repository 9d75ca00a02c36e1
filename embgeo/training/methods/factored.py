"""An embedding as the factors of its singular value decomposition, and the control with them."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.core.errors import BadOption
from embgeo.training import components
from embgeo.training.limits import Settings
from embgeo.training.methods import weights
from embgeo.training.methods.regularizer import Regularizer

#: The name of the plain matrix in state dicts.
PLAIN = "weight"


class FactoredEmbedding(nn.Module):
    """W = U·Σ·Vᵀ as an embedding layer: rows (U[i]·Σ)Vᵀ, logits ((hV)·Σ)Uᵀ.

    The parameters are left = c·U, sigma = Σ/c and right = V, with c the mean singular value at the
    start. A step of `left` then moves W as far as the same step of a plain W, under Adam, under SGD
    and under a clipped gradient norm. Without c, the entries of U are 1/√N (0.005 for 33,000 rows),
    and a step of Adam at 1e-3 is a fifth of that.

    The state dict also holds W as ``weight``, for readers of a plain embedding; loading ignores it.

    Σ holds the singular values of W, in the order of the start, only as long as U and V are
    orthonormal.

    Parameters
    ----------
    weight : Tensor
        W, copied; shape (N, d) with N ≥ d.
    padding_idx : int, optional
        The row whose look-up is zero and has no gradient, as in `torch.nn.Embedding`.
    """

    def __init__(self, weight: Tensor, *, padding_idx: int | None = None) -> None:
        super().__init__()
        n, d = weight.shape
        W = weights.to_single(weight.detach())
        if n < d:
            raise BadOption(f"{n} rows of {d} numbers", way_out="give a matrix with N ≥ d")
        if not bool(torch.isfinite(W).all()) or not bool(W.any()):
            raise BadOption("W is zero or has non-finite numbers", way_out="initialize it first")
        U, S, Vh = torch.linalg.svd(W, full_matrices=False)
        c = S.mean().to(torch.float32)
        self.num_embeddings, self.embedding_dim = n, d
        self.padding_idx = None if padding_idx is None else padding_idx % n
        # LAPACK gives columns in sequence; look-ups and products are faster with rows.
        self.left = nn.Parameter((U * c).contiguous().to(weight.dtype))
        self.sigma = nn.Parameter((S / c).to(weight.dtype))
        self.right = nn.Parameter(Vh.T.contiguous().to(weight.dtype))
        self.scale: Tensor
        self.register_buffer("scale", c)

    def forward(self, ids: Tensor) -> Tensor:
        """Return rows of W; shape (…, d) for numbers of shape (…)."""
        rows = F.linear(F.embedding(ids, self.left) * self.sigma, self.right)
        if self.padding_idx is None:
            return rows
        return rows.masked_fill((ids == self.padding_idx).unsqueeze(-1), 0.0)

    def logits(self, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return h·Wᵀ + bias; shape (…, N) for states of shape (…, d)."""
        return F.linear((hidden @ self.right) * self.sigma, self.left, bias)

    @property
    def weight(self) -> Tensor:
        """W, multiplied out at each access; training does not use it."""
        return F.linear(self.left * self.sigma, self.right)

    @torch.no_grad()
    def export(self) -> Tensor:
        """Return W as a plain matrix without a graph, to save or to analyze."""
        return self.weight.detach().clone()

    def singular_values(self) -> Tensor:
        """Return Σ = c·sigma, with its graph."""
        return self.sigma * self.scale.to(self.sigma.dtype)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}{PLAIN}"] = self.export()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        state_dict.pop(f"{prefix}{PLAIN}", None)
        super()._load_from_state_dict(state_dict, prefix, *others)


class FactoredHead(nn.Module):
    """An output layer that shares the weight of a `FactoredEmbedding`; `bias` is copied.

    If it is `tied`, the embedding is the model's input layer, too, under which a checkpoint has its
    parameters. If not, it is a submodule of this layer, whose state dict has W as its own
    ``weight``.
    """

    def __init__(
        self, embedding: FactoredEmbedding, bias: Tensor | None = None, *, tied: bool = True
    ) -> None:
        super().__init__()
        if not tied:
            self.embedding = embedding
            self.register_state_dict_post_hook(name_plain_weight)  # type: ignore[no-untyped-call]
        # In a tuple, so that the module does not register it as a submodule.
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


def factorize(model: nn.Module) -> FactoredEmbedding:
    """Replace the output layer of a model, and the input embedding if it is tied, by factors.

    The model has `get_input_embeddings`, `get_output_embeddings` and the corresponding setters.
    Returns the new layer, or the present one if the model has factors already.
    """
    before, output = weights.find_layer(model, "input"), weights.find_layer(model, "output")
    if isinstance(output, FactoredHead):
        return output.factored
    tied = before.weight is output.weight
    embedding = FactoredEmbedding(
        weights.read_weight(output), padding_idx=getattr(before, "padding_idx", None)
    )
    bias = getattr(output, "bias", None)
    if tied:
        set_layer(model, "input", embedding)
    set_layer(model, "output", FactoredHead(embedding, bias, tied=tied))
    return embedding


def make_plain(model: nn.Module) -> None:
    """Undo `factorize`: plain layers with the matrix multiplied out, tied as they were.

    Call it before the model is saved for good: a state dict with factors also holds the matrix,
    but is twice as large.
    """
    output = weights.find_layer(model, "output")
    if not isinstance(output, FactoredHead):
        return
    factored = output.factored
    weight = nn.Parameter(factored.export())
    if weights.find_layer(model, "input") is factored:
        set_layer(model, "input", weights.make_embedding(weight, factored.padding_idx))
    set_layer(model, "output", weights.make_linear(weight, output.bias))


def set_layer(model: nn.Module, role: str, layer: nn.Module) -> None:
    """Replace the input embedding or the output layer; `BadOption` if the model has no setter."""
    setter = f"set_{role}_embeddings"
    change: Any = getattr(model, setter, None)
    if change is None:
        raise BadOption(
            f"{type(model).__name__} has no {setter}()", way_out="give it one, or replace by hand"
        )
    change(layer)


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
    SETTINGS: ClassVar[type[Settings]] = components.Factorization
    SOURCE: ClassVar[str] = "the factors of Wang et al. 2020, §4, without its penalties: a control"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "U and Σ are kept as c·U and Σ/c, with c the mean singular value at the start, so that a "
        "step moves W as far as it would move a plain W",
    )

    def __init__(self, embedding: FactoredEmbedding) -> None:
        super().__init__()
        # In a tuple, so that the module does not register it as a submodule.
        self._embedding = (embedding,)

    @classmethod
    def find_layers(cls, model: nn.Module) -> tuple[nn.Module, ...]:
        """Replace the output layer, and the input embedding if it is tied."""
        return (factorize(model),)

    @property
    def embedding(self) -> FactoredEmbedding:
        """The layer of the model, to whose device the regularizer moves."""
        (layer,) = self._embedding
        weights.follow(self, layer.sigma)
        return layer

    def factors(self) -> list[Tensor]:
        """Return c·U, Σ/c and V."""
        e = self.embedding
        return [e.left, e.sigma, e.right]

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [{"params": self.factors(), "weight_decay": 0.0}]
