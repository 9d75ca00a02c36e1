"""The content of ``analysis.json`` and ``arrays.npz``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embgeo.core.rows import NearestRows
from embgeo.core.values import Column, Histogram, Influence, Note, Points, Scalar, Series, Table
from embgeo.io.bounded.records import RecordFormat

JSON_NAME = "analysis.json"


@dataclass(frozen=True, slots=True)
class SavedAnalysis:
    """The content of ``analysis.json``; ``docs/analysis-json.md`` describes every field."""

    provenance: dict[str, Any]
    notes: tuple[Note, ...]
    absent: dict[str, str]
    #: For other programs; embgeo decides anew from the numbers.
    verdict: dict[str, Any]
    scalars: dict[str, Scalar]
    series: tuple[Series, ...]
    histograms: tuple[Histogram, ...]
    points: tuple[Points, ...]
    columns: tuple[Column, ...]
    tables: tuple[Table, ...]
    influences: tuple[Influence, ...]
    timing: dict[str, float]


def _check(saved: SavedAnalysis) -> None:
    for name, scalar in saved.scalars.items():
        if name != scalar.name:
            raise ValueError(f"the scalar {name!r} calls itself {scalar.name!r}")


FORMAT = RecordFormat(
    "embgeo.analysis",
    2,
    SavedAnalysis,
    JSON_NAME,
    "an analysis",
    "make one with: embgeo analyze CHECKPOINT",
    check=_check,
)


# --- tokens in the archive ------------------------------------------------------------------


def pack_tokens(tokens: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
    """Tokens as UTF-8 bytes and offsets, which hold any string, newlines and NULs included."""
    encoded = [token.encode("utf-8", "surrogatepass") for token in tokens]
    return {
        "tokens_utf8": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "tokens_end": np.cumsum([len(b) for b in encoded], dtype=np.int64),
    }


def unpack_tokens(arrays: dict[str, npt.NDArray[Any]]) -> tuple[str, ...] | None:
    if "tokens_utf8" not in arrays:
        return None
    raw = arrays["tokens_utf8"].tobytes()
    ends = arrays["tokens_end"].tolist()
    return tuple(
        raw[start:stop].decode("utf-8", "surrogatepass")
        for start, stop in zip([0, *ends[:-1]], ends, strict=True)
    )


# --- nearest rows in the archive ------------------------------------------------------------


def pack_nearest(nearest: NearestRows) -> dict[str, npt.NDArray[Any]]:
    """The arrays of the archive, with 32 bits per entry."""
    return {
        "nearest/rows": nearest.rows.astype(np.int32),
        "nearest/neighbors": nearest.neighbors.astype(np.int32),
        "nearest/cosines": nearest.cosines,
    }


def unpack_nearest(arrays: dict[str, npt.NDArray[Any]]) -> NearestRows | None:
    """None if there are none, as in earlier files."""
    if "nearest/rows" not in arrays:
        return None
    rows, near = (arrays[f"nearest/{part}"].astype(np.int64) for part in ("rows", "neighbors"))
    return NearestRows(rows, near, arrays["nearest/cosines"].astype(np.float32))


def check_nearest(nearest: NearestRows, rows: int) -> None:
    """Raise ValueError unless shapes fit, and all row numbers are below `rows`."""
    near, asked = nearest.neighbors, nearest.rows
    if near.shape != nearest.cosines.shape or near.shape[:-1] != asked.shape or near.ndim != 2:
        raise ValueError("the nearest rows and their cosines have different shapes")
    for places in (near, asked):
        if places.size and not 0 <= places.min() <= places.max() < rows:
            raise ValueError("the nearest rows are not rows of the analysis")
