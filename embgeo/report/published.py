"""Published values that the report may put beside its own, because the convention is the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PublishedNumber:
    """One line of a paper's table.

    Attributes
    ----------
    data, model, training : str
    i1, i2 : float
        One sign for each eigenvector, raw scale: comparable with ``isotropy.i1_mean_sign`` and
        ``isotropy.i2_mean_sign`` only.
    sample : str
        The rows that the paper took.
    """

    data: str
    model: str
    training: str
    i1: float
    i2: float
    sample: str


def pair_published(
    table: tuple[PublishedNumber, ...],
) -> list[tuple[PublishedNumber, PublishedNumber]]:
    """Lines of one model side by side: plain training, then the paper's method."""
    return list(zip(table[::2], table[1::2], strict=True))


SOURCE = (
    "Wang et al. 2020, “Improving Neural Language Generation with Spectrum Control” (ICLR), Table 3"
)

_SAMPLED = "40,000 words drawn at random, mean of 10 runs"
_ALL = "all tokens"

WANG_TABLE_3: tuple[PublishedNumber, ...] = (
    PublishedNumber(
        "WikiText-103", "Transformer-XL standard", "maximum likelihood", 0.24, 0.037, _SAMPLED
    ),
    PublishedNumber(
        "WikiText-103", "Transformer-XL standard", "spectrum control", 0.63, 0.022, _SAMPLED
    ),
    PublishedNumber("IWSLT14 De–En", "Transformer base", "maximum likelihood", 0.31, 0.031, _ALL),
    PublishedNumber("IWSLT14 De–En", "Transformer base", "spectrum control", 0.88, 0.005, _ALL),
)
