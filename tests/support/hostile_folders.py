"""Folders whose files lead out of them, and side files that explode."""

from __future__ import annotations

import base64
import gzip
import json
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
from safetensors.numpy import save as safetensors_bytes

from tests.io.test_hostile_frameworks import RAW
from tests.support.binary_files import checkpoint, tensor_program
from tests.support.framework_files import field, onnx_bytes, onnx_tensor, varint
from tests.support.hostile_cases import CANARY, Build, Case, hold_content
from tests.support.hostile_formats import JSON_DEEP, OBJECTS_DEEP
from tests.support.torch_files import Called, Named, pickle_value

W = np.arange(12, dtype="<f4").reshape(4, 3)
NAME = "model.embed_tokens.weight"
WEIGHTS = safetensors_bytes({NAME: W})
TORCH_WEIGHTS = checkpoint(tensor_program(), W.tobytes()[:24])

#: What an index may call its shards, without their lying in its folder.
OUTSIDE = (
    "../secret", "/etc/passwd", "..\\secret", "C:\\secret", "~/secret", "sub/../../secret",
    "link", "", ".", "..", "a\0b", "x" * 5000, "\u202esecret", "//host/share", "file:///etc/passwd",
)  # fmt: skip


def around(folder: Path) -> Path:
    """A folder with a secret next to it and a link to that secret inside."""
    model = folder / "model"
    model.mkdir()
    (folder / "secret").write_bytes(WEIGHTS)
    os.symlink(folder / "secret", model / "link")
    return model


def index_to(shard: str, index: str) -> Build:
    def build(folder: Path) -> Path:
        model = around(folder)
        (model / index).write_text(json.dumps({"weight_map": {NAME: shard}}))
        return model

    return build


def link_to(name: str, content: bytes) -> Build:
    """A folder whose only shard, of a good name, is a link to another folder."""

    def build(folder: Path) -> Path:
        model = around(folder)
        (folder / "secret").write_bytes(content)
        os.symlink(folder / "secret", model / name)
        weight_map = {"weight_map": {NAME: name}}
        suffix = ".safetensors" if name.endswith(".safetensors") else ".bin"
        stem = "model" if suffix == ".safetensors" else "pytorch_model"
        (model / f"{stem}{suffix}.index.json").write_text(json.dumps(weight_map))
        return model

    return build


def model_with(**files: bytes | Callable[[], bytes]) -> Build:
    """A sound model folder with one more file; two underscores in a name stand for a point."""

    def build(folder: Path) -> Path:
        model = around(folder)
        (model / "link").unlink()
        (model / "model.safetensors").write_bytes(WEIGHTS)
        for name, content in files.items():
            data = content() if callable(content) else content
            (model / name.replace("__", ".")).write_bytes(data)
        return model

    return build


def external(location: str) -> Build:
    def build(folder: Path) -> Path:
        model = around(folder)
        content = onnx_bytes([onnx_tensor("w", [4, 3], None, location=location)])
        (model / "a.onnx").write_bytes(content)
        return model / "a.onnx"

    return build


def gensim(sidecars: object, link: bool = False) -> Build:
    """A gensim save that says which arrays lie next to it."""

    def build(folder: Path) -> Path:
        model = around(folder)
        cls = Named("gensim.models.keyedvectors.KeyedVectors")
        head = b"\x80\x02cgensim.models.keyedvectors\nKeyedVectors\n)\x81"
        state = pickle.dumps({"__numpys": sidecars, "index_to_key": list("abcd")}, 2)[2:-1]
        (model / "a").write_bytes(head + state + b"b.")
        assert cls.name.startswith("gensim")
        if link:
            os.symlink(folder / "secret", model / "a.vectors.npy")
        return model / "a"

    return build


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def metadata(files: int = 1) -> bytes:
    """Metadata of torch.distributed.checkpoint in which very many tensors share their pieces."""
    base = "torch.distributed.checkpoint.metadata."
    chunk = Called(f"{base}ChunkStorageMetadata")
    value = {"x": [chunk] * 2000, "y": [Called(f"{base}TensorStorageMetadata")] * files}
    return pickle_value([Called(f"{base}Metadata"), value])


def piece(text: bytes) -> bytes:
    return field(1, field(1, text) + b"\x15" + struct.pack("<f", 1.0))


MODELS: dict[str, Callable[[], bytes]] = {
    "a piece beyond the file": lambda: piece(b"a") + b"\x0a" + varint(2**63 - 1),
    "ten million empty pieces": lambda: piece(b"a") + b"\x0a\x00" * 10_000_000,
    "a piece of ten million fields": lambda: piece(b"a") + field(1, b"\x18\x01" * 10_000_000),
    "pieces nested 10,000 deep": lambda: piece(b"a") + b"\x0a\x80\x01" * 10_000,
    "groups": lambda: piece(b"a") + b"\x0b" * 1_000_000,
    "no UTF-8": lambda: piece(b"\xff\xfe") * 10,
    "a varint without end": lambda: piece(b"a") + b"\xff" * 1000,
}

#: Of these a piece is read, and what is odd about it is not.
SOUND_MODELS = ("a piece of ten million fields", "no UTF-8")


def source_record(**changed: object) -> bytes:
    head = {"format": "embgeo.source", "format_version": 1, "source": "hf://a/b", "commit": "0"}
    sizes = {"read": 1, "size": 2, "whole": False, "files": [], "tensors": []}
    return json.dumps(head | sizes | changed).encode()


#: What says in a model folder where its tensors are from.
SOURCES: dict[str, Callable[[], bytes]] = {
    "four million small objects": lambda: b"[" + b'{"":0},' * 4_700_000 + b"0]",
    "sizes of 400 digits": lambda: source_record(read=10**400, size=10**400),
    "a name of escapes": lambda: source_record(source="\x1b[2J\n" * 1000),
}

#: Files of tokens, counts and text that the command line may name.
SIDE: dict[str, Callable[[], bytes]] = {
    "JSON nested 100,000 deep": lambda: JSON_DEEP,
    "objects nested 100,000 deep": lambda: OBJECTS_DEEP,
    "thirty million empty lists": lambda: b"[" + b"[]," * 30_000_000 + b"[]]",
    "a gzip bomb": lambda: gzip.compress(bytes(2**20)) * 320,
    "a hundred million lines": lambda: gzip.compress(b"\n" * 2**20) * 100,
    "five million lines and an emoji": lambda: gzip.compress(
        ("🙂" + "wordwordwordwordwordword\n" * 4_990_000).encode(), 1
    ),
    "no UTF-8": lambda: b"\xff\xff\xff\n" * 4,
    "an id near 2^63": lambda: b'{"a": 9223372036854775807, "b": 0, "c": 1, "d": 2}',
    "an id of 5,000 digits": lambda: b'{"a": ' + b"9" * 5000 + b"}",
    "negative ids": lambda: b'{"a": -1, "b": -2, "c": 0, "d": 1}',
    "a million tabs": lambda: b"a" + b"\t1" * 1_000_000 + b"\n",
    "ranks that are not base64": lambda: b"%%%% 0\n!!!! 1\n",
    "ranks near 2^63": lambda: base64.b64encode(b"a") + b" 9223372036854775807\n",
}


def beside(option: str, content: Callable[[], bytes]) -> Case:
    """A sound matrix with a hostile file named by an option."""

    def build(folder: Path) -> Path:
        hold_content(content, "side")(folder)
        return hold_content(WEIGHTS)(folder)

    return Case("", "", build, more=(option, "{}/side"))


def tokenizers() -> list[Case]:
    deep = {"JSON nested 100,000 deep": JSON_DEEP, "objects nested 100,000 deep": OBJECTS_DEEP}
    made = [
        Case(f"{name} as {file.replace('__', '.')}", "model folder", model_with(**{file: content}))
        for name, content in deep.items()
        for file in ("config__json", "tokenizer__json", "vocab__json")
    ]
    made += [
        Case(
            name,
            "sentencepiece",
            model_with(tokenizer__model=content),
            name in SOUND_MODELS,
            dense="million" in name,
        )
        for name, content in MODELS.items()
    ]
    return made


def options() -> list[Case]:
    made = []
    for option in ("--tokens", "--counts"):
        for name, content in SIDE.items():
            case = beside(option, content)
            made.append(Case(name, option, case.build, more=case.more))
    return made


def cases() -> list[Case]:
    made = [
        Case(f"a shard called {shard[:20]!r} in {index}", "model folder", index_to(shard, index))
        for shard in OUTSIDE
        for index in ("model.safetensors.index.json", "pytorch_model.bin.index.json")
    ]
    made += [
        Case("a shard that is a link", "safetensors index", link_to("s.safetensors", WEIGHTS)),
        Case("a shard that is a link", "torch index", link_to("s.bin", TORCH_WEIGHTS)),
        Case("a pipe", "model folder", pipe),
        Case("sidecar outside", "gensim", gensim(["../secret"])),
        Case("sidecar that is a link", "gensim", gensim(["vectors"], link=True)),
        Case("a million sidecars", "gensim", gensim(["vectors"] * 1_000_000)),
        Case("sidecars that are a number", "gensim", gensim(2**62)),
        Case("shared pieces", "torch distributed", hold_content(metadata(20_000), ".metadata")),
    ]
    made += [
        Case(f"external data at {place[:20]!r}", "onnx", external(place))
        for place in OUTSIDE
        if "\0" not in place
    ]
    code = f"import pathlib; pathlib.Path({CANARY!r}).touch()\n".encode()
    made.append(
        Case(
            "code next to the weights", "model folder",
            model_with(modeling_evil__py=code, setup__py=code, conftest__py=code,
                       config__json=b'{"auto_map": {"AutoModel": "modeling_evil.Evil"}}'),
            opens=True,
        )
    )  # fmt: skip
    made += [
        Case(name, "source.json", model_with(source__json=content), opens=True)
        for name, content in SOURCES.items()
    ]
    return made + tokenizers() + options()


assert len(RAW) == W.nbytes
