"""Tiny tokenizers made by the packages that people use."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

TEXT = [
    "the cat sat on the mat, and the dog sat on the cat.",
    "Tokenizers cut words into pieces; pieces of words are joined again.",
    "Größe, café, naïve: 日本語のテキスト 🙂 and the rest\tof it.",
    "the quick brown fox jumps over the lazy dog again and again",
] * 5
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]


def train_tokenizer(kind: str) -> Any:
    """A small tokenizer of the package tokenizers: byte-level, byte-fallback, wordpiece, unigram.

    Each gets two tokens that were added after training.
    """
    tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers makes them")
    models, pre, decoders = tokenizers.models, tokenizers.pre_tokenizers, tokenizers.decoders
    trainers = tokenizers.trainers
    if kind == "byte-level":
        made = tokenizers.Tokenizer(models.BPE())
        made.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=400, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False
        )
    elif kind == "byte-fallback":
        made = tokenizers.Tokenizer(
            models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True)
        )
        made.pre_tokenizer = pre.Metaspace()
        made.decoder = decoders.Sequence(
            [
                decoders.Replace("▁", " "),
                decoders.ByteFallback(),
                decoders.Fuse(),
                decoders.Strip(" ", 1, 0),
            ]
        )
        bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
        trainer = trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=[*SPECIAL, *bytes_],
            limit_alphabet=30,
            show_progress=False,
        )
    elif kind == "wordpiece":
        made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
        made.pre_tokenizer = pre.BertPreTokenizer()
        made.decoder = decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(
            vocab_size=150, special_tokens=["[PAD]", "[UNK]"], show_progress=False
        )
    else:
        made = tokenizers.Tokenizer(models.Unigram())
        made.pre_tokenizer = pre.Metaspace()
        made.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=120, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
        )
    made.train_from_iterator(TEXT, trainer)
    made.add_special_tokens(["<|end of text|>"])
    made.add_tokens(["added one"])
    return made


def sentencepiece_model(kind: str, **settings: Any) -> bytes:
    """A small model of the package sentencepiece."""
    package = pytest.importorskip("sentencepiece", reason="the package sentencepiece makes them")
    written = io.BytesIO()
    package.SentencePieceTrainer.Train(
        sentence_iterator=iter(TEXT),
        model_writer=written,
        model_type=kind,
        minloglevel=2,
        **{"vocab_size": 120, "hard_vocab_limit": False, **settings},
    )
    return written.getvalue()


def sentencepiece_processor(path: Path) -> Any:
    package = pytest.importorskip("sentencepiece", reason="the package sentencepiece reads them")
    processor = package.SentencePieceProcessor()
    processor.Load(str(path))
    return processor
