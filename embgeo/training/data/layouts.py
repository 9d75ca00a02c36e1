"""Which files of a path are which split."""

import re
from dataclasses import dataclass
from pathlib import Path

from embgeo.core.errors import UnreadableFile, argument
from embgeo.training.data.text import is_folder, list_folder

#: Names of the splits in file names, in order of preference.
SPLIT_NAMES = {"train": ("train",), "valid": ("valid", "val", "dev"), "test": ("test",)}
SPLITS = tuple(SPLIT_NAMES)
_TEXT = re.compile(r"\.(txt|text|tokens|raw)(\.(gz|zst))?\Z", re.IGNORECASE)
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
    """Find the splits of a corpus by the names of its files.

    A folder holds texts with ``train``, ``valid`` (``val``, ``dev``) and perhaps ``test`` in their
    names, which end in ``.txt``, ``.text``, ``.tokens`` or ``.raw``, compressed or not. Links to
    files outside the folder are left out.
    """
    if not is_folder(path):
        name = _TEXT.sub("", path.name) or path.name
        return CorpusLayout(name, {"all": [path]})
    name, inside = path.name or path.resolve().name, path.resolve()
    found: dict[str, list[Path]] = {}
    outside = 0
    for text in list_folder(path):
        words = re.split(r"[\W_]+", text.name.lower())
        split = next((_WORDS[word] for word in words if word in _WORDS), None)
        if split is not None and _TEXT.search(text.name):
            if text.resolve().is_relative_to(inside):
                found.setdefault(split, []).append(text)
            else:
                outside += 1
    for split in ("train", "valid"):
        if split not in found:
            cause = f"no text in the folder has “{split}” in its name"
            way_out = f"name a single text with {argument('data')}"
            raise UnreadableFile(cause, where=path, way_out=way_out)
    splits = {split: found[split] for split in SPLITS if split in found}
    notes = (f"{outside:,} links that lead out of the folder are left out",) if outside else ()
    known = [
        one for one in PUBLISHED if all([path / file] in splits.values() for file in one.files)
    ]
    size = splits["train"][0].stat().st_size
    # A token takes two bytes at least: the training split tells a corpus from a smaller one.
    published = next(
        (one for one in known if size >= 2 * one.tokens[0]), known[-1] if known else None
    )
    return CorpusLayout(name, splits, published, notes)
