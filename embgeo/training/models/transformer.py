"""A Transformer language model with causal attention."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.core.errors import BadOption
from embgeo.training.checks import choice, flag, require, share, whole
from embgeo.training.models import blocks
from embgeo.training.models.language_model import LanguageModel, Output

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"gelu": F.gelu, "relu": F.relu}


class Transformer(LanguageModel):
    """Blocks of causal attention and a feed-forward layer, each with a LayerNorm.

    A window does not see the windows before it.

    Parameters
    ----------
    d : int
        Columns of the embedding, and features of all blocks.
    layers : int
        Blocks of attention and feed-forward layer.
    heads : int
        A divisor of d.
    feedforward : int, optional
        Units of the feed-forward layers; 4·d by default.
    dropout : float
        Dropout of embedded tokens, attention weights, and outputs of attention and feed-forward
        layers.
    norm : {"before", "after"}
        Whether to normalize before each layer, or after each addition as Vaswani et al. do.
    positions : {"learned", "sinusoidal"}
        "sinusoidal" as Vaswani et al.: rows of a norm of about 1, multiplied by √d.
    context : int
        The number of learned positions, which limits windows; sinusoidal ones have no limit.
    activation : {"gelu", "relu"}
        Of the feed-forward layers: GELU as Radford et al., or ReLU as Vaswani et al.
    n_tokens, tied, bias
        See :class:`LanguageModel`.

    References
    ----------
    Vaswani et al., "Attention is all you need", NeurIPS 2017; Radford et al., "Language models are
    unsupervised multitask learners", 2019.
    """

    NAME: ClassVar[str] = "transformer"
    SOURCE: ClassVar[str] = (
        "Vaswani et al. 2017, with the start and, by default, the order, positions and activation "
        "of Radford et al. 2019"
    )
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "a window does not see the windows before it, so that its first tokens have little context",
    )
    CARRIES_STATE: ClassVar[bool] = False

    def __init__(
        self,
        n_tokens: int,
        *,
        d: int = 256,
        layers: int = 4,
        heads: int = 4,
        feedforward: int | None = None,
        dropout: float = 0.1,
        norm: str = "before",
        positions: str = "learned",
        context: int = 512,
        activation: str = "gelu",
        tied: bool = True,
        bias: bool = False,
    ) -> None:
        super().__init__(n_tokens, d)
        self.dropout = share("dropout", dropout)
        self.context = whole("context", context)
        waves = choice("positions", positions, ("learned", "sinusoidal")) == "sinusoidal"
        before = choice("norm", norm, ("before", "after")) == "before"
        blocks.check_heads(d, heads)
        require("d", d, not (waves and d % 2), "give an even number for sinusoidal positions")
        self.scale = d**0.5 if waves else 1.0
        spread = d**-0.5 if waves else blocks.SPREAD
        inner = 4 * d if feedforward is None else whole("feedforward", feedforward)
        activate = ACTIVATIONS[choice("activation", activation, ACTIVATIONS)]
        self.make_embedding(blocks.normal(n_tokens, d, spread))
        self.positions = None if waves else nn.Parameter(blocks.normal(context, d))
        self.longest = None if waves else context
        # All blocks add to the same states: the more blocks, the smaller their initial weights.
        added = blocks.SPREAD * (2 * whole("layers", layers)) ** -0.5
        self.blocks = nn.ModuleList(
            blocks.Block(
                blocks.CausalAttention(d, heads, heads, dropout, spread=added, bias=True),
                blocks.FeedForward(blocks.pair(d, inner, added), activate),
                dropout,
                norm=partial(nn.LayerNorm, d),
                before=before,
            )
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(d) if before else nn.Identity()
        rows = None if flag("tied", tied) else blocks.normal(n_tokens, d, spread)
        self.make_decoder(rows, bias=bias)

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
