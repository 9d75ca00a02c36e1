"""AWD-LSTM, the regularized LSTM of most papers on degenerate embeddings."""

from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional as F

from embgeo.training import components
from embgeo.training.methods.weights import to_single
from embgeo.training.models.language_model import Output
from embgeo.training.models.recurrent import LstmLayer, RecurrentModel
from embgeo.training.registry import take


class AwdLstm(RecurrentModel):
    """LSTM layers with dropout of recurrent weights, variational dropouts, and AR and TAR.

    The defaults are those published for WikiText-2; for Penn Treebank, `input_dropout` is 0.4 and
    `hidden_dropout` 0.25. Settings are those of `embgeo.training.components.AwdLstm`.

    References
    ----------
    Merity, Keskar and Socher, "Regularizing and optimizing LSTM language models", ICLR 2018.
    """

    NAME: ClassVar[str] = "awd-lstm"
    SETTINGS = components.AwdLstm
    SOURCE: ClassVar[str] = "Merity, Keskar and Socher 2018"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the last layer of untied models is as wide as the embedding, too, so that tied and untied "
        "models differ in nothing else",
    )

    def __init__(self, n_tokens: int, **settings: Any) -> None:
        own: components.AwdLstm = take(self, settings)
        super().__init__(n_tokens, own)
        self.weight_dropout, self.alpha, self.beta = own.weight_dropout, own.alpha, own.beta

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
