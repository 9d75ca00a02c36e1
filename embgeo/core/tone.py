"""Lines for a terminal that know whether they are good news; colors are chosen where they print."""

from __future__ import annotations

from typing import Literal, Self

Tone = Literal["good", "warning", "bad"]


class ToneLine(str):
    """A line of text with a tone, or None.

    >>> line = ToneLine.of("gate failed: 1 of 3 checks", "bad")
    >>> line.tone, line.with_text("other").tone
    ('bad', 'bad')
    """

    __slots__ = ("tone",)
    tone: Tone | None

    @classmethod
    def of(cls, text: str, tone: Tone | None) -> Self:
        """The text in that tone."""
        line = cls(text)
        line.tone = tone
        return line

    def with_text(self, text: str) -> Self:
        """Another text in the same tone."""
        return self.of(text, self.tone)
