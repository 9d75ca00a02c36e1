"""``dict.txt`` of fairseq: a token and its count on each line; four symbols are implied."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from embgeo.core.errors import UnreadableFile
from embgeo.io.bounded.companions import is_foreign_link
from embgeo.io.bounded.guard import refuse, short
from embgeo.io.bounded.small_files import read_text, safe_text, split_lines
from embgeo.io.labels.rows import RowCut
from embgeo.io.labels.vocabulary import TokenizerVocabulary

#: Rows 0 to 3 of every fairseq model; the file omits them.
SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>")
#: Masked language models have it in the row after the last line.
MASK = "<mask>"

_NAME = re.compile(r"dict(\.[\w-]{1,20})?\.txt(\.gz)?", re.IGNORECASE)
_LINE = re.compile(r"(.*) ([0-9]{1,15})(?: #fairseq:overwrite)?", re.DOTALL)
_MOST_FILES = 10


def is_named(path: Path) -> bool:
    """Whether a file is named ``dict.txt`` or, as for translation, ``dict.en.txt``."""
    return _NAME.fullmatch(path.name) is not None


def is_dictionary(path: Path, text: str) -> bool:
    return is_named(path) and _LINE.fullmatch(text[:10_000].split("\n", 1)[0].rstrip()) is not None


def from_text(text: str, path: Path) -> TokenizerVocabulary:
    """Tokens in row order, with their counts."""
    tokens, counts = list(SYMBOLS), [0] * len(SYMBOLS)
    for number, line in enumerate(split_lines(text), 1):
        found = _LINE.fullmatch(line.rstrip())
        if found is None:
            raise refuse(
                path,
                f"line {number:,} of this fairseq dictionary is not a token, a space and a count",
                "counts are whole numbers from 0",
            )
        tokens.append(safe_text(found[1]))
        counts.append(int(found[2]))
    source = f"{path.name} (fairseq: {len(SYMBOLS)} symbols of its own, then the file's lines)"
    return TokenizerVocabulary(tuple(tokens), source, counts=tuple(counts), implied=len(SYMBOLS))


def find_beside(path: Path, cut: RowCut) -> tuple[TokenizerVocabulary | None, tuple[str, ...]]:
    """The dictionary next to a checkpoint with one token for each row, and notes.

    None if no dictionary fits, or if several fit and differ.
    """
    folder = path if path.is_dir() else path.parent
    fitting: list[TokenizerVocabulary] = []
    notes: list[str] = []
    for file in sorted(folder.glob("dict*.txt"))[:_MOST_FILES]:
        if not is_named(file) or not file.is_file() or is_foreign_link(file):
            continue
        try:
            text = read_text(file)
            found = from_text(text, file) if is_dictionary(file, text) else None
        except UnreadableFile as error:
            notes.append(f"{short(file.name)} next to it is not used: {error.cause}")
            continue
        if found is None:
            continue
        found = fit_to(found, RowCut(cut.total, 0, cut.total))
        is_new = all(found.tokens != other.tokens for other in fitting)
        if found.implied and len(found.tokens) == cut.total and is_new:
            fitting.append(found)
    if len(fitting) > 1:
        names = ", ".join(vocabulary.source.partition(" ")[0] for vocabulary in fitting)
        notes.append(f"{short(names)} next to it all fit: name the right one with --tokens")
    return (fitting[0] if len(fitting) == 1 else None), tuple(notes)


def fit_to(vocabulary: TokenizerVocabulary, cut: RowCut) -> TokenizerVocabulary:
    """Adapt a dictionary to the number of rows, if possible.

    Masked language models have one row more; a list that only looks like a dictionary of fairseq
    has four rows less. Other vocabularies are returned unchanged.
    """
    counts, start = vocabulary.counts, vocabulary.implied
    if not start or cut.fit(len(counts)) is not None:
        return vocabulary
    if cut.fit(len(counts) + 1) is not None:
        return replace(vocabulary, tokens=(*vocabulary.tokens, MASK), counts=(*counts, 0))
    if cut.fit(len(counts) - start) is not None:
        source = vocabulary.source.partition(" ")[0]
        tokens = vocabulary.tokens[start:]
        return replace(vocabulary, tokens=tokens, source=source, counts=counts[start:], implied=0)
    return vocabulary
