"""A corpus: three splits as rows of one vocabulary, and what was decided about the text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from embgeo.errors import BadOption, UnreadableFile
from embgeo.train.data.encoding import Encode, Rules, encode_files
from embgeo.train.data.layouts import SPLITS, Layout, find_layout
from embgeo.train.data.splitting import cut_text
from embgeo.train.data.text import sha256
from embgeo.train.data.vocabulary import END, UNKNOWN, Vocabulary, ranked
from embgeo.train.data.words import Words

UNITS = ("sentences", "stream")
#: Of words in a text that has no unknown words yet; as WikiText was made.
DEFAULT_MIN_COUNT = 3
#: Below this nothing can be learnt or measured.
FEWEST_TRAINING_TOKENS = 100
FEWEST_TOKENS = 2

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a model is trained and measured on.

    Attributes
    ----------
    name : str
        ``wikitext-2`` or ``ptb`` where the text is that; otherwise that of the file or folder.
    vocabulary : Vocabulary
    train, valid, test : array of int64
        Rows of the vocabulary in the order of the text; `test` may be None.
    unit : str
        "sentences", each line ending in `Vocabulary.end`, or "stream".
    notes : tuple of str
        What was decided about the text, in words.
    files : dict of str to str
        SHA-256 of each file that was read, by its path below the given folder.
    """

    name: str
    vocabulary: Vocabulary
    train: npt.NDArray[np.int64]
    valid: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64] | None
    unit: str
    notes: tuple[str, ...]
    files: dict[str, str]


def load_corpus(
    path: Path,
    *,
    unit: str | None = None,
    min_count: int | None = None,
    size: int | None = None,
    tokenizer: Path | None = None,
    tokens: int | None = None,
    seed: int = 0,
) -> Corpus:
    """Read a text or a folder of texts as rows of a vocabulary.

    Words are what white space separates. `find_layout` says which files are which split and
    `cut_text` how a text without splits is cut.

    Parameters
    ----------
    path : Path
        UTF-8 text, plain or compressed (.gz, .xz, .bz2), or a folder.
    unit : str, optional
        "sentences" (the default): each line ends in an end-of-sentence token. "stream": line ends
        mean nothing.
    min_count : int, optional
        Words that occur less often in the training split are unknown; 3 where neither this nor
        `size` is given, and 1 where the text has ``<unk>`` already.
    size : int, optional
        Rows of the vocabulary; the rarest words are unknown.
    tokenizer : Path, optional
        A ``tokenizer.json`` in place of words; rows are its ids.
    tokens : int, optional
        Only the first so many of the training split. Counts and vocabulary are of these.
    seed : int
        Of the draw that cuts a text without splits. Not that of a run: runs with several seeds
        are to be measured on the same text.

    Raises
    ------
    UnreadableFile
        No text, or none that can be used: missing, empty, tiny, binary, not UTF-8, damaged; a
        tokenizer that cannot be read or run.
    BadOption
        An option that makes no sense for this text.
    """
    _check(unit, min_count, size, tokenizer, tokens)
    layout = find_layout(path)
    unit = unit or UNITS[0]
    notes = list(layout.notes)
    words = Words()
    empty_lines = layout.published is not None and layout.published.empty_lines
    rules = Rules(words[END] if unit == "sentences" else None, empty_lines)
    splits = _splits(layout, words.encode, rules, tokens, seed, notes)
    _check_splits(splits, path)
    name = _name(layout, splits, tokens, unit, notes)
    counts = np.bincount(splits["train"], minlength=len(words))
    if min_count is None:
        min_count = 1
        if size is None and not (UNKNOWN in words and counts[words[UNKNOWN]]):
            min_count = DEFAULT_MIN_COUNT
            notes.append(
                f"words that occur less than {min_count} times in the training text are unknown"
            )
    vocabulary, row_of = ranked(
        list(words), counts, min_count=min_count, size=size, end=unit == "sentences"
    )
    rows = {split: row_of[ids] for split, ids in splits.items()}
    return Corpus(
        name,
        vocabulary,
        rows["train"],
        rows["valid"],
        rows.get("test"),
        unit,
        tuple(notes),
        _files(path, layout),
    )


def _splits(
    layout: Layout,
    encode: Encode,
    rules: Rules,
    tokens: int | None,
    seed: int,
    notes: list[str],
) -> dict[str, Ids]:
    if "all" in layout.splits:
        text = encode_files(layout.splits["all"], encode, rules)
        cut = cut_text(text, stream=rules.end is None, seed=seed)
        notes.append(f"a twentieth each for validation and test: {cut.how}")
        train = cut.train if tokens is None else cut.train[:tokens]
        return {"train": train, "valid": cut.valid, "test": cut.test}
    return {
        split: encode_files(files, encode, rules, limit=tokens if split == "train" else None).ids
        for split, files in layout.splits.items()
    }


def _name(
    layout: Layout, splits: dict[str, Ids], tokens: int | None, unit: str, notes: list[str]
) -> str:
    """That of a published corpus only if its splits are as long as published."""
    published = layout.published
    if published is None or unit == "stream":
        return layout.name
    compared = SPLITS if tokens is None else SPLITS[1:]
    expected = dict(zip(SPLITS, published.tokens, strict=True))
    if all(len(splits[split]) == expected[split] for split in compared):
        return published.name
    notes.append(f"the files are named like those of {published.name}, but are others")
    return layout.name


def _check(
    unit: str | None,
    min_count: int | None,
    size: int | None,
    tokenizer: Path | None,
    tokens: int | None,
) -> None:
    if unit is not None and unit not in UNITS:
        raise BadOption(f"no unit {unit!r}", where="unit", way_out=f"give {' or '.join(UNITS)}")
    if tokens is not None and tokens < FEWEST_TRAINING_TOKENS:
        raise BadOption(
            f"{tokens:,} tokens are too few to train on",
            where="tokens",
            way_out=f"give {FEWEST_TRAINING_TOKENS} or more",
        )
    if tokenizer is not None and (min_count is not None or size is not None):
        raise BadOption(
            "a tokenizer has its own vocabulary",
            where="size" if min_count is None else "min_count",
            way_out="leave it out, or leave out the tokenizer",
        )


def _check_splits(splits: dict[str, Ids], path: Path) -> None:
    for split, ids in splits.items():
        fewest = FEWEST_TRAINING_TOKENS if split == "train" else FEWEST_TOKENS
        if len(ids) < fewest:
            raise UnreadableFile(
                f"the {split} split has {len(ids):,} tokens, too few of {fewest}",
                where=path,
                way_out="give more text",
            )


def _files(path: Path, layout: Layout) -> dict[str, str]:
    folder = path if path.is_dir() else path.parent
    return {
        file.relative_to(folder).as_posix(): sha256(file)
        for files in layout.splits.values()
        for file in files
    }
