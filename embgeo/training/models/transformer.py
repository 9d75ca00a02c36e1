"""A Transformer language model with causal attention."""

from functools import partial
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training import components
from embgeo.training.models import blocks
from embgeo.training.models.language_model import LanguageModel, Output
from embgeo.training.registry import take


class Transformer(LanguageModel):
    """Blocks of causal attention and a feed-forward layer, each followed by a LayerNorm.

    Embedded tokens have a norm of about 1 and are multiplied by √d; sinusoidal positions are added.
    A window does not see the windows before it.

    Settings are those of `embgeo.training.components.Transformer`.

    References
    ----------
    Vaswani et al., "Attention is all you need", NeurIPS 2017; Radford et al., "Language models are
    unsupervised multitask learners", 2019, §2.3 (the start).
    """

    NAME: ClassVar[str] = "transformer"
    SETTINGS = components.Transformer
    SOURCE: ClassVar[str] = "Vaswani et al. 2017, with the start of Radford et al. 2019"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "a window does not see the windows before it, so that its first tokens have little context",
    )
    CARRIES_STATE: ClassVar[bool] = False

    def __init__(self, n_tokens: int, **settings: Any) -> None:
        own: components.Transformer = take(self, settings)
        d, heads = own.d, own.heads
        super().__init__(n_tokens, d)
        self.dropout = own.dropout
        spread = d**-0.5
        inner = own.feedforward or 4 * d
        self.make_embedding(blocks.normal(n_tokens, d, spread))
        # All blocks add to the same states: the more blocks, the smaller their initial weights.
        added = blocks.SPREAD * (2 * own.layers) ** -0.5
        self.blocks = nn.ModuleList(
            blocks.Block(
                blocks.CausalAttention(d, heads, heads, own.dropout, spread=added, bias=True),
                blocks.FeedForward(blocks.pair(d, inner, added), F.relu),
                own.dropout,
                norm=partial(nn.LayerNorm, d),
                before=False,
            )
            for _ in range(own.layers)
        )
        rows = None if own.tied else blocks.normal(n_tokens, d, spread)
        self.make_decoder(rows, bias=own.bias)

    def layers_of(self, rows: Tensor, state: None) -> Output:  # noqa: ARG002
        states = rows.transpose(0, 1) * self.d**0.5
        places = blocks.encode_places(states.shape[1], self.d, 0, states.device)
        states = F.dropout(states + places.to(states.dtype), self.dropout, self.training)
        for block in self.blocks:
            states = block(states)
        found = states.transpose(0, 1).contiguous()
        return Output(found, found, None)
