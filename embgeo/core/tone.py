"""Lines for a terminal with a tone, for which the printer chooses a color."""

from __future__ import annotations

from typing import Literal, Self

Tone = Literal["good", "warning", "bad"]


class ToneLine(str):
    """A line of text with an optional tone.

    >>> line = ToneLine.of("gate failed: 1 of 3 checks", "bad")
    >>> line.tone, line.with_text("other").tone
    ('bad', 'bad')
    """

    __slots__ = ("tone",)
    tone: Tone | None

    @classmethod
    def of(cls, text: str, tone: Tone | None) -> Self:
        line = cls(text)
        line.tone = tone
        return line

    def with_text(self, text: str) -> Self:
        return self.of(text, self.tone)
