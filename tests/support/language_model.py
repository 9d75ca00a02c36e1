"""A small language model for the tests of training, with what a trainer asks of a model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from embgeo.training.methods import Frage
from embgeo.training.methods.frage import class_loss

N, D = 60, 8


class Model(nn.Module):
    """An embedding, a recurrent layer and an output layer, tied or not."""

    def __init__(self, n: int = N, d: int = D, *, tied: bool = True, bias: bool = False) -> None:
        super().__init__()
        self.embed = nn.Embedding(n, d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.head = nn.Linear(d, n, bias=bias)
        if tied:
            self.head.weight = self.embed.weight

    def get_input_embeddings(self) -> nn.Module:
        return self.embed

    def get_output_embeddings(self) -> nn.Module:
        return self.head

    def set_input_embeddings(self, layer: nn.Module) -> None:
        self.embed = layer  # type: ignore[assignment]

    def set_output_embeddings(self, layer: nn.Module) -> None:
        self.head = layer  # type: ignore[assignment]

    def hidden(self, ids: Tensor) -> Tensor:
        states: Tensor = self.rnn(self.embed(ids))[0]
        return states


def make_model(seed: int = 0, **options: bool) -> Model:
    torch.manual_seed(seed)
    return Model(**options)  # type: ignore[arg-type]


def counts(n: int = N) -> Tensor:
    """As Zipf has it, most frequent first."""
    return (1000.0 / torch.arange(1, n + 1)).round()


def batches(number: int, n: int = N, seed: int = 0) -> list[tuple[Tensor, Tensor]]:
    """Inputs and targets, drawn by `counts`."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.multinomial(counts(n), number * 4 * 9, True, generator=generator)
    return [(ids[:, :-1], ids[:, 1:]) for ids in drawn.view(number, 4, 9)]


def discriminator_loss(reg: Frage) -> float:
    """L_D over all rows."""
    scores = reg.discriminator(reg.weight().detach())
    return float(class_loss(scores, reg.sign, reg.share).detach())
