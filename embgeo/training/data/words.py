"""Words as numbers, in the order in which they are first seen."""

from __future__ import annotations

from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.training.data.vocabulary import END

#: Bounds what a mistaken or hostile text takes in memory.
MOST_TYPES = 10_000_000


class Words(dict[str, int]):
    """Words to numbers; a new word gets the next one.

    Parameters
    ----------
    path : Path
        Of the text, named in errors.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number

    def end(self) -> int:
        """Number of the word that ends a sentence."""
        return self[END]

    def encode(self, lines: list[str]) -> list[list[int]]:
        """Numbers of the words of each line; white space of any kind separates them.

        Raises
        ------
        UnreadableFile
            More different words than any language has.
        """
        if len(self) > MOST_TYPES:
            raise UnreadableFile(
                f"the text has more than {MOST_TYPES:,} different words",
                where=self.path,
                way_out="check that it is a text, or give a tokenizer.json",
            )
        return [list(map(self.__getitem__, line.split())) for line in lines]
