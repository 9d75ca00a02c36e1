"""Word analogies: Athens is to Greece as Baghdad is to which word?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.training.data.text import pieces

#: The set of Mikolov et al. 2013, as word2vec names it.
FILE = "questions-words.txt"
SEMANTIC, SYNTACTIC = "semantic", "syntactic"


@dataclass(frozen=True, slots=True)
class Analogy:
    """One analogy: `SEMANTIC` or `SYNTACTIC`, and four words whose last is the answer."""

    kind: str
    words: tuple[str, ...]


def read_analogies(path: Path) -> tuple[Analogy, ...]:
    """Read lines of four words below titles after a colon; those of ``gram…`` are syntactic."""
    found: list[Analogy] = []
    kind = SEMANTIC
    for number, line in enumerate("".join(pieces(path)).splitlines(), 1):
        words = tuple(line.lower().split())
        if words[:1] == (":",):
            kind = SYNTACTIC if "".join(words[1:]).startswith("gram") else SEMANTIC
        elif len(words) == 4:
            found.append(Analogy(kind, words))
        elif words:
            raise UnreadableFile(
                f"line {number:,} is not four words", where=path, way_out="download it again"
            )
    return tuple(found)
