"""Word pairs with human similarity ratings: RG-65, WordSim-353, RW, MEN, SimLex-999 …"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.training.data.text import pieces

#: File names at github.com/mfaruqui/eval-word-vectors, and the names of the sets here.
KNOWN = {
    "EN-RG-65": "rg65",
    "EN-WS-353-ALL": "ws353",
    "EN-WS-353-SIM": "ws353_sim",
    "EN-WS-353-REL": "ws353_rel",
    "EN-RW-STANFORD": "rw",
    "EN-MEN-TR-3k": "men",
    "EN-SIMLEX-999": "simlex",
    "EN-SimVerb-3500": "simverb",
    "EN-MTurk-287": "mturk287",
    "EN-MTurk-771": "mturk771",
    "EN-MC-30": "mc30",
    "EN-VERB-143": "verb143",
    "EN-YP-130": "yp130",
}


@dataclass(frozen=True, slots=True)
class WordPairs:
    """A set of word similarity: pairs in lower case with ratings; larger is more similar."""

    name: str
    pairs: tuple[tuple[str, str], ...]
    gold: tuple[float, ...]


def read_word_pairs(folder: Path) -> tuple[WordPairs, ...]:
    """Read the sets of a folder in the order of `KNOWN`; other files are ignored."""
    paths = {name: folder / f"{stem}.txt" for stem, name in KNOWN.items()}
    found = {name: path for name, path in paths.items() if path.is_file()}
    if "ws353" not in found:
        raise UnreadableFile(
            "holds no EN-WS-353-ALL.txt (lines of two words and a score, with tabs between them)",
            where=folder,
            way_out="give a folder with sets of word similarity by task.wordsim",
        )
    return tuple(read_set(name, path) for name, path in found.items())


def read_set(name: str, path: Path) -> WordPairs:
    """Read a file with two words and a score on each line."""
    pairs, gold = [], []
    lines = "".join(pieces(path)).splitlines()
    for number, line in enumerate(lines, 1):
        parts = line.lower().split()
        if not parts:
            continue
        try:
            first, second, score = parts
            value = float(score)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise UnreadableFile(
                f"line {number:,} is not two words and a score",
                where=path,
                way_out="download it again",
            )
        pairs.append((first, second))
        gold.append(value)
    return WordPairs(name, tuple(pairs), tuple(gold))
