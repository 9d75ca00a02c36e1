"""VD-LSTM: the LSTM with variational dropout of Inan et al."""

from typing import Any, ClassVar

from torch import Tensor
from torch.nn import functional as F

from embgeo.training import components
from embgeo.training.models.recurrent import LstmLayer, RecurrentModel
from embgeo.training.registry import take

#: Units, dropout (for Penn Treebank) and bound of initial weights of each size.
SIZES = {"small": (200, 0.3, 0.1), "medium": (650, 0.5, 0.05), "large": (1500, 0.65, 0.04)}


class VdLstm(RecurrentModel):
    """Two LSTM layers with dropout masks that are constant in time.

    A mask drops the same units on the way to the next layer and to the next time.

    Settings are those of `embgeo.training.components.VdLstm`.

    References
    ----------
    Inan, Khosravi and Socher, "Tying word vectors and word classifiers: a loss framework for
    language modeling", ICLR 2017, §6 and appendix A; Gal and Ghahramani, "A theoretically grounded
    application of dropout in recurrent neural networks", NeurIPS 2016.
    """

    NAME: ClassVar[str] = "vd-lstm"
    SETTINGS = components.VdLstm
    SOURCE: ClassVar[str] = "Inan et al. 2017, appendix A, after Gal and Ghahramani 2016"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the streams of a batch share the masks of hidden states, which then act on the recurrent "
        "weights and allow the fused kernel; they do not share the masks of embedded tokens",
        "the published probabilities (0.7, 0.5, 0.35; WikiText-2 0.8, 0.6) are read as those of "
        "keeping a unit: only then do larger networks and smaller corpora have more dropout",
        "the initialization is not published: weights are uniform in ±0.1, 0.05 and 0.04 by size, "
        "as in Zaremba et al. 2014",
    )

    def __init__(self, n_tokens: int, **settings: Any) -> None:
        own: components.VdLstm = take(self, settings)
        units, usual_dropout, usual_bound = SIZES[own.size]
        p = usual_dropout if own.dropout is None else own.dropout
        most = usual_bound if own.bound is None else own.bound
        shape = components.Recurrent(
            d=own.d or units,
            hidden=own.hidden or units,
            layers=own.layers,
            embedding_dropout=0.0,
            input_dropout=p,
            hidden_dropout=p,
            output_dropout=p,
            tied=own.tied,
            bias=own.bias,
        )
        super().__init__(n_tokens, shape, row_bound=most, lstm_bound=most)

    def drop_weights(self, layer: LstmLayer, batch: int, dropout: float) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Drop the same units of recurrent weights and states."""
        units = F.dropout(layer.weight_hh_l0.new_ones(layer.hidden), dropout)
        return layer.weight_hh_l0 * units, units
