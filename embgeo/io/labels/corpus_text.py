"""The text of a corpus in pieces, from a file or a folder of files, and counts of its words."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from embgeo.core.errors import LabelMismatch
from embgeo.core.matrix import Frequency
from embgeo.files.compressed import BoundedStream, codec_of
from embgeo.files.guard import cannot_read, list_short, refuse
from embgeo.files.small_files import read_head
from embgeo.io.labels.counts_file import examples
from embgeo.io.labels.vocabulary import has_sign, marks_words_by_spaces, word_of

#: ``progress(bytes read, total)``; the total is 0 if a file is compressed.
ByteProgress = Callable[[int, int], None]

_BLOCK = 2**18
# Without white space no place to cut is known; whatever has none in a MiB is no text of words.
_LONGEST_WORD = 2**20
_MOST_FILES = 100_000
_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
#: Largest share of invalid UTF-8 at the beginning; text in an older Latin encoding has less.
_MOST_INVALID = 0.1
_LAST_SPACE = re.compile(rb"[ \t\r\f\v](?=[^ \t\r\f\v]*\Z)")
_INVALID = re.compile("[\udc80-\udcff]")


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
        self._codecs = {file: codec_of(read_head(file)) for file in self._files}
        packed = any(self._codecs.values())
        self._total = 0 if packed else sum(file.stat().st_size for file in self._files)
        self._read = 0

    def pieces(self, *, words: bool) -> Iterator[bytes]:
        """Yield the text, cut after line ends or else before white space.

        With `words` a MiB without white space is refused; otherwise it is cut between characters.
        A file that is not text is refused, or left out if it is one of a folder.
        """
        for file in self._files:
            codec = self._codecs[file]
            try:
                with file.open("rb") if codec is None else BoundedStream(file, codec) as stream:
                    yield from self._pieces_of(file, stream.read, words)
            except OSError as error:
                raise cannot_read(file, error) from error

    def notes(self) -> tuple[str, ...]:
        """Describe the files left out and the invalid bytes."""
        notes = [
            f"not read, because {why}: {list_short(names)}" for why, names in self._left_out.items()
        ]
        if self.invalid:
            notes.append(f"{self.invalid:,} bytes of {self.name} are not valid UTF-8")
        return tuple(notes)

    def _pieces_of(self, file: Path, read: Callable[[int], bytes], words: bool) -> Iterator[bytes]:
        rest = b""
        is_first = True
        while block := read(_BLOCK):
            if is_first:
                is_first = False
                if why := _describe_binary(block):
                    if not self._is_folder:
                        raise refuse(file, why)
                    self._left_out.setdefault(why, []).append(file.name)
                    return
                block = block.removeprefix(_MARK)
            self._read += len(block)
            self._progress(self._read, self._total)
            whole, rest = _cut(rest + block)
            if len(rest) > _LONGEST_WORD:
                if words:
                    raise refuse(
                        file,
                        f"more than {_LONGEST_WORD / 2**20:,.3g} MiB without white space",
                    )
                at = _between_characters(rest)
                whole, rest = whole + rest[:at], rest[at:]
            if whole:
                yield self._check(whole)
        if rest:
            yield self._check(rest)

    def _check(self, piece: bytes) -> bytes:
        try:
            piece.decode()
        except UnicodeDecodeError:
            self.invalid += _invalid_bytes(piece)
        return piece


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


def _describe_binary(start: bytes) -> str:
    """Describe why bytes are not the beginning of a text; empty for text."""
    if start.startswith(_UTF16_MARKS):
        return "it is UTF-16, not UTF-8"
    if b"\0" in start:
        return "it is binary, not text"
    # A character may be cut off at the end.
    invalid = _invalid_bytes(start[: _between_characters(start)])
    if invalid > _MOST_INVALID * len(start):
        return f"{invalid:,} of its first {len(start):,} bytes are not UTF-8"
    return ""


def _invalid_bytes(piece: bytes) -> int:
    return len(_INVALID.findall(piece.decode("utf-8", "surrogateescape")))


def _cut(data: bytes) -> tuple[bytes, bytes]:
    """Split after the last line end or else before the last white space."""
    at = data.rfind(b"\n") + 1
    if at == 0:
        found = _LAST_SPACE.search(data)
        at = found.start() if found else 0
    return data[:at], data[at:]


def _between_characters(data: bytes) -> int:
    """Return the last place at which no UTF-8 character is cut."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            return len(data) - back
    return len(data)


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
