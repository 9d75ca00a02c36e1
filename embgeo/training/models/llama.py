"""The Transformer of LLaMA: RMSNorm, rotary positions, SwiGLU, no biases."""

from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from embgeo.training.checks import flag, require, share, whole
from embgeo.training.models import transformer
from embgeo.training.models.language_model import LanguageModel, Output

#: Added to the mean square under the root of a norm.
EPS = 1e-5
#: The default width of feed-forward layers is a multiple of this.
MULTIPLE = 32


class Llama(LanguageModel):
    """Blocks of causal attention and a gated feed-forward layer, each after an RMSNorm.

    A window does not see the windows before it.

    Parameters
    ----------
    d : int
        Columns of the embedding, and features of all blocks.
    layers : int
        Blocks of attention and feed-forward layer.
    heads : int
        Heads of queries, each with an even number of features.
    kv_heads : int, optional
        Heads of keys and values, a divisor of `heads`; by default `heads`.
    feedforward : int, optional
        Units of the feed-forward layers; by default 8·d/3, rounded up to a multiple of 32.
    dropout : float
        Dropout of embedded tokens, and of outputs of attention and feed-forward layers.
    n_tokens, embedding_dropout, tied, bias
        See :class:`LanguageModel`.

    References
    ----------
    Touvron et al., "LLaMA: open and efficient foundation language models", 2023, §2.2, after Zhang
    and Sennrich 2019 (RMSNorm), Shazeer 2020 (SwiGLU) and Su et al. 2021 (rotary positions);
    Ainslie et al., "GQA: training generalized multi-query transformer models from multi-head
    checkpoints", EMNLP 2023 (`kv_heads`).
    """

    NAME: ClassVar[str] = "llama"
    SOURCE: ClassVar[str] = "Touvron et al. 2023"
    DEVIATIONS: ClassVar[tuple[str, ...]] = (
        "initial weights are normal with a standard deviation of 0.02, divided in the last layers "
        "of blocks by the root of the number of such layers, as in Radford et al. 2019; the paper "
        "does not describe the initialization",
    )
    CARRIES_STATE: ClassVar[bool] = False

    def __init__(
        self,
        n_tokens: int,
        *,
        d: int = 256,
        layers: int = 4,
        heads: int = 4,
        kv_heads: int | None = None,
        feedforward: int | None = None,
        dropout: float = 0.0,
        embedding_dropout: float = 0.0,
        tied: bool = True,
        bias: bool = False,
    ) -> None:
        super().__init__(n_tokens, d, embedding_dropout=embedding_dropout)
        self.head_width = transformer.check_heads(d, heads, rotary=True)
        keys = heads if kv_heads is None else whole("kv_heads", kv_heads)
        require("kv_heads", keys, heads % keys == 0, f"give a number that divides {heads}")
        usual = -(-8 * d // (3 * MULTIPLE)) * MULTIPLE
        inner = usual if feedforward is None else whole("feedforward", feedforward)
        self.dropout = share("dropout", dropout)
        self.make_embedding(transformer.normal(n_tokens, d))
        self.blocks = nn.ModuleList(
            LlamaBlock(d, heads, keys, inner, spread=transformer.SPREAD * (2 * layers) ** -0.5)
            for _ in range(whole("layers", layers))
        )
        self.norm = RmsNorm(d, eps=EPS)
        self.make_decoder(
            None if flag("tied", tied) else transformer.normal(n_tokens, d), bias=bias
        )

    def layers_of(self, rows: Tensor, state: object) -> Output:  # noqa: ARG002
        # Attention is fastest with the batch first.
        states = F.dropout(rows.transpose(0, 1), self.dropout, self.training)
        turns = transformer.rotations(len(rows), self.head_width, rows.device)
        for block in self.blocks:
            assert isinstance(block, LlamaBlock)
            states = states + F.dropout(block.attend(states, turns), self.dropout, self.training)
            states = states + F.dropout(block.feed(states), self.dropout, self.training)
        found = self.norm(states).transpose(0, 1).contiguous()
        return Output(found, found, None)


class RmsNorm(nn.RMSNorm):
    """RMSNorm in the precision of its gains, also under autocast."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.to(self.weight.dtype))


class LlamaBlock(nn.Module):
    """Attention and the gated layer, which are added to states of shape (B, T, d)."""

    def __init__(self, d: int, heads: int, kv_heads: int, inner: int, *, spread: float) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.width = heads, kv_heads, d // heads
        self.norm_attention = RmsNorm(d, eps=EPS)
        self.attention_in = transformer.linear(
            d, (heads + 2 * kv_heads) * self.width, transformer.SPREAD, bias=False
        )
        self.attention_out = transformer.linear(d, d, spread, bias=False)
        self.norm_inner = RmsNorm(d, eps=EPS)
        self.inner_in = transformer.linear(d, 2 * inner, transformer.SPREAD, bias=False)
        self.inner_out = transformer.linear(inner, d, spread, bias=False)

    def attend(self, x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        """Compute causal attention in which heads of queries share heads of keys and values."""
        split = self.attention_in(self.norm_attention(x)).unflatten(-1, (-1, self.width))
        sizes = (self.heads, self.kv_heads, self.kv_heads)
        query, key, value = split.transpose(1, 2).split(sizes, dim=1)
        query, key = transformer.rotated(query, *turns), transformer.rotated(key, *turns)
        if self.kv_heads < self.heads:
            served = self.heads // self.kv_heads
            key, value = (each.repeat_interleave(served, dim=1) for each in (key, value))
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        found: Tensor = self.attention_out(seen.transpose(1, 2).flatten(2))
        return found

    def feed(self, x: Tensor) -> Tensor:
        """Compute SwiGLU: W3·(silu(W1·x) ⊙ W2·x)."""
        gate, up = self.inner_in(self.norm_inner(x)).chunk(2, dim=-1)
        found: Tensor = self.inner_out(F.silu(gate) * up)
        return found
