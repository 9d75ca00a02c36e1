"""AWD-LSTM, the regularized LSTM of most papers on degenerate embeddings."""

from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional as F

from embgeo.training.checks import nonnegative, share
from embgeo.training.methods.weights import to_single
from embgeo.training.models.language_model import Output
from embgeo.training.models.recurrent import LstmLayer, RecurrentModel


class AwdLstm(RecurrentModel):
    """LSTM layers with dropout of recurrent weights, variational dropouts, and AR and TAR.

    The defaults are those published for WikiText-2; for Penn Treebank, `input_dropout` is 0.4 and
    `hidden_dropout` 0.25. Further settings are those of `RecurrentModel`.

    Parameters
    ----------
    weight_dropout : float
        Dropout of single recurrent weights.
    alpha : float
        Weight of the mean square of the last layer's states after dropout (AR).
    beta : float
        Weight of the mean square of their change from token to token before dropout (TAR).

    References
    ----------
    Merity, Keskar and Socher, "Regularizing and optimizing LSTM language models", ICLR 2018.
    """

    NAME: ClassVar[str] = "awd-lstm"
    SOURCE: ClassVar[str] = "Merity, Keskar and Socher 2018"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the last layer of untied models is as wide as the embedding, too, so that tied and untied "
        "models differ in nothing else",
    )

    def __init__(
        self,
        n_tokens: int,
        *,
        weight_dropout: float = 0.5,
        alpha: float = 2.0,
        beta: float = 1.0,
        **others: Any,
    ) -> None:
        super().__init__(n_tokens, **others)
        self.weight_dropout = share("weight_dropout", weight_dropout)
        self.alpha = nonnegative("alpha", alpha)
        self.beta = nonnegative("beta", beta)

    def drop_weights(self, layer: LstmLayer, batch: int, dropout: float) -> tuple[Tensor, Tensor]:
        """Drop single weights, and features of each stream."""
        raw = layer.weight_hh_l0
        recurrent = F.dropout(raw, self.weight_dropout) if self.weight_dropout else raw
        return recurrent, F.dropout(raw.new_ones(1, batch, layer.hidden), dropout)

    def activation_penalty(self, output: Output) -> Tensor:
        """Return α·mean(h²) + β·mean((h_t − h_{t−1})²)."""
        hidden, raw = to_single(output.hidden), to_single(output.raw)
        found = self.alpha * hidden.square().mean()
        if self.beta and len(raw) > 1:
            found = found + self.beta * (raw[1:] - raw[:-1]).square().mean()
        return found
