"""The LSTM encoder-decoder with attention for translation."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from embgeo.training import components
from embgeo.training.methods.weights import make_linear
from embgeo.training.models.encoder_decoder import Places, TranslationModel
from embgeo.training.models.recurrent import LstmLayer, State, draw_uniform, find_mirrored, mirror
from embgeo.training.registry import take


class LstmEncoderDecoder(TranslationModel):
    """LSTM layers that read the source in both directions, and LSTM layers that attend to it.

    The lowest layer of the decoder asks, by a feed-forward layer as in Bahdanau et al.; the answer
    is an input of all layers above it. From the third layer on, the input of a layer is added to
    its output.

    Parameters
    ----------
    n_tokens, n_source
        As of :class:`EncoderDecoder`.
    settings
        Those of `embgeo.training.components.LstmEncoderDecoder`.

    References
    ----------
    Wu et al., "Google's neural machine translation system", 2016, §3; Bahdanau, Cho and Bengio,
    "Neural machine translation by jointly learning to align and translate", ICLR 2015, A.1.2.
    """

    NAME: ClassVar[str] = "lstm-encoder-decoder"
    SETTINGS = components.LstmEncoderDecoder
    SOURCE: ClassVar[str] = "Wu et al. 2016, §3, which Gao et al. 2019, §3.1, name"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the lowest layer of the decoder asks at its present token and does not see the answer, as "
        "in public code, so that all of its tokens are computed at once",
        "the decoder starts from zero",
        "one matrix for both languages and the output by default, as in the Transformer",
    )

    def __init__(self, n_tokens: int, n_source: int | None = None, **settings: Any) -> None:
        own: components.LstmEncoderDecoder = take(self, settings)
        d, layers, self.bound = own.d, own.layers, own.bound
        super().__init__(n_tokens, d)
        self.dropout = nn.Dropout(own.dropout)
        self.make_embeddings(n_source, own.tied)
        self.backwards = LstmLayer(d, d, bound=own.bound)
        self.encoder, self.writer = (
            nn.ModuleList(LstmLayer(inputs, d, bound=own.bound) for inputs in widths)
            for widths in ([d, 2 * d] + [d] * (layers - 2), [d] + [2 * d] * (layers - 1))
        )
        self.query = make_linear(self.draw_rows(d), torch.zeros(d))
        self.key = make_linear(self.draw_rows(d))
        self.score = make_linear(self.draw_rows(1))
        self.make_output(own.tied, bias=own.bias)

    def draw_rows(self, n: int) -> Tensor:
        return draw_uniform(self.bound, n, self.d)

    def read(self, source: Tensor, seen: Tensor) -> list[Places]:
        """Return the keys of the source, and the states of the highest layer; each (B, S, d)."""
        embedding = self.embedding if self.source is None else self.source
        given = self.dropout(embedding(source).transpose(0, 1))
        places = find_mirrored(seen.sum(dim=-1).view(-1), len(given))
        back = mirror(run(self.backwards, mirror(given, places))[0], places)
        first, *rest = self.encoder
        states = torch.cat((run(first, given)[0], back), dim=-1)
        for number, layer in enumerate(rest):
            found, _ = run(layer, self.dropout(states))
            states = found + states if number else found
        values = states.transpose(0, 1)
        return [(self.key(values), values)]

    def write(
        self,
        inputs: Tensor,
        sources: list[Places],
        seen: Tensor,
        before: list[Places] | None = None,
    ) -> tuple[Tensor, list[Places]]:
        """Write states of the target, and h and c of each layer, each of shape (B, d)."""
        starts = [None] * len(self.writer) if before is None else before
        states: Tensor = self.embedding(inputs).transpose(0, 1)
        answer, kept = states[..., :0], []
        for number, (layer, start) in enumerate(zip(self.writer, starts, strict=True)):
            given = self.dropout(torch.cat((states, answer), dim=-1))
            found, after = run(layer, given, start)
            kept.append(after)
            states = found + states if number > 1 else found
            if number == 0:
                answer = self.attend(states, *sources[0], seen)
        return states.transpose(0, 1), kept

    def attend(self, states: Tensor, keys: Tensor, values: Tensor, seen: Tensor) -> Tensor:
        """Return means of the values with weights softmax(v·tanh(Q s + K x)), shape (T, B, d)."""
        queries = self.query(states.transpose(0, 1))
        scores = self.score((queries[:, :, None] + keys[:, None]).tanh()).squeeze(-1)
        weights = scores.masked_fill(~seen[:, 0], -torch.inf).softmax(dim=-1)
        answer: Tensor = weights @ values
        return answer.transpose(0, 1)


def run(layer: nn.Module, states: Tensor, before: Places | None = None) -> tuple[Tensor, Places]:
    """Run a layer over inputs of shape (T, B, ·), from h and c or from zero."""
    assert isinstance(layer, LstmLayer)
    start: State = layer.initial_state(states.shape[1])
    if before is not None:
        start = before[0][None], before[1][None]
    found, (h, c) = layer(states, start)
    return found, (h[0], c[0])
