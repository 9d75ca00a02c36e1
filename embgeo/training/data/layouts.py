"""Which files of a path are which split."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from embgeo.core.errors import UnreadableFile, argument
from embgeo.files.guard import cannot_read
from embgeo.training.data.text import is_folder

#: Names of the splits in file names, in order of preference.
SPLIT_NAMES = {"train": ("train",), "valid": ("valid", "val", "dev"), "test": ("test",)}
SPLITS = tuple(SPLIT_NAMES)
_MOST_FILES = 100_000
_TEXT = re.compile(r"\.(txt|text|tokens|raw)(\.(gz|zst))?\Z", re.IGNORECASE)
_ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice)\b", re.IGNORECASE)
_WORDS = {name: split for split, names in SPLIT_NAMES.items() for name in names}
_WORDS |= {"training": "train", "validation": "valid"}


@dataclass(frozen=True, slots=True)
class KnownCorpus:
    """A published corpus, known by the names of its files."""

    name: str
    files: tuple[str, str, str]
    #: Tokens of each split, end-of-sentence tokens included.
    tokens: tuple[int, int, int]
    #: Different words of the training split.
    types: int
    #: Whether an empty line gets an end-of-sentence token like others.
    empty_lines: bool
    #: Whether the text consists of articles, each with a title line.
    titles: bool = False


#: Larger corpora come before smaller ones with the same file names.
PUBLISHED = (
    KnownCorpus(
        "wikitext-103",
        ("wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"),
        (103_227_021, 217_646, 245_569),
        267_735,
        empty_lines=True,
        titles=True,
    ),
    KnownCorpus(
        "wikitext-2",
        ("wiki.train.tokens", "wiki.valid.tokens", "wiki.test.tokens"),
        (2_088_628, 217_646, 245_569),
        33_278,
        empty_lines=True,
        titles=True,
    ),
    KnownCorpus(
        "ptb",
        ("ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"),
        (929_589, 73_760, 82_430),
        10_000,
        empty_lines=False,
    ),
)


@dataclass(frozen=True, slots=True)
class CorpusLayout:
    """The files of a corpus."""

    name: str
    #: ``train``, ``valid`` and perhaps ``test``; or ``all``, a text without splits.
    splits: dict[str, list[Path]]
    #: The corpus that the file names indicate.
    published: KnownCorpus | None = None
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> list[Path]:
        return [file for files in self.splits.values() for file in files]


def find_layout(path: Path) -> CorpusLayout:
    """Find the splits of a corpus by the names of its files and folders.

    A folder holds the files of a published corpus; or texts with ``train``, ``valid`` (``dev``)
    and ``test`` in the names of files or folders; or texts without splits. Names of texts end in
    ``.txt``, ``.text``, ``.tokens`` or ``.raw``, compressed or not. Hidden files, readmes, licenses
    and links to files outside the folder are left out.
    """
    if not is_folder(path):
        name = _TEXT.sub("", path.name) or path.name
        return CorpusLayout(name, {"all": [path]})
    name = path.name or path.resolve().name
    texts, notes = _texts(path)
    known = [one for one in PUBLISHED if {path / file for file in one.files} <= set(texts)]
    if known:
        size = (path / known[0].files[0]).stat().st_size
        # A token takes two bytes at least: the training split tells a corpus from a smaller one.
        published = next((one for one in known if size >= 2 * one.tokens[0]), known[-1])
        files = [[path / file] for file in published.files]
        return CorpusLayout(name, dict(zip(SPLITS, files, strict=True)), published, notes)
    found: dict[str, list[Path]] = {}
    for text in texts:
        found.setdefault(_split_of(text.relative_to(path)), []).append(text)
    if "train" not in found:
        return CorpusLayout(name, {"all": texts}, notes=notes)
    if "valid" not in found:
        raise UnreadableFile(
            "the folder has a training split but no validation split",
            where=path,
            way_out=f"name a single text with {argument('data')}",
        )
    if rest := found.pop("", []):
        notes += (f"{len(rest):,} texts that belong to no split are left out",)
    return CorpusLayout(
        name, {split: found[split] for split in SPLITS if split in found}, notes=notes
    )


def _split_of(text: Path) -> str:
    """Return the split in the name of a folder, or else of the file; empty without one."""
    for part in text.parts:
        for word in re.split(r"[\W_]+", part.lower()):
            if word in _WORDS:
                return _WORDS[word]
    return ""


def _texts(folder: Path) -> tuple[list[Path], tuple[str, ...]]:
    inside = folder.resolve()
    texts, outside, about = [], 0, []
    for file in _files(folder):
        if not _TEXT.search(file.name):
            continue
        if not file.resolve().is_relative_to(inside):
            outside += 1
        elif _ABOUT.match(file.name):
            about.append(file.name)
        else:
            texts.append(file)
    if not texts:
        raise UnreadableFile(
            "the folder holds no text (.txt, .tokens, .raw; plain, .gz or .zst)",
            where=folder,
            way_out=f"name another with {argument('data')}",
        )
    notes = []
    if outside:
        notes.append(f"{outside:,} links that lead out of the folder are left out")
    if about:
        notes.append(f"{', '.join(about[:3])} is left out: not a text, but about it")
    return texts, tuple(notes)


def _files(folder: Path) -> Iterator[Path]:
    number = 0
    for place, folders, names in os.walk(folder, onerror=_stop):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        number += len(names)
        if number > _MOST_FILES:
            raise UnreadableFile(
                f"the folder holds more than {_MOST_FILES:,} files",
                where=folder,
                way_out="join them with cat",
            )
        for name in sorted(names):
            file = Path(place, name)
            if not name.startswith(".") and file.is_file():
                yield file


def _stop(error: OSError) -> None:
    raise cannot_read(Path(str(error.filename)), error) from error
