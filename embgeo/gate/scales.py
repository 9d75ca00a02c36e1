"""Values that are words with an order, and how they stand among numbers."""

from __future__ import annotations

from embgeo.core.values import format_number

#: The name of the verdict in a rule.
VERDICT = "verdict"
#: By name of a value: its words, the first one best; a word counts as its place.
SCALES: dict[str, tuple[str, ...]] = {VERDICT: ("healthy", "mild", "degenerate")}


def show(amount: float, scale: tuple[str, ...] = (), digits: int = 4) -> str:
    """A number, or the word that it stands for.

    >>> show(0.25), show(1.0, SCALES[VERDICT])
    ('0.25', 'mild')
    """
    if scale and amount in range(len(scale)):
        return scale[int(amount)]
    return format_number(amount, digits)
