"""VD-RHN: the recurrent highway network with variational dropout."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from embgeo.training import components
from embgeo.training.methods.weights import exact, make_linear
from embgeo.training.models.language_model import LanguageModel, Output
from embgeo.training.models.recurrent import draw_uniform, locked_mask
from embgeo.training.registry import take

#: Initial bias of the gates: a new model mostly carries its state over.
GATE_BIAS = -2.0


class VdRhn(LanguageModel):
    """Layers with several highway steps a token, and dropout masks that are constant in time.

    The defaults are those published for Penn Treebank with tied matrices.

    Settings are those of `embgeo.training.components.VdRhn`.

    References
    ----------
    Zilly, Srivastava, Koutník and Schmidhuber, "Recurrent highway networks", ICML 2017, §4 and the
    code at github.com/jzilly/RecurrentHighwayNetworks.
    """

    NAME: ClassVar[str] = "vd-rhn"
    SETTINGS = components.VdRhn
    SOURCE: ClassVar[str] = "Zilly et al. 2017, as in Inan et al. 2017, Table 3"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "the streams of a batch share the tokens that are dropped",
        "with two matrices, depth and units are those of the tied model; Table 3 has those of 8 "
        "steps and 890 units there",
    )

    def __init__(self, n_tokens: int, **settings: Any) -> None:
        own: components.VdRhn = take(self, settings)
        super().__init__(n_tokens, own.d, embedding_dropout=own.embedding_dropout)
        self.input_dropout, self.state_dropout = own.input_dropout, own.state_dropout
        self.output_dropout = own.output_dropout
        self.make_embedding(draw_uniform(own.bound, n_tokens, own.d))
        self.highways = nn.ModuleList(
            HighwayLayer(own.d, own.depth, own.bound) for _ in range(own.layers)
        )
        rows = None if own.tied else draw_uniform(own.bound, n_tokens, own.d)
        self.make_decoder(rows, bias=own.bias)

    def initial_state(self, batch: int) -> tuple[Tensor, ...]:
        return tuple(next(self.parameters()).new_zeros(1, batch, self.d) for _ in self.highways)

    def layers_of(self, rows: Tensor, state: tuple[Tensor, ...]) -> Output:
        states, last = rows, []
        for layer, before in zip(self.highways, state, strict=True):
            mask = locked_mask(before, self.state_dropout) if self.training else None
            states, after = layer(self.drop(states, self.input_dropout), before, mask)
            last.append(after)
        return Output(self.drop(states, self.output_dropout), states, tuple(last))

    def drop(self, states: Tensor, p: float) -> Tensor:
        return states * locked_mask(states, p) if self.training else states


class HighwayLayer(nn.Module):
    """Steps s ← s + t·(h − s) with h = tanh(R s + b) and t = σ(R′ s + b′).

    The input W x is added in the first step of a token. The rows of R are above those of R′.
    """

    def __init__(self, d: int, depth: int, bound: float) -> None:
        super().__init__()
        self.inward = make_linear(draw_uniform(bound, 2 * d, d))
        self.steps = nn.ModuleList(
            make_linear(
                draw_uniform(bound, 2 * d, d),
                torch.cat((draw_uniform(bound, d), torch.full((d,), GATE_BIAS))),
            )
            for _ in range(depth)
        )

    def forward(self, states: Tensor, state: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Get all states, shape (T, B, d), and the last one, shape (1, B, d).

        It ignores autocast, as errors grow with the number of steps.

        `states`: inputs, shape (T, B, d). `state`: before the first token. `mask`: of the state on
        its way into each step.
        """
        found = []
        with exact(states):
            state = state.to(self.inward.weight.dtype)
            for given in self.inward(states.to(state.dtype)).split(1):
                for number, step in enumerate(self.steps):
                    both = step(state if mask is None else state * mask)
                    candidate, gate = (both if number else both + given).chunk(2, dim=-1)
                    state = state + gate.sigmoid() * (candidate.tanh() - state)
                found.append(state)
        return torch.cat(found), state
