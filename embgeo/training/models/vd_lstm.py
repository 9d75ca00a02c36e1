"""VD-LSTM: the LSTM with variational dropout of Inan et al."""

from typing import ClassVar

from torch import Tensor
from torch.nn import functional as F

from embgeo.training.checks import choice, nonnegative, share
from embgeo.training.models.recurrent import LstmLayer, RecurrentModel

#: Units, dropout (for Penn Treebank) and bound of initial weights of each size.
SIZES = {"small": (200, 0.3, 0.1), "medium": (650, 0.5, 0.05), "large": (1500, 0.65, 0.04)}


class VdLstm(RecurrentModel):
    """Two LSTM layers with dropout masks that are constant in time.

    A mask drops the same units on the way to the next layer and to the next time.

    Parameters
    ----------
    size : {"small", "medium", "large"}
        Defaults of the other settings: 200, 650 or 1,500 units and columns, and the dropout and
        initialization of this size.
    d : int, optional
        Columns of the embedding, and units of the last layer.
    hidden : int, optional
        Units of the other layers.
    layers : int
        Recurrent layers.
    dropout : float, optional
        Dropout of embedded tokens and of the states of each layer; 0.3, 0.5 or 0.65 by size. For
        WikiText-2 the paper has 0.2 (small) and 0.4 (medium).
    bound : float, optional
        All weights are uniform in ±bound; 0.1, 0.05 or 0.04 by size.
    n_tokens, tied, bias
        See :class:`LanguageModel`.

    References
    ----------
    Inan, Khosravi and Socher, "Tying word vectors and word classifiers: a loss framework for
    language modeling", ICLR 2017, §6 and appendix A; Gal and Ghahramani, "A theoretically grounded
    application of dropout in recurrent neural networks", NeurIPS 2016.
    """

    NAME: ClassVar[str] = "vd-lstm"
    SOURCE: ClassVar[str] = "Inan et al. 2017, appendix A, after Gal and Ghahramani 2016"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the streams of a batch share the masks of hidden states, which then act on the recurrent "
        "weights and allow the fused kernel; they do not share the masks of embedded tokens",
        "the published probabilities (0.7, 0.5, 0.35; WikiText-2 0.8, 0.6) are read as those of "
        "keeping a unit: only then do larger networks and smaller corpora have more dropout",
        "the initialization is not published: weights are uniform in ±0.1, 0.05 and 0.04 by size, "
        "as in Zaremba et al. 2014",
    )

    def __init__(
        self,
        n_tokens: int,
        *,
        size: str = "small",
        d: int | None = None,
        hidden: int | None = None,
        layers: int = 2,
        dropout: float | None = None,
        bound: float | None = None,
        tied: bool = True,
        bias: bool = True,
    ) -> None:
        units, usual_dropout, usual_bound = SIZES[choice("size", size, SIZES)]
        p = share("dropout", usual_dropout if dropout is None else dropout)
        most = nonnegative("bound", usual_bound if bound is None else bound)
        super().__init__(
            n_tokens,
            row_bound=most,
            lstm_bound=most,
            d=units if d is None else d,
            hidden=units if hidden is None else hidden,
            layers=layers,
            embedding_dropout=0.0,
            input_dropout=p,
            hidden_dropout=p,
            output_dropout=p,
            tied=tied,
            bias=bias,
        )

    def drop_weights(self, layer: LstmLayer, batch: int, dropout: float) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Drop the same units of recurrent weights and states."""
        units = F.dropout(layer.weight_hh_l0.new_ones(layer.hidden), dropout)
        return layer.weight_hh_l0 * units, units
