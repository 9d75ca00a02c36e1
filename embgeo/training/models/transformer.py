"""A Transformer language model with causal attention."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.core.errors import BadOption
from embgeo.training import kinds
from embgeo.training.models import blocks
from embgeo.training.models.language_model import LanguageModel, Output
from embgeo.training.registry import take

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "relu": F.relu}


class Transformer(LanguageModel):
    """Blocks of causal attention and a feed-forward layer, each with a LayerNorm.

    A window does not see the windows before it.

    Settings are those of `embgeo.training.kinds.Transformer`.

    References
    ----------
    Vaswani et al., "Attention is all you need", NeurIPS 2017; Radford et al., "Language models are
    unsupervised multitask learners", 2019.
    """

    NAME: ClassVar[str] = "transformer"
    SETTINGS = kinds.Transformer
    SOURCE: ClassVar[str] = (
        "Vaswani et al. 2017, with the start and, by default, the order, positions and activation "
        "of Radford et al. 2019"
    )
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "a window does not see the windows before it, so that its first tokens have little context",
    )
    CARRIES_STATE: ClassVar[bool] = False

    def __init__(self, n_tokens: int, **settings: Any) -> None:
        own: kinds.Transformer = take(self, settings)
        d, heads = own.d, own.heads
        super().__init__(n_tokens, d)
        self.dropout, self.context = own.dropout, own.context
        waves, before = own.positions == "sinusoidal", own.norm == "before"
        self.scale = d**0.5 if waves else 1.0
        spread = d**-0.5 if waves else blocks.SPREAD
        inner = own.feedforward or 4 * d
        self.make_embedding(blocks.normal(n_tokens, d, spread))
        self.positions = None if waves else nn.Parameter(blocks.normal(own.context, d))
        self.longest = None if waves else own.context
        # All blocks add to the same states: the more blocks, the smaller their initial weights.
        added = blocks.SPREAD * (2 * own.layers) ** -0.5
        self.blocks = nn.ModuleList(
            blocks.Block(
                blocks.CausalAttention(d, heads, heads, own.dropout, spread=added, bias=True),
                blocks.FeedForward(blocks.pair(d, inner, added), ACTIVATIONS[own.activation]),
                own.dropout,
                norm=partial(nn.LayerNorm, d),
                before=before,
            )
            for _ in range(own.layers)
        )
        self.norm = nn.LayerNorm(d) if before else nn.Identity()
        rows = None if own.tied else blocks.normal(n_tokens, d, spread)
        self.make_decoder(rows, bias=own.bias)

    def embedding_parameters(self) -> list[Tensor]:
        learned = [] if self.positions is None else [self.positions]
        return [*super().embedding_parameters(), *learned]

    def layers_of(self, rows: Tensor, state: None) -> Output:  # noqa: ARG002
        states = rows.transpose(0, 1) * self.scale
        length = states.shape[1]
        if self.positions is None:
            waves = blocks.encode_places(length, self.d, 0, states.device)
            states = states + waves.to(states.dtype)
        else:
            if length > self.context:
                raise BadOption(
                    f"a window of {length} tokens, and {self.context} learned positions",
                    way_out="make context larger, or windows shorter",
                )
            states = states + self.positions[:length]
        states = F.dropout(states, self.dropout, self.training)
        for block in self.blocks:
            states = block(states)
        found = self.norm(states).transpose(0, 1).contiguous()
        return Output(found, found, None)
