"""Which files of a path are which split."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from embgeo.core.errors import UnreadableFile, argument
from embgeo.files.guard import cannot_read, list_short
from embgeo.files.links import is_foreign_link
from embgeo.training.data.text import COMPRESSED, is_folder

SPLITS = ("train", "valid", "test")
#: The splits that words in names of files mean.
_WORDS = {
    "train": "train",
    "training": "train",
    "test": "test",
    **dict.fromkeys(("valid", "val", "dev", "validation"), "valid"),
}
#: The files of each split; or of ``all``, data without splits.
Files = dict[str, list[Path]]


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


def list_files(folder: Path, fits: Callable[[Path], bool]) -> tuple[list[Path], list[str]]:
    """List the files of a folder that fit, by name, and note those that are left out.

    Hidden files and links to files outside the folder are left out.
    """
    try:
        found = [
            file
            for file in sorted(folder.iterdir())
            if file.is_file() and not file.name.startswith(".") and fits(file)
        ]
    except OSError as error:
        raise cannot_read(folder, error) from error
    outside = [file.name for file in found if is_foreign_link(file)]
    inside = [file for file in found if file.name not in outside]
    return inside, [f"links out of the folder are left out: {list_short(outside)}"] * bool(outside)


def find_splits(
    path: Path, fits: Callable[[Path], bool], what: str, needed: Collection[str]
) -> tuple[Files, list[str]]:
    """Find the files of each split, and note which they are; a file alone has no splits.

    Of the files of a folder that fit, words in the name say which split they are: ``train``,
    ``valid`` (``val``, ``dev``) or ``test``. `what` such a file is called; `needed`: the splits
    that a folder has to have.
    """
    if not is_folder(path):
        return {"all": [path]}, []
    files, notes = list_files(path, fits)
    found: Files = {split: [] for split in SPLITS}
    for file in files:
        words = re.split(r"[\W_]+", file.name.lower())
        split = next((_WORDS[word] for word in words if word in _WORDS), None)
        if split is not None:
            found[split].append(file)
    for split in needed:
        if not found[split]:
            cause = f"no {what} in the folder has “{split}” in its name"
            way_out = f"name one file, or other data, with {argument('data')}"
            raise UnreadableFile(cause, where=path, way_out=way_out)
    splits = {split: files for split, files in found.items() if files}
    return splits, [*notes, describe_files(splits)]


def describe_files(splits: Mapping[str, Iterable[Path]]) -> str:
    """Say which files are which split."""
    names = {split: list_short([file.name for file in files]) for split, files in splits.items()}
    return "; ".join(f"{split} is {listed}" for split, listed in names.items())


def name_data(path: Path) -> str:
    """Name data by their folder, or by their file without its endings."""
    name = path.with_suffix("") if path.suffix.lower() in COMPRESSED else path
    return path.resolve().name if is_folder(path) else name.stem


def find_published(path: Path, splits: Files) -> KnownCorpus | None:
    """Return the published corpus that the names and sizes of the files indicate."""
    known = [
        one for one in PUBLISHED if all([path / file] in splits.values() for file in one.files)
    ]
    if not known:
        return None
    size = splits["train"][0].stat().st_size
    # A token takes two bytes at least: the training split tells a corpus from a smaller one.
    return next((one for one in known if size >= 2 * one.tokens[0]), known[-1])
