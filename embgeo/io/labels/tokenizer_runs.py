"""Runs the tokenizer of a model: tokens of a corpus, and of the texts of tokens.

The packages that run tokenizers are Rust and C++ code, which a hostile file can crash or make use
all memory: they run in a limited process.
"""

import importlib.util
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from embgeo.core.errors import argument
from embgeo.core.matrix import Frequency
from embgeo.files.guard import Damaged, refuse
from embgeo.files.limited import limit_time, run_limited
from embgeo.files.scratch import ScratchFile
from embgeo.io.labels.corpus_text import CorpusText
from embgeo.io.labels.vocabulary import TextEncoder, TokenizerVocabulary

EXTRA = "hf"

#: Processor seconds for loading a tokenizer.
_LOADING = 8.0


class NotUsable(Exception):
    """Why a tokenizer cannot be run."""


def count_tokens(
    encoder: TextEncoder, size: int, text: CorpusText
) -> tuple[Frequency, tuple[str, ...]]:
    """Encode a corpus and count the ids 0 to `size` − 1, with notes.

    Text is encoded unchanged, with its line ends, in pieces of some thousand characters and without
    the special tokens that a model adds around its input. Raises `NotUsable` if the package of the
    tokenizer is not installed or does not read its file.
    """
    _require(encoder.package)
    with ScratchFile() as output:
        try:
            answer = run_limited(
                f"{__name__}:write_counts",
                f"the package {encoder.package}",
                _LOADING,
                text=text.pieces(words=False),
                kind=encoder.kind,
                files=[str(file.resolve()) for file in encoder.files],
                lowercase=encoder.lowercase,
                size=size,
                output=str(output),
            )
        except Damaged as error:
            if not output.stat().st_size:
                raise NotUsable(f"the package {encoder.package} cannot read it ({error})") from None
            raise refuse(
                encoder.files[0],
                f"the tokenizer fails on the corpus ({error})",
                f"give the counts with {argument('counts', 'FILE')}",
            ) from None
        counts = np.fromfile(output, dtype="<i8").astype(np.float64)
    total, beyond = answer["total"], answer["beyond"]
    notes = list(text.notes())
    if beyond:
        notes.append(f"{beyond:,} of {total:,} tokens of {text.name} have ids beyond the labels")
    source = f"corpus {text.name}, {total:,} tokens by {encoder.name}"
    return Frequency("counts", counts, source), tuple(notes)


#: Processor seconds; a vocabulary of 260,000 tokens takes a third of them.
_SECONDS = 30.0


def find_unreachable(vocabulary: TokenizerVocabulary | None) -> list[int]:
    """Find ids that encoding their text does not give, alone or after a letter, digit or hyphen.

    Land & Bartolo 2024, §3.1, call such tokens unreachable. Raises `NotUsable` without a
    tokenizer.json that can be run.
    """
    encoder = None if vocabulary is None else vocabulary.encoder
    if vocabulary is None or encoder is None:
        raise NotUsable("the rows have no tokenizer")
    if encoder.kind != "tokenizer.json":
        raise NotUsable(f"{encoder.name} is not a tokenizer.json")
    _require(encoder.package)
    try:
        rows: list[int] = run_limited(
            f"{__name__}:list_unreachable",
            f"the package {encoder.package}",
            _SECONDS,
            file=str(encoder.files[0].resolve()),
            size=len(vocabulary.tokens),
        )
    except Damaged as error:
        raise NotUsable(str(error)) from None
    return rows


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise NotUsable(f"that needs pip install 'embgeo[{EXTRA}]'")


# In the limited process

Encode = Callable[[list[str]], list[list[int]]]

#: Processor seconds, over all threads, for a piece of text.
_ENCODING = 8.0
_TEXT = 2**14
_OF_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
#: Texts before a token, for tokens that continue a word.
_BEFORE = ("1", "q", "x", "-")


def write_counts(
    kind: str, files: list[str], lowercase: bool, size: int, output: str, text: Iterable[bytes]
) -> dict[str, int]:
    """Write the counts of the ids below `size` in pieces of UTF-8 to the output file.

    The file stays empty if the tokenizer cannot be loaded. Returns the numbers of all tokens and of
    those with other ids.
    """
    encode = KINDS[kind](files, lowercase)
    counts = np.memmap(output, dtype="<i8", mode="w+", shape=(size,))
    total = beyond = 0
    for piece in text:
        limit_time(_ENCODING)
        for ids in encode(texts(piece.decode("utf-8", "replace"))):
            numbers = np.asarray(ids, dtype=np.int64)
            known = numbers[(numbers >= 0) & (numbers < size)]
            counts += np.bincount(known, minlength=size)
            total += len(numbers)
            beyond += len(numbers) - len(known)
    counts.flush()
    return {"total": total, "beyond": beyond}


def texts(piece: str) -> list[str]:
    """Cut a piece after line ends into texts that tokenizers process fast."""
    found, start = [], 0
    while start < len(piece):
        stop = start + _TEXT
        if stop < len(piece):
            line_end = piece.rfind("\n", start, stop) + 1
            space = piece.rfind(" ", start + 1, stop)
            stop = line_end or (space if space > start else stop)
        found.append(piece[start:stop])
        start = stop
    return found


def from_tokenizer_json(files: list[str], _lowercase: bool) -> Encode:
    return encoding(load_tokenizer(files[0]))


def load_tokenizer(file: str) -> Any:
    """Load a tokenizer.json, without the limits of length and padding that it asks for."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(file)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def from_byte_level(files: list[str], _lowercase: bool) -> Encode:
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.BPE.from_file(*files))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return encoding(tokenizer)


def from_word_pieces(files: list[str], lowercase: bool) -> Encode:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.WordPiece.from_file(files[0], unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens([t for t in _OF_BERT if tokenizer.token_to_id(t) is not None])
    return encoding(tokenizer)


def encoding(tokenizer: Any) -> Encode:
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    return lambda some: [found.ids for found in encode(some, add_special_tokens=False)]


def from_sentencepiece(files: list[str], _lowercase: bool) -> Encode:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor()
    processor.Load(files[0])
    return lambda some: [processor.EncodeAsIds(text) for text in some]


KINDS: dict[str, Callable[[list[str], bool], Encode]] = {
    "tokenizer.json": from_tokenizer_json,
    "byte-level BPE": from_byte_level,
    "WordPiece": from_word_pieces,
    "SentencePiece": from_sentencepiece,
}


# The texts of tokens


def list_unreachable(file: str, size: int) -> list[int]:
    """Find ids below `size` that encoding their text does not give."""
    tokenizer = load_tokenizer(file)
    encode = encoding(tokenizer)
    left = [row for row in range(size) if tokenizer.id_to_token(row) is not None]
    for front in ([], *encode(list(_BEFORE))):
        texts = tokenizer.decode_batch([[*front, row] for row in left], skip_special_tokens=False)
        left = [row for row, ids in zip(left, encode(texts), strict=True) if row not in ids]
        if not left:
            break
    return left
