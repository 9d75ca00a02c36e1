"""AWD-LSTM, the regularized LSTM of most papers on degenerate embeddings."""

from typing import ClassVar

from torch import Tensor
from torch.nn import functional as F

from embgeo.training.checks import nonnegative, share
from embgeo.training.methods.weights import to_single
from embgeo.training.models.language_model import Output
from embgeo.training.models.recurrent import LstmLayer, RecurrentModel


class AwdLstm(RecurrentModel):
    """LSTM layers with dropout of recurrent weights, variational dropouts, and AR and TAR.

    The defaults are those published for WikiText-2; for Penn Treebank, `input_dropout` is 0.4 and
    `hidden_dropout` 0.25.

    Parameters
    ----------
    d : int
        Columns of the embedding, and units of the last layer.
    hidden : int
        Units of the other layers.
    layers : int
        Recurrent layers.
    input_dropout, hidden_dropout, output_dropout : float
        Dropout of the input of the first layer, between layers, and of the output layer's input,
        constant throughout a window.
    weight_dropout : float
        Dropout of single recurrent weights.
    alpha : float
        Weight of the mean square of the last layer's states after dropout (AR).
    beta : float
        Weight of the mean square of their change from token to token before dropout (TAR).
    experts : int
        Softmaxes of the output; see :class:`MixtureOfSoftmaxes`.
    last : int, optional
        Units of the last layer of a mixture; d by default.
    latent_dropout : float
        Dropout of the input of the softmaxes of a mixture.
    n_tokens, embedding_dropout, tied, bias
        See :class:`LanguageModel`.

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
        d: int = 400,
        hidden: int = 1150,
        layers: int = 3,
        embedding_dropout: float = 0.1,
        input_dropout: float = 0.65,
        hidden_dropout: float = 0.2,
        output_dropout: float = 0.4,
        weight_dropout: float = 0.5,
        alpha: float = 2.0,
        beta: float = 1.0,
        experts: int = 1,
        last: int | None = None,
        latent_dropout: float = 0.0,
        tied: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__(
            n_tokens,
            d=d,
            hidden=hidden,
            layers=layers,
            embedding_dropout=embedding_dropout,
            input_dropout=input_dropout,
            hidden_dropout=hidden_dropout,
            output_dropout=output_dropout,
            tied=tied,
            bias=bias,
            experts=experts,
            last=last,
            latent_dropout=latent_dropout,
        )
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
