"""The tokens of a model folder, from the tokenizer files in it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from embgeo.core.errors import UnreadableFile, WayOut, argument
from embgeo.core.special import SpecialToken
from embgeo.files import small_files
from embgeo.files.guard import list_short, refuse, short
from embgeo.files.small_files import is_companion
from embgeo.io.labels import tokenizer_files
from embgeo.io.labels.special_tokens import find_special
from embgeo.io.labels.tokenizer_files import in_order
from embgeo.io.labels.vocabulary import TextEncoder, TokenizerVocabulary
from embgeo.io.model.checkpoint import Checkpoint

#: SentencePiece models by name.
_MODELS = (
    "tokenizer.model",
    "spiece.model",
    "spm.model",
    "sentencepiece.model",
    "sentencepiece.bpe.model",
    "tiktoken.model",
)
#: Models that number the pieces in another order than the file.
_OTHER_ORDER = frozenset({
    "barthez", "bigbird_pegasus", "camembert", "m2m_100", "marian", "mbart", "nllb-moe", "pegasus",
    "pegasus_x", "plbart", "speech_to_text", "xglm", "xlm-prophetnet", "xlm-roberta",
    "xlm-roberta-xl",
})  # fmt: skip
_BY_FAIRSEQ_TOOLS = "sentencepiece.bpe.model"
_SETTINGS = "tokenizer_config.json"
_OF_IDS = " of tokens and ids"


def label_model(weights: Checkpoint, folder: Path, model_type: str) -> Checkpoint:
    """Add the tokens that the tokenizer in a folder gives the rows, or why it cannot be read."""
    if weights.counts is not None:  # vectors with words: the vocab.txt of GloVe is no tokenizer
        return weights
    special: tuple[SpecialToken, ...] = ()
    try:
        vocabulary, notes = vocabulary_of(folder, model_type)
        if vocabulary is not None:
            special = find_special(folder, vocabulary)
    except UnreadableFile as error:  # raised where its labels are wanted
        unlabeled = f"read no labels: {argument('tokens', 'none')}"
        why = error.also(unlabeled, [WayOut(arguments={"tokens": "none"})])
        return replace(weights, tokens=None, label_error=why)
    weights = replace(weights, notes=(*weights.notes, *notes))
    if vocabulary is None:
        return weights
    return replace(
        weights,
        tokens=vocabulary.tokens,
        tokens_source=vocabulary.source,
        vocabularies=(),
        encoder=vocabulary.encoder,
        added=frozenset(vocabulary.added.values()),
        special=special,
        notes=(*weights.notes, *vocabulary.notes),
    )


def vocabulary_of(
    folder: Path, model_type: str
) -> tuple[TokenizerVocabulary | None, tuple[str, ...]]:
    """Return the tokens in row order, and notes on files that are left out."""
    path = folder / "tokenizer.json"
    if is_companion(path):
        data = small_files.read_json(path)
        if not tokenizer_files.is_keras_configuration(data):
            return tokenizer_files.from_tokenizer_json(data, path), ()
        return None, (
            "tokenizer.json is a configuration of Keras and labels no rows; --tokens FILE",
        )
    found = [name for name in ("vocab.json", *_MODELS, "vocab.txt") if is_companion(folder / name)]
    if not found:
        return None, ()
    path, others = folder / found[0], found[1:]
    vocabulary: TokenizerVocabulary | None
    notes: tuple[str, ...] = ()
    if path.name == "vocab.json":
        vocabulary = _from_vocab_json(path)
    elif path.name == "vocab.txt":
        vocabulary = _from_vocab_txt(path)
    else:
        vocabulary, notes = _from_model(path, model_type)
    if others:
        beside = f"{list_short(others)} beside it {'is' if len(others) == 1 else 'are'} not"
        notes = (*notes, f"{path.name} is read as the tokenizer; {beside}")
    return vocabulary, notes


def _from_vocab_json(path: Path) -> TokenizerVocabulary:
    data = small_files.read_object(path, _OF_IDS)
    if not data:
        raise refuse(path, f"is not a JSON object{_OF_IDS}")
    added = _read_added(path.parent)
    vocabulary = tokenizer_files.from_ids({**data, **added}, path)
    vocabulary = replace(
        vocabulary,
        added={small_files.safe_text(token): row for token, row in added.items()},
        special=_read_special(path.parent),
    )
    merges = path.with_name("merges.txt")
    if "byte-level" in vocabulary.source and is_companion(merges):
        encoder = TextEncoder("byte-level BPE", (path, merges))
        return replace(vocabulary, encoder=encoder)
    return vocabulary


def _from_vocab_txt(path: Path) -> TokenizerVocabulary:
    text = small_files.read_text(path, inside=True)
    tokens = [small_files.safe_text(line) for line in small_files.split_lines(text)]
    is_cased = any(t[:1].isupper() and t.isalpha() for t in tokens)
    lowercase = small_files.read_object(path.with_name(_SETTINGS)).get("do_lower_case")
    encoder = None
    if "[UNK]" in tokens and any(token.startswith("##") for token in tokens):
        lowers = lowercase if isinstance(lowercase, bool) else not is_cased
        encoder = TextEncoder("WordPiece", (path,), lowers)
    vocabulary = TokenizerVocabulary(tuple(tokens), path.name, encoder=encoder)
    return _with_added(vocabulary, path)


def _from_model(path: Path, model_type: str) -> tuple[TokenizerVocabulary | None, tuple[str, ...]]:
    data = small_files.read_bytes(path, inside=True)
    if not tokenizer_files.is_sentencepiece(data):
        return _with_added(
            tokenizer_files.read_tiktoken(small_files.decode_text(data, path), path), path
        ), ()
    vocabulary = tokenizer_files.read_sentencepiece(data, path)
    if model_type in _OTHER_ORDER or path.name == _BY_FAIRSEQ_TOOLS:
        whose = short(model_type) or "such models"
        note = f"{path.name} is not used: {whose} number its pieces in another order; --tokens FILE"
        return None, (note,)
    return _with_added(vocabulary, path), ()


def _with_added(vocabulary: TokenizerVocabulary, path: Path) -> TokenizerVocabulary:
    """Add the tokens of added_tokens.json and tokenizer_config.json."""
    added = _read_added(path.parent)
    if not added:
        return vocabulary
    pairs = [(token, number) for number, token in enumerate(vocabulary.tokens)]
    tokens, notes = in_order([*pairs, *added.items()], path)
    rows = {small_files.safe_text(token): row for token, row in added.items()}
    special, notes = _read_special(path.parent), (*vocabulary.notes, *notes)
    return replace(vocabulary, tokens=tokens, notes=notes, added=rows, special=special)


def _read_added(folder: Path) -> dict[str, Any]:
    """Read the added tokens and their ids from the files of older and newer tokenizers."""
    found = {content: row for content, row, _ in _list_added(folder)}
    return {**found, **small_files.read_object(folder / "added_tokens.json", _OF_IDS)}


def _read_special(folder: Path) -> frozenset[str]:
    """Read which of the added tokens are special, as tokenizer_config.json says."""
    listed = _list_added(folder)
    return frozenset(small_files.safe_text(content) for content, _, special in listed if special)


def _list_added(folder: Path) -> Iterator[tuple[str, int, bool]]:
    """Yield the added tokens of tokenizer_config.json: content, row, and whether it is special."""
    listed = small_files.read_object(folder / _SETTINGS).get("added_tokens_decoder")
    for key, entry in (listed if isinstance(listed, dict) else {}).items():
        content = entry.get("content") if isinstance(entry, dict) else None
        if isinstance(content, str) and key.isdecimal() and len(key) < 16:
            yield content, int(key), entry.get("special") is True
