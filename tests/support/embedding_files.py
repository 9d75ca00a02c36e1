"""Files of embedding libraries, written by hand where every number in them must be able to lie."""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FASTTEXT_MAGIC = struct.pack("<i", 793712314)

#: dim, ws, epoch, minCount, neg, wordNgrams, loss, model, bucket, minn, maxn, lrUpdateRate, t
SETTINGS: dict[str, Any] = {
    "dim": 3, "ws": 5, "epoch": 5, "minCount": 1, "neg": 5, "wordNgrams": 1, "loss": 2, "model": 2,
    "bucket": 4, "minn": 2, "maxn": 3, "lrUpdateRate": 100, "t": 1e-4,
}  # fmt: skip


def matrix_bytes(array: np.ndarray, rows: int | None = None, columns: int | None = None) -> bytes:
    shape = (
        len(array) if rows is None else rows,
        array.shape[1] if columns is None else columns,
    )
    return struct.pack("<qq", *shape) + array.astype("<f4").tobytes()


def fasttext_bytes(
    entries: Sequence[tuple[bytes, int, int]] = ((b"cat", 5, 0), (b"dog", 3, 0)),
    *,
    sizes: tuple[int, int, int] | None = None,
    version: int = 12,
    pruned: int = -1,
    pairs: Sequence[tuple[int, int]] = (),
    quantized: int = 0,
    inputs: bytes | None = None,
    outputs: bytes | None = None,
    end: bytes = b"",
    **settings: Any,
) -> bytes:
    """A model as fastText writes it."""
    values = {**SETTINGS, **settings}
    words = sum(kind == 0 for _, _, kind in entries)
    rng = np.random.default_rng(0)
    table = rng.normal(size=(words + max(SETTINGS["bucket"], 0), 3))
    body = FASTTEXT_MAGIC + struct.pack("<i", version)
    body += struct.pack("<12id", *values.values())
    body += struct.pack("<3iq", *(sizes or (len(entries), words, len(entries) - words)), 8)
    body += struct.pack("<q", pruned)
    body += b"".join(word + b"\0" + struct.pack("<qb", n, kind) for word, n, kind in entries)
    body += b"".join(struct.pack("<2i", *pair) for pair in pairs)
    body += bytes([quantized])
    body += matrix_bytes(table) if inputs is None else inputs
    body += b"\0"
    return body + (matrix_bytes(table[:words]) if outputs is None else outputs) + end


def stand_in(monkeypatch: pytest.MonkeyPatch, module: str, name: str) -> type:
    """A class that pickles under a name of gensim's, whether gensim is installed or not."""
    fake = sys.modules.get(module)
    if not getattr(fake, "is_stand_in", False):
        fake = ModuleType(module)
        fake.is_stand_in = True  # type: ignore[attr-defined]
        for package in ("gensim", "gensim.models"):
            monkeypatch.setitem(sys.modules, package, ModuleType(package))
        monkeypatch.setitem(sys.modules, module, fake)
    made = type(name, (), {"__module__": module})
    setattr(fake, name, made)
    return made


def instance(cls: type, **attributes: Any) -> Any:
    made = cls()
    made.__dict__.update(attributes)
    return made


def save_pickle(path: Path, value: object, protocol: int = 2) -> Path:
    path.write_bytes(pickle.dumps(value, protocol=protocol))
    return path
