"""NPZ: numpy arrays by name, without pickles."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from embgeo.publish.export.columns import collect_arrays
from embgeo.publish.export.target import Request, Target

PROVENANCE = "provenance"


def write(request: Request, path: Path) -> None:
    """Write tokens as UTF-8 bytes and where each ends: any string survives, NULs included."""
    analysis = request.saved()
    content: dict[str, Any] = dict(collect_arrays(analysis))
    if analysis.tokens is not None:
        encoded = [token.encode("utf-8", "surrogatepass") for token in analysis.tokens]
        content["tokens_utf8"] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        content["tokens_end"] = np.cumsum([len(token) for token in encoded], dtype=np.int64)
    content[PROVENANCE] = np.array(json.dumps(request.record, allow_nan=False))
    with path.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **content)


def is_ours(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{PROVENANCE}.npy" in archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


TARGET = Target("npz", ".npz", write, is_ours)
