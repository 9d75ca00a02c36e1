"""The Transformer of LLaMA: RMSNorm, rotary positions, SwiGLU, no biases."""

from functools import partial
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training import components
from embgeo.training.models import blocks
from embgeo.training.models.language_model import LanguageModel, Output
from embgeo.training.registry import take

#: Added to the mean square under the root of a norm.
EPS = 1e-5
#: The default width of feed-forward layers is a multiple of this.
MULTIPLE = 32


class Llama(LanguageModel):
    """Blocks of causal attention and a gated feed-forward layer, each after an RMSNorm.

    A window does not see the windows before it.

    Settings are those of `embgeo.training.components.Llama`.

    References
    ----------
    Touvron et al., "LLaMA: open and efficient foundation language models", 2023, §2.2, after Zhang
    and Sennrich 2019 (RMSNorm), Shazeer 2020 (SwiGLU) and Su et al. 2021 (rotary positions);
    Ainslie et al., "GQA: training generalized multi-query transformer models from multi-head
    checkpoints", EMNLP 2023 (`kv_heads`).
    """

    NAME: ClassVar[str] = "llama"
    SETTINGS = components.Llama
    SOURCE: ClassVar[str] = "Touvron et al. 2023"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "initial weights are normal with a standard deviation of 0.02, divided in the last layers "
        "of blocks by the root of the number of such layers, as in Radford et al. 2019; the paper "
        "does not describe the initialization",
    )
    CARRIES_STATE: ClassVar[bool] = False

    def __init__(self, n_tokens: int, **settings: Any) -> None:
        own: components.Llama = take(self, settings)
        d, heads = own.d, own.heads
        super().__init__(n_tokens, d)
        self.head_width, self.dropout = d // heads, own.dropout
        usual = -(-8 * d // (3 * MULTIPLE)) * MULTIPLE
        keys, inner = own.kv_heads or heads, own.feedforward or usual
        self.make_embedding(blocks.normal(n_tokens, d))
        added = blocks.SPREAD * (2 * own.layers) ** -0.5
        norm = partial(RmsNorm, d, eps=EPS)
        self.blocks = nn.ModuleList(
            blocks.Block(
                blocks.CausalAttention(d, heads, keys, 0.0, spread=added, bias=False),
                blocks.FeedForward(blocks.pair(d, inner, added, gates=2, bias=False), swiglu),
                own.dropout,
                norm=norm,
            )
            for _ in range(own.layers)
        )
        self.norm = norm()
        self.make_decoder(None if own.tied else blocks.normal(n_tokens, d), bias=own.bias)

    def layers_of(self, rows: Tensor, state: object) -> Output:  # noqa: ARG002
        # Attention is fastest with the batch first.
        states = F.dropout(rows.transpose(0, 1), self.dropout, self.training)
        turns = blocks.rotations(len(rows), self.head_width, rows.device)
        for block in self.blocks:
            states = block(states, turns)
        found = self.norm(states).transpose(0, 1).contiguous()
        return Output(found, found, None)


class RmsNorm(nn.RMSNorm):
    """RMSNorm in the precision of its gains, also under autocast."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.to(self.weight.dtype))


def swiglu(x: Tensor) -> Tensor:
    """Return silu(x₁) ⊙ x₂ for the halves of the features."""
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up
