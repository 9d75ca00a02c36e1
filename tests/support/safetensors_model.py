"""A small model folder of one safetensors file in any type, with damaged rows."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np

from tests.support.binary_files import safetensors_of

N, D = 60, 8
DEAD = (5, 17, 41)
#: numpy's or ml_dtypes' names, and those of the format.
DTYPES = {
    "float32": "F32",
    "bfloat16": "BF16",
    "float16": "F16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
EMBEDDING, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"


def make_rows(dtype: str, seed: int = 0) -> np.ndarray:
    """Rows of that type, those of `DEAD` zero, NaN and 10⁻⁵ as long."""
    W = np.random.default_rng(seed).standard_normal((N, D)).astype(np.float32)
    W = W.astype(getattr(ml_dtypes, dtype, dtype))
    W[DEAD[0]], W[DEAD[1]] = 0.0, np.nan
    W[DEAD[2]] = (W[DEAD[2]].astype(np.float32) * 1e-5).astype(W.dtype)
    return W


def write_model(
    folder: Path, tensors: dict[str, np.ndarray], tied: bool | None = None, **files: str
) -> Path:
    """Write ``model.safetensors`` with a layer between the tensors, and further files."""
    folder.mkdir()
    between = np.arange(6, dtype=np.float32)
    every = dict(zip(("layer.weight", *tensors), (between, *tensors.values()), strict=True))
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    body = b""
    for name, tensor in every.items():
        raw = np.ascontiguousarray(tensor).view(np.uint8).tobytes()
        place = [len(body), len(body) + len(raw)]
        kind = DTYPES[str(tensor.dtype)]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": place}
        body += raw
    (folder / "model.safetensors").write_bytes(safetensors_of(header, body))
    config = {} if tied is None else {"tie_word_embeddings": tied}
    (folder / "config.json").write_text(json.dumps(config))
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def find_tensor(file: Path, name: str) -> tuple[int, int]:
    """Where the bytes of a tensor begin and end, by the header alone."""
    raw = file.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    first, last = json.loads(raw[8:start])[name]["data_offsets"]
    return start + first, start + last
