"""The text of a corpus in pieces, from a file or a folder of files, and counts of its words."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from embgeo.core.errors import LabelMismatch
from embgeo.core.matrix import Frequency
from embgeo.files.compressed import codec_of
from embgeo.files.guard import list_short, refuse
from embgeo.files.long_texts import NotText, count_invalid, read_pieces
from embgeo.files.small_files import read_head
from embgeo.io.labels.counts_file import examples
from embgeo.io.labels.vocabulary import has_sign, marks_words_by_spaces, word_of

#: ``progress(bytes read, total)``; the total is 0 if a file is compressed.
ByteProgress = Callable[[int, int], None]

_MOST_FILES = 100_000


class CorpusText:
    """The files of a corpus: one, or all in a folder that are neither hidden nor links."""

    def __init__(self, path: Path, progress: ByteProgress | None = None) -> None:
        self.path = path
        self.name = path.name or path.resolve().name
        self.invalid = 0  # bytes so far that are not UTF-8
        self._is_folder = path.is_dir()
        self._left_out: dict[str, list[str]] = {}  # names of files by the reason
        self._progress = progress or (lambda _read, _total: None)
        self._files = _files(path) if self._is_folder else [path]
        packed = any(codec_of(read_head(file)) for file in self._files)
        self._total = 0 if packed else sum(file.stat().st_size for file in self._files)
        self._read = 0

    def pieces(self, *, words: bool) -> Iterator[bytes]:
        """Yield the text, cut after line ends or else before white space.

        With `words` a MiB without white space is refused; otherwise it is cut between characters.
        A file that is not text is refused, or left out if it is one of a folder.
        """
        for file in self._files:
            try:
                for piece in read_pieces(file, cut_words=not words, advance=self._advance):
                    try:
                        piece.decode()
                    except UnicodeDecodeError:
                        self.invalid += count_invalid(piece)
                    yield piece
            except NotText as error:
                if not self._is_folder:
                    raise
                self._left_out.setdefault(error.cause, []).append(file.name)

    def _advance(self, read: int) -> None:
        self._read += read
        self._progress(self._read, self._total)

    def notes(self) -> tuple[str, ...]:
        """Describe the files left out and the invalid bytes."""
        notes = [
            f"not read, because {why}: {list_short(names)}" for why, names in self._left_out.items()
        ]
        if self.invalid:
            notes.append(f"{self.invalid:,} bytes of {self.name} are not valid UTF-8")
        return tuple(notes)


def _files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(place, name)
            if not name.startswith(".") and file.is_file() and not file.is_symlink():
                found.append(file)
        if len(found) > _MOST_FILES:
            raise refuse(
                folder, f"the folder holds more than {_MOST_FILES:,} files", "join them with cat"
            )
    files = [file for file in found if file.stat().st_size]
    if not files:
        raise refuse(folder, "the folder holds no files with text")
    return files


def count_words(tokens: Sequence[str], text: CorpusText) -> tuple[Frequency, tuple[str, ...]]:
    """Count the tokens among the words of a corpus, which white space separates.

    In a subword vocabulary only tokens that are whole words are counted, and the source says so.
    """
    spaced = marks_words_by_spaces(tokens)
    keys = [word_of(token, spaced).encode("utf-8") for token in tokens]
    vocabulary = {key for key in keys if key}
    found: Counter[bytes] = Counter()
    total = 0
    for piece in text.pieces(words=True):
        words = piece.split()
        total += len(words)
        for word, count in Counter(words).items():
            if word in vocabulary:
                found[word] += count
    if not found:
        raise LabelMismatch(
            f"none of its {total:,} words is a token of the matrix (such as {examples(tokens)})",
            where=text.path,
        )
    values = np.array([found.get(key, 0) for key in keys], dtype=np.float64)
    source = f"corpus {text.name}, {total:,} words separated by white space"
    # WordPiece marks tokens that continue a word by "##".
    if spaced or has_sign(tokens, "##"):
        source += "; the tokens are pieces of words, so only whole words among them are counted"
    notes = [*text.notes(), *missing_note(values, text.name)]
    if (known := sum(found.values())) < total:
        notes.append(f"{total - known:,} of {total:,} words of {text.name} are not in the matrix")
    return Frequency("counts", values, source), tuple(notes)


def missing_note(values: np.ndarray[tuple[int], np.dtype[np.float64]], name: str) -> list[str]:
    """Return a note on the tokens with count 0, if there are any."""
    missing = int(np.sum(values == 0))
    return [f"{missing:,} of {len(values):,} tokens do not occur in {name}"] if missing else []
